"""Simulations judge thousands of short samples, for which a loop is worth compiling."""

import pytest

from calibrant.core import kernels
from calibrant.rows import savings


@pytest.fixture(autouse=True)
def _compiled_loops(monkeypatch):
    """Run every loop compiled, as for long samples.

    tests/core/test_kernels.py holds it to what it gives plain, and tests/rows/test_savings.py to what arrays give.
    """
    monkeypatch.setattr(kernels, "PLAIN_LIMIT", 0)
    monkeypatch.setattr(savings, "_FEW", 0)
    monkeypatch.setattr(savings, "_COMPILED", 0)
