"""Text that holds the state of a monitor: sealed by a checksum, read back with nothing taken on trust."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import zlib
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import CalibrantError, InputError, refuse_newer
from calibrant.core.types import BoolArray, FloatArray, IntArray
from calibrant.monitors.families import LEAST_BITS
from calibrant.monitors.periods import PeriodLabel, period_label
from calibrant.rows.cells import CELL_COLUMNS, CELL_FACTS, DEFAULT_BITS, Cells

MOST = 2**53
"""No count is larger."""

_TYPES = {"f8": np.float64, "i8": np.int64, "b1": np.bool_}
_EFFORT = 4  # of compression; more takes far longer and saves next to nothing
_REMEDY = "use the text just as to_json() returned it, or an earlier copy of it"


def damaged(what: str) -> InputError:
    """Return the error of a text that is not what was written."""
    return InputError(f"the state of a monitor is damaged or was changed: {what}", remedy=_REMEDY)


# --- Writing ----------------------------------------------------------------------------------------------------------


def sealed(form: str, state: dict[str, Any]) -> str:
    """Return a state as text, with the name of its form and a checksum."""
    return json.dumps({"format": form, "checksum": _checksum(form, state), "state": state}, allow_nan=False)


def _checksum(form: str, state: Any) -> str:
    content = json.dumps([form, state], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()


def packed(content: bytes) -> str:
    """Return bytes as a shorter text."""
    return base64.b64encode(zlib.compress(content, _EFFORT)).decode()


class Packer:
    """A table of arrays; equal ones stand in it once."""

    def __init__(self) -> None:
        self.table: list[list[str]] = []
        self._places: dict[bytes, int] = {}

    def add(self, array: npt.NDArray[Any]) -> int:
        """Put an array into the table, and return its place there."""
        kind = array.dtype.str[1:]
        assert kind in _TYPES, kind
        plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        # First bytes of all numbers, then second ones, ...: those that are alike stand together, and take less room.
        content = np.ascontiguousarray(plain.reshape(-1).view(np.uint8).reshape(array.size, array.itemsize).T).tobytes()
        key = hashlib.sha256(kind.encode() + content).digest()
        if key not in self._places:
            self._places[key] = len(self.table)
            self.table.append([kind, packed(content)])
        return self._places[key]

    def cells(self, cells: Cells | None) -> dict[str, Any] | None:
        """Put the columns of cells into the table, and return where they are."""
        if cells is None:
            return None
        columns = {name: self.add(getattr(cells, name)) for name in CELL_COLUMNS}
        return {"size": len(cells), **{name: getattr(cells, name) for name in CELL_FACTS}, **columns}


# --- Reading ----------------------------------------------------------------------------------------------------------


def unsealed(text: Any, form: str) -> Record:
    """Return the state that a text holds; anything but an undamaged text of that form is refused."""
    if not isinstance(text, str):
        raise InputError(f"a monitor is rebuilt from the text of its to_json(), got {type(text).__name__}")
    try:
        found = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise damaged(f"it is no whole JSON text ({error})") from error
    said = found.get("format") if isinstance(found, dict) else None
    if said != form:
        refuse_newer("this state", said, form)
        raise InputError(_other_form(said, form), remedy=_REMEDY)
    if sorted(found) != ["checksum", "format", "state"]:
        raise damaged(f"it holds {', '.join(sorted(found))} instead of checksum, format and state")
    try:
        is_whole = found["checksum"] == _checksum(form, found["state"])
    except (ValueError, RecursionError) as error:
        raise damaged(str(error)) from error
    if not is_whole:
        raise damaged("its checksum does not fit its content")
    state = Record(found["state"], "the state", _Arrays([]))
    state.arrays = _Arrays(state.items("arrays"))
    return state


def _refuse_constant(word: str) -> NoReturn:
    raise damaged(f"{word} is no number of JSON")


def _other_form(said: Any, form: str) -> str:
    if not isinstance(said, str) or not said.startswith("calibrant/"):
        return f"this text does not hold the state of a monitor ({form})"
    return f"this text holds {said}, not {form}"


class _Arrays:
    """The table that `Packer` made."""

    def __init__(self, table: list[Any]) -> None:
        self.table = table

    def take(self, place: Any, kinds: Sequence[str], size: int, where: str) -> npt.NDArray[Any]:
        """Return an array of so many numbers, which are finite."""
        if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < len(self.table):
            raise damaged(f"{where} is {place!r}, not the place of an array")
        entry = self.table[place]
        if not isinstance(entry, list) or len(entry) != 2 or entry[0] not in kinds:
            raise damaged(f"{where} is no array of type {' or '.join(kinds)}")
        kind = np.dtype(_TYPES[entry[0]]).newbyteorder("<")
        content = unpacked(entry[1], size * kind.itemsize, where)
        if len(content) != size * kind.itemsize:
            raise damaged(f"{where} does not hold {size:,} numbers")
        mixed = np.frombuffer(content, dtype=np.uint8).reshape(kind.itemsize, size)
        if entry[0] == "b1" and (mixed > 1).any():
            raise damaged(f"{where} holds what is neither true nor false")
        found = np.ascontiguousarray(mixed.T).reshape(-1).view(kind).astype(kind.newbyteorder("="))
        if not np.isfinite(found).all():
            raise damaged(f"{where} holds what is not a finite number")
        return found


def unpacked(text: Any, most: int, where: str) -> bytes:
    """Undo `packed`; what is longer than expected is refused before it takes any room."""
    try:
        if not isinstance(text, str):
            raise TypeError
        reader = zlib.decompressobj()
        content = reader.decompress(base64.b64decode(text, validate=True), most + 1)
        if len(content) > most or not reader.eof or reader.unused_data:
            raise TypeError
    except (TypeError, ValueError, binascii.Error, zlib.error) as error:
        raise damaged(f"{where} cannot be unpacked") from error
    return content


class Record:
    """A part of a state whose fields are asked for by name and type."""

    def __init__(self, data: Any, where: str, arrays: _Arrays) -> None:
        if not isinstance(data, dict):
            raise damaged(f"{where} is {_short(data)}, not a list of fields")
        self.data: dict[str, Any] = data
        self.where = where
        self.arrays = arrays

    def only(self, *names: str) -> Record:
        """Refuse other fields than these."""
        if set(self.data) != set(names):
            different = sorted(set(self.data) ^ set(names))
            raise damaged(f"{self.where} has or lacks {', '.join(map(str, different))}")
        return self

    def refuse(self, name: str, why: str) -> NoReturn:
        """Refuse a field."""
        raise damaged(f"{name} of {self.where} is {_short(self.data.get(name))}, {why}")

    def value(self, name: str) -> Any:
        """Return a field of any type."""
        if name not in self.data:
            raise damaged(f"{self.where} has no {name}")
        return self.data[name]

    def whole(self, name: str, low: int = 0, high: int = MOST) -> int:
        """Return a whole number."""
        found = self.value(name)
        if isinstance(found, bool) or not isinstance(found, int) or not low <= found <= high:
            self.refuse(name, f"not a whole number from {low} to {high}")
        return found

    def number(self, name: str, low: float = -math.inf, high: float = math.inf) -> float:
        """Return a finite number."""
        found = self.value(name)
        if not isinstance(found, float) or not math.isfinite(found) or not low <= found <= high:
            self.refuse(name, "not a number that can stand there")
        return found

    def label(self, name: str) -> PeriodLabel:
        """Return the name of a period."""
        try:
            found = period_label(self.value(name))
        except CalibrantError:
            self.refuse(name, "no name of a period")
        if found != self.data[name]:
            self.refuse(name, "no name of a period")
        return found

    def items(self, name: str) -> list[Any]:
        """Return a list."""
        found = self.value(name)
        if not isinstance(found, list):
            self.refuse(name, "not a list")
        return found

    def texts(self, name: str) -> list[str]:
        """Return a list of texts, none of them twice."""
        found = self.items(name)
        if not all(isinstance(each, str) for each in found) or len(set(found)) < len(found):
            self.refuse(name, "not a list of different texts")
        return found

    def record(self, name: str) -> Record:
        """Return a part of this part."""
        return Record(self.value(name), name, self.arrays)

    def records(self, name: str) -> list[Record]:
        """Return a list of parts of this part."""
        return [Record(each, f"{name}[{place}]", self.arrays) for place, each in enumerate(self.items(name))]

    def floats(self, name: str, *shape: int) -> FloatArray:
        """Return an array of numbers."""
        return self._array(name, ("f8",), shape)

    def wholes(self, name: str, *shape: int) -> IntArray:
        """Return an array of whole numbers."""
        return self._array(name, ("i8",), shape)

    def flags(self, name: str, *shape: int) -> BoolArray:
        """Return an array of what is true or false."""
        return self._array(name, ("b1",), shape)

    def _array(self, name: str, kinds: Sequence[str], shape: tuple[int, ...]) -> npt.NDArray[Any]:
        where = f"{name} of {self.where}"
        return self.arrays.take(self.value(name), kinds, math.prod(shape), where).reshape(shape)

    def cells(self, name: str) -> Cells | None:
        """Return cells as monitors hold them, which some rows can have; None where there are none."""
        if self.value(name) is None:
            return None
        found = self.record(name).only("size", *CELL_FACTS, *CELL_COLUMNS)
        size = found.whole("size", 1, 2 ** found.whole("bits", LEAST_BITS, DEFAULT_BITS))
        facts = {fact: found.value(fact) for fact in CELL_FACTS}
        kinds = {"index": ("i8",), "rows": ("i8",), "weight": ("i8", "f8"), "weight_square": ("i8", "f8")}
        columns = {column: found._array(column, kinds.get(column, ("f8",)), (size,)) for column in CELL_COLUMNS}
        try:
            return Cells.from_columns(facts, columns)
        except CalibrantError as error:
            raise damaged(f"{name} of {self.where} cannot come from any rows: {error}") from error


def _short(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "a list" if isinstance(value, list) else "a list of fields"
    said = repr(value) if not isinstance(value, int) or abs(value) < MOST else "a huge number"
    return said if len(said) <= 60 else f"{said[:57]}..."
