"""The same totals on a dyadic grid of [0, 1]: additive, of bounded size, and made without sorting.

A row's cell is floor(p * 2^bits), which is exact in floating point, so that every machine and engine agrees on it.
One pass adds up each cell; `refinement` finishes the exact answers from there.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from calibrant.core.errors import CalibrantError, InputError, refuse_newer
from calibrant.core.files import replacing
from calibrant.core.frames import frames_follow
from calibrant.core.kernels import cell_totals, rounder_of
from calibrant.core.threads import in_threads
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, IntArray
from calibrant.rows.checks import Observations, check_number, check_observations
from calibrant.rows.grids import Grid
from calibrant.rows.runs import group_starts, stable_order
from calibrant.rows.tally import ADDITIVE, Tally, Totals

DEFAULT_BITS = 16

_ROWS_PER_CELL = 8
"""With fewer rows for each cell of a grid, a table of all cells takes more memory than sorting the rows."""

_PARTS = 2
_ROWS_WORTH_SPLITTING = 4_000_000
CELL_COLUMNS = ("index", "low", "high", *ADDITIVE)
CELL_FACTS = ("bits", "weight_max", "unit_weights", "binary_outcomes")
_FORMAT = "calibrant/cells/1"
_FORMAT_KEY = b"calibrant"
_ESTIMATED = "weights_estimated"


Returned = TypeVar("Returned")


@dataclass(frozen=True, eq=False, repr=False)
class Cells(Totals):
    """Totals per dyadic cell of [0, 1]: additive, of bounded size, and enough for most answers.

    Only cells that hold rows are listed. Cells of parts add up: ``Cells.from_arrays(...) + Cells.from_arrays(...)``;
    where the grids differ, the finer one is coarsened first, which is exact.

    Attributes
    ----------
    bits : int
        Cells have width 2^-bits.
    index : array of int64
        floor(p * 2^bits) for the rows of each cell (p = 1 joins the last cell of [0, 1]).

    Examples
    --------
    >>> cells = Cells.from_arrays([0, 1, 1], [0.1, 0.12, 0.9], bits=2)
    >>> cells.index, cells.rows, cells.high
    (array([0, 3]), array([2, 1]), array([0.12, 0.9 ]))
    """

    bits: int
    index: IntArray

    @classmethod
    @frames_follow
    def from_arrays(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: ClassLabel | None = None,
        bits: int = DEFAULT_BITS,
    ) -> Cells:
        """Add up rows on the grid of 2^bits cells of [0, 1].

        The memory that it takes is bounded by the rows given, however many cells there are.

        Parameters
        ----------
        y_true, y_prob, sample_weight, pos_label
            As in `Tally.from_arrays`.
        bits : int from 0 to 24
            How fine the grid is: it has 2^bits cells.

        Returns
        -------
        Cells
            The totals of the cells that hold rows.
        """
        grid = Grid(int(check_number(bits, "bits", low=0, high=24, whole=True)), 0.0, 1.0)
        rows = check_observations(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, order=None)
        return cls.from_rows(rows, grid)

    @classmethod
    def from_rows(cls, observations: Observations, grid: Grid) -> Cells:
        """Add up checked rows, all of which the grid covers, in one pass or sorted, whichever takes less."""
        rows = observations.that_count()
        if grid.size * _ROWS_PER_CELL <= rows.y_prob.size:
            return cls.from_observations(rows, grid)
        return cls.from_tally(Tally.from_observations(rows), grid)

    @classmethod
    def from_observations(cls, observations: Observations, grid: Grid) -> Cells:
        """Add up checked rows by cell in one pass; those outside the grid are left out."""
        place = (grid.scale, grid.first, grid.size, grid.low, grid.high)

        given = observations.sample_weight
        counted = observations.binary_outcomes and given is None
        rounder = 0.0 if counted else rounder_of(1.0 if given is None else float(given.max()), observations.y_prob.size)

        def add_up(rows: Observations) -> FloatArray:
            weight = np.empty(0) if rows.sample_weight is None else rows.sample_weight
            return cell_totals(rows.y_prob, rows.y_true, weight, *place, rounder)

        totals, *others = over_parts(observations, add_up)
        for part in others:
            low, high = np.minimum(totals[:, 4], part[:, 4]), np.maximum(totals[:, 5], part[:, 5])
            totals += part
            totals[:, 4], totals[:, 5] = low, high
        held = np.flatnonzero(totals[:, 0])
        columns = np.ascontiguousarray(totals[held].T)
        count = columns[0].astype(np.int64)
        weighted = given is not None
        return cls(
            bits=grid.bits,
            index=grid.first + held,
            low=columns[4],
            high=columns[5],
            rows=count,
            weight=columns[6] if weighted else count,
            weight_square=columns[7] if weighted else count,
            residual=columns[1],
            residual_square=columns[2],
            weight_square_residual_square=columns[8] if weighted else columns[2],
            outcome=columns[3],
            weight_max=1.0 if given is None else float(given.max()),
            unit_weights=given is None or bool((given == 1.0).all()),
            binary_outcomes=observations.binary_outcomes,
            weights_estimated=observations.weights_estimated,
        )

    @classmethod
    def from_tally(cls, tally: Tally, grid: Grid) -> Cells:
        """Add up the entries of a tally, all of which the grid covers."""
        index = grid.index(tally.forecast)
        starts = group_starts(index)
        columns: dict[str, Any] = {name: np.add.reduceat(getattr(tally, name), starts) for name in ADDITIVE}
        return cls(
            bits=grid.bits,
            index=index[starts],
            low=tally.forecast[starts],
            high=tally.forecast[np.append(starts[1:], len(tally)) - 1],
            weight_max=tally.weight_max,
            unit_weights=tally.unit_weights,
            binary_outcomes=tally.binary_outcomes,
            weights_estimated=tally.weights_estimated,
            **columns,
        )

    @frames_follow
    def __add__(self, other: Cells) -> Cells:
        """Merge the cells of two different sets of rows."""
        if not isinstance(other, Cells):
            return NotImplemented
        return _merged((self, other), min(self.bits, other.bits))

    def coarsened(self, bits: int) -> Cells:
        """Return the cells of a coarser grid that hold the same rows; those that are no finer stay as they are.

        Parameters
        ----------
        bits : int
            The new grid has 2^bits cells.

        Returns
        -------
        Cells
            Of the same rows, with fewer or as many cells.
        """
        return self if self.bits <= bits else _merged((self,), bits)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the cells to a Parquet file, so that those of other days or machines can be added to them later.

        The file appears whole or not at all: an interrupted run leaves the previous one as it was.

        Parameters
        ----------
        path : str or path
            Where to write the file.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "monday.parquet"
        >>> Cells.from_arrays([0, 1, 1], [0.1, 0.12, 0.9], bits=2).to_parquet(file)
        >>> Cells.from_parquet(file) + Cells.from_arrays([0], [0.6], bits=2)
        Cells(4 rows in 3 of 4 cells)
        """
        arrow, parquet = _arrow()
        facts = {name: getattr(self, name) for name in CELL_FACTS}
        if self.weights_estimated:  # said only then, so that other files stay as they were
            facts[_ESTIMATED] = True
        table = arrow.table({name: getattr(self, name) for name in CELL_COLUMNS})
        table = table.replace_schema_metadata({_FORMAT_KEY: json.dumps({"format": _FORMAT, **facts})})
        with replacing(path) as unfinished, unfinished.open("wb") as file:
            parquet.write_table(table, file, write_page_checksum=True)

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str]) -> Cells:
        """Read cells that `to_parquet` wrote; a file that is damaged, or holds what no rows can have, is refused.

        Parameters
        ----------
        path : str or path
            Where the file is.

        Returns
        -------
        Cells
            What was written.
        """
        name = os.fspath(path)
        arrow, parquet = _arrow()
        table: Any = None
        names: list[str] = []
        with open(path, "rb") as file:
            try:
                table = parquet.read_table(file, partitioning=None, page_checksum_verification=True)
                names = table.column_names  # which may be no text in a damaged file
                facts = json.loads((table.schema.metadata or {}).get(_FORMAT_KEY, b"{}"))
            except (arrow.ArrowException, OSError, UnicodeError) as error:
                raise InputError(f"{name} is not a Parquet file, or a damaged one: {error}") from error
            except (ValueError, RecursionError):
                facts = None
        said = facts.pop("format", None) if isinstance(facts, dict) else None
        refuse_newer(name, said, _FORMAT)
        if said != _FORMAT or names != list(CELL_COLUMNS):
            raise InputError(
                f"{name} does not hold cells as this version of calibrant writes them ({_FORMAT})",
                remedy="rows are read by scan(), cells by the version that wrote them",
            )
        columns: dict[str, Any] = {}
        for column in CELL_COLUMNS:
            kinds = _KINDS.get(column, ("double",))
            if str(table[column].type) not in kinds or table[column].null_count:
                found = "values that are missing" if table[column].null_count else f"the type {table[column].type}"
                raise _damaged(name, f"column {column} has {found}, not numbers of type {' or '.join(kinds)}")
            columns[column] = table[column].to_numpy()
        try:
            return cls.from_columns(facts, columns)
        except CalibrantError as error:
            raise _damaged(name, str(error)) from error

    @classmethod
    def from_columns(cls, facts: dict[str, Any], columns: dict[str, Any]) -> Cells:
        """Rebuild cells from what was stored of them; whatever no rows can have is refused.

        Parameters
        ----------
        facts : dict
            What `CELL_FACTS` names, and that weights were estimated, where they were.
        columns : dict
            An array of one dimension for each of `CELL_COLUMNS`, all of one length.
        """
        _check_facts(facts)
        for column, values in columns.items():
            _refuse_entries(column, values, np.isfinite(values), "not a finite number")
        _refuse_entries("rows", columns["rows"], columns["rows"] >= 1, "not a number of rows")
        cells = cls(**facts, **columns)
        with np.errstate(over="ignore"):  # of weights that only a damaged file holds
            _check_cells(cells)
        return cells

    def __repr__(self) -> str:
        return f"Cells({self.row_total:,} rows in {len(self):,} of {2**self.bits:,} cells)"


