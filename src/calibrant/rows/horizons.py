"""Censored outcomes at a horizon: rows weighted by the inverse probability of not being censored.

The outcome of a row is whether the event happened by a time, ``at``. Rows that were lost from sight before have none.
Each row with a known outcome stands also for those that were lost: its weight is one over the probability of having
been followed for so long, estimated from all rows (docs/how-to/censored.md has the proof and what holds approximately).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, FloatArray, IntArray
from calibrant.core.voices import Option, Phrase
from calibrant.core.words import shown
from calibrant.rows.arrays import as_array, as_numbers, check_finite
from calibrant.rows.checks import (
    Observations,
    check_choice,
    check_confidence,
    check_forecasts,
    check_number,
    check_same_index,
)
from calibrant.rows.incidence import CENSORED, COMPETING, EVENT, SCALES, HorizonRisk, Incidence, RiskInterval

_CODE_REMEDY = Phrase(
    "0 means censored and 1 the event; name the codes of competing events with {competing}",
    competing=Option("competing"),
)


@dataclass(frozen=True, eq=False)
class HorizonRows(Observations):
    """Rows whose outcomes are known at a horizon, weighted so that they stand for the censored ones; see `horizon`.

    Every measure, curve, net benefit and report takes them in place of ``y_true``. Where somebody was censored before
    the horizon, the weights are estimates: certificates refuse them (`fixed` says what can be had), and so they do
    tallies and groups of them. Limits count the estimation, by what each row moves the weights of others, or in
    resamples with weights of their own.

    Attributes
    ----------
    y_true : array of uint8
        Whether the event happened by the horizon; 0 where that is unknown.
    y_prob : array of float64
        Forecasts of its probability.
    sample_weight : array of float64 or None
        Weights, 0 for rows of unknown outcome; None where every outcome is known, so that every weight is 1.
    time : array of float64
        How long each row was followed.
    code : array of uint8
        What ended that: 0 censoring, 1 the event, 2 a competing event.
    at : float
        The horizon.
    confidence_level : float
        Of the limits of the risk.
    interval : str
        The scale on which these limits are symmetric.
    """

    time: FloatArray = field(repr=False)
    code: npt.NDArray[np.uint8] = field(repr=False)
    at: float
    confidence_level: float = 0.95
    interval: RiskInterval = "log-log"

    @cached_property
    def incidence(self) -> Incidence:
        """The Kaplan-Meier or Aalen-Johansen estimate at the horizon, with what each row adds to its error."""
        return Incidence.of(*self._places, self.code, self.at)

    @cached_property
    @frames_follow
    def outcome(self) -> HorizonRisk:
        """The risk at the horizon with its limits, and how many outcomes are known."""
        return self.incidence.summary(self.confidence_level, self.interval)

    @property
    def risk(self) -> float:
        """The probability of the event by the horizon: 1 - Kaplan-Meier, or Aalen-Johansen with competing events."""
        return self.outcome.risk

    @property
    def risk_lower(self) -> float:
        """Lower limit of the risk."""
        return self.outcome.risk_lower

    @property
    def risk_upper(self) -> float:
        """Upper limit of the risk."""
        return self.outcome.risk_upper

    @frames_follow
    def fixed(self) -> Observations:
        """Return the rows with their weights, 0 for unknown outcomes, as if these had been fixed beforehand.

        What a certificate says of them holds approximately, for many rows, because the weights are estimates.
        """
        return Observations(self.y_true, self.y_prob, self.sample_weight, True)

    @frames_follow
    def with_forecasts(self, y_prob: ArrayLike) -> HorizonRows:
        """Return the same rows with the forecasts of another model.

        Parameters
        ----------
        y_prob : array-like of shape (n,)
            Forecasts of the event by the same horizon, in the order of these rows.

        Returns
        -------
        HorizonRows
            With the outcomes and weights of these.
        """
        forecasts = check_forecasts(y_prob)
        _check_length("y_prob", forecasts.size, self.time.size)
        return replace(self, y_prob=forecasts)

    def to_draw_from(self) -> HorizonRows:
        """Return all rows, also the censored ones, in an order that depends on what they hold alone."""
        return self._at(np.lexsort((self.y_prob, self.code, self.time)))

    def drawn_again(self, positions: IntArray) -> HorizonRows:
        """Return the rows at the given positions with weights that are estimated from them anew."""
        rows, (times, place) = self._at(positions), self._places
        return _with_weights(rows, Incidence.of(times, place[positions], rows.code, self.at))

    @cached_property
    def _places(self) -> tuple[FloatArray, IntArray]:
        """The distinct times in increasing order, and the place of each row's time among them."""
        times, place = np.unique(self.time, return_inverse=True)
        return times, place

    def _at(self, positions: IntArray) -> HorizonRows:
        weight = None if self.sample_weight is None else self.sample_weight[positions]
        return replace(
            self,
            y_true=self.y_true[positions],
            y_prob=self.y_prob[positions],
            sample_weight=weight,
            time=self.time[positions],
            code=self.code[positions],
        )

    def frame(self, backend: Any = None) -> Any:
        """Return one row per row, in the order given: time, code, outcome (NaN if unknown), forecast and weight."""
        known = (self.code != CENSORED) | (self.time >= self.at)
        weight = np.ones(self.time.size) if self.sample_weight is None else self.sample_weight
        return self._framed(
            {
                "time": self.time,
                "code": self.code,
                "outcome": np.where(known, self.y_true, np.nan),
                "forecast": self.y_prob,
                "weight": weight,
            },
            backend,
        )

    def __str__(self) -> str:
        return str(self.outcome)


