"""Data sets of calibrated forecasts, simulated: what a plan tries limits on before there are any rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibrant.core.types import FloatArray, IntArray
from calibrant.rows.runs import group_starts
from calibrant.rows.tally import Tally

_SEED = 0
STEP = 0.5826  # a walk's maximum is that of Brownian motion less so many standard deviations of a step (Chernoff 1965)
APART = 1e-12


@dataclass(frozen=True, eq=False)
class Law:
    """Distinct forecasts, how often each occurs, and the usual variance inside those that were joined into one."""

    forecast: FloatArray
    share: FloatArray
    joined: float

    def _held(self) -> tuple[bytes, bytes, float]:
        return self.forecast.tobytes(), self.share.tobytes(), self.joined

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Law) and self._held() == other._held()

    def __hash__(self) -> int:
        return hash(self._held())


@dataclass(frozen=True)
class Samples:
    """Data sets of the same size: a line of counts for each, and a column for each distinct forecast."""

    forecast: FloatArray
    size: int
    rows: IntArray
    events: IntArray
    inside: float
    """How far the range of a residual curve may reach beyond what joined forecasts show of it."""

    @property
    def residual(self) -> FloatArray:
        """Sum of (y - p) at each forecast."""
        return self.events - self.rows * self.forecast

    @property
    def residual_square(self) -> FloatArray:
        """Sum of (y - p)^2 at each forecast."""
        return self.events * np.square(1.0 - self.forecast) + (self.rows - self.events) * np.square(self.forecast)

    def tallies(self) -> Iterator[Tally]:
        """Return the data sets one by one; a forecast listed twice stands for two that are hardly different."""
        forecast = self.forecast
        if forecast.size > 1 and not np.diff(forecast).all():
            forecast = forecast + APART * np.arange(forecast.size)
        for rows, events in zip(self.rows, self.events, strict=True):
            yield Tally.from_counts(forecast, rows, events)

    @property
    def largest(self) -> FloatArray:
        """The largest |sum of residuals| over intervals, as far as it may reach: the range of their running total."""
        total = np.cumsum(self.residual, axis=1)
        largest: FloatArray = np.maximum(total.max(axis=1), 0.0) - np.minimum(total.min(axis=1), 0.0) + self.inside
        return largest


def law_of(forecasts: FloatArray, weights: FloatArray | None, most: int) -> Law:
    """Return the law of given forecasts, with neighbours joined if more than ``most`` are distinct.

    Neighbours in one of most/4 stretches of equal width and in one of most 3/4 stretches of equal variance become their
    mean. That makes rows no less noisy: p (1 - p) is concave.
    """
    order = np.argsort(forecasts, kind="stable")
    starts = group_starts(forecasts[order])
    forecast = forecasts[order][starts]
    share = np.add.reduceat(np.ones(order.size) if weights is None else weights[order], starts)
    share = share / share.sum()
    forecast, share = forecast[share > 0.0], share[share > 0.0]
    if forecast.size <= most:
        return Law(forecast, share, 0.0)
    variance = share * forecast * (1.0 - forecast)
    passed = (np.cumsum(variance) - variance / 2.0) / variance.sum()
    cells = np.floor(forecast * (most // 4)) + np.floor(passed * (3 * most // 4))  # neither ever falls
    starts = group_starts(cells)
    joined = np.add.reduceat(share, starts)
    within = np.add.reduceat(variance, starts)
    inside = within - np.maximum.reduceat(variance, starts)  # a forecast alone has no inside
    step = np.average(np.sqrt(inside), weights=within)  # the range ends in a stretch as often as it varies there
    return Law(np.add.reduceat(share * forecast, starts) / joined, joined, float(step**2))


def laws_of(variance: float, levels: int) -> tuple[Law, ...]:
    """Return the laws to plan for where only the mean of p (1 - p) is known: forecasts near p, or near p and 1 - p.

    Distinct, because intervals then may end anywhere; near 1 - p as well, because rare events and rare non-events make
    steps to both sides, and because binomial limits see the pooled rate of events, at most a half.
    """
    forecast = 0.5 - math.sqrt(0.25 - variance)
    share = np.full(levels, 1.0 / levels)
    halves = np.repeat([forecast, 1.0 - forecast], [levels - levels // 2, levels // 2])
    return tuple(Law(each, share, variance / levels) for each in (np.full(levels, forecast), halves))


def draw(law: Law, rows: int, draws: int) -> Samples:
    """Return data sets of so many rows, with outcomes that follow the forecasts; the same ones every time."""
    rng = np.random.default_rng(_SEED)
    counts = rng.multinomial(rows, law.share, size=draws)
    inside = 2.0 * STEP * math.sqrt(rows * law.joined)
    return Samples(law.forecast, rows, counts, rng.binomial(counts, law.forecast), inside)


def largest_sums(scores: FloatArray) -> FloatArray:
    """Return the largest sum of neighbouring scores in each line, at least 0."""
    prefix = np.cumsum(scores, axis=1)
    largest: FloatArray = (prefix - np.minimum(np.minimum.accumulate(prefix, axis=1), 0.0)).max(axis=1)
    # The lowest point must come before the highest, and may be the start.
    return np.maximum(largest, 0.0)
