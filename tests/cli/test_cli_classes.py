"""Forecasts of several classes at the command line: which columns are which classes, and the same answers as Python."""

import json

import numpy as np
import pytest
from cli_cases import answer, call
from table_cases import FORMATS, write

import calibrant
from calibrant.cli.outputs import plain

LABELS = np.array(["bream", "perch", "roach"])
FAMILIES = ("confidence", "classwise", "top_label", "pairs", "subsets")


def forecasts(rows=120, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y_prob = rng.dirichlet(np.ones(classes), rows).round(3)
    y_prob[:, -1] = (1.0 - y_prob[:, :-1].sum(axis=1)).round(3)
    y_prob = y_prob.clip(0.0, 1.0)
    return np.array([rng.choice(classes, p=row / row.sum()) for row in y_prob]), y_prob


PLACES, Y_PROB = forecasts()
COLUMNS = {
    "fish": LABELS[PLACES],
    **{f"p_{label}": Y_PROB[:, place] for place, label in enumerate(LABELS)},
    "w": np.arange(len(PLACES)) % 3 + 1.0,
    "pond": np.array(["a", "b"])[np.arange(len(PLACES)) % 2],
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classes")
    for kind in FORMATS:
        write(COLUMNS, folder / f"t.{kind}", kind)
    return folder


def asked(what, y_true=None, y_prob=Y_PROB, classes=LABELS, **more):
    """Return what Python says, as the command line writes it."""
    y_true = LABELS[PLACES] if y_true is None else y_true
    return json.loads(json.dumps(plain(what(y_true, y_prob, classes=classes.tolist(), **more))))


@pytest.mark.parametrize("questions", FAMILIES)
def test_every_question_has_the_answer_of_python(questions, files):
    line = (files / "t.csv", "--y-true", "fish", "--y-prob", "p_*", "--questions", questions)
    found = answer("certify", *line, "--max-error", "0.5", "--weight", "w")
    said = asked(calibrant.certify, max_error=0.5, questions=questions, sample_weight=COLUMNS["w"])
    assert found["result"] == said
    assert found["input"]["classes"] == LABELS.tolist()
    assert found["input"]["y_prob"] == [f"p_{label}" for label in LABELS]
    assert answer("measure", *line)["result"] == asked(calibrant.measure, questions=questions)
    tested = answer("test", *line, "--resamples", "999", "--level", "1e-6")
    assert tested["result"] == asked(calibrant.calibration_test, questions=questions, n_resamples=999, rng=0)


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_same_answer_read_or_scanned(kind, files):
    line = ("--y-true", "fish", "--max-error", "0.4", "--questions", "classwise")
    named = [part for label in LABELS for part in ("--y-prob", f"p_{label}")]
    found = answer("certify", files / f"t.{kind}", *line, *named)
    assert found["result"] == answer("certify", files / "t.csv", *line, "--y-prob", "p_*")["result"]
    assert found == answer("certify", files / f"t.{kind}", *line, "--y-prob", "p_*", "--memory-limit", "1GB")


@pytest.mark.parametrize(
    ("questions", "more"),
    [
        ("pairs", ()),
        ("pairs", ("--weight", "w")),
        ("confidence", ("--by", "pond")),
        ("top_label", ("--cluster", "site")),
    ],
)
def test_a_scan_gives_the_document_of_a_file_that_is_read(questions, more, files):
    file = write({**COLUMNS, "site": np.arange(len(PLACES)) % 40}, files / "sited.csv", "csv")
    line = ("certify", file, "--y-true", "fish", "--y-prob", "p_*", "--max-error", "0.9", "--questions", questions)
    assert answer(*line, *more) == answer(*line, *more, "--memory-limit", "1GB")


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "npz"])
def test_labels_that_are_numbers_are_numbers_in_every_format(kind, tmp_path):
    labels = np.array([0, 1, 10])
    for y in (labels[PLACES], labels[PLACES].astype(float)):
        file = write({"y": y, **{f"p{k}": Y_PROB[:, j] for j, k in enumerate(labels)}}, tmp_path / f"n.{kind}", kind)
        found = answer("measure", file, "--y-prob", "p*", "--questions", "classwise")
        assert found["result"]["questions"] == found["input"]["classes"] == [0, 1, 10]


def test_columns_may_be_in_any_order_and_be_named_as_the_labels_are(tmp_path):
    file = write(
        {"y": LABELS[PLACES], **dict(zip(LABELS[::-1], Y_PROB.T[::-1], strict=True))}, tmp_path / "t.csv", "csv"
    )
    named = [part for label in LABELS[[1, 2, 0]] for part in ("--y-prob", label)]
    found = answer("measure", file, *named)
    assert found["input"]["classes"] == LABELS[[1, 2, 0]].tolist()
    assert found["result"]["cutoff"] == calibrant.cutoff_calibration_error(PLACES, Y_PROB)


