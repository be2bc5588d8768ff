"""Scans that a person can watch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from calibrant.cli.outputs import working
from calibrant.engines.duckdb import DuckDBEngine

if TYPE_CHECKING:
    import numpy.typing as npt

    from calibrant.engines.files import Table


class WatchedEngine(DuckDBEngine):
    """DuckDB on an open file, with a bar on the terminal that says how far each scan has come."""

    def __init__(self, table: Table, *, quiet: bool) -> None:
        super().__init__(table.relation, table.name, file=table, names=list(table.columns))
        self._quiet = quiet

    def run(self, statement: str) -> Mapping[str, npt.NDArray[Any]]:
        """Run one statement."""
        what = "adding up" if "GROUP BY" in statement else "looking closer at"
        with working(f"{what} {self.name}", quiet=self._quiet, connection=self._connection):
            return super().run(statement)
