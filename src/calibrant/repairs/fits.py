"""How the maps of recalibration are fitted: rows as totals, isotonic steps, logistic curves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.isotonic import isotonic_fit
from calibrant.core.types import FloatArray, IntArray
from calibrant.rows.checks import Observations
from calibrant.rows.grids import Grid
from calibrant.rows.intake import SORT_BELOW_ROWS
from calibrant.rows.memory import ArrayRows
from calibrant.rows.refinement import TOLERANCE, refine, split_at_extremes
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally, Totals, prefix_sums

_ISOTONIC_GRID = Grid(18, 0.0, 1.0)  # some tens of rows a cell where there are ten million: few cells must be opened
_POOLED = 4096
_NEWTON_STEPS = 500
_SURE = 1e-10  # squared step, in the likelihood's own metric, below which Newton steps need no check ...
_SETTLED = 1e-18  # ... and below which the step just taken was the last: the next would be its square
_ENOUGH_DESCENT = 1e-4
CHUNK = 1 << 15  # rows that stay in the processor's cache from one operation to the next


@dataclass(frozen=True, eq=False)
class Sample:
    """What a map is fitted to: outcomes and weights at forecasts or scores, ties merged or not.

    Attributes
    ----------
    value : forecasts or scores: the distinct ones in increasing order, or those of all rows in any order
    outcome : sum of w y at each
    weight : sum of w at each, or None where it is 1 everywhere
    source : the same rows as a tally or a `RowSource`
    scores : the scores that the forecasts 0/m, 1/m, ... of ``source`` stand for; None where they are themselves
    rows, weight_total, outcome_total : over all rows
    unit_weights : whether every row has weight 1
    """

    value: FloatArray
    outcome: npt.NDArray[Any]
    weight: npt.NDArray[Any] | None
    source: Tally | RowSource
    scores: FloatArray | None
    rows: int
    weight_total: float
    outcome_total: float
    unit_weights: bool

    @classmethod
    def of_tally(cls, tally: Tally, scores: FloatArray | None = None) -> Sample:
        """Return the sample of a tally, whose forecasts may stand for scores."""
        value = tally.forecast if scores is None else scores[score_numbers(tally.forecast, scores.size)]
        return cls(
            value=value,
            outcome=tally.outcome,
            weight=tally.weight,
            source=tally,
            scores=scores,
            rows=tally.row_total,
            weight_total=tally.weight_total,
            outcome_total=tally.outcome_total,
            unit_weights=tally.unit_weights,
        )

    @classmethod
    def of_rows(cls, rows: Observations) -> Sample:
        """Return the sample of checked rows: a tally for few, the rows as they are when sorting them takes long."""
        if rows.y_prob.size < SORT_BELOW_ROWS:
            return cls.of_tally(Tally.from_observations(rows))
        if rows.sample_weight is not None and not rows.sample_weight.all():
            rows = rows.take(np.flatnonzero(rows.sample_weight))
        weight = rows.sample_weight
        total = float(rows.y_true.sum(dtype=np.float64)) if weight is None else float(weight @ rows.y_true)
        return cls(
            value=rows.y_prob,
            outcome=rows.y_true if weight is None else weight * rows.y_true,
            weight=weight,
            source=ArrayRows(rows),
            scores=None,
            rows=rows.y_prob.size,
            weight_total=float(rows.y_prob.size) if weight is None else float(weight.sum()),
            outcome_total=total,
            unit_weights=weight is None or bool((weight == 1.0).all()),
        )

    def cutoff(self, forecast: FloatArray) -> float:
        """Return the Cutoff error on these rows of new forecasts, a monotone function of ``value``."""
        if isinstance(self.source, ArrayRows):
            rows = self.source.observations
            recalibrated = Observations(rows.y_true, forecast, rows.sample_weight, rows.binary_outcomes)
            curve = split_at_extremes(ArrayRows(recalibrated)).residual_prefix()
        else:
            assert self.weight is not None
            curve = prefix_sums(self.outcome - self.weight * forecast)
            # Where the map is flat, different forecasts have become equal, and no interval can end between them.
            curve = curve[np.concatenate([[True], forecast[1:] != forecast[:-1], [True]])]
        return float(curve.max() - curve.min()) / self.weight_total

    def mean(self, values: FloatArray) -> float:
        """Return the weighted mean of something that has a value at each of ``value``."""
        return float(values.sum() if self.weight is None else values @ self.weight) / self.weight_total


def score_numbers(forecast: FloatArray, size: int) -> IntArray:
    """Return the numbers k of forecasts k / size."""
    return np.rint(forecast * size).astype(np.int64)


# --- Isotonic regression ----------------------------------------------------------------------------------------------


def isotonic_steps(sample: Sample) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the smallest and the largest value of each step of the isotonic regression, and its mean outcome."""
    table = refine(sample.source, _may_hold_corner, _ISOTONIC_GRID)
    starts, value = _blocks(table)
    ends = np.append(starts[1:], len(table)) - 1
    low, high = table.low[starts], table.high[ends]
    if sample.scores is not None:
        low, high = (sample.scores[score_numbers(each, sample.scores.size)] for each in (low, high))
    return low, high, value


