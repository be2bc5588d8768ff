"""PIT values of forecasts of a real outcome, and limits for how far they are from uniform.

.. [1] Dawid (1984), Present position and potential developments: the prequential approach, JRSS A 147.
.. [2] Czado, Gneiting, Held (2009), Predictive model assessment for count data, Biometrics 65.
.. [3] Massart (1990), The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality, Annals of Probability 18.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant.certificates.results import in_order, verdict_of
from calibrant.certificates.threshold_results import PitCalibration
from calibrant.core.errors import InputError
from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, FloatArray, IntArray, Randomness
from calibrant.core.words import counted
from calibrant.rows.checks import check_confidence, check_number, check_seed
from calibrant.rows.distributions import (
    DistributionFunction,
    Distributions,
    Quantiles,
    check_distributions,
    check_transforms,
)
from calibrant.rows.splits import digest, row_marks, seeded

_TENTHS = 10
_SAME = 1e-12

_ASSUMPTIONS = (
    "the rows are independent draws from the population",
    "forecaster, limit and level were fixed without looking at these outcomes",
)
_NEITHER = (
    "Uniform PIT values do not make forecasts calibrated at each threshold, nor the other way round: "
    "certify_thresholds() answers the other question."
)


@frames_follow
def pit_calibration(
    z: ArrayLike,
    *,
    ensemble: ArrayLike | None = None,
    quantiles: Quantiles | None = None,
    cdf: DistributionFunction | None = None,
    cdf_before: Callable[[FloatArray], object] | None = None,
    max_error: float | None = None,
    confidence_level: float = 0.95,
    rng: Randomness = 0,
) -> PitCalibration:
    """Do outcomes fall between forecast quantiles as often as they should? The distance of PIT values from uniform.

    The PIT value of a row is U = F(Z), uniform on [0, 1] when Z is drawn from F. The number, Kuiper's
    statistic, is the largest |P(U in J) - length of J| over intervals J: 0.03 means that every central, lower or other
    range of forecast probabilities covers within 3 points of what it should. The upper limit is the
    estimate plus sqrt(ln(1/delta)/(2n)), the lower one the estimate minus 2 sqrt(ln(2/delta)/(2n)).

    Parameters
    ----------
    z : array-like of shape (n,)
        Outcomes.
    ensemble : array-like of shape (n, m)
        Members: U is drawn from the stretch of length 1/(m + 1) that belongs to the rank of the outcome among them, so
        that it is uniform when outcome and members are exchangeable, ties included.
    quantiles : (levels, values)
        As in `threshold_calibration_error`: U is drawn between the levels of the two quantiles around the outcome, so
        that it is uniform when outcomes fall between quantiles as often as the levels say. Where an outcome equals a
        quantile of its row, quantiles do not say how likely that very value was, and U need not be uniform for right
        forecasts: a note says so, and ``max_error`` is refused. Pass ``cdf`` with ``cdf_before`` then.
    cdf : callable
        Takes the array of outcomes, one for each row, returns F(Z) of each row.
    cdf_before : callable, optional
        The same for P(outcome < Z), where forecasts have jumps, as those of counts do: U is drawn between the two.
    max_error : float in [0, 1], optional
        A limit for a verdict. Refused where outcomes equal quantiles of their rows.
    confidence_level : float from 0.5 to below 1
        Of each limit, and of the verdict.
    rng : int, Generator or None, default 0
        Draws PIT values inside steps, in an order that what rows hold decides. Fix it beforehand.

    Returns
    -------
    PitCalibration
        ``estimate``, ``lower``, ``upper``, the interval of PIT values that is off most, and a histogram in ``frame()``.

    References
    ----------
    PIT values: [1]_; drawn inside jumps: [2]_. The upper limit is this project's, the lower one follows from [3]_
    (docs/theory/distributions.md).

    Examples
    --------
    >>> import numpy as np
    >>> z = (np.arange(200) + 0.5) / 200
    >>> found = pit_calibration(z, cdf=lambda outcome: outcome**2)
    >>> round(found.estimate, 4), found.direction, round(found.low, 2), round(found.high, 2)
    (0.2525, 'too few', 0.25, 1.0)
    """
    limit = None if max_error is None else check_number(max_error, "max_error", low=0.0, high=1.0)
    level = check_confidence(confidence_level)
    seed = check_seed(rng)
    forecasts = check_distributions(z, ensemble, quantiles, cdf)
    below, above = _stretches(forecasts, cdf_before)
    equal = _equal_rows(forecasts)
    if limit is not None and equal.size:
        raise _no_verdict(forecasts, equal, limit)
    randomised = bool((below < above).any())
    drawn = below
    if randomised:
        drawn = below + (above - below) * _coins(forecasts, below, above, seed)
    estimate, low, high, sign = kuiper(drawn)
    rows, delta = drawn.size, 1.0 - level
    lower, upper = in_order(estimate - kuiper_lower_margin(rows, delta), min(estimate + pit_margin(rows, delta), 1.0))
    inside = float(((drawn >= low) & (drawn <= high)).mean()) if sign >= 0.0 else _share_between(drawn, low, high)
    return PitCalibration(
        estimate=estimate,
        lower=lower,
        upper=upper,
        confidence_level=level,
        rows=rows,
        low=low,
        high=high,
        direction={1.0: "too many", -1.0: "too few", 0.0: "none"}[sign],
        share=inside,
        shares=tuple((np.histogram(drawn, bins=_TENTHS, range=(0.0, 1.0))[0] / rows).tolist()),
        forecast=forecasts.kind,
        randomised=randomised,
        max_error=limit,
        verdict=None if limit is None else verdict_of(lower, upper, limit),
        assumptions=_ASSUMPTIONS,
        notes=(_NEITHER, *([_at_quantiles(equal.size)] if equal.size else [])),
    )


def _stretches(
    forecasts: Distributions, before: Callable[[FloatArray], object] | None
) -> tuple[FloatArray, FloatArray]:
    """Return the two ends between which the PIT value of each row is drawn."""
    outcome, rows, asked = forecasts.outcome, forecasts.outcome.size, forecasts.cdf
    if before is not None and (asked is None or not callable(before)):
        raise InputError(
            "is a function that goes with cdf=", argument="cdf_before", remedy="leave it out, or pass both functions"
        )
    if asked is None:
        return _stated_stretches(forecasts)
    above = check_transforms(_asked_at_once(asked, outcome, "cdf"), rows, "cdf(z)")
    if before is None:
        return above, above
    below = check_transforms(_asked_at_once(before, outcome, "cdf_before"), rows, "cdf_before(z)")
    wrong = np.flatnonzero(below > above)
    if wrong.size:
        position = int(wrong[0])
        raise InputError(
            f"is {below[position]:g}, above cdf(z), which is {above[position]:g}",
            argument="cdf_before(z)",
            position=position,
            value=float(below[position]),
            remedy="it is the probability of an outcome below z, cdf that of one up to z",
        )
    return below, above


def _asked_at_once(function: Callable[[Any], object], outcome: FloatArray, name: str) -> object:
    """Return what a function makes of the outcomes of all rows; say so where it takes one number only."""
    try:
        return function(outcome)
    except InputError:
        raise
    except (TypeError, ValueError, IndexError) as error:  # what arrays lead functions of one number to
        raise InputError(
            f"fails for an array of {outcome.size:,} outcomes ({type(error).__name__}: {error}): here it is asked for "
            "all outcomes at once, each at its own row, not for one threshold",
            argument=name,
            remedy=f"let it take an array, as in {name}=lambda z: scipy.stats.norm.cdf(z, mean, sd)",
        ) from error


def _stated_stretches(forecasts: Distributions) -> tuple[FloatArray, FloatArray]:
    """Return the stated levels around each outcome; those of all values that equal it lie between them."""
    values, outcome = forecasts.values, forecasts.outcome[:, None]
    levels = np.concatenate([[0.0], forecasts.stated, [1.0]])
    return levels[(values < outcome).sum(axis=1)], levels[(values <= outcome).sum(axis=1) + 1]


def _equal_rows(forecasts: Distributions) -> IntArray:
    """Return the rows whose outcome equals one of the row's own quantiles; ranks among members need no such care."""
    if forecasts.kind != "quantiles":
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero((forecasts.values == forecasts.outcome[:, None]).any(axis=1))


