"""THE test that decides whether a validation calls forecasts miscalibrated, one for each study."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from calibrant.measures.sampled import Sampled
from calibrant.measures.slope_results import CalibrationTests
from calibrant.measures.slopes import Extremes

WEAK: Final = "weak calibration"
"""Intercept 0 and slope 1 together."""

IN_THE_LARGE: Final = "calibration in the large"
"""As many events as forecast."""

SURE: Final = "sure forecasts"
"""None of the forecasts, all of them 0 or 1, is wrong."""

_ROUNDING = 1e-12  # what is smaller is the dust of sums


class Decision(NamedTuple):
    """The test that decides.

    Attributes
    ----------
    test : str
        Its name.
    pvalue : float
        The chance of a statistic at least as large for calibrated forecasts, approximately, for many rows.
    """

    test: str
    pvalue: float


class Mean(NamedTuple):
    """Calibration in the large: event rate minus mean forecast, and its standard error."""

    value: float
    error: float


def decide(sample: Sampled, tests: CalibrationTests | None, mean: Mean | None, extremes: Extremes) -> Decision | None:
    """Return the test that decides: weak calibration, or where that cannot be tested calibration in the large.

    Forecasts of 0 and 1 alone need neither: one that is wrong refutes them.

    Where forecasts were pulled inside, their logits are a choice of the analyst, so that intercept and slope are too,
    and do not decide. One test alone decides, so that calibrated forecasts are called miscalibrated as often as its
    level says: limits of several numbers, each looked at by itself, would do so twice as often.
    """
    if tests is not None and not _pulled(sample, extremes):
        return Decision(WEAK, tests.weak.pvalue)
    tally = sample.tally
    variance = float(tally.weight @ (tally.forecast * (1.0 - tally.forecast)))
    if variance == 0.0:
        wrong = np.where(tally.forecast == 0.0, tally.outcome, tally.weight - tally.outcome)
        return Decision(SURE, 0.0 if float(wrong.sum()) > _ROUNDING * tally.weight_total else 1.0)
    if sample.why_not_counted is None:  # calibrated forecasts say how much the number of events varies
        return Decision(IN_THE_LARGE, _two_sided(tally.residual_total / math.sqrt(variance)))
    return None if mean is None else Decision(IN_THE_LARGE, _estimated(sample, mean))


def _pulled(sample: Sampled, extremes: Extremes) -> bool:
    if isinstance(extremes, str):
        return False
    forecast = sample.tally.forecast
    return bool(forecast[0] < extremes or forecast[-1] > 1.0 - extremes)


def _estimated(sample: Sampled, mean: Mean) -> float:
    if abs(mean.value) <= _ROUNDING:
        return 1.0
    return 0.0 if mean.error == 0.0 else _two_sided(mean.value / mean.error, sample.cluster_count)


def _two_sided(away: float, clusters: int | None = None) -> float:
    """Return how likely something so many standard errors away is: by the normal law, by Student's for clusters."""
    from scipy.special import ndtr, stdtr

    below = ndtr(-abs(away)) if clusters is None else stdtr(clusters - 1.0, -abs(away))
    return min(2.0 * float(below), 1.0)
