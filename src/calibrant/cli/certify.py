"""``calibrant certify``: is the calibration error of cases to come, if nothing changes, at most so much?"""

from __future__ import annotations

import shlex
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import click

from calibrant.cli.answers import (
    COUNTED,
    DISTRUSTED,
    doubts_of,
    next_step,
    suspects_in_full,
    suspects_said,
    verdict_said,
)
from calibrant.cli.inputs import Source, explained, takes_rows, voice_of
from calibrant.cli.options import RELATIVE_TO, takes_clusters, takes_limits
from calibrant.cli.outputs import DONE, NOT_SHOWN, UNDECIDED, BadInput, Command, Show, exit_code_of
from calibrant.cli.rows import Rows, RowsRead, RowsScanned, check_suspects, open_all_rows, open_rows
from calibrant.core.voices import speaking
from calibrant.core.words import printable


@click.command(
    "certify",
    short_help="Is the error at most so much, if nothing changes?",
    cls=Command,
    examples="""
    calibrant certify preds.csv --max-error 0.05
    calibrant certify preds.csv --y-true label --y-prob score --max-error 0.05 --json
    calibrant certify preds.parquet --max-error 0.1 --by hospital
    calibrant certify preds.parquet --max-error 0.05 --groups elderly --groups ward
    calibrant certify preds.parquet --max-error 0.1 --groups elderly,ward --scale group
    calibrant certify visits.csv --max-error 0.1 --cluster patient
    calibrant certify flights.csv --max-error 0.1 --cluster day --serial 1
    calibrant certify preds.csv --max-error 0.05 --check-clusters site
    calibrant certify preds.csv --max-error 0.02 --method exact --confidence-level 0.99
    calibrant certify fraud.csv --max-error 0.25 --relative-to events
    calibrant certify digits.csv --y-true digit --y-prob 'p_*' --max-error 0.05
    calibrant certify digits.csv --y-true digit --y-prob 'p_*' --max-error 0.05 --questions classwise
    calibrant certify preds.csv --max-error 0.01 --measure risk_gap
    calibrant certify preds.csv --max-error 0.01 --measure risk_gap --threshold 0.1:0.3
    """,
    exit_codes={
        DONE: "certified: the error is at most --max-error",
        NOT_SHOWN: "refuted: it is above",
        UNDECIDED: "undecided: these rows cannot tell, or depend on each other by --check-clusters and what was asked "
        "has no limits with clusters",
    },
)
@click.option(
    "--max-error", type=click.FloatRange(0.0, 1.0), required=True, help="The largest error you can live with."
)
@click.option(
    "--groups",
    metavar="COLUMNS",
    multiple=True,
    help="Columns of groups that may overlap, with commas between; may be repeated. A column of true and false is a "
    "group, one of labels has a group for each, and one for rows without a label unless --drop-missing leaves them "
    "out. Choose them before looking at the rows.",
)
@click.option(
    "--scale",
    type=click.Choice(["mass", "group"]),
    help="With --groups, what errors are shares of: all rows (mass, the default), or the rows of each group.",
)
@RELATIVE_TO
@takes_limits
@takes_clusters
@takes_rows(clusters=True, suspects=True, classes=True)
def command(
    source: Source,
    show: Show,
    max_error: float,
    groups: tuple[str, ...],
    scale: str | None,
    relative_to: Any,
    limits: dict[str, Any],
    clusters: dict[str, Any],
) -> None:
    """Decide, with a guarantee, whether the calibration error is at most --max-error.

    The exit code is the verdict, so that a build can depend on it. A verdict is wrong with probability at most 1 -
    confidence level, for independent rows that the model was not fitted to, and with limit, method and level chosen
    before looking at them. Visits of one patient or flights of one day are not independent: name what they share with
    --cluster, and the verdict counts patients or days instead of rows; --check-clusters does so where rows that share
    a label look alike. With --by there is a certificate for each group, all of them true together, and the exit code is
    about all groups. With --groups, groups may overlap: one verdict for every group, with no correction for their
    number, and verdicts on each that hold together.

    Forecasts of several classes have a column for each: --y-prob is named once per class, or as 'p_*'. --questions says
    what is asked of them; the verdict, and the exit code, is about all questions together.
    """
    import calibrant

    if scale is not None and not groups:
        raise BadInput("--scale says what errors of --groups are shares of; name columns of groups, too")
    with _opened(source, groups) as rows:
        with explained(rows.source):
            result: Any = calibrant.certify(
                **rows.grouped,
                **_in_groups(rows, scale),
                max_error=max_error,
                relative_to=relative_to,
                **limits,
                **clusters,
            )
            facts = rows.facts()
        check = check_suspects(rows, limits["confidence_level"], clusters if source.cluster else {})
        doubted, refusal = bool(doubts_of([check], source)), None
        if doubted:
            asked = {**_in_groups(rows, scale), "max_error": max_error, "relative_to": relative_to, **limits}
            result, refusal = _with_clusters(rows, asked)
    remedy = None if not doubted else DISTRUSTED if result is None else COUNTED
    brief = suspects_said(check, source.suspect, remedy)
    full = suspects_in_full(check, source.suspect, remedy)
    if result is None:
        lines = in_full = [
            f"Undecided: clusters have to count, and here they cannot: {refusal}.",
            *brief,
            next_step(
                f"calibrant certify --cluster {shlex.quote(printable(source.suspect))}, and ask what it answers: "
                "limits with clusters are those of the Cutoff error and the risk gap, as shares of rows"
            ),
        ]
    else:
        of_classes = rows.source.asked is not None and not rows.source.pos_label
        lines, in_full = verdict_said(result, brief, of_classes=of_classes), [str(result), *full]
    said = show.words(lines, "\n".join(in_full))
    code = UNDECIDED if result is None else exit_code_of(result.verdict)
    show.answer(said, exit_code=code, input=facts, result=result, check=check)


def _with_clusters(rows: Rows, asked: dict[str, Any]) -> tuple[Any, str | None]:
    """Return the verdict that counts clusters, or why there is none."""
    import calibrant
    from calibrant.core.errors import InputError

    source = rows.source
    try:
        if source.by is not None and isinstance(rows, RowsScanned):
            rows = rows.read("judging groups of rows in clusters")
        data = rows.suspected
        if source.by is not None:
            data["by"] = getattr(rows, "by", None)
            if data["by"] is None:
                return None, "groups of several classes in clusters take all rows at once, and this file is scanned"
        with speaking(voice_of(replace(source, cluster=source.suspect))):
            return calibrant.certify(**data, **asked), None
    except BadInput as error:
        return None, error.message
    except InputError as error:
        return None, str(error.problem)


def _opened(source: Source, groups: tuple[str, ...]) -> AbstractContextManager[Rows]:
    """Open a file; with columns of groups all of its rows are read."""
    if groups:
        return open_all_rows(replace(source, features=groups), "judging groups that overlap", featured=True)
    return open_rows(source)


def _in_groups(rows: Rows, scale: str | None) -> dict[str, Any]:
    """Return the groups under which the library takes them, if any were named."""
    if not isinstance(rows, RowsRead) or rows.features is None:
        return {}
    return {"groups": rows.features, "scale": scale or "mass"}
