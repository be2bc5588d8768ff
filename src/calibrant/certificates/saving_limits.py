"""Limits of the risk gap: how much re-drawing the line between acting and not acting can save, with confidence.

The risk gap is the largest mean saving over a fixed class of lines and thresholds, so that only the population's own
best line has to behave: a bet against every line, or Hoeffding's margin for one of them, limits them all. Good
forecasters leave little to save near any threshold, on few rows, whose bets may be bold: the rate follows from how many
rows the population has near its thresholds. The proofs are in docs/theory/savings.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np

from calibrant.certificates.betting import (
    HIGHEST_RATE,
    SPLITS,
    averaged_lower,
    best_rate,
    bet_rates,
    interval_rates,
    planned_rates,
)
from calibrant.certificates.margins import VARIANCE_SHARE
from calibrant.certificates.samples import Samples
from calibrant.core.chernoff import chernoff_intervals, lower_means, upper_means
from calibrant.core.types import FloatArray, IntArray
from calibrant.rows.grids import COARSE_CELLS
from calibrant.rows.refinement import whole_tally
from calibrant.rows.runs import group_starts
from calibrant.rows.savings import (
    Redrawing,
    Stretches,
    Thresholds,
    bet_score,
    bracket_redrawing,
    largest_redrawing,
    split_at_savings,
    split_at_thresholds,
    square_score,
    win_score,
)
from calibrant.rows.sources import FEW_ROWS, RowSource
from calibrant.rows.splits import digest, seeded
from calibrant.rows.tally import Tally, Totals
from calibrant.rows.weights import effective_rows

_LEVELS = 15
LEVEL_RATES: FloatArray = HIGHEST_RATE * 2.0 ** (-np.arange(_LEVELS) / 2.0)
_SKEWNESS, _LESS_SKEW = 1.0, 2.0  # rare events come as large surprises, to which rates give way
_BOLDEST = 4.0  # what a rate may be before it gives way
_SURPRISES = 3.0  # that nobody announced make a rate as bold as one unit of variance
_WINDOWS_FROM_ROWS = 100
"""From this many rows on windows are known well enough to set the rate."""

_MANY_WINDOWS = 1000
_LEAST_EXPONENT = 1e-12  # at a confidence of one half, where z is 0

SECOND_SHARE = 0.04
"""Share of delta for bets at the rates that suit all rows, beside those that suit rows near the thresholds."""

SPLIT_BELOW_ROWS = FEW_ROWS
"""From this many rows on only counts are split, not rows one by one."""

CELLS_FROM_ROWS = 10_000
"""From this many rows on lines are drawn between coarse cells in halves of the rows."""

CAUTION = 0.75
"""How bold a bet is that names a line, beside one against every line."""

_MARGIN_SHARE = 0.01
"""Share of delta for rows of which only totals are known."""


# --- Rates -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Windows:
    """Windows of forecasts as wide as the best lines of a rate are apart: unions of coarse cells, fixed beforehand."""

    starts: IntArray
    kept: IntArray
    factor: FloatArray
    """For each window kept, what a row in it makes a rate bolder: p (1 - p) at most, times the square of the rate."""
    surprise: float
    """The same for each surprise that the forecasts did not announce."""

    @property
    def reach(self) -> slice:
        """The coarse cells of all windows kept."""
        ends = np.append(self.starts, COARSE_CELLS)
        return slice(int(ends[self.kept[0]]), int(ends[self.kept[-1] + 1]))

    def sums(self, rows: FloatArray) -> FloatArray:
        """Add up rows per coarse cell."""
        found: FloatArray = np.add.reduceat(rows, self.starts)[self.kept]
        return found

    def lower(self, rows: FloatArray, delta: float) -> FloatArray:
        """Return lower limits for the means of those sums."""
        return lower_means(self.sums(rows), delta, steps=self._steps)

    def upper(self, rows: FloatArray, delta: float) -> FloatArray:
        """Return upper limits for the means of those sums."""
        return upper_means(self.sums(rows), delta, steps=self._steps)

    @property
    def _steps(self) -> int:
        return 2 if self.kept.size < _MANY_WINDOWS else 0  # where windows are many, so are rows

    def boldness(self, rows: FloatArray, surprises: float, exponent: float) -> float:
        """Return the logarithm of how much too bold the rate is for windows with so many rows, and surprises."""
        spread = max(float((self.factor * rows).max(initial=0.0)), self.surprise * surprises)
        return math.log(max(spread / (2.0 * exponent), 1e-300))


_MIDDLE: FloatArray = (np.arange(COARSE_CELLS) + 0.5) / COARSE_CELLS
_VARIANCE: FloatArray = _MIDDLE * (1.0 - _MIDDLE)


@lru_cache(maxsize=16)
def _windows(thresholds: Thresholds) -> tuple[_Windows, ...]:
    """Return the windows of each rate that lie near the thresholds.

    At rate x the best lines of a calibrated forecaster are x p (1 - p) / 2 apart: x/2 in units of ln(p / (1 - p)).
    """
    place = np.log(_MIDDLE) - np.log1p(-_MIDDLE)
    cells = np.clip((np.array(thresholds) * COARSE_CELLS).astype(np.int64), 0, COARSE_CELLS - 1)
    found = []
    for rate in LEVEL_RATES.tolist():
        index = np.floor(place / (rate / 2.0))
        starts = group_starts(index)
        low, high = index[cells]
        kept = np.flatnonzero((index[starts] >= low - 1.0) & (index[starts] <= high + 1.0))
        variance = np.maximum.reduceat(_VARIANCE, starts)[kept]
        surprise = float(_before(rate, np.zeros(1))[0]) / _SURPRISES
        found.append(_Windows(starts, kept, variance * _before(rate, variance), surprise))
    return tuple(found)


def _before(rate: float, variance: FloatArray) -> FloatArray:
    """Return the square of what a rate was before it gave way to skewness, where outcomes have so much variance."""
    skewness = _SKEWNESS - _LESS_SKEW * variance
    before: FloatArray = np.square(rate / np.maximum(1.0 - skewness * rate, rate / _BOLDEST))
    return before


class _Coarse(NamedTuple):
    """What sets a rate: rows per coarse cell, surprises, and how many of them the forecasts announce.

    An event that is forecast at c < 1/2 is a surprise of (1 - c)(1 - 2c), another row at c > 1/2 one of c (2c - 1). Of
    calibrated forecasts c (1 - c) |1 - 2c| is the mean, and of forecasts that are too sure of themselves they are more.
    """

    rows: FloatArray
    surprises: float
    announced: float

    @classmethod
    def of(cls, stretches: Stretches, thresholds: Thresholds) -> _Coarse:
        """Add up entries, forecasts in the middle of their coarse cell; surprises in the widest windows only."""
        cell = np.minimum((stretches.low * COARSE_CELLS).astype(np.int64), COARSE_CELLS - 1)
        rows, events = (
            np.bincount(cell, weights=column, minlength=COARSE_CELLS).astype(np.float64)
            for column in (stretches.rows, stretches.events)
        )
        near = _windows(thresholds)[0].reach
        rare = np.where(_MIDDLE < 0.5, events, rows - events) * np.maximum(_MIDDLE, 1.0 - _MIDDLE) * _SURE
        return cls(rows, float(rare[near].sum()), float((rows * _VARIANCE * _SURE)[near].sum()))


_SURE: FloatArray = np.abs(1.0 - 2.0 * _MIDDLE)
_MOST_ANNOUNCED = float((_VARIANCE * _SURE).max())


def usual_rate(stretches: Stretches, thresholds: Thresholds, exponent: float) -> float:
    """Return the rate that suits the rows as they are."""
    coarse = _Coarse.of(stretches, thresholds)
    surprises = max(coarse.surprises - coarse.announced, 0.0)
    return highest_below(each.boldness(each.sums(coarse.rows), surprises, exponent) for each in _windows(thresholds))


def saving_rates(stretches: Stretches, thresholds: Thresholds, delta: float) -> tuple[float, float]:
    """Return two rates between which the population's rate lies, but for a small share of delta.

    Rows in a window, surprises and announced ones are sums within Poisson tails of their means. For the slower rate
    only the population's worst window has to behave, for the faster one all of them.
    """
    exponent, each = _shares(delta)
    coarse = _Coarse.of(stretches, thresholds)
    total = float(coarse.rows.sum())
    announced = coarse.announced / _MOST_ANNOUNCED  # whose terms are at most 1
    (least_surprises, fewest), (most_surprises, most) = chernoff_intervals(
        np.array([coarse.surprises, announced]), each
    ).tolist()
    bold = min(max(most_surprises - _MOST_ANNOUNCED * fewest, 0.0), total)
    timid = max(least_surprises - _MOST_ANNOUNCED * most, 0.0)
    levels = _windows(thresholds)
    # Windows with all of the rows tell which rates are not too bold in any case: the lowest above is not below those.
    needed = sum(total * max(float(level.factor.max(initial=0.0)), level.surprise) > 2.0 * exponent for level in levels)
    above = [
        level.boldness(np.minimum(level.upper(coarse.rows, each), total), bold, exponent)
        for level in levels[: needed + 1]
    ]
    below = (
        level.boldness(level.lower(coarse.rows, each / max(level.kept.size, 1)), timid, exponent) for level in levels
    )
    return lowest_above(above), highest_below(below)


def _shares(delta: float) -> tuple[float, float]:
    """Split delta: ln(1/.) for the bet, and what is left for each of eight statements that enclose the rate.

    For each end they are two levels next to the population's rate, its surprises, and those announced.
    """
    return math.log(1.0 / (delta * (1.0 - VARIANCE_SHARE))), delta * VARIANCE_SHARE / 8.0


def highest_below(levels: Iterable[float]) -> float:
    """Return the highest rate that is not too bold, between levels by interpolation."""
    above = 0.0
    for level, boldness in enumerate(levels):
        if boldness <= 0.0:
            return _between(level, above, boldness)
        above = boldness
    return _beyond(above)


def lowest_above(levels: list[float]) -> float:
    """Return the lowest rate above which rates are too bold, between levels by interpolation."""
    below = -math.inf
    for level, boldness in reversed(list(enumerate(levels))):
        if boldness > 0.0:
            return _beyond(boldness) if level == _LEVELS - 1 else _between(level + 1, boldness, below)
        below = boldness
    return HIGHEST_RATE


def _between(level: int, above: float, below: float) -> float:
    """Return where the line from a level that is not too bold up to the one before, which is, crosses 0."""
    if level == 0:
        return HIGHEST_RATE
    return float(LEVEL_RATES[level - 1] * 2.0 ** (-above / (above - below) / 2.0))


def _beyond(boldness: float) -> float:
    """Return the rate below all levels, where windows cannot be narrower and boldness falls as the square."""
    return float(LEVEL_RATES[-1]) * math.exp(-boldness / 2.0)


# --- Upper limits ----------------------------------------------------------------------------------------------------


def betting_rates(table: Totals, thresholds: Thresholds, delta: float) -> tuple[float, ...]:
    """Return the rates of bets against lines near the thresholds; of few rows, those of bets against intervals."""
    if _are_few(table):
        return bet_rates(table, delta)
    return saving_rates(Stretches.of(table), thresholds, delta * (1.0 - SECOND_SHARE))


def _are_few(table: Totals) -> bool:
    return table.unit_weights and table.row_total < _WINDOWS_FROM_ROWS


def betting_upper(
    source: Tally | RowSource, table: Totals, thresholds: Thresholds, estimate: float, delta: float
) -> float:
    """Return the largest saving that bets against every line leave possible.

    Lines far from the thresholds, which forecasts that are far off have, ask for slower rates than rows near them do:
    the rates of bets against intervals have a second say, with a small share of delta. At equal rates no limit of a
    saving is above that of the Cutoff error, so that none is above that with this share of delta.
    """
    rates, stretches = betting_rates(table, thresholds, delta), Stretches.of(table)
    if _are_few(table):
        return _betting_limit(table, rates, _growth(stretches, thresholds, rates), delta)
    second = SECOND_SHARE * delta
    first = _betting_limit(table, rates, _growth(stretches, thresholds, rates), delta - second)
    slower = interval_rates(table, second)
    saved = estimate * table.weight_total / table.weight_max
    if _betting_limit(table, slower, [rate * saved for rate in slower], second) >= first:  # a bet grows no less
        return first
    fine = Stretches.of(split_at_savings(source, thresholds, lambda _: list(map(bet_score, slower))))
    return min(first, _betting_limit(table, slower, _growth(fine, thresholds, slower), second))


def _growth(stretches: Stretches, thresholds: Thresholds, rates: tuple[float, ...]) -> list[float]:
    return [largest_redrawing(stretches, thresholds, bet_score(rate)).score for rate in rates]


def betting_bracket(table: Totals, thresholds: Thresholds, delta: float) -> tuple[float, float]:
    """Return two ends between which that limit lies, from cells alone."""
    second = 0.0 if _are_few(table) else SECOND_SHARE * delta
    ends = [_bracketed(table, thresholds, betting_rates(table, thresholds, delta), delta - second)]
    if second > 0.0:
        ends.append(_bracketed(table, thresholds, interval_rates(table, second), second))
    low, high = np.min(ends, axis=0).tolist()
    return low, high


def _bracketed(table: Totals, thresholds: Thresholds, rates: tuple[float, ...], delta: float) -> list[float]:
    stretches = Stretches.of(table)
    ends = [bracket_redrawing(stretches, thresholds, bet_score(rate)) for rate in rates]
    return [_betting_limit(table, rates, list(growth), delta) for growth in zip(*ends, strict=True)]


def _betting_limit(table: Totals, rates: tuple[float, ...], growth: list[float], delta: float) -> float:
    exponent, _ = _shares(delta)
    share = table.weight_total / (table.row_total * table.weight_max)
    return max(
        -math.expm1(-(grown + exponent) / table.row_total) / (rate * share)
        for rate, grown in zip(rates, growth, strict=True)
    )


def large_sample_upper(
    source: Tally | RowSource, table: Totals, thresholds: Thresholds, estimate: float, quantile: float
) -> float:
    """Return about the largest mean saving plus z standard errors over all lines, for many rows.

    z sqrt(v) <= x v / 2 + z^2 / (2 x), with equality at the variance that the rate x suits: that of rows near the
    thresholds, or of all of them where the limit is smaller then.
    """
    near, far = large_sample_rates(table, thresholds, quantile)
    stretches = Stretches.of(table)
    first = _large_sample_limit(table, near, _scored(stretches, thresholds, near), quantile)
    if _large_sample_limit(table, far, estimate * table.weight_total / table.weight_max, quantile) >= first:
        return first
    fine = Stretches.of(split_at_savings(source, thresholds, lambda _: [square_score(far / 2.0)]))
    return min(first, _large_sample_limit(table, far, _scored(fine, thresholds, far), quantile))


def _scored(stretches: Stretches, thresholds: Thresholds, rate: float) -> float:
    return largest_redrawing(stretches, thresholds, square_score(rate / 2.0)).score


def large_sample_bracket(table: Totals, thresholds: Thresholds, quantile: float) -> tuple[float, float]:
    """Return two ends between which that limit lies, from cells alone."""
    stretches = Stretches.of(table)
    ends = [
        [
            _large_sample_limit(table, rate, score, quantile)
            for score in bracket_redrawing(stretches, thresholds, square_score(rate / 2.0))
        ]
        for rate in large_sample_rates(table, thresholds, quantile)
    ]
    low, high = np.min(ends, axis=0).tolist()
    return low, high


def large_sample_rates(table: Totals, thresholds: Thresholds, quantile: float) -> tuple[float, float]:
    """Return the rates that suit rows near the thresholds, and all rows: z over the standard deviation of a sum."""
    exponent = max(quantile**2 / 2.0, _LEAST_EXPONENT)
    squares = float(table.weight_square_residual_square.sum()) / table.weight_max**2
    near = usual_rate(Stretches.of(table), thresholds, exponent)
    return near, min(math.sqrt(2.0 * exponent / squares), HIGHEST_RATE) if squares > 0.0 else HIGHEST_RATE


def _large_sample_limit(table: Totals, rate: float, score: float, quantile: float) -> float:
    return (score + quantile**2 / (2.0 * rate)) * table.weight_max / table.weight_total


def saving_margin(rows: float, delta: float) -> float:
    """Return Hoeffding's margin sqrt(ln(1/delta) / (2 n)) above the largest saving, each of which has a range of 1."""
    return math.sqrt(math.log(1.0 / delta) / (2.0 * rows))


