"""Forecasts of several classes: a column per class, checked as a whole and handed out one column at a time."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.row_kernels import largest_columns
from calibrant.core.threads import in_threads
from calibrant.core.types import FloatArray, IntArray
from calibrant.core.voices import Argument, Option, Phrase
from calibrant.core.words import shown
from calibrant.rows.arrays import MISSING_REMEDY, is_missing
from calibrant.rows.checks import forecast_remedy

SUM_TOLERANCE = 1e-3
"""How far from 1 the probabilities of a row may add up: rounding to four digits passes, a forgotten class does not."""

_COLUMN = re.compile(r"column_\d+")  # what polars calls a column that nobody named
_CHUNK = 1 << 16
_BLOCK = 1 << 16  # rows whose largest numbers a cache holds until they are put where they belong
_MANY_ROWS = 50_000  # from which on a compiled loop is worth while

Largest: TypeAlias = tuple[IntArray, FloatArray]
"""Of each row the column of its largest number, and that number."""


def shape_of(values: Any) -> tuple[int, ...]:
    """Return the shape of what may be an array, a frame, a tensor or a list of lists; () where it cannot be told."""
    shape = getattr(values, "shape", None)
    if shape is not None and not callable(shape):
        return tuple(shape)
    if isinstance(values, (list, tuple)) and len(values) and isinstance(values[0], (list, tuple, np.ndarray)):
        return len(values), len(values[0])
    return ()


def has_columns(values: Any) -> bool:
    """Whether forecasts come in two columns or more."""
    shape = shape_of(values)
    return len(shape) == 2 and shape[1] >= 2


def column_names(values: Any) -> list[Any] | None:
    """Return the names of a frame's columns; None where there are none, or only numbers that nobody chose."""
    columns = getattr(values, "columns", None)
    if columns is None or callable(columns):
        return None
    names = list(getattr(values, "column_names", columns))
    numbered = names == list(range(len(names)))
    return None if numbered or all(isinstance(each, str) and _COLUMN.fullmatch(each) for each in names) else names


def check_matrix(values: Any, name: str) -> npt.NDArray[Any]:
    """Return numbers in [0, 1] of shape (n, K), without a copy where they are in an array already."""
    return _within(_as_matrix(values, name), name)


def check_shares(values: Any, name: str) -> tuple[npt.NDArray[Any], Largest | None]:
    """Return the same, and the largest of each row with its place if rows were found to add up to 1 on the way.

    Where they were not, or not looked at, `check_sums` has the word.
    """
    array = _as_matrix(values, name)
    found = first_largest(array)
    return (array, found[0]) if found is not None and found[1] else (_within(array, name), None)


