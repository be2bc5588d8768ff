"""From a file to checked rows: the options that name columns, the rule that guesses them, errors in the file's words.

This is the only place where the command line reads predictions.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import click

from calibrant.cli.outputs import OUTPUT_OPTIONS, BadInput, Show, remark, working

if TYPE_CHECKING:
    from calibrant.engines.files import Table

OUTCOME_NAMES = ("y_true", "y", "label", "target", "outcome", "actual", "truth", "true", "observed", "event")
"""Names by which a column of outcomes is recognised, whatever their case."""

FORECAST_NAMES = (
    *("y_prob", "p", "prob", "proba", "probability", "forecast", "score", "y_score"),
    *("pred", "prediction", "predicted", "y_pred"),
)
"""Names by which a column of forecasts is recognised, whatever their case."""

MOST_GROUPS = 1000

_FORMATS = ("csv", "tsv", "parquet", "arrow", "feather", "npz", "jsonl")
_STANDARD_INPUT = "-"

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Source:
    """What the user said about a file: its name, how to read it, and which columns to take.

    Attributes
    ----------
    file : str
        Path, pattern, or "-" for standard input.
    y_true, y_prob, weight, by : str or None
        Columns; None for one that is to be guessed (the first two) or is not there.
    pos_label : str or None
        The label that counts as the event.
    format, memory_limit : str or None
        As in `calibrant.engines.files.open_table`.
    quiet : bool
        Whether to keep guesses to oneself.
    """

    file: str
    y_true: str | None = None
    y_prob: str | None = None
    weight: str | None = None
    by: str | None = None
    pos_label: str | None = None
    format: str | None = None
    memory_limit: str | None = None
    quiet: bool = False

    @property
    def name(self) -> str:
        """What to call the file in messages."""
        return "standard input" if self.file == _STANDARD_INPUT else self.file


@dataclass(frozen=True)
class Rows:
    """Checked rows of a file, and where they come from.

    Attributes
    ----------
    source : Source
        With the columns that were taken.
    format : str
        Of the file.
    y_true, y_prob, sample_weight, by : array or None
        What stands in them.
    """

    source: Source
    format: str
    y_true: Any
    y_prob: Any
    sample_weight: Any = None
    by: Any = None

    @property
    def data(self) -> dict[str, Any]:
        """The arguments under which the library takes rows."""
        return {"y_true": self.y_true, "y_prob": self.y_prob, "sample_weight": self.sample_weight}

    def facts(self) -> dict[str, Any]:
        """Return what a JSON document says about its input."""
        said = self.source
        return {
            "file": said.file,
            "format": self.format,
            "y_true": said.y_true,
            "y_prob": said.y_prob,
            "weight": said.weight,
            "by": said.by,
            "pos_label": said.pos_label,
            "rows": int(self.y_prob.size),
        }

    def groups(self) -> Iterator[tuple[Any, Rows]]:
        """Go through the groups of the rows, in the order of their labels."""
        from calibrant.validation import check_labels

        labels, positions = check_labels(self.by, "by", self.y_prob.size)
        for label, members in zip(labels, positions, strict=True):
            weight = None if self.sample_weight is None else self.sample_weight[members]
            yield (
                label,
                replace(self, y_true=self.y_true[members], y_prob=self.y_prob[members], sample_weight=weight, by=None),
            )


def takes_rows(
    *, outcomes: bool = True, by: bool = True, files: bool = False, models: bool = False, format: str = "--format"
) -> Callable[[Function], Function]:
    """Add to a command its file, the options that name columns, and those that say how to read and to show.

    The function is called with the `Source` and a `Show`, then with options of its own. Where several files may be
    named it gets a list of sources; where several models may be, the columns of forecasts stand in ``y_prob``.
    """
    forecasts = "Column of forecasts, in [0, 1]." + (" Several may be named, each a model." if models else "")
    options = [
        click.argument("file", nargs=-1 if files else 1, required=True),
        click.option("--y-prob", metavar="COLUMN", multiple=models, help=forecasts),
    ]
    if outcomes:
        options += [
            click.option("--y-true", metavar="COLUMN", help="Column of outcomes: 0/1, true/false, or two labels."),
            click.option("--weight", metavar="COLUMN", help="Column of weights: fixed numbers, not negative."),
            click.option("--pos-label", metavar="LABEL", help="The outcome that counts as the event, such as yes."),
        ]
    if by:
        options.append(click.option("--by", metavar="COLUMN", help="Also judge each group of this column."))
    options += [*file_options(format), *OUTPUT_OPTIONS]

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def run(
            file: Any,
            y_prob: Any,
            file_format: str | None,
            memory_limit: str | None,
            as_json: bool,
            quiet: bool,
            debug: bool,  # noqa: ARG001 - read by Command
            **rest: Any,
        ) -> Any:
            named = {name: rest.pop(name, None) for name in ("y_true", "weight", "pos_label", "by")}
            common = {"format": file_format, "memory_limit": memory_limit, "quiet": quiet, **named}
            show = Show(as_json, quiet)
            if models:
                rest["y_prob"] = y_prob
            else:
                common["y_prob"] = y_prob
            if files:
                return function([Source(each, **common) for each in file], show, **rest)
            return function(Source(file, **common), show, **rest)

        return cast(Function, functools.reduce(lambda decorated, option: option(decorated), reversed(options), run))

    return decorate


def file_options(format: str = "--format") -> tuple[Callable[[Function], Function], ...]:
    """Return the options that say how a file is read."""
    return (
        click.option(
            format,
            "file_format",
            type=click.Choice(_FORMATS),
            help="What the file is; by default what its name or its first bytes say.",
        ),
        click.option("--memory-limit", metavar="SIZE", help="The most memory for reading files, such as 2GB."),
    )


def read_rows(source: Source) -> Rows:
    """Read and check the columns of a file; errors speak of its columns and rows."""
    with _opened(source) as table:
        chosen = _guessed(source, table, outcomes=True)
        return _checked(chosen, table)


def read_models(source: Source, y_prob: Sequence[str]) -> list[Rows]:
    """Read one file with the forecasts of one or several models, one per column named."""
    with _opened(source) as table:
        first = _guessed(replace(source, y_prob=y_prob[0] if y_prob else None), table, outcomes=True)
        names = y_prob or (first.y_prob,)
        return [_checked(replace(first, y_prob=name), table) for name in names]


@contextlib.contextmanager
def open_forecasts(source: Source) -> Iterator[tuple[Source, Table, Any]]:
    """Open a file for its forecasts alone: the column that was taken, the table, and the numbers in the column."""
    from calibrant.engines.files import read_columns

    with _opened(source) as table:
        chosen = _guessed(source, table, outcomes=False)
        name = str(chosen.y_prob)
        with working(f"reading {table.name}", quiet=source.quiet):
            forecasts = read_columns(table, [name], numbers=[name])[name]
        yield chosen, table, forecasts


def _opened(source: Source) -> Table:
    """Open the file of a source."""
    from calibrant.engines.files import open_table

    if source.file == _STANDARD_INPUT and sys.stdin.isatty():
        raise BadInput('"-" reads standard input, and nothing is piped into it; name a file, or pipe one in')
    with working(f"opening {source.file}", quiet=source.quiet):
        return open_table(source.file, format=source.format, memory_limit=source.memory_limit)


def _checked(source: Source, table: Table) -> Rows:
    """Read the columns that were chosen, and let the one gate check them."""
    from calibrant.engines.files import read_columns
    from calibrant.validation import check_labels, check_observations

    assert source.y_true is not None
    assert source.y_prob is not None
    wanted = [name for name in (source.y_true, source.y_prob, source.weight, source.by) if name is not None]
    numbers = {name for name in (source.y_prob, source.weight) if name is not None}
    with working(f"reading {table.name}", quiet=source.quiet):
        values = read_columns(table, wanted, numbers=numbers)
    with explained(source, table):
        checked = check_observations(
            values[source.y_true],
            values[source.y_prob],
            sample_weight=None if source.weight is None else values[source.weight],
            pos_label=_label(source.pos_label, values[source.y_true]),
        )
        groups = None if source.by is None else values[source.by]
        if groups is not None:
            labels, _ = check_labels(groups, "by", checked.y_prob.size)
            if len(labels) > MOST_GROUPS:
                raise ValueError(
                    f"by has {len(labels):,} different values, more than the {MOST_GROUPS:,} groups that can be judged "
                    "together; choose another column"
                )
    return Rows(source, table.format, checked.y_true, checked.y_prob, checked.sample_weight, groups)


def _label(text: str | None, outcomes: Any) -> Any:
    """Return the label that counts as the event, as the column would hold it."""
    if text is None or outcomes.dtype.kind not in "biuf":
        return text
    if outcomes.dtype.kind == "b":
        words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        return words.get(text.lower(), text)
    try:
        return float(text)
    except ValueError:
        return text


def _guessed(source: Source, table: Table, *, outcomes: bool) -> Source:
    """Fill in columns that were not named, where their names leave no doubt, and say so."""
    for name in (source.y_true, source.y_prob, source.weight, source.by):
        if name is not None:
            table.check_column(name)
    taken = {source.y_true, source.y_prob, source.weight, source.by}
    y_true, y_prob = source.y_true, source.y_prob
    if y_true is None and outcomes:
        y_true = _recognised(table, OUTCOME_NAMES, taken)
    if y_prob is None:
        y_prob = _recognised(table, FORECAST_NAMES, taken)
    remaining = [name for name in table.columns if name not in {y_true, y_prob, *taken}]
    if len(table.columns) == 2 and len(remaining) == 1 and outcomes:  # of two columns, one tells the other
        y_true, y_prob = y_true or remaining[0], y_prob or remaining[0]
    if y_true is None and outcomes:
        _refuse_guess(table, "outcomes", "--y-true", OUTCOME_NAMES, taken)
    if y_prob is None:
        _refuse_guess(table, "forecasts", "--y-prob", FORECAST_NAMES, taken)
    for said, guess, what, option in (
        (source.y_true, y_true, "outcomes", "--y-true"),
        (source.y_prob, y_prob, "forecasts", "--y-prob"),
    ):
        if said is None and guess is not None:
            why = "the only one left" if guess in remaining else "by its name"
            remark(f"{what}: column {guess!r} of {table.name}, {why} ({option} chooses)", quiet=source.quiet)
    return replace(source, y_true=y_true, y_prob=y_prob)


def _recognised(table: Table, names: Sequence[str], taken: set[str | None]) -> str | None:
    """Return the one column whose name is among those known; None when there is none, or more than one."""
    found = _candidates(table, names, taken)
    return found[0] if len(found) == 1 else None


def _candidates(table: Table, names: Sequence[str], taken: set[str | None]) -> list[str]:
    return [name for name in table.columns if name.strip().lower() in names and name not in taken]


def _refuse_guess(table: Table, what: str, option: str, names: Sequence[str], taken: set[str | None]) -> NoReturn:
    found = _candidates(table, names, taken)
    why = f"{' and '.join(repr(name) for name in found)} all may be" if found else "no name says so"
    raise BadInput(
        f"{table.name}: which column holds the {what}? ({why}.) Name it with {option}; the columns are "
        f"{table.columns_said()}"
    )


@contextlib.contextmanager
def explained(source: Source, table: Table | None = None) -> Iterator[None]:
    """Let errors of the library speak of the file's columns and rows, and of this program's options."""
    try:
        yield
    except ValueError as error:
        raise BadInput(f"{source.name}: {in_words_of(str(error), source, table)}") from error


def in_words_of(message: str, source: Source, table: Table | None = None) -> str:
    """Rewrite a message of the library, which names arguments, into one that names columns, rows and options."""
    columns = {
        "y_true": source.y_true,
        "y_prob": source.y_prob,
        "sample_weight": source.weight,
        "by": source.by,
    }
    for python, words in _REMEDIES.items():
        message = message.replace(python, words)

    def named(found: re.Match[str]) -> str:
        argument, position = found[1] or found[3], found[2] or found[4]
        if columns[argument] is None:
            return found[0]
        place = "" if position is None or table is None else f", {table.row_said(int(position))},"
        return f"column {columns[argument]!r}{place}"

    return with_options(_DATA.sub(named, message))


def with_options(message: str) -> str:
    """Write the arguments in a message as the options of this program."""
    message = re.sub(r"\b(method|measure|wrapper)='([\w-]+)'", lambda found: f"--{found[1]} {found[2]}", message)
    names = "|".join(_ARGUMENTS)
    return re.sub(rf"\b({names})\b=?", lambda found: f"--{found[1].replace('_', '-')}", message)


_ARGUMENTS = (
    *("max_error", "confidence_level", "pos_label", "n_resamples", "memory_limit"),
    *("cost_false_positive", "cost_false_negative"),
)
_DATA = re.compile(r"\b(y_true|y_prob|sample_weight)\b(?:\[(\d+)\])?(?!=)|^(by)\b(?:\[(\d+)\])?")
_REMEDIES = {
    "the arguments look swapped, the order is (y_true, y_prob)": (
        "the columns look swapped: exchange --y-true and --y-prob"
    ),
    "; if it is meant, pass Tally.from_arrays(y_true, y_prob)": "",
    "compare with one label first, as in y_true == 'event'": "write a column that says whether the event happened",
    "bring it back, as in numpy.clip(values, 0, 1)": "bring it back into [0, 1]",
    ", or pass predict_proba output": "",
    ", or Tally.from_counts if the weights are counts of real observations": "",
    "convert it with astype(float) first": "write numbers",
}
