"""Columns of an open table: read whole, counted, checked where they are, and written with one more beside them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from calibrant.engines.files import NUMBERS, VIEW, Table, as_text, explaining, literal, quoted
from calibrant.engines.formats import TableError
from calibrant.validation import FloatArray, IntArray, forecast_remedy, shown

_NESTED = re.compile(r".*\[\d*\]|(STRUCT|MAP|UNION)\b.*|BLOB|BIT")
_MISSING_WORDS = {"", "na", "n/a", "nan", "null", "none", "missing", "?", "."}
_FUNCTION = "calibrant_map"


def read_columns(table: Table, names: Iterable[str], *, numbers: Collection[str] = ()) -> dict[str, npt.NDArray[Any]]:
    """Return whole columns in the order of the rows; a missing value is refused with its place.

    Parameters
    ----------
    table : Table
        From `open_table`.
    names : iterable of str
        The columns.
    numbers : collection of str
        Those among them that must hold numbers: text in them is refused with its place too.
    """
    wanted = check_columns(table, names, numbers=numbers)
    selected = ", ".join(_selected(name, table.columns[name]) for name in wanted)
    table.choose(wanted)
    _refuse_no_rows(table)
    with explaining(table):
        fetched = table.connection.execute(f"SELECT {selected} FROM {VIEW}").fetchnumpy()
    arrays = {name: fetched[column] for name, column in zip(wanted, list(fetched), strict=True)}
    for name, values in arrays.items():
        missing = np.flatnonzero(np.ma.getmaskarray(values))
        if missing.size:
            _refuse_missing(table, name, int(missing[0]), missing.size)
        arrays[name] = np.ma.getdata(values)
    return arrays


def check_columns(table: Table, names: Iterable[str], *, numbers: Collection[str] = ()) -> list[str]:
    """Return the names of columns, each once, after making sure that they hold one number or label per row."""
    wanted = list(dict.fromkeys(table.check_column(name) for name in names))
    for name in wanted:
        if _NESTED.fullmatch(table.columns[name]):
            raise TableError(
                f"{table.name}: column {name!r} is of type {table.columns[name]}, not one number or label per row"
            )
        if name in numbers and not table.is_numeric(name):
            _refuse_text(table, name)
    return wanted


def count_rows(table: Table) -> int:
    """Return how many rows a table has."""
    table.choose(table.readable[:1])  # the rows of some formats are those of their columns
    return int(_first_row(table, f"SELECT count(*) FROM {VIEW}")[0])


def count_forecasts(table: Table, name: str, most: int) -> tuple[FloatArray, IntArray]:
    """Return the distinct forecasts in a column, and how many rows have each; a few too many where there are more."""
    check_forecast_column(table, name)
    with explaining(table):
        found = table.connection.execute(
            f"SELECT CAST({quoted(name)} AS DOUBLE) AS forecast, count(*) AS n FROM {VIEW} GROUP BY 1 LIMIT {most + 1}"
        ).fetchnumpy()
    forecast, count = np.asarray(found["forecast"]), np.asarray(found["n"])
    order = np.argsort(forecast)  # sums must not depend on the order in which DuckDB finds them
    return forecast[order], count[order]


def mean_variance(table: Table, name: str) -> float:
    """Return the mean of p (1 - p) over a column of forecasts."""
    value = f"CAST({quoted(name)} AS DOUBLE)"
    return float(_first_row(table, f"SELECT avg({value} * (1 - {value})) FROM {VIEW}")[0])


def check_forecast_column(table: Table, name: str, *, low: float = 0.0, high: float = 1.0) -> int:
    """Return how many rows a column of forecasts has, all of them from low to high, in one scan that keeps none.

    Otherwise one message counts the rows that are missing or out of range, and says where the first of them stands.
    """
    check_columns(table, [name], numbers=[name])
    table.choose([name])
    _refuse_no_rows(table)
    rows = f"(SELECT CAST({quoted(name)} AS DOUBLE) AS value FROM {VIEW})"
    missing, broken = "(value IS NULL OR isnan(value))", f"NOT value BETWEEN {low!r} AND {high!r}"
    total, gone, out, least, most = _first_row(
        table,
        f"SELECT count(*), count(*) FILTER ({missing}), count(*) FILTER (NOT {missing} AND {broken}), "
        f"min(value) FILTER (NOT {missing}), max(value) FILTER (NOT {missing}) FROM {rows}",
    )
    if not gone and not out:
        return int(total)
    position, value = _first_row(
        table,
        f"SELECT position, value FROM (SELECT row_number() OVER () - 1 AS position, value FROM {rows}) "
        f"WHERE {missing if gone else broken} ORDER BY position LIMIT 1",
    )
    if gone:
        _refuse_missing(table, name, position, gone)
    also = f" (and out of range in {out - 1:,} more)" if out > 1 else ""
    infinite = np.isinf(value)
    raise TableError(
        f"{table.name}: column {name!r} is {shown(value)} in {table.row_said(position)}{also}"
        + ("; every value must be finite" if infinite else f", outside [0, 1]; {forecast_remedy(least, most)}")
    )


def write_with_column(
    table: Table,
    name: str,
    function: Callable[[FloatArray], FloatArray],
    of: str,
    path: Path,
    options: str,
    *,
    written_as_text: bool = False,
) -> None:
    """Write a table with one more column that is a function of another, its rows in their order, some at a time.

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
    written_as_text : bool
        Whether to keep the values of a text table as they are written, which is right for another text table.
    """
    import pyarrow

    table.choose(table.columns)

    def mapped(values: Any) -> Any:
        return pyarrow.array(function(values.to_numpy()))

    kept = written_as_text and table.format in ("csv", "tsv")
    value = f"CAST({f'CAST({quoted(of)} AS {table.columns[of]})' if kept else quoted(of)} AS DOUBLE)"
    connection = table.connection
    create: Any = connection.create_function  # whose types are written differently from version to version
    create(_FUNCTION, mapped, ["DOUBLE"], "DOUBLE", type="arrow")
    try:
        with explaining(table):
            connection.execute(
                f"COPY (SELECT *, {_FUNCTION}({value}) AS {quoted(name)} FROM {as_text(table) if kept else VIEW}) "
                f"TO {literal(os.path.abspath(path))} ({options}, USE_TMP_FILE false)"
            ).fetchall()
    finally:
        connection.remove_function(_FUNCTION)


def _refuse_no_rows(table: Table) -> None:
    if _first_row(table, f"SELECT 1 FROM {VIEW} LIMIT 1") is None:
        raise TableError(f"{table.name} has no rows, only column names")


def _refuse_missing(table: Table, name: str, position: int, count: int) -> NoReturn:
    others = f" (and in {count - 1:,} more)" if count > 1 else ""
    raise TableError(
        f"{table.name}: column {name!r} has no value in {table.row_said(position)}{others}; drop such rows or fill in "
        "their values"
    )


def _selected(name: str, kind: str) -> str:
    """Write a column for a query whose result numpy can hold: numbers, dates and text."""
    return (
        quoted(name)
        if NUMBERS.fullmatch(kind) or kind.startswith(("DATE", "TIMESTAMP"))
        else (f"CAST({quoted(name)} AS VARCHAR) AS {quoted(name)}")
    )


def _first_row(table: Table, sql: str) -> Any:
    with explaining(table):
        return next(iter(table.connection.execute(sql).fetchall()), None)  # what is not fetched keeps it busy


def _refuse_text(table: Table, name: str) -> NoReturn:
    """Say where the first text stands in a column that should hold numbers."""
    table.choose([name])
    column = quoted(name)
    first = _first_row(
        table,
        f"SELECT position, value FROM (SELECT row_number() OVER () - 1 AS position, CAST({column} AS VARCHAR) AS value "
        f"FROM {VIEW}) WHERE value IS NULL OR TRY_CAST(value AS DOUBLE) IS NULL ORDER BY position LIMIT 1",
    )
    if first is None:
        _refuse_no_rows(table)
        raise TableError(f"{table.name}: column {name!r} holds numbers written as text; convert it to numbers")
    position, value = first
    if value is None or value.strip().lower() in _MISSING_WORDS:
        _refuse_missing(table, name, position, 1)
    comma = ", with a decimal point" if re.fullmatch(r"-?\d*,\d+", value) else ""
    percent = ": divide percentages by 100" if value.endswith("%") else ""
    raise TableError(
        f"{table.name}: column {name!r} is {value!r} in {table.row_said(position)}, text where a number is needed; "
        f"write numbers{comma}{percent}, or choose another column"
    )
