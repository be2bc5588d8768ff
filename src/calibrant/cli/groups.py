"""``calibrant groups``: for whom are the forecasts wrong?"""

from __future__ import annotations

from dataclasses import replace

import click

from calibrant.cli.answers import worst_group_said
from calibrant.cli.inputs import Source, explained, takes_rows
from calibrant.cli.options import CONFIDENCE_LEVEL, SEED
from calibrant.cli.outputs import DONE, NOT_SHOWN, UNDECIDED, Command, Show, exit_code_of
from calibrant.cli.rows import open_all_rows


@click.command(
    "groups",
    short_help="For whom are the forecasts wrong?",
    cls=Command,
    examples="""
    calibrant groups preds.csv --features age,ward
    calibrant groups preds.parquet --features age --features income --max-error 0.05
    calibrant groups preds.csv --json
    """,
    exit_codes={
        DONE: "done; with --max-error: certified, no half-line or label has an error above it",
        NOT_SHOWN: "with --max-error: refuted, some has",
        UNDECIDED: "with --max-error: undecided, these rows cannot tell",
    },
)
@click.option(
    "--features",
    metavar="COLUMNS",
    multiple=True,
    help="Columns that say who a row is about, with commas between; may be repeated. By default all other columns. "
    "Choose them before looking at the rows.",
)
@click.option(
    "--max-error",
    type=click.FloatRange(0.0, 1.0),
    help="The largest error of any group that you can live with, as a share of all rows. The exit code is then the "
    "verdict.",
)
@CONFIDENCE_LEVEL
@SEED
@takes_rows(by=False)
def command(
    source: Source, show: Show, features: tuple[str, ...], max_error: float | None, confidence_level: float, rng: int
) -> None:
    """Find the group and the interval of forecasts that are worst calibrated, with limits for every group.

    Every cut of every column of numbers or dates is looked at, in both directions, every label of other columns, and
    every interval of forecasts inside. Errors are shares of all rows. The upper limit holds for all groups at once,
    whichever was found: no correction for looking is needed, because all of them were looked at. Rows without a value
    are a group of their own, also with --drop-missing, which leaves out rows without a label or forecast. Texts that
    are all dates, as in 2026-01-31, are dates. Groups that you have in mind already are for "calibrant certify
    --groups".
    """
    import calibrant

    with open_all_rows(replace(source, features=features), "looking at every group") as rows:
        with explained(rows.source):
            result = calibrant.worst_group(
                rows.observations, X=rows.features, max_error=max_error, confidence_level=confidence_level, rng=rng
            )
        facts = rows.facts()
    code = DONE if result.verdict is None else exit_code_of(result.verdict)
    show.answer(show.words(worst_group_said(result), str(result)), exit_code=code, input=facts, result=result)
