"""Results of recalibrating forecasts of several classes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from calibrant.core.results import UNIT, Result
from calibrant.core.types import Label
from calibrant.core.words import counted, level_said, measured, rounded_up
from calibrant.repairs.results import MEASURES, TARGETS
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
