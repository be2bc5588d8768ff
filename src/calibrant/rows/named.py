"""Several models' rows by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.rows.groups import GroupedRows, GroupedSource
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Totals

SUMMARIES = (Totals, RowSource, GroupedSource, GroupedRows)
"""What may stand in place of outcomes and forecasts."""


def check_named(models: Mapping[Any, Any], argument: str) -> dict[str, Any]:
    """Refuse models without names."""
    if not models:
        raise ValueError(f"{argument} is an empty dict; pass at least one model")
    for name in models:
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"{argument} has the name {name!r}; name each model with a word")
    return dict(models)


def check_summaries(models: Mapping[Any, Any]) -> dict[str, Any]:
    """Refuse, in a dict in place of the outcomes, what does not hold outcomes and forecasts both."""
    given = check_named(models, "y_true")
    for name, held in given.items():
        if not isinstance(held, SUMMARIES):
            raise ValueError(
                f"y_true[{name!r}] is a {type(held).__name__}; a dict in place of the outcomes holds a Tally per "
                "model, and forecasts of several models for the same outcomes go into a dict for y_prob"
            )
    return given
