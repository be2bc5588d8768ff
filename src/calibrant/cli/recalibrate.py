"""``calibrant recalibrate``: fit a map that repairs forecasts, apply it, or print it as SQL."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli.answers import choice_said, fitted_said
from calibrant.cli.inputs import Source, explained, takes_rows
from calibrant.cli.options import CONFIDENCE_LEVEL, SEED, takes_thresholds
from calibrant.cli.outputs import DEBUG_OPTION, BadInput, Command, Commands, Show, check_out, working
from calibrant.cli.rows import RowsRead, open_all_rows, open_forecasts, open_rows
from calibrant.core.errors import CalibrantError, NewerError
from calibrant.core.files import replacing
from calibrant.core.words import counted, printable

if TYPE_CHECKING:
    from calibrant.engines.files import Table
    from calibrant.repairs.plain import Ends
    from calibrant.repairs.recalibrator import Recalibrator

METHODS = {
    "guarded": "Platt while it fits, else isotonic",
    "isotonic": "the best non-decreasing map; error bounded before the data",
    "platt": "a logistic curve",
    "platt-logit": "a logistic curve of the forecast's logit",
    "modified-platt": "Platt while it fits, else the mean outcome (the paper's)",
    "beta": "a curve with three parameters",
    "temperature": "one parameter: towards or away from 0.5",
    "constant": "the mean outcome for everybody",
}
_WRITERS = {
    ".csv": "FORMAT csv, HEADER",
    ".tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
    ".parquet": "FORMAT parquet",
    ".pq": "FORMAT parquet",
    ".jsonl": "FORMAT json",
    ".ndjson": "FORMAT json",
}


class _Commands(Commands):
    """The commands about one map."""

    def list_commands(self, _: click.Context) -> list[str]:
        """Return the commands in the order in which one uses them."""
        return ["choose", "fit", "apply", "sql"]


@click.group(
    "recalibrate",
    short_help="Repair forecasts: fit, apply, print as SQL.",
    cls=_Commands,
    examples="""
    calibrant recalibrate choose past.csv
    calibrant recalibrate fit past.csv --out model.json
    calibrant recalibrate apply model.json new.csv --out repaired.csv
    calibrant recalibrate sql model.json --column score
    """,
)
def command() -> None:
    """Repair forecasts: fit a map to outcomes, apply it to new rows, print it as SQL.

    Fit on rows that the model itself was not fitted to, and judge the repaired forecasts on rows that neither has seen.
    """


@command.command(
    "fit",
    short_help="Fit a map to outcomes and write it.",
    cls=Command,
    examples="""
    calibrant recalibrate fit past.csv --out model.json
    calibrant recalibrate fit past.csv --y-true y --y-prob p --method isotonic --out model.json --json
    calibrant recalibrate fit visits.csv --cluster patient --out model.json
    """,
)
@click.option(
    "--method",
    type=click.Choice(list(METHODS)),
    default="guarded",
    show_default=True,
    help="The map. " + "; ".join(f"{name}: {words}" for name, words in METHODS.items()) + ".",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=check_out,
    required=True,
    help="Where to write the fitted map, as JSON.",
)
@click.option(
    "--clip",
    type=click.FloatRange(0.0, 0.5, min_open=True, max_open=True),
    help="For platt-logit, beta and temperature: take forecasts of 0 and 1 for this much inside.",
)
@click.option(
    "--ends",
    type=click.Choice(["exact", "inside"]),
    default="exact",
    show_default=True,
    help="For isotonic and guarded: whether steps without events, or without anything else, forecast exactly 0 and 1, "
    "or are kept inside, so that no outcome has an infinite log loss.",
)
@CONFIDENCE_LEVEL
@takes_rows(by=False, clusters=True)
def fit(
    source: Source, show: Show, method: str, out: Path, clip: float | None, ends: Ends, confidence_level: float
) -> None:
    """Fit a map from forecasts to better ones, and write it to a JSON file.

    The first guarantee printed is about the repaired forecasts of cases to come, if nothing changes; it assumes
    independent rows that the model was not fitted to. The second is about the forecasts of these rows, if they were
    issued again and only the outcomes drawn anew. No guarantee covers weighted rows; for rows in clusters, named with
    --cluster, there is the second one only.
    """
    from calibrant.rows.intake import as_tally

    recalibrator = _recalibrator(method, clip, ends)
    clustered = source.cluster is not None
    with (
        open_all_rows(source, "recalibrate fit with clusters") if clustered else open_rows(source) as rows,
        explained(rows.source),
    ):
        facts = rows.facts()
        if isinstance(rows, RowsRead):
            recalibrator.fit(rows.observations)
        else:
            recalibrator.fit(as_tally(**rows.data))
        guarantee = given = None
        if not recalibrator.weighted_:
            guarantee = None if clustered else recalibrator.guarantee(confidence_level)
            own = {"cluster": rows.cluster} if isinstance(rows, RowsRead) else {}
            given = recalibrator.guarantee(confidence_level, target="these forecasts", **own)
    with replacing(out) as unfinished:
        unfinished.write_text(recalibrator.to_json() + "\n", encoding="utf-8")
    said = f"Fitted {method} to {counted(facts['rows'], 'row')} and wrote {printable(out)}."
    brief = fitted_said(said, guarantee, given, out, recalibrator.notes_)
    full = [*brief[:2], *(f"Note: {note}" for note in recalibrator.notes_)]
    if given is not None:
        full = [said, str(given)] if guarantee is None else [said, str(guarantee), given.finding()]
    show.answer(
        show.words(brief, "\n".join(full)),
        input=facts,
        method=method,
        out=str(out),
        model=json.loads(recalibrator.to_json()),
        result=guarantee,
        these_forecasts=given,
    )


@command.command(
    "choose",
    short_help="Compare the maps on held-out rows.",
    cls=Command,
    examples="""
    calibrant recalibrate choose past.csv
    calibrant recalibrate choose past.csv --y-true y --y-prob p --json
    calibrant recalibrate choose past.csv --threshold 0.1:0.3
    calibrant recalibrate choose visits.csv --cluster patient
    """,
)
@click.option("--parts", type=click.IntRange(min=2), default=5, show_default=True, help="Parts for cross-validation.")
@CONFIDENCE_LEVEL
@takes_thresholds
@SEED
@takes_rows(by=False, clusters=True)
def choose(source: Source, show: Show, parts: int, confidence_level: float, decision: dict[str, Any], rng: int) -> None:
    """Compare the ways to repair on held-out rows, and recommend one.

    Beside errors and scores stands the risk gap of each: what re-drawing the line between acting and not acting would
    still save per case. With --cluster whole clusters are dealt to the parts, and limits count them.
    """
    import calibrant

    with open_all_rows(source, "recalibrate choose") as rows, explained(rows.source):
        result = calibrant.compare_recalibrators(
            rows.observations,
            cluster=rows.cluster,
            cv=parts,
            rng=rng,
            confidence_level=confidence_level,
            **decision,
        )
    show.answer(show.words(choice_said(result), result), input=rows.facts(), result=result)


@command.command(
    "apply",
    short_help="Write rows with repaired forecasts.",
    cls=Command,
    examples="""
    calibrant recalibrate apply model.json new.csv --out repaired.csv
    calibrant recalibrate apply model.json new.parquet --y-prob score --column risk --out repaired.parquet
    """,
)
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=check_out,
    required=True,
    help="Where to write the rows with the new column: .csv, .tsv, .parquet or .jsonl.",
)
@click.option("--column", default="recalibrated", show_default=True, help="Name of the new column.")
@takes_rows(outcomes=False, by=False)
def apply(source: Source, show: Show, model: Path, out: Path, column: str) -> None:
    """Apply the map in MODEL to the forecasts in FILE..., and write all its columns and the new one.

    The file appears whole or not at all.
    """
    recalibrator = _read_model(model)
    options = _WRITERS.get(out.suffix.lower())
    if options is None:
        raise BadInput(f"--out {out} ends in {out.suffix!r}; write one of {', '.join(_WRITERS)}")
    with open_forecasts(source) as forecasts, explained(forecasts.source, forecasts.table):
        table, named = forecasts.table, str(forecasts.source.y_prob)
        if column.lower() in {name.lower() for name in table.columns}:
            raise BadInput(f"{table.name} has a column {column!r} already; name the new one with --column")
        rows = _apply(recalibrator, table, named, column, out, options, quiet=source.quiet)
    show.answer(
        f"Wrote {printable(out)}: {counted(rows, 'row')}, the repaired forecasts of {named!r} in {column!r}.",
        input=forecasts.facts(rows),
        model=str(model),
        out=str(out),
        column=column,
    )


@command.command(
    "sql",
    short_help="Print a map as SQL.",
    cls=Command,
    examples="""
    calibrant recalibrate sql model.json --column score
    """,
)
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--column", required=True, help="The column of forecasts in your table.")
@DEBUG_OPTION
def sql(model: Path, column: str) -> None:
    """Print the map in MODEL as one SQL expression of a column, to score inside a database."""
    click.echo(_read_model(model).to_sql(column))


def _recalibrator(method: str, clip: float | None, ends: Ends) -> Recalibrator:
    import calibrant

    clipped: dict[str, Callable[..., Recalibrator]] = {
        "platt-logit": partial(calibrant.PlattRecalibrator, on="logit"),
        "beta": calibrant.BetaRecalibrator,
        "temperature": calibrant.TemperatureRecalibrator,
    }
    stepped: dict[str, Callable[..., Recalibrator]] = {
        "isotonic": calibrant.IsotonicRecalibrator,
        "guarded": calibrant.GuardedRecalibrator,
    }
    if ends != "exact" and method not in stepped:
        raise BadInput(f"--ends {ends} does not go with --method {method}, which has no steps at 0 and 1")
    if method in clipped:
        return clipped[method](clip=clip)
    if clip is not None:
        raise BadInput(f"--clip does not go with --method {method}, which takes forecasts of 0 and 1 as they are")
    if method in stepped:
        return stepped[method](ends=ends)
    ladder = [calibrant.PlattRecalibrator(), calibrant.repairs.ConstantRecalibrator()]
    others: dict[str, Callable[[], Recalibrator]] = {
        "platt": calibrant.PlattRecalibrator,
        "modified-platt": partial(calibrant.GuardedRecalibrator, ladder, tolerance="paper"),
        "constant": calibrant.repairs.ConstantRecalibrator,
    }
    return others[method]()


def _read_model(path: Path) -> Recalibrator:
    import calibrant

    try:
        return calibrant.repairs.Recalibrator.from_json(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not a model that recalibrate fit wrote: it is not text") from error
    except NewerError as error:
        raise BadInput(f"{path}: {error}") from error
    except CalibrantError as error:
        raise BadInput(f"{path} is not a model that recalibrate fit wrote: {error}") from error


def _apply(
    recalibrator: Recalibrator, table: Table, forecasts: str, column: str, out: Path, options: str, *, quiet: bool
) -> int:
    """Write all columns of a table and a new one, rows in the order of the file and some at a time; count them."""
    from calibrant.engines.columns import check_forecast_column, write_with_column

    reach = {"low": -sys.float_info.max, "high": sys.float_info.max} if recalibrator.input_kind == "score" else {}
    with working(f"checking {table.name}", quiet=quiet, connection=table.connection):
        rows = check_forecast_column(table, forecasts, **reach)
    with replacing(out) as unfinished, working(f"writing {out}", quiet=quiet, connection=table.connection):
        write_with_column(table, column, recalibrator.predict, forecasts, unfinished, options)
    return rows
