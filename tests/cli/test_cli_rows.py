"""Which rows are judged, and what of them is the event: rows without a value, and more than two labels."""

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from cli_cases import RUNS, answer, call, filled, write_files
from table_cases import predictions, write

import calibrant

BOTH = pytest.mark.parametrize("limit", [(), ("--memory-limit", "1GB")], ids=["read", "scanned"])
GONE = {"y": [3, 100, 239], "p": [3, 50], "w": [7], "ward": [0, 1]}
"""Rows that lack a value, by column."""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("files"))


def holes(folder, kind):
    """Write predictions that lack some values."""
    columns = {
        name: [None if row in GONE.get(name, ()) else value for row, value in enumerate(values.tolist())]
        for name, values in predictions().items()
    }
    path = folder / f"holes.{kind}"
    if kind == "parquet":
        pyarrow.parquet.write_table(pa.table(columns), path)
    elif kind == "nan.parquet":
        numbers = {
            name: [np.nan if value is None else float(value) for value in columns[name]] for name in ("y", "p", "w")
        }
        pyarrow.parquet.write_table(pa.table({**columns, **numbers}), path)
    elif kind == "jsonl":
        records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    else:
        rows = [
            ",".join("" if value is None else str(value) for value in row)
            for row in zip(*columns.values(), strict=True)
        ]
        words = {"y": "NA", "p": "nan"} if kind == "words.csv" else {}
        for name, rows_without in GONE.items():
            place = list(columns).index(name)
            for row in rows_without:
                cells = rows[row].split(",")
                cells[place] = words.get(name, "")
                rows[row] = ",".join(cells)
        path.write_text("\n".join([",".join(columns), *rows]) + "\n")
    return path


def kept(*names):
    """Return the predictions of rows that lack none of some columns."""
    gone = {row for name in names for row in GONE[name]}
    rows = [row for row in range(240) if row not in gone]
    return {name: values[rows] for name, values in predictions().items()}


@BOTH
@pytest.mark.parametrize("kind", ["csv", "words.csv", "jsonl", "parquet", "nan.parquet"])
def test_rows_without_a_value_are_left_out_and_counted(kind, limit, tmp_path):
    file = holes(tmp_path, kind)
    found = answer("measure", file, "--drop-missing", *limit)
    rows = kept("y", "p")
    expected = calibrant.measure(rows["y"], rows["p"])
    assert found["result"] == {key: value for key, value in json.loads(expected.to_json()).items() if key != "schema"}
    assert (found["input"]["rows"], found["input"]["left_out"]) == (236, 4)
    assert found["input"]["notes"] == [
        "4 rows left out (2 without a value of 'p', 3 without a value of 'y'): the answer is about rows like the others"
    ]
    said = call("measure", file, "--drop-missing", *limit).stdout
    assert said.splitlines()[-1] == f"Note: {found['input']['notes'][0]}."
    by = answer("certify", file, "--max-error", "0.9", "--weight", "w", "--by", "ward", "--drop-missing", *limit)
    rows = kept("y", "p", "w", "ward")
    certified = calibrant.certify(rows["y"], rows["p"], max_error=0.9, by=rows["ward"], sample_weight=rows["w"])
    assert by["result"]["upper"] == pytest.approx(list(certified.upper), rel=1e-12)
    assert by["input"]["left_out"] == 7


@BOTH
@pytest.mark.parametrize("kind", ["csv", "words.csv", "jsonl", "parquet", "nan.parquet"])
def test_without_the_option_a_missing_value_is_an_error_that_names_it(kind, limit, tmp_path):
    for options in ((), ("--pos-label", "1")):
        found = call("measure", holes(tmp_path, kind), *options, *limit)
        assert (found.exit_code, found.stdout) == (2, "")
        assert re.search(r"(no value in|missing in|is missing).*out with --drop-missing$", found.stderr.strip())


