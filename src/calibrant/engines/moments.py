"""What an engine's scan brings back: totals per cell, apart for events, non-events and fractional outcomes.

Cells follow by adding up. The betting scores follow too, without another scan: inside a cell of width 2^-15 forecasts
differ so little that count, sum and sum of squares determine a sum of logarithms to within rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.cells import Cells
from calibrant.engines.sql import CLASSES, first_cell, scanned_grid
from calibrant.sources import Grid
from calibrant.tally import ADDITIVE, group_starts
from calibrant.validation import FloatArray, IntArray

_OF_TIES = (
    ("residual", "weight", 1),
    ("residual_square", "weight", 2),
    ("weight_square_residual_square", "weight_square", 2),
)
"""Which column is which other times the residual to a power, where all residuals are equal."""


@dataclass(frozen=True)
class Facts:
    """What holds for all rows of a source, whichever of them are asked for."""

    weight_max: float
    unit_weights: bool
    binary_outcomes: bool


@dataclass(frozen=True, eq=False)
class Moments:
    """Totals per cell and class of outcome, in order.

    Attributes
    ----------
    bits : int
        Cells have width 2^-bits.
    index : array of int64
        floor(p * 2^bits), where p = 1 joins the last cell.
    outcome_class : array of int64
        0 for rows of outcome 0, 2 for those of outcome 1, and 1 for those between.
    columns : mapping
        The additive columns of `Cells`, and ``low`` and ``high``.
    facts : Facts
    """

    bits: int
    index: IntArray
    outcome_class: IntArray
    columns: Mapping[str, npt.NDArray[Any]]
    facts: Facts

    @classmethod
    def from_answer(cls, answer: Mapping[str, npt.NDArray[Any]], grid: Grid, facts: Facts | None) -> Moments:
        """Put the groups that a scan returned in order; the facts are read off them unless known."""
        key = answer["cell_key"].astype(np.int64)
        order = np.argsort(key, kind="stable")
        key = key[order]
        given = {name: values[order] for name, values in answer.items() if name not in ("place", "cell_key")}
        scanned = scanned_grid(grid)
        index = key // CLASSES + first_cell(scanned)
        if grid.high >= 1.0:  # where p = 1 joins the last cell
            index = np.minimum(index, int(scanned.index(np.ones(1))[0]))
        outcome_class = key % CLASSES
        rows = given["n"].astype(np.int64)
        columns: dict[str, npt.NDArray[Any]] = {
            name: given[name].astype(np.float64) for name in ("low", "high", "residual", "residual_square")
        }
        # -0.0 is the forecast 0.0.
        columns["low"], columns["high"] = columns["low"] + 0.0, columns["high"] + 0.0
        weighted = "weight" in given
        for name in ("weight", "weight_square"):
            columns[name] = given[name].astype(np.float64) if weighted else rows
        square = given["weight_square_residual_square"].astype(np.float64) if weighted else columns["residual_square"]
        columns |= {"rows": rows, "weight_square_residual_square": square}
        # Rows of one forecast and outcome have one residual: multiplied, it does not collect rounding errors.
        tied = np.flatnonzero((columns["low"] == columns["high"]) & (outcome_class != 1))
        residual = outcome_class[tied] / 2.0 - columns["low"][tied]
        for name, totals, power in _OF_TIES:
            columns[name] = columns[name].copy()
            columns[name][tied] = columns[totals][tied] * residual**power
        outcome = given["outcome"] if "outcome" in given else rows * (outcome_class // 2)
        columns["outcome"] = outcome.astype(np.float64)
        if facts is None:
            low, high = (given["weight_low"].min(), given["weight_high"].max()) if weighted else (1.0, 1.0)
            facts = Facts(float(high), bool(low == high == 1.0), not (outcome_class == 1).any())
        return cls(scanned.bits, index, outcome_class, columns, facts)

    def cells(self, bits: int, rates: tuple[float, ...] = ()) -> Cells:
        """Return the totals per cell of width 2^-bits, not finer than these; with betting rates, the growth too."""
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
            growth=np.add.reduceat(self._growth(rates), starts, axis=0) if rates else None,
            **merged,
        )

    def _growth(self, rates: tuple[float, ...]) -> FloatArray:
        """Return the columns of `tally.bet_growth`, for outcomes of 0 and 1 and equal weights.

        With q = |r| and f(q) = -ln(1 - x q), the sum of f over n rows of mean q and sum of squared deviations S is
        n f(mean) + f''(mean) S / 2, up to sup |f'''| / 6 times the sum of |q - mean|^3. That is at most
        n x^3 h^3 / (12 (1 - x)^3) for rows within a width of h: with h = 2^-15 at most 3e-15 of n x for rates up to a
        half. It can reach 1e-12 of it only at the highest rate of 0.9, which takes some ten rows that share a cell.
        """
        event = self.outcome_class == 2
        rows = self.columns["rows"].astype(np.float64)
        mean = np.abs(self.columns["residual"]) / self.columns["weight"]
        spread = rows * np.maximum(self.columns["residual_square"] / self.columns["weight"] - np.square(mean), 0.0)
        growth = np.zeros((rows.size, 4 * len(rates)))
        for position, rate in enumerate(rates):
            losing, winning = (
                spread / 2.0 * np.square(bet / (1.0 - bet * mean)) - rows * np.log1p(-bet * mean)
                for bet in (rate, -rate)
            )
            growth[event, 4 * position] = losing[event]
            growth[~event, 4 * position + 1] = winning[~event]
            growth[~event, 4 * position + 2] = losing[~event]
            growth[event, 4 * position + 3] = winning[event]
        return growth
