"""The limits equal slow, obvious computations; how often they hold is checked in guarantees/."""

import itertools
import math
from statistics import NormalDist

import brute_force
import numpy as np
import pytest
from brute_force import rows
from hypothesis import given
from hypothesis import strategies as st
from row_sources import array_rows, first_grid
from scipy.stats import binom, norm, poisson

from calibrant import Tally, certify, confidence_interval, cutoff_calibration_error
from calibrant.certificates import betting, margins
from calibrant.certificates.methods.normal import normal_lower_margin, normal_margin, normal_upper
from calibrant.core.chernoff import chernoff_interval
from calibrant.core.laws import normal_quantile
from calibrant.measures.witnesses import interval_weight
from calibrant.rows import refinement
from calibrant.rows.checks import Observations
from calibrant.rows.grids import Grid
from calibrant.rows.weights import effective_rows

DELTAS = (0.01, 0.05, 0.2, 0.5)


def intervals(p):
    """Yield the rows of every interval of forecasts, with tied rows in it all or none."""
    values = sorted(set(np.asarray(p, dtype=float) + 0.0))
    for low, high in itertools.combinations_with_replacement(values, 2):
        yield (p >= low) & (p <= high)


def betting_limit(y, p, rates, delta):
    """The limit as the theorem states it, row by row."""
    exponent = math.log(1.0 / (0.98 * delta))
    limits = []
    for rate in rates:
        sums = [-np.log(1.0 - rate * sign * (y - p)[inside]).sum() for inside in intervals(p) for sign in (1, -1)]
        limits.append((1.0 - math.exp(-(max(0.0, *sums) + exponent) / p.size)) / rate)
    return max(limits)


def bernstein_limit(y, p, w, rates, delta):
    """The limit for fractions and weights as the theorem states it, row by row."""
    exponent = math.log(1.0 / (0.98 * delta))
    share = w / w.max()
    limits = []
    for rate in rates:
        price = -math.log(1.0 - rate) - rate
        scores = [rate * share * sign * (y - p) + price * np.square(share * (y - p)) for sign in (1, -1)]
        growth = max(0.0, *(score[inside].sum() for inside in intervals(p) for score in scores))
        limits.append((1.0 - math.exp(-(growth + exponent) / p.size)) / (rate * share.mean()))
    return max(limits)


def bernstein_scores_limit(tally, rates, delta):
    """The same for many rows of unit weight, in one pass for each rate and sign."""
    limits = []
    for rate in rates:
        price = -math.log(1.0 - rate) - rate
        curves = [
            np.concatenate([[0.0], np.cumsum(rate * sign * tally.residual + price * tally.residual_square)])
            for sign in (1, -1)
        ]
        growth = max((curve - np.minimum.accumulate(curve)).max() for curve in curves)
        limits.append((1.0 - math.exp(-(growth - math.log(0.98 * delta)) / tally.row_total)) / rate)
    return max(limits)


def some_rows(seed, *, size=40, ties=False, fractions=False, weights=False):
    rng = np.random.default_rng(seed)
    p = rng.choice([0.0, 0.2, 0.35, 0.7, 1.0], size=size) if ties else rng.random(size)
    chance = np.clip(p + rng.normal(0, 0.3), 0, 1)
    y = rng.beta(2, 3, size) if fractions else (rng.random(size) < chance).astype(float)
    return y, p, rng.lognormal(size=size) if weights else None


