"""Exact answers from totals per cell and a few rows: where entries are split, and how finely.

The prefix sums at cell borders say which few cells could hold an extreme of the curve, or the border of a bin; only the
rows of those cells are looked at one by one, whatever source the rows come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from calibrant.sources import FIRST_BITS, FIRST_GRID, Grid, RowSource
from calibrant.tally import ADDITIVE, Tally, Totals, bet_growth, prefix_sums
from calibrant.validation import FloatArray, IntArray

TOLERANCE = 1e-12
"""Intervals within this of the largest error count as equally bad, so that rounding never chooses between them."""

_ZOOM_ROUNDS = 3
_ZOOM_STRETCHES = 4
_ZOOM_GAP = 64


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
    heavy = wanted[table.rows[wanted] > 4 * row_total // 2**FIRST_BITS]
    if table.rows[heavy].sum() <= row_total // 64:
        return []
    runs = np.split(heavy, np.flatnonzero(np.diff(heavy) > _ZOOM_GAP) + 1)
    stretches = [np.arange(run[0], run[-1] + 1) for run in runs]
    if len(stretches) > _ZOOM_STRETCHES or max(stretch.size for stretch in stretches) > 2**FIRST_BITS // 3:
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
