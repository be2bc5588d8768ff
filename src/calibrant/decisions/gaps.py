"""What a better use of the same forecasts could save: gaps in risk, the best cutoff, and promises about both.

The loss is that of `decision_risk`: tau for acting without an event, 1 - tau for an event missed. A gap is the loss of
acting when p >= tau minus the smallest that a recalibration of the forecasts attains.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

import warnings

import numpy as np

from calibrant.core.codec import fields_of
from calibrant.core.errors import CalibrationWarning
from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray
from calibrant.core.voices import Argument, Option, Phrase
from calibrant.decisions.results import (
    WRAPPERS,
    BestThreshold,
    DecisionRisk,
    DecisionRule,
    MurphyCurve,
    RiskGap,
    RiskGapCurve,
    Wrapper,
)
from calibrant.decisions.risks import curve_through, risk_of_totals, sign_testing_of_rows
from calibrant.measures.expected import FEW_ROWS, lonely_rows, plug_in_error
from calibrant.measures.results import PAPER, PROJECT, Relation
from calibrant.measures.smoothers import isotonic_curve
from calibrant.measures.weighted import cutoff_calibration_error
from calibrant.rows.checks import check_choice
from calibrant.rows.costs import one_threshold
from calibrant.rows.given import given_tally
from calibrant.rows.intake import RowsLike, as_observations, as_tally
from calibrant.rows.refinement import TOLERANCE
from calibrant.rows.runs import group_starts, prefix_sums
from calibrant.rows.tally import Tally, Totals


@frames_follow
def risk_gap(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    threshold: float | None = None,
    wrapper: Wrapper = "nondecreasing",
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> RiskGap:
    """Tell what a better use of the same forecasts could save at one threshold.

    R(f; tau) - min over wrappers h of R(h(f); tau), with `decision_risk` R. A non-decreasing h can only move the
    cutoff, a monotone one may also turn the rule round, an arbitrary one may act on any set of forecasts. The gap is at
    most the Cutoff calibration error, twice it, or the ECE; the result checks that.

    Parameters
    ----------
    y_true, y_prob, threshold, cost_false_positive, cost_false_negative, sample_weight, pos_label
        As in `decision_risk`, with one threshold.
    wrapper : {"nondecreasing", "monotone", "any"}
        The recalibrations allowed. "any" compares with the event rate at each single forecast, which on nearly
        continuous forecasts of 0/1 outcomes is overfitting by construction: a warning says so. It means something for
        forecasts that repeat, and for outcomes that are event probabilities.

    Returns
    -------
    RiskGap
        The risk now, the best attainable, the gap, the rule that attains it, and the bound.

    References
    ----------
    Propositions 3.1 and 3.2 of [1]_; the factor 1 for non-decreasing wrappers is this project's.

    Examples
    --------
    >>> result = risk_gap([0, 0, 1, 1], [0.2, 0.3, 0.4, 0.9], threshold=0.5)
    >>> result.risk, result.best_risk, result.gap
    (0.125, 0.0, 0.125)
    >>> print(result.rule)
    act on forecasts of at least 0.4
    >>> print(result.bound)
    gap <= Cutoff: 0.125 <= 0.175 holds (this project)
    """
    at, (vain_cost, missed_cost) = one_threshold(threshold, cost_false_positive, cost_false_negative)
    check_choice(wrapper, "wrapper", tuple(WRAPPERS))
    tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    # A fraction may be an exact event probability, for which nothing is overfitted; 0 and 1 hardly can.
    notes = _overfitting(tally) if wrapper == "any" and tally.binary_outcomes else ()
    gap, rule = _best_rule(tally, at, wrapper, strict=False)
    risk = float(risk_of_totals(tally, at).risk)
    return RiskGap(
        loss="decision",
        threshold=at,
        wrapper=wrapper,
        risk=risk,
        best_risk=max(risk - gap, 0.0),
        gap=gap,
        rule=rule,
        bound=_gap_bound(tally, gap, wrapper),
        cost_false_positive=vain_cost,
        cost_false_negative=missed_cost,
        notes=notes,
    )


@frames_follow
def risk_gap_curve(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    wrapper: Wrapper = "nondecreasing",
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> RiskGapCurve:
    """Tell what recalibration could save at every threshold at once, exactly.

    One recalibration, isotonic regression, is the best non-decreasing one for all thresholds together, so the gap is
    the risk of the forecasts minus that of the isotonic fit: linear between the distinct forecasts and the fitted
    values, with a jump just after a forecast. O(n log n). It also gives the regret against the better of always and
    never acting.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `decision_risk`.
    wrapper : {"nondecreasing", "monotone"}
        The recalibrations allowed; "monotone" adds the falling ones, threshold by threshold.

    Returns
    -------
    RiskGapCurve
        Knots with the value and the limit just above; ``at(threshold)`` reads it anywhere, ``largest_gap`` is the most
        that anybody could save at any threshold.

    References
    ----------
    Section 3 of [1]_; the curve is this project's, a difference of two Murphy curves (Ehm, Gneiting, Jordan, Krueger
    2016).

    Examples
    --------
    >>> curve = risk_gap_curve([0, 0, 1, 1], [0.2, 0.3, 0.4, 0.9])
    >>> curve.at(0.5)
    0.125
    >>> print(curve)
    At no threshold does non-decreasing recalibration save more than 0.15000 of the mean loss on these rows (approached
    just above threshold 0.4). At no threshold would always or never acting have been better.
    largest gap <= Cutoff: 0.15 <= 0.175 holds (this project)
    """
    check_choice(wrapper, "wrapper", ("nondecreasing", "monotone"))
    tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    bends, lowest = _best_risk(tally, increasing=True)
    if wrapper == "monotone":
        bends, lowest = _lower_of(bends, lowest, *_best_risk(tally, increasing=False))
    murphy = curve_through(tally, bends)
    best_risk = np.interp(murphy.threshold, bends, lowest)
    gap, gap_at, gap_attained = _largest(murphy, best_risk)
    regret, regret_at, regret_attained = _largest(murphy, murphy.constant_risk)
    return RiskGapCurve(
        **{name: getattr(murphy, name) for name in fields_of(MurphyCurve)},
        best_risk=best_risk,
        wrapper=wrapper,
        largest_gap=gap,
        largest_gap_at=gap_at,
        largest_gap_attained=gap_attained,
        largest_regret=regret,
        largest_regret_at=regret_at,
        largest_regret_attained=regret_attained,
        bound=_gap_bound(tally, gap, wrapper, name="largest gap"),
    )


@frames_follow
def sign_testing_gap(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    threshold: float | None = None,
    wrapper: Wrapper = "nondecreasing",
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> RiskGap:
    """Tell what a better use of the same forecasts could save in `sign_testing_risk`.

    The difference of two sign-testing risks depends on the outcomes through their sums at each forecast alone, so the
    gap, unlike the risk, can be computed from any tally, and the bounds are those of `risk_gap`. The rule acts when
    p > y*.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `decision_risk`.
    threshold : float in [0, 1]
        The value y* that outcomes are compared with.
    wrapper : {"nondecreasing", "monotone", "any"}
        As in `risk_gap`; "any" warns on nearly continuous forecasts whatever the outcomes.
    cost_false_positive, cost_false_negative : float, optional
        Costs in place of ``threshold``: what a wrong guess costs at y = 0 and at y = 1, as `affine_costs` gives them.
        The distance to y* then costs their sum.

    Returns
    -------
    RiskGap
        With ``loss="sign testing"``; ``risk`` and ``best_risk`` are None for a tally of fractional outcomes.

    References
    ----------
    Appendix B.4 of [1]_; the factor 1 for non-decreasing wrappers is this project's.

    Examples
    --------
    >>> round(sign_testing_gap([0.1, 0.7, 0.4], [0.2, 0.4, 0.9], threshold=0.5, wrapper="monotone").gap, 12)
    0.066666666667
    """
    at, (vain_cost, missed_cost) = one_threshold(threshold, cost_false_positive, cost_false_negative)
    check_choice(wrapper, "wrapper", tuple(WRAPPERS))
    risk: float | None = None
    if isinstance(y_true, Totals):
        tally = given_tally(y_true, y_prob, sample_weight, pos_label)
        if tally.binary_outcomes:
            risk = float(risk_of_totals(tally, at, strict=True).risk)
    else:
        observations = as_observations(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
        tally = Tally.from_observations(observations)
        risk = float(sign_testing_of_rows(observations, at).risk)
    notes = _overfitting(tally) if wrapper == "any" else ()
    gap, rule = _best_rule(tally, at, wrapper, strict=True)
    return RiskGap(
        loss="sign testing",
        threshold=at,
        wrapper=wrapper,
        risk=risk,
        best_risk=None if risk is None else max(risk - gap, 0.0),
        gap=gap,
        rule=rule,
        bound=_gap_bound(tally, gap, wrapper, propositions=("B.2", "B.2")),
        cost_false_positive=vain_cost,
        cost_false_negative=missed_cost,
        notes=notes,
    )


@frames_follow
def best_threshold(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    threshold: float | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> BestThreshold:
    """Return the cutoff that would have been best on these rows for the loss of a threshold, and its saving.

    Calibrated forecasts are best cut at the threshold itself; the cutoff that minimises the mean loss on these rows
    shows how far from that they are. Of equally good cutoffs it is the one nearest to the threshold. Having been chosen
    on these rows it flatters itself there: judge it on others. The saving is the gap of `risk_gap` for non-decreasing
    wrappers.

    Parameters
    ----------
    y_true, y_prob, threshold, cost_false_positive, cost_false_negative, sample_weight, pos_label
        As in `decision_risk`, with one threshold.

    Returns
    -------
    BestThreshold
        The cutoff, the rule that it makes, the saving, and the share of rows that it treats differently.

    Examples
    --------
    >>> best = best_threshold([0, 0, 1, 1], [0.2, 0.3, 0.4, 0.9], threshold=0.5)
    >>> best.cutoff, best.cutoff_above, best.saving
    (0.4, 0.3, 0.125)
    """
    at, (vain_cost, missed_cost) = one_threshold(threshold, cost_false_positive, cost_false_negative)
    tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    gap, rule = _best_rule(tally, at, "nondecreasing", strict=False)
    risk = float(risk_of_totals(tally, at).risk)
    forecast = tally.forecast
    cutoff = {"always": 0.0, "never": None}.get(rule.kind, rule.cutoff)
    acts = rule.acts(forecast)
    below = np.flatnonzero(~acts)
    return BestThreshold(
        threshold=at,
        cutoff=cutoff,
        cutoff_above=float(forecast[below[-1]]) if below.size else None,
        rule=rule,
        risk=risk,
        best_risk=max(risk - gap, 0.0),
        saving=gap,
        changed=float(tally.weight[acts != (forecast >= at)].sum()) / tally.weight_total,
        unit_weights=tally.unit_weights,
        cost_false_positive=vain_cost,
        cost_false_negative=missed_cost,
    )


def gaps_of(risk: DecisionRisk, tally: Tally) -> FloatArray:
    """Return the gap of `risk_gap` at each threshold of a risk of these rows, for non-decreasing wrappers."""
    best_risk = np.interp(risk.threshold, *_best_risk(tally, increasing=True))
    return np.maximum(risk.risk - best_risk, 0.0)  # equal ones may round below zero


def _best_rule(tally: Tally, at: float, wrapper: Wrapper, *, strict: bool) -> tuple[float, DecisionRule]:
    """Return what the best rule of a shape saves at a threshold, and the rule: today's, unless another is better.

    Acting on forecast k instead of not gains y - tau summed over its rows; a rule collects the gains it acts on.
    """
    forecast, total = tally.forecast, tally.weight_total
    gain = tally.outcome - at * tally.weight
    first = int(np.searchsorted(forecast, at, side="right" if strict else "left"))
    today = DecisionRule("above" if strict else "at least", at)
    slack = TOLERANCE * total
    if wrapper == "any":
        acts = np.arange(len(tally)) >= first
        wrong = np.where(acts, gain < 0.0, gain > 0.0)
        gap = float(np.abs(gain[wrong]).sum())
        rule = DecisionRule("one of", forecasts=forecast[acts ^ wrong])
        return (gap / total, rule) if gap > slack else (0.0, today)
    forgone = prefix_sums(gain)  # by acting from the k-th forecast up
    gap, rule = 0.0, today
    saved = float(forgone[first] - forgone.min())
    if saved > slack:
        gap = saved
        best = np.flatnonzero(forgone <= forgone.min() + slack)
        # The k-th cut is made by every cutoff above the forecast before the k-th and up to that: take the nearest end.
        nearest = forecast[np.where(best < first, best, best - 1)]
        rule = _cut_rule(forecast, int(best[np.abs(nearest - at).argmin()]))
    if wrapper == "monotone":
        turned = float(forgone[first] + forgone.max() - forgone[-1])
        if turned > gap + slack:
            last = int(np.argmax(forgone >= forgone.max() - slack)) - 1
            gap, rule = turned, DecisionRule("at most", float(forecast[last]))
    return gap / total, rule


def _cut_rule(forecast: FloatArray, cut: int) -> DecisionRule:
    if cut == 0:
        return DecisionRule("always")
    return DecisionRule("never") if cut == forecast.size else DecisionRule("at least", float(forecast[cut]))


def _gap_bound(
    tally: Tally, gap: float, wrapper: Wrapper, *, name: str = "gap", propositions: tuple[str, str] = ("3.1", "3.2")
) -> Relation:
    """Return what theory says about a gap, with both sides, and the paper's propositions for any and for monotone."""
    if wrapper == "any":
        bound, statement, source = plug_in_error(tally), "ECE", f"{PAPER}, Prop. {propositions[0]}"
    else:
        bound, statement, source = cutoff_calibration_error(tally), "Cutoff", PROJECT
        if wrapper == "monotone":
            bound, statement, source = 2.0 * bound, "2 Cutoff", f"{PAPER}, Prop. {propositions[1]}"
    return Relation(f"{name} <= {statement}", gap, bound, gap <= bound + TOLERANCE, source)


