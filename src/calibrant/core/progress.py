"""One line on the terminal that says how far long work has come."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Generator, Iterable, Sized
from typing import TextIO, TypeVar

QUIET_SECONDS = 2.0
"""Work that takes less than this is not worth a line."""

_REDRAW_SECONDS = 0.2

Part = TypeVar("Part")


def track(
    parts: Iterable[Part], *, total: int | None = None, label: str = "working", shown: bool | None = None
) -> Generator[Part, None, None]:
    """Pass on parts one by one, and show on the terminal what share of them is done once that takes long.

    The line goes to the standard error stream, appears after two seconds and is wiped away at the end, so that
    nothing is left in a log. A stream that is missing, closed or broken is left alone: progress never stops the work.

    Parameters
    ----------
    parts : iterable
        What to pass on; a part counts as done when the next one is asked for.
    total : int, optional
        How many parts there are; ``len(parts)`` unless given.
    label : str
        What is going on, in a word or two.
    shown : bool, optional
        True shows the line even where the stream is not a terminal, False never; by default only on a terminal.

    Examples
    --------
    >>> sum(track([1, 2, 3], label="adding"))
    6
    """
    stream = sys.stderr
    if not (_is_terminal(stream) if shown is None else shown):
        yield from parts
        return
    count = len(parts) if total is None and isinstance(parts, Sized) else total
    line = _Line(stream)
    start = drawn = time.monotonic()
    try:
        for done, part in enumerate(parts):
            now = time.monotonic()
            if now - start >= QUIET_SECONDS and now - drawn >= _REDRAW_SECONDS:
                line.write(f"{label}: {_said(done, count, now - start)}")
                drawn = now
            yield part
    finally:
        line.write("")


class _Line:
    """The last line of a terminal, written over and over."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._width = 0

    def write(self, text: str) -> None:
        """Replace the line; an empty text wipes it away."""
        if self._stream is None or not (text or self._width):
            return
        ending = "" if text else "\r"
        with contextlib.suppress(OSError, ValueError, AttributeError):
            self._stream.write(f"\r{text.ljust(self._width)}{ending}")
            self._stream.flush()
        self._width = len(text)


def _is_terminal(stream: TextIO | None) -> bool:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return stream is not None and stream.isatty()
    return False


def _said(done: int, total: int | None, seconds: float) -> str:
    if not total:
        return f"{done:,} done"
    share = min(done / total, 1.0)
    if share == 0.0:
        return "0%"
    return f"{100.0 * share:.0f}%, about {_duration(seconds * (1.0 - share) / share)} left"


def _duration(seconds: float) -> str:
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60.0)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
