"""How the files of each format are read: which columns they have, and what stands after FROM to read them.

Files that agree in their columns and types make one part of a table; where they do not, there are several parts, whose
columns are united by name.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.core.sql import text_literal
from calibrant.core.words import counted
from calibrant.engines.formats import (
    HEAD_BYTES,
    NAMED_FORMATS,
    Fetch,
    TableError,
    arrow_columns,
    arrow_key,
    find_compression,
    for_duckdb,
    npz_columns,
    npz_types,
    open_text,
    read_head,
    said,
)
from calibrant.engines.integrity import LONGEST_LINE, check_encoding

if TYPE_CHECKING:
    import duckdb

TEXT_FORMATS = ("csv", "tsv", "jsonl")
"""Formats in which numbers are written as text."""

NESTED = "JSON"
"""The type of a column of JSON whose values are lists or objects."""

_DELIMITERS = (",", ";", "\t", "|")
_LINE_END = re.compile(r"[\r\n]")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_SEEN_RECORDS = 20_480
_WHOLE = re.compile(r"(U?)(TINY|SMALL|BIG|)INT(?:EGER)?")
_BITS = {"TINY": 8, "SMALL": 16, "": 32, "BIG": 64}
_EXACT = 2**53  # up to here every whole number is a float64


@dataclass(frozen=True)
class Part:
    """Files that are read together.

    Attributes
    ----------
    files : tuple of Path
    names, types : tuple of str
        Of the columns, in their order; two may have one name.
    fields : tuple of str
        How SQL writes the columns.
    rows : str
        What stands after FROM.
    faults : mapping
        Columns that cannot be read, and why.
    choose : callable or None
        Makes columns ready to be read, none of which are there before.
    """

    files: tuple[Path, ...]
    names: tuple[str, ...]
    types: tuple[str, ...]
    fields: tuple[str, ...]
    rows: str
    faults: Mapping[str, str] = field(default_factory=dict)
    choose: Callable[[Collection[str]], None] | None = None

    def column(self, place: int, common: str) -> str:
        """Write a column as one of a wider type that all files share; a number that does not fit is an error."""
        own, kind = self.fields[place], self.types[place]
        if kind == common:
            return own
        if common == "DOUBLE" and _WHOLE.fullmatch(kind):
            problem = (
                f"column {self.names[place]!r} holds whole numbers beyond 2^53, and fractions in other files: float64 "
                "cannot hold both; write all files with one type"
            )
            return (
                f"CASE WHEN {own} NOT BETWEEN -{_EXACT} AND {_EXACT} THEN error({text_literal(problem)}) "
                f"ELSE CAST({own} AS DOUBLE) END"
            )
        return f"CAST({own} AS {common})"


def united_type(one: str, other: str) -> str | None:
    """Return the type that holds all values of two types unchanged; None where there is none.

    Whole numbers together with fractions become fractions, whose values are looked at when they are read.
    """
    if one == other or other == '"NULL"':
        return one
    if one == '"NULL"':
        return other
    if all(kind == "VARCHAR" or kind.startswith("ENUM") for kind in (one, other)):
        return "VARCHAR"
    whole = [found for kind in (one, other) if (found := _WHOLE.fullmatch(kind))]
    if len(whole) == 2:
        (first, first_bits), (second, second_bits) = ((found[1], _BITS[found[2]]) for found in whole)
        if first == second:
            return one if first_bits > second_bits else other
        bits = max(first_bits * (2 if first else 1), second_bits * (2 if second else 1))
        return {16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"}.get(bits)
    if len(whole) + sum(kind in ("FLOAT", "DOUBLE") for kind in (one, other)) == 2:
        return "DOUBLE"
    return None


def find_parts(
    connection: duckdb.DuckDBPyConnection, file_format: str, paths: Sequence[Path], name: str, *, all_keys: bool = False
) -> list[Part]:
    """Return how files are read, looking at the beginning of each and at no more of their rows.

    Parameters
    ----------
    connection : DuckDBPyConnection
    file_format : one of `FORMATS`
    paths : sequence of Path
    name : str
        What to call the files in messages.
    all_keys : bool
        Whether to look through all records of JSON for their keys; those of the first alone otherwise, which do for
        columns that must have a value everywhere.
    """
    if file_format in ("npz", "arrow"):
        key, columns = (npz_types, npz_columns) if file_format == "npz" else (arrow_key, arrow_columns)
        keys = [key(path, said(path, paths, name)) for path in paths]
        return [
            _chosen_part(connection, f"source{number}", files, *columns(files, said(files[0], paths, name)))
            for number, files in enumerate(_alike(paths, keys))
        ]
    if file_format == "parquet":
        return _parquet_parts(connection, paths, name)
    if file_format == "jsonl":
        return [_json_part(connection, paths, name, None if all_keys else _SEEN_RECORDS)]
    return _csv_parts(file_format, paths, name)


def _listed(paths: Iterable[Path]) -> str:
    # Patterns were resolved by now: what is left of them in a name is part of the name.
    return "[" + ", ".join(text_literal(for_duckdb(path)) for path in paths) + "]"


def _described(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], reader: str, names: Sequence[str]) -> Part:
    """Return what a reader gives whose types DuckDB knows; the names are given, which it changes where they collide."""
    types = connection.sql(f"SELECT * FROM {reader}").types
    fields = tuple(f"c{place}" for place in range(len(types)))
    return Part(tuple(files), tuple(names), tuple(map(str, types)), fields, f"{reader} AS given({', '.join(fields)})")


def _chosen_part(
    connection: duckdb.DuckDBPyConnection,
    source: str,
    files: Sequence[Path],
    columns: Sequence[tuple[str, Any]],
    fetch: Fetch,
) -> Part:
    """Return arrays as a part of a table, which are read when they are chosen, if DuckDB and Arrow know their types."""
    import pyarrow

    names = [name for name, _ in columns]
    known = [_is_known(connection, kind) for _, kind in columns]
    faults = {
        name: f"column {name!r} is of type {kind}, which cannot be read; save numbers as float64 and labels as text"
        for (name, kind), is_known in zip(columns, known, strict=True)
        if not is_known
    }
    # What is wrong with two columns of one name, `create_view` says.
    readable = [
        column for column, is_known in zip(columns, known, strict=True) if is_known and names.count(column[0]) == 1
    ]
    if not readable:
        listed = ", ".join(f"{name!r} ({kind})" for name, kind in columns)
        raise TableError("has no column that can be read", table=files[0], remedy=f"it has {listed or 'none at all'}")
    schema = pyarrow.schema(readable)

    def choose(chosen: Collection[str]) -> None:
        connection.register(source, fetch(schema, [name for name in schema.names if name in chosen]))

    choose(())
    part = _described(connection, files, source, schema.names)
    own = dict(zip(schema.names, zip(part.fields, part.types, strict=True), strict=True))
    fields, types = zip(*(own.get(name, ("NULL", str(kind))) for name, kind in columns), strict=True)
    return replace(part, names=tuple(names), types=types, fields=fields, faults=faults, choose=choose)


def _is_known(connection: duckdb.DuckDBPyConnection, kind: Any) -> bool:
    """Whether DuckDB reads a type; those of numpy that Arrow has no type for it does not."""
    import duckdb
    import pyarrow

    if not isinstance(kind, pyarrow.DataType):
        return False
    try:
        connection.from_arrow(pyarrow.table({"values": pyarrow.nulls(0, kind)}))
    except duckdb.NotImplementedException:
        return False
    return True


def _alike(paths: Sequence[Path], keys: Sequence[object]) -> list[list[Path]]:
    """Return neighbouring files whose keys are equal, together."""
    pairs = zip(paths, keys, strict=True)
    return [[path for path, _ in run] for _, run in groupby(pairs, key=lambda pair: pair[1])]


def _parquet_parts(connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], name: str) -> list[Part]:
    for path in paths:
        read_head(path, said(path, paths, name))  # an empty file is told apart from a broken one
    schemas = []
    for path in paths:
        found = connection.execute(
            "SELECT name, type, converted_type, logical_type, num_children, type_length, scale, precision FROM "
            f"parquet_schema({text_literal(for_duckdb(path))})"
        ).fetchall()
        schemas.append(tuple(found))
    parts = []
    for files in _alike(paths, schemas):
        reader = f"read_parquet({_listed(files)}, hive_partitioning=false, union_by_name=false)"
        parts.append(_described(connection, files, reader, _top_names(schemas[paths.index(files[0])])))
    return parts


def _top_names(schema: Sequence[tuple[object, ...]]) -> list[str]:
    """Return the columns of a Parquet file from its tree of fields, which is listed depth first from the root on."""
    names, place = [], 1
    while place < len(schema):
        names.append(str(schema[place][0]))
        open_fields = 1
        while open_fields:
            open_fields += int(str(schema[place][4] or 0)) - 1
            place += 1
    return names


def _json_part(connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], name: str, records: int | None) -> Part:
    """Return records whose values are written by their keys, so that letters' case counts."""
    compression = find_compression(paths, name)
    reader = f"read_json_objects({_listed(paths)}, format='auto', compression={text_literal(compression)})"
    some = f"(SELECT json FROM {reader}{'' if records is None else f' LIMIT {records}'})"
    found = connection.execute(
        f"SELECT keys, min(place) AS first FROM (SELECT json_keys(json) AS keys, row_number() OVER () AS place "
        f"FROM {some}) GROUP BY keys ORDER BY first"
    ).fetchall()
    names = list(dict.fromkeys(key for keys, _ in found for key in keys or ()))
    if not names:
        raise TableError('holds no records with named values, such as {"y": 1, "p": 0.5}', table=name)
    twice = next((key for keys, _ in found for key in keys or () if keys.count(key) > 1), None)
    if twice is not None:
        raise TableError(f"a record has two values named {twice!r}", source=name, remedy="rename one of them")
    places = [text_literal("/" + key.replace("~", "~0").replace("/", "~1")) for key in names]
    nested = ", ".join(f"bool_or(json_type(json, {place}) IN ('OBJECT', 'ARRAY'))" for place in places)
    is_nested = connection.execute(f"SELECT {nested} FROM {some}").fetchall()[0]
    types = tuple(NESTED if each else "VARCHAR" for each in is_nested)
    return Part(tuple(paths), tuple(names), types, tuple(f"(json ->> {place})" for place in places), reader)


