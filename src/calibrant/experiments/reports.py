"""What an experiment is asked and what it answers: settings, statements with a verdict, and the report of them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from calibrant.experiments.figures import draw_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA = "calibrant/1"
STREAMS = ("ours", "authors")
PAPER = "the paper"
PROJECT = "this project"

Part = TypeVar("Part")


def silent(parts: Iterable[Part]) -> Iterable[Part]:
    """Pass on parts and show nothing: the progress of somebody who does not watch."""
    return parts


@dataclass(frozen=True)
class Settings:
    """What may be chosen about an experiment.

    Attributes
    ----------
    rng : int
        Of the random numbers: the same seed gives the same report.
    runs : int, optional
        Repetitions, in place of the experiment's own number.
    stream : {"ours", "authors"}
        Whose way of drawing random numbers; "authors" is for the simulation, see there.
    track : callable
        Takes a sequence, passes its members on and may show how far they have come.
    """

    rng: int = 1
    runs: int | None = None
    stream: str = "ours"
    track: Callable[[Iterable[Any]], Iterable[Any]] = field(default=silent, compare=False)

    def __post_init__(self) -> None:
        if self.rng < 0:
            raise ValueError(f"rng is {self.rng}; it must be at least 0")
        if self.runs is not None and self.runs < 2:
            raise ValueError(f"runs is {self.runs}; at least 2 are needed to speak of how often something happens")
        if self.stream not in STREAMS:
            raise ValueError(f"stream is {self.stream!r}; choose one of {', '.join(STREAMS)}")

    def generator(self) -> np.random.Generator:
        """Return the source of random numbers for this seed."""
        return np.random.default_rng(self.rng)

    def record(self, runs: int | None, **others: Any) -> dict[str, Any]:
        """Return what it takes to repeat an experiment, with the number of runs it had."""
        return {"rng": self.rng, "runs": runs, "stream": self.stream, **others}


@dataclass(frozen=True)
class Statement:
    """Something that is stated, what was measured, and whether they agree.

    Attributes
    ----------
    item : str
        Where it is stated: an item of the paper, or of docs/theory.
    source : {"the paper", "this project"}
        Who states it.
    claim, measured : str
        What should be seen, and what was seen.
    holds : bool
        Whether they agree.
    """

    item: str
    source: str
    claim: str
    measured: str
    holds: bool

    def __str__(self) -> str:
        verdict = "agrees" if self.holds else "DOES NOT AGREE"
        return f"{verdict}: {self.item} ({self.source}): {self.claim}. Measured: {self.measured}."


@dataclass(frozen=True)
class Report:
    """What came out of an experiment.

    Attributes
    ----------
    name, title, item : str
        Its name on the command line, a title in words, and the item of the paper that it checks.
    settings : dict
        What it takes to repeat it.
    statements : tuple of Statement
        What is stated and what was measured.
    table : dict of str to array
        The data behind the figure, column by column.
    findings : dict
        Further numbers, as they appear in the JSON summary.
    size : tuple of float
        Width and height of the figure in inches.
    draw : callable
        Draws this report on an empty matplotlib figure.
    """

    name: str
    title: str
    item: str
    settings: Mapping[str, Any]
    statements: tuple[Statement, ...]
    table: Mapping[str, Any]
    findings: Mapping[str, Any]
    size: tuple[float, float]
    draw: Callable[[Report, Figure], None]

    @property
    def holds(self) -> bool:
        """Whether every statement agrees with what was measured."""
        return all(statement.holds for statement in self.statements)

    def column(self, name: str, **where: Any) -> Any:
        """Return a column of the table as an array, where other columns have the given values."""
        kept = np.ones(len(self.table[name]), dtype=bool)
        for other, value in where.items():
            kept &= np.asarray(self.table[other]) == value
        return np.asarray(self.table[name])[kept]

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values, ready for JSON."""
        summary = {
            "schema": SCHEMA,
            "type": "Report",
            "name": self.name,
            "title": self.title,
            "item": self.item,
            "holds": self.holds,
            "settings": dict(self.settings),
            "statements": [vars(statement) for statement in self.statements],
            **self.findings,
            "data": dict(self.table),
        }
        return dict(_plain(summary))

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def to_csv(self) -> str:
        """Return the table as CSV text, every number with all its digits."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.table)
        writer.writerows(zip(*(_plain(column) for column in self.table.values()), strict=True))
        return text.getvalue()

    def figure(self) -> Figure:
        """Return a new matplotlib figure of this report."""
        width, height = self.size
        return draw_figure(partial(self.draw, self), width=width, height=height)

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.title} ({self.item})"]
        return "\n".join([*lines, *(f"  {statement}" for statement in self.statements)])


def _plain(value: Any) -> Any:
    """Turn arrays and numpy numbers into what JSON knows; a number that is not finite becomes None."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def as_table(names: Iterable[str], rows: Iterable[Iterable[Any]]) -> dict[str, Any]:
    """Return rows as named columns."""
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def rarely_exceeded(
    item: str, source: str, claim: str, shares: Any, *, delta: float, runs: int, of: str = "fits"
) -> Statement:
    """State that a bound fails with probability at most delta, from the shares of runs in which it failed."""
    worst = float(shares.max())
    return Statement(
        item=item,
        source=source,
        claim=claim,
        measured=f"exceeded in {100 * worst:.1f}% of {runs} {of} where it is exceeded most",
        holds=at_most_share(worst, delta, runs),
    )


def at_most_share(measured: float, share: float, runs: int) -> bool:
    """Tell whether something seen in a share of runs can happen with at most the given probability.

    It can unless as many or more would be seen by chance in fewer than one experiment in a hundred thousand, so that
    the many comparisons of a report do not raise false alarms.
    """
    from scipy.stats import binom

    return bool(binom.sf(round(measured * runs) - 1, runs, share) > 1e-5)
