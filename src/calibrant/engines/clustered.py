"""Rows in clusters that stay where they are: a scan that also answers by cluster."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.types import BoolArray, FloatArray, IntArray
from calibrant.engines.handles import Scan
from calibrant.engines.statements import (
    cluster_sums_statement,
    clusters_statement,
    fetch_statement,
    is_missing_label,
    without_value,
)
from calibrant.rows.arrays import MISSING_REMEDY
from calibrant.rows.checks import Observations
from calibrant.rows.clusters import ClusterSums
from calibrant.rows.labels import check_order
from calibrant.rows.sources import FetchRequest

MOST_CLUSTERS = 10_000_000
"""A handle keeps the label of every cluster, some 100 bytes for each."""

_ROUNDING = 1e-9  # by which sums of rows may miss what holds for them


@dataclass(frozen=True, eq=False)
class _Clusters:
    """The clusters of a scan.

    Attributes
    ----------
    labels : array of str
        Their labels, sorted as texts.
    code : array of int
        The number of the cluster of each label.
    found : array of int
        The number of each cluster, in the order in which the engine sorts their labels.
    rows : array of int
        How many rows each cluster has that count.
    """

    labels: npt.NDArray[Any]
    code: IntArray
    found: IntArray
    rows: IntArray

    @classmethod
    def of(cls, labels: npt.NDArray[Any], rows: IntArray, kind: str) -> _Clusters:
        """Give numbers to clusters that come in the order of the engine."""
        order = _order(labels, kind)
        found = np.empty(order.size, dtype=np.int64)
        found[order] = np.arange(order.size)
        as_texts = _sorted_places(labels)
        return cls(labels[as_texts], found[as_texts], found, rows[order])

    def codes(self, labels: npt.NDArray[Any]) -> IntArray:
        """Return the numbers of the clusters of rows, -1 where there was no such cluster."""
        distinct, inverse = np.unique(labels, return_inverse=True)
        place = np.minimum(np.searchsorted(self.labels, distinct), self.labels.size - 1)
        return np.where(self.labels[place] == distinct, self.code[place], -1)[inverse]


class ClusteredScan(Scan):
    """Rows in clusters that stay where they are: pass it in place of ``y_true``. Made by `scan` with ``cluster``.

    The labels of clusters are read once and kept; of rows no more is kept than of those without clusters.

    Examples
    --------
    >>> import numpy as np, pyarrow
    >>> from calibrant import scan
    >>> visits = pyarrow.table({"ill": [0, 1, 1], "risk": [0.25, 0.5, 0.75], "patient": ["Ann", "Bob", "Ann"]})
    >>> with scan(visits, y_true="ill", y_prob="risk", cluster="patient") as rows:
    ...     sums = rows.cluster_sums(np.array([0.0, 0.5]))
    >>> rows.cluster_count, sums.cluster.tolist(), sums.block.tolist(), sums.residual.tolist()
    (2, [0, 0, 1], [0, 1, 1], [-0.25, 0.25, 0.5])
    """

    _clusters: _Clusters | None = None

    @property
    def cluster_count(self) -> int:
        """How many clusters hold rows of positive weight."""
        return self._known().rows.size

    def cluster_sums(self, borders: FloatArray) -> ClusterSums:
        """Return the totals by cluster and block: block k holds the forecasts p with borders[k] <= p < borders[k + 1].

        Those of all clusters and blocks are brought here: ask for fewer blocks where there are more clusters.
        """
        known = self._known()
        answer = dict(self._run(cluster_sums_statement(self._engine, self._roles, borders)))
        place = _taken(answer, "place", np.int64)
        if place.size == 0 or int(place.max()) != known.rows.size - 1:
            raise self._changed()
        key = known.found[place] * borders.size + _taken(answer, "block", np.int64)
        order = np.argsort(key)
        key = key[order]
        rows = _taken(answer, "n", np.int64)[order]
        sums = {name: _taken(answer, name, np.float64)[order] for name in list(answer)}
        found = ClusterSums(
            clusters=known.rows.size,
            cluster=key // borders.size,
            block=key % borders.size,
            rows=rows,
            **{"weight": rows.astype(np.float64)} | sums,
        )
        if not np.array_equal(found.per_cluster(found.rows), known.rows):
            raise self._changed()
        self._check_sums(found)
        return found

    def fetch_clusters(self, low: FloatArray, high: FloatArray) -> tuple[Observations, IntArray]:
        """Return the rows inside closed stretches, disjoint and in increasing order, and the cluster of each."""
        known, request = self._known(), FetchRequest(0, low, high)
        facts = self._totals(self.first_grid).facts
        answer = dict(self._run(fetch_statement(self._engine, self._roles, [request], (), clusters=True)))
        self._work.rows_fetched += len(answer["p"])
        if without_value(answer["c"]).any():
            raise self._changed()
        answer["code"] = known.codes(_texts(answer["c"]))
        if (answer["code"] < 0).any():
            raise self._changed()
        rows, order = self._observed(answer, request, facts)
        return rows, answer["code"][order]

    def check_cluster_order(self) -> None:
        """Refuse labels that are texts in another order than the numbers that they hold."""
        labels, kind = self._known().labels, self._engine.columns[str(self._roles.cluster)]
        if kind in ("whole", "fraction") or (kind == "written" and _written_numbers(labels) is not None):
            return
        try:
            check_order(labels.tolist(), "cluster")
        except InputError as error:
            raise error.among(source=self._engine.name) from error

    def once_each(self) -> ClusteredScan:
        """Return the rows with weights divided by the sum of weights of their cluster, so that each counts once.

        What is returned asks the same engine: it is closed when this is.
        """
        if self._roles.once_each:
            return self
        known = self._known()
        other = copy.copy(self)
        other._roles, other._first, other._clusters = replace(self._roles, once_each=True), None, known
        return other

    def _known(self) -> _Clusters:
        """Return the clusters, after a scan of all rows and one of their labels the first time."""
        if self._clusters is None:
            self._totals(self.first_grid)
            self._clusters = self._read_clusters()
        return self._clusters

    def _read_clusters(self) -> _Clusters:
        column = self._roles.cluster
        assert column is not None
        answer = self._run(clusters_statement(self._engine, self._roles, MOST_CLUSTERS))
        rows, kind = np.asarray(answer["n"]), self._engine.columns[column]
        gone = without_value(answer["c"])
        labels = _texts(answer["c"])
        gone |= _missing(labels, kind)
        self._refuse_labels("cluster", "missing", int(np.sum(rows[gone])), MISSING_REMEDY)
        if labels.size > MOST_CLUSTERS:
            raise InputError(
                f"has more than {MOST_CLUSTERS:,} different values",
                argument="cluster",
                column=column,
                source=self._engine.name,
                remedy="merge clusters into larger ones, such as days into weeks, or judge a sample of them",
            )
        if kind == "fraction":
            infinite = np.isinf(labels.astype(np.float64))
            self._refuse_labels("cluster", "infinite", int(np.sum(rows[infinite])), "every value must be finite")
        counted = np.asarray(answer["counted"]).astype(np.int64)
        kept = counted > 0
        first = self._totals(self.first_grid).columns["rows"]
        if int(counted.sum()) != int(first.sum()):
            raise self._changed()
        return _Clusters.of(labels[kept], counted[kept], kind)

    def _check_sums(self, sums: ClusterSums) -> None:
        """Refuse totals that no rows can have: whatever an engine went by, it was not the rows."""
        slack = _ROUNDING * sums.weight
        holds = (sums.weight > 0.0) & (sums.outcome >= 0.0) & (sums.outcome <= sums.weight + slack)
        holds &= (sums.above >= 0.0) & (sums.below >= 0.0) & (sums.above + sums.below <= sums.weight + slack)
        if not holds.all():  # a comparison with NaN does not hold
            raise InputError(
                "the scan found totals of a cluster such as no rows have",
                source=self._engine.name,
                remedy="the file or the engine contradicts itself, write the rows anew",
            )

    def _changed(self) -> InputError:
        return InputError(
            "the clusters are not those that the first scan counted: the rows changed in between",
            source=self._engine.name,
        )


def _taken(answer: dict[str, npt.NDArray[Any]], name: str, kind: type[np.generic]) -> npt.NDArray[Any]:
    """Return a column of an answer, which lets go of it: there may be millions of entries."""
    return np.asarray(answer.pop(name)).astype(kind, copy=False)


def _texts(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return labels as Python's texts, whichever array an engine hands over."""
    return np.ma.getdata(labels).astype(object)


