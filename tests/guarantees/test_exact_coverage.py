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
from simulated import allowed, replicates, runs_needed

from calibrant import Tally, confidence_interval, cutoff_calibration_error
from calibrant.certificates.binomial_limits import exact_upper, prefers_bet
from calibrant.certificates.margins import range_margin

DELTAS = (0.05, 0.2)
REPLICATES = {rows: replicates(count) for rows, count in ((50, 600), (200, 600), (1000, 350), (5000, 120))}


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


def sure(rows):
    """Forecasts that tell outcomes apart, so that a bet is taken, and are too sure of themselves."""
    p = beta.ppf(spread(rows), 0.02, 0.02)
    return p, 0.02 + 0.96 * p


def sure_and_too_low(rows):
    p = beta.ppf(spread(rows), 0.05, 0.2)
    return p, p + 0.3 * p * (1.0 - p) + 3.0 / rows * (1.0 - p)


def on_the_border(rows):
    """As sure as forecasts must be for the choice between binomial limits and a bet to be close."""
    p = beta.ppf(spread(rows), 0.22, 0.22)
    return p, np.where(p < 0.5, p, 0.9 * p)


DESIGNS = [
    sure,
    sure_and_too_low,
    on_the_border,
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
def misses(design, rows):
    """Number of misses: of the upper limit and of its matching lower one, for each delta."""
    p, mu = design(rows)
    error = truth(p, mu)
    rng = np.random.default_rng([rows, DESIGNS.index(design)])
    missed = {(side, delta): 0 for side in ("upper", "lower") for delta in DELTAS}
    count = REPLICATES[rows]
    # On a single forecast it is counted, too, that misses are not too few.
    for _ in range(count) if design is constant else runs_needed(missed, count, lambda key: allowed(count, key[1])):
        tally = Tally.from_arrays(rng.random(rows) < mu, p)
        estimate = cutoff_calibration_error(tally)
        for delta in DELTAS:
            missed["upper", delta] += exact_upper(tally, delta) < error * (1.0 - 1e-12)
            missed["lower", delta] += estimate - range_margin(rows, delta) > error * (1.0 + 1e-12) + 1e-15
    return missed


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("side", ["upper", "lower"])
@pytest.mark.parametrize("rows", REPLICATES)
@pytest.mark.parametrize("design", DESIGNS)
def test_covers_the_error_of_these_forecasts(design, rows, side, delta):
    assert misses(design, rows)[side, delta] <= allowed(REPLICATES[rows], delta)


def test_designs_lie_on_either_side_of_the_choice():
    chosen = {design: prefers_bet(*np.unique(design(1000)[0], return_counts=True), 0.05) for design in DESIGNS}
    assert {design for design, bet in chosen.items() if bet} == {sure, sure_and_too_low, on_the_border}
    # Another delta, and the choice is the other one.
    assert not prefers_bet(*np.unique(on_the_border(1000)[0], return_counts=True), 0.2)


def range_tail(steps, height):
    """P(range of a walk of +-1/2 >= height), by following its place between the running extremes."""
    reach = {(0, 0, 0): 1.0}  # place, lowest and highest so far, in halves
    for _ in range(steps):
        after: dict[tuple[int, int, int], float] = {}
        for (place, low, high), chance in reach.items():
            for step in (-1, 1):
                key = (place + step, min(low, place + step), max(high, place + step))
                after[key] = after.get(key, 0.0) + chance / 2.0
        reach = after
    return sum(chance for (_, low, high), chance in reach.items() if (high - low) / 2.0 >= height - 1e-12)


@pytest.mark.parametrize("steps", [1, 2, 5, 12, 25])
def test_the_range_of_a_martingale_stays_within_its_bound(steps):
    for halves in range(steps + 1):
        assert range_tail(steps, halves / 2.0) <= 4.0 * math.exp(-(halves**2) / (2.0 * steps))


def test_the_lower_margin_is_that_of_users_and_solves_the_bound():
    tally = Tally.from_counts([0.2, 0.6], [300, 100], [140, 80])
    found = confidence_interval(tally, alternative="greater", method="exact")
    margin = found.estimate - found.lower
    assert 4.0 * math.exp(-2.0 * (400 * margin) ** 2 / 400) == pytest.approx(0.05)


@pytest.mark.parametrize("delta", DELTAS)
def test_the_lower_margin_is_used_up_to_a_fair_share(delta):
    # All forecasts 1/2 and right: the walk whose increments are the largest possible.
    rng = np.random.default_rng(40)
    rows, count = 400, 4000
    walks = np.cumsum(rng.integers(0, 2, size=(count, rows)) - 0.5, axis=1)
    width = np.maximum(walks.max(axis=1), 0.0) - np.minimum(walks.min(axis=1), 0.0)
    missed = np.count_nonzero(width / rows > range_margin(rows, delta))
    assert binom.ppf(1e-4, count, delta / 5) <= missed <= allowed(count, delta)


@pytest.mark.parametrize("delta", DELTAS)
def test_is_not_wider_than_it_must_be(delta):
    # On a single forecast the limit misses nearly as often as it may.
    for rows in (200, 1000, 5000):
        assert misses(constant, rows)["upper", delta] >= binom.ppf(1e-4, REPLICATES[rows], delta / 2)


def enumerated(p, rows, delta):
    """Return the counts of events that are possible, and the limit after each."""
    outcomes = list(itertools.product(*(range(count + 1) for count in rows)))
    limits = [exact_upper(Tally.from_counts(p, rows, events), delta) for events in outcomes]
    return np.array(outcomes), np.array(limits)


def covered(p, rows, mu, probability, limits):
    """Probability, exactly, that the limit is not below the truth, from those of the counts of events."""
    p, rows, mu = (np.asarray(column) for column in (p, rows, mu))
    curve = np.concatenate([[0.0], np.cumsum(rows * (mu - p))])
    target = (curve.max() - curve.min()) / rows.sum()
    return probability[limits >= target * (1.0 - 1e-12)].sum()


@pytest.mark.parametrize("delta", [0.01, 0.05, 0.2, 0.25])
@pytest.mark.parametrize(
    ("p", "rows"),
    [
        ([0.3], [25]),
        ([0.0], [25]),
        ([0.2, 0.6], [9, 4]),
        ([0.1, 0.5, 0.9], [4, 4, 4]),
        ([0.0, 0.4, 1.0], [1, 8, 1]),
        ([0.01, 0.99], [14, 14]),  # a bet
        ([0.0, 0.5, 1.0], [12, 1, 12]),  # a bet
    ],
)
def test_covers_on_enumerated_levels_for_all_chances(p, rows, delta):
    outcomes, limits = enumerated(p, rows, delta)
    chances = np.unique(
        np.concatenate([np.linspace(0, 1, {1: 1001, 2: 41, 3: 13}[len(p)]), [0.001, 0.02, 0.98, 0.999]])
    )
    tables = [binom.pmf(np.arange(count + 1)[:, None], count, chances) for count in rows]
    probabilities = [table[events] for table, events in zip(tables, outcomes.T, strict=True)]  # a column per chance
    worst = min(
        covered(p, rows, mu, math.prod(columns), limits)
        for mu, columns in zip(
            itertools.product(chances, repeat=len(p)),
            itertools.product(*(probability.T for probability in probabilities)),
            strict=True,
        )
    )
    assert worst >= 1.0 - delta - 1e-12


@pytest.mark.parametrize("delta", DELTAS)
def test_covers_on_enumerated_rows_with_different_chances(delta):
    # Every row has its own chance: binomial limits are used where the counts are not binomial.
    rng = np.random.default_rng(31)
    p, rows = np.sort(rng.random(8)), np.ones(8, dtype=int)
    outcomes, limits = enumerated(p, rows, delta)
    worst = min(
        covered(p, rows, mu, np.where(outcomes == 1, mu, 1.0 - mu).prod(axis=1), limits)
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
