"""The logistic fits behind slope and intercepts: one with the slope free, and one with the slope held at 1."""

from __future__ import annotations

from functools import cached_property
from typing import Self

import numpy as np

from calibrant.core.errors import UndefinedError
from calibrant.core.laws import limit_reach
from calibrant.core.logistic import Curve, Points, fit_logistic, pool, separation
from calibrant.core.profiles import Coefficient, Profile
from calibrant.core.types import FloatArray
from calibrant.core.voices import Either, Phrase
from calibrant.measures.slope_results import COEFFICIENTS

INSIDE = Either("as in numpy.clip(y_prob, 1e-6, 1 - 1e-6)", "by 1e-6 say")
"""How to pull forecasts away from 0 and 1."""

_START_POINTS = 4096


class HeldFit:
    """The logistic fit through points at logits with the slope held at 1, and how sure it is.

    It exists wherever both outcomes occur: one forecast for all rows, or outcomes that the forecasts separate, do not
    matter to it.
    """

    names: tuple[str, ...] = COEFFICIENTS[2:]

    def __init__(self, points: Points) -> None:
        self._check(points)
        self.points = points
        self.pooled = pool(points, size=_START_POINTS)
        self.held = _settled(fit_logistic(points, _nothing, offset=lambda value: value, pooled=self.pooled))

    def _check(self, points: Points) -> None:
        if points.value.size == 0:
            raise UndefinedError("the intercept at slope 1 needs a forecast strictly between 0 and 1")
        _refuse_one_class(points, "the intercept at slope 1")

    @property
    def coefficients(self) -> dict[str, float]:
        """What was fitted, in the order of the names."""
        return {"intercept_at_unit_slope": self.held.intercept}

    @cached_property
    def profiles(self) -> dict[str, Profile]:
        """The profile of each coefficient."""
        return {"intercept_at_unit_slope": self._held_profile()}

    def _held_profile(self) -> Profile:
        return Profile(self.points, Coefficient(np.ones_like, None, lambda value: value), self.held.intercept)

    def again(self, points: Points) -> Self:
        """Fit the same to other points."""
        return type(self)(points)

    def profile_limits(self, level: float) -> dict[str, tuple[float, float]]:
        """Return the limits of each coefficient by its profile."""
        drop = limit_reach(level) ** 2
        if self.pooled.value.size == self.points.value.size:
            return {name: profile.limits(drop) for name, profile in self.profiles.items()}
        # The pooled points have their top elsewhere, by a small part of the way to a limit.
        few = self.again(self.pooled).profiles
        return {name: profile.limits(drop, few[name]) for name, profile in self.profiles.items()}


class FreeFit(HeldFit):
    """Both logistic fits through points at logits, free and with the slope held at 1, and how sure they are."""

    names = COEFFICIENTS

    def __init__(self, points: Points) -> None:
        super().__init__(points)
        self.free = _settled(fit_logistic(points, lambda value: value[None], pooled=self.pooled))

    def _check(self, points: Points) -> None:
        if points.value.size < 2 or points.value.min() == points.value.max():
            raise too_few()
        _refuse_one_class(points, "the calibration slope")
        if separation(points) is not None:
            raise UndefinedError(
                "the forecasts separate the outcomes perfectly, so the calibration slope is infinite",
                remedy="collect more rows",
            )

    @property
    def coefficients(self) -> dict[str, float]:
        """What was fitted, in the order of the names."""
        return {"slope": float(self.free.slopes[0]), "intercept": self.free.intercept, **super().coefficients}

    @cached_property
    def profiles(self) -> dict[str, Profile]:
        """The profile of each coefficient."""
        points = self.points
        slope, level = float(self.free.slopes[0]), self.free.level
        centre = float(self.free.centres[0])
        return {
            "slope": Profile(points, Coefficient(lambda value: value - centre, np.ones_like), slope, level),
            "intercept": Profile(points, Coefficient(np.ones_like, lambda value: value), self.free.intercept, slope),
            "intercept_at_unit_slope": self._held_profile(),
        }

    def log_likelihood_rises(self) -> tuple[float, float]:
        """Return by how much twice the log-likelihood rises from (0, 1) to the held fit, and from there to the free."""
        held = self.held.intercept
        from_zero = self.profiles["intercept_at_unit_slope"].dropped(0.0)
        return from_zero, self.profiles["intercept"].dropped(held, 1.0)


def too_few() -> UndefinedError:
    """Say that forecasts do not suffice for a slope."""
    return UndefinedError("the calibration slope needs at least two distinct forecasts strictly between 0 and 1")


def _nothing(value: FloatArray) -> FloatArray:
    return np.empty((0, value.size))


def _refuse_one_class(points: Points, what: str) -> None:
    """Refuse outcomes of one class, for which the likelihood has no maximum."""
    found = separation(points)
    if found in ("no events", "only events"):
        raise UndefinedError(
            f"every outcome that counts here is {'0' if found == 'no events' else '1'}",
            remedy=f"{what} needs both kinds",
        )


def _settled(curve: Curve) -> Curve:
    """Refuse a fit that the likelihood is too flat for."""
    if not curve.settled:
        raise UndefinedError(
            "the logistic fit of slope and intercept does not settle: some forecasts are so close to 0 or 1 that the "
            "likelihood is flat",
            remedy=Phrase("pull them inside, {how}, and say so in the report", how=INSIDE),
        )
    return curve
