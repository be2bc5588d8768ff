"""Rows are paired by position; labels of their own that say otherwise are never ignored."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from public_names import public
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import calibrant
from calibrant import CalibrationReport, CertificateDisplay, Tally

N = 60
RNG = np.random.default_rng(0)
PROB = RNG.random(N)
TRUE = (RNG.random(N) < PROB).astype(int)
WEIGHT = RNG.random(N) + 0.5
GROUP = np.array(["a", "b"])[RNG.integers(0, 2, N)]
TURNED = np.arange(N)[::-1]

PLAIN = {"y_true": TRUE, "y_prob": PROB, "sample_weight": WEIGHT, "by": GROUP}


def score(y_true, y_prob):
    return calibrant.decisions.SchervishMeasure(atoms=[0.5], masses=[1.0]).loss(y_true, y_prob)


def compare(y_true, y_prob, sample_weight=None):
    one = {"constant": calibrant.repairs.ConstantRecalibrator()}
    return calibrant.compare_recalibrators(y_prob, y_true, sample_weight=sample_weight, candidates=one, cv=2, rng=0)


def fit(recalibrator):
    return lambda y_true, y_prob, sample_weight=None: recalibrator.fit(y_prob, y_true, sample_weight).predict(PROB)


def plan(y_prob, sample_weight):
    return calibrant.rows_needed(0.1, y_prob=y_prob, sample_weight=sample_weight)


def report(y_true, y_prob, **options):
    return CalibrationReport.from_predictions(y_true, y_prob, max_error=0.5, **options).summary.to_dict()


def shown(display, **fixed):
    return lambda y_true, y_prob, **options: display.from_predictions(y_true, y_prob, **fixed, **options).frame()


MEASURES = ("measure", "cutoff_calibration_error", "smooth_calibration_error", "calibration_in_the_large")
ENTRIES = {
    **{name: (public(name), ("y_true", "y_prob", "sample_weight")) for name in MEASURES},
    "certify": (
        lambda **data: calibrant.certify(max_error=0.5, **data),
        ("y_true", "y_prob", "sample_weight", "by"),
    ),
    "confidence_interval": (calibrant.confidence_interval, ("y_true", "y_prob", "sample_weight")),
    "calibration_test": (
        lambda **data: calibrant.calibration_test(n_resamples=999, rng=0, **data),
        ("y_true", "y_prob"),
    ),
    "spiegelhalter_test": (calibrant.certificates.spiegelhalter_test, ("y_true", "y_prob")),
    "risk_bands": (lambda **data: calibrant.risk_bands(cutoffs=[0.5], **data), ("y_true", "y_prob", "sample_weight")),
    "decision_risk": (
        lambda **data: calibrant.decision_risk(threshold=0.5, **data),
        ("y_true", "y_prob", "sample_weight"),
    ),
    "sign_testing_risk": (
        lambda **data: calibrant.decisions.sign_testing_risk(threshold=0.5, **data),
        ("y_true", "y_prob", "sample_weight"),
    ),
    "risk_gap": (lambda **data: calibrant.risk_gap(threshold=0.5, **data), ("y_true", "y_prob", "sample_weight")),
    "net_benefit": (calibrant.net_benefit, ("y_true", "y_prob", "sample_weight")),
    "score_decomposition": (calibrant.decisions.score_decomposition, ("y_true", "y_prob", "sample_weight")),
    "Tally.from_arrays": (lambda **data: repr(Tally.from_arrays(**data)), ("y_true", "y_prob", "sample_weight")),
    "Cells.from_arrays": (
        lambda **data: calibrant.certificates.bracket(calibrant.Cells.from_arrays(**data)),
        ("y_true", "y_prob", "sample_weight"),
    ),
    "SchervishMeasure.loss": (score, ("y_true", "y_prob")),
    "compare_recalibrators": (compare, ("y_true", "y_prob", "sample_weight")),
    "IsotonicRecalibrator": (fit(calibrant.IsotonicRecalibrator()), ("y_true", "y_prob", "sample_weight")),
    "PlattRecalibrator of scores": (
        fit(calibrant.PlattRecalibrator(input_kind="score")),
        ("y_true", "y_prob", "sample_weight"),
    ),
    "effective_support_size": (calibrant.measures.effective_support_size, ("y_prob", "sample_weight")),
    "rows_needed": (plan, ("y_prob", "sample_weight")),
    "CalibrationReport": (report, ("y_true", "y_prob", "sample_weight", "by")),
    "CertificateDisplay": (shown(CertificateDisplay, max_error=0.5), ("y_true", "y_prob", "sample_weight", "by")),
    "ReliabilityDisplay": (shown(calibrant.ReliabilityDisplay, rng=0), ("y_true", "y_prob", "sample_weight")),
    "CumulativeDisplay": (shown(calibrant.CumulativeDisplay, rng=0), ("y_true", "y_prob", "sample_weight")),
}
PAIRS = [
    pytest.param(function, names, first, second, id=f"{entry}: {first} and {second}")
    for entry, (function, names) in ENTRIES.items()
    for position, first in enumerate(names)
    for second in names[position + 1 :]
]


def same(first, second):
    if isinstance(first, pd.DataFrame):
        return first.equals(second)
    return bool((first == second).all()) if isinstance(first, np.ndarray) else first == second


@pytest.mark.parametrize(("function", "names", "first", "second"), PAIRS)
def test_two_columns_in_another_order_are_refused(function, names, first, second):
    data = {name: PLAIN[name] for name in names}
    data[first] = pd.Series(PLAIN[first])
    data[second] = pd.Series(PLAIN[second], index=TURNED)
    with pytest.raises(ValueError, match=r"\[0\] is labelled \d+ and \S+\[0\] is labelled \d+, and rows are paired"):
        function(**data)


@pytest.mark.parametrize(("function", "names"), ENTRIES.values(), ids=ENTRIES.keys())
def test_columns_of_one_frame_pass_whatever_its_index(function, names):
    plain = {name: PLAIN[name] for name in names}
    frame = pd.DataFrame(plain, index=RNG.permutation(N))
    assert same(function(**{name: frame[name] for name in names}), function(**plain))


def test_the_error_names_arguments_position_labels_and_remedy():
    late = pd.Series(PROB, index=[*range(N - 2), N - 1, N - 2])
    said = (
        "y_true[58] is labelled 58 and y_prob[58] is labelled 59, and rows are paired by position, not by label; bring "
        "both into one order, as in y_prob.reindex(y_true.index), or drop the labels with .to_numpy() if the positions "
        "match"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        calibrant.cutoff_calibration_error(pd.Series(TRUE), late)
    for remedied in (late.reindex(range(N)), late.to_numpy()):
        assert calibrant.cutoff_calibration_error(pd.Series(TRUE), remedied) > 0.0


def test_rows_filtered_by_different_conditions_are_refused_with_another_remedy():
    y_true, y_prob = pd.Series(TRUE), pd.Series(PROB)
    chosen, others = y_prob >= y_prob.median(), y_prob < y_prob.median()
    assert chosen.sum() == others.sum() == N // 2
    said = (
        "rows are paired by position, not by label; choose the same rows of both, or drop the labels with .to_numpy()"
    )
    for true, prob in (
        (y_true[chosen], y_prob[others]),
        (y_true[chosen].reset_index(drop=True), y_prob[chosen]),
        (y_true.iloc[[0, 0, 1]], y_prob.iloc[[0, 1, 1]]),
    ):
        with pytest.raises(ValueError, match=re.escape(said)):
            calibrant.measure(true, prob)
    assert calibrant.measure(y_true[chosen], y_prob[chosen]).rows == N // 2


INDEXES = {
    "words": [f"row {k}" for k in range(N)],
    "dates": pd.date_range("2025-01-01", periods=N, tz="UTC"),
    "several levels": pd.MultiIndex.from_arrays([np.arange(N) // 7, np.arange(N) % 7]),
    "repeated": np.arange(N) // 2,
    "missing": pd.Index([None, *range(1, N)], dtype="Int64"),
    "numbers": np.arange(N) + 0.5,
}


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES.keys())
def test_labels_of_every_kind_count(index):
    labelled = pd.Series(PROB, index=index)
    expected = calibrant.cutoff_calibration_error(TRUE, PROB)
    assert calibrant.cutoff_calibration_error(TRUE, labelled) == expected
    assert calibrant.cutoff_calibration_error(pd.Series(TRUE, index=index), labelled) == expected
    assert calibrant.cutoff_calibration_error(TRUE.tolist(), labelled) == expected
    assert calibrant.cutoff_calibration_error(pl.Series(TRUE), labelled) == expected
    for other in (pd.Series(TRUE), pd.Series(TRUE, index=index).iloc[::-1]):
        with pytest.raises(ValueError, match="rows are paired by position"):
            calibrant.cutoff_calibration_error(other, labelled)


def test_a_range_and_the_same_numbers_are_the_same_labels():
    counted = pd.Series(PROB, index=np.arange(N, dtype=np.int64))
    assert not isinstance(counted.index, pd.RangeIndex)
    expected = calibrant.cutoff_calibration_error(TRUE, PROB)
    assert calibrant.cutoff_calibration_error(pd.Series(TRUE), counted) == expected


class LabelledArray:
    """What xarray offers of a DataArray in one dimension."""

    def __init__(self, values, labels=None):
        self.values = np.asarray(values)
        self.dims = ("case",)
        self.indexes = {} if labels is None else {"case": pd.Index(labels)}

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


def test_coordinates_of_xarray_count_like_an_index():
    expected = calibrant.cutoff_calibration_error(TRUE, PROB)
    labelled = LabelledArray(PROB, TURNED)
    assert calibrant.cutoff_calibration_error(LabelledArray(TRUE, TURNED), labelled) == expected
    assert calibrant.cutoff_calibration_error(LabelledArray(TRUE), labelled) == expected
    for other in (LabelledArray(TRUE, range(N)), pd.Series(TRUE)):
        with pytest.raises(ValueError, match=r"^y_true\[0\] is labelled 0 and y_prob\[0\] is labelled 59"):
            calibrant.cutoff_calibration_error(other, labelled)


def test_other_lengths_are_told_as_such():
    with pytest.raises(ValueError, match="y_true has 59 values and y_prob has 60"):
        calibrant.cutoff_calibration_error(pd.Series(TRUE).iloc[1:], pd.Series(PROB))


def test_counts_are_paired_like_rows():
    counts = pd.DataFrame({"forecast": [0.2, 0.7], "rows": [100, 50], "events": [22, 31]}, index=[7, 3])
    tally = Tally.from_counts(**counts)
    assert tally.rows.tolist() == [100, 50]
    with pytest.raises(ValueError, match=r"^forecast\[0\] is labelled 7 and events\[0\] is labelled 3"):
        Tally.from_counts(counts["forecast"], counts["rows"], counts["events"].iloc[::-1])


def test_models_side_by_side_are_paired_too():
    one, other = pd.Series(PROB), pd.Series(PROB, index=TURNED)
    for draw in (
        lambda models: CalibrationReport.from_predictions(TRUE, models, max_error=0.5),
        lambda models: CertificateDisplay.from_predictions(TRUE, models, max_error=0.5),
    ):
        with pytest.raises(
            ValueError, match=r"^y_prob\['old'\]\[0\] is labelled 0 and y_prob\['new'\]\[0\] is labelled"
        ):
            draw({"old": one, "new": other})


@pytest.mark.parametrize("kind", ["certified", "recalibrated"])
def test_features_and_labels_of_a_classifier_are_paired(kind):
    X, y = make_classification(400, random_state=0)
    X, y = pd.DataFrame(X), pd.Series(y)
    model = {
        "certified": calibrant.CertifiedClassifier(LogisticRegression(), max_error=0.5, random_state=0),
        "recalibrated": calibrant.RecalibratedClassifier(LogisticRegression(), cv=2, random_state=0),
    }[kind]
    shuffled = np.random.default_rng(1).permutation(400)
    taken = model.fit(X.iloc[shuffled], y.iloc[shuffled]).predict_proba(X)
    plain = model.fit(X.to_numpy()[shuffled], y.to_numpy()[shuffled]).predict_proba(X.to_numpy())
    np.testing.assert_allclose(taken, plain, rtol=1e-9)
    assert (model.fit(X, y.to_numpy()[:400]).predict_proba(X) >= 0.0).all()
    with pytest.raises(ValueError, match=r"^X\[0\] is labelled 0 and y\[0\] is labelled 399, and rows are paired by"):
        model.fit(X, y.iloc[::-1])
    with pytest.raises(ValueError, match=r"^X\[0\] is labelled 0 and sample_weight\[0\] is labelled 399"):
        model.fit(X, y.to_numpy(), sample_weight=pd.Series(1.0, index=range(399, -1, -1)))


def test_features_and_labels_beside_a_fitted_model_are_paired():
    X, y = make_classification(300, random_state=0)
    X, y = pd.DataFrame(X), pd.Series(y)
    model = LogisticRegression().fit(X.iloc[:100], y.iloc[:100])
    for start in (CalibrationReport.from_estimator, CertificateDisplay.from_estimator):
        start(model, X.iloc[100:], y.iloc[100:], max_error=0.5)
        with pytest.raises(ValueError, match=r"^X\[0\] is labelled 100 and y\[0\] is labelled 299"):
            start(model, X.iloc[100:], y.iloc[:99:-1], max_error=0.5)
        with pytest.raises(ValueError, match=r"^y\[0\] is labelled 100 and by\[0\] is labelled 0"):
            start(model, X.iloc[100:], y.iloc[100:], max_error=0.5, by=pd.Series(["a", "b"] * 100))


def test_a_fitted_model_declares_the_event_that_its_rows_lack():
    X, y = make_classification(300, random_state=0)
    model = LogisticRegression().fit(X, np.where(y, "late", "fine"))
    fine = X[y == 0]
    summary = CalibrationReport.from_estimator(model, fine, ["fine"] * len(fine), max_error=0.5).summary
    assert summary.models[0].mean_outcome == 0.0
    display = CertificateDisplay.from_estimator(model, fine, ["fine"] * len(fine), max_error=0.5)
    assert display.certificates[0] == calibrant.certify(
        np.zeros(len(fine)), model.predict_proba(fine)[:, 1], max_error=0.5
    )
