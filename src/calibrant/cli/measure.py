"""``calibrant measure``: how wrong are the forecasts of these rows?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import click

from calibrant.cli.answers import measures_said
from calibrant.cli.class_answers import question_measures_said
from calibrant.cli.horizons import risk_of
from calibrant.cli.inputs import Source, explained, takes_rows
from calibrant.cli.outputs import DONE, NOT_SHOWN, Command, Show
from calibrant.cli.rows import open_rows
from calibrant.core.words import printable

if TYPE_CHECKING:
    from calibrant.measures.questions import QuestionMeasures


@click.command(
    "measure",
    short_help="How wrong are the forecasts of these rows?",
    cls=Command,
    examples="""
    calibrant measure preds.csv
    calibrant measure preds.parquet --y-true died --y-prob risk --by hospital
    calibrant measure preds.csv --y-true species --pos-label virginica --y-prob p
    calibrant measure follow-up.csv --time years --event died --at 5 --y-prob risk
    calibrant measure digits.csv --y-true digit --y-prob 'p_*' --questions classwise
    cat preds.csv | calibrant measure - --json
    """,
    exit_codes={NOT_SHOWN: "with --max-error: the measured error of all rows, or of a group, is above it"},
)
@click.option(
    "--max-error",
    type=click.FloatRange(0.0, 1.0),
    help="Compare the measured Cutoff error, of all rows and of each group, with this.",
)
@takes_rows(classes=True, horizons=True)
def command(source: Source, show: Show, max_error: float | None) -> None:
    """Measure how wrong the forecasts of these rows are, in every usual way.

    The numbers describe the rows in FILE, and promise nothing about others: "calibrant certify" does that.
    """
    import calibrant
    from calibrant.measures.questions import QuestionMeasures

    with open_rows(source) as rows, explained(rows.source):
        groups = None if source.by is None else calibrant.measure(**rows.grouped)
        whole = calibrant.measure(**rows.data)
        facts = rows.facts()
    if isinstance(whole, QuestionMeasures):
        _answer_of_questions(show, whole, max_error, facts)
    parts = [] if groups is None else list(groups.pairs())
    grouped = "" if groups is None else f"\n\nPer group of {source.by!r}:\n{groups}"
    risk = risk_of(rows.data["y_true"])
    first = [] if risk is None else [str(risk).split("\n")[0]]
    lines = [show.words([*first, *measures_said(whole, groups, source.by)], "\n".join([*first, f"{whole}{grouped}"]))]
    exit_code = DONE
    if max_error is not None:
        large = [printable(label) for label, each in (("all rows", whole), *parts) if each.cutoff > max_error]
        exit_code = NOT_SHOWN if large else DONE
        lines.insert(0, _compared(whole.cutoff, large, max_error, grouped=groups is not None))
    show.answer(
        "\n".join(lines),
        exit_code=exit_code,
        input=facts,
        max_error=max_error,
        horizon=risk,
        result=whole,
        groups=[{"group": label, "result": each} for label, each in parts],
    )


def _answer_of_questions(
    show: Show, found: QuestionMeasures, max_error: float | None, facts: dict[str, Any]
) -> NoReturn:
    """Say what was measured of several questions."""
    lines = [show.words(question_measures_said(found), found)]
    exit_code = DONE
    if max_error is not None:
        large = [printable(label) for label, each in found.pairs() if each.cutoff > max_error]
        exit_code = NOT_SHOWN if large else DONE
        lines.insert(0, _compared(found.estimate, large, max_error, largest=True))
    show.answer(
        "\n".join(lines), exit_code=exit_code, input=facts, max_error=max_error, horizon=None, result=found, groups=[]
    )


def _compared(error: float, large: list[str], max_error: float, *, grouped: bool = False, largest: bool = False) -> str:
    from calibrant.core.words import shown

    if not large:
        too = ", and so is that of every group" if grouped else ""
        which = "largest " if largest else ""
        return f"Small enough: the {which}measured Cutoff error, {error:.4g}, is at most {shown(max_error)}{too}."
    return f"Too large: the measured Cutoff error of {', '.join(large)} is above {shown(max_error)}."
