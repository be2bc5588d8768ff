"""``calibrant test``: are the forecasts perfectly calibrated?"""

from __future__ import annotations

from typing import Any

import click

from calibrant.cli.answers import group_tests_said, test_said
from calibrant.cli.class_answers import question_tests_said
from calibrant.cli.inputs import Source, explained, takes_rows
from calibrant.cli.options import SEED, takes_clusters
from calibrant.cli.outputs import DONE, NOT_SHOWN, BadInput, Command, Show
from calibrant.cli.rows import open_rows


@click.command(
    "test",
    short_help="Are the forecasts perfectly calibrated?",
    cls=Command,
    examples="""
    calibrant test preds.csv
    calibrant test preds.csv --y-true label --y-prob score --level 0.01
    calibrant test visits.csv --cluster patient
    calibrant test digits.csv --y-true digit --y-prob 'p_*' --questions classwise
    calibrant test preds.csv --test spiegelhalter --json
    """,
    exit_codes={DONE: "not rejected", NOT_SHOWN: "rejected: the forecasts are not perfectly calibrated"},
)
@click.option(
    "--test",
    "kind",
    type=click.Choice(["cutoff", "spiegelhalter"]),
    default="cutoff",
    show_default=True,
    help="cutoff looks at every interval of forecasts, spiegelhalter in one direction only.",
)
@click.option(
    "--method",
    type=click.Choice(["auto", "exact", "asymptotic", "evidence"]),
    default="auto",
    show_default=True,
    help="For the cutoff test: by simulation, or by its law for many rows. With --cluster, evidence: at every number "
    "of clusters, or asymptotic: for many of them.",
)
@click.option(
    "--level",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="Reject when the p-value is at most this.",
)
@click.option(
    "--resamples",
    type=click.IntRange(min=999),
    default=9999,
    show_default=True,
    help="Simulated data sets, for exact where not all outcomes can be gone through.",
)
@SEED
@takes_clusters
@takes_rows(clusters=True, classes=True)
def command(
    source: Source,
    show: Show,
    kind: str,
    method: str,
    level: float,
    resamples: int,
    rng: int,
    clusters: dict[str, Any],
) -> None:
    """Test whether the forecasts are perfectly calibrated.

    A rejection says that the forecasts are off, not by how much, and with
    many rows a harmless error is rejected too; no rejection is no proof of calibration. To say that the error is
    small, use "calibrant certify". With --by, each group is tested at the level divided by the number of groups.
    """
    from calibrant.certificates.question_tests import QuestionTests

    if kind == "spiegelhalter" and source.weight is not None:
        raise BadInput("--weight does not go with --test spiegelhalter, which knows no weights")
    if kind == "spiegelhalter" and source.cluster is not None:
        raise BadInput("--cluster does not go with --test spiegelhalter, which is for independent rows")
    if kind == "spiegelhalter" and source.asked is not None:
        raise BadInput("--test spiegelhalter is for one column of forecasts; name that of one class")
    asked = {"method": method, "n_resamples": resamples, "rng": rng, **clusters}
    with open_rows(source) as rows, explained(rows.source):
        groups = None if source.by is None else _tested(rows.grouped, kind, asked)
        whole = _tested(rows.data, kind, asked)
        facts = rows.facts()
    parts: list[dict[str, Any]] = []
    if isinstance(whole, QuestionTests):
        rejected = whole.rejected(level)
        text = show.words(question_tests_said(whole, level), whole)
    elif groups is None:
        rejected = whole.rejected(level)
        said = whole.said(level)
        full = f"{'Rejected' if rejected else 'Not rejected'}: {said[0].lower()}{said[1:]}"
        text = show.words(test_said(whole, level), full)
    else:
        where = groups.rejected(level)
        rejected = bool(where)
        parts = [
            {"group": label, "rejected": label in where, "result": each}
            for label, each in zip(groups.groups, groups.tests, strict=True)
        ]
        text = show.words(group_tests_said(groups, level, source.by), groups.said(level, by=source.by))
    show.answer(
        text,
        exit_code=NOT_SHOWN if rejected else DONE,
        input=facts,
        level=level,
        rejected=rejected,
        result=whole,
        groups=parts,
    )


def _tested(data: dict[str, Any], kind: str, asked: dict[str, Any]) -> Any:
    import calibrant

    if kind == "spiegelhalter":
        return calibrant.certificates.spiegelhalter_test(
            **{name: values for name, values in data.items() if name != "sample_weight"}
        )
    return calibrant.calibration_test(**data, **asked)
