"""The GitHub action and the pre-commit hook, run as others run them: installed from a copy of this repository.

What they depend on is not downloaded again: the environments that they make find it where the tests find it.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import calibrant

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
GUIDE = ROOT / "docs" / "how-to" / "ci-gate.md"
BUILT_FROM = ("LICENSE", "README.md", "pyproject.toml", ".pre-commit-hooks.yaml", "action.yml", "src")

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("git") is None, reason="runs shell scripts of Unix, and git"
)


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """What calibrant is built from, in a folder of its own."""
    folder = tmp_path_factory.mktemp("calibrant")
    for name in BUILT_FROM:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A home of one's own, and packages that are already there; pip installs calibrant itself, and nothing else."""
    home = tmp_path_factory.mktemp("home")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PIP_", "PYTHON"))}
    return {
        **kept,
        "HOME": str(home),
        "PRE_COMMIT_HOME": str(home / "pre-commit"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{f"GIT_{who}_{what}": "nobody" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        "PIP_NO_COMPILE": "true",
        "PIP_NO_BUILD_ISOLATION": "false",  # which pip takes for "none"
        "PIP_NO_DEPS": "true",
        "PIP_NO_INDEX": "true",
        "PYTHONPATH": sysconfig.get_path("purelib"),
    }


def write_predictions(folder, model):
    rng = np.random.default_rng(0)
    forecast = rng.random(2000)
    outcome = rng.random(2000) < forecast
    shown = np.sqrt(forecast) if model == "bad" else forecast
    rows = zip(outcome.astype(int).tolist(), shown.tolist(), strict=True)
    header = f"{'elsewhere' if model == 'broken' else 'the outcome'},forecast,the patient"
    lines = [header, *(f"{y},{p!r},{place // 4}" for place, (y, p) in enumerate(rows)), ""]
    (folder / "predictions.csv").write_text("\n".join(lines))


def read_predictions(folder):
    return np.loadtxt(folder / "predictions.csv", delimiter=",", skiprows=1).T


def documented(what):
    """Return the configurations of the guide that mention something."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), flags=re.M | re.S)
    return [block for block in blocks if what in block]


# --- The action -------------------------------------------------------------------------------------------------------

EXPRESSION = re.compile(r"\$\{\{ inputs\.([\w-]+) \}\}")


def run_step(step: dict[str, Any], given: dict[str, str], folder: Path, environment: dict[str, str]):
    """Run a step as GitHub runs it."""
    inputs = {name: each.get("default") for name, each in ACTION["inputs"].items()} | given
    named = {name: EXPRESSION.sub(lambda found: inputs[found[1]], text) for name, text in step["env"].items()}
    assert not any("${{" in text for text in [step["run"], *named.values()])
    assert step["shell"] == "bash"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env={**environment, **named},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def runner(copied, environment, tmp_path_factory):
    """A machine on which the first step, which installs calibrant, was run."""
    temporary = tmp_path_factory.mktemp("runner")
    files = {name: str(temporary / name) for name in ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    machine = {**environment, **files, "RUNNER_TEMP": str(temporary), "GITHUB_ACTION_PATH": str(copied)}
    installed = run_step(ACTION["runs"]["steps"][0], {"python": sys.executable}, temporary, machine)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    said = dict(line.split("=", 1) for line in Path(files["GITHUB_ENV"]).read_text().splitlines())
    where = [f"{said['CALIBRANT_FOLDER']}/python", "-c", "import calibrant; print(calibrant.__file__)"]
    found = subprocess.run(where, cwd=temporary, env=machine, capture_output=True, text=True, check=True).stdout
    assert Path(found).is_relative_to(temporary)  # it is the copy that is judged by
    return {**machine, **said}


@pytest.fixture
def run_action(runner, tmp_path):
    """Run the step that judges, and return how it ended, with its outputs."""

    def run(model, **given):
        write_predictions(tmp_path, model)
        Path(runner["GITHUB_OUTPUT"]).write_text("")
        inputs = {
            "file": "predictions.csv",
            "max-error": "0.05",
            "y-true": "the outcome",
            "y-prob": "forecast",
            **given,
        }
        judged = run_step(ACTION["runs"]["steps"][1], inputs, tmp_path, runner)
        return judged, dict(line.split("=", 1) for line in Path(runner["GITHUB_OUTPUT"]).read_text().splitlines())

    return run


@pytest.mark.parametrize(
    ("model", "verdict", "code", "side"), [("good", "certified", 0, "at most"), ("bad", "refuted", 1, "above")]
)
def test_the_action_passes_with_a_good_model_only(run_action, tmp_path, model, verdict, code, side):
    judged, outputs = run_action(model)
    assert judged.returncode == code, judged.stderr
    assert outputs["verdict"] == verdict
    expected = calibrant.certify(*read_predictions(tmp_path)[:2], max_error=0.05)
    assert float(outputs["upper"]) == pytest.approx(expected.upper, abs=1e-12)
    said = f"{verdict}: at confidence level 0.95 the error is {side} 0.05; its upper limit is {outputs['upper']}\n"
    assert judged.stderr.endswith(said)


def test_the_action_says_what_limits_are_shares_of(run_action):
    judged, outputs = run_action("good", arguments="--relative-to events", **{"max-error": "0.01"})
    assert judged.returncode == 3
    said = (
        "undecided: at confidence level 0.95 the error is perhaps above 0.01 times the event rate; its upper limit is "
    )
    assert judged.stderr.endswith(f"{said}{outputs['upper']} times the event rate\n")


def test_the_action_reads_several_files(run_action, tmp_path):
    (tmp_path / "parts").mkdir()
    write_predictions(tmp_path, "bad")
    for part in "ab":
        shutil.copy(tmp_path / "predictions.csv", tmp_path / "parts" / f"{part}.csv")
    judged, outputs = run_action("good", file="parts/*.csv")
    assert outputs["verdict"] == "refuted", judged.stderr


@pytest.mark.parametrize("between", [" ", "\n", "\r\n  ", "\n\n"], ids=repr)
def test_the_action_takes_further_arguments(run_action, tmp_path, between):
    arguments = between.join(["--confidence-level 0.9", "--method hoeffding", "--cluster 'the patient'", ""])
    judged, outputs = run_action("good", arguments=arguments, **{"max-error": "0.02"})
    assert judged.returncode == 3
    assert outputs["verdict"] == "undecided"
    outcome, forecast, patient = read_predictions(tmp_path)
    asked = {"confidence_level": 0.9, "method": "hoeffding", "cluster": patient}
    expected = calibrant.certify(outcome, forecast, max_error=0.02, **asked)
    assert float(outputs["upper"]) == pytest.approx(expected.upper, abs=1e-12)


def test_the_action_certifies_nothing_where_clusters_should_count_and_cannot(run_action, tmp_path):
    generator = np.random.default_rng(4)
    site, forecast = np.repeat(np.arange(80), 15), generator.uniform(0.3, 0.7, 1200)
    outcome = generator.random(1200) < forecast + generator.choice([-0.25, 0.25], 80)[site]
    rows = zip(outcome.astype(int).tolist(), forecast.tolist(), site.tolist(), strict=True)
    lines = ["the outcome,forecast,site", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "sites.csv").write_text("\n".join(lines))
    arguments = "--relative-to events --check-clusters site"
    judged, outputs = run_action("good", file="sites.csv", arguments=arguments, **{"max-error": "0.9"})
    assert judged.returncode == 3, judged.stderr
    assert outputs == {"verdict": "undecided", "upper": "Infinity"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"file": ""}, r"Error: FILE is an empty text; pass the path of a file"),
        ({"arguments": "--help"}, r"Error: calibrant certify judged nothing; leave out arguments that ask for"),
        ({"arguments": "--method normal --cluster 'the patient"}, r"Error: a quote in arguments has no end"),
        ({"arguments": "--cluster C:\\patient"}, r"has no column 'C:\\\\patient'"),
    ],
    ids=str,
)
def test_what_asks_for_no_verdict_gets_none(run_action, given, message):
    judged, outputs = run_action("good", **given)
    assert judged.returncode == 2
    assert re.search(message, judged.stderr)
    assert "Traceback" not in judged.stderr
    assert outputs == {}


def test_the_action_stops_at_bad_input_and_runs_nothing_that_is_written_in_it(run_action, tmp_path):
    judged, outputs = run_action("broken")
    assert judged.returncode == 2
    assert "the outcome" in judged.stderr
    assert outputs == {}
    for given in ({"file": "$(touch stolen)"}, {"max-error": "0.05; touch stolen"}, {"arguments": "; touch stolen"}):
        assert run_action("good", **given)[0].returncode == 2
    assert not (tmp_path / "stolen").exists()


def test_the_report_follows_whatever_the_verdict(runner, run_action, tmp_path):
    given = {"file": "predictions.csv", "max-error": "0.05", "y-true": "the outcome"}
    given["arguments"] = "--confidence-level 0.9\n--cluster 'the patient'"
    assert run_action("bad", **given)[1]["verdict"] == "refuted"
    certify, report = ACTION["runs"]["steps"][1:]
    shown = run_step(report, given, tmp_path, runner)
    assert shown.returncode == 0, shown.stderr
    summary = Path(runner["GITHUB_STEP_SUMMARY"]).read_text()
    assert "\n## Refuted" in summary
    assert "with 90% confidence" in summary
    assert "500 clusters" in summary
    assert report["if"] == "always() && inputs.report == 'true' && steps.certify.outputs.verdict != ''"
    assert certify["id"] == "certify"
    assert {name: each["value"] for name, each in ACTION["outputs"].items()} == {
        name: f"${{{{ steps.certify.outputs.{name} }}}}" for name in ("verdict", "upper")
    }


def test_the_documented_step_is_one_of_the_action():
    ((step,),) = map(yaml.safe_load, documented("uses: OWNER/calibrant@"))
    assert step["uses"] == f"OWNER/calibrant@v{calibrant.__version__}"
    assert step["with"].keys() <= ACTION["inputs"].keys()
    required = {name for name, each in ACTION["inputs"].items() if each.get("required")}
    assert required <= step["with"].keys()


# --- The hook ---------------------------------------------------------------------------------------------------------


def test_the_hook_refuses_a_commit_of_bad_predictions(copied, environment, tmp_path):
    version = f"v{calibrant.__version__}"

    def git(folder, *arguments):
        command = ["git", "-c", "init.defaultBranch=main", *arguments]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    def done(folder, *arguments):
        finished = git(folder, *arguments)
        assert finished.returncode == 0, finished.stdout + finished.stderr

    for arguments in (["init"], ["add", "--all"], ["commit", "--message", version], ["tag", version]):
        done(copied, *arguments)
    # As documented, with the address of the copy.
    (configuration,) = documented("calibrant-certify")
    assert f"rev: {version}\n" in configuration
    configuration = re.sub(r"repo: \S+", f"repo: {copied}", configuration).replace(
        "--y-true, outcome", "--y-true, the outcome"
    )
    (tmp_path / ".pre-commit-config.yaml").write_text(configuration)
    done(tmp_path, "init")
    installed = [sys.executable, "-m", "pre_commit", "install"]
    subprocess.run(installed, cwd=tmp_path, env=environment, capture_output=True, check=True)

    write_predictions(tmp_path, "bad")
    done(tmp_path, "add", "--all")
    refused = git(tmp_path, "commit", "--message", "bad")
    assert refused.returncode == 1
    assert re.search(r"certify calibration\.+Failed", refused.stderr), refused.stderr
    assert "Refuted: with 95% confidence" in refused.stderr
    write_predictions(tmp_path, "good")
    done(tmp_path, "add", "--all")
    accepted = git(tmp_path, "commit", "--message", "good")
    assert accepted.returncode == 0, accepted.stderr
    assert re.search(r"certify calibration\.+Passed", accepted.stderr)
    (tmp_path / "notes.txt").write_text("")  # no predictions, no judgement
    done(tmp_path, "add", "--all")
    assert re.search(r"certify calibration\.+.*Skipped", git(tmp_path, "commit", "--message", "notes").stderr)
