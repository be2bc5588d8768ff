"""Rows of a report read period by period: has anything changed?"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from calibrant.core.types import BoolArray
from calibrant.monitors.histories import MonitorHistory
from calibrant.monitors.monitor import Monitor
from calibrant.monitors.periods import period_label
from calibrant.reports.models import Periods
from calibrant.reports.questions import Question
from calibrant.reports.results import ChangeOverTime, Omission

SECTION = "change"

NO_LIMIT = 1.0
"""The limit that excludes nothing, where none was asked about."""

_OF_EVENTS = "changes are watched in shares of all rows, not of the events"
_ONE_PERIOD = "there is one period only"


def watch(
    periods: Periods | None, question: Question, level: float
) -> tuple[ChangeOverTime | None, tuple[Omission, ...]]:
    """Return what rows say period by period, or why that is left out; nothing of rows without periods."""
    if periods is None:
        return None, ()
    reason = _OF_EVENTS if question.relative_to == "events" else _ONE_PERIOD if periods.labels.size < 2 else ""
    if reason:
        return None, (Omission(SECTION, reason),)
    monitor = Monitor(
        max_error=NO_LIMIT if question.max_error is None else question.max_error,
        confidence_level=level,
        tolerance=question.tolerance,
        # Of N periods, some has a false alarm with probability at most N over this number.
        periods_between_false_alarms=math.ceil(periods.labels.size / (1.0 - level) - 1e-6),
    )
    monitor.update(periods.rows, period=periods.labels[periods.place])
    reading = monitor.read()
    if question.max_error is None:
        reading = replace(reading, cautions=())  # on a limit that nobody asked about
    found = ChangeOverTime(MonitorHistory.from_monitor(monitor), reading)
    if reading.alarm is None:
        return found, ()
    return ChangeOverTime(found.history, reading, **_before_and_since(periods, found)), ()


def _before_and_since(periods: Periods, change: ChangeOverTime) -> dict[str, float]:
    """Return mean forecasts and outcomes where the alarm says that forecasts are off, before it began and since."""
    alarm, rows = change.reading.alarm, periods.rows
    assert alarm is not None
    top = rows.y_prob <= alarm.high if alarm.high == 1.0 else rows.y_prob < alarm.high
    inside = (rows.y_prob >= alarm.low) & top
    begin = [period_label(label) == alarm.since for label in periods.labels].index(True)
    found = {}
    weight = np.ones(inside.size) if rows.sample_weight is None else rows.sample_weight
    chosen: BoolArray
    for name, chosen in (("before", inside & (periods.place < begin)), ("since", inside & (periods.place >= begin))):
        total = float(weight[chosen].sum())
        if total > 0.0:
            found[f"forecast_{name}"] = float(weight[chosen] @ rows.y_prob[chosen]) / total
            found[f"outcome_{name}"] = float(weight[chosen] @ rows.y_true[chosen]) / total
    return found
