"""Forecasts of a real outcome at every threshold: against brute force, and what must not matter."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom, norm
from sklearn.isotonic import IsotonicRegression
from threshold_cases import (
    crps_by_members,
    drawn,
    every_threshold,
    integral_of,
    share_up_to,
    steps_of,
)

import calibrant
from calibrant import threshold_calibration_error
from calibrant.core.threshold_kernels import largest_runs, prefix_ranges
from calibrant.rows import sweeps

CASES = [(rows, members, seed) for rows, members in ((1, 1), (2, 3), (7, 1), (9, 2), (12, 5)) for seed in range(6)]


@pytest.mark.parametrize(("rows", "members", "seed"), CASES)
def test_all_thresholds_and_intervals_by_brute_force(rows, members, seed):
    z, ensemble = drawn(np.random.default_rng(seed), rows, members)
    found = threshold_calibration_error(z, ensemble=ensemble)
    cutoffs = every_threshold(z, share_up_to(ensemble), {*z, *ensemble.ravel()})
    assert found.error == pytest.approx(max(cutoffs.values()), abs=1e-13)
    # The lowest of the worst thresholds, and an interval there that attains the error.
    assert found.threshold == next(t for t, error in cutoffs.items() if error >= max(cutoffs.values()) - 1e-12)
    assert found.interval.error == pytest.approx(found.error, abs=1e-13)
    forecast = share_up_to(ensemble)(found.threshold)
    inside = (forecast >= found.interval.low) & (forecast <= found.interval.high)
    mass = float(((z <= found.threshold) - forecast)[inside].sum()) / rows
    assert abs(mass) == pytest.approx(found.error, abs=1e-13)
    assert found.interval.direction == ("none" if found.error < 1e-12 else "too low" if mass > 0 else "too high")
    assert found.crps == pytest.approx(crps_by_members(z, ensemble), abs=1e-13)
    assert found.crps_gap_bound == pytest.approx(2.0 * integral_of(cutoffs), abs=1e-12)


@pytest.mark.parametrize("members", [1, 2, 4, 9])
def test_the_tree_and_the_table_agree(members, monkeypatch):
    z, ensemble = drawn(np.random.default_rng(members), 30, members, places=12)
    steps = steps_of(z, ensemble)
    sweep, levels = steps.sweep, steps.levels
    plain = prefix_ranges.plain(sweep.leaf, sweep.kind, sweep.last, levels, 30)
    np.testing.assert_allclose(sweep.ranges(levels, 30), plain, atol=1e-12)
    scores = -np.log1p(-0.3 * (1.0 - levels)), -np.log1p(0.3 * levels)
    grown = largest_runs.plain(sweep.leaf, sweep.kind, sweep.last, *scores, 30)
    assert sweep.largest(*scores, 30) == pytest.approx(grown, abs=1e-12)
    before = steps.cutoffs()[1]
    monkeypatch.setattr(sweeps, "_AT_ONCE", 7)
    assert (steps.cutoffs()[1] == before).all()
    assert sweep.largest(*scores, 30) == pytest.approx(grown, abs=1e-12)
    monkeypatch.setattr(sweeps, "_TABLE", 0)
    np.testing.assert_allclose(steps.cutoffs()[1], before, atol=1e-12)
    assert sweep.largest(*scores, 30) == grown


def test_many_rows_go_through_the_compiled_tree():
    rng = np.random.default_rng(0)
    z, ensemble = rng.normal(size=5000), rng.normal(size=(5000, 30))  # too many for a table
    found = threshold_calibration_error(z, ensemble=ensemble)
    forecast = share_up_to(ensemble)(found.threshold)
    assert found.error == pytest.approx(calibrant.cutoff_calibration_error(z <= found.threshold, forecast), abs=1e-12)
    some = rng.choice(np.append(z, ensemble), 40)
    errors = [calibrant.cutoff_calibration_error(z <= t, share_up_to(ensemble)(t)) for t in some]
    assert max(errors) <= found.error + 1e-12


def test_a_list_of_thresholds_looks_there_only():
    z, ensemble = drawn(np.random.default_rng(3), 20, 4)
    listed = [2.5, -1.0, 1.0, 99.0]
    found = threshold_calibration_error(z, ensemble=ensemble, thresholds=listed)
    cutoffs = every_threshold(z, share_up_to(ensemble), listed)
    assert found.error == pytest.approx(max(cutoffs.values()), abs=1e-13)
    assert found.thresholds.tolist() == sorted(listed)
    np.testing.assert_allclose(found.cutoffs, list(cutoffs.values()), atol=1e-13)
    assert found.crps_gap_bound is None
    assert not found.all_thresholds
    # The same through a function, asked one threshold at a time.
    by_function = threshold_calibration_error(z, cdf=share_up_to(ensemble), thresholds=listed)
    assert by_function.error == pytest.approx(found.error, abs=1e-13)
    assert by_function.threshold == found.threshold
    np.testing.assert_allclose(by_function.cutoffs, found.cutoffs, atol=1e-13)
    assert by_function.crps is None


def test_a_list_below_everything_finds_nothing():
    found = threshold_calibration_error([1.0, 2.0], ensemble=[[3.0], [4.0]], thresholds=[-5.0])
    assert found.error == 0.0
    assert found.interval.direction == "none"


def test_a_list_with_all_steps_is_all_thresholds():
    z, ensemble = drawn(np.random.default_rng(4), 25, 3)
    everywhere = threshold_calibration_error(z, ensemble=ensemble)
    listed = threshold_calibration_error(z, ensemble=ensemble, thresholds=np.append(z, ensemble))
    assert listed.error == everywhere.error
    assert listed.threshold == everywhere.threshold


@pytest.mark.parametrize("seed", range(4))
def test_neither_order_nor_scale_matters(seed):
    rng = np.random.default_rng(seed)
    z, ensemble = drawn(rng, 40, 5)
    found = threshold_calibration_error(z, ensemble=ensemble)
    order = rng.permutation(40)
    again = threshold_calibration_error(z[order], ensemble=rng.permuted(ensemble, axis=1)[order])
    assert again == found
    bent = threshold_calibration_error(np.exp(z), ensemble=np.exp(ensemble))
    assert bent.error == found.error
    assert bent.threshold == np.exp(found.threshold)
    assert bent.interval == found.interval
    functions = [
        threshold_calibration_error(z[places], cdf=share_up_to(ensemble[places]), thresholds=[0.0, 1.0, 2.0])
        for places in (slice(None), order)
    ]
    assert functions[0] == functions[1]


def test_repeated_members_and_repeated_rows_change_nothing():
    z, ensemble = drawn(np.random.default_rng(7), 15, 3)
    found = threshold_calibration_error(z, ensemble=ensemble)
    twice = threshold_calibration_error(z, ensemble=np.repeat(ensemble, 2, axis=1))
    rows = threshold_calibration_error(np.tile(z, 3), ensemble=np.tile(ensemble, (3, 1)))
    assert twice.error == pytest.approx(found.error, abs=1e-13)
    assert rows.error == pytest.approx(found.error, abs=1e-13)
    assert rows.crps == pytest.approx(found.crps, abs=1e-13)


def test_quantiles_at_the_middle_of_equal_steps_are_an_ensemble():
    z, ensemble = drawn(np.random.default_rng(5), 20, 4)
    levels = (np.arange(4) + 0.5) / 4
    one = threshold_calibration_error(z, ensemble=ensemble)
    other = threshold_calibration_error(z, quantiles=(levels, np.sort(ensemble, axis=1)))
    assert (other.error, other.crps, other.crps_gap_bound) == (one.error, one.crps, one.crps_gap_bound)
    assert "half-way between their levels" in other.notes[0]
    assert "0.125 and 0.875" in other.notes[0]


@pytest.mark.parametrize("seed", range(4))
def test_quantiles_at_unequal_levels_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    z, values = drawn(rng, 11, 3)
    values.sort(axis=1)
    stated = np.array([0.05, 0.6, 0.7])
    levels = np.array([0.0, 0.325, 0.65, 1.0])
    found = threshold_calibration_error(z, quantiles=(stated, values))
    cutoffs = every_threshold(z, lambda t: levels[(values <= t).sum(axis=1)], {*z, *values.ravel()})
    assert found.error == pytest.approx(max(cutoffs.values()), abs=1e-13)
    assert found.crps_gap_bound == pytest.approx(2.0 * integral_of(cutoffs), abs=1e-12)
    # The score as a Riemann sum: steps at whole numbers, and nothing beyond them.
    grid = np.arange(5.0)
    squares = [((levels[(values <= t).sum(axis=1)] - (z <= t)) ** 2).mean() for t in grid[:-1]]
    assert found.crps == pytest.approx(sum(squares), abs=1e-12)


def test_the_law_of_all_outcomes_is_calibrated_for_everybody():
    # A constant forecast: the outcomes themselves as members.
    z = np.random.default_rng(0).normal(size=30)
    found = threshold_calibration_error(z, ensemble=np.tile(z, (30, 1)))
    assert found.error < 1e-14
    assert found.interval.direction == "none"
    shifted = threshold_calibration_error(z + 10.0, ensemble=np.tile(z, (30, 1)))
    assert shifted.error == 1.0


def test_one_member_is_a_point_forecast():
    found = threshold_calibration_error([1.0, 2.0, 3.0], ensemble=[[1.0], [2.0], [3.0]])
    assert (found.error, found.crps) == (0.0, 0.0)
    found = threshold_calibration_error([1.0, 2.0, 3.0], ensemble=[[1.5], [2.5], [3.5]])
    assert found.error == pytest.approx(1 / 3)
    assert found.crps == 0.5  # the mean absolute error


def test_the_crps_of_a_normal_law():
    # 2 phi(0) - 1/sqrt(pi) at its mean (Gneiting, Raftery 2007), as nearly as 2,000 members are a normal law.
    members = norm.ppf((np.arange(2000) + 0.5) / 2000)
    found = threshold_calibration_error([0.0, 0.0], ensemble=np.tile(members, (2, 1)), thresholds=[0.0])
    assert found.crps == pytest.approx((np.sqrt(2.0) - 1.0) / np.sqrt(np.pi), abs=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_no_order_keeping_recalibration_lowers_the_crps_by_more_than_the_bound(seed):
    z, ensemble = drawn(np.random.default_rng(seed), 12, 3)
    found = threshold_calibration_error(z, ensemble=ensemble)
    places = np.unique(np.append(z, ensemble))
    lowered = 0.0
    for low, high in itertools.pairwise(places.tolist()):
        outcome, forecast = (z <= low).astype(float), share_up_to(ensemble)(low)
        best = IsotonicRegression().fit_transform(forecast, outcome)  # of all non-decreasing wrappers at this threshold
        lowered += (high - low) * float(((forecast - outcome) ** 2 - (best - outcome) ** 2).mean())
    assert found.crps_gap_bound is not None
    assert 0.0 <= lowered <= found.crps_gap_bound + 1e-12


def test_a_shift_that_everybody_shares_nearly_attains_a_known_error():
    # Z is N(mean, 1), forecast as N(mean + 0.5, 1): F(t) = Phi(t - 0.5 - mean) is too low wherever it is.
    mean = norm.ppf((np.arange(400) + 0.5) / 400)
    # Outcomes as expected values: at each threshold the share is exact, so that the population's error is seen.
    noise = norm.ppf((np.arange(400) + 0.5) / 400)
    z = (mean[:, None] + noise).ravel()
    found = threshold_calibration_error(z, cdf=lambda t: norm.cdf(t - 0.5 - np.repeat(mean, 400)), thresholds=[0.25])
    expected = norm.cdf(0.25 / np.sqrt(2.0)) - norm.cdf(-0.25 / np.sqrt(2.0))
    assert found.error == pytest.approx(expected, abs=2e-3)
    assert found.interval.direction == "too low"


@pytest.mark.parametrize("members", [2, 4, 10, 50])
def test_members_drawn_from_the_true_law_are_not_calibrated(members):
    # The population, exactly. Chances of the event that are spread evenly: k of m members with probability 1/(m + 1),
    # and then the event has probability (k + 1)/(m + 2).
    k = np.arange(members + 1)
    curve = np.cumsum((k + 1) / (members + 2) - k / members) / (members + 1)
    assert curve.max() == pytest.approx(0.25 / (members + 1), rel=1e-9)
    # The same chance for everybody, 1/2: no order of members knows more.
    share = binom.pmf(k, members, 0.5)
    same = np.cumsum(share * (0.5 - k / members)).max()
    assert 0.7 * 0.25 / np.sqrt(members) < same <= 0.25 / np.sqrt(members)
    note = threshold_calibration_error([1.0, 2.0], ensemble=np.ones((2, members))).notes[0]
    assert f"about {0.25 / members:.2g} where" in note
    assert f"up to {0.25 / np.sqrt(members):.2g} where" in note


def test_ordinal_classes_are_thresholds():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(4), size=50)
    label = rng.integers(0, 4, 50)
    cumulative = probabilities.cumsum(axis=1)
    found = threshold_calibration_error(label, cdf=lambda t: cumulative[:, int(t)], thresholds=range(3))
    one_by_one = [calibrant.cutoff_calibration_error(label <= k, cumulative[:, k]) for k in range(3)]
    np.testing.assert_allclose(found.cutoffs, one_by_one, atol=1e-13)
    assert found.error == pytest.approx(max(one_by_one), abs=1e-13)


def test_the_words_name_threshold_interval_and_direction():
    found = threshold_calibration_error([1, 2, 3, 4], ensemble=[[2, 3], [2, 3], [4, 5], [4, 5]])
    text = str(found)
    assert text.startswith("Threshold calibration error 0.25000 over all thresholds (4 rows, 2 members each).")
    assert "Forecasts that the outcome is at most 1, of exactly 0 (100.0% of all rows) are 25.0 points too low" in text
    assert "mean CRPS is 0.75" in text
    assert float(found) == 0.25
    assert list(found.frame().columns) == ["threshold", "cutoff"]
    assert len(str(found).split("\n")[0].split()) <= 30
    functions = threshold_calibration_error([1, 2], cdf=lambda _: np.full(2, 0.5), thresholds=1.0)
    assert "1 listed threshold (2 rows, distribution functions)" in str(functions)
    assert "CRPS" not in str(functions)
