"""The two-stage procedure keeps its word: its Cutoff error is at most c as often as its level says.

A constant that is further off than c takes 2 exp(-2 m c^2) of what may go wrong, and the certificate the rest.

Truths are in closed form. Seeds are fixed and limits are binomial: a correct procedure fails one of these with
probability 1e-4.
"""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from simulated import allowed, runs_needed
from sklearn.base import BaseEstimator, ClassifierMixin

from calibrant import CertifiedClassifier, Tally, cutoff_calibration_error
from calibrant.measures.savings import largest_saving
from calibrant.rows.savings import EVERY_THRESHOLD, Thresholds

LEVEL = 0.8  # low, so that failures are frequent enough to be counted
LIMIT = 0.13
JUDGING = 500  # the constant is within the limit but for one time in ten million
RULES = ("adaptive", "hoeffding", "normal")


class Fixed(ClassifierMixin, BaseEstimator):
    """A forecaster that learns nothing: the feature is the forecast."""

    def fit(self, _features, _labels):
        self.classes_ = np.array([0, 1])
        return self

    def predict_proba(self, features):
        return np.column_stack([1.0 - features[:, 0], features[:, 0]])


class CellMeans(ClassifierMixin, BaseEstimator):
    """A forecaster that learns too much: the mean outcome per cell, from a few rows each."""

    def fit(self, features, labels):
        self.classes_ = np.array([0, 1])
        rows = np.bincount(features[:, 0], minlength=CELLS)
        self.mean_ = np.bincount(features[:, 0], weights=labels, minlength=CELLS) / np.maximum(rows, 1)
        return self

    def predict_proba(self, features):
        forecast = self.mean_[features[:, 0]]
        return np.column_stack([1.0 - forecast, forecast])


CELLS = 100
CELL_RATE = np.linspace(0.1, 0.9, CELLS)


def shifted(by):
    return lambda p: p + by


# Per case: how to draw forecasts, P(Y = 1 | forecast), the Cutoff error of the forecaster, and P(Y = 1).
CASES = {
    "good": (lambda rng, n: rng.random(n), shifted(0.0), 0.0, 0.5),
    "good with ties": (lambda rng, n: rng.choice([0.1, 0.4, 0.8], n), shifted(0.0), 0.0, 1.3 / 3.0),
    "good, rare events": (lambda rng, n: 0.1 * rng.random(n), shifted(0.0), 0.0, 0.05),
    "bad": (lambda rng, n: rng.random(n), np.square, 1.0 / 6.0, 1.0 / 3.0),
    "borderline": (
        lambda rng, n: 0.1 + 0.6 * rng.random(n),
        shifted(LIMIT + 0.001),
        LIMIT + 0.001,
        0.4 + LIMIT + 0.001,
    ),
    "borderline in one spot": (
        lambda rng, n: np.where(rng.random(n) < 0.2, 0.3, rng.random(n)),
        lambda p: np.where(p == 0.3, 0.3 + 5.0 * (LIMIT + 0.001), p),
        LIMIT + 0.001,
        0.2 * 0.3 + LIMIT + 0.001 + 0.8 * 0.5,
    ),
}


def fits(name, method, replicates, rows=2 * JUDGING, limit=LIMIT, weight=None, left=None):
    """Fit many times; return whether the model was kept and the true Cutoff error of what was returned.

    Where to keep the model is to fail, which may happen with the chance that is left, runs end when both are plainly
    seldom.
    """
    draw, rate, truth, mean = CASES[name]
    rng = np.random.default_rng([2025, *name.encode(), *method.encode()])
    kept: list[bool] = []
    error: list[float] = []
    classifier = CertifiedClassifier(
        Fixed(),
        max_error=limit,
        confidence_level=LEVEL,
        method=method,
        random_state=np.random.RandomState(5),
    )
    failed: Counter[str] = Counter()
    chances = {"kept": left, "wrong": 1.0 - LEVEL}
    counted = runs_needed(failed, replicates, lambda what: most(chances[what], replicates))
    for _ in range(replicates) if left is None else counted:
        p = draw(rng, rows)
        y = (rng.random(rows) < rate(p)).astype(int)
        classifier.fit(p[:, None], y, sample_weight=weight)
        kept.append(not classifier.fell_back_)
        error.append(truth if kept[-1] else abs(mean - classifier.constant_))
        failed["kept"] += kept[-1]
        failed["wrong"] += error[-1] > limit
    return np.array(kept), np.array(error)


