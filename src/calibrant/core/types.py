"""Arrays and labels as the code names them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

IntArray = npt.NDArray[np.int64]

BoolArray = npt.NDArray[np.bool_]

Label = str | int | float | bool
"""What names a group of rows."""
