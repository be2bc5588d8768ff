"""Features of rows: columns of numbers, which have an order, or of labels, which have none.

Whatever is said of groups of rows depends on a feature's order, or on which rows share a label, and on nothing else: so
a feature is kept as the place of each row's value among the distinct ones. A missing value is a label of its own.
"""

from __future__ import annotations

import contextlib
import math
import numbers
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.threads import in_threads
from calibrant.core.types import BoolArray, IntArray, Label
from calibrant.core.words import printable
from calibrant.rows.arrays import as_array, is_missing
from calibrant.rows.checks import check_same_index
from calibrant.rows.runs import group_starts, stable_order
from calibrant.rows.times import moments_of

MISSING = -1
"""The place of a value that is missing."""

_MIDNIGHT = re.compile(r"T00(:00)*(\.0+)?$")
_NO_FRACTION = re.compile(r"\.0+$")


@dataclass(frozen=True, eq=False)
class Feature:
    """One column of checked features.

    Attributes
    ----------
    name : str
        What it is called.
    ordered : bool
        Whether its values have an order, so that rows can be below or above one; otherwise they are labels.
    values : array
        The distinct values, sorted.
    codes : array of int
        For each row the place of its value among them, or `MISSING`.
    """

    name: str
    ordered: bool
    values: npt.NDArray[Any]
    codes: IntArray

    def label(self, place: int) -> Label:
        """Return one of the distinct values as JSON can hold it."""
        value = self.values[place]
        if isinstance(value, np.datetime64):
            return (_MIDNIGHT if self._of_days else _NO_FRACTION).sub("", str(value))
        if isinstance(value, np.timedelta64):
            return str(value)
        plain = value.item() if isinstance(value, np.generic) else value
        if isinstance(plain, float) and not math.isfinite(plain):  # which no JSON holds as a number
            return str(plain)
        return plain if isinstance(plain, (str, int, float)) else str(plain)

    def taken(self, positions: IntArray) -> Feature:
        """Return the feature of the rows at given positions, whose values may no longer all occur."""
        return Feature(self.name, self.ordered, self.values, self.codes[positions])

    @cached_property
    def _of_days(self) -> bool:
        """Whether its values are dates without a time of day."""
        return bool(np.all(self.values.astype("M8[D]") == self.values))

    @cached_property
    def missing(self) -> BoolArray:
        """Which rows have no value."""
        found: BoolArray = self.codes == MISSING
        return found

    @cached_property
    def order(self) -> IntArray:
        """The rows that have a value, by value; those that share one in the order in which they come."""
        if self._places is not None:
            return self._places
        return stable_order(self.codes + 1)[int(np.count_nonzero(self.missing)) :]

    @cached_property
    def _places(self) -> IntArray | None:
        """The row of each value, where every value occurs once: then there is nothing to sort."""
        some = bool(self.missing.any())
        known = np.flatnonzero(~self.missing) if some else np.arange(self.codes.size)
        if known.size != self.values.size:
            return None
        places = np.full(known.size, MISSING, dtype=np.int64)
        places[self.codes[known] if some else self.codes] = known
        return places if places.min() > MISSING else None

    @cached_property
    def starts(self) -> IntArray:
        """Where in `order` another value begins."""
        if self._places is not None:
            return np.arange(self.values.size)
        return group_starts(self.codes[self.order])

    @property
    def held(self) -> IntArray:
        """The places of the values that occur."""
        return self.starts if self._places is not None else self.codes[self.order[self.starts]]


def check_features(
    X: Any, rows: int, *, argument: str = "X", texts_are_labels: bool = False, **others: Any
) -> tuple[Feature, ...]:
    """Return the columns of an array, a frame or a dict as features of so many rows.

    ``argument`` is what they are called, and ``others`` are arguments whose rows must carry the same labels, such as
    those of a pandas index. Texts that are all dates, as in "2026-01-31", have the order of dates, so that a feature is
    the same whatever file it was written to; unless all texts are labels.
    """
    columns = _columns(X, argument)
    check_same_index(**others, **{argument: X})
    return tuple(
        in_threads(
            lambda column: _feature(column[1], column[0], rows, argument, texts_are_labels), columns.items(), rows=rows
        )
    )


