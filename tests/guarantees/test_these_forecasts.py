"""Guarantees of recalibrated forecasters hold for the very forecasts that a map was fitted to.

The forecasts and the chances behind the outcomes are fixed; only the outcomes are drawn, and the map is fitted to them.
Up to twelve rows every vector of outcomes is looked at, so that the probability of a miss is exact. For more rows the
number of misses is compared with the count that a correct bound exceeds in one of 10,000 runs.
"""

import functools
import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression
from scipy.stats import beta
from simulated import allowed, runs_needed

from calibrant import GuardedRecalibrator, IsotonicRecalibrator, PlattRecalibrator, Tally, cutoff_calibration_error
from calibrant.certificates.margins import (
    constant_margin,
    fitted_constant_margin,
    fitted_range_margin,
    range_margin,
)
from calibrant.measures.savings import largest_saving
from calibrant.repairs import ConstantRecalibrator
from calibrant.rows.savings import EVERY_THRESHOLD

DELTAS = (0.5, 0.2, 0.05)
KINDS = {
    "isotonic": IsotonicRecalibrator(),
    "isotonic, inside": IsotonicRecalibrator(ends="inside"),
    "Platt": PlattRecalibrator(),
    "constant": ConstantRecalibrator(),
    "guarded": GuardedRecalibrator(),
}


def errors_of(mapped, chance):
    """The Cutoff error and the risk gap of forecasts whose outcomes have these chances."""
    tally = Tally.from_arrays(chance, mapped)
    return {"cutoff": cutoff_calibration_error(tally), "risk_gap": largest_saving(tally, EVERY_THRESHOLD).saving}


def ranges(forecast, deviations):
    """The range of the sums of outcome minus chance in the order of the forecasts, at the ends of ties; row by row."""
    ends = np.flatnonzero(np.append(forecast[1:] > forecast[:-1], True))
    sums = np.insert(np.cumsum(deviations, axis=-1)[..., ends], 0, 0.0, axis=-1)
    return np.ptp(sums, axis=-1)


def least_brier(forecast, outcome):
    """The smallest mean of squared residuals that a monotone map has, rising or falling; fractions are chances."""
    levels, level, rows = np.unique(forecast, return_inverse=True, return_counts=True)
    means = np.bincount(level, weights=outcome, minlength=levels.size) / rows
    fits = (isotonic_regression(means, weights=rows, increasing=increasing).x[level] for increasing in (True, False))
    return min(float(np.mean(outcome * (1 - fit) ** 2 + (1 - outcome) * fit**2)) for fit in fits)


# --- Every vector of outcomes -----------------------------------------------------------------------------------------

FORECASTS = {
    "distinct": np.arange(1, 13) / 13,
    "tied in pairs": np.repeat(np.arange(1, 7) / 7, 2),
    "a large tie": np.array([0.1, 0.2, *[0.5] * 8, 0.8, 0.9]),
    "constant": np.full(12, 0.3),
    "eight with ties": np.array([0.1, 0.2, 0.2, 0.4, 0.5, 0.5, 0.5, 0.9]),
    "eight alike": np.full(8, 0.3),
    "few": np.array([0.2, 0.4, 0.6]),
    "one": np.array([0.7]),
}


def chances(rows):
    """Chances that are calibrated, reversed, alike, certain, or drawn at random."""
    rng = np.random.default_rng(rows)
    even = (np.arange(rows) + 0.5) / rows
    fixed = [even, 1 - even, np.arange(rows) % 2.0, (np.arange(rows) < rows / 2) * 1.0]
    alike = [np.full(rows, level) for level in (0.0, 0.02, 0.1, 0.3, 0.5, 0.9, 1.0)]
    return [*fixed, *alike, *rng.random((8, rows)), *rng.beta(0.2, 0.2, (8, rows))]


def all_outcomes(rows):
    return np.array(list(itertools.product((0.0, 1.0), repeat=rows)))


def probabilities(outcomes, chance):
    return np.where(outcomes == 1.0, chance, 1.0 - chance).prod(axis=1)


