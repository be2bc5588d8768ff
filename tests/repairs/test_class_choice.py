"""Recalibrators of several classes side by side on rows they have not seen."""

import numpy as np
import pytest
from class_repair_cases import rows_of_classes
from sklearn.base import clone

from calibrant import PlattRecalibrator, compare_recalibrators, confidence_interval
from calibrant.repairs import (
    ClassRecalibratorComparison,
    ClassTemperatureRecalibrator,
    MenuRecalibrator,
    OneVsRestRecalibrator,
    TopLabelRecalibrator,
    VectorRecalibrator,
)

P, Y, _ = rows_of_classes(0, rows=300, classes=3)
CANDIDATES = {"temperature": ClassTemperatureRecalibrator(), "isotonic": OneVsRestRecalibrator()}


def test_every_row_is_forecast_by_a_map_that_has_not_seen_it():
    # Two parts of equal rows each: whichever way they are dealt, each half fits the same map for the other.
    y_prob = np.repeat([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]], 50, axis=0)
    y = np.tile([0, 1, 2, 0, 1], 20)
    found = compare_recalibrators(y_prob, y, candidates={"isotonic": OneVsRestRecalibrator()}, cv=100, rng=0)
    held_out = np.empty((100, 3))
    for row in range(100):
        others = np.arange(100) != row
        held_out[row] = OneVsRestRecalibrator().fit(y_prob[others], y[others]).predict(y_prob[row : row + 1])
    square = np.square(held_out - np.eye(3)[y]).sum(axis=1).mean()
    assert found["isotonic"].brier == pytest.approx(square)
    assert found["isotonic"].log_loss == pytest.approx(-np.log(held_out[np.arange(100), y]).mean())
    assert found["isotonic"].accuracy == pytest.approx((held_out.argmax(axis=1) == y).mean())


@pytest.mark.parametrize("questions", [None, "classwise"])
def test_forecasts_as_they_are_have_the_limits_that_they_have_alone(questions):
    found = compare_recalibrators(P, Y, candidates=CANDIDATES, cv=2, rng=0, questions=questions)
    alone = confidence_interval(Y, P, questions=questions or "confidence")
    assert isinstance(found, ClassRecalibratorComparison)
    assert found.question == (questions or "confidence")
    assert (found["as is"].cutoff, found["as is"].cutoff_lower, found["as is"].cutoff_upper) == pytest.approx(
        (alone.estimate, alone.lower, alone.upper)
    )
    assert list(found) == ["as is", "temperature", "isotonic"]
    assert len(found) == 3
    with pytest.raises(KeyError):
        found["beta"]


def test_what_is_recommended_has_the_lowest_score_up_to_noise():
    found = compare_recalibrators(P, Y, rng=0)
    assert found.recommended != "as is"
    assert f"Use {found.recommended}: its held-out Brier score" in found.recommendation
    rng = np.random.default_rng(0)
    right = np.array([rng.choice(3, p=row) for row in P])
    kept = compare_recalibrators(P, right, candidates=CANDIDATES, rng=0)
    assert kept.recommended == "as is"
    assert "Leave the forecasts as they are" in str(kept)


def test_rows_of_one_class_recommend_nothing():
    found = compare_recalibrators(P, np.full(len(P), Y[0]), classes=sorted(set(Y)), candidates=CANDIDATES, rng=0)
    assert found.recommended is None
    assert found.recommendation.startswith(f"Nothing is recommended. All of these rows are of class {Y[0]}: ")


def test_order_names_and_weights_of_one_make_no_difference():
    first = compare_recalibrators(P, Y, candidates=CANDIDATES, cv=3, rng=5)
    order = np.random.default_rng(1).permutation(300)
    again = compare_recalibrators(P[order], Y[order], candidates=CANDIDATES, cv=3, rng=5)
    for name in first:
        assert again[name].brier == pytest.approx(first[name].brier, abs=1e-9)
        assert again[name].cutoff == pytest.approx(first[name].cutoff, abs=1e-9)
    visit = np.arange(300) // 3
    clustered = compare_recalibrators(P, Y, candidates=CANDIDATES, cv=3, rng=5, cluster=visit)
    renamed = compare_recalibrators(P, Y, candidates=CANDIDATES, cv=3, rng=5, cluster=[f"v{-each}" for each in visit])
    for name in clustered:
        assert renamed[name].cutoff_upper == pytest.approx(clustered[name].cutoff_upper, abs=1e-9)
    assert clustered.clusters == 100
    assert "The rows come in 100 clusters" in str(clustered)
    assert clustered["isotonic"].guarantee is None


