"""``calibrant validate``: everything that a validation study reports, each number with its limits."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant.cli.inputs import Source, explained, takes_rows
from calibrant.cli.options import CONFIDENCE_LEVEL, SEED
from calibrant.cli.outputs import (
    DONE,
    NOT_SHOWN,
    UNDECIDED,
    BadInput,
    Command,
    Show,
    check_out,
    exit_code_of,
    working,
)
from calibrant.cli.report import file_said, today
from calibrant.cli.rows import RowsRead, open_all_rows
from calibrant.core.files import replacing
from calibrant.core.voices import PYTHON, speaking
from calibrant.core.words import counted, printable

if TYPE_CHECKING:
    from calibrant.reports.validation_results import StudyFile
    from calibrant.validations.results import Validation

SMOOTHERS = ("loess", "isotonic", "lowess", "splines")
"""As in `calibrant.measures.smoothers`, which takes numpy to load."""

FORMATS = {
    "html": (".html", ".htm"),
    "md": (".md", ".markdown"),
    "tex": (".tex",),
    "json": (".json",),
}


def _thresholds(_: click.Context, __: click.Parameter, value: str | None) -> list[float] | None:
    """Read thresholds with commas between them."""
    if value is None:
        return None
    try:
        return [float(each) for each in value.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not a list of numbers with commas between, as in 0.1,0.2,0.3."
        ) from None


def _extremes(_: click.Context, __: click.Parameter, value: str) -> str | float:
    """Read a rule for forecasts of exactly 0 and 1: a word, or a number."""
    try:
        return float(value)
    except ValueError:
        return value.replace("-", "_")


@click.command(
    "validate",
    short_help="Everything a validation study reports, with limits.",
    cls=Command,
    examples="""
    calibrant validate preds.csv
    calibrant validate preds.csv --y-true died --y-prob risk --out validation.html
    calibrant validate preds.csv --smoother splines --thresholds 0.1,0.2,0.3 --out table.md
    calibrant validate visits.csv --cluster patient --max-error 0.1
    calibrant validate trial.csv --time years --event died --at 5 --y-prob risk
    """,
    exit_codes={
        DONE: "done; with --max-error: certified",
        NOT_SHOWN: "with --max-error: refuted",
        UNDECIDED: "with --max-error: undecided, these rows cannot tell",
    },
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=check_out,
    help="Also write it to a file: a page with figures and the TRIPOD+AI items (.html), the same without figures "
    "(.md), the table for LaTeX (.tex), or JSON (.json).",
)
@click.option("--title", help="Title of what is written.")
@click.option(
    "--date",
    help="The day to put on it; by default today's, or that of SOURCE_DATE_EPOCH where the environment has it.",
)
@click.option(
    "--smoother",
    type=click.Choice(SMOOTHERS),
    default="loess",
    show_default=True,
    help="The calibration curve behind ICI, E50, E90, Emax and ECI.",
)
@click.option(
    "--thresholds",
    metavar="AT,AT,...",
    callback=_thresholds,
    help="Where net benefit is taken, with commas between; 0, 0.01, ..., 0.35 by default.",
)
@click.option(
    "--resamples",
    "n_resamples",
    type=click.IntRange(1, 1_000_000),
    default=500,
    show_default=True,
    help="Resamples behind the limits of the curve and of what is read off it.",
)
@click.option(
    "--extremes",
    metavar="leave-out|refuse|NUMBER",
    callback=_extremes,
    default="leave-out",
    show_default=True,
    help="What the slope does with forecasts of exactly 0 and 1: leave their rows out, refuse them (an "
    "error), or pull all forecasts this far inside.",
)
@click.option(
    "--max-error",
    type=click.FloatRange(0.0, 1.0),
    help="The largest Cutoff calibration error you can live with: the exit code is then the verdict.",
)
@CONFIDENCE_LEVEL
@SEED
@takes_rows(by=False, clusters=True, horizons=True)
def command(
    source: Source,
    show: Show,
    out: Path | None,
    title: str | None,
    date: str | None,
    max_error: float | None,
    **options: Any,
) -> None:
    """Report everything that a validation study reports, each number with its limits.

    Calibration in the large, O/E, slope and intercept, ICI, E50, E90, Emax and ECI, AUROC, Brier and scaled Brier
    score, net benefit, tests, and the Cutoff calibration error with a guarantee. The model must not have seen these
    rows.
    """
    import calibrant

    wanted = None if out is None else _format(out)
    with open_all_rows(source, "validating with limits") as rows, explained(rows.source):
        facts = rows.facts()
        named: dict[str, Any] = {} if title is None else {"title": title}
        left_out = " ".join(rows.left_out.notes) if rows.left_out.rows else None
        with working("validating", quiet=source.quiet), speaking(PYTHON):  # pages are forwarded
            report = calibrant.ValidationReport.from_predictions(
                **rows.data,
                max_error=max_error,
                name=str(rows.source.y_prob),
                source=file_said(source),
                date=today() if date is None else date,
                left_out=left_out,
                file=_file(rows),
                progress=False,
                **options,
                **named,
            )
            text = None if wanted is None else _written(report, wanted)
    found = report.validation
    if out is not None and text is not None:
        with replacing(out) as unfinished:
            unfinished.write_text(text, encoding="utf-8", newline="\n")
    wrote = [] if out is None else [f"Wrote {printable(out)}."]
    show.answer(
        show.words([*wrote, *_brief(found)], "\n".join([*wrote, str(found)])),
        exit_code=DONE if found.certificate is None else exit_code_of(found.certificate.verdict),
        input=facts,
        out=None if out is None else str(out),
        format=wanted,
        result=found,
    )


def _file(rows: RowsRead) -> StudyFile:
    """Return which columns of which files were read, without folders, which are nobody's business elsewhere."""
    from calibrant.reports.validation_results import StudyFile

    source, censored = rows.source, rows.source.horizon
    return StudyFile(
        files=tuple(Path(file).name or file for file in source.files),
        format=rows.format,
        y_true=str(source.y_true),
        y_prob=str(source.y_prob),
        weight=source.weight,
        cluster=source.cluster,
        time=None if censored is None else censored.time,
        competing=() if censored is None else censored.competing,
        pos_label=_event(rows),
        drop_missing=source.drop_missing,
    )