class TestAdaptiveUpper:
    @pytest.mark.parametrize("delta", DELTAS)
    @pytest.mark.parametrize("ties", [False, True])
    @pytest.mark.parametrize("seed", range(4))
    def test_equals_the_largest_bet_over_all_intervals_signs_and_rates(self, seed, ties, delta):
        y, p, _ = some_rows(seed, ties=ties)
        tally = Tally.from_arrays(y, p)
        expected = betting_limit(y, p, betting.bet_rates(tally, delta), delta)
        assert betting.adaptive_upper(tally, tally, delta) == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize("delta", DELTAS)
    @pytest.mark.parametrize("ties", [False, True])
    @pytest.mark.parametrize("kind", [{"fractions": True}, {"weights": True}, {"fractions": True, "weights": True}])
    def test_equals_the_largest_bernstein_sum_for_fractions_and_weights(self, kind, ties, delta):
        y, p, w = some_rows(5, ties=ties, **kind)
        tally = Tally.from_arrays(y, p, sample_weight=w)
        rates = betting.bet_rates(tally, delta) if w is None else betting.square_rates(tally, delta)
        expected = bernstein_limit(y, p, np.ones(p.size) if w is None else w, rates, delta)
        assert betting.adaptive_upper(tally, tally, delta) == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize("kind", [{}, {"fractions": True}, {"weights": True}])
    def test_many_forecasts_are_scored_one_rate_after_the_other_to_the_same_effect(self, kind, monkeypatch):
        y, p, w = some_rows(8, **kind)
        tally = Tally.from_arrays(y, p, sample_weight=w)
        together = betting.adaptive_upper(tally, tally, 0.05)
        monkeypatch.setattr(betting, "_AT_ONCE", 0)
        monkeypatch.setattr(betting, "_scores_at", None)
        assert betting.adaptive_upper(tally, tally, 0.05) == pytest.approx(together, abs=1e-12)

    @given(data=rows(), delta=st.sampled_from(DELTAS))
    def test_is_above_the_estimate_and_finite(self, data, delta):
        y, p, w = data
        tally = Tally.from_arrays(y, p, sample_weight=w)
        limit = betting.adaptive_upper(tally, tally, delta)
        # Beyond 1 every limit is as good as 1: it says nothing.
        assert math.isfinite(limit)
        assert limit > 0.0
        assert limit >= min(brute_force.cutoff(y, p, w), 1.0) - 1e-12

    @pytest.mark.parametrize("kind", [{}, {"fractions": True}, {"weights": True}])
    def test_of_a_measure_equals_that_of_intervals_where_all_rows_are_the_worst_interval(self, kind):
        # All residuals are positive, so that the worst interval holds all rows; a bet is never worse than the squares.
        rng = np.random.default_rng(3)
        p = 0.5 * rng.random(30)
        y = np.ones(30) if "fractions" not in kind else 0.5 + 0.5 * rng.random(30)
        w = rng.lognormal(size=30) if "weights" in kind else None
        tally = Tally.from_arrays(y, p, sample_weight=w)
        of_estimate = betting.adaptive_upper_of(cutoff_calibration_error(tally), tally, 0.05)
        assert of_estimate == pytest.approx(
            bernstein_limit(y, p, np.ones(30) if w is None else w, betting.square_rates(tally, 0.05), 0.05), abs=1e-12
        )

    @pytest.mark.parametrize("delta", DELTAS)
    def test_swapping_events_and_non_events_changes_nothing(self, delta):
        y, p, _ = some_rows(6, size=200)
        tally, mirrored = Tally.from_arrays(y, p), Tally.from_arrays(1 - y, 1 - p)
        expected = betting.adaptive_upper(tally, tally, delta)
        assert betting.adaptive_upper(mirrored, mirrored, delta) == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize("kind", [{}, {"fractions": True}, {"weights": True}])
    def test_row_order_and_merging_change_nothing(self, kind):
        y, p, w = some_rows(7, size=300, ties=True, **kind)
        whole = Tally.from_arrays(y, p, sample_weight=w)
        expected = betting.adaptive_upper(whole, whole, 0.05)
        order = np.random.default_rng(0).permutation(p.size)
        parts = [
            Tally.from_arrays(y[part], p[part], sample_weight=None if w is None else w[part])
            for part in (order[:100], order[100:])
        ]
        merged = parts[0] + parts[1]
        assert betting.adaptive_upper(merged, merged, 0.05) == pytest.approx(expected, abs=1e-12)


class TestOneBetCoversFractionsAndOutcomesOf01:
    """Whether all outcomes are 0/1 chooses a formula, never the event that may fail."""

    @pytest.mark.parametrize("delta", DELTAS)
    @pytest.mark.parametrize("kind", [{}, {"ties": True}, {"fractions": True}, {"fractions": True, "ties": True}])
    @pytest.mark.parametrize("seed", range(4))
    def test_the_limit_is_never_below_the_bet_at_the_same_rates(self, seed, kind, delta):
        y, p, _ = some_rows(seed, **kind)
        y[0] = 0.5 if seed % 2 else y[0]  # a single fraction among outcomes of 0/1
        tally = Tally.from_arrays(y, p)
        bet = betting_limit(y, p, betting.bet_rates(tally, delta), delta)
        assert betting.adaptive_upper(tally, tally, delta) >= bet - 1e-12

    @pytest.mark.parametrize("delta", DELTAS)
    @pytest.mark.parametrize("seed", range(4))
    def test_nor_are_the_limits_of_a_mean(self, seed, delta):
        y, p, _ = some_rows(seed)
        y[0] = 0.5
        tally = Tally.from_arrays(y, p)
        low, high = betting.mean_limits(tally, delta)
        exponent = math.log(1.0 / (0.98 * delta))
        for sign, limit in ((1, high), (-1, -low)):
            for rate in betting.bet_rates(tally, delta):
                growth = -np.log1p(-rate * sign * (y - p)).sum()
                assert limit >= min((1.0 - math.exp(-(growth + exponent) / y.size)) / rate, 1.0) - 1e-12

    @pytest.mark.parametrize("delta", [0.01, 0.05, 0.2])
    def test_a_fraction_among_many_outcomes_moves_the_limit_little(self, delta):
        rng = np.random.default_rng(20)
        p = rng.random(5000)
        y = (rng.random(5000) < p).astype(float)
        whole = Tally.from_arrays(y, p)
        y[7] = 0.999 if y[7] else 0.001
        mixed = Tally.from_arrays(y, p)
        ratio = betting.adaptive_upper(mixed, mixed, delta) / betting.adaptive_upper(whole, whole, delta)
        assert 1.0 < ratio < 1.03

    @pytest.mark.parametrize("delta", [0.005, 0.05, 0.2])
    @pytest.mark.parametrize("law", ["uniform", "rare", "rarer", "constant", "sure"])
    @pytest.mark.parametrize("size", [200, 1000, 5000])
    def test_calibrated_outcomes_of_01_keep_the_limit_that_their_forecasts_set(self, monkeypatch, law, size, delta):
        rng = np.random.default_rng([size, len(law)])
        p = {
            "uniform": rng.random(size),
            "rare": rng.beta(0.5, 20, size),
            "rarer": rng.beta(0.5, 200, size),
            "constant": np.full(size, 0.01),
            "sure": rng.beta(0.05, 0.05, size),
        }[law]
        tallies = [Tally.from_arrays(rng.random(size) < p, p) for _ in range(10)]
        found = np.array([betting.adaptive_upper(tally, tally, delta) for tally in tallies])
        monkeypatch.setattr(betting, "_SQUARE_MORE", math.inf)
        alone = np.array([betting.adaptive_upper(tally, tally, delta) for tally in tallies])
        assert (found <= 1.01 * alone).all()
        assert np.median(found / alone) == pytest.approx(1.0, abs=1e-12)

    @pytest.mark.parametrize(("concentration", "size", "most"), [(50, 1000, 1.05), (50, 20_000, 1.04), (2, 5000, 1.02)])
    def test_fractions_that_vary_little_lose_little_to_it(self, concentration, size, most):
        # Rates of their own would aim at the mean of r^2 itself.
        rng = np.random.default_rng(21)
        p = rng.uniform(0.2, 0.8, size)
        tally = Tally.from_arrays(rng.beta(concentration * p, concentration * (1 - p)), p)
        own = bernstein_scores_limit(tally, betting.square_rates(tally, 0.05), 0.05)
        assert betting.adaptive_upper(tally, tally, 0.05) < most * own


