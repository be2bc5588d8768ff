"""The confidence band of a reliability diagram holds the true event rate at all forecasts together.

Seeds are fixed and limits are binomial: a correct band fails one of these with probability 1e-4.
"""

import numpy as np
import pytest
from simulated import allowed, replicates, runs_needed

from calibrant import Tally
from calibrant.displays.reliability_bands import confidence_band

REPLICATES = replicates(300)

FORECASTS = {
    "continuous": lambda rng: rng.beta(0.8, 1.5, 400),
    "rare events": lambda rng: rng.beta(0.5, 30.0, 1000),
    "tied": lambda rng: rng.integers(0, 5, 200) / 4,
    "few": lambda rng: rng.random(12),
}
RATES = {
    "calibrated": lambda p: p,
    "too high": lambda p: p**1.5,
    "constant": lambda p: np.full(p.shape, 0.4),
    "a jump": lambda p: np.where(p < 0.3, 0.1, 0.9),
}


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("name", FORECASTS)
def test_covers_the_event_rate_at_all_forecasts_together(name, rate):
    rng = np.random.default_rng([7, *name.encode(), *rate.encode()])
    event_rate, missed = RATES[rate], {"band": 0}
    for _ in runs_needed(missed, REPLICATES, allowed(REPLICATES, 0.2)):
        p = FORECASTS[name](rng)
        band = confidence_band(Tally.from_arrays(rng.random(p.size) < event_rate(p), p), 0.8)
        # Stairs: at a forecast the tightest of the points drawn there counts.
        forecast, first = np.unique(band.forecast, return_index=True)
        lower, upper = np.maximum.reduceat(band.lower, first), np.minimum.reduceat(band.upper, first)
        assert (np.diff(band.lower) >= 0).all()
        assert (np.diff(band.upper) >= 0).all()
        truth = event_rate(forecast)
        missed["band"] += bool((truth < lower).any() or (truth > upper).any())
    assert missed["band"] <= allowed(REPLICATES, 0.2)


def test_says_something_up_to_the_highest_confidence_that_can_be_written():
    # One minus a share of 2^-53 is 1 in floating point, and a limit at 1 would say nothing.
    band = confidence_band(Tally.from_counts([0.1, 0.3], [100_000, 100_000], [10_000, 30_000]), 1.0 - 2.0**-53)
    assert band.upper[0] == pytest.approx(0.1, abs=0.01)
    assert band.lower[-1] == pytest.approx(0.3, abs=0.015)
