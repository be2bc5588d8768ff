"""Displays of forecasts of several classes: the confidence as one curve, certificates class by class."""

import numpy as np
import pytest

import calibrant
from calibrant import CumulativeDisplay, ReliabilityDisplay
from calibrant.displays import CertificateDisplay

RNG = np.random.default_rng(0)
Y_PROB = RNG.dirichlet(np.ones(6), 500)
Y = (RNG.random((500, 1)) > Y_PROB.cumsum(axis=1)[:, :-1]).sum(axis=1)
CONFIDENCE, RIGHT = Y_PROB.max(axis=1), Y_PROB.argmax(axis=1) == Y


def test_confidence_is_one_curve_with_words_of_its_own():
    found = ReliabilityDisplay.from_predictions(Y, Y_PROB, n_resamples=99)
    alone = ReliabilityDisplay.from_predictions(RIGHT, CONFIDENCE, n_resamples=99)
    assert found.histogram_ax_ is not None
    assert alone.histogram_ax_ is not None
    assert found.frame().equals(alone.frame())
    assert found.histogram_ax_.get_xlabel() == "confidence in the top label"
    assert found.ax_.get_ylabel() == "share of right top labels"
    assert found.ax_.get_title(loc="left") == "How often the top label is right, at each confidence"
    turned = found.plot(difference=True, histogram=False)
    assert turned.ax_.get_ylabel() == "share of right top labels \N{MINUS SIGN} confidence"
    assert turned.ax_.get_xlabel() == "confidence in the top label"
    assert alone.histogram_ax_.get_xlabel() == "forecast"


def test_the_running_sum_is_that_of_the_confidence():
    labels = np.array(list("abcdef"))
    found = CumulativeDisplay.from_predictions(labels[Y], Y_PROB, classes=labels, n_resamples=99)
    assert found.worst.error == pytest.approx(calibrant.cutoff_calibration_error(RIGHT, CONFIDENCE))
    assert found.ax_.get_xlabel() == "confidence in the top label"
    with pytest.raises(calibrant.InputError, match="has no column per class"):
        CumulativeDisplay.from_predictions(RIGHT, CONFIDENCE, classes=labels)


def test_two_columns_are_the_event():
    both = np.stack([1.0 - CONFIDENCE, CONFIDENCE], axis=1)
    assert CumulativeDisplay.from_predictions(RIGHT, both, band=None).ax_.get_xlabel() == "forecast"
    assert CertificateDisplay.from_predictions(RIGHT, both, max_error=0.2).names == ("forecasts",)


def test_certificates_have_a_line_per_class_and_say_which_are_drawn():
    found = CertificateDisplay.from_predictions(Y, Y_PROB, max_error=0.2, questions="classwise")
    asked = calibrant.certify(Y, Y_PROB, max_error=0.2, questions="classwise")
    assert found.certificates == asked.certificates
    assert found.names == tuple("012345")
    assert found.ax_.get_title(loc="left") == f"Certificates; all classes together: {asked.verdict}"
    pairs = CertificateDisplay.from_predictions(Y, Y_PROB, max_error=0.2, questions="pairs")
    assert (len(pairs.names), "the 12 of 15 pairs with the largest errors" in pairs.limits_said) == (12, True)
    intervals = CertificateDisplay.from_predictions(Y, Y_PROB, questions="top_label")
    assert len(intervals.names) == 6
    single = CertificateDisplay.from_predictions(Y, Y_PROB, max_error=0.2)
    assert single.names == ("confidence in the top label",)
