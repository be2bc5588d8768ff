"""Values of R for whatever a validation study reports: limits, tests, curves, decisions, censored outcomes.

`make reference` computes R's side anew; what each value is stands beside it in the JSON files.
"""

import numpy as np
import pytest
from reference_values import columns, of_r
from scipy.stats import norm, t

import calibrant
from calibrant import measures

R = of_r("calibration_500")
ROWS = columns("calibration_500")
Y, P = ROWS["y"], ROWS["p"]
WEIGHT = 1.0 + np.arange(500) % 3
REPEATED = np.repeat(np.arange(500), WEIGHT.astype(int))
CLUSTER = np.arange(1, 501) % 50
ROUNDED = np.round(P, 2)


def limits(found):
    return [found.lower, found.upper]


# --- Slope and intercepts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["slope", "intercept", "intercept_at_unit_slope"])
@pytest.mark.parametrize("interval", ["wald", "profile"])
def test_limits_of_slope_and_intercepts(name, interval):
    found = measures.calibration_slope_intercept(Y, P, confidence_level=0.95, interval=interval)
    ends = [getattr(found, f"{name}_lower"), getattr(found, f"{name}_upper")]
    assert ends == pytest.approx(R[f"{name}_{interval}"], abs=5e-9)
    if interval == "profile":  # R's own are read off a spline through the profile
        assert ends == pytest.approx(R[f"{name}_profile_by_spline"], abs=4e-6)


def test_weights_are_repetitions_for_the_profile():
    found = measures.calibration_slope_intercept(Y[REPEATED], P[REPEATED], confidence_level=0.95)
    assert [found.slope_lower, found.slope_upper] == pytest.approx(R["weighted_slope_profile"], abs=1e-9)


@pytest.mark.parametrize("name", ["slope", "intercept", "intercept_at_unit_slope"])
def test_clustered_limits_of_slope_and_intercepts(name):
    found = measures.calibration_slope_intercept(Y, P, confidence_level=0.95, cluster=CLUSTER)
    width = getattr(found, f"{name}_upper") - getattr(found, f"{name}_lower")
    error = width / 2 / t.ppf(0.975, 49)
    assert error == pytest.approx(R[f"{name}_standard_error_clustered"], abs=1e-9)
    if name == "slope":  # robcov of rms leaves out the factor for the number of clusters
        assert error * (49 / 50) ** 0.5 == pytest.approx(R["slope_standard_error_rms_robcov"], abs=1e-9)


def test_slope_without_forecasts_of_0_and_1():
    found = measures.calibration_slope_intercept(Y, ROUNDED)
    assert found.left_out == R["rounded_to_0_or_1"]
    assert found.slope == pytest.approx(R["rounded_slope_without_0_and_1"], abs=1e-11)
    at_one = R["rounded_intercept_at_unit_slope_without_0_and_1"]
    assert found.intercept_at_unit_slope == pytest.approx(at_one, abs=1e-11)


@pytest.mark.parametrize(("name", "key"), [("weak", "weak_calibration"), ("in_the_large",) * 2, ("slope",) * 2])
def test_likelihood_ratio_tests(name, key):
    found = getattr(measures.likelihood_ratio_tests(Y, P), name)
    assert found.statistic == pytest.approx(R[f"{key}_chi2"], abs=1e-10)
    assert found.pvalue == pytest.approx(R[f"{key}_p"], rel=1e-9)


# --- Ratio, discrimination, scores ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("interval", "key"), [("poisson", "poisson"), ("exact", "binomial")])
def test_limits_of_observed_over_expected(interval, key):
    found = measures.observed_expected_ratio(Y, P, confidence_level=0.95, interval=interval)
    assert limits(found) == pytest.approx(R[f"observed_over_expected_{key}"], abs=1e-11)


@pytest.mark.parametrize("interval", ["delong", "logit"])
def test_auroc(interval):
    found = measures.auroc(Y, P, confidence_level=0.95, interval=interval)
    assert found.estimate == pytest.approx(R["auroc"], abs=1e-13)
    key = {"delong": "auroc_delong", "logit": "auroc_logit_delong"}[interval]
    assert limits(found) == pytest.approx(R[key], abs=1e-11)


def test_auroc_of_equal_forecasts():
    found = measures.auroc(Y, ROUNDED, confidence_level=0.95)
    assert [found.lower, found.estimate, found.upper] == pytest.approx(R["rounded_auroc_delong"], abs=1e-11)


def test_auroc_of_weights_and_repetitions():
    assert measures.auroc(Y, P, sample_weight=WEIGHT) == pytest.approx(R["weighted_auroc"], abs=1e-13)
    found = measures.auroc(Y[REPEATED], P[REPEATED], confidence_level=0.95)
    assert limits(found) == pytest.approx(R["repeated_auroc_delong"], abs=1e-11)


def test_auroc_of_clusters():
    found = measures.auroc(Y, P, confidence_level=0.95, cluster=CLUSTER)
    error = (found.upper - found.lower) / 2 / t.ppf(0.975, 49)
    assert error == pytest.approx(R["auroc_standard_error_obuchowski"], abs=1e-12)


