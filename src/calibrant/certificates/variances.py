"""How much residuals vary where forecasts are calibrated."""

from __future__ import annotations

import numpy as np

from calibrant.core.types import FloatArray
from calibrant.rows.refinement import TOLERANCE
from calibrant.rows.tally import Tally, Totals


def outcome_variance(tally: Tally) -> FloatArray:
    """Return the variance of each forecast's residual total when the forecasts are calibrated.

    For outcomes of 0 or 1 the forecasts determine it; for fractions the squared residuals stand in for it.
    """
    if tally.binary_outcomes:
        return tally.weight_square * tally.forecast * (1.0 - tally.forecast)
    return tally.weight_square_residual_square


def variances(table: Totals) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest that the variance of each entry's residual total can be.

    For n forecasts of unit weight with mean m it is n m (1 - m) minus their scatter, n q^2 at most in an entry of half
    width q.
    """
    if isinstance(table, Tally) or not table.binary_outcomes:
        variance = outcome_variance(table) if isinstance(table, Tally) else table.weight_square_residual_square
        return variance, variance
    ends = [end * (1.0 - end) for end in (table.low, table.high)]
    squares = table.weight_square.astype(np.float64)
    most = np.where((table.low < 0.5) & (table.high > 0.5), 0.25, np.maximum(*ends)) * squares
    least = np.minimum(*ends) * squares
    if table.unit_weights:
        mean = (table.outcome - table.residual) / table.rows
        spread = mean * (1.0 - mean) * table.rows
        scatter = np.square((table.high - table.low) / 2.0) * table.rows
        rounding = TOLERANCE * table.rows  # of the mean, near which the spread may be smaller than that
        least, most = np.maximum(least, spread - scatter - rounding), np.minimum(most, spread + rounding)
    return least, most
