"""What an engine's scan brings back, and the cells that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.types import IntArray
from calibrant.engines.statements import first_cell, scanned_grid
from calibrant.rows.cells import Cells
from calibrant.rows.grids import Grid
from calibrant.rows.runs import group_starts
from calibrant.rows.tally import ADDITIVE

_SQUARES = "weight_square_residual_square"
_ROUNDING = 1e-9  # by which sums of rows may miss what holds for them


@dataclass(frozen=True)
class Facts:
    """What holds for all rows of a source, whichever of them are asked for."""

    weight_max: float
    unit_weights: bool
    binary_outcomes: bool


@dataclass(frozen=True, eq=False)
class Moments:
    """Totals per cell, in order.

    Attributes
    ----------
    bits : int
        Cells have width 2^-bits.
    index : array of int64
        floor(p * 2^bits), where p = 1 joins the last cell.
    columns : mapping
        The additive columns of `Cells`, and ``low`` and ``high``.
    facts : Facts
    """

    bits: int
    index: IntArray
    columns: Mapping[str, npt.NDArray[Any]]
    facts: Facts

    @classmethod
    def from_answer(cls, answer: Mapping[str, npt.NDArray[Any]], grid: Grid, facts: Facts | None) -> Moments:
        """Put the groups that a scan returned in order; the facts are read off them unless known."""
        key = answer["cell_key"].astype(np.int64)
        order = np.argsort(key, kind="stable")
        given = {name: values[order].astype(np.float64) for name, values in answer.items()}
        grid = scanned_grid(grid)
        index = key[order] + first_cell(grid)
        if grid.high >= 1.0:  # where p = 1 joins the last cell
            index = np.minimum(index, int(grid.index(np.ones(1))[0]))
        rows = answer["n"][order].astype(np.int64)
        columns: dict[str, npt.NDArray[Any]] = {"outcome": given["outcome"]}
        edge = index / grid.scale
        columns["residual"] = given["outcome"] - rows * edge - given["above"] if "above" in given else given["residual"]
        if "square_above" in given:
            others = rows - given["outcome"]
            beyond = given["outcome"] * np.square(1.0 - edge) + others * np.square(edge)
            columns["residual_square"] = np.maximum(beyond + given["square_above"], 0.0)
        else:
            columns["residual_square"] = given["residual_square"]
        columns |= {"rows": rows, "low": given["low"] + 0.0, "high": given["high"] + 0.0}  # -0.0 is the forecast 0.0
        weighted = "weight" in given
        for name, same in (("weight", rows), ("weight_square", rows), (_SQUARES, columns["residual_square"])):
            columns[name] = given[name] if weighted else same
        if facts is None:
            low, high = (given["weight_low"].min(), given["weight_high"].max()) if weighted else (1.0, 1.0)
            binary = "halfway" not in given or not given["halfway"].any()
            facts = Facts(float(high), bool(low == high == 1.0), binary)
        _check_totals(columns, index, grid, facts)
        _sharpen_ties(columns, facts)
        return cls(grid.bits, index, columns, facts)

    def cells(self, bits: int) -> Cells:
        """Return the totals per cell of width 2^-bits, not finer than these."""
        index = self.index >> (self.bits - bits)
        starts = group_starts(index) if index.size else np.empty(0, dtype=np.int64)
        merged: dict[str, Any] = {name: np.add.reduceat(self.columns[name], starts) for name in ADDITIVE}
        if self.facts.unit_weights:
            merged["weight"] = merged["weight_square"] = merged["rows"]
        return Cells(
            bits=bits,
            index=index[starts],
            low=np.minimum.reduceat(self.columns["low"], starts),
            high=np.maximum.reduceat(self.columns["high"], starts),
            weight_max=self.facts.weight_max,
            unit_weights=self.facts.unit_weights,
            binary_outcomes=self.facts.binary_outcomes,
            **merged,
        )


def _check_totals(columns: Mapping[str, npt.NDArray[Any]], index: IntArray, grid: Grid, facts: Facts) -> None:
    """Refuse totals that no rows can have: whatever an engine went by, it was not the rows."""
    rows, weight, low, high = (columns[name] for name in ("rows", "weight", "low", "high"))
    slack = _ROUNDING * weight
    forecast = columns["outcome"] - columns["residual"]
    inside = (low >= 0.0) & (low <= high) & (high <= 1.0)
    first, last = (grid.index(np.where(inside, end, 0.0)) for end in (low, high))
    rules = {
        "rows": rows >= 1,
        "forecasts": inside & (first == index) & (last == index),
        "weight": (weight > 0.0) & (weight <= rows * facts.weight_max * (1.0 + _ROUNDING)),
        "weight_square": columns["weight_square"] <= facts.weight_max * weight * (1.0 + _ROUNDING),
        "outcome": (columns["outcome"] >= 0.0) & (columns["outcome"] <= weight + slack),
        "residual": (forecast >= low * weight - slack) & (forecast <= high * weight + slack),
        "residual_square": (columns["residual_square"] >= 0.0) & (columns["residual_square"] <= weight + slack),
        _SQUARES: (columns[_SQUARES] >= 0.0) & (columns[_SQUARES] <= columns["weight_square"] * (1.0 + _ROUNDING)),
    }
    for name, holds in rules.items():
        broken = np.flatnonzero(~holds)  # a comparison with NaN does not hold
        if broken.size:
            cell = int(broken[0])
            given = {key: float(columns[key][cell]) for key in (*ADDITIVE, "low", "high")}
            raise InputError(
                f"the scan found {name} such as no rows have, between {index[cell] / grid.scale:.6g} and "
                f"{(index[cell] + 1) / grid.scale:.6g}: {given}",
                remedy="the file or the engine contradicts itself, write the rows anew",
            )


def _sharpen_ties(columns: dict[str, npt.NDArray[Any]], facts: Facts) -> None:
    """Write the totals of cells with a single forecast anew: sums of many equal numbers collect rounding errors."""
    tied = np.flatnonzero(columns["low"] == columns["high"])
    forecast, events = columns["low"][tied], columns["outcome"][tied]
    others = columns["weight"][tied] - events
    residual = columns["residual"].copy()
    residual[tied] = events - columns["weight"][tied] * forecast
    columns["residual"] = residual
    if facts.binary_outcomes:
        square = columns["residual_square"].copy()
        square[tied] = events * np.square(1.0 - forecast) + others * np.square(forecast)
        if facts.unit_weights:
            columns[_SQUARES] = square
        columns["residual_square"] = square
