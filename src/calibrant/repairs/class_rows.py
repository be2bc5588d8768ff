"""Rows of several classes, as recalibrators take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.types import FloatArray, IntArray
from calibrant.rows.checks import check_same_index, check_scores, check_weights, plain_label
from calibrant.rows.classes import ClassRows, check_classes_of
from calibrant.rows.matrices import check_indicators, check_matrix, check_sums, column_names, has_columns, shape_of


@dataclass(frozen=True, eq=False)
class FitRows:
    """Checked rows of several classes: what maps are fitted to.

    Attributes
    ----------
    value : probabilities or scores, one column per class
    outcome : the number of the class of each row; or, for several labels a row, outcomes with a column per label
    weight : of each row, or None for ones
    classes : the labels, in the order of the columns
    """

    value: FloatArray
    outcome: npt.NDArray[Any]
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

    @property
    def places(self) -> IntArray:
        """The number of the class of each row."""
        return self.outcome.astype(np.int64)

    def happened(self, number: int) -> npt.NDArray[Any]:
        """Return for each row whether it is of the class at this place, or the outcome of a label."""
        return np.asarray(self.outcome[:, number] if self.outcome.ndim == 2 else self.outcome == number)

    def asked(self, forecast: FloatArray) -> ClassRows:
        """Return other probabilities for the same rows, of which questions can be asked."""
        return ClassRows(forecast, self.classes, self.places, self.weight, named=True)


def check_class_matrix(values: Any, *, scores: bool, multilabel: bool) -> FloatArray:
    """Check probabilities or scores with one column per class."""
    if scores:
        if not has_columns(values):
            raise InputError(
                f"has shape {shape_of(values)}", argument="y_prob", remedy="pass a column of scores for every class"
            )
        columns = np.asarray(values).T
        return np.ascontiguousarray(np.stack([check_scores(column) for column in columns], axis=1))
    matrix = check_matrix(values, "y_prob")
    if not multilabel:
        check_sums(matrix)
    return np.ascontiguousarray(matrix, dtype=np.float64)


def check_class_rows(
    y_prob: Any,
    y_true: Any,
    *,
    classes: Sequence[Any] | None,
    sample_weight: Any,
    scores: bool,
    multilabel: bool,
) -> FitRows:
    """Check probabilities or scores of several classes, labels and weights together."""
    value = check_class_matrix(y_prob, scores=scores, multilabel=multilabel)
    if classes is None:
        classes = column_names(y_prob)
    if multilabel:
        outcome = check_indicators(y_true, value.shape)
        weight = check_weights(sample_weight, len(value))
        check_same_index(y_prob=y_prob, y_true=y_true, sample_weight=sample_weight)
        names = tuple(range(value.shape[1]) if classes is None else map(plain_label, classes))
        if len(names) != value.shape[1] or len(set(names)) < len(names):
            raise InputError(
                f"is {names!r}, and y_prob has {value.shape[1]} columns",
                argument="classes",
                remedy="pass one label per column, each of them once",
            )
        return FitRows(value, outcome, weight, names)
    check_same_index(y_prob=y_prob, y_true=y_true, sample_weight=sample_weight)
    # Scores need not add up to anything; labels and weights are checked beside probabilities that say nothing.
    forecasts = np.broadcast_to(1.0 / value.shape[1], value.shape) if scores else value
    rows = check_classes_of(y_true, forecasts, classes=classes, sample_weight=sample_weight)
    return FitRows(value, rows.places, rows.sample_weight, rows.classes)


def top_places(value: FloatArray, classes: Sequence[Any]) -> IntArray:
    """Return the column of the largest value of each row; of equal ones that of the label that sorts first."""
    none = np.zeros(len(value), dtype=np.int64)
    return ClassRows(value, tuple(classes), none, None, named=True).top


def tie_order(classes: Sequence[Any]) -> list[int]:
    """Return for each class its turn among equal ones: the top label is the one with the lowest."""
    left, turns = np.ones((1, len(classes))), [0] * len(classes)
    for turn in range(len(classes)):
        place = int(top_places(left, classes)[0])
        turns[place], left[0, place] = turn, 0.0
    return turns
