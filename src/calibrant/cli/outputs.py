"""What goes where: sentences or one JSON document on standard output, remarks and errors on standard error."""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import re
import shutil
import stat
import sys
import textwrap
import threading
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from calibrant import __version__
from calibrant.cli.voices import SHELL
from calibrant.core.errors import CalibrantError
from calibrant.core.files import check_target
from calibrant.core.voices import speaking
from calibrant.core.words import printable

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from rich.progress import Progress, TaskID

DONE, NOT_SHOWN, BAD_INPUT, UNDECIDED, ALARM = 0, 1, 2, 3, 4
INTERRUPTED, PIPE_CLOSED = 130, 141  # what shells use for processes ended by these signals

_EXIT_CODES = {"certified": DONE, "refuted": NOT_SHOWN, "undecided": UNDECIDED, "void": UNDECIDED}
_DEBUG = "calibrant.debug"
_WIDEST = 100
_LOOK_SECONDS = 0.1
_COLOURS = {
    "Certified": "green",
    "certified": "green",
    "Not rejected": "green",
    "Refuted": "red",
    "refuted": "red",
    "Rejected": "red",
    "rejected": "red",
    "Too large": "red",
    "Undecided": "yellow",
    "undecided": "yellow",
}
_COLOURED = re.compile(rf"(?m)^({'|'.join(_COLOURS)})(?=:)|(?<=  )({'|'.join(_COLOURS)})$")
_CAUTION = re.compile(r"(?m)^Caution: ")


def exit_code_of(verdict: str) -> int:
    """Return the exit code of a verdict: "certified", "refuted", "undecided", or "void", which decides nothing."""
    return _EXIT_CODES[verdict]


class WithExamples(click.Command):
    """A command whose help ends in its exit codes and in lines to copy, printed as they are written.

    An option that is given twice, and does not say that it may be, is an error: which of two limits decided would
    depend on their order. So is a path that is empty, which would stand for the folder one is in.
    """

    def __init__(
        self, *args: Any, examples: str = "", exit_codes: Mapping[int, str] | None = None, **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self.examples = textwrap.dedent(examples).strip()
        self.exit_codes = {DONE: "done", **(exit_codes or {}), BAD_INPUT: "bad input or usage"}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read what was typed."""
        if not ctx.resilient_parsing:
            values, _, given = self.make_parser(ctx).parse_args(list(args))
            self._refuse_repeated(ctx, given)
            self._refuse_empty_paths(ctx, values)
        return super().parse_args(ctx, args)

    def _refuse_repeated(self, ctx: click.Context, given: list[click.Parameter]) -> None:
        for option in dict.fromkeys(given):
            once = isinstance(option, click.Option) and not (option.multiple or option.is_eager)
            if once and given.count(option) > 1:
                name = max(option.opts, key=len)
                raise click.UsageError(f"{name} was given {given.count(option)} times; give it once", ctx=ctx)

    def _refuse_empty_paths(self, ctx: click.Context, values: Mapping[str, Any]) -> None:
        for param in self.params:
            value = values.get(str(param.name))
            empty = "" in (value if isinstance(value, (list, tuple)) else [value])
            if empty and param.name == "files":
                name, what = "FILE", "a file, or of a folder of them"
            elif empty and isinstance(param.type, click.Path):
                name = max(param.opts, key=len) if isinstance(param, click.Option) else param.opts[0].upper()
                what = "a file" if param.type.file_okay else "a folder"
            else:
                continue
            raise click.UsageError(f"{name} is an empty text; pass the path of {what}", ctx=ctx)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write exit codes and examples after the options."""
        super().format_epilog(ctx, formatter)
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), self.exit_codes[code]) for code in sorted(self.exit_codes)])
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {line}\n" if line else "\n" for line in self.examples.split("\n")))


class Commands(WithExamples, click.Group):
    """Several commands, of which a mistyped one is told by its name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or say which one may be meant."""
        name = args[0]
        if not (ctx.resilient_parsing or name.startswith("-")) and self.get_command(ctx, name) is None:
            near = difflib.get_close_matches(name.lower(), self.list_commands(ctx), n=1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"No such command {name!r}.{meant}", ctx=ctx)
        return super().resolve_command(ctx, args)


