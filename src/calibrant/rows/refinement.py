"""Exact answers from totals per cell and a few rows: where entries are split, and how finely.

The prefix sums at cell borders say which few cells could hold an extreme of the curve, or the border of a bin; only the
rows of those cells are looked at one by one, whatever source the rows come from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.types import FloatArray, IntArray
from calibrant.core.voices import Either, Option, Phrase
from calibrant.rows.checks import Observations
from calibrant.rows.grids import COARSE_GRID, FIRST_BITS, FIRST_GRID, Grid
from calibrant.rows.runs import prefix_sums
from calibrant.rows.sources import ZOOM_CELLS, RowSource, fetch_limit, tally_limit
from calibrant.rows.tally import ADDITIVE, Tally, Totals

TOLERANCE = 1e-12
"""Intervals within this of the largest error count as equally bad, so that rounding never chooses between them."""

_ZOOM_ROUNDS = 3
_ZOOM_STRETCHES = 4
_ZOOM_GAP = 64

_MOST_ZOOMS = 64
_MOST_ZOOMED = 1 << 15  # entries that one scan cuts finer, ...
_ZOOM_LEAST = 4  # ... into `ZOOM_CELLS` together where that is so many each, ...
_ZOOM_EACH = 16  # ... or else so many each: some 50 MB at most, ...
_ZOOM_SPAN = 64.0  # ... if they are not that many times narrower than the widest
_MOST_CUT = 1 << 17  # cells of one loop over rows in memory, ...
_ROWS_PER_CUT = 4  # ... which pays where they hold so many rows each
_BLOCK = 1 << 15
_TALLY_GRID = Grid(20, 0.0, 1.0)
_ROUNDING = 1e-6  # more than sums in another order can differ by
_SLOW = 2.0**-6  # bets up to this rate grow by a few terms of a series, ...
_SERIES_REST = 2.0**-36  # ... which leave out less than this share of what is of third order


class TooManyForecastsError(InputError):
    """A source has more rows to tell apart than may be fetched from it."""


class Opened:
    """A source and the finest table made of its rows so far, from which the next question starts."""

    def __init__(self, source: RowSource, *, unit_weights: bool = False) -> None:
        self.source = source
        self.table: Totals | None = None
        self.fetch_limit, self.tally_limit = fetch_limit(source), tally_limit(source)
        self._unit_weights = unit_weights
        self._zoom_cells = int(getattr(source, "zoom_cells", ZOOM_CELLS))

    @property
    def weights_estimated(self) -> bool:
        """Whether weights were estimated from the rows."""
        return bool(getattr(self.source, "weights_estimated", False))

    @property
    def in_memory(self) -> bool:
        """Whether any number of rows may be fetched."""
        return self.fetch_limit == np.inf

    def start(self, grid: Grid | None = None) -> Totals:
        """Return the table made so far, or the first histogram, on the grid that the source prefers if it does."""
        if self.table is not None:
            return self.table
        return self.start_finer(getattr(self.source, "first_grid", grid or FIRST_GRID))

    def histogram(self, grid: Grid) -> Totals:
        """Return the totals per cell of the rows whose forecast is from ``grid.low`` to ``grid.high``."""
        table = self.source.histogram(grid)
        return table.with_unit_weights() if self._unit_weights else table

    def fetch(self, low: FloatArray, high: FloatArray) -> Observations:
        """Return the rows inside the given closed stretches."""
        rows = self.source.fetch(low, high)
        return replace(rows, sample_weight=None) if self._unit_weights else rows

    def with_unit_weights(self) -> Opened:
        """Return the source with weights of 1 where all weights are equal; otherwise itself."""
        table = None if self.table is None else self.table.with_unit_weights()
        if table is None or table is self.table:
            return self
        other = Opened(self.source, unit_weights=True)
        other.table = table
        return other

    def too_coarse(self, table: Totals, test: Callable[[Totals], IntArray]) -> IntArray:
        """Return the entries that a test finds too coarse, as the source remembers them if it does."""
        recall = getattr(self.source, "recall", None)
        found: IntArray = test(table) if recall is None else recall(lambda: test(table))
        return found

    def zoom(self, table: Totals, entries: IntArray, grid: Grid) -> Totals:
        """Replace neighbouring entries of the table by cells of a finer grid."""
        return self._replace(table, entries, self.histogram(grid))

    def open(self, table: Totals, entries: IntArray) -> Totals:
        """Replace entries of the table by their single forecasts, whose rows are fetched."""
        ends = np.flatnonzero(np.diff(entries) > 1)  # neighbours make one stretch
        low = table.low[entries[np.append(0, ends + 1)]]
        high = table.high[entries[np.append(ends, entries.size - 1)]]
        rows = self.fetch(low, high)
        if rows.y_prob.size == 0:
            _check_count(int(table.rows[entries].sum()), 0)
        return self._replace(table, entries, Tally.from_observations(rows))

    def cut(self, table: Totals, entries: IntArray, bits: int) -> Totals:
        """Replace entries of the table by cells of width 2^-bits, or by single forecasts where those are quicker.

        A database lists only cells that hold rows. In memory each cell takes room, so that the two ends of [0, 1] are
        cut, where the rows of fast bets are, and the few rows in between are fetched.
        """
        if not self.in_memory:
            most = table.rows[entries].sum() > table.row_total // 2  # which are not worth a comparison of every row
            return self._cut_between(table, entries, Grid(bits, 0.0, 1.0) if most else _grid_over(table, entries, bits))
        reach = min(_MOST_CUT * 2.0**-bits, 0.5)
        borders = np.searchsorted(table.high[entries], [reach, 1.0 - reach], side="right")
        for part in np.split(entries, borders)[::-1]:  # from the right, so that the positions still to come stay valid
            if part.size == 0:
                continue
            grid = _grid_over(table, part, bits)
            count = table.rows[part].sum()
            if grid.size <= min(_MOST_CUT, count / _ROWS_PER_CUT):
                table = self._cut_between(table, part, grid)
            elif count > table.row_total // 4:
                return self.open_all()
            else:
                table = self.open(table, part)
        return table

    def _cut_between(self, table: Totals, entries: IntArray, grid: Grid) -> Totals:
        """Replace entries of the table by those cells of a grid that lie inside them."""
        finer = self.histogram(grid)
        place = np.searchsorted(table.high[entries], finer.low)
        wanted = np.flatnonzero(finer.low >= np.append(table.low[entries], np.inf)[place])
        return self._replace(table, entries, finer.entries(wanted))

    def open_all(self) -> Tally:
        """Return the tally of all rows, fetched at once."""
        tally = Tally.from_observations(self.fetch(np.array([0.0]), np.array([1.0])))
        if self.table is not None:
            _check_count(self.table.row_total, tally.row_total)
        self.table = tally
        return tally

    def start_finer(self, grid: Grid) -> Totals:
        """Make the table anew on a finer grid."""
        self.table = self.histogram(grid)
        return self.table

    def zoom_within(self, table: Totals, entries: IntArray) -> Totals:
        """Replace entries of the table, as many as fit, by cells at least twice as fine, in one scan."""
        most = entries[np.argsort(-table.rows[entries], kind="stable")[:_MOST_ZOOMED]]
        width = table.high[most] - table.low[most]
        # The narrow ones wait until the others have become as narrow.
        chosen = np.sort(most[width >= width.max() / _ZOOM_SPAN])
        few = chosen.size <= self._zoom_cells // _ZOOM_LEAST
        cells = self._zoom_cells if few else _ZOOM_EACH * chosen.size
        grid = Grid.inside(table.low[chosen], table.high[chosen], cells)
        return self._cut_between(table, chosen, grid)

    def _replace(self, table: Totals, entries: IntArray, finer: Totals) -> Totals:
        """Replace some entries of the table by finer ones that hold the same rows."""
        _check_count(int(table.rows[entries].sum()), finer.row_total)
        kept = np.ones(len(table), dtype=bool)
        kept[entries] = False
        low = np.concatenate([table.low[kept], finer.low])
        order = np.argsort(low, kind="stable")
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(table, name)[kept], getattr(finer, name)])[order]
            for name in (*ADDITIVE, "high")
        }
        self.table = Totals(
            low=low[order],
            weight_max=table.weight_max,
            unit_weights=table.unit_weights,
            binary_outcomes=table.binary_outcomes,
            weights_estimated=table.weights_estimated,
            **columns,
        )
        return self.table


def _grid_over(table: Totals, entries: IntArray, bits: int) -> Grid:
    """Return the grid of cells of width 2^-bits from the first to the last of some entries."""
    return Grid(bits, float(table.low[entries[0]]), float(table.high[entries[-1]]))


def _check_count(counted: int, given: int) -> None:
    """Refuse a source whose scans contradict each other."""
    if given != counted:
        raise InputError(
            f"the source had counted {counted:,} rows and now has {given:,} in their place: its data changed between "
            "two scans",
            remedy="read from a copy that stays as it is",
        )


def opened(source: Tally | RowSource) -> Tally | Opened:
    """Return a source that remembers what was made of it; a tally as it is."""
    return source if isinstance(source, (Tally, Opened)) else Opened(source)


def some_table(source: Tally | RowSource) -> Totals:
    """Return the totals of all rows, however coarse: for what adds up over all of them."""
    rows = opened(source)
    return rows if isinstance(rows, Tally) else rows.start(COARSE_GRID)


def whole_tally(source: Tally | RowSource) -> Tally:
    """Return the tally of all rows, for what needs every distinct forecast.

    Cells that hold a single forecast are entries of it already; the rows of the others are fetched, if a bounded
    source has no more of them than its ``tally_limit``.
    """
    rows = opened(source)
    if isinstance(rows, Tally):
        return rows
    if rows.in_memory:
        return rows.open_all()
    table = rows.start()
    several = np.flatnonzero(table.high > table.low)
    if table.rows[several].sum() > rows.tally_limit:  # finer cells may show that forecasts repeat
        table = rows.start_finer(_TALLY_GRID)
        several = np.flatnonzero(table.high > table.low)
    count = int(table.rows[several].sum())
    if count > rows.tally_limit:
        raise TooManyForecastsError(
            f"this needs every distinct forecast, and {count:,} of {table.row_total:,} rows would have to be fetched "
            f"to tell them apart, above the limit of {int(rows.tally_limit):,}",
            remedy=Phrase(
                "raise {limit}, round the forecasts or take a {sample}{else_}",
                limit=Either("the limit (tally_limit)", Option("memory_limit")),
                sample=Either("sample", "random sample"),
                else_=Either(", or use certificates.bracket for an answer with known ends"),
            ),
        )
    if several.size:
        table = rows.open(table, several)
    columns = {field.name: getattr(table, field.name) for field in fields(Totals)}
    return Tally(**(columns | {"high": table.low}))


def split_at_extremes(source: Tally | RowSource, *others: Callable[[Totals], IntArray]) -> Totals:
    """Return ordered entries fine enough that the residual curve's extremes lie at their borders.

    Entries that hold more than one forecast are kept whole only where the curve inside them cannot pass its extremes,
    nor come within `TOLERANCE` of one or leave it: the Cutoff error and the worst interval of the entries are exact.
    What others find too coarse is split with them, which saves scans.
    """

    def too_coarse(table: Totals) -> IntArray:
        return np.unique(np.concatenate([test(table) for test in (may_hold_extreme, *others)]))

    return refine(source, too_coarse if others else may_hold_extreme, FIRST_GRID)


@dataclass(frozen=True)
class Scores:
    """A score per entry that adds up over rows, and how far it can move inside, which few ask for.

    Of ``moves()`` the first, ``up``, bounds the sum of the rows' positive scores, the second, ``down``, that of the
    negative ones, so that in whatever order its rows come the running sum stays between -down and up.
    """

    total: FloatArray
    moves: Callable[[], tuple[FloatArray, FloatArray]]

    @cached_property
    def _moves(self) -> tuple[FloatArray, FloatArray]:
        return self.moves()

    @property
    def up(self) -> FloatArray:
        """The most that the running sum rises inside each entry."""
        return self._moves[0]

    @property
    def down(self) -> FloatArray:
        """The most that it falls there."""
        return self._moves[1]

    @cached_property
    def prefix(self) -> FloatArray:
        """The running sum of scores at every border of entries."""
        return prefix_sums(self.total)

    @cached_property
    def largest(self) -> float:
        """The largest sum of scores over neighbouring entries (none of them included: 0)."""
        return largest_stretch(self.total)


Pair = tuple[Scores, Scores]
"""Scores for the two signs of the residual."""


def linear_scores(table: Totals, sign: float, coefficient: float) -> Scores:
    """Score a row by sign w r + coefficient w^2 r^2 (coefficient >= 0)."""
    square = coefficient * table.weight_square_residual_square

    def moves() -> tuple[FloatArray, FloatArray]:
        positive, negative = residual_bounds(table)
        if sign < 0.0:
            positive, negative = negative, positive
        return positive + square, negative

    return Scores(sign * table.residual + square, moves)


@dataclass(frozen=True)
class GrowthMoments:
    """What the growth of bets at any rate needs of entries of 0/1 outcomes: around the middles of their forecasts.

    The forecasts of events, c + d around the middle c, have a sum of d that follows from the sums of r and r^2, but for
    the sum of all d^2.
    """

    table: Totals
    others: FloatArray
    middle: FloatArray
    shift: FloatArray
    event_shift: FloatArray

    @classmethod
    def of(cls, table: Totals) -> GrowthMoments:
        """Return those of a table."""
        events = table.outcome
        others = table.rows - events
        middle = (table.low + table.high) / 2.0
        half = (table.high - table.low) / 2.0
        shift = events - table.residual - middle * table.rows
        excess = table.residual_square - events * np.square(1.0 - middle) - others * np.square(middle)
        event_shift = middle * shift + (np.square(half) * table.rows / 2.0 - excess) / 2.0
        return cls(table, others, middle, shift, event_shift)


def growth_pairs(table: Totals, rates: Iterable[float], event_rate: float | None = None) -> Iterator[Pair]:
    """Return the `growth_scores` of both signs at each rate."""
    moments = table if isinstance(table, Tally) else GrowthMoments.of(table)
    for rate in rates:
        yield growth_scores(moments, rate, 1.0, event_rate), growth_scores(moments, rate, -1.0, event_rate)


def growth_scores(table: Totals | GrowthMoments, rate: float, sign: float, event_rate: float | None = None) -> Scores:
    """Score a row of unit weight, with an outcome of 0 or 1, by -ln(1 - rate sign r).

    Events may be scored at a rate of their own, the smaller one.
    """
    step = rate if event_rate is None else event_rate
    if not isinstance(table, Tally):
        moments = table if isinstance(table, GrowthMoments) else GrowthMoments.of(table)
        return _growth_from_moments(moments, rate, sign, step)
    if len(table) == table.row_total and step == rate:  # each entry is one row: half as many logarithms
        total = -rate * sign * table.residual
        np.negative(np.log1p(total, out=total), out=total)
        return Scores(total, lambda: (np.maximum(total, 0.0), np.maximum(-total, 0.0)))
    event = -table.outcome * np.log1p(-step * sign * (1.0 - table.forecast))
    other = -(table.rows - table.outcome) * np.log1p(rate * sign * table.forecast)
    up, down = (event, other) if sign > 0.0 else (other, event)
    return Scores(up + down, lambda: (up, -down))


def _growth_from_moments(moments: GrowthMoments, rate: float, sign: float, event_rate: float) -> Scores:
    """Score entries of 0/1 outcomes from their sums of r and r^2, to within `growth_error`.

    -ln(1 - x) is x + x^2 / 2 plus a rest of third order, which is taken to be linear in the forecast inside an entry.
    What events lose by a smaller rate is taken to be linear too.
    """
    table, others, middle = moments.table, moments.others, moments.middle
    events, shift, event_shift = table.outcome, moments.shift, moments.event_shift
    step = rate * sign
    total = step * table.residual + step**2 / 2.0 * table.residual_square
    for count, moved, bet in (
        (events, event_shift, step * (1.0 - middle)),
        (others, shift - event_shift, -step * middle),
    ):
        total += count * _third_order(bet, rate) - step * np.square(bet) / (1.0 - bet) * moved
    if event_rate != rate:
        ratio = (1.0 - step * (1.0 - middle)) / (1.0 - event_rate * sign * (1.0 - middle))
        slope = (step - event_rate * sign) / (
            (1.0 - step * (1.0 - middle)) * (1.0 - event_rate * sign * (1.0 - middle))
        )
        total += events * np.log(ratio) + slope * event_shift
    gain, loss = (events, others) if sign > 0.0 else (others, events)
    gain_rate, loss_rate = (event_rate, rate) if sign > 0.0 else (rate, event_rate)
    largest_gain, largest_loss = (1.0 - table.low, table.high) if sign > 0.0 else (table.high, 1.0 - table.low)

    def moves() -> tuple[FloatArray, FloatArray]:
        won, lost = gain_rate * largest_gain, loss_rate * largest_loss
        if rate > _SLOW:
            return -gain * np.log1p(-won), loss * np.log1p(lost)
        # -ln(1 - x) <= x + x^2 / 2 + x^3 / (3 (1 - x)) and ln(1 + x) <= x - x^2 / 2 + x^3 / 3, which are quicker.
        up = gain * (won * (1.0 + won * (0.5 + won / (3.0 * (1.0 - gain_rate)))))
        return up, loss * (lost * (1.0 - lost * (0.5 - lost / 3.0)))

    return Scores(total, moves)


def _third_order(bet: FloatArray, rate: float) -> FloatArray:
    """Return -ln(1 - x) - x - x^2 / 2 for bets x of at most a rate: a few terms of its series where bets are slow."""
    if rate > _SLOW:
        rest: FloatArray = -np.log1p(-bet) - bet - np.square(bet) / 2.0
        return rest
    last = 3
    while rate ** (last - 2) > _SERIES_REST:
        last += 1
    rest = np.full_like(bet, 1.0 / last)
    for power in range(last - 1, 2, -1):
        rest *= bet
        rest += 1.0 / power
    rest *= bet * np.square(bet)
    return rest


def growth_error(table: Totals, rate: float, event_rate: float | None = None) -> FloatArray:
    """Return the most by which growth from sums of r and r^2 can be off, for each entry.

    Inside an entry of half width q the rest of third order has a second derivative of at most rate^2 (1/(1 - rate)^2 -
    1), and the sum of d^2 is known to within q^2 / 2 a row, on which half the shift of the events depends.
    """
    factor = _growth_error_factor(rate, rate if event_rate is None else event_rate)
    error: FloatArray = factor * np.square((table.high - table.low) / 2.0) * table.rows
    return error


def _growth_error_factor(rate: float, event_rate: float) -> float:
    steep, steep_event = rate / (1.0 - rate), event_rate / (1.0 - event_rate)
    curvature = 1.0 / (1.0 - rate) ** 2 - 1.0
    # Of the difference that a smaller rate of events makes: its first derivative, and half of its second.
    fewer = (steep - steep_event) / 4.0 + (steep**2 - steep_event**2) / 2.0
    return rate**2 * (curvature / 2.0 + rate / (4.0 * (1.0 - rate))) + fewer


def split_for_growth(source: Tally | RowSource, rate: float, most: float, event_rate: float | None = None) -> Totals:
    """Return ordered entries so narrow that all their `growth_error` together is at most that large."""
    rows = opened(source)
    if isinstance(rows, Tally):
        return rows
    table = rows.start()
    error = growth_error(table, rate, event_rate)
    if float(error.sum()) < most / (1.0 + _ROUNDING):  # far enough from it, and no order is needed
        return table
    order = np.argsort(error)
    together = np.cumsum(error[order])
    if together[-1] <= most:
        return table
    # Half of the error is for the entries that stay as they are, the other half for cells of width 2^-bits.
    factor = _growth_error_factor(rate, rate if event_rate is None else event_rate)
    bits = math.ceil(math.log2(factor * table.row_total / (2.0 * most)) / 2.0)
    return rows.cut(table, np.sort(order[together > most / 2.0]), bits)


def largest_stretch(total: FloatArray) -> float:
    """Return the largest sum of scores over neighbouring entries (none of them included: 0).

    Block by block, each of which a cache holds.
    """
    largest = reached = lowest = 0.0
    for begin in range(0, total.size, _BLOCK):
        block = total[begin : begin + _BLOCK]
        prefix = np.empty(block.size + 1)
        prefix[0], prefix[1:] = reached, block
        prefix.cumsum(out=prefix)
        reached, prefix[0] = float(prefix[-1]), lowest
        least = np.minimum.accumulate(prefix)
        lowest = float(least[-1])
        prefix -= least
        largest = np.maximum(largest, prefix.max())  # which keeps what is no number
    return float(largest)


def bracket_stretch(scores: Scores) -> tuple[float, float]:
    """Return two ends between which the largest sum of neighbouring rows' scores lies."""
    highest, lowest = inner_bounds(scores)
    most = float((highest - np.minimum.accumulate(lowest)).max())
    return scores.largest, max(most, 0.0)


