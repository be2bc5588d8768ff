"""Where two models differ most on the rows at hand, in words: an interval of forecasts, a threshold, some decisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.types import FloatArray, IntArray
from calibrant.core.words import counted, measured
from calibrant.measures.results import ends_said
from calibrant.rows.grids import COARSE_CELLS
from calibrant.rows.paired import PairedRows
from calibrant.rows.runs import group_starts, prefix_sums
from calibrant.rows.savings import Thresholds

_NEARLY_NOTHING = 1e-12
_LINES = 256  # thresholds that are looked at


def worst_apart(
    rows: PairedRows,
    first: str,
    second: str,
    borders: FloatArray | None = None,
    residuals: FloatArray | None = None,
) -> str | None:
    """Name the interval of forecasts on which the residuals of two models add up to the most different sums.

    Sums of residuals between borders, in units of the largest weight, stand in for rows that are many.
    """
    if borders is None or residuals is None:
        forecasts = [rows.forecasts[name] for name in (first, second)]
        own = np.ones(rows.rows) if rows.share is None else rows.share
        low = high = np.unique(np.concatenate(forecasts))
        found: list[npt.NDArray[Any]] = [
            np.bincount(np.searchsorted(low, each), weights=own * (rows.outcome - each), minlength=low.size)
            for each in forecasts
        ]
    else:
        low, high, found = borders[:-1], borders[1:], list(residuals)
    sums = [prefix_sums(each) for each in found]
    total = float(rows.rows) if rows.share is None else float(rows.share.sum())
    apart = sums[0] - sums[1]
    begin, end = sorted((int(apart.argmax()), int(apart.argmin())))
    biases = [float(each[end] - each[begin]) / total for each in sums]
    if begin == end or max(map(abs, biases)) < _NEARLY_NOTHING:
        return None
    said = " and ".join(_bias_said(name, bias) for name, bias in zip((first, second), biases, strict=True))
    least, most = ends_said(float(low[begin]), float(high[end - 1]))
    return f"{first} and {second} differ most on forecasts from {least} to {most}, where {said} (over all rows)."


def _bias_said(name: str, bias: float) -> str:
    if abs(bias) < _NEARLY_NOTHING:
        return f"{name} is right on average"
    return f"{name} is {measured(abs(bias), 4)} too {'low' if bias > 0.0 else 'high'}"


def gap_apart(rows: PairedRows, first: str, second: str, thresholds: Thresholds) -> str | None:
    """Name the threshold at which the risk gaps of two models are most different, lines drawn between coarse cells."""
    low, high = (round(each * COARSE_CELLS) for each in thresholds)
    step = max((high - low) // _LINES, 1)
    at = np.arange(low, high + 1, step)
    gaps = [_gaps(rows, name, at) for name in (first, second)]
    apart = np.abs(gaps[0] - gaps[1])
    k = int(apart.argmax())
    if apart[k] < _NEARLY_NOTHING:
        return None
    one, other = (float(each[k]) for each in gaps)
    return (
        f"{first} and {second} differ most about threshold {at[k] / COARSE_CELLS:.3g}, where the best re-drawing of "
        f"the line saves {measured(one, 4)} per case with {first} and {measured(other, 4)} with {second}."
    )


def _gaps(rows: PairedRows, name: str, at: IntArray) -> FloatArray:
    """Return what the best line saves at thresholds that are borders of coarse cells."""
    weight = np.ones(rows.rows) if rows.weight is None else rows.weight
    cell = np.minimum((rows.forecasts[name] * COARSE_CELLS).astype(np.int64), COARSE_CELLS - 1)
    sizes, events = (
        prefix_sums(np.bincount(cell, weights=each, minlength=COARSE_CELLS)) for each in (weight, weight * rows.outcome)
    )
    left = np.unique(np.flatnonzero(np.append(True, np.diff(sizes) > 0.0)))
    ends = np.append(left, COARSE_CELLS)  # lines that tell rows apart
    tau = (at / COARSE_CELLS)[:, None]
    missed = events[ends] - tau * sizes[ends]  # by acting from this border on
    own = events[at] - tau[:, 0] * sizes[at]
    gaps: FloatArray = (own - missed.min(axis=1)) / rows.weight_total
    return gaps


def score_apart(rows: PairedRows, first: str, second: str, values: FloatArray) -> str | None:
    """Name the forecasts of the first model on which most of a difference arises."""
    forecast = rows.forecasts[first]
    order = np.argsort(forecast, kind="stable")
    starts = group_starts(forecast[order])
    own = values if rows.weight is None else values * rows.weight
    sums = prefix_sums(np.add.reduceat(own[order], starts))
    begin, end = sorted((int(sums.argmax()), int(sums.argmin())))
    part = float(sums[end] - sums[begin]) / rows.weight_total
    if begin == end or abs(part) < _NEARLY_NOTHING:
        return None
    distinct = forecast[order][starts]
    least, most = ends_said(float(distinct[begin]), float(distinct[end - 1]))
    return (
        f"{first} and {second} differ most where {first} forecasts from {least} to {most}: those rows add "
        f"{part:+.4f} to the difference of {sums[-1] / rows.weight_total:+.4f}."
    )


def decisions_apart(rows: PairedRows, first: str, second: str, threshold: float) -> str | None:
    """Say on how many rows the decisions of two models differ, and what happened there."""
    acts, other = (rows.forecasts[name] >= threshold for name in (first, second))
    said = [
        f"where only {name} acts, on {counted(int(only.sum()), 'row')}, {rows.outcome[only].mean():.1%} are events"
        for name, only in ((first, acts & ~other), (second, other & ~acts))
        if only.any()
    ]
    return f"At threshold {threshold:.4g}, {'; '.join(said)}." if said else None
