"""Plans for rows in clusters as users meet them; that they keep their promise is simulated in tests/guarantees."""

from typing import Any

import numpy as np
import pytest

from calibrant import rows_needed
from calibrant.certificates import RowsNeeded
from calibrant.certificates.cluster_plans import ClusterLaw
from calibrant.certificates.clusters import enough_clusters
from calibrant.certificates.samples import Law

RNG = np.random.default_rng(23)
LEVELS = [0.1, 0.2, 0.4]
ROUGH: dict[str, Any] = {"y_prob": LEVELS, "method": "hoeffding", "power": 0.5}  # quick


@pytest.mark.parametrize("correlation", [0.0, 0.05, 0.5, 1.0])
def test_simulated_clusters_are_calibrated_and_have_the_correlation_asked_for(correlation):
    law = ClusterLaw(Law(np.array([0.02, 0.5, 0.9]), np.array([0.3, 0.4, 0.3]), 0.0), correlation, 10)
    place = (np.arange(100_000) + 0.5) / 100_000
    chances = law._chances(place[:, None])
    p = law.law.forecast
    assert chances.mean(axis=0) == pytest.approx(p, abs=1e-4)
    assert chances.var(axis=0) == pytest.approx(correlation * p * (1.0 - p), abs=1e-4)
    drawn = law.draw(500, np.random.default_rng(0))
    assert drawn.cluster_count == 500
    weight = drawn.observations.sample_weight
    assert weight is not None
    assert np.bincount(drawn.codes, weights=weight).tolist() == [10.0] * 500


@pytest.mark.usefixtures("few_draws")
def test_a_plan_says_clusters_and_rows():
    plan = rows_needed(0.1, cluster_size=20, intra_cluster_correlation=0.05, **ROUGH)
    assert plan.clusters is not None
    assert plan.rows == 20 * plan.clusters
    assert (plan.cluster_size, plan.intra_cluster_correlation, plan.paper_rows) == (20.0, 0.05, None)
    assert str(plan).startswith(f"About {plan.clusters:,} clusters of 20 rows ({plan.rows:,} rows) certify a Cutoff")
    assert "and outcomes of one cluster have a correlation of 0.05 (hoeffding method)." in str(plan)
    assert RowsNeeded.from_json(plan.to_json()) == plan
    assert plan == rows_needed(0.1, cluster_size=20, intra_cluster_correlation=0.05, **ROUGH)


def test_what_makes_rows_worth_less_takes_more_clusters():
    options: dict[str, Any] = {"y_prob": LEVELS, "power": 0.5}
    plan = rows_needed(0.1, cluster_size=10, intra_cluster_correlation=0.1, **options)
    assert plan.clusters is not None
    for other in (
        rows_needed(0.1, cluster_size=10, intra_cluster_correlation=0.5, **options),
        rows_needed(0.1, cluster_size=10, intra_cluster_correlation=0.1, serial=1, **options),
        rows_needed(0.08, cluster_size=10, intra_cluster_correlation=0.1, **options),
        rows_needed(0.1, cluster_size=10, intra_cluster_correlation=0.1, y_prob=LEVELS, power=0.9),
    ):
        assert other.clusters is not None
        assert other.clusters > plan.clusters


@pytest.mark.usefixtures("few_draws")
def test_however_many_rows_clusters_must_not_be_few():
    plan = rows_needed(0.05, y_prob=[0.01], cluster_size=5000, intra_cluster_correlation=0.0, power=0.5)
    assert plan.clusters is not None
    assert plan.clusters >= enough_clusters(0.05, 0.05)
    twice = rows_needed(0.05, y_prob=[0.01], cluster_size=5000, intra_cluster_correlation=0.0, power=0.5, serial=1)
    assert twice.clusters is not None
    assert twice.clusters >= enough_clusters(0.05, 0.05, 1)


@pytest.mark.usefixtures("few_draws")
def test_more_clusters_than_are_simulated_follow_from_the_root():
    plan = rows_needed(0.01, cluster_size=2, intra_cluster_correlation=0.0, **ROUGH)
    assert plan.clusters is not None
    assert 10_000 < plan.clusters < 80_000


