"""Hints: each speaks of its mistake, whoever holds the rows, and none of rows that are in order."""

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from row_sources import ToyEngine
from scipy.special import expit, logit
from sklearn import datasets
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import calibrant
from calibrant import Tally
from calibrant.rows.hints import EXPECTED, fitted_hints, row_hints

Rows = tuple[npt.NDArray[Any], npt.NDArray[np.float64]]
PLATT, ISOTONIC = calibrant.PlattRecalibrator(), calibrant.IsotonicRecalibrator()
GUARDED = calibrant.GuardedRecalibrator()
CODES = {"hard_predictions", "one_class", "other_class", "repeated_rows", "fitted_rows"}


def hinted(notes):
    return [note.code for note in notes if getattr(note, "code", None) in CODES]


def hints_of(y, p, **weights):
    tally = Tally.from_arrays(y, p, **weights)
    return hinted((*row_hints(tally, every_forecast=True), *fitted_hints(tally)))


# --- Rows that are in order -------------------------------------------------------------------------------------------

SHAPES = {
    "calibrated": lambda p: p,
    "too extreme": lambda p: expit(0.5 * logit(p)),
    "too timid": lambda p: expit(2.0 * logit(p)),
    "too high": lambda p: p / 3,
    "too low": lambda p: np.minimum(1, 3 * p),
    "a jump": lambda p: np.where(p > 0.5, 0.9, 0.1),
    "a certain jump": lambda p: 1.0 * (p > 0.5),
    "sure at both ends": lambda p: 1.0 * (np.abs(p - 0.5) > 0.3),
    "fast oscillation": lambda p: np.clip(p + np.where(np.floor(p / 0.02) % 2 == 0, 0.2, -0.2), 0, 1),
    "coins": lambda p: np.full(p.size, 0.5),
}
FORECASTS = {
    "uniform": lambda rng, rows: rng.random(rows),
    "rare": lambda rng, rows: rng.beta(0.5, 20, rows),
    "two digits": lambda rng, rows: rng.random(rows).round(2),
    "three digits": lambda rng, rows: rng.random(rows).round(3),
    "one digit": lambda rng, rows: (0.05 + 0.9 * rng.random(rows)).round(1),
    "leaves": lambda rng, rows: rng.choice(rng.random(200), rows),
    "with 0 and 1": lambda rng, rows: np.clip(1.4 * rng.random(rows) - 0.2, 0, 1),
}


# Where forecasts are low these shapes give one class only, or fewer events at higher forecasts: hints are due there.
DUE = {(shape, "rare") for shape in ("a certain jump", "sure at both ends", "fast oscillation")}
CLEAN = [(shape, forecasts) for shape in SHAPES for forecasts in FORECASTS if (shape, forecasts) not in DUE]


@pytest.mark.parametrize("rows", [100, 1_000, 20_000])
@pytest.mark.parametrize(("shape", "forecasts"), CLEAN)
def test_no_hint_on_independent_rows_however_badly_calibrated(shape, forecasts, rows):
    rng = np.random.default_rng([rows, *shape.encode(), *forecasts.encode()])
    p = FORECASTS[forecasts](rng, rows)
    y = rng.random(rows) < SHAPES[shape](np.clip(p, 1e-12, 1 - 1e-12))
    assert hints_of(y, p) == []
    assert hints_of(y, p, sample_weight=rng.random(rows) + 0.5) == []


def test_no_hint_on_uneven_event_rates_at_forecasts_that_rows_share():
    # Of 2,000 kinds of cases the model sees the mean rate only; each kind has its own.
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 2_000, 20_000)
    p = rng.random(2_000)
    chance = rng.beta(2 * p, 2 * (1 - p))
    assert hints_of(rng.random(20_000) < chance[kind], p[kind]) == []