def planned_betting(samples: Samples, thresholds: Thresholds, delta: float) -> FloatArray:
    """Return the betting limit of each simulated data set, at rates that suit all of them."""
    forecast = samples.forecast
    exponent, _ = _shares(delta)
    if samples.size < _WINDOWS_FROM_ROWS:
        rates = planned_rates(samples, delta).mean(axis=1)
    else:
        delta *= 1.0 - SECOND_SHARE
        exponent, _ = _shares(delta)
        means = (np.mean(column, axis=0) for column in (samples.rows, samples.events))
        rates = np.array(saving_rates(Stretches(forecast, forecast, *means), thresholds, delta))
    scores = list(map(bet_score, rates.tolist()))
    times = len(samples.rows) * len(scores)
    limits = []
    for rows, events in zip(samples.rows.astype(np.float64), samples.events.astype(np.float64), strict=True):
        kept = rows > 0.0
        stretches = Stretches(forecast[kept], forecast[kept], rows[kept], events[kept])
        growth = np.array([largest_redrawing(stretches, thresholds, score, times=times).score for score in scores])
        limits.append(float((-np.expm1(-(growth + exponent) / samples.size) / rates).max()))
    return np.array(limits)


# --- Lower limits ----------------------------------------------------------------------------------------------------


def lower_saving_margin(table: Totals, delta: float) -> float:
    """Return a margin below the largest saving that holds for all lines at once.

    2 sqrt(ln(2e / delta) / (2 n)) for rows of equal weight: only the distribution functions of events and of non-events
    have to behave. Otherwise (4 + sqrt(ln(1/delta) / 2)) / sqrt(n_eff), by symmetrisation.
    """
    rows = effective_rows(table)
    if table.unit_weights:
        return monotone_saving_margin(rows, delta)
    return (4.0 + math.sqrt(math.log(1.0 / delta) / 2.0)) / math.sqrt(rows)


