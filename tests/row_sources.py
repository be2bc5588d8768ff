"""Rows as sources for the tests: in memory, and as a toy engine that counts what it is asked."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from calibrant.core.types import FloatArray
from calibrant.rows import refinement
from calibrant.rows.cells import Cells
from calibrant.rows.checks import Observations, check_observations
from calibrant.rows.grids import Grid
from calibrant.rows.memory import ArrayRows
from calibrant.rows.sources import FetchRequest, HistogramRequest


def array_rows(y: npt.ArrayLike, p: npt.ArrayLike, w: npt.ArrayLike | None = None) -> ArrayRows:
    return ArrayRows(check_observations(y, p, sample_weight=w, order=None))


def first_grid(monkeypatch: pytest.MonkeyPatch, bits: int) -> None:
    """Start from coarse cells, which makes pruning, zooming and fetching happen on a handful of rows."""
    monkeypatch.setattr("calibrant.rows.grids.FIRST_BITS", bits)
    monkeypatch.setattr(refinement, "FIRST_BITS", bits)
    monkeypatch.setattr(refinement, "FIRST_GRID", Grid(bits, 0.0, 1.0))


class ToyEngine:
    """Rows in parts, as an engine would hold them; counts its scans and the rows it hands over."""

    def __init__(
        self,
        y: npt.ArrayLike,
        p: npt.ArrayLike,
        w: npt.ArrayLike | None = None,
        *,
        parts: int = 3,
        **limits: Any,
    ) -> None:
        checked = check_observations(y, p, sample_weight=w, order=None)
        if checked.sample_weight is not None:
            checked = checked.take(np.flatnonzero(checked.sample_weight))
        self.whole = ArrayRows(checked)
        self.parts = [ArrayRows(checked.take(part)) for part in np.array_split(np.arange(checked.y_prob.size), parts)]
        self.scans: list[str] = []
        self.fetched: list[int] = []
        self._added_up: dict[Grid, Cells] = {}
        for name, limit in limits.items():
            setattr(self, name, limit)

    def unasked(self) -> "ToyEngine":
        """Return an engine of the same rows that has not been asked anything."""
        fresh = copy.copy(self)
        fresh.scans, fresh.fetched = [], []
        return fresh

    def histogram(self, grid: Grid) -> Cells:
        self.scans.append("histogram")
        if grid not in self._added_up:
            self._added_up[grid] = self._add_up(grid)
        return self._added_up[grid]

    def _add_up(self, grid: Grid) -> Cells:
        first, *others = [part.histogram(grid) for part in self.parts if self._is_in(grid, part)]
        table = sum(others, first)
        whole = self.whole.histogram(grid)
        assert table.index.tolist() == whole.index.tolist()
        return replace(
            table,
            weight_max=whole.weight_max,
            unit_weights=whole.unit_weights,
            binary_outcomes=whole.binary_outcomes,
        )

    @staticmethod
    def _is_in(grid: Grid, part: ArrayRows) -> bool:
        """Whether a part has rows where the grid looks."""
        low, high = np.array(grid.within or [(grid.low, grid.high)]).T
        p = part.observations.y_prob[:, None]
        return bool(((p >= low) & (p <= high)).any())

    def fetch(self, low: FloatArray, high: FloatArray) -> Observations:
        self.scans.append("fetch")
        assert (low <= high).all()
        assert (high[:-1] < low[1:]).all()
        rows = self.whole.fetch(low, high)
        self.fetched.append(rows.y_prob.size)
        return rows


class GroupedToyEngine:
    """Rows in groups; a call is a scan."""

    def __init__(
        self, y: FloatArray, p: FloatArray, labels: Sequence[object], w: FloatArray | None = None, **limits: Any
    ) -> None:
        of_row = np.asarray(labels)
        self.groups: tuple[Any, ...] = tuple(np.unique(of_row).tolist())
        self.engines = [
            ToyEngine(y[of_row == label], p[of_row == label], None if w is None else w[of_row == label])
            for label in self.groups
        ]
        self.calls: list[tuple[str, list[int]]] = []
        for name, limit in limits.items():
            setattr(self, name, limit)

    def histograms(self, asked: Sequence[HistogramRequest]) -> list[Cells]:
        self.calls.append(("histograms", sorted(request.group for request in asked)))
        return [self.engines[request.group].histogram(request.grid) for request in asked]

    def fetches(self, asked: Sequence[FetchRequest]) -> list[Observations]:
        self.calls.append(("fetches", sorted(request.group for request in asked)))
        return [self.engines[request.group].fetch(request.low, request.high) for request in asked]


def distributions(size: int, seed: int = 7) -> dict[str, FloatArray]:
    """Return forecasts that are awkward each in its own way, by name."""
    rng = np.random.default_rng(seed)
    uniform = rng.random(size)
    return {
        "uniform": uniform,
        "skewed": rng.beta(0.5, 20.0, size),
        "tiny": uniform * 1e-9,
        "rounded": np.round(uniform, 2),
        "constant": np.full(size, 0.3),
        "zero and one": (uniform < 0.4).astype(float),
        "ties in one cell": 0.5 + rng.integers(0, 50, size) * 2.0**-40,
        "one narrow cell": 0.5 + uniform * 2.0**-30,
    }
