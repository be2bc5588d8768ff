"""Certificates: can one say, with a guarantee, that the calibration error is at most so much?

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, overload

from calibrant.certificates.binomial_limits import exact_upper
from calibrant.certificates.limits import (
    SPREAD_SHARE,
    adaptive_upper,
    adaptive_upper_of,
    assumptions,
    effective_rows,
    exact_lower_margin,
    hoeffding_lower_margin,
    hoeffding_margin,
    limit_ends,
    mean_limits,
    normal_lower_margin,
    normal_margin,
    normal_upper,
    paper_margin,
    split_lower,
    spread_upper,
    uniform_lower_margin,
)
from calibrant.certificates.results import Certificate, ConfidenceInterval, GroupCertificates, verdict_of, within_unit
from calibrant.certificates.witnesses import witnessing
from calibrant.core.errors import CalibrationWarning
from calibrant.measures.expected import continuity_note, expected_calibration_error, plug_in_error
from calibrant.measures.results import WorstInterval
from calibrant.measures.weighted import (
    bounded_variation_calibration_error,
    find_worst_interval,
    smooth_calibration_error,
)
from calibrant.rows.checks import check_choice, check_confidence, check_number, check_seed
from calibrant.rows.groups import GroupedRows, GroupedSource, by_group
from calibrant.rows.intake import SORT_BELOW_ROWS, as_source, in_groups, with_unit_weights
from calibrant.rows.refinement import split_at_extremes, whole_tally
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally, Totals

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
    y_true: GroupedSource | GroupedRows,
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
        - "exact": holds at every number of rows and is narrower, but it speaks of *these* forecasts (as if the same
          forecasts were issued again): binomial limits, or a bet where the forecasts tell outcomes apart so well that
          it is narrower. 0/1 outcomes, unit weights, Cutoff only.
        - "normal": large-sample; right for many rows only, and flagged when there are too few.
        - "hoeffding": margin sqrt(2 ln(1/delta) / n); simple, wide.
        - "paper": Proposition 4.1 of [1]_, margin (20 + sqrt(2 ln(1/delta))) / sqrt(n); very wide. Cutoff only.
    measure : {"cutoff", "smooth", "bounded_variation", "distance", "ece"}
        The error to judge. "distance" is the distance from calibration. "ece" means something only when forecasts
        repeat: on nearly continuous ones its bound is true and useless, and a warning says so (Theorem 4.1 of [1]_).
    variation : float, default 2
        Largest total variation of the weights, for ``measure="bounded_variation"``.
    by : array-like of shape (n,), optional
        A group per row: one certificate per group, and one verdict for "every group is at most ``max_error``". Choose
        the groups before looking at the rows: for groups found by looking nothing holds.
    sample_weight : array-like of shape (n,), optional
        Weights fixed beforehand: those computed from the rows, such as inverse propensities, are not covered. ``n_eff``
        says how many rows of equal weight they are worth. A row repeated is not two observations; counts of real
        observations enter as ``Tally.from_counts``.
    pos_label : label, optional
        The label in ``y_true`` that counts as the event.
    rng : int, Generator or None, default 0
        Draws the halves of the rows on which the adaptive method's lower limit is found and tested, sixteen times over,
        without looking at outcomes. Fix it beforehand: whoever tries several has looked several times. Where forecasts
        repeat, that limit holds over the choice of the seed (docs/theory.md, "Random halves").

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
    seed = check_seed(rng)
    if by is None and not isinstance(y_true, (GroupedSource, GroupedRows)):
        source = as_source(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
        certificate = _certificate(plan, source, limit, plan.delta, seed)
        _warn_of_ece(certificate.notes)
        return certificate
    plan = replace(plan, parts="groups")
    rows = in_groups(y_true, y_prob, by=by, sample_weight=sample_weight, pos_label=pos_label)
    count = len(rows.groups)
    judged = by_group(rows, lambda each: _judge_group(plan, as_source(each), limit, count, seed))
    certificates = tuple(certificate for certificate, _ in judged)
    uppers = tuple(upper for _, upper in judged)
    for certificate in certificates:
        _warn_of_ece(certificate.notes)
    return GroupCertificates(
        verdict=GroupCertificates.verdict_of(uppers, certificates, limit),
        max_error=limit,
        confidence_level=plan.confidence_level,
        groups=rows.groups,
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
        check_seed(rng),
        lower_delta=None if alternative == "less" else each,
        upper_delta=None if alternative == "greater" else each,
    )
    _warn_of_ece(found.notes)
    lower, upper = found.limits
    return ConfidenceInterval(
        measure=measure,
        estimate=found.estimate,
        lower=lower,
        upper=upper,
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
    parts: str | None = None

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
    def only_cutoff_below(self) -> bool:
        """Whether the lower limit is the Cutoff error's: the ECE, and weights of any variation, which are the same."""
        return self.measure == "ece" or (self.measure == "bounded_variation" and math.isinf(self.variation))

    @property
    def factor(self) -> float:
        """How many times the deviation of intervals the deviation of this measure can be: 1 + M/2 (docs/theory.md)."""
        if self.only_cutoff_below:
            return 1.0
        return 1.0 + {"smooth": 1.0, "bounded_variation": self.variation}.get(self.measure, 0.0) / 2.0


@dataclass(frozen=True)
class _Found:
    """Estimate and limits, not yet cut to [0, 1], with the totals they came from."""

    estimate: float
    lower: float
    upper: float
    table: Totals
    worst: WorstInterval
    notes: tuple[str, ...]

    @property
    def limits(self) -> tuple[float, float]:
        return within_unit(self.lower, self.upper)


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


