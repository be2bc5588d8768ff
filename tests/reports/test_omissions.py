"""What cannot be computed on these rows is left out and says why; what is broken surfaces."""

from typing import Any

import numpy as np
import pytest

import calibrant
from calibrant.core.errors import UndefinedError
from calibrant.repairs.maps import PlattRecalibrator

RNG = np.random.default_rng(5)
Y_PROB = RNG.random(200)
Y_TRUE = (RNG.random(200) < Y_PROB).astype(float)


def broken(*_, **__):
    raise ValueError("operands could not be broadcast together")


def undefined(*_, **__):
    raise UndefinedError("these rows do not say")


def test_a_broken_measure_surfaces_and_an_undefined_one_is_a_note(monkeypatch):
    monkeypatch.setattr("calibrant.measures.everything.calibration_slope_intercept", broken)
    with pytest.raises(ValueError, match="broadcast"):
        calibrant.measure(Y_TRUE, Y_PROB)
    monkeypatch.setattr("calibrant.measures.everything.calibration_slope_intercept", undefined)
    monkeypatch.setattr("calibrant.measures.everything.intercept_at_unit_slope", undefined)
    found = calibrant.measure(Y_TRUE, Y_PROB)
    assert found.slope is None
    assert "no calibration slope: these rows do not say" in found.notes


def test_a_broken_section_of_a_report_surfaces_and_an_undefined_one_is_left_out(monkeypatch):
    asked: dict[str, Any] = {"max_error": 0.1, "name": "m"}
    monkeypatch.setattr("calibrant.reports.summary.try_repair", broken)
    with pytest.raises(ValueError, match="broadcast"):
        calibrant.CalibrationReport.from_predictions(Y_TRUE, Y_PROB, **asked)
    monkeypatch.setattr("calibrant.reports.summary.try_repair", undefined)
    summary = calibrant.CalibrationReport.from_predictions(Y_TRUE, Y_PROB, **asked).summary
    assert [(each.section, each.reason) for each in summary.models[0].omissions] == [
        ("repair", "these rows do not say")
    ]


def test_a_broken_fit_surfaces_and_one_that_has_no_answer_is_passed_over(monkeypatch):
    monkeypatch.setattr(PlattRecalibrator, "_fit_map", broken)
    with pytest.raises(ValueError, match="broadcast"):
        calibrant.GuardedRecalibrator().fit(Y_PROB, Y_TRUE)
    with pytest.raises(ValueError, match="broadcast"):
        calibrant.compare_recalibrators(Y_PROB, Y_TRUE, candidates={"platt": PlattRecalibrator()})
    monkeypatch.setattr(PlattRecalibrator, "_fit_map", undefined)
    guarded = calibrant.GuardedRecalibrator().fit(Y_PROB, Y_TRUE)
    assert guarded.ladder_[0].reason == "it could not be fitted: these rows do not say"
    compared = calibrant.compare_recalibrators(Y_PROB, Y_TRUE, candidates={"platt": PlattRecalibrator()})
    assert "platt could not be fitted: these rows do not say" in compared.notes
