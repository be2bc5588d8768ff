"""Files that appear whole or not at all, whatever happens to the program that writes them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a hidden path beside a file to write to; what was written takes the file's place when all went well.

    A file that was there keeps its permissions, and its content until then.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield unfinished
        if path.exists():
            unfinished.chmod(path.stat().st_mode & 0o777)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
