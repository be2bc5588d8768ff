"""The best re-drawn line for rows in clusters: how much bets on whole clusters can have grown on any of them.

With T_c(g) the sum over cluster c of what moving a line from the threshold t to s gains, a bet grows by sum_c -ln(1 -
x T_c(g)), at most x sum T_c(g) + sum_c k_c T_c(g)^2. The sums are those of a search over rows that knows nothing of
clusters. The squares couple both ends; with events O_c and rows N_c they are (O_c - t N_c)^2, so that three matrices of
products of blocks of forecasts say them for all stretches of whole blocks and all thresholds. Parts of the two blocks
at the ends add at most their own lengths, by the triangle inequality (docs/theory/savings.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from calibrant.certificates.cluster_search import ClusterMap
from calibrant.core.types import FloatArray, IntArray
from calibrant.rows.savings import SAVING, Stretches, Thresholds, Walk, prefix_minima

_CLUSTERS_AT_ONCE = 2**14


class _Part(NamedTuple):
    """By end and start: what part of a block adds to squares at most.

    ``square`` is that of its own, ``with_whole`` its product with the whole blocks between, and ``lost`` that of what
    it can lose with the sizes of clusters.
    """

    square: FloatArray
    with_whole: FloatArray
    lost: FloatArray


class SavingMap:
    """Rows in clusters, cut into blocks of forecasts, and the lines of both kinds."""

    def __init__(self, rows: ClusterMap, thresholds: Thresholds) -> None:
        self.rows = rows
        table = rows.table
        entries = Stretches(table.low, table.high, np.multiply(table.weight, 1.0), table.outcome)
        self.kinds = (Kind(self, entries, thresholds, more=True), Kind(self, entries, thresholds, more=False))

    def parts(self) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Yield some clusters at a time, with the events and the rows of each block in each of them."""
        sums, count = self.rows.sums, self.rows.clusters
        for begin in range(0, count, _CLUSTERS_AT_ONCE):
            some = slice(begin, min(begin + _CLUSTERS_AT_ONCE, count))
            held = slice(*np.searchsorted(sums.cluster, [some.start, some.stop]))
            place = sums.block[held], sums.cluster[held] - begin
            outcome = np.zeros((self.rows.blocks, some.stop - begin))
            weight = np.zeros_like(outcome)
            outcome[place], weight[place] = sums.outcome[held], sums.weight[held]
            yield some, outcome, weight


