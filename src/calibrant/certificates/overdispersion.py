"""Are the outcomes of a cluster more alike than those of independent rows? Overdispersion of sums over clusters.

Forecasts are cut into strata, and residuals counted from a line through those of their stratum, so that forecasts
that are off everywhere alike are no sign of clusters. The sum over clusters of squared sums is compared with what
independent rows would give, by its first three moments. Why is in docs/theory/clusters.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from calibrant.certificates.cluster_search import cut_into_blocks
from calibrant.core.types import FloatArray, IntArray
from calibrant.rows.clusters import ClusteredSource, ClusterSums
from calibrant.rows.grids import FIRST_GRID
from calibrant.rows.intake import rows_of_clusters
from calibrant.rows.tally import Tally

_ROWS_OF_STRATUM = 50
_MOST_STRATA = 64
_MOST_PAIRS = 2**22  # clusters times strata
_NOTHING = 1e-12  # of the squares, that rounding may leave where a line explains all


class Overdispersion(NamedTuple):
    """How probable sums so far apart are for independent rows, and the correlation of rows of one cluster."""

    pvalue: float
    correlation: float


class _Strata(NamedTuple):
    """By stratum: rows, their mean forecast and squares of differences from it, and a line through their residuals.

    ``mean`` is its height at the mean forecast; ``variance`` and ``third`` are moments of what it leaves. ``sums`` are
    those of clusters, ``ahead`` by how much the forecasts of each add up to more than their number times the mean.
    """

    sums: ClusterSums
    ahead: FloatArray
    rows: FloatArray
    forecast_square: FloatArray
    mean: FloatArray
    slope: FloatArray
    variance: FloatArray
    third: FloatArray


def overdispersion_of(source: ClusteredSource) -> Overdispersion:
    """Look for overdispersion of rows of unit weight."""
    strata = _strata_of(source)
    sums, here = strata.sums, strata.sums.block
    number = sums.rows.astype(np.float64)
    off = sums.per_cluster(sums.residual - number * strata.mean[here] - strata.ahead * strata.slope[here])
    spread = sums.per_cluster(number * strata.variance[here])
    taken = _taken(strata, number)
    mean, variance, third = _moments(strata, number, spread, taken)
    excess = float((off**2).sum()) - mean
    deviation = sums.per_cluster(number * np.sqrt(strata.variance[here]))
    pairs = _together(strata, deviation, taken) - mean
    correlation = excess / pairs if pairs > _NOTHING * float((deviation**2).sum()) else 0.0
    return Overdispersion(_tail(excess, variance, third), min(max(correlation, -1.0), 1.0))


def _strata_of(source: ClusteredSource) -> _Strata:
    plain = rows_of_clusters(source)
    table = plain if isinstance(plain, Tally) else source.histogram(FIRST_GRID)
    most = min(_MOST_STRATA, max(_MOST_PAIRS // source.cluster_count, 1))
    count = min(max(table.row_total // _ROWS_OF_STRATUM, 1), most)
    # Half as many, because forecasts up to twice that number are told apart.
    first: IntArray = cut_into_blocks(table, max(count // 2, 1))
    borders = table.low[first].copy()
    borders[0] = 0.0
    forecast = table.outcome - table.residual
    rows, residual, square, outcome, total = (
        np.add.reduceat(each, first).astype(np.float64)
        for each in (table.rows, table.residual, table.residual_square, table.outcome, forecast)
    )
    mean, centre = residual / rows, total / rows
    beside = forecast / table.rows - np.repeat(centre, np.diff(np.append(first, len(table))))
    forecast_square = np.add.reduceat(table.rows * beside**2, first)
    forecast_square[forecast_square <= _NOTHING * rows] = 0.0
    several = forecast_square > 0.0
    slope = np.where(several, np.add.reduceat(table.residual * beside, first), 0.0)
    slope /= np.where(several, forecast_square, 1.0)
    left = square - rows * mean**2 - slope**2 * forecast_square
    free = rows - 1.0 - several
    variance = np.where((free > 0.0) & (left > _NOTHING * square), left / np.maximum(free, 1.0), 0.0)
    sums = source.cluster_sums(borders)
    ahead = sums.outcome - sums.residual - sums.rows * centre[sums.block]
    third = variance * (1.0 - 2.0 * outcome / rows)
    return _Strata(sums, ahead, rows, forecast_square, mean, slope, variance, third)


def _taken(strata: _Strata, number: FloatArray) -> FloatArray:
    """Return what the lines of strata take away from clusters: a column for the height of each, and for its slope."""
    sums, here = strata.sums, strata.sums.block
    slopes = strata.variance / np.where(strata.forecast_square > 0.0, strata.forecast_square, math.inf)
    taken = np.zeros((sums.clusters, 2 * strata.rows.size))
    taken[sums.cluster, here] = number * np.sqrt(strata.variance / strata.rows)[here]
    taken[sums.cluster, strata.rows.size + here] = strata.ahead * np.sqrt(slopes)[here]
    return taken


def _together(strata: _Strata, deviation: FloatArray, taken: FloatArray) -> float:
    """Return the mean of the sum of squares if all outcomes of a cluster moved as one, which lines take part of."""
    root = np.sqrt(np.tile(strata.variance, 2))
    part = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0.0)
    lost = (taken**2) @ part
    return float((deviation**2 - 2.0 * deviation * lost).sum() + ((taken.T @ taken) ** 2 * np.outer(part, part)).sum())


def _moments(strata: _Strata, number: FloatArray, spread: FloatArray, taken: FloatArray) -> tuple[float, float, float]:
    """Return mean, variance and third moment of the sum of squares if rows are independent given their forecasts.

    With D the variances of sums and A A' what the lines of strata take away, sums have the covariance D - A A'. The
    squares of single rows are the same however rows are dealt to clusters, so that their share is taken out again.
    """
    sums, here = strata.sums, strata.sums.block
    own = (taken**2).sum(axis=1)
    product, weighted = taken.T @ taken, (taken * spread[:, None]).T @ taken
    squares = sums.per_cluster(number * strata.variance[here] ** 2)
    cubes = float((number * strata.variance[here] ** 3).sum())
    skew = sums.per_cluster(number * strata.third[here])
    own_skew = float((number * strata.third[here] ** 2).sum())
    mean = float((spread - own).sum())
    variance = 2.0 * float((spread**2 - 2.0 * spread * own - squares).sum() + (product**2).sum())
    third = float((spread**3 - 3.0 * spread**2 * own - 3.0 * spread * squares).sum()) + 2.0 * cubes
    third += 3.0 * float((weighted * product).sum()) - float(np.trace(product @ product @ product))
    return mean, variance, 8.0 * third + 4.0 * (float((skew**2).sum()) - own_skew)


def _tail(excess: float, variance: float, third: float) -> float:
    """Return the probability of an excess at least so large, for a shifted gamma law with these moments."""
    from scipy.special import gammaincc, ndtr

    if variance <= 1e-12:
        return 1.0
    value, skewness = excess / math.sqrt(variance), third / variance**1.5
    if skewness <= 1e-3:  # hardly different from the normal law, which is cautious where it is negative
        return float(ndtr(-value))
    shape = 4.0 / skewness**2
    return float(gammaincc(shape, max(shape + 2.0 * value / skewness, 0.0)))
