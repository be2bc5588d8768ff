"""The section on several classes: the page is about the confidence in the top label, here every class has a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from calibrant.certificates.question_results import QuestionCertificates, QuestionIntervals
from calibrant.certificates.verdicts import certify, confidence_interval
from calibrant.core.types import ArrayLike
from calibrant.core.words import level_said, printable
from calibrant.reports.headlines import state_of
from calibrant.reports.questions import Question
from calibrant.reports.results import ModelSummary
from calibrant.rows.asked import asked_of_classes
from calibrant.rows.questions import KINDS

MOST_CLASSES = 30
"""Lines of the table; of more classes those with the largest errors."""

_SINGLE = "event"
_READ_AS = "Where this page speaks of an event, it is a right top label; the forecast is the confidence in it."


def split_classes(
    y_true: Any, y_prob: Any, classes: ArrayLike | None, given: Mapping[str, Any]
) -> tuple[dict[str, Any], bool]:
    """Return the rows of the one question that a page is about, and whether there are classes to list beside it."""
    if isinstance(y_true, Mapping) or isinstance(y_prob, Mapping):
        return {"y_true": y_true, "y_prob": y_prob, **given}, False
    family = asked_of_classes(y_true, y_prob, classes, None, False, **given)
    if family is None:
        return {"y_true": y_true, "y_prob": y_prob, **given}, False
    return {"y_true": family.column(0), "y_prob": None, **dict.fromkeys(given)}, family.kind != _SINGLE


def judge_classes(
    y_true: Any, y_prob: Any, classes: ArrayLike | None, question: Question, sample_weight: Any, cluster: Any
) -> QuestionCertificates | QuestionIntervals:
    """Judge every class against the rest, as the page judges the confidence."""
    asked: dict[str, Any] = {
        **question.asked(question.confidence_level),
        "classes": classes,
        "questions": "classwise",
        "sample_weight": sample_weight,
        "cluster": cluster,
    }
    found: Any
    if question.max_error is None:
        found = confidence_interval(y_true, y_prob, **asked)
    else:
        found = certify(y_true, y_prob, max_error=question.max_error, **asked)
    judged: QuestionCertificates | QuestionIntervals = found
    return judged


def view_classes(model: ModelSummary, scale: float, bar: Callable[..., Any]) -> dict[str, Any] | None:
    """Return what templates show of every class; None where there are none."""
    found = model.classes if model.classes is not None else model.class_limits
    if found is None:
        return None
    level, parts = level_said(found.confidence_level), [each for _, each in found.pairs()]
    places = found.shown_places(MOST_CLASSES)
    limit = found.max_error if isinstance(found, QuestionCertificates) else None
    verdicts = found.verdicts if isinstance(found, QuestionCertificates) else (None,) * len(parts)
    lines = [found.findings()[0]] if isinstance(found, QuestionCertificates) else []
    left = len(parts) - len(places)
    rows = {place: _rows_said(parts[place]) for place in places}
    return {
        "counted": any(said != "-" for said in rows.values()),
        "asked": " ".join([*KINDS["confidence"].said(), _READ_AS]),
        "lines": [
            *lines,
            f"Every class against the rest, with limits that hold for all classes together with {level} confidence. "
            "They are a question of their own, beside the one on top.",
        ],
        "remarks": [
            *(f"Caution: {caution}" for caution in getattr(found, "cautions", ())),
            *([f"{left:,} more classes have smaller errors."] if left else []),
            *found.promises(),
            "Pairs and sets of classes were not asked about.",
        ],
        "rows": [
            {
                "label": printable(found.questions[place]),
                "rows": rows[place],
                "verdict": verdicts[place],
                "state": state_of(parts[place]) if limit is not None else None,
                "bar": bar(parts[place], scale, limit),
            }
            for place in places
        ],
    }


def _rows_said(part: Any) -> str:
    """Say how many rows are of the class, where that is known and rows count alike."""
    rate = getattr(part, "event_rate", None)
    return "-" if rate is None or part.n_eff != part.rows else f"{round(part.rows * rate):,}"