class Kind:
    """Lines that all move the same way from a threshold, so that more rows are acted on or fewer.

    Blocks and entries are taken in the order in which a line passes them on its way back to the threshold.
    """

    def __init__(self, parent: SavingMap, entries: Stretches, thresholds: Thresholds, *, more: bool) -> None:
        rows = parent.rows
        self.parent, self.more = parent, more
        self.sign = 1.0 if more else -1.0
        self.entries = Walk(entries, thresholds, more=more)
        self.blocks = Walk(entries.blocks(rows.first), thresholds, more=more)
        self.most_gained = 1.0 - thresholds.low if more else thresholds.high  # by a row
        self.most_lost = thresholds.high if more else 1.0 - thresholds.low
        borders = np.append(rows.first, len(rows.table))
        self.borders = borders if more else len(rows.table) - borders[::-1]  # first entry of each block
        walk = self.blocks
        self.ends = walk.possible_ends()
        near, far = walk.ordered(walk.near), walk.ordered(walk.far)
        self.near, self.far = np.clip(near, *thresholds), far
        self.single = ~walk.ordered(walk.several)
        self.whole = ~walk.ordered(walk.inside)
        self.linear, self.is_exact = self._between_blocks()

    # --- Sums ---------------------------------------------------------------------------------------------------------

    def _between_blocks(self) -> tuple[FloatArray, FloatArray]:
        """Return bounds of sums over all clusters by end and start, from blocks alone, and which are exact: none."""
        most = self.blocks.most(SAVING)
        height, width = self.blocks.points
        value = height[:-1] - most.slope[:, None] * width[:-1]
        border, inside = value[:, ::2], value[:, 1::2]
        own = np.arange(border.shape[1]) == self.ends[:, None]
        lowest = np.where(own & ~self.whole[self.ends][:, None], border, np.minimum(border, inside))
        found: FloatArray = most.height[:, None] - lowest
        found[np.arange(border.shape[1]) > self.ends[:, None]] = -np.inf
        return found, np.zeros(found.shape, dtype=np.bool_)

    @cached_property
    def _fine(self) -> tuple[IntArray, FloatArray, FloatArray]:
        most = self.entries.most(SAVING)
        return self.entries.possible_ends(), most.slope, most.height

    def open(self, end: int, start: int) -> None:
        """Find the largest sum of stretches that begin in one block and end in another by their entries."""
        if self.is_exact[end, start]:
            return
        ends, slope, reached = self._fine
        block = int(self.ends[end])
        some = slice(*np.searchsorted(ends, self.borders[[block, block + 1]]))
        begin, stop = self.borders[[start, start + 1]]
        height, width = (column[2 * begin : 2 * stop] for column in self.entries.points)
        last = np.full(some.stop - some.start, height.size - 1)
        if start == block:
            inside = self.entries.ordered(self.entries.inside)[ends[some]]
            last = np.minimum(last, 2 * (ends[some] - begin) + ~inside)
        least, _ = prefix_minima(height, width, slope[some], last)
        exact = float((reached[some] - least).max(initial=-np.inf))
        self.linear[end, start] = min(exact, float(self.linear[end, start]))
        self.is_exact[end, start] = True

    # --- Reach --------------------------------------------------------------------------------------------------------

    @cached_property
    def order(self) -> IntArray:
        """The blocks in the order in which they are passed."""
        count = self.parent.rows.blocks
        return np.arange(count) if self.more else np.arange(count)[::-1]

    @property
    def _passed(self) -> int:
        """How many blocks may have rows in a stretch, counted in this order."""
        return int(self.ends[-1]) + 1 if self.ends.size else 0

    @cached_property
    def reach(self) -> FloatArray:
        """How large T_c(g) can be, for each cluster: no row gains more than at the threshold next to its block."""
        found = np.zeros(self.parent.rows.clusters)
        for some, outcome, weight in self.parent.parts():
            best, begun = found[some], np.zeros(outcome.shape[1])  # begun: the most that ends with the block before
            for block, threshold in zip(self.order[: self._passed], self.far, strict=False):
                rows, price = weight[block], threshold if self.more else 1.0 - threshold
                right = outcome[block] if self.more else rows - outcome[block]
                part = (1.0 - price) * right
                np.maximum(best, begun + part, out=best)
                begun = np.maximum(np.maximum(begun + (right - price * rows), part), 0.0)
        return found

    def _per_cluster(self, values: FloatArray) -> FloatArray:
        """Add up values of the entries of clusters and blocks over the blocks that may be passed."""
        sums = self.parent.rows.sums
        passed = np.zeros(self.order.size)
        passed[self.order[: self._passed]] = 1.0
        return sums.per_cluster(values * passed[sums.block])

    @cached_property
    def fall(self) -> FloatArray:
        """How large -T_c(g) can be, for each cluster."""
        sums = self.parent.rows.sums
        wrong = np.maximum(sums.weight - sums.outcome, 0.0) if self.more else sums.outcome
        return self.most_lost * self._per_cluster(wrong)

    def most_given(self) -> float:
        """Return how large T_c(g) can be in any cluster, given its forecasts."""
        sums = self.parent.rows.sums
        gain = np.empty(self.order.size)
        gain[self.order] = 1.0 - self.far if self.more else self.far
        return float(self._per_cluster(sums.weight * gain[sums.block]).max())


