"""Certificates: can one say, with a guarantee, that the calibration error is at most so much?

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args, overload

from calibrant.certificates.cautions import cautions_on, saving_cautions
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
from calibrant.certificates.methods.registry import METHODS, Method
from calibrant.certificates.results import (
    Certificate,
    ConfidenceInterval,
    GroupCertificates,
    Yardstick,
    in_order,
    verdict_of,
)
from calibrant.core.errors import CalibrationWarning
from calibrant.core.types import ArrayLike, ClassLabel, Randomness
from calibrant.measures.judged import JudgedMeasure, judged_measure
from calibrant.measures.registry import Measure
from calibrant.measures.results import WorstInterval
from calibrant.measures.savings import LargestSaving
from calibrant.measures.weighted import find_worst_interval
from calibrant.rows.checks import check_choice, check_confidence, check_number, check_seed
from calibrant.rows.groups import are_grouped, by_group
from calibrant.rows.hints import row_hints
from calibrant.rows.intake import GroupsLike, RowsLike, as_source, in_groups, with_unit_weights
from calibrant.rows.refinement import whole_tally
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally, Totals
from calibrant.rows.weights import effective_rows

Alternative = Literal["two-sided", "less", "greater"]
ALTERNATIVES: tuple[str, ...] = get_args(Alternative)

_MOST_ROWS = 1e12
_HIGHEST_LEVEL = math.nextafter(1.0, 0.0)  # of a share of the smallest delta, 1 minus which is 1 in floating point


@overload
def certify(
    y_true: GroupsLike,
    *,
    max_error: float,
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    measure: Measure = "cutoff",
    variation: float = 2.0,
    threshold: float | tuple[float, float] | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    relative_to: Yardstick = "rows",
    rng: Randomness = 0,
) -> GroupCertificates: ...


@overload
def certify(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    max_error: float,
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    measure: Measure = "cutoff",
    variation: float = 2.0,
    threshold: float | tuple[float, float] | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    relative_to: Yardstick = "rows",
    by: None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
    rng: Randomness = 0,
) -> Certificate: ...


@overload
def certify(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    max_error: float,
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    measure: Measure = "cutoff",
    variation: float = 2.0,
    threshold: float | tuple[float, float] | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    relative_to: Yardstick = "rows",
    by: ArrayLike,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
    rng: Randomness = 0,
) -> GroupCertificates: ...


def certify(
    y_true: RowsLike | GroupsLike,
    y_prob: ArrayLike | None = None,
    *,
    max_error: float,
    confidence_level: float = 0.95,
    method: Method = "adaptive",
    measure: Measure = "cutoff",
    variation: float = 2.0,
    threshold: float | tuple[float, float] | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    relative_to: Yardstick = "rows",
    by: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
    rng: Randomness = 0,
) -> Certificate | GroupCertificates:
    """Decide, with a guarantee, whether the calibration error is at most ``max_error``.

    The verdict is "certified" when an upper confidence limit of the error is at most ``max_error``, "refuted" when a
    lower one is above it, else "undecided". Each limit is wrong with probability at most 1 - confidence_level, so the
    verdict is too, for one look: rows, limit, method and level chosen beforehand, on rows that neither the model nor
    its recalibration has seen.

    Parameters
    ----------
    y_true : array-like of shape (n,), or Tally, or Scan
        Outcomes: 0/1, booleans, fractions in [0, 1], or labels with ``pos_label``;
        or, on its own, a tally or a `scan` of a file, table or cluster.
    y_prob : array-like of shape (n,)
        Forecast probabilities.
    max_error : float in [0, 1]
        The largest error you can live with. For Cutoff, 0.02 means: on no interval of forecasts do events and
        forecasts differ by more than 2 per 100 rows of the whole population. Where events are rare that is a lot: ask
        for a share of the events then (docs/choose-max-error.md).
    confidence_level : float from 0.5 to below 1
        One minus the probability of a wrong verdict.
    method : {"adaptive", "exact", "normal", "hoeffding", "paper"}
        - "adaptive": holds at every number of rows, speaks of the population, and is as sharp as the variance of the
          residuals allows. Fractions and weights too.
        - "exact": holds at every number of rows and is narrower, but it speaks of *these* forecasts (as if the same
          forecasts were issued again): binomial limits, or a bet where the forecasts tell outcomes apart so well that
          it is narrower. 0/1 outcomes, unit weights, Cutoff only.
        - "normal": large-sample; right for many rows only, and flagged when there are too few.
        - "hoeffding": margin sqrt(2 ln(1/delta) / n); simple, wide.
        - "paper": Proposition 4.1 of [1]_, margin (20 + sqrt(2 ln(1/delta))) / sqrt(n); very wide. Cutoff only.
    measure : {"cutoff", "smooth", "bounded_variation", "distance", "ece", "risk_gap"}
        The error to judge. "distance" is the distance from calibration. "ece" means something only when forecasts
        repeat: on nearly continuous ones its bound is true and useless, and a warning says so (Theorem 4.1 of [1]_).
        "risk_gap" is what people act on: the most that any re-drawing of the line between acting and not acting (any
        non-decreasing recalibration) saves per case, at the worst threshold. Its limits need far fewer rows, since good
        forecasts leave little to save on few rows near any threshold.
    variation : float, default 2
        Largest total variation of the weights, for ``measure="bounded_variation"``.
    threshold : float, or the lowest and the highest of a range, optional
        For ``measure="risk_gap"``: the threshold, or the range of thresholds, that decisions use. Without it the gap is
        the largest over all thresholds. Fix it beforehand.
    cost_false_positive, cost_false_negative : float, optional
        Costs in place of one threshold, as in `decision_risk`; words then also speak in these units.
    relative_to : {"rows", "events"}
        What ``max_error``, the estimate and the limits are shares of. With "events" 0.25 means: on no interval of
        forecasts do events and forecasts differ by more than a quarter of all events; the error is at most 0.25 times
        the population's event rate, which is not assumed to be known.
    by : array-like of shape (n,), optional
        A group per row: one certificate per group, and one verdict for "every group is at most ``max_error``". Choose
        the groups before looking at the rows: for groups found by looking nothing holds.
    sample_weight : array-like of shape (n,), optional
        Weights fixed beforehand: those computed from the rows, such as inverse propensities, are not covered. ``n_eff``
        says how many rows of equal weight they are worth. A row repeated is not two observations; counts of real
        observations enter as ``Tally.from_counts``.
    pos_label : label, optional
        The label in ``y_true`` that counts as the event, against all others.
    rng : int, Generator or None, default 0
        Draws the halves of the rows on which the adaptive method's lower limit is found and tested, sixteen times over,
        without looking at outcomes. Fix it beforehand: whoever tries several has looked several times. Where forecasts
        repeat, that limit holds over the choice of the seed (docs/theory.md, "Random halves").

    Returns
    -------
    Certificate, or GroupCertificates with ``by``
        ``bool(certificate)`` is True when certified; ``str(certificate)`` is a few sentences for a report. Look at
        ``certificate.cautions`` too: they are not empty when the limit is so wide that the verdict says little.

    References
    ----------
    Propositions 4.1 and Theorem 4.1 of [1]_; the other methods and their proofs are this project's (docs/theory.md).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_prob = rng.random(2000)
    >>> y_true = rng.random(2000) < y_prob
    >>> certificate = certify(y_true, y_prob, max_error=0.05)
    >>> certificate.verdict, round(certificate.estimate, 4), round(certificate.upper, 4)
    ('certified', 0.0104, 0.0277)
    """
    kind = judged_measure(measure, variation, threshold, cost_false_positive, cost_false_negative)
    plan = _check_plan(method, kind, confidence_level, relative_to)
    limit = check_number(max_error, "max_error", low=0.0, high=1.0)
    seed = check_seed(rng)
    if by is None and not are_grouped(y_true):
        source = as_source(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
        found = _judge(plan, source, limit, plan.delta, seed)
        _warn(found.caution)
        return found.certificate
    plan = replace(plan, parts="groups")
    rows = in_groups(y_true, y_prob, by=by, sample_weight=sample_weight, pos_label=pos_label)
    count = len(rows.groups)
    judged = by_group(rows, lambda each: _judge_group(plan, as_source(each), limit, count, seed))
    for each in judged:
        _warn(each.caution)
    certificates, uppers = tuple(each.certificate for each in judged), tuple(each.upper_alone for each in judged)
    return GroupCertificates(
        verdict=GroupCertificates.verdict_of(uppers, certificates, limit),
        max_error=limit,
        confidence_level=plan.confidence_level,
        groups=rows.groups,
        upper=uppers,
        certificates=certificates,
        relative_to=plan.relative_to,
    )


def confidence_interval(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: float = 0.95,
    alternative: Alternative = "two-sided",
    method: Method = "adaptive",
    measure: Measure = "cutoff",
    variation: float = 2.0,
    threshold: float | tuple[float, float] | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    relative_to: Yardstick = "rows",
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
    rng: Randomness = 0,
) -> ConfidenceInterval:
    """Return confidence limits for a calibration error, without a threshold.

    Parameters
    ----------
    y_true, y_prob, confidence_level, method, measure, variation, relative_to, sample_weight, pos_label, rng
        As in `certify`.
    threshold, cost_false_positive, cost_false_negative
        As in `certify`, for ``measure="risk_gap"``.
    alternative : {"two-sided", "less", "greater"}
        Two limits that hold together with ``confidence_level``; an upper limit only ("the error is less than"); a lower
        limit only ("the error is greater than").

    Examples
    --------
    >>> tally = Tally.from_counts(forecast=[0.2, 0.5, 0.8], rows=[400, 300, 300], events=[85, 141, 236])
    >>> print(confidence_interval(tally, alternative="less", method="exact"))
    With 95% confidence the Cutoff calibration error of these forecasts is at most 0.03433 (estimate 0.01300, 1,000
    rows, exact method).
    This assumes that given their forecasts the outcomes are independent; forecaster, limit, method and level were
    fixed without looking at these outcomes.
    """
    kind = judged_measure(measure, variation, threshold, cost_false_positive, cost_false_negative)
    plan = _check_plan(method, kind, confidence_level, relative_to)
    check_choice(alternative, "alternative", ALTERNATIVES)
    each = delta_of_each(plan.delta, 2) if alternative == "two-sided" else plan.delta
    source = as_source(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    found = _evaluate(
        plan,
        source,
        check_seed(rng),
        lower_delta=None if alternative == "less" else each,
        upper_delta=None if alternative == "greater" else each,
    )
    _warn(found.caution)
    lower, upper = found.limits
    return ConfidenceInterval(
        measure=measure,
        estimate=found.estimate,
        lower=lower,
        upper=upper,
        confidence_level=plan.confidence_level,
        alternative=alternative,
        method=method,
        rows=found.table.row_total,
        n_eff=effective_rows(found.table),
        target=plan.method.target,
        finite_sample=plan.method.finite_sample,
        assumptions=plan.method.assumptions(found.table),
        relative_to=plan.relative_to,
        notes=found.notes,
        thresholds=plan.thresholds,
        cost_false_positive=plan.measure.costs[0],
        cost_false_negative=plan.measure.costs[1],
    )


@dataclass(frozen=True)
class _Plan:
    """What is to be judged and how: fixed before any row is looked at."""

    method: CertificateMethod
    measure: JudgedMeasure
    confidence_level: float
    relative_to: str
    parts: str | None = None

    @property
    def delta(self) -> float:
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
class _Found:
    """Estimate and limits, not yet put in order, with the totals they came from."""

    estimate: float
    lower: float
    upper: float
    table: Totals
    worst: WorstInterval
    caution: str | None
    notes: tuple[str, ...]
    saving: LargestSaving | None = None

    @property
    def limits(self) -> tuple[float, float]:
        return in_order(self.lower, self.upper)

    @property
    def event_rate(self) -> float:
        return event_rate_of(self.table)


class _Judged(NamedTuple):
    """A certificate, what to warn of, and in a group the upper limit that holds by itself."""

    certificate: Certificate
    caution: str | None
    upper_alone: float


def _check_plan(method: str, measure: JudgedMeasure, confidence_level: float, relative_to: str) -> _Plan:
    check_choice(method, "method", tuple(METHODS))
    chosen = METHODS[method]
    chosen.check_measure(measure.name)
    level = check_confidence(confidence_level)
    chosen.check_level(level)
    check_yardstick(measure, relative_to)
    return _Plan(chosen, measure, level, relative_to)


def _warn(caution: str | None) -> None:
    """Warn whoever called the public function that calls this one."""
    if caution is not None:
        warnings.warn(caution, CalibrationWarning, stacklevel=3)


def _judge_group(plan: _Plan, source: Tally | RowSource, limit: float, groups: int, seed: int) -> _Judged:
    """Return a group's certificate, which holds together with the others, and its upper limit on its own."""
    source = with_unit_weights(source)
    each = delta_of_each(plan.delta, groups)
    _split(plan, source, each, plan.delta)  # what both need, in one go
    judged = _judge(plan, source, limit, each, seed)
    return judged._replace(upper_alone=_evaluate(plan, source, seed, upper_delta=plan.delta).limits[1])


