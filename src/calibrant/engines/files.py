"""Tables in files, opened through DuckDB: CSV, TSV, Parquet, Arrow, NPZ and JSON lines, or standard input.

Nothing is downloaded, installed or guessed: a file is read as what it is, and what cannot be read gets one message
that names the file, the place and the remedy.
"""

from __future__ import annotations

import contextlib
import csv
import difflib
import io
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from calibrant.engines.formats import (
    FORMATS,
    HEAD_BYTES,
    NO_SCRATCH,
    SCRATCH_REMEDY,
    Fetch,
    TableError,
    arrow_columns,
    find_compression,
    find_files,
    find_formats,
    first_line,
    for_duckdb,
    npz_columns,
    open_text,
    read_head,
    refuse_twins,
    said,
)
from calibrant.engines.integrity import LONGEST_LINE, check_pages, check_text

if TYPE_CHECKING:
    import duckdb

VIEW = "observations"
"""Under which name a connection knows the rows of its table."""

NUMBERS = re.compile(r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*|BOOLEAN)")
"""DuckDB's types of numbers, true/false among them."""

_DELIMITERS = (",", ";", "\t", "|")
_LISTED = 20
_FULL = re.compile(
    r"(?:file \\?\"([^\"\\]*)\\?\": )?"
    r"(No space left on device|Disk quota exceeded|File too large|max_temp_directory_size)"
)
_INTERRUPTED = re.compile(r"Query interrupted|UDF: KeyboardInterrupt")
_LINE_END = re.compile(r"[\r\n]")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')


@dataclass
class Table:
    """An open table: a connection of its own, the columns, and the rows as a view that is read when asked.

    Attributes
    ----------
    name : str
        The file as the user named it, for messages.
    format : str
        One of `FORMATS`.
    connection : DuckDBPyConnection
        Knows the rows under the name ``observations``.
    columns : dict
        DuckDB's type of each column, in the order of the file.
    paths : tuple of Path
        The files behind it.
    delimiter : str
        What stands between the values of a text table.
    """

    name: str
    format: str
    connection: duckdb.DuckDBPyConnection
    columns: dict[str, str] = field(default_factory=dict)
    paths: tuple[Path, ...] = ()
    delimiter: str = ""
    _reader: str = ""
    _scratch: tempfile.TemporaryDirectory[str] | None = None
    _fetch: Fetch | None = None
    _readable: Any = None
    _chosen: set[str] = field(default_factory=set)

    @property
    def size(self) -> int:
        """Bytes that the files take on disk."""
        return sum(path.stat().st_size for path in self.paths)

    @property
    def relation(self) -> duckdb.DuckDBPyRelation:
        """The rows, as a relation that reads the file each time it is asked."""
        return self.connection.table(VIEW)

    def check_column(self, name: str) -> str:
        """Return the name of a column, or say which ones there are."""
        return check_column(self.name, self.columns, name)

    @property
    def readable(self) -> list[str]:
        """The columns of a type that can be read."""
        return list(self.columns) if self._readable is None else list(self._readable.names)

    def choose(self, names: Iterable[str]) -> None:
        """Get columns ready to be read, and no others, after checking what the file says of its own soundness.

        Whoever reads columns calls it first: others of an NPZ file and of an Arrow stream are not there.
        """
        wanted = [name for name in dict.fromkeys(names) if name not in self._chosen]
        for name in wanted:
            if name not in self.readable:
                raise TableError(
                    f"{self.name}: column {name!r} is of type {self.columns[name]}, which cannot be read; save numbers "
                    "as float64 and labels as text"
                )
        if not wanted:
            return
        if self._fetch is not None:
            self.connection.register("source", self._fetch(self._readable, [*sorted(self._chosen), *wanted]))
        if self.format == "parquet":
            with explaining(self):
                for path in self.paths:
                    check_pages(self.connection, path, said(path, self.paths, self.name), wanted)
        if self.format in ("csv", "tsv", "jsonl") and not self._chosen:
            self.check_text()
        self._chosen.update(wanted)

    def check_text(self) -> None:
        """Refuse text that is cut off, or that is none."""
        for path in self.paths:
            check_text(path, said(path, self.paths, self.name), lines=self.format != "jsonl")

    def is_numeric(self, name: str) -> bool:
        """Whether a column holds numbers or true/false, as opposed to text, dates or nested values."""
        return NUMBERS.fullmatch(self.columns[name]) is not None

    def row_said(self, position: int) -> str:
        """Say which row a position in a column is, as somebody would count who looks at the file."""
        header = ", without the header" if self.format in ("csv", "tsv") else ""
        return f"data row {position + 1:,} (counted from 1{header})"

    def close(self) -> None:
        """Let go of the file and of everything kept aside for it."""
        self.connection.close()
        if self._scratch is not None:
            self._scratch.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def check_column(table: str, columns: Collection[str], name: str) -> str:
    """Return the name of a column, or say which ones the table has."""
    if name in columns:
        return name
    near = difflib.get_close_matches(name.lower(), [each.lower() for each in columns], n=1)
    meant = next((each for each in columns if each.lower() in near), None)
    hint = f"did you mean {meant!r}? Its columns" if meant else "its columns"
    raise TableError(f"{table} has no column {name!r}; {hint} are {listed(columns)}")


