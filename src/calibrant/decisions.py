"""What miscalibration costs decisions: the loss of a threshold, what recalibration could save, proper scores.

Somebody acts when p >= tau. The loss of threshold tau is tau for acting without an event and 1 - tau for an event
missed, so that with calibrated forecasts acting from tau up is best. Each function takes
``(y_true, y_prob, *, sample_weight=None, pos_label=None)`` or a `Tally` alone; outcomes may be event probabilities in
[0, 1], for which losses are expected losses.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from calibrant.cells import as_source
from calibrant.curves import isotonic_curve
from calibrant.measures import FEW_ROWS, cutoff_calibration_error, lonely_rows, plug_in_error
from calibrant.refinement import TOLERANCE, refine
from calibrant.results.certificates import Certificate, ConfidenceInterval
from calibrant.results.decisions import (
    WRAPPERS,
    BestThreshold,
    DecisionGuarantee,
    DecisionRisk,
    DecisionRule,
    MurphyCurve,
    NetBenefit,
    RiskGap,
    RiskGapCurve,
    ScoreDecomposition,
)
from calibrant.results.measures import Relation
from calibrant.scores import SCORES, ProperScore, SchervishMeasure
from calibrant.sources import COARSE_GRID
from calibrant.tally import Tally, Totals, as_tally, given_tally, group_starts, prefix_sums
from calibrant.validation import (
    BoolArray,
    CalibrationWarning,
    FloatArray,
    IntArray,
    Observations,
    check_choice,
    check_costs,
    check_observations,
    check_thresholds,
)

_PAPER = "Rossellini et al. 2025"
_PROJECT = "this project"

Costs = tuple[float, float] | tuple[None, None]


def decision_risk(
    y_true: Any,
    y_prob: Any = None,
    *,
    threshold: Any = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> DecisionRisk:
    """Mean loss of acting on forecasts from a threshold up.

    R(tau) = mean of tau (1 - y) 1{p >= tau} + (1 - tau) y 1{p < tau}. A threshold of 0.2 says that acting in vain is a
    quarter as bad as missing an event: 0.2 against 0.8. A risk of 0.03 is then worth 3.75 missed events per 100 rows.

    Parameters
    ----------
    y_true : array-like of shape (n,), or Tally
        Outcomes: 0/1, booleans, event probabilities in [0, 1], or two labels with ``pos_label``; or a tally on its own.
    y_prob : array-like of shape (n,)
        Forecast probabilities.
    threshold : float in [0, 1], or array of them
        The forecast from which to act, which is also the weight of false positives in the loss.
    cost_false_positive, cost_false_negative : float, optional
        Costs of acting in vain and of a missed event, in place of ``threshold``, which is then the share of the first
        in their sum; the result also speaks in these units.
    sample_weight : array-like of shape (n,), optional
        Nonnegative weights.
    pos_label : label, optional
        The label in ``y_true`` that counts as the event.

    Returns
    -------
    DecisionRisk
        With floats for one threshold, arrays for several; ``frame()`` gives a table.

    References
    ----------
    Section 3 of [1]_.

    Examples
    --------
    >>> print(decision_risk([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], threshold=0.5))
    At threshold 0.5, acting from there up (on 50.0% of all rows) loses 0.25000 per row on average: 0.12500 from
    acting in vain and 0.12500 from events missed.
    >>> result = decision_risk([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], cost_false_positive=1, cost_false_negative=3)
    >>> result.threshold, result.risk, result.cost
    (0.25, 0.0625, 0.25)
    """
    at, costs = _threshold_or_costs(threshold, cost_false_positive, cost_false_negative)
    table = _split_at(np.atleast_1d(at), y_true, y_prob, sample_weight, pos_label)
    return _risk_of_totals(table, at, costs=costs)


def risk_gap(
    y_true: Any,
    y_prob: Any = None,
    *,
    threshold: float | None = None,
    wrapper: str = "nondecreasing",
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
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
    at, (vain_cost, missed_cost) = _one_threshold(threshold, cost_false_positive, cost_false_negative)
    check_choice(wrapper, "wrapper", tuple(WRAPPERS))
    tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    # A fraction may be an exact event probability, for which nothing is overfitted; 0 and 1 hardly can.
    notes = _overfitting(tally) if wrapper == "any" and tally.binary_outcomes else ()
    gap, rule = _best_rule(tally, at, wrapper, strict=False)
    risk = float(_risk_of_totals(tally, at).risk)
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


def risk_gap_curve(
    y_true: Any,
    y_prob: Any = None,
    *,
    wrapper: str = "nondecreasing",
    sample_weight: Any = None,
    pos_label: Any = None,
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
    murphy = _murphy_curve(tally, bends)
    best_risk = np.interp(murphy.threshold, bends, lowest)
    gap, gap_at, gap_attained = _largest(murphy, best_risk)
    regret, regret_at, regret_attained = _largest(murphy, murphy.constant_risk)
    return RiskGapCurve(
        **vars(murphy),
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


def murphy_curve(y_true: Any, y_prob: Any = None, *, sample_weight: Any = None, pos_label: Any = None) -> MurphyCurve:
    """Mean loss at every decision threshold: the curve that every proper score is an average of.

    `decision_risk` as a function of the threshold, at all its knots. When one forecaster's curve lies below another's
    at every threshold, it has the better Brier score, log loss and every other proper score. The parameters are those
    of `decision_risk`.

    Returns
    -------
    MurphyCurve
        Knots with the value and the limit just above; ``risk_at(threshold)`` reads it anywhere.

    References
    ----------
    Ehm, Gneiting, Jordan, Krueger (2016), Of quantiles and expectiles; appendix B.3 of [1]_.

    Examples
    --------
    >>> curve = murphy_curve([0, 0, 1, 1], [0.2, 0.3, 0.4, 0.9])
    >>> curve.risk_at([0.25, 0.5])
    array([0.0625, 0.125 ])
    """
    tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    return _murphy_curve(tally, np.array([0.0, 1.0]))


def decision_guarantee(
    certificate: Certificate | ConfidenceInterval,
    threshold: float | None = None,
    *,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
) -> DecisionGuarantee:
    """Turn an upper limit for the calibration error into a promise about decisions.

    With Cutoff <= u, whatever the threshold: no non-decreasing recalibration lowers the expected loss by more than u,
    no monotone one by more than 2u. With ECE <= u no recalibration at all lowers it by more than u. At a given
    threshold tau nothing can save more than max(tau, 1 - tau) either.

    Parameters
    ----------
    certificate : Certificate or ConfidenceInterval
        For the Cutoff calibration error or the ECE, with an upper limit; whatever its verdict, the limit holds.
    threshold : float in [0, 1], optional
        One threshold; without it (or costs) the guarantee is for all thresholds at once.
    cost_false_positive, cost_false_negative : float, optional
        Costs in place of ``threshold``, as in `decision_risk`; the guarantee then also speaks in these units.

    Returns
    -------
    DecisionGuarantee
        Prints as sentences that name the confidence, whom it speaks of and what it assumes.

    References
    ----------
    Propositions 3.1 and 3.2 of [1]_; the factor 1 for non-decreasing recalibration is this project's.

    Examples
    --------
    >>> from calibrant import ConfidenceInterval
    >>> limit = ConfidenceInterval(
    ...     measure="cutoff", estimate=0.012, lower=0.0, upper=0.031, confidence_level=0.95, alternative="less",
    ...     method="adaptive", n=5000, n_eff=5000.0, target="population", finite_sample=True,
    ...     assumptions=("rows are independent draws from one population",),
    ... )
    >>> guarantee = decision_guarantee(limit, threshold=0.2)
    >>> guarantee.nondecreasing, guarantee.monotone
    (0.031, 0.062)
    """
    if not isinstance(certificate, (Certificate, ConfidenceInterval)):
        raise ValueError(
            f"certificate must be a Certificate or ConfidenceInterval, got {type(certificate).__name__}; a number "
            "measured on some rows guarantees nothing about others"
        )
    if certificate.measure == "bounded_variation":
        raise ValueError(
            "certificate.measure is 'bounded_variation', which bounds decisions by a factor that depends on the "
            "variation, and a certificate does not record that; certify 'cutoff'"
        )
    if certificate.measure not in ("cutoff", "ece"):
        raise ValueError(
            f"certificate.measure is {certificate.measure!r}, which does not bound what decisions lose (forecasts at "
            "any small distance from calibration can cost 3/8, Example 3.1 of the paper); certify 'cutoff'"
        )
    if isinstance(certificate, ConfidenceInterval) and certificate.alternative == "greater":
        raise ValueError(
            "certificate has a lower limit only (alternative is 'greater'), and a guarantee needs an upper one: ask "
            "for alternative 'less' or 'two-sided'"
        )
    at: float | None = None
    costs: Costs = (None, None)
    if not (threshold is None and cost_false_positive is None and cost_false_negative is None):
        at, costs = _one_threshold(threshold, cost_false_positive, cost_false_negative)
    most = 1.0 if at is None else max(at, 1.0 - at)
    upper = min(certificate.upper, most)
    general = certificate.measure == "ece"
    return DecisionGuarantee(
        measure=certificate.measure,
        upper=certificate.upper,
        threshold=at,
        nondecreasing=upper,
        monotone=upper if general else min(2.0 * certificate.upper, most),
        any=upper if general else None,
        confidence_level=certificate.confidence_level,
        method=certificate.method,
        target=certificate.target,
        finite_sample=certificate.finite_sample,
        assumptions=certificate.assumptions,
        cost_false_positive=costs[0],
        cost_false_negative=costs[1],
        notes=certificate.notes,
    )


def sign_testing_risk(
    y_true: Any, y_prob: Any = None, *, threshold: Any, sample_weight: Any = None, pos_label: Any = None
) -> DecisionRisk:
    """Mean distance to a threshold of the outcomes that fell on its other side than forecast.

    R(y*) = mean of (y - y*) 1{p <= y*, y > y*} + (y* - y) 1{p > y*, y <= y*}: whoever guesses on which side of y* an
    outcome in [0, 1] falls pays its distance when wrong. To act is to guess "above". Note the strict
    inequality: it acts when p > y*, where `decision_risk` acts when p >= tau.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `decision_risk`. A tally is enough for 0/1 outcomes only: for others it no longer holds their distances.
    threshold : float in [0, 1], or array of them
        The value y* that outcomes are compared with.

    Returns
    -------
    DecisionRisk
        With ``loss="sign testing"``; false positives are outcomes of at most y* that were forecast above it.

    References
    ----------
    Appendix B.4 of [1]_.

    Examples
    --------
    >>> round(sign_testing_risk([0.1, 0.7, 0.4], [0.2, 0.4, 0.9], threshold=0.5).risk, 12)
    0.1
    """
    at = check_thresholds(threshold)
    if isinstance(y_true, Totals):
        tally = given_tally(y_true, y_prob, sample_weight, pos_label)
        if not tally.binary_outcomes:
            raise ValueError(
                "y_true is a Tally of fractional outcomes, which holds their sums and no longer how far each lies from "
                "the threshold; pass the arrays, or use sign_testing_gap, which a Tally is enough for"
            )
        return _risk_of_totals(tally, at, strict=True)
    observations = check_observations(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    return _sign_testing_of_rows(observations, at)


def sign_testing_gap(
    y_true: Any,
    y_prob: Any = None,
    *,
    threshold: float,
    wrapper: str = "nondecreasing",
    sample_weight: Any = None,
    pos_label: Any = None,
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
    at = _one_number(check_thresholds(threshold))
    check_choice(wrapper, "wrapper", tuple(WRAPPERS))
    risk: float | None = None
    if isinstance(y_true, Totals):
        tally = given_tally(y_true, y_prob, sample_weight, pos_label)
        if tally.binary_outcomes:
            risk = float(_risk_of_totals(tally, at, strict=True).risk)
    else:
        observations = check_observations(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
        tally = Tally.from_observations(observations)
        risk = float(_sign_testing_of_rows(observations, at).risk)
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
        notes=notes,
    )


def score_decomposition(
    y_true: Any,
    y_prob: Any = None,
    *,
    score: str | SchervishMeasure = "brier",
    sample_weight: Any = None,
    pos_label: Any = None,
) -> ScoreDecomposition:
    """Split a mean proper score into miscalibration, discrimination and uncertainty.

    With c the isotonic regression of the outcomes on the forecasts and m the mean outcome, and S the mean score:
    miscalibration = S(p) - S(c), discrimination = S(m) - S(c), uncertainty = S(m), so that
    S(p) = miscalibration - discrimination + uncertainty. Miscalibration is what the best non-decreasing recalibration
    would save on these rows; it is the integral of `risk_gap_curve` over the thresholds, weighted by the score's
    Schervish measure, and so at most that measure's total mass times the Cutoff calibration error: for the Brier and
    the spherical score, 2 Cutoff. The log loss weighs thresholds near 0 and 1 without limit, and has no such bound.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `decision_risk`. For outcomes between 0 and 1 the score is the expected one of an event with that
        probability (for Brier, the mean of (y - p)^2 + y (1 - y)).
    score : {"brier", "log", "spherical"} or SchervishMeasure
        (y - p)^2; -log of the chance given to what happened; 1 minus that chance over sqrt(p^2 + (1 - p)^2); or your
        own.

    Returns
    -------
    ScoreDecomposition
        With the skill against the base rate, and the bounds where they exist. A forecast of exactly 0 or 1 that turned
        out wrong has an infinite log loss; then the score and the miscalibration are infinite, and a note says so.

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), Stable reliability diagrams for probabilistic classifiers (CORP); Proposition
    B.1 of [1]_, whose factor 2 is 1 for non-decreasing recalibration (this project).

    Examples
    --------
    >>> print(score_decomposition([0, 0, 1, 1] * 10, [0.2, 0.3, 0.4, 0.9] * 10))
    Brier score 0.12500 = miscalibration 0.12500 - discrimination 0.25000 + uncertainty 0.25000; skill against the base
    rate 50.0%
    saving of non-decreasing recalibration <= mass 2 x Cutoff: 0.125 <= 0.35 holds (this project)
    saving of monotone recalibration <= 2 x mass 2 x Cutoff: 0.125 <= 0.7 holds (Rossellini et al. 2025, Prop. B.1)
    saving of any recalibration <= mass 2 x ECE: 0.125 <= 0.6 holds (Rossellini et al. 2025, Prop. B.1)
    """
    rule = score if isinstance(score, SchervishMeasure) else SCORES.get(score) if isinstance(score, str) else None
    if rule is None:
        known = ", ".join(repr(name) for name in SCORES)
        raise ValueError(f"score must be one of {known}, or a SchervishMeasure, got {score!r}")
    tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    value, contradicted = _mean_score(rule, tally, tally.forecast)
    recalibrated, _ = _mean_score(rule, tally, isotonic_curve(tally))
    mean_outcome = tally.outcome_total / tally.weight_total
    uncertainty, _ = _mean_score(rule, tally, np.full(len(tally), mean_outcome))
    miscalibration = max(value - recalibrated, 0.0)
    notes = []
    bounds: tuple[Relation, ...] = ()
    if np.isfinite(rule.mass):
        bounds = _score_bounds(rule, tally, value, recalibrated)
        noise = _noise(tally) if tally.binary_outcomes else None
        if noise is not None:
            notes.append(
                f"the saving of any recalibration compares each distinct forecast with {noise}, and says nothing about "
                "new rows"
            )
    else:
        notes.append(
            f"no calibration error bounds the miscalibration of the {rule.name} score: its weight on thresholds near 0 "
            "or 1 has no limit"
        )
    if contradicted > 0.0:
        notes.append(
            "outcomes contradicted forecasts of exactly 0 or 1, at infinite cost, so score and miscalibration are "
            "infinite; the other parts are not affected"
        )
    return ScoreDecomposition(
        name=rule.name,
        score=value,
        miscalibration=miscalibration,
        discrimination=max(uncertainty - recalibrated, 0.0),
        uncertainty=uncertainty,
        skill=1.0 - value / uncertainty if uncertainty > 0.0 else None,
        mass=rule.mass,
        bounds=bounds,
        contradicted=contradicted,
        notes=tuple(notes),
    )


def net_benefit(
    y_true: Any, y_prob: Any = None, *, threshold: Any = None, sample_weight: Any = None, pos_label: Any = None
) -> NetBenefit:
    """Net benefit over thresholds, with treating all and treating none: decision curve analysis.

    NB(tau) = share of true positives - share of false positives x tau/(1 - tau), in true positives per row. It is
    another way to write `decision_risk`: R(tau) = (1 - tau) (mean outcome - NB(tau)).

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `decision_risk`.
    threshold : float in [0, 1), or array of them, optional
        By default 0.01, 0.02, ..., 0.99.

    Returns
    -------
    NetBenefit
        With floats for one threshold, arrays for several; ``frame()`` gives the table to plot.

    References
    ----------
    Vickers, Elkin (2006), Decision curve analysis.

    Examples
    --------
    >>> print(net_benefit([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], threshold=0.2))
    At threshold 0.2 the net benefit is 0.43750 per row; that of treating all, the better of the two without forecasts,
    is 0.37500.
    """
    at = check_thresholds(np.arange(1, 100) / 100.0 if threshold is None else threshold)
    thresholds = np.atleast_1d(at)
    if thresholds.max() == 1.0:
        raise ValueError(
            "threshold is 1, where one false positive outweighs any number of true ones and net benefit is undefined; "
            "keep it below 1, or use decision_risk"
        )
    table = _split_at(thresholds, y_true, y_prob, sample_weight, pos_label)
    _, vain, acted = _sides(table, np.searchsorted(table.low, thresholds))
    odds = thresholds / (1.0 - thresholds)
    weight, mean_outcome = table.weight_total, table.outcome_total / table.weight_total
    return NetBenefit(
        threshold=at,
        net_benefit=_as_given((acted - vain) / weight - odds * vain / weight, at),
        treat_all=_as_given(mean_outcome - odds * (1.0 - mean_outcome), at),
        treat_none=_as_given(np.zeros(thresholds.size), at),
        mean_outcome=mean_outcome,
    )


def best_threshold(
    y_true: Any,
    y_prob: Any = None,
    *,
    threshold: float | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
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
    at, (vain_cost, missed_cost) = _one_threshold(threshold, cost_false_positive, cost_false_negative)
    tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    gap, rule = _best_rule(tally, at, "nondecreasing", strict=False)
    risk = float(_risk_of_totals(tally, at).risk)
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


def _threshold_or_costs(threshold: Any, vain: Any, missed: Any) -> tuple[float | FloatArray, Costs]:
    """Return the thresholds, and the costs if they were given in place of one."""
    if vain is None and missed is None:
        if threshold is None:
            raise ValueError(
                "threshold is missing: pass threshold=, or cost_false_positive= and cost_false_negative= in its place"
            )
        return check_thresholds(threshold), (None, None)
    if threshold is not None:
        raise ValueError(
            "threshold was given together with costs, which say the same: pass either the threshold or the two costs"
        )
    costs = check_costs(vain, missed)
    return costs[0] / (costs[0] + costs[1]), costs


def _one_threshold(threshold: Any, vain: Any, missed: Any) -> tuple[float, Costs]:
    at, costs = _threshold_or_costs(threshold, vain, missed)
    return _one_number(at), costs


def _one_number(threshold: float | FloatArray) -> float:
    if isinstance(threshold, float):
        return threshold
    raise ValueError(
        f"threshold has {threshold.size:,} values where one is needed: call it once for each; what recalibration could "
        "save at every threshold at once, risk_gap_curve tells"
    )


def _as_given(values: FloatArray, like: float | FloatArray) -> float | FloatArray:
    return float(values[0]) if isinstance(like, float) else values


def _split_at(thresholds: FloatArray, y_true: Any, y_prob: Any, sample_weight: Any, pos_label: Any) -> Totals:
    """Return ordered entries each of which lies wholly below, or wholly from, every threshold up."""
    ordered = np.sort(thresholds)

    def torn(table: Totals) -> IntArray:
        passed = (np.searchsorted(ordered, end, side="right") for end in (table.low, table.high))
        return np.flatnonzero(np.not_equal(*passed))

    source = as_source(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    return refine(source, torn, COARSE_GRID)


def _sides(table: Totals, below: IntArray | slice) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return, for numbers of entries not acted on: events among these; non-events, and all weight, among the others."""
    events = prefix_sums(table.outcome)
    nonevents = prefix_sums((table.weight - table.outcome)[::-1])[::-1]
    weight = prefix_sums(table.weight[::-1])[::-1]
    return events[below], nonevents[below], weight[below]


