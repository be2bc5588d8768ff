"""Files of predictions in every format that is read, for the tests of files and of the command line."""

import gzip
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet

import calibrant
from calibrant.engines.columns import read_columns
from calibrant.engines.files import open_table

FORMATS = ("csv", "tsv", "parquet", "arrow", "feather", "stream", "npz", "jsonl", "json", "csv.gz", "csv.zst", "txt")


def predictions(rows: int = 240, seed: int = 0) -> dict[str, npt.NDArray[Any]]:
    """Return outcomes, calibrated forecasts, worse forecasts, weights and groups as columns."""
    rng = np.random.default_rng(seed)
    forecast = rng.random(rows).round(3)
    return {
        "y": (rng.random(rows) < forecast).astype(np.int64),
        "p": forecast,
        "worse": np.sqrt(forecast).round(3),
        "w": rng.integers(1, 4, rows).astype(np.float64),
        "ward": np.array(["north", "south", "west"])[rng.integers(0, 3, rows)],
    }


def write(columns: Mapping[str, Any], path: Path, kind: str) -> Path:
    """Write columns as one of the formats, under the name of the file."""
    names = list(columns)
    plain = {name: np.asarray(values).tolist() for name, values in columns.items()}
    table = pa.table(plain)
    records = [dict(zip(names, row, strict=True)) for row in zip(*plain.values(), strict=True)]
    separator = "\t" if kind == "tsv" else ","
    text = "\n".join([separator.join(names), *(separator.join(map(str, record.values())) for record in records)]) + "\n"
    if kind in ("csv", "tsv", "txt"):
        path.write_text(text)
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif kind == "csv.zst":
        with pa.output_stream(path, compression="zstd") as file:
            file.write(text.encode())
    elif kind == "parquet":
        pyarrow.parquet.write_table(table, path)
    elif kind == "feather":
        pyarrow.feather.write_feather(table, path)
    elif kind == "arrow":
        with pyarrow.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    elif kind == "stream":
        with pyarrow.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
    elif kind == "npz":
        with path.open("wb") as file:
            arrays: dict[str, Any] = {name: np.asarray(values) for name, values in columns.items()}
            np.savez(file, **arrays)
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    else:
        path.write_text(json.dumps(records))
    return path


def read(source: Any, names: Collection[str] = ("p",), **options: Any) -> Any:
    """Return columns of a file that is read whole."""
    with open_table(source, **options) as table:
        return read_columns(table, list(names), numbers=[name for name in names if name in ("y", "p")])


def outcome_minus_forecast(source: Any, **options: Any) -> float:
    """Ask a scan of the file, whose first question reads all rows."""
    with calibrant.scan(source, y_true="y", y_prob="p", **options) as rows:
        return calibrant.measures.calibration_in_the_large(rows)
