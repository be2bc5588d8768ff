"""The classifier that is repaired: cross-fitting, scores, fitted models, its certificate, input of every kind."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
import sklearn
from classifier_cases import FEATURES, LABELS, WEIGHTS, FrozenEstimator, certified, halves, needs_frozen
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import CalibrationWarning, cutoff_calibration_error
from calibrant.certificates import Certificate
from calibrant.certificates.verdicts import certify
from calibrant.classifiers.recalibrated import RecalibratedClassifier
from calibrant.core.words import rounded_up
from calibrant.repairs.guard import GuardedRecalibrator
from calibrant.repairs.maps import (
    BetaRecalibrator,
    ConstantRecalibrator,
    IsotonicRecalibrator,
    PlattRecalibrator,
    TemperatureRecalibrator,
)

# --- Cross-fitting ----------------------------------------------------------------------------------------------------


def recalibrated(estimator=None, recalibrator=None, **options):
    model = GaussianNB() if estimator is None else estimator
    return RecalibratedClassifier(model, recalibrator, **{"random_state": 0, **options})


def out_of_fold(estimator, features, labels, *, method="predict_proba", cv=None):
    """Forecasts by models that have not seen the row, by other means."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0) if cv is None else cv
    forecasts = cross_val_predict(estimator, features, labels, cv=folds, method=method)
    return forecasts[:, 1] if forecasts.ndim == 2 else forecasts


@pytest.mark.parametrize(
    "recalibrator",
    [
        None,
        PlattRecalibrator(),
        PlattRecalibrator(on="logit"),
        BetaRecalibrator(),
        TemperatureRecalibrator(),
        IsotonicRecalibrator(interpolation="linear"),
        ConstantRecalibrator(),
        GuardedRecalibrator([PlattRecalibrator(), ConstantRecalibrator()]),
    ],
    ids=lambda recalibrator: type(recalibrator).__name__,
)
def test_one_map_is_fitted_to_forecasts_of_unseen_rows_and_put_behind_one_model(recalibrator):
    classifier = recalibrated(LogisticRegression(), recalibrator).fit(FEATURES, LABELS)
    unseen = out_of_fold(LogisticRegression(), FEATURES, LABELS)
    expected = clone(recalibrator or GuardedRecalibrator()).fit(unseen, LABELS)
    model = LogisticRegression().fit(FEATURES, LABELS)
    forecasts = expected.predict(model.predict_proba(FEATURES)[:, 1])
    np.testing.assert_allclose(classifier.predict_proba(FEATURES)[:, 1], forecasts, rtol=1e-9)
    np.testing.assert_allclose(classifier.predict_proba(FEATURES).sum(axis=1), 1.0, rtol=1e-15)
    np.testing.assert_array_equal(classifier.predict(FEATURES), forecasts > 0.5)
    assert type(classifier.recalibrator_) is type(expected)
    assert classifier.recalibrator_.n_rows_ == 1200
    assert classifier.recalibrator_ is not recalibrator
    assert classifier.response_method_ == "predict_proba"
    assert classifier.certificate_ is None
    assert classifier.classes_.tolist() == [0, 1]
    assert classifier.n_features_in_ == 20


def test_it_repairs_a_model_that_is_too_sure_of_itself():
    features, labels = make_classification(n_samples=4000, n_redundant=12, flip_y=0.2, random_state=0)
    fit_features, fresh, fit_labels, fresh_labels = train_test_split(features, labels, random_state=0)
    model = GaussianNB().fit(fit_features, fit_labels)
    before = cutoff_calibration_error(fresh_labels, model.predict_proba(fresh)[:, 1])
    classifier = recalibrated().fit(fit_features, fit_labels)
    after = cutoff_calibration_error(fresh_labels, classifier.predict_proba(fresh)[:, 1])
    assert before > 0.06
    assert after < before / 2


def test_nothing_is_guaranteed_about_cross_fitted_forecasts():
    guarantee = recalibrated().fit(FEATURES, LABELS).guarantee_
    assert guarantee.startswith("Nothing is guaranteed about the calibration of this classifier: the recalibration was")
    assert "They are not one fixed forecaster, so the recalibrator's own guarantee does not carry over." in guarantee
    assert guarantee.endswith("A certificate needs rows kept aside: set max_error.")


