"""Dyadic grids of [0, 1]: where a forecast belongs is exact in floating point, so that every machine agrees on it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrant.core.types import FloatArray, IntArray

FIRST_BITS = 15  # finer cells mean fewer rows to look at one by one, coarser ones fit the processor's cache

_MOST_BITS = 1000

_MOST_INDEX_BITS = 61


@dataclass(frozen=True)
class Grid:
    """Dyadic cells of width 2^-bits that cover the forecasts from ``low`` to ``high``.

    ``within`` names closed stretches, disjoint and in increasing order, outside of which nobody wants to know; a source
    that counts other rows too takes longer and is not wrong. Empty, it means all from ``low`` to ``high``.
    """

    bits: int
    low: float
    high: float
    within: tuple[tuple[float, float], ...] = ()

    @classmethod
    def covering(cls, low: float, high: float) -> Grid:
        """Return the grid of some 2^15 cells that zooms in on the forecasts from low to high."""
        return cls(max(0, min(FIRST_BITS - _exponent(high - low), _finest(high))), low, high)

    @classmethod
    def inside(cls, low: FloatArray, high: FloatArray, cells: int) -> Grid:
        """Return a grid that cuts the given stretches into about so many cells, and the widest into two at least."""
        width = high - low
        bits = math.floor(math.log2(cells) - math.log2(float(width.sum())))  # the quotient may be beyond float64
        bits = min(max(bits, 2 - _exponent(float(width.max()))), _finest(float(high[-1])))
        return cls(bits, float(low[0]), float(high[-1]), tuple(zip(low.tolist(), high.tolist(), strict=True)))

    @property
    def scale(self) -> float:
        """2^bits: a power of two, so that multiplying by it is exact."""
        return float(2.0**self.bits)

    @property
    def first(self) -> int:
        """Index of the cell that holds ``low``."""
        return int(self.index(np.array([self.low]))[0])

    @property
    def size(self) -> int:
        """Number of cells."""
        return int(self.index(np.array([self.high]))[0]) - self.first + 1

    def index(self, forecast: FloatArray) -> IntArray:
        """Return the cell of each forecast; a forecast of 1 joins the last cell."""
        cells: IntArray = (forecast * self.scale).astype(np.int64)
        return np.minimum(cells, 2**self.bits - 1) if self.bits < _MOST_INDEX_BITS else cells


FIRST_GRID = Grid(FIRST_BITS, 0.0, 1.0)

COARSE_GRID = Grid(12, 0.0, 1.0)  # enough where few borders matter, and quicker


COARSE_CELLS = 2**COARSE_GRID.bits


def coarse_spread(forecast: FloatArray) -> FloatArray:
    """Return p (1 - p) for coarse forecasts, which every source tells apart: in the middle of cells of width 2^-12."""
    coarse = (np.minimum(np.floor(forecast * COARSE_CELLS), COARSE_CELLS - 1) + 0.5) / COARSE_CELLS
    spread: FloatArray = coarse * (1.0 - coarse)
    return spread


def _finest(high: float) -> int:
    """Return the most bits with which cells up to a forecast can be numbered."""
    return min(_MOST_BITS, _MOST_INDEX_BITS - _exponent(high))


def _exponent(value: float) -> int:
    """Return the smallest e with value < 2^e; for 0, one below every forecast's."""
    return int(np.frexp(value)[1]) if value > 0.0 else -_MOST_BITS
