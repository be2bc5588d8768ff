"""Reads the values that R computed and the rows they are of: reference/r/NAME.R wrote reference/NAME.json."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

FOLDER = Path(__file__).parent / "reference"


def of_r(name: str) -> dict[str, Any]:
    """Return the values of a script by their names: numbers, lists of them, or words."""
    stored = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return {each: entry["value"] for each, entry in stored["values"].items()}


def columns(name: str) -> dict[str, npt.NDArray[np.float64]]:
    """Return the columns of a data set beside the scripts."""
    lines = (FOLDER / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    table = np.array([line.split(",") for line in lines[1:]], dtype=np.float64)
    return dict(zip(lines[0].split(","), table.T, strict=True))
