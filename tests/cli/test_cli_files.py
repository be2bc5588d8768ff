"""Several files as one data set: the same answers however the rows are split, and errors that name file and row."""

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from cli_cases import RUNS, answer, call, filled, write_files
from hypothesis import given, settings
from hypothesis import strategies as st
from table_cases import FORMATS, predictions, write

import calibrant

COLUMNS = predictions(40)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("split")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("files"))


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


@pytest.mark.parametrize("run", [run for run in RUNS if run not in ("compare", "watch")])
def test_every_command_takes_several_files_and_a_pattern(run, files, tmp_path):
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
def test_a_bad_row_is_named_by_its_file_and_its_place_there(kind, scanned, files, tmp_path):
    options = ("--memory-limit", "1GB") if scanned else ()
    for bad, file, row in ((3, 0, 4), (20, 1, 1), (21, 2, 1), (39, 2, 19))[scanned::2]:
        columns = {**COLUMNS, "p": np.where(np.arange(40) == bad, 1.5, COLUMNS["p"])}
        names = split(columns, [20, 21], tmp_path, kind)
        said = call("measure", *names, "--y-prob", "p", *options)
        assert said.exit_code == 2
        assert f"data row {row} of {names[file]} (counted from 1" in said.stderr, said.stderr
        if scanned:
            continue
        applied = call("recalibrate", "apply", files / "m.json", *names, "--out", tmp_path / "out.csv")
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


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("first", [5, 3000])
def test_rows_that_are_left_out_leave_the_others_in_their_order(first, kind, tmp_path):
    rng = np.random.default_rng(1)
    count = 6000
    columns = {"y": rng.integers(0, 2, count), "p": rng.random(count).round(4), "id": np.arange(count)}
    forecasts = pd.array(columns["p"], dtype="Float64")
    forecasts[[2, 700, 5000]] = pd.NA
    files = []
    for number, part in enumerate((slice(first), slice(first, None))):
        frame = pd.DataFrame({**{name: values[part] for name, values in columns.items()}, "p": forecasts[part]})
        files.append(tmp_path / f"part{number}.{kind}")
        if kind == "csv":
            frame.to_csv(files[-1], index=False)
        elif kind == "jsonl":
            frame.to_json(files[-1], orient="records", lines=True)
        else:
            frame.to_parquet(files[-1])
    model, out = tmp_path / "m.json", tmp_path / "out.csv"
    model.write_text(calibrant.PlattRecalibrator().fit(columns["p"], columns["y"]).to_json())
    applied = call("recalibrate", "apply", model, *files, "--y-prob", "p", "--drop-missing", "--out", out)
    assert applied.exit_code == 0, applied.stderr
    assert pd.read_csv(out)["id"].tolist() == [place for place in range(count) if place not in (2, 700, 5000)]
    frame = pd.read_csv(out)[["y", "p", "id"]]
    frame.loc[first + 10, "p"] = 1.5  # the rows before it that were left out are rows of the file
    row = int(frame.loc[first + 10, "id"])
    wrong = pd.DataFrame({**columns, "p": forecasts})
    wrong.loc[row, "p"] = 1.5
    again = [tmp_path / "one.csv", tmp_path / "two.csv"]
    wrong[:first].to_csv(again[0], index=False)
    wrong[first:].to_csv(again[1], index=False)
    for options in ((), ("--memory-limit", "1GB")):
        said = call("measure", *again, "--y-true", "y", "--y-prob", "p", "--drop-missing", *options)
        assert said.exit_code == 2
        assert f"data row {row - first + 1} of {again[1]}" in said.stderr


