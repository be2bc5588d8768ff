"""Logistic curves: the most likely one through weighted outcomes, and when there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.core.types import FloatArray

CHUNK = 1 << 15
"""Rows that stay in the processor's cache from one operation to the next."""

_HELD_ROWS = 4 * CHUNK  # of which the features, some MB, are kept from one step to the next

_NEWTON_STEPS = 500
_SURE = 1e-10  # squared step, in the likelihood's own metric, below which Newton steps need no check ...
_SETTLED = 1e-18  # ... and below which the step just taken was the last: the next would be its square
_FLAT = 1e-6  # largest gradient at a maximum: where all rates are 0 or 1 to the last digit, no step is left either
_ENOUGH_DESCENT = 1e-4
_NEARLY_SINGULAR = 1e-6  # what is left of a diagonal entry by the elimination of those before it

Features = Callable[[FloatArray], FloatArray]
"""Turns n values into k rows of n numbers that a curve is linear in."""


class Points(NamedTuple):
    """What a curve is fitted to: values in any order, the sum of w y and the sum of w at each (None for ones)."""

    value: FloatArray
    outcome: npt.NDArray[Any]
    weight: npt.NDArray[Any] | None = None

    @property
    def weights(self) -> FloatArray:
        """The weights in float64, ones included."""
        return np.ones(self.value.size) if self.weight is None else self.weight.astype(np.float64)


class Curve(NamedTuple):
    """The linear part of a logistic curve: level plus slopes times what features are above their centres.

    ``settled`` is whether the search found it; a likelihood can be too flat for that.
    """

    slopes: FloatArray
    centres: FloatArray
    level: float
    settled: bool

    @property
    def intercept(self) -> float:
        """The level where all features are 0."""
        return self.level - float(self.slopes @ self.centres)


def fit_logistic(
    points: Points,
    features: Features,
    *,
    pooled: Points,
    targets: tuple[float, float] = (0.0, 1.0),
    offset: Features | None = None,
    intercept: bool = True,
    not_negative: bool = False,
) -> Curve:
    """Return the most likely logistic curve.

    Parameters
    ----------
    points : Points
    features : callable
        What the curve is linear in.
    pooled : Points
        A few points much like all of them. The fit to these is the start, so good that one or two passes over all
        points are left.
    targets : tuple of float
        What outcomes of 0 and 1 count as.
    offset : callable, optional
        A part of the curve that is known: one row of numbers to which the fitted part is added.
    intercept : bool
        Whether the level is fitted too; 0 otherwise.
    not_negative : bool
        Whether the slopes must not be negative.
    """
    column = features(pooled.value)
    centre, scale = _centre_and_scale(column, pooled.weights / pooled.weights.sum(), intercept=intercept)
    kept = (features, offset, targets, centre, scale, intercept, not_negative)
    start = np.zeros(len(column) + intercept)
    if pooled.value.size < points.value.size:
        start, settled = _Likelihood(pooled, *kept).maximise(start)
        if not settled:
            start = np.zeros_like(start)
    found, settled = _Likelihood(points, *kept).maximise(start)
    with np.errstate(over="ignore"):
        slopes = found[: len(column)] / scale
    return Curve(slopes, centre, float(found[-1]) if intercept else 0.0, settled)


def _centre_and_scale(column: FloatArray, share: FloatArray, *, intercept: bool) -> tuple[FloatArray, FloatArray]:
    """Return mean and root mean square of each feature, in an order in which no scale of scores overflows."""
    centre = column @ share if intercept else np.zeros(len(column))
    apart = column - centre[:, None]
    widest = np.maximum(np.abs(apart).max(axis=1), np.finfo(np.float64).tiny)
    scale = widest * np.sqrt(np.square(apart / widest[:, None]) @ share)
    scale[scale == 0.0] = 1.0
    return centre, scale


