"""Calibration measures: one family, weighted calibration error, and the witnesses that attain them.

With r = y - p the residual of a row, a weighted calibration error is the largest mean of w(p) r over a class of weight
functions w with values in [-1, 1]; the classes differ, the rest is the same. Each function takes
``(y_true, y_prob, *, sample_weight=None, pos_label=None)`` or a `Tally` alone.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np

from calibrant.core.curve_kernels import smooth_cost, smooth_fit, smooth_weights, swing_events
from calibrant.core.errors import InputError
from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, IntArray
from calibrant.measures.questions import QuestionWorstIntervals
from calibrant.measures.results import Spectrum, Witness, WorstInterval
from calibrant.rows.asked import asked_of_classes
from calibrant.rows.checks import (
    Observations,
    check_number,
)
from calibrant.rows.classes import FamilyAsked, QuestionsAsked, SingleAsked
from calibrant.rows.intake import RowsLike, as_source, as_tally, source_of
from calibrant.rows.questions import CUTOFF_OF_ROWS, Questions
from calibrant.rows.refinement import TOLERANCE, curve_slack, some_table, split_at_extremes
from calibrant.rows.tally import Tally, Totals

_USUAL_RANGE = 2.4977
"""What the range of Brownian motion stays below in 95% of cases."""

_RARE = 0.05
"""Events that calibrated forecasts expect, from which on one is seen in more than 5% of cases."""

_WIDE_BLOCK, _NARROW_BLOCK = 512, 32  # points of a curve that are looked at together
_FEWEST_BLOCKS = 64


def cutoff_calibration_error(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    classes: ArrayLike | None = None,
    questions: QuestionsAsked | None = None,
    multilabel: bool = False,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> float:
    """Largest residual mass on any interval of forecasts: the Cutoff calibration error.

    max over intervals I of |mean of (y - p) 1{p in I}|, which is the range, largest minus smallest, of the residual
    curve S_k = sum of (y - p) over the k smallest distinct forecasts, divided by the number of rows, S_0 = 0 included.

    A value of 0.02 means: whatever interval of forecasts somebody acts on, the number of events there differs from the
    number forecast by at most 2 per 100 rows of the whole data set. It can be estimated from data, and it bounds what a
    better threshold could save (Propositions 4.1 and 3.2 of [1]_).

    Parameters
    ----------
    y_true : array-like of shape (n,), or Tally, or Scan
        Outcomes: 0/1, booleans, fractions in [0, 1], or labels with ``pos_label``;
        or, on its own, a tally or a `scan` of a file, table or cluster.
    y_prob : array-like of shape (n,), or (n, K) for several classes
        Forecast probabilities.
    classes : array-like of shape (K,), optional
        The label of each column of ``y_prob``; by default a frame's column names, or the sorted labels of ``y_true``.
    questions : {"confidence", "classwise", "top_label", "pairs", "subsets"}, optional
        What is asked of several classes (docs/how-to/classes.md): by default the confidence in the top label, and of
        two classes the forecast of the second, so that ``y_prob`` and ``y_prob[:, 1]`` give the same answer.
    multilabel : bool
        Whether a row may have several labels or none: ``y_true`` is then of shape (n, K) too.
    sample_weight : array-like of shape (n,), optional
        Nonnegative weights.
    pos_label : label, optional
        The label in ``y_true`` that counts as the event, against all others.

    Returns
    -------
    float
        Between 0 (calibrated on every interval) and 1; the largest one where several questions are asked.

    See Also
    --------
    worst_interval : the interval itself, in words.

    References
    ----------
    Definition 2.1 of [1]_.

    Examples
    --------
    >>> cutoff_calibration_error([0, 0, 0, 0, 0], [0.5, 0.6, 0.7, 0.8, 0.9])
    0.7
    """
    family = asked_of_classes(y_true, y_prob, classes, questions, multilabel, sample_weight, pos_label)
    if family is not None:
        return max(map(cutoff_calibration_error, family))
    table = split_at_extremes(as_source(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label))
    return _range(table.residual_prefix()) / table.weight_total


def ks_calibration_error(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> float:
    """Largest residual mass below any cutoff: the Kolmogorov-Smirnov calibration error (ECCE-MAD).

    max over t of |mean of (y - p) 1{p <= t}|. It lies between half the Cutoff calibration error and the whole.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `cutoff_calibration_error`.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> ks_calibration_error([1, 1, 0, 0], [0.25, 0.25, 0.75, 0.75])
    0.375
    """
    table = split_at_extremes(as_source(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label))
    return float(np.abs(table.residual_prefix()).max()) / table.weight_total


@overload
def worst_interval(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    classes: ArrayLike | None = None,
    questions: SingleAsked | None = None,
    multilabel: Literal[False] = False,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> WorstInterval: ...


@overload
def worst_interval(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    classes: ArrayLike | None = None,
    questions: FamilyAsked,
    multilabel: bool = False,
    sample_weight: ArrayLike | None = None,
) -> QuestionWorstIntervals: ...


@overload
def worst_interval(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    questions: None = None,
    multilabel: Literal[True],
    sample_weight: ArrayLike | None = None,
) -> QuestionWorstIntervals: ...


@frames_follow
def worst_interval(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    classes: ArrayLike | None = None,
    questions: QuestionsAsked | None = None,
    multilabel: bool = False,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> WorstInterval | QuestionWorstIntervals:
    """Return the interval of forecasts that attains the Cutoff calibration error, as a result that reads as a sentence.

    Among intervals within 1e-12 of the largest error (5e-13 at each end of the curve), the one whose upper end is
    lowest is chosen, and among those the one whose lower end is highest: neither row order nor the engine that did the
    sums changes the answer.

    Parameters
    ----------
    y_true, y_prob, classes, questions, multilabel, sample_weight, pos_label
        As in `cutoff_calibration_error`.

    Returns
    -------
    WorstInterval, or QuestionWorstIntervals
        The interval, its rows, and by how much the forecasts are off there; where several questions are asked, the
        interval of each.

    Examples
    --------
    >>> print(worst_interval([0, 0, 1, 1], [0.1, 0.6, 0.6, 0.7]))
    No interval of forecasts is off by more than chance shows. The largest deviation is on forecasts between 0.1 and
    0.6: on these 3 rows (75.0% of all rows) the mean forecast is 43.3% and the event rate is 33.3%. Spread over all
    rows that is 7.50 per 100 rows (Cutoff error 0.07500), and calibrated forecasts like these stay below 0.55... in
    about 95% of cases.
    """
    family = asked_of_classes(y_true, y_prob, classes, questions, multilabel, sample_weight, pos_label)
    if family is not None:
        return family.answered(_interval_of, _intervals_of, error=CUTOFF_OF_ROWS)
    return find_worst_interval(
        split_at_extremes(as_source(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label))
    )


def _interval_of(rows: Observations) -> WorstInterval:
    return find_worst_interval(split_at_extremes(source_of(rows)))


def _intervals_of(family: Questions) -> QuestionWorstIntervals:
    return QuestionWorstIntervals(family.kind, family.labels, tuple(map(_interval_of, family)), family.notes)


def find_worst_interval(table: Totals, *, with_chance: bool = True) -> WorstInterval:
    """Return the worst interval of entries that `split_at_extremes` made fine enough.

    What chance would do is left out, and 0, for those who compare many intervals and do not ask.
    """
    weight_total = table.weight_total
    begin, end, sign, error = (
        column[0].item() for column in worst_stretches(table.residual_prefix()[None], weight_total)
    )
    weight = float(table.weight[begin:end].sum())
    return WorstInterval(
        low=float(table.low[begin]),
        high=float(table.high[end - 1]),
        direction={1.0: "too low", -1.0: "too high", 0.0: "none"}[sign],
        error=error / weight_total,
        rows=int(table.rows[begin:end].sum()),
        weight=weight,
        share=weight / weight_total,
        mean_forecast=table.forecast_total(begin, end) / weight,
        mean_outcome=float(table.outcome[begin:end].sum()) / weight,
        unit_weights=table.unit_weights,
        chance=_usual_range(table) / weight_total if with_chance else 0.0,
        weights_estimated=table.weights_estimated,
    )


def _usual_range(table: Totals) -> float:
    """Return what the range of the curve stays below in about 95% of cases, if forecasts like these are calibrated.

    The law is one for many events. Where one is expected in every twenty such tables or more, one is no surprise.
    """
    spread = _spread(table)
    usual = _USUAL_RANGE * math.sqrt(spread)
    return max(usual, 1.0) if table.counted and spread > _RARE else usual


def _spread(table: Totals) -> float:
    """Return about the variance of the sum of residuals of calibrated forecasts like these.

    p (1 - p) for forecasts that every source tells apart. r^2 where outcomes are fractions, for which it is less;
    not where they are 0 or 1: without events it is next to nothing, as if none could come. And for rows of unit weight
    p and 1 - p, which are less where forecasts are so near an end that they are not told apart.
    """
    bounds = [table.coarse_spread_total]
    if not table.binary_outcomes:
        bounds.append(float(table.weight_square_residual_square.sum()))
    if table.unit_weights:
        bounds += [table.forecast_total(), table.weight_total - table.forecast_total()]
    return max(min(bounds), 0.0)


def worst_stretches(
    prefix: FloatArray, weight_total: float | FloatArray
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return begin and end of the worst interval of each of several curves, the sign of its residual, and its size.

    A curve is a line of ``prefix``: residual totals of the first 0, 1, ..., m entries. Where it leaves 0 by next to
    nothing the interval is all of it, and the sign 0.
    """
    slack = curve_slack(1.0) * np.reshape(weight_total, -1)
    top, bottom = prefix.max(axis=1), prefix.min(axis=1)
    high_side, low_side = prefix >= (top - slack)[:, None], prefix <= (bottom + slack)[:, None]
    # The interval ends at the first place where both sides have been seen, and starts at the last place before it that
    # was on the other side.
    end = np.maximum(high_side.argmax(axis=1), low_side.argmax(axis=1))
    rises = high_side[np.arange(end.size), end]
    last = prefix.shape[1] - 1
    other = np.where(rises[:, None], low_side, high_side)
    other &= np.arange(last + 1) < end[:, None]
    begin = last - other[:, ::-1].argmax(axis=1)
    error = top - bottom
    sign = np.where(rises, 1.0, -1.0)
    none = error <= 2.0 * slack
    if none.any():
        begin[none], end[none], sign[none] = 0, last, 0.0
    return begin, end, sign, error


