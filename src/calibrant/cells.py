"""The same totals on a dyadic grid of [0, 1]: exact answers without sorting.

A row's cell is floor(p * 2^bits), which is exact in floating point, so that every machine and engine agrees on it.
One pass adds up each cell. The prefix sums at cell borders then say which few cells could hold an extreme of the
curve, or the border of a bin; only the rows of those cells are looked at one by one. The two steps are the two
methods of `RowSource`: whatever offers them gets exact answers from the code below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np

from calibrant.kernels import cell_growth, cell_totals, rows_in_stretches
from calibrant.tally import ADDITIVE, Tally, Totals, bet_growth, given_tally, prefix_sums
from calibrant.validation import FloatArray, IntArray, Observations, check_number, check_observations

DEFAULT_BITS = 16
TOLERANCE = 1e-12
"""Intervals within this of the largest error count as equally bad, so that rounding never chooses between them."""

SORT_BELOW_ROWS = 100_000
"""Below this many rows sorting takes milliseconds, and needs no compiled code."""

_FIRST_BITS = 15  # finer cells mean fewer rows to look at one by one, coarser ones fit the processor's cache
_MOST_BITS = 1000
_MOST_INDEX_BITS = 61
_ZOOM_ROUNDS = 3
_ZOOM_STRETCHES = 4
_ZOOM_GAP = 64
_PARTS = 2
_ROWS_WORTH_SPLITTING = 4_000_000

Returned = TypeVar("Returned")


@dataclass(frozen=True)
class Grid:
    """Dyadic cells of width 2^-bits that cover the forecasts from ``low`` to ``high``."""

    bits: int
    low: float
    high: float

    @classmethod
    def covering(cls, low: float, high: float) -> Grid:
        """Return the grid of some 2^15 cells that zooms in on the forecasts from low to high."""
        finest = min(_MOST_BITS, _MOST_INDEX_BITS - _exponent(high))
        return cls(max(0, min(_FIRST_BITS - _exponent(high - low), finest)), low, high)

    @property
    def scale(self) -> float:
        """2^bits: a power of two, so that multiplying by it is exact."""
        return float(2.0**self.bits)

    @property
    def first(self) -> int:
        """Index of the cell that holds ``low``."""
        return int(self.index(np.array([self.low]))[0])

    @property
    def size(self) -> int:
        """Number of cells."""
        return int(self.index(np.array([self.high]))[0]) - self.first + 1

    def index(self, forecast: FloatArray) -> IntArray:
        """Return the cell of each forecast; a forecast of 1 joins the last cell."""
        cells: IntArray = (forecast * self.scale).astype(np.int64)
        return np.minimum(cells, 2**self.bits - 1) if self.bits < _MOST_INDEX_BITS else cells


FIRST_GRID = Grid(_FIRST_BITS, 0.0, 1.0)
COARSE_GRID = Grid(12, 0.0, 1.0)  # enough where few borders matter, and quicker


def _exponent(value: float) -> int:
    """Return the smallest e with value < 2^e; for 0, one below every forecast's."""
    return int(np.frexp(value)[1]) if value > 0.0 else -_MOST_BITS


