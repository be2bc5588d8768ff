"""What is handed on: unknown options are refused at once, and arguments have the names that a tool gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import Parameter, signature
from typing import Any

from calibrant.core.voices import Voice


class InTool(Voice):
    """The gate's messages with the names that a tool has for forecasts and outcomes."""

    def __init__(self, *, y_prob: str, y_true: str) -> None:
        self._names = {"y_prob": y_prob, "y_true": y_true}

    def argument(self, name: str, position: int | None, column: str | None) -> str:
        """Name an argument of the tool."""
        return super().argument(self._names.get(name, name), position, column)


def check_options(caller: str, function: Callable[..., Any], options: Iterable[str], *, taken: Iterable[str]) -> None:
    """Refuse an option that a function lacks, or that its caller sets itself."""
    keywords = (name for name, each in signature(function).parameters.items() if each.kind is Parameter.KEYWORD_ONLY)
    known = [name for name in keywords if name not in set(taken)]
    for name in options:
        if name not in known:
            raise TypeError(f"{caller} has no option {name!r}; it has {', '.join(known)}")
