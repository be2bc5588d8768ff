"""How the maps of recalibration are fitted: rows as totals, isotonic steps, logistic curves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import UndefinedError
from calibrant.core.isotonic import isotonic_fit
from calibrant.core.logistic import Curve, Features, Points, fit_logistic, logit_of, pool, separation
from calibrant.core.types import FloatArray, IntArray
from calibrant.core.voices import Either, Option, Phrase
from calibrant.measures.savings import largest_saving
from calibrant.repairs.results import ROUNDING
from calibrant.rows.checks import Observations
from calibrant.rows.grids import Grid
from calibrant.rows.hints import row_hints
from calibrant.rows.memory import ArrayRows
from calibrant.rows.refinement import TOLERANCE, refine, some_table, split_at_extremes
from calibrant.rows.runs import group_starts, prefix_sums
from calibrant.rows.savings import EVERY_THRESHOLD, SAVING, Stretches, largest_redrawing
from calibrant.rows.sources import FEW_ROWS, RowSource
from calibrant.rows.tally import Tally, Totals

_ISOTONIC_GRID = Grid(18, 0.0, 1.0)  # some tens of rows a cell where there are ten million: few cells must be opened
_POOLED = 4096
_OF_SCORES = ("other_class", "repeated_rows")
_HARDLY = 1e-6  # by which a curve rises on the logit scale where its slopes may be rounding


class FitErrors(NamedTuple):
    """What is left of each error on the rows that a map was fitted to; the Brier score takes fractions for chances."""

    cutoff: float
    risk_gap: float
    brier: float


FindErrors = Callable[[], FitErrors]
"""What finds them: maps that are fitted to forecast other rows alone do without."""


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
        if rows.y_prob.size < FEW_ROWS:
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

    def errors(self, forecast: FloatArray) -> FitErrors:
        """Return the errors on these rows of new forecasts, a monotone function of ``value``."""
        if isinstance(self.source, ArrayRows):
            rows = self.source.observations
            recalibrated = ArrayRows(replace(rows, y_prob=forecast))
            table = split_at_extremes(recalibrated)
            curve, squares = table.residual_prefix(), float(table.residual_square.sum())
            if not rows.binary_outcomes:  # y (1 - h)^2 + (1 - y) h^2 = (y - h)^2 + y (1 - y)
                squares += float(self.outcome @ (1.0 - rows.y_true))
            gap = largest_saving(recalibrated, EVERY_THRESHOLD).saving
        else:
            assert self.weight is not None
            # Where the map is flat, different forecasts have become equal, and nothing can end between them.
            starts = group_starts(forecast)
            values = forecast[starts]
            weight, outcome = (np.add.reduceat(each, starts, dtype=np.float64) for each in (self.weight, self.outcome))
            curve = prefix_sums(outcome - weight * values)
            squares = float(
                self.outcome @ np.square(1.0 - forecast) + (self.weight - self.outcome) @ np.square(forecast)
            )
            order = slice(None) if values[0] <= values[-1] else slice(None, None, -1)
            stretches = Stretches(values[order], values[order], weight[order], outcome[order])
            gap = min(largest_redrawing(stretches, EVERY_THRESHOLD, SAVING).score / self.weight_total, 1.0)
        brier = min(max(squares / self.weight_total, 0.0), 1.0)
        return FitErrors(float(curve.max() - curve.min()) / self.weight_total, gap, brier)

    @property
    def points(self) -> Points:
        """What curves are fitted to."""
        return Points(self.value, self.outcome, self.weight)

    @property
    def hints(self) -> tuple[str, ...]:
        """What the rows make one suspect; of scores only what rests on their order."""
        found = row_hints(some_table(self.source))
        return found if self.scores is None else tuple(hint for hint in found if hint.code in _OF_SCORES)

    @cached_property
    def pooled(self) -> Points:
        """Groups of neighbours: a small sample much like the whole."""
        if not isinstance(self.source, Tally):
            grid = Grid.covering(float(self.value.min()), float(self.value.max()))
            cells = self.source.histogram(grid)
            weight = cells.weight.astype(np.float64)
            value = np.clip((cells.outcome - cells.residual) / weight, cells.low, cells.high)
            return Points(value, cells.outcome, weight)
        return self.points if self.value.size <= 4 * _POOLED else pool(self.points, size=_POOLED)

    @cached_property
    def steps(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The smallest and largest value of each step of the isotonic regression, its mean outcome and weight."""
        table = refine(self.source, _may_hold_corner, _ISOTONIC_GRID)
        starts, value = _blocks(table)
        ends = np.append(starts[1:], len(table)) - 1
        low, high = table.low[starts], table.high[ends]
        if self.scores is not None:
            low, high = (self.scores[score_numbers(each, self.scores.size)] for each in (low, high))
        return low, high, value, np.add.reduceat(table.weight, starts, dtype=np.float64)

    def mean(self, values: FloatArray) -> float:
        """Return the weighted mean of something that has a value at each of ``value``."""
        return float(values.sum() if self.weight is None else values @ self.weight) / self.weight_total


