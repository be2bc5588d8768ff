"""Local regression in one dimension: Cleveland's loess, as R fits it by default, and his lowess.

Both are linear in the outcomes, and read a row of weight 3 as three rows. Values increase; outcomes and weights are
sums over the rows at each value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrant.core.logistic import Points
from calibrant.core.types import FloatArray, IntArray

_MARGIN = 0.005  # by which part of the range the outer vertices lie beyond the values
_CELL = 0.2  # a cell holds at most this part of the rows of a local fit
_ROUNDING = 1e-5
_SINGULAR = 1e-6  # least eigenvalue of products of columns of unit length that normal equations are solved with
_NO_RANK = 100.0 * np.finfo(np.float64).eps
_STEP = 0.01  # lowess is fitted at values at least this part of the range apart
_FLAT = 0.001  # spread of the values of a local fit, as a part of their range, below which it has no slope


@dataclass(frozen=True, eq=False)
class Pieces:
    """A curve of cubic pieces: its values and slopes at some places, in increasing order."""

    place: FloatArray
    value: FloatArray
    slope: FloatArray

    def __call__(self, places: FloatArray) -> FloatArray:
        """Return the curve at some places; beyond its ends it is level."""
        at = np.clip(places, self.place[0], self.place[-1])
        left = np.clip(np.searchsorted(self.place, at, side="left") - 1, 0, self.place.size - 2)
        width = np.diff(self.place)[left]
        along = (at - self.place[left]) / width
        back = 1.0 - along
        found: FloatArray = (
            back * back * (1.0 + 2.0 * along) * self.value[left]
            + along * along * (3.0 - 2.0 * along) * self.value[left + 1]
            + (back * self.slope[left] - along * self.slope[left + 1]) * (along * back * width)
        )
        return found


class _Windows:
    """The nearest rows around any place, for one number of rows."""

    def __init__(self, value: FloatArray, weight: FloatArray, rows: float) -> None:
        through = np.concatenate([[0.0], np.cumsum(weight)])
        first = np.arange(np.searchsorted(through, through[-1] - rows * (1.0 - 1e-9), side="right"))
        last = np.searchsorted(through, through[first] + rows * (1.0 - 1e-9), side="left") - 1
        self.value = value
        self.low, self.high = value[first], value[np.minimum(last, value.size - 1)]
        self.middle = self.low + self.high

    def reach(self, place: float) -> float:
        """Return how far the rows reach that are nearest to a place: the least reach of all runs of so many rows."""
        found = int(np.searchsorted(self.middle, 2.0 * place))
        near = slice(max(found - 1, 0), found + 1)
        return float(np.maximum(place - self.low[near], self.high[near] - place).min())

    def inside(self, place: float, reach: float) -> slice:
        """Return the values that are within reach."""
        begin, end = np.searchsorted(self.value, [place - reach, np.nextafter(place + reach, np.inf)])
        return slice(int(begin), int(end))


def loess(points: Points, span: float) -> Pieces:
    """Fit R's ``loess(y ~ value, span)``: local parabolas with tricube weights at a few places, cubic between them.

    The places are those of R (surface="interpolate"): the ends, a little beyond the values, and the medians of cells
    that are halved until none holds more than a fifth of the rows of a local fit. In between the curve is the cubic
    that has the values and slopes of the parabolas at both ends.
    """
    value, weight = points.value, points.weights
    rows = math.floor(float(weight.sum()) * span + _ROUNDING)
    place = _vertices(value, weight, math.floor(float(weight.sum()) * span * _CELL))
    windows = _Windows(value, weight, max(min(rows, float(weight.sum())), 1.0))
    reach = np.array([windows.reach(each) for each in place.tolist()])
    found = np.array(
        [_parabola(points, weight, *each, windows) for each in zip(place.tolist(), reach.tolist(), strict=True)]
    )
    return Pieces(place, found[:, 0], found[:, 1])


def _vertices(value: FloatArray, weight: FloatArray, most: int) -> FloatArray:
    """Return where the parabolas stand: the ends of the cells of R's tree."""
    through = np.rint(np.cumsum(weight)).astype(np.int64)
    low, high = float(value[0]), float(value[-1])
    margin = _MARGIN * max(high - low, 1e-10 * max(abs(low), abs(high)) + 1e-30)
    found = {low - margin, high + margin}
    cells = [(1, int(through[-1]), low - margin, high + margin)]
    while cells:
        first, last, left, right = cells.pop()
        if last - first + 1 <= max(most, 0) or last < first:
            continue
        cut = _cut(through, first, last)
        at = float(value[np.searchsorted(through, cut)])
        if at in (left, right):
            continue
        found.add(at)
        cells += [(first, cut, left, at), (cut + 1, last, at, right)]
    return np.array(sorted(found))


