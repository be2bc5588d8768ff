"""What acting on forecasts loses: the mean loss at a threshold and at all of them.

Somebody acts when p >= tau. The loss of threshold tau is tau for acting without an event and 1 - tau for an event
missed, so that with calibrated forecasts acting from tau up is best. Each function takes
``(y_true, y_prob, *, sample_weight=None, pos_label=None)`` or a `Tally` alone; outcomes may be event probabilities in
[0, 1], for which losses are expected losses.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, BoolArray, ClassLabel, FloatArray, IntArray
from calibrant.decisions.results import DecisionRisk, MurphyCurve
from calibrant.decisions.stretches import split_at
from calibrant.rows.checks import Observations
from calibrant.rows.costs import Costs, threshold_or_costs
from calibrant.rows.given import given_tally
from calibrant.rows.intake import RowsLike, as_observations, as_source, as_tally
from calibrant.rows.runs import group_starts, prefix_sums
from calibrant.rows.tally import Tally, Totals


@frames_follow
def decision_risk(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    threshold: ArrayLike | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> DecisionRisk:
    """Mean loss of acting on forecasts from a threshold up.

    R(tau) = mean of tau (1 - y) 1{p >= tau} + (1 - tau) y 1{p < tau}. A threshold of 0.2 says that a false alarm is a
    quarter as bad as missing an event: 0.2 against 0.8. A risk of 0.03 is then worth 3.75 missed events per 100 rows.

    Parameters
    ----------
    y_true : array-like of shape (n,), or Tally, or Scan
        Outcomes: 0/1, booleans, event probabilities in [0, 1], or labels with ``pos_label``;
        or, on its own, a tally or a `scan` of a file, table or cluster.
    y_prob : array-like of shape (n,)
        Forecast probabilities.
    threshold : float in [0, 1], or array of them
        The forecast from which to act, which is also the weight of false positives in the loss.
    cost_false_positive, cost_false_negative : float, optional
        Costs of a false alarm and of a missed event, in place of ``threshold``, which is then the share of the first
        in their sum; the result also speaks in these units.
    sample_weight : array-like of shape (n,), optional
        Nonnegative weights.
    pos_label : label, optional
        The label in ``y_true`` that counts as the event, against all others.

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
    false alarms and 0.12500 from missed events.
    >>> result = decision_risk([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], cost_false_positive=1, cost_false_negative=3)
    >>> result.threshold, result.risk, result.cost
    (0.25, 0.0625, 0.25)
    """
    at, costs = threshold_or_costs(threshold, cost_false_positive, cost_false_negative)
    table = _split_at(np.atleast_1d(at), y_true, y_prob, sample_weight, pos_label)
    return risk_of_totals(table, at, costs=costs)


@frames_follow
def murphy_curve(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> MurphyCurve:
    """Mean loss at every decision threshold: the curve that every proper score is an average of.

    `decision_risk` as a function of the threshold, at all its knots. When one forecaster's curve lies below another's
    at every threshold, it has the better Brier score, log loss and every other proper score.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `decision_risk`.

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
    return curve_through(tally, np.array([0.0, 1.0]))


@frames_follow
def sign_testing_risk(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    threshold: ArrayLike | None = None,
    cost_false_positive: float | None = None,
    cost_false_negative: float | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
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
    cost_false_positive, cost_false_negative : float, optional
        Costs in place of ``threshold``: what a wrong guess costs at y = 0 and at y = 1. The distance to y* then costs
        their sum.

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
    at, costs = threshold_or_costs(threshold, cost_false_positive, cost_false_negative)
    if isinstance(y_true, Totals):
        tally = given_tally(y_true, y_prob, sample_weight, pos_label)
        if not tally.binary_outcomes:
            raise InputError(
                "is a Tally of fractional outcomes, which holds their sums and no longer how far each lies from the "
                "threshold",
                argument="y_true",
                remedy="pass the arrays, or use sign_testing_gap, which a Tally is enough for",
            )
        return _with_costs(risk_of_totals(tally, at, strict=True), costs)
    observations = as_observations(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    return _with_costs(sign_testing_of_rows(observations, at), costs)


def _with_costs(found: DecisionRisk, costs: Costs) -> DecisionRisk:
    return replace(found, cost_false_positive=costs[0], cost_false_negative=costs[1])


def _as_given(values: FloatArray, like: float | FloatArray) -> float | FloatArray:
    return float(values[0]) if isinstance(like, float) else values


def _split_at(
    thresholds: FloatArray,
    y_true: RowsLike,
    y_prob: ArrayLike | None,
    sample_weight: ArrayLike | None,
    pos_label: ClassLabel | None,
) -> Totals:
    """Return ordered entries each of which lies wholly below, or wholly from, every threshold up."""
    return split_at(as_source(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label), thresholds)


def _sides(table: Totals, below: IntArray | slice) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return, for numbers of entries not acted on: events among these; non-events, and all weight, among the others."""
    events = prefix_sums(table.outcome)
    nonevents = prefix_sums((table.weight - table.outcome)[::-1])[::-1]
    weight = prefix_sums(table.weight[::-1])[::-1]
    return events[below], nonevents[below], weight[below]


def curve_through(tally: Tally, bends: FloatArray) -> MurphyCurve:
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


def risk_of_totals(
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


def sign_testing_of_rows(rows: Observations, at: float | FloatArray) -> DecisionRisk:
    """Return the sign-testing risk of outcomes in [0, 1], which totals do not tell."""
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
    """Return losses from false alarms, losses from missed events and shares acted on, with one column a threshold."""
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
