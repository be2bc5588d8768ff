"""Coins that send rows to halves: drawn from a seed and from what the rows are, never from their order."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.types import IntArray


def tossed(
    count: IntArray, coins: IntArray, alone: npt.NDArray[np.bool_], tied: np.random.Generator | None
) -> IntArray:
    """Return how many of each count come up heads: by the coin of a single row, or fresh ones where rows are tied."""
    heads = count * coins
    if tied is not None:
        heads[~alone] = tied.binomial(count[~alone], 0.5)
    return heads


def digest(name: str, *columns: npt.NDArray[Any]) -> str:
    """Return what tells columns of numbers apart, the same on every machine."""
    written = (np.ascontiguousarray(column, dtype="<f8").tobytes() for column in columns)
    return hashlib.sha256(name.encode() + b"".join(written)).hexdigest()


def seeded(seed: int, purpose: str, fingerprint: str) -> np.random.Generator:
    """Return a generator whose stream shares nothing with that of another seed, purpose or fingerprint."""
    mixed = hashlib.sha256(f"calibrant {purpose}; seed {seed}; {fingerprint}".encode())
    return np.random.default_rng(int.from_bytes(mixed.digest(), "little"))