class Command(WithExamples):
    """A command whose errors are one sentence and exit code 2; ``--debug`` shows where they come from.

    A closed pipe and Ctrl-C end it quietly, with exit codes that cannot be taken for a verdict.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        if os.environ.get("NO_COLOR"):
            ctx.color = False
        with no_verdict_by_accident(ctx), warnings.catch_warnings(), speaking(SHELL):
            if not ctx.meta.get(_DEBUG):
                warnings.simplefilter("ignore")  # what calibrant warns of stands in the notes of its results
            _check_written(ctx)
            return super().invoke(ctx)


@contextlib.contextmanager
def no_verdict_by_accident(ctx: click.Context) -> Iterator[None]:
    """Let whatever goes wrong end the program with an exit code that is not 1, which is a verdict."""
    try:
        yield
    except click.UsageError as error:
        said = error.format_message().expandtabs()
        if printable(said, lines=True) == said:
            raise
        raise click.UsageError(printable(said), ctx=error.ctx) from error
    except (click.ClickException, click.exceptions.Exit):
        raise
    except BrokenPipeError:
        _silence_output()
        raise click.exceptions.Exit(PIPE_CLOSED) from None
    except KeyboardInterrupt:
        raise click.exceptions.Exit(INTERRUPTED) from None
    except Exception as error:
        if ctx.meta.get(_DEBUG):
            click.echo(printable(traceback.format_exc(), lines=True), err=True, nl=False)
        raise BadInput(_said(error)) from error


class BadInput(click.ClickException):
    """Something is wrong with the input: one sentence on standard error, exit code 2."""

    exit_code = BAD_INPUT

    def format_message(self) -> str:
        """Return the sentence, on one line whatever the names of files and columns in it hold."""
        return printable(self.message)


def _said(error: Exception) -> str:
    """Say what went wrong, and how to find out more where it is not the input's fault."""
    if isinstance(error, CalibrantError):
        return error.said(SHELL)
    if isinstance(error, (ImportError, OSError)) and str(error):
        return str(error)
    return f"unexpected {type(error).__name__}: {error}; --debug shows where, please report it"


def _silence_output() -> None:
    """Send what is still to be written nowhere, because nobody reads it any more and Python would complain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _note_debug(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    ctx.meta[_DEBUG] = wanted


DEBUG_OPTION = click.option(
    "--debug", is_flag=True, expose_value=False, callback=_note_debug, help="Show where an error comes from."
)
"""Read by `Command`, and no argument of the functions behind commands."""

OUTPUT_OPTIONS = (
    click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document (docs/reference/cli.md describes it)."
    ),
    click.option("--verbose", "-v", is_flag=True, help="Print all there is to say: every assumption, note and number."),
    click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors: the exit code is the answer."),
    DEBUG_OPTION,
)


@dataclass(frozen=True)
class Show:
    """How the user wants to be answered.

    Attributes
    ----------
    as_json : bool
        As one JSON document instead of sentences.
    quiet : bool
        With nothing but the exit code.
    verbose : bool
        With all there is to say, in place of a few lines.
    """

    as_json: bool
    quiet: bool
    verbose: bool = False

    def words(self, brief: Iterable[str], full: object) -> str:
        """Return the few lines that are shown at first, or all there is to say."""
        return str(full) if self.verbose else "\n".join(str(line) for line in brief)

    def answer(self, text: str, *, exit_code: int = DONE, verbatim: bool = False, **facts: Any) -> NoReturn:
        """Print an answer in words (or a document as it is) or as JSON, and end with its exit code."""
        self.say(text, exit_code=exit_code, verbatim=verbatim, **facts)
        raise click.exceptions.Exit(exit_code)

    def say(self, text: str, *, exit_code: int, verbatim: bool = False, **facts: Any) -> None:
        """Print an answer, and go on."""
        if self.as_json:
            command = " ".join(click.get_current_context().command_path.split()[1:])
            click.echo(json.dumps(document(command, exit_code, facts), allow_nan=False))
        elif verbatim:
            click.echo(text)
            for note in _notes_on_input(facts):
                remark(note, quiet=self.quiet)
        elif not self.quiet:
            lines = [text, *_notes_on_input(facts)]
            click.echo(_coloured(wrapped(printable("\n".join(lines), lines=True))))
        sys.stdout.flush()


def _notes_on_input(facts: dict[str, Any]) -> list[str]:
    """Return what is to be said of the rows themselves: what was left out, what the event is."""
    found = [facts.get("input"), *(model.get("input") for model in facts.get("models", ()))]
    inputs = [each for one in found for each in (one if isinstance(one, list) else [one]) if each is not None]
    return list(dict.fromkeys(f"Note: {note}." for each in inputs for note in each["notes"]))


def remark(text: str, *, quiet: bool = False) -> None:
    """Say something beside the answer, on standard error."""
    if not quiet:
        click.echo(printable(text), err=True)


def document(command: str, exit_code: int, facts: dict[str, Any]) -> dict[str, Any]:
    """Return what ``--json`` prints: the answer in an envelope that says what was asked of what."""
    from calibrant.core.results import SCHEMA

    return {
        "schema": SCHEMA,
        "command": command,
        "version": __version__,
        "exit_code": exit_code,
        **{name: plain(value) for name, value in facts.items()},
    }


def plain(value: Any) -> Any:
    """Return results as plain values, their schema stated once by the document that holds them."""
    if hasattr(value, "to_dict"):
        return {name: each for name, each in value.to_dict().items() if name != "schema"}
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


def wrapped(text: str) -> str:
    """Break long lines at words where a person reads along; pipes and files get them whole."""
    if not sys.stdout.isatty():
        return text
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    lines = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()))
        prose = not indent  # tables are indented, and keep their columns
        lines.extend(textwrap.wrap(line, width, break_long_words=False) or [""] if prose else [line])
    return "\n".join(lines)


def _coloured(text: str) -> str:
    """Colour verdicts, none of them green beside a caution; click takes the colours out again for pipes and files."""
    colours = _COLOURS
    if _CAUTION.search(text):
        colours = {word: "yellow" if colour == "green" else colour for word, colour in _COLOURS.items()}
    return _COLOURED.sub(lambda found: click.style(found[0], fg=colours[found[0]], bold=True), text)


@contextlib.contextmanager
def working(text: str, *, quiet: bool = False, connection: DuckDBPyConnection | None = None) -> Iterator[None]:
    """Show on a terminal that something is going on, and how far the query of a connection has come."""
    if quiet or not (_showing or sys.stderr.isatty()):  # a display stands for the stream, and may not say what it is
        yield
        return
    with _display() as display:
        task = display.add_task(printable(text), total=None)
        with contextlib.nullcontext() if connection is None else _followed(connection, display, task):
            try:
                yield
            finally:
                display.remove_task(task)


_showing: list[Progress] = []


@contextlib.contextmanager
def _display() -> Iterator[Progress]:
    """Give the one display of the terminal: work inside of other work is a line below it."""
    if _showing:
        yield _showing[0]
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),  # a name in brackets is a name, not a style
        BarColumn(),
        TaskProgressColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        _showing.append(display)
        try:
            yield display
        finally:
            _showing.clear()


@contextlib.contextmanager
def _followed(connection: DuckDBPyConnection, display: Progress, task: TaskID) -> Iterator[None]:
    """Look from time to time how far a connection has come with its query."""
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK_SECONDS):
            with contextlib.suppress(Exception):  # a bar is no reason for anything to fail
                share = connection.query_progress()
                if share > 0.0:  # DuckDB cannot always say
                    display.update(task, total=100.0, completed=share)

    connection.execute("SET enable_progress_bar_print = false").fetchall()
    connection.execute("SET enable_progress_bar = true").fetchall()  # without which it does not count
    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def check_out(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a file that cannot be written before any work is done for it."""
    if path is not None:
        try:
            check_target(path)
        except OSError as error:
            raise BadInput(str(error)) from error
    return path


