"""What could be saved and what is promised, beside slow versions and beside theory."""

import warnings
from dataclasses import replace

import brute_force
import numpy as np
import pytest
from brute_force import rows
from decision_cases import ASSUMPTIONS, WRAPPERS, direct_limit, from_up, limit, refused, tallied, thresholds
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant
from calibrant import CalibrationWarning, Tally
from calibrant.certificates import Certificate
from calibrant.rows.refinement import TOLERANCE


def gap_of(function, tally, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return function(tally, **options)


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
    result = gap_of(calibrant.decisions.sign_testing_gap, tally, threshold=threshold, wrapper=wrapper)
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
@settings(max_examples=150)
def test_no_gap_exceeds_what_calibration_errors_allow(data, threshold):
    *_, tally = tallied(data)
    cutoff, expected = calibrant.cutoff_calibration_error(tally), np.abs(tally.residual).sum() / tally.weight_total
    limits = dict(zip(WRAPPERS, [cutoff, 2 * cutoff, expected], strict=True))
    at = [threshold, *tally.forecast[:3], np.nextafter(tally.forecast[-1], 1.0)]
    for function in (calibrant.risk_gap, calibrant.decisions.sign_testing_gap):
        for wrapper, most in limits.items():
            for tau in at:
                result = gap_of(function, tally, threshold=min(float(tau), 1.0), wrapper=wrapper)
                assert result.gap <= most + 1e-12
                assert result.bound.holds
                assert result.bound.right == pytest.approx(most, abs=1e-12)
    for wrapper in WRAPPERS[:2]:
        curve = calibrant.decisions.risk_gap_curve(tally, wrapper=wrapper)
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
    [(calibrant.risk_gap, ("3.1", "3.2")), (calibrant.decisions.sign_testing_gap, ("B.2", "B.2"))],
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
    assert (
        str(calibrant.decisions.sign_testing_gap([0, 0, 1, 1], p, threshold=0.5).rule) == "act on forecasts above 0.5"
    )


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
        calibrant.decisions.sign_testing_gap(rng.random(1000), p, threshold=0.5, wrapper="any")
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


@pytest.mark.parametrize("wrapper", WRAPPERS[:2])
@given(data=rows(most=10), share=st.floats(0.01, 0.99))
@settings(max_examples=60)
def test_the_curve_equals_the_pointwise_gap_at_and_between_knots(wrapper, data, share):
    y, p, w, tally = tallied(data)
    curve = calibrant.decisions.risk_gap_curve(tally, wrapper=wrapper)
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
    gap, regret = max(curve.gap.max(), curve.gap_right.max()), max(curve.regret.max(), curve.regret_right.max())
    # What rounding leaves of no gap at all, or of no regret, is none.
    assert curve.largest_gap == pytest.approx(gap if gap > TOLERANCE else 0.0, abs=1e-15)
    assert curve.largest_regret == pytest.approx(regret if regret > TOLERANCE else 0.0, abs=1e-15)
    there = curve.at(curve.largest_gap_at)
    if curve.largest_gap_attained:
        assert there == pytest.approx(curve.largest_gap, abs=2e-12)
    else:
        assert there < curve.largest_gap
        assert curve.gap_right[knots == curve.largest_gap_at] == pytest.approx(curve.largest_gap, abs=2e-12)
    assert curve.largest_regret <= curve.largest_gap + 1e-12  # constant actions are among the wrappers


def integral(curve):
    """The integral of the gap over all thresholds: trapezoids from just above one knot to the next."""
    return float((curve.gap_right[:-1] + curve.gap[1:]) @ np.diff(curve.threshold)) / 2


@given(rows(most=15))
def test_twice_the_integral_of_the_curve_is_the_miscalibration_of_the_brier_score(data):
    y, p, w, tally = tallied(data)
    curve = calibrant.decisions.risk_gap_curve(tally)
    miscalibration = calibrant.decisions.score_decomposition(tally).miscalibration
    assert 2 * integral(curve) == pytest.approx(miscalibration, abs=1e-12)
    saved = (y - p) ** 2 - (y - brute_force.isotonic(y, p, w)) ** 2
    assert miscalibration == pytest.approx(np.average(saved, weights=w), abs=1e-12)


def test_the_curve_of_many_rows_equals_the_pointwise_gap():
    rng = np.random.default_rng(2)
    p = rng.random(20_000)
    tally = Tally.from_arrays(rng.random(p.size) < 1 - p**2, p)  # falling: both sides matter
    for wrapper in WRAPPERS[:2]:
        curve = calibrant.decisions.risk_gap_curve(tally, wrapper=wrapper)
        for tau in rng.random(30):
            assert curve.at(tau) == pytest.approx(
                calibrant.risk_gap(tally, threshold=tau, wrapper=wrapper).gap, abs=1e-12
            )
    monotone = calibrant.decisions.risk_gap_curve(tally, wrapper="monotone")
    assert monotone.largest_gap > monotone.at(0.01)


def test_a_largest_gap_that_is_only_approached_is_called_so():
    # Just above 0.4 the row is missed, at 0.4 it is not.
    curve = calibrant.decisions.risk_gap_curve([1], [0.4])
    assert (curve.largest_gap, curve.largest_gap_at, curve.largest_gap_attained) == (pytest.approx(0.6), 0.4, False)
    assert "approached just above threshold 0.4" in str(curve)
    assert curve.at(0.4) == 0.0
    attained = calibrant.decisions.risk_gap_curve([0], [0.4])
    assert (attained.largest_gap, attained.largest_gap_at, attained.largest_gap_attained) == (0.4, 0.4, True)
    assert "(at threshold 0.4)" in str(attained)
    assert "regret against always or never acting is 0.40000, at threshold 0.4." in str(attained)


def test_calibrated_forecasts_have_a_flat_curve():
    for y, p in (([0.2, 0.5, 0.9], [0.2, 0.5, 0.9]), ([0] * 9 + [1] + [0] * 7 + [1] * 3, [0.1] * 10 + [0.3] * 10)):
        curve = calibrant.decisions.risk_gap_curve(y, p)
        assert (curve.largest_gap, curve.largest_regret, curve.bound.holds) == (0.0, 0.0, True)
        assert "At no threshold would always or never acting have been better." in str(curve)
        assert calibrant.risk_gap(y, p, threshold=0.3).gap == 0.0


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
            for name in ("measure", "estimate", "lower", "upper", "confidence_level", "method", "rows", "n_eff")
        },
        target=interval.target,
        finite_sample=interval.finite_sample,
        assumptions=ASSUMPTIONS,
        event_rate=0.5,
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
    with refused(
        r"^certificate\.measure is 'bounded_variation', .*does not record that; certify 'risk_gap' or 'cutoff'"
    ):
        calibrant.decision_guarantee(limit("bounded_variation"))