def _best_rule(tally: Tally, at: float, wrapper: str, *, strict: bool) -> tuple[float, DecisionRule]:
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
    tally: Tally, gap: float, wrapper: str, *, name: str = "gap", propositions: tuple[str, str] = ("3.1", "3.2")
) -> Relation:
    """Return what theory says about a gap, with both sides, and the paper's propositions for any and for monotone."""
    if wrapper == "any":
        bound, statement, source = plug_in_error(tally), "ECE", f"{_PAPER}, Prop. {propositions[0]}"
    else:
        bound, statement, source = cutoff_calibration_error(tally), "Cutoff", _PROJECT
        if wrapper == "monotone":
            bound, statement, source = 2.0 * bound, "2 Cutoff", f"{_PAPER}, Prop. {propositions[1]}"
    return Relation(f"{name} <= {statement}", gap, bound, gap <= bound + TOLERANCE, source)


def _noise(tally: Tally) -> str | None:
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
    noise = _noise(tally)
    if noise is None:
        return ()
    note = (
        f"wrapper='any' acts on each distinct forecast by {noise}, and the gap says nothing about new rows. Use "
        "wrapper='nondecreasing' or 'monotone'; ignore this if y_true holds exact expectations."
    )
    warnings.warn(note, CalibrationWarning, stacklevel=3)
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


