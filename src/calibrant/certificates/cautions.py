"""Cautions: limits so wide that a verdict on them says nothing about the forecasts."""

from __future__ import annotations

from calibrant.core.voices import Either, Option, Phrase
from calibrant.core.words import measured, percent
from calibrant.rows.savings import Thresholds

WIDE_LIMIT = "wide_limit"
"""The code of a caution that names another limit."""

ONE_CLASS = "one_class_only"
"""The code of a caution that no limit would mend."""

_WIDE = 0.5
"""A limit above this share of the rarer class is wide."""

SENSIBLE = 0.25
"""A limit that means something, as a share of the rarer class."""


def cautions_on(max_error: float, event_rate: float, relative_to: str, *, rows_only: bool = False) -> tuple[str, ...]:
    """Return why a limit says nothing about forecasts of events this frequent, and which one would; or nothing.

    Whoever forecasts 0 for everybody has an error of the event rate, and of the rate of non-events with 1: limits that
    let that pass, or nearly, are met without looking at a single case. ``rows_only`` says that there are no limits as
    shares of events to advise: rows in clusters, and streams, have none.
    """
    events_are_rarer = event_rate <= 0.5
    rarer = event_rate if events_are_rarer else 1.0 - event_rate
    rarer_class, constant = ("events", 0) if events_are_rarer else ("non-events", 1)
    limit = max_error if relative_to == "rows" else max_error * event_rate
    if rarer == 0.0:
        return _one_class(event_rate)
    if limit <= _WIDE * rarer:
        return ()
    rate, wide = percent(rarer), percent(limit)
    if limit >= rarer:
        why = f"Forecasting {constant} for everybody would pass this limit of {wide}"
    else:
        why = f"This limit of {wide} leaves room for more than half of the {rarer_class} to be missed"
    in_rows = float(f"{SENSIBLE * rarer:.2g}")
    remedy = Phrase("use {limit}", limit=Option("max_error", in_rows))
    if events_are_rarer and not rows_only:
        remedy = Phrase(
            "use {relative}{comma} {limit}, here {rows:g} as a share of rows",
            relative=Option("relative_to", "events"),
            comma=Either(","),
            limit=Option("max_error", SENSIBLE),
            rows=in_rows,
        )
    elif relative_to == "events":
        remedy = Phrase(
            "use {relative}{comma} {limit}",
            relative=Option("relative_to", "rows"),
            comma=Either(","),
            limit=Option("max_error", in_rows),
        )
    return (
        Phrase(
            "{why}, since {rarer_class} are {rate}. For a limit that means something {remedy}.",
            code=WIDE_LIMIT,
            why=why,
            rarer_class=rarer_class,
            rate=rate,
            remedy=remedy,
        ),
    )


def saving_cautions(max_error: float, event_rate: float, thresholds: Thresholds) -> tuple[str, ...]:
    """Return why a limit of a saving says nothing, and which one would; or nothing.

    Who acts always, or never, needs no forecasts. What the better of the two loses is the most that they are worth.
    """
    if event_rate in (0.0, 1.0):
        return _one_class(event_rate)
    at = min(max(event_rate, thresholds.low), thresholds.high)  # where it loses most
    loses = min((1.0 - at) * event_rate, at * (1.0 - event_rate))
    if max_error <= _WIDE * loses:
        return ()
    loss = f"{measured(loses, 4)} per case at threshold {at:.4g}"
    if thresholds.low < thresholds.high:
        loss = f"at most {measured(loses, 4)} per case, whatever the threshold"
    sensible = Option("max_error", float(f"{SENSIBLE * loses:.2g}")) if loses > 0.0 else None
    return (
        Phrase(
            "Without any forecast, the better of acting always and acting never loses {loss}: a saving of {limit:g} "
            "is a large one.{remedy}",
            code=WIDE_LIMIT,
            loss=loss,
            limit=max_error,
            remedy=Phrase(" For a limit that means something use {sensible}.", sensible=sensible) if sensible else "",
        ),
    )


def _one_class(event_rate: float) -> tuple[str, ...]:
    missing, constant, rarer_class = (
        ("an event", 0, "events") if event_rate == 0.0 else ("a non-event", 1, "non-events")
    )
    return (
        Phrase(
            "None of these rows is {missing}: on them forecasting {constant} for everybody has no error. Collect rows "
            "with {rarer_class}.",
            code=ONE_CLASS,
            missing=missing,
            constant=constant,
            rarer_class=rarer_class,
        ),
    )
