"""Limits over all thresholds, and of PIT values, are wrong no more often than they may be.

Populations are finite: kinds of rows, each with an ensemble, or a grid of probabilities, and a law of the outcome on a
few values, so that the population's error is known exactly. Ties abound, rows are few, and the ends of limits are
where they could break: an error that sits at one rare threshold, forecasts that are all the same or all sure.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import beta
from simulated import allowed, replicates, runs_needed

from calibrant.certificates.pit import kuiper, kuiper_lower_margin, pit_margin
from calibrant.certificates.thresholds import threshold_lower, threshold_upper
from calibrant.rows.distributions import check_distributions

DELTA = 0.1
RUNS = replicates(120)


@dataclass
class Kinds:
    """Kinds of rows: how frequent, their ensembles, and the laws of their outcomes 0, 1, 2, ..."""

    share: np.ndarray
    ensemble: np.ndarray
    law: np.ndarray

    def forecast(self, threshold):
        return (self.ensemble <= threshold).mean(axis=1)

    @property
    def error(self):
        """The threshold calibration error of the population."""
        found = 0.0
        for threshold in np.unique(np.append(self.ensemble, np.arange(self.law.shape[1]))):
            forecast = self.forecast(threshold)
            happened = self.law[:, : int(np.floor(threshold)) + 1].sum(axis=1) if threshold >= 0 else 0.0 * forecast
            mass = self.share * (happened - forecast)
            for low, high in itertools.combinations_with_replacement(np.unique(forecast), 2):
                found = max(found, abs(float(mass[(forecast >= low) & (forecast <= high)].sum())))
        return found

    def draw(self, rng, rows):
        kind = rng.choice(self.share.size, size=rows, p=self.share)
        passed = np.cumsum(self.law, axis=1)[kind] < rng.random(rows)[:, None]
        return np.minimum(passed.sum(axis=1), self.law.shape[1] - 1).astype(float), kind


POPULATIONS = {
    "the same for all, and right": Kinds(np.array([1.0]), np.array([[0, 0, 1, 2]]), np.array([[0.5, 0.25, 0.25]])),
    "the same for all, off at one rare threshold": Kinds(
        np.array([1.0]), np.array([[0, 0, 0, 0]]), np.array([[0.95, 0.0, 0.05]])
    ),
    "sure of themselves": Kinds(
        np.array([0.5, 0.5]), np.array([[0], [2]]), np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    ),
    "right in several kinds": Kinds(
        np.array([0.4, 0.3, 0.3]),
        np.array([[0, 0, 1, 3], [0, 1, 2, 3], [2, 3, 3, 3]]),
        np.array([[0.5, 0.25, 0.0, 0.25], [0.25, 0.25, 0.25, 0.25], [0.0, 0.0, 0.25, 0.75]]),
    ),
    "off in one kind of three": Kinds(
        np.array([0.4, 0.3, 0.3]),
        np.array([[0, 0, 1, 3], [0, 1, 2, 3], [2, 3, 3, 3]]),
        np.array([[0.5, 0.25, 0.0, 0.25], [0.0, 0.0, 0.5, 0.5], [0.0, 0.0, 0.25, 0.75]]),
    ),
}


def asked_of(kinds, drawn, listed):
    """The rows as an ensemble at all thresholds, or as functions at a list."""
    z, kind = drawn
    if listed:
        return check_distributions(z, None, None, lambda t: kinds.forecast(t)[kind]).at(range(kinds.law.shape[1]))[0]
    return check_distributions(z, kinds.ensemble[kind], None, None).at("all")[0]


@pytest.mark.parametrize("listed", [False, True], ids=["ensembles", "functions"])
@pytest.mark.parametrize("name", POPULATIONS)
def test_limits_over_thresholds_hold(name, listed):
    kinds, rng = POPULATIONS[name], np.random.default_rng([len(name), listed])
    sizes = (12, 90) if not listed else (40,)
    missed = dict.fromkeys(itertools.product(("upper", "lower"), sizes), 0)
    for run in runs_needed(missed, RUNS, allowed(RUNS, DELTA)):
        for rows in sizes:
            asked = asked_of(kinds, kinds.draw(rng, rows), listed)
            missed["upper", rows] += threshold_upper(asked, DELTA) < kinds.error - 1e-12
            missed["lower", rows] += threshold_lower(asked, DELTA, run) > kinds.error + 1e-12
    assert max(missed.values()) <= allowed(RUNS, DELTA)


def test_the_populations_are_what_their_names_say():
    errors = {name: kinds.error for name, kinds in POPULATIONS.items()}
    assert errors == pytest.approx(dict(zip(POPULATIONS, (0.0, 0.05, 0.15, 0.0, 0.15), strict=True)))


LAWS = {
    "uniform": (1.0, 1.0),
    "too few in the middle": (0.8, 0.8),
    "to one side": (1.0, 1.5),
    "at one end": (0.05, 1.0),
}


@pytest.mark.parametrize("rows", [5, 60])
@pytest.mark.parametrize("law", LAWS)
def test_limits_of_pit_values_hold(law, rows):
    # Beta laws of the PIT value, whose largest deviation over intervals is read off their distribution function.
    grid = np.linspace(0.0, 1.0, 20001)
    curve = beta.cdf(grid, *LAWS[law]) - grid
    truth = curve.max() - curve.min()
    rng = np.random.default_rng(rows)
    missed = {"upper": 0, "lower": 0}
    count = 10 * RUNS
    for _ in runs_needed(missed, count, allowed(count, DELTA)):
        estimate = kuiper(rng.beta(*LAWS[law], size=rows))[0]
        missed["upper"] += estimate + pit_margin(rows, DELTA) < truth - 1e-6
        missed["lower"] += estimate - kuiper_lower_margin(rows, DELTA) > truth + 1e-6
    assert max(missed.values()) <= allowed(count, DELTA)
