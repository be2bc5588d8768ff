"""Coins that send rows or clusters to parts: drawn from a seed and what they hold, never from their order or names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.types import IntArray

Marks = npt.NDArray[np.uint64]
"""A number per row or cluster that what it holds decides: equal for the same, different for all else we will meet."""

_STEP = np.uint64(0x9E3779B97F4A7C15)  # the constants of SplitMix64
_MIXERS = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST = np.uint64(31)


def digest(name: str, *columns: npt.NDArray[Any]) -> str:
    """Return what tells columns of numbers apart, the same on every machine."""
    read = hashlib.sha256(name.encode())
    for column in columns:
        read.update(np.ascontiguousarray(column, dtype="<f8").data)
    return read.hexdigest()


def seeded(seed: int, purpose: str, fingerprint: str) -> np.random.Generator:
    """Return a generator whose stream shares nothing with that of another seed, purpose or fingerprint."""
    mixed = hashlib.sha256(f"calibrant {purpose}; seed {seed}; {fingerprint}".encode())
    return np.random.default_rng(int.from_bytes(mixed.digest(), "little"))


def row_marks(columns: Iterable[npt.NDArray[Any]], rows: int) -> Marks:
    """Return a mark for each row of columns of numbers."""
    marks = np.zeros(rows, dtype=np.uint64)
    for column in columns:
        number = np.asarray(column, dtype=np.float64) + 0.0  # one zero, and below one way to be missing
        bits = np.ascontiguousarray(np.where(np.isnan(number), np.nan, number)).view(np.uint64)
        marks = mixed_marks(marks ^ mixed_marks(bits))
    return marks


def cluster_order(codes: IntArray, marks: Marks, seed: int) -> IntArray:
    """Return the clusters in an order drawn from a seed and the marks of their rows.

    ``codes`` numbers the cluster of each row from 0 on without gaps. Clusters that hold the same draw each for itself:
    which is which makes no difference then.
    """
    by_cluster = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[by_cluster], np.arange(int(codes.max()) + 1))
    held = np.add.reduceat(mixed_marks(marks)[by_cluster], starts)  # a sum, whatever the order of the rows
    order = np.argsort(held, kind="stable")
    begins = np.concatenate([[True], held[order][1:] != held[order][:-1]])
    twin = np.empty(held.size, dtype=np.uint64)
    twin[order] = np.arange(held.size) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    drawn = mixed_marks(mixed_marks(held ^ mixed_marks(np.full(1, seed, dtype=np.uint64))) + twin * _STEP)
    return np.argsort(drawn, kind="stable")


def mixed_marks(marks: Marks) -> Marks:
    """Return marks whose bits say nothing of each other any more."""
    found = marks + _STEP
    for shift, factor in _MIXERS:
        found = (found ^ (found >> shift)) * factor
    return found ^ (found >> _LAST)
