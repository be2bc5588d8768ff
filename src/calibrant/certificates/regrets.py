"""Limits of swap regret: what doing b wherever a rule says a can save, for every pair of actions at once.

Swap regret is the largest mean saving over all relabellings of the actions, a fixed class of functions between -1 and 1
in units of the largest difference in loss. So only the population's own best relabelling has to behave: a bet against
every relabelling, or Hoeffding's margin for one of them, limits them all. Bets separate by the action taken, so that a
table of counts is enough, however many relabellings there are. The proofs are in docs/theory/decisions.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from calibrant.certificates.betting import best_rate
from calibrant.certificates.margins import VARIANCE_SHARE, hoeffding_margin
from calibrant.core.chernoff import chernoff_interval
from calibrant.core.types import FloatArray
from calibrant.rows.actions import ActionTable

_BOLDEST = 0.75
_STEPS = 3  # from the boldest rate to that of the population, equally far apart in logarithm
_WEIGHTS = (0.3, 0.25, 0.2, 0.25)  # of the stakes at these rates, the boldest first

_HALVINGS = 44


def regret_estimate(table: ActionTable) -> float:
    """Return the swap regret on the rows, in units of the table."""
    return float(table.saved.max(axis=1).sum()) / table.total


# --- Rates -----------------------------------------------------------------------------------------------------------


def regret_rates(table: ActionTable, delta: float) -> FloatArray:
    """Return for each stake two rates between which its rate lies, the slower one first.

    The slowest stake has the rate that suits V, the population's mean of the largest squared saving that another action
    would have made on a row; others lie between that rate and a bold one. V is a mean of terms from 0 to 1, and lies
    between its limits but for a small share of delta: so does each rate, a falling function of it.
    """
    squares = float((table.outcome * np.square(table.most_at_stake)).sum())
    low, high = chernoff_interval(squares, delta * VARIANCE_SHARE / 2.0)
    exponent = _exponent(delta)
    ends = np.array([best_rate(most, 1.0, exponent) for most in (high, low)])
    share = np.arange(_STEPS + 1)[:, None] / _STEPS
    rates: FloatArray = _BOLDEST ** (1.0 - share) * np.minimum(ends, _BOLDEST) ** share
    return rates


def _exponent(delta: float) -> float:
    return math.log(1.0 / (delta * (1.0 - VARIANCE_SHARE)))


# --- Upper limits ----------------------------------------------------------------------------------------------------


def betting_upper_regret(table: ActionTable, delta: float) -> float:
    """Return the largest swap regret that stakes at several rates, taken together, leave possible."""
    rates, share = regret_rates(table, delta), table.total / table.rows
    growth = np.array([[_growth(table, rate) for rate in pair] for pair in rates.tolist()])
    weights = np.log(_WEIGHTS)

    def excluded(regret: float) -> bool:
        """Whether the stakes would have gained too much under a regret, at whichever rates between the ends."""
        gained = -growth - table.rows * np.log1p(-rates * share * regret)
        return float(np.logaddexp.reduce(weights + gained.min(axis=1))) >= _exponent(delta)

    return _border(excluded)


def _growth(table: ActionTable, rate: float) -> float:
    """Return how much a bet grows at most by a relabelling: of each action into the worst one for the bet."""
    return float(table.added(lambda saving: -np.log1p(-rate * saving)).max(axis=1).sum())


def _border(excluded: Callable[[float], bool]) -> float:
    """Return where the regrets begin that are excluded, rounded up; 1 where none is, as none can be above."""
    low, high = 0.0, 1.0
    if not excluded(high):
        return 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if excluded(middle) else (middle, high)
    return high


def hoeffding_upper_regret(table: ActionTable, delta: float) -> float:
    """Return the estimate plus sqrt(2 ln(1/delta) / n), 1 at most: no relabelling saves more than one unit."""
    return min(regret_estimate(table) + hoeffding_margin(table.n_eff, delta), 1.0)


# --- Lower limits ----------------------------------------------------------------------------------------------------


def betting_lower_regret(table: ActionTable, delta: float) -> float:
    """Return the smallest swap regret that bets on relabellings, averaged over all of them, leave possible.

    A quarter of the stake each is on relabellings of one action alone; on those that turn every action into one; that
    turn each into one and the same or not, by the toss of a coin; and that turn each into any other or not, by the toss
    of a coin. All of these averages have closed forms, and need neither halves of the rows nor chance.
    """
    rates, share = regret_rates(table, delta), table.total / table.rows
    won = np.array([[_won(table, rate) for rate in pair] for pair in rates.tolist()])
    weights = np.log(_WEIGHTS)[:, None]

    def possible(regret: float) -> bool:
        """Whether the stakes gained too little to exclude a regret, at whichever rates between the ends."""
        paid = table.taken * np.log1p(rates * share * regret)[..., None]
        gained = (won - paid[..., None]).min(axis=1)  # by stake, action taken, action in its place
        average = np.stack(_averages(gained), axis=1) - math.log(4.0)
        return float(np.logaddexp.reduce(weights + average, axis=None)) < _exponent(delta)

    if possible(0.0):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if possible(middle) else (middle, high)
    return low


def _won(table: ActionTable, rate: float) -> FloatArray:
    """Return how much a bet on each action in place of each one taken grows."""
    return table.added(lambda saving: np.log1p(rate * saving))


def _averages(gained: FloatArray) -> tuple[FloatArray, ...]:
    """Return the logarithm of the average stake over each of four families of relabellings.

    ``gained`` holds, along its last two axes, the logarithm of what was gained where one action was taken by another in
    its place: on the diagonal where the action stays.
    """
    actions = gained.shape[-1]
    stays = np.diagonal(gained, axis1=1, axis2=2)
    others = gained[:, ~np.eye(actions, dtype=np.bool_)].reshape(-1, actions, actions - 1)
    other = np.logaddexp.reduce(others, axis=2) - math.log(actions - 1)
    rest = stays.sum(axis=1, keepdims=True) - stays
    tossed = np.logaddexp(gained, stays[:, :, None]) - math.log(2.0)
    return (
        np.logaddexp.reduce(other + rest, axis=1) - math.log(actions),
        np.logaddexp.reduce(gained.sum(axis=1), axis=1) - math.log(actions),
        np.logaddexp.reduce(tossed.sum(axis=1), axis=1) - math.log(actions),
        (np.logaddexp(other, stays) - math.log(2.0)).sum(axis=1),
    )


def hoeffding_lower_regret(table: ActionTable, delta: float) -> float:
    """Return the estimate minus Hoeffding's margin for all relabellings at once: A ln A beside ln(1/delta)."""
    actions = table.taken.size
    exponent = math.log(1.0 / delta) + actions * math.log(actions)
    return max(regret_estimate(table) - math.sqrt(2.0 * exponent / table.n_eff), 0.0)
