"""``calibrant report``: a page about the forecasts that people can forward."""

from __future__ import annotations

import contextlib
import datetime
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant.certificates.methods.registry import Method
from calibrant.cli.answers import IF_INDEPENDENT, are_answered, doubts_of, suspects_in_full, suspects_said
from calibrant.cli.class_rows import ClassesScanned
from calibrant.cli.inputs import STAR, Source, explained, said_of_classes, takes_rows
from calibrant.cli.options import CONFIDENCE_LEVEL, LIMIT_METHOD, RELATIVE_TO, SEED, takes_clusters
from calibrant.cli.outputs import DONE, NOT_SHOWN, UNDECIDED, BadInput, Command, Show, check_out, exit_code_of, working
from calibrant.cli.rows import Rows, RowsRead, check_suspects, open_models, open_rows
from calibrant.core.files import replacing
from calibrant.core.voices import PYTHON, speaking
from calibrant.core.words import printable

if TYPE_CHECKING:
    from calibrant import CalibrationReport
    from calibrant.certificates.independence import IndependenceCheck
    from calibrant.certificates.results import Yardstick

OF_CLASSES = "confidence in the top label"
"""What a page calls forecasts of several classes."""

FORMATS = {"html": (".html", ".htm"), "md": (".md", ".markdown"), "json": (".json",)}


@click.command(
    "report",
    short_help="A page about the forecasts, to be forwarded.",
    cls=Command,
    examples="""
    calibrant report preds.parquet --y-true y --y-prob p --max-error 0.05 --out report.html
    calibrant report preds.csv --by hospital --title "Sepsis model, March" --out report.html
    calibrant report preds.csv --features age,ward --max-error 0.05 --out report.html
    calibrant report visits.csv --cluster patient --max-error 0.1 --out report.html
    calibrant report loans.csv --time decided_on --every week --max-error 0.05 --out report.html
    calibrant report follow-up.csv --time years --event died --at 5 --y-prob risk --out report.html
    calibrant report preds.csv --y-prob old --y-prob new --max-error 0.05 --out report.html
    calibrant report digits.csv --y-true digit --y-prob 'p_*' --max-error 0.05 --out report.html
    calibrant report preds.csv --format md
    """,
    exit_codes={
        DONE: "done; with --max-error: certified, for every model and group",
        NOT_SHOWN: "with --max-error: refuted",
        UNDECIDED: "with --max-error: undecided, these rows cannot tell, or depend on each other by --check-clusters, "
        "so that limits with clusters would not certify",
    },
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=check_out,
    help="Where to write it; else it is printed, Markdown and JSON anywhere, a page to files and pipes only.",
)
@click.option(
    "--format",
    "to",
    type=click.Choice(list(FORMATS)),
    help="A page, Markdown or JSON; by default what --out ends in, else a page.",
)
@click.option("--title", help="Title of the report.")
@click.option(
    "--date",
    help="The day to put on it; by default today's, or that of SOURCE_DATE_EPOCH where the environment has it.",
)
@click.option(
    "--max-error",
    type=click.FloatRange(0.0, 1.0),
    help="The largest error you can live with. The exit code is then the verdict, on every model and group at once. "
    "Without it there are limits, and no verdict.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    default=0.5,
    show_default=True,
    help="The decision threshold shown first.",
)
@RELATIVE_TO
@CONFIDENCE_LEVEL
@LIMIT_METHOD
@SEED
@click.option(
    "--features",
    metavar="COLUMNS",
    multiple=True,
    help="Columns that say who a row is about, with commas between; may be repeated. A section then says for whom "
    "forecasts are wrong. Choose them before looking at the rows.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(0.0, 1.0),
    default=0.0,
    show_default=True,
    help="With --time, the error that is no reason for an alarm.",
)
@click.option(
    "--classes",
    metavar="LABEL,LABEL,...",
    help="The label of each column that --y-prob names with a *, where columns are not named after the labels.",
)
@takes_clusters
@takes_rows(models=True, clusters=True, suspects=True, periods=True, horizons=True, format_option="--input-format")
def command(
    source: Source,
    show: Show,
    y_prob: tuple[str, ...],
    out: Path | None,
    to: str | None,
    title: str | None,
    date: str | None,
    max_error: float | None,
    threshold: float,
    relative_to: Yardstick,
    confidence_level: float,
    method: Method,
    rng: int,
    features: tuple[str, ...],
    tolerance: float,
    classes: str | None,
    clusters: dict[str, Any],
) -> None:
    """Write a report: verdict, plots, measures, decisions, repair, groups, in one file that works offline.

    The verdict in it assumes independent rows and a model fixed without looking at them; where rows belong together,
    such as visits of one patient, name what they share with --cluster. Several columns of forecasts
    are several models, whose verdicts hold together. A column for each of several classes is named with a *, as in
    --y-prob 'p_*': the page is about the confidence in the top label then, and a section has a line for each class.
    With --time a section says whether anything has changed; with --event outcomes may be censored before --at.
    """
    import calibrant

    wanted = _format(out, to)
    if wanted == "html" and out is None and not show.as_json and sys.stdout.isatty():
        raise BadInput(
            "a page is for a browser; write it to a file with --out report.html, or read it with --format md"
        )
    with (
        _opened(replace(source, features=features or None), y_prob, classes) as models,
        explained(models[0].source),
        working("writing the report", quiet=source.quiet),
    ):
        facts = [rows.facts() for rows in models]
        named: dict[str, Any] = {} if title is None else {"title": title}
        said = models[0].source
        named |= {} if len(models) > 1 else {"name": str(said.y_prob) if said.asked is None else OF_CLASSES}
        report = calibrant.CalibrationReport.from_predictions(
            **_given(models),
            max_error=max_error,
            relative_to=relative_to,
            confidence_level=confidence_level,
            method=method,
            threshold=threshold,
            rng=rng,
            tolerance=tolerance,
            **clusters,
            source=file_said(source),
            date=today() if date is None else date,
            **named,
        )
        checks = [check_suspects(rows, confidence_level, clusters if source.cluster else {}) for rows in models]
        with speaking(PYTHON):  # a page is forwarded to people who did not type the command
            text = {"html": report.html, "md": report.markdown, "json": report.json}[wanted]()
    if out is not None:
        with replacing(out) as unfinished:
            unfinished.write_text(text, encoding="utf-8", newline="\n")
    brief, full = _said(f"Wrote {printable(out)}.", report, models, checks)
    # Where a limit was asked about and no guarantee holds, as for censored rows, nothing is decided.
    code, doubts = DONE if max_error is None else exit_code_of(report.verdict or "undecided"), doubts_of(checks, source)
    # Limits of checks hold for one model each.
    if doubts and max_error is not None:
        answered = len(models) == 1 and are_answered(doubts, max_error, source, relative_to)
        code = code if answered else UNDECIDED
    show.answer(
        text if out is None else show.words(brief, full),
        exit_code=code,
        verbatim=out is None,
        input=facts,
        out=None if out is None else str(out),
        format=wanted,
        result=report.summary,
        checks=[check for check in checks if check is not None],
    )