@pytest.mark.parametrize("name", FORECASTS)
def test_the_margin_covers_all_monotone_maps_at_once_whatever_the_chances(name):
    forecast = FORECASTS[name]
    rows, outcomes = forecast.size, all_outcomes(forecast.size)
    brier = [least_brier(forecast, outcome) for outcome in outcomes]
    margins = {delta: np.array([fitted_range_margin(rows, each, delta) for each in brier]) for delta in DELTAS}
    for chance in chances(rows):
        weight = probabilities(outcomes, chance)
        width = ranges(forecast, outcomes - chance) / rows
        for delta, margin in margins.items():
            assert weight[width > margin + 1e-12].sum() <= delta
    if name == "distinct":  # coins use it up to a fair share: two thirds of it would be too little
        width = ranges(forecast, outcomes - 0.5) / rows
        assert (width > range_margin(rows, 0.2) / 1.5).mean() > 0.2


@pytest.mark.parametrize("rows", [1, 2, 5, 12])
def test_the_range_stays_within_bernsteins_bound(rows):
    outcomes = all_outcomes(rows)
    forecast = np.arange(rows) / rows
    for chance in chances(rows):
        variance = float((chance * (1 - chance)).sum())
        weight, width = probabilities(outcomes, chance), ranges(forecast, outcomes - chance)
        for height in np.unique(width.round(9)):
            if height > 0.0:
                most = 4 * math.exp(-(height**2) / (2 * (variance + height / 3)))
                assert weight[width > height - 1e-8].sum() <= most + 1e-12


@functools.cache
def fitted_to_all(name, kind):
    """The recalibrated forecasts, and the guarantees of each measure and level, for every vector of outcomes."""
    forecast, found = FORECASTS[name], []
    for outcome in all_outcomes(forecast.size):
        fitted = KINDS[kind].fit(forecast, outcome)
        bounds = {
            (measure, delta): fitted.guarantee(1 - delta, measure=measure, target="these forecasts")
            for measure in ("cutoff", "risk_gap")
            for delta in DELTAS
        }
        found.append((fitted.predict(forecast), bounds))
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["eight with ties", "eight alike", "few", "one"])
def test_every_fit_is_covered(name, kind):
    outcomes, fits = all_outcomes(FORECASTS[name].size), fitted_to_all(name, kind)
    distinct = np.unique([mapped for mapped, _ in fits], axis=0)  # ties make many outcomes alike
    for chance in chances(outcomes.shape[1])[::2]:
        weight, missed = probabilities(outcomes, chance), Counter[tuple[str, float]]()
        truths = {mapped.tobytes(): errors_of(mapped, chance) for mapped in distinct}
        for probability, (mapped, bounds) in zip(weight, fits, strict=True):
            truth = truths[mapped.tobytes()]
            for key, guarantee in bounds.items():
                missed[key] += probability * (truth[guarantee.measure] > guarantee.upper + 1e-12)
        for (_, delta), probability in missed.items():
            assert probability <= delta


# --- The variance, from the residuals of a map -----------------------------------------------------------------------

UNIT = st.floats(0, 1)


@given(st.lists(st.tuples(UNIT, UNIT, UNIT), min_size=1, max_size=30), st.booleans())
def test_squared_residuals_and_twice_the_range_bound_the_variance(rows, falling):
    outcome, chance, mapped = np.array(rows).T
    mapped = np.sort(mapped)[:: -1 if falling else 1]
    brier = outcome * (1 - mapped) ** 2 + (1 - outcome) * mapped**2
    width = ranges(np.arange(mapped.size), outcome - chance)
    assert (chance * (1 - chance)).sum() <= brier.sum() + 2 * width + 1e-9
    # For a constant the sum of all rows is enough, once.
    level = mapped.mean()
    brier = outcome * (1 - level) ** 2 + (1 - outcome) * level**2
    assert (chance * (1 - chance)).sum() <= brier.sum() + abs((outcome - chance).sum()) + 1e-9


def test_once_the_range_would_not_do():
    # Nothing happens where little was likely, everything where it was nearly sure, and a step follows the outcomes.
    outcome = mapped = np.repeat([0.0, 1.0], 50)
    chance = np.abs(outcome - 0.01)
    width = ranges(np.arange(100), outcome - chance)
    assert (mapped - outcome == 0.0).all()
    assert 1.97 * width < (chance * (1 - chance)).sum() <= 2 * width


