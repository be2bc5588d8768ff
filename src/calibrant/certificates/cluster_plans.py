"""Plans for rows in clusters: how many clusters certify a calibrated forecaster, found by simulating them.

Clusters have rows with forecasts of a law, or those of the clusters of a pilot sample. The chances of a cluster's
outcomes lie above the forecasts p or below them, on average at them, by sqrt(rho p (1 - p)) or as near to that as
chances between 0 and 1 allow: outcomes of two rows with equal forecasts then have the correlation rho.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant.certificates.clusters import ClusterQuestion, check_enough, enough_clusters
from calibrant.certificates.methods.base import CertificateMethod
from calibrant.certificates.overdispersion import overdispersion_of
from calibrant.certificates.samples import APART, STEP, Law, law_of, laws_of
from calibrant.core.errors import InputError
from calibrant.core.types import FloatArray, IntArray
from calibrant.core.voices import Argument, Either, Phrase
from calibrant.rows.checks import Observations, check_codes, check_forecasts, check_number, check_weights
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.promised import as_clustered
from calibrant.rows.tally import Tally

HIGHEST_CLUSTER_POWER = 0.99
"""Beyond this too few of the simulated clusters are left to plan by."""

PLANNED_LEVELS = 32
"""Distinct forecasts in simulated clusters."""

_DRAWS, _MORE_DRAWS, _USUAL_POWER = 200, 1000, 0.95
_MOST_TRIED = 1000  # clusters that are simulated; limits of more fall as the root of their number
_CLOSE = 0.02  # about what the draws leave open
_TRIALS = 6
_USUAL_RANGE = 2.3  # of Brownian motion, in nine of ten cases and a little more
_SEED = 0


@dataclass(frozen=True, eq=False)
class ClusterLaw:
    """How clusters come about.

    Attributes
    ----------
    law : Law
        Distinct forecasts and how often each occurs.
    correlation : float
        Of outcomes of one cluster at equal forecasts.
    size : int
        Rows of each cluster, where there is no pilot sample.
    pilot : array of shape (clusters, forecasts), or None
        How many rows of each cluster of a pilot sample have each forecast.
    """

    law: Law
    correlation: float
    size: int = 0
    pilot: IntArray | None = None

    @property
    def mean_size(self) -> float:
        """Rows of a cluster, on average."""
        return float(self.size) if self.pilot is None else float(self.pilot.sum()) / len(self.pilot)

    @property
    def size_square(self) -> float:
        """The mean square of the rows of a cluster."""
        return float(self.size) ** 2 if self.pilot is None else float((self.pilot.sum(axis=1) ** 2).mean())

    def draw(self, clusters: int, rng: np.random.Generator) -> ClusteredRows:
        """Draw clusters: a row stands for all of a cluster with the same forecast, its weight says how many."""
        forecast = self.law.forecast
        if self.pilot is None:
            rows = rng.multinomial(self.size, self.law.share, size=clusters)
        else:
            rows = self.pilot[rng.integers(len(self.pilot), size=clusters)]
        events = rng.binomial(rows, self._chances(rng.random(clusters)[:, None]))
        code, level = np.nonzero(rows)
        weight = rows[code, level].astype(np.float64)
        apart = forecast + APART * np.arange(forecast.size)  # one listed twice stands for two that hardly differ
        return ClusteredRows(Observations(events[code, level] / weight, apart[level], weight, False), code)

    def _chances(self, place: FloatArray) -> FloatArray:
        """Return the chances of a cluster at each forecast, from a number in [0, 1] that ranks it among all."""
        p, rho = self.law.forecast, self.correlation
        most, least = p / np.maximum(p + rho * (1.0 - p), 1e-300), rho * p / np.maximum(1.0 - p + rho * p, 1e-300)
        high = np.clip(0.5, least, most)  # the share of clusters above
        spread = np.sqrt(rho * p * (1.0 - p))
        above = p + spread * np.sqrt((1.0 - high) / np.maximum(high, 1e-300))
        below = p - spread * np.sqrt(high / np.maximum(1.0 - high, 1e-300))
        chances: FloatArray = np.clip(np.where(place < high, above, below), 0.0, 1.0)
        return chances

    def inside(self, clusters: int) -> float:
        """Return how far the range of a residual curve may reach beyond what joined forecasts show of it."""
        if self.law.joined == 0.0:
            return 0.0
        together = self.size_square / self.mean_size * float((self.law.share**2).sum())
        alike = 1.0 + max(together - 1.0, 0.0) * self.correlation
        return 2.0 * STEP * math.sqrt(clusters * self.mean_size * self.law.joined * alike)


class PlannedClusters(NamedTuple):
    """How many clusters, of so many rows altogether and on average, whose outcomes have this correlation."""

    clusters: int
    rows: int
    size: float
    correlation: float


@dataclass(frozen=True)
class ClusterPlan:
    """What clusters are to certify, by whose limits."""

    method: CertificateMethod
    question: ClusterQuestion
    limit: float
    delta: float
    power: float

    def of(self, asked: ClustersAsked, variance: float) -> PlannedClusters:
        """Return the clusters needed, whichever way they come about."""
        laws = asked.laws(variance)
        clusters = 0
        for law in laws:
            clusters = self.fewest(law, clusters)
        size = laws[0].mean_size
        return PlannedClusters(clusters, math.ceil(clusters * size), size, laws[0].correlation)

    def fewest(self, law: ClusterLaw, enough: int = 0) -> int:
        """Return about the fewest clusters whose limit is at most the one asked for as often as the power says.

        ``enough`` is how many another way to come about needs: no fewer are looked for.
        """
        assumed = self.question.dependence
        fewest = enough_clusters(self.limit, self.delta, assumed.serial, drawn=assumed.max_size is not None)
        least = max(int(fewest), enough)
        most = max(_MOST_TRIED, least)
        clusters = least if enough else min(max(self._guess(law), least), most)
        found, slope = self._reached(law, clusters), 0.5
        for _ in range(_TRIALS - 1):
            after = min(max(_aim(clusters, found / self.limit, slope), least), most)
            if abs(found / self.limit - 1.0) <= _CLOSE or after == clusters:
                break
            before, clusters, found_before = clusters, after, found
            found = self._reached(law, clusters)
            slope = min(max(math.log(found_before / found) / math.log(clusters / before), 0.5), 1.5)
        # Beyond what is simulated limits fall as the root of the number, or faster.
        return max(_aim(clusters, found / self.limit, slope if clusters < most else 0.5), least)

    def _guess(self, law: ClusterLaw) -> int:
        p = law.law.forecast
        variance = float(law.law.share @ (p * (1.0 - p)))
        each = 1.0 + (law.size_square / law.mean_size - 1.0) * law.correlation
        folds = self.question.dependence.folds
        margin = _USUAL_RANGE + math.sqrt(2.0 * folds * math.log(1.0 / self.delta))
        return max(2, math.ceil(margin**2 * variance * each / (law.mean_size * self.limit**2)))

    def _reached(self, law: ClusterLaw, clusters: int) -> float:
        """Return the limit that is not exceeded as often as the power asks for."""
        draws = _DRAWS if self.power <= _USUAL_POWER else _MORE_DRAWS
        if self.question.dependence.max_size is not None:  # whose limits take ten times as long
            draws //= 4
        more = law.inside(clusters) / (clusters * law.mean_size)
        found = [self._limit(law.draw(clusters, np.random.default_rng([_SEED, k]))) for k in range(draws)]
        return min(float(np.quantile(found, self.power)) + more, 1.0)

    def _limit(self, drawn: ClusteredRows) -> float:
        rows = self.question.rows(drawn)
        assert isinstance(rows, ClusteredRows)
        limits = self.question.limits(rows, Tally.from_observations(rows.observations))
        check_enough(self.question, limits)
        return self.method.upper_of_clusters(limits, limits.border_error, self.delta)


def _aim(clusters: int, ratio: float, slope: float) -> int:
    """Return how many clusters bring a limit down by a ratio, if it falls like their number to the power -slope."""
    return math.ceil(clusters * math.pow(ratio, 1.0 / slope))


@dataclass(frozen=True)
class ClustersAsked:
    """What was said of clusters to come: their size and correlation, or a pilot sample of them."""

    size: Any
    correlation: Any
    cluster: Any
    y_true: Any
    y_prob: Any
    sample_weight: Any = None

    @property
    def given(self) -> bool:
        """Whether rows come in clusters."""
        return self.size is not None or self.cluster is not None

    def refuse_rest(self) -> None:
        """Refuse what says something of clusters where there are none."""
        for name, value in (("intra_cluster_correlation", self.correlation), ("y_true", self.y_true)):
            if value is not None:
                raise InputError(
                    Phrase("{name} says something of clusters, and none were named", name=Argument(name)),
                    remedy=Phrase(
                        "pass {size}, rows of each, or {cluster}, a label per forecast",
                        size=Argument("cluster_size"),
                        cluster=Argument("cluster"),
                    ),
                )

    def laws(self, variance: float) -> tuple[ClusterLaw, ...]:
        """Return how clusters come about, in one or two ways of which the harder one counts."""
        if self.cluster is not None:
            return (self._pilot(),)
        size = int(check_number(self.size, "cluster_size", low=1, high=1e6, whole=True))
        if self.correlation is None:
            raise InputError(
                "is missing: how much outcomes of one cluster go together decides how many are needed",
                argument="intra_cluster_correlation",
                remedy=Phrase(
                    "pass it, or a pilot sample: {sample}",
                    sample=Either("y_prob, y_true and cluster", "a FILE, with the column of its clusters as --cluster"),
                ),
            )
        if self.y_true is not None:
            raise _not_together("y_true", "cluster_size")
        rho = check_number(self.correlation, "intra_cluster_correlation", low=0.0, high=1.0)
        if self.y_prob is None:
            return tuple(ClusterLaw(law, rho, size) for law in laws_of(variance, PLANNED_LEVELS))
        forecasts = check_forecasts(self.y_prob)
        weights = check_weights(self.sample_weight, forecasts.size)
        return (ClusterLaw(law_of(forecasts, weights, PLANNED_LEVELS), rho, size),)

    def _pilot(self) -> ClusterLaw:
        if self.size is not None:
            raise _not_together("cluster_size", "cluster")
        if self.sample_weight is not None:
            raise InputError(
                "was given together with a pilot sample, whose clusters are planned for as they are",
                argument="sample_weight",
                remedy="leave it out",
            )
        if self.y_prob is None:
            raise InputError("is missing: a pilot sample has forecasts", argument="y_prob")
        if (self.y_true is None) == (self.correlation is None):
            raise InputError(
                "pass either y_true= (outcomes of the pilot sample) or intra_cluster_correlation= with cluster="
            )
        forecasts = check_forecasts(self.y_prob)
        codes, count = check_codes(self.cluster, "cluster", forecasts.size)
        if count < 2:
            raise InputError(
                "holds one cluster only, and how clusters differ from each other cannot be told from one",
                argument="cluster",
                remedy="pass a label per forecast that tells clusters apart",
            )
        if self.y_true is None:
            rho = check_number(self.correlation, "intra_cluster_correlation", low=0.0, high=1.0)
        else:
            rows = as_clustered(self.y_true, self.y_prob, cluster=self.cluster)
            rho = max(overdispersion_of(rows).correlation, 0.0)
        law = law_of(forecasts, None, PLANNED_LEVELS)
        level = np.searchsorted((law.forecast[1:] + law.forecast[:-1]) / 2.0, forecasts)
        pilot = np.zeros((count, law.forecast.size), dtype=np.int64)
        np.add.at(pilot, (codes, level), 1)
        # Draws go by place: in the order of what clusters hold, their names do not matter.
        return ClusterLaw(law, rho, pilot=pilot[np.lexsort(pilot.T)])


def _not_together(one: str, other: str) -> InputError:
    return InputError(f"was given together with {other}", argument=one, remedy="pass one of them")
