"""The loops over curves of residuals: the best smooth weight, and the order in which swings are given up.

They are compiled as those of `core.kernels` are.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from calibrant.core.kernels import Kernel
from calibrant.core.types import FloatArray, IntArray

_FEW = 2**12
"""Points of a curve that the loop goes through as they are."""

_WIDE_FROM, _WIDE, _NARROW = 2**18, 128, 16
"""From so many points on blocks of many are looked at first, of fewer points blocks of few."""


def smooth_cost(curve: FloatArray, gap: FloatArray) -> float:
    """Return what `smooth_fit` does without the fit; of many points, most are joined before.

    Where a curve is higher or lower, its fit is nowhere lower or higher. So the fits of two curves that are constant
    in blocks, one at the highest and one at the lowest point of each, lie above and below a fit of this one. What
    reaches beyond them adds to the cost how far it does, and no more: such points are moved to the fit that they
    reach beyond. Neighbours of the same height share their fit, and count as one. That joins most points unless the
    curve climbs so steadily, as that of forecasts far off does, that its fit follows it.
    """
    points, end = curve[:-1], curve[-1:]
    if points.size <= _FEW:
        return smooth_fit(curve, gap, False)[0]
    starts = np.arange(0, points.size, _WIDE if points.size >= _WIDE_FROM else _NARROW)
    size, width = np.diff(starts, append=points.size), np.add.reduceat(gap, starts)
    low, high = (
        np.repeat(smooth_fit(np.append(extreme.reduceat(points, starts), end), width, True)[1], size)
        for extreme in (np.minimum, np.maximum)
    )
    moved = np.clip(points, low, high)
    beyond = float((gap * np.abs(points - moved)).sum())
    first = np.flatnonzero(np.diff(moved, prepend=np.inf))
    joined, width = np.append(moved[first], end), np.add.reduceat(gap, first)
    again = 2 * first.size <= points.size
    return beyond + (smooth_cost(joined, width) if again else smooth_fit(joined, width, False)[0])


@Kernel
def smooth_fit(curve: FloatArray, gap: FloatArray, keep_fit: bool) -> tuple[float, FloatArray]:
    """Weighted L1 isotonic fit of a curve, with values kept between 0 and the curve's end.

    ``curve`` holds C_1..C_m with C_m >= 0, ``gap`` the m-1 weights. Returns C_m plus the cost of the best fit
    min sum gap_k |C_k - M_k| over nondecreasing M_k in [0, C_m], and the fit M_1..M_{m-1} itself (empty unless asked
    to keep it).

    The cost of the points so far, as a function of the latest M, is convex; its slope changes are kept as (value,
    mass). Each point adds mass 2 gap at its value clipped to [0, C_m] and takes mass gap off the highest value; the
    highest that is left is where the cost is smallest. Going back from the last point, M_k is that place or M_{k+1},
    whichever is lower. Values that rise go onto a stack at no cost, only the others need a heap, whose first entry is
    the highest, of equal ones the lightest; the bottom of the stack is 0, which never runs out.
    """
    points = curve.size
    end = curve[points - 1]
    cost = end
    fit = np.empty(points - 1 if keep_fit else 0)
    rising, rising_mass = np.empty(points), np.empty(points)
    rising[0], rising_mass[0] = 0.0, np.inf
    last = 0
    heap, heap_mass = np.empty(points), np.empty(points)
    held = 0
    for k in range(points - 1):
        value = min(max(curve[k], 0.0), end)
        cost += gap[k] * abs(curve[k] - value)
        own, remaining = 2.0 * gap[k], gap[k]
        while remaining > 0.0:
            in_heap = held > 0 and heap[0] > rising[last]
            top = heap[0] if in_heap else rising[last]
            if top <= value:
                own -= remaining
                break
            mass = heap_mass[0] if in_heap else rising_mass[last]
            taken = min(mass, remaining)
            cost += taken * (top - value)
            remaining -= taken
            if not in_heap:
                rising_mass[last] = mass - taken
                last -= taken == mass
            elif taken < mass:
                heap_mass[0] = mass - taken
            else:  # the last entry fills the gap, from where it sinks
                held -= 1
                moved, moved_mass = heap[held], heap_mass[held]
                place, child = 0, 1
                while child < held:
                    if child + 1 < held and (
                        heap[child + 1] > heap[child]
                        or (heap[child + 1] == heap[child] and heap_mass[child + 1] < heap_mass[child])
                    ):
                        child += 1
                    if moved > heap[child] or (moved == heap[child] and moved_mass <= heap_mass[child]):
                        break
                    heap[place], heap_mass[place] = heap[child], heap_mass[child]
                    place, child = child, 2 * child + 1
                heap[place], heap_mass[place] = moved, moved_mass
        if value > rising[last]:
            last += 1
            rising[last], rising_mass[last] = value, own
        elif value == rising[last]:
            rising_mass[last] += own
        else:
            place = held
            held += 1
            while place > 0:
                parent = (place - 1) // 2
                if heap[parent] > value or (heap[parent] == value and heap_mass[parent] <= own):
                    break
                heap[place], heap_mass[place] = heap[parent], heap_mass[parent]
                place = parent
            heap[place], heap_mass[place] = value, own
        if keep_fit:
            fit[k] = max(rising[last], heap[0]) if held > 0 else rising[last]
    for k in range(fit.size - 2, -1, -1):
        fit[k] = min(fit[k], fit[k + 1])
    return cost, fit


@smooth_fit.otherwise(400_000)
def smooth_fit_by_lists(curve: FloatArray, gap: FloatArray, keep_fit: bool) -> tuple[float, FloatArray]:
    """As `smooth_fit`, with Python's own lists and heap, which Python goes through much faster."""
    *values, end = curve.tolist()
    cost = end
    fit = []
    top, rising, rising_mass = 0.0, [0.0], [math.inf]  # the first is the last of the second, and looked at often
    heap: list[tuple[float, float]] = []  # (minus the value, mass): heapq keeps the smallest first
    for point, width in zip(values, gap.tolist(), strict=True):
        value = point
        if point < 0.0:
            value = 0.0
            cost -= width * point
        elif point > end:
            value = end
            cost += width * (point - end)
        own, remaining = 2.0 * width, width
        while remaining > 0.0:
            in_heap = bool(heap) and -heap[0][0] > top
            highest, mass = (-heap[0][0], heap[0][1]) if in_heap else (top, rising_mass[-1])
            if highest <= value:
                own -= remaining
                break
            if mass > remaining:
                cost += remaining * (highest - value)
                if in_heap:
                    heap[0] = (-highest, mass - remaining)
                else:
                    rising_mass[-1] = mass - remaining
                break
            cost += mass * (highest - value)
            remaining -= mass
            if in_heap:
                heapq.heappop(heap)
            else:
                rising.pop()
                rising_mass.pop()
                top = rising[-1]
        if value > top:
            top = value
            rising.append(value)
            rising_mass.append(own)
        elif value == top:
            rising_mass[-1] += own
        else:
            heapq.heappush(heap, (-value, own))
        if keep_fit:
            fit.append(max(top, -heap[0][0]) if heap else top)
    return cost, np.minimum.accumulate(np.array(fit, dtype=np.float64)[::-1])[::-1]


