"""Two forecasters of the same cases, whose errors and scores in the population are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant import Tally, cutoff_calibration_error
from calibrant.measures.savings import largest_saving
from calibrant.rows.savings import EVERY_THRESHOLD

Array = npt.NDArray[Any]
Curve = Callable[[Array], Array]

CHANCE: Array = 0.05 + 0.9 * (np.arange(900) + 0.5) / 900
"""The chances of the cases, all as likely."""


@dataclass(frozen=True)
class PairedLaw:
    """What two models forecast for a case of known chance."""

    name: str
    first: Curve
    second: Curve

    def __str__(self) -> str:
        return self.name

    @cached_property
    def forecasts(self) -> tuple[Array, Array]:
        return np.clip(self.first(CHANCE), 0.0, 1.0), np.clip(self.second(CHANCE), 0.0, 1.0)

    @cached_property
    def _laws(self) -> tuple[Tally, Tally]:
        one, other = (Tally.from_arrays(CHANCE, each) for each in self.forecasts)
        return one, other

    @cached_property
    def cutoff(self) -> float:
        """The Cutoff error of the first minus that of the second."""
        one, other = map(cutoff_calibration_error, self._laws)
        return one - other

    @cached_property
    def risk_gap(self) -> float:
        one, other = (largest_saving(law, EVERY_THRESHOLD).saving for law in self._laws)
        return one - other

    def brier(self, place: Array) -> float:
        """The difference of the Brier scores for cases of these chances."""
        one, other = (each[place] for each in self.forecasts)
        return float(np.mean((other - one) * (2.0 * CHANCE[place] - one - other)))

    def log(self, place: Array) -> float:
        one, other = (each[place] for each in self.forecasts)
        chance = CHANCE[place]
        return float(np.mean(chance * np.log(other / one) + (1.0 - chance) * np.log((1.0 - other) / (1.0 - one))))

    def decision_risk(self, threshold: float) -> float:
        one, other = (each >= threshold for each in self.forecasts)
        return float(np.mean((one.astype(float) - other) * (threshold - CHANCE)))

    def draw(self, rng: np.random.Generator, rows: int) -> tuple[Array, dict[str, Array], Array]:
        """Return outcomes, forecasts, and which cases they are."""
        place = rng.integers(0, CHANCE.size, rows)
        y = rng.random(rows) < CHANCE[place]
        # The same case twice is forecast twice: a little noise, far below what an interval sees, tells rows apart.
        one, other = (each[place] for each in self.forecasts)
        return y, {"first": one, "second": other}, place


def bump(low: float, high: float, by: float) -> Curve:
    return lambda chance: chance + by * ((chance >= low) & (chance <= high))


SAME = PairedLaw("the same", lambda p: p + 0.05, lambda p: p + 0.05)
CALIBRATED = PairedLaw("both calibrated", lambda p: p, lambda p: np.round(p, 1))
OPPOSITE = PairedLaw("opposite signs", lambda p: p + 0.05, lambda p: p - 0.05)
NESTED = PairedLaw("one interval inside the other", bump(0.3, 0.7, 0.08), bump(0.4, 0.6, 0.08))
DISJOINT = PairedLaw("intervals apart", bump(0.1, 0.4, 0.08), bump(0.6, 0.9, -0.08))
TIES = PairedLaw("ties", lambda p: np.round(p, 1), lambda p: np.round(p + 0.06, 1))
CONSTANTS = PairedLaw("constants", lambda p: 0.0 * p + 0.4, lambda p: 0.0 * p + 0.55)
WORSE = PairedLaw("one of them off", lambda p: p + 0.06, lambda p: p + 0.03)

LAWS = (SAME, CALIBRATED, OPPOSITE, NESTED, DISJOINT, TIES, CONSTANTS, WORSE)
