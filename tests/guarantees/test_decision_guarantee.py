"""What is promised about decisions holds as often as it says: no recalibration saves more at any threshold.

The populations have few forecasts, so that what the best recalibration saves is known at every threshold at once. In
two of them the promise is as tight as it can be: a constant that is too low (the gap is the Cutoff error, and the ECE)
and forecasts in the wrong order (the gap to monotone maps is nearly twice the Cutoff error).
Seeds are fixed and limits are binomial: a correct promise fails one of these with probability 1e-4.

    CALIBRANT_REPLICATES=10 python -m pytest tests/guarantees/test_decision_guarantee.py

runs them ten times as long.
"""

import functools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from populations import CONSTANT, FOUR_LEVELS, NOISY_ATOM, WRONG_ORDER
from simulated import allowed, replicates, runs_needed

from calibrant import Tally, confidence_interval, decision_guarantee
from calibrant.decisions import risk_gap_curve

RUNS = replicates(300)
LEVEL = 0.8  # low, so that failures are frequent enough to be counted
ROWS = 400
METHODS = ("adaptive", "hoeffding", "exact")


def most(chance):
    return allowed(RUNS, chance)


def largest_gaps(law):
    """What each kind of recalibration saves at the threshold where it saves most."""
    monotone = {wrapper: risk_gap_curve(law, wrapper=wrapper).largest_gap for wrapper in ("nondecreasing", "monotone")}
    # Between two forecasts the saving of an arbitrary map is convex in the threshold: it is largest at their ends.
    ends = np.concatenate([law.forecast, np.nextafter(law.forecast, 1.0)])
    return {**monotone, "any": max(saved_by_any(law, threshold) for threshold in ends)}


def saved_by_any(law, threshold):
    """What acting exactly where events are likely enough saves against acting from the threshold up."""
    wrong = (law.forecast >= threshold) != (law.mean_outcome > threshold)
    return float(law.weight @ (wrong * np.abs(law.mean_outcome - threshold))) / law.weight_total


def as_if_reissued(tally, law):
    """The forecasts at hand with the mean outcomes they have in the population: whom the exact method speaks of."""
    present = np.searchsorted(law.forecast, tally.forecast)
    return Tally.from_arrays(law.mean_outcome[present], tally.forecast, sample_weight=tally.rows)


def broken(limit, gaps):
    """Name the promises that the true gaps break."""
    promise = decision_guarantee(limit)
    promised = {wrapper: getattr(promise, wrapper) for wrapper in gaps}
    return [name for name, most in promised.items() if most is not None and gaps[name] > most + 1e-12]


@functools.cache
def failures(population, method, measure="cutoff", margin=True):
    rng = np.random.default_rng([2025, *population.name.encode(), *method.encode()])
    gaps = largest_gaps(population.law)
    failed: Counter[str] = Counter(dict.fromkeys(gaps, 0))
    for _ in runs_needed(failed, RUNS, most(1.0 - LEVEL)):
        tally = population.tally(rng, ROWS)
        limit = confidence_interval(tally, alternative="less", confidence_level=LEVEL, method=method, measure=measure)
        if not margin:
            limit = replace(limit, upper=limit.estimate)
        failed.update(broken(limit, largest_gaps(as_if_reissued(tally, population.law)) if method == "exact" else gaps))
    return failed


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("population", [CONSTANT, FOUR_LEVELS, NOISY_ATOM, WRONG_ORDER], ids=str)
def test_no_threshold_has_a_larger_gap_than_promised(population, method):
    assert max(failures(population, method).values(), default=0) <= most(1.0 - LEVEL)


@pytest.mark.parametrize("method", ["adaptive", "hoeffding"])
@pytest.mark.parametrize("population", [CONSTANT, FOUR_LEVELS, NOISY_ATOM, WRONG_ORDER], ids=str)
def test_from_the_risk_gap_the_promise_covers_every_line(population, method):
    assert max(failures(population, method, "risk_gap").values(), default=0) <= most(1.0 - LEVEL)


@pytest.mark.parametrize("population", [CONSTANT, FOUR_LEVELS, WRONG_ORDER], ids=str)
def test_from_the_ece_the_promise_covers_every_map(population):
    assert max(failures(population, "adaptive", "ece").values(), default=0) <= most(1.0 - LEVEL)


def test_an_estimate_promises_nothing():
    assert failures(CONSTANT, "adaptive", margin=False)["nondecreasing"] > most(1.0 - LEVEL)
    assert failures(CONSTANT, "adaptive", "ece", margin=False)["any"] > most(1.0 - LEVEL)
    assert failures(CONSTANT, "adaptive", "risk_gap", margin=False)["nondecreasing"] > most(1.0 - LEVEL)


def test_maps_that_turn_the_order_round_need_the_factor_two():
    gaps = largest_gaps(WRONG_ORDER.law)
    assert gaps["monotone"] > 1.98 * WRONG_ORDER.cutoff
    assert gaps["nondecreasing"] <= WRONG_ORDER.cutoff + 1e-12
