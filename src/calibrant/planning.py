"""Before the data: how many rows a certificate takes, and what no procedure can promise about the ECE.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np

from calibrant.bounds import hoeffding_margin, paper_margin, planned_upper
from calibrant.laws import brownian_range
from calibrant.results.certificates import RowsNeeded
from calibrant.validation import (
    check_choice,
    check_confidence,
    check_forecasts,
    check_number,
    check_same_index,
    check_weights,
)

METHODS = ("adaptive", "exact", "normal", "hoeffding", "paper")

_MOST_ROWS = 2**53


def rows_needed(
    max_error: float,
    *,
    confidence_level: float = 0.95,
    power: float = 0.9,
    method: str = "adaptive",
    brier: float | None = None,
    y_prob: Any = None,
    sample_weight: Any = None,
) -> RowsNeeded:
    """Plan: how many rows does it take to certify a calibrated forecaster?

    The Cutoff error of n rows of a calibrated forecaster is about the range of Brownian motion times
    sqrt(brier / n), and a certificate needs that plus the method's margin to stay below ``max_error``. The answer leans
    to the safe side: adaptive, exact and normal limits look at each interval's own variance, and often need a tenth
    fewer rows.

    Parameters
    ----------
    max_error : float in (0, 1]
        The error to be certified, as in `certify`.
    confidence_level, method
        As in `certify`.
    power : float in (0, 1)
        How likely the certificate should be, if the forecaster is calibrated.
    brier : float in (0, 0.25]
        Mean of (y - p)^2 you expect.
    y_prob : array-like
        Or forecasts like those to come, from which the Brier score of a calibrated forecaster follows: the mean of
        p (1 - p).
    sample_weight : array-like, optional
        How many rows have each of them, or what share.

    Examples
    --------
    >>> print(rows_needed(0.05, brier=1 / 6, method="hoeffding"))
    About 4,524 rows certify a Cutoff calibration error of at most 0.05 with 95% confidence in 90% of cases, if the
    forecaster is calibrated with a Brier score of 0.1667 (hoeffding method; the paper's margin needs 218,327).
    """
    limit = check_number(max_error, "max_error", low=0.0, high=1.0)
    if limit == 0.0:
        raise ValueError("max_error is 0; no number of rows certifies an error of exactly 0")
    level = check_confidence(confidence_level)
    chance = check_number(power, "power", low=0.0, high=1.0)
    if chance in (0.0, 1.0):
        raise ValueError(f"power is {chance:g}; choose how likely success should be, between 0 and 1, as in 0.9")
    check_choice(method, "method", METHODS)
    if method == "exact" and level < 0.75:
        raise ValueError(f"method='exact' needs a confidence_level of at least 0.75, got {level:g}")
    if (brier is None) == (y_prob is None):
        raise ValueError("pass either brier= (the mean squared residual you expect) or y_prob= (forecasts like yours)")
    weights = None
    if y_prob is not None:
        forecasts = check_forecasts(y_prob)
        weights = check_weights(sample_weight, forecasts.size)
        check_same_index(y_prob=y_prob, sample_weight=sample_weight)
    elif sample_weight is not None:
        raise ValueError("sample_weight was given without y_prob; it says how many rows have each forecast")
    else:
        square = check_number(brier, "brier", low=0.0, high=0.25)
        forecasts = np.array([0.5 - math.sqrt(0.25 - square)])  # the forecast whose Brier score it is
    variance = float(np.average(forecasts * (1.0 - forecasts), weights=weights))
    if variance == 0.0:
        given = "brier is 0" if y_prob is None else "y_prob holds only 0 and 1"
        raise ValueError(f"{given}: calibrated forecasts that are never wrong leave nothing to plan for")
    spread = float(brownian_range.ppf(chance)) * math.sqrt(variance)
    delta = 1.0 - level

    def upper(method: str, rows: int) -> float:
        estimate = spread / math.sqrt(rows)
        if method == "adaptive":
            return planned_upper(forecasts, weights, estimate, rows, delta)
        return estimate + _margin(method, variance, rows, delta)

    return RowsNeeded(
        rows=_fewest_rows(lambda rows: upper(method, rows) <= limit),
        paper_rows=_fewest_rows(lambda rows: upper("paper", rows) <= limit),
        max_error=limit,
        confidence_level=level,
        power=chance,
        method=method,
        brier=variance,
    )


def _margin(method: str, variance: float, rows: int, delta: float) -> float:
    """Return what a method adds to the estimate, for rows of this mean variance."""
    if method == "paper":
        return paper_margin(rows, delta)
    if method == "hoeffding":
        return hoeffding_margin(rows, delta)
    if method == "normal":
        return NormalDist().inv_cdf(1.0 - delta) * math.sqrt(variance / rows)
    from scipy.special import betaincinv

    rate = 0.5 - math.sqrt(0.25 - variance)  # rows of one forecast with this variance have the widest limit
    return float(betaincinv(rate * rows + 1.0, (1.0 - rate) * rows, 1.0 - delta)) - rate


def _fewest_rows(suffices: Callable[[int], bool]) -> int:
    """Return the smallest number of rows that suffices, by doubling and bisection."""
    high = 1
    while not suffices(high):
        high *= 2
        if high > _MOST_ROWS:
            raise ValueError("max_error is so small that more than 2^53 rows would be needed; choose a larger one")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def ece_hardness_bound(n: int, *, max_error: float, confidence_level: float, effective_variance: float) -> float:
    """Bound from below how often a procedure that guarantees a small ECE must return forecasts of few values.

    If some procedure guarantees ECE <= max_error with ``confidence_level`` for every population, then its forecasts
    have an effective support (`effective_support_size`) of at most n^2 with probability at least
    1 - 2 e (max_error + delta + 1/n) / effective_variance, cut at 0 (Theorem 4.1 of [1]_). Near 1 means: whoever
    guarantees a small ECE has given up continuous forecasts. At 0 the theorem says nothing, which happens quickly: it
    is about small errors and high confidence.

    Parameters
    ----------
    n : int
        Rows the procedure learns from.
    max_error, confidence_level : float
        What it guarantees.
    effective_variance : float
        Of the population, see `effective_variance`.

    Examples
    --------
    >>> round(ece_hardness_bound(10_000, max_error=0.001, confidence_level=0.999, effective_variance=0.1), 4)
    0.8858
    >>> ece_hardness_bound(10_000, max_error=0.05, confidence_level=0.95, effective_variance=0.25)
    0.0
    """
    rows = check_number(n, "n", low=1, whole=True)
    error = check_number(max_error, "max_error", low=0.0, high=1.0)
    delta = 1.0 - check_confidence(confidence_level)
    variance = check_number(effective_variance, "effective_variance", low=0.0, high=0.25)
    if variance == 0.0:
        return 0.0
    return max(0.0, 1.0 - 2.0 * math.e * (error + delta + 1.0 / rows) / variance)


def effective_variance(mean_outcome: Any, gamma: float = 0.05, *, sample_weight: Any = None) -> float:
    """Least outcome variance on any part of the population that has a share of at least gamma.

    inf E[Var(Y | X) 1{X in A}] over sets A with P(A) >= gamma: the sum of the smallest conditional variances that
    together carry a share gamma of the rows (the last row counts in part). It measures how much noise is left even
    where outcomes are most predictable, and decides how strongly Theorem 4.1 of [1]_ bites. (Var >= s everywhere makes
    it at least gamma s, not s as a remark in the paper has it.)

    Parameters
    ----------
    mean_outcome : array-like of shape (n,)
        The true event probability of each row: known in a simulation, an assumption otherwise.
    gamma : float in [0, 1]
        The share.
    sample_weight : array-like of shape (n,), optional
        Nonnegative weights.

    Examples
    --------
    >>> effective_variance([0.5, 0.5, 0.0, 1.0], gamma=0.75)
    0.0625
    """
    means = check_forecasts(mean_outcome, name="mean_outcome")
    share = check_number(gamma, "gamma", low=0.0, high=1.0)
    weights = check_weights(sample_weight, means.size)
    check_same_index(mean_outcome=mean_outcome, sample_weight=sample_weight)
    weights = np.ones(means.size) if weights is None else weights
    variance = means * (1.0 - means)
    order = np.argsort(variance)
    carried = np.concatenate([[0.0], np.cumsum(weights[order])])
    collected = np.concatenate([[0.0], np.cumsum((weights * variance)[order])])
    return float(np.interp(share * carried[-1], carried, collected) / carried[-1])
