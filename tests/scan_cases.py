"""Awkward rows, every question that a source of rows can be asked, and how answers are compared."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from row_sources import distributions

import calibrant
from calibrant import Tally

SIZE = 3_000
FORECASTS = distributions(SIZE)
KINDS = ("plain", "weights", "equal weights", "fractions")
HALF_OF_ALL = [
    (name, kind) for row, name in enumerate(FORECASTS) for place, kind in enumerate(KINDS) if (row + place) % 2 == 0
]
"""Forecasts, each with every other kind: all pairs are in tests/engines/test_scans.py, for an engine of its own."""


def outcomes(
    forecast: npt.NDArray[np.float64], kind: str, seed: int = 3
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64] | None]:
    """Return outcomes and weights of a kind."""
    rng = np.random.default_rng(seed)
    y = (rng.random(forecast.size) < np.clip(1.05 * forecast + 0.002, 0.0, 1.0)).astype(float)
    if kind == "fractions":
        return 0.7 * y + 0.3 * rng.random(forecast.size), None
    weights = {"weights": rng.integers(0, 4, forecast.size) / 3.0, "equal weights": np.full(forecast.size, 2.5)}
    return y, weights.get(kind)


def same(mine: Any, other: Any, tolerance: float = 1e-12) -> None:
    """Compare results field by field: numbers to a tolerance, words exactly."""
    if isinstance(other, float):
        assert mine == pytest.approx(other, rel=tolerance, abs=tolerance, nan_ok=True)
    elif isinstance(other, dict):
        assert mine.keys() == other.keys()
        for name in other:
            same(mine[name], other[name], tolerance)
    elif isinstance(other, list):
        assert len(mine) == len(other)
        for one, two in zip(mine, other, strict=True):
            same(one, two, tolerance)
    else:
        assert mine == other


def certified(*rows: Any, **options: Any) -> Any:
    return calibrant.certify(*rows, max_error=0.01, **options).to_dict()


QUESTIONS: dict[str, Callable[..., Any]] = {
    "cutoff": calibrant.cutoff_calibration_error,
    "ks": calibrant.measures.ks_calibration_error,
    "worst interval": lambda *rows, **weights: calibrant.worst_interval(*rows, **weights).to_dict(),
    "in the large": calibrant.measures.calibration_in_the_large,
    "equal bins": lambda *rows, **weights: calibrant.expected_calibration_error(*rows, n_bins=15, **weights),
    "quantile bins": lambda *rows, **weights: calibrant.expected_calibration_error(
        *rows, n_bins=7, strategy="quantile", **weights
    ),
    "ratio": calibrant.measures.observed_expected_ratio,
    "decision": lambda *rows, **weights: calibrant.decision_risk(
        *rows, threshold=[1e-10, 0.1, 0.3, 0.9], **weights
    ).to_dict(),
    "saving": lambda *rows, **weights: certified(*rows, measure="risk_gap", **weights),
    "saving at a threshold": lambda *rows, **weights: certified(
        *rows, measure="risk_gap", threshold=0.3, method="normal", **weights
    ),
    "saving over a range": lambda *rows, **weights: certified(
        *rows, measure="risk_gap", threshold=(0.01, 0.2), method="hoeffding", **weights
    ),
    "interval": lambda *rows, **weights: calibrant.confidence_interval(*rows, **weights).to_dict(),
    "test": lambda *rows, **weights: calibrant.calibration_test(*rows, method="asymptotic", **weights).to_dict(),
    "smooth": calibrant.smooth_calibration_error,
    "bands": lambda *rows, **weights: calibrant.risk_bands(*rows, cutoffs=[0.2, 0.6], **weights).to_dict(),
    "adaptive": lambda *rows, **weights: certified(*rows, method="adaptive", **weights),
    "events": lambda *rows, **weights: certified(*rows, relative_to="events", **weights),
    "normal": lambda *rows, **weights: certified(*rows, method="normal", **weights),
    "hoeffding": lambda *rows, **weights: certified(*rows, method="hoeffding", **weights),
}


@functools.cache
def answer(name: str, kind: str, question: str) -> Any:
    """Return what a tally of all rows says, once for all who are compared with it; they treat few rows as many."""
    y, w = outcomes(FORECASTS[name], kind)
    return QUESTIONS[question](Tally.from_arrays(y, FORECASTS[name], sample_weight=w))
