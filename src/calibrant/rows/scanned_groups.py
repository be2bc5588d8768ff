"""Groups of several columns of rows that stay where they are: one question per group, asked of one column's groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.frames import FromFrames
from calibrant.core.types import FloatArray, Label
from calibrant.core.voices import Option, Phrase
from calibrant.rows.cells import Cells
from calibrant.rows.checks import Observations, check_choice
from calibrant.rows.grids import FIRST_GRID, Grid
from calibrant.rows.groups import GroupedSource
from calibrant.rows.masks import GROUP_KINDS, SCALES, named_alone
from calibrant.rows.questions import Questions
from calibrant.rows.sources import FetchRequest, HistogramRequest, fetch_limit, tally_limit
from calibrant.rows.tally import Tally, Totals


@dataclass(frozen=True, eq=False)
class GroupColumns(FromFrames):
    """Rows with several columns of groups, which may overlap: ``scan(..., groups=[...])`` makes them.

    Attributes
    ----------
    columns : tuple of (str, GroupedSource)
        Each column by name, with the same rows in its groups.
    """

    columns: tuple[tuple[str, GroupedSource], ...]

    def close(self) -> None:
        """Let go of the rows."""
        for _, source in self.columns:
            closing = getattr(source, "close", None)
            if closing is not None:
                closing()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def scanned_questions(rows: GroupColumns, scale: str) -> Questions:
    """Return one question per group; each is a source of rows, which `opened` has nothing to do with.

    A column of truth values is the group of those that are true. The first pass over a column adds up all of its
    groups; what is asked after that is asked of one group at a time.
    """
    check_choice(scale, "scale", SCALES)
    kind, within = GROUP_KINDS[scale], scale != SCALES[0]
    alone = len(rows.columns) == 1
    named: list[tuple[Label, GroupedSource, int]] = []
    sizes: list[int] = []
    count = 0
    for name, source in rows.columns:
        groups = source.groups
        tables = source.histograms([HistogramRequest(place, FIRST_GRID) for place in range(len(groups))])
        count = sum(table.row_total for table in tables)
        if not within and not all(table.unit_weights for table in tables):
            raise InputError(
                Phrase("weights of scanned rows are not covered with {scale}", scale=Option("scale", scale)),
                remedy="read the columns and pass arrays, or leave out the weights",
            )
        flags = all(isinstance(label, (bool, np.bool_)) for label in groups)
        as_it_is = alone and named_alone(name, groups)
        for place, label in enumerate(groups):
            if flags and not label:
                continue
            plain = label if isinstance(label, (str, int, float)) else str(label)
            sizes.append(tables[place].row_total)
            named.append((name if flags else plain if as_it_is else f"{name}: {label}", source, place))
    disjoint = within and alone

    def make(place: int) -> Any:
        _, source, group = named[place]
        one = _OneGroup(source, group)
        return one if within else _Padded(one, count)

    members = None if within else tuple(sizes)
    return Questions(kind, tuple(label for label, _, _ in named), count, make, disjoint=disjoint, members=members)


class _OneGroup:
    """The rows of one group, as a source of rows."""

    def __init__(self, source: GroupedSource, group: int) -> None:
        self._source, self._group = source, group
        self.fetch_limit, self.tally_limit = fetch_limit(source), tally_limit(source)

    def histogram(self, grid: Grid) -> Totals:
        """Return the totals per cell of the group's rows."""
        return self._source.histograms([HistogramRequest(self._group, grid)])[0]

    def fetch(self, low: FloatArray, high: FloatArray) -> Observations:
        """Return the group's rows inside the stretches."""
        return self._source.fetches([FetchRequest(self._group, low, high)])[0]


class _Padded:
    """The rows of one group among so many rows, of which all others have forecast 0 and outcome 0."""

    def __init__(self, group: _OneGroup, count: int) -> None:
        self._group = group
        self._others = count - group.histogram(FIRST_GRID).row_total
        self.fetch_limit, self.tally_limit = group.fetch_limit, group.tally_limit

    def histogram(self, grid: Grid) -> Totals:
        """Return the totals per cell, with the other rows at 0."""
        found = self._group.histogram(grid)
        if self._others == 0 or grid.low > 0.0:
            return found
        others = Cells.from_tally(Tally.from_counts([0.0], [self._others], [0]), grid)
        assert isinstance(found, Cells)
        return found + others

    def fetch(self, low: FloatArray, high: FloatArray) -> Observations:
        """Return the rows inside the stretches, the other ones at 0 among them."""
        found = self._group.fetch(low, high)
        if self._others == 0 or low.size == 0 or low[0] > 0.0:
            return found
        others = Observations(np.zeros(self._others, dtype=np.uint8), np.zeros(self._others), None, True)
        return found.joined(others)
