"""What a report says of rows read period by period: was there an alarm, since when, where, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from calibrant.core.voices import Option, Phrase
from calibrant.core.words import counted, level_said, measured, percent, printable, rounded_down, rounded_up
from calibrant.monitors.spread import are_alike, is_far
from calibrant.reports.changes import NO_LIMIT
from calibrant.reports.results import ChangeOverTime, ModelSummary
from calibrant.rows.hints import MISTAKES

HEADING = "Has it changed?"
_FEW = 30  # periods
_MOST_VERDICTS = 5  # one after another, in a sentence


@dataclass(frozen=True)
class ChangeSaid:
    """The section on change, in words.

    Attributes
    ----------
    state, label : str
        What its colour says, and the same in a word or two.
    finding : str
        The answer, in one sentence without a full stop.
    lines : tuple of str
        What it rests on, with numbers.
    notes : tuple of str
        What to keep in mind.
    next_step : str
        What to do.
    assumed : str
        What limits and alarm rest on.
    """

    state: str
    label: str
    finding: str
    lines: tuple[str, ...]
    notes: tuple[str, ...]
    next_step: str
    assumed: str


def change_of(model: ModelSummary) -> ChangeSaid | None:
    """Say whether anything has changed; nothing of rows without periods."""
    change = model.change
    if change is None:
        return None
    reading = change.reading
    state, label = ("refuted", "Alarm") if reading.alarm is not None else ("neutral", "No alarm")
    if reading.alarm is None and reading.verdict == "void":
        state, label = "undecided", "Limits contradict each other"
    lines = (_alarm_said(change), _before_and_since(change), _verdicts(change), _limits(change), _spread(model, change))
    return ChangeSaid(
        state=state,
        label=label,
        finding=finding(change),
        lines=tuple(line for line in lines if line),
        notes=tuple(
            f"{note[0].upper()}{note[1:]}." for note in reading.notes if getattr(note, "code", "") not in MISTAKES
        ),
        next_step=next_step(change),
        assumed=f"This assumes that {'; '.join(reading.assumptions)}.",
    )


def finding(change: ChangeOverTime) -> str:
    """Return the answer in one sentence without a full stop."""
    alarm, periods = change.reading.alarm, change.history.period
    if alarm is None:
        return f"No alarm in {_periods(change)}, from {printable(periods[0])} to {printable(periods[-1])}"
    range_said, since = f"from {alarm.low:g} to {alarm.high:g}", printable(alarm.since)
    if change.from_the_start:
        sure = "" if alarm.confirmed else ", most likely"
        return f"Forecasts are off, it seems from the first period on{sure}: those {range_said} are {alarm.direction}"
    yes = "Yes:" if alarm.confirmed else "It seems so: most likely"
    return f"{yes} forecasts {range_said} are {alarm.direction} since about {since}"


def caution_of(model: ModelSummary) -> str:
    """Say on the first screen that the past may not speak for the future; nothing where no change was found."""
    change = model.change
    if change is None or change.reading.alarm is None or change.from_the_start:
        return ""
    return f"{finding(change)}. What is said of all rows may not hold for cases to come."


def next_step(change: ChangeOverTime) -> str:
    """Say what to do."""
    reading = change.reading
    if change.from_the_start:
        return Phrase(
            "Recalibrate: an error that was there all along is no matter of time. To ask whether it became worse, name "
            "the error that is no reason for an alarm ({tolerance}).",
            tolerance=Option("tolerance"),
        )
    if reading.alarm is not None:
        since = printable(reading.alarm.since)
        return (
            f"Find out what changed about {since}: the cases, the data or the model. Until then recalibrate on recent "
            "periods only, again and again (RollingRecalibrator), and judge by later periods."
        )
    if is_far(reading.overdispersion, reading.periods) and are_alike(reading.alike, reading.periods):
        return (
            "Take longer periods, such as weeks in place of days: neighbours that are alike say the same thing twice."
        )
    if reading.periods < _FEW:
        return (
            f"{_periods(change)} are few to find a change in, since each counts once: take shorter periods, or wait "
            "for more of them."
        )
    return "Go on watching: calibrant watch reads each new period, and says so when forecasts go wrong."


def change_method(change: ChangeOverTime) -> str:
    """Say how rows were read period by period, and what an alarm promises."""
    reading = change.reading
    beyond = "calibrated" if reading.tolerance == 0.0 else f"off by at most {reading.tolerance:g}"
    return (
        f"{HEADING} reads the periods in their order, as if each had been read when it ended. Evidence comes from bets "
        "that are fixed before a period and gain where forecasts are off in it; they are on every range of forecasts "
        "that begins and ends at sixteenths (finer towards 0 and 1), and begin anew after each period. While forecasts "
        f"are {beyond}, such bets gain nothing on average. Each period counts once, whatever its rows have to do with "
        f"each other. With {level_said(reading.confidence_level)} confidence there is no alarm without a reason in all "
        "these periods, a promise of its own beside the verdict."
    )


def _periods(change: ChangeOverTime) -> str:
    return counted(change.reading.periods, "period")


def _alarm_said(change: ChangeOverTime) -> str:
    """Say how sure an alarm is, and what of it; or how far from one it was."""
    reading = change.reading
    alarm, chance = reading.alarm, level_said(1.0 - reading.confidence_level)
    right = (
        "were calibrated at all times"
        if reading.tolerance == 0.0
        else f"were never off by more than {reading.tolerance:g}"
    )
    promise = f"If forecasts {right}, the chance of an alarm in any of these periods would be at most {chance}."
    if alarm is None:
        return f"{reading.watched()} {promise} That there was none does not show that nothing changed."
    after = change.history.period.index(alarm.period) + 1
    shown = (
        "Range and begin are shown: they are enough for an alarm by themselves."
        if alarm.confirmed
        else "Shown is that forecasts are off; the range and the begin are suspected, the likeliest of all."
    )
    return f"The alarm went off at {printable(alarm.period)}, after {after:,} of {_periods(change)}. {promise} {shown}"


def _before_and_since(change: ChangeOverTime) -> str:
    """Say what forecasts were and what happened in the range of an alarm, before it began and since."""
    alarm = change.reading.alarm
    if alarm is None or change.forecast_since is None or change.outcome_since is None:
        return ""
    since = f"{percent(change.outcome_since)} events where {percent(change.forecast_since)} were forecast"
    if change.forecast_before is None or change.outcome_before is None:  # there is nothing before
        return f"On these rows, in that range: {since}."
    before = f"{percent(change.outcome_before)} events where {percent(change.forecast_before)} were forecast"
    return f"On these rows, in that range: {before} before {printable(alarm.since)}, and {since} from then on."


def _verdicts(change: ChangeOverTime) -> str:
    """Say how the verdict went, period by period."""
    history = change.history
    if history.max_error == NO_LIMIT:
        return ""
    runs = [
        (verdict, [place for place, _ in run])
        for verdict, run in groupby(enumerate(history.verdict), lambda pair: pair[1])
    ]
    said = [
        f"{verdict} " + (f"from {printable(history.period[run[0]])} on" if run[0] else "at first")
        for verdict, run in runs
    ]
    if len(said) == 1:
        said = [f"{runs[0][0]} after every period"]
    if len(said) > _MOST_VERDICTS:
        said = [said[0], "...", *said[2 - _MOST_VERDICTS :]]
    return f"The verdict on a limit of {history.max_error:g}, read after each period: {', '.join(said)}."


def _limits(change: ChangeOverTime) -> str:
    reading = change.reading
    if change.history.is_void[-1]:
        return "Limits for all periods together would rest on nothing having changed, and are void."
    return (
        f"The Cutoff error of the average period is {measured(reading.estimate, 4)} so far: with "
        f"{level_said(reading.confidence_level)} confidence each, however often one looks, at least "
        f"{rounded_down(reading.lower)} and at most {rounded_up(reading.upper)}."
    )


def _spread(model: ModelSummary, change: ChangeOverTime) -> str:
    """Say how much periods differ, and what follows."""
    found = change.reading.overdispersion
    if found is None:
        return ""
    times = f"the variance of their means is {measured(found, 1)} times that of independent rows"
    if not is_far(found, change.reading.periods):
        return (
            f"Periods differ about as much as independent rows would make them ({times}). Each counts once here, which "
            "is right in any case; a Monitor that counts rows, with unit='row', would find a change sooner."
        )
    alone = ""
    if model.judged.clusters is None:
        alone = Phrase(
            " The verdict on all rows takes them as independent, which they are not: pass the periods as clusters, "
            "too ({cluster}).",
            cluster=Option("cluster"),
        )
    return (
        f"Periods differ far more than independent rows would make them: {times}. Rows of a period share something "
        "that decides their outcomes, so each period counts once here. Counted row by row, evidence would mean nothing."
        f"{alone}"
    )
