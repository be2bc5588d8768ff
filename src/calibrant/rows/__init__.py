"""Rows, from raw input to ordered totals: the gate, the door, the two summaries, exact answers from any source."""

from __future__ import annotations

from calibrant.core.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
