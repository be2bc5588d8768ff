"""What the user says about files: their names, the options that name columns, errors in words of both."""

from __future__ import annotations

import contextlib
import csv
import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

import click

from calibrant.cli.horizons import FOLLOWED, HORIZON_OPTIONS, HorizonAsked, said_of_horizon, time_option
from calibrant.cli.outputs import OUTPUT_OPTIONS, BadInput, Show, working
from calibrant.cli.voices import Shell
from calibrant.core.errors import CalibrantError

if TYPE_CHECKING:
    from calibrant.engines.files import Table
    from calibrant.rows.times import Every

_FORMATS = ("csv", "tsv", "parquet", "arrow", "feather", "npz", "jsonl")
_STANDARD_INPUT = "-"
_HOW_SEVERAL = "with --y-prob several times or with a *, as in --y-prob 'p_*'"
_SEVERAL_CLASSES = (
    " For forecasts of several classes name it once for each class, or all at once with a *, which stands for any "
    "text: --y-prob 'p_*'."
)

LENGTHS = ("hour", "day", "week", "month")
"""Of periods, as in `calibrant.rows.times`, which takes numpy to load."""

Function = TypeVar("Function", bound=Callable[..., Any])

PERIOD_OPTIONS = (
    click.option(
        "--time",
        metavar="COLUMN",
        help="Also say whether anything has changed: column of dates or times, cut into periods. With --event it is "
        f"the {FOLLOWED}",
    ),
    click.option(
        "--every",
        type=click.Choice(LENGTHS),
        help="How long the periods of --time are; a day by default.",
    ),
    click.option(
        "--period",
        metavar="COLUMN",
        help="In place of --time: column of the periods themselves, whole numbers or dates.",
    ),
)
"""Which period a row lies in."""


QUESTIONS = ("confidence", "classwise", "top_label", "pairs", "subsets")
"""What may be asked of several classes, as in `calibrant.rows.classes`, which takes numpy to load."""

CLASS_OPTIONS = (
    click.option(
        "--questions",
        type=click.Choice(QUESTIONS),
        help="What to ask of several classes. confidence: is the top label right as often as forecast? classwise: is "
        "every class, against the rest? top_label: confidence, for each top label by itself. pairs: every class "
        "against every other. subsets: every yes-or-no question about the class, of at most 12. Without it confidence; "
        "of two classes the second, or --pos-label.",
    ),
    click.option(
        "--classes",
        metavar="LABEL,LABEL,...",
        help="The label of each column of --y-prob, in their order. Without it columns are named after the labels in "
        "--y-true, as they are or behind a beginning that all share, as in p_cat and p_dog.",
    ),
    click.option(
        "--multilabel",
        is_flag=True,
        help="A row may have several labels, or none: --y-true names a column of 0 and 1 for each, in the order of "
        "--y-prob, and each label is asked about by itself.",
    ),
)
"""What is asked of forecasts of several classes."""

STAR = "*"
"""What stands for any text in the name of a column."""


@dataclass(frozen=True)
class ClassesAsked:
    """What the user said about forecasts of several classes.

    Attributes
    ----------
    y_prob, y_true : tuple of str
        Columns, or patterns of them; the second one for labels of which a row may have several.
    classes : tuple of str or None
        The label of each column.
    questions : str or None
        What is asked of them.
    multilabel : bool
        Whether a row may have several labels.
    """

    y_prob: tuple[str, ...]
    y_true: tuple[str, ...] = ()
    classes: tuple[str, ...] | None = None
    questions: str | None = None
    multilabel: bool = False


@dataclass(frozen=True)
class Source:
    """What the user said about a data set: its files, how to read them, and which columns to take.

    Attributes
    ----------
    files : tuple of str
        Paths and patterns, whose rows are taken together; or "-" alone, for standard input.
    y_true, y_prob, weight, by, cluster, suspect : str or None
        Columns, the last one of labels whose rows may depend on each other; None for one that is to be guessed (the
        first two) or is not there.
    time, period : str or None
        The column of times, which are cut into periods as long as ``every`` says; or of the periods themselves.
    every : str or None
        How long a period is.
    pos_label : str or None
        The label that counts as the event.
    features : tuple of str or None
        Columns that say who a row is about, which may lack values; none of them stands for all other columns.
    asked : ClassesAsked or None
        What was said about several classes, each with a column of forecasts.
    horizon : HorizonAsked or None
        What was said about censored outcomes; ``y_true`` is the column of what ended the follow-up then.
    drop_missing : bool
        Whether to leave out rows that lack a value, which are an error otherwise.
    format, memory_limit : str or None
        As in `calibrant.engines.files.open_table`.
    quiet : bool
        Whether to keep guesses to oneself.
    """

    files: tuple[str, ...]
    y_true: str | None = None
    y_prob: str | None = None
    weight: str | None = None
    by: str | None = None
    cluster: str | None = None
    suspect: str | None = None
    time: str | None = None
    period: str | None = None
    every: Every | None = None
    pos_label: str | None = None
    features: tuple[str, ...] | None = None
    asked: ClassesAsked | None = None
    horizon: HorizonAsked | None = None
    drop_missing: bool = False
    format: str | None = None
    memory_limit: str | None = None
    quiet: bool = False

    @property
    def name(self) -> str:
        """What to call the files in messages."""
        from calibrant.engines.formats import named_together

        return "standard input" if self.files == (_STANDARD_INPUT,) else named_together(self.files)


