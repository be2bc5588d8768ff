"""What mistakes cost: thresholds and pairs of costs, which say the same, and the words for both."""

from __future__ import annotations

from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.types import ArrayLike, FloatArray
from calibrant.core.words import significant_up
from calibrant.rows.checks import check_costs, check_thresholds

Costs = tuple[float, float] | tuple[None, None]
"""What a false positive and a false negative cost, where they stand in place of a threshold."""


def threshold_or_costs(threshold: ArrayLike | None, vain: Any, missed: Any) -> tuple[float | FloatArray, Costs]:
    """Return the thresholds, and the costs if they were given in place of one."""
    if vain is None and missed is None:
        if threshold is None:
            raise InputError(
                "is missing: pass threshold=, or cost_false_positive= and cost_false_negative= in its place",
                argument="threshold",
            )
        return check_thresholds(threshold), (None, None)
    if threshold is not None:
        raise InputError(
            "was given together with costs, which say the same: pass either the threshold or the two costs",
            argument="threshold",
        )
    costs = check_costs(vain, missed)
    return costs[0] / (costs[0] + costs[1]), costs


def one_threshold(threshold: ArrayLike | None, vain: Any, missed: Any) -> tuple[float, Costs]:
    """Return the one threshold of a function that takes no more, and the costs if they were given in its place."""
    at, costs = threshold_or_costs(threshold, vain, missed)
    return one_number(at), costs


def one_number(threshold: float | FloatArray) -> float:
    """Refuse several thresholds where one is needed."""
    if isinstance(threshold, float):
        return threshold
    raise InputError(
        f"has {threshold.size:,} values where one is needed: call it once for each",
        argument="threshold",
        remedy="what recalibration could save at every threshold at once, risk_gap_curve tells",
    )


def at_threshold(threshold: float, cost_false_positive: float | None, cost_false_negative: float | None) -> str:
    """Write a threshold, with the costs it was translated from where there were any."""
    text = f"threshold {threshold:.4g}"
    if cost_false_positive is None or cost_false_negative is None:
        return text
    return f"{text} (a false positive costs {cost_false_positive:g}, a false negative {cost_false_negative:g})"


class WithCosts:
    """What results share that may speak of costs: the factor from the loss of a threshold to cost units."""

    cost_false_positive: float | None
    cost_false_negative: float | None

    @property
    def cost_unit(self) -> float | None:
        """What a loss of 1 costs: the sum of both costs; None where a threshold was given in their place."""
        if self.cost_false_positive is None or self.cost_false_negative is None:
            return None
        return self.cost_false_positive + self.cost_false_negative

    def _in_costs(self, loss: float) -> str:
        return "" if self.cost_unit is None else f" ({loss * self.cost_unit:.5g} in cost units)"

    def _limit_in_costs(self, limit: float) -> str:
        """Write an upper limit in cost units, with five digits and rounded up."""
        if self.cost_unit is None:
            return ""
        return f" ({significant_up(limit * self.cost_unit, 5)} in cost units)"
