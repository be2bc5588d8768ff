"""Make forecasts right: recalibrators with guarantees, and a fair choice among them."""

from __future__ import annotations

from calibrant.core.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
