"""Bounds of recalibrated forecasters hold as often as they say, on populations whose errors are known exactly.

A population is a law on finitely many forecasts (five hundred where it stands for a continuous one), so that the Cutoff
error of a fitted map is a sum, and what it would be for the worst monotone map of all is a maximum over sums.
Seeds are fixed and limits are binomial: a correct bound fails one of these with probability ``FALSE_ALARM``.

    CALIBRANT_REPLICATES=10 python -m pytest tests/guarantees/test_recalibration_guarantees.py

runs them ten times as long.
"""

import math
import os
from dataclasses import dataclass

import numpy as np
import pytest
from recalibration_cases import guarantee_of
from scipy.stats import beta, binom
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from calibrant import (
    BetaRecalibrator,
    GuardedRecalibrator,
    IsotonicRecalibrator,
    PlattRecalibrator,
    RecalibratedClassifier,
    Tally,
    TemperatureRecalibrator,
    cutoff_calibration_error,
)
from calibrant.certificates.margins import monotone_margin
from calibrant.repairs import ConstantRecalibrator

FALSE_ALARM = 1e-4
REPLICATES = float(os.environ.get("CALIBRANT_REPLICATES", "1"))
RUNS = round(40 * REPLICATES)
MODELS = round(60 * REPLICATES)
WORST_RUNS = round(1_000 * REPLICATES)


@dataclass(frozen=True, eq=False)
class Law:
    """Forecasts with their probabilities and the mean outcomes there; fractions are 0, 1/2 and 1."""

    name: str
    forecast: np.ndarray
    mass: np.ndarray
    chance: np.ndarray
    fractions: bool = False

    def __str__(self):
        return self.name

    def counts(self, rng, rows, size=None):
        """Rows and sums of outcomes at each forecast."""
        drawn = rng.multinomial(rows, self.mass, size=size)
        if self.fractions:  # the mean of two coins
            return drawn, rng.binomial(2 * drawn, self.chance) / 2
        return drawn, rng.binomial(drawn, self.chance)

    def sample(self, rng, rows):
        """A tally of so many rows."""
        drawn, events = self.counts(rng, rows)
        if not self.fractions:
            return Tally.from_counts(self.forecast, drawn, events)
        level = np.repeat(np.arange(self.mass.size), drawn)
        return Tally.from_arrays(rng.binomial(2, self.chance[level]) / 2, self.forecast[level])

    def cutoff(self, recalibrator):
        """The population's Cutoff error of the recalibrated forecaster, exactly."""
        return self.cutoff_of(recalibrator.predict(self.forecast))

    def cutoff_of(self, mapped):
        """The range of the sums of residuals up to each distinct forecast: those in between end no interval."""
        order = np.argsort(mapped)
        mapped = mapped[order]
        curve = np.cumsum(self.mass[order] * (self.chance[order] - mapped))
        curve = curve[np.append(mapped[1:] > mapped[:-1], True)]
        return max(0.0, curve.max()) - min(0.0, curve.min())


def on_grid(name, chance, points=500, forecast=None, **kind):
    grid = (np.arange(points) + 0.5) / points
    forecast = grid if forecast is None else forecast(grid)
    return Law(name, forecast, np.full(points, 1 / points), np.clip(chance(forecast), 0, 1), **kind)


def on_levels(name, forecast, mass, chance):
    return Law(name, np.array(forecast, dtype=float), np.array(mass, dtype=float), np.array(chance, dtype=float))


FIGURE_4 = on_levels("figure 4 of the paper", [0, 0.25, 0.5, 1], [0.25] * 4, [1, 0, 0, 1])
LAWS = [
    on_grid("calibrated", lambda p: p),
    on_grid("rare events", lambda p: p, forecast=lambda u: beta.ppf(u, 0.5, 20)),
    on_grid("rare events, forecast at half their chance", lambda p: 2 * p, forecast=lambda u: beta.ppf(u, 0.5, 20) / 2),
    on_levels("constant", [0.3], [1.0], [0.4]),
    on_levels("events forecast as impossible", [0.0], [1.0], [0.003]),
    on_levels("four levels", [0.1, 0.35, 0.6, 0.9], [0.3, 0.2, 0.3, 0.2], [0.2, 0.25, 0.7, 0.75]),
    on_levels("certain outcomes with a noisy atom", [0.4, 0.6, 0.9], [0.5, 0.3, 0.2], [0.0, 1.0, 0.9]),
    on_grid("shifted", lambda p: p + 0.1),
    on_grid("a single bad spike", lambda p: np.where((p > 0.5) & (p <= 0.54), p + 0.4, p)),
    on_grid("fast oscillation", lambda p: p + np.where(np.floor(p / 0.02) % 2 == 0, 0.2, -0.2)),
    on_grid("overconfident", lambda p: 0.3 + 0.4 * p),
    on_grid("reversed", lambda p: 1 - p),
    on_grid("reversed and certain", lambda p: p < 0.5),
    on_grid("coins", lambda p: np.full(p.size, 0.5)),
    on_grid("fractions", lambda p: 0.2 + 0.6 * p, fractions=True),
    FIGURE_4,
]
KINDS = {
    "isotonic": IsotonicRecalibrator(),
    "isotonic, linear": IsotonicRecalibrator(interpolation="linear"),
    "isotonic, inside": IsotonicRecalibrator(ends="inside"),
    "Platt": PlattRecalibrator(),
    "Platt on the logit": PlattRecalibrator(on="logit", clip=1e-6),
    "beta": BetaRecalibrator(clip=1e-6),
    "temperature": TemperatureRecalibrator(clip=1e-6),
    "constant": ConstantRecalibrator(),
    "guarded": GuardedRecalibrator(),
    "guarded, inside and strict": GuardedRecalibrator([IsotonicRecalibrator(ends="inside")], tolerance=0.0),
    "modified Platt": GuardedRecalibrator([PlattRecalibrator(), ConstantRecalibrator()], tolerance="paper"),
}


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_error_of_a_population_is_the_measure_of_its_forecasts(law):
    for mapped in (law.forecast, 1 - law.forecast, np.round(law.forecast, 1), np.full(law.mass.size, 0.5)):
        measured = cutoff_calibration_error(Tally.from_arrays(law.chance, mapped, sample_weight=law.mass))
        assert law.cutoff_of(mapped) == pytest.approx(measured, abs=1e-12)


