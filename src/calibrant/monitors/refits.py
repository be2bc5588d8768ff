"""Maps that are fitted again and again: each to the last periods before the one that it repairs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from sklearn.base import clone

from calibrant.core.errors import InputError, UndefinedError
from calibrant.core.laws import brownian_range
from calibrant.core.types import FloatArray
from calibrant.core.words import counted, printable
from calibrant.measures.weighted import cutoff_calibration_error
from calibrant.monitors.periods import PeriodLabel, is_after
from calibrant.repairs.guard import GuardedRecalibrator
from calibrant.repairs.maps import IsotonicRecalibrator, PlattRecalibrator
from calibrant.repairs.recalibrator import Recalibrator, kinds
from calibrant.rows.cells import Cells
from calibrant.rows.checks import check_number

RecalibratorName = Literal["isotonic", "platt", "guarded"]

COLLECTING, REPAIRING, BRAKING = STATUSES = ("collecting", "repairing", "braking")
"""Forecasts stay as they are until rows suffice; are repaired; or stay as they are because repairs kept failing."""

_USUAL = 0.95
_CLIP = 1e-6


def as_recalibrator(given: RecalibratorName | Recalibrator) -> Recalibrator:
    """Return the recalibrator, unfitted, that a name stands for, or a copy of the one given."""
    if given == "isotonic":
        return IsotonicRecalibrator(ends="inside")
    if given == "platt":
        return PlattRecalibrator(on="logit", clip=_CLIP)
    if given == "guarded":
        return GuardedRecalibrator(ends="inside")
    if not any(isinstance(given, kind) for kind in kinds().values()):
        raise InputError(
            f"must be 'isotonic', 'platt', 'guarded' or a recalibrator, got {given!r}",
            argument="recalibrator",
            value=given,
        )
    assert isinstance(given, Recalibrator)
    given._check_params()
    if given.input_kind != "probability" or given.pos_label is not None:
        option = "pos_label" if given.pos_label is not None else "input_kind"
        raise InputError(
            f"has {option}={getattr(given, option)!r}, and here it maps forecasts that were watched before",
            argument="recalibrator",
            remedy="leave that out; update() takes probabilities, and pos_label=",
        )
    found: Recalibrator = clone(given)
    return found


def rows_for(max_error: float) -> int:
    """Return how many rows a fit takes so that chance alone seldom makes it worse than an error.

    The Cutoff error of calibrated forecasts on n independent rows is below x / (2 sqrt(n)) in 95% of cases, with x the
    95% quantile of the range of Brownian motion; a map fitted to these rows takes it for real.
    """
    return math.ceil((float(brownian_range.ppf(_USUAL)) / (2.0 * max(max_error, 1e-6))) ** 2)


class Fitted(NamedTuple):
    """What forecasts of a period go through: a map, or None where they stay as they are."""

    map: Recalibrator | None
    status: str
    rows: int

    def applied(self, y_prob: FloatArray) -> FloatArray:
        """Return the forecasts that are issued."""
        return y_prob.copy() if self.map is None else self.map.predict(y_prob)


@dataclass
class Window:
    """The last periods whose labels are in, to which the next map is fitted.

    Attributes
    ----------
    recalibrator : Recalibrator
        What is fitted, unfitted.
    size : int
        How many periods there are at most.
    min_rows : int
        With fewer rows nothing is fitted.
    periods : list
        Periods and the totals of their forecasts as they were, the oldest first.
    """

    recalibrator: Recalibrator
    size: int
    min_rows: int
    periods: list[tuple[PeriodLabel, Cells]] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Rows in the window."""
        return sum(cells.row_total for _, cells in self.periods)

    def push(self, period: PeriodLabel, cells: Cells) -> None:
        """Add the next period, and forget the oldest one where there are too many."""
        self.periods = [*self.periods, (period, cells)][-self.size :]

    def forget(self, since: PeriodLabel, rows: float) -> None:
        """Leave out periods before one, as long as so many rows stay."""
        left = self.rows
        while self.periods and is_after(since, self.periods[0][0]):
            left -= self.periods[0][1].row_total
            if left < rows:
                break
            self.periods = self.periods[1:]

    def fit(self) -> Fitted:
        """Return the map of the next period."""
        rows = self.rows
        if rows < self.min_rows:
            return Fitted(None, COLLECTING, rows)
        totals = _together([cells for _, cells in self.periods])
        try:
            fitted: Recalibrator = clone(self.recalibrator).fit(totals.at_means())
        except UndefinedError:
            return Fitted(None, COLLECTING, rows)  # as where all outcomes are alike, and no curve is the best
        return Fitted(fitted, REPAIRING, rows)

    def refuse_few(self) -> None:
        """Refuse a window that is full and holds too few rows."""
        if len(self.periods) < self.size or self.rows >= self.min_rows:
            return
        longer = math.ceil(self.min_rows * self.size / max(self.rows, 1))
        raise InputError(
            f"of {counted(self.size, 'period')} holds {counted(self.rows, 'row')} after "
            f"{printable(self.periods[-1][0])}, and a map takes {self.min_rows:,}: with fewer, chance alone may do "
            "more harm than the repair does good",
            argument="window",
            value=self.size,
            remedy=f"use window={longer} or more, or say min_rows= yourself",
        )