@functools.cache
def real(name: str) -> tuple[Any, Any]:
    """Return features and an event of a data set that scikit-learn brings along."""
    if name == "diabetes":
        x, target = datasets.load_diabetes(return_X_y=True)
        return x, target > np.median(target)
    event = {"breast_cancer": 1, "digits": 3, "wine": 0, "iris": 1}[name]
    x, target = getattr(datasets, f"load_{name}")(return_X_y=True)
    return x, target == event


MODELS = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=50, max_depth=2, random_state=0),
    "forest": lambda: RandomForestClassifier(random_state=0),
    "naive Bayes": GaussianNB,
    "neighbours": lambda: make_pipeline(StandardScaler(), KNeighborsClassifier(15)),
    "tree": lambda: DecisionTreeClassifier(min_samples_leaf=10, random_state=0),
}


@functools.cache
def held_out(name: str, model: str) -> Rows:
    x, y = real(name)
    seen, new, y_seen, y_new = train_test_split(x, y, test_size=0.5, random_state=0, stratify=y)
    return y_new, MODELS[model]().fit(seen, y_seen).predict_proba(new)[:, 1]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["breast_cancer", "digits", "wine", "iris", "diabetes"])
def test_no_hint_on_models_and_rows_that_are_new_to_them(name, model):
    y, p = held_out(name, model)
    assert hinted(calibrant.measure(y, p).notes) == []
    assert hinted(calibrant.certify(y, p, max_error=0.1).notes) == []
    assert hinted(calibrant.calibration_test(y, p, n_resamples=999, rng=0).notes) == []


# --- The mistakes -----------------------------------------------------------------------------------------------------


def drawn(seed: int, rows: int = 2_000) -> Rows:
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 3, rows)
    return rng.random(rows) < p, p


def speakers(y, p):
    """Return the notes of everything that has hints."""
    return [
        calibrant.measure(y, p).notes,
        calibrant.certify(y, p, max_error=0.1).notes,
        calibrant.confidence_interval(y, p).notes,
        calibrant.calibration_test(y, p, n_resamples=999, rng=0).notes,
        calibrant.calibration_test(y, p, method="asymptotic").notes,
        calibrant.certify(y, p, max_error=0.1, by=np.zeros(len(y)))[0.0].notes,
        calibrant.CalibrationReport.from_predictions(y, p, max_error=0.1).summary.models[0].measures.notes,
        *(recalibrator.fit(p, y).guarantee(0.9).notes for recalibrator in (PLATT, ISOTONIC, GUARDED)),
        calibrant.compare_recalibrators(p, y, candidates={"isotonic": ISOTONIC}, cv=2, rng=0).notes,
    ]


MISTAKES = {
    "other_class": lambda y, p: (y, 1 - p),
    "one_class": lambda y, p: (np.zeros(y.size), p),
    "hard_predictions": lambda y, p: (y, (p > 0.3).astype(float)),
    "repeated_rows": lambda y, p: (np.repeat(y, 3), np.repeat(p, 3)),
}


@pytest.mark.parametrize("code", MISTAKES)
def test_each_mistake_has_its_hint_wherever_notes_are(code):
    for notes in speakers(*MISTAKES[code](*drawn(0))):
        assert hinted(notes) == [code]


@pytest.mark.parametrize("code", [code for code in MISTAKES if code != "one_class"])
def test_validation_studies_have_them_before_all_other_notes(code):
    y, p = MISTAKES[code](*drawn(0))
    (hint,) = [str(note) for note in calibrant.measure(y, p).notes if hinted([note]) == [code]]
    assert calibrant.validate(y, p, n_resamples=30).notes[0] == hint.rstrip(".")


@pytest.mark.parametrize("model", ["logistic", "boosting", "forest", "naive Bayes"])
@pytest.mark.parametrize("name", ["breast_cancer", "digits", "diabetes"])
def test_the_other_classs_column_of_real_models_is_noticed(name, model):
    y, p = held_out(name, model)
    assert hints_of(y, 1 - p) == ["other_class"]


