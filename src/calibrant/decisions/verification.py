"""Murphy's decomposition of the Brier score in bins, as forecast verification knows it.

.. [1] Murphy (1973), A new vector partition of the probability score, Journal of Applied Meteorology 12.
.. [2] Stephenson, Coelho, Jolliffe (2008), Two extra components in the Brier score decomposition, Weather and
   Forecasting 23.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from calibrant.core.errors import UndefinedError
from calibrant.core.frames import frames_follow
from calibrant.core.results import UNIT, Result
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, Randomness
from calibrant.decisions.part_limits import (
    all_alike,
    calibrated,
    columns_of,
    drawable,
    limits_said,
    part_limits,
    tally_of,
)
from calibrant.rows.checks import check_confidence, check_number
from calibrant.rows.intake import RowsLike, as_tally
from calibrant.rows.tally import Tally

_MOST_BINS = 10_000
PARTS = ("brier", "reliability", "resolution", "uncertainty", "skill")


class _Bins(NamedTuple):
    """Weight, mean forecast and event rate of the bins that hold rows."""

    weight: FloatArray
    forecast: FloatArray
    rate: FloatArray


@frames_follow
def brier_decomposition(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    n_bins: int | None = 10,
    confidence_level: float | None = None,
    cluster: ArrayLike | None = None,
    n_resamples: int = 1000,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
    rng: Randomness = 0,
) -> BrierDecomposition:
    """Split the Brier score into reliability, resolution and uncertainty, in bins of equal width.

    With f the mean forecast, o the event rate and w the share of the weight of each bin, and m the event rate of all
    rows: reliability = sum of w (f - o)^2 (0 is ideal), resolution = sum of w (o - m)^2 (large is good), uncertainty =
    m (1 - m), and Brier score = reliability - resolution + uncertainty + what bins hide of forecasts that differ inside
    them (``within_bins``). `score_decomposition` needs no bins, and other scores have it, too; this is the form that
    attributes diagrams show.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `score_decomposition`.
    n_bins : int or None
        Bins of equal width; None for one per distinct forecast, for forecasts that take few values.
    confidence_level, cluster, n_resamples, rng
        Limits of the parts, as in `score_decomposition`.

    Returns
    -------
    BrierDecomposition
        With the bins that hold rows.

    References
    ----------
    [1]_; within bins: [2]_.

    Examples
    --------
    >>> found = brier_decomposition([0, 0, 1, 1] * 10, [0.2, 0.2, 0.2, 0.8] * 10, n_bins=5)
    >>> [round(each, 4) for each in (found.brier, found.reliability, found.resolution, found.uncertainty)]
    [0.19, 0.0233, 0.0833, 0.25]
    """
    bins = None if n_bins is None else int(check_number(n_bins, "n_bins", low=1, high=_MOST_BINS, whole=True))
    level = None if confidence_level is None else check_confidence(confidence_level)
    columns = {"sample_weight": sample_weight, "pos_label": pos_label}
    rows = drawable(y_true, y_prob, cluster=cluster, **columns) if level is not None or cluster is not None else None
    tally = as_tally(y_true, y_prob, **columns) if rows is None else tally_of(rows)
    brier, reliability, resolution, uncertainty, skill = _parts(tally, bins)
    limits: dict[str, Any] = {}
    if level is not None and rows is not None:
        if skill is None:
            raise UndefinedError("outcomes that are all the same have no limits", remedy="leave out confidence_level")
        limits = part_limits(
            rows,
            PARTS,
            (brier, reliability, resolution, uncertainty, skill),
            lambda sample: _parts(sample, bins),
            confidence_level=level,
            n_resamples=n_resamples,
            rng=rng,
            fitted={"reliability": calibrated, "resolution": all_alike},
        )
    held = _binned(tally, bins)
    return BrierDecomposition(
        brier=brier,
        reliability=reliability,
        resolution=resolution,
        uncertainty=uncertainty,
        within_bins=brier - (reliability - resolution + uncertainty),
        skill=skill,
        mean_outcome=tally.outcome_total / tally.weight_total,
        n_bins=bins,
        forecast=held.forecast,
        rate=held.rate,
        share=held.weight / tally.weight_total,
        rows=tally.row_total,
        confidence_level=level,
        clusters=getattr(rows, "cluster_count", None),
        n_resamples=None if level is None else n_resamples,
        **limits,
    )


def _binned(tally: Tally, bins: int | None) -> _Bins:
    place = np.arange(len(tally))
    if bins is not None:
        place = np.minimum((tally.forecast * bins).astype(np.int64), bins - 1)
    weight, outcome, forecast = (
        np.bincount(place, each).astype(np.float64, copy=False)
        for each in (tally.weight, tally.outcome, tally.weight * tally.forecast)
    )
    held = np.flatnonzero(weight)
    return _Bins(weight[held], forecast[held] / weight[held], outcome[held] / weight[held])


def _parts(tally: Tally, bins: int | None) -> tuple[float, float, float, float, float | None]:
    held, total = _binned(tally, bins), tally.weight_total
    mean = tally.outcome_total / total
    # An outcome between 0 and 1 is an event with that probability, as in other scores.
    loss = tally.weight * tally.forecast**2 + tally.outcome * (1.0 - 2.0 * tally.forecast)
    brier, uncertainty = float(loss.sum() / total), mean * (1.0 - mean)
    return (
        brier,
        float(held.weight @ (held.forecast - held.rate) ** 2 / total),
        float(held.weight @ (held.rate - mean) ** 2 / total),
        uncertainty,
        1.0 - brier / uncertainty if uncertainty > 0.0 else None,
    )


@dataclass(frozen=True, eq=False)
class BrierDecomposition(Result):
    """The Brier score split into reliability, resolution and uncertainty, in bins.

    brier = reliability - resolution + uncertainty + within_bins; smaller scores are better.

    Attributes
    ----------
    brier : float
        Mean of (y - p)^2.
    reliability : float
        How far event rates are from the mean forecasts of their bins; 0 is ideal.
    resolution : float
        How far event rates of bins are from that of all rows; larger is better.
    uncertainty : float
        Brier score of the event rate of all rows.
    within_bins : float
        What bins hide: variation of forecasts inside them. 0 with a bin per distinct forecast.
    skill : float or None
        1 - brier/uncertainty; None when the uncertainty is 0.
    mean_outcome : float
        Mean of the outcomes.
    n_bins : int or None
        Bins of equal width; None for one per distinct forecast.
    forecast, rate, share : array
        Mean forecast, event rate and share of the weight of each bin that holds rows.
    rows : int
        How many rows.
    brier_lower, brier_upper, reliability_lower, reliability_upper : float or None
        Limits; None, as all limits, unless a confidence level was given.
    resolution_lower, resolution_upper, uncertainty_lower, uncertainty_upper, skill_lower, skill_upper : float or None
        Limits of the other parts.
    confidence_level : float or None
        How often, with many rows, limits found in this way hold the true number.
    clusters : int or None
        How many clusters the limits count; None for independent rows.
    n_resamples : int or None
        Resamples behind the limits.
    """

    brier: float
    reliability: float
    resolution: float
    uncertainty: float
    within_bins: float
    skill: float | None
    mean_outcome: float
    n_bins: int | None
    forecast: FloatArray
    rate: FloatArray
    share: FloatArray
    rows: int
    brier_lower: float | None = None
    brier_upper: float | None = None
    reliability_lower: float | None = None
    reliability_upper: float | None = None
    resolution_lower: float | None = None
    resolution_upper: float | None = None
    uncertainty_lower: float | None = None
    uncertainty_upper: float | None = None
    skill_lower: float | None = None
    skill_upper: float | None = None
    confidence_level: float | None = None
    clusters: int | None = None
    n_resamples: int | None = None

    _ranges: ClassVar = dict.fromkeys(("brier", "mean_outcome", "forecast", "rate", "share", "confidence_level"), UNIT)

    def frame(self, backend: Any = None) -> Any:
        """Return one row per component."""
        return self._framed(columns_of(self, PARTS), backend)

    def __str__(self) -> str:
        bins = "a bin per distinct forecast" if self.n_bins is None else f"{self.n_bins:,} bins"
        skill = "undefined" if self.skill is None else f"{100.0 * self.skill:.1f}%"
        said = (
            f"Brier score {self.brier:.5f} = reliability {self.reliability:.5f} - resolution {self.resolution:.5f} + "
            f"uncertainty {self.uncertainty:.5f} {self.within_bins:+.5f} inside bins ({bins}); skill against the base "
            f"rate {skill}"
        )
        return said if self.confidence_level is None else f"{said}\n{limits_said(self, PARTS)}"

    __repr__ = __str__
