"""Calibration curves by any smoother, and their distances from the diagonal: ICI, E50, E90, Emax, ECI.

Limits and bands come from resamples of rows, or of whole clusters. They hold for many rows; where they are off is said
in docs/how-to/validate.md and measured in tests/guarantees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from calibrant.core.errors import InputError, UndefinedError
from calibrant.core.frames import frames_follow
from calibrant.core.isotonic import isotonic_fit
from calibrant.core.logistic import Points, expit, logit, pool
from calibrant.core.progress import track
from calibrant.core.quantiles import quantiles
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, Randomness
from calibrant.core.words import counted
from calibrant.measures.curve_results import DISTANCES, LARGEST, CalibrationCurve, CurveErrors
from calibrant.measures.estimates import have_no_width
from calibrant.measures.smoothers import Chosen, Rates, Scale, SmootherName, check_smoother, points_of
from calibrant.rows.checks import Observations, check_choice, check_confidence, check_forecasts, check_rng
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.intake import RowsLike, are_clustered, as_clustered, as_observations, as_tally, few_in_memory
from calibrant.rows.questions import QuestionSource
from calibrant.rows.resamples import MOST_UNDEFINED, check_resamples, resampled
from calibrant.rows.sources import RowSource
from calibrant.rows.tally import Tally, Totals

MANY_ROWS = 200_000
"""Counts of more rows are resampled as counts of at most so many groups of neighbours as MOST_GROUPS says."""

MOST_GROUPS = 4096

FEWEST_ROWS = 50
"""Rows below which distances have no limits.

