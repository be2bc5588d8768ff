"""Rows drawn again: bootstrap samples of independent rows, or of whole clusters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from calibrant.core.errors import InputError, UndefinedError
from calibrant.core.types import IntArray
from calibrant.rows.checks import Observations, check_number
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.runs import group_sizes, stable_order

MOST_UNDEFINED = 0.1
"""Share of resamples in which a number may be undefined before limits from the others would mislead."""

Draw: TypeAlias = Callable[[np.random.Generator], IntArray]
"""What draws the positions of a resample."""

_FEW = 10


def resampled(
    rows: Observations | ClusteredRows, n_resamples: int, generator: np.random.Generator
) -> Iterator[Observations]:
    """Draw as many rows as there are, with replacement, again and again; or as many clusters, each with all its rows.

    Rows are put in an order that depends on what they hold alone, and clusters are those of sorted labels: the draws do
    not depend on the order in which rows came. What was estimated from the rows, such as weights of censored ones, is
    estimated anew in each resample; those in which that cannot be done are drawn once more.
    """
    listed, draw = _of_clusters(rows) if isinstance(rows, ClusteredRows) else _of_rows(rows)
    drawn = failed = 0
    while drawn < n_resamples:
        try:
            sample = listed.drawn_again(draw(generator))
        except UndefinedError as error:
            failed += 1
            if failed > max(MOST_UNDEFINED * n_resamples, _FEW):
                raise UndefinedError(
                    f"many resamples of these rows say nothing: {error}", remedy="ask for the number without limits"
                ) from error
            continue
        drawn += 1
        yield sample


def _of_rows(rows: Observations) -> tuple[Observations, Draw]:
    listed = rows.to_draw_from()
    size = listed.y_prob.size
    return listed, lambda generator: np.sort(generator.integers(0, size, size))


def _of_clusters(rows: ClusteredRows) -> tuple[Observations, Draw]:
    listed, codes = rows.every
    order = stable_order(codes)
    count = int(codes.max()) + 1
    starts = np.searchsorted(codes[order], np.arange(count))
    sizes = group_sizes(starts, order.size)

    def draw(generator: np.random.Generator) -> IntArray:
        drawn = generator.integers(0, count, count)
        taken = sizes[drawn]
        ends = np.cumsum(taken)
        inside = np.arange(ends[-1]) - np.repeat(ends - taken, taken)
        found: IntArray = order[np.repeat(starts[drawn], taken) + inside]
        return found

    return listed, draw


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
