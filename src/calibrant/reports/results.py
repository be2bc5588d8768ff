"""Results that a report is made of: what is said of one model, and of all of them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from calibrant.certificates.results import Certificate, GroupCertificates
from calibrant.core.results import UNIT, Result, as_frame
from calibrant.core.types import FloatArray
from calibrant.core.words import level_said, measured, printable, rounded_up
from calibrant.decisions.decompositions import ScoreDecomposition
from calibrant.decisions.results import BestThreshold
from calibrant.measures.results import Measures
from calibrant.repairs.results import LadderRung


@dataclass(frozen=True)
class Omission(Result):
    """A section that a report leaves out, and why.

    Attributes
    ----------
    section : str
        "plots", "decisions" or "repair".
    reason : str
        What was missing, in words.
    """

    section: str
    reason: str

    def __str__(self) -> str:
        return f"{self.section}: left out, {self.reason}"


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
        What non-decreasing recalibration could have saved on these rows, as in `RiskGap`.
    guarantee : array
        What it can save in the population at most, with ``confidence_level``, as in `DecisionGuarantee`.
    net_benefit : array
        As in `NetBenefit`.
    confidence_level : float
        Of the guarantees, all thresholds together.
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

    def frame(self) -> Any:
        """Return one row per threshold."""
        columns = {field.name: getattr(self, field.name) for field in fields(self) if "Array" in str(field.type)}
        return as_frame(columns)

    def __str__(self) -> str:
        return (
            f"{self.best}\nOver {self.threshold.size} thresholds, with {level_said(self.confidence_level)} confidence "
            f"non-decreasing recalibration saves at most {rounded_up(float(self.guarantee.max()))} in the population, "
            f"assuming that {'; '.join(self.assumptions)}."
        )

    __repr__ = __str__


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
    before, after : Certificate
        The verdicts on the judged rows, each at its own level.
    brier_before, brier_after : float
        Brier score on the judged rows.
    rng : int
        Which halves.
    """

    recalibrator: str
    ladder: tuple[LadderRung, ...]
    fitted_rows: int
    judged_rows: int
    before: Certificate
    after: Certificate
    brier_before: float
    brier_after: float
    rng: int

    _ranges: ClassVar = dict.fromkeys(("brier_before", "brier_after"), UNIT)

    def __str__(self) -> str:
        return (
            f"{self.recalibrator}, fitted to {self.fitted_rows:,} rows, takes the Cutoff calibration error on "
            f"{self.judged_rows:,} others from {measured(self.before.estimate, 4)} ({self.before.verdict}) to "
            f"{measured(self.after.estimate, 4)} ({self.after.verdict}), and the Brier score from "
            f"{self.brier_before:.4f} to {self.brier_after:.4f}."
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
    certificate : Certificate
        The verdict.
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
    omissions : tuple of Omission
        Sections left out, and why.
    """

    name: str
    rows: int
    distinct_forecasts: int | None
    weight_total: float
    mean_forecast: float
    mean_outcome: float
    fingerprint: str | None
    certificate: Certificate
    measures: Measures
    score: ScoreDecomposition | None
    decisions: DecisionTable | None
    repair: RepairTrial | None
    groups: GroupCertificates | None
    omissions: tuple[Omission, ...] = ()

    _ranges: ClassVar = dict.fromkeys(("mean_forecast", "mean_outcome"), UNIT)

    def __str__(self) -> str:
        parts = (self.certificate, self.repair, self.groups, *self.omissions)
        return "\n".join([f"Model {printable(self.name)}:", *(str(part) for part in parts if part is not None)])


@dataclass(frozen=True)
class ReportSummary(Result):
    """The content of a report, apart from its plots and its looks.

    Attributes
    ----------
    title : str
        The report's title.
    max_error : float
        The limit asked about.
    confidence_level : float
        Of the verdicts on all models together.
    method : str
        How the limits were found, as in `certify`.
    threshold : float
        The decision threshold shown first.
    rng : int
        Of everything random.
    models : tuple of ModelSummary
        One per model; each certificate is at level 1 - (1 - confidence_level) / (number of models).
    versions : tuple of str
        The software that made it.
    """

    title: str
    max_error: float
    confidence_level: float
    method: str
    threshold: float
    rng: int
    models: tuple[ModelSummary, ...]
    versions: tuple[str, ...]

    _ranges: ClassVar = dict.fromkeys(("max_error", "confidence_level", "threshold"), UNIT)

    def __str__(self) -> str:
        lines = [printable(self.title), *(str(model) for model in self.models)]
        if len(self.models) > 1:
            level = level_said(self.confidence_level)
            lines.append(f"The verdicts on all {len(self.models)} models hold together with {level} confidence.")
        return "\n".join(lines)