class TestWeights:
    @pytest.mark.parametrize("factor", [1e-6, 0.3, 8.0, 1e6])
    @pytest.mark.parametrize("fractions", [False, True])
    def test_scaling_all_weights_changes_nothing(self, factor, fractions):
        y, p, w = some_rows(8, size=200, fractions=fractions, weights=True)
        tally = Tally.from_arrays(y, p, sample_weight=w)
        scaled = Tally.from_arrays(y, p, sample_weight=factor * w)

        def limits(of):
            return [
                effective_rows(of),
                betting.adaptive_upper(of, of, 0.05),
                betting.adaptive_upper_of(0.1, of, 0.05),
                normal_upper(of, of, 0.05),
                normal_margin(of, 0.05),
                normal_lower_margin(of, 0.05),
                margins.hoeffding_lower_margin(of, 0.05),
                margins.uniform_lower_margin(of, 0.05),
                *betting.mean_limits(of, 0.05),
            ]

        assert limits(scaled) == pytest.approx(limits(tally), rel=1e-10)

    def test_rows_of_weight_zero_change_nothing(self):
        y, p, w = some_rows(9, size=100, weights=True)
        kept = np.random.default_rng(1).random(100) < 0.7
        with_zeros = Tally.from_arrays(y, p, sample_weight=w * kept)
        without = Tally.from_arrays(y[kept], p[kept], sample_weight=w[kept])
        for limit in (betting.adaptive_upper, normal_upper):
            assert limit(with_zeros, with_zeros, 0.05) == limit(without, without, 0.05)

    def test_effective_rows_are_all_rows_for_equal_weights_and_fewer_otherwise(self):
        y, p, w = some_rows(10, size=100, weights=True)
        assert effective_rows(Tally.from_arrays(y, p)) == 100
        assert effective_rows(Tally.from_arrays(y, p, sample_weight=np.full(100, 3.7))) == pytest.approx(100)
        weighted = effective_rows(Tally.from_arrays(y, p, sample_weight=w))
        assert weighted == pytest.approx(w.sum() ** 2 / np.square(w).sum())
        assert weighted < 100


