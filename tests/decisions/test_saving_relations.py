"""How the largest saving stands to other errors: what docs/theory/savings.md proves, on rows of every kind."""

import itertools
import math

import brute_force
import numpy as np
import pytest
from brute_force import rows
from decision_cases import tallied
from hypothesis import given, settings

import calibrant
from calibrant.decisions import risk_gap_curve


@given(rows())
@settings(max_examples=150)
def test_the_largest_saving_is_small_exactly_when_cutoff_is(data):
    *_, tally = tallied(data)
    gap, cutoff = risk_gap_curve(tally).largest_gap, calibrant.cutoff_calibration_error(tally)
    assert gap <= cutoff + 1e-12
    assert cutoff**2 <= 2.0 * gap + 1e-12


@given(rows())
def test_falling_rules_save_at_most_twice_the_largest_saving(data):
    *_, tally = tallied(data)
    assert risk_gap_curve(tally, wrapper="monotone").largest_gap <= 2.0 * risk_gap_curve(tally).largest_gap + 1e-12


@given(rows(most=12))
def test_the_isotonic_fit_is_as_near_as_the_largest_saving_says(data):
    y, p, w, tally = tallied(data)
    far = np.average((np.asarray(p) - brute_force.isotonic(y, p, w)) ** 2, weights=w)
    assert far <= 2.0 * risk_gap_curve(tally).largest_gap + 1e-9


@given(rows(most=10))
def test_the_bias_of_a_band_is_bounded_by_its_width_and_its_share(data):
    y, p, w, tally = tallied(data)
    y, p, w = (np.asarray(column, dtype=float) for column in (y, p, np.ones(len(p)) if w is None else w))
    gap = risk_gap_curve(tally).largest_gap
    for low, high in itertools.combinations_with_replacement(np.unique(p), 2):
        inside = np.where((p >= low) & (p <= high), w, 0.0) / w.sum()
        bias = abs(np.sum(inside * (y - p)))
        assert bias <= gap + math.sqrt(2.0 * gap * (high - low) * inside.sum()) + 1e-9


@pytest.mark.parametrize("shift", [0.02, 0.1, 0.4])
def test_forecasts_shifted_alike_need_the_square_root(shift):
    p = shift + (1.0 - shift) * (np.arange(20_000) + 0.5) / 20_000
    tally = calibrant.Tally.from_arrays(p - shift, p)
    assert calibrant.cutoff_calibration_error(tally) == pytest.approx(shift)
    assert risk_gap_curve(tally).largest_gap == pytest.approx(shift**2 / (2.0 * (1.0 - shift)), rel=0.01)
