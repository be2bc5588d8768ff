"""What keeps coming: files in folders that grow, and lines on a stream that nobody can read twice."""

from __future__ import annotations

import hashlib
import io
import os
import select
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from calibrant.core.errors import InputError
from calibrant.engines.formats import list_files
from calibrant.monitors.done import file_version
from calibrant.rows.labels import by_number

_MOST_LINES = 50_000
_PATIENCE_SECONDS = 0.2
_BLOCK = 1 << 22


def in_order(paths: Iterable[Path]) -> list[Path]:
    """Return files in the order of their names, with numbers in theirs: "day 2" before "day 10"."""
    return sorted(paths, key=lambda path: [by_number(part) for part in path.parts])


def new_files(
    folders: Sequence[Path],
    *,
    poll: float,
    idle: float | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> Iterator[tuple[Path, Path]]:
    r"""Give the files of folders that grow, each with its folder, as soon as they are complete, for ever or until idle.

    A file is complete when two looks, one after the other, find it the same (its size, time and inode). Files come in
    the order of their names, day2 before day10: one that is still being written holds back those after it. One that
    changes later is given again.

    Parameters
    ----------
    folders : sequence of Path
        The folders to look into.
    poll : float
        Seconds between two looks.
    idle : float, optional
        End when nothing has changed for so many seconds.
    wait : callable
        Waits for some seconds.

    Yields
    ------
    file, folder : Path
        A file that is complete, and the folder it was found below.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from calibrant.monitors import new_files
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = pathlib.Path(name)
    ...     for day in ("2026-02-01", "2026-01-31"):
    ...         _ = (folder / f"{day}.csv").write_text("y,p\n1,0.5\n")
    ...     [path.name for path, _ in new_files([folder], poll=0.01, idle=0.0)]
    ['2026-01-31.csv', '2026-02-01.csv']
    """
    given: dict[Path, tuple[int, ...]] = {}
    seen: dict[Path, tuple[int, ...]] | None = None
    changed = time.monotonic()
    while True:
        found = {path: (file_version(path), top) for top in folders for path in in_order(list_files(top))}
        ready = []
        for path, (version, top) in found.items():
            if given.get(path) == version:
                continue
            if seen is None or seen.get(path) != version:
                break
            ready.append((path, version, top))
        now = {path: version for path, (version, _) in found.items()}
        if now != seen:
            changed = time.monotonic()
        seen = now
        given = {path: version for path, version in given.items() if path in now}
        for path, version, top in ready:
            given[path] = version
            yield path, top
            changed = time.monotonic()
        if not ready:
            if idle is not None and given == now and time.monotonic() - changed >= idle:
                return
            wait(poll)


class Lines(NamedTuple):
    """Some lines of a stream, and where they stand.

    Attributes
    ----------
    first : int
        The place of the first one, counted from 1 and without a header.
    lines : list of bytes
    header : bytes
        What stands before them.
    before : str
        The digest of all lines up to these.
    """

    first: int
    lines: list[bytes]
    header: bytes
    before: str

    @property
    def last(self) -> int:
        """The place of the last one."""
        return self.first + len(self.lines) - 1

    @property
    def content(self) -> bytes:
        """The lines as a table."""
        return self.header + b"".join(self.lines)

    @property
    def digest(self) -> str:
        """Of all lines up to the last of these, by which they are known again."""
        state = bytes.fromhex(self.before)
        for line in self.lines:
            state = hashlib.blake2b(state + line.rstrip(b"\r\n"), digest_size=16).digest()
        return state.hex()

    def said(self) -> str:
        """Say which lines they are."""
        return f"line {self.first:,}" if self.first == self.last else f"lines {self.first:,} to {self.last:,}"

    def halves(self) -> Iterator[Lines]:
        """Give the first half of the lines, then the others."""
        middle = len(self.lines) // 2
        half = self._replace(lines=self.lines[:middle])
        yield half
        yield Lines(self.first + middle, self.lines[middle:], self.header, half.digest)


class LineStream:
    """A stream of records, one on each line, in parts as they come.

    Parameters
    ----------
    stream : binary stream
    header : bool
        Whether the first line names columns, as in CSV; it then stands before each part.

    Attributes
    ----------
    count : int
        Lines so far, without the header.
    digest : str
        Of those lines, by which they are known again.
    """

    def __init__(self, stream: Any, *, begin: bytes = b"", header: bool) -> None:
        self._stream, self._rest, self._has_header = stream, begin, header
        self._header: bytes | None = None
        self._is_over = False
        self.count = 0
        self.digest = ""

    def skip(self, count: int, digest: str) -> None:
        """Pass over lines that were read before, and refuse a stream that does not begin with them."""
        for lines in self._parts(count):
            self._note(lines)
        if (self.count, self.digest) != (count, digest):
            raise InputError(
                f"does not begin with the {count:,} lines that were read before, and so says nothing of what is new",
                remedy="pipe in the same from its beginning, or only what is new and say so",
            )

    def parts(self) -> Iterator[Lines]:
        """Give the lines as they come, those that are there together; the last one need not end."""
        for lines in self._parts(None):
            yield self._note(lines)

    def _note(self, lines: list[bytes]) -> Lines:
        """Count lines."""
        found = Lines(self.count + 1, lines, self._header or b"", self.digest)
        self.count, self.digest = found.last, found.digest
        return found

    def _parts(self, most: int | None) -> Iterator[list[bytes]]:
        """Give lines that are neither blank nor the header again, as where files are joined, at most so many in all."""
        given = 0
        while given != most:
            lines, self._rest = _whole_lines(self._rest, is_over=self._is_over)
            lines = [line for line in lines if line.strip()]
            if self._has_header and self._header is None and lines:
                self._header = lines.pop(0)
            if self._header is not None:
                lines = [line for line in lines if line.rstrip() != self._header.rstrip()]
            while lines:
                room = _MOST_LINES if most is None else min(_MOST_LINES, most - given)
                part, lines = lines[:room], lines[room:]
                given += len(part)
                if given == most:
                    lines, self._rest = [], b"".join(lines) + self._rest
                yield part
            if self._is_over or given == most:
                return
            self._read()

    def _read(self) -> None:
        """Wait for more, and take what is there within a moment."""
        blocks = [self._rest]
        size = 0
        while size < _BLOCK:
            block = read_some(self._stream)
            blocks.append(block)
            size += len(block)
            self._is_over = not block
            if self._is_over or not _has_more(self._stream):
                break
        self._rest = b"".join(blocks)


def _whole_lines(data: bytes, *, is_over: bool) -> tuple[list[bytes], bytes]:
    """Return the lines that have ended, and what may go on."""
    *lines, rest = data.split(b"\n")
    if is_over:
        lines, rest = [*lines, rest], b""
    return [line + b"\n" for line in lines], rest


def read_some(stream: Any) -> bytes:
    """Return what comes next; nothing at the end."""
    try:
        return os.read(stream.fileno(), _BLOCK)
    except (AttributeError, io.UnsupportedOperation):  # no stream of the system's
        found: bytes = stream.read(_BLOCK)
        return found


def _has_more(stream: Any) -> bool:
    """Whether more comes within a moment."""
    if sys.platform == "win32":
        return False
    try:
        return bool(select.select([stream.fileno()], [], [], _PATIENCE_SECONDS)[0])
    except (AttributeError, io.UnsupportedOperation, ValueError):
        return True
