"""How much periods differ: more than independent rows would, and are neighbours alike?"""

from __future__ import annotations

import math
from dataclasses import dataclass

from calibrant.rows.cells import Cells

_FAR = 1.5
_SURE = 3.1  # standard deviations of what independent rows show
_FEWEST = 5
_ALIKE = 0.3


def is_far(overdispersion: float | None, periods: int) -> bool:
    """Return whether so many periods differ far more than independent rows would make them."""
    if overdispersion is None or periods < _FEWEST:
        return False
    return overdispersion > max(_FAR, 1.0 + _SURE * math.sqrt(3.0 / (periods - 1.0)))


def are_alike(alike: float | None, periods: int) -> bool:
    """Return whether so many periods are so similar to their neighbours that evidence adds up faster than it should."""
    return alike is not None and alike > max(_ALIKE, 2.0 / math.sqrt(periods))


@dataclass
class Spread:
    """Sums over periods of their mean residuals X, and over neighbouring ones of squared differences.

    Differences of neighbours, not distances from a common mean, and all but the largest of them: a forecaster that
    changes once is no sign that rows of a period belong together.
    """

    periods: int = 0
    mean: float = 0.0
    mean_square: float = 0.0
    neighbours: float = 0.0
    differences: float = 0.0
    expected: float = 0.0
    largest: float = 0.0
    largest_expected: float = 0.0
    first: float = 0.0
    last: float = 0.0
    last_variance: float = 0.0

    def add(self, cells: Cells) -> None:
        """Add a period."""
        mean = cells.residual_total / cells.weight_total
        variance = float(cells.weight_square_residual_square.sum()) / cells.weight_total**2
        if self.periods == 0:
            self.first = mean
        else:
            self.neighbours += mean * self.last
            difference, expected = (mean - self.last) ** 2, variance + self.last_variance
            self.differences += difference
            self.expected += expected
            if difference * self.largest_expected >= self.largest * expected:
                self.largest, self.largest_expected = difference, expected
        self.periods += 1
        self.mean += mean
        self.mean_square += mean**2
        self.last, self.last_variance = mean, variance

    @property
    def overdispersion(self) -> float | None:
        """The variance of means of periods over that of independent rows, from the differences of neighbours.

        The largest one is left out, which makes it a little smaller than 1 for independent rows.
        """
        differences, expected = self.differences, self.expected
        if self.periods >= _FEWEST:
            differences, expected = differences - self.largest, expected - self.largest_expected
        return max(differences, 0.0) / expected if self.periods >= 2 and expected > 0.0 else None

    @property
    def alike(self) -> float | None:
        """The correlation of means of neighbouring periods."""
        count = self.periods
        centre = self.mean / max(count, 1)
        square = self.mean_square - count * centre**2
        if count < _FEWEST or square <= 1e-15 * max(self.mean_square, 1e-300):
            return None
        product = self.neighbours - centre * (2.0 * self.mean - self.first - self.last) + (count - 1) * centre**2
        return min(max(product / square, -1.0), 1.0)

    @property
    def is_far(self) -> bool:
        """Whether periods differ far more than independent rows would make them."""
        return is_far(self.overdispersion, self.periods)

    @property
    def are_alike(self) -> bool:
        """Whether neighbouring periods are so similar that evidence adds up faster than it should."""
        return are_alike(self.alike, self.periods)
