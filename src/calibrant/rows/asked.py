"""What an entry point is asked: questions about classes where forecasts have a column for each, else nothing new."""

from __future__ import annotations

from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.voices import Argument, Option, Phrase
from calibrant.rows.checks import Observations, check_flag, plain_label
from calibrant.rows.classes import check_classes_of, class_questions
from calibrant.rows.dimensions import are_on_a_grid
from calibrant.rows.given import refuse_more
from calibrant.rows.labels import listed_labels
from calibrant.rows.matrices import has_columns, shape_of
from calibrant.rows.questions import Questions, QuestionSource


def event_question(
    y_true: Any, y_prob: Any, *, classes: Any = None, pos_label: Any = None, sample_weight: Any = None, **others: Any
) -> Questions:
    """Return the one question of a binary model with a column for each of two classes: that of its event.

    The event is the class named by ``pos_label``, or else that of the second column.
    """
    rows = check_classes_of(y_true, y_prob, classes=classes, sample_weight=sample_weight, **others)
    if pos_label is not None and plain_label(pos_label) not in rows.classes:
        raise InputError(
            f"is {pos_label!r}, which is not a class",
            argument="pos_label",
            value=pos_label,
            remedy=f"the classes are {listed_labels(rows.classes)}",
        )
    event = 1 if pos_label is None else rows.classes.index(plain_label(pos_label))
    places = (event,)

    def column(place: int) -> Observations:
        return rows.of_class(places[place])

    return Questions("event", (rows.classes[event],), rows.places.size, column, single=True)


def asked_of_classes(
    y_true: Any,
    y_prob: Any,
    classes: Any,
    questions: str | None,
    multilabel: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> Questions | None:
    """Return what an entry point is asked about several classes; None where there is one column of forecasts.

    Of two classes, unless questions are named, it is the forecast of the event, so that y_prob and y_prob[:, 1] are
    one and the same; of more it is the confidence in the top label.
    """
    check_flag(multilabel, "multilabel")
    if isinstance(y_true, QuestionSource):
        refuse_more("source of rows", y_prob, sample_weight, pos_label)
        _refuse_beside_scan(classes=classes, multilabel=multilabel or None)
        return y_true.asked(questions)
    if are_on_a_grid(y_true, y_prob) or not are_classes(y_prob, multilabel):
        _refuse_without_classes(classes=classes, questions=questions, multilabel=multilabel or None)
        return None
    if questions is None and not multilabel and shape_of(y_prob)[1] == 2:
        return event_question(y_true, y_prob, classes=classes, pos_label=pos_label, sample_weight=sample_weight)
    if pos_label is not None:
        raise InputError(
            Phrase(
                "names one event, and {prob} has the columns of {count:,} classes",
                prob=Argument("y_prob"),
                count=shape_of(y_prob)[1],
            ),
            argument="pos_label",
            value=pos_label,
            remedy="leave it out, or pass the column of that class alone",
        )
    return class_questions(
        y_true, y_prob, classes=classes, questions=questions, multilabel=multilabel, sample_weight=sample_weight
    )


def without_groups(family: Questions, by: Any, cluster: Any = None) -> Questions:
    """Return several questions about all rows, if no groups, or clusters, of rows were named beside them."""
    for name, labels in (("by", by), ("cluster", cluster)):
        if labels is not None:
            raise InputError(
                "was given together with several questions about all rows",
                argument=name,
                remedy=Phrase("ask for {confidence}", confidence=Option("questions", "confidence")),
            )
    return family


def _refuse_beside_scan(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(
                "was given together with a source of rows",
                argument=name,
                remedy=f"name the columns of all classes, as scan(..., y_prob=[...], {name}=...)",
            )


def _refuse_without_classes(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(
                Phrase("was given, but {prob} has no column per class", prob=Argument("y_prob")),
                argument=name,
                remedy="pass probabilities of shape (rows, classes), or leave it out",
            )


def are_classes(y_prob: Any, multilabel: Any = False) -> bool:
    """Whether forecasts are those of several classes, or labels."""
    return has_columns(y_prob) or (multilabel is True and len(shape_of(y_prob)) == 2)
