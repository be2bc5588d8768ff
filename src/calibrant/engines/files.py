"""Tables in files, opened through DuckDB: CSV, TSV, Parquet, Arrow, NPZ and JSON lines, or standard input.

Nothing is downloaded, installed or guessed: a file is read as what it is, and what cannot be read gets one message
that names the file, the place and the remedy.
"""

from __future__ import annotations

import contextlib
import csv
import difflib
import glob
import io
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, Self

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import duckdb

FORMATS = ("csv", "tsv", "parquet", "arrow", "npz", "jsonl")
"""What can be read; Feather files are Arrow files, and a JSON array of records is read like JSON lines."""

VIEW = "observations"
"""Under which name a connection knows the rows of its table."""

STANDARD_INPUT = "-"

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npz": "npz",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow", b"PK\x03\x04": "npz"}
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_DELIMITERS = (",", ";", "\t", "|")
_HEAD = 1 << 20
_NUMBERS = re.compile(r"(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*|BOOLEAN)")
_NESTED = re.compile(r".*\[\d*\]|(STRUCT|MAP|UNION)\b.*|BLOB|BIT")
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_MISSING_WORDS = {"", "na", "n/a", "nan", "null", "none", "missing", "?", "."}


class TableError(ValueError):
    """A file or one of its columns cannot be read; the message says why and what to do."""


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

    @property
    def relation(self) -> duckdb.DuckDBPyRelation:
        """The rows, as a relation that reads the file each time it is asked."""
        return self.connection.table(VIEW)

    def check_column(self, name: str) -> str:
        """Return the name of a column, or say which ones there are."""
        return check_column(self.name, self.columns, name)

    def is_numeric(self, name: str) -> bool:
        """Whether a column holds numbers or true/false, as opposed to text, dates or nested values."""
        return _NUMBERS.fullmatch(self.columns[name]) is not None

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
    known = ", ".join(repr(each) for each in list(columns)[:20])
    more = f" and {len(columns) - 20:,} more" if len(columns) > 20 else ""
    hint = f"did you mean {meant!r}? Its columns" if meant else "its columns"
    raise TableError(f"{table} has no column {name!r}; {hint} are {known}{more}")


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
    >>> with open_table(io.BytesIO(b"label,score\n1,0.75\n0,0.5\n")) as table:
    ...     table.columns, read_columns(table, ["score"])["score"]
    ({'label': 'BIGINT', 'score': 'DOUBLE'}, array([0.75, 0.5 ]))
    """
    if format is not None and format not in (*FORMATS, "feather"):
        raise TableError(f"format is {format!r}, none of {', '.join(FORMATS)}")
    scratch = tempfile.TemporaryDirectory(prefix="calibrant-", dir=temp_directory)
    connection = None
    try:
        connection = connect(memory_limit, scratch.name)
        name, paths = _files(source, Path(scratch.name))
        kind = _format(paths[0], format, name)
        table = Table(name, kind, connection, paths=tuple(paths), _scratch=scratch)
        _create_view(table, paths)
        relation = table.relation
        table.columns = {column: str(type_) for column, type_ in zip(relation.columns, relation.types, strict=True)}
    except BaseException:
        if connection is not None:
            connection.close()
        scratch.cleanup()
        raise
    return table


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
    wanted = list(dict.fromkeys(table.check_column(name) for name in names))
    for name in wanted:
        if _NESTED.fullmatch(table.columns[name]):
            raise TableError(
                f"{table.name}: column {name!r} is of type {table.columns[name]}, not one number or label per row"
            )
        if name in numbers and not table.is_numeric(name):
            _refuse_text(table, name)
    selected = ", ".join(_selected(name, table.columns[name]) for name in wanted)
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


def write_with_column(table: Table, name: str, values: npt.NDArray[Any], path: Path, options: str) -> None:
    """Write a table with one more column, its rows in their order and its text as it stands in the file.

    Parameters
    ----------
    table : Table
        From `open_table`.
    name : str
        Of the new column.
    values : array
        One value per row.
    path : Path
        Where to write.
    options : str
        What DuckDB's COPY takes, such as "FORMAT parquet".
    """
    import pyarrow

    table.connection.register("added", pyarrow.table({"value": values}))
    rows = VIEW
    if table.format in ("csv", "tsv"):  # numbers such as 007 keep their zeros, and dates their form
        rows = f"{table._reader[:-1]}, all_varchar=true)"
    with explaining(table):
        table.connection.execute(
            f"COPY (SELECT kept.*, added.value AS {quoted(name)} FROM {rows} AS kept POSITIONAL JOIN added) "
            f"TO {literal(str(path))} ({options})"
        )


def _refuse_no_rows(table: Table) -> None:
    if _first_row(table, f"SELECT 1 FROM {VIEW} LIMIT 1") is None:
        raise TableError(f"{table.name} has no rows, only column names")


def _refuse_missing(table: Table, name: str, position: int, count: int) -> NoReturn:
    others = f" (and in {count - 1:,} more)" if count > 1 else ""
    raise TableError(
        f"{table.name}: column {name!r} has no value in {table.row_said(position)}{others}; drop such rows or fill in "
        "their values"
    )


def quoted(name: str) -> str:
    """Write a column name so that SQL takes it as it is."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Write a text so that SQL takes it as it is."""
    return "'" + text.replace("'", "''") + "'"


