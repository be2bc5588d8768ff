"""Rows as sources for the tests: in memory, and as a toy engine that counts what it is asked."""

from dataclasses import replace

import numpy as np

from calibrant.rows import refinement
from calibrant.rows.checks import check_observations
from calibrant.rows.grids import Grid
from calibrant.rows.memory import ArrayRows


def array_rows(y, p, w=None):
    return ArrayRows(check_observations(y, p, sample_weight=w, refuse_swapped=False))


def first_grid(monkeypatch, bits):
    """Start from coarse cells, which makes pruning, zooming and fetching happen on a handful of rows."""
    monkeypatch.setattr("calibrant.rows.grids.FIRST_BITS", bits)
    monkeypatch.setattr(refinement, "FIRST_BITS", bits)
    monkeypatch.setattr(refinement, "FIRST_GRID", Grid(bits, 0.0, 1.0))


class ToyEngine:
    """Rows in parts, as an engine would hold them; counts its scans and the rows it hands over."""

    def __init__(self, y, p, w=None, *, parts=3, **limits):
        checked = check_observations(y, p, sample_weight=w, refuse_swapped=False)
        if w is not None:
            checked = checked.take(np.flatnonzero(checked.sample_weight))
        self.whole = ArrayRows(checked)
        self.parts = [ArrayRows(checked.take(part)) for part in np.array_split(np.arange(checked.y_prob.size), parts)]
        self.scans, self.fetched = [], []
        for name, limit in limits.items():
            setattr(self, name, limit)

    def histogram(self, grid):
        self.scans.append("histogram")
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
    def _is_in(grid, part):
        """Whether a part has rows where the grid looks."""
        low, high = np.array(grid.within or [(grid.low, grid.high)]).T
        p = part.observations.y_prob[:, None]
        return bool(((p >= low) & (p <= high)).any())

    def fetch(self, low, high):
        self.scans.append("fetch")
        assert (low <= high).all()
        assert (high[:-1] < low[1:]).all()
        rows = self.whole.fetch(low, high)
        self.fetched.append(rows.y_prob.size)
        return rows


class GroupedToyEngine:
    """Rows in groups; a call is a scan."""

    def __init__(self, y, p, labels, w=None, **limits):
        labels = np.asarray(labels)
        self.groups = tuple(np.unique(labels).tolist())
        self.engines = [
            ToyEngine(y[labels == label], p[labels == label], None if w is None else w[labels == label])
            for label in self.groups
        ]
        self.calls = []
        for name, limit in limits.items():
            setattr(self, name, limit)

    def histograms(self, asked):
        self.calls.append(("histograms", sorted(request.group for request in asked)))
        return [self.engines[request.group].histogram(request.grid) for request in asked]

    def fetches(self, asked):
        self.calls.append(("fetches", sorted(request.group for request in asked)))
        return [self.engines[request.group].fetch(request.low, request.high) for request in asked]


def distributions(size, seed=7):
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
