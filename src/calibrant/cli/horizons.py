"""Censored outcomes on the command line: which columns say how long rows were followed and what ended it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from calibrant.cli.outputs import BadInput

if TYPE_CHECKING:
    from calibrant.rows.horizons import HorizonRows
    from calibrant.rows.incidence import HorizonRisk

Function = TypeVar("Function", bound=Callable[..., Any])

FOLLOWED = "column of how long each row was followed, in any unit."
"""What --time means beside --event."""

HORIZON_OPTIONS = (
    click.option(
        "--event",
        metavar="COLUMN",
        help="In place of --y-true, where outcomes may be censored: column of what ended the follow-up, 1 for the "
        "event, 0 for censoring, other codes for competing events. Needs --time and --at.",
    ),
    click.option(
        "--at",
        type=click.FloatRange(0.0, min_open=False),
        metavar="TIME",
        help="With --event: the time by which the event is forecast, in the unit of --time.",
    ),
    click.option(
        "--competing",
        metavar="CODE",
        multiple=True,
        help="With --event: a code of events after which the event can no longer happen; may be repeated.",
    ),
)
"""What is said about censored outcomes, beside --time."""


@dataclass(frozen=True)
class HorizonAsked:
    """What the user said about censored outcomes.

    Attributes
    ----------
    time, event : str
        The columns of how long rows were followed, and of what ended that.
    at : float
        The horizon.
    competing : tuple of float
        The codes of competing events.
    """

    time: str
    event: str
    at: float
    competing: tuple[float, ...] = ()

    def rows(self, values: Mapping[str, Any], y_prob: Any) -> HorizonRows:
        """Return the rows of the columns that were read."""
        from calibrant.rows.horizons import horizon

        return horizon(
            values[self.time], values[self.event], y_prob, at=self.at, competing=list(self.competing) or None
        )

    def facts(self) -> dict[str, Any]:
        """Return what a JSON document says about it."""
        return {"time": self.time, "event": self.event, "at": self.at, "competing": list(self.competing)}


def time_option() -> Callable[[Function], Function]:
    """Return the option that names the column of times, for commands that know of no other times."""
    return click.option("--time", metavar="COLUMN", help=f"With --event: {FOLLOWED}")


def said_of_horizon(
    named: Mapping[str, Any], *, time: str | None, event: str | None, at: float | None, competing: tuple[str, ...]
) -> dict[str, Any]:
    """Return what a source is told of censored outcomes; nothing where none were named."""
    if event is None:
        for option, value in (("--at", at), ("--competing", competing or None)):
            if value is not None:
                raise BadInput(f"{option} is about censored outcomes; name their column with --event")
        return {}
    if time is None or at is None:
        missing = "--time, the column of how long rows were followed" if time is None else "--at, the horizon"
        raise BadInput(f"--event needs {missing}")
    others = {"y_true": "--y-true", "weight": "--weight", "pos_label": "--pos-label", "every": "--every"}
    for name, option in others.items():
        if named.get(name):
            raise BadInput(f"{option} does not go with --event, which names what ended each follow-up; leave it out")
    codes = [each.strip() for text in competing for each in text.split(",")]
    try:
        numbers = tuple(float(each) for each in codes)
    except ValueError:
        raise BadInput(f"--competing names codes of --event, which are numbers, got {', '.join(codes)}") from None
    return {"y_true": event, "time": None, "horizon": HorizonAsked(time, event, at, numbers)}


def risk_of(rows: Any) -> HorizonRisk | None:
    """Return the risk at the horizon of rows that may be censored; None for others."""
    from calibrant.rows.horizons import HorizonRows

    return rows.outcome if isinstance(rows, HorizonRows) else None
