"""Two actions and several classes are one question with outcomes in [0, 1]: all about thresholds applies to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.types import ArrayLike, FloatArray
from calibrant.decisions.declared import LossesLike, as_losses, class_rows
from calibrant.rows.actions import TIE


class TwoActionQuestion(NamedTuple):
    """What the choice between two actions asks of forecasts of several classes.

    Attributes
    ----------
    y_true, y_prob : array of shape (n,)
        What acting was worth, from 0 (least) to 1 (most), and what it was worth in expectation under the forecast.
    threshold : float
        Acting pays from this expectation up.
    unit : float
        What 1 stands for, in units of the losses: a saving at the threshold, times this, is one in losses.
    """

    y_true: FloatArray
    y_prob: FloatArray
    threshold: float
    unit: float


def two_action_question(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    losses: LossesLike,
    *,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> TwoActionQuestion:
    """Return the one question with outcomes in [0, 1] that a choice between two actions asks of several classes.

    With d the loss of not acting minus that of acting in each class, u = (d - lo) / (hi - lo) is what acting is worth:
    the outcome is u of the class that came up, the forecast its mean under the probabilities, the threshold
    -lo / (hi - lo). Rules that act from some forecast up save at most (hi - lo) times the Cutoff error, monotone ones
    twice that, and (hi - lo) times the risk gap at the threshold is what the best of the former save.

    Parameters
    ----------
    y_true, y_prob, classes
        As in `certify_decisions`.
    losses : array-like of shape (2, K), data frame or LossTable
        The losses of acting in the first line, those of not acting in the second.
    sample_weight : array-like of shape (n,), optional
        Checked with the rows; pass it on beside the question.

    Returns
    -------
    TwoActionQuestion
        Outcomes and forecasts in [0, 1], the threshold, and what 1 stands for in units of the losses.

    References
    ----------
    This project's (docs/theory/decisions.md).

    Examples
    --------
    >>> weather, chance = [0, 2, 1, 2], [[0.6, 0.3, 0.1], [0.1, 0.2, 0.7], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]]
    >>> question = two_action_question(weather, chance, [[1, 1, 1], [0, 2, 5]])  # take an umbrella, or do not
    >>> question.threshold, question.unit
    (0.2, 5.0)
    >>> question.y_true, question.y_prob.round(2)
    (array([0. , 1. , 0.4, 1. ]), array([0.22, 0.78, 0.44, 0.52]))
    """
    rows = class_rows(y_true, y_prob, classes, sample_weight)
    table = as_losses(losses, rows.classes).array()
    if len(table) != 2:
        raise InputError(
            f"has {len(table)} actions where two are needed",
            argument="losses",
            value=len(table),
            remedy="pass the losses of acting and of not acting, or ask certify_decisions about all actions",
        )
    difference = table[1] - table[0]
    low, high = float(difference.min()), float(difference.max())
    if not low < 0.0 < high:
        raise InputError(
            "has an action that is at least as good in every class, so that no forecast is needed",
            argument="losses",
            remedy="pass two actions of which each is the better one in some class",
        )
    unit = high - low
    worth, at = (difference - low) / unit, -low / unit
    forecast = np.clip(rows.y_prob @ worth / rows.y_prob.sum(axis=1, dtype=np.float64), 0.0, 1.0)
    forecast[np.abs(forecast - at) <= TIE] = at
    return TwoActionQuestion(worth[rows.places], forecast, at, unit)
