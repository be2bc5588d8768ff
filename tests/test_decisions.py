"""Decisions: losses, gaps, guarantees and scores, beside slow versions of themselves and beside theory."""

import json
import math
import warnings

import brute_force
import numpy as np
import pandas as pd
import pytest
from brute_force import rows
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, log_loss

import calibrant
from calibrant import CalibrationWarning, Certificate, ConfidenceInterval, SchervishMeasure, Tally
from calibrant.results.base import Result

WRAPPERS = ["nondecreasing", "monotone", "any"]
thresholds = st.one_of(st.sampled_from(brute_force.GRID), st.floats(0.0, 1.0))


def refused(message):
    return pytest.raises(ValueError, match=message)


def tallied(data):
    """Rows of weight 0 dropped, and their tally: random fractions beside 0/1 forecasts look swapped to the gate."""
    y, p, w = data
    if w is not None:
        y, p, w = y[w > 0], p[w > 0], w[w > 0]
    return y, p, w, Tally.from_arrays(y, p, sample_weight=w)


def gap_of(function, tally, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return function(tally, **options)


def from_up(threshold):
    return lambda forecast: forecast >= threshold


# --- Risk -------------------------------------------------------------------------------------------------------------


@given(rows(), st.lists(thresholds, min_size=1, max_size=4))
def test_risk_is_the_mean_loss_row_by_row(data, several):
    y, p, w, tally = tallied(data)
    result = calibrant.decision_risk(tally, threshold=several)
    expected = [brute_force.mean_loss(y, p, w, from_up(threshold), threshold) for threshold in several]
    assert result.risk == pytest.approx(expected, abs=1e-12)
    assert result.false_positive + result.false_negative == pytest.approx(result.risk, abs=1e-15)
    weight = np.ones(p.size) if w is None else w
    assert result.acted == pytest.approx([np.average(p >= t, weights=weight) for t in several], abs=1e-12)
    one = calibrant.decision_risk(tally, threshold=several[0])
    assert isinstance(one.risk, float)
    assert (one.risk, one.acted) == (result.risk[0], result.acted[0])


@pytest.mark.parametrize(("threshold", "acted"), [(0.5, 0.75), (np.nextafter(0.5, 1), 0.25), (0.0, 1.0), (1.0, 0.0)])
def test_ties_at_the_threshold_are_acted_on(threshold, acted):
    y, p = [0, 1, 1, 0], [0.25, 0.5, 0.5, 0.75]
    assert calibrant.decision_risk(y, p, threshold=threshold).acted == acted


def test_ties_at_the_threshold_everywhere():
    y, p = [0, 0, 0, 1], [0.5, 0.5, 0.5, 0.5]
    assert calibrant.decision_risk(y, p, threshold=0.5).risk == 0.375  # acts
    assert calibrant.murphy_curve(y, p).risk_at(0.5) == 0.375
    curve = calibrant.risk_gap_curve(y, p)
    assert (curve.at(0.5), curve.at(np.nextafter(0.5, 1))) == (0.25, pytest.approx(0.0, abs=1e-15))
    assert calibrant.risk_gap(y, p, threshold=0.5).rule.kind == "never"
    assert calibrant.net_benefit(y, p, threshold=0.5).net_benefit == -0.5
    assert calibrant.sign_testing_risk(y, p, threshold=0.5).risk == 0.125  # p > y* does not act
    assert SchervishMeasure(atoms=[0.5], masses=[1]).loss(y, p).tolist() == [0.5, 0.5, 0.5, 0.0]


def test_costs_in_place_of_a_threshold_are_translated():
    y, p = [0, 0, 1, 1, 1], [0.1, 0.6, 0.15, 0.4, 0.9]
    result = calibrant.decision_risk(y, p, cost_false_positive=2, cost_false_negative=8)
    assert (result.threshold, result.cost_unit) == (0.2, 10.0)
    assert result.cost == pytest.approx((2 + 8) / 5)  # one acted on in vain, one missed, of five
    assert result.risk == calibrant.decision_risk(y, p, threshold=0.2).risk
    assert calibrant.decision_risk(y, p, threshold=0.2).cost is None
    assert list(result.frame().columns)[-1] == "cost"
    gap = calibrant.risk_gap(y, p, cost_false_positive=2, cost_false_negative=8)
    assert gap.gap == calibrant.risk_gap(y, p, threshold=0.2).gap
    assert "(a false positive costs 2, a false negative 8)" in str(gap)
    best = calibrant.best_threshold(y, p, cost_false_positive=2, cost_false_negative=8)
    assert best.saving == gap.gap
    never = calibrant.decision_risk(y, p, cost_false_positive=1, cost_false_negative=0)
    assert (never.threshold, never.risk) == (1.0, 0.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_many_rows_need_no_sort(monkeypatch, weighted):
    rng = np.random.default_rng(0)
    p = rng.random(30_000).round(4)
    y, w = rng.random(p.size) < p**2, rng.random(p.size) if weighted else None
    at = [0.0, 0.1234, 0.5, 0.50005, 1.0]
    sorted_way = calibrant.decision_risk(y, p, threshold=at, sample_weight=w)
    monkeypatch.setattr("calibrant.cells.SORT_BELOW_ROWS", 0)
    cells_way = calibrant.decision_risk(y, p, threshold=at, sample_weight=w)
    weight = np.ones(p.size) if w is None else w
    direct = [np.average(np.where(p >= t, t * (1 - y), (1 - t) * y), weights=weight) for t in at]
    assert cells_way.risk == pytest.approx(direct, abs=1e-12)
    assert sorted_way.risk == pytest.approx(direct, abs=1e-12)
    assert cells_way.acted == pytest.approx(sorted_way.acted, abs=1e-12)


def test_labels_and_weights_reach_every_function():
    y, p, w = np.array(["no", "yes", "yes", "no"]), [0.2, 0.4, 0.9, 0.6], [1.0, 2.0, 0.5, 3.0]
    tally = Tally.from_arrays(y == "yes", p, sample_weight=w)
    options = {"sample_weight": w, "pos_label": "yes"}
    at = {"threshold": 0.5}
    for function, more in [
        (calibrant.decision_risk, at),
        (calibrant.risk_gap, at),
        (calibrant.risk_gap_curve, {}),
        (calibrant.murphy_curve, {}),
        (calibrant.sign_testing_risk, at),
        (calibrant.sign_testing_gap, at),
        (calibrant.score_decomposition, {"score": "log"}),
        (calibrant.net_benefit, {}),
        (calibrant.best_threshold, at),
    ]:
        assert function(y, p, **options, **more).to_dict() == function(tally, **more).to_dict(), function


# --- Gaps at one threshold --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrapper", WRAPPERS)
@given(data=rows(most=12), threshold=thresholds)
def test_the_gap_is_that_of_trying_every_rule(wrapper, data, threshold):
    y, p, w, tally = tallied(data)
    result = gap_of(calibrant.risk_gap, tally, threshold=threshold, wrapper=wrapper)
    best = brute_force.best_risk(y, p, threshold, wrapper, w)
    assert result.risk == pytest.approx(brute_force.mean_loss(y, p, w, from_up(threshold), threshold), abs=1e-12)
    assert result.best_risk == pytest.approx(best, abs=1e-12)
    assert result.gap == pytest.approx(result.risk - best, abs=1e-12)
    assert result.gap >= 0.0
    acted = dict(zip(p, result.rule.acts(p), strict=True))
    assert brute_force.mean_loss(y, p, w, acted.get, threshold) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("wrapper", WRAPPERS)
@given(data=rows(most=12), threshold=thresholds)
def test_the_sign_testing_gap_is_that_of_trying_every_rule(wrapper, data, threshold):
    y, p, w, tally = tallied(data)
    result = gap_of(calibrant.sign_testing_gap, tally, threshold=threshold, wrapper=wrapper)
    loss = brute_force.sign_loss
    risk = brute_force.mean_loss(y, p, w, lambda q: q > threshold, threshold, loss)
    best = brute_force.best_risk(y, p, threshold, wrapper, w, loss)
    assert result.gap == pytest.approx(risk - best, abs=1e-12)
    acted = dict(zip(p, result.rule.acts(p), strict=True))
    assert brute_force.mean_loss(y, p, w, acted.get, threshold, loss) == pytest.approx(best, abs=1e-12)
    assert result.bound.holds
    if tally.binary_outcomes:
        assert result.risk == pytest.approx(risk, abs=1e-12)
    else:
        assert (result.risk, result.best_risk) == (None, None)


@given(rows(), thresholds)
@settings(max_examples=300)
def test_no_gap_exceeds_what_calibration_errors_allow(data, threshold):
    *_, tally = tallied(data)
    cutoff, expected = calibrant.cutoff_calibration_error(tally), np.abs(tally.residual).sum() / tally.weight_total
    limits = dict(zip(WRAPPERS, [cutoff, 2 * cutoff, expected], strict=True))
    at = [threshold, *tally.forecast[:3], np.nextafter(tally.forecast[-1], 1.0)]
    for function in (calibrant.risk_gap, calibrant.sign_testing_gap):
        for wrapper, limit in limits.items():
            for tau in at:
                result = gap_of(function, tally, threshold=min(float(tau), 1.0), wrapper=wrapper)
                assert result.gap <= limit + 1e-12
                assert result.bound.holds
                assert result.bound.right == pytest.approx(limit, abs=1e-12)
    for wrapper in WRAPPERS[:2]:
        curve = calibrant.risk_gap_curve(tally, wrapper=wrapper)
        assert curve.largest_gap <= limits[wrapper] + 1e-12
        assert curve.bound.holds


@pytest.mark.parametrize("epsilon", [0.25, 2**-10, 2**-30])
def test_example_3_1_of_the_paper(epsilon):
    # X ~ Bernoulli(3/4), Y = X, forecasts 3/4 + eps - 2 eps X: the plug-in rule errs on every row, a falling wrapper
    # on none. As eps vanishes the gaps tend to 1 and 2 times the Cutoff error: neither constant can be smaller.
    x = np.array([0, 1, 1, 1])
    p = 0.75 + epsilon - 2 * epsilon * x
    falling = calibrant.risk_gap(x, p, threshold=0.75, wrapper="monotone")
    assert (falling.risk, falling.best_risk, falling.gap) == (3 / 8, 0.0, 3 / 8)
    assert falling.rule.kind == "at most"
    assert falling.rule.acts(p).tolist() == x.astype(bool).tolist()
    rising = calibrant.risk_gap(x, p, threshold=0.75)
    assert (rising.risk, rising.best_risk, rising.gap) == (3 / 8, 3 / 16, 3 / 16)
    cutoff = calibrant.cutoff_calibration_error(x, p)
    assert cutoff == pytest.approx(0.75 * (0.25 + epsilon), abs=1e-15)
    assert rising.gap / cutoff == pytest.approx(1 / (1 + 4 * epsilon), abs=1e-12)
    assert falling.gap / cutoff == pytest.approx(2 / (1 + 4 * epsilon), abs=1e-12)


def test_the_bounds_for_rising_and_for_any_wrappers_are_attained():
    # One forecast of 1/2, never right: acting on it loses 1/2, and so do Cutoff and ECE say.
    tally = Tally.from_arrays(np.zeros(20), np.full(20, 0.5))
    for wrapper in ("nondecreasing", "any"):
        result = calibrant.risk_gap(tally, threshold=0.5, wrapper=wrapper)
        assert (result.gap, result.bound.right) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("function", "sources"),
    [(calibrant.risk_gap, ("3.1", "3.2")), (calibrant.sign_testing_gap, ("B.2", "B.2"))],
)
def test_bounds_name_their_source(function, sources):
    tally = Tally.from_counts([0.2, 0.6], [20, 20], [15, 3])
    bounds = {wrapper: function(tally, threshold=0.5, wrapper=wrapper).bound for wrapper in WRAPPERS}
    assert bounds["nondecreasing"].source == "this project"
    assert bounds["monotone"].source == f"Rossellini et al. 2025, Prop. {sources[1]}"
    assert bounds["any"].source == f"Rossellini et al. 2025, Prop. {sources[0]}"
    assert [bounds[wrapper].statement for wrapper in WRAPPERS] == ["gap <= Cutoff", "gap <= 2 Cutoff", "gap <= ECE"]


def test_today_s_rule_stays_where_none_is_better_and_else_the_nearest_is_chosen():
    y, p = [0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8]
    assert str(calibrant.risk_gap([0, 0, 1, 1], p, threshold=0.5).rule) == "act on forecasts of at least 0.5"
    # Cutting at 0.4 and at 0.8 are equally good and near for 0.5; for 0.55 acting from 0.8 is best.
    assert calibrant.risk_gap(y, p, threshold=0.5).rule.cutoff == 0.4
    assert calibrant.risk_gap(y, p, threshold=0.55).rule.cutoff == 0.8
    tie = calibrant.risk_gap([0, 1, 0, 0, 1], [0.1, 0.2, 0.4, 0.6, 0.9], threshold=0.5)
    assert (tie.rule.kind, tie.rule.cutoff) == ("at least", 0.9)
    # Cutting at 0.45 and at 0.95 are equally good; the first is nearer, though more forecasts lie between.
    near = calibrant.risk_gap([0, 1, 0.5, 0, 1], [0.1, 0.45, 0.46, 0.9, 0.95], threshold=0.5)
    assert (near.gap, near.rule.cutoff) == (0.1, 0.45)
    assert str(calibrant.sign_testing_gap([0, 0, 1, 1], p, threshold=0.5).rule) == "act on forecasts above 0.5"


@pytest.mark.parametrize(
    ("y", "p", "threshold", "wrapper", "text"),
    [
        ([1, 1, 1], [0.1, 0.2, 0.3], 0.5, "nondecreasing", "always act"),
        ([0, 0, 0], [0.7, 0.8, 0.9], 0.5, "nondecreasing", "never act"),
        ([1, 0, 0], [0.2, 0.8, 0.9], 0.5, "monotone", "act on forecasts of at most 0.2"),
        ([1, 0, 1] * 10, [0.2, 0.5, 0.9] * 10, 0.5, "any", "act on 2 of the distinct forecasts and on no other"),
        ([0, 0] * 10, [0.6, 0.7] * 10, 0.5, "any", "never act"),
    ],
)
def test_the_rule_that_attains_the_best_risk_in_words(y, p, threshold, wrapper, text):
    result = calibrant.risk_gap(y, p, threshold=threshold, wrapper=wrapper)
    assert str(result.rule) == repr(result.rule) == text
    assert result.best_risk == 0.0
    assert f"to 0.00000, and by no more. To attain that, {text}." in str(result)


def test_any_wrapper_warns_where_it_overfits_and_only_there():
    rng = np.random.default_rng(1)
    p = rng.random(1000)
    y = rng.random(1000) < p
    with pytest.warns(
        CalibrationWarning, match=r"wrapper='any'.*1,000 of 1,000 rows.*overfits by construction"
    ) as seen:
        result = calibrant.risk_gap(y, p, threshold=0.5, wrapper="any")
    assert seen[0].filename == __file__
    assert result.best_risk == 0.0  # of course
    assert "overfits by construction" in result.notes[0]
    assert "Note: wrapper='any'" in str(result)
    with pytest.warns(CalibrationWarning, match="overfits"):
        calibrant.sign_testing_gap(rng.random(1000), p, threshold=0.5, wrapper="any")
    oracle = calibrant.risk_gap(p**2, p, threshold=0.5, wrapper="any")  # exact event probabilities: no warning
    assert oracle.notes == ()
    repeating = calibrant.risk_gap(y, p.round(1), threshold=0.5, wrapper="any")
    assert repeating.gap <= repeating.bound.right


def test_oracle_outcomes_give_expected_losses():
    # Uniform forecasts with event probability p^2, on a midpoint grid: act from sqrt(tau) instead of tau up.
    p = (np.arange(100_000) + 0.5) / 100_000
    result = calibrant.risk_gap(p**2, p, threshold=0.25, wrapper="any")
    assert result.gap == pytest.approx(0.25 * 0.25 - (0.125 - 0.25**3) / 3, abs=1e-9)  # integral of 1/4 - p^2
    assert result.gap == pytest.approx(calibrant.risk_gap(p**2, p, threshold=0.25).gap, abs=1e-12)
    assert calibrant.best_threshold(p**2, p, threshold=0.25).cutoff == pytest.approx(0.5, abs=1e-5)


# --- The curve --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrapper", WRAPPERS[:2])
@given(data=rows(most=10), share=st.floats(0.01, 0.99))
@settings(max_examples=60)
def test_the_curve_equals_the_pointwise_gap_at_and_between_knots(wrapper, data, share):
    y, p, w, tally = tallied(data)
    curve = calibrant.risk_gap_curve(tally, wrapper=wrapper)
    knots = curve.threshold
    assert (knots[0], knots[-1]) == (0.0, 1.0)
    assert (np.diff(knots) > 0).all()
    assert set(tally.forecast) <= set(knots)
    mean = np.average(y, weights=w)
    for k, tau in enumerate(knots):
        best = brute_force.best_risk(y, p, tau, wrapper, w)
        value = brute_force.mean_loss(y, p, w, from_up(tau), tau)
        above = brute_force.mean_loss(y, p, w, lambda q, tau=tau: q > tau, tau)
        constant = min(tau * (1 - mean), (1 - tau) * mean)
        assert (curve.risk[k], curve.risk_right[k]) == pytest.approx((value, above), abs=1e-12)
        assert (curve.gap[k], curve.gap_right[k]) == pytest.approx((value - best, above - best), abs=1e-12)
        assert (curve.regret[k], curve.regret_right[k]) == pytest.approx(
            (value - constant, above - constant), abs=1e-12
        )
    assert curve.at(knots) == pytest.approx(curve.gap, abs=1e-15)
    between = knots[:-1] + share * np.diff(knots)
    between = between[(between > knots[:-1]) & (between < knots[1:])]
    for tau in between:
        value = brute_force.mean_loss(y, p, w, from_up(tau), tau)
        assert curve.at(tau) == pytest.approx(value - brute_force.best_risk(y, p, tau, wrapper, w), abs=1e-12)
        assert curve.risk_at(tau) == pytest.approx(value, abs=1e-12)
        assert curve.regret_at(tau) == pytest.approx(value - min(tau * (1 - mean), (1 - tau) * mean), abs=1e-12)
    every = np.concatenate([curve.gap, curve.gap_right])
    assert curve.largest_gap == pytest.approx(every.max(), abs=1e-15)
    there = curve.at(curve.largest_gap_at)
    if curve.largest_gap_attained:
        assert there == pytest.approx(curve.largest_gap, abs=2e-12)
    else:
        assert there < curve.largest_gap
        assert curve.gap_right[knots == curve.largest_gap_at] == pytest.approx(curve.largest_gap, abs=2e-12)
    assert curve.largest_regret == pytest.approx(max(curve.regret.max(), curve.regret_right.max(), 0.0), abs=1e-15)
    assert curve.largest_regret <= curve.largest_gap + 1e-12  # constant actions are among the wrappers


def integral(curve):
    """The integral of the gap over all thresholds: trapezoids from just above one knot to the next."""
    return float((curve.gap_right[:-1] + curve.gap[1:]) @ np.diff(curve.threshold)) / 2


@given(rows(most=15))
def test_twice_the_integral_of_the_curve_is_the_miscalibration_of_the_brier_score(data):
    y, p, w, tally = tallied(data)
    curve = calibrant.risk_gap_curve(tally)
    miscalibration = calibrant.score_decomposition(tally).miscalibration
    assert 2 * integral(curve) == pytest.approx(miscalibration, abs=1e-12)
    saved = (y - p) ** 2 - (y - brute_force.isotonic(y, p, w)) ** 2
    assert miscalibration == pytest.approx(np.average(saved, weights=w), abs=1e-12)


def test_the_curve_of_many_rows_equals_the_pointwise_gap():
    rng = np.random.default_rng(2)
    p = rng.random(20_000)
    tally = Tally.from_arrays(rng.random(p.size) < 1 - p**2, p)  # falling: both sides matter
    for wrapper in WRAPPERS[:2]:
        curve = calibrant.risk_gap_curve(tally, wrapper=wrapper)
        for tau in rng.random(30):
            assert curve.at(tau) == pytest.approx(
                calibrant.risk_gap(tally, threshold=tau, wrapper=wrapper).gap, abs=1e-12
            )
    assert calibrant.risk_gap_curve(tally, wrapper="monotone").largest_gap > curve.at(0.01)


def test_a_largest_gap_that_is_only_approached_is_called_so():
    # Just above 0.4 the row is missed, at 0.4 it is not.
    curve = calibrant.risk_gap_curve([1], [0.4])
    assert (curve.largest_gap, curve.largest_gap_at, curve.largest_gap_attained) == (pytest.approx(0.6), 0.4, False)
    assert "approached just above threshold 0.4" in str(curve)
    assert curve.at(0.4) == 0.0
    attained = calibrant.risk_gap_curve([0], [0.4])
    assert (attained.largest_gap, attained.largest_gap_at, attained.largest_gap_attained) == (0.4, 0.4, True)
    assert "(at threshold 0.4)" in str(attained)
    assert "regret against always or never acting is 0.40000, at threshold 0.4." in str(attained)


def test_the_murphy_curve_is_the_risk_at_every_threshold():
    rng = np.random.default_rng(3)
    p = rng.random(200).round(2)
    y = (rng.random(200) < p).astype(float)
    curve = calibrant.murphy_curve(y, p)
    at = np.concatenate([rng.random(50), p[:20], [0.0, 1.0]])
    assert curve.risk_at(at) == pytest.approx(calibrant.decision_risk(y, p, threshold=at).risk, abs=1e-12)
    area = float((curve.risk_right[:-1] + curve.risk[1:]) @ np.diff(curve.threshold))  # twice the integral
    assert area == pytest.approx(brier_score_loss(y, p), abs=1e-12)
    assert curve.constant_risk.max() == pytest.approx(y.mean() * (1 - y.mean()))
    assert list(curve.frame().columns) == ["threshold", "risk", "risk_right", "constant_risk"]


def test_calibrated_forecasts_have_a_flat_curve():
    for y, p in (([0.2, 0.5, 0.9], [0.2, 0.5, 0.9]), ([0] * 9 + [1] + [0] * 7 + [1] * 3, [0.1] * 10 + [0.3] * 10)):
        curve = calibrant.risk_gap_curve(y, p)
        assert (curve.largest_gap, curve.largest_regret, curve.bound.holds) == (0.0, 0.0, True)
        assert "At no threshold would always or never acting have been better." in str(curve)
        assert calibrant.risk_gap(y, p, threshold=0.3).gap == 0.0


# --- Guarantees -------------------------------------------------------------------------------------------------------

ASSUMPTIONS = ("rows are independent draws from one population", "the forecaster was fixed without looking at them")


def limit(
    measure="cutoff", upper=0.03, alternative="less", target="population", finite_sample=True, confidence_level=0.95
):
    return ConfidenceInterval(
        measure=measure,
        estimate=0.01,
        lower=0.0,
        upper=upper,
        confidence_level=confidence_level,
        alternative=alternative,
        method="adaptive",
        n=5000,
        n_eff=5000.0,
        target=target,
        finite_sample=finite_sample,
        assumptions=ASSUMPTIONS,
    )


def certificate(**changes):
    interval = limit(**changes)
    return Certificate(
        verdict="undecided",
        max_error=0.02,
        worst_interval=calibrant.worst_interval([0, 1], [0.4, 0.6]),
        rows_needed=None,
        notes=("mind this",),
        **{
            name: getattr(interval, name)
            for name in ("measure", "estimate", "lower", "upper", "confidence_level", "method", "n", "n_eff")
        },
        target=interval.target,
        finite_sample=interval.finite_sample,
        assumptions=ASSUMPTIONS,
    )


@pytest.mark.parametrize("make", [limit, certificate])
def test_a_guarantee_repeats_whose_loss_with_what_confidence_and_what_it_assumes(make):
    guarantee = calibrant.decision_guarantee(make())
    assert (guarantee.nondecreasing, guarantee.monotone, guarantee.any, guarantee.threshold) == (0.03, 0.06, None, None)
    text = str(guarantee)
    assert text.startswith(
        "With 95% confidence no non-decreasing recalibration of these forecasts lowers the expected loss at any "
        "threshold by more than 0.0300, and no monotone one, rising or falling, by more than 0.0600. This speaks of "
        "the expected loss in the population that the rows come from."
    )
    assert "assumes that " + "; ".join(ASSUMPTIONS) in text
    assert "Cutoff calibration error <= 0.0300 (adaptive method). It holds at every number of rows" in text
    assert text.endswith("Note: mind this") == (make is certificate)


def test_a_guarantee_about_these_forecasts_says_so():
    text = str(calibrant.decision_guarantee(limit(target="these forecasts", finite_sample=False)))
    assert "averaged over these very forecasts, which says nothing of others from the same population" in text
    assert "It holds approximately, for many rows" in text


def test_a_guarantee_from_the_ece_covers_every_wrapper():
    guarantee = calibrant.decision_guarantee(limit("ece"), 0.2)
    assert (guarantee.nondecreasing, guarantee.monotone, guarantee.any) == (0.03, 0.03, 0.03)
    assert "no recalibration of any shape of these forecasts lowers the expected loss at threshold 0.2" in str(
        guarantee
    )


def test_a_guarantee_at_one_threshold_never_promises_less_than_nothing_can_cost():
    wide = limit(upper=0.9)
    assert calibrant.decision_guarantee(wide, threshold=0.7).nondecreasing == 0.7
    assert calibrant.decision_guarantee(wide).monotone == 1.0
    costs = calibrant.decision_guarantee(limit(), cost_false_positive=100, cost_false_negative=900)
    assert (costs.threshold, costs.nondecreasing, costs.cost_unit) == (0.1, 0.03, 1000.0)
    assert "by more than 0.0300 (30 in cost units)" in str(costs)


def test_a_guarantee_never_reads_like_certainty():
    assert str(calibrant.decision_guarantee(limit(confidence_level=0.999999))).startswith("With 99.9999% confidence")


def test_a_guarantee_needs_to_know_its_variation():
    with refused(r"^certificate\.measure is 'bounded_variation', .*does not record that; certify 'cutoff'"):
        calibrant.decision_guarantee(limit("bounded_variation"))


@pytest.mark.parametrize("measure", ["smooth", "distance"])
def test_only_cutoff_and_ece_guarantee_decisions(measure):
    with refused(rf"^certificate\.measure is '{measure}', which does not bound .*Example 3\.1.*certify 'cutoff'"):
        calibrant.decision_guarantee(limit(measure))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (0.03, r"^certificate must be a Certificate or ConfidenceInterval, got float; a number measured on some rows"),
        (limit(alternative="greater"), r"^certificate has a lower limit only .*'less' or 'two-sided'"),
    ],
)
def test_a_guarantee_needs_an_upper_limit(given, message):
    with refused(message):
        calibrant.decision_guarantee(given)


