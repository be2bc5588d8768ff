"""Does it stay right? Limits, verdicts and alarms for forecasts that keep coming, right however often one looks."""

from __future__ import annotations

from calibrant.core.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