@pytest.mark.parametrize(
    "cv", [3, np.int64(3), KFold(4), PredefinedSplit(np.arange(1200) % 3 - 1), TimeSeriesSplit(3)], ids=repr
)
def test_parts_by_number_or_by_a_splitter(cv):
    classifier = recalibrated(recalibrator=IsotonicRecalibrator(), cv=cv).fit(FEATURES, LABELS)
    splitter = cv if hasattr(cv, "split") else StratifiedKFold(3, shuffle=True, random_state=0)
    unseen, outcomes = [], []
    for others, part in splitter.split(FEATURES, LABELS):
        unseen.extend(GaussianNB().fit(FEATURES[others], LABELS[others]).predict_proba(FEATURES[part])[:, 1])
        outcomes.extend(LABELS[part])
    expected = IsotonicRecalibrator().fit(unseen, outcomes)
    assert classifier.recalibrator_.n_rows_ == len(outcomes)
    np.testing.assert_array_equal(classifier.recalibrator_.block_value_, expected.block_value_)
    listed = recalibrated(recalibrator=IsotonicRecalibrator(), cv=list(splitter.split(FEATURES, LABELS)))
    np.testing.assert_array_equal(
        listed.fit(FEATURES, LABELS).predict_proba(FEATURES), classifier.predict_proba(FEATURES)
    )


def test_the_same_seed_gives_the_same_parts_and_another_seed_others():
    first = recalibrated(recalibrator=PlattRecalibrator(), random_state=4).fit(FEATURES, LABELS)
    again = recalibrated(recalibrator=PlattRecalibrator(), random_state=4).fit(FEATURES, LABELS)
    other = recalibrated(recalibrator=PlattRecalibrator(), random_state=5).fit(FEATURES, LABELS)
    assert again.recalibrator_.slope_ == first.recalibrator_.slope_ != other.recalibrator_.slope_


# --- Scores -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "recalibrator",
    [
        None,
        IsotonicRecalibrator(input_kind="score"),
        PlattRecalibrator(input_kind="score"),
        GuardedRecalibrator(input_kind="score"),
    ],
)
def test_models_without_probabilities(recalibrator):
    classifier = recalibrated(RidgeClassifier(), recalibrator).fit(FEATURES, LABELS)
    scores = out_of_fold(RidgeClassifier(), FEATURES, LABELS, method="decision_function")
    expected = clone(recalibrator or GuardedRecalibrator(input_kind="score")).fit(scores, LABELS)
    forecasts = expected.predict(RidgeClassifier().fit(FEATURES, LABELS).decision_function(FEATURES))
    np.testing.assert_allclose(classifier.predict_proba(FEATURES)[:, 1], forecasts, rtol=1e-9)
    assert classifier.response_method_ == "decision_function"
    assert cutoff_calibration_error(LABELS, forecasts) < 0.05


def test_a_recalibrator_of_scores_prefers_scores_and_makes_do_with_probabilities():
    for model, method in ((LogisticRegression(), "decision_function"), (GaussianNB(), "predict_proba")):
        classifier = recalibrated(model, PlattRecalibrator(input_kind="score")).fit(FEATURES, LABELS)
        assert classifier.response_method_ == method
        assert classifier.predict_proba(FEATURES).shape == (1200, 2)
    both = recalibrated(LogisticRegression()).fit(FEATURES, LABELS)
    assert both.response_method_ == "predict_proba"


@pytest.mark.parametrize("recalibrator", [BetaRecalibrator(), IsotonicRecalibrator(), ConstantRecalibrator()])
def test_a_recalibrator_of_probabilities_does_not_read_scores(recalibrator):
    with pytest.raises(ValueError, match="RidgeClassifier has a decision_function but no predict_proba, and") as caught:
        recalibrated(RidgeClassifier(), recalibrator).fit(FEATURES, LABELS)
    assert f"{recalibrator!r} reads probabilities; pass one with input_kind='score', as in Guarded" in str(caught.value)


class Mute(ClassifierMixin, BaseEstimator):
    """A model that names classes and nothing else."""

    def fit(self, _features, labels):
        self.classes_ = np.unique(labels)
        return self

    def predict(self, features):
        return np.full(len(features), self.classes_[0])


class Doubled(Mute):
    def decision_function(self, features):
        return np.zeros((len(features), 2))


