"""Limits by betting: what rates bets have, how they grow on the rows, and which errors they leave possible.

A bet at rate x multiplies a stake by 1 - x r for each row of residual r: by 1 - x m on average, where m is the mean
residual of the population. So stakes seldom end far above (1 - x m)^n, and means under which they would have are
excluded. Every limit is one-sided and fails with probability at most delta, for rows that are independent draws and a
forecaster that was fixed without looking at them. The proofs are in docs/theory/certificates.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from calibrant.certificates.margins import VARIANCE_SHARE
from calibrant.certificates.samples import Samples, largest_sums
from calibrant.certificates.stretches import Pairs, bracketed, largest_stretches, square_scores
from calibrant.core.chernoff import chernoff_interval, chernoff_intervals, root_of_concave
from calibrant.core.errors import InputError
from calibrant.core.threads import total_of_products
from calibrant.core.types import FloatArray, IntArray
from calibrant.measures.weighted import worst_stretches
from calibrant.measures.witnesses import Witnessing, interval_weight
from calibrant.rows.grids import COARSE_CELLS, coarse_spread
from calibrant.rows.refinement import growth_error, growth_pairs, largest_stretch, opened, split_for_growth
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally, Totals

HIGHEST_RATE = 0.9

SPLITS = 16
"""Random splits of the rows whose evidence is averaged."""

_AT_ONCE = 2**14  # forecasts, or rows, of all splits or rates looked at together: what fits into a processor's cache
_SQUARE_FACTOR = 1.25  # near 1, so that fractions lose little; not 1, because sums of r^2 are known roughly only, ...
_SQUARE_MORE = 6.0  # ... least of all when there are few events: with both, 0/1 outcomes keep the rates that p sets
GROWTH_TOLERANCE = 2e-13  # what the limit may lose to growth that is computed from sums over cells


def best_rate(variance_total: float, skewness: float, exponent: float) -> float:
    """Return about the rate x at which (exponent + variance_total (x^2 / 2 + skewness x^3 / 3)) / x is smallest.

    The larger the surprises beside the variance (skewness up to 1), the smaller the rate.
    """
    return float(_best_rates(np.array(variance_total), np.array(skewness), exponent))


def _best_rates(variance_total: FloatArray, skewness: FloatArray, exponent: float) -> FloatArray:
    rates: FloatArray = np.minimum(
        HIGHEST_RATE, 1.0 / (np.sqrt(variance_total / (2.0 * exponent)) + 2.0 / 3.0 * skewness)
    )
    return rates


def _shares(delta: float, family: int = 1) -> tuple[float, float]:
    """Split delta: ln(1/.) for the bet, and what is left for each of four limits of the variance.

    One of a family of so many bets learns the variance as surely as all of them must together.
    """
    return bet_exponent(delta, family), delta * VARIANCE_SHARE / 4.0 / family


def bet_exponent(delta: float, family: int = 1, parts: int = 1) -> float:
    """Return what a bet must gain to exclude a mean at delta over so many parts, where some is spent on its rate."""
    return math.log(1.0 / (delta / parts * (1.0 - VARIANCE_SHARE * parts / family)))


def bet_rates(table: Totals, delta: float, family: int = 1) -> tuple[float, ...]:
    """Return two betting rates between which the one to use lies, for rows of unit weight.

    The rate aims at V = max(min(E[p (1 - p)], 1.25 E[r^2] + 6/n), E[r^2] / 2), a number of the population: p (1 - p) is
    the variance of a calibrated forecaster's 0/1 outcomes, fractions may vary far less, and the last part takes over
    when forecasts are far too sure of themselves. V lies between limits found from the rows, so its rate lies between
    two rates; and no rate between them has a larger bound than both of them, so the larger of the two bounds is a
    bound. Fractions have the same rates as 0/1 outcomes, so that one and the same bet covers both
    (docs/theory/certificates.md).
    """
    return _rates_for(table.coarse_spread_total, float(table.residual_square.sum()), table.row_total, delta, family)


def known_rates(spread_total: FloatArray, rows: int, delta: float) -> FloatArray:
    """Return the betting rate for 0/1 outcomes where the forecasts, and with them the sum of p (1 - p), are given."""
    return _rates_of(spread_total, rows, math.log(1.0 / delta))


def _rates_of(variance_total: FloatArray, rows: int, exponent: float) -> FloatArray:
    # Rare events have small variance and large surprises. Linear, so that the rate falls as the variance grows.
    variance = np.minimum(variance_total / rows, 0.25)
    return _best_rates(variance * rows, 1.0 - 2.5 * variance, exponent)


def _rates_for(spread_total: float, square_total: float, rows: int, delta: float, family: int = 1) -> tuple[float, ...]:
    """Return the slowest and the fastest rate within reach of the sums of p (1 - p) and of r^2."""
    _, each = _shares(delta, family)
    spread, square = chernoff_interval(4.0 * spread_total, each), chernoff_interval(square_total, each)
    slowest, fastest = rates_between(np.array(spread) / 4.0, np.array(square), rows, delta).tolist()
    return slowest, fastest


def rates_between(spread: FloatArray, square: FloatArray, rows: int, delta: float) -> FloatArray:
    """Return the slowest and the fastest rate where the sums of p (1 - p) and of r^2 lie between two ends each."""
    exponent, _ = _shares(delta)
    variance = np.maximum(np.minimum(spread, _SQUARE_FACTOR * square + _SQUARE_MORE), square / 2.0)
    return _rates_of(variance[::-1], rows, exponent)


def _largest(growth: FloatArray, rates: FloatArray, rows: int, exponent: float) -> float:
    """Return the upper limit (1 - exp(-(growth + exponent) / n)) / rate for a mean, the largest over the rates."""
    return float((-np.expm1(-(growth + exponent) / rows) / rates).max())


def growth_limit(table: Totals, rates: tuple[float, ...], growth: FloatArray, delta: float) -> float:
    """Return the upper limit of a largest mean from how bets grew at the two `interval_rates` of the rows.

    ``growth`` is the largest over all that the mean is the largest of, of -sum ln(1 - rate w r / largest w).
    """
    exponent, _ = _shares(delta)
    return _largest(growth, np.array(rates) * _mean_weight_share(table), table.row_total, exponent)


def adaptive_upper(source: Tally | RowSource, table: Totals, delta: float) -> float:
    """Return the adaptive upper limit of the Cutoff error: as sharp as the variance of the residuals allows.

    For 0/1 outcomes of unit weight it bets against every interval; otherwise it needs the sums of w r and w^2 r^2 only.
    ``table`` holds the totals of all rows, however coarse.
    """
    return adaptive_uppers(source, table, delta)[0]


def adaptive_uppers(
    source: Tally | RowSource, table: Totals, delta: float, family: int = 1, parts: Sequence[int] = (1,)
) -> tuple[float, ...]:
    """Return adaptive upper limits at delta over each of several numbers, none above that of a family of bets.

    The first bet is that of a limit by itself. Stricter ones have its rate too, but know it less surely, and must gain
    more: they never cross (docs/theory/questions.md).
    """
    rates, wide = interval_rates(table, delta), interval_rates(table, delta, family)
    all_rates = rates if family == 1 else (*rates, wide[1])
    stretches = _interval_stretches(source, table, all_rates)
    limits = {1: _adaptive_limit(table, rates, bet_exponent(delta), stretches[:2])}
    for each in parts:
        if each > 1:
            # Growth is convex in the rate and 0 at 0: at a slower rate it is at most in proportion.
            slower = wide[0] / rates[0] if table.counted else 1.0
            ends = np.array([slower * stretches[0], stretches[2]])
            limits[each] = _adaptive_limit(table, wide, bet_exponent(delta, family, each), ends)
    return tuple(limits[each] for each in parts)


def _interval_stretches(source: Tally | RowSource, table: Totals, rates: tuple[float, ...]) -> FloatArray:
    """Return how much the best bet on an interval gains at each rate, in the units of its scores."""
    if isinstance(source, Tally) and len(source) <= _AT_ONCE // 4:  # of which none is too coarse
        largest: FloatArray = largest_sums(_scores_at(source, rates)).reshape(-1, 2).max(axis=1)
        return largest
    error: float | FloatArray = 0.0
    if table.counted:
        source = opened(source)
        fastest = max(rates)  # whose growth is off the most, for its size
        narrow = split_for_growth(source, fastest, GROWTH_TOLERANCE * table.row_total * fastest)
        error = np.array([growth_error(narrow, rate).sum() for rate in rates])
    # Stretches that were looked for with sums that are off may be shorter than the largest by twice that.
    return largest_stretches(source, _pairs_at(table, rates)) + 2.0 * error


def _adaptive_limit(table: Totals, rates: tuple[float, ...], exponent: float, stretches: FloatArray) -> float:
    """Return the adaptive limit from the largest stretches of its scores."""
    if table.counted:
        return _largest(stretches, np.array(rates), table.row_total, exponent)
    return _square_limit(table, rates, stretches, exponent)


def adaptive_bracket(table: Totals, bits: int, delta: float) -> tuple[float, float]:
    """Return two ends between which the adaptive upper limit lies, from cells of width 2^-bits alone."""
    if table.unit_weights:
        check_fine(bits)
    rates = interval_rates(table, delta)
    ends = bracketed(table, _pairs_at(table, rates))
    if table.counted:
        error = np.array([growth_error(table, rate).sum() for rate in rates])
        ends += np.stack([-error, error], axis=1)
    low, high = (_adaptive_limit(table, rates, bet_exponent(delta), ends[:, side]) for side in (0, 1))
    return low, high


def check_fine(bits: int) -> None:
    """Refuse cells that do not tell coarse forecasts apart, from which rates follow."""
    if 2**bits < COARSE_CELLS:
        raise InputError(
            f"the rates of method='adaptive' follow from {COARSE_CELLS:,} cells or more, got 2^{bits}",
            remedy=f"use bits of at least {COARSE_CELLS.bit_length() - 1}, or method='hoeffding'",
        )


def adaptive_pairs(table: Totals, delta: float) -> Pairs:
    """Return the scores of rows, in both signs and at each rate, whose largest stretches the adaptive limit needs."""
    return _pairs_at(table, interval_rates(table, delta))


def _scores_at(tally: Tally, rates: tuple[float, ...]) -> FloatArray:
    """Return the scores of `_pairs_at` in lines: at each rate one for each sign of the residual."""
    if not tally.counted:
        residual, square = tally.residual, tally.weight_square_residual_square
        coefficients = [square_coefficient(tally, rate) for rate in rates]
        return np.array([sign * residual + each * square for each in coefficients for sign in (1.0, -1.0)])
    step = np.array([sign * rate for rate in rates for sign in (1.0, -1.0)])[:, None]
    scores: FloatArray = (tally.outcome - tally.rows) * np.log1p(step * tally.forecast)
    scores -= tally.outcome * np.log1p(step * (tally.forecast - 1.0))
    return scores


def _pairs_at(table: Totals, rates: tuple[float, ...]) -> Pairs:
    if table.counted:
        return lambda table: growth_pairs(table, rates)
    return square_scores([square_coefficient(table, rate) for rate in rates])


def interval_rates(table: Totals, delta: float, family: int = 1) -> tuple[float, ...]:
    """Return the rates, times the largest weight, of bets on intervals.

    Which ones depends on the weights alone, and they are fixed numbers: outcomes have no say in it.
    """
    return bet_rates(table, delta, family) if table.unit_weights else square_rates(table, delta, family)


def _square_limit(table: Totals, rates: tuple[float, ...], stretches: FloatArray, exponent: float) -> float:
    """Return the upper limit from largest sums of w r + c w^2 r^2, one for each rate."""
    growth = stretches * rates / table.weight_max
    return _largest(growth, np.array(rates) * _mean_weight_share(table), table.row_total, exponent)


def given_upper(tally: Tally, delta: float) -> float:
    """Return the betting limit of the Cutoff error of these forecasts, for 0/1 outcomes of unit weight.

    Given the forecasts the rate is known, so that nothing of delta is spent on learning it.
    """
    events, forecast = tally.events, tally.forecast
    rate = float(
        known_rates(np.array(total_of_products(forecast * (1.0 - forecast), tally.rows)), tally.row_total, delta)
    )
    growth = max(
        largest_stretch(
            -events * np.log1p(-rate * sign * (1.0 - forecast))
            - (tally.rows - events) * np.log1p(rate * sign * forecast)
        )
        for sign in (1.0, -1.0)
    )
    return min(_largest(np.array([growth]), np.array([rate]), tally.row_total, math.log(1.0 / delta)), 1.0)


def mean_growth(forecast: FloatArray, rate: FloatArray, sign: float) -> FloatArray:
    """Return the mean of -ln(1 - rate sign r) for an outcome of 0 or 1 whose chance is the forecast."""
    event = np.log1p(-rate * sign * (1.0 - forecast))
    growth: FloatArray = -(forecast * event + (1.0 - forecast) * np.log1p(rate * sign * forecast))
    return growth


def given_margin(forecast: FloatArray, rows: FloatArray | IntArray, delta: float) -> FloatArray:
    """Return the margin n x `given_upper` that calibrated forecasts like these have over what was counted, on average.

    It follows from the forecasts alone: what a bet on all rows grows by, for the sign that grows more. ``rows`` may
    hold a line of counts for each of many samples of the same size.
    """
    count = int(rows.sum(axis=-1).flat[0])
    rate = known_rates(rows @ (forecast * (1.0 - forecast)), count, delta)
    growth = np.maximum(*((rows * mean_growth(forecast, rate[..., None], sign)).sum(axis=-1) for sign in (1.0, -1.0)))
    margin: FloatArray = -np.expm1(-(growth - math.log(delta)) / count) * count / rate
    return margin


def adaptive_upper_of(estimate: float, table: Totals, delta: float) -> float:
    """Return the adaptive upper limit of any weighted calibration error, from its estimate and the sum of w^2 r^2."""
    return _square_limit_of(estimate, table, square_rates(table, delta), delta)


def _square_limit_of(estimate: float, table: Totals, rates: tuple[float, ...], delta: float) -> float:
    exponent, _ = _shares(delta)
    square_total = float(table.weight_square_residual_square.sum())
    sums = [estimate * table.weight_total + square_coefficient(table, rate) * square_total for rate in rates]
    return _square_limit(table, rates, np.array(sums), exponent)


def square_rates(table: Totals, delta: float, family: int = 1) -> tuple[float, ...]:
    """Return two rates, times the largest weight, between which the one to use lies, from squared residuals."""
    exponent, each = bet_exponent(delta), _shares(delta, family)[1]
    square = float(table.weight_square_residual_square.sum()) / table.weight_max**2
    low, high = chernoff_interval(square, each)
    return best_rate(high, 1.0, exponent), best_rate(low, 1.0, exponent)


def square_coefficient(table: Totals, rate: float) -> float:
    """Return c with -ln(1 - x w r) <= x (w r + c w^2 r^2) for x = rate / largest weight and every |r| <= 1."""
    return (-math.log1p(-rate) - rate) / (rate * table.weight_max)


def _mean_weight_share(table: Totals) -> float:
    """Return the mean weight over the largest: 1 for equal weights."""
    return float(table.weight_total / (table.row_total * table.weight_max))


def split_lower(tally: Tally, witness: Witnessing, delta: float, seed: int) -> float:
    """Return a lower limit by splitting the rows: one half names a weight function, the other half tests it.

    Any outcomes in [0, 1] and any fixed weights, of a tally that knows its rows. The halves are those of
    `Tally.splits`, so the order of rows plays no part. The evidence of `SPLITS` such splits is averaged, which leaves
    little to the coins. Never below -1; a limit below 0 says nothing.
    """
    exponent = math.log(1.0 / delta)
    if witness is interval_weight and (tally.counted or tally.listed is not None):
        growth, rates, rows = _interval_evidence(tally, exponent, seed)
    else:
        evidence = [_split_evidence(*halves, witness, exponent) for halves in islice(tally.splits(seed), SPLITS)]
        growth, rates, rows = (np.array(column) for column in zip(*evidence, strict=True))
    return averaged_lower(growth, rates, rows, exponent)


def averaged_lower(growth: FloatArray, rates: FloatArray, rows: FloatArray | IntArray, exponent: float) -> float:
    """Return the lower limit of a mean that the average evidence of several splits leaves possible.

    Each split has a bet at a rate on so many rows, and how much it grew there.
    """
    stakes = rows * rates

    def too_little(mean: float) -> tuple[float, float]:
        """Return what is missing from evidence of 1/delta against populations of this error, and how fast it grows."""
        shrunk = mean * rates
        logarithm = growth - rows * np.log1p(shrunk)
        largest = float(logarithm.max())
        evidence = np.exp(logarithm - largest)
        total = float(np.add.reduce(evidence))
        slope = float(evidence @ (stakes / (1.0 + shrunk))) / total
        return exponent - (largest + math.log(total / growth.size)), slope

    # The mean of the evidence is at least its geometric mean, and ln(1 + x) is at most x: no limit is below this one.
    staked = float(stakes.sum())
    lowest = (float(growth.sum()) - growth.size * exponent) / staked if staked > 0.0 else -1.0
    return root_of_concave(too_little, min(max(lowest, -1.0), 1.0), 1.0)


def _interval_evidence(tally: Tally, exponent: float, seed: int) -> tuple[FloatArray, ...]:
    """Return `_split_evidence` of all splits for worst intervals, as many splits at once as a cache has room for."""
    size = len(tally) if tally.counted else tally.row_total
    together = min(max(_AT_ONCE // size, 1), SPLITS)
    count = -(-SPLITS // together)
    if tally.counted and len(tally) < tally.row_total:
        halves = islice(tally.tosses(seed, together), count)
        evidence = [_evidence_of_counts(tally, rows, events, exponent) for rows, events in halves]
    else:
        evidence = [_evidence_of_rows(tally, heads, exponent) for heads in islice(tally.heads(seed, together), count)]
    return tuple(np.concatenate(column)[:SPLITS] for column in zip(*evidence, strict=True))


def _evidence_of_counts(
    tally: Tally, rows: IntArray, events: IntArray, exponent: float
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return `_split_evidence` of several splits of counted rows, from the rows and events of the first halves."""
    forecast, found = tally.forecast, rows.sum(axis=1)
    rest_rows, rest_events = tally.rows - rows, tally.events - events
    rest = np.where(found > 0, rest_rows.sum(axis=1), 0)  # no rows found, and there is nothing to test
    inside, sign = _worst_intervals(events - rows * forecast, found)
    square = events * np.square(1.0 - forecast) + (rows - events) * np.square(forecast)
    square_total = np.square(sign) * (square * inside).sum(axis=1)
    rates = _best_rates(square_total / np.maximum(found, 1) * rest, np.ones(rest.size), exponent)
    stake = (rates * sign)[:, None] * inside
    growth = rest_events * np.log1p(stake * (1.0 - forecast)) + (rest_rows - rest_events) * np.log1p(-stake * forecast)
    return growth.sum(axis=1), rates, rest


