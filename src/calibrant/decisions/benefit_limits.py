"""Limits of net benefit: the delta method, resamples, and a band that holds at all thresholds together.

Net benefit is a mean over rows (a ratio of sums where a prevalence is given), so that totals between thresholds say
all about it, and the variation of these totals how far it may be off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import numpy as np

from calibrant.core.laws import limit_reach
from calibrant.core.types import FloatArray, IntArray, Randomness
from calibrant.decisions.stretches import Stretches, UnknownLimitsError, needs_rows, totals_in
from calibrant.measures.estimates import Bootstrapped, bootstrap
from calibrant.rows.checks import check_rng
from calibrant.rows.resamples import MOST_UNDEFINED
from calibrant.rows.tally import Tally

Interval = Literal["delta", "bootstrap"]

NUMBERS = ("net_benefit", "treat_all", "over_all", "standardized")
"""What limits are found for; over_all is the net benefit less that of treating all."""

_OPTIONAL = ("standardized",)
"""What resamples without events leave undefined, whatever the others are: it may be left without limits."""

_JOINT = (0, 2)
"""Those whose limits may hold at all thresholds together, by position."""

_DRAWS = 10_000
_DEGENERATE = 1e-12
"""Standard errors below this are rounding: the number is the same in every sample."""


class Benefits(NamedTuple):
    """Net benefit and its parts at thresholds, of one set of totals or, with a first axis, of several."""

    net_benefit: FloatArray
    treat_all: FloatArray
    over_all: FloatArray
    standardized: FloatArray


class At(NamedTuple):
    """Where people act: thresholds, the stretch that each begins, and the event rate that stands in for the rows'."""

    threshold: FloatArray
    first: IntArray
    prevalence: float | None

    @property
    def odds(self) -> FloatArray:
        """How many true positives a false one weighs."""
        return self.threshold / (1.0 - self.threshold)


