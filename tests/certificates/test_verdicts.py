"""Certificates as users meet them: verdicts, limits, groups, words, and what is refused.

Whether the limits keep their promise is tested elsewhere; here it is what they are functions of, and what is said.
"""

import itertools
import math
import warnings
from typing import Any, get_args

import brute_force
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import beta

import calibrant
from calibrant import CalibrationWarning, Cells, Tally, certify, confidence_interval, risk_bands
from calibrant.certificates import betting, margins
from calibrant.certificates.methods.normal import normal_lower_margin, normal_margin
from calibrant.certificates.methods.registry import METHODS, Method
from calibrant.core.laws import brownian_range
from calibrant.measures.distance import spread_upper
from calibrant.measures.registry import MEASURES
from calibrant.rows.weights import effective_rows

RNG = np.random.default_rng(20)
PROB = RNG.random(1500)
TRUE = RNG.random(1500) < PROB
WEIGHT = RNG.exponential(size=1500)
FRACTION = 0.5 * TRUE + 0.5 * PROB
SITE = np.where(RNG.random(1500) < 0.4, "north", "south")
LEVELS = PROB.round(1)  # forecasts that repeat

COUNTS = Tally.from_counts(forecast=[0.2, 0.5, 0.8], rows=[400, 300, 300], events=[85, 141, 236])
SURE_OF_ITSELF = Tally.from_counts(forecast=[0.02, 0.5, 0.98], rows=[8000, 4000, 8000], events=[3200, 2030, 4900])

ALLOWED = [
    (method, measure)
    for method, measure in itertools.product(METHODS, MEASURES)
    if measure == "cutoff" or method not in ("exact", "paper")
]
REFUSED = [pair for pair in itertools.product(METHODS, MEASURES) if pair not in ALLOWED]
GENERAL = ("adaptive", "normal", "hoeffding")  # the methods that cover weights

KINDS = {"binary": (TRUE, None), "fractions": (FRACTION, None), "weights": (TRUE, WEIGHT)}
COVERED = [
    (kind, method)
    for kind, method in itertools.product(KINDS, METHODS)
    if kind == "binary" or method in GENERAL or (kind, method) == ("fractions", "paper")
]

NAMES: tuple[Method, ...] = get_args(Method)
EVERY_METHOD = pytest.mark.parametrize("method", METHODS)
EVERY_ALLOWED = pytest.mark.parametrize(("method", "measure"), ALLOWED, ids=map(" ".join, ALLOWED))


def refused(message):
    return pytest.raises(ValueError, match=message)


def limits(found):
    return found.estimate, found.lower, found.upper


