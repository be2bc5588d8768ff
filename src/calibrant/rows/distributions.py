"""Forecasts of a real outcome, checked: ensembles, quantiles and distribution functions.

What is said of `rows.checks` holds here: every rule has one message that names the argument, the place, the value and
the remedy, and nothing is clipped, dropped or guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from calibrant.core.errors import InputError
from calibrant.core.types import ArrayLike, FloatArray
from calibrant.core.words import shown
from calibrant.rows.arrays import as_numbers, check_finite
from calibrant.rows.checks import check_forecasts, check_same_index, check_scores
from calibrant.rows.dimensions import with_members
from calibrant.rows.sweeps import CurveForecasts, StepForecasts, ThresholdForecasts

ForecastKind = Literal["ensemble", "quantiles", "cdf"]
FORECAST_KINDS: tuple[str, ...] = get_args(ForecastKind)

Quantiles: TypeAlias = tuple[ArrayLike, ArrayLike]
"""Levels in (0, 1), and for each row the values at these levels."""

DistributionFunction: TypeAlias = Callable[[Any], Any]
"""Takes a threshold, returns for each row the probability that the outcome is at most that."""

_FAR = 1e300  # many such distances add up to a number

ThresholdsLike: TypeAlias = ArrayLike | Literal["all"]


@dataclass(frozen=True, eq=False)
class Distributions:
    """Checked forecasts of a real outcome.

    Attributes
    ----------
    kind : str
        "ensemble", "quantiles" or "cdf".
    outcome : array of float64
        The outcomes.
    values : array of shape (n, m)
        Members or quantiles, sorted in each row; none for distribution functions.
    levels : array of shape (m + 1,)
        What the step function is before the first value, 0, and after each of them.
    stated : array of shape (m,)
        How probable it is, by what was forecast, that the outcome is below each value: k / (m + 1) for members.
    cdf : callable or None
        The distribution function; None for step functions.
    """

    kind: str
    outcome: FloatArray
    values: FloatArray
    levels: FloatArray
    stated: FloatArray
    cdf: DistributionFunction | None = None

    @property
    def members(self) -> int | None:
        """Members or quantiles of each row; None for distribution functions."""
        return self.values.shape[1] if self.cdf is None else None

    def at(self, thresholds: Any) -> tuple[ThresholdForecasts, FloatArray | None]:
        """Return the forecasts at "all" thresholds or at those of a list, and the list."""
        if isinstance(thresholds, str):
            return self._at_all(thresholds), None
        places = _check_places(thresholds)
        if self.cdf is not None:
            return CurveForecasts(self.outcome, self.cdf, places), places
        found = self._at_all("all")
        beyond = np.append(places, np.inf)
        # A forecast says the same at the listed thresholds if it rises at the next of them.
        return replace(
            found,
            outcome=beyond[np.searchsorted(places, found.outcome)],
            values=beyond[np.searchsorted(places, found.values)],
            highest=float(places[-1]),
        ), places

    def _at_all(self, thresholds: str) -> StepForecasts:
        if thresholds != "all":
            raise InputError(
                f"must be 'all' or a list of numbers, got {thresholds!r}", argument="thresholds", value=thresholds
            )
        if self.cdf is not None:
            raise InputError(
                "cannot be 'all' for cdf=, which may change anywhere",
                argument="thresholds",
                value=thresholds,
                remedy="pass a list of thresholds that was chosen without looking at these outcomes",
            )
        return StepForecasts(self.outcome, self.values, self.levels)


def check_distributions(z: Any, ensemble: Any, quantiles: Any, cdf: Any) -> Distributions:
    """Check outcomes and their forecasts, of which there must be one kind."""
    given = {"ensemble": ensemble, "quantiles": quantiles, "cdf": cdf}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise InputError(
            "pass one of ensemble=, quantiles= and cdf="
            + (f", got {' and '.join(f'{name}=' for name in named)}" if named else ", got none of them")
        )
    if ensemble is not None:
        z, ensemble = with_members(z, ensemble, "ensemble")
    elif isinstance(quantiles, Sequence) and len(quantiles) == 2:
        z, values = with_members(z, quantiles[1], "values of quantiles")
        quantiles = (quantiles[0], values)
    outcome = check_scores(z, name="z") + 0.0  # one zero
    if cdf is not None:
        if not callable(cdf):
            raise InputError(
                f"must be a function of a threshold, got {type(cdf).__name__}",
                argument="cdf",
                remedy="as in cdf=lambda t: scipy.stats.norm.cdf(t, mean, sd); for members use ensemble=",
            )
        return Distributions("cdf", outcome, np.empty((outcome.size, 0)), np.empty(0), np.empty(0), cdf)
    if ensemble is not None:
        values = np.sort(_check_matrix(ensemble, "ensemble", outcome.size, "member"), axis=1)
        check_same_index(z=z, ensemble=ensemble)
        _check_reach(outcome, values, "ensemble")
        count = values.shape[1]
        levels, stated = np.arange(count + 1) / count, np.arange(1, count + 1) / (count + 1)
        return Distributions("ensemble", outcome, values, levels, stated)
    stated, values = _check_quantiles(quantiles, outcome.size)
    check_same_index(z=z, quantiles=quantiles[1])
    _check_reach(outcome, values, "values of quantiles")
    levels = np.concatenate([[0.0], (stated[1:] + stated[:-1]) / 2.0, [1.0]])
    return Distributions("quantiles", outcome, values, levels, stated)


def _check_places(thresholds: Any) -> FloatArray:
    places: FloatArray = np.unique(check_scores(np.atleast_1d(thresholds), name="thresholds"))
    return places


def _check_matrix(values: Any, name: str, rows: int, what: str) -> FloatArray:
    """Return a table of finite numbers as float64, one line per row."""
    if hasattr(values, "detach"):
        values = values.detach()
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        raise _bad_entry(name, np.argwhere(np.ma.getmaskarray(values))[0], "is masked", None, what)
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"cannot be read as a table ({error})", argument=name, remedy=f"pass as many {what}s for every row"
        ) from error
    if array.ndim != 2:
        remedy = f"pass a table with a line per row and a column per {what}"
        if array.ndim == 1 and array.size == rows:
            remedy = f"one {what} per row is {name}.reshape(-1, 1)"
        raise InputError(f"has shape {array.shape}, not two dimensions", argument=name, remedy=remedy)
    if array.shape[0] != rows:
        remedy = f"pass {name}.T" if array.shape[1] == rows else f"pass a line of {what}s per outcome"
        raise InputError(
            f"has {array.shape[0]:,} lines for {rows:,} outcomes", argument=name, value=array.shape[0], remedy=remedy
        )
    if array.shape[1] == 0:
        raise InputError(f"has no {what}s", argument=name, remedy=f"at least one {what} is needed")
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"has dtype {array.dtype}, not numbers", argument=name, remedy="convert it with astype(float) first"
        )
    table: FloatArray = np.ascontiguousarray(array, dtype=np.float64) + 0.0
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        value = float(table[row, column])
        said = "is missing" if np.isnan(value) else f"is {shown(value)}"
        raise _bad_entry(name, np.array([row, column]), said, value, what)
    return table


def _check_reach(outcome: FloatArray, values: FloatArray, name: str) -> None:
    """Refuse numbers whose distances float64 cannot add up."""
    low, high = min(float(outcome.min()), float(values.min())), max(float(outcome.max()), float(values.max()))
    if not high / _FAR - low / _FAR <= 1.0:
        raise InputError(
            f"and z reach from {low:g} to {high:g}, too far for float64 to add up their distances",
            argument=name,
            remedy="divide both by a power of ten",
        )


def _bad_entry(name: str, place: Any, said: str, value: float | None, what: str) -> InputError:
    row, column = (int(each) for each in place)
    return InputError(
        f"has {what} {column} that {said}",
        argument=name,
        position=row,
        value=value,
        remedy="every value must be a finite number: drop the row or fill it in",
    )


def _check_quantiles(quantiles: Any, rows: int) -> tuple[FloatArray, FloatArray]:
    if not isinstance(quantiles, Sequence) or isinstance(quantiles, str) or len(quantiles) != 2:
        raise InputError(
            f"must be a pair of levels and values, got {type(quantiles).__name__}",
            argument="quantiles",
            remedy="as in quantiles=([0.1, 0.5, 0.9], values), values with a column per level",
        )
    name = "levels of quantiles"
    levels = as_numbers(quantiles[0], name)
    check_finite(levels, name)
    bad = np.flatnonzero((levels <= 0.0) | (levels >= 1.0))
    if bad.size:
        position = int(bad[0])
        raise InputError(
            f"is {shown(levels[position])}, outside (0, 1)",
            argument=name,
            position=position,
            value=float(levels[position]),
            remedy="divide percentages by 100, and leave out smallest and largest values",
        )
    falls = np.flatnonzero(np.diff(levels) <= 0.0)
    if falls.size:
        position = int(falls[0]) + 1
        raise InputError(
            f"is {shown(levels[position])} after {shown(levels[position - 1])}",
            argument=name,
            position=position,
            value=float(levels[position]),
            remedy="sort the levels, and the columns of the values with them",
        )
    if levels.size < 2:
        raise InputError(
            f"has one level, {shown(levels[0])}, which is no distribution",
            argument=name,
            value=float(levels[0]),
            remedy="pass two levels or more; for one, compare the share of z <= value with the level",
        )
    values = _check_matrix(quantiles[1], "values of quantiles", rows, "level")
    if values.shape[1] != levels.size:
        raise InputError(
            f"has {values.shape[1]:,} columns for {levels.size:,} levels",
            argument="values of quantiles",
            value=values.shape[1],
            remedy="pass a column per level",
        )
    crossed = np.argwhere(np.diff(values, axis=1) < 0.0)
    if crossed.size:
        row, column = (int(each) for each in crossed[0])
        raise InputError(
            f"falls from {shown(values[row, column])} at level {shown(levels[column])} to "
            f"{shown(values[row, column + 1])} at level {shown(levels[column + 1])}",
            argument="values of quantiles",
            position=row,
            value=float(values[row, column + 1]),
            remedy="quantiles that cross are no distribution: sort each row, as in numpy.sort(values, axis=1)",
        )
    return levels, values


def check_transforms(values: Any, rows: int, name: str) -> FloatArray:
    """Return what a distribution function says of each row's own outcome."""
    found = check_forecasts(values, name=name)
    if found.size != rows:
        raise InputError(
            f"returned {found.size:,} values for {rows:,} outcomes",
            argument=name,
            value=found.size,
            remedy="given one outcome per row it must return one probability per row",
        )
    return found
