"""No reader chooses a type, a column or a row: all that stands in the files decides, or they are refused."""

import json
import os
import struct
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from cli_cases import answer, call

import calibrant
from calibrant import scan
from calibrant.engines.columns import read_columns, write_with_column
from calibrant.engines.files import open_table
from calibrant.engines.formats import TableError
from calibrant.engines.readers import united_type
from calibrant.engines.statements import Engine

CASES: dict[str, list[Any]] = {"P": [0.9, 0.8], "p": [0.1, 0.2], "p_1": [0.5, 0.5], "y": [0, 1], "Y": [1, 1]}
COLUMNS = {"y_true": "y", "y_prob": "p"}


def cutoff(source, **columns):
    with scan(source, **(columns or COLUMNS)) as rows:
        return calibrant.cutoff_calibration_error(rows)


def write_rows(path, columns):
    """Write columns in the format that the name says."""
    kind = path.suffix
    if kind == ".csv":
        lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        path.write_text("\n".join(lines) + "\n")
    elif kind == ".jsonl":
        rows = zip(*columns.values(), strict=True)
        path.write_text("".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows))
    elif kind == ".parquet":
        pq.write_table(pa.table(columns), path)
    elif kind == ".arrow":
        pyarrow.feather.write_feather(pa.table(columns), path)
    else:
        arrays: dict[str, Any] = {name: np.array(values) for name, values in columns.items()}
        np.savez(path, **arrays)
    return path


# --- Types ------------------------------------------------------------------------------------------------------------


def test_a_forecaster_whose_fractions_come_late_is_not_certified(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text("y,p\n" + "0,0\n" * 24_000 + "0,0.49\n" * 36_000)
    for limit in ((), ("--memory-limit", "1GB")):
        found = answer("certify", path, "--max-error", "0.05", *limit, exit_code=1)
        assert found["result"]["estimate"] == pytest.approx(0.294)
        assert found["result"]["verdict"] == "refuted"


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_weights_and_outcomes_whose_fractions_come_late(suffix, tmp_path):
    columns = {"y": [0] * 21_000 + [0.5], "p": [0.25] * 21_001, "w": [1] * 21_000 + [7_000.5]}
    path = write_rows(tmp_path / f"t.{suffix}", columns)
    found = answer("measure", path, "--weight", "w")["result"]["calibration_in_the_large"]
    expected = (0.25 * 7_000.5 - 0.25 * 21_000) / (21_000 + 7_000.5)
    assert found == pytest.approx(expected, rel=1e-12)


def test_types_that_unite():
    assert united_type("INTEGER", "BIGINT") == united_type("BIGINT", "UINTEGER") == "BIGINT"
    assert united_type("UTINYINT", "TINYINT") == "SMALLINT"
    assert united_type("USMALLINT", "UINTEGER") == "UINTEGER"
    assert (
        united_type("FLOAT", "DOUBLE") == united_type("BIGINT", "DOUBLE") == united_type("FLOAT", "INTEGER") == "DOUBLE"
    )
    assert united_type('"NULL"', "DATE") == united_type("DATE", '"NULL"') == "DATE"
    assert united_type("ENUM('a', 'b')", "VARCHAR") == "VARCHAR"
    for one, other in [("UBIGINT", "BIGINT"), ("VARCHAR", "DOUBLE"), ("BOOLEAN", "BIGINT"), ("DATE", "TIMESTAMP")]:
        assert united_type(one, other) is None
        assert united_type(other, one) is None


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_several_files_are_widened_whichever_comes_first(suffix, tmp_path):
    whole = write_rows(tmp_path / f"a.{suffix}", {"y": [0] * 500, "p": [0] * 500})
    fractions = write_rows(tmp_path / f"b.{suffix}", {"p": [0.49] * 500, "y": [0.0] * 500})
    assert cutoff([whole, fractions]) == cutoff([fractions, whole]) == pytest.approx(0.245)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_files_whose_types_cannot_be_united_are_named(suffix, tmp_path):
    one = write_rows(tmp_path / f"a.{suffix}", {"y": [0], "p": [0.5], "g": [2**60]})
    two = write_rows(tmp_path / f"b.{suffix}", {"y": [0], "p": ["0.5"], "g": [0.5]})
    with pytest.raises(
        ValueError, match=r"column 'p' is of type DOUBLE in .*a\.\w+ and of type VARCHAR in .*b\.\w+; write"
    ):
        cutoff([one, two])
    with open_table([one, two]) as table:
        assert read_columns(table, ["y"])["y"].tolist() == [0, 0]
        with pytest.raises(TableError, match=r"'g' holds whole numbers beyond 2\^53, and fractions in other files"):
            read_columns(table, ["g"])


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_a_file_that_lacks_a_column_is_named(suffix, tmp_path):
    one = write_rows(tmp_path / f"a.{suffix}", {"y": [0], "p": [0.5], "note": [1]})
    two = write_rows(tmp_path / f"b.{suffix}", {"p": [0.25], "y": [1]})
    assert cutoff([one, two]) == calibrant.cutoff_calibration_error([0, 1], [0.5, 0.25])
    with pytest.raises(ValueError, match=r"b\.\w+ has no column 'note', as .*a\.\w+ does"):
        cutoff([one, two], y_true="y", y_prob="note")


def test_a_folder_is_no_column(tmp_path):
    folder = tmp_path / "y=1" / "g=north"
    folder.mkdir(parents=True)
    for suffix in ("parquet", "csv", "jsonl", "arrow"):
        path = write_rows(folder / f"t.{suffix}", {"y": [0] * 10, "p": [0.9] * 10})
        assert cutoff(path) == pytest.approx(0.9)
        with pytest.raises(
            ValueError, match=r"no column 'g', only a folder 'g=north'; .* write the values into the files"
        ):
            cutoff(path, y_true="y", y_prob="g")


# --- Names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "jsonl", "npz"])
def test_names_that_differ_by_case_are_different_names(suffix, tmp_path):
    path = write_rows(tmp_path / f"t.{suffix}", CASES)
    for files in (path, [path, path]):
        with open_table(files) as table:
            assert list(table.columns) == list(CASES)
            for name, values in CASES.items():
                assert read_columns(table, [name], numbers=[name])[name].tolist() == values * (
                    1 if files is path else 2
                )
    check_names(path)


def check_names(source):
    for outcome in ("y", "Y"):
        for name in ("P", "p", "p_1"):
            expected = calibrant.measures.calibration_in_the_large(CASES[outcome], CASES[name])
            with scan(source, y_true=outcome, y_prob=name) as rows:
                assert calibrant.measures.calibration_in_the_large(rows) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "arrow", "dataset"])
