"""The loops over curves of residuals: the best smooth weight, and the order in which swings are given up.

They are compiled as those of `core.kernels` are.
"""

from __future__ import annotations

import heapq

import numpy as np

from calibrant.core.kernels import Kernel
from calibrant.core.types import FloatArray, IntArray


@Kernel
def smooth_fit(curve: FloatArray, gap: FloatArray, keep_fit: bool) -> tuple[float, FloatArray]:
    """Weighted L1 isotonic fit of a curve, with values kept between 0 and the curve's end.

    ``curve`` holds C_1..C_m with C_m >= 0, ``gap`` the m-1 weights. Returns C_m plus the cost of the best fit
    min sum gap_k |C_k - M_k| over nondecreasing M_k in [0, C_m], and the fit M_1..M_{m-1} itself (empty unless asked
    to keep it).

    The cost of the points so far, as a function of the latest M, is convex; its slope changes are kept as (value,
    mass). Each point adds mass 2 gap at its value clipped to [0, C_m] and takes mass gap off the highest value; the
    highest that is left is where the cost is smallest. Going back from the last point, M_k is that place or M_{k+1},
    whichever is lower. Values that rise go onto a stack at no cost, only the others need a heap; the bottom of the
    stack is 0, which never runs out.
    """
    points = curve.size
    end = curve[points - 1]
    cost = end
    fit = np.empty(points - 1 if keep_fit else 0)
    rising = [(0.0, np.inf)]
    heap = [(0.0, 0.0)]  # (minus the value, mass): heapq keeps the smallest first
    heap.pop()
    for k in range(points - 1):
        value = min(max(curve[k], 0.0), end)
        cost += gap[k] * abs(curve[k] - value)
        own, remaining = 2.0 * gap[k], gap[k]
        while remaining > 0.0:
            top, mass = rising[-1]
            in_heap = len(heap) > 0 and -heap[0][0] > top
            if in_heap:
                top, mass = -heap[0][0], heap[0][1]
            if top <= value:
                own -= remaining
                break
            taken = min(mass, remaining)
            cost += taken * (top - value)
            remaining -= taken
            if in_heap:
                if taken == mass:
                    heapq.heappop(heap)
                else:
                    heap[0] = (-top, mass - taken)  # the order of equal values does not matter
            elif taken == mass:
                rising.pop()
            else:
                rising[-1] = (top, mass - taken)
        top, mass = rising[-1]
        if value > top:
            rising.append((value, own))
        elif value == top:
            rising[-1] = (top, mass + own)
        else:
            heapq.heappush(heap, (-value, own))
        if keep_fit:
            fit[k] = rising[-1][0]
            if len(heap) > 0:
                fit[k] = max(fit[k], -heap[0][0])
    for k in range(fit.size - 2, -1, -1):
        fit[k] = min(fit[k], fit[k + 1])
    return cost, fit


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
