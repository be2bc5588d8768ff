"""Results about decisions: risks at one threshold and at all of them, what recalibration could save."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from calibrant.core.results import UNIT, Result
from calibrant.core.types import ArrayLike, BoolArray, FloatArray
from calibrant.core.words import of_all, percent, rounded_up
from calibrant.measures.results import Relation
from calibrant.rows.checks import check_forecasts, check_thresholds
from calibrant.rows.costs import WithCosts, at_threshold


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

    def frame(self, backend: Any = None) -> Any:
        """Return one row per threshold."""
        names = ["threshold", "risk", "false_positive", "false_negative", "acted"]
        columns = {name: np.atleast_1d(getattr(self, name)) for name in names}
        if self.cost is not None:
            columns["cost"] = np.atleast_1d(self.cost)
        return self._framed(columns, backend)

    def __str__(self) -> str:
        risk, threshold = np.atleast_1d(self.risk), np.atleast_1d(self.threshold)
        if risk.size > 1:
            return (
                f"mean {self.loss} loss at {risk.size:,} thresholds from {threshold.min():.4g} to "
                f"{threshold.max():.4g}: between {risk.min():.5f} and {risk.max():.5f}"
            )
        rule, wrongly, missing = "from there up", "false alarms", "missed events"
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

    def risk_at(self, threshold: ArrayLike) -> float | FloatArray:
        """Return the mean loss at one threshold, or at each of several.

        Parameters
        ----------
        threshold : float in [0, 1], or array of them
            From which forecast people act.

        Returns
        -------
        float, or array of the same shape
            The mean loss there.
        """
        return read_between(self.threshold, self.risk, self.risk_right, threshold)

    def _columns(self) -> dict[str, FloatArray]:
        return {
            "threshold": self.threshold,
            "risk": self.risk,
            "risk_right": self.risk_right,
            "constant_risk": self.constant_risk,
        }

    def frame(self, backend: Any = None) -> Any:
        """Return one row per knot."""
        return self._framed(self._columns(), backend)

    def __str__(self) -> str:
        top = float(max(self.risk.max(), self.risk_right.max()))
        return f"mean loss at every threshold, on {self.threshold.size:,} knots: at most {rounded_up(top, 5)}"

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, eq=False)
class DecisionRule(Result):
    """When to act on a forecast.

    Attributes
    ----------
    kind : str
        "at least", "above" or "at most" (a cutoff), "always", "never", or "one of" (a set of forecasts).
    cutoff : float or None
        The cutoff, for the first three kinds.
    forecasts : array or None
        The forecasts to act on, for the last kind.
    """

    kind: str
    cutoff: float | None = None
    forecasts: FloatArray | None = None

    _ranges: ClassVar = dict.fromkeys(("cutoff", "forecasts"), UNIT)
    _words: ClassVar = {"kind": ("at least", "above", "at most", "always", "never", "one of")}

    def acts(self, y_prob: ArrayLike) -> BoolArray:
        """Return for each forecast whether the rule acts on it.

        Parameters
        ----------
        y_prob : array-like of shape (n,)
            Forecast probabilities.

        Returns
        -------
        array of bool of shape (n,)
            True where the rule acts.
        """
        forecast = check_forecasts(y_prob)
        if self.forecasts is not None:
            return np.isin(forecast, self.forecasts)
        if self.cutoff is None:
            return np.full(forecast.size, self.kind == "always")
        compare = {"at least": np.greater_equal, "above": np.greater, "at most": np.less_equal}[self.kind]
        acted: BoolArray = compare(forecast, self.cutoff)
        return acted

    def __str__(self) -> str:
        if self.forecasts is not None and self.forecasts.size:
            return f"act on {self.forecasts.size:,} of the distinct forecasts and on no other"
        if self.forecasts is not None:
            return "never act"
        if self.cutoff is None:
            return f"{self.kind} act"
        return f"act on forecasts {'above' if self.kind == 'above' else f'of {self.kind}'} {self.cutoff:.4g}"

    __repr__ = __str__


Wrapper = Literal["nondecreasing", "monotone", "any"]

WRAPPERS: dict[Wrapper, str] = {
    "nondecreasing": "non-decreasing recalibration",
    "monotone": "monotone recalibration (rising or falling)",
    "any": "recalibration of any shape",
}
"""The recalibrations that forecasts can be compared with, in words."""


@dataclass(frozen=True, eq=False)
class RiskGap(WithCosts, Result):
    """What a better use of the same forecasts could save at one threshold.

    Attributes
    ----------
    loss : str
        "decision" (act when p >= threshold) or "sign testing" (act when p > threshold).
    threshold : float
        The threshold.
    wrapper : str
        The recalibrations allowed: "nondecreasing", "monotone" or "any".
    risk : float or None
        Mean loss now; None where it cannot be told (sign testing of a `Tally` with fractional outcomes).
    best_risk : float or None
        Smallest mean loss that such a recalibration attains on these rows.
    gap : float
        The difference.
    rule : DecisionRule
        When to act, to attain it.
    bound : Relation
        What theory says of the gap, from the Cutoff calibration error or the ECE, checked on these data.
    cost_false_positive, cost_false_negative : float or None
        The costs that were translated into the threshold, if any; ``gap * cost_unit`` is the saving in cost units.
    notes : tuple of str
        What to keep in mind when reading the numbers.
    """

    loss: str
    threshold: float
    wrapper: Wrapper
    risk: float | None
    best_risk: float | None
    gap: float
    rule: DecisionRule
    bound: Relation
    cost_false_positive: float | None = None
    cost_false_negative: float | None = None
    notes: tuple[str, ...] = ()

    _ranges: ClassVar = dict.fromkeys(("threshold", "risk", "best_risk", "gap"), UNIT)
    _words: ClassVar = {"loss": ("decision", "sign testing"), "wrapper": tuple(WRAPPERS)}

    @property
    def cost_bound(self) -> float | None:
        """The bound in the units of the costs given, kappa times the error; None where a threshold was given."""
        return None if self.cost_unit is None else self.bound.right * self.cost_unit

    def frame(self, backend: Any = None) -> Any:
        """Return one row, to be joined with those of other thresholds or wrappers."""
        names = ["threshold", "wrapper", "risk", "best_risk", "gap"]
        return self._framed({name: [getattr(self, name)] for name in names} | {"bound": [self.bound.right]}, backend)

    def __str__(self) -> str:
        where = at_threshold(self.threshold, self.cost_false_positive, self.cost_false_negative)
        shape = f"{WRAPPERS[self.wrapper]} of these forecasts"
        today = "above" if self.loss == "sign testing" else "at least"
        if self.rule.cutoff == self.threshold and self.rule.kind == today:
            now = "" if self.risk is None else f", {self.risk:.5f}"
            finding = f"no {shape} lowers the mean {self.loss} loss on these rows{now}."
        else:
            now = "" if self.risk is None else f", from {self.risk:.5f} to {self.best_risk:.5f}"
            finding = (
                f"{shape} could lower the mean {self.loss} loss on these rows by {self.gap:.5f}"
                f"{self._in_costs(self.gap)}{now}, and by no more. To attain that, {self.rule}."
            )
        return "\n".join([f"At {where}, {finding}", str(self.bound), *(f"Note: {note}" for note in self.notes)])

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class BestThreshold(WithCosts, Result):
    """The cutoff that would have been best on these rows for the loss of a threshold, and what it saves.

    Attributes
    ----------
    threshold : float
        The threshold of the loss: with calibrated forecasts the best cutoff too.
    cutoff : float or None
        Act on forecasts of at least this; 0 when always acting is best, None when never acting is.
    cutoff_above : float or None
        Every cutoff above this one, up to ``cutoff``, does the same on these rows (None: every cutoff down to 0).
    rule : DecisionRule
        The same as a rule that can be applied to other forecasts.
    risk, best_risk : float
        Mean loss with the threshold as cutoff, and with the best one.
    saving : float
        Their difference.
    changed : float
        Share of the weight that is treated differently.
    unit_weights : bool
        Whether every row has weight 1.
    cost_false_positive, cost_false_negative : float or None
        The costs that were translated into the threshold, if any; ``saving * cost_unit`` is in cost units.
    """

    threshold: float
    cutoff: float | None
    cutoff_above: float | None
    rule: DecisionRule
    risk: float
    best_risk: float
    saving: float
    changed: float
    unit_weights: bool
    cost_false_positive: float | None = None
    cost_false_negative: float | None = None

    _ranges: ClassVar = dict.fromkeys(
        ("threshold", "cutoff", "cutoff_above", "risk", "best_risk", "saving", "changed"), UNIT
    )

    def frame(self, backend: Any = None) -> Any:
        """Return one row, to be joined with those of other thresholds."""
        names = ["threshold", "cutoff", "cutoff_above", "risk", "best_risk", "saving", "changed"]
        return self._framed({name: [getattr(self, name)] for name in names}, backend)

    def __str__(self) -> str:
        where = at_threshold(self.threshold, self.cost_false_positive, self.cost_false_negative)
        if self.changed == 0.0:
            return f"At {where}, no other cutoff does better on these rows: the mean loss is {self.risk:.5f}."
        return (
            f"At {where}, the mean loss on these rows falls from {self.risk:.5f} to {self.best_risk:.5f}, a saving of "
            f"{self.saving:.5f}{self._in_costs(self.saving)}, if you {self.rule}; {percent(self.changed)} "
            f"{of_all(self.unit_weights)} would be treated differently. The cutoff was chosen on these rows, so expect "
            "less of it on others."
        )

    __repr__ = __str__


@dataclass(frozen=True, eq=False, repr=False)
class RiskGapCurve(MurphyCurve):
    """What recalibration could save at every threshold: linear between the knots, with a jump just after a forecast.

    Attributes
    ----------
    threshold, risk, risk_right, mean_outcome
        As in `MurphyCurve`.
    best_risk : array
        Smallest mean loss that a recalibration attains, at each knot; it never jumps.
    wrapper : str
        The recalibrations allowed: "nondecreasing" or "monotone".
    largest_gap : float
        Largest gap between risk and best risk over all thresholds.
    largest_gap_at : float
        Where it is; the lowest threshold, if at several.
    largest_gap_attained : bool
        Whether it is the gap at that threshold, or the limit just above it.
    largest_regret, largest_regret_at, largest_regret_attained
        The same for the regret: the risk minus that of the better of always and never acting.
    bound : Relation
        What theory says of the largest gap, from the Cutoff calibration error, checked on these data.
    """

    best_risk: FloatArray
    wrapper: Wrapper
    largest_gap: float
    largest_gap_at: float
    largest_gap_attained: bool
    largest_regret: float
    largest_regret_at: float
    largest_regret_attained: bool
    bound: Relation

    _ranges: ClassVar = {
        **MurphyCurve._ranges,
        **dict.fromkeys(("best_risk", "largest_gap", "largest_gap_at", "largest_regret_at"), UNIT),
    }
    _words: ClassVar = {"wrapper": tuple(WRAPPERS)}

    @property
    def gap(self) -> FloatArray:
        """What recalibration could save at each knot."""
        return _no_less_than_zero(self.risk - self.best_risk)

    @property
    def gap_right(self) -> FloatArray:
        """Its limit just above each knot."""
        return _no_less_than_zero(self.risk_right - self.best_risk)

    @property
    def regret(self) -> FloatArray:
        """Risk at each knot minus that of the better of always and never acting; negative where forecasts help."""
        return self.risk - self.constant_risk

    @property
    def regret_right(self) -> FloatArray:
        """Its limit just above each knot."""
        return self.risk_right - self.constant_risk

    def at(self, threshold: ArrayLike) -> float | FloatArray:
        """Return the gap at one threshold, or at each of several.

        Parameters
        ----------
        threshold : float in [0, 1], or array of them
            From which forecast people act.

        Returns
        -------
        float, or array of the same shape
            The gap there.
        """
        return read_between(self.threshold, self.gap, self.gap_right, threshold)

    def regret_at(self, threshold: ArrayLike) -> float | FloatArray:
        """Return the regret against the best constant action at one threshold, or at each of several.

        Parameters
        ----------
        threshold : float in [0, 1], or array of them
            From which forecast people act.

        Returns
        -------
        float, or array of the same shape
            The regret there.
        """
        return read_between(self.threshold, self.regret, self.regret_right, threshold)

    def _columns(self) -> dict[str, FloatArray]:
        more = {name: getattr(self, name) for name in ("best_risk", "gap", "gap_right", "regret", "regret_right")}
        return super()._columns() | more

    def __str__(self) -> str:
        where = _where(self.largest_gap_at, self.largest_gap_attained)
        worst = _where(self.largest_regret_at, self.largest_regret_attained)
        regret = (
            f"The worst regret against always or never acting is {self.largest_regret:.5f}, {worst}."
            if self.largest_regret > 0.0
            else "At no threshold would always or never acting have been better."
        )
        return (
            f"At no threshold does {WRAPPERS[self.wrapper]} save more than {rounded_up(self.largest_gap, 5)} "
            f"of the mean loss on these rows ({where}). {regret}\n{self.bound}"
        )


def _no_less_than_zero(difference: FloatArray) -> FloatArray:
    return np.maximum(difference, 0.0)  # a difference of equal sums may round below zero


def _where(threshold: float, attained: bool) -> str:
    return f"at threshold {threshold:.4g}" if attained else f"approached just above threshold {threshold:.4g}"
