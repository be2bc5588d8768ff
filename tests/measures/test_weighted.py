import math

import brute_force
import numpy as np
import pytest
from brute_force import rows
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant
from calibrant import CalibrationWarning, Tally


def arguments(y, p, w):
    # An explicit tally: random fractions beside 0/1 forecasts look like swapped arguments to the gate.
    return Tally.from_arrays(y, p, sample_weight=w)


@given(rows())
def test_cutoff_equals_the_largest_interval(data):
    y, p, w = data
    assert calibrant.cutoff_calibration_error(arguments(y, p, w)) == pytest.approx(
        brute_force.cutoff(y, p, w), abs=1e-12
    )


@given(rows())
def test_ks_equals_the_largest_interval_from_below(data):
    y, p, w = data
    assert calibrant.measures.ks_calibration_error(arguments(y, p, w)) == pytest.approx(
        brute_force.ks(y, p, w), abs=1e-12
    )


@given(rows())
def test_smooth_equals_the_linear_program(data):
    y, p, w = data
    assert calibrant.smooth_calibration_error(arguments(y, p, w)) == pytest.approx(
        brute_force.smooth(y, p, w), abs=1e-9
    )


@given(rows(), st.one_of(st.sampled_from([0.0, 1.0, 2.0, 4.0, 6.0]), st.floats(0.0, 20.0)))
def test_bounded_variation_equals_the_linear_program(data, variation):
    y, p, w = data
    assert calibrant.measures.bounded_variation_calibration_error(
        arguments(y, p, w), variation=variation
    ) == pytest.approx(brute_force.bounded_variation(y, p, variation, w), abs=1e-9)


@given(rows(most=9))
@settings(max_examples=50)
def test_spectrum_is_the_concave_envelope_of_the_best_sign_patterns(data):
    y, p, w = data
    spectrum = calibrant.measures.bounded_variation_spectrum(arguments(y, p, w))
    points = [(2 * k, brute_force.best_signs(y, p, k, w)) for k in range(len(set(p)))]
    for variation, error in points:
        assert spectrum.at(variation) >= error - 1e-12  # on or above every pattern
    for variation, error in zip(spectrum.variation, spectrum.error, strict=True):
        assert error == pytest.approx(dict(points)[round(variation)], abs=1e-12)  # corners are patterns
    slopes = np.diff(spectrum.error) / np.diff(spectrum.variation)
    assert (np.diff(slopes) < 1e-12).all()


@given(rows())
def test_smooth_witness_is_lipschitz_and_attains_the_value(data):
    y, p, w = data
    tally = arguments(y, p, w)
    witness = calibrant.measures.smooth_witness(tally)
    assert (np.abs(witness.weight) <= 1.0 + 1e-12).all()
    assert (np.abs(np.diff(witness.weight)) <= np.diff(witness.forecast) + 1e-12).all()
    assert tally.residual @ witness.weight / tally.weight_total == pytest.approx(witness.value, abs=1e-12)
    assert witness.value == calibrant.smooth_calibration_error(tally)


@given(rows(), st.one_of(st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.0, math.inf]), st.floats(0.0, 20.0)))
def test_bounded_variation_witness_keeps_its_variation_and_attains_the_value(data, variation):
    y, p, w = data
    tally = arguments(y, p, w)
    witness = calibrant.measures.bounded_variation_witness(tally, variation=variation)
    assert (np.abs(witness.weight) <= 1.0).all()
    assert np.abs(np.diff(witness.weight)).sum() <= variation + 1e-9
    assert tally.residual @ witness.weight / tally.weight_total == pytest.approx(witness.value, abs=1e-12)
    assert witness.value == pytest.approx(
        calibrant.measures.bounded_variation_calibration_error(tally, variation=variation), abs=1e-15
    )


@pytest.mark.parametrize("rows", [3_000, 40_000])
@pytest.mark.parametrize("power", [1.0, 1.2])
def test_dear_swings_of_a_long_curve_are_found_among_few_points(rows, power):
    rng = np.random.default_rng(rows)
    p = rng.random(rows)
    tally = Tally.from_arrays(rng.random(rows) < p**power, p)
    spectrum = calibrant.measures.bounded_variation_spectrum(tally)
    for variation in (0.0, 1.0, 2.0, 3.0, 4.5, 12.0, 100.0, 2_000.0, math.inf):
        found = calibrant.measures.bounded_variation_calibration_error(tally, variation=variation)
        expected = np.interp(variation, spectrum.variation, spectrum.error)
        assert found == pytest.approx(expected, rel=1e-12), variation


