"""The worst interval of rows in clusters: the search against every interval, tried one by one."""

import math

import brute_force
import numpy as np
import pytest
from cluster_cases import cluster_limits, interval_sums
from hypothesis import given
from hypothesis import strategies as st

from calibrant.certificates import cluster_search
from calibrant.certificates.cluster_limits import growth_rest
from calibrant.certificates.cluster_search import FIXED_BORDERS, Weighing, largest_growth

DELTA = 0.05
BLOCKS = st.sampled_from((1, 2, 3, 7, 300))
PATCH = pytest.MonkeyPatch()
CLUSTERS = st.sampled_from((1, 2, 3, 8, 30))


@pytest.fixture
def _any_blocks():
    """Restore how forecasts are cut, which examples change."""
    yield
    PATCH.undo()


def cut_into(blocks, many=False):
    """Cut forecasts into so many blocks, with the bounds for few clusters or for many."""
    PATCH.setattr(cluster_search, "block_count", lambda _: blocks)
    PATCH.setattr(cluster_search, "_DENSE", 0 if many else 2**20)


def visits(seed, clusters, most_rows, shared=0.3, distinct=None):
    """Return outcomes, forecasts and labels: shared luck of a cluster on some of its rows."""
    rng = np.random.default_rng(seed)
    label = np.repeat(np.arange(clusters), rng.integers(1, most_rows + 1, clusters))
    p = rng.random(label.size) if distinct is None else rng.integers(0, distinct, label.size) / distinct
    luck = np.where(rng.random(label.size) < shared, rng.random(clusters)[label], rng.random(label.size))
    return (luck < p).astype(float), p, label


def exact_growth(sums, rate, sign):
    """The most that bets grow on any interval: 0 at least, on the empty one."""
    return -float(np.log1p(-rate * sign * sums).sum(axis=1).min())


