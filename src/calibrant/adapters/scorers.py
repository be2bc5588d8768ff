"""The scorer behind `get_scorer`: one of scikit-learn's, which asks the estimator what its columns are."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import make_scorer

from calibrant.core.errors import InputError
from calibrant.measures.weighted import cutoff_calibration_error
from calibrant.rows.asked import event_question
from calibrant.rows.checks import plain_label

if TYPE_CHECKING:

    class _Scorer:
        """What is used of it here."""

        def __init__(self, score_func: Any, sign: int, kwargs: dict[str, Any], response_method: str) -> None:
            self._score_func, self._sign = score_func, sign
            self._kwargs, self._response_method = kwargs, response_method

        def _score(self, method_caller: Any, estimator: Any, X: Any, y_true: Any, **kwargs: Any) -> float: ...

else:  # by what scikit-learn makes, because the class itself has no public name
    _Scorer = type(make_scorer(cutoff_calibration_error, response_method="predict_proba"))


class CalibrationScorer(_Scorer):
    """Minus a calibration error of ``predict_proba``, whose columns are the ``classes_`` of the estimator.

    The rows of a fold need not have all classes, and labels may be of any kind. Where nobody named the event of a
    binary classifier it is the second of its classes, as in scikit-learn.
    """

    def _score(self, method_caller: Any, estimator: Any, X: Any, y_true: Any, **given: Any) -> float:
        """Score one fold; scikit-learn calls it, for a scorer alone and for several at once."""
        options = {**self._kwargs, **given}
        if options.get("multilabel") or not hasattr(estimator, "classes_"):
            return float(super()._score(method_caller, estimator, X, y_true, **given))
        # Not through method_caller: what it keeps for several scorers forgets whose probabilities they are, so that
        # scorers with different pos_label would all get those of the first.
        probabilities = estimator.predict_proba(X)
        if isinstance(probabilities, list):
            raise InputError(
                "forecasts several labels of each row",
                argument="estimator",
                remedy="pass multilabel=True to get_scorer",
            )
        known, forecast = list(estimator.classes_), np.asarray(probabilities)
        fitted = known
        named = options.get("classes")
        if named is not None:
            known, forecast = _as_named(list(named), known, forecast)
        if len(known) < 2:
            raise InputError(
                f"was fitted to rows of one class, {plain_label(known[0])!r}",
                argument="estimator",
                remedy="split rows so that every part has all classes, as StratifiedKFold does",
            )
        if len(known) == 2 and options.get("questions") is None:
            pos_label = options.pop("pos_label", None)
            if pos_label is None:
                pos_label = (fitted if len(fitted) == 2 else known)[1]
            options.pop("classes", None)
            (rows,) = event_question(y_true, forecast, classes=known, pos_label=pos_label)
            return float(self._sign * self._score_func(rows.y_true, rows.y_prob, **options))
        if "classes" not in signature(self._score_func).parameters:
            raise InputError(
                f"forecasts {len(known)} classes, and this scorer is about one event",
                argument="estimator",
                remedy="use neg_cutoff_calibration_error or neg_expected_calibration_error, which take several",
            )
        options["classes"] = known
        return float(self._sign * self._score_func(y_true, forecast, **options))


def _as_named(named: list[Any], known: list[Any], forecast: Any) -> tuple[list[Any], Any]:
    """Return columns for the classes that somebody named, in their order; one that was not fitted is never forecast."""
    missing = [label for label in known if label not in named]
    if missing:
        raise InputError(
            f"leaves out {plain_label(missing[0])!r}, a class of the estimator",
            argument="classes",
            value=missing[0],
            remedy="name all classes, in any order",
        )
    columns = np.zeros((len(forecast), len(named)))
    columns[:, [named.index(label) for label in known]] = forecast
    return named, columns