def largest_of(pair: Pair) -> float:
    """Return the largest stretch of either sign."""
    return max(scores.largest for scores in pair)


def may_hold_end(table: Totals, scores: Scores, best: float) -> IntArray:
    """Return the entries inside which a stretch of a larger sum than the best so far might begin or end."""
    highest, lowest = inner_bounds(scores)
    ends = highest - np.minimum.accumulate(lowest) > best
    if not ends.any():  # then none begins
        return np.empty(0, dtype=np.int64)
    begins = np.maximum.accumulate(highest[::-1])[::-1] - lowest > best
    return np.flatnonzero((ends | begins) & (table.high > table.low))


def split_at_stretches(source: Tally | RowSource, all_pairs: Callable[[Totals], Iterable[Pair]]) -> Totals:
    """Return ordered entries fine enough that, for each pair, the largest stretch begins and ends at their borders.

    The larger of the two signs is what counts, so that the smaller one is looked into only where it could be larger.
    """
    return refine(source, lambda table: stretch_ends(table, all_pairs(table)), FIRST_GRID)


def stretch_ends(table: Totals, pairs: Iterable[Pair]) -> IntArray:
    """Return the entries inside which the largest stretch of some pair might begin or end."""
    wanted = [may_hold_end(table, scores, largest_of(pair)) for pair in pairs for scores in pair]
    return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *wanted]))