def quietly(function, *args, **options):
    """Call without the warning that an ECE of continuous forecasts earns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return function(*args, **options)


# --- Verdicts ---------------------------------------------------------------------------------------------------------


@EVERY_ALLOWED
def test_the_verdict_follows_from_the_limits(method, measure):
    found = quietly(confidence_interval, TRUE, PROB**4, method=method, measure=measure, confidence_level=0.9)
    assert 0.0 <= found.lower < found.estimate < found.upper <= 1.0

    def judge(max_error):
        return quietly(certify, TRUE, PROB**4, max_error=max_error, method=method, measure=measure)

    one = judge(0.5)
    assert limits(one) == pytest.approx(limits(found), rel=1e-12)  # two limits at 95% each hold together with 90%
    certified, undecided = judge(one.upper), judge((one.lower + one.upper) / 2)  # "at most" includes the limit itself
    assert (certified.verdict, bool(certified), certified.rows_needed) == ("certified", True, None)
    assert (undecided.verdict, bool(undecided)) == ("undecided", False)
    assert judge(np.nextafter(one.upper, 0.0)).verdict != "certified"
    assert judge(one.lower).verdict == "undecided"
    if one.lower > 0.0:
        refuted = judge(np.nextafter(one.lower, 0.0))
        assert (refuted.verdict, bool(refuted), refuted.rows_needed) == ("refuted", False, None)


@pytest.mark.parametrize("method", ["adaptive", "exact", "normal", "hoeffding"])
def test_bad_forecasts_are_refuted_and_good_ones_certified(method):
    assert certify(TRUE, PROB, max_error=0.1, method=method)
    assert certify(TRUE, PROB**4, max_error=0.05, method=method).verdict == "refuted"


@EVERY_METHOD
def test_every_error_is_at_most_1_and_none_is_certified_to_be_0(method):
    assert certify(TRUE, PROB, max_error=1, method=method)
    assert not certify(TRUE, PROB, max_error=0, method=method)


def test_a_certificate_carries_what_was_asked_and_what_was_found():
    found = certify(TRUE, PROB, max_error=0.04, confidence_level=0.9, method="hoeffding")
    assert (found.max_error, found.confidence_level, found.method, found.measure) == (0.04, 0.9, "hoeffding", "cutoff")
    assert (found.rows, found.n_eff, found.target, found.finite_sample) == (1500, 1500.0, "population", True)
    assert found.estimate == calibrant.cutoff_calibration_error(TRUE, PROB)
    assert found.worst_interval == calibrant.worst_interval(TRUE, PROB)
    assert found.notes == ()


@pytest.mark.parametrize("measure", MEASURES)
def test_the_estimate_is_the_measure_of_these_rows(measure):
    tally = Tally.from_arrays(TRUE, LEVELS)
    by_itself = {
        "cutoff": calibrant.cutoff_calibration_error(tally),
        "smooth": calibrant.smooth_calibration_error(tally),
        "bounded_variation": calibrant.measures.bounded_variation_calibration_error(tally, variation=3),
        "distance": calibrant.smooth_calibration_error(tally),  # a note says so
        "ece": calibrant.expected_calibration_error(tally),
        "risk_gap": pytest.approx(calibrant.decisions.risk_gap_curve(tally).largest_gap, abs=1e-15),
    }
    assert certify(tally, max_error=0.1, measure=measure, variation=3).estimate == by_itself[measure]


def test_the_margins_are_the_published_ones():
    n, delta = TRUE.size, 0.05
    cutoff = brute_force.cutoff(TRUE[:40], PROB[:40])
    few = confidence_interval(TRUE[:40], PROB[:40], method="hoeffding", alternative="less")
    assert few.upper == pytest.approx(cutoff + math.sqrt(2 * math.log(1 / delta) / 40), abs=1e-12)
    estimate = calibrant.cutoff_calibration_error(TRUE, PROB**4)
    paper = certify(TRUE, PROB**4, max_error=0.5, method="paper")
    margin = (20 + math.sqrt(2 * math.log(1 / delta))) / math.sqrt(n)
    assert (paper.lower, paper.upper) == pytest.approx((max(estimate - margin, 0.0), min(estimate + margin, 1.0)))
    normal = certify(TRUE, PROB**4, max_error=0.5, method="normal")
    error = math.sqrt(np.square(TRUE - PROB**4).sum()) / n
    assert normal.lower == pytest.approx(estimate - brownian_range.ppf(0.95) * error, abs=1e-12)
    exact = certify(TRUE, PROB**4, max_error=0.5, method="exact")
    assert exact.lower == pytest.approx(estimate - math.sqrt(math.log(4 / delta) / (2 * n)), abs=1e-12)


def test_the_exact_limit_is_the_largest_binomial_limit_of_an_interval():
    rows, events = COUNTS.rows, COUNTS.events
    largest = 0.0
    for begin, end in itertools.combinations(range(4), 2):
        m, k = rows[begin:end].sum(), events[begin:end].sum()
        expected = (rows * COUNTS.forecast)[begin:end].sum()
        most_events, most_others = beta.ppf(0.95, [k + 1, m - k + 1], [m - k, k])
        largest = max(largest, m * most_events - expected, m * most_others - (m - expected))
    assert confidence_interval(COUNTS, method="exact", alternative="less").upper == pytest.approx(largest / 1000)


# --- Methods and measures ---------------------------------------------------------------------------------------------


@EVERY_ALLOWED
def test_every_result_says_of_whom_it_speaks_and_what_it_rests_on(method, measure):
    found = certify(TRUE, LEVELS, max_error=0.3, method=method, measure=measure)
    assert found.target == ("these forecasts" if method == "exact" else "population")
    assert found.finite_sample == (method != "normal")
    words = "; ".join(found.assumptions)
    assert "independent" in words
    assert "fixed without looking at these" in words
    assert ("draws from the population" in words) == (method != "exact")
    assert ("central limit theorem" in words) == (method == "normal")
    assert ("weights" in words) is False
    assert words in str(found)
    whom = "these forecasts" if method == "exact" else "the population"
    assert (f"of {whom}" if found.thresholds is None else f"draws from {whom}") in str(found)


@pytest.mark.parametrize(("method", "measure"), REFUSED, ids=map(" ".join, REFUSED))
@pytest.mark.parametrize("function", [lambda *rows, **how: certify(*rows, max_error=0.1, **how), confidence_interval])
def test_methods_refuse_measures_they_have_no_proof_for(function, method, measure):
    message = rf"^method='{method}' covers measure='cutoff' only, got measure='{measure}'; use method='adaptive', 'hoef"
    with refused(message):
        function(TRUE, PROB, method=method, measure=measure)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("method", GENERAL)
def test_methods_that_cover_weights_report_what_the_weights_are_worth(method, measure):
    found = certify(TRUE, LEVELS, max_error=0.3, method=method, measure=measure, sample_weight=WEIGHT)
    assert found.rows == 1500
    assert found.n_eff == pytest.approx(WEIGHT.sum() ** 2 / np.square(WEIGHT).sum())
    assert any(words.startswith("the weights were fixed beforehand (weights computed") for words in found.assumptions)
    assert f"1,500 rows worth {found.n_eff:,.0f} of equal weight" in str(found)
    assert found.upper > certify(TRUE, LEVELS, max_error=0.3, method=method, measure=measure).upper


@pytest.mark.parametrize("method", ["paper", "exact"])
def test_methods_that_do_not_cover_weights_say_what_does(method):
    message = rf"^method='{method}' does not cover sample_weight; use method='adaptive', .*or Tally\.from_counts if"
    with refused(message):
        certify(TRUE, PROB, max_error=0.1, method=method, sample_weight=WEIGHT)
    with refused(message):
        confidence_interval(Tally.from_arrays(TRUE, PROB, sample_weight=WEIGHT), method=method)
    for harmless in (np.ones(1500), None):  # weights of 1 are no weights
        assert certify(TRUE, PROB, max_error=0.1, method=method, sample_weight=harmless).rows == 1500


@EVERY_METHOD
def test_fractions_are_covered_by_all_but_the_exact_method(method):
    if method == "exact":
        with refused(r"^method='exact' needs outcomes of 0 or 1, and y_true holds fractions; use .*, or 'normal'"):
            certify(FRACTION, PROB, max_error=0.1, method=method)
        return
    found = certify(FRACTION, PROB, max_error=0.1, method=method)
    assert found.estimate == calibrant.cutoff_calibration_error(FRACTION, PROB)
    if method in ("adaptive", "normal"):  # half the residuals: a quarter of the variance
        assert found.upper - found.estimate < 0.7 * (certify(TRUE, PROB, max_error=0.1, method=method).upper)


@pytest.mark.parametrize("method", GENERAL)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unit weights", "weights"])
def test_weights_of_any_variation_have_the_limits_of_the_ece(method, weight):
    # Whose lower limit is the Cutoff error's: deviations of such weights have no bound.
    same = {"method": method, "sample_weight": weight}
    for max_error in (0.01, 0.2):
        any_variation = certify(
            TRUE, LEVELS**4, measure="bounded_variation", variation=math.inf, max_error=max_error, **same
        )
        ece = certify(TRUE, LEVELS**4, measure="ece", max_error=max_error, **same)
        assert limits(any_variation)[0] == pytest.approx(ece.estimate, rel=1e-12)
        assert any_variation.upper == pytest.approx(ece.upper, rel=1e-12)
        assert (any_variation.verdict, any_variation.rows_needed) == (ece.verdict, ece.rows_needed)
        if method != "adaptive":  # which names weights on one half of the rows and tests them on the other
            assert any_variation.lower == pytest.approx(ece.lower, rel=1e-12)


def test_larger_weight_classes_have_larger_limits():
    uppers = [
        certify(TRUE, PROB, max_error=0.1, measure="bounded_variation", variation=variation).upper
        for variation in (0, 1, 2, 8)
    ]
    assert uppers == sorted(uppers)
    assert len(set(uppers)) == 4


def test_the_distance_says_what_its_numbers_are():
    found = certify(TRUE, PROB**4, max_error=0.05, measure="distance")
    smooth = certify(TRUE, PROB**4, max_error=0.05, measure="smooth")
    assert found.estimate == smooth.estimate
    (note,) = found.notes
    bins = math.ceil(1500 ** (1 / 3))
    assert note == (
        "the estimate is the smooth calibration error; the lower limit comes from the mean bias or from smooth "
        f"weights, the upper limit is that of the error of {bins} bins plus that of the mean distance between "
        "forecasts and the mean of their bin"
    )
    binned = calibrant.expected_calibration_error(TRUE, PROB, n_bins=bins)
    hoeffding = confidence_interval(TRUE, PROB, measure="distance", method="hoeffding", alternative="less")
    spread = spread_upper(Tally.from_arrays(TRUE, PROB), bins, 0.02 * 0.05)
    assert 1 / (4 * bins) < spread < 0.85 / (2 * bins)
    assert hoeffding.upper == pytest.approx(binned + math.sqrt(2 * math.log(1 / (0.98 * 0.05)) / 1500) + spread)
    undecided = certify(TRUE, PROB, max_error=0.05, measure="distance")
    assert (undecided.verdict, undecided.rows_needed) == ("undecided", None)


@pytest.mark.parametrize("kind", KINDS)
def test_by_splitting_the_distance_is_at_least_nearly_all_of_the_bias(kind):
    outcome, weight = KINDS[kind]
    tally = Tally.from_arrays(outcome, PROB**2, sample_weight=weight)
    smooth, distance = (
        confidence_interval(tally, measure=measure, alternative="greater").lower for measure in ("smooth", "distance")
    )
    assert 0.9 * smooth < distance < abs(tally.residual_total) / tally.weight_total  # and not half of the smooth error


@pytest.mark.parametrize(("kind", "method"), list(itertools.product(KINDS, GENERAL)))
def test_the_distance_is_at_least_what_the_best_class_of_weights_says(kind, method, monkeypatch):
    monkeypatch.setattr("calibrant.certificates.methods.adaptive.SPLIT_BELOW_ROWS", 0)
    outcome, weight = KINDS[kind]
    tally = Tally.from_arrays(outcome, PROB**2, sample_weight=weight)
    found = confidence_interval(tally, measure="distance", method=method, alternative="greater").lower
    bias = abs(tally.residual_total) / tally.weight_total
    each = 0.05 / 2
    if method == "adaptive":
        low, high = betting.mean_limits(tally, each / 2)
        by_bias, margin = max(low, -high), margins.uniform_lower_margin(tally, each, 2.0)
    elif method == "hoeffding":
        by_bias = bias - math.sqrt(2 * math.log(2 / each) / effective_rows(tally))
        margin = margins.hoeffding_lower_margin(tally, each, 2.0)
    else:
        by_bias = bias - normal_margin(tally, each / 2)
        margin = 2.0 * normal_lower_margin(tally, each)
    steep = 2.0 * calibrant.smooth_calibration_error(tally) - bias
    assert found == pytest.approx(max(by_bias, (steep - margin) / 3.0), rel=1e-9)
    assert found > 0.0


def test_an_ece_certificate_needs_forecasts_that_repeat():
    assert certify(TRUE, LEVELS, max_error=0.1, measure="ece")  # a warning would fail this test
    functions: list[Any] = [lambda *rows, **how: certify(*rows, max_error=0.1, **how), confidence_interval]
    for function in functions:
        with pytest.warns(CalibrationWarning, match="no ECE certificate is possible.*measures noise") as caught:
            found = function(TRUE, PROB, measure="ece")
        assert [str(each.message) for each in caught] == list(found.notes)
        assert caught[0].filename == __file__  # it points at the caller's line
        assert found.upper > 0.3
    with pytest.warns(CalibrationWarning, match="no ECE certificate") as caught:
        grouped = certify(TRUE, PROB, max_error=0.1, measure="ece", by=SITE)
    assert [str(each.message) for each in caught] == [note for each in grouped.certificates for note in each.notes]


def test_rows_outside_of_a_group_do_not_make_its_forecasts_repeat():
    group = np.arange(TRUE.size) % 4
    found = quietly(certify, TRUE, PROB, max_error=0.2, measure="ece", groups={"part": group})
    for each in found.certificates:
        (note,) = each.notes
        assert note.startswith("no ECE certificate is possible here, the limit is true but useless: ")
        assert "rows (not counting forecasts of 0 and 1 that all came true) share theirs" in note
    assert certify(TRUE, LEVELS, max_error=0.2, measure="ece", groups={"part": group}).certificates[0].notes == ()


def test_the_lower_limit_of_the_ece_is_that_of_the_cutoff_error():
    ece, cutoff = (certify(TRUE, LEVELS**3, max_error=0.3, measure=measure) for measure in ("ece", "cutoff"))
    assert ece.lower == cutoff.lower > 0.0
    assert ece.estimate > cutoff.estimate


def test_more_rows_never_refute_by_the_ece_what_the_cutoff_error_does_not():
    undecided = quietly(certify, TRUE, PROB, max_error=0.05, measure="ece")
    assert (undecided.verdict, undecided.rows_needed) == ("undecided", None)


def test_few_squared_residuals_are_flagged_for_the_large_sample_method_only():
    for method in NAMES:
        notes = certify(TRUE[:60], PROB[:60], max_error=0.1, method=method).notes
        if method == "normal":
            (note,) = notes
            assert "add up to" in note
            assert "below 50: too few for a large-sample limit" in note
        else:
            assert notes == ()
    assert certify(TRUE, PROB**4, max_error=0.1, method="normal").notes == ()


# --- Rows, weights and counts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "method"), COVERED, ids=map(" ".join, COVERED))
def test_a_tally_gives_what_its_arrays_give(kind, method):
    y_true, weight = KINDS[kind]
    tally = Tally.from_arrays(y_true, LEVELS, sample_weight=weight)
    for measure in (measure for covered, measure in ALLOWED if covered == method):
        options = {"max_error": 0.1, "method": method, "measure": measure}
        assert certify(y_true, LEVELS, sample_weight=weight, **options) == certify(tally, **options)


@EVERY_ALLOWED
def test_counts_are_rows(method, measure):
    y_true = np.repeat([1, 0, 1, 0, 1, 0], [85, 315, 141, 159, 236, 64])
    listed = certify(y_true, np.repeat([0.2, 0.5, 0.8], [400, 300, 300]), max_error=0.1, method=method, measure=measure)
    assert listed == certify(COUNTS, max_error=0.1, method=method, measure=measure)
    assert listed.rows == listed.n_eff == 1000


@pytest.mark.parametrize("power", [1, 6], ids=["even", "crowded"])
@pytest.mark.parametrize(("kind", "method"), COVERED, ids=map(" ".join, COVERED))
def test_many_rows_give_the_same_without_sorting(monkeypatch, kind, method, power):
    (y_true, weight), y_prob = KINDS[kind], PROB**power
    sorted_rows = certify(y_true, y_prob, max_error=0.05, method=method, sample_weight=weight)
    monkeypatch.setattr("calibrant.rows.intake.SORT_BELOW_ROWS", 0)
    added_up = certify(y_true, y_prob, max_error=0.05, method=method, sample_weight=weight)
    assert limits(added_up) == pytest.approx(limits(sorted_rows), abs=1e-12)
    assert (added_up.verdict, added_up.rows, added_up.worst_interval.low) == (
        sorted_rows.verdict,
        sorted_rows.rows,
        sorted_rows.worst_interval.low,
    )
    assert added_up.n_eff == pytest.approx(sorted_rows.n_eff)


def test_more_than_a_hundred_thousand_rows_give_what_their_tally_gives():
    rng = np.random.default_rng(5)
    y_prob = rng.beta(0.5, 5.0, 120_000)
    y_true = rng.random(120_000) < y_prob
    for method in NAMES:
        whole = certify(y_true, y_prob, max_error=0.01, method=method)
        tally = certify(Tally.from_arrays(y_true, y_prob), max_error=0.01, method=method)
        assert limits(whole) == pytest.approx(limits(tally), abs=1e-12)
        assert whole.verdict == tally.verdict


def test_rows_of_weight_0_are_left_out_with_and_without_sorting(monkeypatch):
    mask = (WEIGHT > 0.5).astype(float)
    kept = certify(TRUE[WEIGHT > 0.5], PROB[WEIGHT > 0.5], max_error=0.05)
    assert limits(certify(TRUE, PROB, max_error=0.05, sample_weight=mask)) == limits(kept)
    monkeypatch.setattr("calibrant.rows.intake.SORT_BELOW_ROWS", 0)
    assert limits(certify(TRUE, PROB, max_error=0.05, sample_weight=mask)) == pytest.approx(limits(kept), abs=1e-12)


@pytest.mark.parametrize("method", GENERAL)
def test_weights_are_not_repetitions(method):
    options = {"max_error": 0.1, "method": method}
    once = certify(TRUE, PROB, **options)
    doubled = certify(TRUE, PROB, sample_weight=np.full(1500, 2.0), **options)
    repeated = certify(np.repeat(TRUE, 2), np.repeat(PROB, 2), **options)
    assert doubled.estimate == pytest.approx(once.estimate, abs=1e-12)
    assert (doubled.rows, doubled.n_eff) == (1500, pytest.approx(1500))
    assert (repeated.rows, repeated.n_eff) == (3000, 3000)
    assert repeated.upper < once.upper
    assert limits(doubled) == pytest.approx(limits(once), abs=1e-12)
    counted = certify(Tally.from_arrays(TRUE, PROB, sample_weight=np.full(1500, 2.0)), **options)
    assert limits(counted) == pytest.approx(limits(once), abs=1e-12)


@pytest.mark.parametrize("method", GENERAL)
def test_the_size_of_the_weights_does_not_matter(method):
    small, large = (
        certify(TRUE, PROB**2, max_error=0.1, method=method, sample_weight=factor * WEIGHT) for factor in (1e-6, 1e9)
    )
    assert limits(small) == pytest.approx(limits(large), abs=1e-9)
    assert small.n_eff == pytest.approx(large.n_eff)


class Tensor:
    """What torch's tensors with a gradient look like to numpy."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def detach(self):
        return self.values

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


