"""Populations whose calibration errors are known exactly, to check guarantees against the truth.

Where the mean outcome given the forecast is nowhere below the forecast, or nowhere above it, the constant weight 1
attains every weighted calibration error, so that they all equal the size of the mean residual. So does the distance
from calibration: it is at least that (calibrated forecasts have the mean of the outcomes) and at most the ECE.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant import Tally, cutoff_calibration_error, smooth_calibration_error
from calibrant.measures import bounded_variation_calibration_error

Array = npt.NDArray[Any]
Curve = Callable[[Array], Array]
Draw = Callable[[np.random.Generator, int], tuple[Array, Array, Array | None]]


@dataclass(frozen=True)
class Population:
    """Where rows come from, and its errors; None where no closed form is known.

    ``draw(rng, n)`` returns outcomes, forecasts and weights (None for unit weights).
    """

    name: str
    draw: Draw
    cutoff: float
    smooth: float | None
    bounded_variation: float | None
    """For weights of total variation up to 2."""
    ece: float
    distance: float | None
    discrete: bool = False
    unit_weights: bool = True
    binary: bool = True
    law: Tally | None = None
    """The population itself, outcomes replaced by their means, where it has few forecasts."""

    def __str__(self) -> str:
        return self.name

    def tally(self, rng: np.random.Generator, rows: int) -> Tally:
        y, p, w = self.draw(rng, rows)
        return Tally.from_arrays(y, p, sample_weight=w)


def events(rng: np.random.Generator, chance: Array) -> Array:
    return rng.random(chance.size) < chance


def one_sided(name: str, draw: Draw, error: float, **kind: Any) -> Population:
    return Population(name, draw, error, error, error, error, error, **kind)


def from_forecasts(draw_forecasts: Callable[[np.random.Generator, int], Array], mean_outcome: Curve) -> Draw:
    def draw(rng: np.random.Generator, rows: int) -> tuple[Array, Array, None]:
        p = draw_forecasts(rng, rows)
        return events(rng, mean_outcome(p)), p, None

    return draw


def on_levels(name: str, forecasts: list[float], masses: list[float], chances: list[float]) -> Population:
    """A few forecasts: the errors are those of the law itself, outcomes replaced by their means."""
    forecast, mass, chance = (np.array(column) for column in (forecasts, masses, chances))

    def draw(rng: np.random.Generator, rows: int) -> tuple[Array, Array, None]:
        level = rng.choice(mass.size, size=rows, p=mass)
        return events(rng, chance[level]), forecast[level], None

    law = Tally.from_arrays(chance, forecast, sample_weight=1000.0 * mass)
    ece = float(mass @ np.abs(chance - forecast))
    same_sign = abs(mass @ (chance - forecast)) > ece - 1e-15
    return Population(
        name,
        draw,
        cutoff=cutoff_calibration_error(law),
        smooth=smooth_calibration_error(law),
        bounded_variation=bounded_variation_calibration_error(law),
        ece=ece,
        distance=ece if same_sign else None,
        discrete=True,
        law=law,
    )


def weighted(name: str, population: Population, weights: Callable[[int], Array]) -> Population:
    """The same rows with weights fixed by their position: the errors stay the same."""

    def draw(rng: np.random.Generator, rows: int) -> tuple[Array, Array, Array]:
        y, p, _ = population.draw(rng, rows)
        return y, p, weights(rows)

    truths = {measure: getattr(population, measure) for measure in MEASURES}
    return Population(name, draw, **truths, discrete=population.discrete, binary=population.binary, unit_weights=False)


MEASURES = ("cutoff", "smooth", "bounded_variation", "ece", "distance")

UNIFORM = one_sided("uniform", from_forecasts(lambda rng, rows: rng.random(rows), lambda p: p), 0.0)
RARE = one_sided("rare events", from_forecasts(lambda rng, rows: rng.beta(0.5, 20, rows), lambda p: p), 0.0)
# Half of each chance is forecast; beta(.5, 20) has mean .5 / 20.5.
RARE_HALVED = one_sided(
    "rare events, forecast at half their chance",
    from_forecasts(lambda rng, rows: rng.beta(0.5, 20, rows) / 2, lambda p: 2 * p),
    0.25 / 20.5,
)
CONSTANT = on_levels("constant", [0.3], [1.0], [0.4])
ZERO = on_levels("events forecast as impossible", [0.0], [1.0], [0.003])
FOUR_LEVELS = on_levels("four levels", [0.1, 0.35, 0.6, 0.9], [0.3, 0.2, 0.3, 0.2], [0.2, 0.25, 0.7, 0.75])
SHIFTED = one_sided("shifted", from_forecasts(lambda rng, rows: 0.8 * rng.random(rows), lambda p: p + 0.1), 0.1)
SPIKE = one_sided(
    "a single bad spike",
    from_forecasts(lambda rng, rows: rng.random(rows), lambda p: np.where((p > 0.5) & (p <= 0.54), p + 0.4, p)),
    0.04 * 0.4,
)
# Outcomes without noise: given its forecasts a sample knows its error exactly, and that differs from the population's.
NOISY_ATOM = on_levels("deterministic outcomes with a noisy atom", [0.4, 0.6, 0.9], [0.5, 0.3, 0.2], [0.0, 1.0, 0.9])

# Example 3.1 of the paper: acting on these forecasts from 3/4 up is wrong on every row, and the other way round right.
WRONG_ORDER = on_levels("forecasts in the wrong order", [0.749, 0.751], [0.75, 0.25], [1.0, 0.0])


def swing(p: Array) -> Array:
    return np.where(np.floor((p - 0.2) / 0.02) % 2 == 0, 0.2, -0.2)


# 30 stretches of width .02 that are wrong by .2, up and down in turn. The curve of residuals is a triangle wave between
# 0 and .2/30 that ends at 0: Cutoff is its height; the smooth error is its integral, .6 times half the height; one
# change of sign is worth twice the height.
OSCILLATING = Population(
    "fast oscillation",
    from_forecasts(lambda rng, rows: 0.2 + 0.6 * rng.random(rows), lambda p: p + swing(p)),
    cutoff=0.2 / 30,
    smooth=0.6 * 0.1 / 30,
    bounded_variation=0.4 / 30,
    ece=0.2,
    distance=None,
)


def _near_the_ends(rng: np.random.Generator, rows: int) -> Array:
    p = 0.1 * rng.random(rows)
    return np.where(rng.random(rows) < 0.5, p, 1.0 - p)


# The mean residual is .1 - .2 p, positive below .1 and as negative above .9. Each side is worth .5 x .09; the smooth
# error is attained by the weight .5 - p.
OVERCONFIDENT = Population(
    "overconfident",
    from_forecasts(_near_the_ends, lambda p: 0.1 + 0.8 * p),
    cutoff=0.045,
    smooth=2 * (0.5**3 - 0.4**3) / 3,
    bounded_variation=0.09,
    ece=0.09,
    distance=None,
)


def _fractions(rng: np.random.Generator, rows: int) -> tuple[Array, Array, None]:
    p = 0.2 + 0.6 * rng.random(rows)
    return rng.beta(2 * (p + 0.05), 2 * (0.95 - p)), p, None


def _rare_fractions(rng: np.random.Generator, rows: int) -> tuple[Array, Array, None]:
    p = np.full(rows, 0.01)
    return 0.5 * (rng.random(rows) < 0.06), p, None


FRACTIONS = one_sided("fractional outcomes", _fractions, 0.05, binary=False)
RARE_FRACTIONS = one_sided("rare fractional outcomes", _rare_fractions, 0.02, discrete=True, binary=False)


def cycling_weights(rows: int) -> Array:
    return 1.0 + np.arange(rows) % 5


def lognormal_weights(rows: int) -> Array:
    return np.random.default_rng(7).lognormal(size=rows)


def few_heavy_weights(rows: int) -> Array:
    return np.where(np.arange(rows) % 50 == 0, 40.0, 1.0)


WEIGHTED_SHIFT = weighted("shifted, cycling weights", SHIFTED, cycling_weights)
WEIGHTED_LEVELS = weighted("four levels, lognormal weights", FOUR_LEVELS, lognormal_weights)
WEIGHTED_CONSTANT = weighted("constant, a few heavy weights", CONSTANT, few_heavy_weights)
WEIGHTED_FRACTIONS = weighted("fractional outcomes, cycling weights", FRACTIONS, cycling_weights)

POPULATIONS = (
    UNIFORM,
    RARE,
    RARE_HALVED,
    CONSTANT,
    ZERO,
    FOUR_LEVELS,
    SHIFTED,
    SPIKE,
    NOISY_ATOM,
    OSCILLATING,
    OVERCONFIDENT,
    FRACTIONS,
    RARE_FRACTIONS,
    WEIGHTED_SHIFT,
    WEIGHTED_LEVELS,
    WEIGHTED_CONSTANT,
    WEIGHTED_FRACTIONS,
)

EVENT_RATE = {
    UNIFORM: 0.5,
    RARE: 0.5 / 20.5,
    RARE_HALVED: 0.5 / 20.5,
    CONSTANT: 0.4,
    ZERO: 0.003,
    FOUR_LEVELS: 0.3 * 0.2 + 0.2 * 0.25 + 0.3 * 0.7 + 0.2 * 0.75,
    SHIFTED: 0.5,
    SPIKE: 0.5 + 0.04 * 0.4,
    NOISY_ATOM: 0.3 + 0.2 * 0.9,
    OSCILLATING: 0.5,
    OVERCONFIDENT: 0.5,
    FRACTIONS: 0.55,
    RARE_FRACTIONS: 0.03,
}
EVENT_RATE |= {
    WEIGHTED_SHIFT: EVENT_RATE[SHIFTED],
    WEIGHTED_LEVELS: EVENT_RATE[FOUR_LEVELS],
    WEIGHTED_CONSTANT: EVENT_RATE[CONSTANT],
    WEIGHTED_FRACTIONS: EVENT_RATE[FRACTIONS],
}