def test_what_the_hints_say():
    y, p = drawn(0)
    said = {code: [str(note) for note in row_hints(Tally.from_arrays(*make(y, p)))] for code, make in MISTAKES.items()}
    assert said == {
        "other_class": [
            "events are rarer where forecasts are higher (AUC 0.20): perhaps these are probabilities of the other "
            "class. Pass those of the event, for two classes predict_proba(X)[:, 1]."
        ],
        "one_class": [
            "every outcome is 0, and the forecasts expect 499 events: perhaps another column or another label holds "
            "what happened. Check the outcomes."
        ],
        "hard_predictions": [
            "every forecast is exactly 0 or 1: perhaps these are predicted classes. Pass probabilities, as "
            "predict_proba gives them."
        ],
        "repeated_rows": [
            "0.0% of the forecasts that several rows share have both outcomes, where independent rows would have them "
            "at 41.8%: perhaps cases are listed several times. List each once: limits and tests take rows to be "
            "independent."
        ],
    }


def test_outcomes_of_one_class_are_no_wonder_where_that_is_what_was_forecast():
    p = np.full(1_000, 0.9 * EXPECTED / 1_000)
    assert hints_of(np.zeros(1_000), p) == hints_of(np.ones(1_000), 1 - p) == []
    p *= 1.2
    assert hints_of(np.zeros(1_000), p) == hints_of(np.ones(1_000), 1 - p) == ["one_class"]
    # Weights leave fewer rows; how large they are does not matter.
    assert hints_of(np.zeros(1_000), p, sample_weight=np.full(1_000, 1e-6)) == ["one_class"]
    assert hints_of(np.zeros(1_000), p, sample_weight=np.where(np.arange(1_000) < 500, 1.0, 1e-9)) == []
    assert hints_of(np.full(1_000, 1.0), p, sample_weight=np.random.default_rng(0).random(1_000)) == ["one_class"]


def test_classes_are_noticed_where_all_are_alike_too():
    y, p = drawn(0)
    for predicted in (np.zeros(p.size), np.ones(p.size), (p > 0.5).astype(float)):
        assert hints_of(y, predicted) == ["hard_predictions"]
    assert hints_of(y, np.where(p > 0.5, 1.0, p)) == []


def test_oversampled_rows_and_rows_doubled_by_a_join_are_noticed():
    y, p = drawn(1)
    often = np.where(y, 4, 1)
    assert hints_of(np.repeat(y, often), np.repeat(p, often)) == ["repeated_rows"]
    rng = np.random.default_rng(2)
    some = rng.integers(1, 4, y.size)
    assert hints_of(np.repeat(y, some), np.repeat(p, some)) == ["repeated_rows"]
    assert hints_of(np.repeat(y, some), np.repeat(p, some), sample_weight=rng.random(some.sum()) + 0.5) == [
        "repeated_rows"
    ]
    # Repeated visits with outcomes of their own are no mistake.
    assert hints_of(rng.random(6_000) < np.repeat(p, 3), np.repeat(p, 3)) == []


def fitted_to() -> dict[str, Rows]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4_000, 3))
    y = rng.random(4_000) < expit(x @ [1.0, 0.5, -0.5])
    p = expit(2.0 * x[:, 0])
    found: dict[str, Rows] = {
        "logistic regression": (y, LogisticRegression(C=np.inf, tol=1e-8).fit(x, y).predict_proba(x)[:, 1]),
        "a tree": (y, DecisionTreeClassifier(min_samples_leaf=50).fit(x, y).predict_proba(x)[:, 1]),
    }
    for name, repair in {
        "isotonic": calibrant.IsotonicRecalibrator(),
        "beta": calibrant.BetaRecalibrator(),
        "Platt": calibrant.PlattRecalibrator(on="logit", smoothing=False),
    }.items():
        found[name] = (y, repair.fit(p, y).predict(p))
    return found


