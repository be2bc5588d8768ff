"""Rows in arrays as a source: added up by compiled loops, side by side where there are many."""

from __future__ import annotations

import math

import numpy as np

from calibrant.core.kernels import rows_in_stretches
from calibrant.core.types import FloatArray, IntArray
from calibrant.rows.cells import Cells, over_parts
from calibrant.rows.checks import Observations
from calibrant.rows.grids import FIRST_GRID, Grid
from calibrant.rows.tally import Tally

_FEW = 10_000  # rows, each of which is looked up among all stretches in less time than cells take


class ArrayRows:
    """Rows in memory as a `RowSource`; since they are there already, any number of them may be fetched."""

    fetch_limit = tally_limit = math.inf

    def __init__(self, observations: Observations) -> None:
        self.observations = observations

    @property
    def weights_estimated(self) -> bool:
        """Whether weights were estimated from the rows."""
        return self.observations.weights_estimated

    def histogram(self, grid: Grid) -> Cells:
        """Return the totals per cell of the rows whose forecast is from ``grid.low`` to ``grid.high``."""
        if grid.within:  # cells far apart
            low, high = np.array(grid.within).T
            return Cells.from_tally(Tally.from_observations(self.fetch(low, high)), grid)
        return Cells.from_observations(self.observations, grid)

    def fetch(self, low: FloatArray, high: FloatArray) -> Observations:
        """Return the rows inside the given closed stretches, which are disjoint and in increasing order."""
        return self.observations.take(self.inside(low, high))

    def inside(self, low: FloatArray, high: FloatArray) -> IntArray | slice:
        """Return which rows are inside the given closed stretches."""
        if low[0] <= 0.0 and high[0] >= 1.0:
            return slice(None)
        forecast = self.observations.y_prob
        if forecast.size <= _FEW:
            stretch = np.searchsorted(low, forecast, side="right") - 1
            return np.flatnonzero((stretch >= 0) & (forecast <= high[stretch]))
        # A coarse cell per row says which stretches are worth comparing with, usually none.
        wide = high[-1] - low[0] > 1.0 / 64.0
        grid = FIRST_GRID if wide else Grid.covering(float(low[0]), float(high[-1]))
        border = np.arange(grid.size + 1)
        begin = np.searchsorted(grid.index(high) - grid.first, border[:-1], side="left")
        end = np.searchsorted(grid.index(low) - grid.first, border[1:], side="left")
        place = (grid.scale, grid.first, grid.low, grid.high)
        inside = over_parts(
            self.observations, lambda rows: rows_in_stretches(rows.y_prob, low, high, begin, end, *place)
        )
        return np.flatnonzero(np.concatenate(inside))