def score_numbers(forecast: FloatArray, size: int) -> IntArray:
    """Return the numbers k of forecasts k / size."""
    return np.rint(forecast * size).astype(np.int64)


# --- Isotonic regression ----------------------------------------------------------------------------------------------


def moved_inside(value: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the values of isotonic steps with those of 0 and 1 moved inside, in increasing order still.

    A step of m rows without events gets (0 + 1/2)/(m + 1), or a third of the next step's value where that is less; one
    without non-events likewise from above. So the forecasts of all its rows together grow by less than half an event.
    """
    moved = value.copy()
    reach = 0.5 / (weight[[0, -1]] + 1.0)
    if value[0] <= TOLERANCE:
        moved[0] = min(reach[0], value[1] / 3.0) if value.size > 1 else reach[0]
    if value[-1] >= 1.0 - TOLERANCE:
        moved[-1] = 1.0 - (min(reach[1], (1.0 - value[-2]) / 3.0) if value.size > 1 else reach[1])
    return moved


def _blocks(table: Totals) -> tuple[IntArray, FloatArray]:
    """Return the entries at which the steps of an isotonic regression begin, and their mean outcomes, increasing."""
    starts = isotonic_fit(table.outcome / table.weight, table.weight).borders[:-1]
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
    slope = isotonic_fit(table.outcome / table.weight, table.weight).curve
    reached = np.cumsum(table.outcome) - table.outcome
    curve = np.cumsum(slope * table.weight) - slope * table.weight
    dip = slope * (table.weight - table.outcome)
    slack = TOLERANCE * table.weight_total
    mixed = (table.outcome > 0.0) & (table.outcome < table.weight) & (table.high > table.low)
    return np.flatnonzero(mixed & (reached - curve < dip + slack))


# --- Logistic curves --------------------------------------------------------------------------------------------------


def smoothed_targets(sample: Sample) -> tuple[float, float]:
    """Return what an outcome of 0 and one of 1 are pulled to: Platt's rule, with sums of outcomes for counts."""
    events, others = sample.outcome_total, sample.weight_total - sample.outcome_total
    return 1.0 / (others + 2.0), (events + 1.0) / (events + 2.0)


_STEPS = Phrase(
    "fit with {isotonic} or {constant}", isotonic=Option("method", "isotonic"), constant=Option("method", "constant")
)
NO_CURVE = Phrase("{how}", how=Either("use IsotonicRecalibrator() or ConstantRecalibrator()", _STEPS))
"""What can be fitted where no curve can."""


def fit_curve(
    sample: Sample,
    features: Features,
    targets: tuple[float, float],
    *,
    intercept: bool = True,
    not_negative: bool = False,
) -> Curve:
    """Return the most likely logistic curve, as `core.logistic.fit_logistic` finds it.

    Outcomes of one class, or one forecast for everybody, give a level alone; so do outcomes that go neither with the
    features nor against them, of which the search leaves a slope that is rounding.
    """
    if intercept and _is_of_one_kind(sample):
        return _level_curve(sample, features, targets)
    curve = fit_logistic(
        sample.points,
        features,
        pooled=sample.pooled,
        targets=targets,
        intercept=intercept,
        not_negative=not_negative,
    )
    if not curve.settled:
        raise UndefinedError(
            "the likelihood is so flat that the curve does not settle: the forecasts nearly separate the outcomes, or "
            "hardly differ",
            remedy=NO_CURVE,
        )
    if not np.isfinite(curve.slopes).all():
        raise UndefinedError(
            "holds scores that differ by less than float64 can divide by",
            argument="y_prob",
            remedy="scale the scores up",
        )
    if intercept and _has_rounded_slopes(sample, features, curve, not_negative=not_negative):
        return _level_curve(sample, features, targets)
    return curve


def _level_curve(sample: Sample, features: Features, targets: tuple[float, float]) -> Curve:
    """Return the most likely curve without slopes."""
    low, high = targets
    level = logit_of(low + (high - low) * sample.outcome_total / sample.weight_total)
    none = np.zeros(len(features(sample.value[:1])))
    return Curve(none, none, level, True)


def _is_of_one_kind(sample: Sample) -> bool:
    """Return whether all forecasts are the same, or all outcomes of one class."""
    value, outcome, weight = sample.points
    if value.min() == value.max() or outcome.max() <= 0.0:
        return True
    return bool((outcome >= (1.0 if weight is None else weight)).all())


def _has_rounded_slopes(sample: Sample, features: Features, curve: Curve, *, not_negative: bool) -> bool:
    """Return whether outcomes pull no slope away from 0, by more than sums of them are rounded.

    All values are gone through only where the curve hardly rises from the least to the largest.
    """
    ends = features(np.array([sample.value.min(), sample.value.max()]))
    with np.errstate(over="ignore"):
        rise = np.abs(curve.slopes * (ends[:, 1] - ends[:, 0])).max()
    if not rise <= _HARDLY:
        return False
    weight, outcome = sample.points.weights, sample.outcome.astype(np.float64)
    expected = weight * (sample.outcome_total / sample.weight_total)
    column = features(sample.value) - curve.centres[:, None]
    pull, terms = column @ (outcome - expected), np.abs(column) @ (outcome + expected)
    return bool(((pull if not_negative else np.abs(pull)) <= ROUNDING * terms).all())


def refuse_no_maximum(sample: Sample, *, either_way: bool, remedy: str) -> None:
    """Refuse outcomes to which no finite curve is the most likely: one class, or classes that do not overlap."""
    found = separation(sample.points)
    if found in ("no events", "only events"):
        raise UndefinedError(
            f"every outcome is {'0' if found == 'no events' else '1'}, so that no finite logistic curve is the most "
            "likely",
            remedy=remedy,
        )
    if found == "upwards" or (either_way and found == "downwards"):
        raise UndefinedError(
            "the forecasts separate the outcomes perfectly, so that the logistic curve would become a step",
            remedy=remedy,
        )


_FIT_PLATT = Phrase("fit with {platt}", platt=Option("method", "platt"))
_CLIP_OR_PLATT = Phrase("{clip}, or {fit}", clip=Option("clip", "1e-6"), fit=_FIT_PLATT)

WITH_PLATT = Either("use PlattRecalibrator()", _FIT_PLATT)
"""What helps where no other curve can be fitted."""


def refuse_ends(sample: Sample, clip: float | None, otherwise: str) -> None:
    """Refuse forecasts of exactly 0 or 1, whose logarithms are infinite."""
    if clip is not None:
        return
    ends = (sample.value == 0.0) | (sample.value == 1.0)
    if ends.any():
        end = float(sample.value[np.flatnonzero(ends)[0]])
        raise UndefinedError(
            f"holds forecasts of exactly {end:g}, whose logit is infinite",
            argument="y_prob",
            remedy=Phrase(
                "say how far inside they are to be taken, as in {how}",
                how=Either(f"clip=1e-6, or {otherwise}", _CLIP_OR_PLATT),
            ),
        )


def clipped(value: FloatArray, clip: float | None) -> FloatArray:
    """Return forecasts kept so far away from 0 and 1."""
    return value if clip is None else np.clip(value, clip, 1.0 - clip)
