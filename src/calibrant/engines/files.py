"""Tables in files, opened through DuckDB: CSV, TSV, Parquet, Arrow, NPZ and JSON lines, or standard input.

Nothing is downloaded, installed or guessed: a file is read as what it is, and what cannot be read gets one message
that names the file, the place and the remedy. Text is read as text: a column of it becomes numbers only where numbers
are asked for, value by value, and no reader chooses a type from the first rows. Columns are known to SQL by their place
(``c0``, ``c1``, ...) and not by their name, because DuckDB does not tell ``P`` from ``p``.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Self

from calibrant.core.sql import text_literal
from calibrant.engines.databases import connect
from calibrant.engines.formats import (
    NAMED_FORMATS,
    NO_SCRATCH,
    SCRATCH_REMEDY,
    TableError,
    check_column,
    find_files,
    find_formats,
    first_line,
    listed,
    said,
)
from calibrant.engines.integrity import check_pages, check_text
from calibrant.engines.readers import TEXT_FORMATS, Part, find_parts, first_uneven_line, united_type
from calibrant.engines.statements import MISSING_LABELS, MISSING_WORDS

if TYPE_CHECKING:
    import duckdb

VIEW = "observations"
"""Under which name a connection knows the rows of its table."""

_ALL = "every_observation"  # with those that are left out

NUMBERS = re.compile(r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*|BOOLEAN)")
"""DuckDB's types of numbers, true/false among them."""

