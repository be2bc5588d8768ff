"""Confidence limits for calibration errors: from the error of the rows to that of the population they come from.

Every limit here is one-sided and fails with probability at most delta, for rows that are independent draws and a
forecaster that was fixed without looking at them. The proofs are in docs/theory.md.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from statistics import NormalDist

import numpy as np

from calibrant.certificates.witnesses import interval_weight
from calibrant.core.laws import brownian_range
from calibrant.core.types import FloatArray, IntArray
from calibrant.measures.weighted import worst_stretches
from calibrant.rows.refinement import (
    Pair,
    bracket_stretch,
    growth_error,
    growth_scores,
    largest_of,
    largest_stretch,
    linear_scores,
    opened,
    split_at_stretches,
    split_for_growth,
    stretch_ends,
)
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally, Totals, group_starts

HIGHEST_RATE = 0.9
VARIANCE_SHARE = 0.02
"""Share of delta spent on learning a variance, from which a betting rate or a margin follows."""

SPREAD_SHARE = 0.02
"""Share of delta spent on learning how far forecasts are from the mean of their bin."""

SPLITS = 16
"""Random splits of the rows whose evidence is averaged."""

_COARSE_CELLS = 4096
_FEW_FORECASTS = 4096  # up to which all splits together fit into a processor's cache
_SQUARE_FACTOR = 1.25  # near 1, so that fractions lose little; not 1, because sums of r^2 are known roughly only, ...
_SQUARE_MORE = 6.0  # ... least of all when there are few events: with both, 0/1 outcomes keep the rates that p sets
_NORMAL_STEPS = 10
_GROWTH_TOLERANCE = 2e-13  # what the limit may lose to growth that is computed from sums over cells


def effective_rows(table: Totals) -> float:
    """Return how many rows of equal weight would say as much: (sum w)^2 / sum w^2."""
    return float(table.weight_total**2 / table.weight_square.sum())


def assumptions(table: Totals, method: str, *, parts: str | None = None) -> tuple[str, ...]:
    """Return what limits of the given method rest on, for the words of a result; parts are "groups" or "bands"."""
    if method == "exact":
        listed = ["given their forecasts the outcomes are independent"]
        unseen = "forecaster, limit, method and level were fixed without looking at these outcomes"
    else:
        listed = ["the rows are independent draws from the population"]
        unseen = "forecaster, limit, method and level were fixed without looking at these rows"
    listed.append(unseen)
    if parts is not None:
        found = f"(for {parts} found by looking nothing holds)"
        listed.append(f"the {parts} were chosen without looking at these rows {found}")
    if not table.unit_weights:
        listed.append(
            "the weights were fixed beforehand (weights computed from the rows, such as inverse propensities, are not "
            "covered)"
        )
    if method == "normal":
        listed.append("there are enough rows for the central limit theorem")
    return tuple(listed)


def paper_margin(rows: float, delta: float) -> float:
    """Return the margin (20 + sqrt(2 ln(1/delta))) / sqrt(n) on both sides of the Cutoff error: Prop. 4.1 of [1]_."""
    return (20.0 + math.sqrt(2.0 * math.log(1.0 / delta))) / math.sqrt(rows)


def hoeffding_margin(rows: float, delta: float) -> float:
    """Return the upper margin sqrt(2 ln(1/delta) / n), which holds for every class of weights in [-1, 1].

    Only one weight function, the one that attains the population's error, has to behave: no uniform deviation.
    """
    return math.sqrt(2.0 * math.log(1.0 / delta) / rows)


def normal_quantile(delta: float) -> float:
    """Return the value that a standard normal variable exceeds with probability delta, however small that is.

    Not the quantile at 1 - delta, which is 1 in floating point for the smallest deltas that are asked for.
    """
    return -NormalDist().inv_cdf(delta)


@lru_cache(maxsize=64)  # one limit asks for the same interval several times
def chernoff_interval(total: float, delta: float) -> tuple[float, float]:
    """Return limits for the mean of a sum of independent terms in [0, 1], each wrong with probability at most delta.

    The mean m of a sum z satisfies z ln(z/m) - z + m <= ln(1/delta): Chernoff's bound with Poisson tails, which cover
    every such sum.
    """
    exponent = math.log(1.0 / delta)

    def excess(mean: float) -> float:
        return (total * math.log(total / mean) if total > 0.0 else 0.0) - total + mean - exponent

    high = _root(excess, total, total + 2.0 * exponent + 2.0 * math.sqrt(exponent * total))
    low = _root(lambda mean: -excess(mean), 0.0, total) if total > 0.0 else 0.0
    return low, high


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where an increasing function passes zero between two ends, by bisection to the last digit."""
    for _ in range(200):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        if function(middle) < 0.0:
            low = middle
        else:
            high = middle
    return high


