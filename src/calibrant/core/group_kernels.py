"""Loops over groups that grow row by row: the worst interval of forecasts of every one of them.

A tree over the forecasts keeps, for each stretch of them, what the worst interval of the whole needs. A row that enters
changes the nodes above its forecast and no others: as many as the number of forecasts has binary digits. The lowest
nodes stand for a few forecasts each, which are gone through one by one: they lie side by side in memory.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.core.kernels import Kernel
from calibrant.core.types import BoolArray, FloatArray, IntArray


@Kernel
def growing_ranges(leaf: IntArray, value: FloatArray, end: IntArray, wanted: BoolArray, leaves: int) -> FloatArray:
    """Return the largest |sum of values over an interval of leaves|, of the rows that have entered, step by step.

    Rows come in the order in which they enter, those up to ``end[k]`` in steps 0 to k; row i adds ``value[i]`` to leaf
    ``leaf[i]``. What a step reaches is looked at only if it is wanted, and -1 otherwise. That is the range of the
    running total over the leaves, which starts at 0: a node of the tree holds the total of its leaves, and how far up
    and down the running total goes inside.
    """
    found = np.full(end.size, -1.0)
    depth = 0
    while (8 << depth) < leaves:
        depth += 1
    first = 1 << depth
    single = np.zeros(8 * first)
    total = np.zeros(2 * first)
    high = np.zeros(2 * first)
    low = np.zeros(2 * first)
    begin = 0  # of the rows that have entered since the tree was last up to date
    entered = 0
    for step in range(end.size):
        for place in range(entered, end[step]):
            single[leaf[place]] += value[place]
        entered = end[step]
        if not wanted[step]:
            continue
        whole = (entered - begin) * (depth + 2) > 3 * first  # so many rows that every node is done once
        for place in range(first) if whole else range(begin, entered):
            few = place if whole else leaf[place] >> 3
            running = 0.0
            top = 0.0
            bottom = 0.0
            for each in range(8 * few, 8 * few + 8):
                running += single[each]
                top = max(top, running)
                bottom = min(bottom, running)
            node = first + few
            total[node] = running
            high[node] = top
            low[node] = bottom
            node = 0 if whole else node >> 1
            while node > 0:
                left = 2 * node
                before = total[left]
                total[node] = before + total[left + 1]
                high[node] = max(high[left], before + high[left + 1])
                low[node] = min(low[left], before + low[left + 1])
                node >>= 1
        for node in range(first - 1 if whole else 0, 0, -1):
            left = 2 * node
            before = total[left]
            total[node] = before + total[left + 1]
            high[node] = max(high[left], before + high[left + 1])
            low[node] = min(low[left], before + low[left + 1])
        begin = entered
        found[step] = high[1] - low[1]
    return found


@Kernel
def growing_stretches(leaf: IntArray, value: FloatArray, end: IntArray, wanted: BoolArray, leaves: int) -> FloatArray:
    """Return the largest sum of values over an interval of leaves, at least 0, step by step; -1 where none is wanted.

    As `growing_ranges`, for values of which a change of sign makes others: a node holds the total of its leaves, the
    largest sum of its first leaves, of its last leaves, and of neighbouring ones.
    """
    found = np.full(end.size, -1.0)
    depth = 0
    while (8 << depth) < leaves:
        depth += 1
    first = 1 << depth
    single = np.zeros(8 * first)
    total = np.zeros(2 * first)
    front = np.zeros(2 * first)
    back = np.zeros(2 * first)
    inside = np.zeros(2 * first)
    begin = 0
    entered = 0
    for step in range(end.size):
        for place in range(entered, end[step]):
            single[leaf[place]] += value[place]
        entered = end[step]
        if not wanted[step]:
            continue
        whole = (entered - begin) * (depth + 2) > 3 * first
        for place in range(first) if whole else range(begin, entered):
            few = place if whole else leaf[place] >> 3
            running = 0.0
            top = 0.0
            bottom = 0.0
            rise = 0.0
            for each in range(8 * few, 8 * few + 8):
                running += single[each]
                top = max(top, running)
                bottom = min(bottom, running)
                rise = max(rise, running - bottom)
            node = first + few
            total[node] = running
            front[node] = top
            back[node] = running - bottom
            inside[node] = rise
            node = 0 if whole else node >> 1
            while node > 0:
                left = 2 * node
                right = left + 1
                front[node] = max(front[left], total[left] + front[right])
                back[node] = max(back[right], total[right] + back[left])
                inside[node] = max(max(inside[left], inside[right]), back[left] + front[right])
                total[node] = total[left] + total[right]
                node >>= 1
        for node in range(first - 1 if whole else 0, 0, -1):
            left = 2 * node
            right = left + 1
            front[node] = max(front[left], total[left] + front[right])
            back[node] = max(back[right], total[right] + back[left])
            inside[node] = max(max(inside[left], inside[right]), back[left] + front[right])
            total[node] = total[left] + total[right]
        begin = entered
        found[step] = inside[1]
    return found


@Kernel
def stepped_table(
    order: IntArray,
    codes: IntArray,
    value: FloatArray,
    stretch: npt.NDArray[np.uint16],
    count: int,
    steps: int,
    stretches: int,
) -> tuple[FloatArray, IntArray, IntArray]:
    """Add up the values of some rows by step, one for every so many of them, and by stretch of forecasts.

    Rows come in the order of their codes, with codes and values in that order; ``stretch`` is by row, and that of rows
    that do not count, of which there are all but ``count``, is beyond the last. Rows that share a code are of one step.
    Returns the sums, and the first and the last code of each step (-1 where a step has no rows).
    """
    table = np.zeros((steps, stretches))
    least = np.full(steps, -1, dtype=np.int64)
    most = np.full(steps, -1, dtype=np.int64)
    passed = 0
    step = 0
    code = np.int64(-1)
    for place in range(order.size):
        at = stretch[order[place]]
        if at >= stretches:
            continue
        if codes[place] != code:
            code = codes[place]
            step = passed * steps // count
            if least[step] < 0:
                least[step] = code
            most[step] = code
        passed += 1
        table[step, at] += value[place]
    return table, least, most
