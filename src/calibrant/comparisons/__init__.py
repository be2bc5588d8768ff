"""Which of several models: their errors on the same rows side by side, with limits that hold together."""

from __future__ import annotations

from calibrant.core.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