def monotone_saving_margin(rows: float, delta: float) -> float:
    """Return how far the risk gap of a monotone map can be from its value on the rows, for all such maps at once."""
    return 2.0 * math.sqrt((1.0 + math.log(2.0 / delta)) / (2.0 * rows))


def split_lower_saving(
    source: Tally | RowSource, table: Totals, thresholds: Thresholds, estimate: float, delta: float, seed: int
) -> float:
    """Return a lower limit by splitting the rows: one half names a line, the other half bets on it.

    The evidence of `SPLITS` random halves is averaged. Many rows have thresholds and lines at the borders of coarse
    cells, inside of which nothing is seen. Where rows cannot be told apart, which outcomes between 0 and 1 have a say
    in, the margin of all lines takes its place: each of the two has its share of delta.
    """
    rest = _MARGIN_SHARE * delta
    if table.row_total >= SPLIT_BELOW_ROWS and not table.counted:
        return estimate - lower_saving_margin(table, rest)
    exponent = math.log(1.0 / (delta - rest))
    if table.row_total < CELLS_FROM_ROWS:
        halves = _halves_of_rows(whole_tally(source), seed)
    elif table.counted:
        halves = _halves_of_counts(_Cells.of(split_at_thresholds(source, thresholds), thresholds), seed)
    else:
        tally = whole_tally(source)
        halves = _in_cells(_halves_of_rows(tally, seed), _Cells.of(tally, thresholds))
    evidence = [_evidence(*each, thresholds, exponent) for each in islice(halves, SPLITS)]
    if not evidence:  # totals of rows that nobody can tell apart
        return estimate - lower_saving_margin(table, rest)
    growth, rates, rows = (np.array(column) for column in zip(*evidence, strict=True))
    return averaged_lower(growth, rates, rows, exponent)


