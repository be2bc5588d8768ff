"""Labels of outcomes, of which one is that of the event and all others are not."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import CalibrationWarning, InputError
from calibrant.core.types import IntArray
from calibrant.core.voices import Argument, Either, Option, Phrase

MOST_LABELS = 1000
"""Outcomes with more different labels are no classes."""

_COUNTED = np.typecodes["AllInteger"] + "efd"  # numbers of at most 64 bits
_EXACT = 2**53  # from which on float64 does not hold every whole number
_FEW_TIMES = 4  # whole numbers that span no more than so many times the rows are counted, not sorted
_CHUNK = 1 << 16
_WRITTEN = re.compile(r"\s*[+-]?\d{1,300}(\.\d*)?\s*", re.ASCII)


def reading_order(labels: Sequence[Any]) -> list[int]:
    """Return the places of labels in the order in which people look for them: texts of numbers as numbers are.

    Examples
    --------
    >>> reading_order(["1", "10", "2"]), reading_order(["1", "10", "2a"])
    ([0, 2, 1], [0, 1, 2])
    """
    places = list(range(len(labels)))
    if not all(isinstance(label, str) and _WRITTEN.fullmatch(label) for label in labels):
        return sorted(places, key=lambda place: labels[place])
    return sorted(places, key=lambda place: (float(labels[place]), labels[place]))


def check_pos_label(labels: list[Any], pos_label: Any, declared: Sequence[Any] = ()) -> None:
    """Refuse a label of the event that is none of the labels of the outcomes; of more than two, warn of the others.

    Where all rows are of one class, another label may be that of an event that did not happen, or a slip of the pen:
    it must be declared, by a categorical column, or be the other one of 0 and 1.
    """
    if len(labels) > 2:
        _check_many_labels(labels)
    if len(labels) >= 2 and not any(same_label(pos_label, label) for label in labels):
        raise InputError(
            Phrase("is {label!r}, which {outcomes} does not hold", label=pos_label, outcomes=Argument("y_true")),
            argument="pos_label",
            value=pos_label,
            remedy=f"its labels are {listed_labels(labels)}",
        )
    if len(labels) > 2:
        warnings.warn(against_the_rest(labels, pos_label), CalibrationWarning, stacklevel=2)
    same_kind = isinstance(pos_label, str) == isinstance(labels[0], str)
    if not same_kind:
        raise InputError(
            Phrase(
                "is {label!r} but the labels in {outcomes} are {known}",
                label=pos_label,
                outcomes=Argument("y_true"),
                known=listed_labels(labels),
            ),
            argument="pos_label",
            value=pos_label,
            remedy="pass the label itself",
        )
    known = [*labels, *declared, *((0, 1) if labels[0] in (0, 1) else ())]
    if not any(same_label(pos_label, label) for label in known):
        facts = {"label": pos_label, "outcomes": Argument("y_true"), "only": labels[0]}
        raise InputError(
            Phrase("is {label!r}, which {outcomes} does not hold: its only label is {only!r}", **facts),
            argument="pos_label",
            value=pos_label,
            remedy=Phrase(
                "if no row is an event, say so by outcomes of 0 and 1{how}",
                how=Either(f", as in y_true == {pos_label!r} in place of y_true", " in a column of their own"),
            ),
        )


def _check_many_labels(labels: list[Any]) -> None:
    """Refuse what is more likely a column of something else than labels of which one is the event."""
    fraction = next((label for label in labels if isinstance(label, float) and not label.is_integer()), None)
    if fraction is None and len(labels) <= MOST_LABELS:
        return
    what = f"numbers such as {fraction:g}" if fraction is not None else f"more than {MOST_LABELS:,} different labels"
    raise InputError(
        f"holds {what}, which are no classes",
        argument="y_true",
        remedy=Phrase("leave out {pos_label} if these are outcomes in [0, 1]", pos_label=Option("pos_label")),
    )


def against_the_rest(labels: Sequence[Any], pos_label: Any) -> Phrase:
    """Say that one of more than two labels is taken for the event, and all others for no event."""
    said = "{outcomes} holds {count} labels ({listed}): {label!r} counts as the event, all others as no event"
    event = next((label for label in labels if str(_whole(label)) == str(pos_label)), pos_label)
    facts = {"count": len(labels), "listed": listed_labels(labels), "label": _whole(event)}
    return Phrase(said, code="one_against_rest", outcomes=Argument("y_true"), **facts)


def by_number(text: str) -> list[int | str]:
    """Return by what texts sort as the numbers in them do: "day 2" before "day 10"."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", text)]


def check_order(labels: Sequence[Any], name: str) -> None:
    """Refuse sorted texts whose numbers are in another order, as in "day 10" before "day 2"."""
    texts = [label for label in labels if isinstance(label, str)]
    counted = list(map(by_number, texts))
    for place in range(1, len(counted)):
        if counted[place] < counted[place - 1]:
            raise InputError(
                f"holds texts, of which {texts[place - 1]!r} comes before {texts[place]!r}",
                argument=name,
                remedy="pass numbers or dates, whose order is that of time, such as 2 and 10 or '2026-01-02'",
            )


def same_label(pos_label: Any, label: Any) -> bool:
    """Whether two labels are one, whatever they are."""
    try:
        return bool(pos_label == label)
    except (TypeError, ValueError):  # arrays and pandas' NA have no truth value
        return False


def listed_labels(labels: Sequence[Any]) -> str:
    """List labels, the first ones where there are many."""
    shown = ", ".join(repr(_whole(label)) for label in labels[:5])
    return shown if len(labels) <= 5 else f"{shown}, ..."


def _whole(label: Any) -> Any:
    """Return a label of a whole number as one, and a string as one, however it was stored; a time stays one."""
    label = label.item() if isinstance(label, np.generic) and label.dtype.kind not in "mM" else label
    return int(label) if isinstance(label, float) and label.is_integer() else label


def counted_places(array: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], IntArray] | None:
    """Return distinct whole numbers in sorted order, and the place among them of each number of an array.

    They are counted, which is quicker than sorting them; None where they are too far apart, or not whole.

    Examples
    --------
    >>> labels, places = counted_places(np.array([3.0, 1.0, 3.0]))
    >>> labels.tolist(), places.tolist(), counted_places(np.array([0.5, 1.0]))
    ([1.0, 3.0], [1, 0, 1], None)
    """
    if array.size == 0 or array.dtype.char not in _COUNTED:
        return None
    low, high = array.min().item(), array.max().item()  # NaN, if any, comes out of both
    if not (high - low < _FEW_TIMES * array.size and max(-low, high) < _EXACT):
        return None
    first, floats = int(low), array.dtype.kind == "f"
    held, place = np.zeros(int(high) - first + 1, dtype=np.bool_), np.empty(array.size, dtype=np.int64)
    full = False
    for begin in range(0, array.size, _CHUNK):
        part, found = array[begin : begin + _CHUNK], place[begin : begin + _CHUNK]
        found[:] = part
        if floats and not _same_bits(found.astype(array.dtype), part):
            return None
        found -= first
        if not full:
            held[found] = True
            full = held.size <= _CHUNK and bool(held.all())
    labels = np.flatnonzero(held) + first
    return labels.astype(array.dtype) if floats else labels, place if held.all() else (np.cumsum(held) - 1)[place]


def _same_bits(whole: npt.NDArray[Any], given: npt.NDArray[Any]) -> bool:
    """Whether floats are the whole numbers that they were cut to, none of them -0.0, which is written otherwise."""
    bits = f"u{given.dtype.itemsize}"
    return np.array_equal(whole.view(bits), given.view(bits))
