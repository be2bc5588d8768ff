"""The command line as a shell meets it: every command, format and exit code, and what goes to which stream."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import pytest
from click.testing import CliRunner
from tables import FORMATS, predictions, write

import calibrant
from calibrant.cli import COMMANDS, main, outputs

SOURCE = str(Path(calibrant.__file__).parents[1])


def call(*arguments, stdin=None, **options):
    return CliRunner(**options).invoke(main, [str(argument) for argument in arguments], input=stdin)


def answer(*arguments, stdin=None, exit_code=0):
    """Run a command with --json and return the document, after checking its envelope."""
    found = call(*arguments, "--json", stdin=stdin)
    assert found.exit_code == exit_code, found.output
    document = json.loads(found.stdout)
    assert document["schema"] == "calibrant/1"
    assert document["version"] == calibrant.__version__
    assert document["exit_code"] == exit_code
    return document


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Predictions in every format, a model fitted to them, and two clearly different forecasters of many rows."""
    folder = tmp_path_factory.mktemp("files")
    for kind in FORMATS:
        write(predictions(), folder / f"t.{kind}", kind)
    large = predictions(4000, seed=1)
    write({"y": large["y"], "good": large["p"], "bad": np.sqrt(large["p"])}, folder / "large.csv", "csv")
    labels = {"label": np.where(large["y"] == 1, "yes", "no"), "p": large["p"]}
    write({name: values[:200] for name, values in labels.items()}, folder / "labels.csv", "csv")
    assert call("recalibrate", "fit", folder / "t.csv", "--y-prob", "worse", "--out", folder / "m.json").exit_code == 0
    return folder


RUNS = {
    "measure": ("measure", "{file}"),
    "measure by": ("measure", "{file}", "--by", "ward", "--weight", "w"),
    "certify": ("certify", "{file}", "--max-error", "0.2"),
    "certify by": ("certify", "{file}", "--max-error", "0.4", "--by", "ward"),
    "test": ("test", "{file}", "--resamples", "99"),
    "test by": ("test", "{file}", "--test", "spiegelhalter", "--by", "ward"),
    "decide": ("decide", "{file}", "--threshold", "0.3", "--threshold", "0.5"),
    "decide by": ("decide", "{file}", "--cost-false-positive", "1", "--cost-false-negative", "4", "--by", "ward"),
    "compare": ("compare", "{file}", "--y-prob", "p", "--y-prob", "worse"),
    "plan": ("plan", "{file}", "--max-error", "0.05"),
    "recalibrate fit": ("recalibrate", "fit", "{file}", "--method", "guarded", "--out", "{out}/model.json"),
    "recalibrate apply": ("recalibrate", "apply", "{model}", "{file}", "--out", "{out}/repaired.csv"),
    "recalibrate choose": ("recalibrate", "choose", "{file}", "--parts", "2"),
}


def filled(run, **places):
    return [part.format(**places) for part in RUNS[run]]


@pytest.mark.parametrize("run", RUNS)
def test_every_command_says_the_same_of_every_format_and_of_standard_input(run, files, tmp_path):
    def found(file, **options):
        arguments = filled(run, file=file, out=tmp_path, model=files / "m.json")
        document = answer(*arguments, **options)
        document.pop("input", None)
        for model in document.get("models", ()):
            del model["input"]
        return document

    expected = found(files / "t.csv")
    kinds = FORMATS if run in ("measure", "certify", "recalibrate apply") else ("parquet", "feather", "npz", "jsonl")
    for kind in kinds:
        assert found(files / f"t.{kind}") == expected, kind
    for kind in ("csv", "parquet"):
        assert found("-", stdin=(files / f"t.{kind}").read_bytes()) == expected
    tsv = [*filled(run, file="-", out=tmp_path, model=files / "m.json"), "--format", "tsv"]
    assert answer(*tsv, stdin=(files / "t.tsv").read_bytes())["command"] == expected["command"]