def listed(columns: Collection[str]) -> str:
    """List columns, the first ones where there are many."""
    more = f" and {len(columns) - _LISTED:,} more" if len(columns) > _LISTED else ""
    return ", ".join(repr(name) for name in list(columns)[:_LISTED]) + more


def open_table(
    source: str | os.PathLike[str] | BinaryIO | Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,
    memory_limit: str | None = None,
    temp_directory: str | None = None,
) -> Table:
    r"""Open a file of predictions, without reading more of it than its beginning.

    Parameters
    ----------
    source : path, pattern, sequence of paths, binary stream, or "-" for standard input
        A pattern such as ``part-*.parquet`` or a folder stands for its files, in the order of their names; streams are
        first copied to a temporary file.
    format : {"csv", "tsv", "parquet", "arrow", "npz", "jsonl"}, optional
        By default what the name ends in, and where that says nothing, what the first bytes look like. Text may be
        compressed with gzip or zstd.
    memory_limit : str, optional
        The most memory that DuckDB may use, such as "2GB".
    temp_directory : str, optional
        Where it puts what does not fit; the system's folder for temporary files by default.

    Examples
    --------
    >>> import io
    >>> from calibrant.engines.columns import read_columns
    >>> with open_table(io.BytesIO(b"label,score\n1,0.75\n0,0.5\n")) as table:
    ...     table.columns, read_columns(table, ["score"])["score"]
    ({'label': 'BIGINT', 'score': 'DOUBLE'}, array([0.75, 0.5 ]))
    """
    if format is not None and format not in (*FORMATS, "feather"):
        raise TableError(f"format is {format!r}, none of {', '.join(FORMATS)}")
    with contextlib.ExitStack() as held:
        scratch = make_scratch(temp_directory)
        if scratch is not None:
            held.enter_context(scratch)
        connection = held.enter_context(connect(memory_limit, scratch))
        folder = None if scratch is None else Path(scratch.name)
        name, paths = find_files(source, folder, any_name=format is not None)
        kind = find_formats(paths, format, name)
        table = Table(name, kind, connection, paths=tuple(paths), _scratch=scratch)
        _create_view(table, paths)
        with explaining(table):
            relation = table.relation
            table.columns |= {name: str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}
        held.pop_all()
    return table


def make_scratch(folder: str | None) -> tempfile.TemporaryDirectory[str] | None:
    """Make a folder for what does not fit into memory; None where no place for it can be written to."""
    try:
        return tempfile.TemporaryDirectory(prefix="calibrant-", dir=folder)
    except OSError as error:
        if folder is None:
            return None
        raise TableError(f"temp_directory is {folder!r}, where nothing can be written: {error.strerror}") from error


def quoted(name: str) -> str:
    """Write a column name so that SQL takes it as it is."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Write a text so that SQL takes it as it is."""
    return "'" + text.replace("'", "''") + "'"


def connect(memory_limit: str | None, scratch: tempfile.TemporaryDirectory[str] | None) -> duckdb.DuckDBPyConnection:
    """Open a database in memory that may put what does not fit into a folder, and that downloads nothing."""
    try:
        import duckdb
    except ImportError as missing:
        raise ImportError("reading files needs duckdb; install it with: pip install 'calibrant[cli]'") from missing
    settings: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "temp_directory": "" if scratch is None else scratch.name,
    }
    if memory_limit is not None:
        settings["memory_limit"] = memory_limit
    try:
        connection = duckdb.connect(config=settings)
    except duckdb.Error as error:
        raise TableError(
            f"memory_limit is {memory_limit!r}: {first_line(error)}; write it like 500MB or 2GB"
        ) from error
    connection.execute("SET perfect_ht_threshold = 17")  # keys of 16 bits, and none, are added up in an array
    return connection


