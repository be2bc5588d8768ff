"""Limits of the parts of a score: rows, or clusters, drawn again, less the bias of what was fitted to them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

from calibrant.core.types import Randomness
from calibrant.core.words import level_said
from calibrant.decisions.stretches import needs_rows
from calibrant.measures.estimates import bootstrap
from calibrant.rows.checks import Observations
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.intake import are_clustered, as_clustered, as_observations, as_source
from calibrant.rows.resamples import check_resamples
from calibrant.rows.tally import Tally


def drawable(
    y_true: Any, y_prob: Any = None, *, cluster: Any, sample_weight: Any, pos_label: Any
) -> Observations | ClusteredRows:
    """Return rows one by one, or whole clusters, to draw from again."""
    columns = {"sample_weight": sample_weight, "pos_label": pos_label}
    if cluster is not None or are_clustered(y_true):
        rows = as_clustered(y_true, y_prob, cluster=cluster, **columns)
        if not isinstance(rows, ClusteredRows):
            raise needs_rows()
        return rows
    if y_prob is not None or isinstance(y_true, Observations):
        return as_observations(y_true, y_prob, **columns)
    source = as_source(y_true, y_prob, **columns)
    listed = source.each_row() if isinstance(source, Tally) else None
    if listed is None:
        raise needs_rows()
    return listed


def tally_of(rows: Observations | ClusteredRows) -> Tally:
    """Return the tally of rows that may be in clusters."""
    return Tally.from_observations(rows.observations if isinstance(rows, ClusteredRows) else rows)


def part_limits(
    rows: Observations | ClusteredRows,
    names: Sequence[str],
    found: Sequence[float],
    numbers: Callable[[Tally], Sequence[float | None]],
    *,
    confidence_level: float,
    n_resamples: int,
    rng: Randomness,
    fitted: Collection[str] = (),
) -> dict[str, float]:
    """Return limits of numbers by percentiles of resamples or, for what was fitted, by the basic bootstrap.

    A fit to rows finds more than there is; a fit to resamples finds more by about as much again. Twice the number less
    the percentiles takes that off; what was fitted is not below 0.
    """
    check_resamples(n_resamples, confidence_level)

    def defined(sample: Tally) -> list[float]:
        return [math.nan if each is None else each for each in numbers(sample)]

    drawn = bootstrap(rows, defined, n_resamples=n_resamples, rng=rng)
    limits: dict[str, float] = {}
    for position, (name, value) in enumerate(zip(names, found, strict=True)):
        low, high = drawn.limits(position, name.replace("_", " "), confidence_level)
        if name in fitted:
            low, high = (max(2.0 * value - end, 0.0) for end in (high, low))
        limits |= {f"{name}_lower": low, f"{name}_upper": high}
    return limits


def columns_of(result: Any, names: Sequence[str]) -> dict[str, list[Any]]:
    """Return the columns of a table with a row per part, and limits where there are any."""
    columns: dict[str, list[Any]] = {"component": list(names), "value": [getattr(result, name) for name in names]}
    if result.confidence_level is not None:
        for end in ("lower", "upper"):
            columns[end] = [getattr(result, f"{name}_{end}") for name in names]
    return columns


def limits_said(result: Any, names: Sequence[str]) -> str:
    """Word the limits of parts."""
    level = level_said(result.confidence_level)
    said = (
        f"{name} {getattr(result, f'{name}_lower'):.5f} to {getattr(result, f'{name}_upper'):.5f}" for name in names
    )
    return f"{level} limits, for many rows: {', '.join(said)}"
