"""What every result can do: become a dict, JSON or HTML, be compared, and write numbers so that they can be trusted."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NoReturn, Self, TypeVar

import numpy as np

from calibrant.core.codec import fields_of, plain_record, rebuilt_record
from calibrant.core.errors import InputError, refuse_newer
from calibrant.core.frames import FromFrames
from calibrant.core.types import Label

SCHEMA = "calibrant/1"
"""Version of the shape that `to_dict` gives; it changes when a field changes its meaning or its name."""

UNIT = (0.0, 1.0)
"""The range of errors, limits, shares and probabilities."""

_ANY = (-math.inf, math.inf)
_DAMAGED = "; pass what to_dict() or to_json() returned, unchanged"
_NO_CONCLUSION = (
    ": nothing can be concluded from it; look for what is missing or infinite in the data it was computed from, or for "
    "damage in the text it was read from"
)
SLACK = 1e-9
"""By how much sums of many rows may leave a range."""


class Checked(FromFrames):
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

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Make one that knows whose frames its rows came in."""
        made = super().__new__(cls)
        made._remember()
        return made

    def __post_init__(self) -> None:
        values, words, ranges = vars(self), self._words, self._ranges
        for name, (annotation, shape, numbers) in fields_of(type(self)).items():
            value = values[name]
            if not shape.fits(value):
                self._refuse(name, value, f"not {annotation}", _DAMAGED)
            if name in words and value not in words[name]:
                self._refuse(name, value, f"not one of {', '.join(words[name])}", _DAMAGED)
            if not numbers or not isinstance(value, (int, float, tuple, np.ndarray)) or isinstance(value, bool):
                continue
            low, high = ranges.get(name, _ANY)
            if not (isinstance(value, (int, float)) and low <= value <= high and -math.inf < value < math.inf):
                self._check_numbers(name, value)

    def _check_numbers(self, name: str, value: Any) -> None:
        low, high = self._ranges.get(name, _ANY)
        numbers = np.asarray(_numbers_in(value) if isinstance(value, tuple) else value, dtype=np.float64)
        wrong = (numbers < low - SLACK) | (numbers > high + SLACK)
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
        least, most = getattr(self, low), getattr(self, high)
        is_one = isinstance(least, float) and isinstance(most, float)
        if least > most + SLACK if is_one else np.any(np.greater(least, np.add(most, SLACK))):
            self._refuse(low, least, f"above {high}, which is {most!r}")

    def _refuse(self, where: str, value: Any, why: str, remedy: str = _NO_CONCLUSION) -> NoReturn:
        raise InputError(f"of this {type(self).__name__} is {value!r}, {why}{remedy}", argument=where, value=value)


def _numbers_in(values: tuple[Any, ...]) -> list[float]:
    return [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]


Part = TypeVar("Part")


class PerPart(Checked, Generic[Part]):
    """What every result on several parts can do: hand out one of them by its label, as a dict would.

    Attributes
    ----------
    _names : str
        The field that holds the parts' labels.
    _parts : str
        The field that holds the part of each label, in their order.
    """

    _names: ClassVar[str]
    _parts: ClassVar[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not len(self.labels) == len(self._all()) > 0:
            self._refuse(self._names, self.labels, f"not as many as {self._parts}, or none")

    @property
    def labels(self) -> tuple[Label, ...]:
        """What tells the parts apart."""
        labels: tuple[Label, ...] = getattr(self, self._names)
        return labels

    def _all(self) -> tuple[Part, ...]:
        parts: tuple[Part, ...] = getattr(self, self._parts)
        return parts

    def __getitem__(self, label: Any) -> Part:
        """Return the part of a label."""
        if label not in self.labels:
            raise KeyError(label)
        return self._all()[self.labels.index(label)]

    def __iter__(self) -> Iterator[Any]:
        """Go through the labels, as through the keys of a dict."""
        return iter(self.labels)

    def __len__(self) -> int:
        return len(self.labels)

    def pairs(self) -> Iterator[tuple[Any, Part]]:
        """Go through the labels, each with its part."""
        return zip(self.labels, self._all(), strict=True)


class PerGroup(PerPart[Part]):
    """A result on several groups.

    Attributes
    ----------
    groups : tuple
        The groups' labels, sorted.
    """

    groups: tuple[Label, ...]
    _names: ClassVar = "groups"


@dataclass(frozen=True, eq=False)
class Result(Checked):
    """What every result can do: become a dict, JSON, or HTML, and be compared."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for JSON.

        Arrays become lists. Numbers that are not finite become the words "Infinity", "-Infinity" and "NaN", and
        `from_dict` turns them into numbers again.
        """
        return {"schema": SCHEMA, **plain_record(self)}

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Rebuild a result from what `to_dict` returned, or from its JSON after json.loads.

        Parameters
        ----------
        data : dict
            What `to_dict` returned.

        Returns
        -------
        result
            Of this kind, equal to the one that was written.
        """
        if not isinstance(data, dict):
            raise InputError(f"a {cls.__name__} is rebuilt from the dict that its to_dict() returned, got {data!r}")
        if data.get("schema", SCHEMA) != SCHEMA:
            refuse_newer("this result", data["schema"], SCHEMA)
            raise InputError(
                f"is {data['schema']!r}, this version of calibrant reads {SCHEMA!r}",
                argument="schema",
                value=data["schema"],
            )
        return rebuilt_record(cls, data)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild a result from the text that `to_json` returned.

        Parameters
        ----------
        text : str
            What `to_json` returned.

        Returns
        -------
        result
            Of this kind, equal to the one that was written.
        """
        return cls.from_dict(json.loads(text))

    def _repr_html_(self) -> str:
        # Sentences are long: they wrap where the notebook ends, and tables keep their columns as far as there is room.
        return f'<pre style="white-space: pre-wrap; overflow-wrap: anywhere">{html.escape(str(self))}</pre>'

    def __eq__(self, other: object) -> bool:
        """Compare by content, arrays included (results without arrays have a quicker way of their own)."""
        return isinstance(other, Result) and self.to_dict() == other.to_dict()