def _judge_group(
    plan: _Plan, source: Tally | RowSource, limit: float, groups: int, seed: int
) -> tuple[Certificate, float]:
    """Return a group's certificate, which holds together with the others, and its upper limit on its own."""
    source = with_unit_weights(source)
    _split(plan, source, plan.delta / groups, plan.delta)  # what both need, in one go
    certificate = _certificate(plan, source, limit, plan.delta / groups, seed)
    return certificate, _evaluate(plan, source, seed, upper_delta=plan.delta).limits[1]


def _split(plan: _Plan, source: Tally | RowSource, *deltas: float) -> Totals:
    """Return entries fine enough for the estimate and for upper limits at the given levels."""
    pruned = plan.measure == "cutoff" and plan.method in ("adaptive", "normal")
    return split_at_extremes(source, *(limit_ends(plan.method, delta) for delta in deltas if pruned))


def _certificate(plan: _Plan, source: Tally | RowSource, limit: float, delta: float, seed: int) -> Certificate:
    found = _evaluate(plan, source, seed, lower_delta=delta, upper_delta=delta)
    lower, upper = found.limits
    verdict = verdict_of(lower, upper, limit)
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
        assumptions=assumptions(found.table, plan.method, parts=plan.parts),
        notes=found.notes,
    )


def _rows_to_decide(plan: _Plan, found: _Found, limit: float) -> int | None:
    """Return about how many rows would decide if the error is as estimated: margins shrink as 1 / sqrt(rows).

    The estimate of those rows will differ from this one; allow for it, so that nine times out of ten they decide.
    """
    if plan.measure == "distance":  # its margin has a part that shrinks more slowly
        return None
    if plan.only_cutoff_below and found.estimate >= limit:  # the Cutoff error is perhaps far below
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
    seed: int,
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
                "the estimate is the smooth calibration error; the lower limit comes from the mean bias or from smooth "
                f"weights, the upper limit is that of the error of {bins} bins plus that of the mean distance between "
                "forecasts and the mean of their bin"
            )
        if upper_delta is not None and plan.measure == "distance":
            # Forecasts moved to their bin's event rate are calibrated: by way of the bin's mean forecast.
            error = expected_calibration_error(source, n_bins=bins)
            share = SPREAD_SHARE * upper_delta
            upper = _general_upper(plan, source, error, upper_delta - share) + spread_upper(source, bins, share)
        elif upper_delta is not None:
            upper = _general_upper(plan, source, estimate, upper_delta)
    lower = 0.0
    if lower_delta is not None:
        lower = _lower(plan, source, table, estimate, worst, lower_delta, seed)
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
    return estimate + _mean_margin(plan, table, delta)


def _mean_margin(plan: _Plan, table: Totals, delta: float) -> float:
    """Return how far the mean of w(p) (y - p) for one weight function can be off, to one side."""
    return normal_margin(table, delta) if plan.method == "normal" else hoeffding_margin(effective_rows(table), delta)


def _lower(
    plan: _Plan,
    source: Tally | RowSource,
    table: Totals,
    estimate: float,
    worst: WorstInterval,
    delta: float,
    seed: int,
) -> float:
    """Return the lower limit that matches the method; the ECE has the Cutoff error's."""
    if plan.method == "adaptive" and table.row_total < SPLIT_BELOW_ROWS:
        tally = whole_tally(source)
        if tally.counted or tally.listed is not None:  # whether rows can be told apart, not what they say
            return split_lower(tally, witnessing(plan.measure, plan.variation, delta), delta, seed)
    if plan.measure == "distance":
        return _distance_lower(plan, whole_tally(source), estimate, delta / 2.0)
    return (worst.error if plan.only_cutoff_below else estimate) - _lower_margin(plan, table, delta, plan.factor)


def _lower_margin(plan: _Plan, table: Totals, delta: float, factor: float) -> float:
    """Return how far an error of the rows can be above the population's, for weights of total variation M.

    ``factor`` is 1 + M/2; the published margin and the exact one are for the Cutoff error alone.
    """
    if plan.method == "paper":
        return paper_margin(effective_rows(table), delta)
    if plan.method == "exact":
        return exact_lower_margin(effective_rows(table), delta)
    if plan.method == "normal":
        return factor * normal_lower_margin(table, delta)
    margin = hoeffding_lower_margin if plan.method == "hoeffding" else uniform_lower_margin
    return margin(table, delta, factor)


def _distance_lower(plan: _Plan, tally: Tally, smooth: float, delta: float) -> float:
    """Return the better of two lower limits of the distance, each at delta: by the mean bias, and by steep weights.

    Weights of Lipschitz constant L prove a distance of 1/(1 + L) of their error: all of it for the mean bias, which may
    have either sign, and a third for L = 2, whose error is 2 smooth - |bias| and whose total variation is 2.
    """
    bias = abs(tally.residual_total) / tally.weight_total
    if plan.method == "adaptive":
        low, high = mean_limits(tally, delta / 2.0)
        by_bias = max(low, -high)
    else:
        by_bias = bias - _mean_margin(plan, tally, delta / 2.0)
    return max(by_bias, (2.0 * smooth - bias - _lower_margin(plan, tally, delta, 2.0)) / 3.0)


def _few_squares(table: Totals, worst: WorstInterval) -> list[str]:
    inside = (table.low >= worst.low) & (table.high <= worst.high)
    squares = float(table.weight_square_residual_square[inside].sum()) / table.weight_max**2
    if squares >= FEW_SQUARES:
        return []
    return [
        f"the squared residuals of the worst interval add up to {squares:.1f}, below {FEW_SQUARES:g}: too few for a "
        "large-sample limit, whose real confidence may be lower than stated; use method='adaptive' or 'exact'"
    ]
