"""The loops over rows that several models forecast: keys that tell rows apart, and sums by place of the forecasts.

They are compiled as those of `core.kernels` are.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from calibrant.core.kernels import MIX_FIRST, MIX_SECOND, Kernel
from calibrant.core.types import FloatArray, IntArray

Keys = npt.NDArray[np.uint64]

_SIGN = np.uint64(2**63 - 1)
_STEPS = np.uint64(30), np.uint64(27), np.uint64(31)

_KEYS_TOGETHER = 1024
"""About so many keys are looked through at once, which the nearest cache holds."""


@Kernel
def largest_columns(values: FloatArray, tolerance: float) -> tuple[IntArray, FloatArray, bool]:
    """Find the first column of the largest number of each line, that number, and whether all lines are shares.

    That is: none is below 0 and each line adds up to 1 within the tolerance, in one go through the numbers.
    """
    lines, columns = values.shape
    place, largest = np.empty(lines, dtype=np.int64), np.empty(lines)
    shares = True
    for i in range(lines):
        best, where = values[i, 0], 0
        total, smallest = best, best  # of this line alone: lines that wait for one another take longer
        for k in range(1, columns):
            value = values[i, k]
            total += value
            smallest = min(smallest, value)
            if value > best:
                best, where = value, k
        place[i], largest[i] = where, best
        # Not so where any is missing.
        shares = shares and abs(total - 1.0) <= tolerance and best <= 1.0 and smallest >= 0.0
    return place, largest, shares


@Kernel
def mixed_keys(bits: Keys, keys: Keys) -> Keys:
    """Keys of rows, or one for all of them, plus the bits of numbers from 0 on, scattered as splitmix64 does.

    Runs compiled: as plain Python the wrapping 64-bit products are slow and warn.
    """
    found = np.empty(bits.size, dtype=np.uint64)
    for i in range(bits.size):
        key = keys[i if keys.size > 1 else 0] + (bits[i] & _SIGN)  # without the sign of -0.0
        key = (key ^ (key >> _STEPS[0])) * MIX_FIRST
        key = (key ^ (key >> _STEPS[1])) * MIX_SECOND
        found[i] = key ^ (key >> _STEPS[2])
    return found


@Kernel
def repeated_keys(keys: Keys) -> Keys:
    """Keys that occur more than once, each of them once; they must be scattered, or it takes long.

    A first pass puts keys near those that begin with the same bits; a small table of each such lot does the rest.
    """
    bits = 1
    while keys.size >> bits > _KEYS_TOGETHER:
        bits += 1
    shift = np.uint64(64 - bits)
    ends = np.zeros((1 << bits) + 1, dtype=np.int64)
    for i in range(keys.size):
        ends[np.int64(keys[i] >> shift) + 1] += 1
    most = ends.max()
    ends = np.cumsum(ends)
    together = np.empty(keys.size, dtype=np.uint64)
    free = ends[:-1].copy()
    for i in range(keys.size):
        begins = np.int64(keys[i] >> shift)
        together[free[begins]] = keys[i]
        free[begins] += 1
    # Of each slot: which key of its lot came first, from 1 on; below 0 where that was found to be repeated.
    holder = np.zeros(4 * max(most, 16 * _KEYS_TOGETHER), dtype=np.int32)
    found = np.empty(keys.size // 2, dtype=np.uint64)
    repeated = 0
    for number in range(free.size):
        lot = together[ends[number] : ends[number + 1]]
        last = 1
        while last < (8 if lot.size < 4 * _KEYS_TOGETHER else 2) * lot.size:  # large lots hold many of the same
            last = 2 * last + 1
        for i in range(last + 1):
            holder[i] = 0
        for i in range(lot.size):
            slot = np.int64(lot[i]) & last
            while holder[slot] != 0 and lot[abs(holder[slot]) - 1] != lot[i]:
                slot = (slot + 1) & last
            if holder[slot] == 0:
                holder[slot] = i + 1
            elif holder[slot] > 0:
                holder[slot] *= -1
                found[repeated] = lot[i]
                repeated += 1
    return found[:repeated]


Places = npt.NDArray[np.uint16]
"""Small numbers, of which a cache holds many."""


BLOCK = 256
"""Rows whose places are looked up before any of them is added: a sum then never waits for where the next one goes."""


UNIT_BITS = 54
HALF_BITS = 28
"""What `counted_cells` adds up has 54 bits below a cell's width; sums keep 28 and pass on others from time to time."""


LINE = 8
"""Whole numbers that a line of the cache holds."""


