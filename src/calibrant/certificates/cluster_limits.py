"""Limits of the Cutoff error for rows in clusters: bets on whole clusters, whatever their rows have to do together.

T_c(I) is the sum of w (y - p) of cluster c on the interval I, m_c the sum of its weights, n that of all. Clusters are
independent, or neighbours in the order of their labels depend on each other up to q places apart. All limits are
one-sided and fail with probability at most delta, at every number of clusters unless said. The proofs are in
docs/theory/clusters.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from calibrant.certificates.betting import HIGHEST_RATE, best_rate
from calibrant.certificates.cluster_search import (
    FIXED_BORDERS,
    ClusterMap,
    Weighing,
    interval_shares,
    largest_growth,
    may_grow_above,
)
from calibrant.certificates.margins import VARIANCE_SHARE
from calibrant.core.chernoff import chernoff_ends
from calibrant.core.types import FloatArray
from calibrant.rows.clusters import ClusteredSource
from calibrant.rows.tally import Totals

_EVEN_REST = 0.55
_LOWER_RATE = 0.45  # of the bets of lower limits, whose factors are 1 + x (T - error m) with both up to m
_LINES = 10
_NO_SPREAD = 1e-9  # of the squares of residuals
_DRAWS, _MOST_DRAWS = 999, 9999
_NEXT_TRY = 0.8  # of an error that bets do not exclude, where a smaller one may be
_DRAWS_AT_ONCE = 111
_ROOT_STEPS = 60
_CLOSE = 1e-4  # of an error itself
_LEAST_ROOM = 1e-9  # of the largest cluster, that sums of residuals given the forecasts are taken to have
_FEW_TIMES_SQUARE = 2000.0  # from so many clusters on, squares of their sums are not cut off for the rate


def growth_rest(value: FloatArray) -> FloatArray:
    """Return (-ln(1 - v) - v) / v^2, which increases from 1/2 at v = 0."""
    small = np.abs(value) < 1e-4
    safe = np.where(small, 0.5, value)
    found: FloatArray = np.where(small, 0.5 + value / 3.0 + value**2 / 4.0, (-np.log1p(-safe) - safe) / safe**2)
    return found


@dataclass(frozen=True)
class Dependence:
    """What is assumed of clusters, fixed before any row is looked at.

    Attributes
    ----------
    max_size : float or None
        The most rows, or weight, that a cluster of the population can have, where it was stated: the error is then that
        of a population of clusters. Without it the error is that of clusters of these sizes.
    serial : int
        How many places apart in the order of labels clusters may depend on each other; 0 for independent clusters.
    """

    max_size: float | None = None
    serial: int = 0

    @property
    def folds(self) -> int:
        """Into how many sets of independent clusters they fall."""
        return self.serial + 1


def cluster_exponent(delta: float, dependence: Dependence) -> float:
    """Return what a bet on clusters must gain to exclude an error, where part of delta is spent on its rate."""
    return dependence.folds * math.log(1.0 / (delta * (1.0 - VARIANCE_SHARE)))


def cluster_rates(
    sums: FloatArray, largest: float, most: float, delta: float, dependence: Dependence
) -> tuple[float, float]:
    """Return two rates, times the most that a sum can be, between which the one to use lies.

    It follows from V = sum E min(T_c^2, t^2 M^2) with T_c the sums and M the largest size, a number of the population
    that is enclosed from the rows; cut off at t so that few clusters enclose it well.
    """
    cut = min(max(sums.size / _FEW_TIMES_SQUARE, 0.05), 1.0)
    squares = float(np.minimum((sums / largest) ** 2 / cut, 1.0).sum())
    low, high = chernoff_ends(squares, dependence.folds * math.log(2.0 / (delta * VARIANCE_SHARE)))
    exponent, unit = cluster_exponent(delta, dependence), cut * (largest / most) ** 2
    return best_rate(high * unit, 1.0, exponent), best_rate(low * unit, 1.0, exponent)


class ClusterLimits:
    """Limits of the Cutoff error from rows in clusters."""

    def __init__(self, source: ClusteredSource, table: Totals, dependence: Dependence) -> None:
        self.source = source
        self.table = table
        self.dependence = dependence
        self.rows = ClusterMap(source, table)
        self.count = self.rows.clusters
        self.total = self.rows.total
        self._weighed: tuple[float, Weighing] | None = None

    # --- What the clusters are --------------------------------------------------------------------------------------

    @property
    def largest(self) -> float:
        """The largest size of a cluster, or what was stated as such."""
        stated = self.dependence.max_size
        return float(self.rows.size.max()) if stated is None else stated

    @cached_property
    def design_effect(self) -> float:
        """How many times the variance of independent rows the sum of residuals has, counted from the mean residual.

        1 where residuals do not vary. What all rows are off by is no sign that rows of a cluster belong together.
        """
        table = self.table
        bias = table.residual_total / table.weight_total
        squares = float(table.residual_square.sum())
        varied = 1.0 - bias * table.residual_total / squares if squares > 0.0 else 0.0
        if varied <= _NO_SPREAD:
            return 1.0
        between = float(((self.rows.cluster_total - bias * self.rows.size) ** 2).sum())
        return between / (varied * float(table.weight_square_residual_square.sum()))

    def least_limit(self, delta: float, *, given: bool = False) -> float:
        """Return the least that the limit of bets can be, whatever the outcomes: clusters are few, or one is large."""
        exponent = cluster_exponent(delta, self.dependence)
        largest = max(self._most(1.0), self._most(-1.0)) if given else self.largest
        if self.dependence.max_size is not None:
            return min(exponent * largest / (HIGHEST_RATE * self.total), 1.0)
        share = self.count * largest / self.total
        return min(-math.expm1(-exponent / self.count) * share / HIGHEST_RATE, 1.0)

    # --- Upper limits -----------------------------------------------------------------------------------------------

    def hoeffding_margin(self, delta: float) -> float:
        """Return sqrt(2 (q + 1) ln(1/delta) sum m_c^2) / n: sums of clusters lie between -m_c and m_c.

        Sizes that are drawn, too, count as the largest that was stated: those here are no fixed numbers then.
        """
        exponent = self.dependence.folds * math.log(1.0 / delta)
        drawn = self.dependence.max_size is not None
        squares = self.count * self.largest**2 if drawn else float((self.rows.size**2).sum())
        return math.sqrt(2.0 * exponent * squares) / self.total

    def bets(self, delta: float, *, given: bool = False) -> float:
        """Return the largest error that bets on whole clusters leave possible.

        ``given`` says that forecasts count as fixed, so that sums have the limits that the forecasts of a cluster set.
        """
        found = 0.0
        exponent = cluster_exponent(delta, self.dependence)
        for sign in (1.0, -1.0):
            most = self._most(sign) if given else self.largest
            rates = sorted({rate / most for rate in self._rates(most, delta)})
            for rate in rates[::-1]:
                found = self._limit_at(rate, sign, self._weighing(sign, rate, rates[-1]), exponent, found)
        return min(found, 1.0)

    def _weighing(self, sign: float, rate: float, fastest: float) -> Weighing:
        """Return weights of squares that stand in for what -ln(1 - x T) has beyond x T, T up to the reach of a cluster.

        Those of a faster rate or a farther reach do so as well: where clusters are many, and differ little from 1/2,
        the same serve all rates and both signs.
        """
        if self.rows.by_block.is_small:
            reach = self.rows.reach(sign)
        else:
            rate, reach = fastest, np.maximum(self.rows.reach(1.0), self.rows.reach(-1.0))
        if self._weighed is None or self._weighed[0] != rate or self.rows.by_block.is_small:
            # Rounding may pass the reach.
            self._weighed = rate, Weighing(self.rows, growth_rest(rate * reach * (1.0 + 1e-12)))
        return self._weighed[1]

    def _most(self, sign: float) -> float:
        """Return how large a sum of residuals of this sign can be in a cluster, given its forecasts."""
        sums = self.rows.sums
        expected = sums.per_cluster(sums.outcome - sums.residual)
        room = self.rows.size - expected if sign > 0.0 else expected
        # More than there can be is right as well, and where there is next to nothing no rate overflows.
        return max(float(room.max()), _LEAST_ROOM * float(self.rows.size.max()))

    def _rates(self, most: float, delta: float) -> tuple[float, float]:
        """Return the rates for sums over all forecasts."""
        return cluster_rates(self.rows.cluster_total, self.largest, most, delta, self.dependence)

    def _limit_at(self, rate: float, sign: float, weighing: Weighing, exponent: float, others: float) -> float:
        """Return the limit of one rate and sign, or that of others if it is larger."""
        if self.dependence.max_size is not None:
            return max(others, self._ratio_limit(weighing, rate, sign, exponent))
        scale = self.count / (self.total * rate)
        if others >= scale:  # more than any growth leads to
            return others
        growth = largest_growth(
            weighing, sign, rate, rate**2, at_least=-self.count * math.log1p(-others / scale) - exponent
        )
        return max(others, -math.expm1(-(growth + exponent) / self.count) * scale)

    def _ratio_limit(self, weighing: Weighing, rate: float, sign: float, exponent: float) -> float:
        """Return the least error that bets on clusters of a population exclude: sum ln(1 + x (error m - s T)) > L."""
        size = self.rows.size
        crossed, own = rate**2 * weighing.weight * size, rate**2 * float(weighing.weight @ size**2)

        def is_excluded(error: float) -> bool:
            level = rate * error * self.total - error**2 * own - exponent
            return not may_grow_above(level, weighing, sign, rate, rate**2, 2.0 * error * crossed)

        # What stands in for the gain is concave in the error and may fall again; the gain itself never does, so that
        # every error at which the stand-in is positive is excluded.
        low, high = 0.0, 1.0
        while not is_excluded(high):
            high *= _NEXT_TRY
            if high * rate * self.total <= exponent:
                return 1.0
        while high - low > _CLOSE * high:
            middle = (low + high) / 2.0
            low, high = (low, middle) if is_excluded(middle) else (middle, high)
        return high

    def large_sample(self, quantile: float) -> float:
        """Return the most over intervals of |sum T| + z sqrt(sum T^2 G / (G - 1)), over n: right for many clusters.

        Where sizes are drawn, too, T - error m has the place of T in the squares, with the error of these rows.
        """
        count, folds = self.count, self.dependence.folds
        if count < 2:
            return 1.0
        more, quantile = folds * count / (count - 1.0), max(quantile, 0.0)
        weighing = Weighing(self.rows, np.ones(count))
        drawn = 0.0 if self.dependence.max_size is None else float(np.ptp(self.rows.entry_prefix)) / self.total
        own = drawn**2 * float(self.rows.size @ self.rows.size)
        longest = math.sqrt(more * max(float(weighing.squares.max()), float(weighing.radius.max()) ** 2, own))
        if longest == 0.0:
            return 0.0

        found = self.total
        for length in (longest * 2.0 ** (-np.arange(_LINES) / 3.0)).tolist():
            share = quantile * more / (2.0 * length)
            less = 2.0 * share * drawn * self.rows.size if drawn > 0.0 else None
            besides = share * own + quantile * length / 2.0
            asked = [(weighing, sign, 1.0, share, less) for sign in (1.0, -1.0)]
            if not any(may_grow_above(found - besides, *each) for each in asked):  # otherwise another line is lower
                found = max(largest_growth(*each) for each in asked) + besides
        return float(min(found / self.total, 1.0))

    # --- Lower limits -----------------------------------------------------------------------------------------------

    @cached_property
    def _evidence(self) -> _Evidence:
        return _Evidence(self.rows, self.largest, self.dependence.folds)

    def lower(self, estimate: float, delta: float) -> float:
        """Return a lower limit: the largest error that evidence averaged over intervals fixed beforehand excludes."""
        return self._evidence.lower(estimate, math.log(1.0 / delta))

    def log_evidence(self) -> float:
        """Return the logarithm of the evidence against calibration: large with probability at most 1 over it."""
        return self._evidence.against(0.0, 0.0)

    @property
    def border_error(self) -> float:
        """The largest error of intervals that begin and end where blocks do: what draws of `noise` are held against."""
        return float(np.ptp(np.append(0.0, np.cumsum(self.rows.by_block.totals())))) / self.total

    def most_log_evidence(self) -> float:
        """Return what the logarithm of the evidence cannot pass, whatever the outcomes: clusters are few."""
        return float(np.log1p(_LOWER_RATE * self.rows.size / self.largest).sum()) / self.dependence.folds

    def noise(self, seed: int, draws: int = _DRAWS) -> FloatArray:
        """Return draws of the largest error that chance alone shows: sums of clusters with random signs, over n.

        Right for many clusters. The draws depend on what clusters hold and not on their order or names. Their intervals
        are those of `border_error`; among all intervals chance shows more.
        """
        rows = self.rows
        rng = np.random.default_rng(seed)
        mixed = rows.sums.per_cluster(rows.sums.residual * np.cos(rows.sums.block + 1.0))
        order = np.lexsort((mixed, rows.cluster_total, rows.size))
        prefix = np.array([rows.prefix(each)[order] for each in range(rows.blocks + 1)])
        found = []
        for begin in range(0, draws, _DRAWS_AT_ONCE):
            some = min(_DRAWS_AT_ONCE, draws - begin)
            signs = rng.integers(0, 2, size=(some, self.count)) * 2.0 - 1.0
            path = signs @ prefix.T
            found.append(path.max(axis=1) - path.min(axis=1))
        return np.sort(np.concatenate(found)) * math.sqrt(self.dependence.folds) / self.total

    def noise_quantile(self, delta: float, seed: int) -> float:
        """Return what the largest error of chance alone exceeds with probability delta; 1 where no draws can tell.

        The draws know intervals between blocks only; what others show beyond those on these rows is added.
        """
        if delta * (_MOST_DRAWS + 1) < 1.0:
            return 1.0
        draws = self.noise(seed, max(_DRAWS, math.ceil(1.0 / delta) - 1))
        beyond = max(float(np.ptp(self.rows.entry_prefix)) / self.total - self.border_error, 0.0)
        return float(draws[min(math.ceil((1.0 - delta) * (draws.size + 1)), draws.size) - 1]) + beyond

    def participation(self) -> float:
        """Return (sum T^2)^2 / sum T^4 over all forecasts: how many clusters the variance rests on."""
        squares = self.rows.cluster_total**2
        fourth = float((squares**2).sum())
        return float(squares.sum()) ** 2 / fourth if fourth > 0.0 else 0.0


class BetTerm(NamedTuple):
    """What the growth of bets is made of: constant, times the error, minus times its square; and the share of each."""

    linear: FloatArray
    slope: FloatArray
    square: float
    prior: FloatArray


def averaged_evidence(terms: Sequence[BetTerm], error: float, folds: int) -> float:
    """Return the logarithm of the average evidence that an error is larger than this one."""
    growth = np.concatenate(
        [(each.linear + error * each.slope - error**2 * each.square) / folds + np.log(each.prior) for each in terms]
    )
    most = float(growth.max())
    return most + math.log(float(np.exp(growth - most).sum()))


def evidence_lower(terms: Sequence[BetTerm], estimate: float, exponent: float, folds: int) -> float:
    """Return the largest error up to the estimate that the evidence excludes; 0 where it excludes none."""
    if averaged_evidence(terms, 0.0, folds) < exponent:
        return 0.0
    low, high = 0.0, estimate
    for _ in range(_ROOT_STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if averaged_evidence(terms, middle, folds) >= exponent else (low, middle)
    return low


class _Evidence:
    """Bets that the error is larger, on each of some intervals and at each of some rates, all fixed beforehand."""

    def __init__(self, rows: ClusterMap, largest: float, folds: int) -> None:
        self.folds = folds
        self.total = rows.total
        ends = np.searchsorted(rows.table.low[rows.first], FIXED_BORDERS)
        self.between = rows.by_block.joined(ends)
        self.sums = self._prefix()
        self.size = rows.size
        self.begin, self.end = np.triu_indices(FIXED_BORDERS.size + 1, 1)
        self.prior = interval_shares(self.begin, self.end, FIXED_BORDERS.size)
        halvings = max(1, math.ceil(math.log2(max(rows.clusters, 2)) / 2.0) - 1)
        self.rates = _LOWER_RATE * 2.0 ** -np.arange(halvings + 1.0) / largest
        self.reach = {sign: rows.reach(-sign) for sign in (1.0, -1.0)}

    def _terms(self, most_error: float) -> list[BetTerm]:
        """Return, by sign and rate, what the growth on each interval is made of, up to an error."""
        found = []
        for sign in (1.0, -1.0):
            for rate in self.rates.tolist():
                value = rate * (self.reach[sign] + most_error * self.size)
                most = float(growth_rest(value.max(keepdims=True))[0])
                if most <= _EVEN_REST:  # one weight for all loses next to nothing, and needs no other matrix
                    even = rate**2 * most
                    squares, crossed, own = even * self.even_squares, even * self.even_crossed, even * self.even_own
                else:
                    weight = rate**2 * growth_rest(value)
                    squares, crossed = self._squares(weight), self._prefix(weight * self.size)
                    own = float(weight @ self.size**2)
                linear = rate * sign * (self.sums[self.end] - self.sums[self.begin]) - squares
                slope = 2.0 * sign * (crossed[self.end] - crossed[self.begin]) - rate * self.total
                found.append(BetTerm(linear, slope, own, self.prior / (2 * self.rates.size)))
        return found

    def _prefix(self, coefficient: FloatArray | None = None) -> FloatArray:
        """Return sums of residuals up to each border, each cluster times a coefficient of its own."""
        return np.append(0.0, np.cumsum(self.between.totals(coefficient)))

    def _squares(self, weight: FloatArray) -> FloatArray:
        """Return the sum over clusters of weight times the square of their sum, for each interval."""
        found: FloatArray = self.between.squares(weight)[self.begin, self.end]
        return found

    @cached_property
    def even_squares(self) -> FloatArray:
        """The sum of squares of clusters, for each interval."""
        return self._squares(np.ones(self.size.size))

    @cached_property
    def even_crossed(self) -> FloatArray:
        """Sums of residuals up to each border, each cluster times its size."""
        return self._prefix(self.size)

    @cached_property
    def even_own(self) -> float:
        """The sum of squares of sizes."""
        return float(self.size @ self.size)

    def against(self, error: float, most_error: float) -> float:
        """Return the logarithm of the average evidence that the error is larger than this one."""
        return averaged_evidence(self._terms(most_error), error, self.folds)

    def lower(self, estimate: float, exponent: float) -> float:
        """Return the largest error up to the estimate that the evidence excludes; 0 where it excludes none."""
        return evidence_lower(self._terms(estimate), estimate, exponent, self.folds)
