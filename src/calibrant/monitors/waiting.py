"""Forecasts that wait for their labels, joined by id."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.types import FloatArray
from calibrant.monitors.periods import PeriodLabel
from calibrant.rows.arrays import as_array

IdLabel = int | str


def check_ids(values: Any, rows: int) -> list[IdLabel]:
    """Return ids as whole numbers or texts, one for each row and none twice."""
    array = as_array(values, "ids")
    if array.size != rows:
        raise InputError(f"has {array.size:,} values for {rows:,} rows", argument="ids", remedy="pass one per row")
    ids: list[Any] = array.tolist()
    for position, each in enumerate(ids):
        if isinstance(each, bool) or not isinstance(each, (int, str)) or each == "":
            raise InputError(
                f"is {each!r}, not a whole number or a text", argument="ids", position=position, value=each
            )
    if len(set(ids)) < rows:
        twice = next(each for position, each in enumerate(ids) if each in ids[:position])
        raise InputError(f"holds {twice!r} twice", argument="ids", remedy="pass each row once, under an id of its own")
    return ids


@dataclass
class Waiting:
    """Forecasts by id, each with its period, and the labels that came so far.

    Attributes
    ----------
    forecasts : dict
        By period, and by id in it: the forecast.
    periods : dict
        The period of each id that waits.
    labels : dict
        By id: the outcome, of those that are known but not due.
    late : int
        Labels that no forecast waited for (any more).
    """

    forecasts: dict[PeriodLabel, dict[IdLabel, float]] = field(default_factory=dict)
    periods: dict[IdLabel, PeriodLabel] = field(default_factory=dict)
    labels: dict[IdLabel, float] = field(default_factory=dict)
    late: int = 0

    def __len__(self) -> int:
        return len(self.periods)

    def expect(self, period: PeriodLabel, ids: list[IdLabel], y_prob: FloatArray) -> None:
        """Add forecasts, all of them or none."""
        known = next((each for each in ids if each in self.periods), None)
        if known is not None:
            raise InputError(f"{known!r} has a forecast already that waits for its label", argument="ids", value=known)
        self.forecasts.setdefault(period, {}).update(zip(ids, y_prob.tolist(), strict=True))
        self.periods.update(dict.fromkeys(ids, period))

    def check(self, pairs: list[tuple[IdLabel, float]]) -> None:
        """Refuse second labels that say something else."""
        for each, outcome in pairs:
            if self.labels.get(each, outcome) != outcome:
                raise InputError(
                    f"{each!r} was labelled {self.labels[each]:g} before, and is {outcome:g} now",
                    argument="ids",
                    value=each,
                )

    def observe(self, ids: list[IdLabel], y_true: FloatArray) -> None:
        """Add labels; a second one for the same forecast must say the same."""
        pairs = list(zip(ids, y_true.tolist(), strict=True))
        self.check(pairs)
        for each, outcome in pairs:
            if each in self.periods:
                self.labels[each] = outcome
            else:
                self.late += 1

    def take(self, period: PeriodLabel) -> tuple[FloatArray, FloatArray, int]:
        """Take out a period: outcomes and forecasts of the rows that have both, and how many have no label."""
        due = self.forecasts.pop(period, {})
        known = [each for each in due if each in self.labels]
        y_true = np.array([self.labels.pop(each) for each in known])
        y_prob = np.array([due[each] for each in known])
        for each in due:
            del self.periods[each]
        return y_true, y_prob, len(due) - len(known)
