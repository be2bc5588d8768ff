"""Limits of an error as a share of all events: by a bet on both at once, or as a quotient of two limits.

The claim "the Cutoff error is at most t times the event rate" says that s r 1{p in I} - t y has no positive mean, for
any interval I and sign s. A bet against one of these means multiplies a stake by 1 - x (s r 1{p in I} - t y) for each
row; rows outside the interval add ln(1 + x t) for each event, whatever the interval, so that the interval against which
the bet does worst is one pass over the forecasts. The proofs are in docs/theory/event-shares.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from calibrant.certificates.betting import (
    GROWTH_TOLERANCE,
    bet_exponent,
    bet_stretches,
    interval_rates,
    planned_rates,
    square_coefficient,
)
from calibrant.certificates.results import YARDSTICKS
from calibrant.certificates.samples import Samples
from calibrant.certificates.stretches import Pairs, square_scores
from calibrant.core.chernoff import mean_interval
from calibrant.core.errors import InputError
from calibrant.core.types import FloatArray
from calibrant.core.voices import Argument, Option, Phrase
from calibrant.measures.judged import JudgedMeasure
from calibrant.rows.checks import check_choice
from calibrant.rows.refinement import (
    growth_error,
    growth_pairs,
    largest_of,
    largest_stretch,
    opened,
    split_at_stretches,
    split_for_growth,
)
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally, Totals

RATE_SHARE = 0.2
"""Share of delta spent on the event rate, where two limits are divided."""

MOST_SHARE = 1e6
"""A limit above this says nothing that infinity does not say."""

_START = 1e-6  # a share that nobody asks about, from which the search begins
_PRECISION = 1e-13
_PLANNED_PRECISION = 1e-6
_MOST_STEPS = 50  # about eight are needed


def event_rate_limits(table: Totals, delta: float) -> tuple[float, float]:
    """Return limits for the population's event rate, each wrong with probability at most delta.

    For weights, of the mean that they stand for; their largest is the unit.
    """
    low, high = mean_interval(table.outcome_total / table.weight_max, table.row_total, delta)
    unit = table.row_total * table.weight_max / table.weight_total
    return min(low * unit, 1.0), min(high * unit, 1.0)


def event_rate_of(table: Totals) -> float:
    """Return the share of the rows, by weight, that are events: their mean outcome."""
    return min(max(table.outcome_total / table.weight_total, 0.0), 1.0)


def check_yardstick(measure: JudgedMeasure, relative_to: str) -> None:
    """Refuse shares of what nobody knows, or of what means nothing for an error."""
    check_choice(relative_to, "relative_to", YARDSTICKS)
    if relative_to == "events" and not measure.per_event:
        raise InputError(
            Phrase(
                "{relative} is not for {measure}, which counts losses per case",
                relative=Option("relative_to", relative_to),
                measure=Option("measure", measure.name),
            ),
            remedy=Phrase("leave {relative} out", relative=Argument("relative_to")),
        )


def of_events(error: float, event_rate: float) -> float:
    """Return the least t with error <= t x event rate: infinite where there is an error and (nearly) no event."""
    if error <= 0.0:
        return 0.0
    return error / event_rate if error < MOST_SHARE * event_rate else math.inf


def upper_share(source: Tally | RowSource, table: Totals, delta: float) -> float:
    """Return the upper limit of the Cutoff error as a share of the event rate, by betting, for rows of unit weight.

    No rate between two has a larger limit than both of them: what a bet gains is a concave function of its rate.
    """
    if table.outcome_total <= 0.0:
        return math.inf
    source = opened(source)
    return max(_limit_at(source, table, rate, bet_exponent(delta)) for rate in interval_rates(table, delta))


def _limit_at(source: Tally | RowSource, table: Totals, rate: float, exponent: float) -> float:
    """Return the least share at which the worst interval leaves the bet with a gain of the exponent."""
    if isinstance(source, Tally) and table.counted:
        stretch = _stretches(source, rate)
        return _root(lambda share: _gain(source, rate, share, stretch(share)) - exponent)
    scores = _scores(table, rate)

    def limit(fine: Totals, missing: float) -> float:
        return _root(lambda share: _gain(fine, rate, share, largest_of(next(scores(share)(fine)))) - missing)

    if isinstance(source, Tally):
        return limit(source, exponent)
    place, fine = 0.0, table
    while True:  # each time with the entries opened in which the worst interval of the last share may begin or end
        slack = 0.0
        if table.counted:
            slower = _event_rate(rate, place)
            # What the growth is off by moves the share by that much for each event, of which there may be few.
            narrow = split_for_growth(source, rate, GROWTH_TOLERANCE * table.outcome_total * rate, slower)
            slack = 2.0 * float(growth_error(narrow, rate, slower).sum())
        fine = split_at_stretches(source, scores(place))
        after = limit(fine, exponent + slack)
        if not math.isfinite(after) or after <= place * (1.0 + 10.0 * _PRECISION):
            return after
        place = after


def _stretches(tally: Tally, rate: float) -> Callable[[float], float]:
    """Return the largest stretch of `growth_scores`, of either sign, by share: only what events score depends on it."""
    forecast, events = tally.forecast, tally.outcome
    some = np.flatnonzero(events)
    surprise, count = 1.0 - forecast[some], events[some]
    others = [-(tally.rows - events) * np.log1p(rate * sign * forecast) for sign in (1.0, -1.0)]

    def largest(share: float) -> float:
        step, found = _event_rate(rate, share), []
        for other, bet in zip(others, (-step * surprise, step * surprise), strict=True):
            total = other.copy()
            total[some] -= count * np.log1p(bet)
            found.append(largest_stretch(total))
        return max(found)

    return largest


def _gain(table: Totals, rate: float, share: float, stretch: float) -> float:
    """Return what the bet gains at least, from the largest stretch of its scores."""
    events = table.outcome_total
    if table.counted:
        return events * math.log1p(rate * share) - stretch
    return events * (math.log1p(rate * share) - rate**2 * share / 2.0) - rate * stretch


def _scores(table: Totals, rate: float) -> Callable[[float], Pairs]:
    """Return the scores of rows, in both signs, for a share: what an interval takes from the bet."""

    def at(share: float) -> Pairs:
        if not table.counted:
            return square_scores([square_coefficient(table, rate) + rate * share / 2.0])
        return lambda fine: growth_pairs(fine, (rate,), _event_rate(rate, share))

    return at


def _event_rate(rate: float, share: float) -> float:
    """Return the rate for events: 1 + x t - x s (1 - p) is (1 + x t) (1 - x' s (1 - p)) with x' = x / (1 + x t)."""
    return rate / (1.0 + rate * share)


def _root(function: Callable[[float], float]) -> float:
    """Return where a concave function that is negative at 0 reaches 0; infinity where that is nowhere, or far away.

    Lines through two points below it stay above the function beyond them, so that no step passes the root.
    """
    before, below = 0.0, function(0.0)
    place = _START
    while True:
        value = function(place)
        if value >= 0.0:
            return place
        slope = (value - below) / (place - before)
        if slope <= 0.0 or place > MOST_SHARE:
            return math.inf
        after = place - value / slope
        if after <= place * (1.0 + _PRECISION):
            return after
        before, below, place = place, value, after


def planned_shares(samples: Samples, delta: float) -> FloatArray:
    """Return `upper_share` of each simulated data set, all of them in step."""
    exponent = bet_exponent(delta)
    shares: FloatArray = np.max(
        [_planned_at(samples, rates, exponent) for rates in planned_rates(samples, delta)], axis=0
    )
    return shares


def _planned_at(samples: Samples, rates: FloatArray, exponent: float) -> FloatArray:
    events = samples.events.sum(axis=1)

    def gain(share: FloatArray) -> FloatArray:
        stretches = bet_stretches(samples, rates, rates / (1.0 + rates * share))
        found: FloatArray = events * np.log1p(rates * share) - stretches - exponent
        return found

    before, below = np.zeros(events.size), gain(np.zeros(events.size))
    place, found = np.full(events.size, _START), events == 0
    for _ in range(_MOST_STEPS):
        value = gain(place)
        found = found | (value >= 0.0)
        if found.all():
            break
        slope = np.divide(value - below, place - before, out=np.ones(events.size), where=~found)
        step = np.where(found, 0.0, -value / slope)
        before, below, place = place, value, place + step
        found |= step <= _PLANNED_PRECISION * place
    return np.where(events == 0, math.inf, place)
