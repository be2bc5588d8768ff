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
import numpy.typing as npt

from calibrant.core.types import FloatArray, IntArray
from calibrant.rows.checks import Observations, label_places
from calibrant.rows.labels import check_order
from calibrant.rows.memory import ArrayRows
from calibrant.rows.runs import group_sizes, group_starts, stable_order
from calibrant.rows.sources import RowSource

_CHUNK = 2**20
_TIMES_ROWS = 2
_CELL_BITS = 16


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

    def check_cluster_order(self) -> None:
        """Refuse labels whose sorted order is not the one that they seem to mean, as "day 10" before "day 2"."""
        ...

    def once_each(self) -> ClusteredSource:
        """Return the rows with weights divided by the sum of weights of their cluster, so that each counts once."""
        ...


class ClusteredRows(ArrayRows):
    """Rows in memory with the cluster of each, a number from 0 on in the sorted order of labels."""

    def __init__(
        self,
        observations: Observations,
        codes: IntArray,
        labels: npt.NDArray[Any] | None = None,
        every: tuple[Observations, IntArray] | None = None,
    ) -> None:
        super().__init__(observations)
        self.codes = codes
        self.labels = labels
        self.cluster_count = int(codes.max()) + 1
        self.every = (observations, codes) if every is None else every
        """All rows with their clusters: resamples need also those that count only for the weights of others."""

    @classmethod
    def of(cls, observations: Observations, cluster: Any) -> ClusteredRows:
        """Check a label per row; rows of weight zero are left out."""
        labels, places = label_places(cluster, "cluster", observations.y_prob.size)
        return cls.at(observations, places, labels)

    @classmethod
    def at(cls, observations: Observations, codes: IntArray, labels: npt.NDArray[Any]) -> ClusteredRows:
        """Return rows with the place of the label of each among the sorted ones, of which some may have no rows."""
        weight = observations.sample_weight
        every = (observations, _without_gaps(codes, labels.size)) if observations.weights_estimated else None
        if weight is not None and not weight.all():
            kept = np.flatnonzero(weight)
            observations, codes = observations.take(kept), codes[kept]
        return cls(observations, _without_gaps(codes, labels.size), labels, every)

    def take(self, positions: IntArray) -> ClusteredRows:
        """Return some of the rows, with what is there of their clusters."""
        return ClusteredRows(
            self.observations.take(positions), _without_gaps(self.codes[positions], self.cluster_count)
        )

    def cluster_sums(self, borders: FloatArray) -> ClusterSums:
        """Return the totals by cluster and block."""
        size = self.cluster_count * borders.size
        blocks = Blocks(borders)
        if size > _TIMES_ROWS * self.codes.size:  # most pairs hold no row: sorting takes less memory
            pair = self.codes * borders.size + blocks(self.observations.y_prob)
            order = stable_order(pair)
            pair = pair[order]
            starts = group_starts(pair)
            held = pair[starts]
            place = np.repeat(np.arange(held.size), group_sizes(starts, pair.size))
            added = _added(self.observations.take(order), place, held.size)
        else:
            added = [np.zeros(size) for _ in range(5)]
            for begin in range(0, self.codes.size, _CHUNK):
                rows = self.observations.take(slice(begin, begin + _CHUNK))
                place = self.codes[begin : begin + _CHUNK] * borders.size + blocks(rows.y_prob)
                for total, more in zip(added, _added(rows, place, size), strict=True):
                    total += more
            held = np.flatnonzero(added[0])
            added = [each[held] for each in added]
        cluster, block = np.divmod(held, borders.size)
        return ClusterSums(self.cluster_count, cluster, block, added[0].astype(np.int64), *added[1:])

    def fetch_clusters(self, low: FloatArray, high: FloatArray) -> tuple[Observations, IntArray]:
        """Return the rows inside closed stretches, and the cluster of each."""
        inside = self.inside(low, high)
        return self.observations.take(inside), self.codes[inside]

    def check_cluster_order(self) -> None:
        """Refuse labels that are texts in another order than the numbers that they hold."""
        if self.labels is not None and self.labels.dtype.kind in "OU":
            check_order(self.labels.tolist(), "cluster")

    def once_each(self) -> ClusteredRows:
        """Return the rows with weights divided by the sum of weights of their cluster."""
        weight = self.observations.sample_weight
        size = np.bincount(self.codes, weights=weight)
        own = np.ones(self.codes.size) if weight is None else weight
        return ClusteredRows(replace(self.observations, sample_weight=own / size[self.codes]), self.codes)


class Blocks:
    """Which block of forecasts a forecast is in: looked up by its cell where all borders are those of cells."""

    def __init__(self, borders: FloatArray) -> None:
        self.borders = borders
        cells = borders * 2.0**_CELL_BITS
        self._of_cell: IntArray | None = None
        if (cells == np.floor(cells)).all():
            self._of_cell = np.searchsorted(cells, np.arange(2**_CELL_BITS + 1), side="right") - 1

    def __call__(self, forecast: FloatArray) -> IntArray:
        """Return the block of each forecast."""
        if self._of_cell is None:
            return np.searchsorted(self.borders, forecast, side="right") - 1
        return self._of_cell[(forecast * 2.0**_CELL_BITS).astype(np.int64)]


def _added(rows: Observations, place: IntArray, size: int) -> list[FloatArray]:
    """Add up rows, weights, outcomes and residuals above and below 0 by place."""
    weight, outcome = rows.sample_weight, rows.y_true.astype(np.float64, copy=False)
    residual = outcome - rows.y_prob
    count = np.bincount(place, minlength=size)
    if weight is not None:
        outcome = outcome * weight
        residual *= weight
    columns = (outcome, np.maximum(residual, 0.0), np.maximum(-residual, 0.0))
    sums = [np.bincount(place, weights=each, minlength=size) for each in columns]
    weights = count if weight is None else np.bincount(place, weights=weight, minlength=size)
    return [each.astype(np.float64, copy=False) for each in (count, weights, *sums)]


def _without_gaps(codes: IntArray, count: int) -> IntArray:
    """Return numbers of clusters without gaps, in the same order, where some hold no rows any more."""
    held = np.bincount(codes, minlength=count) > 0
    return codes if held.all() else (np.cumsum(held) - 1)[codes]