@pytest.mark.parametrize("measure", ["smooth", "distance"])
def test_only_the_risk_gap_cutoff_and_ece_guarantee_decisions(measure):
    with refused(
        rf"^certificate\.measure is '{measure}', which does not bound .*Example 3\.1.*certify 'risk_gap' or 'cutoff'"
    ):
        calibrant.decision_guarantee(limit(measure))


# --- A guarantee from the risk gap ------------------------------------------------------------------------------------


def test_a_limit_of_the_risk_gap_is_a_promise_about_lines_and_says_so():
    guarantee = calibrant.decision_guarantee(direct_limit())
    assert (guarantee.nondecreasing, guarantee.monotone, guarantee.any) == (0.03, 0.06, None)
    assert (guarantee.threshold, guarantee.thresholds, guarantee.is_direct) == (None, (0.0, 1.0), True)
    assert guarantee.finding() == (
        "With 95% confidence no re-drawing of the line between acting and not acting saves more than 0.0300 per case, "
        "at any threshold."
    )
    text = str(guarantee)
    assert text.startswith(f"{guarantee.finding()} This speaks of the expected loss in the population")
    assert (
        "the saving itself was limited: risk gap <= 0.0300 at any threshold (adaptive method). Rules that turn the "
        "forecasts round save at most 0.0600 per case. It holds at every number of rows"
    ) in text
    assert "assumes that " + "; ".join(ASSUMPTIONS) in text
    assert not calibrant.decision_guarantee(limit()).is_direct


