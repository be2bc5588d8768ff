"""Internal validation: R's values for the same resamples, the truth of a large sample, and whatever must not matter."""

import json
import math
import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant
from calibrant import InputError, Tally, internal_validation
from calibrant.core.errors import UndefinedError
from calibrant.validations.optimism import _Study, _Team, _trained_and_tested, bootstrap_corrected, cross_corrected
from calibrant.validations.statistics import STATISTICS, Plan, Settings

REFERENCE = Path(__file__).parents[1] / "reference"
NAMES = ["auroc", "brier", "brier_scaled", "slope", "intercept", "intercept_at_unit_slope", "observed_expected_ratio"]


class Newton(ClassifierMixin, BaseEstimator):
    """Logistic regression to the last digit, as R's glm with a strict tolerance."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        design = np.column_stack([np.ones(len(X)), np.asarray(X, dtype=float)])
        target = np.asarray(y == self.classes_[1], dtype=float)
        self.coef_ = np.zeros(design.shape[1])
        for _ in range(30):
            rate = expit(design @ self.coef_)
            step = np.linalg.solve(design.T @ (design * (rate * (1 - rate))[:, None]), design.T @ (target - rate))
            self.coef_ = self.coef_ + step
            if np.abs(step).max() < 1e-13:
                break
        return self

    def predict_proba(self, X):
        rate = expit(np.column_stack([np.ones(len(X)), np.asarray(X, dtype=float)]) @ self.coef_)
        return np.column_stack([1 - rate, rate])


def drawn_rows(n=80, features=6, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, features))
    return X, (generator.random(n) < expit(X[:, 0] - 0.3)).astype(int)


# --- Against R --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frozen():
    values = json.loads((REFERENCE / "optimism.json").read_text())["values"]
    rows = pd.read_csv(REFERENCE / "birthwt.csv")
    study = _Study.of(Newton(), rows.drop(columns="low"), rows["low"].to_numpy(), None, None)
    return {name: each["value"] for name, each in values.items()}, study


def test_bootstrap_equals_rms_and_glm_for_the_same_resamples(frozen):
    values, study = frozen
    drawn = [np.array(each) - 1 for each in values["resampled_rows_counted_from_1"]]
    plan = Plan(NAMES, Settings(smoother="isotonic", thresholds=(0.3,)))
    found = bootstrap_corrected(study, plan, drawn, [0] * len(drawn), 0, _Team(None, False))
    in_r = [name.replace("observed_expected_ratio", "observed_over_expected") for name in NAMES] + ["net_benefit_0.3"]
    places = [values["measures"].index(name) for name in in_r]
    for column in ("apparent", "training", "test", "optimism", "corrected"):
        mine = [getattr(part, column) for part in found.parts]
        assert mine == pytest.approx(np.array(values[column])[places], abs=1e-9)
    # rms's fits stop a little earlier, and Dxy = 2 AUROC - 1.
    corrected: dict[str, Any] = {part.name: part.corrected for part in found.parts}
    ours = {"Dxy": 2 * corrected["auroc"] - 1, "B": corrected["brier"]}
    ours |= {"Slope": corrected["slope"], "Intercept": corrected["intercept"]}
    for name, value in ours.items():
        assert value == pytest.approx(values["validate_corrected"][values["validate_rows"].index(name)], abs=2e-8)


def test_cross_validation_equals_glm_for_the_same_folds(frozen):
    values, study = frozen
    folds = np.arange(1, study.rows + 1) % 10
    plan = Plan(NAMES, Settings(smoother="isotonic", thresholds=(0.3,)))
    found = cross_corrected(study, plan, [folds], [[0] * 10], 0, _Team(None, False))
    in_r = [name.replace("observed_expected_ratio", "observed_over_expected") for name in NAMES] + ["net_benefit_0.3"]
    expected = np.array(values["cross_validated_row_modulo_10"])[[values["measures"].index(name) for name in in_r]]
    assert [part.corrected for part in found.parts] == pytest.approx(expected, abs=1e-9)


# --- Against the truth of a large sample ------------------------------------------------------------------------------


@pytest.mark.parametrize("resampling", ["bootstrap", "cross_validation"])
def test_corrected_numbers_are_those_of_new_rows_on_average(resampling):
    generator = np.random.default_rng(20)
    features, studies = 8, 40
    effects = np.array([1.0, 0.6, 0.4, 0, 0, 0, 0, 0])
    new = generator.normal(size=(20_000, features))
    new_rate = expit(new @ effects)
    apparent, corrected, truth = np.empty((3, studies, 3))
    for k in range(studies):
        X = generator.normal(size=(120, features))
        y = (generator.random(120) < expit(X @ effects)).astype(int)
        names = ["auroc", "brier", "slope"]
        options: dict[str, Any] = {
            "resampling": resampling,
            "n_resamples": 25,
            "cv": 10,
            "statistics": names,
            "smoother": "isotonic",
        }
        found = internal_validation(Newton(), X, y, rng=k, **options)
        apparent[k], corrected[k] = (
            [getattr(found[name], what) for name in names] for what in ("apparent", "corrected")
        )
        forecast = Newton().fit(X, y).predict_proba(new)[:, 1]
        tally = Tally.from_arrays(new_rate, forecast)  # chances in place of outcomes: the mean over all outcomes
        fit = calibrant.measures.calibration_slope_intercept(tally)
        brier = np.mean((forecast - new_rate) ** 2 + new_rate * (1 - new_rate))
        order = np.argsort(forecast)
        events, others = new_rate[order], 1 - new_rate[order]
        concordant = float(events @ (np.cumsum(others) - others / 2)) / (events.sum() * others.sum())
        truth[k] = concordant, brier, fit.slope
    bias_before, bias_after = ((each - truth).mean(axis=0) for each in (apparent, corrected))
    error = (corrected - truth).std(axis=0, ddof=1) / np.sqrt(studies)
    assert np.all(np.abs(bias_after) < 0.35 * np.abs(bias_before))
    # Both corrections are known to be a little off: three standard errors of the mean, and a tenth of the optimism.
    assert np.all(np.abs(bias_after) < 3 * error + 0.1 * np.abs(bias_before))


def test_a_model_that_memorises_is_found_out_and_a_regression_is_not():
    """One nearest neighbour ranks its own rows perfectly: the bootstrap believes most of it, folds do not."""
    X, y = drawn_rows(200)
    new, new_y = drawn_rows(2_000, seed=1)
    neighbour = KNeighborsClassifier(1)
    truth = calibrant.measures.auroc(new_y, neighbour.fit(X, y).predict_proba(new)[:, 1])
    options: dict[str, Any] = {"statistics": ["auroc"], "n_resamples": 10}
    found = internal_validation(neighbour, X, y, **options)
    assert found["auroc"].apparent == 1.0
    assert found["auroc"].corrected == pytest.approx(0.85, abs=0.05)
    assert truth < 0.65
    (note,) = found.notes
    assert note.startswith("the model memorises its rows, and the bootstrap takes too little off")
    assert f"AUROC corrected is {found['auroc'].corrected:.2f}, and 0." in note
    assert note.endswith("use resampling='cross_validation'")
    folds = internal_validation(neighbour, X, y, resampling="cross_validation", **options)
    assert folds.notes == ()
    assert folds["auroc"].corrected == pytest.approx(truth, abs=0.08)
    # Whatever is asked for, and not where a fit is what it seems.
    assert len(internal_validation(neighbour, X, y, statistics=["brier"], n_resamples=4).notes) == 1
    assert internal_validation(Newton(), X, y, **options).notes == ()


# --- What must not matter ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resampling", ["bootstrap", "cross_validation"])
def test_the_answer_does_not_depend_on_how_many_work_at_it(resampling):
    X, y = drawn_rows()
    forest = RandomForestClassifier(n_estimators=3, max_depth=2)
    options: dict[str, Any] = {
        "resampling": resampling,
        "n_resamples": 6,
        "cv": 4,
        "repeats": 2,
        "statistics": ["auroc", "brier"],
    }
    alone = internal_validation(forest, X, y, rng=5, **options)
    with joblib.parallel_config("threading"):  # processes take seconds to start
        together = internal_validation(forest, X, y, rng=5, n_jobs=2, **options)
    assert alone == together
    assert forest.random_state is None
    assert internal_validation(forest, X, y, rng=6, **options) != alone


def test_what_other_processes_are_sent_arrives():
    X, y = drawn_rows()
    study = _Study.of(Newton(), X, y, None, None)
    job = (study, Plan(STATISTICS, Settings(thresholds=(0.2,))), np.arange(40), 0)
    sent = pickle.loads(pickle.dumps((_trained_and_tested, job)))
    for here, there in zip(_trained_and_tested(*job), sent[0](*sent[1]), strict=True):
        assert np.array_equal(here, there, equal_nan=True)


def test_frames_labels_and_the_other_class_as_event():
    X, y = drawn_rows()
    frame = pd.DataFrame(X, columns=list("abcdef"), index=np.arange(len(y)) + 7)
    labels = pd.Series(np.where(y == 1, "ill", "well"), index=frame.index)
    options: dict[str, Any] = {"n_resamples": 10, "statistics": ["auroc", "calibration_in_the_large"]}
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1e4))
    numbers = internal_validation(model, X, y, **options)
    named = internal_validation(model, frame, labels, pos_label="ill", **options)
    well = internal_validation(model, frame, labels, pos_label="well", **options)
    for library in (pyarrow.Table.from_pandas(frame, preserve_index=False), polars.from_pandas(frame)):
        assert internal_validation(model, library, y, **options)["auroc"] == named["auroc"]
    assert named["auroc"].corrected == pytest.approx(numbers["auroc"].corrected, abs=1e-6)
    assert (well.events, named.events) == (int((y == 0).sum()), int(y.sum()))
    assert well["auroc"].corrected == pytest.approx(named["auroc"].corrected, abs=1e-6)


def test_clusters_are_drawn_and_divided_as_a_whole():
    X, y = drawn_rows(60)
    cluster = np.repeat(np.arange(20), 3)
    options: dict[str, Any] = {"statistics": ["auroc", "brier"], "n_resamples": 20, "cv": 5}
    rows = internal_validation(Newton(), X, y, **options)
    drawn = internal_validation(Newton(), X, y, cluster=cluster, **options)
    assert drawn.clusters == 20
    assert drawn["brier"].optimism != rows["brier"].optimism
    single = internal_validation(Newton(), X, y, cluster=np.arange(60), **options)
    assert single["brier"].optimism == rows["brier"].optimism  # clusters of one row each are rows
    divided = internal_validation(Newton(), X, y, cluster=cluster, resampling="cross_validation", **options)
    assert "5 folds of whole clusters, of 20" in str(divided)


def test_every_statistic_and_net_benefit_are_corrected():
    X, y = drawn_rows(150)
    found = internal_validation(Newton(), X, y, n_resamples=10, thresholds=[0.2, 0.5])
    assert found.names == (*STATISTICS, "net_benefit_at_0.2", "net_benefit_at_0.5")
    frame: Any = found.frame()
    assert np.allclose(frame["corrected"], frame["apparent"] - frame["optimism"])
    assert found.to_markdown().splitlines()[0] == "| Statistic | Apparent | Training | Test | Optimism | Corrected |"
    assert found.to_latex().count(r"\\") == 1 + len(found.names)


def test_resamples_of_one_class_are_counted_and_left_out():
    X, y = drawn_rows(40)
    y[:] = 0
    y[:4] = 1
    found = internal_validation(LogisticRegression(), X, y, n_resamples=60, statistics=["auroc", "brier"])
    assert found["auroc"].n_failed > 0
    assert any("undefined" in note for note in found.notes)
    assert found["auroc"].corrected is not None


def test_a_model_that_separates_its_rows_has_a_slope_by_cross_validation():
    X, y = drawn_rows(120)
    forest = RandomForestClassifier(n_estimators=10)
    options: dict[str, Any] = {"statistics": ["slope", "auroc"], "n_resamples": 10, "cv": 4, "repeats": 2}
    folds: Any = internal_validation(forest, X, y, resampling="cross_validation", **options)
    assert (folds["slope"].apparent, folds["slope"].optimism, folds["slope"].n_failed) == (None, None, 0)
    assert folds["slope"].corrected == folds["slope"].test
    assert 0.1 < folds["slope"].corrected < 1.0
    assert folds["auroc"].corrected == pytest.approx(folds["auroc"].apparent - folds["auroc"].optimism)
    (note,) = folds.notes
    assert note.startswith("no apparent value of slope: undefined on rows that the model was fitted to")
    drawn = internal_validation(forest, X, y, **options)
    assert (drawn["slope"].corrected, drawn["slope"].n_failed > 5) == (None, True)
    assert drawn["slope"].test is not None
    assert any(note.startswith("no corrected value of slope: undefined on rows that") for note in drawn.notes)
    assert not any("stand for them" in note for note in drawn.notes)


# --- What is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y": np.zeros(40, dtype=int)}, "y has one class only, 0; a model and its validation need both"),
        ({"y": np.arange(40) % 3}, "Only binary classification is supported"),
        (
            {"y": np.array(["sick", "well"] * 20)},
            "y holds the labels 'sick' and 'well', and nothing says which is the event; pass pos_label=",
        ),
        ({"y": np.array([1, 2] * 20)}, "y holds the labels 1 and 2, and nothing says which"),
        ({"estimator": np.zeros(40)}, "estimator is a ndarray, not a model that can be fitted; pass the model first"),
        ({"estimator": LogisticRegression}, "estimator is the class LogisticRegression, not a model"),
        ({"y": np.zeros((40, 6))}, r"y has the shape \(40, 6\), and one class per row is needed; pass the model first"),
        ({"pos_label": 7}, r"pos_label is 7, which is no class of y; pass one of \[0, 1\]"),
        ({"statistics": ["dxy"]}, "statistics must be one of .* got 'dxy'"),
        ({"resampling": "jackknife"}, "resampling must be one of .* got 'jackknife'"),
        ({"smoother": "spline"}, "smoother must be one of .* got 'spline'"),
        ({"thresholds": [0.2, 1.0]}, r"thresholds\[1\] is 1, and acting from there on is acting always or never"),
        ({"n_resamples": 1}, "n_resamples must be a whole number from 2 to"),
        ({"resampling": "cross_validation", "cv": 30}, "cv is 30, and there are .* rows of the rarer class"),
        (
            {"resampling": "cross_validation", "cv": 10, "cluster": np.arange(40) // 10},
            "cv is 10, and there are 4 clusters; take fewer folds",
        ),
    ],
)
def test_what_cannot_be_answered_is_refused(changed, message):
    X, y = drawn_rows(40)
    with pytest.raises((InputError, UndefinedError), match=message):
        internal_validation(**{"estimator": LogisticRegression(), "X": X, "y": y, **changed})


class Stubborn(LogisticRegression):
    """A model that fits nothing, and says so in its own words."""

    def fit(self, X, y):
        raise ValueError(f"no such thing\nas {len(X)} rows of {len(y)}")


def put(value):
    X = drawn_rows(40)[0].astype(object)
    X[7, 2] = value
    return X


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"X": put(math.nan).astype(float)}, r"X \(column '2'\) lacks values, which LogisticRegression needs; fill"),
        ({"X": put(math.inf).astype(float)}, r"X \(column '2'\) holds infinite values, which LogisticRegression"),
        ({"X": put("old")}, r"X \(column '2'\) holds texts such as 'old', which LogisticRegression cannot take; turn"),
        ({"X": drawn_rows(40)[0][:, 0]}, r"X has the shape \(40,\), and LogisticRegression takes a table with a"),
        ({"X": drawn_rows(30)[0]}, "X has 30 rows, and y has 40; pass a row of features for each class in y"),
        ({"X": None}, "X is None, and y has 40"),
        ({"y": drawn_rows(40)[1] + 0.25}, "y holds numbers such as 0.25, which are no classes"),
        ({"estimator": Stubborn()}, "estimator could not be fitted to X and y: no such thing; fit it to these rows"),
    ],
)
def test_rows_that_a_model_cannot_take_are_told_in_words_of_ours(changed, message):
    X, y = drawn_rows(40)
    for resampling in ("bootstrap", "cross_validation"):
        given = {"estimator": LogisticRegression(), "X": X, "y": y, "resampling": resampling, "cv": 3, **changed}
        with pytest.raises(InputError, match=message):
            internal_validation(**given)


def test_folds_that_leave_one_class_are_refused():
    X, y = drawn_rows(40)
    y = (np.arange(40) < 10).astype(int)
    with pytest.raises(UndefinedError, match="all rows of one class are in one fold"):
        internal_validation(
            LogisticRegression(), X, y, cluster=np.arange(40) // 10, resampling="cross_validation", cv=4
        )


@pytest.mark.parametrize("resampling", ["bootstrap", "cross_validation"])
def test_long_work_shows_how_far_it_is(resampling, monkeypatch, capsys):
    monkeypatch.setattr("calibrant.core.progress.QUIET_SECONDS", 0.0)
    monkeypatch.setattr("calibrant.core.progress._REDRAW_SECONDS", 0.0)
    asked: dict[str, Any] = {"n_resamples": 5, "statistics": ["auroc"], "resampling": resampling}
    X, y = drawn_rows()
    internal_validation(LogisticRegression(), X, y, progress=False, **asked)
    assert capsys.readouterr().err == ""
    internal_validation(LogisticRegression(), X, y, progress=True, **asked)
    assert "%" in capsys.readouterr().err
