"""Values that nobody here computed: published examples and the tests of other packages."""

import itertools

import numpy as np
import pytest

import calibrant
from calibrant import Tally


@pytest.mark.parametrize(
    ("labels", "weights", "expected"),
    [
        ([0, 1, 0, 1], None, 0.15),
        ([1, 1, 1, 1], None, 0.5),
        ([0, 1, 0, 0], None, 0.3),
        ([0, 1, 0, 0], [0.4, 0.3, 0.2, 0.1], 0.32),
    ],
)
def test_ecce_values_of_mcgrad(labels, weights, expected):
    # mcgrad, test_metrics.py: scores [.6, .8, .2, .4].
    value = calibrant.cutoff_calibration_error(labels, [0.6, 0.8, 0.2, 0.4], sample_weight=weights)
    assert value == pytest.approx(expected, abs=1e-12)


def test_the_zero_prefix_takes_part():
    # One public implementation leaves out S_0 and gives 0.6.
    assert calibrant.cutoff_calibration_error(np.zeros(5), np.linspace(0.5, 0.9, 5)) == pytest.approx(0.7, abs=1e-12)


@pytest.mark.parametrize("shuffle", [False, True])
def test_ties_are_merged(shuffle):
    # One public implementation gives 0.25 here, another a value that depends on row order.
    y = np.repeat([0, 1], 500)
    if shuffle:
        y = np.random.default_rng(0).permutation(y)
    assert calibrant.cutoff_calibration_error(y, np.full(1000, 0.5)) == 0.0


@pytest.mark.parametrize("rows", [100, 10_000])
def test_isotonic_output_on_its_own_sample_has_no_cutoff_error(rows):
    from sklearn.isotonic import IsotonicRegression

    rng = np.random.default_rng(1)
    p = np.round(rng.random(rows), 3)
    y = (rng.random(rows) < p**2).astype(float)
    fitted = IsotonicRegression().fit_transform(p, y)
    # The fit is a sum of means, each rounded: blocks that should be one value may differ in the last bits.
    assert calibrant.cutoff_calibration_error(y, np.round(fitted, 12)) < 1e-11


@pytest.mark.parametrize("epsilon", [0.25, 1 / 16, 2**-20])
def test_example_3_1_of_the_paper(epsilon):
    # X ~ Bernoulli(3/4), Y = X, f = 3/4 + eps - 2 eps X: dCE <= eps, ECE = 3/8 + eps.
    x = np.array([0, 1, 1, 1])
    tally = Tally.from_arrays(np.tile(x, 10), np.tile(0.75 + epsilon - 2 * epsilon * x, 10))
    assert calibrant.expected_calibration_error(tally) == pytest.approx(3 / 8 + epsilon, abs=1e-12)
    distance = calibrant.distance_from_calibration(tally)
    assert distance.low <= distance.high
    assert distance.high == pytest.approx(epsilon, abs=1e-12)  # the constant 3/4: mean |f - 3/4| = eps
    # Both forecasts are off by their own amount and in opposite directions.
    assert calibrant.cutoff_calibration_error(tally) == pytest.approx(0.75 * (0.25 + epsilon), abs=1e-12)
    assert calibrant.measure(tally).calibration_in_the_large == pytest.approx(epsilon / 2, abs=1e-12)


