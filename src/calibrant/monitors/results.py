"""What a monitor says when it is read, with the words for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from calibrant.core.results import UNIT, PerGroup, Result
from calibrant.core.types import Label
from calibrant.core.voices import Either, Option, Phrase
from calibrant.core.words import counted, in_columns, level_said, measured, percent, printable, rounded_down, rounded_up
from calibrant.measures.registry import MEASURES
from calibrant.monitors.spread import is_far

Unit = Literal["period", "row"]
Assumed = Literal["one population", "anything"]
Watched = Literal["cutoff", "risk_gap"]

VERDICTS = ("certified", "refuted", "undecided", "void")
DIRECTIONS = ("too low", "too high")


_LARGE = 1e6


def _evidence(value: float) -> str:
    """Word evidence, of which digits say nothing where it is large."""
    return f"above {_LARGE:,.0f}" if value > _LARGE else f"{value:,.3g}" if value < 1000.0 else f"{value:,.0f}"


class _Words(NamedTuple):
    """How a measure is spoken of: what is limited, what more of it is, and beyond which tolerance alarms are."""

    what: str
    above: str
    evidence: str
    evidence_of_any: str
    off: str
    off_at_all: str


_WORDS: dict[str, _Words] = {
    "cutoff": _Words(
        "the error is",
        "larger than",
        "the evidence against errors up to {:g}",
        "the evidence against calibrated forecasts",
        "forecasts are off by more than {:g}",
        "forecasts are not calibrated",
    ),
    "risk_gap": _Words(
        "what re-drawing the line between acting and not saves per case is",
        "more than",
        "the evidence of savings above {:g} per case",
        "the evidence of savings above 0 per case",
        "more than {:g} per case can be saved",
        "more than 0 per case can be saved",
    ),
}


def evidence_of(measure: str, tolerance: float) -> str:
    """Name the evidence that an alarm follows from, by what it is about."""
    words = _WORDS[measure]
    return words.evidence.format(tolerance) if tolerance else words.evidence_of_any


@dataclass(frozen=True)
class Alarm(Result):
    """What raised an alarm, and where.

    Attributes
    ----------
    period : int or str
        The period after which the alarm went off.
    since : int or str
        About when the change happened, if there was one: the first period where the evidence begins.
    low, high : float
        The interval of forecasts with most of the evidence.
    direction : str
        Whether forecasts are "too low" there, so that events happen more often than forecast, or "too high".
    confirmed : bool
        Whether this interval, direction and begin are enough for an alarm by themselves; otherwise they are suspected,
        and only that something is wrong somewhere is shown.
    """

    period: Label
    since: Label
    low: float
    high: float
    direction: str
    confirmed: bool

    _ranges: ClassVar = {"low": UNIT, "high": UNIT}
    _words: ClassVar = {"direction": DIRECTIONS}

    def __str__(self) -> str:
        how = "shown" if self.confirmed else "suspected, not shown"
        return (
            f"Alarm at {printable(self.period)}: forecasts from {self.low:g} to {self.high:g} are {self.direction} "
            f"since about {printable(self.since)} (place and time are {how})."
        )


@dataclass(frozen=True)
class Reading(Result):
    """What a monitor can say after a period, at all times together.

    Attributes
    ----------
    period : int or str
        The last period that counts.
    periods, rows : int
        How many periods and rows count since the monitor began, or was reset.
    epoch : int
        1, and one more after each reset.
    unit : str
        What counts as one piece of evidence: "period" or "row".
    assume : str
        What is assumed of the stream: "one population" or "anything".
    measure : str
        What is watched: "cutoff" or "risk_gap".
    estimate : float
        The error so far: of all rows, or of the average period.
    lower, upper : float
        Limits of the error; each holds at all times together with the confidence stated.
    max_error : float
        What the verdict is about.
    tolerance : float
        The error that is no reason for an alarm.
    confidence_level : float
        How often each limit is never wrong, however often one looks.
    verdict : str
        "certified" (the error is at most ``max_error``), "refuted" (it is larger), "undecided", or "void" (an alarm
        says that the past speaks no longer for the future, or what limits rest on is not so).
    evidence : float
        Against an error within the tolerance at all times: at least 20 with probability at most 1/20, ever.
    detector : float
        What the alarm follows from, and ``threshold`` what it must reach.
    threshold : float
        See ``detector``.
    alarm : Alarm or None
        The first alarm of this epoch.
    overdispersion : float or None
        The variance of sums over periods, divided by that of independent rows: about 1 where rows are independent.
        None for fewer than two periods.
    alike : float or None
        How similar neighbouring periods are, from -1 to 1: the correlation of their mean residuals.
    waiting, missing, late : int
        Forecasts whose label is not due yet, whose label was missing when it was due, and labels that no forecast
        waited for: they came after they were due, or under ids that nobody knows.
    assumptions : tuple of str
        What limits, evidence and alarm rest on.
    cautions : tuple of str
        Why the verdict would mislead whoever reads nothing else, such as a limit that forecasting 0 for everybody would
        pass; empty when it would not, and while rows are too few to tell.
    notes : tuple of str
        What to keep in mind.
    """

    period: Label
    periods: int
    rows: int
    epoch: int
    unit: str
    assume: str
    measure: str
    estimate: float
    lower: float
    upper: float
    max_error: float
    tolerance: float
    confidence_level: float
    verdict: str
    evidence: float
    detector: float
    threshold: float
    alarm: Alarm | None
    overdispersion: float | None
    alike: float | None
    waiting: int
    missing: int
    late: int
    assumptions: tuple[str, ...]
    cautions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    _ranges: ClassVar = {
        **dict.fromkeys(("estimate", "lower", "upper", "max_error", "tolerance", "confidence_level"), UNIT),
        "alike": (-1.0, 1.0),
    }
    _words: ClassVar = {
        "verdict": VERDICTS,
        "unit": ("period", "row"),
        "assume": ("one population", "anything"),
        "measure": get_args(Watched),
    }

    def __str__(self) -> str:
        lines = [self.finding(), *(f"Caution: {caution}" for caution in self.cautions)]
        lines += [self.watched(), str(self.advice())]
        lines += [f"This assumes that {'; '.join(self.assumptions)}.", *(f"Note: {note}" for note in self.notes)]
        return "\n".join(line for line in lines if line)

    def finding(self) -> str:
        """Say what is known of the error."""
        so_far = (
            f"after {counted(self.periods, 'period')} ({counted(self.rows, 'row')}), up to {printable(self.period)}"
        )
        words, at_most = _WORDS[self.measure], "at most"
        what, above = words.what, words.above
        heads = {
            "certified": f"Certified {so_far}: {what} {at_most} {self.max_error:g}.",
            "refuted": f"Refuted {so_far}: {what} {above} {self.max_error:g}.",
            "undecided": f"Undecided {so_far} whether {what} {at_most} {self.max_error:g}.",
            "void": f"Void {so_far}: {self.why_void()}.",
        }
        whose = "of the average period" if self.unit == "period" else "of all rows"
        estimate = f"The {MEASURES.words(self.measure)} {whose} is {measured(self.estimate)} so far"
        lower, upper = rounded_down(self.lower), rounded_up(self.upper)
        if not self._limits_hold():
            return f"{heads[self.verdict]} {estimate}; its limits, {lower} and {upper}, are void, too."
        return (
            f"{heads[self.verdict]} {estimate}; with {level_said(self.confidence_level)} confidence, however often one "
            f"looks, it is at least {lower}, and with the same confidence at most {upper}."
        )

    def why_void(self) -> str:
        """Say why there is no verdict; nothing where there is one."""
        if self.verdict != "void":
            return ""
        if self.is_doubted:
            return (
                f"periods differ {measured(self.overdispersion or 0.0, 2)} times as much as independent rows would "
                "make them, so that limits and alarm mean nothing"
            )
        if self.alarm is None:
            return "the lower limit is above an earlier upper one, so that what is to be expected has changed"
        words = _WORDS[self.measure]
        off = words.off.format(self.tolerance) if self.tolerance else words.off_at_all
        return (
            f"the alarm at {printable(self.alarm.period)} says that {off}, and what these rows show may not hold for "
            "cases to come"
        )

    @property
    def is_doubted(self) -> bool:
        """Whether rows count one by one although those of a period share something: limits and alarm mean nothing."""
        return self.unit == "row" and is_far(self.overdispersion, self.periods)

    def _limits_hold(self) -> bool:
        """Whether limits are right in spite of a verdict that is void: those that rest on nothing are."""
        return self.verdict != "void" or (self.assume == "anything" and not self.is_doubted)

    def watched(self) -> str:
        """Say whether there was an alarm, and how near the next one is."""
        evidence = evidence_of(self.measure, self.tolerance)
        gauge = f"{_evidence(self.detector)}, and an alarm takes {_evidence(self.threshold)}"
        if self.alarm is not None:
            if self.is_doubted:
                return f"{self.alarm} That means nothing, for rows of a period share something."
            return f"{self.alarm} {evidence[0].upper()}{evidence[1:]} is {gauge}."
        return f"No alarm: {evidence} is {gauge}."

    def advice(self) -> str:
        """Say what to do about an alarm; nothing without one that means something."""
        if self.alarm is None or self.is_doubted:
            return ""
        more = ""
        if self.tolerance < self.max_error:
            more = Phrase(
                " If less than {max_error:g} is no reason for an alarm, watch with {tolerance}: this alarm is about "
                "more than {tolerated:g}.",
                max_error=self.max_error,
                tolerance=Option("tolerance", self.max_error),
                tolerated=self.tolerance,
            )
        return Phrase(
            "Next: find out what happened about {since}, repair the forecasts, and begin anew with {reset}.{more}",
            since=printable(self.alarm.since),
            reset=Either("reset()", "--reset"),
            more=more,
        )


def flagged_among(evidence: Sequence[float], rate: float) -> list[bool]:
    """Return which of several pieces of evidence are flagged: the k largest, with the largest k that they allow.

    Each of them is at least K / (rate k), of K in all (e-BH of Wang and Ramdas, 2022).
    """
    falling = sorted(evidence, reverse=True)
    enough = [value for k, value in enumerate(falling, start=1) if value * rate * k >= len(falling)]
    return [bool(enough) and value >= enough[-1] for value in evidence]


@dataclass(frozen=True)
class SegmentReadings(PerGroup[Reading], Result):
    """What monitors of several segments say, and which segments are flagged.

    Attributes
    ----------
    groups : tuple
        The segments' labels, sorted; only those of which something can be said.
    readings : tuple of Reading
        What the monitor of each segment says.
    flagged : tuple
        The segments whose evidence is enough among so many. At any one time, those that are flagged although their
        errors were within the tolerance are on average at most a share of ``false_discovery_rate`` of those flagged.
    period : int or str
        The last period that counts for any of them.
    false_discovery_rate : float
        See ``flagged``.
    late : int
        Labels that no forecast of any segment waited for (any more).
    """

    groups: tuple[Label, ...]
    readings: tuple[Reading, ...]
    flagged: tuple[Label, ...]
    period: Label
    false_discovery_rate: float
    late: int = 0

    _parts: ClassVar = "readings"
    _ranges: ClassVar = {"false_discovery_rate": UNIT}

    def __post_init__(self) -> None:
        super().__post_init__()
        chosen = flagged_among([each.evidence for each in self.readings], self.false_discovery_rate)
        said = tuple(label for label, is_chosen in zip(self.groups, chosen, strict=True) if is_chosen)
        if self.flagged != said:
            self._refuse("flagged", self.flagged, f"while the evidence says {said!r}")

    def frame(self, backend: Any = None) -> Any:
        """Return one row per segment."""
        names = ("period", "periods", "rows", "estimate", "lower", "upper", "verdict", "evidence", "detector")
        columns = {name: [getattr(each, name) for each in self.readings] for name in names}
        alarms = [each.alarm and each.alarm.period for each in self.readings]
        flagged = [label in self.flagged for label in self.groups]
        return self._framed({"segment": list(self.groups), **columns, "alarm": alarms, "flagged": flagged}, backend)

    def __str__(self) -> str:
        names = ("segment", "rows", "estimate", "at least", "at most", "evidence", "verdict", "alarm", "")
        rows = [
            (
                printable(label),
                f"{each.rows:,}",
                measured(each.estimate),
                rounded_down(each.lower),
                rounded_up(each.upper),
                _evidence(each.evidence),
                each.verdict,
                "-" if each.alarm is None else printable(each.alarm.period),
                "flagged" if label in self.flagged else "",
            )
            for label, each in self.pairs()
        ]
        return "\n".join([*self.findings(), in_columns(names, rows), *self.remarks()])

    def findings(self) -> list[str]:
        """Say which segments are flagged, and what that is worth."""
        share = percent(self.false_discovery_rate).replace(".0%", "%")
        which = ", ".join(map(printable, self.flagged)) or "none"
        evidence = evidence_of(self.readings[0].measure, self.readings[0].tolerance).removeprefix("the ")
        return [
            f"Flagged up to {printable(self.period)}: {which} "
            f"({len(self.flagged)} of {counted(len(self.groups), 'segment')}).",
            f"A segment is flagged when its {evidence} is enough among so many. Of those flagged at any "
            f"one time, at most {share} are flagged by mistake on average, however often one looks. Limits, verdicts "
            "and alarms are those of each segment by itself.",
        ]

    def remarks(self) -> list[str]:
        """Return what all this rests on, and what to keep in mind."""
        assumed = dict.fromkeys(words for each in self.readings for words in each.assumptions)
        own = (
            "what is to be expected of a segment is meant given the past of all of them",
            "which segments there are has nothing to do with outcomes",
        )
        late = [f"Note: {counted(self.late, 'label')} came that no forecast waited for"] if self.late else []
        cautions = [
            f"Caution: In segment {printable(label)}: {each}"
            for label, reading in self.pairs()
            for each in reading.cautions
        ]
        notes = [f"Note on {printable(label)}: {note}" for label, each in self.pairs() for note in each.notes]
        return [*cautions, f"This assumes that {'; '.join([*assumed, *own])}.", *late, *notes]
