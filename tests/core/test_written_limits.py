"""Every limit that is written is a limit too: upper ones are rounded up, lower ones and confidence levels down."""

import dataclasses
import math
import re

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from recalibration_cases import guarantee_of
from sklearn.linear_model import LogisticRegression

import calibrant
from calibrant import Tally
from calibrant.certificates.results import verdict_of
from calibrant.classifiers.targets import Event
from calibrant.core.words import level_said, rounded_down, rounded_up, significant_up
from calibrant.reports.views import view_of

NUMBER = r"([-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?)"
UNIT = st.floats(0.0, 1.0)
LEVEL = st.floats(0.5, 1.0, exclude_max=True)
Y_TRUE = [0, 0, 1, 0, 1, 1, 1, 0] * 5
Y_PROB = [0.25, 0.25, 0.25, 0.75, 0.75, 0.75, 0.5, 0.5] * 5


@pytest.fixture(scope="module")
def tally():
    return Tally.from_arrays(Y_TRUE, Y_PROB)


@pytest.fixture(scope="module")
def certificate(tally):
    return calibrant.certify(tally, max_error=0.9)


@pytest.fixture(scope="module")
def summary():
    return calibrant.CalibrationReport.from_predictions(Y_TRUE, Y_PROB, max_error=0.3).summary


def read(pattern, text):
    """The numbers that a text gives in the places marked # of a pattern."""
    parts = pattern.split("#")
    found = re.search(NUMBER.join(map(re.escape, parts)), text)
    assert found, f"{pattern!r} is not in {text!r}"
    return [float(number.replace(",", "").rstrip(".")) for number in found.groups()]


@given(st.floats(-1e6, 1e6), st.integers(0, 9))
@example(0.123449, 4)
@example(0.1, 1)
@example(0.12340000000000001, 4)
@example(5e-324, 4)
@example(-0.0, 4)
def test_numbers_are_rounded_outwards_by_less_than_one_digit(limit, digits):
    up, down = (float(rounding(limit, digits)) for rounding in (rounded_up, rounded_down))
    assert down <= limit <= up
    assert up - limit < 1.001 * 10.0**-digits + 1e-9
    assert limit - down < 1.001 * 10.0**-digits + 1e-9
    assert "-0.0" not in (rounded_up(-1e-12, 1), rounded_down(0.0, 1))


@given(st.floats(1e-300, 1e300), st.integers(1, 9))
def test_significant_digits_are_rounded_up(limit, digits):
    assert limit <= float(significant_up(limit, digits)) <= limit * (1.0 + 1.001 * 10.0 ** (1 - digits))


def test_what_needs_no_rounding_is_left_alone():
    assert (rounded_up(0.1), rounded_up(0.07, 2), rounded_down(0.29, 2), rounded_up(1.0)) == (
        "0.1000",
        "0.07",
        "0.29",
        "1.0000",
    )


@given(LEVEL)
@example(1.0 - 0.05 / 6.0)
@example(0.95)
@example(1.0 - 1e-9)
def test_confidence_levels_are_rounded_down(level):
    said = level_said(level)
    assert float(said.removesuffix("%")) <= 100.0 * level + 1e-9
    assert said != "100%"


@given(UNIT, UNIT, UNIT, UNIT, LEVEL)
@example(0.0, 0.0, 0.123449, 0.5, 0.95)
@example(0.0, 0.0, 0.12345678, 0.12345678, 0.95)
def test_a_certificate(certificate, one, other, third, max_error, level):
    lower, estimate, upper = sorted((one, other, third))
    verdict = verdict_of(lower, upper, max_error)
    changed = dataclasses.replace(
        certificate,
        lower=lower,
        estimate=estimate,
        upper=upper,
        max_error=max_error,
        verdict=verdict,
        confidence_level=level,
    )
    text = str(changed)
    number = ", and with #% confidence" if 1.0 - 2.0 * (1.0 - level) > 1e-11 else ""  # at 50% nothing is said of it
    if verdict == "certified":
        assert read("is at most #. On no interval", text)[0] == max_error
        assert not number or upper <= read(f"{number} at most # (", text)[1]
    elif verdict == "refuted":
        assert read("is above #. On some interval", text)[0] == max_error
        assert not number or read(f"{number} at least # (", text)[1] <= lower
    else:
        assert read("is above or below #.", text)[0] == max_error
        least, most = read("from # to #, each", text)
        assert least <= lower
        assert upper <= most
    said = read("Estimate #", text)[0]
    assert math.isclose(said, estimate, rel_tol=0.06, abs_tol=1e-12)


