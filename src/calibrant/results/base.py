"""What every result can do: become a dict, JSON or HTML, be compared, and write numbers so that they can be trusted."""

from __future__ import annotations

import html
import importlib
import json
import math
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

SCHEMA = "calibrant/1"
"""Version of the shape that `to_dict` gives; it changes when a field changes its meaning or its name."""

_ROUNDING = 1e-12  # what is smaller is the dust of sums


@dataclass(frozen=True, eq=False)
class Result:
    """What every result can do: become a dict, JSON, or HTML, and be compared."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for JSON: arrays become lists, undefined numbers None."""
        values = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        return {"schema": SCHEMA, "type": type(self).__name__, **values}

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Rebuild a result from what `to_dict` returned, or from its JSON after json.loads."""
        if not isinstance(data, dict):
            raise ValueError(f"a {cls.__name__} is rebuilt from the dict that its to_dict() returned, got {data!r}")
        kind = {kind.__name__: kind for kind in result_types(Result)}.get(str(data.get("type")))
        if kind is None or not issubclass(kind, cls):
            raise ValueError(f"type is {data.get('type')!r}, not a {cls.__name__}; pass what its to_dict() returned")
        if data.get("schema", SCHEMA) != SCHEMA:
            raise ValueError(f"schema is {data['schema']!r}, this version of calibrant reads {SCHEMA!r}")
        names = {field.name: str(field.type) for field in fields(kind)}
        missing = [name for name in names if name not in data]
        if missing:
            raise ValueError(f"{missing[0]} is missing from this {kind.__name__}; pass all that to_dict() returned")
        return kind(**{name: _rebuilt(data[name], annotation) for name, annotation in names.items()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild a result from the text that `to_json` returned."""
        return cls.from_dict(json.loads(text))

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def __eq__(self, other: object) -> bool:
        """Compare by content, arrays included (results without arrays have a quicker way of their own)."""
        return isinstance(other, Result) and self.to_dict() == other.to_dict()


def result_types(base: type[Result]) -> list[type[Any]]:
    """Return the kinds of result that derive from a class, directly or not."""
    return [kind for child in base.__subclasses__() for kind in (child, *result_types(child))]


def _rebuilt(value: Any, annotation: str) -> Any:
    """Undo `_plain`, as the field's annotation says: arrays, tuples, nested results, undefined numbers."""
    if isinstance(value, dict):
        return Result.from_dict(value)
    if "Array" in annotation and isinstance(value, list):
        return np.array([math.nan if item is None else item for item in value])
    if annotation == "float" and value is None:
        return math.nan
    if isinstance(value, list):
        return tuple(_rebuilt(item, "") for item in value)
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Result):
        plain = value.to_dict()
        del plain["schema"]  # stated once, by the result that holds the others
        return plain
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value.tolist()]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def as_frame(columns: dict[str, Any]) -> Any:
    """Return columns as a pandas or polars data frame, whichever is installed (pandas first)."""
    for library in ("pandas", "polars"):
        try:
            module = importlib.import_module(library)
        except ImportError:
            continue
        return module.DataFrame(columns)
    raise ImportError("frame() needs pandas or polars; install one of them, as in: pip install pandas")


def percent(share: float) -> str:
    """Write a probability or share as a percentage with as many digits as it deserves."""
    value = 100.0 * share
    digits = 1 if 1.0 <= abs(value) <= 99.0 or value in (0.0, 100.0) else 2
    return f"{measured(value, digits)}%"


def measured(value: float, digits: int = 5) -> str:
    """Write a measured value with so many decimals, or with two digits where these would hardly leave one.

    Examples
    --------
    >>> measured(0.0123456), measured(0.0000123456), measured(0.0)
    ('0.01235', '1.2e-05', '0.00000')
    """
    if _ROUNDING < abs(value) < 10.0 ** (1 - digits):
        return f"{value:.2g}"
    return f"{value if abs(value) > _ROUNDING else 0.0:.{digits}f}"


def rounded_up(limit: float, digits: int = 4) -> str:
    """Write an upper limit so that what is written is a limit too."""
    return f"{math.ceil(limit * 10**digits - 1e-6) / 10**digits + 0.0:.{digits}f}"


def rounded_down(limit: float, digits: int = 4) -> str:
    """Write a lower limit so that what is written is a limit too."""
    return f"{math.floor(limit * 10**digits + 1e-6) / 10**digits + 0.0:.{digits}f}"


def of_all(unit_weights: bool) -> str:
    """Say what a share is a share of."""
    return "of all rows" if unit_weights else "of the weight"


def level_said(level: float) -> str:
    """Write a confidence level with as many digits as it takes not to read like certainty."""
    text = percent(level).replace(".0%", "%")
    return f"{100.0 * level:.15g}%" if text == "100.00%" else text
