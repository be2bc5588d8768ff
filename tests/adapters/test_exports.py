"""What a recalibrator exports to ONNX forecasts what it forecasts itself, at every corner."""

import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
from sklearn.naive_bayes import GaussianNB

from calibrant import (
    BetaRecalibrator,
    GuardedRecalibrator,
    IsotonicRecalibrator,
    PlattRecalibrator,
    RecalibratedClassifier,
    TemperatureRecalibrator,
)
from calibrant.adapters import to_onnx
from calibrant.repairs import ConstantRecalibrator
from calibrant.repairs.class_recalibrator import class_kinds

RNG = np.random.default_rng(9)
P = RNG.beta(0.7, 1.5, 400).round(3).clip(0.001, 0.999)  # with ties
Y = (RNG.random(400) < P**1.4).astype(int)
RECALIBRATORS = {
    "isotonic": IsotonicRecalibrator(),
    "isotonic inside": IsotonicRecalibrator(ends="inside"),
    "isotonic linear": IsotonicRecalibrator(interpolation="linear"),
    "Platt": PlattRecalibrator(),
    "Platt on the logit": PlattRecalibrator(on="logit"),
    "Platt clipped": PlattRecalibrator(on="logit", clip=0.01),
    "beta": BetaRecalibrator(),
    "beta clipped": BetaRecalibrator(clip=0.01),
    "temperature": TemperatureRecalibrator(),
    "constant": ConstantRecalibrator(),
    "guarded": GuardedRecalibrator(),
    "guarded, tight": GuardedRecalibrator(tolerance=0.0),
}


def forecasts(model, value):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(["probability"], {"y_prob": np.asarray(value, dtype=np.float64)})[0]


def corners(recalibrator):
    """Return forecasts at the ends, at knots and just beside them, and between."""
    knots = getattr(recalibrator, "block_low_", P[:20])
    knots = np.concatenate([knots, getattr(recalibrator, "block_high_", P[:20])])
    beside = [np.nextafter(knots, 0.0), np.nextafter(knots, 1.0)]
    return np.concatenate([[0.0, 1.0, 5e-324, 1e-300, 1.0 - 2.0**-53, 0.5], knots, *beside, P, RNG.random(500)])


@pytest.mark.parametrize("name", RECALIBRATORS)
def test_the_graph_forecasts_what_predict_does(name):
    recalibrator = RECALIBRATORS[name].fit(P, Y)
    value = corners(recalibrator)
    assert forecasts(to_onnx(recalibrator), value) == pytest.approx(recalibrator.predict(value), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("interpolation", ["step", "linear"])
@pytest.mark.parametrize("blocks", [2, 3, 4, 5, 8, 9, 200])
def test_the_block_of_a_forecast_is_found_among_any_number(blocks, interpolation):
    knots = np.linspace(0.1, 0.9, blocks)
    recalibrator = IsotonicRecalibrator(interpolation=interpolation).fit(knots, np.linspace(0.0, 1.0, blocks))
    assert recalibrator.block_value_.size == blocks
    value = np.concatenate([[0.0, 1.0], knots, np.nextafter(knots, 0.0), np.nextafter(knots, 1.0), RNG.random(300)])
    assert forecasts(to_onnx(recalibrator), value) == pytest.approx(recalibrator.predict(value), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("kind", [IsotonicRecalibrator, PlattRecalibrator, BetaRecalibrator])
def test_a_single_forecast_gives_a_constant(kind):
    recalibrator = kind().fit([0.4] * 10, [0, 1] * 5)
    value = [0.0, 0.3, 0.4, 1.0]
    assert forecasts(to_onnx(recalibrator), value) == pytest.approx(recalibrator.predict(value), rel=1e-12)


@pytest.mark.parametrize(
    "recalibrator",
    [
        PlattRecalibrator(on="logit"),
        BetaRecalibrator(),
        TemperatureRecalibrator(),
        PlattRecalibrator(input_kind="score"),
    ],
    ids=["Platt", "beta", "temperature", "scores"],
)
def test_tiny_probabilities_keep_their_digits(recalibrator):
    is_score = recalibrator.input_kind == "score"
    recalibrator.fit(20.0 * P if is_score else P, Y)
    value = np.linspace(-600.0, -20.0, 50) if is_score else np.logspace(-300, -2, 50)
    expected = recalibrator.predict(value)
    assert expected[expected > 0.0].min() < 1e-30
    smallest = 1e-307  # the exponential of the oldest runtime that we allow ends there
    assert forecasts(to_onnx(recalibrator), value) == pytest.approx(expected, rel=1e-10, abs=smallest)


@pytest.mark.parametrize("kind", [IsotonicRecalibrator, PlattRecalibrator])
def test_scores_of_any_scale(kind):
    recalibrator = kind(input_kind="score").fit(1e6 + 40.0 * P, Y)
    value = [-1e300, 0.0, 1e6, 1e6 + 17.25, 1e300]
    assert forecasts(to_onnx(recalibrator), value) == pytest.approx(recalibrator.predict(value), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("name", RECALIBRATORS)
def test_what_predict_refuses_is_nan(name):
    recalibrator = RECALIBRATORS[name].fit(P, Y)
    for wrong in (np.nan, np.inf, -np.inf, -1e-9, 1.0 + 1e-9, 37.0):
        with pytest.raises(ValueError, match="y_prob"):
            recalibrator.predict([0.5, wrong])
        (right, refused) = forecasts(to_onnx(recalibrator), [0.5, wrong])
        assert right == pytest.approx(recalibrator.predict([0.5])[0], rel=1e-12)
        assert np.isnan(refused)
    scored = PlattRecalibrator(input_kind="score").fit(40.0 * P, Y)
    assert np.isnan(forecasts(to_onnx(scored), [-37.0, np.nan, 37.0, np.inf])).tolist() == [False, True, False, True]


def test_no_rows_and_one_row():
    model = to_onnx(IsotonicRecalibrator().fit(P, Y))
    assert forecasts(model, []).shape == (0,)
    assert forecasts(model, [0.5]).shape == (1,)


@pytest.mark.parametrize("name", ["isotonic", "guarded"])
def test_what_is_not_fitted(name):
    with pytest.raises(ValueError, match="fit"):
        to_onnx(type(RECALIBRATORS[name])())


@pytest.mark.parametrize("kind", class_kinds().values())
def test_maps_of_several_classes_have_no_graph(kind):
    refused = rf"^recalibrator is a {kind.__name__}, which maps several classes and has no ONNX graph; .*to_sql"
    with pytest.raises(ValueError, match=refused):
        to_onnx(kind())


@pytest.mark.parametrize("given", [None, IsotonicRecalibrator, RecalibratedClassifier(GaussianNB())])
def test_what_has_no_graph(given):
    with pytest.raises(ValueError, match=r"which has no ONNX graph; pass a fitted .* a RecalibratedClassifier$"):
        to_onnx(given)


def test_maps_are_told_by_what_they_are_and_not_by_their_names():
    stranger = type("IsotonicRecalibrator", (), {})()
    with pytest.raises(ValueError, match=r"^recalibrator is IsotonicRecalibrator, which has no ONNX graph; "):
        to_onnx(stranger)
    own = type("Own", (PlattRecalibrator,), {})().fit(P, Y)
    assert forecasts(to_onnx(own), P) == pytest.approx(own.predict(P), rel=1e-12)


def test_scikit_learn_is_not_loaded_for_it():
    code = "import sys; import calibrant.adapters.exports; assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_onnx(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match="pip install onnx"):
        to_onnx(IsotonicRecalibrator().fit(P, Y))
