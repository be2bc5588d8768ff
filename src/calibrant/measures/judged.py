"""Measures that limits are found for: their value on rows, the weights that attain it, and what limits rest on.

Every such measure but one is a largest mean of w(p) (y - p) over a class of weight functions w, or follows from some;
the risk gap is a largest saving. The proofs are in docs/theory/measures.md and docs/theory/savings.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol

from calibrant.core.errors import InputError
from calibrant.core.types import IntArray
from calibrant.core.voices import Argument, Option, Phrase
from calibrant.measures.brackets import bracket_cutoff, bracket_smooth
from calibrant.measures.distance import spread_upper
from calibrant.measures.expected import USELESS_LIMIT, continuity_note, expected_calibration_error, plug_in_error
from calibrant.measures.registry import MEASURES
from calibrant.measures.results import WorstInterval
from calibrant.measures.savings import LargestSaving, check_threshold_range, saving_of
from calibrant.measures.weighted import (
    bounded_variation_calibration_error,
    find_worst_interval,
    smooth_calibration_error,
)
from calibrant.measures.witnesses import Witnessing, distance_weight, interval_weight, smooth_weight, step_weight
from calibrant.rows.checks import check_choice, check_number
from calibrant.rows.costs import Costs
from calibrant.rows.questions import Promising
from calibrant.rows.refinement import may_hold_extreme, split_at_extremes, whole_tally
from calibrant.rows.savings import (
    EVERY_THRESHOLD,
    SAVING,
    Score,
    Stretches,
    Thresholds,
    bracket_redrawing,
    split_at_savings,
)
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally, Totals
from calibrant.rows.weights import effective_rows

SPREAD_SHARE = 0.02
"""Share of delta spent on learning how far forecasts are from the mean of their bin."""


class Limits(Protocol):
    """What a measure asks of a method of finding limits; each is wrong with probability at most delta."""

    def upper(self, source: Tally | RowSource, table: Totals, estimate: float, delta: float) -> float:
        """Return the upper limit of the Cutoff error."""

    def ends(self, delta: float) -> tuple[Callable[[Totals], IntArray], ...]:
        """Return what says which entries `upper` must open."""

    def lower(
        self,
        measure: WeightedMeasure,
        source: Tally | RowSource,
        table: Totals,
        estimate: float,
        worst: WorstInterval,
        delta: float,
        seed: int,
    ) -> float:
        """Return the lower limit of a measure."""

    def saving_scores(self, table: Totals, thresholds: Thresholds, delta: float) -> list[Score]:
        """Return the scores whose best redrawings `upper_saving` needs."""

    def upper_saving(
        self, source: Tally | RowSource, table: Totals, thresholds: Thresholds, estimate: float, delta: float
    ) -> float:
        """Return the upper limit of the risk gap, from entries that were split for it."""

    def lower_saving(
        self,
        source: Tally | RowSource,
        table: Totals,
        thresholds: Thresholds,
        estimate: float,
        delta: float,
        seed: int,
    ) -> float:
        """Return the lower limit of the risk gap."""

    def bracket(self, table: Totals, bits: int, delta: float, low: float, high: float) -> tuple[float, float]:
        """Return two ends that contain `upper`, from two ends of the error."""

    def bracket_saving(
        self, table: Totals, bits: int, thresholds: Thresholds, delta: float, low: float, high: float
    ) -> tuple[float, float]:
        """Return two ends that contain `upper_saving`, from two ends of the risk gap."""

    def upper_of(self, table: Totals, error: float, delta: float) -> float:
        """Return the upper limit of any weighted calibration error from its value on the rows."""

    def bias_lower(self, tally: Tally, delta: float) -> float:
        """Return a lower limit of the size of the mean bias."""

    def lower_margin(self, table: Totals, delta: float, factor: float) -> float:
        """Return how far an error of the rows can be above the population's, for weights of total variation M.

        ``factor`` is 1 + M/2.
        """


class Savings(NamedTuple):
    """How many times an error recalibration can save at most, by its kind; None where nothing is known."""

    nondecreasing: float
    monotone: float | None
    any: float | None


class JudgedMeasure(ABC):
    """A calibration error that limits are found for.

    Attributes
    ----------
    name : str
        What users write.
    field : str
        The field of `Measures` that holds it; empty for those that `Measures.others` lists.
    meaning : str
        A few words on what it is, for a table that lists it.
    by_intervals : bool
        Whether it is the largest error on an interval of forecasts.
    bounds_intervals : bool
        Whether it is at least the error on every interval of forecasts, whatever was said of it.
    few_rows : bool
        Whether its estimate and limits need few rows one by one, so that no source is too large.
    per_event : bool
        Whether it means something as a share of the events.
    steady : bool
        Whether the margins of its limits shrink as 1 / sqrt(rows).
    no_plan : str
        Why nobody can plan for it, where `plannable` is false.
    from_cells : bool
        Whether `bracket` finds it between two ends from totals per cell.
    savings : Savings or None
        What it says about decisions; None where ``no_savings`` says why it says nothing.
    no_savings : str
        Why it says nothing about decisions.
    """

    name: ClassVar[str]
    field: ClassVar[str] = ""
    meaning: ClassVar[str] = ""
    by_intervals: ClassVar[bool] = False
    bounds_intervals: ClassVar[bool] = False
    few_rows: ClassVar[bool] = False
    per_event: ClassVar[bool] = True
    steady: ClassVar[bool] = True
    no_plan: ClassVar[str] = "its limits depend on how often forecasts repeat"
    from_cells: ClassVar[bool] = False
    savings: ClassVar[Savings | None] = None
    no_savings: ClassVar[str] = (
        "which does not bound what decisions lose (forecasts at any small distance from calibration can cost 3/8, "
        "Example 3.1 of the paper)"
    )

    @abstractmethod
    def estimate(self, tally: Tally) -> float:
        """Return its value on the rows."""

    @property
    def factor(self) -> float:
        """How many times the deviation of intervals its deviation can be.

        1 for intervals and constants, 1 + M/2 for weights of total variation M (docs/theory/measures.md).
        """
        return 1.0

    @property
    def lower_is_cutoffs(self) -> bool:
        """Whether its lower limit is that of the Cutoff error, because the class of its weights is too large."""
        return False

    @property
    def plannable(self) -> bool:
        """Whether data sets simulated on a few forecasts tell what its limits will be on many."""
        return self.steady and not self.lower_is_cutoffs

    @property
    def thresholds(self) -> Thresholds | None:
        """The thresholds that it speaks of, where it speaks of decisions."""
        return None

    @property
    def costs(self) -> Costs:
        """The costs of mistakes in place of a threshold, where there are any."""
        return None, None

    def promising(self, thresholds: tuple[float, float] | None) -> Promising:
        """Return what it may promise to whoever acts on forecasts, where it speaks of these thresholds or of all."""
        where = ""
        if thresholds is not None and tuple(thresholds) != tuple(EVERY_THRESHOLD):
            where = f", at the {'threshold' if thresholds[0] == thresholds[1] else 'thresholds'} asked about"
        return Promising(
            intervals=self.bounds_intervals,
            savings=self.savings is not None and self.savings.nondecreasing <= 1.0,
            where=where,
        )

    def with_variation(self, variation: float) -> JudgedMeasure:
        """Return the measure whose weights have at most this total variation, where that is for the user to say."""
        del variation
        return self

    def with_thresholds(self, thresholds: Thresholds, costs: Costs) -> JudgedMeasure:
        """Return the measure over these thresholds; refuse them where it knows none."""
        del thresholds
        raise InputError(
            Phrase(
                "{given} for {gap} only",
                given=Phrase("{threshold} is", threshold=Argument("threshold")) if costs[0] is None else "costs are",
                gap=Option("measure", "risk_gap"),
            ),
            remedy=Phrase("leave them out, or ask for {gap}", gap=Option("measure", "risk_gap")),
        )

    def split(self, source: Tally | RowSource, deltas: Sequence[float], limits: Limits) -> Totals:
        """Return entries fine enough for the worst interval, and for upper limits at the given levels."""
        del deltas, limits
        return split_at_extremes(source)

    def saving(self, table: Totals) -> LargestSaving | None:
        """Return what would have been saved on the rows, where it is a saving."""
        del table
        return None

    def estimate_from(self, source: Tally | RowSource, worst: WorstInterval) -> float:
        """Return its value on the rows of a source, whose worst interval is known."""
        del worst
        return self.estimate(whole_tally(source))

    def upper(self, source: Tally | RowSource, table: Totals, estimate: float, delta: float, limits: Limits) -> float:
        """Return an upper limit by a method; ``table`` holds the totals of all rows, however coarse."""
        del table
        return limits.upper_of(whole_tally(source), estimate, delta)

    @abstractmethod
    def lower_from(
        self,
        source: Tally | RowSource,
        table: Totals,
        estimate: float,
        worst: WorstInterval,
        delta: float,
        seed: int,
        limits: Limits,
    ) -> float:
        """Return a lower limit by a method, which may leave something to chance."""

    def bracket(self, table: Totals) -> tuple[float, float]:
        """Return two ends that contain it, from totals per cell alone: those of every error where no more is known."""
        del table
        return 0.0, 1.0

    def bracket_limit(
        self, table: Totals, bits: int, delta: float, ends: tuple[float, float], limits: Limits
    ) -> tuple[float, float] | None:
        """Return two ends that contain an upper limit, from cells of width 2^-bits and two ends of the error itself."""
        del table, bits, delta, ends, limits  # None where no method has them
        return None

    def caution(self, tally: Tally) -> str | None:
        """Return why a limit may not mean what it seems to mean on these rows, if so."""
        del tally
        return None

    def notes(self, tally: Tally) -> tuple[str, ...]:
        """Return what the numbers are."""
        del tally
        return ()


class WeightedMeasure(JudgedMeasure):
    """A largest mean of w(p) (y - p) over a class of weights w, or what follows from some."""

    @abstractmethod
    def witness(self, delta: float) -> Witnessing:
        """Return what finds the weight function for a lower limit at delta."""

    def lower_from(
        self,
        source: Tally | RowSource,
        table: Totals,
        estimate: float,
        worst: WorstInterval,
        delta: float,
        seed: int,
        limits: Limits,
    ) -> float:
        """Return a lower limit by a method, which may leave something to chance."""
        return limits.lower(self, source, table, estimate, worst, delta, seed)

    def lower(
        self,
        source: Tally | RowSource,
        table: Totals,
        estimate: float,
        cutoff: float,
        delta: float,
        limits: Limits,
    ) -> float:
        """Return a lower limit by a method, from the estimate or from the Cutoff error of the rows."""
        del source
        found = cutoff if self.lower_is_cutoffs else estimate
        return found - limits.lower_margin(table, delta, self.factor)


class Cutoff(WeightedMeasure):
    """The largest error on an interval of forecasts."""

    name = field = "cutoff"
    by_intervals = bounds_intervals = True
    few_rows = True
    from_cells = True
    savings = Savings(nondecreasing=1.0, monotone=2.0, any=None)

    def estimate(self, tally: Tally) -> float:
        """Return the error of the worst interval."""
        return find_worst_interval(tally).error

    def estimate_from(self, source: Tally | RowSource, worst: WorstInterval) -> float:
        """Return the error of the worst interval."""
        del source
        return worst.error

    def split(self, source: Tally | RowSource, deltas: Sequence[float], limits: Limits) -> Totals:
        """Split where intervals with the largest limits may begin and end, too."""
        return split_at_extremes(source, *(end for delta in deltas for end in limits.ends(delta)))

    def upper(self, source: Tally | RowSource, table: Totals, estimate: float, delta: float, limits: Limits) -> float:
        """Return the method's limit for all intervals."""
        return limits.upper(source, table, estimate, delta)

    def witness(self, delta: float) -> Witnessing:
        """Return what finds the worst interval."""
        del delta
        return interval_weight

    def bracket(self, table: Totals) -> tuple[float, float]:
        """Return the least and the most that an interval can have."""
        return bracket_cutoff(table)

    def bracket_limit(
        self, table: Totals, bits: int, delta: float, ends: tuple[float, float], limits: Limits
    ) -> tuple[float, float] | None:
        """Return the method's two ends for all intervals."""
        return limits.bracket(table, bits, delta, *ends)


