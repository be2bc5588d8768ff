"""calibrant: decide whether probability forecasts can be trusted and acted on.

What most users need most days is here; the rest is in a module of its subject, as in ``calibrant.measures``. Names are
listed in ``__init__.pyi`` and load on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from calibrant.core.lazy import attach

__version__ = "0.2.0"

__getattr__, __dir__ = attach(__name__, __file__)
