"""Bands of the reliability diagram: what calibrated forecasts would show, and where the true event rate lies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from calibrant.certificates.cluster_limits import ClusterLimits
from calibrant.certificates.joint_levels import delta_of_each
from calibrant.certificates.variances import outcome_variance
from calibrant.core.binomial import lower_rate, upper_rate
from calibrant.core.isotonic import isotonic_curves
from calibrant.core.types import FloatArray
from calibrant.rows.runs import prefix_sums
from calibrant.rows.tally import Tally

MOST_GROUPS = 2000
"""Groups of neighbouring forecasts that the consistency band is simulated on."""

MOST_STRETCHES = 400
"""Groups of equal weight whose runs the confidence band looks at: all runs pay for being looked at together."""

_WIDEST = 20  # no group of a confidence band is wider than such a part of the range


class Band(NamedTuple):
    """A band that is linear between its points, and how many groups of forecasts it was computed on."""

    forecast: FloatArray
    lower: FloatArray
    upper: FloatArray
    groups: int


class Stretch(NamedTuple):
    """Forecasts from one to another that are all too low, or all too high."""

    low: float
    high: float
    too_low: bool

    def __str__(self) -> str:
        where = f"of {self.low:.3g}" if self.low == self.high else f"from {self.low:.3g} to {self.high:.3g}"
        return f"Forecasts {where} are too {'low' if self.too_low else 'high'}"


@dataclass(frozen=True)
class _Groups:
    """Neighbouring forecasts taken together."""

    low: FloatArray
    high: FloatArray
    forecast: FloatArray
    weight: FloatArray
    outcome: FloatArray
    variance: FloatArray
    counted: bool

    def __len__(self) -> int:
        return int(self.low.size)


def _joined(tally: Tally, shares: int, widths: int) -> _Groups:
    """Join neighbouring forecasts into groups of small weight and width, chosen without looking at the outcomes.

    There are at most ``shares + widths``: a group holds about 1 / shares of the weight and spans at most 1 / widths of
    the range, so that a few far forecasts are not joined with many near ones.
    """
    forecast, starts = tally.forecast, np.arange(len(tally))
    if len(tally) > shares + widths:
        through = np.cumsum(tally.weight, dtype=np.float64)
        share = (through - tally.weight / 2.0) / through[-1]
        width = (forecast - forecast[0]) / (forecast[-1] - forecast[0])
        parts = (np.minimum((place * n).astype(np.int64), n - 1) for place, n in ((share, shares), (width, widths)))
        starts = np.flatnonzero(np.logical_or(*(np.diff(part, prepend=-1) for part in parts)))
    weight = np.add.reduceat(tally.weight, starts).astype(np.float64)
    return _Groups(
        low=forecast[starts],
        high=forecast[np.append(starts[1:], len(tally)) - 1],
        forecast=np.add.reduceat(tally.weight * forecast, starts) / weight,
        weight=weight,
        outcome=np.add.reduceat(tally.outcome, starts),
        variance=np.add.reduceat(outcome_variance(tally), starts),
        counted=tally.binary_outcomes and tally.unit_weights,
    )


def stretches_off(forecast: FloatArray, lower: FloatArray, upper: FloatArray) -> list[Stretch]:
    """Return the longest stretches of forecasts that a band for the event rate leaves out, from low to high."""
    side = np.where(lower > forecast, 1, np.where(upper < forecast, -1, 0))
    starts = np.flatnonzero(np.diff(side, prepend=0, append=0))
    return [
        Stretch(float(forecast[begin]), float(forecast[end - 1]), bool(side[begin] > 0))
        for begin, end in pairwise(starts.tolist())
        if side[begin] != 0
    ]


def consistency_band(tally: Tally, level: float, resamples: int, generator: np.random.Generator) -> Band:
    """Return where, at each group's forecast by itself, the curves of outcomes drawn from the forecasts lie."""
    groups = _joined(tally, MOST_GROUPS // 2, MOST_GROUPS // 2)
    forecast, size = groups.forecast, (resamples, len(groups))
    if groups.counted:
        chance = np.clip(forecast, 0.0, 1.0)  # a mean of forecasts of 1 may round above it
        rates = generator.binomial(groups.weight.astype(np.int64), chance, size=size) / groups.weight
    else:
        rates = forecast + generator.standard_normal(size) * np.sqrt(groups.variance) / groups.weight
    curves = isotonic_curves(rates, groups.weight)
    lower, upper = np.quantile(curves, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
    return Band(forecast, np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0), len(groups))


def clusters_band(
    tally: Tally, clusters: ClusterLimits, level: float, resamples: int, generator: np.random.Generator
) -> Band:
    """Return where, at each group's forecast by itself, curves lie whose clusters have residuals of random sign.

    Right for many clusters. The draws depend on what clusters hold and not on their order or names.
    """
    from scipy.sparse import csr_matrix

    groups = _joined(tally, MOST_GROUPS // 2, MOST_GROUPS // 2)
    borders = groups.low.copy()
    borders[0] = 0.0
    sums = clusters.source.cluster_sums(borders)
    held = csr_matrix((sums.residual, (sums.block, sums.cluster)), shape=(len(groups), sums.clusters))
    held = held[:, np.lexsort((held.T @ np.cos(np.arange(len(groups)) + 1.0), sums.per_cluster(sums.residual)))]
    spread = math.sqrt(clusters.dependence.folds) / groups.weight
    moved = []
    for _ in range(resamples):
        signs = 2.0 * generator.integers(0, 2, size=sums.clusters) - 1.0
        moved.append(spread * (held @ signs))
    curves = isotonic_curves(groups.forecast + np.array(moved), groups.weight)
    lower, upper = np.quantile(curves, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
    return Band(groups.forecast, np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0), len(groups))


def confidence_band(tally: Tally, level: float) -> Band:
    """Return limits for a non-decreasing event rate that hold at all forecasts together; needs counts of events.

    The event rate at a forecast is at least that of every row below. So the events of a run of rows below it are at
    most as many, in law, as binomial ones with that rate, and their Clopper-Pearson lower limit is one for it; in the
    same way runs of rows above give upper limits. The best of each is taken; each is wrong with probability at most
    (1 - level) / (number of limits).
    """
    shares = min(math.ceil(2.0 * tally.row_total ** (1.0 / 3.0)), MOST_STRETCHES)
    groups = _joined(tally, shares, _WIDEST)
    count = len(groups)
    first, last = np.triu_indices(count)
    rows = prefix_sums(groups.weight)
    events = prefix_sums(groups.outcome)
    size, hits = rows[last + 1] - rows[first], events[last + 1] - events[first]
    delta = delta_of_each(1.0 - level, 2 * first.size)
    least, most = lower_rate(hits, size - hits, delta), upper_rate(hits, size - hits, delta)
    # lower[k] holds from the last forecast of group k up, upper[k] from the first of group k down.
    lower, upper = np.zeros(count + 1), np.ones(count + 1)
    np.maximum.at(lower, last + 1, least)
    np.minimum.at(upper, first, most)
    lower = np.maximum.accumulate(lower)
    upper = np.minimum.accumulate(upper[::-1])[::-1]
    place = np.union1d(groups.low, groups.high)
    before, at = (lower[np.searchsorted(groups.high, place, side=side)] for side in ("left", "right"))
    up_to, after = (upper[np.searchsorted(groups.low, place, side=side)] for side in ("left", "right"))
    # Both are stairs: three points at each place draw the jumps.
    return Band(
        forecast=np.repeat(place, 3),
        lower=np.stack([before, at, at], axis=1).ravel(),
        upper=np.stack([up_to, up_to, after], axis=1).ravel(),
        groups=count,
    )
