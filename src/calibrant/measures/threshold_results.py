"""What was found about forecasts of a real outcome: the worst threshold, and how the error runs over thresholds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.core.results import UNIT, Result
from calibrant.core.types import FloatArray
from calibrant.core.words import counted, measured
from calibrant.measures.results import WorstInterval
from calibrant.rows.distributions import FORECAST_KINDS

_PARTS = {"ensemble": "member", "quantiles": "quantile"}


def at_threshold(threshold: float, interval: WorstInterval) -> str:
    """Say where forecasts are worst: the question, the interval of its forecasts, the direction, the amount."""
    if interval.direction == "none":
        return "At no threshold is any interval of forecasts off."
    return interval.where(off=True, forecasts=f"forecasts that the outcome is at most {threshold:.6g},")


def members_note(members: int) -> str:
    """Say what the step function of an ensemble cannot be."""
    spread, same = 0.25 / members, 0.25 / math.sqrt(members)
    return (
        f"An ensemble of {counted(members, 'member')} drawn from the true law is not calibrated as a step function: "
        f"its error is about {spread:.2g} where true probabilities differ widely between rows, and up to {same:.2g} "
        "where every row has the same law. More members, or a smooth cdf=, lower it."
    )


def quantiles_note(low: float, high: float) -> str:
    """Say how a forecast of quantiles is understood between and beyond them."""
    return (
        "Between two quantiles the forecast is taken to be half-way between their levels, 0 below the lowest quantile "
        f"and 1 from the highest on: nothing is known of it beyond the levels {low:g} and {high:g}."
    )


@dataclass(frozen=True, eq=False)
class ThresholdCalibration(Result):
    """How far probabilities that a real outcome is at most a threshold are off, at the worst threshold.

    Attributes
    ----------
    error : float
        The threshold calibration error: the largest Cutoff calibration error of 1{Z <= t} and F(t) over thresholds t.
    threshold : float
        The threshold that attains it; of several the lowest.
    interval : WorstInterval
        The interval of forecasts F(t) there that attains it, and the direction. Its ``chance`` is that of a threshold
        that was fixed beforehand, not of the worst of many.
    rows : int
        Rows.
    forecast : str
        "ensemble", "quantiles" or "cdf".
    members : int or None
        Members, or quantiles, of each row; None for distribution functions.
    all_thresholds : bool
        Whether the error is the largest over all real numbers, or over a list.
    threshold_count : int
        Thresholds looked at: those of the list, or all at which any forecast or outcome changes.
    crps : float or None
        Mean continuous ranked probability score of the step functions; None for distribution functions.
    crps_gap_bound : float or None
        Twice the integral of the Cutoff error over all thresholds: no recalibration that keeps the order of forecasts
        at each threshold lowers the CRPS on these rows by more. None where thresholds are a list.
    thresholds, cutoffs : array
        Some thresholds, rising, and the Cutoff error at each: those of the list, or percentiles of the outcomes.
    notes : tuple of str
        What to keep in mind for these forecasts.
    """

    error: float
    threshold: float
    interval: WorstInterval
    rows: int
    forecast: str
    members: int | None
    all_thresholds: bool
    threshold_count: int
    crps: float | None
    crps_gap_bound: float | None
    thresholds: FloatArray
    cutoffs: FloatArray
    notes: tuple[str, ...] = ()

    _ranges: ClassVar = {"error": UNIT, "cutoffs": UNIT, **dict.fromkeys(("crps", "crps_gap_bound"), (0.0, math.inf))}
    _words: ClassVar = {"forecast": FORECAST_KINDS}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.thresholds.shape != self.cutoffs.shape:
            self._refuse("cutoffs", self.cutoffs, "not as many as thresholds")
        if np.any(np.diff(self.thresholds) <= 0.0):
            self._refuse("thresholds", self.thresholds, "not rising")

    def __float__(self) -> float:
        return self.error

    def frame(self, backend: Any = None) -> Any:
        """Return one row per threshold: the threshold, and the Cutoff calibration error there."""
        return self._framed({"threshold": self.thresholds, "cutoff": self.cutoffs}, backend)

    def __str__(self) -> str:
        looked = "all thresholds" if self.all_thresholds else counted(self.threshold_count, "listed threshold")
        lines = [
            f"Threshold calibration error {measured(self.error)} over {looked} ({counted(self.rows, 'row')}, "
            f"{self._forecast_said()}).",
            at_threshold(self.threshold, self.interval),
        ]
        if self.crps is not None:
            lines.append(f"The mean CRPS is {self.crps:.4g}{self._gap_said(self.crps)}.")
        lines.append(
            "The worst of many thresholds looks bad by chance too: certify_thresholds() says what holds beyond these "
            "rows."
        )
        return "\n".join(lines + [f"Note: {note}" for note in self.notes])

    def _gap_said(self, crps: float) -> str:
        """Say what recalibration could lower the score by, unless that is all of it."""
        if self.crps_gap_bound is None or self.crps_gap_bound >= crps:
            return ""
        lower = f"would lower it on these rows by at most {self.crps_gap_bound:.3g}"
        return f"; recalibration that keeps the order of forecasts at each threshold {lower}"

    def _forecast_said(self) -> str:
        if self.members is None:
            return "distribution functions"
        return counted(self.members, _PARTS[self.forecast]) + " each"