class RowSource(Protocol):
    """Rows that can be added up by cell and fetched by stretch: all that exact answers need."""

    def histogram(self, grid: Grid, rates: tuple[float, ...] = ()) -> Cells:
        """Return the totals per cell of the rows whose forecast is from ``grid.low`` to ``grid.high``.

        With betting rates, the column ``growth`` too (asked for only when outcomes are 0/1 and weights 1).
        """
        ...

    def fetch(self, low: FloatArray, high: FloatArray) -> Observations:
        """Return the rows inside the given closed stretches, which are disjoint and in increasing order."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Cells(Totals):
    """Totals per dyadic cell of [0, 1]: additive, of bounded size, and enough for most answers.

    Only cells that hold rows are listed. Cells of parts add up: ``Cells.from_arrays(...) + Cells.from_arrays(...)``;
    where the grids differ, the finer one is coarsened first, which is exact.

    Attributes
    ----------
    bits : int
        Cells have width 2^-bits.
    index : array of int64
        floor(p * 2^bits) for the rows of each cell (p = 1 joins the last cell of [0, 1]).

    Examples
    --------
    >>> cells = Cells.from_arrays([0, 1, 1], [0.1, 0.12, 0.9], bits=2)
    >>> cells.index, cells.rows, cells.high
    (array([0, 3]), array([2, 1]), array([0.12, 0.9 ]))
    """

    bits: int
    index: IntArray

    @classmethod
    def from_arrays(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        sample_weight: Any = None,
        pos_label: Any = None,
        bits: int = DEFAULT_BITS,
    ) -> Cells:
        """Add up rows on the grid of 2^bits cells of [0, 1]; the parameters are those of `Tally.from_arrays`."""
        depth = int(check_number(bits, "bits", low=0, high=24, whole=True))
        observations = check_observations(
            y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, refuse_swapped=False
        )
        return ArrayRows(observations).histogram(Grid(depth, 0.0, 1.0))

    def __add__(self, other: Cells) -> Cells:
        """Merge the cells of two different sets of rows."""
        if not isinstance(other, Cells):
            return NotImplemented
        bits = min(self.bits, other.bits)
        parts = (self, other)
        index = np.concatenate([part.index >> (part.bits - bits) for part in parts])
        order = np.argsort(index, kind="stable")
        merged, starts = np.unique(index[order], return_index=True)
        columns: dict[str, Any] = {
            name: np.add.reduceat(np.concatenate([getattr(part, name) for part in parts])[order], starts)
            for name in ADDITIVE
        }
        columns["low"] = np.minimum.reduceat(np.concatenate([part.low for part in parts])[order], starts)
        columns["high"] = np.maximum.reduceat(np.concatenate([part.high for part in parts])[order], starts)
        columns["weight_max"] = max(self.weight_max, other.weight_max)
        columns["unit_weights"] = self.unit_weights and other.unit_weights
        columns["binary_outcomes"] = self.binary_outcomes and other.binary_outcomes
        return Cells(bits=bits, index=merged, **columns)

    def __repr__(self) -> str:
        return f"Cells({self.row_total:,} rows in {len(self):,} of {2**self.bits:,} cells)"


class ArrayRows:
    """Rows in memory as a `RowSource`."""

    def __init__(self, observations: Observations) -> None:
        self.observations = observations

    def histogram(self, grid: Grid, rates: tuple[float, ...] = ()) -> Cells:
        """Return the totals per cell of the rows whose forecast is from ``grid.low`` to ``grid.high``."""
        place = (grid.scale, grid.first, grid.size, grid.low, grid.high)

        def add_up(rows: Observations) -> FloatArray:
            weight = np.empty(0) if rows.sample_weight is None else rows.sample_weight
            return cell_totals(rows.y_prob, rows.y_true, weight, *place)

        totals, *others = self._over_parts(add_up)
        for part in others:
            low, high = np.minimum(totals[:, 4], part[:, 4]), np.maximum(totals[:, 5], part[:, 5])
            totals += part
            totals[:, 4], totals[:, 5] = low, high
        held = np.flatnonzero(totals[:, 0])
        growth = None
        if rates:
            bets = np.array(rates)
            parts = self._over_parts(lambda rows: cell_growth(rows.y_prob, rows.y_true, bets, *place))
            growth = np.sum(parts, axis=0)[held]
        columns = np.ascontiguousarray(totals[held].T)
        count = columns[0].astype(np.int64)
        weight = self.observations.sample_weight
        weighted = weight is not None
        return Cells(
            bits=grid.bits,
            index=grid.first + held,
            low=columns[4],
            high=columns[5],
            rows=count,
            weight=columns[6] if weighted else count,
            weight_square=columns[7] if weighted else count,
            residual=columns[1],
            residual_square=columns[2],
            weight_square_residual_square=columns[8] if weighted else columns[2],
            outcome=columns[3],
            weight_max=1.0 if weight is None else float(weight.max()),
            unit_weights=weight is None or bool((weight == 1.0).all()),
            binary_outcomes=self.observations.binary_outcomes,
            growth=growth,
        )

    def fetch(self, low: FloatArray, high: FloatArray) -> Observations:
        """Return the rows inside the given closed stretches, which are disjoint and in increasing order."""
        if low[0] <= 0.0 and high[0] >= 1.0:
            return self.observations
        # A coarse cell per row says which stretches are worth comparing with, usually none.
        wide = high[-1] - low[0] > 1.0 / 64.0
        grid = FIRST_GRID if wide else Grid.covering(float(low[0]), float(high[-1]))
        border = np.arange(grid.size + 1)
        begin = np.searchsorted(grid.index(high) - grid.first, border[:-1], side="left")
        end = np.searchsorted(grid.index(low) - grid.first, border[1:], side="left")
        place = (grid.scale, grid.first, grid.low, grid.high)
        inside = self._over_parts(lambda rows: rows_in_stretches(rows.y_prob, low, high, begin, end, *place))
        return self.observations.take(np.flatnonzero(np.concatenate(inside)))

    def _over_parts(self, loop: Callable[[Observations], Returned]) -> list[Returned]:
        """Run a compiled loop over parts of many rows, side by side; parts, not processors, decide how sums round."""
        rows = self.observations.y_prob.size
        if rows < _ROWS_WORTH_SPLITTING:
            return [loop(self.observations)]
        from concurrent.futures import ThreadPoolExecutor

        borders = [rows * part // _PARTS for part in range(_PARTS + 1)]
        parts = [self.observations.take(slice(begin, end)) for begin, end in pairwise(borders)]
        with ThreadPoolExecutor(_PARTS) as threads:
            return list(threads.map(loop, parts))


def as_source(y_true: Any, y_prob: Any, *, sample_weight: Any, pos_label: Any) -> Tally | RowSource:
    """Return a tally for few rows, or the rows themselves when adding them up by cell beats sorting them."""
    if isinstance(y_true, Totals):
        return given_tally(y_true, y_prob, sample_weight, pos_label)
    return source_of(check_observations(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label))


def source_of(rows: Observations) -> Tally | RowSource:
    """Return checked rows in the form that gives the quickest exact answers; rows of weight zero are left out."""
    if rows.sample_weight is not None and not rows.sample_weight.all():
        rows = rows.take(np.flatnonzero(rows.sample_weight))
    return Tally.from_observations(rows) if rows.y_prob.size < SORT_BELOW_ROWS else ArrayRows(rows)


def with_unit_weights(source: Tally | RowSource) -> Tally | RowSource:
    """Return a source with weights of 1 where all weights are equal: a guarantee cannot depend on their size."""
    if isinstance(source, Tally):
        return source.with_unit_weights()
    if isinstance(source, ArrayRows) and source.observations.sample_weight is not None:
        weight = source.observations.sample_weight
        if weight.min() == weight.max():
            return ArrayRows(replace(source.observations, sample_weight=None))
    return source


def whole_tally(source: Tally | RowSource) -> Tally:
    """Return the tally of all rows, for what needs every distinct forecast."""
    if isinstance(source, Tally):
        return source
    return Tally.from_observations(source.fetch(np.array([0.0]), np.array([1.0])))


def split_at_extremes(source: Tally | RowSource) -> Totals:
    """Return ordered entries fine enough that the residual curve's extremes lie at their borders.

    Entries that hold more than one forecast are kept whole only where the curve inside them cannot pass its extremes,
    nor come within `TOLERANCE` of one or leave it: the Cutoff error and the worst interval of the entries are exact.
    """
    return refine(source, _may_hold_extreme, FIRST_GRID)


@dataclass(frozen=True)
class Scores:
    """A score per entry that adds up over rows, and how far it can move inside.

    ``up`` bounds the sum of the rows' positive scores, ``down`` that of the negative ones, so that in whatever order
    its rows come the running sum stays between -down and up.
    """

    total: FloatArray
    up: FloatArray
    down: FloatArray


def linear_scores(table: Totals, sign: float, coefficient: float) -> Scores:
    """Score a row by sign w r + coefficient w^2 r^2 (coefficient >= 0)."""
    square = coefficient * table.weight_square_residual_square
    positive, negative = _residual_bounds(table)
    if sign < 0.0:
        positive, negative = negative, positive
    return Scores(sign * table.residual + square, positive + square, negative)


def growth_scores(table: Totals, rates: tuple[float, ...], position: int, sign: float) -> Scores:
    """Score a row by -ln(1 - rate sign r), for the rate at a position among the rates."""
    first = 4 * position + (0 if sign > 0.0 else 2)
    growth = table.growth
    if isinstance(table, Tally):
        growth, first = bet_growth(table, rates[position : position + 1]), first - 4 * position
    assert growth is not None
    up, down = growth[:, first], growth[:, first + 1]
    return Scores(up + down, up, -down)


def largest_stretch(total: FloatArray) -> float:
    """Return the largest sum of scores over neighbouring entries (none of them included: 0)."""
    prefix = prefix_sums(total)
    return float((prefix - np.minimum.accumulate(prefix)).max())


Pair = tuple[Scores, Scores]
"""Scores for the two signs of the residual."""


def largest_of(pair: Pair) -> float:
    """Return the largest stretch of either sign."""
    return max(largest_stretch(scores.total) for scores in pair)


def may_hold_end(table: Totals, scores: Scores, best: float) -> IntArray:
    """Return the entries inside which a stretch of a larger sum than the best so far might begin or end."""
    prefix = prefix_sums(scores.total)
    highest = prefix[:-1] + np.minimum(scores.up, scores.total + scores.down)
    lowest = prefix[:-1] - np.minimum(scores.down, scores.up - scores.total)
    ends = highest - np.minimum.accumulate(lowest) > best
    begins = np.maximum.accumulate(highest[::-1])[::-1] - lowest > best
    return np.flatnonzero((ends | begins) & (table.high > table.low))


def split_at_stretches(
    source: Tally | RowSource, all_pairs: Callable[[Totals], Iterable[Pair]], rates: tuple[float, ...] = ()
) -> Totals:
    """Return ordered entries fine enough that, for each pair, the largest stretch begins and ends at their borders.

    The larger of the two signs is what counts, so that the smaller one is looked into only where it could be larger.
    """

    def too_coarse(table: Totals) -> IntArray:
        wanted = [may_hold_end(table, scores, largest_of(pair)) for pair in all_pairs(table) for scores in pair]
        return np.unique(np.concatenate(wanted))

    return refine(source, too_coarse, FIRST_GRID, rates)


def refine(
    source: Tally | RowSource,
    too_coarse: Callable[[Totals], IntArray],
    grid: Grid,
    rates: tuple[float, ...] = (),
) -> Totals:
    """Return ordered entries none of which is too coarse: cells of a first grid, split where they must be.

    ``too_coarse`` returns the positions of entries that hold several forecasts and must not. Those that hold many rows
    are cut into finer cells first; the rows of the others are fetched and become entries of their own. Betting rates
    bring the column ``growth`` along.
    """
    if isinstance(source, Tally):
        return source
    table: Totals = source.histogram(grid, rates)
    row_total = table.row_total
    for _ in range(_ZOOM_ROUNDS):
        stretches = _worth_zooming(table, too_coarse(table))
        if not stretches:
            break
        for stretch in stretches[::-1]:  # from the right, so that the positions still to come stay valid
            finer = Grid.covering(float(table.low[stretch[0]]), float(table.high[stretch[-1]]))
            table = _replaced(table, stretch, source.histogram(finer, rates))
    wanted = too_coarse(table)
    if wanted.size == 0:
        return table
    if table.rows[wanted].sum() > row_total // 4:  # so many that one sort of all rows is quicker
        return whole_tally(source)
    fetched = Tally.from_observations(source.fetch(table.low[wanted], table.high[wanted]))
    if rates:
        fetched = replace(fetched, growth=bet_growth(fetched, rates))
    return _replaced(table, wanted, fetched)


def _worth_zooming(table: Totals, wanted: IntArray) -> list[IntArray]:
    """Return runs of entries to cut into finer cells before any rows are fetched.

    That pays where entries hold far more rows than the cells of an even grid would: forecasts of rare events crowd into
    a corner of [0, 1], and others into a few spikes.
    """
    row_total = table.row_total
    heavy = wanted[table.rows[wanted] > 4 * row_total // 2**_FIRST_BITS]
    if table.rows[heavy].sum() <= row_total // 64:
        return []
    runs = np.split(heavy, np.flatnonzero(np.diff(heavy) > _ZOOM_GAP) + 1)
    stretches = [np.arange(run[0], run[-1] + 1) for run in runs]
    if len(stretches) > _ZOOM_STRETCHES or max(stretch.size for stretch in stretches) > 2**_FIRST_BITS // 3:
        return []
    return stretches


def curve_slack(weight_total: float) -> float:
    """Return how near the curve must come to an extreme to count as reaching it: half the tolerance at either end."""
    return TOLERANCE / 2.0 * weight_total


def _may_hold_extreme(table: Totals) -> IntArray:
    """Return the entries inside which the curve might pass its extremes so far, or come near or leave them.

    Counting either the rows passed or the rows still to come bounds how far the curve rises above, or falls below, its
    value on entering.
    """
    prefix = table.residual_prefix()
    start = prefix[:-1]
    up, down = _residual_bounds(table)
    rise = np.minimum(up, down + table.residual)
    fall = np.minimum(down, up - table.residual)
    highest, lowest = start + rise, start - fall
    top, bottom = prefix.max(), prefix.min()
    slack = curve_slack(table.weight_total)
    beyond = (highest > top) | (lowest < bottom)
    # Near an extreme, what counts is where the curve enters or leaves: an entry wholly near it need not be opened.
    crosses_top = (highest >= top - slack) & (lowest < top - slack)
    crosses_bottom = (lowest <= bottom + slack) & (highest > bottom + slack)
    return np.flatnonzero((beyond | crosses_top | crosses_bottom) & (table.high > table.low))


def _residual_bounds(table: Totals) -> tuple[FloatArray, FloatArray]:
    """Return the most that the rows of each entry can add to the residual curve and take from it, in any order.

    A row adds at most w y (1 - p) and takes away at most w p (1 - y).
    """
    return table.outcome * (1.0 - table.low), table.high * (table.weight - table.outcome)


def _replaced(table: Totals, positions: IntArray, finer: Totals) -> Totals:
    """Return the table with some entries replaced by finer ones that hold the same rows."""
    kept = np.ones(len(table), dtype=bool)
    kept[positions] = False
    low = np.concatenate([table.low[kept], finer.low])
    order = np.argsort(low, kind="stable")
    columns = {
        name: np.concatenate([getattr(table, name)[kept], getattr(finer, name)])[order]
        for name in (*ADDITIVE, "high", *(() if table.growth is None else ("growth",)))
    }
    return Totals(
        low=low[order],
        weight_max=table.weight_max,
        unit_weights=table.unit_weights,
        binary_outcomes=table.binary_outcomes,
        **columns,
    )
