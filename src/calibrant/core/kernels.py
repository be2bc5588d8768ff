"""The few loops that numpy cannot express, or slowly, each with its contract in plain language.

Every kernel is ordinary Python that numba can compile. Short inputs run as plain Python, so that a first call never
waits for a compiler; long ones are compiled once and kept in numba's cache on disk (beside the package, or in the
user's own cache folder when the package is installed read-only). Where that cache cannot be read or written they are
compiled in memory, once per process. What numpy or Python's own lists can do, if slowly, they do until so many rows
went through them that compiling pays. What a process has compiled serves its short inputs, too: all of them give the
same, to the last bit.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable
from functools import update_wrapper
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from calibrant.core.types import FloatArray, IntArray

PLAIN_LIMIT = 16_384
"""Inputs up to this many entries run as plain Python: some hundredths of a second, against two to compile a loop."""

MIX_FIRST, MIX_SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
"""Factors that scramble 64 bits, those of splitmix64."""

_ROWS_AT_ONCE = 2**16
"""Rows that numpy goes through at a time, so that what lies between stays in the processor's cache."""

_ONE_AT_A_TIME = threading.Lock()

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


class Kernel(Generic[Parameters, Returned]):
    """A loop over arrays that runs compiled when its first array is long, or once it was; plain or in numpy before.

    Its last arrays, as many as it ``writes``, are what it adds to; the others stay as they are.
    """

    def __init__(self, function: Callable[Parameters, Returned], *, writes: int = 0) -> None:
        update_wrapper(self, function)
        self.plain = function
        self.writes = writes
        self.other: Callable[Parameters, Returned] | None = None  # what gives the same without being compiled
        self.patience = 0  # entries that go through it before the loop is compiled
        self._passed = 0  # and those that did
        self._compiled: Callable[..., Returned] | None = None
        self._seen: set[tuple[object, ...]] = set()  # kinds of arguments that there is a compiled version for

    def compiled(self, *, cached: bool = True) -> Callable[..., Returned]:
        """Return the compiled loop, importing numba the first time."""
        with _ONE_AT_A_TIME:  # threads that share it compile it once
            if self._compiled is None or not cached:
                import numba

                try:
                    self._compiled = numba.njit(cache=cached, nogil=True)(self.plain)
                except RuntimeError:  # no folder numba may write to
                    self._compiled = numba.njit(nogil=True)(self.plain)
            return self._compiled

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        """Run the loop."""
        first: Any = args[0]
        if tuple(map(_kind, args)) in self._seen:
            return self.run_compiled(*args, **kwargs)
        if self.other is not None:
            self._passed += first.size
            if self._passed <= self.patience:
                return self.other(*args, **kwargs)
        elif first.size <= PLAIN_LIMIT:
            return self.plain(*args, **kwargs)
        return self.run_compiled(*args, **kwargs)

    def otherwise(self, patience: int) -> Callable[[Callable[Parameters, Returned]], Callable[Parameters, Returned]]:
        """Decorate what gives the same, to the last bit, without being compiled.

        So many entries go through it in all before the loop is compiled: about half of what takes as long as that.
        """

        def decorate(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
            self.other, self.patience = function, patience
            return function

        return decorate

    def run_compiled(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        """Run the loop compiled, however short its arrays are: for callers who know that it goes through them often."""
        # Numba compiles a separate version for writable and for read-only arrays: hand it read-only views only.
        kept = len(args) - self.writes
        given = [*map(_read_only, args[:kept]), *args[kept:]]
        compiled = self.compiled()
        try:
            found = compiled(*given, **kwargs)
        except Exception:  # a full disk or a damaged file in the cache can raise anything; the loops themselves do not
            self._forget(compiled)
            found = self.compiled(cached=False)(*given, **kwargs)
        self._seen.add(tuple(map(_kind, args)))
        return found

    def _forget(self, compiled: Any) -> None:
        """Remove what the cache on disk lists of this loop.

        Numba lists a file before it writes it, so that a full disk can leave a list that names a file of an older
        version; and a damaged list would be read by every process to come.
        """
        folder, line = compiled.stats.cache_path, self.plain.__code__.co_firstlineno
        with contextlib.suppress(OSError, TypeError):  # the latter: there is no folder
            for index in Path(folder).glob(f"*{self.plain.__name__}-{line}.*.nbi"):
                index.unlink()


def _kind(value: Any) -> object:
    """Return what numba tells arguments apart by."""
    return (value.dtype, value.ndim) if isinstance(value, np.ndarray) else type(value)


def _read_only(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    view = np.ascontiguousarray(value).view()
    view.flags.writeable = False
    return view


@Kernel
def cell_totals(
    y_prob: FloatArray,
    y_true: npt.NDArray[Any],
    sample_weight: FloatArray,
    scale: float,
    first: int,
    size: int,
    low: float,
    high: float,
    rounder: float,
) -> FloatArray:
    """Totals per dyadic cell floor(p * scale) - first of the rows with low <= p <= high.

    The last cell also takes what rounds up to its end. Columns: rows, w r, w r^2, w y, smallest p, largest p and,
    unless ``sample_weight`` is empty (unit weights), w, w^2, w^2 r^2. Rows of weight zero are left out. Where outcomes
    are 0 or 1 and weights 1, ``rounder`` is 0; otherwise adding and taking it off rounds to numbers that add up
    exactly, as `rounder_of` says.
    """
    weighted = sample_weight.size > 0
    counted = rounder == 0.0
    width = 1.0 / scale
    # Many like numbers in one cell would pile up rounding errors. Ways from its edge are tiny beside residuals, which
    # is enough where outcomes can be counted; otherwise what is rounded off is added up in further columns.
    columns = 9 if weighted else 6
    totals = np.zeros((size, columns if counted else columns + 3))
    for number in range(size):
        totals[number, 4] = np.inf
        totals[number, 5] = -np.inf
    for i in range(y_prob.size):
        forecast = y_prob[i]
        if not low <= forecast <= high:
            continue
        # p * scale is exact, so the cell is the same on every machine and engine.
        number = min(int(forecast * scale) - first, size - 1)
        cell = totals[number]
        outcome = float(y_true[i])
        residual = outcome - forecast
        weighted_residual = residual
        if weighted:
            weight = sample_weight[i]
            if weight == 0.0:
                continue
            rounded = (weight + rounder) - rounder
            cell[6] += rounded
            cell[columns + 2] += weight - rounded
            cell[7] += weight * weight
            outcome *= weight
            weighted_residual *= weight
            cell[8] += weighted_residual * weighted_residual
        if counted:
            cell[1] += forecast - width * (first + number)
            cell[3] += outcome
        else:
            rounded = (weighted_residual + rounder) - rounder
            cell[1] += rounded
            cell[columns] += weighted_residual - rounded
            rounded = (outcome + rounder) - rounder
            cell[3] += rounded
            cell[columns + 1] += outcome - rounded
        cell[2] += weighted_residual * residual
        cell[0] += 1.0
        cell[4] = min(cell[4], forecast)
        cell[5] = max(cell[5], forecast)
    for number in range(size):
        cell = totals[number]
        if counted:
            cell[1] = cell[3] - cell[0] * (width * (first + number)) - cell[1]
        else:
            cell[1] += cell[columns]
            cell[3] += cell[columns + 1]
            if weighted:
                cell[6] += cell[columns + 2]
    return totals[:, :columns]


@cell_totals.otherwise(12_000_000)
def cell_totals_in_numpy(
    y_prob: FloatArray,
    y_true: npt.NDArray[Any],
    sample_weight: FloatArray,
    scale: float,
    first: int,
    size: int,
    low: float,
    high: float,
    rounder: float,
) -> FloatArray:
    """As `cell_totals`: numpy adds in the order of the rows, too."""
    weighted, counted = sample_weight.size > 0, rounder == 0.0
    edge = (1.0 / scale) * (first + np.arange(size))
    columns = 9 if weighted else 6
    totals = np.zeros((columns + 3, size))  # what is rounded off comes last
    totals[4], totals[5] = np.inf, -np.inf
    for begin in range(0, y_prob.size, _ROWS_AT_ONCE):
        block = slice(begin, begin + _ROWS_AT_ONCE)
        forecast, outcome, weight = y_prob[block], y_true[block], sample_weight[block]
        counts = (low <= forecast) & (forecast <= high)
        if weighted:
            counts &= weight != 0.0
        if not counts.all():
            forecast, outcome = forecast[counts], outcome[counts]
            weight = weight[counts] if weighted else weight
        cell = np.minimum((forecast * scale).astype(np.int64) - first, size - 1)
        outcome = outcome.astype(np.float64)
        residual = outcome - forecast
        weighted_residual, weighted_outcome = residual, outcome
        if weighted:
            weighted_residual, weighted_outcome = residual * weight, outcome * weight
        if counted:
            np.add.at(totals[1], cell, forecast - edge[cell])
            np.add.at(totals[3], cell, outcome)
        else:
            rounding = [(1, columns, weighted_residual), (3, columns + 1, weighted_outcome)]
            for column, rest, values in [*rounding, (6, columns + 2, weight)][: 3 if weighted else 2]:
                rounded = (values + rounder) - rounder
                np.add.at(totals[column], cell, rounded)
                np.add.at(totals[rest], cell, values - rounded)
        if weighted:
            np.add.at(totals[7], cell, weight * weight)
            np.add.at(totals[8], cell, weighted_residual * weighted_residual)
        np.add.at(totals[2], cell, weighted_residual * residual)
        np.add.at(totals[0], cell, 1.0)
        np.minimum.at(totals[4], cell, forecast)
        np.maximum.at(totals[5], cell, forecast)
    if counted:
        totals[1] = totals[3] - totals[0] * edge - totals[1]
    else:
        totals[1] += totals[columns]
        totals[3] += totals[columns + 1]
        if weighted:
            totals[6] += totals[columns + 2]
    return np.ascontiguousarray(totals[:columns].T)


def rounder_of(largest: float, rows: int) -> float:
    """Return a number to add and take off so that as many numbers as rows, none larger, are left with exact sums.

    It is so large that a number beside it keeps only digits that such a sum has room for.
    """
    bits = math.frexp(largest)[1] + rows.bit_length()
    return math.ldexp(1.5, max(min(bits, 1021), -1021))


@Kernel
def rows_in_stretches(
    y_prob: FloatArray,
    low: FloatArray,
    high: FloatArray,
    begin: IntArray,
    end: IntArray,
    scale: float,
    first: int,
    lowest: float,
    highest: float,
) -> npt.NDArray[np.bool_]:
    """Mark the rows whose forecast lies in one of the closed stretches [low, high].

    The stretches lie between lowest and highest. A row in dyadic cell c is looked up among the stretches begin[c] to
    end[c] - 1 only: those that touch the cell.
    """
    inside = np.zeros(y_prob.size, dtype=np.bool_)
    touched = begin < end  # one byte a cell stays in the innermost cache, and most rows need no more
    last = begin.size - 1
    for i in range(y_prob.size):
        forecast = y_prob[i]
        if not lowest <= forecast <= highest:
            continue
        cell = min(int(forecast * scale) - first, last)
        if not touched[cell]:
            continue
        k, stop = begin[cell], end[cell]
        while stop - k > 1:
            middle = (k + stop) // 2
            if low[middle] <= forecast:
                k = middle
            else:
                stop = middle
        inside[i] = low[k] <= forecast <= high[k]
    return inside


@rows_in_stretches.otherwise(12_000_000)
def rows_in_stretches_in_numpy(
    y_prob: FloatArray,
    low: FloatArray,
    high: FloatArray,
    begin: IntArray,
    end: IntArray,
    scale: float,
    first: int,
    lowest: float,
    highest: float,
) -> npt.NDArray[np.bool_]:
    """As `rows_in_stretches`."""
    inside = np.zeros(y_prob.size, dtype=np.bool_)
    touched = begin < end
    for start in range(0, y_prob.size, _ROWS_AT_ONCE):
        forecast = y_prob[start : start + _ROWS_AT_ONCE]
        near = np.flatnonzero((lowest <= forecast) & (forecast <= highest))
        near = near[touched[np.minimum((forecast[near] * scale).astype(np.int64) - first, begin.size - 1)]]
        forecast = forecast[near]
        stretch = np.searchsorted(low, forecast, side="right") - 1
        inside[start + near] = (stretch >= 0) & (forecast <= high[stretch])
    return inside


@Kernel
def block_products(
    value: FloatArray, weight: FloatArray, cluster: IntArray, block: IntArray, blocks: int
) -> FloatArray:
    """Return, for every two blocks, the sum over clusters of weight times the product of their values in both.

    Entries come cluster by cluster, each with the number of its block and at most one for each; ``weight`` is by
    cluster. What takes long is the number of pairs of entries of a cluster.
    """
    found = np.zeros((blocks, blocks))
    begin = 0
    for end in range(1, value.size + 1):
        if end < value.size and cluster[end] == cluster[begin]:
            continue
        times = weight[cluster[begin]]
        for first in range(begin, end):
            for second in range(begin, end):
                found[block[first], block[second]] += times * value[first] * value[second]
        begin = end
    return found


@Kernel
def block_crossings(
    value: FloatArray, most: FloatArray, weight: FloatArray, cluster: IntArray, block: IntArray, blocks: int
) -> FloatArray:
    """Return what blocks can have in common with what lies beside them, as three matrices to be added up.

    Entries come cluster by cluster with rising numbers of blocks; ``weight`` is by cluster, ``most`` how far from 0 the
    sum of some rows of the entry can be. With |sum| that of a cluster over the blocks a + 1 to k, row a of the first
    matrix adds up to weight times most times |sum|, over the clusters that have rows in a; the second is alike for the
    blocks k to a - 1, added up from the last; the third holds weight times most in one block times most in a later one.
    """
    found = np.zeros((3, blocks, blocks))
    begin = 0
    for end in range(1, value.size + 1):
        if end < value.size and cluster[end] == cluster[begin]:
            continue
        for one in range(begin, end):
            at, times = block[one], weight[cluster[begin]] * most[one]
            total = 0.0
            for other in range(one + 1, end):
                found[2, at, block[other]] += times * most[other]
                before = abs(total)
                total += value[other]
                found[0, at, block[other]] += times * (abs(total) - before)
            total = 0.0
            for other in range(one - 1, begin - 1, -1):
                before = abs(total)
                total += value[other]
                found[1, at, block[other]] += times * (abs(total) - before)
        begin = end
    return found


@Kernel
def lowest_tangents(height: FloatArray, width: FloatArray, slope: FloatArray, last: IntArray) -> IntArray:
    """Find, for each j, the first i <= last[j] at which height[i] - slope[j] width[i] is smallest.

    Neither width nor slope nor last ever falls. The points up to last[j] that can be smallest for any slope are the
    corners of their lower convex hull: a stack, on which the best one is a step or two from where it was.
    """
    corners = np.empty(height.size, dtype=np.int64)
    found = np.empty(slope.size, dtype=np.int64)
    top, best, seen = -1, 0, -1
    for j in range(slope.size):
        while seen < last[j]:
            seen += 1
            if top >= 0 and width[seen] == width[corners[top]]:
                if height[seen] >= height[corners[top]]:
                    continue  # never smaller than the one before it
                top -= 1
            while top >= 1:
                one, two = corners[top - 1], corners[top]
                rise = (height[two] - height[one]) * (width[seen] - width[two])
                if rise < (height[seen] - height[two]) * (width[two] - width[one]):
                    break
                top -= 1  # above the line from the corner before it to the new point
            top += 1
            corners[top] = seen
        best = min(best, top)
        while best > 0 and (
            height[corners[best - 1]] - slope[j] * width[corners[best - 1]]
            <= height[corners[best]] - slope[j] * width[corners[best]]
        ):
            best -= 1
        while best < top and (
            height[corners[best + 1]] - slope[j] * width[corners[best + 1]]
            < height[corners[best]] - slope[j] * width[corners[best]]
        ):
            best += 1
        found[j] = corners[best]
    return found


@Kernel
def best_stretch(
    rows: FloatArray,
    events: FloatArray,
    low: FloatArray,
    high: FloatArray,
    slope: FloatArray,
    scale: FloatArray,
    least: float,
    most: float,
    more: bool,
) -> tuple[float, int, int]:
    """Find the stretch of entries that scores most: what it scores, the entry it begins with, the one it ends with.

    With more, entries are passed upwards and events are right, otherwise downwards and the rest is right. A stretch
    that ends with entry k scores scale[k] x (what is right in it - slope[k] x its rows). It ends with an entry below
    ``most``, the next of which reaches ``least``, or, downwards, with one from ``least`` on, the one below which is
    below ``most``. Slopes never fall on the way, so that the corners of the lower convex hull of right over rows, all
    passed so far, are all that can begin the best: a stack, as in `lowest_tangents`. No good stretch begins with rows
    all of which are wrong, or after some that all are right; nor does one end with rows all of which are wrong, unless
    it is the first that may.
    """
    size = rows.size
    corner = np.empty(size, dtype=np.int64)
    height, width = np.empty(size), np.empty(size)  # of the corners
    top, best = -1, 0
    right_passed, rows_passed = 0.0, 0.0
    largest, begin, end = 0.0, 0, 0
    wrong_before, is_first_end = True, True
    for step in range(size):
        k = step if more else size - 1 - step
        right = max(events[k] if more else rows[k] - events[k], 0.0)
        wrong = rows[k] > right
        if step == 0 or (wrong_before and (right > 0.0 or not wrong)):
            is_new = True
            if top >= 0 and rows_passed == width[top]:
                if right_passed >= height[top]:
                    is_new = False  # never better than the one before it
                else:
                    top -= 1
            if is_new:
                while top >= 1:
                    rise = (height[top] - height[top - 1]) * (rows_passed - width[top])
                    if rise < (right_passed - height[top]) * (width[top] - width[top - 1]):
                        break
                    top -= 1  # above the line from the corner before it to the new point
                top += 1
                corner[top], height[top], width[top] = k, right_passed, rows_passed
        wrong_before = wrong
        right_passed += right
        rows_passed += rows[k]
        if more:
            ends = high[k] < most and (k == size - 1 or low[k + 1] >= least)
        else:
            ends = low[k] >= least and (k == 0 or high[k - 1] < most)
        if not ends or not (right > 0.0 or is_first_end):
            continue
        is_first_end = False
        best = min(best, top)
        lowest = height[best] - slope[k] * width[best]
        while best > 0:
            other = height[best - 1] - slope[k] * width[best - 1]
            if other > lowest:
                break
            best, lowest = best - 1, other
        while best < top:
            other = height[best + 1] - slope[k] * width[best + 1]
            if other >= lowest:
                break
            best, lowest = best + 1, other
        found = scale[k] * ((right_passed - slope[k] * rows_passed) - lowest)
        if found > largest:
            largest, begin, end = found, corner[best], k
    return largest, begin, end
