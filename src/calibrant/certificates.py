"""Certificates: can one say, with a guarantee, that the calibration error is at most so much?

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

import math
import warnings
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, overload

import numpy as np

from calibrant.binomial_limits import exact_upper
from calibrant.bounds import (
    Witnessing,
    adaptive_upper,
    adaptive_upper_of,
    assumptions,
    effective_rows,
    exact_lower_margin,
    hoeffding_lower_margin,
    hoeffding_margin,
    limit_ends,
    normal_lower_margin,
    normal_margin,
    normal_upper,
    paper_margin,
    split_lower,
    uniform_lower_margin,
)
from calibrant.cells import SORT_BELOW_ROWS, as_source, given_source, source_of, with_unit_weights
from calibrant.measures import (
    bounded_variation_calibration_error,
    bounded_variation_witness,
    continuity_note,
    expected_calibration_error,
    find_worst_interval,
    plug_in_error,
    smooth_calibration_error,
    smooth_witness,
)
from calibrant.refinement import split_at_extremes, whole_tally
from calibrant.results.certificates import Certificate, ConfidenceInterval, GroupCertificates
from calibrant.results.measures import WorstInterval
from calibrant.sources import GroupedSource, RowSource, by_group, naming_group
from calibrant.tally import Tally, Totals, refuse_more
from calibrant.validation import (
    CalibrationWarning,
    FloatArray,
    Observations,
    check_choice,
    check_confidence,
    check_labels,
    check_number,
    check_observations,
    check_rng,
    check_weights,
)

METHODS = ("adaptive", "exact", "normal", "hoeffding", "paper")
MEASURES = ("cutoff", "smooth", "bounded_variation", "distance", "ece")
ALTERNATIVES = ("two-sided", "less", "greater")

SPLIT_BELOW_ROWS = SORT_BELOW_ROWS
"""From this many rows on the lower limit without splitting is within 0.025 of the estimate, and needs no sorting."""

FEW_SQUARES = 50.0
"""Large-sample limits are flagged where the squared residuals of the worst interval add up to less than this."""

_MOST_ROWS = 1e12
_HIGHEST_LEVEL = math.nextafter(1.0, 0.0)  # of a share of the smallest delta, 1 minus which is 1 in floating point
_NO_ECE = "no ECE certificate is possible here"


@overload
def certify(
    y_true: GroupedSource,
    *,
    max_error: float,
    confidence_level: float = 0.95,
    method: str = "adaptive",
    measure: str = "cutoff",
    variation: float = 2.0,
    rng: Any = 0,
) -> GroupCertificates: ...


@overload
def certify(
    y_true: Any,
    y_prob: Any = None,
    *,
    max_error: float,
    confidence_level: float = 0.95,
    method: str = "adaptive",
    measure: str = "cutoff",
    variation: float = 2.0,
    by: None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    rng: Any = 0,
) -> Certificate: ...


@overload
def certify(
    y_true: Any,
    y_prob: Any = None,
    *,
    max_error: float,
    confidence_level: float = 0.95,
    method: str = "adaptive",
    measure: str = "cutoff",
    variation: float = 2.0,
    by: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    rng: Any = 0,
) -> GroupCertificates: ...


def certify(
    y_true: Any,
    y_prob: Any = None,
    *,
    max_error: float,
    confidence_level: float = 0.95,
    method: str = "adaptive",
    measure: str = "cutoff",
    variation: float = 2.0,
    by: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    rng: Any = 0,
) -> Certificate | GroupCertificates:
    """Decide, with a guarantee, whether the calibration error is at most ``max_error``.

    The verdict is "certified" when an upper confidence limit of the error is at most ``max_error``, "refuted" when a
    lower one is above it, else "undecided". Each limit is wrong with probability at most 1 - confidence_level, so the
    verdict is too, for one look: rows, limit, method and level chosen beforehand, on rows that neither the model nor
    its recalibration has seen.

    Parameters
    ----------
    y_true : array-like of shape (n,), or Tally, or Scan
        Outcomes: 0/1, booleans, fractions in [0, 1], or two labels with ``pos_label``;
        or, on its own, a tally or a `scan` of a file, table or cluster.
    y_prob : array-like of shape (n,)
        Forecast probabilities.
    max_error : float in [0, 1]
        The largest error you can live with. For Cutoff, 0.02 means: on no interval of forecasts do events and
        forecasts differ by more than 2 per 100 rows of the whole population.
    confidence_level : float from 0.5 to below 1
        One minus the probability of a wrong verdict.
    method : {"adaptive", "exact", "normal", "hoeffding", "paper"}
        - "adaptive": holds at every number of rows, speaks of the population, and is as sharp as the variance of the
          residuals allows. Fractions and weights too.
        - "exact": binomial limits; the sharpest that holds at every number of rows, but it speaks of *these* forecasts
          (as if the same forecasts were issued again). 0/1 outcomes, unit weights, Cutoff only.
        - "normal": large-sample; right for many rows only, and flagged when there are too few.
        - "hoeffding": margin sqrt(2 ln(1/delta) / n); simple, wide.
        - "paper": Proposition 4.1 of [1]_, margin (20 + sqrt(2 ln(1/delta))) / sqrt(n); very wide. Cutoff only.
    measure : {"cutoff", "smooth", "bounded_variation", "distance", "ece"}
        The error to judge. "distance" is the distance from calibration. "ece" means something only when forecasts
        repeat: on nearly continuous ones its bound is true and useless, and a warning says so (Theorem 4.1 of [1]_).
    variation : float, default 2
        Largest total variation of the weights, for ``measure="bounded_variation"``.
    by : array-like of shape (n,), optional
        A group per row: one certificate per group, and one verdict for "every group is at most ``max_error``".
    sample_weight : array-like of shape (n,), optional
        Weights that are fixed, not random; ``n_eff`` says how many rows of equal weight they are worth. A row repeated
        is not two observations; counts of real observations enter as ``Tally.from_counts``.
    pos_label : label, optional
        The label in ``y_true`` that counts as the event.
    rng : int, Generator or None, default 0
        Draws the halves of the rows on which the adaptive method's lower limit is found and tested, sixteen times over.
        Fix it beforehand: whoever tries several has looked several times.

    Returns
    -------
    Certificate, or GroupCertificates with ``by``
        ``bool(certificate)`` is True when certified; ``str(certificate)`` is two sentences for a report.

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
    plan = _check_plan(method, measure, variation, confidence_level)
    limit = check_number(max_error, "max_error", low=0.0, high=1.0)
    generator = check_rng(rng)
    if isinstance(y_true, GroupedSource):
        refuse_more("a source of rows in groups", y_prob, sample_weight, pos_label)
        if by is not None:
            raise ValueError("by was given together with rows that are in groups already; leave it out")
        labels = y_true.groups
        judged = by_group(y_true, lambda rows: _judge_group(plan, given_source(rows), limit, len(labels), generator))
    elif by is not None:
        if isinstance(y_true, Totals):
            raise ValueError("by was given together with a tally, whose rows can no longer be grouped; pass the arrays")
        if isinstance(y_true, RowSource):
            raise ValueError(
                "by was given together with a source of rows; name the groups' column, as scan(..., by=...)"
            )
        rows = check_observations(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
        labels, judged = _judge_groups(plan, rows, by, limit, generator)
    else:
        source = as_source(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
        certificate = _certificate(plan, source, limit, plan.delta, generator)
        _warn_of_ece(certificate.notes)
        return certificate
    certificates = tuple(certificate for certificate, _ in judged)
    uppers = tuple(upper for _, upper in judged)
    for certificate in certificates:
        _warn_of_ece(certificate.notes)
    refuted = any(each.verdict == "refuted" for each in certificates)
    verdict = "certified" if max(uppers) <= limit else "refuted" if refuted else "undecided"
    return GroupCertificates(
        verdict=verdict,
        max_error=limit,
        confidence_level=plan.confidence_level,
        groups=labels,
        upper=uppers,
        certificates=certificates,
    )


def confidence_interval(
    y_true: Any,
    y_prob: Any = None,
    *,
    confidence_level: float = 0.95,
    alternative: str = "two-sided",
    method: str = "adaptive",
    measure: str = "cutoff",
    variation: float = 2.0,
    sample_weight: Any = None,
    pos_label: Any = None,
    rng: Any = 0,
) -> ConfidenceInterval:
    """Return confidence limits for a calibration error, without a threshold.

    Parameters
    ----------
    y_true, y_prob, confidence_level, method, measure, variation, sample_weight, pos_label, rng
        As in `certify`.
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
    plan = _check_plan(method, measure, variation, confidence_level)
    check_choice(alternative, "alternative", ALTERNATIVES)
    each = plan.delta / 2.0 if alternative == "two-sided" else plan.delta
    source = as_source(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    found = _evaluate(
        plan,
        source,
        check_rng(rng),
        lower_delta=None if alternative == "less" else each,
        upper_delta=None if alternative == "greater" else each,
    )
    _warn_of_ece(found.notes)
    return ConfidenceInterval(
        measure=measure,
        estimate=found.estimate,
        lower=max(found.lower, 0.0),
        upper=min(found.upper, 1.0),
        confidence_level=plan.confidence_level,
        alternative=alternative,
        method=method,
        n=found.table.row_total,
        n_eff=effective_rows(found.table),
        target=plan.target,
        finite_sample=plan.finite_sample,
        assumptions=assumptions(found.table, plan.method),
        notes=found.notes,
    )


@dataclass(frozen=True)
class _Plan:
    """What is to be judged and how: fixed before any row is looked at."""

    method: str
    measure: str
    variation: float
    confidence_level: float

    @property
    def delta(self) -> float:
        return 1.0 - self.confidence_level

    @property
    def target(self) -> str:
        return "these forecasts" if self.method == "exact" else "population"

    @property
    def finite_sample(self) -> bool:
        return self.method != "normal"

    @property
    def factor(self) -> float:
        """How many times the deviation of intervals the deviation of this measure can be: 1 + M/2 (docs/theory.md)."""
        variation = {"smooth": 1.0, "distance": 1.0, "bounded_variation": self.variation}.get(self.measure, 0.0)
        return 1.0 + variation / 2.0


@dataclass(frozen=True)
class _Found:
    """Estimate and limits, not yet cut to [0, 1], with the totals they came from."""

    estimate: float
    lower: float
    upper: float
    table: Totals
    worst: WorstInterval
    notes: tuple[str, ...]


def _check_plan(method: str, measure: str, variation: float, confidence_level: float) -> _Plan:
    check_choice(method, "method", METHODS)
    check_choice(measure, "measure", MEASURES)
    if method in ("paper", "exact") and measure != "cutoff":
        raise ValueError(
            f"method={method!r} covers measure='cutoff' only, got measure={measure!r}; use method='adaptive', "
            "'hoeffding' or 'normal'"
        )
    level = check_confidence(confidence_level)
    if method == "exact" and level < 0.75:
        raise ValueError(f"method='exact' needs a confidence_level of at least 0.75, got {level:g}")
    return _Plan(method, measure, check_number(variation, "variation", low=0.0), level)


def _warn_of_ece(notes: tuple[str, ...]) -> None:
    """Warn whoever called the public function that calls this one."""
    for note in notes:
        if note.startswith(_NO_ECE):
            warnings.warn(note, CalibrationWarning, stacklevel=3)


def _check_covered(plan: _Plan, table: Totals) -> None:
    """Refuse rows that a method has no proof for."""
    if plan.method in ("paper", "exact") and not table.unit_weights:
        raise ValueError(
            f"method={plan.method!r} does not cover sample_weight; use method='adaptive', 'hoeffding' or 'normal', or "
            "Tally.from_counts if the weights are counts of real observations"
        )
    if plan.method == "exact" and not table.binary_outcomes:
        raise ValueError(
            "method='exact' needs outcomes of 0 or 1, and y_true holds fractions; use method='adaptive', or 'normal' "
            "for many rows"
        )


def _judge_groups(
    plan: _Plan, rows: Observations, by: Any, limit: float, generator: np.random.Generator
) -> tuple[tuple[Any, ...], tuple[tuple[Certificate, float], ...]]:
    """Return the groups' labels and what is found in each of them."""
    labels, members = check_labels(by, "by", rows.y_prob.size)
    judged = []
    for label, positions in zip(labels, members, strict=True):
        with naming_group(label):
            members_rows = rows.take(positions)
            check_weights(members_rows.sample_weight, positions.size)
            judged.append(_judge_group(plan, source_of(members_rows), limit, len(labels), generator))
    return tuple(labels), tuple(judged)


def _judge_group(
    plan: _Plan, source: Tally | RowSource, limit: float, groups: int, generator: np.random.Generator
) -> tuple[Certificate, float]:
    """Return a group's certificate, which holds together with the others, and its upper limit on its own.

    Every group draws the same random numbers as it would alone.
    """
    source = with_unit_weights(source)
    _split(plan, source, plan.delta / groups, plan.delta)  # what both need, in one go
    certificate = _certificate(plan, source, limit, plan.delta / groups, deepcopy(generator))
    return certificate, min(_evaluate(plan, source, generator, upper_delta=plan.delta).upper, 1.0)


def _split(plan: _Plan, source: Tally | RowSource, *deltas: float) -> Totals:
    """Return entries fine enough for the estimate and for upper limits at the given levels."""
    pruned = plan.measure == "cutoff" and plan.method in ("adaptive", "normal")
    return split_at_extremes(source, *(limit_ends(plan.method, delta) for delta in deltas if pruned))


def _certificate(
    plan: _Plan, source: Tally | RowSource, limit: float, delta: float, generator: np.random.Generator
) -> Certificate:
    found = _evaluate(plan, source, generator, lower_delta=delta, upper_delta=delta)
    lower, upper = max(found.lower, 0.0), min(found.upper, 1.0)
    verdict = "certified" if upper <= limit else "refuted" if lower > limit else "undecided"
    return Certificate(
        verdict=verdict,
        measure=plan.measure,
        estimate=found.estimate,
        lower=lower,
        upper=upper,
        max_error=limit,
        confidence_level=min(1.0 - delta, _HIGHEST_LEVEL),
        method=plan.method,
        n=found.table.row_total,
        n_eff=effective_rows(found.table),
        target=plan.target,
        finite_sample=plan.finite_sample,
        worst_interval=found.worst,
        rows_needed=_rows_to_decide(plan, found, limit) if verdict == "undecided" else None,
        assumptions=assumptions(found.table, plan.method),
        notes=found.notes,
    )


def _rows_to_decide(plan: _Plan, found: _Found, limit: float) -> int | None:
    """Return about how many rows would decide if the error is as estimated: margins shrink as 1 / sqrt(rows).

    The estimate of those rows will differ from this one; allow for it, so that nine times out of ten they decide.
    """
    if plan.measure == "distance":  # its margin has a part that shrinks more slowly
        return None
    if plan.measure == "ece" and found.estimate >= limit:  # its lower limit is the Cutoff error's, perhaps far below
        return None
    margin = found.upper - found.estimate if found.estimate < limit else found.estimate - found.lower
    margin += normal_margin(found.table, 0.1)
    distance = abs(limit - found.estimate)
    if distance <= margin * 1e-5:
        return None
    rows = found.table.row_total * (margin / distance) ** 2
    return math.ceil(rows) if rows < _MOST_ROWS else None


def _evaluate(
    plan: _Plan,
    source: Tally | RowSource,
    generator: np.random.Generator,
    *,
    lower_delta: float | None = None,
    upper_delta: float | None = None,
) -> _Found:
    """Return the estimate and the limits asked for, by the plan's method and measure."""
    source = with_unit_weights(source)
    table = _split(plan, source, *([] if upper_delta is None else [upper_delta]))
    _check_covered(plan, table)
    worst = find_worst_interval(table)
    notes = []
    if plan.measure == "cutoff":
        estimate = worst.error
        upper = 1.0 if upper_delta is None else _cutoff_upper(plan, source, table, estimate, upper_delta)
    else:
        source = whole_tally(source)
        estimate = _estimate(plan, source)
        if plan.measure == "ece":
            note = continuity_note(source)
            if note:
                notes.append(f"{_NO_ECE}, the limit is true but useless: {note}")
        upper = 1.0
        bins = math.ceil(effective_rows(source) ** (1.0 / 3.0))
        if plan.measure == "distance":
            notes.append(
                "the estimate is the smooth calibration error; the lower limit is half that of the smooth error, the "
                f"upper limit that of the error of {bins} bins plus half the width of a bin"
            )
        if upper_delta is not None and plan.measure == "distance":
            # Forecasts moved to their bin's event rate are calibrated: half a bin's width on top of the bins' error.
            error = expected_calibration_error(source, n_bins=bins)
            upper = _general_upper(plan, source, error, upper_delta) + 1.0 / (2.0 * bins)
        elif upper_delta is not None:
            upper = _general_upper(plan, source, estimate, upper_delta)
    lower = 0.0
    if lower_delta is not None:
        lower = _lower(plan, source, table, estimate, worst, lower_delta, generator)
    if plan.method == "normal":
        notes.extend(_few_squares(table, worst))
    return _Found(estimate, lower, upper, table, worst, tuple(notes))


def _estimate(plan: _Plan, tally: Tally) -> float:
    if plan.measure == "bounded_variation":
        return bounded_variation_calibration_error(tally, variation=plan.variation)
    return plug_in_error(tally) if plan.measure == "ece" else smooth_calibration_error(tally)


def _cutoff_upper(plan: _Plan, source: Tally | RowSource, table: Totals, estimate: float, delta: float) -> float:
    if plan.method == "adaptive":
        return adaptive_upper(source, table, delta)
    if plan.method == "normal":
        return normal_upper(source, table, delta)
    if plan.method == "exact":
        return exact_upper(whole_tally(source), delta)
    margin = paper_margin if plan.method == "paper" else hoeffding_margin
    return estimate + margin(effective_rows(table), delta)


def _general_upper(plan: _Plan, table: Totals, estimate: float, delta: float) -> float:
    """Return the upper limit of any weighted calibration error from its value on the rows."""
    if plan.method == "adaptive":
        return adaptive_upper_of(estimate, table, delta)
    margin = normal_margin(table, delta) if plan.method == "normal" else hoeffding_margin(effective_rows(table), delta)
    return estimate + margin


def _lower(
    plan: _Plan,
    source: Tally | RowSource,
    table: Totals,
    estimate: float,
    worst: WorstInterval,
    delta: float,
    generator: np.random.Generator,
) -> float:
    """Return the lower limit that matches the method; the ECE has the Cutoff error's, the distance half the smooth."""
    if plan.measure == "ece":
        estimate = worst.error
    rows = effective_rows(table)
    if plan.method == "paper":
        lower = estimate - paper_margin(rows, delta)
    elif plan.method == "hoeffding":
        lower = estimate - hoeffding_lower_margin(table, delta, plan.factor)
    elif plan.method == "exact":
        lower = estimate - exact_lower_margin(rows, delta)
    elif plan.method == "normal":
        lower = estimate - plan.factor * normal_lower_margin(table, delta)
    elif table.binary_outcomes and table.unit_weights and table.row_total < SPLIT_BELOW_ROWS:
        lower = split_lower(whole_tally(source), _witnessing(plan), delta, generator)
    else:
        lower = estimate - uniform_lower_margin(table, delta, plan.factor)
    return lower / 2.0 if plan.measure == "distance" else lower


def _witnessing(plan: _Plan) -> Witnessing:
    if plan.measure in ("smooth", "distance"):
        return _smooth_weight
    return partial(_step_weight, plan.variation) if plan.measure == "bounded_variation" else _interval_weight


def _interval_weight(tally: Tally) -> Any:
    worst = find_worst_interval(tally)
    sign = {"too low": 1.0, "too high": -1.0, "none": 0.0}[worst.direction]
    return lambda forecast: sign * ((forecast >= worst.low) & (forecast <= worst.high))


def _smooth_weight(tally: Tally) -> Any:
    witness = smooth_witness(tally)
    return lambda forecast: np.interp(forecast, witness.forecast, witness.weight)


def _step_weight(variation: float, tally: Tally) -> Any:
    witness = bounded_variation_witness(tally, variation=variation)

    def weigh(forecast: FloatArray) -> FloatArray:
        below = np.searchsorted(witness.forecast, forecast, side="right") - 1
        return np.asarray(witness.weight[np.maximum(below, 0)])

    return weigh


def _few_squares(table: Totals, worst: WorstInterval) -> list[str]:
    inside = (table.low >= worst.low) & (table.high <= worst.high)
    squares = float(table.weight_square_residual_square[inside].sum()) / table.weight_max**2
    if squares >= FEW_SQUARES:
        return []
    return [
        f"the squared residuals of the worst interval add up to {squares:.1f}, below {FEW_SQUARES:g}: too few for a "
        "large-sample limit, whose real confidence may be lower than stated; use method='adaptive' or 'exact'"
    ]