def no_counts(cells: int) -> IntArray:
    """Return what `counted_cells` starts with: rows, events, two sums, both ends in bits, the sums' upper parts.

    Each cell has a line of the cache to itself.
    """
    room = np.empty(LINE * (cells + 1), dtype=np.int64)
    begin = -room.ctypes.data % (LINE * room.itemsize) // room.itemsize
    totals = room[begin : begin + LINE * cells].reshape(cells, LINE)
    np.copyto(totals, [0, 0, 0, 0, np.iinfo(np.int64).max, -1, 0, 0])
    return totals


@partial(Kernel, writes=1)
def counted_cells(
    forecast: FloatArray,
    outcome: npt.NDArray[np.uint8],
    place: Places,
    first_number: npt.NDArray[np.int32],
    bits: int,
    fine: int,
    totals: IntArray,
) -> bool:
    """Add rows to the totals of their cells, in whole numbers, so that their order is all the same; are all sound?

    A row is found by its cell of width 2^-bits, in the table number ``place`` if there are several. ``first_number``
    says where the cells of width 2^-fine inside that cell begin in ``totals``: below 0 the row is left out, as those of
    a place beyond the tables are. Empty, all cells count, and are not divided further. ``above`` is how far a forecast
    is above its cell's edge. Sums are those of ``above`` and of (y - p)^2 - (y - edge)^2, times 2^(54 + fine).
    """
    scale, fine_scale, width, unit = 2.0**bits, 2.0**fine, 2.0**-fine, 2.0 ** (UNIT_BITS + fine)
    cells, last, inner = np.int32(1 << bits), (np.int64(1) << fine) - 1, (np.int64(1) << (fine - bits)) - 1
    listed, placed = first_number.size > 0, place.size > 0
    tables = np.int32((first_number.size if listed else totals.shape[0]) >> bits)
    value, edge, event = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK, dtype=np.uint8)
    number, size = np.empty(BLOCK, dtype=np.int32), value.view(np.int64)
    for begin in range(0, forecast.size, BLOCK):
        block = slice(begin, begin + BLOCK)
        forecasts, outcomes = forecast[block], outcome[block]
        sound = True
        for j in range(forecasts.size):  # without a branch, so that several are placed at once
            given = forecasts[j]
            inside = (given >= 0.0) & (given <= 1.0) & (outcomes[j] <= 1)
            sound &= inside
            number[j] = min(np.int32((given if inside else 0.0) * scale), cells - np.int32(1))
            value[j], edge[j], event[j] = given, number[j] * width, outcomes[j]
        if not sound:
            return False
        rows, all_count = forecasts.size, True
        if placed:
            places = place[block]
            for j in range(rows):
                counts = places[j] < tables
                number[j] = number[j] + places[j] * cells if counts else np.int32(-1)
                all_count &= counts
        if listed:
            for j in range(rows):
                number[j] = first_number[number[j]] if number[j] >= 0 else np.int32(-1)
                all_count &= number[j] >= 0
        if not all_count:
            together, rows = rows, 0
            for j in range(together):
                value[rows], edge[rows], event[rows], number[rows] = value[j], edge[j], event[j], number[j]
                rows += number[j] >= 0
        if listed:
            for j in range(rows):
                finer = min(np.int64(value[j] * fine_scale), last)
                number[j] += finer & inner
                edge[j] = finer * width
        counts_so_far = np.int64(0)
        for j in range(rows):  # asks for every cell, so that the sums below do not wait for one after the other
            counts_so_far |= totals[number[j], 0]
        if counts_so_far < 0:  # which no count is; but what nothing hangs on would not be asked for
            return False
        for j in range(rows):
            cell = totals[number[j]]
            happened = np.int64(event[j])
            above = value[j] - edge[j]
            first = cell[2] + np.int64(above * unit)
            second = cell[3] + np.int64((above * (above + 2.0 * (edge[j] - happened))) * unit)
            count = cell[0] + 1
            if count & 63 == 0:  # before sums have no room left
                cell[6] += first >> HALF_BITS
                cell[7] += second >> HALF_BITS
                first &= (1 << HALF_BITS) - 1
                second &= (1 << HALF_BITS) - 1
            cell[0], cell[2], cell[3] = count, first, second
            cell[1] += happened
            bits_of = size[j] & np.int64(2**63 - 1)  # without the sign of -0.0; they are in the forecasts' order
            cell[4], cell[5] = min(cell[4], bits_of), max(cell[5], bits_of)
    return True


