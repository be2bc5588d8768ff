"""The door for whatever gives a guarantee: that of `intake`, which no estimated weights pass.

A guarantee takes weights as fixed beforehand. Those of censored rows (`horizon`) are estimated from the rows, which
every summary of them remembers; here they are refused, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from calibrant.core.errors import InputError
from calibrant.core.voices import Either, Phrase
from calibrant.rows import intake

Given = TypeVar("Given")
Arguments = ParamSpec("Arguments")


def with_fixed_weights(rows: Given) -> Given:
    """Return rows, or what was made of them, unless their weights were estimated from them."""
    if getattr(rows, "weights_estimated", False) is True:
        raise InputError(
            "holds censored rows with weights that were estimated from them, for which no guarantee holds",
            argument="y_true",
            remedy=Phrase(
                "measure them with limits{else_}",
                else_=Either(", or pass y_true.fixed() for what holds approximately, with many rows"),
            ),
        )
    return rows


def _promised(door: Callable[Arguments, Given]) -> Callable[Arguments, Given]:
    """Return a door that estimated weights do not pass."""

    @wraps(door)
    def opened(*given: Arguments.args, **options: Arguments.kwargs) -> Given:
        for each in (*given, *options.values()):
            with_fixed_weights(each)  # before anything is made of them
        return with_fixed_weights(door(*given, **options))

    return opened


as_source = _promised(intake.as_source)
as_clustered = _promised(intake.as_clustered)
as_tally = _promised(intake.as_tally)
as_observations = _promised(intake.as_observations)
in_groups = _promised(intake.in_groups)
rows_to_fit = _promised(intake.rows_to_fit)
with_unit_weights = _promised(intake.with_unit_weights)