def _root_of_many(function: Callable[[list[float]], FloatArray], low: float, high: float) -> float:
    """Return the same as `_root`, for a function of arrays: it is asked for all the places of four steps at once."""
    while True:
        places = [low, high]
        for _ in range(4):
            between = [(left + right) / 2.0 for left, right in pairwise(places)]
            places = [place for pair in zip(places, between, strict=False) for place in pair] + [high]
        negative = function(places) < 0.0
        begin, end = 0, len(places) - 1
        while end - begin > 1:
            middle = (begin + end) // 2
            if places[middle] in (places[begin], places[end]):
                return places[end]
            begin, end = (middle, end) if negative[middle] else (begin, middle)
        low, high = places[begin], places[end]


def _best_rate(variance_total: float, skewness: float, exponent: float) -> float:
    """Return about the rate x at which (exponent + variance_total (x^2 / 2 + skewness x^3 / 3)) / x is smallest.

    The larger the surprises beside the variance (skewness up to 1), the smaller the rate.
    """
    return float(_best_rates(np.array(variance_total), np.array(skewness), exponent))


def _best_rates(variance_total: FloatArray, skewness: FloatArray, exponent: float) -> FloatArray:
    rates: FloatArray = np.minimum(
        HIGHEST_RATE, 1.0 / (np.sqrt(variance_total / (2.0 * exponent)) + 2.0 / 3.0 * skewness)
    )
    return rates


def _shares(delta: float) -> tuple[float, float]:
    """Split delta: ln(1/.) for the bet, and what is left for each of four limits of the variance."""
    return math.log(1.0 / (delta * (1.0 - VARIANCE_SHARE))), delta * VARIANCE_SHARE / 4.0


def bet_rates(table: Totals, delta: float) -> tuple[float, ...]:
    """Return two betting rates between which the one to use lies, for rows of unit weight.

    The rate aims at V = max(min(E[p (1 - p)], 1.25 E[r^2] + 6/n), E[r^2] / 2), a number of the population: p (1 - p) is
    the variance of a calibrated forecaster's 0/1 outcomes, fractions may vary far less, and the last part takes over
    when forecasts are far too sure of themselves. V lies between limits found from the rows, so its rate lies between
    two rates; and no rate between them has a larger bound than both of them, so the larger of the two bounds is a
    bound. Fractions have the same rates as 0/1 outcomes, so that one and the same bet covers both (docs/theory.md).
    """
    spread_total = float(coarse_spread(table.low) @ table.rows)
    return _rates_for(spread_total, float(table.residual_square.sum()), table.row_total, delta)


def coarse_spread(forecast: FloatArray) -> FloatArray:
    """Return p (1 - p) for coarse forecasts, because cells know no finer ones; any function of them will do."""
    coarse = (np.minimum(np.floor(forecast * _COARSE_CELLS), _COARSE_CELLS - 1) + 0.5) / _COARSE_CELLS
    spread: FloatArray = coarse * (1.0 - coarse)
    return spread


def known_rates(spread_total: FloatArray, rows: int, delta: float) -> FloatArray:
    """Return the betting rate for 0/1 outcomes where the forecasts, and with them the sum of p (1 - p), are given."""
    return _rates_of(spread_total, rows, math.log(1.0 / delta))


def _rates_of(variance_total: FloatArray, rows: int, exponent: float) -> FloatArray:
    # Rare events have small variance and large surprises. Linear, so that the rate falls as the variance grows.
    variance = np.minimum(variance_total / rows, 0.25)
    return _best_rates(variance * rows, 1.0 - 2.5 * variance, exponent)


