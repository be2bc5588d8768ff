"""The exact limit covers the Cutoff error of the forecasts at hand, whatever the chances behind the outcomes are.

The forecasts p and the chances mu are fixed, only the outcomes are drawn. The truth is the largest
|sum of (mu - p)| / n over intervals of forecasts. Small designs are enumerated, so that their coverage has no sampling
error at all; for large ones the number of misses is compared with the count that a correct limit exceeds in one of
10,000 runs.
"""

import functools
import itertools
import math

import numpy as np
import pytest
from scipy.stats import beta, binom

from calibrant import Tally, cutoff_calibration_error
from calibrant.binomial_limits import exact_upper

DELTAS = (0.05, 0.2)
REPLICATES = {50: 600, 200: 600, 1000: 350, 5000: 120}


def spread(rows):
    return (np.arange(rows) + 0.5) / rows


def calibrated(rows):
    return spread(rows), spread(rows)


def rare_events(rows):
    p = beta.ppf(spread(rows), 0.5, 20)
    return p, p


def rare_events_missed(rows):
    return np.zeros(rows), np.full(rows, min(1.0, 3.0 / rows))


def constant(rows):
    return np.full(rows, 0.3), np.full(rows, 0.45)


def four_levels(rows):
    level = np.arange(rows) % 4
    return level / 4 + 0.125, np.array([0.1, 0.5, 0.6, 0.95])[level]


def shifted(rows):
    return spread(rows), np.minimum(spread(rows) + 0.1, 1.0)


def spike(rows):
    p = spread(rows)
    return p, np.where((p > 0.5) & (p <= 0.54), 0.95, p)


def one_noisy_atom(rows):
    p = spread(rows)
    atom = (p > 0.45) & (p < 0.55)
    return np.where(atom, 0.5, p), np.where(atom, 0.7, p > 0.5)


def oscillating(rows):
    p = spread(rows)
    swing = np.where(np.arange(rows) % 6 < 3, 1.0, -1.0)
    return p, p + swing * np.minimum(p, 1.0 - p)


DESIGNS = [
    calibrated,
    rare_events,
    rare_events_missed,
    constant,
    four_levels,
    shifted,
    spike,
    one_noisy_atom,
    oscillating,
]


def truth(p, mu):
    """Range of the curve of mu - p, ties merged."""
    forecasts, group = np.unique(p, return_inverse=True)
    curve = np.concatenate([[0.0], np.cumsum(np.bincount(group, weights=mu - p, minlength=forecasts.size))])
    return (curve.max() - curve.min()) / p.size


@functools.cache
def simulated(design, rows):
    """Number of misses: of the upper limit and of its matching lower one, for each delta."""
    p, mu = design(rows)
    target = truth(p, mu) * (1.0 - 1e-12)
    rng = np.random.default_rng([rows, DESIGNS.index(design)])
    missed = {(side, delta): 0 for side in ("upper", "lower") for delta in DELTAS}
    for _ in range(REPLICATES[rows]):
        tally = Tally.from_arrays(rng.random(rows) < mu, p)
        estimate = cutoff_calibration_error(tally)
        for delta in DELTAS:
            missed["upper", delta] += exact_upper(tally, delta) < target
            missed["lower", delta] += estimate - math.sqrt(2.0 * math.log(2.0 / delta) / rows) > target
    return missed


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("side", ["upper", "lower"])
@pytest.mark.parametrize("rows", REPLICATES)
@pytest.mark.parametrize("design", DESIGNS)
def test_covers_the_error_of_these_forecasts(design, rows, side, delta):
    allowed = binom.isf(1e-4, REPLICATES[rows], delta)
    assert simulated(design, rows)[side, delta] <= allowed


@pytest.mark.parametrize("delta", DELTAS)
def test_is_not_wider_than_it_must_be(delta):
    # On a single forecast the limit misses nearly as often as it may.
    for rows in (200, 1000, 5000):
        assert simulated(constant, rows)["upper", delta] >= binom.ppf(1e-4, REPLICATES[rows], delta / 2)


