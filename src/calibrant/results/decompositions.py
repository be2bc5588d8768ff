"""The result of taking a proper score apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant.results.base import UNIT, Result, as_frame
from calibrant.results.measures import Relation


@dataclass(frozen=True)
class ScoreDecomposition(Result):
    """A mean proper score split into what recalibration could mend, what the forecasts tell apart, and the rest.

    score = miscalibration - discrimination + uncertainty; smaller scores are better.

    Attributes
    ----------
    name : str
        The score: "brier", "log", "spherical", or the name of your own.
    score : float
        Mean score of the forecasts; infinite when a sure forecast was wrong and the score punishes that without limit.
    miscalibration : float
        What the best non-decreasing recalibration of these rows (isotonic regression) would save; 0 is ideal.
    discrimination : float
        What the recalibrated forecasts save against the base rate; larger is better.
    uncertainty : float
        Score of the base rate, the same forecast for every row.
    skill : float or None
        1 - score/uncertainty: 1 is perfect, 0 as good as the base rate; None when the uncertainty is 0.
    mass : float
        Total mass of the score's Schervish measure; infinite for the log loss.
    bounds : tuple of Relation
        What theory says about the saving of non-decreasing, monotone and arbitrary recalibration, from the Cutoff
        calibration error and the ECE; empty when the mass is infinite, for then no such bound exists.
    contradicted : float
        Share of the weight on outcomes that cost infinitely much.
    notes : tuple of str
        What to keep in mind when reading the numbers.
    """

    name: str
    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    skill: float | None
    mass: float
    bounds: tuple[Relation, ...]
    contradicted: float
    notes: tuple[str, ...] = ()

    # Where a sure forecast was wrong, and where the measure of the score has no end.
    _may_be_infinite: ClassVar = ("score", "miscalibration", "skill", "mass")
    _ranges: ClassVar = {"contradicted": UNIT}

    def __post_init__(self) -> None:
        # JSON has no infinity and holds null in its place: what is infinite follows from the other fields.
        if isinstance(self.contradicted, (int, float)) and self.contradicted > 0.0:
            object.__setattr__(self, "score", math.inf)
            object.__setattr__(self, "miscalibration", math.inf)
            object.__setattr__(self, "skill", None if self.uncertainty == 0.0 else -math.inf)
        if self.bounds == ():
            object.__setattr__(self, "mass", math.inf)
        super().__post_init__()
        for name, follows in (("score", self.contradicted > 0.0), ("mass", not self.bounds)):
            if math.isinf(getattr(self, name)) and not follows:
                self._refuse(name, getattr(self, name), "which does not follow from contradicted and bounds")

    def frame(self) -> Any:
        """Return one row per component."""
        names = ["score", "miscalibration", "discrimination", "uncertainty", "skill"]
        return as_frame({"component": names, "value": [getattr(self, name) for name in names]})

    def __str__(self) -> str:
        name = "Brier" if self.name == "brier" else self.name
        skill = "undefined" if self.skill is None else f"{100.0 * self.skill:.1f}%"
        lines = [
            f"{name} score {self.score:.5f} = miscalibration {self.miscalibration:.5f} - discrimination "
            f"{self.discrimination:.5f} + uncertainty {self.uncertainty:.5f}; skill against the base rate {skill}",
            *(str(bound) for bound in self.bounds),
        ]
        return "\n".join(lines + [f"Note: {note}" for note in self.notes])