class Judging:
    """Weights k_c of squares of clusters, by which lines of one kind are judged, beside sums."""

    def __init__(self, kind: Kind, weight: FloatArray, size: FloatArray) -> None:
        self.kind = kind
        sums = kind.parent.rows.sums
        other = np.maximum(sums.weight - sums.outcome, 0.0)
        events, others, everybody = (self._products(each, weight) for each in (sums.outcome, other, sums.weight))
        mixed = events + (everybody - events - others) / 2.0
        self._runs = tuple(_between_borders(each) for each in (events, mixed, everybody))
        self._alike = events, others
        each = (weight * size)[sums.cluster]
        self._sized = np.stack([self._before(each * sums.outcome), self._before(each * sums.weight)])
        self._own = float(weight @ size**2)

    def _products(self, values: FloatArray, weight: FloatArray) -> FloatArray:
        """Return, for every two blocks, the sum over clusters of weight times the product of their values."""
        return replace(self.kind.parent.rows.by_block, residual=values).products(weight)

    def _before(self, values: FloatArray) -> FloatArray:
        """Return sums of values over all blocks before each."""
        rows = self.kind.parent.rows
        return np.append(0.0, np.cumsum(np.bincount(rows.sums.block, weights=values, minlength=rows.blocks)))

    @cached_property
    def _middle(self) -> tuple[IntArray, IntArray]:
        """Return the borders between which whole blocks lie, by end and start."""
        kind = self.kind
        place = np.arange(kind.single.size)
        first = np.broadcast_to(place + ~kind.single, (kind.ends.size, place.size))
        last = np.maximum((place + kind.whole)[kind.ends][:, None], first)
        return (first, last) if kind.more else (place.size - last, place.size - first)

    @cached_property
    def _thresholds(self) -> FloatArray:
        """The lowest and the highest threshold of each end."""
        kind = self.kind
        ends = np.stack([kind.near[kind.ends], kind.far[kind.ends]])
        return np.sort(ends, axis=0)[:, :, None]

    @cached_property
    def _whole_blocks(self) -> list[tuple[FloatArray, FloatArray]]:
        """By either of these thresholds: squares of whole blocks, and their products with sizes."""
        first, last = self._middle
        events, mixed, rows = (each[first, last] for each in self._runs)
        with_events, with_rows = self._sized[:, last] - self._sized[:, first]
        return [
            (events - 2.0 * each * mixed + each**2 * rows, self.kind.sign * (with_events - each * with_rows))
            for each in self._thresholds
        ]

    @cached_property
    def _parts(self) -> tuple[_Part, _Part]:
        """What part of the block at the start and at the end can be."""
        kind = self.kind
        place = np.arange(kind.single.size)
        same = place == kind.ends[:, None]
        start = np.broadcast_to(kind.order, same.shape)
        end = np.broadcast_to(kind.order[kind.ends][:, None], same.shape)
        inside = ~kind.whole[kind.ends][:, None]
        return self._part(start, ~kind.single & ~(same & inside)), self._part(end, np.broadcast_to(inside, same.shape))

    def _part(self, block: IntArray, there: FloatArray) -> _Part:
        """Return how part of a block counts: its square, and its products with whole blocks and with sizes.

        A cluster's sum over part of a block is at most what its events gain, and at least what other rows lose: two
        sums of the same sign have a product of at most that of both gains plus that of both losses.
        """
        first, last = self._middle
        low, high = self._thresholds
        gain, loss = ((1.0 - low) ** 2, high**2) if self.kind.more else (high**2, (1.0 - low) ** 2)
        right, wrong = self._alike if self.kind.more else self._alike[::-1]
        square = gain * np.diagonal(right)[block] + loss * np.diagonal(wrong)[block]
        runs = [np.pad(each.cumsum(axis=1), ((0, 0), (1, 0))) for each in (right, wrong)]
        with_right, with_wrong = (each[block, last] - each[block, first] for each in runs)
        events, rows = np.diff(self._sized, axis=1)
        lost = np.sqrt(loss) * np.maximum(rows - events if self.kind.more else events, 0.0)[block]
        zero = np.zeros(1)
        return _Part(*(np.where(there, each, zero) for each in (square, gain * with_right + loss * with_wrong, lost)))

    @cached_property
    def _both(self) -> FloatArray:
        """Twice the product of the parts at the start and at the end, at most."""
        kind, (start, end) = self.kind, self._parts
        low, high = self._thresholds
        pairs = kind.order, kind.order[kind.ends][:, None]
        events, others = (each[pairs] for each in self._alike)
        alike = (1.0 - low) ** 2 * events + high**2 * others
        found: FloatArray = 2.0 * np.minimum(alike, np.sqrt(start.square * end.square))
        return found

    def _squares(self, error: float) -> FloatArray:
        """Return bounds of sum k_c (T_c(g) - error m_c)^2, by end and start."""
        middle = np.maximum(*(square - 2.0 * error * sized for square, sized in self._whole_blocks))
        middle = np.maximum(middle + error**2 * self._own, 0.0)
        found = middle + self._both
        for part in self._parts:
            crossed = np.minimum(np.sqrt(middle * part.square), part.with_whole + error * part.lost)
            found += part.square + 2.0 * crossed
        return found

    def largest(self, rate: float, error: float = 0.0, share: float = 1.0) -> float:
        """Return a bound of the most of rate sum T_c(g) + share sum k_c (T_c(g) - error m_c)^2 over lines.

        It is above the most by what parts of the blocks at both ends can add to squares.
        """
        kind = self.kind
        best = share * error**2 * self._own  # of a line that stays where it is
        if kind.ends.size == 0:
            return best
        added = share * self._squares(error)
        bound = rate * kind.linear + added
        order = np.argsort(-bound, axis=None, kind="stable")
        for pair in order[bound.ravel()[order] > best].tolist():
            if bound.flat[pair] <= best:
                break
            end, start = divmod(pair, bound.shape[1])
            kind.open(end, start)
            best = max(best, rate * float(kind.linear[end, start]) + float(added[end, start]))
        return best


def _between_borders(product: FloatArray) -> FloatArray:
    """Return the products of sums over all runs of blocks with themselves, from those of single blocks."""
    both = np.zeros((product.shape[0] + 1, product.shape[1] + 1))
    both[1:, 1:] = product.cumsum(axis=0).cumsum(axis=1)
    corner = np.diagonal(both)
    found: FloatArray = corner[:, None] + corner[None, :] - both - both.T
    return found
