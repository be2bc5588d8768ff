"""Slope, intercepts, O/E, AUROC and Brier scores with their limits, beside what R gives for the same 500 rows.

calibration_500.csv holds outcomes y and forecasts p that were drawn for such comparisons. The values are those of R
4.2.2 (rms 6.5, pROC 1.18, CalibrationCurves 3.1, pmcalibration 0.2); the commands stand beside them, with

    d <- read.csv("calibration_500.csv"); y <- d$y; p <- d$p; l <- qlogis(p); n <- length(y)
    cluster <- seq_len(n) %% 50
    fit <- glm(y ~ l, family = binomial); held <- glm(y ~ offset(l), family = binomial)
"""

from pathlib import Path

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize_scalar
from scipy.stats import chi2, norm
from scipy.stats import t as student

from calibrant import measures

Y, P = np.loadtxt(Path(__file__).with_name("calibration_500.csv"), delimiter=",", skiprows=1, unpack=True)
CLUSTER = np.arange(1, 501) % 50
WEIGHT = 1.0 + np.arange(500) % 3
LOGIT = np.log(P) - np.log1p(-P)


def slope(interval="profile", **options):
    return measures.calibration_slope_intercept(Y, P, confidence_level=0.95, interval=interval, **options)


def ends(found, name=""):
    return getattr(found, f"{name}lower"), getattr(found, f"{name}upper")


def to_eight_digits(*values):
    return pytest.approx(values, abs=5e-9)


def test_slope_and_intercepts():
    found = slope()
    assert found.slope == pytest.approx(0.8227829704522, abs=1e-10)  # coef(rms::lrm(y ~ l)), CalibrationCurves
    assert found.intercept_at_unit_slope == pytest.approx(0.2240468049157, abs=1e-12)  # coef(held)
    assert found.intercept == pytest.approx(0.20751823256905, abs=1e-10)  # coef(fit)


def test_wald_limits():
    found = slope("wald")
    assert ends(found, "intercept_at_unit_slope_") == to_eight_digits(0.00339203168, 0.44470157815)  # confint.default
    assert ends(found, "slope_") == to_eight_digits(0.66582403887, 0.97974190204)  # confint.default(rms::lrm(y ~ l))
    assert ends(found, "intercept_") == to_eight_digits(-0.00268665878, 0.41772312392)  # confint.default(fit)


def test_profile_limits_are_the_roots_of_the_likelihood():
    # uniroot(function(b) deviance(glm(y ~ offset(b * l), family = binomial)) - deviance(fit) - qchisq(0.95, 1), ...)
    found = slope()
    assert ends(found, "slope_") == to_eight_digits(0.67224096685955903, 0.98671229083336187)
    assert ends(found, "intercept_") == to_eight_digits(-0.001927975113017791, 0.41908434777322157)
    assert ends(found, "intercept_at_unit_slope_") == to_eight_digits(0.003739405258582372, 0.44520157728935794)


def cost(intercept, slope):
    linear = intercept + slope * LOGIT
    return 2 * float((np.logaddexp(0, linear) - Y * linear).sum())


def spline_of_r(x, y):
    """spline(x, y) of R: at either end the third derivative is that of the cubic through the four last points."""
    found = [CubicSpline(x, y * one, bc_type=((1, low), (1, high))) for one, low, high in np.eye(3)]
    ends = (slice(4), x[0] + 1e-12), (slice(-4, None), x[-1] - 1e-12)
    wanted = [6 * np.polyfit(x[part] - x[part].mean(), y[part], 3)[0] for part, _ in ends]
    given, low, high = ([each(place, 3) for _, place in ends] for each in found)
    slopes = np.linalg.solve(np.transpose([low, high]), np.subtract(wanted, given))
    at = np.linspace(x[0], x[-1], 3 * x.size)
    return at, CubicSpline(x, y, bc_type=((1, slopes[0]), (1, slopes[1])))(at)