class Smooth(WeightedMeasure):
    """The largest error over weights that change no faster than the forecasts."""

    name = field = "smooth"
    from_cells = True

    @property
    def factor(self) -> float:
        """1 + M/2 for M = 1: so much does a 1-Lipschitz function on [0, 1] vary at most."""
        return 1.5

    def estimate(self, tally: Tally) -> float:
        """Return the smooth calibration error."""
        return smooth_calibration_error(tally)

    def witness(self, delta: float) -> Witnessing:
        """Return what finds the smooth weights."""
        del delta
        return smooth_weight

    def bracket(self, table: Totals) -> tuple[float, float]:
        """Return the error of forecasts in the middle of their cells, minus and plus what that can change."""
        return bracket_smooth(table)


@dataclass(frozen=True)
class BoundedVariation(WeightedMeasure):
    """The largest error over weights of a total variation for the user to say."""

    variation: float = 2.0

    name = field = "bounded_variation"
    no_savings = (
        "which bounds decisions by a factor that depends on the variation, and a certificate does not record that"
    )

    @property
    def factor(self) -> float:
        """1 + M/2; weights of any variation are those of the ECE, whose limits they have."""
        return 1.0 if self.lower_is_cutoffs else 1.0 + self.variation / 2.0

    @property
    def lower_is_cutoffs(self) -> bool:
        """Whether any variation is allowed."""
        return math.isinf(self.variation)

    def with_variation(self, variation: float) -> JudgedMeasure:
        """Return the measure with another total variation."""
        return replace(self, variation=variation)

    def estimate(self, tally: Tally) -> float:
        """Return the error of the best weights of this variation."""
        return bounded_variation_calibration_error(tally, variation=self.variation)

    def witness(self, delta: float) -> Witnessing:
        """Return what finds those weights."""
        del delta
        return partial(step_weight, self.variation)


