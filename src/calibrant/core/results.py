"""What every result can do: become a dict, JSON or HTML, be compared, and write numbers so that they can be trusted."""

from __future__ import annotations

import html
import importlib
import json
import math
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from types import SimpleNamespace, UnionType
from typing import Any, ClassVar, NoReturn, Self, Union, get_args, get_origin, get_type_hints

import numpy as np

SCHEMA = "calibrant/1"
"""Version of the shape that `to_dict` gives; it changes when a field changes its meaning or its name."""

UNIT = (0.0, 1.0)
"""The range of errors, limits, shares and probabilities."""

_DAMAGED = "; pass what to_dict() or to_json() returned, unchanged"
_NO_CONCLUSION = (
    ": nothing can be concluded from it; look for what is missing or infinite in the data it was computed from, or for "
    "damage in the text it was read from"
)
_SLACK = 1e-9  # by which sums of many rows may leave a range


class Checked:
    """What refuses to be built from numbers that nothing can be concluded from.

    A comparison with NaN is False, and `max` may skip it: a limit that is not a number would pass for a verdict. So
    every number of every field is finite, and of the type that the field's annotation names, unless declared otherwise.

    Attributes
    ----------
    _may_be_infinite, _may_be_undefined
        Fields in which an infinity, or NaN, means something; whoever declares one says what.
    _ranges
        Smallest and largest value of fields that have them.
    _words
        What a field that holds one of a few words may hold.
    """

    _may_be_infinite: ClassVar[tuple[str, ...]] = ()
    _may_be_undefined: ClassVar[tuple[str, ...]] = ()
    _ranges: ClassVar[Mapping[str, tuple[float, float]]] = {}
    _words: ClassVar[Mapping[str, Collection[str]]] = {}

    def __post_init__(self) -> None:
        for name, (annotation, fits) in _field_types(type(self)).items():
            value = getattr(self, name)
            if not fits(value):
                self._refuse(name, value, f"not {annotation}", _DAMAGED)
            if name in self._words and value not in self._words[name]:
                self._refuse(name, value, f"not one of {', '.join(self._words[name])}", _DAMAGED)
            if isinstance(value, (int, float, tuple, np.ndarray)) and not isinstance(value, bool):
                self._check_numbers(name, value)

    def _check_numbers(self, name: str, value: Any) -> None:
        low, high = self._ranges.get(name, (-math.inf, math.inf))
        if isinstance(value, (int, float)) and low <= value <= high and abs(value) != math.inf:
            return
        numbers = np.asarray(_numbers_in(value) if isinstance(value, tuple) else value, dtype=np.float64)
        wrong = (numbers < low - _SLACK) | (numbers > high + _SLACK)
        if name not in self._may_be_infinite:
            wrong |= np.isinf(numbers)
        if name not in self._may_be_undefined:
            wrong |= np.isnan(numbers)
        if not wrong.any():
            return
        where, number = name, numbers[()]
        if numbers.ndim:
            position = int(np.flatnonzero(wrong)[0])
            where, number = f"{name}[{position}]", numbers[position]
        bounds = "" if name not in self._ranges else f" from {low:g} to {high:g}"
        self._refuse(where, number.item(), f"not a finite number{bounds}")

    def _check_order(self, low: str, high: str) -> None:
        """Refuse two ends in the wrong order."""
        if np.any(np.greater(getattr(self, low), np.add(getattr(self, high), _SLACK))):
            self._refuse(low, getattr(self, low), f"above {high}, which is {getattr(self, high)!r}")

    def _refuse(self, where: str, value: Any, why: str, remedy: str = _NO_CONCLUSION) -> NoReturn:
        raise ValueError(f"{where} of this {type(self).__name__} is {value!r}, {why}{remedy}")


def _numbers_in(values: tuple[Any, ...]) -> list[float]:
    return [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]


_known_types: dict[type[Any], dict[str, tuple[str, Callable[[Any], bool]]]] = {}


def _field_types(kind: type[Any]) -> dict[str, tuple[str, Callable[[Any], bool]]]:
    """Return the annotation of every field, and a function that says whether a value is of that type."""
    if kind in _known_types:
        return _known_types[kind]
    hints: dict[str, Any] = {}
    for base in reversed(kind.__mro__):  # a name in an annotation is one of the module that the class stands in
        own = {field.name: field.type for field in fields(kind) if field.name in vars(base).get("__annotations__", {})}
        hints |= get_type_hints(SimpleNamespace(__annotations__=own), vars(sys.modules[base.__module__]))
    _known_types[kind] = {field.name: (str(field.type), _fitting(hints[field.name])) for field in fields(kind)}
    return _known_types[kind]


def _fitting(hint: Any) -> Callable[[Any], bool]:
    if hint is Any:
        return lambda _: True
    parts = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        choices = [_fitting(part) for part in parts]
        return lambda value: any(fits(value) for fits in choices)
    if get_origin(hint) is tuple:
        fits = _fitting(parts[0])
        return lambda value: isinstance(value, tuple) and all(fits(item) for item in value)
    if get_origin(hint) is np.ndarray:
        kinds = "iu" if np.issubdtype(get_args(parts[1])[0], np.integer) else "iuf"
        return lambda value: isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in kinds
    if hint is bool:
        return lambda value: isinstance(value, (bool, np.bool_))
    if hint is int:
        return lambda value: isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if hint is float:
        return _is_number
    return lambda value: isinstance(value, hint)


def _is_number(value: Any) -> bool:
    if isinstance(value, int):  # which may be beyond every float
        return not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return isinstance(value, (float, np.integer, np.floating))


@dataclass(frozen=True, eq=False)
class Result(Checked):
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
