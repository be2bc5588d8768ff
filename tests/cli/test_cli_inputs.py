"""Which columns are taken, and what is said about files, columns and options that cannot be used."""

import re
import shutil

import pytest
from cli_cases import RUNS, answer, call, filled, write_files
from table_cases import write

import calibrant
from calibrant.cli import outputs


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("files"))


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
            r"outcomes\? \(no name says so.\) Name it with --y-true, and which column holds the forecasts\? "
            r"\(no name says so.\) Name it with --y-prob; the columns are 'a', 'b'$",
        ),
        (
            {"y_test": [0, 1], "Y-Pred-Proba": [0.2, 0.8], "predicted probability": [0.2, 0.8]},
            (),
            r"forecasts\? \('Y-Pred-Proba' and 'predicted probability' all may be.\)",
        ),
        ({"y": [0, 1], "y_pred": [0, 1], "pred": [0, 1]}, (), r"forecasts\? \('y_pred' and 'pred' all may be.\)"),
        (
            {"y": [0, 1], "p": [0.2, 0.8]},
            ("--y-true", "why", "--by", "ward", "--weight", "size"),
            r"t\.csv has no columns 'why', 'size', 'ward'; its columns are 'y', 'p'$",
        ),
        (
            {"y": [0, 1], "p": [0.2, 0.8]},
            ("--by", "p"),
            r"forecasts\? \('p' was named for --by.\) Name it with --y-prob",
        ),
        (
            {"y": [0, 1], "p": [0.2, 0.8]},
            ("--by", "y"),
            r"outcomes\? \('y' was named for --by.\) Name it with --y-true",
        ),
        ({"y": [0, 1], "label": [0, 1], "p": [0.2, 0.8]}, (), r"outcomes\? \('y' and 'label' all may be.\)"),
    ],
)
def test_columns_are_not_guessed_when_in_doubt(columns, options, message, tmp_path):
    found = call("measure", write(columns, tmp_path / "t.csv", "csv"), *options)
    assert found.exit_code == 2
    assert re.search(message, found.stderr)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("report", "--format", "md"), "--features"),
        (("groups",), "--features"),
        (("certify", "--max-error", "0.1"), "--groups"),
        (("certify", "--max-error", "0.1"), "--check-clusters"),
        (("watch", "--max-error", "0.1"), "--time"),
    ],
)
def test_a_column_that_another_option_names_is_not_said_to_be_missing(command, option, tmp_path):
    file = write({"y": [0, 1], "p": [0.2, 0.8], "x": [1, 2]}, tmp_path / "t.csv", "csv")
    named = "p" if option in ("--check-clusters", "--time") else "x,p"
    found = call(*command, file, option, named)
    assert found.exit_code == 2
    assert f"which column holds the forecasts? ('p' was named for {option}.) Name it with --y-prob" in found.stderr


@pytest.mark.parametrize(
    ("columns", "outcomes", "forecasts"),
    [
        ({"id": 1, "y_test": 0, "y_pred_proba": 0.5}, "y_test", "y_pred_proba"),
        ({"Y True": 1, "Predicted Probability": 0.5, "x": 2}, "Y True", "Predicted Probability"),
        ({"label": 1, "y_pred": 1, "proba": 0.5}, "label", "proba"),
        ({"label": 1, "prediction": 1, "SCORE": 0.5}, "label", "SCORE"),
        ({"label": 1, "y_pred": 0.5, "x": 2}, "label", "y_pred"),
        ({"ground-truth": 1, "predict_proba": 0.5, "x": 2}, "ground-truth", "predict_proba"),
    ],
)
def test_names_that_people_use_are_recognised(columns, outcomes, forecasts, tmp_path):
    file = write({name: [value] for name, value in columns.items()}, tmp_path / "t.csv", "csv")
    told = answer("measure", file)["input"]
    assert (told["y_true"], told["y_prob"]) == (outcomes, forecasts)


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
        r"column 'p', data row 1 .*, is 50, .* if these are percentages, divide by 100",
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


