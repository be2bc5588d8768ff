"""Arrays and labels as the code names them, and what users may pass in their place."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

IntArray = npt.NDArray[np.int64]

BoolArray = npt.NDArray[np.bool_]

ArrayLike: TypeAlias = npt.ArrayLike
"""What numpy reads: a number, lists, columns of frames, tensors, and whatever else has ``__array__``."""

Randomness: TypeAlias = int | np.integer | np.random.Generator | None
"""A seed, a generator, or None for numbers that differ each time."""

Label: TypeAlias = str | int | float | bool
"""What names a group of rows."""

ClassLabel: TypeAlias = Label | np.generic
"""What names the event among outcomes: a label of any type that an array holds."""
