"""What the page about a validation study says, apart from its plots and its looks."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.core.results import Result
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
    """

    title: str
    name: str
    source: str | None
    date: str | None
    validation: Validation
    items: tuple[TripodItem, ...]
    fingerprint: str
    versions: tuple[str, ...]

    def __str__(self) -> str:
        known = sum(item.answer is not None for item in self.items)
        return (
            f"{self.title}\n{self.validation}\nTRIPOD+AI: {known} of {len(self.items)} items of an evaluation are "
            "filled in, at least in part; the others are the authors'."
        )

    __repr__ = __str__
