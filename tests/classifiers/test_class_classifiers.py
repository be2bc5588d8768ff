"""Classifiers of three classes or more, and of rows with several labels."""

import math
import re

import numpy as np
import pytest
from classifier_cases import FrozenEstimator, needs_frozen
from sklearn.base import clone
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC

from calibrant import (
    CertifiedClassifier,
    GuardedRecalibrator,
    IsotonicRecalibrator,
    PlattRecalibrator,
    RecalibratedClassifier,
    TemperatureRecalibrator,
    certify,
)
from calibrant.repairs import (
    ClassTemperatureRecalibrator,
    MenuRecalibrator,
    OneVsRestRecalibrator,
    TopLabelRecalibrator,
    VectorRecalibrator,
)

FEATURES, NUMBERS = make_classification(
    n_samples=1500, n_classes=3, n_informative=5, n_redundant=8, flip_y=0.2, random_state=0
)
NAMES = np.array(["red", "green", "blue"])[NUMBERS]
PARTS, LABELS = make_multilabel_classification(n_samples=1200, n_classes=3, random_state=0)


def certified(estimator=None, **options):
    options = {"max_error": 0.15, "random_state": 0, **options}
    return CertifiedClassifier(LogisticRegression() if estimator is None else estimator, **options)


def recalibrated(estimator=None, recalibrator=None, **options):
    return RecalibratedClassifier(
        GaussianNB() if estimator is None else estimator, recalibrator, **{"random_state": 0, "cv": 3, **options}
    )


@pytest.mark.parametrize(("questions", "means"), [("confidence", 4), ("classwise", 4), ("subsets", 7)])
def test_the_certificate_leaves_a_share_for_every_mean_of_the_constant(questions, means):
    y = np.random.default_rng(0).integers(0, 4, len(FEATURES))
    found = certified(questions=questions, max_error=0.08).fit(FEATURES, y).certificate_
    assert found.confidence_level == pytest.approx(0.95 + 2.0 * means * math.exp(-2.0 * 750 * 0.08**2), abs=1e-9)


@pytest.mark.parametrize("questions", ["confidence", "classwise", "top_label", "pairs", "subsets"])
def test_a_certified_model_is_kept(questions):
    classifier = certified(questions=questions).fit(FEATURES, NAMES)
    X_fit, X_judge, y_fit, y_judge = train_test_split(FEATURES, NAMES, test_size=750, random_state=0)
    model = LogisticRegression().fit(X_fit, y_fit)
    level = 0.95 + 3 * 2.0 * math.exp(-2.0 * 750 * 0.15**2)
    expected = certify(
        y_judge,
        model.predict_proba(X_judge),
        max_error=0.15,
        confidence_level=level,
        classes=["blue", "green", "red"],
        questions=questions,
    )
    assert classifier.certificate_ == expected
    assert classifier
    assert not classifier.fell_back_
    assert classifier.classes_.tolist() == ["blue", "green", "red"]
    assert (classifier.predict_proba(FEATURES) == model.predict_proba(FEATURES)).all()
    assert (classifier.predict(FEATURES) == model.predict(FEATURES)).all()
    assert classifier.guarantee_.startswith("With 95% confidence the Cutoff calibration error of ")
    assert "is, with this classifier, at most 0.15 in the population: the model was certified on 750 rows" in (
        classifier.guarantee_
    )


def test_a_model_that_is_not_certified_is_replaced_by_the_shares_of_the_classes():
    classifier = certified(GaussianNB(), max_error=0.07).fit(FEATURES, NAMES)
    *_, y_judge = train_test_split(FEATURES, NAMES, test_size=750, random_state=0)
    shares = [np.mean(y_judge == label) for label in ("blue", "green", "red")]
    assert classifier.fell_back_
    assert classifier.constant_ == pytest.approx(shares)
    assert classifier.predict_proba(FEATURES[:2]) == pytest.approx(np.array([shares] * 2))
    assert "every forecast is the share of each class among them" in classifier.guarantee_
    weights = np.random.default_rng(0).gamma(4.0, size=1500)
    weighted = certified(GaussianNB(), max_error=0.08).fit(FEATURES, NAMES, sample_weight=weights)
    *_, w_judge = train_test_split(weights, test_size=750, random_state=0)
    assert weighted.constant_[0] == pytest.approx(np.average(y_judge == "blue", weights=w_judge))


