"""Scorers of scikit-learn, as people use them."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

import calibrant
from calibrant.adapters import get_scorer, scorer_names

X, Y = load_breast_cancer(return_X_y=True)
X_IRIS, Y_IRIS = load_iris(return_X_y=True)


def test_every_scorer_is_minus_the_error_that_measure_finds():
    model = GaussianNB().fit(X[::2], Y[::2])
    found = calibrant.measure(Y[1::2], model.predict_proba(X[1::2])[:, 1])
    fields = {
        "neg_bounded_variation_calibration_error": found.bounded_variation,
        "neg_cutoff_calibration_error": found.cutoff,
        "neg_expected_calibration_error": found.ece_binned,
        "neg_ks_calibration_error": found.ks,
        "neg_risk_gap": found.risk_gap,
        "neg_smooth_calibration_error": found.smooth,
    }
    assert scorer_names() == list(fields)
    for name, error in fields.items():
        assert get_scorer(name)(model, X[1::2], Y[1::2]) == pytest.approx(-error, abs=1e-12), name


def test_all_scorers_at_once_in_two_processes():
    scorers = {name: get_scorer(name) for name in scorer_names()}
    found = cross_validate(GaussianNB(), X, Y, scoring=scorers, cv=3, n_jobs=2, error_score="raise")
    for name in scorers:
        assert ((found[f"test_{name}"] < 0.0) & (found[f"test_{name}"] > -0.3)).all()


def test_a_search_takes_the_smallest_error_for_the_best():
    scorer = get_scorer("neg_cutoff_calibration_error")
    search = GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}, scoring=scorer, cv=3).fit(X, Y)
    assert search.best_index_ == np.argmax(search.cv_results_["mean_test_score"])
    assert search.best_score_ < 0.0


def test_weights_are_routed(routing):
    del routing
    scorer = get_scorer("neg_cutoff_calibration_error").set_score_request(sample_weight=True)
    weight = np.where(Y == 1, 5.0, 1.0)
    model = GaussianNB().set_fit_request(sample_weight=False)
    plain, weighted = (
        cross_validate(model, X, Y, scoring=scorer, cv=3, params=params, error_score="raise")["test_score"]
        for params in (None, {"sample_weight": weight})
    )
    assert (plain != weighted).all()


def test_several_classes():
    model = LogisticRegression(max_iter=1000).fit(X_IRIS[::2], Y_IRIS[::2])
    forecast = model.predict_proba(X_IRIS[1::2])
    held_out: Any = Y_IRIS[1::2], forecast
    for questions in ("confidence", "classwise"):
        options: Any = {"classes": [0, 1, 2], "questions": questions}
        errors = {
            "neg_cutoff_calibration_error": calibrant.cutoff_calibration_error(*held_out, **options),
            "neg_expected_calibration_error": calibrant.expected_calibration_error(*held_out, n_bins=15, **options),
        }
        for name, error in errors.items():
            assert get_scorer(name, **options)(model, X_IRIS[1::2], Y_IRIS[1::2]) == -error
    # A fold with two of the three classes is scored, because the classes are named.
    two = Y_IRIS < 2
    assert get_scorer("neg_cutoff_calibration_error", classes=[0, 1, 2])(model, X_IRIS[two], Y_IRIS[two]) <= 0.0


def test_labels_need_to_be_told_apart():
    labels = np.where(Y == 1, "benign", "malignant")
    model = GaussianNB().fit(X, labels)
    with pytest.raises(calibrant.InputError, match="pos_label"):
        get_scorer("neg_smooth_calibration_error")(model, X, labels)
    scorer = get_scorer("neg_smooth_calibration_error", pos_label="malignant")
    error = calibrant.smooth_calibration_error(labels == "malignant", model.predict_proba(X)[:, 1])
    assert pickle.loads(pickle.dumps(scorer))(model, X, labels) == -error


def test_what_cannot_be_is_said_at_once():
    with pytest.raises(
        calibrant.InputError, match=r"^name must be one of .*'neg_cutoff_calibration_error'.*, got 'cutoff'$"
    ):
        get_scorer("cutoff")
    with pytest.raises(TypeError, match=r"^get_scorer\(.*\) has no option 'bins'; it has n_bins, "):
        get_scorer("neg_expected_calibration_error", bins=10)
    with pytest.raises(AttributeError, match="predict_proba"):
        get_scorer("neg_cutoff_calibration_error")(LinearSVC().fit(X, Y), X, Y)
