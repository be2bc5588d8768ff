"""Data frames that go out: of the library whose frames came in, or else of the one that the user has loaded."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import wraps
from types import ModuleType
from typing import Any, ClassVar, ParamSpec, TypeVar

from calibrant.core.errors import InputError

LIBRARIES = ("pandas", "polars", "pyarrow")
"""Whose frames can go out without help, in the order in which they are tried."""

_FEW = 8
"""Of a list only so many entries are looked at: long ones hold numbers."""

Given = ParamSpec("Given")
Returned = TypeVar("Returned")

_CAME_IN: ContextVar[str | None] = ContextVar("calibrant_frames_in", default=None)
"""The library in which the rows of the call under way came in; there is none between calls."""


class FromFrames:
    """What remembers the library in which the rows that it is made of came in."""

    _came_in: ClassVar[str | None] = None

    def _remember(self) -> None:
        """Keep in mind the library of the call under way, if it has one."""
        library = _CAME_IN.get()
        if library is not None:
            vars(self)["_came_in"] = library

    def _framed(self, columns: dict[str, Any], backend: Any = None) -> Any:
        """Return columns as a data frame of the library that ``backend`` names, or else of the rows' own."""
        return as_frame(columns, backend, self._came_in)


def frames_follow(call: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Have what a public call returns remember the library in which the rows of this very call came in.

    So does every result that is made until then, by calls inside this one too, which are handed arrays.
    """

    @wraps(call)
    def followed(*given: Given.args, **options: Given.kwargs) -> Returned:
        library = _library_of((*given, *options.values()), _CAME_IN.get())
        if library is None:
            return call(*given, **options)
        before = _CAME_IN.set(library)
        try:
            found = call(*given, **options)
            if isinstance(found, FromFrames):
                found._remember()
            return found
        finally:
            _CAME_IN.reset(before)

    return followed


def _library_of(values: Iterable[Any], otherwise: str | None = None) -> str | None:
    """Return the library of the first column or frame among arguments, or that which one of them remembers."""
    for each in values:
        library: str | None = type(each).__module__.partition(".")[0]
        if library == "narwhals":
            library = _library_of([each.to_native()]) if hasattr(each, "to_native") else None
        elif isinstance(each, (dict, list, tuple)):  # models and columns that come together
            library = _library_of(each.values() if isinstance(each, dict) else each[:_FEW])
        elif isinstance(each, FromFrames):
            otherwise = otherwise or each._came_in
        if library in LIBRARIES:
            return library
    return otherwise


def as_frame(columns: dict[str, Any], backend: Any = None, came_in: str | None = None) -> Any:
    """Return columns as a data frame.

    ``backend`` is the library, by name or as a module. Without one it is the library whose frames ``came_in``, or else
    the first of `LIBRARIES` that is loaded, or else the first that is installed: nothing is imported that somebody else
    did not choose. Frames of other libraries than these are made by narwhals.
    """
    name = backend.__name__ if isinstance(backend, ModuleType) else backend or came_in or _usual()
    if name in LIBRARIES:
        try:
            module = importlib.import_module(name)
        except ImportError as missing:
            raise _not_installed(name) from missing
        return module.table(columns) if name == "pyarrow" else module.DataFrame(columns)
    try:
        narwhals = importlib.import_module("narwhals")
    except ImportError as missing:
        raise _not_installed("narwhals", f"frames of {name} need narwhals") from missing
    try:
        return narwhals.from_dict(columns, backend=backend).to_native()
    except ImportError as missing:
        raise _not_installed(name) from missing
    except (AssertionError, TypeError, ValueError) as unknown:  # which of them depends on narwhals
        raise InputError(
            f"is {name!r}, a library in which narwhals makes no frames",
            argument="backend",
            value=name,
            remedy=f"choose one of {', '.join(LIBRARIES)}",
        ) from unknown


def _not_installed(name: str, problem: str = "") -> ImportError:
    return ImportError(
        f"{problem or f'frames of {name} need {name}'}; install it with: pip install {name}, or choose one of "
        f"{', '.join(LIBRARIES)}"
    )


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