def test_names_of_frames_too(kind):
    table = pa.table(CASES)
    frames = {
        "pandas": table.to_pandas,
        "polars": lambda: pl.from_arrow(table),
        "lazy": lambda: pl.DataFrame(table).lazy(),
        "arrow": lambda: table,
        "dataset": lambda: pyarrow.dataset.dataset(table),
    }
    check_names(frames[kind]())


def test_two_columns_of_one_name_are_refused(tmp_path):
    doubled = pa.table([[0.5], [0.25], [1]], names=["p", "p", "y"])
    pq.write_table(doubled, tmp_path / "t.parquet")
    (tmp_path / "t.jsonl").write_text('{"y": 1, "p": 0.5, "p": 0.25}\n')
    for name in ("t.parquet", "t.jsonl"):
        with pytest.raises(ValueError, match=r"two (columns|values).* named 'p'; rename one of them"):
            cutoff(tmp_path / name)
    with pytest.raises(ValueError, match="the DataFrame: two columns are named 'p'; rename one of them"):
        cutoff(pd.DataFrame([[0.5, 0.25, 1]], columns=["p", "p", "y"]))


def test_objects_of_a_frame_are_not_judged_by_a_sample():
    frame = pd.DataFrame({"y": [0] * 60_000, "p": np.array([0] * 59_999 + [0.49], dtype=object)})
    with pytest.raises(ValueError, match=r"y_prob \(column 'p'\) is of type text, not numbers; convert it to numbers"):
        cutoff(frame)
    assert cutoff(frame.astype(float)) == pytest.approx(0.49 / 60_000)


# --- Labels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_groups_keep_their_digits(suffix, tmp_path):
    labels = ["100000", "1E5", "12345678901234567890123", "12345678901234567890124", "1", "1.0", "01", "true"]
    path = write_rows(tmp_path / f"t.{suffix}", {"y": [0, 1] * 8, "p": [0.5] * 16, "g": labels * 2})
    with scan(path, y_true="y", y_prob="p", by="g") as groups:
        assert groups.groups == tuple(sorted(labels))
    found = answer("certify", path, "--max-error", "1", "--by", "g")["result"]["groups"]
    assert sorted(found) == sorted(labels)


def test_decimals_with_many_digits_are_different_groups():
    digits = pa.array(["12345678901234567890123", "12345678901234567890124"]).cast(pa.decimal128(30, 0))
    with scan(pa.table({"y": [0, 1], "p": [0.5, 0.5], "g": digits}), y_true="y", y_prob="p", by="g") as groups:
        assert len(set(groups.groups)) == 2


