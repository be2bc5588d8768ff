"""The JSON of recalibrators: names and numbers, checked one by one when they are read."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.core.errors import InputError, refuse_newer

_READERS = {
    "calibrant-recalibrator/1": "it is a recalibrator of events: Recalibrator.from_json() reads it",
    "calibrant-class-recalibrator/1": "it is a recalibrator of classes: ClassRecalibrator.from_json() reads it",
}


def read_document(text: str, schema: str) -> dict[str, Any]:
    """Return what the text of a recalibrator of one schema holds besides its name."""
    if not isinstance(text, str):
        raise InputError(f"must be the string that to_json() returned, got {type(text).__name__}", argument="text")
    try:
        data = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_named_once)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"is not JSON ({error})", argument="text", remedy="pass what to_json() returned, whole"
        ) from error
    if not isinstance(data, dict) or "schema" not in data:
        raise InputError("is JSON, but not a recalibrator", argument="text", remedy="pass what to_json() returned")
    if data["schema"] != schema:
        refuse_newer("this recalibrator", data["schema"], schema)
        raise InputError(
            f"is {data['schema']!r}, this version of calibrant reads {schema!r}",
            argument="schema",
            value=data["schema"],
            remedy=_READERS.get(str(data["schema"]), ""),
        )
    return {name: value for name, value in data.items() if name != "schema"}


def check_fields(data: Any, names: Sequence[str], where: str) -> None:
    """Make sure that a part of a file holds just what it should."""
    if not isinstance(data, dict):
        raise InputError(
            f"{where} is not an object with names, got {data!r}", remedy="pass what to_json() returned, whole"
        )
    for name in names:
        if name not in data:
            raise InputError(f"is missing from {where}", argument=name, remedy="pass what to_json() returned, whole")
    for name in data:
        if name not in names:
            raise InputError(
                f"{name!r} is unknown in {where}", remedy="pass what to_json() of this version returned, unchanged"
            )


def plain_param(name: str, value: Any) -> Any:
    """Return a parameter as JSON holds it: a name, a number or nothing."""
    plain = value.item() if isinstance(value, np.generic) else value
    is_plain = plain is None or isinstance(plain, (str, bool, int, float))
    if not is_plain or (isinstance(plain, float) and not math.isfinite(plain)):
        raise InputError(
            f"is {value!r}, which the JSON of a recalibrator cannot hold",
            argument=name,
            value=value,
            remedy="use a string or a number",
        )
    return plain


def _refuse_constant(name: str) -> Any:
    raise InputError("is not a number", argument=name)


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse two values for one name: readers would not agree on which of them counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{twice!r} is there twice")
    return found