def _missing(labels: npt.NDArray[Any], kind: str) -> BoolArray:
    """Return which labels say that there is none."""
    if kind == "fraction":
        return np.array([str(label).lower() == "nan" for label in labels], dtype=np.bool_)
    if kind == "written":
        return np.array([is_missing_label(str(label)) for label in labels], dtype=np.bool_)
    return np.zeros(labels.size, dtype=np.bool_)


def _order(labels: npt.NDArray[Any], kind: str) -> IntArray:
    """Return the places of labels in the order of what they stand for, as arrays of the same values would have it.

    Those of text files are in the order of numbers where all of them are numbers; 1 and 1.0 are two all the same.
    """
    if kind == "whole":
        return _sorted_places(_whole(labels))
    if kind == "fraction":
        numbers = labels.astype(np.float64)
        distinct = np.unique(numbers).size == numbers.size
        return _sorted_places(numbers if distinct else np.array([Decimal(label) for label in labels], dtype=object))
    as_texts = _sorted_places(labels)
    written = _written_numbers(labels[as_texts]) if kind == "written" else None
    return as_texts if written is None else as_texts[np.argsort(written, kind="stable")]


def _written_numbers(labels: npt.NDArray[Any]) -> FloatArray | None:
    """Return the numbers that texts stand for; None unless all of them stand for one."""
    try:
        numbers: FloatArray = labels.astype(np.float64)
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


def _whole(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    try:
        return labels.astype(np.int64)
    except OverflowError:  # numbers of more than 64 bits stay Python's
        return np.array([int(label) for label in labels], dtype=object)


def _sorted_places(values: npt.NDArray[Any]) -> IntArray:
    """Return the places of values in sorted order; engines mostly hand them over in it."""
    if bool((values[1:] > values[:-1]).all()):
        return np.arange(values.size)
    return np.argsort(values, kind="stable")
