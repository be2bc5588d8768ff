"""``calibrant watch``: do the forecasts stay right, while more and more outcomes come in?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from calibrant.cli.inputs import LENGTHS, Source, takes_rows
from calibrant.cli.options import CONFIDENCE_LEVEL, THRESHOLD_RANGE, with_options
from calibrant.cli.outputs import (
    ALARM,
    DONE,
    NOT_SHOWN,
    UNDECIDED,
    BadInput,
    Command,
    Show,
    check_out,
    remark,
)

_NEVER = "never"
_OUT = click.Path(dir_okay=False, path_type=Path)


def _periods(_: click.Context, __: click.Parameter, value: str) -> float | None:
    """Read how many periods pass between false alarms, or that there is never to be one."""
    if value == _NEVER:
        return None
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 1.0 <= number <= 1e12:
        raise click.BadParameter(f"{value!r} is neither a number of periods from 1 on, nor {_NEVER!r}.")
    return number


_QUESTION = (
    click.option(
        "--max-error", type=click.FloatRange(0.0, 1.0), required=True, help="The error that the verdict is about."
    ),
    click.option(
        "--measure",
        type=click.Choice(["cutoff", "risk_gap"]),
        default="cutoff",
        show_default=True,
        help="What is watched: the calibration error, or what re-drawing the line between acting and not would save.",
    ),
    THRESHOLD_RANGE,
    click.option(
        "--tolerance",
        type=click.FloatRange(0.0, 1.0),
        default=0.0,
        show_default=True,
        help="The error that is no reason for an alarm.",
    ),
    click.option(
        "--periods-between-false-alarms",
        callback=_periods,
        default="1000",
        show_default=True,
        metavar="NUMBER|never",
        help="Periods that pass on average before a false alarm, at least. never: an alarm is false with probability "
        "one minus the confidence level, ever, and takes longer.",
    ),
    CONFIDENCE_LEVEL,
    click.option(
        "--unit",
        type=click.Choice(["period", "row"]),
        default="period",
        show_default=True,
        help="What counts as one piece of evidence. period: its mean, whatever its rows share, so that certifying "
        "takes at least about 4 / --max-error periods. row: each row, which takes far fewer periods, and is right only "
        "where rows of a period share nothing that decides outcomes (where they clearly do, the verdict is void).",
    ),
    click.option(
        "--assume",
        type=click.Choice(["one population", "anything"]),
        default="one population",
        show_default=True,
        help="What the limits rest on, until an alarm: that what is to be expected stays the same, or nothing.",
    ),
)
_PERIODS = (
    click.option("--time", metavar="COLUMN", help="Column of times, as in 2026-01-31T13:45."),
    click.option("--every", type=click.Choice(LENGTHS), help="How long the periods of --time are; a day by default."),
    click.option("--period", metavar="COLUMN", help="Column that names the period: whole numbers or dates."),
    click.option(
        "--maturity",
        type=click.IntRange(0, 1_000_000),
        default=0,
        show_default=True,
        help="How many periods after its forecast a row has its outcome: a period stays open for so long.",
    ),
)
_WAYS = (
    click.option(
        "--state",
        type=_OUT,
        callback=check_out,
        metavar="FILE",
        help="Keep what was read in this file, and go on from it: killed at any moment, the next start neither loses "
        "nor doubles a file.",
    ),
    click.option("--follow", is_flag=True, help="Read files as they appear in the folders, and wait for more."),
    click.option(
        "--poll",
        type=click.FloatRange(0.01, 86_400.0),
        default=5.0,
        show_default=True,
        help="With --follow: seconds between two looks at the folders.",
    ),
    click.option(
        "--stop-after",
        type=click.FloatRange(min=0.0),
        metavar="SECONDS",
        help="With --follow: end when nothing has changed for so long.",
    ),
    click.option("--stop-at-alarm", is_flag=True, help="End at an alarm, with exit code 4."),
    click.option(
        "--keep-open", is_flag=True, help="More of the newest period comes with the next start: do not close it."
    ),
    click.option(
        "--replayed",
        is_flag=True,
        help="Standard input begins with what was read before, which is passed over. Needs --state.",
    ),
    click.option("--strict", is_flag=True, help="End at a bad batch, which is named and passed over otherwise."),
    click.option("--reset", is_flag=True, help="Begin anew with the next period, as after a repair. Needs --state."),
    click.option(
        "--openmetrics",
        type=_OUT,
        callback=check_out,
        metavar="FILE",
        help="Write the last numbers there for Prometheus, after each batch.",
    ),
    click.option("--name", metavar="TEXT", help="Of the model: a label in --openmetrics, and a key in --json."),
)


def _takes_options(function: Any) -> Any:
    return with_options(function, *_QUESTION, *_PERIODS, *_WAYS)


@click.command(
    "watch",
    short_help="Do the forecasts stay right?",
    cls=Command,
    examples="""
    calibrant watch days/ --time issued --every day --max-error 0.05
    calibrant watch 2026-01-31.csv --max-error 0.05 --state churn.state
    calibrant watch days/ --time issued --every day --max-error 0.05 --state churn.state --follow
    calibrant watch days/ --time issued --every day --max-error 0.05 --openmetrics churn.prom
    calibrant watch - --time issued --every hour --max-error 0.05 --unit row --json
    calibrant watch --time issued --every day --max-error 0.05 --state churn.state --reset
    """,
    exit_codes={
        DONE: "certified: the error is at most --max-error",
        NOT_SHOWN: "refuted: it is above",
        UNDECIDED: "undecided, void without an alarm, or no period is complete yet",
        ALARM: "alarm: forecasts were off by more than --tolerance",
    },
)
@_takes_options
@takes_rows(required=False, by=False)
def command(
    source: Source,
    show: Show,
    state: Path | None,
    follow: bool,
    poll: float,
    stop_after: float | None,
    stop_at_alarm: bool,
    keep_open: bool,
    replayed: bool,
    strict: bool,
    reset: bool,
    openmetrics: Path | None,
    name: str | None,
    **question: Any,
) -> None:
    """Watch forecasts whose outcomes keep coming: limits, verdict and alarm after each period.

    Unlike those of "calibrant certify", they stay right however often one looks. FILE is a batch of rows, a folder of
    batches, or "-" for standard input (CSV or JSON lines). Rows belong to periods, by --time with --every or by
    --period; without, each file is a period of its own. A period is read when a later one begins, and at the end, and
    then takes no more rows. Each gets one line. A batch with missing or impossible values, with other columns, or with
    rows of a period that was read, is refused whole and named on standard error, and the next one follows.

    Standard error says once what to keep in mind: a caution where the limit lets forecasts without any skill pass, as
    it may with rare events, and notes, such as on forecasts that look like predicted classes, or like those of the
    other class. --verbose and --json say it after each period.

    An alarm stays until --reset. docs/how-to/watch.md says what to do about one, and how to run this every day.
    """
    from calibrant.cli.watching import Watching, follow_folders, read_files, read_lines
    from calibrant.monitors.monitor import Monitor
    from calibrant.monitors.watch import Watch

    by = source.time or source.period
    if stop_after is not None and not follow:
        raise BadInput("--stop-after goes with --follow; without it the watch ends when all files are read")
    _check_files(source, (state, openmetrics), follow=follow)
    _check_state(source, state, replayed=replayed, reset=reset, has_periods=by is not None)
    is_input = source.files == ("-",)
    every = None if source.time is None else source.every or "day"
    watch = Watch(Monitor(**question), every=every, state=state, again=not is_input)
    with watch:
        watching = Watching(
            replace(source, by=by, time=None, period=None, every=None),
            show,
            watch,
            source.time is not None,
            strict,
            stop_at_alarm,
            openmetrics,
            name,
        )
        watch.tell = watching.tell
        watching.recall()
        if reset:
            watch.reset()
            remark(f"Begins anew: epoch {watch.monitor.epoch}.", quiet=show.quiet)
        if follow:
            follow_folders(watching, poll, stop_after)
        elif not is_input:
            read_files(watching)
        elif by is None:
            watching.take_input()
        else:
            read_lines(watching, replayed=replayed)
        if not (follow or keep_open or watching.is_over):
            watch.finish()
        watch.flush()
        watching.note_metrics()
        if reset and not source.files:
            raise click.exceptions.Exit(DONE)
        watching.end()


def _check_files(source: Source, written_to: tuple[Path | None, ...], *, follow: bool) -> None:
    """Refuse inputs that cannot be read together, or that are written to."""
    if "-" in source.files:
        if len(source.files) > 1:
            raise BadInput('"-" reads standard input, which cannot be read together with files; name it alone')
        if follow:
            raise BadInput('"-" is read as it comes; leave out --follow, which is for folders')
    if follow and not source.files:
        raise BadInput("--follow needs a folder to follow")
    for folder in (Path(name) for name in source.files):
        for written in (each for each in written_to if each is not None):
            if folder.is_dir() and written.resolve().is_relative_to(folder.resolve()):
                raise BadInput(f"{written} is inside {folder}, where it would be read as a batch; write it elsewhere")


def _check_state(source: Source, state: Path | None, *, replayed: bool, reset: bool, has_periods: bool) -> None:
    """Refuse what needs a state and has none."""
    if state is None and (replayed or reset):
        raise BadInput(f"--{'replayed' if replayed else 'reset'} needs --state, the file that knows what was before")
    if reset and state is not None and not state.exists():
        raise BadInput(
            f"--reset: there is no {state}, and so nothing to begin anew; look at its spelling, or leave --reset out"
        )
    if not source.files and not reset:
        raise BadInput('nothing to read: name files, a folder, or "-" for standard input')
    if replayed and (source.files != ("-",) or not has_periods):
        raise BadInput('--replayed is for standard input, "-", with --time or --period')