def _cut(through: IntArray, first: int, last: int) -> int:
    """Return the row after which a cell is cut: its middle one, or the nearest before which or after which ties end."""
    middle = (first + last) // 2
    entry = int(np.searchsorted(through, middle))
    up = int(through[entry]) - middle
    down = middle - (int(through[entry - 1]) if entry else 0)
    nearest = up if up <= down else -down
    return middle + nearest if abs(nearest) < last - middle else middle


def _parabola(points: Points, weight: FloatArray, place: float, reach: float, windows: _Windows) -> tuple[float, float]:
    """Return value and slope of the local parabola at a place."""
    inside = windows.inside(place, reach)
    offset = points.value[inside] - place
    if reach > 0.0:
        offset /= reach
        near = _tricube(np.abs(offset))
    else:
        near = np.ones(offset.size)
    if not near.any():  # all rows of the fit are equally far
        near = np.ones(offset.size)
    local, target = near * weight[inside], near * points.outcome[inside]
    if reach == 0.0:
        return float(target.sum() / local.sum()), 0.0
    square, first = offset * offset, local * offset
    sums = [float(local.sum()), float(first.sum()), float(first @ offset), float(first @ square)]
    sums.append(float((local * square) @ square))
    products = np.array([sums[0:3], sums[1:4], sums[2:5]])
    length = np.sqrt(np.diagonal(products))
    length = np.where(length > 0.0, length, 1.0)
    scaled = products / np.outer(length, length)
    if np.linalg.eigvalsh(scaled)[0] > _SINGULAR:
        right = np.array([float(target.sum()), float(target @ offset), float(target @ square)])
        found = np.linalg.solve(scaled, right / length) / length
    else:  # few distinct values: the shortest solution, as in R
        root = np.sqrt(local)
        design = np.stack([root, root * offset, root * square], axis=1) / length
        goal = np.divide(target, root, out=np.zeros_like(root), where=root > 0.0)
        found = np.linalg.lstsq(design, goal, rcond=_NO_RANK)[0] / length
    return float(found[0]), float(found[1] / reach)


@dataclass(frozen=True, eq=False)
class Steps:
    """A curve that is linear between some places."""

    place: FloatArray
    value: FloatArray

    def __call__(self, places: FloatArray) -> FloatArray:
        """Return the curve at some places; beyond its ends it is level."""
        found: FloatArray = np.interp(places, self.place, self.value)
        return found


def lowess(points: Points, span: float) -> Steps:
    """Fit R's ``lowess(value, y, f=span, iter=0)``: local lines with tricube weights, at values 1% of the range apart.

    ``iter=0`` since outcomes of 0 and 1 have no outliers.
    """
    value, weight = points.value, points.weights
    total = float(weight.sum())
    rows = min(max(math.floor(span * total + 1e-7), 2.0), total)
    windows = _Windows(value, weight, rows)
    spread = float(value[-1] - value[0])
    chosen = [0]
    while chosen[-1] < value.size - 1:
        ahead = int(np.searchsorted(value, value[chosen[-1]] + _STEP * spread, side="right")) - 1
        chosen.append(max(ahead, chosen[-1] + 1))
    place = value[chosen]
    found = [_line(points, weight, each, windows, spread) for each in place.tolist()]
    return Steps(place, np.array(found))


def _line(points: Points, weight: FloatArray, place: float, windows: _Windows, spread: float) -> float:
    """Return the value of the local line at a place."""
    reach = windows.reach(place)
    inside = windows.inside(place, 0.999 * reach)
    offset = points.value[inside] - place
    if reach > 0.0:
        near = _tricube(np.abs(offset) / reach)
        near[np.abs(offset) <= 0.001 * reach] = 1.0
    else:
        near = np.ones(offset.size)
    local, target = near * weight[inside], near * points.outcome[inside]
    total, level = float(local.sum()), float(target.sum())
    centre = float(local @ offset) / total
    square = float(local @ np.square(offset - centre)) / total
    if not math.sqrt(square) > _FLAT * spread:
        return level / total
    slope = (float(offset @ target) - centre * level) / square
    return (level - slope * centre) / total


def _tricube(part: FloatArray) -> FloatArray:
    """Return (1 - part^3)^3, in the memory of its argument's cube and without slow powers."""
    cube = part * part
    cube *= part
    np.subtract(1.0, cube, out=cube)
    np.maximum(cube, 0.0, out=cube)
    found: FloatArray = cube * cube
    found *= cube
    return found
