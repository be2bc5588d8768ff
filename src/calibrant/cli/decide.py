"""``calibrant decide``: what does acting on the forecasts lose, and what could be saved?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from calibrant.cli.answers import decisions_said
from calibrant.cli.inputs import Source, explained, takes_rows
from calibrant.cli.options import CONFIDENCE_LEVEL, COSTS, LIMIT_METHOD, SEED, takes_clusters
from calibrant.cli.outputs import BadInput, Command, Show
from calibrant.cli.rows import open_rows

if TYPE_CHECKING:
    from calibrant.decisions.everything import Decisions


@click.command(
    "decide",
    short_help="What does acting on the forecasts lose?",
    cls=Command,
    examples="""
    calibrant decide preds.csv --threshold 0.2
    calibrant decide preds.csv --threshold 0.1 --threshold 0.2 --threshold 0.5
    calibrant decide preds.csv --cost-false-positive 10 --cost-false-negative 90
    calibrant decide preds.csv --threshold 0.2 --by hospital --json
    calibrant decide visits.csv --threshold 0.2 --cluster patient
    """,
)
@click.option(
    "--threshold",
    type=click.FloatRange(0.0, 1.0),
    multiple=True,
    help="Act on forecasts of at least this; may be given several times.",
)
@COSTS[0]
@COSTS[1]
@click.option(
    "--wrapper",
    type=click.Choice(["nondecreasing", "monotone", "any"]),
    default="nondecreasing",
    show_default=True,
    help="The recalibrations to compare with: moving the cutoff, also turning the rule round, or any at all.",
)
@CONFIDENCE_LEVEL
@LIMIT_METHOD
@SEED
@takes_clusters
@takes_rows(clusters=True)
def command(
    source: Source,
    show: Show,
    threshold: tuple[float, ...],
    cost_false_positive: float | None,
    cost_false_negative: float | None,
    wrapper: str,
    confidence_level: float,
    method: str,
    rng: int,
    clusters: dict[str, Any],
) -> None:
    """Say what acting on forecasts from a threshold up loses and gains, what could be saved, and what is guaranteed.

    Name one or several thresholds, or what the two mistakes cost; the threshold is then the share of the first cost in
    their sum. The losses are those of the rows in FILE; the guarantee, with --confidence-level, is about cases to come,
    if nothing changes (with --method exact about these very forecasts, as if issued once more). It assumes independent
    rows, or with --cluster independent clusters, and a model fixed without looking at them. With --by, the guarantees
    of all groups hold together.
    """
    costs = {"cost_false_positive": cost_false_positive, "cost_false_negative": cost_false_negative}
    _check_question(threshold, costs)
    asked: dict[str, Any] = {"threshold": threshold} if threshold else costs
    asked |= {"wrapper": wrapper, "confidence_level": confidence_level, "method": method, "rng": rng, **clusters}
    with open_rows(source) as rows, explained(rows.source):
        whole = _decided(rows.data, asked)
        groups = None if source.by is None else _decided(rows.grouped, asked)
        facts = rows.facts()
    full = str(whole) if groups is None else f"{whole}\n\n{groups.said(by=source.by)}"
    parts: list[dict[str, Any]] = []
    if groups is not None:
        parts = [
            {"group": label, "result": _document(each)}
            for label, each in zip(groups.groups, groups.decisions, strict=True)
        ]
    said = show.words(decisions_said(whole, groups, source.by), full)
    show.answer(said, input=facts, result=_document(whole), groups=parts)


def _check_question(threshold: tuple[float, ...], costs: dict[str, float | None]) -> None:
    given = [name for name, value in costs.items() if value is not None]
    if threshold and given:
        raise BadInput("name either thresholds or costs, which say the same in two ways")
    if not threshold and len(given) != 2:
        raise BadInput("say what is at stake: --threshold 0.2, or both --cost-false-positive and --cost-false-negative")


def _decided(data: dict[str, Any], asked: dict[str, Any]) -> Any:
    from calibrant.decisions import decide

    return decide(**data, **asked)


def _document(found: Decisions) -> dict[str, Any]:
    """Return what was found as the document lists it, with the reason for what is left out in words of a shell."""
    refusal = None if found.refusal is None else str(found.refusal)
    return {**vars(found), "decisions": [vars(each) for each in found.decisions], "refusal": refusal}
