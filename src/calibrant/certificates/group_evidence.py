"""Evidence that some group is off: random halves of the rows, of which one names a group and the other tests it.

The half that names looks at groups that end after every so many of its own rows, and then at every interval of the
best of them: which group it names is for it to choose, and the rows that test it have no say in that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.certificates.betting import HIGHEST_RATE, SPLITS, averaged_lower, best_rate
from calibrant.certificates.group_search import ALL, AT_LEAST, AT_MOST, FEW, IS, UNKNOWN, Cut, Scene
from calibrant.core.group_kernels import stepped_tables
from calibrant.core.threads import in_threads
from calibrant.core.types import BoolArray, FloatArray, IntArray
from calibrant.measures.weighted import worst_stretches
from calibrant.rows.features import Feature
from calibrant.rows.runs import group_starts
from calibrant.rows.tally import Tally

_STEPS = 64  # groups to each side of a feature that a half looks at, ...
_STRETCHES = 256  # ... and stretches of forecasts in which it does
_Stretches: TypeAlias = npt.NDArray[np.uint16]

_MANY = 1 << 18  # rows times features from which on fewer splits are averaged


def split_halves(scene: Scene, tally: Tally, seed: int) -> list[BoolArray]:
    """Return the halves of the rows that name a group each; the tally is that of the scene's rows, and draws them."""
    splits = SPLITS if scene.size * len(scene.features) <= _MANY else SPLITS // 4
    return [heads for (heads,) in islice(tally.heads(seed, 1), splits)]


def split_lower_group(scene: Scene, halves: Sequence[BoolArray], named: Sequence[Cut], delta: float) -> float:
    """Return a lower limit of the worst group's error: what random halves say of the group that the other half named.

    Each split bets against the group, the interval and the direction that its first half named, at a rate that suits
    what was seen there; the evidence of all is averaged.
    """
    exponent = math.log(1.0 / delta)
    evidence = in_threads(
        lambda split: _evidence(scene, *split, exponent), list(zip(halves, named, strict=True)), rows=scene.size
    )
    growth, rates, rows = (np.array(column) for column in zip(*evidence, strict=True))
    return averaged_lower(growth, rates, rows, exponent)


def _evidence(scene: Scene, heads: BoolArray, cut: Cut, exponent: float) -> tuple[float, float, int]:
    """Return how a bet on what one half named grows on the other, the rate of the mean bet, and the rows of that."""
    found, tails = int(np.count_nonzero(heads)), ~heads
    rest = scene.size - found
    if found == 0 or rest == 0:
        return 0.0, HIGHEST_RATE, 0
    members = scene.members(cut)
    low, high, sign = _worst_interval(scene, heads & members)
    forecast = scene.rows.y_prob
    inside = members & (forecast >= low) & (forecast <= high)
    rate = best_rate(float(np.square(scene.gain[heads & inside]).sum()) / found * rest, 1.0, exponent)
    growth = float(np.log1p(rate * sign * scene.gain[tails & inside]).sum())
    weight = scene.rows.sample_weight
    share = 1.0 if weight is None else float(weight[tails].mean() / weight.max())
    return growth, rate * share, rest


def _worst_interval(scene: Scene, chosen: BoolArray) -> tuple[float, float, float]:
    """Return the interval of forecasts on which some rows are off most, and the sign of their residuals there."""
    rows = np.flatnonzero(chosen)
    if rows.size == 0:
        return 1.0, 0.0, 0.0
    forecast = scene.rows.y_prob[rows]
    starts = group_starts(forecast)
    curve = np.zeros(starts.size + 1)
    np.cumsum(np.add.reduceat(scene.gain[rows], starts), out=curve[1:])
    begin, end, sign, _ = (column[0].item() for column in worst_stretches(curve[None], float(rows.size)))
    return float(forecast[starts[begin]]), float(forecast[starts[end - 1]]), float(sign)


def named_groups(scene: Scene, halves: Sequence[BoolArray]) -> list[Cut]:
    """Return the worst group of each of several parts of the rows, among those that end after every so many rows."""
    leaf_sizes = np.diff(scene.leaves.starts, append=scene.size)
    leaf_ends = np.cumsum(leaf_sizes)
    stretches = []
    for heads in halves:
        passed = np.cumsum(heads)
        of_leaf = np.maximum(passed[leaf_ends - 1] - 1, 0) * _STRETCHES // max(int(passed[-1]), 1)
        stretches.append(np.where(heads, np.repeat(of_leaf, leaf_sizes), _STRETCHES).astype(np.uint16))
    best = [_range_in(stretch, scene.gain) for stretch in stretches]
    cuts = [Cut(ALL)] * len(halves)
    each = np.array(stretches)
    sizes = np.array([np.count_nonzero(heads) for heads in halves])
    found = in_threads(
        lambda place: [list(groups) for groups in _groups_of(scene, place, each, sizes)],
        range(len(scene.features)),
        rows=scene.size,
    )
    for of_feature in found:
        for half, groups in enumerate(of_feature):
            for error, cut in groups:
                if error > best[half]:
                    best[half], cuts[half] = error, cut
    return cuts


