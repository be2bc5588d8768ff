"""What a validation study reports: every number with its limits, in a table that a paper takes, and in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from calibrant.certificates.results import Certificate
from calibrant.core.results import UNIT, Result
from calibrant.core.words import counted, in_columns, level_said, percent, rounded, rounded_down, rounded_up
from calibrant.decisions.benefit_results import NetBenefit
from calibrant.measures.curve_results import CalibrationCurve
from calibrant.measures.results import CalibrationDistance, WorstInterval
from calibrant.measures.slope_results import CalibrationTests
from calibrant.measures.slopes import Extremes
from calibrant.validations.findings import findings_of, test_said
from calibrant.validations.statistics import CUTOFF, STATISTICS
from calibrant.validations.tables import latex_table, markdown_table

TABLED = (*STATISTICS.values(), CUTOFF)
"""The statistics of the table, in its order."""

ERRORS = ("cutoff", "ks", "smooth", "bounded_variation", "ece", "ece_binned", "risk_gap")
"""Calibration errors that are there under the names that they have in `measure`, ..."""

MEASURED = (*ERRORS, "distance", "worst_interval", "distinct_forecasts", "effective_support", "weight_total")
"""... and all that a study has from there."""

DIGITS = 3
"""Decimals of the table, wherever it is shown."""

SHARES = ("calibration_in_the_large", "ici", "e50", "e90", "emax", "eci", "brier", "cutoff")
"""The statistics of the table that are small where events are rare, and take more decimals then."""


class Line(NamedTuple):
    """A statistic as a table shows it; ``finer`` is how many more decimals than others it takes."""

    name: str
    title: str
    estimate: float | None
    lower: float | None
    upper: float | None
    ideal: float | None
    interval: str | None
    meaning: str
    finer: int = 0

    def written(self, digits: int) -> tuple[str, str]:
        """Return number and limits in words; limits with a guarantee are rounded outwards, others to the nearest."""
        digits += self.finer
        if self.lower is None and self.upper is None:
            return rounded(self.estimate, digits), "-"
        if self.name == CUTOFF.name:
            ends = rounded_down(self.lower, digits), rounded_up(self.upper, digits)
        else:
            ends = rounded(self.lower, digits), rounded(self.upper, digits)
        return rounded(self.estimate, digits), f"{ends[0]} to {ends[1]}"


@dataclass(frozen=True, eq=False)
class Validation(Result):
    """Every number of a validation study with its limits.

    A number is None where it is undefined on these rows, and so are limits that cannot be found; the notes say why.
    Each pair of limits holds by itself with ``confidence_level``, not all of them together.

    Attributes
    ----------
    rows : int
        How many rows of positive weight; of censored outcomes all of them.
    events : float
        Sum of their outcomes: the number of events for outcomes of 0 and 1.
    mean_forecast, mean_outcome : float
        Weighted means; of censored outcomes the mean of all forecasts, and the Kaplan-Meier or Aalen-Johansen risk.
    calibration_in_the_large, calibration_in_the_large_lower, calibration_in_the_large_upper : float or None
        Mean outcome minus mean forecast.
    observed_expected_ratio, observed_expected_ratio_lower, observed_expected_ratio_upper : float or None
        Events for each one forecast.
    slope, slope_lower, slope_upper : float or None
        Calibration slope: below 1 forecasts are too extreme, above 1 too timid.
    intercept, intercept_lower, intercept_upper : float or None
        Calibration intercept, fitted together with the slope.
    intercept_at_unit_slope, intercept_at_unit_slope_lower, intercept_at_unit_slope_upper : float or None
        Calibration intercept with the slope held at 1: below 0 forecasts are too high on the whole.
    ici, ici_lower, ici_upper : float or None
        Integrated calibration index: mean distance of the calibration curve from the diagonal.
    e50, e50_lower, e50_upper : float or None
        Median of that distance.
    e90, e90_lower, e90_upper : float or None
        90th percentile of that distance.
    emax, emax_lower, emax_upper : float or None
        Largest distance.
    eci, eci_lower, eci_upper : float or None
        Estimated calibration index: 100 times the mean squared distance.
    auroc, auroc_lower, auroc_upper : float or None
        How often, of an event and a row without, the event has the higher forecast.
    brier, brier_lower, brier_upper : float or None
        Mean squared error of the forecasts.
    brier_scaled, brier_scaled_lower, brier_scaled_upper : float or None
        Share of the Brier score of always forecasting the event rate that the forecasts save.
    cutoff, cutoff_lower, cutoff_upper : float or None
        Cutoff calibration error: the largest residual mass of an interval of forecasts; its limits are guaranteed at
        every number of rows, both at once (`confidence_interval`). The ``certificate`` has its own.
    ks, smooth, bounded_variation, ece, ece_binned, risk_gap : float or None
        The other calibration errors, as in `measure`: without limits, which `confidence_interval` has for each.
    distance : CalibrationDistance or None
        An interval that contains the distance from calibration, as in `measure`.
    worst_interval : WorstInterval or None
        The range of forecasts on which the Cutoff error is.
    distinct_forecasts, effective_support : int or None
        How many different forecasts there are, and how few carry 95% of the weight.
    weight_total : float or None
        Sum of the weights; the number of rows without.
    confidence_level : float
        Of each pair of limits.
    intervals : tuple of (str, str)
        How the limits of each number were found.
    smoother : str
        The calibration curve behind ICI, E50, E90, Emax and ECI.
    extremes : str or float
        What the slope does with forecasts of exactly 0 and 1.
    n_resamples : int
        Resamples behind limits that are found by resampling.
    rng : int
        The seed that they were drawn with.
    decided_by : str or None
        The test that decides whether forecasts are called miscalibrated, at level 1 - ``confidence_level``: "weak
        calibration", or "calibration in the large" where that cannot be tested ("sure forecasts" where all are 0 or 1);
        None where neither can.
    pvalue : float or None
        Of that test.
    tests : CalibrationTests or None
        Likelihood-ratio tests of weak calibration, calibration in the large and the slope.
    curve : CalibrationCurve or None
        The calibration curve with its band.
    net_benefit : NetBenefit or None
        Net benefit at each threshold, with limits at each and a band over all.
    certificate : Certificate or None
        The verdict on ``max_error``, where one was asked about.
    clusters : int or None
        How many clusters the limits count; None for independent rows.
    weighted : bool
        Whether rows have different weights.
    left_out : int
        Rows with forecasts of exactly 0 or 1 that the slope leaves out.
    horizon : float or None
        The time by which the event counts, for censored outcomes; None for others.
    censored : int
        Rows whose outcome is unknown, because they were lost from sight before the horizon.
    notes : tuple of str
        What to keep in mind when reading the numbers.
    """

    rows: int
    events: float
    mean_forecast: float
    mean_outcome: float
    confidence_level: float
    smoother: str
    extremes: Extremes
    n_resamples: int
    rng: int
    calibration_in_the_large: float | None = None
    calibration_in_the_large_lower: float | None = None
    calibration_in_the_large_upper: float | None = None
    observed_expected_ratio: float | None = None
    observed_expected_ratio_lower: float | None = None
    observed_expected_ratio_upper: float | None = None
    slope: float | None = None
    slope_lower: float | None = None
    slope_upper: float | None = None
    intercept: float | None = None
    intercept_lower: float | None = None
    intercept_upper: float | None = None
    intercept_at_unit_slope: float | None = None
    intercept_at_unit_slope_lower: float | None = None
    intercept_at_unit_slope_upper: float | None = None
    ici: float | None = None
    ici_lower: float | None = None
    ici_upper: float | None = None
    e50: float | None = None
    e50_lower: float | None = None
    e50_upper: float | None = None
    e90: float | None = None
    e90_lower: float | None = None
    e90_upper: float | None = None
    emax: float | None = None
    emax_lower: float | None = None
    emax_upper: float | None = None
    eci: float | None = None
    eci_lower: float | None = None
    eci_upper: float | None = None
    auroc: float | None = None
    auroc_lower: float | None = None
    auroc_upper: float | None = None
    brier: float | None = None
    brier_lower: float | None = None
    brier_upper: float | None = None
    brier_scaled: float | None = None
    brier_scaled_lower: float | None = None
    brier_scaled_upper: float | None = None
    cutoff: float | None = None
    cutoff_lower: float | None = None
    cutoff_upper: float | None = None
    ks: float | None = None
    smooth: float | None = None
    bounded_variation: float | None = None
    ece: float | None = None
    ece_binned: float | None = None
    risk_gap: float | None = None
    distance: CalibrationDistance | None = None
    worst_interval: WorstInterval | None = None
    distinct_forecasts: int | None = None
    effective_support: int | None = None
    weight_total: float | None = None
    intervals: tuple[tuple[str, str], ...] = ()
    decided_by: str | None = None
    pvalue: float | None = None
    tests: CalibrationTests | None = None
    curve: CalibrationCurve | None = None
    net_benefit: NetBenefit | None = None
    certificate: Certificate | None = None
    clusters: int | None = None
    weighted: bool = False
    left_out: int = 0
    horizon: float | None = None
    censored: int = 0
    notes: tuple[str, ...] = ()

    _ranges: ClassVar = {
        **dict.fromkeys(("mean_forecast", "mean_outcome", "confidence_level", "auroc", "brier"), UNIT),
        **dict.fromkeys(("ici", "e50", "e90", "pvalue", *ERRORS), UNIT),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        for statistic in TABLED:
            lower, upper = f"{statistic.name}_lower", f"{statistic.name}_upper"
            if getattr(self, lower) is not None and getattr(self, upper) is not None:
                self._check_order(lower, upper)

    def table(self) -> list[Line]:
        """Return a line for each statistic, in reading order."""
        found = dict(self.intervals)
        return [
            Line(
                each.name,
                each.title,
                getattr(self, each.name),
                getattr(self, f"{each.name}_lower"),
                getattr(self, f"{each.name}_upper"),
                each.ideal,
                found.get(each.name),
                each.meaning,
                self.finer if each.name in SHARES else 0,
            )
            for each in TABLED
        ]

    @property
    def finer(self) -> int:
        """How many more decimals shares of rows take than usual, because events, or rows without, are rare."""
        rarer = min(self.mean_outcome, 1.0 - self.mean_outcome)
        return max(math.floor(-math.log10(rarer)) - 1, 0) if rarer > 0.0 else 0

    def frame(self, backend: Any = None) -> Any:
        """Return one row per statistic: statistic, estimate, lower, upper, ideal, interval."""
        lines = self.table()
        columns = {"statistic": [line.name for line in lines]}
        names = ("estimate", "lower", "upper", "ideal", "interval")
        return self._framed(columns | {name: [getattr(line, name) for line in lines] for name in names}, backend)

    def _cells(self, digits: int) -> list[tuple[str, ...]]:
        return [
            (line.title, *line.written(digits), "-" if line.ideal is None else f"{line.ideal:g}")
            for line in self.table()
        ]

    def _heads(self) -> tuple[str, ...]:
        return "Statistic", "Estimate", f"{level_said(self.confidence_level)} CI", "Ideal"

    def footnote(self) -> str:
        """Say what the table rests on: rows, the test, the curve, and how limits were found."""
        ways: dict[str, list[str]] = {}
        for line in self.table():
            if line.interval is not None:
                ways.setdefault(line.interval, []).append(line.title)
        limits = "; ".join(f"{way}: {', '.join(titles)}" for way, titles in ways.items())
        test = test_said(self)
        tested = f"{test[0].upper()}{test[1:]}. " if test else ""
        return (
            f"{self.headline()}. {tested}Curve by {self.smoother}, limits of it from "
            f"{self.n_resamples:,} resamples. Limits of each number by itself, rounded outwards where guaranteed "
            f"({limits})."
        )

    def to_markdown(self, *, digits: int = DIGITS) -> str:
        """Return the table in Markdown, which word processors take, with a footnote on what it rests on.

        Parameters
        ----------
        digits : int
            Decimals.
        """
        return f"{markdown_table(self._heads(), self._cells(digits))}\n\n{self.footnote()}"

    def to_latex(self, *, digits: int = DIGITS) -> str:
        """Return the table in LaTeX, with a footnote on what it rests on.

        Parameters
        ----------
        digits : int
            Decimals.
        """
        return latex_table(self._heads(), self._cells(digits), footnote=self.footnote())

    def headline(self) -> str:
        """Say what was validated."""
        weighted = "weighted " if self.weighted and not self.censored else ""
        of = "" if self.clusters is None else f" in {counted(self.clusters, 'cluster')}"
        of += f" ({self.censored:,} censored)" if self.censored else ""
        by = "" if self.horizon is None else f" by time {self.horizon:g}"
        events = f"{self.events:,.0f}" if float(self.events).is_integer() else f"{self.events:,.1f}"
        return (
            f"{counted(self.rows, f'{weighted}row')}{of}, {events} event{'' if events == '1' else 's'}{by}: "
            f"{weighted}mean forecast {percent(self.mean_forecast)}, "
            f"{weighted}{'event rate' if self.horizon is None else 'risk'} {percent(self.mean_outcome)}"
        )

    def written_table(self) -> str:
        """Write the table in columns."""
        names = ("statistic", "estimate", f"{level_said(self.confidence_level)} limits", "ideal", "limits by")
        rows = [(*cells, line.interval or "-") for cells, line in zip(self._cells(DIGITS), self.table(), strict=True)]
        return in_columns(names, rows)

    def __str__(self) -> str:
        said = findings_of(self)
        return "\n".join(
            [
                f"{said.label}: {said.headline}.",
                self.headline(),
                self.written_table(),
                *said.lines,
                f"Next: {said.next_step}",
                *(f"Note: {note}." for note in self.notes),
            ]
        )

    __repr__ = __str__
