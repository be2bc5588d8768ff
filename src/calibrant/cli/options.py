"""Options that several commands share, with the same meaning in each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from calibrant.certificates.methods.registry import METHODS
from calibrant.measures.registry import MEASURES

Function = TypeVar("Function", bound=Callable[..., Any])

CONFIDENCE_LEVEL = click.option(
    "--confidence-level",
    type=click.FloatRange(0.5, 1.0, max_open=True),
    default=0.95,
    show_default=True,
    help="One minus the probability of being wrong.",
)
LIMIT_METHOD = click.option(
    "--method",
    type=click.Choice(list(METHODS)),
    default="adaptive",
    show_default=True,
    help=f"How limits are found. {'; '.join(f'{name}: {METHODS.words(name)}' for name in METHODS)}.",
)
SEED = click.option(
    "--rng",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Of the random numbers: fix it beforehand.",
)
MEASURE = click.option(
    "--measure",
    type=click.Choice(list(MEASURES)),
    default="cutoff",
    show_default=True,
    help="The error to judge.",
)
VARIATION = click.option(
    "--variation",
    type=click.FloatRange(min=0.0),
    default=2.0,
    show_default=True,
    help="Largest total variation of the weights, for --measure bounded_variation.",
)

RELATIVE_TO = click.option(
    "--relative-to",
    type=click.Choice(["rows", "events"]),
    default="rows",
    show_default=True,
    help="What the error and its limits are shares of. With rare events 0.05 of all rows is a lot; 0.25 of the events "
    "is not.",
)


def takes_limits(function: Function) -> Function:
    """Add the options that say which error is judged and how; the function gets them as ``limits``, to be passed on."""

    @functools.wraps(function)
    def run(
        *given: Any, confidence_level: float, method: str, measure: str, variation: float, rng: int, **rest: Any
    ) -> Any:
        limits = {
            "confidence_level": confidence_level,
            "method": method,
            "measure": measure,
            "variation": variation,
            "rng": rng,
        }
        return function(*given, limits=limits, **rest)

    options = (CONFIDENCE_LEVEL, LIMIT_METHOD, MEASURE, VARIATION, SEED)
    return cast(Function, functools.reduce(lambda decorated, option: option(decorated), reversed(options), run))
