"""How wrong are the forecasts? Every measure of calibration, what attains it, and all of them at once."""

from __future__ import annotations

from calibrant.core.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