_FULL = re.compile(r"No space left on device|Disk quota exceeded|File too large|max_temp_directory_size")
INTERRUPTED = re.compile(r"Query interrupted|UDF: KeyboardInterrupt")


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
        DuckDB's type of each column, by the names in the file and in its order; text in a text table.
    paths : tuple of Path
        The files behind it.
    faults : dict
        Columns that cannot be taken from all files, and why.
    """

    name: str
    format: str
    connection: duckdb.DuckDBPyConnection
    columns: dict[str, str] = field(default_factory=dict)
    paths: tuple[Path, ...] = ()
    faults: dict[str, str] = field(default_factory=dict)
    versions: tuple[tuple[int, ...], ...] = ()
    _scratch: tempfile.TemporaryDirectory[str] | None = None
    _held: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _parts: tuple[Part, ...] = ()
    _chosen: set[str] = field(default_factory=set)
    _needed: dict[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes that the files take on disk."""
        return sum(path.stat().st_size for path in self.paths)

    @property
    def relation(self) -> duckdb.DuckDBPyRelation:
        """The rows, as a relation that reads the file each time it is asked."""
        rows = self.connection.table(VIEW)
        return rows.project(", ".join(map(self.column, self.columns))) if self._needed else rows  # without their places

    @property
    def rows_in_order(self) -> str:
        """What stands after FROM where the order of the rows matters.

        Behind a condition DuckDB may bring rows of several files in any order, so that they are numbered before it.
        """
        return f"(SELECT * FROM {VIEW} ORDER BY place)" if self._needed else VIEW

    @property
    def position(self) -> str:
        """What numbers the rows, from 0 on."""
        return f"row_number() OVER ({'ORDER BY place' if self._needed else ''}) - 1"

    @property
    def is_text(self) -> bool:
        """Whether every column holds text as it is written, numbers too."""
        return self.format in TEXT_FORMATS

    def check_column(self, name: str) -> str:
        """Return the name of a column that all files have, or say which ones there are."""
        if name not in self.columns:
            folder = next((part for path in self.paths for part in path.parts if part.startswith(f"{name}=")), None)
            if folder is not None:
                raise TableError(
                    f"has no column {name!r}, only a folder {folder!r}",
                    table=self.name,
                    remedy="what folders are called is not read: write the values into the files",
                )
        check_column(self.name, self.columns, name)
        if name in self.faults:
            raise TableError(self.faults[name], source=self.name)
        return name

    def check_all(self, names: Iterable[str]) -> None:
        """Refuse columns that not all files have, and name all that none has."""
        wanted = list(dict.fromkeys(names))
        missing = [name for name in wanted if name not in self.columns]
        if len(missing) > 1:
            raise TableError(
                f"has no columns {listed(missing)}", table=self.name, remedy=f"its columns are {listed(self.columns)}"
            )
        for name in wanted:
            self.check_column(name)

    def choose(self, names: Iterable[str]) -> None:
        """Get columns ready to be read, and no others, after checking what the files say of their own soundness.

        Whoever reads columns calls it first: those of arrays are not there before, and no others take memory.
        """
        wanted = [self.check_column(name) for name in dict.fromkeys(names) if name not in self._chosen]
        if not wanted:
            return
        for part in self._parts:
            if part.choose is not None:
                part.choose({*self._chosen, *wanted})
        if self.format == "parquet":
            with explaining(self):
                for path in self.paths:
                    check_pages(self.connection, path, said(path, self.paths, self.name), wanted)
        if self.is_text and not self._chosen:
            self.check_text()
        self._chosen.update(wanted)

    def check_text(self) -> None:
        """Refuse text that is cut off, that has a line without end, or that is no text."""
        for path in self.paths:
            check_text(path, said(path, self.paths, self.name), lines=self.format != "jsonl")

    def leave_out_missing(self, needed: Mapping[str, str]) -> tuple[int, dict[str, int]]:
        """Leave out the rows that lack a value; return how many they are, and how many lack that of each column.

        Parameters
        ----------
        needed : mapping
            The columns that rows must have, and what these hold: "number", "class" or "group". In a text table a
            number may be missing by any of `MISSING_WORDS`, the class of an outcome by `MISSING_LABELS`.
        """
        self.choose(needed)
        self._needed = dict(needed)
        lacking = {name: self._lacks(name) for name in needed}
        counted = ", ".join(f"count(*) FILTER ({condition})" for condition in lacking.values())
        with explaining(self):
            create_view(self, self._parts)
            total, *counts = self.connection.execute(f"SELECT count(*), {counted} FROM {_ALL}").fetchall()[0]
            (kept,) = self.connection.execute(f"SELECT count(*) FROM {VIEW}").fetchall()[0]
        if total and not kept:
            raise TableError(f"has no row with a value in all of {listed(needed)}", table=self.name)
        return total - kept, dict(zip(lacking, counts, strict=True))

    def _lacks(self, name: str) -> str:
        """Write the condition that a row has no value in a column."""
        own, kind = self.column(name), self._needed[name]
        absent = [f"{own} IS NULL"]
        if self.is_text and kind != "group":
            words = MISSING_WORDS if kind == "number" else MISSING_LABELS
            absent.append(f"lower(trim({own})) IN ({', '.join(map(text_literal, words))})")
        if (self.is_text and kind == "number") or self.columns[name] in ("FLOAT", "DOUBLE"):
            absent.append(f"coalesce(isnan(TRY_CAST({own} AS DOUBLE)), false)")
        return f"({' OR '.join(absent)})"

    def column(self, name: str) -> str:
        """Write a column for SQL, as it stands in the file."""
        return f"c{list(self.columns).index(name)}"

    def number(self, name: str) -> str:
        """Write a column for SQL as numbers; what is none in a text table becomes null."""
        return as_number(self.column(name)) if self.is_text else f"CAST({self.column(name)} AS DOUBLE)"

    def is_numeric(self, name: str) -> bool:
        """Whether a column holds numbers or true/false, as opposed to text, dates or nested values."""
        return NUMBERS.fullmatch(self.columns[name]) is not None

    def check_unchanged(self) -> None:
        """Refuse files that are not those of the beginning: answers must not mix two versions of the rows."""
        for path, version in zip(self.paths, self.versions, strict=True):
            if _version(path) != version:
                name = self.name if len(self.paths) == 1 else f"{self.name}: {path}"
                raise TableError(
                    "changed while it was read (another size, time or file)",
                    table=name,
                    remedy="open it again when nobody writes to it, or read a copy",
                )

    def row_said(self, position: int) -> str:
        """Say which row a position in a column is, as somebody would count who looks at the file."""
        header = ", without the header" if self.format in ("csv", "tsv") else ""
        file = ""
        if self._needed:  # rows that were left out are rows of the file
            ((position,),) = self.connection.execute(
                f"SELECT place FROM {VIEW} ORDER BY place LIMIT 1 OFFSET {position}"
            ).fetchall()
        if len(self.paths) > 1:
            ends = list(accumulate(_count_rows(path, self.format) for path in self.paths))
            place = bisect_right(ends, position)
            position -= ends[place - 1] if place else 0
            file = f" of {self.paths[place]}"
        return f"data row {position + 1:,}{file} (counted from 1{header})"

    def close(self) -> None:
        """Let go of the file and of everything kept aside for it."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def as_number(text: str) -> str:
    """Write for SQL what number a text stands for, or null: digits as everywhere, and true and false for 1 and 0."""
    words = f"CASE lower(trim({text})) WHEN 'true' THEN 1e0 WHEN 'false' THEN 0e0 END"
    return f"coalesce(TRY_CAST({text} AS DOUBLE), {words})"


def _version(path: Path) -> tuple[int, ...]:
    """Return what changes when a file is written to or replaced; nothing is like a file that is gone."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev


def open_table(
    source: str | os.PathLike[str] | BinaryIO | Sequence[str | os.PathLike[str]],
    *,
    file_format: str | None = None,
    memory_limit: str | None = None,
    temp_directory: str | None = None,
) -> Table:
    r"""Open a file of predictions, without reading more of it than its beginning.

    Parameters
    ----------
    source : path, pattern, sequence of paths, binary stream, or "-" for standard input
        A pattern such as ``part-*.parquet`` or a folder stands for its files, in the order of their names; streams and
        pipes, which can be read only once, are first copied to a temporary file.
    file_format : {"csv", "tsv", "parquet", "arrow", "feather", "npz", "jsonl"}, optional
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
    ...     table.columns, read_columns(table, ["score"], numbers=["score"])["score"]
    ({'label': 'VARCHAR', 'score': 'VARCHAR'}, array([0.75, 0.5 ]))
    """
    if file_format is not None and file_format not in NAMED_FORMATS:
        raise TableError(f"file_format is {file_format!r}, none of {', '.join(NAMED_FORMATS)}")
    with contextlib.ExitStack() as held:
        scratch = make_scratch(temp_directory)
        if scratch is not None:
            held.enter_context(scratch)
        connection = held.enter_context(connect(memory_limit, scratch))
        folder = None if scratch is None else Path(scratch.name)
        name, paths = find_files(source, folder, any_name=file_format is not None)
        kind = find_formats(paths, file_format, name)
        versions = tuple(_version(path) for path in paths)
        table = Table(name, kind, connection, paths=tuple(paths), versions=versions, _scratch=scratch)
        with explaining(table):
            create_view(table, find_parts(connection, kind, paths, name))
        table._held = held.pop_all()
    return table


def _count_rows(path: Path, file_format: str) -> int:
    """Return how many rows one file has."""
    with open_table(path, file_format=file_format) as table:
        table.choose([name for name in table.columns if name not in table.faults][:1])  # of arrays, these are the rows
        with explaining(table):
            (rows,) = table.connection.execute(f"SELECT count(*) FROM {VIEW}").fetchall()[0]
    return int(rows)


def make_scratch(folder: str | None) -> tempfile.TemporaryDirectory[str] | None:
    """Make a folder for what does not fit into memory; None where no place for it can be written to."""
    try:
        return tempfile.TemporaryDirectory(prefix="calibrant-", dir=folder)
    except OSError as error:
        if folder is None:
            return None
        raise TableError(f"temp_directory is {folder!r}, where nothing can be written: {error.strerror}") from error