def enumerated(p, rows, delta):
    """Return the counts of events that are possible, and the limit after each."""
    outcomes = list(itertools.product(*(range(count + 1) for count in rows)))
    limits = [exact_upper(Tally.from_counts(p, rows, events), delta) for events in outcomes]
    return np.array(outcomes), np.array(limits)


def coverage(p, rows, mu, outcomes, limits):
    """Probability, exactly, that the limit is not below the truth."""
    p, rows, mu = (np.asarray(column) for column in (p, rows, mu))
    curve = np.concatenate([[0.0], np.cumsum(rows * (mu - p))])
    target = (curve.max() - curve.min()) / rows.sum()
    chance = binom.pmf(outcomes, rows, mu).prod(axis=1)
    return chance[limits >= target * (1.0 - 1e-12)].sum()


@pytest.mark.parametrize("delta", [0.01, 0.05, 0.2, 0.25])
@pytest.mark.parametrize(
    ("p", "rows"),
    [([0.3], [25]), ([0.0], [25]), ([0.2, 0.6], [9, 4]), ([0.1, 0.5, 0.9], [4, 4, 4]), ([0.0, 0.4, 1.0], [1, 8, 1])],
)
def test_covers_on_enumerated_levels_for_all_chances(p, rows, delta):
    outcomes, limits = enumerated(p, rows, delta)
    chances = np.unique(
        np.concatenate([np.linspace(0, 1, {1: 1001, 2: 41, 3: 13}[len(p)]), [0.001, 0.02, 0.98, 0.999]])
    )
    worst = min(coverage(p, rows, mu, outcomes, limits) for mu in itertools.product(chances, repeat=len(p)))
    assert worst >= 1.0 - delta - 1e-12


@pytest.mark.parametrize("delta", DELTAS)
def test_covers_on_enumerated_rows_with_different_chances(delta):
    # Every row has its own chance: binomial limits are used where the counts are not binomial.
    rng = np.random.default_rng(31)
    p, rows = np.sort(rng.random(8)), np.ones(8, dtype=int)
    outcomes, limits = enumerated(p, rows, delta)
    worst = min(
        coverage(p, rows, mu, outcomes, limits)
        for mu in itertools.chain(
            rng.random((300, 8)), rng.beta(0.1, 0.1, (300, 8)), 1 - 10 ** -rng.uniform(0, 3, (300, 8)), np.eye(8)
        )
    )
    assert worst >= 1.0 - delta - 1e-12


@pytest.mark.parametrize("delta", [0.05, 0.1, 0.2, 0.25])
def test_needs_the_rule_for_a_margin_below_one(delta):
    # 40 rows forecast at (almost) 0 that are certain events, except one that is an event with chance 1 - doubt.
    # Without the rule the limit after a single miss is m CP(m - 1, m) = m (1 - delta)^(1/m), below the true mean
    # m - doubt as soon as doubt < m (1 - (1 - delta)^(1/m)), which is more than delta: it fails with chance doubt.
    size = 40
    doubt = size * (1.0 - (1.0 - delta) ** (1.0 / size)) - 1e-6
    p = 1e-9 * np.arange(size)
    mu = np.append(np.ones(size - 1), 1.0 - doubt)
    target = truth(p, mu)
    after_a_miss = np.append(np.ones(size - 1), 0.0)
    without_the_rule = max(  # the only sign that matters: forecasts are too low everywhere
        (j - i) * (beta.ppf(1.0 - delta, j - i, 1) if j == size else 1.0) - p[i:j].sum()
        for i, j in itertools.combinations(range(size + 1), 2)
        if j - i > 1
    )
    assert without_the_rule / size < target
    assert doubt > delta
    for y in (np.ones(size), after_a_miss):
        assert exact_upper(Tally.from_arrays(y, p), delta) >= target
