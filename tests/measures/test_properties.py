"""Invariants that every measure must obey, hunted with hypothesis."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
from brute_force import rows
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import calibrant
from calibrant import CalibrationWarning, Tally


def plug_in(tally):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return calibrant.expected_calibration_error(tally)


def both_ends(tally):
    distance = calibrant.distance_from_calibration(tally)
    return distance.low, distance.high


def risks(tally):
    at = [0.0, 0.3, 0.5, 0.9]
    risk, benefit = calibrant.decision_risk(tally, threshold=at), calibrant.net_benefit(tally, threshold=at)
    return [*np.atleast_1d(risk.risk), *np.atleast_1d(benefit.net_benefit)]


def gaps(tally):
    curve, both = (
        calibrant.decisions.risk_gap_curve(tally, wrapper=wrapper) for wrapper in ("nondecreasing", "monotone")
    )
    return [
        calibrant.risk_gap(tally, threshold=0.3).gap,
        calibrant.risk_gap(tally, threshold=0.5, wrapper="monotone").gap,
        calibrant.decisions.sign_testing_gap(tally, threshold=0.5).gap,
        calibrant.best_threshold(tally, threshold=0.6).best_risk,
        curve.largest_gap,
        curve.largest_regret,
        both.largest_gap,
        *np.atleast_1d(curve.at([0.1, 0.3, 0.55, 0.9])),
    ]


def decomposed(tally):
    result = calibrant.decisions.score_decomposition(tally)
    return result.score, result.miscalibration, result.discrimination, result.uncertainty


MEASURES: dict[str, Any] = {
    "cutoff": calibrant.cutoff_calibration_error,
    "ks": calibrant.measures.ks_calibration_error,
    "smooth": calibrant.smooth_calibration_error,
    "variation 1": lambda tally: calibrant.measures.bounded_variation_calibration_error(tally, variation=1.0),
    "variation 2": calibrant.measures.bounded_variation_calibration_error,
    "variation 5": lambda tally: calibrant.measures.bounded_variation_calibration_error(tally, variation=5.0),
    "plug-in": plug_in,
    "uniform bins": lambda tally: calibrant.expected_calibration_error(tally, n_bins=4),
    "quantile bins": lambda tally: calibrant.expected_calibration_error(tally, n_bins=4, strategy="quantile"),
    "bias": calibrant.measures.calibration_in_the_large,
    "weighted": lambda tally: calibrant.measures.weighted_calibration_error(tally, weight=lambda p: np.cos(5 * p)),
    "distance": both_ends,
    "brier": calibrant.measures.brier_score,
    "isotonic index": lambda tally: calibrant.measures.integrated_calibration_index(tally).ici,
    "support": calibrant.measures.effective_support_size,
    "decision risk": risks,
    "risk gaps": gaps,
    "decomposition": decomposed,
}


def assert_same(functions, first, second, tolerance=1e-12):
    """Every function gives the same of two tallies; rows are drawn once for all of them, which takes longest."""
    for name, function in functions.items():
        assert function(first) == pytest.approx(function(second), abs=tolerance), name


@given(data=rows(), seed=st.integers(0, 2**32 - 1))
def test_row_order_never_matters(data, seed):
    y, p, w = data
    order = np.random.default_rng(seed).permutation(len(p))
    shuffled = Tally.from_arrays(y[order], p[order], sample_weight=None if w is None else w[order])
    assert_same(MEASURES, shuffled, Tally.from_arrays(y, p, sample_weight=w))


@given(data=rows(weighted=False), seed=st.integers(0, 2**32 - 1))
def test_weights_equal_repetition(data, seed):
    y, p, _ = data
    times = np.random.default_rng(seed).integers(0, 4, len(p))
    assume(times.any())
    repeated = Tally.from_arrays(np.repeat(y, times), np.repeat(p, times))
    weighted = Tally.from_arrays(y, p, sample_weight=times)
    assert_same(MEASURES, weighted, repeated)


@given(data=rows(weighted=True), factor=st.sampled_from([1e-6, 0.3, 7.0, 1e9]))
def test_scaling_the_weights_changes_nothing(data, factor):
    y, p, w = data
    scaled = Tally.from_arrays(y, p, sample_weight=factor * w)
    assert_same(MEASURES, scaled, Tally.from_arrays(y, p, sample_weight=w))


@given(data=rows(), share=st.floats(0.0, 1.0))
def test_parts_merged_equal_the_whole(data, share):
    y, p, w = data
    assume(len(p) > 1)
    cut = min(max(round(share * len(p)), 1), len(p) - 1)
    assume(w is None or (w[:cut].any() and w[cut:].any()))
    first, second = (
        Tally.from_arrays(y[part], p[part], sample_weight=None if w is None else w[part])
        for part in (slice(cut), slice(cut, None))
    )
    assert_same(MEASURES, first + second, Tally.from_arrays(y, p, sample_weight=w))


@given(data=rows())
def test_the_complement_is_as_calibrated(data):
    y, p, w = data
    # Multiples of 2^-20, so that 1 - p is exact and ties stay ties.
    y, p = np.round(y * 2**20) / 2**20, np.round(p * 2**20) / 2**20
    mirrored, original = Tally.from_arrays(1 - y, 1 - p, sample_weight=w), Tally.from_arrays(y, p, sample_weight=w)
    names = ("cutoff", "smooth", "variation 1", "variation 2", "variation 5", "plug-in", "distance", "support")
    assert_same({name: MEASURES[name] for name in names}, mirrored, original)
    one, other = (calibrant.measures.ks_calibration_error(tally) for tally in (mirrored, original))
    assert one <= 2 * other + 1e-12  # from above instead of from below: only its size is bounded
    assert other <= 2 * one + 1e-12


@given(rows(), st.one_of(st.floats(0.0, 30.0), st.sampled_from([2.0, 4.0, math.inf])))
def test_the_measures_bound_each_other(data, variation):
    y, p, w = data
    tally = Tally.from_arrays(y, p, sample_weight=w)
    cutoff, ks, smooth = (MEASURES[name](tally) for name in ("cutoff", "ks", "smooth"))
    varied = calibrant.measures.bounded_variation_calibration_error(tally, variation=variation)
    expected = plug_in(tally)
    assert ks <= cutoff + 1e-12
    assert cutoff <= 2 * ks + 1e-12
    assert cutoff <= expected + 1e-12
    assert smooth <= 1.5 * cutoff + 1e-12
    assert varied <= expected + 1e-12
    if variation >= 2.0:
        assert cutoff <= varied + 1e-12
    if variation < math.inf:
        assert varied <= (variation / 2 + 1) * cutoff + 1e-12
    else:
        assert varied == pytest.approx(expected, abs=1e-12)
    assert calibrant.measures.bounded_variation_calibration_error(tally, variation=0.0) == pytest.approx(
        abs(calibrant.measures.calibration_in_the_large(tally)), abs=1e-12
    )


@given(rows())
def test_every_relation_of_the_overview_holds_and_the_distance_is_ordered(data):
    y, p, w = data
    result = calibrant.measure(Tally.from_arrays(y, p, sample_weight=w))
    assert [relation for relation in result.relations if not relation.holds] == []
    assert 0.0 <= result.distance.low <= result.distance.high <= 1.0


@given(rows(), st.integers(0, 2**32 - 1))
def test_the_worst_interval_does_not_depend_on_row_order(data, seed):
    y, p, w = data
    order = np.random.default_rng(seed).permutation(len(p))
    one = calibrant.worst_interval(Tally.from_arrays(y, p, sample_weight=w))
    other = calibrant.worst_interval(
        Tally.from_arrays(y[order], p[order], sample_weight=None if w is None else w[order])
    )
    assert (one.low, one.high, one.direction, one.rows) == (other.low, other.high, other.direction, other.rows)


# --- Limits -----------------------------------------------------------------------------------------------------------


def limits_by(method, measure="cutoff"):
    def limits(tally):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)
            found = calibrant.confidence_interval(tally, method=method, measure=measure, confidence_level=0.75)
        return found.estimate, found.lower, found.upper

    return limits


WEIGHTED_LIMITS = {
    f"{method} {measure}": limits_by(method, measure)
    for method in ("adaptive", "normal", "hoeffding")
    for measure in ("cutoff", "smooth", "bounded_variation", "distance", "ece")
}
LIMITS = WEIGHTED_LIMITS | {"exact": limits_by("exact"), "paper": limits_by("paper")}

fewer = settings(max_examples=40)


def covered(name, data):
    """Rows as a method takes them: the exact one wants 0/1 outcomes, and neither it nor the paper's wants weights."""
    y, p, w = data
    return np.round(y) if name == "exact" else y, p, w if name in WEIGHTED_LIMITS else None


