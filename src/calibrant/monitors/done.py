"""Which batches were read: their names, and of files also whether they are still what they were."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from calibrant.core.errors import InputError

_NAME, _VERSION, _CONTENT = 9, 3, 6
_ENTRY = _NAME + _VERSION + _CONTENT
_CHUNK = 1 << 20


class Mark(NamedTuple):
    """What tells a batch from all others.

    Attributes
    ----------
    name : str
        Its name; of a file, its path.
    version : tuple of int
        What changes when a file is written to; empty for what is no file.
    content : str
        A digest of the bytes of a file.
    """

    name: str
    version: tuple[int, ...] = ()
    content: str = ""


def file_version(path: Path) -> tuple[int, ...]:
    """Return what changes when a file is written to or replaced; nothing is like a file that is gone."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_size, found.st_mtime_ns, found.st_ino


def content_of(path: Path) -> str:
    """Return a digest of the bytes of a file."""
    found = hashlib.blake2b(digest_size=16)
    try:
        with path.open("rb") as file:
            while block := file.read(_CHUNK):
                found.update(block)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}") from error
    return found.hexdigest()


def name_of(path: Path, state: Path | None) -> str:
    """Return the name of a file as the state has it: its place beside the state, so that both may move together."""
    real = os.path.realpath(path)
    if state is None:
        return real
    try:
        return os.path.relpath(real, os.path.dirname(os.path.realpath(state)))
    except ValueError:  # on another drive
        return real


@dataclass
class Done:
    """Batches that were read, 18 bytes for each: digests of name, version and content."""

    entries: dict[bytes, bytes] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, name: str) -> bool:
        return _digest(name, _NAME) in self.entries

    def add(self, mark: Mark) -> None:
        """Note that a batch was read."""
        self.entries[_digest(mark.name, _NAME)] = _digest(str(mark.version), _VERSION) + _digest(mark.content, _CONTENT)

    def is_new(self, name: str, path: Path, version: tuple[int, ...]) -> bool:
        """Return whether a file was not read yet; one that was read and says something else now is refused."""
        found = self.entries.get(_digest(name, _NAME))
        if found is None:
            return True
        if found[:_VERSION] != _digest(str(version), _VERSION):
            if found[_VERSION:] != _digest(content_of(path), _CONTENT):
                raise InputError(
                    "was read before and has changed since: what it held then stays counted, what it holds now is not",
                    remedy="write new rows to a new file",
                )
            self.entries[_digest(name, _NAME)] = _digest(str(version), _VERSION) + found[_VERSION:]
        return False

    def to_text(self) -> str:
        """Return all of it as text."""
        return base64.b64encode(b"".join(name + rest for name, rest in sorted(self.entries.items()))).decode()

    @classmethod
    def from_text(cls, text: str) -> Done:
        """Undo `to_text`."""
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            raise InputError(f"the list of batches is damaged: {error}") from error
        if len(data) % _ENTRY:
            raise InputError("the list of batches is cut off")
        parts = [data[start : start + _ENTRY] for start in range(0, len(data), _ENTRY)]
        return cls({part[:_NAME]: part[_NAME:] for part in parts})


def _digest(text: str, size: int) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=size).digest()