def test_rows_without_weight_do_not_count():
    weight = np.random.default_rng(2).integers(0, 3, 300).astype(float)
    found = compare_recalibrators(P, Y, candidates=CANDIDATES, cv=2, rng=0, sample_weight=weight)
    kept = weight > 0
    alone = compare_recalibrators(P[kept], Y[kept], candidates=CANDIDATES, cv=2, rng=0, sample_weight=weight[kept])
    assert found == alone
    assert found["isotonic"].guarantee is None


def test_what_cannot_be_fitted_is_noted():
    y_prob = np.concatenate([P, [[1.0, 0.0, 0.0]] * 4])
    y = np.append(Y, [1] * 4)
    found = compare_recalibrators(y_prob, y, candidates={"vector": VectorRecalibrator(), **CANDIDATES}, cv=2, rng=0)
    assert found["vector"].problem is not None
    assert "vector could not be fitted: " in str(found)
    assert found["vector"].cutoff is None
    assert "could not be fitted" in str(found["vector"])
    assert found.frame().shape[0] == 4


def test_guarantees_are_those_of_all_rows():
    found = compare_recalibrators(P, Y, candidates={"top": TopLabelRecalibrator()}, cv=2, rng=0, confidence_level=0.9)
    assert found["top"].guarantee == TopLabelRecalibrator().fit(P, Y).guarantee(0.9).upper
    assert found["top"].guaranteed_question == "confidence"


def test_guarantees_hold_together_because_one_is_chosen_on_the_rows_of_the_fit():
    dishes = [ClassTemperatureRecalibrator(temperature=each) for each in (1.0, 2.0)]
    candidates = {
        "temperature": ClassTemperatureRecalibrator(),  # which has none, and takes no share
        "top": TopLabelRecalibrator(),
        "menu": MenuRecalibrator(dishes),
    }
    found = compare_recalibrators(P, Y, candidates=candidates, cv=2, rng=0, confidence_level=0.9)
    assert found["top"].guarantee == pytest.approx(TopLabelRecalibrator().fit(P, Y).guarantee(0.95).upper)
    alone = MenuRecalibrator(dishes, confidence_level=0.95).fit(P, Y)
    assert found["menu"].guarantee == pytest.approx(alone.guarantee().upper)
    assert found["temperature"].guarantee is None
    assert "guarantees all together" in str(found)
    assert "with 90% confidence (confidence), although it was chosen on them" in found.recommendation


def test_a_candidate_that_the_rows_leave_unfitted_has_its_share_of_the_confidence():
    y_prob, y = np.concatenate([P, [[1.0, 0.0, 0.0]] * 4]), np.append(Y, [1] * 4)
    candidates = {"vector": VectorRecalibrator(), "top": TopLabelRecalibrator()}
    found = compare_recalibrators(y_prob, y, candidates=candidates, cv=2, rng=0, confidence_level=0.9)
    assert found["vector"].problem is not None
    assert found["top"].guarantee == pytest.approx(TopLabelRecalibrator().fit(y_prob, y).guarantee(0.95).upper)


def test_two_columns_are_forecasts_of_the_second_class():
    rng = np.random.default_rng(3)
    p = rng.random(200)
    y = np.where(rng.random(200) < p, "yes", "no")
    both = np.stack([1.0 - p, p], axis=1)
    candidates = {"platt": PlattRecalibrator()}
    one = compare_recalibrators(p, y == "yes", candidates=candidates, cv=2, rng=0)
    assert compare_recalibrators(both, y, candidates=candidates, cv=2, rng=0) == one
    assert compare_recalibrators(both, y, candidates=candidates, cv=2, rng=0, pos_label="yes") == one
    asked = compare_recalibrators(both, y, candidates=CANDIDATES, cv=2, rng=0, questions="confidence")
    assert asked.classes == ("no", "yes")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0.5}, "several classes have no one line between acting and not acting"),
        ({"cost_false_positive": 1.0}, "several classes have no one line"),
        ({"pos_label": 1}, "pos_label is 1, and the columns of y_prob are"),
        (
            {"candidates": {"platt": PlattRecalibrator()}},
            "y_prob has the columns of several classes",
        ),
        ({"candidates": {"as is": OneVsRestRecalibrator()}}, "names are words"),
        ({"candidates": {"raw": OneVsRestRecalibrator(renormalize=False)}}, "whose probabilities sum to 1"),
        ({"candidates": []}, "must be a dict of names to recalibrators of classes"),
        ({"cv": 301}, "cv is 301, and there are only 300 rows to deal to parts"),
        ({"cv": 4, "cluster": np.arange(300) % 3}, "cv is 4, and there are only 3 clusters to deal to parts"),
        ({"questions": "ece"}, "questions must be one of"),
    ],
)
def test_what_cannot_be_compared(options, message):
    asked = {"candidates": {name: clone(each) for name, each in CANDIDATES.items()}, **options}
    with pytest.raises(ValueError, match=message):
        compare_recalibrators(P, Y, **asked)