@frames_follow
def horizon(
    time: ArrayLike,
    event: ArrayLike,
    y_prob: ArrayLike,
    *,
    at: float,
    competing: Any = None,
    confidence_level: float = 0.95,
    interval: RiskInterval = "log-log",
) -> HorizonRows:
    """Rows for forecasts that the event happens by time ``at``, where some rows were lost from sight before.

    A row counts with weight 1 / G(just before its event), or 1 / G(just before ``at``) if it was free of events then,
    where G(t) is the Kaplan-Meier estimate of the probability not to be censored up to t; a row that was censored
    before ``at`` counts with weight 0. The weights add up to the number of rows, and the weighted share of events is
    the Kaplan-Meier risk at ``at``, or with competing events that of Aalen and Johansen. Weighted means are then right
    for many rows if censoring depends neither on the event nor on the forecasts. Where ties meet, events come before
    censorings, so a row that was censored exactly at ``at`` is known to be free of the event.

    Parameters
    ----------
    time : array-like of shape (n,)
        How long each row was followed, from 0 on, in any unit.
    event : array-like of shape (n,)
        What ended that: 0 or False for censoring, 1 or True for the event, other codes for competing events.
    y_prob : array-like of shape (n,)
        Forecasts of the probability that the event happens by ``at``.
    at : float
        The horizon, in the unit of ``time``.
    competing : code, list of codes, or array-like of bool of shape (n,), optional
        Which codes of ``event`` are competing events, after which the event can no longer happen; or, for each row,
        whether one did end its follow-up.
    confidence_level : float, default 0.95
        Of the limits of the risk.
    interval : {"log-log", "log", "plain"}
        The scale on which these limits are symmetric: that of log(-log), of the logarithm, or of the probability of
        being free of the event (with competing events: of the risk), as in R's ``survfit``.

    Returns
    -------
    HorizonRows
        For every measure, curve, net benefit and report in place of ``y_true``; ``risk``, ``risk_lower`` and
        ``risk_upper`` say how frequent the event is, and ``print`` how many outcomes are known.

    References
    ----------
    Graf, Schmoor, Sauerbrei, Schumacher (1999), Assessment and comparison of prognostic classification schemes for
    survival data; Gerds, Andersen, Kattan (2014), Calibration plots for risk prediction models in the presence of
    competing risks.

    Examples
    --------
    >>> rows = horizon([1, 2, 3, 4, 5, 5], [1, 0, 1, 1, 0, 0], [0.9, 0.2, 0.6, 0.4, 0.3, 0.1], at=3.5)
    >>> rows.sample_weight.tolist()
    [1.0, 0.0, 1.25, 1.25, 1.25, 1.25]
    >>> round(rows.risk, 4)
    0.375
    >>> import calibrant
    >>> round(calibrant.measure(rows).mean_outcome, 4)
    0.375
    """
    forecasts = check_forecasts(y_prob)
    times = as_numbers(time, "time")
    _check_length("time", times.size, forecasts.size)
    check_finite(times, "time")
    negative = np.flatnonzero(times < 0.0)
    if negative.size:
        position = int(negative[0])
        raise InputError(
            f"is {shown(times[position])}, before the start of its follow-up",
            argument="time",
            position=position,
            value=times[position].item(),
            remedy="times are counted from 0 on",
        )
    code = _check_events(event, competing, forecasts.size)
    check_same_index(time=time, event=event, y_prob=y_prob, competing=competing)
    end = check_number(at, "at", low=0.0, high=float(np.finfo(np.float64).max))
    level = check_confidence(confidence_level)
    check_choice(interval, "interval", tuple(SCALES))
    nothing = np.zeros(forecasts.size, dtype=np.uint8)
    rows = HorizonRows(nothing, forecasts, None, True, times, code, end, level, interval)
    return _with_weights(rows, rows.incidence)


