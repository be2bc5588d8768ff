"""Observed over expected events of censored rows: the risk at the horizon over the mean forecast of all rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calibrant.core.errors import UndefinedError
from calibrant.core.types import FloatArray
from calibrant.measures.estimates import Estimate, percentile_limits
from calibrant.measures.sampled import Limits, Sampled, Way, estimated, sampled
from calibrant.rows.checks import check_rng
from calibrant.rows.horizons import HorizonRows
from calibrant.rows.intake import as_observations
from calibrant.rows.resamples import check_resamples, resampled


def censored_ratio(
    rows: HorizonRows,
    *,
    confidence_level: float | None,
    interval: str,
    cluster: Any,
    n_resamples: Any,
    rng: Any,
    **given: Any,
) -> float | Estimate:
    """Return the ratio of the risk at a horizon to the mean forecast, with limits where a level is given."""
    as_observations(rows, **given)  # which refuses what the rows hold already
    ratio = _ratio(rows)
    if confidence_level is None:
        return ratio
    ways: dict[str, Way] = {
        "exact": lambda sample, _, level: _greenwood(rows, sample, ratio, level),
        "poisson": lambda sample, _, level: _by_events(rows, sample, ratio, level),
        "wald": lambda sample, _, level: _wald(rows, sample, ratio, level),
        "bootstrap": lambda sample, _, level: _resampled(sample, level, n_resamples, rng),
    }
    return estimated(
        "observed_expected_ratio",
        sampled(rows, cluster=cluster),
        lambda _: ratio,
        ways,
        interval=interval,
        confidence_level=confidence_level,
    )


def _ratio(rows: HorizonRows) -> float:
    return over_expected(rows.incidence.risk, float(rows.y_prob.mean()))


def over_expected(observed: float, expected: float) -> float:
    """Return how many times as much happened as was forecast, where that can be said."""
    if expected > 0.0 and math.isfinite(ratio := observed / expected):
        return ratio
    near = "0 everywhere" if expected == 0.0 else "next to 0 everywhere"
    raise UndefinedError(f"is {near}, so no event is expected and the ratio to it is undefined", argument="y_prob")


def _greenwood(rows: HorizonRows, sample: Sampled, ratio: float, level: float) -> Limits:
    if sample.clusters is not None:
        note = "rows are in clusters, so the limits rest on how much these vary, not on Greenwood's formula"
        return _wald(rows, sample, ratio, level)._replace(notes=(note,))
    expected, found = float(rows.y_prob.mean()), rows.incidence.summary(level, rows.interval)
    return Limits(found.risk_lower / expected, found.risk_upper / expected, "greenwood")


def _by_events(rows: HorizonRows, sample: Sampled, ratio: float, level: float) -> Limits:
    if sample.clusters is not None:
        return _greenwood(rows, sample, ratio, level)
    _refuse_no_event(ratio)
    factor = math.exp(sample.quantile(level) / math.sqrt(rows.outcome.events))
    return Limits(ratio / factor, ratio * factor, "poisson")


def _wald(rows: HorizonRows, sample: Sampled, ratio: float, level: float) -> Limits:
    _refuse_no_event(ratio)
    expected, size = float(rows.y_prob.mean()), rows.y_prob.size
    added: FloatArray = (rows.incidence.influence - ratio * (rows.y_prob - expected) / size) / (expected * ratio)
    clusters = None if sample.censored is None else sample.censored.clusters
    if clusters is not None:
        added = np.bincount(clusters, weights=added).astype(np.float64, copy=False)
    error = float(np.linalg.norm(added)) * math.sqrt(sample.few_clusters)
    factor = math.exp(min(sample.quantile(level) * error, 700.0))
    return Limits(ratio / factor, ratio * factor, "wald")


def _refuse_no_event(ratio: float) -> None:
    if ratio == 0.0:
        raise UndefinedError(
            "there is no event, so that nothing can be said about how much the ratio varies",
            remedy="take the limits of the risk, as in interval='exact'",
        )


def _resampled(sample: Sampled, level: float, n_resamples: Any, rng: Any) -> Limits:
    count = check_resamples(n_resamples, level)
    drawn = resampled(sample.drawn, count, check_rng(rng))
    found = np.array([_ratio(each) for each in drawn if isinstance(each, HorizonRows)])
    return Limits(*percentile_limits(found, level), "bootstrap", count)