def takes_rows(
    *,
    required: bool = True,
    outcomes: bool = True,
    weights: bool = True,
    by: bool = True,
    clusters: bool = False,
    suspects: bool = False,
    periods: bool = False,
    each_file: bool = False,
    models: bool = False,
    classes: bool = False,
    horizons: bool = False,
    format_option: str = "--format",
) -> Callable[[Function], Function]:
    """Add to a command its file, the options that name columns, and those that say how to read and to show.

    The function is called with the `Source` and a `Show`, then with options of its own. Several files are one data set,
    unless ``each_file`` says that each is one of its own: then the function gets a list of sources. Where several
    models may be named, the columns of forecasts stand in ``y_prob``. With ``classes`` there may be a column for each
    of several classes, with ``horizons`` outcomes may be censored.
    """
    several = (" Several may be named, each a model." if models else "") + (_SEVERAL_CLASSES if classes else "")
    forecasts = f"Column of forecasts, in [0, 1].{several}"
    metavar = "FILE..." if required else "[FILE...]"
    options = [click.argument("files", nargs=-1, required=required, metavar=metavar)]
    if outcomes:
        said = "Column of outcomes: 0/1, true/false, or labels."
        said += " With --multilabel it may be named several times, or with a *." if classes else ""
        options.append(click.option("--y-true", metavar="COLUMN", multiple=classes, help=said))
    options.append(click.option("--y-prob", metavar="COLUMN", multiple=models or classes, help=forecasts))
    options += CLASS_OPTIONS if classes else ()
    if outcomes and weights:
        said = "Column of weights: fixed beforehand, not negative."
        options.append(click.option("--weight", metavar="COLUMN", help=said))
    if outcomes:
        said = "The outcome that counts as the event, against all others."
        options.append(click.option("--pos-label", metavar="LABEL", help=said))
    if by:
        options.append(click.option("--by", metavar="COLUMN", help="Also judge each group of this column."))
    if clusters:
        said = (
            "Column that says which rows belong together, such as a patient, a site or a day: rows of one value may "
            "depend on each other in any way, and clusters are what counts."
        )
        options.append(click.option("--cluster", metavar="COLUMN", help=said))
    if suspects:
        said = (
            "Also say whether rows of one value of this column are more alike than independent rows would be, and what "
            "the limit would be with them as clusters."
        )
        options.append(click.option("--check-clusters", "suspect", metavar="COLUMN", help=said))
    if horizons:
        options += HORIZON_OPTIONS if periods else (time_option(), *HORIZON_OPTIONS)
    options += [*(PERIOD_OPTIONS if periods else ()), *file_options(format_option), *OUTPUT_OPTIONS]

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def run(
            files: tuple[str, ...],
            y_prob: Any,
            as_json: bool,
            quiet: bool,
            verbose: bool,
            **rest: Any,
        ) -> Any:
            named = ("y_true", "weight", "pos_label", "by", "cluster", "suspect")
            common = {name: rest.pop(name, None) for name in named}
            censored: dict[str, Any] = {}
            if horizons:
                given = {name: rest.pop(name) for name in ("event", "at", "competing")}
                followed = rest["time"] if periods else rest.pop("time")
                censored = said_of_horizon({**common, **rest}, time=followed, **given)
                if followed is not None and not censored and not periods:
                    raise BadInput("--time is how long rows were followed; name what ended that with --event")
            if "time" in rest:  # which a command may declare in words of its own
                common |= {name: rest.pop(name) for name in ("time", "every", "period")}
                check_periods(common)
            common |= {name: rest.pop(name) for name in ("drop_missing", "format", "memory_limit")} | {"quiet": quiet}
            show = Show(as_json, quiet, verbose)
            if classes:
                asked = {name: rest.pop(name) for name in ("questions", "classes", "multilabel")}
                common |= said_of_classes(common["y_true"], y_prob, **asked)
                if censored and common.get("asked") is not None:
                    raise BadInput("--event is about one event; name one column of forecasts with --y-prob")
            elif models:
                rest["y_prob"] = y_prob
            else:
                common["y_prob"] = y_prob
            common |= censored
            if each_file:
                return function([Source((each,), **common) for each in files], show, **rest)
            return function(Source(files, **common), show, **rest)

        return cast(Function, functools.reduce(lambda decorated, option: option(decorated), reversed(options), run))

    return decorate


