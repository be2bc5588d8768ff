"""`assert_certified`, and the pytest plugin that keeps what it finds."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import calibrant
from calibrant.adapters import assert_certified
from calibrant.adapters.assertions import Judged
from calibrant.adapters.pytest_plugin import _ON_A_PAGE, _unknown_to_a_page

SOURCE = Path(calibrant.__file__).parents[1]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    forecast = rng.random(2000)
    return rng.random(2000) < forecast, forecast


def test_what_is_certified_is_returned(rows):
    assert assert_certified(*rows, max_error=0.05) == calibrant.certify(*rows, max_error=0.05)
    assert assert_certified(calibrant.Tally.from_arrays(*rows), max_error=0.05).verdict == "certified"


@pytest.mark.parametrize("verdict", ["refuted", "undecided"])
def test_the_failure_is_the_certificate_in_words(rows, verdict):
    outcome, forecast = rows
    asked: dict[str, Any] = {"max_error": 0.02, "confidence_level": 0.9, "measure": "smooth"}
    if verdict == "refuted":
        forecast = np.sqrt(forecast)
    with pytest.raises(AssertionError) as found:
        assert_certified(outcome, forecast, **asked)
    certificate = calibrant.certify(outcome, forecast, **asked)
    assert certificate.verdict == verdict
    assert str(found.value) == str(certificate)
    assert str(found.value).startswith(verdict.capitalize())


def test_groups_fail_together(rows):
    outcome, forecast = rows
    with pytest.raises(AssertionError, match=r"^Refuted: .* in a \(2 groups"):
        assert_certified(
            outcome, np.where(forecast < 0.5, 0.0, forecast), max_error=0.05, by=np.where(forecast < 0.5, "a", "b")
        )


def test_bad_input_is_no_verdict(rows):
    outcome, forecast = rows
    with pytest.raises(calibrant.InputError, match=r"^y_prob\[0\] is .*, outside \[0, 1\]"):
        assert_certified(outcome, 100 * forecast + 2, max_error=0.05)
    with pytest.raises(calibrant.InputError) as found:
        assert_certified(outcome, 100 * forecast + 2, max_error=0.05)
    assert len(found.traceback) == 2  # the test, and the assertion, which pytest hides
    with pytest.raises(TypeError, match="maximum_error"):
        assert_certified(outcome, forecast, max_error=0.05, maximum_error=0.1)


# --- The plugin -------------------------------------------------------------------------------------------------------

SUITE = """
import numpy as np
import pytest
from calibrant.adapters import assert_certified

rng = np.random.default_rng(0)
forecast = rng.random(2000)
outcome = rng.random(2000) < forecast


@pytest.fixture
def checked():
    assert_certified(outcome, forecast, max_error=0.4)


def test_good(checked):
    assert_certified(outcome, forecast, max_error=0.05)


@pytest.mark.parametrize("power", [0.5, 2])
def test_bad(power):
    assert_certified(outcome, forecast**power, max_error=0.05, measure="smooth")


def test_silent():
    pass