def _rates_for(spread_total: float, square_total: float, rows: int, delta: float) -> tuple[float, ...]:
    """Return the slowest and the fastest rate within reach of the sums of p (1 - p) and of r^2."""
    _, each = _shares(delta)
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


def _bets(rates: tuple[float, ...]) -> Callable[[Totals], Iterator[Pair]]:
    def pairs(table: Totals) -> Iterator[Pair]:
        for rate in rates:
            yield growth_scores(table, rate, 1.0), growth_scores(table, rate, -1.0)

    return pairs


def _squares(coefficients: Sequence[float]) -> Callable[[Totals], Iterator[Pair]]:
    def pairs(table: Totals) -> Iterator[Pair]:
        for coefficient in coefficients:
            yield linear_scores(table, 1.0, coefficient), linear_scores(table, -1.0, coefficient)

    return pairs


def _stretches(source: Tally | RowSource, all_pairs: Callable[[Totals], Iterator[Pair]]) -> FloatArray:
    """Return the largest stretch of each pair of scores."""
    fine = split_at_stretches(source, all_pairs)
    return np.array([largest_of(pair) for pair in all_pairs(fine)])


def adaptive_upper(source: Tally | RowSource, table: Totals, delta: float) -> float:
    """Return the adaptive upper limit of the Cutoff error: as sharp as the variance of the residuals allows.

    For 0/1 outcomes of unit weight it bets against every interval; otherwise it needs the sums of w r and w^2 r^2 only.
    ``table`` holds the totals of all rows, however coarse.
    """
    error: float | FloatArray = 0.0
    if table.binary_outcomes and table.unit_weights:
        source = opened(source)
        rates = bet_rates(table, delta)
        fastest = max(rates)  # whose growth is off the most, for its size
        narrow = split_for_growth(source, fastest, _GROWTH_TOLERANCE * table.row_total * fastest)
        error = np.array([growth_error(narrow, rate).sum() for rate in rates])
    # Stretches that were looked for with sums that are off may be shorter than the largest by twice that.
    stretches = _stretches(source, _adaptive_pairs(table, delta)) + 2.0 * error
    return _adaptive_limit(table, delta, stretches)


def _adaptive_limit(table: Totals, delta: float, stretches: FloatArray) -> float:
    """Return the adaptive limit from the largest stretches of its scores."""
    exponent, _ = _shares(delta)
    if table.binary_outcomes and table.unit_weights:
        return _largest(stretches, np.array(bet_rates(table, delta)), table.row_total, exponent)
    return _square_limit(table, _rates(table, delta), stretches, exponent)


def _adaptive_pairs(table: Totals, delta: float) -> Callable[[Totals], Iterator[Pair]]:
    if table.binary_outcomes and table.unit_weights:
        return _bets(bet_rates(table, delta))
    return _squares([_square_coefficient(table, rate) for rate in _rates(table, delta)])


def _rates(table: Totals, delta: float) -> tuple[float, ...]:
    """Return the rates, times the largest weight, of bets on intervals.

    Which ones depends on the weights alone, and they are fixed numbers: outcomes have no say in it.
    """
    return bet_rates(table, delta) if table.unit_weights else square_rates(table, delta)


def _square_limit(table: Totals, rates: tuple[float, ...], stretches: FloatArray, exponent: float) -> float:
    """Return the upper limit from largest sums of w r + c w^2 r^2, one for each rate."""
    growth = stretches * rates / table.weight_max
    return _largest(growth, np.array(rates) * _mean_weight_share(table), table.row_total, exponent)


def given_upper(tally: Tally, delta: float) -> float:
    """Return the betting limit of the Cutoff error of these forecasts, for 0/1 outcomes of unit weight.

    Given the forecasts the rate is known, so that nothing of delta is spent on learning it.
    """
    events, forecast = tally.events, tally.forecast
    rate = float(known_rates((forecast * (1.0 - forecast)) @ tally.rows, tally.row_total, delta))
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