def connect(memory_limit: str | None, scratch: str) -> duckdb.DuckDBPyConnection:
    """Open a database in memory that may put what does not fit into a folder, and that downloads nothing."""
    try:
        import duckdb
    except ImportError as missing:
        raise ImportError("reading files needs duckdb; install it with: pip install 'calibrant[cli]'") from missing
    settings: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "temp_directory": scratch,
    }
    if memory_limit is not None:
        settings["memory_limit"] = memory_limit
    try:
        return duckdb.connect(config=settings)
    except duckdb.Error as error:
        raise TableError(
            f"memory_limit is {memory_limit!r}: {_first_line(error)}; write it like 500MB or 2GB"
        ) from error


def _files(source: Any, scratch: Path) -> tuple[str, list[Path]]:
    """Return what to call the source in messages, and its files."""
    if hasattr(source, "read") or source == STANDARD_INPUT:
        stream = sys.stdin.buffer if source == STANDARD_INPUT else source
        copy = scratch / "input"
        with copy.open("wb") as spooled:
            shutil.copyfileobj(stream, spooled)
        name = "standard input" if source == STANDARD_INPUT else str(getattr(stream, "name", "the stream"))
        return name, [copy]
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source), list(_expanded(os.fspath(source)))
    paths = [path for each in source for path in _expanded(os.fspath(each))]
    if not paths:
        raise TableError("no file was named")
    return ", ".join(os.fspath(each) for each in source), paths


def _expanded(name: str) -> Iterator[Path]:
    if _REMOTE.match(name):
        raise TableError(f"{name} is an address; calibrant reads local files only: download it first")
    path = Path(name)
    try:
        if path.is_dir():
            found = [each for each in sorted(path.rglob("*")) if each.is_file() and not _hidden(each, path)]
        elif path.exists():
            found = [path]
        else:
            found = [Path(each) for each in sorted(glob.glob(name, recursive=True))]
    except (OSError, ValueError) as error:  # a name with a null character, or a folder nobody may look into
        raise TableError(f"{name!r} cannot be opened: {error}") from error
    if not found:
        what = "has no files in it" if path.is_dir() else "does not exist"
        raise TableError(f"{name} {what}; look at its spelling, or at the folder you are in")
    for each in found:
        if not os.access(each, os.R_OK):
            raise TableError(f"{each} may not be read: permission denied")
    yield from found


def _hidden(path: Path, below: Path) -> bool:
    """Whether a name starts with a dot or an underscore, as those of markers such as _SUCCESS do."""
    return any(part.startswith((".", "_")) for part in path.relative_to(below).parts)


def _format(path: Path, asked: str | None, name: str) -> str:
    if asked is not None:
        return "arrow" if asked == "feather" else asked
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in (".gz", ".zst")]
    if suffixes and suffixes[-1] in _SUFFIXES:
        return _SUFFIXES[suffixes[-1]]
    head = _head(path, name)
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    return "jsonl" if head.lstrip()[:1] in (b"{", b"[") else "csv"


