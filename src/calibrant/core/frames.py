"""Data frames that go out: of the library whose frames came in, or else of the one that the user has loaded."""

from __future__ import annotations

import importlib
import sys
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from calibrant.core.errors import InputError

LIBRARIES = ("pandas", "polars", "pyarrow")
"""Whose frames can go out without help, in the order in which they are tried."""

_CAME_IN: ContextVar[str | None] = ContextVar("calibrant_frames_in", default=None)


def note_libraries(*columns: Any) -> None:
    """Keep in mind which library columns or frames came from, the first of those that did; none for arrays."""
    names = (type(each).__module__.partition(".")[0] for each in columns)
    _CAME_IN.set(next((name for name in names if name in LIBRARIES), None))


def library_in() -> str | None:
    """Return the library of what came in last, where it is one of data frames."""
    return _CAME_IN.get()


def as_frame(columns: dict[str, Any], backend: Any = None, came_in: str | None = None) -> Any:
    """Return columns as a data frame.

    ``backend`` is the library, by name or as a module. Without one it is the library whose frames ``came_in``, or else
    the first of `LIBRARIES` that is loaded, or else the first that is installed: nothing is imported that somebody else
    did not choose. Frames of other libraries than these are made by narwhals.
    """
    name = backend.__name__ if isinstance(backend, ModuleType) else backend or came_in or _usual()
    if name not in LIBRARIES:
        try:
            narwhals = importlib.import_module("narwhals")
        except ImportError as missing:
            raise ImportError(
                f"frames of {name} need narwhals; install it with: pip install narwhals, or choose one of "
                f"{', '.join(LIBRARIES)}"
            ) from missing
        try:
            return narwhals.from_dict(columns, backend=backend).to_native()
        except (AssertionError, TypeError, ValueError) as unknown:  # which of them depends on narwhals
            raise InputError(
                f"is {name!r}, a library in which narwhals makes no frames",
                argument="backend",
                value=name,
                remedy=f"choose one of {', '.join(LIBRARIES)}",
            ) from unknown
    module = importlib.import_module(name)
    return module.table(columns) if name == "pyarrow" else module.DataFrame(columns)


def _usual() -> str:
    """Return the library that is loaded, or the first that is installed."""
    for name in LIBRARIES[:2]:  # pyarrow is loaded by many who have no use for it
        if sys.modules.get(name) is not None:
            return name
    for name in LIBRARIES:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        return name
    raise ImportError("frame() needs pandas, polars or pyarrow; install one of them, as in: pip install pandas")