@given(UNIT, UNIT, st.sampled_from(["two-sided", "less", "greater"]))
def test_a_confidence_interval(tally, one, other, alternative):
    interval = calibrant.confidence_interval(tally)
    lower, upper = sorted((one, other))
    text = str(dataclasses.replace(interval, lower=lower, upper=upper, alternative=alternative))
    if alternative == "two-sided":
        least, most = read("lies between # and # (", text)
        assert least <= lower
        assert upper <= most
    elif alternative == "less":
        assert upper <= read("is at most # (", text)[0]
    else:
        assert read("is at least # (", text)[0] <= lower


@given(UNIT, UNIT, UNIT)
def test_groups(one, other, estimate):
    groups = calibrant.certify(Y_TRUE, Y_PROB, max_error=1.0, by=["a"] * 40)
    lower, upper = sorted((one, other))
    changed = dataclasses.replace(groups.certificates[0], lower=lower, upper=upper, estimate=estimate)
    least, most = read("from # to #", str(dataclasses.replace(groups, certificates=(changed,))))
    assert least <= lower
    assert upper <= most


@given(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0), UNIT)
def test_risk_bands(tally, one, other, inherited):
    bands = calibrant.risk_bands(tally, cutoffs=[0.99])
    lower, upper = sorted((one, other))
    changed = dataclasses.replace(
        bands, lower=np.full(2, lower), upper=np.full(2, upper), inherited=np.full(2, inherited)
    )
    _, least, most, most_inherited = read("%  #  #  #  <= #", str(changed).split("\n")[3])
    assert least <= lower
    assert upper <= most
    assert inherited <= most_inherited


@given(UNIT, UNIT)
def test_ends_that_contain_a_value(one, other):
    low, high = sorted((one, other))
    least, most = read("between # (a) and # (b)", str(calibrant.measures.CalibrationDistance(low, high, "a", "b")))
    assert least <= low
    assert high <= most
    bracket = calibrant.certificates.bracket(calibrant.Cells.from_arrays(Y_TRUE, Y_PROB))
    least, most = read("lies between # and # (", str(dataclasses.replace(bracket, low=low, high=high)))
    assert least <= low
    assert high <= most


@given(UNIT, UNIT)
def test_the_table_of_measures(tally, one, other):
    low, high = sorted((one, other))
    measures = calibrant.measure(tally)
    distance = dataclasses.replace(measures.distance, low=low, high=high)
    text = str(dataclasses.replace(measures, distance=distance))
    (written_low,) = re.findall(rf"distance\.low +{NUMBER} ", text)
    (written_high,) = re.findall(rf"distance\.high +{NUMBER} ", text)
    assert float(written_low) <= low
    assert high <= float(written_high)


@given(UNIT, UNIT, UNIT)
def test_the_guarantee_of_a_recalibrator(tally, one, other, paper):
    guarantee = guarantee_of(calibrant.PlattRecalibrator().fit(tally))
    error, bound = sorted((one, other))
    text = str(
        dataclasses.replace(guarantee, error=error, upper=bound, margin=bound - error, paper_upper=max(bound, paper))
    )
    most, more = read("is at most # in the population", text)[0], read("at most # more elsewhere", text)[0]
    assert bound <= most
    assert bound - error <= more
    assert max(bound, paper) <= read("with the paper's constants #)", text)[0]


@given(UNIT, UNIT)
def test_the_guarantee_of_a_recalibrator_for_these_forecasts(tally, one, other):
    guarantee = calibrant.PlattRecalibrator().fit(tally).guarantee(target="these forecasts")
    error, bound = sorted((one, other))
    text = str(dataclasses.replace(guarantee, error=error, upper=bound, margin=bound - error))
    assert bound <= read("is at most # for these forecasts", text)[0]
    assert bound - error <= read("at most # more if they were issued again", text)[0]


@given(st.integers(200, 10_000), st.integers(0, 20))
def test_the_promise_of_isotonic_regression_for_these_forecasts(rows, events):
    fitted = calibrant.IsotonicRecalibrator().fit(Tally.from_counts([0.1], [rows], [events]))
    guarantee = fitted.guarantee(target="these forecasts")
    assert guarantee.in_advance is not None
    if guarantee.upper < guarantee.in_advance:
        assert guarantee.in_advance <= read("a bound of # was promised", guarantee.promise)[0]
    else:
        assert guarantee.promise.startswith("this bound was promised")


