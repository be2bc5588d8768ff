"""Every public name, whether at the top or one room down, with the room that offers it."""

import importlib
from typing import Any

ROOMS = (
    "adapters",
    "certificates",
    "classifiers",
    "comparisons",
    "decisions",
    "displays",
    "engines",
    "measures",
    "monitors",
    "repairs",
    "reports",
    "rows",
    "validations",
)


def names_of(room: str = "") -> list[str]:
    """Return the names that a room lists, or the front hall."""
    listed: list[str] = importlib.import_module(f"calibrant.{room}".rstrip(".")).__all__
    return listed


HOME = {name: f"calibrant.{room}" for room in ROOMS for name in names_of(room)}
TOP = [name for name in names_of() if name not in ROOMS]
EVERYWHERE = sorted({*HOME, *TOP})


def public(name: str) -> Any:
    """Return what a public name stands for."""
    return getattr(importlib.import_module(HOME.get(name, "calibrant")), name)