@pytest.mark.parametrize("run", RUNS)
def test_sentences_go_to_standard_output_remarks_to_standard_error_and_quiet_is_quiet(run, files, tmp_path):
    arguments = filled(run, file=files / "t.csv", out=tmp_path, model=files / "m.json")
    found = call(*arguments)
    assert found.exit_code == 0
    assert len(found.stdout) > 50
    assert "\x1b" not in found.output
    assert not found.stdout.startswith("{")
    quiet = call(*arguments, "--quiet")
    assert (quiet.exit_code, quiet.output) == (0, "")


def test_numbers_are_those_of_the_library(files):
    columns = predictions()
    y, p, w = columns["y"], columns["p"], columns["w"]
    file = files / "t.csv"

    def same(document, result):
        assert {"schema": "calibrant/1", **document} == json.loads(result.to_json())

    same(answer("measure", file, "--weight", "w")["result"], calibrant.measure(y, p, sample_weight=w))
    same(
        answer("certify", file, "--max-error", 0.2, "--measure", "smooth", "--confidence-level", 0.9)["result"],
        calibrant.certify(y, p, max_error=0.2, measure="smooth", confidence_level=0.9),
    )
    same(
        answer("certify", file, "--max-error", 0.4, "--by", "ward")["result"],
        calibrant.certify(y, p, max_error=0.4, by=columns["ward"]),
    )
    same(answer("test", file, "--seed", 3)["result"], calibrant.calibration_test(y, p, rng=3))
    same(answer("plan", file, "--max-error", 0.1)["result"], calibrant.rows_needed(0.1, y_prob=p))
    decided = answer("decide", file, "--threshold", 0.3)["result"]["decisions"][0]
    limit = calibrant.confidence_interval(y, p, alternative="less")
    same(decided["risk"], calibrant.decision_risk(y, p, threshold=0.3))
    same(decided["gap"], calibrant.risk_gap(y, p, threshold=0.3))
    same(decided["best_threshold"], calibrant.best_threshold(y, p, threshold=0.3))
    same(decided["guarantee"], calibrant.decision_guarantee(limit, 0.3))
    choice = answer("recalibrate", "choose", file, "--parts", 3)["result"]
    same(choice, calibrant.compare_recalibrators(p, y, cv=3, rng=0))


def test_groups_are_measured_one_by_one_and_limits_of_groups_hold_together(files):
    columns = predictions()
    document = answer("measure", files / "t.csv", "--by", "ward")
    assert [each["group"] for each in document["groups"]] == ["north", "south", "west"]
    north = columns["ward"] == "north"
    assert document["groups"][0]["result"]["cutoff"] == pytest.approx(
        calibrant.cutoff_calibration_error(columns["y"][north], columns["p"][north])
    )
    decided = answer("decide", files / "t.csv", "--threshold", 0.3, "--by", "ward")["groups"]
    assert decided[0]["result"]["guarantee"]["confidence_level"] == pytest.approx(1 - 0.05 / 3)


# --- Exit codes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "exit_code", "word"),
    [
        (("certify", "--y-prob", "good", "--max-error", "0.05"), 0, "Certified: "),
        (("certify", "--y-prob", "bad", "--max-error", "0.05"), 1, "Refuted: "),
        (("certify", "--y-prob", "good", "--max-error", "0.015"), 1, "Undecided: "),
        (("test", "--y-prob", "good", "--resamples", "199"), 0, "Not rejected: "),
        (("test", "--y-prob", "bad", "--resamples", "199"), 1, "Rejected: "),
        (("test", "--y-prob", "bad", "--test", "spiegelhalter", "--level", "0.01"), 1, "at the 1% level"),
        (("measure", "--y-prob", "bad"), 0, "4,000 rows"),
        (("measure", "--y-prob", "bad", "--max-error", "0.05"), 1, "Too large: "),
        (("measure", "--y-prob", "good", "--max-error", "0.05"), 0, "Small enough: "),
        (("compare", "--y-prob", "bad", "--y-prob", "good", "--max-error", "0.05"), 0, "Certified: good, "),
        (("compare", "--y-prob", "bad", "--y-prob", "good", "--max-error", "0.01"), 1, "None of the 2 models"),
        (("compare", "--y-prob", "bad", "--y-prob", "good"), 0, "good is better calibrated"),
    ],
)
def test_the_exit_code_is_the_verdict_and_the_message_says_which(arguments, exit_code, word, files):
    command, *options = arguments
    found = call(command, files / "large.csv", "--y-true", "y", *options)
    assert found.exit_code == exit_code
    assert word in found.stdout
    answer(command, files / "large.csv", "--y-true", "y", *options, exit_code=exit_code)


