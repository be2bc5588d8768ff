"""Risk bands of rows in clusters: limits against their definition, words, and what is refused."""

import math
from typing import Any

import numpy as np
import pytest

from calibrant import Tally, confidence_interval, risk_bands
from calibrant.certificates import RiskBands
from calibrant.certificates.cluster_limits import Dependence, cluster_exponent, cluster_rates

RNG = np.random.default_rng(21)
CODE = np.repeat(np.arange(100), 15)
PROB = RNG.random(1500).round(2)
TRUE = RNG.random(1500) < np.clip(PROB + RNG.uniform(-0.2, 0.2, 100)[CODE], 0.0, 1.0)
CUTOFFS = [0.3, 0.6]


def test_bands_hold_the_same_means_as_those_of_independent_rows():
    bands, rows = risk_bands(TRUE, PROB, cutoffs=CUTOFFS, cluster=CODE), risk_bands(TRUE, PROB, cutoffs=CUTOFFS)
    for name in ("low", "high", "rows", "share", "mean_forecast", "observed_rate", "bias"):
        assert getattr(bands, name) == pytest.approx(getattr(rows, name))
    assert (bands.lower < rows.lower).all()
    assert (bands.upper > rows.upper).all()
    assert bands.clusters is not None
    assert bands.clusters.count == 100
    assert bands.band_clusters is not None
    assert bands.band_clusters.tolist() == [len(set(CODE[PROB < 0.3])), 100, 100]


def test_the_limit_of_a_band_is_that_of_bets_on_its_clusters():
    bands = risk_bands(TRUE, PROB, cutoffs=CUTOFFS, cluster=CODE)
    inside = (PROB >= 0.3) & (PROB < 0.6)
    sums = np.bincount(CODE[inside], weights=(TRUE - PROB)[inside], minlength=100).astype(np.float64)
    size = np.bincount(CODE[inside], minlength=100)
    delta, alone = 0.05 / 6, Dependence()
    for sign, low in ((1.0, 0.3), (-1.0, 0.4)):
        most = size.max() * (1.0 - low)
        found = []
        for rate in cluster_rates(sign * sums, float(size.max()), most, delta, alone):
            growth = -np.log(1.0 - rate / most * sign * sums).sum() + cluster_exponent(delta, alone)
            found.append(100 * most / (rate * size.sum()) * (1.0 - math.exp(-growth / 100)))
        assert max(found) == pytest.approx(bands.upper[1] if sign > 0.0 else -bands.lower[1])


def test_what_a_band_inherits_comes_from_the_limit_with_clusters():
    bands = risk_bands(TRUE, PROB, cutoffs=CUTOFFS, cluster=CODE)
    assert bands.cutoff_upper == confidence_interval(TRUE, PROB, cluster=CODE).upper
    assert (bands.cutoff_upper / bands.inherited < bands.share).all()


@pytest.mark.parametrize("options", [{"serial": 1}, {"max_cluster_size": 20}], ids=str)
def test_to_assume_less_makes_limits_wider(options):
    less = risk_bands(TRUE, PROB, cutoffs=CUTOFFS, cluster=CODE, **options)
    more = risk_bands(TRUE, PROB, cutoffs=CUTOFFS, cluster=CODE)
    assert (less.upper > more.upper).all()
    assert (less.lower < more.lower).all()


def test_a_bias_that_is_surely_negative_has_a_negative_upper_limit():
    low = RNG.random(6000) < 0.1
    for most in (None, 15):
        code = np.arange(6000) // 15
        bands = risk_bands(low, np.full(6000, 0.6), cutoffs=[0.5], cluster=code, max_cluster_size=most)
        assert bands.lower[1] < -0.5 < bands.upper[1] < -0.35


def test_neither_the_order_of_rows_nor_names_of_clusters_matter():
    order = RNG.permutation(1500)
    names = np.array([f"day {k * 7919 % 101}" for k in range(100)])[CODE]
    one = risk_bands(TRUE, PROB, cutoffs=CUTOFFS, cluster=CODE)
    other = risk_bands(TRUE[order], PROB[order], cutoffs=CUTOFFS, cluster=names[order])
    assert other.upper == pytest.approx(one.upper, rel=1e-12)
    assert other.inherited == pytest.approx(one.inherited, rel=1e-12)