@pytest.mark.usefixtures("_any_blocks")
class TestBoundsAreBounds:
    @given(rows=brute_force.rows(), count=CLUSTERS, blocks=BLOCKS, many=st.booleans(), seed=st.integers(0, 2**16))
    def test_no_interval_grows_more(self, rows, count, blocks, many, seed):
        y, p, w = rows
        rng = np.random.default_rng(seed)
        label = rng.integers(0, count, p.size)
        cut_into(blocks, many)
        limits = cluster_limits(y, p, label, w)
        sums, size = interval_sums(y, p, label, w)
        assert limits.rows.size == pytest.approx(size)
        scale = float(size.max())
        for sign in (1.0, -1.0):
            weight, share = rng.exponential(size=limits.count), float(rng.exponential()) / scale
            less = rng.exponential(size=limits.count) if rng.random() < 0.5 else None
            each = sign * (1.0 - (np.zeros(limits.count) if less is None else less))
            most = max(float((sums @ each + share * sums**2 @ weight).max()), 0.0)
            found = largest_growth(Weighing(limits.rows, weight), sign, 1.0, share, less)
            assert found >= most - 1e-9 * scale
            if most > 0.0:  # what others have reached is not looked at again
                again = largest_growth(Weighing(limits.rows, weight), sign, 1.0, share, less, at_least=2.0 * found)
                assert again == 2.0 * found

    @given(
        clusters=st.integers(1, 40), most_rows=st.integers(1, 6), blocks=st.integers(2, 9), seed=st.integers(0, 2**16)
    )
    def test_crossings_are_never_passed_and_never_looser(self, clusters, most_rows, blocks, seed):
        y, p, label = visits(seed, clusters, most_rows)
        rng = np.random.default_rng(seed)
        cut_into(blocks, many=True)
        rows = cluster_limits(y, p, label).rows
        weight = rng.exponential(size=rows.clusters)
        crossings = rows.crossings(weight)
        assert crossings is not None
        after, before, both = crossings
        matrix = np.zeros((rows.blocks, rows.clusters))
        matrix[rows.sums.block, rows.sums.cluster] = rows.sums.residual
        most = np.zeros_like(matrix)
        most[rows.sums.block, rows.sums.cluster] = rows.most_inside
        first, last = np.triu_indices(rows.blocks, 1)
        for one, two in zip(first, last, strict=True):
            between = np.abs(matrix[one + 1 : two].sum(axis=0))
            assert after[one, two - 1] == pytest.approx(float((weight * most[one]) @ between), abs=1e-9)
            assert before[one + 1, two] == pytest.approx(float((weight * most[two]) @ between), abs=1e-9)
            assert both[one, two] == pytest.approx(float((weight * most[one]) @ most[two]), abs=1e-9)
        weighing = Weighing(rows, weight)
        radius = weighing.radius
        loose = (np.sqrt(weighing.squares[first + 1, last]) + radius[first] + radius[last]) ** 2
        assert (weighing.most_squares(first, last, radius) <= loose).all()

    @given(rows=brute_force.rows(), count=CLUSTERS, blocks=BLOCKS, seed=st.integers(0, 2**16))
    def test_reach_is_out_of_reach(self, rows, count, blocks, seed):
        y, p, w = rows
        label = np.random.default_rng(seed).integers(0, count, p.size)
        cut_into(blocks)
        limits = cluster_limits(y, p, label, w)
        sums, size = interval_sums(y, p, label, w)
        for sign in (1.0, -1.0):
            reach = limits.rows.reach(sign)
            assert (reach >= (sign * sums).max(axis=0) - 1e-9 * size).all()
            assert (reach <= size * (1.0 + 1e-9)).all()

    @given(rows=brute_force.rows(), count=CLUSTERS, blocks=BLOCKS, seed=st.integers(0, 2**16))
    def test_limits_are_at_least_those_of_logarithms(self, rows, count, blocks, seed):
        y, p, w = rows
        label = np.random.default_rng(seed).integers(0, count, p.size)
        cut_into(blocks)
        limits = cluster_limits(y, p, label, w)
        sums, size = interval_sums(y, p, label, w)
        exponent = math.log(1.0 / (0.98 * DELTA))
        at_least = 0.0
        for rate in limits._rates(limits.largest, DELTA):
            x = rate / size.max()
            grown = max(exact_growth(sums, x, sign) for sign in (1.0, -1.0))
            at_least = max(at_least, -math.expm1(-(grown + exponent) / size.size) * size.size / (size.sum() * x))
        assert limits.bets(DELTA) >= min(at_least, 1.0) * (1.0 - 1e-9)
        assert limits.bets(DELTA) >= limits.least_limit(DELTA) * (1.0 - 1e-9)

    @given(rows=brute_force.rows(), count=CLUSTERS, blocks=BLOCKS, seed=st.integers(0, 2**16))
    def test_ratios_are_excluded_by_logarithms_too(self, rows, count, blocks, seed):
        y, p, w = rows
        label = np.random.default_rng(seed).integers(0, count, p.size)
        cut_into(blocks)
        sums, size = interval_sums(y, p, label, w)
        stated = 1.5 * float(size.max())
        limits = cluster_limits(y, p, label, w, max_size=stated)
        error = limits.bets(DELTA)
        if error < 1.0:
            for rate in limits._rates(stated, DELTA):
                gains = [np.log1p(rate / stated * (error * size - sign * sums)).sum(axis=1) for sign in (1.0, -1.0)]
                assert np.min(gains) >= math.log(1.0 / (0.98 * DELTA)) - 1e-9

    @given(rows=brute_force.rows(), count=CLUSTERS, blocks=BLOCKS, seed=st.integers(0, 2**16))
    def test_evidence_is_at_most_that_of_logarithms(self, rows, count, blocks, seed):
        y, p, w = rows
        label = np.random.default_rng(seed).integers(0, count, p.size)
        cut_into(blocks)
        limits = cluster_limits(y, p, label, w)
        evidence = limits._evidence
        error = 0.7
        weight = np.ones(p.size) if w is None else w
        code = np.unique(label[weight > 0.0], return_inverse=True)[1]
        y, p, weight = y[weight > 0.0], p[weight > 0.0], weight[weight > 0.0]
        size = np.bincount(code, weights=weight)
        prefix = np.array([np.bincount(code, weights=weight * (y - p) * (p < end)) for end in (*FIXED_BORDERS, np.inf)])
        logs = [
            np.log(evidence.prior)
            + np.log1p(x * (sign * (prefix[evidence.end] - prefix[evidence.begin]) - error * size)).sum(axis=1)
            for sign in (1.0, -1.0)
            for x in evidence.rates
        ]
        exact = np.logaddexp.reduce(np.concatenate(logs)) - math.log(2.0 * evidence.rates.size)
        assert evidence.prior.sum() == pytest.approx(1.0)
        assert evidence.against(error, error) <= exact + 1e-9

    @given(rows=brute_force.rows(), count=CLUSTERS, blocks=BLOCKS, seed=st.integers(0, 2**16))
    def test_large_samples_have_the_most_of_all_intervals(self, rows, count, blocks, seed):
        y, p, w = rows
        label = np.random.default_rng(seed).integers(0, count, p.size)
        cut_into(blocks)
        sums, size = interval_sums(y, p, label, w)
        if size.size < 2:
            return
        more = size.size / (size.size - 1.0)
        residual = sums.sum(axis=1)
        error = float(np.abs(residual).max() / size.sum())
        for stated, off in ((None, 0.0), (2.0 * float(size.max()), error)):
            limits = cluster_limits(y, p, label, w, max_size=stated)
            spread = [np.sqrt(more * ((sign * sums - off * size) ** 2).sum(axis=1)) for sign in (1.0, -1.0)]
            most = max(float((residual + 1.645 * spread[0]).max()), float((1.645 * spread[1] - residual).max()))
            assert limits.large_sample(1.645) >= min(most / size.sum(), 1.0) * (1.0 - 1e-9) - 1e-12


