"""Proper scores as mixtures of threshold losses: known ones, and measures of one's own."""

import math

import numpy as np
import pytest

import calibrant
from calibrant.decisions import SchervishMeasure
from calibrant.decisions.scores import SCORES


def refused(message):
    return pytest.raises(ValueError, match=message)


@pytest.mark.parametrize(
    ("name", "density"),
    [
        ("brier", lambda _: 2.0),
        ("log", lambda t: 1 / (t * (1 - t))),
        ("spherical", lambda t: (t**2 + (1 - t) ** 2) ** -1.5),
    ],
)
def test_the_densities_of_the_known_scores_give_their_losses(name, density):
    known, measure = SCORES[name], SchervishMeasure(density=density, name=name)
    p = np.concatenate([[0.0, 1e-100, 1e-6], np.linspace(0.01, 0.99, 99), [0.999999, 1.0]])
    assert measure.event_loss(p) == pytest.approx(known.event_loss(p), rel=1e-12, abs=1e-12)
    assert measure.nonevent_loss(p) == pytest.approx(known.nonevent_loss(p), rel=1e-9, abs=1e-12)
    assert measure.mass == pytest.approx(known.mass, rel=1e-12)
    rng = np.random.default_rng(4)
    q = rng.random(500)
    y = rng.random(500) < q**2
    ours, theirs = (calibrant.decisions.score_decomposition(y, q, score=score) for score in (measure, name))
    for part in ("score", "miscalibration", "discrimination", "uncertainty", "skill", "mass"):
        assert getattr(ours, part) == pytest.approx(getattr(theirs, part), abs=1e-12)
    assert len(ours.bounds) == len(theirs.bounds)


@pytest.mark.parametrize(
    ("density", "mass"),
    [
        (lambda t: ((t > 0.2) & (t < 0.45)) * 4.0, 1.0),
        (lambda t: t**-0.5, 2.0),
        (lambda t: t**-0.9, 10.0),
        (lambda t: (1 - t) ** -0.5, 2.0),
        (lambda t: t**-1.5, math.inf),
        (lambda t: 1 / (1 - t), math.inf),
        (lambda t: np.where(t < 0.1, 0.0, 1.0), 0.9),
    ],
)
def test_the_mass_of_a_density_with_jumps_or_poles(density, mass):
    measure = SchervishMeasure(density=density)
    assert measure.mass == pytest.approx(mass, abs=1e-8)
    p = np.linspace(0.05, 0.95, 19)
    losses = measure.event_loss(p), measure.nonevent_loss(p)
    assert (np.diff(losses[0]) <= 1e-14).all()
    assert (np.diff(losses[1]) >= -1e-14).all()
    assert np.isfinite(losses).all()


def test_a_measure_of_atoms_and_a_density_adds_up():
    both = SchervishMeasure(atoms=[0.7, 0.3], masses=[2, 1], density=lambda _: 2.0, name="mixed")
    assert both.mass == pytest.approx(5.0)
    assert repr(both) == "SchervishMeasure(2 atoms and a density, total mass 5)"
    y, p = [0, 1, 0.5], [0.5, 0.5, 0.8]
    expected = [0.25 + 0.3, 0.25 + 2 * 0.3, 0.5 * (0.04) + 0.5 * (0.64 + 0.3 + 1.4)]
    assert both.loss(y, p) == pytest.approx(expected, abs=1e-12)
    result = calibrant.decisions.score_decomposition([0, 1, 1], [0.4, 0.2, 0.9], score=both)
    assert result.name == "mixed"
    assert str(result).startswith("mixed score ")
    assert "<= mass 5 x Cutoff" in result.bounds[0].statement


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"^a Schervish measure needs atoms with masses, a density, or both"),
        ({"atoms": [0.5]}, r"^masses is missing: pass atoms and masses together"),
        ({"masses": [1.0], "density": np.cos}, r"^atoms is missing: pass atoms and masses together"),
        ({"atoms": [0.5, 1.5], "masses": [1, 1]}, r"^atoms\[1\] is 1\.5, outside \[0, 1\]"),
        ({"atoms": [0.5], "masses": [1, 2]}, r"^masses has 2 values for 1 atoms"),
        ({"atoms": [0.5], "masses": [0]}, r"^masses\[0\] is 0; masses must be positive"),
        ({"atoms": [0.5], "masses": [np.nan]}, r"^masses\[0\] is missing"),
        ({"density": 2.0}, r"^density must be a function of thresholds, got 2\.0; point masses: atoms="),
        ({"density": lambda t: t - 0.5}, r"^density\(.*\) is -0\.5; it must be finite and not negative"),
        ({"density": lambda t: t[:3]}, r"^density returned an array of shape \(3,\) for .* thresholds"),
        ({"density": lambda _: "2"}, r"^density returned dtype <U1, not real numbers"),
        ({"density": lambda t: t**-2.0}, r"^density grows so fast towards 0 that every forecast above 0 costs infinit"),
        ({"density": lambda t: (1 - t) ** -2.0}, r"^density grows so fast towards 1 that every forecast below 1"),
        ({"density": lambda t: np.sin(1e9 * t) ** 2}, r"^density is too rough to integrate"),
        ({"density": np.exp, "name": 3}, r"^name must be a string, got 3"),
    ],
)
def test_a_measure_that_is_none_is_refused(options, message):
    with refused(message):
        SchervishMeasure(**options)


def test_forecasts_that_a_density_cannot_reach_are_refused():
    measure = SchervishMeasure(density=np.ones_like)
    with refused(r"^y_prob holds 1e-200, nearer to 0 than a density can be integrated; round it to 0"):
        measure.loss([0], [1e-200])
    with refused(r"^y_true has 2 values and y_prob has 1"):
        measure.loss([0, 1], [0.5])
    with refused(r"^y_prob\[0\] is 1\.5, outside"):
        measure.loss([0], [1.5])
