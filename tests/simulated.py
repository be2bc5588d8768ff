"""Counting how often simulated limits are wrong, with as many runs as the answer takes.

A limit that is wrong with probability delta at most may be wrong in `allowed` of `count` runs. Most limits are wrong so
seldom that a fraction of the runs shows it, and then the rest is left out. What decides that is a bet on few misses, at
odds that are fair for a limit which all runs would catch in half of the cases: whatever its misses, its stake becomes
a hundredfold with probability 1/100 at most (Ville), so that ending early hides it no more often than that, and any
that is worse less often. See test_simulated.py in tests/guarantees.
"""

import functools
import math
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from scipy.stats import binom

FALSE_ALARM = 1e-4
HIDDEN = 0.01
"""How often, at most, ending early hides a limit that all runs would catch in half of the cases or more."""


def replicates(count: float) -> int:
    """Return how many runs to make where so many are usual: CALIBRANT_REPLICATES times as many."""
    return max(1, round(count * float(os.environ.get("CALIBRANT_REPLICATES", "1"))))


@functools.cache
def allowed(count: int, delta: float) -> int:
    """Return the misses that a correct limit exceeds in one of 10,000 repetitions of so many runs."""
    return int(binom.isf(FALSE_ALARM, count, delta))


@functools.cache
def _steps(count: int, most: int) -> tuple[float, float]:
    """Return what the logarithm of the stake gains by a run without a miss, and by a miss."""
    caught = min((most + 1) / count, 1.0)  # at which more misses than allowed are as likely as not
    hoped = caught / 3.0
    return math.log((1.0 - hoped) / (1.0 - caught)) if caught < 1.0 else math.inf, math.log(hoped / caught)


def is_plain(misses: int, runs: int, count: int, most: int) -> bool:
    """Return whether so few misses in the first runs leave no doubt, or whether none of those to come can matter."""
    if misses + count - runs <= most:
        return True
    hit, miss = _steps(count, most)
    return runs > misses and (runs - misses) * hit + misses * miss >= -math.log(HIDDEN)


def runs_needed(
    missed: Mapping[Any, int], count: int, most: int | Callable[[Any], int], at_least: int = 1
) -> Iterator[int]:
    """Number the runs until every count of misses, all of which the first run begins, is plainly small: at most all."""
    for run in range(count):
        yield run
        if (
            missed
            and run + 1 >= at_least
            and all(
                is_plain(misses, run + 1, count, most if isinstance(most, int) else most(key))
                for key, misses in missed.items()
            )
        ):
            return