def splined(estimate, error, dropped):
    """confint() of MASS: signed roots of the drop at fifths of a quantile, a spline through them, and lines."""
    farthest = np.sqrt(chi2.ppf(1 - 0.05 / 4, 1))
    points = [(estimate, 0.0)]
    for side in (-1, 1):
        root, step = 0.0, 0
        while root < farthest:
            step += 1
            at = estimate + side * step * farthest / 5 * error
            root = np.sqrt(dropped(at))
            points.append((at, side * root))
    at, curve = spline_of_r(*np.array(sorted(points)).T)
    return tuple(np.interp(norm.ppf([0.025, 0.975]), curve, at))


def test_confint_of_r_is_a_spline_through_that_likelihood():
    """The 3e-6 between our limits and those of CalibrationCurves and pmcalibration are R's interpolation."""
    found = slope("wald")
    lowest, held = cost(found.intercept, found.slope), cost(found.intercept_at_unit_slope, 1)
    away = norm.ppf(0.975)
    limits = splined(
        found.slope,
        (found.slope_upper - found.slope) / away,
        lambda b: minimize_scalar(lambda a: cost(a, b), bracket=(-1, 1), options={"xtol": 1e-10}).fun - lowest,
    )
    # confint(glm(y ~ l, family = binomial, control = glm.control(epsilon = 1e-15, maxit = 100))); by default glm()
    # stops early, and then R has 0.672243692 and 0.986714275, as CalibrationCurves prints.
    assert limits == to_eight_digits(0.67224365742619663, 0.9867143109041181)
    assert limits == pytest.approx((0.672243692, 0.986714275), abs=5e-8)
    limits = splined(
        found.intercept_at_unit_slope,
        (found.intercept_at_unit_slope_upper - found.intercept_at_unit_slope) / away,
        lambda a: cost(a, 1) - held,
    )
    assert limits == to_eight_digits(0.00373972, 0.44520259)  # confint(held)


def test_likelihood_ratio_tests():
    found = measures.likelihood_ratio_tests(Y, P)
    # deviance(glm(y ~ offset(l) - 1, family = binomial)) - deviance(fit), ... - deviance(held), and the difference
    assert found.weak.statistic == pytest.approx(8.431951358, abs=1e-9)
    assert found.in_the_large.statistic == pytest.approx(3.973137643, abs=1e-9)
    assert found.slope.statistic == pytest.approx(4.458813715, abs=1e-9)
    # pchisq(..., lower.tail = FALSE)
    assert found.weak.pvalue == pytest.approx(0.0147579157510325, rel=1e-10)
    assert found.in_the_large.pvalue == pytest.approx(0.046231550543301775, rel=1e-10)
    assert found.slope.pvalue == pytest.approx(0.034721602831736219, rel=1e-10)


def test_sandwich_limits_of_clusters_and_weights():
    found, away = slope(cluster=CLUSTER), student.ppf(0.975, 49)
    # sqrt(sandwich::vcovCL(fit, cluster = cluster, type = "HC0", cadjust = TRUE)), and of held
    for name, error in (
        ("slope_", 0.07945605847713647),
        ("intercept_", 0.1130027048705529),
        ("intercept_at_unit_slope_", 0.1266938821140642),
    ):
        lower, upper = ends(found, name)
        assert (upper - lower) / (2 * away) == pytest.approx(error, rel=1e-6)
    # w <- 1 + (seq_len(n) - 1) %% 3; sandwich::sandwich(glm(y ~ l, family = binomial, weights = w))
    found = slope(sample_weight=WEIGHT)
    assert found.slope == pytest.approx(0.8576264029770706, abs=1e-10)
    lower, upper = ends(found, "slope_")
    left = WEIGHT.sum() ** 2 / (WEIGHT**2).sum() - 2  # R has no correction for few rows here
    away = student.ppf(0.975, left) * np.sqrt((left + 2) / left)
    assert (upper - lower) / (2 * away) == pytest.approx(0.08568408502766574, rel=1e-6)


def test_rows_that_were_seen_several_times():
    """Weights are no counts here: rows are repeated instead, and then R's weighted profile is the same."""
    many = np.repeat(np.arange(500), WEIGHT.astype(int))
    found = measures.calibration_slope_intercept(Y[many], P[many], confidence_level=0.95)
    # uniroot() as above, with glm(..., weights = w)
    assert ends(found, "slope_") == to_eight_digits(0.7470558932071668, 0.9752674582194326)
    area = measures.auroc(Y[many], P[many], confidence_level=0.95)  # pROC::ci.auc(y[many], p[many])
    assert (area.lower, area.estimate, area.upper) == to_eight_digits(
        0.7977259794429029, 0.8232674192735636, 0.8488088591042243
    )
    assert measures.auroc(Y, P, sample_weight=WEIGHT) == pytest.approx(0.8232674192735636, abs=1e-12)


