"""Validation studies: everything that is reported of forecasts of an existing model, each number with its limits."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Never

import numpy as np

from calibrant.certificates.cautions import cautions_on
from calibrant.certificates.results import Certificate
from calibrant.certificates.verdicts import certify, confidence_interval
from calibrant.core.errors import CalibrationWarning, InputError, UndefinedError
from calibrant.core.frames import frames_follow
from calibrant.core.progress import track
from calibrant.core.types import ArrayLike, ClassLabel, FloatArray, Randomness
from calibrant.core.voices import Either, Option, Phrase
from calibrant.core.words import counted
from calibrant.decisions.benefit_results import NetBenefit
from calibrant.decisions.benefits import net_benefit
from calibrant.measures.brier import brier_score, scaled_brier_score
from calibrant.measures.curve_results import DISTANCES, CalibrationCurve
from calibrant.measures.curves import BANDS, INTERVALS, curve_places, distances_of, refuse_few_rows, resampled_points
from calibrant.measures.discrimination import auroc
from calibrant.measures.estimates import have_no_width
from calibrant.measures.everything import measure
from calibrant.measures.ratios import observed_expected_ratio
from calibrant.measures.sampled import Sampled, sampled
from calibrant.measures.slope_results import COEFFICIENTS, CalibrationTests
from calibrant.measures.slopes import (
    Extremes,
    calibration_slope_intercept,
    intercept_at_unit_slope,
    likelihood_ratio_tests,
)
from calibrant.measures.smoothers import Rates, SmootherName, check_smoother, points_of
from calibrant.rows.checks import Observations, check_confidence, check_rng, check_seed
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.hints import MISTAKES
from calibrant.rows.horizons import HorizonRows
from calibrant.rows.intake import RowsLike
from calibrant.rows.resamples import MOST_UNDEFINED, check_resamples
from calibrant.rows.tally import Tally
from calibrant.validations.results import MEASURED, Validation
from calibrant.validations.statistics import STATISTICS, Plan, Settings, check_settings, title_of
from calibrant.validations.verdicts import Mean, decide

BAND: Final = "pointwise"
"""Of the calibration curve, as papers draw it."""

READ: Final = "corrected"
"""How limits of what is read off the curve come from resamples."""

FEW: Final = 100
"""Events, and rows without, below which a validation says little."""

FEW_CLUSTERS: Final = 40
"""Clusters below which limits that count them are likely to be too narrow."""

GUARANTEED: Final = "guarantee"
"""How limits were found that hold at every number of rows."""

ELSEWHERE: Final = {
    "by": "validate each group by itself; measure and certify take groups",
    "interval": "each number has its way here; the single functions take it, as in "
    "measures.calibration_slope_intercept(..., interval='wald')",
}
"""What people ask `validate` for that other functions do, and which."""


@frames_follow
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
    **elsewhere: Never,
) -> Validation:
    """Everything that a validation study reports, each number with its limits.

    Calibration in the large, O/E, intercept and slope (profile likelihood), ICI, E50, E90, Emax and ECI of a smooth
    calibration curve with its band (one bootstrap for all of them), AUROC (DeLong), Brier and scaled Brier score, net
    benefit with a band over thresholds, likelihood-ratio tests, and the Cutoff calibration error with limits that are
    guaranteed at every number of rows. What is undefined on these rows is None, and a note says why.

    One test decides whether forecasts are called miscalibrated, at level 1 - ``confidence_level``: that of weak
    calibration (intercept 0 and slope 1), or of calibration in the large where there is none. Where it is silent, only
    guaranteed limits of the Cutoff calibration error above 0 say so too. The result names the test and its p-value.

    Parameters
    ----------
    y_true : array-like of shape (n,), Tally, or rows of `horizon`
        Outcomes: 0/1, booleans, or labels with ``pos_label``; both kinds must occur. Censored outcomes come as
        ``horizon(time, event, y_prob, at=...)``: limits then count that weights are estimated, and none is guaranteed.
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
        What the slope does with forecasts of exactly 0 and 1, as in `calibration_slope_intercept`; "refuse" makes them
        an error. Where a number pulls forecasts inside, calibration in the large decides.
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
    **elsewhere
        Nothing: ``by`` and ``interval`` are refused with a word on which functions take them.

    Returns
    -------
    Validation
        ``found.slope``, ``found.slope_lower``, ``found.slope_upper`` and so on; ``print``, ``frame()``,
        ``to_markdown()`` and ``to_latex()`` give the table.

    References
    ----------
    Van Calster et al. (2019), Calibration: the Achilles heel of predictive analytics; Steyerberg et al. (2010),
    Assessing the performance of prediction models; Vergouwe et al. (2005), Substantial effective sample sizes were
    required for external validation studies of predictive logistic regression models; Collins et al. (2024), TRIPOD+AI
    statement.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y_prob = rng.random(500)
    >>> y_true = rng.random(500) < y_prob**1.5
    >>> found = validate(y_true, y_prob, n_resamples=50)
    >>> round(found.slope, 2), round(found.slope_lower, 2), round(found.slope_upper, 2)
    (1.19, 0.98, 1.42)
    >>> print(str(found).splitlines()[0])
    Miscalibrated: the forecasts are too high on the whole (weak-calibration test, p below 0.001).
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
        **elsewhere,
    )


