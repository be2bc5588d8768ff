"""Results about risks: the loss of acting at a threshold, at every threshold, and net benefit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.results.base import UNIT, Result, as_frame, of_all, percent, rounded_up, significant_up
from calibrant.validation import FloatArray, check_thresholds


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


@dataclass(frozen=True, eq=False)
class DecisionRisk(WithCosts, Result):
    """The mean loss of acting on forecasts from a threshold up, and what it is made of.

    Everything is a float for one threshold and an array, with one value per threshold, for several.

    Attributes
    ----------
    loss : str
        "decision" (act when p >= threshold) or "sign testing" (act when p > threshold).
    threshold : float or array
        The thresholds.
    risk : float or array
        Mean loss per row: ``false_positive + false_negative``.
    false_positive : float or array
        The part of it from acting without an event.
    false_negative : float or array
        The part from events missed.
    acted : float or array
        Share of the weight acted on.
    mean_outcome : float
        Mean of the outcomes.
    unit_weights : bool
        Whether every row has weight 1.
    cost_false_positive, cost_false_negative : float or None
        The costs that were translated into the threshold, if any; ``cost`` then gives the mean cost per row.
    """

    loss: str
    threshold: float | FloatArray
    risk: float | FloatArray
    false_positive: float | FloatArray
    false_negative: float | FloatArray
    acted: float | FloatArray
    mean_outcome: float
    unit_weights: bool
    cost_false_positive: float | None = None
    cost_false_negative: float | None = None

    _ranges: ClassVar = dict.fromkeys(
        ("threshold", "risk", "false_positive", "false_negative", "acted", "mean_outcome"), UNIT
    )
    _words: ClassVar = {"loss": ("decision", "sign testing")}

    @property
    def cost(self) -> float | FloatArray | None:
        """Mean cost per row, in the units of the costs given; None where a threshold was given in their place."""
        return None if self.cost_unit is None else self.risk * self.cost_unit

    def frame(self) -> Any:
        """Return one row per threshold."""
        names = ["threshold", "risk", "false_positive", "false_negative", "acted"]
        columns = {name: np.atleast_1d(getattr(self, name)) for name in names}
        if self.cost is not None:
            columns["cost"] = np.atleast_1d(self.cost)
        return as_frame(columns)

    def __str__(self) -> str:
        risk, threshold = np.atleast_1d(self.risk), np.atleast_1d(self.threshold)
        if risk.size > 1:
            return (
                f"mean {self.loss} loss at {risk.size:,} thresholds from {threshold.min():.4g} to "
                f"{threshold.max():.4g}: between {risk.min():.5f} and {risk.max():.5f}"
            )
        rule, wrongly, missing = "from there up", "acting in vain", "events missed"
        if self.loss == "sign testing":
            rule, wrongly, missing = "above it", "outcomes not above it acted on", "outcomes above it not acted on"
        where = at_threshold(float(threshold[0]), self.cost_false_positive, self.cost_false_negative)
        vain, missed = (float(np.atleast_1d(part)[0]) for part in (self.false_positive, self.false_negative))
        acted = percent(float(np.atleast_1d(self.acted)[0]))
        return (
            f"At {where}, acting {rule} (on {acted} {of_all(self.unit_weights)}) loses {risk[0]:.5f} per row on average"
            f"{self._in_costs(risk[0])}: {vain:.5f} from {wrongly} and {missed:.5f} from {missing}."
        )

    __repr__ = __str__


def read_between(knots: FloatArray, value: FloatArray, right: FloatArray, at: Any) -> float | FloatArray:
    """Read a curve that is linear between knots and may jump just after one: its value at the given thresholds."""
    threshold = check_thresholds(at)
    place = np.atleast_1d(threshold)
    after = np.searchsorted(knots, place)  # the first knot is 0 and the last 1
    before = np.maximum(after - 1, 0)
    width = np.where(after > before, knots[after] - knots[before], 1.0)
    share = (place - knots[before]) / width
    read = np.where(knots[after] == place, value[after], (1.0 - share) * right[before] + share * value[after])
    return float(read[0]) if isinstance(threshold, float) else read


@dataclass(frozen=True, eq=False)
class MurphyCurve(Result):
    """Mean loss at every decision threshold: linear between the knots, with a jump just after a forecast.

    Attributes
    ----------
    threshold : array
        The knots: 0, the distinct forecasts and where other curves bend, 1.
    risk : array
        Mean loss of acting when p >= threshold, at each knot.
    risk_right : array
        Its limit just above each knot; different at a forecast whose mean outcome is not the forecast.
    mean_outcome : float
        Mean of the outcomes.
    """

    threshold: FloatArray
    risk: FloatArray
    risk_right: FloatArray
    mean_outcome: float

    _ranges: ClassVar = dict.fromkeys(("threshold", "risk", "risk_right", "mean_outcome"), UNIT)

    @property
    def constant_risk(self) -> FloatArray:
        """Mean loss at each knot of the better of always and never acting: what no forecast is needed for."""
        return np.minimum(self.threshold * (1.0 - self.mean_outcome), (1.0 - self.threshold) * self.mean_outcome)

    def risk_at(self, threshold: Any) -> float | FloatArray:
        """Return the mean loss at one threshold, or at each of several."""
        return read_between(self.threshold, self.risk, self.risk_right, threshold)

    def _columns(self) -> dict[str, FloatArray]:
        return {
            "threshold": self.threshold,
            "risk": self.risk,
            "risk_right": self.risk_right,
            "constant_risk": self.constant_risk,
        }

    def frame(self) -> Any:
        """Return one row per knot."""
        return as_frame(self._columns())

    def __str__(self) -> str:
        top = float(max(self.risk.max(), self.risk_right.max()))
        return f"mean loss at every threshold, on {self.threshold.size:,} knots: at most {rounded_up(top, 5)}"

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, eq=False)
class NetBenefit(Result):
    """Net benefit of acting on forecasts from a threshold up, as in decision curve analysis.

    Everything is a float for one threshold and an array, with one value per threshold, for several.

    Attributes
    ----------
    threshold : float or array
        The thresholds.
    net_benefit : float or array
        True positives minus false positives at the exchange rate threshold/(1 - threshold), per row.
    treat_all : float or array
        The same for acting on every row.
    treat_none : float or array
        The same for acting on none: 0.
    mean_outcome : float
        Mean of the outcomes, the largest net benefit there is.
    """

    threshold: float | FloatArray
    net_benefit: float | FloatArray
    treat_all: float | FloatArray
    treat_none: float | FloatArray
    mean_outcome: float

    _ranges: ClassVar = dict.fromkeys(("threshold", "mean_outcome"), UNIT)

    def frame(self) -> Any:
        """Return one row per threshold."""
        names = ["threshold", "net_benefit", "treat_all", "treat_none"]
        return as_frame({name: np.atleast_1d(getattr(self, name)) for name in names})

    def __str__(self) -> str:
        threshold, benefit = np.atleast_1d(self.threshold), np.atleast_1d(self.net_benefit)
        best = np.maximum(np.atleast_1d(self.treat_all), 0.0)
        if threshold.size == 1:
            simple = "treating all" if np.atleast_1d(self.treat_all)[0] > 0.0 else "treating none"
            return (
                f"At threshold {threshold[0]:.4g} the net benefit is {benefit[0]:.5f} per row; that of {simple}, the "
                f"better of the two without forecasts, is {best[0]:.5f}."
            )
        above = int(np.count_nonzero(benefit > best))
        return (
            f"net benefit at {threshold.size:,} thresholds from {threshold.min():.4g} to {threshold.max():.4g}: above "
            f"that of treating all and of treating none at {above:,} of them"
        )

    __repr__ = __str__
