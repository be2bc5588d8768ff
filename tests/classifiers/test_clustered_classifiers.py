"""Classifiers on rows in clusters: no cluster on both sides of a split, and certificates that count clusters."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from classifier_cases import FEATURES, LABELS, WEIGHTS, FrozenEstimator, certified, needs_frozen
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant import certify
from calibrant.certificates.margins import constant_failure
from calibrant.classifiers.certified import CertifiedClassifier
from calibrant.classifiers.recalibrated import RecalibratedClassifier

GROUPS = np.repeat(np.arange(300), 4)
NAMED = np.array([f"patient {(7 * group) % 300}" for group in GROUPS])  # another order of the same clusters
MOVED = np.random.default_rng(3).permutation(1200)


class Noting(ClassifierMixin, BaseEstimator):
    """A model that notes the rows it was fitted on, which have their number as a feature."""

    def __init__(self, notes=None):
        self.notes = notes

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.rows_ = np.asarray(X)[:, -1].astype(int)
        return self

    def predict_proba(self, X):
        forecast = np.clip(np.asarray(X)[:, 0] / 6.0 + 0.5, 0.0, 1.0)
        return np.stack([1.0 - forecast, forecast], axis=1)


NUMBERED = np.column_stack([FEATURES, np.arange(1200)])


def recalibrated(estimator=None, **options):
    return RecalibratedClassifier(GaussianNB() if estimator is None else estimator, **{"random_state": 0, **options})


def judged_in(classifier: Any) -> Any:
    """The number of clusters that judged a classifier."""
    return classifier.certificate_.clusters.count


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# --- Splits and certificates ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("groups", [GROUPS, NAMED, pd.Series(NAMED), GROUPS.tolist()], ids=str)
def test_whole_clusters_are_kept_for_judging_and_the_certificate_counts_them(groups):
    classifier = certified(Noting()).fit(NUMBERED, LABELS, groups=groups)
    fitted_on = classifier.estimator_.rows_
    judging = np.setdiff1d(np.arange(1200), fitted_on)
    assert judging.size == 600
    assert not set(GROUPS[judging]) & set(GROUPS[fitted_on])
    level = 0.95 + constant_failure(150, 0.2)
    forecast = classifier.estimator_.predict_proba(NUMBERED[judging])[:, 1]
    expected = certify(
        LABELS[judging], forecast, max_error=0.2, confidence_level=level, cluster=np.asarray(groups)[judging]
    )
    assert classifier.certificate_ == expected
    assert judged_in(classifier) == 150
    assert classifier.constant_ == LABELS[judging].mean()


def test_splits_depend_on_what_clusters_hold_and_not_on_order_or_names():
    first = certified(Noting()).fit(NUMBERED, LABELS, groups=GROUPS)
    again = certified(Noting()).fit(NUMBERED[MOVED], LABELS[MOVED], groups=NAMED[MOVED])
    assert sorted(again.estimator_.rows_) == sorted(first.estimator_.rows_)
    assert again.certificate_.upper == pytest.approx(first.certificate_.upper, rel=1e-12)
    other = certified(Noting(), random_state=1).fit(NUMBERED, LABELS, groups=GROUPS)
    assert sorted(other.estimator_.rows_) != sorted(first.estimator_.rows_)


def frame_of_words(rows):
    words = np.array(["low", "middle", "high"])[np.digitize(rows[:, 0], [-0.5, 0.5])]
    return pd.DataFrame({"word": words, "number": rows[:, 1], "row": rows[:, -1]})


@pytest.mark.parametrize("kind", [csr_matrix, frame_of_words, pd.DataFrame, np.ndarray.tolist])
def test_every_kind_of_features_is_told_apart(kind):
    class Last(Noting):
        def fit(self, X, y):
            rows = X.toarray() if hasattr(X, "toarray") else pd.DataFrame(X).to_numpy()
            self.classes_, self.rows_ = np.unique(y), rows[:, -1].astype(int)
            return self

        def predict_proba(self, X):
            return np.full((X.shape[0] if hasattr(X, "shape") else len(X), 2), 0.5)

    first = certified(Last()).fit(kind(NUMBERED), LABELS, groups=GROUPS)
    again = certified(Last()).fit(kind(NUMBERED[MOVED]), LABELS[MOVED], groups=NAMED[MOVED])
    assert sorted(again.estimator_.rows_) == sorted(first.estimator_.rows_)


def test_features_without_a_common_shape_are_told_apart():
    class Words(Noting):
        def fit(self, X, y):
            self.classes_, self.rows_ = np.unique(y), np.array([row[0] for row in X])
            return self

        def predict_proba(self, X):
            return np.full((len(X), 2), 0.5)

    ragged = [[row, *range(row % 3)] for row in range(1200)]
    first = certified(Words()).fit(ragged, LABELS, groups=GROUPS)
    again = certified(Words()).fit([ragged[k] for k in MOVED], LABELS[MOVED], groups=GROUPS[MOVED])
    assert sorted(again.estimator_.rows_) == sorted(first.estimator_.rows_)


def test_parts_hold_whole_clusters():
    models = []

    class Listed(Noting):
        def fit(self, X, y):
            models.append(super().fit(X, y))
            return self

        def predict_proba(self, X):
            numbers = np.asarray(X)[:, -1].astype(int)
            assert self is models[-1]
            if len(models) < 5:  # the last one fitted is that of all rows, asked for the recalibration's sake
                assert not set(GROUPS[numbers]) & set(GROUPS[self.rows_])
            return super().predict_proba(X)

    recalibrated(Listed(), cv=4).fit(NUMBERED, LABELS, groups=GROUPS)
    sizes = sorted(model.rows_.size for model in models)
    assert sizes == [900] * 4 + [1200]


def test_the_recalibration_does_not_depend_on_order_or_names():
    first = recalibrated(max_error=0.2, cv=3).fit(FEATURES, LABELS, groups=GROUPS)
    again = recalibrated(max_error=0.2, cv=3).fit(FEATURES[MOVED], LABELS[MOVED], groups=NAMED[MOVED])
    np.testing.assert_allclose(first.predict_proba(FEATURES), again.predict_proba(FEATURES), rtol=1e-6)
    assert first.certificate_.upper == pytest.approx(again.certificate_.upper, rel=1e-6)
    assert judged_in(first) == 75


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")  # which scikit-learn says, and we refuse
@pytest.mark.parametrize("max_error", [None, 0.2])
def test_splitters_get_the_groups_and_must_keep_them_together(max_error):
    recalibrated(cv=GroupKFold(3), max_error=max_error).fit(FEATURES, LABELS, groups=GROUPS)
    apart = KFold(3, shuffle=True, random_state=0)
    with pytest.raises(ValueError, match=r"^cv has row \d+ forecast by a model that was fitted on other rows of its"):
        recalibrated(cv=apart, max_error=max_error).fit(FEATURES, LABELS, groups=GROUPS)
    with pytest.raises(ValueError, match="keeps groups together, such as GroupKFold"):
        recalibrated(cv=list(apart.split(FEATURES)), max_error=max_error).fit(FEATURES, LABELS, groups=GROUPS)
    listed = list(GroupKFold(3).split(FEATURES, LABELS, GROUPS))
    assert recalibrated(cv=listed, max_error=max_error).fit(FEATURES, LABELS, groups=GROUPS)


def test_models_inside_get_the_groups_where_they_take_them():
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=GroupKFold(3))
    assert certified(search).fit(FEATURES, LABELS, groups=GROUPS).estimator_.best_params_
    inside = recalibrated(cv=3)
    around = certified(inside).fit(FEATURES, LABELS, groups=GROUPS)
    assert judged_in(around) == 150


@pytest.mark.usefixtures("routing")
def test_routing_asks_who_wants_the_groups():
    plain = certified().fit(FEATURES, LABELS, groups=GROUPS)
    assert judged_in(plain) == 150
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=GroupKFold(3))
    assert certified(search).fit(FEATURES, LABELS, groups=GROUPS).estimator_.best_params_
    assert recalibrated(cv=GroupKFold(3)).fit(FEATURES, LABELS, groups=GROUPS)
    around = make_pipeline(StandardScaler(), certified().set_fit_request(groups=True))
    assert judged_in(around.fit(FEATURES, LABELS, groups=GROUPS)[-1]) == 150
    with pytest.raises(ValueError, match="fitted on other rows of its cluster"):
        recalibrated(cv=KFold(3)).fit(FEATURES, LABELS, groups=np.arange(1200) % 300)


def test_weights_and_clusters_together():
    classifier = certified(max_error=0.3).fit(FEATURES, LABELS, WEIGHTS, groups=GROUPS)
    assert judged_in(classifier) == 150
    assert judged_in(recalibrated(max_error=0.3).fit(FEATURES, LABELS, WEIGHTS, groups=GROUPS)) == 75


# --- What is guaranteed -----------------------------------------------------------------------------------------------


def test_the_constant_counts_clusters():
    classifier = certified(DummyClassifier(), max_error=0.12)
    with pytest.raises(ValueError, match=r"^max_error is 0\.12, no more than even a constant can guarantee"):
        classifier.fit(FEATURES, LABELS, groups=GROUPS // 2)
    with pytest.raises(ValueError, match=r"600 rows .* in 75 clusters at .*allow max_error=0\.1569 .*about 257 clu"):
        classifier.fit(FEATURES, LABELS, groups=GROUPS // 2)
    smallest = math.sqrt(math.log(2 / 0.05) / (2 * 75))
    assert certified(max_error=smallest + 1e-4).fit(FEATURES, LABELS, groups=GROUPS // 2).certificate_
    uneven = np.where(np.arange(1200) < 600, np.arange(1200) // 6, np.arange(1200))
    with pytest.raises(ValueError, match=r"in \d+ clusters, worth \d+\.\d of equal weight at"):
        certified(DummyClassifier(), max_error=0.05, split=0.9).fit(FEATURES, LABELS, groups=uneven)


def test_guarantees_speak_of_clusters():
    words = certified().fit(FEATURES, LABELS, groups=GROUPS).guarantee_
    assert (
        "in the population, for clusters of these sizes: the model was certified on 600 rows in 150 clusters" in words
    )
    assert "This assumes that clusters are independent of each other, while rows of one cluster" in words
    words = recalibrated(max_error=0.2).fit(FEATURES, LABELS, groups=GROUPS).guarantee_
    assert "it was certified on 300 rows in 75 clusters that had no part in fitting the model" in words


@pytest.mark.parametrize("max_error", [None, 0.2])
def test_a_fitted_model_has_a_guarantee_for_the_forecasts_of_these_clusters(max_error):
    model = GaussianNB().fit(FEATURES[:400], LABELS[:400])
    classifier = recalibrated(model, cv="prefit", max_error=max_error)
    words = classifier.fit(FEATURES[400:], LABELS[400:], groups=GROUPS[400:]).guarantee_
    assert "for these forecasts" in words
    assert f"in {200 if max_error is None else 150} clusters it was fitted to" in words
    assert ("Of other clusters only a certificate can speak: set max_error." in words) == (max_error is None)
    assert "independent draws" not in words


def test_a_map_fitted_to_one_cluster_guarantees_nothing():
    model = GaussianNB().fit(FEATURES[:400], LABELS[:400])
    classifier = recalibrated(model, cv="prefit", max_error=0.9, split=0.67)
    words = classifier.fit(FEATURES[400:], LABELS[400:], groups=np.arange(800) % 3).guarantee_
    assert "Nothing is guaranteed, because they are of one cluster." in words


@needs_frozen
def test_a_frozen_model_is_judged_on_all_clusters():
    model = FrozenEstimator(LogisticRegression().fit(FEATURES[:400], LABELS[:400]))
    classifier = certified(model).fit(FEATURES[400:], LABELS[400:], groups=GROUPS[400:])
    assert judged_in(classifier) == 200


def test_clusters_of_one_row_are_rows():
    classifier = certified().fit(FEATURES, LABELS, groups=np.arange(1200))
    assert classifier.certificate_.clusters is None
    assert "tells all 600 rows apart" in classifier.guarantee_


# --- Bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(1200), r"^groups holds one cluster only, which cannot be on both sides of a split"),
        (GROUPS[:-1], r"^groups has .*1,?199"),
        (np.where(GROUPS == 5, np.nan, GROUPS), r"^groups\[20\] is missing"),
        (np.arange(1200) % 2, r"^groups has 2 clusters, and split=0\.5 leaves 1 for fitting and 1 for judging"),
    ],
)
def test_bad_groups(groups, message):
    with pytest.raises(ValueError, match=message):
        certified().fit(FEATURES, LABELS, groups=groups)


def test_too_few_clusters_for_so_many_parts():
    with pytest.raises(ValueError, match=r"^cv is 5, and there are only 3 clusters for fitting; use cv=3 or less"):
        recalibrated().fit(FEATURES, LABELS, groups=np.arange(1200) % 3)


@pytest.mark.parametrize("options", [{"method": "paper"}, {"measure": "smooth"}])
def test_what_has_no_limits_for_clusters_is_refused_before_anything_is_fitted(options):
    class Never(LogisticRegression):
        def fit(self, *rows):
            raise AssertionError(rows)

    with pytest.raises(ValueError, match="clusters"):
        certified(Never(), **options).fit(FEATURES, LABELS, groups=GROUPS)
    if "method" in options:
        with pytest.raises(ValueError, match="clusters"):
            recalibrated(Never(), max_error=0.2, **options).fit(FEATURES, LABELS, groups=GROUPS)
        recalibrated(**options).fit(FEATURES, LABELS, groups=GROUPS)


# --- Simulation -------------------------------------------------------------------------------------------------------


def test_what_is_promised_of_clusters_is_kept_where_rows_taken_for_independent_break_it():
    """Two hundred clusters of twenty rows that share one fair coin; the model is the mean of the rows it has."""
    groups = np.repeat(np.arange(200), 20)
    features = np.zeros((4000, 1))
    missed = {"clusters": 0, "rows": 0}
    runs = 100
    for seed in range(runs):
        labels = np.random.default_rng(seed).integers(0, 2, 200)[groups]
        by_cluster = CertifiedClassifier(DummyClassifier(), max_error=0.14, random_state=seed)
        forecast = by_cluster.fit(features, labels, groups=groups).predict_proba([[0.0]])[0, 1]
        missed["clusters"] += abs(forecast - 0.5) > 0.14
        by_row = CertifiedClassifier(DummyClassifier(), max_error=0.05, random_state=seed)
        missed["rows"] += abs(by_row.fit(features, labels).predict_proba([[0.0]])[0, 1] - 0.5) > 0.05
        with pytest.raises(ValueError, match="no more than even a constant can guarantee"):
            by_row.fit(features, labels, groups=groups)
    assert missed["clusters"] <= 5
    assert missed["rows"] > 10  # at a nominal 5%