def calibration_in_the_large(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> float:
    """Mean outcome minus mean forecast: are the forecasts right on average?

    Positive when events happen more often than forecast. Its size is the weighted calibration error for constant
    weights, the coarsest member of the family; a forecaster can have zero here and be badly calibrated.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `cutoff_calibration_error`.

    Returns
    -------
    float
        Between -1 and 1; below 0 the forecasts are too high on average.

    Examples
    --------
    >>> calibration_in_the_large([0, 1, 1, 1], [0.25, 0.5, 0.75, 1.0])
    0.125
    """
    table = some_table(as_source(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label))
    return table.residual_total / table.weight_total


def smooth_calibration_error(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> float:
    """Largest mean of w(p) (y - p) over 1-Lipschitz weights w: the smooth calibration error, exactly.

    Half of it is a lower bound for the distance from calibration, and the square root of eight times it an upper one.
    It is computed as a weighted L1 isotonic fit of the residual curve, in O(m log m) for m distinct forecasts, with no
    grid and no solver.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `cutoff_calibration_error`.

    Returns
    -------
    float
        Between 0 and 1.

    References
    ----------
    Section 2.1 of [1]_, where it stands in for the distance from calibration; the algorithm is this project's.

    Examples
    --------
    >>> round(smooth_calibration_error([0, 1], [0.75, 0.25]), 12)
    0.1875
    """
    tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    _, curve = _rising_curve(tally)
    return smooth_cost(curve, np.diff(tally.forecast)) / tally.weight_total


@frames_follow
def smooth_witness(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> Witness:
    """Return the 1-Lipschitz weight function that attains the smooth calibration error.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `cutoff_calibration_error`.

    Returns
    -------
    Witness
        The distinct forecasts, the weight at each, and the error that these weights collect.

    Examples
    --------
    >>> smooth_witness([0, 1], [0.75, 0.25]).weight
    array([1. , 0.5])
    """
    tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    sign, curve = _rising_curve(tally)
    gap = np.diff(tally.forecast)
    cost, fit = smooth_fit(curve, gap, True)
    weight = sign * smooth_weights(curve, gap, fit)
    return Witness(forecast=tally.forecast, weight=weight, value=float(cost) / tally.weight_total)


def bounded_variation_calibration_error(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    variation: float = 2.0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> float:
    """Largest mean of w(p) (y - p) over weights w in [-1, 1] of total variation at most M, exactly.

    M = 0 gives the size of the mean bias, M = infinity the ECE plug-in; from M = 2 on it is at least the Cutoff
    calibration error, and it never exceeds (M/2 + 1) times it. Computed in O(m) after sorting.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `cutoff_calibration_error`.
    variation : float, default 2
        The largest total variation M of the weights; ``math.inf`` is allowed.

    Returns
    -------
    float
        Between 0 and 1.

    References
    ----------
    Proposition 2.2 of [1]_ has the factor M + 2; the factor M/2 + 1 and the algorithm are this project's.

    Examples
    --------
    >>> bounded_variation_calibration_error([1, 1, 0, 0], [0.25, 0.25, 0.75, 0.75], variation=2)
    0.75
    """
    limit = check_number(variation, "variation", low=0.0)
    tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    curve = tally.residual_prefix()
    price, right = _dear_swings(curve, math.ceil(min(limit / 2.0, curve.size)) + 1)
    order = _dearest_first(price)
    knots, errors = _envelope(price[order], right[order], start=abs(curve[-1]))
    return float(np.interp(limit, knots, errors)) / tally.weight_total


@frames_follow
def bounded_variation_witness(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    variation: float = 2.0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> Witness:
    """Return the weight function of total variation at most M that attains the bounded-variation calibration error.

    At a knot of the spectrum it takes the values -1 and 1 only; between two knots it is a mixture of two such
    functions.

    Parameters
    ----------
    y_true, y_prob, variation, sample_weight, pos_label
        As in `bounded_variation_calibration_error`.

    Returns
    -------
    Witness
        The distinct forecasts, the weight at each, and the error that these weights collect.

    Examples
    --------
    >>> bounded_variation_witness([1, 1, 0, 0], [0.25, 0.25, 0.75, 0.75], variation=2).weight
    array([ 1., -1.])
    """
    limit = check_number(variation, "variation", low=0.0)
    tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    curve = tally.residual_prefix()
    price, left, right = swing_events(curve)
    order = _dearest_first(price)
    price, left, right = price[order], left[order], right[order]
    knots, errors = _envelope(price, right, start=abs(curve[-1]))
    kept = int(np.searchsorted(knots, limit, side="right")) - 1
    weight = _alternating(tally, left[:kept], right[:kept])
    if kept < order.size and limit > knots[kept]:
        share = (limit - knots[kept]) / (knots[kept + 1] - knots[kept])
        weight = (1.0 - share) * weight + share * _alternating(tally, left[: kept + 1], right[: kept + 1])
    value = float(np.interp(limit, knots, errors)) / tally.weight_total
    return Witness(forecast=tally.forecast, weight=weight, value=value)


@frames_follow
def bounded_variation_spectrum(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> Spectrum:
    """Return the error against the total variation M of the weights, from mean bias (M = 0) to the ECE plug-in.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `cutoff_calibration_error`.

    Returns
    -------
    Spectrum
        The error at the variations between which it is a straight line; ``at(variation)`` reads it anywhere.

    Examples
    --------
    >>> spectrum = bounded_variation_spectrum([1, 1, 0, 0], [0.25, 0.25, 0.75, 0.75])
    >>> spectrum.variation, spectrum.error
    (array([0., 2.]), array([0.  , 0.75]))
    """
    tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    curve = tally.residual_prefix()
    price, _, right = swing_events(curve)
    order = _dearest_first(price)
    price, right = price[order], right[order]
    knots, errors = _envelope(price, right, start=abs(curve[-1]))
    corner = np.ones(knots.size, dtype=bool)
    corner[1:-1] = np.diff(price) != 0.0  # equal prices lie on one line
    return Spectrum(variation=knots[corner], error=errors[corner] / tally.weight_total)


def weighted_calibration_error(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    weight: Callable[[FloatArray], Any],
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> float:
    """Mean of w(p) (y - p) for your own weight function w with values in [-1, 1].

    Positive when, where w is positive, events happen more often than forecast. The Cutoff, KS, smooth and
    bounded-variation errors and the ECE are the largest value of this one over a class of weights.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `cutoff_calibration_error`.
    weight : callable
        Takes the array of distinct forecasts and returns one value in [-1, 1] for each (or one for all).

    Returns
    -------
    float
        Between -1 and 1.

    References
    ----------
    Definition 2.2 of [1]_.

    Examples
    --------
    >>> weighted_calibration_error([1, 1, 0, 0], [0.25, 0.25, 0.75, 0.75], weight=lambda p: p < 0.5)
    0.375
    """
    if not callable(weight):
        raise InputError(
            f"must be a function of the forecasts, got {weight!r}",
            argument="weight",
            value=weight,
            remedy="per-row weights: sample_weight",
        )
    tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    returned = np.asarray(weight(tally.forecast))
    if returned.dtype.kind not in "biuf":
        raise InputError(
            f"returned dtype {returned.dtype}, not real numbers",
            argument="weight",
            remedy="it must return values in [-1, 1]",
        )
    values = returned.astype(np.float64)
    if values.shape not in ((), tally.forecast.shape):
        raise InputError(
            f"returned an array of shape {values.shape} for forecasts of shape {tally.forecast.shape}",
            argument="weight",
            remedy="it must return one value per forecast",
        )
    values = np.broadcast_to(values, tally.forecast.shape)
    bad = np.flatnonzero(~(np.abs(values) <= 1.0 + TOLERANCE))
    if bad.size:
        position = int(bad[0])
        bounded = np.isfinite(values).all()
        remedy = "divide the function by its largest absolute value" if bounded else "it must be finite everywhere"
        raise InputError(
            f"weight({tally.forecast[position]:g}) is {values[position]:g}, outside [-1, 1]", remedy=remedy
        )
    return float(tally.residual @ values) / tally.weight_total


def _range(curve: FloatArray) -> float:
    return float(curve.max() - curve.min())


def _rising_curve(tally: Tally) -> tuple[float, FloatArray]:
    """Return the sign that makes the residual curve end above 0, and the curve times it."""
    curve = tally.residual_prefix()[1:]
    sign = 1.0 if curve[-1] >= 0.0 else -1.0
    if sign < 0.0:
        np.negative(curve, out=curve)
    return sign, curve


def _dear_swings(curve: FloatArray, needed: int) -> tuple[FloatArray, IntArray]:
    """Return the price and the second turn of at least so many of the dearest swings, if there are as many.

    Of a curve cut into blocks, only the ends and the extremes of the blocks can be turns of a swing that is higher than
    any block: from a turn to the end of its block the curve moves by less. With those alone the dear swings are the
    same, and have the same prices.
    """
    for block in (_WIDE_BLOCK, _NARROW_BLOCK):
        blocks = curve.size // block
        if blocks < max(2 * needed, _FEWEST_BLOCKS):
            continue
        parts = curve[: blocks * block].reshape(blocks, block)
        extremes = np.stack([parts.argmin(axis=1), parts.argmax(axis=1)], axis=1) + block * np.arange(blocks)[:, None]
        kept = np.concatenate([[0], np.sort(extremes, axis=1).ravel(), np.arange(blocks * block, curve.size)])
        if kept[-1] < curve.size - 1:
            kept = np.append(kept, curve.size - 1)
        height = np.ptp(parts, axis=1).max()
        price, _, right = swing_events(curve[kept])
        dear = price > height
        if np.count_nonzero(dear) >= needed:
            return price[dear], right[dear]
    price, _, right = swing_events(curve)
    return price, right


def _dearest_first(price: FloatArray) -> IntArray:
    """Order swings by falling price; of equal ones the outer first, which `swing_events` lists later."""
    order: IntArray = price.size - 1 - np.argsort(-price[::-1], kind="stable")
    return order


def _envelope(price: FloatArray, right: IntArray, *, start: float) -> tuple[FloatArray, FloatArray]:
    """Return knots (total variation, error) of the concave spectrum of swings that come dearest first."""
    units = np.where(right >= 0, 4.0, 2.0)
    knots = np.concatenate([[0.0], np.cumsum(units)])
    errors = start + np.concatenate([[0.0], np.cumsum(price * units)])
    return knots, errors


def _alternating(tally: Tally, left: IntArray, right: IntArray) -> FloatArray:
    """Return the +-1 weights that change sign at the given turns of the curve, oriented to collect a positive sum."""
    flips = np.zeros(len(tally) + 1, dtype=np.int64)
    np.add.at(flips, left, 1)
    np.add.at(flips, right[right >= 0], 1)
    weight = 1.0 - 2.0 * (np.cumsum(flips)[:-1] % 2)
    return np.asarray(weight if weight @ tally.residual >= 0.0 else -weight, dtype=np.float64)
