"""Measures of rows in groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from calibrant.core.results import Result, as_frame
from calibrant.core.types import Label
from calibrant.core.words import in_columns
from calibrant.measures.results import Measures

_SHOWN = ("mean_forecast", "mean_outcome", "cutoff", "smooth", "calibration_in_the_large")


@dataclass(frozen=True)
class GroupMeasures(Result):
    """Every calibration measure of each group of rows.

    Attributes
    ----------
    groups : tuple
        The groups' labels, sorted.
    measures : tuple of Measures
        Per group.
    """

    groups: tuple[Label, ...]
    measures: tuple[Measures, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not len(self.groups) == len(self.measures) > 0:
            self._refuse("groups", self.groups, "not as many as measures, or none")

    def __getitem__(self, group: Any) -> Measures:
        """Return the measures of a group."""
        if group not in self.groups:
            raise KeyError(group)
        return self.measures[self.groups.index(group)]

    def __iter__(self) -> Iterator[Any]:
        """Go through the groups' labels, as through the keys of a dict."""
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def frame(self) -> Any:
        """Return one row per group, with a column for each number of the table of measures."""
        columns: dict[str, list[Any]] = {"group": list(self.groups)}
        for name in ("rows", "mean_forecast", "mean_outcome"):
            columns[name] = [getattr(each, name) for each in self.measures]
        tables = [{name: value for name, value, _ in each.table()} for each in self.measures]
        for name in dict.fromkeys(name for table in tables for name in table):
            columns[name] = [table.get(name) for table in tables]
        return as_frame(columns)

    def __str__(self) -> str:
        lines = [
            (str(label), f"{each.rows:,}", *(f"{getattr(each, name):.4f}" for name in _SHOWN))
            for label, each in zip(self.groups, self.measures, strict=True)
        ]
        return in_columns(("group", "rows", *_SHOWN), lines)

    __repr__ = __str__
