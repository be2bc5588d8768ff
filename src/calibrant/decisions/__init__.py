"""What does acting on the forecasts cost, and what could a better threshold or a repair save?"""

from __future__ import annotations

from calibrant.core.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