def _murphy_curve(tally: Tally, bends: FloatArray) -> MurphyCurve:
    """Return the risk at, and just above, all forecasts, the given bends, and the bend of the best constant action.

    Just above a forecast its rows are no longer acted on, which adds their residuals to the risk.
    """
    forecast, total = tally.forecast, tally.weight_total
    mean_outcome = tally.outcome_total / total
    extra = np.insert(bends, np.searchsorted(bends, mean_outcome), mean_outcome)
    extra = extra[group_starts(extra)]
    below = np.searchsorted(forecast, extra)
    new = forecast[np.minimum(below, forecast.size - 1)] != extra
    extra, below = extra[new], below[new]
    missed, vain, _ = _sides(tally, slice(None))
    at_forecast = (forecast * vain[:-1] + (1.0 - forecast) * missed[:-1]) / total
    at_extra = (extra * vain[below] + (1.0 - extra) * missed[below]) / total
    place = below + np.arange(extra.size)
    known: BoolArray = np.ones(forecast.size + extra.size, dtype=bool)
    known[place] = False

    def merged(forecasts: FloatArray, extras: FloatArray) -> FloatArray:
        values = np.empty(known.size)
        values[known], values[place] = forecasts, extras
        return values

    return MurphyCurve(
        threshold=merged(forecast, extra),
        risk=merged(at_forecast, at_extra),
        risk_right=merged(at_forecast + tally.residual / total, at_extra),
        mean_outcome=mean_outcome,
    )


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


