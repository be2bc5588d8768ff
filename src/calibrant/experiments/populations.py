"""Populations of finitely many forecasts, whose errors are known exactly and whose rows are drawn as counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

import calibrant

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Population:
    """Forecasts, each with its share of the rows and the chance of an event there.

    A sample of a million rows is a few hundred counts, so that experiments over many sizes take no longer for the large
    ones; and every error of the population is a finite sum.

    Attributes
    ----------
    name : str
        In words.
    forecast, chance, share : array of shape (m,)
        Distinct forecasts, the chance of an event at each, and shares that add up to 1.
    """

    name: str
    forecast: FloatArray
    chance: FloatArray
    share: FloatArray

    @classmethod
    def evenly(cls, name: str, forecast: Any, chance: Any) -> Population:
        """Return the population in which all forecasts are equally frequent."""
        forecast, chance = np.asarray(forecast, dtype=float), np.asarray(chance, dtype=float)
        return cls(name, forecast, chance, np.full(forecast.size, 1.0 / forecast.size))

    def counts(self, generator: np.random.Generator, rows: int) -> tuple[Any, Any]:
        """Draw independent rows, and return how many had each forecast and how many of those were events."""
        drawn = generator.multinomial(rows, self.share)
        return drawn, generator.binomial(drawn, self.chance)

    def sample(self, generator: np.random.Generator, rows: int) -> calibrant.Tally:
        """Draw independent rows."""
        return self.tally(*self.counts(generator, rows))

    def tally(self, rows: Any, events: Any, *, forecast: Any = None) -> calibrant.Tally:
        """Return counts as a tally, if given with other forecasts in place of the population's own."""
        return calibrant.Tally.from_counts(self.forecast if forecast is None else forecast, rows, events)

    def law(self) -> calibrant.Tally:
        """Return the population itself as a tally, chances in place of outcomes."""
        return calibrant.Tally.from_arrays(self.chance, self.forecast, sample_weight=self.share)

    def ece(self) -> float:
        """Return the ECE of the population itself."""
        return float(self.share @ np.abs(self.chance - self.forecast))

    def cutoff(self, forecast: Any = None) -> float:
        """Return the Cutoff error of the population itself, if given with other forecasts in place of its own."""
        values = self.forecast if forecast is None else forecast
        return calibrant.cutoff_calibration_error(self.chance, values, sample_weight=self.share)


def middles(count: int) -> FloatArray:
    """Return the middles of equal parts of [0, 1]: a grid that stands for the uniform law."""
    return (np.arange(count) + 0.5) / count


def random_populations(generator: np.random.Generator, count: int, *, most: int = 6) -> list[Population]:
    """Return forecasters of a few forecasts each, drawn to be as different as possible.

    Half of them have chances unrelated to the forecasts; the others have chances near them, so that small errors occur
    too. Shares range from even to lopsided.
    """
    found = []
    for number in range(count):
        size = int(generator.integers(2, most + 1))
        forecast = np.sort(generator.choice(np.linspace(0.0, 1.0, 201), size, replace=False))
        share = generator.dirichlet(np.full(size, generator.choice([0.3, 1.0, 10.0])))
        share = np.maximum(share, 1e-6) / np.maximum(share, 1e-6).sum()
        free = generator.random(size)
        near = np.clip(forecast + generator.choice([0.01, 0.1]) * (2.0 * free - 1.0), 0.0, 1.0)
        found.append(Population(f"random {number}", forecast, free if number % 2 else near, share))
    return found


@cache
def partitions(count: int) -> npt.NDArray[np.int64]:
    """Return all ways to pool some things, each as the number of the pool that every one of them belongs to."""
    found = [[0]]
    for _ in range(count - 1):
        found = [[*labels, pool] for labels in found for pool in range(max(labels) + 2)]
    return np.array(found)


def nearest_calibrated(population: Population, forecast: Any = None) -> tuple[FloatArray, float]:
    """Return the calibrated predictor nearest to the forecasts, and its distance: dCE, by trying everything.

    A calibrated predictor is constant on the pools of some partition of the forecasts, and equal to the event rate
    there. (One that saw more than the forecast could come nearer still.)
    """
    values = population.forecast if forecast is None else np.asarray(forecast)
    pooled = partitions(values.size)[:, :, None] == np.arange(values.size)
    weight = pooled * population.share[None, :, None]
    events = (weight * population.chance[None, :, None]).sum(axis=1)
    rate = events / np.maximum(weight.sum(axis=1), 1e-300)
    calibrated = np.take_along_axis(rate, partitions(values.size), axis=1)
    distance = np.abs(calibrated - values) @ population.share
    best = int(np.argmin(distance))
    return calibrated[best], float(distance[best])
