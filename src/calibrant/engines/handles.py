"""Handles of rows that stay where they are: what they were asked, and what of the answers they keep."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import CalibrantError, InputError
from calibrant.core.frames import FromFrames
from calibrant.core.types import FloatArray, IntArray
from calibrant.core.voices import Argument, Either, Phrase
from calibrant.core.words import counted
from calibrant.engines.columns import written_labels
from calibrant.engines.faults import refuse_rows
from calibrant.engines.formats import TableError
from calibrant.engines.histograms import common_bits, histogram_statement
from calibrant.engines.moments import Facts, Moments
from calibrant.engines.statements import (
    Engine,
    Roles,
    count_statement,
    fetch_statement,
    is_missing_label,
    is_whole,
    labels_statement,
    without_value,
)
from calibrant.engines.streams import STREAMED_BITS, UncountableError, first_labels, streamed_answer
from calibrant.rows.arrays import MISSING_REMEDY
from calibrant.rows.cells import DEFAULT_BITS, Cells
from calibrant.rows.checks import SWAPPED_COLUMNS, Observations, check_number, check_weight_totals
from calibrant.rows.grids import FIRST_GRID, Grid
from calibrant.rows.labels import check_pos_label, reading_order
from calibrant.rows.sources import FetchRequest, HistogramRequest

MOST_GROUPS = 1000
"""A handle keeps the first totals of every group, up to five megabytes for each."""

_FEW_GROUPS = 8

_GROUP_GRIDS = (Grid(17, 0.0, 1.0), Grid(16, 0.0, 1.0))
"""For groups that are added up here: a scan that cuts the cells of some of them costs more than finer ones of all."""


@dataclass
class Work:
    """How often rows were read, and how many of them were brought here."""

    scans: int = 0
    rows_fetched: int = 0


class Handle(FromFrames):
    """An engine, which columns to use, and how often they were read."""

    def __init__(self, engine: Engine, roles: Roles, pos_label: Any, fetch_limit: int, tally_limit: int) -> None:
        self.fetch_limit = fetch_limit
        self.tally_limit = tally_limit
        self._engine = engine
        self._roles = roles
        self._pos_label = pos_label
        self._event_labels: tuple[Any, ...] = ()
        self._work = Work()
        self._label_counts: dict[str, int] = {}

    @property
    def scans(self) -> int:
        """How often the rows were read from one end to the other."""
        return self._work.scans

    @property
    def rows_fetched(self) -> int:
        """How many rows were brought here to be looked at one by one: the candidates."""
        return self._work.rows_fetched

    @property
    def labels(self) -> tuple[Any, ...]:
        """The labels of the outcomes, where one of them is that of the event and a first question was asked."""
        return self._event_labels

    def count_with(self, other: Handle) -> None:
        """Count what is read together with another handle."""
        self._work = other._work

    def close(self) -> None:
        """Let go of the files; a session or connection that was handed in stays open."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        columns = ", ".join(f"{role}={column!r}" for role, column in sorted(self._roles.listed().items()))
        return f"{type(self).__name__}({self._engine.name}: {columns}; {self._state()})"

    def _state(self) -> str:
        if not self.scans:
            return "not read yet"
        times = "once" if self.scans == 1 else f"{self.scans} times"
        return f"read {times}, {counted(self.rows_fetched, 'row')} fetched"

    @property
    def _streams(self) -> bool:
        """Whether rows are added up here."""
        return self._engine.streams and not self._roles.weighted

    def _run(self, statement: str) -> Mapping[str, npt.NDArray[Any]]:
        self._work.scans += 1
        return self._engine.run(statement)

    def _labels(self, column: str) -> list[tuple[Any, str]]:
        """Return the values of a column in sorted order, and how the engine writes them."""
        found = self._run(labels_statement(self._engine, column, MOST_GROUPS))
        missing = int(np.sum(found["n"][self._missing(column, found["label"])]))
        self._refuse_labels(self._role(column), "missing", missing, MISSING_REMEDY)
        infinite = int(np.sum(found["n"][self._infinite(column, found["label"])]))
        self._refuse_labels(self._role(column), "infinite", infinite, "labels are finite numbers")
        if len(found["label"]) == 0:
            raise self._no_rows()
        self._label_counts = dict(zip(map(str, found["label"]), map(int, found["n"]), strict=True))
        return self._typed(column, found["label"])

    def _role(self, column: str) -> str:
        return next(role for role, name in self._roles.listed().items() if name == column)

    def _missing(self, column: str, labels: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return which of a column's values are none."""
        kind = self._engine.columns[column]
        gone = without_value(labels)
        if kind == "fraction":
            gone |= np.array([str(label).lower() == "nan" for label in labels], dtype=bool)
        if kind == "written" and self._role(column) == "y_true" and not is_missing_label(str(self._pos_label)):
            gone |= np.array([label is None or is_missing_label(str(label)) for label in labels], dtype=bool)
        return gone

    def _infinite(self, column: str, labels: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return which of a column's values are infinite numbers."""
        numbers = self._engine.columns[column] == "fraction"
        return np.array([numbers and label is not None and math.isinf(float(label)) for label in labels], dtype=bool)

    def _typed(self, column: str, labels: npt.NDArray[Any]) -> list[tuple[Any, str]]:
        """Return a column's values in sorted order, and how the engine writes them."""
        texts = [str(label) for label in labels]
        typed = [_typed(text, self._engine.columns[column]) for text in texts]
        if len(set(typed)) < len(texts):  # decimals with more digits than float64 has stay apart
            typed = list(texts)
        return sorted(zip(typed, texts, strict=True))

    def _refuse_labels(self, role: str, what: str, rows: int, remedy: str) -> None:
        """Refuse a column in which some rows have no label that could be used."""
        if rows:
            raise InputError(
                f"is {what} in {counted(rows, 'row')}",
                argument=role,
                column=self._roles.listed()[role],
                source=self._engine.name,
                remedy=remedy,
            )

    def _no_rows(self) -> TableError:
        return TableError("has no rows", table=self._engine.name, remedy="at least one row is needed")

    def _check_outcomes(self) -> None:
        """Find out how the engine writes the label of the event, the first time."""
        if self._pos_label is None or self._roles.event is not None:
            return
        labels = self._labels(self._roles.y_true)
        pos_label = self._pos_label
        if self._engine.columns[self._roles.y_true] == "written":
            texts = [text for _, text in labels]
            found, pos_label = written_labels(texts, pos_label)
            labels = list(zip(found, texts, strict=True))
        self._event_labels = tuple(sorted({label for label, _ in labels}))
        check_pos_label(list(self._event_labels), pos_label)
        # Where every row is 0 and the event is 1, no text matches, and there are no events.
        event = tuple(text for label, text in labels if label == pos_label) or (str(pos_label),)
        self._roles = replace(self._roles, event=event)

    def _histograms(
        self, asked: Sequence[HistogramRequest], labels: Sequence[str], known: Sequence[Facts] | None
    ) -> list[Moments]:
        """Add up the rows of all requests in one scan; where nothing is known yet, check them too."""
        if self._engine.numbers_cells:
            asked = common_bits(asked)
        return self._moments(self._answer(asked, labels, known), asked, labels, known)

    def _moments(
        self,
        answer: Mapping[str, npt.NDArray[Any]],
        asked: Sequence[HistogramRequest],
        labels: Sequence[str],
        known: Sequence[Facts] | None,
    ) -> list[Moments]:
        """Check the totals of one scan, and divide them among the requests."""
        broken = without_value(answer["cell_key"]).any()
        if self._engine.numbers_cells:  # where a forecast just outside [0, 1] may have the number of another cell
            broken = broken or np.any(answer["low"] < 0.0) or np.any(answer["high"] > 1.0)
        if broken:
            refuse_rows(self._engine, self._roles)
        if known is None and len(answer["n"]) == 0 and not self._run(count_statement(self._engine))["n"][0]:
            raise self._no_rows()
        found = []
        for place, request in enumerate(asked):
            own = _rows_of(answer, answer["place"] == place) if labels else answer
            facts = None if known is None else known[place]
            if facts is None and len(own["n"]) == 0:
                where = f" in group {labels[request.group]!r}" if labels else ""
                raise InputError(
                    f"is zero everywhere{where}", argument="sample_weight", remedy="at least one row must count"
                )
            if "weight" in own and known is None:
                weight, square = (float(np.sum(own[name])) for name in ("weight", "weight_square"))
                check_weight_totals(weight, square, float(np.max(own["weight_high"], initial=0.0)))
            with self._named():
                found.append(Moments.from_answer(own, request.grid, facts))
            if known is None and not self._roles.made:
                self._check_not_swapped(found[-1])
        return found

    def _answer(
        self, asked: Sequence[HistogramRequest], labels: Sequence[str], known: Sequence[Facts] | None
    ) -> Mapping[str, npt.NDArray[Any]]:
        """Return the totals of one scan, added up here or by the engine."""
        if self._streams and all(facts.binary_outcomes for facts in known or ()):
            answer = self._streamed(asked, labels)
            if answer is not None:
                return answer
        return self._run(histogram_statement(self._engine, self._roles, asked, labels))

    def _streamed(
        self, asked: Sequence[HistogramRequest], labels: Sequence[str]
    ) -> Mapping[str, npt.NDArray[Any]] | None:
        """Return the totals of one scan that is added up here, None where that cannot be."""
        try:
            answer = streamed_answer(self._engine, self._roles, asked, labels)
        except UncountableError:
            self._work.scans += 1
            return None
        self._work.scans += answer is not None
        return answer

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Say in which rows something is wrong."""
        try:
            yield
        except CalibrantError as error:
            raise error.among(source=self._engine.name) from error

    def _check_not_swapped(self, moments: Moments) -> None:
        low, high = moments.columns["low"], moments.columns["high"]
        if not moments.facts.binary_outcomes and bool((((low == 0.0) | (low == 1.0)) & (low == high)).all()):
            raise InputError(
                Phrase(
                    "holds only 0 and 1 while {outcomes} holds fractions: {swapped}",
                    outcomes=Argument("y_true", column=self._roles.y_true),
                    swapped=Either(
                        "the columns look swapped; if it is meant, read them and pass "
                        "Tally.from_arrays(y_true, y_prob)",
                        SWAPPED_COLUMNS,
                    ),
                ),
                argument="y_prob",
                column=self._roles.y_prob,
                source=self._engine.name,
            )

    def _fetches(
        self, asked: Sequence[FetchRequest], labels: Sequence[str], known: Sequence[Facts]
    ) -> list[Observations]:
        """Bring the rows of all requests here in one scan."""
        answer = self._run(fetch_statement(self._engine, self._roles, asked, labels))
        self._work.rows_fetched += len(answer["p"])
        found = []
        for place, (request, facts) in enumerate(zip(asked, known, strict=True)):
            own = _rows_of(answer, answer["place"] == place) if labels else answer
            found.append(self._observed(own, request, facts)[0])
        return found

    def _observed(
        self, answer: Mapping[str, npt.NDArray[Any]], request: FetchRequest, facts: Facts
    ) -> tuple[Observations, IntArray]:
        """Check rows that were fetched; return them in order, and the order."""
        own = {name: np.asarray(answer[name]).astype(np.float64) for name in ("p", "y", "w") if name in answer}
        codes = [answer["code"]] if "code" in answer else []
        if facts.binary_outcomes and facts.unit_weights and not codes:
            order = np.argsort(own["p"])  # ties are counted, in whatever order they come
        else:
            order = np.lexsort((*codes, *tuple(own.values())[::-1]))
        own = _rows_of(own, order)
        with self._named():
            _check_fetched(own, request, facts)
        outcomes: Any = own["y"].astype(np.uint8 if facts.binary_outcomes else np.float64)
        weight = None if "w" not in own or facts.unit_weights else own["w"]
        return Observations(outcomes, own["p"], weight, facts.binary_outcomes), order


class Scan(Handle):
    """Rows that stay where they are: pass it in place of ``y_true``. Made by `scan`.

    The first question reads and checks all rows and keeps their totals by cell; later ones read again only for what
    those totals leave open.

    Examples
    --------
    >>> import pyarrow
    >>> from calibrant import scan
    >>> rows = scan(pyarrow.table({"y": [0, 1], "p": [0.2, 0.7]}), y_true="y", y_prob="p")
    >>> rows
    Scan(the Table: y_prob='p', y_true='y'; not read yet)
    >>> rows.cells(bits=3), rows.scans
    (Cells(2 rows in 2 of 8 cells), 1)
    >>> rows.close()
    """

    first_grid = Grid(16, 0.0, 1.0)
    """Twice as fine as in memory: a scan costs far more than a sum."""

    _first: Moments | None = None

    def cells(self, bits: int = DEFAULT_BITS) -> Cells:
        """Return the totals of all rows on the grid of 2^bits cells: a shard, to be kept and merged with others.

        No more of them are brought here than ``tally_limit``.
        """
        depth = int(check_number(bits, "bits", low=0, high=24, whole=True))
        if 2**depth > self.tally_limit:
            rows = int(self._totals(self.first_grid).columns["rows"].sum())
            if rows > self.tally_limit:
                raise InputError(
                    f"is {depth}: up to {min(rows, 2**depth):,} cells would be brought here, above the limit of "
                    f"{self.tally_limit:,}",
                    argument="bits",
                    value=depth,
                    remedy=f"take bits={int(self.tally_limit).bit_length() - 1} or fewer, or raise the limit "
                    "(tally_limit)",
                )
        return self.histogram(Grid(depth, 0.0, 1.0))

    def histogram(self, grid: Grid) -> Cells:
        """Return the totals per cell of the rows whose forecast is from ``grid.low`` to ``grid.high``."""
        first = self._totals(grid)
        if is_whole(grid) and grid.bits <= first.bits:
            return first.cells(grid.bits)
        return self._histograms([HistogramRequest(0, grid)], (), [first.facts])[0].cells(grid.bits)

    def fetch(self, low: FloatArray, high: FloatArray) -> Observations:
        """Return the rows inside the given closed stretches, which are disjoint and in increasing order."""
        facts = self._totals(self.first_grid).facts
        return self._fetches([FetchRequest(0, low, high)], (), [facts])[0]

    def _totals(self, grid: Grid) -> Moments:
        """Return the first totals, the first time after a scan of all rows, on the grid asked for if that is finer."""
        if self._first is None:
            self._check_outcomes()
            finer = is_whole(grid) and grid.bits > self.first_grid.bits
            self._first = self._histograms([HistogramRequest(0, grid if finer else self.first_grid)], (), None)[0]
        return self._first


class GroupedScan(Handle):
    """Rows in groups that stay where they are: pass it in place of ``y_true``. Made by `scan` with ``by``.

    Every scan serves all groups.
    """

    _first: tuple[Moments, ...] = ()
    _found: Sequence[tuple[Any, str]] = ()

    @property
    def groups(self) -> tuple[Any, ...]:
        """The groups' values in sorted order."""
        return tuple(label for label, _ in self._values())

    @property
    def first_grid(self) -> Grid:
        """The grid of the first totals, finer where that saves scans that cost more."""
        return self._first_requests(len(self._values()))[0].grid

    def histograms(self, asked: Sequence[HistogramRequest]) -> list[Cells]:
        """Return the totals per cell for each request, in one scan, or from what an earlier one has found."""
        first = self._totals()
        answers: dict[int, Cells] = {}
        later = []
        for place, request in enumerate(asked):
            grid = request.grid
            if is_whole(grid) and grid.bits <= first[request.group].bits:
                answers[place] = first[request.group].cells(grid.bits)
            else:
                later.append(place)
        if later:
            requests = [asked[place] for place in later]
            facts = [first[request.group].facts for request in requests]
            found = self._histograms(requests, self._texts(), facts)
            for place, request, moments in zip(later, requests, found, strict=True):
                answers[place] = moments.cells(request.grid.bits)
        return [answers[place] for place in range(len(asked))]

    def fetches(self, asked: Sequence[FetchRequest]) -> list[Observations]:
        """Return the rows inside closed stretches for each request, in one scan."""
        first = self._totals()
        return self._fetches(asked, self._texts(), [first[request.group].facts for request in asked])

    def as_clusters(self) -> Scan:
        """Return the same rows with their groups as clusters; closed when this is."""
        from calibrant.engines.clustered import ClusteredScan

        roles = replace(self._roles, by=None, cluster=self._roles.by)
        return ClusteredScan(self._engine, roles, self._pos_label, self.fetch_limit, self.tally_limit)

    def _values(self) -> Sequence[tuple[Any, str]]:
        if not self._found:
            self._check_outcomes()
        if not self._found and self._streams:
            self._guess()
        if not self._found:
            assert self._roles.by is not None
            found = self._labels(self._roles.by)
            if len(found) > MOST_GROUPS:
                raise InputError(
                    f"has more than {MOST_GROUPS:,} different values",
                    argument="by",
                    column=self._roles.by,
                    source=self._engine.name,
                    remedy="choose a column with fewer, or scan parts of the table",
                )
            self._found = _in_order(found)
        return self._found

    def _guess(self) -> None:
        """Take the groups of the first rows for all of them, and keep the totals of a scan that meets no other."""
        assert self._roles.by is not None
        labels = first_labels(self._engine, self._roles.by)
        fit = 0 < labels.size <= 2 ** (STREAMED_BITS - FIRST_GRID.bits)
        if not fit or self._missing(self._roles.by, labels).any() or self._infinite(self._roles.by, labels).any():
            return
        found = _in_order(self._typed(self._roles.by, labels))
        texts, asked = [text for _, text in found], self._first_requests(len(found))
        answer = self._streamed(asked, texts)
        if answer is not None:
            self._found, self._first = found, tuple(self._moments(answer, asked, texts, None))

    def _texts(self) -> list[str]:
        return [text for _, text in self._values()]

    def _first_requests(self, groups: int) -> list[HistogramRequest]:
        """Ask for the first totals of so many groups, in the finest cells of which there is room for all."""
        room = (each for each in _GROUP_GRIDS if groups <= 2 ** (STREAMED_BITS - each.bits))
        grid = next(room, FIRST_GRID) if self._streams else FIRST_GRID
        return [HistogramRequest(group, grid) for group in range(groups)]

    def _totals(self) -> tuple[Moments, ...]:
        """Return the first totals of every group, after a scan of all rows the first time."""
        texts = self._texts()  # for which the totals may have been found, too
        if not self._first:
            asked = self._first_requests(len(texts))
            # In SQL a few scans for two groups each, whose cells can be numbered through, are quicker than one.
            numbers = self._engine.numbers_cells and not self._streams
            step = 2 if numbers and len(asked) <= _FEW_GROUPS else len(asked)
            parts = [asked[first : first + step] for first in range(0, len(asked), step)]
            self._first = tuple(found for part in parts for found in self._histograms(part, texts, None))
        return self._first


def _check_fetched(own: Mapping[str, FloatArray], request: FetchRequest, facts: Facts) -> None:
    """Refuse rows that were not asked for, or that the first scan would have refused."""
    forecast, outcome = own["p"], own["y"]
    stretch = np.minimum(np.searchsorted(request.high, forecast), request.high.size - 1)
    fits = (forecast >= request.low[stretch]) & (forecast <= request.high[stretch])
    fits &= (outcome == 0.0) | (outcome == 1.0) if facts.binary_outcomes else (outcome >= 0.0) & (outcome <= 1.0)
    if "w" in own:
        fits &= (own["w"] > 0.0) & (own["w"] <= facts.weight_max)
    if not fits.all():
        odd = int(np.flatnonzero(~fits)[0])
        row = ", ".join(f"{name} = {values[odd]:g}" for name, values in own.items())
        raise InputError(f"a row was fetched that the first scan did not count ({row}): the rows changed in between")


def _rows_of(answer: Mapping[str, npt.NDArray[Any]], chosen: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    return {name: values[chosen] for name, values in answer.items()}


def _in_order(found: Sequence[tuple[Any, str]]) -> list[tuple[Any, str]]:
    return [found[place] for place in reading_order([label for label, _ in found])]


def _typed(label: Any, kind: str) -> Any:
    """Return a label as what its column holds, from how the engine writes it."""
    if kind == "whole":
        return int(label)
    if kind == "fraction":
        return float(label)
    return str(label).lower() in ("true", "1") if kind == "boolean" else str(label)
