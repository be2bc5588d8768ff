"""Results of recalibration: guarantees, and recalibrators side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Generic, TypeVar

from calibrant.certificates.clusters import Clusters
from calibrant.certificates.model_differences import ModelDifference
from calibrant.core.results import UNIT, Checked, Result
from calibrant.core.words import counted, level_said, measured, printable, rounded, rounded_down, rounded_up
from calibrant.measures.savings import REDRAWING, over_thresholds
from calibrant.rows.costs import WithCosts

MEASURES = {"cutoff": "Cutoff error", "risk_gap": "risk gap"}
"""What guarantees of recalibrators are about, in words."""

TARGETS = {"population": "in the population", "these forecasts": "for these forecasts"}
"""Whom they speak of, in words."""

_SAID = {
    "cutoff": ("the Cutoff calibration error of the recalibrated forecaster is at most {most} {where}", ""),
    "risk_gap": (
        f"no {REDRAWING} saves more than {{most}} per case with the recalibrated forecaster {{where}}, at any "
        "threshold",
        "through the Cutoff error, ",
    ),
}
"""The sentence of each, and the way that the paper's constants take."""

Scores = TypeVar("Scores", bound=Any)

ROUNDING = 1e-12
"""A difference of errors, or of sums in proportion to their terms, below this is rounding."""


@dataclass(frozen=True)
class LadderRung(Result):
    """What a guard found on one rung of its ladder.

    Attributes
    ----------
    recalibrator : str
        The kind of recalibrator tried.
    error : float or None
        Cutoff error of its forecasts on the rows it was fitted to; None when it could not be fitted.
    tolerance : float or None
        The largest error with which it is kept; None when it could not be fitted.
    kept : bool
        Whether it was kept; the rungs after that are not tried.
    reason : str
        Why, in words.
    """

    recalibrator: str
    error: float | None
    tolerance: float | None
    kept: bool
    reason: str

    _ranges: ClassVar = {"error": UNIT, "tolerance": (0.0, math.inf)}

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.error is None) != (self.tolerance is None):
            self._refuse("error", self.error, f"while tolerance is {self.tolerance!r}")
        if self.error is None or self.tolerance is None:
            if self.kept:
                self._refuse("kept", True, "without an error to compare with the tolerance")
        elif self.kept != (self.error <= self.tolerance + ROUNDING):
            self._refuse("kept", self.kept, f"while error is {self.error!r} and tolerance {self.tolerance!r}")

    def __str__(self) -> str:
        return f"{self.recalibrator}: {'kept' if self.kept else 'not kept'}, {self.reason}"


