"""Limits of the error as a share of the events hold as often as they say, and are as sharp as they can be.

The share is the Cutoff error divided by the event rate, both known exactly here. Misses are counted over seeded runs,
as in test_certificate_coverage.py; for one forecast all counts of events are gone through, which leaves no chance.
"""

import itertools
import math
import zlib
from collections import Counter
from typing import Any

import numpy as np
import pytest
from populations import EVENT_RATE, POPULATIONS
from scipy.stats import binom
from simulated import FALSE_ALARM, allowed, runs_needed

import calibrant
from calibrant import Tally, certify, confidence_interval
from calibrant.certificates.betting import adaptive_upper
from calibrant.certificates.event_shares import RATE_SHARE, event_rate_limits, of_events, upper_share
from calibrant.certificates.margins import hoeffding_margin
from calibrant.rows.weights import effective_rows

LEVELS = (0.95, 0.8)


def seeded(*key):
    return np.random.default_rng([zlib.crc32(str(part).encode()) for part in key])


def until_plain(missed, count):
    return runs_needed(missed, count, lambda key: allowed(count, 1.0 - key[-1]))


def too_many(missed, count):
    return {key: n for key, n in missed.items() if n > allowed(count, 1.0 - key[-1])}


@pytest.mark.parametrize("population", POPULATIONS, ids=str)
def test_event_rates_are_those_of_the_populations(population):
    y, _, _ = population.draw(np.random.default_rng(5), 400_000)
    assert y.mean() == pytest.approx(EVENT_RATE[population], abs=4.0 * math.sqrt(y.var() / y.size))


def upper_limits(tally, level):
    """Upper limits of the share: the adaptive method bets on both at once, unless weights differ."""
    spent = RATE_SHARE * (1.0 - level)
    rest = 1.0 - level - spent
    low, _ = event_rate_limits(tally, spent)
    wide = calibrant.cutoff_calibration_error(tally) + hoeffding_margin(effective_rows(tally), rest)
    limits = {"hoeffding": of_events(min(wide, 1.0), low)}
    if tally.unit_weights:
        limits["adaptive"] = upper_share(tally, tally, 1.0 - level)
    else:
        limits["adaptive"] = of_events(min(adaptive_upper(tally, tally, rest), 1.0), low)
    return limits


@pytest.mark.parametrize("population", POPULATIONS, ids=str)
def test_these_are_the_limits_that_users_get(population):
    tallies = [population.tally(np.random.default_rng(1), rows) for rows in (50, 200, 1000)]
    for tally, level in itertools.product(tallies, LEVELS):
        asked: dict[str, Any] = {"alternative": "less", "confidence_level": level, "relative_to": "events"}
        for method, limit in upper_limits(tally, level).items():
            assert confidence_interval(tally, method=method, **asked).upper == pytest.approx(limit, rel=1e-12)


@pytest.mark.parametrize("rows", [50, 200, 1000])
@pytest.mark.parametrize("population", POPULATIONS, ids=str)
def test_upper_limits_cover(population, rows):
    truth = population.cutoff / EVENT_RATE[population]
    count = (300 if rows < 1000 else 150) if truth else 5  # an upper limit cannot miss 0
    rng = seeded(population, rows, "share above")
    missed: Counter[Any] = Counter()
    for _ in until_plain(missed, count):
        tally = population.tally(rng, rows)
        for level in LEVELS:
            for method, limit in upper_limits(tally, level).items():
                missed[method, level] += limit < truth * (1.0 - 1e-12)
    assert not too_many(missed, count)


@pytest.mark.parametrize("rows", [200, 2000])
@pytest.mark.parametrize("population", POPULATIONS, ids=str)
def test_lower_limits_cover(population, rows):
    truth = population.cutoff / EVENT_RATE[population]
    count = 100 if population.unit_weights and population.binary else 40
    rng = seeded(population, rows, "share below")
    missed: Counter[Any] = Counter()
    for _ in until_plain(missed, count):
        tally = population.tally(rng, rows)
        asked: dict[str, Any] = {"alternative": "greater", "confidence_level": 0.8, "relative_to": "events"}
        missed["adaptive", 0.8] += confidence_interval(tally, **asked).lower > truth + 1e-12
    assert not too_many(missed, count)