def test_a_guarantee_holds_for_the_population_it_was_drawn_from():
    # Forecasts of 1/4 and 3/4 whose event rates are 0.35 and 0.6: the population gap never exceeds the population's
    # Cutoff error, so whenever the limit is above that, every promise holds.
    population = Tally.from_arrays([0.35, 0.6], [0.25, 0.75])
    cutoff = calibrant.cutoff_calibration_error(population)
    guarantee = calibrant.decision_guarantee(limit(upper=cutoff))
    for wrapper, most in (("nondecreasing", guarantee.nondecreasing), ("monotone", guarantee.monotone)):
        assert calibrant.risk_gap_curve(population, wrapper=wrapper).largest_gap <= most + 1e-15


# --- Sign testing -----------------------------------------------------------------------------------------------------


@given(rows(), st.lists(thresholds, min_size=1, max_size=3))
def test_sign_testing_risk_is_the_mean_loss_row_by_row(data, several):
    y, p, w, tally = tallied(data)
    expected = [brute_force.mean_loss(y, p, w, lambda q, t=t: q > t, t, brute_force.sign_loss) for t in several]
    if tally.binary_outcomes:
        assert calibrant.sign_testing_risk(tally, threshold=several).risk == pytest.approx(expected, abs=1e-12)
    if tally.binary_outcomes or not set(p) <= {0.0, 1.0}:  # otherwise the arguments look swapped
        result = calibrant.sign_testing_risk(y, p, threshold=several, sample_weight=w)
        assert result.risk == pytest.approx(expected, abs=1e-12)
        gap = calibrant.sign_testing_gap(y, p, threshold=several[0], sample_weight=w)
        assert gap.risk == pytest.approx(expected[0], abs=1e-12)