@pytest.mark.parametrize("run", [run for run in RUNS if run not in ("recalibrate apply", "watch")])
def test_every_command_leaves_rows_out(run, files, tmp_path):
    model = files / "m.json"
    document = answer(*filled(run, file=holes(tmp_path, "csv"), out=tmp_path, model=model), "--drop-missing")
    told = document["models"][0]["input"] if run == "compare" else document["input"]
    assert told["left_out"] >= 2
    whole = answer(*filled(run, file=files / "t.csv", out=tmp_path, model=model), "--drop-missing")
    told = whole["models"][0]["input"] if run == "compare" else whole["input"]
    assert (told["left_out"], told["notes"]) == (0, ["no row had to be left out"])


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_rows_left_out_are_not_copied(kind, files, tmp_path):
    out = tmp_path / "out.csv"
    found = answer("recalibrate", "apply", files / "m.json", holes(tmp_path, kind), "--drop-missing", "--out", out)
    assert (found["input"]["rows"], found["input"]["left_out"]) == (238, 2)
    copied = out.read_text().splitlines()[1:]
    assert len(copied) == 238
    assert [line.split(",")[1] for line in copied] == [str(value) for value in kept("p")["p"]]


@BOTH
def test_a_bad_row_is_counted_among_all_rows_of_its_file(limit, tmp_path):
    one, two = tmp_path / "a.csv", tmp_path / "b.csv"
    one.write_text("y,p\n,0.5\n1,0.5\n1,\n")
    two.write_text("y,p\n1,0.5\n,0.5\n0,0.5\n0,7\n")
    for _ in range(12):  # DuckDB brings rows of several files out of order only now and then
        found = call("measure", one, two, "--drop-missing", *limit)
        assert f"data row 4 of {two} (counted from 1, without the header)" in found.stderr
    two.write_text("y,p\n,0.5\n1,\n")
    found = call("measure", two, "--drop-missing", *limit)
    assert (found.exit_code, "has no row with a value in all of 'p', 'y'" in found.stderr) == (2, True)


# --- The event --------------------------------------------------------------------------------------------------------

LABELS = ["mild", "none", "severe", "none", "mild"] * 8


@pytest.mark.parametrize(
    ("kind", "limit"),
    [
        *((kind, ()) for kind in ("csv", "jsonl", "parquet", "npz")),
        *((kind, ("--memory-limit", "1GB")) for kind in ("csv", "jsonl", "arrow", "npz")),
    ],
)
@pytest.mark.parametrize(
    ("labels", "event", "text"),
    [
        (LABELS, "severe", "severe"),
        ([{"none": 2, "mild": 9, "severe": 10}[label] for label in LABELS], 10, "10"),
        ([{"none": 0.0, "mild": 1.0, "severe": 2.0}[label] for label in LABELS], 2.0, "2"),
    ],
    ids=["words", "numbers", "wide numbers"],
)
def test_one_of_several_labels_is_the_event_against_the_rest(labels, event, text, kind, limit, tmp_path):
    forecast = np.linspace(0.01, 0.99, len(labels)).round(3)
    file = write({"y": labels, "p": forecast, "g": ["a", "b"] * 20}, tmp_path / f"t.{kind}", kind)
    happened = np.array([label == event for label in labels])
    found = answer("measure", file, "--pos-label", text, *limit)
    assert found["result"]["cutoff"] == calibrant.cutoff_calibration_error(happened, forecast)
    (note,) = found["input"]["notes"]
    assert re.fullmatch(rf"column 'y' holds 3 labels \([^.]*\): '?{text}'? counts as the event, all others as .*", note)
    assert call("measure", file, "--pos-label", text, *limit).stdout.endswith(f"Note: {note}.\n")
    groups = answer("certify", file, "--pos-label", text, "--max-error", "0.9", "--by", "g", *limit)
    assert groups["input"]["notes"] == [note]
    nowhere = call("measure", file, "--pos-label", "gone", *limit)
    assert (nowhere.exit_code, "--pos-label is 'gone', which column 'y' does not" in nowhere.stderr) == (2, True)


@BOTH
def test_what_is_no_label_is_not_one_of_the_others(limit, tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("y,p\nyes,0.5\nno,0.5\nNA,0.5\nn/a,0.5\n")
    found = call("measure", file, "--pos-label", "yes", *limit)
    assert (found.exit_code, found.stderr.strip().endswith("out with --drop-missing")) == (2, True)
    assert answer("measure", file, "--pos-label", "yes", "--drop-missing", *limit)["input"]["left_out"] == 2
    # Whoever names such a text means it.
    assert answer("measure", file, "--pos-label", "NA", *limit)["result"]["mean_outcome"] == 0.25
    assert answer("measure", file, "--pos-label", "NA", "--drop-missing", *limit)["input"]["left_out"] == 0
