"""Go through all counts of events that are possible at a few distinct forecasts."""

from __future__ import annotations

import math

import numpy as np

from calibrant.core.binomial import exactly
from calibrant.core.types import FloatArray, IntArray
from calibrant.rows.tally import Tally, Totals

ENUMERABLE = 1_000_000
"""Possible counts of events up to which the exact test goes through all of them: tenths of a second, some 100 MB."""


def is_enumerable(table: Totals) -> bool:
    """Return whether all counts of events at the distinct forecasts can be gone through."""
    return isinstance(table, Tally) and float(np.log1p(table.rows).sum()) <= math.log(ENUMERABLE)


def enumerated_tail(rows: IntArray, forecast: FloatArray, expected: FloatArray, least: float) -> float:
    """Return the probability that the range of calibrated outcomes' residual curve reaches a value."""
    probability, events, highest, lowest = np.ones(1), np.zeros(1), np.zeros(1), np.zeros(1)
    tail = 0.0
    for count, chance, mean in zip(rows.tolist(), forecast.tolist(), expected.tolist(), strict=True):
        possible = np.arange(count + 1)
        probability = np.multiply.outer(probability, exactly(possible, count, chance))
        events = np.add.outer(events, possible)
        curve = events - mean
        highest, lowest = np.maximum(highest[:, np.newaxis], curve), np.minimum(lowest[:, np.newaxis], curve)
        # A range never shrinks: curves that have reached the value are done with, whatever comes.
        reached = highest - lowest >= least
        tail += float(probability[reached].sum())
        left = ~reached
        probability, events, highest, lowest = (each[left] for each in (probability, events, highest, lowest))
    # The smaller sum keeps its digits, and nothing short of all is 1.
    rest = float(probability.sum())
    return tail if tail < rest else 1.0 - rest
