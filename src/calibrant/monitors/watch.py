"""Batches that keep coming are read into a monitor, each of them once, whatever happens to the program in between."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic as time_now
from typing import Any

from calibrant.core.errors import CalibrantError, InputError, refuse_newer
from calibrant.core.files import check_target, replacing
from calibrant.core.types import ArrayLike, ClassLabel
from calibrant.core.words import printable
from calibrant.monitors.done import Done, Mark, content_of, file_version, name_of
from calibrant.monitors.monitor import Monitor
from calibrant.monitors.periods import PeriodLabel, due_after, is_after
from calibrant.monitors.results import Reading
from calibrant.monitors.state import FORMAT
from calibrant.monitors.storage import sealed, unsealed
from calibrant.rows.checks import check_choice
from calibrant.rows.intake import RowsLike
from calibrant.rows.times import EVERY, Every, period_of

if sys.platform != "win32":
    import fcntl

_FORMAT = "calibrant/watch/1"
_KEPT = ("every", "columns", "count", "lines", "lines_digest", "batches", "arrays")
_PATIENCE = 10.0  # times what writing the state takes, for batches that can be read again
_DAYS_PER_WEEK = 7
_FEW_ROWS = 20  # of which other rows may well be the same bytes


class Watch:
    """Read batches into a monitor as they come, each of them once, and read each period when a later one begins.

    What ``calibrant watch`` does, for programs of your own.

    Parameters
    ----------
    monitor : Monitor
        What the batches are for; where the state holds one already it goes on instead, and must have been asked the
        same.
    every : {"hour", "day", "week", "month"}, optional
        How long a period is, for batches with times.
    state : path, optional
        A file that keeps the monitor and what was read, written whole or not at all after each batch. A program that is
        killed and started again with it neither loses nor doubles a batch that it is given again. Only one program at a
        time may use it.
    tell : callable, optional
        Called with each new `Reading`, before it is kept in the state: after a program was killed it may be called with
        the same reading again, and none is left out.
    again : bool
        Whether batches that are not in the state yet are given again after the program was killed, as files are: then
        the state is not written after each one of many that come quickly, but so that writing it takes a tenth of the
        time; `flush` writes the rest.

    Attributes
    ----------
    monitor : Monitor
    reading : Reading or None
        The last one.
    batches : int
        How many batches were read.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.monitors import Monitor, Watch
    >>> rng = np.random.default_rng(0)
    >>> watch = Watch(Monitor(max_error=0.1, unit="row"), every="day")
    >>> for hour in range(0, 72, 6):
    ...     y_prob = rng.random(100)
    ...     times = np.datetime64("2026-01-31T00") + np.full(100, hour)
    ...     for reading in watch.take(rng.random(100) < y_prob, y_prob, time=times, batch=f"at {hour}"):
    ...         print(reading.period, reading.rows, reading.verdict)
    2026-01-31 400 certified
    2026-02-01 800 certified
    >>> watch.finish()[0].period
    '2026-02-02'
    """

    def __init__(
        self,
        monitor: Monitor,
        *,
        every: Every | None = None,
        state: str | os.PathLike[str] | None = None,
        tell: Callable[[Reading], None] | None = None,
        again: bool = False,
    ) -> None:
        self.monitor = monitor
        self.every: Every | None = every
        if every is not None:
            check_choice(every, "every", EVERY)
        self.columns: dict[str, Any] = {}
        self.batches = 0
        self.lines = 0
        self.lines_digest = ""
        self.done = Done()
        self.tell, self._again = tell, again
        self._is_kept, self._due_at = True, 0.0
        self._state = None if state is None else Path(state)
        self._release: Callable[[], object] | None = None
        if self._state is not None:
            check_target(self._state)
            self._hold()
            try:
                self._load()
            except BaseException:
                self.close()
                raise

    @property
    def reading(self) -> Reading | None:
        """What was said last."""
        return self.monitor.last

    # --- Batches come in --------------------------------------------------------------------------------------------

    def take(
        self,
        y_true: RowsLike,
        y_prob: ArrayLike | None = None,
        *,
        batch: str | Mark,
        time: Any = None,
        period: Any = None,
        sample_weight: ArrayLike | None = None,
        pos_label: ClassLabel | None = None,
    ) -> tuple[Reading, ...]:
        """Add a batch, all of it or nothing, and return what can be said of the periods that it brings to an end.

        Parameters
        ----------
        y_true, y_prob, sample_weight, pos_label
            As in `Monitor.update`.
        batch : str
            Its name: one that was read before is passed over, so that it may be given again. An empty one is for what
            cannot come twice.
        time : array-like, optional
            The time of each row, which ``every`` turns into a period.
        period : int, str, date, or array-like of them, optional
            The period of the rows in place of their times. Without either the batch is a period of its own.
        """
        mark = batch if isinstance(batch, Mark) else Mark(batch)
        if mark.name in self.done:
            return ()
        if time is not None:
            if self.every is None or period is not None:
                problem = "needs every=" if self.every is None else "does not go with period="
                raise InputError(problem, argument="time", remedy="pass Watch(every='day'), or period= alone")
            period = period_of(time, self.every)
        self.monitor.update(
            y_true,
            y_prob,
            period=period,
            sample_weight=sample_weight,
            pos_label=pos_label,
            batch=_named(mark, y_true, period),
        )
        if mark.name:
            self.done.add(mark)
        self.batches += 1
        self._is_kept = False
        return self._said(self._ended(at_end=period is None), wait=self._again)

    def mark_of(self, path: str | os.PathLike[str]) -> Mark | None:
        """Return what tells a file from all others, to be passed as ``batch``; None for one that was read.

        A file that was read and has changed since is refused.
        """
        where = Path(path)
        name, version = name_of(where, self._state), file_version(where)
        return Mark(name, version, content_of(where)) if self.done.is_new(name, where, version) else None

    def finish(self) -> tuple[Reading, ...]:
        """Read the newest period too, as no more of it comes; with a maturity, those whose labels are due."""
        return self._said(self._ended(at_end=True), wait=False)

    def reset(self) -> None:
        """Begin anew with the next period, as after a repair or a new model (`Monitor.reset`)."""
        self.monitor.reset()
        self.save()

    def _ended(self, *, at_end: bool) -> list[PeriodLabel]:
        """Return the periods to read: those of which no more may come."""
        periods = self.monitor.unread
        days = _DAYS_PER_WEEK if self.every == "week" else 1  # weeks are named by their Monday
        own = [(each, due_after(each, days * self.monitor.maturity)) for each in periods]
        return [each for each, last in own if is_after(periods[-1], last) or (at_end and last == periods[-1])]

    def _said(self, periods: list[PeriodLabel], *, wait: bool) -> tuple[Reading, ...]:
        found = []
        for period in periods:
            self._is_kept = False
            reading = self.monitor.read(through=period)
            if reading.period == period:
                found.append(reading)
                if self.tell is not None:
                    self.tell(reading)
        if not wait or time_now() >= self._due_at:
            self.flush()
        return tuple(found)

    # --- What is kept -----------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write the state, if it does not hold everything yet."""
        if not self._is_kept:
            self.save()

    def save(self) -> None:
        """Write the state, if there is a file for it."""
        if self._state is None:
            return
        begin = time_now()
        kept: dict[str, Any] = {
            "every": self.every,
            "columns": self.columns,
            "count": self.batches,
            "lines": self.lines,
            "lines_digest": self.lines_digest,
            "batches": self.done.to_text(),
            "arrays": [],
        }
        text = f'{{"watch": {sealed(_FORMAT, kept)}, "monitor": {self.monitor.to_json()}}}\n'
        with replacing(self._state) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
        self._is_kept = True
        self._due_at = time_now() + _PATIENCE * (time_now() - begin)

    def _load(self) -> None:
        """Go on where the state ends."""
        assert self._state is not None
        if not self._state.exists():
            return
        with self._blaming():
            found = json.loads(self._state.read_text(encoding="utf-8"))
        for part, form in (("watch", _FORMAT), ("monitor", FORMAT)):
            held = found.get(part) if isinstance(found, dict) else None
            if isinstance(held, dict):
                refuse_newer(f"the state {printable(self._state)}", held.get("format"), form)
        with self._blaming():
            if not isinstance(found, dict) or sorted(found) != ["monitor", "watch"]:
                raise InputError("it holds something else")
            kept = unsealed(json.dumps(found["watch"]), _FORMAT).only(*_KEPT)
            monitor = Monitor.from_json(json.dumps(found["monitor"]))
            done = Done.from_text(str(kept.value("batches")))
        for name, asked, before in (
            *((name, value, monitor.options()[name]) for name, value in self.monitor.options().items()),
            ("every", self.every, kept.value("every")),
        ):
            if asked != before:
                raise InputError(
                    f"is {asked!r}, and {before!r} in the state {printable(self._state)}",
                    argument=name,
                    remedy="ask the same as before, or begin anew with another file for the state",
                )
        self.monitor, self.done = monitor, done
        self.columns = dict(kept.record("columns").data)
        self.batches = kept.whole("count")
        self.lines, self.lines_digest = kept.whole("lines"), str(kept.value("lines_digest"))

    @contextlib.contextmanager
    def _blaming(self) -> Iterator[None]:
        try:
            yield
        except (CalibrantError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise InputError(
                f"{printable(self._state)} is no state of a watch, or a damaged one: {error}",
                remedy="name another file, or bring back a copy of it",
            ) from error

    def _hold(self) -> None:
        """Keep other programs from the same state, whose batches would be lost or doubled."""
        assert self._state is not None
        if sys.platform == "win32":
            return
        real = Path(os.path.realpath(self._state))
        handle = os.open(real.with_name(f".{real.name}.lock"), os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise InputError(
                f"another program uses the state {printable(self._state)}",
                remedy="wait until it ends, or name another file for the state",
            ) from None
        except OSError:  # on a file system that knows no locks
            pass
        self._release = weakref.finalize(self, os.close, handle)

    def close(self) -> None:
        """Let others use the state."""
        if self._release is not None:
            self._release()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _named(mark: Mark, y_true: Any, period: Any) -> str | None:
    """Return by what the monitor knows a batch: the same bytes are the same batch, whatever the file is called."""
    if period is None and not mark.content:
        return None
    rows = getattr(y_true, "y_prob", y_true)
    size = len(rows) if hasattr(rows, "__len__") else _FEW_ROWS
    return mark.content if mark.content and size >= _FEW_ROWS else mark.name
