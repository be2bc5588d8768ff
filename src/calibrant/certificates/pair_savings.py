"""Limits of the difference of two models' risk gaps on the same rows.

As for Cutoff errors: half of the rows name the line that saves most with the one model, and on the other half a bet is
placed against every line of the other model at once, less what the named line saves there. The proofs are in
docs/theory/comparisons.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from calibrant.certificates.pairs import NO_EVIDENCE, Bools, Evidence, Growth, chosen_rate, upper_of
from calibrant.certificates.saving_limits import CAUTION, CELLS_FROM_ROWS, as_found, usual_rate
from calibrant.core.types import FloatArray, IntArray
from calibrant.rows.grids import COARSE_CELLS
from calibrant.rows.paired import FEW_GROUPS, Half, PairedRows, halves
from calibrant.rows.savings import (
    Stretches,
    Thresholds,
    bet_score,
    bracket_redrawing,
    largest_redrawing,
    win_score,
)

_BOLDNESS = (0.3, 0.9)  # two rates will do: lines are searched for anew at each


def saving_limits(
    rows: PairedRows, first: str, second: str, thresholds: Thresholds, seed: int, delta: float
) -> tuple[float, float]:
    """Return limits of the risk gap of one model minus that of another, each wrong with probability delta at most."""
    pair = _Lines(rows, (_Entries.of(rows, first, thresholds), _Entries.of(rows, second, thresholds)), thresholds, seed)
    evidence = [pair.evidence(half, math.log(1.0 / delta)) for half in halves(FEW_GROUPS)]
    below, above = ([each[side] for each in evidence] for side in (0, 1))
    return -upper_of(below, delta), upper_of(above, delta)


@dataclass(frozen=True, eq=False)
class _Entries:
    """Stretches of a model's forecasts between which lines are drawn, and the one that each row is in."""

    low: FloatArray
    high: FloatArray
    of_row: IntArray

    @classmethod
    def of(cls, rows: PairedRows, name: str, thresholds: Thresholds) -> _Entries:
        """Return the distinct forecasts, or coarse cells, cut at the thresholds, where rows are many."""
        forecast = rows.forecasts[name]
        if rows.rows < CELLS_FROM_ROWS:
            distinct, place = np.unique(forecast, return_inverse=True)
            return cls(distinct, distinct, place)
        borders = np.unique(np.concatenate([np.arange(COARSE_CELLS + 1) / COARSE_CELLS, thresholds]))
        high = np.append(np.nextafter(borders[1:], 0.0), 1.0)  # a border belongs to the cell above it
        return cls(borders, high, np.searchsorted(borders, forecast, side="right") - 1)

    def stretches(self, weight: FloatArray, outcome: FloatArray) -> Stretches:
        """Add up rows."""
        size = self.low.size
        rows, events = (
            np.bincount(self.of_row, weights=each, minlength=size).astype(np.float64, copy=False)
            for each in (weight, weight * outcome)
        )
        return Stretches(self.low, self.high, rows, events)


class _Lines:
    """Two models and the lines between acting and not acting that may be drawn with them."""

    def __init__(self, rows: PairedRows, models: tuple[_Entries, _Entries], thresholds: Thresholds, seed: int) -> None:
        self.outcome = rows.outcome
        self.share = np.ones(rows.rows) if rows.share is None else rows.share
        self.groups = rows.groups(seed, FEW_GROUPS)
        self.models = models
        self.thresholds = thresholds

    def evidence(self, half: Half, exponent: float) -> tuple[Evidence, Evidence]:
        """Return the evidence against differences, second minus first and first minus second."""
        named, tested = half.first[self.groups], half.second[self.groups]
        found, left = int(named.sum()), int(tested.sum())
        if found == 0 or left == 0:
            return NO_EVIDENCE, NO_EVIDENCE
        saved = [self._saved(model, named, exponent) for model in self.models]
        variance = float((np.square(self.share * (saved[0] - saved[1])) * named).sum()) / found * left
        mean = float(self.share[tested].sum()) / left

        def against(model: _Entries, other: FloatArray) -> Evidence:
            rate = chosen_rate(variance, self._growth(model, other, named), found, exponent, _BOLDNESS)
            growth = self._growth(model, other, tested, bracketed=model.low is not model.high)
            return Evidence(growth(rate), rate * mean, left)

        return against(self.models[1], saved[0]), against(self.models[0], saved[1])

    def _saved(self, model: _Entries, named: Bools, exponent: float) -> FloatArray:
        """Return what each row saves by the line that a bet on some rows gains most by."""
        stretches = model.stretches(self.share * named, self.outcome)
        rate = CAUTION * usual_rate(stretches, self.thresholds, exponent)
        line = as_found(stretches, largest_redrawing(stretches, self.thresholds, win_score(rate)))
        inside = (model.of_row >= line.first) & (model.of_row < line.last)
        gain = self.outcome - line.threshold
        saved: FloatArray = inside * (gain if line.more else -gain)
        return saved

    def _growth(self, model: _Entries, other: FloatArray, kept: Bools, *, bracketed: bool = False) -> Growth:
        """Return a bound of how much a bet at a rate grows on some rows, against every line of a model.

        With h what a row saves by a line and u what it saves by the other's, -ln(1 - x (h - u)) is -ln(1 + x u) plus
        -ln(1 - z h) for z = x / (1 + x u), which is at most z / Z times -ln(1 - Z h) for the largest such rate Z: rows
        count a little less, and all have one rate.
        """
        share, saved, outcome = self.share[kept], other[kept], self.outcome[kept]
        entries = replace(model, of_row=model.of_row[kept])

        def growth(rate: float) -> float:
            shifted = 1.0 + rate * saved
            single = rate / float(shifted.min())
            stretches = entries.stretches(share * (rate / single) / shifted, outcome)
            score = bet_score(single)
            if bracketed:
                _, most = bracket_redrawing(stretches, self.thresholds, score)
            else:
                most = largest_redrawing(stretches, self.thresholds, score).score
            return most - float(share @ np.log(shifted))

        return growth