@Kernel
def smooth_weights(curve: FloatArray, gap: FloatArray, fit: FloatArray) -> FloatArray:
    """Turn the fit of `smooth_fit` into the 1-Lipschitz weights w in [-1, 1] with sum R w = its cost.

    With u = 1 - w, complementary slackness says: u falls at full speed where C_k < M_k, rises where C_k > M_k, is
    free where they are equal, and is 0 wherever M jumps. Forward: the interval of possible u_k. Backward: choose.
    """
    points = curve.size
    end = curve[points - 1]
    low = np.empty(points)
    high = np.empty(points)
    before = 0.0
    for k in range(points):
        if k == 0:
            low[k], high[k] = 0.0, 2.0
        else:
            low[k], high[k] = low[k - 1], high[k - 1]
            difference = curve[k - 1] - fit[k - 1]
            if difference >= 0.0:
                high[k] += gap[k - 1]
            else:
                high[k] -= gap[k - 1]
            if difference <= 0.0:
                low[k] -= gap[k - 1]
            else:
                low[k] += gap[k - 1]
            low[k] = max(low[k], 0.0)
            high[k] = max(high[k], low[k])
        here = fit[k] if k < points - 1 else end
        if here > before:
            low[k], high[k] = 0.0, 0.0
        before = here
    weights = np.empty(points)
    chosen = low[points - 1]
    weights[points - 1] = 1.0 - chosen
    for k in range(points - 2, -1, -1):
        difference = curve[k] - fit[k]
        if difference > 0.0:
            chosen -= gap[k]
        elif difference < 0.0:
            chosen += gap[k]
        elif chosen > high[k]:
            chosen = max(chosen - gap[k], high[k])
        elif chosen < low[k]:
            chosen = min(chosen + gap[k], low[k])
        chosen = min(max(chosen, low[k]), high[k])
        weights[k] = 1.0 - chosen
    return weights