def test_a_group_that_is_worse_decides(tmp_path):
    good, bad = predictions(3000, seed=3), predictions(3000, seed=4)
    columns = {
        "y": np.concatenate([good["y"], bad["y"]]),
        "p": np.concatenate([good["p"], np.sqrt(bad["p"])]),
        "model": np.repeat(["new", "old"], 3000),
    }
    file = write(columns, tmp_path / "t.csv", "csv")
    found = call("certify", file, "--max-error", "0.05", "--by", "model")
    assert (found.exit_code, "above 0.05 in old" in found.stdout) == (1, True)
    found = call("test", file, "--by", "model", "--resamples", "199")
    assert found.exit_code == 1
    assert re.search(r"Rejected: .* in old, at the 5% level for all 2 groups of 'model' together", found.stdout)
    found = call("measure", file, "--max-error", "0.1", "--by", "model")
    assert (found.exit_code, "of old is above 0.1" in found.stdout) == (1, True)


def test_verdicts_of_several_models_hold_together(files):
    columns = ("--y-true", "y", "--y-prob", "good", "--y-prob", "bad")
    document = answer("compare", files / "large.csv", *columns, "--max-error", 0.05)
    assert document["chosen"] == "good"
    names = [model["name"] for model in document["models"]]
    assert names == ["good", "bad"]
    for model in document["models"]:
        assert model["certificate"]["confidence_level"] == pytest.approx(0.975)
        assert model["interval"]["confidence_level"] == pytest.approx(0.975)
    good, bad = (model["interval"] for model in document["models"])
    (difference,) = document["differences"]
    assert difference["lower"] == good["lower"] - bad["upper"]
    assert difference["upper"] == good["upper"] - bad["lower"]
    assert difference["estimate"] == good["estimate"] - bad["estimate"]


def test_models_in_several_files_are_named_after_them(files, tmp_path):
    other = write(predictions(seed=5), tmp_path / "march.parquet", "parquet")
    found = answer("compare", files / "t.csv", other, "--y-true", "y", "--y-prob", "p", "--y-prob", "worse")
    assert [model["name"].split("/")[-1] for model in found["models"]] == [
        "t.csv p",
        "t.csv worse",
        "march.parquet p",
        "march.parquet worse",
    ]
    assert len(found["differences"]) == 6
    alone = answer("compare", files / "t.csv", other)
    assert [Path(model["name"]).name for model in alone["models"]] == ["t.csv", "march.parquet"]


# --- Recalibration ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method", ["isotonic", "platt", "platt-logit", "modified-platt", "beta", "temperature", "guarded", "constant"]
)
def test_a_fitted_map_is_written_applied_and_printed_as_sql(method, tmp_path):
    columns = predictions()
    model, out = tmp_path / "model.json", tmp_path / "repaired.parquet"
    inside = write({"y": columns["y"], "p": columns["p"].clip(0.01, 0.99)}, tmp_path / "t.csv", "csv")
    fitted = answer("recalibrate", "fit", inside, "--method", method, "--out", model)
    assert json.loads(model.read_text()) == fitted["model"]
    recalibrator = calibrant.Recalibrator.from_json(model.read_text())
    assert fitted["result"]["bound"] == recalibrator.guarantee(0.95).bound
    applied = answer("recalibrate", "apply", model, inside, "--column", "risk", "--out", out)
    assert applied["column"] == "risk"
    expected = recalibrator.predict(columns["p"].clip(0.01, 0.99))
    np.testing.assert_array_equal(duckdb.read_parquet(str(out)).fetchnumpy()["risk"], expected)
    sql = call("recalibrate", "sql", model, "--column", "p").stdout.strip()
    scored = duckdb.sql(f"SELECT {sql} AS q FROM read_csv('{inside}')").fetchnumpy()["q"]
    np.testing.assert_allclose(scored, expected, rtol=1e-12)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.json", "repaired.parquet", "t.csv"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".jsonl"])
