"""Isotonic, Platt, beta and temperature maps, beside solvers and other packages."""

import re

import numpy as np
import pytest
from recalibration_cases import EVERYWHERE, P, Y, draw, guarantee_of
from scipy.optimize import isotonic_regression, minimize
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression

from calibrant import (
    BetaRecalibrator,
    IsotonicRecalibrator,
    PlattRecalibrator,
    Tally,
    TemperatureRecalibrator,
    cutoff_calibration_error,
)
from calibrant.repairs import ConstantRecalibrator, Recalibrator, fits
from calibrant.rows.grids import Grid


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fractions", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_isotonic_is_that_of_scipy_and_scikit_learn_on_merged_rows(seed, fractions, weighted):
    p, y = draw(seed, rows=200)
    rng = np.random.default_rng(100 + seed)
    y = rng.random(p.size) if fractions else y
    weight = rng.random(p.size) + 0.1 if weighted else None
    fitted = IsotonicRecalibrator().fit(p, y, sample_weight=weight)
    tally = Tally.from_arrays(y, p, sample_weight=weight)
    ours = fitted.predict(tally.forecast)
    theirs = isotonic_regression(tally.mean_outcome, weights=tally.weight.astype(float)).x
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
    learned = IsotonicRegression(out_of_bounds="clip").fit(p, y, sample_weight=weight)
    np.testing.assert_allclose(ours, learned.predict(tally.forecast), rtol=0, atol=1e-12)
    linear = IsotonicRecalibrator(interpolation="linear").fit(p, y, sample_weight=weight)
    np.testing.assert_allclose(linear.predict(EVERYWHERE), learned.predict(EVERYWHERE), rtol=0, atol=1e-12)


@pytest.mark.parametrize("interpolation", ["step", "linear"])
@pytest.mark.parametrize("rows", [1, 2, 30, 3_000])
@pytest.mark.parametrize("digits", [1, 3, 16])
def test_isotonic_has_no_cutoff_error_on_its_own_rows(rows, digits, interpolation):
    p, y = draw(rows, rows, digits)
    recalibrator = IsotonicRecalibrator(interpolation=interpolation).fit(p, y)
    assert cutoff_calibration_error(y, recalibrator.predict(p)) < 1e-12
    assert recalibrator.fit_error_ == 0.0
    weight = np.random.default_rng(rows).random(rows) + 0.1
    weighted = IsotonicRecalibrator(interpolation=interpolation).fit(p, y, sample_weight=weight)
    assert cutoff_calibration_error(y, weighted.predict(p), sample_weight=weight) < 1e-12


