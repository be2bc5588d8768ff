"""Rows of several classes that tests share."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant import (
    BetaRecalibrator,
    CalibrationWarning,
    GuardedRecalibrator,
    IsotonicRecalibrator,
    PlattRecalibrator,
)
from calibrant.core.softmax import softmax
from calibrant.repairs import (
    ClassRecalibrator,
    ClassTemperatureRecalibrator,
    OneVsRestRecalibrator,
    TopLabelRecalibrator,
    VectorRecalibrator,
)

Floats = npt.NDArray[np.float64]


def drawn(truth: Floats, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """The class of each row, drawn from its probabilities."""
    below = truth.cumsum(axis=1) < rng.random((len(truth), 1)) * truth.sum(axis=1, keepdims=True)
    return np.asarray(below.sum(axis=1), dtype=np.int64)


def rows_of_classes(seed: int, rows: int = 400, classes: int = 4) -> tuple[Floats, npt.NDArray[np.int64], Floats]:
    """Probabilities that are too sure of themselves and shifted, what happened, and the logits of the forecasts."""
    rng = np.random.default_rng(seed)
    logits = 2.0 * rng.normal(size=(rows, classes))
    truth = softmax(logits / 1.7 + np.linspace(-0.5, 0.5, classes))
    return softmax(logits), drawn(truth, rng), logits


MAPS: dict[str, ClassRecalibrator] = {
    "temperature": ClassTemperatureRecalibrator(),
    "temperature, clipped": ClassTemperatureRecalibrator(clip=1e-3),
    "temperature, fixed": ClassTemperatureRecalibrator(temperature=2.0),
    "vector": VectorRecalibrator(clip=1e-6),
    "vector, smoothed": VectorRecalibrator(smoothing=True, clip=1e-6),
    "isotonic": OneVsRestRecalibrator(),
    "isotonic, linear": OneVsRestRecalibrator(IsotonicRecalibrator(interpolation="linear")),
    "isotonic, not divided": OneVsRestRecalibrator(renormalize=False),
    "beta": OneVsRestRecalibrator(BetaRecalibrator(clip=1e-6)),
    "guarded": OneVsRestRecalibrator(GuardedRecalibrator()),
    "top label": TopLabelRecalibrator(),
    "top label, Platt": TopLabelRecalibrator(PlattRecalibrator()),
}


def quietly(recalibrator: Any, y_prob: Any) -> Floats:
    """What a recalibrator forecasts, without the warning that a top label is not on top any more."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return np.asarray(recalibrator.predict(y_prob))
