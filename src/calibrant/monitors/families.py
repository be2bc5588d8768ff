"""What evidence is averaged over: intervals of forecasts and betting rates, all fixed before any row is seen."""

from __future__ import annotations

from functools import cache

import numpy as np

from calibrant.certificates.cluster_search import interval_shares
from calibrant.core.types import FloatArray, IntArray

LEAST_BITS = 12
"""Cells at least so fine know on which side of each border their rows are."""

RATES = 14
"""Betting rates, each half of the one before."""

FASTEST_ROWS = 0.9
"""Of bets on rows, whose residuals reach from -1 to 1."""

FASTEST_PERIODS = 0.9 * 2.0**4
"""Of bets on the means of periods, which are far from 1 on most intervals; where they may not be, bets are smaller."""


def _borders() -> FloatArray:
    tails = 2.0 ** -np.array([5.0, 6.0, 8.0, 10.0, 12.0])
    return np.unique(np.concatenate([np.arange(17) / 16.0, tails, 1.0 - tails]))


BORDERS = _borders()
"""Where intervals begin and end: sixteenths, and finer towards 0 and 1."""

BEGIN, END = np.triu_indices(BORDERS.size, 1)
"""The interval k holds the forecasts p with BORDERS[BEGIN[k]] <= p < BORDERS[END[k]]; the last border is inside."""


@cache
def shares_of_intervals() -> FloatArray:
    """Return the share of each interval: each end is the outermost one in half of them."""
    return interval_shares(BEGIN, END, BORDERS.size - 1)


@cache
def log_shares() -> FloatArray:
    """Return the logarithm of the share of each rate, sign and interval in the average."""
    shares: FloatArray = np.log(shares_of_intervals() / (2.0 * RATES))
    return shares


@cache
def most_lost() -> FloatArray:
    """Return, by sign and interval, the most that p (1 - p for the sign -1) can be there: residuals lose no more."""
    return np.stack([BORDERS[END], 1.0 - BORDERS[BEGIN]])


def between_borders(values: FloatArray) -> FloatArray:
    """Return sums over each interval of values between neighbouring borders, along the last axis."""
    running = np.concatenate([np.zeros((*values.shape[:-1], 1)), values.cumsum(axis=-1)], axis=-1)
    found: FloatArray = running[..., END] - running[..., BEGIN]
    return found


def places(index: IntArray, bits: int) -> IntArray:
    """Return between which borders cells of width 2^-bits lie."""
    return np.searchsorted(BORDERS[1:-1] * 2.0**bits, index, side="right")
