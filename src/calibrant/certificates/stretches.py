"""The largest stretches of scores that add up over rows, on which limits of the Cutoff error rest."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from calibrant.core.types import FloatArray
from calibrant.rows.refinement import Pair, bracket_stretch, largest_of, linear_scores, split_at_stretches
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally, Totals

Pairs = Callable[[Totals], Iterator[Pair]]
"""Scores of the rows of each entry, in both signs: as many pairs as a limit looks at."""


def square_scores(coefficients: Sequence[float]) -> Pairs:
    """Return the scores w r + c w^2 r^2, for each coefficient c."""

    def pairs(table: Totals) -> Iterator[Pair]:
        for coefficient in coefficients:
            yield linear_scores(table, 1.0, coefficient), linear_scores(table, -1.0, coefficient)

    return pairs


def largest_stretches(source: Tally | RowSource, all_pairs: Pairs) -> FloatArray:
    """Return the largest stretch of each pair of scores."""
    looked_at: Totals | None = None
    largest: list[float] = []

    def pairs(table: Totals) -> Iterator[Pair]:
        nonlocal looked_at
        looked_at = table
        largest.clear()
        for pair in all_pairs(table):
            largest.append(largest_of(pair))
            yield pair

    fine = split_at_stretches(source, pairs)
    if looked_at is not fine:  # rows were looked at one by one since
        deque(pairs(fine), maxlen=0)
    return np.array(largest)


def bracketed(table: Totals, all_pairs: Pairs) -> FloatArray:
    """Return two ends between which the largest stretch of each pair lies, whatever the rows inside the entries are."""
    return np.array([np.max([bracket_stretch(scores) for scores in pair], axis=0) for pair in all_pairs(table)])
