"""The adaptive method: bets whose rates follow the variance of the residuals, at every number of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from calibrant.certificates.betting import (
    adaptive_bracket,
    adaptive_pairs,
    adaptive_upper,
    adaptive_upper_of,
    adaptive_uppers,
    check_fine,
    mean_limits,
    planned_adaptive,
    split_lower,
)
from calibrant.certificates.cluster_limits import ClusterLimits
from calibrant.certificates.cluster_savings import SavingLimits
from calibrant.certificates.event_shares import planned_shares, upper_share
from calibrant.certificates.joint_levels import delta_of_each
from calibrant.certificates.margins import hoeffding_margin, uniform_lower_margin
from calibrant.certificates.methods.base import CertificateMethod
from calibrant.certificates.samples import Samples
from calibrant.certificates.saving_limits import (
    betting_bracket,
    betting_rates,
    betting_upper,
    planned_betting,
)
from calibrant.core.types import FloatArray, IntArray
from calibrant.measures.judged import WeightedMeasure
from calibrant.measures.results import WorstInterval
from calibrant.rows.refinement import stretch_ends, whole_tally
from calibrant.rows.savings import Score, Thresholds, bet_score
from calibrant.rows.sources import FEW_ROWS, RowSource
from calibrant.rows.tally import Tally, Totals

SPLIT_BELOW_ROWS = FEW_ROWS
"""From this many rows on the lower limit without splitting is within 0.025 of the estimate, and needs no sorting."""


class Adaptive(CertificateMethod):
    """As sharp as the variance of the residuals allows, for the population; fractions and weights too."""

    name = "adaptive"
    pairs_rows = True
    sentence = "The adaptive method holds at every number of rows and is as sharp as the residuals allow."

    def upper(self, source: Tally | RowSource, table: Totals, estimate: float, delta: float) -> float:
        """Return the largest error that bets against every interval leave possible."""
        del estimate
        return adaptive_upper(source, table, delta)

    def uppers(
        self,
        source: Tally | RowSource,
        table: Totals,
        estimate: float,
        delta: float,
        family: int,
        parts: Sequence[int],
    ) -> tuple[float, ...]:
        """Return what the same bets leave possible, the more so the surer one must be."""
        del estimate
        return adaptive_uppers(source, table, delta, family, parts)

    def upper_share(self, source: Tally | RowSource, table: Totals, delta: float) -> float | None:
        """Return the largest share that bets on errors and events at once leave possible.

        For unequal weights, which are fixed beforehand, a quotient of two limits is narrower.
        """
        return upper_share(source, table, delta) if table.unit_weights else None

    def upper_of_clusters(self, limits: ClusterLimits, estimate: float, delta: float) -> float:
        """Return the largest error that bets on whole clusters leave possible."""
        del estimate
        return limits.bets(delta)

    def least_of_clusters(self, limits: ClusterLimits, delta: float) -> float:
        """Return what the fastest bet on these clusters leaves possible, where all is as forecast."""
        return limits.least_limit(delta)

    def upper_saving_of_clusters(self, limits: SavingLimits, estimate: float, delta: float) -> float:
        """Return the largest saving that bets on whole clusters leave possible."""
        return limits.bets(estimate, delta)

    def least_saving_of_clusters(self, limits: SavingLimits, delta: float) -> float:
        """Return what the fastest bet on these clusters leaves possible, where all is as forecast."""
        return limits.least_limit(delta)

    def saving_scores(self, table: Totals, thresholds: Thresholds, delta: float) -> list[Score]:
        """Return how bets grow."""
        return list(map(bet_score, betting_rates(table, thresholds, delta)))

    def upper_saving(
        self, source: Tally | RowSource, table: Totals, thresholds: Thresholds, estimate: float, delta: float
    ) -> float:
        """Return the largest saving that bets against every line leave possible."""
        return betting_upper(source, table, thresholds, estimate, delta)

    def bracket_saving(
        self, table: Totals, bits: int, thresholds: Thresholds, delta: float, low: float, high: float
    ) -> tuple[float, float]:
        """Return two ends of the bets' limit."""
        del low, high
        check_fine(bits)
        return betting_bracket(table, thresholds, delta)

    def upper_of(self, table: Totals, error: float, delta: float) -> float:
        """Return the largest error that a bet against one weight function leaves possible."""
        return adaptive_upper_of(error, table, delta)

    def ends(self, delta: float) -> tuple[Callable[[Totals], IntArray], ...]:
        """Return what says where stretches of bets may begin and end."""
        return (lambda table: stretch_ends(table, adaptive_pairs(table, delta)(table)),)

    def lower_margin(self, table: Totals, delta: float, factor: float) -> float:
        """Return the margin of all intervals at once, with a variance learned from the rows."""
        return uniform_lower_margin(table, delta, factor)

    def bias_lower(self, tally: Tally, delta: float) -> float:
        """Return the better of the limits to both sides."""
        low, high = mean_limits(tally, delta_of_each(delta, 2))
        return max(low, -high)

    def lower(
        self,
        measure: WeightedMeasure,
        source: Tally | RowSource,
        table: Totals,
        estimate: float,
        worst: WorstInterval,
        delta: float,
        seed: int,
    ) -> float:
        """Return a lower limit: by random halves of the rows where they are few, else as other methods do."""
        if table.row_total < SPLIT_BELOW_ROWS:
            tally = whole_tally(source)
            if tally.counted or tally.listed is not None:  # whether rows can be told apart, not what they say
                return split_lower(tally, measure.witness(delta), delta, seed)
        return super().lower(measure, source, table, estimate, worst, delta, seed)

    def bracket(self, table: Totals, bits: int, delta: float, low: float, high: float) -> tuple[float, float]:
        """Return two ends of the bets' limit."""
        del low, high
        return adaptive_bracket(table, bits, delta)

    def planned(self, samples: Samples, delta: float) -> FloatArray:
        """Return the limit of each data set."""
        return planned_adaptive(samples, delta)

    def planned_saving(self, samples: Samples, thresholds: Thresholds, delta: float) -> FloatArray:
        """Return the limit of each data set, at the rates that suit all of them."""
        return planned_betting(samples, thresholds, delta)

    def planned_share(self, samples: Samples, delta: float) -> FloatArray | None:
        """Return the largest share of each data set."""
        return planned_shares(samples, delta)

    def usual_margin(self, variance: float, delta: float) -> float:
        """Return Hoeffding's margin, for residuals of this variance."""
        return math.sqrt(variance) * hoeffding_margin(1.0, delta)


METHOD = Adaptive()
