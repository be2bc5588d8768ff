"""Limits of the risk gap for rows in clusters: bets on whole clusters against every re-drawn line.

T_c(g) is the sum over cluster c of w g, what moving a line from a threshold t to s gains or loses on its rows; m_c is
the sum of its weights, n that of all. All limits are one-sided and fail with probability at most delta, at every number
of clusters unless said. The proofs are in docs/theory/savings.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from calibrant.certificates.betting import HIGHEST_RATE, best_rate
from calibrant.certificates.cluster_limits import BetTerm, ClusterLimits, evidence_lower, growth_rest
from calibrant.certificates.cluster_saving_search import Judging, Kind, SavingMap
from calibrant.certificates.cluster_search import FIXED_BORDERS
from calibrant.certificates.margins import VARIANCE_SHARE
from calibrant.certificates.saving_limits import LEVEL_RATES, SECOND_SHARE, highest_below, lowest_above
from calibrant.core.chernoff import chernoff_ends
from calibrant.core.types import FloatArray, IntArray
from calibrant.rows.clusters import ClusterSums
from calibrant.rows.runs import group_starts
from calibrant.rows.savings import Thresholds

_NARROWEST = 5  # windows of forecasts are at least 2^-5 wide in units of ln(p / (1 - p)), and at most 2^-1
_FARTHEST = 8  # as far from 0, in those units, as windows are told apart
_FEW_TIMES_SQUARE = 2000.0  # from so many clusters on, squares of their sums are not cut off for the rate
_LEAST_CUT = 0.05
_LOWER_RATE = 0.45
_ROOT_STEPS = 60
_CLOSE = 1e-4
_SHORTEST = 9.0  # how much shorter than the longest possible, as a logarithm, sums of clusters of a line can be
_GOLDEN, _GOLDEN_STEPS = (math.sqrt(5.0) - 1.0) / 2.0, 12


class SavingLimits:
    """Limits of the risk gap over some thresholds from rows in clusters."""

    def __init__(self, limits: ClusterLimits, thresholds: Thresholds) -> None:
        self.limits = limits
        self.thresholds = thresholds
        self.rows = SavingMap(limits.rows, thresholds)

    def _exponent(self, delta: float) -> float:
        return self.limits.dependence.folds * math.log(1.0 / delta)

    # --- Upper limits -----------------------------------------------------------------------------------------------

    def hoeffding_margin(self, delta: float) -> float:
        """Return sqrt((q + 1) ln(1/delta) sum m_c^2 / 2) / n: sums of clusters have a range of m_c.

        It is half of that of the Cutoff error, whose sums have twice the range, for drawn sizes as well.
        """
        return self.limits.hoeffding_margin(delta) / 2.0

    def bets(self, estimate: float, delta: float, *, given: bool = False) -> float:
        """Return the largest saving that bets on whole clusters leave possible.

        It is the smaller of two limits: one at rates that suit rows near the thresholds, and, with a small share of
        delta, one at rates that suit all of them. ``given`` says that forecasts count as fixed.
        """
        second = SECOND_SHARE * delta
        first = self._bets(self._window_rates, delta - second, given=given)
        if self._at_least(estimate, second, given=given) >= first:
            return first
        return min(first, self._bets(self._total_rates, second, given=given))

    def least_limit(self, delta: float) -> float:
        """Return the least that the limit of bets can be, whatever the outcomes: clusters are few, or one is large."""
        limits = self.limits
        exponent = self._exponent((1.0 - SECOND_SHARE) * (1.0 - VARIANCE_SHARE) * delta)
        most = max((most for _, most in self._kinds(given=False)), default=0.0)
        if limits.dependence.max_size is not None:
            return min(exponent * most / (HIGHEST_RATE * limits.total), 1.0)
        share = limits.count * most / limits.total
        return min(-math.expm1(-exponent / limits.count) * share / HIGHEST_RATE, 1.0)

    def _kinds(self, *, given: bool) -> Iterator[tuple[Kind, float]]:
        """Yield the kinds of lines that can gain anything, with how large a sum of a cluster can be at all."""
        for kind in self.rows.kinds:
            most = kind.most_given() if given else self.limits.largest * kind.most_gained
            if most > 0.0:
                yield kind, most

    def _bets(self, rates: _Rates, delta: float, *, given: bool) -> float:
        exponent = self._exponent(delta * (1.0 - VARIANCE_SHARE))
        found = 0.0
        for kind, most in self._kinds(given=given):
            for rate in set(rates(most, delta)):
                found = max(found, self._limit_at(kind, rate / most, exponent))
        return min(found, 1.0)

    def _at_least(self, estimate: float, delta: float, *, given: bool) -> float:
        """Return what the limit at the rates of all rows is at least: bets grow by no less than rates times sums."""
        limits = self.limits
        if limits.dependence.max_size is not None:
            return estimate
        exponent = self._exponent(delta * (1.0 - VARIANCE_SHARE))
        count, total = limits.count, limits.total
        grown: list[float] = []
        alone: list[float] = []
        for _, most in self._kinds(given=given):
            rates = np.array(self._total_rates(most, delta)) / most
            for ends, saved in ((grown, estimate), (alone, 0.0)):
                growth = rates * saved * total + exponent
                ends.append(float((-np.expm1(-growth / count) / rates).max()) * count / total)
        return max(min(grown, default=0.0), *alone, 0.0)

    def _limit_at(self, kind: Kind, rate: float, exponent: float) -> float:
        limits = self.limits
        # What stands in for -ln(1 - x T) must be above it for every T up to the reach, which rounding may pass.
        weight = rate**2 * growth_rest(rate * kind.reach * (1.0 + 1e-12))
        judging = Judging(kind, weight, limits.rows.size)
        if limits.dependence.max_size is None:
            growth = judging.largest(rate)
            return -math.expm1(-(growth + exponent) / limits.count) * limits.count / (limits.total * rate)

        def is_excluded(error: float) -> bool:
            return rate * error * limits.total - judging.largest(rate, error) > exponent

        return _last_kept(is_excluded)

    # --- Rates --------------------------------------------------------------------------------------------------------

    @property
    def _cut(self) -> float:
        return min(max(self.limits.count / _FEW_TIMES_SQUARE, _LEAST_CUT), 1.0)

    def _total_rates(self, most: float, delta: float) -> tuple[float, float]:
        """Return two rates, times the largest sum, between which the one lies that suits all rows."""
        squares = float(np.minimum((self.limits.rows.cluster_total / most) ** 2 / self._cut, 1.0).sum())
        low, high = chernoff_ends(squares, self._exponent(delta * VARIANCE_SHARE / 2.0))
        exponent = self._exponent(delta * (1.0 - VARIANCE_SHARE))
        return best_rate(high * self._cut, 1.0, exponent), best_rate(low * self._cut, 1.0, exponent)

    @cached_property
    def _windows(self) -> _Windows:
        return _Windows(self.limits, self.thresholds)

    def _window_rates(self, most: float, delta: float) -> tuple[float, float]:
        """Return two rates, times the largest sum, between which the one lies that suits rows near the thresholds.

        A rate is too bold where the squares of sums of some window, as wide as the best lines of this rate are apart,
        add up to more than it can bear. Those are numbers of the population, enclosed from the rows.
        """
        exponent = self._exponent(delta * (1.0 - VARIANCE_SHARE))
        share = delta * VARIANCE_SHARE / 4.0
        # A window holds a small part of a large cluster: squares beyond what its rows alone would have are rare.
        cut = max(min(self._windows.unit / self.limits.largest, self._cut), _LEAST_CUT)
        above, below = [], []
        for rate in LEVEL_RATES.tolist():
            squares = self._windows.squares(rate / most, most, cut)
            bold = (rate / (1.0 - 2.0 / 3.0 * rate)) ** 2 * cut / (2.0 * exponent)
            largest = float(squares.max())  # limits grow with sums
            _, high = chernoff_ends(largest, self._exponent(share))
            low, _ = chernoff_ends(largest, self._exponent(share / squares.size))
            above.append(math.log(max(bold * min(high, self.limits.count), 1e-300)))
            below.append(math.log(max(bold * low, 1e-300)))
            if bold * self.limits.count <= 1.0:  # slower rates are not too bold in any case
                break
        return lowest_above(above), highest_below(below)

    # --- Large samples ------------------------------------------------------------------------------------------------

    def large_sample(self, quantile: float) -> float:
        """Return the most over lines of sum T + z sqrt(sum T^2 G / (G - 1)), over n: right for many clusters."""
        limits, count = self.limits, self.limits.count
        if count < 2:
            return 1.0
        more = limits.dependence.folds * count / (count - 1.0)
        found = 0.0
        for kind in self.rows.kinds:
            longest = math.sqrt(more * float((np.maximum(kind.reach, kind.fall) ** 2).sum()))
            if longest > 0.0:
                judging = Judging(kind, np.ones(count), limits.rows.size)
                found = max(found, _lowest_line(judging, quantile, more, longest))
        return float(min(found / limits.total, 1.0))

    # --- Lower limits -------------------------------------------------------------------------------------------------

    def lower(self, estimate: float, delta: float) -> float:
        """Return a lower limit: the largest saving that evidence averaged over lines fixed beforehand excludes."""
        return _Evidence(self).lower(estimate, math.log(1.0 / delta))


_Rates = Callable[[float, float], tuple[float, float]]


def _last_kept(is_excluded: Callable[[float], bool]) -> float:
    """Return the least error that is excluded, or about that; 1 where none is."""
    low, high = 0.0, 1.0
    if not is_excluded(high):
        return 1.0
    while high - low > _CLOSE * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if is_excluded(middle) else (middle, high)
    return high


def _lowest_line(judging: Judging, quantile: float, more: float, longest: float) -> float:
    """Return about the least over lengths l of the most of sum T + z v / (2 l), plus z l / 2, with v that of squares.

    It is convex in 1 / l, and no less than the most of sum T + z sqrt(v) at every l.
    """

    def at(place: float) -> float:
        length = longest * math.exp(place)
        return judging.largest(1.0, share=quantile * more / (2.0 * length)) + quantile * length / 2.0

    low, high = -_SHORTEST, 0.0
    places = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    values = [at(place) for place in places]
    for _ in range(_GOLDEN_STEPS):
        if values[0] <= values[1]:
            high = places[1]
            places, values = [high - _GOLDEN * (high - low), places[0]], [math.nan, values[0]]
            values[0] = at(places[0])
        else:
            low = places[0]
            places, values = [places[1], low + _GOLDEN * (high - low)], [values[1], math.nan]
            values[1] = at(places[1])
    return min(values)


class _Windows:
    """Sums of residuals of clusters in windows of forecasts near the thresholds, which were fixed beforehand."""

    def __init__(self, limits: ClusterLimits, thresholds: Thresholds) -> None:
        steps = np.arange(-_FARTHEST * 2**_NARROWEST, _FARTHEST * 2**_NARROWEST + 1)
        borders = np.append(0.0, 1.0 / (1.0 + np.exp(-steps / 2.0**_NARROWEST)))
        self.sums = limits.source.cluster_sums(borders)
        self.place = self.sums.block + (steps[0] - 1)
        self.low, self.high = (np.searchsorted(borders, thresholds, side="right") - 1 + (steps[0] - 1)).tolist()
        # A row counts 1 in a population of clusters, and elsewhere its part of these weights, which are fixed.
        stated = limits.dependence.max_size is not None
        self.unit = 1.0 if stated else limits.total / limits.table.row_total
        self._added: dict[int, tuple[IntArray, FloatArray]] = {}

    def squares(self, rate: float, most: float, cut: float) -> FloatArray:
        """Return, by window, the sum over clusters of min((T / most)^2 / cut, 1).

        At rate x the best lines of a calibrated forecaster are x/2 apart in units of ln(p / (1 - p)).
        """
        width = max(math.floor(-math.log2(rate * self.unit / 2.0)), 1)
        shift = _NARROWEST - min(width, _NARROWEST)
        window, total = self._per_window(shift)
        first, last = (self.low >> shift) - 1, (self.high >> shift) + 1
        kept = (window >= first) & (window <= last)
        terms = np.minimum((total[kept] / most) ** 2 / cut, 1.0)
        found = np.bincount(window[kept] - first, weights=terms, minlength=last - first + 1)
        return found.astype(np.float64, copy=False)

    def _per_window(self, shift: int) -> tuple[IntArray, FloatArray]:
        """Return the window of each pair of cluster and window that holds rows, and its sum of residuals."""
        if shift not in self._added:
            window = self.place >> shift
            starts = group_starts(self.sums.cluster * 2**16 + window)
            self._added[shift] = window[starts], np.add.reduceat(self.sums.residual, starts)
        return self._added[shift]


class _Lines(NamedTuple):
    """Lines fixed beforehand: between which borders rows are treated otherwise, their thresholds and shares."""

    begin: IntArray
    end: IntArray
    threshold: FloatArray
    share: FloatArray


class _Evidence:
    """Bets that the saving is larger, on each of some lines and at each of some rates, all fixed beforehand."""

    def __init__(self, saving: SavingLimits) -> None:
        limits = saving.limits
        self.limits, self.kinds = limits, saving.rows.kinds
        self.thresholds = saving.thresholds
        self.borders = np.unique(np.append(FIXED_BORDERS, saving.thresholds))
        sums = limits.source.cluster_sums(self.borders)
        self.outcome, self.weight = self._prefixes(sums, sums.outcome), self._prefixes(sums, sums.weight)
        halvings = max(1, math.ceil(math.log2(max(limits.count, 2)) / 2.0) - 1)
        self.rates = _LOWER_RATE * 2.0 ** -np.arange(halvings + 1.0) / limits.largest

    def _prefixes(self, sums: ClusterSums, values: FloatArray) -> FloatArray:
        found = np.zeros((self.borders.size + 1, sums.clusters))
        found[sums.block + 1, sums.cluster] = values
        return np.cumsum(found, axis=0, out=found)

    def _lines(self, kind: Kind) -> _Lines:
        """Return the lines whose thresholds were asked about.

        Each threshold has the same share; half of it goes to the line that moves as far as possible.
        """
        begin, end = np.triu_indices(self.borders.size + 1, 1)
        threshold = np.append(self.borders, np.inf)[end if kind.more else begin]
        farthest = begin == 0 if kind.more else end == self.borders.size
        kept = (threshold >= self.thresholds.low) & (threshold <= self.thresholds.high)
        begin, end, threshold, farthest = begin[kept], end[kept], threshold[kept], farthest[kept]
        found, place, count = np.unique(threshold, return_inverse=True, return_counts=True)
        others = count[place] - 1
        share = np.where(others == 0, 1.0, np.where(farthest, 0.5, 0.5 / np.maximum(others, 1)))
        return _Lines(begin, end, threshold, share / max(found.size, 1))

    def _terms(self, most_saving: float) -> list[BetTerm]:
        """Return, by kind and rate, what the growth on each line is made of, up to a saving."""
        return [
            self._term(kind, lines, rate, most_saving)
            for kind, lines in ((kind, self._lines(kind)) for kind in self.kinds)
            for rate in self.rates.tolist()
        ]

    def _term(self, kind: Kind, lines: _Lines, rate: float, most_saving: float) -> BetTerm:
        size, (begin, end, threshold, share) = self.limits.rows.size, lines
        weight = rate**2 * growth_rest(rate * (kind.fall + most_saving * size) * (1.0 + 1e-12))
        root = np.sqrt(weight)
        outcome, rows = self.outcome * root, self.weight * root
        events, mixed, everybody = (
            _spread(*each)[begin, end] for each in ((outcome, outcome), (outcome, rows), (rows, rows))
        )
        squares = events - 2.0 * threshold * mixed + threshold**2 * everybody

        def gained(of_events: FloatArray, of_rows: FloatArray) -> FloatArray:
            found: FloatArray = of_events[end] - of_events[begin] - threshold * (of_rows[end] - of_rows[begin])
            return kind.sign * found

        sums = gained(self.outcome.sum(axis=1), self.weight.sum(axis=1))
        crossed = gained(outcome @ (root * size), rows @ (root * size))
        return BetTerm(
            linear=rate * sums - squares,
            slope=2.0 * crossed - rate * self.limits.total,
            square=float(weight @ size**2),
            prior=share / (2.0 * self.rates.size),
        )

    def lower(self, estimate: float, exponent: float) -> float:
        """Return the largest saving up to the estimate that the evidence excludes; 0 where it excludes none."""
        return evidence_lower(self._terms(estimate), estimate, exponent, self.limits.dependence.folds)


def _spread(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return sum_c (left_j - left_i) (right_j - right_i) for all pairs of places i and j."""
    product = left @ right.T
    own = np.diagonal(product)
    found: FloatArray = own[:, None] + own[None, :] - product - product.T
    return found