def _split(plan: _Plan, source: Tally | RowSource, *deltas: float) -> Totals:
    """Return entries fine enough for the estimate and for upper limits at the given levels."""
    return plan.measure.split(source, deltas, plan.method)


def _judge(plan: _Plan, source: Tally | RowSource, limit: float, delta: float, seed: int) -> _Judged:
    found = _evaluate(plan, source, seed, lower_delta=delta, upper_delta=delta)
    lower, upper = found.limits
    verdict = verdict_of(lower, upper, limit)
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
        n_eff=effective_rows(found.table),
        target=plan.method.target,
        finite_sample=plan.method.finite_sample,
        worst_interval=found.worst,
        rows_needed=_rows_to_decide(plan, found, limit) if verdict == "undecided" else None,
        assumptions=plan.method.assumptions(found.table, parts=plan.parts),
        event_rate=found.event_rate,
        relative_to=plan.relative_to,
        cautions=_cautions(plan, limit, found.event_rate),
        notes=found.notes,
        saving=found.saving,
        thresholds=plan.thresholds,
        cost_false_positive=plan.measure.costs[0],
        cost_false_negative=plan.measure.costs[1],
    )
    return _Judged(certificate, found.caution, upper)


def _cautions(plan: _Plan, limit: float, event_rate: float) -> tuple[str, ...]:
    """Return why a limit says nothing about forecasts."""
    if plan.measure.thresholds is not None:
        return saving_cautions(limit, event_rate, plan.measure.thresholds)
    return cautions_on(limit, event_rate, plan.relative_to)


