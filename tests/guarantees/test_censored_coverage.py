"""Weighted numbers of censored rows are those of the population, and limits hold as often as they say.

Follow-up ends by independent censoring. The truth is known from the law itself.
"""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm
from simulated import allowed, replicates

import calibrant
from calibrant import measures

horizon: Any = calibrant.horizon  # whose weights may be None, which they are not here

RUNS = replicates(200)
LEVEL = 0.9
AT = 3.0


def forecasts(score):
    """Forecasts that are too extreme."""
    return -np.expm1(-AT / 6.0 * np.exp(1.3 * score))


def drawn(rng, size, rivals=False):
    """Times to an event, or to a rival, or of censoring, a fifth of which is at one time for all, and forecasts."""
    score = rng.normal(size=size)
    time = rng.exponential(6.0 * np.exp(-score))
    other = rng.exponential(8.0, size) if rivals else np.full(size, np.inf)
    seen = np.minimum(time, other)
    end = np.minimum(rng.exponential(6.0, size), np.where(rng.random(size) < 0.2, 2.0, np.inf))
    code = np.where(seen > end, 0, np.where(time <= other, 1, 2))
    return np.minimum(seen, end), code, forecasts(score)


def population(rivals=False):
    """The law itself: an event and a non-event at every score, weighted by their probabilities."""
    score = norm.ppf((np.arange(4000) + 0.5) / 4000)
    hazard, other = np.exp(score) / 6.0, 1.0 / 8.0 if rivals else 0.0
    chance = hazard / (hazard + other) * -np.expm1(-AT * (hazard + other))
    forecast = forecasts(score)
    return calibrant.Tally.from_arrays(
        np.repeat([1, 0], 4000), np.tile(forecast, 2), sample_weight=np.append(chance, 1.0 - chance)
    )


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
    plain = population(rivals)
    slope = measures.calibration_slope_intercept(plain)
    truth = {
        "risk": plain.outcome_total / plain.weight_total,
        "O/E": measures.observed_expected_ratio(plain),
        "Brier": measures.brier_score(plain),
        "scaled Brier": measures.scaled_brier_score(plain),
        "AUROC": measures.auroc(plain),
        "slope": slope.slope,
        "intercept at slope 1": slope.intercept_at_unit_slope,
    }
    found: dict[str, list[Any]] = {name: [] for name in NUMBERS}
    for _ in range(RUNS):
        rows = horizon(*drawn(rng, 500, rivals), at=AT, competing=2, confidence_level=LEVEL)
        assert rows.outcome.censored > 100
        for name, number in NUMBERS.items():
            found[name].append(number(rows))
    for name, runs in found.items():
        estimate, lower, upper = np.array(runs).T
        apart = (estimate.mean() - truth[name]) / (estimate.std() / RUNS**0.5)
        misses = int(((truth[name] < lower) | (truth[name] > upper)).sum())
        assert abs(apart) < norm.isf(1e-4 / 2), (name, apart)
        assert misses <= allowed(RUNS, 1.0 - LEVEL), (name, misses)
        assert misses >= binom.ppf(1e-4, RUNS, 1.0 - LEVEL), (name, misses)


def test_other_numbers_are_those_of_the_population_and_unweighted_ones_are_not():
    rng, size = np.random.default_rng(3), 50_000
    plain = population()
    rows = horizon(*drawn(rng, size), at=AT)
    truth = plain.outcome_total / plain.weight_total
    assert rows.y_true[rows.sample_weight > 0.0].mean() - truth > 0.03
    # Sums of weighted rows err by less than the largest weight / sqrt(n) per standard error.
    reach = 4.0 * rows.outcome.largest_weight / size**0.5
    assert abs(rows.risk - truth) < reach
    assert abs(calibrant.cutoff_calibration_error(rows) - calibrant.cutoff_calibration_error(plain)) < reach
    found, expected = (calibrant.net_benefit(each, threshold=[0.2, 0.5]) for each in (rows, plain))
    np.testing.assert_allclose(found.net_benefit, expected.net_benefit, atol=2.0 * reach)


def test_resampled_limits_hold_as_often_as_they_say():
    rng, runs = np.random.default_rng(5), 60
    truth, misses = measures.brier_score(population()), 0
    for _ in range(runs):
        rows = horizon(*drawn(rng, 200), at=AT)
        limits = measures.brier_score(rows, confidence_level=LEVEL, interval="bootstrap", n_resamples=99)
        misses += not limits.lower <= truth <= limits.upper
    assert 0 < misses <= allowed(runs, 1.0 - LEVEL)


def test_limits_of_the_cox_slope_hold_it():
    """Hazards rise as the score, and forecasts as 1.3 times it."""
    rng = np.random.default_rng(31)
    missed = 0
    for _ in range(RUNS):
        time, code, forecast = drawn(rng, 200)
        rows = horizon(time, code, np.minimum(forecast, 1.0 - 1e-15), at=AT)  # some would round to 1
        found = measures.cox_slope(rows, confidence_level=LEVEL)
        missed += not found.lower <= 1.0 / 1.3 <= found.upper
    assert binom.ppf(1e-4, RUNS, 1.0 - LEVEL) <= missed <= allowed(RUNS, 1.0 - LEVEL)
