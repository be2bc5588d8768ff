"""Measures of a family of questions: of each column, and of the worst."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.core.results import PerPart, Result
from calibrant.core.types import Label
from calibrant.core.voices import Either
from calibrant.core.words import counted, in_columns, measured, printable
from calibrant.measures.results import Measures, WorstInterval
from calibrant.rows.questions import CUTOFF_OF_ROWS, KINDS, Promising, QuestionKind

_SHOWN = ("mean_forecast", "mean_outcome", "cutoff", "smooth", "risk_gap")

MOST_LINES = 20
"""Of more questions than this a text shows the worst ones; ``frame()`` has them all."""


class OfQuestions(PerPart[Any]):
    """What results on several questions have in common.

    Attributes
    ----------
    kind : str
        What the questions are.
    questions : tuple
        What tells them apart.
    notes : tuple of str
        What to keep in mind about all of them.
    """

    kind: str
    questions: tuple[Label, ...]
    notes: tuple[str, ...]

    _names: ClassVar = "questions"

    @property
    def described(self) -> QuestionKind:
        """What people are told of these questions."""
        return KINDS[self.kind]

    @property
    def worst(self) -> Any:
        """The question with the largest error on these rows."""
        return self.questions[int(np.argmax(self._estimates()))]

    @property
    def estimate(self) -> float:
        """The largest error of a question on these rows."""
        return max(self._estimates())

    def _estimates(self) -> tuple[float, ...]:
        return tuple(each.estimate for each in self._all())

    def named_question(self, question: Any) -> str:
        """Name one of the questions in a sentence, where a label alone, such as 8, would read like a number."""
        return f"{self.described.noun} {printable(question)}"

    def _count_said(self) -> str:
        count, kind = len(self.questions), self.described
        return f"{count:,} {kind.noun if count == 1 else kind.plural}"

    def shown_places(self, most: int = MOST_LINES) -> list[int]:
        """Return which questions are shown: all, or those with the largest errors, largest first."""
        if len(self.questions) <= most:
            return list(range(len(self.questions)))
        places: list[int] = np.argsort(-np.array(self._estimates()), kind="stable")[:most].tolist()
        return places

    def _left_out(self) -> list[str]:
        left = len(self.questions) - MOST_LINES
        how = Either("frame()", "--json")
        return [f"  and {left:,} more with smaller errors; {how} lists all"] if left > 0 else []

    def _promising(self) -> Promising | None:
        """Return what the error may promise; None where there is no error to speak of."""
        return None

    def promises(self) -> list[str]:
        """Say what a small error promises, where it does, and what not, and what to keep in mind."""
        return [*self.described.said(self._promising()), *(f"Note: {note}" for note in self.notes)]


class _MeasuredQuestions(OfQuestions):
    """What results on several questions share whose parts are measured on all rows."""

    _error: ClassVar[str]  # the field of a part that holds its Cutoff error
    _words: ClassVar = {"kind": KINDS}

    def _estimates(self) -> tuple[float, ...]:
        return tuple(getattr(each, self._error) for each in self._all())

    def _promising(self) -> Promising:
        return CUTOFF_OF_ROWS

    def _table_of(self, names: Sequence[str]) -> dict[str, list[Any]]:
        """Return a column for the questions and one for each of several numbers of the parts."""
        return {
            "question": list(self.questions),
            **{name: [getattr(each, name) for each in self._all()] for name in names},
        }


@dataclass(frozen=True)
class QuestionMeasures(_MeasuredQuestions, Result):
    """Every calibration measure of each question.

    Errors are shares of all rows, whatever a question is about.

    Attributes
    ----------
    kind : str
        What the questions are: "classwise", "top_label", "pairs", "subsets", or another family of columns.
    questions : tuple
        What tells them apart.
    measures : tuple of Measures
        Per question.
    notes : tuple of str
        What to keep in mind about all of them.
    """

    kind: str
    questions: tuple[Label, ...]
    measures: tuple[Measures, ...]
    notes: tuple[str, ...] = ()

    _parts: ClassVar = "measures"
    _error: ClassVar = "cutoff"

    def frame(self, backend: Any = None) -> Any:
        """Return one row per question, with a column for each number of the table of measures."""
        columns = self._table_of(("rows", "mean_forecast", "mean_outcome"))
        tables = [{name: value for name, value, _ in each.table()} for each in self.measures]
        for name in dict.fromkeys(name for table in tables for name in table):
            columns[name] = [table.get(name) for table in tables]
        return self._framed(columns, backend)

    def __str__(self) -> str:
        lines = [
            (str(self.questions[place]), *(f"{getattr(self.measures[place], name):.4f}" for name in _SHOWN))
            for place in self.shown_places()
        ]
        finding = (
            f"The largest Cutoff error {self.described.every} is {measured(self.estimate)}, for "
            f"{self.named_question(self.worst)} ({self._count_said()}, {counted(self.measures[0].rows, 'row')})."
        )
        table = in_columns((self.described.noun, *_SHOWN), lines)
        return "\n".join([finding, table, *self._left_out(), *self.promises()])

    __repr__ = __str__


@dataclass(frozen=True)
class QuestionWorstIntervals(_MeasuredQuestions, Result):
    """The worst interval of forecasts of each question.

    Attributes
    ----------
    kind : str
        What the questions are.
    questions : tuple
        What tells them apart.
    intervals : tuple of WorstInterval
        Per question.
    notes : tuple of str
        What to keep in mind about all of them.
    """

    kind: str
    questions: tuple[Label, ...]
    intervals: tuple[WorstInterval, ...]
    notes: tuple[str, ...] = ()

    _parts: ClassVar = "intervals"
    _error: ClassVar = "error"

    def frame(self, backend: Any = None) -> Any:
        """Return one row per question."""
        names = ("low", "high", "direction", "error", "rows", "share", "mean_forecast", "mean_outcome", "chance")
        return self._framed(self._table_of(names), backend)

    def __str__(self) -> str:
        worst = self[self.worst]
        return "\n".join(
            [f"Worst for {self.named_question(self.worst)}, of {self._count_said()}. {worst}", *self.promises()]
        )

    __repr__ = __str__
