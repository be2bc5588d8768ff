"""The data: forecasts of many shapes, with outcomes drawn from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
SEED = 20250


def uniform(rows: int, shift: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Return uniform forecasts, and outcomes with events more frequent than forecast by a shift."""
    random = np.random.default_rng(SEED)
    forecast = random.random(rows)
    return forecast, draw_events(random, forecast + shift)


def nearly_calibrated(rows: int) -> tuple[FloatArray, FloatArray]:
    """Return uniform forecasts that are a little too low."""
    return uniform(rows, shift=0.02)


def ten_classes(rows: int) -> tuple[FloatArray, FloatArray]:
    """Return calibrated forecasts of ten classes, and the number of the class that came."""
    random = np.random.default_rng(SEED)
    forecast = random.dirichlet(np.ones(10), rows)
    return forecast, (forecast.cumsum(axis=1) < random.random((rows, 1))).sum(axis=1).astype(np.float64)


def draw_events(random: np.random.Generator, rate: FloatArray) -> FloatArray:
    return (random.random(rate.size) < rate).astype(np.float64)


def distributions(rows: int) -> Iterator[tuple[str, FloatArray, FloatArray]]:
    """Yield forecasts of shapes that could hurt an algorithm that looks at their values, with outcomes."""
    yield "uniform", *uniform(rows)
    random = np.random.default_rng(SEED)
    shapes: dict[str, Callable[[], FloatArray]] = {
        "beta(.05, 5)": lambda: random.beta(0.05, 5.0, rows),
        "p below 1e-4": lambda: random.random(rows) * 1e-4,
        "two decimals": lambda: random.random(rows).round(2),
        "constant": lambda: np.full(rows, 0.3),
    }
    for name, draw in shapes.items():
        forecast = draw()
        yield name, forecast, draw_events(random, forecast)
    yield "miscalibrated", *uniform(rows, shift=0.1)