def _head(path: Path, name: str) -> bytes:
    """Return the beginning of a file, decompressed."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
        compression = _compression(head)
        if compression is not None:
            import pyarrow

            with pyarrow.input_stream(str(path), compression=compression) as stream:
                head = stream.read(_HEAD)
    except OSError as error:
        raise TableError(f"{name} cannot be read: {error.strerror or error}") from error
    if not head:
        raise TableError(f"{name} is empty")
    return head


def _text_of(path: Path) -> io.TextIOWrapper:
    """Open a text file, compressed or not, as text."""
    import pyarrow

    with path.open("rb") as file:
        compression = _compression(file.read(4))
    return io.TextIOWrapper(pyarrow.input_stream(str(path), compression=compression), encoding="utf-8-sig", newline="")


def _compression(head: bytes) -> str | None:
    return next((kind for magic, kind in _COMPRESSED.items() if head.startswith(magic)), None)


def _create_view(table: Table, paths: list[Path]) -> None:
    """Make the rows known to the connection, without reading them."""
    if table.format == "npz":
        table.connection.register("source", _arrays_of_npz(paths, table.name))
        reader = "source"
    elif table.format == "arrow":
        table.connection.register("source", _arrow_dataset(paths, table.name))
        reader = "source"
    else:
        # Patterns were resolved by now: what is left of them in a name is part of the name.
        files = "[" + ", ".join(literal(glob.escape(str(path))) for path in paths) + "]"
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
    with explaining(table):
        table.connection.execute(f"CREATE VIEW {VIEW} AS SELECT * FROM {reader}")


def _parquet_options(table: Table, paths: list[Path]) -> dict[str, str]:
    for path in paths:
        _head(path, table.name)  # an empty file is told apart from a broken one
    return {}


def _json_options(table: Table, paths: list[Path]) -> dict[str, str]:
    compression = _compression_of(paths, table.name)
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
        "compression": literal(_compression_of(paths, table.name)),
    }


def _compression_of(paths: list[Path], name: str) -> str:
    kinds = set()
    for path in paths:
        with path.open("rb") as file:
            kinds.add(_compression(file.read(4)) or "none")
    if len(kinds) > 1:
        raise TableError(f"{name}: some files are compressed and others are not; read them one by one")
    return kinds.pop()


def _check_header(table: Table, paths: list[Path]) -> str:
    """Return the delimiter of the header line, after making sure that it is one."""
    for path in reversed(paths):
        head = _head(path, table.name)
        try:
            text = head.decode("utf-8-sig", errors="strict" if len(head) < _HEAD else "ignore")
        except UnicodeDecodeError as error:
            raise TableError(
                f"{table.name} is not text in UTF-8 (byte {error.start:,}); save it as UTF-8, or name its "
                f"format, one of {', '.join(FORMATS)}"
            ) from error
        if "\0" in text:
            raise TableError(f"{table.name} is not text; name its format, one of {', '.join(FORMATS)}")
        line = next(csv.reader(io.StringIO(text), delimiter="\0"), [""])[0]
        delimiter = "\t" if table.format == "tsv" else max(_DELIMITERS, key=line.count)
        names = next(csv.reader(io.StringIO(text), delimiter=delimiter), [])
        if all(_is_number(each) for each in names):
            raise TableError(
                f"{table.name}: the first line is {line[:60]!r}, numbers and not column names; add a header line"
            )
        twice = next((each for each in names if each and names.count(each) > 1), None)
        if twice is not None:
            raise TableError(f"{table.name}: two columns are named {twice!r}; rename one of them")
    return delimiter


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _arrow_dataset(paths: list[Path], name: str) -> Any:
    import pyarrow
    import pyarrow.dataset
    import pyarrow.ipc

    for path in paths:
        _head(path, name)
    try:
        with paths[0].open("rb") as file:
            is_stream = file.read(6) != b"ARROW1"
        if not is_stream:
            return pyarrow.dataset.dataset([str(path) for path in paths], format="ipc")
        tables = [pyarrow.ipc.open_stream(pyarrow.memory_map(str(path))).read_all() for path in paths]
        return pyarrow.concat_tables(tables)
    except (pyarrow.ArrowException, OSError) as error:
        raise TableError(f"{name} cannot be read as an Arrow file: {_first_line(error)}") from error


def _arrays_of_npz(paths: list[Path], name: str) -> Any:
    import pyarrow

    tables = []
    for path in paths:
        _head(path, name)
        try:
            arrays = {key: _npz_member(path, key) for key in np.load(path, allow_pickle=False).files}
        except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
            raise TableError(f"{name} cannot be read as an NPZ file: {_first_line(error)}") from error
        columns = {key: array for key, array in arrays.items() if array.ndim == 1}
        if not columns:
            shapes = ", ".join(f"{key!r} {array.shape}" for key, array in arrays.items())
            raise TableError(f"{name} has no one-dimensional arrays (it has {shapes or 'none at all'})")
        sizes = {array.size for array in columns.values()}
        if len(sizes) > 1:
            listed = ", ".join(f"{key!r} {array.size:,}" for key, array in columns.items())
            raise TableError(f"{name} holds arrays of different lengths ({listed}); save those of one table alone")
        tables.append(pyarrow.table({key: pyarrow.array(array) for key, array in columns.items()}))
    try:
        return pyarrow.concat_tables(tables)
    except pyarrow.ArrowException as error:
        raise TableError(f"{name}: the files do not hold the same columns: {_first_line(error)}") from error


def _npz_member(path: Path, key: str) -> npt.NDArray[Any]:
    """Return an array of an NPZ file: mapped into memory where it is stored as it is, read where it is compressed."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        member = archive.getinfo(f"{key}.npy")
        if member.compress_type == zipfile.ZIP_STORED:
            file.seek(member.header_offset + 26)  # the lengths of name and extra field, which stand before the data
            lengths = np.frombuffer(file.read(4), dtype="<u2")
            file.seek(member.header_offset + 30 + int(lengths.sum()))
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(file)
            if len(shape) == 1 and shape[0] and dtype.kind in "iuf" and dtype.isnative:
                return np.memmap(path, dtype=dtype, mode="r", offset=file.tell(), shape=shape)
    loaded: npt.NDArray[Any] = np.load(path, allow_pickle=False)[key]
    return loaded


