"""All measures at once, the relations between them, and the distance from calibration that follows from both."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, overload

import numpy as np

from calibrant.core.errors import UndefinedError
from calibrant.core.frames import frames_follow
from calibrant.core.types import ArrayLike, ClassLabel
from calibrant.core.voices import Phrase
from calibrant.core.words import rounded_down, rounded_up, significant_up
from calibrant.measures.brackets import bracket_smooth
from calibrant.measures.curves import curve_errors
from calibrant.measures.distance import ROUNDING, bound_distance, spacing_factor
from calibrant.measures.expected import (
    continuity_note,
    effective_support_size,
    expected_calibration_error,
    plug_in_error,
)
from calibrant.measures.groups import GroupMeasures
from calibrant.measures.questions import QuestionMeasures
from calibrant.measures.ratios import observed_expected_ratio
from calibrant.measures.registry import MEASURES
from calibrant.measures.results import PAPER, PROJECT, CalibrationDistance, Measures, Relation
from calibrant.measures.savings import largest_saving
from calibrant.measures.slopes import calibration_slope_intercept, intercept_at_unit_slope
from calibrant.measures.smoothers import check_smoother, isotonic_curve, points_of
from calibrant.measures.weighted import (
    bounded_variation_calibration_error,
    bounded_variation_spectrum,
    find_worst_interval,
    ks_calibration_error,
    smooth_calibration_error,
)
from calibrant.rows.asked import asked_of_classes, without_groups
from calibrant.rows.classes import FamilyAsked, QuestionsAsked, SingleAsked
from calibrant.rows.groups import are_grouped, by_group
from calibrant.rows.hints import fitted_hints, row_hints
from calibrant.rows.horizons import KNOWN_ALONE, HorizonRows, censoring_notes
from calibrant.rows.intake import GroupsLike, RowsLike, as_source, as_tally, in_groups
from calibrant.rows.questions import CUTOFF_OF_ROWS, Questions
from calibrant.rows.refinement import TooManyForecastsError, some_table, split_at_extremes, whole_tally
from calibrant.rows.savings import EVERY_THRESHOLD
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally

_BANDS = 10
_BINS = 15


@overload
def measure(y_true: GroupsLike, *, spectrum: bool = False) -> GroupMeasures: ...


@overload
def measure(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    spectrum: bool = False,
    by: None = None,
    classes: ArrayLike | None = None,
    questions: SingleAsked | None = None,
    multilabel: Literal[False] = False,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> Measures: ...


@overload
def measure(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    spectrum: bool = False,
    by: ArrayLike,
    classes: ArrayLike | None = None,
    questions: SingleAsked | None = None,
    multilabel: Literal[False] = False,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> GroupMeasures: ...


@overload
def measure(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    spectrum: bool = False,
    classes: ArrayLike | None = None,
    questions: FamilyAsked,
    multilabel: bool = False,
    sample_weight: ArrayLike | None = None,
) -> QuestionMeasures: ...


@overload
def measure(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    spectrum: bool = False,
    classes: ArrayLike | None = None,
    questions: None = None,
    multilabel: Literal[True],
    sample_weight: ArrayLike | None = None,
) -> QuestionMeasures: ...


@frames_follow
def measure(
    y_true: RowsLike | GroupsLike,
    y_prob: ArrayLike | None = None,
    *,
    spectrum: bool = False,
    by: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    questions: QuestionsAsked | None = None,
    multilabel: bool = False,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> Measures | GroupMeasures | QuestionMeasures:
    """Measure calibration in every way this package knows, in one pass over one tally.

    Warns of nothing about the numbers: what there is to say stands in ``notes``.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `cutoff_calibration_error`.
    spectrum : bool
        Also return the error against the total variation of the weights, from mean bias to the ECE plug-in.
    by : array-like of shape (n,), optional
        A group per row: the measures of each.
    classes, questions, multilabel
        As in `cutoff_calibration_error`, for ``y_prob`` of shape (n, K).

    Returns
    -------
    Measures, or GroupMeasures with ``by``, or QuestionMeasures where several questions are asked of classes
        Prints as a table; ``frame()`` gives it as a data frame, ``to_dict()`` for a file. For a source with too many
        distinct forecasts to tell them all apart, the notes say which numbers are exact and how far off others can be.

    Examples
    --------
    >>> result = measure([0, 0, 1, 0, 1, 1] * 20, [0.25, 0.25, 0.25, 0.75, 0.75, 0.75] * 20)
    >>> round(result.cutoff, 4), round(result.smooth, 4), round(result.ece, 4)
    (0.0417, 0.0208, 0.0833)
    >>> wards = measure([0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75], by=["east", "west", "east", "west"])
    >>> wards["east"].cutoff
    0.125
    """
    family = asked_of_classes(y_true, y_prob, classes, questions, multilabel, sample_weight, pos_label)
    if family is not None:
        return family.answered(
            lambda rows: measure(rows, spectrum=spectrum, by=by),
            lambda several: _measure_each(several, spectrum, by),
            error=CUTOFF_OF_ROWS,
        )
    if by is not None or are_grouped(y_true):
        rows = in_groups(y_true, y_prob, by=by, sample_weight=sample_weight, pos_label=pos_label)
        return GroupMeasures(rows.groups, by_group(rows, lambda each: measure(each, spectrum=spectrum)))
    if not isinstance(y_true, RowSource):
        tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
        found = _measure(tally, spectrum)
        if isinstance(y_true, HorizonRows):
            return of_censored(found, y_true)
        return replace(found, notes=(KNOWN_ALONE, *found.notes)) if tally.weights_estimated else found
    source = as_source(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    try:
        return _measure(whole_tally(source), spectrum)
    except TooManyForecastsError:
        return _measure_cells(source, spectrum)


def of_censored(found: Measures, rows: HorizonRows) -> Measures:
    """Return measures of censored rows, of which all count for what is forecast on the whole.

    The risk at the horizon stands for all rows, and so it is held against the mean forecast of all of them.
    """
    if not rows.weights_estimated:
        return found
    mean_forecast = float(rows.y_prob.mean())
    return replace(
        found,
        rows=rows.outcome.rows,
        distinct_forecasts=int(np.unique(rows.y_prob).size),
        mean_forecast=mean_forecast,
        calibration_in_the_large=rows.risk - mean_forecast,
        observed_expected_ratio=_ratio_of(rows),
        notes=(*censoring_notes(rows), *found.notes),
    )


def _measure_each(family: Questions, spectrum: bool, by: ArrayLike | None) -> QuestionMeasures:
    found = tuple(measure(rows, spectrum=spectrum) for rows in without_groups(family, by))
    return QuestionMeasures(family.kind, family.labels, found, family.notes)


def _held(tally: Tally) -> str:
    """Say the intercept with the slope held at 1, where there is one without a slope."""
    try:
        return f"; the intercept at slope 1 is {intercept_at_unit_slope(tally):.4g}"
    except UndefinedError:
        return ""


def _measure(tally: Tally, spectrum: bool, hints: tuple[str, ...] | None = None) -> Measures:
    notes: list[str] = []
    continuous = continuity_note(tally)
    if continuous:
        notes.append(continuous)
    try:
        slope = calibration_slope_intercept(tally)
        if slope.contradicted:  # forecasts of 0 and 1 that came true fit every positive slope, and need no note
            notes.extend(slope.notes)
    except UndefinedError as error:
        slope = None
        notes.append(Phrase("no calibration slope: {why}{rest}", why=error.phrase, rest=_held(tally), code="no_slope"))
    curve = isotonic_curve(tally)
    worst = find_worst_interval(tally)
    ks = ks_calibration_error(tally)
    smooth = smooth_calibration_error(tally)
    variation_two = bounded_variation_calibration_error(tally, variation=2.0)
    expected = plug_in_error(tally)
    bias = tally.residual_total / tally.weight_total
    gap = largest_saving(tally, EVERY_THRESHOLD).saving
    distance = bound_distance(tally, smooth=smooth, cutoff=worst.error, expected=expected, curve=curve)
    if hints is None:
        hints = (*row_hints(tally, every_forecast=True), *fitted_hints(tally))
    return Measures(
        rows=tally.row_total,
        distinct_forecasts=len(tally),
        weight_total=tally.weight_total,
        mean_forecast=tally.forecast_total() / tally.weight_total,
        mean_outcome=tally.outcome_total / tally.weight_total,
        brier=float(tally.residual_square.sum()) / tally.weight_total,
        cutoff=worst.error,
        ks=ks,
        smooth=smooth,
        bounded_variation=variation_two,
        ece=expected,
        ece_binned=expected_calibration_error(tally, n_bins=_BINS),
        risk_gap=gap,
        calibration_in_the_large=bias,
        observed_expected_ratio=_ratio_of(tally),
        slope=slope,
        curve=curve_errors(points_of(tally), curve, check_smoother("isotonic")),
        distance=distance,
        effective_support=effective_support_size(tally),
        worst_interval=worst,
        relations=_relations(
            tally,
            cutoff=worst.error,
            ks=ks,
            smooth=smooth,
            variation_two=variation_two,
            expected=expected,
            gap=gap,
            bias=abs(bias),
            distance=distance,
        ),
        notes=(*notes, *hints),
        spectrum=bounded_variation_spectrum(tally) if spectrum else None,
        others=tuple((name, kind.estimate(tally)) for name, kind in MEASURES.items() if not kind.field),
    )


def _measure_cells(source: Tally | RowSource, spectrum: bool) -> Measures:
    """Measure a source that has too many forecasts to tell them all apart.

    What needs no more than sums and a few rows is exact. The rest is that of forecasts moved to the mean of their cell.
    The distance from calibration changes by no more than the mean way that they are moved.
    """
    table = some_table(source)
    moved = table.at_means()
    found = _measure(moved, spectrum, row_hints(table))
    worst = find_worst_interval(split_at_extremes(source))
    smooth = bracket_smooth(table)
    way = float((table.high - table.low) @ table.weight) / table.weight_total
    low, high = max(found.distance.low - way, 0.0), min(found.distance.high + way, 1.0)
    note = (
        "there are too many distinct forecasts to tell them all apart: distinct_forecasts, bounded_variation, "
        f"ece, slope, curve, effective_support, relations and spectrum are those of {len(table):,} cells, each "
        f"forecast moved to the mean of its cell, by {significant_up(way, 2)} on average at most; the smooth error "
        f"lies between {rounded_down(smooth[0], 9)} and {rounded_up(smooth[1], 9)}, the distance is "
        "widened by what was moved, and all else is exact"
    )
    return replace(
        found,
        cutoff=worst.error,
        ks=ks_calibration_error(source),
        smooth=(smooth[0] + smooth[1]) / 2.0,
        ece_binned=expected_calibration_error(source, n_bins=_BINS),
        risk_gap=largest_saving(source, EVERY_THRESHOLD).saving,
        observed_expected_ratio=_ratio_of(source),
        distance=replace(found.distance, low=low, high=high),
        worst_interval=worst,
        notes=(note, *found.notes),
    )


def _relations(
    tally: Tally,
    *,
    cutoff: float,
    ks: float,
    smooth: float,
    variation_two: float,
    expected: float,
    gap: float,
    bias: float,
    distance: CalibrationDistance,
) -> tuple[Relation, ...]:
    low, high = distance.low, distance.high
    bands = np.minimum((tally.forecast * _BANDS).astype(np.int64), _BANDS - 1)
    band_mass = np.abs(np.bincount(bands, weights=tally.residual)).max() / tally.weight_total
    facts = [
        ("|mean bias| <= KS", bias, ks, PROJECT),
        ("KS <= Cutoff", ks, cutoff, PROJECT),
        ("Cutoff <= 2 KS", cutoff, 2.0 * ks, PROJECT),
        (f"|bias| x share of rows, in each of {_BANDS} bands <= Cutoff", band_mass, cutoff, f"{PAPER}, section 2"),
        ("risk gap <= Cutoff", gap, cutoff, PROJECT),
        ("Cutoff <= sqrt(2 risk gap)", cutoff, math.sqrt(2.0 * gap), PROJECT),
        ("Cutoff <= ECE", cutoff, expected, f"{PAPER}, Prop. 2.1"),
        ("Cutoff <= error for variation 2", cutoff, variation_two, f"{PAPER}, Prop. 2.2"),
        ("error for variation 2 <= 2 Cutoff", variation_two, 2.0 * cutoff, f"{PROJECT}, sharper than Prop. 2.2"),
        ("smooth <= 1.5 Cutoff", smooth, 1.5 * cutoff, PROJECT),
        ("lower end of dCE <= upper end", low, high, PROJECT),
        ("lower end of dCE <= sqrt(2 risk gap)", low, math.sqrt(2.0 * gap), PROJECT),
        ("lower end of dCE <= 2 sqrt(Cutoff) + Cutoff", low, 2.0 * math.sqrt(cutoff) + cutoff, f"{PAPER}, A.2"),
        ("(lower end of dCE)^2 / 9 <= Cutoff", low**2 / 9.0, cutoff, f"{PAPER}, Prop. 2.1"),
        ("(lower end of dCE)^2 / 8 <= smooth", low**2 / 8.0, smooth, "Blasiok et al. 2023"),
        ("smooth / 2 <= upper end of dCE", smooth / 2.0, high, "Blasiok et al. 2023"),
        ("upper end of dCE <= ECE", high, expected, "Blasiok et al. 2023"),
        (
            "b/(b + 2) ECE <= upper end of dCE, b the smallest gap",
            spacing_factor(tally) * expected,
            high,
            f"{PROJECT}, correcting Prop. A.1",
        ),
    ]
    return tuple(
        Relation(statement, float(left), float(right), bool(left <= right + ROUNDING), source)
        for statement, left, right, source in facts
    )


def _ratio_of(source: Tally | RowSource | HorizonRows) -> float | None:
    try:
        return observed_expected_ratio(source)
    except UndefinedError:  # no event, or next to none, is expected
        return None