@pytest.mark.parametrize("kind", [list, pd.Series, pl.Series, pa.array, Tensor], ids=lambda kind: kind.__name__)
def test_rows_and_groups_come_in_any_container(kind):
    expected = certify(TRUE, PROB, max_error=0.05, by=SITE, sample_weight=WEIGHT)
    given = [kind(values.tolist()) for values in (TRUE, PROB, SITE, WEIGHT)]
    assert certify(given[0], given[1], max_error=0.05, by=given[2], sample_weight=given[3]) == expected
    bands = risk_bands(given[0], given[1], cutoffs=kind([0.25, 0.75]))
    assert bands == risk_bands(TRUE, PROB, cutoffs=[0.25, 0.75])


def test_outcomes_may_be_labels():
    labels = np.where(TRUE, "late", "fine")
    named: dict[str, Any] = {"pos_label": "late"}
    assert certify(labels, PROB, max_error=0.05, **named) == certify(TRUE, PROB, max_error=0.05)
    assert confidence_interval(labels, PROB, **named) == confidence_interval(TRUE, PROB)
    assert risk_bands(labels, PROB, cutoffs=[0.5], **named) == risk_bands(TRUE, PROB, cutoffs=[0.5])
    other = certify(labels, 1 - PROB, max_error=0.05, pos_label="fine")
    assert other.estimate == pytest.approx(certify(TRUE, PROB, max_error=0.05).estimate, abs=1e-12)