ASKED = ("--y-true", "y", "--y-prob", "p")
WRITING = {
    "fit": ("recalibrate", "fit", "{read}", *ASKED, "--out", "{written}"),
    "apply": ("recalibrate", "apply", "{model}", "{read}", "--y-prob", "p", "--drop-missing", "--out", "{written}"),
    "report": ("report", "{read}", *ASKED, "--format", "md", "--out", "{written}"),
    "validate": ("validate", "{read}", *ASKED, "--format", "csv", "--out", "{written}"),
    "watch": ("watch", "{read}", *ASKED, "--max-error", "0.5", "--openmetrics", "{written}"),
    "state": ("watch", "{read}", *ASKED, "--max-error", "0.5", "--state", "{written}"),
}


@pytest.fixture
def inputs(tmp_path):
    """A folder with two files that are read, one of them under a second name, and a model."""
    folder = tmp_path / "read"
    folder.mkdir()
    split(COLUMNS, [20], folder, "csv")
    (folder / "part1.csv").rename(folder / "part1.json")  # a name that every command may write
    (folder / "part0.csv").rename(folder / "part0.json")
    (tmp_path / "link.json").symlink_to(folder / "part1.json")
    (tmp_path / "hard.json").hardlink_to(folder / "part1.json")
    (tmp_path / "m.json").write_text(calibrant.PlattRecalibrator().fit(COLUMNS["p"], COLUMNS["y"]).to_json())
    return tmp_path


@pytest.mark.parametrize("written", ["read/part1.json", "read/../read/part1.json", "link.json", "hard.json"])
@pytest.mark.parametrize("read", ["read/part1.json", "read/part*.json", "read", "link.json"])
@pytest.mark.parametrize("run", WRITING)
def test_what_is_read_is_not_written_over_whatever_it_is_called(run, read, written, inputs, monkeypatch):
    monkeypatch.chdir(inputs)
    before = {path: path.read_bytes() for path in inputs.rglob("*.json")}
    said = call(*(part.format(read=read, model="m.json", written=written) for part in WRITING[run]))
    assert (said.exit_code, said.stdout) == (2, "")
    option = WRITING[run][-2]
    assert said.stderr == f"Error: {option} {written} is one of the files that are read; write to another one\n"
    assert {path: path.read_bytes() for path in inputs.rglob("*.json")} == before


def test_the_model_that_is_applied_is_not_written_over(inputs):
    model = inputs / "m.json"
    before = model.read_bytes()
    said = call("recalibrate", "apply", model, inputs / "read" / "part0.json", "--y-prob", "p", "--out", model)
    assert (said.exit_code, "m.json is one of the files that are read" in said.stderr) == (2, True)
    assert model.read_bytes() == before


def test_the_file_behind_standard_input_is_not_written_over(inputs):
    file = inputs / "read" / "part0.json"
    before = file.read_bytes()
    line = [sys.executable, "-m", "calibrant", "recalibrate", "fit", "-", *ASKED, "--out", str(file)]
    with file.open("rb") as stream:
        said = subprocess.run(line, stdin=stream, capture_output=True, text=True, check=False)
    assert (said.returncode, "is one of the files that are read" in said.stderr) == (2, True)
    assert file.read_bytes() == before


def test_a_state_and_its_numbers_are_two_files(inputs):
    file, one = inputs / "read" / "part0.json", inputs / "one"
    both = ("--format", "csv", "--state", one, "--openmetrics", inputs / "read" / ".." / "one")
    said = call("watch", file, *ASKED, "--max-error", "0.5", *both)
    assert (said.exit_code, "--state and --openmetrics name one file" in said.stderr) == (2, True)
    assert not one.exists()


def test_other_files_are_written_over_and_devices_written_to(inputs):
    file, out = inputs / "read" / "part0.json", inputs / "out.json"
    out.write_text("what was there before")
    for target in (out, "/dev/null"):
        assert call("recalibrate", "fit", file, "--format", "csv", *ASKED, "--out", target, "-q").exit_code == 0
    assert json.loads(out.read_text())["type"]


