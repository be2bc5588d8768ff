"""Two actions whose losses are straight lines in the outcome: the losses for which calibrated means are enough.

With l(a, y) = c(y) + alpha_a + beta_a y the loss of not acting exceeds that of acting by kappa (y - tau), where kappa =
beta_0 - beta_1: it is kappa times the loss of a threshold, whatever c is. For other losses no rule that knows the
forecast alone is right for every population of which it is the mean (docs/theory/threshold-decisions.md, "Outcomes in
[0, 1]").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.types import ArrayLike
from calibrant.rows.arrays import as_numbers, check_finite


class StraightCosts(TypedDict):
    """The two costs as options of other functions."""

    cost_false_positive: float
    cost_false_negative: float


def affine_costs(*, not_acting: ArrayLike, acting: ArrayLike) -> StraightCosts:
    """Return the two costs that stand for losses which are straight lines in an outcome from 0 to 1.

    Each action has an intercept alpha and a slope beta, and loses alpha + beta y, besides anything that both lose. What
    acting loses more at y = 0 is the cost of a false positive, what not acting loses more at y = 1 that of a false
    negative; their sum is kappa = beta_0 - beta_1. All that `decision_risk`, `risk_gap`, `best_threshold`,
    `sign_testing_gap` and `certify` with the risk gap say in cost units is then said of these losses: a rule in the
    same direction saves at most kappa x Cutoff, a monotone one 2 kappa x Cutoff, any one kappa x ECE.

    Parameters
    ----------
    not_acting, acting : pair of float
        Intercept and slope of the loss. Acting must be the action that pays for large outcomes.

    Returns
    -------
    dict
        ``cost_false_positive`` and ``cost_false_negative``, to be passed on with ``**``.

    Examples
    --------
    >>> costs = affine_costs(not_acting=(0, 10), acting=(3, 2))  # a longer train for 3, or 8 more where it is full
    >>> costs
    {'cost_false_positive': 3.0, 'cost_false_negative': 5.0}
    >>> from calibrant import risk_gap
    >>> found = risk_gap([0.1, 0.7, 0.4], [0.2, 0.3, 0.9], **costs)
    >>> found.threshold, round(found.gap * found.cost_unit, 12), round(found.cost_bound, 12)
    (0.375, 0.866666666667, 1.333333333333)
    """
    (level_0, slope_0), (level_1, slope_1) = (
        _line(values, name) for values, name in ((not_acting, "not_acting"), (acting, "acting"))
    )
    vain, missed = level_1 - level_0, (level_0 + slope_0) - (level_1 + slope_1)
    if vain == missed == 0.0:
        raise InputError("both actions lose the same, so no decision matters", remedy="pass two lines that differ")
    if vain <= 0.0 and missed <= 0.0:
        raise InputError(
            f"has the smaller loss at outcome 0 (by {-vain:g}) and the larger one at 1 (by {-missed:g})",
            argument="acting",
            remedy="acting is what pays for large outcomes: exchange the two actions",
        )
    if vain < 0.0 or missed < 0.0:
        better = "acting" if vain < 0.0 else "not_acting"
        raise InputError(
            "is better whatever the outcome from 0 to 1, so that no forecast is needed",
            argument=better,
            remedy="pass lines that cross between 0 and 1",
        )
    return {"cost_false_positive": vain, "cost_false_negative": missed}


def _line(values: ArrayLike, name: str) -> Sequence[float]:
    """Return intercept and slope."""
    numbers = as_numbers(values, name)
    check_finite(numbers, name)
    if numbers.size != 2:
        raise InputError(
            f"has {numbers.size} values", argument=name, remedy="pass two: the loss at outcome 0, and its slope"
        )
    pair: Sequence[float] = np.asarray(numbers).tolist()
    return pair
