"""Forecasts of several classes as displays take them: the confidence in the top label is one curve."""

from __future__ import annotations

from typing import Any

from calibrant.core.types import ArrayLike, ClassLabel
from calibrant.rows.asked import asked_of_classes

FORECAST = "forecast"
CONFIDENCE = "confidence in the top label"
"""What the axis of forecasts is called."""

_AXES = {"confidence": CONFIDENCE}


def one_question(
    y_true: Any, y_prob: Any, classes: ArrayLike | None, sample_weight: Any, pos_label: ClassLabel | None
) -> tuple[dict[str, Any], str]:
    """Return the rows of the one question that a curve is about, and what its forecasts are called.

    Of several classes it is the confidence in the top label.
    """
    family = asked_of_classes(y_true, y_prob, classes, None, False, sample_weight, pos_label)
    if family is None:
        return {"y_true": y_true, "y_prob": y_prob, "sample_weight": sample_weight, "pos_label": pos_label}, FORECAST
    return {"y_true": family.column(0)}, _AXES.get(family.kind, FORECAST)
