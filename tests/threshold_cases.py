"""Forecasts of a real outcome, slow and obvious: every threshold, every interval, one by one."""

import itertools
import math

import numpy as np

from calibrant.rows.distributions import check_distributions
from calibrant.rows.sweeps import StepForecasts


def drawn(rng, rows, members, places=5):
    """Outcomes and members with many ties."""
    return rng.integers(0, places, rows).astype(float), rng.integers(0, places, (rows, members)).astype(float)


def steps_of(z, ensemble) -> StepForecasts:
    """The step functions of an ensemble, at all thresholds."""
    asked, _ = check_distributions(z, ensemble, None, None).at("all")
    assert isinstance(asked, StepForecasts)
    return asked


def largest_over_intervals(values, forecast):
    """The largest |sum of values| over intervals of forecasts."""
    places = np.unique(forecast)
    ends = itertools.combinations_with_replacement(places.tolist(), 2)
    return max(abs(values[(forecast >= low) & (forecast <= high)].sum()) for low, high in ends)


def largest_growth(residual, forecast, rate):
    """The largest -sum ln(1 - rate s r) over intervals and signs."""
    places = np.unique(forecast)
    found = 0.0
    for low, high in itertools.combinations_with_replacement(places.tolist(), 2):
        inside = residual[(forecast >= low) & (forecast <= high)]
        found = max(found, *(float(-np.log1p(-rate * sign * inside).sum()) for sign in (1.0, -1.0)))
    return found


def every_threshold(z, forecast_at, thresholds):
    """The Cutoff error at each threshold."""
    return {
        float(t): largest_over_intervals((z <= t) - forecast_at(t), forecast_at(t)) / z.size for t in sorted(thresholds)
    }


def share_up_to(values):
    """The distribution function of an ensemble."""
    return lambda t: (np.asarray(values) <= t).mean(axis=1)


def crps_by_members(z, ensemble):
    """E|X - z| - E|X - X'| / 2, as properscoring and others compute it."""
    near = np.abs(ensemble - z[:, None]).mean(axis=1)
    apart = np.abs(ensemble[:, :, None] - ensemble[:, None, :]).mean(axis=(1, 2))
    return float((near - apart / 2.0).mean())


def integral_of(cutoffs):
    """The integral of a step function over thresholds."""
    places = list(cutoffs)
    return math.fsum(cutoffs[low] * (high - low) for low, high in itertools.pairwise(places))
