"""Cautions: limits so wide that a verdict on them says nothing about the forecasts."""

from __future__ import annotations

from calibrant.core.voices import Either, Option, Phrase
from calibrant.core.words import percent

WIDE_LIMIT = "wide_limit"
"""The code of a caution that names another limit."""

_WIDE = 0.5
"""A limit above this share of the rarer class is wide."""

SENSIBLE = 0.25
"""A limit that means something, as a share of the rarer class."""


def cautions_on(max_error: float, event_rate: float, relative_to: str, *, by_events: bool = True) -> tuple[str, ...]:
    """Return why a limit says nothing about forecasts of events this frequent, and which one would; or nothing.

    Whoever forecasts 0 for everybody has an error of the event rate, and of the rate of non-events with 1: limits that
    let that pass, or nearly, are met without looking at a single case. ``by_events`` says whether the error may be
    asked about as a share of the events.
    """
    events_are_rarer = event_rate <= 0.5
    rarer = event_rate if events_are_rarer else 1.0 - event_rate
    rarer_class, constant = ("events", 0) if events_are_rarer else ("non-events", 1)
    limit = max_error if relative_to == "rows" else max_error * event_rate
    if rarer == 0.0:
        missing = "an event" if events_are_rarer else "a non-event"
        return (
            f"None of these rows is {missing}: on them forecasting {constant} for everybody has no error. "
            f"Collect rows with {rarer_class}.",
        )
    if limit <= _WIDE * rarer:
        return ()
    rate, wide = percent(rarer), percent(limit)
    if limit >= rarer:
        why = f"Forecasting {constant} for everybody would pass this limit of {wide}"
    else:
        why = f"This limit of {wide} leaves room for more than half of the {rarer_class} to be missed"
    in_rows = float(f"{SENSIBLE * rarer:.2g}")
    remedy = Phrase("use {limit}", limit=Option("max_error", in_rows))
    if events_are_rarer and by_events:
        remedy = Phrase(
            "use {relative}{comma} {limit}, here {rows:g} of all rows",
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