def _evidence_of_rows(
    tally: Tally, heads: npt.NDArray[np.bool_], exponent: float
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return `_split_evidence` of several splits of single rows, from which of them are in the first halves."""
    rows = tally.listed
    residual = tally.residual if rows is None else rows.y_true - rows.y_prob  # without ties a total is a row
    found, tails = heads.sum(axis=1), ~heads
    rest = np.where(found > 0, tally.row_total - found, 0)  # no rows found, and there is nothing to test
    weight_found, weight_max, share = found, np.ones(rest.size), np.ones(rest.size)
    if rows is not None and rows.sample_weight is not None:
        residual = rows.sample_weight * residual
        weight_found = (heads * rows.sample_weight).sum(axis=1)
        weight_rest = tails * rows.sample_weight
        weight_max = np.where(rest > 0, weight_rest.max(axis=1), 1.0)
        share = np.where(rest > 0, weight_rest.sum(axis=1) / (np.maximum(rest, 1) * weight_max), 1.0)
    residual_found = heads * residual
    if len(tally) == tally.row_total:
        inside, sign = _worst_intervals(residual_found, weight_found)
    else:
        starts = np.cumsum(tally.rows) - tally.rows
        inside, sign = _worst_intervals(np.add.reduceat(residual_found, starts, axis=1), weight_found)
        inside = np.repeat(inside, tally.rows, axis=1)
    square_total = (np.square(residual_found) * inside).sum(axis=1) * np.square(sign / weight_max)
    rates = _best_rates(square_total / np.maximum(found, 1) * rest, np.ones(rest.size), exponent)
    stake = (rates * sign / weight_max)[:, None]
    growth = np.log1p(stake * (residual * (tails & inside))).sum(axis=1)
    return growth, rates * share, rest


def _worst_intervals(residual: FloatArray, weight_total: FloatArray) -> tuple[npt.NDArray[np.bool_], FloatArray]:
    """Return which forecasts lie in the worst interval, and its sign, for residual totals in a line for each split."""
    curves = np.zeros((len(residual), residual.shape[1] + 1))
    np.cumsum(residual, axis=1, out=curves[:, 1:])
    begin, end, sign, _ = worst_stretches(curves, weight_total)
    place = np.arange(residual.shape[1])
    return (place >= begin[:, None]) & (place < end[:, None]), sign


def _split_evidence(found: Tally, rest: Tally, witness: Witnessing, exponent: float) -> tuple[float, float, int]:
    """Return how bets on a weight function found on some rows grow on the rest, the rate of the mean bet, and the rest.

    A row of the largest weight bets at the rate that suits the squared residuals of the rows found, others less in
    proportion to their weight.
    """
    if len(found) == 0 or len(rest) == 0:
        return 0.0, HIGHEST_RATE, 0
    weigh = witness(found)
    square = float(np.square(weigh(found.forecast)) @ found.weight_square_residual_square) / rest.weight_max**2
    rate = best_rate(square / found.row_total * rest.row_total, 1.0, exponent)
    if rest.listed is None:
        weight = weigh(rest.forecast)
        wins = rest.outcome @ np.log1p(rate * weight * (1.0 - rest.forecast))
        losses = (rest.rows - rest.outcome) @ np.log1p(-rate * weight * rest.forecast)
        return float(wins + losses), rate, rest.row_total
    rows = rest.listed
    stake = rate * weigh(rows.y_prob)
    if rows.sample_weight is not None:
        stake *= rows.sample_weight / rest.weight_max
    return float(np.log1p(stake * (rows.y_true - rows.y_prob)).sum()), rate * _mean_weight_share(rest), rest.row_total


def mean_limits(tally: Tally, delta: float) -> tuple[float, float]:
    """Return limits for the population's mean residual, each wrong with probability at most delta.

    For the rows inside an interval of forecasts that was fixed beforehand, their tally gives the limits inside it.
    """
    if len(tally) == 0:
        return -1.0, 1.0
    exponent, _ = _shares(delta)
    if tally.binary_outcomes and tally.unit_weights:
        rates = bet_rates(tally, delta)
        growth = np.array([[scores.total.sum() for scores in pair] for pair in growth_pairs(tally, rates)])
        limits = [_largest(growth[:, side], np.array(rates), tally.row_total, exponent) for side in (0, 1)]
    else:
        bias = tally.residual_total / tally.weight_total
        rates = interval_rates(tally, delta)
        limits = [_square_limit_of(sign * bias, tally, rates, delta) for sign in (1.0, -1.0)]
    return max(-limits[1], -1.0), min(limits[0], 1.0)


def bet_stretches(samples: Samples, rates: FloatArray, event_rates: FloatArray | None = None) -> FloatArray:
    """Return the largest growth -sum ln(1 - rate s r) over intervals and signs s, one rate for each data set.

    Events may be scored at rates of their own.
    """
    rate, event_rate = rates[:, None], (rates if event_rates is None else event_rates)[:, None]
    others = samples.rows - samples.events
    growth = np.maximum(
        *(
            largest_sums(
                -samples.events * np.log1p(-event_rate * sign * (1.0 - samples.forecast))
                - others * np.log1p(rate * sign * samples.forecast)
            )
            for sign in (1.0, -1.0)
        )
    )
    grown: FloatArray = growth + rates * samples.inside
    return grown


def planned_adaptive(samples: Samples, delta: float) -> FloatArray:
    """Return the adaptive limit of the Cutoff error of each data set."""
    exponent = bet_exponent(delta)
    limits: FloatArray = np.max(
        [
            -np.expm1(-(bet_stretches(samples, rates) + exponent) / samples.size) / rates
            for rates in planned_rates(samples, delta)
        ],
        axis=0,
    )
    return limits


def planned_rates(samples: Samples, delta: float) -> FloatArray:
    """Return the `bet_rates` of each data set, the slowest ones first."""
    _, each = _shares(delta)
    spread = chernoff_intervals(4.0 * samples.rows @ coarse_spread(samples.forecast), each) / 4.0
    square = chernoff_intervals(samples.residual_square.sum(axis=1), each)
    return rates_between(spread, square, samples.size, delta)


def planned_given(samples: Samples, delta: float) -> FloatArray:
    """Return the limit `given_upper` of each data set."""
    spread = samples.rows @ (samples.forecast * (1.0 - samples.forecast))
    rates = known_rates(spread, samples.size, delta)
    limits: FloatArray = -np.expm1(-(bet_stretches(samples, rates) - math.log(delta)) / samples.size) / rates
    return limits