@pytest.mark.parametrize("run", RUNS)
def test_an_empty_path_does_not_stand_for_the_folder_one_is_in(run, files, tmp_path, monkeypatch):
    shutil.copy(files / "t.csv", tmp_path / "t.csv")
    monkeypatch.chdir(tmp_path)
    found = call(*filled(run, file="", out=tmp_path, model=files / "m.json"))
    assert found.exit_code == 2, found.output
    assert "Error: FILE is an empty text; pass the path of a file" in found.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (("validate", ""), "FILE is an empty text; pass the path of a file, or of a folder of them"),
        (("report", "t.csv", ""), "FILE is an empty text; pass the path of a file, or of a folder of them"),
        (("report", "t.csv", "--out", ""), "--out is an empty text; pass the path of a file"),
        (("recalibrate", "fit", "t.csv", "--out", ""), "--out is an empty text; pass the path of a file"),
        (("recalibrate", "sql", "", "--column", "p"), "MODEL is an empty text; pass the path of a file"),
        (("watch", "t.csv", "--max-error", "0.1", "--state", ""), "--state is an empty text; pass the path of a file"),
        (("reproduce", "examples", "--out", ""), "--out is an empty text; pass the path of a folder"),
    ],
)
def test_an_empty_path_is_named(line, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = call(*line)
    assert found.exit_code == 2
    assert found.stderr.endswith(f"Error: {message}\n")


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
        (
            ["measure", table, "--y-true", "ward", "--pos-label", "east"],
            r"--pos-label is 'east', which column 'ward' does",
        ),
        (["measure", table, "--y-true", "p", "--y-prob", "p"], r"column 'p' is named for outcomes and for forecasts"),
        (["measure", table, "--memory-limit", "some"], r"--memory-limit is 'some'"),
        (["measure"], r"Missing argument 'FILE...'"),
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
        (
            ["certify", table, "--max-error", "0.1", "--confidence-level", "95"],
            r"95.0 is not in .*; write 0\.95 for 95%\.$",
        ),
        (["plan", "--max-error", "0.1", "--brier", "0.1", "--confidence-level", "3"], r"3.0 is not in [^;]*$"),
        (["plan", "--max-error", "0.1", "--brier", "0.1", "--confidence-level", "x"], r"'x' is not a valid float"),
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
        (
            ["recalibrate", "fit", table, "--out", "no/such/folder/m.json"],
            r"cannot be written: there is no folder no/such/folder",
        ),
        (["recalibrate", "fit", table, "--method", "magic", "--out", "m"], r"'magic' is not one of"),
        (["recalibrate", "apply", table, table, "--out", "o.csv"], r"is not a model that recalibrate fit wrote"),
        (
            ["recalibrate", "apply", files / "t.parquet", table, "--out", "o.csv"],
            r"is not a model that recalibrate fit",
        ),
        (["recalibrate", "apply", model, table, "--out", "o.xlsx"], r"o.xlsx ends in '.xlsx'; write one of .csv"),
        (["recalibrate", "apply", model, table, "--column", "W", "--out", "o.csv"], r"has a column 'W' already"),
        (["recalibrate", "sql", model, "--column", ""], r"column must be the name of a column"),
        (["nonsense"], r"No such command 'nonsense'\.$"),
        (["certfy", table], r"No such command 'certfy'\. Did you mean 'certify'\?$"),
        (["Report", table], r"No such command 'Report'\. Did you mean 'report'\?$"),
        (["recalibrate", "aply", model], r"No such command 'aply'\. Did you mean 'apply'\?$"),
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


def test_a_model_of_a_newer_version_asks_for_an_update(files, tmp_path):
    model = tmp_path / "model.json"
    call("recalibrate", "fit", files / "t.csv", "--out", model)
    model.write_text(model.read_text().replace("calibrant-recalibrator/1", "calibrant-recalibrator/2"))
    found = call("recalibrate", "sql", model, "--column", "p")
    assert (found.exit_code, found.stdout) == (2, "")
    said = "model.json: this recalibrator was written by a newer version of calibrant (calibrant-recalibrator/2); "
    assert said in found.stderr
    assert "is not a model" not in found.stderr


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
    from calibrant.cli.inputs import Source, open_source

    with pytest.raises(outputs.BadInput, match="nothing is piped into it; name a file"):
        open_source(Source(("-",)))