def test_a_link_is_the_same_file(tmp_path):
    one, _ = split(COLUMNS, [20], tmp_path, "csv")
    link = tmp_path / "link.csv"
    link.symlink_to(one)
    assert "was named twice" in call("measure", one, link).stderr


def test_the_forecasts_of_a_model_are_never_taken_for_outcomes(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(400)
    two = write({"a": p, "b": p**1.1}, tmp_path / "two.csv", "csv")
    for command in (("compare",), ("report", "--out", str(tmp_path / "r.md"))):
        said = call(command[0], two, "--y-prob", "a", "--y-prob", "b", "--max-error", "0.5", *command[1:])
        assert (said.exit_code, "which column holds the outcomes?" in said.stderr) == (2, True)
        three = write({"y": (rng.random(400) < p) * 1, "a": p, "b": p}, tmp_path / "three.csv", "csv")
        said = call(
            command[0], three, "--y-true", "y", "--y-prob", "a", "--y-prob", "y", "--max-error", "0.5", *command[1:]
        )
        assert (said.exit_code, "is named for outcomes and for forecasts both" in said.stderr) == (2, True)
        said = call(command[0], three, "--y-true", "y", "--y-prob", "a", "--y-prob", "a", *command[1:])
        assert (said.exit_code, "was named twice" in said.stderr) == (2, True)
        found = write({"p": p, "observed": p, "y": (p < 0.5) * 1}, tmp_path / "four.csv", "csv")
        said = call(command[0], found, "--y-prob", "p", "--y-prob", "observed", *command[1:])
        assert "outcomes: column 'y'" in said.stderr


def test_notes_on_models_and_groups_are_shown(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = (rng.random(2000) < p) * 1
    group = np.where(np.arange(2000) < 3, "few", "many")
    file = write({"y": y, "hard": (p > 0.5) * 1, "other": 1 - p, "p": p, "g": group}, tmp_path / "t.csv", "csv")
    for options in ((), ("--verbose",)):
        said = call(
            "compare", file, "--y-true", "y", "--y-prob", "hard", "--y-prob", "other", "--max-error", "0.05", *options
        )
        assert "Note on hard: every forecast is exactly 0 or 1" in said.stdout
        assert "Note on other: events are rarer where forecasts are higher" in said.stdout
        tested = ("--y-true", "y", "--y-prob", "hard", "--by", "g", "--method", "asymptotic")
        said = call("test", file, *tested, *options)
        assert "Note on few: " in said.stdout or "notes on these numbers: --verbose" in said.stdout
    assert (
        "Next: see to the note first"
        in call("compare", file, "--y-true", "y", "--y-prob", "hard", "--y-prob", "other", "--max-error", "0.05").stdout
    )


def test_a_caution_without_another_limit_asks_for_rows_and_many_are_counted(tmp_path):
    p = np.tile([0.01, 0.02], 50)
    file = write({"y": np.zeros(100), "p": p, "g": np.arange(100) % 5}, tmp_path / "t.csv", "csv")
    alone = call("certify", file, "--y-true", "y", "--y-prob", "p", "--max-error", "0.2")
    assert "Caution: None of these rows is an event" in alone.stdout
    assert "name the limit" not in alone.stdout
    groups = call("certify", file, "--y-true", "y", "--y-prob", "p", "--max-error", "0.2", "--by", "g")
    assert groups.stdout.count("Caution: ") == 2
    assert "There are cautions on 3 more groups: --verbose." in groups.stdout


def test_advice_on_models_follows_their_verdicts(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    file = write({"y": (rng.random(300) < p) * 1, "a": p, "b": p**0.9}, tmp_path / "t.csv", "csv")
    named = (file, "--y-true", "y", "--y-prob", "a", "--y-prob", "b", "--max-error")
    for limit, code, words in (("0.2", 0, "calibrant decide says"), ("0.05", 3, "judge more fresh rows")):
        said = call("compare", *named, limit)
        assert (said.exit_code, f"Next: {words}" in said.stdout) == (code, True)
