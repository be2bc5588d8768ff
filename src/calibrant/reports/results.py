"""Results that a report is made of: what is said of one model, and of all of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from calibrant.certificates.clusters import CLUSTER_TARGETS, counted_size
from calibrant.certificates.group_results import WorstGroup
from calibrant.certificates.independence import IndependenceCheck
from calibrant.certificates.question_results import QuestionCertificates, QuestionIntervals
from calibrant.certificates.results import YARDSTICKS, Certificate, ConfidenceInterval, GroupCertificates
from calibrant.comparisons.results import ModelComparison
from calibrant.core.results import UNIT, PerGroup, Result
from calibrant.core.types import FloatArray, Label
from calibrant.core.words import (
    approximately,
    counted,
    in_columns,
    level_said,
    measured,
    printable,
    rounded_down,
    rounded_up,
    verdict_said,
)
from calibrant.decisions.decompositions import ScoreDecomposition
from calibrant.decisions.guarantees import DecisionGuarantee
from calibrant.decisions.results import BestThreshold
from calibrant.measures.results import Measures
from calibrant.monitors.histories import MonitorHistory
from calibrant.monitors.results import Reading
from calibrant.repairs.results import LadderRung
from calibrant.rows.incidence import HorizonRisk

APPROXIMATE = (
    "Some outcomes were censored, and the weights that stand for them are estimates: limits and verdicts hold "
    "approximately, for many rows, without a guarantee."
)
"""What is said beside every promise on censored rows."""


def joint_verdict(verdicts: Iterable[str | None]) -> str | None:
    """Return the verdict on several parts at once: refuted when one is, certified when all are, None when none is.

    Examples
    --------
    >>> joint_verdict(["certified", "undecided"]), joint_verdict(["undecided", "refuted"])
    ('undecided', 'refuted')
    """
    found = {verdict for verdict in verdicts if verdict is not None}
    return next((verdict for verdict in ("refuted", "undecided", "certified") if verdict in found), None)


def apart_said(serial: int, clusters: str = "clusters") -> str:
    """Say which clusters are assumed to be independent.

    Examples
    --------
    >>> apart_said(0), apart_said(1, "days"), apart_said(2)
    ('clusters are independent', 'days two or more apart are independent', 'clusters 3 or more apart are independent')
    """
    if not serial:
        return f"{clusters} are independent"
    return f"{clusters} {'two' if serial == 1 else serial + 1} or more apart are independent"


_SECTIONS = {
    "plots": "the pictures",
    "decisions": "what decisions lose",
    "repair": "whether recalibrating helps",
    "change": "whether it has changed",
    "worst_group": "for whom it is wrong",
    "differences": "differences of the models",
}


@dataclass(frozen=True)
class Omission(Result):
    """A section that a report leaves out, and why.

    Attributes
    ----------
    section : str
        "plots", "decisions", "repair", "change" or "worst_group" of a model; "differences" of several.
    reason : str
        What was missing, in words.
    """

    section: str
    reason: str

    @property
    def heading(self) -> str:
        """What people call the section."""
        return _SECTIONS.get(self.section, self.section)

    def __str__(self) -> str:
        return f"{self.heading}: left out, {self.reason}"


@dataclass(frozen=True, eq=False)
class DecisionTable(Result):
    """What acting on the forecasts loses at many thresholds, what could be saved, and what is promised.

    Arrays have one value per threshold.

    Attributes
    ----------
    threshold : array
        The thresholds: somebody acts when p >= threshold.
    acted : array
        Share of the weight acted on.
    risk, false_positive, false_negative : array
        Mean loss per row, as in `DecisionRisk`.
    constant_risk : array
        Mean loss of the better of always and never acting.
    gap : array
        What re-drawing the line between acting and not acting (non-decreasing recalibration) could have saved on these
        rows, as in `RiskGap`.
    guarantee : array
        What it saves at most, with ``confidence_level``, as in `DecisionGuarantee`.
    net_benefit : array
        As in `NetBenefit`.
    confidence_level : float
        Of the guarantees, all thresholds together; a promise of its own beside the verdict.
    promise : DecisionGuarantee
        The guarantee for all thresholds at once, and what was limited for it.
    best : BestThreshold
        At the threshold asked about: where these rows would have been cut best.
    assumptions : tuple of str
        What the guarantees rest on.
    """

    threshold: FloatArray
    acted: FloatArray
    risk: FloatArray
    false_positive: FloatArray
    false_negative: FloatArray
    constant_risk: FloatArray
    gap: FloatArray
    guarantee: FloatArray
    net_benefit: FloatArray
    confidence_level: float
    promise: DecisionGuarantee
    best: BestThreshold
    assumptions: tuple[str, ...]

    _ranges: ClassVar = dict.fromkeys(
        (
            "threshold",
            "acted",
            "risk",
            "false_positive",
            "false_negative",
            "constant_risk",
            "gap",
            "guarantee",
            "confidence_level",
        ),
        UNIT,
    )

    def frame(self, backend: Any = None) -> Any:
        """Return one row per threshold."""
        columns = {field.name: getattr(self, field.name) for field in fields(self) if "Array" in str(field.type)}
        return self._framed(columns, backend)

    def __str__(self) -> str:
        return f"{self.best}\n{self.promise.finding()} This assumes that {'; '.join(self.assumptions)}."

    __repr__ = __str__


@dataclass(frozen=True)
class ClusterOptions(Result):
    """How the clusters of a report's rows count.

    Attributes
    ----------
    target : str
        What counts once: each of the "rows" (of clusters of these sizes), or each of the "clusters".
    max_size : float or None
        The largest size of a cluster of the population, where one was stated.
    serial : int
        How many places apart in the order of their labels clusters may depend on each other.
    weighted : bool
        Whether rows have weights of their own.
    """

    target: str
    max_size: float | None = None
    serial: int = 0
    weighted: bool = False

    _ranges: ClassVar = {"max_size": (1.0, math.inf)}
    _words: ClassVar = {"target": CLUSTER_TARGETS}

    def passed_on(self) -> dict[str, Any]:
        """Return the options of `certify` that say the same."""
        return {"cluster_target": self.target, "max_cluster_size": self.max_size, "serial": self.serial}

    def __str__(self) -> str:
        counted = f"each of the {self.target} counts once"
        sizes = "" if self.max_size is None else f", clusters have at most {counted_size(self.max_size)}"
        return f"{counted}{sizes}, {apart_said(self.serial)}"


@dataclass(frozen=True)
class RepairTrial(Result):
    """A recalibrator fitted to a random half of the rows, and the forecasts before and after it on the other half.

    Attributes
    ----------
    recalibrator : str
        The kind that was kept.
    ladder : tuple of LadderRung
        What was tried before, and why it was not kept.
    fitted_rows, judged_rows : int
        Rows it learned from, and rows it was judged on.
    cutoff_before, cutoff_after : float
        Cutoff calibration error on the judged rows.
    before, after : Certificate or None
        The verdicts on the judged rows, each at its own level; None where no limit was asked about.
    brier_before, brier_after : float
        Brier score on the judged rows.
    rng : int
        Which halves.
    fitted_clusters, judged_clusters : int or None
        Clusters it learned from, and others it was judged on; None for independent rows.
    """

    recalibrator: str
    ladder: tuple[LadderRung, ...]
    fitted_rows: int
    judged_rows: int
    cutoff_before: float
    cutoff_after: float
    before: Certificate | None
    after: Certificate | None
    brier_before: float
    brier_after: float
    rng: int
    fitted_clusters: int | None = None
    judged_clusters: int | None = None

    _ranges: ClassVar = dict.fromkeys(("cutoff_before", "cutoff_after", "brier_before", "brier_after"), UNIT)

    def __str__(self) -> str:
        before, after = (
            "" if each is None else f" ({verdict_said(each.verdict)})" for each in (self.before, self.after)
        )
        return (
            f"{self.recalibrator}, fitted to {self.fitted_rows:,} rows, takes the Cutoff calibration error on "
            f"{self.judged_rows:,} others from {measured(self.cutoff_before, 4)}{before} to "
            f"{measured(self.cutoff_after, 4)}{after}, and the Brier score from "
            f"{self.brier_before:.4f} to {self.brier_after:.4f}."
        )


def _difference(outcome: float | None, forecast: float | None) -> float | None:
    return None if outcome is None or forecast is None else outcome - forecast


@dataclass(frozen=True)
class ChangeOverTime(Result):
    """What rows say that are read period by period, each of which counts once.

    Attributes
    ----------
    history : MonitorHistory
        What was said after each period.
    reading : Reading
        What was said after the last one. Its ``max_error`` is 1, which excludes nothing, where no limit was asked
        about. Its alarm is false with probability at most 1 - confidence_level, over all these periods.
    forecast_before, outcome_before : float or None
        Where an alarm names an interval and a begin: mean forecast and outcome of the rows in this interval, of the
        periods before. None without an alarm, or where no such rows are.
    forecast_since, outcome_since : float or None
        The same of the periods from the begin on.
    """

    history: MonitorHistory
    reading: Reading
    forecast_before: float | None = None
    outcome_before: float | None = None
    forecast_since: float | None = None
    outcome_since: float | None = None

    _ranges: ClassVar = dict.fromkeys(("forecast_before", "outcome_before", "forecast_since", "outcome_since"), UNIT)

    @property
    def from_the_start(self) -> bool:
        """Whether there is an alarm, and the error in its range was half as large or larger before it began."""
        alarm = self.reading.alarm
        if alarm is None or alarm.since == self.history.period[0]:
            return alarm is not None
        before = _difference(self.outcome_before, self.forecast_before)
        since = _difference(self.outcome_since, self.forecast_since)
        return before is None or since is None or before * since >= 0.5 * since**2

    def __str__(self) -> str:
        return f"{counted(self.reading.periods, 'period')}, each counting once. {self.reading.watched()}"


@dataclass(frozen=True)
class GroupLimits(PerGroup[ConfidenceInterval], Result):
    """Limits for the error of every group, where no limit was asked about.

    Attributes
    ----------
    confidence_level : float
        Of all limits together.
    groups : tuple
        The groups' labels, sorted.
    limits : tuple of ConfidenceInterval
        Per group, at level 1 - (1 - confidence_level) / (number of groups): true together with ``confidence_level``.
    """

    confidence_level: float
    groups: tuple[Label, ...]
    limits: tuple[ConfidenceInterval, ...]

    _parts: ClassVar = "limits"
    _ranges: ClassVar = {"confidence_level": UNIT}

    def frame(self, backend: Any = None) -> Any:
        """Return one row per group."""
        names = ("rows", "estimate", "lower", "upper")
        columns = {name: [getattr(each, name) for each in self.limits] for name in names}
        return self._framed({"group": list(self.groups), **columns}, backend)

    def __str__(self) -> str:
        table = in_columns(
            ("group", "rows", "error", "at least", "at most"),
            [
                (
                    str(group),
                    f"{each.rows:,}",
                    measured(each.estimate, 4),
                    rounded_down(each.lower),
                    "any number" if math.isinf(each.upper) else rounded_up(each.upper),
                )
                for group, each in self.pairs()
            ],
        )
        unit = "" if self.limits[0].relative_to == "rows" else " as a share of its event rate"
        return (
            f"Cutoff calibration error of each group{unit}, with limits that hold for all groups together with "
            f"{level_said(self.confidence_level)} confidence, if the groups were chosen without looking at these "
            f"rows:\n{table}"
        )


@dataclass(frozen=True)
class ModelSummary(Result):
    """Everything that a report says of one model.

    Attributes
    ----------
    name : str
        The model's name.
    rows : int
        Rows it was judged on.
    distinct_forecasts : int or None
        Different forecasts among them; None where they are too many to tell apart.
    weight_total : float
        Sum of the weights; the number of rows for unit weights.
    mean_forecast, mean_outcome : float
        Weighted means.
    fingerprint : str or None
        SHA-256 of the distinct forecasts and their totals, if they can be told apart; the order of the rows makes no
        difference.
    verdict : str or None
        On all rows and every group at once: "refuted" when one of them is, "certified" when all of them are, else
        "undecided"; None where no limit was asked about, and where the weights of censored rows are estimates, so that
        no guarantee holds.
    certificate : Certificate or None
        The verdict on all rows; of censored rows the one that fixed weights would have, which holds approximately.
    limits : ConfidenceInterval or None
        In its place, where no limit was asked about.
    measures : Measures
        Every calibration measure; ``notes`` says which are not exact where the distinct forecasts are too many.
    score : ScoreDecomposition or None
        What the Brier score is made of.
    decisions : DecisionTable or None
        What acting on the forecasts loses, over thresholds.
    repair : RepairTrial or None
        Before and after recalibration, on held-out rows.
    groups : GroupCertificates or None
        A verdict per group.
    group_limits : GroupLimits or None
        In its place, where no limit was asked about.
    omissions : tuple of Omission
        Sections left out, and why.
    group_check : IndependenceCheck or None
        Whether rows of one group are more alike than independent rows would be, where there are groups and no clusters.
    row_wise : tuple of float or None
        For rows in clusters: the lower and the upper limit that they would have if they were taken as independent.
    change : ChangeOverTime or None
        What the rows say period by period, where periods were named.
    worst_group : WorstGroup or None
        For whom forecasts are wrong, where features were given.
    classes : QuestionCertificates or None
        A verdict per class, each against the rest, where forecasts are of several classes: all else is about the
        confidence in the top label then.
    class_limits : QuestionIntervals or None
        In its place, where no limit was asked about.
    horizon : HorizonRisk or None
        How frequent the event is by a horizon, where outcomes may be censored: limits and certificates then take the
        weights of rows as they were estimated, and hold approximately.
    """

    name: str
    rows: int
    distinct_forecasts: int | None
    weight_total: float
    mean_forecast: float
    mean_outcome: float
    fingerprint: str | None
    verdict: str | None
    certificate: Certificate | None
    limits: ConfidenceInterval | None
    measures: Measures
    score: ScoreDecomposition | None
    decisions: DecisionTable | None
    repair: RepairTrial | None
    groups: GroupCertificates | None
    group_limits: GroupLimits | None
    omissions: tuple[Omission, ...] = ()
    group_check: IndependenceCheck | None = None
    row_wise: tuple[float, float] | None = None
    change: ChangeOverTime | None = None
    worst_group: WorstGroup | None = None
    classes: QuestionCertificates | None = None
    class_limits: QuestionIntervals | None = None
    horizon: HorizonRisk | None = None

    _ranges: ClassVar = dict.fromkeys(("mean_forecast", "mean_outcome", "row_wise"), UNIT)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.certificate is None) == (self.limits is None):
            self._refuse("limits", self.limits, "while there is one of certificate and limits, never both")
        said = None if self.approximate else self.found
        if self.verdict != said:
            self._refuse("verdict", self.verdict, f"while its parts say {said!r}")

    @property
    def has_classes(self) -> bool:
        """Whether forecasts are of several classes, so that the page is about the confidence in the top label."""
        return self.classes is not None or self.class_limits is not None

    @property
    def approximate(self) -> bool:
        """Whether weights were estimated, as some rows were censored: nothing is guaranteed then."""
        return self.horizon is not None and self.horizon.censored > 0

    @property
    def found(self) -> str | None:
        """What all rows and every group say together, though it may hold approximately only; None without a limit."""
        return joint_verdict(None if each is None else each.verdict for each in (self.certificate, self.groups))

    @property
    def judged(self) -> Certificate | ConfidenceInterval:
        """The certificate or, where no limit was asked about, the limits."""
        if self.certificate is not None:
            return self.certificate
        assert self.limits is not None  # as checked above
        return self.limits

    def __str__(self) -> str:
        with approximately(self.approximate):
            return self._said()

    def _said(self) -> str:
        several = (self.classes, self.class_limits)
        found = (self.repair, self.groups, self.group_limits, self.worst_group, self.change)
        parts = (self.judged, self.horizon, *several, *found, *self.omissions)
        lines = [f"Model {printable(self.name)}:", *([APPROXIMATE] if self.approximate else [])]
        if self.groups is not None and self.found is not None:
            lines.append(f"All rows and every group together: {verdict_said(self.found)}.")
        return "\n".join([*lines, *(str(part) for part in parts if part is not None)])


@dataclass(frozen=True)
class ReportSummary(Result):
    """The content of a report, apart from its plots and its looks.

    Attributes
    ----------
    title : str
        The report's title.
    source : str or None
        Where the rows came from, such as the name of a file.
    date : str or None
        The day it was made, as in 2026-03-31, if it was told.
    max_error : float or None
        The limit asked about, if there was one.
    relative_to : str
        What errors and limits are shares of: "rows" or "events".
    confidence_level : float
        Of the verdicts on all models together.
    method : str
        How the limits were found, as in `certify`.
    threshold : float
        The decision threshold shown first.
    rng : int
        Of everything random.
    verdict : str or None
        On all models at once: "refuted" when one of them is, "certified" when all of them are, else "undecided"; None
        where no limit was asked about, and where the weights of censored rows are estimates.
    models : tuple of ModelSummary
        One per model; each certificate is at level 1 - (1 - confidence_level) / (number of models).
    versions : tuple of str
        The software that made it.
    clusters : ClusterOptions or None
        How clusters count, where rows are in clusters; None for independent rows.
    comparison : ModelComparison or None
        Of several models: the differences of their Cutoff errors, as shares of all rows, with limits that hold
        together with ``confidence_level``, a promise of its own beside the verdicts. None of one model, and where they
        are left out.
    omissions : tuple of Omission
        Sections on all models that are left out, and why.
    """

    title: str
    source: str | None
    date: str | None
    max_error: float | None
    relative_to: str
    confidence_level: float
    method: str
    threshold: float
    rng: int
    verdict: str | None
    models: tuple[ModelSummary, ...]
    versions: tuple[str, ...]
    clusters: ClusterOptions | None = None
    comparison: ModelComparison | None = None
    omissions: tuple[Omission, ...] = ()

    _ranges: ClassVar = dict.fromkeys(("max_error", "confidence_level", "threshold"), UNIT)
    _words: ClassVar = {"relative_to": YARDSTICKS}

    def __post_init__(self) -> None:
        super().__post_init__()
        said = joint_verdict(model.verdict for model in self.models)
        if self.verdict != said:
            self._refuse("verdict", self.verdict, f"while its models say {said!r}")
        if self.comparison is not None and list(self.comparison) != [model.name for model in self.models]:
            self._refuse("comparison", list(self.comparison), "which are not its models")

    def __str__(self) -> str:
        with approximately(any(model.approximate for model in self.models)):
            return self._said()

    def _said(self) -> str:
        lines = [printable(self.title), *(str(model) for model in self.models)]
        if len(self.models) > 1:
            level, said = level_said(self.confidence_level), "limits of" if self.max_error is None else "verdicts on"
            lines.append(f"The {said} all {len(self.models)} models hold together with {level} confidence.")
        if self.comparison is not None:
            found = self.comparison
            lines += [found.difference_headline(), found.difference_table(), *found.places()]
        lines += map(str, self.omissions)
        return "\n".join(lines)
