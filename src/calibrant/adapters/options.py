"""Options that are handed on: one that nobody knows is refused at once, and not inside another tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import Parameter, signature
from typing import Any


def check_options(caller: str, function: Callable[..., Any], options: Iterable[str], *, taken: Iterable[str]) -> None:
    """Refuse an option that a function lacks, or that its caller sets itself."""
    keywords = (name for name, each in signature(function).parameters.items() if each.kind is Parameter.KEYWORD_ONLY)
    known = [name for name in keywords if name not in set(taken)]
    for name in options:
        if name not in known:
            raise TypeError(f"{caller} has no option {name!r}; it has {', '.join(known)}")