def _merged(parts: Sequence[Cells], bits: int) -> Cells:
    """Add up the cells of different sets of rows on a grid that is finer than none of theirs."""
    index = np.concatenate([part.index >> (part.bits - bits) for part in parts])
    order = stable_order(index)
    index = index[order]
    starts = group_starts(index)
    columns: dict[str, Any] = {
        name: np.add.reduceat(np.concatenate([getattr(part, name) for part in parts])[order], starts)
        for name in ADDITIVE
    }
    columns["low"] = np.minimum.reduceat(np.concatenate([part.low for part in parts])[order], starts)
    columns["high"] = np.maximum.reduceat(np.concatenate([part.high for part in parts])[order], starts)
    columns["weight_max"] = max(part.weight_max for part in parts)
    columns["unit_weights"] = all(part.unit_weights for part in parts)
    columns["binary_outcomes"] = all(part.binary_outcomes for part in parts)
    columns["weights_estimated"] = any(part.weights_estimated for part in parts)
    return Cells(bits=bits, index=index[starts], **columns)


def over_parts(observations: Observations, loop: Callable[[Observations], Returned]) -> list[Returned]:
    """Run a compiled loop over parts of many rows, side by side; parts, not processors, decide how sums round."""
    rows = observations.y_prob.size
    if rows < _ROWS_WORTH_SPLITTING:
        return [loop(observations)]
    borders = [rows * part // _PARTS for part in range(_PARTS + 1)]
    parts = [observations.take(slice(begin, end)) for begin, end in pairwise(borders)]
    return in_threads(loop, parts, rows=rows)


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow; install it, as in: pip install pyarrow") from error
    return pyarrow, pyarrow.parquet


_KINDS = {
    "index": ("int64",),
    "rows": ("int64",),
    "weight": ("int64", "double"),
    "weight_square": ("int64", "double"),
}
"""Of columns that hold whole numbers, always or when all weights are 1."""

_ROUNDING = 1e-6
"""What sums over the rows of a cell may be off by, as a share of their weight."""


def _check_facts(facts: dict[str, Any]) -> None:
    """Refuse what stands beside the columns of a file unless it is just what `Cells` needs."""
    if sorted({*facts} - {_ESTIMATED}) != sorted(CELL_FACTS):
        raise InputError(f"it has the facts {', '.join(sorted(facts))} instead of {', '.join(sorted(CELL_FACTS))}")
    facts["bits"] = int(check_number(facts["bits"], "bits", low=0, high=61, whole=True))
    facts["weight_max"] = check_number(facts["weight_max"], "weight_max", low=0.0, high=sys.float_info.max)
    for flag in ("unit_weights", "binary_outcomes", _ESTIMATED):
        if not isinstance(facts.get(flag, False), bool):
            raise InputError(f"{flag} is {facts[flag]!r}, not true or false")


def _check_cells(cells: Cells) -> None:
    """Refuse totals that no rows can have."""

    def check(column: str, good: Any, why: str) -> None:
        _refuse_entries(column, getattr(cells, column), good, why)

    if not len(cells):
        raise InputError("it holds no cells")
    grid = Grid(cells.bits, 0.0, 1.0)
    index, low, high, rows, outcome, residual = (
        getattr(cells, column) for column in ("index", "low", "high", "rows", "outcome", "residual")
    )
    check("index", (index >= 0) & (index < 2**cells.bits), f"not the number of one of 2^{cells.bits} cells")
    check("index", np.append(True, index[1:] > index[:-1]), "not above the one before it")
    for column, values in (("low", low), ("high", high)):
        check(column, (values >= 0.0) & (values <= 1.0), "outside [0, 1]")
        check(column, grid.index(values) == index, f"not in its cell of width 2^-{cells.bits}")
    check("low", low <= high, "above the largest forecast of its cell")
    check("high", (rows > 1) | (low == high), "not the smallest forecast, although its cell has one row only")
    weight, square = cells.weight.astype(np.float64), cells.weight_square.astype(np.float64)
    most, slack = cells.weight_max, _ROUNDING * weight
    check("weight", weight > 0.0, "not above 0")
    if cells.unit_weights:
        if most != 1.0:
            raise InputError(f"weight_max is {most!r}, although every weight is 1")
        for column in ("weight", "weight_square"):
            check(column, getattr(cells, column) == rows, "not the number of rows, although every weight is 1")
    check("weight", weight <= (1.0 + _ROUNDING) * most * rows, f"too much for its rows and weights up to {most!r}")
    check("weight_square", square <= (1.0 + _ROUNDING) * most * weight, f"too much for weights up to {most!r}")
    check("weight_square", rows * square >= (1.0 - _ROUNDING) * weight * weight, "too little for its weight")
    if (1.0 + _ROUNDING) * weight.max() < most:
        raise InputError(f"weight_max is {most!r}, more than the rows of any cell weigh together")
    check("outcome", (outcome >= -slack) & (outcome <= weight + slack), "not from 0 to the weight of its cell")
    if cells.unit_weights and cells.binary_outcomes:
        check("outcome", outcome == np.rint(outcome), "not a number of events, although outcomes are 0 or 1")
    # Forecasts are from low to high, and with y from 0 to 1 the square (y - p)^2 is at most y (1 - p)^2 + (1 - y) p^2.
    inside = (residual >= outcome - weight * high - slack) & (residual <= outcome - weight * low + slack)
    check("residual", inside, "not what the outcomes and forecasts of its cell leave")
    squares, others = cells.residual_square, weight - outcome
    largest = outcome * np.square(1.0 - low) + others * np.square(high)
    smallest = np.square(residual) / weight
    if cells.binary_outcomes:
        smallest = np.maximum(smallest, outcome * np.square(1.0 - high) + others * np.square(low))
    inside = (squares >= smallest - slack) & (squares <= largest + slack)
    check("residual_square", inside, "not what the outcomes and forecasts of its cell leave")
    column, both = "weight_square_residual_square", cells.weight_square_residual_square
    if cells.unit_weights:
        check(column, np.abs(both - squares) <= slack, "not residual_square, although every weight is 1")
    inside = (both >= np.square(residual) / rows - most * slack) & (both <= most * (squares + slack))
    check(column, inside, "not what the weights and residuals of its cell leave")


def _refuse_entries(column: str, values: Any, good: Any, why: str) -> None:
    bad = np.flatnonzero(~good)
    if bad.size:
        raise InputError(f"{column}[{bad[0]}] is {values[bad[0]].item()!r}, {why}")


def _damaged(name: str, what: str) -> InputError:
    return InputError(f"{name} is damaged or was changed: {what}", remedy="write it anew with to_parquet")
