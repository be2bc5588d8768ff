"""Scorers of scikit-learn, as people use them."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
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
    for name in (each for each in scorer_names() if each.split("_")[1] not in ("cutoff", "expected")):
        with pytest.raises(calibrant.InputError, match=r"^estimator forecasts 3 classes, and this scorer is "):
            get_scorer(name)(model, X_IRIS, Y_IRIS)
    names = np.array(["a", "b", "c"])[Y_IRIS]
    of_two = LogisticRegression().fit(X_IRIS[:100], names[:100])
    with pytest.raises(calibrant.InputError, match=r"is 'c', which is not one of the classes 'a', 'b'; "):
        get_scorer("neg_cutoff_calibration_error")(of_two, X_IRIS, names)
    # A fold with two of the three classes is scored, because the classes are named.
    two = Y_IRIS < 2
    assert get_scorer("neg_cutoff_calibration_error", classes=[0, 1, 2])(model, X_IRIS[two], Y_IRIS[two]) <= 0.0


LABELS = np.where(Y == 1, "benign", "malignant")


@pytest.mark.parametrize("name", scorer_names())
@pytest.mark.parametrize("kind", ["text", "object", "bool", "other numbers", "pandas"])
def test_labels_of_any_kind_are_those_of_the_estimator(name, kind):
    labels: Any = {
        "text": np.where(Y == 1, "yes", "no"),
        "object": np.where(Y == 1, "yes", "no").astype(object),
        "bool": Y == 1,
        "other numbers": np.where(Y == 1, 7, -3),
        "pandas": pd.Series(np.where(Y == 1, "yes", "no"), dtype="category"),
    }[kind]
    expected = cross_validate(GaussianNB(), X, Y, scoring=get_scorer(name), cv=3, error_score="raise")
    found = cross_validate(GaussianNB(), X, labels, scoring=get_scorer(name), cv=3, error_score="raise")
    assert found["test_score"].tolist() == expected["test_score"].tolist()


def test_the_event_is_the_second_class_unless_named():
    model = GaussianNB().fit(X, LABELS)
    forecast = model.predict_proba(X)
    for place, label in enumerate(model.classes_):
        scorer = get_scorer("neg_smooth_calibration_error", pos_label=label)
        error = calibrant.smooth_calibration_error(label == LABELS, forecast[:, place])
        assert pickle.loads(pickle.dumps(scorer))(model, X, LABELS) == -error
    second = calibrant.smooth_calibration_error(LABELS == "malignant", forecast[:, 1])
    assert get_scorer("neg_smooth_calibration_error")(model, X, LABELS) == -second
    benign = LABELS == "benign"  # rows of one class alone, of which the other is the event
    error = calibrant.smooth_calibration_error(np.zeros(benign.sum()), forecast[benign, 1])
    assert get_scorer("neg_smooth_calibration_error")(model, X[benign], LABELS[benign]) == -error


def test_scorers_of_different_events_stand_side_by_side():
    def share(y_true, y_prob, pos_label=None):
        del y_true, pos_label
        return y_prob.mean()

    foreign = make_scorer(share, response_method="predict_proba", pos_label="benign")
    ours = {name: get_scorer("neg_ks_calibration_error", pos_label=name) for name in ("benign", "malignant")}
    together = cross_validate(GaussianNB(), X, LABELS, scoring={"foreign": foreign, **ours}, cv=3, error_score="raise")
    for name, scorer in ours.items():
        alone = cross_validate(GaussianNB(), X, LABELS, scoring=scorer, cv=3, error_score="raise")
        assert together[f"test_{name}"].tolist() == alone["test_score"].tolist()


@pytest.mark.parametrize("name", ["neg_cutoff_calibration_error", "neg_expected_calibration_error"])
@pytest.mark.parametrize("questions", [None, "confidence", "classwise"])
def test_folds_need_not_have_all_classes(name, questions):
    flowers = np.array(["setosa", "versicolor", "virginica"])[Y_IRIS]
    fold = (np.arange(150) % 2 == 0) & (flowers != "setosa")  # without the first, where columns are easily mixed up
    options: Any = {} if questions is None else {"questions": questions}
    given: Any = {"cv": [(np.flatnonzero(~fold), np.flatnonzero(fold))], "error_score": "raise"}
    model = LogisticRegression(max_iter=1000)
    (found,) = cross_validate(model, X_IRIS, flowers, scoring=get_scorer(name, **options), **given)["test_score"]
    forecast = model.fit(X_IRIS[~fold], flowers[~fold]).predict_proba(X_IRIS[fold])
    error = getattr(calibrant, name.removeprefix("neg_"))
    bins = {"n_bins": 15} if "expected" in name else {}
    assert found == -error(flowers[fold], forecast, classes=model.classes_, **bins, **options)


def test_a_class_that_was_not_fitted():
    scorer, known = (get_scorer("neg_cutoff_calibration_error", **each) for each in ({}, {"classes": [0, 1, 2]}))
    model = LogisticRegression(max_iter=1000).fit(X_IRIS[Y_IRIS > 0], Y_IRIS[Y_IRIS > 0])
    with pytest.raises(calibrant.InputError, match=r"^y_true\[0\] is 0, which is not one of the classes 1, 2"):
        scorer(model, X_IRIS, Y_IRIS)
    forecast = np.column_stack([np.zeros(150), model.predict_proba(X_IRIS)])
    error = calibrant.cutoff_calibration_error(Y_IRIS, forecast, classes=[0, 1, 2])
    assert known(model, X_IRIS, Y_IRIS) == -error
    model = GaussianNB().fit(X_IRIS[Y_IRIS == 0], Y_IRIS[Y_IRIS == 0])
    with pytest.raises(calibrant.InputError, match=r"^estimator was fitted to rows of one class, 0; .*StratifiedKFold"):
        scorer(model, X_IRIS, Y_IRIS)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
@pytest.mark.parametrize("name", ["neg_cutoff_calibration_error", "neg_expected_calibration_error"])
def test_classes_may_be_named_in_any_order(name, order):
    """What a column is, the estimator says: names in another order once gave each class the column of another."""
    flowers = np.array(["setosa", "versicolor", "virginica"])
    model = GaussianNB().fit(X_IRIS[::2], flowers[Y_IRIS[::2]])
    for questions in ("confidence", "classwise"):
        plain, named = (
            get_scorer(name, questions=questions, **each) for each in ({}, {"classes": flowers[list(order)].tolist()})
        )
        assert named(model, X_IRIS, flowers[Y_IRIS]) == pytest.approx(plain(model, X_IRIS, flowers[Y_IRIS]), rel=1e-12)
    of_two = GaussianNB().fit(X, LABELS)
    event = {"pos_label": "malignant"}
    orders: list[Any] = [{"classes": ["malignant", "benign"]}, {"classes": ["benign", "malignant"]}]
    both: list[Any] = [{}, event, *orders, *({**each, **event} for each in orders)]
    assert len({get_scorer(name, **each)(of_two, X, LABELS) for each in both}) == 1
    of_one = GaussianNB().fit(X[LABELS == "benign"], LABELS[LABELS == "benign"])  # the other is never forecast
    error = getattr(calibrant, name.removeprefix("neg_"))(LABELS == "malignant", np.zeros(len(X)))
    assert get_scorer(name, classes=["benign", "malignant"])(of_one, X, LABELS) == -error
    with pytest.raises(calibrant.InputError, match=r"^classes leaves out 'setosa', a class of the estimator; name all"):
        get_scorer(name, classes=["versicolor", "virginica", "other"])(model, X_IRIS, flowers[Y_IRIS])


def test_several_labels_of_a_row():
    y = np.column_stack([Y_IRIS == 1, X_IRIS[:, 0] > 5.5]).astype(int)
    model = KNeighborsClassifier(9).fit(X_IRIS, y)  # whose forecasts are a list, with two columns for each label
    forecast = np.column_stack([each[:, 1] for each in model.predict_proba(X_IRIS)])
    error = calibrant.cutoff_calibration_error(y, forecast, multilabel=True)
    assert get_scorer("neg_cutoff_calibration_error", multilabel=True)(model, X_IRIS, y) == -error
    with pytest.raises(
        calibrant.InputError, match=r"^estimator forecasts several labels of each row; pass multilabel="
    ):
        get_scorer("neg_cutoff_calibration_error")(model, X_IRIS, y)


@pytest.mark.parametrize(
    ("name", "option"),
    [("neg_risk_gap", {"threshold": 7}), ("neg_expected_calibration_error", {"n_bins": 0})],
)
def test_values_of_options_are_checked_before_there_are_folds(name, option):
    with pytest.raises(calibrant.InputError, match=f"^{next(iter(option))}"):
        get_scorer(name, **option)


def test_a_scorer_is_one_of_scikit_learn():
    scorer = get_scorer("neg_expected_calibration_error", n_bins=10)
    made = make_scorer(
        calibrant.expected_calibration_error, response_method="predict_proba", greater_is_better=False, n_bins=10
    )
    assert isinstance(scorer, type(made))
    assert vars(scorer) == vars(made)  # which skore and others read
    assert repr(scorer) == repr(made)
    search = clone(GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9]}, scoring=scorer, cv=3)).fit(X, LABELS)
    assert search.score(X, LABELS) == scorer(search.best_estimator_, X, LABELS) < 0.0


def test_what_cannot_be_is_said_at_once():
    with pytest.raises(
        calibrant.InputError, match=r"^name must be one of .*'neg_cutoff_calibration_error'.*, got 'cutoff'$"
    ):
        get_scorer("cutoff")
    with pytest.raises(TypeError, match=r"^get_scorer\(.*\) has no option 'bins'; it has n_bins, "):
        get_scorer("neg_expected_calibration_error", bins=10)
    with pytest.raises(calibrant.InputError, match=r"^classes is 'ab', not an array; pass the labels of all classes$"):
        get_scorer("neg_cutoff_calibration_error", classes="ab")
    with pytest.raises(calibrant.InputError, match=r"^classes is \['a', 'a'\]; pass at least two labels, each of "):
        get_scorer("neg_cutoff_calibration_error", classes=["a", "a"])
    with pytest.raises(calibrant.InputError, match=r"^questions must be one of .*, got 'classes'$"):
        get_scorer("neg_cutoff_calibration_error", questions="classes")
    with pytest.raises(calibrant.InputError, match=r"^multilabel must be True or False, got 'yes'$"):
        get_scorer("neg_cutoff_calibration_error", multilabel="yes")
    with pytest.raises(calibrant.InputError, match=r"^questions='pairs' needs rows of one class each"):
        get_scorer("neg_expected_calibration_error", questions="pairs", multilabel=True)
    with pytest.raises(AttributeError, match="predict_proba"):
        get_scorer("neg_cutoff_calibration_error")(LinearSVC(dual=False).fit(X, Y), X, Y)


@pytest.mark.parametrize("classes", [None, [0, 1], np.array(["a", "b", "c"])], ids=str)
@pytest.mark.parametrize("questions", [None, "confidence", "classwise", "top_label", "pairs", "subsets"])
@pytest.mark.parametrize("name", ["neg_cutoff_calibration_error", "neg_expected_calibration_error"])
def test_every_question_may_be_asked(name, questions, classes):
    get_scorer(name, questions=questions, classes=classes)
    if questions in (None, "classwise"):
        get_scorer(name, questions=questions, classes=classes, multilabel=True)
