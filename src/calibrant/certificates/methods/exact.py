"""The exact method: binomial limits for these very forecasts, or a bet where that is narrower."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.certificates.betting import given_margin, planned_given
from calibrant.certificates.binomial_limits import BET_BELOW, binomial_margin, exact_upper
from calibrant.certificates.cluster_limits import ClusterLimits
from calibrant.certificates.margins import range_margin
from calibrant.certificates.methods.base import CertificateMethod
from calibrant.certificates.methods.normal import with_spread
from calibrant.certificates.samples import Samples
from calibrant.core.laws import normal_quantile
from calibrant.core.types import FloatArray, IntArray
from calibrant.rows.refinement import whole_tally
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally, Totals
from calibrant.rows.weights import effective_rows

_NODES = 65
_FEW_LEVELS = 4  # up to so many distinct forecasts every interval is looked at


class Exact(CertificateMethod):
    """Limits that hold given the forecasts: for 0/1 outcomes of unit weight, and the Cutoff error only."""

    name = "exact"
    sentence = "The exact method uses binomial limits; it speaks of these very forecasts, as if issued once more."
    target = "these forecasts"
    measures = ("cutoff",)
    least_level = 0.75
    covers_weights = False
    covers_fractions = False
    from_cells = False

    _drawn = "given their forecasts the outcomes are independent"
    _unseen = "forecaster, limit, method and level were fixed without looking at these outcomes"

    def upper(self, source: Tally | RowSource, table: Totals, estimate: float, delta: float) -> float:
        """Return the binomial limit, or that of a bet."""
        del table, estimate
        return exact_upper(whole_tally(source), delta)

    def upper_of_clusters(self, limits: ClusterLimits, estimate: float, delta: float) -> float:
        """Return what bets on whole clusters leave possible, given all forecasts: no binomial limit holds for them."""
        del estimate
        return limits.bets(delta, given=True)

    def least_of_clusters(self, limits: ClusterLimits, delta: float) -> float:
        """Return what the fastest bet on these clusters leaves possible, where all is as forecast."""
        return limits.least_limit(delta, given=True)

    def lower_margin(self, table: Totals, delta: float, factor: float) -> float:
        """Return the margin of a martingale's range, which is for the Cutoff error alone."""
        del factor
        return range_margin(effective_rows(table), delta)

    def planned(self, samples: Samples, delta: float) -> FloatArray:
        """Return about the limit of each data set: where there are many forecasts, the binomial one has a stand-in."""
        forecast, size = samples.forecast, samples.size
        expected = np.clip(np.rint(samples.rows @ forecast), 0, size).astype(np.int64)
        usual = np.maximum(_margins(expected, size, delta), _margins(size - expected, size, delta))
        prefers_bet = given_margin(forecast, samples.rows, delta) < BET_BELOW * usual
        limits = np.empty(len(samples.rows))
        for chosen, find in ((prefers_bet, planned_given), (~prefers_bet, _binomial_limits)):
            if chosen.any():
                limits[chosen] = find(replace(samples, rows=samples.rows[chosen], events=samples.events[chosen]), delta)
        return limits

    def usual_margin(self, variance: float, delta: float) -> float:
        """Return z standard deviations."""
        return math.sqrt(variance) * normal_quantile(delta)


METHOD = Exact()


def _binomial_limits(samples: Samples, delta: float) -> FloatArray:
    largest = _binomial_largest if samples.forecast.size <= _FEW_LEVELS else _binomial_bounds
    limits: FloatArray = (largest(samples, delta) + samples.inside) / samples.size
    return limits


def _binomial_largest(samples: Samples, delta: float) -> FloatArray:
    """Return the largest residual sum plus binomial margin over all intervals."""
    residual, events, rows = (_prefix(column) for column in (samples.residual, samples.events, samples.rows))
    largest = np.zeros(len(rows))
    for begin, end in combinations(range(rows.shape[1]), 2):
        gain = residual[:, end] - residual[:, begin]
        occurred, size = (column[:, end] - column[:, begin] for column in (events, rows))
        largest = np.maximum(largest, gain + _margins(occurred, size, delta))
        largest = np.maximum(largest, -gain + _margins(size - occurred, size, delta))
    return largest


def _prefix(columns: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.cumsum(np.pad(columns, ((0, 0), (1, 0))), axis=1)


def _binomial_bounds(samples: Samples, delta: float) -> FloatArray:
    """Return the same with a close stand-in for the binomial margin of each interval.

    That margin is about z sqrt(k l / (k + l)) for k events and l other rows, plus what it is more on all rows. And
    k l / (k + l) <= a^2 k + (1 - a)^2 l for every a, with equality on all rows for their share a of non-events.
    """
    size = samples.size
    residual, events = samples.residual, samples.events.sum(axis=1)
    share = (size - events[:, None]) / size
    square = np.square(share) * samples.events + np.square(1.0 - share) * (samples.rows - samples.events)
    quantile = normal_quantile(delta)
    spread = quantile * np.sqrt(events * ((size - events) / size))
    bounds: FloatArray = np.maximum(
        *(
            with_spread(sign * residual, square, quantile) + _margins(count, size, delta) - spread
            for sign, count in ((1.0, events), (-1.0, size - events))
        )
    ).min(axis=0)
    return bounds


def _margins(events: IntArray, size: int | IntArray, delta: float) -> FloatArray:
    """Return the binomial margin for each number of events among so many rows."""
    others = size - events
    low, high = int(events.min()), int(events.max())
    if isinstance(size, int) and high - low > _NODES:  # so many events that the margin is straight between nodes
        nodes = np.linspace(low, high, _NODES).astype(np.int64)
        return np.interp(events, nodes, binomial_margin(nodes, size - nodes, delta))
    _, first, place = np.unique(events + 1j * others, return_index=True, return_inverse=True)  # few pairs are distinct
    margins: FloatArray = binomial_margin(events[first], others[first], delta)[place]
    return margins
