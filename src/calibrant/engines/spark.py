"""Apache Spark as an engine: a DataFrame, added up and filtered by the cluster through Spark SQL."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.engines.formats import TableError, first_line
from calibrant.engines.statements import WHOLE, Engine

_KINDS = {
    "tinyint": "whole",
    "smallint": "whole",
    "int": "whole",
    "bigint": "whole",
    "float": "fraction",
    "double": "fraction",
    "boolean": "boolean",
    "string": "text",
}


class SparkEngine(Engine):
    """The rows of a DataFrame, which Spark computes anew for every statement unless it is cached."""

    text_type = "STRING"

    def __init__(self, frame: Any) -> None:
        self.name = "the DataFrame"
        self.table = f"calibrant_{uuid.uuid4().hex}"
        self.columns = {
            column: "fraction" if type_name.startswith("decimal") else _KINDS.get(type_name, type_name)
            for column, type_name in frame.dtypes
        }
        self._session = frame.sparkSession
        names = frame.columns
        twice = next((each for place, each in enumerate(names) if each in names[:place]), None)
        if twice is not None:
            raise TableError(f"two columns are named {twice!r}", source=self.name, remedy="rename one of them")
        self._fields = {name: f"c{place}" for place, name in enumerate(names)}  # Spark does not tell P from p
        frame.toDF(*self._fields.values()).createOrReplaceTempView(self.table)

    def run(self, statement: str) -> Mapping[str, npt.NDArray[Any]]:
        """Run one statement on the cluster and bring its result here, as Arrow where Spark is new enough."""
        try:
            result = self._session.sql(statement)
            if hasattr(result, "toArrow"):
                table = result.toArrow()
                return {name: table[name].to_numpy() for name in table.column_names}
            frame = result.toPandas()
        except _faults() as error:
            raise TableError(f"cannot be read: {first_line(error)}", table=self.name) from error
        return {name: np.asarray(frame[name]) for name in frame.columns}

    def quoted(self, name: str) -> str:
        """Write a column by its place."""
        return self._fields[name]

    def number(self, column: str) -> str:
        """Write a column as float64: a product, by which no reader of files passes over rows."""
        return f"({super().number(column)} * 1.0D)"

    def text(self, column: str) -> str:
        """Write a column as text, with nothing added, for the same reason."""
        return f"concat({super().text(column)}, '')"

    def literal(self, text: str) -> str:
        """Write a text by its bytes: how Spark reads quotes and backslashes depends on its settings."""
        return f"CAST(X'{text.encode().hex()}' AS STRING)"

    def listed(self, names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        """Write one text for each column: Spark reads thousands of numbers in it many times faster than in SQL."""
        columns = map(_column, names, zip(*rows, strict=True))
        return f"WITH asked AS (SELECT inline(arrays_zip({', '.join(columns)})) AS ({', '.join(names)})) "

    def close(self) -> None:
        """Forget the name under which Spark knows the rows; the session stays open."""
        self._session.catalog.dropTempView(self.table)


def _faults() -> tuple[type[Exception], ...]:
    """Return what Spark raises for statements and rows; Spark 3 leaves some of it as Java raised it."""
    from pyspark.errors import PySparkException

    try:
        from py4j.protocol import Py4JJavaError
    except ImportError:  # a client of a cluster elsewhere has no Java
        return (PySparkException,)
    return PySparkException, Py4JJavaError


def _column(name: str, values: Sequence[str]) -> str:
    """Write a column of a short table."""
    if name != "label":
        return _array(values, "bigint" if name in WHOLE else "double")
    numbers = {label: str(number) for number, label in enumerate(dict.fromkeys(values), start=1)}
    chosen = _array([numbers[label] for label in values], "int")
    return f"transform({chosen}, number -> element_at(array({', '.join(numbers)}), number))"


def _array(numbers: Sequence[str], kind: str) -> str:
    return f"from_json('[{', '.join(numbers)}]', 'array<{kind}>')"
