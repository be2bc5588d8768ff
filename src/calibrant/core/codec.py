"""How values become JSON and values again, as the type hints of the fields that hold them say.

Every hint has one `Shape`, which knows four things of it: whether a value fits, what JSON holds in its place, how to
get it back, and its JSON Schema. JSON has no infinity and no NaN: they are written as words where a number is due.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from calibrant.core.errors import InputError

Kind = TypeVar("Kind")

NOT_FINITE = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
"""Numbers that JSON cannot write, by the words that stand for them."""


@dataclass(frozen=True)
class Declared:
    """What a field says of the numbers in it.

    Attributes
    ----------
    low, high : float
        The smallest and the largest; infinite where there is no limit.
    words : tuple of str
        Those of `NOT_FINITE` that mean something.
    """

    low: float = -math.inf
    high: float = math.inf
    words: tuple[str, ...] = ()

    def limits(self) -> dict[str, float]:
        """Return the limits as JSON Schema has them."""
        ends = {"minimum": self.low, "maximum": self.high}
        return {name: end for name, end in ends.items() if math.isfinite(end)}


def _unchanged(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Shape:
    """What a type hint says of a value.

    Attributes
    ----------
    fits : callable
        Whether a value is what the hint says.
    schema : callable
        The JSON Schema of what `plain` returns, for a field that declares this and that of its numbers.
    plain : callable
        What JSON holds in place of a value that fits.
    rebuilt : callable
        Undoes `plain`; what that cannot have returned is left as it is, so that it does not fit.
    """

    fits: Callable[[Any], bool]
    schema: Callable[[Declared], dict[str, Any]]
    plain: Callable[[Any], Any] = _unchanged
    rebuilt: Callable[[Any], Any] = _unchanged


# --- One thing --------------------------------------------------------------------------------------------------------


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    if isinstance(value, int):  # which may be beyond every float
        return not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return isinstance(value, (float, np.integer, np.floating))


def plain_number(value: float) -> float | str:
    """Return a number as JSON holds it: as it is, or as the word for what is not finite."""
    number = float(value)
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0.0 else "-Infinity"


def _rebuilt_number(value: Any) -> Any:
    if isinstance(value, str):
        return NOT_FINITE.get(value, value)
    return float(value) if _is_number(value) else value


def _schema_of_number(declared: Declared) -> dict[str, Any]:
    number = {"type": "number", **declared.limits()}
    return {"anyOf": [number, {"enum": list(declared.words)}]} if declared.words else number


NOTHING = Shape(lambda value: value is None, lambda _: {"type": "null"})
TEXT = Shape(lambda value: isinstance(value, str), lambda _: {"type": "string"}, str.__str__)  # of phrases, Python's
FLAG = Shape(lambda value: isinstance(value, (bool, np.bool_)), lambda _: {"type": "boolean"}, bool)
WHOLE = Shape(_is_whole, lambda declared: {"type": "integer", **declared.limits()}, int)
NUMBER = Shape(_is_number, _schema_of_number, plain_number, _rebuilt_number)

_SIMPLE: dict[Any, Shape] = {NoneType: NOTHING, str: TEXT, bool: FLAG, int: WHOLE, float: NUMBER}


def _one_of(values: tuple[Any, ...]) -> Shape:
    """Describe the values of a `Literal`."""
    return Shape(
        lambda value: any(value == each and type(value) is type(each) for each in values),
        lambda _: {"enum": list(values)},
    )


def _record(kind: type[Any]) -> Shape:
    """Describe an object of a class; in JSON a dataclass is an object that names its class."""
    return Shape(
        lambda value: isinstance(value, kind),
        lambda _: {"$ref": f"#/$defs/{kind.__name__}"},
        plain_record,
        lambda value: rebuilt_record(kind, value) if isinstance(value, dict) else value,
    )


# --- Several things ---------------------------------------------------------------------------------------------------


def _several(item: Shape) -> Shape:
    """Describe a tuple of any length whose items are all of one shape."""
    return Shape(
        lambda value: isinstance(value, tuple) and all(map(item.fits, value)),
        lambda declared: {"type": "array", "items": item.schema(declared)},
        lambda value: [item.plain(each) for each in value],
        lambda value: tuple(map(item.rebuilt, value)) if isinstance(value, list) else value,
    )


def _row(items: tuple[Shape, ...]) -> Shape:
    """Describe a tuple of a fixed length, each item of a shape of its own."""

    def rebuilt(value: Any) -> Any:
        if not isinstance(value, list) or len(value) != len(items):
            return value
        return tuple(item.rebuilt(each) for item, each in zip(items, value, strict=True))

    return Shape(
        lambda value: (
            isinstance(value, tuple)
            and len(value) == len(items)
            and all(item.fits(each) for item, each in zip(items, value, strict=True))
        ),
        lambda declared: {
            "type": "array",
            "prefixItems": [item.schema(declared) for item in items],
            "items": False,
            "minItems": len(items),
        },
        lambda value: [item.plain(each) for item, each in zip(items, value, strict=True)],
        rebuilt,
    )


def _array(item: Shape, dtype: type[np.generic], accepted: str) -> Shape:
    """Describe a numpy array of one dimension: what it holds, as which type, and the kinds of type that will do."""

    def plain(value: Any) -> list[Any]:
        items: list[Any] = value.astype(dtype, copy=False).tolist()
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            return [item.plain(each) for each in items]
        return items

    def rebuilt(value: Any) -> Any:
        if not isinstance(value, list):
            return value
        items = [item.rebuilt(each) for each in value]
        if not all(map(item.fits, items)):
            return value
        try:
            return np.array(items, dtype=dtype)
        except OverflowError:  # a whole number beyond those of numpy
            return value

    return Shape(
        lambda value: isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in accepted,
        lambda declared: {"type": "array", "items": item.schema(declared)},
        plain,
        rebuilt,
    )


_ARRAYS = {
    np.bool_: _array(FLAG, np.bool_, "b"),
    np.int64: _array(WHOLE, np.int64, "iu"),
    np.float64: _array(NUMBER, np.float64, "iuf"),
}


def _either(shapes: list[Shape]) -> Shape:
    """Describe what has one of several shapes; where two would do, the first counts."""

    def plain(value: Any) -> Any:
        return next(shape for shape in shapes if shape.fits(value)).plain(value)

    def rebuilt(value: Any) -> Any:
        for shape in shapes:
            found = shape.rebuilt(value)
            if shape.fits(found):
                return found
        return value

    first, rest = shapes[0].fits, [shape.fits for shape in shapes[1:]]
    return Shape(
        lambda value: first(value) or any(fits(value) for fits in rest),  # results are built often
        lambda declared: {"anyOf": [shape.schema(declared) for shape in shapes]},
        plain,
        rebuilt,
    )


@cache
def shape_of(hint: Any) -> Shape:
    """Return what a type hint says of the values that it allows."""
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _one_of(parts)
    if origin in (Union, UnionType):
        return _either([shape_of(part) for part in sorted(parts, key=lambda part: part is not NoneType)])
    if origin is tuple:
        return _several(shape_of(parts[0])) if parts[-1] is Ellipsis else _row(tuple(map(shape_of, parts)))
    if origin is np.ndarray:
        return _ARRAYS[get_args(parts[1])[0]]
    if isinstance(hint, type) and hint is not Any:
        return _record(hint)
    raise TypeError(f"a field of type {hint} has no form in JSON; describe one in {__name__}")


# --- Records ----------------------------------------------------------------------------------------------------------


_NUMBERS = re.compile("float|int|Array|Any|Label")


class Field(NamedTuple):
    """A field of a class: its annotation as it is written, the shape it means, and whether that may hold numbers."""

    annotation: str
    shape: Shape
    numbers: bool


_known: dict[type[Any], dict[str, Field]] = {}


def fields_of(kind: type[Any]) -> Mapping[str, Field]:
    """Return the fields of a dataclass by their names."""
    if kind not in _known:
        _known[kind] = _read_fields(kind)
    return _known[kind]


def _read_fields(kind: type[Any]) -> dict[str, Field]:
    hints: dict[str, Any] = {}
    left = {field.name: field.type for field in fields(kind)}
    for base in kind.__mro__:  # a name in an annotation is one of the module of the class that says it last
        own = {name: left.pop(name) for name in inspect.get_annotations(base) if name in left}
        hints |= get_type_hints(SimpleNamespace(__annotations__=own), vars(sys.modules[base.__module__]))
    return {
        field.name: Field(str(field.type), shape_of(hints[field.name]), bool(_NUMBERS.search(str(field.type))))
        for field in fields(kind)
    }


def plain_record(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON holds them, with the name of its class as their type."""
    kind = type(value)
    plain = {name: field.shape.plain(getattr(value, name)) for name, field in fields_of(kind).items()}
    return {"type": kind.__name__, **plain}


def rebuilt_record(kind: type[Kind], data: dict[str, Any]) -> Kind:
    """Rebuild a dataclass, or one derived from it, from what `plain_record` returned."""
    named = _named(kind, data.get("type"))
    if named is None:
        raise InputError(
            f"is {data.get('type')!r}, not a {kind.__name__}",
            argument="type",
            value=data.get("type"),
            remedy="pass what its to_dict() returned",
        )
    known = fields_of(named)
    for name in known:
        if name not in data:
            raise InputError(
                f"is missing from this {named.__name__}", argument=name, remedy="pass all that to_dict() returned"
            )
    return named(**{name: field.shape.rebuilt(data[name]) for name, field in known.items()})


def _named(kind: type[Kind], name: Any) -> type[Kind] | None:
    """Return the class of that name, if it is this one or derives from it."""
    if name == kind.__name__ and is_dataclass(kind) and fields(kind):
        return kind
    return next((child for child in derived(kind) if child.__name__ == name), None)


def derived(kind: type[Kind]) -> list[type[Kind]]:
    """Return the classes that derive from a class, directly or not."""
    return [each for child in kind.__subclasses__() for each in (child, *derived(child))]
