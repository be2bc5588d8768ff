"""Forecasts of several models for the same rows, and coins that send rows, or whole clusters, to random groups.

Coins follow from a seed and from what the rows hold, never from their order, the names of clusters or their order, nor
from the order of the models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.kernels import MIX_FIRST, MIX_SECOND
from calibrant.core.row_kernels import Keys, mixed_keys, repeated_keys
from calibrant.core.types import FloatArray, IntArray
from calibrant.rows.checks import Observations, check_codes
from calibrant.rows.runs import group_starts
from calibrant.rows.splits import seeded

GROUPS = 8
"""Random groups of rows; halves are made of four of them."""

FEW_GROUPS = 4
"""Where halves take long: groups of two of those."""

IN_ORDER_BELOW = 20_000
"""Fewer rows than this are put in an order of their own, so that not even rounding knows theirs."""

_MANY_ROWS = 2**18
"""From so many on, keys are made and compared by compiled loops."""

_NO_KEY = np.zeros(1, dtype=np.uint64)
_CHUNK = 2**14  # what fits into a processor's cache


class Half(NamedTuple):
    """Which of the random groups are in each of two halves."""

    first: npt.NDArray[np.bool_]
    second: npt.NDArray[np.bool_]


def halves(groups: int = GROUPS) -> Iterator[Half]:
    """Return the ways to make two halves of the groups, a power of two, so that all of them name and all test."""
    for mask in range(1, groups):
        odd = np.array([(number & mask).bit_count() % 2 == 1 for number in range(groups)])
        yield Half(odd, ~odd)
        yield Half(~odd, odd)


@dataclass(frozen=True, eq=False)
class PairedColumns:
    """Checked rows of several models that are known to be the same, with the label of each row's cluster if any."""

    columns: Mapping[str, Observations]
    cluster: Any = None


