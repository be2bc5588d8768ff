"""The shell examples of the documentation: each command runs, and prints what the page shows."""

import contextlib
import doctest
import io
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from table_cases import write

import calibrant
from calibrant.cli import main
from calibrant.cli.columns import FORECAST_NAMES, OUTCOME_NAMES, PREDICTION_NAMES

ROOT = Path(__file__).parents[2]
PAGES = [
    path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if "```console" in path.read_text()
]
TEXT = (ROOT / "docs" / "reference" / "cli.md").read_text()
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def execute(command, last):
    """Run one line of a console block, and return what a terminal would show and the exit code."""
    words = shlex.split(command)
    if command == "echo $?":
        return f"{last}\n", 0
    if words[0] == "calibrant":
        called = CliRunner().invoke(main, words[1:])
        return called.output, called.exit_code
    if words[0] == "python":
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            runpy.run_path(words[1])
        return shown.getvalue(), 0
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    return found.stdout + found.stderr, found.returncode


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for script in blocks(page, "python"):
        named = re.match(r"# (\w+\.py)\n", script)
        if named:
            Path(named[1]).write_text(script)
    last = 0
    for block in blocks(page, "console"):
        for part in re.split(r"(?m)^\$ ", block)[1:]:
            command, _, wanted = part.partition("\n")
            shown, last = execute(command, last)
            assert doctest.OutputChecker().check_output(wanted, shown, FLAGS), f"$ {command}\n{shown}"


def test_pages_with_commands_are_found():
    assert {"tutorial.md", "cli.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize(("number", "names"), [(1, OUTCOME_NAMES), (2, FORECAST_NAMES), (3, PREDICTION_NAMES)])
def test_the_page_lists_the_names_by_which_columns_are_recognised(number, names):
    (rule,) = re.findall(rf"(?ms)^{number}\. .*?;$", TEXT)
    assert re.findall(r"`(\w+)`", rule) == list(names)


# --- The gate ---------------------------------------------------------------------------------------------------------

GATE = ROOT / "docs" / "how-to" / "ci-gate.md"


@pytest.fixture
def shell(tmp_path):
    """Run a script as a build does, with the program on the path and predictions of a good or a bad model."""
    program = tmp_path / "bin" / "calibrant"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m calibrant "$@"\n')
    program.chmod(0o755)
    environment = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(calibrant.__file__).parents[1]),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }

    def run(script, model):
        rng = np.random.default_rng(0)
        forecast = rng.random(2000)
        columns = {"outcome": (rng.random(2000) < forecast).astype(int), "forecast": forecast}
        if model == "bad":
            columns["forecast"] = np.sqrt(forecast)
        if model == "broken":
            del columns["outcome"]
        write(columns, tmp_path / "predictions.csv", "csv")
        return subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def workflow_step(name):
    """Return the shell lines of a step of the documented workflow, without those that install things."""
    workflow = blocks(GATE, "yaml")[0]
    (script,) = re.findall(rf"- name: {name}\n(?: +if: .*\n)? +run: \|\n((?: {{10}}.*\n?)+)", workflow)
    return "\n".join(line.strip() for line in script.splitlines() if not line.strip().startswith("pip "))


EXIT_CODES = {"good": 0, "bad": 1, "broken": 2}


@pytest.mark.parametrize("model", EXIT_CODES)
def test_the_documented_build_passes_with_a_good_model_only(model, shell):
    found = shell(workflow_step("The model must be certified"), model)
    assert found.returncode == EXIT_CODES[model], found.stderr
    assert found.stdout.startswith({"good": "Certified: ", "bad": "Refuted: ", "broken": ""}[model])


def test_the_documented_build_shows_its_report_whatever_the_verdict(shell, tmp_path):
    assert shell(workflow_step("Report"), "bad").returncode == 0
    assert "refuted" in (tmp_path / "summary.md").read_text().lower()


@pytest.mark.parametrize("model", EXIT_CODES)
def test_the_documented_script_keeps_the_verdict_and_stops_at_bad_input_only(model, shell, tmp_path):
    found = shell(blocks(GATE, "bash")[0], model)
    assert found.returncode == (1 if model == "broken" else 0), found.stderr
    if model != "broken":
        verdict = json.loads((tmp_path / "verdict.json").read_text())["result"]["verdict"]
        assert verdict == {"good": "certified", "bad": "refuted"}[model]


def test_the_hook_installs_what_the_command_line_needs():
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    assert 'additional_dependencies: [".[cli]"]' in text
    assert "language: python" in text