@pytest.mark.parametrize("interpolation", ["step", "linear"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_ends_inside_move_only_the_ends_and_add_what_the_guarantee_adds(seed, weighted, interpolation):
    rng = np.random.default_rng([1, seed])
    rows = [1, 2, 3, 30, 200, 200, 3_000, 3_000][seed]
    p = rng.random(rows) if seed % 2 else np.round(rng.random(rows), 2)
    y = rng.random(rows) < (p > 0.5) * 0.9 + 0.05 if seed < 6 else rng.random(rows) < p**4
    weight = rng.random(rows) * 10.0 ** rng.integers(-20, 3) if weighted else None
    exact = IsotonicRecalibrator(interpolation=interpolation).fit(p, y, sample_weight=weight)
    inside = IsotonicRecalibrator(interpolation=interpolation, ends="inside").fit(p, y, sample_weight=weight)
    kept = (exact.block_value_ > 0.0) & (exact.block_value_ < 1.0)
    assert (inside.block_value_[kept] == exact.block_value_[kept]).all()
    assert seed == 2 or not kept.all()
    assert (np.diff(inside.block_value_) > 0.0).all()
    found = inside.predict(EVERYWHERE)
    assert 0.0 < found.min() <= found.max() < 1.0
    assert (np.diff(found) >= 0.0).all()
    error = cutoff_calibration_error(y, inside.predict(p), sample_weight=weight)
    assert inside.fit_error_ == pytest.approx(error, abs=1e-12)
    if not weighted:
        assert (inside.fit_error_ > 0.0) == (seed != 2)
        assert inside.fit_error_ < 0.5 / rows
        known, plain = inside.guarantee(0.9), exact.guarantee(0.9)
        assert known.upper == min(1.0, plain.margin + inside.fit_error_)
        assert known.in_advance == min(1.0, plain.margin + 0.5 / rows)
        assert "keeping it off 0 and 1 adds at most half a row" in known.promise


def test_ends_inside_are_as_far_inside_as_their_rows_and_neighbours_say():
    inside = IsotonicRecalibrator(ends="inside")
    tally = Tally.from_counts([0.1, 0.4, 0.6, 0.9], rows=[9, 10, 10, 4], events=[0, 4, 6, 4])
    assert inside.fit(tally).block_value_.tolist() == [0.05, 0.4, 0.6, 0.9]
    assert inside.fit_error_ == pytest.approx(9 * 0.05 / 33, abs=1e-15)
    crowded = Tally.from_counts([0.1, 0.4, 0.9], rows=[1, 100, 1], events=[0, 3, 1])
    assert inside.fit(crowded).block_value_ == pytest.approx([0.01, 0.03, 0.75], abs=1e-15)
    for events, value in ((0, 0.05), (9, 0.95)):
        assert inside.fit(Tally.from_counts([0.3], [9], [events])).block_value_.tolist() == pytest.approx([value])
    mixed = Tally.from_counts([0.1, 0.9], rows=[10, 10], events=[3, 7])
    assert inside.fit(mixed).block_value_.tolist() == [0.3, 0.7]
    assert inside.fit_error_ == 0.0


def test_ends_inside_from_a_file_are_inside():
    text = IsotonicRecalibrator(ends="inside").fit([0.1, 0.9], [0, 1]).to_json()
    with pytest.raises(ValueError, match="block_value_ reaches 0 or 1, and ends='inside' does not"):
        IsotonicRecalibrator.from_json(text.replace("0.25", "0.0"))
    with pytest.raises(ValueError, match="ends must be one of 'exact', 'inside', got 'outside'"):
        IsotonicRecalibrator().set_params(ends="outside").fit([0.1, 0.9], [0, 1])


def test_between_and_beyond_the_forecasts_it_was_fitted_to():
    p, y = [0.2, 0.3, 0.5, 0.6, 0.8], [0, 0, 1, 0, 1]
    step = IsotonicRecalibrator().fit(p, y)
    assert step.block_low_.tolist() == [0.2, 0.5, 0.8]
    assert step.block_high_.tolist() == [0.3, 0.6, 0.8]
    assert step.block_value_.tolist() == [0.0, 0.5, 1.0]
    assert step.predict([0.0, 0.2, 0.4, 0.4999, 0.5, 0.7, 0.8, 1.0]).tolist() == [0, 0, 0, 0, 0.5, 0.5, 1, 1]
    linear = IsotonicRecalibrator(interpolation="linear").fit(p, y)
    expected = [0, 0, 0.25, 0.5, 0.5, 0.75, 1, 1]
    assert linear.predict([0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0]) == pytest.approx(expected, abs=1e-12)


def as_rows(monkeypatch, bits=18):
    """Take the way of many rows, which adds up cells instead of sorting, for few rows too."""
    monkeypatch.setattr(fits, "FEW_ROWS", 0)
    monkeypatch.setattr(fits, "_ISOTONIC_GRID", Grid(bits, 0.0, 1.0))


@pytest.mark.parametrize("bits", [0, 2, 4, 7])
def test_isotonic_without_sorting_is_the_same_step_function(monkeypatch, bits):
    for seed in range(25):
        rng = np.random.default_rng([bits, seed])
        p = rng.random(rng.integers(1, 200))
        p = np.round(p, rng.integers(1, 4)) if seed % 2 else p
        y = rng.random(p.size) < rng.choice([p, p**2, 1 - p, 0.05 + 0 * p, 0 * p])
        weight = rng.integers(0, 3, p.size) + (np.arange(p.size) == 0) if seed % 3 == 0 else None
        sorted_first = IsotonicRecalibrator().fit(p, y, sample_weight=weight)
        with monkeypatch.context() as patch:
            as_rows(patch, bits)
            unsorted = IsotonicRecalibrator().fit(p, y, sample_weight=weight)
        for name in ("block_low_", "block_high_", "block_value_"):
            assert getattr(unsorted, name).tolist() == getattr(sorted_first, name).tolist()
        assert unsorted.n_rows_ == sorted_first.n_rows_


def best(features, target, weight, bounds=None):
    """The most likely logistic curve, by a solver."""

    def loss(coefficient):
        linear = coefficient @ features
        return weight @ np.logaddexp(0.0, linear) - target @ linear

    def slope(coefficient):
        return features @ (weight * expit(coefficient @ features) - target)

    start = np.zeros(len(features))
    method = "L-BFGS-B" if bounds else "BFGS"
    found = minimize(loss, start, jac=slope, bounds=bounds, method=method, options={"gtol": 1e-10, "maxiter": 10_000})
    return found.x, found.fun, loss


@pytest.mark.parametrize("on", ["forecast", "logit"])
@pytest.mark.parametrize("smoothing", [True, False])
@pytest.mark.parametrize("kind", ["events", "fractions", "weights"])
def test_platt_is_the_most_likely_curve_of_smoothed_outcomes(on, smoothing, kind):
    rng = np.random.default_rng(3)
    y = rng.beta(1 + P, 2 - P) if kind == "fractions" else Y
    weight = rng.random(P.size) if kind == "weights" else np.ones(P.size)
    fitted = PlattRecalibrator(on=on, smoothing=smoothing).fit(P, y, None if kind != "weights" else weight)
    events, others = float(weight @ y), float(weight @ (1 - y))
    # The paper's footnote; for 0/1 outcomes it is Platt's (N+ + 1) / (N+ + 2) and 1 / (N- + 2).
    target = y * (events + 1) / (events + 2) + (1 - y) / (others + 2) if smoothing else y
    features = np.stack([P if on == "forecast" else logit(P), np.ones(P.size)])
    expected, _, _ = best(features, weight * target, weight)
    assert [fitted.slope_, fitted.intercept_] == pytest.approx(expected, abs=1e-6)
    # And to the last digits: there the likelihood is flat.
    pull = features @ (weight * (target - expit(fitted.slope_ * features[0] + fitted.intercept_)))
    assert np.abs(pull).max() < 1e-11
    np.testing.assert_allclose(fitted.predict(P), expit(fitted.slope_ * features[0] + fitted.intercept_), atol=1e-15)


def test_perfect_separation_has_a_finite_smoothed_curve():
    p, y = np.array([0.1, 0.2, 0.8, 0.9]), np.array([0, 0, 1, 1])
    fitted = PlattRecalibrator().fit(p, y)
    assert 0 < fitted.slope_ < 100
    expected, _, _ = best(np.stack([p, np.ones(4)]), np.where(y == 1, 3 / 4, 1 / 4), np.ones(4))
    assert [fitted.slope_, fitted.intercept_] == pytest.approx(expected, abs=1e-6)
    # Far apart and many: the curve becomes steep, and Newton's method must not run away.
    p, y = np.concatenate([np.linspace(0, 0.4999, 50_00), np.linspace(0.5, 1, 50_00)]), np.repeat([0, 1], 5_000)
    steep = PlattRecalibrator().fit(p, y)
    pull = y * (5001 / 5002) + (1 - y) / 5002 - steep.predict(p)
    assert abs(pull.sum()) < 1e-9
    assert abs(pull @ p) < 1e-9


@pytest.mark.parametrize("y", [[0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0.5, 1], [1, 1, 1, 1], [0, 0, 0, 0]])
def test_without_smoothing_a_curve_that_would_be_a_step_is_refused(y):
    p = [0.1, 0.2, 0.8, 0.9]
    words = "every outcome is" if len(set(y)) == 1 else "separate the outcomes perfectly"
    with pytest.raises(ValueError, match=f"{words}.*keep smoothing=True"):
        PlattRecalibrator(smoothing=False).fit(p, y)
    assert np.isfinite(PlattRecalibrator().fit(p, y).slope_)


def test_constant_forecasts_and_one_class():
    fitted = PlattRecalibrator().fit([0.3] * 10, [0] * 6 + [1] * 4)
    share = (4 * 5 / 6 + 6 / 8) / 10
    assert fitted.slope_ == 0.0
    assert fitted.predict([0.0, 0.3, 1.0]) == pytest.approx([share] * 3, abs=1e-15)
    assert PlattRecalibrator(smoothing=False).fit([0.3] * 10, [0] * 6 + [1] * 4).predict([0.9]) == pytest.approx([0.4])
    one_class = PlattRecalibrator().fit([0.1, 0.5, 0.9], [1, 1, 1])
    assert one_class.slope_ == 0.0
    assert one_class.predict([0.2]) == pytest.approx([4 / 5])
    assert IsotonicRecalibrator().fit([0.1, 0.5, 0.9], [1, 1, 1]).predict([0.2]).tolist() == [1.0]
    assert BetaRecalibrator().fit([0.3] * 10, [0] * 6 + [1] * 4).predict([0.9]) == pytest.approx([0.4])
    with pytest.raises(ValueError, match=r"every outcome is 1, .* use PlattRecalibrator"):
        BetaRecalibrator().fit([0.1, 0.5, 0.9], [1, 1, 1])


@pytest.mark.parametrize("on", ["forecast", "logit"])
@pytest.mark.parametrize("outcome", [0, 1])
@pytest.mark.parametrize("rows", [600, 40_000])
def test_outcomes_of_one_class_give_a_constant_and_no_direction(on, outcome, rows):
    rng = np.random.default_rng(rows)
    p = rng.uniform(0.01, 0.99, rows)
    for weight in (None, rng.random(rows)):
        fitted = PlattRecalibrator(on=on).fit(p, np.full(rows, outcome), weight)
        assert fitted.slope_ == 0.0
        assert np.unique(fitted.predict(EVERYWHERE)).size == 1
    guarantee = PlattRecalibrator(on=on).fit(p, np.full(rows, outcome)).guarantee_
    assert guarantee is not None
    assert guarantee.direction == "constant"
    assert not any("reverses" in note for note in guarantee.notes)


@pytest.mark.parametrize("recalibrator", [PlattRecalibrator(), PlattRecalibrator(on="logit"), BetaRecalibrator()])
@pytest.mark.parametrize("seed", range(5))
def test_outcomes_that_do_not_depend_on_forecasts_give_a_constant(recalibrator, seed):
    rng = np.random.default_rng(seed)
    distinct = rng.uniform(0.01, 0.99, 50)
    p, y = np.repeat(distinct, 10), np.tile([1] * 3 + [0] * 7, 50)
    weight = np.repeat(rng.random(50), 10)
    for given in (None, weight):
        fitted = recalibrator.fit(p, y, given)
        assert fitted._direction == "constant"
        assert np.unique(fitted.predict(EVERYWHERE[1:-1])).size == 1
    y[-1] = 1  # a single event more makes a slope, however slight
    assert PlattRecalibrator().fit(p, y).slope_ != 0.0


def test_a_decreasing_curve_says_so():
    p, y = draw(4)
    fitted = PlattRecalibrator().fit(p, 1 - y)
    assert fitted.slope_ < 0.0
    assert guarantee_of(fitted).direction == "decreasing"
    assert "reverses the order" in guarantee_of(fitted).notes[-1]
    assert (np.diff(fitted.predict(EVERYWHERE)) < 0.0).all()
    assert fitted.fit_error_ == pytest.approx(cutoff_calibration_error(1 - y, fitted.predict(p)), abs=1e-12)


@pytest.mark.parametrize(
    "recalibrator", [PlattRecalibrator(on="logit"), BetaRecalibrator(), TemperatureRecalibrator()], ids=str
)
def test_forecasts_of_exactly_0_and_1(recalibrator):
    y = [0, 1, 0, 1, 0, 1]
    for end in (0.0, 1.0):
        with pytest.raises(ValueError, match=f"y_prob holds forecasts of exactly {end:g}, whose logit .* clip=1e-6"):
            recalibrator.fit([end, 0.3, 0.4, 0.6, 0.7, 0.8], y)
    fitted = recalibrator.fit([0.2, 0.3, 0.4, 0.6, 0.7, 0.8], y)
    low, high = fitted.predict([0.0, 1.0])
    nearly = fitted.predict([1e-300, 1.0 - 1e-16])
    assert (low, high) == (0.0, 1.0)
    assert 0.0 < nearly[0] < 1e-9
    assert 1.0 > nearly[1] > 0.99
    clipped = clone(recalibrator).set_params(clip=0.25).fit([0.0, 0.3, 0.4, 0.6, 0.7, 1.0], y)
    inside = clone(recalibrator).fit([0.25, 0.3, 0.4, 0.6, 0.7, 0.75], y)
    assert clipped.predict([0.0, 0.1, 0.5, 1.0]).tolist() == inside.predict([0.25, 0.25, 0.5, 0.75]).tolist()


def test_on_the_logit_with_slope_zero_the_ends_are_no_exception():
    fitted = PlattRecalibrator(on="logit").fit([0.3, 0.3], [0, 1])
    assert fitted.predict([0.0, 0.3, 1.0]).tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize("curve", ["a rise", "a fall", "a hump", "steep below", "steep above", "fractions", "weights"])
def test_beta_is_the_most_likely_curve_with_a_and_b_not_negative(curve):
    rng = np.random.default_rng([9, *curve.encode()])
    p = rng.uniform(0.01, 0.99, 500)
    truth = {"a fall": 1 - p, "a hump": 4 * p * (1 - p), "steep below": p**0.1, "steep above": p**8}.get(curve, p)
    y = rng.beta(1 + p, 2 - p) if curve == "fractions" else (rng.random(500) < truth).astype(float)
    weight = rng.random(500) if curve == "weights" else np.ones(500)
    fitted = BetaRecalibrator().fit(p, y, sample_weight=weight if curve == "weights" else None)
    features = np.stack([np.log(p), -np.log1p(-p), np.ones(500)])
    _, lowest, loss = best(features, weight * y, weight, bounds=[(0, None), (0, None), (None, None)])
    assert min(fitted.a_, fitted.b_) >= 0.0
    found = np.array([fitted.a_, fitted.b_, fitted.c_])
    assert loss(found) <= lowest + 1e-9
    # Slackness: the likelihood is flat in every coefficient that is not held at zero, and falls in those that are.
    pull = features @ (weight * (y - expit(found @ features)))
    assert (np.abs(pull) * (found != 0.0) < 1e-9).all()
    assert (pull < 1e-9).all()
    if curve == "a fall":
        assert fitted.predict([0.0, 1.0]) == pytest.approx([y.mean()] * 2)
        assert guarantee_of(fitted).direction == "constant"


@pytest.mark.parametrize("power", [0.5, 1.0, 3.0])
def test_temperature_is_the_most_likely_one(power):
    rng = np.random.default_rng(11)
    p = rng.uniform(0.01, 0.99, 400)
    y = rng.random(400) < expit(power * logit(p))
    fitted = TemperatureRecalibrator().fit(p, y)
    (expected,), _, _ = best(logit(p)[None], y.astype(float), np.ones(400))
    assert fitted.temperature_ == pytest.approx(1 / expected, abs=1e-6)
    assert abs(logit(p) @ (y - expit(logit(p) / fitted.temperature_))) < 1e-9
    np.testing.assert_allclose(fitted.predict(p), expit(logit(p) / fitted.temperature_), atol=1e-15)


def test_no_temperature_helps():
    with pytest.raises(ValueError, match=r"no temperature improves on forecasting 0.5"):
        TemperatureRecalibrator().fit([0.2, 0.8], [1, 0])
    with pytest.raises(ValueError, match=r"no temperature improves on forecasting 0.5"):
        TemperatureRecalibrator().fit([0.5, 0.5], [1, 0])
    with pytest.raises(ValueError, match=r"no temperature improves on forecasting 0.5"):
        TemperatureRecalibrator().fit([0.1, 0.5, 0.9], [1, 1, 1])  # whose logits add up to zero but for rounding
    with pytest.raises(ValueError, match="every outcome is on the side"):
        TemperatureRecalibrator().fit([0.2, 0.8], [0, 1])
    with pytest.raises(ValueError, match=r"separate the outcomes perfectly.*PlattRecalibrator"):
        BetaRecalibrator().fit([0.2, 0.3, 0.8], [0, 1, 1])


@pytest.mark.parametrize(
    ("kind", "name", "value", "message"),
    [
        (BetaRecalibrator(), "a_", "1e308", r"a_ is 1e\+308, .* float64 cannot tell what so steep a curve gives"),
        (BetaRecalibrator(), "c_", "-1e305", r"c_ is -1e\+305; float64 cannot tell what so steep a curve gives"),
        (TemperatureRecalibrator(), "temperature_", "5e-324", r"temperature_ is 4.94066e-324; it must be above 0"),
        (
            ConstantRecalibrator(),
            "constant_",
            '0.5, "constant_": 0.25',
            r"text is not JSON \('constant_' is there twice\)",
        ),
        (ConstantRecalibrator(), "constant_", "NaN", r"text is not JSON \(NaN is not a number\)"),
        (ConstantRecalibrator(), "constant_", "1e999", r"constant_ must be a number from .*, got inf"),
    ],
)
def test_numbers_that_no_map_has_are_refused(kind, name, value, message):
    rng = np.random.default_rng(0)
    p = rng.random(50)
    text = kind.fit(p, rng.random(50) < p).to_json()
    changed = re.sub(rf'"{name}": [-+.e\d]+', f'"{name}": {value}', text)
    with pytest.raises(ValueError, match=message):
        Recalibrator.from_json(changed)
