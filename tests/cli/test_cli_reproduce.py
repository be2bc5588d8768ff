"""``calibrant reproduce``: what goes where, and with which exit code."""

import json
import sys

import pytest
from click.testing import CliRunner

from calibrant.cli import main
from calibrant.cli.reproduce import _bar
from calibrant.experiments import EXPERIMENTS, Statement, runner


def call(*arguments):
    return CliRunner().invoke(main, ["reproduce", *arguments])


def test_the_list_names_every_experiment():
    found = call("--list")
    assert found.exit_code == 0
    assert [line.split()[0] for line in found.stdout.splitlines()] == list(EXPERIMENTS)
    assert json.loads(call("--list", "--json").stdout)[0] == {
        "name": "bands",
        "item": "Section 2",
        "title": "Cutoff bounds the bias inside every risk band",
    }


def test_one_experiment_as_sentences_writes_nothing_unless_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = call("platt", "--runs", "5")
    assert found.exit_code == 0
    assert found.stdout.count("  agrees: ") == 4
    assert found.stderr.startswith("platt: ")
    assert list(tmp_path.iterdir()) == []


def test_json_is_one_document_on_standard_output(tmp_path):
    found = call("simulation", "--stream", "authors", "--runs", "50", "--json", "--out", str(tmp_path))
    assert found.exit_code == 0
    document = json.loads(found.stdout)
    assert set(document["correlations"]) == {"risk_gap", "monotone_risk_gap"}
    assert set(document["correlations"]["risk_gap"]) == {"smooth", "cutoff", "ece"}
    assert document["settings"]["stream"] == "authors"
    assert len(document["data"]["cutoff"]) == 50
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".csv", ".json", ".png", ".svg"]
    assert json.loads((tmp_path / "simulation.json").read_text()) == document


def test_several_experiments_are_one_document_too():
    found = call("platt", "examples", "platt", "--runs", "4", "--rng", "7", "--json")
    document = json.loads(found.stdout)
    assert list(document["reports"]) == ["platt", "examples"]
    assert document["holds"] is True
    assert document["reports"]["platt"]["settings"] == {"rng": 7, "runs": 4, "stream": "ours"}


def test_all_runs_everything_and_writes_an_index(tmp_path, monkeypatch):
    few = {name: EXPERIMENTS[name] for name in ("examples", "bands")}
    monkeypatch.setattr("calibrant.experiments.EXPERIMENTS", few)
    found = call("all", "--runs", "4", "--out", str(tmp_path), "--json")
    assert found.exit_code == 0
    assert list(json.loads(found.stdout)["reports"]) == list(few)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"index.html", "index.md", "bands.png", "examples.svg"} <= names
    assert 'src="bands.svg"' in (tmp_path / "index.html").read_text()
    assert "![Cutoff bounds the bias" in (tmp_path / "index.md").read_text()


def test_a_result_that_does_not_hold_is_exit_code_1(monkeypatch):
    import dataclasses

    true = runner.run("examples")
    false = dataclasses.replace(true, statements=(Statement("nowhere", "the paper", "0 = 1", "0", False),))
    monkeypatch.setattr("calibrant.experiments.run", lambda *_: false)
    found = call("examples")
    assert found.exit_code == 1
    assert "DOES NOT AGREE: nowhere" in found.stdout
    assert json.loads(call("examples", "--json").stdout)["holds"] is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "say which experiment: one or more of bands, relations"),
        (["nonsense"], "'nonsense' is none of bands, relations"),
        (["platt", "--runs", "1"], "--runs"),
        (["platt", "--rng", "-1"], "--rng"),
        (["platt", "--stream", "authors"], "only the simulation has a stream of the authors"),
        (["simulation", "--stream", "theirs"], "--stream"),
    ],
)
def test_bad_input_is_exit_code_2(arguments, message):
    found = call(*arguments)
    assert found.exit_code == 2
    assert message in found.stderr.replace("\n", " ")
    assert found.stdout == ""


def test_a_terminal_sees_a_bar_and_its_parts_are_all_passed_on(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert list(_bar("platt")(range(5))) == [0, 1, 2, 3, 4]
