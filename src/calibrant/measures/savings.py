"""The risk gap: what re-drawing the line between acting and not acting would have saved, at the worst threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant.core.errors import InputError
from calibrant.core.results import UNIT, Result
from calibrant.core.words import measured
from calibrant.rows.costs import Costs, WithCosts, at_threshold, threshold_or_costs
from calibrant.rows.savings import (
    EVERY_THRESHOLD,
    SAVING,
    Stretches,
    Thresholds,
    largest_redrawing,
    split_at_savings,
)
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally, Totals

_MOVES = ("more", "fewer", "none")

REDRAWING = "re-drawing of the line between acting and not acting"
"""What non-decreasing recalibration does to a decision, in plain words."""


@dataclass(frozen=True)
class LargestSaving(WithCosts, Result):
    """The line between acting and not acting that would have saved most on these rows: the witness of the risk gap.

    Attributes
    ----------
    saving : float
        The mean loss saved per row: the risk gap.
    threshold : float
        The threshold at which it is saved.
    attained : bool
        Whether it is saved at that threshold; otherwise just above it.
    moves : str
        Whether the new line acts on "more" rows, on "fewer", or "none" where nothing can be saved.
    cutoff : float or None
        The smallest forecast that the new line acts on; None where it never acts.
    cost_false_positive, cost_false_negative : float or None
        The costs that were translated into the threshold, if any; a saving times ``cost_unit`` is in cost units.
    """

    saving: float
    threshold: float
    attained: bool
    moves: str
    cutoff: float | None
    cost_false_positive: float | None = None
    cost_false_negative: float | None = None

    _ranges: ClassVar = dict.fromkeys(("saving", "threshold", "cutoff"), UNIT)
    _words: ClassVar = {"moves": _MOVES}

    def __str__(self) -> str:
        if self.moves == "none":
            return "On these rows no other line would have saved anything."
        place = at_threshold(self.threshold, self.cost_false_positive, self.cost_false_negative)
        place = f"at {place}" if self.attained else f"just above {place}"
        if self.cost_unit is None:
            place += f" (a false alarm costs {self.threshold:.4g}, a missed event {1.0 - self.threshold:.4g})"
        line = "never acting" if self.cutoff is None else f"acting on forecasts from {self.cutoff:.4g} up"
        return (
            f"On these rows most is saved {place}: {line} instead saves {measured(self.saving)} per case"
            f"{self._in_costs(self.saving)}."
        )


def largest_saving(source: Tally | RowSource, thresholds: Thresholds) -> LargestSaving:
    """Return what non-decreasing recalibration could save at most on these rows, over the given thresholds."""
    return saving_of(split_at_savings(source, thresholds, lambda _: [SAVING]), thresholds)


def saving_of(table: Totals, thresholds: Thresholds, costs: Costs = (None, None)) -> LargestSaving:
    """Return the same for entries that were split at savings already."""
    best = largest_redrawing(Stretches.of(table), thresholds, SAVING)
    moves: str = "none"
    cutoff: float | None = best.threshold
    if best.score > 0.0:
        moves = "more" if best.more else "fewer"
        start = best.first if best.more else best.last
        cutoff = float(table.low[start]) if start < len(table) else None
    return LargestSaving(
        saving=min(best.score * table.weight_max / table.weight_total, 1.0),
        threshold=best.threshold,
        attained=best.attained,
        moves=moves,
        cutoff=cutoff,
        cost_false_positive=costs[0],
        cost_false_negative=costs[1],
    )


def over_thresholds(
    thresholds: tuple[float, float], cost_false_positive: float | None = None, cost_false_negative: float | None = None
) -> str:
    """Say which thresholds a risk gap is about, as in "any threshold from 0.1 to 0.3"."""
    low, high = thresholds
    if low == high:
        return at_threshold(low, cost_false_positive, cost_false_negative)
    return "any threshold" if (low, high) == EVERY_THRESHOLD else f"any threshold from {low:.4g} to {high:.4g}"


def check_threshold_range(threshold: Any, vain: Any, missed: Any) -> tuple[Thresholds, Costs]:
    """Return the thresholds asked about, one or from low to high or all of them, and the costs in place of one."""
    if threshold is None and vain is None and missed is None:
        return EVERY_THRESHOLD, (None, None)
    at, costs = threshold_or_costs(threshold, vain, missed)
    if isinstance(at, float):
        return Thresholds(at, at), costs
    if at.size != 2 or at[0] > at[1]:
        raise InputError(
            f"has {at.size:,} values" if at.size != 2 else f"goes from {at[0]:g} down to {at[1]:g}",
            argument="threshold",
            remedy="pass one threshold, or the lowest and the highest that decisions may use, as in (0.1, 0.3)",
        )
    return Thresholds(float(at[0]), float(at[1])), costs
