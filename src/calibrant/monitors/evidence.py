"""Evidence that forecasts are off by more than tolerated: bets on intervals, signs and rates fixed beforehand.

With W the residual s (y - p) of a row inside an interval, or its mean over a period, a bet at rate x multiplies a stake
by (1 + x W) / (1 + x c): by at most 1 on average while the error is at most c given the past. So stakes seldom grow
large, and neither does their average, whenever one looks. Those that begin anew after each period find changes. The
proofs are in docs/theory/streams.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibrant.core.chernoff import root_of_concave
from calibrant.core.types import BoolArray, FloatArray, IntArray
from calibrant.monitors.families import (
    BORDERS,
    END,
    FASTEST_PERIODS,
    FASTEST_ROWS,
    RATES,
    between_borders,
    most_lost,
    places,
)
from calibrant.rows.cells import Cells

if TYPE_CHECKING:
    from calibrant.monitors.questions import Question

_SIGNS = (1.0, -1.0)
_HIGHEST = 0.9  # of what a bet on a period may lose
_PER_DOUBLING = 4
_FEWEST = 5  # periods of which some are before a change, and some since
_CLEAR = 10.0  # times what a single period would by chance
_MIDDLE = 6  # a rate of bets on periods that is seldom lowered
_SLOW = 0.12  # up to this rate four moments say as much as logarithms


def log_sum(values: FloatArray) -> float:
    """Return the logarithm of the sum of exponentials."""
    most = float(values.max())
    return most if math.isinf(most) else most + math.log(float(np.exp(values - most).sum()))


def log_sums(values: FloatArray, axis: int) -> FloatArray:
    """Return the logarithm of sums of exponentials along an axis."""
    most = values.max(axis=axis, keepdims=True)
    most = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(divide="ignore"):
        found: FloatArray = np.log(np.exp(values - most).sum(axis=axis)) + np.squeeze(most, axis=axis)
    return found


def mixed_lower(log_stakes: FloatArray, rates: FloatArray, units: int, delta: float, least: float) -> float:
    """Return the largest mean m with sum of stakes / (1 + x m)^units >= 1/delta; ``least`` where none above it has.

    The logarithm of the sum is convex in m, so that Newton's method never passes what is sought.
    """
    exponent = math.log(1.0 / delta)

    def too_little(mean: float) -> tuple[float, float]:
        logs = log_stakes - units * np.log1p(rates * mean)
        most = float(logs.max())
        parts = np.exp(logs - most)
        total = float(parts.sum())
        return exponent - most - math.log(total), float(parts @ (units * rates / (1.0 + rates * mean))) / total

    alone = np.expm1((log_stakes - exponent) / units) / rates  # up to where a single stake is enough
    return root_of_concave(too_little, min(max(float(alone.max()), least), 1.0), 1.0)


class Gains(NamedTuple):
    """What a period adds to the logarithm of each stake, and which bets had to be smaller than their rate."""

    log: FloatArray
    lowered: BoolArray


def cell_gains(cells: Cells, rate: float, sign: float) -> FloatArray:
    """Return what a bet at a rate gains on the rows of each cell, sum of ln(1 + x s r), or a little less.

    v - v^2 / 2 of v = x s r is known; the rest of ln(1 + v) rises with v, and counts at that end of the cell where it
    is smaller. Of outcomes that are fractions ln(1 + v) >= v - (-ln(1 - x) - x) r^2 is used.
    """
    step = rate * sign
    if not cells.binary_outcomes:
        return step * cells.residual + (math.log1p(-rate) + rate) * cells.residual_square
    forecast = cells.high if sign > 0.0 else cells.low
    gains: FloatArray = step * cells.residual - (rate**2 / 2.0) * cells.residual_square
    for count, value in ((cells.outcome, step * (1.0 - forecast)), (cells.rows - cells.outcome, -step * forecast)):
        gains += count * (np.log(1.0 + value) - value * (1.0 - value / 2.0))
    return gains


def are_slow(cells: Cells, rates: FloatArray) -> BoolArray:
    """Return at which rates `slow_gains` say as much as `cell_gains`."""
    return rates <= (_SLOW if cells.binary_outcomes else 0.0)


def cell_moments(cells: Cells, sign: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return sums over cells of s r, r^2, at most s r^3, and at least r^4."""
    forecast = cells.high if sign > 0.0 else cells.low
    others, surprise = cells.rows - cells.outcome, 1.0 - forecast
    third = sign * (cells.outcome * surprise * np.square(surprise) - others * forecast * np.square(forecast))
    # Powers above 2 are far slower than products.
    fourth = cells.outcome * np.square(np.square(1.0 - cells.low)) + others * np.square(np.square(cells.high))
    return sign * cells.residual, cells.residual_square, third, fourth


