"""The classifier that is kept only if it is certified: two stages, limits, input of every kind."""

import json
import math
import pickle
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from classifier_cases import FEATURES, LABELS, WEIGHTS, FrozenEstimator, certified, halves, needs_frozen
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, StackingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import calibrant
from calibrant import CalibrationWarning
from calibrant.certificates import Certificate
from calibrant.certificates.verdicts import certify
from calibrant.measures.registry import MEASURES


def stepping_back(**options):
    """A classifier that does not keep its model: trees without limits are far too sure of themselves."""
    return certified(RandomForestClassifier(n_estimators=1, random_state=0), max_error=0.1, **options)


def certificate_level(rows, max_error, level=0.95):
    """The level that is left for the certificate when the constant has taken what it needs."""
    return level + 2.0 * math.exp(-2.0 * rows * max_error**2)


# --- The two stages ---------------------------------------------------------------------------------------------------


def test_a_certified_model_is_kept_and_is_the_one_fitted_on_the_other_rows():
    classifier = certified().fit(FEATURES, LABELS)
    fit_features, judge_features, fit_labels, judge_labels = halves(FEATURES, LABELS)
    model = LogisticRegression().fit(fit_features, fit_labels)
    assert classifier.fell_back_ is False
    np.testing.assert_array_equal(classifier.predict_proba(FEATURES), model.predict_proba(FEATURES))
    np.testing.assert_array_equal(classifier.predict(FEATURES), model.predict(FEATURES))
    np.testing.assert_array_equal(classifier.estimator_.coef_, model.coef_)
    assert classifier.score(FEATURES, LABELS) == model.score(FEATURES, LABELS)
    assert classifier.constant_ == judge_labels.mean()
    assert classifier.classes_.tolist() == [0, 1]
    assert classifier.n_features_in_ == 20
    forecasts = model.predict_proba(judge_features)[:, 1]
    expected = certify(judge_labels, forecasts, max_error=0.2, confidence_level=certificate_level(600, 0.2))
    assert classifier.certificate_ == expected
    assert isinstance(classifier.certificate_, Certificate)
    assert classifier.certificate_.rows == 600


def test_a_model_that_is_not_certified_gives_way_to_the_constant():
    classifier = stepping_back().fit(FEATURES, LABELS)
    _, judge_labels = halves(LABELS)
    share = judge_labels.mean()
    assert classifier.fell_back_ is True
    assert classifier.certificate_.verdict != "certified"
    assert classifier.constant_ == share
    forecasts = classifier.predict_proba(FEATURES[:7])
    assert forecasts.tolist() == [[1.0 - share, share]] * 7
    assert classifier.predict(FEATURES).tolist() == [int(share > 0.5)] * 1200
    assert classifier.estimator_.predict_proba(FEATURES[:50])[:, 1].std() > 0.0  # the model is still there to look at
    with pytest.raises(ValueError, match="features"):
        classifier.predict_proba(FEATURES[:, :3])


@pytest.mark.parametrize("method", ["adaptive", "hoeffding", "normal", "paper"])
def test_every_method_decides_by_its_own_upper_limit(method):
    classifier = certified(method=method).fit(FEATURES, LABELS)
    certificate = classifier.certificate_
    assert certificate.method == method
    assert certificate.confidence_level == certificate_level(600, 0.2)
    assert classifier.fell_back_ == (certificate.upper > 0.2)
    assert classifier.fell_back_ == (method == "paper")


@pytest.mark.parametrize("max_error", [0.06, 0.08, 0.15])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unit weights", "weights"])
def test_the_certificate_gets_all_that_the_constant_does_not_need(max_error, weights):
    # A mean of m rows strays further than max_error with probability at most 2 exp(-2 m max_error^2).
    classifier = certified(max_error=max_error, confidence_level=0.9).fit(FEATURES, LABELS, sample_weight=weights)
    certificate = classifier.certificate_
    assert certificate.confidence_level == pytest.approx(
        certificate_level(certificate.n_eff, max_error, 0.9), abs=1e-14
    )
    assert 0.9 < certificate.confidence_level < 1.0


