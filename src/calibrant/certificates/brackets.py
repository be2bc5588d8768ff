"""What totals per cell alone say about the exact values: two ends that contain them, without a look at any row.

Inside a cell the curve of residuals, or of any other score that adds up, stays between two known bounds in whatever
order the rows come; finer cells bring the ends together. The proofs are in docs/theory/cells.md.
"""

from __future__ import annotations

from calibrant.certificates.methods.registry import BRACKETED_METHODS, METHODS, Method
from calibrant.core.errors import InputError
from calibrant.measures.judged import judged_measure
from calibrant.measures.registry import BRACKETED_MEASURES, Measure
from calibrant.measures.results import Bracket
from calibrant.rows.cells import Cells
from calibrant.rows.checks import check_choice, check_confidence
from calibrant.rows.promised import with_fixed_weights

_ROUNDING = 1e-12  # the ends are sums too


def bracket(
    cells: Cells,
    *,
    measure: Measure = "cutoff",
    threshold: float | tuple[float, float] | None = None,
    method: Method | None = None,
    confidence_level: float = 0.95,
) -> Bracket:
    """Return two ends that contain a calibration error, or its upper confidence limit, whatever the rows are.

    Exact values need the rows of a few cells; this needs none. More bits bring the ends together.

    Parameters
    ----------
    cells : Cells
        Totals per cell.
    measure : {"cutoff", "smooth", "risk_gap"}
        The error of the rows.
    threshold : float, or the lowest and the highest of a range, optional
        For ``measure="risk_gap"``, as in `certify`.
    method : {"adaptive", "normal", "hoeffding", "paper"}, optional
        Bracket the upper limit that `certify` would find by this method, for the Cutoff error of the population or its
        risk gap.
    confidence_level : float
        Of that limit.

    Returns
    -------
    Bracket
        The two ends.

    Examples
    --------
    >>> import numpy as np
    >>> y_prob = np.random.default_rng(0).random(10_000)
    >>> y_true = np.random.default_rng(1).random(10_000) < y_prob
    >>> print(bracket(Cells.from_arrays(y_true, y_prob, bits=8)))
    The Cutoff calibration error of these 10,000 rows lies between 0.01... and 0.01... (from cells of width 2^-8, no
    row looked at one by one).
    """
    check_choice(measure, "measure", tuple(BRACKETED_MEASURES))
    level = check_confidence(confidence_level)
    bits, table = cells.bits, cells
    judged = judged_measure(measure, 2.0, threshold, None, None)
    low, high = judged.bracket(table)
    assumptions: tuple[str, ...] = ()
    if method is not None:
        check_choice(method, "method", tuple(BRACKETED_METHODS))
        METHODS[method].check_measure(measure)
        table = with_fixed_weights(table).with_unit_weights()
        found = judged.bracket_limit(table, bits, 1.0 - level, (low, high), METHODS[method])
        if found is None:
            raise InputError(
                f"is for measure='cutoff' or 'risk_gap' only, got measure={measure!r}",
                argument="method",
                remedy="leave one of them out",
            )
        low, high = found
        assumptions = METHODS[method].assumptions(table)
    return Bracket(
        measure=measure,
        low=min(max(low - _ROUNDING, 0.0), 1.0),
        high=min(high + _ROUNDING, 1.0),
        method=method,
        confidence_level=None if method is None else level,
        bits=bits,
        rows=table.row_total,
        assumptions=assumptions,
    )
