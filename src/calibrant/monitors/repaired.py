"""What a rolling repair says when it is read, and what windows of several lengths would have done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant.core.results import UNIT, Result
from calibrant.core.types import Label
from calibrant.core.words import counted, in_columns, printable, rounded
from calibrant.monitors.refits import BRAKING, COLLECTING, REPAIRING, STATUSES
from calibrant.monitors.results import Alarm, Reading

_SCORES = ("cutoff", "cutoff_by_stretch", "brier")
_PAIRS = tuple(f"{name}_{when}" for name in _SCORES for when in ("before", "after"))


@dataclass(frozen=True)
class RollingReading(Result):
    """What became of forecasts that a rolling repair was applied to, each period by the map of earlier periods only.

    Attributes
    ----------
    period : int or str
        The last period that counts.
    recalibrator : str
        The kind of map.
    window, window_periods, window_rows : int
        How many periods a map is fitted to at most, and how many periods and rows the next one has.
    min_rows : int
        With fewer rows no map is fitted.
    status : str
        What becomes of the next forecasts: "repairing", "collecting" (too few rows: they stay as they are) or "braking"
        (repairs kept failing: they stay as they are).
    periods, rows : int
        How many periods and rows were judged: all since the first map.
    cutoff_before, cutoff_after : float or None
        Cutoff calibration error of all judged rows, of forecasts as they are and as they were issued. Periods that are
        off in opposite directions cancel in it. None before the first judged period.
    cutoff_by_stretch_before, cutoff_by_stretch_after : float or None
        The mean Cutoff error of stretches of ``window`` periods, in which less cancels; chance adds more to it.
    brier_before, brier_after : float or None
        Brier score of all judged rows.
    before : Reading
        Of the monitor that watches forecasts as they are, from the first period on.
    after : Reading or None
        Of the monitor that watches forecasts as they were issued, since the first map; it begins anew after an alarm.
    alarms : tuple of Alarm
        Every alarm about forecasts as they were issued.
    brakes : int
        How often the brake was applied.
    brake_left : int
        How many periods it stays on.
    notes : tuple of str
        What to keep in mind.
    """

    period: Label
    recalibrator: str
    window: int
    window_periods: int
    window_rows: int
    min_rows: int
    status: str
    periods: int
    rows: int
    cutoff_before: float | None
    cutoff_after: float | None
    cutoff_by_stretch_before: float | None
    cutoff_by_stretch_after: float | None
    brier_before: float | None
    brier_after: float | None
    before: Reading
    after: Reading | None
    alarms: tuple[Alarm, ...]
    brakes: int
    brake_left: int
    notes: tuple[str, ...] = ()

    _ranges: ClassVar = dict.fromkeys(_PAIRS, UNIT)
    _words: ClassVar = {"status": STATUSES}

    def __str__(self) -> str:
        return "\n".join([self.finding(), self.watched(), self.next(), *(f"Note: {note}" for note in self.notes)])

    def finding(self) -> str:
        """Say what the repair did."""
        if self.periods == 0:
            return f"No period was repaired yet, up to {printable(self.period)}."
        judged = f"{counted(self.periods, 'period')} ({counted(self.rows, 'row')}), up to {printable(self.period)}"
        table = in_columns(
            ("", "as they are", "repaired"),
            [
                (said, rounded(getattr(self, f"{name}_before")), rounded(getattr(self, f"{name}_after")))
                for name, said in (
                    ("cutoff", "Cutoff calibration error"),
                    ("cutoff_by_stretch", f"its mean over stretches of {counted(self.window, 'period')}"),
                    ("brier", "Brier score"),
                )
            ],
        )
        return f"Forecasts of {judged}, each repaired by a map of earlier periods only:\n{table}"

    def watched(self) -> str:
        """Say which alarms there were."""
        first = self.before.alarm
        raw = "no alarm" if first is None else f"an alarm at {printable(first.period)}"
        brake = "" if self.brakes == 0 else f"; the brake was applied {counted(self.brakes, 'time')}"
        return f"Forecasts as they are: {raw}. Repaired: {counted(len(self.alarms), 'alarm')}{brake}."

    def next(self) -> str:
        """Say what becomes of the forecasts of the next period."""
        held = f"{counted(self.window_periods, 'period')} ({counted(self.window_rows, 'row')})"
        return {
            REPAIRING: f"The next forecasts go through {self.recalibrator}, fitted to the last {held}.",
            COLLECTING: f"The next forecasts stay as they are: {held} are too few for a map, which takes "
            f"{counted(self.min_rows, 'row')}, some with the event and some without.",
            BRAKING: "The next forecasts stay as they are: repairs were followed by alarms three times within "
            f"{counted(self.window, 'period')}; they are tried again after {counted(self.brake_left, 'period')}.",
        }[self.status]


@dataclass(frozen=True)
class WindowScores(Result):
    """What maps fitted to the last periods made of the forecasts of the next.

    Attributes
    ----------
    window : int
        How many periods each map was fitted to; 0 for the forecasts as they are.
    cutoff : float
        Cutoff calibration error of all judged rows.
    cutoff_by_stretch : float
        The mean Cutoff error of stretches of periods, in which less cancels.
    brier : float
        Brier score of all judged rows.
    """

    window: int
    cutoff: float
    cutoff_by_stretch: float
    brier: float

    _ranges: ClassVar = dict.fromkeys(_SCORES, UNIT)


@dataclass(frozen=True)
class WindowComparison(Result):
    """Windows of several lengths on the same periods, each period repaired by a map of earlier periods only.

    Attributes
    ----------
    recalibrator : str
        The kind of map.
    scores : tuple of WindowScores
        Forecasts as they are first, then each window.
    best : int
        The window with the smallest Brier score, 0 if forecasts as they are have it.
    periods, rows : int
        How many periods and rows were judged: those after the longest window.
    stretch : int
        How many periods a stretch has.
    """

    recalibrator: str
    scores: tuple[WindowScores, ...]
    best: int
    periods: int
    rows: int
    stretch: int

    def frame(self, backend: Any = None) -> Any:
        """Return the scores as a data frame, one row per window."""
        return self._framed(
            {name: [getattr(each, name) for each in self.scores] for name in ("window", *_SCORES)}, backend
        )

    def __str__(self) -> str:
        table = in_columns(
            ("window", "Cutoff error", f"by {counted(self.stretch, 'period')}", "Brier score"),
            [(str(each.window or "none"), *(rounded(getattr(each, name)) for name in _SCORES)) for each in self.scores],
        )
        best = "no repair" if self.best == 0 else f"a window of {counted(self.best, 'period')}"
        return (
            f"{self.recalibrator}, on {counted(self.periods, 'period')} ({counted(self.rows, 'row')}):\n{table}\n"
            f"{best[0].upper()}{best[1:]} did best by the Brier score on these periods, which chose it: the next will "
            "be a little less kind."
        )