TAKEN_AS_FIXED = Phrase(
    "weights were estimated from the rows, some of which were censored, and limits take them as they are; pass the "
    "rows of the horizon themselves for limits that count it",
    code="estimated_weights",
)
"""What is said of limits from a summary of censored rows, which cannot tell how its weights came about."""


KNOWN_ALONE = Phrase(
    "some rows were censored: numbers are those of the others, by weights that were estimated from all rows of the "
    "horizon",
    code="estimated_weights",
)
"""What is said of a summary of censored rows, or of groups of them, which the censored ones are not in."""


def censoring_notes(rows: HorizonRows) -> tuple[Phrase, ...]:
    """Say what to keep in mind about numbers of rows of which some were censored."""
    if not rows.weights_estimated:
        return ()
    return (
        Phrase(
            "{censored:,} of {rows:,} rows were censored before {at} and count through the weights of the others. "
            "These are estimates, right if censoring has nothing to do with events and forecasts",
            censored=rows.outcome.censored,
            rows=rows.outcome.rows,
            at=shown(rows.at),
            code="censored_rows",
        ),
    )


def _check_length(name: str, size: int, rows: int) -> None:
    if size != rows:
        raise InputError(
            f"has {size:,} values for {rows:,} rows", argument=name, value=size, remedy="pass one value per row"
        )


def _check_events(event: Any, competing: Any, rows: int) -> npt.NDArray[np.uint8]:
    """Return what ended the follow-up of each row, as numbers."""
    values = as_array(event, "event")
    if values.dtype.kind in "USTO" and any(isinstance(value, str) for value in values.tolist()):
        first = next(value for value in values.tolist() if isinstance(value, str))
        raise InputError(
            f"holds texts such as {first!r}",
            argument="event",
            value=first,
            remedy="pass event == 'the one that counts', and competing == 'the others' as True and False for each row",
        )
    codes = as_numbers(values, "event")
    _check_length("event", codes.size, rows)
    check_finite(codes, "event")
    found = np.zeros(rows, dtype=np.uint8)
    found[codes == EVENT] = EVENT
    rivals = _check_competing(competing, codes)
    found[rivals] = COMPETING
    unknown = np.flatnonzero((codes != CENSORED) & (found == CENSORED))
    if unknown.size:
        position = int(unknown[0])
        raise InputError(
            f"is {shown(codes[position])}, a code that nothing is said about",
            argument="event",
            position=position,
            value=codes[position].item(),
            remedy=_CODE_REMEDY,
        )
    return found


def _check_competing(competing: Any, codes: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which rows ended in a competing event."""
    if competing is None:
        return np.zeros(codes.size, dtype=np.bool_)
    if isinstance(competing, (bool, np.bool_)):
        raise InputError(
            "is one truth value", argument="competing", value=competing, remedy="name a code, or pass one for each row"
        )
    single = isinstance(competing, (int, float, np.integer, np.floating))
    values = as_numbers([competing] if single else competing, "competing")
    check_finite(values, "competing")
    if not single and np.isin(values, (0.0, 1.0)).all():  # a flag for each row
        _check_length("competing", values.size, codes.size)
        flags: npt.NDArray[np.bool_] = values == 1.0
        both = np.flatnonzero(flags & (codes == EVENT))
        if both.size:
            raise InputError(
                "says that a competing event ended a follow-up that ended in the event",
                argument="competing",
                position=int(both[0]),
                value=True,
                remedy="one of the two came first: the other is 0",
            )
        return flags
    taken = np.flatnonzero((values == CENSORED) | (values == EVENT))
    if taken.size:
        value = values[taken[0]]
        means = "the event" if value == EVENT else "censoring"
        raise InputError(
            f"names the code {shown(value)}, which means {means}",
            argument="competing",
            value=value.item(),
            remedy="competing events have codes of their own",
        )
    return np.isin(codes, values)


def _with_weights(rows: HorizonRows, found: Incidence) -> HorizonRows:
    estimated = found.weight is not None
    return replace(rows, y_true=found.outcome, sample_weight=found.weight, weights_estimated=estimated)
