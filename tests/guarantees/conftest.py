"""Simulations judge thousands of short samples, for which a loop is worth compiling."""

import pytest

from calibrant.core import kernels


@pytest.fixture(autouse=True)
def _compiled_loops(monkeypatch):
    """Run every loop compiled, as for long samples; tests/core/test_kernels.py holds it to what it gives plain."""
    monkeypatch.setattr(kernels, "PLAIN_LIMIT", 0)