def halve_memory(table: Table) -> int:
    """Let DuckDB use half of the memory that it was given, and return how many bytes that is."""
    said = str(table.connection.sql("SELECT current_setting('memory_limit')").fetchall()[0][0])
    number, unit = said.split()
    half = int(float(number) * 1024 ** ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB").index(unit)) // 2
    table.connection.execute(f"SET memory_limit = '{half}B'").fetchall()
    return half


def create_view(table: Table, parts: Sequence[Part]) -> None:
    """Make the rows known to the connection, columns united by their names, without reading them."""
    places = [{name: place for place, name in reversed(list(enumerate(part.names)))} for part in parts]
    names = list(dict.fromkeys(name for part in parts for name in part.names))
    written: list[list[str]] = [[] for _ in parts]
    for name in names:
        kinds = [part.types[own[name]] if name in own else None for part, own in zip(parts, places, strict=True)]
        first = next(place for place, kind in enumerate(kinds) if kind is not None)
        common = str(kinds[first])
        for place, kind in enumerate(kinds):
            if kind is None:
                table.faults.setdefault(
                    name, f"{parts[place].files[0]} has no column {name!r}, as {parts[first].files[0]} does"
                )
                continue
            wider = united_type(common, kind)
            if wider is None:
                table.faults[name] = (
                    f"column {name!r} is of type {common} in {parts[first].files[0]} and of type {kind} in "
                    f"{parts[place].files[0]}; write all files with one type"
                )
            common = wider or common
        twice = next((part.files[0] for part in parts if part.names.count(name) > 1), None)
        if twice is not None:
            table.faults[name] = f"two columns of {twice} are named {name!r}; rename one of them"
        for part in parts:
            if name in part.faults:
                table.faults[name] = part.faults[name]
        table.columns[name] = common
        for part, own, kind, fields in zip(parts, places, kinds, written, strict=True):
            known = kind is not None and not (name in table.faults and common != kind)
            fields.append(part.column(own[name], common) if known else "NULL")
    selects = [
        f"SELECT {', '.join(f'{field} AS c{place}' for place, field in enumerate(fields))} FROM {part.rows}"
        for part, fields in zip(parts, written, strict=True)
    ]
    table._parts = tuple(parts)
    rows = " UNION ALL ".join(selects)
    if table._needed:
        placed = f"SELECT *, row_number() OVER () - 1 AS place FROM ({rows})"
        table.connection.execute(f"CREATE OR REPLACE TEMP VIEW {_ALL} AS {placed}")
        rows = f"SELECT * FROM {_ALL} WHERE NOT ({' OR '.join(table._lacks(name) for name in table._needed)})"
    table.connection.execute(f"CREATE OR REPLACE TEMP VIEW {VIEW} AS {rows}")


@contextlib.contextmanager
def explaining(table: Table) -> Iterator[None]:
    """Turn errors of DuckDB inside the block into one sentence about the file."""
    import duckdb

    table.check_unchanged()
    try:
        yield
    except (duckdb.Error, RuntimeError, UnicodeError) as error:  # the last two: text that is none in a damaged file
        if INTERRUPTED.search(str(error)):
            raise KeyboardInterrupt from error  # which DuckDB keeps to itself
        table.check_unchanged()
        raise _explained(table, error) from error
    table.check_unchanged()


def _explained(table: Table, error: Exception) -> TableError:
    """Turn what DuckDB says into one sentence about the file."""
    text = str(error)
    for path in table.paths:
        # Standard input goes by its name, not by that of its copy.
        text = text.replace(str(path), said(path, table.paths, table.name))
    if _FULL.search(text):
        scratch = None if table._scratch is None else table._scratch.name
        return TableError(
            f"what does not fit into memory goes to the temporary folder {scratch}, which has no room for it",
            source=table.name,
            remedy=f"{SCRATCH_REMEDY}, or raise the memory limit",
        )
    if table.is_text:
        try:
            table.check_text()
            if len(table.paths) > 1 and "Out of Memory" not in text:  # which of them it is, each alone will tell
                for path in table.paths:
                    _count_rows(path, table.format)
        except TableError as unsound:
            return unsound
    uneven = first_uneven_line(table.format, table.paths, table.name)
    if uneven is not None:
        return TableError(uneven, remedy="correct the line")
    if "invalid state" in text:
        return TableError(
            "ends its lines in more than one way (LF, CR LF or CR)", table=table.name, remedy="end all of them in one"
        )
    if "not utf-8" in text:
        return TableError("is not text in UTF-8", table=table.name, remedy="save it as UTF-8")
    if "Out of Memory" in text:
        nowhere = f", and {NO_SCRATCH}" if table._scratch is None else ""
        return TableError(
            "the memory limit is too small for these columns", source=table.name, remedy=f"raise it{nowhere}"
        )
    kind = {"csv": "CSV", "tsv": "TSV", "jsonl": "JSON", "parquet": "Parquet", "arrow": "Arrow", "npz": "NPZ"}
    return TableError(f"cannot be read as {kind[table.format]}: {first_line(text)}", table=table.name)