def _columns(X: Any, argument: str) -> dict[str, Any]:
    """Return columns by their names."""
    if X is None:
        raise InputError(
            "is missing",
            argument=argument,
            remedy="pass the features of the rows: an array of shape (n, d), a frame, or a dict of columns",
            joint=": ",
        )
    if isinstance(X, Mapping):
        named = [(name, X[name]) for name in X]
    elif hasattr(X, "column_names"):  # a table of pyarrow
        named = [(name, X[name]) for name in X.column_names]
    elif hasattr(X, "columns"):
        names = list(X.columns)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(
                f"has two columns named {twice!r}", argument=argument, value=str(twice), remedy="give each its own name"
            )
        named = [(name, X[name]) for name in names]
    else:
        array = np.asarray(X)
        if array.ndim not in (1, 2):
            raise InputError(
                f"has shape {array.shape}", argument=argument, remedy="pass one row per case and one column per feature"
            )
        name = getattr(X, "name", None)
        if array.ndim == 1 and name is not None and name != "":  # a column of a frame
            named = [(name, X)]
        else:
            array = array.reshape(len(array), -1)
            named = [(f"x{place}", array[:, place]) for place in range(array.shape[1])]
    if not named:
        raise InputError("has no columns", argument=argument, remedy="pass at least one feature")
    return {str(name): values for name, values in named}


def _feature(values: Any, name: str, rows: int, argument: str, texts_are_labels: bool) -> Feature:
    argument = f"{argument}[{printable(name)!r}]"
    if getattr(getattr(values, "dtype", None), "ordered", False) is True and hasattr(values.dtype, "categories"):
        missing, array, ranks = _read_ordered(values, argument)
        labels = False
    else:
        missing, array, labels = _read(values, argument)
        ranks = None
        if array.dtype.kind in "OU" and not (labels or texts_are_labels):
            moments = moments_of(array)
            array = array if moments is None else moments
    if missing.size != rows:
        raise InputError(
            f"has {missing.size:,} values for {rows:,} rows",
            argument=argument,
            value=missing.size,
            remedy="pass one value per row",
        )
    ordered = (array.dtype.kind in "iufmM" and not labels) or ranks is not None
    try:
        distinct, places = _ranked(array) if ranks is None else (array, ranks)
    except TypeError as error:
        raise InputError(
            f"mixes labels that cannot be compared ({error})", argument=argument, remedy="convert them to strings"
        ) from error
    codes = places
    if places.size < rows:
        codes = np.full(rows, MISSING, dtype=np.int64)
        codes[~missing] = places
    return Feature(name, ordered, distinct, codes)


def _ranked(array: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], IntArray]:
    """Return the distinct values, sorted, and the place of each value among them."""
    order = np.argsort(array)
    ordered = array[order]
    starts = group_starts(ordered)
    places = np.empty(array.size, dtype=np.int64)
    if starts.size == array.size:
        places[order] = starts
        return ordered, places
    new = np.zeros(array.size, dtype=np.int64)
    new[starts[1:]] = 1
    places[order] = np.cumsum(new)
    return ordered[starts], places


def _read_ordered(values: Any, argument: str) -> tuple[BoolArray, npt.NDArray[Any], IntArray]:
    """Return which values of an ordered categorical of pandas are missing, those that occur, and the others' places."""
    codes = np.asarray(values.cat.codes if hasattr(values, "cat") else values.codes)
    missing: BoolArray = codes < 0
    if missing.all():
        raise _nothing_known(argument)
    present, ranks = np.unique(codes[~missing], return_inverse=True)
    return missing, np.asarray(values.dtype.categories, dtype=object)[present], ranks.astype(np.int64)


