"""Margins that follow from the number of rows and the level alone, or from little more.

Each is one-sided and fails with probability at most delta, for rows that are independent draws and a forecaster that
was fixed without looking at them; those that speak of these forecasts need outcomes that are independent given the
forecasts, and no more. The proofs are in docs/theory/certificates.md and docs/theory/lower-limits.md.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

import math

from calibrant.core.chernoff import chernoff_interval
from calibrant.rows.tally import Totals
from calibrant.rows.weights import effective_rows

VARIANCE_SHARE = 0.02
"""Share of delta spent on learning a variance, from which a betting rate or a margin follows."""


def paper_margin(rows: float, delta: float) -> float:
    """Return the margin (20 + sqrt(2 ln(1/delta))) / sqrt(n) on both sides of the Cutoff error: Prop. 4.1 of [1]_."""
    return (20.0 + math.sqrt(2.0 * math.log(1.0 / delta))) / math.sqrt(rows)


def hoeffding_margin(rows: float, delta: float) -> float:
    """Return the upper margin sqrt(2 ln(1/delta) / n), which holds for every class of weights in [-1, 1].

    Only one weight function, the one that attains the population's error, has to behave: no uniform deviation.
    """
    return math.sqrt(2.0 * math.log(1.0 / delta) / rows)


def hoeffding_lower_margin(table: Totals, delta: float, factor: float = 1.0) -> float:
    """Return a margin below the Cutoff error at every number of rows, whatever the outcomes.

    (4 + sqrt(2 ln(1/delta))) / sqrt(n_eff), or the margin of all monotone maps, of which the forecasts themselves are
    one, where that is smaller; that one is proved for rows of equal weight only. ``factor`` is 1 + M/2 for weights of
    total variation M, whose deviations are at most so many times as large. Number of rows, level and factor alone
    decide which margin is taken.
    """
    rows = effective_rows(table)
    symmetrised = (4.0 * factor + math.sqrt(2.0 * math.log(1.0 / delta))) / math.sqrt(rows)
    return min(symmetrised, factor * monotone_margin(rows, delta)) if table.unit_weights else symmetrised


def uniform_lower_margin(table: Totals, delta: float, factor: float = 1.0) -> float:
    """Return the first of these margins with the variance of the residuals in place of its largest possible value, 1.

    The variance is learned from the rows, for which a small share of delta is spent.
    """
    unit = table.weight_max / table.weight_total
    squares = float(table.weight_square_residual_square.sum()) / table.weight_max**2
    _, most_squares = chernoff_interval(squares, delta * VARIANCE_SHARE)
    rows = effective_rows(table)
    spread = min(math.sqrt(most_squares) * unit, 1.0 / math.sqrt(rows))
    exponent = math.log(1.0 / (delta * (1.0 - VARIANCE_SHARE)))
    return 4.0 * factor * spread + math.sqrt(2.0 * exponent / rows)


def range_margin(rows: float, delta: float) -> float:
    """Return how far the Cutoff error on the rows can be from that of these forecasts: sqrt(ln(4/delta) / (2 n)).

    Given the forecasts sum (Y - chance) is a martingale in their order, and its range exceeds t with probability at
    most 4 exp(-2 t^2 / n). It holds for the forecasts and all monotone maps of them at once, and for the risk gap too.
    """
    return math.sqrt(math.log(4.0 / delta) / (2.0 * rows))


def fitted_range_margin(rows: float, brier: float, delta: float) -> float:
    """Return the same once a monotone map of a known Brier score has shown how little outcomes vary.

    The variance of the martingale is at most the sum of squared residuals and twice its range, which Bernstein's
    inequality bounds by it in turn. Both margins are about one event, so that the smaller may be taken.
    """
    return min(range_margin(rows, delta), _bernstein_margin(rows, brier, math.log(4.0 / delta), 2.0))


def monotone_margin(rows: float, delta: float) -> float:
    """Return how far the Cutoff error of a monotone map can be above its value on the rows, for all such maps at once.

    3 sqrt(ln(2e / delta) / (2 n)). A monotone map is a mixture of steps, so that only three distribution functions have
    to behave: those of the forecasts of all rows, of events and of non-events.
    """
    return 3.0 * math.sqrt((1.0 + math.log(2.0 / delta)) / (2.0 * rows))


def paper_monotone_margin(rows: float, delta: float) -> float:
    """Return the same as (30 + 2 sqrt(2 ln(2 / delta))) / sqrt(n): Proposition 5.1 and appendix D.2 of [1]_."""
    return (30.0 + 2.0 * math.sqrt(2.0 * math.log(2.0 / delta))) / math.sqrt(rows)


def constant_margin(rows: float, delta: float) -> float:
    """Return how far the mean outcome of the rows can be from that of the population: Hoeffding, both sides."""
    return math.sqrt(math.log(2.0 / delta) / (2.0 * rows))


def fitted_constant_margin(rows: float, brier: float, delta: float) -> float:
    """Return how far the mean outcome of the rows can be from that of these forecasts, given its Brier score."""
    return min(constant_margin(rows, delta), _bernstein_margin(rows, brier, math.log(2.0 / delta), 1.0))


def _bernstein_margin(rows: float, brier: float, exponent: float, feedback: float) -> float:
    """Return the largest R / n with R^2 <= 2 l (n B + c R + R / 3): the variance is at most n B + c R."""
    linear = (feedback + 1.0 / 3.0) * exponent
    return (linear + math.sqrt(linear**2 + 2.0 * exponent * rows * brier)) / rows


def constant_failure(rows: float, error: float) -> float:
    """Return the probability, at most, that the mean outcome of the rows is off by more than ``error``: the inverse."""
    return 0.0 if error >= 1.0 else min(1.0, 2.0 * math.exp(-2.0 * rows * error**2))