class _Half(NamedTuple):
    """The rows of one half, and how many they are."""

    stretches: Stretches
    total: int


_Halves = Iterator[tuple[_Half, _Half]]


def _halves_of_rows(tally: Tally, seed: int) -> _Halves:
    """Send each row to one of two halves by the toss of a coin, again and again: as `Tally.splits` does."""

    def half(rows: FloatArray, events: FloatArray, count: int) -> _Half:
        return _Half(Stretches(tally.forecast, tally.forecast, rows, events), count)

    if tally.counted:
        for (rows,), (events,) in tally.tosses(seed, 1):
            parts = (rows, events), (tally.rows - rows, tally.events - events)
            first, second = (half(np.multiply(own, 1.0), np.multiply(won, 1.0), int(own.sum())) for own, won in parts)
            yield first, second
    elif tally.listed is not None:
        outcome, weight = tally.listed.y_true, tally.listed.sample_weight
        weight = np.ones(tally.row_total) if weight is None else weight / tally.weight_max
        starts = np.cumsum(tally.rows) - tally.rows
        for (heads,) in tally.heads(seed, 1):
            first, second = (
                half(np.add.reduceat(own, starts), np.add.reduceat(own * outcome, starts), int(np.count_nonzero(kept)))
                for kept, own in ((heads, weight * heads), (~heads, weight * ~heads))
            )
            yield first, second


