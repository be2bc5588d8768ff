"""How a verdict comes about: what was asked, fixed before any row is looked at, and what the rows say to it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

from calibrant.certificates.cautions import cautions_on, saving_cautions
from calibrant.certificates.cluster_savings import SavingLimits
from calibrant.certificates.clusters import (
    ClusterQuestion,
    Clusters,
    check_enough,
    cluster_cautions,
    clusters_of,
    enough_clusters,
    one_row_each,
)
from calibrant.certificates.event_shares import (
    MOST_SHARE,
    RATE_SHARE,
    check_yardstick,
    event_rate_limits,
    event_rate_of,
    of_events,
)
from calibrant.certificates.joint_levels import delta_of_each
from calibrant.certificates.methods.base import CertificateMethod
from calibrant.certificates.methods.normal import normal_margin
from calibrant.certificates.methods.registry import METHODS
from calibrant.certificates.results import Certificate, ConfidenceInterval, in_order, verdict_of
from calibrant.core.errors import InputError
from calibrant.core.laws import normal_quantile
from calibrant.core.voices import Option, Phrase
from calibrant.measures.judged import JudgedMeasure
from calibrant.measures.results import WorstInterval
from calibrant.measures.savings import LargestSaving
from calibrant.measures.weighted import find_worst_interval
from calibrant.rows.checks import check_choice, check_confidence
from calibrant.rows.clusters import ClusteredSource
from calibrant.rows.grids import FIRST_GRID
from calibrant.rows.hints import row_hints
from calibrant.rows.intake import rows_of_clusters
from calibrant.rows.promised import with_unit_weights
from calibrant.rows.refinement import whole_tally
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally, Totals
from calibrant.rows.weights import effective_rows

_MOST_TIMES = 100.0  # as many rows or clusters as these; beyond, the estimate's own chance decides how many
_HIGHEST_LEVEL = math.nextafter(1.0, 0.0)  # of a share of the smallest delta, 1 minus which is 1 in floating point


@dataclass(frozen=True)
class Plan:
    """What is to be judged and how: fixed before any row is looked at."""

    method: CertificateMethod
    measure: JudgedMeasure
    confidence_level: float
    relative_to: str
    clusters: ClusterQuestion | None = None
    parts: str | None = None

    @property
    def delta(self) -> float:
        """The probability of a wrong verdict."""
        return 1.0 - self.confidence_level

    @property
    def thresholds(self) -> tuple[float, float] | None:
        """The lowest and the highest threshold, where the measure speaks of decisions."""
        found = self.measure.thresholds
        return None if found is None else (found.low, found.high)

    def share(self, error: float, event_rate: float) -> float:
        """Return an error as the share that was asked for."""
        return error if self.relative_to == "rows" else of_events(error, event_rate)


@dataclass(frozen=True)
class Found:
    """Estimate and limits, not yet put in order, with the totals they came from."""

    estimate: float
    lower: float
    upper: float
    table: Totals
    worst: WorstInterval
    caution: str | None
    notes: tuple[str, ...]
    saving: LargestSaving | None = None
    clusters: Clusters | None = None

    @property
    def n_eff(self) -> float:
        """About how many independent rows of equal weight say as much."""
        return effective_rows(self.table) if self.clusters is None else self.clusters.n_eff

    @property
    def limits(self) -> tuple[float, float]:
        """The limits, in order."""
        return in_order(self.lower, self.upper)

    @property
    def event_rate(self) -> float:
        """The share of events."""
        return event_rate_of(self.table)


class Judged(NamedTuple):
    """A certificate, what to warn of, and in a group the upper limit that holds by itself."""

    certificate: Certificate
    caution: str | None
    upper_alone: float
    uppers: Mapping[int, float] = MappingProxyType({})


def check_plan(
    method: str,
    measure: JudgedMeasure,
    confidence_level: float,
    relative_to: str,
    clusters: ClusterQuestion | None = None,
) -> Plan:
    """Return what was asked for, if the method can answer it."""
    check_choice(method, "method", tuple(METHODS))
    chosen = METHODS[method]
    chosen.check_measure(measure.name)
    level = check_confidence(confidence_level)
    chosen.check_level(level)
    check_yardstick(measure, relative_to)
    if clusters is not None:
        chosen.check_clusters()
        _check_clustered(measure, relative_to)
    return Plan(chosen, measure, level, relative_to, clusters)


def _check_clustered(measure: JudgedMeasure, relative_to: str) -> None:
    """Refuse errors that no limit is known of for rows in clusters."""
    if not (measure.by_intervals or measure.thresholds is not None):
        raise InputError(
            Phrase(
                "clusters are covered for {cutoff} and 'risk_gap', got {given}",
                cutoff=Option("measure", "cutoff"),
                given=Option("measure", measure.name),
            ),
            remedy=Phrase("ask for one of the two, or leave out {cluster}", cluster=Option("cluster")),
        )
    if relative_to != "rows":
        raise InputError(
            Phrase("clusters are covered for {rows} only", rows=Option("relative_to", "rows")),
            remedy="name the limit as a share of all rows",
        )


def judge_part(plan: Plan, source: Tally | RowSource | ClusteredSource, limit: float, parts: int, seed: int) -> Judged:
    """Return the certificate of one of several parts, which holds together with theirs, and its upper limit alone."""
    each = delta_of_each(plan.delta, parts)
    table = None
    if plan.clusters is None:
        source = with_unit_weights(source)
        table = _split(plan, source, each, plan.delta)  # what both need, in one go
    found = evaluate(plan, source, seed, lower_delta=each, upper_delta=each, table=table)
    alone = evaluate(plan, source, seed, upper_delta=plan.delta, table=table)
    return _judged(plan, found, limit, each)._replace(upper_alone=alone.limits[1])


def _split(plan: Plan, source: Tally | RowSource, *deltas: float) -> Totals:
    """Return entries fine enough for the estimate and for upper limits at the given levels."""
    return plan.measure.split(source, deltas, plan.method)


def judge(plan: Plan, source: Tally | RowSource, limit: float, delta: float, seed: int) -> Judged:
    """Return the verdict on a limit."""
    return _judged(plan, evaluate(plan, source, seed, lower_delta=delta, upper_delta=delta), limit, delta)


def judge_question(
    plan: Plan, source: Tally | RowSource | ClusteredSource, limit: float, family: int, seed: int
) -> Judged:
    """Return the certificate of one of a family of questions, and its upper limits at delta over smaller numbers.

    `Judged.uppers` has those that a method finds at once; it is empty where each has to be found by itself.
    """
    if not judges_at_once(plan):
        return judge_part(plan, source, limit, family, seed)
    each = delta_of_each(plan.delta, family)
    found, uppers = evaluate_question(plan, source, seed, plan.delta, family, sizes_up_to(family), lower_delta=each)
    judged = _judged(plan, replace(found, upper=uppers[family]), limit, each)
    return judged._replace(upper_alone=uppers[1], uppers=uppers)


def judges_at_once(plan: Plan) -> bool:
    """Whether upper limits of a question at several levels are found at once."""
    by_intervals = plan.measure.by_intervals and plan.relative_to == "rows"
    return plan.method.levels_at_once and plan.clusters is None and by_intervals


def evaluate_question(
    plan: Plan,
    source: Tally | RowSource,
    seed: int,
    delta: float,
    family: int,
    parts: Sequence[int],
    *,
    lower_delta: float | None,
) -> tuple[Found, dict[int, float]]:
    """Return what is found of one of a family of questions, and its upper limits at delta over several numbers."""
    source = with_unit_weights(source)
    _split(plan, source, delta)  # what estimate and limits need, in one go
    found = evaluate(plan, source, seed, lower_delta=lower_delta)
    limits = plan.method.uppers(source, found.table, found.estimate, delta, family, parts)
    return found, {part: min(upper, 1.0) for part, upper in zip(parts, limits, strict=True)}


def sizes_up_to(family: int) -> list[int]:
    """Return the numbers by which delta is divided: powers of two, and the number of questions itself."""
    return [1 << power for power in range((family - 1).bit_length())] + [family]


def _judged(plan: Plan, found: Found, limit: float, delta: float) -> Judged:
    """Return the verdict that limits at delta say."""
    lower, upper = found.limits
    verdict = verdict_of(lower, upper, limit)
    clusters, cautions = found.clusters, _cautions(plan, limit, found.event_rate)
    if clusters is not None:
        enough = plan.method.enough_clusters(limit, delta, clusters, saving=found.saving is not None)
        cautions = (*cluster_cautions(clusters, limit, enough), *cautions)
        if verdict == "undecided" and clusters.least_limit <= limit:  # else more clusters like these say no more
            clusters = replace(clusters, needed=_clusters_to_decide(found, limit, delta))
    certificate = Certificate(
        verdict=verdict,
        measure=plan.measure.name,
        estimate=found.estimate,
        lower=lower,
        upper=upper,
        max_error=limit,
        confidence_level=min(1.0 - delta, _HIGHEST_LEVEL),
        method=plan.method.name,
        rows=found.table.row_total,
        n_eff=found.n_eff,
        target=plan.method.target,
        finite_sample=plan.method.finite_sample,
        worst_interval=found.worst,
        rows_needed=_rows_to_decide(plan, found, limit) if verdict == "undecided" and clusters is None else None,
        assumptions=plan.method.assumptions(found.table, parts=plan.parts, clusters=clusters),
        event_rate=found.event_rate,
        relative_to=plan.relative_to,
        cautions=cautions,
        notes=found.notes,
        saving=found.saving,
        thresholds=plan.thresholds,
        cost_false_positive=plan.measure.costs[0],
        cost_false_negative=plan.measure.costs[1],
        clusters=clusters,
    )
    return Judged(certificate, found.caution, upper)


def interval_of(plan: Plan, found: Found, alternative: str) -> ConfidenceInterval:
    """Return the limits that were found as a result."""
    lower, upper = found.limits
    return ConfidenceInterval(
        measure=plan.measure.name,
        estimate=found.estimate,
        lower=lower,
        upper=upper,
        confidence_level=min(plan.confidence_level, _HIGHEST_LEVEL),
        alternative=alternative,
        method=plan.method.name,
        rows=found.table.row_total,
        n_eff=found.n_eff,
        target=plan.method.target,
        finite_sample=plan.method.finite_sample,
        assumptions=plan.method.assumptions(found.table, parts=plan.parts, clusters=found.clusters),
        relative_to=plan.relative_to,
        notes=found.notes,
        thresholds=plan.thresholds,
        cost_false_positive=plan.measure.costs[0],
        cost_false_negative=plan.measure.costs[1],
        clusters=found.clusters,
    )


def _cautions(plan: Plan, limit: float, event_rate: float) -> tuple[str, ...]:
    """Return why a limit says nothing about forecasts."""
    if plan.measure.thresholds is not None:
        return saving_cautions(limit, event_rate, plan.measure.thresholds)
    return cautions_on(limit, event_rate, plan.relative_to, rows_only=plan.clusters is not None)


def _rows_to_decide(plan: Plan, found: Found, limit: float) -> int | None:
    """Return about how many rows would decide if the error is as estimated: margins shrink as 1 / sqrt(rows).

    The estimate of those rows will differ from this one; allow for it, so that nine times out of ten they decide.
    """
    if not plan.measure.steady:
        return None
    if plan.measure.lower_is_cutoffs and found.estimate >= limit:  # the Cutoff error is perhaps far below
        return None
    margin = found.upper - found.estimate if found.estimate < limit else found.estimate - found.lower
    margin += plan.share(normal_margin(found.table, 0.1), found.event_rate)
    if not math.isfinite(margin):
        return None
    return _about(found.table.row_total, margin, abs(limit - found.estimate))


def _clusters_to_decide(found: Found, limit: float, delta: float) -> int | None:
    """Return about how many clusters like these would decide if the error is as estimated.

    As for rows: margins shrink as the root of the number of clusters, and the estimate of others will differ.
    """
    assert found.clusters is not None
    margin = found.upper - found.estimate if found.estimate < limit else found.estimate - found.lower
    spread = float(found.table.weight_square_residual_square.sum()) * found.clusters.deff
    margin += normal_quantile(0.1) * math.sqrt(spread) / found.table.weight_total
    enough = enough_clusters(limit, delta, found.clusters.serial, drawn=found.clusters.max_size is not None)
    return _about(found.clusters.count, margin, abs(limit - found.estimate), least=enough)


def _about(count: int, margin: float, distance: float, *, least: float = 0.0) -> int | None:
    """Return how many it takes for a margin to shrink to a distance, in two digits; None where that says nothing."""
    if distance * math.sqrt(_MOST_TIMES) <= margin or math.isinf(least):
        return None
    needed = math.ceil(max(count * (margin / distance) ** 2, least))
    unit: int = 10 ** max(len(str(needed)) - 2, 0)
    return -(-needed // unit) * unit


def evaluate(
    plan: Plan,
    source: Tally | RowSource | ClusteredSource,
    seed: int,
    *,
    lower_delta: float | None = None,
    upper_delta: float | None = None,
    table: Totals | None = None,
) -> Found:
    """Return the estimate and the limits asked for, by the plan's method and measure.

    ``table`` are entries of the source that are fine enough for both, where they are there already.
    """
    if plan.clusters is not None:
        assert isinstance(source, ClusteredSource)
        return _evaluate_clusters(plan, plan.clusters, source, seed, lower_delta, upper_delta)
    method, measure = plan.method, plan.measure
    source = with_unit_weights(source)
    if table is None:
        table = _split(plan, source, *([] if upper_delta is None else [upper_delta]))
    method.check_covers(table)
    worst = find_worst_interval(table)
    lower, upper = 0.0, math.inf if plan.relative_to == "events" else 1.0
    caution: str | None = None
    notes: tuple[str, ...] = ()
    saving = measure.saving(table)
    if saving is not None:
        estimate = saving.saving
    elif measure.few_rows:
        estimate = measure.estimate_from(source, worst)
    else:
        source = tally = whole_tally(source)
        estimate = measure.estimate(tally)
        caution = measure.caution(tally)
        notes = (*([] if caution is None else [caution]), *measure.notes(tally))
    if upper_delta is not None:
        limit = _upper_of_rows if plan.relative_to == "rows" else _upper_of_events
        upper = limit(plan, source, table, estimate, upper_delta)
    if lower_delta is not None:
        spent = 0.0 if plan.relative_to == "rows" else RATE_SHARE * lower_delta
        lower = measure.lower_from(source, table, estimate, worst, lower_delta - spent, seed, method)
        if spent > 0.0:
            lower = min(of_events(lower, event_rate_limits(table, spent)[1]), MOST_SHARE)
    estimate = plan.share(estimate, event_rate_of(table))
    if measure.thresholds is None:
        notes = (*notes, *method.notes(table, worst))
    elif upper_delta is not None:
        notes = (*notes, *method.saving_notes(table, measure.thresholds, upper_delta))
    notes = (*notes, *row_hints(table))
    return Found(estimate, lower, upper, table, worst, caution, notes, saving)


def _evaluate_clusters(
    plan: Plan,
    question: ClusterQuestion,
    source: ClusteredSource,
    seed: int,
    lower_delta: float | None,
    upper_delta: float | None,
) -> Found:
    """Return the estimate and the limits asked for, from rows in clusters."""
    method, measure = plan.method, plan.measure
    rows = question.rows(source)
    plain = rows_of_clusters(rows)
    table = _split(plan, with_unit_weights(plain))
    if question.counts_rows and rows.cluster_count == table.row_total:
        alone = evaluate(replace(plan, clusters=None), plain, seed, lower_delta=lower_delta, upper_delta=upper_delta)
        return replace(alone, notes=(one_row_each(table.row_total), *alone.notes))
    worst, saving, thresholds = find_worst_interval(table), measure.saving(table), measure.thresholds
    fine = plain if isinstance(plain, Tally) else rows.histogram(FIRST_GRID) if thresholds is None else table
    limits = question.limits(rows, fine)
    check_enough(question, limits)
    lower, upper, delta = 0.0, 1.0, plan.delta if upper_delta is None else upper_delta
    if saving is None or thresholds is None:
        estimate = worst.error
        if upper_delta is not None:
            upper = min(method.upper_of_clusters(limits, estimate, upper_delta), 1.0)
        if lower_delta is not None:
            lower = method.lower_of_clusters(limits, estimate, lower_delta, seed)
        least = method.least_of_clusters(limits, delta)
    else:
        estimate, lines = saving.saving, SavingLimits(limits, thresholds)
        if upper_delta is not None:
            upper = min(method.upper_saving_of_clusters(lines, estimate, upper_delta), 1.0)
        if lower_delta is not None:
            lower = lines.lower(estimate, lower_delta)
        least = method.least_saving_of_clusters(lines, delta)
    notes = (*method.cluster_notes(limits), *row_hints(table))
    clusters = clusters_of(question, limits, table, least)
    return Found(estimate, lower, upper, table, worst, None, notes, saving, clusters)


def _upper_of_rows(plan: Plan, source: Tally | RowSource, table: Totals, estimate: float, delta: float) -> float:
    return min(plan.measure.upper(source, table, estimate, delta, plan.method), 1.0)


def _upper_of_events(plan: Plan, source: Tally | RowSource, table: Totals, estimate: float, delta: float) -> float:
    """Return a limit as a share of the event rate: the method's own if it has one, else a quotient of two limits."""
    found = plan.method.upper_share(source, table, delta) if plan.measure.by_intervals else None
    if found is None:
        spent = RATE_SHARE * delta
        most = _upper_of_rows(plan, source, table, estimate, delta - spent)
        found = of_events(most, event_rate_limits(table, spent)[0])
    return found
