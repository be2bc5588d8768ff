"""What a classifier is asked to forecast: one of two classes, one of several, or any number of labels.

Two classes are forecasts of one event, the second class, as everywhere. Of more classes, and of several labels a row,
there is a column each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from calibrant.core.errors import InputError
from calibrant.core.types import FloatArray, IntArray
from calibrant.rows.checks import check_labels
from calibrant.rows.models import probabilities_of, response_of

Labels = npt.NDArray[Any]


def read_targets(y: Any) -> Labels:
    """Return labels in one dimension, or several labels a row as an array of 0 and 1 with a column each."""
    if issparse(y):
        y = y.toarray()
    shape = np.asarray(y).shape
    if len(shape) == 2 and shape[1] > 1:
        found = np.asarray(y)
        kind = type_of_target(found, input_name="y")
        if kind != "multilabel-indicator":
            raise InputError(
                f"has shape {found.shape} and holds more than 0 and 1 (to scikit-learn it is {kind})",
                argument="y",
                remedy="pass one label per row, or a column of 0 and 1 for every label",
            )
        return found.astype(np.int64)
    labels = column_or_1d(y, warn=True)
    check_labels(labels, "y", len(labels))
    check_classification_targets(labels)
    return np.asarray(labels)


@dataclass(frozen=True, eq=False)
class Targets(ABC):
    """What a fitted model forecasts.

    Attributes
    ----------
    classes : array
        The classes, or the numbers of the labels.
    """

    classes: Labels

    is_event: ClassVar[bool] = False
    multilabel: ClassVar[bool] = False

    @property
    def count(self) -> int:
        """How many columns forecasts have."""
        return int(self.classes.size)

    @abstractmethod
    def forecasts(self, model: Any, X: Any) -> FloatArray:
        """Return a column of probabilities for every class or label."""

    @abstractmethod
    def response(self, model: Any, X: Any, response_method: str) -> FloatArray:
        """Return what a recalibrator reads: probabilities or scores."""

    @abstractmethod
    def shares(self, y: Labels, weight: FloatArray | None) -> FloatArray:
        """Return how often every class or label happened."""

    @abstractmethod
    def chosen(self, forecasts: FloatArray) -> Labels:
        """Return what forecasts make of a row: the most probable class, or the labels that are likelier than not."""

    @abstractmethod
    def check_part(self, model: Any, number: int) -> None:
        """Refuse a model of some of the rows that does not know every class."""


class Classes(Targets):
    """Several classes, one of which each row is of; two of them, where a column each is wanted."""

    def forecasts(self, model: Any, X: Any) -> FloatArray:
        """Return a column of probabilities for every class or label."""
        return _matrix(probabilities_of(model, X), self.count, model, "predict_proba", "one column per class is needed")

    def response(self, model: Any, X: Any, response_method: str) -> FloatArray:
        """Return what a recalibrator reads: probabilities or scores."""
        if response_method == "predict_proba":
            return self.forecasts(model, X)
        scores = np.asarray(model.decision_function(X))
        if scores.ndim == 1 and self.count == 2:
            scores = np.stack([-scores, scores], axis=1)
        return _matrix(scores, self.count, model, "decision_function", "one score per class is needed")

    def shares(self, y: Labels, weight: FloatArray | None) -> FloatArray:
        """Return how often every class or label happened."""
        counts = np.array([np.average(y == label, weights=weight) for label in self.classes.tolist()])
        return np.asarray(counts / counts.sum(), dtype=np.float64)

    def chosen(self, forecasts: FloatArray) -> Labels:
        """Return what forecasts make of a row."""
        return np.asarray(self.classes[forecasts.argmax(axis=1)])

    def check_part(self, model: Any, number: int) -> None:
        """Refuse a model of some of the rows that does not know every class."""
        missing = [label for label in self.classes.tolist() if label not in np.asarray(model.classes_).tolist()]
        if missing:
            raise InputError(
                f"leaves no row of class {missing[0]!r} for fitting the model of part {number}",
                argument="cv",
                remedy="use fewer parts or a splitter that keeps shares of classes, or collect rows of it",
            )


class Event(Classes):
    """Two classes, of which the second counts as the event."""

    is_event = True

    def response(self, model: Any, X: Any, response_method: str) -> FloatArray:
        """Return what a recalibrator reads: probabilities or scores."""
        return response_of(model, X, response_method)

    def check_part(self, model: Any, number: int) -> None:
        """Leave it to whoever looked at the rows."""


class SeveralLabels(Targets):
    """Labels of which a row may have any number."""

    multilabel = True

    def forecasts(self, model: Any, X: Any) -> FloatArray:
        """Return a column of probabilities for every class or label."""
        found = probabilities_of(model, X)
        if isinstance(found, list):  # of an array for every label, with a column for no and one for yes
            found = np.stack([_likelihood(model, k, np.asarray(each)) for k, each in enumerate(found)], axis=1)
        return _matrix(found, self.count, model, "predict_proba", "one column per label is needed")

    def response(self, model: Any, X: Any, response_method: str) -> FloatArray:
        """Return what a recalibrator reads: probabilities or scores."""
        if response_method == "predict_proba":
            return self.forecasts(model, X)
        scores = np.asarray(model.decision_function(X))
        return _matrix(scores, self.count, model, "decision_function", "one score per label is needed")

    def shares(self, y: Labels, weight: FloatArray | None) -> FloatArray:
        """Return how often every class or label happened."""
        return np.asarray(np.average(y, axis=0, weights=weight), dtype=np.float64)

    def chosen(self, forecasts: FloatArray) -> Labels:
        """Return the labels that are likelier than not."""
        return (forecasts > 0.5).astype(np.int64)

    def check_part(self, model: Any, number: int) -> None:
        """Let it pass: a label may be on all rows, or on none."""


def targets_of(model: Any, y: Labels, *, as_columns: bool = False) -> Targets:
    """Return what a fitted model forecasts, after making sure that it knows every label of the rows."""
    if y.ndim == 2:
        return SeveralLabels(np.arange(y.shape[1]))
    name = type(model).__name__
    if not hasattr(model, "classes_"):
        raise InputError(f"{name} has no classes_ after fitting", remedy="pass a classifier")
    classes = np.asarray(model.classes_)
    if classes.ndim != 1 or classes.size < 2:
        raise InputError(f"{name} has classes_ of shape {classes.shape}", remedy="two classes are needed at least")
    unknown = [label for label in np.unique(y).tolist() if label not in classes.tolist()]
    if unknown:
        raise InputError(
            f"y holds {unknown[0]!r}, which {name} was not fitted to", remedy=f"its classes are {classes.tolist()}"
        )
    return Event(classes) if classes.size == 2 and not as_columns else Classes(classes)


def row_kinds(y: Labels) -> IntArray:
    """Return a number per row that its label, or its labels, decide."""
    axis = None if y.ndim == 1 else 0
    return np.unique(y, axis=axis, return_inverse=True)[1].reshape(-1)


def _matrix(values: Any, count: int, model: Any, method: str, remedy: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != count:
        raise InputError(f"{type(model).__name__}.{method} returned shape {array.shape}", remedy=remedy)
    return array


def _likelihood(model: Any, label: int, forecasts: FloatArray) -> FloatArray:
    """Return the probability of one label; of one that never differed on the fitting rows the model has one column."""
    if forecasts.ndim == 2 and forecasts.shape[1] == 2:
        return np.asarray(forecasts[:, 1], dtype=np.float64)
    if forecasts.ndim == 2 and forecasts.shape[1] == 1 and hasattr(model, "classes_"):
        return np.asarray(forecasts[:, 0] * float(np.asarray(model.classes_[label])[0]), dtype=np.float64)
    raise InputError(
        f"{type(model).__name__}.predict_proba returned shape {forecasts.shape} for label {label}",
        remedy="a column for no and one for yes are needed",
    )
