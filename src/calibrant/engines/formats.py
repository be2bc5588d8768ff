"""What a source of rows is: files, patterns, folders and streams, their formats, and the arrays in them."""

from __future__ import annotations

import contextlib
import difflib
import errno
import glob
import io
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import CalibrantError, InputError

if TYPE_CHECKING:
    import pyarrow

FORMATS = ("csv", "tsv", "parquet", "arrow", "npz", "jsonl")
"""What can be read; Feather files are Arrow files, and a JSON array of records is read like JSON lines."""

NAMED_FORMATS = (*FORMATS, "feather")
"""What users may call them."""

STANDARD_INPUT = "-"
"""Stands for the standard input stream where a file is named."""

HEAD_BYTES = 1 << 20
"""How much of a file is looked at to find out what it is."""

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
_WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls")
_OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_OFFICE_PARTS = (b".xml", b".rels")  # how the first name in the archive of a workbook ends, and no array's
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_LISTED = 20
_FEW_FILES = 2
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_LEFT_OVER = re.compile(
    r".*~|#.*#|.*\.(bak|backup|old|orig|tmp|temp|part|partial|crdownload|swp|swo|crc)", re.IGNORECASE
)
_CHUNK = 1 << 20
_BLOCK = 1 << 16
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

SCRATCH_REMEDY = "let the environment variable TMPDIR name a folder with room"
NO_SCRATCH = f"no folder for temporary files can be written to: {SCRATCH_REMEDY}"


class TableError(CalibrantError):
    """A file or one of its columns cannot be read; the message says why and what to do.

    Parameters
    ----------
    problem : str
        What is wrong; where the table is named it comes before this in the message.
    table : object
        What the table is called, a path for one.
    **context
        As in `CalibrantError`.
    """

    is_placed = True

    def __init__(self, problem: str, *, table: object = "", **context: str) -> None:
        super().__init__(problem, **context)
        self.table = str(table)

    def _finding(self) -> str:
        return f"{self.table} {self.problem}" if self.table else self.problem


def check_column(table: str, columns: Collection[str], name: str) -> str:
    """Return the name of a column, or say which ones the table has."""
    if name in columns:
        return name
    near = difflib.get_close_matches(name.lower(), [each.lower() for each in columns], n=1)
    meant = next((each for each in columns if each.lower() in near), None)
    hint = f"did you mean {meant!r}? Its columns" if meant else "its columns"
    raise TableError(f"has no column {name!r}", table=table, remedy=f"{hint} are {listed(columns)}")


def listed(columns: Collection[str]) -> str:
    """List columns, the first ones where there are many."""
    more = f" and {len(columns) - _LISTED:,} more" if len(columns) > _LISTED else ""
    return ", ".join(repr(name) for name in list(columns)[:_LISTED]) + more


def find_files(source: Any, scratch: Path | None, *, any_name: bool = False) -> tuple[str, list[Path]]:
    """Return what to call the source in messages, and its files.

    Parameters
    ----------
    source : path, pattern, sequence of paths, binary stream, or "-" for standard input
        What `open_table` takes.
    scratch : Path or None
        Where to copy what can be read only once: streams and pipes. None where there is no such folder.
    any_name : bool
        Whether the files of a folder count whatever their names end in, because their format was said.
    """
    if hasattr(source, "read") or source == STANDARD_INPUT:
        stream = sys.stdin.buffer if source == STANDARD_INPUT else source
        name = "standard input" if source == STANDARD_INPUT else str(getattr(stream, "name", "the stream"))
        return name, [_spooled(stream, name, scratch, "input")]
    if isinstance(source, (str, os.PathLike)):
        source, name = [source], os.fspath(source)
    else:
        source = list(source)
        name = named_together([os.fspath(each) for each in source])
    paths: list[Path] = []
    for path in (path for each in source for path in _expanded(os.fspath(each), any_name)):
        if path.is_fifo():
            paths.append(_copied(path, scratch, f"{len(paths)}-{path.name}"))
        elif path.is_file():
            paths.append(path.absolute())  # DuckDB and pyarrow would take ~ for the user's folder
        else:
            raise TableError("is neither a file nor a folder nor a pipe", table=path, remedy="name one of them")
    if not paths:
        raise TableError("no file was named")
    return name, paths


