"""The frozen result types: documented fields, a sentence or a table as text, HTML for notebooks, a dict for files."""

from __future__ import annotations

import html
import importlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from calibrant.validation import BoolArray, FloatArray, IntArray, check_forecasts, check_number, check_thresholds

SCHEMA = "calibrant/1"
"""Version of the shape that `to_dict` gives; it changes when a field changes its meaning or its name."""


@dataclass(frozen=True, eq=False)
class Result:
    """What every result can do: become a dict, JSON, or HTML, and be compared."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for JSON: arrays become lists, undefined numbers None."""
        values = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        return {"schema": SCHEMA, "type": type(self).__name__, **values}

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Rebuild a result from what `to_dict` returned, or from its JSON after json.loads."""
        if not isinstance(data, dict):
            raise ValueError(f"a {cls.__name__} is rebuilt from the dict that its to_dict() returned, got {data!r}")
        kind = {kind.__name__: kind for kind in _kinds(Result)}.get(str(data.get("type")))
        if kind is None or not issubclass(kind, cls):
            raise ValueError(f"type is {data.get('type')!r}, not a {cls.__name__}; pass what its to_dict() returned")
        if data.get("schema", SCHEMA) != SCHEMA:
            raise ValueError(f"schema is {data['schema']!r}, this version of calibrant reads {SCHEMA!r}")
        names = {field.name: str(field.type) for field in fields(kind)}
        missing = [name for name in names if name not in data]
        if missing:
            raise ValueError(f"{missing[0]} is missing from this {kind.__name__}; pass all that to_dict() returned")
        return kind(**{name: _rebuilt(data[name], annotation) for name, annotation in names.items()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild a result from the text that `to_json` returned."""
        return cls.from_dict(json.loads(text))

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def __eq__(self, other: object) -> bool:
        """Compare by content, arrays included (results without arrays have a quicker way of their own)."""
        return isinstance(other, Result) and self.to_dict() == other.to_dict()


def _kinds(base: type[Result]) -> list[type[Any]]:
    return [kind for child in base.__subclasses__() for kind in (child, *_kinds(child))]


def _rebuilt(value: Any, annotation: str) -> Any:
    """Undo `_plain`, as the field's annotation says: arrays, tuples, nested results, undefined numbers."""
    if isinstance(value, dict):
        return Result.from_dict(value)
    if "Array" in annotation and isinstance(value, list):
        return np.array([math.nan if item is None else item for item in value])
    if annotation == "float" and value is None:
        return math.nan
    if isinstance(value, list):
        return tuple(_rebuilt(item, "") for item in value)
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Result):
        plain = value.to_dict()
        del plain["schema"]  # stated once, by the result that holds the others
        return plain
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value.tolist()]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def as_frame(columns: dict[str, Any]) -> Any:
    """Return columns as a pandas or polars data frame, whichever is installed (pandas first)."""
    for library in ("pandas", "polars"):
        try:
            module = importlib.import_module(library)
        except ImportError:
            continue
        return module.DataFrame(columns)
    raise ImportError("frame() needs pandas or polars; install one of them, as in: pip install pandas")


def percent(share: float) -> str:
    """Write a probability or share as a percentage with as many digits as it deserves."""
    value = 100.0 * share
    digits = 1 if 1.0 <= abs(value) <= 99.0 or value in (0.0, 100.0) else 2
    return f"{value:.{digits}f}%"


def rounded_up(limit: float, digits: int = 4) -> str:
    """Write an upper limit so that what is written is a limit too."""
    return f"{math.ceil(limit * 10**digits - 1e-6) / 10**digits + 0.0:.{digits}f}"


def rounded_down(limit: float, digits: int = 4) -> str:
    """Write a lower limit so that what is written is a limit too."""
    return f"{math.floor(limit * 10**digits + 1e-6) / 10**digits + 0.0:.{digits}f}"


def _whole(unit_weights: bool) -> str:
    """Say what a share is a share of."""
    return "of all rows" if unit_weights else "of the weight"


def _level(level: float) -> str:
    """Write a confidence level with as many digits as it takes not to read like certainty."""
    text = percent(level).replace(".0%", "%")
    return f"{100.0 * level:.15g}%" if text == "100.00%" else text