def _blocks(table: Totals) -> tuple[IntArray, FloatArray]:
    """Return the entries at which the steps of an isotonic regression begin, and their mean outcomes, increasing."""
    starts = isotonic_fit(table.outcome / table.weight, table.weight).blocks[:-1].astype(np.int64)
    while True:
        # Means of sums instead of running means: counts then give the same value however they were added up.
        value = np.add.reduceat(table.outcome, starts) / np.add.reduceat(table.weight, starts)
        rises = np.concatenate([[True], value[1:] > value[:-1]])
        if rises.all():
            return starts, np.minimum(value, 1.0)
        starts = starts[rises]


def _may_hold_corner(table: Totals) -> IntArray:
    """Return the entries inside which a step of the isotonic regression might begin.

    The regression is the slope of the greatest convex curve below the sums of outcomes. Inside an entry those sums rise
    latest when all non-events come first; only where even that gets below the curve so far can it have a corner.
    """
    slope = isotonic_fit(table.outcome / table.weight, table.weight).x
    reached = np.cumsum(table.outcome) - table.outcome
    curve = np.cumsum(slope * table.weight) - slope * table.weight
    dip = slope * (table.weight - table.outcome)
    slack = TOLERANCE * table.weight_total
    mixed = (table.outcome > 0.0) & (table.outcome < table.weight) & (table.high > table.low)
    return np.flatnonzero(mixed & (reached - curve < dip + slack))


# --- Logistic curves --------------------------------------------------------------------------------------------------

Features = Callable[[FloatArray], FloatArray]


def smoothed_targets(sample: Sample) -> tuple[float, float]:
    """Return what an outcome of 0 and one of 1 are pulled to: Platt's rule, with sums of outcomes for counts."""
    events, others = sample.outcome_total, sample.weight_total - sample.outcome_total
    return 1.0 / (others + 2.0), (events + 1.0) / (events + 2.0)


def fit_logistic(
    sample: Sample,
    features: Features,
    targets: tuple[float, float],
    *,
    intercept: bool = True,
    not_negative: bool = False,
) -> tuple[list[float], list[float], float]:
    """Return the most likely logistic curve: slopes of the features, their centres, and the level at the centres.

    ``targets`` are what outcomes of 0 and 1 count as. The start is the fit to pooled rows, so good that one or two
    passes over all rows are left.
    """
    value, outcome, weight = _pooled(sample)
    column = features(value)
    centre, scale = _centre_and_scale(column, weight / weight.sum(), intercept=intercept)
    kept = (features, targets, centre, scale, intercept, not_negative)
    start = np.zeros(len(column) + intercept)
    if value.size < sample.value.size:
        start, settled = _Likelihood(value, outcome, weight, *kept).maximise(start)
        if not settled:
            start = np.zeros_like(start)
    found, settled = _Likelihood(sample.value, sample.outcome, sample.weight, *kept).maximise(start)
    if not settled:
        raise ValueError(
            "the likelihood is so flat that the curve does not settle: the forecasts nearly separate the outcomes, or "
            "hardly differ; use IsotonicRecalibrator() or ConstantRecalibrator()"
        )
    with np.errstate(over="ignore"):
        slopes = found[: len(column)] / scale
    if not np.isfinite(slopes).all():
        raise ValueError("y_prob holds scores that differ by less than float64 can divide by; scale the scores up")
    return slopes.tolist(), centre.tolist(), float(found[-1]) if intercept else 0.0


