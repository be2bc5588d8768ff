"""Calls side by side, for work that spends its time in compiled loops, and sums that start no threads of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Given = TypeVar("Given")
Returned = TypeVar("Returned")

_THREADS = 2
"""Calls that run at the same time: each takes memory of its own, and few machines have a single processor."""

_MANY_ROWS = 100_000
"""With fewer rows, calls take turns: they are over before threads are."""

_PIECE = 8192
"""Numbers that linear algebra adds up in one thread, wherever it comes from."""


def in_threads(call: Callable[[Given], Returned], given: Iterable[Given], *, rows: int) -> list[Returned]:
    """Return what a call makes of each of several things, in their order, side by side where each has many rows.

    What is raised is the first error in that order. What is known of the call under way is known to all of them.
    """
    if rows < _MANY_ROWS:
        return list(map(call, given))
    from concurrent.futures import ThreadPoolExecutor

    here = copy_context()
    with ThreadPoolExecutor(_THREADS) as threads:
        return list(threads.map(lambda each: here.copy().run(call, each), given))


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep linear algebra to one thread: on matrices as small as ours, further ones spend their time on waiting."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield


def total_of_products(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> float:
    """Return the sum of products of two columns, piece by piece.

    Linear algebra divides longer columns among threads, which then wait for more work on processors that ours need; and
    sums would round otherwise on machines with another number of them.
    """
    if one.size <= _PIECE:
        return float(one @ other)
    whole = one.size - one.size % _PIECE
    pieces = np.einsum("ij,ij->i", one[:whole].reshape(-1, _PIECE), other[:whole].reshape(-1, _PIECE))
    return float(pieces.sum()) + float(one[whole:] @ other[whole:])
