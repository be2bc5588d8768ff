"""Totals per cell, as SQL: one GROUP BY for all requests, whose cells have numbers by which an array can add up.

Where a database has numbers of 16 bits that it groups and joins without a hash table, the cells of all groups asked for
are numbered through, from 0 to at most 65,535: that is what the first scan and most of those that cut cells finer use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from calibrant.core.sql import number_literal
from calibrant.core.types import IntArray
from calibrant.engines.statements import (
    SHORT_BITS,
    Engine,
    Roles,
    first_cell,
    given_rows,
    is_whole,
    kept_rules,
    listed_stretches,
    scanned_grid,
    weight_condition,
)
from calibrant.rows.grids import FIRST_BITS, Grid
from calibrant.rows.sources import HistogramRequest

_SPAN = 2.0  # how many times as wide as what is asked for the cells may be by which it is found
_MOST_NUMBERS = 2**18  # of cells that are numbered through, where a hash table adds up


def histogram_statement(engine: Engine, roles: Roles, asked: Sequence[HistogramRequest], labels: Sequence[str]) -> str:
    """Write the totals per cell: one GROUP BY for all.

    Rows that break a rule have no cell; those of weight zero are left out. ``labels`` are the groups' values as the
    engine writes them; none when there are no groups.
    """
    grids = [scanned_grid(request.grid) for request in asked]
    numbered = Numbered.of(grids) if engine.numbers_cells else None
    if numbered is not None:
        return numbered.statement(engine, roles, [labels[request.group] for request in asked] if labels else [], labels)
    return _listed_statement(engine, roles, asked, grids, labels)


def common_bits(asked: Sequence[HistogramRequest]) -> list[HistogramRequest]:
    """Return the requests on grids that are as fine as the finest, where that costs little and saves a scan's time."""
    finest = max(request.grid.bits for request in asked)
    grids = [Grid(finest, request.grid.low, request.grid.high, request.grid.within) for request in asked]
    if not all(grid.within for grid in grids) or Numbered.of(grids) is None:
        return list(asked)
    return [HistogramRequest(request.group, grid) for request, grid in zip(asked, grids, strict=True)]


