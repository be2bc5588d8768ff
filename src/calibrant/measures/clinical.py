"""Calibration curves and what clinicians read off them: ICI, E50, E90."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant.core.isotonic import isotonic_fit
from calibrant.core.logistic import Points, pool
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray
from calibrant.measures.results import CurveErrors
from calibrant.rows.checks import check_choice, check_number
from calibrant.rows.intake import RowsLike, as_tally
from calibrant.rows.tally import Tally

_LOESS_POINTS = 20_000
_QUANTILE_CELLS = 4096.0


def integrated_calibration_index(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    smoother: Literal["isotonic", "loess"] = "isotonic",
    span: float = 0.75,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> CurveErrors:
    """Mean, median, 90th percentile and largest distance between a calibration curve and the diagonal: ICI, E50, E90.

    The distances |curve(p) - p| are taken over the rows. The isotonic curve has nothing to tune and is exact for any
    number of rows; since it follows the data closely, its ICI is above zero for calibrated forecasts too, less so the
    more rows there are. The loess curve, local quadratic regression on the nearest ``span`` of the rows with tricube
    weights, is what Austin and Steyerberg use.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `cutoff_calibration_error`.
    smoother : {"isotonic", "loess"}
        The calibration curve. With loess, more than 20,000 distinct forecasts are first pooled into 20,000 groups of
        neighbours, and the curve is interpolated between 500 of them.
    span : float from 0.001 to 1
        For loess: the share of the weight in each local fit.

    References
    ----------
    Austin, Steyerberg (2019), The integrated calibration index (ICI) and related metrics.

    Examples
    --------
    >>> print(integrated_calibration_index([0, 1, 0, 1], [0.1, 0.3, 0.6, 0.9]))
    ICI 0.12500, E50 0.10000, E90 0.20000, Emax 0.20000 (isotonic)
    """
    check_choice(smoother, "smoother", ("isotonic", "loess"))
    share = check_number(span, "span", low=1e-3, high=1.0)
    tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    curve = isotonic_curve(tally) if smoother == "isotonic" else _loess_curve(tally, share)
    return curve_errors(tally, curve, smoother)


def isotonic_curve(tally: Tally, *, increasing: bool = True) -> FloatArray:
    """Return the isotonic (or antitonic) regression of the outcomes at each distinct forecast."""
    curve: FloatArray = isotonic_fit(tally.outcome / tally.weight, tally.weight, increasing=increasing).x
    return curve


def curve_errors(tally: Tally, curve: FloatArray, smoother: str) -> CurveErrors:
    """Summarise the distances between a calibration curve and the diagonal over the rows of a tally."""
    distance = np.abs(curve - tally.forecast)
    weight = tally.weight
    return CurveErrors(
        ici=float(distance @ weight) / tally.weight_total,
        e50=_weighted_quantile(distance, weight, 0.5),
        e90=_weighted_quantile(distance, weight, 0.9),
        emax=float(distance.max()),
        smoother=smoother,
    )


def _weighted_quantile(values: FloatArray, weight: npt.NDArray[Any], share: float) -> float:
    """Return the smallest value that, with those below it, holds the given share of the weight.

    A histogram of [0, 1], with one cell for all beyond, finds where the answer is, so that only that cell is sorted.
    """
    cell = np.minimum(values * _QUANTILE_CELLS, _QUANTILE_CELLS).astype(np.int64)
    through = np.cumsum(np.bincount(cell, weights=weight))
    target = share * through[-1] * (1.0 - 1e-12)
    found = int(np.searchsorted(through, target))
    inside = np.flatnonzero(cell == found)
    inside = inside[np.argsort(values[inside])]
    before = float(through[found - 1]) if found else 0.0
    position = int(np.searchsorted(before + np.cumsum(weight[inside]), target))
    return float(values[inside[min(position, inside.size - 1)]])


def _loess_curve(tally: Tally, span: float) -> FloatArray:
    """Local quadratic regression of the outcomes at each distinct forecast."""
    points = Points(tally.forecast, tally.outcome, tally.weight)
    if len(tally) > _LOESS_POINTS:
        points = pool(points, size=_LOESS_POINTS)
    forecast, outcome, weight = points.value, points.outcome, points.weights
    places = np.unique(np.linspace(0, forecast.size - 1, min(forecast.size, 500)).round().astype(np.int64))
    at = forecast[places]
    fitted = np.array([_local_fit(forecast, outcome, weight, centre, span) for centre in at])
    curve: FloatArray = np.interp(tally.forecast, at, fitted)
    return curve


def _local_fit(forecast: FloatArray, outcome: FloatArray, weight: FloatArray, centre: float, span: float) -> float:
    distance = np.abs(forecast - centre)
    order = np.argsort(distance, kind="stable")
    through = np.cumsum(weight[order])
    reach = distance[order[np.searchsorted(through, span * through[-1] * (1.0 - 1e-12))]]
    if reach == 0.0:  # so many rows share this forecast that they fill the span
        here = distance == 0.0
        return float(outcome[here].sum() / weight[here].sum())
    closeness = np.maximum(1.0 - (distance / reach) ** 3, 0.0) ** 3
    used = closeness > 0.0
    local = weight[used] * closeness[used]
    offset = (forecast[used] - centre) / reach
    design = np.sqrt(local)[:, None] * np.stack([np.ones_like(offset), offset, offset * offset], axis=1)
    target = np.sqrt(local) * (outcome[used] / weight[used])
    return float(np.linalg.lstsq(design, target, rcond=None)[0][0])
