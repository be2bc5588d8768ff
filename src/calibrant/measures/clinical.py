"""Calibration curves and what clinicians read off them: slope and intercept, observed/expected, ICI, E50, E90."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.isotonic import isotonic_fit
from calibrant.core.types import FloatArray, IntArray
from calibrant.measures.results import CalibrationSlope, CurveErrors
from calibrant.rows.checks import check_choice, check_number
from calibrant.rows.grids import COARSE_GRID
from calibrant.rows.intake import as_source, as_tally
from calibrant.rows.refinement import refine
from calibrant.rows.tally import Tally, Totals

_NEWTON_STEPS = 100
_NEAR = 1e-6  # squared step, in the likelihood's own metric, below which Newton steps cannot overshoot
_FLAT = 1e-6  # largest mean gradient that counts as a maximum
_SETTLED = 1e-14  # ... and below which the step just taken was the last: the next would be its square
_POOLED = 20_000
_MANY_TIMES = 1000.0
_QUANTILE_CELLS = 4096.0


def observed_expected_ratio(
    y_true: Any, y_prob: Any = None, *, sample_weight: Any = None, pos_label: Any = None
) -> float:
    """Observed over expected: events that happened for each one forecast.

    sum of y / sum of p. Above 1 events were more frequent than forecast. The parameters are those of
    `cutoff_calibration_error`.

    Examples
    --------
    >>> observed_expected_ratio([0, 1, 1, 1], [0.25, 0.5, 0.75, 1.0])
    1.2
    """
    source = as_source(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    table = refine(source, _hides_forecasts, COARSE_GRID)
    if table.high[-1] == 0.0:
        raise ValueError("y_prob is 0 everywhere, so no event is expected and the ratio to it is undefined")
    return table.outcome_total / table.forecast_total()


def _hides_forecasts(table: Totals) -> IntArray:
    """Return the entries whose events are so many that outcomes minus residuals lose digits of their forecasts."""
    return np.flatnonzero((table.high > table.low) & (table.outcome > _MANY_TIMES * table.weight * table.high))


def calibration_slope_intercept(
    y_true: Any, y_prob: Any = None, *, sample_weight: Any = None, pos_label: Any = None
) -> CalibrationSlope:
    """Logistic recalibration: the slope and intercept of the outcomes on the logit of the forecasts.

    Maximum likelihood fit of logit(event rate) = intercept + slope x logit(p); slope 1 and intercept 0 are ideal. A
    slope below 1 means forecasts that are too extreme, the usual sign of overfitting. Also the intercept with the slope
    held at 1, which clinicians call calibration in the large.

    A forecast of exactly 0 or 1 has an infinite logit. Where the outcomes agree with it, it fits perfectly for every
    positive slope and so has no say; where one contradicts it, no fit exists.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `cutoff_calibration_error`.

    Raises
    ------
    ValueError
        When no finite fit exists: outcomes of one class only, a single distinct forecast, outcomes that the forecasts
        separate perfectly, or an outcome that contradicts a forecast of 0 or 1.

    References
    ----------
    Cox (1958); Van Calster et al. (2019), Calibration: the Achilles heel of predictive analytics.

    Examples
    --------
    >>> fit = calibration_slope_intercept([0, 1, 0, 0, 1, 1, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9])
    >>> round(fit.slope, 4), round(fit.intercept, 4)
    (0.596, 0.0)
    """
    return fit_slope(as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label))


def fit_slope(tally: Tally) -> CalibrationSlope:
    """Fit the slope and intercepts of a tally."""
    forecast, outcome, weight = tally.forecast, tally.outcome, tally.weight.astype(np.float64)
    sure_off, sure_on = forecast == 0.0, forecast == 1.0
    if outcome[sure_off].any() or (outcome < weight)[sure_on].any():
        side = "0" if outcome[sure_off].any() else "1"
        raise ValueError(
            f"an outcome contradicts a forecast of exactly {side}, whose logit is infinite, so no slope fits; pull the "
            "forecasts inside, as in numpy.clip(y_prob, 1e-6, 1 - 1e-6), and say so when you report the slope"
        )
    inside = ~(sure_off | sure_on)
    forecast, outcome, weight = forecast[inside], outcome[inside], weight[inside]
    if forecast.size < 2:
        raise ValueError("the calibration slope needs at least two distinct forecasts strictly between 0 and 1")
    logit = np.log(forecast) - np.log1p(-forecast)
    if not np.isfinite(logit).all():
        raise ValueError("a forecast is so close to 0 or 1 that its logit overflows; pull the forecasts inside first")
    _refuse_separated(outcome, weight)
    pooled = _pool(weight, logit, outcome, size=4096)  # a start so good that few steps over all rows are left
    slope, intercept = _newton(*pooled, slope=1.0, intercept=0.0, free_slope=True)
    slope, intercept = _newton(logit, outcome, weight, slope=slope, intercept=intercept, free_slope=True)
    _, start = _newton(*pooled, slope=1.0, intercept=0.0, free_slope=False)
    _, at_unit = _newton(logit, outcome, weight, slope=1.0, intercept=start, free_slope=False)
    return CalibrationSlope(slope=slope, intercept=intercept, intercept_at_unit_slope=at_unit)


def integrated_calibration_index(
    y_true: Any,
    y_prob: Any = None,
    *,
    smoother: str = "isotonic",
    span: float = 0.75,
    sample_weight: Any = None,
    pos_label: Any = None,
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
        e_max=float(distance.max()),
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


def _refuse_separated(outcome: FloatArray, weight: FloatArray) -> None:
    """Refuse outcomes for which the likelihood has no maximum: one class, or classes that do not overlap."""
    some_on, some_off = np.flatnonzero(outcome > 0.0), np.flatnonzero(outcome < weight)
    if some_on.size == 0 or some_off.size == 0:
        raise ValueError(
            f"every outcome that counts here is {'0' if some_on.size == 0 else '1'}; the calibration slope needs "
            "both kinds"
        )
    if some_on[0] >= some_off[-1] or some_off[0] >= some_on[-1]:
        raise ValueError(
            "the forecasts separate the outcomes perfectly, so the calibration slope is infinite; collect more rows"
        )


def _pool(weight: FloatArray, forecast: FloatArray, outcome: FloatArray, *, size: int) -> tuple[FloatArray, ...]:
    """Pool neighbouring forecasts into at most ``size`` groups of similar weight: mean forecast, outcome, weight."""
    through = np.cumsum(weight)
    group = np.minimum(((through - weight / 2.0) / through[-1] * size).astype(np.int64), size - 1)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    pooled_weight = np.add.reduceat(weight, starts)
    pooled_forecast = np.add.reduceat(weight * forecast, starts) / pooled_weight
    return pooled_forecast, np.add.reduceat(outcome, starts), pooled_weight


def _newton(
    logit: FloatArray, outcome: FloatArray, weight: FloatArray, *, slope: float, intercept: float, free_slope: bool
) -> tuple[float, float]:
    """Maximise the concave logistic likelihood by Newton steps, halved while far away until they do not overshoot."""
    from scipy.special import expit

    scale = float(weight.sum())
    square = np.square(logit)

    def loss(slope: float, intercept: float) -> float:
        linear = slope * logit + intercept
        return float(weight @ np.logaddexp(0.0, linear) - outcome @ linear) / scale

    for _ in range(_NEWTON_STEPS):
        rate = expit(slope * logit + intercept)
        expected = weight * rate
        pull = outcome - expected
        curvature = expected * (1.0 - rate)
        mixed = float(curvature @ logit)
        bend = np.array([[float(curvature @ square), mixed], [mixed, float(curvature.sum())]]) / scale
        down = np.array([float(pull @ logit), float(pull.sum())]) / scale
        if not free_slope:
            bend[0], bend[:, 0], down[0] = 0.0, 0.0, 0.0
        step = np.linalg.lstsq(bend, down, rcond=None)[0]
        decrement = float(step @ bend @ step)
        if decrement > _NEAR:
            value = loss(slope, intercept)
            while loss(slope + float(step[0]), intercept + float(step[1])) > value and np.abs(step).max() > 0.0:
                step = step / 2.0
        slope, intercept = slope + float(step[0]), intercept + float(step[1])
        if decrement <= _SETTLED:
            break
    if np.abs(down).max() > _FLAT:
        raise ValueError(
            "the logistic fit of slope and intercept does not settle: some forecasts are so close to 0 or 1 that the "
            "likelihood is flat; pull them inside, as in numpy.clip(y_prob, 1e-6, 1 - 1e-6), and say so in the report"
        )
    return slope, intercept


def _loess_curve(tally: Tally, span: float) -> FloatArray:
    """Local quadratic regression of the outcomes at each distinct forecast."""
    weight = tally.weight.astype(np.float64)
    forecast, outcome, pooled_weight = (
        (tally.forecast, tally.outcome, weight)
        if len(tally) <= _POOLED
        else _pool(weight, tally.forecast, tally.outcome, size=_POOLED)
    )
    places = np.unique(np.linspace(0, forecast.size - 1, min(forecast.size, 500)).round().astype(np.int64))
    at = forecast[places]
    fitted = np.array([_local_fit(forecast, outcome, pooled_weight, centre, span) for centre in at])
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
