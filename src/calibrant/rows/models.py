"""Forecasts of the event, from any binary classifier in the manner of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from calibrant.core.errors import InputError
from calibrant.core.types import ClassLabel, FloatArray
from calibrant.rows.checks import check_labels, check_same_index


def check_classes(y: Any) -> npt.NDArray[Any]:
    """Return labels of at most two classes, in one dimension."""
    labels = column_or_1d(y, warn=True)
    distinct, _ = check_labels(labels, "y", len(labels))
    check_classification_targets(labels)
    if len(distinct) > 2:
        raise InputError(
            f"Only binary classification is supported. The type of the target is multiclass: y has {len(distinct)} "
            "classes",
            remedy=f"judge one of them at a time, as in y == {distinct[0]!r}",
        )
    return np.asarray(labels)


def two_classes(model: Any, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the classes of a fitted model, after making sure that they are two and cover the labels."""
    name = type(model).__name__
    if not hasattr(model, "classes_"):
        raise InputError(f"{name} has no classes_ after fitting", remedy="pass a classifier")
    classes = np.asarray(model.classes_)
    if classes.shape != (2,):
        raise InputError(f"{name} was fitted to {len(classes)} classes", remedy="calibration here is about two")
    unknown = [label for label in np.unique(y).tolist() if label not in classes.tolist()]
    if unknown:
        raise InputError(
            f"y holds {unknown[0]!r}, which {name} was not fitted to", remedy=f"its classes are {classes.tolist()}"
        )
    return classes


def event_forecasts(model: Any, X: Any, y: Any, pos_label: ClassLabel | None = None) -> tuple[FloatArray, Any]:
    """Return the forecasts of the class that counts as the event, the second one unless named, and that class."""
    check_same_index(X=X, y=y)
    classes = two_classes(model, y).tolist()
    event = classes[1] if pos_label is None else pos_label
    if event not in classes:
        raise InputError(
            f"is {event!r}, which is not a class of the estimator",
            argument="pos_label",
            value=event,
            remedy=f"its classes are {classes}",
        )
    return forecasts_of(model, X)[:, classes.index(event)], event


def event_outcomes(y: Any, event: Any) -> npt.NDArray[np.bool_]:
    """Return for each row whether it is of the class that counts as the event: y may lack it, the model knows it."""
    labels = check_classes(y)
    return np.asarray(labels == event)


def probabilities_of(model: Any, X: Any) -> Any:
    """Return what a model that forecasts probabilities makes of rows, as it comes."""
    # Asked after fitting: some models know only then.
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"{type(model).__name__} has no predict_proba, and only probabilities can be calibrated",
            remedy="choose options with which it has, or wrap it in RecalibratedClassifier",
        )
    return model.predict_proba(X)


def forecasts_of(model: Any, X: Any) -> FloatArray:
    """Return the probabilities of both classes."""
    forecasts = np.asarray(probabilities_of(model, X))
    if forecasts.ndim != 2 or forecasts.shape[1] != 2:
        raise InputError(
            f"{type(model).__name__}.predict_proba returned shape {forecasts.shape}",
            remedy="one column per class is needed",
        )
    return forecasts


def take(values: Any, positions: npt.NDArray[Any]) -> Any:
    """Return the rows at the given positions of a frame, a table, an array, a sparse matrix or a list."""
    if hasattr(values, "iloc"):
        return values.iloc[positions]
    if type(values).__module__.partition(".")[0] == "pyarrow":
        return values.take(positions)
    return values[positions] if hasattr(values, "shape") else [values[position] for position in positions]


def response_of(model: Any, X: Any, response_method: str) -> FloatArray:
    """Return the probability, or the score, of the second class."""
    if response_method == "predict_proba":
        return forecasts_of(model, X)[:, 1]
    scores = np.asarray(model.decision_function(X))
    if scores.ndim != 1:
        raise InputError(
            f"{type(model).__name__}.decision_function returned shape {scores.shape}",
            remedy="one score per row is needed",
        )
    return scores
