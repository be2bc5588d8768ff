"""Numbers with limits: an estimate with its interval, and resamples.

What holds here holds for many rows (or clusters): unlike certificates, these are the intervals that statisticians
report, and their coverage is simulated in tests/guarantees.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from calibrant.core.errors import UndefinedError
from calibrant.core.progress import track
from calibrant.core.results import UNIT, Result
from calibrant.core.types import FloatArray, IntArray, Randomness
from calibrant.core.words import level_said
from calibrant.rows.checks import Observations, check_rng
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.resamples import MOST_UNDEFINED, resampled
from calibrant.rows.tally import Tally


@dataclass(frozen=True)
class Estimate(Result):
    """One number with its limits.

    Attributes
    ----------
    name : str
        What was estimated, as in "auroc".
    estimate : float
        The number.
    lower, upper : float
        Its limits. They may be infinite where the rows say nothing on that side.
    confidence_level : float
        How often, in many repetitions with many rows, limits found in this way hold the true number.
    interval : str
        How the limits were found, as in "delong", "profile" or "bootstrap".
    rows : int
        How many rows.
    clusters : int or None
        How many clusters the limits count; None for independent rows.
    n_resamples : int or None
        Resamples behind the limits; None where none were drawn.
    notes : tuple of str
        What to keep in mind when reading the numbers.
    """

    name: str
    estimate: float
    lower: float
    upper: float
    confidence_level: float
    interval: str
    rows: int
    clusters: int | None = None
    n_resamples: int | None = None
    notes: tuple[str, ...] = ()

    _may_be_infinite: ClassVar = ("lower", "upper")  # no limit on that side
    _ranges: ClassVar = {"confidence_level": UNIT}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_order("lower", "upper")

    def __float__(self) -> float:
        return self.estimate

    def frame(self, backend: object = None) -> object:
        """Return one row with the number and its limits."""
        names = ("name", "estimate", "lower", "upper", "confidence_level", "interval")
        return self._framed({name: [getattr(self, name)] for name in names}, backend)

    def __str__(self) -> str:
        limits = f"{self.lower:.4f} to {self.upper:.4f}"
        counted = "" if self.clusters is None else f", {self.clusters:,} clusters"
        said = self.name.replace("_", " ")
        lines = [
            f"{said} {self.estimate:.4f} ({level_said(self.confidence_level)}: {limits}; {self.interval}{counted})"
        ]
        return "\n".join((*lines, *(f"Note: {note}" for note in self.notes)))


def percentile_limits(values: FloatArray, confidence_level: float) -> tuple[float, float]:
    """Return the percentiles that leave out equal shares of values at either end."""
    lower, upper = np.quantile(values, ((1.0 - confidence_level) / 2.0, (1.0 + confidence_level) / 2.0))
    return float(lower), float(upper)


def have_no_width(lower: float, upper: float, number: float) -> bool:
    """Whether limits are the number itself, up to rounding: the rows then show nothing of how much it varies."""
    return upper - lower <= 1e-12 * abs(number) + 1e-15


class Bootstrapped(NamedTuple):
    """Values of some numbers in resamples, a row for each; NaN where a number is undefined there."""

    values: FloatArray
    undefined: IntArray

    def limits(self, position: int, name: str, confidence_level: float) -> tuple[float, float]:
        """Return the percentile limits of a number; where too many resamples have no value there are none."""
        column = self.values[:, position]
        if self.undefined[position] > MOST_UNDEFINED * column.size:
            raise UndefinedError(
                f"{name} is undefined in {self.undefined[position]:,} of {column.size:,} resamples of these rows",
                remedy="collect more rows, or take limits that need no resamples",
            )
        return percentile_limits(column[~np.isnan(column)], confidence_level)


def bootstrap(
    rows: Observations | ClusteredRows,
    numbers: Callable[[Tally], Sequence[float]],
    *,
    n_resamples: int,
    rng: Randomness = 0,
    label: str = "resampling",
) -> Bootstrapped:
    """Compute numbers on resamples of rows, or of whole clusters; a number that is undefined there is NaN.

    ``numbers`` returns NaN for what is undefined, or raises `UndefinedError` where all are.
    """
    drawn = resampled(rows, n_resamples, check_rng(rng))
    found: list[Sequence[float]] = []
    for sample in track(drawn, total=n_resamples, label=label):
        try:
            found.append(numbers(Tally.from_observations(sample)))
        except UndefinedError:
            found.append(())
    width = max(map(len, found))
    values = np.array([tuple(each) if len(each) else (math.nan,) * width for each in found], dtype=np.float64)
    return Bootstrapped(values.reshape(n_resamples, -1), np.isnan(values).sum(axis=0))
