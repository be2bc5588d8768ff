"""The check of independence as users meet it; its level is simulated in tests/guarantees."""

import numpy as np
import pytest

from calibrant import check_independence, confidence_interval
from calibrant.certificates import IndependenceCheck
from calibrant.certificates.overdispersion import overdispersion_of
from calibrant.rows.intake import as_clustered

RNG = np.random.default_rng(24)
DAY = np.repeat(np.arange(100), 30)
PROB = RNG.uniform(0.05, 0.6, 3000)
ALONE = RNG.random(3000) < PROB
TOGETHER = RNG.random(3000) < np.clip(PROB + RNG.uniform(-0.25, 0.25, 100)[DAY], 0.0, 1.0)


def test_rows_that_go_together_are_found_and_what_to_do_is_said():
    found = check_independence(TOGETHER, PROB, DAY)
    assert found.rejected(1e-6)
    assert 0.03 < found.correlation < 0.2
    assert found.clusters.deff > 2.0
    assert found.clusters.n_eff == pytest.approx(3000 / found.clusters.deff)
    assert found.upper_rows == confidence_interval(TOGETHER, PROB, alternative="less").upper
    assert found.upper_clusters == confidence_interval(TOGETHER, PROB, cluster=DAY, alternative="less").upper
    text = str(found)
    assert text.startswith("Rows of one cluster are more alike than independent rows would be (p-value ")
    assert "3,000 rows in 100 clusters, design effect" in text
    assert "The first is not to be trusted: use certify(..., cluster=...)." in text
    assert IndependenceCheck.from_json(found.to_json()) == found


def test_independent_rows_show_nothing_and_nothing_is_claimed():
    found = check_independence(ALONE, PROB, DAY)
    assert not found.rejected(0.01)
    assert abs(found.correlation) < 0.02
    assert str(found).startswith("No sign that rows of one cluster are more alike")
    assert "This does not show that rows are independent" in str(found)


def test_forecasts_that_are_off_are_no_sign_of_dependence():
    assert check_independence(ALONE, PROB**2, DAY).pvalue > 0.01
    far = check_independence(ALONE, np.full(3000, 0.9), RNG.permutation(DAY))
    assert far.pvalue > 0.05
    assert far.clusters.deff < 1.5  # counted from what all rows are off by
    assert "design effect" not in str(far)  # which forecasts that are off in places raise, too


def test_outcomes_that_are_all_the_same_are_no_sign_of_dependence():
    p = np.linspace(0.01, 0.3, 1000)
    for same in (0, 1):
        found = check_independence(np.full(1000, same), p, np.arange(1000) // 10)
        assert (found.pvalue, found.correlation) == (1.0, 0.0)


def test_the_p_value_of_pairs_is_near_that_of_shuffled_rows():
    code = np.arange(300) // 3
    p = np.full(300, 0.4)
    y = RNG.random(300) < 0.4
    found = overdispersion_of(as_clustered(y, p, cluster=code)).pvalue
    shown = (np.bincount(code, weights=y) ** 2).sum()
    shuffled = [(np.bincount(code, weights=RNG.permutation(y)) ** 2).sum() for _ in range(4000)]
    low, high = np.mean(np.greater(shuffled, shown)), np.mean(np.greater_equal(shuffled, shown))
    assert low - 0.03 < found < high + 0.03


@pytest.mark.parametrize("largest", [100, 4000])
def test_clusters_of_one_forecast_each_have_the_correlation_of_their_outcomes(largest):
    """A large cluster that is a stratum by itself says nothing of it, and counts for nothing."""
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        code = np.repeat(np.arange(200), np.append(np.full(199, 100), largest))
        p = rng.uniform(0.2, 0.8, 200)
        chance = p + rng.choice([-1.0, 1.0], 200) * np.sqrt(0.05 * p * (1.0 - p))
        found.append(overdispersion_of(as_clustered(rng.random(code.size) < chance[code], p[code], cluster=code)))
    assert np.mean([each.correlation for each in found]) == pytest.approx(0.05, rel=0.1)


def test_weights_count_for_limits_only():
    weight = RNG.exponential(size=3000)
    plain, weighted = (check_independence(TOGETHER, PROB, DAY, sample_weight=each) for each in (None, weight))
    assert weighted.pvalue == plain.pvalue
    assert weighted.upper_rows > plain.upper_rows


def test_the_order_of_rows_and_names_of_clusters_do_not_matter():
    order = RNG.permutation(3000)
    one, other = check_independence(ALONE, PROB, DAY), check_independence(ALONE[order], PROB[order], -DAY[order])
    assert other.pvalue == pytest.approx(one.pvalue, rel=1e-6)


def test_few_events_are_flagged():
    found = check_independence([0] * 99 + [1], np.full(100, 0.01), np.arange(100) // 5)
    assert found.notes[0].startswith("the squared residuals add up to 0.99, below 30: the p-value is a rough guide")


def test_nothing_can_be_seen_where_clusters_have_one_row():
    found = check_independence(ALONE[:200], PROB[:200], np.arange(200))
    assert found.pvalue == 1.0
    assert found.upper_clusters == found.upper_rows
    assert found.notes[0].startswith("cluster= tells all 200 rows apart")
    neighbours = check_independence(ALONE[:200], PROB[:200], np.arange(200), serial=1)
    assert neighbours.upper_clusters > found.upper_clusters
    assert neighbours.notes[0].startswith("clusters hold one row each, so that nothing can be told")


def test_serial_makes_the_limit_with_clusters_wider():
    near, far = (check_independence(TOGETHER, PROB, DAY, serial=serial) for serial in (0, 1))
    assert far.upper_clusters > near.upper_clusters
    assert far.pvalue == near.pvalue


def test_clusters_that_are_missing_or_one_are_refused():
    with pytest.raises(ValueError, match="cluster is missing: pass a label per row"):
        check_independence(ALONE, PROB)
    with pytest.raises(ValueError, match="cluster holds one cluster only"):
        check_independence(ALONE, PROB, np.zeros(3000))