def _risk_of_totals(
    table: Totals, at: float | FloatArray, *, strict: bool = False, costs: Costs = (None, None)
) -> DecisionRisk:
    """Return the risk of acting from thresholds up or, if strict, above them; for sign testing of 0/1 outcomes too."""
    thresholds = np.atleast_1d(at)
    below = np.searchsorted(table.low, thresholds, side="right" if strict else "left")
    missed, vain, acted = _sides(table, below)
    return _risk_result(
        "sign testing" if strict else "decision",
        at,
        np.stack([thresholds * vain, (1.0 - thresholds) * missed, acted]) / table.weight_total,
        mean_outcome=table.outcome_total / table.weight_total,
        unit_weights=table.unit_weights,
        costs=costs,
    )


def _sign_testing_of_rows(rows: Observations, at: float | FloatArray) -> DecisionRisk:
    outcome = rows.y_true.astype(np.float64, copy=False)
    weight = np.ones(outcome.size) if rows.sample_weight is None else rows.sample_weight
    parts = []
    for threshold in np.atleast_1d(at):
        acted = np.where(rows.y_prob > threshold, weight, 0.0)
        above = outcome - threshold
        parts.append((acted @ np.maximum(-above, 0.0), (weight - acted) @ np.maximum(above, 0.0), acted.sum()))
    return _risk_result(
        "sign testing",
        at,
        np.array(parts).T / weight.sum(),
        mean_outcome=float(weight @ outcome / weight.sum()),
        unit_weights=rows.sample_weight is None or bool((weight == 1.0).all()),
    )