def test_rows_are_written_with_all_their_columns(suffix, files, tmp_path):
    out = tmp_path / f"repaired{suffix}"
    out.write_text("what was there before")
    file = tmp_path / "ids.csv"
    file.write_text('id,note,score\n007,"a, b",0.5\n008,,0.25\n')
    assert call("recalibrate", "apply", files / "m.json", file, "--out", out).exit_code == 0
    again = answer("recalibrate", "apply", files / "m.json", out, "--y-prob", "score", "--column", "x", "--out", out)
    assert again["input"]["rows"] == 2
    reader = {".parquet": "read_parquet", ".jsonl": "read_json"}.get(suffix, "read_csv")
    options = "" if suffix in (".parquet", ".jsonl") else ", all_varchar=true"
    rows = duckdb.sql(f"SELECT id, note, x = recalibrated FROM {reader}('{out}'{options})").fetchall()
    assert rows == [("007", "a, b", True), ("008", None, True)]


def test_no_guarantee_is_claimed_for_weighted_rows(files, tmp_path):
    arguments = ("recalibrate", "fit", files / "t.csv", "--weight", "w", "--out", tmp_path / "m.json")
    assert "No guarantee covers weighted rows" in call(*arguments).stdout
    assert answer(*arguments)["result"] is None


def test_a_file_is_written_whole_or_not_at_all(files, tmp_path, monkeypatch):
    out = tmp_path / "m.json"
    out.write_text("before")
    out.chmod(0o640)
    assert call("recalibrate", "fit", files / "t.csv", "--out", out).exit_code == 0
    assert out.stat().st_mode & 0o777 == 0o640
    before = out.read_text()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    found = call("recalibrate", "fit", files / "t.csv", "--method", "platt", "--out", out)
    assert found.exit_code == 2
    assert "No space left on device" in found.stderr
    assert out.read_text() == before
    assert list(tmp_path.iterdir()) == [out]


# --- Columns ----------------------------------------------------------------------------------------------------------


def test_columns_are_guessed_when_names_leave_no_doubt_and_the_guess_is_printed(files, tmp_path):
    found = call("measure", files / "t.csv")
    assert re.search(r"outcomes: column 'y' of .*t\.csv, by its name \(--y-true chooses\)\n", found.stderr)
    assert re.search(r"forecasts: column 'p' of .*t\.csv, by its name \(--y-prob chooses\)\n", found.stderr)
    assert call("measure", files / "t.csv", "--y-true", "y", "--y-prob", "p").stderr == ""
    two = write({"Label": [0, 1], "model_7": [0.25, 0.75]}, tmp_path / "two.csv", "csv")
    assert "column 'model_7' of" in call("measure", two).stderr
    assert "the only one left (--y-prob chooses)" in call("measure", two).stderr


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (
            {"y": [0, 1], "p": [0.2, 0.8], "score": [1, 2]},
            (),
            r"forecasts\? \('p' and 'score' all may be.\) Name it with",
        ),
        (
            {"a": [0, 1], "b": [0.2, 0.8]},
            (),
            r"outcomes\? \(no name says so.\) Name it with --y-true; the columns are 'a'",
        ),
        ({"y": [0, 1], "p": [0.2, 0.8]}, ("--by", "p"), r"forecasts\? \(no name says so.\)"),
        ({"y": [0, 1], "label": [0, 1], "p": [0.2, 0.8]}, (), r"outcomes\? \('y' and 'label' all may be.\)"),
    ],
)
def test_columns_are_not_guessed_when_in_doubt(columns, options, message, tmp_path):
    found = call("measure", write(columns, tmp_path / "t.csv", "csv"), *options)
    assert found.exit_code == 2
    assert re.search(message, found.stderr)


