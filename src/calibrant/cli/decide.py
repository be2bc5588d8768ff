"""``calibrant decide``: what does acting on the forecasts lose, and what could be saved?"""

from __future__ import annotations

from typing import Any

import click

from calibrant.cli.inputs import Source, explained, takes_rows
from calibrant.cli.options import CONFIDENCE_LEVEL, LIMIT_METHOD, SEED
from calibrant.cli.outputs import BadInput, Command, Show, in_a_shell, table
from calibrant.cli.rows import open_rows


@click.command(
    "decide",
    short_help="What does acting on the forecasts lose?",
    cls=Command,
    examples="""
    calibrant decide preds.csv --threshold 0.2
    calibrant decide preds.csv --threshold 0.1 --threshold 0.2 --threshold 0.5
    calibrant decide preds.csv --cost-false-positive 10 --cost-false-negative 90
    calibrant decide preds.csv --threshold 0.2 --by hospital --json
    """,
)
@click.option(
    "--threshold",
    type=click.FloatRange(0.0, 1.0),
    multiple=True,
    help="Act on forecasts of at least this; may be given several times.",
)
@click.option("--cost-false-positive", type=click.FloatRange(min=0.0), help="What acting in vain costs.")
@click.option("--cost-false-negative", type=click.FloatRange(min=0.0), help="What a missed event costs.")
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
@takes_rows()
def command(
    source: Source,
    show: Show,
    threshold: tuple[float, ...],
    cost_false_positive: float | None,
    cost_false_negative: float | None,
    wrapper: str,
    confidence_level: float,
    method: str,
    seed: int,
) -> None:
    """Say what acting on forecasts from a threshold up loses, what recalibration could save, and what is guaranteed.

    Name one or several thresholds, or what the two mistakes cost; the threshold is then the share of the first cost in
    their sum. The losses are those of the rows in FILE; the guarantee, with --confidence-level, is about cases to come,
    if nothing changes (with --method exact about these very forecasts, as if issued once more). It assumes independent
    rows and a model fixed without looking at them. With --by, the guarantees of all groups hold together.
    """
    costs = {"cost_false_positive": cost_false_positive, "cost_false_negative": cost_false_negative}
    _check_question(threshold, costs)
    questions: list[dict[str, Any]] = [{"threshold": each} for each in threshold] or [costs]
    limits = {"method": method, "rng": seed}
    with open_rows(source) as rows, explained(rows.source):
        whole = _decisions(rows.data, questions, wrapper, {**limits, "confidence_level": confidence_level})
        each_level = 1.0 - (1.0 - confidence_level) / max(rows.group_count, 1)
        groups = rows.by_group(
            lambda data: _decisions(data, questions, wrapper, {**limits, "confidence_level": each_level})
        )
        facts = rows.facts()
    lines = [_in_words(whole)]
    if groups:
        lines += ["", _per_group(groups, rows.source.by, confidence_level)]
    show.answer(
        "\n".join(lines),
        input=facts,
        result=whole,
        groups=[{"group": label, "result": each} for label, each in groups],
    )


def _check_question(threshold: tuple[float, ...], costs: dict[str, float | None]) -> None:
    given = [name for name, value in costs.items() if value is not None]
    if threshold and given:
        raise BadInput("name either thresholds or costs, which say the same in two ways")
    if not threshold and len(given) != 2:
        raise BadInput("say what is at stake: --threshold 0.2, or both --cost-false-positive and --cost-false-negative")


def _decisions(
    data: dict[str, Any], questions: list[dict[str, Any]], wrapper: str, limits: dict[str, Any]
) -> dict[str, Any]:
    """Return for each threshold the loss, what could be saved and the best cutoff, and what is guaranteed.

    The middle two need every distinct forecast; where a file has too many, they are None and the reason is given.
    """
    import calibrant
    from calibrant.rows.intake import as_tally
    from calibrant.rows.refinement import TooManyForecastsError

    refusal = None
    try:
        data = {"y_true": as_tally(**data)}
    except TooManyForecastsError as error:
        refusal = in_a_shell(str(error))
    interval = calibrant.confidence_interval(**data, alternative="less", **limits)
    return {
        "decisions": [
            {
                "risk": calibrant.decision_risk(**data, **question),
                "gap": calibrant.risk_gap(**data, wrapper=wrapper, **question) if refusal is None else None,
                "best_threshold": calibrant.best_threshold(**data, **question) if refusal is None else None,
                "guarantee": calibrant.decision_guarantee(interval, **question),
            }
            for question in questions
        ],
        "guarantee": calibrant.decision_guarantee(interval),
        "refusal": refusal,
    }


def _in_words(found: dict[str, Any]) -> str:
    decisions = found["decisions"]
    refused = [] if found["refusal"] is None else [f"What could be saved is left out: {found['refusal']}."]
    if len(decisions) == 1:
        said = [decisions[0][name] for name in ("risk", "gap", "guarantee")]
        return "\n".join([*(str(each) for each in said if each is not None), *refused])
    return "\n".join(
        [
            "Acting on forecasts of at least the threshold, on these rows (losses per row; the best cutoff was chosen "
            "on them, so expect less of it on others):",
            table(_NAMES, [_numbers(each) for each in decisions]),
            str(found["guarantee"]),
            *refused,
        ]
    )


_NAMES = ("threshold", "acted on", "loss", "could save", "best cutoff")


def _numbers(found: dict[str, Any]) -> tuple[str, ...]:
    from calibrant.core.words import percent

    risk, best = found["risk"], found["best_threshold"]
    return (
        f"{risk.threshold:.4g}",
        percent(risk.acted),
        f"{risk.risk:.5f}",
        "-" if found["gap"] is None else f"{found['gap'].gap:.5f}",
        "-" if best is None else "never act" if best.cutoff is None else f"{best.cutoff:.4g}",
    )


def _per_group(groups: list[tuple[Any, dict[str, Any]]], by: str | None, confidence_level: float) -> str:
    """Return one line per group and threshold, the guarantees of all groups true together."""
    from calibrant.core.words import level_said, rounded_up

    lines = [
        (str(label), *_numbers(each), f"at most {rounded_up(each['guarantee'].nondecreasing)}")
        for label, found in groups
        for each in found["decisions"]
    ]
    assumed = dict.fromkeys(words for _, found in groups for words in found["guarantee"].assumptions)
    return "\n".join(
        [
            f"Per group of {by!r}; the last column is what a non-decreasing recalibration can save at most in "
            f"expectation, with {level_said(confidence_level)} confidence for all groups together:",
            table(("group", *_NAMES, "guaranteed"), lines),
            f"This assumes that {'; '.join(assumed)}.",
        ]
    )
