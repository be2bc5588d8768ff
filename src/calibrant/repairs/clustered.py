"""Guarantees of recalibrated forecasters for rows in clusters: layers of rows that are independent of each other.

Take the first row of each cluster, then the second of each that has one, and so on: layer k holds G_k rows, one of each
cluster with at least k, and these are independent. On every interval of forecasts at once the outcomes of one layer
stray from their chances by R_k at most, with P(R_k >= u sqrt(G_k)) <= 4 exp(-2 u^2), and those of all rows by the sum
of the R_k, whatever layers have to do with each other. The proof is in docs/theory/repairs.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.certificates.clusters import Clusters, check_clusters
from calibrant.core.errors import InputError
from calibrant.core.types import IntArray
from calibrant.rows.checks import label_places
from calibrant.rows.labels import check_order

TO_CERTIFY = (
    "fit on half of the clusters and certify the recalibrated forecasts on the others, as in "
    "certify(y_true, y_prob, max_error=..., cluster=...)"
)


@dataclass(frozen=True, eq=False)
class Layers:
    """Rows in clusters, as layers of rows that are independent of each other.

    Attributes
    ----------
    sizes : array of int
        Rows of each cluster, in the order of their labels.
    serial : int
        How many places apart in that order clusters may depend on each other.
    """

    sizes: IntArray
    serial: int = 0

    @classmethod
    def of(cls, cluster: Any, serial: Any, rows: int) -> Layers:
        """Check a label for each row that a map was fitted to."""
        question = check_clusters(True, "rows", None, serial)
        assert question is not None
        labels, codes = label_places(cluster, "cluster", rows)
        if question.dependence.serial and labels.dtype.kind in "OU":
            check_order(labels.tolist(), "cluster")
        if labels.size < 2:
            raise InputError(
                "holds one cluster only, and nothing can be said of others from one",
                argument="cluster",
                remedy="pass a label per row that tells clusters apart, or leave it out if the rows are independent",
            )
        return cls(np.bincount(codes), question.dependence.serial)

    def margin(self, delta: float) -> float:
        """Return how far all rows stray on any interval: (sum_k sqrt(G_k) / n) sqrt(ln(4 min(K, e) / delta) / 2).

        K is the number of layers; those of so few rows that they cannot stray as far count with all they have. Where
        neighbours depend on each other, clusters so many places apart that they do not have layers of their own.
        """
        found = self._layers()
        many = found[found > math.log(4.0 * math.e / delta) / 2.0]
        few = float(found.sum() - many.sum())
        exponent = math.log(4.0 * min(max(many.size, 1.0), math.e) / delta)
        return (few + float(np.sqrt(many).sum()) * math.sqrt(exponent / 2.0)) / self.rows

    def mean_margin(self, delta: float) -> float:
        """Return how far the mean outcome strays: sums of clusters lie between 0 and their sizes."""
        exponent = (self.serial + 1) * math.log(2.0 / delta)
        return math.sqrt(exponent * float((self.sizes.astype(np.float64) ** 2).sum()) / 2.0) / self.rows

    def facts(self, margin: float) -> Clusters:
        """Return what the clusters are, and what their rows are worth if those of one are all alike."""
        worth = (self.rows / float(np.sqrt(self._layers()).sum())) ** 2
        return Clusters(
            count=self.sizes.size,
            largest_share=float(self.sizes.max()) / self.rows,
            deff=self.rows / worth,
            n_eff=worth,
            target="rows",
            serial=self.serial,
            least_limit=min(margin, 1.0),
        )

    @property
    def rows(self) -> int:
        """Rows of all clusters."""
        return int(self.sizes.sum())

    def _layers(self) -> IntArray:
        """Return how many rows each layer has."""
        found = []
        for first in range(min(self.serial + 1, self.sizes.size)):
            sizes = self.sizes[first :: self.serial + 1]
            found.append(sizes.size - np.cumsum(np.bincount(sizes))[:-1])  # clusters with more than 0, 1, 2, ... rows
        return np.concatenate(found)
