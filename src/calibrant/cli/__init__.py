"""The command line. What is heavy loads inside the commands, so that ``calibrant --help`` answers at once."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

try:
    import click
except ImportError:
    print("the command line needs click; install it with: pip install 'calibrant[cli]'", file=sys.stderr)
    raise SystemExit(2) from None  # 1 would read as a verdict

from calibrant import __version__
from calibrant.cli.outputs import Commands, no_verdict_by_accident
from calibrant.cli.signals import ended_by_signals

COMMANDS = (
    "measure",
    "certify",
    "groups",
    "test",
    "decide",
    "recalibrate",
    "compare",
    "plan",
    "watch",
    "validate",
    "report",
    "reproduce",
)


class Program(Commands):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, _: click.Context) -> list[str]:
        """Return the commands in the order in which one uses them."""
        return list(COMMANDS)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = import_module(f"calibrant.cli.{cmd_name}").command
        return found

    def main(self, *args: Any, ends_process: bool = False, **settings: Any) -> Any:
        """Run the program; being told to stop is no verdict."""
        with ended_by_signals(for_good=ends_process):
            return super().main(*args, **settings)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, or say why it cannot be loaded."""
        with no_verdict_by_accident(ctx):
            return super().invoke(ctx)


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    examples="""
    How wrong are the forecasts?      calibrant measure preds.csv
    Is the error at most 0.05?        calibrant certify preds.csv --max-error 0.05
    For whom are they wrong?          calibrant groups preds.csv --features age,ward
    What does acting on them lose?    calibrant decide preds.csv --threshold 0.2
    Repair them:                      calibrant recalibrate fit preds.csv --out model.json
    Do they stay right?               calibrant watch days/ --time issued --every day --max-error 0.05
    A validation study:               calibrant validate preds.csv --out validation.html
    A page to forward:                calibrant report preds.csv --out report.html
    """,
)
@click.version_option(__version__, prog_name="calibrant")
def main() -> None:
    """Decide whether probability forecasts can be trusted and acted on.

    Every command reads a file with one row per forecast: what was forecast (a probability) and what happened (0 or 1,
    true or false, or labels). CSV, TSV, Parquet, Arrow/Feather, NPZ and JSON lines are read; "-" is standard input.

    The exit code makes it a gate: 0 when done or certified, 1 when refuted or rejected, 3 when these rows cannot tell,
    4 for an alarm, 2 for bad input or usage.

    "calibrant COMMAND --help" explains a command. docs/reference/cli.md describes what --json prints, and how to switch
    on completion in your shell.
    """


def run() -> None:
    """Be the program of a process, which ends with it."""
    main(prog_name="calibrant", ends_process=True)
