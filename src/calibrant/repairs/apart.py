"""How far apart the held-out Brier scores of two ways to recalibrate are, row by row or cluster by cluster."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrant.certificates.model_differences import ModelDifference
from calibrant.certificates.unit_means import unit_mean_limits
from calibrant.core.types import FloatArray, IntArray
from calibrant.core.words import level_said, rounded_down, rounded_up

AS_IS = "as is"
"""The name of the candidate that changes nothing; it is always compared."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out rows of all parts: outcomes, how often each occurs, weights, and the number of the cluster of each."""

    outcome: FloatArray
    count: IntArray
    weight: FloatArray | None
    cluster: IntArray | None

    def apart(self, first: FloatArray, second: FloatArray) -> Apart:
        """Subtract the scores of two forecasts for them, without cancelling digits."""
        other, both = second - first, first + second
        bound = float((np.abs(other) * np.maximum(both, 2.0 - both)).max())
        return Apart(other * (2.0 * self.outcome - both), bound, self)


@dataclass(frozen=True, eq=False)
class Apart:
    """The difference of two Brier scores on each of the rows, and how large it can be given the forecasts."""

    difference: FloatArray
    bound: float
    rows: HeldOut

    @property
    def mean(self) -> float:
        """The mean difference."""
        return float(self._counted @ self.difference) / float(self._counted.sum())

    @property
    def _weight(self) -> FloatArray:
        return np.ones(self.difference.size) if self.rows.weight is None else self.rows.weight

    @property
    def _counted(self) -> FloatArray:
        counted: FloatArray = self.rows.count * self._weight
        return counted

    def is_within_noise(self) -> bool:
        """Return whether the mean is at most one standard error above 0."""
        weight, left = self._weight, self.difference - self.mean
        spread = float((self.rows.count * np.square(weight)) @ np.square(left))
        if self.rows.cluster is not None:
            sums = np.bincount(self.rows.cluster, weights=weight * left)
            spread = float(sums @ sums) * sums.size / (sums.size - 1.0)
        return self.mean <= math.sqrt(spread) / float(self._counted.sum())

    def limits(self, delta: float) -> tuple[float, float]:
        """Return limits of the mean, each wrong with probability at most delta if both were fixed forecasters."""
        total, size, count = self.difference * self._weight, self.rows.weight, self.rows.count
        if self.rows.cluster is not None:
            cluster, weight = self.rows.cluster, self._weight
            total = np.bincount(cluster, weights=total).astype(np.float64, copy=False)
            size = np.bincount(cluster, weights=weight).astype(np.float64, copy=False)
            count = np.ones(total.size, dtype=np.int64)
        lower, upper = unit_mean_limits(total, size, self.bound, delta, times=count)
        return min(lower, self.mean), max(upper, self.mean)


def told_apart(differences: tuple[ModelDifference, ...], level: float) -> str:
    """Say whether the candidate is really better than leaving things as they are, and than the next best."""
    said = []
    for each in differences:
        other = "the forecasts as they are" if each.second == AS_IS else f"the next best, {each.second}"
        limits = f"{rounded_down(each.lower)} to {rounded_up(each.upper)}"
        how = {"better": "better than", "worse": "worse than"}.get(each.verdict, "not told apart from")
        said.append(f"{how} {other} ({limits})")
    return f"By the Brier score, with {level_said(level)} confidence, this choice is {' and '.join(said)}."
