"""The risk at a horizon from censored rows: Kaplan-Meier, and Aalen-Johansen where other events compete."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import UndefinedError
from calibrant.core.laws import limit_reach
from calibrant.core.results import UNIT, Result
from calibrant.core.types import FloatArray, IntArray
from calibrant.core.words import approximately, counted, level_said, percent, shown

CENSORED, EVENT, COMPETING = 0, 1, 2
"""What ended the follow-up of a row."""

KAPLAN_MEIER, AALEN_JOHANSEN = "Kaplan-Meier", "Aalen-Johansen"
"""How the risk was estimated: without competing events, and with them."""

RiskInterval: TypeAlias = Literal["log-log", "log", "plain"]
"""The scale on which limits of a risk are symmetric."""


@dataclass(frozen=True)
class HorizonRisk(Result):
    """How frequent an event is by a horizon, from rows of which some were censored before it.

    Attributes
    ----------
    at : float
        The horizon.
    risk : float
        The probability of the event by then.
    risk_lower, risk_upper : float
        Its limits; of rows that say 0 or 1, the exact limits of those that were followed up to the horizon.
    standard_error : float
        Greenwood's, or with competing events that of R's ``survfit``, which follows from what each row adds.
    confidence_level : float
        How often, in many repetitions with many rows, limits found in this way hold the true risk.
    interval : str
        The scale on which the limits are symmetric: "log-log", "log" or "plain".
    estimator : str
        "Kaplan-Meier", or "Aalen-Johansen" where there are competing events.
    rows : int
        How many rows.
    events, competing : int
        How many had the event, or a competing one, by the horizon.
    free : int
        How many are known to have had neither by then.
    censored : int
        How many were censored before, and have no known outcome.
    largest_weight : float
        For how many rows the one with the largest weight stands.
    """

    at: float
    risk: float
    risk_lower: float
    risk_upper: float
    standard_error: float
    confidence_level: float
    interval: str
    estimator: str
    rows: int
    events: int
    competing: int
    free: int
    censored: int
    largest_weight: float

    _ranges: ClassVar = dict.fromkeys(("risk", "risk_lower", "risk_upper", "confidence_level"), UNIT)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_order("risk_lower", "risk_upper")

    @property
    def known(self) -> int:
        """How many outcomes are known."""
        return self.rows - self.censored

    def frame(self, backend: object = None) -> object:
        """Return one row with everything."""
        return self._framed(
            {name: [value] for name, value in self.to_dict().items() if name not in ("schema", "type")}, backend
        )

    def __str__(self) -> str:
        limits = f"{percent(self.risk_lower)} to {percent(self.risk_upper)}"
        with approximately(False):  # these limits count that weights are estimates, whatever others do
            level = level_said(self.confidence_level)
        rivals = f", {self.competing:,} a competing one" if self.competing else ""
        lines = [
            f"Risk of the event by {shown(self.at)}: {percent(self.risk)} ({level}: {limits}; {self.estimator}).",
            f"Of {counted(self.rows, 'row')}, {self.events:,} had the event by then{rivals}, {self.free:,} were known "
            f"to be free of it, and {self.censored:,} were censored before.",
        ]
        if self.censored:
            lines.append(
                f"A row of known outcome stands for up to {self.largest_weight:.3g} rows. These weights are estimates, "
                "and right if censoring has nothing to do with events and forecasts."
            )
        return "\n".join(lines)


def _log_log(value: float, error: float, z: float) -> tuple[float, float]:
    inner, width = math.log(-math.log(value)), z * error / (value * abs(math.log(value)))
    return math.exp(-math.exp(inner + width)), math.exp(-math.exp(inner - width))


def _log(value: float, error: float, z: float) -> tuple[float, float]:
    return value * math.exp(-z * error / value), min(value * math.exp(z * error / value), 1.0)


def _plain(value: float, error: float, z: float) -> tuple[float, float]:
    return max(value - z * error, 0.0), min(value + z * error, 1.0)


SCALES: Mapping[str, Callable[[float, float, float], tuple[float, float]]] = {
    "log-log": _log_log,
    "log": _log,
    "plain": _plain,
}
"""Limits of a probability strictly between 0 and 1 from its standard error."""


@dataclass(frozen=True, eq=False)
class Incidence:
    """What rows say about a risk at a horizon.

    Attributes
    ----------
    at : float
        The horizon.
    outcome : array of uint8
        Whether the event happened by then; 0 where that is unknown.
    weight : array of float64 or None
        One over the probability of having been followed for so long, 0 where the outcome is unknown; None where all
        are known.
    counts : tuple of int
        Rows with the event, with a competing one, free of both, and censored before the horizon.
    competes : bool
        Whether any event competes, at whatever time.
    last, known_until : array of int
        The number of distinct times at which each row was at risk of being censored before the horizon; and that of
        the times whose censorings the weight of each row makes up for.
    lost, left : array of float64
        At each distinct time before the horizon, the share that was censored of those at risk, and how many were left.
    """

    at: float
    outcome: npt.NDArray[np.uint8]
    weight: FloatArray | None
    counts: tuple[int, int, int, int]
    competes: bool
    last: IntArray
    known_until: IntArray
    lost: FloatArray
    left: FloatArray

    @classmethod
    def of(cls, times: FloatArray, place: IntArray, code: npt.NDArray[np.uint8], at: float) -> Incidence:
        """Estimate a risk from the distinct times in increasing order, the place of each row's time and what ended it.

        Times at which no row ends count for nothing, so that those of a larger set may be given.
        """
        reached, within = (int(np.searchsorted(times, at, side=side)) for side in ("left", "right"))
        is_censored = code == CENSORED
        ended = np.bincount(place, minlength=times.size)
        censored = np.bincount(place[is_censored], minlength=times.size)
        left = code.size - np.cumsum(ended)
        lost = censored / np.maximum(left + censored, 1)  # events come before censorings
        followed = np.concatenate([[1.0], np.cumprod(1.0 - lost[:reached])])
        if followed[-1] == 0.0:
            latest = float(times[np.flatnonzero(ended)[-1]])
            raise UndefinedError(
                f"is {shown(at)}, and nobody was followed for so long: the last row was censored at {shown(latest)}",
                argument="at",
                value=at,
                remedy=f"the largest horizon that these rows know of is {shown(latest)}",
            )
        unknown = is_censored & (place < reached)
        ends = ~is_censored & (place < within)
        known_until = np.where(unknown, 0, np.where(ends, np.minimum(place, reached), reached))
        weight = np.where(unknown, 0.0, 1.0 / followed[known_until]) if unknown.any() else None
        happened = ends & (code == EVENT)
        rivals = int((ends & (code == COMPETING)).sum())
        events, missing = int(happened.sum()), int(unknown.sum())
        return cls(
            at=at,
            outcome=happened.astype(np.uint8),
            weight=weight,
            counts=(events, rivals, code.size - events - rivals - missing, missing),
            competes=bool((code == COMPETING).any()),
            last=np.minimum(place + is_censored, reached),
            known_until=known_until,
            lost=lost[:reached],
            left=left[:reached].astype(np.float64),
        )

    @cached_property
    def risk(self) -> float:
        """The probability of the event by the horizon: the weighted share of events."""
        total = float(self.outcome.sum() if self.weight is None else self.weight @ self.outcome)
        return min(total / self.outcome.size, 1.0)

    @cached_property
    def influence(self) -> FloatArray:
        """How much each row adds to the error of the risk; the squares add up to its variance."""
        apart = (self.outcome - self.risk) / self.outcome.size
        return self.with_censoring(apart if self.weight is None else self.weight * apart)

    def with_censoring(self, added: FloatArray) -> FloatArray:
        """Return what rows add to the error of a number, from what they would add if the weights had been known.

        A row that is censored raises the weights of those that were followed for longer, and one that stays lowers
        them: both move the number by what these rows add.
        """
        if self.weight is None:
            return added
        later = added.sum() - np.cumsum(np.bincount(self.known_until, weights=added, minlength=self.lost.size + 1))
        raised = np.divide(later[:-1], self.left, out=np.zeros(self.lost.size), where=self.left > 0.0)
        lowered = np.concatenate([[0.0], np.cumsum(raised * self.lost)])
        moved: FloatArray = added - lowered[self.last]
        is_lost = self.weight == 0.0
        moved[is_lost] += raised[self.last[is_lost] - 1]
        return moved

    def summary(self, confidence_level: float, interval: str) -> HorizonRisk:
        """Return the risk with its limits."""
        events, competing, free, censored = self.counts
        error = math.sqrt(float(self.influence @ self.influence))
        lower, upper = self._limits(error, confidence_level, interval)
        return HorizonRisk(
            at=self.at,
            risk=self.risk,
            risk_lower=lower,
            risk_upper=upper,
            standard_error=error,
            confidence_level=confidence_level,
            interval=interval,
            estimator=AALEN_JOHANSEN if self.competes else KAPLAN_MEIER,
            rows=self.outcome.size,
            events=events,
            competing=competing,
            free=free,
            censored=censored,
            largest_weight=1.0 if self.weight is None else float(self.weight.max()),
        )

    def _limits(self, error: float, confidence_level: float, interval: str) -> tuple[float, float]:
        events, competing, free, _ = self.counts
        tail = (1.0 - confidence_level) / 2.0
        if events == 0 or free + competing == 0:  # Greenwood's error is 0, which would promise too much
            exact = tail ** (1.0 / (events or free + competing))
            return (0.0, 1.0 - exact) if events == 0 else (exact, 1.0)
        limits, z = SCALES[interval], limit_reach(confidence_level)
        if self.competes:
            return limits(self.risk, error, z)
        lower, upper = limits(1.0 - self.risk, error, z)
        return 1.0 - upper, 1.0 - lower
