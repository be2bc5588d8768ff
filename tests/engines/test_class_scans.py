"""Scans of several classes: the answers of arrays, whatever is asked, and the same refusals."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import calibrant
from calibrant.core.errors import CalibrantError
from calibrant.engines import ClassScan

NAMES = np.array(["bream", "perch", "roach", "eel"])
QUESTIONS = ("confidence", "classwise", "top_label", "pairs", "subsets")


def table(rows=400, seed=0, classes=4):
    """Forecasts of a few tenths, so that many are equal, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.integers(0, 11, (rows, classes - 1)), axis=1)
    y_prob = np.diff(cuts, axis=1, prepend=0, append=10) / 10
    places = np.array([rng.choice(classes, p=row / row.sum()) for row in y_prob])
    frame = pd.DataFrame(y_prob, columns=[f"p_{name}" for name in NAMES[:classes]])
    return frame.assign(fish=NAMES[places], w=rng.integers(0, 4, rows), lake=rng.integers(0, 60, rows)), y_prob


FRAME, Y_PROB = table()
COLUMNS = [f"p_{name}" for name in NAMES]
GIVEN = (FRAME["fish"].to_numpy(), Y_PROB)


def opened(source=FRAME, **asked):
    return calibrant.scan(source, y_true="fish", y_prob=COLUMNS, **asked)