def test_the_constant_must_be_able_to_keep_the_limit_for_every_class():
    # For one mean 750 rows suffice below 0.05; three means need more, and seven subsets of four classes more still.
    smallest = math.sqrt(math.log(2.0 * 3 / 0.05) / 1500)
    with pytest.raises(ValueError, match=f"allow max_error={smallest + 5e-5:.4f} or more"):
        certified(max_error=0.055).fit(FEATURES, NAMES)
    certified(max_error=smallest + 1e-3, confidence_level=0.95).fit(FEATURES, NAMES)


@pytest.mark.parametrize(
    "recalibrator",
    [
        None,
        IsotonicRecalibrator(),
        ClassTemperatureRecalibrator(),
        VectorRecalibrator(clip=1e-9),
        OneVsRestRecalibrator(),
        MenuRecalibrator(),
    ],
)
def test_one_map_is_fitted_to_cross_fitted_forecasts_of_all_classes(recalibrator):
    classifier = recalibrated(recalibrator=recalibrator).fit(FEATURES, NAMES)
    folds = StratifiedKFold(3, shuffle=True, random_state=np.random.RandomState(0)).split(FEATURES, NAMES)
    forecasts, order = [], []
    for others, part in folds:
        model = GaussianNB().fit(FEATURES[others], NAMES[others])
        forecasts.append(model.predict_proba(FEATURES[part]))
        order.append(part)
    rows = np.concatenate(order)
    if recalibrator is None:
        expected = OneVsRestRecalibrator(GuardedRecalibrator())
    elif isinstance(recalibrator, IsotonicRecalibrator):
        expected = OneVsRestRecalibrator(IsotonicRecalibrator())
    else:
        expected = clone(recalibrator)
    expected.fit(np.concatenate(forecasts), NAMES[rows])
    found = classifier.predict_proba(FEATURES)
    whole = GaussianNB().fit(FEATURES, NAMES).predict_proba(FEATURES)
    assert found == pytest.approx(expected.predict(whole), abs=1e-12)
    assert found.sum(axis=1) == pytest.approx(np.ones(1500))
    assert classifier.certificate_ is None
    assert "Nothing is guaranteed about the calibration of this classifier" in classifier.guarantee_


def test_rows_kept_aside_judge_the_result():
    classifier = recalibrated(max_error=0.15, questions="classwise").fit(FEATURES, NAMES)
    assert classifier.certificate_.verdict == "certified"
    assert classifier.certificate_.kind == "classwise"
    assert classifier.certificate_.rows == 375
    assert "of every class against the rest is, with this classifier, at most 0.15" in classifier.guarantee_
    refuted = recalibrated(max_error=0.0).fit(FEATURES, NAMES)
    assert refuted.certificate_.verdict == "undecided"
    assert "could not be decided" in refuted.guarantee_


