"""``calibrant compare``: several models side by side, and which of them is certified."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from calibrant.certificates.score_names import SCORES
from calibrant.cli.answers import comparison_said
from calibrant.cli.comparing import takes_comparison
from calibrant.cli.inputs import Source, explained, takes_rows
from calibrant.cli.outputs import DONE, NOT_SHOWN, UNDECIDED, BadInput, Command, Show
from calibrant.cli.rows import Rows, RowsRead, open_models

if TYPE_CHECKING:
    from calibrant.comparisons.results import ModelComparison


@click.command(
    "compare",
    short_help="Several models, and which are certified.",
    cls=Command,
    examples="""
    calibrant compare preds.csv --y-true y --y-prob old --y-prob new --max-error 0.05
    calibrant compare january.parquet february.parquet --y-true y --y-prob p
    calibrant compare preds.csv --y-prob old --y-prob new --measure decision_risk --threshold 0.3
    calibrant compare visits.csv --y-prob old --y-prob new --reference old --margin 0.01 --cluster id
    """,
    exit_codes={
        DONE: "done; with --max-error: some model is certified; with --margin and --reference: some is not worse by it",
        NOT_SHOWN: "with --max-error: every model is refuted; with --margin and --reference: every one is worse",
        UNDECIDED: "with --max-error: none is certified, and these rows cannot tell of some; with --margin likewise",
    },
)
@click.option(
    "--max-error",
    type=click.FloatRange(0.0, 1.0),
    help="Certify each model against this, so that one may be chosen.",
)
@takes_comparison
@takes_rows(by=False, clusters=True, each_file=True, models=True)
def command(
    sources: list[Source],
    show: Show,
    y_prob: tuple[str, ...],
    max_error: float | None,
    asked: dict[str, Any],
) -> None:
    """Compare models: several columns of forecasts in one FILE, or several FILEs, or both.

    The limits of all models hold together, so that whichever you choose after looking, its certificate stands; and so
    do those of all differences. Models in one FILE are compared row by row; of several FILEs the interval of a
    difference follows from the limits of the two errors. All of it assumes independent rows, or clusters, and models
    fixed without looking at them.
    """
    with ExitStack() as held:
        models = [rows for source in sources for rows in held.enter_context(open_models(source, y_prob))]
        if len(models) < 2:
            raise BadInput("there is one model only; name several columns with --y-prob, or several files")
        names = _names(models)
        result = _compared(dict(zip(names, models, strict=True)), max_error, sources[0].cluster, asked)
        facts = [rows.facts() for rows in models]
    show.answer(
        show.words(comparison_said(result), result),
        exit_code=_exit_code(result),
        confidence_level=result.confidence_level,
        max_error=result.max_error,
        chosen=result.chosen,
        measure=result.measure,
        reference=result.reference,
        margin=result.margin,
        clusters=result.clusters,
        models=[
            {"name": each.name, "input": fact, **vars(each)} for each, fact in zip(result.models, facts, strict=True)
        ],
        differences=[vars(each) for each in result.differences],
    )


def _exit_code(result: ModelComparison) -> int:
    """Return the verdict on "some model's error is at most so much", or on "some model does as well as the reference".

    Without a limit, or a reference and a margin, nothing was claimed.
    """
    if result.max_error is None and result.reference is not None and result.margin is not None:
        if any(each.first in each.non_inferior for each in result.differences):
            return DONE
        return NOT_SHOWN if all(each.verdict == "worse" for each in result.differences) else UNDECIDED
    verdicts = {each.certificate.verdict for each in result.models if each.certificate is not None}
    if not verdicts or result.chosen is not None:
        return DONE
    return UNDECIDED if "undecided" in verdicts else NOT_SHOWN


def _names(models: list[Rows]) -> list[str]:
    """Name each model by what sets it apart: its column, its file, or both."""
    files = {rows.source.files for rows in models}
    columns = {rows.source.y_prob for rows in models}
    names = []
    for rows in models:
        parts = [rows.source.name] if len(files) > 1 else []
        if len(columns) > 1 or not parts:
            parts.append(str(rows.source.y_prob))
        names.append(" ".join(parts))
    repeated = next((place for place, name in enumerate(names) if names.count(name) > 1), None)
    if repeated is not None:
        rows = models[repeated]
        raise BadInput(f"column {rows.source.y_prob!r} of {rows.source.name} was named twice; name each model once")
    return names


def _compared(
    models: dict[str, Rows], max_error: float | None, cluster: str | None, asked: dict[str, Any]
) -> ModelComparison:
    """Compare models; what is wrong with one of them is said in words of its file."""
    import calibrant

    if asked["reference"] not in (None, *models):
        raise BadInput(f"--reference {asked['reference']!r} is none of the models: {', '.join(models)}")
    given = _row_by_row(models, cluster, asked)
    try:
        return calibrant.compare_models(*given, max_error=max_error, **asked)
    except calibrant.comparisons.ModelError as error:
        with explained(models[error.model].source):
            raise error.reason from None


def _row_by_row(models: dict[str, Rows], cluster: str | None, asked: dict[str, Any]) -> tuple[Any, ...]:
    """Return the rows of models as the library takes them: together if they are those of one file, in memory."""
    from calibrant.rows.intake import as_source
    from calibrant.rows.paired import PairedColumns

    read = [rows for rows in models.values() if isinstance(rows, RowsRead)]
    if len(read) == len(models) and len({rows.source.files for rows in read}) == 1:
        columns = {name: rows.observations for name, rows in zip(models, read, strict=True)}
        return (PairedColumns(columns, read[0].cluster),)
    if cluster is not None or asked["measure"] in SCORES:
        option = "--cluster" if cluster is not None else f"--measure {asked['measure']}"
        raise BadInput(f"{option} compares models row by row: name columns of one FILE that is read into memory")
    sources = {}
    for name, rows in models.items():
        with explained(rows.source):
            sources[name] = as_source(**rows.data)
    return (sources,)