@dataclass(frozen=True, eq=False)
class _Cells:
    """Coarse cells, cut at the thresholds, and the cell of each entry of a table."""

    borders: FloatArray
    cell: IntArray
    table: Totals

    @classmethod
    def of(cls, table: Totals, thresholds: Thresholds) -> _Cells:
        """Return the cells of entries, none of which reaches across a threshold."""
        borders = np.unique(np.concatenate([np.arange(COARSE_CELLS + 1) / COARSE_CELLS, thresholds]))
        return cls(borders, np.searchsorted(borders, table.low, side="right") - 1, table)

    def sums(self, column: FloatArray) -> FloatArray:
        """Add up a column of the entries."""
        return np.bincount(self.cell, weights=column, minlength=self.borders.size).astype(np.float64)

    def stretches(self, rows: FloatArray, events: FloatArray) -> Stretches:
        """Return the cells with their rows and events; a border belongs to the cell above it, and 1 is one itself."""
        return Stretches(self.borders, np.append(np.nextafter(self.borders[1:], 0.0), 1.0), rows, events)


def _in_cells(halves: _Halves, cells: _Cells) -> _Halves:
    """Add up the rows of halves by cell."""
    for pair in halves:
        first, second = (
            _Half(cells.stretches(cells.sums(each.stretches.rows), cells.sums(each.stretches.events)), each.total)
            for each in pair
        )
        yield first, second