def refine(source: Tally | RowSource, too_coarse: Callable[[Totals], IntArray], grid: Grid) -> Totals:
    """Return ordered entries none of which is too coarse: cells of a first grid, split where they must be.

    ``too_coarse`` returns the positions of entries that hold several forecasts and must not. Those that hold many rows
    are cut into finer cells first; the rows of the others are fetched and become entries of their own.
    """
    if isinstance(source, Tally):
        return source
    rows = source if isinstance(source, Opened) else Opened(source)
    zoom = _zoomed if rows.in_memory else _within_limit
    table, wanted = zoom(rows, rows.start(grid), too_coarse)
    if wanted.size == 0:
        return table
    if rows.in_memory and table.rows[wanted].sum() > table.row_total // 4:  # one sort of all rows is quicker
        return rows.open_all()
    return rows.open(table, wanted)


def _within_limit(rows: Opened, table: Totals, too_coarse: Callable[[Totals], IntArray]) -> tuple[Totals, IntArray]:
    """Zoom in, scan by scan, until the rows of the entries still too coarse may be fetched; return those entries too.

    Finer cells hold fewer rows, so that the curve inside them is known better, and in the end a single forecast: each
    scan leaves fewer rows to fetch.
    """
    wanted = rows.too_coarse(table, too_coarse)
    scans, finer = 0, True
    while table.rows[wanted].sum() > rows.fetch_limit:
        if scans == _MOST_ZOOMS or not finer:
            raise InputError(
                f"after {scans} scans {table.rows[wanted].sum():,} of {table.row_total:,} rows would still have to be "
                f"looked at one by one, above the limit of {int(rows.fetch_limit):,} rows",
                remedy="raise the limit (fetch_limit), or use certificates.bracket for an answer with known ends",
            )
        before = len(table)
        table = rows.zoom_within(table, wanted)
        wanted = rows.too_coarse(table, too_coarse)
        # The widest entry is cut unless its forecasts are too near 0 for any grid: then another scan is no use.
        scans, finer = scans + 1, len(table) > before
    return table, wanted


