"""Limits of what a line can save hold as often as they say, at one threshold, over a range and over all of them.

The savings of the populations are known. Misses are counted over seeded runs, as in test_certificate_coverage.py; for
one forecast all counts of events are gone through, which leaves no chance.
"""

import itertools
import math
import zlib
from collections import Counter
from typing import Any

import numpy as np
import pytest
from gap_laws import CLOSE, LAWS, betting_upper, gap
from populations import CONSTANT, FRACTIONS, OVERCONFIDENT, POPULATIONS, SHIFTED, UNIFORM, WEIGHTED_CONSTANT
from scipy.stats import binom
from simulated import allowed, runs_needed

from calibrant import Tally, certify, confidence_interval
from calibrant.certificates import saving_limits
from calibrant.certificates.margins import VARIANCE_SHARE
from calibrant.measures.savings import largest_saving
from calibrant.rows.savings import EVERY_THRESHOLD, Stretches, Thresholds
from calibrant.rows.weights import effective_rows

ASKED: dict[str, Any] = {"all": None, "a range": (0.25, 0.45), "one": 0.3}


def seeded(*key):
    return np.random.default_rng([zlib.crc32(str(part).encode()) for part in key])


def thresholds_of(asked):
    return EVERY_THRESHOLD if asked is None else Thresholds(*(asked if isinstance(asked, tuple) else (asked, asked)))


def until_plain(missed, count):
    return runs_needed(missed, count, lambda key: allowed(count, 1.0 - key[-1]))


def too_many(missed, count):
    return {key: n for key, n in missed.items() if n > allowed(count, 1.0 - key[-1])}


def test_populations_of_rows_save_what_their_laws_say():
    for population in POPULATIONS:
        law = LAWS[population]
        tally = population.tally(seeded(population, "law"), 200_000)
        for thresholds in map(thresholds_of, ASKED.values()):
            saving = largest_saving(law, thresholds).saving
            few = population is WEIGHTED_CONSTANT  # of which a few rows have most of the weight
            assert largest_saving(tally, thresholds).saving == pytest.approx(saving, abs=0.008 if few else 0.004)
    assert gap(SHIFTED, EVERY_THRESHOLD) == pytest.approx(0.1**2 / (2 * 0.8), abs=2 * CLOSE)
    assert gap(FRACTIONS, Thresholds(0.5, 0.5)) == pytest.approx(0.05**2 / (2 * 0.6), abs=2 * CLOSE)
    assert gap(UNIFORM, EVERY_THRESHOLD) == 0.0
    assert gap(CONSTANT, EVERY_THRESHOLD) == pytest.approx(0.1)


def upper_limits(tally, thresholds):
    """Upper limits by method and level, before they are cut at 1."""
    saving = largest_saving(tally, thresholds).saving
    margin = saving_limits.saving_margin(effective_rows(tally), 0.2)
    limits = {("hoeffding", 0.8): saving + margin}
    for level in (0.8, 0.95):
        limits["adaptive", level] = saving_limits.betting_upper(tally, tally, thresholds, saving, 1.0 - level)
    return limits


@pytest.mark.parametrize("population", POPULATIONS, ids=str)
def test_these_are_the_limits_that_users_get(population):
    for rows, asked in itertools.product((20, 700, 5000), ASKED.values()):
        tally = population.tally(np.random.default_rng(1), rows)
        for (method, level), limit in upper_limits(tally, thresholds_of(asked)).items():
            how: dict[str, Any] = {"method": method, "confidence_level": level, "alternative": "less"}
            found = confidence_interval(tally, measure="risk_gap", threshold=asked, **how)
            assert found.upper == pytest.approx(min(limit, 1.0), abs=1e-12)


@pytest.mark.parametrize(("rows", "count"), [(20, 50), (100, 50), (700, 20), (5000, 3)])
@pytest.mark.parametrize("population", POPULATIONS, ids=str)
def test_upper_limits_cover(population, rows, count):
    rng = seeded(population, rows, "saving above")
    truths = {asked: gap(population, thresholds_of(asked)) for asked in ASKED.values()}
    if not any(truths.values()):
        count = 3  # an upper limit cannot miss 0
    missed: Counter[Any] = Counter()
    for _ in until_plain(missed, count):
        tally = population.tally(rng, rows)
        for asked, truth in truths.items():
            for (method, level), limit in upper_limits(tally, thresholds_of(asked)).items():
                missed[method, asked, level] += limit < truth - 1e-12
    assert not too_many(missed, count)


