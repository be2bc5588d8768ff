"""The loops over thresholds of a real outcome: what changes as a threshold rises, kept in a tree of few leaves.

A forecast that is a step function takes few values, the levels. A leaf is a level; it counts the rows whose forecast is
at that level, and those of them whose outcome the threshold has passed. Every step of a row moves it to the next leaf,
so that only the nodes above two leaves change. They are compiled as the loops of `core.kernels` are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calibrant.core.kernels import Kernel
from calibrant.core.types import BoolArray, FloatArray, IntArray

Kinds = npt.NDArray[np.uint8]
"""What a step is: 0 for a forecast that rises, 1 for one that rises after the outcome was passed, 2 for an outcome."""


@Kernel
def prefix_ranges(leaf: IntArray, kind: Kinds, last: BoolArray, levels: FloatArray, rows: int) -> FloatArray:
    """Range of the residual curve over the levels, at the end of every run of steps at one threshold.

    Step k moves a row from leaf[k] to the next one (kinds 0 and 1) or marks it at leaf[k] as an event (kind 2);
    last[k] says that the next step is at another threshold. All ``rows`` begin at level 0, none of them an event. The
    curve is the sum of events minus level times rows over the lowest levels, none included.
    """
    size = 1
    while size < levels.size:
        size *= 2
    nodes = np.zeros((2 * size, 3))  # the sum, and the largest and smallest sum of leaves from the first on
    count = np.zeros(levels.size + 1)
    events = np.zeros(levels.size + 1)
    count[0] = rows
    found = np.empty(last.sum())
    number = 0
    for k in range(leaf.size):
        one = leaf[k]
        two = one
        if kind[k] == 2:
            events[one] += 1.0
        else:
            two = one + 1
            count[one] -= 1.0
            count[two] += 1.0
            if kind[k] == 1:
                events[one] -= 1.0
                events[two] += 1.0
        for j in range(one, two + 1):
            value = events[j] - levels[j] * count[j]
            nodes[size + j, 0] = value
            nodes[size + j, 1] = max(value, 0.0)
            nodes[size + j, 2] = min(value, 0.0)
        one, two = (size + one) // 2, (size + two) // 2
        while one > 0:
            for j in range(one, two + 1):
                left, right = nodes[2 * j], nodes[2 * j + 1]
                nodes[j, 0] = left[0] + right[0]
                nodes[j, 1] = max(left[1], left[0] + right[1])
                nodes[j, 2] = min(left[2], left[0] + right[2])
            one, two = one // 2, two // 2
        if last[k]:
            found[number] = nodes[1, 1] - nodes[1, 2]
            number += 1
    return found


@Kernel
def largest_runs(
    leaf: IntArray, kind: Kinds, last: BoolArray, event_score: FloatArray, other_score: FloatArray, rows: int
) -> float:
    """Largest sum of scores over neighbouring levels at any threshold, and 0 at least.

    The steps are those of `prefix_ranges`; scores are those of an event and of another row at each level.
    """
    levels = event_score.size
    size = 1
    while size < levels:
        size *= 2
    nodes = np.zeros((2 * size, 4))  # the sum, and the largest sums from the first leaf on, up to the last, and inside
    count = np.zeros(levels + 1)
    events = np.zeros(levels + 1)
    count[0] = rows
    found = 0.0
    for k in range(-1, leaf.size):
        one = 0 if k < 0 else leaf[k]  # before the first step all rows are entered at the first leaf
        two = one
        if k >= 0 and kind[k] == 2:
            events[one] += 1.0
        elif k >= 0:
            two = one + 1
            count[one] -= 1.0
            count[two] += 1.0
            if kind[k] == 1:
                events[one] -= 1.0
                events[two] += 1.0
        for j in range(one, two + 1):
            value = events[j] * event_score[j] + (count[j] - events[j]) * other_score[j]
            nodes[size + j, 0] = value
            for column in range(1, 4):
                nodes[size + j, column] = max(value, 0.0)
        one, two = (size + one) // 2, (size + two) // 2
        while one > 0:
            for j in range(one, two + 1):
                left, right = nodes[2 * j], nodes[2 * j + 1]
                nodes[j, 0] = left[0] + right[0]
                nodes[j, 1] = max(left[1], left[0] + right[1])
                nodes[j, 2] = max(right[2], right[0] + left[2])
                nodes[j, 3] = max(max(left[3], right[3]), left[2] + right[1])
            one, two = one // 2, two // 2
        if k < 0 or last[k]:
            found = max(found, nodes[1, 3])
    return found
