"""Weight functions found on some rows: those that attain an error there, and those that bound the distance.

Other rows then say what the population's error is at least. The proofs are in docs/theory/lower-limits.md and
docs/theory/distance.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from calibrant.core.types import FloatArray
from calibrant.measures.weighted import bounded_variation_witness, smooth_witness, worst_stretches
from calibrant.rows.tally import Tally

Witnessing = Callable[[Tally], Callable[[FloatArray], FloatArray]]
"""Finds, on some rows, the weight function that attains a calibration error there."""


def interval_weight(tally: Tally) -> Callable[[FloatArray], FloatArray]:
    """Return the signed indicator of the worst interval."""
    begin, end, sign, _ = (column[0] for column in worst_stretches(tally.residual_prefix()[None], tally.weight_total))
    low, high = tally.forecast[begin], tally.forecast[end - 1]
    return lambda forecast: np.where((forecast >= low) & (forecast <= high), sign, 0.0)


def smooth_weight(tally: Tally) -> Callable[[FloatArray], FloatArray]:
    """Return the 1-Lipschitz function that attains the smooth error."""
    witness = smooth_witness(tally)
    return lambda forecast: np.interp(forecast, witness.forecast, witness.weight)


def step_weight(variation: float, tally: Tally) -> Callable[[FloatArray], FloatArray]:
    """Return the step function that attains the bounded-variation error."""
    witness = bounded_variation_witness(tally, variation=variation)

    def weigh(forecast: FloatArray) -> FloatArray:
        below = np.searchsorted(witness.forecast, forecast, side="right") - 1
        return np.asarray(witness.weight[np.maximum(below, 0)])

    return weigh


def steep_weights(tally: Tally) -> FloatArray:
    """Return the weights of Lipschitz constant 2 that attain their error, (2 smooth - |mean residual|), on the rows.

    What a smooth weight lacks of the weight 1 of the mean bias is doubled.
    """
    return 2.0 * smooth_witness(tally).weight - _bias_sign(tally)


def distance_weight(delta: float, tally: Tally) -> Callable[[FloatArray], FloatArray]:
    """Return a function w whose mean of w(p) (y - p) in the population is at most the distance from calibration.

    A weight function of Lipschitz constant L is divided by 1 + L. Constants (L = 0) and weights with L = 2 compete:
    the one is taken that promises the higher limit at delta.
    """
    exponent = math.log(1.0 / delta)

    def promise(weights: FloatArray) -> float:
        noise = math.sqrt(2.0 * exponent * float(np.square(weights) @ tally.weight_square_residual_square))
        return float(weights @ tally.residual) - noise

    best = max(np.full(len(tally), _bias_sign(tally)), steep_weights(tally) / 3.0, key=promise)
    return lambda forecast: np.interp(forecast, tally.forecast, best)


def _bias_sign(tally: Tally) -> float:
    return 1.0 if tally.residual_total >= 0.0 else -1.0
