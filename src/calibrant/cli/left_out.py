"""Rows of a file that lack a value, and are left out where the user says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from calibrant.cli.class_rows import kinds_of_classes
from calibrant.cli.inputs import Source
from calibrant.cli.outputs import working

if TYPE_CHECKING:
    from calibrant.engines.files import Table


@dataclass(frozen=True)
class LeftOut:
    """Rows that lack a value, and were left out because the user said so: how many, and in words."""

    rows: int = 0
    notes: tuple[str, ...] = ()


def leave_out(models: Sequence[Source], table: Table) -> LeftOut:
    """Leave out rows that lack a value in a column asked for, if that is wanted; models name their forecasts."""
    return drop_missing(models[0], table, kinds_of(models), [str(each.y_prob) for each in models])


def kinds_of(models: Sequence[Source]) -> dict[str, str]:
    """Return the columns that must have a value in every row, and of what kind."""
    from calibrant.engines.statements import is_missing_label

    first = models[0]
    if first.asked is not None:
        kinds = kinds_of_classes(first)
    else:
        kinds = {str(each.y_prob): "number" for each in models}
        if first.y_true is not None:
            # Whoever names a label such as NA means that text by it.
            as_class = "group" if is_missing_label(first.pos_label or "-") else "class"
            kinds[first.y_true] = "number" if first.pos_label is None else as_class
    kinds |= {first.weight: "number"} if first.weight is not None else {}
    kinds |= {first.horizon.time: "number"} if first.horizon is not None else {}
    kinds |= {first.by: "group"} if first.by is not None else {}
    named = (first.cluster, first.suspect, first.time, first.period)
    return kinds | {name: "class" for name in named if name is not None}


def drop_missing(source: Source, table: Table, kinds: dict[str, str], forecasts: Sequence[str]) -> LeftOut:
    """Leave out rows that lack a value in one of these columns, if that is wanted."""
    from calibrant.core.words import counted
    from calibrant.engines.columns import check_columns

    if not source.drop_missing:
        return LeftOut()
    check_columns(table, kinds, numbers=forecasts)
    with working(f"looking for missing values in {table.name}", quiet=source.quiet, connection=table.connection):
        rows, lacking = table.leave_out_missing(kinds)
    where = ", ".join(f"{count:,} without a value of {name!r}" for name, count in lacking.items() if count)
    said = f"{counted(rows, 'row')} left out ({where}): the answer is about rows like the others"
    return LeftOut(rows, (said if rows else "no row had to be left out",))