def first_largest(array: npt.NDArray[Any]) -> tuple[Largest, bool] | None:
    """Return the first column of the largest number of each of many rows with that number, and whether rows are shares.

    None where another way to the largest is as quick. Sums at the very edge of what is tolerated are not taken for 1.
    """
    rows = array.shape[0]
    if rows < _MANY_ROWS or array.dtype != np.float64 or not array.flags.c_contiguous:
        return None
    tolerance = SUM_TOLERANCE - 1e-9
    places, largest = np.empty(rows, dtype=np.int64), np.empty(rows)

    def look(begin: int, end: int) -> bool:
        shares = True
        for start in range(begin, end, _BLOCK):
            block = slice(start, min(start + _BLOCK, end))
            places[block], largest[block], within = largest_columns.run_compiled(array[block], tolerance)
            shares = shares and within
        return shares

    halves = [(0, rows // 2), (rows // 2, rows)]
    return (places, largest), all(in_threads(lambda half: look(*half), halves, rows=rows))


def _within(array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Return numbers that are all in [0, 1]."""
    low, high = float(array.min()), float(array.max())  # NaN, if any, comes out of both
    if low >= 0.0 and high <= 1.0:
        return array
    row, column = _first(array, lambda part: ~np.isfinite(part))
    if row >= 0:
        value = float(array[row, column])
        said = "is missing" if np.isnan(value) else f"is {shown(value)}"
        remedy = MISSING_REMEDY if np.isnan(value) else "every value must be finite"
        raise InputError(f"{said} in column {column}", argument=name, position=row, value=value, remedy=remedy)
    row, column = _first(array, lambda part: (part < 0.0) | (part > 1.0))
    value = float(array[row, column])
    raise InputError(
        f"is {shown(value)} in column {column}, outside [0, 1]",
        argument=name,
        position=row,
        value=value,
        remedy=forecast_remedy(low, high, "a softmax (a sigmoid if multilabel)"),
    )


def check_sums(array: npt.NDArray[Any]) -> None:
    """Refuse forecasts of classes that do not add up to 1 in every row."""
    ones = np.ones(array.shape[1])
    for begin in range(0, array.shape[0], _CHUNK):
        part = array[begin : begin + _CHUNK]
        total = part @ ones if part.dtype == np.float64 else part.sum(axis=1, dtype=np.float64)
        off = np.flatnonzero(np.abs(total - 1.0) > SUM_TOLERANCE)
        if off.size:
            found = float(total[off[0]])
            raise off_sum(found, array.shape[1], position=int(begin + off[0]))


def off_sum(total: float, count: int, where: str = "", **context: Any) -> InputError:
    """Return the error that probabilities of a row do not add up to 1."""
    return InputError(
        Phrase(
            "adds up to {total} over its {count:,} classes{where}, not to 1 within {tolerance:g}",
            total=shown(round(total, 12)),
            count=count,
            where=where,
            tolerance=SUM_TOLERANCE,
        ),
        argument="y_prob",
        value=total,
        remedy=Phrase(
            "pass a column for every class; divide rows that were rounded by their sums; if a row may be of several "
            "classes or of none pass {multilabel}",
            multilabel=Option("multilabel", True),
        ),
        **context,
    )


def check_indicators(y_true: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """Return outcomes of several labels: 0/1, booleans or fractions, a column per label."""
    found = shape_of(y_true)
    if found != shape:
        raise InputError(
            Phrase("has shape {found} and {other} has {shape}", found=found, other=Argument("y_prob"), shape=shape),
            argument="y_true",
            remedy="pass a column of 0 and 1 for every label",
        )
    return check_matrix(y_true, "y_true")


def _as_matrix(values: Any, name: str) -> npt.NDArray[Any]:
    if hasattr(values, "detach"):  # a torch tensor that carries gradients cannot become an array
        values = values.detach()
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        row, column = (int(each[0]) for each in np.nonzero(np.ma.getmaskarray(values)))
        raise InputError(f"is missing in column {column}", argument=name, position=row, remedy=MISSING_REMEDY)
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        _refuse_holes(values, name)
        raise InputError(
            f"of type {type(values).__name__} cannot be read as numbers of shape (rows, classes) ({error})",
            argument=name,
            remedy="pass an array in CPU memory, with a column per class",
        ) from error
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InputError(
            f"has shape {array.shape} and dtype {array.dtype}",
            argument=name,
            remedy="pass a column of numbers per class",
        )
    if array.size == 0:
        raise InputError("is empty", argument=name, remedy="at least one row is needed")
    return array


def _refuse_holes(values: Any, name: str) -> None:
    """Say which value is missing, or which row has another length, where that is why there is no array."""
    rows: Any = values if isinstance(values, (list, tuple)) else None
    if rows is None:
        array = np.asarray(values, dtype=object) if hasattr(values, "columns") or hasattr(values, "dtype") else None
        rows = [] if array is None or array.ndim != 2 else array
    length = None
    for row, held in enumerate(rows):
        if not isinstance(held, (list, tuple, np.ndarray)):
            return
        length = len(held) if length is None else length
        if len(held) != length:
            raise InputError(
                f"has {len(held):,} values in this row and {length:,} in row 0: rows differ in length",
                argument=name,
                position=row,
                value=len(held),
                remedy="pass one value per class in every row",
            )
        column = next((place for place, value in enumerate(held) if is_missing(value)), None)
        if column is not None:
            raise InputError(f"is missing in column {column}", argument=name, position=row, remedy=MISSING_REMEDY)


def _first(array: npt.NDArray[Any], wrong: Any) -> tuple[int, int]:
    """Return the first place where something is wrong, or (-1, -1)."""
    for begin in range(0, array.shape[0], _CHUNK):
        rows, columns = np.nonzero(wrong(array[begin : begin + _CHUNK]))
        if rows.size:
            return int(begin + rows[0]), int(columns[0])
    return -1, -1