def opened(
    y_true: Any, y_prob: Any = None, *, cluster: Any = None, sample_weight: Any = None, pos_label: Any = None
) -> Sampled:
    """Return the rows of a study of one model, which hold both kinds of outcomes."""
    if isinstance(y_prob, Mapping):
        raise InputError(
            f"is a dict of {counted(len(y_prob), 'model')}, and a validation is about one",
            argument="y_prob",
            remedy="validate each by itself; compare_models and decisions.decision_curve take several",
        )
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
    **elsewhere: Any,
) -> Validation:
    """Validate rows that were opened already."""
    for name in elsewhere:
        if name not in ELSEWHERE:
            raise TypeError(f"validate() got an unexpected keyword argument {name!r}")
        raise InputError("is not an option of validate", argument=name, remedy=ELSEWHERE[name])
    level = check_confidence(confidence_level)
    resamples = check_resamples(n_resamples, level)
    settings = check_settings(smoother, extremes, None)
    _refuse(sample, settings, max_error)
    study = _Study(sample, settings, level, resamples, check_seed(rng), progress)
    study.add_numbers()
    study.add_guarantee(max_error)
    benefit = study.tried("net benefit", partial(study.benefit, thresholds))
    study.add_rest()
    study.add_curve()  # last, since it takes longest and cannot be refused
    tests = study.tried("tests of slope and intercept", study.tests) if "slope" in study.values else None
    study.add_cautions()
    decision = decide(sample, tests, study.mean, settings.extremes)
    tally, censored = sample.tally, sample.censored
    expected = tally.forecast_total() / tally.weight_total
    lost = 0 if censored is None else censored.rows.outcome.censored
    return Validation(
        rows=sample.row_total + lost,
        events=_events(sample),
        mean_forecast=expected if censored is None else float(censored.rows.y_prob.mean()),
        mean_outcome=tally.outcome_total / tally.weight_total,
        confidence_level=level,
        smoother=settings.smoother,
        extremes=settings.extremes,
        n_resamples=resamples,
        rng=study.seed,
        **study.values,
        intervals=tuple(study.intervals.items()),
        decided_by=None if decision is None else decision.test,
        pvalue=None if decision is None else decision.pvalue,
        tests=tests,
        curve=study.curve,
        net_benefit=benefit,
        certificate=study.certificate,
        clusters=sample.cluster_count,
        weighted=sample.rows.sample_weight is not None,
        left_out=study.left_out,
        horizon=_horizon_of(sample),
        censored=lost,
        notes=tuple(dict.fromkeys(map(_without_stop, study.notes))),
    )


def _without_stop(note: str) -> str:
    """Return a note without its stop, and with its facts, if it has some, for whoever reads it."""
    if isinstance(note, Phrase) and note.template.endswith("."):
        return Phrase(note.template.rstrip("."), code=note.code, **note.facts)
    return note if isinstance(note, Phrase) and not note.endswith(".") else note.rstrip(".")


def _refuse(sample: Sampled, settings: Settings, max_error: float | None) -> None:
    """Refuse sure forecasts where that was asked for, and a limit where nothing can be guaranteed."""
    tally = sample.tally
    sure = int(tally.rows[(tally.forecast == 0.0) | (tally.forecast == 1.0)].sum())
    if sure and settings.extremes == "refuse":
        raise UndefinedError(
            f"holds {counted(sure, 'forecast')} of exactly 0 or 1, whose logit is infinite",
            argument="y_prob",
            remedy=Phrase(
                "leave them out of the slope with {leave}, or pull them inside with {pull}, and say so in the report",
                leave=Either("extremes='leave_out'", "--extremes leave-out"),
                pull=Option("extremes", 1e-6),
            ),
        )
    if max_error is not None and sample.censored is not None:
        raise InputError(
            "asks for a guarantee, and outcomes are censored: their weights are estimated, and no guarantee holds",
            argument="max_error",
            remedy="leave it out: the limits of the table count the censoring",
        )


def _events(sample: Sampled) -> float:
    times = np.ones(sample.rows.y_prob.size) if sample.times is None else sample.times
    return float(times @ sample.rows.y_true)


def _horizon_of(sample: Sampled) -> float | None:
    """Return the time by which events count, where rows are about one."""
    rows = sample.origin.every[0] if isinstance(sample.origin, ClusteredRows) else sample.origin
    return rows.at if isinstance(rows, HorizonRows) else None


