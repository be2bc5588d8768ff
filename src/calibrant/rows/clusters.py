"""Rows in clusters: which rows belong together, and their totals by cluster and by block of forecasts.

Rows of one cluster (a patient, a day, a site) may depend on each other in any way; clusters are independent. What is
known of them is asked in two ways, as of any source of rows: totals, here per cluster and block of forecasts, and the
rows of a few stretches of forecasts, here with the cluster of each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from calibrant.core.types import FloatArray, IntArray
from calibrant.rows.checks import Observations, check_codes
from calibrant.rows.memory import ArrayRows
from calibrant.rows.sources import RowSource


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Totals of rows by cluster and block of forecasts: an entry for each pair that holds rows of positive weight.

    With r = y - p the residual of a row and w its weight:

    Attributes
    ----------
    clusters : int
        How many clusters hold rows of positive weight.
    cluster : array of int
        The cluster of each entry, a number from 0 to clusters - 1 in the sorted order of their labels.
    block : array of int
        The block of each entry; entries are sorted by cluster, then block.
    rows : array of int
        Number of rows.
    weight : array
        Sum of w.
    outcome : array
        Sum of w y.
    above, below : array
        Sums of w max(r, 0) and of w max(-r, 0).
    """

    clusters: int
    cluster: IntArray
    block: IntArray
    rows: IntArray
    weight: FloatArray
    outcome: FloatArray
    above: FloatArray
    below: FloatArray

    @cached_property
    def residual(self) -> FloatArray:
        """Sum of w r of each entry."""
        return self.above - self.below

    def per_cluster(self, values: FloatArray | IntArray) -> FloatArray:
        """Add up values of entries by cluster."""
        return np.bincount(self.cluster, weights=values, minlength=self.clusters).astype(np.float64, copy=False)


@runtime_checkable
class ClusteredSource(RowSource, Protocol):
    """A source of rows that knows the cluster of each."""

    @property
    def cluster_count(self) -> int:
        """How many clusters hold rows of positive weight."""
        ...

    def cluster_sums(self, borders: FloatArray) -> ClusterSums:
        """Return the totals by cluster and block: block k holds the forecasts p with borders[k] <= p < borders[k + 1].

        ``borders`` increase and begin with 0; the last block has no upper end.
        """
        ...

    def fetch_clusters(self, low: FloatArray, high: FloatArray) -> tuple[Observations, IntArray]:
        """Return the rows inside closed stretches, disjoint and in increasing order, and the cluster of each."""
        ...

    def once_each(self) -> ClusteredSource:
        """Return the rows with weights divided by the sum of weights of their cluster, so that each counts once."""
        ...


class ClusteredRows(ArrayRows):
    """Rows in memory with the cluster of each, a number from 0 on in the sorted order of labels."""

    def __init__(self, observations: Observations, codes: IntArray) -> None:
        super().__init__(observations)
        self.codes = codes
        self.cluster_count = int(codes.max()) + 1

    @classmethod
    def of(cls, observations: Observations, cluster: Any) -> ClusteredRows:
        """Check a label per row; rows of weight zero are left out."""
        codes, count = check_codes(cluster, "cluster", observations.y_prob.size)
        weight = observations.sample_weight
        if weight is not None and not weight.all():
            kept = np.flatnonzero(weight)
            observations = observations.take(kept)
            codes = _without_gaps(codes[kept], count)
        return cls(observations, codes)

    def take(self, positions: IntArray) -> ClusteredRows:
        """Return some of the rows, with what is there of their clusters."""
        return ClusteredRows(
            self.observations.take(positions), _without_gaps(self.codes[positions], self.cluster_count)
        )

    def cluster_sums(self, borders: FloatArray) -> ClusterSums:
        """Return the totals by cluster and block."""
        rows = self.observations
        block = np.searchsorted(borders, rows.y_prob, side="right") - 1
        held, place = _held(self.codes * borders.size + block, self.cluster_count * borders.size)
        weight, outcome = rows.sample_weight, rows.y_true.astype(np.float64)
        residual = outcome - rows.y_prob
        if weight is not None:
            outcome = outcome * weight
            residual *= weight

        def added(values: FloatArray) -> FloatArray:
            return np.bincount(place, weights=values).astype(np.float64, copy=False)

        count = np.bincount(place)
        return ClusterSums(
            clusters=self.cluster_count,
            cluster=held // borders.size,
            block=held % borders.size,
            rows=count,
            weight=count.astype(np.float64) if weight is None else added(weight),
            outcome=added(outcome),
            above=added(np.maximum(residual, 0.0)),
            below=added(np.maximum(-residual, 0.0)),
        )

    def fetch_clusters(self, low: FloatArray, high: FloatArray) -> tuple[Observations, IntArray]:
        """Return the rows inside closed stretches, and the cluster of each."""
        stretch = np.minimum(np.searchsorted(high, self.observations.y_prob), high.size - 1)
        forecast = self.observations.y_prob
        inside = np.flatnonzero((forecast >= low[stretch]) & (forecast <= high[stretch]))
        return self.observations.take(inside), self.codes[inside]

    def once_each(self) -> ClusteredRows:
        """Return the rows with weights divided by the sum of weights of their cluster."""
        weight = self.observations.sample_weight
        size = np.bincount(self.codes, weights=weight)
        own = np.ones(self.codes.size) if weight is None else weight
        return ClusteredRows(replace(self.observations, sample_weight=own / size[self.codes]), self.codes)


def _held(key: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Return the distinct keys below a count, and the place of each row's among them."""
    if count > 2 * key.size:  # most pairs hold no row: sorting takes less memory
        held, place = np.unique(key, return_inverse=True)
        return held, place
    there = np.zeros(count, dtype=np.bool_)
    there[key] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[key]


def _without_gaps(codes: IntArray, count: int) -> IntArray:
    """Return numbers of clusters without gaps, in the same order, where some hold no rows any more."""
    held = np.bincount(codes, minlength=count) > 0
    return codes if held.all() else (np.cumsum(held) - 1)[codes]
