"""Limits of the difference of two models' errors on the same rows.

Half of the rows name where the one model is worst, and how boldly to bet; on the other half a bet is placed against
every interval of the other model at once, less what the first one loses there. Rows on which both are wrong in the same
way count for next to nothing, which no two separate limits see. The evidence of several random halves is averaged. The
proofs are in docs/theory/comparisons.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.certificates.betting import averaged_lower, best_rate
from calibrant.core.row_kernels import Places, grouped_products, grouped_residuals, stretched_cells
from calibrant.core.threads import in_threads
from calibrant.core.types import FloatArray, IntArray
from calibrant.measures.weighted import worst_stretches
from calibrant.rows.paired import FEW_GROUPS, IN_ORDER_BELOW, Half, PairedRows, halves
from calibrant.rows.refinement import largest_stretch
from calibrant.rows.runs import group_starts, prefix_sums

HIGHEST_PAIR_RATE = 0.45
"""Differences of two residuals reach from -2 to 2, so that rates stay below one half."""

BOLDNESS = (0.15, 0.3, 0.6, 1.2)
"""Multiples of the usual rate among which the first half of the rows chooses."""

Bools = npt.NDArray[np.bool_]
Growth = Callable[[float], float]


class Evidence(NamedTuple):
    """How bets against all differences grew on one half, at which mean rate, and on how many units."""

    growth: float
    rate: float
    units: int


NO_EVIDENCE = Evidence(0.0, HIGHEST_PAIR_RATE, 0)


def upper_of(evidence: list[Evidence], delta: float) -> float:
    """Return the largest difference that the average evidence of several halves leaves possible."""
    growth, rates, units = (np.array(column) for column in zip(*evidence, strict=True))
    return -averaged_lower(-growth, rates, units, math.log(1.0 / delta))


def chosen_rate(
    variance: float, growth: Growth, units: int, exponent: float, boldness: tuple[float, ...] = BOLDNESS
) -> float:
    """Return the rate at which rows that are used for nothing else would have had the lowest limit.

    Bets against all intervals at once grow with intervals that are none of the worst, too: the rate that suits the
    worst ones may be too bold for them.
    """
    usual = best_rate(variance / 4.0, 1.0, exponent) / 2.0
    rates = [min(bold * usual, HIGHEST_PAIR_RATE) for bold in boldness]
    return min(rates, key=lambda rate: -math.expm1(-(growth(rate) + exponent) / units) / rate)


class CutoffPair(NamedTuple):
    """Limits of a difference of Cutoff errors; of many rows also sums of residuals of both models.

    ``residuals`` has a line for each model, and its sums between each of the ``borders`` of forecasts and the next.
    """

    lower: float
    upper: float
    borders: FloatArray | None = None
    residuals: FloatArray | None = None


def cutoff_limits(rows: PairedRows, first: str, second: str, seed: int, delta: float) -> CutoffPair:
    """Return limits of the Cutoff error of one model minus that of another, each wrong with probability delta at most.

    Rows are independent draws from one population; weights are fixed beforehand.
    """
    exponent = math.log(1.0 / delta)
    borders = residuals = None
    if rows.rows < IN_ORDER_BELOW:
        pair = _Rows(rows, first, second, seed)
        evidence = [pair.evidence(half, exponent) for half in halves()]
    else:
        cells = _Cells(rows, first, second, seed)
        evidence = cells.evidence(exponent)
        borders, residuals = _place_of(np.arange(_CELLS // _EACH + 1) * _EACH / _CELLS), cells.residuals
    below, above = ([each[side] for each in evidence] for side in (0, 1))
    return CutoffPair(-upper_of(below, delta), upper_of(above, delta), borders, residuals)


class _Worst(NamedTuple):
    """The worst interval of a model on some rows, as places in the order of its forecasts, and its sign."""

    begin: int
    end: int
    sign: float


def _worst(residual: FloatArray, total: float) -> _Worst:
    begin, end, sign, _ = worst_stretches(prefix_sums(residual)[None], total)
    return _Worst(int(begin[0]), int(end[0]), float(sign[0]))


# --- Rows one by one -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ordered:
    """The forecasts of one model in increasing order: the row at each place, and its number among distinct ones."""

    order: IntArray
    rank: IntArray
    residual: FloatArray

    @classmethod
    def of(cls, rows: PairedRows, name: str) -> Ordered:
        """Put the forecasts of a model in order."""
        forecast = rows.forecasts[name]
        order = np.argsort(forecast, kind="stable")
        rank = np.zeros(order.size, dtype=np.int64)
        rank[group_starts(forecast[order])] = 1
        residual = rows.outcome - forecast
        return cls(order, np.cumsum(rank) - 1, residual if rows.share is None else residual * rows.share)

    def inside_worst(self, kept: Bools, total: float) -> FloatArray:
        """Return the signed residuals of all rows inside the worst interval of some rows, by row, and 0 outside."""
        own = np.bincount(self.rank, weights=np.where(kept, self.residual, 0.0)[self.order])
        worst = _worst(own.astype(np.float64, copy=False), total)
        inside = np.zeros(self.order.size)
        where = self.order[(self.rank >= worst.begin) & (self.rank < worst.end)]
        inside[where] = worst.sign * self.residual[where]
        return inside


class _Rows:
    """Two models on rows that are looked at one by one."""

    def __init__(self, rows: PairedRows, first: str, second: str, seed: int) -> None:
        self.share = np.ones(rows.rows) if rows.share is None else rows.share
        self.groups = rows.groups(seed)
        self.models = Ordered.of(rows, first), Ordered.of(rows, second)

    def evidence(self, half: Half, exponent: float) -> tuple[Evidence, Evidence]:
        """Return the evidence against differences, second minus first and first minus second."""
        named, tested = half.first[self.groups], half.second[self.groups]
        found, left = int(named.sum()), int(tested.sum())
        if found == 0 or left == 0:
            return NO_EVIDENCE, NO_EVIDENCE
        total = float(self.share[named].sum())
        inside = [model.inside_worst(named, total) for model in self.models]
        variance = float(np.square(inside[0] - inside[1])[named].sum()) / found * left
        mean = float(self.share[tested].sum()) / left

        def against(model: Ordered, other: FloatArray) -> Evidence:
            rate = chosen_rate(variance, _growth_of(model, other, named), found, exponent)
            return Evidence(_growth_of(model, other, tested)(rate), rate * mean, left)

        (first, second), (one, two) = self.models, inside
        return against(second, one), against(first, two)


def _growth_of(model: Ordered, other: FloatArray, kept: Bools) -> Growth:
    """Return how much a bet at a rate grows on some rows, against every interval of a model less what another loses.

    With D = s r on an interval, less the other's u, the growth is the sum of -ln(1 - x D): -ln(1 + x u) for every row,
    and -ln(1 - x s r / (1 + x u)) for those inside.
    """
    order = model.order[kept[model.order]]
    rank = model.rank[kept[model.order]]
    residual, lost = model.residual[order], other[order]
    starts = group_starts(rank)

    def growth(rate: float) -> float:
        shifted = 1.0 + rate * lost
        stake = rate * residual / shifted
        inside = (np.add.reduceat(-np.log1p(-sign * stake), starts) for sign in (1.0, -1.0))
        return max(map(largest_stretch, inside)) - float(np.log(shifted).sum())

    return growth


# --- Many rows, in cells ---------------------------------------------------------------------------------------------

_CELLS = 2**16
"""Cells of forecasts, fixed beforehand and narrower near 0 and near 1."""

_EACH_BITS = 6
_EACH = 2**_EACH_BITS
"""So many of them are one place at which the worst interval of the first half may begin or end."""

_PARTS = 2**11
"""About so many parts with equal numbers of rows are made of the cells, between which intervals are bet against."""


class _Sums(NamedTuple):
    """Residuals of one model by part of its forecasts, or by random group and part: those above 0, all, and squares."""

    above: FloatArray
    residual: FloatArray
    square: FloatArray

    def among(self, groups: Bools) -> _Sums:
        """Add up some of the groups."""
        return _Sums(*(groups @ column for column in self))


class _Model:
    """One model on many rows: where its forecasts lie, and sums of its residuals by random group."""

    def __init__(self, rows: PairedRows, name: str, groups: npt.NDArray[np.uint8]) -> None:
        self.forecast = rows.forecasts[name]
        self.cell, count = stretched_cells(self.forecast, _CELLS)
        self.part = _equal_parts(count)
        share = np.empty(0) if rows.share is None else rows.share
        sums, fixed, self.single = grouped_residuals(
            rows.outcome, self.forecast, share, self.cell, groups, FEW_GROUPS, self.part, _EACH_BITS
        )
        self.sums = _Sums(*np.ascontiguousarray(np.moveaxis(sums, 2, 0)))
        self.fixed: FloatArray = np.ascontiguousarray(np.moveaxis(fixed, 2, 0))

    def worst(self, groups: Bools, total: float) -> _Worst:
        """Return the worst interval of some groups, between places that were fixed beforehand."""
        return _worst(groups @ self.fixed[0], total)

    def lost(self, groups: Bools, worst: _Worst) -> tuple[float, float]:
        """Return the sum of signed residuals of some groups inside an interval, and of their squares."""
        residual, square = (float(each[groups, worst.begin : worst.end].sum()) for each in self.fixed)
        return worst.sign * residual, worst.sign**2 * square

    def parts_inside(self, worst: _Worst) -> slice:
        """Return the parts of about that interval."""
        return slice(int(self.part[worst.begin * _EACH]), int(self.part[worst.end * _EACH - 1]) + 1)


def _equal_parts(rows: IntArray) -> Places:
    """Return the part of each cell: runs of cells with about equal numbers of rows, heavy cells alone."""
    share = max(float(rows.sum()) / _PARTS, 1.0)
    before = np.cumsum(rows) - rows
    new = np.append(True, np.diff((before / share).astype(np.int64)) > 0)
    heavy = rows >= share
    new |= heavy
    new[1:] |= heavy[:-1]
    return (np.cumsum(new) - 1).astype(np.uint16)


class _Cells:
    """Two models on many rows, by cells of their forecasts: a bound of the growth that is hardly above it.

    -ln(1 - x D) <= x D + c D^2 with c = (-ln(1 - 2 x) - 2 x) / 4 wherever |D| <= 2, and sums of D and D^2 need totals
    only: of residuals, their squares, and the products of the two models' residuals. Of a part of the forecasts in
    which an interval ends no more counts than the rows that add to the growth.
    """

    def __init__(self, rows: PairedRows, first: str, second: str, seed: int) -> None:
        groups = rows.groups(seed, FEW_GROUPS)
        self.units = np.array([np.count_nonzero(groups == number) for number in range(FEW_GROUPS)])
        self.weights = self.units if rows.share is None else np.bincount(groups, rows.share, minlength=FEW_GROUPS)
        both = in_threads(lambda name: _Model(rows, name, groups), (first, second), rows=rows.rows)
        one, two = self.models = both
        self.halves = [half for half in halves(FEW_GROUPS) if all(self.units[part].sum() > 0 for part in half)]
        self.worst = [self._name(half) for half in self.halves]
        borders = [_borders([each[k] for each in self.worst]) for k in (0, 1)]
        places = np.arange(_CELLS // _EACH)
        inside, other = (np.searchsorted(each, places, side="right").astype(np.uint16) for each in borders)
        share = np.empty(0) if rows.share is None else rows.share
        sums = grouped_products(
            rows.outcome,
            one.forecast,
            two.forecast,
            share,
            one.cell,
            two.cell,
            groups,
            FEW_GROUPS,
            inside,
            other,
            one.part,
            two.part,
            _EACH_BITS,
        )
        self.products = [_Products(*each) for each in zip(borders, sums, strict=True)]

    def _name(self, half: Half) -> tuple[_Worst, _Worst]:
        """Return the worst intervals of both models on the first half."""
        total = float(self.weights[half.first].sum())
        one, two = (model.worst(half.first, total) for model in self.models)
        return one, two

    def evidence(self, exponent: float) -> list[tuple[Evidence, Evidence]]:
        """Return the evidence against differences, second minus first and first minus second, of several halves."""
        return [
            (self._against(1, half, worst, exponent), self._against(0, half, worst, exponent))
            for half, worst in zip(self.halves, self.worst, strict=True)
        ] or [(NO_EVIDENCE, NO_EVIDENCE)]

    @property
    def residuals(self) -> FloatArray:
        """Sums of residuals of both models between places that were fixed beforehand."""
        return np.array([model.fixed[0].sum(axis=0) for model in self.models])

    def _against(self, model: int, half: Half, worst: tuple[_Worst, _Worst], exponent: float) -> Evidence:
        found, left = (int(self.units[part].sum()) for part in half)
        named, tested = (self._bound(model, worst[1 - model], part) for part in half)
        variance = named.variance(worst[model].sign, self.models[model].parts_inside(worst[model]))
        rate = chosen_rate(variance / found * left, named.growth, found, exponent)
        return Evidence(tested.growth(rate), rate * float(self.weights[half.second].sum()) / left, left)

    def _bound(self, model: int, worst: _Worst, groups: Bools) -> _Bound:
        own, (lost, square) = self.models[model], self.models[1 - model].lost(groups, worst)
        return _Bound(own.sums.among(groups), own.single, lost, square, self.products[1 - model].inside(groups, worst))


def _place_of(cell: FloatArray) -> FloatArray:
    """Return the forecast at which a cell begins, a number of cells as a share of all."""
    found: FloatArray = np.where(cell < 0.5, 2.0 * np.square(cell), 1.0 - 2.0 * np.square(1.0 - cell))
    return found


def _borders(worst: list[_Worst]) -> IntArray:
    """Return where some worst interval begins or ends."""
    return np.unique([end for each in worst for end in (each.begin, each.end)]).astype(np.int64)


class _Products(NamedTuple):
    """Products of two models' residuals by random group, stretch of the one's forecasts and part of the other's."""

    borders: IntArray
    sums: FloatArray

    def inside(self, groups: Bools, worst: _Worst) -> FloatArray:
        """Return the sums over an interval of the one, in some of the groups, by part of the other."""
        begin, end = np.searchsorted(self.borders, [worst.begin, worst.end], side="right")
        found: FloatArray = worst.sign * self.sums[groups, begin:end].sum(axis=(0, 1))
        return found


