"""What totals per cell alone say about the exact values: two ends that contain them, without a look at any row.

Inside a cell the curve of residuals, or of any other score that adds up, stays between two known bounds in whatever
order the rows come; finer cells bring the ends together. The proofs are in docs/theory.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibrant.bounds import assumptions, bracket_upper, effective_rows, hoeffding_margin, paper_margin
from calibrant.kernels import smooth_fit
from calibrant.refinement import curve_bounds, residual_bounds
from calibrant.results.measures import Bracket
from calibrant.tally import Totals
from calibrant.validation import check_choice, check_confidence

_ROUNDING = 1e-12  # the ends are sums too


def bracket_cells(
    table: Totals, bits: int, *, measure: str = "cutoff", method: str | None = None, confidence_level: float = 0.95
) -> Bracket:
    """Return the ends between which a calibration error, or its upper confidence limit, lies."""
    check_choice(measure, "measure", ("cutoff", "smooth"))
    level = check_confidence(confidence_level)
    table = replace(table, growth=None)  # which belongs to other rates
    low, high = bracket_cutoff(table) if measure == "cutoff" else bracket_smooth(table)
    if method is not None:
        check_choice(method, "method", ("adaptive", "normal", "hoeffding", "paper"))
        if measure != "cutoff":
            raise ValueError(f"method is for measure='cutoff' only, got measure={measure!r}; leave one of them out")
        table = table.with_unit_weights()
        low, high = _bracket_limit(table, bits, method, 1.0 - level, low, high)
    return Bracket(
        measure=measure,
        low=min(max(low - _ROUNDING, 0.0), 1.0),
        high=min(high + _ROUNDING, 1.0),
        method=method,
        confidence_level=None if method is None else level,
        bits=bits,
        n=table.row_total,
        assumptions=() if method is None else assumptions(table, method),
    )


def bracket_cutoff(table: Totals) -> tuple[float, float]:
    """Return the range of the residual curve at the borders of entries, and the most that it can be inside them."""
    prefix = table.residual_prefix()
    highest, lowest = curve_bounds(table)
    least = float(prefix.max() - prefix.min())
    most = max(float(prefix.max()), float(highest.max())) - min(float(prefix.min()), float(lowest.min()))
    return least / table.weight_total, most / table.weight_total


def bracket_smooth(table: Totals) -> tuple[float, float]:
    """Return the smooth error with every forecast in the middle of its entry, minus and plus what that can change.

    The residuals stay as they are, so that a 1-Lipschitz weight changes the sum of w(p) r by at most |r| times the way
    that p is moved, half the width of its entry at most.
    """
    curve = table.residual_prefix()[1:]
    middle = (table.low + table.high) / 2.0
    cost, _ = smooth_fit(curve if curve[-1] >= 0.0 else -curve, np.diff(middle), False)
    up, down = residual_bounds(table)
    moved = float((table.high - table.low) / 2.0 @ (up + down))
    return max(float(cost) - moved, 0.0) / table.weight_total, (float(cost) + moved) / table.weight_total


def _bracket_limit(table: Totals, bits: int, method: str, delta: float, low: float, high: float) -> tuple[float, float]:
    if method in ("hoeffding", "paper"):
        if method == "paper" and not table.unit_weights:
            raise ValueError("method='paper' does not cover sample_weight; use method='adaptive' or 'hoeffding'")
        margin = paper_margin if method == "paper" else hoeffding_margin
        more = margin(effective_rows(table), delta)
        return low + more, high + more
    return bracket_upper(table, bits, method, delta)