@pytest.mark.parametrize(
    ("outcomes", "pos_label", "events"),
    [
        (["1", "1.0", "0"], "1", 2),
        (["1", "0.0", "0"], "0", 2),
        (["True", "false", "TRUE"], "true", 2),
        (["True", "false", "TRUE"], "no", 1),
        (["yes", "no", "yes"], "yes", 2),
        (["2024-01-01", "2024-01-02", "2024-01-01"], "2024-01-02", 1),
        (["7", "-2", "7"], "7", 2),
    ],
)
def test_the_label_of_the_event_in_text(outcomes, pos_label, events, tmp_path):
    path = write_rows(tmp_path / "t.csv", {"y": outcomes, "p": [0.25] * 3})
    for limit in ((), ("--memory-limit", "1GB")):
        found = answer("measure", path, "--pos-label", pos_label, *limit)
        assert found["result"]["mean_outcome"] == pytest.approx(events / 3)


# --- Statistics -------------------------------------------------------------------------------------------------------


def lying(path, columns, true, said):
    """Write a Parquet file whose footer says another largest or smallest value than its rows have."""
    pq.write_table(pa.table(columns), path, compression=None, use_dictionary=False)
    content = bytearray(path.read_bytes())
    footer = len(content) - 8 - struct.unpack("<I", content[-8:-4])[0]
    place = content.find(true, footer)
    assert place >= 0
    while place >= 0:
        content[place : place + len(true)] = said
        place = content.find(true, place + 1)
    path.write_bytes(content)
    return path


def doors(path):
    """Return the ways to a Parquet file: by name, and as a relation and a dataset of somebody else's."""
    return {
        "name": path,
        "relation": duckdb.connect().read_parquet(str(path)),
        "dataset": pyarrow.dataset.dataset(str(path)),
    }


@pytest.mark.parametrize("door", ["name", "relation", "dataset"])
@pytest.mark.parametrize("column", ["y", "p"])
def test_a_file_that_says_less_of_its_largest_value_is_not_believed(door, column, tmp_path):
    columns: dict[str, list[Any]] = {"y": [0.0, 1.0] * 500, "p": [0.25, 0.5] * 500, "g": ["a", "b"] * 500}
    columns[column][7] = 7.5
    path = lying(tmp_path / "t.parquet", columns, struct.pack("<d", 7.5), struct.pack("<d", 0.5))
    said = pq.ParquetFile(path).metadata.row_group(0).column(list(columns).index(column)).statistics
    assert said.max == 0.5
    with pytest.raises(ValueError, match=rf"column '{column}'\) is outside \[0, 1\] in 1 of 1,000 rows.* = 7\.5"):
        cutoff(doors(path)[door])
    with (
        scan(doors(path)[door], y_true="y", y_prob="p", by="g") as groups,
        pytest.raises(ValueError, match=rf"column '{column}'\) is outside \[0, 1\] in 1 of 1,000 rows"),
    ):
        calibrant.certify(groups, max_error=0.9)