def noise_note(tally: Tally) -> str | None:
    """Say so where comparing with the outcomes at single forecasts means comparing with noise."""
    lonely = lonely_rows(tally)
    if 2 * lonely <= tally.row_total:
        return None
    return (
        f"the outcomes at that very forecast, but {lonely:,} of {tally.row_total:,} rows share theirs with fewer than "
        f"{FEW_ROWS} rows: it overfits by construction"
    )


def _overfitting(tally: Tally) -> tuple[str, ...]:
    """Warn where the best rule of any shape is one for noise."""
    noise = noise_note(tally)
    if noise is None:
        return ()
    note = Phrase(
        "{any_rule} acts on each distinct forecast by {noise}, and the gap says nothing about new rows. Use {instead} "
        "or 'monotone'; ignore this if {outcomes} holds exact expectations.",
        code="overfitting",
        any_rule=Option("wrapper", "any"),
        noise=noise,
        instead=Option("wrapper", "nondecreasing"),
        outcomes=Argument("y_true"),
    )
    warnings.warn(note, CalibrationWarning, stacklevel=4)
    return (note,)


def _best_risk(tally: Tally, *, increasing: bool) -> tuple[FloatArray, FloatArray]:
    """Return the knots of the smallest risk that non-decreasing (or non-increasing) wrappers attain, 0 and 1 included.

    It is the risk of the isotonic (or antitonic) regression: concave and linear between the fitted values.
    """
    curve = isotonic_curve(tally, increasing=increasing)
    starts = group_starts(curve)
    events, weight = np.add.reduceat(tally.outcome, starts), np.add.reduceat(tally.weight, starts)
    if not increasing:
        events, weight = events[::-1], weight[::-1]
    rate = np.maximum.accumulate(events / weight)  # rounding must not turn equal blocks round
    missed, vain = prefix_sums(events)[:-1], prefix_sums((weight - events)[::-1])[::-1][:-1]
    risk = (rate * vain + (1.0 - rate) * missed) / tally.weight_total
    bends, risk = np.concatenate([[0.0], rate, [1.0]]), np.concatenate([[0.0], risk, [0.0]])
    distinct = group_starts(bends)
    return bends[distinct], risk[distinct]