@Kernel
def swing_events(curve: FloatArray) -> tuple[FloatArray, IntArray, IntArray]:
    """Order in which a curve's swings disappear as sign changes become dearer.

    ``curve`` holds the prefix sums C_0..C_m. A +-1 weight that changes sign at every turn of the curve collects its
    whole variation. Giving up a swing of height a costs 2a: an inner one saves two sign changes (4 units of total
    variation), one that touches an end of the curve saves one (2 units), so their prices per unit are a/2 and a. A
    swing may go as soon as none of its neighbours is cheaper, whatever happens elsewhere, so one stack does it all.

    Returns, an entry per swing given up, in an order in which inner swings precede the ones around them: the price,
    and the positions in the curve of the two turns that vanish (-1 for the second when there is one only).
    """
    points = curve.size
    price = np.empty(points)
    left = np.empty(points, dtype=np.int64)
    right = np.empty(points, dtype=np.int64)
    events = 0
    stack = np.empty(points, dtype=np.int64)
    stack[0] = 0
    held = 1
    for j in range(1, points):
        move = curve[j] - curve[stack[held - 1]]
        if move == 0.0:
            continue
        if held > 1 and (curve[stack[held - 1]] > curve[stack[held - 2]]) == (move > 0.0):
            stack[held - 1] = j
        else:
            stack[held] = j
            held += 1
        while held >= 3:
            last = abs(curve[j] - curve[stack[held - 2]])
            middle = abs(curve[stack[held - 2]] - curve[stack[held - 3]])
            if held == 3:
                if middle > last / 2.0:
                    break
                price[events], left[events], right[events] = middle, stack[1], -1
                stack[1] = j
                held = 2
            else:
                before = abs(curve[stack[held - 3]] - curve[stack[held - 4]])
                if middle > last or (middle / 2.0 > before if held == 4 else middle > before):
                    break
                price[events], left[events], right[events] = middle / 2.0, stack[held - 3], stack[held - 2]
                stack[held - 3] = j
                held -= 2
            events += 1
    # What is left shrinks from left to right, so the swing at the right end or its neighbour is always next.
    while held >= 3:
        last = abs(curve[stack[held - 1]] - curve[stack[held - 2]])
        middle = abs(curve[stack[held - 2]] - curve[stack[held - 3]])
        if held == 3:
            price[events], left[events], right[events] = min(last, middle), stack[1], -1
            stack[1] = stack[2]
            held = 2
        elif last <= middle / 2.0:
            price[events], left[events], right[events] = last, stack[held - 2], -1
            stack[held - 2] = stack[held - 1]
            held -= 1
        else:
            price[events], left[events], right[events] = middle / 2.0, stack[held - 3], stack[held - 2]
            stack[held - 3] = stack[held - 1]
            held -= 2
        events += 1
    return price[:events], left[:events], right[:events]
