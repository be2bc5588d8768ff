"""The whole state of a rolling repair, beside its monitors, as plain values and back."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, TypeVar

from calibrant.core.errors import CalibrantError
from calibrant.core.results import Result
from calibrant.monitors.periods import PeriodLabel, is_after
from calibrant.monitors.refits import REPAIRING, STATUSES, Fitted, Score, Window
from calibrant.monitors.results import Alarm, Reading
from calibrant.monitors.state import rebuilt_history
from calibrant.monitors.storage import MOST, Packer, Record, damaged, packed
from calibrant.repairs.recalibrator import Recalibrator
from calibrant.rows.cells import Cells

FORMAT = "calibrant/rolling/1"

HISTORY = (
    "period",
    "rows",
    "status",
    "map_rows",
    "cutoff_before",
    "cutoff_after",
    "brier_before",
    "brier_after",
    "alarm_before",
    "alarm_after",
)
"""What is kept of every period: how good forecasts were before and after the repair, and whether there was an alarm."""


Said = TypeVar("Said", bound=Result)


@dataclass
class RollingParts:
    """What a rolling repair remembers beside its options and its monitors; see `RollingRecalibrator`."""

    window: list[tuple[PeriodLabel, Cells]]
    scores: tuple[Score, Score]
    open: dict[PeriodLabel, tuple[Cells, Cells]]
    maps: dict[PeriodLabel, Fitted]
    said: Reading | None
    alarms: list[Alarm]
    counted: list[int]
    brakes: int
    brake_left: int
    braked: tuple[int, int]
    history: dict[str, list[Any]]


# --- Writing ----------------------------------------------------------------------------------------------------------


def plain(parts: RollingParts, packer: Packer) -> dict[str, Any]:
    """Return what JSON holds of it; arrays go into the table."""
    return {
        "window": [{"period": period, "cells": packer.cells(cells)} for period, cells in parts.window],
        "scores": [_plain_score(score, packer) for score in parts.scores],
        "open": [
            {"period": period, "before": packer.cells(before), "after": packer.cells(after)}
            for period, (before, after) in parts.open.items()
        ],
        "maps": [
            {
                "period": period,
                "map": None if fitted.map is None else fitted.map._to_dict(),
                "status": fitted.status,
                "rows": fitted.rows,
            }
            for period, fitted in parts.maps.items()
        ],
        "said": None if parts.said is None else parts.said.to_dict(),
        "alarms": [alarm.to_dict() for alarm in parts.alarms],
        "counted": parts.counted,
        "brakes": parts.brakes,
        "brake_left": parts.brake_left,
        "braked": {"length": parts.braked[0], "over": parts.braked[1]},
        "history": {
            "periods": len(parts.history["period"]),
            "columns": packed(json.dumps(parts.history, allow_nan=False).encode()),
        },
    }


def _plain_score(score: Score, packer: Packer) -> dict[str, Any]:
    return {
        "cells": packer.cells(score.cells),
        "stretch": packer.cells(score.stretch),
        "periods": score.periods,
        "stretch_periods": score.stretch_periods,
        "stretches": score.stretches,
    }


# --- Reading ----------------------------------------------------------------------------------------------------------


def rebuilt(found: Record, window: Window) -> RollingParts:
    """Return what was remembered, after every check of types, sizes and ranges."""
    found.only(
        "window", "scores", "open", "maps", "said", "alarms", "counted", "brakes", "brake_left", "braked", "history"
    )
    scores = [_score(each, window.size) for each in found.records("scores")]
    if len(scores) != 2 or scores[0].periods != scores[1].periods:
        found.refuse("scores", "not two, of the same periods")
    history = rebuilt_history(found.record("history"), HISTORY, _fits, "may be said of a period")
    counted = found.items("counted")
    if not all(isinstance(each, int) and 1 <= each <= len(history["period"]) for each in counted):
        found.refuse("counted", "not the places of periods")
    braked = found.record("braked").only("length", "over")
    parts = RollingParts(
        window=_window(found, window.size),
        scores=(scores[0], scores[1]),
        open={},
        maps=_maps(found),
        said=None if found.value("said") is None else _result(Reading, found.record("said")),
        alarms=[_result(Alarm, each) for each in found.records("alarms")],
        counted=counted,
        brakes=found.whole("brakes"),
        brake_left=found.whole("brake_left", 0, braked.whole("length")),
        braked=(braked.whole("length"), braked.whole("over")),
        history=history,
    )
    for each in found.records("open"):
        each.only("period", "before", "after")
        before, after = each.cells("before"), each.cells("after")
        if before is None or after is None or before.row_total != after.row_total:
            each.refuse("before", "which does not go with the rows after the repair")
        parts.open[each.label("period")] = before, after
    if not set(parts.open) <= set(parts.maps):
        found.refuse("maps", "not of all open periods")
    return parts


def _window(found: Record, size: int) -> list[tuple[PeriodLabel, Cells]]:
    periods: list[tuple[PeriodLabel, Cells]] = []
    for each in found.records("window"):
        period, cells = each.only("period", "cells").label("period"), each.cells("cells")
        if cells is None:
            each.refuse("cells", "of no rows")
        if periods and (
            isinstance(periods[-1][0], str) != isinstance(period, str) or not is_after(period, periods[-1][0])
        ):
            each.refuse("period", "not after the one before it")
        periods.append((period, cells))
    if len(periods) > size:
        found.refuse("window", f"of more than {size} periods")
    return periods


def _score(found: Record, size: int) -> Score:
    found.only("cells", "stretch", "periods", "stretch_periods", "stretches")
    score = Score(
        size,
        found.cells("cells"),
        found.cells("stretch"),
        found.whole("periods"),
        found.whole("stretch_periods", 0, size - 1),
        found.number("stretches", 0.0, MOST),
    )
    if (score.cells is None) is not (score.periods == 0) or (score.stretch is None) is not (score.stretch_periods == 0):
        found.refuse("periods", "which does not go with its cells")
    return score


def _maps(found: Record) -> dict[PeriodLabel, Fitted]:
    maps = {}
    for each in found.records("maps"):
        each.only("period", "map", "status", "rows")
        status, stored = each.value("status"), each.value("map")
        if status not in STATUSES or (status == REPAIRING) is not (stored is not None):
            each.refuse("status", "which does not go with its map")
        try:
            fitted = None if stored is None else Recalibrator._from_dict(stored)
        except CalibrantError as error:
            raise damaged(f"a map cannot be: {error}") from error
        maps[each.label("period")] = Fitted(fitted, status, each.whole("rows"))
    return maps


def _result(kind: type[Said], found: Record) -> Said:
    try:
        return kind.from_dict(found.data)
    except CalibrantError as error:
        raise damaged(f"{found.where} cannot be: {error}") from error


def _fits(name: str, value: Any) -> bool:
    """Whether this may be said of a period."""
    if name.startswith("alarm"):
        return isinstance(value, bool)
    if name in ("rows", "map_rows"):
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST
    if name == "status":
        return value in STATUSES
    if name == "period":
        return isinstance(value, (int, str)) and not isinstance(value, bool)
    return isinstance(value, float) and math.isfinite(value) and 0.0 <= value <= 1.0