@pytest.mark.parametrize(
    ("outcomes", "label", "rate"),
    [
        (["yes", "no", "no", "no"], "yes", 0.25),
        (["yes", "no", "no", "no"], "no", 0.75),
        ([1, 2, 2, 2], "2", 0.75),
        ([True, False, False, False], "true", 0.25),
        ([True, False, False, False], "False", 0.75),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_the_event_is_named_as_the_file_writes_it(outcomes, label, rate, kind, tmp_path):
    file = write({"y": outcomes, "p": [0.2, 0.4, 0.6, 0.8]}, tmp_path / f"t.{kind}", kind)
    document = answer("measure", file, "--pos-label", label)
    assert document["result"]["mean_outcome"] == rate
    assert document["input"]["pos_label"] == label


# --- Bad input --------------------------------------------------------------------------------------------------------

BAD_CELLS = {
    "above": (
        "y,p\n1,0.5\n0,1.2\n",
        r"column 'p', data row 2 \(counted from 1, without the header\), is 1.2, outside \[",
    ),
    "percent": (
        "y,p\n1,50\n0,12\n",
        r"column 'p', data row 1 .*, is 50, .* these look like percentages: divide by 100",
    ),
    "logit": (
        "y,p\n1,0.5\n0,-2\n",
        r"column 'p', data row 2 .* look like logits or other scores: apply a sigmoid first$",
    ),
    "rounding": ("y,p\n1,1.00000001\n", r"is 1.00000001, .* bring it back into \[0, 1\]$"),
    "nan": ("y,p\n1,0.5\n0,nan\n", r"column 'p', data row 2 .*, is missing"),
    "infinite": ("y,p\n1,inf\n0,0.5\n", r"column 'p', data row 1 .*, is inf; every value must be finite"),
    "null": ("y,p\n1,0.5\n,0.5\n", r"column 'y' has no value in data row 2"),
    "outcome": ("y,p\n1,0.5\n3,0.5\n", r"column 'y', data row 2 .*, is 3, .* pass --pos-label with the one"),
    "label": (
        "y,p\nyes,0.5\nno,0.5\n",
        r"'yes', a label and not a number \(labels: 'no', 'yes'\); pass --pos-label with",
    ),
    "swapped": ("y,p\n0.5,1\n0.7,0\n", r"the columns look swapped: exchange --y-true and --y-prob$"),
    "weight": ("y,p,w\n1,0.5,1\n1,0.5,-1\n", r"column 'w', data row 2 .*, is -1; weights must not be negative"),
    "weights": ("y,p,w\n1,0.5,0\n1,0.5,0\n", r"column 'w' is zero everywhere"),
    "text": ("y,p\n1,0.5\n1,high\n", r"column 'p' is 'high' in data row 2 .* text where a number is needed"),
    "no rows": ("y,p\n", r"has no rows, only column names"),
    "empty": ("", r"is empty$"),
}


@pytest.mark.parametrize("what", BAD_CELLS)
def test_a_bad_cell_is_named_by_column_and_row(what, tmp_path):
    text, message = BAD_CELLS[what]
    file = tmp_path / "t.csv"
    file.write_text(text)
    weight = ("--weight", "w") if ",w" in text else ()
    found = call("certify", file, "--y-true", "y", "--y-prob", "p", "--max-error", "0.1", *weight)
    assert found.exit_code == 2
    assert found.stdout == ""
    assert re.fullmatch(rf"Error: {re.escape(str(file))}.*\n", found.stderr)
    assert re.search(message, found.stderr.strip())


def bad_calls(files):
    table, model = files / "t.csv", files / "m.json"
    return [
        (["measure", "nothere.csv"], r"nothere.csv does not exist"),
        (["measure", "https://example.org/t.csv"], r"calibrant reads local files only: download it first"),
        (["measure", table, "--y-true", "outcom"], r"no column 'outcom'"),
        (["measure", table, "--y-prob", "wors"], r"no column 'wors'; did you mean 'worse'\?"),
        (["measure", table, "--by", "wards"], r"no column 'wards'; did you mean 'ward'\?"),
        (
            ["measure", files / "labels.csv", "--pos-label", "maybe"],
            r"--pos-label is 'maybe', which column 'label' does",
        ),
        (["measure", table, "--y-true", "ward", "--pos-label", "west"], r"write a column that says whether the event"),
        (["measure", table, "--memory-limit", "some"], r"memory_limit is 'some'"),
        (["measure"], r"Missing argument 'FILE'"),
        (["measure", table, "--format", "excel"], r"'excel' is not one of 'csv'"),
        (["certify", table], r"Missing option '--max-error'"),
        (["certify", table, "--max-error", "5"], r"5.0 is not in the range"),
        (
            ["certify", table, "--max-error", "0.1", "--method", "exact", "--measure", "smooth"],
            r"--method exact covers",
        ),
        (
            ["certify", table, "--max-error", "0.1", "--method", "exact", "--weight", "w"],
            r"--method exact does not cover",
        ),
        (["certify", table, "--max-error", "0.1", "--confidence-level", "95"], r"95.0 is not in the range"),
        (
            ["test", table, "--test", "spiegelhalter", "--weight", "w"],
            r"--weight does not go with --test spiegelhalter",
        ),
        (["test", table, "--method", "exact", "--weight", "w"], r"exact"),
        (["decide", table], r"say what is at stake: --threshold 0.2, or both"),
        (["decide", table, "--cost-false-positive", "1"], r"say what is at stake"),
        (["decide", table, "--threshold", "0.1", "--cost-false-negative", "1"], r"either thresholds or costs"),
        (["decide", table, "--cost-false-positive", "0", "--cost-false-negative", "0"], r"both costs are 0"),
        (["compare", table], r"there is one model only"),
        (["compare", table, table], r"was named twice"),
        (["plan", "--max-error", "0.1"], r"name either a FILE of forecasts"),
        (["plan", table, "--max-error", "0.1", "--brier", "0.2"], r"name either a FILE of forecasts"),
        (
            ["plan", "--max-error", "0.1", "--brier", "0.2", "--method", "exact", "--confidence-level", "0.6"],
            r"at least",
        ),
        (["recalibrate", "fit", table], r"Missing option '--out'"),
        (["recalibrate", "fit", table, "--out", "no/such/folder/m.json"], r"cannot be written: No such file"),
        (["recalibrate", "fit", table, "--method", "magic", "--out", "m"], r"'magic' is not one of"),
        (["recalibrate", "apply", table, table, "--out", "o.csv"], r"is not a model that recalibrate fit wrote"),
        (
            ["recalibrate", "apply", files / "t.parquet", table, "--out", "o.csv"],
            r"is not a model that recalibrate fit",
        ),
        (["recalibrate", "apply", model, table, "--out", "o.xlsx"], r"o.xlsx ends in '.xlsx'; write one of .csv"),
        (["recalibrate", "apply", model, table, "--column", "W", "--out", "o.csv"], r"has a column 'W' already"),
        (["recalibrate", "sql", model, "--column", ""], r"column must be the name of a column"),
        (["nonsense"], r"No such command 'nonsense'"),
        (["measure", table, "--nonsense"], r"No such option"),
    ]


def test_bad_input_is_exit_code_2_and_one_message(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments, message in bad_calls(files):
        found = call(*arguments)
        assert found.exit_code == 2, arguments
        assert found.stdout == "", arguments
        last = found.stderr.strip().splitlines()[-1]
        assert last.startswith("Error: "), arguments
        assert re.search(message, last), (arguments, last)
        assert "Traceback" not in found.stderr
        assert list(tmp_path.iterdir()) == [], arguments


def test_too_many_groups_are_refused(tmp_path):
    rows = 1001
    file = write({"y": [1] * rows, "p": [0.5] * rows, "id": list(range(rows))}, tmp_path / "t.csv", "csv")
    found = call("measure", file, "--by", "id")
    assert found.exit_code == 2
    assert "column 'id' has 1,001 different values, more than the 1,000 groups" in found.stderr


def test_debug_shows_where_an_error_comes_from(files):
    found = call("measure", files / "t.csv", "--y-true", "ward", "--debug")
    assert found.exit_code == 2
    assert "Error: " in found.stderr
    assert "Traceback (most recent call last)" in call("measure", "nothere.csv", "--debug").stderr


def test_an_unexpected_error_is_no_verdict(files, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("the moon is in the wrong place")

    monkeypatch.setattr(calibrant, "certify", fail)
    found = call("certify", files / "t.csv", "--max-error", "0.1")
    assert found.exit_code == 2
    assert "unexpected RuntimeError: the moon is in the wrong place; --debug shows where" in found.stderr


def test_ctrl_c_is_no_verdict(files, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(calibrant, "certify", interrupt)
    found = call("certify", files / "t.csv", "--max-error", "0.1")
    assert (found.exit_code, found.stdout) == (130, "")
    assert "Traceback" not in found.stderr


def test_standard_input_that_is_a_terminal_is_not_waited_for(monkeypatch):
    class Terminal:
        def isatty(self):
            return True

    monkeypatch.setattr("calibrant.cli.inputs.sys.stdin", Terminal())
    from calibrant.cli.inputs import Source, read_rows

    with pytest.raises(outputs.BadInput, match="nothing is piped into it; name a file"):
        read_rows(Source("-"))


# --- How it looks -----------------------------------------------------------------------------------------------------


def test_verdicts_are_coloured_on_a_terminal_only_and_never_against_the_users_wish(files):
    arguments = ["certify", str(files / "large.csv"), "--y-true", "y", "--y-prob", "good", "--max-error", "0.05"]
    coloured = CliRunner().invoke(main, arguments, color=True)
    assert coloured.stdout.startswith("\x1b[32m\x1b[1mCertified\x1b[0m: with 95% confidence")
    plain = CliRunner(env={"NO_COLOR": "1"}).invoke(main, arguments, color=True)
    assert "\x1b" not in plain.stdout
    table = CliRunner().invoke(main, [*arguments, "--by", "y", "--max-error", "0.001"], color=True)
    assert "  \x1b[3" in table.stdout


def test_lines_are_broken_for_a_terminal_and_tables_are_not(monkeypatch):
    text = "word " * 60 + "\n" + "  " + "cell " * 60
    assert outputs.wrapped(text) == text
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    lines = outputs.wrapped(text).split("\n")
    assert max(len(line) for line in lines[:-1]) <= 100
    assert lines[-1] == "  " + "cell " * 60


def test_a_terminal_sees_that_something_is_going_on(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with outputs.working("reading t.csv"):
        pass
    with outputs.working("reading t.csv", quiet=True):
        pass
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "command", [(), *[(name,) for name in COMMANDS], *[("recalibrate", n) for n in ("fit", "sql")]]
)
def test_help_teaches_with_examples(command):
    found = call(*command, "--help")
    assert found.exit_code == 0
    assert "\nExamples:\n" in found.stdout
    examples = found.stdout.split("\nExamples:\n")[1]
    assert "calibrant" in examples
    assert max(len(line) for line in found.stdout.splitlines()) <= 100


def test_every_example_in_the_help_is_a_command_that_parses(tmp_path, monkeypatch):
    import shlex

    import click

    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.json").write_text("{}")
    seen = 0
    for command in [
        (),
        *[(name,) for name in COMMANDS],
        *[("recalibrate", name) for name in ("fit", "choose", "apply")],
    ]:
        for line in call(*command, "--help").stdout.split("\nExamples:\n")[1].splitlines():
            words = shlex.split(line[line.index("calibrant ") :])[1:] if "calibrant " in line else []
            if not words:
                continue
            seen += 1
            context = main.make_context("calibrant", words[:1], resilient_parsing=True)
            inner, words = main.get_command(context, words[0]), words[1:]
            if isinstance(inner, click.Group):
                inner, words = inner.get_command(context, words[0]), words[1:]
            inner.make_context(inner.name, words)  # raises for an option that does not exist
    assert seen > 30


# --- As a program -----------------------------------------------------------------------------------------------------


def run(*arguments, stdin=None, **options):
    """Run the program in a process of its own, with an environment that knows nothing."""
    return subprocess.run(
        [sys.executable, "-m", "calibrant", *map(str, arguments)],
        env={"PYTHONPATH": SOURCE, "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"},
        input=stdin,
        capture_output=True,
        check=False,
        timeout=120,
        **options,
    )


def test_the_program_in_a_clean_environment(files, tmp_path):
    certified = run("certify", files / "t.parquet", "--max-error", "0.2", "--json", cwd=tmp_path)
    assert certified.returncode == 0, certified.stderr
    assert json.loads(certified.stdout)["result"]["verdict"] == "certified"
    refuted = run(
        "certify", files / "large.csv", "--y-true", "y", "--y-prob", "bad", "--max-error", "0.05", cwd=tmp_path
    )
    assert refuted.returncode == 1
    assert refuted.stdout.startswith(b"Refuted: ")
    missing = run("measure", "nothere.csv", cwd=tmp_path)
    assert missing.returncode == 2
    assert missing.stderr == b"Error: nothere.csv does not exist; look at its spelling, or at the folder you are in\n"
    piped = run("measure", "-", stdin=(files / "t.feather").read_bytes(), cwd=tmp_path)
    assert piped.returncode == 0, piped.stderr
    assert piped.stdout.startswith(b"240 rows")
    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_ends_it_quietly(files):
    code = (
        "import os, sys; os.close(0); sys.argv = ['calibrant', 'measure', sys.argv[1]]\n"
        "import runpy; runpy.run_module('calibrant', run_name='__main__')"
    )
    reading, writing = os.pipe()
    os.close(reading)
    found = subprocess.run(
        [sys.executable, "-c", code, str(files / "t.csv")],
        env={"PYTHONPATH": SOURCE},
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert found.returncode == outputs.PIPE_CLOSED
    assert b"Traceback" not in found.stderr
    assert b"BrokenPipe" not in found.stderr


def test_an_interruption_ends_it_quietly():
    process = subprocess.Popen(
        [sys.executable, "-m", "calibrant", "measure", "-", "--format", "csv"],
        env={"PYTHONPATH": SOURCE},
        stdin=subprocess.PIPE,  # into which nobody ever writes, so that reading it takes forever
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    loaded = False
    while not loaded and time.monotonic() < deadline:
        maps = Path(f"/proc/{process.pid}/maps")
        loaded = not maps.exists() or "duckdb" in maps.read_text()
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == outputs.INTERRUPTED
    assert (stdout, b"Traceback" in stderr) == (b"", False)


def test_help_loads_nothing_heavy():
    code = (
        "import sys, runpy; sys.argv = ['calibrant', *sys.argv[1:]]\n"
        "try:\n    runpy.run_module('calibrant', run_name='__main__')\n"
        "except SystemExit as end:\n    assert end.code == 0\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'numba', 'pandas', 'matplotlib', 'rich', 'duckdb', 'pyarrow'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    for arguments in (["--help"], ["certify", "--help"]):
        found = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env={"PYTHONPATH": SOURCE},
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.returncode == 0, found.stderr
        assert "Examples:" in found.stdout


def test_the_version_is_that_of_the_package():
    assert call("--version").stdout == f"calibrant, version {calibrant.__version__}\n"


def test_without_click_the_remedy_is_named_and_it_is_no_verdict():
    code = "import sys; sys.modules['click'] = None\nimport calibrant.__main__"
    found = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": SOURCE}, capture_output=True, text=True, check=False
    )
    assert found.returncode == 2
    assert found.stderr == "the command line needs click; install it with: pip install 'calibrant[cli]'\n"
