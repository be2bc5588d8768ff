"""Before the data: how many rows a certificate takes, and what no procedure can promise about the ECE.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, count
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.certificates.binomial_limits import BET_BELOW, binomial_margin
from calibrant.certificates.limits import (
    VARIANCE_SHARE,
    coarse_spread,
    given_margin,
    hoeffding_margin,
    known_rates,
    normal_lengths,
    normal_quantile,
    paper_margin,
    rates_between,
)
from calibrant.certificates.results import RowsNeeded
from calibrant.core.binomial import at_least
from calibrant.core.types import FloatArray, IntArray
from calibrant.rows.checks import (
    check_choice,
    check_confidence,
    check_forecasts,
    check_number,
    check_same_index,
    check_weights,
)
from calibrant.rows.tally import group_starts

METHODS = ("adaptive", "exact", "normal", "hoeffding", "paper")

HIGHEST_POWER = 0.999
"""Beyond this too few of the simulated data sets are left to plan by."""

_MOST_ROWS = 2**53
_SEED = 0
_DRAWS, _LEVELS = 2000, 64  # simulated data sets, and distinct forecasts in each
_MORE_DRAWS, _FEWER_LEVELS = 8000, 32  # for a power above _USUAL_POWER
_USUAL_POWER = 0.99
_AT_ONCE = 250  # data sets whose numbers fit into a processor's cache
_USUAL_RANGE = 2.3  # of Brownian motion, in nine of ten cases and a little more
_NODES = 65
_FEW_LEVELS = 4  # up to so many distinct forecasts every interval is looked at
_DOUBT = 0.01  # chance that the power of a plan is below the promise because of the draws
_STEP = 0.5826  # a walk's maximum is that of Brownian motion less so many standard deviations of a step (Chernoff 1965)
_PATIENCE = 5  # trials that aim before the search halves what is left
_CLOSE = 200  # a plan is found to one part in so many


def rows_needed(
    max_error: float,
    *,
    confidence_level: float = 0.95,
    power: float = 0.9,
    method: str = "adaptive",
    brier: float | None = None,
    y_prob: Any = None,
    sample_weight: Any = None,
) -> RowsNeeded:
    """Plan: how many rows does it take to certify a calibrated forecaster?

    Two thousand data sets of n rows are simulated, with forecasts like yours and outcomes that follow them, and the
    method's upper limit is computed for each. The answer is the fewest rows at which the limit stays below
    ``max_error`` so often that, chance in the simulation allowed for, the power is what was asked for: on rare events
    and on forecasts of every shape, and seldom more than a tenth above the fewest rows that would do. The same question
    has the same answer every time. Rare events come in whole numbers, so that a few rows more may lower the power
    slightly before they raise it.

    Parameters
    ----------
    max_error : float in (0, 1]
        The error to be certified, as in `certify`.
    confidence_level, method
        As in `certify`.
    power : float above 0, up to 0.999
        How likely the certificate should be, if the forecaster is calibrated.
    brier : float in (0, 0.25]
        Mean of (y - p)^2 you expect. Forecasts of many shapes have the same score: the plan is for the harder of two,
        forecasts near one p, all distinct, and such forecasts near p and near 1 - p in equal parts.
    y_prob : array-like
        Or forecasts like those to come, which say more: the Brier score of a calibrated forecaster is the mean of
        p (1 - p).
    sample_weight : array-like, optional
        How many rows have each of them, or what share.

    Examples
    --------
    >>> print(rows_needed(0.05, brier=1 / 6, method="hoeffding"))
    About 4,601 rows certify a Cutoff calibration error of at most 0.05 with 95% confidence in 90% of cases, if the
    forecaster is calibrated with a Brier score of 0.1667 (hoeffding method; the paper's margin needs 219,334).
    """
    limit = check_number(max_error, "max_error", low=0.0, high=1.0)
    if limit == 0.0:
        raise ValueError("max_error is 0; no number of rows certifies an error of exactly 0")
    level = check_confidence(confidence_level)
    chance = check_number(power, "power", low=0.0, high=1.0)
    if chance in (0.0, 1.0):
        raise ValueError(f"power is {chance:g}; choose how likely success should be, between 0 and 1, as in 0.9")
    if chance > HIGHEST_POWER:
        raise ValueError(f"power is {chance:g}; plans are made for a power of up to {HIGHEST_POWER:g}")
    check_choice(method, "method", METHODS)
    if method == "exact" and level < 0.75:
        raise ValueError(f"method='exact' needs a confidence_level of at least 0.75, got {level:g}")
    if (brier is None) == (y_prob is None):
        raise ValueError("pass either brier= (the mean squared residual you expect) or y_prob= (forecasts like yours)")
    draws, levels = (_DRAWS, _LEVELS) if chance <= _USUAL_POWER else (_MORE_DRAWS, _FEWER_LEVELS)
    if y_prob is not None:
        forecasts = check_forecasts(y_prob)
        weights = check_weights(sample_weight, forecasts.size)
        check_same_index(y_prob=y_prob, sample_weight=sample_weight)
        variance = float(np.average(forecasts * (1.0 - forecasts), weights=weights))
        laws = [_law(forecasts, weights, levels)]
    elif sample_weight is not None:
        raise ValueError("sample_weight was given without y_prob; it says how many rows have each forecast")
    else:
        variance = check_number(brier, "brier", low=0.0, high=0.25)
        laws = _laws_of(variance, levels)
    if variance == 0.0:
        given = "brier is 0" if y_prob is None else "y_prob holds only 0 and 1"
        raise ValueError(f"{given}: calibrated forecasts that are never wrong leave nothing to plan for")
    delta = 1.0 - level
    wanted = _successes(draws, chance)

    def reached(method: str, law: _Law, rows: int) -> float:
        """Return the limit that is not exceeded as often as the power asks for."""
        limits = _limits(method, _draw(law, rows, draws), delta)
        return min(float(np.partition(limits, wanted - 1)[wanted - 1]), 1.0)

    def fewest(method: str) -> int:
        rows = math.ceil((_USUAL_RANGE * math.sqrt(variance) + _usual_margin(method, variance, delta)) ** 2 / limit**2)
        for law in laws:
            rows = _fewest_rows(
                partial(reached, method, law), limit, min(rows, _MOST_ROWS), at_least=law is not laws[0]
            )
        return rows

    rows = fewest(method)
    return RowsNeeded(
        rows=rows,
        paper_rows=rows if method == "paper" else fewest("paper"),
        max_error=limit,
        confidence_level=level,
        power=chance,
        method=method,
        brier=variance,
    )


@dataclass(frozen=True)
class _Law:
    """Distinct forecasts, how often each occurs, and the usual variance inside those that were joined into one."""

    forecast: FloatArray
    share: FloatArray
    joined: float


@dataclass(frozen=True)
class _Samples:
    """Data sets of the same size: a line of counts for each, and a column for each distinct forecast."""

    forecast: FloatArray
    size: int
    rows: IntArray
    events: IntArray
    inside: float
    """How far the range of a residual curve may reach beyond what joined forecasts show of it."""

    @property
    def residual(self) -> FloatArray:
        return self.events - self.rows * self.forecast

    @property
    def residual_square(self) -> FloatArray:
        return self.events * np.square(1.0 - self.forecast) + (self.rows - self.events) * np.square(self.forecast)


def _law(forecasts: FloatArray, weights: FloatArray | None, most: int) -> _Law:
    """Return the law of given forecasts, with neighbours joined if more than ``most`` are distinct.

    Neighbours in one of most/4 stretches of equal width and in one of most 3/4 stretches of equal variance become their
    mean. That makes rows no less noisy: p (1 - p) is concave.
    """
    order = np.argsort(forecasts, kind="stable")
    starts = group_starts(forecasts[order])
    forecast = forecasts[order][starts]
    share = np.add.reduceat(np.ones(order.size) if weights is None else weights[order], starts)
    share = share / share.sum()
    forecast, share = forecast[share > 0.0], share[share > 0.0]
    if forecast.size <= most:
        return _Law(forecast, share, 0.0)
    variance = share * forecast * (1.0 - forecast)
    passed = (np.cumsum(variance) - variance / 2.0) / variance.sum()
    cells = np.floor(forecast * (most // 4)) + np.floor(passed * (3 * most // 4))  # neither ever falls
    starts = group_starts(cells)
    joined = np.add.reduceat(share, starts)
    within = np.add.reduceat(variance, starts)
    inside = within - np.maximum.reduceat(variance, starts)  # a forecast alone has no inside
    step = np.average(np.sqrt(inside), weights=within)  # the range ends in a stretch as often as it varies there
    return _Law(np.add.reduceat(share * forecast, starts) / joined, joined, float(step**2))


def _laws_of(variance: float, levels: int) -> list[_Law]:
    """Return the laws to plan for where only the mean of p (1 - p) is known: forecasts near p, or near p and 1 - p.

    Distinct, because intervals then may end anywhere; near 1 - p as well, because rare events and rare non-events make
    steps to both sides, and because binomial limits see the pooled rate of events, at most a half.
    """
    forecast = 0.5 - math.sqrt(0.25 - variance)
    share = np.full(levels, 1.0 / levels)
    halves = np.repeat([forecast, 1.0 - forecast], [levels - levels // 2, levels // 2])
    return [_Law(each, share, variance / levels) for each in (np.full(levels, forecast), halves)]


def _draw(law: _Law, rows: int, draws: int) -> _Samples:
    """Return data sets of so many rows, with outcomes that follow the forecasts; the same ones every time."""
    rng = np.random.default_rng(_SEED)
    counts = rng.multinomial(rows, law.share, size=draws)
    inside = 2.0 * _STEP * math.sqrt(rows * law.joined)
    return _Samples(law.forecast, rows, counts, rng.binomial(counts, law.forecast), inside)


def _successes(draws: int, power: float) -> int:
    """Return how many of the draws must succeed for the power to be shown, with `_DOUBT`."""
    successes = np.arange(1, draws + 1)
    shown = at_least(successes, draws, power) <= _DOUBT  # if the power is only just what was asked for
    return int(successes[shown.argmax()])


def _limits(method: str, samples: _Samples, delta: float) -> FloatArray:
    """Return the upper limit of the Cutoff error of each data set; for "exact" a close stand-in."""
    limits = {"adaptive": _adaptive_limits, "exact": _exact_limits, "normal": _normal_limits}.get(method)
    found = []
    for first in range(0, len(samples.rows), _AT_ONCE):
        lines = slice(first, first + _AT_ONCE)
        some = replace(samples, rows=samples.rows[lines], events=samples.events[lines])
        found.append(_wide_limits(some, method, delta) if limits is None else limits(some, delta))
    return np.concatenate(found)


def _wide_limits(samples: _Samples, method: str, delta: float) -> FloatArray:
    margin = paper_margin if method == "paper" else hoeffding_margin
    residual = samples.residual
    largest = np.maximum(_stretches(residual), _stretches(-residual)) + samples.inside
    limits: FloatArray = largest / samples.size + margin(samples.size, delta)
    return limits


def _stretches(scores: FloatArray) -> FloatArray:
    """Return the largest sum of neighbouring scores in each line, at least 0."""
    prefix = np.cumsum(scores, axis=1)
    largest: FloatArray = (prefix - np.minimum(np.minimum.accumulate(prefix, axis=1), 0.0)).max(axis=1)
    # The lowest point must come before the highest, and may be the start.
    return np.maximum(largest, 0.0)


def _bet_stretches(samples: _Samples, rates: FloatArray) -> FloatArray:
    """Return the largest growth -sum ln(1 - rate s r) over intervals and signs s, one rate for each data set."""
    rate = rates[:, None]
    others = samples.rows - samples.events
    growth = np.maximum(
        *(
            _stretches(
                -samples.events * np.log1p(-rate * sign * (1.0 - samples.forecast))
                - others * np.log1p(rate * sign * samples.forecast)
            )
            for sign in (1.0, -1.0)
        )
    )
    grown: FloatArray = growth + rates * samples.inside
    return grown


def _adaptive_limits(samples: _Samples, delta: float) -> FloatArray:
    each = delta * VARIANCE_SHARE / 4.0
    spread = chernoff_intervals(4.0 * samples.rows @ coarse_spread(samples.forecast), each) / 4.0
    square = chernoff_intervals(samples.residual_square.sum(axis=1), each)
    exponent = -math.log(delta * (1.0 - VARIANCE_SHARE))
    limits: FloatArray = np.max(
        [
            -np.expm1(-(_bet_stretches(samples, rates) + exponent) / samples.size) / rates
            for rates in rates_between(spread, square, samples.size, delta)
        ],
        axis=0,
    )
    return limits


def _normal_limits(samples: _Samples, delta: float) -> FloatArray:
    residual, square = samples.residual, samples.residual_square
    largest = [_with_spread(sign * residual, square, normal_quantile(delta)) for sign in (1.0, -1.0)]
    limits: FloatArray = (np.maximum(*largest).min(axis=0) + samples.inside) / samples.size
    return limits


def _with_spread(residual: FloatArray, square: FloatArray, quantile: float) -> FloatArray:
    """Return bounds of the largest sum of residuals plus quantile x sqrt(sum of squares) over intervals: one a line.

    As in `bounds.normal_upper`: the square root is bounded by lines, and every line gives a bound.
    """
    lengths = normal_lengths(np.maximum(square.sum(axis=1), 1e-300))  # no squares, no residuals, no stretch
    return np.array(
        [
            _stretches(residual + quantile / (2.0 * length[:, None]) * square) + quantile * length / 2.0
            for length in lengths
        ]
    )


def _exact_limits(samples: _Samples, delta: float) -> FloatArray:
    forecast, size = samples.forecast, samples.size
    expected = np.clip(np.rint(samples.rows @ forecast), 0, size).astype(np.int64)
    usual = np.maximum(_margins(expected, size, delta), _margins(size - expected, size, delta))
    prefers_bet = given_margin(forecast, samples.rows, delta) < BET_BELOW * usual
    limits = np.empty(len(samples.rows))
    for chosen, find in ((prefers_bet, _given_limits), (~prefers_bet, _binomial_limits)):
        if chosen.any():
            limits[chosen] = find(replace(samples, rows=samples.rows[chosen], events=samples.events[chosen]), delta)
    return limits


def _given_limits(samples: _Samples, delta: float) -> FloatArray:
    spread = samples.rows @ (samples.forecast * (1.0 - samples.forecast))
    rates = known_rates(spread, samples.size, delta)
    limits: FloatArray = -np.expm1(-(_bet_stretches(samples, rates) - math.log(delta)) / samples.size) / rates
    return limits


def _binomial_limits(samples: _Samples, delta: float) -> FloatArray:
    largest = _binomial_largest if samples.forecast.size <= _FEW_LEVELS else _binomial_bounds
    limits: FloatArray = (largest(samples, delta) + samples.inside) / samples.size
    return limits


def _binomial_largest(samples: _Samples, delta: float) -> FloatArray:
    """Return the largest residual sum plus binomial margin over all intervals."""
    residual, events, rows = (_prefix(column) for column in (samples.residual, samples.events, samples.rows))
    largest = np.zeros(len(rows))
    for begin, end in combinations(range(rows.shape[1]), 2):
        gain = residual[:, end] - residual[:, begin]
        occurred, size = (column[:, end] - column[:, begin] for column in (events, rows))
        largest = np.maximum(largest, gain + _margins(occurred, size, delta))
        largest = np.maximum(largest, -gain + _margins(size - occurred, size, delta))
    return largest


def _prefix(columns: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.cumsum(np.pad(columns, ((0, 0), (1, 0))), axis=1)


def _binomial_bounds(samples: _Samples, delta: float) -> FloatArray:
    """Return the same with a close stand-in for the binomial margin of each interval.

    That margin is about z sqrt(k l / (k + l)) for k events and l other rows, plus what it is more on all rows. And
    k l / (k + l) <= a^2 k + (1 - a)^2 l for every a, with equality on all rows for their share a of non-events.
    """
    size = samples.size
    residual, events = samples.residual, samples.events.sum(axis=1)
    share = (size - events[:, None]) / size
    square = np.square(share) * samples.events + np.square(1.0 - share) * (samples.rows - samples.events)
    quantile = normal_quantile(delta)
    spread = quantile * np.sqrt(events * ((size - events) / size))
    bounds: FloatArray = np.maximum(
        *(
            _with_spread(sign * residual, square, quantile) + _margins(count, size, delta) - spread
            for sign, count in ((1.0, events), (-1.0, size - events))
        )
    ).min(axis=0)
    return bounds


def _margins(events: IntArray, size: int | IntArray, delta: float) -> FloatArray:
    """Return the binomial margin for each number of events among so many rows."""
    others = size - events
    low, high = int(events.min()), int(events.max())
    if isinstance(size, int) and high - low > _NODES:  # so many events that the margin is straight between nodes
        nodes = np.linspace(low, high, _NODES).astype(np.int64)
        return np.interp(events, nodes, binomial_margin(nodes, size - nodes, delta))
    _, first, place = np.unique(events + 1j * others, return_index=True, return_inverse=True)  # few pairs are distinct
    margins: FloatArray = binomial_margin(events[first], others[first], delta)[place]
    return margins


def chernoff_intervals(total: FloatArray, delta: float) -> FloatArray:
    """Return the limits of `bounds.chernoff_interval` for many sums at once, low ones first, by Newton's method.

    The function is convex in the mean, so that steps from outside never pass the root.
    """
    exponent = -math.log(delta)
    some = np.maximum(total, exponent / 600.0)  # below, the limits of almost nothing: wide enough, and no underflow
    low, high = some * np.exp(-1.0 - exponent / some), some + 2.0 * exponent + 2.0 * np.sqrt(exponent * some)
    ends = np.stack([low, high])
    for _ in range(60):
        step = (some * np.log(some / ends) - some + ends - exponent) / (1.0 - some / ends)
        ends = ends - step
        if (np.abs(step) <= 1e-14 * ends).all():
            break
    ends[0, total == 0.0] = 0.0
    return ends


def _usual_margin(method: str, variance: float, delta: float) -> float:
    """Return sqrt(n) times the margin of a method, for a first guess."""
    if method == "paper":
        return paper_margin(1.0, delta)
    if method == "hoeffding":
        return hoeffding_margin(1.0, delta)
    return math.sqrt(variance) * (hoeffding_margin(1.0, delta) if method == "adaptive" else normal_quantile(delta))


def _fewest_rows(reached: Callable[[int], float], limit: float, rows: int, *, at_least: bool) -> int:
    """Return the fewest rows, to one part in `_CLOSE`, at which the limit reached is at most the one asked for.

    The search begins at ``rows``, and is over if they are enough and no fewer are wanted (``at_least``).
    """
    low, high = 0, 2 * _MOST_ROWS  # too few, and enough
    before = None
    for trial in count():
        found = reached(rows)
        if found <= limit:
            if at_least and before is None:
                break
            high = rows
        else:
            low = rows
        if low == _MOST_ROWS:
            raise ValueError("max_error is so small that more than 2^53 rows would be needed; choose a larger one")
        if high - low <= max(1, high // _CLOSE):
            return high
        # A limit falls like 1 / sqrt(rows), for few events faster: as fast as it did from the last trial to this.
        slope = 0.5
        if before is not None and before[1] != found:
            slope = min(max(math.log(before[1] / found) / math.log(rows / before[0]), 0.4), 1.2)
        aim = rows * (found / limit) ** (1.0 / slope) * (1.0 - 0.4 / _CLOSE if found <= limit else 1.0 + 0.4 / _CLOSE)
        if trial >= _PATIENCE:  # where whole numbers of events make it jump
            aim = math.sqrt(max(low, 1) * high)
        before = rows, found
        least, most = low + max(1, low // (2 * _CLOSE)), high - max(1, high // (2 * _CLOSE))
        rows = min(max(round(aim), least), max(most, low + 1), _MOST_ROWS)
    return rows


def ece_hardness_bound(n: int, *, max_error: float, confidence_level: float, effective_variance: float) -> float:
    """Bound from below how often a procedure that guarantees a small ECE must return forecasts of few values.

    If some procedure guarantees ECE <= max_error with ``confidence_level`` for every population, then its forecasts
    have an effective support (`effective_support_size`) of at most n^2 with probability at least
    1 - 2 e (max_error + delta + 1/n) / effective_variance, cut at 0 (Theorem 4.1 of [1]_). Near 1 means: whoever
    guarantees a small ECE has given up continuous forecasts. At 0 the theorem says nothing, which happens quickly: it
    is about small errors and high confidence.

    Parameters
    ----------
    n : int
        Rows the procedure learns from.
    max_error, confidence_level : float
        What it guarantees.
    effective_variance : float
        Of the population, see `effective_variance`.

    Examples
    --------
    >>> round(ece_hardness_bound(10_000, max_error=0.001, confidence_level=0.999, effective_variance=0.1), 4)
    0.8858
    >>> ece_hardness_bound(10_000, max_error=0.05, confidence_level=0.95, effective_variance=0.25)
    0.0
    """
    rows = check_number(n, "n", low=1, whole=True)
    error = check_number(max_error, "max_error", low=0.0, high=1.0)
    delta = 1.0 - check_confidence(confidence_level)
    variance = check_number(effective_variance, "effective_variance", low=0.0, high=0.25)
    if variance == 0.0:
        return 0.0
    return max(0.0, 1.0 - 2.0 * math.e * (error + delta + 1.0 / rows) / variance)


def effective_variance(mean_outcome: Any, gamma: float = 0.05, *, sample_weight: Any = None) -> float:
    """Least outcome variance on any part of the population that has a share of at least gamma.

    inf E[Var(Y | X) 1{X in A}] over sets A with P(A) >= gamma: the sum of the smallest conditional variances that
    together carry a share gamma of the rows (the last row counts in part). It measures how much noise is left even
    where outcomes are most predictable, and decides how strongly Theorem 4.1 of [1]_ bites. (Var >= s everywhere makes
    it at least gamma s, not s as a remark in the paper has it.)

    Parameters
    ----------
    mean_outcome : array-like of shape (n,)
        The true event probability of each row: known in a simulation, an assumption otherwise.
    gamma : float in [0, 1]
        The share.
    sample_weight : array-like of shape (n,), optional
        Nonnegative weights.

    Examples
    --------
    >>> effective_variance([0.5, 0.5, 0.0, 1.0], gamma=0.75)
    0.0625
    """
    means = check_forecasts(mean_outcome, name="mean_outcome")
    share = check_number(gamma, "gamma", low=0.0, high=1.0)
    weights = check_weights(sample_weight, means.size)
    check_same_index(mean_outcome=mean_outcome, sample_weight=sample_weight)
    weights = np.ones(means.size) if weights is None else weights
    variance = means * (1.0 - means)
    order = np.argsort(variance)
    carried = np.concatenate([[0.0], np.cumsum(weights[order])])
    collected = np.concatenate([[0.0], np.cumsum((weights * variance)[order])])
    return float(np.interp(share * carried[-1], carried, collected) / carried[-1])
