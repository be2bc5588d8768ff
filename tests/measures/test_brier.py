from typing import Any

import numpy as np
import pytest
from brute_force import rows
from hypothesis import assume, given, settings
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.metrics import brier_score_loss

from calibrant import InputError, Tally, measures
from calibrant.core.errors import UndefinedError

brier_score: Any = measures.brier_score  # options come in dicts
scaled_brier_score: Any = measures.scaled_brier_score
RNG = np.random.default_rng(10)


def data(size=300):
    p = RNG.random(size).round(2)
    return (RNG.random(size) < p).astype(float), p


def ends(found):
    return found.lower, found.upper


@settings(max_examples=60)
@given(data=rows())
def test_the_constant_forecast_is_the_mean_outcome(data):
    y, p, w = data
    weight = np.ones(len(p)) if w is None else w
    score = np.average((y - p) ** 2, weights=weight)
    tally = Tally.from_arrays(y, p, sample_weight=w)
    assert brier_score(tally) == pytest.approx(score, abs=1e-12)
    constant = np.average((y - np.average(y, weights=weight)) ** 2, weights=weight)
    assume(constant > 1e-6)
    assert scaled_brier_score(tally) == pytest.approx(1 - score / constant, rel=1e-8, abs=1e-8)


def test_equals_scikit_learn():
    y, p = data()
    assert brier_score(y, p) == pytest.approx(brier_score_loss(y, p), abs=1e-14)
    assert scaled_brier_score(y, p) == pytest.approx(1 - brier_score_loss(y, p) / (y.mean() * (1 - y.mean())))


@pytest.mark.parametrize("kind", ["rows", "weights", "clusters", "fractions"])
def test_limits_by_what_each_row_moves(kind):
    y, p = data()
    y = 0.5 * y + 0.5 * p.round(1) if kind == "fractions" else y
    w = RNG.exponential(size=300) if kind == "weights" else np.ones(300)
    cluster = np.arange(300) % 11 if kind == "clusters" else None
    options = {"confidence_level": 0.9, "cluster": cluster, "sample_weight": w if kind == "weights" else None}

    def number(function, weight):
        return function(y, p, sample_weight=weight)

    for function, name in ((brier_score, "brier"), (scaled_brier_score, "brier_scaled")):
        found = function(y, p, **options)
        # What a row moves the number by, from the definition: a little more of its weight.
        step = 1e-6 * w.sum()
        moved = np.array([number(function, w + step * (np.arange(300) == k)) for k in range(300)])
        moved = w * (moved - number(function, w)) / step
        away = norm.ppf(0.95)
        if cluster is not None:
            moved, away = np.bincount(cluster, weights=moved), student.ppf(0.95, 10)
        error = np.sqrt((moved**2).sum() * moved.size / (moved.size - 1))
        reach = np.array([-1, 1]) * away * error
        assert ends(found) == pytest.approx(found.estimate + reach, abs=1e-6)
        assert (found.name, found.interval, found.rows) == (name, "normal", 300)
        assert found.clusters == (11 if kind == "clusters" else None)


def test_counts_weights_in_any_unit_and_resamples():
    counts = Tally.from_counts([0.2, 0.4, 0.7], [50, 30, 20], [15, 10, 17])
    y = np.repeat([1, 0, 1, 0, 1, 0], [15, 35, 10, 20, 17, 3])
    p = np.repeat([0.2, 0.4, 0.7], [50, 30, 20])
    for function in (brier_score, scaled_brier_score):
        expected = ends(function(counts, confidence_level=0.9))
        assert ends(function(y, p, confidence_level=0.9)) == pytest.approx(expected, rel=1e-12)
        for weight in (np.full(100, 0.5), np.arange(100) % 2 + 1.0):
            one, other = (function(y, p, sample_weight=each, confidence_level=0.9) for each in (weight, 8 * weight))
            assert ends(one) == pytest.approx(ends(other), rel=1e-12)
        drawn = function(counts, confidence_level=0.8, interval="bootstrap", n_resamples=200)
        assert ends(drawn) == pytest.approx(ends(function(counts, confidence_level=0.8)), abs=0.05)


def test_limits_stay_where_scores_are():
    assert brier_score([0, 1, 0], [0.0, 0.9, 0.5], confidence_level=0.99).lower == 0.0
    assert scaled_brier_score([0, 1, 0], [0.0, 0.9, 0.5], confidence_level=0.99).upper == 1.0


@pytest.mark.parametrize(("y", "p"), [([0, 0, 1, 1], [0, 0, 1, 1]), ([0, 1] * 4, [0.5] * 8)], ids=["perfect", "half"])
@pytest.mark.parametrize("interval", ["normal", "bootstrap"])
@pytest.mark.parametrize("weight", [None, [0.1, 0.3]], ids=["equal", "weighted"])
def test_rows_that_do_not_vary_have_no_limits(y, p, interval, weight):
    weight = None if weight is None else weight * (len(y) // 2)
    with pytest.raises(UndefinedError, match=r"nothing in these rows shows how much brier varies.*no width"):
        brier_score(y, p, sample_weight=weight, confidence_level=0.95, interval=interval, n_resamples=50)
    assert brier_score(y, p, sample_weight=weight) in (0.0, 0.25)


def test_limits_of_tiny_scores_have_a_width():
    found = brier_score([0, 0, 0, 1], [1e-6, 2e-6, 0, 1], confidence_level=0.95)
    assert found.upper - found.lower > 1e-12


def test_says_why_there_is_none():
    for level in (None, 0.95):
        with pytest.raises(UndefinedError, match=r"every outcome is the same.*needs outcomes that differ"):
            scaled_brier_score([1, 1], [0.5, 0.6], confidence_level=level)
    with pytest.raises(UndefinedError, match="one row says nothing"):
        brier_score([1], [0.5], confidence_level=0.95)
    with pytest.raises(InputError, match="interval"):
        brier_score([1, 0], [0.5, 0.5], confidence_level=0.95, interval="wald")
    with pytest.raises(UndefinedError, match="resamples"):
        scaled_brier_score([1, 0], [0.5, 0.5], confidence_level=0.5, interval="bootstrap", n_resamples=20)
