"""Models on rows in clusters: what the clusters are, and whether so few of them can tell any two models apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.certificates.clusters import Clusters, check_clusters, clusters_of, one_row_each, open_clusters
from calibrant.certificates.unit_means import unit_mean_limits
from calibrant.certificates.verdicts import confidence_interval
from calibrant.comparisons.differences import Question, clustered_limits
from calibrant.core.types import IntArray
from calibrant.core.voices import Phrase
from calibrant.rows.checks import Observations, check_codes
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.paired import PairedRows

_ENOUGH = 100
"""So many clusters can tell models apart, if none is much larger than others; of more no extremes are tried."""


def checked_clusters(
    one: Observations, cluster: Any, stated: float | None
) -> tuple[IntArray | None, tuple[Phrase, ...]]:
    """Return the number of each row's cluster, or None with a note where each holds one row: these are independent."""
    codes = check_codes(cluster, "cluster", one.y_prob.size)[0]
    kept = codes if one.sample_weight is None else codes[one.sample_weight > 0.0]
    if stated is None and kept.size > 1 and np.unique(kept).size == kept.size:
        return None, (one_row_each(kept.size),)
    return codes, ()


def clusters_of_scores(rows: PairedRows, question: Question, delta: float) -> Clusters | None:
    """Return what the clusters are by the residuals of the first model; None for independent rows."""
    asked = check_clusters(rows.codes is not None, "rows", question.max_cluster_size, 0)
    if rows.codes is None or asked is None:
        return None
    forecast = next(iter(rows.forecasts.values()))
    held = Observations(rows.outcome, forecast, rows.weight, rows.binary_outcomes)
    limits = open_clusters(asked, ClusteredRows(held, rows.codes))
    size = rows.per_unit(np.ones(rows.rows))
    lower = unit_mean_limits(size, size, 1.0, delta, largest=question.max_cluster_size)[0]
    return clusters_of(asked, limits, limits.table, _least(lower))


def clusters_of_errors(
    found: Clusters, rows: PairedRows, settings: dict[str, Any], question: Question, delta: float
) -> Clusters:
    """Return the facts on clusters with the least that a limit of a difference of Cutoff errors could be.

    That is the one for a model that is right on every row and one that is wrong on every row: of a cluster nothing
    counts then but its size, and a row of that weight stands for it.
    """
    if rows.codes is None or rows.cluster_count > _ENOUGH:
        return found
    size = np.bincount(rows.codes, weights=rows.weight).astype(np.float64, copy=False)
    largest = 1.0 if question.max_cluster_size is None else question.max_cluster_size / float(size.max())
    alone = np.arange(size.size)
    extremes = {
        name: Observations(np.ones(size.size), np.full(size.size, forecast), size / size.max(), True)
        for name, forecast in (("wrong", 0.0), ("right", 1.0))
    }
    wider = {**settings, "cluster": alone, "max_cluster_size": largest}
    bounds = {name: confidence_interval(held, **wider) for name, held in extremes.items()}
    ends = {name: (each.lower, each.upper) for name, each in bounds.items()}
    together = PairedRows.of(extremes, alone)
    lower, _ = clustered_limits(together, "wrong", "right", ends, replace(question, max_cluster_size=largest), delta)
    return replace(found, least_limit=max(found.least_limit, _least(lower)))


def _least(lower: float) -> float:
    """Return where a lower limit of at best so much lies between -1 and 1, seen from above, as a share."""
    return float(np.clip((1.0 - lower) / 2.0, 0.0, 1.0))