def _told_apart(low: float, high: float) -> tuple[str, str]:
    """Write two different numbers with as few digits, from four on, as keep them different."""
    for digits in range(4, 17):
        texts = f"{low:.{digits}g}", f"{high:.{digits}g}"
        if texts[0] != texts[1]:
            return texts
    return repr(low), repr(high)


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

    @property
    def bias(self) -> float:
        """Mean outcome minus mean forecast inside the interval."""
        return self.mean_outcome - self.mean_forecast

    def __str__(self) -> str:
        if self.direction == "none":
            return "No interval of forecasts is off: on every one the mean forecast equals the mean outcome."
        if self.low == self.high:
            which = f"Forecasts of exactly {self.low:.4g}"
        else:
            low, high = _told_apart(self.low, self.high)
            which = f"Forecasts between {low} and {high}"
        rows = "this 1 row" if self.rows == 1 else f"these {self.rows:,} rows"
        whole = _whole(self.unit_weights)
        return (
            f"{which} are {self.direction} by {100.0 * abs(self.bias):.2f} percentage points on average: on {rows} "
            f"({percent(self.share)} {whole}) the mean forecast is {percent(self.mean_forecast)} and the event rate is "
            f"{percent(self.mean_outcome)}. Spread over all rows that is {self.error:.5f}, and no other interval "
            "reaches more."
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

    def frame(self) -> Any:
        """Return forecast and weight as a data frame."""
        return as_frame({"forecast": self.forecast, "weight": self.weight})

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
        """Return the error for weights of total variation at most ``variation``."""
        limit = check_number(variation, "variation", low=0.0)
        return float(np.interp(limit, self.variation, self.error))

    def frame(self) -> Any:
        """Return the knots as a data frame."""
        return as_frame({"variation": self.variation, "error": self.error})

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

    def __str__(self) -> str:
        return (
            f"distance from calibration between {self.low:.5f} ({self.low_from}) and {self.high:.5f} ({self.high_from})"
        )


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
    """

    slope: float
    intercept: float
    intercept_at_unit_slope: float

    def __str__(self) -> str:
        return (
            f"calibration slope {self.slope:.4f}, intercept {self.intercept:.4f} (with the slope held at 1: "
            f"{self.intercept_at_unit_slope:.4f})"
        )


_NO_SLOPE = CalibrationSlope(math.nan, math.nan, math.nan)


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else value


@dataclass(frozen=True)
class CurveErrors(Result):
    """Distances |curve(p) - p| between a calibration curve and the diagonal, over the rows.

    Attributes
    ----------
    ici : float
        Their mean, the integrated calibration index.
    e50, e90 : float
        Their median and 90th percentile.
    e_max : float
        The largest.
    smoother : str
        The curve: "isotonic" or "loess".
    """

    ici: float
    e50: float
    e90: float
    e_max: float
    smoother: str

    def __str__(self) -> str:
        return f"ICI {self.ici:.5f}, E50 {self.e50:.5f}, E90 {self.e90:.5f}, Emax {self.e_max:.5f} ({self.smoother})"


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
    expected : float
        ECE plug-in over the distinct forecasts; see the notes when forecasts are nearly continuous.
    expected_binned : float
        ECE of the forecasts rounded into 15 bins of equal width.
    calibration_in_the_large : float
        Mean outcome minus mean forecast.
    observed_expected_ratio : float or None
        Mean outcome over mean forecast; None when the mean forecast is 0.
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
    expected: float
    expected_binned: float
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

    def table(self) -> list[tuple[str, float | None, str]]:
        """Return (name, value, what it means) for every number, in reading order."""
        slope = self.slope or _NO_SLOPE
        return [
            ("cutoff", self.cutoff, "largest error collected on an interval of forecasts"),
            ("ks", self.ks, "the same, intervals starting at 0"),
            ("smooth", self.smooth, "largest error against smooth weights"),
            ("bounded_variation", self.bounded_variation, "largest error against weights of variation 2"),
            ("expected", self.expected, "ECE plug-in, forecast by forecast"),
            ("expected_binned", self.expected_binned, "ECE of the forecasts rounded into 15 bins"),
            ("distance_low", self.distance.low, "distance from calibration is at least this"),
            ("distance_high", self.distance.high, "... and at most this"),
            ("calibration_in_the_large", self.calibration_in_the_large, "event rate minus mean forecast"),
            ("observed_expected_ratio", self.observed_expected_ratio, "event rate / mean forecast; 1 is ideal"),
            ("slope", _defined(slope.slope), "below 1: forecasts too extreme"),
            ("intercept", _defined(slope.intercept), "fitted with the slope; 0 is ideal"),
            ("intercept_at_unit_slope", _defined(slope.intercept_at_unit_slope), "below 0: forecasts too high"),
            ("ici", self.curve.ici, "mean distance of the isotonic curve from the diagonal"),
            ("e50", self.curve.e50, "its median"),
            ("e90", self.curve.e90, "its 90th percentile"),
            ("brier", self.brier, "mean squared error of the forecasts"),
        ]

    def frame(self) -> Any:
        """Return one row per number: measure, value, meaning."""
        names, values, meanings = zip(*self.table(), strict=True)
        return as_frame({"measure": list(names), "value": list(values), "meaning": list(meanings)})

    def _headline(self) -> str:
        weight = "" if self.weight_total == self.rows else f", total weight {self.weight_total:g}"
        return (
            f"{self.rows:,} rows{weight}, {self.distinct_forecasts:,} distinct forecasts, "
            f"mean forecast {percent(self.mean_forecast)}, event rate {percent(self.mean_outcome)}"
        )

    def _footnotes(self) -> list[str]:
        failed = [relation for relation in self.relations if not relation.holds]
        checked = f"{len(self.relations)} relations between the measures checked, "
        lines = [str(self.worst_interval), checked + ("all hold." if not failed else f"{len(failed)} FAIL:")]
        return lines + [str(relation) for relation in failed] + [f"Note: {note}" for note in self.notes]

    def __str__(self) -> str:
        lines = [self._headline()]
        for name, value, meaning in self.table():
            shown = "        -" if value is None else f"{value:9.5f}"
            lines.append(f"  {name:<24} {shown}  {meaning}")
        return "\n".join(lines + self._footnotes())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{'-' if value is None else f'{value:.5f}'}</td>"
            f"<td style='text-align:left'>{html.escape(meaning)}</td></tr>"
            for name, value, meaning in self.table()
        )
        notes = "".join(f"<p>{html.escape(line)}</p>" for line in self._footnotes())
        return f"<p>{html.escape(self._headline())}</p><table><tbody>{cells}</tbody></table>{notes}"


MEASURE_NAMES = {
    "cutoff": "Cutoff calibration error",
    "smooth": "smooth calibration error",
    "bounded_variation": "bounded-variation calibration error",
    "distance": "distance from calibration",
    "ece": "expected calibration error",
}


@dataclass(frozen=True)
class ConfidenceInterval(Result):
    """Limits for a calibration error, with the assumptions they rest on.

    Attributes
    ----------
    measure : str
        The error spoken of: "cutoff", "smooth", "bounded_variation", "distance" or "ece".
    estimate : float
        Its value on these rows.
    lower, upper : float
        The limits; 0 or 1 on a side that was not asked for.
    confidence_level : float
        How often limits computed this way contain the truth.
    alternative : str
        "two-sided" (both limits hold together), "less" (an upper limit only) or "greater" (a lower limit only).
    method : str
        "paper", "hoeffding", "adaptive", "exact" or "normal".
    n : int
        Rows.
    n_eff : float
        Rows of equal weight that would say as much; n for unit weights.
    target : str
        Whom the limits speak of: "population" or "these forecasts".
    finite_sample : bool
        Whether the guarantee holds at every number of rows, or only for many.
    assumptions : tuple of str
        What the guarantee rests on.
    notes : tuple of str
        What to keep in mind for these data.
    """

    measure: str
    estimate: float
    lower: float
    upper: float
    confidence_level: float
    alternative: str
    method: str
    n: int
    n_eff: float
    target: str
    finite_sample: bool
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        name, level = MEASURE_NAMES[self.measure], _level(self.confidence_level)
        limits = {
            "two-sided": f"lies between {rounded_down(self.lower, 5)} and {rounded_up(self.upper, 5)}",
            "less": f"is at most {rounded_up(self.upper, 5)}",
            "greater": f"is at least {rounded_down(self.lower, 5)}",
        }[self.alternative]
        lines = [
            f"With {level} confidence the {name} of {_whom(self.target)} {limits} (estimate {self.estimate:.5f}, "
            f"{_rows_said(self.n, self.n_eff)}, {self.method} method).",
            f"This assumes that {'; '.join(self.assumptions)}.",
        ]
        return "\n".join(lines + [f"Note: {note}" for note in self.notes])


def _whom(target: str) -> str:
    return "the population" if target == "population" else "these forecasts"


def _rows_said(n: int, n_eff: float) -> str:
    rows = "1 row" if n == 1 else f"{n:,} rows"
    return rows if math.isclose(n, n_eff) else f"{rows} worth {n_eff:,.0f} of equal weight"


@dataclass(frozen=True)
class Certificate(Result):
    """A verdict on "the calibration error is at most ``max_error``", with its guarantee.

    Attributes
    ----------
    verdict : str
        "certified" (``upper <= max_error``), "refuted" (``lower > max_error``) or "undecided".
    measure : str
        The error judged: "cutoff", "smooth", "bounded_variation", "distance" or "ece".
    estimate : float
        Its value on these rows.
    lower, upper : float
        Limits, each one-sided at ``confidence_level``: a verdict is wrong with probability at most
        1 - confidence_level. Read together as an interval they hold with 1 - 2 (1 - confidence_level).
    max_error : float
        The limit asked about.
    confidence_level : float
        Of the verdict.
    method : str
        "paper", "hoeffding", "adaptive", "exact" or "normal".
    n : int
        Rows.
    n_eff : float
        Rows of equal weight that would say as much; n for unit weights.
    target : str
        Whom the verdict speaks of: "population" or "these forecasts".
    finite_sample : bool
        Whether the guarantee holds at every number of rows, or only for many.
    worst_interval : WorstInterval
        Where these rows are worst calibrated.
    rows_needed : int or None
        When undecided: about how many fresh rows would decide, if the error is as estimated (None when no number
        would, because the estimate equals the limit or the method cannot get there).
    assumptions : tuple of str
        What the guarantee rests on.
    notes : tuple of str
        What to keep in mind for these data.
    """

    verdict: str
    measure: str
    estimate: float
    lower: float
    upper: float
    max_error: float
    confidence_level: float
    method: str
    n: int
    n_eff: float
    target: str
    finite_sample: bool
    worst_interval: WorstInterval
    rows_needed: int | None
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return whether the error is certified to be at most ``max_error``."""
        return self.verdict == "certified"

    def __str__(self) -> str:
        name, level = MEASURE_NAMES[self.measure], _level(self.confidence_level)
        basis = f"estimate {self.estimate:.4f}, {_rows_said(self.n, self.n_eff)}, {self.method} method"
        whom = _whom(self.target)
        if self.verdict == "certified":
            upper = rounded_up(self.upper)
            finding = f"with {level} confidence the {name} of {whom} is at most {upper}, within the limit of"
        elif self.verdict == "refuted":
            lower = rounded_down(self.lower)
            finding = f"with {level} confidence the {name} of {whom} is at least {lower}, above the limit of"
        else:
            finding = (
                f"the {name} of {whom} may be as low as {rounded_down(self.lower)} or as high as "
                f"{rounded_up(self.upper)} (each limit "
                f"with {level} confidence), on either side of the limit of"
            )
        needed = ""
        if self.rows_needed is not None:
            needed = f", and about {self.rows_needed:,} fresh rows would decide it if the error is as estimated"
        sentences = (
            f"{self.verdict.capitalize()}: {finding} {self.max_error:g} ({basis}){needed}. "
            f"This assumes that {'; '.join(self.assumptions)}."
        )
        return "\n".join([sentences, *(f"Note: {note}" for note in self.notes)])


@dataclass(frozen=True)
class GroupCertificates(Result):
    """A certificate per group, and one verdict for "the error of every group is at most ``max_error``".

    To certify, the joint verdict needs no correction for the number of groups: only the worst group, whichever it is,
    can make it wrong. To refute it does. The certificates of single groups hold all together.

    Attributes
    ----------
    verdict : str
        "certified" (every ``upper <= max_error``), "refuted" (the certificate of some group is) or "undecided".
    max_error, confidence_level : float
        The limit asked about, and the confidence of the joint verdict.
    groups : tuple
        The groups' labels, sorted.
    upper : tuple of float
        Per group, the upper limit at ``confidence_level`` on its own, which the joint verdict compares.
    certificates : tuple of Certificate
        Per group, at level 1 - (1 - confidence_level) / (number of groups): true together with ``confidence_level``.
    """

    verdict: str
    max_error: float
    confidence_level: float
    groups: tuple[Any, ...]
    upper: tuple[float, ...]
    certificates: tuple[Certificate, ...]

    def __bool__(self) -> bool:
        """Return whether every group is certified to be at most ``max_error``."""
        return self.verdict == "certified"

    def __getitem__(self, group: Any) -> Certificate:
        """Return the certificate of a group."""
        if group not in self.groups:
            raise KeyError(group)
        return self.certificates[self.groups.index(group)]

    def __iter__(self) -> Iterator[Any]:
        """Go through the groups' labels, as through the keys of a dict."""
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def frame(self) -> Any:
        """Return one row per group."""
        names = ("n", "estimate", "lower", "upper", "verdict")
        columns = {name: [getattr(each, name) for each in self.certificates] for name in names}
        return as_frame({"group": list(self.groups), **columns, "upper_for_joint_verdict": list(self.upper)})

    def __str__(self) -> str:
        level = _level(self.confidence_level)
        measure = MEASURE_NAMES[self.certificates[0].measure]
        worst = self.groups[int(np.argmax(self.upper))]
        if self.verdict == "certified":
            finding = f"with {level} confidence the {measure} of every group is at most {self.max_error:g}"
        elif self.verdict == "refuted":
            bad = [str(name) for name in self.groups if self[name].verdict == "refuted"]
            finding = f"with {level} confidence the {measure} is above {self.max_error:g} in {', '.join(bad)}"
        else:
            finding = f"some groups' {measure} may be above {self.max_error:g} (least settled: {worst})"
        counted = "1 group" if len(self.groups) == 1 else f"{len(self.groups)} groups"
        assumed = dict.fromkeys(words for each in self.certificates for words in each.assumptions)
        lines = [
            f"{self.verdict.capitalize()}: {finding} ({counted}, {self.certificates[0].method} method).",
            f"This assumes that {'; '.join(assumed)}.",
            f"Per group, verdicts that hold together with {level} confidence (and so do all upper limits):",
        ]
        width = max(len(str(name)) for name in self.groups)
        for name, each in zip(self.groups, self.certificates, strict=True):
            lines.append(
                f"  {name!s:<{width}}  {each.n:>9,} rows  estimate {each.estimate:.4f}  "
                f"from {rounded_down(each.lower)} to {rounded_up(each.upper)}  {each.verdict}"
            )
        for name, each in zip(self.groups, self.certificates, strict=True):
            lines.extend(f"Note on {name}: {note}" for note in each.notes)
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class RiskBands(Result):
    """Bias per band of forecasts, with limits that hold for all bands together; arrays have one value per band.

    Attributes
    ----------
    low, high : array
        Borders: forecasts from ``low`` to below ``high`` (the last band includes 1).
    rows : array
        Rows in the band.
    share : array
        Their share of the weight.
    mean_forecast, observed_rate : array
        Weighted means in the band; NaN where it is empty.
    bias : array
        Observed rate minus mean forecast.
    lower, upper : array
        Limits for the population's bias, true for all bands together with ``confidence_level``.
    inherited : array
        Limits for the size of the bias that follow from the Cutoff error and the shares of the bands alone.
    cutoff_upper : float
        The upper limit of the Cutoff error behind it.
    confidence_level : float
        Of each of the two sets of limits.
    n : int
        Rows in all bands.
    assumptions : tuple of str
        What the limits rest on.
    """

    low: FloatArray
    high: FloatArray
    rows: IntArray
    share: FloatArray
    mean_forecast: FloatArray
    observed_rate: FloatArray
    bias: FloatArray
    lower: FloatArray
    upper: FloatArray
    inherited: FloatArray
    cutoff_upper: float
    confidence_level: float
    n: int
    assumptions: tuple[str, ...]

    def frame(self) -> Any:
        """Return one row per band."""
        skipped = ("cutoff_upper", "confidence_level", "n", "assumptions")
        return as_frame({field.name: getattr(self, field.name) for field in fields(self) if field.name not in skipped})

    def __str__(self) -> str:
        level = _level(self.confidence_level)
        lines = [
            f"Bias of the population per band of forecasts; the limits hold for all {self.rows.size} bands together "
            f"with {level} confidence ({_rows_said(self.n, self.n)}).",
            f"This assumes that {'; '.join(self.assumptions)}.",
            "  forecasts            rows   mean forecast  observed     bias     from       to  inherited",
        ]
        for k in range(self.rows.size):
            end = "]" if k == self.rows.size - 1 else ")"
            band = f"[{self.low[k]:g}, {self.high[k]:g}{end}"
            if self.rows[k] == 0:
                lines.append(f"  {band:<15} {0:>9}   no rows")
                continue
            lines.append(
                f"  {band:<15} {self.rows[k]:>9,}  {percent(self.mean_forecast[k]):>14}  "
                f"{percent(self.observed_rate[k]):>8}  {self.bias[k]:+.4f}  {self.lower[k]:+.4f}  {self.upper[k]:+.4f}"
                f"  <= {rounded_up(self.inherited[k])}"
            )
        return "\n".join(lines)

    __repr__ = __str__


@dataclass(frozen=True)
class RowsNeeded(Result):
    """How many rows it takes to certify a calibrated forecaster.

    Attributes
    ----------
    rows : int
        Rows with which a calibrated forecaster is certified with probability ``power``.
    paper_rows : int
        The same with the margin of the paper's Proposition 4.1.
    max_error, confidence_level, power : float
        What is to be certified, how surely, and how likely success should be.
    method : str
        The method planned for.
    brier : float
        Mean squared residual assumed.
    """

    rows: int
    paper_rows: int
    max_error: float
    confidence_level: float
    power: float
    method: str
    brier: float

    def __str__(self) -> str:
        level = _level(self.confidence_level)
        return (
            f"About {self.rows:,} rows certify a Cutoff calibration error of at most {self.max_error:g} with {level} "
            f"confidence in {_level(self.power)} of cases, if the forecaster is calibrated with "
            f"a Brier score of {self.brier:.4g} ({self.method} method; the paper's margin needs {self.paper_rows:,})."
        )


USUAL_LEVEL = 0.05


@dataclass(frozen=True)
class CalibrationTest(Result):
    """What a test of perfect calibration found.

    Attributes
    ----------
    test : str
        "cutoff" (looks at every interval of forecasts) or "spiegelhalter" (looks in one direction).
    statistic : float
        The Cutoff calibration error of these rows, or Spiegelhalter's z.
    pvalue : float
        How probable a statistic at least as extreme is when the forecasts are perfectly calibrated.
    method : str
        "exact" (the law of the statistic given these forecasts, by simulation) or "asymptotic" (its limit for many
        rows).
    n : int
        Rows.
    n_resamples : int or None
        Simulated data sets; None when nothing was simulated.
    assumptions : tuple of str
        What the p-value rests on.
    notes : tuple of str
        What to keep in mind for these data.
    """

    test: str
    statistic: float
    pvalue: float
    method: str
    n: int
    n_resamples: int | None
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        rejected = self.pvalue <= USUAL_LEVEL
        name = "Spiegelhalter's z" if self.test == "spiegelhalter" else "Cutoff calibration error"
        rows = "1 row" if self.n == 1 else f"{self.n:,} rows"
        how = "large-sample law" if self.n_resamples is None else f"{self.n_resamples:,} resamples"
        finding = (
            f"Perfect calibration of these forecasts is {'' if rejected else 'not '}rejected at the "
            f"{100.0 * USUAL_LEVEL:g}% level (p-value {self.pvalue:.4g}, {name} {self.statistic:.4g}, {rows}, {how})."
        )
        if rejected:
            meaning = (
                "This says that the forecasts are off, not by how much: with many rows a harmless error is rejected "
                "too, and a large p-value would not have been a certificate of calibration."
            )
        else:
            meaning = (
                "A large p-value is no certificate of calibration: too few rows hide any error, and only an upper "
                "limit for the error, as certify() gives, says how large it may be."
            )
        basis = f"This assumes that {'; '.join(self.assumptions)}."
        return "\n".join([f"{finding} {meaning}", basis, *(f"Note: {note}" for note in self.notes)])


@dataclass(frozen=True, eq=False)
class DecisionRule(Result):
    """When to act on a forecast.

    Attributes
    ----------
    kind : str
        "at least", "above" or "at most" (a cutoff), "always", "never", or "one of" (a set of forecasts).
    cutoff : float or None
        The cutoff, for the first three kinds.
    forecasts : array or None
        The forecasts to act on, for the last kind.
    """

    kind: str
    cutoff: float | None = None
    forecasts: FloatArray | None = None

    def acts(self, y_prob: Any) -> BoolArray:
        """Return for each forecast whether the rule acts on it."""
        forecast = check_forecasts(y_prob)
        if self.forecasts is not None:
            return np.isin(forecast, self.forecasts)
        if self.cutoff is None:
            return np.full(forecast.size, self.kind == "always")
        compare = {"at least": np.greater_equal, "above": np.greater, "at most": np.less_equal}[self.kind]
        acted: BoolArray = compare(forecast, self.cutoff)
        return acted

    def __str__(self) -> str:
        if self.forecasts is not None and self.forecasts.size:
            return f"act on {self.forecasts.size:,} of the distinct forecasts and on no other"
        if self.forecasts is not None:
            return "never act"
        if self.cutoff is None:
            return f"{self.kind} act"
        return f"act on forecasts {'above' if self.kind == 'above' else f'of {self.kind}'} {self.cutoff:.4g}"

    __repr__ = __str__


def _at_threshold(threshold: float, cost_false_positive: float | None, cost_false_negative: float | None) -> str:
    """Write a threshold, with the costs it was translated from where there were any."""
    text = f"threshold {threshold:.4g}"
    if cost_false_positive is None or cost_false_negative is None:
        return text
    return f"{text} (a false positive costs {cost_false_positive:g}, a false negative {cost_false_negative:g})"


class _WithCosts:
    """What results share that may speak of costs: the factor from the loss of a threshold to cost units."""

    cost_false_positive: float | None
    cost_false_negative: float | None

    @property
    def cost_unit(self) -> float | None:
        """What a loss of 1 costs: the sum of both costs; None where a threshold was given in their place."""
        if self.cost_false_positive is None or self.cost_false_negative is None:
            return None
        return self.cost_false_positive + self.cost_false_negative

    def _in_costs(self, loss: float) -> str:
        return "" if self.cost_unit is None else f" ({loss * self.cost_unit:.5g} in cost units)"


@dataclass(frozen=True, eq=False)
class DecisionRisk(_WithCosts, Result):
    """The mean loss of acting on forecasts from a threshold up, and what it is made of.

    Everything is a float for one threshold and an array, with one value per threshold, for several.

    Attributes
    ----------
    loss : str
        "decision" (act when p >= threshold) or "sign testing" (act when p > threshold).
    threshold : float or array
        The thresholds.
    risk : float or array
        Mean loss per row: ``false_positive + false_negative``.
    false_positive : float or array
        The part of it from acting without an event.
    false_negative : float or array
        The part from events missed.
    acted : float or array
        Share of the weight acted on.
    mean_outcome : float
        Mean of the outcomes.
    unit_weights : bool
        Whether every row has weight 1.
    cost_false_positive, cost_false_negative : float or None
        The costs that were translated into the threshold, if any; ``cost`` then gives the mean cost per row.
    """

    loss: str
    threshold: float | FloatArray
    risk: float | FloatArray
    false_positive: float | FloatArray
    false_negative: float | FloatArray
    acted: float | FloatArray
    mean_outcome: float
    unit_weights: bool
    cost_false_positive: float | None = None
    cost_false_negative: float | None = None

    @property
    def cost(self) -> float | FloatArray | None:
        """Mean cost per row, in the units of the costs given; None where a threshold was given in their place."""
        return None if self.cost_unit is None else self.risk * self.cost_unit

    def frame(self) -> Any:
        """Return one row per threshold."""
        names = ["threshold", "risk", "false_positive", "false_negative", "acted"]
        columns = {name: np.atleast_1d(getattr(self, name)) for name in names}
        if self.cost is not None:
            columns["cost"] = np.atleast_1d(self.cost)
        return as_frame(columns)

    def __str__(self) -> str:
        risk, threshold = np.atleast_1d(self.risk), np.atleast_1d(self.threshold)
        if risk.size > 1:
            return (
                f"mean {self.loss} loss at {risk.size:,} thresholds from {threshold.min():.4g} to "
                f"{threshold.max():.4g}: between {risk.min():.5f} and {risk.max():.5f}"
            )
        rule, wrongly, missing = "from there up", "acting in vain", "events missed"
        if self.loss == "sign testing":
            rule, wrongly, missing = "above it", "outcomes not above it acted on", "outcomes above it not acted on"
        where = _at_threshold(float(threshold[0]), self.cost_false_positive, self.cost_false_negative)
        vain, missed = (float(np.atleast_1d(part)[0]) for part in (self.false_positive, self.false_negative))
        acted = percent(float(np.atleast_1d(self.acted)[0]))
        return (
            f"At {where}, acting {rule} (on {acted} {_whole(self.unit_weights)}) loses {risk[0]:.5f} per row on average"
            f"{self._in_costs(risk[0])}: {vain:.5f} from {wrongly} and {missed:.5f} from {missing}."
        )

    __repr__ = __str__


WRAPPERS = {
    "nondecreasing": "non-decreasing recalibration",
    "monotone": "monotone recalibration (rising or falling)",
    "any": "recalibration of any shape",
}
"""The recalibrations that forecasts can be compared with, in words."""


@dataclass(frozen=True, eq=False)
class RiskGap(_WithCosts, Result):
    """What a better use of the same forecasts could save at one threshold.

    Attributes
    ----------
    loss : str
        "decision" (act when p >= threshold) or "sign testing" (act when p > threshold).
    threshold : float
        The threshold.
    wrapper : str
        The recalibrations allowed: "nondecreasing", "monotone" or "any".
    risk : float or None
        Mean loss now; None where it cannot be told (sign testing of a `Tally` with fractional outcomes).
    best_risk : float or None
        Smallest mean loss that such a recalibration attains on these rows.
    gap : float
        The difference.
    rule : DecisionRule
        When to act, to attain it.
    bound : Relation
        What theory says of the gap, from the Cutoff calibration error or the ECE, checked on these data.
    cost_false_positive, cost_false_negative : float or None
        The costs that were translated into the threshold, if any; ``gap * cost_unit`` is the saving in cost units.
    notes : tuple of str
        What to keep in mind when reading the numbers.
    """

    loss: str
    threshold: float
    wrapper: str
    risk: float | None
    best_risk: float | None
    gap: float
    rule: DecisionRule
    bound: Relation
    cost_false_positive: float | None = None
    cost_false_negative: float | None = None
    notes: tuple[str, ...] = ()

    def frame(self) -> Any:
        """Return one row, to be joined with those of other thresholds or wrappers."""
        names = ["threshold", "wrapper", "risk", "best_risk", "gap"]
        return as_frame({name: [getattr(self, name)] for name in names} | {"bound": [self.bound.right]})

    def __str__(self) -> str:
        where = _at_threshold(self.threshold, self.cost_false_positive, self.cost_false_negative)
        shape = f"{WRAPPERS[self.wrapper]} of these forecasts"
        today = "above" if self.loss == "sign testing" else "at least"
        if self.rule.cutoff == self.threshold and self.rule.kind == today:
            now = "" if self.risk is None else f", {self.risk:.5f}"
            finding = f"no {shape} lowers the mean {self.loss} loss on these rows{now}."
        else:
            now = "" if self.risk is None else f", from {self.risk:.5f} to {self.best_risk:.5f}"
            finding = (
                f"{shape} could lower the mean {self.loss} loss on these rows by {self.gap:.5f}"
                f"{self._in_costs(self.gap)}{now}, and by no more. To attain that, {self.rule}."
            )
        return "\n".join([f"At {where}, {finding}", str(self.bound), *(f"Note: {note}" for note in self.notes)])

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class BestThreshold(_WithCosts, Result):
    """The cutoff that would have been best on these rows for the loss of a threshold, and what it saves.

    Attributes
    ----------
    threshold : float
        The threshold of the loss: with calibrated forecasts the best cutoff too.
    cutoff : float or None
        Act on forecasts of at least this; 0 when always acting is best, None when never acting is.
    cutoff_above : float or None
        Every cutoff above this one, up to ``cutoff``, does the same on these rows (None: every cutoff down to 0).
    rule : DecisionRule
        The same as a rule that can be applied to other forecasts.
    risk, best_risk : float
        Mean loss with the threshold as cutoff, and with the best one.
    saving : float
        Their difference.
    changed : float
        Share of the weight that is treated differently.
    unit_weights : bool
        Whether every row has weight 1.
    cost_false_positive, cost_false_negative : float or None
        The costs that were translated into the threshold, if any; ``saving * cost_unit`` is in cost units.
    """

    threshold: float
    cutoff: float | None
    cutoff_above: float | None
    rule: DecisionRule
    risk: float
    best_risk: float
    saving: float
    changed: float
    unit_weights: bool
    cost_false_positive: float | None = None
    cost_false_negative: float | None = None

    def frame(self) -> Any:
        """Return one row, to be joined with those of other thresholds."""
        names = ["threshold", "cutoff", "cutoff_above", "risk", "best_risk", "saving", "changed"]
        return as_frame({name: [getattr(self, name)] for name in names})

    def __str__(self) -> str:
        where = _at_threshold(self.threshold, self.cost_false_positive, self.cost_false_negative)
        if self.changed == 0.0:
            return f"At {where}, no other cutoff does better on these rows: the mean loss is {self.risk:.5f}."
        return (
            f"At {where}, the mean loss on these rows falls from {self.risk:.5f} to {self.best_risk:.5f}, a saving of "
            f"{self.saving:.5f}{self._in_costs(self.saving)}, if you {self.rule}; {percent(self.changed)} "
            f"{_whole(self.unit_weights)} would be treated differently. The cutoff was chosen on these rows, so expect "
            "less of it on others."
        )

    __repr__ = __str__


def _read_between(knots: FloatArray, value: FloatArray, right: FloatArray, at: Any) -> float | FloatArray:
    """Read a curve that is linear between knots and may jump just after one: its value at the given thresholds."""
    threshold = check_thresholds(at)
    place = np.atleast_1d(threshold)
    after = np.searchsorted(knots, place)  # the first knot is 0 and the last 1
    before = np.maximum(after - 1, 0)
    width = np.where(after > before, knots[after] - knots[before], 1.0)
    share = (place - knots[before]) / width
    read = np.where(knots[after] == place, value[after], (1.0 - share) * right[before] + share * value[after])
    return float(read[0]) if isinstance(threshold, float) else read


@dataclass(frozen=True, eq=False)
class MurphyCurve(Result):
    """Mean loss at every decision threshold: linear between the knots, with a jump just after a forecast.

    Attributes
    ----------
    threshold : array
        The knots: 0, the distinct forecasts and where other curves bend, 1.
    risk : array
        Mean loss of acting when p >= threshold, at each knot.
    risk_right : array
        Its limit just above each knot; different at a forecast whose mean outcome is not the forecast.
    mean_outcome : float
        Mean of the outcomes.
    """

    threshold: FloatArray
    risk: FloatArray
    risk_right: FloatArray
    mean_outcome: float

    @property
    def constant_risk(self) -> FloatArray:
        """Mean loss at each knot of the better of always and never acting: what no forecast is needed for."""
        return np.minimum(self.threshold * (1.0 - self.mean_outcome), (1.0 - self.threshold) * self.mean_outcome)

    def risk_at(self, threshold: Any) -> float | FloatArray:
        """Return the mean loss at one threshold, or at each of several."""
        return _read_between(self.threshold, self.risk, self.risk_right, threshold)

    def _columns(self) -> dict[str, FloatArray]:
        return {
            "threshold": self.threshold,
            "risk": self.risk,
            "risk_right": self.risk_right,
            "constant_risk": self.constant_risk,
        }

    def frame(self) -> Any:
        """Return one row per knot."""
        return as_frame(self._columns())

    def __str__(self) -> str:
        top = float(max(self.risk.max(), self.risk_right.max()))
        return f"mean loss at every threshold, on {self.threshold.size:,} knots: at most {top:.5f}"

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, eq=False, repr=False)
class RiskGapCurve(MurphyCurve):
    """What recalibration could save at every threshold: linear between the knots, with a jump just after a forecast.

    Attributes
    ----------
    threshold, risk, risk_right, mean_outcome
        As in `MurphyCurve`.
    best_risk : array
        Smallest mean loss that a recalibration attains, at each knot; it never jumps.
    wrapper : str
        The recalibrations allowed: "nondecreasing" or "monotone".
    largest_gap : float
        Largest gap between risk and best risk over all thresholds.
    largest_gap_at : float
        Where it is; the lowest threshold, if at several.
    largest_gap_attained : bool
        Whether it is the gap at that threshold, or the limit just above it.
    largest_regret, largest_regret_at, largest_regret_attained
        The same for the regret: the risk minus that of the better of always and never acting.
    bound : Relation
        What theory says of the largest gap, from the Cutoff calibration error, checked on these data.
    """

    best_risk: FloatArray
    wrapper: str
    largest_gap: float
    largest_gap_at: float
    largest_gap_attained: bool
    largest_regret: float
    largest_regret_at: float
    largest_regret_attained: bool
    bound: Relation

    @property
    def gap(self) -> FloatArray:
        """What recalibration could save at each knot."""
        return _no_less_than_zero(self.risk - self.best_risk)

    @property
    def gap_right(self) -> FloatArray:
        """Its limit just above each knot."""
        return _no_less_than_zero(self.risk_right - self.best_risk)

    @property
    def regret(self) -> FloatArray:
        """Risk at each knot minus that of the better of always and never acting; negative where forecasts help."""
        return self.risk - self.constant_risk

    @property
    def regret_right(self) -> FloatArray:
        """Its limit just above each knot."""
        return self.risk_right - self.constant_risk

    def at(self, threshold: Any) -> float | FloatArray:
        """Return the gap at one threshold, or at each of several."""
        return _read_between(self.threshold, self.gap, self.gap_right, threshold)

    def regret_at(self, threshold: Any) -> float | FloatArray:
        """Return the regret against the best constant action at one threshold, or at each of several."""
        return _read_between(self.threshold, self.regret, self.regret_right, threshold)

    def _columns(self) -> dict[str, FloatArray]:
        more = {name: getattr(self, name) for name in ("best_risk", "gap", "gap_right", "regret", "regret_right")}
        return super()._columns() | more

    def __str__(self) -> str:
        where = _where(self.largest_gap_at, self.largest_gap_attained)
        worst = _where(self.largest_regret_at, self.largest_regret_attained)
        regret = (
            f"The worst regret against always or never acting is {self.largest_regret:.5f}, {worst}."
            if self.largest_regret > 0.0
            else "At no threshold would always or never acting have been better."
        )
        return (
            f"At no threshold does {WRAPPERS[self.wrapper]} save more than {self.largest_gap:.5f} "
            f"of the mean loss on these rows ({where}). {regret}\n{self.bound}"
        )


