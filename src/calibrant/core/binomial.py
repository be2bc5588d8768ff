"""Counts of events: the limits of Clopper and Pearson for their rate, and how likely so many are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.types import FloatArray

_FEW_ROWS = 100  # up to which a sum of logarithms keeps 13 digits; beyond, scipy.stats is worth loading
_MANY_OTHERS = 20_000  # up to which the library's inverse keeps 12 digits; for a few events among millions it keeps 9


def upper_rate(events: npt.NDArray[Any], others: npt.NDArray[Any], delta: float) -> FloatArray:
    """Return the Clopper-Pearson upper limits: rates above them show at most so many events with probability delta.

    Examples
    --------
    >>> upper_rate(np.array([0, 1]), np.array([10, 0]), 0.05).round(4)
    array([0.2589, 1.    ])
    """
    from scipy.special import betainccinv

    rate = np.ones(np.shape(events))
    some = others.nonzero()[0]
    first, second = events[some] + 1.0, others[some].astype(np.float64)
    found = betainccinv(first, second, delta)
    many = (second > _MANY_OTHERS).nonzero()[0]
    if many.size:
        found[many] = _polished(found[many], first[many], second[many], delta)
    rate[some] = found
    return rate


def lower_rate(events: npt.NDArray[Any], others: npt.NDArray[Any], delta: float) -> FloatArray:
    """Return the Clopper-Pearson lower limits: rates below them show at least so many events with probability delta."""
    from scipy.special import betaincinv

    rate = np.zeros(np.shape(events))
    some = events.nonzero()[0]
    rate[some] = betaincinv(events[some].astype(np.float64), others[some] + 1.0, delta)
    return rate


def _polished(rate: FloatArray, first: FloatArray, second: FloatArray, delta: float) -> FloatArray:
    """Take one Newton step."""
    from scipy.special import betaincc, betaln, xlog1py, xlogy

    # Relative to delta, so that a tiny delta does not underflow.
    density = np.exp(xlogy(first - 1.0, rate) + xlog1py(second - 1.0, -rate) - betaln(first, second) - math.log(delta))
    step = np.zeros_like(rate)
    np.divide(betaincc(first, second, rate) / delta - 1.0, density, out=step, where=density > 0.0)
    polished: FloatArray = np.minimum(rate + step, 1.0)
    return polished


def exactly(events: npt.NDArray[Any], rows: int, rate: float) -> FloatArray:
    """Return the probability of exactly so many events among rows with one rate."""
    if rows > _FEW_ROWS:
        from scipy.stats import binom

        precise: FloatArray = binom.pmf(events, rows, rate)
        return precise
    from scipy.special import betaln, xlog1py, xlogy

    others = rows - events
    logarithm = xlogy(events, rate) + xlog1py(others, -rate) - betaln(events + 1.0, others + 1.0) - math.log1p(rows)
    probability: FloatArray = np.exp(logarithm)
    return probability


def at_least(events: npt.NDArray[Any], rows: int, rate: float) -> FloatArray:
    """Return the probability of at least so many events, one or more, among rows with one rate."""
    from scipy.special import betainc

    tail: FloatArray = betainc(events, rows - events + 1.0, rate)
    return tail
