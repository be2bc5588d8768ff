"""Curves of many points made small enough to draw, without moving an extreme."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from calibrant.core.types import FloatArray, IntArray

MOST_POINTS = 2000
"""A curve is drawn through at most so many points (and those that must be kept): more than a plot has pixels across."""


def thinned(
    value: FloatArray, *positions: FloatArray, keep: Iterable[int] = (), most_points: int = MOST_POINTS
) -> IntArray:
    """Return the positions, in order, of points that stand for a whole curve.

    Each axis that the curve may be drawn against is cut into stretches of equal width, and from every stretch the
    lowest and the highest point are kept; so are the first point, the last, and those in ``keep``. Hence the smallest
    and the largest value survive exactly, as does the range of every stretch. A curve of at most ``most_points`` points
    is returned whole.

    Parameters
    ----------
    value : array of shape (n,)
        The curve's values.
    *positions : arrays of shape (n,)
        Where they are drawn, non-decreasing: one array for each axis it may be drawn against.
    keep : iterable of int
        Points that must survive.
    most_points : int
        Points to return, not counting the ends and ``keep``.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.displays.thinning import thinned
    >>> place = np.arange(10.0)
    >>> value = np.array([0.0, 5.0, 1.0, 1.0, -3.0, -1.0, 0.0, 2.0, 0.0, 0.0])
    >>> thinned(value, place, most_points=4)
    array([0, 1, 4, 5, 7, 9])
    """
    if value.size <= most_points:
        return np.arange(value.size)
    stretches = max(1, most_points // (2 * len(positions)))
    kept = [np.array([0, value.size - 1]), np.fromiter(keep, dtype=np.int64)]
    for position in positions:
        borders = np.linspace(position[0], position[-1], stretches + 1)[1:-1]
        ends = np.unique(np.concatenate([[0], np.searchsorted(position, borders), [value.size]]))
        for begin, end in pairwise(ends.tolist()):
            stretch = value[begin:end]
            kept.append(begin + np.array([stretch.argmin(), stretch.argmax()]))
    return np.unique(np.concatenate(kept))