@pytest.mark.usefixtures("as_if_large")
@pytest.mark.parametrize("door", ["name", "relation"])
def test_no_row_is_passed_over_because_of_what_a_file_says(door, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(3_000)
    p[5] = 0.984375
    columns = {"y": (rng.random(3_000) < 0.8 * p).astype(float).tolist(), "p": p, "g": ["a", "z"] * 1_500}
    expected = calibrant.cutoff_calibration_error(columns["y"], p)
    largest = float(p.max())
    path = lying(tmp_path / "p.parquet", columns, struct.pack("<d", largest), struct.pack("<d", 0.125))
    assert cutoff(doors(path)[door]) == pytest.approx(expected, rel=1e-12)
    path = lying(tmp_path / "g.parquet", columns, b"\x01z", b"\x01a")
    with scan(doors(path)[door], y_true="y", y_prob="p", by="g") as groups:
        assert groups.groups == ("a", "z")
        found = calibrant.rows.by_group(groups, calibrant.cutoff_calibration_error)
    each = [calibrant.cutoff_calibration_error(columns["y"][k::2], p[k::2]) for k in (0, 1)]
    assert found == pytest.approx(each, rel=1e-12)


@pytest.mark.parametrize("door", ["name", "relation", "dataset"])
def test_nan_among_floats_is_found_in_groups(door, tmp_path):
    y = np.array([0.0, 1.0] * 500)
    y[3] = np.nan
    pq.write_table(pa.table({"y": y, "p": np.full(1_000, 0.5), "g": ["a", "b"] * 500}), tmp_path / "t.parquet")
    with (
        scan(doors(tmp_path / "t.parquet")[door], y_true="y", y_prob="p", by="g") as groups,
        pytest.raises(ValueError, match=r"y_true \(column 'y'\) is missing in 1 of 1,000 rows"),
    ):
        calibrant.certify(groups, max_error=0.9)


class Liar(Engine):
    """Answers every scan with the totals it was given."""

    name, table, columns = "the table", "rows", {"y": "whole", "p": "fraction", "w": "fraction"}

    def __init__(self, **answer):
        honest = {
            "cell_key": 2**15,
            "n": 4,
            "low": 0.5,
            "high": 0.5,
            "residual_square": 1.0,
            "outcome": 2.0,
            "above": 0.0,
        }
        self.answer = {name: np.array([value]) for name, value in (honest | answer).items()}

    def run(self, statement):
        assert "GROUP BY" in statement
        return self.answer


def test_an_honest_liar_is_believed():
    assert cutoff(Liar()) == 0.0


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        ({"outcome": 9.0}, "outcome"),
        ({"outcome": np.nan}, "outcome"),
        ({"outcome": -1.0}, "outcome"),
        ({"residual_square": np.nan}, "residual_square"),
        ({"residual_square": 9.0}, "residual_square"),
        ({"residual_square": -1.0}, "residual_square"),
        ({"above": 8.0}, "residual"),
        ({"above": np.inf}, "residual"),
        ({"low": 2.5, "high": 2.5}, "forecasts"),
        ({"low": np.nan}, "forecasts"),
        ({"low": 0.6}, "forecasts"),
        ({"n": 0}, "rows"),
        ({"n": -3}, "rows"),
    ],
)
def test_totals_that_no_rows_have_are_refused(answer, what):
    with pytest.raises(ValueError, match=f"the table: the scan found {what} such as no rows have, between 0.5 and"):
        cutoff(Liar(**answer))


# --- Files that change ------------------------------------------------------------------------------------------------


def replace_file(path, columns):
    other = write_rows(path.with_name(f"other{path.suffix}"), columns)
    os.replace(other, path)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "jsonl", "npz"])
def test_a_file_that_changes_between_two_questions_is_refused(suffix, tmp_path):
    rng = np.random.default_rng(0)
    old = {"y": rng.integers(0, 2, 500).tolist(), "p": rng.random(500).tolist()}
    new = {"y": [1 - y for y in old["y"]], "p": old["p"]}  # of the same size, with as many rows in every cell
    path = write_rows(tmp_path / f"t.{suffix}", old)
    times = path.stat()
    with scan(path, y_true="y", y_prob="p") as rows:
        rows.cells()
        replace_file(path, new)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        with pytest.raises(
            ValueError, match=r"t\.\w+ changed while it was read \(another size, time or file\); open it"
        ):
            calibrant.cutoff_calibration_error(rows)


def test_a_file_that_is_written_to_or_taken_away_is_refused(tmp_path):
    paths = [write_rows(tmp_path / f"{name}.csv", {"y": [0, 1], "p": [0.5, 0.25]}) for name in "ab"]
    for change in (lambda: paths[1].write_text("y,p\n0,0.5\n1,0.75\n"), paths[1].unlink):
        with open_table(paths) as table:
            read_columns(table, ["p"], numbers=["p"])
            change()
            with pytest.raises(TableError, match=r"b\.csv changed while it was read"):
                read_columns(table, ["p"], numbers=["p"])


# --- Order ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", ["0/1", "fractions"])
def test_totals_do_not_depend_on_the_order_of_rows(outcome):
    rng = np.random.default_rng(1)
    p = rng.beta(1, 8, 300_000)
    y = (rng.random(p.size) < p) if outcome == "0/1" else np.minimum(p + rng.random(p.size) / 3, 1.0)
    found = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(p.size)
        with scan(pa.table({"y": y[order], "p": p[order]}), y_true="y", y_prob="p") as rows:
            cells = rows.cells(bits=10)
            sums = (cells.residual.tobytes(), cells.residual_square.tobytes(), cells.outcome.tobytes())
            found.append((sums, repr(calibrant.certify(rows, max_error=0.1).to_dict())))
    assert found[0] == found[1] == found[2]


