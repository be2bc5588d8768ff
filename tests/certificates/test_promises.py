"""What answers about several questions promise to whoever acts: nothing that their error does not bound."""

from typing import Any

import numpy as np
import pytest

from calibrant import calibration_test, certify, confidence_interval, measure, risk_bands, risk_gap
from calibrant.rows.questions import CUTOFF_OF_ROWS, KINDS, Promising

RNG = np.random.default_rng(0)
ROWS = 2000
HALF = RNG.random(ROWS) < 0.5
FIRST = np.where(HALF, 0.499, 0.501)  # a hair apart, and the wrong way round: no smooth weights see it
P = np.c_[FIRST, (1.0 - FIRST) * 0.6, (1.0 - FIRST) * 0.4]
Y = np.where(RNG.random(ROWS) < np.where(HALF, 0.9, 0.1), 0, np.where(RNG.random(ROWS) < 0.6, 1, 2))
LOSES = "loses at most this error per case to any re-drawn threshold"
RIGHT = "as many of them right as forecast, up to this error"


def asked_of(questions: Any, **asked: Any) -> str:
    return str(certify(Y, P, classes=[0, 1, 2], questions=questions, max_error=0.1, **asked)).replace("\n", " ")


@pytest.mark.parametrize("kind", ["smooth", "distance", "bounded_variation"])
def test_errors_that_do_not_bound_what_decisions_lose_promise_nothing(kind):
    for questions in ("classwise", "pairs", "subsets", "top_label", "confidence"):
        said = asked_of(questions, measure=kind)
        assert "Whoever" not in said
        assert "This says nothing of" in said
    said = str(confidence_interval(Y, P, classes=[0, 1, 2], questions="classwise", measure=kind))
    assert "Whoever" not in said
    assert "This says nothing of the top label" in said


def test_a_small_smooth_error_goes_with_a_large_loss():
    found = certify(Y, P, classes=[0, 1, 2], questions="classwise", measure="smooth", max_error=0.1)
    assert found.verdict == "certified"
    assert risk_gap(Y == 0, P[:, 0], threshold=0.5).gap > 0.15
    assert "Whoever" not in str(found)


@pytest.mark.parametrize("kind", ["cutoff", "ece"])
def test_errors_of_every_interval_promise_everything(kind):
    assert f"{LOSES}. This says nothing of the top label" in asked_of("classwise", measure=kind)
    assert RIGHT in asked_of("top_label", measure=kind)
    assert RIGHT in asked_of("confidence", measure=kind)


@pytest.mark.parametrize(
    ("threshold", "where"),
    [(None, ""), (0.5, ", at the threshold asked about"), ((0.2, 0.4), ", at the thresholds asked about")],
)
def test_a_risk_gap_promises_savings_where_it_was_asked_about_and_no_counts(threshold, where):
    asked: dict[str, Any] = {"measure": "risk_gap", "threshold": threshold}
    assert f"{LOSES}{where}. This says" in asked_of("classwise", **asked)
    for questions in ("confidence", "top_label"):
        assert "Whoever" not in asked_of(questions, **asked)


def test_a_risk_gap_of_masked_rows_promises_nothing_of_a_group():
    # All events of the group have forecast 0, where the rows outside are put too: acting on all of them saves nothing,
    # while acting on the group alone saves half a case for each of its rows.
    inside = np.arange(1000) < 300
    y, p = inside.astype(int), np.where(inside, 0.0, 0.01)
    asked: dict[str, Any] = {"groups": {"inside": inside}, "max_error": 0.1, "measure": "risk_gap", "threshold": 0.5}
    within, over_all = certify(y, p, scale="group", **asked), certify(y, p, scale="mass", **asked)
    assert over_all.estimate == 0.0
    assert within.estimate == pytest.approx(0.5)
    assert "recalibration" not in str(over_all)
    assert "re-drawn" in str(within)
    assert "recalibration of one group alone" in str(certify(y, p, groups={"inside": inside}, max_error=0.1))


def test_bands_and_tests_have_no_error_to_speak_of():
    questions: Any
    for questions in ("classwise", "confidence"):
        bands = risk_bands(Y, P, cutoffs=[0.5], classes=[0, 1, 2], questions=questions)
        tested = calibration_test(Y, P, classes=[0, 1, 2], questions=questions, n_resamples=99)
        assert "this error" not in f"{bands} {tested}"
        assert "This says nothing of" in str(bands)


def test_measures_beside_others_name_the_error_that_promises():
    questions: Any
    for questions in ("classwise", "confidence"):
        said = str(measure(Y, P, classes=[0, 1, 2], questions=questions))
        assert "the Cutoff error" in said
        assert "this error" not in said


def test_every_sentence_has_the_places_that_it_needs():
    for kind in KINDS.values():
        for error in (None, CUTOFF_OF_ROWS, Promising(savings=True, where=", at the thresholds asked about")):
            assert not any("{" in words for words in kind.said(error))
        assert not kind.promise or "{error}" in kind.promise
        assert not kind.promise or kind.by_intervals or "{where}" in kind.promise


def test_a_limit_as_a_share_of_events_is_named_in_shares_of_events():
    rng = np.random.default_rng(1)
    p = np.array([0.6, 0.15, 0.15, 0.1])
    y = rng.choice(4, size=1000, p=p)
    asked: dict[str, Any] = {"classes": range(4), "questions": "classwise", "confidence_level": 0.9}
    found = certify(y, np.tile(p, (1000, 1)), relative_to="events", max_error=0.9, **asked)
    (wide,) = found.cautions
    common = np.mean(y == 0)
    sensible = float(f"{0.25 * (1.0 - common) / common:.2g}")  # a quarter of the rarer non-events of the common class
    assert f"use relative_to='events', max_error={sensible:g}." in str(wide).replace('"', "'")
    assert not certify(y, np.tile(p, (1000, 1)), relative_to="events", max_error=sensible, **asked).cautions
    between = str(found).splitlines()[1]
    assert " times its event rate, for class " in between
    assert " times its event rate, each limit" in between
    assert "is at most 0.9 times its event rate" in str(found)
    in_rows = certify(y, np.tile(p, (1000, 1)), max_error=0.5, **asked)
    assert "relative_to" not in str(in_rows.cautions)
    assert "event rate" not in str(in_rows)
    first = {"first": np.arange(1000) < 3, "rest": np.arange(1000) >= 3}
    none = certify(
        y * (np.arange(1000) >= 3) > 0, p[1:].sum() + 0 * y, groups=first, relative_to="events", max_error=0.9
    )
    assert "as a share of" not in str(none).splitlines()[0]
    assert "These rows have no events of group first" in str(none)