def test_classes_are_named_where_columns_are_not(tmp_path):
    file = write({"y": LABELS[PLACES], **dict(zip("abc", Y_PROB.T, strict=True))}, tmp_path / "t.csv", "csv")
    named = ("--y-prob", "a", "--y-prob", "b", "--y-prob", "c")
    found = answer("measure", file, *named, "--classes", "bream, perch,roach", "--questions", "top_label")
    assert found["result"] == asked(calibrant.measure, questions="top_label")
    said = call("measure", file, *named)
    assert said.exit_code == 2
    assert "holds 'bream', and no column of forecasts is named after it ('a', 'b', 'c')" in said.stderr
    assert "pass --classes with the label of each column" in said.stderr


def test_two_columns_of_a_binary_model_are_its_event(tmp_path):
    y_prob = Y_PROB[:, 0]
    y = PLACES == 0
    table = {"y": np.where(y, "yes", "no"), "p_no": 1.0 - y_prob, "p_yes": y_prob}
    file = write(table, tmp_path / "t.csv", "csv")
    found = answer("certify", file, "--y-prob", "p_*", "--max-error", "0.4")
    alone = answer("certify", file, "--y-prob", "p_yes", "--pos-label", "yes", "--max-error", "0.4")
    assert found["result"] == alone["result"]
    assert found["input"]["notes"] == ["the event is yes, of the classes no and yes (--pos-label chooses)"]
    other = answer("measure", file, "--y-prob", "p_*", "--pos-label", "no")["result"]
    assert other == answer("measure", file, "--y-prob", "p_no", "--pos-label", "no")["result"]


def test_several_labels_of_a_row_have_a_column_of_outcomes_each(tmp_path):
    rng = np.random.default_rng(3)
    y_prob = rng.random((200, 2)).round(3)
    y = (rng.random((200, 2)) < y_prob).astype(int)
    file = write(
        {"red": y[:, 0], "blue": y[:, 1], "p_red": y_prob[:, 0], "p_blue": y_prob[:, 1]}, tmp_path / "m.csv", "csv"
    )
    line = (file, "--y-true", "red", "--y-true", "blue", "--y-prob", "p_*", "--multilabel")
    found = answer("measure", *line)
    assert found["result"] == asked(calibrant.measure, y, y_prob, np.array(["red", "blue"]), multilabel=True)
    assert found == answer("measure", *line, "--memory-limit", "1GB")
    assert found["input"]["y_true"] == ["red", "blue"]
    for parts, message in (
        ((*line[:3], *line[5:]), "--y-true names 1 columns and --y-prob 2; name one of each for every label"),
        ((file, "--y-prob", "p_*", "--multilabel"), "--multilabel needs --y-true and --y-prob"),
        ((*line[:-1],), "a column per label is for --multilabel"),
    ):
        assert message in call("measure", *parts).stderr


def test_groups_and_clusters_of_confidence(files):
    line = ("certify", files / "t.csv", "--y-true", "fish", "--y-prob", "p_*", "--max-error", "0.9")
    found = answer(*line, "--by", "pond")["result"]
    assert found == asked(calibrant.certify, max_error=0.9, by=COLUMNS["pond"])
    many = write({**COLUMNS, "site": np.arange(len(PLACES)) % 40}, files / "sites.csv", "csv")
    line = ("certify", many, *line[2:])
    clustered = answer(*line, "--cluster", "site", "--questions", "classwise")["result"]
    assert clustered["certificates"][0]["clusters"]["count"] == 40
    assert answer(*line, "--check-clusters", "site")["check"]["type"] == "IndependenceCheck"
    said = call(*line, "--check-clusters", "site", "--questions", "pairs")
    assert (said.exit_code, "ask for --questions confidence" in said.stderr) == (2, True)


def test_words_are_few_and_exit_codes_are_verdicts(files):
    line = (files / "t.csv", "--y-true", "fish", "--y-prob", "p_*")
    certified = call("certify", *line, "--max-error", "0.9", "--questions", "classwise")
    assert certified.exit_code == 0
    assert certified.stdout.startswith("Certified: with 95% confidence the Cutoff calibration error of every class")
    assert "bream" in certified.stdout
    assert "This says nothing of the top label" in certified.stdout
    assert call("certify", *line, "--max-error", "0.001", "--questions", "classwise").exit_code == 3
    wrong = {**COLUMNS, "fish": LABELS[(PLACES + 1) % 3]}
    file = write(wrong, files / "wrong.csv", "csv")
    refuted = call("certify", file, *line[1:], "--max-error", "0.01", "--questions", "classwise", "--verbose")
    assert (refuted.exit_code, refuted.stdout.startswith("Refuted:")) == (1, True)
    rejected = call("test", file, *line[1:], "--questions", "classwise", "--resamples", "999")
    assert (rejected.exit_code, rejected.stdout.startswith("Rejected:")) == (1, True)
    measured = call("measure", file, *line[1:], "--questions", "pairs", "--max-error", "0.01")
    assert (measured.exit_code, measured.stdout.startswith("Too large:")) == (1, True)
    small = call("measure", *line, "--questions", "pairs", "--max-error", "1")
    assert small.stdout.startswith("Small enough: the largest measured Cutoff error")
    assert "asked was the confidence in the top label, of 3 classes" in call("measure", *line).stdout


