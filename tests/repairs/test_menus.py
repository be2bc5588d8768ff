"""A menu of maps fixed beforehand: what is chosen, what is bounded, and what is refused."""

import numpy as np
import pytest
from class_repair_cases import rows_of_classes
from sklearn.base import clone

from calibrant import compare_recalibrators, confidence_interval
from calibrant.repairs import (
    ClassRecalibrator,
    ClassTemperatureRecalibrator,
    MenuRecalibrator,
    OneVsRestRecalibrator,
    VectorRecalibrator,
)

P, Y, _ = rows_of_classes(0, rows=500, classes=3)


def test_the_lowest_log_loss_is_chosen_from_a_grid_of_temperatures():
    menu = MenuRecalibrator().fit(P, Y)
    fitted = ClassTemperatureRecalibrator().fit(P, Y).temperature_
    assert menu.scores_.size == 31
    temperatures = 2.0 ** (np.arange(-12, 19) / 6.0)
    forecasts = [ClassTemperatureRecalibrator(temperature=t).fit(P, Y).predict(P) for t in temperatures]
    losses = [-np.log(each[np.arange(500), Y]).mean() for each in forecasts]
    assert menu.scores_ == pytest.approx(losses)
    assert menu.number_ == int(np.argmin(losses))
    assert menu.recalibrator_.temperature_ == temperatures[menu.number_]
    assert abs(np.log2(menu.recalibrator_.temperature_ / fitted)) <= 1.0 / 6.0
    assert (menu.predict(P) == forecasts[menu.number_]).all()
    squares = [np.square(each - np.eye(3)[Y]).sum(axis=1).mean() for each in forecasts]
    assert MenuRecalibrator(rule="brier").fit(P, Y).scores_ == pytest.approx(squares)


@pytest.mark.parametrize("questions", ["confidence", "classwise", "subsets"])
def test_the_bound_is_the_limit_of_the_chosen_map_at_delta_over_the_number_of_maps(questions):
    menu = MenuRecalibrator(questions=questions, confidence_level=0.9).fit(P, Y)
    alone = confidence_interval(
        Y,
        menu.predict(P),
        classes=[0, 1, 2],
        questions=questions,
        alternative="less",
        confidence_level=1.0 - 0.1 / 31,
    )
    assert menu.guarantee().upper == pytest.approx(alone.upper)
    assert menu.guarantee().error == pytest.approx(alone.estimate)
    assert menu.guarantee().question == questions
    assert menu.guarantee().choices == 31
    assert menu.guarantee() == menu.guarantee(0.9) == menu.guarantee_
    for options, message in (
        ({"confidence_level": 0.95}, "fit again with MenuRecalibrator"),
        ({"measure": "risk_gap"}, "measure must be one of 'cutoff'"),
        ({"target": "these forecasts"}, "target must be one of 'population'"),
    ):
        with pytest.raises(ValueError, match=message):
            menu.guarantee(**options)


def test_parameters_set_after_the_fit_change_nothing_that_it_bounded():
    menu = MenuRecalibrator(confidence_level=0.9).fit(P, Y)
    found = menu.guarantee()
    menu.set_params(confidence_level=0.999, questions="classwise")
    assert menu.guarantee() == menu.guarantee(0.9) == menu.guarantee_ == found
    assert (found.confidence_level, found.question) == (0.9, "confidence")
    with pytest.raises(ValueError, match="fit again with MenuRecalibrator"):
        menu.guarantee(0.999)
    twin = ClassRecalibrator.from_json(menu.to_json())
    assert twin.guarantee() == twin.guarantee_ == found
    again = menu.fit(P, Y).guarantee()
    assert (again.confidence_level, again.question) == (0.999, "classwise")
    assert again.upper > found.upper