def test_sign_testing_acts_strictly_above_its_threshold():
    y, p = [0.1, 0.9], [0.5, 0.5]
    assert calibrant.sign_testing_risk(y, p, threshold=0.5).acted == 0.0
    assert calibrant.decision_risk(y, p, threshold=0.5).acted == 1.0
    assert str(calibrant.sign_testing_risk(y, p, threshold=0.5)) == (
        "At threshold 0.5, acting above it (on 0.0% of all rows) loses 0.20000 per row on average: 0.00000 from "
        "outcomes not above it acted on and 0.20000 from outcomes above it not acted on."
    )


def test_a_sign_testing_gap_at_a_forecast_equal_to_the_threshold_is_told():
    result = calibrant.sign_testing_gap([0, 1], [0.2, 0.5], threshold=0.5)
    assert result.gap == 0.25
    assert "by 0.25000, from 0.25000 to 0.00000, and by no more. To attain that, act on forecasts of at least 0.5." in (
        str(result)
    )


def test_the_sign_testing_risk_of_fractions_is_no_function_of_a_tally_but_its_gap_is():
    y, p = [0.1, 0.7, 0.4, 0.8], [0.2, 0.4, 0.9, 0.4]
    tally = Tally.from_arrays(y, p)
    with refused(r"^y_true is a Tally of fractional outcomes, .*pass the arrays, or use sign_testing_gap"):
        calibrant.sign_testing_risk(tally, threshold=0.5)
    from_tally = calibrant.sign_testing_gap(tally, threshold=0.5)
    from_rows = calibrant.sign_testing_gap(y, p, threshold=0.5)
    assert from_tally.gap == from_rows.gap
    assert (from_tally.risk, from_tally.best_risk) == (None, None)
    assert from_rows.best_risk == pytest.approx(from_rows.risk - from_rows.gap)
    assert "loss on these rows by 0.12500, and by no more. To attain that, act on forecasts of at least 0.4." in str(
        from_tally
    )
    assert "by 0.12500, from 0.15000 to 0.02500, and by no more." in str(from_rows)


