"""The JSON Schema of results, from the type hints of their fields and what they declare of their numbers."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from calibrant.core.codec import Declared, fields_of
from calibrant.core.results import SCHEMA, SLACK, Result

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_of(kind: type[Result]) -> dict[str, Any]:
    """Return the JSON Schema of a kind of result; other kinds inside it are references into ``$defs``.

    Examples
    --------
    >>> from calibrant.measures import CalibrationDistance
    >>> schema_of(CalibrationDistance)["properties"]["low"]
    {'description': 'The ends.', 'type': 'number', 'minimum': -1e-09, 'maximum': 1.000000001}
    """
    fields, said = fields_of(kind), _descriptions(kind)
    return {
        "title": kind.__name__,
        "description": _summary(kind),
        "type": "object",
        "properties": {
            "type": {"const": kind.__name__},
            **{name: {"description": said[name], **_field_schema(kind, name)} for name in fields},
        },
        "required": ["type", *fields],
    }


def schema_of_all(kinds: Iterable[type[Result]]) -> dict[str, Any]:
    """Return one JSON Schema for what `to_dict` of any of these kinds returns; ``$defs`` has each of them."""
    named = {kind.__name__: kind for kind in sorted(kinds, key=lambda kind: kind.__name__)}
    return {
        "$schema": DIALECT,
        "title": f"Results of calibrant, schema {SCHEMA}",
        "description": (
            "Fields may be added. Numbers that are not finite are the words Infinity, -Infinity and NaN, in the fields "
            "that allow them."
        ),
        "type": "object",
        "properties": {"schema": {"const": SCHEMA}, "type": {"enum": list(named)}},
        "required": ["schema", "type"],
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in named],
        "$defs": {name: schema_of(kind) for name, kind in named.items()},
    }


def _field_schema(kind: type[Result], name: str) -> dict[str, Any]:
    if name in kind._words:
        return {"enum": list(kind._words[name])}
    words = ("Infinity", "-Infinity") * (name in kind._may_be_infinite) + ("NaN",) * (name in kind._may_be_undefined)
    ends = kind._ranges.get(name)
    declared = Declared(words=words) if ends is None else Declared(ends[0] - SLACK, ends[1] + SLACK, words)
    return fields_of(kind)[name].shape.schema(declared)


def _summary(kind: type[Result]) -> str:
    return " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())


def _descriptions(kind: type[Result]) -> dict[str, str]:
    """Return what the documentation says of each field, in the class or those that it derives from."""
    said: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        names: list[str] = []
        for line in inspect.cleandoc(base.__doc__ or "").partition("Attributes\n----------\n")[2].splitlines():
            if line.startswith(" "):
                said |= {name: f"{said.get(name, '')} {line.strip()}".strip() for name in names}
            else:
                names = line.partition(" : ")[0].split(", ")
                said |= dict.fromkeys(names, "")
    return said
