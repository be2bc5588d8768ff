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
_SETTLED = 1e-13  # what the likelihood can still gain
_CLOSE = 1e-11  # a step towards a limit, as a share of the way from the estimate, that is the last
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

    def cost(self, found: float | None = None) -> float:
        """Return minus the log-likelihood at the top, or at a value where there is no other coefficient."""
        return self._best.value if found is None else self._bends(found, self.other).value

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
            there, other = self._best_other(self.found + side * way, other)
            dropped = 2.0 * (there.value - self._best.value)
            if dropped <= drop:
                inside = way
            else:
                outside = way
            root = math.sqrt(max(dropped, 0.0))
            growth = side * there.own  # of the drop, per two units of the way
            step = (target - root) * root / growth if growth > 0.0 else math.inf
            if abs(step) <= _CLOSE * way:
                return self.found + side * (way + step)
            further = way + step
            if not inside < further < outside:
                further = (inside + outside) / 2.0 if outside < math.inf else _FARTHEST * way
            further = min(further, _FARTHEST * way)
            other -= there.tangent * side * (further - way)
            way = further
        raise UndefinedError(
            "the limits of the logistic fit do not settle: the likelihood is too flat or too uneven",
            remedy="take Wald limits, or collect more rows",
        )

    def _best_other(self, found: float, other: float) -> tuple[_Bends, float]:
        """Return the likelihood at a value of the coefficient, with the best value of the other one."""
        there = self._bends(found, other)
        if self.coefficient.other is None:
            return there, other
        for _ in range(_MOST_STEPS):
            if there.other * there.other <= _SETTLED * there.other_other:
                return there, other
            step = -there.other / there.other_other if there.other_other > 0.0 else -math.copysign(1.0, there.other)
            further = self._bends(found, other + step)
            while not further.value <= there.value + 1e-12 * abs(there.value):
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
        """Return minus the log-likelihood with its first and second derivatives, some thousand rows at a time."""
        total = np.zeros(6)
        for begin in range(0, self.points.value.size, CHUNK):
            part = slice(begin, begin + CHUNK)
            value, outcome = self.points.value[part], self.points.outcome[part]
            weight = 1.0 if self.points.weight is None else self.points.weight[part]
            own, other = self.coefficient.own(value), self._other(value)
            linear = self._linear(value, own, other, found, beside)
            rate = expit(linear)
            apart = weight * rate - outcome
            bend = weight * rate * expit(-linear)
            total += (
                float((weight * np.logaddexp(0.0, linear) - outcome * linear).sum()),
                float((apart * own).sum()),
                float((apart * other).sum()),
                float((bend * own * own).sum()),
                float((bend * own * other).sum()),
                float((bend * other * other).sum()),
            )
        return _Bends(*total.tolist())


class _Bends(NamedTuple):
    """Minus the log-likelihood, its slopes along both coefficients, and its second derivatives."""

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
    def information(self) -> float:
        return self.own_own - self.tangent * self.own_other
