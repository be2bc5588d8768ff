"""Rows for plots, and what a plot holds; shared by the files that test displays."""

import functools
import io
import re
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from calibrant import Tally


def rows(
    size: int = 300, seed: int = 0, *, ties: int | None = None
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
    """Return outcomes and forecasts that are somewhat too high."""
    rng = np.random.default_rng(seed)
    p = rng.random(size) if ties is None else rng.integers(1, ties, size) / ties
    return (rng.random(size) < p**1.3).astype(int), p


@functools.cache
def million() -> Tally:
    """Return the tally of a million rows whose forecasts are a little off."""
    rng = np.random.default_rng(5)
    p = rng.beta(0.7, 2.0, 10**6)
    return Tally.from_arrays(rng.random(p.size) < p + 0.03 * np.sin(6 * p), p)


def drawn_colours(figure: Figure) -> set[str]:
    """Return every colour that a picture of a figure holds."""
    picture = io.StringIO()
    figure.set_layout_engine("none")  # which would draw everything twice, in the same colours
    figure.savefig(picture, format="svg")
    return set(re.findall(r"#[0-9a-f]{6}\b", picture.getvalue()))