def halve_memory(table: Table) -> int:
    """Let DuckDB use half of the memory that it was given, and return how many bytes that is."""
    said = str(table.connection.sql("SELECT current_setting('memory_limit')").fetchall()[0][0])
    number, unit = said.split()
    half = int(float(number) * 1024 ** ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB").index(unit)) // 2
    table.connection.execute(f"SET memory_limit = '{half}B'").fetchall()
    return half


def _create_view(table: Table, paths: list[Path]) -> None:
    """Make the rows known to the connection, without reading them."""
    if table.format in ("npz", "arrow"):
        types, table._fetch = (npz_columns if table.format == "npz" else arrow_columns)(paths, table.name)
        table.columns = {name: str(kind) for name, kind in types.items()}
        table._readable = _readable(table.connection, types)
        if not table._readable.names:
            kinds = ", ".join(f"{name!r} ({kind})" for name, kind in table.columns.items())
            raise TableError(f"{table.name} has no column that can be read; it has {kinds or 'none at all'}")
        table.connection.register("source", table._fetch(table._readable, ()))
        reader = "source"
    else:
        # Patterns were resolved by now: what is left of them in a name is part of the name.
        files = "[" + ", ".join(literal(for_duckdb(path)) for path in paths) + "]"
        options = {
            "csv": _csv_options,
            "tsv": _csv_options,
            "jsonl": _json_options,
            "parquet": _parquet_options,
        }[table.format](table, paths)
        function = {"parquet": "read_parquet", "jsonl": "read_json"}.get(table.format, "read_csv")
        settings = "".join(f", {option}={value}" for option, value in options.items())
        reader = f"{function}({files}{settings})"
    table._reader = reader
    if table.format in ("csv", "tsv"):
        table._reader = _with_labelsas_text(table)
    with explaining(table):
        table.connection.execute(f"CREATE VIEW {VIEW} AS SELECT * FROM {table._reader}")


def _readable(connection: duckdb.DuckDBPyConnection, types: Mapping[str, Any]) -> Any:
    """Return the schema of those columns that DuckDB can read; a type that Arrow does not know is a text here."""
    import duckdb
    import pyarrow

    fields = []
    for name, kind in types.items():
        if isinstance(kind, str):
            continue
        with contextlib.suppress(duckdb.NotImplementedException):
            connection.from_arrow(pyarrow.table({name: pyarrow.nulls(0, kind)}))
            fields.append((name, kind))
    return pyarrow.schema(fields)


def _with_labelsas_text(table: Table) -> str:
    """Return the reader, with labels such as yes and no read as text: only true and false are truth values."""
    with explaining(table):
        relation = table.connection.sql(f"SELECT * FROM {table._reader}")
        types = dict(zip(relation.columns, map(str, relation.types), strict=True))
        labels = []
        for name in (name for name, kind in types.items() if kind == "BOOLEAN"):
            words = table.connection.execute(
                f"SELECT DISTINCT lower(word) FROM (SELECT {quoted(name)} AS word FROM {as_text(table)} LIMIT 1000)"
            ).fetchall()
            if not {word for (word,) in words} <= {"true", "false", None}:
                labels.append(name)
    if not labels:
        return table._reader
    kept = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in labels)
    return f"{table._reader[:-1]}, types={{{kept}}})"


def as_text(table: Table) -> str:
    """Return the reader of a text table with every value as it is written."""
    return f"{table._reader[:-1]}, all_varchar=true)"


def _parquet_options(table: Table, paths: list[Path]) -> dict[str, str]:
    for path in paths:
        read_head(path, said(path, paths, table.name))  # an empty file is told apart from a broken one
    return {}


def _json_options(table: Table, paths: list[Path]) -> dict[str, str]:
    compression = find_compression(paths, table.name)
    return {"compression": literal(compression), "union_by_name": "true"}


def _csv_options(table: Table, paths: list[Path]) -> dict[str, str]:
    table.delimiter = _check_header(table, paths)
    return {
        "header": "true",
        "delim": literal(table.delimiter),
        "quote": "'\"'",
        "escape": "'\"'",
        "comment": "''",
        "skip": "0",
        "strict_mode": "true",
        "null_padding": "false",
        "union_by_name": "true",
        "compression": literal(find_compression(paths, table.name)),
        "auto_type_candidates": "['BOOLEAN', 'BIGINT', 'DOUBLE', 'VARCHAR']",  # dates stay text, as they are written
    }