def files_meant(name: str) -> list[Path]:
    """Return the files that a path, a folder or a pattern stands for, whether or not they can be read."""
    path = Path(name)
    if path.is_dir():
        return list_files(path)
    return [path] if path.exists() else [Path(each) for each in glob.glob(name, recursive=True)]


def named_together(names: Sequence[str]) -> str:
    """Say which files are meant, the first ones where there are many."""
    more = len(names) - _FEW_FILES
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:_FEW_FILES])} and {more:,} more files"


def _copied(pipe: Path, scratch: Path | None, name: str) -> Path:
    """Copy what comes out of a pipe, which is waited for until somebody writes into it."""
    try:
        with pipe.open("rb") as stream:
            return _spooled(stream, str(pipe), scratch, name)
    except OSError as error:
        raise TableError(f"{pipe} cannot be read: {error.strerror or error}") from error


def _spooled(stream: Any, said: str, scratch: Path | None, name: str) -> Path:
    """Copy a stream into the folder for temporary files, because it is read more than once."""
    if scratch is None:
        raise TableError(
            f"has to be copied before it can be read, and {NO_SCRATCH}",
            table=said,
            remedy="or save it as a file and name that",
        )
    copy = scratch / name
    try:
        with copy.open("wb") as spooled:
            shutil.copyfileobj(stream, spooled)
    except OSError as error:
        if error.errno in _FULL:
            raise TableError(
                f"has to be copied before it can be read, and the temporary folder {scratch.parent} has no room for "
                f"it ({error.strerror})",
                table=said,
                remedy=f"{SCRATCH_REMEDY}, or save it as a file and name that",
            ) from error
        raise TableError(f"cannot be read: {error.strerror or error}", table=said) from error
    except TypeError as error:  # of what was read, text instead of bytes
        raise TableError(
            "is a stream of text", table=said, remedy="open it for bytes, as in open(path, 'rb')"
        ) from error
    return copy


def _expanded(name: str, any_name: bool) -> list[Path]:
    if _REMOTE.match(name):
        raise TableError("is an address", table=name, remedy="calibrant reads local files only: download it first")
    if not name:  # of which Path makes the folder one is in
        raise TableError("the path is an empty text", remedy="name a file, a folder or a pattern")
    path = Path(name)
    try:
        if path.is_dir():
            found = _files_below(path, any_name)
        elif path.exists():
            found = [path]
        else:
            found = _matching(name)
    except (OSError, ValueError) as error:  # a name with a null character, or a folder nobody may look into
        if isinstance(error, TableError):
            raise
        raise TableError(f"{name!r} cannot be opened: {error}") from error
    if not found:
        what = "has no files in it" if path.is_dir() else "does not exist"
        raise TableError(f"{what}", table=name, remedy="look at its spelling, or at the folder you are in")
    for each in found:
        if not os.access(each, os.R_OK):
            raise TableError("may not be read: permission denied", table=each)
    return found


def _files_below(top: Path, any_name: bool) -> list[Path]:
    """Return the tables in a folder, without markers and what editors and broken downloads leave behind."""
    found = list_files(top)
    for path in found:
        check_file(path, any_name=any_name, top=top)
    return found


def list_files(top: Path) -> list[Path]:
    """Return what is in a folder and those inside it, in the order of names, without markers and leftovers."""
    found = []
    for folder, folders, names in os.walk(top, onerror=_raise):
        folders[:] = [each for each in folders if not _hidden(each)]
        links = [each for each in folders if os.path.islink(os.path.join(folder, each))]  # which os.walk leaves out
        found += [Path(folder, each) for each in (*links, *names) if not _hidden(each)]
    return sorted(found)


def check_file(path: Path, *, any_name: bool, top: Path) -> None:
    """Refuse what stands in a folder of tables and is none, by its name."""
    where = f"{top} holds {str(path.relative_to(top))!r}"
    if not path.is_file():
        raise TableError(f"{where}, which is no file", remedy="take it away, or name the files themselves")
    if not any_name and suffix_format(path) is None:
        raise TableError(
            f"{where}, whose name ends in none of {', '.join(_SUFFIXES)}",
            remedy="take it away, name the files with a pattern such as '*.csv', or name the format of all of them",
        )


def _raise(error: OSError) -> NoReturn:
    raise error


def _hidden(name: str) -> bool:
    """Whether a name is that of a marker such as _SUCCESS, or of what editors and broken downloads leave behind."""
    return name.startswith((".", "_")) or _LEFT_OVER.fullmatch(name) is not None