class TestBoundsAreTight:
    @pytest.mark.parametrize(("clusters", "most", "distinct"), [(40, 20, None), (120, 6, None), (150, 12, 40)])
    def test_on_rows_like_those_of_visits(self, clusters, most, distinct):
        """The bound of what stands in is within 2% of the most; with few forecasts it is the most."""
        y, p, label = visits(clusters, clusters, most, distinct=distinct)
        limits = cluster_limits(y, p, label)
        sums, size = interval_sums(y, p, label)
        for sign in (1.0, -1.0):
            for rate in (0.9, 0.2):
                x = rate / float(size.max())
                weight = x**2 * growth_rest(x * limits.rows.reach(sign))
                found = largest_growth(Weighing(limits.rows, weight), sign, x, 1.0)
                most_of_all = float((sign * x * sums.sum(axis=1) + sums**2 @ weight).max())
                assert most_of_all * (1.0 - 1e-9) <= found <= most_of_all * (1.0 + (1e-9 if distinct else 0.02))

    def test_what_stands_in_costs_little(self):
        y, p, label = visits(7, 80, 8)
        limits = cluster_limits(y, p, label)
        sums, size = interval_sums(y, p, label)
        exponent = math.log(1.0 / (0.98 * DELTA))
        exact = 0.0
        for rate in limits._rates(limits.largest, DELTA):
            x = rate / float(size.max())
            grown = max(exact_growth(sums, x, sign) for sign in (1.0, -1.0))
            exact = max(exact, -math.expm1(-(grown + exponent) / size.size) * size.size / (size.sum() * x))
        assert exact <= limits.bets(DELTA) <= 1.03 * exact

    def test_few_blocks_cost_little_and_never_help(self, monkeypatch):
        y, p, label = visits(8, 100, 10)
        fine = cluster_limits(y, p, label).bets(DELTA)
        monkeypatch.setattr(cluster_search, "block_count", lambda _: 24)
        coarse = cluster_limits(y, p, label).bets(DELTA)
        assert fine * (1.0 - 1e-3) <= coarse <= 1.25 * fine


class TestWhatPlaysNoPart:
    Y, P, LABEL = visits(3, 40, 9, distinct=25)
    W = np.random.default_rng(3).exponential(size=P.size)

    def every(self, limits):
        return np.array(
            [
                limits.bets(DELTA),
                limits.bets(DELTA, given=True),
                limits.hoeffding_margin(DELTA),
                limits.large_sample(1.645),
                limits.lower(0.3, 0.9),
                limits.log_evidence(),
                limits.border_error,
                *limits.noise(0)[::100],
            ]
        )

    def test_order_of_rows_and_names_of_clusters(self):
        found = self.every(cluster_limits(self.Y, self.P, self.LABEL, self.W))
        order = np.random.default_rng(0).permutation(self.P.size)
        names = np.random.default_rng(1).permutation(40)
        other = cluster_limits(self.Y[order], self.P[order], names[self.LABEL][order], self.W[order])
        assert self.every(other) == pytest.approx(found, rel=1e-10)

    def test_scale_of_weights(self):
        found = self.every(cluster_limits(self.Y, self.P, self.LABEL, self.W))
        assert self.every(cluster_limits(self.Y, self.P, self.LABEL, 1e-3 * self.W)) == pytest.approx(found, rel=1e-9)

    def test_rows_of_weight_zero(self):
        w = np.where(self.LABEL % 4 == 0, 0.0, self.W)
        kept = w > 0
        found = self.every(cluster_limits(self.Y[kept], self.P[kept], self.LABEL[kept], w[kept]))
        assert self.every(cluster_limits(self.Y, self.P, self.LABEL, w)) == pytest.approx(found, rel=1e-12)