def _centre_and_scale(column: FloatArray, share: FloatArray, *, intercept: bool) -> tuple[FloatArray, FloatArray]:
    """Return mean and root mean square of each feature, in an order in which no scale of scores overflows."""
    centre = column @ share if intercept else np.zeros(len(column))
    apart = column - centre[:, None]
    widest = np.maximum(np.abs(apart).max(axis=1), np.finfo(np.float64).tiny)
    scale = widest * np.sqrt(np.square(apart / widest[:, None]) @ share)
    scale[scale == 0.0] = 1.0
    return centre, scale


def _pooled(sample: Sample) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean value, outcome total and weight of groups of neighbours: a small sample much like the whole."""
    if not isinstance(sample.source, Tally):
        grid = Grid.covering(float(sample.value.min()), float(sample.value.max()))
        cells = sample.source.histogram(grid)
        weight = cells.weight.astype(np.float64)
        value = np.clip((cells.outcome - cells.residual) / weight, cells.low, cells.high)
        return value, cells.outcome, weight
    assert sample.weight is not None
    weight = sample.weight.astype(np.float64)
    if weight.size <= 4 * _POOLED:
        return sample.value, np.asarray(sample.outcome), weight
    starts = np.arange(0, weight.size, -(-weight.size // _POOLED))
    total = np.add.reduceat(weight, starts)
    share = weight / np.repeat(total, np.diff(starts, append=weight.size))  # first, so that huge scores do not overflow
    return np.add.reduceat(share * sample.value, starts), np.add.reduceat(sample.outcome, starts), total


class _Likelihood:
    """The mean negative log-likelihood of a logistic curve: convex, and minimised by damped Newton steps.

    The features are brought to mean 0 and mean square 1, so that the two-by-two or three-by-three systems are well
    conditioned whatever the scale of the scores.
    """

    def __init__(
        self,
        value: FloatArray,
        outcome: npt.NDArray[Any],
        weight: npt.NDArray[Any] | None,
        features: Features,
        targets: tuple[float, float],
        centre: FloatArray,
        scale: FloatArray,
        intercept: bool,
        not_negative: bool,
    ) -> None:
        self.value, self.outcome, self.weight = value, outcome, weight
        self.features, self.targets = features, targets
        self.centre, self.scale = centre[:, None], scale[:, None]
        self.intercept = intercept
        self.total = float(value.size if weight is None else weight.sum())
        self.bounded = np.zeros(len(centre) + intercept, dtype=bool)
        self.bounded[: len(centre)] = not_negative

    def _chunks(self) -> Any:
        """Go through (features, targets, weights) of some thousand rows at a time."""
        low, high = self.targets
        for begin in range(0, self.value.size, CHUNK):
            part = slice(begin, begin + CHUNK)
            columns = (self.features(self.value[part]) - self.centre) / self.scale
            if self.intercept:
                columns = np.concatenate([columns, np.ones((1, columns.shape[1]))])
            weight = 1.0 if self.weight is None else self.weight[part].astype(np.float64)
            yield columns, low * weight + (high - low) * self.outcome[part], weight

    def value_at(self, coefficient: FloatArray) -> float:
        """Return the mean of w ln(1 + exp(z)) - t z."""
        total = 0.0
        for columns, target, weight in self._chunks():
            linear = coefficient @ columns
            total += float((weight * np.logaddexp(0.0, linear) - target * linear).sum())
        return total / self.total

    def slope_and_bend(self, coefficient: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the gradient and the matrix of second derivatives."""
        slope = np.zeros(coefficient.size)
        bend = np.zeros((coefficient.size, coefficient.size))
        for columns, target, weight in self._chunks():
            rate = expit(coefficient @ columns)
            expected = weight * rate
            slope += columns @ (expected - target)
            bend += (columns * (expected * (1.0 - rate))) @ columns.T
        return slope / self.total, bend / self.total

    def maximise(self, start: FloatArray) -> tuple[FloatArray, bool]:
        """Return the best coefficients, and whether the search settled.

        Newton steps in the coefficients that are free to move (Bertsekas' projected Newton method: those at their bound
        that want to cross it stay), each halved until the likelihood improves by a share of what its slope promises.
        The function is convex, so this converges from any start; close to the end full steps are taken unchecked,
        because the improvement is then below what sums of many rows can show.
        """
        found = start
        for _ in range(_NEWTON_STEPS):
            slope, bend = self.slope_and_bend(found)
            free = ~(self.bounded & (found <= 0.0) & (slope > 0.0))
            step = np.zeros_like(found)
            step[free] = -np.linalg.lstsq(bend[np.ix_(free, free)], slope[free], rcond=None)[0]
            decrement = float(-slope @ step)
            there = self._inside(found + step)
            if decrement > _SURE or not np.array_equal(there, found + step):
                value = self.value_at(found)
                while not self.value_at(there) <= value + _ENOUGH_DESCENT * float(slope @ (there - found)):
                    step = step / 2.0
                    there = self._inside(found + step)
                    if np.array_equal(there, found):
                        return found, decrement <= _SURE
                found = there
                continue
            found = there
            if decrement <= _SETTLED:
                return found, True
        return found, False

    def _inside(self, coefficient: FloatArray) -> FloatArray:
        return np.where(self.bounded, np.maximum(coefficient, 0.0), coefficient)


