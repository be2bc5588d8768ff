"""What limits and alarms of a monitor rest on, in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from calibrant.certificates.event_shares import event_rate_of
from calibrant.certificates.results import verdict_of
from calibrant.core.voices import Either, Option, Phrase
from calibrant.core.words import counted, measured
from calibrant.monitors.periods import PeriodLabel
from calibrant.monitors.questions import Question
from calibrant.monitors.spread import Spread
from calibrant.rows.tally import Totals
from calibrant.rows.weights import effective_rows

_CHANCE = 3.0
"""Standard deviations by which the event rate so far may be off by chance."""

_FEWEST = 10
"""Periods that are named by moments, with about one row each, before that is taken for a mistake."""

_MOMENTS = 10**9
"""So many seconds were over in 2001, and no day is numbered like that."""


@dataclass(frozen=True)
class Facts:
    """What words depend on."""

    monitor: Any
    spread: Spread
    period: PeriodLabel
    is_crossed: bool
    is_outside: bool
    missing: int
    late: int


def verdict(lower: float, upper: float, max_error: float, *, is_void: bool) -> str:
    """Return what limits say; nothing of the future where what they rest on does not hold."""
    return "void" if is_void else verdict_of(lower, upper, max_error)


def assumptions(facts: Facts) -> tuple[str, ...]:
    """Return what the promises rest on."""
    monitor = facts.monitor
    found = []
    unit = "rows" if monitor.unit == "row" else "periods"
    if monitor.assume == "one population":
        found.append(f"what is to be expected of {unit} given the past stayed the same (an alarm says if it did not)")
    else:
        given = "the past" if monitor.unit == "row" else "the past and the forecasts of the period"
        found.append(
            f"limits are of the average, over the {unit} so far, of the error that was to be expected given {given}, "
            "on intervals that begin and end at sixteenths or nearer to 0 and 1"
        )
    if monitor.unit == "row":
        found.append("rows of one period share nothing that decides their outcomes")
    else:
        found.append("each period counts once, however many rows it has")
    found.append("the forecasts were made before the outcomes, and without them")
    if monitor.maturity:
        found.append(
            "forecasts are judged as if all earlier outcomes were known when they were made, also those that were not "
            "due yet"
        )
    if facts.missing:
        found.append("whether a label is missing has to do with the forecast and the past only, not with the outcome")
    return tuple(found)


def cautions(question: Question, max_error: float, totals: Totals) -> tuple[str, ...]:
    """Return why the limit says nothing about forecasts of events as frequent as those so far, if so.

    Streams begin with few rows, in which a class may be rare by chance. So nothing is said while Wilson's interval of
    the event rate holds one that calls for no caution.
    """
    rows = effective_rows(totals)
    rate = round(event_rate_of(totals), 12)  # means of periods may leave a trace of events where there are none
    middle = (rate * rows + _CHANCE**2 / 2.0) / (rows + _CHANCE**2)
    reach = _CHANCE * math.sqrt(rate * (1.0 - rate) * rows + _CHANCE**2 / 4.0) / (rows + _CHANCE**2)
    low, high = max(middle - reach, 0.0), min(middle + reach, 1.0)
    for possible in (low, high, min(max(low, 0.5), high)):
        if not question.cautions(max_error, possible):
            return ()
    return question.cautions(max_error, rate)


def _is_moment(period: PeriodLabel) -> bool:
    """Whether a period is named by a minute or second, or by the seconds since 1970."""
    return ":" in period if isinstance(period, str) else period > _MOMENTS


def notes(facts: Facts) -> tuple[str, ...]:
    """Return what to keep in mind."""
    found: list[str] = []
    monitor, spread = facts.monitor, facts.spread
    if monitor.unit == "row" and spread.is_far:
        found.append(
            Phrase(
                "periods differ {times} times as much as independent rows would make them: rows of a period share "
                "something, so that limits and alarm mean nothing; use {unit}",
                times=measured(spread.overdispersion or 0.0, 2),
                unit=Option("unit", "period"),
            )
        )
    if monitor.unit == "period" and spread.are_alike:
        found.append(
            Phrase(
                "neighbouring periods are alike (correlation {alike}): if that is no error of the forecasts, alarms "
                "come more often than promised; longer periods help",
                alike=measured(spread.alike or 0.0, 2),
            )
        )
    if monitor.cells.row_total < 2 * spread.periods >= 2 * _FEWEST and _is_moment(facts.period):
        found.append(
            Phrase(
                "nearly every row is a period of its own, and false alarms are promised to be rare in periods, not in "
                "hours or days: name longer periods{how}",
                how=Either(", such as days", ", as --time and --every do"),
            )
        )
    if facts.is_crossed:
        found.append("the lower limit is above an earlier upper one: what is to be expected has changed")
    if facts.is_outside:
        found.append(
            Phrase(
                "what was measured so far lies outside the limits, which rest on nothing having changed: most likely "
                "something has, by less than an alarm takes; use {assume} where that is no reason for one",
                assume=Option("assume", "anything"),
            )
        )
    if facts.missing:
        found.append(f"{counted(facts.missing, 'label')} missing when due")
    if facts.late:
        found.append(
            f"{counted(facts.late, 'label')} came that no forecast waited for: after they were due, or under other ids"
        )
    if monitor.epoch > 1:
        found.append(
            f"this is epoch {monitor.epoch}: the upper limits of all epochs together are right with probability at "
            f"least {max(1.0 - monitor.epoch * (1.0 - monitor.confidence_level), 0.0):.3g}, and so are the lower ones"
        )
    return tuple(found)
