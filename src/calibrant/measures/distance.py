"""Distance from calibration: how far the forecasts are from the nearest calibrated ones.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

import math

import numpy as np

from calibrant.core.chernoff import chernoff_interval
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, IntArray
from calibrant.measures.expected import plug_in_error
from calibrant.measures.results import CalibrationDistance
from calibrant.measures.smoothers import isotonic_curve
from calibrant.measures.weighted import find_worst_interval, smooth_calibration_error
from calibrant.rows.intake import RowsLike, as_tally
from calibrant.rows.runs import group_starts, prefix_sums
from calibrant.rows.tally import Tally

_MOST_BORDERS = 256

ROUNDING = 1e-12


def distance_from_calibration(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> CalibrationDistance:
    """Bound the distance from calibration (dCE): how far the nearest calibrated forecasts are, on average.

    The distance is not a function of forecasts and outcomes alone, so this is an interval, never one number. It speaks
    of the distribution of these rows, not of a population.

    Lower end, the best of: |mean bias|, since calibrated forecasts have the right mean; (2 smooth - |mean bias|) / 3,
    which with the first is never below half the smooth calibration error; and for forecasts at least b apart, b/(b + 2)
    times the ECE plug-in. Upper end, the best of: the mean distance to the event rate of the cell, over partitions of
    [0, 1] into intervals (the best one on up to 256 candidate borders, exactly the best when there are no more distinct
    forecasts than that); the isotonic curve; the ECE plug-in; sqrt(8 x smooth); and 2 sqrt(Cutoff) + Cutoff.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `cutoff_calibration_error`.

    Returns
    -------
    CalibrationDistance
        Both ends, and where each comes from.

    References
    ----------
    Blasiok, Gopalan, Hu, Nakkiran (2023); Proposition 2.1 of Rossellini et al. (2025). The bound b/(b + 2) corrects
    their Proposition A.1, which states b/(b + 1).

    Examples
    --------
    >>> print(distance_from_calibration([0, 0, 0], [1, 1, 1]))
    distance from calibration between 1.00000 (mean bias) and 1.00000 (nearest interval partition)
    """
    tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    return bound_distance(
        tally,
        smooth=smooth_calibration_error(tally),
        cutoff=find_worst_interval(tally).error,
        expected=plug_in_error(tally),
        curve=isotonic_curve(tally),
    )


def bound_distance(
    tally: Tally, *, smooth: float, cutoff: float, expected: float, curve: FloatArray
) -> CalibrationDistance:
    """Take the best of every bound on the distance from calibration."""
    bias = abs(tally.residual_total) / tally.weight_total
    lower = [
        (bias, "mean bias"),
        ((2.0 * smooth - bias) / 3.0, "2/3 of the smooth calibration error minus 1/3 of the mean bias"),
        (spacing_factor(tally) * expected, "b/(b + 2) times the ECE plug-in, b the smallest gap between forecasts"),
    ]
    isotonic = float(np.abs(curve - tally.forecast) @ tally.weight) / tally.weight_total
    upper = [
        (_best_partition(tally, curve), "nearest interval partition"),
        (isotonic, "isotonic curve"),
        (expected, "ECE plug-in"),
        (math.sqrt(8.0 * smooth), "square root of 8 times the smooth calibration error"),
        (2.0 * math.sqrt(cutoff) + cutoff, "2 sqrt(Cutoff) + Cutoff"),
    ]
    low, low_from = max(lower, key=lambda end: end[0])
    high, high_from = min(upper, key=lambda end: end[0])
    if high < low <= high + ROUNDING:  # equal for simple forecasts, up to rounding
        low = high
    return CalibrationDistance(low=low, high=high, low_from=low_from, high_from=high_from)


def spacing_factor(tally: Tally) -> float:
    """Return what the distance is at least of the ECE: the closer two forecasts are, the less."""
    if len(tally) == 1:
        return 1.0
    gap = float(np.diff(tally.forecast).min())
    return gap / (gap + 2.0)


def _best_partition(tally: Tally, curve: FloatArray) -> float:
    """Smallest mean |p - event rate of p's cell| over interval partitions whose borders are among the candidates."""
    borders = _candidate_borders(tally, curve)
    weight, outcome = prefix_sums(tally.weight), prefix_sums(tally.outcome)
    forecast = prefix_sums(tally.weight * tally.forecast)
    begin, end = (index.astype(np.int64) for index in np.triu_indices(borders.size, k=1))
    first, last = borders[begin], borders[end]
    mean = (outcome[last] - outcome[first]) / (weight[last] - weight[first])
    turn = np.clip(np.searchsorted(tally.forecast, mean), first, last)
    below = mean * (weight[turn] - weight[first]) - (forecast[turn] - forecast[first])
    above = (forecast[last] - forecast[turn]) - mean * (weight[last] - weight[turn])
    cost = np.full((borders.size, borders.size), np.inf)
    cost[begin, end] = np.maximum(below + above, 0.0)  # differences of sums may round below zero
    best = np.zeros(borders.size)
    for k in range(1, borders.size):
        best[k] = (best[:k] + cost[:k, k]).min()
    return float(best[-1]) / tally.weight_total


def _candidate_borders(tally: Tally, curve: FloatArray) -> IntArray:
    """Positions between distinct forecasts: all of them, or a spread of quantiles, widths and isotonic steps."""
    size = len(tally)
    if size <= _MOST_BORDERS:
        return np.arange(size + 1)
    through = np.cumsum(tally.weight)
    quantiles = np.searchsorted(through, np.linspace(0.0, 1.0, _MOST_BORDERS // 2)[1:-1] * through[-1])
    widths = np.searchsorted(tally.forecast, np.linspace(0.0, 1.0, _MOST_BORDERS // 4)[1:-1])
    steps = np.flatnonzero(np.diff(curve) > 0.0) + 1
    steps = steps[np.linspace(0, steps.size - 1, min(steps.size, _MOST_BORDERS // 4)).astype(np.int64)]
    return np.unique(np.concatenate([[0], quantiles, widths, steps, [size]])).astype(np.int64)


def spread_upper(tally: Tally, bins: int, delta: float) -> float:
    """Return an upper limit of the population's mean distance between a forecast and the mean of its bin.

    For bins of equal width, open below as those of `expected_calibration_error`. It is a matter of forecasts alone, and
    never more than half the width of a bin.
    """
    width = 1.0 / bins
    number = np.searchsorted(np.linspace(0.0, 1.0, bins + 1)[1:-1], tally.forecast)
    starts = group_starts(number)
    weight = np.add.reduceat(tally.weight, starts)
    mean = np.add.reduceat(tally.weight * tally.forecast, starts) / weight
    sizes = np.diff(np.append(starts, len(tally)))
    square_total = float(tally.weight @ np.square((tally.forecast - np.repeat(mean, sizes)) / width))
    # The mean of a bin's rows differs from the bin's own; half of delta bounds by how much, in squares over all bins.
    off = math.sqrt(starts.size) / 2.0 + math.sqrt(2.0 * math.log(2.0 / delta))
    _, most = chernoff_interval(square_total / tally.weight_max + off**2, delta / 2.0)
    return width * min(0.5, math.sqrt(most * tally.weight_max / tally.weight_total))
