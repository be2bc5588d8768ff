"""Times and the periods that they lie in."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.types import IntArray
from calibrant.core.voices import Either, Phrase
from calibrant.rows.arrays import as_array, is_missing, refuse_missing
from calibrant.rows.checks import check_choice, label_places

Every = Literal["hour", "day", "week", "month"]

EVERY: tuple[Every, ...] = ("hour", "day", "week", "month")
"""How long the periods that times are cut into can be."""

_DATED = re.compile(r"\s*\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?\s*")


def period_of(times: Any, every: Every = "day") -> npt.NDArray[np.str_]:
    """Return the name of the period that each time lies in, such that later periods come later in the order of texts.

    Parameters
    ----------
    times : array-like of shape (n,)
        Dates or times: of numpy, pandas, polars or Python, or texts such as "2026-01-31" or "2026-01-31 13:05". The
        clock counts as it was written, in whatever time zone.
    every : {"hour", "day", "week", "month"}
        How long a period is. Days, and weeks by their Monday, are named as in "2026-01-31", hours as in
        "2026-01-31T13" and months as in "2026-01".

    Returns
    -------
    array of str of shape (n,)
        The names of the periods.

    Examples
    --------
    >>> period_of(["2026-01-31 13:05", "2026-02-01"], "week").tolist()
    ['2026-01-26', '2026-01-26']
    >>> period_of(["2026-01-31 13:05", "2026-02-01"], "month").tolist()
    ['2026-01', '2026-02']
    """
    length = check_choice(every, "every", EVERY)
    moments = _moments(times)
    unit = {"hour": "h", "month": "M"}.get(length, "D")
    count: IntArray = moments.astype(f"M8[{unit}]").astype(np.int64)
    if length == "week":
        count = count - (count + 3) % 7  # the first day that numpy counts from was a Thursday
    distinct, places = label_places(count, "times", count.size)
    names: npt.NDArray[np.str_] = distinct.astype(f"M8[{unit}]").astype(str)
    return names[places]


def moments_of(values: npt.NDArray[Any]) -> npt.NDArray[np.datetime64] | None:
    """Return Python's dates, or texts such as "2026-01-31", as numpy holds them; None unless all of them are dates.

    Examples
    --------
    >>> moments_of(np.array(["2026-01-31", "2026-02-01 13:05"]))
    array(['2026-01-31T00:00:00.000000', '2026-02-01T13:05:00.000000'],
          dtype='datetime64[us]')
    >>> moments_of(np.array(["2026-01-31", "20260201"])) is None
    True
    """
    for value in values.tolist():
        if not (_DATED.fullmatch(value) if isinstance(value, str) else isinstance(value, dt.date)):
            return None
    try:
        return _moments(values)
    except InputError:  # as of 2026-02-30
        return None


def _moments(times: Any) -> npt.NDArray[np.datetime64]:
    """Return times as numpy holds them, without their time zones."""
    array = as_array(times, "times")
    if array.dtype.kind == "M":
        missing = np.flatnonzero(np.isnat(array))
        if missing.size:
            refuse_missing("times", int(missing[0]))
        return array
    if array.dtype.kind in "OU":
        texts: dict[str, np.datetime64] = {}  # which repeat, and take a while to read
        moments = np.empty(array.size, dtype="M8[us]")
        for position, value in enumerate(array.tolist()):
            found = texts.get(value) if isinstance(value, str) else None
            moments[position] = _moment(value, position) if found is None else found
            if isinstance(value, str) and found is None:
                texts[value] = moments[position]
        return moments
    raise InputError(
        f"holds {array.tolist()[0]!r} and the like, no dates or times",
        argument="times",
        value=array.tolist()[0],
        remedy=Phrase(
            "write them as in 2026-01-31 13:05{how}", how=Either("; counted seconds with pandas.to_datetime(unit='s')")
        ),
    )


def _moment(value: Any, position: int) -> np.datetime64:
    if is_missing(value) or value == "":
        refuse_missing("times", position)
    found = value
    if isinstance(value, str):
        try:
            found = dt.datetime.fromisoformat(value.strip())
        except ValueError:
            found = None
    if isinstance(found, dt.datetime):
        return np.datetime64(found.replace(tzinfo=None), "us")
    if isinstance(found, dt.date):
        return np.datetime64(found, "us")
    raise InputError(
        f"is {value!r}, no date or time",
        argument="times",
        position=position,
        value=value,
        remedy="write it as in 2026-01-31 or 2026-01-31 13:05",
    )
