"""How the program ends when it is told to: tidied up, without a word, with the exit code that shells expect."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

BY_SIGNAL = 128
"""What shells add to a signal's number to say that a process was ended by it."""

_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_PATIENCE_SECONDS = 2.0
_SOON_SECONDS = 0.01


@contextlib.contextmanager
def ended_by_signals(*, for_good: bool = False) -> Iterator[None]:
    """Let a signal unwind the program like Ctrl-C, so that nothing unfinished stays behind, and decide its exit code.

    Whatever a library that was interrupted makes of it, the exit code is 128 and the signal's number. Signals that the
    program was started to ignore, as under nohup, stay ignored. ``for_good`` says that the process ends with it: who
    says it again meanwhile does not change the exit code any more.
    """
    if threading.current_thread() is not threading.main_thread():  # where no signals arrive
        yield
        return
    told = _Told()
    usual = (signal.SIG_DFL, signal.default_int_handler)
    before = {number: signal.getsignal(number) for number in _SIGNALS if signal.getsignal(number) in usual}
    hook = sys.unraisablehook
    for number in before:
        signal.signal(number, told.hear)
    if sys.platform != "win32":
        before[signal.SIGALRM] = signal.signal(signal.SIGALRM, told.repeat)
        sys.unraisablehook = told.insist
    try:
        yield
    finally:
        told.is_over = True
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if for_good and told.number is not None else handler)
        if told.number is not None:
            raise SystemExit(BY_SIGNAL + told.number) from None


class _Told:
    """The signal that the program was told to stop by, and what is done about it."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.is_over = False
        self._since = 0.0

    def hear(self, number: int, frame: object) -> None:
        """Stop the program, and let nothing disturb its tidying up: a terminal that closes says so several times."""
        now = time.monotonic()
        if self.number is None or now - self._since > _PATIENCE_SECONDS:
            self.number = self.number or number
            self._since = now
            self.repeat(number, frame)

    def repeat(self, _: int, __: object) -> None:
        """Raise what unwinds the program."""
        if not self.is_over and self.number is not None:
            # KeyboardInterrupt would not do: once a library was being loaded, Python ends the process by it later on.
            raise SystemExit(BY_SIGNAL + self.number)

    def insist(self, found: UnraisableHookArgs) -> None:
        """Say it again soon where Python had to ignore it, in the middle of tearing down an object for instance."""
        if sys.platform != "win32" and self.number is not None and not isinstance(found.exc_value, Exception):
            signal.setitimer(signal.ITIMER_REAL, _SOON_SECONDS)
        else:
            sys.__unraisablehook__(found)
