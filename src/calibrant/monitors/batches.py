"""Batches of rows as monitors take them: totals by period, and by segment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from calibrant.core.types import FloatArray, IntArray
from calibrant.monitors.periods import PeriodLabel, on_grid, period_label
from calibrant.rows.cells import DEFAULT_BITS, Cells
from calibrant.rows.checks import Observations, check_same_index, label_places
from calibrant.rows.given import given_tally, refuse_more
from calibrant.rows.grids import Grid
from calibrant.rows.groups import are_grouped
from calibrant.rows.promised import as_observations, as_source, with_fixed_weights
from calibrant.rows.runs import group_starts, stable_order
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Totals

Batches = list[tuple[PeriodLabel, Cells]]
"""The totals of rows, period by period."""

GRID = Grid(DEFAULT_BITS, 0.0, 1.0)


def as_cells(y_true: Any, y_prob: Any = None, sample_weight: Any = None, pos_label: Any = None) -> Cells:
    """Return totals of whatever stands for rows, on the grid of monitors."""
    if isinstance(with_fixed_weights(y_true), Cells):
        refuse_more("set of cells", y_prob, sample_weight, pos_label)
        return on_grid(y_true)
    if isinstance(y_true, Totals):
        return Cells.from_tally(given_tally(y_true, y_prob, sample_weight, pos_label), GRID)
    if are_grouped(y_true):
        as_source(y_true)  # which says what to do with them
    if y_prob is None and not isinstance(y_true, np.ndarray) and isinstance(y_true, RowSource):
        refuse_more("source of rows", y_prob, sample_weight, pos_label)
        table = y_true.histogram(GRID)
        assert isinstance(table, Cells)
        return table
    rows = as_observations(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    return Cells.from_rows(rows, GRID)


def is_one(label: Any) -> bool:
    """Whether a name is that of all rows, not an array of names."""
    return isinstance(label, (str, int)) or np.ndim(label) == 0


def batches_of(y_true: Any, y_prob: Any, period: Any, sample_weight: Any, pos_label: Any) -> Batches:
    """Return the totals of the rows of each period."""
    if is_one(period):
        return [(period_label(period), as_cells(y_true, y_prob, sample_weight, pos_label))]
    rows = as_observations(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    check_same_index(y_prob=y_prob, period=period)
    labels, place = period_places(period, rows.y_prob.size)
    return [(labels[each], Cells.from_rows(some, GRID)) for each, some in split_rows(rows, place)]


def period_places(period: Any, rows: int) -> tuple[list[PeriodLabel], IntArray]:
    """Return the names of periods, and the place among them of the period of each row."""
    given, place = label_places(period, "period", rows)
    names = [period_label(label) for label in given]
    places = {name: position for position, name in enumerate(dict.fromkeys(names))}  # one day may have two spellings
    return list(places), np.array([places[name] for name in names], dtype=np.int64)[place]


def split_rows(rows: Observations, place: IntArray) -> Iterator[tuple[int, Observations]]:
    """Go through the places of rows, each with the rows there that count."""
    order = stable_order(place)
    starts = group_starts(place[order])
    for part in np.split(order, starts[1:]):
        some = rows.take(part).that_count()
        if some.y_prob.size:
            yield int(place[part[0]]), some.alone()


def outcomes_of(y_true: Any) -> FloatArray:
    """Return labels as the gate lets them through."""
    array = np.asarray(y_true)
    return as_observations(y_true, np.full(array.shape, 0.5), order=None).y_true.astype(np.float64)
