"""Hoeffding's margin: simple and wide, at every number of rows and whatever the outcomes."""

from __future__ import annotations

from calibrant.certificates.margins import hoeffding_lower_margin, hoeffding_margin
from calibrant.certificates.methods.base import MarginMethod
from calibrant.rows.tally import Totals


class Hoeffding(MarginMethod):
    """Margin sqrt(2 ln(1/delta) / n) above, (4 + sqrt(2 ln(1/delta))) / sqrt(n) or less below."""

    name = "hoeffding"
    sentence = "The Hoeffding method holds at every number of rows; it is simple and wide."

    def margin(self, rows: float, delta: float) -> float:
        """Return Hoeffding's margin, which holds for every class of weights in [-1, 1]."""
        return hoeffding_margin(rows, delta)

    def lower_margin(self, table: Totals, delta: float, factor: float) -> float:
        """Return the smaller of two margins that hold for all intervals at once."""
        return hoeffding_lower_margin(table, delta, factor)


METHOD = Hoeffding()
