"""Upper limits that hold at all times together: bets against the worst interval, whichever it is.

For the interval and sign at which the error mu is attained, the product of (1 - x W) / (1 - x mu) is a martingale for
every rate x, and so is its average over rates with weights that were fixed beforehand. Bets on the worst interval of
the rows so far have grown no less than its stakes have shrunk. The proofs are in docs/theory/streams.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibrant.certificates.betting import best_rate
from calibrant.certificates.cluster_limits import growth_rest
from calibrant.core.types import FloatArray, IntArray
from calibrant.monitors.evidence import Evidence, are_slow, cell_gains, cell_moments, mixed_lower, rates_of, slow_gains
from calibrant.monitors.families import BORDERS, LEAST_BITS
from calibrant.rows.cells import Cells
from calibrant.rows.tally import ADDITIVE

_FASTEST = 0.9  # as means of one population may be anything from -1 to 1, also those of periods
_COMMON = 18
_COUNT = 41
_COMMON_SHARE = 0.9
_NEAR = 2  # rates on each side of the best that are tried; the others may be left out
_FEW_CELLS = 2**13
_BLOCKS = 64
MOST_BLOCKS = 3 * _BLOCKS + BORDERS.size
"""Fixed ones, and around cells that hold at least one row of so many."""

_SIGNS = (1.0, -1.0)


_GRID = _FASTEST * 2.0 ** (-np.arange(float(_COUNT)) / 2.0)


def _log_row_weights() -> FloatArray:
    tail = 1.0 / np.arange(1.0, _COUNT - _COMMON + 1.0) ** 2
    weights = np.concatenate([np.full(_COMMON, _COMMON_SHARE / _COMMON), (1.0 - _COMMON_SHARE) * tail / tail.sum()])
    logs: FloatArray = np.log(weights)
    return logs


_LOG_ROW_WEIGHTS = _log_row_weights()
_LOG_PERIOD_WEIGHTS = -np.log(np.arange(1.0, _COUNT + 1.0) * np.arange(2.0, _COUNT + 2.0))
"""Periods are few and their means small: fast bets are nearly always the best."""


def mixed_upper(growth: FloatArray, rates: FloatArray, log_weights: FloatArray, units: int, delta: float) -> float:
    """Return the mean mu with sum of w exp(-growth) (1 - x mu)^(-units) = 1/delta, at most 1."""
    return -mixed_lower(log_weights - growth, rates, units, delta, -1.0)


def _near(best: float, near: int) -> IntArray:
    """Return which rates are near one: the others may be left out."""
    middle = int(np.abs(np.log(_GRID / best)).argmin())
    return np.arange(max(middle - near, 0), min(middle + near + 1, _COUNT))


def _rate(squares: float, log_weights: FloatArray, delta: float) -> float:
    """Return about the best rate for a sum of squares."""
    return best_rate(squares, 0.0, math.log(1.0 / delta) - float(log_weights[0]))


def rate_of_rows(cells: Cells, delta: float) -> float:
    """Return about the best rate for bets on the residuals of rows."""
    return _rate(float(cells.residual_square.sum()), _LOG_ROW_WEIGHTS, delta)


def mixed_upper_of_rows(
    bests: Sequence[float], near: int, grown: Callable[[FloatArray], FloatArray], cells: Cells, delta: float
) -> float:
    """Return the limit for rows from some rates on each side of the best ones and what bets at them have grown."""
    tried = np.unique(np.concatenate([_near(best, near) for best in bests]))
    return mixed_upper(grown(_GRID[tried]), _GRID[tried], _LOG_ROW_WEIGHTS[tried], cells.row_total, delta)


def upper_of_rows(cells: Cells, delta: float) -> float:
    """Return the limit of the Cutoff error for rows that are independent draws from one population."""

    def grown(rates: FloatArray) -> FloatArray:
        most: FloatArray = np.maximum(*(_most_grown(cells, rates, sign) for sign in _SIGNS))
        return most

    near = _NEAR if len(cells) > _FEW_CELLS else 2 * _NEAR
    return mixed_upper_of_rows([rate_of_rows(cells, delta)], near, grown, cells, delta)


def _most_grown(cells: Cells, rates: FloatArray, sign: float) -> FloatArray:
    """Return, by rate, an upper bound of the most, over intervals, of the sum of -ln(1 - x s r).

    Of the cells in which an interval begins and ends it holds some rows, which add at most -ln(1 - x) times the sum of
    their residuals that are above 0.
    """
    above, below = _parts(cells)
    inside = np.where(cells.low < cells.high, above if sign > 0.0 else below, 0.0)
    slow = are_slow(cells, rates)
    moments = cell_moments(cells, -sign) if slow.any() else ()
    found = np.empty(rates.size)
    for k, rate in enumerate(rates.tolist()):
        lost = slow_gains(moments, rate) if slow[k] else cell_gains(cells, rate, -sign)
        found[k] = _most_of_one(-lost, -math.log1p(-rate) * inside)
    return found


def _most_of_one(growth: FloatArray, inside: FloatArray) -> float:
    total = np.cumsum(growth)
    part = np.maximum(inside, growth)
    before = np.maximum.accumulate(part - total)
    across = total[:-1] + part[1:] + before[:-1]
    return max(float(part.max()), float(across.max(initial=0.0)), 0.0)


def upper_in_family(evidence: Evidence, delta: float) -> float:
    """Return the limit of the largest running mean over the intervals of the family, under any dependence.

    Every interval and sign has its own share of delta.
    """
    rates = rates_of(evidence.unit)
    allowed = evidence.units * np.log1p(rates * evidence.tolerance)[:, None, None]
    usable = ~evidence.lowered.any(axis=(1, 2)) & (rates <= _FASTEST)
    # -ln(1 - x W) of one sign is what the bet of the other sign lost.
    growth = -(evidence.log + allowed)[usable] - (evidence.question.log_shares + math.log(rates.size))
    worst = growth.reshape(growth.shape[0], -1).max(axis=1)
    weights = np.full(rates.size, -math.log(rates.size))[usable]
    return mixed_upper(worst, rates[usable], weights, evidence.units, delta)


def once_each(cells: Cells) -> Cells:
    """Return cells in which the weights of a period add up to 1."""
    total = cells.weight_total
    power = {name: 2 if "square" in name and name.startswith("weight") else 1 for name in ADDITIVE}
    columns: dict[str, Any] = {name: getattr(cells, name) / total ** power[name] for name in ADDITIVE if name != "rows"}
    return replace(cells, **columns, weight_max=cells.weight_max / total, unit_weights=False, listed=None)


@dataclass
class PeriodSums:
    """What limits for periods need: sums of their means, and of products of means on blocks of forecasts.

    Attributes
    ----------
    cells : Cells or None
        The sum of all periods, each with weights that add up to 1.
    borders : array of int
        Where blocks begin, as cells of the coarsest grid: fixed when the first period ended.
    products : array of shape (blocks, blocks)
        Sums over periods of the product of the mean residuals of two blocks.
    inside : array of shape (blocks,)
        Sums over periods of the square of the most that part of a block can add to a mean.
    reach : array of shape (2,)
        The most that a mean of s (y - p) can have been on any interval, by sign.
    """

    cells: Cells | None = None
    borders: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    products: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    inside: FloatArray = field(default_factory=lambda: np.zeros(0))
    reach: FloatArray = field(default_factory=lambda: np.zeros(2))

    def add(self, cells: Cells) -> None:
        """Add a period."""
        own = once_each(cells)
        if self.cells is None:
            self.borders = _first_borders(own)
            self.products = np.zeros((self.borders.size, self.borders.size))
            self.inside = np.zeros(self.borders.size)
        block = _blocks(own, self.borders)
        above, below = _parts(own)

        def added(values: FloatArray) -> FloatArray:
            return np.bincount(block, weights=values, minlength=self.borders.size).astype(np.float64, copy=False)

        residual = added(own.residual)
        self.products += np.outer(residual, residual)
        up, down = added(above), added(below)
        self.inside += np.maximum(up, down) ** 2
        self.reach = np.maximum(self.reach, [up.sum(), down.sum()])
        self.cells = own if self.cells is None else self.cells + own

    def upper(self, periods: int, delta: float) -> float:
        """Return the limit of the error of the average period, for periods that are alike given the past."""
        grown = _Growth(self)
        return max(self._upper_of(side, grown, periods, delta) for side in (0, 1))

    def _upper_of(self, side: int, grown: _Growth, periods: int, delta: float) -> float:
        tried = _near(_rate(max(float(self.products.sum()), 1e-12), _LOG_PERIOD_WEIGHTS, delta), 2 * _NEAR)
        rates = _GRID[tried]
        # Which is at least -ln(1 - v) - v over v^2 for all means v / x that were seen.
        rest = growth_rest(rates * float(self.reach[side]))
        growth = np.array(
            [grown.most(_SIGNS[side] * rate, rate**2 * each) for rate, each in zip(rates, rest, strict=True)]
        )
        return mixed_upper(growth, rates, _LOG_PERIOD_WEIGHTS[tried], periods, delta)


class _Growth:
    """Bounds of the most, over intervals, of step times the sum of means plus share times the sum of their squares.

    An interval begins in one block of forecasts and ends in another, or the same: sums are known to the cell, and the
    square root of squares is at most that of the blocks between plus that of parts of the two.
    """

    def __init__(self, sums: PeriodSums) -> None:
        cells, borders = sums.cells, sums.borders
        assert cells is not None
        block = _blocks(cells, borders)
        above, below = _parts(cells)
        wide = cells.low < cells.high
        part = np.where(wide, np.maximum(above, below), 0.0)
        whole = np.bincount(block, weights=cells.residual, minlength=borders.size)
        at = np.concatenate([[0.0], np.cumsum(whole)])
        end = np.cumsum(cells.residual) - at[block]
        begin = end - cells.residual
        low, high = np.zeros(borders.size), np.zeros(borders.size)
        np.minimum.at(low, block, np.minimum(begin, end) - part)
        np.maximum.at(high, block, np.maximum(begin, end) + part)
        # Where a block holds one forecast, an interval has all of it or nothing: then it begins or ends beside it.
        single = np.bincount(block, weights=1.0 + wide, minlength=borders.size) <= 1.0
        self.begins = np.where(single, 0.0, np.stack([low, high]))
        self.ends = np.where(single, whole, np.stack([low, high]))
        self.first, self.last = np.triu_indices(borders.size)
        self.between = at[self.last] - at[self.first]
        both = np.zeros((borders.size + 1, borders.size + 1))
        both[1:, 1:] = sums.products.cumsum(axis=0).cumsum(axis=1)
        corner = np.diagonal(both)
        squares = np.maximum(corner[:, None] + corner[None, :] - 2.0 * both, 0.0)
        radius = np.where(single, 0.0, np.sqrt(sums.inside))
        outer = np.sqrt(squares[self.first + ~single[self.first], self.last + single[self.last]])
        inside = (self.first == self.last) & ~single[self.first]
        self.squares = np.where(inside, radius[self.first], outer + radius[self.first] + radius[self.last]) ** 2

    def most(self, step: float, share: float) -> float:
        """Return the bound, at least 0."""
        begins, ends = (step * self.begins).min(axis=0), (step * self.ends).max(axis=0)
        sums = step * self.between + ends[self.last] - begins[self.first]
        return max(float((sums + share * self.squares).max()), 0.0)


def _parts(cells: Cells) -> tuple[FloatArray, FloatArray]:
    """Return bounds of the sums of positive and of negative residuals of each cell: y (1 - p) >= max(y - p, 0)."""
    return cells.outcome * (1.0 - cells.low), (cells.weight - cells.outcome) * cells.high


def _blocks(cells: Cells, borders: IntArray) -> IntArray:
    """Return in which block each cell lies, on whatever grid."""
    return np.searchsorted(borders, cells.index >> (cells.bits - LEAST_BITS), side="right") - 1


def _first_borders(first: Cells) -> IntArray:
    """Return where blocks begin: fixed places, and around single cells that hold many rows of the first period."""
    scale = 2**LEAST_BITS
    fixed = np.concatenate([np.arange(_BLOCKS) / _BLOCKS, BORDERS[:-1]])
    heavy = first.index[first.weight >= first.weight_total / _BLOCKS] >> (first.bits - LEAST_BITS)
    found = np.concatenate([np.floor(fixed * scale).astype(np.int64), heavy, heavy + 1])
    return np.unique(found[found < scale])