def test_models_with_nothing_to_recalibrate():
    with pytest.raises(ValueError, match="Mute has neither predict_proba nor decision_function, so there is nothing"):
        recalibrated(Mute()).fit(FEATURES, LABELS)
    with pytest.raises(ValueError, match=r"Doubled\.decision_function returned shape \(240, 2\); one score per row"):
        recalibrated(Doubled()).fit(FEATURES, LABELS)


# --- Models that are fitted already -----------------------------------------------------------------------------------

OLD_MODEL = GaussianNB().fit(FEATURES[:400], LABELS[:400])
FRESH, FRESH_LABELS, FRESH_WEIGHTS = FEATURES[400:], LABELS[400:], WEIGHTS[400:]


def given_models():
    frozen = [] if FrozenEstimator is None else [(FrozenEstimator(OLD_MODEL), 5)]
    return [(OLD_MODEL, "prefit"), *frozen]


@pytest.mark.parametrize(("model", "cv"), given_models(), ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("route", [False, True])
def test_a_fitted_model_is_used_as_it_is_and_the_guarantee_holds(model, cv, route):
    spread = OLD_MODEL.theta_.copy()
    with sklearn.config_context(enable_metadata_routing=route):
        classifier = recalibrated(model, IsotonicRecalibrator(), cv=cv, confidence_level=0.9).fit(FRESH, FRESH_LABELS)
    assert classifier.estimator_ is model
    np.testing.assert_array_equal(OLD_MODEL.theta_, spread)
    expected = IsotonicRecalibrator().fit(OLD_MODEL.predict_proba(FRESH)[:, 1], FRESH_LABELS)
    np.testing.assert_array_equal(
        classifier.predict_proba(FEATURES)[:, 1], expected.predict(OLD_MODEL.predict_proba(FEATURES)[:, 1])
    )
    assert classifier.guarantee_ == (
        f"{expected.guarantee(0.9)}\nThe model must have been fitted beforehand, on none of these rows."
    )
    assert "With 90% confidence the Cutoff calibration error of the recalibrated forecaster" in classifier.guarantee_
    with sklearn.config_context(enable_metadata_routing=route):
        weighted = recalibrated(model, cv=cv).fit(FRESH, FRESH_LABELS, sample_weight=FRESH_WEIGHTS)
    assert weighted.recalibrator_.weighted_
    assert weighted.guarantee_.startswith("The recalibration on its own guarantees nothing: no guarantee covers weigh")
    with pytest.raises(ValueError, match="priors was given for the model's fit, and the model is fitted already"):
        recalibrated(model, cv=cv).fit(FRESH, FRESH_LABELS, priors=[0.5, 0.5])


@pytest.mark.parametrize(("model", "cv"), given_models(), ids=lambda value: type(value).__name__)
def test_a_fitted_model_with_rows_kept_aside_has_a_certificate_and_a_guarantee(model, cv):
    classifier = recalibrated(model, cv=cv, max_error=0.2).fit(FRESH, FRESH_LABELS)
    assert classifier.certificate_.rows == 200
    assert classifier.recalibrator_.n_rows_ == 600
    certified_part, guaranteed = classifier.guarantee_.split("\nOn its own, from the rows that fitted the recalibrati")
    assert "certified on 200 rows that had no part in fitting the recalibration (adaptive method)" in certified_part
    assert str(classifier.recalibrator_.guarantee_) in guaranteed


def test_prefit_models_must_be_fitted_and_know_the_classes():
    with pytest.raises(NotFittedError):
        recalibrated(GaussianNB(), cv="prefit").fit(FRESH, FRESH_LABELS)
    with pytest.raises(ValueError, match="y holds 2, which GaussianNB was not fitted to; its classes are"):
        recalibrated(OLD_MODEL, cv="prefit").fit(FRESH, FRESH_LABELS + 1)
    ones = FRESH[FRESH_LABELS == 1]
    one_class = recalibrated(OLD_MODEL, ConstantRecalibrator(), cv="prefit").fit(ones, np.ones(len(ones), dtype=int))
    assert one_class.predict_proba(FRESH[:1]).tolist() == [[0.0, 1.0]]


# --- The certificate --------------------------------------------------------------------------------------------------


def test_rows_kept_aside_have_no_part_in_anything_but_the_certificate():
    classifier = recalibrated(recalibrator=PlattRecalibrator(), max_error=0.2).fit(FEATURES, LABELS)
    generator = np.random.RandomState(0)
    fit_features, judge_features, fit_labels, judge_labels = train_test_split(
        FEATURES, LABELS, test_size=300, random_state=generator
    )
    folds = StratifiedKFold(5, shuffle=True, random_state=generator)
    unseen = out_of_fold(GaussianNB(), fit_features, fit_labels, cv=folds)
    recalibrator = PlattRecalibrator().fit(unseen, fit_labels)
    model = GaussianNB().fit(fit_features, fit_labels)
    np.testing.assert_allclose(classifier.recalibrator_.slope_, recalibrator.slope_, rtol=1e-9)
    forecasts = recalibrator.predict(model.predict_proba(judge_features)[:, 1])
    expected = certify(judge_labels, forecasts, max_error=0.2)
    assert classifier.certificate_.upper == pytest.approx(expected.upper, rel=1e-9)
    assert classifier.certificate_.confidence_level == 0.95
    assert classifier.certificate_.rows == 300
    assert isinstance(classifier.certificate_, Certificate)


def test_the_certificate_in_words():
    certified_model = recalibrated(max_error=0.2).fit(FEATURES, LABELS)
    assert certified_model.guarantee_.startswith(
        "With 95% confidence the Cutoff calibration error of this classifier is at most 0.2 in the population: it was "
        "certified on 300 rows that had no part in fitting the model or its recalibration (adaptive method).\nThis "
        "assumes that the rows are independent draws from the population;"
    )
    assert "to fit again on the same rows and choose among the results is to look again.\nThe certificate alone" in (
        certified_model.guarantee_
    )
    assert certified_model.guarantee_.endswith("own guarantee does not carry over.")
    undecided = recalibrated(max_error=0.02).fit(FEATURES, LABELS)
    assert undecided.certificate_.verdict == "undecided"
    assert (
        f"is at most {rounded_up(undecided.certificate_.upper)} in the population: at most 0.02 could not be decided on"
    ) in undecided.guarantee_
    # Labels that are turned over in the rows kept aside, and only there.
    order = halves(np.arange(1200), judging=300)[1]
    turned = np.where(np.isin(np.arange(1200), order), 1 - LABELS, LABELS)
    refuted = recalibrated(LogisticRegression(), max_error=0.05).fit(FEATURES, turned)
    assert refuted.certificate_.verdict == "refuted"
    assert "is above 0.05 in the population: at most 0.05 was refuted on 300 rows" in refuted.guarantee_
    approximate = recalibrated(max_error=0.2, method="normal", confidence_level=0.9).fit(FEATURES, LABELS)
    assert approximate.guarantee_.startswith("With 90% confidence, approximately and for many rows only, the Cutoff")


@pytest.mark.parametrize("method", ["adaptive", "hoeffding", "normal", "paper"])
def test_every_method_can_judge_and_split_is_the_share_kept_aside(method):
    certificate = recalibrated(max_error=0.2, method=method, split=0.5).fit(FEATURES, LABELS).certificate_
    assert (certificate.method, certificate.rows) == (method, 600)


def test_listed_parts_lose_the_rows_kept_aside():
    listed = list(KFold(3).split(FEATURES))
    classifier = recalibrated(recalibrator=PlattRecalibrator(), cv=listed, max_error=0.2).fit(FEATURES, LABELS)
    kept = np.sort(halves(np.arange(1200), judging=300)[0])
    unseen, outcomes = [], []
    for others, part in listed:
        others, part = np.intersect1d(others, kept), np.intersect1d(part, kept)
        unseen.extend(GaussianNB().fit(FEATURES[others], LABELS[others]).predict_proba(FEATURES[part])[:, 1])
        outcomes.extend(LABELS[part])
    assert classifier.recalibrator_.n_rows_ == 900
    assert classifier.recalibrator_.slope_ == pytest.approx(PlattRecalibrator().fit(unseen, outcomes).slope_, rel=1e-9)


def test_inside_a_certified_classifier_the_constant_takes_over_when_the_repair_fails():
    classifier = certified(recalibrated(), max_error=0.12).fit(FEATURES, LABELS)
    assert isinstance(classifier.estimator_.recalibrator_, GuardedRecalibrator)
    assert classifier.estimator_.recalibrator_.n_rows_ == 600
    assert classifier.certificate_.rows == 600
    assert not classifier.fell_back_


# --- Weights and other metadata ---------------------------------------------------------------------------------------


def test_weights_count_for_the_model_the_map_and_the_certificate():
    classifier = recalibrated(recalibrator=PlattRecalibrator(), max_error=0.2)
    classifier.fit(FEATURES, LABELS, sample_weight=WEIGHTS)
    generator = np.random.RandomState(0)
    fit_features, judge_features, fit_labels, judge_labels, fit_weights, judge_weights = train_test_split(
        FEATURES, LABELS, WEIGHTS, test_size=300, random_state=generator
    )
    unseen = np.empty(900)
    for others, part in StratifiedKFold(5, shuffle=True, random_state=generator).split(fit_features, fit_labels):
        model = GaussianNB().fit(fit_features[others], fit_labels[others], sample_weight=fit_weights[others])
        unseen[part] = model.predict_proba(fit_features[part])[:, 1]
    recalibrator = PlattRecalibrator().fit(unseen, fit_labels, sample_weight=fit_weights)
    model = GaussianNB().fit(fit_features, fit_labels, sample_weight=fit_weights)
    assert classifier.recalibrator_.slope_ == pytest.approx(recalibrator.slope_, rel=1e-9)
    forecasts = recalibrator.predict(model.predict_proba(judge_features)[:, 1])
    expected = certify(judge_labels, forecasts, max_error=0.2, sample_weight=judge_weights)
    assert classifier.certificate_.upper == pytest.approx(expected.upper, rel=1e-9)
    assert classifier.certificate_.n_eff < 300


def test_a_model_that_takes_no_weights_is_recalibrated_with_them_all_the_same():
    with pytest.warns(CalibrationWarning, match="so the weights count for the recalibration and the certificate only"):
        classifier = recalibrated(KNeighborsClassifier(100)).fit(FEATURES, LABELS, sample_weight=WEIGHTS)
    assert classifier.recalibrator_.weighted_


def test_weights_of_a_step_are_cut_like_the_rows_of_every_part():
    pipeline = make_pipeline(StandardScaler(), GaussianNB())
    options = {"gaussiannb__sample_weight": WEIGHTS, "sample_weight": WEIGHTS}
    inside = recalibrated(pipeline, PlattRecalibrator(), max_error=0.2).fit(FEATURES, LABELS, **options)
    plain = recalibrated(GaussianNB(), PlattRecalibrator(), max_error=0.2).fit(FEATURES, LABELS, WEIGHTS)
    np.testing.assert_allclose(inside.predict_proba(FEATURES), plain.predict_proba(FEATURES), rtol=1e-5)


@pytest.mark.usefixtures("routing")
def test_routing_asks_who_wants_weights_and_groups():
    with pytest.raises(ValueError, match="sample_weight"):
        recalibrated().fit(FEATURES, LABELS, sample_weight=WEIGHTS)
    asked = recalibrated(GaussianNB().set_fit_request(sample_weight=True), max_error=0.2)
    with sklearn.config_context(enable_metadata_routing=False):
        plain = recalibrated(max_error=0.2).fit(FEATURES, LABELS, sample_weight=WEIGHTS)
    assert asked.fit(FEATURES, LABELS, sample_weight=WEIGHTS).certificate_ == plain.certificate_
    without = recalibrated(GaussianNB().set_fit_request(sample_weight=False), max_error=0.2)
    n_eff = without.fit(FEATURES, LABELS, sample_weight=WEIGHTS).certificate_.n_eff
    assert n_eff == pytest.approx(plain.certificate_.n_eff, rel=1e-9)
    around = make_pipeline(
        StandardScaler().set_fit_request(sample_weight=False),
        recalibrated(GaussianNB().set_fit_request(sample_weight=True)).set_fit_request(sample_weight=True),
    ).fit(FEATURES, LABELS, sample_weight=WEIGHTS)
    assert around[-1].recalibrator_.weighted_
    prefit = make_pipeline(recalibrated(OLD_MODEL, cv="prefit").set_fit_request(sample_weight=True))
    prefit.fit(FRESH, FRESH_LABELS, sample_weight=FRESH_WEIGHTS)
    assert prefit[-1].recalibrator_.weighted_


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("max_error", [None, 0.2])
def test_groups_reach_the_splitter(max_error):
    groups = np.arange(1200) // 100
    seen = []

    class Watching(GroupKFold):
        def split(self, X, y=None, groups=None):
            for others, part in super().split(X, y, groups):
                seen.append(set(groups[others]) & set(groups[part]))
                yield others, part

    recalibrated(cv=Watching(3), max_error=max_error).fit(FEATURES, LABELS, groups=groups)
    assert seen == [set()] * 3


# --- Kinds of input, and inside scikit-learn --------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [np.array(["no", "yes"]), np.array([False, True]), np.array([-1, 7])], ids=str)
def test_any_two_labels_are_recalibrated(labels):
    plain = recalibrated(max_error=0.2).fit(FEATURES, LABELS)
    named = recalibrated(max_error=0.2).fit(FEATURES, labels[LABELS])
    assert named.classes_.tolist() == labels.tolist()
    assert named.certificate_ == plain.certificate_
    np.testing.assert_array_equal(named.predict_proba(FEATURES), plain.predict_proba(FEATURES))
    np.testing.assert_array_equal(named.predict(FEATURES), labels[plain.predict(FEATURES)])


def test_frames_lists_and_sparse_features_are_cut_into_parts():
    plain = recalibrated(LogisticRegression()).fit(FEATURES, LABELS)
    frame = pd.DataFrame(FEATURES, columns=[f"feature {k}" for k in range(20)], index=np.arange(1200)[::-1])
    labels = pd.Series(LABELS, index=frame.index)
    named = recalibrated(LogisticRegression()).fit(frame, labels, sample_weight=pd.Series(np.ones(1200), frame.index))
    assert named.feature_names_in_.tolist() == frame.columns.tolist()
    np.testing.assert_allclose(named.predict_proba(frame), plain.predict_proba(FEATURES), rtol=1e-6)
    listed = recalibrated(LogisticRegression()).fit(FEATURES.tolist(), LABELS.tolist())
    np.testing.assert_array_equal(listed.predict_proba(FEATURES), plain.predict_proba(FEATURES))
    for form in (sparse.csr_matrix, sparse.coo_matrix):
        thin = recalibrated(LogisticRegression()).fit(form(FEATURES), LABELS)
        np.testing.assert_allclose(thin.predict_proba(form(FEATURES)), plain.predict_proba(FEATURES), rtol=1e-2)


def test_missing_features_are_still_the_models_business():
    features = np.where(np.random.default_rng(0).random(FEATURES.shape) < 0.1, np.nan, FEATURES)
    classifier = recalibrated(HistGradientBoostingClassifier(max_iter=1), cv=2).fit(features, LABELS)
    assert classifier.predict_proba(features).shape == (1200, 2)


def test_recalibrated_classifiers_can_be_read_set_cloned_and_pickled():
    classifier = recalibrated(LogisticRegression(), PlattRecalibrator())
    assert is_classifier(classifier)
    classifier.set_params(estimator__C=0.01, recalibrator__on="logit").fit(FEATURES, LABELS)
    assert classifier.estimator_.C == 0.01
    assert classifier.recalibrator_.on == "logit"
    assert not hasattr(classifier.recalibrator, "slope_")
    assert not hasattr(clone(classifier), "recalibrator_")
    assert repr(classifier).startswith("RecalibratedClassifier(")
    twin = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(twin.predict_proba(FEATURES), classifier.predict_proba(FEATURES))
    assert twin.guarantee_ == classifier.guarantee_
    for method in ("predict", "predict_proba"):
        with pytest.raises(NotFittedError):
            getattr(recalibrated(), method)(FEATURES)


def test_a_search_over_models_and_recalibrators():
    grid = {"estimator__var_smoothing": [1e-9, 1e3], "recalibrator": [None, PlattRecalibrator(on="logit")]}
    search = GridSearchCV(recalibrated(cv=3), grid, cv=3, scoring="neg_log_loss", error_score="raise")
    search.fit(FEATURES, LABELS)
    assert search.best_params_["estimator__var_smoothing"] == 1e-9
    inside = recalibrated(GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1e3]}, cv=3), cv=3)
    assert inside.fit(FEATURES, LABELS).estimator_.best_params_ == {"var_smoothing": 1e-9}