def _at_quantiles(count: int) -> str:
    return (
        f"In {counted(count, 'row')} the outcome equals a quantile of the row. Quantiles do not say how likely that "
        "very value was, so that estimate and limits can be far from 0 for right forecasts: pass cdf= with cdf_before=."
    )


def _no_verdict(forecasts: Distributions, equal: IntArray, limit: float) -> InputError:
    position = int(equal[0])
    return InputError(
        f"asks for a verdict, and in {counted(equal.size, 'row')} (the first is row {position}, with the outcome "
        f"{forecasts.outcome[position]:g}) the outcome equals a quantile of the row: quantiles do not say how likely "
        "that very value was, so that right forecasts could be refuted",
        argument="max_error",
        value=limit,
        remedy="pass cdf= with cdf_before=, the probabilities up to and below the outcome, or leave max_error out",
    )


def _coins(forecasts: Distributions, below: FloatArray, above: FloatArray, seed: int) -> FloatArray:
    """Draw a number from [0, 1) for each row, in an order that what rows hold decides, not their own."""
    columns = [below, above, *forecasts.values.T]
    marks = row_marks(columns, below.size)
    order = np.lexsort((forecasts.outcome, marks))
    held = digest("pit", below[order], above[order])
    coins = np.empty(below.size)
    coins[order] = seeded(seed, "pit values", held).random(below.size)
    return coins