def test_example_where_all_measures_are_equal():
    # Appendix A.4: Y = 0 and f = 1.
    result = calibrant.measure(np.zeros(7), np.ones(7))
    distance = result.distance
    assert (result.cutoff, result.ece, distance.low, distance.high) == (1.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize("b", [0.5, 0.25, 2**-10])
def test_example_of_the_gap_relation(b):
    # Appendix A.4: f = (1 + b)/2 - b 1{X > 1/2}, Y = 1{X > 1/2}: dCE = b/2, ECE = (1 + b)/2.
    y = np.repeat([0.0, 1.0], 20)
    tally = Tally.from_arrays(y, 0.5 * (1 + b) - b * y)
    assert calibrant.expected_calibration_error(tally) == pytest.approx((1 + b) / 2, abs=1e-12)
    distance = calibrant.distance_from_calibration(tally)
    assert distance.low <= b / 2 <= distance.high + 1e-15
    assert distance.high == pytest.approx(b / 2, abs=1e-12)


@pytest.mark.parametrize("pieces", [1, 2, 5, 10])
def test_example_of_the_quadratic_relation(pieces):
    # Appendix A.4: f uniform, E[Y | f] the middle of f's piece: Cutoff = 1/(8 N^2), dCE of order 1/N.
    per_piece = 2_000
    f = (np.arange(pieces * per_piece) + 0.5) / (pieces * per_piece)  # a midpoint grid integrates linear pieces exactly
    y = (np.floor(f * pieces) + 0.5) / pieces
    assert calibrant.cutoff_calibration_error(y, f) == pytest.approx(1 / (8 * pieces**2), abs=1e-12)
    distance = calibrant.distance_from_calibration(y, f)
    assert distance.low <= distance.high <= 1 / (4 * pieces) + 1e-12  # g = E[Y | piece] is calibrated
    assert distance.high >= 1 / (16 * pieces)


def test_counterexample_to_proposition_a_1_as_printed():
    # f in {0, .1}, P(f=0) = .05, E[Y|f=0] = 1, E[Y|f=.1] = .05/.95: the constant .1 is calibrated, so dCE <= .005.
    b = 0.1
    tally = Tally.from_arrays([1.0, 0.05 / 0.95], [0.0, b], sample_weight=[0.05, 0.95])
    expected = float(np.abs(tally.residual).sum()) / tally.weight_total
    assert expected == pytest.approx(0.095, abs=1e-12)
    distance = calibrant.distance_from_calibration(tally)
    assert distance.high == pytest.approx(0.005, abs=1e-12)
    assert b / (b + 1) * expected > distance.high  # what Prop. A.1 states cannot be
    assert b / (b + 2) * expected <= distance.high  # what holds


def test_relations_hold_on_every_small_forecaster():
    # Two forecasts on a grid with every pair of event rates: no counterexample to any relation used here.
    grid = [0.0, 0.25, 0.5, 1.0]
    for low, high, first, second in itertools.product(grid, grid, grid, grid):
        if low < high:
            tally = Tally.from_arrays([first, second], [low, high], sample_weight=[1.0, 3.0])
            assert all(relation.holds for relation in calibrant.measure(tally).relations)


def test_loess_curve_of_cleveland_and_grosse():
    # scikit-misc (the Fortran code behind R's loess), span 0.75, degree 2, on the rows below: mean |curve - p|.
    i = np.arange(200)
    p = 0.02 + 0.96 * ((i * 0.6180339887498949) % 1.0)
    y = ((i * 0.41421356237) % 1.0 < p**1.5).astype(float)
    errors = calibrant.measures.integrated_calibration_index(y, p, smoother="loess")
    assert errors.ici == pytest.approx(0.09758399220772912, abs=1e-12)


def test_a_published_decomposition_of_the_brier_score():
    # model-diagnostics, decomposition test: mean squared error .2266667 = .1016667 + .25 - .125.
    rows = [0, 0, 0, 1, 1, 1], [0.4, 0.3, 0.2, 0.1, 0.5, 0.9]
    assert calibrant.measure(*rows).brier == pytest.approx(0.1016667 - 0.125 + 0.25, abs=1e-7)
    parts = calibrant.decisions.score_decomposition(*rows)
    assert parts.miscalibration == pytest.approx(0.1016667, abs=1e-7)
    assert parts.discrimination == pytest.approx(0.125, abs=1e-12)
    assert parts.uncertainty == pytest.approx(0.25, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.25, 1 / 16, 2**-20])
def test_risks_of_example_3_1_of_the_paper(epsilon):
    # Acting from 3/4 up has risk 3/8, the Bayes rule given the forecasts risk 0.
    x = np.tile([0, 1, 1, 1], 10)
    tally = Tally.from_arrays(x, 0.75 + epsilon - 2 * epsilon * x)
    for wrapper in ("monotone", "any"):
        result = calibrant.risk_gap(tally, threshold=0.75, wrapper=wrapper)
        assert (result.risk, result.best_risk) == (3 / 8, 0.0)


def test_sigmoid_calibration_of_scikit_learn():
    # scikit-learn, test_sigmoid_calibration: scores [5, -4, 1], labels [1, -1, -1], 1 / (1 + exp(A x + B)) with
    # A = -0.20261354391187855, B = 0.65236314980010512: LIBSVM's values, which stopped a few 1e-6 short of the best.
    fitted = calibrant.PlattRecalibrator(input_kind="score").fit([5.0, -4.0, 1.0], [1, 0, 0])
    assert fitted.slope_ == pytest.approx(0.20261354391187855, abs=1e-5)
    assert fitted.intercept_ == pytest.approx(-0.65236314980010512, abs=1e-5)
    expected = 1.0 / (1.0 + np.exp(-0.20261354391187855 * np.array([5.0, -4.0, 1.0]) + 0.65236314980010512))
    np.testing.assert_allclose(fitted.predict([5.0, -4.0, 1.0]), expected, atol=1e-5)