def same(one, other):
    """Whether two results hold the same words, and numbers that differ by rounding at most."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return one == other or abs(one - other) <= 1e-12
    return one == other


@pytest.mark.parametrize("questions", QUESTIONS)
def test_questions_are_answered_as_of_arrays(questions):
    arrays: dict[str, Any] = {"classes": NAMES, "questions": questions}
    functions: Any = (
        (calibrant.measure, {}),
        (calibrant.certify, {"max_error": 0.1}),
        (calibrant.confidence_interval, {}),
        (calibrant.worst_interval, {}),
    )
    with opened(questions=questions) as rows:
        for function, more in functions:
            assert same(function(rows, **more).to_dict(), function(*GIVEN, **arrays, **more).to_dict()), function
        found = calibrant.cutoff_calibration_error(rows)
        assert found == pytest.approx(calibrant.cutoff_calibration_error(*GIVEN, **arrays), abs=1e-12)


def test_equal_forecasts_go_to_the_label_that_sorts_first():
    assert (np.sort(Y_PROB, axis=1)[:, -1] == np.sort(Y_PROB, axis=1)[:, -2]).sum() > 40
    order = [2, 0, 3, 1]
    with calibrant.scan(FRAME, y_true="fish", y_prob=[COLUMNS[place] for place in order]) as rows:
        assert (
            rows.asked().column(0).cells(4).outcome.sum() == calibrant.measure(*GIVEN, classes=NAMES).mean_outcome * 400
        )


@pytest.mark.parametrize("role", [{"sample_weight": "w"}, {"cluster": "lake"}])
@pytest.mark.parametrize("questions", ["confidence", "top_label"])
def test_weights_and_clusters_count(role, questions):
    (name, column) = next(iter(role.items()))
    arrays: dict[str, Any] = {"classes": NAMES, "questions": questions, name: FRAME[column].to_numpy()}
    asked: Any = calibrant.certify(*GIVEN, **arrays, max_error=0.2)
    with opened(questions=questions, **role) as rows:
        assert same(calibrant.certify(rows, max_error=0.2).to_dict(), asked.to_dict())


def test_groups_are_for_a_single_question():
    frame = FRAME.assign(half=np.where(FRAME["lake"] < 30, "low", "high"))
    asked = calibrant.certify(*GIVEN, classes=NAMES, by=frame["half"].to_numpy(), max_error=0.3)
    with opened(frame, by="half") as rows:
        assert same(calibrant.certify(rows, max_error=0.3).to_dict(), asked.to_dict())
        with pytest.raises(calibrant.InputError, match="several questions"):
            calibrant.certify(rows, max_error=0.3, questions="classwise")


def test_files_of_text_hold_labels_as_numbers(tmp_path):
    frame = FRAME.assign(fish=np.searchsorted(np.sort(NAMES), FRAME["fish"]))
    names = {f"p_{name}": f"p_{place}" for place, name in enumerate(np.sort(NAMES))}
    frame.rename(columns=names).to_csv(tmp_path / "t.csv", index=False)
    with calibrant.scan(tmp_path / "t.csv", y_true="fish", y_prob=["p_0", "p_1", "p_2", "p_3"]) as rows:
        found = calibrant.measure(rows, questions="classwise")
        assert (found.questions, rows.classes) == ((0, 1, 2, 3), (0, 1, 2, 3))
        assert repr(rows).startswith("ClassScan(")
    asked = calibrant.measure(*GIVEN, classes=NAMES, questions="classwise")
    assert found[1].cutoff == pytest.approx(asked["eel"].cutoff, abs=1e-12)


def test_other_functions_take_the_only_question():
    with opened() as rows:
        assert isinstance(rows, ClassScan)
        confidence = Y_PROB.max(axis=1)
        right = np.sort(NAMES)[Y_PROB[:, np.argsort(NAMES)].argmax(axis=1)] == GIVEN[0]
        found = calibrant.measures.smooth_calibration_error(rows)
        assert found == pytest.approx(calibrant.measures.smooth_calibration_error(right, confidence), abs=1e-12)
    with opened(questions="pairs") as rows, pytest.raises(calibrant.InputError, match="this source holds 6 questions"):
        calibrant.measures.smooth_calibration_error(rows)


def test_two_columns_are_those_of_the_event():
    frame = pd.DataFrame({"y": ["no", "yes", "yes"] * 40, "no": [0.75, 0.5, 0.25] * 40, "yes": [0.25, 0.5, 0.75] * 40})
    alone = calibrant.measure(frame["y"], frame["yes"], pos_label="yes")
    with calibrant.scan(frame, y_true="y", y_prob=["no", "yes"]) as rows:
        assert same(calibrant.measure(rows).to_dict(), alone.to_dict())
    with calibrant.scan(frame, y_true="y", y_prob=["no", "yes"], pos_label="no") as rows:
        assert calibrant.measure(rows).mean_outcome == pytest.approx(1 / 3)


def test_several_labels_of_a_row():
    rng = np.random.default_rng(1)
    y_prob = rng.random((300, 2)).round(2)
    y = (rng.random((300, 2)) < y_prob).astype(int)
    frame = pd.DataFrame({"red": y[:, 0], "blue": y[:, 1], "p": y_prob[:, 0], "q": y_prob[:, 1]})
    asked = calibrant.certify(y, y_prob, classes=["red", "blue"], multilabel=True, max_error=0.2)
    with calibrant.scan(frame, y_true=["red", "blue"], y_prob=["p", "q"], multilabel=True) as rows:
        assert same(calibrant.certify(rows, max_error=0.2).to_dict(), asked.to_dict())


@pytest.mark.parametrize(
    ("change", "asked", "message"),
    [
        ({"p_perch": 0.95}, {}, r"adds up to .* over its 4 classes in row 6 \(counted from 1\), one of 1 of 400 rows"),
        ({"p_perch": 1.5}, {}, "column 'p_perch' is outside \\[0, 1\\] in 1 of 400 rows|p_perch.* is outside"),
        ({"p_perch": None}, {}, "p_perch.* is missing in 1 of 400 rows"),
        ({"fish": None}, {}, "fish.* is missing in 1 row"),
        ({"fish": "carp"}, {}, "holds 'carp', and no column of forecasts is named after it"),
        ({"fish": "carp"}, {"classes": NAMES}, "holds 'carp', which is not one of the classes"),
        ({}, {"classes": NAMES[:3]}, "classes has 3 labels and y_prob has 4 columns"),
        ({}, {"pos_label": "eel"}, "pos_label names one event"),
        ({}, {"questions": "all"}, "questions must be one of"),
        ({"w": -1}, {"sample_weight": "w"}, "negative"),
    ],
)
def test_what_is_wrong_is_said_as_elsewhere(change, asked, message):
    frame = FRAME.astype({"fish": object})
    for name, value in change.items():
        frame.loc[5, name] = value
    with pytest.raises(calibrant.InputError, match=message), opened(frame, **asked) as rows:
        calibrant.certify(rows, max_error=0.1)


def test_columns_are_looked_at_first():
    for y_prob, more, message in (
        (["p_eel"], {}, "pass two columns of forecasts or more"),
        (["p_eel", "p_eel"], {}, "names 'p_eel' twice"),
        (["p_eel", "nosuch"], {}, "nosuch"),
        (["p_eel", "fish"], {}, "not numbers"),
        ("p_eel", {"questions": "pairs"}, "has no column per class"),
        (["p_eel", "p_roach"], {"multilabel": True}, "y_true names 1 columns and y_prob 2"),
    ):
        with pytest.raises(CalibrantError, match=re.escape(message)):
            calibrant.scan(FRAME, y_true="fish", y_prob=y_prob, **more)
    with opened() as rows, pytest.raises(calibrant.InputError, match="as scan"):
        calibrant.certify(rows, max_error=0.1, classes=NAMES)
