"""What a source of rows is: files, patterns, folders and streams, their formats, and the arrays in them."""

from __future__ import annotations

import glob
import io
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

FORMATS = ("csv", "tsv", "parquet", "arrow", "npz", "jsonl")
"""What can be read; Feather files are Arrow files, and a JSON array of records is read like JSON lines."""

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
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


class TableError(ValueError):
    """A file or one of its columns cannot be read; the message says why and what to do."""


def find_files(source: Any, scratch: Path) -> tuple[str, list[Path]]:
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


def find_format(path: Path, asked: str | None, name: str) -> str:
    """Return the format of a file: what was asked for, what its name ends in, or what its first bytes look like."""
    if asked is not None:
        return "arrow" if asked == "feather" else asked
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in (".gz", ".zst")]
    if suffixes and suffixes[-1] in _SUFFIXES:
        return _SUFFIXES[suffixes[-1]]
    head = read_head(path, name)
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    return "jsonl" if head.lstrip()[:1] in (b"{", b"[") else "csv"


def read_head(path: Path, name: str) -> bytes:
    """Return the beginning of a file, decompressed."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        compression = _compression(head)
        if compression is not None:
            import pyarrow

            with pyarrow.input_stream(str(path), compression=compression) as stream:
                head = stream.read(HEAD_BYTES)
    except OSError as error:
        raise TableError(f"{name} cannot be read: {error.strerror or error}") from error
    if not head:
        raise TableError(f"{name} is empty")
    return head


def open_text(path: Path) -> io.TextIOWrapper:
    """Open a text file, compressed or not, as text."""
    import pyarrow

    with path.open("rb") as file:
        compression = _compression(file.read(4))
    return io.TextIOWrapper(pyarrow.input_stream(str(path), compression=compression), encoding="utf-8-sig", newline="")


def _compression(head: bytes) -> str | None:
    return next((kind for magic, kind in _COMPRESSED.items() if head.startswith(magic)), None)


def find_compression(paths: list[Path], name: str) -> str:
    """Return how text files are compressed, all of them in the same way: "gzip", "zstd" or "uncompressed"."""
    kinds = set()
    for path in paths:
        with path.open("rb") as file:
            kinds.add(_compression(file.read(4)) or "uncompressed")
    if len(kinds) > 1:
        raise TableError(f"{name}: some files are compressed and others are not; read them one by one")
    return kinds.pop()


def arrow_schema(path: Path, name: str) -> tuple[bool, tuple[str, ...], str]:
    """Return whether an Arrow file is a stream, the names of its columns, and their types."""
    import pyarrow
    import pyarrow.ipc

    read_head(path, name)
    try:
        with path.open("rb") as file:
            is_stream = file.read(6) != b"ARROW1"
        reader = pyarrow.ipc.open_stream if is_stream else pyarrow.ipc.open_file
        schema = reader(pyarrow.memory_map(str(path))).schema
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise TableError(f"{name} cannot be read as an Arrow file: {first_line(error)}") from error
    return is_stream, tuple(schema.names), schema.remove_metadata().to_string()


def arrow_dataset(paths: list[Path], name: str) -> Any:
    """Return Arrow files of one schema as a dataset that is read batch by batch; streams, without index, as a table."""
    import pyarrow
    import pyarrow.dataset
    import pyarrow.ipc

    try:
        if arrow_schema(paths[0], name)[0]:
            tables = [pyarrow.ipc.open_stream(pyarrow.memory_map(str(path))).read_all() for path in paths]
            table = pyarrow.concat_tables(tables)
            table.validate(full=True)
            return table
        for path in paths:
            _check_batches(pyarrow.ipc.open_file(pyarrow.memory_map(str(path))))
        return pyarrow.dataset.dataset([str(path) for path in paths], format="ipc")
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"{name} cannot be read as an Arrow file: {first_line(error)}") from error


def _check_batches(file: Any) -> None:
    """Look at every batch once: a damaged one would not be an error later but the end of the process."""
    for number in range(file.num_record_batches):
        file.get_batch(number).validate(full=True)


def npz_table(paths: list[Path], name: str) -> Any:
    """Return the one-dimensional arrays of NPZ files as the columns of an Arrow table, without copying numbers."""
    import pyarrow

    tables = []
    for path in paths:
        read_head(path, name)
        try:
            with zipfile.ZipFile(path) as archive:
                keys = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
            arrays = {key: npz_array(path, key) for key in keys}
        except Exception as error:  # whatever a damaged header leads numpy and zipfile to
            raise TableError(f"{name} cannot be read as an NPZ file: {first_line(error)}") from error
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
        raise TableError(f"{name}: the files do not hold the same columns: {first_line(error)}") from error


def npz_array(path: Path, key: str) -> npt.NDArray[Any]:
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
    with np.load(path, allow_pickle=False) as arrays:
        loaded: npt.NDArray[Any] = arrays[key]
    return loaded


def first_line(error: Exception | str) -> str:
    """Return what an error says in its first line."""
    return str(error).strip().split("\n")[0].rstrip(". ")
