"""Limits of a mean per row where rows, or clusters of rows, are the independent units: bets on one unit after another.

A unit has a size (its rows, or their weights) and a total of at most so much per size. At the right mean the product of
1 + x (mean size - total) over the units has an expectation of at most 1, for any rate x that keeps it positive, whether
the sizes are fixed numbers or those of units drawn at random. The proofs are in docs/theory/comparisons.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from calibrant.certificates.betting import HIGHEST_RATE, best_rate
from calibrant.certificates.margins import VARIANCE_SHARE
from calibrant.core.chernoff import chernoff_interval, root_of_concave
from calibrant.core.types import FloatArray, IntArray

_MANY = 20_000  # values from which on equal ones are counted first, ...
_PROBED, _FEW_VALUES = 1000, 20  # ... if the first ones look as if there were few, ...
_SLOW = 0.05  # ... and rates up to which sums and squares then say as much as logarithms do
_FEW_UNITS, _LEAST_SQUARE = 2000.0, 0.05  # of few units no single one may say how bold bets are


class _Units(NamedTuple):
    """Totals and sizes in units of the largest possible total and the largest size; how often each occurs."""

    total: FloatArray
    size: FloatArray
    times: FloatArray


def unit_mean_limits(
    total: FloatArray,
    size: FloatArray | None,
    bound: float,
    delta: float,
    *,
    largest: float | None = None,
    times: FloatArray | IntArray | None = None,
) -> tuple[float, float]:
    """Return limits for the mean total per size, each wrong with probability at most delta.

    Parameters
    ----------
    total : array
        The total of each unit, from -bound times its size to bound times its size.
    size : array or None
        The size of each unit; None where all are 1.
    bound : float
        What no total per size exceeds, known beforehand.
    delta : float
        How often each of the two limits may be wrong.
    largest : float, optional
        The largest size that a unit can have; by default that of these.
    times : array, optional
        How many units there are of each total and size; by default one.
    """
    if bound <= 0.0:
        return 0.0, 0.0
    units = _units(total, size, bound, largest) if times is None else _counted(total, size, bound, times)
    upper = _upper(units, delta)
    lower = -_upper(units._replace(total=-units.total), delta)
    return bound * lower, bound * upper


def _units(total: FloatArray, size: FloatArray | None, bound: float, largest: float | None) -> _Units:
    if size is None and total.size >= _MANY and np.unique(total[:_PROBED]).size <= _FEW_VALUES:
        values, count = np.unique(total, return_counts=True)
        return _Units(values / bound, np.ones(values.size), count.astype(np.float64))
    sizes = np.ones(total.size) if size is None else size
    most = float(sizes.max()) if largest is None else largest
    return _Units(total / (bound * most), sizes / most, np.ones(total.size))


def _counted(total: FloatArray, size: FloatArray | None, bound: float, times: FloatArray | IntArray) -> _Units:
    sizes = np.ones(total.size) if size is None else size
    most = float(sizes.max())
    return _Units(total / (bound * most), sizes / most, times.astype(np.float64))


def _upper(units: _Units, delta: float) -> float:
    """Return the upper limit of a mean from -1 to 1.

    Rates up to 0.9 keep bets positive wherever the mean is not below 0. Where those exclude 0, rates up to 0.45, which
    do so everywhere, find the limit: for no mean does more than one of the two have to hold.
    """
    rates, exponent = _rates(units, delta)
    bold = max(_limit(units, rate, exponent, 0.0) for rate in rates)
    if bold > 0.0:
        return min(bold, 1.0)
    return min(max(_limit(units, min(rate, HIGHEST_RATE / 2.0), exponent, -1.0) for rate in rates), 0.0)


def _rates(units: _Units, delta: float) -> tuple[tuple[float, float], float]:
    """Return two rates between which that of the population lies, and what a bet must gain to exclude a mean.

    It suits the sum of squared totals, the largest of them cut off where units are few. Sums of logarithms are concave
    in the rate, so that what two rates exclude every rate between them excludes.
    """
    square = min(max(float(units.times.sum()) / _FEW_UNITS, _LEAST_SQUARE), 1.0)
    exponent, each = math.log(1.0 / (delta * (1.0 - VARIANCE_SHARE))), delta * VARIANCE_SHARE / 2.0
    found = float(units.times @ np.minimum(np.square(units.total), square)) / square
    low, high = chernoff_interval(found, each)
    return (best_rate(high * square, 1.0, exponent), best_rate(low * square, 1.0, exponent)), exponent


def _limit(units: _Units, rate: float, exponent: float, lowest: float) -> float:
    """Return the largest mean, from the lowest one that may be asked about, that a bet at a rate does not exclude."""
    total, size, times = units
    # A logarithm is at most its argument less 1: no mean below this one is excluded.
    start = max((exponent / rate + float(times @ total)) / float(times @ size), lowest)
    if total.size >= _MANY and rate <= _SLOW:
        return _limit_of_squares(units, rate, exponent, max(float(total.max()), 0.0) + max(-lowest, 0.0))
    stake, gained = rate * size, 1.0 - rate * total

    def excess(mean: float) -> tuple[float, float]:
        """Return by how much the growth against a mean exceeds what excludes it, and how fast it rises."""
        left = gained + stake * mean
        return float(times @ np.log(left)) - exponent, float(times @ (stake / left))

    return root_of_concave(excess, start, 1.0)


def _limit_of_squares(units: _Units, rate: float, exponent: float, most: float) -> float:
    """Return a limit hardly above that one: ln(1 + v) >= v - k v^2 for v >= -b and k = (-ln(1 - b) - b) / b^2."""
    total, size, times = units
    reach = max(rate * most, 1e-6)
    square = (-math.log1p(-reach) - reach) / reach**2 * rate**2
    leading = square * float(times @ np.square(size))
    linear = rate * float(times @ size) + 2.0 * square * float(times @ (size * total))
    missing = rate * float(times @ total) + square * float(times @ np.square(total)) + exponent
    inside = linear**2 - 4.0 * leading * missing
    return 1.0 if inside < 0.0 else min(2.0 * missing / (linear + math.sqrt(inside)), 1.0)
