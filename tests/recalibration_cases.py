"""Rows that the tests of recalibrators share."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from calibrant import (
    BetaRecalibrator,
    GuardedRecalibrator,
    IsotonicRecalibrator,
    PlattRecalibrator,
    Tally,
    TemperatureRecalibrator,
)
from calibrant.repairs import ConstantRecalibrator, RecalibrationGuarantee, Recalibrator


def draw(seed: int, rows: int = 400, digits: int = 2) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any]]:
    """Forecasts with ties, strictly inside [0, 1], of events that follow another curve."""
    rng = np.random.default_rng(seed)
    p = np.clip(np.round(rng.random(rows), digits), 0.01, 0.99)
    return p, (rng.random(rows) < 0.1 + 0.7 * p**2).astype(int)


def guarantee_of(fitted: Recalibrator) -> RecalibrationGuarantee:
    """What is guaranteed of a recalibrator that was fitted to rows without weights."""
    assert fitted.guarantee_ is not None
    return fitted.guarantee_


P, Y = draw(0)
EVERYWHERE = np.linspace(0.0, 1.0, 1001)
FIGURE_4 = Tally.from_counts(forecast=[0, 0.25, 0.5, 1], rows=[1000] * 4, events=[1000, 0, 0, 1000])
MAPS = {
    "isotonic": IsotonicRecalibrator(),
    "isotonic, linear": IsotonicRecalibrator(interpolation="linear"),
    "isotonic, inside": IsotonicRecalibrator(ends="inside"),
    "Platt": PlattRecalibrator(),
    "Platt on the logit": PlattRecalibrator(on="logit"),
    "beta": BetaRecalibrator(),
    "temperature": TemperatureRecalibrator(),
    "constant": ConstantRecalibrator(),
    "guarded": GuardedRecalibrator(),
    "modified Platt": GuardedRecalibrator([PlattRecalibrator(), ConstantRecalibrator()], tolerance="paper"),
}
every_map = pytest.mark.parametrize("kind", MAPS.values(), ids=MAPS.keys())
