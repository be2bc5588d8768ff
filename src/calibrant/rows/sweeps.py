"""Thresholds that rise through forecasts of a real outcome: at each one a column of forecasts and outcomes.

At a threshold t the question is whether the outcome is at most t: the outcome is 1{Z <= t}, the forecast F(t).
Forecasts that are step functions change at finitely many thresholds, which are all looked at, in order; others are
asked at the thresholds of a list. Neither ever holds more than one column of forecasts, or a few numbers per step.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.threshold_kernels import Kinds, largest_runs, prefix_ranges
from calibrant.core.types import BoolArray, FloatArray, IntArray
from calibrant.core.words import shown
from calibrant.rows.checks import check_forecasts
from calibrant.rows.runs import group_starts
from calibrant.rows.splits import Marks, row_marks, seeded

Score = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""What an event and another row score, at each of several forecasts."""

_TABLE = 2**22  # thresholds times levels that are counted one by one; beyond, a tree keeps what changes
_AT_ONCE = 2**15  # of them, in what a processor's cache has room for
_UNIT = 2.0**40  # fixed point in which spreads add up exactly, in whatever order rows come
_SLIP = 1e-9  # by which computed distribution functions may fall without anybody having meant it


class ThresholdForecasts(ABC):
    """Forecasts of a real outcome, as columns of probabilities that it is at most a threshold.

    Attributes
    ----------
    outcome : array of float64
        The outcomes Z; infinite where they are above every threshold looked at.
    highest : float
        The highest threshold looked at; infinite where all are.
    """

    outcome: FloatArray
    highest: float

    @property
    def rows(self) -> int:
        """Rows."""
        return self.outcome.size

    @abstractmethod
    def column(self, threshold: float) -> FloatArray:
        """Return the forecast of each row that its outcome is at most the threshold."""

    @abstractmethod
    def cutoffs(self) -> tuple[FloatArray, FloatArray]:
        """Return thresholds, rising, and the Cutoff calibration error at each of them.

        Those of step functions are where something changes: the error stays the same up to the next one.
        """

    @abstractmethod
    def largest_stretches(self, scores: Sequence[Score]) -> FloatArray:
        """Return the largest sum of each score over an interval of forecasts at any threshold, 0 at least."""

    @abstractmethod
    def worst_of(self, parts: BoolArray) -> FloatArray:
        """Return the threshold with the largest Cutoff error of some of the rows, for each line that marks some."""

    @abstractmethod
    def spreads(self) -> tuple[float, float]:
        """Return means of F(t) (1 - F(t)) and of (1{Z <= t} - F(t))^2 over pairs: t is the outcome of another row.

        Where thresholds are a list, t is the first of it that is not below that outcome, or else the last. One row has
        no other, and means of 0.
        """

    @abstractmethod
    def columns(self) -> Iterator[FloatArray]:
        """Go through numbers that tell the forecasts of rows apart, a column at a time."""

    def halves(self, seed: int, count: int) -> BoolArray:
        """Return which rows go to the first of two halves, so many times over, in a line each.

        Coins of rows whose forecasts nobody shares come from the seed and the forecasts; those of others, who differ
        in their outcomes only, from the outcomes too. The order of rows plays no part
        (docs/theory/random-halves.md).
        """
        marks = row_marks(self.columns(), self.rows)
        order = np.lexsort((self.outcome, marks))
        same = np.diff(marks[order].view(np.int64)) == 0
        shared = np.append(same, False) | np.append(False, same)
        known = _fingerprint(marks[order])
        coins = np.empty((count, self.rows), dtype=np.int64)
        single = seeded(seed, "threshold halves, forecasts", known)
        coins[:, order] = single.integers(0, 2, size=(count, self.rows), dtype=np.int64)
        if shared.any():
            held = known + _fingerprint((self.outcome[order] + 0.0).view(np.uint64))
            tied = seeded(seed, "threshold halves, ties", held)
            coins[:, order[shared]] = tied.integers(0, 2, size=(count, int(shared.sum())), dtype=np.int64)
        found: BoolArray = coins == 1
        return found


def _fingerprint(marks: Marks) -> str:
    return hashlib.sha256(np.ascontiguousarray(marks).astype("<u8").tobytes()).hexdigest()