def _no_less_than_zero(difference: FloatArray) -> FloatArray:
    return np.maximum(difference, 0.0)  # a difference of equal sums may round below zero


def _where(threshold: float, attained: bool) -> str:
    return f"at threshold {threshold:.4g}" if attained else f"approached just above threshold {threshold:.4g}"


@dataclass(frozen=True)
class DecisionGuarantee(_WithCosts, Result):
    """What a bound on calibration error says about decisions, with its confidence and assumptions.

    Attributes
    ----------
    measure : str
        The error that was bounded: "cutoff" or "ece".
    upper : float
        Its upper limit.
    threshold : float or None
        The threshold spoken of; None for every threshold at once.
    nondecreasing : float
        No non-decreasing recalibration lowers the expected loss by more.
    monotone : float
        No monotone recalibration, rising or falling, lowers it by more.
    any : float or None
        No recalibration of any shape lowers it by more; None where nothing is known (from Cutoff).
    confidence_level : float
        Of all of these together: they follow from one limit.
    method : str
        How the limit was found.
    target : str
        Whom it speaks of: "population" or "these forecasts".
    finite_sample : bool
        Whether it holds at every number of rows, or only for many.
    assumptions : tuple of str
        What it rests on.
    cost_false_positive, cost_false_negative : float or None
        The costs that were translated into the threshold, if any; a bound times ``cost_unit`` is in cost units.
    notes : tuple of str
        What to keep in mind.
    """

    measure: str
    upper: float
    threshold: float | None
    nondecreasing: float
    monotone: float
    any: float | None
    confidence_level: float
    method: str
    target: str
    finite_sample: bool
    assumptions: tuple[str, ...]
    cost_false_positive: float | None = None
    cost_false_negative: float | None = None
    notes: tuple[str, ...] = ()

    def frame(self) -> Any:
        """Return one row per kind of recalibration, with the most it can save."""
        return as_frame({"recalibration": list(WRAPPERS), "upper": [getattr(self, name) for name in WRAPPERS]})

    def __str__(self) -> str:
        level, where = _level(self.confidence_level), "any threshold"
        if self.threshold is not None:
            where = _at_threshold(self.threshold, self.cost_false_positive, self.cost_false_negative)
        limits = (
            f"by more than {rounded_up(self.nondecreasing)}{self._in_costs(self.nondecreasing)}, and no monotone one, "
            f"rising or falling, by more than {rounded_up(self.monotone)}{self._in_costs(self.monotone)}"
        )
        shape = WRAPPERS["nondecreasing"]
        if self.any is not None:
            shape, limits = WRAPPERS["any"], f"by more than {rounded_up(self.any)}{self._in_costs(self.any)}"
        whom = (
            "in the population that the rows come from"
            if self.target == "population"
            else "averaged over these very forecasts, which says nothing of others from the same population"
        )
        rows = "It holds at every number of rows" if self.finite_sample else "It holds approximately, for many rows"
        lines = [
            f"With {level} confidence no {shape} of these forecasts lowers the expected loss at {where} {limits}. This "
            f"speaks of the expected loss {whom}.",
            f"It follows from {MEASURE_NAMES[self.measure]} <= {rounded_up(self.upper)} ({self.method} method). "
            f"{rows}, and assumes that {'; '.join(self.assumptions)}.",
        ]
        return "\n".join(lines + [f"Note: {note}" for note in self.notes])


