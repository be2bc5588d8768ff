"""Lists, frames and tensors become arrays of one dimension here; what is missing or no number is refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.types import FloatArray
from calibrant.core.voices import Argument, Either, Option, Phrase
from calibrant.core.words import shown

MISSING_REMEDY: str = Phrase(
    "drop the row or fill in its value before measuring{option}",
    option=Either("", ", or leave such rows out with --drop-missing"),
)

_SCANNED = "pass the values of one column, or name the columns in scan(), which reads a table where it is"


def as_numbers(values: Any, name: str) -> FloatArray:
    """Return a one-dimensional, contiguous float64 array, without a copy where the input already is one."""
    array = as_array(values, name)
    if array.dtype.kind == "O":
        check_objects(array, name, labels_allowed=False)
    if array.dtype.kind not in "biuf":
        first = array[:1].tolist()[0]
        remedy = "pass numbers" if array.dtype.kind in "mMV" else float_remedy(first)
        raise InputError(
            f"has dtype {array.dtype} (first value {first!r}), not numbers", argument=name, value=first, remedy=remedy
        )
    with np.errstate(over="ignore"):  # a number beyond float64 becomes an infinity, which is refused with its position
        return np.ascontiguousarray(array, dtype=np.float64)


def as_array(values: Any, name: str) -> npt.NDArray[Any]:
    """Turn lists, numpy, pandas, polars, pyarrow and torch input into a one-dimensional numpy array of any dtype."""
    if values is None:
        raise InputError("is None", argument=name, remedy="pass an array")
    if type(values).__module__.partition(".")[0] == "ibis":
        raise InputError(
            "is an expression of Ibis, and two of them are two queries, whose rows may come in different orders",
            argument=name,
            remedy="pass columns of one table.to_pyarrow(), or scan() the table",
        )
    _refuse_nulls(values, name)
    if hasattr(values, "detach"):  # a torch tensor that carries gradients cannot become an array
        values = values.detach()
    if isinstance(values, (list, tuple)) and any(isinstance(value, str) for value in values):
        values = np.array(values, dtype=object)  # otherwise numpy would turn a missing value into the label "nan"
    numpy_dtype = getattr(getattr(values, "dtype", None), "numpy_dtype", None)  # pandas' nullable and arrow dtypes
    try:
        array = np.asarray(values, dtype=numpy_dtype) if numpy_dtype is not None else np.asarray(values)
    except MemoryError:
        raise
    except Exception as error:  # libraries have errors of their own
        raise InputError(
            f"of type {type(values).__name__} cannot be read as an array ({str(error).partition(chr(10))[0]})",
            argument=name,
            remedy=_remedy(values, "pass a one-dimensional array in CPU memory, with one value per row"),
        ) from error
    if array.ndim != 1:
        _refuse_shape(array, name, values)
    if array.size == 0:
        raise InputError("is empty", argument=name, remedy="at least one row is needed")
    if array.dtype.kind == "c":
        raise InputError(
            f"has dtype {array.dtype}: complex numbers are neither outcomes nor probabilities", argument=name
        )
    return array


def _refuse_shape(array: npt.NDArray[Any], name: str, values: Any) -> NoReturn:
    if array.ndim == 0:
        remedy = _remedy(values, "pass one value per row")
        raise InputError(f"is one {type(values).__name__}, not an array", argument=name, remedy=remedy)
    if array.ndim == 2 and hasattr(values, "columns"):
        remedy = "pass one column of the frame"
    elif array.ndim == 2 and array.shape[1] == 1:
        remedy = f"flatten it with {name}.ravel()"
    elif array.ndim == 2 and name == "y_prob":
        remedy = "pass one class's column, as in y_prob[:, 1]; measure and certify take the columns of all classes"
    else:
        remedy = "pass one value per row"
    raise InputError(f"has shape {array.shape}, not one dimension", argument=name, remedy=remedy)


def _remedy(values: Any, otherwise: str) -> str:
    """Say what to do with what is no array; of a lazy frame the type is asked, because its columns take a while."""
    return _SCANNED if hasattr(type(values), "columns") else otherwise


def _refuse_nulls(values: Any, name: str) -> None:
    """Find missing values that conversion would hide: masks, pandas' NA, polars' and arrow's nulls."""
    if isinstance(values, np.ma.MaskedArray):
        missing = np.ma.getmaskarray(values)
    elif hasattr(values, "isna"):
        missing = np.asarray(values.isna())
    elif hasattr(values, "null_count") and hasattr(values, "is_null"):
        missing = np.asarray(values.is_null())
    else:
        return
    if missing.ndim == 1 and missing.any():
        refuse_missing(name, int(np.flatnonzero(missing)[0]))


def check_objects(array: npt.NDArray[Any], name: str, *, labels_allowed: bool) -> None:
    """Refuse missing values first, then whatever else an array of Python objects should not hold."""
    for position, value in enumerate(array):
        if is_missing(value):
            refuse_missing(name, position)
    for position, value in enumerate(array):
        if isinstance(value, (str, bytes)) != labels_allowed:
            if isinstance(value, (bool, int, float, Decimal)):
                raise InputError(
                    f"has dtype object (first number {value!r})",
                    argument=name,
                    value=value,
                    remedy=float_remedy(value),
                )
            raise InputError(
                f"is {value!r} of type {type(value).__name__}, not a number",
                argument=name,
                position=position,
                value=value,
                remedy=Phrase(
                    "convert {name} with astype(float), or to plain labels with {pos_label} for outcomes",
                    name=Argument(name),
                    pos_label=Option("pos_label"),
                ),
            )


def float_remedy(first: Any) -> str:
    """Say how values that begin with this one become float64."""
    if isinstance(first, Decimal):
        return "convert decimals with CAST(... AS DOUBLE) in SQL, cast(pl.Float64) in polars, astype(float) in pandas"
    return "convert it with astype(float) first"


def is_missing(value: Any) -> bool:
    """Return whether a value says that there is none."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA has no truth value
        return True
    except ValueError:  # nor has an array, which is not missing but no single value either
        return False


def refuse_missing(name: str, position: int) -> NoReturn:
    """Refuse a value that is not there."""
    raise InputError("is missing", argument=name, position=position, remedy=MISSING_REMEDY)


def check_finite(values: npt.NDArray[Any], name: str) -> None:
    """Refuse what is missing, and infinities."""
    positions = np.flatnonzero(~np.isfinite(values))
    if positions.size:
        position = int(positions[0])
        if np.isnan(values[position]):
            refuse_missing(name, position)
        value = values[position].item()
        raise InputError(
            f"is {shown(value)}", argument=name, position=position, value=value, remedy="every value must be finite"
        )
