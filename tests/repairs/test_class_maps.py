"""Recalibrators of several classes: what they fit, against brute force and other packages, and what they keep."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from class_repair_cases import MAPS, drawn, quietly, rows_of_classes
from scipy.optimize import minimize, minimize_scalar
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from calibrant import (
    BetaRecalibrator,
    CalibrationWarning,
    InputError,
    IsotonicRecalibrator,
    PlattRecalibrator,
    TemperatureRecalibrator,
    cutoff_calibration_error,
)
from calibrant.core.softmax import softmax
from calibrant.repairs import (
    ClassRecalibrator,
    ClassTemperatureRecalibrator,
    OneVsRestRecalibrator,
    Recalibrator,
    TopLabelRecalibrator,
    VectorRecalibrator,
)

P, Y, LOGITS = rows_of_classes(0)
every_map = pytest.mark.parametrize("kind", MAPS.values(), ids=MAPS.keys())


def log_loss(forecast, y, weight=None):
    return np.average(-np.log(forecast[np.arange(len(y)), y]), weights=weight)


def test_the_temperature_is_the_most_likely_one():
    weight = np.random.default_rng(1).gamma(2.0, size=len(Y))
    for given in (None, weight):
        found = ClassTemperatureRecalibrator().fit(P, Y, sample_weight=given).temperature_
        best = minimize_scalar(
            lambda t, w=given: log_loss(softmax(LOGITS / t), Y, w),
            bounds=(0.1, 10),
            method="bounded",
            options={"xatol": 1e-9},
        )
        assert found == pytest.approx(best.x, abs=1e-6)
        assert ClassTemperatureRecalibrator(input_kind="score").fit(LOGITS, Y, given).temperature_ == pytest.approx(
            found, rel=1e-12
        )
        # The slope of the likelihood is 0 there to the last digits.
        rate = softmax(LOGITS / found)
        pull = (rate * LOGITS).sum(axis=1) - LOGITS[np.arange(len(Y)), Y]
        assert abs(np.average(pull, weights=given)) < 1e-12


def test_temperatures_of_any_size_are_found():
    for scale in (1e-9, 1e-3, 1.0, 1e3, 1e9):
        found = ClassTemperatureRecalibrator(input_kind="score").fit(scale * LOGITS, Y)
        assert found.temperature_ / scale == pytest.approx(MAPS["temperature"].fit(P, Y).temperature_, rel=1e-9)
        assert found.predict(scale * LOGITS) == pytest.approx(MAPS["temperature"].predict(P), abs=1e-12)


def test_slopes_and_levels_are_the_most_likely_ones():
    weight = np.random.default_rng(1).gamma(2.0, size=len(Y))
    for given in (None, weight):
        found = VectorRecalibrator().fit(P, Y, sample_weight=given)

        def loss(theta, w=given):
            return log_loss(softmax(theta[:4] * np.log(P) + theta[4:]), Y, w)

        best = minimize(loss, np.repeat([1.0, 0.0], 4), method="BFGS", options={"gtol": 1e-8})
        assert loss(np.concatenate([found.slope_, found.intercept_])) <= best.fun + 1e-13
        assert found.slope_ == pytest.approx(best.x[:4], abs=1e-5)
        assert found.intercept_ == pytest.approx(best.x[4:] - best.x[4:].mean(), abs=1e-5)
        # Every class is forecast as often as it happens, on the fitting rows.
        shares = np.average(np.eye(4)[Y], axis=0, weights=given)
        assert np.average(found.predict(P), axis=0, weights=given) == pytest.approx(shares, abs=1e-10)


def test_smoothing_gives_a_finite_fit_whatever_the_rows():
    rng = np.random.default_rng(5)
    p = rng.random(300).clip(0.001, 0.999)
    y = rng.random(300) < p
    both = np.stack([1.0 - p, p], axis=1)
    smoothed = VectorRecalibrator(smoothing=True).fit(both, y)
    events, others = y.sum(), (~y).sum()

    def loss(theta):
        rate = softmax(np.log(both) * theta[:2] + np.array([0.0, theta[2]]))
        target = np.where(y, (events + 1) / (events + 2), 1 / (others + 2))
        return -(target * np.log(rate[:, 1]) + (1 - target) * np.log(rate[:, 0])).mean()

    best = minimize(loss, [1.0, 1.0, 0.0], method="BFGS", options={"gtol": 1e-8})
    assert smoothed.slope_ == pytest.approx(best.x[:2], abs=1e-4)
    for happened in (P.argmax(axis=1), np.zeros(len(P), dtype=int), np.where(Y == 3, 0, Y)):
        fitted = VectorRecalibrator(smoothing=True, classes=range(4)).fit(P, happened)
        assert np.isfinite(fitted.slope_).all()
        assert np.isfinite(fitted.predict(P)).all()


def test_what_the_rows_cannot_tell_stays_as_it_was():
    logits = LOGITS.copy()
    logits[:, 0] = 0.7  # a column that never changes has a level, but no slope
    found = VectorRecalibrator(input_kind="score").fit(logits, Y)
    assert found.slope_[0] == pytest.approx(1.0, abs=1e-6)
    assert found.predict(logits).mean(axis=0) == pytest.approx(np.bincount(Y) / len(Y), abs=1e-9)


def test_two_classes_are_what_recalibrators_of_events_make_of_them():
    rng = np.random.default_rng(5)
    p = np.round(rng.random(500), 3).clip(0.001, 0.999)
    y = rng.random(500) < p**1.3
    both, new = np.stack([1.0 - p, p], axis=1), np.linspace(0.002, 0.998, 301)
    pairs = [
        (ClassTemperatureRecalibrator(), TemperatureRecalibrator()),
        (ClassTemperatureRecalibrator(clip=0.01), TemperatureRecalibrator(clip=0.01)),
        (VectorRecalibrator(), BetaRecalibrator()),
        (OneVsRestRecalibrator(), IsotonicRecalibrator()),
        (OneVsRestRecalibrator(renormalize=False), IsotonicRecalibrator()),
        (OneVsRestRecalibrator(PlattRecalibrator()), PlattRecalibrator()),
    ]
    for of_classes, of_events in pairs:
        found = of_classes.fit(both, y).predict(np.stack([1.0 - new, new], axis=1))
        assert found[:, 1] == pytest.approx(of_events.fit(p, y).predict(new), abs=1e-10)
        assert found.sum(axis=1) == pytest.approx(np.ones(301), abs=1e-15)
    # With one map there is one statement, and dividing changes nothing.
    assert OneVsRestRecalibrator().fit(both, y).guarantee().upper == IsotonicRecalibrator().fit(p, y).guarantee().upper


def test_isotonic_regression_of_each_class_is_that_of_scikit_learn():
    new, *_ = rows_of_classes(9, rows=200)
    columns = []
    for k in range(4):
        there = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(P[:, k], k == Y)
        columns.append(there.predict(new[:, k]))
    raw = np.stack(columns, axis=1)
    linear = IsotonicRecalibrator(interpolation="linear")
    assert OneVsRestRecalibrator(linear, renormalize=False).fit(P, Y).predict(new) == pytest.approx(raw, abs=1e-12)
    divided = raw / raw.sum(axis=1, keepdims=True)
    assert OneVsRestRecalibrator(linear).fit(P, Y).predict(new) == pytest.approx(divided, abs=1e-12)


def test_scikit_learns_calibrated_classifiers_agree():
    frozen = pytest.importorskip("sklearn.frozen")
    X, y = load_digits(return_X_y=True)
    # Scores, which it reads where there are any: to it, probabilities nearer to each other than 1e-15 are equal.
    model = LogisticRegression(C=1e-4).fit(X[:600], y[:600])
    fitting, new = model.decision_function(X[600:1200]), model.decision_function(X[1200:])
    theirs = CalibratedClassifierCV(frozen.FrozenEstimator(model), method="isotonic", ensemble=False)
    expected = theirs.fit(X[600:1200], y[600:1200]).predict_proba(X[1200:])
    linear = IsotonicRecalibrator(interpolation="linear", input_kind="score")
    ours = OneVsRestRecalibrator(linear, input_kind="score").fit(fitting, y[600:1200])
    assert ours.predict(new) == pytest.approx(expected, abs=1e-12)


def test_the_temperature_is_that_of_scikit_learn():
    from sklearn import calibration

    if not hasattr(calibration, "_TemperatureScaling"):
        pytest.skip("scikit-learn before 1.8 has no temperature scaling to compare with")
    theirs = calibration._TemperatureScaling().fit(LOGITS, Y)
    ours = ClassTemperatureRecalibrator(input_kind="score").fit(LOGITS, Y)
    assert ours.predict(LOGITS) == pytest.approx(theirs.predict(LOGITS), abs=1e-6)
    assert log_loss(ours.predict(LOGITS), Y) <= log_loss(theirs.predict(LOGITS), Y) + 1e-12


def test_the_top_label_gets_the_isotonic_regression_of_its_confidence():
    recalibrator = TopLabelRecalibrator().fit(P, Y)
    top, confidence = P.argmax(axis=1), P.max(axis=1)
    expected = IsotonicRecalibrator().fit(confidence, top == Y).predict(confidence)
    labels, found = recalibrator.predict_top(P)
    assert (labels == top).all()
    assert (found == expected).all()
    repaired = quietly(recalibrator, P)
    assert (repaired[np.arange(len(Y)), top] == expected).all()
    assert repaired.sum(axis=1) == pytest.approx(np.ones(len(Y)), abs=1e-14)
    stays = expected > 0.25 + 1e-6
    assert stays.any()
    assert (repaired.argmax(axis=1) == top)[stays].all()


def test_how_the_rest_is_shared():
    # The confidence 0.5 becomes 0.4, 0.6 becomes 0.9, and 0.4 becomes 0.2.
    y_prob = np.repeat([[0.5, 0.499, 0.001], [0.6, 0.3, 0.1], [0.4, 0.35, 0.25], [1.0, 0.0, 0.0]], 10, axis=0)
    right = np.concatenate([np.arange(10) < many for many in (4, 9, 2, 10)])
    recalibrator = TopLabelRecalibrator(classes=(0, 1, 2)).fit(y_prob, np.where(right, 0, 1))
    in_proportion = recalibrator.predict([[0.6, 0.3, 0.1], [1.0, 0.0, 0.0]])
    assert in_proportion == pytest.approx(np.array([[0.9, 0.075, 0.025], [1.0, 0.0, 0.0]]))
    capped = recalibrator.predict([[0.5, 0.499, 0.001]])
    assert capped == pytest.approx(np.array([[0.4, 0.4, 0.2]]), abs=1e-8)
    assert capped[0, 1] < capped[0, 0]  # a tie would change the top label
    with pytest.warns(CalibrationWarning, match="in 1 of 1 rows the new confidence in the top label is below 1/3"):
        assert recalibrator.predict([[0.4, 0.35, 0.25]]) == pytest.approx(np.array([[0.2, 0.4, 0.4]]))
    assert "not above one over the number of classes" in str(recalibrator.guarantee_)


def test_a_sure_forecast_leaves_equal_shares():
    y_prob = np.repeat([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], 10, axis=0)
    y = np.r_[[0] * 8, 1, 2, [1] * 8, 0, 2]
    found = TopLabelRecalibrator().fit(y_prob, y).predict([[0.0, 0.0, 1.0]])
    assert found == pytest.approx(np.array([[0.1, 0.1, 0.8]]))


@every_map
def test_rows_and_classes_may_come_in_any_order(kind):
    fitted = clone(kind).fit(P, Y)
    expected = quietly(fitted, P)
    order = np.random.default_rng(2).permutation(len(Y))
    shuffled = clone(kind).fit(P[order], Y[order])
    assert quietly(shuffled, P) == pytest.approx(expected, abs=1e-9)
    turn = np.array([2, 0, 3, 1])
    turned = clone(kind).set_params(classes=turn.tolist()).fit(P[:, turn], Y)
    assert turned.classes_ == (2, 0, 3, 1)
    assert quietly(turned, P[:, turn]) == pytest.approx(expected[:, turn], abs=1e-9)


@every_map
def test_a_weight_counts_as_a_repetition(kind):
    times = np.random.default_rng(3).integers(0, 4, len(Y))
    repeated = clone(kind).fit(np.repeat(P, times, axis=0), np.repeat(Y, times))
    weighted = clone(kind).fit(P, Y, sample_weight=times)
    assert quietly(weighted, P) == pytest.approx(quietly(repeated, P), abs=1e-9)
    assert weighted.weighted_
    assert weighted.guarantee_ is None
    with pytest.raises(ValueError, match=r"no guarantee|can undo what was guaranteed"):
        weighted.guarantee()


@every_map
def test_forecasts_are_probabilities_and_labels_may_be_words(kind):
    words = np.array(["d", "c", "b", "a"])
    fitted = clone(kind).set_params(classes=words).fit(P, words[Y])
    assert fitted.classes_ == ("d", "c", "b", "a")
    found = quietly(fitted, P)
    assert found.shape == P.shape
    assert ((found >= 0.0) & (found <= 1.0)).all()
    if getattr(kind, "renormalize", True):
        assert found.sum(axis=1) == pytest.approx(np.ones(len(P)), abs=1e-12)
    assert (quietly(clone(kind).fit(P, Y), P) == found).all()


def test_temperature_keeps_the_order_of_classes_and_sharpens_or_dulls():
    for temperature in (0.3, 1.0, 4.0):
        found = ClassTemperatureRecalibrator(temperature=temperature).fit(P, Y).predict(P)
        assert (found.argsort(axis=1) == P.argsort(axis=1)).all()
        assert found == pytest.approx(softmax(LOGITS / temperature), abs=1e-12)


def test_temperature_is_not_monotone_in_the_confidence():
    # Two rows of one confidence end up with different ones: what the rest is spread over decides.
    y_prob = np.array([[0.5, 0.49, 0.01], [0.5, 0.25, 0.25], [0.51, 0.245, 0.245]])
    found = ClassTemperatureRecalibrator(temperature=3.0, classes=(0, 1, 2)).fit(y_prob, [0, 1, 2]).predict(y_prob)
    assert found[0, 0] > found[2, 0] > found[1, 0]


def test_probabilities_of_0():
    y_prob, y = P.copy(), Y.copy()
    y_prob[0], y[0] = [0.5, 0.5, 0.0, 0.0], 1
    fitted = ClassTemperatureRecalibrator().fit(y_prob, y)  # a class that is ruled out and did not happen stays so
    assert fitted.predict(y_prob)[0].tolist() == [0.5, 0.5, 0.0, 0.0]
    y[0] = 2
    with pytest.raises(ValueError, match=r"y_prob\[0\] gives probability 0 to class 2, which happened, .* clip=1e-6"):
        ClassTemperatureRecalibrator().fit(y_prob, y)
    clipped = ClassTemperatureRecalibrator(clip=1e-3).fit(y_prob, y)
    assert clipped.predict(y_prob)[0, 2] > 0.0
    with pytest.raises(ValueError, match=r"y_prob\[0\] holds a probability of exactly 0, of class 2, .* clip=1e-6"):
        VectorRecalibrator().fit(y_prob, y)
    fitted = VectorRecalibrator().fit(P, Y)
    assert fitted.predict(y_prob)[0, 2:].tolist() == [0.0, 0.0]


def test_a_slope_that_is_not_positive_has_no_limit_at_0():
    rng = np.random.default_rng(4)
    y_prob = rng.dirichlet([1.0, 1.0, 1.0], 600)
    fitted = VectorRecalibrator().fit(y_prob, drawn(softmax(-np.log(y_prob) * [1.0, -1.0, -1.0]), rng))
    assert fitted.slope_[0] < 0.0
    with pytest.raises(ValueError, match="a probability of exactly 0 of class 0, whose slope is not positive"):
        fitted.predict([[0.0, 0.5, 0.5]])


def test_what_cannot_be_fitted_is_said():
    with pytest.raises(ValueError, match="no temperature improves on equal probabilities"):
        ClassTemperatureRecalibrator().fit(P, P.argmin(axis=1))
    with pytest.raises(ValueError, match="so that the temperature would be 0"):
        ClassTemperatureRecalibrator().fit(P, P.argmax(axis=1))
    with pytest.raises(ValueError, match="no finite slopes and levels are the most likely"):
        VectorRecalibrator().fit(P, P.argmax(axis=1))
    with pytest.raises(ValueError, match="no row is of class 'z'"):
        VectorRecalibrator(classes=["a", "b", "c", "z"]).fit(P, np.array(["a", "b", "c"])[Y % 3])
    with pytest.raises(ValueError, match="class 1 against the others: "):
        OneVsRestRecalibrator(PlattRecalibrator(smoothing=False), classes=range(4)).fit(P, np.where(Y == 1, 0, Y))


@pytest.mark.parametrize(
    ("recalibrator", "message"),
    [
        (ClassTemperatureRecalibrator(temperature=0.0), "temperature is 0.0; it must be above 0"),
        (ClassTemperatureRecalibrator(clip=0.7), "clip"),
        (ClassTemperatureRecalibrator(clip=1e-3, input_kind="score"), "scores have no logarithm taken"),
        (ClassTemperatureRecalibrator().set_params(input_kind="logit"), "input_kind"),
        (VectorRecalibrator(clip=0.0), "clip must be between 0 and 0.5"),
        (
            OneVsRestRecalibrator().set_params(recalibrator="isotonic"),
            "recalibrator is 'isotonic', not a recalibrator of events",
        ),
        (OneVsRestRecalibrator().set_params(recalibrator=TopLabelRecalibrator()), "not a recalibrator of events"),
        (OneVsRestRecalibrator(PlattRecalibrator(pos_label=1)), "recalibrator has pos_label=1"),
        (OneVsRestRecalibrator().set_params(renormalize=1), "renormalize"),
        (OneVsRestRecalibrator(PlattRecalibrator(input_kind="score")), "set both alike"),
        (TopLabelRecalibrator(PlattRecalibrator(input_kind="score")), "input_kind of the recalibrator"),
    ],
)
def test_options_are_checked(recalibrator, message):
    with pytest.raises(ValueError, match=message):
        recalibrator.fit(P, Y)


@pytest.mark.parametrize(
    ("y_prob", "y_true", "message"),
    [
        (P * 0.9, Y, r"y_prob\[0\] adds up to 0.9 over its 4 classes, not to 1 within 0.001"),
        (P * 100.0, Y, "outside .0, 1."),
        (P[:, 0], Y, "y_prob has shape"),
        (np.where(P[3, 2] == P, np.nan, P), Y, r"y_prob\[3\] is missing in column 2"),
        (P, Y[:-1], "y_true has 399 values and y_prob has 400 rows"),
        (P, np.where(Y == 3, 2, Y), "y_prob has 4 columns and y_true holds 3 labels"),
        (P, np.where(np.arange(400) == 7, 4, Y), "holds 5 labels"),
    ],
)
@pytest.mark.parametrize("kind", [ClassTemperatureRecalibrator(), OneVsRestRecalibrator(), TopLabelRecalibrator()])
def test_bad_rows_are_refused_at_the_door(kind, y_prob, y_true, message):
    with pytest.raises(ValueError, match=message):
        clone(kind).fit(y_prob, y_true)


def test_bad_scores_are_refused_at_the_door():
    scores = np.where(LOGITS[5, 1] == LOGITS, np.inf, LOGITS)
    with pytest.raises(ValueError, match=r"y_prob\[5\] is inf"):
        VectorRecalibrator(input_kind="score").fit(scores, Y)
    with pytest.raises(ValueError, match="pass a column of scores for every class"):
        VectorRecalibrator(input_kind="score").fit(LOGITS[:, 0], Y)
    with pytest.raises(ValueError, match="pass one label per column, each of them once"):
        OneVsRestRecalibrator(multilabel=True, classes=["a", "a", "b", "c"]).fit(P, np.eye(4)[Y])
    with pytest.raises(ValueError, match=r"y_true\[0\] is 9, which is not one of the classes"):
        VectorRecalibrator(classes=range(4)).fit(P, np.where(np.arange(400) == 0, 9, Y))


def test_frames_name_the_classes():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(P, columns=["d", "c", "b", "a"])
    words = np.array(["d", "c", "b", "a"])[Y]
    for kind in (OneVsRestRecalibrator(), ClassTemperatureRecalibrator()):
        named = clone(kind).fit(frame, words)
        assert named.classes_ == ("d", "c", "b", "a")
        assert (named.predict(frame) == clone(kind).fit(P, Y).predict(P)).all()


@pytest.mark.parametrize("kind", MAPS)
def test_columns_of_a_frame_are_found_by_their_names(kind):
    y_prob, y_true, _ = rows_of_classes(3)
    frame = pd.DataFrame(y_prob, columns=["d", "a", "c", "b"])
    fitted = clone(MAPS[kind]).fit(frame, np.array(frame.columns)[y_true])
    expected = quietly(fitted, y_prob)
    twin = ClassRecalibrator.from_json(fitted.to_json())
    for each in (fitted, twin):
        assert np.array_equal(quietly(each, frame[["a", "b", "c", "d"]]), expected)
        assert np.array_equal(quietly(each, pl.DataFrame(frame).select("c", "b", "a", "d")), expected)
        with pytest.raises(InputError, match=r"has no column 'c' and has 'e', to which it was not fitted"):
            each.predict(frame.rename(columns={"c": "e"}))
        with pytest.raises(InputError, match=r"has no column 'a'"):
            each.predict(frame[["d", "b", "c"]])
        with pytest.raises(InputError, match="has a name twice"):
            each.predict(frame[["d", "a", "c", "b", "b"]])


def test_names_of_columns_need_not_be_those_of_classes():
    y_prob, y_true, _ = rows_of_classes(3)
    odd, classes = ["north", "east", "south", "west"], [10, 11, 12, 13]
    frame = pd.DataFrame(y_prob, columns=odd)
    fitted = OneVsRestRecalibrator(classes=classes).fit(frame, y_true + 10)
    expected = fitted.predict(y_prob)
    twin = ClassRecalibrator.from_json(fitted.to_json())
    assert np.array_equal(twin.predict(frame[odd[::-1]]), expected)
    assert np.array_equal(twin.predict(frame[odd[::-1]].rename(columns=dict(zip(odd, classes, strict=True)))), expected)
    unnamed = OneVsRestRecalibrator().fit(y_prob, y_true + 10)
    written = pd.DataFrame(y_prob, columns=["p_10", "p_11", "p_12", "p_13"])
    assert np.array_equal(unnamed.predict(written.iloc[:, ::-1]), expected)
    with pytest.raises(InputError, match="has no column 10, 11, 12, 13 and has 'north'"):
        unnamed.predict(frame)
    assert np.array_equal(OneVsRestRecalibrator(classes=classes).fit(y_prob, y_true + 10).predict(frame), expected)


def test_the_number_of_columns_is_looked_at_before_their_sums():
    y_prob, y_true, _ = rows_of_classes(3)
    fitted = ClassTemperatureRecalibrator().fit(y_prob, y_true)
    with pytest.raises(InputError, match="has 3 columns, and the recalibrator was fitted to 4 classes"):
        fitted.predict(y_prob[:, :3])


def test_a_thousand_classes():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(300, 1000))
    y = drawn(softmax(logits / 1.5), rng)
    y_prob = softmax(logits)
    dull = ClassTemperatureRecalibrator(classes=range(1000)).fit(y_prob, y)
    assert 1.0 < dull.temperature_ < 2.5
    top = TopLabelRecalibrator(classes=range(1000)).fit(y_prob, y)
    assert quietly(top, y_prob).sum(axis=1) == pytest.approx(np.ones(300))


@every_map
def test_it_is_fitted_first_and_keeps_its_columns(kind):
    with pytest.raises(ValueError, match=r"is not fitted yet; call fit\(y_prob, y_true\) before predict\(\)"):
        clone(kind).predict(P)
    fitted = clone(kind).fit(P, Y)
    with pytest.raises(ValueError, match="y_prob has 2 columns, and the recalibrator was fitted to 4 classes"):
        fitted.predict([[0.5, 0.5]])


def test_labels_of_a_row_may_be_several():
    rng = np.random.default_rng(6)
    y_prob = rng.random((500, 3))
    y_true = rng.random((500, 3)) < y_prob**2
    fitted = OneVsRestRecalibrator(multilabel=True).fit(y_prob, y_true)
    for k in range(3):
        alone = IsotonicRecalibrator().fit(y_prob[:, k], y_true[:, k])
        assert (fitted.predict(y_prob)[:, k] == alone.predict(y_prob[:, k])).all()
    assert fitted.guarantee().question == "multilabel"
    assert fitted.guarantee().upper == pytest.approx(3.0 * math.sqrt(math.log(2 * math.e * 3 / 0.05) / 1000))
    two = OneVsRestRecalibrator(multilabel=True).fit(y_prob[:, :2], y_true[:, :2])
    assert len(two.maps_) == 2


def test_dividing_rows_by_their_sums_can_destroy_calibration():
    """Every class is calibrated, sums are within 2 eta of 1, and after division class 0 is off by 1/4 (theory)."""
    for denominator in (16, 64, 256, 1024):
        eta, many = 1.0 / denominator, denominator // 2
        a, b = 0.25 + eta, 0.25 - eta
        scores = np.repeat([[0.5, a, a], [0.5, b, b], [0.5, a, b], [0.5, b, a]], many, axis=0)
        third = np.where(np.arange(many) < (0.5 + 2.0 * eta) * many, 1, 2)
        fourth = np.where(np.arange(many) < (0.5 - 2.0 * eta) * many, 1, 2)
        y = np.concatenate([np.zeros(2 * many, dtype=int), third, fourth])
        kept = OneVsRestRecalibrator(input_kind="score", renormalize=False).fit(scores, y)
        assert kept.predict(scores) == pytest.approx(scores, abs=1e-15)
        assert [cutoff_calibration_error(y == k, scores[:, k]) for k in range(3)] == pytest.approx([0.0] * 3, abs=1e-15)
        divided = OneVsRestRecalibrator(input_kind="score").fit(scores, y).predict(scores)
        assert np.abs(scores.sum(axis=1) - 1.0).max() <= 2.0 * eta
        assert cutoff_calibration_error(y == 0, divided[:, 0]) == pytest.approx(0.25, abs=1e-12)


@every_map
def test_json_brings_back_the_same_map(kind):
    words = np.array(["d", "c", "b", "a"])
    fitted = clone(kind).set_params(classes=words.tolist()).fit(P, words[Y])
    text = fitted.to_json()
    for twin in (ClassRecalibrator.from_json(text), type(fitted).from_json(text)):
        assert type(twin) is type(fitted)
        assert twin.get_params(deep=False).keys() == fitted.get_params(deep=False).keys()
        assert (quietly(twin, P) == quietly(fitted, P)).all()
        assert twin.guarantee_ == fitted.guarantee_
        assert twin.classes_ == fitted.classes_
        assert twin.to_json() == text


@every_map
def test_a_database_computes_the_same(kind):
    duckdb = pytest.importorskip("duckdb")
    pandas = pytest.importorskip("pandas")
    fitted = clone(kind).fit(P[:60], Y[:60])
    extremes = [[1.0, 0.0, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.25] * 4, [1.0 - 1e-12, 1e-12, 0.0, 0.0]]
    wrong = [[0.1, 0.1, 0.1, 0.1], [np.nan, 0.5, 0.2, 0.3], [1.2, -0.2, 0.0, 0.0]]
    valid = np.concatenate([P[-60:], extremes])
    table = pandas.DataFrame(np.concatenate([valid, wrong]), columns=["p 0", "p1", 'p"2', "p3"])
    expressions = fitted.to_sql(list(table.columns))
    chosen = ", ".join(f"{expression} AS c{k}" for k, expression in enumerate(expressions))
    found = duckdb.query_df(table, "rows_there", f"SELECT {chosen} FROM rows_there").df().to_numpy()
    assert found[: len(valid)] == pytest.approx(quietly(fitted, valid), abs=1e-12)
    assert np.isnan(found[len(valid) :]).all()
    with pytest.raises(ValueError, match="columns must be the names of 4 columns, one per class"):
        fitted.to_sql(["p0", "p1"])


def test_scores_are_scored_in_a_database_too():
    duckdb = pytest.importorskip("duckdb")
    pandas = pytest.importorskip("pandas")
    scores = np.concatenate([3.0 * LOGITS[:50], [[5000.0, 0.0, -5000.0, 1.0]]])
    table = pandas.DataFrame(scores, columns=list("abcd"))
    for kind in (ClassTemperatureRecalibrator, VectorRecalibrator, OneVsRestRecalibrator):
        fitted = kind(input_kind="score").fit(3.0 * LOGITS[:60], Y[:60])
        chosen = ", ".join(f"{each} AS c{k}" for k, each in enumerate(fitted.to_sql(list("abcd"))))
        found = duckdb.query_df(table, "rows_there", f"SELECT {chosen} FROM rows_there").df().to_numpy()
        assert found == pytest.approx(fitted.predict(scores), abs=1e-12)


@pytest.mark.parametrize(("classes", "rows"), [(3, 500), (10, 2000)])
def test_guarantees_are_those_of_the_theorems(classes, rows):
    y_prob, y, _ = rows_of_classes(7, rows, classes)
    for level in (0.9, 0.95):
        delta = 1.0 - level
        every = OneVsRestRecalibrator(renormalize=False).fit(y_prob, y).guarantee(level)
        assert every.upper == pytest.approx(3.0 * math.sqrt(math.log(2.0 * math.e * classes / delta) / (2.0 * rows)))
        assert every.in_advance == every.upper
        assert every.question == "classwise"
        assert every.error == 0.0
        top = TopLabelRecalibrator().fit(y_prob, y).guarantee(level)
        assert top.upper == pytest.approx(3.0 * math.sqrt(math.log(2.0 * math.e / delta) / (2.0 * rows)))
        assert top.in_advance == top.upper
        assert top.question == "confidence"
        saving = TopLabelRecalibrator().fit(y_prob, y).guarantee(level, measure="risk_gap")
        assert saving.upper == pytest.approx(2.0 / 3.0 * top.upper)
        again = OneVsRestRecalibrator(renormalize=False).fit(y_prob, y).guarantee(level, target="these forecasts")
        assert again.in_advance == pytest.approx(math.sqrt(math.log(4.0 * classes / delta) / (2.0 * rows)))


def test_there_is_no_guarantee_where_the_theorem_does_not_apply():
    for recalibrator in (ClassTemperatureRecalibrator(), VectorRecalibrator()):
        fitted = recalibrator.fit(P, Y)
        assert fitted.guarantee_ is None
        with pytest.raises(ValueError, match=r"does not keep the order .* rows kept aside, .* MenuRecalibrator\(\)"):
            fitted.guarantee()
    with pytest.raises(ValueError, match=r"renormalize is True, .* certify\(\) the result again, on rows kept aside"):
        OneVsRestRecalibrator().fit(P, Y).guarantee()


def test_texts_that_were_changed_are_refused():
    text = VectorRecalibrator().fit(P, Y).to_json()
    for old, new, message in [
        ("VectorRecalibrator", "IsotonicRecalibrator", "is 'IsotonicRecalibrator', not a ClassRecalibrator"),
        ('"classes_": [0, 1, 2, 3]', '"classes_": [0, 1, 2]', "must be a list of 3 numbers"),
        ('"classes_": [0, 1, 2, 3]', '"classes_": [0, 1, 2, 2]', "holds a label twice"),
        ('"slope_": [', '"slope_": ["x", ', "must be a list of 4 numbers"),
        (
            "class-recalibrator/1",
            "class-recalibrator/9",
            "^this recalibrator was written by a newer version .*; update calibrant",
        ),
    ]:
        assert old in text
        with pytest.raises(ValueError, match=message):
            ClassRecalibrator.from_json(text.replace(old, new))
    with pytest.raises(ValueError, match=r"it is a recalibrator of classes: ClassRecalibrator.from_json\(\) reads it"):
        Recalibrator.from_json(text)
    with pytest.raises(ValueError, match=r"it is a recalibrator of events: Recalibrator.from_json\(\) reads it"):
        ClassRecalibrator.from_json(PlattRecalibrator().fit(P[:, 0], Y == 0).to_json())
    with pytest.raises(ValueError, match="not a TopLabelRecalibrator"):
        TopLabelRecalibrator.from_json(text)
