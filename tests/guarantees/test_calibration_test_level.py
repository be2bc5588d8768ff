"""Tests of calibration reject calibrated forecasts no more often than they say.

Seeds are fixed and limits are binomial: a correct test fails one of these with probability ``FALSE_ALARM``.
"""

import functools

import numpy as np
import pytest
from scipy.stats import binom, chisquare
from simulated import replicates

from calibrant import Tally
from calibrant.certificates.hypotheses import calibration_test
from calibrant.certificates.spiegelhalter import spiegelhalter_test

FALSE_ALARM = 1e-4
REPLICATES = replicates(1_500)
RESAMPLES = 199  # so that (RESAMPLES + 1) x level is a whole number, and the level can be met exactly
LEVELS = (0.01, 0.05, 0.2)

FORECASTS = {
    "continuous": lambda rng: rng.random(200),
    "continuous rare events": lambda rng: rng.beta(0.5, 8.0, 300),
    "tied": lambda rng: np.round(rng.random(200), 1),
    "partly tied": lambda rng: np.where(rng.random(150) < 0.5, 0.3, rng.random(150)),
    "4 levels": lambda rng: rng.choice([0.05, 0.3, 0.6, 0.95], 60),
    "constant": lambda _: np.full(40, 0.3),
}


def p_values(name, test, replicates, size=None, **options):
    rng = np.random.default_rng([2025, *name.encode()])
    values = np.empty(replicates)
    for k in range(replicates):
        p = FORECASTS[name](rng) if size is None else rng.random(size)
        y = rng.random(p.size) < p
        values[k] = test(y, p, **({**options, "rng": rng} if options.get("method") == "exact" else options)).pvalue
    return values


def rejected(values, level):
    return int((values <= level + 1e-12).sum())


def most(level, replicates):
    return binom.isf(FALSE_ALARM, replicates, level)


def least(level, replicates):
    return binom.ppf(FALSE_ALARM, replicates, level)


@functools.cache
def exact(name):
    return p_values(name, calibration_test, REPLICATES, method="exact", n_resamples=RESAMPLES)


@pytest.mark.parametrize("name", FORECASTS)
def test_the_exact_test_rejects_at_most_its_level(name):
    for level in LEVELS:
        assert rejected(exact(name), level) <= most(level, REPLICATES)


# Ties give the statistic few values, and then p-values must be larger than uniform ones.
@pytest.mark.parametrize("name", ["continuous", "continuous rare events"])
def test_the_exact_test_is_not_cautious_for_continuous_forecasts_and_its_p_values_are_uniform(name):
    for level in LEVELS:
        assert rejected(exact(name), level) >= least(level, REPLICATES)
    counts, _ = np.histogram(exact(name), bins=20, range=(0.5 / (RESAMPLES + 1), 1 + 0.5 / (RESAMPLES + 1)))
    assert counts.sum() == REPLICATES
    assert chisquare(counts).pvalue > FALSE_ALARM


def test_the_large_sample_test_at_2000_rows():
    replicates = REPLICATES
    values = p_values("continuous", calibration_test, replicates, size=2_000, method="asymptotic")
    for level in LEVELS:
        assert rejected(values, level) <= most(level, replicates)
        # 2000 steps see a little less than the extremes of a continuous motion: the level is a little below nominal.
        assert rejected(values, level) >= least(0.75 * level, replicates)


@pytest.mark.parametrize("kind", ["weights", "fractions", "ties", "weighted fractions"])
def test_the_large_sample_test_with_weights_fractions_and_ties(kind):
    replicates, rng = 1_000, np.random.default_rng([7, *kind.encode()])
    values = np.empty(replicates)
    for k in range(replicates):
        p = rng.random(1_500)
        p = np.round(p, 1) if kind == "ties" else p
        # A fraction: the mean of three outcomes, each an event with the probability forecast.
        y = rng.binomial(3, p) / 3.0 if "fractions" in kind else rng.random(p.size) < p
        weight = rng.gamma(2.0, size=p.size) if "weight" in kind else None
        tally = Tally.from_arrays(y, p, sample_weight=weight)
        values[k] = calibration_test(tally, method="asymptotic").pvalue
    for level in LEVELS:
        assert rejected(values, level) <= most(level, replicates)
        assert kind == "ties" or rejected(values, level) >= least(0.7 * level, replicates)


def test_spiegelhalters_test_has_its_level_at_500_rows():
    replicates = REPLICATES
    values = p_values("continuous", spiegelhalter_test, replicates, size=500)
    for level in LEVELS:
        assert least(level, replicates) <= rejected(values, level) <= most(level, replicates)
