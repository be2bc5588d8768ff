"""Levels at which each of several statements must hold so that all of them hold together.

Whatever depends on whatever: the chances of being wrong add up at most, so each statement gets an equal part of delta.
"""

from __future__ import annotations


def delta_of_each(delta: float, count: int) -> float:
    """Return how often each of so many statements may be wrong, for all to be right except with probability delta.

    Examples
    --------
    >>> delta_of_each(0.05, 5)
    0.01
    """
    return delta / count


def level_of_each(confidence_level: float, count: int) -> float:
    """Return the confidence level of each of so many statements that hold together with the given one.

    Examples
    --------
    >>> level_of_each(0.9, 4)
    0.975
    """
    return 1.0 - delta_of_each(1.0 - confidence_level, count)


def level_of_both(confidence_level: float) -> float:
    """Return how surely two statements hold together that hold with the given level each; 0 when nothing is sure.

    Examples
    --------
    >>> level_of_both(0.95)
    0.9
    """
    return max(round(1.0 - 2.0 * (1.0 - confidence_level), 12), 0.0)
