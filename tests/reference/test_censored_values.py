"""Values of R for censored outcomes: survival, riskRegression, CalibrationCurves and dcurves; see reference/r."""

from typing import Any

import numpy as np
import pytest
from reference_values import columns, of_r

import calibrant
from calibrant import measures

horizon: Any = calibrant.horizon  # whose weights may be None, which they are not here

GBSG, MGUS = of_r("gbsg_5_years"), of_r("mgus2_10_years")


def gbsg(**options):
    data = columns("gbsg_5_years")
    return horizon(data["time"], data["event"], data["p"], at=5.0, **options)


def mgus(**options):
    data = columns("mgus2_10_years")
    return horizon(data["months"], data["event"], data["p"], at=120.0, competing=2, **options)


@pytest.mark.parametrize(("rows", "values"), [(gbsg, GBSG), (mgus, MGUS)], ids=["gbsg", "mgus2"])
def test_risks_and_weights(rows, values):
    # survfit(): Greenwood's error, and that of the infinitesimal jackknife with competing risks.
    found = rows()
    assert found.risk == pytest.approx(values["risk"], abs=1e-14)
    assert found.outcome.standard_error == pytest.approx(values["risk_standard_error"], abs=1e-14)
    for interval, key in (("log-log", "risk_log_log"), ("log", "risk_log"), ("plain", "risk_plain")):
        limits = rows(interval=interval)
        assert (limits.risk_lower, limits.risk_upper) == pytest.approx(values[key], abs=1e-13)
    assert found.sample_weight[:20].tolist() == pytest.approx(values["weights_of_first_20_rows"], rel=1e-13)
    assert found.sample_weight.sum() == pytest.approx(values["sum_of_weights"], rel=1e-13)


def test_counts():
    found, other = gbsg().outcome, mgus().outcome
    assert (found.events, found.censored) == (GBSG["events_by_5"], GBSG["censored_before_5"])
    counts = (other.events, other.competing, other.censored)
    assert counts == (MGUS["progressions_by_120"], MGUS["deaths_by_120"], MGUS["censored_before_120"])


@pytest.mark.parametrize(("rows", "values"), [(gbsg, GBSG), (mgus, MGUS)], ids=["gbsg", "mgus2"])
def test_scores_of_risk_regression(rows, values):
    found = rows()
    assert measures.brier_score(found) == pytest.approx(values["brier_riskregression"], abs=1e-14)
    assert measures.scaled_brier_score(found) == pytest.approx(values["brier_scaled_riskregression"], abs=1e-13)
    assert measures.auroc(found) == pytest.approx(values["auroc_riskregression"], abs=1e-13)
    # Its limits leave out terms of order 1/n: they agree to three digits.
    for of_rows, key in ((measures.brier_score, "brier"), (measures.auroc, "auroc")):
        limits = of_rows(found, confidence_level=0.95)
        assert (limits.lower, limits.upper) == pytest.approx(values[f"{key}_riskregression_interval"], abs=5e-4)


def test_weighted_logistic_slope():
    found = measures.calibration_slope_intercept(gbsg())
    assert found.slope == pytest.approx(GBSG["ipcw_slope"], abs=1e-11)
    assert found.intercept == pytest.approx(GBSG["ipcw_intercept"], abs=1e-11)
    assert found.intercept_at_unit_slope == pytest.approx(GBSG["ipcw_intercept_at_unit_slope"], abs=1e-11)


def test_slope_of_hazards():
    # coxph() ends where steps change the likelihood by 1e-9.
    found = measures.cox_slope(gbsg(), confidence_level=0.95)
    assert found.estimate == pytest.approx(GBSG["cox_slope"], abs=1e-8)
    assert (found.lower, found.upper) == pytest.approx(GBSG["cox_slope_wald"], abs=1e-8)


def test_observed_over_expected():
    found = measures.observed_expected_ratio(gbsg(), confidence_level=0.95)
    assert found.estimate == pytest.approx(GBSG["observed_over_expected"], abs=1e-14)
    assert (found.lower, found.upper) == pytest.approx(GBSG["observed_over_expected_log_log"], abs=1e-13)
    printed = measures.observed_expected_ratio(gbsg(), confidence_level=0.95, interval="poisson")
    limits = GBSG["observed_over_expected_calibrationcurves"]
    assert (printed.lower, printed.upper) == pytest.approx(limits, abs=1e-13)
    assert measures.observed_expected_ratio(mgus()) == pytest.approx(MGUS["observed_over_expected"], abs=1e-13)
    # What weights alone would give takes forecasts of known outcomes only.
    weighted = measures.observed_expected_ratio(gbsg().fixed())
    assert weighted == pytest.approx(GBSG["ipcw_observed_over_expected"], abs=1e-13)


@pytest.mark.parametrize(("rows", "values"), [(gbsg, GBSG), (mgus, MGUS)], ids=["gbsg", "mgus2"])
def test_net_benefit(rows, values):
    found = calibrant.net_benefit(rows(), threshold=values["thresholds"])
    np.testing.assert_allclose(found.net_benefit, values["net_benefit_ipcw"], rtol=0, atol=1e-13)
    # dcurves estimates the risk anew among those above each threshold: another consistent estimate of the same.
    apart = np.abs(found.net_benefit - values["net_benefit_dcurves"])
    assert 1e-6 < apart.max() < 0.013


def test_treating_all_is_that_of_dcurves():
    found = calibrant.net_benefit(gbsg(), threshold=GBSG["thresholds"])
    np.testing.assert_allclose(found.treat_all, GBSG["net_benefit_all_dcurves"], rtol=0, atol=1e-13)


def test_ties_of_events_and_censorings():
    time, event, forecast = (np.array(GBSG[f"tiny_{name}"], dtype=float) for name in ("time", "event", "p"))
    found = horizon(time, event, forecast, at=5.0)
    assert found.risk == pytest.approx(GBSG["tiny_risk"], abs=1e-14)
    # Here the row that was censored at the horizon itself is known to be free of the event; riskRegression drops it,
    # and so do we if asked for the risk a moment later.
    assert found.sample_weight[8] > 0.0
    dropped = horizon(time, event, forecast, at=5.0 + 1e-9)
    assert dropped.sample_weight.tolist() == pytest.approx(GBSG["tiny_weights"], rel=1e-13)
    assert measures.brier_score(dropped) == pytest.approx(GBSG["tiny_brier_riskregression"], abs=1e-14)
    assert measures.auroc(dropped) == pytest.approx(GBSG["tiny_auroc_riskregression"], abs=1e-14)
