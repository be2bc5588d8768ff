"""Files that appear whole or not at all, whatever happens to the program that writes them.

What is written goes to a hidden file beside the target, under a name that nobody can guess, and takes the target's
place in one step once it is on the disk. What cannot be replaced without harm, such as a pipe or ``/dev/null``, is
written through: into a temporary folder first, and on from there when all went well.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import platform
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_MOST_LINKS = 40
_MACHINE = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
_UNFINISHED = re.compile(r"\.calibrant-([0-9a-f]{8})-[0-9a-f]{16}\.part")
_FORGOTTEN_SECONDS = 86_400.0
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_STREAMS = re.compile(r"/dev/fd|/proc/self/(task/\d+/)?fd")
# The file itself and its bytes as they are; each flag is known to some systems only.
_EXACTLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path to write to; what was written there takes the place of a file when all went well.

    A file that was there keeps its permissions, and its content until then. Where the path is a link, the file that it
    leads to is written, and made if it is not there. A pipe, a terminal, an open stream (``/dev/stdout``) or a device
    (``/dev/null``) stays what it is and gets all bytes at the end. What cannot be written is an error that names the
    remedy.

    A program that is killed outright leaves a hidden ``.calibrant-*.part`` behind; the next one that writes into the
    folder removes it, and never one that somebody is still writing.
    """
    target = _target(Path(path))
    unfinished = None
    try:
        with _replaced(target) if target.is_file else _passed_on(target) as unfinished:
            yield unfinished
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise OSError(
                f"{target.said} cannot be written: {error.strerror}; make room, or write to another disk"
            ) from error
        if unfinished is not None and error.filename == str(unfinished):
            raise type(error)(f"{target.said} cannot be written: {error.strerror}; write elsewhere") from error
        raise


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse what `replacing` could not write, before any work is done for it; nothing is touched."""
    _target(Path(path))


@dataclass(frozen=True)
class _Target:
    """What a path leads to.

    Attributes
    ----------
    said : Path
        The path as it was given.
    path : Path
        Where its links lead.
    found : stat_result or None
        What is there, if anything is.
    stream : int or None
        The open stream of this process that the path stands for.
    """

    said: Path
    path: Path
    found: os.stat_result | None = None
    stream: int | None = None

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file, or will be one."""
        return self.stream is None and (self.found is None or stat.S_ISREG(self.found.st_mode))


def _target(said: Path) -> _Target:
    """Follow links to what is to be written, and refuse what cannot or must not be."""
    path, stream = _followed(said)
    if stream is not None:
        if not _takes_bytes(stream):
            raise OSError(f"{said} cannot be written: this program was given no such stream to write to; name a file")
        return _Target(said, path, stream=stream)
    if not path.parent.is_dir():
        leads = "" if Path(os.path.realpath(said.parent)) == path.parent else f" (a link leads to {path})"
        shown = said.parent if not leads else path.parent
        raise FileNotFoundError(f"{said} cannot be written: there is no folder {shown}{leads}; make it first")
    try:
        found = path.stat()
    except FileNotFoundError:
        target = _Target(said, path)
    else:
        target = _Target(said, path, found)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(f"{said} cannot be written: it is a folder; name a file inside it")
        for what, is_such in (("a socket", stat.S_ISSOCK), ("a disk", stat.S_ISBLK)):
            if is_such(found.st_mode):
                raise OSError(f"{said} cannot be written: it is {what}; name a file")
        if not os.access(path, os.W_OK):
            raise PermissionError(f"{said} cannot be written: it is write-protected; allow it, or name another file")
    if target.is_file and not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(
            f"{said} cannot be written: the folder {path.parent} takes no new files; allow it, or write elsewhere"
        )
    return target


def _followed(said: Path) -> tuple[Path, int | None]:
    """Return where the links of a path lead, to something or nothing, and the open stream that they stand for."""
    path = said
    for _ in range(_MOST_LINKS):
        folder = Path(os.path.realpath(path.parent))
        path = folder / path.name
        if path.name.isdecimal() and _STREAMS.fullmatch(
            folder.as_posix().replace(f"/proc/{os.getpid()}/", "/proc/self/")
        ):
            return path, int(path.name)
        try:
            linked = folder / path.readlink()
        except OSError:  # not a link, or nothing is there
            return path, None
        if path.exists() and not os.path.lexists(linked):  # another program's pipe, which has no place among files
            return path, None
        path = linked
    raise OSError(f"{said} cannot be written: its links lead round in a circle; name a file")


