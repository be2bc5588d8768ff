"""Every command on every format: the numbers, the documents, the exit codes, the files written."""

import json
import os
import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from cli_cases import RUNS, answer, call, documented, filled, fits, write_files
from table_cases import FORMATS, predictions, write

import calibrant
from calibrant.cli import COMMANDS
from calibrant.cli.voices import SHELL
from calibrant.core.errors import UndefinedError
from calibrant.repairs.fits import NO_CURVE


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("files"))


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
    kinds = FORMATS if run in ("measure", "certify", "recalibrate apply") else ("parquet", "jsonl")
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


GAP = ("--measure", "risk_gap")
SAVINGS: list[tuple[list[object], dict[str, Any]]] = [
    ([], {}),
    (["--threshold", 0.3], {"threshold": 0.3}),
    (["--threshold", "0.1:0.3"], {"threshold": (0.1, 0.3)}),
    (
        ["--cost-false-positive", 1, "--cost-false-negative", 4],
        {"cost_false_positive": 1, "cost_false_negative": 4},
    ),
]
"""What the command line says of a risk gap, and what Python does."""


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
    for options, asked in SAVINGS:
        gap: dict[str, Any] = {"measure": "risk_gap", **asked}
        found = answer("certify", file, "--max-error", 0.3, *GAP, *options)
        same(found["result"], calibrant.certify(y, p, max_error=0.3, **gap))
        compared = answer("compare", file, "--y-prob", "p", "--y-prob", "worse", *GAP, *options)
        models = calibrant.compare_models(y, {"p": p, "worse": columns["worse"]}, **gap)
        same(compared["models"][0]["interval"], models["p"].interval)
        chosen = answer("recalibrate", "choose", file, "--parts", 2, *options)["result"]
        same(chosen, calibrant.compare_recalibrators(p, y, cv=2, rng=0, **asked))
    same(answer("test", file, "--rng", 3)["result"], calibrant.calibration_test(y, p, rng=3))
    distinct, count = np.unique(p, return_counts=True)
    planned = calibrant.rows_needed(0.1, y_prob=distinct, sample_weight=count)
    same(answer("plan", file, "--max-error", 0.1)["result"], planned)
    assert planned.rows == calibrant.rows_needed(0.1, y_prob=p).rows
    gap = {"measure": "risk_gap", "threshold": (0.2, 0.4)}
    planned = calibrant.rows_needed(0.1, y_prob=distinct, sample_weight=count, **gap)
    same(answer("plan", file, "--max-error", 0.1, *GAP, "--threshold", "0.2:0.4")["result"], planned)
    decided = answer("decide", file, "--threshold", 0.3)["result"]["decisions"][0]
    limit = calibrant.confidence_interval(y, p, measure="risk_gap", alternative="less")
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


# --- The documents that --json prints ---------------------------------------------------------------------------------


@pytest.mark.parametrize("run", RUNS)
def test_documents_are_as_documented(run, files, tmp_path):
    tables = documented()
    document = answer(*filled(run, file=files / "t.csv", out=tmp_path, model=files / "m.json"))
    expected = {**tables["all"], **tables[document["command"]]}
    assert set(document) == set(expected)
    for key, words in expected.items():
        assert fits(document[key], words), (key, words, document[key])


def test_the_documentation_names_every_command_and_no_other():
    inner = {f"recalibrate {name}" for name in ("fit", "choose", "apply")}
    assert set(documented()) == {"all", *COMMANDS, *inner} - {"recalibrate", "reproduce"}
    assert not fits(3, "text or null")
    assert not fits({"a": 1}, "object of `a`, `b`")