def _read(values: Any, argument: str) -> tuple[BoolArray, npt.NDArray[Any], bool]:
    """Return which values are missing, an array of the others, and whether they were declared to be labels."""
    labels = hasattr(getattr(values, "dtype", None), "categories")
    if getattr(getattr(values, "dtype", None), "tz", None) is not None:  # of pandas: the clock as it was written
        values = (values.dt if hasattr(values, "dt") else values).tz_localize(None)
    nulls = _nulls(values)
    if nulls is not None and nulls.any():
        values, given = _without_nulls(values, nulls), nulls
    else:
        given = None
    if given is not None and given.all():
        raise _nothing_known(argument)
    array = as_array(values, argument)
    if array.dtype.kind == "O":
        absent = np.fromiter((is_missing(value) for value in array.tolist()), dtype=np.bool_, count=array.size)
        array = _of_objects(array[~absent], argument)
    elif array.dtype.kind == "f":
        absent = np.isnan(array)
        array = (array[~absent] if absent.any() else array) + array.dtype.type(
            0
        )  # no -0.0, which is equal to 0 and written differently
    elif array.dtype.kind in "mM":
        absent = np.isnat(array)
        array = array[~absent]
    elif array.dtype.kind == "V":
        raise InputError(f"has dtype {array.dtype}, records", argument=argument, remedy="pass one field")
    else:
        absent = np.zeros(array.size, dtype=np.bool_)
    if array.size == 0:
        raise _nothing_known(argument)
    if given is None:
        return absent, array, labels
    missing = given.copy()
    missing[~given] = absent
    return missing, array, labels


def _of_objects(array: npt.NDArray[Any], argument: str) -> npt.NDArray[Any]:
    """Return Python objects as an array of numbers, truth values or texts, whichever all of them are."""
    held = array.tolist()
    if all(isinstance(value, (bool, np.bool_)) for value in held):
        return array.astype(np.bool_)
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in held):
        return _of_numbers(array, held)
    if all(isinstance(value, (numbers.Real, Decimal)) and not isinstance(value, (bool, np.bool_)) for value in held):
        return array.astype(np.float64)
    odd = next((k for k, value in enumerate(held) if isinstance(value, (list, tuple, dict, set, np.ndarray))), None)
    if odd is not None:
        raise InputError(
            f"holds {held[odd]!r} of type {type(held[odd]).__name__}",
            argument=argument,
            value=held[odd],
            remedy="a feature is a column of numbers or labels",
        )
    return array


def _of_numbers(array: npt.NDArray[Any], held: list[Any]) -> npt.NDArray[Any]:
    """Return numbers as an array in which those that differ still do; objects, which are labels, where none has that.

    Whole numbers beyond 2^53 have neighbours with which they would merge as float64.
    """
    if not any(isinstance(value, float) for value in held):
        with contextlib.suppress(OverflowError):
            return array.astype(np.int64)
    with contextlib.suppress(OverflowError):
        numbers: npt.NDArray[Any] = array.astype(np.float64) + 0.0  # no -0.0, as above
        if all(number == value for number, value in zip(numbers.tolist(), held, strict=True)):
            return numbers
    return array


def _nothing_known(argument: str) -> InputError:
    return InputError("holds no value: every one is missing", argument=argument, remedy="leave the column out")


def _nulls(values: Any) -> BoolArray | None:
    """Return which values a masked array, or a column of pandas, polars or pyarrow, marks as missing."""
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.getmaskarray(values)
    if hasattr(values, "isna"):
        return np.asarray(values.isna(), dtype=np.bool_)
    if hasattr(values, "null_count") and hasattr(values, "is_null"):
        return np.asarray(values.is_null(), dtype=np.bool_)
    return None


def _without_nulls(values: Any, nulls: BoolArray) -> Any:
    for name in ("dropna", "drop_nulls", "drop_null"):
        if hasattr(values, name):
            return getattr(values, name)()
    return np.ma.getdata(values)[~nulls]
