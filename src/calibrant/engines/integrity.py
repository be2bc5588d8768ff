"""What a file says of its own soundness, checked before its numbers are believed.

DuckDB takes a compressed stream that stops early for its end, leaves out a last line longer than its buffers, and does
not look at the checksums of Parquet pages. So text is passed through once, and pages are compared with their checksums.
"""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.engines.formats import UTF_16_MARKS, TableError, decompressing, for_duckdb, open_bytes, read_head

if TYPE_CHECKING:
    import duckdb

LONGEST_LINE = 2_000_000
"""Bytes that a line of CSV may take, as DuckDB has it by default; more would have to be held in memory at once."""

_CHUNK = 1 << 20
_STOP, _TRUE, _FALSE, _BYTE, _INT16, _INT32, _INT64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
_COMPRESSED_SIZE, _CHECKSUM = 3, 4  # fields of a page header
_DEEPEST = 4  # statistics within a kind of page within a header, and one more


def check_encoding(head: bytes, name: str) -> None:
    """Refuse text whose first bytes say that it is UTF-16, with the way out of Excel, which likes to write it."""
    if head.startswith(UTF_16_MARKS):
        raise TableError(
            "is not text in UTF-8 but in UTF-16, as Excel's Unicode Text is",
            table=name,
            remedy="save it as UTF-8, which Excel calls CSV UTF-8",
        )


def check_text(path: Path, name: str, *, lines: bool) -> None:
    """Read a text file from one end to the other: whole if it is compressed, free of zero bytes, its lines not endless.

    Parameters
    ----------
    path : Path
        The file.
    name : str
        What to call it in messages.
    lines : bool
        Whether a line is a row, as in CSV; a JSON array may stand on one line, however long.
    """
    position = begun = 0  # in bytes of text: how far it was read, and where the line began that is not at its end yet
    with decompressing(name), open_bytes(path) as stream:
        while chunk := stream.read(min(_CHUNK, LONGEST_LINE)):
            if b"\0" in chunk:
                check_encoding(read_head(path, name), name)
                raise TableError(
                    f"is not text: byte {position + chunk.index(0):,} is zero",
                    table=name,
                    remedy="if it is text, take it out",
                )
            ends = [place for place in (chunk.find(b"\n"), chunk.find(b"\r")) if place >= 0]
            stretch = position + (min(ends) if ends else len(chunk)) - begun
            if lines and stretch > LONGEST_LINE:
                raise TableError(
                    f"the line that begins at byte {begun:,} is longer than {LONGEST_LINE:,} bytes",
                    source=name,
                    remedy="leave out the column that is so long, or save the table as Parquet",
                )
            if ends:
                begun = position + max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
            position += len(chunk)


def check_pages(connection: duckdb.DuckDBPyConnection, path: Path, name: str, columns: Collection[str]) -> None:
    """Compare the pages of some columns of a Parquet file with their checksums, where the file has any."""
    chunks = connection.execute(
        "SELECT path_in_schema, coalesce(nullif(dictionary_page_offset, 0), data_page_offset), data_page_offset, "
        "total_compressed_size FROM parquet_metadata(?)",
        [for_duckdb(path)],
    ).fetchall()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for column, first, data, size in chunks:
            if any(column == each or column.startswith(f"{each}, ") for each in columns):
                start = min(first, data)
                try:
                    _check_chunk(content, start, start + size)
                except (_DamagedPageError, IndexError) as error:
                    raise TableError(
                        f"is damaged: column {column!r}, from byte {start:,} on: {error}",
                        table=name,
                        remedy="make or copy the file again",
                    ) from error


class _DamagedPageError(Exception):
    """A page is not what its header says."""


def _check_chunk(content: mmap.mmap, position: int, end: int) -> None:
    """Walk over the pages of a column chunk."""
    some = False
    while position < end:
        try:
            header, start = _read_struct(content, position)
        except (_DamagedPageError, IndexError):  # the latter where a header goes on after the end of the file
            if some:
                raise
            return  # whether it can be read at all is for DuckDB to say
        size, checksum = header.get(_COMPRESSED_SIZE, -1), header.get(_CHECKSUM)
        if not 0 <= size <= end - start:
            if some:
                raise _DamagedPageError("a page reaches beyond its column")
            return
        if checksum is not None:
            some = True
            with memoryview(content) as view, view[start : start + size] as page:
                if zlib.crc32(page) != checksum & 0xFFFFFFFF:
                    raise _DamagedPageError("a page does not match its checksum")
        position = start + size


def _read_struct(content: mmap.mmap, position: int, depth: int = 0) -> tuple[dict[int, int], int]:
    """Return the whole numbers of a struct in Thrift's compact protocol by their field, and where the struct ends."""
    if depth > _DEEPEST:
        raise _DamagedPageError("a page header is nested too deeply")
    found: dict[int, int] = {}
    field = 0
    while kind := content[position] & 0x0F:
        step = content[position] >> 4
        position += 1
        if step:
            field += step
        else:
            field, position = _read_number(content, position)
        if kind in (_INT16, _INT32, _INT64):
            found[field], position = _read_number(content, position)
        else:
            position = _skipped(content, position, kind, depth)
    return found, position + 1


def _skipped(content: mmap.mmap, position: int, kind: int, depth: int) -> int:
    """Return where a value ends that nobody asks for."""
    if kind in (_TRUE, _FALSE):
        return position
    if kind == _BYTE:
        return position + 1
    if kind == _DOUBLE:
        return position + 8
    if kind == _BINARY:
        length, position = _read_unsigned(content, position)
        return position + length
    if kind == _STRUCT:
        return _read_struct(content, position, depth + 1)[1]
    raise _DamagedPageError(f"a page header holds a value of kind {kind}")


def _read_number(content: mmap.mmap, position: int) -> tuple[int, int]:
    unsigned, position = _read_unsigned(content, position)
    return (unsigned >> 1) ^ -(unsigned & 1), position


def _read_unsigned(content: mmap.mmap, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
        if shift > 63:
            raise _DamagedPageError("a page header holds a number without end")
