"""Scorers of scikit-learn: calibration errors by name, wherever ``scoring=`` is taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from calibrant.adapters.options import check_options
from calibrant.core.errors import InputError
from calibrant.core.types import ArrayLike, ClassLabel
from calibrant.measures.expected import expected_calibration_error
from calibrant.measures.judged import judged_measure
from calibrant.measures.weighted import (
    bounded_variation_calibration_error,
    cutoff_calibration_error,
    ks_calibration_error,
    smooth_calibration_error,
)
from calibrant.rows.checks import check_choice
from calibrant.rows.intake import as_tally


def largest_risk_gap(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    threshold: float | tuple[float, float] | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> float:
    """Return the most that re-drawing the line between acting and not acting would have saved per row."""
    measure = judged_measure("risk_gap", 2.0, threshold, None, None)
    return measure.estimate(as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label))


_ERRORS: Mapping[str, Callable[..., float]] = {
    "neg_cutoff_calibration_error": cutoff_calibration_error,
    "neg_smooth_calibration_error": smooth_calibration_error,
    "neg_bounded_variation_calibration_error": bounded_variation_calibration_error,
    "neg_ks_calibration_error": ks_calibration_error,
    "neg_expected_calibration_error": expected_calibration_error,
    "neg_risk_gap": largest_risk_gap,
}

_DEFAULTS: Mapping[str, dict[str, Any]] = {"neg_expected_calibration_error": {"n_bins": 15}}
"""Forecasts of classifiers hardly repeat, and without bins the expected calibration error of those is noise."""


def scorer_names() -> list[str]:
    """Return the names that `get_scorer` knows; "neg" because scikit-learn takes the largest score for the best.

    Returns
    -------
    list of str
        The names, sorted.

    Examples
    --------
    >>> scorer_names()[:2]
    ['neg_bounded_variation_calibration_error', 'neg_cutoff_calibration_error']
    """
    return sorted(_ERRORS)


def get_scorer(name: str, **options: Any) -> Any:
    """Return a scorer for ``scoring=``: minus a calibration error of ``predict_proba``.

    For `cross_validate`, `GridSearchCV` and the like; several go in as a dict. A calibration error alone is no goal to
    select models by, because a forecaster that always says the base rate has almost none: rank models by a score that
    rewards discrimination too, such as ``"neg_brier_score"``, and look at the calibration error beside it.

    Parameters
    ----------
    name : str
        One of `scorer_names`.
    **options
        Those of the error: ``pos_label``, the event of two classes, by default the second of the estimator's
        ``classes_``; ``n_bins`` (15 if left out) and ``strategy`` of the expected calibration error, ``variation`` of
        the bounded-variation one, ``threshold`` of the risk gap. The Cutoff and the expected calibration error take
        several classes, with ``questions``. What the columns are is asked of the estimator, so that labels may be of
        any kind and a fold need not have all of them; ``classes`` names them, in any order, where some rows to fit may
        lack one, which is then forecast with probability 0.

    Returns
    -------
    scorer
        As `sklearn.metrics.make_scorer` makes them: called with an estimator, features and labels, and
        ``sample_weight``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> cross_val_score(GaussianNB(), X, y, scoring=get_scorer("neg_cutoff_calibration_error")).round(3)
    array([-0.037, -0.07 , -0.035, -0.035, -0.025])
    """
    from calibrant.adapters.scorers import CalibrationScorer

    check_choice(name, "name", tuple(scorer_names()))
    error = _ERRORS[name]
    options = {**_DEFAULTS.get(name, {}), **options}
    check_options(f"get_scorer({name!r})", error, options, taken=["sample_weight"])  # folds have their own
    _try_options(error, options)
    return CalibrationScorer(error, -1, options, "predict_proba")


def _try_options(error: Callable[..., float], options: Mapping[str, Any]) -> None:
    """Measure a few rows of no interest, or scikit-learn would turn what is wrong with the options into NaN."""
    of_rows = {"pos_label", "questions", "classes", "multilabel"}
    plain = {name: value for name, value in options.items() if name not in of_rows}
    error([0, 1], [0.25, 0.75], **plain)
    asked = {name: options[name] for name in ("questions", "multilabel") if options.get(name) is not None}
    named = options.get("classes")
    if named is not None and np.ndim(named) != 1:
        raise InputError(
            f"is {named!r}, not an array", argument="classes", value=named, remedy="pass the labels of all classes"
        )
    labels = list(range(3)) if named is None else list(named)
    if len(set(labels)) < max(2, len(labels)):
        raise InputError(
            f"is {labels!r}", argument="classes", value=labels, remedy="pass at least two labels, each of them once"
        )
    count = len(labels)
    if asked or (named is not None and count > 2):  # two classes of which nothing is asked are an event
        y_true = np.eye(count, dtype=int) if asked.get("multilabel") is True else labels
        error(y_true, np.full((count, count), 1.0 / count), classes=labels, **asked, **plain)
