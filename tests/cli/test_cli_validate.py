"""``calibrant validate``: the library's numbers, from files, with a page, a table or a document."""

import json
import shlex
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_cases import call

import calibrant
from calibrant.cli.voices import SHELL
from calibrant.core.voices import speaking
from calibrant.reports import ValidationSummary
from calibrant.reports.validation_again import ways_to_validate_again
from calibrant.validations import Validation
from calibrant.validations.findings import findings_of

FEW = ("--resamples", "40")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("studies")
    generator = np.random.default_rng(4)
    p = generator.random(200).round(3)
    y = (generator.random(200) < p**1.6).astype(int)
    time, lost = generator.exponential(1 / (0.1 + p)), generator.exponential(4.0, 200)
    frame = pd.DataFrame({"y": y, "p": p, "w": generator.random(200) + 0.5, "site": np.arange(200) % 40})
    frame["years"], frame["died"] = np.minimum(time, lost), (time <= lost).astype(int)
    frame.to_csv(place / "preds.csv", index=False)
    frame.assign(p=np.where(np.arange(200) == 3, np.nan, p)).to_csv(place / "holes.csv", index=False)
    frame.assign(y=0).to_csv(place / "none.csv", index=False)
    ended = np.where(frame["died"] == 1, 1, np.arange(200) % 4).astype(float)  # 0 is lost, 2 and 3 compete
    ended[ended == 1] = frame["died"][ended == 1]
    ended[7] = np.nan
    risk = generator.random(200)  # of 17 digits
    frame.assign(ended=ended, risk=np.where(np.arange(200) == 3, np.nan, risk)).to_csv(place / "ends.csv", index=False)
    labelled = frame.assign(**{"what became": np.where(y == 1, "ill", "well"), "it's": risk})
    labelled.to_parquet(place / "labels.parquet")
    frame.assign(y=y + 1)[:90].to_csv(place / "part-1.csv", index=False)
    frame.assign(y=y + 1)[90:].to_csv(place / "part-2.csv", index=False)
    return place, frame


def test_a_few_lines_and_the_table(folder):
    place, frame = folder
    found = call("validate", place / "preds.csv", "--y-true", "y", "--y-prob", "p", *FEW)
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    assert lines[0] == "Miscalibrated: the forecasts are too high on the whole (weak-calibration test, p below 0.001)."
    assert len([line for line in lines if not line.startswith("  ")]) <= 6
    study = calibrant.validate(frame["y"], frame["p"], n_resamples=40)
    assert study.written_table() in found.stdout
    assert findings_of(study).rule in lines
    assert lines[-1].startswith("Note: there are ")  # a caution is not hidden behind a count of notes
    whole = call("validate", place / "preds.csv", "--y-true", "y", "--y-prob", "p", "--verbose", *FEW)
    with speaking(SHELL):
        assert whole.stdout.strip() == str(study)
    assert "recalibrate on some rows (calibrant recalibrate choose finds how)" in whole.stdout
    assert "recalibrate on some rows (compare_recalibrators finds how)" in str(study)


def test_options_are_named_as_they_are_typed(folder):
    place, _ = folder
    line = ("validate", place / "preds.csv", "--y-true", "y", "--y-prob", "p", *FEW)
    assert "--thresholds is 2, outside [0, 1]" in call(*line, "--thresholds", "2,3").stderr
    for options, begins in (((), "Caution: "), (("--verbose",), "Note: ")):
        wide = call(*line, "--max-error", "0.9", *options).stdout
        assert f"{begins}Forecasting 0 for everybody would pass this limit of 90.0%" in wide
        assert "For a limit that means something use --relative-to" not in wide  # which validate does not have
        assert "For a limit that means something use --max-error 0.0" in wide
        assert "Next: name the limit that the caution speaks of, before you look at fresh rows." in wide


