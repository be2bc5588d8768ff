"""What re-drawing the line between acting and not acting would add up to: the largest score over thresholds and lines.

Whoever acts when p >= t can move the line to s instead. That changes the rows between s and t: where s <= p < t it acts
on more of them, which gains 1 - t for an event and loses t for another row; where t <= p < s it acts on fewer, which
gains t for another row and loses 1 - t for an event. Scores are increasing functions of those gains and losses, so that
one search serves the saving itself and bets on it. The proofs are in docs/theory/savings.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.core.kernels import best_stretch, lowest_tangents
from calibrant.core.types import FloatArray, IntArray
from calibrant.rows.grids import FIRST_BITS, FIRST_GRID
from calibrant.rows.refinement import Opened, opened, refine
from calibrant.rows.runs import prefix_sums
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally, Totals

_MOST_BITS = 21
_MANY, _BLOCK = 2**12, 16  # entries from which on blocks of so many are looked at first
_FEW = 2**16  # pairs of ends that are all looked at
_WIDE_BLOCK = 64  # entries of a block where there are more of them
_WITHOUT_COMPILER = 2**20  # entries up to which numpy is as fast as a compiled loop, or almost, or than compiling one
_COMPILED = 20_000  # entries, of which rows have been counted by compiled loops in any case
_CELLS_AT_ONCE = 2**17  # of a finer grid, for rows in memory


class Thresholds(NamedTuple):
    """The thresholds that a decision maker may have, from low to high."""

    low: float
    high: float


EVERY_THRESHOLD = Thresholds(0.0, 1.0)


class Stretches(NamedTuple):
    """Entries in increasing order of forecast, with their rows and events in units of the largest weight of a row."""

    low: FloatArray
    high: FloatArray
    rows: FloatArray
    events: FloatArray

    @classmethod
    def of(cls, table: Totals) -> Stretches:
        """Return the entries of a table."""
        unit = 1.0 / table.weight_max
        return cls(table.low, table.high, np.multiply(table.weight, unit), table.outcome * unit)

    def blocks(self, starts: IntArray) -> Stretches:
        """Return longer ones, which begin at some of these."""
        ends = np.append(starts[1:], self.low.size) - 1
        rows, events = np.add.reduceat(self.rows, starts), np.add.reduceat(self.events, starts)
        return Stretches(self.low[starts], self.high[ends], rows, events)


@dataclass(frozen=True)
class Score:
    """What a row scores that the new line treats rightly, by what that gains, and what a wrong one costs.

    Both are 0 at 0 and increase, which is all that the search needs.
    """

    gain: Callable[[FloatArray], FloatArray]
    loss: Callable[[FloatArray], FloatArray]

    def slopes(self, threshold: FloatArray, *, more: bool) -> tuple[FloatArray, FloatArray]:
        """Return the share of rightly treated rows at which a score is 0, and what it adds per row beyond."""
        right, wrong = (1.0 - threshold, threshold) if more else (threshold, 1.0 - threshold)
        gain, loss = self.gain(right), self.loss(wrong)
        return loss / (gain + loss), gain + loss


SAVING = Score(lambda margin: margin, lambda margin: margin)
"""The saving itself."""


def bet_score(rate: float) -> Score:
    """Return how a bet at a rate against the saving grows: -ln(1 - rate g)."""
    return Score(lambda margin: -np.log1p(-rate * margin), lambda margin: np.log1p(rate * margin))


def win_score(rate: float) -> Score:
    """Return how a bet at a rate on the saving grows: ln(1 + rate g)."""
    return Score(lambda margin: np.log1p(rate * margin), lambda margin: -np.log1p(-rate * margin))


def square_score(coefficient: float) -> Score:
    """Return the saving plus a coefficient, up to a half, times its square."""
    return Score(
        lambda margin: margin * (1.0 + coefficient * margin), lambda margin: margin * (1.0 - coefficient * margin)
    )


@dataclass(frozen=True)
class Redrawing:
    """A line moved from a threshold, and its score.

    Attributes
    ----------
    score : float
        The sum over rows (for the saving: in units of the largest weight).
    threshold : float
        The threshold.
    attained : bool
        Whether the score is that of the threshold itself, or approached just above it.
    first, last : int
        Positions of the entries that are treated otherwise, from first up to but not with last.
    more : bool
        Whether more rows are acted on, or fewer.
    """

    score: float
    threshold: float
    attained: bool
    first: int
    last: int
    more: bool


NOTHING = Redrawing(0.0, 0.0, True, 0, 0, more=True)
"""The line stays where it is."""


def largest_redrawing(stretches: Stretches, thresholds: Thresholds, score: Score, *, times: int = 1) -> Redrawing:
    """Return the redrawing of the largest score whose ends are borders of entries: exact where they are fine enough.

    Of many entries, those are joined inside which nothing better may begin or end, which takes numpy no longer than a
    compiled loop that looks at all of them. The loop looks at still more, or where one asks so many ``times`` for as
    many entries that they are more together.
    """
    size = stretches.low.size
    joining = times == 1 and _COMPILED < size <= _WITHOUT_COMPILER
    if size * times > _COMPILED and not joining:
        ways = [_best_of_many(stretches, thresholds, score, more=more) for more in (True, False)]
        return max(ways, key=lambda each: each.score)
    if joining:
        starts, fewer = _joined(stretches, thresholds, score, _WIDE_BLOCK)
    else:
        starts, fewer = _thinned(stretches, thresholds, score)
    walks = _walks(fewer, thresholds, compiled=not joining)
    best = max((walk.best(score) for walk in walks), key=lambda each: each.score)
    borders = np.append(starts, size)
    return replace(best, first=int(borders[best.first]), last=int(borders[best.last]))


def _best_of_many(stretches: Stretches, thresholds: Thresholds, score: Score, *, more: bool) -> Redrawing:
    """Return what `Walk.best` does, by a loop."""
    low, high, rows, events = stretches
    least, most = thresholds
    near = np.maximum(high, least) if more else np.minimum(low, most)
    slope, scale = score.slopes(near, more=more)
    loop = best_stretch if low.size > _COMPILED else best_stretch.run_compiled
    found, first, end = loop(rows, events, low, high, slope, scale, least, most, more)
    if not found > 0.0:
        return NOTHING
    attained = not more or bool(near[end] > high[end])
    first, last = (first, end + 1) if more else (end, first + 1)
    return Redrawing(float(found), float(near[end]), attained, int(first), int(last), more)


def _thinned(stretches: Stretches, thresholds: Thresholds, score: Score) -> tuple[IntArray, Stretches]:
    """Join entries inside which nothing better may begin or end; return where each begins, and them.

    Blocks of many entries are looked at first, blocks of few only where that says too little.
    """
    size = stretches.low.size
    if size <= _MANY or size > _COMPILED:
        return np.arange(size), stretches
    return _joined(stretches, thresholds, score, _BLOCK)


def _joined(stretches: Stretches, thresholds: Thresholds, score: Score, block: int) -> tuple[IntArray, Stretches]:
    """Join blocks of entries inside which nothing better may begin or end; return where each begins, and them."""
    size = stretches.low.size
    starts = np.arange(0, size, block)
    wanted = _may_hold_end(stretches.blocks(starts), thresholds, score, compiled=False)
    inside = (wanted[:, None] * block + np.arange(block)).ravel()
    starts = _merged(size, [starts, inside[inside < size]])
    return starts, stretches.blocks(starts)


def _walks(stretches: Stretches, thresholds: Thresholds, *, compiled: bool = True) -> tuple[Walk, Walk]:
    more, fewer = (Walk(stretches, thresholds, more=more, compiled=compiled) for more in (True, False))
    return more, fewer


def split_at_savings(
    source: Tally | RowSource,
    thresholds: Thresholds,
    scores: Callable[[Totals], Sequence[Score]],
    *others: Callable[[Totals], IntArray],
) -> Totals:
    """Return ordered entries fine enough that the best redrawings of all scores begin and end at their borders.

    Which scores those are may follow from the totals of coarse cells. What others find too coarse is split with them,
    which saves scans.
    """

    def too_coarse(table: Totals) -> IntArray:
        stretches = Stretches.of(table)
        wanted = (_may_hold_end(stretches, thresholds, score) for score in scores(table))
        return _merged(len(table), [*wanted, *(test(table) for test in others)])

    rows = opened(source)
    if isinstance(rows, Tally):
        return rows
    _cut_finely(rows, too_coarse)
    return refine(rows, too_coarse, FIRST_GRID)


def bracket_redrawing(stretches: Stretches, thresholds: Thresholds, score: Score) -> tuple[float, float]:
    """Return two ends between which the largest score lies, whatever the rows inside the entries are."""
    walks = _walks(stretches, thresholds)
    least = max(walk.best(score).score for walk in walks)
    return least, max(least, *(float(walk.most(score).score.max(initial=0.0)) for walk in walks))


def split_at_thresholds(source: Tally | RowSource, thresholds: Thresholds) -> Totals:
    """Return ordered entries none of which reaches across an end of the thresholds."""

    def across(table: Totals) -> IntArray:
        return np.flatnonzero(np.any([(table.low < each) & (table.high >= each) for each in thresholds], axis=0))

    return refine(source, across, FIRST_GRID)


def _cut_finely(rows: Opened, too_coarse: Callable[[Totals], IntArray]) -> None:
    """Cut entries that are too coarse into cells that hold few rows beside those between the best lines.

    Those grow as n^(1/3) for good forecasts, so that some n^(2/3) cells are fine enough.
    """
    table = rows.start()
    bits = min(math.ceil(math.log2(3.0) + math.log2(table.row_total) * 2.0 / 3.0), _MOST_BITS)
    if bits <= FIRST_BITS:
        return
    wanted = too_coarse(table)
    if table.rows[wanted].sum() <= table.row_total // 64:
        return
    if not rows.in_memory:
        rows.cut(table, wanted, bits)
        return
    chunk = np.floor(table.low[wanted] * (2.0**bits / _CELLS_AT_ONCE))
    for part in np.split(wanted, np.flatnonzero(np.diff(chunk)) + 1)[::-1]:
        table = rows.cut(table, part, bits)  # from the right, so that the positions still to come stay valid


def _may_hold_end(stretches: Stretches, thresholds: Thresholds, score: Score, *, compiled: bool = True) -> IntArray:
    """Return the entries inside which a redrawing of a larger score than the best so far might begin or end."""
    starts, fewer = _thinned(stretches, thresholds, score)
    walks = _walks(fewer, thresholds, compiled=compiled)
    best = max(walk.best(score).score for walk in walks)
    return starts[_merged(starts.size, (walk.may_hold_end(score, best) for walk in walks))]


def _merged(size: int, positions: Iterable[IntArray]) -> IntArray:
    """Return positions that occur anywhere, in increasing order."""
    found = np.zeros(size, dtype=bool)
    for each in positions:
        found[each] = True
    return np.flatnonzero(found)


class Most(NamedTuple):
    """The most that a redrawing may score that ends inside or right after each entry, and what it is made of."""

    score: FloatArray
    slope: FloatArray
    scale: FloatArray
    height: FloatArray


class Walk:
    """Entries in the order in which a line moves away from what it passes last, the threshold.

    To act on more rows it moves down from the threshold: stretches end there, and entries are passed in increasing
    order; to act on fewer it moves up, and everything is mirrored.
    """

    def __init__(self, stretches: Stretches, thresholds: Thresholds, *, more: bool, compiled: bool = True) -> None:
        self._minima = partial(prefix_minima, compiled=compiled)
        low, high, rows, events = stretches
        least, most = thresholds
        self.more, self.size, self.high = more, low.size, high
        self.several = high > low
        if more:
            right, self.near, self.far = events, np.maximum(high, least), np.maximum(low, least)
            reached = np.append(low[1:], np.inf) >= least
            self.ends, self.may_end = (high < most) & reached, (low < most) & reached
            whole = high < least
        else:
            right, self.near, self.far = rows - events, np.minimum(low, most), np.minimum(high, most)
            reached = np.append(-np.inf, high[:-1]) < most
            self.ends, self.may_end = (low >= least) & reached, (high >= least) & reached
            whole = low >= most
        # Where a stretch ends at an entry's border in any case, nothing is unknown inside that matters.
        self.inside = self.several & ~whole
        self.right, self.rows = self.ordered(np.maximum(right, 0.0)), self.ordered(rows)
        self.height, self.width = prefix_sums(self.right), prefix_sums(self.rows)

    def ordered(self, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a column of the entries in the order in which they are passed."""
        return column if self.more else column[::-1]

    def best(self, score: Score) -> Redrawing:
        """Return the best redrawing whose ends are borders of entries."""
        starts, ends = self._borders()
        if ends.size == 0:
            return NOTHING
        threshold = self.ordered(self.near)[ends]
        slope, scale = score.slopes(threshold, more=self.more)
        height, width = self.height, self.width
        until = np.searchsorted(starts, ends, side="right") - 1
        lowest, place = self._minima(height[starts], width[starts], slope, until)
        found = scale * ((height[ends + 1] - slope * width[ends + 1]) - lowest)
        at = int(found.argmax())
        if not found[at] > 0.0:
            return NOTHING
        attained = not self.more or bool(threshold[at] > self.high[ends[at]])  # in increasing order, where more
        first, last = int(starts[place[at]]), int(ends[at]) + 1
        if not self.more:
            first, last = self.size - last, self.size - first
        return Redrawing(float(found[at]), float(threshold[at]), attained, first, last, self.more)

    def _borders(self) -> tuple[IntArray, IntArray]:
        """Return before which entries stretches begin, and with which they end, if they are the best.

        No good one begins with rows all of which are treated wrongly, or after some that all are treated rightly; nor
        does one end with rows all of which are treated wrongly, unless no threshold is left to end it earlier.
        """
        ends = np.flatnonzero(self.ordered(self.ends))
        wrong = self.rows > self.right
        ends = ends[(self.right[ends] > 0.0) | (np.arange(ends.size) == 0)]
        begins = np.append(True, wrong[:-1]) & ((self.right > 0.0) | ~wrong)
        begins[0] = True  # so that there is one
        return np.flatnonzero(begins), ends

    def most(self, score: Score) -> Most:
        """Return the most that redrawings may score, by the entry that they end in: rows treated rightly come first."""
        ends = self.possible_ends()
        slope, scale = score.slopes(self.ordered(self.far)[ends], more=self.more)
        height, width = self.points
        right, rows = self.height, self.width
        inside = self.ordered(self.inside)[ends]
        until = np.where(inside, right[ends] + self.right[ends], right[ends + 1])
        passed = np.where(inside, rows[ends] + self.right[ends], rows[ends + 1])
        reached = until - slope * passed
        lowest, _ = self._minima(height, width, slope, 2 * ends + ~inside)  # inside an entry that ends a stretch, too
        return Most(scale * (reached - lowest), slope, scale, reached)

    def possible_ends(self) -> IntArray:
        """Return the entries, in this order, inside or right after which a stretch may end."""
        return np.flatnonzero(self.ordered(self.may_end))

    @cached_property
    def points(self) -> tuple[FloatArray, FloatArray]:
        """Return where stretches may begin: borders, and inside each entry after the rows that are treated wrongly."""
        height, width = np.empty(2 * self.rows.size + 1), np.empty(2 * self.rows.size + 1)
        height[::2], width[::2] = self.height, self.width
        height[1::2] = height[:-1:2]
        wrong = np.where(self.ordered(self.several), self.rows - self.right, 0.0)
        width[1::2] = width[:-1:2] + np.maximum(wrong, 0.0)
        return height, width

    def may_hold_end(self, score: Score, best: float) -> IntArray:
        """Return the entries inside which a redrawing that scores more than the best may begin or end."""
        if not self.several.any():
            return np.empty(0, dtype=np.int64)
        most, ends = self.most(score), self.possible_ends()
        better = np.flatnonzero(most.score > best)
        if better.size == 0:
            return np.empty(0, dtype=np.int64)
        ends = ends[better]
        wanted = [ends[self.ordered(self.inside)[ends]]]
        # A line of slope q for each such end: a point below one of those to its right begins something better.
        starts = np.flatnonzero(self.ordered(self.several))
        starts = starts[starts <= ends[-1]]
        if starts.size:
            slope, needed = most.slope[better], most.height[better] - best / most.scale[better]
            height, width = self.points
            later = ends.size - np.searchsorted(ends, starts)  # ends that come after each start
            above, _ = self._minima(-needed[::-1], -slope[::-1], -width[2 * starts + 1][::-1], later[::-1] - 1)
            wanted.append(starts[height[2 * starts + 1] < -above[::-1]])
        found = _merged(self.size, wanted)
        return found if self.more else self.size - 1 - found


