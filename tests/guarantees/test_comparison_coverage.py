"""Limits of differences of two models on the same rows hold as often as they say.

The errors and scores of the laws are known. Misses are counted over seeded runs, as in test_certificate_coverage.py.
"""

import zlib
from collections import Counter
from typing import Any

import numpy as np
import pytest
from paired_laws import CHANCE, LAWS, WORSE
from simulated import allowed, runs_needed

from calibrant import compare_models
from calibrant.certificates import pair_clusters, pair_savings, pairs
from calibrant.certificates.scores import scores_of
from calibrant.rows.checks import Observations
from calibrant.rows.paired import PairedRows
from calibrant.rows.savings import EVERY_THRESHOLD

DELTA = 0.2


def seeded(*key):
    return np.random.default_rng([zlib.crc32(str(part).encode()) for part in key])


def paired(y, forecasts, cluster=None):
    return PairedRows.of({name: Observations(y * 1.0, each, None, True) for name, each in forecasts.items()}, cluster)


def too_many(missed: Counter[Any], count: int, delta: float = DELTA) -> dict[Any, int]:
    return {key: times for key, times in missed.items() if times > allowed(count, delta)}


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize(("rows", "count", "many"), [(80, 40, False), (1000, 30, False), (1000, 20, True)])
def test_differences_of_cutoff_errors(law, rows, count, many, monkeypatch):
    if many:
        monkeypatch.setattr(pairs, "IN_ORDER_BELOW", 0)
    rng = seeded(law, rows, many)
    missed: Counter[Any] = Counter()
    for seed in runs_needed(missed, count, allowed(count, DELTA)):
        y, forecasts, _ = law.draw(rng, rows)
        found = pairs.cutoff_limits(paired(y, forecasts), "first", "second", seed, DELTA)
        missed["above"] += found.upper < law.cutoff - 1e-12
        missed["below"] += found.lower > law.cutoff + 1e-12
    assert not too_many(missed, count)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_differences_of_risk_gaps(law):
    rng = seeded(law, "gaps")
    missed: Counter[Any] = Counter()
    for seed in runs_needed(missed, 15, allowed(15, DELTA)):
        y, forecasts, _ = law.draw(rng, 400)
        found = pair_savings.saving_limits(paired(y, forecasts), "first", "second", EVERY_THRESHOLD, seed, DELTA)
        missed["above"] += found[1] < law.risk_gap - 1e-12
        missed["below"] += found[0] > law.risk_gap + 1e-12
    assert not too_many(missed, 15)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("rows", [30, 500])
def test_differences_of_scores(law, rows):
    rng = seeded(law, rows, "scores")
    missed: Counter[Any] = Counter()
    for _ in runs_needed(missed, 200, allowed(200, DELTA)):
        y, forecasts, place = law.draw(rng, rows)
        together = paired(y, forecasts)
        inside = all(0.0 < each.min() <= each.max() < 1.0 for each in forecasts.values())
        truths = {("brier", None): law.brier(place), ("decision_risk", 0.4): law.decision_risk(0.4)}
        truths |= {("log", None): law.log(place)} if inside else {}
        truths |= {("net_benefit", 0.4): -law.decision_risk(0.4) / 0.6}
        for (name, threshold), truth in truths.items():
            (score,) = scores_of(name, () if threshold is None else (threshold,))
            limits = score.difference(together, "first", "second").limits(together, DELTA)
            missed[name, "above"] += limits.upper < truth - 1e-12
            missed[name, "below"] += limits.lower > truth + 1e-12
    assert not too_many(missed, 200)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_comparisons_with_every_default_are_seldom_wrong(law):
    rng, count = seeded(law, "defaults"), 60
    missed: Counter[Any] = Counter()
    for _ in runs_needed(missed, count, allowed(count, 0.05)):
        y, forecasts, _ = law.draw(rng, 200)
        (found,) = compare_models(y, forecasts).differences
        missed["a limit"] += not found.lower - 1e-12 <= law.cutoff <= found.upper + 1e-12
    assert not too_many(missed, count, 0.05)


def test_a_worse_model_is_found_out():
    rng = seeded("power")
    shown = 0
    for seed in range(30):
        y, forecasts, _ = WORSE.draw(rng, 5000)
        shown += pairs.cutoff_limits(paired(y, forecasts), "first", "second", seed, 0.025).lower > 0.0
    assert shown >= 27


def in_clusters(rng, clusters, size, spread):
    """Return rows of two models that are as good as each other, where clusters share a shock."""
    cluster = np.repeat(np.arange(clusters), size)
    chance = CHANCE[rng.integers(0, CHANCE.size, cluster.size)]
    shock = spread * rng.choice([-1.0, 1.0], clusters)[cluster]
    y = rng.random(cluster.size) < np.clip(0.3 + 0.4 * chance + shock, 0.0, 1.0)
    forecast = 0.3 + 0.4 * chance
    return y, {"first": np.clip(forecast + 0.1, 0, 1), "second": np.clip(forecast - 0.1, 0, 1)}, cluster


def test_rows_of_clusters_taken_for_independent_ones_mislead():
    rng = seeded("clusters")
    missed: Counter[Any] = Counter()
    for seed in range(40):
        y, forecasts, cluster = in_clusters(rng, 24, 200, 0.25)
        (score,) = scores_of("brier", ())
        for name, rows in (("rows", paired(y, forecasts)), ("clusters", paired(y, forecasts, cluster))):
            limits = score.difference(rows, "first", "second").limits(rows, 0.05)
            missed[name] += not limits.lower <= 0.0 <= limits.upper
        lower, upper, *_ = pairs.cutoff_limits(paired(y, forecasts), "first", "second", seed, 0.05)
        missed["rows, cutoff"] += not lower <= 0.0 <= upper
    assert set(too_many(missed, 40, 0.1)) == {"rows", "rows, cutoff"}  # 29 of 40 each, and no cluster


@pytest.mark.parametrize(("clusters", "size"), [(24, 10), (120, 4)])
def test_differences_of_cutoff_errors_of_clusters(clusters, size):
    rng = seeded("clusters, cutoff", clusters)
    missed: Counter[Any] = Counter()
    for seed in runs_needed(missed, 8, allowed(8, 2 * DELTA)):
        y, forecasts, cluster = in_clusters(rng, clusters, size, 0.25)
        rows = paired(y, forecasts, cluster)
        lower, upper = pair_clusters.clustered_cutoff_limits(rows, "first", "second", seed, DELTA, None)
        missed["either"] += not lower <= 0.0 <= upper
    assert missed["either"] <= allowed(8, 2 * DELTA)