def most(share, runs):
    return binom.isf(FALSE_ALARM, runs, share)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("rows", [200, 5_000])
def test_bounds_of_every_recalibrator_hold(law, rows):
    rng = np.random.default_rng([rows, *law.name.encode()])
    missed, promises_missed = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
    for _ in range(RUNS):
        tally = law.sample(rng, rows)
        for name, kind in KINDS.items():
            try:
                recalibrator = kind.fit(tally)
            except ValueError:  # one class only, or forecasts that no temperature helps: nothing is claimed
                continue
            guarantee, truth = recalibrator.guarantee(0.8), law.cutoff(recalibrator)
            missed[name] += truth > guarantee.upper
            if guarantee.in_advance is not None:
                promises_missed[name] += truth > guarantee.in_advance
                assert guarantee.upper <= guarantee.in_advance + 1e-12
            assert guarantee.paper_upper >= guarantee.upper
    assert max(missed.values()) <= most(0.2, RUNS), missed
    assert max(promises_missed.values()) <= most(0.2, RUNS), promises_missed


def worst_deviation(law, rng, rows, runs):
    """The largest (E - E_n)[(Y - h(f)) 1{f in I}] of either sign over all monotone h and intervals I, run by run.

    A monotone map is a mixture of steps, so the worst is a step: events up to it and non-events after it, or the other
    way round, each on a stretch that ends at the step.
    """
    # Some runs at a time, whose sums stay in the processor's cache.
    return np.concatenate([_worst(law, *law.counts(rng, rows, size=min(50, runs - k))) for k in range(0, runs, 50)])


def _worst(law, drawn, events):
    runs, rows = len(drawn), drawn[0].sum()
    on = law.mass * law.chance - events / rows
    off = law.mass * (1 - law.chance) - (drawn - events) / rows
    zero = np.zeros((runs, 1))
    on_curve = np.concatenate([zero, np.cumsum(on, axis=1)], axis=1)
    off_curve = np.concatenate([zero, np.cumsum(off, axis=1)], axis=1)
    worst = np.zeros(runs)
    for sign in (1.0, -1.0):
        for left, right in ((sign * on_curve, -sign * off_curve), (-sign * off_curve, sign * on_curve)):
            before = left - np.minimum.accumulate(left, axis=1)  # the best stretch that ends at each step
            after = np.maximum.accumulate(right[:, ::-1], axis=1)[:, ::-1] - right  # ... and the best that begins there
            worst = np.maximum(worst, (before + after).max(axis=1))
    return worst


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("rows", [50, 2_000])
def test_the_margin_covers_the_worst_monotone_map(law, rows):
    rng = np.random.default_rng([rows + 1, *law.name.encode()])
    worst = worst_deviation(law, rng, rows, WORST_RUNS)
    for delta in (0.5, 0.2, 0.05):
        margin = monotone_margin(rows, delta)
        assert (worst > margin).sum() <= most(delta, WORST_RUNS)
    # It is not empty either: at 95% the worst map is off by a fair share of the margin where outcomes are noisy.
    if law.name == "coins":
        assert np.quantile(worst, 0.95) > 0.35 * monotone_margin(rows, 0.05)