def test_a_limit_over_all_thresholds_may_be_read_at_any_of_them():
    guarantee = calibrant.decision_guarantee(direct_limit(), 0.2)
    assert (guarantee.threshold, guarantee.nondecreasing, guarantee.monotone) == (0.2, 0.03, 0.06)
    assert guarantee.finding().endswith("saves more than 0.0300 per case, at any threshold, so also at threshold 0.2.")
    assert "risk gap <= 0.0300 at any threshold" in guarantee.source()
    costs = calibrant.decision_guarantee(direct_limit(), cost_false_positive=100, cost_false_negative=900)
    assert (costs.threshold, costs.nondecreasing, costs.cost_unit) == (0.1, 0.03, 1000.0)
    assert costs.finding().endswith(
        "0.0300 per case (30 in cost units), at any threshold, so also at threshold 0.1 (a false positive costs 100, a "
        "false negative 900)."
    )
    wide = calibrant.decision_guarantee(direct_limit(upper=0.9), 0.3)
    assert (wide.nondecreasing, wide.monotone) == (0.7, 0.7)


def test_a_limit_at_some_thresholds_promises_nothing_at_others():
    some = direct_limit((0.1, 0.3))
    guarantee = calibrant.decision_guarantee(some)
    assert (guarantee.threshold, guarantee.thresholds) == (None, (0.1, 0.3))
    assert (guarantee.monotone, guarantee.any) == (None, None)
    assert "It says nothing about rules that turn the forecasts round; a limit over all thresholds does." in str(
        guarantee
    )
    assert guarantee.finding().endswith("0.0300 per case, at any threshold from 0.1 to 0.3.")
    for inside in (0.1, 0.2, 0.3):
        assert calibrant.decision_guarantee(some, inside).nondecreasing == 0.03
    assert calibrant.decision_guarantee(direct_limit((0.1, 0.3), upper=0.95)).nondecreasing == 0.9
    elsewhere = (
        r"^threshold is 0\.5{}, and the certificate is for thresholds from 0\.1 to 0\.3 only; certify the risk gap"
    )
    with refused(elsewhere.format("")):
        calibrant.decision_guarantee(some, 0.5)
    with refused(elsewhere.format(" by these costs")):
        calibrant.decision_guarantee(some, cost_false_positive=3, cost_false_negative=3)
    with refused(r"^threshold of this DecisionGuarantee is 0\.5, while the limit is for those from 0\.1 to 0\.3"):
        replace(guarantee, threshold=0.5)


def test_a_limit_at_one_threshold_speaks_of_it_and_of_its_costs():
    at = calibrant.decision_guarantee(direct_limit((0.3, 0.3)))
    assert (at.threshold, at.cost_unit) == (0.3, None)
    assert at.finding().endswith("per case, at threshold 0.3.")
    with refused(r"^threshold is 0\.2, and the certificate is for threshold 0\.3 alone; certify the risk gap"):
        calibrant.decision_guarantee(direct_limit((0.3, 0.3)), 0.2)
    paid = calibrant.decision_guarantee(direct_limit((0.25, 0.25), cost_false_positive=50.0, cost_false_negative=150.0))
    assert (paid.threshold, paid.cost_unit) == (0.25, 200.0)
    assert "0.0300 per case (6 in cost units), at threshold 0.25 (a false positive costs 50" in paid.finding()
    others = calibrant.decision_guarantee(direct_limit((0.25, 0.25)), cost_false_positive=1, cost_false_negative=3)
    assert (others.threshold, others.cost_unit) == (0.25, 4.0)