def prefix_minima(
    height: FloatArray, width: FloatArray, slope: FloatArray, last: IntArray, *, compiled: bool = True
) -> tuple[FloatArray, IntArray]:
    """Return the least height_i - slope_j width_i over i <= last_j for each j, and the first i that attains it.

    Where width, slope and last never fall, neither does the place of the minimum: what was found for every other j
    limits where to look for those between. O(m log m), in as many steps as j can be halved.

    Examples
    --------
    >>> prefix_minima(np.array([0.0, 1.0, 1.0]), np.array([0.0, 1.0, 3.0]), np.array([0.5, 0.6]), np.array([1, 2]))
    (array([ 0. , -0.8]), array([0, 2]))
    """
    count = slope.size
    if count * height.size <= _FEW:
        values = height - slope[:, None] * width
        values[np.arange(height.size) > last[:, None]] = np.inf
        place = values.argmin(axis=1)
        return values[np.arange(count), place], place
    if compiled and height.size > _COMPILED:
        place = lowest_tangents(height, width, slope, last)
        return height[place] - slope * width[place], place
    least, place = np.empty(count), np.empty(count, dtype=np.int64)
    step = 1 << (count.bit_length() - 1) if count else 0
    while step:
        asked = np.arange(step - 1, count, 2 * step)
        begin, end = np.zeros_like(asked), last[asked].copy()
        begin[1:] = place[asked[1:] - step]
        known = asked + step < count
        end[known] = np.minimum(end[known], place[asked[known] + step])
        end = np.maximum(end, begin)
        least[asked], place[asked] = _least_between(height, width, slope[asked], begin, end)
        step //= 2
    return least, place


def _least_between(
    height: FloatArray, width: FloatArray, slope: FloatArray, begin: IntArray, end: IntArray
) -> tuple[FloatArray, IntArray]:
    size = end - begin + 1
    starts = np.cumsum(size) - size
    index = np.arange(int(size.sum())) + np.repeat(begin - starts, size)
    values = height[index] - np.repeat(slope, size) * width[index]
    least = np.minimum.reduceat(values, starts)
    attained = np.flatnonzero(values == np.repeat(least, size))
    return least, index[attained[np.searchsorted(attained, starts)]]
