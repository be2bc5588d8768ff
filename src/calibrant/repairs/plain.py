"""Maps as numbers alone, fitted and applied: what recalibrators are made of, and reports use as it is.

A recalibrator is an estimator of scikit-learn besides, which takes longer to load than most maps take to fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, get_args

import numpy as np

from calibrant.core.logistic import CHUNK, expit, logit
from calibrant.core.types import FloatArray
from calibrant.repairs.fits import (
    FindErrors,
    FitErrors,
    Sample,
    clipped,
    fit_curve,
    moved_inside,
    refuse_ends,
    refuse_no_maximum,
    smoothed_targets,
)

Ends = Literal["exact", "inside"]
ENDS: tuple[str, ...] = get_args(Ends)


def most_moved(ends: str, weight_total: float) -> float:
    """Return what moving the ends of isotonic regression inside adds to the error on its rows at most: half a row."""
    return 0.5 / weight_total if ends == "inside" else 0.0


class PlainMap(ABC):
    """A monotone map of forecasts, or of scores, to better forecasts."""

    @abstractmethod
    def _fit_map(self, sample: Sample) -> FindErrors:
        """Set the fitted attributes, and return what finds the errors of the map on the sample."""

    @abstractmethod
    def _map(self, value: FloatArray) -> FloatArray:
        """Return the recalibrated forecasts of checked values."""

    def _mapped(self, value: FloatArray) -> FloatArray:
        """Return the recalibrated forecasts of checked values, some thousand at a time to spare memory."""
        forecast = np.empty(value.size)
        for begin in range(0, value.size, CHUNK):
            part = slice(begin, begin + CHUNK)
            forecast[part] = self._map(value[part])
        return forecast


class IsotonicMap(PlainMap):
    """A step function whose steps are means of outcomes."""

    interpolation: Literal["step", "linear"] = "step"
    ends: Ends = "exact"

    def _fit_map(self, sample: Sample) -> FindErrors:
        self.block_low_, self.block_high_, value, weight = sample.steps
        self.block_value_ = value if self.ends == "exact" else moved_inside(value, weight)
        # Only the first step and the last are off, in opposite directions, so that no interval is worse than both. A
        # single step is one of them, and whoever has it for a threshold would save just what it is off.
        moved = float((np.abs(self.block_value_ - value) * weight).max()) / sample.weight_total
        share, forecast = weight / sample.weight_total, self.block_value_
        brier = float(share @ (value * np.square(1.0 - forecast) + (1.0 - value) * np.square(forecast)))
        return lambda: FitErrors(moved, moved, min(brier, 1.0))

    def _map(self, value: FloatArray) -> FloatArray:
        block = np.searchsorted(self.block_low_[1:], value, side="right")
        result: FloatArray = self.block_value_[block]
        if self.interpolation == "linear" and self.block_low_.size > 1:
            between = np.flatnonzero((value > self.block_high_[block]) & (block < self.block_low_.size - 1))
            block = block[between]
            begin, end = self.block_high_[block], self.block_low_[block + 1]
            rise = self.block_value_[block + 1] - self.block_value_[block]
            result[between] += (value[between] - begin) / (end - begin) * rise
        return result


class PlattMap(PlainMap):
    """A logistic curve through the forecasts."""

    on: Literal["forecast", "logit"] = "forecast"
    smoothing: bool = True
    clip: float | None = None

    def _fit_map(self, sample: Sample) -> FindErrors:
        if self.on == "logit":
            refuse_ends(sample, self.clip, "fit with on='forecast'")
        if not self.smoothing:
            refuse_no_maximum(sample, either_way=True, remedy="keep smoothing=True, or collect more rows")
        targets = smoothed_targets(sample) if self.smoothing else (0.0, 1.0)
        curve = fit_curve(sample, self._features, targets)
        (self.slope_,), (self.centre_,), self.level_ = curve.slopes.tolist(), curve.centres.tolist(), curve.level
        return lambda: sample.errors(self._mapped(sample.value))

    def _features(self, value: FloatArray) -> FloatArray:
        return (value if self.on == "forecast" else logit(clipped(value, self.clip)))[None]

    def _map(self, value: FloatArray) -> FloatArray:
        if self.slope_ == 0.0:  # at p = 0 and 1 the logit is infinite, and zero times infinity is nothing
            return np.full(value.size, expit(np.array([self.level_]))[0])
        with np.errstate(over="ignore"):  # the curve's limit, 0 or 1, is right
            return expit(self.slope_ * (self._features(value)[0] - self.centre_) + self.level_)


class ConstantMap(PlainMap):
    """The mean outcome, whatever the forecast is."""

    def _fit_map(self, sample: Sample) -> FindErrors:
        self.constant_ = min(1.0, sample.outcome_total / sample.weight_total)
        return lambda: FitErrors(0.0, 0.0, self.constant_ * (1.0 - self.constant_))

    def _map(self, value: FloatArray) -> FloatArray:
        return np.full(value.size, self.constant_)
