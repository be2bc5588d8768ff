"""THE list of scores that models are compared by: what users write, and what people call them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

ScoreName = Literal["brier", "log", "decision_risk", "net_benefit"]

SCORES: Mapping[str, str] = {
    "brier": "Brier score",
    "log": "log loss",
    "decision_risk": "decision risk",
    "net_benefit": "net benefit",
}

_OF_DECISIONS = ("decision_risk", "net_benefit")


def needs_threshold(name: str) -> bool:
    """Return whether a score is one of decisions from a threshold up."""
    return name in _OF_DECISIONS
