"""What totals per cell alone say about an error: two ends that contain it, without a look at any row.

Inside a cell the curve of residuals stays between two known bounds in whatever order the rows come; finer cells bring
the ends together. The proofs are in docs/theory/cells.md.
"""

from __future__ import annotations

import numpy as np

from calibrant.core.curve_kernels import smooth_cost
from calibrant.rows.refinement import curve_bounds, residual_bounds
from calibrant.rows.tally import Totals


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
    cost = smooth_cost(curve if curve[-1] >= 0.0 else -curve, np.diff(middle))
    up, down = residual_bounds(table)
    moved = float((table.high - table.low) / 2.0 @ (up + down))
    return max(cost - moved, 0.0) / table.weight_total, (cost + moved) / table.weight_total
