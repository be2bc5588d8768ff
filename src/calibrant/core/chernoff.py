"""Chernoff's bound with Poisson tails: limits for the mean of a sum, from the sum alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from calibrant.core.types import FloatArray

_NEXT_TO_NOTHING = 1e-250  # a sum of which no limit has digits


def chernoff_interval(total: float, delta: float) -> tuple[float, float]:
    """Return limits for the mean of a sum of independent terms in [0, 1], each wrong with probability at most delta.

    The mean m of a sum z satisfies z ln(z/m) - z + m <= ln(1/delta): Chernoff's bound with Poisson tails, which cover
    every such sum.
    """
    return chernoff_ends(total, math.log(1.0 / delta))


@lru_cache(maxsize=64)  # one limit asks for the same interval several times
def chernoff_ends(total: float, exponent: float) -> tuple[float, float]:
    """Return the limits of `chernoff_interval` where ln(1/delta) is given, however small delta is."""

    def missing(mean: float) -> tuple[float, float]:
        excess = (total * math.log(total / mean) if total > 0.0 else 0.0) - total + mean - exponent
        return -excess, total / mean - 1.0

    def mirrored(mean: float) -> tuple[float, float]:
        value, slope = missing(-mean)
        return value, -slope

    high = -root_of_concave(mirrored, -(total + 2.0 * exponent + 2.0 * math.sqrt(exponent * total)), -total)
    # Without the last term, + m, the root is in closed form; where m is next to nothing that is all.
    lowest = total * math.exp(-1.0 - exponent / total) if total > 0.0 else 0.0
    low = root_of_concave(missing, lowest, total) if lowest > 1e-17 * total else lowest
    return low, high


def mean_interval(total: float, count: int, delta: float) -> tuple[float, float]:
    """Return limits for the mean of independent terms in [0, 1], from their sum, each wrong with probability delta.

    A mean m under which a sum of z n is so unlikely has n kl(z, m) > ln(1/delta), with kl(z, m) = z ln(z/m) +
    (1 - z) ln((1 - z)/(1 - m)): Hoeffding (1963), Theorem 1, whose terms need not be alike.

    Examples
    --------
    >>> low, high = mean_interval(19.0, 1000, 0.05)
    >>> round(low, 5), round(high, 5)
    (0.01027, 0.03155)
    """
    share = min(max(total / count, 0.0), 1.0)
    return _lower_mean(share, count, delta), _upper_mean(share, count, delta)


def _lower_mean(share: float, count: int, delta: float) -> float:
    if share * count < _NEXT_TO_NOTHING:
        return 0.0
    # Poisson tails are heavier, so that their limit is below this one; where it is next to nothing that is all.
    lowest, _ = chernoff_interval(share * count, delta)
    if lowest <= 1e-17 * share * count:
        return lowest / count
    return root_of_concave(_missing(share, count, delta), lowest / count, share)


def _upper_mean(share: float, count: int, delta: float) -> float:
    if share * count < _NEXT_TO_NOTHING:
        return -math.expm1(math.log(delta) / count)
    highest = chernoff_interval(share * count, delta)[1] / count
    if highest >= 0.5:
        return 1.0 - _lower_mean(1.0 - share, count, delta)
    missing = _missing(share, count, delta)

    def mirrored(mean: float) -> tuple[float, float]:
        value, slope = missing(-mean)
        return value, -slope

    return -root_of_concave(mirrored, -highest, -share)  # a small one has its digits this way


def _missing(share: float, count: int, delta: float) -> Callable[[float], tuple[float, float]]:
    """Return what is missing from a divergence of ln(1/delta), a concave function of the mean, and its slope."""
    exponent = math.log(1.0 / delta)

    def missing(mean: float) -> tuple[float, float]:
        divergence = share * math.log(share / mean)
        if share < 1.0:
            divergence += (1.0 - share) * math.log1p((mean - share) / (1.0 - mean))
        return exponent - count * divergence, count * (share - mean) / (mean * (1.0 - mean))

    return missing


def chernoff_intervals(total: FloatArray, delta: float, *, steps: int = 60) -> FloatArray:
    """Return the limits of `chernoff_interval` for many sums at once, low ones first, by Newton's method.

    The function is convex in the mean, so that steps from outside never pass the root: limits after a few of them are
    limits, too, of which six have most digits.
    """
    exponent = -math.log(delta)
    some = _something(total, exponent)
    ends = _nearer(np.stack([_below(some, exponent), _above(some, exponent)]), some, exponent, steps)
    ends[0, total == 0.0] = 0.0
    return ends


def lower_means(total: FloatArray, delta: float, *, steps: int) -> FloatArray:
    """Return the low limits of `chernoff_intervals` alone."""
    exponent = -math.log(delta)
    some = _something(total, exponent)
    ends = _nearer(_below(some, exponent), some, exponent, steps)
    ends[total == 0.0] = 0.0
    return ends


def upper_means(total: FloatArray, delta: float, *, steps: int) -> FloatArray:
    """Return the high limits of `chernoff_intervals` alone."""
    exponent = -math.log(delta)
    some = _something(total, exponent)
    return _nearer(_above(some, exponent), some, exponent, steps)


def _something(total: FloatArray, exponent: float) -> FloatArray:
    some: FloatArray = np.maximum(total, exponent / 600.0)  # below, limits of almost nothing: wide, and no underflow
    return some


def _below(some: FloatArray, exponent: float) -> FloatArray:
    """Return something below the low limit.

    The rest that makes the mean differ from the sum is at least the square of the difference over twice the larger.
    """
    low: FloatArray = np.maximum(some * np.exp(-1.0 - exponent / some), some - np.sqrt(2.0 * exponent * some))
    return low


def _above(some: FloatArray, exponent: float) -> FloatArray:
    """Return something above the high limit, for the same reason."""
    high: FloatArray = some + exponent + np.sqrt(exponent * (exponent + 2.0 * some))
    return high


def _nearer(ends: FloatArray, some: FloatArray, exponent: float, steps: int) -> FloatArray:
    for _ in range(steps):
        step = (some * np.log(some / ends) - some + ends - exponent) / (1.0 - some / ends)
        ends = ends - step
        if (np.abs(step) <= 1e-14 * ends).all():
            break
    return ends


def root_of_concave(function: Callable[[float], tuple[float, float]], low: float, high: float) -> float:
    """Return where an increasing concave function, given with its slope, passes zero between two ends.

    Newton's method from below: tangents lie above the function, so that no step passes the root, but for rounding.
    """
    place = low
    while True:
        value, slope = function(place)
        if value >= 0.0:
            return place
        after = place - value / slope if slope > 0.0 else high
        if after >= high:
            return high
        if after <= place:
            return place
        place = after
