"""What goes where: sentences or one JSON document on standard output, remarks and errors on standard error."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
import tempfile
import textwrap
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import click

from calibrant import __version__

SCHEMA = "calibrant/1"
"""Version of the documents that ``--json`` prints, the same as that of the results in them."""

DONE, NOT_SHOWN, BAD_INPUT = 0, 1, 2
INTERRUPTED, PIPE_CLOSED = 130, 141  # what shells use for processes ended by these signals

_WIDEST = 100
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
_IN_A_SHELL = {
    "Use cutoff_calibration_error, or n_bins= for the ECE of the binned forecast": (
        "Use the Cutoff error, or expected_binned, the ECE of the binned forecast"
    ),
    "y_true holds": "the outcomes are",
    "as certify() gives": "as calibrant certify gives",
    "put it on the ladder of a GuardedRecalibrator": "fit with --method guarded, which tries Platt scaling first",
}
_COLOURED = re.compile(rf"(?m)^({'|'.join(_COLOURS)})(?=:)|(?<=  )({'|'.join(_COLOURS)})$")


class WithExamples(click.Command):
    """A command whose help ends in lines to copy, printed as they are written."""

    def __init__(self, *args: Any, examples: str = "", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = textwrap.dedent(examples).strip()

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples after the options."""
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {line}\n" if line else "\n" for line in self.examples.split("\n")))


class Command(WithExamples):
    """A command whose errors are one sentence and exit code 2; ``--debug`` shows where they come from.

    A closed pipe and Ctrl-C end it quietly, with exit codes that cannot be taken for a verdict.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        if os.environ.get("NO_COLOR"):
            ctx.color = False
        try:
            with warnings.catch_warnings():
                if not ctx.params.get("debug"):
                    warnings.simplefilter("ignore")  # what calibrant warns of stands in the notes of its results
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit):
            raise
        except BrokenPipeError:
            _silence_output()
            raise click.exceptions.Exit(PIPE_CLOSED) from None
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None
        except Exception as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            raise BadInput(_said(error)) from error


class BadInput(click.ClickException):
    """Something is wrong with the input: one sentence on standard error, exit code 2."""

    exit_code = BAD_INPUT


def _said(error: Exception) -> str:
    """Say what went wrong, and how to find out more where it is not the input's fault."""
    if isinstance(error, (ValueError, ImportError, OSError)) and str(error):
        return str(error)
    return f"unexpected {type(error).__name__}: {error}; --debug shows where, please report it"


def _silence_output() -> None:
    """Send what is still to be written nowhere, because nobody reads it any more and Python would complain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


OUTPUT_OPTIONS = (
    click.option("--json", "as_json", is_flag=True, help="Print one JSON document (docs/cli.md describes it)."),
    click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors: the exit code is the answer."),
    click.option("--debug", is_flag=True, help="Show where an error comes from."),
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
    """

    as_json: bool
    quiet: bool

    def answer(self, text: str, *, exit_code: int = DONE, verbatim: bool = False, **facts: Any) -> NoReturn:
        """Print an answer in words (or a document as it is) or as JSON, and end with its exit code."""
        if self.as_json:
            command = " ".join(click.get_current_context().command_path.split()[1:])
            click.echo(json.dumps(document(command, exit_code, facts), allow_nan=False))
        elif verbatim:
            click.echo(text)
        elif not self.quiet:
            for python, words in _IN_A_SHELL.items():
                text = text.replace(python, words)
            click.echo(_coloured(wrapped(text)))
        sys.stdout.flush()
        raise click.exceptions.Exit(exit_code)


def remark(text: str, *, quiet: bool = False) -> None:
    """Say something beside the answer, on standard error."""
    if not quiet:
        click.echo(text, err=True)


def document(command: str, exit_code: int, facts: dict[str, Any]) -> dict[str, Any]:
    """Return what ``--json`` prints: the answer in an envelope that says what was asked of what."""
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
    """Colour verdicts; click takes the colours out again where no terminal reads along."""
    return _COLOURED.sub(lambda found: click.style(found[0], fg=_COLOURS[found[0]], bold=True), text)


def table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows of words and numbers in columns, the first one left-aligned and so is the last."""
    cells = [list(names), *[list(row) for row in rows]]
    widths = [max(len(row[k]) for row in cells) for k in range(len(names))]
    last = len(names) - 1
    return "\n".join(
        "  "
        + "  ".join(
            cell.ljust(widths[k]) if k == 0 else cell if k == last else cell.rjust(widths[k])
            for k, cell in enumerate(row)
        ).rstrip()
        for row in cells
    )


@contextlib.contextmanager
def working(text: str, *, quiet: bool = False) -> Iterator[None]:
    """Show on a terminal that something is going on."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


@contextlib.contextmanager
def temporary_beside(path: Path) -> Iterator[Path]:
    """Give a temporary path in the folder of a file, and put what was written there in the file's place."""
    try:
        number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from error
    os.close(number)
    temporary = Path(name)
    try:
        yield temporary
        mode = 0o666 & ~_umask()
        temporary.chmod(path.stat().st_mode & 0o777 if path.exists() else mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
