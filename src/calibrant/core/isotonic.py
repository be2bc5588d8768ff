"""Isotonic least squares: the best non-decreasing curve through weighted values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.core.types import BoolArray, FloatArray, IntArray

_MOST_PASSES = 64
"""Outcomes of forecasts take some 20 for millions of entries."""


class IsotonicFit(NamedTuple):
    """A curve of steps: their values, and the entries at which they begin, followed by the end of the last one."""

    level: FloatArray
    borders: IntArray

    @property
    def curve(self) -> FloatArray:
        """Its value at each entry."""
        return np.repeat(self.level, np.diff(self.borders))


def isotonic_fit(values: FloatArray, weight: npt.NDArray[Any], *, increasing: bool = True) -> IsotonicFit:
    """Return the best non-decreasing curve, or the best non-increasing one.

    Neighbours that do not rise lie on one step of the curve, whatever the others are. All of them are joined at once,
    then steps that do not rise, and so on: arrays need no compiled loop, nor the second that scipy.optimize takes to
    load. What still falls after many passes, as values made to do so can, is left to scipy.

    Examples
    --------
    >>> fit = isotonic_fit(np.array([0.0, 1.0, 0.5, 2.0]), np.ones(4))
    >>> fit.level, fit.borders
    (array([0.  , 0.75, 2.  ]), array([0, 1, 3, 4]))
    """
    sign = 1.0 if increasing else -1.0
    starts, level, joined = _joined(sign * values, weight.astype(np.float64), None, _MOST_PASSES)
    if starts.size > 1 and not (level[1:] > level[:-1]).all():
        from scipy.optimize import isotonic_regression

        fit = isotonic_regression(level, weights=joined)
        steps = fit.blocks[:-1].astype(np.int64)
        starts, level = starts[steps], fit.x[steps]
    return IsotonicFit(sign * level, np.append(starts, values.size))


def isotonic_curves(values: FloatArray, weight: npt.NDArray[Any]) -> FloatArray:
    """Return the best non-decreasing curve through each line of values, which share their weights."""
    lines, size = values.shape
    ends: BoolArray = np.zeros(values.size, dtype=bool)
    ends[size - 1 :: size] = True
    starts, level, _ = _joined(values.ravel(), np.tile(weight.astype(np.float64), lines), ends[:-1], size)
    return IsotonicFit(level, np.append(starts, values.size)).curve.reshape(values.shape)


def _joined(
    values: FloatArray, weight: FloatArray, apart: BoolArray | None, passes: int
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Join neighbours that do not rise, so many times; return where steps begin, their values and weights.

    ``apart`` says which entries are never joined with the next one.
    """
    starts, level, total = np.arange(values.size), values, values * weight
    for _ in range(passes):
        stays = level[1:] > level[:-1]
        if apart is not None:
            stays |= apart
        if stays.all():
            break
        first = np.append(0, np.flatnonzero(stays) + 1)
        if apart is not None:
            apart = apart[first[1:] - 1]
        total, weight = np.add.reduceat(total, first), np.add.reduceat(weight, first)
        # Neighbours that are joined fall, from the first to the last: rounding takes no mean of theirs out of between.
        last = np.append(first[1:], level.size) - 1
        starts, level = starts[first], np.clip(total / weight, level[last], level[first])
    return starts, level, weight
