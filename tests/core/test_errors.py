"""Errors carry facts, are worded in one place, and say the same after a way through pickle."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrant
from calibrant.cli.voices import SHELL, Shell
from calibrant.core.errors import CalibrantError, InputError, UndefinedError
from calibrant.core.voices import PYTHON, Argument, Either, Option, Phrase, joined, speaking

SOURCE = Path(calibrant.__file__).parent
MAGIC: dict[str, Any] = {"method": "magic"}
FILE = Shell({"y_true": "late", "y_prob": "chance", "by": None}, lambda position: f"line {position + 2}")


def error_of(call, *args, **options):
    with pytest.raises(InputError) as caught:
        call(*args, **options)
    return caught.value


def test_an_error_holds_argument_position_value_and_remedy():
    error = error_of(calibrant.measure, [0, 1, 1], [0.2, 0.5, 70.0])
    assert (error.argument, error.position, error.value) == ("y_prob", 2, 70.0)
    assert error.problem == "is 70, outside [0, 1]"
    assert error.remedy.startswith("if these are percentages")
    assert str(error) == f"y_prob[2] is 70, outside [0, 1]; {error.remedy}"
    assert isinstance(error, ValueError)
    assert isinstance(error, CalibrantError)


@pytest.mark.parametrize(
    ("call", "facts"),
    [
        (lambda: calibrant.measure([0, 2], [0.1, 0.2]), ("y_true", 1, 2.0)),
        (lambda: calibrant.measure(["a", "b"], [0.1, 0.2]), ("y_true", 0, "a")),
        (lambda: calibrant.measure(["a", "b"], [0.1, 0.2], pos_label="c"), ("pos_label", None, "c")),
        (lambda: calibrant.measure([0, 1], [0.1, np.nan]), ("y_prob", 1, None)),
        (lambda: calibrant.measure([0, 1], [0.1, 0.2], sample_weight=[1, -1]), ("sample_weight", 1, -1.0)),
        (lambda: calibrant.certify([0, 1], [0.1, 0.2], max_error=3), ("max_error", None, 3)),
        (
            lambda: calibrant.confidence_interval([0, 1], [0.1, 0.2], confidence_level=95),
            ("confidence_level", None, 95),
        ),
        (lambda: calibrant.certify([0, 1], [0.1, 0.2], max_error=0.1, **MAGIC), ("method", None, "magic")),
    ],
)
def test_the_gate_says_what_is_wrong_with_which_argument(call, facts):
    error = error_of(call)
    assert (error.argument, error.position, error.value) == facts


def test_a_shell_hears_of_columns_lines_and_options():
    error = error_of(calibrant.measure, [0, 2], [0.1, 0.2])
    assert error.said(FILE) == (
        "column 'late', line 3, is 2, outside [0, 1]; if these are class labels pass --pos-label with the one that "
        "counts as the event, if they are amounts scale them into [0, 1]"
    )
    assert error.said(PYTHON) == str(error)
    swapped = error_of(calibrant.measure, [0.5, 0.7], [0, 1])
    assert swapped.said(FILE) == (
        "column 'chance' holds only 0 and 1 while column 'late', line 2, is 0.5: the columns look swapped: exchange "
        "--y-true and --y-prob"
    )


def test_a_fit_says_its_own_order():
    with pytest.raises(InputError, match=r"the order is fit\(y_prob, y_true\); if it is meant"):
        calibrant.IsotonicRecalibrator().fit([0, 1, 1], [0.5, 0.7, 0.2])
    with pytest.raises(InputError, match=r"the order is compare_recalibrators\(y_prob, y_true\); if it is meant"):
        calibrant.compare_recalibrators([0, 1, 1], [0.5, 0.7, 0.2])


def test_an_error_keeps_its_facts_in_groups_copies_and_pickles():
    with pytest.raises(UndefinedError) as caught:
        calibrant.measures.calibration_slope_intercept([0, 0], [0.25, 0.5])
    found = caught.value.among(source="t.csv", group="north")
    for error in (found, copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert type(error) is UndefinedError
        assert str(error).startswith("t.csv: by group 'north': every outcome that counts here is 0; the calibration")
        assert error.said(Shell({"by": "ward"})).startswith("t.csv: column 'ward' group 'north': every outcome")
        assert error.group == "north"
        assert error.is_placed
    assert not caught.value.is_placed
    assert repr(caught.value).startswith("UndefinedError('every outcome that counts here is 0")


def test_braces_in_names_are_no_places_for_facts():
    error = InputError("is {odd}", argument="y_prob", column="{p}", source="{t}.csv", remedy="rename {it}")
    assert str(error) == "{t}.csv: y_prob (column '{p}') is {odd}; rename {it}"
    assert str(error.phrase) == str(error)


def test_a_phrase_is_a_string_that_follows_the_voice():
    phrase = Phrase(
        "use {method} with {y}{else_}",
        code="use",
        method=Option("method", "exact"),
        y=Argument("y_true"),
        else_=Either(", or Tally.from_counts"),
    )
    assert phrase == "use method='exact' with y_true, or Tally.from_counts"
    assert phrase.code == "use"
    together = joined(" ", ["First:", phrase])
    for _ in range(2):
        assert str(together) == "First: use method='exact' with y_true, or Tally.from_counts"
        with speaking(SHELL):
            assert f"{phrase}" == "use --method exact with the column of outcomes"
            assert str(together) == "First: use --method exact with the column of outcomes"
            assert phrase == "use method='exact' with y_true, or Tally.from_counts"  # what JSON holds
    again = pickle.loads(pickle.dumps(phrase))
    assert (again, again.said(SHELL), again.code) == (phrase, phrase.said(SHELL), "use")


def test_notes_are_the_same_strings_whoever_reads_them():
    rng = np.random.default_rng(0)
    y_prob = rng.random(50)
    y_true = rng.random(50) < y_prob
    result = calibrant.measure(y_true, y_prob)
    with speaking(SHELL):
        other = calibrant.measure(y_true, y_prob)
        said = str(other)
    assert other == result
    assert other.to_json() == result.to_json()
    assert "n_bins=" in str(result)
    assert "n_bins=" not in said
    assert "or ece_binned, the ECE of the binned forecast" in said


def test_only_errors_with_facts_are_raised():
    """Whatever is refused is an error of ours, so that one that is not surfaces as what it is."""
    rooms = [path for path in SOURCE.rglob("*.py") if path.parent.name != "experiments"]
    raising = [str(path.relative_to(SOURCE)) for path in rooms if "raise ValueError(" in path.read_text("utf-8")]
    assert raising == []
