"""Measures of rows in groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant.core.results import PerGroup, Result
from calibrant.core.types import Label
from calibrant.core.words import in_columns
from calibrant.measures.results import Measures

_SHOWN = ("mean_forecast", "mean_outcome", "cutoff", "smooth", "calibration_in_the_large")


@dataclass(frozen=True)
class GroupMeasures(PerGroup[Measures], Result):
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

    _parts: ClassVar = "measures"

    def frame(self, backend: Any = None) -> Any:
        """Return one row per group, with a column for each number of the table of measures."""
        columns: dict[str, list[Any]] = {"group": list(self.groups)}
        for name in ("rows", "mean_forecast", "mean_outcome"):
            columns[name] = [getattr(each, name) for each in self.measures]
        tables = [{name: value for name, value, _ in each.table()} for each in self.measures]
        for name in dict.fromkeys(name for table in tables for name in table):
            columns[name] = [table.get(name) for table in tables]
        return self._framed(columns, backend)

    def __str__(self) -> str:
        lines = [
            (str(label), f"{each.rows:,}", *(f"{getattr(each, name):.4f}" for name in _SHOWN))
            for label, each in self.pairs()
        ]
        return in_columns(("group", "rows", *_SHOWN), lines)

    __repr__ = __str__
