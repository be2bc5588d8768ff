"""The Brier score, and how much of that of a constant forecast it saves, with limits."""

from __future__ import annotations

from typing import Literal, overload

import numpy as np

from calibrant.core.errors import UndefinedError
from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, ClassLabel, Randomness
from calibrant.measures.estimates import Estimate
from calibrant.measures.sampled import Limits, Sampled, by_resampling, estimated, sampled
from calibrant.rows.intake import RowsLike, as_tally
from calibrant.rows.tally import Tally

BrierInterval = Literal["normal", "bootstrap"]


@overload
def brier_score(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: None = None,
    interval: BrierInterval = "normal",
    cluster: ArrayLike | None = None,
    n_resamples: int = 1000,
    rng: Randomness = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> float: ...


@overload
def brier_score(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: float,
    interval: BrierInterval = "normal",
    cluster: ArrayLike | None = None,
    n_resamples: int = 1000,
    rng: Randomness = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> Estimate: ...


@frames_follow
def brier_score(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: float | None = None,
    interval: BrierInterval = "normal",
    cluster: ArrayLike | None = None,
    n_resamples: int = 1000,
    rng: Randomness = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> float | Estimate:
    """Brier score: the mean squared error of the forecasts, with limits.

    mean of (y - p)^2. Calibration and sharpness both lower it; 0 is perfect foresight, and a forecast of 50% for every
    row has 0.25.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `cutoff_calibration_error`.
    confidence_level : float, optional
        How often the limits are to hold the score of the population; without a level the number comes alone.
    interval : {"normal", "bootstrap"}
        "normal": by how much squared errors vary from row to row; approximate, for many rows. "bootstrap": percentiles
        over resamples.
    cluster : array-like of shape (n,), optional
        A cluster per row: limits then count clusters, with Student's quantiles.
    n_resamples, rng
        For "bootstrap": how many resamples, and the seed or generator they are drawn with.

    Returns
    -------
    float, or Estimate with a confidence level

    References
    ----------
    Brier (1950), Verification of forecasts expressed in terms of probability.

    Examples
    --------
    >>> brier_score([0, 1, 1, 1], [0.25, 0.5, 0.75, 1.0])
    0.09375
    >>> print(brier_score([0, 1, 0, 1, 1, 0], [0.25, 0.5, 0.25, 0.75, 1.0, 0.5], confidence_level=0.95))
    brier 0.1146 (95%: 0.0284 to 0.2007; normal)
    """
    if confidence_level is None and cluster is None:
        return _score(as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label))
    sample = sampled(y_true, y_prob, cluster=cluster, sample_weight=sample_weight, pos_label=pos_label)
    if confidence_level is None:
        return _score(sample.tally)
    ways = {
        "normal": _normal_score,
        "bootstrap": by_resampling("the Brier score", _score, n_resamples=n_resamples, rng=rng),
    }
    return estimated("brier", sample, _score, ways, interval=interval, confidence_level=confidence_level)


@overload
def scaled_brier_score(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: None = None,
    interval: BrierInterval = "normal",
    cluster: ArrayLike | None = None,
    n_resamples: int = 1000,
    rng: Randomness = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> float: ...


@overload
def scaled_brier_score(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: float,
    interval: BrierInterval = "normal",
    cluster: ArrayLike | None = None,
    n_resamples: int = 1000,
    rng: Randomness = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> Estimate: ...


@frames_follow
def scaled_brier_score(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: float | None = None,
    interval: BrierInterval = "normal",
    cluster: ArrayLike | None = None,
    n_resamples: int = 1000,
    rng: Randomness = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> float | Estimate:
    """Scaled Brier score: the share of a constant forecast's squared error that the forecasts save, with limits.

    1 - mean of (y - p)^2 / mean of (y - event rate)^2, the Brier skill score against the event rate of these rows (the
    index of prediction accuracy). 1 is perfect foresight, 0 no better than telling everyone the event rate, below 0
    worse than that.

    Parameters
    ----------
    y_true, y_prob, confidence_level, interval, cluster, n_resamples, rng, sample_weight, pos_label
        As in `brier_score`.

    Returns
    -------
    float, or Estimate with a confidence level

    References
    ----------
    Steyerberg et al. (2010), Assessing the performance of prediction models; Kattan, Gerds (2018), The index of
    prediction accuracy.

    Examples
    --------
    >>> scaled_brier_score([0, 1, 1, 1], [0.25, 0.5, 0.75, 1.0])
    0.5
    """
    if confidence_level is None and cluster is None:
        return _scaled(as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label))
    sample = sampled(y_true, y_prob, cluster=cluster, sample_weight=sample_weight, pos_label=pos_label)
    if confidence_level is None:
        return _scaled(sample.tally)
    ways = {
        "normal": _normal_scaled,
        "bootstrap": by_resampling("the scaled Brier score", _scaled, n_resamples=n_resamples, rng=rng),
    }
    return estimated("brier_scaled", sample, _scaled, ways, interval=interval, confidence_level=confidence_level)


def _score(tally: Tally) -> float:
    return float(tally.residual_square.sum()) / tally.weight_total


def _of_constant(tally: Tally) -> float:
    """Return the Brier score of the event rate for every row: the variance of the outcomes."""
    rate = tally.outcome_total / tally.weight_total
    if tally.binary_outcomes:
        return rate * (1.0 - rate)
    apart = tally.forecast - rate
    square = tally.residual_square + apart * (2.0 * tally.residual + apart * tally.weight)
    return float(square.sum()) / tally.weight_total


def _scaled(tally: Tally) -> float:
    constant = _of_constant(tally)
    if constant <= 0.0:
        raise UndefinedError(
            "every outcome is the same, so that a constant forecast has no error to save",
            remedy="the scaled Brier score needs outcomes that differ",
        )
    return 1.0 - _score(tally) / constant


def _normal_score(sample: Sampled, score: float, level: float) -> Limits:
    rows = sample.rows
    reach = sample.quantile(level) * sample.error(np.square(rows.y_true - rows.y_prob))
    return Limits(max(score - reach, 0.0), min(score + reach, 1.0), "normal")


def _normal_scaled(sample: Sampled, scaled: float, level: float) -> Limits:
    rows, constant = sample.rows, _of_constant(sample.tally)
    rate = sample.tally.outcome_total / sample.tally.weight_total
    influence = ((1.0 - scaled) * np.square(rows.y_true - rate) - np.square(rows.y_true - rows.y_prob)) / constant
    reach = sample.quantile(level) * sample.error(influence)
    return Limits(scaled - reach, min(scaled + reach, 1.0), "normal")
