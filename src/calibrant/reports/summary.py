"""What a report says, computed through the library's own functions and free of any formatting.

Everything but the verdict works from a `Tally`; rows are kept only where there are groups or clusters of them. A
section that the data cannot support is left out and the reason recorded, so that the rest of the report stands: a
source of more rows than fit in memory still gets its verdict.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from platform import python_version

import numpy as np

import calibrant
from calibrant.certificates.group_results import WorstGroup
from calibrant.certificates.independence import IndependenceCheck, check_independence
from calibrant.certificates.joint_levels import level_of_each
from calibrant.certificates.methods.registry import METHODS
from calibrant.certificates.results import Certificate, ConfidenceInterval, GroupCertificates
from calibrant.certificates.verdicts import certify, confidence_interval
from calibrant.certificates.worst_groups import rows_with_features, worst_of_features
from calibrant.core.errors import InputError, UndefinedError
from calibrant.core.threads import one_thread
from calibrant.core.types import FloatArray
from calibrant.decisions.benefits import net_benefit
from calibrant.decisions.decompositions import score_decomposition
from calibrant.decisions.gaps import best_threshold, gaps_of
from calibrant.decisions.guarantees import decision_guarantee, limit_savings
from calibrant.decisions.risks import decision_risk
from calibrant.measures.everything import measure
from calibrant.reports.changes import watch
from calibrant.reports.differences import compare
from calibrant.reports.models import Model, fingerprint_of
from calibrant.reports.questions import Question, judge
from calibrant.reports.results import (
    DecisionTable,
    GroupLimits,
    ModelSummary,
    Omission,
    RepairTrial,
    ReportSummary,
    joint_verdict,
)
from calibrant.reports.trials import try_repair
from calibrant.rows.checks import check_seed
from calibrant.rows.groups import GroupedRows, GroupedSource, by_group
from calibrant.rows.intake import in_groups
from calibrant.rows.paired import PairedColumns
from calibrant.rows.refinement import some_table
from calibrant.rows.tally import Tally

FEWEST = 2
"""With fewer groups nothing can be said of how they differ."""

GRID = 100
"""Thresholds are shown in steps of one in so many."""

_PACKAGES = ("numpy", "scipy", "scikit-learn", "matplotlib", "jinja2")

NEED_EVERY_FORECAST = ("plots", "decisions", "repair")
"""The sections that take a tally."""


@one_thread()
def summarize(
    models: list[Model],
    columns: PairedColumns | None,
    question: Question,
    *,
    title: str,
    source: str | None,
    date: str | None,
) -> ReportSummary:
    """Answer the question for every model, at levels that let one be chosen afterwards, and compare them.

    ``columns`` are the rows of all models, where these are the same and in memory.
    """
    level = question.confidence_level if len(models) == 1 else level_of_each(question.confidence_level, len(models))
    summaries = tuple(summarize_model(model, question, level) for model in models)
    comparison, omissions = compare(columns, question, len(models))
    clusters = question.clusters
    if clusters is not None:
        clusters = replace(clusters, weighted=any(model.weighted for model in models))
    return ReportSummary(
        title=title,
        source=source,
        date=date,
        max_error=question.max_error,
        relative_to=question.relative_to,
        confidence_level=question.confidence_level,
        method=question.method,
        threshold=question.threshold,
        rng=question.rng,
        verdict=joint_verdict(each.verdict for each in summaries),
        models=summaries,
        versions=versions(),
        clusters=clusters,
        comparison=comparison,
        omissions=omissions,
    )


def summarize_model(model: Model, question: Question, level: float) -> ModelSummary:
    """Compute every section for one model, leaving out those that its data cannot support."""
    table, tally = some_table(model.data), model.tally
    certificate = judge(model.judged, question, level)
    limits = confidence_interval(model.judged, **question.asked(level)) if certificate is None else None
    groups, group_limits = _judge_groups(model, question, level)
    change, left_out = watch(model.periods, question, level)
    worst, without = _worst_group(model, question, level)
    omissions = [
        *(Omission(section, model.refusal) for section in NEED_EVERY_FORECAST if tally is None),
        *left_out,
        *without,
    ]
    repair: RepairTrial | None = None
    if tally is not None:
        try:
            repair = try_repair(model, tally, question, level)
        except UndefinedError as refusal:
            omissions.append(Omission("repair", refusal.phrase))
    summary = ModelSummary(
        name=model.name,
        rows=table.row_total,
        distinct_forecasts=None if tally is None else len(tally),
        weight_total=table.weight_total,
        mean_forecast=table.forecast_total() / table.weight_total,
        mean_outcome=table.outcome_total / table.weight_total,
        fingerprint=None if tally is None else fingerprint_of(model, tally),
        verdict=joint_verdict(None if each is None else each.verdict for each in (certificate, groups)),
        certificate=certificate,
        limits=limits,
        measures=measure(model.data if tally is None else tally),
        score=None if tally is None else score_decomposition(tally),
        decisions=None,
        repair=repair,
        groups=groups,
        group_limits=group_limits,
        omissions=tuple(omissions),
        group_check=_check_groups(model, level),
        row_wise=_row_wise(model, question, level, limits if certificate is None else certificate),
        change=change,
        worst_group=worst,
    )
    if tally is None:
        return summary
    limit = limit_savings(
        model.judged, confidence_level=level, method=question.method, rng=question.rng, **question.clustering
    )
    return replace(summary, decisions=tabulate(tally, limit, question.threshold))


def _check_groups(model: Model, level: float) -> IndependenceCheck | None:
    """Return whether rows of one group look independent, where nothing is said of clusters."""
    if model.clusters is not None:
        return None
    as_clusters = getattr(model.groups, "as_clusters", None)  # those of a scan
    if model.groups is not None and as_clusters is not None and len(model.groups.groups) >= FEWEST:
        with contextlib.suppress(InputError):  # of many weighted rows it cannot be told
            return check_independence(as_clusters(), confidence_level=level)
    if model.rows is None or model.labels is None or len(set(model.labels)) < FEWEST:
        return None
    return check_independence(model.rows, cluster=model.labels, confidence_level=level)


def _worst_group(model: Model, question: Question, level: float) -> tuple[WorstGroup | None, tuple[Omission, ...]]:
    """Return for whom forecasts are wrong, or why that is left out; neither without features."""
    if model.featured is None:
        return None, ()
    if model.clusters is not None:
        return None, (Omission("worst_group", "limits for every group need rows that are independent of each other"),)
    rows, features = rows_with_features(model.featured[0], None, model.featured[1], argument="features")
    return worst_of_features(rows, features, None, level, check_seed(question.rng)), ()


def _row_wise(
    model: Model, question: Question, level: float, judged: Certificate | ConfidenceInterval | None
) -> tuple[float, float] | None:
    """Return the limits that rows in clusters would have if they were taken as independent, which they are not."""
    table, method = some_table(model.data), METHODS[question.method]
    covered = (method.covers_weights or table.unit_weights) and (method.covers_fractions or table.binary_outcomes)
    if judged is None or judged.clusters is None or not covered:
        return None
    asked = question.asked_of_rows(level)
    found: Certificate | ConfidenceInterval
    if question.max_error is None:
        found = confidence_interval(model.data, **asked)
    else:
        found = certify(model.data, max_error=question.max_error, **asked)
    return found.lower, found.upper


def tabulate(tally: Tally, limit: ConfidenceInterval, threshold: float) -> DecisionTable:
    """Compute losses, savings and promises on a grid of thresholds that includes the one asked about.

    The limit is one for all thresholds together, so that whichever the reader stops at is covered.
    """
    grid: FloatArray = np.unique(np.append(np.arange(1, GRID) / GRID, threshold))
    risk = decision_risk(tally, threshold=grid)
    promises = [decision_guarantee(limit, at) for at in grid.tolist()]
    event_rate = risk.mean_outcome
    return DecisionTable(
        threshold=grid,
        acted=np.asarray(risk.acted),
        risk=np.asarray(risk.risk),
        false_positive=np.asarray(risk.false_positive),
        false_negative=np.asarray(risk.false_negative),
        constant_risk=np.minimum(grid * (1.0 - event_rate), (1.0 - grid) * event_rate),
        gap=gaps_of(risk, tally),
        guarantee=np.array([promise.nondecreasing for promise in promises]),
        net_benefit=np.asarray(net_benefit(tally, threshold=grid).net_benefit),
        confidence_level=limit.confidence_level,
        promise=decision_guarantee(limit),
        best=best_threshold(tally, threshold=threshold),
        assumptions=promises[0].assumptions,
    )


def _judge_groups(
    model: Model, question: Question, level: float
) -> tuple[GroupCertificates | None, GroupLimits | None]:
    """Return a verdict per group or, where no limit was asked about, limits per group; neither without groups."""
    asked = question.asked(level)
    rows: GroupedSource | GroupedRows
    if model.groups is not None:
        rows = model.groups
        if question.max_error is not None:
            return certify(rows, max_error=question.max_error, **asked), None
    elif model.rows is not None and model.labels is not None:
        labels, codes = model.labels, model.codes
        if question.max_error is not None:
            limit = question.max_error
            return certify(model.rows, max_error=limit, by=labels, cluster=codes, **asked), None
        rows = in_groups(model.rows, by=labels, cluster=codes)
    else:
        return None, None
    asked["confidence_level"] = level_of_each(level, len(rows.groups))
    limits = by_group(rows, lambda each: confidence_interval(each, **asked))
    return None, GroupLimits(confidence_level=level, groups=rows.groups, limits=tuple(limits))


@cache  # the files that say so are long
def versions() -> tuple[str, ...]:
    """Return the software that makes a report."""
    found = [f"calibrant {calibrant.__version__}", f"Python {python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return tuple(found)