class _Bound(NamedTuple):
    """What bounds the growth of a bet against every interval of a model, less what another loses inside its worst."""

    own: _Sums
    single: Bools
    lost: float
    lost_square: float
    product: FloatArray

    def variance(self, sign: float, inside: slice) -> float:
        """Return about the sum of D^2 where D is that of an interval of the model."""
        crossed = sign * float(self.product[inside].sum())
        return max(float(self.own.square[inside].sum()) - 2.0 * crossed + self.lost_square, 0.0)

    def growth(self, rate: float) -> float:
        """Return the bound at a rate."""
        square = (-math.log1p(-2.0 * rate) - 2.0 * rate) / 4.0
        above, below = self.own.above, self.own.above - self.own.residual
        score = rate * self.own.residual - 2.0 * square * self.product
        inside = 0.0
        for sign, towards, away in ((1.0, above, below), (-1.0, below, above)):
            whole = sign * score + square * self.own.square
            some = (rate + 3.0 * square) * towards + max(3.0 * square - rate, 0.0) * away
            inside = max(inside, _largest_with_ends(whole, np.where(self.single, np.maximum(whole, 0.0), some)))
        return inside - rate * self.lost + square * self.lost_square


def _largest_with_ends(score: FloatArray, ends: FloatArray) -> float:
    """Return the largest sum of scores over neighbouring parts, where the first and the last count as much as ends."""
    prefix = prefix_sums(score)
    before = np.maximum.accumulate(ends - prefix[1:])
    several = (ends[1:] + prefix[1:-1] + before[:-1]).max(initial=0.0)
    return max(float(several), float(ends.max(initial=0.0)))