In simulations of calibrated forecasts 95% limits of the ICI of loess leave out 0 in 31% of cases with 10 rows, 14% with
30, 6% with 50 and 4% with 100.
"""

_PLACES = 101
_LEAST_RATE = 1e-6

Rows = Tally | Observations | ClusteredRows
"""What can be resampled."""

Numbers = Callable[[Points, Rates], FloatArray]
"""What is read off the curve of a resample."""


@frames_follow
def integrated_calibration_index(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    smoother: SmootherName = "isotonic",
    span: float | None = None,
    knots: int | None = None,
    scale: Scale | None = None,
    confidence_level: float | None = None,
    interval: Literal["corrected", "percentile"] = "corrected",
    n_resamples: int = 1000,
    rng: Randomness = 0,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> CurveErrors:
    """Mean, median, 90th percentile and largest distance of a calibration curve from the diagonal: ICI, E50, E90, Emax.

    The distances |curve(p) - p| are taken over the rows; ECI is 100 times the mean of their squares. The isotonic curve
    has nothing to tune; since it follows the data closely, its ICI is above zero for calibrated forecasts too, less so
    the more rows there are. The other curves are smoother, and equal those of R.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `cutoff_calibration_error`. Weights count as repetitions: whole numbers as they are, others scaled to add
        up to the number of rows.
    smoother : {"isotonic", "loess", "lowess", "splines"}
        The calibration curve. "loess" is R's ``loess(y ~ p)`` (Austin and Steyerberg); "lowess" is R's ``lowess(x, y,
        iter=0)``; "splines" is a logistic regression on restricted cubic splines, R's ``lrm(y ~ rcs(x, 5))``.
    span : float from 0.001 to 1, optional
        The share of the rows in each local fit: 0.75 for loess and 2/3 for lowess unless given.
    knots : int from 3 to 20, optional
        The number of knots of splines; 5 unless given.
    scale : {"probability", "logit"}, optional
        What the curve is fitted to: the forecasts, or their logits. Unless given, the logit for lowess and splines (as
        pmcalibration does) and the forecasts for loess (as CalibrationCurves does); ``smoother="lowess",
        scale="probability"`` is rms's ``val.prob``. On the logit scale forecasts of exactly 0 or 1 join the nearest one
        strictly between.
    confidence_level : float, optional
        Also return limits with this confidence, each number by itself; from 50 rows on.
    interval : {"corrected", "percentile"}
        How limits come from resamples, see the notes; "percentile" are the plain quantiles that other software gives.
    n_resamples : int
        How often rows are resampled.
    rng : int, Generator or None, default 0
        Where random numbers come from.
    cluster : array-like of shape (n,), optional
        As in `certify`: then whole clusters are resampled.

    Returns
    -------
    CurveErrors
        The distances, and their limits where a level was given.

    Notes
    -----
    The numbers are distances, so noise makes them larger: ICI of calibrated forecasts is above 0. In resamples there is
    noise twice, so that percentile limits lie too high: near calibration they hardly ever hold the true number.
    "corrected" limits take that off. With Q the upper quantile of the number in resamples and B by how much its mean in
    resamples exceeds the number E, they are 2 E - Q and Q - B. The lower one is 0 unless E exceeds the upper quantile
    of what noise alone shows: the same number for the distances between the curves of resamples and the curve. They
    hold for many rows; in simulations of loess with 200 and 1,000 rows, 95% limits of ICI held the true one in 93% to
    100% of cases, percentile ones in 0% to 95%. Those of the isotonic curve held it in 84% to 96% with 200 rows, least
    often for calibrated forecasts, where the lower limit was above 0 in 8% to 16%; in 89% to 97% with 1,000
    (docs/how-to/measure.md has all figures, and where limits are off).

    References
    ----------
    Austin, Steyerberg (2019), The integrated calibration index (ICI) and related metrics; Van Hoorde et al. (2015), A
    spline-based tool to assess and visualize the calibration of multiclass risk predictions (ECI).

    Examples
    --------
    >>> print(integrated_calibration_index([0, 1, 0, 1], [0.1, 0.3, 0.6, 0.9]))
    ICI 0.12500, E50 0.10000, E90 0.17000, Emax 0.20000, ECI 1.75000 (isotonic)
    """
    chosen = check_smoother(smoother, span, knots, scale)
    how = INTERVALS[check_choice(interval, "interval", tuple(INTERVALS))]
    if confidence_level is None and cluster is None:
        points = points_of(as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label))
        return curve_errors(points, chosen.curve(points)(points.value), chosen)
    level = None if confidence_level is None else check_confidence(confidence_level)
    resamples = None if level is None else check_resamples(n_resamples, level)
    rows = _rows_to_draw(y_true, y_prob, cluster, sample_weight, pos_label)
    tally = _tally(rows)
    points = points_of(tally)
    curve = chosen.curve(points)
    found = curve_errors(points, curve(points.value), chosen)
    if level is None or resamples is None:
        return found
    refuse_few_rows(tally.row_total)
    numbers = _resampled_numbers(rows, chosen, resamples, rng, lambda drawn, fitted: distances_of(drawn, fitted, curve))
    values, noise = np.split(numbers, 2, axis=1)
    lower, upper = how(values, noise, np.array([getattr(found, name) for name in DISTANCES]), level)
    limits: dict[str, Any] = {}
    for name, low, high in zip(DISTANCES, lower.tolist(), upper.tolist(), strict=True):
        if not have_no_width(low, high, getattr(found, name)):
            limits |= {f"{name}_lower": low, f"{name}_upper": high}
    if "ici_lower" not in limits:
        raise UndefinedError(
            "nothing in these rows shows how much ICI varies, so that limits would have no width",
            remedy="ask for the number alone, or collect more rows",
        )
    return replace(
        found,
        confidence_level=level,
        interval=interval,
        n_resamples=resamples,
        clusters=rows.cluster_count if isinstance(rows, ClusteredRows) else None,
        **limits,
    )


def curve_errors(points: Points, curve: FloatArray, chosen: Chosen) -> CurveErrors:
    """Sum up the distances between a calibration curve, at the distinct forecasts, and the diagonal."""
    return CurveErrors(
        *distances(points, curve),
        smoother=chosen.smoother.name,
        span=chosen.span,
        knots=chosen.knots,
        scale=chosen.scale,
    )


def distances(points: Points, curve: FloatArray) -> tuple[float, float, float, float, float]:
    """Return ICI, E50, E90, Emax and ECI."""
    distance, weight = np.abs(curve - points.value), points.weights
    total = float(weight.sum())
    median, ninetieth = quantiles(distance, weight, (0.5, 0.9))
    return (
        float(distance @ weight) / total,
        median,
        ninetieth,
        float(distance.max()),
        100.0 * float(np.square(distance) @ weight) / total,
    )


def distances_of(points: Points, fitted: Rates, curve: Rates) -> FloatArray:
    """Return the distances of the curve of a resample from the diagonal, and from the curve of all rows."""
    rate = fitted(points.value)
    noise = points.value + (rate - curve(points.value))
    return np.array(distances(points, rate) + distances(points, noise))


def _middle(values: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the middle part of each column."""
    lower, upper = np.quantile(values, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
    return lower, upper


def _percentile(values: FloatArray, _: FloatArray, __: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    return _possible(*_middle(values, level))


def _corrected(
    values: FloatArray, noise: FloatArray, estimate: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    _, high = _middle(values, level)
    _, chance = _middle(noise, level)
    lower = np.where(estimate <= chance, 0.0, np.clip(2.0 * estimate - high, 0.0, estimate))
    return _possible(lower, np.maximum(high - (values.mean(axis=0) - estimate), estimate))


def _possible(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return limits of distances between rates: local parabolas that leave the range from 0 to 1 do not widen them."""
    return np.minimum(lower, LARGEST), np.minimum(upper, LARGEST)


INTERVALS = {"corrected": _corrected, "percentile": _percentile}
"""How limits come from values in resamples, a column for each number, and from those of noise alone."""


def refuse_few_rows(count: int) -> None:
    """Refuse rows that are too few for limits of a curve from resamples."""
    if count < FEWEST_ROWS:
        raise UndefinedError(
            f"there {'is' if count == 1 else 'are'} {counted(count, 'row')}, and limits of a curve's distances "
            f"need at least {FEWEST_ROWS}: with fewer they leave out the truth far too often",
            remedy="ask for the numbers alone, or collect more rows",
        )


def _resampled_numbers(rows: Rows, chosen: Chosen, n_resamples: int, rng: Randomness, numbers: Numbers) -> FloatArray:
    """Return numbers of the curves of resamples, a row for each in which there is a curve."""
    found = []
    drawn = resampled_points(rows, n_resamples, check_rng(rng))
    for points in track(drawn, total=n_resamples, label="resampling"):
        try:
            found.append(numbers(points, chosen.curve(points)))
        except UndefinedError:
            continue
    if len(found) < (1.0 - MOST_UNDEFINED) * n_resamples:
        raise UndefinedError(
            f"there is no {chosen.smoother.name} curve in {n_resamples - len(found):,} of {n_resamples:,} resamples of "
            "these rows",
            remedy="collect more rows, or take smoother='isotonic' or 'loess'",
        )
    return np.array(found)


def resampled_points(rows: Rows, n_resamples: int, generator: np.random.Generator) -> Iterator[Points]:
    """Draw rows, or whole clusters, with replacement, again and again: what smoothers are fitted to in each.

    Counts are drawn as counts, so that many rows take no longer than many forecasts.
    """
    if not isinstance(rows, Tally):
        for sample in resampled(rows, n_resamples, generator):
            yield points_of(Tally.from_observations(sample))
        return
    points = points_of(rows)
    if rows.row_total > MANY_ROWS and len(rows) > MOST_GROUPS:
        points = pool(points, size=MOST_GROUPS)
    events = np.rint(points.outcome).astype(np.int64)
    others = np.rint(points.weights).astype(np.int64) - events
    counts = np.concatenate([events, others])
    kinds, total, size = np.flatnonzero(counts), rows.row_total, events.size
    listed = np.repeat(kinds, counts[kinds]) if total <= MANY_ROWS else None
    for _ in range(n_resamples):
        if listed is None:
            drawn = np.zeros(counts.size, dtype=np.int64)
            drawn[kinds] = generator.multinomial(total, counts[kinds] / total)
        else:
            drawn = np.bincount(listed[generator.integers(0, total, total)], minlength=counts.size)
        outcome, weight = drawn[:size].astype(np.float64), (drawn[:size] + drawn[size:]).astype(np.float64)
        held = np.flatnonzero(weight)
        yield Points(points.value[held], outcome[held], weight[held])


def _rows_to_draw(y_true: Any, y_prob: Any, cluster: Any, sample_weight: Any, pos_label: Any) -> Rows:
    """Return rows in a form that can be resampled: counts of events, checked rows, or rows in clusters."""
    given = {"sample_weight": sample_weight, "pos_label": pos_label}
    if cluster is not None or are_clustered(y_true):
        clustered = few_in_memory(as_clustered(y_true, y_prob, cluster=cluster, **given))
        if not isinstance(clustered, ClusteredRows):
            raise InputError(
                "limits from resamples need all rows in memory, and this source has too many",
                remedy="leave confidence_level out, or read the rows into arrays",
            )
        return clustered
    if not isinstance(y_true, np.ndarray) and isinstance(y_true, (Totals, RowSource, QuestionSource)):
        tally = as_tally(y_true, y_prob, **given)
        if tally.counted:
            return tally
        if tally.listed is None:
            raise InputError(
                "limits from resamples need rows, and of this tally only totals are known",
                remedy="pass the arrays, or leave confidence_level out",
            )
        return tally.listed
    rows = as_observations(y_true, y_prob, **given)
    counted = rows.binary_outcomes and rows.sample_weight is None
    return Tally.from_observations(rows) if counted else rows


def _tally(rows: Rows) -> Tally:
    if isinstance(rows, Tally):
        return rows
    return Tally.from_observations(rows.observations if isinstance(rows, ClusteredRows) else rows)


@frames_follow
def calibration_curve(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    smoother: SmootherName = "loess",
    span: float | None = None,
    knots: int | None = None,
    scale: Scale | None = None,
    at: ArrayLike | None = None,
    band: Literal["pointwise", "simultaneous"] = "pointwise",
    confidence_level: float | None = None,
    n_resamples: int = 1000,
    rng: Randomness = 0,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> CalibrationCurve:
    """How often events happen at each forecast, by a smooth curve with a band.

    On the diagonal forecasts are right; below it they are too high, above it too low. The curve is fitted to the rows,
    and again to ``n_resamples`` resamples of them; the band is made of these.

    Parameters
    ----------
    y_true, y_prob, smoother, span, knots, scale, rng, cluster, sample_weight, pos_label
        As in `integrated_calibration_index`.
    at : array-like, optional
        Forecasts at which to read the curve, within the range of those of the rows; unless given, some 200 over that
        range.
    band : {"pointwise", "simultaneous"}
        Whether the level holds at each forecast by itself, or at all forecasts together.
    confidence_level : float, optional
        Of the band; without one there is none.
    n_resamples : int
        How often rows are resampled.

    Returns
    -------
    CalibrationCurve
        The event rate at each of the forecasts ``at``, with the band where a level was given.

    Notes
    -----
    A pointwise band holds the middle of the curves of resamples. A simultaneous one is as many standard deviations of
    them wide, to either side, as hold so many whole curves (for splines on the logit scale). Both are for many rows:
    with a few hundred they are too narrow where few rows are, at the ends above all (docs/how-to/measure.md has
    figures). A curve that is too smooth for what it follows is off by more. For isotonic regression resamples do not
    say how far it is off: there `ReliabilityDisplay` draws bands that are valid.

    Examples
    --------
    >>> import numpy as np
    >>> forecast = np.linspace(0.05, 0.95, 200)
    >>> curve = calibration_curve(np.arange(200) % 3 == 0, forecast, at=[0.25, 0.5, 0.75])
    >>> curve.rate.round(2)
    array([0.33, 0.33, 0.33])
    """
    chosen = check_smoother(smoother, span, knots, scale)
    kind = check_choice(band, "band", tuple(BANDS))
    level = None if confidence_level is None else check_confidence(confidence_level)
    if level is not None and not chosen.smoother.smooth:
        raise InputError(
            "is for smooth curves: resamples do not say how far an isotonic one is off",
            argument="confidence_level",
            remedy="take smoother='loess' or 'splines', or ReliabilityDisplay with band='confidence'",
        )
    resamples = None if level is None else check_resamples(n_resamples, level)
    rows: Rows
    if level is None and cluster is None:
        rows = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
    else:
        rows = _rows_to_draw(y_true, y_prob, cluster, sample_weight, pos_label)
    tally = _tally(rows)
    points = points_of(tally)
    curve = chosen.curve(points)
    places = curve_places(points, chosen) if at is None else _check_places(at, points)
    rate = curve(places)
    lower = upper = np.empty(0)
    if level is not None and resamples is not None:
        curves = _resampled_numbers(rows, chosen, resamples, rng, lambda _, fitted: fitted(places))
        if chosen.smoother.inside:
            lower, upper = map(expit, BANDS[kind](_logit_inside(curves), _logit_inside(rate), level))
        else:
            lower, upper = BANDS[kind](curves, rate, level)
    return CalibrationCurve(
        forecast=places,
        rate=rate,
        lower=np.clip(lower, 0.0, 1.0),
        upper=np.clip(upper, 0.0, 1.0),
        band=None if level is None else kind,
        confidence_level=level,
        smoother=chosen.smoother.name,
        span=chosen.span,
        knots=chosen.knots,
        scale=chosen.scale,
        rows=tally.row_total,
        n_resamples=resamples,
        clusters=rows.cluster_count if isinstance(rows, ClusteredRows) else None,
    )


def _logit_inside(rate: FloatArray) -> FloatArray:
    return logit(np.clip(rate, _LEAST_RATE, 1.0 - _LEAST_RATE))


def _pointwise(curves: FloatArray, _: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    return _middle(curves, level)


def _simultaneous(curves: FloatArray, rate: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    spread = np.maximum(curves.std(axis=0), 1e-12)
    furthest = np.quantile(np.abs((curves - rate) / spread).max(axis=1), level)
    return rate - furthest * spread, rate + furthest * spread


BANDS = {"pointwise": _pointwise, "simultaneous": _simultaneous}
"""How bands come from the curves of resamples: a column for each place."""


def curve_places(points: Points, chosen: Chosen) -> FloatArray:
    """Return where a curve is drawn: evenly over the range and over the rows; for steps, at their ends."""
    value = points.value
    if not chosen.smoother.smooth:
        borders = isotonic_fit(points.outcome / points.weights, points.weights).borders
        ends: FloatArray = value[np.unique(np.concatenate([borders[:-1], borders[1:] - 1]))]
        return ends
    through = np.cumsum(points.weights)
    shares = value[np.searchsorted(through, np.linspace(through[0], through[-1], _PLACES) * (1.0 - 1e-12))]
    return np.unique(np.concatenate([np.linspace(value[0], value[-1], _PLACES), shares]))


def _check_places(at: Any, points: Points) -> FloatArray:
    places = check_forecasts(at, name="at")
    low, high = float(points.value[0]), float(points.value[-1])
    outside = np.flatnonzero((places < low) | (places > high))
    if outside.size:
        position = int(outside[0])
        raise InputError(
            f"is {places[position]:g}, and the forecasts of these rows are from {low:g} to {high:g}",
            argument="at",
            position=position,
            value=places[position],
            remedy="a curve says nothing beyond them",
        )
    return places
