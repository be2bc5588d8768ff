"""Write the JSON Schema of every public result: ``python docs/schemas/write.py`` writes it beside this file."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import calibrant
from calibrant.core.results import Result
from calibrant.core.schemas import schema_of_all

FILE = Path(__file__).parent / "results.json"


def public_results() -> set[type[Result]]:
    """Return the kinds of result among the public names: those at the top and those one room down."""
    top = [getattr(calibrant, name) for name in calibrant.__all__]
    rooms = [each for each in top if isinstance(each, ModuleType)]
    offered = [*top, *(getattr(room, name) for room in rooms for name in room.__all__)]
    return {each for each in offered if isinstance(each, type) and issubclass(each, Result)}


def text() -> str:
    """Return what the file holds."""
    return json.dumps(schema_of_all(public_results()), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
