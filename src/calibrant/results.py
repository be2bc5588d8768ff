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

from calibrant.validation import FloatArray, IntArray, check_number

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
    if annotation.startswith(("FloatArray", "IntArray")) and value is not None:
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
        whole = "of all rows" if self.unit_weights else "of the weight"
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
            "two-sided": f"lies between {self.lower:.5f} and {self.upper:.5f}",
            "less": f"is at most {self.upper:.5f}",
            "greater": f"is at least {self.lower:.5f}",
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
            finding = f"with {level} confidence the {name} of {whom} is at most {self.upper:.4f}, within the limit of"
        elif self.verdict == "refuted":
            finding = f"with {level} confidence the {name} of {whom} is at least {self.lower:.4f}, above the limit of"
        else:
            finding = (
                f"the {name} of {whom} may be as low as {self.lower:.4f} or as high as {self.upper:.4f} (each limit "
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
            f"Per group, limits that hold together with {level} confidence:",
        ]
        width = max(len(str(name)) for name in self.groups)
        for name, each in zip(self.groups, self.certificates, strict=True):
            lines.append(
                f"  {name!s:<{width}}  {each.n:>9,} rows  estimate {each.estimate:.4f}  "
                f"from {each.lower:.4f} to {each.upper:.4f}  {each.verdict}"
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
        Limit for the size of the bias that follows from the Cutoff error alone, for these bands and any others.
    cutoff_upper : float
        The upper limit of the Cutoff error behind it.
    confidence_level : float
        Of each of the two sets of limits.
    n : int
        Rows in all bands.
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

    def frame(self) -> Any:
        """Return one row per band."""
        skipped = ("cutoff_upper", "confidence_level", "n")
        return as_frame({field.name: getattr(self, field.name) for field in fields(self) if field.name not in skipped})

    def __str__(self) -> str:
        level = _level(self.confidence_level)
        lines = [
            f"Bias of the population per band of forecasts; the limits hold for all {self.rows.size} bands together "
            f"with {level} confidence ({_rows_said(self.n, self.n)}).",
            "  forecasts            rows   mean forecast  observed    bias   from       to  inherited",
        ]
        for k in range(self.rows.size):
            end = "]" if k == self.rows.size - 1 else ")"
            band = f"[{self.low[k]:g}, {self.high[k]:g}{end}"
            if self.rows[k] == 0:
                lines.append(f"  {band:<15} {0:>9}   no rows")
                continue
            lines.append(
                f"  {band:<15} {self.rows[k]:>9,}  {percent(self.mean_forecast[k]):>14}  "
                f"{percent(self.observed_rate[k]):>8}  {self.bias[k]:+.4f} {self.lower[k]:+.4f} {self.upper[k]:+.4f}"
                f"   <= {self.inherited[k]:.4f}"
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
            f"forecaster is at most {self.bound:.4f} in the population: {self.error:.4f} on the {rows} it was fitted "
            f"to, and at most {self.margin:.4f} more elsewhere (with the paper's constants {self.paper_bound:.4f}).",
            f"Before the data: {self.promise}.",
            f"This assumes that {'; '.join(self.assumptions)}.",
        ]
        lines.extend(f"Rung {number}, {rung}." for number, rung in enumerate(self.ladder, start=1))
        lines.extend(f"Note: {note}" for note in self.notes)
        return "\n".join(lines)
