"""Recalibration of rows in clusters: what is guaranteed, what is refused, and comparisons by whole clusters."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from recalibration_cases import P, Y

from calibrant import (
    GuardedRecalibrator,
    IsotonicRecalibrator,
    PlattRecalibrator,
    Tally,
    compare_recalibrators,
    confidence_interval,
)
from calibrant.certificates.margins import range_margin
from calibrant.repairs import ConstantRecalibrator
from calibrant.repairs.clustered import Layers

CLUSTERS = np.arange(P.size) % (P.size // 4)
THESE: Any = "these forecasts"
RNG = np.random.default_rng(0)
ROWS = 1200
FORECAST = RNG.random(ROWS)
CLUSTER = np.repeat(np.arange(120), 10)
LEVEL = RNG.normal(0.0, 0.15, 120)[CLUSTER]
OUTCOME = (RNG.random(ROWS) < np.clip(FORECAST**2 + LEVEL, 0.0, 1.0)).astype(int)
NAMED = np.array([f"site {(11 * cluster) % 120}" for cluster in CLUSTER])
MOVED = RNG.permutation(ROWS)
CANDIDATES = {"platt": PlattRecalibrator(), "isotonic": IsotonicRecalibrator(ends="inside")}


def compared(*rows: Any, **asked: Any) -> Any:
    """The comparison that `compare_recalibrators` makes."""
    return compare_recalibrators(*rows, **asked)


# --- Guarantees -------------------------------------------------------------------------------------------------------


def test_the_margin_is_that_of_layers():
    sizes = np.array([1, 4, 4, 9])
    layers = [4, 3, 3, 3, 1, 1, 1, 1, 1]
    exponent = math.log(4 * math.e / 0.05) / 2
    expected = (5 * 1 + (2 + 3 * math.sqrt(3)) * math.sqrt(exponent)) / 18
    assert sum(layers) == 18
    assert Layers(sizes).margin(0.05) == pytest.approx(expected, rel=1e-12)
    equal = Layers(np.full(100, 7)).margin(0.05)
    assert equal * 10 == pytest.approx(1.6404, abs=1e-4)
    assert Layers(np.full(100, 2)).margin(0.05) == pytest.approx(math.sqrt(math.log(8 / 0.05) / 200), rel=1e-12)


@pytest.mark.parametrize("measure", ["cutoff", "risk_gap"])
@pytest.mark.parametrize("kind", [IsotonicRecalibrator(), PlattRecalibrator(), GuardedRecalibrator()])
def test_the_guarantee_is_the_error_plus_the_margin(kind, measure):
    fitted = kind.fit(P, Y)
    found = fitted.guarantee(0.9, measure=measure, target=THESE, cluster=CLUSTERS)
    margin = Layers(np.bincount(CLUSTERS)).margin(1 - 0.9)
    assert found.margin == margin > range_margin(P.size, 1 - 0.9)
    assert found.upper == pytest.approx(found.error + margin, rel=1e-12)
    assert found.clusters.count == P.size // 4
    assert found.clusters.n_eff == pytest.approx(P.size / found.clusters.deff)
    assert found.clusters.deff == pytest.approx(4.0, rel=0.02)
    assert type(found).from_dict(found.to_dict()) == found
    assert found.rows == P.size


def test_the_constant_and_what_was_known_in_advance():
    constant = ConstantRecalibrator().fit(P, Y).guarantee(target=THESE, cluster=CLUSTERS)
    sizes = np.bincount(CLUSTERS)
    expected = math.sqrt(math.log(2 / 0.05) * (sizes**2).sum() / 2) / P.size
    assert constant.upper == constant.in_advance == pytest.approx(expected, rel=1e-9)
    isotonic = IsotonicRecalibrator().fit(P, Y).guarantee(target=THESE, cluster=CLUSTERS)
    assert isotonic.upper == isotonic.in_advance
    guarded: Any = GuardedRecalibrator().fit(P, Y).guarantee(target=THESE, cluster=CLUSTERS)
    assert guarded.in_advance > isotonic.upper
    assert PlattRecalibrator().fit(P, Y).guarantee(target=THESE, cluster=CLUSTERS).in_advance is None


def test_only_sizes_count_not_names_or_order_unless_neighbours_depend():
    fitted = IsotonicRecalibrator().fit(FORECAST, OUTCOME)
    expected = fitted.guarantee(target=THESE, cluster=CLUSTER)
    assert fitted.guarantee(target=THESE, cluster=NAMED[MOVED]) == expected
    counts = Tally.from_arrays(OUTCOME, FORECAST)
    assert IsotonicRecalibrator().fit(counts).guarantee(target=THESE, cluster=CLUSTER).upper == expected.upper
    neighbours: Any = fitted.guarantee(target=THESE, cluster=CLUSTER, serial=1)
    assert neighbours.upper == pytest.approx(math.sqrt(2) * expected.upper, rel=1e-12)
    assert neighbours.clusters.serial == 1
    assert "clusters two or more places apart" in str(neighbours)
    few = fitted.guarantee(target=THESE, cluster=CLUSTER % 3, serial=5)
    assert few.upper == 1.0
    assert "too few clusters" in few.notes[0]


def test_the_words_speak_of_clusters():
    words = str(IsotonicRecalibrator().fit(FORECAST, OUTCOME).guarantee(target=THESE, cluster=CLUSTER))
    assert "for these forecasts: 0.0000 on the 1,200 rows in 120 clusters it was fitted to" in words
    assert "this bound was promised, from the sizes of the clusters alone" in words
    assert "clusters are independent of each other, given the forecasts, while rows of one cluster may" in words
    guarded = GuardedRecalibrator().fit(FORECAST, OUTCOME).guarantee(target=THESE, cluster=CLUSTER)
    assert "the guard promised, from the sizes of the clusters alone" in guarded.promise


@pytest.mark.parametrize("target", ["population", THESE])
def test_the_words_of_guarantees_for_rows_keep_to_independent_rows(target):
    for kind in (IsotonicRecalibrator(), ConstantRecalibrator(), GuardedRecalibrator()):
        words = str(kind.fit(FORECAST, OUTCOME).guarantee(target=target))
        assert "independent" in words
        assert "which several of one patient, day or site" in words


def test_the_population_of_clusters_is_refused_with_the_way_to_go():
    fitted = IsotonicRecalibrator().fit(FORECAST, OUTCOME)
    with pytest.raises(ValueError, match=r"^cluster was given, and from the rows that fitted the map no guar"):
        fitted.guarantee(cluster=CLUSTER)
    with pytest.raises(ValueError, match=r"fit on half of the clusters and certify .* on the others.*'these for"):
        fitted.guarantee(cluster=CLUSTER)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"cluster": CLUSTER[:-1]}, r"^cluster has .*1,?199"),
        ({"cluster": np.zeros(ROWS)}, r"^cluster holds one cluster only"),
        ({"cluster": np.where(CLUSTER == 0, np.nan, CLUSTER)}, r"^cluster\[0\] is missing"),
        ({"cluster": CLUSTER, "serial": -1}, r"^serial"),
        ({"cluster": [f"day {k}" for k in CLUSTER], "serial": 1}, r"^cluster holds texts, of which 'day .* before"),
        ({"serial": 1}, r"serial.* says something of clusters, and none were named"),
    ],
)
def test_bad_clusters(asked, message):
    with pytest.raises(ValueError, match=message):
        IsotonicRecalibrator().fit(FORECAST, OUTCOME).guarantee(target=THESE, **asked)


def test_weighted_maps_have_no_guarantee_for_clusters_either():
    fitted = IsotonicRecalibrator().fit(FORECAST, OUTCOME, sample_weight=np.arange(1, ROWS + 1))
    with pytest.raises(ValueError, match="no guarantee covers weighted rows"):
        fitted.guarantee(target=THESE, cluster=CLUSTER)


# --- Comparisons ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def comparison():
    return compared(FORECAST, OUTCOME, candidates=CANDIDATES, cluster=CLUSTER, rng=0)


def test_limits_count_clusters(comparison):
    expected: Any = confidence_interval(OUTCOME, FORECAST, cluster=CLUSTER)
    as_is = comparison["as is"]
    assert as_is.cutoff == pytest.approx(expected.estimate, rel=1e-12)
    assert as_is.cutoff_upper == pytest.approx(expected.upper, rel=1e-9)
    assert as_is.cutoff_upper > confidence_interval(OUTCOME, FORECAST).upper
    assert comparison.clusters.count == 120
    assert comparison.clusters.deff == pytest.approx(expected.clusters.deff, rel=1e-9)
    assert "The rows come in 120 clusters" in str(comparison)
    assert all(each.guarantee is None for each in comparison.candidates)
    assert any("need independent rows, and are left out" in note for note in comparison.notes)
    assert type(comparison).from_dict(comparison.to_dict()) == comparison


def test_the_comparison_does_not_depend_on_order_or_names(comparison):
    again = compared(FORECAST[MOVED], OUTCOME[MOVED], candidates=CANDIDATES, cluster=NAMED[MOVED], rng=0)
    for name in comparison:
        assert again[name].brier == pytest.approx(comparison[name].brier, rel=1e-12)
        assert again[name].cutoff_upper == pytest.approx(comparison[name].cutoff_upper, rel=1e-9)
    assert again.recommended == comparison.recommended
    other = compared(FORECAST, OUTCOME, candidates=CANDIDATES, cluster=CLUSTER, rng=1)
    assert other["platt"].brier != comparison["platt"].brier


def test_parts_hold_whole_clusters():
    """Clusters with a forecast of their own: a map that has seen none of a cluster cannot know its level."""
    forecast = (CLUSTER + 0.5) / 120
    level = np.random.default_rng(5).integers(0, 2, 120)[CLUSTER]
    by_row = compared(forecast, level, candidates=CANDIDATES, rng=0)
    by_cluster = compared(forecast, level, candidates=CANDIDATES, rng=0, cluster=CLUSTER)
    assert by_cluster["isotonic"].brier > by_row["isotonic"].brier
    assert by_cluster["as is"].brier == pytest.approx(by_row["as is"].brier, rel=1e-12)


@pytest.mark.parametrize("given", ["weights", "fractions", "weights of zero"])
def test_weights_and_fractions_in_clusters(given):
    weight = None if given == "fractions" else np.where(CLUSTER < 5, float(given == "weights"), 1.0 + MOVED / ROWS)
    outcome = np.clip(FORECAST**2 + LEVEL, 0, 1) if given == "fractions" else OUTCOME
    asked = {"candidates": CANDIDATES, "rng": 0}
    found = compared(FORECAST, outcome, cluster=CLUSTER, sample_weight=weight, **asked)
    again = compared(
        FORECAST[MOVED],
        outcome[MOVED],
        cluster=NAMED[MOVED],
        sample_weight=None if weight is None else weight[MOVED],
        **asked,
    )
    assert found.clusters.count == (115 if given == "weights of zero" else 120)
    assert found["isotonic"].brier == pytest.approx(again["isotonic"].brier, rel=1e-9)


def test_standard_errors_count_clusters():
    """Copies of rows in one cluster say no more than the rows: the same recommendation, however many copies."""
    once = compared(FORECAST, OUTCOME, candidates=CANDIDATES, rng=0, cluster=CLUSTER)
    copies = np.tile(np.arange(ROWS), 4)
    more = compared(FORECAST[copies], OUTCOME[copies], candidates=CANDIDATES, rng=0, cluster=CLUSTER[copies])
    assert more["as is"].cutoff_upper == pytest.approx(once["as is"].cutoff_upper, rel=1e-6)
    assert more.clusters.n_eff == pytest.approx(once.clusters.n_eff, rel=1e-9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cluster": np.zeros(ROWS)}, r"^cv is 5, and there is only 1 cluster to deal to parts; collect more clusters"),
        ({"cluster": CLUSTER % 3}, r"^cv is 5, and there are only 3 clusters to deal to parts"),
        ({"cluster": CLUSTER[:-1]}, r"^cluster has .*1,?199"),
    ],
)
def test_clusters_that_cannot_be_dealt(given, message):
    with pytest.raises(ValueError, match=message):
        compared(FORECAST, OUTCOME, candidates=CANDIDATES, rng=0, **given)


def test_a_tally_has_no_clusters_and_labels_must_match():
    with pytest.raises(ValueError, match=r"^cluster was given together with a tally"):
        compared(Tally.from_arrays(OUTCOME, FORECAST), cluster=CLUSTER, rng=0)
    outcome, cluster = pd.Series(OUTCOME), pd.Series(CLUSTER, index=np.arange(ROWS)[::-1])
    with pytest.raises(ValueError, match="paired by position"):
        compared(FORECAST, outcome, cluster=cluster, rng=0)