@pytest.mark.parametrize(("rows", "count"), [(60, 30), (1500, 10), (12_000, 3)])
@pytest.mark.parametrize("population", POPULATIONS, ids=str)
def test_lower_limits_cover(population, rows, count):
    rng = seeded(population, rows, "saving below")
    truths = {asked: largest_saving(LAWS[population], thresholds_of(asked)).saving for asked in ASKED.values()}
    missed: Counter[Any] = Counter()
    for _ in until_plain(missed, count):
        tally = population.tally(rng, rows)
        for asked, truth in truths.items():
            found = confidence_interval(
                tally, measure="risk_gap", threshold=asked, alternative="greater", confidence_level=0.8
            )
            missed["adaptive", asked, 0.8] += found.lower > truth + CLOSE
    assert not too_many(missed, count)


def test_verdicts_with_every_default_are_seldom_wrong():
    rng, count = seeded("defaults"), 60
    wrong: Counter[Any] = Counter()
    truths = {population: gap(population, EVERY_THRESHOLD) for population in (SHIFTED, OVERCONFIDENT)}
    for _ in until_plain(wrong, count):
        for population, rows in ((SHIFTED, 800), (OVERCONFIDENT, 300)):
            y, p, _ = population.draw(rng, rows)
            truth = truths[population]
            for limit, error in ((truth - 2 * CLOSE, "certified"), (truth + 3 * CLOSE, "refuted")):
                wrong[population, error, 0.95] += certify(y, p, max_error=limit, measure="risk_gap").verdict == error
    assert not too_many(wrong, count)


# --- One forecast: the worst case, counted exactly --------------------------------------------------------------------


def limits_by_count(forecast, rows, delta):
    """The upper limit for each number of events."""
    tallies = (Tally.from_counts([forecast], [rows], [events]) for events in range(rows + 1))
    return np.array([betting_upper(tally, delta) for tally in tallies])


def misses(limits, forecast, chances):
    """How often the limit is below the saving, for each chance of an event."""
    rows = limits.size - 1
    return np.array(
        [binom.pmf(np.flatnonzero(limits < abs(chance - forecast) - 1e-12), rows, chance).sum() for chance in chances]
    )


@pytest.mark.parametrize("rows", [20, 99, 100, 300])
@pytest.mark.parametrize("forecast", [0.02, 0.3, 0.5, 0.9])
def test_one_forecast_is_covered_whatever_its_chance(forecast, rows):
    limits = limits_by_count(forecast, rows, 0.2)
    assert misses(limits, forecast, np.linspace(0.0, 1.0, 201)).max() <= 0.2


@pytest.mark.parametrize("share", [0.25, 0.1])
def test_a_bet_that_gives_less_away_would_miss_too_often(monkeypatch, share):
    plain = saving_limits._shares
    monkeypatch.setattr(saving_limits, "_shares", lambda delta: (share * plain(delta)[0], plain(delta)[1]))
    found = [
        misses(limits_by_count(forecast, 300, 0.2), forecast, np.linspace(0.0, 1.0, 201)).max()
        for forecast in (0.02, 0.3)
    ]
    assert max(found) > 0.2


def test_half_of_hoeffdings_margin_would_miss_too_often():
    rows, forecast, delta = 300, 0.5, 0.05
    saving = np.abs(np.arange(rows + 1) / rows - forecast)
    margin = saving_limits.saving_margin(rows, delta)
    chances = np.linspace(0.0, 1.0, 201)
    assert misses(saving + margin, forecast, chances).max() <= delta
    assert misses(saving + 0.5 * margin, forecast, chances).max() > delta


def test_rates_enclose_that_of_the_population():
    delta, count = 0.2, 150
    for population in (SHIFTED, OVERCONFIDENT, CONSTANT):
        rng, outside = seeded(population, "rates"), 0
        for rows in (100, 2000):
            law = Stretches.of(LAWS[population])
            scale = rows / law.rows.sum()
            whole = law._replace(rows=scale * law.rows, events=scale * law.events)
            exponent = saving_limits._shares(delta)[0]
            rate = saving_limits.usual_rate(whole, EVERY_THRESHOLD, exponent)
            for _ in range(count):
                tally = population.tally(rng, rows)
                slow, fast = saving_limits.saving_rates(Stretches.of(tally), EVERY_THRESHOLD, delta)
                outside += not slow * (1 - 1e-9) <= rate <= fast * (1 + 1e-9)
        assert outside <= allowed(2 * count, VARIANCE_SHARE * delta)


def test_events_forecast_as_impossible_do_not_leave_the_rates_behind():
    for rows in range(100, 400, 7):
        surprise = Stretches(np.zeros(1), np.zeros(1), np.array([float(rows)]), np.array([float(rows)]))
        exponent = saving_limits._shares(0.05)[0]
        rate = saving_limits.usual_rate(surprise, EVERY_THRESHOLD, exponent)
        slow, fast = saving_limits.saving_rates(surprise, EVERY_THRESHOLD, 0.05)
        assert slow <= rate <= fast
        assert math.isfinite(slow)