def _selected(name: str, kind: str) -> str:
    """Write a column for a query whose result numpy can hold: numbers, dates and text."""
    return (
        quoted(name)
        if _NUMBERS.fullmatch(kind) or kind.startswith(("DATE", "TIMESTAMP"))
        else (f"CAST({quoted(name)} AS VARCHAR) AS {quoted(name)}")
    )


@contextlib.contextmanager
def explaining(table: Table) -> Iterator[None]:
    """Turn errors of DuckDB inside the block into one sentence about the file."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise _explained(table, error) from error


def _first_row(table: Table, sql: str) -> Any:
    with explaining(table):
        return table.connection.execute(sql).fetchone()


def _explained(table: Table, error: Exception) -> TableError:
    """Turn what DuckDB says into one sentence about the file."""
    text = str(error)
    converted = re.search(
        r"Line: (\d+)[\s\S]*?column \"([\s\S]*?)\"\. Could not convert string \"([\s\S]*?)\" to", text
    )
    if converted:
        line, column, value = converted.groups()
        return TableError(
            f"{table.name}, line {int(line):,}: column {column!r} is {value!r} and not a number, as the rows before it "
            "are; correct the line"
        )
    if table.format in ("csv", "tsv") and table.delimiter:
        uneven = _first_uneven_line(table)
        if uneven is not None:
            return TableError(f"{table.name}, {uneven}; correct the line")
    if "not utf-8" in text:
        return TableError(f"{table.name} is not text in UTF-8; save it as UTF-8")
    if "Out of Memory" in text:
        return TableError(f"{table.name}: the memory limit is too small for these columns; raise it")
    kind = {"csv": "CSV", "tsv": "TSV", "jsonl": "JSON", "parquet": "Parquet", "arrow": "Arrow", "npz": "NPZ"}
    return TableError(f"{table.name} cannot be read as {kind[table.format]}: {_first_line(error)}")


def _first_uneven_line(table: Table) -> str | None:
    """Say which line of a text table has too many or too few values, or a quote that nothing closes."""
    for path in table.paths:
        with _text_of(path) as text:
            rows = csv.reader(text, delimiter=table.delimiter, strict=True)
            try:
                width = len(next(rows))
                for row in rows:
                    if row and len(row) != width:
                        return f"line {rows.line_num:,}: {_counted(len(row), 'value')} for {_counted(width, 'column')}"
            except (csv.Error, UnicodeDecodeError) as error:
                return f"line {rows.line_num + 1:,}: {error}"
    return None


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0].rstrip(". ")


def _refuse_text(table: Table, name: str) -> NoReturn:
    """Say where the first text stands in a column that should hold numbers."""
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