@dataclass(frozen=True)
class ScoreDecomposition(Result):
    """A mean proper score split into what recalibration could mend, what the forecasts tell apart, and the rest.

    score = miscalibration - discrimination + uncertainty; smaller scores are better.

    Attributes
    ----------
    name : str
        The score: "brier", "log", "spherical", or the name of your own.
    score : float
        Mean score of the forecasts; infinite when a sure forecast was wrong and the score punishes that without limit.
    miscalibration : float
        What the best non-decreasing recalibration of these rows (isotonic regression) would save; 0 is ideal.
    discrimination : float
        What the recalibrated forecasts save against the base rate; larger is better.
    uncertainty : float
        Score of the base rate, the same forecast for every row.
    skill : float or None
        1 - score/uncertainty: 1 is perfect, 0 as good as the base rate; None when the uncertainty is 0.
    mass : float
        Total mass of the score's Schervish measure; infinite for the log loss.
    bounds : tuple of Relation
        What theory says about the saving of non-decreasing, monotone and arbitrary recalibration, from the Cutoff
        calibration error and the ECE; empty when the mass is infinite, for then no such bound exists.
    contradicted : float
        Share of the weight on outcomes that cost infinitely much.
    notes : tuple of str
        What to keep in mind when reading the numbers.
    """

    name: str
    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    skill: float | None
    mass: float
    bounds: tuple[Relation, ...]
    contradicted: float
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # JSON has no infinity and holds null in its place: what is infinite follows from the other fields.
        if self.contradicted > 0.0:
            object.__setattr__(self, "score", math.inf)
            object.__setattr__(self, "miscalibration", math.inf)
            object.__setattr__(self, "skill", None if self.uncertainty == 0.0 else -math.inf)
        if not self.bounds:
            object.__setattr__(self, "mass", math.inf)

    def frame(self) -> Any:
        """Return one row per component."""
        names = ["score", "miscalibration", "discrimination", "uncertainty", "skill"]
        return as_frame({"component": names, "value": [getattr(self, name) for name in names]})

    def __str__(self) -> str:
        name = "Brier" if self.name == "brier" else self.name
        skill = "undefined" if self.skill is None else f"{100.0 * self.skill:.1f}%"
        lines = [
            f"{name} score {self.score:.5f} = miscalibration {self.miscalibration:.5f} - discrimination "
            f"{self.discrimination:.5f} + uncertainty {self.uncertainty:.5f}; skill against the base rate {skill}",
            *(str(bound) for bound in self.bounds),
        ]
        return "\n".join(lines + [f"Note: {note}" for note in self.notes])