@dataclass(frozen=True)
class Numbered:
    """The cells asked for, numbered through.

    Attributes
    ----------
    grids : sequence of Grid
        One for each request, all equally fine.
    bits : int
        Rows are found by cells of width 2^-bits, ...
    cells : sequence of arrays
        ... these ones of each request; all of them where there are none.
    """

    grids: Sequence[Grid]
    bits: int
    cells: Sequence[IntArray]

    @classmethod
    def of(cls, grids: Sequence[Grid], most_bits: int = SHORT_BITS) -> Numbered | None:
        """Give the cells of grids their numbers; None where they are too many, or the grids not equally fine.

        All cells of all grids have numbers of that many bits at most.
        """
        fine = grids[0].bits
        room = most_bits - (len(grids) - 1).bit_length()
        if any(grid.bits != fine for grid in grids):
            return None
        if not any(grid.within for grid in grids):
            whole = fine <= room and all(map(is_whole, grids))
            return cls(grids, fine, ()) if whole else None
        bits = min(fine, room, SHORT_BITS)
        if not all(grid.within for grid in grids) or bits < 0:
            return None
        cells = [_touched(grid, bits) for grid in grids]
        count = sum(each.size for each in cells)
        width = sum(high - low for grid in grids for low, high in grid.within)
        if count * 2.0**-bits > _SPAN * width + 2.0**-FIRST_BITS or count << min(fine - bits, 32) > _MOST_NUMBERS:
            return None
        return cls(grids, bits, cells)

    @property
    def fine(self) -> int:
        """Cells to add up by have width 2^-fine."""
        return self.grids[0].bits

    @property
    def starts(self) -> list[int]:
        """The first number of each request, and one more than the last."""
        sizes = [each.size << (self.fine - self.bits) for each in self.cells] or [2**self.fine] * len(self.grids)
        return [0, *accumulate(sizes)]

    def first_numbers(self) -> npt.NDArray[np.int32]:
        """Return the first number of each cell by which rows are found, below 0 for others; empty where all count."""
        found = np.full(len(self.cells) << self.bits, -1, dtype=np.int32)
        for place, (start, cells) in enumerate(zip(self.starts, self.cells, strict=False)):
            found[cells + (place << self.bits)] = start + (np.arange(cells.size) << (self.fine - self.bits))
        return found

    def statement(self, engine: Engine, roles: Roles, own: Sequence[str], labels: Sequence[str]) -> str:
        """Write the totals; ``own`` are the labels of the requests, where there are groups."""
        scale = number_literal(2.0**self.bits)
        rows, place = f"{given_rows(engine, roles)} AS given", ""
        conditions = [weight_condition(roles)] if roles.sample_weight is not None else []
        if own:
            places = engine.place_of("g", [*own, *(label for label in labels if label not in own)])
            rows, place = f"(SELECT *, {places} AS place FROM {rows}) AS placed", f" + place * {scale}"
            conditions += [f"place < {len(own)}"] if len(own) < len(labels) else []
        found = f"SELECT *, floor(p * {scale}) - floor(p) AS slot FROM {rows}"  # p = 1 joins the last cell
        found += f" WHERE {' AND '.join(conditions)}" if conditions else ""
        listed, joined, number, edge = "", "", f"slot{place}", f"slot / {scale}"
        above = f"p - {edge}"
        if self.cells:
            listed, joined = self._joined(engine, number)
            fine = number_literal(2.0**self.fine)
            inner = f"floor((p - {edge}) * {fine}) - floor(p)"
            number, above = f"{inner} + first_number", f"(p - {edge}) - ({inner}) / {fine}"
            edge = f"{edge} + ({inner}) / {fine}"
        kind = engine.short_type if self.starts[-1] <= 2**SHORT_BITS else "BIGINT"
        key = f"CASE WHEN {kept_rules(roles, besides='y_prob')} THEN TRY_CAST({number} AS {kind}) END"
        fields = f"{key} AS number, {above} AS above, {edge} AS edge, y - p AS r, p, y{', w' if roles.weighted else ''}"
        sums = _sums(engine, roles, self.fine)
        terms = ", ".join(f"{term} AS {name}" for name, term in sums.items())
        keyed = f"SELECT {fields} FROM ({found}) AS found{joined}"
        totals = f"SELECT number, {terms} FROM ({keyed}) AS keyed GROUP BY number"
        answer = [f"{self._cell()} AS cell_key", *sums] + (
            [f"{self._of_request(range(len(own)))} AS place"] if own else []
        )
        return f"{listed}SELECT {', '.join(answer)} FROM ({totals}) AS totals"

    def _joined(self, engine: Engine, number: str) -> tuple[str, str]:
        """Write the list of cells to cut, and the join that finds the rows in them."""
        shift, rows = self.fine - self.bits, []
        for place, (start, cells) in enumerate(zip(self.starts, self.cells, strict=False)):
            numbers = (cells + (place << self.bits)).tolist()
            rows += [(str(cell), str(start + (rank << shift))) for rank, cell in enumerate(numbers)]
        cast = f"SELECT CAST(cell AS {engine.short_type}) AS cell, first_number FROM asked"
        join = f" JOIN ({cast}) AS cells ON TRY_CAST({number} AS {engine.short_type}) = cell"
        return engine.listed(("cell", "first_number"), rows), join

    def _cell(self) -> str:
        """Write the cell of a number, counted from the first of its request, as the grid's cells are."""
        if not self.cells:
            return f"number % {2**self.fine}"
        firsts = self._of_request([first_cell(grid) for grid in self.grids])
        scale = number_literal(2.0**self.fine)
        return f"CASE WHEN number IS NOT NULL THEN CAST(floor(low * {scale}) AS BIGINT) - {firsts} END"

    def _of_request(self, values: Sequence[int]) -> str:
        """Write which value holds for the request that a number belongs to."""
        cases = [f"WHEN number < {end} THEN {value}" for end, value in zip(self.starts[1:], values, strict=True)]
        return f"CASE {' '.join(cases)} END"


