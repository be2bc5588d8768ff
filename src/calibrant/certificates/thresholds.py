"""Certificates for forecasts of a real outcome, at every threshold at once.

However many thresholds there are, only the population's own worst one has to behave, with its interval and direction:
the limit is that of a single threshold with the largest bet over all of them. The proofs are in
docs/theory/distributions.md.
"""

from __future__ import annotations

import math

import numpy as np

from calibrant.certificates.betting import SPLITS, averaged_lower, best_rate, bet_exponent, rates_between
from calibrant.certificates.margins import VARIANCE_SHARE
from calibrant.certificates.results import in_order, verdict_of
from calibrant.certificates.threshold_results import ThresholdCertificate
from calibrant.core.chernoff import chernoff_interval
from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, BoolArray, FloatArray, Randomness
from calibrant.core.voices import Phrase
from calibrant.core.words import percent
from calibrant.measures.thresholds import forecast_notes, worst_place
from calibrant.measures.weighted import find_worst_interval
from calibrant.rows.checks import check_confidence, check_number, check_seed
from calibrant.rows.distributions import DistributionFunction, Quantiles, ThresholdsLike, check_distributions
from calibrant.rows.sweeps import Score, ThresholdForecasts
from calibrant.rows.tally import Tally

_WIDE = 0.25
"""From this limit on forecasts pass that are wrong about half of the outcomes by half."""

_ASSUMPTIONS = (
    "the rows are independent draws from the population",
    "forecaster, thresholds, limit and level were fixed without looking at these outcomes",
)


@frames_follow
def certify_thresholds(
    z: ArrayLike,
    *,
    max_error: float,
    ensemble: ArrayLike | None = None,
    quantiles: Quantiles | None = None,
    cdf: DistributionFunction | None = None,
    thresholds: ThresholdsLike = "all",
    confidence_level: float = 0.95,
    rng: Randomness = 0,
) -> ThresholdCertificate:
    """Decide, with a guarantee, whether forecasts of a real outcome are off by at most ``max_error`` at any threshold.

    The verdict is "certified" when an upper confidence limit of the threshold calibration error is at most
    ``max_error``, "refuted" when a lower one is above it, else "undecided". Each limit is wrong with probability
    1 - confidence_level at most, at every number of rows; the number of thresholds costs nothing. Whoever
    acts when F(t) passes a level, at any t and at any ratio of costs, then loses at most ``max_error`` per case (times
    the sum of the two costs) against any recalibration that keeps the order of forecasts.

    Parameters
    ----------
    z, ensemble, quantiles, cdf, thresholds
        As in `threshold_calibration_error`. Choose a list of thresholds before looking at the outcomes; "all" needs no
        choice.
    max_error : float in [0, 1]
        The largest error you can live with: 0.02 means that at no threshold, and on no interval of the probabilities
        forecast for it, outcomes and forecasts differ by more than 2 per 100 rows of all.
    confidence_level : float from 0.5 to below 1
        One minus the probability of a wrong verdict.
    rng : int, Generator or None, default 0
        Draws the halves of the rows on which the lower limit is found and tested, sixteen times over. Fix it
        beforehand.

    Returns
    -------
    ThresholdCertificate
        ``bool(certificate)`` is True when certified; look at its ``cautions``, too.

    References
    ----------
    The limits and their proofs are this project's (docs/theory/distributions.md).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.normal(size=2000)
    >>> certificate = certify_thresholds(
    ...     mean + rng.normal(size=2000), ensemble=mean[:, None] + rng.normal(size=(2000, 50)), max_error=0.05
    ... )
    >>> certificate.verdict, round(certificate.estimate, 4), round(certificate.upper, 4)
    ('certified', 0.0226, 0.041)
    """
    limit = check_number(max_error, "max_error", low=0.0, high=1.0)
    level = check_confidence(confidence_level)
    seed = check_seed(rng)
    forecasts = check_distributions(z, ensemble, quantiles, cdf)
    asked, listed = forecasts.at(thresholds)
    place, cutoff = asked.cutoffs()
    threshold, interval = worst_place(asked, place, cutoff)
    delta = 1.0 - level
    lower, upper = in_order(min(threshold_lower(asked, delta, seed), 1.0), threshold_upper(asked, delta))
    return ThresholdCertificate(
        verdict=verdict_of(lower, upper, limit),
        estimate=float(cutoff.max(initial=0.0)),
        lower=lower,
        upper=upper,
        max_error=limit,
        confidence_level=level,
        rows=asked.rows,
        forecast=forecasts.kind,
        members=forecasts.members,
        all_thresholds=listed is None,
        threshold_count=place.size if listed is None else listed.size,
        threshold=threshold,
        worst_interval=interval,
        assumptions=_ASSUMPTIONS,
        cautions=_cautions(limit),
        notes=(*_tail_notes(limit), *forecast_notes(forecasts)),
    )


