"""``calibrant compare``: several models side by side, and which of them is certified."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli.answers import comparison_said
from calibrant.cli.inputs import Source, explained, takes_rows
from calibrant.cli.options import takes_limits
from calibrant.cli.outputs import DONE, NOT_SHOWN, UNDECIDED, BadInput, Command, Show
from calibrant.cli.rows import Rows, open_models

if TYPE_CHECKING:
    from calibrant.comparisons.results import ModelComparison


@click.command(
    "compare",
    short_help="Several models, and which are certified.",
    cls=Command,
    examples="""
    calibrant compare preds.csv --y-true y --y-prob old --y-prob new --max-error 0.05
    calibrant compare january.parquet february.parquet --y-true y --y-prob p
    calibrant compare preds.csv --y-prob old --y-prob new --measure risk_gap --threshold 0.3
    """,
    exit_codes={
        DONE: "done; with --max-error: some model is certified",
        NOT_SHOWN: "with --max-error: every model is refuted",
        UNDECIDED: "with --max-error: none is certified, and these rows cannot tell of some",
    },
)
@click.option(
    "--max-error",
    type=click.FloatRange(0.0, 1.0),
    help="Certify each model against this, so that one may be chosen.",
)
@takes_limits
@takes_rows(by=False, each_file=True, models=True)
def command(
    sources: list[Source], show: Show, y_prob: tuple[str, ...], max_error: float | None, limits: dict[str, Any]
) -> None:
    """Compare models: several columns of forecasts in one FILE, or several FILEs, or both.

    Every limit is computed at 1 - (1 - confidence level) / K for K models, so that all of them hold together: whichever
    model you choose after looking, its certificate stands. The interval of a difference follows from the limits of the
    two errors. All of it assumes independent rows and models fixed without looking at them.
    """
    with ExitStack() as held:
        models = [rows for source in sources for rows in held.enter_context(open_models(source, y_prob))]
        if len(models) < 2:
            raise BadInput("there is one model only; name several columns with --y-prob, or several files")
        names = _names(models)
        result = _compared(dict(zip(names, models, strict=True)), max_error, limits)
        facts = [rows.facts() for rows in models]
    show.answer(
        show.words(comparison_said(result), result),
        exit_code=_exit_code(result),
        confidence_level=result.confidence_level,
        max_error=result.max_error,
        chosen=result.chosen,
        models=[
            {"name": each.name, "input": fact, **vars(each)} for each, fact in zip(result.models, facts, strict=True)
        ],
        differences=[vars(each) for each in result.differences],
    )


def _exit_code(result: ModelComparison) -> int:
    """Return the verdict on "some model's error is at most so much", where a limit was named."""
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


def _compared(models: dict[str, Rows], max_error: float | None, limits: dict[str, Any]) -> ModelComparison:
    """Compare models; what is wrong with one of them is said in words of its file."""
    import calibrant
    from calibrant.rows.intake import as_source

    sources = {}
    for name, rows in models.items():
        with explained(rows.source):
            sources[name] = as_source(**rows.data)
    try:
        return calibrant.compare_models(sources, max_error=max_error, **limits)
    except calibrant.comparisons.ModelError as error:
        with explained(models[error.model].source):
            raise error.reason from None
