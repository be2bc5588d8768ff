"""``calibrant measure``: how wrong are the forecasts of these rows?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from calibrant.cli.inputs import Source, explained, takes_rows
from calibrant.cli.outputs import DONE, NOT_SHOWN, Command, Show
from calibrant.cli.rows import open_rows
from calibrant.core.words import in_columns, printable

if TYPE_CHECKING:
    from calibrant.measures.results import Measures


@click.command(
    "measure",
    short_help="How wrong are the forecasts of these rows?",
    cls=Command,
    examples="""
    calibrant measure preds.csv
    calibrant measure preds.parquet --y-true died --y-prob risk --by hospital
    calibrant measure preds.csv --y-true species --pos-label virginica --y-prob p
    cat preds.csv | calibrant measure - --json
    """,
    exit_codes={NOT_SHOWN: "with --max-error: the measured error of all rows, or of a group, is above it"},
)
@click.option(
    "--max-error",
    type=click.FloatRange(0.0, 1.0),
    help="Compare the measured Cutoff error, of all rows and of each group, with this.",
)
@takes_rows()
def command(source: Source, show: Show, max_error: float | None) -> None:
    """Measure how wrong the forecasts of these rows are, in every usual way.

    The numbers describe the rows in FILE, and promise nothing about others: "calibrant certify" does that.
    """
    import calibrant

    parts: list[tuple[Any, Measures]] = []
    with open_rows(source) as rows, explained(rows.source):
        whole = calibrant.measure(**rows.data)
        if source.by is not None:
            grouped = calibrant.rows.in_groups(**rows.grouped)
            parts = list(zip(grouped.groups, calibrant.rows.by_group(grouped, calibrant.measure), strict=True))
        facts = rows.facts()
    lines = [str(whole)]
    if parts:
        lines += ["", f"Per group of {source.by!r}:", _per_group(parts)]
    exit_code = DONE
    if max_error is not None:
        large = [printable(label) for label, each in (("all rows", whole), *parts) if each.cutoff > max_error]
        exit_code = NOT_SHOWN if large else DONE
        lines += ["", _compared(whole.cutoff, large, max_error)]
    show.answer(
        "\n".join(lines),
        exit_code=exit_code,
        input=facts,
        max_error=max_error,
        result=whole,
        groups=[{"group": label, "result": each} for label, each in parts],
    )


def _per_group(parts: list[tuple[Any, Measures]]) -> str:
    names = ("group", "rows", "mean forecast", "event rate", "Cutoff", "smooth", "bias")
    return in_columns(
        names,
        [
            (
                str(label),
                f"{each.rows:,}",
                f"{each.mean_forecast:.4f}",
                f"{each.mean_outcome:.4f}",
                f"{each.cutoff:.4f}",
                f"{each.smooth:.4f}",
                f"{each.calibration_in_the_large:+.4f}",
            )
            for label, each in parts
        ],
    )


def _compared(error: float, large: list[str], max_error: float) -> str:
    from calibrant.core.words import shown

    measured = "That is about these rows; certify says what it means for others."
    if not large:
        return f"Small enough: the measured Cutoff error, {error:.4g}, is at most {shown(max_error)}. {measured}"
    return f"Too large: the measured Cutoff error of {', '.join(large)} is above {shown(max_error)}. {measured}"
