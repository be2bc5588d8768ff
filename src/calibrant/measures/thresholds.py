"""Forecasts of a real outcome: calibration at every threshold.

A forecast is a distribution function F for each row. At a threshold t it says how probable it is that the outcome Z is
at most t, so that (1{Z <= t}, F(t)) is a column of outcomes and probabilities like any other; the threshold calibration
error is the largest Cutoff calibration error of these columns. Why that is right stands in
docs/theory/distributions.md.

.. [1] Henzi, Ziegel, Gneiting (2021), Isotonic distributional regression, JRSS B 83.
.. [2] Gneiting, Resin (2023), Regression diagnostics meets forecast evaluation, Electronic Journal of Statistics 17.
"""

from __future__ import annotations

import numpy as np

from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, FloatArray
from calibrant.measures.results import WorstInterval
from calibrant.measures.threshold_results import ThresholdCalibration, members_note, quantiles_note
from calibrant.measures.weighted import find_worst_interval
from calibrant.rows.distributions import (
    DistributionFunction,
    Distributions,
    Quantiles,
    ThresholdsLike,
    check_distributions,
)
from calibrant.rows.refinement import TOLERANCE
from calibrant.rows.sweeps import ThresholdForecasts
from calibrant.rows.tally import Tally

_SHOWN = 99  # percentiles of the outcomes at which the error is kept, where all thresholds are looked at


@frames_follow
def threshold_calibration_error(
    z: ArrayLike,
    *,
    ensemble: ArrayLike | None = None,
    quantiles: Quantiles | None = None,
    cdf: DistributionFunction | None = None,
    thresholds: ThresholdsLike = "all",
) -> ThresholdCalibration:
    """Largest error of "the outcome is at most t" over all thresholds t: are forecasts of an amount calibrated?

    sup over t of the Cutoff calibration error of the outcomes 1{Z <= t} and the forecasts F(t). A value of 0.02 means:
    whatever threshold somebody looks at, and on whatever interval of the probabilities forecast for it, the number of
    outcomes up to the threshold differs from the number forecast by at most 2 per 100 rows of all. Ensembles and
    quantiles are step functions, for which this is exact over all real t, in O(n m log(n m)).

    It is zero if and only if forecasts are *threshold calibrated*: P(Z <= t | F(t)) = F(t) for all t. Uniform PIT
    values (`pit_calibration`) neither imply that nor follow from it.

    Parameters
    ----------
    z : array-like of shape (n,)
        Outcomes: any finite numbers.
    ensemble : array-like of shape (n, m)
        Members of each row's ensemble, in any order, all of the same weight: F(t) is the share of members up to t.
    quantiles : (levels, values)
        Rising levels in (0, 1), two or more, and an array of shape (n, number of levels) of values that do not fall
        along a row. Between two values F is half-way between their levels, 0 below the lowest value and 1 from the
        highest on; so m values at the levels (k - 1/2)/m are an ensemble of m members.
    cdf : callable
        Takes one threshold t, returns F(t) of each row: ``lambda t: scipy.stats.norm.cdf(t, mean, sd)``.
    thresholds : "all" or array-like
        The thresholds to look at; a list is needed with ``cdf``. Ordinal classes 0, ..., K - 1 have K - 1 thresholds:
        ``thresholds=range(K - 1), cdf=lambda t: cumulative[:, int(t)]`` with sums of class probabilities along rows.

    Returns
    -------
    ThresholdCalibration
        ``error``, the worst threshold with its interval and direction, ``crps``, ``crps_gap_bound``, and ``frame()``.

    See Also
    --------
    certify_thresholds : limits for the population's error, and a verdict.

    References
    ----------
    Threshold calibration: [1]_, [2]_; the error, its computation and its limits are this project's
    (docs/theory/distributions.md).

    Examples
    --------
    >>> found = threshold_calibration_error([1, 2, 3, 4], ensemble=[[2, 3], [2, 3], [4, 5], [4, 5]])
    >>> found.error, found.threshold, found.interval.direction
    (0.25, 1.0, 'too low')
    """
    forecasts = check_distributions(z, ensemble, quantiles, cdf)
    return measured_thresholds(forecasts, *forecasts.at(thresholds))


def measured_thresholds(
    forecasts: Distributions, asked: ThresholdForecasts, listed: FloatArray | None
) -> ThresholdCalibration:
    """Return what forecasts that were checked are worth, at all thresholds or at those listed."""
    place, cutoff = asked.cutoffs()
    threshold, interval = worst_place(asked, place, cutoff)
    shown = _percentiles(forecasts.outcome) if listed is None else listed
    reached = np.searchsorted(place, shown, side="right")
    bound = None
    if listed is None:  # beyond the first and the last step no forecast is off
        bound = 2.0 * float(cutoff[:-1] @ np.diff(place))
    return ThresholdCalibration(
        error=float(cutoff.max(initial=0.0)),
        threshold=threshold,
        interval=interval,
        rows=asked.rows,
        forecast=forecasts.kind,
        members=forecasts.members,
        all_thresholds=listed is None,
        threshold_count=place.size if listed is None else listed.size,
        crps=mean_crps(forecasts),
        crps_gap_bound=bound,
        thresholds=shown,
        cutoffs=np.concatenate([[0.0], cutoff])[reached],
        notes=forecast_notes(forecasts),
    )


def worst_place(asked: ThresholdForecasts, place: FloatArray, cutoff: FloatArray) -> tuple[float, WorstInterval]:
    """Return the lowest threshold at which the error is largest, but for rounding, and the worst interval there."""
    threshold = min(float(asked.outcome.min()), asked.highest)
    if place.size:  # no step is at a listed threshold or below where all of the list is below everything
        threshold = float(place[int(np.argmax(cutoff >= cutoff.max() - TOLERANCE))])
    column = asked.column(threshold)
    return threshold, find_worst_interval(Tally.from_arrays(asked.outcome <= threshold, column))


def forecast_notes(forecasts: Distributions) -> tuple[str, ...]:
    """Return what to keep in mind for forecasts of their kind."""
    if forecasts.members is None:
        return ()
    if forecasts.kind == "ensemble":
        return (members_note(forecasts.members),)
    return (quantiles_note(float(forecasts.stated[0]), float(forecasts.stated[-1])),)


def mean_crps(forecasts: Distributions) -> float | None:
    """Return the mean of the integral of (F(t) - 1{Z <= t})^2 over t, exactly, for step functions.

    Piece by piece between neighbouring values, so that nothing cancels.
    """
    if forecasts.cdf is not None:
        return None
    outcome, values = forecasts.outcome, forecasts.values
    total = np.maximum(values[:, 0] - outcome, 0.0) + np.maximum(outcome - values[:, -1], 0.0)
    for number, level in enumerate(forecasts.levels[1:-1].tolist()):
        low, high = values[:, number], values[:, number + 1]
        middle = np.clip(outcome, low, high)
        total += (middle - low) * level**2 + (high - middle) * (1.0 - level) ** 2
    return float(np.sort(total).sum()) / outcome.size


def _percentiles(outcome: FloatArray) -> FloatArray:
    shares = np.arange(1, _SHOWN + 1) / (_SHOWN + 1)
    found: FloatArray = np.unique(np.quantile(outcome, shares, method="lower"))
    return found