class TestOddClusters:
    @pytest.mark.parametrize("forecast", [0.0, 1.0, 0.5])
    @pytest.mark.parametrize("outcome", [0.0, 1.0])
    def test_one_forecast_and_one_outcome(self, forecast, outcome):
        size = 40
        p, y, label = np.full(size, forecast), np.full(size, outcome), np.arange(size) // 4
        error = abs(forecast - outcome)
        for dependence in ({}, {"max_size": 4.0}, {"serial": 1}):
            limits = cluster_limits(y, p, label, **dependence)
            for upper in (limits.bets(DELTA), limits.bets(DELTA, given=True), limits.large_sample(1.645)):
                assert error <= upper <= 1.0
            assert limits.lower(error, DELTA) <= error

    def test_two_clusters_say_next_to_nothing(self):
        y, p, label = visits(1, 2, 30)
        limits = cluster_limits(y, p, label)
        assert limits.bets(DELTA) > 0.85
        assert limits.lower(0.3, DELTA) == 0.0

    def test_many_dependent_neighbours_say_nothing(self):
        y, p, label = visits(2, 50, 10)
        limits = cluster_limits(y, p, label, serial=400)
        assert limits.bets(DELTA) == 1.0
        assert limits.lower(0.3, DELTA) == 0.0

    def test_residuals_of_zero(self):
        p = np.repeat([0.0, 1.0], 50)
        limits = cluster_limits(p, p, np.arange(100) % 20)
        assert limits.bets(DELTA) == pytest.approx(limits.least_limit(DELTA))
        assert limits.large_sample(1.645) == 0.0
        assert limits.log_evidence() == pytest.approx(0.0, abs=1e-9)
        assert limits.design_effect == 1.0

    def test_sums_of_blocks_of_zero_hide_no_error(self, monkeypatch):
        """Residuals that cancel inside each block."""
        monkeypatch.setattr(cluster_search, "block_count", lambda _: 1)
        p = np.array([0.25, 0.25, 0.75, 0.75])
        y = np.array([1.0, 1.0, 0.0, 0.0])
        assert cluster_limits(y, p, np.array([0, 1, 0, 1])).large_sample(1.645) >= 0.75 / 2.0

    def test_hoeffding_counts_drawn_sizes_as_the_largest(self):
        y, p, label = visits(5, 60, 12)
        fixed = cluster_limits(y, p, label).hoeffding_margin(DELTA)
        drawn = cluster_limits(y, p, label, max_size=12.0).hoeffding_margin(DELTA)
        assert fixed == pytest.approx(math.sqrt(2.0 * math.log(20.0) * (np.bincount(label) ** 2).sum()) / p.size)
        assert drawn == pytest.approx(math.sqrt(2.0 * math.log(20.0) * 60 * 144) / p.size)

    def test_noise_is_that_of_the_intervals_it_knows(self, monkeypatch):
        """What intervals inside blocks show beyond those between blocks is no evidence."""
        monkeypatch.setattr(cluster_search, "block_count", lambda _: 4)
        y, p, label = visits(9, 80, 10)
        limits = cluster_limits(y, p, label)
        estimate = float(np.ptp(limits.rows.entry_prefix)) / limits.total
        assert limits.border_error < estimate
        among = limits.noise(0)[949]
        assert estimate - limits.noise_quantile(DELTA, 0) == pytest.approx(limits.border_error - among)

    def test_clusters_that_count_once_have_equal_sizes(self):
        y, p, label = visits(6, 60, 12)
        limits = cluster_limits(y, p, label, once=True)
        assert limits.total == pytest.approx(60.0)
        assert limits.largest == pytest.approx(1.0)