def _rows_to_decide(plan: _Plan, found: _Found, limit: float) -> int | None:
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
    distance = abs(limit - found.estimate)
    if distance <= margin * 1e-5:
        return None
    rows = found.table.row_total * (margin / distance) ** 2
    return math.ceil(rows) if rows < _MOST_ROWS else None


def _evaluate(
    plan: _Plan,
    source: Tally | RowSource,
    seed: int,
    *,
    lower_delta: float | None = None,
    upper_delta: float | None = None,
) -> _Found:
    """Return the estimate and the limits asked for, by the plan's method and measure."""
    method, measure = plan.method, plan.measure
    source = with_unit_weights(source)
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
    return _Found(estimate, lower, upper, table, worst, caution, notes, saving)


def _upper_of_rows(plan: _Plan, source: Tally | RowSource, table: Totals, estimate: float, delta: float) -> float:
    return min(plan.measure.upper(source, table, estimate, delta, plan.method), 1.0)


def _upper_of_events(plan: _Plan, source: Tally | RowSource, table: Totals, estimate: float, delta: float) -> float:
    """Return a limit as a share of the event rate: the method's own if it has one, else a quotient of two limits."""
    found = plan.method.upper_share(source, table, delta) if plan.measure.by_intervals else None
    if found is None:
        spent = RATE_SHARE * delta
        most = _upper_of_rows(plan, source, table, estimate, delta - spent)
        found = of_events(most, event_rate_limits(table, spent)[0])
    return found