def _event(rows: RowsRead) -> str | float | None:
    """Return the label of the event as the column holds it: a number, where it holds numbers."""
    text = rows.source.pos_label
    if text is not None and any(isinstance(each, (int, float)) for each in rows.labels):
        with contextlib.suppress(ValueError):
            return float(text)
    return text


def _written(report: Any, wanted: str) -> str:
    makers = {
        "html": report.html,
        "md": report.markdown,
        "tex": lambda: f"{report.validation.to_latex()}\n",
        "json": report.json,
    }
    text: str = makers[wanted]()
    return text


def _brief(found: Validation) -> list[str]:
    """Say what was found in a few lines, around the table."""
    from calibrant.validations.findings import findings_of

    said = findings_of(found)
    cautions = () if found.certificate is None else found.certificate.cautions
    known = {caution.rstrip(".") for caution in cautions}
    notes = [note for note in found.notes if note not in known]
    first, rest = notes[:1], len(notes) - 1  # those on limits that may be off come first
    more = "" if rest < 1 else f" {counted(rest, 'more note')}: --verbose shows all."
    return [
        f"{said.label}: {said.headline}.",
        found.headline(),
        found.written_table(),
        *([said.rule] if said.rule else []),
        *(f"Caution: {caution}" for caution in cautions),
        f"Next: {said.next_step}",
        *(f"Note: {note}.{more}" for note in first),
    ]


def _format(out: Path) -> str:
    """Return what to write: what the file's name says."""
    for name, suffixes in FORMATS.items():
        if out.suffix.lower() in suffixes:
            return name
    raise BadInput(f"--out {out} does not end in .html, .md, .tex or .json")