def left_for_the_certificate(limit, rows=JUDGING):
    return 1.0 - LEVEL - 2.0 * math.exp(-2.0 * rows * limit**2)


DELTA = left_for_the_certificate(LIMIT)


def most(chance, replicates):
    return allowed(replicates, chance)


@pytest.mark.parametrize("method", RULES)
@pytest.mark.parametrize("name", ["good", "good with ties", "good, rare events", "bad"])
def test_good_and_bad_models(name, method):
    replicates = 60
    kept, error = fits(name, method, replicates)
    assert (error > LIMIT).sum() <= most(1.0 - LEVEL, replicates)
    if name == "bad":
        assert kept.sum() <= most(DELTA, replicates)
    else:
        assert kept.mean() > 0.5  # the guarantee costs something, but not everything


@pytest.mark.parametrize("method", RULES)
@pytest.mark.parametrize("name", ["borderline", "borderline in one spot"])
def test_a_model_just_above_the_limit(name, method):
    replicates = 400
    kept, error = fits(name, method, replicates, left=DELTA)
    assert (kept == (error == CASES[name][2])).all()  # to keep it is to fail
    assert kept.sum() <= most(DELTA, replicates)
    assert (error > LIMIT).sum() <= most(1.0 - LEVEL, replicates)


@pytest.mark.parametrize("share", [0.3, 0.999])
def test_the_smallest_possible_limits_with_a_model_that_is_never_kept(share):
    # The constant takes this share of what may go wrong, and all of it is needed to be sure of the constant.
    replicates = 250
    limit = math.sqrt(math.log(2.0 / (share * (1.0 - LEVEL))) / (2.0 * JUDGING))
    kept, error = fits("bad", "adaptive", replicates, limit=limit)
    assert not kept.any()
    assert (error > limit).sum() <= most(share * (1.0 - LEVEL), replicates)


