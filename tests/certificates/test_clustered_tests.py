"""Tests of calibration for rows in clusters as users meet them; their levels are simulated in tests/guarantees."""

import math
from typing import Any

import numpy as np
import pytest

from calibrant import calibration_test, cutoff_calibration_error
from calibrant.certificates import CalibrationTest

RNG = np.random.default_rng(22)
CODE = np.repeat(np.arange(120), 10)
PROB = RNG.random(1200)
TRUE = RNG.random(1200) < PROB
WEIGHT = RNG.exponential(size=1200)


def test_the_evidence_is_taken_where_nothing_else_is_asked_for():
    found = calibration_test(TRUE, PROB, cluster=CODE)
    assert (found.method, found.n_resamples, found.rows) == ("evidence", None, 1200)
    assert found.statistic == pytest.approx(cutoff_calibration_error(TRUE, PROB))
    assert found.clusters is not None
    assert found.clusters.count == 120
    assert found.notes[0].startswith("the evidence of bets was chosen")
    assert "1,200 rows in 120 clusters, bets on whole clusters)" in str(found)
    assert "clusters are independent of each other, while rows of one cluster may have anything" in str(found)
    assert found == calibration_test(TRUE, PROB, cluster=CODE, rng=5)  # nothing is drawn
    assert CalibrationTest.from_json(found.to_json()) == found


def test_forecasts_that_are_off_are_rejected_by_both():
    for method in ("evidence", "asymptotic"):
        found = calibration_test(TRUE, PROB / 3.0, cluster=CODE, method=method, rng=0)
        assert found.rejected(1e-3)
        assert found.method == method


def test_the_bootstrap_draws_signs_of_clusters():
    found = calibration_test(TRUE, PROB, cluster=CODE, method="asymptotic", n_resamples=499, rng=0)
    assert found.n_resamples == 499
    assert (found.pvalue * 500) % 1.0 == pytest.approx(0.0, abs=1e-9)
    assert "499 resamples" in str(found)
    assert found == calibration_test(TRUE, PROB, cluster=CODE, method="asymptotic", n_resamples=499, rng=0)
    order = RNG.permutation(1200)
    again = calibration_test(
        TRUE[order], PROB[order], cluster=-CODE[order], method="asymptotic", n_resamples=499, rng=0
    )
    assert again.pvalue == found.pvalue


def test_the_bootstrap_of_few_clusters_is_flagged():
    few = calibration_test(TRUE, PROB, cluster=CODE // 10, method="asymptotic", rng=0)
    assert "below 50: the large-sample p-value is a rough guide here; method='evidence' holds" in few.notes[0]


def test_clusters_that_can_reject_nothing_say_so():
    few = calibration_test(TRUE, PROB / 3.0, cluster=CODE // 24)
    assert not few.rejected()
    assert few.notes[1] == (
        "5 clusters cannot reject anything at the 5% level, whatever the outcomes: no p-value could be below "
        f"{math.exp(-5 * math.log1p(0.45)):.2g}"
    )


def test_to_assume_less_makes_p_values_larger():
    y, p = TRUE, PROB / 1.3
    alone = calibration_test(y, p, cluster=CODE)
    assert calibration_test(y, p, cluster=CODE, serial=1).pvalue > alone.pvalue
    assert calibration_test(y, p, cluster=CODE, max_cluster_size=40).pvalue > alone.pvalue
    assert "clusters two or more places apart" in str(calibration_test(y, p, cluster=CODE, serial=1))
    bootstrap: dict[str, Any] = {"method": "asymptotic", "n_resamples": 999, "rng": 0}
    assert (
        calibration_test(y, p, cluster=CODE, serial=1, **bootstrap).pvalue
        >= calibration_test(y, p, cluster=CODE, **bootstrap).pvalue
    )


def test_weights_fractions_and_clusters_that_count_once():
    weighted = calibration_test(TRUE * 0.5, PROB * 0.5, cluster=CODE, sample_weight=WEIGHT)
    assert weighted.statistic == pytest.approx(cutoff_calibration_error(TRUE * 0.5, PROB * 0.5, sample_weight=WEIGHT))
    once = calibration_test(TRUE, PROB, cluster=CODE % 50, cluster_target="clusters")
    size = np.bincount(CODE % 50)[CODE % 50]
    assert once.statistic == pytest.approx(cutoff_calibration_error(TRUE, PROB, sample_weight=1.0 / size))


def test_groups_have_clusters_of_their_own():
    by = np.where(PROB < 0.5, "low", "high")
    found = calibration_test(TRUE, PROB, by=by, cluster=CODE)
    alone = calibration_test(TRUE[PROB < 0.5], PROB[PROB < 0.5], cluster=CODE[PROB < 0.5])
    assert found.groups == ("high", "low")
    assert found["low"].pvalue == alone.pvalue
    assert found.pvalue == min(1.0, 2 * min(each.pvalue for each in found.tests))


def test_what_cannot_be_tested_is_refused():
    with pytest.raises(ValueError, match=r"method='exact' needs independent rows.*use method='evidence'"):
        calibration_test(TRUE, PROB, cluster=CODE, method="exact")
    with pytest.raises(ValueError, match="method='evidence' is for rows in clusters, and none were named"):
        calibration_test(TRUE, PROB, method="evidence")
    with pytest.raises(ValueError, match="cluster holds one cluster only"):
        calibration_test(TRUE, PROB, cluster=np.ones(1200))
    with pytest.raises(ValueError, match="max_cluster_size says something of clusters"):
        calibration_test(TRUE, PROB, max_cluster_size=10)


def test_clusters_of_one_row_are_noted():
    found = calibration_test(TRUE, PROB, cluster=np.arange(1200))
    assert found.notes[0].startswith("cluster= tells all 1,200 rows apart")
    neighbours = calibration_test(TRUE, PROB, cluster=np.arange(1200), serial=1)
    assert "count as independent" not in str(neighbours)
