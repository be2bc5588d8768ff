"""Calls side by side, for work that spends its time in compiled loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Given = TypeVar("Given")
Returned = TypeVar("Returned")

_THREADS = 2
"""Calls that run at the same time: each takes memory of its own, and few machines have a single processor."""

_MANY_ROWS = 100_000
"""With fewer rows, calls take turns: they are over before threads are."""


def in_threads(call: Callable[[Given], Returned], given: Iterable[Given], *, rows: int) -> list[Returned]:
    """Return what a call makes of each of several things, in their order, side by side where each has many rows.

    What is raised is the first error in that order.
    """
    if rows < _MANY_ROWS:
        return list(map(call, given))
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_THREADS) as threads:
        return list(threads.map(call, given))