@given(rows(most=12))
def test_rules_that_turn_forecasts_round_save_at_most_twice_the_risk_gap(data):
    *_, tally = tallied(data)
    gap, turned = (
        calibrant.decisions.risk_gap_curve(tally, wrapper=wrapper).largest_gap
        for wrapper in ("nondecreasing", "monotone")
    )
    assert gap - 1e-12 <= turned <= 2.0 * gap + 1e-12


def test_a_gap_at_one_threshold_says_nothing_about_rules_that_turn_forecasts_round():
    law = Tally.from_arrays([1.0, 0.0], [0.1, 0.5])  # nobody acts at 3/4, and should on low forecasts only
    assert calibrant.risk_gap(law, threshold=0.75).gap == 0.0
    assert calibrant.risk_gap(law, threshold=0.75, wrapper="monotone").gap == pytest.approx(0.125)
    assert calibrant.decisions.risk_gap_curve(law).largest_gap == pytest.approx(0.45)  # just above 0.1


def test_certificates_of_the_risk_gap_promise_what_they_limit():
    rng = np.random.default_rng(3)
    p = rng.random(3000)
    y = rng.random(3000) < p
    for asked in (
        {},
        {"threshold": 0.3},
        {"threshold": (0.1, 0.4)},
        {"cost_false_positive": 1, "cost_false_negative": 4},
    ):
        certificate = calibrant.certify(y, p, max_error=0.02, measure="risk_gap", **asked)
        guarantee = calibrant.decision_guarantee(certificate)
        assert guarantee.nondecreasing == certificate.upper
        assert guarantee.thresholds == certificate.thresholds
        assert calibrant.decisions.DecisionGuarantee.from_json(guarantee.to_json()) == guarantee
    direct = calibrant.confidence_interval(y, p, measure="risk_gap", alternative="less").upper
    assert direct < 0.6 * calibrant.confidence_interval(y, p, alternative="less").upper


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
    for wrapper in WRAPPERS[:2]:
        most = getattr(guarantee, wrapper)
        assert calibrant.decisions.risk_gap_curve(population, wrapper=wrapper).largest_gap <= most + 1e-15


def test_a_sign_testing_gap_at_a_forecast_equal_to_the_threshold_is_told():
    result = calibrant.decisions.sign_testing_gap([0, 1], [0.2, 0.5], threshold=0.5)
    assert result.gap == 0.25
    assert "by 0.25000, from 0.25000 to 0.00000, and by no more. To attain that, act on forecasts of at least 0.5." in (
        str(result)
    )


def test_the_sign_testing_risk_of_fractions_is_no_function_of_a_tally_but_its_gap_is():
    y, p = [0.1, 0.7, 0.4, 0.8], [0.2, 0.4, 0.9, 0.4]
    tally = Tally.from_arrays(y, p)
    with refused(r"^y_true is a Tally of fractional outcomes, .*pass the arrays, or use sign_testing_gap"):
        calibrant.decisions.sign_testing_risk(tally, threshold=0.5)
    from_tally = calibrant.decisions.sign_testing_gap(tally, threshold=0.5)
    from_rows = calibrant.decisions.sign_testing_gap(y, p, threshold=0.5)
    assert from_tally.gap == from_rows.gap
    assert (from_tally.risk, from_tally.best_risk) == (None, None)
    assert from_rows.risk is not None
    assert from_rows.best_risk == pytest.approx(from_rows.risk - from_rows.gap)
    assert "loss on these rows by 0.12500, and by no more. To attain that, act on forecasts of at least 0.4." in str(
        from_tally
    )
    assert "by 0.12500, from 0.15000 to 0.02500, and by no more." in str(from_rows)


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