# --- Exit codes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "exit_code", "word"),
    [
        (("certify", "--y-prob", "good", "--max-error", "0.05"), 0, "Certified: "),
        (("certify", "--y-prob", "bad", "--max-error", "0.05"), 1, "Refuted: "),
        (("certify", "--y-prob", "good", "--max-error", "0.015"), 3, "Undecided: "),
        (
            ("certify", "--y-prob", "good", "--max-error", "0.02", *GAP),
            0,
            "Certified: with 95% confidence no re-drawing",
        ),
        (("certify", "--y-prob", "bad", "--max-error", "0.01", *GAP), 1, "Refuted: with 95% confidence a re-drawing"),
        (("certify", "--y-prob", "good", "--max-error", "0.004", *GAP), 3, "Undecided: these rows do not show"),
        (("test", "--y-prob", "good", "--resamples", "999"), 0, "Not rejected: "),
        (("test", "--y-prob", "bad", "--resamples", "999"), 1, "Rejected: "),
        (("test", "--y-prob", "bad", "--test", "spiegelhalter", "--level", "0.01"), 1, "at the 1% level"),
        (("measure", "--y-prob", "bad"), 0, "4,000 rows"),
        (("measure", "--y-prob", "bad", "--max-error", "0.05"), 1, "Too large: "),
        (("measure", "--y-prob", "good", "--max-error", "0.05"), 0, "Small enough: "),
        (("compare", "--y-prob", "bad", "--y-prob", "good", "--max-error", "0.05"), 0, "Certified: good, "),
        (("compare", "--y-prob", "bad", "--y-prob", "good", "--max-error", "0.01"), 3, "None of the 2 models"),
        (("compare", "--y-prob", "bad", "--y-prob", "bad2", "--max-error", "0.05"), 1, "None of the 2 models"),
        (
            ("compare", "--y-prob", "bad", "--y-prob", "good", "--max-error", "0.02", *GAP),
            0,
            "good leaves less to save",
        ),
        (("compare", "--y-prob", "bad", "--y-prob", "good"), 0, "good is better calibrated"),
    ],
)
def test_the_exit_code_is_the_verdict_and_the_message_says_which(arguments, exit_code, word, files):
    command, *options = arguments
    found = call(command, files / "large.csv", "--y-true", "y", *options)
    assert found.exit_code == exit_code
    assert word in found.stdout
    answer(command, files / "large.csv", "--y-true", "y", *options, exit_code=exit_code)


NEITHER = "is neither a threshold from 0 to 1, as in 0.3, nor a range, as in 0.1:0.3."
EITHER = "name one threshold or range with --threshold, or both --cost-false-positive and --cost-false-negative in its"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((*GAP, "--threshold", "often"), f"'often' {NEITHER}"),
        ((*GAP, "--threshold", "1.2"), f"'1.2' {NEITHER}"),
        ((*GAP, "--threshold", "nan"), f"'nan' {NEITHER}"),
        ((*GAP, "--threshold", ""), f"'' {NEITHER}"),
        ((*GAP, "--threshold", "0.1:"), f"'0.1:' {NEITHER}"),
        ((*GAP, "--threshold", "0.1:0.2:0.3"), f"'0.1:0.2:0.3' {NEITHER}"),
        ((*GAP, "--threshold", "0.3:0.1"), "'0.3:0.1' goes down; write the lower end first, as in 0.1:0.3."),
        ((*GAP, "--cost-false-positive", "1"), EITHER),
        ((*GAP, "--cost-false-negative", "1", "--threshold", "0.3"), EITHER),
        ((*GAP, "--cost-false-positive", "1", "--cost-false-negative", "1", "--threshold", "0.3"), EITHER),
        ((*GAP, "--cost-false-positive", "0", "--cost-false-negative", "0"), "both costs are 0"),
        (("--threshold", "0.3"), "Error: --threshold is for --measure risk_gap only; leave it out, or ask for that"),
        (("--threshold", "0:1"), "Error: --threshold is for --measure risk_gap only"),
        (
            ("--cost-false-positive", "1", "--cost-false-negative", "4", "--measure", "smooth"),
            "Error: --cost-false-positive is for --measure risk_gap only",
        ),
        ((*GAP, "--method", "exact"), "--method exact covers --measure cutoff only, got --measure risk_gap"),
        ((*GAP, "--relative-to", "events"), "which counts losses per case; leave --relative-to out"),
    ],
)
def test_thresholds_that_say_nothing_are_refused_in_words_of_the_command_line(options, said, files):
    found = call("certify", files / "t.csv", "--max-error", "0.2", *options)
    assert (found.exit_code, found.stdout) == (2, "")
    assert said in found.stderr


@pytest.mark.parametrize("command", ["compare", "plan"])
def test_thresholds_are_for_risk_gaps_in_every_command(command, files):
    models = ("--y-prob", "p", "--y-prob", "worse") if command == "compare" else ()
    found = call(command, files / "t.csv", *models, "--max-error", "0.2", "--threshold", "0.3")
    assert (found.exit_code, found.stdout) == (2, "")
    assert "Error: --threshold is for --measure risk_gap" in found.stderr


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
    found = call("test", file, "--by", "model", "--resamples", "999")
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
    assert difference["lower"] < difference["estimate"] < difference["upper"]
    assert (difference["verdict"], difference["paired"]) == ("better", True)
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
    recalibrator = calibrant.repairs.Recalibrator.from_json(model.read_text())
    given = recalibrator.guarantee(0.95, target="these forecasts")
    for document, promised in ((fitted["result"], recalibrator.guarantee(0.95)), (fitted["these_forecasts"], given)):
        assert {"schema": "calibrant/1", **document} == json.loads(promised.to_json())
    words = call("recalibrate", "fit", inside, "--method", method, "--out", model, "--verbose").stdout
    assert str(recalibrator.guarantee(0.95)) in words
    assert given.finding() in words
    applied = answer("recalibrate", "apply", model, inside, "--column", "risk", "--out", out)
    assert applied["column"] == "risk"
    expected = recalibrator.predict(columns["p"].clip(0.01, 0.99))
    np.testing.assert_array_equal(duckdb.read_parquet(str(out)).fetchnumpy()["risk"], expected)
    sql = call("recalibrate", "sql", model, "--column", "p").stdout.strip()
    scored = duckdb.execute(f"SELECT {sql} AS q FROM read_csv('{inside}')").fetchnumpy()["q"]
    np.testing.assert_allclose(scored, expected, rtol=1e-12)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.json", "repaired.parquet", "t.csv"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".jsonl"])
