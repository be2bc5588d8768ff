"""What weights leave of the rows."""

from __future__ import annotations

from calibrant.rows.tally import Totals


def effective_rows(table: Totals) -> float:
    """Return how many rows of equal weight would say as much: (sum w)^2 / sum w^2."""
    if table.unit_weights:
        return float(table.row_total)
    return float(table.weight_total**2 / table.weight_square.sum())