def _check_written(ctx: click.Context) -> None:
    """Refuse to write over a file that is read, by whatever name, or to write two things into one file."""
    options = [each for each in ctx.command.params if isinstance(each, click.Option) and each.callback is check_out]
    given = {max(each.opts, key=len): ctx.params[str(each.name)] for each in options}
    written = {option: path for option, path in given.items() if path is not None}
    there = {option: found for option, path in written.items() if (found := _file_at(path)) is not None}
    read = _files_read(ctx) if there else []
    for option, target in there.items():
        if any(os.path.samestat(target, each) for each in read):
            raise BadInput(f"{option} {written[option]} is one of the files that are read; write to another one")
    files = [os.path.realpath(path) for option, path in written.items() if option in there or not path.exists()]
    if len(set(files)) < len(files):
        raise BadInput(f"{' and '.join(written)} name one file; name another one for each")


def _files_read(ctx: click.Context) -> list[os.stat_result]:
    """Return what identifies the files that the arguments of a command stand for."""
    from calibrant.engines.formats import STANDARD_INPUT, files_meant

    found: list[Path | int] = []
    for argument in (each for each in ctx.command.params if isinstance(each, click.Argument)):
        value = ctx.params[str(argument.name)]
        for name in map(str, value if isinstance(value, tuple) else (value,)):
            with contextlib.suppress(OSError, ValueError):  # what is wrong with a name is said when it is read
                found += [sys.stdin.fileno()] if name == STANDARD_INPUT else files_meant(name)
    return [each for path in found if (each := _file_at(path)) is not None]


def _file_at(path: Path | int) -> os.stat_result | None:
    """Return what identifies a regular file, or None: nothing else can be written over."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found if stat.S_ISREG(found.st_mode) else None