def limit_ends(method: str, delta: float) -> Callable[[Totals], IntArray]:
    """Return which entries the "adaptive" or the "normal" limit must open, as a function of the entries."""
    pairs = _adaptive_pairs if method == "adaptive" else _normal_pairs
    return lambda table: stretch_ends(table, pairs(table, delta)(table))


def adaptive_upper_of(estimate: float, table: Totals, delta: float) -> float:
    """Return the adaptive upper limit of any weighted calibration error, from its estimate and the sum of w^2 r^2."""
    return _square_limit_of(estimate, table, square_rates(table, delta), delta)


def _square_limit_of(estimate: float, table: Totals, rates: tuple[float, ...], delta: float) -> float:
    exponent, _ = _shares(delta)
    square_total = float(table.weight_square_residual_square.sum())
    sums = [estimate * table.weight_total + _square_coefficient(table, rate) * square_total for rate in rates]
    return _square_limit(table, rates, np.array(sums), exponent)


def square_rates(table: Totals, delta: float) -> tuple[float, ...]:
    """Return two rates, times the largest weight, between which the one to use lies, from squared residuals."""
    exponent, each = _shares(delta)
    square = float(table.weight_square_residual_square.sum()) / table.weight_max**2
    low, high = chernoff_interval(square, each)
    return _best_rate(high, 1.0, exponent), _best_rate(low, 1.0, exponent)


def _square_coefficient(table: Totals, rate: float) -> float:
    """Return c with -ln(1 - x w r) <= x (w r + c w^2 r^2) for x = rate / largest weight and every |r| <= 1."""
    return (-math.log1p(-rate) - rate) / (rate * table.weight_max)


def _mean_weight_share(table: Totals) -> float:
    """Return the mean weight over the largest: 1 for equal weights."""
    return float(table.weight_total / (table.row_total * table.weight_max))


def normal_upper(source: Tally | RowSource, table: Totals, delta: float) -> float:
    """Return the large-sample upper limit of the Cutoff error: max over intervals of |mean| + z standard errors.

    The square root of the variance is bounded by lines, sqrt(v) <= v / (2 l) + l / 2, and for each l the maximum over
    intervals is one pass. The limit is the smallest over ten values of l: never below that maximum, and on ordinary
    data a few percent of the margin above it at most.
    """
    return _normal_limit(table, delta, _stretches(source, _normal_pairs(table, delta)))


def _normal_limit(table: Totals, delta: float, stretches: FloatArray) -> float:
    """Return the large-sample limit from the largest stretches of its scores."""
    lengths = _normal_lengths(table)
    if lengths[0] == 0.0:
        return 0.0
    return float((stretches + normal_quantile(delta) * lengths / 2.0).min()) / table.weight_total


def bracket_upper(table: Totals, bits: int, method: str, delta: float) -> tuple[float, float]:
    """Return two ends between which the "adaptive" or "normal" upper limit lies, from cells of width 2^-bits alone."""
    bets = method == "adaptive" and table.binary_outcomes and table.unit_weights
    if method == "adaptive" and table.unit_weights and 2**bits < _COARSE_CELLS:
        raise ValueError(
            f"the rates of method='adaptive' follow from {_COARSE_CELLS:,} cells or more, got 2^{bits}; use bits of at "
            f"least {_COARSE_CELLS.bit_length() - 1}, or method='hoeffding'"
        )
    pairs = (_adaptive_pairs if method == "adaptive" else _normal_pairs)(table, delta)
    limit = _adaptive_limit if method == "adaptive" else _normal_limit
    ends = np.array([np.max([bracket_stretch(scores) for scores in pair], axis=0) for pair in pairs(table)])
    if bets:
        error = np.array([growth_error(table, rate).sum() for rate in bet_rates(table, delta)])
        ends += np.stack([-error, error], axis=1)
    low, high = (limit(table, delta, ends[:, side]) if ends.size else 0.0 for side in (0, 1))
    return low, high


def _normal_lengths(table: Totals) -> FloatArray:
    return normal_lengths(table.weight_square_residual_square.sum())


def normal_lengths(square_total: FloatArray) -> FloatArray:
    """Return the values l for which sqrt(v) <= v / (2 l) + l / 2 is used, where squares add up to the given total."""
    return np.multiply.outer(2.0 ** (-np.arange(_NORMAL_STEPS) / 3.0), np.sqrt(square_total))


