from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, chi2, norm
from scipy.stats import t as student

import calibrant
from calibrant import InputError, Tally
from calibrant.core.errors import UndefinedError

observed_expected_ratio: Any = calibrant.measures.observed_expected_ratio  # options come in dicts
RNG = np.random.default_rng(8)


def data(size=500):
    p = RNG.random(size)
    return (RNG.random(size) < p**1.2).astype(float), p


def ends(found):
    return found.lower, found.upper


def test_observed_over_expected():
    y, p = data()
    w = RNG.random(500)
    assert observed_expected_ratio(y, p) == pytest.approx(y.sum() / p.sum())
    assert observed_expected_ratio(y, p, sample_weight=w) == pytest.approx((w @ y) / (w @ p))
    with pytest.raises(ValueError, match="y_prob is 0 everywhere"):
        observed_expected_ratio([0, 1], [0.0, 0.0])
    with pytest.raises(ValueError, match="y_prob is 0 everywhere"):
        observed_expected_ratio([0, 1], [0.0, 0.0], confidence_level=0.95)
    assert calibrant.measure([0, 1], [0.0, 0.0]).observed_expected_ratio is None
    with pytest.raises(ValueError, match="y_prob is next to 0 everywhere"):
        observed_expected_ratio([0, 1], [0.0, 1e-309])
    assert calibrant.measure([0, 1], [0.0, 1e-309]).observed_expected_ratio is None


@pytest.mark.parametrize("events", [0, 1, 30, 40])
def test_limits_of_counts(events):
    p = np.linspace(0.1, 0.9, 40)
    y = np.arange(40) < events
    found = observed_expected_ratio(y, p, confidence_level=0.9)
    exact = binomtest(events, 40).proportion_ci(0.9)
    assert ends(found) == pytest.approx((exact.low * 40 / p.sum(), exact.high * 40 / p.sum()), rel=1e-10)
    assert (found.estimate, found.interval, found.rows) == (pytest.approx(events / p.sum()), "exact", 40)
    garwood = chi2.ppf(0.05, 2 * events) / 2 if events else 0.0, chi2.ppf(0.95, 2 * events + 2) / 2
    found = observed_expected_ratio(y, p, confidence_level=0.9, interval="poisson")
    assert ends(found) == pytest.approx(np.divide(garwood, p.sum()), rel=1e-10)


def test_wald_limits_are_those_of_a_ratio_of_means():
    y, p = data()
    ratio = y.sum() / p.sum()
    error = np.std(y - ratio * p, ddof=1) / np.sqrt(500) / y.mean()
    found = observed_expected_ratio(y, p, confidence_level=0.95, interval="wald")
    assert ends(found) == pytest.approx(ratio * np.exp(np.array([-1, 1]) * norm.ppf(0.975) * error), rel=1e-10)


@pytest.mark.parametrize(
    ("kind", "why"),
    [("cluster", "in clusters"), ("sample_weight", "of different weights"), ("fractions", "fractions of events")],
)
def test_what_cannot_be_counted_varies(kind, why):
    y, p = data(60)
    cluster, weight = np.arange(60) % 7, 1.0 + np.arange(60) % 3
    given = {"cluster": cluster, "sample_weight": weight}
    options: dict[str, Any] = {name: each for name, each in given.items() if name == kind}
    y = 0.5 * y + 0.25 if kind == "fractions" else y
    options["confidence_level"] = 0.95
    for interval in ("exact", "poisson"):
        (note,) = observed_expected_ratio(y, p, interval=interval, **options).notes
        assert why in note
    found = observed_expected_ratio(y, p, interval="wald", **options)
    assert found == replace(observed_expected_ratio(y, p, **options), notes=())
    w = weight if kind == "sample_weight" else np.ones(60)
    ratio = (w @ y) / (w @ p)
    moved = w * (y - ratio * p) / (w @ y)
    away = norm.ppf(0.975)
    if kind == "cluster":
        moved, away = np.bincount(cluster, weights=moved), student.ppf(0.975, 6)
    error = np.sqrt((moved**2).sum() * moved.size / (moved.size - 1))
    assert ends(found) == pytest.approx(ratio * np.exp(np.array([-1, 1]) * away * error), rel=1e-10)
    assert found.clusters == (7 if kind == "cluster" else None)


def test_counts_rows_and_weights_in_any_unit():
    counts = Tally.from_counts([0.2, 0.4, 0.7], [50, 30, 20], [15, 10, 17])
    y = np.repeat([1, 0, 1, 0, 1, 0], [15, 35, 10, 20, 17, 3])
    p = np.repeat([0.2, 0.4, 0.7], [50, 30, 20])
    order = RNG.permutation(100)
    for interval in ("exact", "poisson", "wald"):
        options = {"confidence_level": 0.9, "interval": interval}
        expected = ends(observed_expected_ratio(counts, **options))
        assert ends(observed_expected_ratio(y[order], p[order], **options)) == pytest.approx(expected, rel=1e-12)
        same = observed_expected_ratio(y, p, sample_weight=np.full(100, 2.5), **options)
        assert (ends(same), same.notes) == (pytest.approx(expected, rel=1e-12), ())


def test_resamples():
    y, p = data(300)
    options = {"confidence_level": 0.8, "n_resamples": 200}
    wald = observed_expected_ratio(y, p, interval="wald", **options)
    found = observed_expected_ratio(y, p, interval="bootstrap", **options)
    assert ends(found) == pytest.approx(ends(wald), abs=0.02)
    assert (found.interval, found.n_resamples) == ("bootstrap", 200)
    assert found == observed_expected_ratio(y[::-1], p[::-1], interval="bootstrap", rng=0, **options)
    assert found != observed_expected_ratio(y, p, interval="bootstrap", rng=1, **options)


def test_no_event_says_nothing_about_how_it_varies():
    with pytest.raises(UndefinedError, match=r"no event.*interval='exact'"):
        observed_expected_ratio([0] * 50, [0.1] * 50, confidence_level=0.95, interval="bootstrap")
    with pytest.raises(UndefinedError, match=r"no event.*interval='exact'"):
        observed_expected_ratio([0, 0, 0, 0], [0.1, 0.2, 0.3, 0.4], confidence_level=0.95, cluster=[1, 1, 2, 2])
    with pytest.raises(UndefinedError, match="one row says nothing"):
        observed_expected_ratio([1], [0.5], confidence_level=0.95, interval="wald")
    with pytest.raises(InputError, match="interval"):
        observed_expected_ratio([1, 0], [0.5, 0.5], confidence_level=0.95, interval="garwood")


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
@pytest.mark.parametrize(
    "risk",
    [[0.2] * 10, [1.0, 0.01, 0.01, 0.01], [0.5, 0.5, 0.02, 0.02, 0.02], [0.9, 0.9, 0.1, 0.1, 0.6], [0.99] * 3 + [0.03]],
)
def test_exact_limits_hold_whatever_the_risks_are(risk, level):
    """Every number of events, with its probability: no sampling."""
    law = np.array([1.0])
    for each in risk:
        law = np.convolve(law, [1.0 - each, each])
    assert 1.0 <= sum(risk) <= len(risk) - 1.0
    forecast, truth, missed = np.full(len(risk), 0.4), sum(risk) / (0.4 * len(risk)), 0.0
    for events, chance in enumerate(law):
        y_true = (np.arange(len(risk)) < events).astype(int)
        found = observed_expected_ratio(y_true, forecast, confidence_level=level)
        missed += chance * (not found.lower <= truth <= found.upper)
    assert missed <= 1.0 - level
