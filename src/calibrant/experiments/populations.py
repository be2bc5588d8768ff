"""Populations of finitely many forecasts, whose errors are known exactly and whose rows are drawn as counts."""

from __future__ import annotations

from dataclasses import dataclass
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

    def cutoff(self, forecast: Any = None) -> float:
        """Return the Cutoff error of the population itself, if given with other forecasts in place of its own."""
        values = self.forecast if forecast is None else forecast
        return calibrant.cutoff_calibration_error(self.chance, values, sample_weight=self.share)


def middles(count: int) -> FloatArray:
    """Return the middles of equal parts of [0, 1]: a grid that stands for the uniform law."""
    return (np.arange(count) + 0.5) / count
