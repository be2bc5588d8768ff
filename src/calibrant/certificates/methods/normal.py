"""The large-sample method: right for many rows only, and flagged where there are too few."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from calibrant.certificates.betting import check_fine
from calibrant.certificates.cluster_limits import ClusterLimits
from calibrant.certificates.cluster_savings import SavingLimits
from calibrant.certificates.methods.base import CertificateMethod
from calibrant.certificates.samples import Samples, largest_sums
from calibrant.certificates.saving_limits import (
    large_sample_bracket,
    large_sample_rates,
    large_sample_upper,
)
from calibrant.certificates.stretches import Pairs, bracketed, largest_stretches, square_scores
from calibrant.core.laws import brownian_range, normal_quantile
from calibrant.core.types import FloatArray, IntArray
from calibrant.core.voices import Option, Phrase
from calibrant.measures.results import WorstInterval
from calibrant.rows.refinement import stretch_ends
from calibrant.rows.savings import Score, Thresholds, square_score
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally, Totals

FEW_SQUARES = 50.0
"""Large-sample limits are flagged where the squared residuals of the worst interval add up to less than this.

So are those of clusters whose spread rests on fewer of them.
"""

_NORMAL_STEPS = 10


class Normal(CertificateMethod):
    """The largest mean over intervals plus z standard errors above, a quantile of Brownian motion's range below."""

    name = "normal"
    sentence = "The normal method is a large-sample one: right for many rows only."
    finite_sample = False

    _besides = ("there are enough rows for the central limit theorem",)

    def upper(self, source: Tally | RowSource, table: Totals, estimate: float, delta: float) -> float:
        """Return the largest limit of an interval."""
        del estimate
        return normal_upper(source, table, delta)

    def upper_of_clusters(self, limits: ClusterLimits, estimate: float, delta: float) -> float:
        """Return the largest limit of an interval, with the spread between clusters."""
        del estimate
        return limits.large_sample(normal_quantile(delta))

    def lower_of_clusters(self, limits: ClusterLimits, estimate: float, delta: float, seed: int) -> float:
        """Return the estimate minus what clusters of random sign show with probability delta."""
        return estimate - limits.noise_quantile(delta, seed)

    def upper_saving_of_clusters(self, limits: SavingLimits, estimate: float, delta: float) -> float:
        """Return the largest limit of a line, with the spread between clusters."""
        del estimate
        return limits.large_sample(normal_quantile(delta))

    def cluster_notes(self, limits: ClusterLimits) -> tuple[str, ...]:
        """Return a caution where the spread rests on few clusters."""
        resting = limits.participation()
        if resting >= FEW_SQUARES:
            return ()
        note = Phrase(
            "the spread between clusters rests on about {resting:.0f} of them, below {few:g}: too few for a "
            "large-sample limit, whose real confidence may be lower than stated; use {adaptive}",
            code="few_squares",
            resting=resting,
            few=FEW_SQUARES,
            adaptive=Option("method", "adaptive"),
        )
        return (note,)

    def saving_scores(self, table: Totals, thresholds: Thresholds, delta: float) -> list[Score]:
        """Return the saving plus a share of its square."""
        return [square_score(large_sample_rates(table, thresholds, normal_quantile(delta))[0] / 2.0)]

    def upper_saving(
        self, source: Tally | RowSource, table: Totals, thresholds: Thresholds, estimate: float, delta: float
    ) -> float:
        """Return the largest limit of a line."""
        return large_sample_upper(source, table, thresholds, estimate, normal_quantile(delta))

    def bracket_saving(
        self, table: Totals, bits: int, thresholds: Thresholds, delta: float, low: float, high: float
    ) -> tuple[float, float]:
        """Return two ends of the largest limit of a line."""
        del low, high
        check_fine(bits)
        return large_sample_bracket(table, thresholds, normal_quantile(delta))

    def mean_margin(self, table: Totals, delta: float) -> float:
        """Return z standard errors."""
        return normal_margin(table, delta)

    def ends(self, delta: float) -> tuple[Callable[[Totals], IntArray], ...]:
        """Return what says where intervals with the largest limits may begin and end."""
        return (lambda table: stretch_ends(table, _normal_pairs(table, delta)(table)),)

    def lower_margin(self, table: Totals, delta: float, factor: float) -> float:
        """Return the margin of all intervals at once."""
        return factor * normal_lower_margin(table, delta)

    def bracket(self, table: Totals, bits: int, delta: float, low: float, high: float) -> tuple[float, float]:
        """Return two ends of the largest limit of an interval."""
        del bits, low, high
        ends = bracketed(table, _normal_pairs(table, delta))
        least, most = (_normal_limit(table, delta, ends[:, side]) if ends.size else 0.0 for side in (0, 1))
        return least, most

    def planned(self, samples: Samples, delta: float) -> FloatArray:
        """Return the limit of each data set."""
        residual, square = samples.residual, samples.residual_square
        largest = [with_spread(sign * residual, square, normal_quantile(delta)) for sign in (1.0, -1.0)]
        limits: FloatArray = (np.maximum(*largest).min(axis=0) + samples.inside) / samples.size
        return limits

    def usual_margin(self, variance: float, delta: float) -> float:
        """Return z standard deviations."""
        return math.sqrt(variance) * normal_quantile(delta)

    def notes(self, table: Totals, worst: WorstInterval) -> tuple[str, ...]:
        """Return a caution where the worst interval has few squared residuals."""
        inside = (table.low >= worst.low) & (table.high <= worst.high)
        squares = float(table.weight_square_residual_square[inside].sum()) / table.weight_max**2
        return _few_squares(squares, "of the worst interval", " or 'exact'")

    def saving_notes(self, table: Totals, thresholds: Thresholds, delta: float) -> tuple[str, ...]:
        """Return a caution where lines that matter are few squared residuals apart: the rate is z over their root."""
        quantile = normal_quantile(delta)
        rate, _ = large_sample_rates(table, thresholds, quantile)
        return _few_squares((quantile / rate) ** 2, "between the lines that matter", "")