def test_rows_are_written_with_all_their_columns(suffix, files, tmp_path):
    out = tmp_path / f"repaired{suffix}"
    out.write_text("what was there before")
    file = tmp_path / "ids.csv"
    file.write_text('id,note,score\n007,"a, b",0.5\n008,,0.25\n')
    assert call("recalibrate", "apply", files / "m.json", file, "--out", out).exit_code == 0
    twice = tmp_path / f"twice{suffix}"
    asked = ("--y-prob", "score", "--column", "x", "--out", twice)
    assert answer("recalibrate", "apply", files / "m.json", out, *asked)["input"]["rows"] == 2
    reader = {".parquet": "read_parquet", ".jsonl": "read_json"}.get(suffix, "read_csv")
    options = "" if suffix in (".parquet", ".jsonl") else ", all_varchar=true"
    rows = duckdb.execute(f"SELECT id, note, x = recalibrated FROM {reader}('{twice}'{options})").fetchall()
    assert rows == [("007", "a, b", True), ("008", None, True)]


def test_forecasts_of_0_and_1_are_taken_inside_where_a_curve_needs_it(tmp_path):
    file = write({"y": [0, 1, 0, 1, 1, 0], "p": [0.0, 1.0, 0.3, 0.6, 0.2, 0.7]}, tmp_path / "t.csv", "csv")
    fit = ("recalibrate", "fit", file, "--out", tmp_path / "m.json", "--method")
    for method in ("platt-logit", "beta", "temperature"):
        found = call(*fit, method)
        assert found.exit_code == 2
        assert "as in --clip 1e-6, or fit with --method platt" in found.stderr
        assert answer(*fit, method, "--clip", "0.01")["model"]["params"]["clip"] == 0.01
    assert "--clip does not go with --method isotonic" in call(*fit, "isotonic", "--clip", "0.01").stderr


