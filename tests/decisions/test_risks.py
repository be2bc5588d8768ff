"""Losses at thresholds and net benefit, beside slow versions of themselves."""

import brute_force
import numpy as np
import pandas as pd
import pytest
from brute_force import rows
from decision_cases import ROWS, from_up, tallied, thresholds
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss

import calibrant


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
    assert (one.risk, one.acted) == (np.asarray(result.risk)[0], np.asarray(result.acted)[0])


@pytest.mark.parametrize(("threshold", "acted"), [(0.5, 0.75), (np.nextafter(0.5, 1), 0.25), (0.0, 1.0), (1.0, 0.0)])
def test_ties_at_the_threshold_are_acted_on(threshold, acted):
    y, p = [0, 1, 1, 0], [0.25, 0.5, 0.5, 0.75]
    assert calibrant.decision_risk(y, p, threshold=threshold).acted == acted


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
    monkeypatch.setattr("calibrant.rows.intake.SORT_BELOW_ROWS", 0)
    cells_way = calibrant.decision_risk(y, p, threshold=at, sample_weight=w)
    weight = np.ones(p.size) if w is None else w
    direct = [np.average(np.where(p >= t, t * (1 - y), (1 - t) * y), weights=weight) for t in at]
    assert cells_way.risk == pytest.approx(direct, abs=1e-12)
    assert sorted_way.risk == pytest.approx(direct, abs=1e-12)
    assert cells_way.acted == pytest.approx(sorted_way.acted, abs=1e-12)


def test_the_murphy_curve_is_the_risk_at_every_threshold():
    rng = np.random.default_rng(3)
    p = rng.random(200).round(2)
    y = (rng.random(200) < p).astype(float)
    curve = calibrant.decisions.murphy_curve(y, p)
    at = np.concatenate([rng.random(50), p[:20], [0.0, 1.0]])
    assert curve.risk_at(at) == pytest.approx(calibrant.decision_risk(y, p, threshold=at).risk, abs=1e-12)
    area = float((curve.risk_right[:-1] + curve.risk[1:]) @ np.diff(curve.threshold))  # twice the integral
    assert area == pytest.approx(brier_score_loss(y, p), abs=1e-12)
    assert curve.constant_risk.max() == pytest.approx(y.mean() * (1 - y.mean()))
    assert list(curve.frame().columns) == ["threshold", "risk", "risk_right", "constant_risk"]


@given(rows(), st.lists(thresholds, min_size=1, max_size=3))
def test_sign_testing_risk_is_the_mean_loss_row_by_row(data, several):
    y, p, w, tally = tallied(data)
    expected = [brute_force.mean_loss(y, p, w, lambda q, t=t: q > t, t, brute_force.sign_loss) for t in several]
    if tally.binary_outcomes:
        assert calibrant.decisions.sign_testing_risk(tally, threshold=several).risk == pytest.approx(
            expected, abs=1e-12
        )
    if tally.binary_outcomes or not set(p) <= {0.0, 1.0}:  # otherwise the arguments look swapped
        result = calibrant.decisions.sign_testing_risk(y, p, threshold=several, sample_weight=w)
        assert result.risk == pytest.approx(expected, abs=1e-12)
        gap = calibrant.decisions.sign_testing_gap(y, p, threshold=several[0], sample_weight=w)
        assert gap.risk == pytest.approx(expected[0], abs=1e-12)


def test_sign_testing_acts_strictly_above_its_threshold():
    y, p = [0.1, 0.9], [0.5, 0.5]
    assert calibrant.decisions.sign_testing_risk(y, p, threshold=0.5).acted == 0.0
    assert calibrant.decision_risk(y, p, threshold=0.5).acted == 1.0
    assert str(calibrant.decisions.sign_testing_risk(y, p, threshold=0.5)) == (
        "At threshold 0.5, acting above it (on 0.0% of all rows) loses 0.20000 per row on average: 0.00000 from "
        "outcomes not above it acted on and 0.20000 from outcomes above it not acted on."
    )


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
        assert np.asarray(result.net_benefit)[k] == pytest.approx(by_hand, abs=1e-9 * (1 + odds))
        assert np.asarray(result.treat_all)[k] == pytest.approx(everybody, abs=1e-9 * (1 + odds))
    assert np.asarray(result.treat_none).tolist() == [0.0] * len(several)


def test_net_benefit_as_a_decision_curve():
    rng = np.random.default_rng(6)
    p = rng.random(500)
    result = calibrant.net_benefit(rng.random(500) < p, p)
    assert result.threshold == pytest.approx(np.arange(36) / 100)
    frame = result.frame()
    numbers = ["threshold", "net_benefit", "treat_all", "treat_none", "gain", "standardized", "interventions_avoided"]
    assert list(frame.columns) == numbers
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == 36
    assert str(result).startswith("net benefit at 36 thresholds from 0 to 0.35: above that of treating all and of")
    one = calibrant.net_benefit([1, 0, 0, 0], [0.9, 0.2, 0.3, 0.1], threshold=0.5)
    assert (one.net_benefit, one.treat_all, one.treat_none) == (0.25, -0.5, 0.0)
    assert "that of treating none, the better of the two without forecasts, is 0.00000" in str(one)
    assert calibrant.net_benefit([1, 0], [0.9, 0.1], threshold=0.0).net_benefit == 0.5


@pytest.mark.parametrize("threshold", [0.5, np.float32(0.5), np.array(0.5)], ids=repr)
def test_one_threshold_may_be_any_kind_of_number(threshold):
    assert calibrant.decision_risk(*ROWS, threshold=threshold).risk == 0.25


@pytest.mark.parametrize("several", [(0.5, 0.25), np.array([0.5, 0.25]), pd.Series([0.5, 0.25], index=[7, 3])])
def test_several_thresholds_may_come_in_any_order_and_container(several):
    result = calibrant.decision_risk(*ROWS, threshold=several)
    assert np.asarray(result.risk).tolist() == [calibrant.decision_risk(*ROWS, threshold=t).risk for t in (0.5, 0.25)]
