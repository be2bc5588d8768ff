"""Can one say so, with what guarantee? Verdicts, limits, bands, tests and plans."""

from __future__ import annotations

from calibrant.core.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
