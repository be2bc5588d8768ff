"""Smoothers: curves of the event rate against the forecast, each chosen by its name.

A smoother is fitted to the distinct forecasts of a tally with the sums of their outcomes and weights, and can then be
read at any forecast. Weights count as repetitions: where all are whole numbers a row of weight 3 is three rows; others
are first scaled to add up to the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from calibrant.core.errors import InputError, UndefinedError
from calibrant.core.isotonic import isotonic_fit
from calibrant.core.local_regression import Steps, loess, lowess
from calibrant.core.logistic import Points, expit, fit_logistic, logit, pool, separation
from calibrant.core.quantiles import quantiles
from calibrant.core.types import FloatArray
from calibrant.rows.checks import check_choice, check_number
from calibrant.rows.tally import Tally

SmootherName: TypeAlias = Literal["isotonic", "loess", "lowess", "splines"]
"""The curves on offer."""

Scale: TypeAlias = Literal["probability", "logit"]
"""Where neighbours are sought: among forecasts, or among their logits."""

Rates: TypeAlias = Callable[[FloatArray], FloatArray]
"""A fitted curve: the event rate at some forecasts."""

_START_POINTS = 4096
_FEW_ROWS = 100  # below which the outer knots are the fifth rows from both ends
_FIFTH = 4
_MOST_COUNTED = 2.0**53  # up to which floats tell whole numbers apart
_TIED = 0.05  # share of rows at an end from which the knot there is the next value


@dataclass(frozen=True)
class Smoother:
    """A kind of curve.

    Attributes
    ----------
    name : str
        As it is chosen.
    said : str
        As a legend names it.
    scale : str
        The usual scale of its forecasts.
    span : float or None
        The usual share of rows in a local fit; None where there is none.
    knots : int or None
        The usual number of knots; None where there are none.
    fit : callable
        Fits it to points on its scale, with a span and a number of knots.
    smooth : bool
        Whether resamples say how far off it can be at each forecast.
    inside : bool
        Whether its rates stay between 0 and 1, so that bands are best made of their logits.
    """

    name: str
    said: str
    scale: Scale
    span: float | None
    knots: int | None
    fit: Callable[[Points, Chosen], Rates]
    smooth: bool = True
    inside: bool = False


@dataclass(frozen=True)
class Chosen:
    """A smoother with its settings, as the caller chose them."""

    smoother: Smoother
    span: float | None
    knots: int | None
    scale: Scale

    def curve(self, points: Points) -> Rates:
        """Fit the smoother; the curve is read at forecasts whatever the scale."""
        if self.scale == "probability":
            return self.smoother.fit(points, self)
        inside = points.value[(points.value > 0.0) & (points.value < 1.0)]
        if inside.size == 0:
            raise UndefinedError(
                "every forecast is 0 or 1, where the logit is infinite",
                remedy="take smoother='isotonic', or scale='probability'",
            )
        lowest, highest = inside[0], inside[-1]
        fitted = self.smoother.fit(_moved(points), self)
        return lambda places: fitted(logit(np.clip(places, lowest, highest)))


def _moved(points: Points) -> Points:
    """Return points on the logit scale; forecasts of 0 and 1 join the nearest one strictly between."""
    value, outcome, weight = points.value, points.outcome.astype(np.float64), points.weights
    begin, end = int(value[0] == 0.0), value.size - int(value[-1] == 1.0)
    if begin:
        outcome[1] += outcome[0]
        weight[1] += weight[0]
    if end < value.size:
        outcome[end - 1] += outcome[end]
        weight[end - 1] += weight[end]
    return Points(logit(value[begin:end]), outcome[begin:end], weight[begin:end])


def points_of(tally: Tally) -> Points:
    """Return what smoothers are fitted to, with weights that count as repetitions."""
    weight = tally.weight.astype(np.float64)
    if tally.unit_weights or (tally.weight_total < _MOST_COUNTED and np.array_equal(weight, np.rint(weight))):
        return Points(tally.forecast, tally.outcome, weight)
    unit = tally.weight_total / tally.row_total
    return Points(tally.forecast, tally.outcome / unit, weight / unit)


def isotonic_curve(tally: Tally, *, increasing: bool = True) -> FloatArray:
    """Return the isotonic (or antitonic) regression of the outcomes at each distinct forecast."""
    if increasing and tally.unit_weights:
        return tally.isotonic.curve
    points = points_of(tally)
    return isotonic_fit(points.outcome / points.weights, points.weights, increasing=increasing).curve


def _isotonic(points: Points, _: Chosen) -> Rates:
    return Steps(points.value, isotonic_fit(points.outcome / points.weights, points.weights).curve)


def _loess(points: Points, chosen: Chosen) -> Rates:
    return loess(points, chosen.span or 1.0)


def _lowess(points: Points, chosen: Chosen) -> Rates:
    return lowess(points, chosen.span or 1.0)


def _splines(points: Points, chosen: Chosen) -> Rates:
    """Fit a logistic regression on restricted cubic splines, as R's ``lrm(y ~ rcs(value, knots))``."""
    knots = spline_knots(points, chosen.knots or 0)
    parted = separation(points)
    if parted is not None:
        why = (
            "every outcome is the same"
            if parted.endswith("events")
            else "the forecasts separate the outcomes perfectly"
        )
        raise UndefinedError(
            f"{why}, so that no logistic curve on splines fits", remedy="take smoother='isotonic' or 'loess'"
        )

    def features(value: FloatArray) -> FloatArray:
        return spline_basis(value, knots)

    curve = fit_logistic(points, features, pooled=pool(points, size=_START_POINTS))
    if not curve.settled:
        raise UndefinedError(
            "the logistic fit of the splines does not settle: forecasts part the outcomes, or nearly so, somewhere",
            remedy="take fewer knots, or smoother='isotonic' or 'loess'",
        )
    return lambda places: expit(curve.level + curve.slopes @ (features(places) - curve.centres[:, None]))


