"""Discrimination: how often an event has a higher forecast than a row without one, with limits."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError, UndefinedError
from calibrant.core.frames import frames_follow
from calibrant.core.logistic import logit_of
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, Randomness
from calibrant.measures.estimates import Estimate
from calibrant.measures.sampled import Limits, Sampled, Way, by_resampling, estimated, sampled
from calibrant.rows.intake import RowsLike, as_tally
from calibrant.rows.tally import Tally

AurocInterval = Literal["delong", "logit", "bootstrap"]


@overload
def auroc(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: None = None,
    interval: AurocInterval = "delong",
    cluster: ArrayLike | None = None,
    n_resamples: int = 1000,
    rng: Randomness = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> float: ...


@overload
def auroc(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: float,
    interval: AurocInterval = "delong",
    cluster: ArrayLike | None = None,
    n_resamples: int = 1000,
    rng: Randomness = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> Estimate: ...


@frames_follow
def auroc(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: float | None = None,
    interval: AurocInterval = "delong",
    cluster: ArrayLike | None = None,
    n_resamples: int = 1000,
    rng: Randomness = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> float | Estimate:
    """Area under the ROC curve: the chance that an event has a higher forecast than a non-event, with limits.

    The share of pairs of an event and a non-event in which the event has the higher forecast; ties count half. 0.5 is
    no discrimination, 1 a perfect ranking. It says nothing about calibration: any increasing change of the forecasts
    leaves it as it is.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `cutoff_calibration_error`; outcomes are 0 or 1. Pairs count by the product of their weights.
    confidence_level : float, optional
        How often the limits are to hold the area of the population; without a level the number comes alone.
    interval : {"delong", "logit", "bootstrap"}
        "delong": by how much the ranks of events among non-events vary, and the other way round. "logit": the same on
        the logit scale, which keeps limits inside (0, 1) and holds better near 1, where DeLong's limits hold too
        seldom. "bootstrap": percentiles over resamples. A perfect ranking varies in no way that these could see: its
        limits come from as many pairs as have no row in common, exactly, and the result calls them "pairs".
    cluster : array-like of shape (n,), optional
        A cluster per row: what rows move the area by is added up per cluster (Obuchowski), with Student's quantiles.
    n_resamples, rng
        For "bootstrap": how many resamples, and the seed or generator they are drawn with.

    Returns
    -------
    float, or Estimate with a confidence level

    References
    ----------
    DeLong, DeLong, Clarke-Pearson (1988), Comparing the areas under two or more correlated receiver operating
    characteristic curves; Sun, Xu (2014), Fast implementation of DeLong's algorithm; Obuchowski (1997), Nonparametric
    analysis of clustered ROC curve data. The limits of a perfect ranking are this project's.

    Examples
    --------
    >>> auroc([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    0.875
    >>> print(auroc([0, 0, 1, 0, 1, 1], [0.1, 0.3, 0.4, 0.5, 0.6, 0.8], confidence_level=0.95))
    auroc 0.8889 (95%: 0.5809 to 1.0000; delong)
    """
    if confidence_level is None and cluster is None:
        return _area(as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label))
    sample = sampled(y_true, y_prob, cluster=cluster, sample_weight=sample_weight, pos_label=pos_label)
    if confidence_level is None:
        return _area(sample.tally)
    resampling = by_resampling("the area under the ROC curve", _area, n_resamples=n_resamples, rng=rng)
    ways = {"delong": _delong, "logit": _logit_delong, "bootstrap": resampling}
    ways = {name: _unless_perfect(way) for name, way in ways.items()}
    return estimated("auroc", sample, _area, ways, interval=interval, confidence_level=confidence_level)


class _Ranked(NamedTuple):
    """For each distinct forecast: the share of the weight of non-events below it, and that of events above it.

    Rows that share the forecast count half.
    """

    area: float
    non_events_below: FloatArray
    events_above: FloatArray


def _ranked(tally: Tally) -> _Ranked:
    if not tally.binary_outcomes:
        raise InputError(
            "holds fractions, and the area under the ROC curve ranks events against non-events",
            argument="y_true",
            remedy="pass outcomes of 0 and 1",
        )
    on, off = tally.outcome, tally.weight - tally.outcome
    events, others = float(on.sum()), float(off.sum())
    if not tally.outcome.any() or not (off > 0.0).any():
        only = "0" if not tally.outcome.any() else "1"
        raise UndefinedError(
            f"every outcome that counts here is {only}", remedy="the area under the ROC curve needs both kinds"
        )
    below = (np.cumsum(off) - off / 2.0) / others
    above = 1.0 - (np.cumsum(on) - on / 2.0) / events
    area = float(on @ below) / events
    if not 0.0 < area < 1.0 or on[0] == 0.0 == off[-1] or off[0] == 0.0 == on[-1]:  # perhaps without an exception
        first, last = (np.flatnonzero(each)[[0, -1]] for each in (on, off))
        area = 1.0 if first[0] > last[1] else 0.0 if first[1] < last[0] else area
    return _Ranked(area, below, above)


def _area(tally: Tally) -> float:
    return _ranked(tally).area


def _unless_perfect(way: Way) -> Way:
    return lambda sample, area, level: (way if 0.0 < area < 1.0 else _by_pairs)(sample, area, level)


def _delong(sample: Sampled, area: float, level: float) -> Limits:
    reach = sample.quantile(level) * _error(sample)
    return Limits(max(area - reach, 0.0), min(area + reach, 1.0), "delong")


def _logit_delong(sample: Sampled, area: float, level: float) -> Limits:
    reach = sample.quantile(level) * _error(sample) / (area * (1.0 - area))
    centre = logit_of(area)
    lower, upper = (1.0 / (1.0 + math.exp(-max(centre + side * reach, -700.0))) for side in (-1.0, 1.0))
    return Limits(lower, upper, "logit")


def _error(sample: Sampled) -> float:
    """Return the standard error of DeLong, of Obuchowski for clusters: what events and non-events add to the area."""
    rows, ranked = sample.rows, _ranked(sample.tally)
    place = np.searchsorted(sample.tally.forecast, rows.y_prob)
    is_event = rows.y_true == 1
    square, parts = 0.0, []
    for kind, share in ((is_event, ranked.non_events_below), (~is_event, ranked.events_above)):
        weight = np.where(kind, sample.weight, 0.0)
        total = float(weight @ (np.ones_like(weight) if sample.times is None else sample.times))
        moved = weight * (share[place] - ranked.area) / total
        count = _how_many(sample, kind)
        square += sample.square(moved) * count / (count - 1.0)
        parts.append(moved)
    if sample.censored is not None:  # through the weights of others all rows vary together
        return math.sqrt(sample.square(parts[0] + parts[1]) * sample.few_clusters)
    if sample.clusters is not None:  # events and non-events of a cluster vary together
        events, others = (np.bincount(sample.clusters, weights=moved) for moved in parts)
        square += 2.0 * sample.few_clusters * float(events @ others)
    return math.sqrt(max(square, 0.0))


def _how_many(sample: Sampled, kind: npt.NDArray[np.bool_]) -> int:
    """Count the rows, or the clusters, that are of a kind."""
    if sample.clusters is not None:
        what, count = "clusters", int(np.unique(sample.clusters[kind]).size)
    else:
        what, count = "rows", int(kind.sum() if sample.times is None else sample.times[kind].sum())
    if count < 2:
        raise UndefinedError(
            f"limits of the area under the ROC curve need at least two {what} with an event and two with none"
        )
    return count


def _by_pairs(sample: Sampled, area: float, level: float) -> Limits:
    """Return the limits of a ranking without a single exception (or with nothing else).

    As many pairs of an event and a non-event as share no row are independent, and each is in order with a probability
    that is the area: Clopper and Pearson's limits for all of them, or none, being in order hold.
    """
    if sample.clusters is not None or sample.rows.sample_weight is not None:
        raise UndefinedError(
            f"the forecasts separate the outcomes perfectly and rows are {sample.why_not_counted}, so that nothing "
            "shows how much the area under the ROC curve varies",
            remedy="collect more rows",
        )
    events = round(sample.tally.outcome_total)
    pairs = min(events, sample.row_total - events)
    least = ((1.0 - level) / 2.0) ** (1.0 / pairs)
    said = "1 pair of rows" if pairs == 1 else f"{pairs:,} pairs that share no row"
    note = f"the ranking has no exception: the limits are those of {said}"
    lower, upper = (least, 1.0) if area == 1.0 else (0.0, 1.0 - least)
    return Limits(lower, upper, "pairs", notes=(note,))
