"""Several files as one data set: the same answers however the rows are split, and errors that name file and row."""

import re

import numpy as np
import pytest
from cli_cases import RUNS, answer, call, filled, write_files
from hypothesis import given, settings
from hypothesis import strategies as st
from table_cases import FORMATS, predictions, write

COLUMNS = predictions(40)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("split")


def split(columns, ends, folder, kind):
    """Write the rows up to each end into a file of its own."""
    files = []
    for number, (begin, end) in enumerate(zip((0, *ends), (*ends, len(columns["y"])), strict=True)):
        part = {name: values[begin:end] for name, values in columns.items()}
        files.append(write(part, folder / f"part{number}.{kind}", kind))
    return files


def found(*arguments):
    document = answer(*arguments)
    document.pop("input", None)
    return document


@settings(max_examples=25)
@given(
    cuts=st.sets(st.integers(1, 39), max_size=5),
    kind=st.sampled_from(FORMATS),
    scanned=st.booleans(),
    what=st.sampled_from(["measure", "certify", "certify by", "decide by", "test by"]),
)
def test_answers_do_not_depend_on_how_rows_are_split_into_files(cuts, kind, scanned, what, place):
    whole = write(COLUMNS, place / "whole.csv", "csv")
    parts = split(COLUMNS, sorted(cuts), place, kind)
    options = ("--memory-limit", "1GB") if scanned else ()
    certify = ("certify", "--max-error", "0.9")
    line = {
        "measure": ("measure", "--weight", "w"),
        "certify": certify,
        "certify by": (*certify, "--by", "ward"),
        "decide by": ("decide", "--threshold", "0.3", "--by", "ward"),
        "test by": ("test", "--test", "spiegelhalter", "--level", "1e-9", "--by", "ward"),
    }[what]
    assert found(*line, *parts, *options) == found(*line, whole)


@pytest.mark.parametrize("run", [run for run in RUNS if run != "compare"])
def test_every_command_takes_several_files_and_a_pattern(run, tmp_path):
    files = write_files(tmp_path)
    names = split(predictions(), [100, 101], tmp_path, "parquet")

    def asked(*parts):
        line = filled(run, file="{file}", out=tmp_path, model=files / "m.json")
        place = line.index("{file}")
        return found(*line[:place], *parts, *line[place + 1 :])

    assert asked(*names) == asked(tmp_path / "part*.parquet") == asked(files / "t.csv")


def test_the_document_names_all_files(tmp_path):
    names = [str(name) for name in split(COLUMNS, [20], tmp_path, "csv")]
    assert answer("measure", *names)["input"]["files"] == names
    planned = answer("plan", *names, "--max-error", "0.1")["input"]
    assert planned == {"files": names, "y_prob": "p", "rows": 40, "left_out": 0, "notes": []}


@pytest.mark.parametrize("scanned", [False, True])
@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "stream", "npz", "jsonl"])
def test_a_bad_row_is_named_by_its_file_and_its_place_there(kind, scanned, tmp_path):
    options = ("--memory-limit", "1GB") if scanned else ()
    for bad, file, row in ((3, 0, 4), (20, 1, 1), (21, 2, 1), (39, 2, 19)):
        columns = {**COLUMNS, "p": np.where(np.arange(40) == bad, 1.5, COLUMNS["p"])}
        names = split(columns, [20, 21], tmp_path, kind)
        said = call("measure", *names, "--y-prob", "p", *options)
        assert said.exit_code == 2
        assert f"data row {row} of {names[file]} (counted from 1" in said.stderr, said.stderr
        applied = call("recalibrate", "apply", write_files(tmp_path) / "m.json", *names, "--out", tmp_path / "out.csv")
        assert f"data row {row} of {names[file]} (counted from 1" in applied.stderr


def test_files_that_do_not_go_together_are_named(tmp_path):
    one, two = split(COLUMNS, [20], tmp_path, "csv")
    other = write({"y": [0, 1], "q": [0.5, 0.5]}, tmp_path / "other.csv", "csv")
    table = write(COLUMNS, tmp_path / "t.parquet", "parquet")
    uneven = tmp_path / "uneven.csv"
    uneven.write_text("y,p\n1,0.5\n1,0.5,7\n")
    ends = tmp_path / "ends.csv"
    ends.write_bytes(b"y,p\n1,0.5\r1,0.5\n")
    records, broken = tmp_path / "r.jsonl", tmp_path / "broken.jsonl"
    records.write_text('{"y": 1, "p": 0.5}\n')
    broken.write_text('{"y": 1, "p": 0.5}\n{"y": 1,')
    for files, message in [
        ((one, other), rf"{other} has no column 'p', as {one} does"),
        ((one, table), rf"{one} is csv and {table} is parquet; files that are read together must be alike"),
        ((one, uneven), rf"{uneven}, line 3: 3 values for 2 columns"),
        ((one, ends), rf"{ends} ends its lines in more than one way"),
        ((records, broken), rf"{broken} cannot be read as JSON"),
        ((one, two, one), rf"{one} was named twice, and its rows would count twice"),
        ((one, "-"), r'"-" reads standard input, which cannot be read together with files; name it alone'),
        ((one, tmp_path / "nothere.csv"), r"nothere\.csv does not exist"),
    ]:
        said = call("measure", *files, "--y-prob", "p")
        assert (said.exit_code, said.stdout) == (2, "")
        assert re.search(message, said.stderr), said.stderr


def test_columns_are_guessed_among_those_that_all_files_have(tmp_path):
    one = write({"y": [0, 1], "p": [0.5, 0.5], "score": [0.5, 0.5]}, tmp_path / "a.csv", "csv")
    two = write({"p": [0.25], "y": [1], "note": ["x"]}, tmp_path / "b.csv", "csv")
    assert answer("measure", one, two)["input"]["y_prob"] == "p"
    other = write({"y": [0, 1], "proba": [0.5, 0.5]}, tmp_path / "c.csv", "csv")
    said = call("measure", two, other)
    assert (said.exit_code, f"{other} has no column 'p', as {two} does" in said.stderr) == (2, True)


def test_many_files_are_not_all_listed_in_messages(tmp_path):
    files = split(COLUMNS, list(range(1, 40)), tmp_path, "csv")
    said = call("measure", *files).stderr
    assert f"column 'p' of {files[0]}, {files[1]} and 38 more files, by its name" in said
