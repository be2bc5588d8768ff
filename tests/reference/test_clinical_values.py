"""Values of R: rms, pROC, MASS, sandwich, survival, riskRegression; `make reference` computes them anew.

CalibrationCurves, pmcalibration and dcurves are not among Debian's packages. What the first two print (R 4.2.2,
CalibrationCurves 3.1, pmcalibration 0.2) is written here, beside the value of base R that says what they compute; net
benefit is computed by the formula of the third.
"""

import numpy as np
import pytest
from reference_values import columns, of_r

import calibrant
from calibrant import certificates, decisions, measures

R = of_r("calibration_500")
ROWS = columns("calibration_500")
Y, P = ROWS["y"], ROWS["p"]
WEIGHT = 1.0 + np.arange(500) % 3


@pytest.mark.parametrize(
    ("printed", "key", "position", "digits"),
    [
        (0.2240468049157, "intercept_at_unit_slope", None, 12),
        (0.00339203, "intercept_at_unit_slope_wald", 0, 8),
        (0.44470158, "intercept_at_unit_slope_wald", 1, 8),
        (0.00373972, "intercept_at_unit_slope_profile_by_spline", 0, 8),
        (0.44520259, "intercept_at_unit_slope_profile_by_spline", 1, 8),
        (0.8227829704522, "slope_lrm", None, 12),
        (0.665824, "slope_wald", 0, 6),
        (0.979742, "slope_wald", 1, 6),
        (0.672243692, "slope_profile_by_spline_default_control", 0, 9),
        (0.986714275, "slope_profile_by_spline_default_control", 1, 9),
        (8.431951358, "weak_calibration_chi2", None, 9),
        (3.973137643, "in_the_large_chi2", None, 9),
        (4.458813715, "slope_chi2", None, 9),
        (0.8142834138486, "auroc_of_lrm_fit", None, 12),
        (0.7772551, "auroc_delong", 0, 7),
        (0.8512796, "auroc_delong", 1, 7),
        (0.1770333947256, "brier", None, 12),
        (0.2873051742127, "brier_scaled", None, 12),
        (0.0474744781725, "loess_ici_e50_e90_emax", 0, 12),
        (0.0502051670290, "loess_ici_e50_e90_emax", 1, 12),
        (0.0904702443122, "loess_ici_e50_e90_emax", 2, 12),
        (0.0965983039051, "loess_ici_e50_e90_emax", 3, 12),
        (0.0534819701, "lowess_of_logit_ici_e50_e90_emax", 0, 10),
        (0.0491585538784, "rcs_5_of_logit_ici_e50_e90_emax", 0, 12),
        (0.0971054480794, "rcs_5_of_logit_ici_e50_e90_emax", 3, 12),
        (0.3206405560, "eci", None, 10),
    ],
)
def test_what_clinical_packages_print_is_what_base_r_computes(printed, key, position, digits):
    value = R[key] if position is None else R[key][position]
    assert value == pytest.approx(printed, abs=0.51 * 10.0**-digits)


@pytest.mark.parametrize(
    ("printed", "key", "position", "digits"),
    [
        (1.04, "observed_over_expected", None, 2),
        (0.93, "observed_over_expected_calibrationcurves", 0, 2),
        (1.17, "observed_over_expected_calibrationcurves", 1, 2),
        (1.07, "cox_slope", None, 2),
        (0.82, "cox_slope_wald", 0, 2),
        (1.32, "cox_slope_wald", 1, 2),
        (0.0272, "cox_rcs_3_ici_e50_e90_emax", 0, 4),
        (0.0297, "cox_rcs_3_ici_e50_e90_emax", 1, 4),
        (0.0610, "cox_rcs_3_ici_e50_e90_emax", 2, 4),
        (0.0691, "cox_rcs_3_ici_e50_e90_emax", 3, 4),
    ],
)
def test_forecasts_for_the_german_patients_are_those_of_calibrationcurves(printed, key, position, digits):
    # The vignette of valProbSurvival(): a Cox model of the patients of Rotterdam, at five years.
    censored = of_r("gbsg_5_years")
    value = censored[key] if position is None else censored[key][position]
    assert value == pytest.approx(printed, abs=0.51 * 10.0**-digits)


def test_the_largest_difference_to_splined_profile_limits_is_known():
    # confint() of MASS joins five points on either side by a spline; the roots of the likelihood itself lie beside it.
    for name in ("slope", "intercept", "intercept_at_unit_slope"):
        apart = np.abs(np.subtract(R[f"{name}_profile"], R[f"{name}_profile_by_spline"]))
        assert 1e-7 < apart.max() < 4e-6


def test_slope_and_intercepts():
    found = measures.calibration_slope_intercept(Y, P)
    assert found.slope == pytest.approx(R["slope"], abs=1e-11)
    assert found.intercept == pytest.approx(R["intercept"], abs=1e-11)
    assert found.intercept_at_unit_slope == pytest.approx(R["intercept_at_unit_slope"], abs=1e-11)


def test_weighted_slope_and_intercepts():
    found = measures.calibration_slope_intercept(Y, P, sample_weight=WEIGHT)
    assert found.slope == pytest.approx(R["weighted_slope"], abs=1e-11)
    assert found.slope == pytest.approx(R["repeated_slope"], abs=1e-11)
    assert found.intercept == pytest.approx(R["weighted_intercept"], abs=1e-11)
    assert found.intercept_at_unit_slope == pytest.approx(R["weighted_intercept_at_unit_slope"], abs=1e-11)


def test_observed_over_expected():
    assert measures.observed_expected_ratio(Y, P) == pytest.approx(R["observed_over_expected"], rel=1e-13)
    weighted = measures.observed_expected_ratio(Y, P, sample_weight=WEIGHT)
    assert weighted == pytest.approx(R["weighted_observed_over_expected"], rel=1e-13)


def test_isotonic_index():
    found = measures.integrated_calibration_index(Y, P, smoother="isotonic")
    assert found.ici == pytest.approx(R["isotonic_ici_e50_e90_emax"][0], rel=1e-12)


def test_brier_score_and_its_decomposition():
    found = decisions.score_decomposition(Y, P)
    assert found.score == pytest.approx(R["brier"], rel=1e-13)
    assert 1.0 - found.score / found.uncertainty == pytest.approx(R["brier_scaled"], rel=1e-12)


def test_net_benefit():
    found = calibrant.net_benefit(Y, P, threshold=R["thresholds"])
    np.testing.assert_allclose(found.net_benefit, R["net_benefit"], rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.treat_all, R["net_benefit_all"], rtol=0, atol=1e-14)
    weighted = calibrant.net_benefit(Y, P, threshold=R["thresholds"], sample_weight=WEIGHT)
    np.testing.assert_allclose(weighted.net_benefit, R["weighted_net_benefit"], rtol=0, atol=1e-14)


def test_spiegelhalter():
    found = certificates.spiegelhalter_test(Y, P)
    assert found.statistic == pytest.approx(R["spiegelhalter_z"], rel=1e-12)
    assert found.pvalue == pytest.approx(R["spiegelhalter_p"], rel=1e-10)