TINY = {
    "one row": ([1], [0.3]),
    "one certain row": ([1], [1.0]),
    "one row that cannot be": ([1], [0.0]),
    "two rows": ([1, 0], [0.3, 0.6]),
    "two ties": ([1, 0], [0.5, 0.5]),
    "all ties": ([1, 0, 0, 1] * 20, [0.5] * 80),
    "all forecasts 0": ([0] * 40, [0.0] * 40),
    "all forecasts 1": ([1] * 40, [1.0] * 40),
    "0 and 1, right": ([0, 1] * 20, [0.0, 1.0] * 20),
    "0 and 1, wrong": ([1, 0] * 20, [0.0, 1.0] * 20),
    "all events": ([1] * 40, [0.5] * 40),
    "smallest forecasts": ([0, 1, 0], [5e-324, 1e-300, 0.0]),
}


@EVERY_ALLOWED
@pytest.mark.parametrize("rows", TINY.values(), ids=TINY.keys())
def test_tiny_and_extreme_inputs_have_limits_too(rows, method, measure):
    found = quietly(certify, *rows, max_error=0.05, method=method, measure=measure)
    assert 0.0 <= found.lower <= found.upper <= 1.0
    assert found.estimate <= found.upper + 1e-12
    assert found.rows == len(rows[0])
    assert "nan" not in str(found)
    if len(rows[0]) < 40 and method != "normal":  # no proof decides anything from so little
        assert found.verdict == "undecided"


def test_forecasts_that_are_wrong_for_certain_are_refuted():
    for method in NAMES:
        found = certify([1, 0] * 5000, [0.0, 1.0] * 5000, max_error=0.1, method=method)
        assert (found.estimate, found.verdict) == (0.5, "refuted")


# --- One look: levels, sides and seeds --------------------------------------------------------------------------------