@dataclass(frozen=True)
class RecalibrationGuarantee(Result):
    """A bound on the Cutoff calibration error, or the risk gap, of a recalibrated forecaster.

    All the numbers hold together with ``confidence_level``. No error is above 1, and no bound here either.

    Attributes
    ----------
    recalibrator : str
        The kind of recalibrator.
    upper : float
        The error is at most this: what it is on the fitting rows, plus how far a monotone map can stray from that.
    paper_upper : float or None
        The same with the paper's constants; for the risk gap what they say of the Cutoff error, never below it. None
        for these forecasts, of which the paper does not speak.
    in_advance : float or None
        A bound that was known before any data, from the number of rows alone; None where there is none.
    paper_in_advance : float or None
        The same with the paper's constants.
    error : float
        Cutoff error, or risk gap, of the recalibrated forecasts on the rows the map was fitted to.
    margin : float
        How far the error can be above it, for every monotone map at once.
    paper_margin : float or None
        The same with the paper's constants.
    confidence_level : float
        Of all these numbers together.
    rows : int
        Rows the map was fitted to.
    direction : str
        "increasing", "decreasing" or "constant": what the map does to the order of the forecasts.
    promise : str
        What was promised before the data, in words.
    measure : str
        What is bounded: "cutoff", or "risk_gap" over all thresholds.
    target : str
        Whom it speaks of: "population", or "these forecasts" if they were issued again and only outcomes drawn anew.
    clusters : Clusters or None
        What the clusters of the rows are, where they were named; None for independent rows. The design effect is the
        worst there could be, that of clusters whose rows are all alike, since the bound must hold for those too.
    ladder : tuple of LadderRung
        For a guard: what it tried, which rung it kept and why.
    assumptions : tuple of str
        What the guarantee rests on.
    notes : tuple of str
        What to keep in mind for this map.
    """

    recalibrator: str
    upper: float
    paper_upper: float | None
    in_advance: float | None
    paper_in_advance: float | None
    error: float
    margin: float
    paper_margin: float | None
    confidence_level: float
    rows: int
    direction: str
    promise: str
    measure: str = "cutoff"
    target: str = "population"
    ladder: tuple[LadderRung, ...] = ()
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    clusters: Clusters | None = None

    _ranges: ClassVar = {
        **dict.fromkeys(("upper", "paper_upper", "in_advance", "paper_in_advance", "error", "confidence_level"), UNIT),
        **dict.fromkeys(("margin", "paper_margin"), (0.0, math.inf)),
    }
    _words: ClassVar = {
        "direction": ("increasing", "decreasing", "constant"),
        "measure": tuple(MEASURES),
        "target": tuple(TARGETS),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_order("error", "upper")
        for name in ("paper_upper", "paper_margin"):
            if (getattr(self, name) is None) == (self.target == "population"):
                self._refuse(name, getattr(self, name), f"while the target is {self.target!r}")

    def finding(self) -> str:
        """Say the bound, whom it speaks of, and what it is made of."""
        said, through = _SAID[self.measure]
        said = said.format(most=rounded_up(self.upper), where=TARGETS[self.target])
        elsewhere = f"elsewhere ({through}with the paper's constants {rounded_up(self.paper_upper)})"
        if self.target != "population":
            elsewhere = "if they were issued again and only the outcomes drawn anew"
        rows = counted(self.rows, "row")
        if self.clusters is not None:
            rows = f"{rows} in {counted(self.clusters.count, 'cluster')}"
        return (
            f"With {level_said(self.confidence_level)} confidence {said}: {measured(self.error, 4)} on the "
            f"{rows} it was fitted to, and at most {rounded_up(self.margin)} more {elsewhere}."
        )

    def __str__(self) -> str:
        lines = [
            self.finding(),
            f"Before the data: {self.promise}.",
            f"This assumes that {'; '.join(self.assumptions)}.",
        ]
        lines.extend(f"Rung {number}, {rung}." for number, rung in enumerate(self.ladder, start=1))
        lines.extend(f"Note: {note}" for note in self.notes)
        return "\n".join(lines)


@dataclass(frozen=True)
class RecalibratorScores(Result):
    """How one recalibrator did on rows it had not seen; the numbers are None where it could not be fitted.

    Attributes
    ----------
    name : str
        Of the candidate.
    cutoff : float or None
        Cutoff calibration error of the held-out forecasts.
    cutoff_lower, cutoff_upper : float or None
        Confidence limits for it, both together.
    risk_gap : float or None
        Their risk gap: what the best re-drawing of the line between acting and not acting would still have saved per
        row on the held-out rows, at the worst of the thresholds asked about.
    risk_gap_lower, risk_gap_upper : float or None
        Confidence limits for it, both together.
    smooth : float or None
        Their smooth calibration error.
    brier : float or None
        Their Brier score, the mean of (y - p)^2: small when forecasts are calibrated and tell rows apart.
    log_loss : float or None
        Mean of -ln(probability given to what happened); infinite when something happened that was given none.
    auc : float or None
        Share of pairs of an event and a non-event in which the event has the higher forecast, ties counting half, over
        pairs held out together; None also when there are no such pairs.
    auc_lost : float or None
        AUC of the forecasts as they are minus ``auc``. A map that increases loses it by ties alone, and gains where
        the order inside a tie was wrong.
    distinct_forecasts : int or None
        How many different forecasts are left when the recalibrator is fitted to all rows.
    guarantee : float or None
        What bounds the Cutoff error of the recalibrator fitted to all rows, known once it is fitted; None for
        forecasts as they are, for weighted rows and for rows in clusters.
    guarantee_in_advance : float or None
        The bound that was known before any data; None where there is none.
    problem : str or None
        Why it could not be fitted.
    """

    name: str
    cutoff: float | None = None
    cutoff_lower: float | None = None
    cutoff_upper: float | None = None
    risk_gap: float | None = None
    risk_gap_lower: float | None = None
    risk_gap_upper: float | None = None
    smooth: float | None = None
    brier: float | None = None
    log_loss: float | None = None
    auc: float | None = None
    auc_lost: float | None = None
    distinct_forecasts: int | None = None
    guarantee: float | None = None
    guarantee_in_advance: float | None = None
    problem: str | None = None

    _may_be_infinite: ClassVar = ("log_loss",)  # where something happened that was given no probability
    _ranges: ClassVar = dict.fromkeys(
        (
            *("cutoff", "cutoff_lower", "cutoff_upper", "risk_gap", "risk_gap_lower", "risk_gap_upper"),
            *("smooth", "brier", "auc", "guarantee", "guarantee_in_advance"),
        ),
        UNIT,
    )

    def __str__(self) -> str:
        if self.problem is not None:
            return f"{printable(self.name)}: could not be fitted, {printable(self.problem)}"
        return (
            f"{printable(self.name)}: held-out Cutoff error {rounded(self.cutoff)} "
            f"(from {rounded_down(self.cutoff_lower)} to {rounded_up(self.cutoff_upper)}), "
            f"risk gap {rounded(self.risk_gap)} "
            f"(from {rounded_down(self.risk_gap_lower)} to {rounded_up(self.risk_gap_upper)}), "
            f"smooth {rounded(self.smooth)}, Brier {rounded(self.brier)}, log loss {rounded(self.log_loss)}, AUC lost "
            f"{rounded(self.auc_lost, sign='+')}; guarantee {rounded_up(self.guarantee)}, in advance "
            f"{rounded_up(self.guarantee_in_advance, missing='none')}"
        )


class SideBySide(Checked, Generic[Scores]):
    """What comparisons of recalibrators share: the scores of each candidate by its name, and one to use.

    Attributes
    ----------
    candidates : tuple
        The scores of each candidate.
    recommended : str or None
        The name of the one to use; None where these rows can recommend none, since all outcomes are the same.
    notes : tuple of str
        What to keep in mind when reading the numbers.
    """

    candidates: tuple[Scores, ...]
    recommended: str | None
    recommendation: str
    notes: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.recommended is not None and self.recommended not in list(self):
            self._refuse("recommended", self.recommended, f"not one of {', '.join(self)}")

    def __getitem__(self, name: str) -> Scores:
        """Return the scores of a candidate."""
        for each in self.candidates:
            if each.name == name:
                return each
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        """Go through the names of the candidates, as through the keys of a dict."""
        return iter([each.name for each in self.candidates])

    def __len__(self) -> int:
        return len(self.candidates)

    def frame(self, backend: Any = None) -> Any:
        """Return one row per candidate."""
        names = [field.name for field in fields(self.candidates[0])]
        return self._framed({name: [getattr(each, name) for each in self.candidates] for name in names}, backend)

    def _in_words(self, heading: list[str], columns: str, numbers: Callable[[Scores], str]) -> str:
        """Write a table with a line for each candidate, what is recommended, and the notes."""
        names = [printable(each.name) for each in self.candidates]
        width = max(map(len, names))
        lines = [
            f"  {name:<{width}}  {numbers(each) if each.problem is None else 'could not be fitted'}"
            for name, each in zip(names, self.candidates, strict=True)
        ]
        said = [printable(self.recommendation), *(f"Note: {printable(note)}" for note in self.notes)]
        return "\n".join([*heading, f"  {'':<{width}}  {columns}", *lines, *said])


@dataclass(frozen=True)
class RecalibratorComparison(SideBySide[RecalibratorScores], WithCosts, Result):
    """Recalibrators side by side on held-out rows, and which of them to use.

    Attributes
    ----------
    candidates : tuple of RecalibratorScores
        One for each candidate, "as is" first.
    recommended : str or None
        The name of the one to use; None where these rows can recommend none, since all outcomes are the same.
    recommendation : str
        That in words, and why.
    confidence_level : float
        Of the limits of each candidate, and of each guarantee.
    rows : int
        Rows.
    cv : int
        Parts the rows were cut into.
    notes : tuple of str
        What to keep in mind when reading the numbers.
    thresholds : tuple of float
        The lowest and the highest threshold that the risk gaps are about; 0 and 1 for all of them.
    cost_false_positive, cost_false_negative : float or None
        The costs that were translated into a threshold, if any; a risk gap times ``cost_unit`` is in cost units.
    clusters : Clusters or None
        What the clusters of the rows are, with the design effect of the forecasts as they are; None for independent
        rows.
    differences : tuple of ModelDifference
        Of the held-out Brier scores of the recommended candidate and of the forecasts as they are, and of the next
        best, with limits that hold for whichever two candidates are picked out.
    """

    candidates: tuple[RecalibratorScores, ...]
    recommended: str | None
    recommendation: str
    confidence_level: float
    rows: int
    cv: int
    notes: tuple[str, ...] = ()
    thresholds: tuple[float, float] = (0.0, 1.0)
    cost_false_positive: float | None = None
    cost_false_negative: float | None = None
    clusters: Clusters | None = None
    differences: tuple[ModelDifference, ...] = ()

    _ranges: ClassVar = dict.fromkeys(("confidence_level", "thresholds"), UNIT)

    def __str__(self) -> str:
        level = level_said(self.confidence_level)
        heading = [
            f"{len(self)} ways to treat the forecasts of {self.rows:,} rows, judged on held-out rows ({self.cv} parts; "
            f"limits and guarantees with {level} confidence each).",
            *([] if self.clusters is None else [f"The rows come in {self.clusters}; parts hold whole clusters."]),
            "The gap is what re-drawing the line between acting and not acting still saves per case, at "
            f"{over_thresholds(self.thresholds, self.cost_false_positive, self.cost_false_negative)}.",
        ]
        columns = " Cutoff    from      to     gap      to  smooth   Brier  log loss  AUC lost  guarantee  in advance"
        return self._in_words(
            heading,
            columns,
            lambda each: (
                f"{rounded(each.cutoff):>7} {rounded_down(each.cutoff_lower):>7} "
                f"{rounded_up(each.cutoff_upper):>7} {rounded(each.risk_gap):>7} {rounded_up(each.risk_gap_upper):>7} "
                f"{rounded(each.smooth):>7} {rounded(each.brier):>7} {rounded(each.log_loss):>9} "
                f"{rounded(each.auc_lost, sign='+'):>9} {rounded_up(each.guarantee):>10} "
                f"{rounded_up(each.guarantee_in_advance, missing='none'):>11}"
            ),
        )

    __repr__ = __str__