@dataclass(frozen=True, eq=False)
class StepForecasts(ThresholdForecasts):
    """Forecasts that rise from level to level at values of their own, as ensembles and quantiles do.

    Attributes
    ----------
    values : array of shape (n, m)
        Where the forecast of each row rises, in order; infinite where that is above every threshold looked at.
    levels : array of shape (m + 1,)
        The forecast before the first of them, 0, and after each of them; the last one is 1.
    """

    outcome: FloatArray
    values: FloatArray
    levels: FloatArray
    highest: float = np.inf

    @cached_property
    def sweep(self) -> Sweep:
        """What changes, in the order of thresholds."""
        return Sweep.of(self)

    def passed(self, threshold: float | FloatArray) -> IntArray:
        """Return how many values of each row are at most a threshold, or one of its own."""
        own = np.broadcast_to(threshold, self.rows)
        found: IntArray = (self.values <= own[:, None]).sum(axis=1)
        return found

    def column(self, threshold: float) -> FloatArray:
        """Return the level that each row has reached at a threshold."""
        return self.levels[self.passed(threshold)]

    def cutoffs(self) -> tuple[FloatArray, FloatArray]:
        """Return every threshold at which something changes, and the errors there."""
        return self.sweep.place[self.sweep.last], self.sweep.ranges(self.levels, self.rows) / self.rows

    def largest_stretches(self, scores: Sequence[Score]) -> FloatArray:
        """Return the largest sums over all thresholds."""
        return np.array([self.sweep.largest(*score(self.levels), self.rows) for score in scores])

    def worst_of(self, parts: BoolArray) -> FloatArray:
        """Return the worst threshold of each part."""
        found = np.full(len(parts), np.nan)
        for number, part in enumerate(parts):
            some = self.sweep.take(part)
            if some.leaf.size:
                ranges = some.ranges(self.levels, int(part.sum()))
                found[number] = some.place[some.last][int(ranges.argmax())]
        return found

    def spreads(self) -> tuple[float, float]:
        """Return the means over pairs, from running totals of whole numbers: exact, in whatever order rows come."""
        if self.rows < 2:
            return 0.0, 0.0
        sweep, level = self.sweep, self.levels
        own = np.minimum(self.outcome, self.highest)
        reached = level[self.passed(own)]
        happened = np.isfinite(self.outcome)
        after = np.minimum(sweep.leaf + 1, level.size - 1)
        until = np.searchsorted(sweep.place, own, side="right")
        spread, low, high = (_whole(each) for each in (level * (1.0 - level), level**2, (1.0 - level) ** 2))
        steps = np.where(sweep.kind == _OUTCOME, 0, spread[after] - spread[sweep.leaf])
        squares = np.choose(
            sweep.kind,
            [low[after] - low[sweep.leaf], high[after] - high[sweep.leaf], high[sweep.leaf] - low[sweep.leaf]],
        )
        found = []
        for changes, alone in (
            (steps, reached * (1.0 - reached)),
            (squares, np.where(happened, 1.0 - reached, reached) ** 2),
        ):
            total = np.concatenate([[0], np.cumsum(changes)])
            found.append(_mean_over_pairs((total[until] - _whole(alone)) / _UNIT, self.rows))
        return found[0], found[1]

    def columns(self) -> Iterator[FloatArray]:
        """Go through the values of all rows, the lowest of each first."""
        return iter(self.values.T)


_OUTCOME = 2


def _whole(numbers: FloatArray) -> IntArray:
    found: IntArray = np.rint(numbers * _UNIT).astype(np.int64)
    return found


def _mean_over_pairs(totals: FloatArray, rows: int) -> float:
    return float(np.sort(totals).sum()) / (rows * (rows - 1.0))


