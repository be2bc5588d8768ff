"""Results of logistic recalibration: slope and intercepts with their limits, and tests of both."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant.core.results import UNIT, Result
from calibrant.core.words import level_said

COEFFICIENTS = ("slope", "intercept", "intercept_at_unit_slope")
"""What logistic recalibration fits, in reading order."""


@dataclass(frozen=True)
class CalibrationSlope(Result):
    """Logistic recalibration: logit(event rate) = intercept + slope x logit(forecast).

    Attributes
    ----------
    slope : float
        1 is ideal; below 1 the forecasts are too extreme, above 1 too timid.
    intercept : float
        The intercept fitted together with the slope; 0 is ideal.
    intercept_at_unit_slope : float
        The intercept when the slope is held at 1 ("calibration in the large" on the logit scale); 0 is ideal, below
        0 the forecasts are too high on the whole.
    slope_lower, slope_upper : float or None
        Limits of the slope; None where no confidence level was asked for.
    intercept_lower, intercept_upper : float or None
        Limits of the intercept fitted together with the slope.
    intercept_at_unit_slope_lower, intercept_at_unit_slope_upper : float or None
        Limits of the intercept when the slope is held at 1.
    confidence_level : float or None
        How often, in many repetitions with many rows, limits found in this way hold the true number: of each by itself.
    interval : str or None
        How the limits were found: "profile", "wald", "sandwich" or "bootstrap".
    left_out : int
        Rows with forecasts of exactly 0 or 1, whose logit is infinite, that were left out of the fit.
    contradicted : int
        How many of those turned out wrong.
    rows : int or None
        Rows that the fit rests on.
    clusters : int or None
        How many clusters the limits count; None for independent rows.
    n_resamples : int or None
        Resamples behind the limits; None where none were drawn.
    notes : tuple of str
        What to keep in mind when reading the numbers.
    """

    slope: float
    intercept: float
    intercept_at_unit_slope: float
    slope_lower: float | None = None
    slope_upper: float | None = None
    intercept_lower: float | None = None
    intercept_upper: float | None = None
    intercept_at_unit_slope_lower: float | None = None
    intercept_at_unit_slope_upper: float | None = None
    confidence_level: float | None = None
    interval: str | None = None
    left_out: int = 0
    contradicted: int = 0
    rows: int | None = None
    clusters: int | None = None
    n_resamples: int | None = None
    notes: tuple[str, ...] = ()

    _ranges: ClassVar = {"confidence_level": UNIT, "left_out": (0, math.inf), "contradicted": (0, math.inf)}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.confidence_level is not None:
            for name in COEFFICIENTS:
                self._check_order(f"{name}_lower", f"{name}_upper")

    def frame(self, backend: Any = None) -> Any:
        """Return a row for the slope and each intercept, with their limits."""
        columns: dict[str, Any] = {"name": list(COEFFICIENTS)}
        for column, end in (("estimate", ""), ("lower", "_lower"), ("upper", "_upper")):
            columns[column] = [getattr(self, f"{name}{end}") for name in COEFFICIENTS]
        return self._framed(columns, backend)

    def _written(self, name: str) -> str:
        number, lower = getattr(self, name), getattr(self, f"{name}_lower")
        limits = "" if lower is None else f" [{lower:.4f} to {getattr(self, f'{name}_upper'):.4f}]"
        return f"{number:.4f}{limits}"

    def __str__(self) -> str:
        lines = [
            f"calibration slope {self._written('slope')}, intercept {self._written('intercept')} (with the slope held "
            f"at 1: {self._written('intercept_at_unit_slope')})"
        ]
        if self.confidence_level is not None:
            counted = "" if self.clusters is None else f", {self.clusters:,} clusters"
            lines[0] += f"; {level_said(self.confidence_level)} limits, {self.interval}{counted}"
        return "\n".join((*lines, *(f"Note: {note}" for note in self.notes)))


@dataclass(frozen=True)
class ChiSquareTest(Result):
    """A statistic that is large where a hypothesis is wrong, and how likely one as large is where it is right.

    Attributes
    ----------
    statistic : float
        By how much twice the log-likelihood rises when the hypothesis is given up; or the robust Wald statistic.
    degrees_of_freedom : int
        How many numbers the hypothesis fixes.
    pvalue : float
        The chance of a statistic at least as large where the hypothesis is right and rows (or clusters) are many.
    """

    statistic: float
    degrees_of_freedom: int
    pvalue: float

    _ranges: ClassVar = {"statistic": (0.0, math.inf), "pvalue": UNIT}

    def __str__(self) -> str:
        return f"chi-square {self.statistic:.4f} on {self.degrees_of_freedom} df, p = {self.pvalue:.4g}"


@dataclass(frozen=True)
class CalibrationTests(Result):
    """Tests of logistic recalibration: can slope 1 and intercept 0 be true?

    Attributes
    ----------
    weak : ChiSquareTest
        Intercept 0 and slope 1 together ("weak calibration"), 2 degrees of freedom.
    in_the_large : ChiSquareTest
        Intercept 0 where the slope is 1.
    slope : ChiSquareTest
        Slope 1, whatever the intercept.
    test : str
        "likelihood ratio" for independent 0/1 outcomes of equal weight, otherwise "robust wald".
    rows : int
        Rows that the tests rest on.
    clusters : int or None
        How many clusters the tests count; None for independent rows.
    left_out : int
        Rows with forecasts of exactly 0 or 1 that were left out.
    notes : tuple of str
        What to keep in mind when reading the numbers.
    """

    weak: ChiSquareTest
    in_the_large: ChiSquareTest
    slope: ChiSquareTest
    test: str
    rows: int
    clusters: int | None = None
    left_out: int = 0
    notes: tuple[str, ...] = ()

    def frame(self, backend: Any = None) -> Any:
        """Return a row for each test."""
        names = ("weak", "in_the_large", "slope")
        columns: dict[str, Any] = {"test": list(names)}
        for column in ("statistic", "degrees_of_freedom", "pvalue"):
            columns[column] = [getattr(getattr(self, name), column) for name in names]
        return self._framed(columns, backend)

    def __str__(self) -> str:
        counted = "" if self.clusters is None else f", {self.clusters:,} clusters"
        lines = [
            f"{self.test} tests, {self.rows:,} rows{counted}",
            f"intercept 0 and slope 1: {self.weak}",
            f"intercept 0 where the slope is 1: {self.in_the_large}",
            f"slope 1: {self.slope}",
        ]
        return "\n".join((*lines, *(f"Note: {note}" for note in self.notes)))
