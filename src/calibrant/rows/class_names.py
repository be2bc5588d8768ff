"""Which column of forecasts is for which label of the outcomes: names of columns and labels are brought together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.types import Label
from calibrant.core.voices import Argument, Option, Phrase
from calibrant.rows.labels import listed_labels

_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class NamedClasses:
    """The class of each column, and what the labels of the outcomes stand for.

    Attributes
    ----------
    classes : tuple
        The label of each column of forecasts, in their order.
    held : mapping
        For every label of the outcomes, as it was found, the label that it stands for.
    """

    classes: tuple[Label, ...]
    held: Mapping[Any, Label]

    def ways(self, place: int) -> tuple[Any, ...]:
        """Return the ways in which the outcomes write the class of a column."""
        return tuple(found for found, label in self.held.items() if label == self.classes[place])


def name_classes(
    columns: Sequence[str], labels: Sequence[Any], classes: Sequence[Any] | None = None, *, written: bool = False
) -> NamedClasses:
    """Say which column of forecasts is for which label.

    Columns are named after the labels, as they are or behind a beginning that all columns share: p_cat and p_dog are
    for cat and dog. A column may be for a label that no row has.

    Parameters
    ----------
    columns : sequence of str
        The names of the columns.
    labels : sequence
        The different labels of the outcomes.
    classes : sequence, optional
        The label of each column, where somebody said so.
    written : bool
        Whether labels are texts that may stand for numbers, or for true and false, as in a text file.

    Examples
    --------
    >>> name_classes(["p_cat", "p_dog"], ["dog", "cat"]).classes
    ('cat', 'dog')
    >>> name_classes(["p1", "p10", "p2"], ["1", "2"], written=True).classes
    (1, 10, 2)
    """
    given = None if classes is None else list(classes)
    if given is not None and len(given) != len(columns):
        raise InputError(
            Phrase(
                "has {size:,} labels and {prob} has {count:,} columns",
                size=len(given),
                prob=Argument("y_prob"),
                count=len(columns),
            ),
            argument="classes",
            value=len(given),
            remedy="pass one label per column, in the order of the columns",
        )
    for read in _readings(labels, written=written):
        held = {label: meant for label in labels if (meant := read(label)) is not None}
        for names in _candidates(columns) if given is None else [given]:
            found = [meant for name in names if (meant := read(name)) is not None]
            if len(set(found)) < len(names):
                continue
            if given is not None or set(held.values()) <= set(found):
                return NamedClasses(tuple(found), held)
    if given is not None:
        twice = next(each for place, each in enumerate(given) if each in given[:place])
        raise InputError(
            f"is {twice!r} twice", argument="classes", value=twice, remedy="give each class a label of its own"
        )
    raise _unmatched(columns, labels)


def _readings(labels: Sequence[Any], *, written: bool) -> list[Callable[[Any], Label | None]]:
    """Return what labels may be read as, the most telling first: numbers or true and false, if all are; or texts."""
    likely: list[Callable[[Any], Label | None]] = [_number, _truth, str]
    texts = [isinstance(label, str) for label in labels]
    if any(texts) and not written:
        return [str]
    return [read for read in likely if all(read(label) is not None for label in labels)]


def _number(label: Any) -> Label | None:
    if isinstance(label, bool):
        return None
    try:
        number = float(label)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number


def _truth(label: Any) -> Label | None:
    return _TRUTH.get(str(label).strip().lower())


def _candidates(columns: Sequence[str]) -> list[list[str]]:
    """Return what is left of the names of columns without a beginning that all share, longer names first."""
    found = [list(columns)]
    while all(found[-1]) and len({name[0] for name in found[-1]}) == 1:
        found.append([name[1:] for name in found[-1]])
    return [names for names in found if all(names)]


def _unmatched(columns: Sequence[str], labels: Sequence[Any]) -> InputError:
    known = {str(name) for names in _candidates(columns) for name in names}
    unknown = [label for label in labels if str(label) not in known] or list(labels)
    return InputError(
        Phrase(
            "holds {label!r}, and no column of forecasts is named after it ({listed})",
            label=unknown[0],
            listed=listed_labels(columns),
        ),
        argument="y_true",
        value=unknown[0],
        remedy=Phrase(
            "name columns after the labels, if you like behind a beginning that all share, as p_cat and p_dog; or pass "
            "{classes} with the label of each column",
            classes=Option("classes"),
        ),
    )
