"""Quantiles of weighted values, as R's default (type 7) has them for rows that are repeated."""

from __future__ import annotations

import math

import numpy as np

from calibrant.core.types import FloatArray, IntArray

_CELLS = 4096.0
_FEW = 1 << 16  # values that are sorted in less time than it takes to look for those that matter
_ROUNDING = 1e-9


def quantiles(values: FloatArray, weight: FloatArray, shares: tuple[float, ...]) -> list[float]:
    """Return quantiles of values that are repeated as often as their weight says.

    R's type 7, numpy's "linear": with W the sum of the weights, the value at rank 1 + (W - 1) share, linear between the
    two whole ranks beside it. The value at a rank is the smallest that, with those below it, has so much weight; that
    is the definition for weights that are no whole numbers, too (Hmisc's wtd.quantile).
    """
    total = float(weight.sum())
    ranks = [1.0 + max(total - 1.0, 0.0) * share for share in shares]
    below = [math.floor(rank + _ROUNDING) for rank in ranks]
    wanted = [(min(rank, total), min(rank + 1.0, total)) for rank in below]
    if values.size <= _FEW:
        order = np.argsort(values)
        ordered, through = values[order], np.cumsum(weight[order])
        found = [tuple(float(ordered[_place(through, rank)]) for rank in pair) for pair in wanted]
    else:
        low, high = float(values.min()), float(values.max())
        cell = ((values - low) * (_CELLS / max(high - low, 1e-300))).astype(np.int64)
        through = np.cumsum(np.bincount(cell, weights=weight))
        found = [tuple(_inside(values, weight, cell, through, rank) for rank in pair) for pair in wanted]
    parts = (max(rank - low, 0.0) for rank, (low, _) in zip(ranks, wanted, strict=True))
    return [lower + part * (upper - lower) for part, (lower, upper) in zip(parts, found, strict=True)]


def _place(through: FloatArray, rank: float) -> int:
    return min(int(np.searchsorted(through, rank * (1.0 - _ROUNDING))), through.size - 1)


def _inside(values: FloatArray, weight: FloatArray, cell: IntArray, through: FloatArray, rank: float) -> float:
    """Return the value at a rank: a histogram finds the cell that it is in, and only that one is sorted."""
    found = _place(through, rank)
    held = np.flatnonzero(cell == found)
    held = held[np.argsort(values[held])]
    before = float(through[found - 1]) if found else 0.0
    return float(values[held[_place(before + np.cumsum(weight[held]), rank)]])