def test_hints_are_among_the_notes_and_in_words_for_those_who_type_commands(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(1_000)
    y = (rng.random(1_000) < p).astype(int)
    file = write({"y": y, "p": 1 - p, "class": (p > 0.5).astype(float)}, tmp_path / "t.csv", "csv")
    for command in (("measure",), ("certify", "--max-error", "0.5"), ("test",)):
        found = call(command[0], file, "--y-true", "y", "--y-prob", "p", *command[1:])
        assert "events are rarer where forecasts are higher (AUC 0.1" in " ".join(found.stdout.split()), found.output
        found = call(command[0], file, "--y-true", "y", "--y-prob", "class", *command[1:])
        assert "Pass probabilities, not the classes that a model predicts." in " ".join(found.stdout.split())
        assert "predict_proba" not in found.stdout


@pytest.mark.parametrize("method", ["isotonic", "guarded"])
def test_steps_at_0_and_1_are_kept_inside_on_request(method, tmp_path):
    y, p = [0, 0, 1, 1] * 50, [0.1, 0.3, 0.2, 0.9] * 50
    file = write({"y": y, "p": p}, tmp_path / "t.csv", "csv")
    fit = ("recalibrate", "fit", file, "--out", tmp_path / "m.json", "--method")
    fitted = answer(*fit, method, "--ends", "inside")
    assert fitted["model"]["params"]["ends"] == "inside"
    model = calibrant.repairs.Recalibrator.from_json((tmp_path / "m.json").read_text())
    kind = calibrant.IsotonicRecalibrator if method == "isotonic" else calibrant.GuardedRecalibrator
    assert model.predict(p).tolist() == kind(ends="inside").fit(p, y).predict(p).tolist()
    assert model.predict(p).max() < 1.0
    found = call(*fit, "platt", "--ends", "inside")
    assert found.exit_code == 2
    assert "--ends inside does not go with --method platt, which has no steps at 0 and 1" in found.stderr


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda y, p: (np.ones(y.size, dtype=int), p), "Note: every outcome is 1, and the forecasts expect "),
        (lambda y, p: (y, 1.0 - p), "Note: events are rarer where forecasts are higher (AUC "),
    ],
)
def test_repairs_of_the_wrong_column_are_noticed(mistake, said, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(600).round(4)
    y, p = mistake((rng.random(600) < p).astype(int), p)
    file = write({"y": y, "p": p, "w": rng.random(600)}, tmp_path / "t.csv", "csv")
    judged = call("certify", file, "--max-error", 0.1).stdout
    (note,) = [line for line in judged.splitlines() if line.startswith(said)]
    out = ("--out", tmp_path / "m.json")
    for command in (
        ("recalibrate", "fit", file, *out),
        ("recalibrate", "fit", file, "--method", "isotonic", *out),
        ("recalibrate", "fit", file, "--weight", "w", *out),
        ("recalibrate", "choose", file, "--parts", 2),
    ):
        lines = call(*command).stdout.splitlines()
        advice = lines.index("Next: see to the note first; what it says may be all that is wrong.")
        assert any(line.startswith(said) for line in lines[:advice])
        assert note in lines or "--weight" in command  # of which it takes fewer to be expected
        assert said in call(*command, "--verbose").stdout


@pytest.mark.parametrize(
    ("method", "outcomes", "remedy"),
    [
        ("temperature", [1, 0], "fit with --method platt, which can also shift and reverse them"),
        ("temperature", [0, 1], "collect more rows, or fit with --method platt, whose smoothing gives a finite fit"),
        ("beta", [1, 1], "fit with --method platt, whose smoothing gives a finite fit"),
    ],
)
def test_what_to_do_about_rows_that_no_curve_fits_is_an_option(method, outcomes, remedy, tmp_path):
    file = write({"y": outcomes * 50, "p": [0.1, 0.9] * 50}, tmp_path / "t.csv", "csv")
    found = call("recalibrate", "fit", file, "--out", tmp_path / "m.json", "--method", method)
    assert (found.exit_code, found.stderr.endswith(f"; {remedy}\n")) == (2, True), found.stderr
    for options in ((), ("--verbose",)):
        chosen = call("recalibrate", "choose", file, *options)
        assert remedy in chosen.stdout
        assert "Recalibrator(" not in chosen.stdout


def test_curves_that_do_not_settle_name_the_methods_without_one():
    error = UndefinedError("", remedy=NO_CURVE)
    assert error.said(SHELL) == "; fit with --method isotonic or --method constant"
    assert str(error) == "; use IsotonicRecalibrator() or ConstantRecalibrator()"


def test_no_zero_has_a_minus_before_it(tmp_path):
    file = write({"y": [1] * 40, "p": [0.25, 0.75] * 20}, tmp_path / "t.csv", "csv")
    for options in ((), ("--verbose",), ("--json",)):
        said = call("recalibrate", "choose", file, *options).stdout
        assert not re.search(r"-0\.0+(?![\d.]*[1-9])\b", said), said


def test_more_parts_than_rows_are_refused_by_the_name_of_the_option(tmp_path):
    for count, remedy in ((1, "collect more rows: no number of parts will do"), (3, "choose fewer parts")):
        file = write({"y": [1, 0, 1][:count], "p": [0.5, 0.2, 0.7][:count]}, tmp_path / f"{count}.csv", "csv")
        found = call("recalibrate", "choose", file)
        there = "is only 1 row" if count == 1 else "are only 3 rows"
        assert found.exit_code == 2
        assert f"--parts is 5, and there {there} to cut into parts; {remedy}\n" in found.stderr


def test_no_guarantee_is_claimed_for_weighted_rows(files, tmp_path):
    arguments = ("recalibrate", "fit", files / "t.csv", "--weight", "w", "--out", tmp_path / "m.json")
    assert "No guarantee covers weighted rows" in call(*arguments).stdout
    assert answer(*arguments)["result"] is None
    assert answer(*arguments)["these_forecasts"] is None


def test_a_file_is_written_whole_or_not_at_all(files, tmp_path, monkeypatch):
    out = tmp_path / "m.json"
    out.write_text("before")
    out.chmod(0o640)
    assert call("recalibrate", "fit", files / "t.csv", "--out", out).exit_code == 0
    assert out.stat().st_mode & 0o777 == 0o640
    before = out.read_text()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    found = call("recalibrate", "fit", files / "t.csv", "--method", "platt", "--out", out)
    assert found.exit_code == 2
    assert "No space left on device" in found.stderr
    assert out.read_text() == before
    assert list(tmp_path.iterdir()) == [out]
