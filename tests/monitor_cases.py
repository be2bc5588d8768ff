"""Streams for monitors, and how they are passed on."""

from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.monitors import Monitor

Rows = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]

UNITS = ("period", "row")


def rows_of(seed: int, count: int = 40, steps: int = 256) -> Rows:
    """Return calibrated rows, with forecasts whose sums are exact whatever their order."""
    rng = np.random.default_rng(seed)
    y_prob = rng.integers(0, steps + 1, count) / steps
    return (rng.random(count) < y_prob).astype(np.int64), y_prob


def streamed(unit: Any = "period", periods: int = 6, **options: Any) -> Monitor:
    """Return a monitor that was read after each of some periods."""
    monitor = Monitor(**{"max_error": 0.2, "unit": unit, **options})
    for period in range(1, periods + 1):
        monitor.update(*rows_of(period), period=period)
        monitor.read()
    return monitor