# --- Scores -----------------------------------------------------------------------------------------------------------


def direct(name, y, p):
    """The score of each row, from its usual formula."""
    chance = np.where(y == 1, p, 1 - p)
    with np.errstate(divide="ignore"):
        return {
            "brier": (y - p) ** 2,
            "log": -np.log(chance),
            "spherical": 1 - chance / np.sqrt(p**2 + (1 - p) ** 2),
        }[name]


@pytest.mark.parametrize("name", ["brier", "log", "spherical"])
@given(data=rows(most=15, binary=True))
@settings(max_examples=80)
def test_a_decomposition_is_made_of_directly_computed_scores(name, data):
    y, p, w, tally = tallied(data)
    result = calibrant.score_decomposition(tally, score=name)
    weight = np.ones(p.size) if w is None else w
    base = np.average(y, weights=weight)
    mean, recalibrated, constant = (
        np.average(direct(name, y, forecast), weights=weight)
        for forecast in (p, brute_force.isotonic(y, p, w), np.full(p.size, base))
    )
    assert result.score == pytest.approx(mean, abs=1e-12, rel=1e-12)
    assert result.uncertainty == pytest.approx(constant, abs=1e-12)
    assert result.discrimination == pytest.approx(constant - recalibrated, abs=1e-12)
    if math.isfinite(mean):
        assert result.miscalibration == pytest.approx(mean - recalibrated, abs=1e-12)
        parts = result.miscalibration - result.discrimination + result.uncertainty
        assert parts == pytest.approx(result.score, abs=1e-12)
    else:
        assert name == "log"
        assert (result.score, result.miscalibration) == (math.inf, math.inf)
        assert result.contradicted > 0.0
    assert all(bound.holds for bound in result.bounds)
    assert len(result.bounds) == (0 if name == "log" else 3)