def test_rounded_forecasts_of_0_and_1():
    # few <- round(p, 2); inside <- few > 0 & few < 1; glm(y[inside] ~ qlogis(few[inside]), family = binomial)
    found = measures.calibration_slope_intercept(Y, P.round(2))
    assert found.left_out == 1
    assert found.slope == pytest.approx(0.8183826474654479, abs=1e-10)
    assert found.intercept_at_unit_slope == pytest.approx(0.22421206739461533, abs=1e-10)


def test_area_under_the_roc_curve():
    found = measures.auroc(Y, P, confidence_level=0.95)  # pROC::ci.auc(y, p)
    assert (found.lower, found.estimate, found.upper) == to_eight_digits(
        0.77725506151894797, 0.8142673107890499, 0.85127956005915184
    )
    # plogis(qlogis(auc) + c(-1, 1) * qnorm(0.975) * sqrt(pROC::var(pROC::roc(y, p))) / (auc * (1 - auc)))
    found = measures.auroc(Y, P, confidence_level=0.95, interval="logit")
    assert ends(found) == to_eight_digits(0.7743866446069998, 0.84847781194963912)
    found = measures.auroc(Y, P.round(2), confidence_level=0.95)  # pROC::ci.auc(y, round(p, 2)): many ties
    assert (found.lower, found.estimate, found.upper) == to_eight_digits(
        0.777079331692139, 0.8141062801932367, 0.8511332286943344
    )
    # Obuchowski's variance by hand, with 50/49 also where she counts the clusters that hold an event, or a non-event
    found = measures.auroc(Y, P, confidence_level=0.95, cluster=CLUSTER)
    assert (found.upper - found.lower) / (2 * student.ppf(0.975, 49)) == pytest.approx(0.020053706559524404, rel=2e-4)


def test_the_area_of_rms_is_that_of_fitted_rates_in_steps():
    """lrm() counts pairs of its own fitted probabilities, cut at multiples of 0.0002: one pair in 62,100 differs."""
    fit = measures.calibration_slope_intercept(Y, P)
    fitted = 1 / (1 + np.exp(-(fit.intercept + fit.slope * LOGIT)))
    cut = np.floor(fitted / 0.0002) * 0.0002
    assert measures.auroc(Y, cut) == pytest.approx(0.8142834138486, abs=1e-12)  # lrm.fit(l, y)$stats[["C"]]


def test_brier_scores():
    found = measures.brier_score(Y, P, confidence_level=0.95)
    assert found.estimate == pytest.approx(0.1770333947256, abs=1e-12)  # mean((p - y)^2)
    # mean((p - y)^2) + c(-1, 1) * qnorm(0.975) * sd((p - y)^2) / sqrt(n)
    assert ends(found) == to_eight_digits(0.15773632195074147, 0.19633046750037444)
    found = measures.scaled_brier_score(Y, P, confidence_level=0.95)
    assert found.estimate == pytest.approx(0.2873051742127, abs=1e-12)  # 1 - mean((p - y)^2) / (mean(y) * mean(1 - y))
    # By the delta method with n where we have n - 1
    reach = np.sqrt(500 / 499) * (np.array([0.20881980913736103, 0.3657905392880984]) - found.estimate)
    assert ends(found) == to_eight_digits(*(found.estimate + reach))


def test_observed_over_expected():
    exact = measures.observed_expected_ratio(Y, P, confidence_level=0.95)
    assert exact.estimate == pytest.approx(1.0703901941653473, rel=1e-13)  # sum(y) / sum(p)
    assert ends(exact) == to_eight_digits(0.9815627509667899, 1.158274914934278)  # binom.test(sum(y), n) / mean(p)
    poisson = measures.observed_expected_ratio(Y, P, confidence_level=0.95, interval="poisson")
    assert ends(poisson) == to_eight_digits(0.946509827044385, 1.205979066730063)  # poisson.test(sum(y), sum(p))