@dataclass(frozen=True, eq=False)
class PairedRows:
    """Checked rows with the forecasts of several models, none of weight zero.

    Attributes
    ----------
    outcome : array of float
        Outcomes in [0, 1].
    forecasts : dict of arrays
        The forecasts of each model, by its name.
    weight : array or None
        Weights, None where all are equal.
    codes : array of int or None
        The number of each row's cluster, from 0 on without gaps; None where rows are independent.
    binary_outcomes : bool
        Whether every outcome is 0 or 1.
    """

    outcome: FloatArray
    forecasts: Mapping[str, FloatArray]
    weight: FloatArray | None
    codes: IntArray | None
    binary_outcomes: bool

    @classmethod
    def of(cls, observations: Mapping[str, Observations], cluster: Any = None) -> PairedRows:
        """Join what the gate let through of each model."""
        one = next(iter(observations.values()))
        codes = None if cluster is None else check_codes(cluster, "cluster", one.y_prob.size)[0]
        outcome, weight = one.y_true.astype(np.float64, copy=False), one.sample_weight
        forecasts = {name: each.y_prob for name, each in observations.items()}
        if weight is not None:
            kept = np.flatnonzero(weight)
            if kept.size < weight.size:
                outcome, weight = outcome[kept], weight[kept]
                forecasts = {name: column[kept] for name, column in forecasts.items()}
                codes = None if codes is None else np.unique(codes[kept], return_inverse=True)[1]
            weight = None if (weight == weight[0]).all() else weight
        rows = cls(outcome, forecasts, weight, codes, one.binary_outcomes)
        return rows._in_order() if rows.rows < IN_ORDER_BELOW else rows

    def _in_order(self) -> PairedRows:
        """Return the rows in an order that follows from what they hold."""
        columns: list[npt.NDArray[Any]] = [*self._columns, self.outcome]
        if self.weight is not None:
            columns.append(self.weight)
        if self.codes is not None:  # clusters are told apart by all of their rows
            columns.append(_sums_of_keys(self._keys(0, whole=True), self.codes)[self.codes])
        order = np.lexsort(columns[::-1])
        codes = None if self.codes is None else _as_they_come(self.codes[order])
        forecasts = {name: column[order] for name, column in self.forecasts.items()}
        kept = None if self.weight is None else self.weight[order]
        return PairedRows(self.outcome[order], forecasts, kept, codes, self.binary_outcomes)

    @cached_property
    def _columns(self) -> list[FloatArray]:
        """The forecasts of all models, in an order that follows from them, whatever that of the models.

        Outcomes have no say in it: coins must not know them. Names have where two models give the same forecasts to
        other rows.
        """
        found = []
        for name, column in self.forecasts.items():
            total = sum(int(_mixed(column[lot], _NO_KEY).sum()) for lot in self._lots)
            found.append((total % 2**64, name, column))
        return [column for *_, column in sorted(found, key=lambda each: each[:2])]

    @property
    def _lots(self) -> list[slice]:
        """Rows whose keys are made at a time: all, unless they are many."""
        count = max(self.rows // _MANY_ROWS, 1)
        return [slice(*ends) for ends in pairwise(self.rows * number // count for number in range(count + 1))]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.outcome.size)

    @cached_property
    def share(self) -> FloatArray | None:
        """Weights as shares of the largest; None where all are equal."""
        return None if self.weight is None else self.weight / self.weight.max()

    @property
    def weight_total(self) -> float:
        """Sum of the weights."""
        return float(self.rows) if self.weight is None else float(self.weight.sum())

    @cached_property
    def cluster_count(self) -> int:
        """How many clusters there are; as many as rows where these are independent."""
        return self.rows if self.codes is None else int(self.codes.max()) + 1

    def mean(self, values: FloatArray) -> float:
        """Return the weighted mean of a value per row."""
        return float(values.mean()) if self.weight is None else float(self.weight @ values) / self.weight_total

    def per_unit(self, values: FloatArray) -> FloatArray:
        """Add up a value per row, times its weight as a share of the largest, over each cluster."""
        own = values if self.share is None else values * self.share
        if self.codes is None:
            return own
        return np.bincount(self.codes, weights=own, minlength=self.cluster_count).astype(np.float64, copy=False)

    def groups(self, seed: int, count: int = GROUPS) -> npt.NDArray[np.uint8]:
        """Send each row, or each cluster with all of its rows, to one of a few groups at random, a power of two.

        What tells units apart is a number made of the seed and their forecasts. Units of the same forecasts differ in
        their outcomes only, and their coins come from the seed and all of the data, as in `Tally.splits`.
        """
        keys = self._keys(seed)
        if self.codes is not None:
            keys = _sums_of_keys(keys, self.codes)
        generator = seeded(seed, "groups of forecasts", f"{int(keys.sum()):x}")
        salt, factor = generator.integers(0, 2**64, size=2, dtype=np.uint64)
        found = np.empty(keys.size, dtype=np.uint8)
        for begin in range(0, keys.size, _CHUNK):
            part = keys[begin : begin + _CHUNK] ^ salt
            part *= factor | np.uint64(1)
            part >>= np.uint64(61)
            found[begin : begin + _CHUNK] = part
        repeated = _repeated(keys)
        if repeated.size:
            self._draw_ties(seed, keys, repeated, found)
        if count < GROUPS:
            found &= np.uint8(count - 1)
        if self.codes is not None:
            found = found[self.codes]
        return found

    def _draw_ties(self, seed: int, keys: Keys, repeated: Keys, found: npt.NDArray[np.uint8]) -> None:
        """Draw the groups of units that share their forecasts with others, in an order that follows from the rows."""
        whole = self._keys(seed, whole=True)
        if self.codes is not None:
            whole = _sums_of_keys(whole, self.codes)
        tied = np.flatnonzero(np.isin(keys, repeated))
        order = tied[np.lexsort((whole[tied], keys[tied]))]
        generator = seeded(seed, "groups of ties", f"{int(whole.sum()):x}")
        found[order] = generator.integers(0, GROUPS, size=order.size, dtype=np.uint8)

    def _keys(self, seed: int, *, whole: bool = False) -> Keys:
        """Return a number for each row, made of a seed and its forecasts, or of all that it holds."""
        start = seeded(seed, "keys of rows", "").integers(0, 2**64, size=1, dtype=np.uint64)
        keys = np.empty(self.rows, dtype=np.uint64)
        columns = self._columns
        if whole:
            columns = [*columns, self.outcome, *(() if self.weight is None else (self.weight,))]
        for lot in self._lots:
            keys[lot] = reduce(lambda part, column: _mixed(column[lot], part), columns, start)
        return keys


def check_clusters(rows: PairedRows) -> None:
    """Refuse rows that are all of one cluster: nothing is independent of anything then."""
    if rows.codes is not None and rows.cluster_count < 2:
        raise InputError(
            "holds one label only, so that no two rows are independent",
            argument="cluster",
            remedy="name what the rows came from one by one, or leave it out if rows are independent",
        )


def _mixed(column: FloatArray, keys: Keys) -> Keys:
    """Return the keys of rows, or one for all of them, scattered together with a column of numbers from 0 on."""
    if column.size >= _MANY_ROWS:
        return mixed_keys(column.view(np.uint64), keys)
    found = (column + 0.0).view(np.uint64)  # the bits of -0.0 as those of 0
    found += keys
    _mix(found)
    return found


def _repeated(keys: Keys) -> Keys:
    """Return the keys that occur more than once."""
    if keys.size >= _MANY_ROWS:
        return repeated_keys(keys)
    ordered = np.sort(keys)
    found: Keys = ordered[1:][ordered[1:] == ordered[:-1]]
    return found


def _mix(keys: Keys) -> None:
    """Scatter numbers in place, so that a change of any bit changes every other (the last steps of splitmix64)."""
    keys ^= keys >> np.uint64(30)
    keys *= MIX_FIRST
    keys ^= keys >> np.uint64(27)
    keys *= MIX_SECOND
    keys ^= keys >> np.uint64(31)


def _sums_of_keys(keys: Keys, codes: IntArray) -> Keys:
    """Return a number for each cluster, made of those of its rows in any order."""
    order = np.argsort(codes, kind="stable")
    sums: Keys = np.add.reduceat(keys[order], group_starts(codes[order]))
    _mix(sums)
    return sums


def _as_they_come(codes: IntArray) -> IntArray:
    """Return the numbers of clusters in the order in which they first occur."""
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[place]
