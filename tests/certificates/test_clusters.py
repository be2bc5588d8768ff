"""Verdicts on rows in clusters, as users ask for them."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import calibrant
from calibrant import certify, confidence_interval
from calibrant.certificates import Clusters
from calibrant.rows.intake import SORT_BELOW_ROWS, in_groups


def clusters_of(result: Any) -> Clusters:
    """Return the facts about clusters, which are there."""
    assert isinstance(result.clusters, Clusters)
    return result.clusters


METHODS = ("adaptive", "exact", "normal", "hoeffding")


def clustered(seed, clusters=80, size=25, spread=0.15):
    """Return outcomes, forecasts and labels of clusters whose chances share a shock of mean 0."""
    rng = np.random.default_rng(seed)
    label = np.repeat(np.arange(clusters), size)
    p = rng.uniform(0.2, 0.8, label.size)
    shock = rng.choice([-spread, spread], clusters)[label]
    return (rng.random(label.size) < p + shock).astype(int), p, label


Y, P, LABEL = clustered(0)


@pytest.mark.parametrize("method", METHODS)
def test_clusters_widen_the_limits_and_results_say_what_they_are(method):
    alone = certify(Y, P, max_error=0.1, method=method)
    found = certify(Y, P, max_error=0.1, method=method, cluster=LABEL)
    assert found.upper > 1.2 * alone.upper
    assert found.lower <= alone.lower
    assert found.estimate == alone.estimate
    assert found.worst_interval == alone.worst_interval
    assert alone.clusters is None
    assert (clusters_of(found).count, clusters_of(found).largest_share) == (80, 1 / 80)
    assert found.n_eff == pytest.approx(Y.size / clusters_of(found).deff)
    assert "2,000 rows in 80 clusters, worth about" in str(found)
    few = certify(Y, P, max_error=0.1, method=method, cluster=LABEL // 16)  # 5 of them
    assert "2,000 rows in 5 clusters" in str(few)
    assert "worth about" not in str(few)
    assert "too few to tell how many independent rows theirs are worth" in str(few.clusters)
    assert "clusters are independent of each other" in str(found)
    assert "independent draws from the population" not in str(found)
    assert type(found).from_json(found.to_json()) == found


def test_the_design_effect_is_the_spread_between_clusters_over_that_of_rows():
    totals = np.bincount(LABEL, weights=Y - P)
    found = clusters_of(certify(Y, P, max_error=0.1, cluster=LABEL))
    bias = np.mean(Y - P)  # what all rows are off by is no dependence
    between = ((totals - bias * np.bincount(LABEL)) ** 2).sum()
    assert found.deff == pytest.approx(between / ((Y - P - bias) ** 2).sum())
    assert found.deff > 1.5
    off = clusters_of(certify(Y, P / 2.0 + 0.5, max_error=0.1, cluster=LABEL))
    assert off.deff < 1.5 * found.deff


@pytest.mark.parametrize(
    "options", [{}, {"cluster_target": "clusters"}, {"max_cluster_size": 60}, {"method": "normal"}]
)
def test_neither_the_order_of_rows_nor_names_of_clusters_matter(options):
    rng = np.random.default_rng(3)
    sizes = rng.integers(3, 50, 40)
    label = np.repeat(np.arange(40), sizes)
    p = np.round(rng.random(label.size), 2)
    y = (rng.random(label.size) < p).astype(int)
    first = certify(y, p, max_error=0.1, cluster=label, **options)
    order = rng.permutation(label.size)
    names = np.array([f"site {each}" for each in rng.permutation(40)])
    second = certify(y[order], p[order], max_error=0.1, cluster=names[label][order], **options)
    for name in ("estimate", "lower", "upper", "n_eff"):
        assert getattr(second, name) == pytest.approx(getattr(first, name), rel=1e-9)
    assert clusters_of(second).largest_share == clusters_of(first).largest_share


def test_the_unit_of_weights_does_not_matter():
    rng = np.random.default_rng(4)
    weight = rng.uniform(0.5, 2.0, Y.size)
    first = certify(Y, P, max_error=0.1, cluster=LABEL, sample_weight=weight)
    second = certify(Y, P, max_error=0.1, cluster=LABEL, sample_weight=8.0 * weight)
    equal = certify(Y, P, max_error=0.1, cluster=LABEL, sample_weight=np.full(Y.size, 3.0))
    assert second.upper == pytest.approx(first.upper, rel=1e-9)
    assert equal.upper == pytest.approx(certify(Y, P, max_error=0.1, cluster=LABEL).upper, rel=1e-9)


def test_rows_of_weight_zero_are_no_rows():
    weight = (LABEL < 70).astype(float)
    first = certify(Y, P, max_error=0.1, cluster=LABEL, sample_weight=weight)
    second = certify(Y[LABEL < 70], P[LABEL < 70], max_error=0.1, cluster=LABEL[LABEL < 70])
    assert clusters_of(first).count == 70
    assert first.upper == pytest.approx(second.upper, rel=1e-9)


def test_clusters_of_one_row_are_independent_rows():
    alone = certify(Y, P, max_error=0.1)
    found = certify(Y, P, max_error=0.1, cluster=np.arange(Y.size))
    assert (found.lower, found.upper, found.clusters) == (alone.lower, alone.upper, None)
    assert "tells all 2,000 rows apart" in str(found.notes[0])


def test_clusters_of_hardly_more_than_one_row_lose_little():
    rng = np.random.default_rng(6)
    p = rng.random(4000)
    y = rng.random(4000) < p
    label = np.arange(4000)
    label[0] = 1  # a single pair
    alone, found = certify(y, p, max_error=0.1).upper, certify(y, p, max_error=0.1, cluster=label).upper
    assert alone <= found <= 2.0 * alone  # the largest cluster has two rows, so that the fastest bet is half as fast
    pairs = certify(y, p, max_error=0.1, cluster=np.arange(4000) // 2).upper
    assert alone <= pairs <= 1.12 * alone


def test_targets_are_said_and_differ():
    sizes = np.r_[np.full(60, 10), np.full(20, 60)]
    label = np.repeat(np.arange(80), sizes)
    rng = np.random.default_rng(5)
    p = rng.uniform(0.2, 0.7, label.size)
    y = rng.random(label.size) < p + 0.25 * (label >= 60)  # large clusters are off
    rows = certify(y, p, max_error=0.1, cluster=label)
    once = certify(y, p, max_error=0.1, cluster=label, cluster_target="clusters")
    stated = certify(y, p, max_error=0.1, cluster=label, max_cluster_size=100)
    assert once.estimate < rows.estimate == stated.estimate
    weight = 1.0 / sizes[label]
    assert once.estimate == pytest.approx(calibrant.cutoff_calibration_error(y, p, sample_weight=weight))
    assert rows.upper < stated.upper
    assert "the population, for clusters of these sizes, is" in str(rows)
    assert "the population, each cluster counting once, is" in str(once)
    assert "the population of clusters of at most 100 rows is" in str(stated)
    assert "weights were fixed" not in str(once)


def test_neighbours_that_depend_widen_the_limits():
    uppers = [certify(Y, P, max_error=0.1, cluster=LABEL, serial=q).upper for q in (0, 1, 3)]
    lowers = [certify(Y, P / 4, max_error=0.1, cluster=LABEL, serial=q).lower for q in (0, 1, 3)]
    assert uppers == sorted(uppers)
    assert uppers[0] < uppers[1] < uppers[2]
    assert lowers[0] > lowers[1] > lowers[2] >= 0.0
    said = str(certify(Y, P, max_error=0.1, cluster=LABEL, serial=1))
    assert "clusters two or more places apart in the order of their labels are independent" in said


def test_few_clusters_certify_nothing_and_say_how_many_would():
    label = LABEL // 4  # 20 clusters
    found = certify(Y, P, max_error=0.05, cluster=label)
    exponent = math.log(1 / (0.98 * 0.05))
    assert clusters_of(found).least_limit == pytest.approx(20 / 18 * (1 - math.exp(-exponent / 20)) * 18 / 20 / 0.9)
    (caution,) = found.cautions
    assert caution == (
        "20 clusters, the largest with 5.0% of the rows, cannot certify 0.05, whatever the outcomes: no limit could be "
        "below 0.156. It would take at least 66 clusters, of equal size."
    )
    assert clusters_of(found).needed is None  # which would contradict the caution
    assert "would decide it" not in str(found)
    assert certify(Y, P, max_error=0.2, cluster=label).cautions == ()
    perfect = np.round(P)
    for count, is_enough in ((65, False), (66, True)):
        some = np.less(LABEL, count)
        limit = certify(perfect[some], perfect[some], max_error=0.05, cluster=LABEL[some]).upper
        assert (limit <= 0.05) is is_enough


def test_enough_clusters_of_which_one_is_large_are_told_that_it_is_their_sizes():
    label = np.where(LABEL < 12, 0, LABEL)  # 69 of them
    (caution,) = certify(Y, P, max_error=0.05, cluster=label).cautions
    assert caution.startswith("69 clusters, the largest with 15.0% of the rows, cannot certify 0.05")
    assert caution.endswith("Their sizes differ too much: of equal size, 66 could be enough.")


def test_sizes_that_are_drawn_take_a_few_clusters_more():
    (caution,) = certify(Y, P, max_error=0.02, cluster=LABEL, max_cluster_size=25).cautions
    assert caution.endswith("It would take at least 170 clusters, of equal size.")
    nothing, label = np.zeros(340), np.repeat(np.arange(170), 2)
    for rows, is_enough in ((340, True), (338, False)):
        found = certify(nothing[:rows], nothing[:rows], max_error=0.02, cluster=label[:rows], max_cluster_size=2)
        assert (found.upper <= 0.02) is is_enough


@pytest.mark.parametrize("measure", ["cutoff", "risk_gap"])
def test_few_clusters_for_hoeffding_say_how_many_it_would_take(measure):
    (caution,) = certify(Y, P, max_error=0.05, cluster=LABEL, method="hoeffding", measure=measure).cautions
    assert "80 clusters, the largest with 1.2% of the rows, cannot certify 0.05, whatever the outcomes" in caution
    (needed,) = re.findall(r"at least ([0-9,]+) clusters", caution)
    label = np.arange(int(needed.replace(",", ""))).repeat(2)
    nothing = np.zeros(label.size)
    for cluster, is_enough in ((label, True), (label[:-2], False)):
        rows = nothing[: cluster.size]
        found = certify(rows, rows, max_error=0.05, cluster=cluster, method="hoeffding", measure=measure)
        assert (found.upper <= 0.05) is is_enough


def test_undecided_verdicts_say_how_many_clusters_would_decide():
    found = certify(Y, P, max_error=0.06, cluster=LABEL)
    assert found.verdict == "undecided"
    assert found.rows_needed is None
    assert (clusters_of(found).needed or 0) > 80
    assert f"About {clusters_of(found).needed:,} clusters like these would decide it" in found.numbers()


def test_one_large_cluster_has_a_caution():
    label = np.where(LABEL < 50, 0, LABEL)
    found = certify(Y, P, max_error=0.9, cluster=label)
    few, large, wide = found.cautions
    assert few.startswith("31 clusters, the largest with 62.5% of the rows, cannot certify 0.9")
    assert large.startswith("One cluster holds 62.5% of the rows, so that these are hardly more than one observation. ")
    assert "would pass this limit" in wide


def test_what_is_clearly_off_is_refuted():
    found = certify(Y, np.clip(P + 0.3, 0, 1), max_error=0.02, cluster=LABEL)
    assert found.verdict == "refuted"
    assert 0.1 < found.lower < found.estimate


def test_groups_have_clusters_of_their_own():
    by = np.where(np.arange(Y.size) % 2, "odd", "even")  # every cluster has rows in both
    found = certify(Y, P, max_error=0.2, by=by, cluster=LABEL)
    for group, certificate in zip(found.groups, found.certificates, strict=True):
        own = by == group
        alone = certify(Y[own], P[own], max_error=0.2, cluster=LABEL[own], confidence_level=0.975)
        assert certificate.upper == pytest.approx(alone.upper, rel=1e-12)
        assert clusters_of(certificate).count == 80


def test_groups_that_know_their_clusters_are_judged_by_them():
    by = np.where(np.arange(Y.size) % 2, "odd", "even")
    found = certify(in_groups(Y, P, by=by, cluster=LABEL), max_error=0.2)
    assert found == certify(Y, P, max_error=0.2, by=by, cluster=LABEL)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cluster": LABEL[:-1]}, "cluster has 1,999 values for 2,000 rows"),
        ({"cluster": np.zeros(Y.size)}, "cluster holds one cluster only"),
        ({"cluster": np.where(LABEL == 3, np.nan, LABEL)}, r"cluster\[75\] is missing"),
        ({"cluster": [None, *LABEL[1:].tolist()]}, r"cluster\[0\] is missing"),
        ({"cluster": LABEL, "method": "paper"}, "method='paper' has no limits for rows in clusters: its proof counts"),
        ({"cluster": LABEL, "measure": "smooth"}, "clusters are covered for measure='cutoff' and 'risk_gap'"),
        ({"cluster": LABEL, "relative_to": "events"}, "clusters are covered for relative_to='rows' only"),
        ({"cluster": LABEL, "max_cluster_size": 20}, "max_cluster_size is 20, and a cluster here has 25 rows"),
        ({"cluster": LABEL, "max_cluster_size": 30, "cluster_target": "clusters"}, "max_cluster_size is for"),
        ({"cluster": LABEL, "serial": -1}, "serial"),
        ({"cluster": LABEL, "cluster_target": "sites"}, "cluster_target"),
        ({"serial": 1}, "serial says something of clusters, and none were named; pass a label per row as cluster="),
        ({"max_cluster_size": 5}, "max_cluster_size says something of clusters"),
        ({"cluster_target": "clusters"}, "cluster_target says something of clusters"),
    ],
)
def test_bad_input_is_refused_in_words(options, message):
    for call in (lambda: certify(Y, P, max_error=0.1, **options), lambda: confidence_interval(Y, P, **options)):
        with pytest.raises(ValueError, match=message):
            call()


def test_summaries_do_not_know_clusters():
    with pytest.raises(ValueError, match="cluster was given together with a tally, whose rows can no longer be told"):
        certify(calibrant.Tally.from_arrays(Y, P), cluster=LABEL, max_error=0.1)


def test_many_rows_have_the_limits_that_few_have(monkeypatch):
    y, p, label = clustered(2, clusters=300, size=20)
    alone = certify(y, p, max_error=0.1, cluster=label)
    monkeypatch.setattr("calibrant.rows.intake.SORT_BELOW_ROWS", 1000)
    many = certify(y, p, max_error=0.1, cluster=label)
    assert y.size < SORT_BELOW_ROWS
    assert many.estimate == pytest.approx(alone.estimate, rel=1e-12)
    assert many.upper == pytest.approx(alone.upper, rel=2e-3)  # other blocks, and another bound of the same growth
    assert many.lower == pytest.approx(alone.lower, rel=1e-3, abs=1e-9)


def test_intervals_hold_together():
    found = confidence_interval(Y, P, cluster=LABEL)
    above = confidence_interval(Y, P, cluster=LABEL, alternative="less", confidence_level=0.975)
    assert found.upper == above.upper
    assert clusters_of(found).count == 80
    assert "for clusters of these sizes, lies between" in str(found)


def test_texts_that_count_in_another_order_have_no_neighbours():
    names = np.array([f"day {each}" for each in range(80)])[LABEL]
    assert certify(Y, P, max_error=0.1, cluster=names).clusters is not None
    with pytest.raises(ValueError, match="cluster holds texts, of which 'day 19' comes before 'day 2'; pass"):
        certify(Y, P, max_error=0.1, cluster=names, serial=1)
    padded = np.array([f"day {each:02d}" for each in range(80)])[LABEL]
    found, expected = (certify(Y, P, max_error=0.1, cluster=each, serial=1) for each in (padded, LABEL))
    assert found.upper == expected.upper


@pytest.mark.parametrize("method", ["adaptive", "hoeffding", "normal"])
@pytest.mark.parametrize("threshold", [None, 0.5, (0.3, 0.6)])
def test_savings_of_clusters_have_verdicts(method, threshold):
    options: dict[str, Any] = {"max_error": 0.1, "measure": "risk_gap", "threshold": threshold, "method": method}
    alone, found = certify(Y, P, **options), certify(Y, P, **options, cluster=LABEL)
    assert found.estimate == alone.estimate
    assert found.saving == alone.saving
    assert found.lower <= found.estimate < found.upper
    assert found.upper > alone.upper
    assert clusters_of(found).least_limit <= found.upper
    assert "clusters are independent of each other" in str(found)
    assert type(found).from_json(found.to_json()) == found


def test_too_few_clusters_for_a_saving_are_said():
    found = certify(Y, P, max_error=0.05, measure="risk_gap", cluster=LABEL // 4)
    assert "20 clusters, the largest with 5.0% of the rows, cannot certify 0.05" in found.cautions[0]
    assert certify(
        Y, P, max_error=0.05, measure="risk_gap", threshold=0.1, method="normal", cluster=LABEL // 4
    ).clusters


def test_large_sample_limits_at_very_high_levels_do_not_rest_on_too_few_draws():
    off = np.clip(P + 0.3, 0.0, 1.0)
    asked: Any = {"max_error": 0.02, "cluster": LABEL, "method": "normal"}
    lower = [certify(Y, off, **asked, confidence_level=level).lower for level in (0.99, 0.999, 0.9998, 0.999999)]
    assert lower[0] > lower[1] >= lower[2] > 0.0
    assert lower[3] == 0.0