@dataclass
class _Study:
    """Numbers, limits and notes of a study, gathered one after the other."""

    sample: Sampled
    settings: Settings
    level: float
    resamples: int
    seed: int
    progress: bool | None
    values: dict[str, Any] = field(default_factory=dict)
    intervals: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    curve: CalibrationCurve | None = None
    certificate: Certificate | None = None
    left_out: int = 0
    mean: Mean | None = None
    widthless: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chosen = check_smoother(self.settings.smoother)
        origin = self.sample.origin
        # In an order of their own, so that not even rounding depends on the one in which they came.
        self.rows: Tally | Observations | ClusteredRows = self.sample.rows
        if self.sample.times is not None:
            self.rows = self.sample.tally
        elif not isinstance(origin, Tally) and (self.sample.censored is not None or self.sample.clusters is not None):
            self.rows = origin
        self.held: dict[str, Any] = {"y_true": self.rows}
        if self.sample.censored is not None and isinstance(origin, ClusteredRows):
            rows, codes = origin.every
            self.held = {"y_true": rows, "cluster": codes}

    def tried(self, what: str, compute: Callable[[], Any]) -> Any:
        """Return what can be computed, or None and note why not."""
        try:
            return compute()
        except UndefinedError as error:
            self.notes.append(Phrase("no {what}: {error}", what=what, error=error.phrase))
            return None

    def limit(self, name: str, lower: float, upper: float, interval: str) -> None:
        """Record the limits of a number; infinite ones, and those of no width, say nothing and are left out."""
        if have_no_width(lower, upper, self.values[name]):
            self.widthless.append(title_of(name))
            return
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
        """Fit the curve, and in one pass over resamples find its band and the limits of what is read off it."""
        points = points_of(self.sample.tally)
        rates = self.tried("calibration curve", partial(self.chosen.curve, points))
        if rates is None:
            return
        places = curve_places(points, self.chosen)
        rate = rates(places)
        found = self.tried("limits of the calibration curve", partial(self._drawn, rates, places))
        lower = upper = np.empty(0)
        is_banded = found is not None and self.chosen.smoother.smooth
        if found is not None:
            values, noise, curves = np.split(found, [len(DISTANCES), 2 * len(DISTANCES)], axis=1)
            ends = INTERVALS[READ](values, noise, np.array([self.values[name] for name in DISTANCES]), self.level)
            for name, low, high in zip(DISTANCES, *ends, strict=True):
                self.limit(name, low, high, READ)
            if is_banded:
                lower, upper = BANDS[BAND](curves, rate, self.level)
        self.curve = CalibrationCurve(
            forecast=places,
            rate=rate,
            lower=np.clip(lower, 0.0, 1.0),
            upper=np.clip(upper, 0.0, 1.0),
            band=BAND if is_banded else None,
            confidence_level=self.level if is_banded else None,
            smoother=self.chosen.smoother.name,
            span=self.chosen.span,
            knots=self.chosen.knots,
            scale=self.chosen.scale,
            rows=self.sample.row_total,
            n_resamples=self.resamples if is_banded else None,
            clusters=self.sample.cluster_count,
        )

    def _drawn(self, curve: Rates, places: FloatArray) -> FloatArray:
        """Return in each resample that has a curve its distances from the diagonal and from ours, and the curve."""
        refuse_few_rows(self.sample.row_total)
        drawn = resampled_points(self.rows, self.resamples, check_rng(self.seed))
        found = []
        for points in track(drawn, total=self.resamples, label="resampling", shown=self.progress):
            with contextlib.suppress(UndefinedError):
                rates = self.chosen.curve(points)
                found.append(np.concatenate([distances_of(points, rates, curve), rates(places)]))
        missing = self.resamples - len(found)
        if missing > MOST_UNDEFINED * self.resamples:
            raise UndefinedError(f"there is no curve in {missing:,} of {self.resamples:,} resamples of these rows")
        return np.array(found)

    # --- What needs no resamples --------------------------------------------------------------------------------------

    def add_rest(self) -> None:
        """Find limits that need no resamples, and what the slope left out."""
        asked: dict[str, Any] = {"confidence_level": self.level}
        slope = self.tried(
            "calibration slope, or limits of it",
            lambda: calibration_slope_intercept(self.rows, extremes=self.settings.extremes, **asked),
        )
        if slope is not None:
            self.left_out = slope.left_out
            self.notes.extend(slope.notes)
            for name in COEFFICIENTS:
                self.limit(name, getattr(slope, f"{name}_lower"), getattr(slope, f"{name}_upper"), slope.interval)
        functions: dict[str, Callable[..., Any]] = {}
        if slope is None and "intercept_at_unit_slope" in self.values:
            extremes = self.settings.extremes
            functions["intercept_at_unit_slope"] = partial(intercept_at_unit_slope, extremes=extremes)
        functions |= {
            "observed_expected_ratio": observed_expected_ratio,
            "auroc": auroc,
            "brier": brier_score,
            "brier_scaled": scaled_brier_score,
        }
        if not self.sample.tally.binary_outcomes:
            del functions["auroc"]
            self.notes.append("no AUROC: outcomes are fractions, and it ranks events against rows without")
        for name, function in functions.items():
            found = self.tried(f"{title_of(name)}, or limits of it", partial(function, **self.held, **asked))
            if found is not None:
                self.values[name] = found.estimate  # which of censored rows is more than a weighted mean
                self.limit(name, found.lower, found.upper, found.interval)
                self.notes.extend(found.notes)
        self.tried("limits of calibration in the large", self._limit_mean)

    def _limit_mean(self) -> None:
        """Find the limits of the mean residual; that of censored rows is the risk less the mean of all forecasts."""
        sample, name = self.sample, "calibration_in_the_large"
        if sample.censored is None:
            error = sample.error(sample.rows.y_true - sample.rows.y_prob)
        else:
            rows, clusters = sample.censored.rows, sample.censored.clusters
            expected = float(rows.y_prob.mean())
            self.values[name] = rows.incidence.risk - expected
            moved = rows.incidence.influence - (rows.y_prob - expected) / rows.y_prob.size
            moved = moved if clusters is None else np.bincount(clusters, weights=moved).astype(np.float64)
            error = float(np.linalg.norm(moved)) * math.sqrt(sample.few_clusters)
        self.mean = Mean(self.values[name], error)
        reach = sample.quantile(self.level) * error
        self.limit(name, self.values[name] - reach, self.values[name] + reach, "normal")

    def add_cautions(self) -> None:
        """Note, before all else, likely mistakes, what would mislead about the verdict, and too few of anything."""
        if self.widthless:
            many = "they vary" if len(self.widthless) > 1 else "it varies"
            self.notes.append(f"no limits of {', '.join(self.widthless)}: nothing in these rows shows how much {many}")
        cautions = [*self.hints, *(() if self.certificate is None else self.certificate.cautions)]
        clusters = self.sample.cluster_count
        if clusters is not None and clusters < FEW_CLUSTERS:
            cautions.append(
                f"there {'is' if clusters == 1 else 'are'} {counted(clusters, 'cluster')}, and limits that count them "
                f"are likely to be too narrow below about {FEW_CLUSTERS} (Cameron, Miller 2015)"
            )
        events = _events(self.sample)
        fewest, what = min((events, "events"), (self.sample.row_total - events, "rows without the event"))
        if fewest < FEW:
            shown = f"{fewest:,.0f}"
            what = what if shown != "1" else what.replace("events", "event").replace("rows", "row")
            cautions.append(
                f"there {'is' if shown == '1' else 'are'} {shown} {what}, and limits that suppose many may be "
                f"off; a validation should have at least {FEW} of each kind (Vergouwe et al. 2005)"
            )
        self.notes[:0] = cautions

    def add_guarantee(self, max_error: float | None) -> None:
        """Add calibration errors, the Cutoff one with limits that hold at every number of rows, or with its verdict."""
        measured = measure(self.sample.tally)
        self.values |= {name: getattr(measured, name) for name in MEASURED}
        self.hints = [note for note in measured.notes if getattr(note, "code", "") in MISTAKES]
        asked: dict[str, Any] = {"confidence_level": self.level, "rng": self.seed}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrationWarning)  # what it warns of stands in the notes
            if max_error is not None:
                found = certify(self.rows, max_error=max_error, **asked)
                if found.clusters is None:  # and no limit as a share of events can be asked about here
                    cautions = cautions_on(found.max_error, found.event_rate, "rows", rows_only=True)
                    found = replace(found, cautions=cautions)
                self.certificate = found
            if self.sample.rows.weights_estimated:
                self.notes.append("no limits of the Cutoff calibration error: its guarantee takes fixed weights")
            else:  # also beside a certificate, of which each limit holds by itself, and the pair less surely
                what = "limits of the Cutoff calibration error"
                interval = self.tried(what, lambda: confidence_interval(self.rows, **asked))
                if interval is not None:
                    self.limit("cutoff", interval.lower, interval.upper, GUARANTEED)

    def tests(self) -> CalibrationTests:
        """Test slope and intercept."""
        return likelihood_ratio_tests(self.rows, extremes=self.settings.extremes)

    def benefit(self, thresholds: ArrayLike | None) -> NetBenefit:
        """Find net benefit with limits at each threshold, and over all of them."""
        return net_benefit(
            self.rows,
            thresholds=thresholds,
            confidence_level=self.level,
            band=True,
            n_resamples=self.resamples,
            rng=self.seed,
        )