def test_scores():
    assert measures.brier_score(Y, P) == pytest.approx(R["brier"], rel=1e-13)
    assert measures.brier_score(Y, P, sample_weight=WEIGHT) == pytest.approx(R["weighted_brier"], rel=1e-13)
    assert measures.scaled_brier_score(Y, P) == pytest.approx(R["brier_scaled"], rel=1e-12)
    plain = measures.brier_score(Y, P, confidence_level=0.95)
    assert limits(plain) == pytest.approx(R["brier_wald"], abs=1e-11)
    scaled = measures.scaled_brier_score(Y, P, confidence_level=0.95)
    assert limits(scaled) == pytest.approx(R["brier_scaled_delta"], abs=1e-11)


# --- Curves -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("smoother", "key"),
    [
        ("isotonic", "isotonic_ici_e50_e90_emax"),
        ("loess", "loess_ici_e50_e90_emax"),
        ("lowess", "lowess_of_logit_ici_e50_e90_emax"),
        ("splines", "rcs_5_of_logit_ici_e50_e90_emax"),
    ],
)
def test_distances_of_curves(smoother, key):
    found = measures.integrated_calibration_index(Y, P, smoother=smoother)
    assert [found.ici, found.e50, found.e90, found.emax] == pytest.approx(R[key], abs=1e-10)


@pytest.mark.parametrize(("smoother", "key"), [("loess", "eci"), ("splines", "eci_rcs_5_of_logit")])
def test_estimated_calibration_index(smoother, key):
    assert measures.integrated_calibration_index(Y, P, smoother=smoother).eci == pytest.approx(R[key], abs=1e-9)


def test_loess_of_equal_forecasts():
    found = measures.integrated_calibration_index(Y, ROUNDED, smoother="loess")
    expected = R["rounded_loess_ici_e50_e90_emax"]
    assert [found.ici, found.e50, found.e90, found.emax] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("knots", [3, 4, 5])
def test_splines_of_several_knots(knots):
    found = measures.integrated_calibration_index(Y, P, smoother="splines", knots=knots)
    expected = R[f"rcs_{knots}_of_logit_ici_e50_e90_emax"]
    assert [found.ici, found.e50, found.e90, found.emax] == pytest.approx(expected, abs=1e-9)


# --- Decisions --------------------------------------------------------------------------------------------------------


def test_decision_curve_with_limits():
    found = calibrant.net_benefit(Y, P, thresholds=R["thresholds"], confidence_level=0.95)
    np.testing.assert_allclose(found.net_benefit, R["net_benefit"], rtol=0, atol=1e-14)
    assert found.standardized == pytest.approx(np.array(R["standardised_net_benefit"]), abs=1e-13)
    avoided = 100.0 * np.array(R["interventions_avoided"])
    assert found.interventions_avoided == pytest.approx(avoided, abs=1e-10)
    error = (np.asarray(found.net_benefit_upper) - found.net_benefit_lower) / 2 / norm.ppf(0.975)
    np.testing.assert_allclose(error, R["net_benefit_standard_error"], rtol=1e-9)


def test_decision_curve_at_another_prevalence():
    found = calibrant.net_benefit(Y, P, thresholds=R["thresholds"], prevalence=0.1)
    np.testing.assert_allclose(found.net_benefit, R["net_benefit_at_prevalence_0.1"], rtol=0, atol=1e-13)
    np.testing.assert_allclose(found.treat_all, R["net_benefit_all_at_prevalence_0.1"], rtol=0, atol=1e-13)


# --- Everything at once -----------------------------------------------------------------------------------------------


def test_a_validation_study_has_the_values_of_r():
    found = calibrant.validate(Y, P, n_resamples=20)
    assert found.slope == pytest.approx(R["slope"], abs=1e-10)
    assert [found.slope_lower, found.slope_upper] == pytest.approx(R["slope_profile"], abs=5e-9)
    at_one = [found.intercept_at_unit_slope_lower, found.intercept_at_unit_slope_upper]
    assert at_one == pytest.approx(R["intercept_at_unit_slope_profile"], abs=5e-9)
    assert [found.auroc_lower, found.auroc_upper] == pytest.approx(R["auroc_delong"], abs=1e-10)
    curve = [found.ici, found.e50, found.e90, found.emax]
    assert curve == pytest.approx(R["loess_ici_e50_e90_emax"], abs=1e-10)
    assert [found.brier, found.brier_scaled, found.eci] == pytest.approx(
        [R["brier"], R["brier_scaled"], R["eci"]], abs=1e-10
    )


# --- Censored outcomes ------------------------------------------------------------------------------------------------

CENSORED, PATIENTS = of_r("gbsg_5_years"), columns("gbsg_5_years")
COMPETING, GAMMOPATHIES = of_r("mgus2_10_years"), columns("mgus2_10_years")


