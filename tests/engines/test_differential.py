"""The same rows through every door: arrays, frames, files of every format, read and scanned, DuckDB and Spark.

The rows are made so that whoever looks at the first of them is wrong about the rest: 21,000 rows of whole numbers come
first, then fractions, and last what must be refused. The judge is exact rational arithmetic.
"""

import gzip
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from spark_cases import needs_java, spark_frame

import calibrant
from calibrant.cli.inputs import Source
from calibrant.cli.outputs import BadInput
from calibrant.cli.rows import RowsRead, open_rows

WHOLE = 21_000  # more than the 20,480 rows by which a reader may guess types
FRACTIONS = 3_000
TEXTS = ("csv", "tsv", "csv.gz", "csv.zst", "jsonl", "json")
TYPED = ("parquet", "arrow", "feather", "stream", "npz")


def columns():
    """Return outcomes, forecasts, weights and groups as Python numbers: whole ones first, then fractions."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, WHOLE).tolist() + (rng.integers(0, 9, FRACTIONS) / 8).tolist()
    p = np.zeros(WHOLE, dtype=int).tolist() + rng.random(FRACTIONS).round(3).tolist()
    w = np.ones(WHOLE, dtype=int).tolist() + (rng.integers(1, 40, FRACTIONS) / 8).tolist()
    g = ["1"] * WHOLE + ["1.0", "1E5", "100000"] * (FRACTIONS // 3)
    return {"y": y, "p": p, "w": w, "g": g}


def exact_cutoff(rows):
    """Return the range of the residual curve, computed with fractions alone."""
    residual: dict[Any, Fraction] = {}
    total = Fraction(0)
    for y, p, w in zip(rows["y"], rows["p"], rows["w"], strict=True):
        residual[p] = residual.get(p, Fraction(0)) + Fraction(w) * (Fraction(y) - Fraction(p))
        total += Fraction(w)
    highest = lowest = height = Fraction(0)
    for p in sorted(residual):
        height += residual[p]
        highest, lowest = max(highest, height), min(lowest, height)
    return float((highest - lowest) / total)


def record_texts(rows, kind):
    """Return the rows as a text format writes them."""
    if "json" in kind:
        return [json.dumps(dict(zip(rows, row, strict=True))) for row in zip(*rows.values(), strict=True)]
    columns = [["" if value is None else str(value) for value in values] for values in rows.values()]
    return list(map(("\t" if kind == "tsv" else ",").join, zip(*columns, strict=True)))


def write_texts(names, records, path, kind):
    """Write rows that are texts already."""
    if kind == "json":
        text = f"[{', '.join(records)}]"
    else:
        header = [] if kind == "jsonl" else [("\t" if kind == "tsv" else ",").join(names)]
        text = "\n".join([*header, *records]) + "\n"
    if kind.endswith("zst"):
        with pa.output_stream(path, compression="zstd") as file:
            file.write(text.encode())
    else:
        path.write_bytes(gzip.compress(text.encode()) if kind.endswith("gz") else text.encode())
    return path


def write_file(rows, path, kind, *, whole=False):
    """Write columns as a format; whole numbers as whole numbers where all of a column are."""
    if kind in TEXTS:
        return write_texts(list(rows), record_texts(rows, kind), path, kind)
    typed = {
        name: pa.array(values if whole or name == "g" else [None if v is None else float(v) for v in values])
        for name, values in rows.items()
    }
    table = pa.table(typed)
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=5_000)
    elif kind == "feather":
        pyarrow.feather.write_feather(table, path)
    elif kind == "npz":
        arrays: dict[str, Any] = {name: np.array(values.to_pylist()) for name, values in typed.items()}
        np.savez(path, **arrays)
    else:
        opened = pyarrow.ipc.new_file if kind == "arrow" else pyarrow.ipc.new_stream
        with opened(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=4_000)
    return path


def part(rows, begin, end):
    return {name: values[begin:end] for name, values in rows.items()}


def turned(rows):
    """Return the columns in another order."""
    return dict(reversed(rows.items()))


COLUMNS: dict[str, Any] = {"y_true": "y", "y_prob": "p", "sample_weight": "w"}


def judged(handle):
    with handle:
        return calibrant.cutoff_calibration_error(handle)


def read_whole(source):
    with open_rows(Source((str(source),), "y", "p", "w", quiet=True)) as rows:
        return calibrant.cutoff_calibration_error(**rows.data)


@pytest.fixture(scope="module")
def rows():
    return columns()


@pytest.fixture(scope="module")
def truth(rows):
    return exact_cutoff(rows)


@pytest.fixture(scope="module")
def texts(rows):
    """The rows as every text format writes them."""
    return {kind: record_texts(rows, kind) for kind in TEXTS}


@pytest.fixture(scope="module")
def group_truth(rows):
    """The exact answer of every group."""
    places: dict[str, list[int]] = {}
    for place, label in enumerate(rows["g"]):
        places.setdefault(label, []).append(place)
    return {
        label: exact_cutoff({name: [values[place] for place in chosen] for name, values in rows.items()})
        for label, chosen in places.items()
    }


def close(value):
    return pytest.approx(value, rel=1e-12)


def test_arrays(rows, truth):
    y, p, w = (np.array(rows[name], dtype=float) for name in "ypw")
    assert calibrant.cutoff_calibration_error(y, p, sample_weight=w) == close(truth)
    assert truth > 0.1


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "arrow", "dataset"])
def test_frames(kind, rows, truth):
    table = pa.table({name: pa.array(values) for name, values in rows.items()})
    frames = {
        "pandas": lambda: pd.DataFrame(rows),
        "polars": lambda: pl.from_arrow(table),
        "lazy": lambda: pl.DataFrame(table).lazy(),
        "arrow": lambda: table,
        "dataset": lambda: pyarrow.dataset.dataset(table),
    }
    assert judged(calibrant.scan(frames[kind](), **COLUMNS)) == close(truth)


@pytest.mark.parametrize("kind", [*TEXTS, *TYPED])
@pytest.mark.parametrize("folder", ["plain", "y=1"])
@pytest.mark.usefixtures("as_if_large")
def test_one_file(kind, folder, rows, truth, tmp_path):
    place = tmp_path / folder
    place.mkdir()
    path = write_file(rows, place / f"t.{kind}", kind)
    assert judged(calibrant.scan(path, **COLUMNS)) == close(truth)
    assert read_whole(path) == close(truth)


@pytest.mark.parametrize("kind", [*TEXTS, *TYPED])
@pytest.mark.usefixtures("as_if_large")
def test_several_files_of_which_the_first_has_whole_numbers_and_the_last_another_order(kind, rows, truth, tmp_path):
    place = tmp_path / "y=1" / "p=0"
    place.mkdir(parents=True)
    ending = "arrow" if kind == "stream" else kind  # a folder counts files whose names say what they are
    write_file(part(rows, 0, WHOLE), place / f"a.{ending}", kind, whole=kind != "npz")
    middle = WHOLE + FRACTIONS // 2
    write_file(part(rows, WHOLE, middle), place / f"b.{ending}", kind)
    last = part(rows, middle, None)
    write_file(last if kind == "npz" else turned(last), place / f"c.{ending}", kind)
    assert judged(calibrant.scan(tmp_path, **COLUMNS)) == close(truth)
    assert read_whole(tmp_path) == close(truth)


@pytest.mark.parametrize("kind", TEXTS)
def test_groups_in_text_are_texts_as_they_stand(kind, rows, texts, group_truth, tmp_path):
    path = write_texts(rows, texts[kind], tmp_path / f"t.{kind}", kind)
    with calibrant.scan(path, **COLUMNS, by="g") as groups:
        assert groups.groups == ("1", "1.0", "100000", "1E5")
        found = calibrant.rows.by_group(groups, calibrant.cutoff_calibration_error)
    for label, value in zip(groups.groups, found, strict=True):
        assert value == close(group_truth[label])
    with open_rows(Source((str(path),), "y", "p", "w", by="g", quiet=True)) as read:
        assert isinstance(read, RowsRead)
        assert sorted(set(read.by.tolist())) == list(groups.groups)


LATE = {
    "no outcome": ("y", None),
    "no forecast": ("p", None),
    "NaN outcome": ("y", float("nan")),
    "NaN forecast": ("p", float("nan")),
    "NaN weight": ("w", float("nan")),
    "infinite weight": ("w", float("inf")),
    "large outcome": ("y", 1.5),
    "large forecast": ("p", 1.0 + 2.0**-52),
    "negative forecast": ("p", -1e-300),
    "negative weight": ("w", -0.25),
}


ASKED_BY_GROUP = ("csv", "jsonl", "parquet", "npz")
"""One of each way to a view of a file, from which on statements by group are the same for all formats."""


REFUSED = [
    (kind, late)
    for each, kind in enumerate([*TEXTS, *TYPED])
    for place, late in enumerate(LATE)
    if kind in ASKED_BY_GROUP or place % 5 == each % 5
]
"""All that must be refused in one of each way to a view of a file, and each of it in some other formats, too."""


@pytest.mark.parametrize(("kind", "late"), REFUSED)
def test_what_comes_late_is_refused(kind, late, rows, texts, tmp_path):
    name, value = LATE[late]
    if kind == "npz" and value is None:
        value = float("nan")  # which is how numpy says that there is no number
    bad = {**rows, name: [*rows[name][:-1], value]}
    path = tmp_path / f"t.{kind}"
    if kind in TEXTS:
        write_texts(rows, [*texts[kind][:-1], *record_texts(part(bad, -1, None), kind)], path, kind)
    else:
        write_file(bad, path, kind)
    for ask in (lambda path: judged(calibrant.scan(path, **COLUMNS)), read_whole):
        with pytest.raises((ValueError, BadInput), match=f"column '{name}'") as error:
            ask(path)
        assert "24,000" in str(error.value)
    if kind in ASKED_BY_GROUP:
        with calibrant.scan(path, **COLUMNS, by="g") as groups, pytest.raises(ValueError, match=f"column '{name}'"):
            calibrant.certify(groups, max_error=0.9)


@needs_java
class TestSpark:
    def test_frames(self, spark, rows, truth):
        frame = spark_frame(spark, rows)
        assert judged(calibrant.scan(frame, **COLUMNS)) == close(truth)

    @pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
    def test_files_that_it_reads(self, kind, spark, rows, truth, tmp_path):
        path = str(write_file(rows, tmp_path / f"t.{kind}", kind))
        read = {
            "csv": lambda: spark.read.csv(path, header=True, inferSchema=True),
            "jsonl": lambda: spark.read.json(path),
            "parquet": lambda: spark.read.parquet(path),
        }
        assert judged(calibrant.scan(read[kind](), **COLUMNS)) == close(truth)

    @pytest.mark.parametrize("late", ["no outcome", "NaN outcome", "NaN forecast", "large forecast", "negative weight"])
    def test_what_comes_late_is_refused(self, late, spark, rows):
        name, value = LATE[late]
        bad = {**rows, name: [*rows[name][:-1], value]}
        frame = spark_frame(spark, bad)
        with pytest.raises(ValueError, match=f"column '{name}'"):
            judged(calibrant.scan(frame, **COLUMNS))

    def test_names_that_differ_by_case(self, spark):
        named: dict[str, list[float]] = {"P": [0.9, 0.9], "p": [0.1, 0.2], "p_1": [0.5, 0.5], "y": [0, 1], "Y": [1, 1]}
        frame = spark_frame(spark, named)
        for name, values in named.items():
            if name.lower().startswith("p"):
                with calibrant.scan(frame, y_true="y", y_prob=name) as found:
                    expected = calibrant.measures.calibration_in_the_large(named["y"], values)
                    assert calibrant.measures.calibration_in_the_large(found) == close(expected)
