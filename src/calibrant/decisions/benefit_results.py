"""Results about net benefit: one model at thresholds, and several models' decision curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.core.results import UNIT, PerPart, Result
from calibrant.core.types import FloatArray
from calibrant.core.words import level_said

LIMITED = ("net_benefit", "treat_all", "gain", "standardized", "interventions_avoided", "band", "gain_band")
"""What may have limits: fields that end in _lower and _upper."""


@dataclass(frozen=True, eq=False)
class NetBenefit(Result):
    """Net benefit of acting on forecasts from a threshold up, as in decision curve analysis.

    Everything is a float for one threshold and an array, with one value per threshold, for several. Limits are None
    unless a confidence level was given.

    Attributes
    ----------
    threshold : float or array
        The thresholds.
    net_benefit : float or array
        True positives minus false positives at the exchange rate threshold/(1 - threshold), per row.
    treat_all : float or array
        The same for acting on every row.
    treat_none : float or array
        The same for acting on none: 0.
    gain : float or array
        Net benefit less that of the better of treating all and treating none.
    standardized : float, array or None
        Net benefit as a share of the event rate, the largest there is: 1 is perfect. None where there are no events.
    interventions_avoided : float or array
        How many fewer rows of 100 are acted on than by treating all, after each event missed on the way is paid for at
        the exchange rate.
    mean_outcome : float
        Mean of the outcomes of the rows.
    prevalence : float or None
        The event rate that stood in for the rows' own, as for case-control data; None where that counts.
    net_benefit_lower, net_benefit_upper, treat_all_lower, treat_all_upper : float, array or None
        Limits of net benefit and of treating all, at each threshold by itself.
    gain_lower, gain_upper, standardized_lower, standardized_upper : float, array or None
        Limits of gain and standardized, likewise; None for standardized where many resamples have no events.
    interventions_avoided_lower, interventions_avoided_upper : float, array or None
        Limits of interventions_avoided, likewise.
    band_lower, band_upper : float, array or None
        Limits of net benefit that hold at all thresholds together.
    gain_band_lower, gain_band_upper : float, array or None
        Limits of gain that hold at all thresholds together.
    confidence_level : float or None
        How often, in many repetitions with many rows, limits found in this way hold the true number.
    interval : str or None
        How limits were found: "delta" or "bootstrap".
    rows : int
        How many rows.
    clusters : int or None
        How many clusters the limits count; None for independent rows.
    n_resamples : int or None
        Resamples behind the limits; None where none were drawn.
    notes : tuple of str
        What to keep in mind when reading the numbers.
    """

    threshold: float | FloatArray
    net_benefit: float | FloatArray
    treat_all: float | FloatArray
    treat_none: float | FloatArray
    gain: float | FloatArray
    standardized: float | FloatArray | None
    interventions_avoided: float | FloatArray
    mean_outcome: float
    prevalence: float | None
    rows: int
    net_benefit_lower: float | FloatArray | None = None
    net_benefit_upper: float | FloatArray | None = None
    treat_all_lower: float | FloatArray | None = None
    treat_all_upper: float | FloatArray | None = None
    gain_lower: float | FloatArray | None = None
    gain_upper: float | FloatArray | None = None
    standardized_lower: float | FloatArray | None = None
    standardized_upper: float | FloatArray | None = None
    interventions_avoided_lower: float | FloatArray | None = None
    interventions_avoided_upper: float | FloatArray | None = None
    band_lower: float | FloatArray | None = None
    band_upper: float | FloatArray | None = None
    gain_band_lower: float | FloatArray | None = None
    gain_band_upper: float | FloatArray | None = None
    confidence_level: float | None = None
    interval: str | None = None
    clusters: int | None = None
    n_resamples: int | None = None
    notes: tuple[str, ...] = ()

    _ranges: ClassVar = dict.fromkeys(("threshold", "mean_outcome", "prevalence", "confidence_level"), UNIT)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in LIMITED:
            if getattr(self, f"{name}_lower") is not None:
                self._check_order(f"{name}_lower", f"{name}_upper")

    @property
    def event_rate(self) -> float:
        """The event rate that counts: the prevalence given, or the rows' own."""
        return self.mean_outcome if self.prevalence is None else self.prevalence

    def frame(self, backend: Any = None) -> Any:
        """Return one row per threshold; limits follow the number that they are of."""
        return self._framed(self.columns(), backend)

    def columns(self) -> dict[str, FloatArray]:
        """Return the columns of the frame."""
        names = ["threshold", "net_benefit", "treat_all", "treat_none", "gain", "standardized", "interventions_avoided"]
        columns = {}
        for name in (*names, "band", "gain_band"):
            for column in (name, f"{name}_lower", f"{name}_upper"):
                if getattr(self, column, None) is not None:
                    columns[column] = np.atleast_1d(getattr(self, column))
        return columns

    def finding(self) -> str:
        """Say what was found, without notes."""
        return self._at_one() if np.size(self.threshold) == 1 else self._at_several()

    def __str__(self) -> str:
        return "\n".join((self.finding(), *(f"Note: {note}" for note in self.notes)))

    def _at_one(self) -> str:
        threshold, benefit, gain, everybody = (
            float(np.atleast_1d(each)[0]) for each in (self.threshold, self.net_benefit, self.gain, self.treat_all)
        )
        simple = "treating all" if everybody > 0.0 else "treating none"
        said = (
            f"At threshold {threshold:.4g} the net benefit is {benefit:.5f} per row{self._between('net_benefit')}; "
            f"that of {simple}, the better of the two without forecasts, is {max(everybody, 0.0):.5f}."
        )
        if self.confidence_level is None:
            return said
        return f"{said} The forecasts add {gain:.5f}{self._between('gain')}."

    def _between(self, name: str) -> str:
        if self.confidence_level is None:
            return ""
        lower, upper = (float(np.atleast_1d(getattr(self, f"{name}_{end}"))[0]) for end in ("lower", "upper"))
        return f" ({level_said(self.confidence_level)} limits {lower:.5f} to {upper:.5f})"

    def _at_several(self) -> str:
        threshold = np.atleast_1d(self.threshold)
        above = int(np.count_nonzero(np.atleast_1d(self.gain) > 0.0))
        said = (
            f"net benefit at {threshold.size:,} thresholds from {threshold.min():.4g} to {threshold.max():.4g}: above "
            f"that of treating all and of treating none at {above:,} of them"
        )
        if self.confidence_level is None:
            return said
        level = level_said(self.confidence_level)
        together = self.gain_band_lower is not None
        lower, upper = (np.atleast_1d(getattr(self, f"gain{'_band' * together}_{end}")) for end in ("lower", "upper"))
        surely, never = int(np.count_nonzero(lower > 0.0)), int(np.count_nonzero(upper < 0.0))
        how = "at all thresholds together" if together else "at each threshold by itself"
        said = f"{said}; {level} limits of what forecasts add to the better of the two, {how}, "
        return f"{said}lie above 0 at {surely:,} and below 0 at {never:,}"

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class DecisionCurve(PerPart[NetBenefit], Result):
    """Net benefit of several models, or of one, at the same thresholds: decision curves.

    ``curve["name"]`` is the `NetBenefit` of a model.

    Attributes
    ----------
    models : tuple of str
        The models' names, in the order given.
    curves : tuple of NetBenefit
        The net benefit of each, with its own limits.
    threshold : float or None
        The threshold that the reader decides by, if it was named.
    """

    models: tuple[str, ...]
    curves: tuple[NetBenefit, ...]
    threshold: float | None = None

    _names: ClassVar = "models"
    _parts: ClassVar = "curves"
    _ranges: ClassVar = {"threshold": UNIT}

    @property
    def thresholds(self) -> FloatArray:
        """The thresholds of all curves."""
        return np.atleast_1d(self.curves[0].threshold)

    def frame(self, backend: Any = None) -> Any:
        """Return one row per model and threshold."""
        return self._framed(self.columns(), backend)

    def columns(self) -> dict[str, Any]:
        """Return the columns of the frame."""
        parts = [each.columns() for each in self.curves]
        sizes = [each["threshold"].size for each in parts]
        columns: dict[str, Any] = {"model": np.repeat(self.models, sizes)}
        for name in dict.fromkeys(name for each in parts for name in each):
            missing = (np.full(size, np.nan) for size in sizes)  # one may have no limits of it
            columns[name] = np.concatenate([each.get(name, gone) for each, gone in zip(parts, missing, strict=True)])
        return columns

    def best(self) -> tuple[str, ...]:
        """Return, for each threshold, what has the largest net benefit: a model, "treat all" or "treat none"."""
        first = self.curves[0]
        rows = [np.atleast_1d(first.treat_none), np.atleast_1d(first.treat_all)]
        rows += [np.atleast_1d(each.net_benefit) for each in self.curves]
        names = ("treat none", "treat all", *self.models)
        return tuple(names[k] for k in np.argmax(np.stack(rows), axis=0))

    def __str__(self) -> str:
        best, size = self.best(), self.thresholds.size
        lines = [
            f"net benefit of {len(self.models):,} model{'s' * (len(self.models) > 1)} at {size:,} thresholds from "
            f"{self.thresholds.min():.4g} to {self.thresholds.max():.4g}; how often each is best:"
        ]
        counts = {name: best.count(name) for name in ("treat none", "treat all", *self.models)}
        lines += [f"  {name}: at {counts[name]:,}" for name in counts if counts[name] or name in self.models]
        for name, each in self.pairs():
            lines.append(f"{name}: {each}")
        return "\n".join(lines)

    __repr__ = __str__
