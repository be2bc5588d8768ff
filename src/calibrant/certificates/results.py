"""Results of certifying: verdicts, limits, plans."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from calibrant.certificates.clusters import Clusters
from calibrant.certificates.joint_levels import level_of_both
from calibrant.certificates.joint_verdicts import JointVerdict, OfShares
from calibrant.certificates.limit_words import estimate_said, limit_said, lower_said, upper_said
from calibrant.core.errors import InputError
from calibrant.core.results import UNIT, PerGroup, Result
from calibrant.core.types import Label
from calibrant.core.words import (
    counted,
    hundredfold,
    level_said,
    percent,
    printable,
    shown,
    verdict_said,
)
from calibrant.measures.registry import MEASURES
from calibrant.measures.results import WorstInterval
from calibrant.measures.savings import REDRAWING, LargestSaving, over_thresholds
from calibrant.rows.costs import WithCosts

if TYPE_CHECKING:
    from calibrant.certificates.planning import RowsNeeded

VERDICTS = ("certified", "refuted", "undecided")
Yardstick = Literal["rows", "events"]
YARDSTICKS: tuple[str, ...] = get_args(Yardstick)
"""What errors and limits may be shares of."""


def in_order(lower: float, upper: float) -> tuple[float, float]:
    """Return limits of an error, which is never negative; where two that were found apart cross, both are the upper.

    An upper limit may be infinite, which excludes nothing; a lower one may not, nor may either be no number at all.
    """
    if not math.isfinite(lower) or math.isnan(upper):  # which min and max would hide
        raise InputError(
            f"the limits of the error came out as {lower!r} and {upper!r}",
            remedy="look for what is missing or infinite in the totals of the rows",
        )
    return min(max(lower, 0.0), upper), upper


def verdict_of(lower: float, upper: float, max_error: float) -> str:
    """Return what limits say of "the error is at most ``max_error``"; a limit that is not a number says nothing."""
    return "certified" if upper <= max_error else "refuted" if lower > max_error else "undecided"


@dataclass(frozen=True)
class ConfidenceInterval(OfShares, WithCosts, Result):
    """Limits for a calibration error, with the assumptions they rest on.

    Attributes
    ----------
    measure : str
        The error spoken of: "cutoff", "smooth", "bounded_variation", "distance", "ece" or "risk_gap".
    estimate : float
        Its value on these rows.
    lower, upper : float
        The limits; 0 or 1 (infinity for shares of events) on a side that was not asked for.
    confidence_level : float
        How often limits computed this way contain the truth.
    alternative : str
        "two-sided" (both limits hold together), "less" (an upper limit only) or "greater" (a lower limit only).
    method : str
        "paper", "hoeffding", "adaptive", "exact" or "normal".
    rows : int
        Rows.
    n_eff : float
        Rows of equal weight that would say as much; n for unit weights.
    target : str
        Whom the limits speak of: "population" or "these forecasts".
    finite_sample : bool
        Whether the guarantee holds at every number of rows, or only for many.
    assumptions : tuple of str
        What the guarantee rests on.
    relative_to : str
        What estimate and limits are shares of: "rows" or "events".
    notes : tuple of str
        What to keep in mind for these data.
    thresholds : tuple of float or None
        The lowest and the highest threshold that a risk gap is about; None for other errors.
    cost_false_positive, cost_false_negative : float or None
        The costs that were translated into a threshold, if any; a limit times ``cost_unit`` is in cost units.
    clusters : Clusters or None
        What the clusters of the rows are, where they were named; None for independent rows.
    """

    measure: str
    estimate: float
    lower: float
    upper: float
    confidence_level: float
    alternative: str
    method: str
    rows: int
    n_eff: float
    target: str
    finite_sample: bool
    assumptions: tuple[str, ...]
    relative_to: str = "rows"
    notes: tuple[str, ...] = ()
    thresholds: tuple[float, float] | None = None
    cost_false_positive: float | None = None
    cost_false_negative: float | None = None
    clusters: Clusters | None = None

    _may_be_infinite: ClassVar = ("estimate", "upper")  # as shares of events, where there may be none
    _ranges: ClassVar = {
        "confidence_level": UNIT,
        **dict.fromkeys(("estimate", "lower", "upper"), (0.0, math.inf)),
    }
    _words: ClassVar = {
        "measure": MEASURES,
        "alternative": ("two-sided", "less", "greater"),
        "relative_to": YARDSTICKS,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_shares("estimate", "lower", "upper")
        self._check_order("lower", "upper")

    def __str__(self) -> str:
        name, level = MEASURES.words(self.measure), level_said(self.confidence_level)
        limits = {
            "two-sided": f"lies between {lower_said(self.lower, 5)} and {upper_said(self.upper, 5)}",
            "less": f"is at most {upper_said(self.upper, 5)}",
            "greater": f"is at least {lower_said(self.lower, 5)}",
        }[self.alternative]
        if math.isinf(self.upper) and self.alternative != "greater":
            limits = "has no upper limit"
            if self.alternative == "two-sided":
                limits = f"is at least {lower_said(self.lower, 5)} times the event rate, with no upper limit"
        elif self.relative_to == "events":
            limits += " times the event rate"
        estimate = estimate_said(self.estimate, 5)
        found = f"the {name} of {_whom(self)} {limits}"
        if self.thresholds is not None:
            costs = self.cost_false_positive, self.cost_false_negative
            found = self._saving_said(over_thresholds(self.thresholds, *costs))
        lines = [
            f"With {level} confidence {found} (estimate {estimate}, {_rows_said(self)}, {self.method} method).",
            f"This assumes that {'; '.join(self.assumptions)}.",
        ]
        return "\n".join(lines + [f"Note: {note}" for note in self.notes])

    def _saving_said(self, over: str) -> str:
        """Say the limits of what a line can save, in words that need no name for it."""
        upper = f"{upper_said(self.upper, 5)} per case{self._limit_in_costs(self.upper)}"
        if self.alternative == "less":
            return f"no {REDRAWING} saves more than {upper}, at {over}"
        some, lower = over.replace("any threshold", "some threshold", 1), lower_said(self.lower, 5)
        if self.alternative == "greater":
            return f"some {REDRAWING} saves at least {lower} per case{self._in_costs(self.lower)}, at {some}"
        low, high = self.thresholds or (0.0, 1.0)
        at = (
            f"at {over}"
            if low == high
            else f"where it saves most ({over.replace('any threshold', 'all thresholds', 1)})"
        )
        return f"the best {REDRAWING} saves from {lower} to {upper}, {at}"


def error_said(judged: Certificate | ConfidenceInterval | RowsNeeded) -> str:
    """Name the error that is judged, a risk gap with the thresholds that it is about."""
    name = MEASURES.words(judged.measure)
    if judged.thresholds is None:
        return name
    return f"{name} at {over_thresholds(judged.thresholds, judged.cost_false_positive, judged.cost_false_negative)}"


def _whom(judged: Certificate | ConfidenceInterval) -> str:
    whom = "the population" if judged.target == "population" else "these forecasts"
    return whom if judged.clusters is None else f"{whom}{judged.clusters.of_whom}"


def _rows_said(judged: Certificate | ConfidenceInterval) -> str:
    rows = counted(judged.rows, "row")
    if judged.clusters is not None:
        worth = f", worth about {judged.n_eff:,.0f} independent ones" if judged.clusters.tell_worth else ""
        return f"{rows} in {counted(judged.clusters.count, 'cluster')}{worth}"
    return rows if math.isclose(judged.rows, judged.n_eff) else f"{rows} worth {judged.n_eff:,.0f} of equal weight"


@dataclass(frozen=True)
class Certificate(OfShares, WithCosts, Result):
    """A verdict on "the calibration error is at most ``max_error``", with its guarantee.

    Attributes
    ----------
    verdict : str
        "certified" (``upper <= max_error``), "refuted" (``lower > max_error``) or "undecided".
    measure : str
        The error judged: "cutoff", "smooth", "bounded_variation", "distance", "ece" or "risk_gap".
    estimate : float
        Its value on these rows.
    lower, upper : float
        Limits, each one-sided at ``confidence_level``: a verdict is wrong with probability at most
        1 - confidence_level. Both at once they hold with 1 - 2 (1 - confidence_level), and so does the one that the
        verdict rests on, because the rows choose which one that is. For one limit at the full level ask
        `confidence_interval` for it beforehand.
    max_error : float
        The limit asked about.
    confidence_level : float
        Of the verdict.
    method : str
        "paper", "hoeffding", "adaptive", "exact" or "normal".
    rows : int
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
        When undecided: about how many fresh rows would decide, in two digits, if the error is as estimated (None
        where no number can be said: the method cannot get there, or the estimate is so close to the limit that it
        would be more than a hundred times these rows).
    assumptions : tuple of str
        What the guarantee rests on.
    event_rate : float
        Share of these rows, by weight, that are events.
    relative_to : str
        What ``estimate``, ``lower``, ``upper`` and ``max_error`` are shares of: "rows" or "events".
    cautions : tuple of str
        Why the verdict would mislead whoever reads nothing else, and what to ask instead; empty when it would not.
    notes : tuple of str
        What to keep in mind for these data.
    saving : LargestSaving or None
        For the risk gap: the line that would have saved most on these rows, and at which threshold.
    thresholds : tuple of float or None
        The lowest and the highest threshold that a risk gap is about; None for other errors.
    cost_false_positive, cost_false_negative : float or None
        The costs that were translated into a threshold, if any; a limit times ``cost_unit`` is in cost units.
    clusters : Clusters or None
        What the clusters of the rows are, where they were named; None for independent rows.
    """

    verdict: str
    measure: str
    estimate: float
    lower: float
    upper: float
    max_error: float
    confidence_level: float
    method: str
    rows: int
    n_eff: float
    target: str
    finite_sample: bool
    worst_interval: WorstInterval
    rows_needed: int | None
    assumptions: tuple[str, ...]
    event_rate: float
    relative_to: str = "rows"
    cautions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    saving: LargestSaving | None = None
    thresholds: tuple[float, float] | None = None
    cost_false_positive: float | None = None
    cost_false_negative: float | None = None
    clusters: Clusters | None = None

    _may_be_infinite: ClassVar = ("estimate", "upper")  # as shares of events, where there is none
    _ranges: ClassVar = {
        **dict.fromkeys(("max_error", "confidence_level", "event_rate"), UNIT),
        **dict.fromkeys(("estimate", "lower", "upper"), (0.0, math.inf)),
    }
    _words: ClassVar = {"verdict": VERDICTS, "measure": MEASURES, "relative_to": YARDSTICKS}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_shares("estimate", "lower", "upper")
        self._check_order("lower", "upper")
        said = verdict_of(self.lower, self.upper, self.max_error)
        if self.verdict != said:
            self._refuse("verdict", self.verdict, f"while its limits say {said!r}")
        if (self.saving is None) != (self.thresholds is None):
            self._refuse("saving", self.saving, "while thresholds say otherwise")

    def __bool__(self) -> bool:
        """Return whether the error is certified to be at most ``max_error``."""
        return self.verdict == "certified"

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def sentences(self) -> list[str]:
        """Return the verdict in words: what was found, the numbers, where, cautions, what it assumes, and notes."""
        return [
            self.finding(),
            self.numbers(),
            self.where(),
            *(f"Caution: {caution}" for caution in self.cautions),
            f"This assumes that {'; '.join(self.assumptions)}.",
            *(f"Note: {note}" for note in self.notes),
        ]

    def finding(self) -> str:
        """Say the verdict, and what it means in cases."""
        if self.thresholds is not None:
            return self._saving_said(
                over_thresholds(self.thresholds, self.cost_false_positive, self.cost_false_negative)
            )
        name, whom, limit = (
            MEASURES.words(self.measure),
            _whom(self),
            limit_said(self.max_error, self.relative_to),
        )
        level = level_said(self.confidence_level)
        if self.verdict == "undecided":
            return f"Undecided: these rows do not show whether the {name} of {whom} is above or below {limit}."
        side = "at most" if self.verdict == "certified" else "above"
        meaning = ""
        if MEASURES[self.measure].by_intervals:
            cases = f"{hundredfold(self.max_error)} per 100 {self.relative_to}"
            meaning = f" On no interval of forecasts do events and forecasts differ by more than {cases}."
            if self.verdict == "refuted":
                meaning = f" On some interval of forecasts events and forecasts differ by more than {cases}."
        verdict = verdict_said(self.verdict.capitalize())
        return f"{verdict}: with {level} confidence the {name} of {whom} is {side} {limit}.{meaning}"

    def _saving_said(self, over: str) -> str:
        """Say the verdict on what re-drawing a line can save."""
        limit, level = f"{shown(self.max_error)} per case", level_said(self.confidence_level)
        limit += self._limit_in_costs(self.max_error)
        if self.verdict == "undecided":
            return f"Undecided: these rows do not show whether a {REDRAWING} saves more than {limit}, at {over}."
        verdict = verdict_said(self.verdict.capitalize())
        if self:
            return f"{verdict}: with {level} confidence no {REDRAWING} saves more than {limit}, at {over}."
        some = over.replace("any threshold", "some threshold", 1)
        return f"{verdict}: with {level} confidence a {REDRAWING} saves more than {limit}, at {some}."

    def where(self, *, whole: str = "") -> str:
        """Say where these rows are worst calibrated, in points, and what that adds up to, or what could be saved.

        Parameters
        ----------
        whole : str
            What shares are shares of, where these rows are a part, as in "of its rows".
        """
        if self.saving is not None:
            return str(self.saving)
        rate = self.event_rate if self.relative_to == "events" else None
        return self.worst_interval.where(event_rate=rate, off=self.verdict == "refuted", whole=whole)

    def numbers(self) -> str:
        """Say estimate and limits, as surely as a number holds that is shown after a look at the verdict."""
        both = level_of_both(self.confidence_level)
        limits = ""
        if self.verdict == "undecided":
            limits = (
                f", from {lower_said(self.lower)} to {upper_said(self.upper)}, each limit with "
                f"{level_said(self.confidence_level)} confidence"
            )
        elif both:
            number = f"at most {upper_said(self.upper)}{self._limit_in_costs(self.upper)}"
            if not self:
                number = f"at least {lower_said(self.lower)}{self._in_costs(self.lower)}"
            limits = f", and with {level_said(both)} confidence {number}"
        unit = "" if self.relative_to == "rows" else f", times the event rate of {percent(self.event_rate)} here"
        basis = f"{_rows_said(self)}, {self.method} method"
        needed = ""
        if self.rows_needed is not None:
            needed = f" About {self.rows_needed:,} fresh rows would decide it if the error is as estimated."
        elif self.clusters is not None and self.clusters.needed is not None:
            clusters = f"{self.clusters.needed:,} clusters like these"
            needed = f" About {clusters} would decide it if the error is as estimated."
        return f"Estimate {estimate_said(self.estimate)}{limits}{unit} ({basis}).{needed}"


@dataclass(frozen=True)
class GroupCertificates(JointVerdict, PerGroup[Any], Result):
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
    relative_to : str
        What errors and limits are shares of: the "rows" of the group, or its "events".
    """

    verdict: str
    max_error: float
    confidence_level: float
    groups: tuple[Label, ...]
    upper: tuple[float, ...]
    certificates: tuple[Certificate, ...]
    relative_to: str = "rows"

    _may_be_infinite: ClassVar = ("upper",)  # as shares of events, where there may be none
    _ranges: ClassVar = {**dict.fromkeys(("max_error", "confidence_level"), UNIT), "upper": (0.0, math.inf)}
    _words: ClassVar = {"verdict": VERDICTS, "relative_to": YARDSTICKS}

    def frame(self, backend: Any = None) -> Any:
        """Return one row per group."""
        return self._framed({"group": list(self.groups), **self._columns()}, backend)

    def __str__(self) -> str:
        return "\n".join([*self.findings(), *self.lines(), *self.one_by_one(), *self.remarks()])

    def findings(self) -> list[str]:
        """Return the joint verdict in words, what it assumes, and what the verdicts on groups are worth."""
        level = level_said(self.confidence_level)
        measure = error_said(self.certificates[0])
        limit = limit_said(self.max_error, self.relative_to)
        if self.verdict == "certified":
            finding = f"with {level} confidence the {measure} of every group is at most {limit}"
        elif self.verdict == "refuted":
            finding = f"with {level} confidence the {measure} is above {limit} in {self.named('refuted')}"
        else:
            finding = f"some groups' {measure} may be above {limit} (least settled: {printable(self.least_settled)})"
        unit = "" if self.relative_to == "rows" else "numbers that are times its event rate, and "
        return [
            f"{verdict_said(self.verdict.capitalize())}: {finding} ({counted(len(self.groups), 'group')}, "
            f"{self.certificates[0].method} method).",
            self.assumed(),
            f"Per group, {unit}verdicts that hold together with {level} confidence (and so do all upper limits, and "
            "all lower ones):",
        ]