class Distance(WeightedMeasure):
    """The distance from calibration, between limits of other errors."""

    name = field = "distance"
    steady = False  # its upper limit has a part that shrinks more slowly
    no_plan = "its upper limit also counts how forecasts spread inside narrow bins, which plans do not simulate"

    def estimate(self, tally: Tally) -> float:
        """Return the smooth calibration error, from which the lower limit comes."""
        return smooth_calibration_error(tally)

    def witness(self, delta: float) -> Witnessing:
        """Return what finds the weights that promise the highest limit."""
        return partial(distance_weight, delta)

    def upper(self, source: Tally | RowSource, table: Totals, estimate: float, delta: float, limits: Limits) -> float:
        """Return the limit of the error of bins plus that of the mean way to the mean of the bin.

        Forecasts moved to their bin's event rate are calibrated: by way of the bin's mean forecast.
        """
        del table, estimate
        tally = whole_tally(source)
        bins = _bins(tally)
        error = expected_calibration_error(tally, n_bins=bins)
        share = SPREAD_SHARE * delta
        return limits.upper_of(tally, error, delta - share) + spread_upper(tally, bins, share)

    def lower(
        self,
        source: Tally | RowSource,
        table: Totals,
        estimate: float,
        cutoff: float,
        delta: float,
        limits: Limits,
    ) -> float:
        """Return the better of two lower limits, each at half of delta: by the mean bias, and by steep weights.

        Weights of Lipschitz constant L prove a distance of 1/(1 + L) of their error: all of it for the mean bias, which
        may have either sign, and a third for L = 2, whose error is 2 smooth - |bias| and whose total variation is 2.
        """
        del table, cutoff
        tally, each = whole_tally(source), delta / 2.0
        bias = abs(tally.residual_total) / tally.weight_total
        steep = 2.0 * estimate - bias - limits.lower_margin(tally, each, 2.0)
        return max(limits.bias_lower(tally, each), steep / 3.0)

    def notes(self, tally: Tally) -> tuple[str, ...]:
        """Return what estimate and limits are."""
        return (
            "the estimate is the smooth calibration error; the lower limit comes from the mean bias or from smooth "
            f"weights, the upper limit is that of the error of {_bins(tally)} bins plus that of the mean distance "
            "between forecasts and the mean of their bin",
        )