def _matching(pattern: str) -> list[Path]:
    """Return the files that a pattern stands for; one that nobody means to count is refused by name."""
    found = [Path(each) for each in sorted(glob.glob(pattern, recursive=True))]
    for path in found:
        if path.is_dir():
            raise TableError(
                f"stands for the folder {path}, too", table=pattern, remedy="let the pattern end in names of files"
            )
        if _LEFT_OVER.fullmatch(path.name) and not _LEFT_OVER.fullmatch(pattern):
            raise TableError(
                f"stands for {path}, too, which looks like a leftover", table=pattern, remedy="narrow the pattern"
            )
    return found


def for_duckdb(path: Path) -> str:
    """Write a path so that DuckDB takes it as it is, and not for a pattern."""
    return glob.escape(str(path))


def suffix_format(path: Path) -> str | None:
    """Return the format that a name ends in, if it is one that is known."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in (".gz", ".zst")]
    return _SUFFIXES.get(suffixes[-1]) if suffixes else None


def said(path: Path, paths: Collection[Path], name: str) -> str:
    """Say which file is meant: the one among several, or the only one as the user named it."""
    return name if len(paths) == 1 else str(path)


def find_formats(paths: list[Path], asked: str | None, name: str) -> str:
    """Return the one format of several files."""
    kinds = {path: find_format(path, asked, said(path, paths, name)) for path in paths}
    first, kind = next(iter(kinds.items()))
    for path, other in kinds.items():
        if other != kind:
            raise TableError(
                f"is {kind} and {path} is {other}", table=first, remedy="files that are read together must be alike"
            )
    return kind


def find_format(path: Path, asked: str | None, name: str) -> str:
    """Return the format of a file: what was asked for, what its name ends in, or what its first bytes look like."""
    if asked is not None:
        return "arrow" if asked == "feather" else asked
    known = suffix_format(path)
    if known is not None:
        return known
    if path.suffix.lower() in _WORKBOOKS:
        raise _workbook(name)
    return format_of(read_head(path, name))


def format_of(head: bytes) -> str:
    """Return the format that the first bytes of a file look like."""
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    return "jsonl" if head.lstrip()[:1] in (b"{", b"[") else "csv"


def is_lines(head: bytes) -> bool:
    """Whether the first bytes are those of a text with a record on each line."""
    is_text = format_of(head) in ("csv", "jsonl") and not (_is_workbook(head) or head.startswith(UTF_16_MARKS))
    return _compression(head) is None and is_text and head.lstrip()[:1] != b"["


def _is_workbook(head: bytes) -> bool:
    """Whether the first bytes are those of an Excel workbook, old or new; the new ones are archives like NPZ files."""
    named = head[30 : 30 + int.from_bytes(head[26:28], "little")]
    return head.startswith(_OLD_WORKBOOK) or (head.startswith(b"PK\x03\x04") and named.endswith(_OFFICE_PARTS))


def _workbook(name: str) -> TableError:
    return TableError("is an Excel workbook, and these are not read", table=name, remedy="save the sheet as CSV")


def read_head(path: Path, name: str) -> bytes:
    """Return the beginning of a file, decompressed."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise TableError(f"cannot be read: {error.strerror or error}", table=name) from error
    if _compression(head) is not None:
        with decompressing(name), open_bytes(path) as stream:
            head = stream.read(HEAD_BYTES)
    if not head:
        raise TableError("is empty", table=name)
    if _is_workbook(head):
        raise _workbook(name)
    return head


@contextlib.contextmanager
def decompressing(name: str) -> Iterator[None]:
    """Say of compressed text that ends too early, or does not match its checksum, that it does."""
    try:
        yield
    except OSError as error:
        raise TableError(
            f"is cut off or damaged: {first_line(error)}", table=name, remedy="make or copy the file again"
        ) from error


def open_bytes(path: Path) -> Any:
    """Open a text file, compressed or not, as the bytes of its text; an early end of compressed ones is an error."""
    import pyarrow

    with path.open("rb") as file:
        compression = _compression(file.read(4))
    return pyarrow.input_stream(str(path), compression=compression)