class _Likelihood:
    """The mean negative log-likelihood of a logistic curve: convex, and minimised by damped Newton steps.

    The features are brought to mean 0 and mean square 1, so that the two-by-two or three-by-three systems are well
    conditioned whatever the scale of the scores.
    """

    def __init__(
        self,
        points: Points,
        features: Features,
        offset: Features | None,
        targets: tuple[float, float],
        centre: FloatArray,
        scale: FloatArray,
        intercept: bool,
        not_negative: bool,
    ) -> None:
        self.points, self.features, self.offset, self.targets = points, features, offset, targets
        self.centre, self.scale = centre[:, None], scale[:, None]
        self.intercept = intercept
        self.total = float(points.value.size if points.weight is None else points.weight.sum())
        self.bounded = np.zeros(len(centre) + intercept, dtype=bool)
        self.bounded[: len(centre)] = not_negative
        self.is_bounded = not_negative
        # What the coefficients do not change is kept where it is small, and computed anew at each step where it is not.
        self.held = list(self._parts()) if points.value.size <= _HELD_ROWS else None

    def _chunks(self, coefficient: FloatArray) -> Iterator[tuple[FloatArray, FloatArray, FloatArray, Any]]:
        """Go through (features, linear part, targets, weights) of some thousand rows at a time."""
        for columns, offset, target, weight in self._parts() if self.held is None else self.held:
            linear = coefficient @ columns
            if offset is not None:
                linear += offset
            yield columns, linear, target, weight

    def _parts(self) -> Iterator[tuple[FloatArray, FloatArray | None, FloatArray, Any]]:
        low, high = self.targets
        for begin in range(0, self.points.value.size, CHUNK):
            part = slice(begin, begin + CHUNK)
            value = self.points.value[part]
            columns = (self.features(value) - self.centre) / self.scale
            if self.intercept:
                columns = np.concatenate([columns, np.ones((1, columns.shape[1]))])
            offset = None if self.offset is None else self.offset(value)
            weight = 1.0 if self.points.weight is None else self.points.weight[part].astype(np.float64)
            yield columns, offset, low * weight + (high - low) * self.points.outcome[part], weight

    def value_at(self, coefficient: FloatArray) -> float:
        """Return the mean of w ln(1 + exp(z)) - t z."""
        total = 0.0
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far is worse than any other, or no number
            for _, linear, target, weight in self._chunks(coefficient):
                total += float((weight * np.logaddexp(0.0, linear) - target * linear).sum())
        return total / self.total

    def slope_and_bend(self, coefficient: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the matrix of second derivatives."""
        slope = np.zeros(coefficient.size)
        bend = np.zeros((coefficient.size, coefficient.size))
        for columns, linear, target, weight in self._chunks(coefficient):
            rate = expit(linear)
            expected = weight * rate
            # As fast as products of matrices, whose threads wait for each other for long on a busy machine.
            slope += np.einsum("in,n->i", columns, expected - target)
            bend += np.einsum("in,jn->ij", columns * (expected * (1.0 - rate)), columns)
        return slope / self.total, bend / self.total

    def maximise(self, start: FloatArray) -> tuple[FloatArray, bool]:
        """Return the best coefficients, and whether the search settled.

        Newton steps in the coefficients that are free to move (Bertsekas' projected Newton method: those at their bound
        that want to cross it stay), each halved until the likelihood improves by a share of what its slope promises.
        The function is convex, so this converges from any start; close to the end full steps are taken unchecked,
        because the improvement is then below what sums of many rows can show.
        """
        found, value = start, None
        for _ in range(_NEWTON_STEPS):
            slope, bend = self.slope_and_bend(found)
            step, is_flat = self._newton_step(found, slope, bend)
            decrement = float(-slope @ step)
            there = self._inside(found + step)
            if decrement > _SURE or (self.is_bounded and not np.array_equal(there, found + step)):
                value = self.value_at(found) if value is None else value
                while not (lower := self.value_at(there)) <= value + _ENOUGH_DESCENT * float(slope @ (there - found)):
                    step = step / 2.0
                    there = self._inside(found + step)
                    if np.array_equal(there, found):
                        return found, decrement <= _SURE and is_flat
                found, value = there, lower
                continue
            found, value = there, None
            if decrement <= _SETTLED:
                return found, is_flat
        return found, False

    def _newton_step(self, found: FloatArray, slope: FloatArray, bend: FloatArray) -> tuple[FloatArray, bool]:
        """Return the step of the coefficients that are free to move, and whether the likelihood is flat there."""
        step = np.zeros_like(found)
        free = ~(self.bounded & (found <= 0.0) & (slope > 0.0)) if self.is_bounded else np.ones(found.size, dtype=bool)
        if free.all():
            step -= _solved(bend, slope)
        else:
            step[free] = -_solved(bend[np.ix_(free, free)], slope[free])
        return step, bool(np.abs(slope[free]).max(initial=0.0) <= _FLAT)

    def _inside(self, coefficient: FloatArray) -> FloatArray:
        return np.where(self.bounded, np.maximum(coefficient, 0.0), coefficient) if self.is_bounded else coefficient


def _solved(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a positive definite system of a few equations; by least squares where it is nearly singular.

    Elimination number by number takes a tenth of the time that numpy needs to be called.
    """
    rows = [[*row, value] for row, value in zip(matrix.tolist(), right.tolist(), strict=True)]
    size = len(rows)
    for k, pivot in enumerate(rows):
        if not pivot[k] > _NEARLY_SINGULAR * matrix.item(k, k):
            return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0], dtype=np.float64)
        for row in rows[k + 1 :]:
            share = row[k] / pivot[k]
            for j in range(k + 1, size + 1):
                row[j] -= share * pivot[j]
    found = np.empty(size)
    for k in range(size - 1, -1, -1):
        rest = sum(rows[k][j] * found.item(j) for j in range(k + 1, size))
        found[k] = (rows[k][size] - rest) / rows[k][k]
    return found