def _takes_bytes(stream: int) -> bool:
    """Whether an open stream has this number, and can be written to."""
    try:
        os.fstat(stream)
        return sys.platform == "win32" or fcntl.fcntl(stream, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    except OSError:
        return False


@contextlib.contextmanager
def _replaced(target: _Target) -> Iterator[Path]:
    """Give a hidden path beside a file, and put what was written there in the file's place."""
    folder = target.path.parent
    _sweep(folder)
    unfinished = folder / f".calibrant-{_MACHINE}-{secrets.token_hex(8)}.part"
    held = None
    try:
        # A new file is as open as the umask says; one that takes another's place shows nothing before it is done.
        try:
            held = _create(unfinished, 0o666 if target.found is None else 0o600)
        except OSError as error:
            raise type(error)(f"{target.said} cannot be written: {error.strerror}; write elsewhere") from error
        yield unfinished
        if not _is_at(unfinished, held):
            raise OSError(
                f"{target.said} was not written: its temporary file {unfinished} was removed or exchanged meanwhile; "
                "write into a folder that others do not change"
            )
        if target.found is not None:
            _take_after(target.found, unfinished, held)
        os.fsync(held)
        if sys.platform == "win32":  # where an open file cannot be renamed, nor removed by anybody
            os.close(held)
            held = None
        os.replace(unfinished, target.path)
        _sync_folder(folder)
    finally:
        unfinished.unlink(missing_ok=True)
        if held is not None:
            os.close(held)


@contextlib.contextmanager
def _passed_on(target: _Target) -> Iterator[Path]:
    """Give a path in a temporary folder, and copy what was written there into a device, a pipe or an open stream."""
    try:
        temporary = tempfile.TemporaryDirectory(prefix="calibrant-")
    except OSError as error:
        raise type(error)(
            f"{target.said} cannot be written without a temporary folder: {error.strerror}; set TMPDIR to one"
        ) from error
    with temporary as folder:
        unfinished = Path(folder) / "calibrant.part"
        unfinished.touch(mode=0o600)
        yield unfinished
        with contextlib.suppress(AttributeError, ValueError):  # no stream at all, or a closed one
            sys.stdout.flush()  # what was said before stands before
        handle = os.open(target.path, os.O_WRONLY) if target.stream is None else os.dup(target.stream)
        with open(handle, "wb") as through, unfinished.open("rb") as source:
            shutil.copyfileobj(source, through)


def _create(path: Path, mode: int) -> int:
    """Make a file that was not there, and lock it while it is open, which tells others that it is being written."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _EXACTLY, mode)
        _locked(handle, wait=True)
        if _is_at(path, handle):
            return handle
        os.close(handle)  # swept away between the two steps above


def _locked(handle: int, *, wait: bool) -> bool:
    """Lock a file until it is closed, and say whether that was possible."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # locked by another, or on a file system that knows no locks
        return False
    return True


def _is_at(path: Path, handle: int) -> bool:
    """Whether an open file is what stands at a path."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _sweep(folder: Path) -> None:
    """Remove what programs left in a folder that were killed while they wrote.

    Whoever writes holds a lock, so that a file which can be locked was left behind. Between machines locks need not
    work: what another one left has to be a day old.
    """
    if sys.platform == "win32":
        return
    try:
        names = [name for name in os.listdir(folder) if _UNFINISHED.fullmatch(name)]
    except OSError:  # a folder may be written and not listed
        return
    for name in names:
        with contextlib.suppress(OSError):
            _remove_if_left(folder / name)


def _remove_if_left(path: Path) -> None:
    handle = os.open(path, os.O_RDWR | _EXACTLY)
    try:
        found = os.fstat(handle)
        is_ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        is_near = path.name.startswith(f".calibrant-{_MACHINE}-")
        is_old = time.time() - found.st_mtime > _FORGOTTEN_SECONDS
        if is_ours and (is_near or is_old) and _locked(handle, wait=False) and _is_at(path, handle):
            path.unlink()  # while it is locked: who has just made it sees that it is gone, and makes another
    finally:
        os.close(handle)


def _take_after(before: os.stat_result, path: Path, handle: int) -> None:
    """Give a file the owner, as far as that is allowed, and the permissions of the one whose place it takes."""
    if sys.platform != "win32":
        for owner in (before.st_uid, -1):
            with contextlib.suppress(PermissionError):
                os.chown(handle, owner, before.st_gid)
                break
    os.chmod(handle if os.chmod in os.supports_fd else path, stat.S_IMODE(before.st_mode) & 0o777)


def _sync_folder(folder: Path) -> None:
    """Bring the new name to the disk too, where folders can be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
