"""Limits of what a line can save hold as often as they say for rows in clusters, where limits for single rows do not.

Rows of a cluster share a shock: the event rate of a cluster is drawn around what each forecast has. The savings of the
populations are known. Misses are counted over seeded runs.
"""

import itertools
import zlib

import numpy as np
import pytest
from scipy.stats import binom
from simulated import allowed, replicates, runs_needed

from calibrant.certificates.cluster_limits import ClusterLimits, Dependence
from calibrant.certificates.cluster_savings import SavingLimits
from calibrant.certificates.saving_limits import betting_upper
from calibrant.measures.savings import largest_saving, saving_of
from calibrant.rows.checks import check_observations
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.intake import as_tally
from calibrant.rows.refinement import whole_tally
from calibrant.rows.savings import EVERY_THRESHOLD, SAVING, Thresholds, split_at_savings

RUNS = replicates(50)
FORECASTS = {"one forecast": np.array([0.3]), "several": np.array([0.1, 0.2, 0.3, 0.5, 0.7])}
SHIFT = 0.1
ASKED = {"all": EVERY_THRESHOLD, "one": Thresholds(0.35, 0.35)}


def sizes_of(kind, clusters):
    """Return sizes of clusters that are fixed: equal ones, or a few large ones among many small."""
    return np.full(clusters, 20) if kind == "equal" else np.maximum((100 / np.arange(1, clusters + 1)).astype(int), 3)


def drawn(rng, forecasts, sizes, correlation):
    cluster = np.repeat(np.arange(sizes.size), sizes)
    p = rng.choice(forecasts, cluster.size)
    rate = p + SHIFT
    if correlation == 0.0:
        return (rng.random(cluster.size) < rate) * 1, p, cluster
    # One uniform number per cluster, another per row: which of the two a row follows is drawn.
    shared = rng.random(cluster.size) < np.sqrt(correlation)
    uniform = np.where(shared, rng.random(sizes.size)[cluster], rng.random(cluster.size))
    return (uniform < rate) * 1, p, cluster


def limits_of(y, p, cluster, thresholds):
    source = ClusteredRows.of(check_observations(y, p), cluster)
    table = split_at_savings(source, thresholds, lambda _: [SAVING])
    saving = saving_of(table, thresholds).saving
    return SavingLimits(ClusterLimits(source, table, Dependence()), thresholds), saving


@pytest.mark.parametrize("correlation", [0.0, 0.1, 0.5])
@pytest.mark.parametrize(("kind", "clusters"), [("equal", 10), ("equal", 40), ("uneven", 40)])
def test_limits_cover(kind, clusters, correlation):
    most = allowed(RUNS, 0.05)
    sizes = sizes_of(kind, clusters)
    for name, forecasts in FORECASTS.items():
        rng = np.random.default_rng([zlib.crc32(f"{name} {kind}".encode()), clusters, int(100 * correlation)])
        law = as_tally(forecasts + SHIFT, forecasts)
        truths = {asked: largest_saving(law, thresholds).saving for asked, thresholds in ASKED.items()}
        missed = dict.fromkeys(itertools.product(ASKED, ("upper", "lower")), 0)
        missed_by_rows = 0
        guarded = correlation == 0.5 and clusters > 10 and forecasts.size == 1
        for _ in range(RUNS) if guarded else runs_needed(missed, RUNS, most):
            y, p, cluster = drawn(rng, forecasts, sizes, correlation)
            for asked, thresholds in ASKED.items():
                limits, saving = limits_of(y, p, cluster, thresholds)
                missed[asked, "upper"] += limits.bets(saving, 0.05) < truths[asked]
                missed[asked, "lower"] += limits.lower(saving, 0.05) > truths[asked]
                if guarded and asked == "all":
                    tally = whole_tally(limits.limits.source)
                    missed_by_rows += betting_upper(tally, tally, thresholds, saving, 0.05) < truths[asked]
        for asked in ASKED:
            assert missed[asked, "upper"] <= most, (name, asked, missed)
            assert missed[asked, "lower"] <= most, (name, asked, missed)
        if guarded:  # or the simulation would show nothing
            assert missed_by_rows > binom.isf(0.01, RUNS, 0.05)