class TestRates:
    @pytest.mark.parametrize("delta", [1e-6, 0.01, 0.05, 0.2, 0.5])
    @pytest.mark.parametrize("size", [1, 2, 5, 10, 15, 16, 17, 18, 20, 30, 100, 1000, 10**6])
    def test_the_rate_falls_as_the_variance_grows(self, monkeypatch, size, delta):
        # With the variance known, the interval for it is a point and so are the rates. Were the rate not monotone, it
        # could lie outside the two found from the ends of the interval.
        monkeypatch.setattr(betting, "chernoff_interval", lambda total, _: (total, total))
        rates = []
        for variance in np.linspace(0.0, 0.5, 400):
            slowest, fastest = betting._rates_for(0.0, 2.0 * variance * size, size, delta)
            assert slowest == fastest
            rates.append(slowest)
        assert (np.diff(rates) <= 0.0).all()
        assert rates[0] == betting.HIGHEST_RATE
        assert min(rates) > 0.0

    @pytest.mark.parametrize("size", [20, 200, 2000])
    @pytest.mark.parametrize("chance", [0.001, 0.05, 0.5])
    def test_the_rate_of_the_population_is_nearly_always_between_them(self, monkeypatch, size, chance):
        delta, forecast = 0.5, 0.02
        coarse = (math.floor(forecast * 4096) + 0.5) / 4096
        spread = size * coarse * (1.0 - coarse)
        square = size * (chance * (1 - forecast) ** 2 + (1 - chance) * forecast**2)
        with monkeypatch.context() as known:
            known.setattr(betting, "chernoff_interval", lambda total, _: (total, total))
            rate, _ = betting._rates_for(spread, square, size, delta)
        missing = []
        for events in range(size + 1):
            slowest, fastest = betting.bet_rates(Tally.from_counts([forecast], [size], [events]), delta)
            missing.append(not slowest <= rate <= fastest)
        chances = binom.pmf(np.arange(size + 1), size, chance)
        assert chances[missing].sum() <= margins.VARIANCE_SHARE * delta

    @pytest.mark.parametrize("seed", range(30))
    def test_no_rate_between_two_has_a_larger_bound_than_both(self, seed):
        y, p, w = some_rows(seed, size=40, ties=seed % 2 == 0, fractions=seed % 3 == 0, weights=seed % 5 == 0)
        w = np.ones(40) if w is None else w
        rates = np.sort(np.random.default_rng(seed).uniform(0.01, 0.9, size=12))
        limits = [bernstein_limit(y, p, w, [rate], 0.05) for rate in rates]
        if seed % 3 and seed % 5:
            limits = [betting_limit(y, p, [rate], 0.05) for rate in rates]
        for k in range(1, 11):
            assert limits[k] <= max(min(limits[:k]), min(limits[k + 1 :])) + 1e-12

    def test_the_two_are_near_where_there_are_many_rows(self):
        y, p, _ = some_rows(11, size=20_000)
        slowest, fastest = betting.bet_rates(Tally.from_arrays(y, p), 0.05)
        assert slowest < fastest < 1.1 * slowest

    @pytest.mark.parametrize("delta", DELTAS)
    def test_they_do_not_depend_on_how_finely_rows_are_added_up(self, delta):
        y, p, _ = some_rows(12, size=5000)
        coarse = array_rows(y, p).histogram(Grid(12, 0.0, 1.0))
        assert betting.bet_rates(coarse, delta) == betting.bet_rates(Tally.from_arrays(y, p), delta)


class TestChernoffInterval:
    @pytest.mark.parametrize("delta", [1e-9, 1e-4, 0.05, 0.5])
    @pytest.mark.parametrize("total", [0.5, 1.0, 17.3, 1e3, 1e7])
    def test_solves_its_defining_equation(self, total, delta):
        low, high = chernoff_interval(total, delta)
        assert 0.0 < low < total < high
        for mean in (low, high):
            tail = total * math.log(total / mean) - total + mean
            assert tail == pytest.approx(math.log(1.0 / delta), rel=1e-6)

    def test_of_nothing_is_what_no_events_allow(self):
        assert chernoff_interval(0.0, 0.05) == (0.0, pytest.approx(math.log(20.0)))

    @pytest.mark.parametrize("delta", [0.01, 0.2])
    @pytest.mark.parametrize("mean", [0.01, 0.3, 2.0, 25.0, 400.0])
    def test_each_side_fails_with_probability_at_most_delta(self, mean, delta):
        counts = np.arange(int(mean + 20 * math.sqrt(mean) + 50))
        low, high = np.array([chernoff_interval(float(count), delta) for count in counts]).T
        size = max(1, math.ceil(2 * mean))
        for law in (poisson(mean), binom(size, mean / size)):
            chance = law.pmf(counts)
            assert chance[low > mean].sum() <= delta
            assert chance[high < mean].sum() <= delta

    def test_grows_with_the_total(self):
        limits = np.array([chernoff_interval(total, 0.01) for total in np.linspace(0, 50, 400)])
        assert (np.diff(limits, axis=0) >= 0.0).all()