@EVERY_ALLOWED
def test_two_sided_limits_are_one_sided_ones_at_half_the_error_probability(method, measure):
    how = {"method": method, "measure": measure}
    both = confidence_interval(TRUE, LEVELS**2, confidence_level=0.9, **how)
    less, greater = (
        confidence_interval(TRUE, LEVELS**2, confidence_level=0.95, alternative=side, **how)
        for side in ("less", "greater")
    )
    assert (both.alternative, less.alternative, greater.alternative) == ("two-sided", "less", "greater")
    # 1 - 0.9 and 2 (1 - 0.95) are not the same number to the last digit
    assert (both.lower, both.upper) == pytest.approx((greater.lower, less.upper), rel=1e-12)
    assert (less.lower, greater.upper) == (0.0, 1.0)
    assert less.estimate == greater.estimate == both.estimate


@pytest.mark.parametrize("method", [method for method in METHODS if method != "adaptive"])
def test_more_confidence_means_wider_limits(method):
    levels = [0.75, 0.76, 0.8, 0.9, 0.949, 0.95, 0.951, 0.99, 0.9999, 1 - 1e-12]
    found = [confidence_interval(TRUE, PROB**3, method=method, confidence_level=level) for level in levels]
    uppers, lowers = [each.upper for each in found], [each.lower for each in found]
    assert uppers == sorted(uppers)
    assert lowers == sorted(lowers, reverse=True)


def test_much_more_confidence_means_wider_adaptive_limits():
    # More confidence also widens the interval for the variance, so that a hair of it can mean a hair less width.
    for rows in ((TRUE, PROB**3), (FRACTION, PROB**3), (TRUE[:80], PROB[:80])):
        found = [confidence_interval(*rows, confidence_level=level) for level in (0.5, 0.8, 0.95, 0.99, 0.9999)]
        assert [each.upper for each in found] == sorted(each.upper for each in found)
        assert [each.lower for each in found] == sorted((each.lower for each in found), reverse=True)


def test_the_seed_decides_the_lower_limit_of_the_adaptive_method_and_nothing_else():
    found = {seed: certify(TRUE, PROB**2, max_error=0.05, rng=seed) for seed in range(4)}
    assert found[0] == certify(TRUE, PROB**2, max_error=0.05)
    drawn = int(np.random.default_rng(3).integers(2**63))  # a generator gives a seed
    assert certify(TRUE, PROB**2, max_error=0.05, rng=drawn) == certify(
        TRUE, PROB**2, max_error=0.05, rng=np.random.default_rng(3)
    )
    assert len({each.lower for each in found.values()}) == 4
    assert len({each.upper for each in found.values()}) == 1
    for method in set(NAMES) - {"adaptive"}:
        one, other = (certify(TRUE, PROB**2, max_error=0.05, method=method, rng=seed) for seed in (0, 1))
        assert one == other
    assert len({certify(TRUE, PROB**2, max_error=0.05, rng=None).lower for _ in range(3)}) == 3


def test_a_generator_moves_on():
    generator = np.random.default_rng(3)
    one, other = (certify(TRUE, PROB**2, max_error=0.05, rng=generator).lower for _ in range(2))
    assert one != other


@pytest.mark.parametrize("method", ["adaptive", "normal"])
def test_about_the_rows_said_to_be_needed_usually_decide(method):
    rng = np.random.default_rng(8)
    decided = []
    for _ in range(40):
        y_prob = rng.random(500)
        first = certify(rng.random(500) < y_prob, y_prob, max_error=0.04, method=method)
        if first.rows_needed is not None and first.rows_needed < 100_000:
            assert first.rows_needed > 500
            fresh = rng.random(first.rows_needed)
            decided.append(certify(rng.random(fresh.size) < fresh, fresh, max_error=0.04, method=method).verdict)
    assert len(decided) >= 20
    assert decided.count("certified") >= 0.7 * len(decided)
    assert "refuted" not in decided


def test_the_rows_needed_to_refute_are_said_too():
    found = certify(TRUE[:60], PROB[:60] ** 3, max_error=0.12)
    assert found.estimate > 0.12
    assert found.verdict == "undecided"
    assert found.rows_needed is not None
    assert 60 < found.rows_needed < 5000
    assert certify(TRUE, PROB**3, max_error=0.12).verdict == "refuted"


def test_no_number_of_rows_decides_when_the_estimate_equals_the_limit():
    estimate = certify(TRUE, PROB, max_error=0.1).estimate
    assert certify(TRUE, PROB, max_error=estimate).rows_needed is None


def test_the_rows_needed_are_two_digits_and_none_beyond_a_hundred_times_these():
    estimate = certify(TRUE, PROB**2, max_error=0.5).estimate
    found = [certify(TRUE, PROB**2, max_error=estimate * share).rows_needed for share in np.linspace(1.0, 1.2, 81)]
    numbers = [each for each in found if each is not None]
    assert found[0] is found[1] is None
    assert 50 * TRUE.size < max(numbers) <= 101 * TRUE.size
    assert all(str(each)[2:].strip("0") == "" for each in numbers)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_error": None}, r"^max_error must be a number, got None of type NoneType"),
        ({"max_error": "5%"}, r"^max_error must be a number, got '5%' of type str"),
        ({"max_error": True}, r"^max_error must be a number, got True of type bool"),
        ({"max_error": [0.05]}, r"^max_error must be a number, got \[0\.05\] of type list"),
        ({"max_error": -0.01}, r"^max_error must be a number from 0 to 1, got -0\.01"),
        ({"max_error": 5}, r"^max_error must be a number from 0 to 1, got 5"),
        ({"max_error": math.nan}, r"^max_error must be a number from 0 to 1, got nan"),
        ({"confidence_level": None}, r"^confidence_level must be a number, got None"),
        ({"confidence_level": True}, r"^confidence_level must be a number, got True of type bool"),
        (
            {"confidence_level": math.nan},
            r"^confidence_level must be from 0\.5 to below 1, got nan; 0\.95 means wrong in",
        ),
        ({"confidence_level": np.float32("nan")}, r"^confidence_level must be from 0\.5 to below 1, got "),
        ({"confidence_level": -math.inf}, r"^confidence_level must be from 0\.5 to below 1, got -inf; 0\.95 means"),
        (
            {"confidence_level": -0.5},
            r"^confidence_level must be from 0\.5 to below 1, got -0\.5; 0\.95 means wrong in",
        ),
        ({"confidence_level": 95}, r"^confidence_level is 95; write 0\.95 for 95%"),
        ({"confidence_level": 99.9}, r"^confidence_level is 99\.9; write 0\.999 for 99\.9%"),
        ({"confidence_level": 100}, r"^confidence_level must be from 0\.5 to below 1, got 100;"),
        ({"confidence_level": 1}, r"^confidence_level must be from 0\.5 to below 1, got 1;"),
        ({"confidence_level": 1 + 2**-52}, r"^confidence_level must be from 0\.5 to below 1, got 1\.0000000000000002;"),
        (
            {"confidence_level": 0.05},
            r"^confidence_level must be from 0\.5 .*got 0\.05; 0\.95 means wrong in at most",
        ),
        (
            {"confidence_level": 0.7, "method": "exact"},
            r"^method='exact' needs a confidence_level of at least 0\.75",
        ),
        ({"method": "Adaptive"}, r"^method must be one of 'adaptive', 'exact', 'normal', 'hoeffding', 'paper', got 'A"),
        ({"method": None}, r"^method must be one of .*, got None"),
        (
            {"measure": "ks"},
            r"^measure must be one of 'cutoff', 'smooth', 'bounded_variation', 'distance', 'ece', 'risk_gap', got",
        ),
        ({"measure": "bounded_variation", "variation": -1}, r"^variation must be a number from 0 to inf, got -1"),
        ({"variation": "2"}, r"^variation must be a number, got '2' of type str"),
        ({"rng": "0"}, r"^rng must be None, a whole number .*, got '0'"),
        ({"rng": -1}, r"^rng must be None, a whole number .*, got -1"),
        ({"rng": True}, r"^rng must be None, a whole number .*, got True"),
    ],
    ids=str,
)
def test_options_that_do_not_fit_are_refused(options, message):
    with refused(message):
        certify(TRUE, PROB, **{"max_error": 0.05, **options})
    if "max_error" not in options:
        with refused(message):
            confidence_interval(TRUE, PROB, **options)