@pytest.mark.parametrize("interval", ["log", "log-log", "plain"])
def test_kaplan_meier_risk(interval):
    rows = calibrant.horizon(PATIENTS["time"], PATIENTS["event"], PATIENTS["p"], at=5, interval=interval)
    assert rows.risk == pytest.approx(CENSORED["risk"], abs=1e-13)
    key = f"risk_{interval.replace('-', '_')}"
    assert [rows.risk_lower, rows.risk_upper] == pytest.approx(CENSORED[key], abs=1e-12)


@pytest.mark.parametrize("interval", ["log", "log-log", "plain"])
def test_aalen_johansen_risk(interval):
    months, event, p = (GAMMOPATHIES[name] for name in ("months", "event", "p"))
    rows = calibrant.horizon(months, event, p, at=120, competing=2, interval=interval)
    assert rows.risk == pytest.approx(COMPETING["risk"], abs=1e-13)
    key = f"risk_{interval.replace('-', '_')}"
    assert [rows.risk_lower, rows.risk_upper] == pytest.approx(COMPETING[key], abs=1e-12)


@pytest.fixture(scope="module")
def patients():
    return calibrant.horizon(PATIENTS["time"], PATIENTS["event"], PATIENTS["p"], at=5)


def test_weights_of_censored_rows(patients):
    assert patients.sample_weight[:20] == pytest.approx(CENSORED["weights_of_first_20_rows"], rel=1e-12)
    assert patients.sample_weight.sum() == pytest.approx(CENSORED["sum_of_weights"], rel=1e-12)


def test_weights_where_events_and_censorings_tie():
    time, event, p = (CENSORED[f"tiny_{name}"] for name in ("time", "event", "p"))
    # A row censored at the horizon itself is known to be free of the event there; riskRegression drops it unless it is
    # moved just beyond, and would drop everybody where all follow-up ends at the horizon.
    rows = calibrant.horizon(time, event, p, at=5)
    assert rows.sample_weight == pytest.approx(CENSORED["moved_weights"], rel=1e-13)
    assert rows.risk == pytest.approx(CENSORED["tiny_risk"], rel=1e-13)
    assert measures.brier_score(rows) == pytest.approx(CENSORED["moved_brier_riskregression"], rel=1e-13)
    assert measures.auroc(rows) == pytest.approx(CENSORED["moved_auroc_riskregression"], rel=1e-13)


def test_measures_of_censored_rows(patients):
    assert measures.brier_score(patients) == pytest.approx(CENSORED["brier_riskregression"], rel=1e-12)
    assert measures.scaled_brier_score(patients) == pytest.approx(CENSORED["brier_scaled_riskregression"], rel=1e-11)
    assert measures.auroc(patients) == pytest.approx(CENSORED["auroc_riskregression"], rel=1e-12)
    fit = measures.calibration_slope_intercept(patients)
    assert [fit.slope, fit.intercept] == pytest.approx([CENSORED["ipcw_slope"], CENSORED["ipcw_intercept"]], abs=1e-10)
    assert fit.intercept_at_unit_slope == pytest.approx(CENSORED["ipcw_intercept_at_unit_slope"], abs=1e-10)


def test_ratio_of_censored_rows(patients):
    found = measures.observed_expected_ratio(patients, confidence_level=0.95)
    assert found.estimate == pytest.approx(CENSORED["observed_over_expected"], rel=1e-12)
    assert limits(found) == pytest.approx(CENSORED["observed_over_expected_log_log"], rel=1e-11)


def test_net_benefit_of_censored_rows(patients):
    found = calibrant.net_benefit(patients, thresholds=CENSORED["thresholds"])
    np.testing.assert_allclose(found.net_benefit, CENSORED["net_benefit_ipcw"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.treat_all, CENSORED["net_benefit_all_dcurves"], rtol=0, atol=1e-12)


def test_measures_of_competing_risks():
    months, event, p = (GAMMOPATHIES[name] for name in ("months", "event", "p"))
    rows = calibrant.horizon(months, event, p, at=120, competing=2)
    assert np.asarray(rows.sample_weight)[:20] == pytest.approx(COMPETING["weights_of_first_20_rows"], rel=1e-12)
    assert measures.observed_expected_ratio(rows) == pytest.approx(COMPETING["observed_over_expected"], rel=1e-11)
    assert measures.brier_score(rows) == pytest.approx(COMPETING["brier_riskregression"], rel=1e-12)
    assert measures.auroc(rows) == pytest.approx(COMPETING["auroc_riskregression"], rel=1e-12)
    found = calibrant.net_benefit(rows, thresholds=COMPETING["thresholds"])
    np.testing.assert_allclose(found.net_benefit, COMPETING["net_benefit_ipcw"], rtol=0, atol=1e-12)


def test_the_linear_predictor_is_that_of_the_risk():
    # A Cox model's risk is 1 - S0^exp(lp): complementary log-log of p minus lp is the same for all patients.
    constant = np.log(-np.log1p(-PATIENTS["p"])) - PATIENTS["linear_predictor"]
    assert np.ptp(constant) < 1e-9