@pytest.mark.parametrize("split", [0.25, 0.5, 0.9])
def test_split_is_the_share_of_rows_for_judging(split):
    classifier = certified(split=split).fit(FEATURES, LABELS)
    assert classifier.certificate_.rows == round(1200 * split)


def test_the_guarantee_in_words():
    assumed = "the rows are independent draws from the population; forecaster, limit, method and level were fixed"
    kept = certified().fit(FEATURES, LABELS).guarantee_
    assert kept.startswith(
        "With 95% confidence the Cutoff calibration error of this classifier is at most 0.2 in the population: the "
        "model was certified on 600 rows that had no part in fitting it (adaptive method).\n"
    )
    assert assumed in kept
    assert kept.endswith("to fit again on the same rows and choose among the results is to look again.")
    classifier = stepping_back(confidence_level=0.9, method="hoeffding").fit(FEATURES, LABELS)
    assert classifier.guarantee_.startswith("With 90% confidence the Cutoff calibration error of this classifier is")
    assert (
        "the model could not be certified on 600 rows that had no part in fitting it (hoeffding method), and every "
        f"forecast is their mean outcome, {classifier.constant_:.4g}.\n"
    ) in classifier.guarantee_
    many = certified(method="normal").fit(FEATURES, LABELS).guarantee_
    assert many.startswith("With 95% confidence, approximately and for many rows only, the Cutoff calibration error")
    assert "there are enough rows for the central limit theorem" in many
    few = certified(method="normal").fit(FEATURES[:400], LABELS[:400])
    assert len(few.certificate_.notes) == 1
    assert few.guarantee_.endswith(f"to look again.\nNote: {few.certificate_.notes[0]}")
    weighted = certified().fit(FEATURES, LABELS, sample_weight=WEIGHTS).guarantee_
    assert "the weights were fixed beforehand" in weighted


# --- Other errors -----------------------------------------------------------------------------------------------------

SAVINGS: dict[str, dict[str, Any]] = {
    "any threshold": {},
    "threshold 0.3": {"threshold": 0.3},
    "any threshold from 0.1 to 0.3": {"threshold": (0.1, 0.3)},
    "threshold 0.1 (a false positive costs 10, a false negative 90)": {
        "cost_false_positive": 10,
        "cost_false_negative": 90,
    },
}


@pytest.mark.parametrize("over", SAVINGS)
def test_a_model_may_be_judged_by_what_acting_on_it_leaves_to_save(over):
    asked = SAVINGS[over]
    classifier = certified(max_error=0.08, measure="risk_gap", **asked).fit(FEATURES, LABELS)
    fit_features, judge_features, fit_labels, judge_labels = halves(FEATURES, LABELS)
    forecasts = LogisticRegression().fit(fit_features, fit_labels).predict_proba(judge_features)[:, 1]
    level = certificate_level(600, 0.08)
    assert classifier.certificate_ == certify(
        judge_labels, forecasts, max_error=0.08, confidence_level=level, measure="risk_gap", **asked
    )
    assert classifier.fell_back_ is False
    costs = " (8 in cost units)" if "cost_false_positive" in asked else ""
    assert classifier.guarantee_.startswith(
        "With 95% confidence no re-drawing of the line between acting and not acting on this classifier's forecasts "
        f"saves more than 0.08 per case{costs}, at {over}, in the population: the model was certified on 600 rows"
    )


def test_savings_are_certified_where_the_error_on_intervals_is_not():
    by_intervals, by_savings = (
        certified(GaussianNB(), max_error=0.09, measure=measure).fit(FEATURES, LABELS)
        for measure in ("cutoff", "risk_gap")
    )
    assert (by_intervals.fell_back_, by_savings.fell_back_) == (True, False)
    assert "every forecast is their mean outcome" in by_intervals.guarantee_


