"""How often calibrated outcomes, drawn anew given the forecasts, would be at least as far off as those observed.

Only the numbers of events in blocks of neighbouring rows are drawn at first, which fixes the residual curve at the ends
of blocks. In between it cannot go far, so that most resamples are decided by then. For the others, rows are drawn in
the blocks that may still matter, given their numbers of events. That is the law of drawing every row, at a small part
of the work (docs/theory/random-halves.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from calibrant.core.progress import track
from calibrant.core.types import FloatArray, IntArray

_OF_ROOT, _MOST_ROWS = 0.25, 32
"""Rows of a block, as a part of the square root of their number, as which the range grows; and at most so many.

More would leave more undecided, fewer would take longer to draw. Where forecasts repeat, which stay together, a block
may have up to twice as many."""

_BUCKETS = 2**12
"""Equal parts of [0, 1): in all but a few of them every number stands for the same number of events."""

_UNSURE = 255  # of a bucket in which two numbers of events meet

_BELOW_ONE = float(np.nextafter(1.0, 0.0))

_DRAWN_AT_ONCE = 2**26  # bytes: numbers of events of all blocks
_LEVELS_AT_ONCE = 2**16  # points of residual curves
_BLOCKS_AT_ONCE = 2**11  # inside which rows are drawn together

Numbers = npt.NDArray[np.integer]


def count_reaching(
    rows: IntArray,
    forecast: FloatArray,
    expected: FloatArray,
    least: float,
    resamples: int,
    generator: np.random.Generator,
    shown: bool | None,
) -> int:
    """Draw calibrated outcomes so many times and count how often the range of the residual curve is at least so large.

    Distinct forecast k has ``rows[k]`` rows; ``expected[k]`` is the sum of the forecasts of all rows up to and with it.
    The curve starts at 0 and is looked at where a forecast ends.
    """
    blocks = _Blocks(rows, forecast, expected)
    size = max(1, _DRAWN_AT_ONCE // (blocks.count * blocks.kind.itemsize))
    parts = [min(size, resamples - start) for start in range(0, resamples, size)]
    counts = map(partial(blocks.count_reaching, least, generator), parts)
    return sum(track(counts, total=len(parts), label="resampling", shown=shown))


class _Blocks:
    """Neighbouring distinct forecasts in blocks of few rows; one of many rows is a block of its own."""

    def __init__(self, rows: IntArray, forecast: FloatArray, expected: FloatArray) -> None:
        self.rows, self.forecast = rows, forecast
        passed = np.cumsum(rows)
        most = int(np.clip(_OF_ROOT * np.sqrt(passed[-1]), 1.0, _MOST_ROWS))
        label = (passed - rows) // most
        alone = rows > most
        begins = np.append(True, (label[1:] != label[:-1]) | alone[1:] | alone[:-1])
        self.starts = np.flatnonzero(begins)
        self.count = self.starts.size
        self.ends = np.append(self.starts[1:], rows.size) - 1
        self.sizes = np.add.reduceat(rows, self.starts)
        self.alone = alone[self.starts]
        self.expected = expected[self.ends]
        self.expected_before = np.append(0.0, self.expected[:-1])
        block = np.cumsum(begins) - 1
        self.above, self.below = self._excesses(block, passed, expected)
        self._spread_rows(block, rows, forecast, expected)
        (law,) = deque(_sums(self.chance), maxlen=1)
        self.law = np.cumsum(law, axis=1)
        self.law /= self.law[:, -1:]
        edges = np.floor(_BUCKETS * self.law).astype(np.int64)
        self.buckets = np.diff(edges, axis=1, prepend=0)
        self.shared = np.minimum(edges, _BUCKETS - 1)  # and some that are not, which costs little
        self.numbers = np.arange(edges.shape[1], dtype=np.uint8)
        self.kind: np.dtype[np.generic] = np.dtype(np.int64 if self.alone.any() else np.uint8)

    def _excesses(self, block: IntArray, passed: IntArray, expected: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return how far the curve may reach above and below its values at the ends of each block.

        Up to some place in a block with P expected events, let n rows with p expected events have passed. If X of its T
        events have, the curve is X - p above where the block starts, where it ends T - P above. X is at most n and at
        most T, so that X - p is above the higher of both ends by at most n - p, and by at most P - p. Below the lower
        end it is the same with rows that are no events.
        """
        first = self.starts[block]
        before = np.append(0, passed)[first]
        expected_before = np.append(0.0, expected)[first]
        inside = np.arange(block.size) < self.ends[block]
        here, all_here = passed - before, self.sizes[block]
        due, all_due = expected - expected_before, self.expected[block] - expected_before
        above = np.minimum(here - due, all_due - due)
        below = np.minimum(due, (all_here - here) - (all_due - due))
        margin = 1e-9 * (1.0 + all_due)  # for rounding
        above, below = (
            np.maximum.reduceat(np.where(inside, each + margin, 0.0), self.starts) for each in (above, below)
        )
        return above, below

    def _spread_rows(self, block: IntArray, rows: IntArray, forecast: FloatArray, expected: FloatArray) -> None:
        """Lay out the rows of blocks that are drawn row by row: chances, and what is expected where a forecast ends."""
        few = ~self.alone[block]
        self.place = np.cumsum(~self.alone) - 1  # of a block among them
        width = int(self.sizes[~self.alone].max(initial=0))
        shape = int(np.count_nonzero(~self.alone)), width
        where = np.repeat(self.place[block[few]], rows[few])
        starts = np.cumsum(self.sizes[~self.alone]) - self.sizes[~self.alone]
        step = np.arange(where.size) - starts[where]
        self.chance = np.zeros(shape)  # rows that are not there never happen
        self.chance[where, step] = np.repeat(forecast[few], rows[few])
        last = np.cumsum(rows[few]) - 1
        self.ending = np.zeros(shape, dtype=bool)
        self.ending[where[last], step[last]] = True
        self.due = np.zeros(shape)
        self.due[where[last], step[last]] = expected[few]

    def count_reaching(self, least: float, generator: np.random.Generator, resamples: int) -> int:
        """Draw so many resamples; return how many have a range that is at least so large."""
        drawn = np.empty((self.count, resamples), dtype=self.kind)
        events, highest, lowest = np.zeros((3, resamples))
        for block in range(self.count):
            drawn[block] = self._draw_events(block, generator, resamples)
            events += drawn[block]
            level = events - self.expected[block]
            np.maximum(highest, level, out=highest)
            np.minimum(lowest, level, out=lowest)
        reach = highest - lowest
        possible = reach + (self.above.max() + self.below.max()) >= least
        undecided = np.flatnonzero((reach < least) & possible)
        drawn, highest, lowest = drawn[:, undecided], highest[undecided], lowest[undecided]
        size = max(1, _LEVELS_AT_ONCE // self.count)
        held = [
            self._may_hold_extreme(drawn, highest, lowest, slice(start, start + size))
            for start in range(0, undecided.size, size)
        ]
        if held:
            self._look_inside(np.concatenate(held, axis=1), highest, lowest, generator)
        return int(np.count_nonzero(reach >= least) + np.count_nonzero(highest - lowest >= least))

    def _draw_events(self, block: int, generator: np.random.Generator, resamples: int) -> Numbers:
        """Draw how many events there are in a block."""
        if self.alone[block]:
            first = self.starts[block]
            return generator.binomial(self.rows[first], self.forecast[first], size=resamples)
        place = self.place[block]
        law = self.law[place]
        guide = np.repeat(self.numbers, self.buckets[place])
        guide[self.shared[place]] = _UNSURE
        bits = generator.integers(0, 2**64, size=-(-resamples // 4), dtype=np.uint64)
        bucket = bits.astype("<u8", copy=False).view("<u2")[:resamples] % _BUCKETS
        events = guide.take(bucket)
        unsure = np.flatnonzero(events == _UNSURE)
        number = (bucket[unsure] + generator.random(unsure.size)) / _BUCKETS
        events[unsure] = law.searchsorted(np.minimum(number, _BELOW_ONE), side="right")
        return events

    def _may_hold_extreme(self, drawn: Numbers, highest: FloatArray, lowest: FloatArray, some: slice) -> IntArray:
        """Return which blocks of some resamples may: block, resample, events before it and in it, a column for each."""
        within = drawn[:, some]
        passed = np.cumsum(within, axis=0, dtype=np.int64)
        level = np.vstack([np.zeros((1, within.shape[1])), passed - self.expected[:, None]])
        higher, lower = np.maximum(level[:-1], level[1:]), np.minimum(level[:-1], level[1:])
        block, column = np.nonzero(
            (higher > highest[some] - self.above[:, None]) | (lower < lowest[some] + self.below[:, None])
        )
        events = within[block, column].astype(np.int64)
        return np.stack([block, some.start + column, passed[block, column] - events, events])

    def _look_inside(
        self, held: IntArray, highest: FloatArray, lowest: FloatArray, generator: np.random.Generator
    ) -> None:
        """Draw rows inside blocks of resamples, and move extremes to what the curve reaches there if it is farther."""
        held = held[:, np.argsort(held[0], kind="stable")]
        cuts = np.flatnonzero(np.diff(held[0] // _BLOCKS_AT_ONCE)) + 1
        for block, resample, before, events in np.split(held, cuts, axis=1):
            upper, lower = self._draw_inside(self.place[block], before, events, generator)
            np.maximum.at(highest, resample, upper)
            np.minimum.at(lowest, resample, lower)

    def _draw_inside(
        self, place: IntArray, before: IntArray, remaining: IntArray, generator: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Draw rows one by one, given how many events are still to come; return the extremes where forecasts end."""
        asked, which = np.unique(place, return_inverse=True)
        laws = list(_sums(self.chance[asked]))[::-1]
        events, remaining = before.astype(np.float64), remaining.copy()
        upper, lower = np.full(place.size, -np.inf), np.full(place.size, np.inf)
        for step in range(self.chance.shape[1]):
            chance, later = self.chance[asked, step][which], laws[step + 1]
            happens = np.where(remaining > 0, chance * later[which, remaining - 1], 0.0)
            otherwise = (1.0 - chance) * later[which, remaining]
            event = generator.random(place.size) * (happens + otherwise) < happens
            remaining -= event
            events += event
            level, ends = events - self.due[asked, step][which], self.ending[asked, step][which]
            np.maximum(upper, level, out=upper, where=ends)
            np.minimum(lower, level, out=lower, where=ends)
        return upper, lower


def _sums(chance: FloatArray) -> Iterator[FloatArray]:
    """Return the laws of the number of events after each row of blocks, the last one first; at last, of all rows."""
    blocks, width = chance.shape
    law = np.zeros((blocks, width + 1))
    law[:, 0] = 1.0
    yield law
    for step in range(width - 1, -1, -1):
        happens = chance[:, step : step + 1]
        longer = (1.0 - happens) * law
        longer[:, 1:] += happens * law[:, :-1]
        law = longer
        yield law