"""


@pytest.fixture
def run_pytest(tmp_path):
    """Run a suite in a process of its own, as strangers do, with no plugin but ours and those that are named.

    Inside this one, pytester would take modules away again that compiled code cannot do without.
    """

    def run(*arguments, suite=SUITE, plugins=()):
        (tmp_path / "test_model.py").write_text(suite)
        named = [part for name in ("calibrant.adapters.pytest_plugin", *plugins) for part in ("-p", name)]
        finished = subprocess.run(
            [sys.executable, "-W", "error", "-m", "pytest", *named, "-p", "no:cacheprovider", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        return finished.returncode, finished.stdout + finished.stderr

    return run


def test_reports_are_collected_and_listed(run_pytest, tmp_path):
    code, said = run_pytest("--calibrant-report=found/here")
    assert code == 1
    _, _, listed = said.partition("= calibrant =")
    listed = listed.partition("= short test summary")[0]
    assert listed.count("Certified: ") == 2
    assert listed.count("Refuted: ") == 2
    assert "Caution: " in listed  # a limit of 0.4 says little
    assert "test_silent" not in listed
    assert "(no page, which does not cover measure)" in listed
    files = sorted((tmp_path / "found" / "here").iterdir())
    assert [file.suffix for file in files] == [".json", ".json", ".html", ".json", ".html", ".json"]
    assert [file.suffix for file in files if file.stem.endswith("-2")] == [".html", ".json"]  # the second verdict
    for file in files:
        assert str(Path("found", "here", file.name)) in listed
        if file.suffix == ".json":
            record = json.loads(file.read_text())
            assert calibrant.certificates.Certificate.from_dict(record).verdict == record["verdict"]
        else:
            assert "test_model.py::test_good" in file.read_text()


def test_verdicts_of_other_processes_are_listed(run_pytest, tmp_path):
    _, said = run_pytest("--calibrant-report=found", "-k", "bad", "-n", "2", plugins=["xdist"])
    assert "test_model.py::test_bad[0.5]\n  Refuted: " in said
    assert "test_model.py::test_bad[2]\n  Refuted: " in said
    assert len(list((tmp_path / "found").glob("*.json"))) == 2


def test_the_traceback_ends_in_the_test(run_pytest):
    code, said = run_pytest("-k", "bad and 2")
    assert code == 1
    assert "assertions.py" not in said
    assert "E       AssertionError: Refuted: with 95% confidence the smooth calibration error" in said
    assert "= calibrant =" not in said


def test_verdicts_are_properties_of_tests(run_pytest, tmp_path):
    run_pytest("--junitxml=found.xml", "-k", "good or silent")
    cases = {case.get("name"): case for case in ElementTree.parse(tmp_path / "found.xml").iter("testcase")}
    kept = [each.get("value", "") for each in cases["test_good"].iter("property") if each.get("name") == "calibrant"]
    assert [line.split(":")[0] for line in kept] == ["Certified", "Caution", "Certified"]
    assert not list(cases["test_silent"].iter("property"))


def test_pytest_starts_without_anything_heavy(run_pytest):
    suite = """
import sys


def test_nothing():
    assert "calibrant.adapters.pytest_plugin" in sys.modules
    assert not {"numpy", "scipy", "sklearn", "numba"} & set(sys.modules)
"""
    code, said = run_pytest(suite=suite)
    assert code == 0, said


def test_a_verdict_is_listed_with_what_makes_its_rows_suspect(run_pytest):
    _, said = run_pytest(
        "--calibrant-report=found",
        "-k",
        "good",
        suite=SUITE.replace("outcome, forecast, max", "outcome, forecast > 0.5, max"),
    )
    assert "Note: every forecast is exactly 0 or 1: perhaps these are predicted classes." in said


def test_a_suite_that_asserts_nothing_is_told_so(run_pytest):
    code, said = run_pytest("--calibrant-report=found", "-k", "silent")
    assert code == 0
    assert "no test called assert_certified" in said


def test_a_folder_that_cannot_be_is_refused_before_anything_runs(run_pytest, tmp_path):
    (tmp_path / "taken").write_text("")
    code, said = run_pytest("--calibrant-report=taken")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "cannot make the folder taken: " in said


@pytest.mark.parametrize("folder", ["", " "])
def test_a_folder_without_a_name_is_refused_before_anything_runs(run_pytest, tmp_path, folder):
    code, said = run_pytest(f"--calibrant-report={folder}")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "--calibrant-report is an empty text; name the folder of the reports, as in --calibrant-report=rep" in said
    assert [file.name for file in tmp_path.iterdir()] == ["test_model.py"]


@pytest.mark.parametrize("processes", ["one", "two"])
def test_tests_may_go_to_other_folders(run_pytest, tmp_path, processes):
    suite = """
import numpy as np
from calibrant.adapters import assert_certified

rng = np.random.default_rng(0)
forecast = rng.random(2000)
outcome = rng.random(2000) < forecast


