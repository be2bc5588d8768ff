"""The worst group and interval among all of them: every half-line of every ordered feature, every label of the others.

Errors are on the scale of all rows: |sum of w r over the rows of a group with forecasts in an interval|. What can be
bounded from a few looks is not looked at: the answers are those of looking everywhere. The loops that grow groups row
by row are in `core.group_kernels`; few rows are looked at with numpy, as many groups at once as a cache has room for.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.certificates.samples import largest_sums
from calibrant.core.group_kernels import growing_bounds, growing_ranges, growing_stretches
from calibrant.core.threads import in_threads
from calibrant.core.types import BoolArray, FloatArray, IntArray
from calibrant.rows.checks import Observations
from calibrant.rows.features import MISSING, Feature
from calibrant.rows.runs import group_starts
from calibrant.rows.splits import row_marks

ALL, KNOWN, UNKNOWN, AT_MOST, AT_LEAST, IS = "all", "known", "missing", "at most", "at least", "is"
"""The kinds of groups: all rows, those where a feature is known or missing, those on a side of a value, or at it."""

FEW = 1 << 11
"""Up to so many rows groups are looked at by numpy, many at once; beyond, row by row in a compiled loop."""

_AT_ONCE = 1 << 17  # numbers looked at together: what a cache has room for
_FEW_STEPS = 48  # groups that are looked at first, evenly spread
_BINS = 1 << 12  # stretches of forecasts on which a first look at many rows is enough
_EVERY = 1 << 7  # rows that enter between two such looks
_TOGETHER = 1 << 6  # steps that are left out together
_ROUNDING = 1e-12  # of all rows: groups whose errors are no further apart are equal


_More: TypeAlias = Callable[[IntArray, IntArray], FloatArray]


class Cut(NamedTuple):
    """A group of rows: which feature, which kind of group, and the place of its value among the feature's."""

    kind: str
    feature: int | None = None
    place: int | None = None


@dataclass(frozen=True)
class Scene:
    """Rows in an order that what they hold decides, and what each of them adds to a group.

    Attributes
    ----------
    rows : Observations
        Ordered by forecast, outcome, weight and features; none of weight zero.
    gain : array
        w r / largest w: between -1 and 1.
    features : tuple of Feature
        Of the rows in this order.
    """

    rows: Observations
    gain: FloatArray
    features: tuple[Feature, ...]

    @classmethod
    def of(cls, rows: Observations, features: Sequence[Feature]) -> Scene:
        """Put rows and features in order."""
        order = np.argsort(rows.y_prob)
        forecast = rows.y_prob[order]
        same = np.diff(forecast) == 0.0
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        if tied.size:
            among = order[tied]
            marks = row_marks((each.codes[among] for each in features), among.size)
            weight = () if rows.sample_weight is None else (rows.sample_weight[among],)
            order[tied] = among[np.lexsort((marks, *weight, rows.y_true[among], forecast[tied]))]
        rows = rows.take(order)
        gain = rows.y_true - rows.y_prob
        if rows.sample_weight is not None:
            gain = gain * (rows.sample_weight / rows.sample_weight.max())
        return cls(rows, gain, tuple(in_threads(lambda each: each.taken(order), features, rows=order.size)))

    @property
    def size(self) -> int:
        """Rows."""
        return self.gain.size

    @cached_property
    def leaves(self) -> Leaves:
        """All rows with the place of each among the distinct forecasts."""
        return Leaves(self.rows.y_prob, self.gain)

    def members(self, cut: Cut) -> BoolArray:
        """Return which rows are in a group."""
        if cut.feature is None:
            return np.ones(self.size, dtype=np.bool_)
        codes = self.features[cut.feature].codes
        missing: BoolArray = codes == MISSING
        if cut.place is None:
            return missing if cut.kind == UNKNOWN else ~missing
        found: BoolArray = codes == cut.place
        if cut.kind == AT_LEAST:
            found = codes >= cut.place
        elif cut.kind == AT_MOST:
            found = (codes <= cut.place) & ~missing
        return found


