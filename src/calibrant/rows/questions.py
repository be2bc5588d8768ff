"""Questions: what several classes, many groups and real outcomes have in common is a family of columns.

A question is a column: an outcome and a forecast in [0, 1] for each row, and a mask that says which rows it is about.
Its error is that of the masked residuals, a share of all rows. A row that the mask leaves out has forecast 0 and
outcome 0: its residual is 0, so that it adds nothing to any interval, score or bet, and still counts among the rows. A
masked question is an ordinary column, then, and every measure and every limit for a population applies as it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt

from calibrant.core.types import BoolArray, Label
from calibrant.rows.checks import Observations

Answer = TypeVar("Answer")
Several = TypeVar("Several")


class Promising(NamedTuple):
    """An error as far as it promises something to whoever acts on forecasts.

    Attributes
    ----------
    named : str
        What it is called in a sentence.
    intervals : bool
        Whether it bounds how far events and forecasts differ on every interval of forecasts.
    savings : bool
        Whether it bounds what any re-drawn threshold saves.
    where : str
        At which thresholds it does, after a sentence; empty for all of them.
    """

    named: str = "this error"
    intervals: bool = False
    savings: bool = False
    where: str = ""


CUTOFF_OF_ROWS = Promising("the Cutoff error", intervals=True, savings=True)
"""The Cutoff error, where others stand beside it."""


@dataclass(frozen=True)
class QuestionKind:
    """What people are told of a kind of questions.

    Attributes
    ----------
    name : str
        What users write.
    noun, plural : str
        What one of the questions is about, and what several are.
    every : str
        Of what a joint verdict speaks, after the name of the error: "of every class against the rest".
    promise : str
        What small errors mean for whoever acts on the forecasts, as a sentence with places for {error} and {where}.
    silence : str
        What they do not mean, as a sentence.
    asked : str
        What was asked, as a sentence, where that is not plain.
    by_intervals : bool
        Whether the promise needs the error of every interval of forecasts. It does where it counts events rather than
        what they cost; and where a mask leaves rows out, which have forecast 0 then, so that who acts on a group's
        forecasts of 0 would act on them too.
    """

    name: str
    noun: str
    plural: str
    every: str
    promise: str = ""
    silence: str = ""
    asked: str = ""
    by_intervals: bool = False

    def of_every(self, relative_to: str) -> str:
        """Say of what a joint verdict speaks; of shares of events it is the same whichever rows they were shares of."""
        return self.every if relative_to == "rows" else self.every.partition(", as a share of")[0]

    def said(self, error: Promising | None = None) -> tuple[str, ...]:
        """Return what was asked, what a small error means if it means anything, and what it does not."""
        holds = error is not None and (error.intervals if self.by_intervals else error.savings)
        promise = self.promise.format(error=error.named, where=error.where) if error is not None and holds else ""
        words = " ".join(filter(None, (self.asked, promise, self.silence)))
        return (words,) if words else ()


_LISTED = (
    QuestionKind("event", "event", "events", "of the forecasts of the event"),
    QuestionKind(
        "multilabel",
        "label",
        "labels",
        "of every label",
        "Whoever acts when the probability of one label reaches a threshold loses at most {error} per case to any "
        "re-drawn threshold{where}.",
        "This says nothing of how labels go together.",
    ),
    QuestionKind(
        "confidence",
        "confidence",
        "confidences",
        "of the confidence in the top label",
        "Whoever accepts the top label from some confidence on gets as many of them right as forecast, up to {error} "
        "as a share of all rows.",
        "This says nothing of one label alone, nor of the labels below the top one.",
        asked="Asked was the confidence in the top label, the largest probability of each row.",
        by_intervals=True,
    ),
    QuestionKind(
        "classwise",
        "class",
        "classes",
        "of every class against the rest",
        "Whoever acts when the probability of one class reaches a threshold loses at most {error} per case to any "
        "re-drawn threshold{where}.",
        "This says nothing of the top label, nor of two classes taken together.",
    ),
    QuestionKind(
        "top_label",
        "top label",
        "top labels",
        "of the confidence in every top label",
        "Whoever accepts a label from a threshold of its own on gets as many of them right as forecast, up to {error} "
        "as a share of all rows.",
        "This says nothing of the labels below the top one.",
        by_intervals=True,
    ),
    QuestionKind(
        "pairs",
        "pair",
        "pairs",
        "of every class compared with every other",
        "Whoever chooses between two classes by the difference of their probabilities loses at most twice {error} "
        "per case to any re-drawn threshold{where}.",
        "This says nothing of choices among three classes or more.",
    ),
    QuestionKind(
        "subsets",
        "subset",
        "subsets",
        "of every yes-or-no question about the class",
        "Whoever asks whether the class is one of several, whichever they are, and acts from a threshold on, loses at "
        "most {error} per case to any re-drawn threshold{where}.",
        "This says nothing of choices among more than two actions.",
    ),
    QuestionKind(
        "groups",
        "group",
        "groups",
        "of every group, as a share of all rows,",
        "No non-decreasing recalibration of one group alone saves more than {error} per case, counted over all cases.",
        "A group cannot be off by more than its share of the rows, so that this says little of small groups.",
        by_intervals=True,
    ),
    QuestionKind(
        "within_groups",
        "group",
        "groups",
        "of every group, as a share of its own rows,",
        "Whoever acts on the forecasts of one group loses at most {error} per case of the group to any re-drawn "
        "threshold{where}.",
        "This says nothing of groups that were not listed.",
    ),
)

KINDS: dict[str, QuestionKind] = {kind.name: kind for kind in _LISTED}
"""Kinds of questions by name; whoever has another kind adds it."""


@dataclass(frozen=True, eq=False)
class ClassLaw:
    """What calibrated forecasts of classes say of all questions at once.

    Attributes
    ----------
    y_prob : array of shape (n, K)
        The probabilities of each row's classes.
    outcome : callable
        Returns the outcomes of the question at a place for several sets of classes, given as places of columns: a line
        per row, a column per set.
    unit_weights : bool
        Whether every row has weight 1.
    """

    y_prob: npt.NDArray[Any]
    outcome: Callable[[int, npt.NDArray[Any]], npt.NDArray[Any]]
    unit_weights: bool


@dataclass(frozen=True, eq=False)
class Questions:
    """A family of columns, each made when it is asked for, so that never more than one is held.

    Attributes
    ----------
    kind : str
        What the questions are; its words are in `KINDS`.
    labels : tuple
        What tells the questions apart.
    row_count : int
        Rows that the questions are about, those of weight zero and those that masks leave out among them.
    make : callable
        Returns the column of a place, as checked rows, or as a source of rows that stay where they are.
    disjoint : bool
        Whether each question has rows of its own, which are in no other column, so that limits are independent given
        the numbers of rows. Masks do not make questions disjoint: their columns share all rows.
    single : bool
        Whether there is one question by its nature, answered as an ordinary column is.
    notes : tuple of str
        What to keep in mind about all of them.
    law : ClassLaw or None
        What calibrated forecasts say of all questions at once, where that is known.
    inside : callable or None
        Returns which rows the question of a place is about, where masks leave some out.
    members : tuple of int or None
        How many rows each question is about, where masks leave some out and people would want to know.

    Examples
    --------
    >>> rows = Observations(np.array([0, 1, 1], dtype=np.uint8), np.array([0.1, 0.5, 0.9]), None, True)
    >>> halves = Questions("groups", ("low", "high"), 3, lambda k: masked(rows, (rows.y_prob >= 0.5) == bool(k)))
    >>> [column.y_prob.tolist() for column in halves]
    [[0.1, 0.0, 0.0], [0.0, 0.5, 0.9]]
    """

    kind: str
    labels: tuple[Label, ...]
    row_count: int
    make: Callable[[int], Any]
    disjoint: bool = False
    single: bool = False
    notes: tuple[str, ...] = ()
    law: ClassLaw | None = None
    inside: Callable[[int], BoolArray] | None = None
    members: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def column(self, place: int) -> Any:
        """Return the outcomes and forecasts of one question."""
        return self.make(place)

    def answered(
        self,
        one: Callable[[Observations], Answer],
        many: Callable[[Self], Several],
        *,
        error: Promising | None = None,
    ) -> Answer | Several:
        """Return the answer to a single question, with what its error promises among its notes; or that of a family."""
        if not self.single:
            return many(self)
        answer: Any = one(self.column(0))
        notes = (*KINDS[self.kind].said(error), *self.notes)
        if not notes or not hasattr(answer, "notes"):
            return cast("Answer", answer)
        return cast("Answer", replace(answer, notes=(*answer.notes, *notes)))

    def own_rows(self, place: int) -> Observations:
        """Return the rows that one question is about, without those that its mask leaves out."""
        rows: Observations = self.make(place)
        return rows if self.inside is None else rows.take(np.flatnonzero(self.inside(place)))

    def __iter__(self) -> Iterator[Observations]:
        """Make one column after the other."""
        return map(self.make, range(len(self)))


class QuestionSource(ABC):
    """Rows that stay where they are, of which several questions are asked: stands in place of ``y_true``."""

    is_clustered: bool

    @abstractmethod
    def asked(self, questions: str | None = None) -> Questions:
        """Return the questions, each column of which is a source of rows; others than at first if these are named."""


def masked(rows: Observations, mask: BoolArray) -> Observations:
    """Return the column of a question about some of the rows: all others have forecast 0 and outcome 0."""
    outcome = np.where(mask, rows.y_true, rows.y_true.dtype.type(0))
    return rows.others(outcome, np.where(mask, rows.y_prob, 0.0), rows.sample_weight, rows.binary_outcomes)
