"""Hoeffding's margin: simple and wide, at every number of rows and whatever the outcomes."""

from __future__ import annotations

import math

from calibrant.certificates.cluster_limits import ClusterLimits
from calibrant.certificates.cluster_savings import SavingLimits
from calibrant.certificates.clusters import Clusters
from calibrant.certificates.margins import hoeffding_lower_margin, hoeffding_margin
from calibrant.certificates.methods.base import MarginMethod
from calibrant.certificates.regrets import hoeffding_lower_regret, hoeffding_upper_regret
from calibrant.rows.actions import ActionTable
from calibrant.rows.tally import Totals


class Hoeffding(MarginMethod):
    """Margin sqrt(2 ln(1/delta) / n) above, (4 + sqrt(2 ln(1/delta))) / sqrt(n) or less below."""

    name = "hoeffding"
    covers_regret = True
    sentence = "The Hoeffding method holds at every number of rows; it is simple and wide."

    def margin(self, rows: float, delta: float) -> float:
        """Return Hoeffding's margin, which holds for every class of weights in [-1, 1]."""
        return hoeffding_margin(rows, delta)

    def upper_of_clusters(self, limits: ClusterLimits, estimate: float, delta: float) -> float:
        """Return the estimate plus the margin of sums of clusters."""
        return estimate + limits.hoeffding_margin(delta)

    def least_of_clusters(self, limits: ClusterLimits, delta: float) -> float:
        """Return the margin."""
        return min(limits.hoeffding_margin(delta), 1.0)

    def upper_saving_of_clusters(self, limits: SavingLimits, estimate: float, delta: float) -> float:
        """Return the estimate plus the margin of sums of clusters."""
        return estimate + limits.hoeffding_margin(delta)

    def least_saving_of_clusters(self, limits: SavingLimits, delta: float) -> float:
        """Return the margin."""
        return min(limits.hoeffding_margin(delta), 1.0)

    def enough_clusters(self, limit: float, delta: float, clusters: Clusters, *, saving: bool) -> float:
        """Return how many clusters of equal size have a margin of the limit."""
        spread = 1.0 if saving else 2.0  # of the sum of a cluster, over its size
        found = (clusters.serial + 1) * math.log(1.0 / delta) * spread**2 / 2.0
        return max(2, math.ceil(found / limit**2)) if limit > 0.0 else math.inf

    def upper_regret(self, table: ActionTable, delta: float) -> float:
        """Return the estimate plus the margin."""
        return hoeffding_upper_regret(table, delta)

    def lower_regret(self, table: ActionTable, delta: float) -> float:
        """Return the estimate minus the margin of all relabellings at once."""
        return hoeffding_lower_regret(table, delta)

    def lower_margin(self, table: Totals, delta: float, factor: float) -> float:
        """Return the smaller of two margins that hold for all intervals at once."""
        return hoeffding_lower_margin(table, delta, factor)


METHOD = Hoeffding()