def _together(parts: list[Cells]) -> Cells:
    """Return the totals of all parts, two by two: one after the other would sort the first ones again and again."""
    while len(parts) > 1:
        pairs = [one + other for one, other in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, *parts[2 * len(pairs) :]]
    return parts[0]


def cutoff_of(cells: Cells) -> float:
    """Return the Cutoff error of rows in cells, each cell taken as one forecast."""
    return min(cutoff_calibration_error(cells.at_means()), 1.0)


@dataclass
class Score:
    """How good forecasts were, so far.

    Attributes
    ----------
    size : int
        How many periods are a stretch.
    cells : Cells or None
        Totals of all rows.
    stretch : Cells or None
        Totals of the stretch that is not complete.
    periods, stretch_periods : int
        How many periods count, and how many of them in the last stretch.
    stretches : float
        The sum of the Cutoff errors of complete stretches.
    """

    size: int
    cells: Cells | None = None
    stretch: Cells | None = None
    periods: int = 0
    stretch_periods: int = 0
    stretches: float = 0.0

    def add(self, cells: Cells) -> None:
        """Add a period."""
        self.cells = cells if self.cells is None else self.cells + cells
        self.stretch = cells if self.stretch is None else self.stretch + cells
        self.periods += 1
        self.stretch_periods += 1
        if self.stretch_periods == self.size:
            self.stretches += cutoff_of(self.stretch)
            self.stretch, self.stretch_periods = None, 0

    @property
    def cutoff(self) -> float | None:
        """The Cutoff error of all rows."""
        return None if self.cells is None else cutoff_of(self.cells)

    @property
    def cutoff_by_stretch(self) -> float | None:
        """The mean Cutoff error of stretches, the last of which counts for as much as it has periods."""
        if self.periods == 0:
            return None
        last = 0.0 if self.stretch is None else cutoff_of(self.stretch) * self.stretch_periods
        return (self.stretches * self.size + last) / self.periods

    @property
    def brier(self) -> float | None:
        """The Brier score of all rows."""
        return None if self.cells is None else brier_of(self.cells)


def brier_of(cells: Cells) -> float:
    """Return the mean square of outcome minus forecast."""
    return min(float(cells.residual_square.sum()) / cells.weight_total, 1.0)


def in_time(periods: Iterable[PeriodLabel]) -> list[PeriodLabel]:
    """Return periods in their order; all are numbers or all are texts."""

    def itself(period: PeriodLabel) -> Any:
        return period

    return sorted(periods, key=itself)


def check_window(window: int) -> int:
    """Return how many periods a window has."""
    return int(check_number(window, "window", low=1, high=1e6, whole=True))
