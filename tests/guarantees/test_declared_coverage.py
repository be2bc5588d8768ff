"""Limits of the regret of declared decisions hold as often as they say, whatever the population.

Limits depend on the rows through a table of counts alone, so that populations are tables of chances. With one action
taken and two classes all tables are gone through, which leaves no chance; others are simulated, with seeds.
"""

import zlib
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from simulated import allowed, runs_needed

import calibrant
from calibrant.certificates.methods.registry import METHODS
from calibrant.decisions import reject_option
from calibrant.rows.actions import ActionTable, in_units

RATES = np.concatenate([np.geomspace(1e-4, 0.5, 60), 1.0 - np.geomspace(1e-4, 0.5, 60)])
METHOD_NAMES = ("adaptive", "hoeffding")


def seeded(*key):
    return np.random.default_rng([zlib.crc32(str(part).encode()) for part in key])


def table_of(losses, counts):
    loss, unit, least = in_units(np.asarray(losses, dtype=float))
    counts = np.asarray(counts, dtype=float)
    rows = int(counts.sum())
    return ActionTable(loss, unit, least, counts, counts.sum(axis=1).astype(int), rows, float(rows))


def regret(losses, chance):
    """The swap regret of a population: chances by action taken and class."""
    losses, chance = np.asarray(losses, dtype=float), np.asarray(chance)
    return float(np.einsum("ak,abk->ab", chance, losses[:, None] - losses[None]).max(axis=1).sum())


@cache
def limits_of_counts(method, rows, gain, delta):
    """Both limits for every count of rows in which the other action gains 1; in all others it loses ``gain``."""
    losses = [[1.0, 0.0], [0.0, gain]]
    tables = [table_of(losses, [[count, rows - count], [0, 0]]) for count in range(rows + 1)]
    chosen = METHODS[method]
    return np.array(
        [[each.unit * limit(each, delta) for limit in (chosen.lower_regret, chosen.upper_regret)] for each in tables]
    )


@pytest.mark.parametrize("method", METHOD_NAMES)
@pytest.mark.parametrize("gain", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("rows", "delta"), [(1, 0.3), (6, 0.1), (25, 0.05), (60, 0.3)])
def test_no_chance_of_a_gain_is_missed_too_often(method, gain, rows, delta):
    lower, upper = limits_of_counts(method, rows, gain, delta).T
    for rate in RATES:
        truth = max(rate - gain * (1.0 - rate), 0.0)
        chance = binom.pmf(np.arange(rows + 1), rows, rate)
        assert chance[upper < truth - 1e-12].sum() <= delta
        assert chance[lower > truth + 1e-12].sum() <= delta


TRIP = [[0.0, 0.4, 1.0], [0.3, 0.2, 0.5], [0.6, 0.6, 0.0]]
NAME = np.vstack([1.0 - np.eye(3), np.full(3, 0.3)])
POPULATIONS: dict[str, Any] = {
    "no regret, many ties": (NAME, np.vstack([np.full((3, 3), 0.1), [0.0, 0.1, 0.0]])),
    "overconfident": (NAME, np.vstack([0.33 * (0.6 * np.eye(3) + 0.4 / 3.0), [0.01, 0.0, 0.0]])),
    "a rare class that costs much": ([[0, 0, 9.0], [1, 1, 0]], [[0.48, 0.5, 0.02], [0.0, 0.0, 0.0]]),
    "a rare action that is wrong": (TRIP, [[0.5, 0.1, 0.0], [0.1, 0.26, 0.0], [0.03, 0.0, 0.01]]),
    "all wrong": (TRIP, [[0.0, 0.05, 0.3], [0.2, 0.05, 0.1], [0.3, 0.0, 0.0]]),
}


