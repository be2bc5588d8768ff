"""Limits for the rate of events against their definition."""

import numpy as np
import pytest
from scipy.stats import binom

from calibrant.core.binomial import at_least, exactly, lower_rate, upper_rate

EVENTS = np.array([0, 1, 3, 50, 0, 7, 2])
OTHERS = np.array([9, 40, 3, 950, 1, 0, 10_000_000])


@pytest.mark.parametrize("delta", [0.25, 0.05, 1e-7])
def test_limits_are_the_rates_at_which_the_count_is_only_just_surprising(delta):
    upper, lower = upper_rate(EVENTS, OTHERS, delta), lower_rate(EVENTS, OTHERS, delta)
    rows = EVENTS + OTHERS
    np.testing.assert_allclose(binom.cdf(EVENTS, rows, upper)[OTHERS > 0], delta, rtol=1e-9)
    np.testing.assert_allclose(binom.sf(EVENTS - 1, rows, lower)[EVENTS > 0], delta, rtol=1e-6)
    assert (upper[OTHERS == 0] == 1.0).all()
    assert (lower[EVENTS == 0] == 0.0).all()


def test_chance_of_at_least_so_many():
    events = np.arange(1, 21)
    np.testing.assert_allclose(at_least(events, 20, 0.3), binom.sf(events - 1, 20, 0.3), rtol=1e-12)


@pytest.mark.parametrize("rate", [0.0, 0.001, 0.3, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("rows", [1, 10, 100, 101, 999_999])
def test_chance_of_exactly_so_many(rows, rate):
    events = np.arange(rows + 1)
    found = exactly(events, rows, rate)
    np.testing.assert_allclose(found, binom.pmf(events, rows, rate), rtol=3e-13, atol=1e-300)
    assert found.sum() == pytest.approx(1.0, abs=1e-13)
