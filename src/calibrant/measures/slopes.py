"""Logistic recalibration: the calibration slope and intercepts, their limits, and tests of both."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from calibrant.core.errors import InputError, UndefinedError
from calibrant.core.frames import frames_follow
from calibrant.core.logistic import Points, logit
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, IntArray, Randomness
from calibrant.core.voices import Phrase
from calibrant.core.words import counted
from calibrant.measures.estimates import Estimate, bootstrap
from calibrant.measures.sampled import Sampled, sampled
from calibrant.measures.slope_fits import INSIDE, FreeFit, HeldFit, too_few
from calibrant.measures.slope_results import CalibrationSlope, CalibrationTests, ChiSquareTest
from calibrant.rows.checks import Observations, check_choice, check_confidence, check_number
from calibrant.rows.intake import RowsLike, as_tally
from calibrant.rows.resamples import check_resamples
from calibrant.rows.tally import Tally

Extremes = Literal["leave_out", "refuse"] | float
SlopeInterval = Literal["profile", "wald", "sandwich", "bootstrap"]

_SINGULAR = 1e-9  # one minus the square of a correlation below which rounding decides


@frames_follow
def calibration_slope_intercept(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: float | None = None,
    interval: SlopeInterval = "profile",
    extremes: Extremes = "leave_out",
    cluster: ArrayLike | None = None,
    n_resamples: int = 1000,
    rng: Randomness = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> CalibrationSlope:
    """Logistic recalibration: the slope and intercept of the outcomes on the logit of the forecasts, with limits.

    Maximum likelihood fit of logit(event rate) = intercept + slope x logit(p); slope 1 and intercept 0 are ideal. A
    slope below 1 means forecasts that are too extreme, the usual sign of overfitting. Also the intercept with the slope
    held at 1, which clinicians call calibration in the large.

    Profile limits are where twice the log-likelihood, with the other coefficient at its best, has dropped by the
    chi-square quantile. They are finite wherever the fit exists. All limits hold approximately, for many events.

    Parameters
    ----------
    y_true, y_prob, sample_weight, pos_label
        As in `cutoff_calibration_error`. A weight says how much a row stands for, not how often it was seen (for that
        there is `Tally.from_counts`).
    confidence_level : float, optional
        How often the limits of each number are to hold it; without a level there are no limits.
    interval : {"profile", "wald", "sandwich", "bootstrap"}
        "profile" (likelihood) and "wald" (curvature of the likelihood) suppose independent 0/1 outcomes of equal
        weight. Otherwise (clusters, weights, fractions) they become "sandwich", which estimates how much rows or
        clusters vary and does not suppose that the curve is right. The result says which. Its squares are enlarged by
        m / (m - 2), with Student's quantiles of m - 2 degrees, where m = (sum of weights)^2 / sum of their squares is
        the effective number of rows; for G clusters by G / (G - 1), with G - 1 degrees.
    extremes : {"leave_out", "refuse"} or float above 0 and below 0.5
        What to do about forecasts of exactly 0 and 1, whose logit is infinite: leave their rows out and say so, refuse
        them, or pull all forecasts to at least this and at most 1 minus this.
    cluster : array-like of shape (n,), optional
        A cluster per row (a patient, a hospital): limits then count clusters, with Student's quantiles.
    n_resamples, rng
        For "bootstrap": how many resamples, and the seed or generator they are drawn with.

    Returns
    -------
    CalibrationSlope
        Slope, intercept, the intercept where the slope is 1, their limits, and what the limits suppose.

    Raises
    ------
    ValueError
        When no finite fit exists: outcomes of one class only, a single distinct forecast, or outcomes that the
        forecasts separate perfectly.

    References
    ----------
    Cox (1958), Two further applications of a model for binary regression; Van Calster et al. (2019), Calibration: the
    Achilles heel of predictive analytics; Venzon and Moolgavkar (1988), A method for computing
    profile-likelihood-based confidence intervals.

    Examples
    --------
    >>> y, p = [0, 1, 0, 0, 1, 1, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    >>> fit = calibration_slope_intercept(y, p)
    >>> round(fit.slope, 4), abs(fit.intercept) < 1e-9
    (0.596, True)
    >>> fit = calibration_slope_intercept(y, p, confidence_level=0.95)
    >>> round(fit.slope_lower, 4), round(fit.slope_upper, 4)
    (-0.4586, 2.0569)
    """
    rule = check_extremes(extremes)
    way = _way(interval, rule, n_resamples, rng)
    if confidence_level is None and cluster is None:
        return fit_slope(as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label), rule)
    sample = sampled(y_true, y_prob, cluster=cluster, sample_weight=sample_weight, pos_label=pos_label)
    inside, sure = _inside(sample, rule)
    fit = FreeFit(_at_logits(inside.tally))
    if confidence_level is None:
        return _result(fit, inside.row_total, sure)
    level = check_confidence(confidence_level)
    found = way(inside, fit, level)
    ends = {
        f"{name}_{end}": limit
        for name, pair in found.limits.items()
        for end, limit in zip(("lower", "upper"), pair, strict=True)
    }
    return _result(
        fit,
        inside.row_total,
        sure,
        confidence_level=level,
        interval=found.interval,
        clusters=inside.cluster_count,
        n_resamples=found.n_resamples,
        notes=(*found.notes, *inside.notes),
        **ends,
    )


def _result(fit: FreeFit, rows: int, sure: _Sure, **more: Any) -> CalibrationSlope:
    """Return the numbers, with what else is known."""
    more |= fit.coefficients
    return CalibrationSlope(
        left_out=sure.rows,
        contradicted=sure.contradicted,
        rows=rows,
        notes=(*more.pop("notes", ()), *sure.notes()),
        **more,
    )


def fit_slope(tally: Tally, extremes: Extremes = "leave_out") -> CalibrationSlope:
    """Fit the slope and intercepts of a tally."""
    points, sure = _points_inside(tally, extremes)
    return _result(FreeFit(points), tally.row_total - sure.rows, sure)


def fit_coefficients(tally: Tally, extremes: Extremes = "leave_out") -> tuple[float, float, float]:
    """Return the slope and both intercepts of a tally; NaN for slope and intercept where there is no slope."""
    points, _ = _points_inside(tally, extremes)
    try:
        slope, intercept, held = FreeFit(points).coefficients.values()
    except UndefinedError:
        return math.nan, math.nan, HeldFit(points).held.intercept
    return slope, intercept, held


def _points_inside(tally: Tally, extremes: Extremes) -> tuple[Points, _Sure]:
    """Return the points of a tally at logits, by the rule for forecasts of exactly 0 and 1."""
    points, sure = Points(tally.forecast, tally.outcome, tally.weight), _Sure()
    if not isinstance(extremes, str):
        points = points._replace(value=np.clip(points.value, extremes, 1.0 - extremes))
    elif tally.forecast[0] == 0.0 or tally.forecast[-1] == 1.0:
        sure = _sure(tally)
        sure.refused(extremes)
        inside = slice(int(tally.forecast[0] == 0.0), len(tally) - int(tally.forecast[-1] == 1.0))
        points = Points(tally.forecast[inside], tally.outcome[inside], tally.weight[inside])
    return points._replace(value=logit(points.value)), sure


@overload
def intercept_at_unit_slope(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: None = None,
    interval: SlopeInterval = "profile",
    extremes: Extremes = "leave_out",
    cluster: ArrayLike | None = None,
    n_resamples: int = 1000,
    rng: Randomness = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> float: ...


@overload
def intercept_at_unit_slope(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: float,
    interval: SlopeInterval = "profile",
    extremes: Extremes = "leave_out",
    cluster: ArrayLike | None = None,
    n_resamples: int = 1000,
    rng: Randomness = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> Estimate: ...


@frames_follow
def intercept_at_unit_slope(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    confidence_level: float | None = None,
    interval: SlopeInterval = "profile",
    extremes: Extremes = "leave_out",
    cluster: ArrayLike | None = None,
    n_resamples: int = 1000,
    rng: Randomness = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> float | Estimate:
    """Calibration in the large on the logit scale: the intercept with the slope held at 1, also without a slope.

    Maximum likelihood fit of logit(event rate) = intercept + logit(p), R's ``glm(y ~ offset(qlogis(p)), binomial)``.
    0 is ideal, below 0 the forecasts are too high on the whole. It is the number of that name that
    `calibration_slope_intercept` gives; here it needs both outcomes only, so that it is there for one forecast for all
    rows, and for forecasts that separate the outcomes, where there is no slope.

    Parameters
    ----------
    y_true, y_prob, interval, extremes, cluster, n_resamples, rng, sample_weight, pos_label
        As in `calibration_slope_intercept`.
    confidence_level : float, optional
        Also return limits with this confidence, as an `Estimate`.

    Returns
    -------
    float, or Estimate with a confidence level
        Above 0 events are more frequent than forecast, below 0 less.

    References
    ----------
    Miller, Hui, Tierney (1991), Validation techniques for logistic regression models, Statistics in Medicine 10.

    Examples
    --------
    >>> round(intercept_at_unit_slope([0, 1, 0, 1], [0.25, 0.25, 0.25, 0.25]), 4)  # logit(1/2) - logit(1/4)
    1.0986
    """
    rule = check_extremes(extremes)
    way = _way(interval, rule, n_resamples, rng)
    if confidence_level is None and cluster is None:
        tally = as_tally(y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label)
        return HeldFit(_points_inside(tally, rule)[0]).held.intercept
    sample = sampled(y_true, y_prob, cluster=cluster, sample_weight=sample_weight, pos_label=pos_label)
    inside, sure = _inside(sample, rule)
    fit = HeldFit(_at_logits(inside.tally))
    if confidence_level is None:
        return fit.held.intercept
    level = check_confidence(confidence_level)
    found = way(inside, fit, level)
    (name,) = fit.names
    lower, upper = found.limits[name]
    return Estimate(
        name=name,
        estimate=fit.held.intercept,
        lower=lower,
        upper=upper,
        confidence_level=level,
        interval=found.interval,
        rows=inside.row_total,
        clusters=inside.cluster_count,
        n_resamples=found.n_resamples,
        notes=(*found.notes, *inside.notes, *sure.notes()),
    )


def check_extremes(extremes: Any) -> Extremes:
    """Return a rule for forecasts of exactly 0 and 1."""
    if isinstance(extremes, str):
        return "refuse" if check_choice(extremes, "extremes", ("leave_out", "refuse")) == "refuse" else "leave_out"
    pulled = check_number(extremes, "extremes", low=0.0, high=0.5)
    if not 0.0 < pulled < 0.5:
        raise InputError(
            f"is {pulled:g}", argument="extremes", value=pulled, remedy="take a small number above 0, such as 1e-6"
        )
    return pulled


class _Sure(NamedTuple):
    """Rows with forecasts of exactly 0 or 1 that were left out, and how many their outcomes contradict."""

    rows: int = 0
    contradicted: int = 0

    def refused(self, extremes: str) -> None:
        """Refuse the rows where they are not to be left out."""
        if extremes != "leave_out":
            raise UndefinedError(
                f"holds {counted(self.rows, 'forecast')} of exactly 0 or 1, whose logit is infinite",
                argument="y_prob",
                remedy=Phrase("leave them out, or pull all inside, {how}, and say so when you report it", how=INSIDE),
            )

    def notes(self) -> tuple[Phrase, ...]:
        """Say what was left out."""
        if not self.rows:
            return ()
        verb = "was" if self.rows == 1 else "were"
        if not self.contradicted:
            wrong, meaning = "No outcome contradicts them", ""
        else:
            wrong = f"{counted(self.contradicted, 'outcome')} contradict{'s' if self.contradicted == 1 else ''} them"
            meaning = ": the forecasts are worse than the slope says"
        return (
            Phrase(
                "{left} with a forecast of exactly 0 or 1 {verb} left out of the slope, since the logit is infinite "
                "there. {wrong}{meaning}.",
                left=counted(self.rows, "row"),
                verb=verb,
                wrong=wrong,
                meaning=meaning,
                code="extremes_left_out",
            ),
        )


def _inside(sample: Sampled, extremes: Extremes) -> tuple[Sampled, _Sure]:
    """Apply the rule for forecasts of exactly 0 and 1 to a sample."""
    rows = sample.rows
    if not isinstance(extremes, str):
        return replace(sample, rows=replace(rows, y_prob=np.clip(rows.y_prob, extremes, 1.0 - extremes))), _Sure()
    kept = (rows.y_prob > 0.0) & (rows.y_prob < 1.0)
    if kept.all():
        return sample, _Sure()
    sure = _sure_of(rows, sample.times)
    sure.refused(extremes)
    if not kept.any():
        raise too_few()
    return sample.take(np.flatnonzero(kept)), sure


def _at_logits(tally: Tally) -> Points:
    return Points(logit(tally.forecast), tally.outcome, tally.weight)


def _sure(tally: Tally) -> _Sure:
    """Count the rows of a tally with forecasts of 0 and 1; where only totals are known, wrong forecasts count whole."""
    if tally.listed is not None:
        return _sure_of(tally.listed, None)
    off, on = tally.forecast == 0.0, tally.forecast == 1.0
    wrong = np.zeros(len(tally), dtype=np.int64)
    for kind, missed in ((off, tally.outcome), (on, tally.weight - tally.outcome)):
        count = np.rint(missed).astype(np.int64) if tally.counted else np.where(missed > 0.0, tally.rows, 0)
        wrong[kind] = count[kind]
    return _Sure(int(tally.rows[off | on].sum()), int(wrong.sum()))


def _sure_of(rows: Observations, times: IntArray | None) -> _Sure:
    """Count the rows with forecasts of 0 and 1."""
    count = np.ones(rows.y_prob.size, dtype=np.int64) if times is None else times
    off, on = rows.y_prob == 0.0, rows.y_prob == 1.0
    wrong = (off & (rows.y_true > 0)) | (on & (rows.y_true < 1))
    return _Sure(int(count[off | on].sum()), int(count[wrong].sum()))


class _Found(NamedTuple):
    """Limits of each coefficient, how they were found, and what to keep in mind."""

    limits: dict[str, tuple[float, float]]
    interval: str
    n_resamples: int | None = None
    notes: tuple[str, ...] = ()


_Way = Callable[[Sampled, HeldFit, float], _Found]


def _way(interval: Any, extremes: Extremes, n_resamples: Any, rng: Randomness) -> _Way:
    """Return how limits are found."""
    ways: dict[str, _Way] = {
        "profile": _profiled,
        "wald": _by_curvature,
        "sandwich": _by_sandwich,
        "bootstrap": lambda *found: _by_resampling(*found, extremes=extremes, n_resamples=n_resamples, rng=rng),
    }
    return ways[check_choice(interval, "interval", tuple(ways))]


def _profiled(sample: Sampled, fit: HeldFit, level: float) -> _Found:
    if sample.why_not_counted is not None:
        return _instead(sample, fit, level)
    return _Found(fit.profile_limits(level), "profile")


def _by_curvature(sample: Sampled, fit: HeldFit, level: float) -> _Found:
    if sample.why_not_counted is not None:
        return _instead(sample, fit, level)
    away = sample.quantile(level)
    return _Found({name: _around(each.found, away * each.wald_error()) for name, each in fit.profiles.items()}, "wald")


def _instead(sample: Sampled, fit: HeldFit, level: float) -> _Found:
    note = f"rows are {sample.why_not_counted}, so the limits are those of the sandwich, which needs no likelihood"
    return _by_sandwich(sample, fit, level)._replace(notes=(note,))


def _by_sandwich(sample: Sampled, fit: HeldFit, level: float) -> _Found:
    spread, away = _covariance(sample, fit), _student(sample, level)
    limits = {
        name: _around(each.found, away * math.sqrt(spread[k, k])) for k, (name, each) in enumerate(fit.profiles.items())
    }
    return _Found(limits, "sandwich")


def _covariance(sample: Sampled, fit: HeldFit) -> FloatArray:
    """Return how the coefficients vary together: sums of products of what rows, or clusters, move them by."""
    rows = sample.rows
    weight = rows.sample_weight
    points = Points(logit(rows.y_prob), rows.y_true if weight is None else weight * rows.y_true, weight)
    moved = np.array([sample.moved(each.influence(points)) for each in fit.profiles.values()])
    counted = moved if sample.times is None else moved * sample.times
    spread: FloatArray = np.einsum("in,jn->ij", counted, moved)
    return spread * (sample.few_clusters if sample.clusters is not None else 1.0 + 2.0 / _degrees_left(sample))


def _degrees_left(sample: Sampled) -> float:
    """Return how many rows of equal weight would say as much, less the two coefficients."""
    left = sample.effective_rows - 2.0
    if left <= 0.0:
        raise UndefinedError(
            "too few rows carry the weight to say how much slope and intercept vary", remedy="collect more rows"
        )
    return left


def _student(sample: Sampled, level: float) -> float:
    """Return how many standard errors limits of the sandwich are away."""
    from scipy.special import stdtrit

    if sample.clusters is not None:
        return sample.quantile(level)
    return float(stdtrit(_degrees_left(sample), (1.0 + level) / 2.0))


def _by_resampling(
    sample: Sampled, fit: HeldFit, level: float, *, extremes: Extremes, n_resamples: Any, rng: Randomness
) -> _Found:
    count = check_resamples(n_resamples, level)
    found = bootstrap(
        sample.drawn,
        lambda tally: tuple(fit.again(_points_inside(tally, extremes)[0]).coefficients.values()),
        n_resamples=count,
        rng=rng,
        label="calibration slope",
    )
    limits = {name: found.limits(k, name.replace("_", " "), level) for k, name in enumerate(fit.names)}
    return _Found(limits, "bootstrap", count)


def _around(centre: float, reach: float) -> tuple[float, float]:
    return centre - reach, centre + reach


@frames_follow
def likelihood_ratio_tests(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    extremes: Extremes = "leave_out",
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
) -> CalibrationTests:
    """Test slope 1 and intercept 0 of logistic recalibration, together and one after the other.

    The likelihood-ratio statistics are 2 (l(a, b) - l(0, 1)) for both ("weak calibration", 2 degrees of freedom),
    2 (l(a', 1) - l(0, 1)) for the intercept where the slope is 1 ("in the large"), and 2 (l(a, b) - l(a', 1)) for the
    slope, with l the log-likelihood at its maximum where a letter stands; the first is the sum of the others. Under
    the hypothesis they follow chi-square laws, approximately, for many events.

    A small p-value says that forecasts are not calibrated. A large one does not say that they are: these tests see
    straight lines on the logit scale only, and `calibration_test` sees everything.

    Parameters
    ----------
    y_true, y_prob, extremes, cluster, sample_weight, pos_label
        As in `calibration_slope_intercept`. With clusters, weights or fractions there is no likelihood of the rows:
        the tests are then robust Wald tests by the sandwich, with F laws of as many degrees as its limits have, and
        ``test`` says so.

    Returns
    -------
    CalibrationTests
        The three tests, each with statistic, degrees of freedom and p-value.

    References
    ----------
    Miller, Hui, Tierney (1991), Validation techniques for logistic regression models, Statistics in Medicine 10.

    Examples
    --------
    >>> y, p = [0, 1, 0, 0, 1, 1, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    >>> print(likelihood_ratio_tests(y, p))
    likelihood ratio tests, 8 rows
    intercept 0 and slope 1: chi-square 0.4090 on 2 df, p = 0.815
    intercept 0 where the slope is 1: chi-square 0.0000 on 1 df, p = 1
    slope 1: chi-square 0.4090 on 1 df, p = 0.5225
    """
    rule = check_extremes(extremes)
    sample = sampled(y_true, y_prob, cluster=cluster, sample_weight=sample_weight, pos_label=pos_label)
    inside, sure = _inside(sample, rule)
    fit = FreeFit(_at_logits(inside.tally))
    by_likelihood = inside.why_not_counted is None
    weak, in_the_large, slope = _ratios(fit) if by_likelihood else _robust(inside, fit)
    return CalibrationTests(
        weak=weak,
        in_the_large=in_the_large,
        slope=slope,
        test="likelihood ratio" if by_likelihood else "robust wald",
        rows=inside.row_total,
        clusters=inside.cluster_count,
        left_out=sure.rows,
        notes=(*sure.notes(), *inside.notes),
    )


def _ratios(fit: FreeFit) -> tuple[ChiSquareTest, ChiSquareTest, ChiSquareTest]:
    in_the_large, slope = fit.log_likelihood_rises()
    return _tested(in_the_large + slope, 2), _tested(in_the_large, 1), _tested(slope, 1)


def _robust(sample: Sampled, fit: HeldFit) -> tuple[ChiSquareTest, ChiSquareTest, ChiSquareTest]:
    clusters = sample.cluster_count
    if clusters is not None and clusters < 3:
        raise UndefinedError("holds too few clusters for a test of slope and intercept", argument="cluster")
    spread = _covariance(sample, fit)
    apart = np.array([each.found for each in fit.profiles.values()]) - (1.0, 0.0, 0.0)
    pair = spread[:2, :2]
    if np.linalg.det(pair) <= _SINGULAR * pair[0, 0] * pair[1, 1]:
        raise UndefinedError(
            "slope and intercept vary together, as if they were one number, in these rows or clusters, so that nothing "
            "tests both",
            remedy="collect more of them",
        )
    both = float(apart[:2] @ np.linalg.solve(pair, apart[:2]))
    slope, _, held = np.square(apart) / np.diag(spread)
    return _robustly_tested(both, 2, sample), _robustly_tested(held, 1, sample), _robustly_tested(slope, 1, sample)


def _tested(statistic: float, degrees: int) -> ChiSquareTest:
    """Return a test by the chi-square law."""
    from scipy.special import chdtrc

    return ChiSquareTest(statistic, degrees, float(chdtrc(degrees, statistic)))


def _robustly_tested(statistic: float, degrees: int, sample: Sampled) -> ChiSquareTest:
    """Return a test by the F law that takes the place of the chi-square law where rows, or clusters, are few."""
    from scipy.special import fdtrc

    if sample.cluster_count is None:
        left, scaled = _degrees_left(sample), statistic / degrees
    else:
        left = sample.cluster_count - degrees
        scaled = statistic * left / (degrees * (sample.cluster_count - 1.0))
    return ChiSquareTest(float(statistic), degrees, float(fdtrc(degrees, left, scaled)))
