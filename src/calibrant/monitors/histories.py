"""What a monitor said after each period, as one result to draw and to store."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self, get_args

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.results import UNIT, Result
from calibrant.core.types import BoolArray, FloatArray, IntArray, Label
from calibrant.core.words import counted, printable
from calibrant.monitors.monitor import Monitor
from calibrant.monitors.results import VERDICTS, Watched
from calibrant.monitors.spread import is_far

_ARRAYS = ("epoch", "rows", "estimate", "lower", "upper", "detector", "overdispersion")


@dataclass(frozen=True, eq=False)
class MonitorHistory(Result):
    """What a monitor said after each period, in the order of time.

    Attributes
    ----------
    period : tuple of int or str
        The periods.
    epoch : array of int
        The epoch of each: 1, and one more after each reset.
    rows : array of int
        How many rows counted by then, in this epoch.
    estimate, lower, upper : array
        The error by then, and its limits.
    verdict : tuple of str
        What the limits said of ``max_error``.
    detector : array
        The evidence that an alarm follows from, and ``threshold`` what it must reach.
    overdispersion : array
        By then, the variance of sums over periods, divided by that of independent rows; NaN after the first period.
    alarm, since : array of int
        Positions among the periods: of each alarm, and of the period since when.
    max_error : float
        What the verdicts are about.
    tolerance : float
        The error that is no reason for an alarm.
    confidence_level : float
        How often each limit is never wrong, in an epoch.
    threshold : float
        See ``detector``.
    unit : str
        What counts as one piece of evidence: "period" or "row".
    assume : str
        What is assumed of the stream: "one population" or "anything".
    measure : str
        The error that is watched.
    """

    period: tuple[Label, ...]
    epoch: IntArray
    rows: IntArray
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    verdict: tuple[str, ...]
    detector: FloatArray
    overdispersion: FloatArray
    alarm: IntArray
    since: IntArray
    max_error: float
    tolerance: float
    confidence_level: float
    threshold: float
    unit: str
    assume: str
    measure: str = "cutoff"

    _ranges: ClassVar = dict.fromkeys(
        ("estimate", "lower", "upper", "max_error", "tolerance", "confidence_level"), UNIT
    )
    _words: ClassVar = {
        "unit": ("period", "row"),
        "assume": ("one population", "anything"),
        "measure": get_args(Watched),
    }
    _may_be_undefined: ClassVar = ("overdispersion",)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("verdict", *_ARRAYS):
            if len(getattr(self, name)) != len(self.period) or not self.period:
                self._refuse(name, len(getattr(self, name)), f"not as many as periods, {len(self.period)}, or none")
        if not set(self.verdict) <= set(VERDICTS):
            self._refuse("verdict", self.verdict, f"not each one of {', '.join(VERDICTS)}")
        inside = self.alarm.size == self.since.size and np.all((self.since >= 0) & (self.since <= self.alarm))
        if not inside or np.any(self.alarm >= len(self.period)):
            self._refuse("alarm", self.alarm.tolist(), "not positions of periods, each after that of since")

    @classmethod
    def from_monitor(cls, monitor: Monitor) -> Self:
        """Return what a monitor has said so far; periods that were not read yet stay open."""
        if not isinstance(monitor, Monitor):
            raise InputError(
                f"is a {type(monitor).__name__}, not a Monitor",
                argument="monitor",
                remedy="of Monitors pass that of one segment, as in monitors['west'], of a RollingRecalibrator its "
                "before or after",
            )
        said = monitor._history
        period = said["period"]
        if not period:
            raise InputError("nothing was read yet", remedy="read() the monitor first")
        place = {named: position for position, named in enumerate(zip(said["epoch"], period, strict=True))}
        alarms = dict.fromkeys(zip(said["epoch"], said["alarm"], said["since"], strict=True))
        marks = [(place[epoch, at], place[epoch, since]) for epoch, at, since in alarms if at is not None]
        level, apart = monitor.confidence_level, monitor.periods_between_false_alarms
        spread = [math.nan if each is None else each for each in said["overdispersion"]]
        return cls(
            period=tuple(period),
            epoch=np.array(said["epoch"], dtype=np.int64),
            rows=np.array(said["rows"], dtype=np.int64),
            **{name: np.array(said[name], dtype=np.float64) for name in ("estimate", "lower", "upper", "detector")},
            verdict=tuple(said["verdict"]),
            overdispersion=np.array(spread, dtype=np.float64),
            alarm=np.array([at for at, _ in marks], dtype=np.int64),
            since=np.array([since for _, since in marks], dtype=np.int64),
            max_error=monitor.max_error,
            tolerance=monitor.tolerance,
            confidence_level=level,
            threshold=float(1.0 / (1.0 - level) if apart is None else apart),
            unit=monitor.unit,
            assume=monitor.assume,
            measure=monitor.measure,
        )

    @property
    def last_epoch(self) -> IntArray:
        """The positions of the periods of the last epoch."""
        return np.flatnonzero(self.epoch == self.epoch[-1])

    @property
    def is_doubted(self) -> bool:
        """Whether the last epoch counts rows that share something within periods: then limits and alarm mean nothing.

        Periods as units are right whatever rows of a period have to do with each other.
        """
        return self.unit == "row" and is_far(float(self.overdispersion[-1]), self.last_epoch.size)

    @property
    def is_void(self) -> BoolArray:
        """Where limits rest on what does not hold: that what is to be expected stayed the same."""
        void: BoolArray = np.array([each == "void" for each in self.verdict])
        return void if self.assume == "one population" else np.zeros(void.size, dtype=np.bool_)

    @property
    def last_alarm(self) -> tuple[Label, Label] | None:
        """The period of the alarm of the last epoch, and the period since when; None without one."""
        if not self.alarm.size or self.epoch[self.alarm[-1]] != self.epoch[-1]:
            return None
        return self.period[self.alarm[-1]], self.period[self.since[-1]]

    def frame(self, backend: Any = None) -> Any:
        """Return one row per period."""
        columns = {name: getattr(self, name) for name in _ARRAYS}
        return self._framed({"period": list(self.period), "verdict": list(self.verdict), **columns}, backend)

    def __str__(self) -> str:
        said = f"{counted(len(self.period), 'period')}, up to {printable(self.period[-1])}: {self.verdict[-1]}"
        for at, since in zip(self.alarm.tolist(), self.since.tolist(), strict=True):
            said += f"; alarm at {printable(self.period[at])}, since about {printable(self.period[since])}"
        return f"{said}." if self.alarm.size else f"{said}; no alarm."

    __repr__ = __str__