def test_maps_that_were_fitted_to_other_rows_are_on_the_menu():
    others, happened, _ = rows_of_classes(1, rows=500, classes=3)
    dishes = [
        ClassTemperatureRecalibrator(temperature=1.0),
        VectorRecalibrator().fit(others, happened),
        OneVsRestRecalibrator().fit(others, happened),
    ]
    menu = MenuRecalibrator(dishes).fit(P, Y)
    assert menu.number_ == 1
    assert menu.recalibrator_ is dishes[1]
    assert menu.guarantee().choices == 3
    twin = ClassRecalibrator.from_json(menu.to_json())
    assert twin.guarantee_ == menu.guarantee_
    assert (twin.predict(P) == menu.predict(P)).all()
    assert twin.to_json() == menu.to_json()
    assert menu.to_sql(list("abc")) == dishes[1].to_sql(list("abc"))
    copied = clone(menu)
    assert not hasattr(copied, "guarantee_")
    assert copied.fit(P, Y).guarantee_ == menu.guarantee_  # the menu is the same, fitted maps and all
    assert compare_recalibrators(P, Y, candidates={"menu": menu}, cv=2, rng=0)["menu"].problem is None


def test_an_infinite_loss_is_never_chosen_and_survives_json():
    y_prob = np.concatenate([P, [[1.0, 0.0, 0.0]]])
    y = np.append(Y, 1)
    dishes = [ClassTemperatureRecalibrator(temperature=2.0), ClassTemperatureRecalibrator(temperature=2.0, clip=0.01)]
    menu = MenuRecalibrator(dishes).fit(y_prob, y)
    assert menu.scores_[0] == np.inf
    assert menu.number_ == 1
    twin = ClassRecalibrator.from_json(menu.to_json())
    assert twin.scores_.tolist() == menu.scores_.tolist()
    assert twin.guarantee_ == menu.guarantee_


def test_weights_have_no_guarantee():
    weighted = MenuRecalibrator().fit(P, Y, sample_weight=np.arange(500) % 3)
    assert weighted.guarantee_ is None
    with pytest.raises(ValueError, match="no guarantee covers weighted rows"):
        weighted.guarantee()
    assert clone(weighted).fit(P, Y, sample_weight=np.ones(500)).guarantee_ == MenuRecalibrator().fit(P, Y).guarantee_


@pytest.mark.parametrize(
    ("menu", "message"),
    [
        ({"menu": []}, "menu must be a list of recalibrators of classes"),
        ({"menu": "temperatures"}, "menu must be a list of recalibrators of classes"),
        ({"menu": [2.0]}, r"menu\[0\] is 2.0, not a recalibrator of the probabilities of classes"),
        ({"menu": [VectorRecalibrator()]}, r"menu\[0\] is VectorRecalibrator\(\), which is not fixed yet; fit it to o"),
        ({"menu": [ClassTemperatureRecalibrator()]}, "which is not fixed yet"),
        ({"menu": [VectorRecalibrator().fit(*rows_of_classes(1, 300, 4)[:2])]}, "was fitted to the classes"),
        ({"rule": "cutoff"}, "rule must be one of 'log_loss', 'brier'"),
        ({"questions": "ece"}, "questions must be one of"),
        ({"confidence_level": 1.5}, "confidence_level"),
    ],
)
def test_what_cannot_be_on_a_menu(menu, message):
    with pytest.raises(ValueError, match=message):
        MenuRecalibrator(**menu).fit(P, Y)


def test_a_changed_text_is_refused():
    text = MenuRecalibrator().fit(P, Y).to_json()
    for old, new in [
        ('"number_": ', '"number_": 1'),
        ('"upper_": 0', '"upper_": -0'),
        ('"scores_": [', '"scores_": [0.1, '),
        ('"questions_": "confidence"', '"questions_": "ece"'),
        ('"confidence_level_": 0.95', '"confidence_level_": 1.5'),
    ]:
        assert old in text
        with pytest.raises(ValueError, match=r"the text is damaged|must be"):
            ClassRecalibrator.from_json(text.replace(old, new))
