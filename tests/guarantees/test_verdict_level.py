"""How often calibrated forecasts are called miscalibrated: as often as the level of the one test that decides."""

import numpy as np
import pytest
from scipy.stats import binom
from simulated import FALSE_ALARM, allowed, replicates

from calibrant import confidence_interval, validate
from calibrant.measures.sampled import sampled
from calibrant.measures.slopes import likelihood_ratio_tests
from calibrant.validations.verdicts import IN_THE_LARGE, WEAK, decide

RUNS = replicates(350)
LEVEL = 0.05


def calls(y_true, y_prob):
    """Return the deciding test, and whether the rule of `findings_of` says miscalibrated."""
    found = decide(sampled(y_true, y_prob), likelihood_ratio_tests(y_true, y_prob), None, "leave_out")
    assert found is not None
    return found.test, found.pvalue < LEVEL or confidence_interval(y_true, y_prob).lower > 0.0


def test_calibrated_forecasts_are_seldom_called_miscalibrated():
    # Limits of the intercept and of the slope, either of which decided once, did so in 11% of 3,000 runs of 400 rows.
    alarms = dict.fromkeys(((200, (2.0, 3.0)), (400, (1.0, 3.0))), 0)
    for rows, law in alarms:
        generator = np.random.default_rng(rows)
        for _ in range(RUNS):
            y_prob = generator.beta(*law, rows)
            test, called = calls(generator.random(rows) < y_prob, y_prob)
            assert test == WEAK
            alarms[rows, law] += called
    assert max(alarms.values()) <= allowed(RUNS, LEVEL)
    assert sum(alarms.values()) <= allowed(len(alarms) * RUNS, LEVEL)


@pytest.mark.parametrize("rows", [50, 200])
def test_so_are_those_without_a_slope(rows):
    generator = np.random.default_rng(rows)
    alarms = 0
    y_prob = np.full(rows, 0.3)
    for _ in range(RUNS):
        found = decide(sampled(generator.random(rows) < y_prob, y_prob), None, None, "leave_out")
        assert found is not None
        assert found.test == IN_THE_LARGE
        alarms += found.pvalue < LEVEL
    assert alarms <= allowed(RUNS, LEVEL)


@pytest.mark.parametrize("rows", [200, 1000])
def test_limits_of_calibration_in_the_large_hold_it(rows):
    """The true rate is 0.06 above the forecast; limits err on either side as often as they say."""
    generator = np.random.default_rng(rows)
    runs, missed = 40, 0
    for _ in range(runs):
        y_prob = 0.9 * generator.beta(1.0, 3.0, rows)
        found = validate(generator.random(rows) < y_prob + 0.06, y_prob, confidence_level=0.8, n_resamples=5)
        lower, upper = found.calibration_in_the_large_lower, found.calibration_in_the_large_upper
        missed += lower is None or upper is None or not lower <= 0.06 <= upper
    assert binom.ppf(FALSE_ALARM, runs, 0.2) <= missed <= allowed(runs, 0.2)