def test_witnesses_on_many_rows_attain_their_values():
    rng = np.random.default_rng(0)
    p = rng.random(50_000)
    tally = Tally.from_arrays(rng.random(50_000) < 0.8 * p, p)
    smooth = calibrant.measures.smooth_witness(tally)
    assert (np.abs(np.diff(smooth.weight)) <= np.diff(smooth.forecast) + 1e-12).all()
    for witness in (smooth, *(calibrant.measures.bounded_variation_witness(tally, variation=m) for m in (2, 7, 1000))):
        assert tally.residual @ witness.weight / tally.weight_total == pytest.approx(witness.value, abs=1e-12)
    assert witness.value == pytest.approx(
        calibrant.measures.bounded_variation_calibration_error(tally, variation=1000), abs=1e-12
    )


@given(rows())
def test_worst_interval_attains_the_cutoff_error(data):
    y, p, w = data
    interval = calibrant.worst_interval(arguments(y, p, w))
    inside = (p >= interval.low) & (p <= interval.high)
    weight = np.ones_like(p) if w is None else w
    mass = (weight * (y - p))[inside].sum()
    assert interval.error == pytest.approx(brute_force.cutoff(y, p, w), abs=1e-12)
    if interval.direction == "none":
        assert interval.error < 1e-11
        return
    assert abs(mass) / weight.sum() == pytest.approx(interval.error, abs=2e-12)
    assert interval.direction == ("too low" if mass > 0 else "too high")
    assert interval.rows == np.count_nonzero(inside & (weight > 0))
    assert interval.weight == pytest.approx(weight[inside].sum())
    assert interval.mean_forecast == pytest.approx(np.average(p[inside], weights=weight[inside]))
    assert interval.mean_outcome == pytest.approx(np.average(y[inside], weights=weight[inside]))
    assert {interval.low, interval.high} <= set(p[weight > 0] + 0.0)


def test_among_equally_bad_intervals_the_stated_rule_chooses():
    # [0.4] and [0.6] collect the same 0.4 / 4, and so do intervals that add rows with no residual.
    tie = calibrant.worst_interval(Tally.from_arrays([0, 0.5, 1, 0.9], [0.4, 0.5, 0.6, 0.9]))
    assert (tie.low, tie.high, tie.direction) == (0.4, 0.4, "too high")
    inner = calibrant.worst_interval(Tally.from_arrays([0.1, 0, 0.5, 0, 0.9], [0.1, 0.4, 0.5, 0.6, 0.9]))
    assert (inner.low, inner.high) == (0.4, 0.6)  # rows that add nothing at the ends stay outside


def test_weighted_error_is_the_mean_of_weight_times_residual():
    rng = np.random.default_rng(1)
    y, p, w = rng.random(200), rng.random(200), rng.random(200)
    expected = np.average(np.sin(9 * p) * (y - p), weights=w)
    value = calibrant.measures.weighted_calibration_error(y, p, weight=lambda v: np.sin(9 * v), sample_weight=w)
    assert value == pytest.approx(expected, abs=1e-15)
    bias = calibrant.measures.weighted_calibration_error(y, p, weight=lambda _: 1.0, sample_weight=w)
    assert bias == pytest.approx(calibrant.measures.calibration_in_the_large(y, p, sample_weight=w), abs=1e-15)