def test_the_worst_deviation_is_attained_by_monotone_maps_only():
    # Random monotone maps and intervals never exceed it, and some step comes close.
    law = on_levels("few levels", [0.1, 0.3, 0.5, 0.7, 0.9], [0.2] * 5, [0.3, 0.1, 0.9, 0.4, 0.6])
    rng = np.random.default_rng(0)
    drawn, events = law.counts(rng, 100)

    class Fixed:
        def multinomial(self, *_, size):
            return np.tile(drawn, (size, 1))

        def binomial(self, *_):
            return events[None]

    (worst,) = worst_deviation(law, Fixed(), 100, 1)
    found = 0.0
    for _ in range(20_000):
        mapped = np.sort(rng.integers(0, 2, 5) if rng.random() < 0.5 else rng.random(5))
        mapped = mapped[::-1] if rng.random() < 0.5 else mapped
        begin, end = np.sort(rng.integers(0, 6, 2))
        population = law.mass * (law.chance - mapped)
        rows = (events - drawn * mapped) / 100
        found = max(found, abs((population - rows)[begin:end].sum()))
    assert found == pytest.approx(worst, abs=1e-12)


def test_the_isotonic_bound_is_far_below_the_papers():
    for rows in (10, 1_000, 10**6):
        guarantee = guarantee_of(IsotonicRecalibrator().fit(Tally.from_counts([0.5], [rows], [rows // 2])))
        assert guarantee.margin <= 4.65 / math.sqrt(rows)
        assert guarantee.paper_margin / guarantee.margin > 7.6


def test_platts_failure_persists_at_a_million_rows_and_the_guard_catches_it():
    rng = np.random.default_rng(4)
    tally = FIGURE_4.sample(rng, 1_000_000)
    platt = PlattRecalibrator().fit(tally)
    # The population's curve; its error does not shrink with the rows.
    assert [platt.intercept_, platt.slope_] == pytest.approx([-0.405804, 0.930895], abs=0.01)
    assert FIGURE_4.cutoff(platt) > 0.2
    assert guarantee_of(platt).upper > FIGURE_4.cutoff(platt)
    assert guarantee_of(platt).in_advance is None
    for guard in (GuardedRecalibrator(), GuardedRecalibrator([PlattRecalibrator(), ConstantRecalibrator()])):
        guarded = guard.fit(tally)
        assert not guarded.ladder_[0].kept
        assert FIGURE_4.cutoff(guarded) <= guarantee_of(guarded).upper < 0.005
    modified = GuardedRecalibrator([PlattRecalibrator(), ConstantRecalibrator()], tolerance="paper").fit(tally)
    assert not modified.ladder_[0].kept
    assert FIGURE_4.cutoff(modified) <= guarantee_of(modified).upper


def test_the_tolerance_keeps_a_curve_that_fits_in_95_of_100_cases():
    grid = np.linspace(0.0005, 0.9995, 1_000)
    law = Law("logistic", grid, np.full(1_000, 1 / 1_000), 1 / (1 + np.exp(-(4 * grid - 2))))
    rng = np.random.default_rng(8)
    runs = round(300 * REPLICATES)
    kept = sum(GuardedRecalibrator().fit(law.sample(rng, 1_000)).ladder_[0].kept for _ in range(runs))
    # Two fitted numbers bring the curve nearer to the rows than the truth is, so that it is kept even more often.
    assert runs - kept <= most(0.05, runs)


MODEL_CASES = {
    "coins": (GaussianNB(), GuardedRecalibrator(), 0.06),
    "calibrated": (GaussianNB(), IsotonicRecalibrator(), 0.06),
    "reversed and certain": (GaussianNB(), PlattRecalibrator(on="logit", clip=1e-9), 0.04),
    "figure 4 of the paper": (
        LinearDiscriminantAnalysis(),
        PlattRecalibrator(),
        0.24,
    ),  # no curve fits: off by 0.24 and more
}


@pytest.mark.parametrize("name", MODEL_CASES)
def test_certificates_of_recalibrated_models_hold(name):
    # The forecasts of the law are the only feature. Model and map are known once fitted, and so is their exact error.
    (law,) = (law for law in LAWS if law.name == name)
    model, recalibrator, max_error = MODEL_CASES[name]
    rng = np.random.default_rng([7, *law.name.encode()])
    too_low = too_high = certified = wrongly_certified = 0
    for seed in range(MODELS):
        level = rng.choice(law.mass.size, p=law.mass, size=600)
        y = rng.random(600) < law.chance[level]
        classifier = RecalibratedClassifier(
            model, recalibrator, cv=2, max_error=max_error, confidence_level=0.8, split=0.5, random_state=seed
        ).fit(law.forecast[level, None], y)
        forecast = classifier.predict_proba(law.forecast[:, None])[:, 1]
        truth = law.cutoff_of(forecast)
        certificate = classifier.certificate_
        assert certificate is not None
        too_low += certificate.upper < truth
        too_high += certificate.lower > truth
        certified += bool(certificate)
        wrongly_certified += bool(certificate) and truth > max_error
        assert certificate.rows == 300
    assert max(too_low, too_high, wrongly_certified) <= most(0.2, MODELS), (too_low, too_high, wrongly_certified)
    if name == "reversed and certain":
        assert certified > MODELS / 10
