"""Where people already are: calibrant inside the tools that train, test, track and serve models.

Each module knows one tool, and imports it only where somebody uses it.
"""

from __future__ import annotations

from calibrant.core.lazy import attach

__getattr__, __dir__ = attach(__name__, __file__)
