"""Probability laws that large-sample statements rest on and scipy.stats does not have."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from calibrant.core.types import FloatArray, Randomness

_SEAM = 1.5  # near the median: on either side one of the two series needs a few terms only, and no digits cancel
_TERMS = 7  # at the seam the next term of either series is below 1e-30
_NOTHING_BELOW = 0.08  # the distribution function is smaller than every float64 here ...
_NOTHING_ABOVE = 39.0  # ... and here its complement is
_MOST_STEPS = 100  # about ten are needed
_FEW = 1000


def normal_quantile(delta: float) -> float:
    """Return the value that a standard normal variable exceeds with probability delta, however small that is.

    Not the quantile at 1 - delta, which is 1 in floating point for the smallest deltas that are asked for.
    """
    return -NormalDist().inv_cdf(delta)  # scipy.special takes longer to load


def limit_reach(level: float, clusters: int | None = None) -> float:
    """Return how many standard errors limits are away: those of a normal law, of Student's for so many clusters.

    Examples
    --------
    >>> round(limit_reach(0.95), 6), round(limit_reach(0.95, clusters=5), 6)
    (1.959964, 2.776445)
    """
    tail = (1.0 - level) / 2.0
    if clusters is None:
        return normal_quantile(tail)
    from scipy.special import stdtrit

    return -float(stdtrit(clusters - 1.0, tail))


class BrownianRange:
    """Range, largest minus smallest value, of Brownian motion on [0, 1]: a law like those of scipy.stats.

    The residual curve of a calibrated forecaster looks like Brownian motion when there are many rows, and the Cutoff
    calibration error is its range: `calibration_test` compares sqrt(n) Cutoff / sigma with this law. The methods are
    those of scipy's distributions; they take numbers or arrays, and NaN gives NaN.

    Two series are used, each where it converges fast: P(range > x) = 8 sum over k >= 1 of (-1)^(k-1) k (1 - Phi(k x))
    above 1.5, and P(range <= x) = 8 sum over odd j of (1/x^2 + 1/(j pi)^2) exp(-(j pi)^2 / (2 x^2)) below. Absolute
    errors stay below 1e-15; ``cdf`` near 0 and ``sf`` near infinity keep 12 digits down to values of 1e-290.

    References
    ----------
    Feller (1951), The asymptotic distribution of the range of sums of independent random variables, Annals of
    Mathematical Statistics 22.

    Examples
    --------
    >>> from calibrant.core.laws import brownian_range
    >>> brownian_range.cdf([1, 2, 3]).round(6)
    array([0.063365, 0.818506, 0.989201])
    >>> round(brownian_range.ppf(0.95), 4)
    2.4977
    >>> round(brownian_range.mean(), 4)
    1.5958
    """

    __name__ = "brownian_range"

    def cdf(self, x: Any) -> Any:
        """Return P(range <= x)."""
        return _by_parts(x, lower=_lower, upper=lambda above: 1.0 - _upper(above), ends=(0.0, 1.0))

    def sf(self, x: Any) -> Any:
        """Return P(range > x): the p-value of an observed range x, with all its digits however small."""
        return _by_parts(x, lower=lambda below: 1.0 - _lower(below), upper=_upper, ends=(1.0, 0.0))

    def pdf(self, x: Any) -> Any:
        """Return the density at x."""
        return _by_parts(x, lower=_lower_slope, upper=_upper_slope, ends=(0.0, 0.0))

    def ppf(self, q: Any) -> Any:
        """Return the value that the range stays below with probability q; NaN when q is outside [0, 1]."""
        return _quantile(q, from_below=True)

    def isf(self, q: Any) -> Any:
        """Return the value that the range exceeds with probability q: the critical value of a test at level q."""
        return _quantile(q, from_below=False)

    def median(self) -> float:
        """Return the value exceeded half of the time."""
        return float(self.ppf(0.5))

    def mean(self) -> float:
        """Return the mean, 2 sqrt(2/pi)."""
        return 2.0 * math.sqrt(2.0 / math.pi)

    def var(self) -> float:
        """Return the variance, 4 ln 2 - 8/pi."""
        return 4.0 * math.log(2.0) - 8.0 / math.pi

    def std(self) -> float:
        """Return the standard deviation."""
        return math.sqrt(self.var())

    def rvs(self, size: int | tuple[int, ...] | None = None, rng: Randomness = None) -> Any:
        """Return random ranges; ``rng`` is None, a seed or a numpy Generator."""
        return self.ppf(np.random.default_rng(rng).random(size))

    def __repr__(self) -> str:
        return "brownian_range"


brownian_range = BrownianRange()


def _lower(x: FloatArray) -> FloatArray:
    """Return P(range <= x) for x below the seam, with all its digits."""
    total = np.zeros_like(x)
    for j in range(2 * _TERMS - 1, 0, -2):  # smallest term first
        angle = (j * math.pi) ** 2
        total += (1.0 / np.square(x) + 1.0 / angle) * np.exp(-angle / (2.0 * np.square(x)))
    return 8.0 * total


def _lower_slope(x: FloatArray) -> FloatArray:
    total = np.zeros_like(x)
    for j in range(2 * _TERMS - 1, 0, -2):
        angle = (j * math.pi) ** 2
        total += (angle / np.square(x) - 1.0) * np.exp(-angle / (2.0 * np.square(x)))
    return 8.0 * total / x**3


def _upper(x: FloatArray) -> FloatArray:
    """Return P(range > x) for x above the seam, with all its digits."""
    total = np.zeros_like(x)
    for k in range(_TERMS, 0, -1):
        total += (-1.0) ** (k - 1) * k * _erfc(k * x / math.sqrt(2.0))
    return 4.0 * total


def _erfc(x: FloatArray) -> FloatArray:
    """Return the complementary error function; of few values without scipy.special, which takes longer to load."""
    if x.size <= _FEW:
        return np.array([math.erfc(each) for each in x.flat]).reshape(x.shape)
    from scipy.special import erfc

    found: FloatArray = erfc(x)
    return found


def _upper_slope(x: FloatArray) -> FloatArray:
    """Return the density for x above the seam."""
    total = np.zeros_like(x)
    for k in range(_TERMS, 0, -1):
        total += (-1.0) ** (k - 1) * k**2 * np.exp(-np.square(k * x) / 2.0)
    return 8.0 / math.sqrt(2.0 * math.pi) * total


def _by_parts(x: Any, *, lower: Any, upper: Any, ends: tuple[float, float]) -> Any:
    """Apply one function below the seam and one above, and constants where nothing is left to compute."""
    values = np.asarray(x, dtype=np.float64)
    result = np.full(values.shape, np.nan)
    result[values < _NOTHING_BELOW] = ends[0]
    result[values > _NOTHING_ABOVE] = ends[1]
    with np.errstate(under="ignore"):
        for function, low, high in ((lower, _NOTHING_BELOW, _SEAM), (upper, _SEAM, _NOTHING_ABOVE)):
            inside = (values >= low) & ((values < high) if high == _SEAM else (values <= high))
            if inside.any():
                result[inside] = function(values[inside])
    return float(result) if result.ndim == 0 else result


def _quantile(q: Any, *, from_below: bool) -> Any:
    """Invert whichever tail the probability lies in, so that tiny ones lose no digits."""
    values = np.asarray(q, dtype=np.float64)
    result = np.full(values.shape, np.nan)
    result[values == (0.0 if from_below else 1.0)] = 0.0
    result[values == (1.0 if from_below else 0.0)] = np.inf
    seam = float(_lower(np.array(_SEAM))) if from_below else float(_upper(np.array(_SEAM)))
    near, far = (values > 0.0) & (values <= seam), (values > seam) & (values < 1.0)
    for part, tail, lower in ((near, values, from_below), (far, 1.0 - values, not from_below)):
        if part.any():
            result[part] = _inverse(tail[part], lower=lower)
    return float(result) if result.ndim == 0 else result


def _inverse(tail: FloatArray, *, lower: bool) -> FloatArray:
    """Solve tail probability = given for x: Newton steps on the logarithm, halving the bracket when one leaves it."""
    probability, density = (_lower, _lower_slope) if lower else (_upper, _upper_slope)
    # A hair beyond the seam, because the probability that led to this side is rounded.
    left = np.full(tail.shape, _NOTHING_BELOW if lower else _SEAM - 1e-6)
    right = np.full(tail.shape, _SEAM + 1e-6 if lower else _NOTHING_ABOVE)
    x = np.full(tail.shape, 1.0 if lower else 2.5)
    for _ in range(_MOST_STEPS):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            reached = probability(x)
            excess = np.log(reached / tail)
            too_far = (excess > 0.0) == lower
            right, left = np.where(too_far, x, right), np.where(too_far, left, x)
            guess = x - (excess if lower else -excess) * reached / density(x)
        guess = np.where((guess >= left) & (guess <= right), guess, (left + right) / 2.0)
        settled = np.abs(guess - x) <= 1e-15 * x
        x = guess
        if settled.all():
            break
    return x
