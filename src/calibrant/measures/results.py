"""Results of measuring: errors, where they are, and the functions that attain them."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.core.results import UNIT, Result
from calibrant.core.types import FloatArray
from calibrant.core.words import counted, level_said, measured, of_all, percent, rounded_down, rounded_up, significant
from calibrant.measures.curve_results import CurveErrors
from calibrant.measures.registry import BRACKETED_MEASURES, MEASURES
from calibrant.measures.slope_results import CalibrationSlope
from calibrant.rows.checks import check_number

_NEARLY_NOTHING = 1e-4


def told_apart(low: float, high: float) -> tuple[str, str]:
    """Write two numbers with as few digits, from four on, as keep different ones different."""
    if low == high:
        return significant(low), significant(high)
    for digits in range(4, 17):
        texts = significant(low, digits), significant(high, digits)
        if texts[0] != texts[1]:
            return texts
    return repr(low), repr(high)


def ends_said(low: float, high: float) -> tuple[str, str]:
    """Write the ends of a range of forecasts; a first one that is next to nothing, beside the last, without digits.

    Examples
    --------
    >>> ends_said(0.25, 0.5), ends_said(5.852e-07, 0.641), ends_said(0.00002, 0.0004)
    (('0.25', '0.5'), ('nearly 0', '0.641'), ('0.00002', '0.0004'))
    """
    first, last = told_apart(low, high)
    return ("nearly 0" if 0.0 < low < min(_NEARLY_NOTHING, high / 1000.0) else first), last


@dataclass(frozen=True)
class WorstInterval(Result):
    """The interval of forecasts with the largest residual mass: the witness of the Cutoff calibration error.

    Attributes
    ----------
    low, high : float
        Smallest and largest forecast inside; the interval includes both.
    direction : str
        "too high" (fewer events than forecast), "too low", or "none" when no interval is off.
    error : float
        |mean of (y - p) over all rows, counting only rows inside|: the Cutoff calibration error.
    rows : int
        Rows inside.
    weight : float
        Their total weight.
    share : float
        Their share of the total weight.
    mean_forecast, mean_outcome : float
        Weighted means inside.
    unit_weights : bool
        Whether every row has weight 1.
    chance : float
        The error that the worst interval of perfectly calibrated forecasts like these stays below in about 95% of
        cases: by the large-sample law, or one event where few are expected.
    weights_estimated : bool
        Whether weights were estimated from the rows, some of which were censored: ``chance`` takes them as they are.
    """

    low: float
    high: float
    direction: str
    error: float
    rows: int
    weight: float
    share: float
    mean_forecast: float
    mean_outcome: float
    unit_weights: bool
    chance: float
    weights_estimated: bool = False

    _ranges: ClassVar = dict.fromkeys(("low", "high", "error", "share", "mean_forecast", "mean_outcome"), UNIT)
    _words: ClassVar = {"direction": ("too high", "too low", "none")}

    @property
    def bias(self) -> float:
        """Mean outcome minus mean forecast inside the interval."""
        return self.mean_outcome - self.mean_forecast

    @property
    def within_chance(self) -> bool:
        """Whether perfectly calibrated forecasts would show as much: the error is at most ``chance``."""
        return self.error <= self.chance

    def where(
        self, *, event_rate: float | None = None, off: bool = False, whole: str = "", forecasts: str = "forecasts"
    ) -> str:
        """Say in a sentence or two where the forecasts are worst, and by how much.

        Parameters
        ----------
        event_rate : float, optional
            Say the error per 100 events, of which there are so many in a row, instead of per 100 rows.
        off : bool
            Whether it is known that forecasts are off, so that nothing is put down to chance.
        whole : str
            What the share is a share of, where these are not all rows, as in "of its rows".
        forecasts : str
            What the forecasts are called, where more is to be said of them.
        """
        if self.direction == "none":
            return "No interval of forecasts is off."
        where = self._which()
        share, points = f"{percent(self.share)} {whole or of_all(self.unit_weights)}", self._points()
        amount = f"{self._per_hundred()} per 100 {whole or 'rows'}"
        if event_rate:
            amount = f"{measured(100.0 * self.error / event_rate, 1)} per 100 events"
        if self.within_chance and not off:
            return (
                f"No interval is off by more than {self._chance()}. The largest deviation is on {forecasts} {where} "
                f"({share}): {points} points {self.direction}."
            )
        subject = f"{forecasts[:1].upper()}{forecasts[1:]} {where}"
        return f"{subject} ({share}) are {points} points {self.direction} on average: {amount}."

    def __str__(self) -> str:
        if self.direction == "none":
            return "No interval of forecasts is off: on every one the mean forecast equals the mean outcome."
        rows = "this 1 row" if self.rows == 1 else f"these {self.rows:,} rows"
        facts = (
            f"on {rows} ({percent(self.share)} {of_all(self.unit_weights)}) the mean forecast is "
            f"{percent(self.mean_forecast)} and the event rate is {percent(self.mean_outcome)}"
        )
        spread = (
            f"Spread over all rows that is {self._per_hundred()} per 100 rows (Cutoff error {measured(self.error)})"
        )
        if self.within_chance:
            return (
                f"No interval of forecasts is off by more than {self._chance()}. The largest deviation is on forecasts "
                f"{self._which()}: {facts}. {spread}, and calibrated forecasts like these stay below "
                f"{measured(min(self.chance, 1.0))} in about 95% of cases."  # no more than about, where rows are few
            )
        return (
            f"Forecasts {self._which()} are {self.direction} by {self._points()} percentage points on average: "
            f"{facts}. {spread}, and no other interval reaches more."
        )

    def _chance(self) -> str:
        return "chance shows" + (", with weights, which are estimates, as they are" if self.weights_estimated else "")

    def _which(self) -> str:
        if self.low == self.high:
            return f"of exactly {significant(self.low)}"
        low, high = ends_said(self.low, self.high)
        return f"between {low} and {high}"

    def _points(self) -> str:
        return measured(100.0 * abs(self.bias), 1)

    def _per_hundred(self) -> str:
        return measured(100.0 * self.error, 2)


@dataclass(frozen=True)
class Bracket(Result):
    """Two ends between which an exact value lies for certain, found from totals per cell alone.

    Attributes
    ----------
    measure : str
        "cutoff" or "smooth".
    low, high : float
        The ends. They contain the exact value whatever the rows inside the cells are, and draw together with more bits.
    method : str or None
        The method whose upper confidence limit is bracketed; None for the error of the rows themselves.
    confidence_level : float or None
        Of that limit.
    bits : int
        The cells have width 2^-bits.
    rows : int
        Rows.
    assumptions : tuple of str
        What the limit rests on.
    """

    measure: str
    low: float
    high: float
    method: str | None
    confidence_level: float | None
    bits: int
    rows: int
    assumptions: tuple[str, ...] = ()

    _ranges: ClassVar = dict.fromkeys(("low", "high", "confidence_level"), UNIT)
    _words: ClassVar = {"measure": BRACKETED_MEASURES}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_order("low", "high")

    def __str__(self) -> str:
        name = MEASURES.words(self.measure)
        ends = f"between {rounded_down(self.low, 5)} and {rounded_up(self.high, 5)}"
        cells = f"from cells of width 2^-{self.bits}, no row looked at one by one"
        if self.method is None or self.confidence_level is None:
            return f"The {name} of these {self.rows:,} rows lies {ends} ({cells})."
        return (
            f"The upper limit of the {name} by the {self.method} method lies {ends} ({self.rows:,} rows, {cells}): "
            f"with {level_said(self.confidence_level)} confidence the error of the population is at most "
            f"{rounded_up(self.high, 5)}.\nThis assumes that {'; '.join(self.assumptions)}."
        )


@dataclass(frozen=True, eq=False)
class Witness(Result):
    """A weight function that attains a calibration error, so that anyone can check the number.

    The value is sum R_k w(v_k) / W over the distinct forecasts v_k with residual totals R_k and total weight W.

    Attributes
    ----------
    forecast : array
        The distinct forecasts.
    weight : array
        The function's value at each, in [-1, 1].
    value : float
        The calibration error it attains.
    """

    forecast: FloatArray
    weight: FloatArray
    value: float

    def frame(self, backend: Any = None) -> Any:
        """Return forecast and weight as a data frame."""
        return self._framed({"forecast": self.forecast, "weight": self.weight}, backend)

    def __str__(self) -> str:
        return f"weight function on {self.forecast.size:,} forecasts that attains {self.value:.6g}"

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class Spectrum(Result):
    """Weighted calibration error against the total variation M allowed: from mean bias to the ECE plug-in.

    Piecewise linear and concave between the knots; constant after the last.

    Attributes
    ----------
    variation : array
        The knots M, starting at 0.
    error : array
        The error at each knot.
    """

    variation: FloatArray
    error: FloatArray

    def at(self, variation: float) -> float:
        """Return the error for weights of total variation at most ``variation``.

        Parameters
        ----------
        variation : float, 0 or more
            The largest total variation of the weights.

        Returns
        -------
        float
            The error.
        """
        limit = check_number(variation, "variation", low=0.0)
        return float(np.interp(limit, self.variation, self.error))

    def frame(self, backend: Any = None) -> Any:
        """Return the knots as a data frame."""
        return self._framed({"variation": self.variation, "error": self.error}, backend)

    def __str__(self) -> str:
        return (
            f"calibration error from {self.error[0]:.6g} (constant weights) to {self.error[-1]:.6g} (all weights, "
            f"reached at total variation {self.variation[-1]:g})"
        )

    __repr__ = __str__


@dataclass(frozen=True)
class CalibrationDistance(Result):
    """An interval that contains the distance from calibration of these forecasts and outcomes.

    Attributes
    ----------
    low, high : float
        The ends.
    low_from, high_from : str
        The relation each end comes from.
    """

    low: float
    high: float
    low_from: str
    high_from: str

    _ranges: ClassVar = dict.fromkeys(("low", "high"), UNIT)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_order("low", "high")

    def __str__(self) -> str:
        return (
            f"distance from calibration between {rounded_down(self.low, 5)} ({self.low_from}) and "
            f"{rounded_up(self.high, 5)} ({self.high_from})"
        )


PAPER = "Rossellini et al. 2025"
PROJECT = "this project"
"""Where a relation is from."""


@dataclass(frozen=True)
class Relation(Result):
    """An inequality between measures, evaluated on these data.

    Attributes
    ----------
    statement : str
        The inequality in words and symbols.
    left, right : float
        Its two sides.
    holds : bool
        Whether left <= right, up to rounding.
    source : str
        The paper's proposition, or this project.
    """

    statement: str
    left: float
    right: float
    holds: bool
    source: str

    def __str__(self) -> str:
        mark = "holds" if self.holds else "FAILS"
        return f"{self.statement}: {self.left:.6g} <= {self.right:.6g} {mark} ({self.source})"


LIMITS = {"distance.low": rounded_down, "distance.high": rounded_up}
"""Numbers of the table of measures that are limits, and how each is rounded outwards."""


def written(name: str, value: float) -> str:
    """Write a number of the table of measures: limits are rounded outwards."""
    return LIMITS[name](value, 5) if name in LIMITS else f"{value:.5f}"


@dataclass(frozen=True)
class Measures(Result):
    """Every calibration measure of one set of forecasts and outcomes.

    Attributes
    ----------
    rows, distinct_forecasts : int
        How many rows, on how many different forecasts.
    weight_total : float
        Sum of the weights; the number of rows for unit weights.
    mean_forecast, mean_outcome : float
        Weighted means.
    brier : float
        Mean of (y - p)^2.
    cutoff : float
        Cutoff calibration error: the largest residual mass of an interval of forecasts.
    ks : float
        The same for intervals that start at 0.
    smooth : float
        The largest mean of w(p) (y - p) over 1-Lipschitz w with values in [-1, 1].
    bounded_variation : float
        The same over w of total variation at most 2.
    ece : float
        ECE plug-in over the distinct forecasts; see the notes when forecasts are nearly continuous.
    ece_binned : float
        ECE of the forecasts rounded into 15 bins of equal width.
    risk_gap : float
        The most that re-drawing the line between acting and not acting would have saved per row, at any threshold.
    calibration_in_the_large : float
        Mean outcome minus mean forecast.
    observed_expected_ratio : float or None
        Mean outcome over mean forecast; None when the mean forecast is 0, or next to it.
    slope : CalibrationSlope or None
        Logistic recalibration; None when no finite fit exists (the notes say why).
    curve : CurveErrors
        ICI, E50, E90 and the largest distance, for the isotonic calibration curve.
    distance : CalibrationDistance
        An interval that contains the distance from calibration.
    effective_support : int
        Fewest forecasts that carry 95% of the weight.
    worst_interval : WorstInterval
        Where the Cutoff error is.
    relations : tuple of Relation
        Inequalities between the measures, checked on these data.
    notes : tuple of str
        What to keep in mind when reading the numbers.
    spectrum : Spectrum or None
        Error against total variation, when asked for.
    others : tuple of (str, float)
        Name and value of measures listed in `measures.registry` that have no field above; empty where the forecasts are
        too many to tell apart.
    """

    rows: int
    distinct_forecasts: int
    weight_total: float
    mean_forecast: float
    mean_outcome: float
    brier: float
    cutoff: float
    ks: float
    smooth: float
    bounded_variation: float
    ece: float
    ece_binned: float
    risk_gap: float
    calibration_in_the_large: float
    observed_expected_ratio: float | None
    slope: CalibrationSlope | None
    curve: CurveErrors
    distance: CalibrationDistance
    effective_support: int
    worst_interval: WorstInterval
    relations: tuple[Relation, ...]
    notes: tuple[str, ...]
    spectrum: Spectrum | None = None
    others: tuple[tuple[str, float], ...] = ()

    _ranges: ClassVar = dict.fromkeys(
        (
            "mean_forecast",
            "mean_outcome",
            "brier",
            "cutoff",
            "ks",
            "smooth",
            "bounded_variation",
            "ece",
            "ece_binned",
            "risk_gap",
        ),
        UNIT,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in self.others:
            if name not in MEASURES:
                self._refuse("others", name, f"not one of {', '.join(MEASURES)}")
            self._check_numbers("others", value)

    def table(self) -> list[tuple[str, float | None, str]]:
        """Return (name, value, what it means) for every number, in reading order.

        Names are those of attributes, here and in JSON: "curve.ici" is ``measures.curve.ici``.
        """
        slope = self.slope
        left_out = 0 if slope is None else slope.left_out
        aside = f"; {counted(left_out, 'row')} at 0 or 1 left out" if left_out else ""
        return [
            ("cutoff", self.cutoff, "largest error collected on an interval of forecasts"),
            ("ks", self.ks, "the same, intervals starting at 0"),
            ("smooth", self.smooth, "largest error against smooth weights"),
            ("bounded_variation", self.bounded_variation, "largest error against weights of variation 2"),
            ("ece", self.ece, "ECE plug-in, forecast by forecast"),
            ("ece_binned", self.ece_binned, "ECE of the forecasts rounded into 15 bins"),
            ("risk_gap", self.risk_gap, "most that re-drawing the line of a decision saves per row"),
            ("distance.low", self.distance.low, "distance from calibration is at least this"),
            ("distance.high", self.distance.high, "... and at most this"),
            ("calibration_in_the_large", self.calibration_in_the_large, "event rate minus mean forecast"),
            ("observed_expected_ratio", self.observed_expected_ratio, "event rate / mean forecast; 1 is ideal"),
            ("slope.slope", None if slope is None else slope.slope, f"below 1: forecasts too extreme{aside}"),
            ("slope.intercept", None if slope is None else slope.intercept, "fitted with the slope; 0 is ideal"),
            (
                "slope.intercept_at_unit_slope",
                None if slope is None else slope.intercept_at_unit_slope,
                "below 0: forecasts too high",
            ),
            ("curve.ici", self.curve.ici, f"mean distance of the {self.curve.smoother} curve from the diagonal"),
            ("curve.e50", self.curve.e50, "its median"),
            ("curve.e90", self.curve.e90, "its 90th percentile"),
            ("brier", self.brier, "mean squared error of the forecasts"),
            *((name, value, MEASURES[name].meaning) for name, value in self.others),
        ]

    def table_lines(self) -> list[str]:
        """Write the table, a line for each number."""
        return [
            f"  {name:<29} {'-' if value is None else written(name, value):>9}  {meaning}"
            for name, value, meaning in self.table()
        ]

    def frame(self, backend: Any = None) -> Any:
        """Return one row per number: measure, value, meaning."""
        names, values, meanings = zip(*self.table(), strict=True)
        return self._framed({"measure": list(names), "value": list(values), "meaning": list(meanings)}, backend)

    def headline(self) -> str:
        """Say what was measured."""
        weight = "" if self.weight_total == self.rows else f", total weight {self.weight_total:g}"
        return (
            f"{counted(self.rows, 'row')}{weight}, {counted(self.distinct_forecasts, 'distinct forecast')}, "
            f"mean forecast {percent(self.mean_forecast)}, event rate {percent(self.mean_outcome)}"
        )

    def _footnotes(self) -> list[str]:
        failed = [relation for relation in self.relations if not relation.holds]
        checked = f"{len(self.relations)} relations between the measures checked, "
        lines = [str(self.worst_interval), checked + ("all hold." if not failed else f"{len(failed)} FAIL:")]
        return lines + [str(relation) for relation in failed] + [f"Note: {note}" for note in self.notes]

    def __str__(self) -> str:
        return "\n".join([self.headline(), *self.table_lines(), *self._footnotes()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{'-' if value is None else written(name, value)}</td>"
            f"<td style='text-align:left'>{html.escape(meaning)}</td></tr>"
            for name, value, meaning in self.table()
        )
        notes = "".join(f"<p>{html.escape(line)}</p>" for line in self._footnotes())
        return f"<p>{html.escape(self.headline())}</p><table><tbody>{cells}</tbody></table>{notes}"