@fewer
@given(data=rows())
def test_limits_enclose_the_estimate_within_0_and_1(data):
    for name, limits in LIMITS.items():
        y, p, w = covered(name, data)
        estimate, lower, upper = limits(Tally.from_arrays(y, p, sample_weight=w))
        assert 0.0 <= lower <= upper + 1e-12, name
        assert estimate - 1e-12 <= upper <= 1.0, name


@fewer
@given(data=rows(), seed=st.integers(0, 2**32 - 1))
def test_limits_do_not_depend_on_row_order(data, seed):
    for name, limits in LIMITS.items():
        y, p, w = covered(name, data)
        order = np.random.default_rng(seed).permutation(len(p))
        shuffled = Tally.from_arrays(y[order], p[order], sample_weight=None if w is None else w[order])
        assert_same({name: limits}, shuffled, Tally.from_arrays(y, p, sample_weight=w))


@fewer
@given(data=rows())
def test_limits_of_the_complement_are_the_same(data):
    for name, limits in LIMITS.items():
        y, p, w = covered(name, data)
        # Odd multiples of 2^-14: 1 - p is exact, ties stay ties, and no forecast is the border of a coarse cell.
        p = (np.floor(p * 2**13).clip(0, 2**13 - 1) + 0.5) / 2**13
        y = np.round(y * 2**20) / 2**20
        mirrored = limits(Tally.from_arrays(1 - y, 1 - p, sample_weight=w))
        original = limits(Tally.from_arrays(y, p, sample_weight=w))
        if name.startswith("adaptive"):  # its lower limit draws halves, which are others in another order
            mirrored, original = mirrored[::2], original[::2]
        if name.endswith("distance") and (p * math.ceil(len(p) ** (1 / 3)) % 1 == 0).any():
            continue  # a forecast on the border of two bins belongs to the upper one
        assert mirrored == pytest.approx(original, abs=1e-12), name


@fewer
@given(data=rows(weighted=True), factor=st.sampled_from([1e-6, 0.3, 7.0, 1e9]))
def test_scaling_the_weights_changes_no_limit(data, factor):
    y, p, w = data
    scaled, original = (Tally.from_arrays(y, p, sample_weight=weight) for weight in (factor * w, w))
    assert_same(WEIGHTED_LIMITS, scaled, original, tolerance=1e-10)