@dataclass(frozen=True, eq=False)
class NetBenefit(Result):
    """Net benefit of acting on forecasts from a threshold up, as in decision curve analysis.

    Everything is a float for one threshold and an array, with one value per threshold, for several.

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
    mean_outcome : float
        Mean of the outcomes, the largest net benefit there is.
    """

    threshold: float | FloatArray
    net_benefit: float | FloatArray
    treat_all: float | FloatArray
    treat_none: float | FloatArray
    mean_outcome: float

    def frame(self) -> Any:
        """Return one row per threshold."""
        names = ["threshold", "net_benefit", "treat_all", "treat_none"]
        return as_frame({name: np.atleast_1d(getattr(self, name)) for name in names})

    def __str__(self) -> str:
        threshold, benefit = np.atleast_1d(self.threshold), np.atleast_1d(self.net_benefit)
        best = np.maximum(np.atleast_1d(self.treat_all), 0.0)
        if threshold.size == 1:
            simple = "treating all" if np.atleast_1d(self.treat_all)[0] > 0.0 else "treating none"
            return (
                f"At threshold {threshold[0]:.4g} the net benefit is {benefit[0]:.5f} per row; that of {simple}, the "
                f"better of the two without forecasts, is {best[0]:.5f}."
            )
        above = int(np.count_nonzero(benefit > best))
        return (
            f"net benefit at {threshold.size:,} thresholds from {threshold.min():.4g} to {threshold.max():.4g}: above "
            f"that of treating all and of treating none at {above:,} of them"
        )

    __repr__ = __str__