def test_logistic_curve_of_figure_4_of_the_paper():
    # f uniform on {0, .25, .5, 1}, E[Y|f] = (1, 0, 0, 1): the population's curve is not calibrated.
    law = Tally.from_counts(forecast=[0, 0.25, 0.5, 1], rows=[1, 1, 1, 1], events=[1, 0, 0, 1])
    fitted = calibrant.PlattRecalibrator(smoothing=False).fit(law)
    assert fitted.intercept_ == pytest.approx(-0.405804, abs=1e-6)
    assert fitted.slope_ == pytest.approx(0.930895, abs=1e-6)
    assert np.abs(fitted.predict(law.forecast) - 0.5).mean() == pytest.approx(0.0716219, abs=1e-7)


@pytest.mark.parametrize(("norm", "expected"), [("l1", 0.2), ("l2", 0.2082), ("max", 0.2333)])
def test_confidence_errors_of_torchmetrics(norm, expected):
    # torchmetrics, the example of MulticlassCalibrationError; its bins are closed below, which makes no difference.
    p = [[0.25, 0.20, 0.55], [0.55, 0.05, 0.40], [0.10, 0.30, 0.60], [0.90, 0.05, 0.05]]
    value = calibrant.expected_calibration_error([0, 1, 2, 0], p, n_bins=3, norm=norm)
    assert value == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(
    ("bins", "confidence", "classwise"),
    [(5, 0.2638101577758789, 0.24576001969355157), (10, 0.26381030678749084, 0.27352978241596054)],
)
def test_errors_of_classes_of_torchmetrics(bins, confidence, classwise):
    # Computed with torchmetrics 1.9.0: multiclass_calibration_error, which adds up in float32, and the mean over
    # classes of binary_calibration_error. No confidences are equal or on a border of bins, where packages differ.
    k = np.arange(40)
    p = np.column_stack([(7 * k) % 11 + 1.01, (5 * k) % 7 + 1.02, (3 * k) % 13 + 1.04])
    p /= p.sum(axis=1, keepdims=True)
    y = (k * k // 3) % 3
    assert calibrant.expected_calibration_error(y, p, n_bins=bins) == pytest.approx(confidence, abs=3e-7)
    found = calibrant.expected_calibration_error(y, p, n_bins=bins, questions="classwise")
    assert found == pytest.approx(classwise, abs=1e-12)


@pytest.mark.parametrize(
    ("bins", "confidence", "classwise", "by_label"),
    [
        (5, 0.19673208925360092, 0.23923162302862874, 0.42762902913410733),
        (10, 0.19673208925360092, 0.27346051232775576, 0.4276290291341072),
    ],
)
def test_errors_of_classes_of_mapie(bins, confidence, classwise, by_label):
    # Computed with MAPIE 1.6.0, whose num_bins counts the borders: it is one more than the number of bins. Its
    # top_label_ece is the plain mean over the labels; "top_label" here weighs each by its rows.
    k = np.arange(40)
    p = np.column_stack([(7 * k) % 11 + 1, (5 * k) % 7 + 1, (3 * k) % 13 + 1]).astype(float)
    p /= p.sum(axis=1, keepdims=True)
    y, top = (k * k // 3) % 3, p.argmax(axis=1)
    assert calibrant.expected_calibration_error(y, p, n_bins=bins) == pytest.approx(confidence, abs=1e-12)
    found = calibrant.expected_calibration_error(y, p, n_bins=bins, questions="classwise")
    assert found == pytest.approx(classwise, abs=1e-12)
    parts = [calibrant.expected_calibration_error(y[top == c] == c, p[top == c, c], n_bins=bins) for c in range(3)]
    assert np.mean(parts) == pytest.approx(by_label, abs=1e-12)
    share = np.bincount(top) / top.size
    found = calibrant.expected_calibration_error(y, p, n_bins=bins, questions="top_label")
    assert found == pytest.approx(float(share @ parts), abs=1e-12)
