"""``calibrant plan``: how many rows will a certificate take?"""

from __future__ import annotations

from typing import Any

import click

from calibrant.cli.inputs import Source, explained, file_options
from calibrant.cli.options import CONFIDENCE_LEVEL, LIMIT_METHOD, MEASURE, RELATIVE_TO, VARIATION
from calibrant.cli.outputs import OUTPUT_OPTIONS, BadInput, Command, Show, working
from calibrant.cli.rows import open_forecasts


@click.command(
    "plan",
    short_help="How many rows will a certificate take?",
    cls=Command,
    examples="""
    calibrant plan --max-error 0.05 --brier 0.15
    calibrant plan preds.csv --max-error 0.02 --power 0.8
    calibrant plan preds.csv --max-error 0.25 --relative-to events
    """,
)
@click.argument("files", nargs=-1, metavar="[FILE...]")
@click.option(
    "--max-error",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    required=True,
    help="The error that is to be certified.",
)
@click.option("--brier", type=click.FloatRange(0.0, 0.25, min_open=True), help="The mean of (y - p)^2 you expect.")
@click.option(
    "--power",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    help="How likely the certificate should be, if the forecasts are calibrated.",
)
@CONFIDENCE_LEVEL
@LIMIT_METHOD
@MEASURE
@VARIATION
@RELATIVE_TO
@click.option("--y-prob", metavar="COLUMN", help="Column of forecasts like those to come.")
@file_options()[0]
@file_options()[1]
@OUTPUT_OPTIONS[0]
@OUTPUT_OPTIONS[1]
@OUTPUT_OPTIONS[2]
def command(
    files: tuple[str, ...],
    max_error: float,
    brier: float | None,
    power: float,
    confidence_level: float,
    method: str,
    measure: str,
    variation: float,
    relative_to: str,
    y_prob: str | None,
    file_format: str | None,
    memory_limit: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Plan how many rows it takes to certify forecasts that are calibrated.

    How spread out the forecasts are decides it: name FILEs with forecasts like those to come (no outcomes needed),
    or the Brier score you expect with --brier.
    """
    import calibrant

    if bool(files) == (brier is not None):
        raise BadInput("name either a FILE of forecasts like those to come, or the Brier score you expect with --brier")
    question: dict[str, Any] = {
        "confidence_level": confidence_level,
        "power": power,
        "method": method,
        "measure": measure,
        "variation": variation,
        "relative_to": relative_to,
    }
    show = Show(as_json, quiet)
    if not files:
        with explained(Source(("--brier",))), working("simulating data sets", quiet=quiet):
            result = calibrant.rows_needed(max_error, brier=brier, **question)
        show.answer(str(result), input=None, result=result)
    source = Source(files, y_prob=y_prob, format=file_format, memory_limit=memory_limit, quiet=quiet)
    from calibrant.engines.columns import count_forecasts, mean_variance

    with open_forecasts(source) as (chosen, table, most), explained(chosen, table):
        with working(f"counting the forecasts of {table.name}", quiet=quiet, connection=table.connection):
            forecasts, rows = count_forecasts(table, str(chosen.y_prob), most)
        if forecasts.size > most:
            raise BadInput(
                f"{table.name}: column {chosen.y_prob!r} has more than {most:,} distinct forecasts, too many to plan "
                "with; raise --memory-limit, round the forecasts, or plan with their mean p (1 - p) alone: --brier "
                f"{mean_variance(table, str(chosen.y_prob)):.6g}"
            )
        with working("simulating data sets", quiet=quiet):
            result = calibrant.rows_needed(max_error, y_prob=forecasts, sample_weight=rows, **question)
    facts = {"files": list(files), "y_prob": chosen.y_prob, "rows": int(rows.sum())}
    show.answer(str(result), input=facts, result=result)
