"""Several classes: labels and probabilities become questions, each an ordinary column.

With p the probabilities of a row, Y its class and t its top label, the one with the largest probability (of equal ones
the label that sorts first): *confidence* asks for 1{Y = t} with forecast p_t; *classwise* for 1{Y = k} with p_k, for
every class k; *top_label* is confidence on the rows whose top label is k; *pairs* ask for (1 + 1{Y = j} - 1{Y = k}) / 2
with (1 + p_j - p_k) / 2; *subsets* ask for 1{Y in S} with the sum of p over S.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.threads import in_threads
from calibrant.core.types import BoolArray, FloatArray, IntArray, Label
from calibrant.core.voices import Argument, Option, Phrase
from calibrant.core.words import measured, printable
from calibrant.rows.arrays import as_array
from calibrant.rows.checks import (
    Observations,
    check_choice,
    check_flag,
    check_same_index,
    check_weights,
    label_places,
    plain_label,
)
from calibrant.rows.labels import listed_labels
from calibrant.rows.matrices import (
    Largest,
    check_indicators,
    check_matrix,
    check_shares,
    check_sums,
    column_names,
    first_largest,
    shape_of,
)
from calibrant.rows.questions import ClassLaw, Questions

SingleAsked = Literal["confidence"]
FamilyAsked = Literal["classwise", "top_label", "pairs", "subsets"]
QuestionsAsked = SingleAsked | FamilyAsked
QUESTIONS: tuple[str, ...] = (*get_args(SingleAsked), *get_args(FamilyAsked))
"""What users may ask of several classes."""

DEFAULT = "confidence"
LABELS = "multilabel"
"""The kind of questions about labels of which a row may have several."""

MOST_SUBSET_CLASSES = 12
"""Of more classes there are too many subsets to ask about each."""

MOST_PAIRS = 5000
"""Of more than a hundred classes there are too many pairs."""

_MANY = 1 << 14  # rows among which all classes are likely to be
_SMALL = 0.05  # a class that is rarer than this has a small error whatever is forecast within reason

OutcomeArray = npt.NDArray[np.uint8] | FloatArray


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Checked forecasts of several classes, and the class of each row.

    Attributes
    ----------
    y_prob : array of shape (n, K)
        As it was given; columns are widened to float64 one at a time.
    classes : tuple
        The label of each column.
    places : array of shape (n,)
        The column of the class of each row.
    sample_weight : array of shape (n,) or None
    named : bool
        Whether somebody said which column is which class; otherwise columns are in the sorted order of the labels.
    largest : pair of arrays of shape (n,), or None
        The first column of the largest probability of each row, and that probability, where checking found them.
    """

    y_prob: npt.NDArray[Any]
    classes: tuple[Label, ...]
    places: IntArray
    sample_weight: FloatArray | None
    named: bool
    largest: Largest | None = None

    @property
    def count(self) -> int:
        """How many classes there are."""
        return len(self.classes)

    @property
    def top(self) -> IntArray:
        """The column of the largest probability of each row; of equal ones that of the label that sorts first."""
        return self._top[0]

    @cached_property
    def _top(self) -> tuple[IntArray, FloatArray]:
        """The column of the largest probability of each row, and that probability."""
        rows, order = self.y_prob.shape[0], sorted_places(self.classes)
        in_order = order == list(range(self.count))
        if in_order and self.largest is not None:
            return self.largest
        found = first_largest(self.y_prob) if in_order else None
        if found is not None:
            return found[0]
        halves = [self.y_prob[: rows // 2], self.y_prob[rows // 2 :]]
        parts = in_threads(_first_largest if in_order else partial(_largest_in, order), halves, rows=rows)
        return np.concatenate([top for top, _ in parts]), np.concatenate([best for _, best in parts])

    @cached_property
    def _counts(self) -> IntArray:
        """How many rows each class has."""
        return np.bincount(self.places, minlength=self.count)

    def of_class(self, place: int) -> Observations:
        """Return the question whether a row is of one class."""
        return self._column(self.places == place, self._forecast(place))

    def of_top(self, place: int = 0) -> Observations:
        """Return the question whether the top label is right, of which there is one."""
        del place
        top, best = self._top
        return self._column(self.places == top, best)

    def of_top_label(self, place: int) -> Observations:
        """Return the question whether the top label is right where it is one class, on all other rows 0 and 0."""
        mask = self.top == place
        return self._column(mask & (self.places == place), np.where(mask, self.y_prob[:, place], 0.0))

    def of_pair(self, one: int, other: int) -> Observations:
        """Return the question which of two classes it is, as far as it is one of them."""
        outcome = (1.0 + (self.places == one) - (self.places == other)) / 2.0
        forecast = (1.0 + self._forecast(one) - self._forecast(other)) / 2.0
        return Observations(outcome, forecast, self.sample_weight, bool(np.isin(outcome, (0.0, 1.0)).all()))

    def of_subset(self, places: Sequence[int]) -> Observations:
        """Return the question whether a row is of one of several classes."""
        forecast = self._forecast(places[0])
        held = self.places == places[0]
        for place in places[1:]:
            forecast = forecast + self._forecast(place)
            held |= self.places == place
        return self._column(held, np.minimum(forecast, 1.0))

    def _forecast(self, place: int) -> FloatArray:
        return np.ascontiguousarray(self.y_prob[:, place], dtype=np.float64)

    def _column(self, held: BoolArray, forecast: FloatArray) -> Observations:
        return Observations(held.view(np.uint8), forecast, self.sample_weight, True)

    def notes(self) -> tuple[str, ...]:
        """Return how columns and classes were brought together, and which classes have no rows."""
        found: list[str] = []
        if not self.named:
            found.append(
                Phrase(
                    "the columns of {prob} were taken for the classes in sorted order: {listed}",
                    code="sorted_classes",
                    prob=Argument("y_prob"),
                    listed=listed_labels(self.classes),
                )
            )
        seen = np.bincount(self.places[:_MANY], minlength=self.count)
        found += empty_classes(self.classes, seen if seen.all() else self._counts)
        return tuple(found)

    def smallness(self) -> tuple[str, ...]:
        """Say where classes are so many that their single errors must be small."""
        most = self._counts / self.places.size
        if float(np.median(most)) <= _SMALL:
            most = np.maximum(most, self.y_prob.mean(axis=0, dtype=np.float64))
        return small_classes(most)

    def family(self, kind: str) -> Questions:
        """Return the questions of a kind."""
        return _FAMILIES[kind](self)

    def questions(
        self,
        kind: str,
        labels: Sequence[Label],
        make: Callable[[int], Observations],
        outcome: Callable[[int, npt.NDArray[Any]], npt.NDArray[Any]],
        more: tuple[str, ...] = (),
    ) -> Questions:
        """Return a family of questions, with what calibrated forecasts say of all of them."""
        law = ClassLaw(self.y_prob, outcome, self.sample_weight is None)
        return Questions(kind, tuple(labels), self.places.size, make, notes=(*self.notes(), *more), law=law)


def empty_classes(classes: Sequence[Label], counts: npt.NDArray[Any]) -> tuple[str, ...]:
    """Say which classes have no rows."""
    empty = [classes[place] for place in np.flatnonzero(counts == 0).tolist()]
    if not empty:
        return ()
    return (
        Phrase(
            "{count:,} {verb} no rows: {listed}",
            code="classes_without_rows",
            count=len(empty),
            verb="class has" if len(empty) == 1 else "classes have",
            listed=listed_labels(empty),
        ),
    )


def small_classes(most: FloatArray) -> tuple[str, ...]:
    """Say where classes are so many that their single errors must be small, from the most that each can be."""
    usual = float(np.median(most))
    if usual > _SMALL:
        return ()
    return (
        Phrase(
            "the error of a class is at most its mean forecast or its frequency, whichever is larger: for half of "
            "these {count:,} classes that is at most {usual}, so small errors of single classes say little",
            code="many_classes",
            count=most.size,
            usual=measured(usual, 4),
        ),
    )


def never_on_top(never: int, count: int) -> tuple[str, ...]:
    """Say how many classes are the top label of no row."""
    said = "{never:,} of the {count:,} classes are the top label of no row, so that nothing can be off there"
    return (Phrase(said, code="never_on_top", never=never, count=count),) if never else ()


def _first_largest(y_prob: npt.NDArray[Any]) -> tuple[IntArray, FloatArray]:
    """Return the first column of the largest probability of each row, and that probability."""
    top = np.argmax(y_prob, axis=1)
    return top, y_prob[np.arange(top.size), top].astype(np.float64, copy=False)


def _largest_in(order: list[int], y_prob: npt.NDArray[Any]) -> tuple[IntArray, FloatArray]:
    """Return the same where columns come in another order."""
    best = y_prob[:, order[0]].astype(np.float64)
    top = np.full(best.size, order[0])
    for place in order[1:]:
        above = y_prob[:, place] > best
        top[above] = place
        np.copyto(best, y_prob[:, place], where=above)
    return top, best


def _confidence(rows: ClassRows) -> Questions:
    found = rows.questions(
        "confidence", ("confidence",), rows.of_top, lambda _, drawn: drawn == rows.top[:, np.newaxis]
    )
    return replace(found, single=True)


def _classwise(rows: ClassRows) -> Questions:
    return rows.questions(
        "classwise", rows.classes, rows.of_class, lambda place, drawn: drawn == place, rows.smallness()
    )


def _top_label(rows: ClassRows) -> Questions:
    more = never_on_top(rows.count - np.unique(rows.top).size, rows.count)

    def outcome(place: int, drawn: npt.NDArray[Any]) -> npt.NDArray[Any]:
        held: npt.NDArray[Any] = (drawn == place) & (rows.top == place)[:, np.newaxis]
        return held

    found = rows.questions("top_label", rows.classes, rows.of_top_label, outcome, more)
    return replace(found, inside=lambda place: rows.top == place)


def _pairs(rows: ClassRows) -> Questions:
    pairs = pairs_of(rows.count)

    def outcome(place: int, drawn: npt.NDArray[Any]) -> npt.NDArray[Any]:
        one, other = pairs[place]
        half: npt.NDArray[Any] = (1.0 + (drawn == one) - (drawn == other)) / 2.0
        return half

    return rows.questions("pairs", pair_labels(rows.classes), lambda place: rows.of_pair(*pairs[place]), outcome)


def _subsets(rows: ClassRows) -> Questions:
    chosen = subsets_of(rows.count)

    def outcome(place: int, drawn: npt.NDArray[Any]) -> npt.NDArray[Any]:
        members = np.zeros(rows.count, dtype=np.bool_)
        members[list(chosen[place])] = True
        held: npt.NDArray[Any] = members[drawn]
        return held

    return rows.questions("subsets", subset_labels(rows.classes), lambda place: rows.of_subset(chosen[place]), outcome)


_FAMILIES: Mapping[str, Callable[[ClassRows], Questions]] = {
    "confidence": _confidence,
    "classwise": _classwise,
    "top_label": _top_label,
    "pairs": _pairs,
    "subsets": _subsets,
}


def pairs_of(count: int) -> list[tuple[int, int]]:
    """Return every two classes, if these are not too many."""
    pairs = list(combinations(range(count), 2))
    if len(pairs) > MOST_PAIRS:
        raise InputError(
            Phrase(
                "{pairs} of {count:,} classes are {number:,} questions",
                pairs=Option("questions", "pairs"),
                number=len(pairs),
                count=count,
            ),
            remedy=Phrase("ask for {classwise}", classwise=Option("questions", "classwise")),
        )
    return pairs


def pair_labels(classes: Sequence[Label]) -> list[str]:
    """Return what tells pairs of classes apart."""
    names = [printable(each) for each in classes]
    return [f"{names[one]} against {names[other]}" for one, other in pairs_of(len(classes))]


def subset_labels(classes: Sequence[Label]) -> list[str]:
    """Return what tells subsets of the classes apart."""
    return [" or ".join(printable(classes[place]) for place in places) for places in subsets_of(len(classes))]


def subsets_of(count: int) -> list[tuple[int, ...]]:
    """Return every division of the classes into two sides, by its smaller side, or the one without the first class.

    Examples
    --------
    >>> subsets_of(2), subsets_of(3), len(subsets_of(12))
    ([(1,)], [(0,), (1,), (2,)], 2047)
    """
    if count > MOST_SUBSET_CLASSES:
        raise InputError(
            Phrase(
                "{subsets} needs at most {most} classes, got {count:,}",
                subsets=Option("questions", "subsets"),
                most=MOST_SUBSET_CLASSES,
                count=count,
            ),
            remedy=Phrase("ask for {classwise}", classwise=Option("questions", "classwise")),
        )
    found: list[tuple[int, ...]] = []
    for size in range(1, count // 2 + 1):
        found.extend(places for places in combinations(range(count), size) if 2 * size < count or places[0] > 0)
    return found


def class_questions(
    y_true: Any,
    y_prob: Any,
    *,
    classes: Any = None,
    questions: str | None = None,
    multilabel: bool = False,
    sample_weight: Any = None,
) -> Questions:
    """Return the questions that were asked of forecasts of several classes.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The class of each row; with ``multilabel`` of shape (n, K), whether the row has each of the labels.
    y_prob : array-like of shape (n, K)
        A probability per class; rows add up to 1 within `SUM_TOLERANCE`, unless ``multilabel``.
    classes : array-like of shape (K,), optional
        The label of each column; by default a frame's column names, or the sorted labels in ``y_true``.
    questions : str, optional
        One of `QUESTIONS`; "confidence" by default.
    multilabel : bool
        Whether a row may have several labels, or none.
    sample_weight : array-like of shape (n,), optional
        Nonnegative weights.
    """
    kind = check_choice(DEFAULT if questions is None else questions, "questions", QUESTIONS)
    if check_flag(multilabel, "multilabel"):
        return _label_questions(y_true, y_prob, classes, questions, sample_weight)
    return check_classes_of(y_true, y_prob, classes=classes, sample_weight=sample_weight).family(kind)


def check_classes_of(
    y_true: Any, y_prob: Any, *, classes: Any = None, sample_weight: Any = None, by: Any = None, cluster: Any = None
) -> ClassRows:
    """Check forecasts of several classes, of which each row has one; raise an `InputError` that says what to do."""
    forecasts, largest = check_shares(y_prob, "y_prob")
    rows, count = forecasts.shape
    if len(shape_of(y_true)) == 2:
        one_column = shape_of(y_true)[1] == 1
        raise InputError(
            f"has shape {shape_of(y_true)}, not one class per row",
            argument="y_true",
            remedy="pass its one column, as numpy.ravel(y_true)"
            if one_column
            else Phrase(
                "pass labels, for indicator columns y_true.argmax(axis=1), or {multilabel} if a row may have several",
                multilabel=Option("multilabel", True),
            ),
        )
    if largest is None:
        check_sums(forecasts)
    weights = check_weights(sample_weight, rows)
    check_same_index(y_true=y_true, y_prob=y_prob, sample_weight=sample_weight, by=by, cluster=cluster)
    if as_array(y_true, "y_true").size != rows:
        raise InputError(
            Phrase(
                "has {size:,} values and {other} has {count:,} rows",
                size=as_array(y_true, "y_true").size,
                other=Argument("y_prob"),
                count=rows,
            ),
            argument="y_true",
            remedy="pass one class per row",
        )
    held, places = label_places(y_true, "y_true", rows)
    labels, named = _labels_of_columns(held, y_prob, classes, count)
    column = _column_of(labels)
    unknown = [label for label in held.tolist() if label not in column]
    if unknown:
        position = int(np.flatnonzero(places == held.tolist().index(unknown[0]))[0])
        raise InputError(
            f"is {plain_label(unknown[0])!r}, which is not one of the classes {listed_labels(labels)}",
            argument="y_true",
            position=position,
            value=unknown[0],
            remedy=Phrase(
                "pass {classes} with the label of each column of {prob}",
                classes=Option("classes"),
                prob=Argument("y_prob"),
            ),
        )
    known = [column[label] for label in held.tolist()]
    if known != list(range(len(known))):
        places = np.array(known, dtype=np.int64)[places]
    return ClassRows(forecasts, tuple(map(plain_label, labels)), places, weights, named, largest)


def _labels_of_columns(held: npt.NDArray[Any], y_prob: Any, classes: Any, count: int) -> tuple[list[Any], bool]:
    """Return the label of each column, and whether somebody said so."""
    if classes is not None:
        labels = as_array(list(classes) if isinstance(classes, range) else classes, "classes").tolist()
        _check_distinct(labels, "classes")
        if len(labels) != count:
            raise InputError(
                Phrase(
                    "has {size:,} labels and {prob} has {count:,} columns",
                    size=len(labels),
                    prob=Argument("y_prob"),
                    count=count,
                ),
                argument="classes",
                value=len(labels),
                remedy="pass one label per column, in the order of the columns",
            )
        return labels, True
    names = column_names(y_prob)
    if names is not None:
        _check_distinct(names, "y_prob")
        return names, True
    labels = held.tolist()
    if count == 2 and set(labels) <= {0, 1}:
        return list(map(type(labels[0]), (0, 1))), False
    if len(labels) != count:
        more = "more" if len(labels) > count else "fewer"
        raise InputError(
            Phrase(
                "has {count:,} columns and {outcomes} holds {size:,} labels ({listed}), {more} than columns",
                count=count,
                outcomes=Argument("y_true"),
                size=len(labels),
                listed=listed_labels([plain_label(label) for label in labels]),
                more=more,
            ),
            argument="y_prob",
            remedy=Phrase(
                "pass a column for every class{named}",
                named=Phrase(
                    ", or {classes} with the label of each column if some classes have no rows",
                    classes=Option("classes"),
                )
                if len(labels) < count
                else "",
            ),
        )
    return labels, False


def _check_distinct(labels: list[Any], name: str) -> None:
    seen: set[Any] = set()
    for position, label in enumerate(labels):
        if label in seen:
            what = "is" if name == "classes" else "has a column named"
            raise InputError(
                f"{what} {label!r} twice",
                argument=name,
                position=position if name == "classes" else None,
                value=label,
                remedy="give each class a label of its own",
            )
        seen.add(label)


def _column_of(labels: list[Any]) -> dict[Any, int]:
    return {label: place for place, label in enumerate(labels)}


def _label_questions(y_true: Any, y_prob: Any, classes: Any, questions: str | None, sample_weight: Any) -> Questions:
    """Return one question for each of several labels, of which a row may have any number."""
    if questions not in (None, "classwise"):
        raise InputError(
            Phrase("{asked} needs rows of one class each", asked=Option("questions", questions)),
            remedy=Phrase(
                "leave out {multilabel}, or ask for {classwise}",
                multilabel=Option("multilabel", True),
                classwise=Option("questions", "classwise"),
            ),
        )
    forecasts = check_matrix(y_prob, "y_prob")
    outcomes = check_indicators(y_true, forecasts.shape)
    rows, count = forecasts.shape
    weights = check_weights(sample_weight, rows)
    check_same_index(y_true=y_true, y_prob=y_prob, sample_weight=sample_weight)
    labels, _ = _labels_of_columns(np.arange(count), y_prob, classes, count)
    other = column_names(y_true)
    if other is not None and column_names(y_prob) is not None and other != labels:
        raise InputError(
            Phrase(
                "has the columns {one} and {prob} {two}",
                one=listed_labels(other),
                prob=Argument("y_prob"),
                two=listed_labels(labels),
            ),
            argument="y_true",
            remedy="bring both into one order",
        )

    def column(place: int) -> Observations:
        held = np.ascontiguousarray(outcomes[:, place], dtype=np.float64)
        forecast = np.ascontiguousarray(forecasts[:, place], dtype=np.float64)
        return Observations(held, forecast, weights, False).alone()

    return Questions(LABELS, tuple(map(plain_label, labels)), rows, column)


def sorted_places(labels: tuple[Label, ...]) -> list[int]:
    """Return the columns in the sorted order of their labels."""

    def label_of(place: int) -> Any:
        return labels[place]

    try:
        return sorted(range(len(labels)), key=label_of)
    except TypeError:  # labels that cannot be compared stay in their order
        return list(range(len(labels)))
