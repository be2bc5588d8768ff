"""Limits of the risk gap for rows in clusters, against every line on small data."""

import math
from itertools import product

import numpy as np
import pytest

from calibrant.certificates import cluster_search
from calibrant.certificates.cluster_limits import ClusterLimits, Dependence, growth_rest
from calibrant.certificates.cluster_saving_search import Judging
from calibrant.certificates.cluster_savings import SavingLimits
from calibrant.certificates.saving_limits import betting_upper
from calibrant.measures.savings import saving_of
from calibrant.rows.checks import check_observations
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.grids import COARSE_GRID
from calibrant.rows.refinement import Opened, whole_tally
from calibrant.rows.savings import EVERY_THRESHOLD, SAVING, Thresholds, split_at_savings

RANGES = [EVERY_THRESHOLD, Thresholds(0.3, 0.3), Thresholds(0.2, 0.6), Thresholds(0.5, 0.9)]


def sums_of_lines(y, p, w, cluster, thresholds, *, more):
    """Return T_c(g) of every line: a row for each."""
    forecasts, (low, high) = np.unique(p), thresholds
    inside = forecasts[(forecasts >= low) & (forecasts <= high)]
    found = [np.zeros(cluster.max() + 1)]
    for start in [*forecasts, 2.0]:
        if more:
            lines = [(low, (p >= start) & (p < low))]
            lines += [(each, (p >= start) & (p <= each)) for each in inside[inside < high]]
        else:
            lines = [(high, (p >= high) & (p < start))]
            lines += [(each, (p >= each) & (p < start)) for each in inside]
        for threshold, rows in lines:
            gain = w * ((y - threshold) if more else (threshold - y))
            found.append(np.bincount(cluster[rows], weights=gain[rows], minlength=cluster.max() + 1))
    return np.array(found)


def drawn(seed, *, ties=False, fractions=False, weights=False, rows=60, clusters=8):
    rng = np.random.default_rng([17, seed])
    cluster = np.unique(rng.integers(0, clusters, rows), return_inverse=True)[1]
    p = rng.choice(np.round(rng.random(12), 2), rows) if ties else rng.random(rows)
    y = rng.random(rows) if fractions else (rng.random(rows) < p) * 1.0
    w = rng.uniform(0.1, 2.0, rows) if weights else np.ones(rows)
    return y, p, w, cluster


def limits_of(y, p, w, cluster, thresholds, dependence=None, *, cells=False):
    source = ClusteredRows.of(check_observations(y, p, sample_weight=None if np.all(w == 1.0) else w), cluster)
    rows = Opened(source)
    table = rows.start(COARSE_GRID) if cells else split_at_savings(rows, thresholds, lambda _: [SAVING])
    saving = saving_of(split_at_savings(rows, thresholds, lambda _: [SAVING]), thresholds).saving
    return SavingLimits(ClusterLimits(source, table, dependence or Dependence()), thresholds), saving


@pytest.mark.parametrize("blocks", [None, 4, 1])
@pytest.mark.parametrize("thresholds", RANGES)
@pytest.mark.parametrize("cells", [False, True])
def test_growth_is_never_below_that_of_any_line(monkeypatch, blocks, thresholds, cells):
    if blocks is not None:
        monkeypatch.setattr(cluster_search, "block_count", lambda _: blocks)
    for seed, (ties, fractions, weights) in enumerate(product([False, True], repeat=3)):
        y, p, w, cluster = drawn(seed, ties=ties, fractions=fractions, weights=weights)
        limits, _ = limits_of(y, p, w, cluster, thresholds, cells=cells)
        size = limits.limits.rows.size
        for kind in limits.rows.kinds:
            sums = sums_of_lines(y, p, w, cluster, thresholds, more=kind.more)
            assert (sums <= kind.reach + 1e-9).all()
            assert (-sums <= kind.fall + 1e-9).all()
            assert kind.reach.max() <= limits.limits.largest * kind.most_gained + 1e-9
            assert kind.reach.max() <= kind.most_given() + 1e-9
            for rate in np.array([0.3, 0.9]) / limits.limits.largest:
                weight = rate**2 * growth_rest(rate * kind.reach)
                judging = Judging(kind, weight, size)
                for error in (0.0, 0.05):
                    stand_in = rate * sums.sum(axis=1) + ((sums - error * size) ** 2) @ weight
                    found = judging.largest(rate, error)
                    assert found >= stand_in.max() - 1e-9
                    if blocks is None and not cells and ties:  # each forecast is a block of its own
                        assert found == pytest.approx(stand_in.max(), abs=1e-9)
                growth = (-np.log1p(-rate * sums)).sum(axis=1).max()
                assert judging.largest(rate) >= growth - 1e-9
                if blocks is None and not cells:
                    assert judging.largest(rate) <= growth + 0.02


@pytest.mark.parametrize("thresholds", RANGES)
def test_limits_of_few_blocks_hold_for_the_same_rows(monkeypatch, thresholds):
    y, p, w, cluster = drawn(3, rows=600, clusters=60)
    exact, saving = limits_of(y, p, w, cluster, thresholds)
    fine = exact.bets(saving, 0.05), exact.large_sample(1.645)
    monkeypatch.setattr(cluster_search, "block_count", lambda _: 16)
    coarse, _ = limits_of(y, p, w, cluster, thresholds)
    wider = coarse.bets(saving, 0.05), coarse.large_sample(1.645)
    for narrow, wide, factor in zip(fine, wider, (1.25, 1.75), strict=True):
        assert saving < narrow <= wide + 1e-12
        assert wide < factor * narrow