def test_a_pilot_sample_has_sizes_forecasts_and_a_correlation():
    code = np.repeat(np.arange(150), RNG.integers(2, 20, 150))
    p = RNG.uniform(0.1, 0.6, code.size).round(1)
    y = RNG.random(code.size) < np.clip(p + RNG.choice([-0.2, 0.2], 150)[code], 0.0, 1.0)
    shown = rows_needed(0.1, y_prob=p, y_true=y, cluster=code, power=0.5)
    assert shown.intra_cluster_correlation == pytest.approx(0.17, abs=0.07)
    assert shown.cluster_size == pytest.approx(code.size / 150)
    named = rows_needed(0.1, y_prob=p, cluster=code, intra_cluster_correlation=0.0, power=0.5)
    assert shown.clusters is not None
    assert named.clusters is not None
    assert named.clusters < shown.clusters
    once = rows_needed(0.1, y_prob=p, y_true=y, cluster=code, power=0.5, cluster_target="clusters")
    assert "rows), each counting once, certify" in str(once)


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize("options", [{}, {"cluster_target": "clusters"}, {"serial": 1}], ids=str)
def test_neither_names_of_clusters_nor_the_order_of_rows_matter_to_a_plan(options):
    rng = np.random.default_rng(8)
    code = np.repeat(np.arange(40), rng.integers(1, 60, 40))
    p = rng.uniform(0.1, 0.6, code.size).round(1)
    y = rng.random(code.size) < np.clip(p + rng.choice([-0.2, 0.2], 40)[code], 0.0, 1.0)
    names, order = np.array([f"site {each}" for each in rng.permutation(40)]), rng.permutation(code.size)
    asked: dict[str, Any] = {"power": 0.5, **options}
    first = rows_needed(0.15, y_prob=p, y_true=y, cluster=code, **asked)
    second = rows_needed(0.15, y_prob=p[order], y_true=y[order], cluster=names[code][order], **asked)
    assert (second.clusters, second.rows, second.cluster_size) == (first.clusters, first.rows, first.cluster_size)
    assert second.intra_cluster_correlation == pytest.approx(first.intra_cluster_correlation, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cluster_size": 5}, "intra_cluster_correlation is missing: how much outcomes of one cluster go together"),
        ({"intra_cluster_correlation": 0.1}, "intra_cluster_correlation says something of clusters, and none were"),
        ({"y_true": [0, 1, 0]}, "y_true says something of clusters, and none were named; pass cluster_size"),
        ({"serial": 1}, "serial says something of clusters"),
        (
            {"cluster_size": 0, "intra_cluster_correlation": 0.1},
            "cluster_size must be a whole number from 1 to 1e\\+06, got 0",
        ),
        (
            {"cluster_size": 5, "intra_cluster_correlation": 1.5},
            "intra_cluster_correlation must be a number from 0 to 1, got 1.5",
        ),
        (
            {"cluster_size": 5, "cluster": [1, 2, 2], "y_true": [0, 1, 0]},
            "cluster_size was given together with cluster",
        ),
        ({"cluster": [1, 2, 2]}, "pass either y_true= "),
        ({"cluster": [1, 1, 1], "y_true": [0, 1, 0]}, "cluster holds one cluster only"),
        ({"cluster": [1, 2], "y_true": [0, 1, 0]}, "cluster"),
        ({"cluster_size": 5, "intra_cluster_correlation": 0.1, "method": "paper"}, "method='paper' has no limits for"),
        (
            {"cluster_size": 5, "intra_cluster_correlation": 0.1, "measure": "smooth"},
            "planned for measure='cutoff' only",
        ),
        ({"cluster_size": 5, "intra_cluster_correlation": 0.1, "relative_to": "events"}, "relative_to='rows' only"),
        ({"cluster_size": 5, "intra_cluster_correlation": 0.1, "power": 0.999}, "power is 0.999; plans for clusters"),
        (
            {"cluster": [1, 2, 2], "y_true": [0, 1, 0], "sample_weight": [1, 2, 3]},
            "sample_weight was given together with a pilot sample",
        ),
        ({"cluster_size": 5, "intra_cluster_correlation": 0.1, "sample_weight": [1, 2]}, "sample_weight"),
        ({"cluster_size": 5, "intra_cluster_correlation": 0.1, "max_cluster_size": 2}, "max_cluster_size is 2, and a"),
    ],
    ids=str,
)
def test_what_cannot_be_planned_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        rows_needed(0.1, y_prob=LEVELS, **options)


@pytest.mark.usefixtures("few_draws")
def test_weights_say_how_many_rows_have_each_forecast():
    asked: dict[str, Any] = {"cluster_size": 5, "intra_cluster_correlation": 0.1, "method": "hoeffding"}
    counts = [3, 1, 2]
    counted = rows_needed(0.2, y_prob=LEVELS, sample_weight=counts, **asked)
    assert counted.clusters == rows_needed(0.2, y_prob=np.repeat(LEVELS, counts), **asked).clusters


def test_a_pilot_sample_needs_forecasts():
    with pytest.raises(ValueError, match="y_prob is missing: a pilot sample has forecasts"):
        rows_needed(0.1, brier=0.1, cluster=[1, 2], y_true=[0, 1])
