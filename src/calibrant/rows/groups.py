"""Rows in groups: one source for all of them, asked for several groups at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from calibrant.core.errors import CalibrantError, InputError
from calibrant.core.frames import FromFrames
from calibrant.core.threads import in_threads
from calibrant.core.types import FloatArray
from calibrant.rows.checks import Observations
from calibrant.rows.grids import Grid
from calibrant.rows.sources import ZOOM_CELLS, FetchRequest, HistogramRequest, RowSource, fetch_limit, tally_limit
from calibrant.rows.tally import Tally, Totals

GROUPS_AT_ONCE = 64
"""Groups whose tables are held at the same time, some 3 MB each."""

_LEAST_CELLS = 2**12

_FETCHES_AT_ONCE = 4
"""How many times the rows that one group may fetch a scan brings for all: they wait in two columns, not in work."""


@runtime_checkable
class GroupedSource(Protocol):
    """Rows in groups, of which many can be asked at the price of one scan.

    Each answer is what a `RowSource` of that group's rows alone would give; a call is one scan. The requests
    of a call are for different groups, in any order; the answers come in the order of the requests. The attributes that
    a `RowSource` may have are those of every group.
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


@dataclass(frozen=True, eq=False)
class GroupedRows(FromFrames):
    """Checked rows in memory, in groups; `in_groups` makes them.

    Attributes
    ----------
    groups : tuple
        The groups' values in sorted order.
    sources : tuple of Tally or RowSource
        The rows of each.
    """

    groups: tuple[Any, ...]
    sources: tuple[Tally | RowSource, ...]

    @property
    def weights_estimated(self) -> bool:
        """Whether weights were estimated from the rows."""
        return any(getattr(each, "weights_estimated", False) for each in self.sources)


def are_grouped(rows: Any) -> bool:
    """Whether rows are in groups already. Arrays and tallies are not, and take no look at a protocol's members."""
    return not isinstance(rows, (np.ndarray, Totals)) and isinstance(rows, (GroupedSource, GroupedRows))


Computed = TypeVar("Computed")
Found = TypeVar("Found")


def by_group(
    source: GroupedSource | GroupedRows,
    compute: Callable[[Tally | RowSource], Computed],
    *,
    side_by_side: bool = False,
) -> tuple[Computed, ...]:
    """Run a computation on the rows of each group, with as few scans as the slowest group alone would need.

    The computation is run anew after each scan and handed the answers it had, until it asks for nothing more: it must
    do the same whenever its answers are the same. Groups beyond the first `GROUPS_AT_ONCE` take scans of their own.

    Parameters
    ----------
    source : GroupedSource or GroupedRows
        Rows in groups, such as ``scan(..., by=...)`` or `in_groups` gives.
    compute : callable
        Takes the rows of one group, as a source that measures and certificates accept.
    side_by_side : bool
        Whether large groups may be computed in threads, in any order: nothing that they share may change.

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
    if isinstance(source, GroupedRows):
        return tuple(_answers(source, compute))
    if not isinstance(source, GroupedSource):
        raise InputError(f"by_group needs grouped rows, such as scan(..., by=...), got {type(source).__name__}")
    found: dict[int, Computed] = {}
    for first in range(0, len(source.groups), GROUPS_AT_ONCE):
        positions = range(first, len(source.groups))[:GROUPS_AT_ONCE]
        waiting = [_GroupRows(source, position) for position in positions]
        while waiting:
            entries = sum(rows.entries for rows in waiting) if side_by_side else 0
            in_threads(lambda rows: rows.replay(compute, found), waiting, rows=entries)
            waiting = [rows for rows in waiting if rows.position not in found]
            _answer(source, waiting)
    return tuple(found[position] for position in range(len(source.groups)))


def _answers(rows: GroupedRows, compute: Callable[[Tally | RowSource], Computed]) -> Iterator[Computed]:
    for label, source in zip(rows.groups, rows.sources, strict=True):
        with naming_group(label):
            yield compute(source)


@contextlib.contextmanager
def naming_group(label: Any) -> Iterator[None]:
    """Say in which group something is wrong."""
    try:
        yield
    except CalibrantError as error:
        raise error.among(group=label) from error
    except Exception as error:  # one that is not ours stays what it is
        error.add_note(f"by group {label!r}")
        raise


class _AskedError(Exception):
    """What stops a computation whose next answer is not there yet."""


class _GroupRows:
    """The rows of one group: answers what has been answered before, in the same order, and notes what comes next."""

    def __init__(self, source: GroupedSource, position: int) -> None:
        self.position = position
        self.fetch_limit, self.tally_limit = fetch_limit(source), tally_limit(source)
        if hasattr(source, "first_grid"):
            self.first_grid = source.first_grid
        self.zoom_cells = max(ZOOM_CELLS // len(source.groups), _LEAST_CELLS)  # one scan serves all groups
        self.answers: list[Any] = []
        self.wanted: HistogramRequest | FetchRequest | None = None
        self._given = 0
        self._memories: list[Any] = []
        self._recalled = 0
        self._label = source.groups[position]

    @property
    def entries(self) -> int:
        """How many entries the answers have that there are so far."""
        return sum(len(answer) for answer in self.answers if isinstance(answer, Totals))

    def replay(self, compute: Callable[[Tally | RowSource], Computed], found: dict[int, Computed]) -> None:
        """Run the computation as far as the answers reach."""
        if self.wanted is None:
            self._given = self._recalled = 0
            with contextlib.suppress(_AskedError), naming_group(self._label):
                found[self.position] = compute(self)

    def histogram(self, grid: Grid) -> Totals:
        """Return the totals per cell of the group's rows."""
        table: Totals = self._next(HistogramRequest(self.position, grid))
        return table

    def fetch(self, low: FloatArray, high: FloatArray) -> Observations:
        """Return the group's rows inside the stretches."""
        rows: Observations = self._next(FetchRequest(self.position, low, high))
        return rows

    def recall(self, find: Callable[[], Found]) -> Found:
        """Return what the computation found out at this point of an earlier run, from the same answers."""
        if self._recalled == len(self._memories):
            self._memories.append(find())
        self._recalled += 1
        found: Found = self._memories[self._recalled - 1]
        return found

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
    fetches = [] if tables else _within_limit(waiting, _FETCHES_AT_ONCE * fetch_limit(source))
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