def said_of_classes(
    y_true: tuple[str, ...], y_prob: tuple[str, ...], *, questions: str | None, classes: str | None, multilabel: bool
) -> dict[str, Any]:
    """Return what a source is told of the columns of outcomes and forecasts: one of each, or a column per class."""
    several = len(y_prob) > 1 or any(STAR in name for name in y_prob)
    if not several and not multilabel:
        for option, value in (("--questions", questions), ("--classes", classes)):
            if value is not None:
                raise BadInput(f"{option} is about several classes; name a column for each, {_HOW_SEVERAL}")
    if not multilabel and (len(y_true) > 1 or any(STAR in name for name in y_true)):
        raise BadInput("--y-true names one column, of the class of each row; a column per label is for --multilabel")
    if multilabel and not (y_true and y_prob):
        raise BadInput(
            f"--multilabel needs --y-true and --y-prob, with a column of each for every label, {_HOW_SEVERAL}"
        )
    if not several and not multilabel:
        return {"y_true": y_true[0] if y_true else None, "y_prob": y_prob[0] if y_prob else None}
    listed = None if classes is None else tuple(each.strip() for each in next(csv.reader([classes]), []))
    asked = ClassesAsked(y_prob, y_true if multilabel else (), listed, questions, multilabel)
    return {"y_true": y_true[0] if y_true and not multilabel else None, "y_prob": None, "asked": asked}


def check_periods(named: Mapping[str, Any]) -> None:
    """Refuse two ways to name periods, and a length of periods without times to cut."""
    if named["time"] is not None and named["period"] is not None:
        raise BadInput("--time and --period both say which period a row lies in; name one of them")
    if named["every"] is not None and named["time"] is None:
        raise BadInput("--every says how long the periods of --time are; name the column of times, too")


def file_options(format_option: str = "--format") -> tuple[Callable[[Function], Function], ...]:
    """Return the options that say how files are read."""
    return (
        click.option(
            "--drop-missing",
            is_flag=True,
            help="Leave out rows that lack a label, a forecast or another column asked for, and say how many.",
        ),
        click.option(
            format_option,
            "format",
            type=click.Choice(_FORMATS),
            help="What the file is; by default what its name or its first bytes say.",
        ),
        click.option("--memory-limit", metavar="SIZE", help="The most memory for reading files, such as 2GB."),
    )


def open_source(source: Source, content: BinaryIO | None = None) -> Table:
    """Open the files of a source as one table; or bytes that came from there."""
    from calibrant.engines.files import open_table

    named: Any = source.files if content is None else content
    if content is None and _STANDARD_INPUT in source.files:
        if len(source.files) > 1:
            raise BadInput('"-" reads standard input, which cannot be read together with files; name it alone')
        if sys.stdin.isatty():
            raise BadInput('"-" reads standard input, and nothing is piped into it; name a file, or pipe one in')
        named = _STANDARD_INPUT
    with working(f"opening {source.name}", quiet=source.quiet):
        table = open_table(named, file_format=source.format, memory_limit=source.memory_limit)
    real = [path.resolve() for path in table.paths]
    twice = next((path for path, found in zip(table.paths, real, strict=True) if real.count(found) > 1), None)
    if twice is not None:
        table.close()
        raise BadInput(f"{twice} was named twice, and its rows would count twice; name each file once")
    return table


@contextlib.contextmanager
def explained(source: Source, table: Table | None = None) -> Iterator[None]:
    """Let errors of the library speak of the file's columns and rows, and of this program's options."""
    try:
        yield
    except CalibrantError as error:
        said = error.said(voice_of(source, table))
        raise BadInput(said if error.is_placed else f"{source.name}: {said}") from error


def voice_of(source: Source, table: Table | None = None) -> Shell:
    """Return the words for a file's columns and rows."""
    asked = source.asked
    columns: dict[str, str | Sequence[str] | None] = {
        "y_true": source.y_true if asked is None or not asked.y_true else asked.y_true,
        "y_prob": source.y_prob if asked is None else asked.y_prob,
        "sample_weight": source.weight,
        "by": source.by,
        "cluster": source.cluster,
        "period": source.period or source.time,
        "times": source.time,
        **({} if source.horizon is None else {"time": source.horizon.time, "event": source.horizon.event}),
    }
    return Shell(columns, None if table is None else table.row_said)
