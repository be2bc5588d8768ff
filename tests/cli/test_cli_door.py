"""Rows of a file come through the gate once for each model, whatever is asked of them."""

from typing import Any

import numpy as np
import pytest
from cli_cases import call

import calibrant
from calibrant.rows import intake
from calibrant.rows.checks import Observations, check_observations
from calibrant.rows.groups import by_group
from calibrant.rows.refinement import some_table


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(3)
    p = rng.random(120).round(2)
    y = (rng.random(120) < p).astype(int)
    rows = (f"{a},{b},{(b + 1) / 2},{c}" for a, b, c in zip(y, p, rng.integers(0, 2, 120), strict=True))
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["y,p,q,g", *rows]))
    return path


@pytest.fixture
def counted(monkeypatch):
    """Count the calls of the gate, wherever they come from."""
    calls = []

    def gate(*args, **options):
        calls.append(args)
        return check_observations(*args, **options)

    for module in ("intake", "tally", "cells"):
        monkeypatch.setattr(f"calibrant.rows.{module}.check_observations", gate)
    return calls


COMMANDS = {
    "certify": (["certify", "--max-error", "0.2"], 1),
    "certify, groups": (["certify", "--max-error", "0.2", "--by", "g"], 1),
    "measure": (["measure"], 1),
    "measure, groups": (["measure", "--by", "g"], 1),
    "report": (["report", "--format", "json"], 1),
    "report, groups": (["report", "--format", "json", "--by", "g"], 1),
    "decide": (["decide", "--threshold", "0.2"], 1),
    "decide, groups": (["decide", "--threshold", "0.2", "--by", "g"], 1),
    "test": (["test"], 1),
    "test, groups": (["test", "--by", "g"], 1),
    "spiegelhalter": (["test", "--test", "spiegelhalter"], 1),
    "recalibrate fit": (["recalibrate", "fit"], 1),
    "recalibrate choose": (["recalibrate", "choose"], 1),
    "report, models": (["report", "--format", "json", "--y-prob", "q"], 2),
    "compare": (["compare", "--y-prob", "q"], 2),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_rows_are_checked_once_for_each_model(name, table, counted, tmp_path):
    words, models = COMMANDS[name]
    out = ["--out", str(tmp_path / "m.json")] if name == "recalibrate fit" else []
    result = call(*words, str(table), "--y-true", "y", "--y-prob", "p", *out)
    assert result.exit_code in (0, 1, 3), result.output
    assert len(counted) == models


ROWS = check_observations([0, 1, 1, 0], [0.2, 0.7, 0.4, 0.4], sample_weight=[1, 2, 1, 1])


def test_checked_rows_are_taken_everywhere_in_place_of_arrays():
    arrays: dict[str, Any] = {"y_true": ROWS.y_true, "y_prob": ROWS.y_prob, "sample_weight": ROWS.sample_weight}
    assert calibrant.measure(ROWS) == calibrant.measure(**arrays)
    assert calibrant.certify(ROWS, max_error=0.1) == calibrant.certify(**arrays, max_error=0.1)
    groups = ["a", "b", "a", "b"]
    assert calibrant.certify(ROWS, max_error=0.1, by=groups) == calibrant.certify(**arrays, max_error=0.1, by=groups)
    fitted = calibrant.IsotonicRecalibrator().fit(ROWS)
    arrays_fitted = calibrant.IsotonicRecalibrator().fit(ROWS.y_prob, ROWS.y_true, sample_weight=ROWS.sample_weight)
    assert fitted.to_json() == arrays_fitted.to_json()


def test_nothing_is_passed_beside_checked_rows():
    with pytest.raises(calibrant.InputError, match="y_prob was given together with a set of checked rows"):
        calibrant.measure(ROWS, ROWS.y_prob)
    with pytest.raises(calibrant.InputError, match="y_true was given together with a set of checked rows"):
        calibrant.IsotonicRecalibrator().fit(ROWS, ROWS.y_true)


def test_a_group_of_checked_rows_is_what_it_would_be_alone():
    rows = intake.as_observations([0.5, 1, 0], [0.2, 0.7, 0.4])
    assert not rows.binary_outcomes
    groups = by_group(intake.in_groups(rows, by=["a", "b", "b"]), lambda each: some_table(each).binary_outcomes)
    assert groups == (False, True)
    weighted = Observations(rows.y_true, rows.y_prob, np.array([1.0, 0.0, 0.0]), False)
    with pytest.raises(calibrant.InputError, match=r"by group 'b': sample_weight is zero everywhere"):
        intake.in_groups(weighted, by=["a", "b", "b"])
