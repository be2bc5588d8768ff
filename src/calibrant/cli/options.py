"""Options that several commands share, with the same meaning in each."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from calibrant.certificates.methods.registry import METHODS
from calibrant.cli.outputs import BadInput
from calibrant.measures.registry import MEASURES

Function = TypeVar("Function", bound=Callable[..., Any])


class _Level(click.FloatRange):
    """A confidence level, with the right one for a percentage."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a number, and say how to write one that is in percent."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            with contextlib.suppress(ValueError):
                level = float(value)
                if 50.0 <= level < 100.0:
                    self.fail(f"{error.message.rstrip('.')}; write {level / 100.0:g} for {level:g}%.", param, ctx)
            raise


CONFIDENCE_LEVEL = click.option(
    "--confidence-level",
    type=_Level(0.5, 1.0, max_open=True),
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
    help="The error to judge. risk_gap: the most that re-drawing the line between acting and not acting saves per "
    "case, at the worst threshold.",
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

_CLUSTER_TARGET = click.option(
    "--cluster-target",
    type=click.Choice(["rows", "clusters"]),
    default="rows",
    show_default=True,
    help="With --cluster, what counts once: each of the rows, for clusters of these sizes, or each of the clusters, "
    "however many rows it has.",
)
_MAX_CLUSTER_SIZE = click.option(
    "--max-cluster-size",
    type=click.FloatRange(min=1.0),
    help="With --cluster, the most rows that a cluster of the population can have: limits then speak of clusters whose "
    "sizes are a matter of chance, too. State it before you look.",
)
_SERIAL = click.option(
    "--serial",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="With --cluster, how many places apart in the order of their labels clusters may depend on each other: 1 for "
    "days of which each may have to do with the next.",
)


def _threshold_range(_: click.Context, __: click.Parameter, value: str | None) -> float | tuple[float, float] | None:
    """Read one threshold, or the lowest and the highest of a range with a colon between them."""
    if value is None:
        return None
    try:
        ends = [float(end) for end in value.split(":")]
    except ValueError:
        ends = []
    if len(ends) not in (1, 2) or not all(0.0 <= end <= 1.0 for end in ends):
        raise click.BadParameter(
            f"{value!r} is neither a threshold from 0 to 1, as in 0.3, nor a range, as in 0.1:0.3."
        )
    low, high = ends[0], ends[-1]
    if low > high:
        raise click.BadParameter(f"{value!r} goes down; write the lower end first, as in {high:g}:{low:g}.")
    return low if len(ends) == 1 else (low, high)


THRESHOLD_RANGE = click.option(
    "--threshold",
    callback=_threshold_range,
    metavar="AT|LOW:HIGH",
    help="For a risk gap: the threshold from which people act, as in 0.3, or the range that theirs lie in, as in "
    "0.1:0.3. Without it the gap is the largest over all thresholds. Fix it beforehand.",
)
COSTS = (
    click.option(
        "--cost-false-positive",
        type=click.FloatRange(min=0.0),
        help="What a false alarm costs: acting where no event follows. With --cost-false-negative, in place of "
        "--threshold.",
    ),
    click.option("--cost-false-negative", type=click.FloatRange(min=0.0), help="What a missed event costs."),
)


def takes_thresholds(function: Function) -> Function:
    """Add the options that say which decisions a risk gap is about; the function gets them as ``decision``."""

    @functools.wraps(function)
    def run(
        *given: Any,
        threshold: float | tuple[float, float] | None,
        cost_false_positive: float | None,
        cost_false_negative: float | None,
        **rest: Any,
    ) -> Any:
        decision = {
            "threshold": threshold,
            "cost_false_positive": cost_false_positive,
            "cost_false_negative": cost_false_negative,
        }
        if tuple(_named(decision)) not in ((), ("threshold",), ("cost_false_positive", "cost_false_negative")):
            raise BadInput(
                "name one threshold or range with --threshold, or both --cost-false-positive and --cost-false-negative "
                "in its place"
            )
        return function(*given, decision=decision, **rest)

    return cast(Function, with_options(run, THRESHOLD_RANGE, *COSTS))


def takes_measure(function: Function) -> Function:
    """Add the options that say which error is judged; the function gets them as ``judged``, to be passed on."""

    @functools.wraps(function)
    def run(*given: Any, measure: str, variation: float, decision: dict[str, Any], **rest: Any) -> Any:
        named = _named(decision)
        if named and MEASURES[measure].thresholds is None:
            option = f"--{named[0].replace('_', '-')}"
            raise BadInput(f"{option} is for --measure risk_gap only; leave it out, or ask for that")
        return function(*given, judged={"measure": measure, "variation": variation, **decision}, **rest)

    return cast(Function, with_options(takes_thresholds(run), MEASURE, VARIATION))


def _named(decision: dict[str, Any]) -> list[str]:
    return [name for name, value in decision.items() if value is not None]


def takes_limits(function: Function) -> Function:
    """Add the options that say which error is judged and how; the function gets them as ``limits``, to be passed on."""

    @functools.wraps(function)
    def run(*given: Any, confidence_level: float, method: str, rng: int, judged: dict[str, Any], **rest: Any) -> Any:
        limits = {"confidence_level": confidence_level, "method": method, "rng": rng, **judged}
        return function(*given, limits=limits, **rest)

    return cast(Function, with_options(takes_measure(SEED(run)), CONFIDENCE_LEVEL, LIMIT_METHOD))


def takes_clusters(function: Function) -> Function:
    """Add the options that say how clusters count; the function gets them as ``clusters``, to be passed on."""

    @functools.wraps(function)
    def run(*given: Any, cluster_target: str, max_cluster_size: float | None, serial: int, **rest: Any) -> Any:
        clusters = {"cluster_target": cluster_target, "max_cluster_size": max_cluster_size, "serial": serial}
        return function(*given, clusters=clusters, **rest)

    return cast(Function, with_options(run, _CLUSTER_TARGET, _MAX_CLUSTER_SIZE, _SERIAL))


def with_options(function: Callable[..., Any], *options: Callable[[Any], Any]) -> Any:
    """Add options to a command, in this order."""
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), function)