@pytest.mark.parametrize(
    ("change", "line", "message"),
    [
        ({"p_perch": 0.9}, (), "data row 1 (counted from 1, without the header) of columns 'p_bream', 'p_perch', "),
        ({"p_perch": 1.9}, (), "column 'p_perch', data row 1 (counted from 1, without the header), is 1.9, outside"),
        ({"p_perch": ""}, (), "column 'p_perch' has no value in data row 1"),
        ({"p_perch": "x"}, (), "column 'p_perch'"),
        ({"fish": "NA"}, (), "column 'fish' has no value in data row 1"),
        ({"fish": "eel"}, (), "column 'fish' holds 'eel', and no column of forecasts is named after it"),
        ({"fish": "eel"}, ("--classes", "bream,perch,roach"), "is 'eel', which is not one of the classes 'bream'"),
        ({}, ("--classes", "bream,perch"), "--classes has 2 labels and --y-prob ('p_bream', "),
        ({}, ("--classes", "bream,perch,perch"), "--classes is 'perch' twice"),
        ({}, ("--pos-label", "perch"), "--pos-label names one event"),
        ({}, ("--y-prob", "p_perch"), "column 'p_perch' of"),
        ({}, ("--y-prob", "q_*"), "--y-prob 'q_*' fits no column"),
        ({}, ("--by", "pond", "--questions", "pairs"), "was given together with several questions"),
    ],
)
def test_what_is_wrong_is_said_of_columns_and_rows(change, line, message, tmp_path):
    columns = {name: values.astype(str).astype(object) for name, values in COLUMNS.items()}
    for name, value in change.items():
        columns[name] = np.array([str(value), *columns[name][1:]])
    file = write(columns, tmp_path / "t.csv", "csv")
    said = call("measure", file, "--y-true", "fish", "--y-prob", "p_*", *line)
    assert (said.exit_code, said.stdout) == (2, ""), said.output
    assert message in said.stderr
    scanned = call("measure", file, "--y-true", "fish", "--y-prob", "p_*", *line, "--memory-limit", "1GB")
    assert (scanned.exit_code, scanned.stdout) == (2, ""), scanned.output


def test_options_of_classes_need_classes(files):
    for line, message in (
        (("--questions", "pairs"), "--questions is about several classes; name a column for each"),
        (("--classes", "a,b"), "--classes is about several classes"),
    ):
        said = call("measure", files / "t.csv", "--y-true", "fish", "--y-prob", "p_perch", *line)
        assert (said.exit_code, message in said.stderr) == (2, True)
    spiegelhalter = call("test", files / "t.csv", "--y-true", "fish", "--y-prob", "p_*", "--test", "spiegelhalter")
    assert "is for one column of forecasts" in spiegelhalter.stderr


def test_a_star_in_the_name_of_a_column_is_that_column(tmp_path):
    file = write({"y": (PLACES == 0).astype(int), "p*": Y_PROB[:, 0], "p2": Y_PROB[:, 1]}, tmp_path / "t.csv", "csv")
    assert answer("measure", file, "--y-prob", "p*")["input"]["y_prob"] == "p*"
    said = call("measure", file, "--y-prob", "*2")
    assert "only column 'p2' is like '*2'; several classes take a column for each" in said.stderr


def test_missing_values_are_left_out_where_that_is_wanted(tmp_path):
    columns = {name: values.astype(str).astype(object) for name, values in COLUMNS.items()}
    columns["fish"][0] = columns["p_roach"][1] = ""
    file = write(columns, tmp_path / "t.csv", "csv")
    found = answer("measure", file, "--y-true", "fish", "--y-prob", "p_*", "--drop-missing")
    assert found["input"]["left_out"] == 2
    assert found["result"]["cutoff"] == calibrant.cutoff_calibration_error(PLACES[2:], Y_PROB[2:])


@pytest.mark.parametrize(
    "command",
    [("decide", "--threshold", "0.3"), ("validate",), ("plan", "--max-error", "0.1"), ("recalibrate", "choose")],
)
def test_a_pattern_of_columns_is_refused_where_one_event_is_asked_about(command, files):
    outcomes = () if "plan" in command else ("--y-true", "fish")
    said = call(*command, files / "t.csv", *outcomes, "--y-prob", "p_*")
    assert said.exit_code == 2
    assert "--y-prob 'p_*' stands for several columns" in said.stderr
    assert "name the column of one, and its label with --pos-label (certify, measure, test take all)" in said.stderr