@pytest.mark.parametrize("shape", [(0.5, 20.0), (1.0, 1.0), (0.2, 0.2)], ids=str)
def test_exact_limits_cover_the_share_of_these_forecasts(shape):
    # The forecasts stay, the outcomes are drawn anew: some are too high, and those above a half too low.
    rng, count, rows = seeded("exact share", shape), 150, 300
    p = rng.beta(shape[0], shape[1], rows)
    chance = np.where(p < 0.5, 0.6 * p, np.minimum(1.2 * p, 1.0))
    truth = calibrant.cutoff_calibration_error(chance, p) / chance.mean()
    missed: Counter[Any] = Counter()
    for _ in until_plain(missed, count):
        tally = Tally.from_arrays(rng.random(rows) < chance, p)
        for level in LEVELS:
            asked: dict[str, Any] = {"confidence_level": level, "method": "exact", "relative_to": "events"}
            missed["above", level] += confidence_interval(tally, alternative="less", **asked).upper < truth
            missed["below", level] += confidence_interval(tally, alternative="greater", **asked).lower > truth
    assert not too_many(missed, count)


@pytest.mark.parametrize("rows", [10, 50, 200])
@pytest.mark.parametrize("forecast", [0.0, 0.001, 0.03, 0.3, 0.9, 1.0])
def test_one_forecast_whatever_its_event_rate(forecast, rows):
    # All counts of events gone through: the worst case of rates that bets can meet.
    counts = np.arange(rows + 1)
    tallies = [Tally.from_counts([forecast], [rows], [events]) for events in counts]
    for delta in (0.05, 0.2):
        upper = np.array([upper_share(tally, tally, delta) for tally in tallies])
        low, high = np.array([event_rate_limits(tally, RATE_SHARE * delta) for tally in tallies]).T
        error = np.array([adaptive_upper(tally, tally, (1.0 - RATE_SHARE) * delta) for tally in tallies])
        quotient = np.array([of_events(*each) for each in zip(error, low, strict=True)])
        for rate in (0.0005, 0.003, 0.01, 0.05, 0.2, 0.5, 0.8, 0.99):
            chance = binom.pmf(counts, rows, rate)
            truth = abs(rate - forecast) / rate
            assert chance[upper < truth * (1.0 - 1e-12)].sum() <= delta
            assert chance[quotient < truth * (1.0 - 1e-12)].sum() <= delta
            assert chance[(low > rate) | (high < rate)].sum() <= 2.0 * RATE_SHARE * delta


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.02, 0.005, 0.001])
@pytest.mark.parametrize(("events", "narrower"), [(50, 0.85), (200, 0.9), (1000, 0.96)])
def test_a_bet_on_both_is_narrower_than_a_quotient_of_two_limits(rate, events, narrower):
    # Forecasts that tell events apart, calibrated; what is gained is the more, the fewer events there are.
    rows, rng = round(events / rate), seeded("narrower", rate, events)
    ratios = []
    for _ in range(6 if rows < 100_000 else 2):
        p = rng.beta(rate, 1.0 - rate, rows)
        tally = Tally.from_arrays(rng.random(rows) < p, p)
        low, _ = event_rate_limits(tally, RATE_SHARE * 0.05)
        quotient = adaptive_upper(tally, tally, (1.0 - RATE_SHARE) * 0.05) / low
        ratios.append(upper_share(tally, tally, 0.05) / quotient)
    assert np.mean(ratios) < narrower


def test_rare_events_forecast_well_are_certified():
    # A quarter of all events, of which there are some 490: nine times out of ten at least.
    rng, count = seeded("rare events certified"), 60
    uppers = []
    for _ in range(count):
        p = rng.beta(0.5, 20.0, 20_000)
        found = confidence_interval(rng.random(p.size) < p, p, alternative="less", relative_to="events")
        uppers.append(found.upper)
    assert sum(upper <= 0.25 for upper in uppers) >= binom.isf(1.0 - FALSE_ALARM, count, 0.9)
    p = rng.beta(0.5, 20.0, 20_000)
    certificate = certify(rng.random(p.size) < p, p, max_error=0.25, relative_to="events")
    assert certificate.cautions == ()


def test_a_model_of_fraud_with_scores_three_times_too_high_is_refuted_again_and_again():
    rng, count = seeded("fraud"), 20
    verdicts: Counter[str] = Counter()
    for _ in range(count):
        chance = rng.beta(0.5, 25.8, 20_000)
        y, p = rng.random(chance.size) < chance, np.minimum(3.0 * chance, 1.0)
        verdicts[certify(y, p, max_error=0.25, relative_to="events").verdict] += 1
        assert certify(y, p, max_error=0.05).cautions
    assert verdicts == {"refuted": count}
