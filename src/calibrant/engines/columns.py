"""Columns of an open table: read whole, counted, checked where they are, and written with one more beside them."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from calibrant.core.sql import number_literal, quoted, text_literal
from calibrant.core.types import FloatArray, IntArray
from calibrant.core.voices import Either, Phrase
from calibrant.core.words import shown
from calibrant.engines.faults import text_remedy
from calibrant.engines.files import NUMBERS, VIEW, Table, as_number, create_view, explaining
from calibrant.engines.formats import TableError
from calibrant.engines.readers import NESTED, find_parts
from calibrant.engines.statements import MISSING_WORDS, is_missing_label
from calibrant.rows.checks import forecast_remedy

_NESTED = re.compile(rf".*\[\d*\]|(STRUCT|MAP|UNION)\b.*|BLOB|BIT|{NESTED}")
_FUNCTION = "calibrant_map"


def read_columns(
    table: Table,
    names: Collection[str],
    *,
    numbers: Collection[str] = (),
    outcomes: Collection[str] = (),
    classes: Collection[str] = (),
) -> dict[str, npt.NDArray[Any]]:
    """Return whole columns in the order of the rows; a missing value is refused with its place.

    Parameters
    ----------
    table : Table
        From `open_table`.
    names : collection of str
        The columns.
    numbers : collection of str
        Those among them that must hold numbers: text in them is refused with its place too. The columns of a text
        table are text otherwise.
    outcomes : collection of str
        Those that a text table may hold as numbers or as labels: numbers where all of them are, the texts otherwise.
    classes : collection of str
        Those that hold labels of outcomes, of which the texts NA and the like are none.
    """
    wanted = check_columns(table, names, numbers=numbers)
    as_numbers = {*numbers, *outcomes}
    selected = ", ".join(f"{_selected(table, name, name in as_numbers)} AS v{k}" for k, name in enumerate(wanted))
    with explaining(table):
        fetched = table.connection.execute(f"SELECT {selected} FROM {table.rows_in_order}").fetchnumpy()
    arrays = {name: fetched[f"v{k}"] for k, name in enumerate(wanted)}
    for name, values in arrays.items():
        missing = np.flatnonzero(np.ma.getmaskarray(values))
        if missing.size:
            if table.is_text and name in as_numbers:
                _refuse_text(table, name, labels_allowed=name in outcomes)
                rest = set(outcomes) - {name}
                return read_columns(table, names, numbers=numbers, outcomes=rest, classes=classes)
            _refuse_missing(table, name, int(missing[0]), missing.size)
        arrays[name] = np.ma.getdata(values)
        if table.is_text and name in classes and name not in as_numbers:
            missing = np.flatnonzero([is_missing_label(text) for text in arrays[name]])
            if missing.size:
                _refuse_missing(table, name, int(missing[0]), missing.size)
    return arrays


def read_features(table: Table, names: Collection[str]) -> dict[str, npt.NDArray[Any]]:
    """Return whole columns that may lack values, each a masked array: numbers where all that are there are numbers.

    In a text table an empty text and those such as NA are missing, and columns of true and false are truth values.
    """
    wanted = check_columns(table, names)
    selected = ", ".join(f"{_selected(table, name, False)} AS v{k}" for k, name in enumerate(wanted))
    with explaining(table):
        fetched = table.connection.execute(f"SELECT {selected} FROM {table.rows_in_order}").fetchnumpy()
    arrays = {name: np.ma.asarray(fetched[f"v{k}"]) for k, name in enumerate(wanted)}
    return {name: _typed(values) if table.is_text else values for name, values in arrays.items()}


def _typed(texts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return texts as numbers or truth values where all are, and the missing ones masked."""
    absent = np.ma.getmaskarray(texts)
    held = np.array(["" if gone else str(text) for text, gone in zip(np.ma.getdata(texts), absent, strict=True)])
    distinct, places = np.unique(held, return_inverse=True)
    missing = np.array([not text.strip() or is_missing_label(text) for text in distinct.tolist()])
    known = [text for text, gone in zip(distinct.tolist(), missing, strict=True) if not gone]
    values: npt.NDArray[Any] = distinct.astype(object)
    if known and all(text.strip().lower() in ("true", "false") for text in known):
        values = np.array([text.strip().lower() == "true" for text in distinct.tolist()])
    elif known and all(_float(text) is not None for text in known):
        values = np.array([np.nan if gone else _float(text) for text, gone in zip(distinct, missing, strict=True)])
    return np.ma.array(values[places], mask=absent | missing[places])