@pytest.mark.parametrize("alternative", ["greater-than", "two_sided", None, 1])
def test_an_unknown_alternative_is_refused(alternative):
    with refused(r"^alternative must be one of 'two-sided', 'less', 'greater', got"):
        confidence_interval(TRUE, PROB, alternative=alternative)


def test_the_limit_must_be_said():
    nothing: dict[str, Any] = {}
    with pytest.raises(TypeError, match="max_error"):
        certify(TRUE, PROB, **nothing)


# --- Words ------------------------------------------------------------------------------------------------------------


def test_a_certified_error_reads_well():
    assert certify(COUNTS, max_error=0.05, method="exact").sentences() == [
        "Certified: with 95% confidence the Cutoff calibration error of these forecasts is at most 0.05. On no "
        "interval of forecasts do events and forecasts differ by more than 5 per 100 rows.",
        "Estimate 0.0130, and with 90% confidence at most 0.0344 (1,000 rows, exact method).",
        "No interval is off by more than chance shows. The largest deviation is on forecasts between 0.5 and 0.8 "
        "(60.0% of all rows): 2.2 points too high.",
        "This assumes that given their forecasts the outcomes are independent; forecaster, limit, method and level "
        "were fixed without looking at these outcomes.",
    ]


def test_a_refuted_error_reads_well():
    # (8000 x 0.38 + 4000 x 0.0075) / 20000, minus 3 sqrt(ln(200 e) / 40000)
    assert certify(SURE_OF_ITSELF, max_error=0.05, confidence_level=0.99, method="hoeffding").sentences() == [
        "Refuted: with 99% confidence the Cutoff calibration error of the population is above 0.05. On some interval "
        "of forecasts events and forecasts differ by more than 5 per 100 rows.",
        "Estimate 0.1535, and with 98% confidence at least 0.1158 (20,000 rows, hoeffding method).",
        "Forecasts between 0.02 and 0.5 (60.0% of all rows) are 25.6 points too low on average: 15.35 per 100 rows.",
        "This assumes that the rows are independent draws from the population; forecaster, limit, method and level "
        "were fixed without looking at these rows.",
    ]


def test_a_verdict_at_50_percent_shows_no_number_that_would_hold_with_0_percent():
    certified = certify(COUNTS, max_error=0.05, confidence_level=0.5)
    assert certified.finding().startswith(
        "Certified: with 50% confidence the Cutoff calibration error of the population is at most 0.05."
    )
    assert certified.numbers() == "Estimate 0.0130 (1,000 rows, adaptive method)."


def test_an_undecided_error_reads_well():
    # sqrt(2 ln 20 / 1000) with 1.28 standard errors on top, divided by 0.05 - 0.013, squared: 6,618, in two digits
    finding, numbers, *_ = certify(COUNTS, max_error=0.05, method="hoeffding").sentences()
    assert finding == (
        "Undecided: these rows do not show whether the Cutoff calibration error of the population is above or below "
        "0.05."
    )
    assert numbers == (
        "Estimate 0.0130, from 0.0000 to 0.0905, each limit with 95% confidence (1,000 rows, hoeffding method). About "
        "6,700 fresh rows would decide it if the error is as estimated."
    )


@pytest.mark.parametrize(
    ("alternative", "said"),
    [
        ("two-sided", "lies between 0.11870 and 0.17271"),
        ("less", "is at most 0.17081"),
        ("greater", "is at least 0.12101"),
    ],
)
def test_a_confidence_interval_reads_well(alternative, said):
    assert str(confidence_interval(SURE_OF_ITSELF, method="hoeffding", alternative=alternative)) == (
        f"With 95% confidence the Cutoff calibration error of the population {said} (estimate 0.15350, 20,000 rows, "
        "hoeffding method).\nThis assumes that the rows are independent draws from the population; forecaster, limit, "
        "method and level were fixed without looking at these rows."
    )


@EVERY_ALLOWED
@pytest.mark.parametrize("max_error", [0.0, 0.05, 1.0])
def test_every_certificate_is_a_few_sentences_with_its_cautions_and_notes(method, measure, max_error):
    found = quietly(certify, TRUE[:70], PROB[:70], max_error=max_error, method=method, measure=measure)
    finding, numbers, where, *rest = str(found).splitlines()
    cautions = [f"Caution: {caution}" for caution in found.cautions]
    assert rest[: len(cautions)] == cautions
    assert rest[len(cautions)].startswith("This assumes that ")
    assert rest[len(cautions) + 1 :] == [f"Note: {note}" for note in found.notes]
    assert len(cautions) == (max_error == 1.0)
    assert finding.startswith(f"{found.verdict.capitalize()}: ")
    assert numbers.startswith("Estimate ")
    assert where == (found.worst_interval.where() if found.saving is None else str(found.saving))
    for sentence in (finding, numbers, where, *cautions):
        assert sentence.endswith(".")
        assert max(len(part.split()) for part in sentence.split(". ")) <= 30
    assert f"{found.verdict.capitalize()}: " in found._repr_html_()


