"""Batches on their way from files and streams into a watch: what is refused, what is said of each period."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from calibrant.cli.inputs import Source
from calibrant.cli.outputs import ALARM, UNDECIDED, BadInput, Show, exit_code_of, remark, working
from calibrant.cli.rows import Batch, named_periods, open_batch
from calibrant.cli.voices import Shell
from calibrant.core.errors import CalibrantError, InputError
from calibrant.core.words import counted, measured, printable, rounded_down, rounded_up

if TYPE_CHECKING:
    from calibrant.monitors.done import Mark
    from calibrant.monitors.incoming import Lines
    from calibrant.monitors.results import Reading
    from calibrant.monitors.watch import Watch

_LARGE = 1e6
_MOST_TRIES = 100
_WORDS = {"cutoff": "error", "risk_gap": "saving"}
_COLUMNS = ("y_true", "y_prob", "weight", "pos_label")


def code_of(reading: Reading) -> int:
    """Return the exit code that a reading stands for."""
    return exit_code_of(reading.verdict) if reading.alarm is None else ALARM


def reading_said(reading: Reading) -> str:
    """Say in one line what is known after a period."""
    gauge = ", alarm at ".join(_evidence(value) for value in (reading.detector, reading.threshold))
    cautioned = " with a caution" if reading.cautions and reading.verdict == "certified" else ""
    line = (
        f"{printable(reading.period)}: {reading.verdict}{cautioned}, "
        f"{_WORDS[reading.measure]} {measured(reading.estimate, 4)}, "
        f"from {rounded_down(reading.lower)} to {rounded_up(reading.upper)} ({counted(reading.periods, 'period')}, "
        f"{counted(reading.rows, 'row')}); evidence {gauge}"
    )
    alarm = reading.alarm
    if alarm is not None:
        place = "" if alarm.confirmed else " (place and time suspected)"
        line += (
            f"; ALARM at {printable(alarm.period)}: forecasts from {alarm.low:g} to {alarm.high:g} {alarm.direction} "
            f"since about {printable(alarm.since)}{place}"
        )
    if reading.verdict == "void" and (alarm is None or reading.is_doubted):
        line += f"; VOID: {reading.why_void()}"
    return line


def _evidence(value: float) -> str:
    return f"above {_LARGE:,.0f}" if value > _LARGE else f"{value:,.3g}" if value < 1000.0 else f"{value:,.0f}"


class NamedBytes(io.BytesIO):
    """Bytes of a stream, with a name for messages."""

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(content)
        self.name = name


@dataclass
class Watching:
    """A watch that is fed by the command line.

    Attributes
    ----------
    source : Source
        What was said of the batches; ``by`` is the column of times or periods.
    show : Show
        How to answer.
    watch : Watch
        Where batches go.
    is_time : bool
        Whether that column holds times.
    is_strict, stops_at_alarm : bool
        Whether a bad batch, or an alarm, is the end.
    metrics : Path or None
        The file for Prometheus.
    name : str or None
        Of the model.
    """

    source: Source
    show: Show
    watch: Watch
    is_time: bool
    is_strict: bool
    stops_at_alarm: bool
    metrics: Path | None
    name: str | None
    taken: int = 0
    refused: int = 0
    left_out: int = 0
    remarked: set[str] = field(default_factory=set)
    others: set[Any] = field(default_factory=set)
    has_events: bool = False

    def recall(self) -> None:
        """Take the columns from the state, where there is one; others than those are refused."""
        kept, asked = self.watch.columns, self._columns(self.source)
        if not kept:
            return
        guessed = {name: kept.get(name) for name in ("y_true", "y_prob") if asked[name] is None}
        for name, value in {**asked, **guessed}.items():
            if value != kept.get(name):
                raise BadInput(
                    f"--{name.replace('_', '-')} is {value!r}, and {kept.get(name)!r} in the state; ask the same as "
                    "before, or begin anew with another file for the state"
                )
        self.source = replace(
            self.source,
            y_true=guessed.get("y_true", self.source.y_true),
            y_prob=guessed.get("y_prob", self.source.y_prob),
        )

    def _columns(self, source: Source) -> dict[str, Any]:
        by = {"time": source.by if self.is_time else None, "period": None if self.is_time else source.by}
        return {**{name: getattr(source, name) for name in _COLUMNS}, **by}

    # --- Batches ----------------------------------------------------------------------------------------------------

    def take_file(self, path: Path, name: str, *, may_change: bool = False) -> None:
        """Read a file that was not read before; one that changes meanwhile may be given again."""
        from calibrant.monitors.done import file_version

        version = file_version(path)
        with self.refusing(name, unless=(lambda: file_version(path) != version) if may_change else None):
            mark = self.watch.mark_of(path)
            if mark is not None:
                with self._open(replace(self.source, files=(name,))) as batch:
                    if file_version(path) != mark.version:
                        raise InputError("changed while it was read", remedy="read it when nobody writes to it")
                    self._take(batch, mark)

    def take_bytes(self, content: bytes, name: str, file_format: str | None) -> None:
        """Read what came on standard input."""
        with self.refusing(name):
            self._take_bytes(content, name, file_format)

    def _take_bytes(self, content: bytes, name: str, file_format: str | None) -> None:
        source = replace(self.source, files=(name,), format=file_format)
        with self._open(source, NamedBytes(content, name)) as batch:
            self._take(batch, "")

    def take_lines(self, lines: Lines, file_format: str, tries: int = _MOST_TRIES) -> int:
        """Read lines of standard input, each a batch of its own that is refused alone; return how many tries are left.

        Lines that came together are read together, and in halves where some of them are bad: after many tries in a row
        that found no good line, what is left is refused as it is.
        """
        watch, before, taken = self.watch, (self.watch.lines, self.watch.lines_digest), self.taken
        watch.lines, watch.lines_digest = lines.last, lines.digest
        name = f"standard input, {lines.said()}"
        if len(lines.lines) == 1 or tries <= 0:
            self.take_bytes(lines.content, name, file_format)
            return tries if self.taken == taken else _MOST_TRIES
        try:
            self._take_bytes(lines.content, name, file_format)
        except (CalibrantError, BadInput):
            watch.lines, watch.lines_digest = before
            for half in lines.halves():
                tries = self.take_lines(half, file_format, tries - 1)
            return tries
        return _MOST_TRIES

    def take_input(self) -> None:
        """Read standard input to its end, as one batch."""
        with self.refusing("standard input"), self._open(self.source) as batch:
            self._take(batch, "")

    def _open(self, source: Source, content: Any = None) -> contextlib.AbstractContextManager[Batch]:
        return open_batch(source, content, may_lack_event=self._may_lack_event)

    def _may_lack_event(self, labels: Sequence[Any]) -> bool:
        """Whether a batch without the label of the event has no events, which to refuse would leave out non-events.

        As long as no event has come, a second label says that the one that was named may be a slip of the pen.
        """
        cells, found = self.watch.monitor.cells, self.others | set(labels)
        if not self.has_events and (cells is None or cells.outcome_total == 0.0) and len(found) > 1:
            return False
        self.others = found
        return True

    def _take(self, batch: Batch, mark: Mark | str) -> None:
        source, labels = batch.rows.source, batch.labels
        before = self.watch.columns
        self.watch.columns = self._columns(source)
        rows: dict[str, Any] = {} if labels is None else {"time" if self.is_time else "period": labels}
        if "period" in rows:
            rows["period"] = named_periods(labels, str(source.by))
        self.left_out += batch.rows.left_out.rows
        try:
            self.watch.take(batch.rows.observations, batch=mark, **rows)
        except CalibrantError as error:
            self.watch.columns = before
            self.left_out -= batch.rows.left_out.rows
            raise BadInput(self._said(error, batch)) from error
        self.source = replace(self.source, y_true=source.y_true, y_prob=source.y_prob)
        self.taken += 1
        self.has_events = self.has_events or bool(batch.rows.observations.y_true.any())
        for note in batch.rows.left_out.notes if batch.rows.left_out.rows else ():
            remark(f"Note: {note}.", quiet=self.show.quiet)

    def _said(self, error: CalibrantError, batch: Batch) -> str:
        source = batch.rows.source
        columns = {
            "y_true": source.y_true,
            "y_prob": source.y_prob,
            "sample_weight": source.weight,
            "times": source.by,
            "period": source.by or "period",
        }
        return error.said(Shell(columns, batch.row_said))

    @contextlib.contextmanager
    def refusing(self, name: str, unless: Callable[[], bool] | None = None) -> Iterator[None]:
        """Refuse a bad batch by its name, and go on; or end, if that is wanted."""
        try:
            yield
        except (CalibrantError, BadInput) as error:
            if unless is not None and unless():
                return
            said = error.message if isinstance(error, BadInput) else error.said(Shell())
            said = said if said.startswith(name) else f"{name}: {said}"
            if self.is_strict:
                raise BadInput(said) from error
            self.refused += 1
            remark(f"Refused: {said}")

    # --- Answers ----------------------------------------------------------------------------------------------------

    def tell(self, reading: Reading) -> None:
        """Say what is known after a period."""
        text = str(reading) if self.show.verbose else reading_said(reading)
        self.show.say(
            text,
            exit_code=code_of(reading),
            result=reading,
            name=self.name,
            batches=self.watch.batches,
            refused=self.refused,
            left_out=self.left_out,
        )
        if not self.show.as_json and not self.show.verbose:
            self._remark_once("Caution", reading.cautions)
            self._remark_once("Note", reading.notes)

    def _remark_once(self, kind: str, sentences: Iterable[str]) -> None:
        """Say on standard error what goes with the line of a period: once, whatever becomes of the numbers in it."""
        for sentence in sentences:
            same = getattr(sentence, "template", sentence)
            if same not in self.remarked:
                self.remarked.add(same)
                remark(f"{kind}: {sentence}", quiet=self.show.quiet)

    def note_metrics(self) -> None:
        """Write the file for Prometheus, whole or not at all."""
        if self.metrics is None:
            return
        from calibrant.core.files import replacing
        from calibrant.monitors.metrics import openmetrics

        labels = {} if self.name is None else {"model": self.name}
        counts = {"batches_read": self.watch.batches, "batches_refused": self.refused}
        with replacing(self.metrics) as unfinished:
            unfinished.write_text(openmetrics(self.watch.reading, labels=labels, counts=counts), encoding="utf-8")

    @property
    def is_over(self) -> bool:
        """Whether an alarm was the end."""
        reading = self.watch.reading
        return self.stops_at_alarm and reading is not None and reading.alarm is not None

    def end(self) -> NoReturn:
        """End with the exit code of the last reading."""
        if self.refused and not self.taken:
            raise BadInput("no batch could be read; the reasons stand above")
        reading = self.watch.reading
        if not self.taken:
            remark("No new batch.", quiet=self.show.quiet)
            if reading is not None and reading.alarm is not None:  # an exit code alone would be a riddle
                remark(f"As before: {reading_said(reading)}", quiet=self.show.quiet)
        if reading is None:
            maturity = self.watch.monitor.maturity
            late = f" With --maturity {maturity} that takes rows of {counted(maturity, 'period')} later."
            said = f"No period is complete yet: nothing can be said.{late if maturity else ''}"
            remark(said, quiet=self.show.quiet)
        elif self.taken and reading.periods == 1:
            remark(
                "All rows are of one period, and a change shows from the second one on: tell periods apart with --time "
                "or --period; what one lot of rows shows is what `calibrant certify` answers.",
                quiet=self.show.quiet,
            )
        sys.stdout.flush()
        raise click.exceptions.Exit(UNDECIDED if reading is None else code_of(reading))


def read_files(watching: Watching) -> None:
    """Read the files that were named, each as a batch."""
    for path, name in _find_files(watching.source):
        watching.take_file(path, name)
        watching.note_metrics()
        if watching.is_over:
            return


def _find_files(source: Source) -> list[tuple[Path, str]]:
    """Return files in the order in which they were named, those of a folder or pattern in the order of their names.

    Names that come as a shell lists them, day10 before day2, are put in order as those of a folder are.
    """
    from calibrant.engines.formats import find_files
    from calibrant.monitors.incoming import in_order

    found: dict[Path, tuple[Path, str]] = {}
    for name in source.files:
        if Path(name).is_fifo():
            raise BadInput(f'{name} is a pipe, of which nobody knows what was read; pipe it into "-"')
        _, paths = find_files(name, None, any_name=source.format is not None)
        for path in in_order(paths):
            real = path.resolve()
            if real in found:
                raise BadInput(f"{path} was named twice, and its rows would count twice; name each file once")
            found[real] = path, _as_named(path, name)
    named = dict(found.values())
    as_listed = sorted(source.files) == list(source.files)
    return [(path, named[path]) for path in (in_order(named) if as_listed else named)]


def _as_named(path: Path, name: str) -> str:
    """Write a file from where the user is, who said it so."""
    here = Path.cwd()
    return str(path) if Path(name).is_absolute() or not path.is_relative_to(here) else str(path.relative_to(here))


def follow_folders(watching: Watching, poll: float, idle: float | None) -> None:
    """Read the files of folders as they appear."""
    import time

    from calibrant.engines.formats import check_file
    from calibrant.monitors.incoming import new_files

    source = watching.source
    folders = [Path(name) for name in source.files]
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"{folder} is no folder; --follow reads folders, in which files appear")

    def wait(seconds: float) -> None:
        watching.watch.flush()
        with working(f"waiting for files in {source.name}", quiet=source.quiet):
            time.sleep(seconds)

    for path, folder in new_files(folders, poll=poll, idle=idle, wait=wait):
        with watching.refusing(str(path)):
            check_file(path, any_name=source.format is not None, top=folder)
            watching.take_file(path, str(path), may_change=True)
        watching.note_metrics()
        if watching.is_over:
            return


def read_lines(watching: Watching, *, replayed: bool) -> None:
    """Read standard input as it comes; where it has no records on lines, all at once."""
    from calibrant.engines.formats import is_lines
    from calibrant.monitors.incoming import LineStream, read_some

    stream: Any = sys.stdin.buffer
    if sys.stdin.isatty():
        raise BadInput('"-" reads standard input, and nothing is piped into it; name a file, or pipe one in')
    begin = read_some(stream)
    asked = watching.source.format
    if asked not in (None, "csv", "tsv", "jsonl") or (asked is None and begin and not is_lines(begin)):
        watching.take_bytes(begin + stream.read(), "standard input", asked)
        watching.note_metrics()
        return
    kind = asked or ("jsonl" if begin.lstrip()[:1] == b"{" else "csv")
    lines = LineStream(stream, begin=begin, header=kind != "jsonl")
    if replayed:
        try:
            lines.skip(watching.watch.lines, watching.watch.lines_digest)
        except CalibrantError as error:
            raise BadInput(f"standard input {error}") from error
    for part in lines.parts():
        watching.take_lines(part, kind)
        watching.note_metrics()
        if watching.is_over:
            return
