"""Scores of forecasts by which models are compared: what each row scores, and how far apart two models can be there.

.. [1] Gneiting, Raftery (2007), Strictly proper scoring rules, prediction, and estimation.
.. [2] Vickers, Elkin (2006), Decision curve analysis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from calibrant.certificates.score_names import needs_threshold
from calibrant.certificates.unit_means import unit_mean_limits
from calibrant.core.errors import InputError
from calibrant.core.types import FloatArray
from calibrant.rows.paired import PairedRows


class MeanLimits(NamedTuple):
    """The mean of a score, or of a difference of scores, with limits."""

    estimate: float
    lower: float
    upper: float


class Values(NamedTuple):
    """A value for each row, the least that any can be, and the most."""

    each: FloatArray
    least: float
    most: float

    @classmethod
    def within(cls, each: FloatArray, bound: float) -> Values:
        """Return values that are at most so much in size."""
        return cls(each, -bound, bound)

    def limits(self, rows: PairedRows, delta: float, largest: float | None = None) -> MeanLimits:
        """Return the weighted mean and its limits, each wrong with probability at most delta."""
        alone = rows.codes is None and rows.share is None
        size = None if alone else rows.per_unit(np.ones(rows.rows))
        bound = max(-self.least, self.most)
        lower, upper = unit_mean_limits(rows.per_unit(self.each), size, bound, delta, largest=largest)
        estimate = rows.mean(self.each)
        return MeanLimits(estimate, min(max(lower, self.least), estimate), max(min(upper, self.most), estimate))


@dataclass(frozen=True)
class BrierScore:
    """Mean of (y - p)^2."""

    threshold: ClassVar[None] = None
    larger_is_better: ClassVar[bool] = False
    given_forecasts: ClassVar[bool] = True

    def of(self, rows: PairedRows, name: str) -> Values:
        """Return what each row of one model scores."""
        forecast = rows.forecasts[name]
        most = float(np.square(np.maximum(forecast, 1.0 - forecast)).max())
        return Values(np.square(rows.outcome - forecast), 0.0, most)

    def difference(self, rows: PairedRows, first: str, second: str) -> Values:
        """Return the difference on each row: (q - p) (2 y - p - q), without cancelling digits."""
        one, other = rows.forecasts[first], rows.forecasts[second]
        apart, both = other - one, one + other
        bound = float((np.abs(apart) * np.maximum(both, 2.0 - both)).max())
        return Values.within(apart * (2.0 * rows.outcome - both), bound)


@dataclass(frozen=True)
class LogLoss:
    """Mean of -ln(probability given to what happened), for forecasts other than 0 and 1."""

    threshold: ClassVar[None] = None
    larger_is_better: ClassVar[bool] = False
    given_forecasts: ClassVar[bool] = True

    def of(self, rows: PairedRows, name: str) -> Values:
        """Return what each row of one model scores."""
        event, other = self._losses(rows, name)
        return Values(rows.outcome * event + (1.0 - rows.outcome) * other, 0.0, float(np.maximum(event, other).max()))

    def difference(self, rows: PairedRows, first: str, second: str) -> Values:
        """Return the difference on each row."""
        one, two = self._losses(rows, first), self._losses(rows, second)
        event, other = one[0] - two[0], one[1] - two[1]
        values = rows.outcome * event + (1.0 - rows.outcome) * other
        return Values.within(values, float(np.maximum(np.abs(event), np.abs(other)).max()))

    def _losses(self, rows: PairedRows, name: str) -> tuple[FloatArray, FloatArray]:
        """Return the loss if the event happens, and if it does not."""
        forecast = rows.forecasts[name]
        if not 0.0 < forecast.min() <= forecast.max() < 1.0:
            raise InputError(
                f"model {name!r} forecasts 0 or 1, for which the log loss has no bound",
                remedy="compare by the Brier score, or recalibrate so that forecasts stay inside (0, 1)",
            )
        return -np.log(forecast), -np.log1p(-forecast)


@dataclass(frozen=True)
class DecisionLoss:
    """Mean loss of acting on forecasts from a threshold t up: t for a false alarm, 1 - t for a missed event."""

    threshold: float
    larger_is_better: ClassVar[bool] = False
    given_forecasts: ClassVar[bool] = False

    def of(self, rows: PairedRows, name: str) -> Values:
        """Return what each row of one model loses."""
        acts = rows.forecasts[name] >= self.threshold
        lost = np.where(acts, self.threshold * (1.0 - rows.outcome), (1.0 - self.threshold) * rows.outcome)
        return Values(lost, 0.0, max(self.threshold, 1.0 - self.threshold))

    def difference(self, rows: PairedRows, first: str, second: str) -> Values:
        """Return the difference on each row: t - y where only the first acts, y - t where only the second does."""
        acts, other = (rows.forecasts[name] >= self.threshold for name in (first, second))
        apart = acts.astype(np.float64) - other
        return Values.within(apart * (self.threshold - rows.outcome), max(self.threshold, 1.0 - self.threshold))


@dataclass(frozen=True)
class Benefit:
    """Net benefit of acting on forecasts from a threshold t up: true positives less t/(1 - t) false ones, per row."""

    threshold: float
    larger_is_better: ClassVar[bool] = True
    given_forecasts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.threshold == 1.0:
            raise InputError(
                "is 1, where one false positive outweighs any number of true ones and net benefit is undefined",
                argument="threshold",
                remedy="keep it below 1, or use measure='decision_risk'",
            )

    def of(self, rows: PairedRows, name: str) -> Values:
        """Return what each row of one model gains."""
        acts = rows.forecasts[name] >= self.threshold
        gained = acts * (rows.outcome - self.threshold) / (1.0 - self.threshold)
        return Values(gained, -self.threshold / (1.0 - self.threshold), 1.0)

    def difference(self, rows: PairedRows, first: str, second: str) -> Values:
        """Return the difference on each row."""
        acts, other = (rows.forecasts[name] >= self.threshold for name in (first, second))
        apart = acts.astype(np.float64) - other
        bound = max(1.0, self.threshold / (1.0 - self.threshold))
        return Values.within(apart * (rows.outcome - self.threshold) / (1.0 - self.threshold), bound)


Score = BrierScore | LogLoss | DecisionLoss | Benefit

_WHOLE: Mapping[str, Score] = {"brier": BrierScore(), "log": LogLoss()}
_AT_THRESHOLDS: Mapping[str, Callable[[float], Score]] = {"decision_risk": DecisionLoss, "net_benefit": Benefit}


def scores_of(name: str, thresholds: tuple[float, ...]) -> tuple[Score, ...]:
    """Return the score of a name, at each of several thresholds where it has one."""
    return tuple(map(_AT_THRESHOLDS[name], thresholds)) if needs_threshold(name) else (_WHOLE[name],)
