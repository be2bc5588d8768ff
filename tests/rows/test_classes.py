"""Forecasts of several classes: what is let in, what is refused and how, and which class a column is taken for."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from class_cases import ASKED, RIGHT_BY_CLASS, RIGHT_ON_TOP, RIGHT_ONE_BY_ONE, columns, largest, some_rows

from calibrant import certify, cutoff_calibration_error, measure, worst_interval
from calibrant.rows import matrices
from calibrant.rows.classes import check_classes_of, class_questions, subsets_of

Y = np.array(["oak", "elm", "ash", "elm", "oak", "ash"])
P = np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1], [0.4, 0.4, 0.2], [0.25, 0.5, 0.25], [0.0, 0.0, 1.0], [0.6, 0.2, 0.2]])


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("tied", [False, True])
def test_the_error_is_the_largest_over_all_intervals_of_all_questions(asked, count, tied):
    rng = np.random.default_rng(count)
    for rows in (count, 7, 25):
        y, p = some_rows(rng, rows, count, tied=tied)
        found = cutoff_calibration_error(y, p, questions=asked)
        assert found == pytest.approx(largest(y, p, asked), abs=1e-12)


@pytest.mark.parametrize("asked", ASKED)
def test_columns_are_those_of_the_definition(asked):
    y, p = some_rows(np.random.default_rng(0), 30, 4, tied=True)
    family = class_questions(y, p, questions=asked)
    expected = list(columns(y, p, asked))
    if asked == "subsets":  # of which one side of each division is enough
        assert len(family) == 7
        return
    assert len(family) == len(expected)
    for column, (outcome, forecast) in zip(family, expected, strict=True):
        assert column.y_true.tolist() == outcome.tolist()
        assert column.y_prob.tolist() == pytest.approx(forecast.tolist(), abs=1e-15)


def test_which_question_is_asked_matters():
    errors = {
        name: {
            asked: cutoff_calibration_error(*rows, questions=asked, classes=range(rows[1].shape[1])) for asked in ASKED
        }
        for name, rows in (("class", RIGHT_BY_CLASS), ("top", RIGHT_ON_TOP), ("one", RIGHT_ONE_BY_ONE))
    }
    assert errors["class"]["classwise"] == pytest.approx(0.0, abs=1e-14)
    assert errors["class"]["confidence"] == pytest.approx(0.16, abs=1e-14)
    assert errors["top"]["confidence"] == errors["top"]["top_label"] == pytest.approx(0.0, abs=1e-14)
    assert errors["top"]["classwise"] == pytest.approx(0.499, abs=1e-14)
    assert errors["one"]["classwise"] == pytest.approx(0.0, abs=1e-14)
    assert errors["one"]["top_label"] == pytest.approx(0.0, abs=1e-14)
    assert errors["one"]["subsets"] == pytest.approx(0.1, abs=1e-14)
    assert worst_interval(*RIGHT_ONE_BY_ONE, questions="subsets").worst in ("1 or 3", "2 or 3")


def test_above_one_half_a_class_is_its_own_top_label():
    y, p = some_rows(np.random.default_rng(1), 200, 3)
    classwise, top = class_questions(y, p, questions="classwise"), class_questions(y, p, questions="top_label")
    for k in range(3):
        one, other = classwise.column(k), top.column(k)
        inside = one.y_prob > 0.5
        assert (inside == (other.y_prob > 0.5)).all()
        assert (one.y_true[inside] == other.y_true[inside]).all()


def test_subsets_are_divisions_into_two_sides():
    for count in range(2, 8):
        found = subsets_of(count)
        sides = {frozenset((frozenset(each), frozenset(range(count)) - set(each))) for each in found}
        assert len(found) == len(sides) == 2 ** (count - 1) - 1


def test_two_columns_are_those_of_a_binary_model():
    rng = np.random.default_rng(2)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    both = np.column_stack([1.0 - p, p])
    assert measure(y, both) == measure(y, p)
    assert certify(y, both, max_error=0.1) == certify(y, p, max_error=0.1)
    for each in (both, both.astype(np.float32), both.tolist(), pd.DataFrame(both), np.asfortranarray(both)):
        expected = cutoff_calibration_error(y, np.asarray(each, dtype=np.asarray(each).dtype)[:, 1])
        assert cutoff_calibration_error(y, each) == expected
    named = np.where(y == 1, "yes", "no")
    assert cutoff_calibration_error(named, both) == cutoff_calibration_error(y, p)
    assert cutoff_calibration_error(named, both, pos_label="no") == cutoff_calibration_error(1 - y, 1.0 - p)
    assert (
        cutoff_calibration_error(named, both[:, ::-1], classes=["yes", "no"], pos_label="yes") == measure(y, p).cutoff
    )
    assert cutoff_calibration_error(np.ones(300), both) == cutoff_calibration_error(np.ones(300), p)
    subsets = certify(y, both, max_error=0.1, questions="subsets")
    assert subsets.questions == ("1",)
    assert subsets.certificates[0] == certify(y, p, max_error=0.1)
    assert subsets.joint_upper == subsets.certificates[0].upper
    classwise = certify(y, both, max_error=0.1, questions="classwise")
    assert classwise.upper[1] == pytest.approx(certify(y, p, max_error=0.1).upper, rel=1e-12)
    assert classwise.upper[0] == pytest.approx(classwise.upper[1], abs=1e-12)


@pytest.mark.parametrize("asked", ASKED)
def test_neither_the_order_of_rows_nor_that_of_columns_matters(asked):
    rng = np.random.default_rng(3)
    y, p = some_rows(rng, 60, 4, tied=True)
    names = np.array(["a", "b", "c", "d"])
    expected = certify(names[y], p, max_error=0.2, questions=asked)
    rows, order = rng.permutation(60), np.array([2, 0, 3, 1])
    assert certify(names[y][rows], p[rows], max_error=0.2, questions=asked) == expected
    turned = certify(names[y], p[:, order], classes=names[order], max_error=0.2, questions=asked)
    assert turned.estimate == pytest.approx(expected.estimate, abs=1e-12)
    assert turned.verdict == expected.verdict
    if asked in ("classwise", "top_label"):
        for name in names.tolist():
            assert turned[name].estimate == expected[name].estimate


def test_labels_come_from_classes_or_a_frame_or_the_sorted_labels():
    sorted_labels = check_classes_of(Y, P)
    assert (sorted_labels.classes, sorted_labels.named) == (("ash", "elm", "oak"), False)
    assert "'ash', 'elm', 'oak'" in sorted_labels.notes()[0]
    for frame in (pd.DataFrame(P, columns=["oak", "elm", "ash"]), pl.DataFrame(P, schema=["oak", "elm", "ash"])):
        found = check_classes_of(Y, frame)
        assert (found.classes, found.named, found.notes()) == (("oak", "elm", "ash"), True, ())
        assert found.places.tolist() == [0, 1, 2, 1, 0, 2]
    assert check_classes_of(Y, pl.DataFrame(P)).classes == ("ash", "elm", "oak")
    assert check_classes_of(Y, pd.DataFrame(P)).classes == ("ash", "elm", "oak")
    assert check_classes_of(Y, P, classes=["oak", "elm", "ash"]).places.tolist() == [0, 1, 2, 1, 0, 2]
    more = check_classes_of([0, 1, 0], [[0.5, 0.25, 0.25]] * 3, classes=range(3))
    assert more.classes == (0, 1, 2)
    assert "1 class has no rows: 2" in more.notes()[0]


def test_equal_probabilities_go_to_the_label_that_sorts_first():
    p = [[0.4, 0.4, 0.2], [0.2, 0.4, 0.4]]
    assert check_classes_of(["a", "b"], p, classes=["a", "b", "c"]).top.tolist() == [0, 1]
    assert check_classes_of(["a", "b"], p, classes=["c", "b", "a"]).top.tolist() == [1, 2]


def test_the_compiled_loop_finds_the_same_top_label(monkeypatch):
    y, p = some_rows(np.random.default_rng(9), 80, 4, tied=True)
    expected = check_classes_of(y, p)
    monkeypatch.setattr(matrices, "_MANY_ROWS", 0)
    found = check_classes_of(y, p)
    assert expected.largest is None
    assert found.largest is not None
    assert found.top.tolist() == expected.top.tolist() == p.argmax(axis=1).tolist()
    assert found.of_top().y_prob.tolist() == expected.of_top().y_prob.tolist() == p.max(axis=1).tolist()


def _with(row: int, column: int, value: float) -> np.ndarray:
    changed = P.copy()
    changed[row, column] = value
    return changed


BAD: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "sums": (
        Y,
        _with(3, 0, 0.5),
        {},
        r"^y_prob\[3\] adds up to 1\.25 over its 3 classes, not to 1 within 0\.001.*"
        r"multilabel=True",
    ),
    "a value missing": (Y, _with(2, 1, np.nan), {}, r"^y_prob\[2\] is missing in column 1.*drop the row"),
    "a value of a frame missing": (
        Y,
        pd.DataFrame(P, columns=["ash", "elm", "oak"]).astype("Float64").replace(P[4, 2], pd.NA),
        {},
        r"^y_prob\[\d\] is missing in column \d.*drop the row",
    ),
    "an object missing": (
        Y,
        [*P[:3].tolist(), [0.5, 0.5, pd.NA], *P[4:].tolist()],
        {},
        r"^y_prob\[3\] is missing in column 2.*drop the row",
    ),
    "rows of other lengths": (
        Y,
        [*P[:4].tolist(), [0.5, 0.5], *P[5:].tolist()],
        {},
        r"^y_prob\[4\] has 2 values in this row and 3 in row 0: rows differ in length",
    ),
    "an infinity": (Y, _with(2, 1, np.inf), {}, r"^y_prob\[2\] is inf in column 1"),
    "logits": (Y, P * 8 - 4, {}, r"^y_prob\[0\] is -2\.4 in column 0, outside \[0, 1\].*sigmoid"),
    "a column missing": (
        Y,
        P[:, :2] / P[:, :2].sum(1, keepdims=True).clip(0.1),
        {"questions": "classwise"},
        r"^y_prob(\[4\] adds up to 0| has 2 columns and y_true holds 3 labels)",
    ),
    "a column more": (
        Y,
        np.column_stack([P / 2, P[:, :1] / 2 + 0.0, 0.5 - P[:, :1] / 2]),
        {},
        r"^y_prob has 5 columns and y_true holds 3 labels.*fewer than columns.*classes=",
    ),
    "classes too few": (Y, P, {"classes": ["ash", "elm"]}, r"^classes has 2 labels and y_prob has 3 columns"),
    "classes twice": (Y, P, {"classes": ["ash", "elm", "elm"]}, r"^classes\[2\] is 'elm' twice"),
    "a label unknown": (Y, P, {"classes": ["ash", "elm", "fir"]}, r"^y_true\[0\] is 'oak', which is not one of"),
    "a frame of other names": (
        Y,
        pd.DataFrame(P, columns=["p_ash", "p_elm", "p_oak"]),
        {},
        r"^y_true\[2\] is 'ash', which is not one of.*classes=",
    ),
    "lengths": (Y[:5], P, {}, r"^y_true has 5 values and y_prob has 6 rows"),
    "indicators": (np.eye(3)[[0, 1, 2, 0, 1, 2]], P, {}, r"^y_true has shape \(6, 3\).*argmax.*multilabel=True"),
    "labels in a column": (np.reshape(Y, (6, 1)), P, {}, r"^y_true has shape \(6, 1\).*numpy\.ravel\(y_true\)$"),
    "a question unknown": (Y, P, {"questions": "all"}, r"^questions must be one of 'confidence', 'classwise'"),
    "an event of three": (Y, P, {"pos_label": "oak"}, r"^pos_label names one event.*3 classes"),
    "an event of two": ([0, 1], [[0.5, 0.5]] * 2, {"pos_label": 2}, r"^pos_label is 2, which is not a class"),
    "one column": (Y, P[:, :1], {}, r"^y_prob has shape \(6, 1\), .*ravel"),
    "questions of one column": (
        [0, 1],
        [0.5, 0.5],
        {"questions": "classwise"},
        r"^questions was given, but y_prob has",
    ),
    "classes of one column": ([0, 1], [0.5, 0.5], {"classes": [0, 1]}, r"^classes was given, but y_prob has"),
    "labels of one column": ([0, 1], [0.5, 0.5], {"multilabel": True}, r"^multilabel was given, but y_prob has"),
    "a weight": (Y, P, {"sample_weight": [1, 1, 1, 1, 1, -1]}, r"^sample_weight\[5\] is -1"),
    "no rows": ([], np.empty((0, 3)), {}, r"^y_prob is empty"),
    "texts": (Y, P.astype(str), {}, r"^y_prob has shape \(6, 3\) and dtype"),
    "labels of another shape": (
        np.eye(3),
        P,
        {"multilabel": True},
        r"^y_true has shape \(3, 3\) and y_prob has \(6, 3\)",
    ),
    "labels on top": (
        np.eye(3)[[0, 1, 2, 0, 1, 2]],
        P,
        {"multilabel": True, "questions": "top_label"},
        r"^questions='top_label' needs rows of one class each",
    ),
}


@pytest.mark.parametrize("loop", [False, True], ids=["by numpy", "by loop"])
@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named_with_its_place_and_remedy(case, loop, monkeypatch):
    if loop:
        monkeypatch.setattr(matrices, "_MANY_ROWS", 0)
    y, p, options, message = BAD[case]
    functions: tuple[Any, ...] = (cutoff_calibration_error, measure)
    for function in functions:
        with pytest.raises(ValueError, match=message):
            function(y, p, **options)


def test_groups_go_with_one_question():
    by = list("aabbab")
    assert set(certify(Y, P, max_error=0.9, by=by)) == {"a", "b"}
    asked: Any = {"by": by, "questions": "classwise"}
    with pytest.raises(ValueError, match=r"^by was given together with several questions"):
        certify(Y, P, max_error=0.9, **asked)


def test_many_classes():
    rng = np.random.default_rng(4)
    y, p = some_rows(rng, 1500, 1000)
    found = worst_interval(y, p, questions="classwise")
    assert len(found) == 1000
    assert "small errors of single classes say little" in "".join(found.notes)
    assert measure(y, p).rows == 1500
    with pytest.raises(ValueError, match=r"^questions='subsets' needs at most 12 classes, got 1,000"):
        cutoff_calibration_error(y, p, questions="subsets")
    with pytest.raises(ValueError, match=r"^questions='pairs' of 1,000 classes are 499,500 questions"):
        cutoff_calibration_error(y, p, questions="pairs")


def test_labels_of_which_a_row_has_any_number():
    rng = np.random.default_rng(5)
    p = rng.random((200, 3))
    y = rng.random((200, 3)) < p
    found = certify(y, p, max_error=0.2, multilabel=True)
    assert found.kind == "multilabel"
    for place in range(3):
        alone = certify(y[:, place], p[:, place], max_error=0.2)
        assert found.upper[place] == pytest.approx(alone.upper, rel=1e-12)
    assert cutoff_calibration_error(y, p, multilabel=True) == max(
        cutoff_calibration_error(y[:, place], p[:, place]) for place in range(3)
    )
    single = measure(y[:, :1], p[:, :1], multilabel=True)
    assert single[0].cutoff == cutoff_calibration_error(y[:, 0], p[:, 0])
    frame = pd.DataFrame(p, columns=list("xyz"))
    assert measure(pd.DataFrame(y, columns=list("xyz")), frame, multilabel=True).questions == ("x", "y", "z")
    with pytest.raises(ValueError, match=r"^y_true has the columns 'z', 'y', 'x' and y_prob 'x', 'y', 'z'"):
        measure(pd.DataFrame(y, columns=list("zyx")), frame, multilabel=True)


def test_weights_count_as_repetitions():
    y, p = some_rows(np.random.default_rng(6), 40, 3)
    weight = np.random.default_rng(7).integers(0, 4, size=40)
    weight[:3] = 1
    for asked in ASKED:
        found = cutoff_calibration_error(y, p, questions=asked, sample_weight=weight)
        repeated = cutoff_calibration_error(np.repeat(y, weight), np.repeat(p, weight, axis=0), questions=asked)
        assert found == pytest.approx(repeated, abs=1e-12)


def test_nothing_is_copied_but_a_column():
    y, p = some_rows(np.random.default_rng(8), 50, 3)
    rows = check_classes_of(y, p)
    assert rows.y_prob is p
    assert rows.of_class(1).y_prob.base is None