def test_every_error_of_a_constant_is_at_most_its_distance_from_the_event_rate():
    tally = calibrant.Tally.from_counts([0.4], [1000], [310])  # the constant that a classifier falls back to
    for measure in MEASURES:
        assert MEASURES[measure].estimate(tally) <= 0.09 + 1e-12, measure
    for asked in SAVINGS.values():
        assert certify(tally, max_error=0.5, measure="risk_gap", **asked).estimate <= 0.09 + 1e-12


@pytest.mark.parametrize("measure", ["smooth", "distance"])
def test_the_error_judged_is_named(measure):
    classifier = certified(measure=measure, max_error=0.2).fit(FEATURES, LABELS)
    assert classifier.certificate_.measure == measure
    assert f"the {MEASURES.words(measure)} of this classifier is at most 0.2 in the population" in classifier.guarantee_


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"measure": "gap"}, "measure must be one of"),
        ({"threshold": 0.3}, "threshold is for measure='risk_gap' only"),
        ({"measure": "risk_gap", "threshold": 2}, "threshold must be a number from 0 to 1, got 2"),
        ({"measure": "risk_gap", "threshold": (0.3, 0.1)}, "goes from 0.3 down to 0.1"),
        ({"measure": "risk_gap", "cost_false_positive": 1}, "cost_false_negative is missing"),
        ({"measure": "risk_gap", "method": "paper"}, "method='paper' covers measure='cutoff' only"),
    ],
)
def test_an_error_that_cannot_be_judged_is_refused_before_anything_is_fitted(asked, said):
    class NeverFitted(LogisticRegression):
        def fit(self, *_: Any, **__: Any) -> Any:
            raise AssertionError("fitted")

    with pytest.raises(ValueError, match=re.escape(said)):
        certified(NeverFitted(), **asked).fit(FEATURES, LABELS)


# --- Chance -----------------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_result_and_another_seed_another():
    first = certified(random_state=4).fit(FEATURES, LABELS)
    assert certified(random_state=4).fit(FEATURES, LABELS).certificate_ == first.certificate_
    assert first.fit(FEATURES, LABELS).certificate_ == certified(random_state=4).fit(FEATURES, LABELS).certificate_
    assert certified(random_state=5).fit(FEATURES, LABELS).certificate_ != first.certificate_
    generator = np.random.RandomState(4)
    assert certified(random_state=generator).fit(FEATURES, LABELS).certificate_ == first.certificate_


def test_unfitted():
    for method in ("predict", "predict_proba"):
        with pytest.raises(NotFittedError):
            getattr(certified(), method)(FEATURES)


# --- What is too little -----------------------------------------------------------------------------------------------


def test_the_smallest_possible_limit_is_named_and_works():
    _, _, fit_labels, _ = halves(FEATURES, LABELS)
    assert set(fit_labels) == {0, 1}
    smallest = math.sqrt(math.log(2.0 / 0.05) / 1200.0)
    with pytest.raises(ValueError, match=r"max_error is 0\.02, no more than even a constant can guarantee") as caught:
        certified(max_error=0.02).fit(FEATURES, LABELS)
    message = str(caught.value)
    assert "from 600 rows kept for judging at confidence_level=0.95" in message
    (smallest_said,) = re.findall(r"allow max_error=(\S+) or more", message)
    named = float(smallest_said)
    assert smallest < named <= smallest + 1e-4
    assert certified(max_error=named).fit(FEATURES, LABELS).fell_back_
    certified(max_error=smallest * (1 + 1e-9)).fit(FEATURES, LABELS)
    with pytest.raises(ValueError, match="no more than even a constant"):
        certified(max_error=smallest * (1 - 1e-9)).fit(FEATURES, LABELS)
    (rows_said,) = re.findall(r"or collect about (\S+) rows in all", message)
    rows = int(rows_said.replace(",", ""))
    assert rows == math.ceil(math.log(2.0 / 0.05) / (2.0 * 0.02**2) / 0.5)
    features, labels = make_classification(n_samples=rows + 2, random_state=0)
    certified(max_error=0.02).fit(features, labels)


