"""Bounds of repaired classes hold as often as they say, on populations whose errors are known exactly.

A population is a law on finitely many rows of probabilities, so that the errors of a fitted map are sums over them. The
levels are low, so that a bound which forgot something would be caught. Seeds are fixed and limits are binomial.
"""

import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from class_repair_cases import drawn
from simulated import allowed, replicates, runs_needed
from sklearn.base import BaseEstimator, ClassifierMixin

from calibrant import CertifiedClassifier, cutoff_calibration_error
from calibrant.core.softmax import softmax
from calibrant.repairs import (
    ClassTemperatureRecalibrator,
    MenuRecalibrator,
    OneVsRestRecalibrator,
    TopLabelRecalibrator,
)

RUNS = replicates(60)
DELTA = 0.5


def law(seed, classes, support, sharpness):
    """Rows of probabilities and the true ones there."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(support, classes))
    return softmax(sharpness * logits), softmax(logits + 0.5 * rng.normal(size=(support, classes)))


LAWS = {
    "few forecasts": law(0, 3, 4, 3.0),
    "three classes": law(1, 3, 300, 2.0),
    "ten classes": law(2, 10, 300, 3.0),
    "backwards": law(3, 4, 200, -2.0),
}


def classwise(forecast, truth):
    return max(cutoff_calibration_error(truth[:, k], forecast[:, k]) for k in range(truth.shape[1]))


def confidence(top, forecast, truth):
    return cutoff_calibration_error(truth[np.arange(top.size), top], forecast)


@pytest.mark.parametrize("name", LAWS)
def test_isotonic_maps_of_classes_and_of_the_top_label_keep_their_bounds(name):
    y_prob, truth = LAWS[name]
    rng = np.random.default_rng(11)
    missed: Counter[str] = Counter()
    most = allowed(RUNS, DELTA)
    for _ in runs_needed(missed, RUNS, most):
        rows = rng.integers(0, len(y_prob), 60)
        y = drawn(truth[rows], rng)
        classes = range(y_prob.shape[1])
        every = OneVsRestRecalibrator(renormalize=False, classes=classes).fit(y_prob[rows], y)
        top = TopLabelRecalibrator(classes=classes).fit(y_prob[rows], y)
        labels, forecast = top.predict_top(y_prob)
        missed["classwise"] += classwise(every.predict(y_prob), truth) > every.guarantee(1.0 - DELTA).upper
        missed["confidence"] += confidence(labels, forecast, truth) > top.guarantee(1.0 - DELTA).upper
    assert all(count <= most for count in missed.values()), missed


@pytest.mark.parametrize("name", ["few forecasts", "three classes", "ten classes"])
@pytest.mark.parametrize("rule", ["log_loss", "least"])
def test_a_map_chosen_from_a_menu_keeps_its_bound(name, rule):
    """By its loss, or by the worst rule there is: the map that looks best calibrated on the very rows."""
    y_prob, truth = LAWS[name]
    rng = np.random.default_rng(12)
    grid = [ClassTemperatureRecalibrator(temperature=t, classes=range(y_prob.shape[1])) for t in (0.5, 1, 2, 3, 4, 6)]
    missed: Counter[str] = Counter()
    most = allowed(RUNS, DELTA)
    for _ in runs_needed(missed, RUNS, most):
        rows = rng.integers(0, len(y_prob), 150)
        y = drawn(truth[rows], rng)
        options: dict[str, Any] = {"classes": range(y_prob.shape[1]), "confidence_level": 1.0 - DELTA}
        if rule == "least":
            # The bound of each map alone, at delta/J: a menu of one at the level that it has among six.
            options["confidence_level"] = 1.0 - DELTA / len(grid)
            found = min(
                (MenuRecalibrator([each], **options).fit(y_prob[rows], y) for each in grid), key=lambda one: one.upper_
            )
        else:
            found = MenuRecalibrator(grid, **options).fit(y_prob[rows], y)
        repaired = found.predict(y_prob)
        missed["confidence"] += confidence(repaired.argmax(axis=1), repaired.max(axis=1), truth) > found.upper_
    assert all(count <= most for count in missed.values()), missed


class FixedForecasts(ClassifierMixin, BaseEstimator):
    """A model that has been told what to forecast."""

    def __init__(self, forecasts):
        self.forecasts = forecasts
        self.classes_ = np.arange(forecasts.shape[1])

    def fit(self, X, y):
        del X, y
        return self

    def predict_proba(self, X):
        return self.forecasts[np.asarray(X)[:, 0].astype(int)]


@pytest.mark.parametrize("questions", ["confidence", "classwise"])
def test_a_certified_classifier_keeps_its_limit_also_when_it_falls_back(questions):
    y_prob, truth = LAWS["ten classes"]
    frozen = pytest.importorskip("sklearn.frozen").FrozenEstimator
    rng = np.random.default_rng(13)
    missed: Counter[str] = Counter()
    most, fell_back = allowed(RUNS, DELTA), 0
    for _ in runs_needed(missed, RUNS, most):
        rows = rng.integers(0, len(y_prob), 200)
        y = drawn(truth[rows], rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            classifier = CertifiedClassifier(
                frozen(FixedForecasts(y_prob)), max_error=0.1, confidence_level=1.0 - DELTA, questions=questions
            ).fit(rows[:, None], y)
        fell_back += classifier.fell_back_
        found = classifier.predict_proba(np.arange(len(y_prob))[:, None])
        error = (
            classwise(found, truth)
            if questions == "classwise"
            else confidence(found.argmax(axis=1), found.max(axis=1), truth)
        )
        missed[questions] += error > 0.1
    assert fell_back > 0
    assert all(count <= most for count in missed.values()), missed
