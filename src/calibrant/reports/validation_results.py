"""What the page about a validation study says, apart from its plots and its looks."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.core.results import Result
from calibrant.rows.incidence import HorizonRisk
from calibrant.validations.results import Validation


@dataclass(frozen=True)
class TripodItem(Result):
    """An item of TRIPOD+AI, the guideline on reporting prediction models.

    Attributes
    ----------
    number : str
        Its number there.
    topic : str
        What it is about.
    asks : str
        What to report, in a few words.
    answer : str or None
        What the software knows of it; None where only the authors do.
    """

    number: str
    topic: str
    asks: str
    answer: str | None

    def __str__(self) -> str:
        return f"{self.number} {self.topic}: {self.asks}. {self.answer or 'You fill in.'}"


@dataclass(frozen=True)
class StudyFile(Result):
    """Where the rows of a study are, so that whoever has the file can make the study again.

    Attributes
    ----------
    files : tuple of str
        Names or patterns, without folders; "-" alone for standard input.
    format : str
        "csv", "tsv", "parquet", "arrow", "npz" or "jsonl".
    y_true : str
        The column of outcomes; of outcomes that may be censored, that of what ended the follow-up.
    y_prob : str
        The column of forecasts.
    weight, cluster : str or None
        The columns of weights and of clusters, where there are any.
    time : str or None
        The column of how long rows were followed, for outcomes that may be censored.
    competing : tuple of float
        The codes of competing events.
    pos_label : str, float or None
        The label that counts as the event, where outcomes are labels.
    drop_missing : bool
        Whether rows that lack a value of one of these columns are left out.
    """

    files: tuple[str, ...]
    format: str
    y_true: str
    y_prob: str
    weight: str | None = None
    cluster: str | None = None
    time: str | None = None
    competing: tuple[float, ...] = ()
    pos_label: str | float | None = None
    drop_missing: bool = False

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        named = (self.time, self.y_true, self.y_prob, self.weight, self.cluster)
        return list(dict.fromkeys(name for name in named if name is not None))

    def __str__(self) -> str:
        return f"{', '.join(self.columns)} of {', '.join(self.files)}"


@dataclass(frozen=True, eq=False)
class ValidationSummary(Result):
    """The content of the page about a validation study.

    Attributes
    ----------
    title : str
        The page's title.
    name : str
        The model's name.
    source : str or None
        Where the rows came from, such as the name of a file.
    date : str or None
        The day it was made, as in 2026-03-31, if it was told.
    validation : Validation
        Every number with its limits.
    items : tuple of TripodItem
        The items of TRIPOD+AI that concern an evaluation.
    fingerprint : str
        Of the rows, whatever their order.
    versions : tuple of str
        The software that made it.
    risk : HorizonRisk or None
        How frequent the event is by the horizon, for outcomes that may be censored.
    file : StudyFile or None
        Which columns of which file the rows are, if it was told.
    left_out : str or None
        What was left out of the rows beforehand, if it was told.
    """

    title: str
    name: str
    source: str | None
    date: str | None
    validation: Validation
    items: tuple[TripodItem, ...]
    fingerprint: str
    versions: tuple[str, ...]
    risk: HorizonRisk | None = None
    file: StudyFile | None = None
    left_out: str | None = None

    def __str__(self) -> str:
        known = sum(item.answer is not None for item in self.items)
        return (
            f"{self.title}\n{self.validation}\nTRIPOD+AI: {known} of {len(self.items)} items of an evaluation are "
            "filled in, at least in part; the others are the authors'."
        )

    __repr__ = __str__