@dataclass(frozen=True)
class LadderRung(Result):
    """What a guard found on one rung of its ladder.

    Attributes
    ----------
    recalibrator : str
        The kind of recalibrator tried.
    error : float or None
        Cutoff error of its forecasts on the rows it was fitted to; None when it could not be fitted.
    tolerance : float or None
        The largest error with which it is kept; None when it could not be fitted.
    kept : bool
        Whether it was kept; the rungs after that are not tried.
    reason : str
        Why, in words.
    """

    recalibrator: str
    error: float | None
    tolerance: float | None
    kept: bool
    reason: str

    def __str__(self) -> str:
        return f"{self.recalibrator}: {'kept' if self.kept else 'not kept'}, {self.reason}"


@dataclass(frozen=True)
class RecalibrationGuarantee(Result):
    """A bound on the Cutoff calibration error of a recalibrated forecaster in the population.

    All the numbers hold together with ``confidence_level``. No error is above 1, and no bound here either.

    Attributes
    ----------
    recalibrator : str
        The kind of recalibrator.
    bound : float
        The error is at most this: what it is on the fitting rows, plus how far a monotone map can stray from that.
    paper_bound : float
        The same with the paper's constants.
    in_advance : float or None
        A bound that was known before any data, from the number of rows alone; None where there is none.
    paper_in_advance : float or None
        The same with the paper's constants.
    error : float
        Cutoff error of the recalibrated forecasts on the rows the map was fitted to.
    margin, paper_margin : float
        How far the population's error can be above it, for every monotone map at once.
    confidence_level : float
        Of all these numbers together.
    n : int
        Rows the map was fitted to.
    direction : str
        "increasing", "decreasing" or "constant": what the map does to the order of the forecasts.
    promise : str
        What was promised before the data, in words.
    ladder : tuple of LadderRung
        For a guard: what it tried, which rung it kept and why.
    assumptions : tuple of str
        What the guarantee rests on.
    notes : tuple of str
        What to keep in mind for this map.
    """

    recalibrator: str
    bound: float
    paper_bound: float
    in_advance: float | None
    paper_in_advance: float | None
    error: float
    margin: float
    paper_margin: float
    confidence_level: float
    n: int
    direction: str
    promise: str
    ladder: tuple[LadderRung, ...] = ()
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows = "1 row" if self.n == 1 else f"{self.n:,} rows"
        lines = [
            f"With {_level(self.confidence_level)} confidence the Cutoff calibration error of the recalibrated "
            f"forecaster is at most {rounded_up(self.bound)} in the population: {self.error:.4f} on the {rows} it was "
            f"fitted to, and at most {rounded_up(self.margin)} more elsewhere (with the paper's constants "
            f"{rounded_up(self.paper_bound)}).",
            f"Before the data: {self.promise}.",
            f"This assumes that {'; '.join(self.assumptions)}.",
        ]
        lines.extend(f"Rung {number}, {rung}." for number, rung in enumerate(self.ladder, start=1))
        lines.extend(f"Note: {note}" for note in self.notes)
        return "\n".join(lines)