def check_columns(table: Table, names: Iterable[str], *, numbers: Collection[str] = ()) -> list[str]:
    """Return the names of columns, each once, after making sure that they hold one number or label per row.

    In a text table only its rows can tell.
    """
    wanted = list(dict.fromkeys(table.check_column(name) for name in names))
    for name in wanted:
        if _NESTED.fullmatch(table.columns[name]):
            raise TableError(
                f"column {name!r} is of type {table.columns[name]}, not one number or label per row", source=table.name
            )
    table.choose(wanted)
    for name in wanted:
        if name in numbers and not table.is_text and not table.is_numeric(name):
            _refuse_text(table, name)
    if _first_row(table, f"SELECT 1 FROM {VIEW} LIMIT 1") is None:
        raise TableError("has no rows, only column names", table=table.name)
    return wanted


def written_labels(texts: Sequence[str], pos_label: Any) -> tuple[list[Any], Any]:
    """Return what the different outcomes in a text table stand for, and the label of the event as one of them.

    Where all of them are numbers, or all of them true and false, that is what they are, so that 1 and 1.0 are one
    label; otherwise they are texts as they stand.
    """
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if all(text.strip().lower() in ("true", "false") for text in texts):
        event = words.get(pos_label.strip().lower(), pos_label) if isinstance(pos_label, str) else pos_label
        return [text.strip().lower() == "true" for text in texts], event
    numbers = [_float(text) for text in texts]
    event = _float(pos_label) if isinstance(pos_label, str) else pos_label
    if None in numbers or event is None:
        return list(texts), pos_label
    return numbers, event


def _float(text: str) -> float | None:
    """Return the number that a text stands for; None for text that is none, NaN included."""
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def count_rows(table: Table) -> int:
    """Return how many rows a table has."""
    table.choose([name for name in table.columns if name not in table.faults][:1])  # of arrays, these are the rows
    return int(_first_row(table, f"SELECT count(*) FROM {VIEW}")[0])


def count_forecasts(table: Table, name: str, most: int) -> tuple[FloatArray, IntArray]:
    """Return the distinct forecasts in a column, and how many rows have each; a few too many where there are more."""
    check_forecast_column(table, name)
    with explaining(table):
        found = table.connection.execute(
            f"SELECT {table.number(name)} AS forecast, count(*) AS n FROM {VIEW} GROUP BY 1 LIMIT {most + 1}"
        ).fetchnumpy()
    forecast, count = np.asarray(found["forecast"]), np.asarray(found["n"])
    order = np.argsort(forecast)  # sums must not depend on the order in which DuckDB finds them
    return forecast[order], count[order]


def mean_variance(table: Table, name: str) -> float:
    """Return the mean of p (1 - p) over a column of forecasts."""
    rows = f"(SELECT {table.number(name)} AS value FROM {VIEW})"
    return float(_first_row(table, f"SELECT favg(value * (1 - value)) FROM {rows}")[0])