class TestNormalUpper:
    def every_interval(self, tally, delta):
        """Largest |mean| + z standard errors over intervals, by trying all of them; and the margin of that one."""
        z = -NormalDist().inv_cdf(delta)
        curve = tally.residual_prefix()
        square = np.concatenate([[0.0], np.cumsum(tally.weight_square_residual_square)])
        begin, end = np.triu_indices(curve.size, 1)
        margin = z * np.sqrt(square[end] - square[begin])
        limit = np.abs(curve[end] - curve[begin]) + margin
        worst = limit.argmax()
        return limit[worst] / tally.weight_total, margin[worst] / tally.weight_total

    @pytest.mark.parametrize("kind", [{}, {"ties": True}, {"fractions": True}, {"weights": True}])
    @pytest.mark.parametrize("delta", [0.01, 0.05, 0.2])
    def test_is_at_least_that_of_every_interval_and_little_more(self, kind, delta):
        # A line above the square root costs little; that one line must serve all intervals costs a few per cent.
        for seed in range(20):
            y, p, w = some_rows(seed, size=150, **kind)
            tally = Tally.from_arrays(y, p, sample_weight=w)
            limit, margin = self.every_interval(tally, delta)
            found = normal_upper(tally, tally, delta)
            assert limit - 1e-12 <= found <= limit + 0.05 * margin

    @given(data=rows(), delta=st.sampled_from([0.01, 0.05, 0.2]))
    def test_is_between_that_of_every_interval_and_the_simple_one(self, data, delta):
        y, p, w = data
        tally = Tally.from_arrays(y, p, sample_weight=w)
        found = normal_upper(tally, tally, delta)
        assert found >= self.every_interval(tally, delta)[0] - 1e-12
        assert found <= brute_force.cutoff(y, p, w) + normal_margin(tally, delta) + 1e-12

    def test_keeps_its_digits_up_to_the_highest_confidence_that_can_be_written(self):
        tally = Tally.from_counts([0.3], [1000], [300])
        for delta in (0.05, 1e-10, 2.0**-53, 2.0**-54, 1e-300):
            assert normal_quantile(delta) == pytest.approx(float(norm.isf(delta)), rel=1e-12)
            assert normal_margin(tally, delta) == pytest.approx(norm.isf(delta) * math.sqrt(0.21 / 1000), rel=1e-12)
        level = 1.0 - 2.0**-53
        for measure in ("cutoff", "smooth"):
            found = confidence_interval(tally, confidence_level=level, method="normal", measure=measure)
            assert 0.0 == found.lower < found.upper == pytest.approx(8.2935 * math.sqrt(0.21 / 1000), rel=0.06)

    def test_of_forecasts_that_are_always_right_is_zero(self):
        tally = Tally.from_arrays([0, 1, 1], [0, 1, 1])
        assert normal_upper(tally, tally, 0.05) == 0.0


MANY = 120_000  # above FEW_ROWS: the compiled two-pass way


@pytest.fixture(
    params=["uniform", "rare", "two decimals", "six decimals", "constant", "weighted", "fractional", "both"],
    scope="module",
)
def data(request):
    rng = np.random.default_rng(13)
    kind = request.param
    p = {
        "rare": rng.beta(0.5, 20, MANY),
        "two decimals": np.round(rng.random(MANY), 2),
        "six decimals": np.round(rng.random(MANY), 6),
        "constant": np.full(MANY, 0.3),
    }.get(kind, rng.random(MANY))
    y = rng.random(MANY) < np.where((p > 0.2) & (p < 0.4), 1.05 * p, p)
    if kind in ("fractional", "both"):
        y = np.clip(p + rng.normal(0, 0.2, MANY), 0, 1)
    return y, p, rng.lognormal(size=MANY) if kind in ("weighted", "both") else None


class TestRowsInsteadOfATally:
    def test_gives_the_same_limits(self, data):
        y, p, w = data
        tally = Tally.from_arrays(y, p, sample_weight=w)
        source = array_rows(y, p, w)
        table = refinement.split_at_extremes(source)
        for limit, delta in itertools.product((betting.adaptive_upper, normal_upper), (0.05, 0.2)):
            assert limit(source, table, delta) == pytest.approx(limit(tally, tally, delta), abs=1e-9)

    def test_gives_the_same_certificate(self, data):
        y, p, w = data
        mine = certify(y, p, sample_weight=w, max_error=0.02)
        other = certify(Tally.from_arrays(y, p, sample_weight=w), max_error=0.02)
        assert mine.verdict == other.verdict
        for name in ("estimate", "lower", "upper", "n_eff"):
            assert getattr(mine, name) == pytest.approx(getattr(other, name), abs=1e-9)

    @pytest.mark.parametrize("bits", [1, 3, 6])
    @pytest.mark.parametrize("kind", [{}, {"ties": True}, {"fractions": True}, {"weights": True}])
    def test_gives_the_same_limits_on_coarse_cells(self, monkeypatch, kind, bits):
        # Coarse cells make pruning, zooming and fetching happen on a handful of rows. The rates are those of fine ones.
        first_grid(monkeypatch, bits)
        for seed in range(10):
            y, p, w = some_rows(seed, size=400, **kind)
            tally = Tally.from_arrays(y, p, sample_weight=w)
            source = array_rows(y, p, w)
            for limit in (betting.adaptive_upper, normal_upper):
                assert limit(source, tally, 0.05) == pytest.approx(limit(tally, tally, 0.05), abs=1e-12)


