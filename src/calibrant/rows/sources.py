"""Where rows come from: the contract between the exact answers and whatever holds the rows.

A source is two methods: totals per cell of a dyadic grid, and the rows of a few stretches of forecasts. An array in
memory, a file, a database or a cluster that offers them gets exact answers from the same code (`refinement`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from calibrant.core.types import FloatArray
from calibrant.rows.checks import Observations
from calibrant.rows.grids import Grid
from calibrant.rows.tally import Totals

FETCH_LIMIT = 500_000
"""Rows that a bounded source hands over at a time, some 100 MB in work; where there are more, cells are cut finer."""

FEW_ROWS = 100_000
"""Below this many rows sorting takes milliseconds, and needs no compiled code."""

TALLY_LIMIT = 10_000_000
"""Rows that a bounded source hands over where every distinct forecast is needed: some 1.5 GB in the end."""

ZOOM_CELLS = 1 << 16
"""Cells into which a scan cuts the entries that matter."""


@runtime_checkable
class RowSource(Protocol):
    """Rows that can be added up by cell and fetched by stretch: all that exact answers need.

    An attribute ``fetch_limit`` or ``tally_limit`` takes the place of `FETCH_LIMIT` or `TALLY_LIMIT`, and an attribute
    ``first_grid`` that of the grid of the first histogram.

    Rows of weight zero are left out. A source checks its rows when it first adds them up: missing values, NaN, numbers
    out of range, negative or all-zero weights and an empty source are a `ValueError` then, as for arrays.
    """

    def histogram(self, grid: Grid) -> Totals:
        """Return the totals per cell (`Cells`) of the rows whose forecast is from ``grid.low`` to ``grid.high``.

        A forecast's cell is ``grid.index(p)``: floor(p * 2^bits), and p = 1 joins the last cell of [0, 1]. Only cells
        that hold rows are listed. ``weight_max``, ``unit_weights`` and ``binary_outcomes`` are those of all rows of the
        source, whatever the grid.
        """
        ...

    def fetch(self, low: FloatArray, high: FloatArray) -> Observations:
        """Return the rows inside the given closed stretches, which are disjoint and in increasing order."""
        ...


@dataclass(frozen=True)
class HistogramRequest:
    """A histogram of the rows of one group, named by its position among the groups."""

    group: int
    grid: Grid


@dataclass(frozen=True, eq=False)
class FetchRequest:
    """The rows of one group inside closed stretches of forecasts, disjoint and in increasing order."""

    group: int
    low: FloatArray
    high: FloatArray


def fetch_limit(source: object) -> float:
    """Return how many rows may be fetched from a source at a time."""
    return float(getattr(source, "fetch_limit", FETCH_LIMIT))


def tally_limit(source: object) -> float:
    """Return how many rows may be fetched from a source where every distinct forecast is needed."""
    return float(getattr(source, "tally_limit", TALLY_LIMIT))