def _csv_parts(file_format: str, paths: Sequence[Path], name: str) -> list[Part]:
    headers = [read_header(file_format, path, said(path, paths, name)) for path in paths]
    compression = find_compression(paths, name)
    parts = []
    for files in _alike(paths, headers):
        delimiter, names = headers[paths.index(files[0])]
        fields = tuple(f"c{place}" for place in range(len(names)))
        options = {
            "header": "true",
            "auto_detect": "false",
            "columns": "{" + ", ".join(f"'{field}': 'VARCHAR'" for field in fields) + "}",
            "delim": text_literal(delimiter),
            "quote": "'\"'",
            "escape": "'\"'",
            "comment": "''",
            "skip": "0",
            "strict_mode": "true",
            "null_padding": "false",
            "hive_partitioning": "false",
            "compression": text_literal(compression),
        }
        settings = "".join(f", {option}={value}" for option, value in options.items())
        reader = f"read_csv({_listed(files)}{settings})"
        parts.append(Part(tuple(files), names, ("VARCHAR",) * len(names), fields, reader))
    return parts


def read_header(file_format: str, path: Path, name: str) -> tuple[str, tuple[str, ...]]:
    """Return what stands between the values of a text table, and its columns, after making sure that they are names."""
    head = read_head(path, name)
    check_encoding(head, name)
    try:
        text = head.decode("utf-8-sig", errors="strict" if len(head) < HEAD_BYTES else "ignore")
    except UnicodeDecodeError as error:
        raise TableError(
            f"is not text in UTF-8 (byte {error.start:,})",
            table=name,
            remedy=f"save it as UTF-8, or name its format, one of {', '.join(NAMED_FORMATS)}",
        ) from error
    if "\0" in text:
        raise TableError("is not text", table=name, remedy=f"name its format, one of {', '.join(NAMED_FORMATS)}")
    line = _LINE_END.split(_QUOTED.sub("", text), maxsplit=1)[0]
    delimiter = "\t" if file_format == "tsv" else max(_DELIMITERS, key=line.count)
    try:
        names = [each.strip() for each in next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])]
    except csv.Error as error:
        raise TableError(
            f"the first line is no header of column names: {error}", source=name, remedy="correct it"
        ) from error
    if not names:
        raise TableError("is empty", table=name)
    if all(_is_number(each) for each in names):
        raise TableError(
            f"the first line is {line.strip()[:60]!r}, numbers and not column names",
            source=name,
            remedy="add a header line",
        )
    names = [each or f"column{place}" for place, each in enumerate(names)]
    seen: set[str] = set()
    for each in names:
        if each in seen:
            raise TableError(f"two columns are named {each!r}", source=name, remedy="rename one of them")
        seen.add(each)
    return delimiter, tuple(names)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def first_uneven_line(file_format: str, paths: Collection[Path], name: str) -> str | None:
    """Say which line of a text table has too many or too few values, or a quote that nothing closes."""
    if file_format not in ("csv", "tsv"):
        return None
    for path in paths:
        file = said(path, paths, name)
        delimiter, names = read_header(file_format, path, file)
        with open_text(path) as text:
            rows = csv.reader(_lines(text), delimiter=delimiter, strict=True)
            width = len(names)
            try:
                for row in rows:
                    if row and len(row) != width:
                        values, columns = counted(len(row), "value"), counted(width, "column")
                        return f"{file}, line {rows.line_num:,}: {values} for {columns}"
            except (csv.Error, UnicodeDecodeError) as error:
                return f"{file}, line {rows.line_num + 1:,}: {error}"
    return None


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    """Give the lines of a text, none of them longer than memory is meant for."""
    while line := text.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise csv.Error(f"longer than {LONGEST_LINE:,} characters")
        yield line
