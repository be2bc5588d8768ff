"""Ending simulations early hides next to nothing: the chances of every course of misses are computed, not simulated."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from simulated import HIDDEN, allowed, is_plain, runs_needed

CHECKS = [(3, 0.2), (20, 0.2), (50, 0.05), (60, 0.05), (150, 0.2), (500, 0.05), (300, 0.01)]


def caught(count, delta, rates):
    """The chances that runs end with more misses than allowed, by the rate of misses, and the runs to expect."""
    most = allowed(count, delta)
    rates = rates[:, None]
    chance, expected = np.ones_like(rates), 0.0
    for run in range(1, count + 1):
        expected += chance.sum(axis=1)
        zero = np.zeros_like(rates)
        chance = np.hstack([chance * (1.0 - rates), zero]) + np.hstack([zero, chance * rates])
        chance[:, [is_plain(misses, run, count, most) for misses in range(run + 1)]] = 0.0
    return chance.sum(axis=1), expected


@pytest.mark.parametrize(("count", "delta"), CHECKS)
def test_what_all_runs_would_catch_is_caught(count, delta):
    rates = np.linspace(delta, 1.0, 40)
    whole, (early, _) = binom.sf(allowed(count, delta), count, rates), caught(count, delta, rates)
    assert (early <= whole + 1e-12).all()  # no more false alarms, either
    assert (early >= whole - 2.0 * HIDDEN).all()
    assert (early >= whole - HIDDEN)[whole >= 0.5].all()


@pytest.mark.parametrize(("count", "delta"), [(150, 0.2), (500, 0.05)])
def test_limits_that_are_seldom_wrong_take_a_fraction_of_the_runs(count, delta):
    assert caught(count, delta, np.array([delta / 4.0]))[1] < 0.35 * count


def test_every_count_has_to_be_small():
    missed: Counter[Any] = Counter()
    for _ in runs_needed(missed, 100, 30):
        missed["never"] += 0
    few = sum(1 for _ in runs_needed(missed, 100, lambda key: {"never": 30}[key]))
    assert few < 30
    for _ in runs_needed(missed, 100, 30):
        missed["always"] += 1
    assert missed["always"] == 100


def test_runs_go_on_while_nothing_is_counted():
    assert len(list(runs_needed(Counter(), 7, 3))) == 7