def test_tiny_forecasts_keep_their_digits():
    p = np.random.default_rng(0).random(5_000) * 1e-9
    y = np.zeros(5_000)
    expected = calibrant.certify(y, p, max_error=0.1)
    with scan(pa.table({"y": y.astype(int), "p": p}), y_true="y", y_prob="p") as rows:
        assert rows.cells().residual_square.sum() == pytest.approx(float((p * p).sum()), rel=1e-6)
        assert calibrant.certify(rows, max_error=0.1).upper == pytest.approx(expected.upper, abs=1e-15)


# --- Copies -----------------------------------------------------------------------------------------------------------


def copied(source, target, options):
    with open_table(source) as table:
        write_with_column(table, "q", lambda p: p / 2.0, "p", target, options)
    return target


LATE = {
    "p": ["0"] * 21_000 + ["0.49"],
    "id": ["1"] * 21_000 + ["12345678901234567890123"],
    "code": ["007"] * 21_001,
    "flag": ["true"] * 21_000 + ["false"],
    "mixed": ["true"] * 21_000 + ["yes"],
    "day": ["2024-01-02"] * 21_001,
    "number": ["1"] * 21_000 + ["1.0"],
    "whole": ["1"] * 21_000 + ["-12"],
    "padded": ["0.5"] * 21_000 + ["0.50"],
}
TYPES = {
    "p": pa.float64(),
    "id": pa.string(),
    "code": pa.string(),
    "flag": pa.bool_(),
    "mixed": pa.string(),
    "day": pa.string(),
    "number": pa.string(),
    "whole": pa.int64(),
    "padded": pa.string(),
    "q": pa.float64(),
}


def test_a_copy_of_text_keeps_every_value(tmp_path):
    source = write_rows(tmp_path / "t.csv", LATE)
    table = pq.read_table(copied(source, tmp_path / "t.parquet", "FORMAT parquet"))
    assert dict(zip(table.column_names, table.schema.types, strict=True)) == TYPES
    for name, kind in TYPES.items():
        if kind == pa.string():
            assert table[name].to_pylist() == LATE[name]
    assert table["p"].to_pylist() == [float(text) for text in LATE["p"]]
    assert table["whole"].to_pylist() == [int(text) for text in LATE["whole"]]
    assert table["q"].to_pylist()[-1] == 0.245
    lines = copied(source, tmp_path / "again.csv", "FORMAT csv, HEADER").read_text().splitlines()
    assert [line.rpartition(",")[0] for line in lines] == source.read_text().splitlines()
    last = json.loads(copied(source, tmp_path / "t.jsonl", "FORMAT json").read_text().splitlines()[-1])
    assert last == {name: LATE[name][-1] for name in LATE} | {"p": 0.49, "flag": False, "whole": -12, "q": 0.245}


def test_a_copy_of_json_keeps_late_keys_and_nested_values(tmp_path):
    source = tmp_path / "t.jsonl"
    source.write_text('{"p": 0, "o": {"a": [1, 2.50]}}\n' * 21_000 + '{"p": 0.49, "o": null, "new": "x\\"y"}\n')
    lines = copied(source, tmp_path / "again.jsonl", "FORMAT json").read_text().splitlines()
    assert json.loads(lines[-1]) == {"p": 0.49, "o": None, "new": 'x"y', "q": 0.245}
    first = json.loads(lines[0])
    assert (first["p"], first["new"], json.loads(first["o"]) if isinstance(first["o"], str) else first["o"]) == (
        0,
        None,
        {"a": [1, 2.5]},
    )


def test_a_copy_of_columns_that_differ_by_case_is_refused(tmp_path):
    source = write_rows(tmp_path / "t.csv", CASES)
    with pytest.raises(TableError, match=r"columns 'P' and 'p' differ only in the case of their letters.* rename one"):
        copied(source, tmp_path / "again.csv", "FORMAT csv, HEADER")


def test_the_command_writes_what_was_there(tmp_path):
    past = write_rows(tmp_path / "past.csv", {"y": [0, 1] * 50, "p": [0.25, 0.75] * 50})
    model = tmp_path / "m.json"
    assert call("recalibrate", "fit", past, "--method", "constant", "--out", model).exit_code == 0
    source = write_rows(tmp_path / "t.csv", {"p": LATE["p"], "y": LATE["p"]})
    for suffix in ("parquet", "jsonl", "csv"):
        out = tmp_path / f"out.{suffix}"
        assert call("recalibrate", "apply", model, source, "--y-prob", "p", "--out", out).exit_code == 0
        with open_table(out) as table:
            found = read_columns(table, ["p", "y", "recalibrated"], numbers=["p", "y", "recalibrated"])
        assert found["p"].tolist() == found["y"].tolist() == [float(text) for text in LATE["p"]]
        assert set(found["recalibrated"].tolist()) == {0.5}