def test_populations_are_what_they_are_called():
    assert regret(*POPULATIONS["no regret, many ties"]) > 0.0  # naming a class no better than another
    for losses, chance in POPULATIONS.values():
        assert np.sum(chance) == pytest.approx(1.0)
        assert np.shape(losses) == np.shape(chance)


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize(("rows", "delta"), [(20, 0.2), (150, 0.05)])
def test_limits_of_several_actions_hold(name, rows, delta):
    losses, chance = POPULATIONS[name]
    truth, shape, count = regret(losses, chance), np.shape(chance), 150
    rng, missed = seeded(name, rows), Counter[tuple[str, str]]()
    missed.update(dict.fromkeys([(method, side) for method in METHOD_NAMES for side in ("lower", "upper")], 0))
    for _ in runs_needed(missed, count, allowed(count, delta)):
        table = table_of(losses, rng.multinomial(rows, np.ravel(chance)).reshape(shape))
        for method in METHOD_NAMES:
            missed[method, "upper"] += table.unit * METHODS[method].upper_regret(table, delta) < truth - 1e-12
            missed[method, "lower"] += table.unit * METHODS[method].lower_regret(table, delta) > truth + 1e-12
    assert max(missed.values()) <= allowed(count, delta), missed


def test_limits_of_weighted_rows_hold():
    """Few heavy rows lose most: weights have a say in whom the regret is about, and rows are not alike."""
    losses, delta, count = np.array(TRIP), 0.2, 150
    weight = np.repeat([1.0, 0.1], [12, 60])
    heavy, light = np.array([0.2, 0.1, 0.7]), np.array([0.7, 0.3, 0.0])
    forecast = np.tile([1.0, 0.0, 0.0], (72, 1))  # so that everybody walks
    chance = (12.0 * heavy + 6.0 * light) / 18.0
    truth = regret(losses, np.vstack([chance, np.zeros((2, 3))]))
    assert truth > 0.1
    rng, missed = seeded("weights"), Counter({"lower": 0, "upper": 0})
    for _ in runs_needed(missed, count, allowed(count, delta)):
        place = np.concatenate([rng.choice(3, size=12, p=heavy), rng.choice(3, size=60, p=light)])
        table = ActionTable.of(losses, place, forecast, weight)
        missed["upper"] += table.unit * METHODS["adaptive"].upper_regret(table, delta) < truth - 1e-12
        missed["lower"] += table.unit * METHODS["adaptive"].lower_regret(table, delta) > truth + 1e-12
    assert max(missed.values()) <= allowed(count, delta), missed


def population_of_rows(rng, rows):
    """Forecasts too sure of themselves that take few values, so that ties and equal expected losses are many."""
    chance = rng.choice([0.2, 0.3, 0.5], size=(rows, 3), p=[0.3, 0.3, 0.4])
    chance /= chance.sum(axis=1, keepdims=True)
    forecast = chance**2 / (chance**2).sum(axis=1, keepdims=True)
    return np.minimum((chance.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1), 2), forecast


def test_verdicts_on_several_problems_at_once_are_seldom_wrong():
    """Limits at the regrets themselves: no verdict is right, so that every one counts."""
    problems: dict[str, Any] = {"trip": np.array(TRIP), "name": reject_option(cost=0.35).for_classes((0, 1, 2)).array()}
    place, forecast = population_of_rows(seeded("large"), 400_000)
    truth = {
        name: calibrant.certify_decisions(place, forecast, losses, max_regret=1.0).regret
        for name, losses in problems.items()
    }
    below = {name: max(value - 0.003, 0.0) for name, value in truth.items()}  # beyond the error of so many rows
    above = {name: value + 0.003 for name, value in truth.items()}
    assert truth["name"] > 0.01
    delta, count, rng = 0.2, 100, seeded("verdicts")
    wrong = Counter({"certified": 0, "refuted": 0})
    for _ in runs_needed(wrong, count, allowed(count, delta)):
        place, forecast = population_of_rows(rng, 120)
        asked: dict[str, Any] = {"confidence_level": 1.0 - delta, "classes": range(3)}
        wrong["certified"] += bool(calibrant.certify_decisions(place, forecast, problems, max_regret=below, **asked))
        refuted = calibrant.certify_decisions(place, forecast, problems, max_regret=above, **asked)
        wrong["refuted"] += refuted.verdict == "refuted"
    assert max(wrong.values()) <= allowed(count, delta), wrong
