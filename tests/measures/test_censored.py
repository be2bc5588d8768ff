"""Numbers of censored rows with their limits: the error of estimated weights by brute force, and what is refused."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import stdtrit
from statsmodels.duration.hazard_regression import PHReg

import calibrant
from calibrant import measures

horizon: Any = calibrant.horizon  # whose weights may be None, which they are not here

TIME = np.array([1, 2, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 9, 10])
CODE = np.array([1, 0, 1, 2, 0, 1, 0, 1, 2, 0, 1, 0, 1, 0])
FORECAST = np.array([0.7, 0.5, 0.6, 0.2, 0.3, 0.8, 0.4, 0.4, 0.3, 0.55, 0.5, 0.1, 0.35, 0.25])


def rows_of(place=None, times=1, code=CODE):
    """Each row so many times, and one of them once more."""
    at = np.repeat(np.arange(TIME.size), times)
    at = at if place is None else np.append(at, place)
    return horizon(TIME[at], code[at], FORECAST[at], at=7.5, competing=2), at


NUMBERS: dict[str, Any] = {
    "brier": measures.brier_score,
    "brier_scaled": measures.scaled_brier_score,
    "auroc": measures.auroc,
    "slope": lambda rows: measures.calibration_slope_intercept(rows).slope,
    "intercept": lambda rows: measures.calibration_slope_intercept(rows).intercept,
    "ratio": measures.observed_expected_ratio,
    "risk": lambda rows: rows.risk,
}


def brute_error(number, clusters=None):
    """The error from how much the number moves when a row counts a little more, weights estimated anew each time."""
    times = 4000
    whole = number(rows_of(times=times)[0])
    moved = np.array([number(rows_of(k, times)[0]) - whole for k in range(TIME.size)]) * times
    if clusters is not None:
        moved = np.bincount(clusters, weights=moved)
    return float(np.sqrt(moved @ moved))


def half_width(estimate, lower="lower", upper="upper"):
    return (getattr(estimate, upper) - getattr(estimate, lower)) / 2.0 / 1.959963984540054


@pytest.mark.parametrize("name", ["brier", "brier_scaled", "slope", "intercept", "ratio", "auroc", "risk"])
def test_errors_count_that_weights_are_estimated(name):
    rows, size = rows_of()[0], TIME.size
    brute = brute_error(NUMBERS[name])
    if name in ("slope", "intercept"):
        slope = measures.calibration_slope_intercept(rows, confidence_level=0.95)
        assert slope.interval == "sandwich"
        effective = rows.sample_weight.sum() ** 2 / np.square(rows.sample_weight).sum()
        few = stdtrit(effective - 2.0, 0.975) / 1.959963984540054 * np.sqrt(effective / (effective - 2.0))
        error = half_width(slope, f"{name}_lower", f"{name}_upper") / few
    elif name == "risk":
        error = rows.outcome.standard_error
    elif name == "ratio":
        found = measures.observed_expected_ratio(rows, confidence_level=0.95, interval="wald")
        error = np.log(found.upper / found.lower) / 2.0 / 1.959963984540054 * found.estimate
    else:
        # Estimates may be cut at 0 and 1: at a low level they are not.
        found = NUMBERS[name](rows, confidence_level=0.5)
        error = (found.upper - found.lower) / 2.0 / 0.6744897501960817
        known = rows.outcome.known
        error *= np.sqrt((known - 1.0) / known) if name != "auroc" else 1.0
    assert size == 14
    assert error == pytest.approx(brute, rel=2e-3)


def test_errors_of_clusters_add_up_what_their_rows_move():
    rows, clusters = rows_of()[0], np.arange(TIME.size) // 2
    found = measures.observed_expected_ratio(rows, confidence_level=0.95, interval="wald", cluster=clusters)
    count = 7
    away = 2.4469118511449692  # of Student's law with 6 degrees of freedom
    error = np.log(found.upper / found.lower) / 2.0 / away * found.estimate * np.sqrt((count - 1) / count)
    assert error == pytest.approx(brute_error(measures.observed_expected_ratio, clusters), rel=2e-3)
    assert found.clusters == 7


@pytest.mark.parametrize("interval", ["exact", "poisson", "wald", "bootstrap"])
def test_observed_over_expected_takes_the_risk_and_all_forecasts(interval):
    rows = rows_of()[0]
    found = measures.observed_expected_ratio(rows, confidence_level=0.9, interval=interval, n_resamples=200)
    assert found.estimate == pytest.approx(rows.risk / FORECAST.mean())
    assert found.lower < found.estimate < found.upper
    assert found.interval == {"exact": "greenwood"}.get(interval, interval)
    if interval == "exact":
        limits = horizon(TIME, CODE, FORECAST, at=7.5, competing=2, confidence_level=0.9)
        assert found.lower == pytest.approx(limits.risk_lower / FORECAST.mean())
        assert found.upper == pytest.approx(limits.risk_upper / FORECAST.mean())


def test_observed_over_expected_without_an_event_or_without_a_forecast():
    rows = horizon([1, 2, 3, 4], [0, 0, 0, 0], [0.1, 0.2, 0.3, 0.4], at=2.5)
    assert measures.observed_expected_ratio(rows) == 0.0
    found = measures.observed_expected_ratio(rows, confidence_level=0.95)
    assert (found.lower, found.upper) == (0.0, pytest.approx((1.0 - 0.025**0.5) / 0.25))
    for interval in ("wald", "poisson"):
        with pytest.raises(calibrant.InputError, match="there is no event"):
            measures.observed_expected_ratio(rows, confidence_level=0.95, interval=interval)
    nothing = rows.with_forecasts([0.0, 0.0, 0.0, 0.0])
    with pytest.raises(calibrant.InputError, match=r"^y_prob is 0 everywhere"):
        measures.observed_expected_ratio(nothing)
    assert calibrant.measure(nothing).observed_expected_ratio is None


def test_the_slope_of_hazards_is_that_of_another_package_with_ties_too():
    rng = np.random.default_rng(0)
    time, end = np.ceil(rng.exponential(5.0, 300)), np.ceil(rng.exponential(8.0, 300))
    seen, event = np.minimum(time, end), time <= end
    forecast = rng.beta(2.0, 3.0, 300)
    found = measures.cox_slope(horizon(seen, event, forecast, at=6.0), confidence_level=0.9)
    value = np.log(-np.log1p(-forecast))[:, None]
    other = PHReg(np.minimum(seen, 6.0), value, status=event & (seen <= 6.0), ties="efron").fit()
    assert found.estimate == pytest.approx(other.params[0], abs=1e-6)
    assert (found.upper - found.lower) / 2.0 / 1.6448536269514722 == pytest.approx(other.bse[0], rel=1e-5)
    assert found.estimate == measures.cox_slope(horizon(seen, event, forecast, at=6.0))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (lambda: [0, 1], "^rows holds no times; pass what horizon"),
        (lambda: rows_of()[0], "^rows holds competing events"),
        (lambda: horizon([1, 2], [1, 1], [0.5, 1.0], at=3), r"^y_prob\[1\] is 1, where log"),
        (lambda: horizon([1, 2], [1, 1], [0.5, 0.5], at=3), "the slope needs at least two distinct"),
        (lambda: horizon([1, 2], [0, 0], [0.5, 0.6], at=1), "the slope needs at least one event"),
        (lambda: horizon([1, 2], [1, 0], [0.6, 0.5], at=2), "rank the events so well, .* is infinite"),
    ],
)
def test_where_there_is_no_slope_of_hazards(rows, message):
    with pytest.raises(calibrant.InputError, match=message):
        measures.cox_slope(rows())


def test_every_curve_and_net_benefit_takes_censored_rows_as_weighted_ones():
    rows = rows_of()[0]
    known = np.flatnonzero(rows.sample_weight)
    plain = (rows.y_true[known], rows.y_prob[known])
    weight = rows.sample_weight[known]
    found, other = (
        calibrant.net_benefit(rows, threshold=[0.3, 0.5]),
        calibrant.net_benefit(*plain, threshold=[0.3, 0.5], sample_weight=weight),
    )
    np.testing.assert_allclose(found.net_benefit, other.net_benefit, rtol=1e-13)
    index = measures.integrated_calibration_index(rows, smoother="loess")
    assert index.ici == pytest.approx(
        measures.integrated_calibration_index(*plain, smoother="loess", sample_weight=weight).ici, rel=1e-12
    )
    assert calibrant.PlattRecalibrator().fit(rows).guarantee_ is None  # of weighted rows nothing is promised


@pytest.mark.parametrize("clusters", [None, np.arange(TIME.size) // 2])
def test_limits_of_net_benefit_count_that_weights_are_estimated(clusters):
    rows = rows_of()[0]
    net_benefit: Any = calibrant.net_benefit
    found = net_benefit(rows, threshold=[0.3, 0.45], confidence_level=0.95, cluster=clusters)
    reach = 1.959963984540054
    if clusters is not None:  # Student's, and enlarged as few clusters need
        reach = float(stdtrit(found.clusters - 1.0, 0.975)) * math.sqrt(found.clusters / (found.clusters - 1.0))
    half = (found.net_benefit_upper - found.net_benefit_lower) / 2.0 / reach
    for place in range(2):
        brute = brute_error(lambda each, at=place: net_benefit(each, threshold=[0.3, 0.45]).net_benefit[at], clusters)
        assert half[place] == pytest.approx(brute, rel=2e-3)
    if clusters is None:  # acting on everybody is a matter of the risk alone
        half = (found.treat_all_upper - found.treat_all_lower) / 2.0 / 1.959963984540054
        np.testing.assert_allclose(half, rows.outcome.standard_error / (1.0 - found.threshold), rtol=1e-12)