def test_large_sample_limit_is_that_of_the_worst_line():
    y, p, w, cluster = drawn(5, ties=True, rows=400, clusters=40)
    for thresholds in RANGES:
        limits, _ = limits_of(y, p, w, cluster, thresholds)
        most = 0.0
        for more in (True, False):
            sums = sums_of_lines(y, p, w, cluster, thresholds, more=more)
            spread = np.sqrt((sums**2).sum(axis=1) * 40 / 39)
            most = max(most, float((sums.sum(axis=1) + 1.645 * spread).max()))
        assert most / 400 <= limits.large_sample(1.645) <= 1.02 * most / 400 + 1e-4


@pytest.mark.parametrize("thresholds", RANGES[:3])
def test_clusters_of_one_row_come_close_to_independent_rows(thresholds):
    rng = np.random.default_rng(11)
    p = rng.random(4000)
    y = rng.random(4000) < p
    limits, saving = limits_of(y, p, np.ones(4000), np.arange(4000), thresholds)
    tally = whole_tally(limits.limits.source)
    alone = betting_upper(tally, tally, thresholds, saving, 0.05)
    assert 0.9 * alone < limits.bets(saving, 0.05) < 1.15 * alone


def test_limits_do_not_depend_on_order_or_names():
    y, p, w, cluster = drawn(7, rows=300, clusters=30, weights=True)
    mixed = np.random.default_rng(0).permutation(300)
    names = np.random.default_rng(1).permutation(30)
    first, saving = limits_of(y, p, w, cluster, EVERY_THRESHOLD)
    second, _ = limits_of(y[mixed], p[mixed], w[mixed], names[cluster[mixed]], EVERY_THRESHOLD)
    assert second.bets(saving, 0.05) == pytest.approx(first.bets(saving, 0.05), rel=1e-9)
    assert second.lower(saving, 0.05) == pytest.approx(first.lower(saving, 0.05), rel=1e-9)
    assert second.large_sample(1.645) == pytest.approx(first.large_sample(1.645), rel=1e-9)


def test_what_is_assumed_of_clusters_shows():
    y, p, w, cluster = drawn(9, rows=600, clusters=60)
    limits, saving = limits_of(y, p, w, cluster, EVERY_THRESHOLD)
    sizes = np.bincount(cluster)
    assert limits.hoeffding_margin(0.05) == pytest.approx(math.sqrt(math.log(20) * (sizes**2).sum() / 2) / 600)
    upper = limits.bets(saving, 0.05)
    assert saving < limits.bets(saving, 0.05, given=True) < upper
    serial, _ = limits_of(y, p, w, cluster, EVERY_THRESHOLD, Dependence(serial=1))
    assert upper < serial.bets(saving, 0.05) < 2.5 * upper
    assert serial.hoeffding_margin(0.05) == pytest.approx(math.sqrt(2) * limits.hoeffding_margin(0.05))
    stated, _ = limits_of(y, p, w, cluster, EVERY_THRESHOLD, Dependence(max_size=float(sizes.max())))
    assert stated.bets(saving, 0.05) == pytest.approx(upper, rel=0.1)
    larger, _ = limits_of(y, p, w, cluster, EVERY_THRESHOLD, Dependence(max_size=2.0 * sizes.max()))
    assert larger.bets(saving, 0.05) > stated.bets(saving, 0.05)
    drawn_sizes = sizes.max() * math.sqrt(math.log(20) * sizes.size / 2) / 600
    assert stated.hoeffding_margin(0.05) == pytest.approx(drawn_sizes)
    assert limits.bets(saving, 0.01) > upper


def test_few_clusters_of_which_none_is_independent_of_another_leave_everything_possible():
    y, p, w, cluster = drawn(3, rows=6, clusters=2)
    for delta in (1e-4, 1e-12):
        limits, saving = limits_of(y, p, w, cluster, EVERY_THRESHOLD, Dependence(serial=50))
        assert limits.bets(saving, delta) == 1.0


def test_nothing_can_be_saved_where_everybody_acts():
    y, p, w, cluster = drawn(2)
    limits, saving = limits_of(y, p, w, cluster, Thresholds(0.0, 0.0))
    assert saving == 0.0
    assert limits.lower(0.0, 0.05) == 0.0
    assert limits.bets(0.0, 0.05, given=True) == 0.0


def test_much_to_save_is_seen_from_below():
    rng = np.random.default_rng(4)
    p, cluster = np.full(2000, 0.2), np.repeat(np.arange(200), 10)
    y = rng.random(2000) < 0.6
    limits, saving = limits_of(y, p, np.ones(2000), cluster, EVERY_THRESHOLD)
    assert 0.2 < limits.lower(saving, 0.05) < saving < limits.bets(saving, 0.05) < 0.52
    one, saving = limits_of(y, p, np.ones(2000), cluster, Thresholds(0.25, 0.25))
    assert 0.15 < one.lower(saving, 0.05) < saving


def test_blocks_hold_the_rows_of_their_entries():
    rng = np.random.default_rng(6)
    p = rng.beta(2, 600, 50_000)
    source = ClusteredRows.of(check_observations(rng.random(p.size) < p, p), rng.integers(0, 300, p.size))
    table = split_at_savings(source, EVERY_THRESHOLD, lambda _: [SAVING])
    assert (table.low < table.high).any()
    rows = ClusterLimits(source, table, Dependence()).rows
    assert (np.diff(rows.borders) > 0.0).all()
    held = np.bincount(rows.sums.block, weights=rows.sums.rows, minlength=rows.blocks)
    assert held.tolist() == np.add.reduceat(table.rows, rows.first).tolist()