def kuiper(values: FloatArray) -> tuple[float, float, float, float]:
    """Return Kuiper's statistic of values in [0, 1], the interval that attains it, and its sign: 1 for too many.

    The curve share of values up to u minus u jumps at values and falls between them. Its largest value is attained at a
    jump, its smallest just before one, or at an end, where it is 0; the interval lies between the two.
    """
    ordered = np.sort(values)
    count = ordered.size
    high = np.concatenate([[0.0], np.arange(1, count + 1) / count - ordered])
    low = np.concatenate([[0.0], np.arange(count) / count - ordered])
    top, bottom = int(high.argmax()), int(low.argmin())
    found = float(high[top] - low[bottom])
    if found <= _SAME:
        return 0.0, 0.0, 1.0, 0.0
    places = np.concatenate([[0.0], ordered])
    begin, end = float(places[bottom]), float(places[top])
    if bottom == 0 and top > 0:
        return found, 0.0, end, 1.0
    if top == 0 and bottom > 0:
        return found, 0.0, begin, -1.0
    return (found, begin, end, 1.0) if begin <= end else (found, end, begin, -1.0)


def _share_between(values: FloatArray, low: float, high: float) -> float:
    """Return the share of values strictly between two ends; from 0 on where the lower one is 0."""
    below = values >= low if low == 0.0 else values > low
    return float((below & (values < high)).mean())


def pit_margin(rows: int, delta: float) -> float:
    """Return the upper margin sqrt(ln(1/delta) / (2 n)): of one interval, the population's own worst one.

    1{U in J} - |J| has range 1, so that Hoeffding's inequality has half of the margin of residuals.
    """
    return math.sqrt(math.log(1.0 / delta) / (2.0 * rows))


def kuiper_lower_margin(rows: int, delta: float) -> float:
    """Return the lower margin 2 sqrt(ln(2/delta) / (2 n)): the two one-sided deviations of a distribution function.

    Each is at most half of that but for delta/2 [3]_.
    """
    return 2.0 * math.sqrt(math.log(2.0 / delta) / (2.0 * rows))
