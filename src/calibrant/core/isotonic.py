"""Isotonic least squares: the best non-decreasing curve through weighted values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.types import FloatArray


def isotonic_fit(values: FloatArray, weight: npt.NDArray[Any], *, increasing: bool = True) -> Any:
    """Return scipy's isotonic regression of values, with its blocks."""
    from scipy.optimize import isotonic_regression

    return isotonic_regression(values, weights=weight.astype(np.float64), increasing=increasing)