@given(rows(most=10), st.lists(st.tuples(thresholds, st.sampled_from([0.25, 1.0, 3.0])), min_size=1, max_size=4))
@settings(max_examples=60)
def test_miscalibration_of_a_discrete_measure_is_the_weighted_sum_of_gaps(data, atoms):
    y, p, w, tally = tallied(data)
    place, mass = zip(*atoms, strict=True)
    result = calibrant.score_decomposition(tally, score=SchervishMeasure(atoms=place, masses=mass))
    risks = [brute_force.mean_loss(y, p, w, from_up(t), t) for t in place]
    best = [brute_force.best_risk(y, p, t, "nondecreasing", w) for t in place]
    assert result.score == pytest.approx(np.dot(mass, risks), abs=1e-12)
    assert result.miscalibration == pytest.approx(np.dot(mass, np.subtract(risks, best)), abs=1e-12)
    assert result.mass == pytest.approx(sum(mass))
    assert all(bound.holds for bound in result.bounds)


@given(rows())
def test_miscalibration_stays_within_its_bounds(data):
    *_, tally = tallied(data)
    cutoff, expected = calibrant.cutoff_calibration_error(tally), np.abs(tally.residual).sum() / tally.weight_total
    for score in ("brier", "spherical", SchervishMeasure(atoms=[0.25, 0.5], masses=[1, 2])):
        result = calibrant.score_decomposition(tally, score=score)
        assert result.miscalibration <= result.mass * cutoff + 1e-12
        assert [bound.right for bound in result.bounds] == pytest.approx(
            [result.mass * cutoff, 2 * result.mass * cutoff, result.mass * expected], abs=1e-12
        )
        assert all(bound.holds for bound in result.bounds)
        savings = [bound.left for bound in result.bounds]
        assert savings == sorted(savings)
        assert savings[0] == result.miscalibration


