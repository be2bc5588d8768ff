"""Expected calibration error: mean |event rate - forecast|, and what continuous forecasts make of it.

.. [1] Rossellini, Soloff, Barber, Ren, Willett (2025), Can a calibration metric be both testable and actionable?
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import CalibrationWarning, InputError
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, IntArray
from calibrant.core.voices import Either, Phrase
from calibrant.rows.asked import asked_of_classes
from calibrant.rows.checks import (
    Observations,
    check_choice,
    check_flag,
    check_forecasts,
    check_number,
    check_same_index,
    check_weights,
)
from calibrant.rows.classes import QuestionsAsked
from calibrant.rows.given import given_tally
from calibrant.rows.grids import COARSE_GRID
from calibrant.rows.intake import RowsLike, as_source, as_tally
from calibrant.rows.questions import Questions
from calibrant.rows.refinement import TOLERANCE, refine
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally, Totals

FEW_ROWS = 10
"""A forecast with fewer rows than this says little about its own event rate."""


def expected_calibration_error(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    n_bins: int | None = None,
    strategy: Literal["uniform", "quantile"] = "uniform",
    norm: Literal["l1", "l2", "max"] = "l1",
    debias: bool = False,
    classes: ArrayLike | None = None,
    questions: QuestionsAsked | None = None,
    multilabel: bool = False,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> float:
    """Mean distance between forecast and event rate, per forecast or per bin: the expected calibration error (ECE).

    Without bins it is the plug-in: sum over distinct forecasts v of |sum of (y - p) at v| / n. That means something
    only when forecasts repeat. For nearly continuous forecasts each stands alone, its "event rate" is 0 or 1, and the
    plug-in measures noise: a warning says so. With bins it is the ECE of the *binned* forecast, another forecaster, and
    can be near zero when the true ECE is large. `cutoff_calibration_error` has neither problem.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `cutoff_calibration_error`.
    n_bins : int, optional
        Number of bins; None for the plug-in over distinct forecasts.
    strategy : {"uniform", "quantile"}
        Bins of equal width, each open below and closed above as in scikit-learn (0 joins the first); or of equal
        weight, where each forecast belongs to the bin that holds the middle of its rows, so that ties stay together.
    norm : {"l1", "l2", "max"}
        Mean, root mean square, or largest distance over the bins.
    debias : bool
        For ``norm="l2"``: subtract from each bin's squared distance the part that is noise, var(y)/n (Kumar, Liang, Ma
        2019). Needs unit weights and at least two rows a bin.
    classes, questions, multilabel
        As in `cutoff_calibration_error`, for ``y_prob`` of shape (n, K): "confidence" is what most packages call the
        ECE of a classifier, "classwise" the mean over the classes (Kull et al. 2019; root mean square for "l2",
        largest for "max"), "top_label" the mean over the rows of the ECE among those of the same top label (Gupta and
        Ramdas 2022).

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> expected_calibration_error([0, 0, 1, 0] * 5 + [0, 1, 1, 1] * 5, [0.5] * 20 + [0.75] * 20)
    0.125
    >>> round(expected_calibration_error([0, 1, 0, 1], [0.1, 0.2, 0.8, 0.9], n_bins=2), 12)
    0.35
    """
    check_choice(strategy, "strategy", ("uniform", "quantile"))
    check_choice(norm, "norm", ("l1", "l2", "max"))
    if check_flag(debias, "debias") and norm != "l2":
        raise InputError(
            f"needs norm='l2', got norm={norm!r}: only the squared distance has a known noise part", argument="debias"
        )
    family = asked_of_classes(y_true, y_prob, classes, questions, multilabel, sample_weight, pos_label)
    if family is not None:
        return _of_questions(
            family,
            norm,
            lambda rows: expected_calibration_error(rows, n_bins=n_bins, strategy=strategy, norm=norm, debias=debias),
        )
    if n_bins is None:
        bins: Totals = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
        note = continuity_note(bins)
        if note:
            warnings.warn(note, CalibrationWarning, stacklevel=2)
        number = np.arange(len(bins))
    else:
        count = int(check_number(n_bins, "n_bins", low=1, high=10**6, whole=True))
        source = as_source(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
        bins, number = _binned(source, count, strategy)
    return _expected(bins, np.flatnonzero(np.diff(number, prepend=-1)), norm, debias)


def _of_questions(family: Questions, norm: str, error: Callable[[Observations], float]) -> float:
    """Return the error of a single question, or the mean over several, as the norm has it."""
    if family.single:
        return error(family.column(0))
    if family.inside is None:
        errors = np.array([error(rows) for rows in family])
        share = np.full(errors.size, 1.0 / errors.size)
    else:
        held = [rows for rows in map(family.own_rows, range(len(family))) if rows.y_prob.size]
        errors = np.array([error(rows) for rows in held])
        weight = [rows.y_prob.size if rows.sample_weight is None else rows.sample_weight.sum() for rows in held]
        share = np.array(weight) / sum(weight)
    return _MEANS[norm](errors, share)


_MEANS: dict[str, Callable[[FloatArray, FloatArray], float]] = {
    "l1": lambda errors, share: float(errors @ share),
    "l2": lambda errors, share: math.sqrt(float(np.square(errors) @ share)),
    "max": lambda errors, share: float(errors[share > 0.0].max()),
}


def effective_support_size(
    y_prob: ArrayLike | Totals, gamma: float = 0.05, *, sample_weight: ArrayLike | None = None
) -> int:
    """Fewest forecast values that together carry a share 1 - gamma of the rows.

    Small for forecasts that repeat (a rounded score, a decision tree), near the number of rows for continuous ones.
    Any procedure that guarantees a small ECE must return forecasts whose effective support is small (Theorem 4.1 of
    [1]_).

    Parameters
    ----------
    y_prob : array-like of shape (n,), or Tally
        Forecasts.
    gamma : float in [0, 1]
        The share of the rows that may be left out.
    sample_weight : array-like of shape (n,), optional
        Nonnegative weights.

    Returns
    -------
    int
        The number of values.

    Examples
    --------
    >>> effective_support_size([0.1, 0.1, 0.1, 0.2, 0.2, 0.7], gamma=0.2)
    2
    """
    left_out = check_number(gamma, "gamma", low=0.0, high=1.0)
    if isinstance(y_prob, Totals):
        weight: npt.NDArray[Any] = given_tally(y_prob, None, sample_weight, None).weight
    else:
        forecasts = check_forecasts(y_prob)
        row_weight = check_weights(sample_weight, forecasts.size)
        check_same_index(y_prob=y_prob, sample_weight=sample_weight)
        _, inverse = np.unique(forecasts, return_inverse=True)
        weight = np.bincount(inverse, weights=row_weight)
    carried = np.cumsum(np.sort(weight)[::-1])
    needed = (1.0 - left_out) * carried[-1] * (1.0 - TOLERANCE)
    return int(np.searchsorted(carried, needed)) + 1


USELESS_LIMIT = "useless_limit"
"""The code of a note that a limit says nothing, however many rows there are."""


def continuity_note(tally: Totals) -> Phrase | None:
    """Return why the ECE plug-in means little on these forecasts, or None when most of them repeat.

    Forecasts of 0 and 1 that all came true have no error, whatever is beside them: rows outside of a group or a pair of
    classes are such ones, and no sign that forecasts repeat.
    """
    lonely = lonely_rows(tally)
    sure = (tally.low == tally.high) & ((tally.low == 0.0) | (tally.low == 1.0)) & (tally.residual == 0.0)
    aside = int(tally.rows[sure & (tally.rows >= FEW_ROWS)].sum())
    if 2 * lonely <= tally.row_total - aside:
        return None
    return Phrase(
        "the ECE plug-in compares each distinct forecast with the event rate at that very forecast, but {lonely:,} of "
        "{rows:,} rows{aside} share theirs with fewer than {few} rows, so it mostly measures noise (no procedure can "
        "estimate the ECE of continuous forecasts: Theorem 4.1 of Rossellini et al. 2025). Use {instead}.",
        code="continuous_forecasts",
        lonely=lonely,
        rows=tally.row_total - aside,
        aside=" (not counting forecasts of 0 and 1 that all came true)" if aside else "",
        few=FEW_ROWS,
        instead=Either(
            "cutoff_calibration_error, or n_bins= for the ECE of the binned forecast; ignore this if y_true holds "
            "exact event probabilities",
            "the Cutoff error, or ece_binned, the ECE of the binned forecast",
        ),
    )


def lonely_rows(tally: Totals) -> int:
    """Return how many rows share their forecast with fewer than `FEW_ROWS` rows, themselves included."""
    return int(tally.rows[tally.rows < FEW_ROWS].sum())


def plug_in_error(tally: Tally) -> float:
    """Return the ECE plug-in of a tally without a warning."""
    return float(np.abs(tally.residual).sum()) / tally.weight_total


def _binned(source: Tally | RowSource, count: int, strategy: str) -> tuple[Totals, IntArray]:
    """Return ordered entries, each inside one bin, and the bin number of each."""

    def torn(table: Totals) -> IntArray:
        first, last = _bin_numbers(table, count, strategy)
        return np.flatnonzero(first != last)

    table = refine(source, torn, COARSE_GRID)
    return table, _bin_numbers(table, count, strategy)[0]


def _bin_numbers(table: Totals, count: int, strategy: str) -> tuple[IntArray, IntArray]:
    """Return the bins of the lowest and of the highest forecast of each entry."""
    if strategy == "uniform":
        edges = np.linspace(0.0, 1.0, count + 1)[1:-1]
        lowest = np.searchsorted(edges, table.low)
        return lowest, lowest if table.high is table.low else np.searchsorted(edges, table.high)
    through = np.cumsum(table.weight, dtype=np.float64)
    before = through - table.weight
    middle = (before + through) / 2.0
    point = table.low == table.high

    def number(position: FloatArray) -> IntArray:
        shares = np.where(point, middle, position) / through[-1]
        bins: IntArray = np.minimum((shares * count + 1e-9).astype(np.int64), count - 1)  # rounding moves no middle
        return bins

    return number(before), number(through)


def _expected(table: Totals, starts: IntArray, norm: str, debias: bool) -> float:
    weight = np.add.reduceat(table.weight, starts).astype(np.float64)
    residual = np.add.reduceat(table.residual, starts)
    if norm == "l1":
        return float(np.abs(residual).sum()) / float(weight.sum())
    distance = np.abs(residual) / weight
    if norm == "max":
        return float(distance.max())
    square = np.square(distance)
    if debias:
        square -= _noise(table, starts, weight)
    return math.sqrt(max(float(square @ weight) / float(weight.sum()), 0.0))


def _noise(table: Totals, starts: IntArray, weight: FloatArray) -> FloatArray:
    """Return the estimated variance of each bin's mean outcome."""
    if not table.unit_weights:
        raise InputError("debias=True needs unit weights: the noise of a weighted bin is not a function of its weight")
    if (weight < 2.0).any():
        raise InputError(
            f"debias=True needs at least two rows in every bin, and {int((weight < 2.0).sum())} bins have one",
            remedy="use fewer bins or strategy='quantile'",
        )
    if not table.binary_outcomes:
        raise InputError("debias=True needs 0/1 outcomes: for fractions the noise of a bin is not known from its mean")
    mean = np.add.reduceat(table.outcome, starts) / weight
    noise: FloatArray = mean * (1.0 - mean) / (weight - 1.0)
    return noise