def pool(points: Points, *, size: int) -> Points:
    """Pool neighbours, values in increasing order, into at most ``size`` groups of similar weight at their mean."""
    weight = points.weights
    through = np.cumsum(weight)
    group = np.minimum(((through - weight / 2.0) / through[-1] * size).astype(np.int64), size - 1)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    total = np.add.reduceat(weight, starts)
    share = weight / np.repeat(total, np.diff(starts, append=weight.size))  # first, so that huge scores do not overflow
    return Points(np.add.reduceat(share * points.value, starts), np.add.reduceat(points.outcome, starts), total)


Separation = Literal["no events", "only events", "upwards", "downwards"]


def separation(points: Points) -> Separation | None:
    """Return why the likelihood has no maximum: one class only, or values that part the classes; None where it has one.

    Values that are all the same part nothing: the curve is then a constant.
    """
    value, outcome, weight = points
    some_on, some_off = value[outcome > 0.0], value[outcome < (1.0 if weight is None else weight)]
    if some_on.size == 0 or some_off.size == 0:
        return "no events" if some_on.size == 0 else "only events"
    if value.min() == value.max():
        return None
    if some_on.min() >= some_off.max():
        return "upwards"
    return "downwards" if some_off.min() >= some_on.max() else None


def logit(value: FloatArray) -> FloatArray:
    """Return ln(p / (1 - p)), infinite at 0 and 1."""
    with np.errstate(divide="ignore"):
        linear: FloatArray = np.log(value) - np.log1p(-value)
    return linear


def logit_of(share: float) -> float:
    """Return ln(p / (1 - p)) of one number strictly between 0 and 1."""
    return math.log(share) - math.log1p(-share)


def expit(linear: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(-z)), with all digits where it is close to 0."""
    with np.errstate(over="ignore", under="ignore"):
        odds = np.exp(-np.abs(linear))
        rate: FloatArray = np.where(linear >= 0.0, 1.0, odds) / (1.0 + odds)
    return rate