def test_bounds_hold_however_heavy_the_measure():
    # Where gap and Cutoff are equal, a large mass magnifies the rounding of both sides.
    heavy = SchervishMeasure(atoms=[0.1], masses=[1e9])
    result = calibrant.score_decomposition([0, 0, 0], [0.1, 0.1, 0.1], score=heavy)
    assert result.miscalibration == pytest.approx(1e8)
    assert all(bound.holds for bound in result.bounds)


def test_usual_scores_are_those_of_scikit_learn():
    rng = np.random.default_rng(5)
    p, w = rng.random(400), rng.random(400)
    y = (rng.random(400) < p).astype(int)
    brier = calibrant.score_decomposition(y, p, sample_weight=w)
    assert brier.score == pytest.approx(brier_score_loss(y, p, sample_weight=w), abs=1e-12)
    log = calibrant.score_decomposition(y, p, score="log", sample_weight=w)
    assert log.score == pytest.approx(log_loss(y, p, sample_weight=w), abs=1e-12)
    assert log.skill == pytest.approx(1 - log.score / log.uncertainty)
    assert log.bounds == ()
    assert log.notes[0].startswith("no calibration error bounds the miscalibration of the log score")
    assert log.frame()["component"].tolist() == ["score", "miscalibration", "discrimination", "uncertainty", "skill"]


def test_a_sure_forecast_that_is_wrong_has_an_infinite_log_loss_and_no_warning():
    y, p = [0, 1, 1, 0], [0.0, 0.0, 0.7, 0.4]
    result = calibrant.score_decomposition(y, p, score="log")
    assert (result.score, result.miscalibration, result.skill) == (math.inf, math.inf, -math.inf)
    assert result.contradicted == 0.25
    assert result.uncertainty == pytest.approx(math.log(2))
    assert 0.0 < result.discrimination < math.log(2)
    assert "outcomes contradicted forecasts of exactly 0 or 1, at infinite cost" in str(result)
    back = Result.from_json(result.to_json())
    assert (back.score, back.miscalibration, back.skill, back.mass) == (math.inf, math.inf, -math.inf, math.inf)
    right = calibrant.score_decomposition([0, 1], [0.0, 1.0], score="log")
    assert (right.score, right.miscalibration, right.skill) == (0.0, 0.0, 1.0)
    brier = calibrant.score_decomposition(y, p)
    assert math.isfinite(brier.score)


def test_the_saving_of_any_recalibration_says_where_it_overfits():
    rng = np.random.default_rng(2)
    p = rng.random(100)
    noisy = calibrant.score_decomposition(rng.random(100) < p, p)
    assert "the saving of any recalibration compares each distinct forecast with the outcomes" in str(noisy)
    assert "100 of 100 rows share theirs with fewer than 10 rows: it overfits by construction" in noisy.notes[0]
    assert calibrant.score_decomposition(p**2, p).notes == ()
    assert calibrant.score_decomposition([0, 1] * 10, [0.3, 0.6] * 10).notes == ()


def test_skill_is_undefined_without_uncertainty():
    result = calibrant.score_decomposition([1, 1], [0.4, 0.9])
    assert (result.uncertainty, result.skill) == (0.0, None)
    assert "skill against the base rate undefined" in str(result)


def test_the_score_of_fractions_is_the_expected_score_of_events():
    y, p = np.array([0.25, 0.5, 1.0]), np.array([0.5, 0.25, 0.75])
    counts = Tally.from_counts(p, rows=[4, 4, 4], events=[1, 2, 4])
    for score in ("brier", "log", "spherical"):
        fractions = calibrant.score_decomposition(y, p, score=score)
        events = calibrant.score_decomposition(counts, score=score)
        for part in ("score", "miscalibration", "discrimination", "uncertainty"):
            assert getattr(fractions, part) == pytest.approx(getattr(events, part), abs=1e-12)


# --- Net benefit and the best cutoff ----------------------------------------------------------------------------------


