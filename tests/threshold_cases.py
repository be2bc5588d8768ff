"""Forecasts of a real outcome, slow and obvious: every threshold, every interval, one by one."""

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from calibrant.core.types import FloatArray
from calibrant.rows.distributions import check_distributions
from calibrant.rows.sweeps import StepForecasts

Forecasts = Callable[[Any], Any]


def drawn(rng: np.random.Generator, rows: int, members: int, places: int = 5) -> tuple[FloatArray, FloatArray]:
    """Outcomes and members with many ties."""
    return rng.integers(0, places, rows).astype(float), rng.integers(0, places, (rows, members)).astype(float)


def steps_of(z: FloatArray, ensemble: FloatArray) -> StepForecasts:
    """The step functions of an ensemble, at all thresholds."""
    asked, _ = check_distributions(z, ensemble, None, None).at("all")
    assert isinstance(asked, StepForecasts)
    return asked


def largest_over_intervals(values: FloatArray, forecast: FloatArray) -> float:
    """The largest |sum of values| over intervals of forecasts."""
    places = np.unique(forecast)
    ends = itertools.combinations_with_replacement(places.tolist(), 2)
    return max(abs(float(values[(forecast >= low) & (forecast <= high)].sum())) for low, high in ends)


def largest_growth(residual: FloatArray, forecast: FloatArray, rate: float) -> float:
    """The largest -sum ln(1 - rate s r) over intervals and signs."""
    places = np.unique(forecast)
    found = 0.0
    for low, high in itertools.combinations_with_replacement(places.tolist(), 2):
        inside = residual[(forecast >= low) & (forecast <= high)]
        found = max(found, *(float(-np.log1p(-rate * sign * inside).sum()) for sign in (1.0, -1.0)))
    return found


def every_threshold(z: FloatArray, forecast_at: Forecasts, thresholds: Iterable[float]) -> dict[float, float]:
    """The Cutoff error at each threshold."""
    return {
        float(t): largest_over_intervals((z <= t) - forecast_at(t), forecast_at(t)) / z.size for t in sorted(thresholds)
    }


def share_up_to(values: FloatArray) -> Forecasts:
    """The distribution function of an ensemble."""
    return lambda t: (np.asarray(values) <= t).mean(axis=1)


def crps_by_members(z: FloatArray, ensemble: FloatArray) -> float:
    """E|X - z| - E|X - X'| / 2, as properscoring and others compute it."""
    near = np.abs(ensemble - z[:, None]).mean(axis=1)
    apart = np.abs(ensemble[:, :, None] - ensemble[:, None, :]).mean(axis=(1, 2))
    return float((near - apart / 2.0).mean())


def integral_of(cutoffs: dict[float, float]) -> float:
    """The integral of a step function over thresholds."""
    places = list(cutoffs)
    return math.fsum(cutoffs[low] * (high - low) for low, high in itertools.pairwise(places))
