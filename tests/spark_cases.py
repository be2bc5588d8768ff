"""Whether Spark can be tried here, and frames of it."""

import os
import pathlib
import shutil
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

JAVA = shutil.which("java") or (pathlib.Path(os.environ.get("JAVA_HOME", "nowhere")) / "bin" / "java").exists()

needs_java = pytest.mark.skipif(not JAVA, reason="Spark needs a Java runtime, and neither PATH nor JAVA_HOME has one")


def spark_frame(spark: Any, columns: Mapping[str, Any]) -> Any:
    """Give Spark some columns: row by row, because it takes tables of Arrow from version 4 on, and pandas would make
    nulls NaN."""
    values = [pa.array(column).to_pylist() for column in columns.values()]
    return spark.createDataFrame(list(zip(*values, strict=True)), list(columns))