@pytest.mark.parametrize(("y", "p"), fitted_to().values(), ids=fitted_to().keys())
def test_rows_that_the_forecasts_were_fitted_to_are_noticed(y, p):
    result = calibrant.measure(y, p)
    assert hinted(result.notes) == ["fitted_rows"]
    assert "fitted to these rows. Judge it on rows that are new to both." in str(result)
    assert hints_of(1 - y, 1 - p) == ["fitted_rows"]


def test_counts_that_happen_to_fit_are_no_sign_of_a_fit():
    assert hints_of([0, 1], [0.5, 0.5]) == []
    assert hints_of([0, 1, 1, 1], [0.5, 0.5, 1.0, 1.0]) == []
    tally = Tally.from_counts([0.2, 0.5, 0.8], rows=[100, 100, 100], events=[20, 50, 80])
    assert fitted_hints(tally) == ()
    several = np.linspace(0.1, 0.9, 9)
    assert hinted(fitted_hints(Tally.from_counts(several, [1_000] * 9, np.rint(1_000 * several)))) == ["fitted_rows"]


# --- Whoever holds the rows -------------------------------------------------------------------------------------------

MANY = {
    **MISTAKES,
    "in order": lambda y, p: (y, p),
}


@pytest.mark.parametrize(("mistake", "weighted"), [(each, place % 2 == 1) for place, each in enumerate(MANY)])
def test_every_source_of_many_rows_gives_the_same_hints(mistake, weighted, monkeypatch):
    monkeypatch.setattr("calibrant.rows.intake.SORT_BELOW_ROWS", 10_000)
    monkeypatch.setattr("calibrant.rows.hints.FEW_ROWS", 10_000)
    y, p = MANY[mistake](*drawn(3, 12_000))
    w = np.random.default_rng(4).integers(1, 5, y.size) / 4.0 if weighted else None
    frame = pd.DataFrame({"y": y.astype(float), "p": p, "w": 1.0 if w is None else w})
    expected = [] if mistake == "in order" else [mistake]
    found = calibrant.certify(y, p, max_error=0.1, sample_weight=w)
    # What needs every forecast is not looked at among so many rows, by none of them.
    assert hinted(found.notes) == [code for code in expected if code != "repeated_rows"]
    measured = calibrant.measure(y, p, sample_weight=w)
    assert hinted(measured.notes) == expected
    with calibrant.scan(frame, y_true="y", y_prob="p", sample_weight="w" if weighted else None) as scan:
        for source in (Tally.from_arrays(y, p, sample_weight=w), ToyEngine(y, p, w), scan):
            assert calibrant.certify(source, max_error=0.1).notes == found.notes
            assert calibrant.measure(source).notes == measured.notes
    assert ISOTONIC.fit(p, y, w).notes_ == ISOTONIC.fit(Tally.from_arrays(y, p, sample_weight=w)).notes_ == found.notes
    # Where forecasts are too many to tell apart, all but what needs each of them is said.
    coarse = calibrant.measure(ToyEngine(y, p, w, tally_limit=100))
    assert hinted(coarse.notes) == hinted(found.notes)


def test_few_rows_of_a_scan_and_of_groups_give_the_hints_of_arrays():
    y, p = MISTAKES["repeated_rows"](*drawn(5))
    frame = pd.DataFrame({"y": y, "p": p, "g": np.arange(y.size) % 3})
    notes = calibrant.certify(y, p, max_error=0.1).notes
    assert hinted(notes) == ["repeated_rows"]
    with calibrant.scan(frame, y_true="y", y_prob="p") as scan:
        assert calibrant.certify(scan, max_error=0.1).notes == notes
    flipped = frame.assign(p=1 - p)
    with calibrant.scan(flipped, y_true="y", y_prob="p", by="g") as groups:
        grouped = calibrant.certify(groups, max_error=0.1)
    listed = calibrant.certify(flipped["y"], flipped["p"], max_error=0.1, by=flipped["g"])
    assert [hinted(each.notes) for each in grouped.certificates] == [["other_class"]] * 3
    assert [each.notes for each in grouped.certificates] == [each.notes for each in listed.certificates]
