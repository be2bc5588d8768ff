"""Populations as tallies so fine that the saving on them is the population's, over any thresholds."""

import numpy as np
import populations
from populations import POPULATIONS, Array, Population
from scipy.stats import beta

from calibrant import Tally
from calibrant.certificates import saving_limits
from calibrant.measures.savings import largest_saving
from calibrant.rows.savings import EVERY_THRESHOLD, Thresholds

_SIZE = 20_000
CLOSE = 2.0 / _SIZE
"""How far a saving on a fine grid of forecasts may be from the population's."""

_SHARE = (np.arange(_SIZE) + 0.5) / _SIZE


def _law(forecast: Array, mean: Array) -> Tally:
    return Tally.from_arrays(mean, forecast)


_ENDS = np.concatenate([0.1 * _SHARE, 1.0 - 0.1 * _SHARE])
_OSCILLATING = 0.2 + 0.6 * _SHARE
_RARE = beta.ppf(_SHARE, 0.5, 20)

LAWS: dict[Population, Tally] = {
    populations.UNIFORM: _law(_SHARE, _SHARE),
    populations.RARE: _law(_RARE, _RARE),
    populations.RARE_HALVED: _law(_RARE / 2, _RARE),
    populations.SHIFTED: _law(0.8 * _SHARE, 0.8 * _SHARE + 0.1),
    populations.SPIKE: _law(_SHARE, np.where((_SHARE > 0.5) & (_SHARE <= 0.54), _SHARE + 0.4, _SHARE)),
    populations.OSCILLATING: _law(_OSCILLATING, _OSCILLATING + populations.swing(_OSCILLATING)),
    populations.OVERCONFIDENT: _law(_ENDS, 0.1 + 0.8 * _ENDS),
    populations.FRACTIONS: _law(0.2 + 0.6 * _SHARE, 0.25 + 0.6 * _SHARE),
    populations.RARE_FRACTIONS: _law(np.array([0.01]), np.array([0.03])),
    populations.WEIGHTED_SHIFT: _law(0.8 * _SHARE, 0.8 * _SHARE + 0.1),
    populations.WEIGHTED_FRACTIONS: _law(0.2 + 0.6 * _SHARE, 0.25 + 0.6 * _SHARE),
    **{each: each.law for each in POPULATIONS if each.law is not None},
}
LAWS[populations.WEIGHTED_LEVELS] = LAWS[populations.FOUR_LEVELS]
LAWS[populations.WEIGHTED_CONSTANT] = LAWS[populations.CONSTANT]


def gap(population: Population, thresholds: Thresholds) -> float:
    """The most that a line saves in the population, or a little less."""
    saving = largest_saving(LAWS[population], thresholds).saving
    return saving if LAWS[population] is population.law else max(saving - CLOSE, 0.0)


def betting_upper(tally: Tally, delta: float, thresholds: Thresholds = EVERY_THRESHOLD) -> float:
    """The adaptive upper limit of the risk gap of some rows."""
    saving = largest_saving(tally, thresholds).saving
    return saving_limits.betting_upper(tally, tally, thresholds, saving, delta)
