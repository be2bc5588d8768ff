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
from calibrant.rows.class_names import name_classes
from calibrant.rows.classes import ClassRows, check_classes_of
from calibrant.rows.labels import listed_labels
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
    columns : the names of the columns of a frame, or None
    """

    value: FloatArray
    outcome: npt.NDArray[Any]
    weight: FloatArray | None
    classes: tuple[Any, ...]
    columns: tuple[Any, ...] | None = None

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


def check_class_matrix(values: Any, *, scores: bool, multilabel: bool, count: int | None = None) -> FloatArray:
    """Check probabilities or scores with one column per class, of which there are so many."""
    if scores:
        if not has_columns(values):
            raise InputError(
                f"has shape {shape_of(values)}", argument="y_prob", remedy="pass a column of scores for every class"
            )
        columns = np.asarray(values).T
        _check_count(len(columns), count)
        return np.ascontiguousarray(np.stack([check_scores(column) for column in columns], axis=1))
    matrix = check_matrix(values, "y_prob")
    _check_count(matrix.shape[1], count)
    if not multilabel:
        check_sums(matrix)
    return np.ascontiguousarray(matrix, dtype=np.float64)


def _check_count(found: int, count: int | None) -> None:
    if count is not None and found != count:
        raise InputError(
            f"has {found} columns, and the recalibrator was fitted to {count} classes",
            argument="y_prob",
            remedy="pass one column per class, in the order of classes_",
        )


def fitted_order(
    values: Any, classes: tuple[Any, ...], columns: tuple[Any, ...] | None, *, stated: bool
) -> list[int] | None:
    """Return where the columns of the fit are in a frame, by their names; None where names say nothing.

    Parameters
    ----------
    values : array-like
        Forecasts to come.
    classes : tuple
        The labels of the fit, in the order of its columns.
    columns : tuple, optional
        The names of its columns, if it had any.
    stated : bool
        Whether somebody stated the labels by the places of the columns, so that names need not be theirs.
    """
    names = column_names(values)
    if names is None:
        return None
    known = [each for each in (columns, classes) if each is not None]
    for wanted in known:
        for found, asked in ((names, list(wanted)), (list(map(str, names)), list(map(str, wanted)))):
            if len(found) == len(asked) == len(set(found)) and set(found) == set(asked):
                return [found.index(each) for each in asked]
    if columns is None:
        try:
            found = list(name_classes(list(map(str, names)), classes).classes)
            return [found.index(each) for each in classes] if len(found) == len(classes) else None
        except (InputError, ValueError):  # no beginning that all names share leaves the labels
            if stated and not {*map(str, names)} & {*map(str, classes)}:
                return None
    wanted = known[0]
    absent = [each for each in wanted if str(each) not in {*map(str, names)}]
    unknown = [each for each in names if str(each) not in {*map(str, wanted)}]
    said = [f"has no column {listed_labels(absent)}"] * bool(absent)
    said += [f"has {listed_labels(unknown)}, to which it was not fitted"] * bool(unknown)
    raise InputError(
        " and ".join(said or ["has a name twice"]),
        argument="y_prob",
        value=str((absent or unknown or names)[0]),
        remedy="name columns as in the fit, or after the labels in classes_; or pass an array in the order of classes_",
    )


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
    columns = _kept_names(y_prob)
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
        return FitRows(value, outcome, weight, names, columns)
    check_same_index(y_prob=y_prob, y_true=y_true, sample_weight=sample_weight)
    # Scores need not add up to anything; labels and weights are checked beside probabilities that say nothing.
    forecasts = np.broadcast_to(1.0 / value.shape[1], value.shape) if scores else value
    rows = check_classes_of(y_true, forecasts, classes=classes, sample_weight=sample_weight)
    return FitRows(value, rows.places, rows.sample_weight, rows.classes, columns)


def _kept_names(values: Any) -> tuple[Any, ...] | None:
    """Return the names of a frame's columns, if they are words or whole numbers and tell the columns apart."""
    names = column_names(values)
    if names is None or len(set(names)) < len(names):
        return None
    plain = tuple(map(plain_label, names))
    return plain if all(isinstance(name, (str, int)) for name in plain) else None


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