def _check_header(table: Table, paths: list[Path]) -> str:
    """Return the delimiter of the header line, after making sure that it is one."""
    for path in reversed(paths):
        name = said(path, paths, table.name)
        head = read_head(path, name)
        try:
            text = head.decode("utf-8-sig", errors="strict" if len(head) < HEAD_BYTES else "ignore")
        except UnicodeDecodeError as error:
            raise TableError(
                f"{name} is not text in UTF-8 (byte {error.start:,}); save it as UTF-8, or name its format, one of "
                f"{', '.join(FORMATS)}"
            ) from error
        if "\0" in text:
            raise TableError(f"{name} is not text; name its format, one of {', '.join(FORMATS)}")
        line = _LINE_END.split(_QUOTED.sub("", text), maxsplit=1)[0]
        delimiter = "\t" if table.format == "tsv" else max(_DELIMITERS, key=line.count)
        try:
            names = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])
        except csv.Error as error:
            raise TableError(f"{name}: the first line is no header of column names: {error}; correct it") from error
        if all(_is_number(each) for each in names):
            raise TableError(
                f"{name}: the first line is {line.strip()[:60]!r}, numbers and not column names; add a header line"
            )
        refuse_twins(names, name)
    return delimiter


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@contextlib.contextmanager
def explaining(table: Table) -> Iterator[None]:
    """Turn errors of DuckDB inside the block into one sentence about the file."""
    import duckdb

    try:
        yield
    except (duckdb.Error, RuntimeError, UnicodeError) as error:  # the last two: text that is none in a damaged file
        if _INTERRUPTED.search(str(error)):
            raise KeyboardInterrupt from error  # which DuckDB keeps to itself
        raise _explained(table, error) from error


def _explained(table: Table, error: Exception) -> TableError:
    """Turn what DuckDB says into one sentence about the file."""
    text = str(error)
    for path in table.paths:
        text = text.replace(str(path), table.name)  # standard input goes by its name, not by that of its copy
    full = _FULL.search(text)
    if full:
        return _explained_full(table, full[1], full[2])
    converted = re.search(
        r"Line: (\d+)[\s\S]*?column \"([\s\S]*?)\"\. Could not convert string \"([\s\S]*?)\" to", text
    )
    if converted:
        line, column, value = converted.groups()
        return TableError(
            f"{table.name}, line {int(line):,}: column {column!r} is {value!r} and not a number, as the rows before it "
            "are; correct the line"
        )
    if table.format in ("csv", "tsv", "jsonl"):
        try:
            table.check_text()
        except TableError as unsound:
            return unsound
    if table.format in ("csv", "tsv") and table.delimiter:
        uneven = _first_uneven_line(table)
        if uneven is not None:
            return TableError(f"{table.name}, {uneven}; correct the line")
    if "not utf-8" in text:
        return TableError(f"{table.name} is not text in UTF-8; save it as UTF-8")
    if "Out of Memory" in text:
        nowhere = f", and {NO_SCRATCH}" if table._scratch is None else ""
        return TableError(f"{table.name}: the memory limit is too small for these columns; raise it{nowhere}")
    kind = {"csv": "CSV", "tsv": "TSV", "jsonl": "JSON", "parquet": "Parquet", "arrow": "Arrow", "npz": "NPZ"}
    return TableError(f"{table.name} cannot be read as {kind[table.format]}: {first_line(text)}")


def _explained_full(table: Table, path: str | None, reason: str) -> TableError:
    """Say which disk is full: the one that is written to, or the one for what does not fit into memory."""
    scratch = None if table._scratch is None else table._scratch.name
    if path is not None and not (scratch and path.startswith(scratch)):
        return TableError(f"{path} cannot be written: {reason}; make room, or write to another disk")
    return TableError(
        f"{table.name}: what does not fit into memory goes to the temporary folder {scratch}, which has no room for "
        f"it; {SCRATCH_REMEDY}, or raise the memory limit"
    )


def _first_uneven_line(table: Table) -> str | None:
    """Say which line of a text table has too many or too few values, or a quote that nothing closes."""
    for path in table.paths:
        with open_text(path) as text:
            rows = csv.reader(_lines(text), delimiter=table.delimiter, strict=True)
            try:
                width = len(next(rows))
                for row in rows:
                    if row and len(row) != width:
                        return f"line {rows.line_num:,}: {_counted(len(row), 'value')} for {_counted(width, 'column')}"
            except (csv.Error, UnicodeDecodeError) as error:
                return f"line {rows.line_num + 1:,}: {error}"
    return None


def _lines(text: io.TextIOWrapper) -> Iterator[str]:
    """Give the lines of a text, none of them longer than memory is meant for."""
    while line := text.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise csv.Error(f"longer than {LONGEST_LINE:,} characters")
        yield line


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
