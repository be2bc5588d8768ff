"""DuckDB as an engine: files, tables, relations, and the frames it can read where they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from calibrant.engines.files import VIEW, Table, connect, explaining, make_scratch, open_table
from calibrant.engines.formats import first_line
from calibrant.engines.sql import Engine

if TYPE_CHECKING:
    import duckdb

_ROWS = "calibrant_rows"
_KINDS = {
    "whole": re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?"),
    "fraction": re.compile(r"FLOAT|DOUBLE|DECIMAL.*"),
    "boolean": re.compile(r"BOOLEAN"),
    "text": re.compile(r"VARCHAR"),
}


class DuckDBEngine(Engine):
    """The rows of a relation, which every statement reads anew.

    Parameters
    ----------
    relation : DuckDBPyRelation
        The rows.
    name : str
        What to call them in messages.
    file : Table, optional
        The open file they come from; it is closed with the engine.
    """

    table = _ROWS
    short_type = "USMALLINT"  # by which DuckDB adds up in an array

    def __init__(self, relation: duckdb.DuckDBPyRelation, name: str, *, file: Table | None = None) -> None:
        self.name = name
        types = zip(relation.columns, map(str, relation.types), strict=True) if file is None else file.columns.items()
        self.columns = {column: _kind(type_) for column, type_ in types}
        self._relation = relation
        self._file = file
        self._held = ExitStack()
        if file is not None:
            self._held.enter_context(file)

    @classmethod
    def from_files(cls, source: Any, *, memory_limit: str | None, temp_directory: str | None) -> DuckDBEngine:
        """Open a file, a pattern or several files."""
        table = open_table(source, memory_limit=memory_limit, temp_directory=temp_directory)
        return cls(table.relation, table.name, file=table)

    @classmethod
    def from_frame(cls, frame: Any, *, memory_limit: str | None, temp_directory: str | None) -> DuckDBEngine:
        """Read a frame of pandas, polars or Arrow where it is."""
        import duckdb

        with ExitStack() as held:
            scratch = make_scratch(temp_directory)
            if scratch is not None:
                held.enter_context(scratch)
            connection = held.enter_context(connect(memory_limit, scratch))
            name = f"the {type(frame).__name__}"
            try:
                connection.register(VIEW, frame)
                engine = cls(connection.table(VIEW), name)
            except duckdb.Error as error:
                raise ValueError(
                    f"{name} cannot be read: {first_line(error)}; leave out columns of such a type, or make them "
                    "float64 or text"
                ) from error
            engine._held = held.pop_all()
        return engine

    def run(self, statement: str) -> Mapping[str, npt.NDArray[Any]]:
        """Run one statement on the relation's connection."""
        import duckdb

        if self._file is not None:
            # Which columns a statement reads is told from their names in it; where a label looks like one, one more.
            self._file.choose(column for column in self.columns if self.quoted(column) in statement)
            with explaining(self._file):
                return self._fetched(statement)
        try:
            return self._fetched(statement)
        except duckdb.Error as error:
            raise ValueError(f"{self.name} cannot be read: {str(error).strip().splitlines()[0]}") from error

    def listed(self, names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        """Write numbers as one text for each column: DuckDB reads thousands of them many times faster than SQL."""
        if "label" in names:
            return super().listed(names, rows)
        columns = zip(names, zip(*rows, strict=True), strict=True)
        lists = ", ".join(f"unnest(CAST('[{', '.join(values)}]' AS DOUBLE[])) AS {name}" for name, values in columns)
        return f"WITH asked AS (SELECT {lists}) "

    def total(self, expression: str) -> str:
        """Write a sum that keeps what rounding takes away."""
        return f"fsum({expression})"

    def number_of_row(self) -> str:
        """Count rows in the order in which DuckDB reads them."""
        return "row_number() OVER () - 1"

    def row_said(self, position: int) -> str:
        """Say which row a position is, without the header of a text file."""
        return super().row_said(position) if self._file is None else self._file.row_said(position)

    def close(self) -> None:
        """Close the file; a connection that was handed in stays open."""
        self._held.close()

    def _fetched(self, statement: str) -> dict[str, npt.NDArray[Any]]:
        relation = self._relation if self._file is None else self._file.relation
        result = relation.query(_ROWS, statement)
        assert result is not None  # None is for statements that return no rows
        return result.fetchnumpy()


def _kind(type_name: str) -> str:
    return next((kind for kind, pattern in _KINDS.items() if pattern.fullmatch(type_name)), type_name)