def spline_knots(points: Points, count: int) -> FloatArray:
    """Return the knots of R's Hmisc: quantiles from 0.05 to 0.95 (0.1 to 0.9 for 3, 0.025 to 0.975 for 7).

    Few values have a knot at each but the outer ones. Of fewer than 100 rows the outer knots are the fifth from each
    end. Where at least 5% of the rows lie on the lowest or highest value, and on no other, the knot there is the next
    value.
    """
    value, weight = points.value, points.weights
    if value.size - 2 <= count:
        knots = value[1:-1]
    else:
        share = weight / weight.sum()
        tied = bool(share[1:-1].max() < _TIED)
        ends = [[value[1]] if tied and share[0] >= _TIED else [], [value[-2]] if tied and share[-1] >= _TIED else []]
        begin, end = 2 * len(ends[0]), value.size - 2 * len(ends[1])
        knots = np.concatenate([ends[0], _inner_knots(value[begin:end], weight[begin:end], count, ends), ends[1]])
    knots = np.unique(knots)
    if knots.size < 3:
        raise UndefinedError(
            f"splines need at least 3 knots, and these {value.size} distinct forecasts give {knots.size}",
            remedy="take smoother='isotonic'",
        )
    return knots


def _inner_knots(value: FloatArray, weight: FloatArray, count: int, ends: list[list[Any]]) -> FloatArray:
    outer = 0.1 if count == 3 else 0.05 if count <= 6 else 0.025
    left = count - len(ends[0]) - len(ends[1])
    if left == 1:
        return np.array(quantiles(value, weight, (0.5,)))
    shares = np.linspace(0.5 if left == 2 else outer, 1.0 - outer, left)
    knots = np.array(quantiles(value, weight, tuple(shares.tolist())))
    total = float(weight.sum())
    if total < _FEW_ROWS:
        through = np.cumsum(weight)
        fifth, last_fifth = np.searchsorted(through, [_FIFTH + 1.0 - 1e-9, total - _FIFTH - 1e-9])
        if not ends[0]:
            knots[0] = value[fifth]
        if not ends[1]:
            knots[-1] = value[last_fifth]
    return knots


def spline_basis(value: FloatArray, knots: FloatArray) -> FloatArray:
    """Return the restricted cubic splines: the value itself, and cubics that are linear beyond the outer knots."""
    last, before = knots[-1], knots[-2]
    unit = (last - knots[0]) ** (2.0 / 3.0)

    def cubed(knot: float) -> FloatArray:
        above = np.maximum((value - knot) / unit, 0.0)
        cube: FloatArray = above * above * above
        return cube

    end, next_to_end = cubed(last), cubed(before)
    bends = [
        cubed(knot) + ((before - knot) * end - (last - knot) * next_to_end) / (last - before) for knot in knots[:-2]
    ]
    return np.stack([value, *bends])


SMOOTHERS = {
    each.name: each
    for each in (
        Smoother("isotonic", "isotonic regression (CORP)", "probability", None, None, _isotonic, smooth=False),
        Smoother("loess", "loess", "probability", 0.75, None, _loess),
        Smoother("lowess", "lowess", "logit", 2.0 / 3.0, None, _lowess),
        Smoother("splines", "restricted cubic splines", "logit", None, 5, _splines, inside=True),
    )
}
"""The smoothers by name."""


def check_smoother(smoother: Any, span: Any = None, knots: Any = None, scale: Any = None) -> Chosen:
    """Return a smoother with its settings; what has no meaning for it is refused."""
    kind = SMOOTHERS[check_choice(smoother, "smoother", tuple(SMOOTHERS))]
    for name, given, usual in (("span", span, kind.span), ("knots", knots, kind.knots)):
        if given is not None and usual is None:
            who = " or ".join(repr(each.name) for each in SMOOTHERS.values() if getattr(each, name) is not None)
            raise InputError(
                f"has no meaning for smoother={kind.name!r}", argument=name, remedy=f"leave it out, or take {who}"
            )
    return Chosen(
        smoother=kind,
        span=kind.span if span is None else check_number(span, "span", low=1e-3, high=1.0),
        knots=kind.knots if knots is None else int(check_number(knots, "knots", low=3, high=20, whole=True)),
        scale=kind.scale if scale is None else _check_scale(scale),
    )


def _check_scale(scale: Any) -> Scale:
    return "logit" if check_choice(scale, "scale", ("probability", "logit")) == "logit" else "probability"
