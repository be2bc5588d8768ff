"""What clinicians read off a logistic recalibration: slope and intercept; and observed over expected."""

from __future__ import annotations

import numpy as np

from calibrant.core.errors import UndefinedError
from calibrant.core.logistic import Curve, Points, fit_logistic, logit, pool, separation
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, IntArray
from calibrant.core.voices import Either, Phrase
from calibrant.measures.results import CalibrationSlope
from calibrant.rows.grids import COARSE_GRID
from calibrant.rows.intake import RowsLike, as_source, as_tally
from calibrant.rows.refinement import refine
from calibrant.rows.tally import Tally, Totals

_START_POINTS = 4096
_MANY_TIMES = 1000.0
_INSIDE = Either("as in numpy.clip(y_prob, 1e-6, 1 - 1e-6)", "by 1e-6 say")


def observed_expected_ratio(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
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
        raise UndefinedError(
            "is 0 everywhere, so no event is expected and the ratio to it is undefined", argument="y_prob"
        )
    return table.outcome_total / table.forecast_total()


def _hides_forecasts(table: Totals) -> IntArray:
    """Return the entries whose events are so many that outcomes minus residuals lose digits of their forecasts."""
    return np.flatnonzero((table.high > table.low) & (table.outcome > _MANY_TIMES * table.weight * table.high))


def calibration_slope_intercept(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
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
    >>> round(fit.slope, 4), abs(fit.intercept) < 1e-9
    (0.596, True)
    """
    return fit_slope(as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label))


def fit_slope(tally: Tally) -> CalibrationSlope:
    """Fit the slope and intercepts of a tally."""
    forecast, outcome, weight = tally.forecast, tally.outcome, tally.weight
    sure_off, sure_on = forecast == 0.0, forecast == 1.0
    if outcome[sure_off].any() or (outcome < weight)[sure_on].any():
        side = "0" if outcome[sure_off].any() else "1"
        raise UndefinedError(
            f"an outcome contradicts a forecast of exactly {side}, whose logit is infinite, so no slope fits",
            remedy=Phrase("pull the forecasts inside, {how}, and say so when you report the slope", how=_INSIDE),
        )
    inside = ~(sure_off | sure_on)
    points = Points(forecast[inside], outcome[inside], weight[inside])
    if points.value.size < 2:
        raise UndefinedError("the calibration slope needs at least two distinct forecasts strictly between 0 and 1")
    _refuse_separated(points)
    points = points._replace(value=logit(points.value))
    pooled = pool(points, size=_START_POINTS)
    free = _settled(fit_logistic(points, lambda value: value[None], pooled=pooled))
    at_unit_slope = _settled(fit_logistic(points, _nothing, offset=lambda value: value, pooled=pooled))
    return CalibrationSlope(
        slope=float(free.slopes[0]), intercept=free.intercept, intercept_at_unit_slope=at_unit_slope.intercept
    )


def _nothing(value: FloatArray) -> FloatArray:
    return np.empty((0, value.size))


def _refuse_separated(points: Points) -> None:
    """Refuse outcomes for which the likelihood has no maximum."""
    found = separation(points)
    if found in ("no events", "only events"):
        raise UndefinedError(
            f"every outcome that counts here is {'0' if found == 'no events' else '1'}",
            remedy="the calibration slope needs both kinds",
        )
    if found is not None:
        raise UndefinedError(
            "the forecasts separate the outcomes perfectly, so the calibration slope is infinite",
            remedy="collect more rows",
        )


def _settled(curve: Curve) -> Curve:
    """Refuse a fit that the likelihood is too flat for."""
    if not curve.settled:
        raise UndefinedError(
            "the logistic fit of slope and intercept does not settle: some forecasts are so close to 0 or 1 that the "
            "likelihood is flat",
            remedy=Phrase("pull them inside, {how}, and say so in the report", how=_INSIDE),
        )
    return curve
