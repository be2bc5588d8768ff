"""What a report says, computed through the library's own functions and free of any formatting.

Everything but the verdict works from a `Tally`; rows are kept only where there are groups of them. A section that the
data cannot support is left out and the reason recorded, so that the rest of the report stands: a source of more rows
than fit in memory still gets its verdict.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any

import numpy as np
import numpy.typing as npt

import calibrant
from calibrant.certificates.joint_levels import level_of_each
from calibrant.certificates.methods.registry import Method
from calibrant.certificates.results import Certificate, ConfidenceInterval, GroupCertificates, Yardstick
from calibrant.certificates.verdicts import certify, confidence_interval
from calibrant.core.errors import InputError, UndefinedError
from calibrant.core.types import FloatArray
from calibrant.decisions.decompositions import score_decomposition
from calibrant.decisions.gaps import best_threshold, risk_gap_curve
from calibrant.decisions.guarantees import decision_guarantee, limit_savings
from calibrant.decisions.risks import decision_risk, net_benefit
from calibrant.measures.everything import measure
from calibrant.measures.weighted import find_worst_interval
from calibrant.reports.results import (
    DecisionTable,
    GroupLimits,
    ModelSummary,
    Omission,
    RepairTrial,
    ReportSummary,
    joint_verdict,
)
from calibrant.rows.checks import Observations, check_labels, check_number, check_same_index
from calibrant.rows.groups import GroupedRows, GroupedSource, by_group
from calibrant.rows.intake import as_observations, as_source, as_tally, in_groups
from calibrant.rows.named import SUMMARIES, check_named, check_summaries
from calibrant.rows.refinement import TooManyForecastsError, some_table, whole_tally
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally

ONE_MODEL = "model"
"""What a model is called when it is the only one and has no name."""

FEWEST_FOR_REPAIR = 40
"""With fewer rows neither half says anything."""

GRID = 100
"""Thresholds are shown in steps of one in so many."""

_PACKAGES = ("numpy", "scipy", "scikit-learn", "matplotlib", "jinja2")

NEED_EVERY_FORECAST = ("plots", "decisions", "repair")
"""The sections that take a tally."""

Map = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Model:
    """One model's forecasts and outcomes, in an order that depends on nothing but their content.

    ``tally`` is None, and ``refusal`` the reason, where the distinct forecasts are too many to hold. ``rows`` and
    ``labels`` (the group of each row) are None without groups. ``groups`` are the rows of a source in groups.
    """

    name: str
    data: Tally | RowSource
    tally: Tally | None
    refusal: str = ""
    rows: Observations | None = None
    labels: npt.NDArray[Any] | None = None
    groups: GroupedSource | None = None

    @classmethod
    def of(cls, name: str, data: Tally | RowSource, groups: GroupedSource | None = None) -> Model:
        """Tell the distinct forecasts of a source apart, if they can be."""
        try:
            tally = whole_tally(data)
        except TooManyForecastsError as refusal:
            return cls(name, data, None, refusal.phrase, groups=groups)
        if tally.unit_weights and tally.binary_outcomes:  # sums made elsewhere, or of parts, may round otherwise
            tally = Tally.from_counts(tally.forecast, tally.rows, tally.events)
        return cls(name, tally, tally, groups=groups)


@dataclass(frozen=True)
class Question:
    """What is asked of every model: fixed before any row is looked at."""

    max_error: float | None
    relative_to: Yardstick
    confidence_level: float
    method: Method
    threshold: float
    rng: int

    @classmethod
    def checked(cls, *, threshold: Any, rng: Any, **asked: Any) -> Question:
        """Check what `certify` does not check itself."""
        at = check_number(threshold, "threshold", low=0.0, high=1.0)
        if at in (0.0, 1.0):
            raise InputError(
                f"is {at:g}, where everybody or nobody is acted on",
                argument="threshold",
                value=at,
                remedy="choose one between 0 and 1",
            )
        return cls(threshold=at, rng=int(check_number(rng, "rng", low=0.0, whole=True)), **asked)

    def asked(self, level: float) -> dict[str, Any]:
        """Return what limits are asked for with, at a level."""
        return {
            "confidence_level": level,
            "method": self.method,
            "relative_to": self.relative_to,
            "rng": self.rng,
        }


def find_models(y_true: Any, y_prob: Any, *, sample_weight: Any, pos_label: Any, by: Any, name: str) -> list[Model]:
    """Return the models from whatever was passed as outcomes and forecasts."""
    given = {"sample_weight": sample_weight, "pos_label": pos_label}
    checked = {name: y_true} if isinstance(y_true, Observations) else y_true
    if isinstance(checked, Mapping) and checked and all(isinstance(held, Observations) for held in checked.values()):
        named = check_named(checked, "y_true")
        return [_model_of_rows(each, as_observations(held, y_prob, **given), by) for each, held in named.items()]
    if isinstance(y_true, (Mapping, *SUMMARIES)):
        groups = by if isinstance(by, Mapping) else {} if by is None else {name: by}
        if not all(isinstance(each, GroupedSource) for each in groups.values()):
            raise InputError(
                "was given together with a Tally, whose rows can no longer be grouped",
                argument="by",
                remedy="pass the arrays (or, for a source of rows, the same rows in groups, as scan(..., by=...) "
                "gives them)",
            )
        sources = check_summaries(y_true) if isinstance(y_true, Mapping) else {name: y_true}
        return [Model.of(each, as_source(held, y_prob, **given), groups.get(each)) for each, held in sources.items()]
    forecasts = check_named(y_prob, "y_prob") if isinstance(y_prob, Mapping) else {name: y_prob}
    arguments = {
        f"y_prob[{each!r}]" if isinstance(y_prob, Mapping) else "y_prob": held for each, held in forecasts.items()
    }
    check_same_index(y_true=y_true, **arguments, sample_weight=sample_weight, by=by)
    return [_model_of_rows(each, as_observations(y_true, held, **given), by) for each, held in forecasts.items()]


def summarize(
    models: list[Model], question: Question, *, title: str, source: str | None, date: str | None
) -> ReportSummary:
    """Answer the question for every model, at levels that let one be chosen afterwards."""
    level = question.confidence_level if len(models) == 1 else level_of_each(question.confidence_level, len(models))
    summaries = tuple(summarize_model(model, question, level) for model in models)
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
        versions=_versions(),
    )


def summarize_model(model: Model, question: Question, level: float) -> ModelSummary:
    """Compute every section for one model, leaving out those that its data cannot support."""
    table, tally = some_table(model.data), model.tally
    certificate = judge(model.data, question, level)
    limits = confidence_interval(model.data, **question.asked(level)) if certificate is None else None
    groups, group_limits = _judge_groups(model, question, level)
    omissions = [Omission(section, model.refusal) for section in NEED_EVERY_FORECAST if tally is None]
    repair: RepairTrial | None = None
    if tally is not None:
        try:
            repair = try_repair(tally, question, level)
        except UndefinedError as refusal:
            omissions.append(Omission("repair", refusal.phrase))
    summary = ModelSummary(
        name=model.name,
        rows=table.row_total,
        distinct_forecasts=None if tally is None else len(tally),
        weight_total=table.weight_total,
        mean_forecast=table.forecast_total() / table.weight_total,
        mean_outcome=table.outcome_total / table.weight_total,
        fingerprint=None if tally is None else _fingerprint(model, tally),
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
    )
    if tally is None:
        return summary
    limit = limit_savings(tally, confidence_level=level, method=question.method, rng=question.rng)
    return replace(summary, decisions=tabulate(tally, limit, question.threshold))


def judge(data: Tally | RowSource, question: Question, level: float) -> Certificate | None:
    """Return the verdict, if a limit was asked about."""
    if question.max_error is None:
        return None
    certificate: Certificate = certify(data, max_error=question.max_error, **question.asked(level))
    return certificate


def tabulate(tally: Tally, limit: ConfidenceInterval, threshold: float) -> DecisionTable:
    """Compute losses, savings and promises on a grid of thresholds that includes the one asked about.

    The limit is one for all thresholds together, so that whichever the reader stops at is covered.
    """
    grid: FloatArray = np.unique(np.append(np.arange(1, GRID) / GRID, threshold))
    risk = decision_risk(tally, threshold=grid)
    curve = risk_gap_curve(tally)
    promises = [decision_guarantee(limit, at) for at in grid.tolist()]
    event_rate = risk.mean_outcome
    return DecisionTable(
        threshold=grid,
        acted=np.asarray(risk.acted),
        risk=np.asarray(risk.risk),
        false_positive=np.asarray(risk.false_positive),
        false_negative=np.asarray(risk.false_negative),
        constant_risk=np.minimum(grid * (1.0 - event_rate), (1.0 - grid) * event_rate),
        gap=np.asarray(curve.at(grid)),
        guarantee=np.array([promise.nondecreasing for promise in promises]),
        net_benefit=np.asarray(net_benefit(tally, threshold=grid).net_benefit),
        confidence_level=limit.confidence_level,
        promise=decision_guarantee(limit),
        best=best_threshold(tally, threshold=threshold),
        assumptions=promises[0].assumptions,
    )


def try_repair(tally: Tally, question: Question, level: float) -> RepairTrial:
    """Fit a recalibrator to a random half of the rows and judge the other half before and after it."""
    from calibrant.repairs.guard import GuardedRecalibrator  # loads scikit-learn

    count = tally.row_total
    if count < FEWEST_FOR_REPAIR:
        raise UndefinedError(
            f"it takes at least {FEWEST_FOR_REPAIR} rows to learn from half of them, and there are {count}"
        )
    learned, held_out = tally.halves(question.rng)
    recalibrator = GuardedRecalibrator(ends="inside").fit(learned)
    repaired = _moved(held_out, recalibrator.predict)
    brier_before, brier_after = (float(each.residual_square.sum()) / each.weight_total for each in (held_out, repaired))
    return RepairTrial(
        recalibrator=type(recalibrator.recalibrator_).__name__,
        ladder=recalibrator.ladder_,
        fitted_rows=learned.row_total,
        judged_rows=held_out.row_total,
        cutoff_before=find_worst_interval(held_out).error,
        cutoff_after=find_worst_interval(repaired).error,
        before=judge(held_out, question, level),
        after=judge(repaired, question, level),
        brier_before=brier_before,
        brier_after=brier_after,
        rng=question.rng,
    )


def _fingerprint(model: Model, tally: Tally) -> str:
    """Return the fingerprint of the tally, and with groups one of who is in which (see docs/report.md)."""
    named: list[tuple[Any, str]] = []
    if model.groups is not None:
        prints = by_group(model.groups, lambda rows: as_tally(rows).fingerprint)
        named = list(zip(model.groups.groups, prints, strict=True))
    elif model.rows is not None and model.labels is not None:
        labels, members = check_labels(model.labels, "by", model.labels.size)
        prints = tuple(Tally.from_observations(model.rows.take(positions)).fingerprint for positions in members)
        named = list(zip(labels, prints, strict=True))
    if not named:
        return tally.fingerprint
    digest = hashlib.sha256(b"calibrant groups 1" + bytes.fromhex(tally.fingerprint))
    for name, each in sorted((str(label), each) for label, each in named):
        written = name.encode("utf-8", "surrogatepass")
        digest.update(len(written).to_bytes(8, "little") + written + bytes.fromhex(each))
    return digest.hexdigest()


def _judge_groups(
    model: Model, question: Question, level: float
) -> tuple[GroupCertificates | None, GroupLimits | None]:
    """Return a verdict per group or, where no limit was asked about, limits per group; neither without groups."""
    rows: GroupedSource | GroupedRows | None = model.groups
    if rows is None and model.rows is not None and model.labels is not None:
        rows = in_groups(model.rows, by=model.labels)
    if rows is None:
        return None, None
    if question.max_error is not None:
        return certify(rows, max_error=question.max_error, **question.asked(level)), None
    asked = question.asked(level_of_each(level, len(rows.groups)))
    limits = by_group(rows, lambda each: confidence_interval(each, **asked))
    return None, GroupLimits(confidence_level=level, groups=rows.groups, limits=tuple(limits))


def _model_of_rows(name: str, rows: Observations, by: Any) -> Model:
    if by is None:
        return Model.of(name, Tally.from_observations(rows))
    distinct, members = check_labels(by, "by", rows.y_prob.size)
    labels = np.empty(rows.y_prob.size, dtype=object)
    for label, positions in zip(distinct, members, strict=True):
        labels[positions] = [label] * positions.size
    # Sums over groups depend on the order of the rows unless it is fixed.
    keys = (rows.y_true, rows.y_prob) if rows.sample_weight is None else (rows.sample_weight, rows.y_true, rows.y_prob)
    order = np.lexsort(keys)
    rows = rows.take(order)
    tally = Tally.from_observations(rows)
    return Model(name, tally, tally, rows=rows, labels=labels[order])


def _moved(tally: Tally, mapped: Map) -> Tally:
    """Return the tally with its forecasts moved by a map."""
    if tally.listed is None:
        return Tally.from_counts(mapped(tally.forecast), tally.rows, tally.events)
    return Tally.from_observations(replace(tally.listed, y_prob=mapped(tally.listed.y_prob)))


@cache  # the files that say so are long
def _versions() -> tuple[str, ...]:
    found = [f"calibrant {calibrant.__version__}", f"Python {python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return tuple(found)