def benefits(weight: FloatArray, outcome: FloatArray, at: At) -> Benefits:
    """Return the net benefit from sums of w and of w y by stretch; undefined numbers are NaN."""
    odds = at.odds
    rate = _rate(weight, outcome, at)
    true, vain = _shares(_from(weight, at), _from(outcome, at), weight, outcome, at)
    # Not as a difference: where both are large, the few rows that are not acted on would be lost in rounding.
    missed, spared = _shares(_below(weight, at), _below(outcome, at), weight, outcome, at)
    benefit = true - odds * vain
    everybody = np.broadcast_to(rate - odds * (1.0 - rate), benefit.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        standardized = np.where(rate > 0.0, benefit / rate, np.nan)
    return Benefits(benefit, everybody, odds * spared - missed, standardized)


def _rate(weight: FloatArray, outcome: FloatArray, at: At) -> FloatArray:
    """Return the event rate that counts."""
    rate: FloatArray = outcome.sum(axis=-1)[..., None] / weight.sum(axis=-1)[..., None]
    return rate if at.prevalence is None else np.full_like(rate, at.prevalence)


def _shares(
    part: FloatArray, events: FloatArray, weight: FloatArray, outcome: FloatArray, at: At
) -> tuple[FloatArray, FloatArray]:
    """Return what share of all cases are the events, and the others, of a part of the rows."""
    total, occurred = weight.sum(axis=-1)[..., None], outcome.sum(axis=-1)[..., None]
    if at.prevalence is None:
        return events / total, (part - events) / total
    with np.errstate(divide="ignore", invalid="ignore"):
        return at.prevalence * events / occurred, (1.0 - at.prevalence) * (part - events) / (total - occurred)


def _from(values: FloatArray, at: At) -> FloatArray:
    """Add up values from the first stretch of each threshold on."""
    sums: FloatArray = np.cumsum(values[..., ::-1], axis=-1)[..., ::-1]
    return sums[..., at.first]


def _below(values: FloatArray, at: At) -> FloatArray:
    """Add up values of the stretches before the first of each threshold."""
    sums: FloatArray = np.cumsum(np.insert(values, 0, 0.0, axis=-1), axis=-1)
    return sums[..., at.first]


class Draws(NamedTuple):
    """How often rows are drawn again, and by which generator."""

    n_resamples: int
    rng: Randomness


class Spread(NamedTuple):
    """How far numbers at thresholds may be off.

    Attributes
    ----------
    lower, upper : dict of array
        Limits of each number at each threshold by itself; of what too many resamples leave undefined there are none.
    deviation : array
        Standard errors of the numbers that have a band, one after the other.
    noise : array of shape (draws, ...)
        Draws of their errors, in standard errors.
    n_resamples : int or None
        Resamples behind them.
    """

    lower: dict[str, FloatArray]
    upper: dict[str, FloatArray]
    deviation: FloatArray
    noise: FloatArray
    n_resamples: int | None

    def reach(self, level: float, numbers: slice) -> float:
        """Return how many standard errors all errors together stay within."""
        return float(np.quantile(np.abs(self.noise[:, numbers]).max(axis=1), level))


def delta(found: Benefits, table: Stretches, at: At, level: float, draws: Draws) -> Spread:
    """Return normal limits, with standard errors from what each row, or cluster, adds (the sandwich).

    Few clusters vary less about their own mean than about the true one, and do not tell well how much they vary:
    squares are enlarged by G / (G - 1), and errors are Student's with G - 1 degrees of freedom, in a band too.
    """
    if table.square is None:
        raise needs_rows()
    moves = _influences(found, table, at)
    total = table.weight.sum() / np.sqrt(1.0 if table.clusters is None else table.clusters / (table.clusters - 1.0))
    spread = np.stack([np.sqrt(np.maximum(((each @ table.square) * each).sum(axis=1), 0.0)) for each in moves]) / total
    spread[spread < _DEGENERATE] = 0.0
    reach = limit_reach(level, table.clusters)
    limits = [
        {name: getattr(found, name) + side * own for name, own in zip(NUMBERS, spread, strict=True)}
        for side in (-reach, reach)
    ]
    deviation = spread[_JOINT, :].ravel()
    joint = moves[_JOINT, :].reshape(deviation.size, -1) / total
    scale = np.where(deviation > 0.0, deviation, 1.0)
    correlation = (joint @ table.square @ joint.T) / np.outer(scale, scale)
    value, vector = np.linalg.eigh(correlation)
    kept = value > _DEGENERATE * max(float(value[-1]), 0.0)
    factor = vector[:, kept] * np.sqrt(value[kept])
    generator = check_rng(draws.rng)
    # Seven digits are enough for noise, and half the work.
    noise = generator.standard_normal((_DRAWS, factor.shape[1]), dtype=np.float32) @ factor.T.astype(np.float32)
    if table.clusters is not None:  # one error of the variation for all thresholds, as in a multivariate t
        freedom = table.clusters - 1.0
        noise /= np.sqrt(generator.chisquare(freedom, (_DRAWS, 1)) / freedom)
    noise[:, deviation == 0.0] = 0.0
    return Spread(limits[0], limits[1], deviation, noise, None)


def _influences(found: Benefits, table: Stretches, at: At) -> FloatArray:
    """Return how numbers move with the sums of w and of w y in each stretch, per share of the weight added there.

    The result has an axis for the number, one for the threshold, and one for the sums.
    """
    acts = (np.arange(table.borders.size) >= at.first[:, None]).astype(np.float64)
    own = table.weight, table.outcome
    true, vain = _shares(_from(table.weight, at), _from(table.outcome, at), *own, at)
    rate = _rate(*own, at)
    mean, ones = table.mean_outcome, np.ones_like(acts)
    if at.prevalence is None:
        of_true = np.hstack([-true[:, None] * ones, acts])
        of_vain = np.hstack([acts - vain[:, None], -acts])
        of_rate = np.hstack([-mean * ones, ones])
    else:
        event = at.prevalence / mean * (acts - (true / at.prevalence)[:, None])
        other = (1.0 - at.prevalence) / (1.0 - mean) * (acts - (vain / (1.0 - at.prevalence))[:, None])
        of_true, of_vain = np.hstack([0.0 * ones, event]), np.hstack([other, -other])
        of_rate = np.zeros_like(of_true)
    odds = at.odds[:, None]
    benefit = of_true - odds * of_vain
    everybody = (1.0 + odds) * of_rate
    standardized = (benefit - found.standardized[:, None] * of_rate) / rate
    return np.stack([benefit, everybody, benefit - everybody, standardized])


def resamples(found: Benefits, table: Stretches, at: At, level: float, draws: Draws) -> Spread:
    """Return percentiles over resamples of rows, or of whole clusters."""
    n_resamples, rng = draws

    def numbers(weight: FloatArray, outcome: FloatArray) -> FloatArray:
        stacked = np.stack(benefits(weight, outcome, at), axis=-2)
        return stacked.reshape(*stacked.shape[:-2], -1)

    def of_sample(sample: Tally) -> list[float]:
        return list(numbers(*totals_in(sample, table.borders)))

    if table.counted:  # counts of a resample are multinomial: no row needs to be drawn
        cells = np.concatenate([table.outcome, table.weight - table.outcome])
        drawn = check_rng(rng).multinomial(table.rows, cells / cells.sum(), size=n_resamples).astype(np.float64)
        events, others = np.split(drawn, 2, axis=1)
        values = numbers(events + others, events)
        held = Bootstrapped(values, np.isnan(values).sum(axis=0))
    elif table.drawn_from is not None:
        held = bootstrap(table.drawn_from, of_sample, n_resamples=n_resamples, rng=rng)
    else:
        raise needs_rows()
    size = at.threshold.size
    ends = {
        name: np.array([held.limits(k * size + j, name.replace("_", " "), level) for j in range(size)]).T
        for k, name in enumerate(NUMBERS)
        if name not in _OPTIONAL or held.undefined[k * size : (k + 1) * size].max() <= MOST_UNDEFINED * n_resamples
    }
    joint = held.values.reshape(n_resamples, len(NUMBERS), size)[:, _JOINT, :].reshape(n_resamples, -1)
    centre = np.concatenate([found[k] for k in _JOINT])
    deviation = np.nanstd(joint, axis=0)
    deviation[deviation < _DEGENERATE] = 0.0
    noise = np.nan_to_num((joint - centre) / np.where(deviation > 0.0, deviation, np.inf))
    lower, upper = ({name: each[side] for name, each in ends.items()} for side in (0, 1))
    return Spread(lower, upper, deviation, noise, n_resamples)


SPREADS: Mapping[str, Callable[[Benefits, Stretches, At, float, Draws], Spread]] = {
    "delta": delta,
    "bootstrap": resamples,
}
"""How limits may be found."""


class Limits(NamedTuple):
    """Limits of every number at every threshold, and of some at all of them together."""

    lower: dict[str, FloatArray]
    upper: dict[str, FloatArray]
    n_resamples: int | None


def limits_of(
    found: Benefits,
    table: Stretches,
    at: At,
    *,
    interval: Interval,
    confidence_level: float,
    band: bool,
    draws: Draws,
) -> Limits:
    """Return the limits; "gain" is the net benefit less that of the better of treating all and treating none.

    The gain is the lesser of net benefit and over_all, and so are its limits: with both errors normal, [least lower,
    least upper] misses it as often as each interval does where the two are equal or far apart, and no more in between.
    """
    if not 0.0 < table.mean_outcome < 1.0:
        raise UnknownLimitsError(
            f"the outcomes of these rows are all {table.mean_outcome:g}, and say nothing about how far net benefit may "
            "be off",
            remedy="collect rows of both outcomes, or leave out confidence_level",
        )
    if table.clusters is not None and table.clusters < 2:
        raise UnknownLimitsError(
            "all rows are in one cluster, and nothing tells how clusters differ", remedy="collect more clusters"
        )
    spread = SPREADS[interval](found, table, at, confidence_level, draws)
    lower, upper = dict(spread.lower), dict(spread.upper)
    if band:
        size = at.threshold.size
        least = limit_reach(confidence_level, table.clusters)  # draws may put it below what one threshold takes
        alone, both = (max(spread.reach(confidence_level, slice(end)), least) for end in (size, None))
        for name, k, reach in (("band", 0, alone), ("both_band", 0, both), ("over_all_band", 1, both)):
            wide = reach * spread.deviation[k * size : (k + 1) * size]
            centre = found[_JOINT[k]]
            lower[name], upper[name] = centre - wide, centre + wide
    _allow_for_unseen(lower, upper, found, table, at, confidence_level)
    lower["gain"] = np.minimum(lower["net_benefit"], lower["over_all"])
    upper["gain"] = np.minimum(upper["net_benefit"], upper["over_all"])
    if band:
        lower["gain_band"] = np.minimum(lower["both_band"], lower["over_all_band"])
        upper["gain_band"] = np.minimum(upper["both_band"], upper["over_all_band"])
    return Limits(lower, upper, spread.n_resamples)


def _allow_for_unseen(
    lower: dict[str, FloatArray],
    upper: dict[str, FloatArray],
    found: Benefits,
    table: Stretches,
    at: At,
    level: float,
) -> None:
    """Widen limits where rows show no true positive, false positive, missed event or other row left alone: some exist.

    Of n rows none is there with probability (1 - s)^n where a share s of cases is, which gives the Clopper-Pearson
    limit of s. It joins the errors of what was seen by the root of the sum of squares, as limits of a sum do (MOVER).
    """
    event, other = _most_unseen(table, at, (1.0 - level) / 2.0)
    rate = table.mean_outcome if at.prevalence is None else at.prevalence
    left_alone = at.threshold > 0.0
    others = table.weight - table.outcome
    for name in lower:
        if name in ("net_benefit", "standardized", "band", "both_band"):
            unit, sides = rate if name == "standardized" else 1.0, (others, table.outcome)
            missing = [_from(each, at) == 0.0 for each in sides]
            centre = found.standardized if name == "standardized" else found.net_benefit
            far = at.odds * other / unit, np.full(at.threshold.size, event / unit)
        elif name in ("over_all", "over_all_band"):
            sides = (table.outcome, others)
            missing = [left_alone & (_below(each, at) == 0.0) for each in sides]
            centre, far = found.over_all, (np.full(at.threshold.size, event), at.odds * other)
        else:
            continue
        lower[name] = np.where(missing[0], centre - np.hypot(lower[name] - centre, far[0]), lower[name])
        upper[name] = np.where(missing[1], centre + np.hypot(upper[name] - centre, far[1]), upper[name])


def _most_unseen(table: Stretches, at: At, chance: float) -> tuple[float, float]:
    """Return the largest shares of events and of others, as at.prevalence has them, that rows may have missed."""
    if table.square is None:
        raise needs_rows()
    size = table.borders.size
    weights, between, outcomes = (
        float(table.square[i * size : (i + 1) * size, j * size : (j + 1) * size].sum())
        for i, j in ((0, 0), (0, 1), (1, 1))
    )
    total, events = float(table.weight.sum()), float(table.outcome.sum())
    units, event_units = total**2 / weights, events**2 / outcomes
    other_units = (total - events) ** 2 / (weights - 2.0 * between + outcomes)
    if at.prevalence is None:
        return (_upper(chance, units),) * 2
    return at.prevalence * _upper(chance, event_units), (1.0 - at.prevalence) * _upper(chance, other_units)


def _upper(chance: float, units: float) -> float:
    """Return the Clopper-Pearson limit of a share of which none of so many units is."""
    return float(1.0 - chance ** (1.0 / units))