def _zoomed(rows: Opened, table: Totals, too_coarse: Callable[[Totals], IntArray]) -> tuple[Totals, IntArray]:
    """Zoom in where that is quicker than to look at rows one by one; return the entries still too coarse, too."""
    wanted = too_coarse(table)
    for _ in range(_ZOOM_ROUNDS):
        stretches = _worth_zooming(table, wanted)
        if not stretches:
            break
        for stretch in stretches[::-1]:  # from the right, so that the positions still to come stay valid
            finer = Grid.covering(float(table.low[stretch[0]]), float(table.high[stretch[-1]]))
            table = rows.zoom(table, stretch, finer)
        wanted = too_coarse(table)
    return table, wanted


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


def may_hold_extreme(table: Totals) -> IntArray:
    """Return the entries inside which the curve might pass its extremes so far, or come near or leave them."""
    prefix = table.residual_prefix()
    highest, lowest = curve_bounds(table)
    top, bottom = prefix.max(), prefix.min()
    slack = curve_slack(table.weight_total)
    beyond = (highest > top) | (lowest < bottom)
    # Near an extreme, what counts is where the curve enters or leaves: an entry wholly near it need not be opened.
    crosses_top = (highest >= top - slack) & (lowest < top - slack)
    crosses_bottom = (lowest <= bottom + slack) & (highest > bottom + slack)
    return np.flatnonzero((beyond | crosses_top | crosses_bottom) & (table.high > table.low))


def curve_bounds(table: Totals) -> tuple[FloatArray, FloatArray]:
    """Return the highest and the lowest value that the residual curve can take inside each entry."""
    return inner_bounds(Scores(table.residual, lambda: residual_bounds(table)))


def inner_bounds(scores: Scores) -> tuple[FloatArray, FloatArray]:
    """Return the highest and the lowest value that the running sum of scores can take inside each entry.

    Counting either the rows passed or the rows still to come bounds how far it rises above, or falls below, its value
    on entering.
    """
    start = scores.prefix[:-1]
    highest: FloatArray = start + np.minimum(scores.up, scores.total + scores.down)
    lowest: FloatArray = start - np.minimum(scores.down, scores.up - scores.total)
    return highest, lowest


def residual_bounds(table: Totals) -> tuple[FloatArray, FloatArray]:
    """Return the most that the rows of each entry can add to the residual curve and take from it, in any order.

    A row adds at most w y (1 - p) and takes away at most w p (1 - y).
    """
    return table.outcome * (1.0 - table.low), table.high * (table.weight - table.outcome)