def threshold_upper(asked: ThresholdForecasts, delta: float) -> float:
    """Return the upper limit that bets against every threshold, interval and direction leave possible.

    The rate lies between two that the rows name, and no rate between them has a larger bound than both.
    """
    rates = _rates(asked, delta)
    scores = [_growth_of(sign * rate) for rate in rates for sign in (1.0, -1.0)]
    growth = asked.largest_stretches(scores).reshape(-1, 2).max(axis=1)
    limits = -np.expm1(-(growth + bet_exponent(delta)) / asked.rows) / rates
    return min(float(limits.max()), 1.0)


def _rates(asked: ThresholdForecasts, delta: float) -> FloatArray:
    """Return the slowest and the fastest rate within reach of two means over pairs of rows.

    Their terms belong to pairs, of which n // 2 at a time are independent (Hoeffding 1963, section 5).
    """
    rows, pairs = asked.rows, asked.rows // 2
    if pairs == 0:
        return rates_between(np.array([0.0, 0.25]), np.array([0.0, 1.0]), rows, delta)
    each = delta * VARIANCE_SHARE / 4.0
    spread, square = asked.spreads()
    scale = rows / pairs
    spreads = np.array(chernoff_interval(4.0 * spread * pairs, each)) / 4.0
    return rates_between(scale * spreads, scale * np.array(chernoff_interval(square * pairs, each)), rows, delta)


def _growth_of(rate: float) -> Score:
    """Return what a bet at a rate, below 0 for forecasts that are too high, loses on an event and on another row."""
    return lambda forecast: (-np.log1p(-rate * (1.0 - forecast)), -np.log1p(rate * forecast))


def threshold_lower(asked: ThresholdForecasts, delta: float, seed: int) -> float:
    """Return a lower limit by splitting: one half names threshold, interval, direction and rate, the other tests them.

    The evidence of `SPLITS` such splits is averaged, which leaves little to the coins.
    """
    exponent = math.log(1.0 / delta)
    heads = asked.halves(seed, SPLITS)
    evidence = [
        _evidence(asked, part, threshold, exponent)
        for part, threshold in zip(heads, asked.worst_of(heads).tolist(), strict=True)
    ]
    growth, rates, rows = (np.array(column) for column in zip(*evidence, strict=True))
    return averaged_lower(growth, rates, rows, exponent)


def _evidence(
    asked: ThresholdForecasts, part: BoolArray, threshold: float, exponent: float
) -> tuple[float, float, int]:
    """Return how a bet that one half names grows on the other, its rate, and the rows of the other."""
    found, rest = int(part.sum()), int((~part).sum())
    if math.isnan(threshold) or rest == 0:
        return 0.0, 0.5, 0  # nothing was found, or nothing is left to test it on
    forecast, happened = asked.column(threshold), asked.outcome <= threshold
    worst = find_worst_interval(Tally.from_arrays(happened[part], forecast[part]))
    sign = {"too low": 1.0, "too high": -1.0, "none": 0.0}[worst.direction]
    residual = np.where((forecast >= worst.low) & (forecast <= worst.high), sign * (happened - forecast), 0.0)
    rate = best_rate(float(np.sort(residual[part] ** 2).sum()) / found * rest, 1.0, exponent)
    return float(np.sort(np.log1p(rate * residual[~part])).sum()), rate, rest


def _cautions(limit: float) -> tuple[str, ...]:
    if limit < _WIDE:
        return ()
    return (
        Phrase(
            "A limit of {wide} is wide: forecasts that are sure of one half of the outcomes and wrong about half of "
            "these pass it. For a limit that means something use max_error=0.05 or less.",
            code="wide_limit",
            wide=percent(limit),
        ),
    )


def _tail_notes(limit: float) -> tuple[str, ...]:
    return (
        f"Tails count little: where at most {percent(limit)} of outcomes lie beyond a threshold, forecasts that rule "
        "them out pass. For a rare event certify its own probability, with relative_to='events'.",
    )