class Leaves:
    """Rows in the order of their forecasts, with the place of each among the distinct ones.

    Attributes
    ----------
    starts : array of int
        Where another forecast begins.
    leaf : array of int
        The place of each row's forecast.
    gain : array
        What each row adds.
    """

    def __init__(self, forecast: FloatArray, gain: FloatArray) -> None:
        self.starts = group_starts(forecast)
        new = np.zeros(forecast.size, dtype=np.int64)
        new[self.starts[1:]] = 1
        self.leaf: IntArray = np.cumsum(new)
        self.gain = gain

    @cached_property
    def stretches(self) -> tuple[npt.NDArray[np.uint16], float]:
        """The stretch of each row, and how far a running total can leave the space between their ends.

        Inside a stretch, by the less of what rises and of what falls there; a single forecast has no inside.
        """
        size = self.leaf.size
        stretch = ((np.append(self.starts[1:], size) - 1) * _BINS // size).astype(np.uint16)
        of_row = stretch[self.leaf]
        up = np.bincount(of_row, np.maximum(self.gain, 0.0), _BINS)
        down = np.bincount(of_row, np.maximum(-self.gain, 0.0), _BINS)
        inside = np.where(np.bincount(stretch, minlength=_BINS) > 1, np.minimum(up, down), 0.0)
        return of_row, float(inside.max())

    def summed(self, lines: FloatArray) -> FloatArray:
        """Return the sum at each forecast of numbers per row, for one or several lines of them."""
        if self.starts.size == self.leaf.size:
            return lines
        found: FloatArray = np.add.reduceat(lines, self.starts, axis=-1)
        return found


@dataclass
class Side:
    """Groups of which each holds the one before it, or that have nothing in common: the steps of one feature.

    Attributes
    ----------
    order : array of int
        Rows, by their place among those that are looked at, in the order in which they enter.
    end : array of int
        How many rows have entered after each step; for labels, where the rows of each end.
    cuts : tuple
        The kind of group, and for each step the place of its value.
    most : array
        At each step, what the largest |sum of gains| over intervals is, or is at most.
    entered : array of int or None
        The step at which each row enters, once it has been asked for.
    """

    order: IntArray
    end: IntArray
    kind: str
    places: IntArray
    grows: bool = True
    most: FloatArray = field(default_factory=lambda: np.empty(0))
    entered: IntArray | None = None

    @property
    def begin(self) -> IntArray:
        """Where the rows of each step begin."""
        return np.concatenate([[0], self.end[:-1]])


class Looked:
    """The rows for which one feature has a value, with what is looked for among their groups."""

    def __init__(self, scene: Scene, place: int) -> None:
        feature = scene.features[place]
        self.place = place
        known = np.flatnonzero(~feature.missing)
        self.whole = known.size == scene.size
        self.positions: IntArray | None = None if self.whole else known
        self.leaves = scene.leaves if self.whole else Leaves(scene.rows.y_prob[known], scene.gain[known])
        self.leaf, self.gain = self.leaves.leaf, self.leaves.gain
        self.sides = tuple(_sides(feature, self.positions))
        self._held: dict[tuple[int, bool], tuple[Any, Any]] = {}  # values with themselves in the order of a side

    def of(self, values: FloatArray) -> FloatArray:
        """Return the values of the rows that are looked at."""
        return values if self.positions is None else values[self.positions]

    @property
    def size(self) -> int:
        """Rows that are looked at."""
        return self.leaf.size

    def look(self) -> None:
        """Find, at each step of each side, the largest |sum| over intervals, or a bound of what cannot be largest."""
        if self.size > FEW and all(side.grows for side in self.sides):
            self._look_at_many()
            return
        for side in self.sides:
            if not side.grows:
                side.most = self._of_labels(side, self.gain)
                continue
            entering = self.gain[side.order]
            up = _before(np.maximum(entering, 0.0))[side.end]
            down = _before(np.maximum(-entering, 0.0))[side.end]

            def more(since: IntArray, until: IntArray, up: FloatArray = up, down: FloatArray = down) -> FloatArray:
                """Return how much the rows that enter between two steps, or leave, can change a largest |sum|."""
                return np.maximum(up[until] - up[since], down[until] - down[since])

            side.most, _ = self._search_few(side, self.gain, _range_of, (more, more), None, 0.0)

    def largest(
        self, side: Side, steps: IntArray, scores: FloatArray, steepest: float, bound: FloatArray, best: float
    ) -> tuple[FloatArray, float]:
        """Return, for given steps, the largest sum of scores over intervals or a bound of it, and the largest of all.

        Scores are at most ``steepest`` times gains, whatever their signs, and ``bound`` is one for these steps. The
        best so far is the largest unless more is found.
        """
        if side.grows and self.size <= FEW:
            entering = scores[side.order]
            up = _before(np.maximum(entering, 0.0))[side.end]
            down = _before(np.maximum(-entering, 0.0))[side.end]
            more = (lambda since, until: up[until] - up[since], lambda since, until: down[until] - down[since])
            everywhere = np.full(side.end.size, -math.inf)
            everywhere[steps] = bound
            found, best = self._search_few(side, scores, largest_sums, more, everywhere, best)
            return found[steps], best
        if side.grows:
            last = int(steps[-1]) + 1
            wanted = np.zeros(last, dtype=np.bool_)
            wanted[steps] = True
            rows, end = int(side.end[last - 1]), side.end[:last]
            entering = self.entering(side, scores)[:rows]
            stretch, inside = self.leaves.stretches
            coarse, _ = growing_bounds.run_compiled(
                self.entering(side, stretch)[:rows], entering, end, wanted, _BINS, _EVERY, False
            )
            looked = np.minimum(coarse[steps] + (2.0 * steepest * inside + _ROUNDING * self.size), bound)
            wanted[steps] = left = looked > best
            if left.any():
                leaf = self.entering(side, self.leaf)[:rows]
                fine = growing_stretches.run_compiled(leaf, entering, end, wanted, self.leaves.starts.size)
                looked[left] = fine[wanted]
                best = max(best, float(looked[left].max()))
            return looked, best
        begin = side.begin
        looked = np.array([self._largest_of(side.order[begin[k] : side.end[k]], scores) for k in steps])
        return looked, max(best, float(looked.max()))

    def _search_few(
        self,
        side: Side,
        values: FloatArray,
        measured: Callable[[FloatArray], FloatArray],
        more: tuple[_More, _More],
        bound: FloatArray | None,
        best: float,
    ) -> tuple[FloatArray, float]:
        """Look at some steps, and then where what lies between them could be larger than the largest seen.

        ``more`` says how much what is measured can grow between two steps because of the rows that enter, and going
        back because of those that leave.
        """
        steps = np.arange(side.end.size)
        seen = np.unique(np.linspace(0, steps.size - 1, min(_FEW_STEPS, steps.size)).round().astype(np.int64))
        found = self._measured(side, seen, values, measured)
        place = np.searchsorted(seen, steps, side="right") - 1
        following = np.minimum(place + 1, seen.size - 1)
        most = found[place] + more[0](seen[place], steps)
        behind = seen[following] > steps
        most[behind] = np.minimum(
            most[behind], found[following[behind]] + more[1](steps[behind], seen[following[behind]])
        )
        if bound is not None:
            most = np.minimum(most, bound)
        most[seen] = found
        best = max(best, float(found.max()))
        waiting = most > best
        waiting[seen] = False
        for some in _largest_first(most, waiting, self.at_once):
            those = some[most[some] > best]
            if those.size == 0:
                break
            most[those] = self._measured(side, those, values, measured)
            best = max(best, float(most[those].max()))
        return most, best

    def _measured(
        self, side: Side, steps: IntArray, values: FloatArray, measured: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        """Measure sums per forecast of the groups after given steps, some at a time."""
        if side.entered is None:
            side.entered = np.empty(self.size, dtype=np.int64)
            side.entered[side.order] = np.repeat(np.arange(side.end.size), side.end - side.begin)
        found = np.empty(steps.size)
        for begin in range(0, steps.size, self.at_once):
            some = steps[begin : begin + self.at_once]
            lines = self.leaves.summed(np.where(side.entered <= some[:, None], values, 0.0))
            found[begin : begin + some.size] = measured(lines)
        return found

    @property
    def at_once(self) -> int:
        """How many groups are looked at together by numpy."""
        return max(_AT_ONCE // self.size, 1)

    def _look_at_many(self) -> None:
        """Look at some steps with forecasts in stretches, and then at each that may be the worst of the feature."""
        stretch, inside = self.leaves.stretches
        reached = []
        for side in self.sides:
            coarse, seen = growing_bounds.run_compiled(
                self.entering(side, stretch),
                self.entering(side, self.gain),
                side.end,
                np.ones(side.end.size, dtype=np.bool_),
                _BINS,
                _EVERY,
                True,
            )
            side.most = coarse + (2.0 * inside + _ROUNDING * self.size)
            reached.append(seen)  # which is a range, too: that of some of the points
        best = max(reached)
        for side, _ in sorted(zip(self.sides, reached, strict=True), key=lambda pair: -pair[1]):
            wanted = side.most >= best - 2.0 * _ROUNDING * self.size  # those as good as the best are told apart later
            if not wanted.any():
                continue
            leaf, entering = self.entering(side, self.leaf), self.entering(side, self.gain)
            looked = growing_ranges.run_compiled(leaf, entering, side.end, wanted, self.leaves.starts.size)[wanted]
            side.most[wanted] = looked
            best = max(best, float(looked.max()))

    def entering(self, side: Side, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values in the order in which rows enter; what enters from above is the other way round."""
        if values is self.leaf and self.leaves.starts.size == self.size:  # no ties: the places of the rows themselves
            return side.order
        first = self.sides[0]
        held = self._held.get((id(values), side is first))
        if held is None:
            found = values[first.order] if side is first else self.entering(first, values)[::-1].copy()
            held = self._held[id(values), side is first] = (values, found)
        return held[1]

    def _largest_of(self, members: IntArray, scores: FloatArray) -> float:
        """Return the largest sum of scores over intervals of some rows, which are in order."""
        sums = np.add.reduceat(scores[members], group_starts(self.leaf[members]))
        return float(largest_sums(sums[None])[0])

    def _of_labels(self, side: Side, values: FloatArray) -> FloatArray:
        """Return the largest |sum| over intervals of the rows of each label."""
        running = _before(values[side.order])
        leaf = self.leaf[side.order]
        ends = np.append(np.flatnonzero(np.diff(leaf)) + 1, leaf.size)
        ends = np.union1d(ends, side.end)  # what is seen of the running total: no forecast is divided
        first = np.searchsorted(ends, side.begin, side="right")
        start = running[side.begin]
        high = np.maximum(np.maximum.reduceat(running[ends], first) - start, 0.0)
        low = np.minimum(np.minimum.reduceat(running[ends], first) - start, 0.0)
        found: FloatArray = high - low
        return found

    def worst(self) -> tuple[float, Cut]:
        """Return the largest |sum| over intervals of any group, and the first group that has it."""
        best = max(float(side.most.max()) for side in self.sides)
        reached = [side.most >= best - _ROUNDING * self.size for side in self.sides]
        side, steps = next(pair for pair in zip(self.sides, reached, strict=True) if pair[1].any())
        step = int(steps.argmax())
        if side.grows and step == side.end.size - 1:
            return best, Cut(ALL) if self.whole else Cut(KNOWN, self.place)
        return best, Cut(side.kind, self.place, int(side.places[step]))


def _sides(feature: Feature, positions: IntArray | None) -> Iterator[Side]:
    """Return the steps of a feature: up from its lowest value and down from its highest, or label by label."""
    order, starts, places = feature.order, feature.starts, feature.held
    if positions is not None:  # among the rows that have a value
        order = np.searchsorted(positions, order)
    end = np.append(starts[1:], order.size)
    if not feature.ordered:
        yield Side(order, end, IS, places, grows=False)
        return
    yield Side(order, end, AT_MOST, places)
    yield Side(order[::-1].copy(), (order.size - starts[::-1]).copy(), AT_LEAST, places[::-1].copy())


def _before(values: FloatArray) -> FloatArray:
    """Return sums of the first 0, 1, ... values."""
    found = np.zeros(values.size + 1)
    np.cumsum(values, out=found[1:])
    return found


def _range_of(lines: FloatArray) -> FloatArray:
    """Return the largest |sum| over neighbouring numbers of each line: the range of their running total from 0."""
    curves = np.cumsum(lines, axis=1)
    found: FloatArray = np.maximum(curves.max(axis=1), 0.0) - np.minimum(curves.min(axis=1), 0.0)
    return found


def _largest_first(bound: FloatArray, open_: BoolArray, together: int) -> Iterator[IntArray]:
    """Return the places that are open, those of the largest bounds first, so many at a time and rising each time."""
    places = np.flatnonzero(open_)
    places = places[np.argsort(-bound[places], kind="stable")]
    for begin in range(0, places.size, together):
        yield np.sort(places[begin : begin + together])


class Growths:
    """The largest growth of bets against every group and interval, at each of a few rates and in both signs.

    A bet at rate x on the sign s grows by -ln(1 - x s g) for a row of gain g, which is at most x s g + psi(x) g^2 with
    psi(x) = -ln(1 - x) - x; and at a faster rate y by at most y/x times that and (psi(y) - psi(x) y/x) g^2. Groups for
    which this cannot reach what others have reached are left out.
    """

    def __init__(self, scene: Scene, rates: Sequence[float]) -> None:
        self._rates = rates
        self._scores = [[-np.log1p(-rate * sign * scene.gain) for sign in (1.0, -1.0)] for rate in rates]
        self._leaves = scene.leaves
        self._one_at_a_time = threading.Lock()
        self.largest = np.zeros(len(rates))
        self.try_group(np.ones(scene.size, dtype=np.bool_))

    def try_group(self, members: BoolArray) -> None:
        """Look at one group of rows."""
        for k, pair in enumerate(self._scores):
            for scores in pair:
                sums = self._leaves.summed(np.where(members, scores, 0.0))
                self._reached(k, float(largest_sums(sums[None])[0]))

    def _reached(self, rate: int, growth: float) -> None:
        with self._one_at_a_time:  # features are looked at side by side
            self.largest[rate] = max(self.largest[rate], growth)

    def look(self, looked: Looked) -> None:
        """Look at all groups of a feature that could be larger than what has been seen."""
        for side in looked.sides:
            running = _before(np.square(looked.entering(side, looked.gain)))
            near = self._near(side, running, looked.size)
            spread = running[side.end[near]] - (0.0 if side.grows else running[side.begin[near]])
            bounds = [self._bound(rate, side.most[near], spread, looked.size) for rate in self._rates]
            for sign in (0, 1):
                # What is looked at for the slower rate is all that may matter for either.
                wanted = np.logical_or.reduce([bound > most for bound, most in zip(bounds, self.largest, strict=True)])
                among = np.flatnonzero(wanted)
                found = np.full(among.size, math.inf)
                slower = 1.0
                for k, rate in enumerate(self._rates):
                    more = (_psi(rate) - _psi(slower) * rate / slower) * spread[among] + _ROUNDING * looked.size
                    bound = np.minimum(rate / slower * found + more, bounds[k][among])
                    left = bound > self.largest[k] if k else np.ones(among.size, dtype=np.bool_)
                    among, bound = among[left], bound[left]
                    if among.size == 0:
                        break
                    scores = looked.of(self._scores[k][sign])
                    # -ln(1 - x g) is convex and 0 at 0: within x times as steep as at a gain of 1.
                    steepest = -math.log1p(-rate)
                    found, best = looked.largest(side, near[among], scores, steepest, bound, float(self.largest[k]))
                    self._reached(k, best)
                    slower = rate

    def _near(self, side: Side, running: FloatArray, size: int) -> IntArray:
        """Return the steps that may be larger than what has been seen, as far as some steps together tell."""
        steps = side.end.size
        if not side.grows or steps <= _TOGETHER:
            return np.arange(steps)
        first = np.arange(0, steps, _TOGETHER)
        last = np.append(first[1:], steps) - 1
        most, spread = np.maximum.reduceat(side.most, first), running[side.end[last]]  # which grows step by step
        bounds = [self._bound(rate, most, spread, size) for rate in self._rates]
        near = np.logical_or.reduce([bound > most for bound, most in zip(bounds, self.largest, strict=True)])
        return np.flatnonzero(np.repeat(near, last - first + 1))

    @staticmethod
    def _bound(rate: float, most: FloatArray, spread: FloatArray, size: int) -> FloatArray:
        """Return how much bets can grow where gains and their squares add up to so much."""
        return rate * most + (_psi(rate) * spread + _ROUNDING * size)


def _psi(rate: float) -> float:
    return -math.log1p(-rate) - rate if rate < 1.0 else 0.0
