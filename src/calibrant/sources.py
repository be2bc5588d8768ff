"""Where rows come from: the contract between the exact answers and whatever holds the rows.

A source is two methods: totals per cell of a dyadic grid, and the rows of a few stretches of forecasts. An array in
memory, a file, a database or a cluster that offers them gets exact answers from the same code (`refinement`).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from calibrant.tally import Totals
from calibrant.validation import FloatArray, IntArray, Observations

FIRST_BITS = 15  # finer cells mean fewer rows to look at one by one, coarser ones fit the processor's cache
FETCH_LIMIT = 500_000
"""Rows that a bounded source hands over at a time, some 100 MB in work; where there are more, cells are cut finer."""

TALLY_LIMIT = 10_000_000
"""Rows that a bounded source hands over where every distinct forecast is needed: some 1.5 GB in the end."""

GROUPS_AT_ONCE = 64
"""Groups whose tables are held at the same time, some 3 MB each."""

_MOST_BITS = 1000
_MOST_INDEX_BITS = 61


@dataclass(frozen=True)
class Grid:
    """Dyadic cells of width 2^-bits that cover the forecasts from ``low`` to ``high``.

    ``within`` names closed stretches, disjoint and in increasing order, outside of which nobody wants to know; a source
    that counts other rows too takes longer and is not wrong. Empty, it means all from ``low`` to ``high``.
    """

    bits: int
    low: float
    high: float
    within: tuple[tuple[float, float], ...] = ()

    @classmethod
    def covering(cls, low: float, high: float) -> Grid:
        """Return the grid of some 2^15 cells that zooms in on the forecasts from low to high."""
        return cls(max(0, min(FIRST_BITS - _exponent(high - low), _finest(high))), low, high)

    @classmethod
    def inside(cls, low: FloatArray, high: FloatArray, cells: int) -> Grid:
        """Return a grid that cuts the given stretches into about so many cells, and the widest into two at least."""
        width = high - low
        bits = math.floor(math.log2(cells) - math.log2(float(width.sum())))  # the quotient may be beyond float64
        bits = min(max(bits, 2 - _exponent(float(width.max()))), _finest(float(high[-1])))
        return cls(bits, float(low[0]), float(high[-1]), tuple(zip(low.tolist(), high.tolist(), strict=True)))

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


def _finest(high: float) -> int:
    """Return the most bits with which cells up to a forecast can be numbered."""
    return min(_MOST_BITS, _MOST_INDEX_BITS - _exponent(high))


def _exponent(value: float) -> int:
    """Return the smallest e with value < 2^e; for 0, one below every forecast's."""
    return int(np.frexp(value)[1]) if value > 0.0 else -_MOST_BITS


@runtime_checkable
class RowSource(Protocol):
    """Rows that can be added up by cell and fetched by stretch: all that exact answers need.

    An attribute ``fetch_limit`` or ``tally_limit`` takes the place of `FETCH_LIMIT` or `TALLY_LIMIT`, and an attribute
    ``first_grid`` that of the grid of the first histogram.

    Rows of weight zero are left out. A source checks its rows when it first adds them up: missing values, NaN, numbers
    out of range, negative or all-zero weights and an empty source are a `ValueError` then, as for arrays.
    """

    def histogram(self, grid: Grid, rates: tuple[float, ...] = ()) -> Totals:
        """Return the totals per cell (`Cells`) of the rows whose forecast is from ``grid.low`` to ``grid.high``.

        A forecast's cell is ``grid.index(p)``: floor(p * 2^bits), and p = 1 joins the last cell of [0, 1]. Only cells
        that hold rows are listed. ``weight_max``, ``unit_weights`` and ``binary_outcomes`` are those of all rows of the
        source, whatever the grid. With betting rates, the column ``growth`` too, as `tally.bet_growth` defines it for
        rows of weight 1 (asked for, seldom, when outcomes are 0/1 and all weights are equal).
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


Computed = TypeVar("Computed")


def by_group(source: GroupedSource, compute: Callable[[RowSource], Computed]) -> tuple[Computed, ...]:
    """Run a computation on the rows of each group, with as few scans as the slowest group alone would need.

    The computation is run anew after each scan and handed the answers it had, until it asks for nothing more: it must
    do the same whenever its answers are the same. Groups beyond the first `GROUPS_AT_ONCE` take scans of their own.

    Parameters
    ----------
    source : grouped rows, such as ``scan(..., by=...)``
    compute : callable
        Takes the rows of one group, as a source that measures and certificates accept.

    Returns
    -------
    tuple
        The results, in the order of ``source.groups``.

    Examples
    --------
    >>> import pyarrow
    >>> from calibrant import cutoff_calibration_error, scan
    >>> table = pyarrow.table({"late": [0, 1, 1, 1], "chance": [0.25, 0.5, 0.75, 1.0], "port": ["A", "A", "B", "B"]})
    >>> with scan(table, y_true="late", y_prob="chance", by="port") as flights:
    ...     flights.groups, by_group(flights, cutoff_calibration_error)
    (('A', 'B'), (0.25, 0.125))
    """
    if not isinstance(source, GroupedSource):
        raise ValueError(f"by_group needs grouped rows, such as scan(..., by=...), got {type(source).__name__}")
    results: list[Computed] = []
    for first in range(0, len(source.groups), GROUPS_AT_ONCE):
        found: dict[int, Computed] = {}
        positions = range(first, len(source.groups))[:GROUPS_AT_ONCE]
        waiting = [_GroupRows(source, position) for position in positions]
        while waiting:
            for rows in waiting:
                with naming_group(source.groups[rows.position]):
                    rows.replay(compute, found)
            waiting = [rows for rows in waiting if rows.position not in found]
            _answer(source, waiting)
        results.extend(found[position] for position in sorted(found))
    return tuple(results)


@contextlib.contextmanager
def naming_group(label: Any) -> Iterator[None]:
    """Say in which group something is wrong."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"by group {label!r}: {error}") from error


