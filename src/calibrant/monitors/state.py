"""The whole state of a monitor, as plain values and back: what was saved goes on as if it had not been."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np

from calibrant.core.codec import fields_of
from calibrant.core.errors import CalibrantError
from calibrant.core.types import FloatArray
from calibrant.monitors.evidence import Evidence, followed
from calibrant.monitors.families import END, LEAST_BITS, RATES
from calibrant.monitors.periods import LONGEST_NAME, MOST_REMEMBERED, Ledger, OpenPeriod, PeriodLabel, is_after
from calibrant.monitors.results import Reading
from calibrant.monitors.spread import Spread
from calibrant.monitors.storage import MOST, Packer, Record, damaged, packed, unpacked
from calibrant.monitors.uppers import MOST_BLOCKS, PeriodSums
from calibrant.monitors.waiting import Waiting, check_ids
from calibrant.rows.cells import Cells

FORMAT = "calibrant/monitor/1"

HISTORY = (
    "epoch",
    "period",
    "rows",
    "estimate",
    "lower",
    "upper",
    "verdict",
    "evidence",
    "detector",
    "alarm",
    "since",
    "overdispersion",
    "missing",
)
"""What is kept of every reading; of an alarm its period, and since when."""

_LONGEST = 1_000 + 3 * 12 * LONGEST_NAME  # bytes that the history of a period may take, with names in any script
_STAKES = (RATES, 2, END.size)


class _WithOptions(Protocol):
    def options(self) -> dict[str, Any]:
        """Return what the monitor was asked for."""
        ...


Made = TypeVar("Made", bound=_WithOptions)


@dataclass
class Parts:
    """What a monitor remembers beside its options.

    Attributes
    ----------
    epoch, missing : int
        As in a reading.
    ledger : Ledger
        The open periods.
    waiting : Waiting
        Forecasts without labels.
    history : dict
        What was said after each period.
    last : Reading or None
        The last reading of this epoch.
    cells : Cells or None
        The totals of this epoch, and with it all that follows.
    evidence : Evidence
        The bets.
    sums : PeriodSums
        What limits for periods need.
    spread : Spread
        How much periods differ.
    labels : dict
        The period after which each start of bets began.
    limits : tuple of float
        The best limits so far.
    """

    epoch: int
    missing: int
    ledger: Ledger
    waiting: Waiting
    history: dict[str, list[Any]]
    last: Reading | None
    cells: Cells | None
    evidence: Evidence
    sums: PeriodSums
    spread: Spread
    labels: dict[int, PeriodLabel]
    limits: tuple[float, float]


# --- Writing ----------------------------------------------------------------------------------------------------------


def plain(parts: Parts, packer: Packer) -> dict[str, Any]:
    """Return what JSON holds of a monitor; arrays go into the table."""
    return {
        "epoch": parts.epoch,
        "missing": parts.missing,
        "ledger": plain_ledger(parts.ledger, packer),
        "waiting": _plain_waiting(parts.waiting, packer),
        "history": {
            "periods": len(parts.history["period"]),
            "columns": packed(json.dumps(parts.history, allow_nan=False).encode()),
        },
        "last": None if parts.last is None else parts.last.to_dict(),
        "cells": packer.cells(parts.cells),
        "evidence": _plain_evidence(parts, packer),
        "sums": _plain_sums(parts.sums, packer),
        "spread": asdict(parts.spread),
        "limits": list(parts.limits),
    }


def plain_ledger(ledger: Ledger, packer: Packer) -> dict[str, Any]:
    """Return what JSON holds of open periods."""
    periods = [
        {"period": period, "cells": packer.cells(rows.cells), "batches": sorted(rows.batches)}
        for period, rows in ledger.periods.items()
    ]
    return {"closed": ledger.closed, "named": ledger.named, "recent": ledger.recent, "periods": periods}


def _plain_waiting(waiting: Waiting, packer: Packer) -> dict[str, Any]:
    def plain_period(period: PeriodLabel, forecasts: dict[Any, float]) -> dict[str, Any]:
        return {
            "period": period,
            "ids": list(forecasts),
            "forecasts": packer.add(np.array(list(forecasts.values()), dtype=np.float64)),
            "labelled": packer.add(np.array([each in waiting.labels for each in forecasts], dtype=np.bool_)),
            "outcomes": packer.add(np.array([waiting.labels.get(each, 0.0) for each in forecasts], dtype=np.float64)),
        }

    return {"late": waiting.late, "periods": [plain_period(*each) for each in waiting.forecasts.items()]}


def _plain_evidence(parts: Parts, packer: Packer) -> dict[str, Any]:
    evidence = parts.evidence
    return {
        "periods": evidence.periods,
        "units": evidence.units,
        "log": packer.add(evidence.log),
        "lowered": packer.add(evidence.lowered),
        "starts": [
            {"start": start, "period": parts.labels[start], "log": packer.add(log)}
            for start, log in sorted(evidence.starts.items())
        ],
    }


def _plain_sums(sums: PeriodSums, packer: Packer) -> dict[str, Any] | None:
    if sums.cells is None:
        return None
    return {
        "cells": packer.cells(sums.cells),
        "blocks": sums.borders.size,
        "borders": packer.add(sums.borders),
        "products": packer.add(sums.products[np.triu_indices(sums.borders.size)]),
        "inside": packer.add(sums.inside),
        "reach": sums.reach.tolist(),
    }


# --- Reading ----------------------------------------------------------------------------------------------------------


def with_options(kind: Callable[..., Made], found: Record) -> Made:
    """Return a new monitor with options that were stored, each of which must be what the constructor makes of it."""
    try:
        made = kind(**found.data)
    except (CalibrantError, TypeError) as error:
        raise damaged(f"its options cannot be: {error}") from error
    if made.options() != found.data:
        raise damaged("its options are not complete")
    return made


def rebuilt(found: Record, new: Evidence) -> Parts:
    """Return what a monitor remembers, after every check of types, sizes and ranges; ``new`` has no bets yet."""
    found.only(
        "epoch", "missing", "ledger", "waiting", "history", "last", "cells", "evidence", "sums", "spread", "limits"
    )
    evidence, labels = _evidence(found.record("evidence"), new)
    parts = Parts(
        epoch=found.whole("epoch", 1),
        missing=found.whole("missing"),
        ledger=rebuilt_ledger(found.record("ledger")),
        waiting=_waiting(found.record("waiting")),
        history=rebuilt_history(found.record("history"), HISTORY, _fits, "readings say"),
        last=_last(found),
        cells=found.cells("cells"),
        evidence=evidence,
        sums=PeriodSums() if found.value("sums") is None else _sums(found.record("sums")),
        spread=_spread(found.record("spread")),
        labels=labels,
        limits=_pair(found, "limits"),
    )
    _check_together(parts, new.unit)
    return parts


def rebuilt_ledger(found: Record) -> Ledger:
    """Return open periods, each in its place."""
    found.only("closed", "named", "recent", "periods")
    named = found.value("named")
    if named is not None and not isinstance(named, bool):
        found.refuse("named", "neither true nor false")
    closed = None if found.value("closed") is None else found.label("closed")
    ledger = Ledger(closed=closed, named=named, recent=found.texts("recent"))
    if len(ledger.recent) > MOST_REMEMBERED or (ledger.recent and named):
        found.refuse("recent", "more than are remembered")
    stored = [each.only("period", "cells", "batches") for each in found.records("periods")]
    labels = [each.label("period") for each in stored]
    if len(set(labels)) < len(labels):
        found.refuse("periods", "with one of them twice")
    if (named is None) is not (ledger.closed is None and not stored):
        found.refuse("named", "which does not go with its periods")
    _in_place(found, "periods", lambda: ledger.check(labels, own=not named))
    for label, each in zip(labels, stored, strict=True):
        ledger.periods[label] = OpenPeriod(each.cells("cells"), set(each.texts("batches")))
    return ledger


def _in_place(found: Record, name: str, check: Any) -> None:
    try:
        check()
    except CalibrantError as error:
        found.refuse(name, f"which cannot be: {error}")


def _waiting(found: Record) -> Waiting:
    waiting = Waiting(late=found.only("late", "periods").whole("late"))
    for each in found.records("periods"):
        each.only("period", "ids", "forecasts", "labelled", "outcomes")
        ids = each.items("ids")
        if not all(isinstance(one, (int, str)) for one in ids):
            each.refuse("ids", "not of whole numbers and texts")
        shape = len(ids)
        forecasts, outcomes = each.floats("forecasts", shape), each.floats("outcomes", shape)
        for name, values in (("forecasts", forecasts), ("outcomes", outcomes)):
            if ((values < 0.0) | (values > 1.0)).any():
                each.refuse(name, "not all from 0 to 1")
        period = each.label("period")
        if period in waiting.forecasts:
            each.refuse("period", "there twice")

        def add(period: PeriodLabel = period, ids: Any = ids, forecasts: FloatArray = forecasts) -> None:
            array = np.empty(len(ids), dtype=object)
            array[:] = ids
            waiting.expect(period, check_ids(array, len(ids)), forecasts)

        _in_place(each, "ids", add)
        for one, known, outcome in zip(ids, each.flags("labelled", shape).tolist(), outcomes.tolist(), strict=True):
            if known:
                waiting.labels[one] = outcome
    return waiting


def rebuilt_history(
    found: Record, names: Sequence[str], fits: Callable[[str, Any], bool], what: str
) -> dict[str, list[Any]]:
    """Return columns with an entry for each period, all of which fit."""
    periods = found.only("periods", "columns").whole("periods", 0, MOST // _LONGEST)
    content = unpacked(found.value("columns"), _LONGEST * (periods + 1), "the history")
    try:
        columns = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise damaged(f"the history is no JSON text ({error})") from error
    listed = Record(columns, "the history", found.arrays).only(*names)
    for name in names:
        values = listed.items(name)
        if len(values) != periods:
            listed.refuse(name, f"not of {periods:,} periods")
        if not all(fits(name, value) for value in values):
            listed.refuse(name, f"not what {what}")
    return {name: columns[name] for name in names}


def _fits(name: str, value: Any) -> bool:
    """Whether a reading can say this."""
    if name in ("alarm", "since"):
        return value is None or _fits("period", value)
    low, high = Reading._ranges.get(name, (0.0, math.inf))
    if not fields_of(Reading)[name].shape.fits(value):
        return False
    if name in Reading._words:
        return value in Reading._words[name]
    return isinstance(value, str) or value is None or name == "period" or (low <= value <= high and value < math.inf)


def _last(found: Record) -> Reading | None:
    said = found.value("last")
    if said is None:
        return None
    try:
        return Reading.from_dict(found.record("last").data)
    except CalibrantError as error:
        raise damaged(f"its last reading cannot be: {error}") from error


def _evidence(found: Record, new: Evidence) -> tuple[Evidence, dict[int, PeriodLabel]]:
    found.only("periods", "units", "log", "lowered", "starts")
    evidence = replace(
        new,
        periods=found.whole("periods"),
        units=found.whole("units"),
        log=found.floats("log", *_STAKES),
        lowered=found.flags("lowered", *_STAKES),
    )
    starts = [each.only("start", "period", "log") for each in found.records("starts")]
    if [each.whole("start") for each in starts] != followed(evidence.periods):
        found.refuse("starts", f"not those that are followed after {evidence.periods:,} periods")
    evidence.starts = {each.whole("start"): each.floats("log", *_STAKES) for each in starts}
    return evidence, {each.whole("start"): each.label("period") for each in starts}


def _sums(found: Record) -> PeriodSums:
    found.only("cells", "blocks", "borders", "products", "inside", "reach")
    blocks = found.whole("blocks", 1, MOST_BLOCKS)
    borders = found.wholes("borders", blocks)
    if (borders[:1] != 0).any() or (np.diff(borders) <= 0).any() or (borders >= 2**LEAST_BITS).any():
        found.refuse("borders", "not increasing from 0 on")
    products = np.zeros((blocks, blocks))
    upper = np.triu_indices(blocks)
    products[upper] = found.floats("products", upper[0].size)
    products = np.where(np.tri(blocks, k=-1, dtype=np.bool_), products.T, products)
    inside = found.floats("inside", blocks)
    if (inside < 0.0).any() or (np.diagonal(products) < 0.0).any():
        found.refuse("inside", "below 0")
    cells = found.cells("cells")
    if cells is None:
        found.refuse("cells", "although there are blocks of them")
    return PeriodSums(cells, borders, products, inside, np.array(_pair(found, "reach")))


def _spread(found: Record) -> Spread:
    numbers = [each.name for each in fields(Spread) if each.name != "periods"]
    found.only("periods", *numbers)
    lows = dict.fromkeys(
        ("mean_square", "differences", "expected", "largest", "largest_expected", "last_variance"), 0.0
    )
    return Spread(found.whole("periods"), **{name: found.number(name, lows.get(name, -MOST), MOST) for name in numbers})


def _pair(found: Record, name: str) -> tuple[float, float]:
    """Return two numbers from 0 to 1, up to rounding."""
    pair = found.items(name)
    if len(pair) != 2 or not all(isinstance(each, float) and -1e-6 <= each <= 1.0 + 1e-6 for each in pair):
        found.refuse(name, "not two numbers from 0 to 1")
    return pair[0], pair[1]


def _check_together(parts: Parts, unit: str) -> None:
    """Refuse parts that are fine each by itself and cannot come from one monitor."""
    periods, last, cells, sums = parts.evidence.periods, parts.last, parts.cells, parts.sums.cells
    rows = 0 if cells is None else cells.row_total
    together = {
        "periods and cells": (cells is None) is (periods == 0),
        "periods and means": parts.spread.periods == periods,
        "units and rows": parts.evidence.units == (rows if unit == "row" else periods),
        "means of periods": (sums is None) is (unit == "row" or periods == 0),
        "means and cells": cells is None or sums is None or _same_places(cells, sums),
        "last reading": (last is None) is (periods == 0),
        "last reading and rows": last is None
        or (last.periods, last.rows, last.epoch, last.unit) == (periods, rows, parts.epoch, unit),
        "missing labels": last is None or last.missing <= parts.missing,
        "names of periods": last is None or _in_order([*parts.labels.values()], last.period, parts.ledger.closed),
        "forecasts and open periods": set(parts.waiting.forecasts) <= set(parts.ledger.periods),
    }
    for what, is_so in together.items():
        if not is_so:
            raise damaged(f"its {what} do not go together")


def _same_places(one: Cells, other: Cells) -> bool:
    return np.array_equal(one.index, other.index) and np.array_equal(one.rows, other.rows)


def _in_order(starts: list[PeriodLabel], last: Any, closed: PeriodLabel | None) -> bool:
    """Whether periods at which bets began come one after the other, up to the last that counts and that is closed."""
    labels: list[Any] = [*starts, closed]
    if any(isinstance(label, str) is not isinstance(last, str) for label in labels) or closed is None:
        return False
    return all(is_after(after, before) for before, after in pairwise(starts)) and not (
        is_after(starts[-1], last) or is_after(last, closed)
    )
