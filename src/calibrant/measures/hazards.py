"""The calibration slope on the scale of hazards, as survival analysts report it."""

from __future__ import annotations

import math
from typing import NamedTuple, overload

import numpy as np

from calibrant.core.errors import InputError, UndefinedError
from calibrant.core.frames import frames_follow
from calibrant.core.laws import limit_reach
from calibrant.core.types import FloatArray, IntArray
from calibrant.measures.estimates import Estimate
from calibrant.rows.checks import check_confidence
from calibrant.rows.horizons import HorizonRows
from calibrant.rows.incidence import COMPETING
from calibrant.rows.runs import group_sizes, group_starts, grouped

_MOST_STEPS = 50
_STEEPEST = 50.0


@overload
def cox_slope(rows: HorizonRows, *, confidence_level: None = None) -> float: ...


@overload
def cox_slope(rows: HorizonRows, *, confidence_level: float) -> Estimate: ...


@frames_follow
def cox_slope(rows: HorizonRows, *, confidence_level: float | None = None) -> float | Estimate:
    """Calibration slope of survival forecasts: how much steeper hazards rise than forecasts say.

    The coefficient of log(-log(1 - p)) in a Cox regression of the time to the event, with follow-up cut at the horizon
    and Efron's rule for ties. 1 is ideal, below 1 forecasts are too extreme. For forecasts of a proportional hazards
    model it is the slope of its linear predictor, which CalibrationCurves and others print. It supposes that hazards
    are proportional and looks at when events happen, where `calibration_slope_intercept` asks whether they have
    happened by the horizon: the two agree in what they call ideal, not in their values otherwise.

    Parameters
    ----------
    rows : HorizonRows
        From `horizon`, without competing events.
    confidence_level : float, optional
        How often the limits, by the curvature of the partial likelihood, are to hold the slope; without a level the
        number comes alone.

    Returns
    -------
    float, or Estimate with a confidence level

    References
    ----------
    Van Houwelingen (2000), Validation, calibration, revision and combination of prognostic survival models.

    Examples
    --------
    >>> from calibrant import horizon
    >>> rows = horizon([1, 2, 3, 4, 5, 6, 7], [1, 1, 0, 1, 1, 0, 0], [0.8, 0.4, 0.7, 0.6, 0.3, 0.3, 0.2], at=5)
    >>> round(cox_slope(rows), 3)
    2.165
    """
    if not isinstance(rows, HorizonRows):
        raise InputError(
            "holds no times", argument="rows", remedy="pass what horizon(time, event, y_prob, at=...) returns"
        )
    if (rows.code == COMPETING).any():
        raise InputError(
            "holds competing events, and hazards of one event say nothing about its risk beside others",
            argument="rows",
            remedy="take calibration_slope_intercept, which counts them",
        )
    sure = np.flatnonzero((rows.y_prob == 0.0) | (rows.y_prob == 1.0))
    if sure.size:
        raise UndefinedError(
            f"is {rows.y_prob[sure[0]]:g}, where log(-log(1 - p)) is infinite",
            argument="y_prob",
            position=int(sure[0]),
            value=rows.y_prob[sure[0]].item(),
            remedy="leave such rows out, or pull all forecasts inside, and say so",
        )
    level = None if confidence_level is None else check_confidence(confidence_level)
    risks = _Risks.of(rows)
    slope, curvature = risks.fitted()
    if level is None:
        return slope
    reach = limit_reach(level) / math.sqrt(curvature)
    return Estimate("cox_slope", slope, slope - reach, slope + reach, level, "wald", rows.y_prob.size)


class _Risks(NamedTuple):
    """Rows from the longest follow-up to the shortest: who was at risk when an event happened, and who had it.

    Attributes
    ----------
    value : array
        Of log(-log(1 - p)), about its mean.
    events : array of int
        The rows with events, at each time together.
    through : array of int
        For each event, the last row that was at risk then.
    starts, sizes : arrays of int
        Where the events of each time begin, and how many there are.
    share : array
        By how much the other events of its time are no longer at risk, for each event (Efron).
    """

    value: FloatArray
    events: IntArray
    through: IntArray
    starts: IntArray
    sizes: IntArray
    share: FloatArray

    @classmethod
    def of(cls, rows: HorizonRows) -> _Risks:
        order = np.argsort(-np.minimum(rows.time, rows.at), kind="stable")
        time = np.minimum(rows.time, rows.at)[order]
        value = np.log(-np.log1p(-rows.y_prob[order]))
        events = np.flatnonzero(rows.y_true[order])
        if not events.size or value.min() == value.max():
            what = "at least one event" if not events.size else "at least two distinct forecasts"
            raise UndefinedError(f"the slope needs {what}", remedy="collect more rows")
        through = np.searchsorted(-time, -time[events], side="right") - 1
        starts = group_starts(through)
        sizes = group_sizes(starts, events.size)
        share = (np.arange(events.size) - np.repeat(starts, sizes)) / np.repeat(sizes, sizes)
        return cls(value - value.mean(), events, through, starts, sizes, share)

    def fitted(self) -> tuple[float, float]:
        """Return the slope at which the partial likelihood is largest, and its curvature there."""
        slope, best = 0.0, -math.inf
        step = 0.0
        for _ in range(_MOST_STEPS):
            height, rise, curvature = self.likelihood(slope)
            if height < best - 1e-12 * abs(best):  # too far: half of the way
                step /= 2.0
                slope -= step
                continue
            best = height
            if curvature <= 0.0:
                break
            step = rise / curvature
            if abs(step) <= 1e-12 * max(abs(slope), 1.0):
                return slope + step, curvature
            slope += step
            if abs(slope) > _STEEPEST:
                break
        raise UndefinedError(
            "the forecasts rank the events so well, or so badly, that the slope on the scale of hazards is infinite",
            remedy="collect more rows",
        )

    def likelihood(self, slope: float) -> tuple[float, float, float]:
        """Return the logarithm of the partial likelihood, its slope, and its curvature downwards."""
        exponent = slope * self.value
        hazard = np.exp(exponent - exponent.max())
        sums = []
        for power in range(3):
            each = hazard * self.value**power
            those = np.repeat(grouped(each[self.events], self.starts), self.sizes)
            sums.append(np.cumsum(each)[self.through] - self.share * those)
        total, first, second = sums
        mean = first / total
        height = float((exponent[self.events] - exponent.max() - np.log(total)).sum())
        rise = float((self.value[self.events] - mean).sum())
        return height, rise, float((second / total - mean * mean).sum())