def _lower_of(
    bends: FloatArray, risk: FloatArray, others: FloatArray, other: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the knots of the smaller of two curves, including where they cross."""
    knots = np.union1d(bends, others)
    first, second = np.interp(knots, bends, risk), np.interp(knots, others, other)
    ahead = first - second
    cross = np.flatnonzero(ahead[:-1] * ahead[1:] < 0.0)
    share = ahead[cross] / (ahead[cross] - ahead[cross + 1])
    at = knots[cross] + share * (knots[cross + 1] - knots[cross])
    value = first[cross] + share * (first[cross + 1] - first[cross])
    joined = np.concatenate([knots, at])
    order = np.argsort(joined, kind="stable")
    return joined[order], np.concatenate([np.minimum(first, second), value])[order]


def _largest(curve: MurphyCurve, reference: FloatArray) -> tuple[float, float, bool]:
    """Return how far a curve rises above one that never jumps, the lowest threshold of that, and if it is attained."""
    value, right = curve.risk - reference, curve.risk_right - reference
    top = max(float(value.max()), float(right.max()))
    near = value >= top - TOLERANCE
    attained = bool(near.any())
    if not attained:
        near = right >= top - TOLERANCE
    # What rounding leaves of no rise at all is none.
    return top if top > TOLERANCE else 0.0, float(curve.threshold[near.argmax()]), attained
