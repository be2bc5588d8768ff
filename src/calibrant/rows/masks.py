"""Groups of rows that were fixed beforehand and may overlap, as a family of questions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.types import Label
from calibrant.core.voices import Either, Option, Phrase
from calibrant.core.words import printable
from calibrant.rows.checks import Observations, check_choice, check_weights
from calibrant.rows.features import Feature, check_features
from calibrant.rows.groups import naming_group
from calibrant.rows.questions import Questions, masked

Scale = Literal["mass", "group"]
SCALES: tuple[str, ...] = get_args(Scale)
"""What errors of groups are shares of: all rows, or the group's own."""

GROUP_KINDS = {"mass": "groups", "group": "within_groups"}
"""The kind of question that a scale makes."""

_MOST_LABELS = 1000
_NAMELESS = "group"  # a column that has no name of its own


def named_alone(column: str, labels: Iterable[Any]) -> bool:
    """Whether groups of one column are named by their labels alone: 0 and 1 say nothing without the column's name."""
    return column == _NAMELESS or not {str(label) for label in labels} <= {"0", "1"}


def group_questions(rows: Observations, groups: Any, scale: str, **others: Any) -> Questions:
    """Return one question per group: a column of truth values is a group, one of labels has a group for each label.

    Parameters
    ----------
    rows : Observations
        Checked rows.
    groups : frame, dict of columns, array of shape (n, d), or one column
        Which rows are in which groups; rows may be in several, or in none.
    scale : {"mass", "group"}
        Whether errors are shares of all rows, where a row outside the group adds nothing, or of the group's rows.
    **others
        Arguments whose rows must carry the same labels.

    Examples
    --------
    >>> rows = Observations(np.array([0, 1, 1], dtype=np.uint8), np.array([0.1, 0.5, 0.9]), None, True)
    >>> asked = group_questions(rows, {"old": [False, True, True], "ward": ["A", "A", "B"]}, "mass")
    >>> asked.labels, [column.y_prob.tolist() for column in asked]
    (('old', 'ward: A', 'ward: B'), [[0.0, 0.5, 0.9], [0.1, 0.5, 0.0], [0.0, 0.0, 0.9]])
    """
    check_choice(scale, "scale", SCALES)
    given = _one_column(groups)
    columns = check_features(given, rows.y_prob.size, argument="groups", texts_are_labels=True, **others)
    alone = len(columns) == 1
    named = [(label, places) for column in columns for label, places in _groups_in(column, alone)]
    labels = tuple(label for label, _ in named)
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise InputError(f"has two groups named {twice!r}", argument="groups", remedy="give each column its own name")
    within = GROUP_KINDS[scale] != "groups"

    def make(place: int) -> Observations:
        label, (column, code) = named[place]
        mask = column.codes == code
        with naming_group(label):
            if not within:
                return masked(rows, mask)
            part = rows.take(np.flatnonzero(mask)).alone()
            check_weights(part.sample_weight, part.y_prob.size)
            return part

    disjoint = within and alone and not _is_flag(columns[0])
    members = None if within else tuple(int(np.count_nonzero(of.codes == code)) for _, (of, code) in named)
    return Questions(GROUP_KINDS[scale], labels, rows.y_prob.size, make, disjoint=disjoint, members=members)


def _one_column(groups: Any) -> Any:
    """Return one column of labels or truth values as a frame of one."""
    is_table = (
        groups is None or hasattr(groups, "columns") or (hasattr(groups, "keys") and not hasattr(groups, "dtype"))
    )
    if is_table or np.ndim(groups) != 1:
        return groups
    return {getattr(groups, "name", None) or _NAMELESS: groups}


def _is_flag(column: Feature) -> bool:
    return column.values.dtype.kind == "b"


def _groups_in(column: Feature, alone: bool) -> Iterator[tuple[Label, tuple[Feature, int]]]:
    """Return the groups of a column by name, each with its column and the place of its value."""
    fault = partial(InputError, argument="groups", column=printable(column.name))
    missing = bool(column.missing.any())
    if _is_flag(column):
        if missing:
            raise fault(
                Phrase("{what}", what=Either("is missing", "has rows without a value")),
                position=int(column.missing.argmax()),
                remedy=Phrase(
                    "a truth value per row says whether it is in the group: fill in {false}, or {how}",
                    false=Either("False", "false"),
                    how=Either("drop the row", "leave such rows out with --drop-missing"),
                ),
            )
        if not column.values[-1]:
            raise fault("is False everywhere: no row is in this group", remedy="leave it out")
        yield column.name, (column, column.values.size - 1)
        return
    if column.values.dtype.kind == "f" and not np.all(column.values == np.round(column.values)):
        value = float(column.values[column.values != np.round(column.values)][0])
        raise fault(
            f"holds numbers such as {value:g}, which are no groups",
            value=value,
            remedy=Phrase(
                "pass truth values or labels; {finder} looks at every cut of a column of numbers",
                finder=Either("worst_group", "calibrant groups"),
            ),
        )
    if column.values.size > _MOST_LABELS:
        raise fault(
            f"has {column.values.size:,} different labels",
            value=column.values.size,
            remedy=Phrase(
                "groups are at most {most:,}: join some of them, or name what they are clusters of with {cluster}",
                most=_MOST_LABELS,
                cluster=Option("cluster"),
            ),
        )
    labels = [column.label(place) for place in range(column.values.size)]
    labels = [int(label) if isinstance(label, float) else label for label in labels]
    alone = alone and named_alone(column.name, labels)
    for place, label in enumerate(labels):
        yield label if alone else f"{column.name}: {label}", (column, place)
    if missing:
        yield "missing" if alone else f"{column.name}: missing", (column, -1)