def test_no_number_of_rows_is_enough_for_an_error_of_0():
    with pytest.raises(ValueError, match="since no number of rows is enough for 0"):
        certified(max_error=0).fit(FEATURES, LABELS)


def test_an_error_of_1_needs_no_rows_to_speak_of():
    classifier = certified(max_error=1).fit(FEATURES[:4], [0, 1, 0, 1])
    assert not classifier.fell_back_
    assert classifier.certificate_.rows == 2


def test_weights_make_the_smallest_possible_limit_larger():
    _, _, _, judge_weights = halves(FEATURES, WEIGHTS)
    effective = judge_weights.sum() ** 2 / (judge_weights**2).sum()
    smallest = math.sqrt(math.log(2.0 / 0.05) / (2.0 * effective))
    certified(max_error=smallest * 1.001).fit(FEATURES, LABELS, sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match=f"600 rows kept for judging, worth {effective:.1f} of equal weight"):
        certified(max_error=smallest * 0.99).fit(FEATURES, LABELS, sample_weight=WEIGHTS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_error": 1.5}, "max_error must be a number from 0 to 1, got 1.5"),
        ({"max_error": "small"}, "max_error must be a number, got 'small' of type str"),
        ({"confidence_level": 95}, "confidence_level is 95; write 0.95 for 95%"),
        ({"confidence_level": 1.0}, "confidence_level must be from 0.5 to below 1, got 1.0"),
        ({"split": 0}, "split is 0; it is the share of the rows kept for judging, between 0 and 1, as in 0.5"),
        ({"split": 1.0}, "split is 1.0; it is the share of the rows kept for judging"),
        ({"split": "half"}, "split must be a number, got 'half' of type str"),
        ({"split": 1e-4}, "n_samples=1200 and split=0.0001 leave 1200 for fitting and 0 for judging"),
        ({"method": "exact"}, "method='exact' speaks of the forecasts at hand, and a classifier makes new ones; use"),
        ({"method": "magic"}, "method must be one of 'adaptive', 'normal', 'hoeffding', 'paper', got 'magic'"),
        ({"fallback": "isotonic"}, "fallback must be one of 'constant', got 'isotonic'"),
        ({"random_state": "x"}, "'x' cannot be used to seed"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        certified(**options).fit(FEATURES, LABELS)


def test_options_are_looked_at_when_fitting_and_not_before():
    assert certified(max_error=7, method="magic").get_params()["max_error"] == 7


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.stack([LABELS, 2 - LABELS], axis=1), "y has shape (1200, 2) and holds more than 0 and 1"),
        (np.linspace(0.0, 1.0, 1200), "Unknown label type"),
        (np.where(np.arange(1200) == 5, np.nan, LABELS), "y[5] is missing"),
        (np.ones(1200), "y has one class only, 1.0, in the 600 rows drawn for fitting, and a model needs both"),
        (
            np.arange(1200) == halves(np.arange(1200))[1][0],
            "y has one class only, False, in the 600 rows drawn for fitting",
        ),
        (LABELS[:-1], "inconsistent numbers of samples: [1200, 1199]"),
    ],
)
def test_bad_labels(labels, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        certified().fit(FEATURES, labels)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (WEIGHTS[:-1], "sample_weight has 1,199 values for 1,200 rows"),
        (np.where(np.arange(1200) == 8, -1.0, WEIGHTS), "sample_weight[8] is -1; weights must not be negative"),
        (np.isin(np.arange(1200), halves(np.arange(1200))[0]), "sample_weight is 0 for all 600 rows kept for judging"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        certified().fit(FEATURES, LABELS, sample_weight=weights)


class Odd(ClassifierMixin, BaseEstimator):
    """A model with something wrong about it."""

    def __init__(self, classes=(0, 1), columns=2, forecast=0.5):
        self.classes = classes
        self.columns = columns
        self.forecast = forecast

    def fit(self, _features, _labels):
        if self.classes is not None:
            self.classes_ = np.array(self.classes)
        return self

    def predict_proba(self, features):
        return np.full((len(features), self.columns), self.forecast)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            LinearSVC(dual=False),
            "LinearSVC has no predict_proba, and only probabilities can be calibrated; choose options with",
        ),
        (Odd(classes=None), "Odd has no classes_ after fitting; pass a classifier"),
        (Odd(classes=(0, 1, 2)), "Odd.predict_proba returned shape (600, 2); one column per class is needed"),
        (Odd(classes=(0,)), "Odd has classes_ of shape (1,); two classes are needed at least"),
        (Odd(classes=("0", "1")), "y holds 0, which Odd was not fitted to; its classes are ['0', '1']"),
        (Odd(columns=1), "Odd.predict_proba returned shape (600, 1); one column per class is needed"),
        (Odd(forecast=1.5), "y_prob[0] is 1.5, outside [0, 1]"),
    ],
)
def test_bad_models(model, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        certified(model).fit(FEATURES, LABELS)


def test_a_model_without_probabilities_can_be_wrapped():
    classifier = certified(CalibratedClassifierCV(LinearSVC(dual=False), cv=3)).fit(FEATURES, LABELS)
    assert not classifier.fell_back_


def test_a_model_that_knows_only_after_fitting_that_it_has_probabilities():
    model = StackingClassifier([("nb", GaussianNB()), ("lr", LogisticRegression())], cv=3)
    assert not certified(model).fit(FEATURES, LABELS).fell_back_


# --- Kinds of input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [np.array(["no", "yes"]), np.array([False, True]), np.array([-1, 7])], ids=str)
@pytest.mark.parametrize("make", [certified, stepping_back])
def test_any_two_labels(labels, make):
    plain = make().fit(FEATURES, LABELS)
    named = make().fit(FEATURES, labels[LABELS])
    assert named.classes_.tolist() == labels.tolist()
    assert named.certificate_ == plain.certificate_
    assert named.constant_ == plain.constant_
    np.testing.assert_array_equal(named.predict_proba(FEATURES), plain.predict_proba(FEATURES))
    np.testing.assert_array_equal(named.predict(FEATURES), labels[plain.predict(FEATURES)])


def test_frames():
    turned = np.arange(1200)[::-1]
    frame = pd.DataFrame(FEATURES, columns=[f"feature {k}" for k in range(20)], index=turned)
    labels = pd.Series(np.array(["no", "yes"])[LABELS], index=turned)
    plain = certified().fit(FEATURES, LABELS)
    classifier = certified().fit(frame, labels, sample_weight=pd.Series(np.ones(1200), index=turned))
    assert classifier.feature_names_in_.tolist() == frame.columns.tolist()
    assert classifier.certificate_.upper == pytest.approx(plain.certificate_.upper, rel=1e-9)
    np.testing.assert_allclose(classifier.predict_proba(frame), plain.predict_proba(FEATURES), rtol=1e-9)
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict_proba(frame[frame.columns[::-1]])
    assert not hasattr(classifier.fit(FEATURES, LABELS), "feature_names_in_")


def test_lists_and_sparse_features():
    plain = certified().fit(FEATURES, LABELS)
    assert certified().fit(FEATURES.tolist(), LABELS.tolist()).certificate_ == plain.certificate_
    classifier = certified().fit(sparse.csr_matrix(FEATURES), LABELS)
    np.testing.assert_allclose(
        classifier.predict_proba(sparse.csr_matrix(FEATURES)), plain.predict_proba(FEATURES), rtol=1e-3
    )


def test_missing_features_are_the_models_business():
    features = np.where(np.random.default_rng(0).random(FEATURES.shape) < 0.1, np.nan, FEATURES)
    classifier = certified(HistGradientBoostingClassifier(max_iter=10)).fit(features, LABELS)
    assert classifier.predict_proba(features).shape == (1200, 2)
    if FrozenEstimator is not None:  # which came with the tags
        tags = classifier.__sklearn_tags__()
        assert tags.input_tags.allow_nan
        assert tags.classifier_tags.multi_class
        assert not tags.classifier_tags.multi_label
    with pytest.raises(ValueError, match="NaN"):
        certified().fit(features, LABELS)


# --- Weights and other metadata ---------------------------------------------------------------------------------------


def test_weights_count_for_both_parts():
    classifier = certified().fit(FEATURES, LABELS, sample_weight=WEIGHTS)
    fit_features, judge_features, fit_labels, judge_labels, fit_weights, judge_weights = halves(
        FEATURES, LABELS, WEIGHTS
    )
    model = LogisticRegression().fit(fit_features, fit_labels, sample_weight=fit_weights)
    np.testing.assert_array_equal(classifier.estimator_.coef_, model.coef_)
    forecasts = model.predict_proba(judge_features)[:, 1]
    level = certificate_level(judge_weights.sum() ** 2 / (judge_weights**2).sum(), 0.2)
    expected = certify(judge_labels, forecasts, max_error=0.2, confidence_level=level, sample_weight=judge_weights)
    assert classifier.certificate_ == expected
    assert classifier.certificate_.n_eff < 600
    assert classifier.constant_ == pytest.approx(np.average(judge_labels, weights=judge_weights), rel=1e-12)
    assert stepping_back().fit(FEATURES, LABELS, WEIGHTS).predict_proba(FEATURES[:1])[0, 1] == classifier.constant_


def test_the_papers_margin_has_no_weights():
    with pytest.raises(ValueError, match="method='paper' does not cover sample_weight"):
        certified(method="paper").fit(FEATURES, LABELS, sample_weight=WEIGHTS)


def test_a_model_that_takes_no_weights_says_so():
    with pytest.warns(
        CalibrationWarning, match=r"KNeighborsClassifier\.fit takes no sample_weight, so the weights count"
    ):
        classifier = certified(KNeighborsClassifier(100)).fit(FEATURES, LABELS, sample_weight=WEIGHTS)
    assert classifier.certificate_.n_eff < 600


def test_weights_of_a_step_are_split_like_the_rows():
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    options = {"logisticregression__sample_weight": WEIGHTS, "sample_weight": WEIGHTS}
    classifier = certified(pipeline).fit(FEATURES, LABELS, **options)
    fit_features, _, fit_labels, _, fit_weights, _ = halves(FEATURES, LABELS, WEIGHTS)
    model = clone(pipeline).fit(fit_features, fit_labels, logisticregression__sample_weight=fit_weights)
    np.testing.assert_array_equal(classifier.predict_proba(FEATURES), model.predict_proba(FEATURES))


class Recorder(LogisticRegression):
    """A model that remembers what its fit was given."""

    def fit(self, features, labels, sample_weight=None, **others):
        self.seen_ = {**others, "sample_weight": sample_weight}
        return super().fit(features, labels, sample_weight=sample_weight)


def test_options_of_the_fit_are_split_only_when_they_have_one_value_per_row():
    per_row = {"array": np.arange(1200), "list": list(range(1200)), "series": pd.Series(np.arange(1200))}
    others: dict[str, Any] = {
        "word": "x" * 1200,
        "number": 5,
        "scalar": np.float64(2.0),
        "few": [1, 2],
        "none": None,
        "map": {1: 2},
    }
    classifier = certified(Recorder()).fit(FEATURES, LABELS, **per_row, **others)
    expected = halves(np.arange(1200))[0].tolist()
    seen = classifier.estimator_.seen_
    assert [list(seen[name]) for name in per_row] == [expected] * 3
    assert {name: seen[name] for name in others} == others
    assert seen["sample_weight"] is None


@pytest.mark.usefixtures("routing")
def test_routing_asks_who_wants_the_weights():
    with pytest.raises(ValueError, match="sample_weight"):
        certified().fit(FEATURES, LABELS, sample_weight=WEIGHTS)
    asked = certified(LogisticRegression().set_fit_request(sample_weight=True)).fit(FEATURES, LABELS, WEIGHTS)
    with sklearn.config_context(enable_metadata_routing=False):
        plain = certified().fit(FEATURES, LABELS, sample_weight=WEIGHTS)
    assert asked.certificate_ == plain.certificate_
    # The model may do without weights; the certificate has them all the same.
    without = certified(LogisticRegression().set_fit_request(sample_weight=False)).fit(FEATURES, LABELS, WEIGHTS)
    np.testing.assert_array_equal(without.estimator_.coef_, certified().fit(FEATURES, LABELS).estimator_.coef_)
    assert without.certificate_.n_eff == asked.certificate_.n_eff
    # Or have weights of another name.
    model = LogisticRegression().set_fit_request(sample_weight="other")
    other = certified(model).fit(FEATURES, LABELS, sample_weight=np.ones(1200), other=WEIGHTS)
    np.testing.assert_array_equal(other.estimator_.coef_, asked.estimator_.coef_)
    assert other.certificate_.n_eff == 600


@pytest.mark.usefixtures("routing")
def test_routing_through_pipelines_inside_and_around():
    step = LogisticRegression().set_fit_request(sample_weight=True)
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    inside = certified(make_pipeline(scaler, step)).fit(FEATURES, LABELS, sample_weight=WEIGHTS)
    fit_features, _, fit_labels, _, fit_weights, _ = halves(FEATURES, LABELS, WEIGHTS)
    model = make_pipeline(scaler, step).fit(fit_features, fit_labels, sample_weight=fit_weights)
    np.testing.assert_array_equal(inside.predict_proba(FEATURES), model.predict_proba(FEATURES))
    around = make_pipeline(scaler, certified(step).set_fit_request(sample_weight=True))
    around.fit(FEATURES, LABELS, sample_weight=WEIGHTS)
    assert around[-1].certificate_.n_eff == inside.certificate_.n_eff < 600


@pytest.mark.usefixtures("routing")
def test_the_routing_lists_both_requests():
    router = certified(LogisticRegression().set_fit_request(sample_weight=True)).set_fit_request(sample_weight=True)
    text = json.dumps(router.get_metadata_routing()._serialize())
    assert text.count('"sample_weight": true') >= 2


# --- Fitted models ----------------------------------------------------------------------------------------------------


@needs_frozen
@pytest.mark.parametrize("route", [False, True])
def test_a_frozen_model_is_judged_on_all_rows(route):
    old, features, old_labels, labels = FEATURES[:400], FEATURES[400:], LABELS[:400], LABELS[400:]
    model = LogisticRegression().fit(old, old_labels)
    coefficients = model.coef_.copy()
    with sklearn.config_context(enable_metadata_routing=route):
        classifier = certified(FrozenEstimator(model)).fit(features, labels)
    assert classifier.certificate_ == certify(
        labels, model.predict_proba(features)[:, 1], max_error=0.2, confidence_level=certificate_level(800, 0.2)
    )
    assert classifier.certificate_.rows == 800
    assert classifier.constant_ == labels.mean()
    assert classifier.n_features_in_ == 20
    assert "the model was certified on 800 rows (adaptive method)" in classifier.guarantee_
    np.testing.assert_array_equal(model.coef_, coefficients)
    np.testing.assert_array_equal(classifier.predict_proba(old), model.predict_proba(old))
    with sklearn.config_context(enable_metadata_routing=route):
        weighted = certified(FrozenEstimator(model)).fit(features, labels, sample_weight=WEIGHTS[400:])
    assert weighted.certificate_.n_eff < 800


@needs_frozen
def test_a_frozen_model_may_be_judged_on_one_class_but_not_on_unknown_ones():
    model = FrozenEstimator(LogisticRegression().fit(FEATURES[:400], LABELS[:400]))
    rest = FEATURES[400:][LABELS[400:] == 1]
    classifier = certified(model).fit(rest, np.ones(len(rest), dtype=int))
    assert classifier.fell_back_
    assert classifier.constant_ == 1.0
    assert classifier.predict_proba(rest[:1]).tolist() == [[0.0, 1.0]]
    with pytest.raises(ValueError, match="y holds 2, which FrozenEstimator was not fitted to; its classes are"):
        certified(model).fit(FEATURES, LABELS + 1)


@needs_frozen
def test_a_frozen_model_has_its_own_smallest_limit_and_must_be_fitted():
    model = LogisticRegression().fit(FEATURES[:400], LABELS[:400])
    with pytest.raises(ValueError, match=r"from 800 rows kept for judging .* or collect about 4,612 rows in all"):
        certified(FrozenEstimator(model), max_error=0.02).fit(FEATURES[400:], LABELS[400:])
    with pytest.raises(NotFittedError):
        certified(FrozenEstimator(LogisticRegression())).fit(FEATURES, LABELS)


# --- Inside scikit-learn ----------------------------------------------------------------------------------------------


def test_it_is_a_classifier_whose_parameters_can_be_read_set_and_cloned():
    classifier = certified(split=0.3)
    assert is_classifier(classifier)
    assert clone(classifier).get_params(deep=False).keys() == classifier.get_params(deep=False).keys()
    classifier.set_params(estimator__C=0.01, max_error=0.15).fit(FEATURES, LABELS)
    assert classifier.estimator_.C == 0.01
    assert classifier.certificate_.max_error == 0.15
    assert classifier.estimator is not classifier.estimator_
    assert not hasattr(clone(classifier), "certificate_")
    assert repr(classifier).startswith("CertifiedClassifier(estimator=LogisticRegression(C=0.01)")
    assert "LogisticRegression" in classifier._repr_html_()


@pytest.mark.parametrize("make", [certified, stepping_back])
def test_pickles_forecast_the_same(make):
    classifier = make().fit(FEATURES, LABELS)
    twin = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(twin.predict_proba(FEATURES), classifier.predict_proba(FEATURES))
    assert twin.certificate_ == classifier.certificate_
    assert twin.guarantee_ == classifier.guarantee_


def test_a_search_around_and_a_search_inside():
    grid = {"estimator__C": [1e-4, 1.0], "max_error": [0.15, 0.3]}
    around = GridSearchCV(certified(), grid, cv=3, scoring="neg_log_loss", error_score="raise").fit(FEATURES, LABELS)
    assert around.best_estimator_.estimator_.C == around.best_params_["estimator__C"] == 1.0
    assert around.predict_proba(FEATURES).shape == (1200, 2)
    inside = certified(GridSearchCV(LogisticRegression(), {"C": [1e-4, 1.0]}, cv=3, scoring="neg_log_loss"))
    inside.fit(FEATURES, LABELS)
    assert inside.estimator_.best_params_ == {"C": 1.0}
    assert inside.certificate_.rows == 600


def test_a_pipeline_around_and_a_pipeline_inside():
    features, labels = load_breast_cancer(return_X_y=True)
    around = make_pipeline(StandardScaler(), certified()).fit(features, labels)
    inside = certified(make_pipeline(StandardScaler(), LogisticRegression())).fit(features, labels)
    assert inside.n_features_in_ == 30
    for model in (around, inside):
        assert model.score(features, labels) > 0.9
        assert cross_val_score(model, features, labels, cv=3, error_score="raise").min() > 0.9