@pytest.mark.parametrize(
    ("level", "text"),
    [(0.95, "95%"), (0.975, "97.5%"), (0.999, "99.90%"), (0.99999, "99.999%"), (1 - 1e-12, "99.9999999999%")],
)
def test_no_confidence_reads_like_certainty(level, text):
    for found in (
        certify(COUNTS, max_error=0.9, confidence_level=level),
        confidence_interval(COUNTS, confidence_level=level),
        risk_bands(COUNTS, cutoffs=[0.5], confidence_level=level),
    ):
        assert f"with {text} confidence" in str(found).replace("With", "with")


def test_one_row_is_not_called_rows():
    assert "(1 row, adaptive method)" in str(certify([1], [0.3], max_error=0.1))
    assert "(1 row)" in str(risk_bands([1], [0.3], cutoffs=[0.5]))
    assert "(1 group, adaptive method)" in str(certify(TRUE, PROB, max_error=0.1, by=["all"] * 1500))


# --- Groups -----------------------------------------------------------------------------------------------------------


def test_every_group_has_a_certificate_of_its_own():
    grouped = certify(TRUE, PROB, max_error=0.06, by=SITE)
    assert grouped.groups == ("north", "south")
    for name, upper in zip(grouped.groups, grouped.upper, strict=True):
        members = name == SITE
        alone = certify(TRUE[members], PROB[members], max_error=0.06, confidence_level=0.975)
        one = grouped[name]
        assert (one.rows, one.estimate, one.upper) == (
            alone.rows,
            alone.estimate,
            pytest.approx(alone.upper, rel=1e-12),
        )
        assert one.confidence_level == pytest.approx(0.975)  # true for both groups together with 95%
        assert upper == pytest.approx(certify(TRUE[members], PROB[members], max_error=0.06).upper, rel=1e-12)
    with pytest.raises(KeyError, match="east"):
        _ = grouped["east"]
    assert list(grouped) == ["north", "south"]
    assert len(grouped) == 2
    assert "south" in grouped
    assert "east" not in grouped


def test_a_joint_verdict_pays_nothing_for_the_number_of_groups_where_it_certifies():
    whole = certify(TRUE, PROB, max_error=0.06, by=SITE)
    between = max(whole.upper) + 1e-6
    assert between < max(each.upper for each in whole.certificates)
    grouped = certify(TRUE, PROB, max_error=between, by=SITE)
    assert (grouped.verdict, bool(grouped)) == ("certified", True)
    assert "undecided" in [each.verdict for each in grouped.certificates]
    names = [name for name, each in grouped.pairs() if each.verdict == "undecided"]
    assert grouped.one_by_one() == [
        "Certified is about all groups at once, which needs no correction for their number; one by one, with limits "
        f"that must hold together, {', '.join(names)} {'are' if len(names) > 1 else 'is'} undecided. Both hold."
    ]
    assert grouped.one_by_one()[0] in str(grouped)
    assert certify(TRUE, PROB, max_error=0.3, by=SITE).one_by_one() == []
    below = certify(TRUE, PROB, max_error=max(whole.upper) - 1e-6, by=SITE)
    assert (below.verdict, bool(below), below.one_by_one()) == ("undecided", False, [])


def test_groups_share_the_smallest_delta_and_stay_below_full_confidence():
    y, p = np.tile([0, 1], 400), np.full(800, 0.5)
    for method in NAMES:
        found = certify(y, p, by=np.repeat(["a", "b"], 400), max_error=0.5, confidence_level=1 - 2**-53, method=method)
        assert [each.confidence_level for each in found.certificates] == [1 - 2**-53] * 2


def test_one_bad_group_refutes_all_and_is_named():
    y_prob = np.where(SITE == "south", PROB**4, PROB)
    grouped = certify(TRUE, y_prob, max_error=0.05, by=SITE)
    assert (grouped.verdict, bool(grouped)) == ("refuted", False)
    assert grouped["north"].verdict != "refuted"
    first = str(grouped).splitlines()[0]
    assert first == (
        "Refuted: with 95% confidence the Cutoff calibration error is above 0.05 in south (2 groups, adaptive method)."
    )


def test_groups_read_as_a_table():
    tidy = certify(TRUE, PROB, max_error=0.05, by=SITE, method="normal")
    lines = str(tidy).splitlines()
    assert lines[0] == (
        f"{tidy.verdict.capitalize()}: with 95% confidence the Cutoff calibration error of every group is at most 0.05 "
        "(2 groups, normal method)."
    )
    assert lines[1].startswith("This assumes that the rows are independent draws")
    assert lines[2] == (
        "Per group, verdicts that hold together with 95% confidence (and so do all upper limits, and all lower ones):"
    )
    for name, line in zip(tidy.groups, lines[3:5], strict=True):
        one = tidy[name]
        words = line.split()
        assert words[:5] == [name, str(one.rows), "rows", "estimate", f"{one.estimate:.4f}"]
        assert words[-1] == one.verdict
        # Limits are rounded outwards: what is written holds too.
        assert one.lower - 1e-4 < float(words[6]) <= one.lower + 1e-9
        assert one.upper - 1e-9 <= float(words[8]) < one.upper + 1e-4
    assert "least settled" in str(certify(TRUE, PROB, max_error=0.01, by=SITE))


def test_what_is_to_be_kept_in_mind_for_a_group_is_said_for_all():
    y_prob, by = [0.5] * 400 + [0.9] * 40, ["many"] * 400 + ["few"] * 40
    grouped = certify([0, 1] * 200 + [1] * 36 + [0] * 4, y_prob, max_error=0.2, by=by, method="normal")
    assert grouped["many"].notes == ()
    (note,) = grouped["few"].notes
    assert str(grouped).splitlines()[-1] == f"Note on few: {note}"
    weights = [1.0] * 400 + [0.5, 1.5] * 20  # the first group, few, has them
    weighted = certify([0, 1] * 220, y_prob, max_error=0.2, by=[f"z{name}" for name in by], sample_weight=weights)
    assert "the weights were fixed beforehand" in str(weighted).splitlines()[1]
    looked = "the groups were chosen without looking at these rows (for groups found by looking nothing holds)"
    assert looked in str(grouped).splitlines()[1]


