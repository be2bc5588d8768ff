"""What commands say at first: short, the verdict before all else, and nothing left out that would change it."""

import re

import numpy as np
import pytest
from cli_cases import RUNS, call, filled, write_files
from click.testing import CliRunner
from table_cases import predictions, write

import calibrant
from calibrant.cli import main, outputs
from calibrant.cli.voices import SHELL
from calibrant.core.voices import speaking

COSTS = ("--cost-false-positive", "1", "--cost-false-negative", "4")

MORE_RUNS = {
    "refuted": ("certify", "{file}", "--max-error", "0.05", "--y-prob", "bad"),
    "undecided": ("certify", "{file}", "--max-error", "0.015", "--y-prob", "good"),
    "wide": ("certify", "{file}", "--max-error", "0.45", "--y-prob", "good"),
    "events": ("certify", "{file}", "--max-error", "0.25", "--relative-to", "events", "--y-prob", "good"),
    "smooth": ("certify", "{file}", "--max-error", "0.05", "--measure", "smooth", "--y-prob", "good"),
    "gap": ("certify", "{file}", "--max-error", "0.02", "--measure", "risk_gap", "--y-prob", "good"),
    "gap refuted": ("certify", "{file}", "--max-error", "0.01", "--measure", "risk_gap", "--y-prob", "bad"),
    "gap undecided": (
        *("certify", "{file}", "--max-error", "0.002", "--measure", "risk_gap", "--threshold", "0.1:0.3"),
        *("--y-prob", "good"),
    ),
    "gap groups": (
        *("certify", "{file}", "--max-error", "0.02", "--measure", "risk_gap", "--threshold", "0.3", "--by", "g"),
        *("--y-prob", "good"),
    ),
    "gaps": (
        *("compare", "{file}", "--y-prob", "bad", "--y-prob", "good", "--max-error", "0.02"),
        *("--measure", "risk_gap", "--threshold", "0.1:0.3"),
    ),
    "gap plan": (
        *("plan", "{file}", "--max-error", "0.1", "--measure", "risk_gap", "--threshold", "0.1:0.3"),
        *("--y-prob", "good"),
    ),
    "rejected": ("test", "{file}", "--resamples", "999", "--y-prob", "bad"),
    "too large": ("measure", "{file}", "--max-error", "0.01", "--by", "g", "--y-prob", "bad"),
    "thresholds": ("decide", "{file}", "--threshold", "0.1", "--threshold", "0.9", "--y-prob", "good"),
    "turned round": ("decide", "{file}", *COSTS, "--wrapper", "monotone", "--y-prob", "good"),
    "at one": ("decide", "{file}", "--threshold", "1", "--wrapper", "any", "--y-prob", "good"),
    "none chosen": ("compare", "{file}", "--y-prob", "bad", "--y-prob", "bad2", "--max-error", "0.05"),
    "platt": ("recalibrate", "fit", "{file}", "--y-prob", "good", "--method", "platt", "--out", "{out}/model.json"),
    "weighted": ("recalibrate", "fit", "{file}", "--y-prob", "good", "--weight", "w", "--out", "{out}/model.json"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = write_files(tmp_path_factory.mktemp("files"))
    large = predictions(4000, seed=1)
    forecasts = {"good": large["p"], "bad": np.sqrt(large["p"]), "bad2": large["p"] ** 2}
    columns = {"y": large["y"], **forecasts, "w": large["w"], "g": np.repeat(["a", "b"], 2000)}
    write(columns, folder / "more.csv", "csv")
    return folder


@pytest.mark.parametrize("run", [*RUNS, *MORE_RUNS])
def test_answers_are_at_most_six_lines_of_short_sentences(run, files, tmp_path):
    places = {"file": files / ("t.csv" if run in RUNS else "more.csv"), "out": tmp_path, "model": files / "m.json"}
    words = filled(run, **places) if run in RUNS else [part.format(**places) for part in MORE_RUNS[run]]
    said = call(*words).stdout
    prose = [line for line in said.splitlines() if not line.startswith("  ")]
    counted = [line for line in prose if not line.startswith("Caution: ")]
    assert 1 <= len(counted) <= 6, said
    for line in counted:
        longest = 40 if line.startswith("Note: ") else 32  # costs add a few to a sentence of `decide`
        for sentence in re.split(r"(?<=[.:;]) ", line.replace(str(tmp_path), "here")):
            assert len(sentence.split()) <= longest, sentence
    assert "\n\n" not in said


def test_the_verdict_comes_first_then_where_and_what_next(files):
    for run, first, after in (
        ("refuted", "Refuted: ", "Next: calibrant recalibrate choose finds a repair"),
        ("undecided", "Undecided: ", "Next: judge more fresh rows"),
        ("events", "Certified: ", "Next: calibrant decide says what acting on the forecasts loses"),
        ("rejected", "Rejected: ", "Next: calibrant certify --max-error says"),
        (
            "too large",
            "Too large: the measured Cutoff error of all rows, a, b is above 0.01",
            "Next: these numbers are",
        ),
    ):
        lines = call(*(part.format(file=files / "more.csv") for part in MORE_RUNS[run])).stdout.splitlines()
        assert lines[0].startswith(first)
        (place,) = [place for place, line in enumerate(lines) if line.startswith(after)]
        assert any("points too" in line for line in lines[1:place]) is (run != "rejected")


def test_where_nothing_is_decided_a_repair_is_advised_only_where_something_is_off(files):
    found = calibrant.certify(predictions(4000, seed=1)["y"], np.sqrt(predictions(4000, seed=1)["p"]), max_error=0.5)
    for options, off in (((found.estimate,), True), ((0.015, "--y-prob", "good"), False)):
        asked = ("certify", files / "more.csv", *(("--y-prob", "bad") if off else ()), "--max-error", *options)
        lines = call(*asked).stdout.splitlines()
        assert lines[0].startswith("Undecided: ")
        (after,) = [line for line in lines if line.startswith("Next: judge more fresh rows")]
        assert ("A lower limit is above 0" in after) is ("recalibrate choose finds a repair" in after) is off


def test_a_choice_says_whether_it_is_shown_to_be_better_and_what_next(files, tmp_path):
    asked = ("recalibrate", "choose", files / "more.csv", "--parts", "2", "--y-prob")
    lines = call(*asked, "bad").stdout.splitlines()
    (use,) = [line for line in lines if line.startswith("Use ")]
    assert "By the Brier score, with 95% confidence, this choice is better than the forecasts as they are (-0." in use
    assert any(line.startswith("Next: calibrant recalibrate fit --method ") for line in lines)
    lines = call(*asked, "good").stdout.splitlines()
    (use,) = [line for line in lines if line.startswith("Leave the forecasts as they are: ")]
    assert "this choice is not told apart from the next best" in use
    assert "Next: certify the forecasts as they are on fresh rows: calibrant certify --max-error." in lines
    one = {"y": np.zeros(60, dtype=int), "p": np.linspace(0.01, 0.1, 60)}
    lines = call("recalibrate", "choose", write(one, tmp_path / "one.csv", "csv")).stdout.splitlines()
    assert any(line.startswith("Nothing is recommended. None of these rows is an event") for line in lines)
    assert "Next: collect rows of both kinds, then calibrant recalibrate choose." in lines
    assert not any(line.startswith("Use ") for line in lines)


def test_columns_of_groups_are_spoken_of_as_columns_and_some_groups_are_shown(tmp_path):
    large = predictions(400, seed=1)
    flags = np.where(np.arange(400) % 3 == 0, "", "true")
    columns = {"y": large["y"], "p": large["p"], "q": large["p"] ** 2, "flag": flags, "id": np.arange(400) // 10}
    file = write(columns, tmp_path / "g.csv", "csv")
    for name, said in (
        ("q", "column 'q' holds numbers such as "),
        ("q", "which are no groups; pass truth values or labels; calibrant groups looks at every cut of a column"),
        ("flag", "column 'flag' has rows without a value; a truth value per row says whether it is in the group"),
    ):
        assert said in call("certify", file, "--max-error", "0.1", "--groups", name).stderr
    lines = call("certify", file, "--max-error", "0.1", "--groups", "id").stdout.splitlines()
    assert sum(line.startswith("  ") for line in lines) == 21
    assert "  and 20 more with smaller errors: --json lists all" in lines


def test_a_repair_is_advised_only_where_it_would_have_saved_something(files, tmp_path):
    asked = ("decide", files / "more.csv", "--y-prob", "bad", "--threshold")
    assert "Next: calibrant recalibrate choose finds a repair, calibrant report" in call(*asked, "0.3").stdout
    assert "Next: no repair would have saved anything on these rows; calibrant report" in call(*asked, "0").stdout
    assert "Next: calibrant recalibrate choose" in call(*asked, "0", "--threshold", "0.3").stdout
    none = write({"y": np.zeros(200, dtype=int), "p": np.linspace(0.1, 0.9, 200)}, tmp_path / "none.csv", "csv")
    lines = call("decide", none, "--threshold", "0.3").stdout.splitlines()
    (note,) = [place for place, line in enumerate(lines) if line.startswith("Note: every outcome is 0")]
    assert lines[note + 1] == "Next: see to the note first; what it says may be all that is wrong."


def test_a_plan_for_a_limit_that_says_little_leads_to_one_that_does(tmp_path):
    rare = write({"p": predictions(4000, seed=1)["p"] / 50.0}, tmp_path / "rare.csv", "csv")
    lines = call("plan", rare, "--max-error", "0.05").stdout.splitlines()
    assert lines[2].startswith("Caution: Forecasting 0 for everybody would pass this limit of 5.0%")
    assert "use --relative-to events --max-error 0.25" in lines[2]
    assert lines[3] == "Next: plan for the limit that the caution speaks of."


def test_advice_after_a_verdict_on_savings_is_about_acting(files):
    for run, after in (
        ("gap", "Next: act on the forecasts as they are; calibrant decide --threshold says what that loses"),
        ("gap refuted", "Next: calibrant recalibrate choose finds a repair that re-draws the line"),
        ("gap undecided", "Next: judge more fresh rows; calibrant plan --measure risk_gap says how many"),
        ("gap groups", "Next: act on the forecasts as they are"),
        ("gaps", "Next: act on the forecasts as they are"),
    ):
        lines = call(*(part.format(file=files / "more.csv") for part in MORE_RUNS[run])).stdout.splitlines()
        assert any(line.startswith(after) for line in lines), (run, lines)
    lines = call(*(part.format(file=files / "more.csv") for part in MORE_RUNS["gap undecided"])).stdout.splitlines()
    assert lines[0].endswith("saves more than 0.002 per case, at any threshold from 0.1 to 0.3.")
    assert lines[2].startswith("On these rows most is saved ")
    groups = call(*(part.format(file=files / "more.csv") for part in MORE_RUNS["gap groups"])).stdout
    plan = call(*(part.format(file=files / "more.csv") for part in MORE_RUNS["gap plan"])).stdout
    assert "rows certify a risk gap of at most 0.1 per case, at any threshold from 0.1 to 0.3, with 95%" in plan
    assert "the risk gap at threshold 0.3 of every group is at most 0.02 (2 groups, adaptive method)." in groups


def test_errors_without_a_plan_are_not_sent_to_one_and_a_useless_limit_says_so(files):
    asked = ("certify", files / "more.csv", "--y-true", "y", "--y-prob", "good", "--measure")
    for options in ((), ("--by", "g"), ("--groups", "g")):
        said = call(*asked, "ece", "--max-error", "0.1", *options).stdout
        lines = said.splitlines()
        assert said.count("Note: no ECE certificate is possible here, the limit is true but useless: ") == 1
        (after,) = [line for line in lines if line.startswith("Next: ")]
        assert after.startswith("Next: name --measure cutoff before you look at fresh rows"), after
        assert "no number of rows shows the ECE" in after
    said = call(*asked, "distance", "--max-error", "0.03").stdout
    assert "Next: judge more fresh rows; how many it takes for the distance from calibration, calibrant plan" in said
    refused = call("plan", files / "more.csv", "--y-prob", "good", "--max-error", "0.05", "--measure", "distance")
    assert "--measure distance has no plan: its upper limit also counts how forecasts spread" in refused.stderr


def test_a_caution_stands_before_what_to_do_and_takes_the_green_away(files):
    arguments = [part.format(file=files / "more.csv") for part in MORE_RUNS["wide"]]
    lines = call(*arguments).stdout.splitlines()
    (caution,) = [place for place, line in enumerate(lines) if line.startswith("Caution: ")]
    assert lines[caution + 1].startswith("Next: name the limit that the caution speaks of")
    coloured = CliRunner().invoke(main, arguments, color=True).stdout
    assert coloured.startswith("\x1b[33m\x1b[1mCertified\x1b[0m: ")
    grouped = call(*arguments, "--by", "g").stdout
    assert grouped.count("Caution: In ") == 2


def test_verbose_prints_what_the_result_says_of_itself(files):
    large = predictions(4000, seed=1)
    y, p = large["y"], large["p"]
    file = files / "more.csv"
    for words, result in (
        (("certify", file, "--max-error", "0.05"), calibrant.certify(y, p, max_error=0.05)),
        (("measure", file), calibrant.measure(y, p)),
        (("recalibrate", "choose", file, "--parts", "2"), calibrant.compare_recalibrators(p, y, cv=2, rng=0)),
    ):
        with speaking(SHELL):
            expected = f"{result}\n"
        for option in ("--verbose", "-v"):
            assert call(*words, "--y-true", "y", "--y-prob", "good", option).stdout == expected


def test_notes_that_matter_are_said_at_once(tmp_path):
    columns = predictions(2000, seed=6)
    file = write({"y": 1 - columns["y"], "p": columns["p"]}, tmp_path / "t.csv", "csv")
    for words in (("measure", file), ("certify", file, "--max-error", "0.1")):
        assert "Note: events are rarer where forecasts are higher" in call(*words).stdout
    assert "note on these numbers: --verbose." in call("measure", file).stdout


def test_every_verdict_has_its_exit_code():
    assert [outputs.exit_code_of(verdict) for verdict in ("certified", "refuted", "undecided")] == [0, 1, 3]
