"""Results of calibration curves: the curve with its band, and its distances from the diagonal with their limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant.core.results import UNIT, Result
from calibrant.core.types import FloatArray
from calibrant.core.words import level_said, percent

DISTANCES = ("ici", "e50", "e90", "emax", "eci")
"""The numbers that sum up how far a curve is from the diagonal."""

LARGEST = (1.0, 1.0, 1.0, 1.0, 100.0)
"""The largest values that they can have where the curve is a rate."""

_NOT_NEGATIVE = (0.0, math.inf)


@dataclass(frozen=True)
class CurveErrors(Result):
    """Distances |curve(p) - p| between a calibration curve and the diagonal, over the rows.

    Attributes
    ----------
    ici : float
        Their mean, the integrated calibration index.
    e50, e90 : float
        Their median and 90th percentile (R's type 7).
    emax : float
        The largest. A local parabola may leave the range from 0 to 1, so that it can exceed 1 on few rows;
        limits do not.
    eci : float
        100 times the mean of their squares, the estimated calibration index.
    smoother : str
        The curve: "isotonic", "loess", "lowess" or "splines".
    span : float or None
        The share of rows in each local fit; None for curves that have none.
    knots : int or None
        How many knots were asked for; None for curves that have none.
    scale : str
        Where the curve was fitted: on the "probability" scale, or on the "logit" scale.
    ici_lower, ici_upper, e50_lower, e50_upper, e90_lower, e90_upper, emax_lower, emax_upper, eci_lower, eci_upper
        Limits from resamples; None where none were asked for, or where the number is the same in all of them.
    confidence_level : float or None
        Of the limits, each by itself, for many rows.
    interval : str or None
        How the limits were found: "corrected" or "percentile".
    n_resamples : int or None
        Resamples behind them.
    clusters : int or None
        How many clusters were resampled; None for independent rows.
    """

    ici: float
    e50: float
    e90: float
    emax: float
    eci: float
    smoother: str
    span: float | None = None
    knots: int | None = None
    scale: str = "probability"
    ici_lower: float | None = None
    ici_upper: float | None = None
    e50_lower: float | None = None
    e50_upper: float | None = None
    e90_lower: float | None = None
    e90_upper: float | None = None
    emax_lower: float | None = None
    emax_upper: float | None = None
    eci_lower: float | None = None
    eci_upper: float | None = None
    confidence_level: float | None = None
    interval: str | None = None
    n_resamples: int | None = None
    clusters: int | None = None

    _ranges: ClassVar = {
        "confidence_level": UNIT,
        **dict.fromkeys(DISTANCES, _NOT_NEGATIVE),
        **{f"{name}_lower": (0.0, high) for name, high in zip(DISTANCES, LARGEST, strict=True)},
        **{f"{name}_upper": (0.0, high) for name, high in zip(DISTANCES, LARGEST, strict=True)},
    }
    _words: ClassVar = {"scale": ("probability", "logit")}

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in DISTANCES:
            if self.limits(name) is not None:
                self._check_order(f"{name}_lower", f"{name}_upper")

    def limits(self, name: str) -> tuple[float, float] | None:
        """Return the limits of a number, as in ``limits("ici")``; None where there are none.

        Parameters
        ----------
        name : str
            Which number: "ici", "e50", "e90", "emax" or "eci".

        Returns
        -------
        tuple of float, or None
            The lower and the upper limit.
        """
        lower, upper = getattr(self, f"{name}_lower"), getattr(self, f"{name}_upper")
        return None if lower is None or upper is None else (lower, upper)

    def frame(self, backend: Any = None) -> Any:
        """Return one row per number, with its limits."""
        limits = [self.limits(name) or (math.nan, math.nan) for name in DISTANCES]
        lower, upper = zip(*limits, strict=True)
        values = [getattr(self, name) for name in DISTANCES]
        return self._framed(
            {"measure": list(DISTANCES), "value": values, "lower": list(lower), "upper": list(upper)}, backend
        )

    def __str__(self) -> str:
        named = zip(("ICI", "E50", "E90", "Emax", "ECI"), DISTANCES, strict=True)
        if self.confidence_level is None:
            said = ", ".join(f"{word} {getattr(self, name):.5f}" for word, name in named)
            return f"{said} ({self.smoother})"
        counted = "" if self.clusters is None else f" of {self.clusters:,} clusters"
        drawn = f"{self.n_resamples:,} resamples{counted}"
        head = f"{self.smoother} curve, {level_said(self.confidence_level)} limits ({drawn}):"
        found = {name: self.limits(name) for name in DISTANCES}
        ends = {name: "no limits" if pair is None else "{:.5f} to {:.5f}".format(*pair) for name, pair in found.items()}
        lines = [f"  {word:<4} {getattr(self, name):.5f}  {ends[name]}" for word, name in named]
        return "\n".join([head, *lines])


@dataclass(frozen=True, eq=False)
class CalibrationCurve(Result):
    """The event rate against the forecast, by a smoother, with a band.

    Attributes
    ----------
    forecast, rate : array
        The curve, linear between these points. Local fits may leave the range from 0 to 1 a little.
    lower, upper : array
        The band at the same forecasts; empty without one.
    band : str or None
        "pointwise": the level holds at each forecast by itself. "simultaneous": at all forecasts together. None
        without a band.
    confidence_level : float or None
        Of the band, for many rows.
    smoother : str
        The curve: "isotonic", "loess", "lowess" or "splines".
    span : float or None
        The share of rows in each local fit; None for curves that have none.
    knots : int or None
        How many knots were asked for; None for curves that have none.
    scale : str
        Where the curve was fitted: on the "probability" scale, or on the "logit" scale.
    rows : int
        How many rows.
    n_resamples : int or None
        Resamples behind the band.
    clusters : int or None
        How many clusters were resampled; None for independent rows.
    """

    forecast: FloatArray
    rate: FloatArray
    lower: FloatArray
    upper: FloatArray
    band: str | None
    confidence_level: float | None
    smoother: str
    span: float | None
    knots: int | None
    scale: str
    rows: int
    n_resamples: int | None = None
    clusters: int | None = None

    _ranges: ClassVar = {"confidence_level": UNIT, "forecast": UNIT, "lower": UNIT, "upper": UNIT}
    _words: ClassVar = {"scale": ("probability", "logit")}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_order("lower", "upper")

    def frame(self, backend: Any = None) -> Any:
        """Return one row per forecast: the curve and, where there is one, its band."""
        columns = {"forecast": self.forecast, "rate": self.rate}
        if self.band is not None:
            columns |= {"lower": self.lower, "upper": self.upper}
        return self._framed(columns, backend)

    def __str__(self) -> str:
        ends = f"forecasts from {self.forecast[0]:.4f} to {self.forecast[-1]:.4f}"
        said = f"{self.smoother} curve of {self.rows:,} rows at {self.forecast.size:,} {ends}"
        if self.band is None or self.confidence_level is None or self.n_resamples is None:
            return said
        off = float(((self.lower > self.forecast) | (self.upper < self.forecast)).mean())
        counted = "" if self.clusters is None else f" of {self.clusters:,} clusters"
        where = {"pointwise": "at each forecast by itself", "simultaneous": "at all forecasts together"}[self.band]
        return (
            f"{said}, with a band that holds {where} in {level_said(self.confidence_level)} of cases "
            f"({self.n_resamples:,} resamples{counted}); it leaves out the diagonal at {percent(off)} of them"
        )