def _halves_of_counts(cells: _Cells, seed: int) -> _Halves:
    """Send rows to halves by counts per cell: the coins of rows that nobody tells apart."""
    events = np.rint(cells.sums(cells.table.outcome)).astype(np.int64)
    others = np.rint(cells.sums(np.multiply(cells.table.rows, 1.0))).astype(np.int64) - events
    generator = seeded(seed, "halves, cells", digest("cells", others, events))
    while True:
        heads = generator.binomial([others, events], 0.5)
        pairs = heads, np.stack([others, events]) - heads
        first, second = (
            _Half(cells.stretches((lost + won).astype(np.float64), won.astype(np.float64)), int((lost + won).sum()))
            for lost, won in pairs
        )
        yield first, second


def _evidence(found: _Half, rest: _Half, thresholds: Thresholds, exponent: float) -> tuple[float, float, int]:
    """Return how a bet on the line found on some rows grows on the rest, the rate of the mean bet, and the rest."""
    (stretches, count), (others, rows) = found, rest
    if count == 0 or rows == 0:
        return 0.0, HIGHEST_RATE, 0
    # A line that a bet gains most by, rather than one that saves most, is less often one for noise.
    best = largest_redrawing(stretches, thresholds, win_score(CAUTION * usual_rate(stretches, thresholds, exponent)))
    gain, loss = (1.0 - best.threshold, best.threshold) if best.more else (best.threshold, 1.0 - best.threshold)
    right, wrong = _treated(stretches, best)
    rate = best_rate((right * gain**2 + wrong * loss**2) / count * rows, 1.0, exponent)
    right, wrong = _treated(others, as_found(stretches, best))
    growth = right * math.log1p(rate * gain) + wrong * math.log1p(-rate * loss)
    return growth, rate * float(others.rows.sum()) / rows, rows


def as_found(stretches: Stretches, line: Redrawing) -> Redrawing:
    """Return the line as the rows found say it: it moves past all forecasts that none of them has."""
    some = stretches.rows > 0.0
    if line.more:
        before = np.flatnonzero(some[: line.first])
        return replace(line, first=int(before[-1]) + 1 if before.size else 0)
    after = np.flatnonzero(some[line.last :])
    return replace(line, last=line.last + int(after[0]) if after.size else some.size)


def _treated(stretches: Stretches, line: Redrawing) -> tuple[float, float]:
    """Return how many rows a new line treats rightly, of those that it treats otherwise, and how many wrongly."""
    between = slice(line.first, line.last)
    events, rows = float(stretches.events[between].sum()), float(stretches.rows[between].sum())
    return (events, rows - events) if line.more else (rows - events, events)
