"""Hints: what rows look like when one of the commonest silent mistakes was made, and what to do about it.

A hint is a note on a result, never an error: each speaks only where chance and bad calibration are no explanation. All
but those on single forecasts are functions of sums over cells of one grid, which every source of rows gives alike.
"""

from __future__ import annotations

import math

import numpy as np

from calibrant.core.logistic import logit
from calibrant.core.types import FloatArray, IntArray
from calibrant.core.voices import Either, Phrase
from calibrant.core.words import counted, percent
from calibrant.rows.grids import COARSE_GRID
from calibrant.rows.runs import group_starts, prefix_sums
from calibrant.rows.sources import FEW_ROWS
from calibrant.rows.tally import Tally, Totals
from calibrant.rows.weights import effective_rows

MISTAKES = ("other_class", "one_class", "hard_predictions", "repeated_rows", "fitted_rows")
"""The codes of all hints."""

FALLING = -5.0
"""Standard errors by which events have to be rarer at higher forecasts."""

EXPECTED = 10.0
"""Cases of a class that have to be forecast where there is none: calibrated rows have none once in 20,000 times."""

TOO_NEAR = 1.0 / 300.0
"""Standard errors within which slope and intercept are nearer to 1 and 0 than rows that are new to a model get: once in
a hundred thousand times."""

FEWEST_FORECASTS = 20
"""Distinct forecasts below which slope and intercept can be 1 and 0 by chance."""

EXACT_BY_CHANCE = 1e-5
"""The chance of event rates that equal the forecasts exactly, above which they may be luck."""

NEIGHBOURS = 10
"""Forecasts on either side whose event rates say what outcomes to expect of a forecast that rows share."""

AGREEING = 6.0
"""Standard errors by which outcomes at shared forecasts have to agree more often than independent ones, ..."""

MIXED_EXPECTED = 40.0
"""... forecasts with both outcomes that have to be expected, more than jumps of the event rate can feign, ..."""

MIXED_SHARE = 1.0 / 3.0
"""... and the share of those below which rows are repeated, rather than event rates uneven."""

_ROUNDING = 1e-9
_MOST_SHARED = 20_000  # shared forecasts that are looked at, evenly spread where there are more
_FEW_ENTRIES = 50_000  # up to so many it is quicker to find the cell of each than the border of each cell
_FIRST_LOOK = 100


def row_hints(table: Totals, *, every_forecast: bool = False) -> tuple[Phrase, ...]:
    """Return what these rows make one suspect.

    ``every_forecast`` says that a tally is at hand whatever the source of the rows. Otherwise tallies of many rows are
    not looked at forecast by forecast, since other sources of them could not be: all are to answer alike.
    """
    found = [_hard_predictions(table), _one_class(table), _other_class(table)]
    if isinstance(table, Tally) and (every_forecast or table.row_total < FEW_ROWS):
        found.append(_repeated_rows(table))
    return tuple(hint for hint in found if hint is not None)


def fitted_hints(tally: Tally) -> tuple[Phrase, ...]:
    """Return whether rows agree with their forecasts so well that these must have been fitted to them."""
    if not tally.binary_outcomes:
        return ()
    what = None
    if _rates_are_exact(tally):
        what = "the event rate at every forecast is exactly that forecast"
    elif _slope_is_exact(tally):
        what = "slope, intercept and O/E are nearer to 1, 0 and 1 than chance lets them come"
    if what is None:
        return ()
    return (
        Phrase(
            "{what}: perhaps the model, or its recalibration, was fitted to these rows. Judge it on rows that are new "
            "to both.",
            what=what,
            code="fitted_rows",
        ),
    )


def _hard_predictions(table: Totals) -> Phrase | None:
    if not table.binary_outcomes or table.low[0] not in (0.0, 1.0) or table.high[-1] not in (0.0, 1.0):
        return None
    if not ((table.low == table.high) & ((table.low == 0.0) | (table.low == 1.0))).all():
        return None
    return Phrase(
        "every forecast is exactly 0 or 1: perhaps these are predicted classes. Pass probabilities{how}.",
        how=Either(", as predict_proba gives them", ", not the classes that a model predicts"),
        code="hard_predictions",
    )


def _one_class(table: Totals) -> Phrase | None:
    """Notice outcomes of one class where the forecasts expect several of the other one."""
    total, events = table.weight_total, table.outcome_total
    if events == 0.0:
        only, other, missing = "0", "event", events - table.residual_total
    elif events >= total * (1.0 - _ROUNDING) and bool((table.outcome >= table.weight * (1.0 - _ROUNDING)).all()):
        only, other, missing = "1", "non-event", table.residual_total
    else:
        return None
    expected = missing / total * effective_rows(table)
    if expected < EXPECTED:
        return None
    return Phrase(
        "every outcome is {only}, and the forecasts expect {expected}: perhaps another column or another label holds "
        "what happened. Check the outcomes.",
        only=only,
        expected=counted(round(expected), other),
        code="one_class",
    )