@given(UNIT)
def test_the_promise_of_a_guard(tally, tolerance):
    guard = calibrant.GuardedRecalibrator([calibrant.repairs.ConstantRecalibrator()], tolerance=tolerance).fit(tally)
    assert tolerance <= read("the tolerance, which is at most #", guarantee_of(guard).promise)[0]


@given(UNIT, st.floats(1e-6, 1e9))
def test_the_guarantee_of_decisions(certificate, upper, cost):
    promise = calibrant.decision_guarantee(certificate)
    changed = dataclasses.replace(
        promise, nondecreasing=upper, upper=upper, cost_false_positive=cost, cost_false_negative=cost
    )
    most, most_cost = read("by more than # (# in cost units)", str(changed))
    assert upper <= most
    assert upper * 2.0 * cost <= most_cost
    assert upper <= read("error <= # (", str(changed))[0]


@given(UNIT)
def test_curves_of_risk(tally, top):
    curve = calibrant.decisions.risk_gap_curve(tally)
    assert top <= read("save more than # of", str(dataclasses.replace(curve, largest_gap=top)))[0]
    murphy = calibrant.decisions.murphy_curve(tally)
    assert top <= read("knots: at most #", str(dataclasses.replace(murphy, risk=murphy.risk * 0.0 + top)))[0] or (
        top < murphy.risk_right.max()
    )


@given(UNIT, UNIT, UNIT)
def test_the_words_of_a_report(summary, one, other, max_error):
    lower, upper = sorted((one, other))
    model = summary.models[0]
    verdict = verdict_of(lower, upper, max_error)
    certificate = dataclasses.replace(model.certificate, lower=lower, upper=upper, verdict=verdict, max_error=max_error)
    model = dataclasses.replace(model, certificate=certificate, verdict=verdict)
    view = view_of(model, dataclasses.replace(summary, models=(model,), verdict=verdict, max_error=max_error))
    least, most = read("at least # and at most #", view["limits"]["said"])
    assert least <= lower
    assert upper <= most
    assert float(view["bar"]["lower_said"]) <= lower
    assert upper <= float(view["bar"]["upper_said"])
    if verdict == "refuted":
        assert read("by more than # per 100", view["headline"].finding)[0] == pytest.approx(
            100.0 * max_error, rel=1e-15
        )
    elif verdict == "certified":
        assert read("by at most # per 100", view["headline"].finding)[0] == pytest.approx(100.0 * max_error, rel=1e-15)
    else:
        assert 100.0 * upper <= read("is at most # per 100", view["headline"].promise)[0]


@given(UNIT, UNIT, UNIT)
@example(0.0, 0.123449, 0.1)
def test_the_words_of_a_recalibrated_classifier(certificate, one, other, max_error):
    lower, upper = sorted((one, other))
    assume(verdict_of(lower, upper, max_error) != "certified")
    verdict = verdict_of(lower, upper, max_error)
    model = calibrant.RecalibratedClassifier(LogisticRegression(), max_error=max_error)
    model._targets = Event(np.array([0, 1]))
    changed = dataclasses.replace(certificate, lower=lower, upper=upper, max_error=max_error, verdict=verdict)
    text = model._certified(changed, 0.95)[0]
    if verdict == "refuted":
        assert read("is above # in the population", text)[0] == max_error
    else:
        assert upper <= read("is at most # in the population", text)[0]


def test_an_error_just_above_its_tolerance_reads_so():
    y_prob, y_true = [0.0, 0.25, 0.5, 1.0] * 100, [1, 0, 0, 1] * 100
    error = calibrant.PlattRecalibrator().fit(y_prob, y_true).fit_error_
    ladder = [calibrant.PlattRecalibrator(), calibrant.repairs.ConstantRecalibrator()]
    guard = calibrant.GuardedRecalibrator(ladder, tolerance=error - 1e-9).fit(y_prob, y_true)
    above, tolerated = read("error of # on the fitting rows is above the tolerance of #", guard.ladder_[0].reason)
    assert above > tolerated


def test_a_tiny_estimate_is_not_written_as_none():
    tiny = Tally.from_counts(forecast=[1e-7], rows=[10**6], events=[0])
    certificate = calibrant.certify(tiny, max_error=0.1)
    assert "Estimate 0.0000001," in str(certificate)
    assert "(estimate 0.0000001," in str(calibrant.confidence_interval(tiny))