def test_bands_with_few_clusters_say_so():
    few = risk_bands(TRUE, PROB, cutoffs=CUTOFFS, cluster=CODE // 20)
    assert len(few.notes) == 3
    assert few.notes[1].startswith(
        "in [0.3, 0.6) there are 5 clusters, too few or too unequal to say much: even if all"
    )
    assert "(1,500 rows in 5 clusters)." in str(few)
    assert str(few).count("Note: ") == 3
    assert str(few).splitlines()[-1].split()[:4] == ["[0.6,", "1]", str(few.rows[2]), "5"]
    again = RiskBands.from_json(few.to_json())
    assert str(again) == str(few)


def test_clusters_of_one_row_are_independent_rows():
    bands, rows = (
        risk_bands(TRUE, PROB, cutoffs=CUTOFFS, cluster=np.arange(1500)),
        risk_bands(TRUE, PROB, cutoffs=CUTOFFS),
    )
    assert bands.upper.tolist() == rows.upper.tolist()
    assert bands.notes[0].startswith("cluster= tells all 1,500 rows apart")


def test_each_cluster_counts_once_whatever_the_weight_of_its_only_row():
    alone: Any = {"cutoffs": CUTOFFS, "cluster": np.arange(1500)}
    weighted = risk_bands(TRUE, PROB, **alone, cluster_target="clusters", sample_weight=RNG.uniform(0.5, 2.0, 1500))
    assert weighted.bias == pytest.approx(risk_bands(TRUE, PROB, **alone).bias)
    assert weighted.upper == pytest.approx(risk_bands(TRUE, PROB, **alone).upper)


def test_clusters_of_a_population_without_rows_in_a_band_take_part_in_its_rate():
    """How many have some is a matter of chance, and a rate may not depend on it."""
    code = np.arange(6000) // 15
    p = np.where(code < 200, 0.2, 0.8)
    y = RNG.random(6000) < p
    bands = risk_bands(y, p, cutoffs=[0.5], cluster=code, max_cluster_size=15)
    sums = np.bincount(code, weights=(p < 0.5) * (y - p)).astype(np.float64)
    size, delta, most = np.where(np.arange(400) < 200, 15, 0), 0.05 / 4, Dependence(max_size=15.0)
    gained = [
        np.log(1.0 + rate / 15.0 * (bands.upper[0] * size - sums)).sum()
        for rate in cluster_rates(sums, 15.0, 15.0, delta, most)
    ]
    assert min(gained) == pytest.approx(cluster_exponent(delta, most))


def test_an_empty_band_has_no_numbers_and_no_note():
    bands = risk_bands(TRUE, PROB / 2, cutoffs=[0.25, 0.9], cluster=CODE)
    assert (bands.rows[2], bands.lower[2], bands.upper[2], bands.inherited[2]) == (0, -1.0, 1.0, 1.0)
    assert np.isnan(bands.bias[2])


def test_clusters_that_cannot_be_judged_are_refused():
    with pytest.raises(ValueError, match="cluster holds one cluster only"):
        risk_bands(TRUE, PROB, cutoffs=CUTOFFS, cluster=np.zeros(1500))
    with pytest.raises(ValueError, match="serial says something of clusters, and none were named"):
        risk_bands(TRUE, PROB, cutoffs=CUTOFFS, serial=1)
    with pytest.raises(ValueError, match="max_cluster_size is 3, and a cluster here has 15 rows"):
        risk_bands(TRUE, PROB, cutoffs=CUTOFFS, cluster=CODE, max_cluster_size=3)
    with pytest.raises(ValueError, match="together with a tally"):
        risk_bands(Tally.from_arrays(TRUE, PROB), cutoffs=CUTOFFS, cluster=CODE)