def _other_class(table: Totals) -> Phrase | None:
    """Notice that events go with low forecasts: of forecasts as ranks, the mean among events is too low for chance.

    If outcomes have nothing to do with forecasts, the sum of w y (rank - 1/2) has mean 0 and a variance of at most
    q (1 - q) times the sum of w^2 (rank - 1/2)^2, with q the event rate.
    """
    weight, squares, outcome = _on_coarse_grid(table)
    total, events = float(weight.sum()), float(outcome.sum())
    if not 0.0 < events < total:
        return None
    rank = (np.cumsum(weight) - weight / 2.0) / total - 0.5
    rate = events / total
    variance = rate * (1.0 - rate) * float(squares @ np.square(rank))
    found = float(outcome @ rank)
    if variance <= 0.0 or found > FALLING * math.sqrt(variance):
        return None
    area = 0.5 + found / events / (1.0 - rate)
    return Phrase(
        "events are rarer where forecasts are higher (AUC {area:.2f}): perhaps these are probabilities of the other "
        "class. Pass those of the event{how}.",
        area=min(max(area, 0.0), 1.0),
        how=Either(", for two classes predict_proba(X)[:, 1]"),
        code="other_class",
    )


def _on_coarse_grid(table: Totals) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return weight, squared weight and outcome per cell of one grid, in whose cells all finer entries lie."""
    if len(table) <= _FEW_ENTRIES:
        starts = group_starts(COARSE_GRID.index(table.low))
    else:
        borders = np.searchsorted(table.low, np.arange(COARSE_GRID.size) / COARSE_GRID.scale)
        starts = np.unique(borders[borders < len(table)])
    weight, outcome = (np.add.reduceat(column, starts).astype(np.float64) for column in (table.weight, table.outcome))
    if table.unit_weights:
        return weight, weight, outcome
    return weight, np.add.reduceat(table.weight_square, starts).astype(np.float64), outcome


def _repeated_rows(tally: Tally) -> Phrase | None:
    """Notice rows that share a forecast and agree in their outcomes far more often than independent ones would.

    Of m rows of event rate q at one forecast all agree with chance q^m + (1 - q)^m. Its neighbours say what q is: each
    forecast counts once, itself not at all. Forecasts that few rows share tell repeated rows from uneven event rates,
    which leave some outcomes mixed; a jump of the rate reaches no more than its neighbours.
    """
    if not tally.binary_outcomes or tally.row_total == len(tally):
        return None
    shared = np.flatnonzero(tally.rows > 1)
    if shared.size < MIXED_EXPECTED:
        return None
    shared = shared[:: -(-shared.size // _MOST_SHARED)]
    agreeing = _chance_to_agree(tally, shared)
    expected = float((1.0 - agreeing).sum())
    if expected < MIXED_EXPECTED:
        return None
    outcome, weight = tally.outcome[shared], tally.weight[shared]
    mixed = int(np.count_nonzero((outcome > 0.0) & (outcome < weight * (1.0 - _ROUNDING))))
    error = math.sqrt(float((agreeing * (1.0 - agreeing)).sum()))
    if mixed > MIXED_SHARE * expected or expected - mixed < AGREEING * error:
        return None
    return Phrase(
        "{mixed} of the forecasts that several rows share have both outcomes, where independent rows would have them "
        "at {expected}: perhaps cases are listed several times. List each once: limits and tests take rows to be "
        "independent.",
        mixed=percent(mixed / shared.size),
        expected=percent(expected / shared.size),
        code="repeated_rows",
    )


def _chance_to_agree(tally: Tally, shared: IntArray) -> FloatArray:
    """Return the chance that all rows of each of some forecasts have the same outcome, if they are independent."""
    mean = tally.mean_outcome
    sums = prefix_sums(mean)
    begin, end = np.maximum(shared - NEIGHBOURS, 0), np.minimum(shared + NEIGHBOURS + 1, len(tally))
    rate = np.clip((sums[end] - sums[begin] - mean[shared]) / (end - begin - 1), 0.0, 1.0)
    agree: FloatArray = rate ** tally.rows[shared] + (1.0 - rate) ** tally.rows[shared]
    return agree


def _slope_is_exact(tally: Tally) -> bool:
    """Return whether calibrated forecasts are the most likely logistic curve of themselves, nearly to the last digit.

    Slope 1 and intercept 0 are the most likely ones where the sums of w r and of w r logit(p) are 0.
    """
    if len(tally) < FEWEST_FORECASTS:
        return False
    if abs(tally.residual_total) > TOO_NEAR * math.sqrt(float(tally.weight_square.sum()) / 4.0):
        return False
    forecast = tally.forecast
    variance = tally.weight_square * (forecast * (1.0 - forecast))
    information = float(variance.sum())
    if information <= 0.0 or abs(tally.residual_total) > TOO_NEAR * math.sqrt(information):
        return False
    inside = np.flatnonzero((forecast > 0.0) & (forecast < 1.0))
    place, variance = logit(forecast[inside]), variance[inside]
    place = place - float(place @ variance) / information
    spread = float(variance @ np.square(place))
    return spread > 0.0 and abs(float(place @ tally.residual[inside])) <= TOO_NEAR * math.sqrt(spread)


def _rates_are_exact(tally: Tally) -> bool:
    """Return whether the event rate at every forecast equals it, and too many of them do for luck.

    The most likely number of events of m rows has a chance of about 1 / sqrt(2 pi m p (1 - p)).
    """
    if not tally.unit_weights:
        return False
    for look in (slice(_FIRST_LOOK), slice(None)):
        if bool((np.abs(tally.residual[look]) > _ROUNDING * tally.rows[look]).any()):
            return False
    forecast = tally.forecast
    variance = tally.rows * (forecast * (1.0 - forecast))
    chance = np.minimum(1.0, 1.0 / np.sqrt(2.0 * math.pi * np.maximum(variance, _ROUNDING)))
    return float(np.log(chance).sum()) < math.log(EXACT_BY_CHANCE)
