"""One coefficient of a logistic curve at a time: how well the data fix it, by likelihood and by its curvature.

The curve is theta u(z) + lambda v(z) + k(z): a coefficient that is asked about, at most one that is not, and what is
known. The likelihood that is left when lambda is the best for each theta, the profile, is concave in theta, so that
the two places where it has dropped by a given amount are found by Newton steps that cannot go astray.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from calibrant.core.errors import UndefinedError
from calibrant.core.logistic import CHUNK, Points, expit
from calibrant.core.types import FloatArray

_MOST_STEPS = 200
_NEAR = 1e-3  # what the likelihood gains by the best other coefficient where a quadratic tells it to many digits
_CLOSE = 1e-6  # a step towards a limit, as a share of the way, that is the last: the next would be about its square
_ROUNDING = 1e-9  # by which a sum can be off
_LONGEST = 1e30  # step that a flat likelihood may ask for: halved soon enough, and far from overflowing
_FARTHEST = 4.0  # times as far as before, where the likelihood is flatter than its curvature lets expect

Column = Callable[[FloatArray], FloatArray]


class Coefficient(NamedTuple):
    """A coefficient that is asked about: what it multiplies, what the other one does, and what is known."""

    own: Column
    other: Column | None = None
    known: Column | None = None


class Profile:
    """The likelihood of points along one coefficient, around its most likely value.

    Parameters
    ----------
    points : Points
        Values z with their outcomes and weights.
    coefficient : Coefficient
    found, other : float
        The most likely value, and that of the other coefficient.
    """

    def __init__(self, points: Points, coefficient: Coefficient, found: float, other: float = 0.0) -> None:
        self.points, self.coefficient = points, coefficient
        self.found, self.other = found, other
        self._best = self._bends(found, other)

    @property
    def information(self) -> float:
        """The curvature of the profile at its top: one over the variance, by the theory of many rows."""
        return self._best.information

    def dropped(self, found: float, other: float = 0.0) -> float:
        """Return by how much twice the log-likelihood is lower than at the top."""
        return max(2.0 * self._bends(found, other).value, 0.0)

    def wald_error(self) -> float:
        """Return the standard error of independent rows that follow the curve."""
        return 1.0 / math.sqrt(self.information)

    def influence(self, rows: Points) -> FloatArray:
        """Return by how much each of the rows that the points are made of, with its weight, moves the coefficient."""
        value, outcome, weight = rows.value, rows.outcome, rows.weights
        own, other = self.coefficient.own(value), self._other(value)
        residual = outcome - weight * expit(self._linear(value, own, other, self.found, self.other))
        moved: FloatArray = residual * (own - self._best.tangent * other) / self.information
        return moved

    def limits(self, drop: float, pooled: Profile | None = None) -> tuple[float, float]:
        """Return where twice the likelihood has dropped by so much, below and above.

        They are finite wherever the likelihood has a maximum: outcomes that overlap contradict every curve that is
        steep or far enough. ``pooled`` is the profile of a few points much like all of them, from which to start.
        """
        reach = math.sqrt(drop) * self.wald_error()
        starts = [-reach, reach]
        if pooled is not None:
            starts = [limit - pooled.found for limit in pooled.limits(drop)]
        lower, upper = (self._limit(drop, start) for start in starts)
        return lower, upper

    def _limit(self, drop: float, start: float) -> float:
        """Search on the side of the start: Newton steps for the root of the drop, which is nearly linear."""
        side = math.copysign(1.0, start)
        way, inside, outside = abs(start), 0.0, math.inf
        other, target = self.other - self._best.tangent * start, math.sqrt(drop)
        for _ in range(_MOST_STEPS):
            there, other = self._near_top(self.found + side * way, other)
            dropped = 2.0 * there.value_at_best
            if dropped <= drop:
                inside = way
            else:
                outside = way
            root = math.sqrt(max(dropped, 0.0))
            growth = side * there.slope_at_best  # of the drop, per two units of the way
            step = (target - root) * root / growth if growth > 0.0 else math.inf
            if abs(step) <= _CLOSE * way and there.gain <= _CLOSE * drop:
                return self.found + side * (way + step)
            further = way + step
            if not inside < further < outside:
                further = (inside + outside) / 2.0 if outside < math.inf else _FARTHEST * way
            further = min(further, _FARTHEST * way)
            other -= there.other_step + there.tangent * side * (further - way)
            way = further
        raise UndefinedError(
            "the limits of the logistic fit do not settle: the likelihood is too flat or too uneven",
            remedy="take Wald limits, or collect more rows",
        )

    def _near_top(self, found: float, other: float) -> tuple[_Bends, float]:
        """Return the likelihood at a value of the coefficient, with the other one so near its best that a step tells.

        What that step gains is known to more digits than it is worth to take it: one pass over the rows less.
        """
        there = self._bends(found, other)
        for _ in range(_MOST_STEPS):
            if there.gain <= _NEAR:
                break
            step = -there.other_step if there.other_other > 0.0 else -math.copysign(1.0, there.other)
            further = self._bends(found, other + step)
            while not further.value <= there.value + _ROUNDING:
                step /= 2.0
                further = self._bends(found, other + step)
            there, other = further, other + step
        return there, other

    def _other(self, value: FloatArray) -> FloatArray:
        return np.zeros_like(value) if self.coefficient.other is None else self.coefficient.other(value)

    def _linear(self, value: FloatArray, own: FloatArray, other: FloatArray, found: float, beside: float) -> FloatArray:
        linear = found * own + beside * other
        return linear if self.coefficient.known is None else linear + self.coefficient.known(value)

    def _bends(self, found: float, beside: float) -> _Bends:
        """Return by how much the log-likelihood is below its top, with derivatives, some thousand rows at a time.

        The differences are taken point by point: those of sums over billions of rows would have no digits left.
        """
        total = np.zeros(6)
        for begin in range(0, self.points.value.size, CHUNK):
            part = slice(begin, begin + CHUNK)
            value, outcome = self.points.value[part], self.points.outcome[part]
            weight = 1.0 if self.points.weight is None else self.points.weight[part]
            own, other = self.coefficient.own(value), self._other(value)
            linear = self._linear(value, own, other, found, beside)
            moved = (found - self.found) * own + (beside - self.other) * other
            rate = expit(linear)
            apart = weight * rate - outcome
            bend = weight * rate * expit(-linear)
            total += (
                float((weight * _rise(linear, moved) - outcome * moved).sum()),
                float((apart * own).sum()),
                float((apart * other).sum()),
                float((bend * own * own).sum()),
                float((bend * own * other).sum()),
                float((bend * other * other).sum()),
            )
        return _Bends(*total.tolist())


def _rise(linear: FloatArray, moved: FloatArray) -> FloatArray:
    """Return ln(1 + exp(z)) - ln(1 + exp(z - d)), with all digits where d is small."""
    before = linear - moved
    small = np.clip(moved, -1.0, 1.0)
    with np.errstate(under="ignore"):
        near = np.log1p(expit(before) * np.expm1(small))
    return np.where(small == moved, near, np.logaddexp(0.0, linear) - np.logaddexp(0.0, before))


class _Bends(NamedTuple):
    """How far the log-likelihood is below its top, the slopes of that along both coefficients, and its bends."""

    value: float
    own: float
    other: float
    own_own: float
    own_other: float
    other_other: float

    @property
    def tangent(self) -> float:
        """How much less the best other coefficient is per unit of the own one."""
        return self.own_other / self.other_other if self.other_other > 0.0 else 0.0

    @property
    def other_step(self) -> float:
        """How much too large the other coefficient is, as far as a quadratic can tell."""
        if not self.other_other > 0.0:
            return 0.0
        with np.errstate(over="ignore"):
            return float(np.clip(np.divide(self.other, self.other_other), -_LONGEST, _LONGEST))

    @property
    def gain(self) -> float:
        """What twice the likelihood gains by that."""
        if self.other_other > 0.0:
            return self.other * self.other_step
        return math.inf if self.other else 0.0

    @property
    def value_at_best(self) -> float:
        """The value with the best other coefficient."""
        return self.value - self.gain / 2.0

    @property
    def slope_at_best(self) -> float:
        """The slope along the own coefficient there."""
        return self.own - self.tangent * self.other

    @property
    def information(self) -> float:
        """The curvature along the own coefficient, with the best other one everywhere."""
        return self.own_own - self.tangent * self.own_other