@given(st.integers(1, 10**9), UNIT, st.floats(1e-9, 0.5))
def test_margins_solve_what_they_are_said_to_solve(rows, brier, delta):
    for plain, fitted, exponent, feedback in (
        (range_margin, fitted_range_margin, math.log(4 / delta), 2),
        (constant_margin, fitted_constant_margin, math.log(2 / delta), 1),
    ):
        margin = fitted(rows, brier, delta)
        assert 0 < margin <= plain(rows, delta)
        if margin < plain(rows, delta):
            strayed = margin * rows
            variance = rows * brier + feedback * strayed
            assert strayed**2 == pytest.approx(2 * exponent * (variance + strayed / 3), rel=1e-9)
        assert fitted(rows, min(1.0, brier + 0.1), delta) >= margin


# --- More rows --------------------------------------------------------------------------------------------------------


def even(rows):
    return (np.arange(rows) + 0.5) / rows


def calibrated(rows):
    return even(rows), even(rows)


def coins(rows):
    return even(rows), np.full(rows, 0.5)


def reversed_and_nearly_certain(rows):
    return even(rows), np.where(even(rows) < 0.5, 0.99, 0.01)


def rare_events(rows):
    p = beta.ppf(even(rows), 0.5, 20)
    return p, np.minimum(2 * p, 1.0)


def rarer_events(rows):
    return even(rows), np.full(rows, 5 / rows)


def told_apart(rows):
    p = beta.ppf(even(rows), 0.05, 0.05)
    return p, 0.01 + 0.98 * p


def four_levels(rows):
    level = np.sort(np.arange(rows) % 4)
    return level / 4 + 0.125, np.array([0.1, 0.5, 0.3, 0.95])[level]


def one_level(rows):
    return np.full(rows, 0.3), np.full(rows, 0.4)


DESIGNS = [
    calibrated,
    coins,
    reversed_and_nearly_certain,
    rare_events,
    rarer_events,
    told_apart,
    four_levels,
    one_level,
]


def drawn(rng, chance, *, fractions):
    """Outcomes with these chances: events, or the mean of two coins."""
    if fractions:
        return rng.binomial(2, chance) / 2
    return (rng.random(chance.size) < chance).astype(float)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(("rows", "runs"), [(60, 100), (3_000, 40)])
@pytest.mark.parametrize("fractions", [False, True])
def test_bounds_of_every_recalibrator_hold(design, rows, runs, fractions):
    forecast, chance = design(rows)
    rng = np.random.default_rng([rows, fractions, DESIGNS.index(design)])
    missed = Counter[tuple[str, str]]()
    for _ in runs_needed(missed, runs, allowed(runs, 0.2)):
        tally = Tally.from_arrays(drawn(rng, chance, fractions=fractions), forecast)
        truths: dict[bytes, dict[str, float]] = {}  # guarded forecasts are often those of another kind
        for name, kind in KINDS.items():
            fitted = kind.fit(tally)
            mapped = fitted.predict(forecast)
            if mapped.tobytes() not in truths:
                truths[mapped.tobytes()] = errors_of(mapped, chance)
            truth = truths[mapped.tobytes()]
            for measure in ("cutoff", "risk_gap"):
                guarantee = fitted.guarantee(0.8, measure=measure, target="these forecasts")
                missed[name, measure] += truth[measure] > guarantee.upper
                assert guarantee.upper <= fitted.guarantee(0.8, measure=measure).upper
                assert guarantee.in_advance is None or guarantee.upper <= guarantee.in_advance + 1e-12
    assert max(missed.values()) <= allowed(runs, 0.2), missed


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("fractions", [False, True])
def test_the_margin_after_the_fit_covers_all_monotone_maps_at_once(design, fractions):
    rows, runs = 2_000, 400
    forecast, chance = design(rows)
    rng = np.random.default_rng([4, fractions, DESIGNS.index(design)])
    missed, adaptive, width = Counter[float](), 0, np.empty(runs)
    for k in range(runs):
        outcome = drawn(rng, chance, fractions=fractions)
        width[k] = ranges(forecast, outcome - chance) / rows
        brier = least_brier(forecast, outcome)
        for delta in DELTAS:
            missed[delta] += width[k] > fitted_range_margin(rows, brier, delta)
        adaptive += fitted_range_margin(rows, brier, 0.05) < range_margin(rows, 0.05)
    for delta in DELTAS:
        assert missed[delta] <= allowed(runs, delta), missed
    # Where outcomes are not all coins, the residuals of the map make the margin smaller, but not by too much.
    assert adaptive == (0 if design in {coins, one_level} else runs)
    if design is rare_events and not fractions:
        assert np.quantile(width, 0.95) > 0.5 * fitted_range_margin(rows, float(np.mean(chance * (1 - chance))), 0.05)