class TestMargins:
    def test_of_the_paper(self):
        assert margins.paper_margin(10_000, 0.05) == pytest.approx((20 + math.sqrt(2 * math.log(20))) / 100)

    @pytest.mark.parametrize("rows", [1, 7, 40, 300])
    def test_of_a_constant_covers_every_chance_and_knows_how_often(self, rows):
        chance = np.linspace(0.0, 1.0, 101)
        count = np.arange(rows + 1)[:, None]
        law = binom.pmf(count, rows, chance)
        for error in (0.02, 0.1, 0.3, 0.7):
            missed = (law * (np.abs(count / rows - chance) > error)).sum(axis=0)
            assert missed.max() <= margins.constant_failure(rows, error) + 1e-12
        for delta in DELTAS:
            margin = margins.constant_margin(rows, delta)
            assert margins.constant_failure(rows, margin) == pytest.approx(delta if margin < 1.0 else 0.0, rel=1e-12)
        assert margins.constant_failure(rows, 0.0) == 1.0
        assert margins.constant_failure(rows, 1.0) == 0.0  # no mean is further off

    def test_of_hoeffding(self):
        assert margins.hoeffding_margin(10_000, 0.05) == pytest.approx(math.sqrt(2 * math.log(20)) / 100)

    @pytest.mark.parametrize("factor", [1.0, 1.5, 2.0])
    @pytest.mark.parametrize("kind", [{}, {"fractions": True}, {"weights": True}], ids=str)
    def test_below_the_estimate(self, factor, kind):
        y, p, w = some_rows(14, size=500, **kind)
        tally = Tally.from_arrays(y, p, sample_weight=w)
        w = np.ones(500) if w is None else w
        rows = w.sum() ** 2 / (w**2).sum()
        # The largest sum of squares, in units of the largest possible one, that leaves so few a chance of 0.02 delta.
        squares = np.square(w / w.max() * (y - p)).sum()
        most = np.linspace(squares, 500.0, 200_001)
        most = most[squares * np.log(squares / most) - squares + most <= math.log(1 / (0.02 * 0.05))].max()
        spread = min(1.0 / math.sqrt(rows), math.sqrt(most) * w.max() / w.sum())
        expected = 4 * factor * spread + math.sqrt(2 * math.log(1 / (0.98 * 0.05)) / rows)
        assert margins.uniform_lower_margin(tally, 0.05, factor) == pytest.approx(expected, rel=1e-4)
        expected = (4 * factor + math.sqrt(2 * math.log(20))) / math.sqrt(rows)
        if "weights" not in kind:
            assert factor * margins.monotone_margin(500, 0.05) < 0.9 * expected
            expected = factor * 3 * math.sqrt(math.log(2 * math.e / 0.05) / 1000)
        assert margins.hoeffding_lower_margin(tally, 0.05, factor) == pytest.approx(expected, rel=1e-12)

    def test_below_the_estimate_are_chosen_by_rows_level_and_class_alone(self):
        y, p, _ = some_rows(14, size=500)
        tally, other = Tally.from_arrays(y, p), Tally.from_arrays(np.zeros(500), np.full(500, 0.1))
        for delta, factor in itertools.product((1e-14, 1e-6, 0.05, 0.5), (1.0, 1.5, 2.0, 10.0, math.inf)):
            taken = margins.hoeffding_lower_margin(tally, delta, factor)
            assert taken == margins.hoeffding_lower_margin(other, delta, factor)
            symmetrised = (4 * factor + math.sqrt(2 * math.log(1 / delta))) / math.sqrt(500)
            assert taken == min(symmetrised, factor * margins.monotone_margin(500, delta))
            if (delta, factor) in ((1e-14, 1.0), (0.05, 10.0)):
                assert taken == symmetrised  # far out in the tail, or for weights that vary a lot

    @pytest.mark.parametrize("factor", [1.0, 1.5, 2.0])
    def test_below_the_estimate_the_variance_settles_more_than_monotony_does(self, factor):
        # So that the adaptive method has no use for the margin of monotone maps, however uncertain the outcomes are.
        rows = 100_000
        tally = Tally.from_counts([0.5], [rows], [rows // 2])
        for delta in (1e-6, 0.01, 0.05, 0.2, 0.5):
            assert margins.uniform_lower_margin(tally, delta, factor) < factor * margins.monotone_margin(rows, delta)

    def test_below_the_estimate_are_narrower_for_rare_events(self):
        rng = np.random.default_rng(15)
        p = rng.beta(0.5, 20, 20_000)
        tally = Tally.from_arrays(rng.random(p.size) < p, p)
        assert margins.uniform_lower_margin(tally, 0.05) < 0.7 * margins.hoeffding_lower_margin(tally, 0.05)

    @pytest.mark.parametrize("upper", [betting.adaptive_upper, normal_upper])
    def test_more_confidence_costs_more(self, upper):
        y, p, w = some_rows(16, size=300)
        for weights in (None, np.arange(1.0, 301.0)):
            tally = Tally.from_arrays(y, p, sample_weight=weights if weights is not None else w)
            limits = [upper(tally, tally, delta) for delta in (0.2, 0.05, 0.01, 1e-4)]
            assert limits == sorted(limits)


class TestSplitLower:
    def limit(self, tally, seed=0, delta=0.05):
        return betting.split_lower(tally, interval_weight, delta, seed)

    def test_row_order_and_merging_change_nothing_for_a_fixed_seed(self):
        y, p, _ = some_rows(17, size=400)
        expected = self.limit(Tally.from_arrays(y, p))
        order = np.random.default_rng(2).permutation(400)
        assert self.limit(Tally.from_arrays(y[order], p[order])) == expected
        first, second = order[:150], order[150:]
        merged = Tally.from_arrays(y[first], p[first]) + Tally.from_arrays(y[second], p[second])
        assert self.limit(merged) == expected

    def test_of_one_split_equals_the_bet_on_the_second_half(self, monkeypatch):
        monkeypatch.setattr(betting, "SPLITS", 1)
        y, p, _ = some_rows(18, size=400, ties=True)
        tally, delta = Tally.from_arrays(y, p), 0.1
        found, rest = tally.halves(5)
        assert found.row_total + rest.row_total == 400
        weigh = interval_weight(found)
        rate = betting.best_rate(
            rest.row_total * float(np.square(weigh(found.forecast)) @ found.residual_square) / found.row_total,
            1.0,
            math.log(1 / delta),
        )
        growth = 0.0
        for forecast, count, events in zip(rest.forecast, rest.rows, rest.events, strict=True):
            bet = rate * float(weigh(np.array([forecast]))[0])
            growth += events * math.log(1 + bet * (1 - forecast)) + (count - events) * math.log(1 - bet * forecast)
        expected = (math.exp((growth - math.log(1 / delta)) / rest.row_total) - 1) / rate
        assert self.limit(tally, seed=5, delta=delta) == pytest.approx(expected, abs=1e-12)

    def test_of_several_splits_is_where_their_evidence_averages_to_one_over_delta(self):
        y, p, _ = some_rows(18, size=400, ties=True)
        tally, delta = Tally.from_arrays(y, np.minimum(p + 0.3, 1.0)), 0.1
        limit = self.limit(tally, seed=5, delta=delta)
        splits = [
            betting._split_evidence(*halves, interval_weight, math.log(1 / delta))
            for halves in itertools.islice(tally.splits(5), betting.SPLITS)
        ]
        evidence = np.mean([math.exp(growth) / (1 + rate * limit) ** rows for growth, rate, rows in splits])
        assert evidence == pytest.approx(1 / delta)

    @pytest.mark.parametrize("size", [1, 2, 3, 7, 60, 400])
    @pytest.mark.parametrize("ties", [False, True])
    @pytest.mark.parametrize(
        "kind", [{}, {"fractions": True}, {"weights": True}], ids=["counted", "fractions", "weights"]
    )
    def test_splits_taken_together_are_the_splits_one_by_one(self, size, ties, kind, monkeypatch):
        y, p, w = some_rows(21, size=size, ties=ties, **kind)
        for forecast in (p, np.minimum(p + 0.3, 1.0), np.full(size, 0.5), np.zeros(size)):
            tally, exponent = Tally.from_arrays(y, forecast, sample_weight=w), math.log(1 / 0.1)
            splits = [
                betting._split_evidence(*halves, interval_weight, exponent)
                for halves in itertools.islice(tally.splits(5), betting.SPLITS)
            ]
            for at_once in (betting._AT_ONCE, 5 * size, 1):
                monkeypatch.setattr(betting, "_AT_ONCE", at_once)
                together = np.array(betting._interval_evidence(tally, exponent, 5))
                np.testing.assert_allclose(together, np.transpose(splits), rtol=1e-12, atol=1e-14)

    @pytest.mark.parametrize("ties", [False, True])
    def test_halves_hold_each_row_once(self, ties):
        y, p, _ = some_rows(19, size=400, ties=ties)
        tally = Tally.from_arrays(y, p)
        first, second = tally.halves(1)
        assert 150 < first.row_total < 250
        merged = first + second
        np.testing.assert_array_equal(merged.rows, tally.rows)
        np.testing.assert_array_equal(merged.events, tally.events)

    @pytest.mark.parametrize("kind", [{"fractions": True}, {"weights": True}, {"fractions": True, "weights": True}])
    @pytest.mark.parametrize("ties", [False, True])
    def test_halves_of_fractions_and_weights_hold_each_row_once(self, kind, ties):
        y, p, w = some_rows(19, size=400, ties=ties, **kind)
        tally = Tally.from_arrays(y, p, sample_weight=w)
        first, second = tally.halves(1)
        assert 150 < first.row_total < 250
        assert (first + second).fingerprint == tally.fingerprint
        order = np.random.default_rng(0).permutation(400)
        turned = Tally.from_arrays(y[order], p[order], sample_weight=None if w is None else w[order])
        assert turned.halves(1)[0].fingerprint == first.fingerprint
        again = list(itertools.islice(tally.splits(1), 2))
        assert again[0][0].fingerprint == first.fingerprint != again[1][0].fingerprint
        assert tally.halves(2)[0].fingerprint != first.fingerprint

    def test_halves_of_totals_alone_are_refused(self):
        totals = Tally.from_arrays([0.2, 0.4], [0.5, 0.5]).stretch(0, 1)
        with pytest.raises(ValueError, match=r"knows totals of fractions or weighted rows only.*; pass the arrays"):
            totals.halves(0)

    def test_one_of_two_rows_may_leave_a_half_empty(self):
        tally = Tally.from_arrays([0.2], [0.5])
        assert sorted(len(half) for half in tally.halves(0)) == [0, 1]
        assert self.limit(tally) == pytest.approx(-1.0)

    @pytest.mark.parametrize("weights", [False, True])
    def test_of_one_split_of_fractions_equals_the_bet_row_by_row(self, weights, monkeypatch):
        monkeypatch.setattr(betting, "SPLITS", 1)
        y, p, w = some_rows(23, size=300, ties=True, fractions=True, weights=weights)
        tally, delta = Tally.from_arrays(y, p, sample_weight=w), 0.1
        found, rest = tally.halves(5)
        weigh, rows, learned = interval_weight(found), rest.listed, found.listed
        assert rows is not None
        assert learned is not None
        share, stake = np.ones(rest.row_total), np.ones(found.row_total)
        if w is not None:
            assert rows.sample_weight is not None
            assert learned.sample_weight is not None
            largest = rows.sample_weight.max()
            share, stake = rows.sample_weight / largest, learned.sample_weight / largest
        squares = np.square(stake * weigh(learned.y_prob) * (learned.y_true - learned.y_prob))
        rate = betting.best_rate(rest.row_total * squares.mean(), 1.0, math.log(1 / delta))
        growth = math.fsum(math.log(1 + rate * bet) for bet in share * weigh(rows.y_prob) * (rows.y_true - rows.y_prob))
        expected = (math.exp((growth - math.log(1 / delta)) / rest.row_total) - 1) / (rate * share.mean())
        assert self.limit(tally, seed=5, delta=delta) == pytest.approx(expected, abs=1e-12)

    def test_fractions_that_all_happen_to_be_0_or_1_have_the_limit_of_counts(self):
        # One statement covers both, so that rows cannot choose between two.
        y, p, _ = some_rows(24, size=400)
        as_fractions = Tally.from_observations(Observations(y.astype(float), p, None, False))
        assert as_fractions.listed is not None
        assert self.limit(as_fractions) == pytest.approx(self.limit(Tally.from_arrays(y, p)), abs=1e-12)

    def test_of_fractions_and_weights_is_far_above_the_one_without_splitting(self):
        rng = np.random.default_rng(5)
        p = 0.2 + 0.5 * rng.random(1000)
        y = rng.beta(2 * (p + 0.15), 2 * (0.85 - p))
        for weight in (None, 1.0 + np.arange(1000) % 3):
            tally = Tally.from_arrays(y, p, sample_weight=weight)
            without = cutoff_calibration_error(tally) - margins.uniform_lower_margin(tally, 0.05)
            assert without < 0.05
            assert 0.11 < self.limit(tally) < 0.15

    def test_of_a_single_row_says_nothing(self):
        assert self.limit(Tally.from_arrays([1], [0.3])) == pytest.approx(-1.0)

    def test_finds_an_error_that_is_there(self):
        rng = np.random.default_rng(20)
        p = 0.5 * rng.random(4000)
        assert 0.15 < self.limit(Tally.from_arrays(rng.random(4000) < p + 0.2, p)) < 0.2


class TestMeanLimits:
    @pytest.mark.parametrize("kind", [{}, {"ties": True}, {"fractions": True}, {"weights": True}])
    def test_enclose_the_mean_residual(self, kind):
        for seed in range(5):
            y, p, w = some_rows(seed, size=300, **kind)
            tally = Tally.from_arrays(y, p, sample_weight=w)
            low, high = betting.mean_limits(tally, 0.05)
            assert -1.0 <= low < tally.residual_total / tally.weight_total < high <= 1.0

    def test_equal_the_bet_on_all_rows(self):
        y, p, _ = some_rows(21, size=100)
        tally = Tally.from_arrays(y, p)
        exponent = math.log(1.0 / (0.98 * 0.05))
        limits = [
            max(
                (1 - math.exp((np.log(1 - rate * sign * (y - p)).sum() - exponent) / 100)) / rate
                for rate in betting.bet_rates(tally, 0.05)
            )
            for sign in (1, -1)
        ]
        assert betting.mean_limits(tally, 0.05) == pytest.approx((-limits[1], limits[0]), abs=1e-12)

    def test_swap_when_events_and_non_events_do(self):
        y, p, _ = some_rows(22, size=100)
        low, high = betting.mean_limits(Tally.from_arrays(y, p), 0.05)
        assert betting.mean_limits(Tally.from_arrays(1 - y, 1 - p), 0.05) == pytest.approx((-high, -low), abs=1e-12)

    def test_of_no_rows_say_nothing(self):
        tally = Tally.from_arrays([0, 1], [0.2, 0.4])
        assert betting.mean_limits(tally.stretch(1, 1), 0.05) == (-1.0, 1.0)

    def test_are_never_wider_than_what_is_possible(self):
        assert betting.mean_limits(Tally.from_arrays([1], [0.5]), 0.001) == (-1.0, 1.0)