@needs_frozen
def test_a_fitted_model_has_the_guarantee_of_its_recalibrator():
    model = FrozenEstimator(GaussianNB().fit(FEATURES[:700], NAMES[:700]))
    top = recalibrated(model, TopLabelRecalibrator()).fit(FEATURES[700:], NAMES[700:])
    assert "of the confidence in the top label is at most 0.1625 in the population" in top.guarantee_
    dull = recalibrated(model, ClassTemperatureRecalibrator(clip=1e-9)).fit(FEATURES[700:], NAMES[700:])
    assert "Nothing is guaranteed: a ClassTemperatureRecalibrator has no guarantee" in dull.guarantee_
    divided = recalibrated(model).fit(FEATURES[700:], NAMES[700:])
    assert "dividing each row by its sum can undo" in divided.guarantee_
    clustered = recalibrated(model, TopLabelRecalibrator()).fit(FEATURES[700:], NAMES[700:], groups=np.arange(800) // 2)
    assert "no guarantee is known for rows in clusters" in clustered.guarantee_
    menu = recalibrated(model, MenuRecalibrator()).fit(FEATURES[700:], NAMES[700:])
    assert "chosen from 31 maps fixed beforehand" in menu.guarantee_


def test_scores_of_classes_are_recalibrated():
    machine = LinearSVC(dual=False)
    classifier = recalibrated(machine, ClassTemperatureRecalibrator(input_kind="score")).fit(FEATURES, NAMES)
    assert classifier.response_method_ == "decision_function"
    assert (classifier.predict(FEATURES) == machine.fit(FEATURES, NAMES).predict(FEATURES)).all()
    by_default = recalibrated(machine).fit(FEATURES, NAMES)
    assert by_default.recalibrator_.input_kind == "score"
    with pytest.raises(ValueError, match="predict_proba but no decision_function"):
        recalibrated(recalibrator=ClassTemperatureRecalibrator(input_kind="score")).fit(FEATURES, NAMES)
    one_against_one = SVC(decision_function_shape="ovo", kernel="linear", C=1e-4)
    classifier = recalibrated(one_against_one, PlattRecalibrator(input_kind="score"))
    with pytest.raises(ValueError, match=re.escape("SVC.decision_function returned shape (500, 6); one score per")):
        classifier.fit(FEATURES[:, :2], np.arange(1500) % 4)


def test_two_classes_may_have_a_recalibrator_of_classes():
    y = NUMBERS > 0
    by_columns = recalibrated(recalibrator=ClassTemperatureRecalibrator(clip=1e-9), max_error=0.2).fit(FEATURES, y)
    by_event = recalibrated(recalibrator=TemperatureRecalibrator(clip=1e-9), max_error=0.2).fit(FEATURES, y)
    assert by_columns.predict_proba(FEATURES) == pytest.approx(by_event.predict_proba(FEATURES), abs=1e-8)
    assert by_columns.guarantee_.splitlines()[0] == by_event.guarantee_.splitlines()[0]
    scores = recalibrated(LinearSVC(dual=False), OneVsRestRecalibrator(input_kind="score")).fit(FEATURES, y)
    assert (scores.predict(FEATURES) == (scores.predict_proba(FEATURES)[:, 1] > 0.5)).all()


@pytest.mark.parametrize(
    "model", [OneVsRestClassifier(LogisticRegression()), MultiOutputClassifier(LogisticRegression())]
)
def test_rows_may_have_several_labels(model):
    classifier = recalibrated(model, IsotonicRecalibrator(), max_error=0.2).fit(PARTS, LABELS)
    found = classifier.predict_proba(PARTS)
    assert found.shape == (1200, 3)
    assert classifier.classes_.tolist() == [0, 1, 2]
    assert (classifier.predict(PARTS) == (found > 0.5)).all()
    assert classifier.recalibrator_.multilabel
    assert len(classifier.recalibrator_.maps_) == 3
    assert classifier.certificate_.kind == "multilabel"
    assert classifier.certificate_.verdict == "certified"
    kept = certified(model, max_error=0.2).fit(PARTS, LABELS)
    assert not kept.fell_back_
    assert kept.predict_proba(PARTS).shape == (1200, 3)
    assert "of every label is, with this classifier, at most 0.2" in kept.guarantee_
    replaced = certified(model, max_error=0.07).fit(PARTS, LABELS)
    assert replaced.fell_back_
    assert replaced.constant_.shape == (3,)
    assert "the share of each label among them" in replaced.guarantee_


def test_labels_of_clusters_stay_together():
    visit = np.arange(1200) // 3
    model = OneVsRestClassifier(LogisticRegression())
    classifier = recalibrated(model, IsotonicRecalibrator(), max_error=0.3).fit(PARTS, LABELS, groups=visit)
    assert classifier.certificate_.certificates[0].clusters.count == 100
    several = recalibrated(max_error=0.3).fit(FEATURES, NAMES, groups=np.arange(1500) // 3)
    assert several.certificate_.clusters.count == 125


@pytest.mark.parametrize(
    ("classifier", "y", "message"),
    [
        (certified(questions="ece"), NAMES, "questions must be one of"),
        (recalibrated(questions="ece"), NAMES, "questions must be one of"),
        (
            recalibrated(recalibrator=OneVsRestRecalibrator(renormalize=False)),
            NAMES,
            "must sum to 1; leave renormalize",
        ),
        (recalibrated(recalibrator=TopLabelRecalibrator(classes=["a", "b"])), NAMES, "leave classes out"),
        (
            recalibrated(recalibrator=OneVsRestRecalibrator(multilabel=True)),
            NAMES,
            "has multilabel=True, and y has one",
        ),
        (
            recalibrated(cv=KFold(3)),
            np.sort(NAMES),
            "cv leaves no row of class 'blue' for fitting the model of part 1",
        ),
        (recalibrated(cv=5), np.where(np.arange(1500) < 3, "rare", NAMES), "only 3 of the 1,500 rows for fitting are"),
    ],
)
def test_what_does_not_fit_is_said(classifier, y, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        classifier.fit(FEATURES, y)


def test_a_recalibrator_of_classes_is_not_one_of_labels():
    with pytest.raises(ValueError, match=r"multilabel=False, and y has several labels .* OneVsRestRecalibrator\(multi"):
        recalibrated(OneVsRestClassifier(LogisticRegression()), TopLabelRecalibrator()).fit(PARTS, LABELS)