@Kernel
def stretched_cells(forecast: FloatArray, cells: int) -> tuple[Places, IntArray]:
    """Cell of each forecast, one of so many that are narrower near 0 and near 1, as square roots are; rows of each."""
    found = np.empty(forecast.size, dtype=np.uint16)
    rows = np.zeros(cells, dtype=np.int64)
    last = np.int32(cells - 1)
    for begin in range(0, forecast.size, BLOCK):
        block, place = forecast[begin : begin + BLOCK], found[begin : begin + BLOCK]
        for j in range(block.size):  # without a branch, so that several forecasts are placed at once
            value = block[j]
            root = np.sqrt((value if value < 0.5 else 1.0 - value) / 2.0)
            place[j] = min(np.int32((root if value < 0.5 else 1.0 - root) * cells), last)
        for at in place:
            rows[at] += 1
    return found, rows


@Kernel
def grouped_residuals(
    outcome: FloatArray,
    forecast: FloatArray,
    share: FloatArray,
    cell: Places,
    group: npt.NDArray[np.uint8],
    groups: int,
    part: Places,
    bits: int,
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """Residuals added up by random group, in parts that many cells were joined to and in 2^bits cells each.

    ``share`` holds weights, or nothing, and ``part`` the part of each cell. The first array has residuals above 0,
    residuals, and their squares; the second, for every 2^bits cells, residuals and squares; the third says which parts
    hold a single forecast.
    """
    parts, shift = int(part[-1]) + 1, np.uint16(bits)
    sums = np.zeros((groups, parts, 3))
    fixed = np.zeros((groups, part.size >> bits, 2))
    seen = np.full(parts, -1.0)
    single = np.ones(parts, dtype=np.bool_)
    joined, value = np.empty(BLOCK, dtype=np.uint16), np.empty(BLOCK)
    for begin in range(0, outcome.size, BLOCK):
        block = slice(begin, begin + BLOCK)
        happened, forecasts, own, at = outcome[block], forecast[block], group[block], cell[block]
        for j in range(own.size):
            joined[j] = part[at[j]]
        for j in range(own.size):
            value[j] = happened[j] - forecasts[j]
        if share.size > 0:
            weight = share[block]
            for j in range(own.size):
                value[j] *= weight[j]
        for j in range(own.size):
            residual = value[j]
            square = residual * residual
            of_part, of_few = sums[own[j], joined[j]], fixed[own[j], at[j] >> shift]
            of_part[0] += max(residual, 0.0)
            of_part[1] += residual
            of_part[2] += square
            of_few[0] += residual
            of_few[1] += square
        for j in range(own.size):
            if seen[joined[j]] != forecasts[j]:
                single[joined[j]] = seen[joined[j]] < 0.0
                seen[joined[j]] = forecasts[j]
    return sums, fixed, single


@Kernel
def grouped_products(
    outcome: FloatArray,
    forecast: FloatArray,
    other_forecast: FloatArray,
    share: FloatArray,
    cell: Places,
    other_cell: Places,
    group: npt.NDArray[np.uint8],
    groups: int,
    stretch: Places,
    other_stretch: Places,
    part: Places,
    other_part: Places,
    bits: int,
) -> tuple[FloatArray, FloatArray]:
    """Products of two models' residuals by random group, stretch of the one's cells, and part of the other's.

    ``share`` holds weights, or nothing. ``stretch`` holds that of every 2^bits cells of the one and ``part`` that of
    each of its cells, ``other_stretch`` and ``other_part`` those of the other's.
    """
    first = np.zeros((groups, int(stretch[-1]) + 1, int(other_part[-1]) + 1))
    second = np.zeros((groups, int(other_stretch[-1]) + 1, int(part[-1]) + 1))
    sums, other_sums = first.reshape(-1), second.reshape(-1)
    line, other_line = np.uint32(first.shape[2]), np.uint32(second.shape[2])
    page, other_page = np.uint32(first[0].size), np.uint32(second[0].size)
    place, other_place = np.empty(BLOCK, dtype=np.uint32), np.empty(BLOCK, dtype=np.uint32)
    product, shift = np.empty(BLOCK), np.uint16(bits)
    for begin in range(0, outcome.size, BLOCK):
        block = slice(begin, begin + BLOCK)
        happened, one, two = outcome[block], forecast[block], other_forecast[block]
        own, at, other_at = group[block], cell[block], other_cell[block]
        for j in range(own.size):
            place[j] = page * own[j] + line * stretch[at[j] >> shift] + other_part[other_at[j]]
            other_place[j] = other_page * own[j] + other_line * other_stretch[other_at[j] >> shift] + part[at[j]]
        if share.size > 0:
            weight = share[block]
            for j in range(own.size):
                product[j] = (happened[j] - one[j]) * weight[j] * ((happened[j] - two[j]) * weight[j])
        else:
            for j in range(own.size):
                product[j] = (happened[j] - one[j]) * (happened[j] - two[j])
        for j in range(own.size):
            sums[place[j]] += product[j]
            other_sums[other_place[j]] += product[j]
    return first, second