def _normal_pairs(table: Totals, delta: float) -> Callable[[Totals], Iterator[Pair]]:
    lengths = _normal_lengths(table)
    quantile = normal_quantile(delta)
    return _squares((quantile / (2.0 * lengths)).tolist() if lengths[0] > 0.0 else [])


def normal_margin(table: Totals, delta: float) -> float:
    """Return z standard errors of a mean over all rows: the large-sample upper margin of any weighted error."""
    return normal_quantile(delta) * _standard_error(table)


def normal_lower_margin(table: Totals, delta: float) -> float:
    """Return the large-sample margin below the Cutoff error: a quantile of the range of Brownian motion."""
    return float(brownian_range.isf(delta)) * _standard_error(table)


def _standard_error(table: Totals) -> float:
    return math.sqrt(float(table.weight_square_residual_square.sum())) / table.weight_total


def hoeffding_lower_margin(table: Totals, delta: float, factor: float = 1.0) -> float:
    """Return a margin below the Cutoff error at every number of rows, whatever the outcomes.

    (4 + sqrt(2 ln(1/delta))) / sqrt(n_eff), or the margin of all monotone maps, of which the forecasts themselves are
    one, where that is smaller; that one is proved for rows of equal weight only. ``factor`` is 1 + M/2 for weights of
    total variation M, whose deviations are at most so many times as large. Number of rows, level and factor alone
    decide which margin is taken.
    """
    rows = effective_rows(table)
    symmetrised = (4.0 * factor + math.sqrt(2.0 * math.log(1.0 / delta))) / math.sqrt(rows)
    return min(symmetrised, factor * monotone_margin(rows, delta)) if table.unit_weights else symmetrised


def uniform_lower_margin(table: Totals, delta: float, factor: float = 1.0) -> float:
    """Return the first of these margins with the variance of the residuals in place of its largest possible value, 1.

    The variance is learned from the rows, for which a small share of delta is spent.
    """
    unit = table.weight_max / table.weight_total
    squares = float(table.weight_square_residual_square.sum()) / table.weight_max**2
    _, most_squares = chernoff_interval(squares, delta * VARIANCE_SHARE)
    rows = effective_rows(table)
    spread = min(math.sqrt(most_squares) * unit, 1.0 / math.sqrt(rows))
    exponent = math.log(1.0 / (delta * (1.0 - VARIANCE_SHARE)))
    return 4.0 * factor * spread + math.sqrt(2.0 * exponent / rows)


def exact_lower_margin(rows: float, delta: float) -> float:
    """Return the margin sqrt(ln(4/delta) / (2 n)) below the Cutoff error of these forecasts.

    Given the forecasts sum (Y - chance) is a martingale in their order, and its range exceeds t with probability at
    most 4 exp(-2 t^2 / n).
    """
    return math.sqrt(math.log(4.0 / delta) / (2.0 * rows))


Witnessing = Callable[[Tally], Callable[[FloatArray], FloatArray]]
"""Finds, on some rows, the weight function that attains a calibration error there."""


def split_lower(tally: Tally, witness: Witnessing, delta: float, seed: int) -> float:
    """Return a lower limit by splitting the rows: one half names a weight function, the other half tests it.

    Any outcomes in [0, 1] and any fixed weights, of a tally that knows its rows. The halves are those of
    `Tally.splits`, so the order of rows plays no part. The evidence of `SPLITS` such splits is averaged, which leaves
    little to the coins. Never below -1; a limit below 0 says nothing.
    """
    exponent = math.log(1.0 / delta)
    if witness is interval_weight and tally.counted and len(tally) <= _FEW_FORECASTS:
        growth, rates, rows = _evidence_of_counts(tally, exponent, seed)
    else:
        evidence = [_split_evidence(*halves, witness, exponent) for halves in islice(tally.splits(seed), SPLITS)]
        growth, rates, rows = (np.array(column) for column in zip(*evidence, strict=True))

    def too_little(means: list[float]) -> FloatArray:
        """Return what is missing from evidence of 1/delta against populations whose error is only one of ``means``."""
        evidence = growth - rows * np.log1p(np.multiply.outer(means, rates))
        missing: FloatArray = exponent - (np.logaddexp.reduce(evidence, axis=1) - math.log(SPLITS))
        return missing

    return _root_of_many(too_little, -1.0, 1.0)


