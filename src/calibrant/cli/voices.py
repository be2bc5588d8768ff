"""How people who type commands are spoken to: arguments are columns or options, and calls are commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from calibrant.core.voices import Voice

_OPTIONS = {"n_resamples": "resamples"}
"""Arguments whose option is not called as they are."""

_ARE_OPTIONS = (
    *("max_error", "confidence_level", "pos_label", "n_resamples", "memory_limit"),
    *("relative_to", "threshold", "cost_false_positive", "cost_false_negative"),
    *("tolerance", "every"),
    *("cluster_target", "max_cluster_size", "serial", "cluster_size", "intra_cluster_correlation"),
    *("tolerance", "periods_between_false_alarms", "unit", "assume", "maturity", "every", "measure"),
)
_COLUMNS = {"y_true": "the column of outcomes", "y_prob": "the column of forecasts"}


@dataclass(frozen=True)
class Shell(Voice):
    """The words of the command line.

    Attributes
    ----------
    columns : mapping
        The columns that stand for arguments, where a file is spoken of.
    row_said : callable or None
        Says where in the file a row stands.
    """

    is_for_python = False

    columns: Mapping[str, str | None] = field(default_factory=dict)
    row_said: Callable[[int], str] | None = None

    def argument(self, name: str, position: int | None, column: str | None) -> str:
        """Name a column and a row of the file, or an option."""
        if name in _ARE_OPTIONS:
            return self.option(name, None)
        column = self.columns.get(name, column)
        if column is None:
            return _COLUMNS.get(name, name) if not self.columns else super().argument(name, position, None)
        place = "" if position is None or self.row_said is None else f", {self.row_said(position)},"
        return f"column {column!r}{place}"

    def option(self, name: str, value: str | float | None) -> str:
        """Write an option as one types it."""
        typed = f"--{_OPTIONS.get(name, name).replace('_', '-')}"
        return typed if value is None else f"{typed} {value}"


SHELL = Shell()
