"""Results of recalibrating forecasts of several classes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.results import UNIT, Result
from calibrant.core.types import Label
from calibrant.core.words import counted, level_said, measured, printable, rounded, rounded_down, rounded_up
from calibrant.repairs.results import MEASURES, TARGETS, SideBySide
from calibrant.rows.questions import KINDS

_SAID = {
    "cutoff": "the Cutoff calibration error {of} is at most {most} {where}",
    "risk_gap": "no re-drawing of the line between acting and not acting on the forecasts {of} saves more than {most} "
    "per case {where}, at any threshold",
}


@dataclass(frozen=True)
class ClassGuarantee(Result):
    """A bound on the calibration error of recalibrated forecasts of several classes.

    Attributes
    ----------
    recalibrator : str
        The kind of recalibrator.
    question : str
        What is bounded: "classwise", the error of every class against the others; "confidence", that of the
        confidence in the top label; "multilabel", that of every label where a row can have several; of a
        menu any of the questions that `certify` takes.
    upper : float
        The error is at most this, for all classes together.
    error : float
        The largest error of the recalibrated forecasts on the rows that fitted or chose the map.
    margin : float
        How far the error can be above it.
    in_advance : float or None
        A bound that was known before any data, from the numbers of rows and classes alone; None where there is none.
    confidence_level : float
        Of the bound.
    rows : int
        Rows the map was fitted to, or chosen on.
    classes : tuple
        The labels of the classes, in the order of the columns.
    promise : str
        What was promised before the data, in words.
    measure : str
        Which error: "cutoff", or "risk_gap" over all thresholds.
    target : str
        Whom it speaks of: "population", or "these forecasts" if they were issued again and only outcomes drawn anew.
    choices : int or None
        How many maps there were to choose from, where one was chosen from a menu.
    assumptions : tuple of str
        What the guarantee rests on.
    notes : tuple of str
        What to keep in mind for this map.
    """

    recalibrator: str
    question: str
    upper: float
    error: float
    margin: float
    in_advance: float | None
    confidence_level: float
    rows: int
    classes: tuple[Label, ...]
    promise: str
    measure: str = "cutoff"
    target: str = "population"
    choices: int | None = None
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    _ranges: ClassVar = {
        **dict.fromkeys(("upper", "error", "in_advance", "confidence_level"), UNIT),
        "margin": (0.0, math.inf),
    }
    _words: ClassVar = {
        "question": tuple(KINDS),
        "measure": tuple(MEASURES),
        "target": tuple(TARGETS),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_order("error", "upper")

    def finding(self) -> str:
        """Say the bound, whom it speaks of, and what it is made of."""
        said = _SAID[self.measure].format(
            of=KINDS[self.question].every, most=rounded_up(self.upper), where=TARGETS[self.target]
        )
        rows = counted(self.rows, "row")
        how = f"{measured(self.error, 4)} on the {rows} it was fitted to, and at most {rounded_up(self.margin)} more"
        if self.choices is not None:
            how = (
                f"{measured(self.error, 4)} on the {rows} on which it was chosen from "
                f"{counted(self.choices, 'map')} fixed beforehand"
            )
        elif self.target == "population":
            how += " elsewhere"
        else:
            how += " if they were issued again and only the outcomes drawn anew"
        return f"With {level_said(self.confidence_level)} confidence {said}: {how}."

    def __str__(self) -> str:
        lines = [
            self.finding(),
            f"Before the data: {self.promise}.",
            f"This assumes that {'; '.join(self.assumptions)}.",
        ]
        lines.extend(f"Note: {note}" for note in self.notes)
        return "\n".join(lines)


@dataclass(frozen=True)
class ClassRecalibratorScores(Result):
    """How one recalibrator of classes did on rows it had not seen; the numbers are None where it could not be fitted.

    Attributes
    ----------
    name : str
        Of the candidate.
    cutoff : float or None
        Cutoff calibration error of the held-out forecasts, of the question that was asked; of several the largest.
    cutoff_lower, cutoff_upper : float or None
        Confidence limits for it, both together.
    brier : float or None
        Their Brier score, the mean over rows of the sum over classes of (probability - whether it happened)^2: 0 to 2.
    log_loss : float or None
        Mean of -ln(probability given to what happened); infinite when something happened that was given none.
    accuracy : float or None
        How often the top label was right.
    guarantee : float or None
        What bounds an error of the recalibrator fitted to all rows, together with the guarantees of the other
        candidates; None where there is no such bound.
    guaranteed_question : str or None
        Which error that is: "classwise", "confidence" or another question.
    guarantee_in_advance : float or None
        The bound that was known before any data; None where there is none.
    problem : str or None
        Why it could not be fitted.
    """

    name: str
    cutoff: float | None = None
    cutoff_lower: float | None = None
    cutoff_upper: float | None = None
    brier: float | None = None
    log_loss: float | None = None
    accuracy: float | None = None
    guarantee: float | None = None
    guaranteed_question: str | None = None
    guarantee_in_advance: float | None = None
    problem: str | None = None

    _may_be_infinite: ClassVar = ("log_loss",)  # where something happened that was given no probability
    _ranges: ClassVar = {
        **dict.fromkeys(
            ("cutoff", "cutoff_lower", "cutoff_upper", "accuracy", "guarantee", "guarantee_in_advance"), UNIT
        ),
        "brier": (0.0, 2.0),
    }

    def __str__(self) -> str:
        if self.problem is not None:
            return f"{printable(self.name)}: could not be fitted, {printable(self.problem)}"
        return (
            f"{printable(self.name)}: held-out Cutoff error {rounded(self.cutoff)} "
            f"(from {rounded_down(self.cutoff_lower)} to {rounded_up(self.cutoff_upper)}), "
            f"Brier {rounded(self.brier)}, log loss {rounded(self.log_loss)}, accuracy {rounded(self.accuracy)}; "
            f"guarantee {rounded_up(self.guarantee, missing='none')}"
        )


@dataclass(frozen=True)
class ClassRecalibratorComparison(SideBySide[ClassRecalibratorScores], Result):
    """Recalibrators of several classes side by side on held-out rows, and which of them to use.

    Attributes
    ----------
    candidates : tuple of ClassRecalibratorScores
        One for each candidate, "as is" first.
    recommended : str or None
        The name of the one to use; None where these rows can recommend none, since all are of one class.
    recommendation : str
        That in words, and why.
    question : str
        Which Cutoff errors are compared: "confidence", "classwise" or another question.
    confidence_level : float
        Of the limits of each candidate, and of all guarantees together.
    rows : int
        Rows.
    classes : tuple
        The labels of the classes, in the order of the columns.
    cv : int
        Parts the rows were cut into.
    clusters : int or None
        In how many clusters the rows come; None for independent rows.
    notes : tuple of str
        What to keep in mind when reading the numbers.
    """

    candidates: tuple[ClassRecalibratorScores, ...]
    recommended: str | None
    recommendation: str
    question: str
    confidence_level: float
    rows: int
    classes: tuple[Label, ...]
    cv: int
    clusters: int | None = None
    notes: tuple[str, ...] = ()

    _ranges: ClassVar = {"confidence_level": UNIT}
    _words: ClassVar = {"question": tuple(KINDS)}

    def __str__(self) -> str:
        level, kind = level_said(self.confidence_level), KINDS[self.question]
        heading = [
            f"{len(self)} ways to treat the forecasts of {len(self.classes)} classes on {self.rows:,} rows, judged on "
            f"held-out rows ({self.cv} parts; limits with {level} confidence each, guarantees all together).",
            f"The Cutoff error is that {kind.every}.",
            *(
                []
                if self.clusters is None
                else [f"The rows come in {counted(self.clusters, 'cluster')}; parts hold whole clusters."]
            ),
        ]
        return self._in_words(
            heading,
            " Cutoff    from      to   Brier  log loss  accuracy  guarantee",
            lambda each: (
                f"{rounded(each.cutoff):>7} {rounded_down(each.cutoff_lower):>7} "
                f"{rounded_up(each.cutoff_upper):>7} {rounded(each.brier):>7} {rounded(each.log_loss):>9} "
                f"{rounded(each.accuracy):>9} {rounded_up(each.guarantee, missing='none'):>10}"
            ),
        )

    __repr__ = __str__
