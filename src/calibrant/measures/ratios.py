"""Observed over expected events, with limits."""

from __future__ import annotations

import math
from typing import Literal, overload

import numpy as np

from calibrant.core.binomial import lower_rate, upper_rate
from calibrant.core.errors import UndefinedError
from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, ClassLabel, IntArray, Randomness
from calibrant.measures.censored import censored_ratio, over_expected
from calibrant.measures.estimates import Estimate
from calibrant.measures.sampled import Limits, Sampled, Way, by_resampling, estimated, sampled
from calibrant.rows.grids import COARSE_GRID
from calibrant.rows.horizons import HorizonRows
from calibrant.rows.intake import RowsLike, as_source
from calibrant.rows.refinement import refine
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally, Totals

RatioInterval = Literal["exact", "poisson", "wald", "bootstrap"]

_MANY_TIMES = 1000.0


@overload
def observed_expected_ratio(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: None = None,
    interval: RatioInterval = "exact",
    cluster: ArrayLike | None = None,
    n_resamples: int = 1000,
    rng: Randomness = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> float: ...


@overload
def observed_expected_ratio(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: float,
    interval: RatioInterval = "exact",
    cluster: ArrayLike | None = None,
    n_resamples: int = 1000,
    rng: Randomness = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> Estimate: ...


@frames_follow
def observed_expected_ratio(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: float | None = None,
    interval: RatioInterval = "exact",
    cluster: ArrayLike | None = None,
    n_resamples: int = 1000,
    rng: Randomness = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> float | Estimate:
    """Observed over expected: events that happened for each one forecast.

    sum of y / sum of p. Above 1 events were more frequent than forecast.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `cutoff_calibration_error`.
    confidence_level : float, optional
        How often the limits are to hold the true ratio; without a level the number comes alone.
    interval : {"exact", "poisson", "wald", "bootstrap"}
        "exact": the limits of Clopper and Pearson for the events among the rows, over the events expected. Given the
        forecasts they hold for any number of rows, whatever the risks, where on average at least one row is an event
        and one is not (Hoeffding 1956); they are too wide where risks differ much. "poisson": those of
        Garwood for a Poisson count, as R's ``poisson.test(observed, expected)``; close to the exact ones for rare
        events, wider by up to 40% where half of the rows are events, which is why they are not the default. "wald": on
        the logarithmic scale by how much y - ratio x p varies from row to row; it needs many events, and no more than
        that. "bootstrap": percentiles over resamples. With clusters, weights or fractions there is no count of events:
        "exact" and "poisson" then become "wald", and the result says so.
    cluster : array-like of shape (n,), optional
        A cluster per row: limits then count clusters, with Student's quantiles.
    n_resamples, rng
        For "bootstrap": how many resamples, and the seed or generator they are drawn with.

    Returns
    -------
    float, or Estimate with a confidence level

    Notes
    -----
    For censored rows (`horizon`) the observed share of events is the Kaplan-Meier or Aalen-Johansen risk, and the
    expected one the mean forecast of all rows. "exact" then becomes "greenwood": the limits of that risk, on the scale
    that `horizon` was given, over the mean forecast. "poisson" is what CalibrationCurves prints, ratio x exp(-+ z /
    square root of the number of events), which takes all follow-up for complete and no event for likely.

    References
    ----------
    Garwood (1936), Fiducial limits for the Poisson distribution; Hoeffding (1956), On the distribution of the number of
    successes in independent trials; Debray et al. (2017), A guide to systematic review
    and meta-analysis of prediction model performance.

    Examples
    --------
    >>> observed_expected_ratio([0, 1, 1, 1], [0.25, 0.5, 0.75, 1.0])
    1.2
    >>> print(observed_expected_ratio([0, 1, 1, 1], [0.25, 0.5, 0.75, 1.0], confidence_level=0.95))
    observed expected ratio 1.2000 (95%: 0.3106 to 1.5899; exact)
    """
    if isinstance(y_true, HorizonRows) and y_true.weights_estimated:
        given = {"y_prob": y_prob, "sample_weight": sample_weight, "pos_label": pos_label}
        return censored_ratio(
            y_true,
            confidence_level=confidence_level,
            interval=interval,
            cluster=cluster,
            n_resamples=n_resamples,
            rng=rng,
            **given,
        )
    if confidence_level is None and cluster is None:
        return _ratio(as_source(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label))
    sample = sampled(y_true, y_prob, cluster=cluster, sample_weight=sample_weight, pos_label=pos_label)
    if confidence_level is None:
        return _ratio(sample.tally)
    ways = {
        "exact": _exact,
        "poisson": _poisson,
        "wald": _with_events(_wald),
        "bootstrap": _with_events(by_resampling("O/E", _ratio, n_resamples=n_resamples, rng=rng)),
    }
    return estimated(
        "observed_expected_ratio", sample, _ratio, ways, interval=interval, confidence_level=confidence_level
    )


def _ratio(source: Tally | RowSource) -> float:
    table = refine(source, _hides_forecasts, COARSE_GRID)
    return over_expected(table.outcome_total, table.forecast_total() if table.high[-1] > 0.0 else 0.0)


def _hides_forecasts(table: Totals) -> IntArray:
    """Return the entries whose events are so many that outcomes minus residuals lose digits of their forecasts."""
    return np.flatnonzero((table.high > table.low) & (table.outcome > _MANY_TIMES * table.weight * table.high))


def _exact(sample: Sampled, ratio: float, level: float) -> Limits:
    if sample.why_not_counted is not None:
        return _instead(sample, ratio, level)
    rows, expected = sample.row_total, sample.tally.forecast_total()
    events = np.array([round(sample.tally.outcome_total)])
    others, delta = rows - events, (1.0 - level) / 2.0
    lower, upper = (float(rate(events, others, delta)[0]) for rate in (lower_rate, upper_rate))
    return Limits(lower * rows / expected, upper * rows / expected, "exact")


def _poisson(sample: Sampled, ratio: float, level: float) -> Limits:
    from scipy.special import gammainccinv, gammaincinv

    if sample.why_not_counted is not None:
        return _instead(sample, ratio, level)
    events, expected, delta = sample.tally.outcome_total, sample.tally.forecast_total(), (1.0 - level) / 2.0
    lower = float(gammaincinv(events, delta)) if events > 0.0 else 0.0
    return Limits(lower / expected, float(gammainccinv(events + 1.0, delta)) / expected, "poisson")


def _with_events(way: Way) -> Way:
    """Refuse rows without an event: none of them varies."""

    def checked(sample: Sampled, ratio: float, level: float) -> Limits:
        if ratio == 0.0:
            raise UndefinedError(
                "there is no event, so that nothing can be said about how much the ratio varies",
                remedy="count the events of independent rows, as in interval='exact'",
            )
        return way(sample, ratio, level)

    return checked


def _wald(sample: Sampled, ratio: float, level: float) -> Limits:
    rows = sample.rows
    expected = sample.tally.forecast_total() / sample.tally.weight_total
    error = sample.error((rows.y_true - ratio * rows.y_prob) / expected) / ratio
    factor = math.exp(min(sample.quantile(level) * error, 700.0))
    return Limits(ratio / factor, ratio * factor, "wald")


def _instead(sample: Sampled, ratio: float, level: float) -> Limits:
    note = f"rows are {sample.why_not_counted}, so the limits rest on how much they vary, not on a count of events"
    return _with_events(_wald)(sample, ratio, level)._replace(notes=(note,))
