"""Weighted numbers of censored rows are those of the population, and limits hold as often as they say.

Follow-up ends by independent censoring. The truth is known from a million rows without any, or from the law itself.
"""

import numpy as np
import pytest
from scipy.stats import norm
from simulated import allowed

import calibrant
from calibrant import measures

RUNS = 400
LEVEL = 0.9
AT = 3.0


def drawn(rng, size, rivals=False, censoring=6.0):
    """Forecasts that are too extreme, times to an event (and to a rival), and of censoring, some at whole numbers."""
    score = rng.normal(size=size)
    time = rng.exponential(6.0 * np.exp(-score))
    other = rng.exponential(8.0, size) if rivals else np.full(size, np.inf)
    seen = np.minimum(time, other)
    end = np.minimum(rng.exponential(censoring, size), np.where(rng.random(size) < 0.2, 2.0, np.inf))
    code = np.where(seen > end, 0, np.where(time <= other, 1, 2))
    forecast = -np.expm1(-AT / 6.0 * np.exp(1.3 * score))
    return np.minimum(seen, end), code, forecast, (time <= AT) & (time <= other)


NUMBERS = {
    "risk": lambda rows: (rows.risk, rows.risk_lower, rows.risk_upper),
    "O/E": lambda rows: _three(measures.observed_expected_ratio(rows, confidence_level=LEVEL, interval="wald")),
    "Brier": lambda rows: _three(measures.brier_score(rows, confidence_level=LEVEL)),
    "scaled Brier": lambda rows: _three(measures.scaled_brier_score(rows, confidence_level=LEVEL)),
    "AUROC": lambda rows: _three(measures.auroc(rows, confidence_level=LEVEL)),
    "slope": lambda rows: _slope(rows, "slope"),
    "intercept at slope 1": lambda rows: _slope(rows, "intercept_at_unit_slope"),
}


def _three(found):
    return found.estimate, found.lower, found.upper


def _slope(rows, name):
    found = measures.calibration_slope_intercept(rows, confidence_level=LEVEL)
    return tuple(getattr(found, f"{name}{end}") for end in ("", "_lower", "_upper"))


@pytest.mark.parametrize("rivals", [False, True], ids=["one event", "competing"])
def test_numbers_of_censored_rows_are_those_of_the_population(rivals):
    rng = np.random.default_rng(20)
    *_, forecast, happened = drawn(rng, 1_000_000, rivals)
    plain = calibrant.Tally.from_arrays(happened, forecast)
    slope = measures.calibration_slope_intercept(plain)
    truth = {
        "risk": happened.mean(),
        "O/E": measures.observed_expected_ratio(plain),
        "Brier": measures.brier_score(plain),
        "scaled Brier": measures.scaled_brier_score(plain),
        "AUROC": measures.auroc(plain),
        "slope": slope.slope,
        "intercept at slope 1": slope.intercept_at_unit_slope,
    }
    found = {name: [] for name in NUMBERS}
    for _ in range(RUNS):
        time, code, forecast, _ = drawn(rng, 500, rivals)
        rows = calibrant.horizon(time, code, forecast, at=AT, competing=2, confidence_level=LEVEL)
        assert rows.outcome.censored > 100
        for name, number in NUMBERS.items():
            found[name].append(number(rows))
    for name, runs in found.items():
        estimate, lower, upper = np.array(runs).T
        # Right on average, but for the curvature of some (slope, scaled Brier), which is of order 1/n.
        apart = (estimate.mean() - truth[name]) / (estimate.std() / RUNS**0.5)
        assert abs(apart) < norm.isf(1e-4 / 2) + (1.5 if name in ("slope", "scaled Brier") else 0.0), (name, apart)
        misses = int(((truth[name] < lower) | (truth[name] > upper)).sum())
        # 500 rows hold about 150 events: coverage of sandwich and DeLong limits may be 2 points short there.
        assert misses <= allowed(RUNS, 1.0 - LEVEL + 0.02), (name, misses)
        assert misses >= 0.4 * (1.0 - LEVEL) * RUNS, (name, misses)


def test_unweighted_numbers_of_known_outcomes_are_not():
    rng = np.random.default_rng(3)
    time, code, forecast, happened = drawn(rng, 200_000)
    rows = calibrant.horizon(time, code, forecast, at=AT)
    known = rows.sample_weight > 0.0
    assert abs(happened[known].mean() - happened.mean()) > 0.03
    assert abs(rows.risk - happened.mean()) < 0.005


def test_weighted_cutoff_error_and_net_benefit_are_those_of_the_population():
    rng = np.random.default_rng(4)
    *_, forecast, happened = drawn(rng, 1_000_000)
    plain = calibrant.Tally.from_arrays(happened, forecast)
    time, code, forecast, _ = drawn(rng, 200_000)
    rows = calibrant.horizon(time, code, forecast, at=AT)
    # Errors of such numbers are below 1/sqrt(n) times the largest weight.
    reach = 3.0 * rows.outcome.largest_weight / 200_000**0.5
    assert abs(calibrant.cutoff_calibration_error(rows) - calibrant.cutoff_calibration_error(plain)) < reach
    found, truth = (calibrant.net_benefit(each, threshold=[0.2, 0.5]) for each in (rows, plain))
    np.testing.assert_allclose(found.net_benefit, truth.net_benefit, atol=reach)


def test_resampled_limits_hold_as_often_as_those_of_the_formula():
    rng = np.random.default_rng(5)
    truth = measures.brier_score(*reversed(drawn(rng, 1_000_000)[2:]))
    misses, runs = 0, 120
    for _ in range(runs):
        time, code, forecast, _ = drawn(rng, 200)
        rows = calibrant.horizon(time, code, forecast, at=AT)
        limits = measures.brier_score(rows, confidence_level=LEVEL, interval="bootstrap", n_resamples=99)
        misses += not limits.lower <= truth <= limits.upper
    assert misses <= allowed(runs, 1.0 - LEVEL + 0.02)
    assert misses >= 2