def _evidence_of_counts(tally: Tally, exponent: float, seed: int) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return `_split_evidence` of all splits at once, for worst intervals and few forecasts of counted rows."""
    rows, events = (np.array(column) for column in zip(*islice(tally.tosses(seed), SPLITS), strict=True))
    forecast, found = tally.forecast, rows.sum(axis=1)
    rest_rows, rest_events = tally.rows - rows, tally.events - events
    rest = np.where(found > 0, rest_rows.sum(axis=1), 0)  # no rows found, and there is nothing to test
    curves = np.zeros((SPLITS, len(tally) + 1))
    np.cumsum(events - rows * forecast, axis=1, out=curves[:, 1:])
    begin, end, sign, _ = worst_stretches(curves, found)
    place = np.arange(len(tally))
    inside = (place >= begin[:, None]) & (place < end[:, None])
    square = events * np.square(1.0 - forecast) + (rows - events) * np.square(forecast)
    square_total = np.square(sign) * (square * inside).sum(axis=1)
    rates = _best_rates(square_total / np.maximum(found, 1) * rest, np.ones(SPLITS), exponent)
    stake = (rates * sign)[:, None] * inside
    growth = rest_events * np.log1p(stake * (1.0 - forecast)) + (rest_rows - rest_events) * np.log1p(-stake * forecast)
    return growth.sum(axis=1), rates, rest


def _split_evidence(found: Tally, rest: Tally, witness: Witnessing, exponent: float) -> tuple[float, float, int]:
    """Return how bets on a weight function found on some rows grow on the rest, the rate of the mean bet, and the rest.

    A row of the largest weight bets at the rate that suits the squared residuals of the rows found, others less in
    proportion to their weight.
    """
    if len(found) == 0 or len(rest) == 0:
        return 0.0, HIGHEST_RATE, 0
    weigh = witness(found)
    square = float(np.square(weigh(found.forecast)) @ found.weight_square_residual_square) / rest.weight_max**2
    rate = _best_rate(square / found.row_total * rest.row_total, 1.0, exponent)
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
        growth = np.array([[scores.total.sum() for scores in pair] for pair in _bets(rates)(tally)])
        limits = [_largest(growth[:, side], np.array(rates), tally.row_total, exponent) for side in (0, 1)]
    else:
        bias = tally.residual_total / tally.weight_total
        rates = _rates(tally, delta)
        limits = [_square_limit_of(sign * bias, tally, rates, delta) for sign in (1.0, -1.0)]
    return max(-limits[1], -1.0), min(limits[0], 1.0)


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


def monotone_margin(rows: float, delta: float) -> float:
    """Return how far the Cutoff error of a monotone map can be above its value on the rows, for all such maps at once.

    3 sqrt(ln(2e / delta) / (2 n)). A monotone map is a mixture of steps, so that only three distribution functions have
    to behave: those of the forecasts of all rows, of events and of non-events.
    """
    return 3.0 * math.sqrt((1.0 + math.log(2.0 / delta)) / (2.0 * rows))


def paper_monotone_margin(rows: float, delta: float) -> float:
    """Return the same as (30 + 2 sqrt(2 ln(2 / delta))) / sqrt(n): Proposition 5.1 and appendix D.2 of [1]_."""
    return (30.0 + 2.0 * math.sqrt(2.0 * math.log(2.0 / delta))) / math.sqrt(rows)


def constant_margin(rows: float, delta: float) -> float:
    """Return how far the mean outcome of the rows can be from that of the population: Hoeffding, both sides."""
    return math.sqrt(math.log(2.0 / delta) / (2.0 * rows))


def constant_failure(rows: float, error: float) -> float:
    """Return the probability, at most, that the mean outcome of the rows is off by more than ``error``: the inverse."""
    return 0.0 if error >= 1.0 else min(1.0, 2.0 * math.exp(-2.0 * rows * error**2))
