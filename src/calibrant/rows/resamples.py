"""Rows drawn again: bootstrap samples of independent rows, or of whole clusters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from calibrant.core.errors import InputError
from calibrant.rows.checks import Observations, check_number
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.runs import group_sizes, stable_order


def resampled(
    rows: Observations | ClusteredRows, n_resamples: int, generator: np.random.Generator
) -> Iterator[Observations]:
    """Draw as many rows as there are, with replacement, again and again; or as many clusters, each with all its rows.

    Rows are put in an order that depends on what they hold alone, and clusters are those of sorted labels: the draws do
    not depend on the order in which rows came.
    """
    if isinstance(rows, ClusteredRows):
        yield from _clusters_drawn(rows, n_resamples, generator)
        return
    listed = rows.that_count().in_order()
    size = listed.y_prob.size
    for _ in range(n_resamples):
        yield listed.take(np.sort(generator.integers(0, size, size)))


def _clusters_drawn(rows: ClusteredRows, n_resamples: int, generator: np.random.Generator) -> Iterator[Observations]:
    order = stable_order(rows.codes)
    starts = np.searchsorted(rows.codes[order], np.arange(rows.cluster_count))
    sizes = group_sizes(starts, order.size)
    for _ in range(n_resamples):
        drawn = generator.integers(0, rows.cluster_count, rows.cluster_count)
        taken = sizes[drawn]
        ends = np.cumsum(taken)
        inside = np.arange(ends[-1]) - np.repeat(ends - taken, taken)
        yield rows.observations.take(order[np.repeat(starts[drawn], taken) + inside])


def check_resamples(n_resamples: Any, confidence_level: float) -> int:
    """Return a number of resamples that is large enough to speak of a confidence level."""
    resamples = int(check_number(n_resamples, "n_resamples", low=1, high=1e6, whole=True))
    least = math.ceil(1.0 / (1.0 - confidence_level) - 1e-9) - 1
    if resamples < least:
        raise InputError(
            f"is {resamples}, too few for a confidence_level of {confidence_level:g}",
            argument="n_resamples",
            value=resamples,
            remedy=f"take at least {least}",
        )
    return resamples
