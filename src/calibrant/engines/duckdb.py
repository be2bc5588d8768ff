"""DuckDB as an engine: files, tables, relations, and the frames it can read where they are."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Self

import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.engines.databases import connect
from calibrant.engines.files import INTERRUPTED, VIEW, Table, as_number, explaining, make_scratch, open_table
from calibrant.engines.formats import TableError, first_line
from calibrant.engines.statements import WHOLE, Engine
from calibrant.engines.streams import BATCH_ROWS, STREAM_ROWS

if TYPE_CHECKING:
    import duckdb

_ROWS = "calibrant_rows"
_FEW_ROWS = 2**18  # for which a hash table is made more quickly than an array of all cells
_FEW_BYTES = 2**22
_BYTES_OF_ROW = 8  # in a file, where forecasts differ
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
    names : sequence of str, optional
        The columns, where DuckDB calls them differently.
    """

    short_type = "USMALLINT"  # by which DuckDB adds up in an array
    long_type = "HUGEINT"
    numbers_cells = True

    def __init__(
        self,
        relation: duckdb.DuckDBPyRelation,
        name: str,
        *,
        file: Table | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self.name = name
        fields = relation.columns
        names = fields if names is None else names
        twice = next((each for place, each in enumerate(names) if each in names[:place]), None)
        if twice is not None:
            raise TableError(f"two columns are named {twice!r}", source=name, remedy="rename one of them")
        types = relation.types if file is None else file.columns.values()
        self.columns = {column: _kind(str(type_)) for column, type_ in zip(names, types, strict=True)}
        if file is not None and file.is_text:
            self.columns = {column: "written" if kind == "text" else kind for column, kind in self.columns.items()}
        self._fields = dict(zip(names, fields, strict=True))
        self._relation = relation
        self._file = file
        self._connection = None if file is None else file.connection  # ours, which does not read statistics
        self.table = _ROWS if file is None else VIEW
        if file is not None and file.size < _FEW_BYTES:
            self.short_type, self.numbers_cells = Engine.short_type, False
        self.streams = file is not None and file.size >= STREAM_ROWS * _BYTES_OF_ROW and _has_arrow()
        self._held = ExitStack()
        if file is not None:
            self._held.enter_context(file)

    @classmethod
    def from_files(cls, source: Any, *, memory_limit: str | None, temp_directory: str | None) -> DuckDBEngine:
        """Open a file, a pattern or several files."""
        table = open_table(source, memory_limit=memory_limit, temp_directory=temp_directory)
        return cls.from_table(table)

    @classmethod
    def from_table(cls, table: Table) -> Self:
        """Read a table that is open already."""
        return cls(table.relation, table.name, file=table, names=list(table.columns))

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
                engine = cls(connection.table(VIEW), name, names=_names_of(frame))
            except duckdb.Error as error:
                raise TableError(
                    f"cannot be read: {first_line(error)}",
                    table=name,
                    remedy="leave out columns of such a type, or make them float64 or text",
                ) from error
            engine._connection, engine.table = connection, VIEW
            if hasattr(frame, "__len__") and len(frame) < _FEW_ROWS:
                engine.short_type, engine.numbers_cells = Engine.short_type, False
            engine.streams = hasattr(frame, "__len__") and len(frame) >= STREAM_ROWS and _has_arrow()
            engine._held = held.pop_all()
        return engine

    @classmethod
    def from_ibis(cls, table: Any) -> Self:
        """Read a table or an expression of Ibis on the connection of its backend, which has to be DuckDB."""
        import duckdb

        backend = table.get_backend()
        if backend.name != "duckdb":
            raise InputError(
                f"is an Ibis table of the backend {backend.name!r}, and only those of DuckDB are read where they are",
                argument="source",
                value=backend.name,
                remedy="pass table.to_pyarrow(), or the path after table.to_parquet(path)",
            )
        try:
            return cls(backend.con.sql(backend.compile(table)), "the Ibis table")
        except duckdb.Error as error:
            # Ibis hands over memtables and functions of Python when it executes an expression itself.
            raise InputError(
                f"is an Ibis table that its connection to DuckDB cannot read: {first_line(error)}",
                argument="source",
                remedy="pass table.to_pyarrow()",
            ) from error

    def check_column(self, name: str) -> None:
        """Refuse a column that some file does not have, or has in another type."""
        if self._file is None:
            super().check_column(name)
        else:
            self._file.check_column(name)

    def quoted(self, name: str) -> str:
        """Write a column's name as DuckDB knows it, which does not tell P from p."""
        return super().quoted(self._fields[name])

    def number(self, column: str) -> str:
        """Write a column as float64.

        On somebody else's connection it becomes its own neighbour towards itself, which is no other number: DuckDB
        answers what it can from what files say about their values, and knows nothing of such neighbours.
        """
        if self.columns[column] == "written":
            return as_number(self.quoted(column))
        number = super().number(column)
        return f"nextafter({number}, {number})" if self._connection is None else number

    def text(self, column: str) -> str:
        """Write a column as text, on somebody else's connection behind a case that never happens."""
        text = super().text(column)
        return f"CASE WHEN strlen({text}) < 0 THEN '' ELSE {text} END" if self._connection is None else text

    def run(self, statement: str) -> Mapping[str, npt.NDArray[Any]]:
        """Run one statement on the relation's connection."""
        with self._asking(statement):
            return self._fetched(statement)

    def batches(self, statement: str) -> Iterator[Any]:
        """Run one statement on the connection of a file or frame, and hand over batches as they come."""
        with self._asking(statement):
            yield from self._streamed(statement)

    def listed(self, names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        """Write one text for each column: DuckDB reads thousands of numbers in it many times faster than in SQL."""
        columns = map(_column, names, zip(*rows, strict=True))
        return f"WITH asked AS (SELECT {', '.join(columns)}) "

    def total(self, expression: str) -> str:
        """Write a sum that keeps what rounding takes away."""
        return f"fsum({expression})"

    def number_of_row(self) -> str:
        """Count rows in the order in which DuckDB reads them."""
        return "row_number() OVER () - 1" if self._file is None else self._file.position

    def row_said(self, position: int) -> str:
        """Say which row a position is, without the header of a text file."""
        return super().row_said(position) if self._file is None else self._file.row_said(position)

    def close(self) -> None:
        """Close the file; a connection that was handed in stays open."""
        self._held.close()

    @contextmanager
    def _asking(self, statement: str) -> Iterator[None]:
        """Read the columns that a statement names, and say which table cannot be read where it fails."""
        import duckdb

        if self._file is not None:
            # Which columns these are is told from their names in it; where a label looks like one, one more.
            self._file.choose(column for column in self.columns if self.quoted(column) in statement)
        try:
            with nullcontext() if self._file is None else explaining(self._file):
                yield
        except Exception as error:
            if INTERRUPTED.search(str(error)):
                raise KeyboardInterrupt from error  # which DuckDB keeps to itself
            if isinstance(error, duckdb.Error):
                raise TableError(f"cannot be read: {first_line(error)}", table=self.name) from error
            raise

    def _streamed(self, statement: str) -> Iterator[Any]:
        assert self._connection is not None  # the rows are not those of somebody else's
        reader = self._connection.sql(statement).to_arrow_reader(BATCH_ROWS)
        try:
            yield from reader
        finally:
            reader.close()

    def _fetched(self, statement: str) -> dict[str, npt.NDArray[Any]]:
        if self._connection is not None:
            return self._connection.execute(statement).fetchnumpy()
        result = self._relation.query(_ROWS, statement)
        assert result is not None  # None is for statements that return no rows
        return result.fetchnumpy()


def _has_arrow() -> bool:
    """Whether results can be handed over as Arrow."""
    return importlib.util.find_spec("pyarrow") is not None


def _column(name: str, values: Sequence[str]) -> str:
    """Write a column of a short table."""
    if name != "label":
        return f"{_unnested(values, 'BIGINT' if name in WHOLE else 'DOUBLE')} AS {name}"
    numbers = {label: str(number) for number, label in enumerate(dict.fromkeys(values), start=1)}
    chosen = _unnested([numbers[label] for label in values], "BIGINT")
    return f"list_extract([{', '.join(numbers)}], {chosen}) AS label"


def _unnested(numbers: Sequence[str], kind: str) -> str:
    return f"unnest(CAST('[{', '.join(numbers)}]' AS {kind}[]))"


def _names_of(frame: Any) -> list[str]:
    """Return the columns of a frame by their own names, without computing a lazy one."""
    if hasattr(frame, "collect_schema"):
        return list(frame.collect_schema().names())
    if hasattr(frame, "column_names"):
        return list(frame.column_names)
    return list(frame.schema.names) if hasattr(frame, "schema") else [str(name) for name in frame.columns]


def _kind(type_name: str) -> str:
    return next((kind for kind, pattern in _KINDS.items() if pattern.fullmatch(type_name)), type_name)
