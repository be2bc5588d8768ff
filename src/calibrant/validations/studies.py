"""Validation studies: everything that is reported of forecasts of an existing model, each number with its limits."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from calibrant.certificates.results import Certificate
from calibrant.certificates.verdicts import certify, confidence_interval
from calibrant.core.errors import CalibrationWarning, UndefinedError
from calibrant.core.logistic import Points
from calibrant.core.progress import track
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, Randomness
from calibrant.decisions.benefit_results import NetBenefit
from calibrant.decisions.benefits import net_benefit
from calibrant.measures.brier import brier_score, scaled_brier_score
from calibrant.measures.curve_results import DISTANCES, CalibrationCurve
from calibrant.measures.curves import BANDS, INTERVALS, curve_places, distances, resampled_points
from calibrant.measures.discrimination import auroc
from calibrant.measures.ratios import observed_expected_ratio
from calibrant.measures.sampled import Sampled, sampled
from calibrant.measures.slope_results import COEFFICIENTS, CalibrationTests
from calibrant.measures.slopes import Extremes, calibration_slope_intercept, likelihood_ratio_tests
from calibrant.measures.smoothers import SmootherName, check_smoother, points_of
from calibrant.measures.weighted import cutoff_calibration_error
from calibrant.rows.checks import Observations, check_confidence, check_rng, check_seed
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.horizons import HorizonRows
from calibrant.rows.intake import RowsLike
from calibrant.rows.resamples import MOST_UNDEFINED, check_resamples, resampled
from calibrant.rows.tally import Tally
from calibrant.validations.results import Validation
from calibrant.validations.statistics import STATISTICS, Plan, Settings, check_settings, title_of

BAND = "pointwise"
"""Of the calibration curve, as papers draw it."""

_AS_GUARANTEED = "guarantee"


def validate(
    y_true: RowsLike,
    y_prob: ArrayLike | None = None,
    *,
    smoother: SmootherName = "loess",
    thresholds: ArrayLike | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 500,
    extremes: Extremes = "leave_out",
    max_error: float | None = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: ClassLabel | None = None,
    rng: Randomness = 0,
    progress: bool | None = None,
) -> Validation:
    """Everything that a validation study reports, each number with its limits.

    Calibration in the large, O/E, intercept and slope (profile likelihood), ICI, E50, E90, Emax and ECI of a smooth
    calibration curve with its band (one bootstrap for all of them), AUROC (DeLong), Brier and scaled Brier score, net
    benefit with a band over thresholds, likelihood-ratio tests, and the Cutoff calibration error with limits that are
    guaranteed at every number of rows. What is undefined on these rows is None, and a note says why.

    Parameters
    ----------
    y_true : array-like of shape (n,), Tally, or rows of `horizon`
        Outcomes: 0/1, booleans, or labels with ``pos_label``; both kinds must occur. Censored outcomes come as
        ``horizon(time, event, y_prob, at=...)``: then all limits are from resamples that estimate the weights anew.
    y_prob : array-like of shape (n,)
        Forecast probabilities, of a model that has not seen these rows; for one that has there is
        `internal_validation`.
    smoother : {"loess", "isotonic", "lowess", "splines"}
        The calibration curve, as in `integrated_calibration_index`.
    thresholds : array-like of floats in [0, 1), optional
        Where net benefit is taken: 0, 0.01, ..., 0.35 unless given.
    confidence_level : float, default 0.95
        Of each pair of limits by itself.
    n_resamples : int, default 500
        Resamples behind the limits of the curve and of what is read off it.
    extremes : {"leave_out", "refuse"} or float
        What the slope does with forecasts of exactly 0 and 1, as in `calibration_slope_intercept`.
    max_error : float, optional
        The largest Cutoff calibration error you can live with: then there is a verdict, as that of `certify`.
    cluster : array-like of shape (n,), optional
        A label per row that says which rows belong together: limits then count clusters.
    sample_weight : array-like of shape (n,), optional
        How much each row stands for, fixed beforehand.
    pos_label : label, optional
        The label in ``y_true`` that counts as the event.
    rng : int, Generator or None, default 0
        Where resamples come from.
    progress : bool, optional
        Whether to show a line on how far it is; by default on a terminal.

    Returns
    -------
    Validation
        ``found.slope``, ``found.slope_lower``, ``found.slope_upper`` and so on; ``print``, ``frame()``,
        ``to_markdown()`` and ``to_latex()`` give the table.

    References
    ----------
    Van Calster et al. (2019), Calibration: the Achilles heel of predictive analytics; Steyerberg et al. (2010),
    Assessing the performance of prediction models; Collins et al. (2024), TRIPOD+AI statement.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_prob = rng.random(500)
    >>> y_true = rng.random(500) < y_prob**1.5
    >>> found = validate(y_true, y_prob, n_resamples=50)
    >>> round(found.slope, 2), round(found.slope_lower, 2), round(found.slope_upper, 2)
    (1.1, 0.92, 1.3)
    >>> print(str(found).splitlines()[0])
    Miscalibrated: the forecasts are too high on the whole.
    """
    sample = opened(y_true, y_prob, cluster=cluster, sample_weight=sample_weight, pos_label=pos_label)
    return validate_sample(
        sample,
        smoother=smoother,
        thresholds=thresholds,
        confidence_level=confidence_level,
        n_resamples=n_resamples,
        extremes=extremes,
        max_error=max_error,
        rng=rng,
        progress=progress,
    )


def opened(
    y_true: Any, y_prob: Any = None, *, cluster: Any = None, sample_weight: Any = None, pos_label: Any = None
) -> Sampled:
    """Return the rows of a study, which hold both kinds of outcomes."""
    sample = sampled(y_true, y_prob, cluster=cluster, sample_weight=sample_weight, pos_label=pos_label)
    rate = sample.tally.outcome_total / sample.tally.weight_total
    if not 0.0 < rate < 1.0:
        raise UndefinedError(
            f"every outcome is {rate:g}", remedy="a validation needs rows with the event and rows without it"
        )
    return sample


def validate_sample(
    sample: Sampled,
    *,
    smoother: SmootherName = "loess",
    thresholds: ArrayLike | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 500,
    extremes: Extremes = "leave_out",
    max_error: float | None = None,
    rng: Randomness = 0,
    progress: bool | None = None,
) -> Validation:
    """Validate rows that were opened already."""
    level = check_confidence(confidence_level)
    resamples = check_resamples(n_resamples, level)
    settings = check_settings(smoother, extremes, None)
    study = _Study(sample, settings, level, resamples, check_seed(rng), progress)
    study.add_numbers()
    study.add_curve()
    study.add_rest()
    study.add_guarantee(max_error)
    benefit = study.tried("net benefit", partial(study.benefit, thresholds))
    tests = study.tried("tests of slope and intercept", study.tests)
    tally = sample.tally
    horizon = _horizon_of(sample)
    return Validation(
        rows=sample.row_total,
        events=_events(sample),
        mean_forecast=tally.forecast_total() / tally.weight_total,
        mean_outcome=tally.outcome_total / tally.weight_total,
        confidence_level=level,
        smoother=settings.smoother,
        extremes=settings.extremes,
        n_resamples=resamples,
        rng=study.seed,
        **study.values,
        intervals=tuple(study.intervals.items()),
        tests=tests,
        curve=study.curve,
        net_benefit=benefit,
        certificate=study.certificate,
        clusters=sample.cluster_count,
        weighted=sample.rows.sample_weight is not None,
        left_out=study.left_out,
        horizon=None if horizon is None else horizon.at,
        notes=tuple(dict.fromkeys(str(note).rstrip(".") for note in study.notes)),
    )


def _events(sample: Sampled) -> float:
    times = np.ones(sample.rows.y_prob.size) if sample.times is None else sample.times
    return float(times @ sample.rows.y_true)


def _horizon_of(sample: Sampled) -> HorizonRows | None:
    """Return the censored rows that were passed, if any."""
    origin = sample.origin.observations if isinstance(sample.origin, ClusteredRows) else sample.origin
    return origin if isinstance(origin, HorizonRows) else None


@dataclass
class _Study:
    """Numbers, limits and notes of a study, gathered one after the other."""

    sample: Sampled
    settings: Settings
    level: float
    resamples: int
    seed: int
    progress: bool | None
    values: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    curve: CalibrationCurve | None = None
    certificate: Certificate | None = None
    left_out: int = 0

    def __post_init__(self) -> None:
        horizon = _horizon_of(self.sample)
        self.estimated = horizon is not None and horizon.weights_estimated
        self.rows = self._given()
        self.chosen = check_smoother(self.settings.smoother)

    def _given(self) -> Tally | Observations | ClusteredRows:
        """Return the rows in the form in which functions with limits are quickest."""
        if self.sample.times is not None:
            return self.sample.tally
        return self.sample.rows if isinstance(self.sample.origin, Tally) else self.sample.origin

    def tried(self, what: str, compute: Callable[[], Any]) -> Any:
        """Return what can be computed, or None and note why not."""
        try:
            return compute()
        except UndefinedError as error:
            self.notes.append(f"no {what}: {error}")
            return None

    def limit(self, name: str, lower: float, upper: float, interval: str) -> None:
        """Record the limits of a number; infinite ones say nothing and are left out."""
        ends = {"lower": lower, "upper": upper}
        self.values |= {f"{name}_{end}": float(limit) for end, limit in ends.items() if math.isfinite(limit)}
        self.intervals[name] = interval

    def add_numbers(self) -> None:
        """Compute every number by itself; what is undefined has none."""
        plan = Plan(STATISTICS, self.settings)
        found = zip(plan.names, plan(self.sample.tally), strict=True)
        self.values |= {name: float(value) for name, value in found if not math.isnan(value)}

    # --- What is read off resamples -----------------------------------------------------------------------------------

    def add_curve(self) -> None:
        """Fit the curve, and in one pass over resamples find its band and all limits that take resamples."""
        points = points_of(self.sample.tally)
        rates = self.tried("calibration curve", partial(self.chosen.curve, points))
        places = np.empty(0) if rates is None else curve_places(points, self.chosen)
        rate = np.empty(0) if rates is None else rates(places)
        others = Plan([name for name in STATISTICS if name not in DISTANCES], self.settings) if self.estimated else None
        found = self.tried("limits from resamples", partial(self._drawn, places, others))
        if found is not None and rates is not None:
            self._limit_distances(found[:, : len(DISTANCES)])
        band = None
        if found is not None and rates is not None and self.chosen.smoother.smooth:
            curves = found[:, len(DISTANCES) : len(DISTANCES) + places.size]
            curves = curves[~np.isnan(curves).any(axis=1)]
            if curves.shape[0] >= (1.0 - MOST_UNDEFINED) * self.resamples:
                band = BANDS[BAND](curves, rate, self.level)
        if found is not None and others is not None:
            self._limit_others(others.names, found[:, found.shape[1] - len(others.names) :])
        if rates is not None:
            lower, upper = band if band is not None else (np.empty(0), np.empty(0))
            self.curve = CalibrationCurve(
                forecast=places,
                rate=rate,
                lower=np.clip(lower, 0.0, 1.0),
                upper=np.clip(upper, 0.0, 1.0),
                band=None if band is None else BAND,
                confidence_level=None if band is None else self.level,
                smoother=self.chosen.smoother.name,
                span=self.chosen.span,
                knots=self.chosen.knots,
                scale=self.chosen.scale,
                rows=self.sample.row_total,
                n_resamples=None if band is None else self.resamples,
                clusters=self.sample.cluster_count,
            )

    def _drawn(self, places: FloatArray, others: Plan | None) -> FloatArray:
        """Return in each resample the distances of the curve, the curve, and whatever else has to be resampled."""
        width = len(DISTANCES) + places.size
        found = []
        for points, tally in track(self._samples(), total=self.resamples, label="resampling", shown=self.progress):
            numbers: Sequence[float] = (math.nan,) * width
            if places.size:
                try:
                    rates = self.chosen.curve(points)
                    numbers = (*distances(points, rates(points.value)), *rates(places))
                except UndefinedError:
                    pass
            found.append((*numbers, *(() if others is None or tally is None else others(tally))))
        return np.array(found, dtype=np.float64)

    def _samples(self) -> Iterator[tuple[Points, Tally | None]]:
        """Draw rows or clusters again; only censored ones need more than the curve."""
        generator = check_rng(self.seed)
        if not self.estimated:
            yield from ((points, None) for points in resampled_points(self.rows, self.resamples, generator))
            return
        for sample in resampled(self.sample.drawn, self.resamples, generator):
            tally = Tally.from_observations(sample)
            yield points_of(tally), tally

    def _limit_distances(self, values: FloatArray) -> None:
        defined = values[~np.isnan(values).any(axis=1)]
        missing = self.resamples - defined.shape[0]
        if missing > MOST_UNDEFINED * self.resamples:
            self.notes.append(
                f"no limits of ICI, E50, E90, Emax and ECI: there is no curve in {missing:,} of {self.resamples:,} "
                "resamples"
            )
            return
        estimate = np.array([self.values[name] for name in DISTANCES])
        lower, upper = INTERVALS["basic"](defined, estimate, self.level)
        for name, low, high in zip(DISTANCES, lower, upper, strict=True):
            self.limit(name, low, high, "basic")

    def _limit_others(self, names: Sequence[str], values: FloatArray) -> None:
        ends = (1.0 - self.level) / 2.0, (1.0 + self.level) / 2.0
        for name, column in zip(names, values.T, strict=True):
            defined = column[~np.isnan(column)]
            if name not in self.values:
                continue
            if defined.size < (1.0 - MOST_UNDEFINED) * self.resamples:
                missing = self.resamples - defined.size
                self.notes.append(
                    f"no limits of {title_of(name)}: it is undefined in {missing:,} of {self.resamples:,} resamples"
                )
                continue
            lower, upper = np.quantile(defined, ends)
            self.limit(name, float(lower), float(upper), "percentile")

    # --- What needs no resamples --------------------------------------------------------------------------------------

    def add_rest(self) -> None:
        """Find limits that need no resamples, and what the slope left out."""
        slope = self.tried("calibration slope or limits of it", self._slope)
        if slope is not None:
            self.left_out = slope.left_out
            self.notes.extend(slope.notes)
            if slope.interval is not None:
                for name in COEFFICIENTS:
                    ends = (getattr(slope, f"{name}_{end}") for end in ("lower", "upper"))
                    self.limit(name, *ends, slope.interval)
        if self.estimated:
            self.notes.append(
                "outcomes are censored: rows count by weights that were estimated, all limits are from resamples that "
                "estimate them anew, and none is guaranteed"
            )
            return
        asked: dict[str, Any] = {"confidence_level": self.level}
        functions: dict[str, Callable[..., Any]] = {
            "observed_expected_ratio": observed_expected_ratio,
            "auroc": auroc,
            "brier": brier_score,
            "brier_scaled": scaled_brier_score,
        }
        if not self.sample.tally.binary_outcomes:
            del functions["auroc"]
            self.notes.append("no AUROC: outcomes are fractions, and it ranks events against rows without")
        for name, function in functions.items():
            found = self.tried(f"{title_of(name)}, or limits of it", partial(function, self.rows, **asked))
            if found is not None:
                self.limit(name, found.lower, found.upper, found.interval)
                self.notes.extend(found.notes)
        self.tried("limits of calibration in the large", self._limit_mean)

    def _slope(self) -> Any:
        level = None if self.estimated else self.level
        return calibration_slope_intercept(self.rows, extremes=self.settings.extremes, confidence_level=level)

    def _limit_mean(self) -> None:
        sample, name = self.sample, "calibration_in_the_large"
        error = sample.error(sample.rows.y_true - sample.rows.y_prob)
        reach = sample.quantile(self.level) * error
        self.limit(name, self.values[name] - reach, self.values[name] + reach, "normal")

    def add_guarantee(self, max_error: float | None) -> None:
        """Add the Cutoff calibration error, with limits that hold at every number of rows; or the verdict asked for."""
        self.values["cutoff"] = cutoff_calibration_error(self.sample.tally)
        asked: dict[str, Any] = {"confidence_level": self.level, "rng": self.seed}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)  # what it warns of stands in the notes
            if max_error is not None:
                self.certificate = certify(self.rows, max_error=max_error, **asked)
                self.notes.extend(self.certificate.cautions)
                self.limit("cutoff", self.certificate.lower, self.certificate.upper, _AS_GUARANTEED)
            elif self.estimated:
                self.notes.append("no limits of the Cutoff calibration error: its guarantee takes fixed weights")
            else:
                found = self.tried(
                    "limits of the Cutoff calibration error", lambda: confidence_interval(self.rows, **asked)
                )
                if found is not None:
                    self.limit("cutoff", found.lower, found.upper, _AS_GUARANTEED)

    def tests(self) -> CalibrationTests | None:
        """Test slope and intercept; censored rows have no likelihood, and no sandwich knows their weights."""
        if self.estimated:
            return None
        return likelihood_ratio_tests(self.rows, extremes=self.settings.extremes)

    def benefit(self, thresholds: ArrayLike | None) -> NetBenefit:
        """Find net benefit with limits at each threshold, and over all of them."""
        return net_benefit(
            self.rows,
            thresholds=thresholds,
            confidence_level=self.level,
            interval="bootstrap" if self.estimated else "delta",
            band=True,
            n_resamples=self.resamples,
            rng=self.seed,
        )