def _bins(tally: Tally) -> int:
    return math.ceil(math.pow(effective_rows(tally), 1.0 / 3.0))


class Expected(WeightedMeasure):
    """The expected calibration error, over distinct forecasts."""

    name = field = "ece"
    bounds_intervals = True  # the weights of an interval are among those that vary as they like
    savings = Savings(nondecreasing=1.0, monotone=1.0, any=1.0)

    @property
    def lower_is_cutoffs(self) -> bool:
        """Its weights may vary as they like."""
        return True

    def estimate(self, tally: Tally) -> float:
        """Return the plug-in over distinct forecasts."""
        return plug_in_error(tally)

    def witness(self, delta: float) -> Witnessing:
        """Return what finds the worst interval."""
        del delta
        return interval_weight

    def caution(self, tally: Tally) -> str | None:
        """Return why there is nothing to see where forecasts hardly repeat."""
        note = continuity_note(tally)
        if note is None:
            return None
        said = "no ECE certificate is possible here, the limit is true but useless: {why}"
        return Phrase(said, code=USELESS_LIMIT, why=note)


@dataclass(frozen=True)
class RiskGap(JudgedMeasure):
    """What non-decreasing recalibration could save at most, over all thresholds or some."""

    over: Thresholds = EVERY_THRESHOLD
    paid: Costs = (None, None)

    name = field = "risk_gap"
    few_rows = True
    per_event = False
    steady = False  # the better the forecasts, the faster its margins shrink
    plannable = True
    from_cells = True
    savings = Savings(nondecreasing=1.0, monotone=2.0, any=None)

    @property
    def thresholds(self) -> Thresholds:
        """All thresholds, or those asked for."""
        return self.over

    @property
    def costs(self) -> Costs:
        """The costs given in place of a threshold."""
        return self.paid

    def with_thresholds(self, thresholds: Thresholds, costs: Costs) -> JudgedMeasure:
        """Return the measure over other thresholds."""
        return replace(self, over=thresholds, paid=costs)

    def estimate(self, tally: Tally) -> float:
        """Return the largest saving on the rows."""
        return self.saving(tally).saving

    def split(self, source: Tally | RowSource, deltas: Sequence[float], limits: Limits) -> Totals:
        """Split where the best lines may be, for the estimate and for limits at each level."""

        def scores(table: Totals) -> list[Score]:
            return [SAVING, *(score for delta in deltas for score in limits.saving_scores(table, self.over, delta))]

        return split_at_savings(source, self.over, scores, may_hold_extreme)

    def saving(self, table: Totals) -> LargestSaving:
        """Return what would have been saved on the rows, where, and by which line."""
        return saving_of(table, self.over, self.paid)

    def upper(self, source: Tally | RowSource, table: Totals, estimate: float, delta: float, limits: Limits) -> float:
        """Return the method's limit for all lines."""
        return limits.upper_saving(source, table, self.over, estimate, delta)

    def lower_from(
        self,
        source: Tally | RowSource,
        table: Totals,
        estimate: float,
        worst: WorstInterval,
        delta: float,
        seed: int,
        limits: Limits,
    ) -> float:
        """Return the method's limit for the best line."""
        del worst
        return limits.lower_saving(source, table, self.over, estimate, delta, seed)

    def bracket(self, table: Totals) -> tuple[float, float]:
        """Return the least and the most that a line can save."""
        unit = table.weight_max / table.weight_total
        low, high = bracket_redrawing(Stretches.of(table), self.over, SAVING)
        return low * unit, high * unit

    def bracket_limit(
        self, table: Totals, bits: int, delta: float, ends: tuple[float, float], limits: Limits
    ) -> tuple[float, float] | None:
        """Return the method's two ends for all lines."""
        return limits.bracket_saving(table, bits, self.over, delta, *ends)


def judged_measure(name: str, variation: float, threshold: Any, vain: Any, missed: Any) -> JudgedMeasure:
    """Return the measure that users ask for, with what they say of it."""
    check_choice(name, "measure", tuple(MEASURES))
    measure = MEASURES[name].with_variation(check_number(variation, "variation", low=0.0))
    if threshold is None and vain is None and missed is None:
        return measure
    return measure.with_thresholds(*check_threshold_range(threshold, vain, missed))


JUDGED: dict[str, JudgedMeasure] = {
    each.name: each for each in (Cutoff(), Smooth(), BoundedVariation(), Distance(), Expected(), RiskGap())
}
"""The measures above, by name."""