def shown(value: float | None, *, sign: str = "", missing: str = "-") -> str:
    """Write a number with four digits after the point, and no minus before a zero."""
    return missing if value is None else f"{round(value, 4) + 0.0:{sign}.4f}"


@dataclass(frozen=True)
class RecalibratorScores(Result):
    """How one recalibrator did on rows it had not seen; the numbers are None where it could not be fitted.

    Attributes
    ----------
    name : str
        Of the candidate.
    cutoff : float or None
        Cutoff calibration error of the held-out forecasts.
    cutoff_lower, cutoff_upper : float or None
        Confidence limits for it, both together.
    smooth : float or None
        Their smooth calibration error.
    brier : float or None
        Their Brier score, the mean of (y - p)^2: small when forecasts are calibrated and tell rows apart.
    log_loss : float or None
        Mean of -ln(probability given to what happened); infinite when something happened that was given none.
    auc : float or None
        Share of pairs of an event and a non-event in which the event has the higher forecast, ties counting half, over
        pairs held out together; None also when there are no such pairs.
    auc_lost : float or None
        AUC of the forecasts as they are minus ``auc``. A map that increases loses it by ties alone, and gains where
        the order inside a tie was wrong.
    distinct_forecasts : int or None
        How many different forecasts are left when the recalibrator is fitted to all rows.
    guarantee : float or None
        What bounds the Cutoff error of the recalibrator fitted to all rows, known once it is fitted; None for
        forecasts as they are and for weighted rows.
    guarantee_in_advance : float or None
        The bound that was known before any data; None where there is none.
    problem : str or None
        Why it could not be fitted.
    """

    name: str
    cutoff: float | None = None
    cutoff_lower: float | None = None
    cutoff_upper: float | None = None
    smooth: float | None = None
    brier: float | None = None
    log_loss: float | None = None
    auc: float | None = None
    auc_lost: float | None = None
    distinct_forecasts: int | None = None
    guarantee: float | None = None
    guarantee_in_advance: float | None = None
    problem: str | None = None

    def __str__(self) -> str:
        if self.problem is not None:
            return f"{self.name}: could not be fitted, {self.problem}"
        return (
            f"{self.name}: held-out Cutoff error {shown(self.cutoff)} (from {shown(self.cutoff_lower)} to "
            f"{shown(self.cutoff_upper)}), smooth {shown(self.smooth)}, Brier {shown(self.brier)}, log loss "
            f"{shown(self.log_loss)}, AUC lost {shown(self.auc_lost, sign='+')}; guarantee {shown(self.guarantee)}, "
            f"in advance {shown(self.guarantee_in_advance, missing='none')}"
        )