class TestExpectedCalibrationError:
    @pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
    @given(data=rows())
    def test_plug_in_is_the_distance_over_distinct_forecasts(self, data):
        y, p, w = data
        _, weight, residual, _ = brute_force.merged(y, p, w)
        tally = arguments(y, p, w)
        distance = np.abs(residual) / weight
        values = {norm: calibrant.expected_calibration_error(tally, norm=norm) for norm in ("l1", "l2", "max")}
        assert values["l1"] == pytest.approx(np.average(distance, weights=weight), abs=1e-12)
        assert values["l2"] == pytest.approx(math.sqrt(np.average(distance**2, weights=weight)), abs=1e-12)
        assert values["max"] == pytest.approx(distance.max(), abs=1e-12)

    @pytest.mark.parametrize("strategy", ["uniform", "quantile"])
    @pytest.mark.parametrize("n_bins", [1, 2, 10, 15])
    def test_bins_agree_with_scikit_learn(self, strategy, n_bins):
        from sklearn.calibration import calibration_curve

        rng = np.random.default_rng(2)
        p = rng.random(3_000)
        if strategy == "uniform":  # on the borders too
            p[:300] = np.round(p[:300], 1)
        y = rng.random(p.size) < p**2
        rate, forecast = calibration_curve(y, p, n_bins=n_bins, strategy=strategy)
        shares = np.linspace(0.0, 1.0, n_bins + 1)
        edges = shares if strategy == "uniform" else np.quantile(p, shares)
        count = np.bincount(np.searchsorted(edges[1:-1], p))
        share = count[count > 0] / p.size
        distance = np.abs(rate - forecast)
        ours = {
            norm: calibrant.expected_calibration_error(y, p, n_bins=n_bins, strategy=strategy, norm=norm)
            for norm in ("l1", "l2", "max")
        }
        assert ours["l1"] == pytest.approx(share @ distance, abs=1e-12)
        assert ours["l2"] == pytest.approx(math.sqrt(share @ distance**2), abs=1e-12)
        assert ours["max"] == pytest.approx(distance.max(), abs=1e-12)

    def test_quantile_bins_keep_ties_together(self):
        y = [0, 1] * 50
        p = [0.1] * 2 + [0.5] * 96 + [0.9] * 2
        # The middle of the 96 equal rows falls in the second of three bins; the others keep their own.
        value = calibrant.expected_calibration_error(y, p, n_bins=3, strategy="quantile")
        assert value == pytest.approx((2 * 0.4 + 96 * 0.0 + 2 * 0.4) / 100, abs=1e-12)

    def test_debiased_square_removes_the_noise_of_a_calibrated_forecast(self):
        rng = np.random.default_rng(3)
        p = np.repeat([0.2, 0.5, 0.8], 100)
        squares, plain = [], []
        for _ in range(400):
            y = rng.random(p.size) < p
            plain.append(calibrant.expected_calibration_error(y, p, norm="l2") ** 2)
            mean, count = y.reshape(3, 100).mean(axis=1), 100
            by_hand = np.mean((mean - [0.2, 0.5, 0.8]) ** 2 - mean * (1 - mean) / (count - 1))
            ours = calibrant.expected_calibration_error(y, p, norm="l2", debias=True)
            assert ours**2 == pytest.approx(max(by_hand, 0.0), abs=1e-12)
            squares.append(by_hand)
        assert abs(np.mean(squares)) < 4 * np.std(squares) / math.sqrt(400)  # unbiased
        assert np.mean(plain) > 10 * np.std(plain) / math.sqrt(400)  # unlike the plain square

    def test_plug_in_warns_when_forecasts_hardly_repeat(self):
        rng = np.random.default_rng(4)
        p = rng.random(1_000)
        with pytest.warns(CalibrationWarning, match="1,000 of 1,000 rows share theirs with fewer than 10.*Theorem 4.1"):
            calibrant.expected_calibration_error(rng.random(1_000) < p, p)

    def test_plug_in_is_silent_when_forecasts_repeat(self):
        p = np.repeat([0.1, 0.2], 100)
        assert calibrant.expected_calibration_error(p > 0.15, p) == pytest.approx(0.45)

    def test_binned_error_can_vanish_while_the_forecast_is_off_everywhere(self):
        # Inside each bin half the forecasts have outcome 0 and half 1: the binned forecast looks perfect.
        p = np.concatenate([(0.5 + np.array([-0.01, 0.01])) / 1.0] * 500)
        y = np.tile([1.0, 0.0], 500)
        assert calibrant.expected_calibration_error(y, p, n_bins=1) == pytest.approx(0.0, abs=1e-12)
        assert calibrant.expected_calibration_error(y, p) == pytest.approx(0.51)


def test_effective_support_counts_the_heaviest_forecasts():
    p = [0.1] * 6 + [0.2] * 3 + [0.3]
    assert [calibrant.measures.effective_support_size(p, gamma) for gamma in (0.0, 0.1, 0.35, 0.4, 0.99)] == [
        3,
        2,
        2,
        1,
        1,
    ]
    assert calibrant.measures.effective_support_size([0.1, 0.2, 0.3], 0.4, sample_weight=[6, 3, 1]) == 1
    assert calibrant.measures.effective_support_size(Tally.from_arrays(np.zeros(10), p), 0.1) == 2
    assert calibrant.measures.effective_support_size(np.linspace(0, 1, 1000), 0.05) == 950