def _risk_result(
    loss: str,
    at: float | FloatArray,
    parts: FloatArray,
    *,
    mean_outcome: float,
    unit_weights: bool,
    costs: Costs = (None, None),
) -> DecisionRisk:
    """Return losses from acting in vain, losses from events missed and shares acted on, with one column a threshold."""
    vain, missed, acted = parts
    return DecisionRisk(
        loss=loss,
        threshold=at,
        risk=_as_given(vain + missed, at),
        false_positive=_as_given(vain, at),
        false_negative=_as_given(missed, at),
        acted=_as_given(acted, at),
        mean_outcome=mean_outcome,
        unit_weights=unit_weights,
        cost_false_positive=costs[0],
        cost_false_negative=costs[1],
    )


def _mean_score(rule: ProperScore | SchervishMeasure, tally: Tally, forecast: FloatArray) -> tuple[float, float]:
    """Return the mean score of forecasts in place of a tally's own, and the share of the weight that costs infinity."""
    total = contradicted = 0.0
    for weight, loss in (
        (tally.outcome, rule.event_loss(forecast)),
        (tally.weight - tally.outcome, rule.nonevent_loss(forecast)),
    ):
        counts = weight > 0.0
        finite = np.isfinite(loss)
        total += float(weight[counts & finite] @ loss[counts & finite])
        contradicted += float(weight[counts & ~finite].sum())
    mean = np.inf if contradicted else total / tally.weight_total
    return float(mean), contradicted / tally.weight_total


def _score_bounds(
    rule: ProperScore | SchervishMeasure, tally: Tally, value: float, recalibrated: float
) -> tuple[Relation, ...]:
    """Return what the Cutoff error and the ECE say about the saving of three kinds of recalibration, checked."""
    turned, _ = _mean_score(rule, tally, isotonic_curve(tally, increasing=False))
    single, _ = _mean_score(rule, tally, tally.mean_outcome)
    cutoff, mass = cutoff_calibration_error(tally), rule.mass
    shown, source = f"mass {mass:.4g}", f"{_PAPER}, Prop. B.1"
    facts = [
        (f"non-decreasing recalibration <= {shown} x Cutoff", recalibrated, mass * cutoff, _PROJECT),
        (f"monotone recalibration <= 2 x {shown} x Cutoff", min(recalibrated, turned), 2.0 * mass * cutoff, source),
        (f"any recalibration <= {shown} x ECE", single, mass * plug_in_error(tally), source),
    ]
    slack = TOLERANCE * max(1.0, mass)
    return tuple(
        Relation(f"saving of {statement}", max(value - best, 0.0), bound, value - best <= bound + slack, reference)
        for statement, best, bound, reference in facts
    )