def refuse_no_maximum(sample: Sample, *, either_way: bool, remedy: str) -> None:
    """Refuse outcomes to which no finite curve is the most likely: one class, or classes that do not overlap."""
    weight = 1.0 if sample.weight is None else sample.weight
    some_on, some_off = sample.value[sample.outcome > 0.0], sample.value[sample.outcome < weight]
    if some_on.size == 0 or some_off.size == 0:
        raise ValueError(
            f"every outcome is {'0' if some_on.size == 0 else '1'}, so that no finite logistic curve is the most "
            f"likely; {remedy}"
        )
    if sample.value.min() == sample.value.max():
        return
    upwards = some_on.min() >= some_off.max()
    downwards = either_way and some_off.min() >= some_on.max()
    if upwards or downwards:
        raise ValueError(
            f"the forecasts separate the outcomes perfectly, so that the logistic curve would become a step; {remedy}"
        )


def refuse_ends(sample: Sample, clip: float | None, otherwise: str) -> None:
    """Refuse forecasts of exactly 0 or 1, whose logarithms are infinite."""
    if clip is not None:
        return
    ends = (sample.value == 0.0) | (sample.value == 1.0)
    if ends.any():
        end = float(sample.value[np.flatnonzero(ends)[0]])
        raise ValueError(
            f"y_prob holds forecasts of exactly {end:g}, whose logit is infinite; say how far inside they are to be "
            f"taken, as in clip=1e-6, {otherwise}"
        )


def clipped(value: FloatArray, clip: float | None) -> FloatArray:
    """Return forecasts kept so far away from 0 and 1."""
    return value if clip is None else np.clip(value, clip, 1.0 - clip)


def logit(value: FloatArray) -> FloatArray:
    """Return ln(p / (1 - p)), infinite at 0 and 1."""
    with np.errstate(divide="ignore"):
        linear: FloatArray = np.log(value) - np.log1p(-value)
    return linear


def logit_of(share: float) -> float:
    """Return ln(p / (1 - p)) of one number strictly between 0 and 1."""
    return math.log(share) - math.log1p(-share)


def expit(linear: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(-z)), with all digits where it is close to 0."""
    with np.errstate(over="ignore", under="ignore"):
        odds = np.exp(-np.abs(linear))
        rate: FloatArray = np.where(linear >= 0.0, 1.0, odds) / (1.0 + odds)
    return rate
