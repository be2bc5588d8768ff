"""Proper scores taken apart, beside their usual formulas and beside theory."""

import math
from typing import Any

import brute_force
import numpy as np
import pytest
from brute_force import rows
from decision_cases import from_up, tallied, thresholds
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, log_loss

import calibrant
from calibrant import Tally
from calibrant.core.results import Result
from calibrant.decisions import SchervishMeasure


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
    result = calibrant.decisions.score_decomposition(tally, score=name)
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
    result = calibrant.decisions.score_decomposition(tally, score=SchervishMeasure(atoms=place, masses=mass))
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
        result = calibrant.decisions.score_decomposition(tally, score=score)
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
    result = calibrant.decisions.score_decomposition([0, 0, 0], [0.1, 0.1, 0.1], score=heavy)
    assert result.miscalibration == pytest.approx(1e8)
    assert all(bound.holds for bound in result.bounds)


def test_usual_scores_are_those_of_scikit_learn():
    rng = np.random.default_rng(5)
    p, w = rng.random(400), rng.random(400)
    y = (rng.random(400) < p).astype(int)
    brier = calibrant.decisions.score_decomposition(y, p, sample_weight=w)
    assert brier.score == pytest.approx(brier_score_loss(y, p, sample_weight=w), abs=1e-12)
    log = calibrant.decisions.score_decomposition(y, p, score="log", sample_weight=w)
    assert log.score == pytest.approx(log_loss(y, p, sample_weight=w), abs=1e-12)
    assert log.skill == pytest.approx(1 - log.score / log.uncertainty)
    assert log.bounds == ()
    assert log.notes[0].startswith("no calibration error bounds the miscalibration of the log score")
    assert log.frame()["component"].tolist() == ["score", "miscalibration", "discrimination", "uncertainty", "skill"]


def test_a_sure_forecast_that_is_wrong_has_an_infinite_log_loss_and_no_warning():
    y, p = [0, 1, 1, 0], [0.0, 0.0, 0.7, 0.4]
    result = calibrant.decisions.score_decomposition(y, p, score="log")
    assert (result.score, result.miscalibration, result.skill) == (math.inf, math.inf, -math.inf)
    assert result.contradicted == 0.25
    assert result.uncertainty == pytest.approx(math.log(2))
    assert 0.0 < result.discrimination < math.log(2)
    assert "outcomes contradicted forecasts of exactly 0 or 1, at infinite cost" in str(result)
    back: Any = Result.from_json(result.to_json())
    assert (back.score, back.miscalibration, back.skill, back.mass) == (math.inf, math.inf, -math.inf, math.inf)
    right = calibrant.decisions.score_decomposition([0, 1], [0.0, 1.0], score="log")
    assert (right.score, right.miscalibration, right.skill) == (0.0, 0.0, 1.0)
    brier = calibrant.decisions.score_decomposition(y, p)
    assert math.isfinite(brier.score)


def test_the_saving_of_any_recalibration_says_where_it_overfits():
    rng = np.random.default_rng(2)
    p = rng.random(100)
    noisy = calibrant.decisions.score_decomposition(rng.random(100) < p, p)
    assert "the saving of any recalibration compares each distinct forecast with the outcomes" in str(noisy)
    assert "100 of 100 rows share theirs with fewer than 10 rows: it overfits by construction" in noisy.notes[0]
    assert calibrant.decisions.score_decomposition(p**2, p).notes == ()
    assert calibrant.decisions.score_decomposition([0, 1] * 10, [0.3, 0.6] * 10).notes == ()


def test_skill_is_undefined_without_uncertainty():
    result = calibrant.decisions.score_decomposition([1, 1], [0.4, 0.9])
    assert (result.uncertainty, result.skill) == (0.0, None)
    assert "skill against the base rate undefined" in str(result)


def test_the_score_of_fractions_is_the_expected_score_of_events():
    y, p = np.array([0.25, 0.5, 1.0]), np.array([0.5, 0.25, 0.75])
    counts = Tally.from_counts(p, rows=[4, 4, 4], events=[1, 2, 4])
    for score in ("brier", "log", "spherical"):
        fractions = calibrant.decisions.score_decomposition(y, p, score=score)
        events = calibrant.decisions.score_decomposition(counts, score=score)
        for part in ("score", "miscalibration", "discrimination", "uncertainty"):
            assert getattr(fractions, part) == pytest.approx(getattr(events, part), abs=1e-12)
