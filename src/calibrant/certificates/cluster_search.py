"""The worst interval for rows in clusters: how much bets on whole clusters can have grown on any interval.

With T_c(I) the sum of residuals of cluster c on the interval I, a bet on clusters grows by sum_c -ln(1 - x s T_c(I)),
which is at most the sum over rows of scores plus sum_c k_c T_c(I)^2. The squares are no sums over rows: they couple
the two ends of an interval. Forecasts are cut into blocks; a matrix of products of blocks gives the squares of every
interval of whole blocks; for the pairs of blocks in which the two ends of the best interval may lie, rows are opened
and both ends are found exactly, up to a product of what is inside the two blocks, which is bounded. The
proofs are in docs/theory/clusters.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from calibrant.core.kernels import block_crossings, block_products
from calibrant.core.types import BoolArray, FloatArray, IntArray
from calibrant.rows.clusters import ClusteredSource, ClusterSums
from calibrant.rows.grids import FIRST_GRID
from calibrant.rows.runs import group_starts, stable_order
from calibrant.rows.sources import FETCH_LIMIT
from calibrant.rows.tally import Totals

MOST_BLOCKS = 256
FEW_BLOCKS = 128
_MANY_CLUSTERS = 2**14
_MOST_PAIRS = 2**24
"""Clusters times blocks: at most so many numbers of 8 bytes are held a few times over."""

_DENSE = 2**20  # sums by block and cluster of which a full matrix is the quickest form
_FEW = 2**11  # clusters, most of which may have no rows in a block without a loss of time
_AT_ONCE = 32  # pairs of blocks that are opened together


def _fixed_borders() -> FloatArray:
    tails = 2.0 ** -np.arange(5.0, 16.0)
    return np.unique(np.concatenate([[0.0], np.arange(1, 16) / 16.0, tails, 1.0 - tails]))


FIXED_BORDERS = _fixed_borders()
"""Where the intervals of lower limits begin and end: fixed beforehand, finer towards 0 and 1."""


def interval_shares(begin: IntArray, end: IntArray, last: int) -> FloatArray:
    """Return the share of each interval between borders 0 to last: each end is the outermost one in half of them."""
    inner = last - 1
    from_first, to_last = begin == 0, end == last
    inside = np.where(from_first | to_last, 1.0 / inner, 2.0 / (inner * (inner - 1)))
    share: FloatArray = np.where(from_first & to_last, 1.0, inside) / 4.0
    return share


def block_count(clusters: int) -> int:
    """Return into how many blocks forecasts are cut: the more clusters, the fewer, so that memory is bounded."""
    most = MOST_BLOCKS if clusters <= _MANY_CLUSTERS else FEW_BLOCKS
    return max(16, min(most, _MOST_PAIRS // clusters))


def cut_into_blocks(table: Totals, count: int) -> IntArray:
    """Return the first entry of each block: runs of entries with about equal numbers of rows, heavy entries alone.

    Blocks also end where an interval of `FIXED_BORDERS` does, so that these are made of whole blocks.
    """
    if len(table) <= 2 * count:
        return np.arange(len(table))
    end = np.cumsum(table.rows)
    share = table.row_total / count
    place = ((end - table.rows) / share).astype(np.int64)
    begins = np.append(True, np.diff(place) > 0)
    heavy = table.rows >= share
    begins |= heavy
    begins[1:] |= heavy[:-1]
    fixed = np.searchsorted(table.low, FIXED_BORDERS)
    begins[fixed[fixed < len(table)]] = True
    return np.flatnonzero(begins)


@dataclass(frozen=True, eq=False)
class _OpenBlock:
    """The rows of a block in order of their forecasts.

    ``starts`` are the places of the first row of each distinct forecast, ``code`` and ``residual`` those of each row;
    ``before`` is the sum of residuals of the row's cluster among the rows of the block before it.
    """

    code: IntArray
    residual: FloatArray
    starts: IntArray
    before: FloatArray

    @classmethod
    def of(cls, forecast: FloatArray, residual: FloatArray, code: IntArray) -> _OpenBlock:
        order = np.argsort(forecast)
        forecast, residual, code = forecast[order], residual[order], code[order]
        together = stable_order(code)
        firsts = group_starts(code[together])
        running = np.cumsum(residual[together]) - residual[together]
        running -= np.repeat(running[firsts], np.diff(np.append(firsts, code.size)))
        before = np.empty_like(running)
        before[together] = running
        return cls(code, residual, group_starts(forecast), before)

    def prefixes(self, values: FloatArray) -> FloatArray:
        """Return sums of values over the rows up to the end of each distinct forecast, that of no row first."""
        return np.concatenate([[0.0], np.cumsum(np.add.reduceat(values, self.starts))])


@dataclass(frozen=True, eq=False)
class BlockSums:
    """Sums of residuals by cluster and block, for what becomes of their products.

    Attributes
    ----------
    residual : array
        The sum of each entry; entries come cluster by cluster, with rising numbers of blocks, one for each at most.
    cluster, block : array of int
        Where each entry belongs.
    clusters, blocks : int
        How many there are.
    """

    residual: FloatArray
    cluster: IntArray
    block: IntArray
    clusters: int
    blocks: int

    @property
    def is_small(self) -> bool:
        """Whether sums by block and cluster fit into a matrix whose products take no time."""
        return self.clusters * self.blocks <= _DENSE

    @cached_property
    def dense(self) -> FloatArray:
        """The sums as a matrix."""
        return self.as_matrix(self.residual)

    def as_matrix(self, column: FloatArray) -> FloatArray:
        """Return a number for each entry as a line for each block, with 0 for clusters that have no rows there."""
        found = np.zeros((self.blocks, self.clusters))
        found[self.block, self.cluster] = column
        return found

    def products(self, weight: FloatArray) -> FloatArray:
        """Return, for every two blocks, the sum over clusters of weight times the product of their sums."""
        if self.is_small:
            return (self.dense * weight) @ self.dense.T
        return block_products(self.residual, weight, self.cluster, self.block, self.blocks)

    def squares(self, weight: FloatArray) -> FloatArray:
        """Return, for every two borders, the sum over clusters of weight times the square of their sum in between."""
        both = np.zeros((self.blocks + 1, self.blocks + 1))
        both[1:, 1:] = self.products(weight).cumsum(axis=0).cumsum(axis=1)
        corner = np.diagonal(both)
        found: FloatArray = np.maximum(corner[:, None] + corner[None, :] - 2.0 * both, 0.0)
        return found

    def totals(self, coefficient: FloatArray | None = None) -> FloatArray:
        """Return the sum of residuals in each block, each cluster times a coefficient of its own."""
        values = self.residual if coefficient is None else self.residual * coefficient[self.cluster]
        return np.bincount(self.block, weights=values, minlength=self.blocks).astype(np.float64, copy=False)

    def joined(self, firsts: IntArray) -> BlockSums:
        """Return sums of blocks that are joined, in runs that begin with these blocks, the first with block 0.

        A run that begins where the next one does holds nothing.
        """
        block = np.searchsorted(firsts, np.arange(self.blocks), side="right")[self.block] - 1
        starts = group_starts(self.cluster * firsts.size + block)
        residual = np.add.reduceat(self.residual, starts)
        return BlockSums(residual, self.cluster[starts], block[starts], self.clusters, firsts.size)


class ClusterMap:
    """Rows in clusters, cut into blocks of forecasts: what is known before any score.

    Attributes
    ----------
    sums : ClusterSums
        Totals by cluster and block.
    cluster, residual, above, below : array
        The same block by block.
    size : array
        The sum of weights of each cluster.
    borders : array
        The lowest forecast of each block; that of the first is 0.
    """

    def __init__(self, source: ClusteredSource, table: Totals) -> None:
        self.source = source
        self.table = table
        self.first = cut_into_blocks(table, block_count(source.cluster_count))
        self.borders = table.low[self.first].copy()
        if (table.low < table.high).any():  # cells: their borders are where forecasts are told apart most quickly
            rounded = np.floor(self.borders * FIRST_GRID.scale) / FIRST_GRID.scale
            before = np.append(-1.0, table.high[self.first[1:] - 1])  # rows of a finer entry stay in its own block
            self.borders = np.where(rounded > before, rounded, self.borders)
        self.borders[0] = 0.0
        self.sums: ClusterSums = source.cluster_sums(self.borders)
        self.clusters = self.sums.clusters
        self.blocks = self.first.size
        self.size = self.sums.per_cluster(self.sums.weight)
        self.total = float(self.size.sum())
        order = stable_order(self.sums.block)
        self.cluster, self.residual = self.sums.cluster[order], self.sums.residual[order]
        self.above, self.below = self.sums.above[order], self.sums.below[order]
        self.ends = np.concatenate([[0], np.cumsum(np.bincount(self.sums.block, minlength=self.blocks))])
        self.by_block = BlockSums(self.sums.residual, self.sums.cluster, self.sums.block, self.clusters, self.blocks)
        self._opened: dict[int, _OpenBlock] = {}
        self._prefix: dict[int, FloatArray] = {}
        self._reach: dict[float, FloatArray] = {}

    def entries(self, block: int) -> slice:
        """Return where the totals of a block are, in ``cluster`` and the others."""
        return slice(int(self.ends[block]), int(self.ends[block + 1]))

    def prefix(self, block: int) -> FloatArray:
        """Return the sum of residuals of each cluster in the blocks before one."""
        if block not in self._prefix:
            near = max(block - 1, 0)
            while near > 0 and near not in self._prefix:
                near -= 1
            some = slice(int(self.ends[near]), int(self.ends[block]))
            added: FloatArray = np.bincount(
                self.cluster[some], weights=self.residual[some], minlength=self.clusters
            ).astype(np.float64, copy=False)
            self._prefix[block] = added if near == 0 else self._prefix[near] + added
        return self._prefix[block]

    def inside(self, block: int) -> FloatArray:
        """Return the sum of residuals of each cluster in a block."""
        some = self.entries(block)
        found = np.zeros(self.clusters)
        found[self.cluster[some]] = self.residual[some]
        return found

    def crossings(self, weight: FloatArray) -> FloatArray | None:
        """Return how much blocks can have in common with what lies after, before and with single later ones.

        None where clusters are few: nearly all of them have rows in every block then, and norms say as much.
        """
        if self.by_block.is_small:
            return None
        sums = self.sums
        found = block_crossings(sums.residual, self.most_inside, weight, sums.cluster, sums.block, self.blocks)
        after, before = found[0].cumsum(axis=1), found[1][:, ::-1].cumsum(axis=1)[:, ::-1]
        return np.stack([after, before.T, found[2]])

    @cached_property
    def cluster_total(self) -> FloatArray:
        """The sum of residuals of each cluster."""
        return self.sums.per_cluster(self.sums.residual)

    @cached_property
    def most_inside(self) -> FloatArray:
        """By entry of ``sums``: how far from 0 a sum of residuals over some forecasts of the block can be."""
        return np.maximum(self.sums.above, self.sums.below)

    def reach(self, sign: float) -> FloatArray:
        """Return how large sign times T_c(I) can be, for each cluster, on any interval."""
        if sign in self._reach:
            return self._reach[sign]
        best = np.zeros(self.clusters)
        so_far = np.zeros(self.clusters)  # the most that ends with the block before
        if self.by_block.is_small and self.clusters <= _FEW:
            most = self.by_block.as_matrix(self.sums.above if sign > 0.0 else self.sums.below)
            for inside, whole in zip(most, sign * self.by_block.dense, strict=True):
                np.maximum(best, so_far + inside, out=best)
                so_far = np.maximum(so_far + whole, inside)
            self._reach[sign] = best
            return best
        add = self.above if sign > 0.0 else self.below
        for block in range(self.blocks):
            some = self.entries(block)
            cluster, inside = self.cluster[some], add[some]
            before = so_far[cluster]
            best[cluster] = np.maximum(best[cluster], before + inside)
            so_far[cluster] = np.maximum(before + sign * self.residual[some], inside)
        self._reach[sign] = best
        return best

    @cached_property
    def is_single(self) -> BoolArray:
        """Which blocks hold one distinct forecast, so that no interval begins or ends inside."""
        last = np.append(self.first[1:], len(self.table)) - 1
        found: BoolArray = (last == self.first) & (self.table.low[self.first] == self.table.high[last])
        return found

    @cached_property
    def may_open(self) -> BoolArray:
        """Which blocks hold few enough rows to look at them one by one, whatever the source."""
        rows = np.add.reduceat(self.table.rows, self.first)
        return ~self.is_single & (rows <= FETCH_LIMIT)

    def open(self, blocks: IntArray) -> None:
        """Fetch the rows of blocks that were not opened before, in one go where that is not too many."""
        missing = [int(k) for k in blocks if int(k) not in self._opened and self.may_open[k]]
        rows = np.add.reduceat(self.table.rows, self.first)
        while missing:
            within = max(int(np.searchsorted(np.cumsum(rows[missing]), FETCH_LIMIT, side="right")), 1)
            some, missing = missing[:within], missing[within:]
            self._fetch(np.array(sorted(some)))

    def _fetch(self, blocks: IntArray) -> None:
        last = np.append(self.first[1:], len(self.table))[blocks] - 1
        low, high = self.table.low[self.first[blocks]], self.table.high[last]
        found, codes = self.source.fetch_clusters(low, high)
        residual = found.y_true - found.y_prob
        if found.sample_weight is not None:
            residual = residual * found.sample_weight
        place = np.searchsorted(low, found.y_prob, side="right") - 1
        order = stable_order(place)
        ends = np.searchsorted(place[order], np.arange(blocks.size + 1))
        for k, begin, end in zip(blocks.tolist(), ends, ends[1:], strict=False):
            rows = order[begin:end]
            self._opened[k] = _OpenBlock.of(found.y_prob[rows], residual[rows], codes[rows])

    def opened(self, block: int) -> _OpenBlock | None:
        """Return the rows of a block, if they were fetched."""
        return self._opened.get(block)

    @cached_property
    def entry_prefix(self) -> FloatArray:
        """Sums of residuals of all rows up to each entry of the table, that of none first."""
        return np.concatenate([[0.0], np.cumsum(self.table.residual)])

    @cached_property
    def ways(self) -> tuple[FloatArray, FloatArray]:
        """By block: the least and the most of those sums, from its begin to its end."""
        curve, begin = self.entry_prefix, self.first
        ends = curve[np.append(begin[1:], len(self.table))]
        least = np.minimum(np.minimum.reduceat(curve[:-1], begin), ends)
        return least, np.maximum(np.maximum.reduceat(curve[:-1], begin), ends)

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """Every two blocks, the second of which is not before the first."""
        first, last = np.triu_indices(self.blocks)
        return first, last

    @cached_property
    def forwards(self) -> BoolArray:
        """Which borders of blocks, by column, are not before others, by line."""
        return np.triu(np.ones((self.blocks + 1, self.blocks + 1), dtype=np.bool_))

    @cached_property
    def slack(self) -> FloatArray:
        """By block: the most that rows of part of one entry add to a sum, for both signs; 0 for single forecasts."""
        table = self.table
        part = np.where(table.low < table.high, np.sqrt(table.rows * table.weight_square_residual_square), 0.0)
        most: FloatArray = np.maximum.reduceat(part, self.first)
        return most


class Weighing:
    """Weights of squares of clusters, by which intervals are judged: the sum of k_c T_c(I)^2."""

    def __init__(self, rows: ClusterMap, weight: FloatArray) -> None:
        self.rows = rows
        self.weight = weight
        self.squares: FloatArray = rows.by_block.squares(weight)
        sums = rows.sums
        inside = np.bincount(sums.block, weights=weight[sums.cluster] * rows.most_inside**2, minlength=rows.blocks)
        self.radius: FloatArray = np.where(rows.is_single, 0.0, np.sqrt(inside))
        self._crossings = rows.crossings(weight)
        self._norms: dict[int, tuple[FloatArray, FloatArray]] = {}

    @cached_property
    def most_of_pairs(self) -> FloatArray:
        """Bounds of the squares on intervals that begin in the first of `ClusterMap.pairs` and end in the second."""
        whole = np.sqrt(np.diagonal(self.squares, 1))
        radius = np.maximum(self.radius, np.where(self.rows.is_single, whole, 0.0))
        first, last = self.rows.pairs
        apart = first < last
        found = radius[first] ** 2
        found[apart] = self.most_squares(first[apart], last[apart], radius)
        return found

    def most_squares(self, first: IntArray, last: IntArray, radius: FloatArray) -> FloatArray:
        """Return bounds of the squares on intervals that begin in one block and end in a later one.

        ``radius`` is the most that the norm of part of each block can be.
        """
        inner = self.squares[first + 1, last]
        found: FloatArray = (np.sqrt(inner) + radius[first] + radius[last]) ** 2
        if self._crossings is None:
            return found
        after, before, both = self._crossings
        crossed = after[first, last - 1] + before[first + 1, last] + both[first, last]
        np.minimum(found, inner + radius[first] ** 2 + radius[last] ** 2 + 2.0 * crossed, out=found)
        return found

    def most_common(self, first: int, last: int) -> float:
        """Return the most that the end of one opened block and the begin of a later one have in common."""
        found = self.exact_radius(first)[0] * self.exact_radius(last)[1]
        return found if self._crossings is None else min(found, float(self._crossings[2][first, last]))

    def norms(self, block: int) -> tuple[FloatArray, FloatArray]:
        """Return the squares of rows up to, and from, each distinct forecast of an opened block."""
        if block not in self._norms:
            rows = self.rows.opened(block)
            assert rows is not None
            weight = self.weight[rows.code]
            up_to = rows.prefixes(weight * rows.residual * (2.0 * rows.before + rows.residual))
            after = self.rows.inside(block)[rows.code] - rows.before  # this row's own included
            from_on = weight * rows.residual * (2.0 * after - rows.residual)
            back = rows.prefixes(from_on)
            self._norms[block] = up_to, back[-1] - back
        return self._norms[block]

    def exact_radius(self, block: int) -> tuple[float, float]:
        """Return the largest norm of rows from some forecast on, and of rows up to some forecast, of a block."""
        if self.rows.opened(block) is None:
            most = float(self.radius[block])
            return most, most
        up_to, from_on = self.norms(block)
        return float(np.sqrt(max(from_on.max(), 0.0))), float(np.sqrt(max(up_to.max(), 0.0)))


def largest_growth(
    weighing: Weighing,
    sign: float,
    rate: float,
    share: float,
    less: FloatArray | None = None,
    *,
    at_least: float = 0.0,
) -> float:
    """Return an upper bound of the most, over intervals I, of sign rate sum T_c(I) + share sum k_c T_c(I)^2.

    Parameters
    ----------
    weighing : Weighing
        The weights k_c of squares.
    sign, rate, share : float
        How sums and squares count.
    less : array, optional
        By cluster, what is taken from the rate: sums then count sign sum (rate - less_c) T_c(I).
    at_least : float, optional
        What is returned where all intervals have less, which takes less time than to know by how much.

    Returns
    -------
    float
        At least 0, which is what an empty interval has. It is above the most by no more than what the products of
        parts of the two end blocks can add.
    """
    return _Search(weighing, sign, rate, share, less).run(max(at_least, 0.0))


def may_grow_above(
    level: float, weighing: Weighing, sign: float, rate: float, share: float, less: FloatArray | None = None
) -> bool:
    """Return whether `largest_growth` is above a level, which takes less time than to know by how much."""
    return level < 0.0 or _Search(weighing, sign, rate, share, less).run(level, stop_above=True) > level


class _Middle(NamedTuple):
    """What lies between two blocks: sums of clusters before its begin and its end, and how their products count."""

    begin: FloatArray
    end: FloatArray
    weight: FloatArray
    times: float

    def at(self, code: IntArray) -> FloatArray:
        """Return what a unit of residual of some clusters adds."""
        found: FloatArray = (self.end[code] - self.begin[code]) * self.weight[code] * self.times
        return found

    def norm(self) -> float:
        """Return the most that parts of norm 1 add."""
        return self.times * float(np.sqrt((self.end - self.begin) ** 2 @ self.weight))


class _Search:
    """Best first over pairs of blocks: the one with the highest bound is opened, until no bound is above."""

    def __init__(self, weighing: Weighing, sign: float, rate: float, share: float, less: FloatArray | None) -> None:
        self.weighing = weighing
        self.rows = rows = weighing.rows
        self.share = share
        self.coefficient: FloatArray | None = None if less is None else sign * (rate - less)
        self.slope = sign * rate
        totals = rows.by_block.totals(self.coefficient)
        linear = self.slope * totals if self.coefficient is None else totals
        self.linear = np.concatenate([[0.0], np.cumsum(linear)])
        self.low, self.high = self._inside(linear, sign, rate, less)

    def _inside(
        self, whole: FloatArray, sign: float, rate: float, less: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the least and the most of the sum over the first rows of each block, before any is opened."""
        rows = self.rows
        middle = 0.0 if less is None else float(np.median(less))  # what most clusters lose is taken from all of them
        slope = sign * (rate - middle)
        least, most = rows.ways if slope >= 0.0 else rows.ways[::-1]
        begin = slope * rows.entry_prefix[rows.first]
        low, high = slope * least - begin, slope * most - begin
        slack = abs(rate - middle) * rows.slack
        if less is not None:
            off = np.abs(less - middle)[rows.sums.cluster] * rows.most_inside
            slack = slack + np.bincount(rows.sums.block, weights=off, minlength=rows.blocks)
        low, high = np.minimum(low - slack, 0.0), np.maximum(high + slack, 0.0)
        single = rows.is_single
        low[single], high[single] = np.minimum(whole[single], 0.0), np.maximum(whole[single], 0.0)
        return np.minimum(low, whole), np.maximum(high, whole)

    def run(self, level: float, *, stop_above: bool = False) -> float:
        """Return the most that is reached or bounded, at least a level; any value above it will do if so asked."""
        rows = self.rows
        best = max(self._whole_blocks(), level)
        if rows.is_single.all() or (stop_above and best > level):  # in the first case no interval ends inside a block
            return best
        first, last = rows.pairs
        bound = self._bounds()
        order = np.flatnonzero(bound > best)
        order = order[np.argsort(-bound[order], kind="stable")]
        for begin in range(0, order.size, _AT_ONCE):
            some = order[begin : begin + _AT_ONCE]
            some = some[bound[some] > best]
            if some.size == 0:
                break
            apart = some[first[some] < last[some]]
            rows.open(np.unique(np.concatenate([first[apart], last[apart]])))
            for pair in some.tolist():
                if bound[pair] > best:
                    best = max(best, min(float(bound[pair]), self._pair(int(first[pair]), int(last[pair]))))
                    if stop_above and best > level:
                        return best
        return best

    def _bounds(self) -> FloatArray:
        """Return bounds of intervals that begin in the first of two blocks and end in the second, for all pairs."""
        first, last = self.rows.pairs
        low, high, linear = self.low, self.high, self.linear
        between = linear[last] - linear[np.minimum(first + 1, last)]
        ends = (linear[1:] - linear[:-1] - low)[first] + high[last]
        ends[first == last] = high - low
        found: FloatArray = between + ends + self.share * self.weighing.most_of_pairs
        return found

    def _whole_blocks(self) -> float:
        """Return the most of intervals of whole blocks, which is no bound but is reached."""
        found = self.linear[None, :] - self.linear[:, None] + self.share * self.weighing.squares
        return float(found.max(initial=0.0, where=self.rows.forwards))

    def _pair(self, first: int, last: int) -> float:
        """Return the bound of intervals that begin in one block and end in a later one, from the rows of both.

        A block of a single forecast is taken as a whole: intervals without it are those of another pair.
        """
        weighing, rows = self.weighing, self.rows
        if first == last:
            return -np.inf if rows.is_single[first] else np.inf
        begin = first if rows.is_single[first] else first + 1
        end = last + 1 if rows.is_single[last] else last
        middle = _Middle(rows.prefix(begin), rows.prefix(end), weighing.weight, 2.0 * self.share)
        found = self.linear[end] - self.linear[begin] + self.share * weighing.squares[begin, end]
        if begin > first:
            found += self._from(first, middle)
        if end == last:
            found += self._up_to(last, middle)
        if begin > first and end == last:
            found += 2.0 * self.share * weighing.most_common(first, last)
        return float(found)

    def _scores(self, block: _OpenBlock, middle: _Middle) -> FloatArray:
        each = self.slope if self.coefficient is None else self.coefficient[block.code]
        scores: FloatArray = block.residual * (each + middle.at(block.code))
        return scores

    def _from(self, block: int, middle: _Middle) -> float:
        """Return the most that the rows from some forecast of a block on add, beside what lies between the blocks."""
        rows = self.rows.opened(block)
        if rows is None:
            return self._unopened(block, middle, self.linear[block + 1] - self.linear[block] - self.low[block])
        sums = rows.prefixes(self._scores(rows, middle))
        return float((sums[-1] - sums + self.share * self.weighing.norms(block)[1]).max())

    def _up_to(self, block: int, middle: _Middle) -> float:
        """Return the most that the rows up to some forecast of a block add."""
        rows = self.rows.opened(block)
        if rows is None:
            return self._unopened(block, middle, float(self.high[block]))
        return float((rows.prefixes(self._scores(rows, middle)) + self.share * self.weighing.norms(block)[0]).max())

    def _unopened(self, block: int, middle: _Middle, linear: float) -> float:
        """Return a bound from totals alone."""
        weighing = self.weighing
        radius = float(weighing.radius[block])
        return linear + middle.norm() * radius + self.share * radius**2
