"""Where rows come from: the contract between the exact answers and whatever holds the rows.

A source is two methods: totals per cell of a dyadic grid, and the rows of a few stretches of forecasts. An array in
memory, a file, a database or a cluster that offers them gets exact answers from the same code (`refinement`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from calibrant.tally import Totals
from calibrant.validation import FloatArray, IntArray, Observations

FIRST_BITS = 15  # finer cells mean fewer rows to look at one by one, coarser ones fit the processor's cache
_MOST_BITS = 1000
_MOST_INDEX_BITS = 61


@dataclass(frozen=True)
class Grid:
    """Dyadic cells of width 2^-bits that cover the forecasts from ``low`` to ``high``."""

    bits: int
    low: float
    high: float

    @classmethod
    def covering(cls, low: float, high: float) -> Grid:
        """Return the grid of some 2^15 cells that zooms in on the forecasts from low to high."""
        finest = min(_MOST_BITS, _MOST_INDEX_BITS - _exponent(high))
        return cls(max(0, min(FIRST_BITS - _exponent(high - low), finest)), low, high)

    @property
    def scale(self) -> float:
        """2^bits: a power of two, so that multiplying by it is exact."""
        return float(2.0**self.bits)

    @property
    def first(self) -> int:
        """Index of the cell that holds ``low``."""
        return int(self.index(np.array([self.low]))[0])

    @property
    def size(self) -> int:
        """Number of cells."""
        return int(self.index(np.array([self.high]))[0]) - self.first + 1

    def index(self, forecast: FloatArray) -> IntArray:
        """Return the cell of each forecast; a forecast of 1 joins the last cell."""
        cells: IntArray = (forecast * self.scale).astype(np.int64)
        return np.minimum(cells, 2**self.bits - 1) if self.bits < _MOST_INDEX_BITS else cells


FIRST_GRID = Grid(FIRST_BITS, 0.0, 1.0)
COARSE_GRID = Grid(12, 0.0, 1.0)  # enough where few borders matter, and quicker


def _exponent(value: float) -> int:
    """Return the smallest e with value < 2^e; for 0, one below every forecast's."""
    return int(np.frexp(value)[1]) if value > 0.0 else -_MOST_BITS


@runtime_checkable
class RowSource(Protocol):
    """Rows that can be added up by cell and fetched by stretch: all that exact answers need.

    Rows of weight zero are left out. A source checks its rows when it first adds them up: missing values, NaN, numbers
    out of range, negative or all-zero weights and an empty source are a `ValueError` then, as for arrays.
    """

    def histogram(self, grid: Grid, rates: tuple[float, ...] = ()) -> Totals:
        """Return the totals per cell (`Cells`) of the rows whose forecast is from ``grid.low`` to ``grid.high``.

        A forecast's cell is ``grid.index(p)``: floor(p * 2^bits), and p = 1 joins the last cell of [0, 1]. Only cells
        that hold rows are listed. ``weight_max``, ``unit_weights`` and ``binary_outcomes`` are those of all rows of the
        source, whatever the grid. With betting rates, the column ``growth`` too, as `tally.bet_growth` defines it
        (asked for only when outcomes are 0/1 and weights 1, and seldom then).
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
    rates: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class FetchRequest:
    """The rows of one group inside closed stretches of forecasts, disjoint and in increasing order."""

    group: int
    low: FloatArray
    high: FloatArray


@runtime_checkable
class GroupedSource(Protocol):
    """Rows in groups, of which many can be asked at the price of one scan.

    Each answer is what a `RowSource` of that group's rows alone would give; a call is one scan. The requests
    of a call are for different groups, in any order; the answers come in the order of the requests.
    """

    @property
    def groups(self) -> tuple[Any, ...]:
        """The groups' values in sorted order."""
        ...

    def histograms(self, asked: Sequence[HistogramRequest]) -> Sequence[Totals]:
        """Return what `RowSource.histogram` would, for each request."""
        ...

    def fetches(self, asked: Sequence[FetchRequest]) -> Sequence[Observations]:
        """Return what `RowSource.fetch` would, for each request."""
        ...