def open_text(path: Path) -> io.TextIOWrapper:
    """Open a text file, compressed or not, as text."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline="")


def _compression(head: bytes) -> str | None:
    return next((kind for magic, kind in _COMPRESSED.items() if head.startswith(magic)), None)


def find_compression(paths: Sequence[Path], name: str) -> str:
    """Return how text files are compressed, all of them in the same way: "gzip", "zstd" or "uncompressed"."""
    kinds = set()
    for path in paths:
        with path.open("rb") as file:
            kinds.add(_compression(file.read(4)) or "uncompressed")
    if len(kinds) > 1:
        raise TableError("some files are compressed and others are not", source=name, remedy="read them one by one")
    return kinds.pop()


Fetch = Callable[["pyarrow.Schema", Collection[str]], Any]
"""Takes the columns that DuckDB can read and the names of those to read; returns something that DuckDB reads."""


def arrow_key(path: Path, name: str) -> tuple[bool, str]:
    """Return what files have in common that are read together: whether they are streams, and their columns."""
    with _explained(name, "an Arrow file"):
        return _is_arrow_file(path), str(_open_arrow(path, name).schema.remove_metadata().to_string())


def arrow_columns(paths: Sequence[Path], name: str) -> tuple[list[tuple[str, Any]], Fetch]:
    """Return the columns of Arrow files of one kind with their types, and a function that makes them ready to be read.

    Files are read batch by batch; streams, which have no index, are read at once, and so are files with text views, on
    which datasets crash before PyArrow 24. In both, damage to columns that nobody asks for does no harm, and they take
    no memory.
    """
    import pyarrow
    import pyarrow.dataset

    with _explained(name, "an Arrow file"):
        schema = _open_arrow(paths[0], name).schema
    # DuckDB does not know numbers of 16 bits, and 32 hold each of them exactly.
    types = [(field.name, pyarrow.float32() if field.type == pyarrow.float16() else field.type) for field in schema]
    views = any(field.type in (pyarrow.string_view(), pyarrow.binary_view()) for field in schema)

    def fetch(readable: pyarrow.Schema, chosen: Collection[str]) -> Any:
        with _explained(name, "an Arrow file"):
            if _is_arrow_file(paths[0]) and not views:
                for path in paths:
                    _check_batches(path, chosen)
                return pyarrow.dataset.dataset([str(path) for path in paths], schema=readable, format="ipc")
            parts = [_open_arrow(path, name, chosen).read_all() for path in paths] if chosen else []
            return _filled(readable, [{each: part[each] for each in chosen} for part in parts])

    return types, fetch


@contextlib.contextmanager
def _explained(name: str, kind: str) -> Iterator[None]:
    import pyarrow

    try:
        yield
    except TableError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise TableError(f"cannot be read as {kind}: {first_line(error)}", table=name) from error


def _is_arrow_file(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(6) == b"ARROW1"


def _open_arrow(path: Path, name: str, columns: Collection[str] = ()) -> Any:
    """Open an Arrow file or stream, for some of its columns or for all."""
    import pyarrow
    import pyarrow.dataset
    import pyarrow.ipc

    read_head(path, name)  # an empty file is told apart from a broken one
    opened = pyarrow.ipc.open_file if _is_arrow_file(path) else pyarrow.ipc.open_stream
    whole = opened(pyarrow.memory_map(str(path)))
    if not columns:
        return whole
    fields = [place for place, each in enumerate(whole.schema.names) if each in columns]
    return opened(pyarrow.memory_map(str(path)), options=pyarrow.ipc.IpcReadOptions(included_fields=fields))


def _check_batches(path: Path, columns: Collection[str]) -> None:
    """Look at every batch once: a damaged one would not be an error later but the end of the process."""
    if columns:
        file = _open_arrow(path, str(path), columns)
        for number in range(file.num_record_batches):
            file.get_batch(number).validate(full=True)


def _filled(schema: pyarrow.Schema, parts: Sequence[Mapping[str, Any]]) -> Any:
    """Return columns that were read as a table, with nulls that take no room in place of the others."""
    import pyarrow

    tables = []
    for part in parts:
        rows = len(next(iter(part.values())))
        columns = {each: values.cast(schema.field(each).type) for each, values in part.items()}
        full, rest = divmod(rows, _BLOCK)
        for field in schema:
            if field.name not in columns:
                nulls = pyarrow.nulls(min(rows, _BLOCK), field.type)
                columns[field.name] = pyarrow.chunked_array([nulls] * full + [nulls[:rest]], field.type)
        tables.append(pyarrow.table([columns[each] for each in schema.names], schema=schema))
    table = pyarrow.concat_tables(tables) if tables else schema.empty_table()
    table.validate(full=True)
    return table


def npz_types(path: Path, name: str) -> list[tuple[str, Any]]:
    """Return the one-dimensional arrays of an NPZ file with their types, numpy's where Arrow has none like it."""
    import pyarrow

    with _explained_npz(name):
        read_head(path, name)
        with zipfile.ZipFile(path) as archive:
            headers = []
            for member in (each for each in archive.infolist() if each.filename.endswith(".npy")):
                with archive.open(member) as stream:
                    headers.append((member.filename.removesuffix(".npy"), *_read_header(stream)))
        columns = [(key, shape[0], dtype) for key, shape, dtype in headers if len(shape) == 1]
        if not columns:
            shapes = ", ".join(f"{key!r} {shape}" for key, shape, _ in headers)
            raise TableError(f"has no one-dimensional arrays (it has {shapes or 'none at all'})", table=name)
        if len({size for _, size, _ in columns}) > 1:
            listed = ", ".join(f"{key!r} {size:,}" for key, size, _ in columns)
            raise TableError(
                f"holds arrays of different lengths ({listed})", table=name, remedy="save those of one table alone"
            )
        types: list[tuple[str, Any]] = []
        for key, _, dtype in columns:
            types.append((key, dtype))
            if not dtype.hasobject:  # objects are pickled, and what is pickled may run whatever it likes
                with contextlib.suppress(pyarrow.ArrowException):
                    types[-1] = (key, pyarrow.array(np.empty(0, _plain(dtype))).type)
    return types