def test_elsewhere(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert_certified(outcome, forecast, max_error=0.05)
"""
    several = {"one": ((), ()), "two": (("-n", "2"), ("xdist",))}[processes]
    code, said = run_pytest("--calibrant-report=found", *several[0], suite=suite, plugins=several[1])
    assert code == 0, said
    files = sorted((tmp_path / "found").iterdir())
    assert [file.suffix for file in files] == [".html", ".json"]
    for file in files:
        assert f"\n  {Path('found', file.name)}\n" in said


@pytest.mark.parametrize("warned", [True, False], ids=["warnings are shown", "warnings are errors"])
@pytest.mark.parametrize("lost", ["page", "folder"])
def test_what_cannot_be_written_does_not_replace_a_verdict(run_pytest, tmp_path, lost, warned):
    suite = """
import shutil
import numpy as np
import calibrant
from calibrant.adapters import assert_certified

rng = np.random.default_rng(0)
forecast = rng.random(2000)
outcome = rng.random(2000) < forecast


def fail(*_):
    raise RuntimeError("no pages today")


if LOST == "page":
    calibrant.CalibrationReport.write_html = fail


def test_good():
    if LOST == "folder":
        shutil.rmtree("found")
    assert_certified(outcome, forecast, max_error=0.05)


def test_bad():
    assert_certified(outcome, forecast**2, max_error=0.05)
"""
    shown = ("-W", "default") if warned else ()
    code, said = run_pytest("--calibrant-report=found", *shown, suite=suite.replace("LOST", repr(lost)))
    assert code == 1
    assert "1 failed, 1 passed" in said
    assert "E       AssertionError: Refuted: with 95% confidence the Cutoff calibration error" in said
    what = "RuntimeError: no pages today" if lost == "page" else "FileNotFoundError: "
    assert f"(not written: {what}" in said
    assert (f"PytestWarning: --calibrant-report: {what}" in said) == warned
    assert len(list(tmp_path.glob("found/*.json"))) == (2 if lost == "page" else 0)


def test_pages_are_for_the_installed_only(run_pytest, tmp_path):
    (tmp_path / "conftest.py").write_text("")
    (tmp_path / "without.py").write_text("import sys\nsys.modules['jinja2'] = None\n")
    code, said = run_pytest("--calibrant-report=found", plugins=["without"])
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "needs jinja2; install" in said


CLASSES = ["a", "b", "c"]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"confidence_level": 0.9, "method": "normal", "relative_to": "events", "rng": 3},
        {"classes": CLASSES},
        {"cluster": True},
    ],
    ids=str,
)
def test_a_page_has_the_certificate_of_its_assertion(rows, options: dict[str, Any]):
    outcome, forecast = rows
    assert options.keys() <= _ON_A_PAGE
    if "classes" in options:
        forecast = np.stack([forecast / 2, forecast / 2, 1 - forecast], axis=1)
        outcome = np.where(outcome, np.where(np.arange(2000) % 2, "a", "b"), "c")
    if "cluster" in options:
        options = {"cluster": np.arange(2000) // 4}
    report = calibrant.CalibrationReport.from_predictions(outcome, forecast, max_error=0.3, **options)
    asked = calibrant.certify(outcome, forecast, max_error=0.3, **options)
    # A note on what is asked of classes stands elsewhere on the page.
    assert report.summary.models[0].certificate == replace(asked, notes=asked.notes if "classes" not in options else ())


def unknown_to_a_page(y_true, y_prob, **options):
    options["max_error"] = 0.5
    return _unknown_to_a_page(Judged(calibrant.certify(y_true, y_prob, **options), y_true, y_prob, options))


@pytest.mark.parametrize(
    "options",
    [
        {"variation": float("2.0"), "measure": "cutoff", "by": None},
        {"rng": np.int64(3)},
        {"questions": "confidence"},
        {"questions": "confidence", "classes": CLASSES},
    ],
    ids=str,
)
def test_a_page_is_written_where_it_asks_the_same(rows, options: dict[str, Any]):
    outcome, forecast = rows
    if "questions" in options:
        forecast = np.stack([forecast / 2, forecast / 2, 1 - forecast], axis=1)
        outcome = np.where(outcome, np.where(np.arange(2000) % 2, "a", "b"), "c")
    assert unknown_to_a_page(outcome, forecast, **options) == []
    shared = {name: value for name, value in options.items() if name in _ON_A_PAGE}
    report = calibrant.CalibrationReport.from_predictions(outcome, forecast, max_error=0.5, **shared)
    certificate = calibrant.certify(outcome, forecast, max_error=0.5, **options)
    found = report.summary.models[0].certificate
    assert found is not None
    assert (found.estimate, found.lower, found.upper) == (certificate.estimate, certificate.lower, certificate.upper)


def test_no_page_is_written_where_it_asks_something_else(rows):
    outcome, forecast = rows
    assert unknown_to_a_page(outcome, forecast, measure="bounded_variation", variation=3.0) == ["measure", "variation"]
    assert unknown_to_a_page(outcome, forecast, rng=np.random.default_rng(0)) == ["rng that is no whole number"]
    assert unknown_to_a_page(outcome, forecast, by=np.arange(2000) % 2) == ["by"]
    two = np.stack([1 - forecast, forecast], axis=1)
    # A page on two classes is about the second of them, not about the top label.
    assert unknown_to_a_page(outcome, two, questions="confidence") == ["questions"]
    assert unknown_to_a_page(outcome, two, questions="classwise") == ["questions"]
