"""Coins that send rows to halves: drawn from a seed and from what the rows are, never from their order."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt


def digest(name: str, *columns: npt.NDArray[Any]) -> str:
    """Return what tells columns of numbers apart, the same on every machine."""
    written = (np.ascontiguousarray(column, dtype="<f8").tobytes() for column in columns)
    return hashlib.sha256(name.encode() + b"".join(written)).hexdigest()


def seeded(seed: int, purpose: str, fingerprint: str) -> np.random.Generator:
    """Return a generator whose stream shares nothing with that of another seed, purpose or fingerprint."""
    mixed = hashlib.sha256(f"calibrant {purpose}; seed {seed}; {fingerprint}".encode())
    return np.random.default_rng(int.from_bytes(mixed.digest(), "little"))