@given(rows(), st.lists(st.floats(0.0, 0.999), min_size=1, max_size=4))
def test_net_benefit_is_decision_risk_written_in_true_positives(data, several):
    y, p, w, tally = tallied(data)
    result = calibrant.net_benefit(tally, threshold=several)
    risk = calibrant.decision_risk(tally, threshold=several).risk
    tau = np.array(several)
    assert (1 - tau) * (result.mean_outcome - result.net_benefit) == pytest.approx(risk, abs=1e-12)
    weight = np.ones(p.size) if w is None else w
    for k, t in enumerate(several):
        odds = t / (1 - t)
        by_hand = np.average(np.where(p >= t, y - odds * (1 - y), 0.0), weights=weight)
        everybody = np.average(y - odds * (1 - y), weights=weight)
        assert result.net_benefit[k] == pytest.approx(by_hand, abs=1e-9 * (1 + odds))
        assert result.treat_all[k] == pytest.approx(everybody, abs=1e-9 * (1 + odds))
    assert result.treat_none.tolist() == [0.0] * len(several)


def test_net_benefit_as_a_decision_curve():
    rng = np.random.default_rng(6)
    p = rng.random(500)
    result = calibrant.net_benefit(rng.random(500) < p, p)
    assert result.threshold == pytest.approx(np.arange(1, 100) / 100)
    frame = result.frame()
    assert list(frame.columns) == ["threshold", "net_benefit", "treat_all", "treat_none"]
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == 99
    assert str(result).startswith("net benefit at 99 thresholds from 0.01 to 0.99: above that of treating all and of")
    one = calibrant.net_benefit([1, 0, 0, 0], [0.9, 0.2, 0.3, 0.1], threshold=0.5)
    assert (one.net_benefit, one.treat_all, one.treat_none) == (0.25, -0.5, 0.0)
    assert "that of treating none, the better of the two without forecasts, is 0.00000" in str(one)
    assert calibrant.net_benefit([1, 0], [0.9, 0.1], threshold=0.0).net_benefit == 0.5


@given(rows(most=12), thresholds)
def test_the_best_threshold_is_the_best_cutoff(data, threshold):
    y, p, w, tally = tallied(data)
    result = calibrant.best_threshold(tally, threshold=threshold)
    best = brute_force.best_risk(y, p, threshold, "nondecreasing", w)
    assert result.best_risk == pytest.approx(best, abs=1e-12)
    assert result.saving == pytest.approx(result.risk - best, abs=1e-12)
    low = -1.0 if result.cutoff_above is None else result.cutoff_above
    equivalent = [2.0] if result.cutoff is None else [result.cutoff, (low + result.cutoff) / 2]
    if result.cutoff is not None:
        assert low < result.cutoff or result.cutoff == 0.0
    for cutoff in equivalent:
        if cutoff > low:
            assert brute_force.mean_loss(y, p, w, from_up(cutoff), threshold) == pytest.approx(best, abs=1e-12)
    weight = np.ones(p.size) if w is None else w
    moved = result.rule.acts(p) != (p >= threshold)
    assert result.changed == pytest.approx(np.average(moved, weights=weight), abs=1e-12)


def test_the_best_threshold_in_words():
    better = calibrant.best_threshold([0, 0, 1, 1], [0.2, 0.3, 0.4, 0.9], threshold=0.5)
    assert str(better) == (
        "At threshold 0.5, the mean loss on these rows falls from 0.12500 to 0.00000, a saving of 0.12500, if you act "
        "on forecasts of at least 0.4; 25.0% of all rows would be treated differently. The cutoff was chosen on these "
        "rows, so expect less of it on others."
    )
    same = calibrant.best_threshold([0, 1], [0.2, 0.9], threshold=0.5)
    assert (same.cutoff, same.cutoff_above, same.saving, same.changed) == (0.5, 0.2, 0.0, 0.0)
    assert str(same) == "At threshold 0.5, no other cutoff does better on these rows: the mean loss is 0.00000."
    assert calibrant.best_threshold([1, 1], [0.2, 0.3], threshold=0.5).cutoff == 0.0
    never = calibrant.best_threshold([0, 0], [0.7, 1.0], threshold=0.5)
    assert (never.cutoff, never.cutoff_above, never.rule.kind) == (None, 1.0, "never")


# --- Bad options ------------------------------------------------------------------------------------------------------

ROWS = ([0, 1, 1, 0], [0.1, 0.4, 0.6, 0.9])
ONE_THRESHOLD = [calibrant.risk_gap, calibrant.best_threshold]


@pytest.mark.parametrize("function", [calibrant.decision_risk, *ONE_THRESHOLD])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"^threshold is missing: pass threshold=, or cost_false_positive= and cost_false_negative= in its place"),
        ({"threshold": 20}, r"^threshold must be a number from 0 to 1, got 20"),
        ({"threshold": -0.1}, r"^threshold must be a number from 0 to 1, got -0\.1"),
        ({"threshold": np.nan}, r"^threshold must be a number from 0 to 1, got nan"),
        ({"threshold": "0.5"}, r"^threshold must be a number, got '0\.5' of type str"),
        ({"threshold": True}, r"^threshold must be a number, got True of type bool"),
        ({"threshold": []}, r"^threshold is empty; pass one threshold or an array of them"),
        ({"threshold": [0.2, 20.0]}, r"^threshold\[1\] is 20, outside \[0, 1\]; .*divide percentages by 100"),
        ({"threshold": [0.2, np.nan]}, r"^threshold\[1\] is missing"),
        ({"threshold": [[0.2, 0.3]]}, r"^threshold has shape \(1, 2\)"),
        ({"threshold": ["a"]}, r"^threshold\[0\] is 'a' of type str, not a number"),
        ({"threshold": 0.5, "cost_false_positive": 1}, r"^threshold was given together with costs, which say the same"),
        ({"cost_false_positive": 1}, r"^cost_false_negative is missing: pass both costs, or threshold="),
        ({"cost_false_negative": 1}, r"^cost_false_positive is missing: pass both costs, or threshold="),
        ({"cost_false_positive": -1, "cost_false_negative": 1}, r"^cost_false_positive must be a number from 0 to 1e"),
        ({"cost_false_positive": 1, "cost_false_negative": np.inf}, r"^cost_false_negative must be a number from 0 to"),
        ({"cost_false_positive": 0, "cost_false_negative": 0}, r"^both costs are 0, so no decision matters"),
    ],
)
def test_thresholds_and_costs_that_make_no_sense_are_refused(function, options, message):
    with refused(message):
        function(*ROWS, **options)


@pytest.mark.parametrize("function", [*ONE_THRESHOLD, calibrant.sign_testing_gap])
def test_functions_of_one_threshold_say_where_to_go_with_more(function):
    with refused(r"^threshold has 2 values where one is needed: call it once for each; .*risk_gap_curve tells"):
        function(*ROWS, threshold=[0.2, 0.3])


@pytest.mark.parametrize("threshold", [0.5, np.float32(0.5), np.array(0.5)], ids=repr)
def test_one_threshold_may_be_any_kind_of_number(threshold):
    assert calibrant.decision_risk(*ROWS, threshold=threshold).risk == 0.25