def npz_columns(paths: Sequence[Path], name: str) -> tuple[list[tuple[str, Any]], Fetch]:
    """Return the arrays of NPZ files of one kind with their types, and a function that reads those asked for."""
    import pyarrow

    def fetch(readable: pyarrow.Schema, chosen: Collection[str]) -> Any:
        parts = []
        for path in paths if chosen else ():
            with _explained_npz(name if len(paths) == 1 else str(path)):
                parts.append({each: pyarrow.chunked_array([pyarrow.array(npz_array(path, each))]) for each in chosen})
        return _filled(readable, parts)

    return npz_types(paths[0], name), fetch


@contextlib.contextmanager
def _explained_npz(name: str) -> Iterator[None]:
    try:
        yield
    except TableError:
        raise
    except Exception as error:  # whatever damaged headers and numbers lead numpy and zipfile to
        why = first_line(error) or type(error).__name__
        raise TableError(f"cannot be read as an NPZ file: {why}", table=name) from error


def _plain(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type that holds the same values, in this machine's order of bytes and in no fewer than 32 bits."""
    return np.dtype(np.float32) if dtype.newbyteorder("=") == np.float16 else dtype.newbyteorder("=")


def _read_header(stream: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    return shape, dtype


def npz_array(path: Path, key: str) -> npt.NDArray[Any]:
    """Return a one-dimensional array of an NPZ file: mapped where it is stored as it is, read where it is compressed.

    Either way it is compared with its checksum.
    """
    with zipfile.ZipFile(path) as archive:
        member = archive.getinfo(f"{key}.npy")
        with archive.open(member) as stream:
            shape, dtype = _read_header(stream)
            begin = stream.tell()
            size = begin + shape[0] * dtype.itemsize
            if size != member.file_size:
                raise InputError(f"the array {key!r} has {member.file_size:,} bytes where its header says {size:,}")
            if (
                member.compress_type == zipfile.ZIP_STORED
                and shape[0]
                and dtype == _plain(dtype)
                and dtype.kind in "iuf"
            ):
                while stream.read(_CHUNK):  # zipfile looks at the checksum when it comes to the end
                    pass
                with path.open("rb") as file:
                    file.seek(member.header_offset + 26)  # the lengths of name and extra field, which come before data
                    lengths = np.frombuffer(file.read(4), dtype="<u2")
                offset = member.header_offset + 30 + int(lengths.sum()) + begin
                return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape)
        with archive.open(member) as stream:
            read: npt.NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return read.astype(_plain(dtype), copy=False)


def first_line(error: Exception | str) -> str:
    """Return what an error says in its first line."""
    return str(error).strip().split("\n")[0].rstrip(". ")