@contextlib.contextmanager
def _opened(source: Source, y_prob: tuple[str, ...], classes: str | None) -> Iterator[list[Rows]]:
    """Open the rows of each model, or those of one model of several classes, which a * stands for."""
    if classes is None and not any(STAR in name for name in y_prob):
        with open_models(source, y_prob) as models:
            yield models
        return
    if source.horizon is not None:
        raise BadInput("--event is about one event; name the columns of its forecasts one by one")
    if source.time is not None or source.period is not None:
        raise BadInput("--time and --period are for one column of forecasts; name that of one class")
    labels = () if source.y_true is None else (source.y_true,)
    said = said_of_classes(labels, y_prob, questions=None, classes=classes, multilabel=False)
    with open_rows(replace(source, **said)) as rows:
        if source.by is not None and isinstance(rows, ClassesScanned):
            raise BadInput("--by goes with several classes of files that are read, not scanned; leave it out")
        yield [rows]


def _said(
    wrote: str, report: CalibrationReport, models: Sequence[Rows], checks: Sequence[IndependenceCheck | None]
) -> tuple[list[str], str]:
    """Return what a report says in brief and in full, after the checks where they doubt it and else before them."""
    from calibrant.reports.headlines import lines_of

    source, brief, full = models[0].source, [], []
    for rows, check in zip(models, checks, strict=True):
        whose = f"Model {printable(rows.source.y_prob)}: " if len(models) > 1 else ""
        brief += [f"{whose}{line}" for line in suspects_said(check, source.suspect)]
        full += suspects_in_full(check, source.suspect)
    lines, whole = list(map(printable, lines_of(report.summary))), printable(report, lines=True)
    if doubts_of(checks, source):
        return [wrote, *brief, IF_INDEPENDENT, *lines], "\n".join([wrote, *full, IF_INDEPENDENT, whole])
    return [wrote, *lines, *brief], "\n".join([wrote, whole, *full])


def _given(models: Sequence[Rows]) -> dict[str, Any]:
    """Return the arguments under which a report takes the rows of one model, or of several."""
    from calibrant.rows.paired import PairedColumns

    by_name = {str(rows.source.y_prob): rows for rows in models}
    first = models[0]
    if first.source.asked is not None:
        return {name: value for name, value in first.grouped.items() if name not in ("questions", "multilabel")}
    if isinstance(first, RowsRead):
        if len(models) == 1:
            return {**first.grouped, "period": first.period, "features": first.features}
        columns = {name: rows.observations for name, rows in by_name.items() if isinstance(rows, RowsRead)}
        together = {"by": first.by, "period": first.period, "features": first.features}
        return {"y_true": PairedColumns(columns, first.cluster), **together}
    data = {name: rows.data["y_true"] for name, rows in by_name.items()}
    groups = None if first.source.by is None else {name: rows.grouped["y_true"] for name, rows in by_name.items()}
    return {"y_true": data if len(models) > 1 else first.data["y_true"], "by": groups}


def file_said(source: Source) -> str | None:
    """Return the names of the files without their folders, which are nobody's business where the page is forwarded."""
    from calibrant.engines.formats import named_together

    return None if source.files == ("-",) else named_together([Path(file).name for file in source.files])


def today() -> str:
    """Return the day to put on a report; builds that have to be repeatable set SOURCE_DATE_EPOCH."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    try:
        return datetime.datetime.fromtimestamp(int(epoch), tz=datetime.UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        raise BadInput(f"SOURCE_DATE_EPOCH is {epoch!r}, not a number of seconds since 1970") from None


def _format(out: Path | None, to: str | None) -> str:
    """Return what to write: what was asked for, or what the file's name says."""
    if to is not None or out is None:
        return to or "html"
    for name, suffixes in FORMATS.items():
        if out.suffix.lower() in suffixes:
            return name
    raise BadInput(f"--out {out} does not end in .html, .md or .json; say what to write with --format")
