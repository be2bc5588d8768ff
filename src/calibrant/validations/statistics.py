"""THE list of statistics of a validation: what each is called, when it is ideal, and how it is found on a tally.

Those that come out of one fit are computed together, once per resample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibrant.core.errors import InputError, UndefinedError
from calibrant.core.types import ArrayLike
from calibrant.decisions.benefits import net_benefit
from calibrant.measures.brier import brier_score, scaled_brier_score
from calibrant.measures.curves import distances
from calibrant.measures.discrimination import auroc
from calibrant.measures.slopes import Extremes, check_extremes, fit_coefficients
from calibrant.measures.smoothers import SmootherName, check_smoother, points_of
from calibrant.rows.checks import check_number
from calibrant.rows.tally import Tally


@dataclass(frozen=True)
class Settings:
    """What statistics are computed with.

    Attributes
    ----------
    smoother : str
        The calibration curve behind ICI, E50, E90, Emax and ECI.
    extremes : str or float
        What the slope does with forecasts of exactly 0 and 1.
    thresholds : tuple of float
        Where net benefit is taken.
    """

    smoother: SmootherName = "loess"
    extremes: Extremes = "leave_out"
    thresholds: tuple[float, ...] = ()


class Family(NamedTuple):
    """Statistics that come out of one computation, in the order of their names."""

    names: tuple[str, ...]
    compute: Callable[[Tally, Settings], Sequence[float]]


class Statistic(NamedTuple):
    """A number of a validation.

    Attributes
    ----------
    name : str
        The name of its field.
    title : str
        What people call it, in a table.
    meaning : str
        What it says, in a few words.
    ideal : float or None
        Its value for forecasts that are right; None where no value is.
    """

    name: str
    title: str
    meaning: str
    ideal: float | None


_LISTED = (
    Statistic("calibration_in_the_large", "Calibration in the large", "event rate minus mean forecast", 0.0),
    Statistic("observed_expected_ratio", "O/E ratio", "events for each one forecast", 1.0),
    Statistic("slope", "Calibration slope", "below 1: forecasts too extreme", 1.0),
    Statistic("intercept", "Calibration intercept", "fitted together with the slope", 0.0),
    Statistic("intercept_at_unit_slope", "Intercept at slope 1", "below 0: forecasts too high", 0.0),
    Statistic("ici", "ICI", "mean distance of the curve from the diagonal", 0.0),
    Statistic("e50", "E50", "median of that distance", 0.0),
    Statistic("e90", "E90", "90th percentile of that distance", 0.0),
    Statistic("emax", "Emax", "largest distance of the curve from the diagonal", 0.0),
    Statistic("eci", "ECI", "100 x mean squared distance of the curve", 0.0),
    Statistic("auroc", "AUROC (c statistic)", "how often an event is ranked above a row without; 0.5 by chance", None),
    Statistic("brier", "Brier score", "mean squared error of the forecasts", None),
    Statistic("brier_scaled", "Scaled Brier score", "share of the Brier score of the event rate alone saved", None),
)

CUTOFF = Statistic("cutoff", "Cutoff calibration error", "largest error collected on an interval of forecasts", 0.0)
"""What a certificate is about; its limits come from there."""

STATISTICS = {statistic.name: statistic for statistic in _LISTED}
"""Every statistic with one number, in the order of a table."""


BENEFIT = "net_benefit_at_"
"""What the names of net benefits at a threshold begin with."""


def title_of(name: str) -> str:
    """Return what people call a statistic, or a net benefit.

    Examples
    --------
    >>> title_of("auroc"), title_of("net_benefit_at_0.2")
    ('AUROC (c statistic)', 'Net benefit at 0.2')
    """
    return STATISTICS[name].title if name in STATISTICS else f"Net benefit at {name.removeprefix(BENEFIT)}"


def check_settings(smoother: Any, extremes: Any, thresholds: ArrayLike | None) -> Settings:
    """Check what statistics are computed with."""
    check_smoother(smoother)
    rule = check_extremes(extremes)
    given = () if thresholds is None else np.atleast_1d(np.asarray(thresholds, dtype=object)).tolist()
    checked = tuple(check_number(each, "thresholds", low=0.0, high=1.0) for each in given)
    outside = next((place for place, each in enumerate(checked) if not 0.0 < each < 1.0), None)
    if outside is not None:
        raise InputError(
            f"is {checked[outside]:g}, and acting from there on is acting always or never",
            argument="thresholds",
            position=outside,
            value=checked[outside],
            remedy="pass thresholds strictly between 0 and 1",
        )
    return Settings(smoother, rule, checked)


def _means(tally: Tally, settings: Settings) -> Sequence[float]:
    del settings
    expected = tally.forecast_total()
    ratio = tally.outcome_total / expected if expected > 0.0 else math.nan
    return tally.residual_total / tally.weight_total, ratio


def _slopes(tally: Tally, settings: Settings) -> Sequence[float]:
    return fit_coefficients(tally, settings.extremes)


def _curves(tally: Tally, settings: Settings) -> Sequence[float]:
    points = points_of(tally)
    return distances(points, check_smoother(settings.smoother).curve(points)(points.value))


def _ranks(tally: Tally, settings: Settings) -> Sequence[float]:
    del settings
    return (auroc(tally) if tally.binary_outcomes else math.nan,)


def _scores(tally: Tally, settings: Settings) -> Sequence[float]:
    del settings
    return (brier_score(tally),)


def _scaled_scores(tally: Tally, settings: Settings) -> Sequence[float]:
    del settings
    return (scaled_brier_score(tally),)


def _benefits(tally: Tally, settings: Settings) -> Sequence[float]:
    found = net_benefit(tally, thresholds=settings.thresholds).net_benefit
    return tuple(map(float, np.atleast_1d(found)))


_FAMILIES = (
    Family(("calibration_in_the_large", "observed_expected_ratio"), _means),
    Family(("slope", "intercept", "intercept_at_unit_slope"), _slopes),
    Family(("ici", "e50", "e90", "emax", "eci"), _curves),
    Family(("auroc",), _ranks),
    Family(("brier",), _scores),
    Family(("brier_scaled",), _scaled_scores),
)


class Plan:
    """Some statistics, and net benefit at the thresholds of the settings, found together on any number of tallies.

    Parameters
    ----------
    names : iterable of str
        Names of `STATISTICS`.
    settings : Settings
        What they are computed with.

    Examples
    --------
    >>> tally = Tally.from_arrays([0, 1, 1, 1], [0.25, 0.5, 0.75, 1.0])
    >>> plan = Plan(["auroc", "calibration_in_the_large"], Settings(thresholds=(0.6,)))
    >>> plan.names, plan(tally)
    (('auroc', 'calibration_in_the_large', 'net_benefit_at_0.6'), (1.0, 0.125, 0.5))
    """

    def __init__(self, names: Iterable[str], settings: Settings) -> None:
        self.statistics = tuple(names)
        self.settings = settings
        self.names = (*self.statistics, *(f"{BENEFIT}{at:g}" for at in settings.thresholds))
        self._families = [family for family in _FAMILIES if set(family.names) & set(self.statistics)]

    def __call__(self, tally: Tally) -> tuple[float, ...]:
        """Return the statistics in the order of ``names``; NaN for those that are undefined on these rows."""
        found: dict[str, float] = {}
        for family in self._families:
            try:
                found.update(zip(family.names, family.compute(tally, self.settings), strict=True))
            except UndefinedError:
                found.update(dict.fromkeys(family.names, math.nan))
        benefits = _benefits(tally, self.settings) if self.settings.thresholds else ()
        return (*(found[name] for name in self.statistics), *benefits)
