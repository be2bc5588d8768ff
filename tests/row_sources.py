"""Rows as sources for the tests: in memory, and as a toy engine that counts what it is asked."""

from calibrant import refinement, sources
from calibrant.cells import ArrayRows
from calibrant.sources import Grid
from calibrant.validation import check_observations


def array_rows(y, p, w=None):
    return ArrayRows(check_observations(y, p, sample_weight=w, refuse_swapped=False))


def first_grid(monkeypatch, bits):
    """Start from coarse cells, which makes pruning, zooming and fetching happen on a handful of rows."""
    monkeypatch.setattr(sources, "FIRST_BITS", bits)
    monkeypatch.setattr(refinement, "FIRST_BITS", bits)
    monkeypatch.setattr(refinement, "FIRST_GRID", Grid(bits, 0.0, 1.0))
