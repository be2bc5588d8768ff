"""The reference: a page for every public name, written from the lists in ``__init__.pyi`` and the docstrings."""

from __future__ import annotations

import importlib
import inspect
import json
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

import calibrant
from calibrant.core.results import Result

DOCUMENTS = Path(__file__).parents[1]
TITLES = {
    "measures": "Measure: how wrong are the forecasts?",
    "certificates": "Certify: what can be said of cases to come?",
    "decisions": "Decide: what does that cost?",
    "repairs": "Repair: better forecasts",
    "classifiers": "Classifiers that repair and certify themselves",
    "comparisons": "Compare: which model is better?",
    "monitors": "Watch: does it stay right?",
    "validations": "Validate: a whole study",
    "reports": "Report: a page to forward",
    "displays": "Plots",
    "rows": "Rows: what the functions take",
    "engines": "Engines: rows that stay where they are",
    "adapters": "Adapters: other tools that ask the same questions",
}
"""The rooms in the order in which one meets them."""


def names_in(module: ModuleType) -> list[str]:
    """Return the public names of a module."""
    return list(module.__all__)


def rooms() -> dict[str, list[str]]:
    """Return the public names by room."""
    found = {name for name in names_in(calibrant) if isinstance(getattr(calibrant, name), ModuleType)}
    if found != set(TITLES):
        raise ValueError(f"the reference has no title for {sorted(found ^ set(TITLES))}")
    listed = {room: names_in(importlib.import_module(f"calibrant.{room}")) for room in TITLES}
    placed = {name for names in listed.values() for name in names}
    return listed | {"errors": [name for name in names_in(calibrant) if name not in placed | found]}


@cache
def pages_by_name() -> dict[str, str]:
    """Return the page of each name, by the name alone and by what one types."""
    listed = rooms()
    alone = {name: f"reference/api/{room}/{name}" for room, names in listed.items() for name in names}
    inside = {f"{room}.{name}": f"reference/api/{room}/{name}" for room, names in listed.items() for name in names}
    return alone | inside


def module_of(room: str) -> ModuleType:
    """Return the module that offers the names of a room: errors have no room of their own."""
    return calibrant if room == "errors" else importlib.import_module(f"calibrant.{room}")


@cache
def things_by_page() -> dict[str, Any]:
    """Return what each page of a public name is about."""
    listed = rooms()
    return {
        f"reference/api/{room}/{name}": getattr(module_of(room), name)
        for room, names in listed.items()
        for name in names
    }


@cache
def terms_by_field() -> dict[str, str]:
    """Return the term of the glossary for each field of a result that has one."""
    found: dict[str, str] = json.loads((DOCUMENTS / "glossary_fields.json").read_text(encoding="utf-8"))
    return found


def full_name(room: str, name: str) -> str:
    """Return what one types: names that most users need are at the top."""
    return f"calibrant.{name}" if name in names_in(calibrant) else f"calibrant.{room}.{name}"


def summary(thing: Any) -> str:
    """Return the first sentence of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def is_result(thing: Any) -> bool:
    """Return whether something is a kind of result."""
    return isinstance(thing, type) and issubclass(thing, Result)


def underlined(title: str, line: str = "=") -> str:
    """Return a title."""
    return f"{title}\n{line * len(title)}\n"


def name_page(room: str, name: str) -> str:
    """Return the page of one name."""
    full, thing = full_name(room, name), getattr(module_of(room), name)
    if inspect.isclass(thing):
        elsewhere = ", ".join(base.__name__ for base in thing.__mro__ if not base.__module__.startswith("calibrant"))
        directive = f".. autoclass:: {full}\n   :members:\n   :inherited-members: {elsewhere}\n"
    elif callable(thing):
        directive = f".. autofunction:: {full}\n"
    else:
        directive = f".. autodata:: {full}\n   :no-value:\n"
    return f"{underlined(name)}\n{directive}"


def room_page(room: str, names: list[str]) -> str:
    """Return the page of one room: a line for each name, what one calls before the results that come back."""
    module = module_of(room)
    title = TITLES.get(room, "Errors and warnings")
    words = inspect.getdoc(module) if room in TITLES else "What is raised, and what is warned of."
    returned = {name for name in names if is_result(getattr(module, name))}
    ordered = sorted(names, key=lambda name: (name in returned, name.lower()))
    lines = [
        f":doc:`{full_name(room, name)} <{room}/{name}>`\n   {summary(getattr(module, name))}\n" for name in ordered
    ]
    if returned:
        lines.insert(len(names) - len(returned), underlined("What comes back", "-"))
    pages = "".join(f"   {name} <{room}/{name}>\n" for name in ordered)
    return f"{underlined(title)}\n{words}\n\n{chr(10).join(lines)}\n.. toctree::\n   :hidden:\n\n{pages}"


def index_page(listed: dict[str, list[str]]) -> str:
    """Return the page that leads to the rooms."""
    pages = "".join(f"   {room}\n" for room in listed)
    count = sum(map(len, listed.values()))
    words = (
        f"All {count} public names, by subject. What most users need most days is in ``calibrant`` itself, and the "
        "rest in a module of its subject: ``from calibrant import measures``."
    )
    return f"{underlined('Python')}\n{words}\n\n.. toctree::\n   :maxdepth: 2\n\n{pages}"


def written(folder: Path, pages: dict[str, str]) -> None:
    """Bring a folder up to date; what has not changed is not touched, and not built again."""
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in folder.rglob("*.rst"):
        if path.relative_to(folder).with_suffix("").as_posix() not in pages:
            path.unlink()


def write_pages(app: Sphinx) -> None:
    """Write the pages of the reference beside the guides."""
    listed = rooms()
    pages = {"index": index_page(listed)}
    for room, names in listed.items():
        pages[room] = room_page(room, names)
        pages |= {f"{room}/{name}": name_page(room, name) for name in names}
    written(Path(app.srcdir) / "reference" / "api", pages)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect this to the build."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
