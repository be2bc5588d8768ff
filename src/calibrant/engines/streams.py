"""Totals per cell of very many rows, which an engine hands over batch by batch: added up here by a compiled loop.

To hand rows over takes DuckDB little longer than to read them, and an array of all cells, each of which fits into one
line of the cache, is quicker than a GROUP BY. Whole numbers are added up: the order of rows does not matter.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.row_kernels import HALF_BITS, UNIT_BITS, counted_cells, no_counts
from calibrant.core.types import FloatArray, IntArray
from calibrant.engines.histograms import Numbered, may_be_fractions
from calibrant.engines.statements import Engine, Roles, first_cell, given_rows, label_text, scanned_grid
from calibrant.rows.grids import Grid
from calibrant.rows.sources import HistogramRequest

STREAM_ROWS = 2**25
"""From so many rows on it pays to wait until a loop is compiled."""

BATCH_ROWS = 2**17

STREAMED_BITS = 20
"""Of the numbers of cells, at most: 64 MB of totals in each thread."""

_MOST_ADDERS = 8  # more of them would wait for the engine


class UncountableError(Exception):
    """Some row breaks a rule, or has an outcome between 0 and 1; or the engine failed, which says better why in SQL."""


def streamed_answer(
    engine: Engine, roles: Roles, asked: Sequence[HistogramRequest], labels: Sequence[str]
) -> Mapping[str, npt.NDArray[Any]] | None:
    """Return what the statement of `histograms` would, where all rows keep the rules and can be counted.

    Otherwise that statement has to be asked: it is None where there are weights or too many cells, before any row is
    read.

    Raises
    ------
    UncountableError
        Something is missing or outside [0, 1], outcomes are fractions, or the engine failed.
    """
    grids = [scanned_grid(request.grid) for request in asked]
    numbered = Numbered.of(grids, STREAMED_BITS)
    if numbered is None or roles.weighted:
        return None
    own = [labels[request.group] for request in asked] if labels else []
    import pyarrow

    try:
        totals = _added_up(engine.batches(_statement(engine, roles, own, labels)), numbered)
    except (pyarrow.ArrowException, OSError) as error:
        raise UncountableError from error
    return _answer(totals, numbered, grouped=bool(labels))


def first_labels(engine: Engine, column: str) -> npt.NDArray[Any]:
    """Return the distinct values of a column as text among the first rows handed over; none where that fails."""
    import pyarrow

    found: list[str | None] = []
    with contextlib.suppress(pyarrow.ArrowException, OSError):
        for batch in engine.batches(f"SELECT {label_text(engine, column)} AS label FROM {engine.table}"):
            found = batch.column(0).unique().to_pylist()
            break
    return np.array(found, dtype=object)


def _statement(engine: Engine, roles: Roles, own: Sequence[str], labels: Sequence[str]) -> str:
    """Write the rows as forecasts, outcomes in one byte unless they may be fractions, and places among labels."""
    given, event, place = given_rows(engine, roles), "TRY_CAST(y AS UTINYINT)", ""
    where = ""
    if may_be_fractions(engine, roles):
        event = "y"
    elif roles.event is None:  # without a way through float64
        given, event = (
            given_rows(engine, roles, f"TRY_CAST({engine.quoted(roles.y_true)} AS UTINYINT) AS event"),
            "event",
        )
    if labels:
        places = engine.place_of("g", [*own, *(label for label in labels if label not in own)])
        given = f"(SELECT *, CAST({places} AS USMALLINT) AS place FROM {given} AS given)"
        place, where = ", place", f" WHERE place < {len(own)}" if len(own) < len(labels) else ""
    return f"SELECT p, {event} AS event{place} FROM {given} AS given{where}"


def _added_up(batches: Iterator[Any], numbered: Numbered) -> IntArray:
    """Return the totals of all rows, which several threads add up where there are processors for them."""
    first_numbers, cells = numbered.first_numbers(), numbered.starts[-1]
    turn, ended = threading.Lock(), threading.Event()

    def add_up(_: int) -> IntArray:
        totals = no_counts(cells)
        while not ended.is_set():
            with turn:
                batch = next(batches, None)
            if batch is None:
                break
            columns = map(_plain, batch.columns)
            forecast, outcome = next(columns), _counted(next(columns))
            place = next(columns, np.empty(0, dtype=np.uint16))
            # However small a batch is: engines hand over row groups as they are, and all of them together are long.
            if not counted_cells.run_compiled(
                forecast, outcome, place, first_numbers, numbered.bits, numbered.fine, totals
            ):
                raise UncountableError
        return _carried(totals)

    def add_up_or_end_all(place: int) -> IntArray:
        try:
            return add_up(place)
        except BaseException:
            ended.set()  # the other threads would read on to the last row
            raise

    adders = min(_MOST_ADDERS, (os.cpu_count() or 1) // 2)
    if adders < 2:
        return add_up(0)
    with ThreadPoolExecutor(adders) as threads:
        try:
            return reduce(_merged, threads.map(add_up_or_end_all, range(adders)))
        finally:
            ended.set()


def _plain(column: Any) -> npt.NDArray[Any]:
    """Return a column of Arrow as an array."""
    if column.null_count:
        raise UncountableError
    found: npt.NDArray[Any] = column.to_numpy()
    return found


def _counted(outcome: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Return outcomes in one byte each."""
    if outcome.dtype == np.uint8:
        return outcome
    event = outcome == 1.0
    if not (event | (outcome == 0.0)).all():
        raise UncountableError
    counts: npt.NDArray[np.uint8] = event.view(np.uint8)
    return counts


def _carried(totals: IntArray) -> IntArray:
    """Pass on what sums can, so that those of several threads have room for each other."""
    for lower, upper in ((2, 6), (3, 7)):
        totals[:, upper] += totals[:, lower] >> HALF_BITS
        totals[:, lower] &= (1 << HALF_BITS) - 1
    return totals


def _merged(one: IntArray, other: IntArray) -> IntArray:
    """Return the totals of the rows of both."""
    added = one + other
    added[:, 4], added[:, 5] = np.minimum(one[:, 4], other[:, 4]), np.maximum(one[:, 5], other[:, 5])
    return added


def _answer(totals: IntArray, numbered: Numbered, *, grouped: bool) -> dict[str, npt.NDArray[Any]]:
    """Return the totals of cells that hold rows, as a statement would name them."""
    number = np.flatnonzero(totals[:, 0])
    held = np.ascontiguousarray(totals[number].T)
    place = np.searchsorted(numbered.starts, number, side="right") - 1
    low, high = held[4].view(np.float64), held[5].view(np.float64)
    first = np.array([first_cell(grid) for grid in numbered.grids])
    answer: dict[str, npt.NDArray[Any]] = {
        "cell_key": Grid(numbered.fine, 0.0, 1.0).index(low) - first[place],
        "n": held[0],
        "low": low,
        "high": high,
        "above": _sum(held[2], held[6], numbered.fine),
        "square_above": _sum(held[3], held[7], numbered.fine),
        "outcome": held[1],
    }
    return answer | {"place": place} if grouped else answer


def _sum(lower: IntArray, upper: IntArray, fine: int) -> FloatArray:
    """Put the parts of a sum together."""
    total: FloatArray = np.ldexp(upper * 2.0**HALF_BITS + lower, -(UNIT_BITS + fine))
    return total
