"""Rows of several classes, as recalibrators take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.types import FloatArray, IntArray
from calibrant.rows.checks import check_same_index, check_weights

SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Checked rows of several classes: what maps are fitted to.

    Attributes
    ----------
    value : probabilities or scores, one column per class
    outcome : the number of the class of each row; or, for several labels a row, an array of booleans with their columns
    weight : of each row, or None for ones
    classes : the labels, in the order of the columns
    """

    value: FloatArray
    outcome: IntArray | npt.NDArray[np.bool_]
    weight: FloatArray | None
    classes: tuple[Any, ...]

    @property
    def size(self) -> int:
        """How many rows count."""
        return len(self.value) if self.weight is None else int(np.count_nonzero(self.weight))

    @property
    def weighted(self) -> bool:
        """Whether some row counts more or less than another."""
        return self.weight is not None and bool((self.weight[self.weight > 0.0] != 1.0).any())

    def happened(self, number: int) -> npt.NDArray[np.bool_]:
        """Return for each row whether it is of the class at this place."""
        column = self.outcome[:, number] if self.outcome.ndim == 2 else self.outcome == number
        return np.asarray(column, dtype=bool)


def check_class_matrix(values: Any, *, scores: bool, multilabel: bool) -> FloatArray:
    matrix = np.ascontiguousarray(values, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        raise InputError(f"has shape {matrix.shape}", argument="y_prob", remedy="one column per class is needed")
    if not np.isfinite(matrix).all() or (not scores and ((matrix < 0.0) | (matrix > 1.0)).any()):
        raise InputError("holds values that are no probabilities", argument="y_prob")
    if not scores and not multilabel and (np.abs(matrix.sum(axis=1) - 1.0) > SUM_TOLERANCE).any():
        raise InputError("holds rows that do not sum to 1", argument="y_prob")
    return matrix


def check_class_rows(
    y_prob: Any,
    y_true: Any,
    *,
    classes: Sequence[Any] | None,
    sample_weight: Any,
    scores: bool,
    multilabel: bool,
) -> ClassRows:
    """Check probabilities or scores of several classes, labels and weights together."""
    value = check_class_matrix(y_prob, scores=scores, multilabel=multilabel)
    check_same_index(y_prob=y_prob, y_true=y_true, sample_weight=sample_weight)
    weight = check_weights(sample_weight, len(value))
    labels = np.asarray(y_true)
    if multilabel:
        return ClassRows(value, labels.astype(bool), weight, tuple(range(value.shape[1])) if classes is None else tuple(classes))
    known = np.unique(labels) if classes is None else np.asarray(classes)
    order = np.argsort(known)
    codes = order[np.searchsorted(known[order], labels)]
    return ClassRows(value, codes.astype(np.int64), weight, tuple(known.tolist()))