def slow_gains(moments: Sequence[FloatArray], rate: float) -> FloatArray:
    """Return what a bet at a slow rate gains on rows with these sums of powers, or a little less.

    ln(1 + v) >= v - v^2 / 2 + v^3 / 3 - h v^4 for |v| <= x, with h the rest of -ln(1 - x) over x^4.
    """
    first, second, third, fourth = moments
    rest = -math.log1p(-rate) - rate - rate**2 / 2.0 - rate**3 / 3.0
    gains: FloatArray = rate * first - (rate**2 / 2.0) * second + (rate**3 / 3.0) * third - rest * fourth
    return gains


def row_gains(cells: Cells, tolerance: float) -> Gains:
    """Return what bets on single rows gain, or a little less."""
    place, rates = places(cells.index, cells.bits), rates_of("row")

    def added(values: FloatArray) -> FloatArray:
        return np.bincount(place, weights=values, minlength=BORDERS.size - 1).astype(np.float64, copy=False)

    slow = are_slow(cells, rates)
    gains = np.empty((RATES, 2, BORDERS.size - 1))
    for side, sign in enumerate(_SIGNS):
        for k in np.flatnonzero(~slow).tolist():
            gains[k, side] = added(cell_gains(cells, float(rates[k]), sign))
        if slow.any():
            moments = [added(moment) for moment in cell_moments(cells, sign)]
            for k in np.flatnonzero(slow).tolist():
                gains[k, side] = slow_gains(moments, float(rates[k]))
    allowed = cells.row_total * np.log1p(rates * tolerance)
    return Gains(between_borders(gains) - allowed[:, None, None], np.zeros((RATES, 2, 1), dtype=np.bool_))


def period_gains(cells: Cells, tolerance: float) -> Gains:
    """Return what bets on the mean of the period gain, whatever its rows have to do with each other.

    Given the forecasts, a mean of s (y - p) on an interval is at least minus the mean of p (of 1 - p for s = -1) there;
    bets are small enough to lose no more than 90% then.
    """
    residual, forecast, share = period_means(cells, cells.residual, cells.outcome - cells.residual, cells.weight)
    return period_gains_of(np.stack([residual, -residual]), np.stack([forecast, share - forecast]), tolerance)


def period_means(cells: Cells, *columns: FloatArray | IntArray) -> list[FloatArray]:
    """Return sums of columns over each interval, divided by the weight of all rows."""
    place = places(cells.index, cells.bits)
    sums = (np.bincount(place, weights=each, minlength=BORDERS.size - 1) for each in columns)
    return [between_borders(each / cells.weight_total) for each in sums]


def period_gains_of(mean: FloatArray, at_worst: FloatArray, tolerance: float) -> Gains:
    """Return what bets on means of a period gain, whatever its rows have to do with each other.

    ``at_worst`` is how far below 0 the means can be, given the forecasts; both have a line for each sign.
    """
    rate = rates_of("period")[:, None, None]
    most = _HIGHEST / np.maximum(at_worst, 1e-300)
    bet = np.minimum(rate, most)
    won = np.maximum(bet * mean, -_HIGHEST)
    return Gains(np.log1p(won) - np.log1p(bet * tolerance), rate > most)


def rates_of(unit: str) -> FloatArray:
    """Return the betting rates of a unit of evidence."""
    fastest = {"row": FASTEST_ROWS, "period": FASTEST_PERIODS}[unit]
    rates: FloatArray = fastest * 2.0 ** -np.arange(float(RATES))
    return rates


