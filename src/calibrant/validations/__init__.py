"""What a validation study reports: every number with its interval, corrected for optimism where a model is refitted."""

from __future__ import annotations

from calibrant.core.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
