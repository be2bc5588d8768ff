"""Declared decisions: tables of losses, the action that forecasts call for, and what came of it in a table of counts.

A problem is a table of losses, one line per action and one column per class. Whoever believes the forecast takes the
action of least expected loss. All that limits and estimates need of the rows is how often each class came up where each
action was taken: as many numbers as the table of losses has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.types import FloatArray, IntArray
from calibrant.rows.labels import listed_labels

_CHUNK = 1 << 16
_AT_ONCE = 1 << 20  # savings looked at together
TIE = 1e-12
"""Expected losses that differ by less than this share of the largest difference are tied: rounding decides nothing."""

_MOST_LOSS = 1e150  # squares and sums of larger ones would leave float64


def check_losses(losses: Any, name: str = "losses") -> FloatArray:
    """Return a table of losses as float64: two actions or more, finite numbers, not all alike."""
    try:
        table = np.asarray(losses, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"of type {type(losses).__name__} cannot be read as a table of numbers ({error})",
            argument=name,
            remedy="pass one line of losses per action and one column per class, all lines of the same length",
        ) from error
    if table.ndim != 2:
        raise InputError(
            f"has shape {table.shape}, not two dimensions",
            argument=name,
            remedy="pass one line of losses per action and one column per class",
        )
    actions, classes = table.shape
    if actions < 2 or classes < 2:
        few = f"{actions} action{'' if actions == 1 else 's'} and {classes} class{'' if classes == 1 else 'es'}"
        raise InputError(
            f"has {few}",
            argument=name,
            value=table.shape,
            remedy="a decision needs two actions at least, and two classes that they depend on",
        )
    bad = np.argwhere(~(np.abs(table) <= _MOST_LOSS))
    if bad.size:
        line, column = bad[0].tolist()
        value = float(table[line, column])
        raise InputError(
            f"{'is missing' if np.isnan(value) else f'is {value:g}'} in column {column}",
            argument=name,
            position=line,
            value=value,
            remedy="every loss must be a finite number, below 1e150 in size",
        )
    if not (table != table[0]).any():
        raise InputError(
            "has the same losses for every action, so that no decision matters",
            argument=name,
            remedy="at least two actions must differ in some class",
        )
    return table


def in_order_of(classes: tuple[Any, ...], known: tuple[Any, ...], name: str = "losses") -> IntArray:
    """Return where each class of the forecasts stands among those of a table of losses; refuse any other set."""
    places = {label: place for place, label in enumerate(known)}
    if len(places) < len(known):
        raise InputError(f"names a class twice: {listed_labels(known)}", argument=name, remedy="name each class once")
    missing = [label for label in classes if label not in places]
    extra = [label for label in known if label not in set(classes)]
    if missing or extra:
        what = f"has no column for class {missing[0]!r}" if missing else f"has a column for {extra[0]!r}, not a class"
        raise InputError(
            what,
            argument=name,
            value=(missing or extra)[0],
            remedy=f"its columns must be the classes of the forecasts: {listed_labels(classes)}",
        )
    return np.array([places[label] for label in classes], dtype=np.int64)


def in_units(losses: FloatArray) -> tuple[FloatArray, float, FloatArray]:
    """Return losses from 0 to 1, what one of their units is, and the smallest loss of each class, taken off before.

    What every action loses in a class has no say in which is best.
    """
    least = losses.min(axis=0)
    loss: FloatArray = losses - least
    unit = float(loss.max())
    return loss / unit, unit, least


@dataclass(frozen=True, eq=False)
class ActionTable:
    """What came of acting on forecasts, for one table of losses.

    Attributes
    ----------
    loss : array of shape (actions, classes)
        Losses in units of ``unit``, the smallest of each class taken off: from 0 to 1.
    unit : float
        The largest difference that the choice of action makes in one class.
    least : array
        The smallest loss of each class, which nobody can avoid.
    outcome : array of shape (actions, classes)
        Rows by the action taken and the class that came up; rows of unequal weight count their weight over the largest.
    taken : array
        Rows per action, each counted once.
    rows : int
        All rows.
    n_eff : float
        Rows of equal weight that would say as much.
    """

    loss: FloatArray
    unit: float
    least: FloatArray
    outcome: FloatArray
    taken: IntArray
    rows: int
    n_eff: float

    @classmethod
    def of(
        cls, losses: FloatArray, y_true: IntArray, y_prob: npt.NDArray[Any], weight: FloatArray | None
    ) -> ActionTable:
        """Act on checked rows: ``y_true`` holds the place of each row's class among the columns."""
        loss, unit, least = in_units(losses)
        actions, classes = loss.shape
        outcome, taken = np.zeros((actions, classes)), np.zeros(actions, dtype=np.int64)
        share = None if weight is None else weight / weight.max()
        for start in range(0, y_true.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            action = best_action(loss, y_prob[part].astype(np.float64, copy=False))
            cell = action * classes + y_true[part]
            counted = np.bincount(cell, None if share is None else share[part], minlength=outcome.size)
            outcome += counted.reshape(outcome.shape)
            taken += np.bincount(action, minlength=actions)
        n_eff = float(y_true.size) if share is None else float(share.sum() ** 2 / (share @ share))
        n_eff = min(n_eff, float(y_true.size))  # rounding
        return cls(loss, unit, least, outcome, taken, y_true.size, n_eff)

    @property
    def unit_weights(self) -> bool:
        """Whether every row counts the same."""
        return self.n_eff == self.rows

    @property
    def total(self) -> float:
        """All rows, by weight over the largest."""
        return float(self.outcome.sum())

    @property
    def most_at_stake(self) -> FloatArray:
        """For each action taken and each class, the most that another action in its place saves or loses."""
        found: FloatArray = np.maximum(self.loss, self.loss.max(axis=0) - self.loss)  # the least loss is 0
        return found

    def added(self, score: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Add up a score of what is saved, for each action taken (first) and each in its place (second).

        Tables of many actions and classes are mostly empty: only cells that hold rows are looked at.
        """
        action, label = np.nonzero(self.outcome)
        found = np.zeros((self.taken.size, self.taken.size))
        step = max(_AT_ONCE // self.taken.size, 1)
        for start in range(0, action.size, step):
            one, other = action[start : start + step], label[start : start + step]
            saved = self.loss[one, other][:, None] - self.loss[:, other].T
            np.add.at(found, one, self.outcome[one, other][:, None] * score(saved))
        return found

    @property
    def saved(self) -> FloatArray:
        """What each action in place of each one taken would have saved on all rows together."""
        return self.added(lambda saving: saving)


def best_action(loss: FloatArray, y_prob: FloatArray) -> IntArray:
    """Return the action of least expected loss for each row; of several within rounding, the first."""
    expected = y_prob @ loss.T
    least = expected.min(axis=1, keepdims=True)
    found: IntArray = (expected <= least + TIE).argmax(axis=1)
    return found
