"""Public names that load on first use: each package lists its own in the stub beside its ``__init__.py``.

A type checker reads the stub as it is, and so does `attach`, so that a name is listed once and nothing is imported
before somebody uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a package whose stub lists what it offers.

    Parameters
    ----------
    package : str
        The package's ``__name__``.
    file : str
        Its ``__file__``; the stub has the same name and ends in ``.pyi``.
    """
    homes: dict[str, str | None] = {}

    def listed() -> dict[str, str | None]:
        if not homes:
            homes.update(_homes(f"{file.rpartition('.')[0]}.pyi", package))
        return homes

    def load(name: str) -> Any:
        if name == "__all__":
            return sorted(listed())
        if name.startswith("_") or name not in listed():
            raise AttributeError(f"module {package!r} has no attribute {name!r}{_elsewhere(name, package, listed())}")
        home = listed()[name]
        value = import_module(f"{package}.{name}") if home is None else getattr(import_module(home), name)
        vars(import_module(package))[name] = value
        return value

    def names() -> list[str]:
        own = [name for name in vars(import_module(package)) if name.startswith("__")]
        return sorted({*listed(), *own})

    return load, names


def _elsewhere(name: str, package: str, listed: dict[str, str | None]) -> str:
    """Say in which package inside this one a name is, if in any; their stubs are read, nothing is imported."""
    if name.startswith("_"):
        return ""
    from importlib.util import find_spec  # which nobody needs who asks for names that are there

    for room in sorted(each for each, home in listed.items() if home is None):
        found = find_spec(f"{package}.{room}")
        if found is not None and found.origin is not None:
            stub = f"{found.origin.rpartition('.')[0]}.pyi"
            if name in _homes(stub, f"{package}.{room}"):
                return f"; it is in {package}.{room}: from {package}.{room} import {name}"
    return ""


def _homes(stub: str, package: str) -> dict[str, str | None]:
    """Return where each name of a stub comes from; None for a package inside this one."""
    import ast  # which nobody waits for who only imports the package

    with open(stub, encoding="utf-8") as file:
        statements = ast.parse(file.read()).body
    return {
        alias.asname or alias.name: None if statement.module == package else statement.module
        for statement in statements
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
