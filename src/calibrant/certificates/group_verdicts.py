"""Certificates of groups that were fixed beforehand and may overlap: all of them together, and one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

from calibrant.certificates.families import certify_family
from calibrant.certificates.judging import Plan
from calibrant.certificates.question_results import QuestionCertificates
from calibrant.core.errors import InputError
from calibrant.core.voices import Option, Phrase
from calibrant.rows.checks import check_choice
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.given import refuse_more
from calibrant.rows.intake import source_of
from calibrant.rows.masks import SCALES, group_questions
from calibrant.rows.named import SUMMARIES
from calibrant.rows.promised import as_observations
from calibrant.rows.scanned_groups import GroupColumns, scanned_questions


def check_scale(scale: str | None, *, in_groups: bool) -> str:
    """Return what errors of groups are shares of; refuse to be told where there are no groups."""
    if scale is None:
        return SCALES[0]
    check_choice(scale, "scale", SCALES)
    if not in_groups:
        raise InputError(
            Phrase("says what errors of {groups} are shares of, and there are none", groups=Option("groups")),
            argument="scale",
            value=scale,
            remedy=Phrase("pass {groups} too, or leave it out", groups=Option("groups")),
        )
    return scale


def certify_groups(
    plan: Plan,
    limit: float,
    seed: int,
    y_true: Any,
    y_prob: Any = None,
    *,
    groups: Any,
    scale: str,
    by: Any = None,
    cluster: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> QuestionCertificates:
    """Return verdicts on "the error of every group is at most ``limit``", and on each group."""
    if by is not None:
        raise InputError(
            "was given together with groups, which rows may be in several of",
            argument="by",
            remedy=Phrase("put the column among {groups}", groups=Option("groups")),
        )
    if isinstance(y_true, GroupColumns):
        if groups is not None:
            raise InputError(
                "was given together with rows that name their groups already",
                argument="groups",
                remedy="leave it out",
            )
        refuse_more("source of rows in groups", y_prob, sample_weight, pos_label)
        asked = scanned_questions(y_true, scale)
        return certify_family(replace(plan, parts="groups"), asked, limit, seed, opened=lambda source: source)
    if isinstance(y_true, SUMMARIES) and not hasattr(y_true, "y_prob"):
        raise InputError(
            "was given together with rows that are not in arrays, which are in no group",
            argument="groups",
            remedy="pass outcomes, forecasts and groups as arrays, or name their columns, as scan(..., groups=[...])",
        )
    rows = as_observations(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, cluster=cluster)
    asked = group_questions(rows, groups, scale, y_true=y_true, y_prob=y_prob)
    opened = source_of
    if cluster is not None:
        if asked.kind != "groups":
            raise InputError(
                Phrase("clusters of the rows inside groups are not covered with {scale}", scale=Option("scale", scale)),
                remedy=Phrase("use {mass}, or by= for groups that do not overlap", mass=Option("scale", "mass")),
            )
        return certify_family(
            replace(plan, parts="groups"), asked, limit, seed, opened=lambda column: ClusteredRows.of(column, cluster)
        )
    return certify_family(replace(plan, parts="groups"), asked, limit, seed, opened=opened)


def refuse_groups(kind: str) -> NoReturn:
    """Refuse groups together with several questions about classes."""
    raise InputError(
        f"was given together with several questions ({kind})",
        argument="groups",
        remedy="ask about the confidence, or about one class at a time, as in y_true == k with its column of y_prob",
    )