def check_forecast_column(table: Table, name: str, *, low: float = 0.0, high: float = 1.0) -> int:
    """Return how many rows a column of forecasts has, all of them from low to high, in one scan that keeps none.

    Otherwise one message counts the rows that are missing or out of range, and says where the first of them stands.
    """
    check_columns(table, [name], numbers=[name])
    rows = f"(SELECT {table.number(name)} AS value, {table.position} AS position FROM {VIEW})"
    missing = "(value IS NULL OR isnan(value))"
    broken = f"NOT value BETWEEN {number_literal(low)} AND {number_literal(high)}"
    total, gone, out, least, most = _first_row(
        table,
        f"SELECT count(*), count(*) FILTER ({missing}), count(*) FILTER (NOT {missing} AND {broken}), "
        f"min(value) FILTER (NOT {missing}), max(value) FILTER (NOT {missing}) FROM {rows}",
    )
    if not gone and not out:
        return int(total)
    position, value = _first_row(
        table,
        f"SELECT position, value FROM {rows} WHERE {missing if gone else broken} ORDER BY position LIMIT 1",
    )
    if gone:
        if table.is_text:
            _refuse_text(table, name)
        _refuse_missing(table, name, position, gone)
    also = f" (and out of range in {out - 1:,} more)" if out > 1 else ""
    outside = "" if np.isinf(value) else ", outside [0, 1]"
    raise TableError(
        f"column {name!r} is {shown(value)} in {table.row_said(position)}{also}{outside}",
        source=table.name,
        remedy=forecast_remedy(least, most) if outside else "every value must be finite",
    )


def write_with_column(
    table: Table, name: str, function: Callable[[FloatArray], FloatArray], of: str, path: Path, options: str
) -> None:
    """Write a table with one more column that is a function of another, its rows in their order, some at a time.

    The other columns come through as they are. Those of a text table stay text in another one; in Parquet and JSON
    they become whole numbers, numbers or true/false where every value of the column, written as such, reads as it
    stands in the file, and stay text otherwise.

    Parameters
    ----------
    table : Table
        From `open_table`.
    name : str
        Of the new column.
    function : callable
        Takes some values and returns as many.
    of : str
        The column that holds those values, numbers in all rows.
    path : Path
        Where to write.
    options : str
        What DuckDB's COPY takes, such as "FORMAT parquet".
    """
    import pyarrow

    def mapped(values: Any) -> Any:
        return pyarrow.array(function(values.to_numpy()))

    connection = table.connection
    if table.format == "jsonl":
        with explaining(table):
            parts = find_parts(connection, table.format, table.paths, table.name, all_keys=True)
            table.columns.clear()
            create_view(table, parts)
    _check_copied(table)
    table.choose(table.columns)
    kept = "FORMAT csv" in options or not table.is_text
    types = {} if kept else _proven_types(table)
    fields = [f"{_copied(table, each, types)} AS {quoted(each)}" for each in table.columns]
    create: Any = connection.create_function  # whose types are written differently from version to version
    create(_FUNCTION, mapped, ["DOUBLE"], "DOUBLE", type="arrow")
    try:
        with explaining(table), _blaming(path):
            connection.execute(
                f"COPY (SELECT {', '.join(fields)}, {_FUNCTION}({table.number(of)}) AS {quoted(name)} "
                f"FROM {table.rows_in_order}) TO {text_literal(os.path.abspath(path))} ({options}, USE_TMP_FILE false)"
            ).fetchall()
    finally:
        # An interrupted query still runs in other threads, whose call of the function would abort a program that ends.
        # The next query waits for them.
        connection.execute("SELECT 1").fetchall()
        connection.remove_function(_FUNCTION)


@contextlib.contextmanager
def _blaming(path: Path) -> Iterator[None]:
    """Tell errors about a file that DuckDB writes from those about the files that it reads."""
    import duckdb

    try:
        yield
    except duckdb.IOException as error:
        if path.name not in str(error):
            raise
        number = _number_of(str(error).replace(str(path), ""))
        raise OSError(number, os.strerror(number), str(path)) from error


def _number_of(text: str) -> int:
    """Return the number of the system's error that a text tells in the system's words, which not all versions add."""
    found = [number for number in errno.errorcode if os.strerror(number) in text]
    return max(found, key=lambda number: len(os.strerror(number)), default=errno.EIO)  # one may begin like another


def _check_copied(table: Table) -> None:
    """Refuse columns that could not be written as they are."""
    for fault in table.faults.values():
        raise TableError(fault, source=table.name)
    names: dict[str, str] = {}
    for name in table.columns:
        other = names.setdefault(name.lower(), name)
        if other != name:
            raise TableError(
                f"columns {other!r} and {name!r} differ only in the case of their letters, which a copy cannot keep "
                "apart",
                source=table.name,
                remedy="rename one of them",
            )