def test_pipelines_around_and_inside_a_recalibrated_classifier():
    features, labels = load_breast_cancer(return_X_y=True)
    around = make_pipeline(StandardScaler(), recalibrated())
    inside = recalibrated(make_pipeline(StandardScaler(), GaussianNB()))
    for model in (around, inside):
        assert cross_val_score(model, features, labels, cv=3, error_score="raise").min() > 0.85


@needs_frozen
def test_a_search_around_a_frozen_model():
    search = GridSearchCV(
        recalibrated(FrozenEstimator(OLD_MODEL)),
        {"recalibrator": [None, ConstantRecalibrator()]},
        scoring="neg_log_loss",
        error_score="raise",
    ).fit(FRESH, FRESH_LABELS)
    assert search.best_params_ == {"recalibrator": None}


# --- Bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recalibrator": "isotonic"}, "recalibrator is 'isotonic', not a recalibrator of calibrant; pass one, as in"),
        (
            {"recalibrator": PlattRecalibrator},
            "not a recalibrator of calibrant; pass one, as in IsotonicRecalibrator()",
        ),
        ({"recalibrator": PlattRecalibrator(pos_label=1)}, "recalibrator has pos_label=1, and the classes are known"),
        ({"recalibrator": PlattRecalibrator().set_params(on="x")}, "on must be one of 'forecast', 'logit', got 'x'"),
        ({"cv": 1}, "cv must be a whole number from 2 to inf, got 1"),
        ({"cv": 2.5}, "cv must be a whole number from 2 to inf, got 2.5"),
        ({"cv": None}, "cv must be a whole number, got None of type NoneType"),
        ({"cv": "fitted"}, "cv must be one of 'prefit', got 'fitted'"),
        ({"cv": 700}, "of the 1,200 rows for fitting are of class "),
        (
            {"cv": [(range(1200), range(5, 9))]},
            "cv has row 5 forecast by a model that was fitted on it, in part 1; pass a",
        ),
        ({"cv": ShuffleSplit(3, random_state=0)}, "parts, and it would count as many times; pass a splitter that puts"),
        ({"max_error": 1.5}, "max_error must be a number from 0 to 1, got 1.5"),
        ({"split": 0}, "split is 0; it is the share of the rows kept for judging, between 0 and 1, as in 0.5"),
        ({"split": 1e-4, "max_error": 0.1}, "n_samples=1200 and split=0.0001 leave 1200 for fitting and 0 for judging"),
        ({"method": "exact"}, "method='exact' speaks of the forecasts at hand, and a classifier makes new ones; use"),
        ({"confidence_level": 95}, "confidence_level is 95; write 0.95 for 95%"),
        ({"random_state": "x"}, "'x' cannot be used to seed"),
    ],
)
def test_bad_options_of_a_recalibrated_classifier(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        recalibrated(**options).fit(FEATURES, LABELS)


@pytest.mark.parametrize(
    ("options", "labels", "message"),
    [
        ({}, np.stack([LABELS, 2 - LABELS], axis=1), "y has shape (1200, 2) and holds more than 0 and 1"),
        (
            {},
            np.ones(1200),
            "y has one class only, 1.0, in the 1,200 rows for fitting, and a model needs both; collect",
        ),
        (
            {"max_error": 0.1},
            np.arange(1200) == halves(np.arange(1200), judging=300)[1][0],
            "y has one class only, False, in the 900 rows drawn for fitting, and a model needs both; collect rows of "
            "the other class, or keep fewer for judging with a smaller split",
        ),
        ({}, np.arange(1200) < 3, "cv is 5, and only 3 of the 1,200 rows for fitting are of class True, too few for"),
        ({}, np.arange(1200) < 1, "too few for one in every part; collect more"),
        (
            {"cv": KFold(2)},
            np.arange(1200) < 600,
            "y has one class only, False, in the 600 rows that cv leaves for fitting the model of part 1",
        ),
    ],
)
def test_bad_labels_of_a_recalibrated_classifier(options, labels, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        recalibrated(**options).fit(FEATURES, labels)


def test_weights_that_leave_nothing_to_judge_by():
    chosen = halves(np.arange(1200), judging=300)[1]
    with pytest.raises(ValueError, match="sample_weight is 0 for all 300 rows kept for judging"):
        recalibrated(max_error=0.2).fit(FEATURES, LABELS, sample_weight=~np.isin(np.arange(1200), chosen))