LABEL_KINDS = {
    "strings": (SITE, ("north", "south")),
    "list": (SITE.tolist(), ("north", "south")),
    "numpy strings in a list": (list(SITE), ("north", "south")),
    "objects": (SITE.astype(object), ("north", "south")),
    "pandas": (pd.Series(SITE, index=range(1500, 0, -1)), ("north", "south")),
    "pandas string": (pd.Series(SITE, dtype="string"), ("north", "south")),
    "categorical": (pd.Categorical(SITE, categories=["south", "north", "east"]), ("north", "south")),
    "polars categorical": (pl.Series(SITE, dtype=pl.Categorical), ("north", "south")),
    "arrow": (pa.array(SITE).dictionary_encode(), ("north", "south")),
    "booleans": (SITE == "south", (False, True)),
    "whole numbers": (np.where(SITE == "north", -3, 40), (-3, 40)),
    "whole numbers as objects": (np.where(SITE == "north", np.int64(-3), np.int64(40)).astype(object), (-3, 40)),
    "categories that are numbers": (pd.Categorical(np.where(SITE == "north", 2024, 2025)), (2024, 2025)),
    "floats": (np.where(SITE == "north", 0.5, 1.5), (0.5, 1.5)),
    "days": (np.where(SITE == "north", "2024-05-01", "2024-06-01").astype("M8[D]"), ("2024-05-01", "2024-06-01")),
    "an empty name": (np.where(SITE == "north", "", "south"), ("", "south")),
}


@pytest.mark.parametrize(("by", "groups"), LABEL_KINDS.values(), ids=LABEL_KINDS.keys())
def test_groups_may_be_named_in_many_ways(by, groups):
    grouped = certify(TRUE, PROB, max_error=0.06, by=by)
    assert grouped.groups == groups
    assert [type(name) for name in grouped.groups] == [type(name) for name in groups]
    assert grouped.certificates == certify(TRUE, PROB, max_error=0.06, by=SITE).certificates
    assert calibrant.certificates.GroupCertificates.from_json(grouped.to_json()) == grouped
    assert len(str(grouped).splitlines()) == 6  # the last one says which groups are undecided by themselves


def test_nanoseconds_name_groups_as_well():
    moments = pd.Series(pd.to_datetime(["2024-05-01", "2024-06-01"] * 750)).astype("M8[ns]")
    grouped = certify(TRUE, PROB, max_error=0.1, by=moments)
    assert [name[:10] for name in grouped.groups] == ["2024-05-01", "2024-06-01"]
    assert calibrant.certificates.GroupCertificates.from_json(grouped.to_json()) == grouped


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (["a", None, "b", "b"], r"^by\[1\] is missing; drop the row"),
        (["a", math.nan, "b", "b"], r"^by\[1\] is missing"),
        ([1.0, math.nan, 2.0, 2.0], r"^by\[1\] is missing"),
        (pd.Categorical(["a", None, "b", "b"]), r"^by\[1\] is missing"),
        (pd.Series(["a", pd.NA, "b", "b"], dtype="string"), r"^by\[1\] is missing"),
        (pl.Series(["a", None, "b", "b"]), r"^by\[1\] is missing"),
        (np.array(["2024-05-01", "NaT", "2024-05-01", "2024-05-01"], dtype="M8[D]"), r"^by\[1\] is missing"),
        (pd.Series(pd.to_datetime(["2024-05-01", None, "2024-05-01", "2024-05-01"])), r"^by\[1\] is missing"),
        ([1.0, math.inf, 2.0, 2.0], r"^by\[1\] is inf; every value must be finite"),
        (["a", "a", "b"], r"^by has 3 values for 4 rows; pass one label per row"),
        (["a", 1, "b", "b"], r"^by mixes labels that cannot be compared .*convert them to strings"),
        ([], r"^by is empty"),
        ("site", r"^by is one str, not an array; pass one value per row"),
        ([["a"], ["a"], ["b"], ["b"]], r"^by has shape \(4, 1\), not one dimension"),
        (pd.DataFrame({"site": list("aabb")}), r"^by has shape \(4, 1\), .*pass one column of the frame"),
    ],
    ids=repr,
)
def test_groups_that_cannot_be_told_are_refused(by, message):
    with refused(message):
        certify([0, 1, 1, 0], [0.1, 0.4, 0.6, 0.9], max_error=0.1, by=by)


def test_the_rows_of_groups_pass_the_same_gate():
    with refused(r"^y_prob\[1\] is missing"):
        certify([0, 1], np.array([0.1, None]), max_error=0.1, by=["a", "b"])
    with refused(r"^y_prob is missing"):
        certify([0, 1], max_error=0.1, by=["a", "b"])


@pytest.mark.parametrize("summary", [COUNTS, Cells.from_arrays(TRUE, PROB)], ids=["tally", "cells"])
def test_a_tally_can_no_longer_be_grouped(summary):
    with refused(r"^by was given together with a tally, whose rows can no longer be grouped; pass the arrays"):
        certify(summary, max_error=0.1, by=SITE)


def test_cells_are_too_coarse_for_a_certificate():
    for function in (confidence_interval, lambda rows: certify(rows, max_error=0.1)):
        with refused(r"^a Cells object holds totals .*pass a Tally, or the arrays"):
            function(Cells.from_arrays(TRUE, PROB))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"sample_weight": np.where(SITE == "south", 0.0, 1.0)},
            r"^by group 'south': sample_weight is zero everywhere",
        ),
        (
            {"sample_weight": WEIGHT, "method": "exact"},
            r"^by group 'north': method='exact' does not cover sample_weight",
        ),
    ],
    ids=["no weight", "method"],
)
def test_an_error_inside_a_group_names_the_group(options, message):
    with refused(message):
        certify(TRUE, PROB, max_error=0.1, by=SITE, **options)


def test_a_group_of_one_row_leaves_the_verdict_open():
    by = np.where(np.arange(1500) == 7, "single", "others")
    grouped = certify(TRUE, PROB, max_error=0.1, by=by)
    assert (grouped["others"].verdict, grouped["single"].verdict, grouped.verdict) == (
        "certified",
        "undecided",
        "undecided",
    )


def test_groups_make_a_frame():
    grouped = certify(TRUE, PROB, max_error=0.06, by=SITE)
    frame = grouped.frame()
    assert list(frame.columns) == ["group", "rows", "estimate", "lower", "upper", "verdict", "upper_for_joint_verdict"]
    assert frame["group"].tolist() == list(grouped.groups)
    assert frame["upper"].tolist() == [each.upper for each in grouped.certificates]
    assert frame["upper_for_joint_verdict"].tolist() == list(grouped.upper)
