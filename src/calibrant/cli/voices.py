"""How people who type commands are spoken to: arguments are columns or options, and calls are commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from calibrant.core.voices import Voice

_OPTIONS = {"n_resamples": "resamples", "cv": "parts"}
"""Arguments whose option is not called as they are."""

_ARE_OPTIONS = (
    *("max_error", "confidence_level", "pos_label", "n_resamples", "memory_limit", "cv"),
    *("relative_to", "threshold", "cost_false_positive", "cost_false_negative"),
    *("tolerance", "every", "at", "competing", "extremes", "thresholds", "smoother"),
    *("classes", "questions", "multilabel"),
    *("cluster_target", "max_cluster_size", "serial", "cluster_size", "intra_cluster_correlation"),
    *("tolerance", "periods_between_false_alarms", "unit", "assume", "maturity", "every", "measure"),
)
_FEW = 4
_CLASS_COLUMNS = ("y_true", "y_prob")
_COLUMNS = {"y_true": "the column of outcomes", "y_prob": "the column of forecasts"}


@dataclass(frozen=True)
class Shell(Voice):
    """The words of the command line.

    Attributes
    ----------
    columns : mapping
        The columns that stand for arguments, where a file is spoken of; several where there is one for each class.
    row_said : callable or None
        Says where in the file a row stands.
    """

    is_for_python = False

    columns: Mapping[str, str | Sequence[str] | None] = field(default_factory=dict)
    row_said: Callable[[int], str] | None = None

    def argument(self, name: str, position: int | None, column: str | None) -> str:
        """Name a column and a row of the file, or an option."""
        if name in _ARE_OPTIONS:
            return self.option(name, None)
        found = column if column is not None and name in _CLASS_COLUMNS else self.columns.get(name, column)
        if found is None:
            return _COLUMNS.get(name, name) if not self.columns else super().argument(name, position, None)
        row = None if position is None or self.row_said is None else self.row_said(position)
        if not isinstance(found, str):
            listed = _listed(found)
            return f"{self.option(name, None)} ({listed})" if row is None else f"{row} of columns {listed}"
        return f"column {found!r}" if row is None else f"column {found!r}, {row},"

    def option(self, name: str, value: str | float | None) -> str:
        """Write an option as one types it."""
        typed = f"--{_OPTIONS.get(name, name).replace('_', '-')}"
        return typed if value is None or value is True else f"{typed} {value}"


def _listed(columns: Sequence[str]) -> str:
    """List the columns of classes, or the pattern that they were named by; the first and last where there are many."""
    named = [repr(each) for each in columns]
    return ", ".join(named) if len(named) <= _FEW else f"{named[0]}, ..., {named[-1]}"


SHELL = Shell()
