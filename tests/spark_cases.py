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
    """Give Spark some columns: as a table of Arrow, or row by row before version 4, which takes none; pandas would make
    nulls NaN."""
    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    if int(spark.version.partition(".")[0]) >= 4:
        return spark.createDataFrame(table)
    return spark.createDataFrame(list(zip(*table.to_pydict().values(), strict=True)), list(columns))