def _copied(table: Table, name: str, types: dict[str, str]) -> str:
    own = table.column(name)
    return f"CAST({own} AS {types[name]})" if name in types else own


def _proven_types(table: Table) -> dict[str, str]:
    """Return the types in which every value of a column of text reads as it is written; none for the other columns.

    A whole number among fractions is one of them, unless there are fractions such as 1.0: then 1 and 1.0 are different
    texts for one number.
    """
    tests = []
    for name in table.columns:
        own = table.column(name)
        whole = f"coalesce(CAST(TRY_CAST({own} AS BIGINT) AS VARCHAR) = {own}, false)"
        number = f"coalesce(CAST(TRY_CAST({own} AS DOUBLE) AS VARCHAR) = {own}, false)"
        near = f"{whole} AND abs(TRY_CAST({own} AS DOUBLE)) <= 9007199254740992"
        some = f"{own} IS NOT NULL"
        tests += [
            f"count({own})",
            f"bool_and({own} IN ('true', 'false')) FILTER ({some})",
            f"bool_and({whole}) FILTER ({some})",
            f"bool_and({number} OR {near}) FILTER ({some})",
            f"bool_or({whole}) AND bool_or({own} LIKE '%.0')",
        ]
    found = _first_row(table, f"SELECT {', '.join(tests)} FROM {VIEW}")
    types: dict[str, str] = {}
    for place, name in enumerate(table.columns):
        count, boolean, whole, number, both = found[5 * place : 5 * place + 5]
        if count and table.columns[name] != NESTED:
            kind = "BOOLEAN" if boolean else "BIGINT" if whole else "DOUBLE" if number and not both else None
            types |= {} if kind is None else {name: kind}
    return types


def _refuse_missing(table: Table, name: str, position: int, count: int) -> NoReturn:
    others = f" (and in {count - 1:,} more)" if count > 1 else ""
    raise TableError(
        f"column {name!r} has no value in {table.row_said(position)}{others}",
        source=table.name,
        remedy=Phrase(
            "drop such rows or fill in their values{option}",
            option=Either("", ", or leave them out with --drop-missing"),
        ),
    )


def _selected(table: Table, name: str, number: bool) -> str:
    """Write a column for a query whose result numpy can hold: numbers, dates and text."""
    kind, own = table.columns[name], table.column(name)
    if table.is_text:
        return table.number(name) if number else own
    return own if NUMBERS.fullmatch(kind) or kind.startswith(("DATE", "TIMESTAMP")) else f"CAST({own} AS VARCHAR)"


def _first_row(table: Table, sql: str) -> Any:
    with explaining(table):
        return next(iter(table.connection.execute(sql).fetchall()), None)  # what is not fetched keeps it busy


def _refuse_text(table: Table, name: str, *, labels_allowed: bool = False) -> None:
    """Say where the first text stands in a column that should hold numbers, unless it may be a label."""
    column = f"CAST({table.column(name)} AS VARCHAR)"
    first = _first_row(
        table,
        f"SELECT position, value FROM (SELECT {table.position} AS position, {column} AS value FROM {VIEW}) "
        f"WHERE value IS NULL OR {as_number('value')} IS NULL OR isnan({as_number('value')}) ORDER BY position LIMIT 1",
    )
    if first is None:
        raise TableError(
            f"column {name!r} holds numbers written as text", source=table.name, remedy="convert it to numbers"
        )
    position, value = first
    if value is None or value.strip().lower() in MISSING_WORDS:
        gone = f"value IS NULL OR lower(trim(value)) IN ({', '.join(map(text_literal, MISSING_WORDS))})"
        count = _first_row(table, f"SELECT count(*) FROM (SELECT {column} AS value FROM {VIEW}) WHERE {gone}")[0]
        _refuse_missing(table, name, position, count)
    if labels_allowed:
        return
    raise TableError(
        f"column {name!r} is {value!r} in {table.row_said(position)}, text where a number is needed",
        source=table.name,
        remedy=text_remedy(value),
    )
