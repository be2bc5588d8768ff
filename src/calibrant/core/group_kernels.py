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
def growing_bounds(
    stretch: npt.NDArray[np.uint16],
    value: FloatArray,
    end: IntArray,
    wanted: BoolArray,
    stretches: int,
    every: int,
    either_sign: bool,
) -> tuple[FloatArray, float]:
    """Return what largest sums over intervals of stretches are at most, step by step, and the largest that was seen.

    As `growing_stretches`, or as `growing_ranges` if sums count whatever their sign is; but looked at once for every
    so many rows, and between two looks bounded by what the rows that enter after the one, or leave before the other,
    can add. Where no step nearby is wanted, nothing is looked at and the bound is infinite. Stretches lie in 32 lanes
    that are gone through side by side, which processors do several at a time.
    """
    found = np.full(end.size, np.inf)
    up = np.zeros(min(every, end.size) + 1)
    down = np.zeros(min(every, end.size) + 1)
    shift = 2
    while (32 << shift) < stretches:
        shift += 1
    depth = 1 << shift
    table = np.zeros(32 * depth)
    # Of each lane the running total, how far up and down it went, and its steepest rise.
    at_end, highest, lowest, steepest = np.zeros(32), np.zeros(32), np.zeros(32), np.zeros(32)
    seen = 0.0  # at the last look, ...
    looked = 0  # ... when so many rows had entered
    before = 0.0  # at the look before that
    largest = 0.0
    entered = 0
    first = 0
    while first < end.size:
        last = first
        asked = wanted[first]
        while last < end.size - 1 and end[last] - entered < every:
            last += 1
            asked = asked or wanted[last]
        for look in range(2):
            if look == 1:
                for place in range(entered, end[last]):
                    at = np.int64(stretch[place])
                    table[((at & (depth - 1)) << 5) + (at >> shift)] += value[place]
            if not asked or (look == 0 and looked == entered):
                continue
            for lane in range(32):
                at_end[lane], highest[lane], lowest[lane], steepest[lane] = 0.0, 0.0, 0.0, 0.0
            for place in range(0, 32 * depth, 128):
                # Four at a time, so that what is known of a lane is read and written less often. Adding 0 keeps a
                # compiler from writing only where there is more, which is much slower.
                line, second = table[place : place + 32], table[place + 32 : place + 64]
                third, fourth = table[place + 64 : place + 96], table[place + 96 : place + 128]
                if either_sign:
                    for lane in range(32):
                        one = at_end[lane] + line[lane]
                        two = one + second[lane]
                        three = two + third[lane]
                        four = three + fourth[lane]
                        at_end[lane] = four
                        highest[lane] = max(max(max(max(highest[lane], one), two), three), four) + 0.0
                        lowest[lane] = min(min(min(min(lowest[lane], one), two), three), four) + 0.0
                    continue
                for lane in range(32):
                    one = at_end[lane] + line[lane]
                    two = one + second[lane]
                    three = two + third[lane]
                    four = three + fourth[lane]
                    at_end[lane] = four
                    highest[lane] = max(max(max(max(highest[lane], one), two), three), four) + 0.0
                    bottom = min(lowest[lane], one)
                    rises = max(steepest[lane], one - bottom)
                    bottom = min(bottom, two)
                    rises = max(rises, two - bottom)
                    bottom = min(bottom, three)
                    rises = max(rises, three - bottom)
                    bottom = min(bottom, four)
                    steepest[lane] = max(rises, four - bottom) + 0.0
                    lowest[lane] = bottom + 0.0
            total = 0.0
            top = 0.0
            low = 0.0
            rise = 0.0
            for lane in range(32):
                rise = max(max(rise, steepest[lane]), total + highest[lane] - low)
                top = max(top, total + highest[lane])
                low = min(low, total + lowest[lane])
                total += at_end[lane]
            before = seen
            seen = top - low if either_sign else rise
            largest = max(largest, seen)
            looked = end[last] if look == 1 else entered
        if asked:
            rising = 0.0
            falling = 0.0
            place = entered
            for step in range(first, last + 1):
                while place < end[step]:
                    rising += max(value[place], 0.0)
                    falling += max(-value[place], 0.0)
                    place += 1
                up[step - first] = rising
                down[step - first] = falling
            for step in range(last + 1 - first):
                since = max(up[step], down[step]) if either_sign else up[step]
                until = max(rising - up[step], falling - down[step]) if either_sign else falling - down[step]
                found[first + step] = min(before + since, seen + until)
        entered = end[last]
        first = last + 1
    return found, largest


@Kernel
def stepped_tables(
    order: IntArray,
    codes: IntArray,
    value: FloatArray,
    stretch: npt.NDArray[np.uint16],
    count: IntArray,
    steps: int,
    stretches: int,
) -> tuple[FloatArray, IntArray, IntArray]:
    """Add up the values of several parts of the rows by step, one for every so many of them, and by stretch.

    Rows come in the order of their codes, with codes and values in that order; ``stretch`` is by part and row, and that
    of rows that are not of a part, which are all but ``count`` of them, is the one after the last. Rows that share a
    code are of one step. Returns for each part the sums, and the first and the last code of each step (-1 where a step
    has no rows).
    """
    # Rows that are not of a part are added up where nobody looks: quicker than a branch that no processor foresees.
    table = np.zeros((count.size, steps, stretches + 1))
    least = np.full((count.size, steps), -1, dtype=np.int64)
    most = np.full((count.size, steps), -1, dtype=np.int64)
    for part in range(count.size):
        at = stretch[part]
        passed = 0
        place = 0
        for step in range(steps):
            sums = table[part, step]
            until = (count[part] * (step + 1) + steps - 1) // steps  # a code that begins before so many is of this step
            begin = place
            while place < order.size and (
                passed < until or step == steps - 1 or (place > 0 and codes[place] == codes[place - 1])
            ):
                which = at[order[place]]
                passed += which < stretches
                sums[which] += value[place]
                place += 1
            end = place
            while begin < end and at[order[begin]] >= stretches:
                begin += 1
            while begin < end and at[order[end - 1]] >= stretches:
                end -= 1
            if begin < end:
                least[part, step] = codes[begin]
                most[part, step] = codes[end - 1]
    return table[:, :, :stretches], least, most
