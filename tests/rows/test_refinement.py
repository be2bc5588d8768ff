"""Sums over stretches of entries: in blocks as over all at once, and of single rows as of counts."""

import math

import numpy as np
import pytest

from calibrant.rows import refinement
from calibrant.rows.refinement import growth_scores, largest_stretch
from calibrant.rows.tally import Tally

RNG = np.random.default_rng(8)


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1 << 15])
@pytest.mark.parametrize(
    "scores",
    [
        RNG.standard_normal(40),
        RNG.standard_normal(3) - 0.5,
        -np.arange(1.0, 9.0),
        np.arange(1.0, 9.0),
        np.tile([1.0, -2.0, 3.0, -1.0, 0.0], 5),
        np.empty(0),
    ],
    ids=["noise", "few", "falling", "rising", "turning", "none"],
)
def test_the_largest_stretch_is_found_across_blocks(scores, block, monkeypatch):
    monkeypatch.setattr(refinement, "_BLOCK", block)
    every = [scores[begin:end].sum() for begin in range(scores.size) for end in range(begin, scores.size + 1)]
    assert largest_stretch(scores) == pytest.approx(max(every, default=0.0), abs=1e-14)


@pytest.mark.parametrize("block", [2, 1 << 15])
def test_a_score_that_is_no_number_is_not_passed_over(block, monkeypatch):
    monkeypatch.setattr(refinement, "_BLOCK", block)
    assert math.isnan(largest_stretch(np.array([1.0, 2.0, math.nan, 1.0, 5.0])))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("rate", [0.9, 0.2, 1e-3])
def test_bets_on_single_rows_grow_as_those_on_counts(rate, sign):
    forecast = np.concatenate([[0.0, 1.0], RNG.random(200)])
    outcome = (RNG.random(forecast.size) < forecast).astype(int)
    outcome[:2] = 1, 0
    single = growth_scores(Tally.from_arrays(outcome, forecast), rate, sign)
    doubled = growth_scores(Tally.from_arrays(np.repeat(outcome, 2), np.repeat(forecast, 2)), rate, sign)
    for name in ("total", "up", "down"):
        np.testing.assert_allclose(2.0 * getattr(single, name), getattr(doubled, name), rtol=1e-14, atol=1e-300)