def _touched(grid: Grid, bits: int) -> IntArray:
    """Return the cells of width 2^-bits that the stretches of a grid touch, in order."""
    low, high = (Grid(bits, 0.0, 1.0).index(np.array(ends)) for ends in zip(*grid.within, strict=True))
    counts = high - low + 1
    starts = np.cumsum(counts) - counts
    cells: IntArray = np.unique(np.repeat(low - starts, counts) + np.arange(counts.sum()))
    return cells


def _listed_statement(
    engine: Engine, roles: Roles, asked: Sequence[HistogramRequest], grids: Sequence[Grid], labels: Sequence[str]
) -> str:
    """Write the totals per cell in SQL that is plain enough for any database."""
    places = [(number_literal(grid.scale), str(first_cell(grid))) for grid in grids]
    alike = len(set(places)) == 1
    together = len(set(grids)) == 1 and not grids[0].within
    scale, first = places[0] if alike else ("scale", "first_cell")
    key, kind = f"CAST(floor(p * {scale}) AS BIGINT) - {first}", "BIGINT"
    # Counted from the cell's edge, forecasts lose no digits, however many share the cell; p = 1 joins the last cell.
    above = f"p - (floor(p * {scale}) - floor(p)) / {scale}"
    if together and is_whole(grids[0]):
        key = f"floor(p * {scale}) - floor(p)"
        if grids[0].bits <= SHORT_BITS:
            kind = engine.short_type
    fields = (
        f"CAST(CASE WHEN {kept_rules(roles)} THEN {key} END AS {kind}) AS cell_key, y - p AS r, p, y, {above} AS above"
    )
    conditions = []
    fields += ", w" if roles.weighted else ""
    if roles.sample_weight is not None:
        conditions.append(weight_condition(roles))
    given, listed = f"{given_rows(engine, roles)} AS given", ""
    if not together:
        stretches = [np.array(grid.within or [(grid.low, grid.high)]) for grid in grids]
        listed, joined = listed_stretches(engine, asked, stretches, labels, [] if alike else places)
        given += joined
    else:
        if labels:
            own = [(str(place), engine.literal(labels[request.group])) for place, request in enumerate(asked)]
            listed = engine.listed(("place", "label"), own)
            given += " JOIN asked ON g = label"
        if not is_whole(grids[0]):
            conditions.append(f"p >= {number_literal(grids[0].low)} AND p <= {number_literal(grids[0].high)}")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    by = "place, cell_key" if labels else "cell_key"
    fields += ", place" if labels else ""
    keyed = f"SELECT {fields} FROM {given}{where}"
    sums = ", ".join(f"{term} AS {name}" for name, term in _sums(engine, roles, None).items())
    return f"{listed}SELECT {by}, {sums} FROM ({keyed}) AS keyed GROUP BY {by}"


def _sums(engine: Engine, roles: Roles, fine: int | None) -> dict[str, str]:
    """Write the totals of a cell; what unit weights make equal to others is left out.

    ``fine`` says how narrow cells are whose edges are known. Squares are then counted from (y - edge)^2.
    """
    w = "w * " if roles.weighted else ""
    sums = {"n": "count(*)", "low": "min(p)", "high": "max(p)"}
    if not w and not may_be_fractions(engine, roles):
        if fine is None:
            sums["above"] = engine.steady_total("above", FIRST_BITS)
            sums["residual_square"] = engine.steady_total("r * r", 0)
        else:
            sums["above"] = engine.small_total("above", fine)
            sums["square_above"] = engine.small_total("above * (above + 2 * (edge - y))", fine - 1)
        sums["outcome"] = "sum(y)"
    else:
        for name, term in (("residual", "r"), ("residual_square", "r * r"), ("outcome", "y")):
            sums[name] = engine.total(f"{w}{term}") if w else engine.steady_total(term, 0)
        sums["halfway"] = "max(y * (1 - y))"
    if w:
        sums |= {
            "weight": engine.total("w"),
            "weight_square": engine.total("w * w"),
            "weight_square_residual_square": engine.total("(w * r) * (w * r)"),
            "weight_low": "min(w)",
            "weight_high": "max(w)",
        }
    return sums


def may_be_fractions(engine: Engine, roles: Roles) -> bool:
    """Whether outcomes can be other numbers in [0, 1] than 0 and 1."""
    return roles.event is None and engine.columns[roles.y_true] in ("fraction", "written")
