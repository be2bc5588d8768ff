"""Limits of the parts of a score: rows, or clusters, drawn again, less the bias of what was fitted to them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from calibrant.core.types import FloatArray, Randomness
from calibrant.core.words import level_said
from calibrant.decisions.stretches import needs_rows
from calibrant.measures.estimates import bootstrap
from calibrant.rows.checks import Observations, check_rng
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


Chances: TypeAlias = Callable[[Observations], FloatArray]
"""Returns chances of the outcomes of rows under which a part is 0."""


def calibrated(rows: Observations) -> FloatArray:
    """Return chances that are as forecast: nothing is there to recalibrate."""
    return rows.y_prob


def all_alike(rows: Observations) -> FloatArray:
    """Return chances that are the same for all rows: nothing is there to tell apart."""
    return np.full(rows.y_prob.size, np.average(rows.y_true, weights=rows.sample_weight))


def part_limits(
    rows: Observations | ClusteredRows,
    names: Sequence[str],
    found: Sequence[float],
    numbers: Callable[[Tally], Sequence[float | None]],
    *,
    confidence_level: float,
    n_resamples: int,
    rng: Randomness,
    fitted: Mapping[str, Chances],
) -> dict[str, float]:
    """Return limits of numbers by percentiles of resamples, corrected where a fit to noise makes them larger.

    A fit to rows finds more than there is, and a fit to resamples more again. With E the number, and M and Q its mean
    and upper quantile in resamples, the limits of what was fitted are E - B - (Q - M) and E + (Q - M). B is the larger
    of M - E and of what is found on average where nothing is: in outcomes drawn with the chances under which the part
    is 0. The lower limit is 0 unless E exceeds the upper quantile of the same numbers. For independent rows this makes
    it a test that is exact at every number of rows; in clusters Q - M, from resamples of clusters, has to do.
    """
    check_resamples(n_resamples, confidence_level)
    generator = check_rng(rng)

    def defined(sample: Tally) -> list[float]:
        return [math.nan if each is None else each for each in numbers(sample)]

    drawn = bootstrap(rows, defined, n_resamples=n_resamples, rng=generator)
    noise = {
        name: _where_nothing_is(rows, chances, defined, n_resamples, generator)[:, names.index(name)]
        for name, chances in fitted.items()
    }
    found_in_noise = max((float(each.mean()) for each in noise.values()), default=0.0)
    limits: dict[str, float] = {}
    for position, (name, value) in enumerate(zip(names, found, strict=True)):
        low, high = drawn.limits(position, name.replace("_", " "), confidence_level)
        if name in fitted:
            mean = float(np.nanmean(drawn.values[:, position]))
            most = float(np.quantile(noise[name], (1.0 + confidence_level) / 2.0, method="higher"))
            bias = max(mean - value, found_in_noise)
            low = min(max(value - bias - (high - mean), 0.0), value) if value > most else 0.0
            high = max(high - mean + value, value)
        limits |= {f"{name}_lower": low, f"{name}_upper": high}
    return limits


def _where_nothing_is(
    rows: Observations | ClusteredRows,
    chances: Chances,
    numbers: Callable[[Tally], list[float]],
    n_resamples: int,
    generator: np.random.Generator,
) -> FloatArray:
    """Return the numbers of rows with the same forecasts, and outcomes drawn with chances under which a part is 0."""
    held = rows.observations if isinstance(rows, ClusteredRows) else rows
    listed = held.that_count().in_order()
    chance = chances(listed)
    values = []
    for _ in range(n_resamples):
        outcome = (generator.random(chance.size) < chance).astype(np.uint8)
        values.append(numbers(Tally.from_observations(replace(listed, y_true=outcome, binary_outcomes=True))))
    return np.array(values)


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
