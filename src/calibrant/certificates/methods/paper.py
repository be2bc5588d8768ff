"""The published margin, on both sides: very wide.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

from calibrant.certificates.margins import paper_margin
from calibrant.certificates.methods.base import MarginMethod
from calibrant.core.errors import InputError
from calibrant.rows.tally import Totals
from calibrant.rows.weights import effective_rows


class Paper(MarginMethod):
    """Margin (20 + sqrt(2 ln(1/delta))) / sqrt(n) on both sides of the Cutoff error: Proposition 4.1 of [1]_."""

    name = "paper"
    sentence = "The method is the paper's Proposition 4.1, which holds at every number of rows and is very wide."
    measures = ("cutoff",)
    covers_weights = False
    no_clusters = "its proof counts independent rows"

    def margin(self, rows: float, delta: float) -> float:
        """Return the published margin."""
        return paper_margin(rows, delta)

    def lower_margin(self, table: Totals, delta: float, factor: float) -> float:
        """Return the published margin, which is for the Cutoff error alone."""
        del factor
        return paper_margin(effective_rows(table), delta)

    def bracket(self, table: Totals, bits: int, delta: float, low: float, high: float) -> tuple[float, float]:
        """Return the two ends of the error plus the margin, for rows of equal weight."""
        if not table.unit_weights:
            raise InputError(
                "method='paper' does not cover sample_weight", remedy="use method='adaptive' or 'hoeffding'"
            )
        return super().bracket(table, bits, delta, low, high)


METHOD = Paper()