class _AskedError(Exception):
    """What stops a computation whose next answer is not there yet."""


class _GroupRows:
    """The rows of one group: answers what has been answered before, in the same order, and notes what comes next."""

    def __init__(self, source: GroupedSource, position: int) -> None:
        self.position = position
        self.fetch_limit, self.tally_limit = fetch_limit(source), tally_limit(source)
        self.answers: list[Any] = []
        self.wanted: HistogramRequest | FetchRequest | None = None
        self._given = 0

    def replay(self, compute: Callable[[RowSource], Computed], found: dict[int, Computed]) -> None:
        """Run the computation as far as the answers reach."""
        if self.wanted is None:
            self._given = 0
            with contextlib.suppress(_AskedError):
                found[self.position] = compute(self)

    def histogram(self, grid: Grid, rates: tuple[float, ...] = ()) -> Totals:
        """Return the totals per cell of the group's rows."""
        table: Totals = self._next(HistogramRequest(self.position, grid, rates))
        return table

    def fetch(self, low: FloatArray, high: FloatArray) -> Observations:
        """Return the group's rows inside the stretches."""
        rows: Observations = self._next(FetchRequest(self.position, low, high))
        return rows

    def _next(self, request: HistogramRequest | FetchRequest) -> Any:
        if self._given == len(self.answers):
            self.wanted = request
            raise _AskedError
        self._given += 1
        return self.answers[self._given - 1]

    def rows_in(self, request: FetchRequest) -> int:
        """Return about how many rows the stretches hold, as the histograms say that cover each of them."""
        count = np.full(request.low.size, np.iinfo(np.int64).max)
        for table in self.answers:
            if isinstance(table, Totals):
                before = np.concatenate([[0], np.cumsum(table.rows)])
                begin = np.searchsorted(table.high, request.low)
                end = np.searchsorted(table.low, request.high, side="right")
                inside = before[end] - before[begin]
                covered = (table.low[0] <= request.low) & (request.high <= table.high[-1]) & (inside > 0)
                count[covered] = np.minimum(count, inside)[covered]
        return int(count.sum())


def _answer(source: GroupedSource, waiting: Sequence[_GroupRows]) -> None:
    """Answer many groups in one scan: their histograms, and once nobody waits for one, rows up to the limit."""
    tables = [rows.wanted for rows in waiting if isinstance(rows.wanted, HistogramRequest)]
    fetches = [] if tables else _within_limit(waiting, fetch_limit(source))
    asked: list[HistogramRequest | FetchRequest] = [*tables, *fetches]
    answers: list[Totals | Observations] = []
    if tables:
        answers.extend(source.histograms(tables))
    elif fetches:
        answers.extend(source.fetches(fetches))
    given = {request.group: answer for request, answer in zip(asked, answers, strict=True)}
    for rows in waiting:
        if rows.position in given:
            rows.answers.append(given[rows.position])
            rows.wanted = None


def _within_limit(waiting: Sequence[_GroupRows], limit: float) -> list[FetchRequest]:
    """Return the first fetches wanted that together stay within the limit, and at least one of them."""
    chosen: list[FetchRequest] = []
    total = 0
    for rows in waiting:
        if isinstance(rows.wanted, FetchRequest):
            total += rows.rows_in(rows.wanted)
            if chosen and total > limit:
                break
            chosen.append(rows.wanted)
    return chosen


def fetch_limit(source: object) -> float:
    """Return how many rows may be fetched from a source at a time."""
    return float(getattr(source, "fetch_limit", FETCH_LIMIT))


def tally_limit(source: object) -> float:
    """Return how many rows may be fetched from a source where every distinct forecast is needed."""
    return float(getattr(source, "tally_limit", TALLY_LIMIT))
