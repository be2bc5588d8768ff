"""The command line as a program: how it looks, what its help teaches, what starting it loads, how it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_cases import ROOT, SOURCE, call, write_files
from click.testing import CliRunner
from table_cases import write

import calibrant
from calibrant.cli import COMMANDS, main, outputs


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("files"))


# --- How it looks -----------------------------------------------------------------------------------------------------


def test_verdicts_are_coloured_on_a_terminal_only_and_never_against_the_users_wish(files):
    arguments = ["certify", str(files / "large.csv"), "--y-true", "y", "--y-prob", "good", "--max-error", "0.05"]
    coloured = CliRunner().invoke(main, arguments, color=True)
    assert coloured.stdout.startswith("\x1b[32m\x1b[1mCertified\x1b[0m: with 95% confidence")
    plain = CliRunner(env={"NO_COLOR": "1"}).invoke(main, arguments, color=True)
    assert "\x1b" not in plain.stdout
    table = CliRunner().invoke(main, [*arguments[:-1], "0.001", "--by", "y"], color=True)
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


def test_names_of_groups_cannot_steer_the_terminal(tmp_path):
    columns = {"y": [0, 1] * 20, "p": [0.25, 0.75] * 20, "by": ["\x1b[2Jgone", "two lines"] * 20}
    file = write(columns, tmp_path / "[red]t.parquet", "parquet")
    for command in (("measure",), ("certify", "--max-error", "0.9"), ("decide", "--threshold", "0.5")):
        found = CliRunner().invoke(main, [command[0], str(file), *command[1:], "--by", "by"], color=True)
        assert found.exit_code == 0
        assert "\x1b[2J" not in found.output
        assert r"\x1b[2Jgone" in found.stdout


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
            assert inner is not None
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


@pytest.mark.skipif(
    not Path("/proc/self/maps").exists(),
    reason="needs Linux's /proc, to see the program load",
)
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


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_is_offered_as_documented(name):
    variable = f"_CALIBRANT_COMPLETE={name}_source"
    assert variable in (ROOT / "docs" / "reference" / "cli.md").read_text()
    found = CliRunner().invoke(main, prog_name="calibrant", env={"_CALIBRANT_COMPLETE": f"{name}_source"})
    assert "_CALIBRANT_COMPLETE" in found.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [("calibrant cer", ["certify"]), ("calibrant recalibrate a", ["apply"]), ("calibrant test --le", ["--level"])],
)
def test_commands_and_options_are_completed(words, expected):
    environment = {
        "_CALIBRANT_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    found = CliRunner().invoke(main, prog_name="calibrant", env=environment)
    assert found.stdout.split() == [f"plain,{word}" for word in expected]


def test_the_version_is_that_of_the_package():
    assert call("--version").stdout == f"calibrant, version {calibrant.__version__}\n"


def test_without_click_the_remedy_is_named_and_it_is_no_verdict():
    code = "import sys; sys.modules['click'] = None\nimport calibrant.__main__"
    found = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": SOURCE}, capture_output=True, text=True, check=False
    )
    assert found.returncode == 2
    assert found.stderr == "the command line needs click; install it with: pip install 'calibrant[cli]'\n"