@dataclass(frozen=True, eq=False)
class Sweep:
    """What a rising threshold passes, in order: values at which forecasts rise, and outcomes.

    Attributes
    ----------
    place : array of float64
        The threshold of each step.
    row : array of int64
        Whose it is.
    leaf : array of int64
        The level from which the forecast rises; for an outcome the level of its row after that threshold.
    kind : array of uint8
        0 for a forecast that rises, 1 where the outcome of its row is below, 2 for an outcome.
    last : array of bool
        Whether the next step is at another threshold. Only there all steps of a threshold are done.
    """

    place: FloatArray
    row: IntArray
    leaf: IntArray
    kind: Kinds
    last: BoolArray

    @classmethod
    def of(cls, steps: StepForecasts) -> Sweep:
        """Bring values and outcomes into order; those beyond every threshold are left out."""
        count, outcome = steps.values.size, steps.outcome
        place = np.concatenate([steps.values.ravel(), outcome])
        order = np.argsort(place)
        order = order[: int(np.isfinite(place).sum())]
        place = place[order]
        is_outcome = order >= count
        row = np.where(is_outcome, order - count, order // steps.values.shape[1])
        leaf = np.where(is_outcome, steps.passed(outcome)[row], order - row * steps.values.shape[1])
        kind = np.where(is_outcome, _OUTCOME, outcome[row] < place).astype(np.uint8)
        return cls(place, row, leaf, kind, _ends(place))

    def take(self, kept: BoolArray) -> Sweep:
        """Return the steps of some of the rows."""
        some = kept[self.row]
        place = self.place[some]
        return Sweep(place, self.row[some], self.leaf[some], self.kind[some], _ends(place))

    def ranges(self, levels: FloatArray, rows: int) -> FloatArray:
        """Return the range of the residual curve at each threshold."""
        if not self._fits(levels.size):
            return prefix_ranges(self.leaf, self.kind, self.last, levels, rows)
        found = [np.empty(0)]
        for counts, events in self._tables(levels.size, rows):
            curve = np.cumsum(events - levels * counts, axis=1)
            found.append(np.maximum(curve.max(axis=1), 0.0) - np.minimum(curve.min(axis=1), 0.0))
        return np.concatenate(found)

    def largest(self, event_score: FloatArray, other_score: FloatArray, rows: int) -> float:
        """Return the largest sum of scores over neighbouring levels at any threshold."""
        if not self._fits(event_score.size):
            return float(largest_runs(self.leaf, self.kind, self.last, event_score, other_score, rows))
        found = max(rows * float(other_score[0]), 0.0)  # before every threshold
        for counts, events in self._tables(event_score.size, rows):
            sums = _largest_sums(events * event_score + (counts - events) * other_score)
            found = max(found, float(sums.max()))
        return found

    def _fits(self, levels: int) -> bool:
        return int(self.last.sum()) * levels <= _TABLE

    def _tables(self, levels: int, rows: int) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Count rows and events at each level, in a line for each threshold, some thresholds at a time."""
        ends = np.concatenate([[0], np.flatnonzero(self.last) + 1])
        count, events = np.zeros(levels), np.zeros(levels)
        count[0] = rows
        together = max(_AT_ONCE // levels, 1)
        for first in range(0, ends.size - 1, together):
            until = min(first + together, ends.size - 1)
            steps = slice(ends[first], ends[until])
            kind, last = self.kind[steps], self.last[steps]
            lines: IntArray = np.cumsum(last) - last
            place = lines * levels + self.leaf[steps]
            rises, late = kind != _OUTCOME, kind == 1
            shape = (until - first, levels)
            counts = count + np.cumsum(_added(place[rises] + 1, shape) - _added(place[rises], shape), axis=0)
            moved = _added(place[late] + 1, shape) - _added(place[late], shape)
            happened = events + np.cumsum(moved + _added(place[~rises], shape), axis=0)
            yield counts, happened
            count, events = counts[-1], happened[-1]


def _added(places: IntArray, shape: tuple[int, int]) -> IntArray:
    return np.bincount(places, minlength=shape[0] * shape[1]).reshape(shape)


def _ends(place: FloatArray) -> BoolArray:
    found: BoolArray = np.append(place[1:] != place[:-1], True)[: place.size]
    return found


def _largest_sums(scores: FloatArray) -> FloatArray:
    prefix = np.cumsum(scores, axis=1)
    found: FloatArray = (prefix - np.minimum(np.minimum.accumulate(prefix, axis=1), 0.0)).max(axis=1)
    return found


def _counted(kept: BoolArray, starts: IntArray) -> FloatArray:
    found: FloatArray = np.add.reduceat(kept.astype(np.float64), starts)
    return found


@dataclass(frozen=True, eq=False)
class CurveForecasts(ThresholdForecasts):
    """Forecasts that are asked one threshold at a time.

    Attributes
    ----------
    cdf : callable
        Takes a threshold, returns the forecast of each row.
    thresholds : array of float64
        The thresholds, rising.
    """

    outcome: FloatArray
    cdf: Callable[[float], object]
    thresholds: FloatArray
    highest: float = np.inf

    def column(self, threshold: float) -> FloatArray:
        """Return what the function says, checked."""
        values = check_forecasts(self.cdf(float(threshold)), name=f"cdf({shown(threshold)})")
        if values.size != self.rows:
            raise InputError(
                f"returned {values.size:,} values for {self.rows:,} rows",
                argument=f"cdf({shown(threshold)})",
                value=values.size,
                remedy="it must return one probability per row",
            )
        return values

    def _each(self) -> Iterator[tuple[float, FloatArray]]:
        """Go through the thresholds, each with its column, and refuse forecasts that fall."""
        before, place = None, 0.0
        for threshold in self.thresholds.tolist():
            forecast = self.column(threshold)
            if before is not None and (forecast < before - _SLIP).any():
                position = int(np.argmax(before - forecast))
                raise InputError(
                    f"is {shown(forecast[position])}, below {shown(before[position])} at the lower threshold "
                    f"{shown(place)}",
                    argument=f"cdf({shown(threshold)})",
                    position=position,
                    value=float(forecast[position]),
                    remedy="a distribution function never falls: look for rows in another order, or 1 - F in its place",
                )
            yield threshold, forecast
            before, place = forecast, threshold

    def cutoffs(self) -> tuple[FloatArray, FloatArray]:
        """Return the thresholds and the errors there."""
        everybody = np.ones((1, self.rows), dtype=np.bool_)
        return self.thresholds, np.array([self._ranges(*each, everybody)[0] for each in self._each()]) / self.rows

    def _ranges(self, threshold: float, forecast: FloatArray, parts: BoolArray) -> list[float]:
        """Return the range of the residual curve of each part."""
        order = np.argsort(forecast, kind="stable")
        starts = group_starts(forecast[order])
        level, happened = forecast[order][starts], (self.outcome <= threshold)[order]
        found = []
        for part in parts:  # counts, so that the order of rows with equal forecasts does not show in the last digit
            kept = part[order]
            curve = np.cumsum(_counted(kept & happened, starts) - level * _counted(kept, starts))
            found.append(max(float(curve.max()), 0.0) - min(float(curve.min()), 0.0))
        return found

    def largest_stretches(self, scores: Sequence[Score]) -> FloatArray:
        """Return the largest sums over the thresholds."""
        found = np.zeros(len(scores))
        for threshold, forecast in self._each():
            order = np.argsort(forecast, kind="stable")
            starts = group_starts(forecast[order])
            happened = (self.outcome <= threshold)[order]
            events, others = _counted(happened, starts), _counted(~happened, starts)
            for number, score in enumerate(scores):
                of_event, of_other = score(forecast[order][starts])
                line = (events * of_event + others * of_other)[None]
                found[number] = max(found[number], float(_largest_sums(line)[0]))
        return found

    def worst_of(self, parts: BoolArray) -> FloatArray:
        """Return the worst threshold of each part; one column at a time serves all of them."""
        largest, found = np.full(len(parts), -1.0), np.full(len(parts), np.nan)
        for threshold, forecast in self._each():
            ranges = np.array(self._ranges(threshold, forecast, parts))
            better = (ranges > largest) & parts.any(axis=1)
            largest[better], found[better] = ranges[better], threshold
        return found

    def spreads(self) -> tuple[float, float]:
        """Return the means over pairs, threshold by threshold."""
        if self.rows < 2:
            return 0.0, 0.0
        first = np.minimum(np.searchsorted(self.thresholds, self.outcome), self.thresholds.size - 1)
        spread, square = 0, 0
        for number, (threshold, forecast) in enumerate(self._each()):
            own = first == number
            asked = int(own.sum())
            variance = _whole(forecast * (1.0 - forecast))
            missed = _whole(((self.outcome <= threshold) - forecast) ** 2)
            spread += asked * int(variance.sum()) - int(variance[own].sum())
            square += asked * int(missed.sum()) - int(missed[own].sum())
        pairs = _UNIT * self.rows * (self.rows - 1.0)
        return spread / pairs, square / pairs

    def columns(self) -> Iterator[FloatArray]:
        """Go through the forecasts at all thresholds."""
        return (forecast for _, forecast in self._each())