METHOD = Normal()


def _few_squares(squares: float, where: str, other: str) -> tuple[str, ...]:
    if squares >= FEW_SQUARES:
        return ()
    note = Phrase(
        "the squared residuals {where} add up to {squares:.1f}, below {few:g}: too few for a large-sample limit, whose "
        "real confidence may be lower than stated; use {adaptive}{other}",
        code="few_squares",
        where=where,
        squares=squares,
        few=FEW_SQUARES,
        adaptive=Option("method", "adaptive"),
        other=other,
    )
    return (note,)


def normal_upper(source: Tally | RowSource, table: Totals, delta: float) -> float:
    """Return the large-sample upper limit of the Cutoff error: max over intervals of |mean| + z standard errors.

    The square root of the variance is bounded by lines, sqrt(v) <= v / (2 l) + l / 2, and for each l the maximum over
    intervals is one pass. The limit is the smallest over ten values of l: never below that maximum, and on ordinary
    data a few percent of the margin above it at most.
    """
    return _normal_limit(table, delta, largest_stretches(source, _normal_pairs(table, delta)))


def _normal_limit(table: Totals, delta: float, stretches: FloatArray) -> float:
    """Return the large-sample limit from the largest stretches of its scores."""
    lengths = _normal_lengths(table)
    if lengths[0] == 0.0:
        return 0.0
    return float((stretches + normal_quantile(delta) * lengths / 2.0).min()) / table.weight_total


def _normal_lengths(table: Totals) -> FloatArray:
    return normal_lengths(table.weight_square_residual_square.sum())


def normal_lengths(square_total: FloatArray) -> FloatArray:
    """Return the values l for which sqrt(v) <= v / (2 l) + l / 2 is used, where squares add up to the given total."""
    return np.multiply.outer(2.0 ** (-np.arange(_NORMAL_STEPS) / 3.0), np.sqrt(square_total))


def _normal_pairs(table: Totals, delta: float) -> Pairs:
    lengths = _normal_lengths(table)
    quantile = normal_quantile(delta)
    return square_scores((quantile / (2.0 * lengths)).tolist() if lengths[0] > 0.0 else [])


def normal_margin(table: Totals, delta: float) -> float:
    """Return z standard errors of a mean over all rows: the large-sample upper margin of any weighted error."""
    return normal_quantile(delta) * _standard_error(table)


def normal_lower_margin(table: Totals, delta: float) -> float:
    """Return the large-sample margin below the Cutoff error: a quantile of the range of Brownian motion."""
    return _range_quantile(delta) * _standard_error(table)


@lru_cache(maxsize=64)
def _range_quantile(delta: float) -> float:
    return float(brownian_range.isf(delta))


def _standard_error(table: Totals) -> float:
    return math.sqrt(float(table.weight_square_residual_square.sum())) / table.weight_total


def with_spread(residual: FloatArray, square: FloatArray, quantile: float) -> FloatArray:
    """Return bounds of the largest sum of residuals plus quantile x sqrt(sum of squares) over intervals: one a line.

    As in `normal_upper`: the square root is bounded by lines, and every line gives a bound.
    """
    lengths = normal_lengths(np.maximum(square.sum(axis=1), 1e-300))  # no squares, no residuals, no stretch
    return np.array(
        [
            largest_sums(residual + quantile / (2.0 * length[:, None]) * square) + quantile * length / 2.0
            for length in lengths
        ]
    )