def test_what_is_certified_is_not_sent_to_be_repaired(tmp_path):
    generator = np.random.default_rng(0)
    p = generator.uniform(0.2, 0.8, 5000)
    columns = {"y": (generator.random(5000) < p + 0.03).astype(int), "p": p}
    pd.DataFrame(columns).to_csv(tmp_path / "slightly.csv", index=False)
    line = ("validate", tmp_path / "slightly.csv", "--smoother", "isotonic", *FEW)
    assert "Next: recalibrate on some rows" in call(*line).stdout
    said = call(*line, "--max-error", "0.1").stdout
    assert said.startswith("Certified: ")
    assert "Next: report the table, and watch whether it stays so (calibrant watch)." in said


def test_the_other_class_is_noticed_at_first_sight(folder, tmp_path):
    _, frame = folder
    frame.assign(p=1 - frame["p"]).to_csv(tmp_path / "flip.csv", index=False)
    found = call("validate", tmp_path / "flip.csv", "--y-true", "y", "--y-prob", "p", *FEW)
    assert found.stdout.startswith("Miscalibrated: the forecasts are in reversed order")
    assert "Note: events are rarer where forecasts are higher" in found.stdout
    assert "\nNext: check whether these are probabilities of the other class" in found.stdout


def test_the_document_holds_the_library_s_result(folder):
    place, frame = folder
    options = ("--weight", "w", "--smoother", "splines", "--thresholds", "0.1,0.3", "--rng", "3", "--extremes", "0.01")
    found = call("validate", place / "preds.csv", "--y-true", "y", "--y-prob", "p", "--json", *options, *FEW)
    document = json.loads(found.stdout)
    alone = calibrant.validate(
        frame["y"],
        frame["p"],
        sample_weight=frame["w"],
        smoother="splines",
        thresholds=[0.1, 0.3],
        rng=3,
        extremes=0.01,
        n_resamples=40,
    )
    assert Validation.from_dict(document["result"]) == alone
    assert document["input"]["rows"] == 200


def test_clusters_and_a_limit_make_the_exit_code(folder):
    place, frame = folder
    line = ("validate", place / "preds.csv", "--y-true", "y", "--y-prob", "p", "--cluster", "site", *FEW)
    assert call(*line, "--max-error", "0.9").exit_code == 0
    refuted = call(*line, "--max-error", "0")
    assert refuted.exit_code in (1, 3)
    assert refuted.stdout.startswith(("Refuted: ", "Undecided: "))
    assert f"in {frame['site'].nunique()} clusters" in refuted.stdout


def test_censored_outcomes_are_named_by_time_and_event(folder):
    place, frame = folder
    line = ("--time", "years", "--event", "died", "--at", "1", "--y-prob", "p", "--json", *FEW)
    found = call("validate", place / "preds.csv", *line)
    assert found.exit_code == 0, found.output
    rows = calibrant.horizon(frame["years"], frame["died"], frame["p"], at=1)
    alone = calibrant.validate(rows, n_resamples=40)
    again = Validation.from_dict(json.loads(found.stdout)["result"])
    assert again.observed_expected_ratio == pytest.approx(alone.observed_expected_ratio, abs=1e-12)
    assert (again.censored, again.horizon) == (alone.censored, 1.0)


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("page.html", "<!DOCTYPE html>"),
        ("table.md", "# Ward 7"),
        ("table.tex", "\\begin{tabular}"),
        ("all.json", '{"schema"'),
    ],
)
def test_what_is_written_depends_on_the_file_s_name(folder, name, begins):
    place, _ = folder
    out = place / name
    line = ("--y-true", "y", "--y-prob", "p", "--title", "Ward 7", "--date", "2026-03-31", "--out", out)
    found = call("validate", place / "preds.csv", *line, *FEW)
    assert found.exit_code == 0, found.output
    assert found.stdout.startswith(f"Wrote {out}.")
    assert out.read_text(encoding="utf-8").lstrip().startswith(begins)


AGAIN = {
    "two files and a weight": "part-*.csv --y-true y --y-prob p --pos-label 2 --weight w --extremes 0.001",
    "labels, in clusters": "labels.parquet --y-true 'what became' --pos-label ill --y-prob \"it's\" --cluster site "
    "--thresholds 0.1,0.25 --smoother splines --max-error 0.2",
    "competing events and holes": "ends.csv --time years --event ended --at 1.5 --competing 2 --competing 3 "
    "--y-prob risk --drop-missing --confidence-level 0.9",
}