@pytest.mark.parametrize("several", [(0.5, 0.25), np.array([0.5, 0.25]), pd.Series([0.5, 0.25], index=[7, 3])])
def test_several_thresholds_may_come_in_any_order_and_container(several):
    result = calibrant.decision_risk(*ROWS, threshold=several)
    assert result.risk.tolist() == [calibrant.decision_risk(*ROWS, threshold=t).risk for t in (0.5, 0.25)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: calibrant.risk_gap(*ROWS, threshold=0.5, wrapper="rising"),
            r"^wrapper must be one of 'nondecreasing'",
        ),
        (
            lambda: calibrant.risk_gap_curve(*ROWS, wrapper="any"),
            r"^wrapper must be one of 'nondecreasing', 'monotone'",
        ),
        (lambda: calibrant.sign_testing_gap(*ROWS, threshold=2), r"^threshold must be a number from 0 to 1, got 2"),
        (lambda: calibrant.sign_testing_risk(*ROWS, threshold=None), r"^threshold must be a number, got None"),
        (lambda: calibrant.net_benefit(*ROWS, threshold=[0.5, 1.0]), r"^threshold is 1, .*keep it below 1"),
        (lambda: calibrant.score_decomposition(*ROWS, score="crps"), r"^score must be one of 'brier', 'log', 'spheric"),
        (lambda: calibrant.score_decomposition(*ROWS, score=np.cos), r"^score must be one of .*or a SchervishMeasure"),
        (lambda: calibrant.risk_gap_curve(*ROWS).at(1.5), r"^threshold must be a number from 0 to 1, got 1\.5"),
        (lambda: calibrant.risk_gap(*ROWS, threshold=0.5).rule.acts([2.0]), r"^y_prob\[0\] is 2, outside"),
    ],
)
def test_other_options_that_do_not_fit_are_refused(call, message):
    with refused(message):
        call()


# --- Results ----------------------------------------------------------------------------------------------------------

ALL_RESULTS = {
    "DecisionRisk": calibrant.decision_risk(*ROWS, threshold=0.5),
    "DecisionRisk of several": calibrant.decision_risk(*ROWS, threshold=[0.5, 0.7]),
    "DecisionRisk of costs": calibrant.decision_risk(*ROWS, cost_false_positive=1, cost_false_negative=4),
    "sign-testing DecisionRisk": calibrant.sign_testing_risk(*ROWS, threshold=0.5),
    "RiskGap": calibrant.risk_gap(*ROWS, threshold=0.3),
    "RiskGap with a set": calibrant.risk_gap(
        Tally.from_counts([0.2, 0.6], [20, 20], [15, 3]), threshold=0.5, wrapper="any"
    ),
    "sign-testing RiskGap": calibrant.sign_testing_gap(Tally.from_arrays([0.2, 0.8], [0.6, 0.3]), threshold=0.5),
    "RiskGapCurve": calibrant.risk_gap_curve(*ROWS),
    "MurphyCurve": calibrant.murphy_curve(*ROWS),
    "BestThreshold": calibrant.best_threshold(*ROWS, threshold=0.3),
    "DecisionGuarantee": calibrant.decision_guarantee(limit(), threshold=0.3),
    "ScoreDecomposition": calibrant.score_decomposition(*ROWS),
    "NetBenefit": calibrant.net_benefit(*ROWS),
    "one NetBenefit": calibrant.net_benefit(*ROWS, threshold=0.25),
}


@pytest.mark.parametrize("result", ALL_RESULTS.values(), ids=ALL_RESULTS.keys())
def test_results_survive_a_file_and_read_the_same(result):
    content = json.loads(result.to_json())
    back = Result.from_dict(content)
    assert type(back) is type(result)
    assert back == result
    assert back.to_dict() == result.to_dict()
    assert str(back) == str(result)
    assert "array(" not in repr(result)
    assert result._repr_html_().startswith("<pre>")
    with pytest.raises(AttributeError):
        result.threshold = 0.5


def test_frames_have_one_row_per_threshold():
    assert len(ALL_RESULTS["DecisionRisk"].frame()) == 1
    frame = ALL_RESULTS["DecisionRisk of several"].frame()
    assert list(frame.columns) == ["threshold", "risk", "false_positive", "false_negative", "acted"]
    assert len(frame) == 2
    curve = ALL_RESULTS["RiskGapCurve"]
    assert list(curve.frame().columns) == [
        "threshold",
        "risk",
        "risk_right",
        "constant_risk",
        "best_risk",
        "gap",
        "gap_right",
        "regret",
        "regret_right",
    ]
    assert len(curve.frame()) == curve.threshold.size
    gap = ALL_RESULTS["RiskGap"]
    assert gap.frame().to_dict("records") == [
        {
            "threshold": 0.3,
            "wrapper": "nondecreasing",
            "risk": gap.risk,
            "best_risk": gap.risk,
            "gap": 0.0,
            "bound": gap.bound.right,
        }
    ]
    best = ALL_RESULTS["BestThreshold"].frame()
    assert list(best.columns) == ["threshold", "cutoff", "cutoff_above", "risk", "best_risk", "saving", "changed"]
    assert best.cutoff.tolist() == [0.3]
    promised = ALL_RESULTS["DecisionGuarantee"].frame()
    assert promised.recalibration.tolist() == ["nondecreasing", "monotone", "any"]
    assert promised.upper[:2].tolist() == [0.03, 0.06]
    assert promised.upper.isna().tolist() == [False, False, True]


def test_risks_in_words():
    assert str(ALL_RESULTS["DecisionRisk of costs"]) == (
        "At threshold 0.2 (a false positive costs 1, a false negative 4), acting from there up (on 75.0% of all rows) "
        "loses 0.05000 per row on average (0.25 in cost units): 0.05000 from acting in vain and 0.00000 from events "
        "missed."
    )
    assert str(ALL_RESULTS["DecisionRisk of several"]) == (
        "mean decision loss at 2 thresholds from 0.5 to 0.7: between 0.25000 and 0.32500"
    )
    assert str(ALL_RESULTS["RiskGap"]).startswith(
        "At threshold 0.3, no non-decreasing recalibration of these forecasts lowers the mean decision loss on these "
        "rows, 0.07500.\ngap <= Cutoff: 0 <= 0.25 holds (this project)"
    )
    assert str(ALL_RESULTS["MurphyCurve"]).startswith("mean loss at every threshold, on 7 knots: at most 0.3")
