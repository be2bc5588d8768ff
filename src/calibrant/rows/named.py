"""Several models' rows by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.core.errors import InputError
from calibrant.rows.checks import Observations
from calibrant.rows.groups import GroupedRows, GroupedSource
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Totals

SUMMARIES = (Totals, RowSource, GroupedSource, GroupedRows, Observations)
"""What may stand in place of outcomes and forecasts."""


def check_named(models: Mapping[Any, Any], argument: str) -> dict[str, Any]:
    """Refuse models without names."""
    if not models:
        raise InputError("is an empty dict", argument=argument, remedy="pass at least one model")
    for name in models:
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"has the name {name!r}", argument=argument, remedy="name each model with a word")
    return dict(models)


def check_summaries(models: Mapping[Any, Any]) -> dict[str, Any]:
    """Refuse, in a dict in place of the outcomes, what does not hold outcomes and forecasts both."""
    given = check_named(models, "y_true")
    for name, held in given.items():
        if not isinstance(held, SUMMARIES):
            raise InputError(
                f"y_true[{name!r}] is a {type(held).__name__}",
                remedy="a dict in place of the outcomes holds a Tally per model, and forecasts of several models for "
                "the same outcomes go into a dict for y_prob",
            )
    return given