@pytest.mark.parametrize("line", AGAIN.values(), ids=AGAIN)
def test_what_the_page_says_does_it_again(folder, monkeypatch, capsys, line):
    place, _ = folder
    monkeypatch.chdir(place)
    found = call("validate", *shlex.split(line), *FEW, "--rng", "5", "--date", "2026-03-31", "--out", "first.json")
    assert found.exit_code in (0, 1, 3), found.output
    first = ValidationSummary.from_json((place / "first.json").read_text(encoding="utf-8"))
    python, typed = (way["code"] for way in ways_to_validate_again(first))

    typed = typed.replace("validation.html", "again.json").replace("\\\n", "")  # a document is quicker than a page
    again = call(*shlex.split(typed)[1:])
    assert again.exit_code == found.exit_code, again.output
    assert ValidationSummary.from_json((place / "again.json").read_text(encoding="utf-8")) == first

    made: dict[str, Any] = {}
    exec(python.replace('report.write_html("validation.html")\n', ""), made)
    assert capsys.readouterr().out == f"{first.fingerprint}\n"
    held = {name: getattr(first, name) for name in first.to_dict() if hasattr(first, name)}
    for name in held.keys() - {"file", "items"}:  # arrays have no columns to name
        assert getattr(made["report"].summary, name) == held[name], name


def test_rows_left_out_are_told_of_in_the_item_on_missing_data(folder):
    place, _ = folder
    out = place / "holes.md"
    line = ("--y-true", "y", "--y-prob", "p", "--drop-missing", "--date", "2026-03-31", "--out", out)
    assert call("validate", place / "holes.csv", *line, *FEW).exit_code == 0
    assert "1 row left out" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (("none.csv", "--y-true", "y", "--y-prob", "p"), "every outcome is 0; a validation needs rows with the event"),
        (
            ("preds.csv", "--y-true", "y", "--y-prob", "p", "--out", "a.txt"),
            "does not end in .html, .md, .tex or .json",
        ),
        (("preds.csv", "--y-true", "y", "--y-prob", "p", "--thresholds", "a,b"), "not a list of numbers with commas"),
        (("preds.csv", "--y-true", "y", "--y-prob", "p", "--thresholds", "0.1,1"), "thresholds is 1"),
        (("preds.csv", "--y-true", "y", "--y-prob", "p", "--extremes", "drop"), "extremes must be one of"),
        (("preds.csv", "--y-true", "y", "--y-prob", "p", "--resamples", "5"), "too few for a confidence_level"),
        (("preds.csv", "--event", "died", "--y-prob", "p"), "--event needs --time"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(folder, line, message):
    place, _ = folder
    found = call("validate", place / line[0], *(place / word if word == "a.txt" else word for word in line[1:]))
    assert found.exit_code == 2
    assert message in " ".join(found.stderr.split())


def test_sure_forecasts_can_be_refused(folder, tmp_path):
    _, frame = folder
    frame.assign(p=frame["p"].round(1)).to_csv(tmp_path / "round.csv", index=False)
    line = ("validate", tmp_path / "round.csv", "--y-true", "y", "--y-prob", "p", *FEW)
    refused = call(*line, "--extremes", "refuse")
    assert refused.exit_code == 2
    assert "of exactly 0 or 1, whose logit is infinite; leave them out of the slope with --extremes leave-out" in (
        refused.output
    )
    assert call(*line, "--extremes", "leave_out").exit_code == 0


def test_a_limit_is_refused_for_censored_rows_and_not_advised(folder):
    place, _ = folder
    line = ("validate", place / "preds.csv", "--time", "years", "--event", "died", "--at", "1", "--y-prob", "p", *FEW)
    refused = call(*line, "--max-error", "0.1")
    assert refused.exit_code == 2
    assert "--max-error asks for a guarantee, and outcomes are censored" in refused.output
    assert "leave it out" in refused.output
    assert "max_error" not in call(*line).stdout
