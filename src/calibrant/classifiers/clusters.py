"""Rows in clusters on their way into a fit: no split has rows of one cluster on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from calibrant.classifiers.targets import row_kinds
from calibrant.core.errors import InputError
from calibrant.core.types import FloatArray, IntArray
from calibrant.core.words import counted
from calibrant.rows.checks import check_codes
from calibrant.rows.splits import Marks, cluster_order, mixed_marks, row_marks

LEAST_FOR_JUDGING = 2
"""How clusters differ from each other cannot be told from one."""

Folds = list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]
"""Positions of the rows that fit a model, and of those that it forecasts, for each part."""


@dataclass(frozen=True, eq=False)
class RowClusters:
    """The cluster of each row, and what the rows hold: splits are drawn from that, not from the order or the names.

    Attributes
    ----------
    codes : array of int
        The cluster of each row, a number from 0 on without gaps.
    marks : array
        A number per row that its features, label and weight decide.
    """

    codes: IntArray
    marks: Marks

    @classmethod
    def of(cls, groups: Any, X: Any, y: npt.NDArray[Any], weight: FloatArray | None) -> RowClusters:
        """Check a label per row."""
        codes, count = check_codes(groups, "groups", len(y))
        if count < LEAST_FOR_JUDGING:
            raise InputError(
                "holds one cluster only, which cannot be on both sides of a split",
                argument="groups",
                remedy="pass a label per row that tells clusters apart, or leave it out if the rows are independent",
            )
        columns: list[npt.NDArray[Any]] = [row_kinds(y)]
        if weight is not None:
            columns.append(weight)
        return cls(codes, mixed_marks(_feature_marks(X, len(y))) ^ row_marks(columns, len(y)))

    @property
    def count(self) -> int:
        """How many clusters there are."""
        return int(self.codes.max()) + 1

    def take(self, positions: npt.NDArray[Any]) -> RowClusters:
        """Return what is there of the clusters in some of the rows."""
        return RowClusters(np.unique(self.codes[positions], return_inverse=True)[1], self.marks[positions])

    def drawn(self, split: float, generator: np.random.RandomState) -> tuple[IntArray, IntArray]:
        """Return the positions of the rows for fitting, and those of a share of the clusters, for judging."""
        judging = round(split * self.count)
        if judging < LEAST_FOR_JUDGING or judging == self.count:
            raise InputError(
                f"has {counted(self.count, 'cluster')}, and split={split!r} leaves {self.count - judging} for fitting "
                f"and {judging} for judging",
                argument="groups",
                remedy=f"fitting needs one at least, and judging {LEAST_FOR_JUDGING}",
            )
        is_judging = np.zeros(self.count, dtype=np.bool_)
        is_judging[self._order(generator)[:judging]] = True
        return np.flatnonzero(~is_judging[self.codes]), np.flatnonzero(is_judging[self.codes])

    def folds(self, parts: int, generator: np.random.RandomState) -> Folds:
        """Return parts of about as many clusters each, drawn at random."""
        if parts > self.count:
            raise InputError(
                f"is {parts}, and there are only {counted(self.count, 'cluster')} for fitting",
                argument="cv",
                value=parts,
                remedy=f"use cv={self.count} or less" if self.count > 1 else "collect more",
            )
        part = np.empty(self.count, dtype=np.int64)
        part[self._order(generator)] = np.arange(self.count) % parts
        place = part[self.codes]
        return [(np.flatnonzero(place != number), np.flatnonzero(place == number)) for number in range(parts)]

    def check_apart(self, others: npt.NDArray[Any], part: npt.NDArray[Any], number: int) -> None:
        """Refuse a part whose clusters have rows among those that fitted its model."""
        both = np.intersect1d(self.codes[others], self.codes[part])
        if both.size:
            row = int(part[np.isin(self.codes[part], both)][0])
            raise InputError(
                f"has row {row} forecast by a model that was fitted on other rows of its cluster, in part {number}",
                argument="cv",
                remedy="pass a number, or a splitter that keeps groups together, such as GroupKFold",
            )

    def _order(self, generator: np.random.RandomState) -> IntArray:
        return cluster_order(self.codes, self.marks, int(generator.randint(2**31 - 1)))


def _feature_marks(X: Any, rows: int) -> Marks:
    if not issparse(X):
        return row_marks(_columns(X, rows), rows)
    entries = X.tocsr(copy=True)
    entries.sum_duplicates()
    entries.eliminate_zeros()
    marks = row_marks((entries.indices, entries.data), entries.data.size)
    added: Marks = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(marks, dtype=np.uint64)])
    found: Marks = added[entries.indptr[1:]] - added[entries.indptr[:-1]]
    return found


def _columns(X: Any, rows: int) -> Iterator[npt.NDArray[Any]]:
    """Return the features as columns of numbers; what is no number gets its place in the order of all values."""
    try:
        array = np.asarray(X)
    except ValueError:  # rows of different lengths
        array = np.array([str(row) for row in X])
    for column in array.reshape(rows, -1).T:
        try:
            yield column.astype(np.float64)
        except (TypeError, ValueError):
            yield np.unique(column.astype(str), return_inverse=True)[1]