@dataclass(frozen=True)
class RecalibratorComparison(Result):
    """Recalibrators side by side on held-out rows, and which of them to use.

    Attributes
    ----------
    candidates : tuple of RecalibratorScores
        One for each candidate, "as is" first.
    recommended : str
        The name of the one to use.
    recommendation : str
        That in words, and why.
    confidence_level : float
        Of the limits of each candidate, and of each guarantee.
    n : int
        Rows.
    cv : int
        Parts the rows were cut into.
    notes : tuple of str
        What to keep in mind when reading the numbers.
    """

    candidates: tuple[RecalibratorScores, ...]
    recommended: str
    recommendation: str
    confidence_level: float
    n: int
    cv: int
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> RecalibratorScores:
        """Return the scores of a candidate."""
        for each in self.candidates:
            if each.name == name:
                return each
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        """Go through the names of the candidates, as through the keys of a dict."""
        return iter([each.name for each in self.candidates])

    def __len__(self) -> int:
        return len(self.candidates)

    def frame(self) -> Any:
        """Return one row per candidate."""
        names = [field.name for field in fields(RecalibratorScores)]
        return as_frame({name: [getattr(each, name) for each in self.candidates] for name in names})

    def __str__(self) -> str:
        width = max(len(each.name) for each in self.candidates)
        level = percent(self.confidence_level).replace(".0%", "%")
        lines = [
            f"{len(self)} ways to treat the forecasts of {self.n:,} rows, judged on held-out rows ({self.cv} parts; "
            f"limits and guarantees with {level} confidence each).",
            f"  {'':<{width}}   Cutoff    from      to  smooth   Brier  log loss  AUC lost  guarantee  in advance",
        ]
        for each in self.candidates:
            if each.problem is not None:
                lines.append(f"  {each.name:<{width}}  could not be fitted")
                continue
            lines.append(
                f"  {each.name:<{width}}  {shown(each.cutoff):>7} {shown(each.cutoff_lower):>7} "
                f"{shown(each.cutoff_upper):>7} {shown(each.smooth):>7} {shown(each.brier):>7} "
                f"{shown(each.log_loss):>9} {shown(each.auc_lost, sign='+'):>9} {shown(each.guarantee):>10} "
                f"{shown(each.guarantee_in_advance, missing='none'):>11}"
            )
        lines.append(self.recommendation)
        return "\n".join(lines + [f"Note: {note}" for note in self.notes])

    __repr__ = __str__