def _groups_of(scene: Scene, place: int, stretch: _Stretches, sizes: IntArray) -> Iterator[Iterator[tuple[float, Cut]]]:
    """Return for each half the worst group of each kind of one feature, with its |sum of gains| over an interval.

    ``stretch`` is by half and row; rows of the other half have one beyond the last. ``sizes`` are those of the halves.
    """
    feature, gain = scene.features[place], scene.gain
    unknown = np.flatnonzero(feature.missing)
    if not feature.ordered:
        grouped = [_labels_of(feature, place, of_row, gain) for of_row in stretch]
    else:
        grouped = _half_lines_of(feature, place, stretch, gain, sizes)
    for of_row, groups in zip(stretch, grouped, strict=True):
        missing = [(_range_in(of_row[unknown], gain[unknown]), Cut(UNKNOWN, place))] if unknown.size else []
        yield chain(missing, groups)


def _half_lines_of(
    feature: Feature, place: int, stretch: _Stretches, gain: FloatArray, sizes: IntArray
) -> list[Iterator[tuple[float, Cut]]]:
    """Return for each half the worst of the groups up to a value, and of those from one on."""
    order = feature.order
    counts = sizes if order.size == gain.size else np.count_nonzero(stretch[:, order] < _STRETCHES, axis=1)
    run = stepped_tables.run_compiled if gain.size > FEW else _tables_of
    tables = run(order, feature.codes[order], gain[order], stretch, counts, _STEPS, _STRETCHES)
    return [_worst_steps(place, *table) for table in zip(*tables, strict=True)]


def _worst_steps(place: int, table: FloatArray, least: IntArray, most: IntArray) -> Iterator[tuple[float, Cut]]:
    held = np.flatnonzero(least >= 0)
    if held.size == 0:
        return
    curve = np.cumsum(np.cumsum(table[held], axis=1), axis=0)
    ranges = _ranges(curve)
    best = int(ranges.argmax())
    yield float(ranges[best]), Cut(AT_MOST, place, int(most[held[best]]))
    if held.size > 1:
        ranges = _ranges(curve[-1] - curve[:-1])
        best = int(ranges.argmax())
        yield float(ranges[best]), Cut(AT_LEAST, place, int(least[held[best + 1]]))


def _tables_of(
    order: IntArray,
    codes: IntArray,
    value: FloatArray,
    stretch: _Stretches,
    count: IntArray,
    steps: int,
    stretches: int,
) -> tuple[FloatArray, IntArray, IntArray]:
    """Return `stepped_tables` without a loop, for rows so few that none is worth compiling."""
    table = np.zeros((count.size, steps, stretches))
    least, most = np.full((2, count.size, steps), -1)
    for part in np.flatnonzero(count):
        at = stretch[part, order]
        chosen = at < stretches
        found = codes[chosen]
        starts = group_starts(found)
        step_of_value = starts * steps // count[part]
        step = np.repeat(step_of_value, np.diff(starts, append=found.size))
        table[part].flat = _sums(step * stretches + at[chosen], value[chosen], steps * stretches)
        least[part, step_of_value[::-1]] = found[starts][::-1]  # the first of several stays
        most[part, step_of_value] = found[starts]
    return table, least, most


def _labels_of(feature: Feature, place: int, stretch: _Stretches, gain: FloatArray) -> Iterator[tuple[float, Cut]]:
    """Return the worst of a feature's labels: of the most frequent ones, where they are many."""
    rows = np.flatnonzero((stretch < _STRETCHES) & ~feature.missing)
    if rows.size == 0:
        return
    held = np.bincount(feature.codes[rows])
    frequent = np.argsort(-held, kind="stable")[:_STEPS]
    step = np.full(held.size, frequent.size)
    step[frequent] = np.arange(frequent.size)
    cell = step[feature.codes[rows]] * _STRETCHES + stretch[rows]
    table = _sums(cell, gain[rows], (frequent.size + 1) * _STRETCHES)
    ranges = _ranges(np.cumsum(table.reshape(-1, _STRETCHES)[:-1], axis=1))
    best = int(ranges.argmax())
    yield float(ranges[best]), Cut(IS, place, int(frequent[best]))


def _range_in(stretch: _Stretches, gain: FloatArray) -> float:
    """Return the largest |sum of gains| over stretches side by side."""
    table = _sums(stretch, gain, _STRETCHES + 1)[:_STRETCHES]
    return float(_ranges(np.cumsum(table)[None])[0])


def _ranges(curves: FloatArray) -> FloatArray:
    found: FloatArray = np.maximum(curves.max(axis=1), 0.0) - np.minimum(curves.min(axis=1), 0.0)
    return found


def _sums(cells: npt.NDArray[np.integer[Any]], values: FloatArray, count: int) -> FloatArray:
    return np.bincount(cells, values, count).astype(np.float64, copy=False)
