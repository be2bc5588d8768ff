"""THE list of measures that limits are found for: what users write, and what people call them.

Each is an object of `judged`, imported when it is first used, so that the choices of the command line cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from calibrant.core.registry import Registry

if TYPE_CHECKING:
    from calibrant.measures.judged import JudgedMeasure

Measure = Literal["cutoff", "smooth", "bounded_variation", "distance", "ece", "risk_gap"]

_LISTED: Mapping[Measure, str] = {
    "cutoff": "Cutoff calibration error",
    "smooth": "smooth calibration error",
    "bounded_variation": "bounded-variation calibration error",
    "distance": "distance from calibration",
    "ece": "expected calibration error",
    "risk_gap": "risk gap",
}


def _load(name: str) -> JudgedMeasure:
    from calibrant.measures.judged import JUDGED

    return JUDGED[name]


MEASURES: Registry[JudgedMeasure] = Registry(_LISTED, _load)

BRACKETED_MEASURES = MEASURES.where(lambda measure: measure.from_cells)
"""Those that totals per cell contain between two ends."""
