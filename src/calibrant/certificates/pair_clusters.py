"""Limits of the difference of two models' Cutoff errors where rows come in clusters: bets on whole clusters.

As for independent rows, with clusters in their place: some clusters name where the one model is worst, and bets on the
others are placed against every interval of the other model at once. The proofs are in docs/theory/comparisons.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from calibrant.certificates.betting import best_rate
from calibrant.certificates.cluster_limits import growth_rest
from calibrant.certificates.cluster_search import ClusterMap, Weighing, largest_growth
from calibrant.certificates.pairs import Bools, Ordered
from calibrant.core.types import FloatArray
from calibrant.rows.checks import Observations
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.paired import FEW_GROUPS, Half, PairedRows, halves
from calibrant.rows.runs import prefix_sums
from calibrant.rows.tally import Tally

_HIGHEST_RATE = 0.3
"""A bet is 1 + x (d m - D), where a difference d of errors is at least -1 and D at most twice the size m."""

_BOLDNESS = (0.3, 0.6, 1.2)
_STEPS = 50


def clustered_cutoff_limits(
    rows: PairedRows, first: str, second: str, seed: int, delta: float, largest: float | None
) -> tuple[float, float]:
    """Return limits of the Cutoff error of one model minus that of another, each wrong with probability delta at most.

    Clusters are independent draws from one population of clusters, none larger than ``largest``, or than these.
    """
    pair = _Pair(rows, first, second, seed, largest)
    evidence = [found for half in halves(FEW_GROUPS) if (found := pair.evidence(half, math.log(1.0 / delta)))]
    if not evidence:
        return -1.0, 1.0
    below, above = ([each[side] for each in evidence] for side in (0, 1))
    return -_upper(below, delta), _upper(above, delta)


class _Evidence(NamedTuple):
    """How a bet on clusters grew at most, at which rate; for each cluster its size and how large D and -D can be."""

    growth: float
    rate: float
    size: FloatArray
    most: FloatArray
    least: FloatArray

    def logarithm(self, difference: float) -> float:
        """Return the logarithm of the evidence against a difference, or less: what the difference adds to a bet."""
        stake = self.rate * difference * self.size
        factor = 1.0 + self.rate * self.least if difference >= 0.0 else 1.0 - self.rate * self.most
        return float(np.log1p(stake / factor).sum()) - self.growth


def _upper(evidence: list[_Evidence], delta: float) -> float:
    """Return the largest difference that the average evidence leaves possible."""

    def excluded(difference: float) -> bool:
        logarithms = np.array([each.logarithm(difference) for each in evidence])
        return float(np.logaddexp.reduce(logarithms)) - math.log(logarithms.size) >= math.log(1.0 / delta)

    low, high = -1.0, 1.0
    if not excluded(high):
        return 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if excluded(middle) else (middle, high)
    return high


class _Pair:
    """Two models on rows in clusters."""

    def __init__(self, rows: PairedRows, first: str, second: str, seed: int, largest: float | None) -> None:
        assert rows.codes is not None
        self.rows, self.names, self.codes = rows, (first, second), rows.codes
        self.groups = rows.groups(seed, FEW_GROUPS)
        self.models = Ordered.of(rows, first), Ordered.of(rows, second)
        share = np.ones(rows.rows) if rows.share is None else rows.share
        self.share = share
        size = np.bincount(rows.codes, weights=share)
        self.largest = float(size.max()) if largest is None else largest

    def evidence(self, half: Half, exponent: float) -> tuple[_Evidence, _Evidence] | None:
        """Return the evidence against differences, second minus first and first minus second; None without clusters."""
        named, tested = half.first[self.groups], half.second[self.groups]
        if not named.any() or not tested.any():
            return None
        inside = [model.inside_worst(named, float(self.share[named].sum())) for model in self.models]

        def against(model: int) -> _Evidence:
            found = _Bets(self, model, inside[1 - model], named)
            left = np.unique(self.codes[tested]).size / found.rows.clusters
            lost = np.bincount(found.codes, weights=(inside[model] - inside[1 - model])[named])
            square = float(np.square(lost).sum()) * left / (2.0 * self.largest) ** 2
            usual = best_rate(square, 1.0, exponent) / 2.0
            rates = [min(bold * usual, _HIGHEST_RATE) / self.largest for bold in _BOLDNESS]
            rate = min(rates, key=lambda each: (found.usual_growth(each) + exponent) / each)
            return _Bets(self, model, inside[1 - model], tested).evidence(rate)

        return against(1), against(0)


class _Bets:
    """Bets on some clusters against every interval of one model, less what the other loses inside its worst one."""

    def __init__(self, pair: _Pair, model: int, other: FloatArray, kept: Bools) -> None:
        rows = pair.rows
        where = np.flatnonzero(kept)
        self.codes = np.unique(pair.codes[where], return_inverse=True)[1]
        weight = None if rows.share is None else rows.share[where]
        forecast = rows.forecasts[pair.names[model]][where]
        self.observations = Observations(rows.outcome[where], forecast, weight, rows.binary_outcomes)
        self.rows = self._map(self.observations)
        self.lost: FloatArray = np.bincount(self.codes, weights=other[where]).astype(np.float64, copy=False)
        self.reach = {sign: self.rows.reach(sign) * (1.0 + 1e-12) for sign in (1.0, -1.0)}

    def _map(self, observations: Observations) -> ClusterMap:
        return ClusterMap(ClusteredRows(observations, self.codes), Tally.from_observations(observations))

    def _terms(self, rate: float, sign: float) -> tuple[FloatArray, FloatArray, float]:
        """Return how squares of T count, how T does, and a constant, in a bound of the sum of -ln(1 - x D_c).

        With D = s T - u it is at most x D + k D^2, where k fits the largest D that the cluster can have: what u does is
        a constant and a change of how much T counts.
        """
        weight = rate**2 * growth_rest(rate * (self.reach[sign] - self.lost))
        constant = float(weight @ np.square(self.lost)) - rate * float(self.lost.sum())
        return weight, rate - 2.0 * weight * self.lost, constant

    def usual_growth(self, rate: float) -> float:
        """Return about the largest sum over all intervals, with squares that count alike, over whole blocks."""
        square = rate**2 / 2.0
        slope: FloatArray = rate - 2.0 * square * self.lost
        linear = prefix_sums(self.rows.by_block.totals(slope))
        squares = square * self._squares
        most = max(float(np.triu(sign * (linear[None, :] - linear[:, None]) + squares).max()) for sign in self.reach)
        return most + square * float(self.lost @ self.lost) - rate * float(self.lost.sum())

    @cached_property
    def _squares(self) -> FloatArray:
        return Weighing(self.rows, np.ones(self.rows.clusters)).squares

    def growth(self, rate: float) -> float:
        """Return a bound of the largest sum over all intervals.

        Where T counts more or less, so do the rows of the cluster, and squares the other way round.
        """
        found = []
        own = self.observations.sample_weight
        for sign in self.reach:
            weight, slope, constant = self._terms(rate, sign)
            factor = slope / rate
            counted = factor[self.codes] if own is None else own * factor[self.codes]
            rows = self._map(replace(self.observations, sample_weight=counted))
            found.append(largest_growth(Weighing(rows, weight / np.square(factor)), sign, rate, 1.0) + constant)
        return max(found)

    def evidence(self, rate: float) -> _Evidence:
        """Return what the bets say at a rate."""
        reach = np.maximum(self.reach[1.0], self.reach[-1.0])
        return _Evidence(self.growth(rate), rate, self.rows.size, reach - self.lost, reach + self.lost)
