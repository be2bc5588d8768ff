"""Limits of the bias inside bands of forecasts, for rows in clusters: bets on whole clusters.

T_c is the sum of w (y - p) of cluster c inside the band, m_c that of w. Both limits of a band are one-sided and fail
with probability at most delta, at every number of clusters. The proofs are in docs/theory/clusters.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrant.certificates.betting import HIGHEST_RATE
from calibrant.certificates.cluster_limits import ClusterLimits, Dependence, cluster_exponent, cluster_rates
from calibrant.core.chernoff import chernoff_ends
from calibrant.core.types import FloatArray, IntArray

_ROOT_STEPS = 60


@dataclass(frozen=True, eq=False)
class ClusteredBands:
    """Totals by band and cluster, a line for each band.

    Attributes
    ----------
    rows : array of int
        Rows of each band.
    weight, residual, outcome : array of shape (bands, clusters)
        Sums of w, of w (y - p) and of w y.
    """

    limits: ClusterLimits
    edges: FloatArray
    rows: IntArray
    weight: FloatArray
    residual: FloatArray
    outcome: FloatArray

    @classmethod
    def of(cls, limits: ClusterLimits, edges: FloatArray) -> ClusteredBands:
        """Add up the rows between neighbouring edges, of which the first is 0 and the last 1."""
        sums = limits.source.cluster_sums(edges[:-1])

        def dense(values: FloatArray) -> FloatArray:
            found = np.zeros((edges.size - 1, sums.clusters))
            found[sums.block, sums.cluster] = values
            return found

        rows = np.bincount(sums.block, weights=sums.rows, minlength=edges.size - 1).astype(np.int64)
        return cls(limits, edges, rows, dense(sums.weight), dense(sums.residual), dense(sums.outcome))

    @property
    def clusters(self) -> IntArray:
        """How many clusters have rows in each band."""
        found: IntArray = np.count_nonzero(self.weight, axis=1)
        return found

    def least_share(self, delta: float) -> FloatArray:
        """Return lower limits for the population's shares of the bands, which fail together with probability delta."""
        limits, dependence = self.limits, self.limits.dependence
        stated = dependence.max_size is not None
        each = dependence.folds * math.log((self.rows.size + stated) / delta)
        total = limits.total / limits.largest
        if stated:  # sizes are a matter of chance, too
            total = chernoff_ends(total, each)[1]
        counts = self.weight.sum(axis=1) / limits.largest
        return np.array([chernoff_ends(count, each)[0] for count in counts.tolist()]) / total

    def bias_limits(self, delta: float) -> FloatArray:
        """Return the lower and the upper limit of the bias in each band; -1 and 1 where it has no rows."""
        found = np.tile([-1.0, 1.0], (self.rows.size, 1))
        for k in np.flatnonzero(self.rows).tolist():
            found[k] = -self._band(k).upper(-1.0, delta), self._band(k).upper(1.0, delta)
        return found

    def least_limits(self, delta: float) -> FloatArray:
        """Return how far from 0 the further limit of a band is at least where all is as forecast."""
        return np.array([self._band(k).least_limit(delta) if self.rows[k] else 1.0 for k in range(self.rows.size)])

    def _band(self, k: int) -> _Band:
        dependence = self.limits.dependence
        # How many of a population's clusters have rows here is a matter of chance, which no rate may depend on.
        here = (self.weight[k] > 0.0) | (dependence.max_size is not None)
        size = self.weight[k, here]
        largest = float(size.max()) if dependence.max_size is None else dependence.max_size
        low, high = self.edges[k : k + 2].tolist()
        return _Band(self.residual[k, here], size, dependence, largest, largest * (1.0 - low), largest * high)


@dataclass(frozen=True, eq=False)
class _Band:
    """Sums of residuals and weights of clusters in a band, the weights at most ``largest``.

    The residuals add up to at most ``above``, and to at least -``below``.
    """

    residual: FloatArray
    size: FloatArray
    dependence: Dependence
    largest: float
    above: float
    below: float

    def upper(self, sign: float, delta: float) -> float:
        """Return an upper limit of sign times the bias."""
        most, other = (self.above, self.below) if sign > 0.0 else (self.below, self.above)
        sums = sign * self.residual
        exponent = cluster_exponent(delta, self.dependence)
        limit = self._limit_at if self.dependence.max_size is None else self._ratio_limit
        rates = set(cluster_rates(sums, self.largest, most, delta, self.dependence))
        return min(max(limit(sums, rate, most, other, exponent) for rate in rates), 1.0)

    def _limit_at(self, sums: FloatArray, rate: float, most: float, other: float, exponent: float) -> float:
        del other
        growth = -float(np.log1p(-rate / most * sums).sum())
        share = self.size.size * most / (rate * float(self.size.sum()))
        return -math.expm1(-(growth + exponent) / self.size.size) * share

    def _ratio_limit(self, sums: FloatArray, rate: float, most: float, other: float, exponent: float) -> float:
        """Return the largest bias that bets on clusters of a population leave possible.

        A negative one needs slower bets, because sums may then be as far above it as both ends are apart.
        """
        if self._gained(0.0, rate / most, sums) > exponent:
            rate, low, high = rate / (most + other), -1.0, 0.0
        else:
            rate, low, high = rate / most, 0.0, 1.0
        if self._gained(high, rate, sums) <= exponent:
            return high
        for _ in range(_ROOT_STEPS):
            middle = (low + high) / 2.0
            low, high = (low, middle) if self._gained(middle, rate, sums) > exponent else (middle, high)
        return high

    def _gained(self, bias: float, rate: float, sums: FloatArray) -> float:
        left = 1.0 + rate * (bias * self.size - sums)
        return float(np.log(left).sum()) if left.min() > 0.0 else -math.inf

    def least_limit(self, delta: float) -> float:
        """Return the least that the larger of both limits can be where all is as forecast."""
        count, most = self.size.size, max(self.above, self.below)
        exponent = cluster_exponent(delta, self.dependence)
        share = most / (HIGHEST_RATE * float(self.size.sum()))
        gone = exponent if self.dependence.max_size is not None else -count * math.expm1(-exponent / count)
        return min(gone * share, 1.0)