@pytest.mark.parametrize("rows", [160, 240])
def test_a_borderline_model_where_certificate_and_constant_share(rows):
    replicates, limit = 200, CASES["borderline"][2] - 1e-6  # to keep the model is to fail
    left = left_for_the_certificate(limit, rows // 2)
    assert 0.05 < left < 0.19
    kept, error = fits("borderline", "adaptive", replicates, rows=rows, limit=limit, left=left)
    assert kept.sum() <= most(left, replicates)
    assert (error > limit).sum() <= most(1.0 - LEVEL, replicates)


def test_default_options():
    # At 95% with half of the rows for judging: 0.0496 is left for the certificate.
    replicates, limit, rng = 150, 0.12, np.random.default_rng(77)
    failed = {"default": 0}
    for _ in runs_needed(failed, replicates, most(0.05, replicates)):
        p = 0.1 + 0.6 * rng.random(600)
        y = (rng.random(600) < p + limit + 1e-6).astype(int)
        classifier = CertifiedClassifier(Fixed(), max_error=limit, random_state=0).fit(p[:, None], y)
        assert classifier.certificate_.confidence_level == pytest.approx(0.95 + 2.0 * math.exp(-600.0 * limit**2))
        failed["default"] += not classifier.fell_back_ or abs(0.4 + limit + 1e-6 - classifier.constant_) > limit
    assert failed["default"] <= most(0.05, replicates)


def test_the_papers_margin():
    replicates, rows, limit = 60, 6_000, 0.42
    kept, error = fits("good", "paper", replicates, rows=rows, limit=limit)
    assert kept.mean() > 0.5
    assert (error > limit).sum() <= most(1.0 - LEVEL, replicates)
    kept, _ = fits("bad", "paper", replicates, rows=rows, limit=limit)
    assert not kept.any()


@pytest.mark.parametrize("method", RULES)
def test_weights(method):
    replicates, rows = 120, 4 * JUDGING
    weight = np.random.default_rng(3).gamma(4.0, size=rows)
    with pytest.warns(UserWarning, match="Fixed.fit takes no sample_weight"):
        kept, error = fits("borderline", method, replicates, rows=rows, weight=weight, left=DELTA)
    assert kept.sum() <= most(DELTA, replicates)
    assert (error > LIMIT).sum() <= most(1.0 - LEVEL, replicates)


@pytest.mark.parametrize("method", RULES)
def test_a_model_that_learns_too_much(method):
    limit = 0.075  # half of these models are worse
    replicates, rng = 200, np.random.default_rng([9, *method.encode()])
    chances = {"kept above": DELTA, "returned": 1.0 - LEVEL}
    above: list[bool] = []
    failed = {"kept above": 0, "returned": 0}
    classifier = CertifiedClassifier(
        CellMeans(), max_error=limit, confidence_level=LEVEL, method=method, random_state=np.random.RandomState(6)
    )
    every_cell = np.arange(CELLS)[:, None]
    for _ in runs_needed(failed, replicates, lambda what: most(chances[what], replicates), at_least=60):
        cell = rng.integers(CELLS, size=2 * JUDGING)
        classifier.fit(cell[:, None], (rng.random(cell.size) < CELL_RATE[cell]).astype(int))
        # All cells are equally frequent, so that their rates and forecasts are the whole population.
        model, returned = (
            cutoff_calibration_error(CELL_RATE, each.predict_proba(every_cell)[:, 1])
            for each in (classifier.estimator_, classifier)
        )
        above.append(model > limit)
        failed["kept above"] += model > limit and not classifier.fell_back_
        failed["returned"] += returned > limit
    assert 0.3 < np.mean(above) < 0.7
    assert all(failed[what] <= most(chance, replicates) for what, chance in chances.items()), failed


@pytest.mark.parametrize(
    ("asked", "limit"), [({}, 0.0465), ({"threshold": (0.1, 0.4)}, 0.027)], ids=["all thresholds", "a range"]
)
def test_savings_of_a_model_that_learns_too_much(asked, limit):
    replicates, judging, rng = 120, 6 * JUDGING, np.random.default_rng(13)
    chances = {"kept above": left_for_the_certificate(limit, judging), "returned": 1.0 - LEVEL}
    above: list[bool] = []
    failed = {"kept above": 0, "returned": 0}
    judged: dict[str, Any] = {"measure": "risk_gap", **asked}
    thresholds = Thresholds(*asked["threshold"]) if asked else EVERY_THRESHOLD
    options: dict[str, Any] = {"confidence_level": LEVEL, "split": 6.0 / 7.0, "random_state": np.random.RandomState(7)}
    classifier = CertifiedClassifier(CellMeans(), max_error=limit, **options, **judged)
    every_cell = np.arange(CELLS)[:, None]
    for _ in runs_needed(failed, replicates, lambda what: most(chances[what], replicates), at_least=60):
        cell = rng.integers(CELLS, size=JUDGING + judging)
        classifier.fit(cell[:, None], (rng.random(cell.size) < CELL_RATE[cell]).astype(int))
        model, returned = (
            largest_saving(Tally.from_arrays(CELL_RATE, each.predict_proba(every_cell)[:, 1]), thresholds).saving
            for each in (classifier.estimator_, classifier)
        )
        above.append(model > limit)
        failed["kept above"] += model > limit and not classifier.fell_back_
        failed["returned"] += returned > limit
    assert 0.3 < np.mean(above) < 0.7
    assert all(failed[what] <= most(chance, replicates) for what, chance in chances.items()), failed
