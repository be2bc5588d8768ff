"""Upper confidence limit for the Cutoff error of the forecasts at hand, from binomial limits or from a bet.

The target is the Cutoff calibration error *of these n forecasts*: the largest |sum over I of (mu_i - p_i)| / n over
intervals I of forecasts, where mu_i is the chance of an event in row i. The forecasts are held fixed and the outcomes
are independent 0/1 draws.

**Margin of one interval.** Let I hold k events and l other rows, m = k + l. The Clopper-Pearson limit u solves
P(Bin(m, u) <= k) = delta (u = 1 when l = 0). Its margin over what was counted is M(k, l) = m u - k, except that
M = l, the largest it can be, where m u - k < 1. Then sum_I mu <= k + M(k, l) with probability at least 1 - delta.
*Proof.* Let k be the largest count at which the limit fails, k + M < sum_I mu. There M >= 1, since a limit of m cannot
fail, so k is at least 1 below the mean number of events, and for such counts Hoeffding (1956) shows: independent rows
fall to k or below at most as often as binomial ones of the same mean. That mean exceeds m u, so this happens with
probability at most delta. []

Among all intervals the one that attains the target is fixed before the outcomes are drawn, and so is its sign, hence no
price is paid for looking at all of them: the largest limit over all intervals and both signs covers the target.

**Binomial limits or a bet.** A binomial limit pools the rows of an interval and forgets that their chances differ.
Where forecasts tell outcomes apart well, the sum of p (1 - p) is far below the pooled variance, and the betting limit
of `betting.given_upper` is narrower although it is no binomial one. Both hold given the forecasts, so that whichever
the forecasts choose holds, as long as the outcomes have no say in it.

**The margin grows with k and with l** for delta <= 1/4, which is what the search below rests on.
*Proof.* Take m binomial rows and one more row that cannot be an event. Hoeffding's theorem says that m + 1 binomial
rows of the same mean fall to k or below at least as often, if k is at least 1 below that mean. So where m u - k >= 1
one more row without event cannot lower the mean m u: M(k, l + 1) >= M(k, l). From the other side M = l - v, where v
solves P(Bin(m, v/m) >= l) = delta, and the mirrored statement says that one more event cannot raise v where l - v >= 1:
M(k + 1, l) >= M(k, l). Start from M(0, 2) = 2 (1 - sqrt(delta)), which is at least 1 for delta <= 1/4: step by step
M >= 1 for all k >= 0 and l >= 2, and grows. For l = 1 the binomial margin is 1 - m (1 - (1 - delta)^(1/m)), below 1, so
M = 1 by the exception, and M(k, 0) = 0. [] So the exception is exactly l = 1. (For binomial rows the monotony is also
in Anderson and Samuels, 1967.)

**The search.** With C the residual curve, the limit of the interval between endpoints i and j is C_j - C_i + M(k, l);
for the other sign C turns into -C and events into non-events. For a block A of endpoints i and a later or equal block B
of endpoints j no interval exceeds max C on B - min C on A + M(events and non-events between the outer ends). Pairs of
blocks whose bound does not exceed the best interval found so far are discarded, the others split.

References
----------
W. Hoeffding (1956), On the distribution of the number of successes in independent trials, Ann. Math. Statist. 27.
T. W. Anderson, S. M. Samuels (1967), Some inequalities among binomial and Poisson probabilities, Fifth Berkeley Symp.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant.certificates.betting import given_margin, given_upper
from calibrant.core.binomial import lower_rate, upper_rate
from calibrant.core.errors import InputError
from calibrant.core.types import FloatArray, IntArray
from calibrant.core.voices import Argument, Phrase
from calibrant.rows.refinement import TOLERANCE
from calibrant.rows.tally import Tally

LARGEST_DELTA = 0.25
"""Up to this error probability the margin of an interval grows with its events and with its other rows."""

SMALLEST_DELTA = 1e-100
"""Down to this error probability the inverse of the binomial tail has been checked; further down it underflows."""

BET_BELOW = 0.85
"""Share of the binomial margin of all rows from which on a bet is taken: binomial limits of fewer rows are narrower."""

_BITS = 3
_BRANCHES = 1 << _BITS  # blocks of 8 parts: few levels to pass, at the price of a few more pairs to look at
_FIRST, _LAST = np.divmod(np.arange(_BRANCHES * _BRANCHES), _BRANCHES)  # the parts that two blocks' pairs are made of
_PAIRS_AT_ONCE = 8  # they split into 512: enough to keep numpy busy, few enough to go where the bounds are best


class _Pairs(NamedTuple):
    """Pairs of blocks of one level that may hold the largest interval, with what is known about each."""

    level: int
    rising: bool
    first: IntArray
    last: IntArray
    bound: FloatArray
    margin: FloatArray


def exact_upper(tally: Tally, delta: float) -> float:
    """Upper confidence limit for the Cutoff error of these forecasts: binomial, or a bet where that is narrower.

    The forecasts alone decide which (`prefers_bet`). Whatever the true event chances are, the limit is at least the
    Cutoff calibration error of these n forecasts in a share 1 - delta of data sets with these forecasts. It does not
    speak of the population they come from.

    Parameters
    ----------
    tally : Tally
        Forecasts with 0/1 outcomes of unit weight.
    delta : float
        Probability that the limit is too low: 1 - confidence_level, from 1e-100 to 0.25.

    Raises
    ------
    ValueError
        When delta is out of range, or when the tally has no event counts.

    Examples
    --------
    >>> tally = Tally.from_counts(forecast=[0.2, 0.7], rows=[100, 50], events=[22, 31])
    >>> round(exact_upper(tally, delta=0.05), 4)
    0.0782
    """
    if not SMALLEST_DELTA <= delta <= LARGEST_DELTA:
        raise InputError(
            Phrase(
                "the exact limit needs {level} >= 0.75 and below 1 (delta from {low:g} to {high:g}), got delta "
                "{given:g}",
                level=Argument("confidence_level"),
                low=SMALLEST_DELTA,
                high=LARGEST_DELTA,
                given=delta,
            ),
            remedy="choose a level in that range, or another method",
        )
    upper = given_upper if prefers_bet(tally.forecast, tally.rows, delta) else binomial_upper
    return upper(tally, delta)


def prefers_bet(forecast: FloatArray, rows: IntArray, delta: float) -> bool:
    """Whether the margin to expect from a bet is narrower than the binomial one, if the forecasts are calibrated.

    No outcome takes part, so that the choice is as fixed as the forecasts are.
    """
    count = int(rows.sum())
    events = min(max(round(float(forecast @ rows)), 0), count)
    both = np.array([events, count - events])
    binomial = float(binomial_margin(both, both[::-1], delta).max())
    return bool(given_margin(forecast, rows, delta) < BET_BELOW * binomial)


def binomial_upper(tally: Tally, delta: float) -> float:
    """Upper confidence limit for the Cutoff error of these forecasts from binomial limits alone, for delta <= 0.25.

    (1/n) max over intervals I of max(m CP(k, m) - sum_I p, m CP(m - k, m) - sum_I (1 - p)), where I holds m rows, k of
    them events, and CP(k, m) is the Clopper-Pearson upper limit for k of m, taken as 1 for k >= m - 1. An interval has
    all rows of a forecast or none.

    The value is the true maximum (up to a relative 1e-12), found by discarding blocks of intervals that cannot contain
    it. On large data that takes a fraction of the time of sorting the rows, in less than 30 bytes a forecast. Contrived
    outcomes, regular enough to make millions of intervals nearly the largest, take longer but no more memory.
    """
    events = _prefix(tally.events)
    largest = _largest_limit(tally.residual_prefix(), events, _prefix(tally.rows) - events, delta)
    return min(largest / tally.row_total, 1.0)


def binomial_margin(events: IntArray, non_events: IntArray, delta: float) -> FloatArray:
    """Margin M(k, l) of the Clopper-Pearson limit over the number of events, for delta <= 0.25.

    Among k + l independent rows of which k had an event, the expected number of events is at most k + M(k, l) with
    confidence 1 - delta. M = l, the trivial limit, for l <= 1.
    """
    margin = non_events.astype(np.float64)
    # The limit on the rarer outcome keeps more digits.
    few = ((non_events > 1) & (events <= non_events)).nonzero()[0]
    if few.size:
        seen, unseen = events[few], margin[few]
        margin[few] = (seen + unseen) * upper_rate(seen, unseen, delta) - seen
    many = ((non_events > 1) & (events > non_events)).nonzero()[0]
    if many.size:
        seen, unseen = events[many], margin[many]
        margin[many] = unseen - (seen + unseen) * lower_rate(unseen, seen, delta)
    return margin


def _prefix(counts: IntArray) -> IntArray:
    prefix = np.zeros(counts.size + 1, dtype=np.int64)
    np.cumsum(counts, out=prefix[1:])
    return prefix


def _largest_limit(curve: FloatArray, events: IntArray, non_events: IntArray, delta: float) -> float:
    """Return the largest limit over all intervals and both signs, by branch and bound.

    The three curves hold totals of the first 0, 1, ... distinct forecasts. Depth first, best pairs first: a good
    interval is known after a few steps, and what waits is never more than a few hundred pairs a level.
    """
    lows, highs = _extremes(curve, np.minimum), _extremes(curve, np.maximum)
    best = 0.0  # of two signs of an interval one is at least 0
    root, unknown = np.zeros(1, dtype=np.int64), np.array([np.inf])
    rises = bool(curve.argmin() < curve.argmax())
    waiting = [_Pairs(len(lows) - 1, rising, root, root, unknown, unknown) for rising in (not rises, rises)]
    while waiting:
        level, rising, first, last, bound, margin = waiting.pop()
        kept = bound > best * (1.0 + TOLERANCE)
        if not kept.any():
            continue
        level -= 1
        low, high = lows[level], highs[level]
        first = ((first[kept] << _BITS)[:, None] + _FIRST).ravel()
        last = ((last[kept] << _BITS)[:, None] + _LAST).ravel()
        margin = margin[kept].repeat(_FIRST.size)
        # A single endpoint makes an interval with a later one only, a block also with itself.
        kept = (last < low.size) & (first <= last if level else first < last)
        first, last, margin = first[kept], last[kept], margin[kept]
        gain = high[last] - low[first] if rising else high[first] - low[last]
        kept = gain + margin > best * (1.0 + TOLERANCE)  # the margin of the pair they came from is known already
        first, last, gain = first[kept], last[kept], gain[kept]
        if not first.size:
            continue

        begin = first << (_BITS * level)
        end = np.minimum((last + 1) << (_BITS * level), curve.size) - 1
        occurred, absent = events[end] - events[begin], non_events[end] - non_events[begin]
        outer_gain = curve[end] - curve[begin]
        if rising:
            margin = binomial_margin(occurred, absent, delta)
        else:
            margin = binomial_margin(absent, occurred, delta)
            outer_gain = -outer_gain
        best = max(best, float((outer_gain + margin).max()))  # between the outer ends lies an interval, too
        if level == 0:
            continue
        bound = gain + margin
        order = np.argsort(bound)
        order = order[bound[order] > best * (1.0 + TOLERANCE)]
        for start in range(0, order.size, _PAIRS_AT_ONCE):  # the best come last and go first
            chosen = order[start : start + _PAIRS_AT_ONCE]
            waiting.append(_Pairs(level, rising, first[chosen], last[chosen], bound[chosen], margin[chosen]))
    return best


def _extremes(curve: FloatArray, smaller_or_larger: np.ufunc) -> list[FloatArray]:
    """Return the extreme of the curve on blocks of 1, 8, 64, ... points, up to a single block of at least 8."""
    levels = [curve]
    while len(levels) == 1 or levels[-1].size > 1:
        starts = np.arange(0, levels[-1].size, _BRANCHES)
        levels.append(smaller_or_larger.reduceat(levels[-1], starts))
    return levels