def is_kept(start: int, now: int) -> bool:
    """Return whether bets that began after so many periods are still followed: of older ones ever fewer."""
    apart = max((now - start) // _PER_DOUBLING, 1)
    return start % (1 << (apart.bit_length() - 1)) == 0


def followed(now: int) -> list[int]:
    """Return after how many periods the bets began that are followed after so many."""
    found = set(range(max(now - 2 * _PER_DOUBLING, 0), now))
    apart = 1
    while _PER_DOUBLING * apart <= now:
        first = max(now - 2 * _PER_DOUBLING * apart, 0)
        found |= set(range(-(-first // apart) * apart, now - _PER_DOUBLING * apart + 1, apart))
        apart *= 2
    return sorted(start for start in found if is_kept(start, now))


class Component(NamedTuple):
    """The bets on the interval and in the direction that hold the most evidence, from where a change seems to begin."""

    start: int
    sign: float
    interval: int
    log_evidence: float


@dataclass
class Evidence:
    """What bets have gained since the first period, and since each start that is still followed.

    Attributes
    ----------
    question : Question
        What is watched.
    unit : str
        What bets are on: rows, or means of periods.
    tolerance : float
        The error that is no reason for an alarm.
    periods, units : int
        How many periods, and rows or periods, were bet on.
    log : array of shape (rates, signs, intervals)
        The logarithm of each stake, which was 1 in the beginning.
    lowered : array
        Which bets were smaller than their rate at least once.
    starts : dict
        The logarithms of stakes after so many periods, for each start that is followed.
    """

    question: Question
    unit: str
    tolerance: float
    periods: int = 0
    units: int = 0
    log: FloatArray = field(default_factory=lambda: np.zeros((RATES, 2, END.size)))
    lowered: BoolArray = field(default_factory=lambda: np.zeros((RATES, 2, END.size), dtype=np.bool_))
    starts: dict[int, FloatArray] = field(default_factory=dict)

    def add(self, cells: Cells) -> None:
        """Bet on the rows of the next period."""
        by_unit = {"row": self.question.row_gains, "period": self.question.period_gains}
        gains = by_unit[self.unit](cells, self.tolerance)
        self.starts[self.periods] = self.log
        self.log = self.log + gains.log
        self.lowered = self.lowered | gains.lowered
        self.periods += 1
        self.units += cells.row_total if self.unit == "row" else 1
        self.starts = {start: log for start, log in self.starts.items() if is_kept(start, self.periods)}

    def lower(self, delta: float, *, one_population: bool) -> float:
        """Return the largest error that bets from the beginning exclude, at all times together; 0 where none.

        Of one population, which may have forecasts that were not seen yet, those bets count that no forecasts can make
        smaller; otherwise those that none of the forecasts so far made smaller.
        """
        if self.units == 0:
            return 0.0
        rates = rates_of(self.unit)
        left_out = rates[:, None, None] * most_lost() > _HIGHEST if one_population else self.lowered
        counted = np.where(left_out, -np.inf, self.log + self.question.log_shares)
        gained = log_sums(counted.reshape(RATES, -1), axis=1) + self.units * np.log1p(rates * self.tolerance)
        return mixed_lower(gained, rates, self.units, delta, 0.0)

    def log_components(self) -> tuple[list[int], FloatArray]:
        """Return the starts, and the logarithm of the evidence of each start, sign and interval."""
        starts = sorted(self.starts)
        now = self.log + self.question.log_shares
        stakes = np.empty_like(now)  # one for all starts: there are many, and this is most of the time of a look
        grown = np.empty((len(starts), *now.shape[1:]))
        for start, sums in zip(starts, grown, strict=True):
            np.subtract(now, self.starts[start], out=stakes)
            most = stakes.max()
            stakes -= most
            np.exp(stakes, out=stakes)
            stakes.sum(axis=0, out=sums)
            with np.errstate(divide="ignore"):  # of bets that are nothing beside others
                np.log(sums, out=sums)
            sums += most
        return starts, grown

    def summary(self, *, ever: bool) -> tuple[float, float, Component]:
        """Return logarithms of the evidence of all starts and of the detector, and the largest part of what alarms.

        ``ever`` says that an alarm follows from the evidence, in which later starts count less; the detector counts
        all alike.
        """
        starts, grown = self.log_components()
        each = log_sums(grown.reshape(len(starts), -1), axis=1)
        weight = -np.array([math.log((start + 1.0) * (start + 2.0)) for start in starts])
        weighted = grown + weight[:, None, None] if ever else grown
        at, side, interval = (int(part) for part in np.unravel_index(int(weighted.argmax()), weighted.shape))
        at = self._begin(starts, weighted[:, side, interval], side, interval)
        largest = Component(starts[at], _SIGNS[side], interval, float(weighted[at, side, interval]))
        return log_sum(each + weight), log_sum(each), largest

    def _begin(self, starts: list[int], grown: FloatArray, side: int, interval: int) -> int:
        """Return the place among the starts of that nearest to a change.

        It is the last one whose bets hold half of the most evidence. Bets on periods, however, hardly lose while
        forecasts are right, so that all starts before a change hold about as much; there it is the start that parts
        the mean residuals best into those before and since, if it parts them clearly.
        """
        last = int(np.flatnonzero(grown >= grown.max() - math.log(2.0))[-1])
        count = np.array(starts, dtype=np.float64)
        if self.unit == "row" or self.periods < _FEWEST or starts[0] != 0:
            return last
        rates = rates_of(self.unit)
        logs = np.stack([*(self.starts[start] for start in starts), self.log])[:, :, side, interval]
        logs = logs + np.append(count, self.periods)[:, None] * np.log1p(rates * self.tolerance)
        total = logs[:, -1] / rates[-1]  # ln(1 + v) is v for the slowest rate, and v - v^2 / 2 for others
        square = 2.0 * (rates[_MIDDLE] * total[-1] - logs[-1, _MIDDLE]) / rates[_MIDDLE] ** 2
        before, since = total[1:-1] / count[1:], (total[-1] - total[1:-1]) / (self.periods - count[1:])
        parted = np.maximum(since - before, 0.0) ** 2 * count[1:] * (1.0 - count[1:] / self.periods)
        best = int(parted.argmax())
        rest = square - total[-1] ** 2 / self.periods - parted[best]
        return best + 1 if parted[best] * (self.periods - 2) >= _CLEAR * max(rest, 0.0) else last
