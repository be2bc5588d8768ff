"""The package as users meet it: its names, what importing it costs, what the wheel holds, what else it works in."""

import ast
import copy
import importlib
import inspect
import json
import os
import pickle
import pkgutil
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from public_names import EVERYWHERE, HOME, ROOMS, names_of, public
from result_cases import content
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibrant
from calibrant import Cells, Tally

ROOT = Path(__file__).parents[1]
SOURCE = Path(calibrant.__file__).parents[1]
TEMPLATES = SOURCE / "calibrant" / "reports" / "templates"

TOP = [
    "BetaRecalibrator",
    "CalibrantError",
    "CalibrationReport",
    "CalibrationWarning",
    "Cells",
    "CertificateDisplay",
    "CertifiedClassifier",
    "CumulativeDisplay",
    "GuardedRecalibrator",
    "InputError",
    "IsotonicRecalibrator",
    "Monitor",
    "MonitorDisplay",
    "Monitors",
    "PlattRecalibrator",
    "RecalibratedClassifier",
    "ReliabilityDisplay",
    "RollingRecalibrator",
    "Tally",
    "TemperatureRecalibrator",
    "ValidationReport",
    "best_threshold",
    "calibration_test",
    "certify",
    "certify_decisions",
    "check_independence",
    "compare_models",
    "compare_recalibrators",
    "confidence_interval",
    "cutoff_calibration_error",
    "decision_guarantee",
    "decision_risk",
    "distance_from_calibration",
    "expected_calibration_error",
    "horizon",
    "internal_validation",
    "measure",
    "net_benefit",
    "pit_calibration",
    "risk_bands",
    "risk_gap",
    "rows_needed",
    "scan",
    "smooth_calibration_error",
    "threshold_calibration_error",
    "validate",
    "worst_group",
    "worst_interval",
]

PUBLIC = EVERYWHERE

HEAVY = [
    "scipy",
    "scipy.optimize",
    "sklearn",
    "numba",
    "pandas",
    "polars",
    "pyarrow",
    "matplotlib",
    "duckdb",
    "pyspark",
    "torch",
]


def run(code, *, path=SOURCE, **environment):
    """Run code in a fresh interpreter, warnings as errors, and return what it prints as JSON."""
    # Nothing but the given folder on the path, and no cache folder of the surrounding session.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_", "PYTHON"))}
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**inherited, "PYTHONPATH": str(path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


# --- Names ------------------------------------------------------------------------------------------------------------


def test_the_names_at_the_top_are_these():
    assert names_of() == sorted([*TOP, *ROOMS])


def test_every_name_at_the_top_is_one_of_a_room():
    # What goes wrong belongs to all of them.
    assert set(TOP) - set(HOME) == {"CalibrantError", "CalibrationWarning", "InputError"}


def test_no_two_rooms_offer_the_same_name():
    listed = [name for room in ROOMS for name in names_of(room)]
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_resolves_and_is_documented(name):
    value = public(name)
    assert value.__name__ == name
    text = inspect.getdoc(value)
    assert text
    assert not text.startswith(f"{name}(")  # what dataclasses write when nobody wrote anything


FUNCTIONS = [name for name in PUBLIC if inspect.isfunction(public(name))]
BY_POSITION = {
    "cox_slope": ["rows"],
    "horizon": ["time", "event", "y_prob"],
    "mlflow_metric": ["measure"],
    "sql_test": ["table"],
    "to_onnx": ["recalibrator"],
    "affine_costs": [],
    "bracket": ["cells"],
    "by_group": ["source", "compute"],
    "certify_thresholds": ["z"],
    "certify_decisions": ["y_true", "y_prob", "losses"],
    "check_independence": ["y_true", "y_prob", "cluster"],
    "compare_recalibrators": ["y_prob", "y_true"],
    "decision_guarantee": ["certificate", "threshold"],
    "ece_hardness_bound": ["rows"],
    "get_scorer": ["name"],
    "scorer_names": [],
    "effective_support_size": ["y_prob", "gamma"],
    "effective_variance": ["mean_outcome", "gamma"],
    "internal_validation": ["estimator", "X", "y"],
    "new_files": ["folders"],
    "openmetrics": ["reading"],
    "period_of": ["times", "every"],
    "pit_calibration": ["z"],
    "rows_needed": ["max_error"],
    "scan": ["source"],
    "threshold_calibration_error": ["z"],
    "reject_option": [],
    "two_action_question": ["y_true", "y_prob", "losses"],
    "worst_group": ["y_true", "y_prob", "X"],
}  # all others: outcomes and forecasts


def test_what_is_public_is_a_function_a_class_or_the_one_law():
    classes = [name for name in PUBLIC if inspect.isclass(public(name))]
    assert classes == [name for name in PUBLIC if name[0].isupper()]
    assert sorted([*classes, *FUNCTIONS, "brownian_range"]) == sorted(PUBLIC)


@pytest.mark.parametrize("name", [*FUNCTIONS, "brownian_range"])
def test_every_function_and_law_shows_an_example(name):
    assert "Examples\n--------\n>>> " in (inspect.getdoc(public(name)) or "")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_takes_options_by_name_only(name):
    function = public(name)
    by_position = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind not in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    ]
    assert by_position == BY_POSITION.get(name, ["y_true", "y_prob"])


def test_what_is_required_cannot_be_forgotten():
    required = {
        name: [
            parameter.name
            for parameter in inspect.signature(public(name)).parameters.values()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY and parameter.default is inspect.Parameter.empty
        ]
        for name in FUNCTIONS
    }
    assert {name: names for name, names in required.items() if names} == {
        "affine_costs": ["not_acting", "acting"],
        "assert_certified": ["max_error"],
        "certify": ["max_error"],
        "certify_thresholds": ["max_error"],
        "certify_decisions": ["max_regret"],
        "compare_windows": ["period", "windows"],
        "ece_hardness_bound": ["max_error", "confidence_level", "effective_variance"],
        "horizon": ["at"],
        "new_files": ["poll"],
        "reject_option": ["cost"],
        "risk_bands": ["cutoffs"],
        "scan": ["y_true", "y_prob"],
        "sql_test": ["y_true", "y_prob", "max_error"],
        "weighted_calibration_error": ["weight"],
    }


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_every_package_lists_its_public_names(room):
    package = importlib.import_module(f"calibrant.{room}".rstrip("."))
    shown = [name for name in dir(package) if not name.startswith("__")]
    assert shown == package.__all__
    assert shown == sorted([*TOP, *ROOMS] if package is calibrant else names_of(room))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"^module 'calibrant' has no attribute 'nonsense'$"):
        exec("calibrant.nonsense")
    with pytest.raises(ImportError, match="nonsense"):
        exec("from calibrant import nonsense")


@pytest.mark.parametrize("room", ROOMS)
def test_a_name_that_is_one_room_down_is_found_there(room):
    for name in set(names_of(room)) - set(TOP):
        with pytest.raises(
            AttributeError, match=rf"; it is in calibrant\.{room}: from calibrant\.{room} import {name}$"
        ):
            getattr(calibrant, name)


def test_the_overview_names_what_is_there():
    text = (ROOT / "docs" / "overview.md").read_text(encoding="utf-8")
    assert text.count("`") > 100
    rooms = {name: room for room in ROOMS for name in names_of(room) if name not in TOP}
    assert [name for name in re.findall(r"`(\w+)[`(]", text) if name in rooms] == []
    for room, name in re.findall(r"`(\w+)\.(\w+)[`(]", text):
        assert room not in ROOMS or name in names_of(room)


@pytest.mark.parametrize("package", ["calibrant", *(f"calibrant.{room}" for room in ROOMS)])
def test_a_star_import_brings_the_public_names(package):
    namespace: dict[str, Any] = {}
    exec(f"from {package} import *", namespace)
    assert set(namespace) - {"__builtins__"} == set(importlib.import_module(package).__all__)


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_stubs_say_where_names_are_defined(room):
    stub = SOURCE / "calibrant" / room / "__init__.pyi"
    package = f"calibrant.{room}".rstrip(".")
    for statement in ast.parse(stub.read_text()).body:
        if isinstance(statement, ast.ImportFrom) and statement.module and statement.module != package:
            for alias in statement.names:
                assert alias.asname == alias.name  # otherwise type checkers take it for private
                defined = getattr(importlib.import_module(statement.module), alias.name)
                assert defined is getattr(importlib.import_module(package), alias.name)
                assert defined.__module__ == statement.module


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_no_public_name_hides_a_module(room):
    package = importlib.import_module(f"calibrant.{room}".rstrip("."))
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert modules
    assert modules.isdisjoint(TOP if package is calibrant else names_of(room))


# --- What importing and measuring load --------------------------------------------------------------------------------


def test_importing_loads_numpy_at_most():
    loaded = run(f"import json, sys, calibrant; print(json.dumps([m for m in {HEAVY} if m in sys.modules]))")
    assert loaded == []


# Neither an estimator nor a scorer can be defined without it.
ON_SCIKIT_LEARN = {"adapters.scorers", "classifiers", "repairs", "rows.models"}


def test_importing_the_modules_below_estimators_loads_nothing_heavy():
    rooms = {"core", "rows", "measures", "certificates", "comparisons", "decisions", "displays", "reports", "engines"}
    rooms.add("adapters")
    modules = [
        module.name
        for room in sorted(rooms)
        for module in pkgutil.walk_packages(importlib.import_module(f"calibrant.{room}").__path__, f"calibrant.{room}.")
        if not {room, module.name.removeprefix("calibrant.")} & ON_SCIKIT_LEARN
    ]
    assert {"calibrant.certificates.methods.exact", "calibrant.measures.everything"} <= set(modules)
    code = f"""
import importlib, json, sys
for name in {modules}:
    importlib.import_module(name)
print(json.dumps([m for m in {HEAVY} if m in sys.modules]))
"""
    assert run(code) == []


FIRST_USES = {
    "measure": "calibrant.measure(y_true, y_prob).cutoff",
    **{
        f"certify {method}": f"calibrant.certify(y_true, y_prob, max_error=0.05, method={method!r}).estimate"
        for method in ("adaptive", "exact", "normal", "hoeffding", "paper")
    },
    "certify smooth": "calibrant.certify(y_true, y_prob, max_error=0.05, measure='smooth').estimate",
    "certify groups": "calibrant.certify(y_true, y_prob, max_error=0.05, by=y_true).certificates[0].estimate",
    "risk_bands": "calibrant.risk_bands(y_true, y_prob, cutoffs=[0.5]).cutoff_upper",
    "calibration_test": "calibrant.calibration_test(y_true, y_prob, rng=0).statistic",
    "thresholds": "calibrant.threshold_calibration_error(y_prob, ensemble=[[p / 2] * 20 for p in y_prob]).error",
    "certify overlapping groups": "calibrant.certify(y_true, y_prob, max_error=0.05, groups=y_true).estimate",
    "horizon": "calibrant.measure(calibrant.horizon(y_prob[::-1], y_true, y_prob, at=0.5)).cutoff",
    "validate": "calibrant.validate(y_true, y_prob, smoother='isotonic', n_resamples=40).cutoff",
    "worst_group": "calibrant.worst_group(y_true, y_prob, {'x': y_prob[::-1], 'y': y_true}).error",
}


def test_the_first_use_on_a_thousand_rows_compiles_nothing():
    """One process for all of them: what any loads stays loaded, and the first to load it is named."""
    code = f"""
import json, random, sys, calibrant
y_prob = [random.Random(k).random() for k in range(1000)]
y_true = [random.Random(-k - 1).random() < p for k, p in enumerate(y_prob)]
found = {{}}
for name, use in {FIRST_USES}.items():
    error = eval(use)
    found[name] = [error, [m for m in {HEAVY} if m in sys.modules]]
print(json.dumps(found))
"""
    found = run(code)
    assert list(found) == list(FIRST_USES)
    for name, (error, loaded) in found.items():
        assert 0.0 < error < 1.0, name
        assert set(loaded) <= {"scipy"}, name


def test_a_first_report_loads_what_draws_and_neither_compiles_nor_loads_scipy_or_scikit_learn():
    code = f"""
import json, random, sys, calibrant
y_prob = [random.Random(k).random() for k in range(1000)]
y_true = [random.Random(-k - 1).random() < p for k, p in enumerate(y_prob)]
page = calibrant.CalibrationReport.from_predictions(y_true, y_prob, max_error=0.05, name="m").html()
print(json.dumps([len(page), [m for m in {HEAVY} if m in sys.modules]]))
"""
    size, loaded = run(code)
    assert size > 10_000
    assert set(loaded) == {"matplotlib"}


# --- The wheel --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    finished = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def installed(wheel, tmp_path):
    """The wheel unpacked into a folder where nothing can be written."""
    folder = tmp_path / "site-packages"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    # Permissions do not bind root, but nobody can make a folder where a file is.
    (folder / "calibrant" / "core" / "__pycache__").write_text("in the way")
    tree = [folder, *folder.rglob("*")]
    for path in tree:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield folder
    for path in tree:
        path.chmod(0o755)


def test_the_wheel_holds_the_package_its_types_and_its_licence_and_nothing_else(wheel):
    assert wheel.name == f"calibrant-{calibrant.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    metadata = f"calibrant-{calibrant.__version__}.dist-info"
    sources = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "calibrant").rglob("*.py*")
        if path.suffix in (".py", ".pyi")
    }
    templates = {f"calibrant/reports/templates/{path.name}" for path in TEMPLATES.iterdir()}
    assert {"calibrant/reports/templates/report.html.j2", "calibrant/reports/templates/report.js"} <= templates
    assert names == {
        *sources,
        *templates,
        "calibrant/py.typed",
        f"{metadata}/METADATA",
        f"{metadata}/RECORD",
        f"{metadata}/WHEEL",
        f"{metadata}/entry_points.txt",
        f"{metadata}/licenses/LICENSE",
    }


STRAYS = (
    ".env",
    "predictions.csv",
    "report.html",
    "data/patients.parquet",
    "docs/draft.docx",
    "docs/displays/rows.csv",
    "examples/flights.csv",
    "src/calibrant/rows.npz",
    "src/calibrant/reports/templates/report.html.j2.orig",
    "src/notes.py",
    "tests/keys.json",
)


def tracked():
    """The files of the project: those that git knows, or all where a source distribution was unpacked."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if (ROOT / ".git").exists() and listed.returncode == 0:
        return {name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()}
    left_out = {".venv", "dist", "build", "__pycache__"} | {path.name for path in ROOT.glob(".*_cache")}
    paths = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return {path.as_posix() for path in paths if not left_out & set(path.parts)} - {"PKG-INFO"}


@pytest.fixture(scope="module")
def source_distribution(tmp_path_factory):
    """A source distribution, and the wheel of the same folder, in which other files lie about; unpacked."""
    folder = tmp_path_factory.mktemp("project")
    for name in tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    for name in STRAYS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("not for others")
    dist = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(dist)]
    finished = subprocess.run(build, cwd=folder, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    with tarfile.open(next(dist.glob("*.tar.gz"))) as archive:
        archive.extractall(dist, filter="data")
    return dist / f"calibrant-{calibrant.__version__}", next(dist.glob("*.whl"))


def test_the_source_distribution_holds_the_project_and_nothing_that_lies_about(source_distribution):
    unpacked, _ = source_distribution
    found = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    assert found == tracked() | {"PKG-INFO"}


def test_a_wheel_holds_nothing_that_lies_about_and_can_be_built_from_the_source_distribution(
    source_distribution, wheel, tmp_path
):
    unpacked, untidy = source_distribution
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    finished = subprocess.run(build, cwd=unpacked, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    (again,) = tmp_path.glob("*.whl")
    assert again.read_bytes() == untidy.read_bytes() == wheel.read_bytes()


def test_the_source_distribution_can_be_tested(source_distribution):
    unpacked, _ = source_distribution
    run = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "tests/reports/test_omissions.py",  # quick, and goes through most rooms
    ]
    environment = {**os.environ, "PYTHONPATH": str(unpacked / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    finished = subprocess.run(run, cwd=unpacked, env=environment, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stdout


def test_the_wheel_says_what_it_needs(wheel):
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(f"calibrant-{calibrant.__version__}.dist-info/METADATA").decode()
    header = metadata.split("\n\n")[0].splitlines()
    assert "Requires-Python: >=3.11" in header
    assert "License-Expression: BSD-3-Clause" in header
    assert {line for line in header if line.startswith("Provides-Extra: ")} == {
        "Provides-Extra: all",
        "Provides-Extra: cli",
        "Provides-Extra: spark",
    }
    needed = [
        line.removeprefix("Requires-Dist: ") for line in header if line.startswith("Requires-Dist") and ";" not in line
    ]
    assert {match[0] for requirement in needed if (match := re.match(r"[\w-]+", requirement))} == {
        "numba",
        "numpy",
        "scikit-learn",
        "scipy",
        "threadpoolctl",
    }


def test_pytest_finds_the_plugin_of_the_wheel(installed, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_ADDOPTS": ""}
    run = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir=.", "--calibrant-report=reports"]
    finished = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert finished.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, finished.stderr
    assert "no test called assert_certified" in finished.stdout


# Enough rows that a loop is compiled which nothing stands in for.
MEASURE_MANY = """
import json, sys, calibrant, numpy as np
rng = np.random.default_rng(0)
y_prob = rng.random(20_000)
result = calibrant.measures.bounded_variation_spectrum(rng.random(20_000) < y_prob, y_prob)
print(json.dumps([calibrant.__file__, "numba" in sys.modules, *result.error[[0, 1, 10, 100, -1]]]))
"""


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(0)
    y_prob = rng.random(20_000)
    result = calibrant.measures.bounded_variation_spectrum(rng.random(20_000) < y_prob, y_prob)
    return pytest.approx(result.error[[0, 1, 10, 100, -1]].tolist(), abs=1e-13)


@pytest.mark.parametrize(
    "call",
    [
        "calibrant.measure(y, p)",
        "calibrant.certify(y, p, max_error=0.05)",
        "calibrant.certify(y, p, max_error=0.05, sample_weight=1.0 + p)",
        "calibrant.cutoff_calibration_error(y, p)",
    ],
)
def test_the_first_answer_of_100_000_rows_waits_for_no_compiler(call):
    program = f"""
import json, sys, calibrant, numpy as np
rng = np.random.default_rng(0)
p = rng.random(100_000)
y = rng.random(100_000) < p
{call}
print(json.dumps("numba" in sys.modules))
"""
    assert run(program) is False


def test_a_read_only_installation_keeps_compiled_code_in_the_users_own_folder(installed, tmp_path, many):
    home = tmp_path / "home"
    home.mkdir()
    file, compiled, *values = run(MEASURE_MANY, path=installed, HOME=str(home))
    assert Path(file).is_relative_to(installed)
    assert compiled
    assert values == many
    assert list(home.rglob("*.nbi")), "numba wrote no cache index below the home folder"
    assert not list(installed.rglob("*.nbi"))


def test_without_any_folder_to_write_to_code_is_compiled_in_memory(installed, tmp_path, many):
    home = tmp_path / "home"
    home.write_text("a file, below which nothing can be written, not even by root")
    file, compiled, *values = run(MEASURE_MANY, path=installed, HOME=str(home))
    assert Path(file).is_relative_to(installed)
    assert compiled
    assert values == many


def test_the_version_to_cite_is_the_version_of_the_package():
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", citation, flags=re.MULTILINE) == [calibrant.__version__]


def test_the_changelog_dates_the_version_of_the_package_as_its_citation_does():
    released = re.findall(r"^date-released: (.*)$", (ROOT / "CITATION.cff").read_text(), flags=re.MULTILINE)
    newest = re.findall(r"^## \[(\d.*?)\] - (.*)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[0]
    assert [newest] == [(calibrant.__version__, *released)]


def test_the_paper_cites_what_its_bibliography_lists():
    text = (ROOT / "paper" / "paper.md").read_text()
    listed = re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text(), flags=re.MULTILINE)
    assert sorted(set(re.findall(r"(?<![\w.])@(\w+)", text))) == sorted(listed)


# --- Pickling and copying ---------------------------------------------------------------------------------------------

ROWS = ([0, 0, 1, 0, 1, 1, 1, 0], [0.25, 0.25, 0.25, 0.75, 0.75, 0.75, 0.5, 0.5])
WEIGHTS = [1.0, 2.0, 0.5, 1.0, 1.0, 3.0, 0.25, 1.0]

OBJECTS: dict[str, Callable[[], Any]] = {
    "Tally": lambda: Tally.from_arrays(*ROWS),
    "weighted Tally": lambda: Tally.from_arrays(*ROWS, sample_weight=WEIGHTS),
    "Cells": lambda: Cells.from_arrays(*ROWS, bits=3),
    "Measures": lambda: calibrant.measure(*ROWS, spectrum=True),
    "GroupMeasures": lambda: calibrant.measure(*ROWS, by=list("aabbaabb"), sample_weight=WEIGHTS),
    "WorstInterval": lambda: calibrant.worst_interval(*ROWS),
    "Witness": lambda: calibrant.measures.smooth_witness(*ROWS),
    "Spectrum": lambda: calibrant.measures.bounded_variation_spectrum(*ROWS),
    "CalibrationDistance": lambda: calibrant.distance_from_calibration(*ROWS),
    "CalibrationSlope": lambda: calibrant.measures.calibration_slope_intercept(*ROWS),
    "CalibrationTests": lambda: calibrant.measures.likelihood_ratio_tests(*ROWS),
    "Estimate": lambda: calibrant.measures.auroc(*ROWS, confidence_level=0.95),
    "CurveErrors": lambda: calibrant.measures.integrated_calibration_index(*ROWS),
    "CalibrationCurve": lambda: calibrant.measures.calibration_curve(*ROWS),
    "Certificate": lambda: calibrant.certify(*ROWS, max_error=0.1),
    "GroupCertificates": lambda: calibrant.certify(*ROWS, max_error=0.1, by=list("aabbaabb"), sample_weight=WEIGHTS),
    "ConfidenceInterval": lambda: calibrant.confidence_interval(*ROWS, method="normal"),
    "RiskBands": lambda: calibrant.risk_bands(*ROWS, cutoffs=[0.5]),
    "RowsNeeded": lambda: calibrant.rows_needed(0.05, brier=0.1),
    "CalibrationTest": lambda: calibrant.calibration_test(*ROWS, n_resamples=999, rng=0),
    "DecisionRisk": lambda: calibrant.decision_risk(*ROWS, threshold=[0.25, 0.5]),
    "RiskGap": lambda: calibrant.risk_gap(*ROWS, threshold=0.5),
    "RiskGapCurve": lambda: calibrant.decisions.risk_gap_curve(*ROWS),
    "MurphyCurve": lambda: calibrant.decisions.murphy_curve(*ROWS),
    "BestThreshold": lambda: calibrant.best_threshold(*ROWS, threshold=0.5),
    "ScoreDecomposition": lambda: calibrant.decisions.score_decomposition(*ROWS, score="log"),
    "NetBenefit": lambda: calibrant.net_benefit(*ROWS),
}


@cache
def made(name):
    return OBJECTS[name]()


WAYS = {
    "oldest pickle": lambda value: pickle.loads(pickle.dumps(value, protocol=0)),
    "newest pickle": lambda value: pickle.loads(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("name", OBJECTS)
def test_copies_hold_what_the_original_holds(name, way):
    value = made(name)
    twin = way(value)
    assert type(twin) is type(value)
    assert content(twin) == content(value)
    assert content(value)  # and that is not nothing
    assert repr(twin) == repr(value)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_a_copied_tally_measures_and_merges_like_the_original(way):
    tally = OBJECTS["weighted Tally"]()
    twin = way(tally)
    assert calibrant.measure(twin) == calibrant.measure(tally)
    assert (twin + tally).weight.tolist() == (2 * tally.weight).tolist()
    cells = OBJECTS["Cells"]()
    assert (way(cells) + cells).rows.tolist() == (2 * cells.rows).tolist()


# --- Inside scikit-learn ----------------------------------------------------------------------------------------------

SCORES: dict[str, dict[str, Any]] = {
    "cutoff_calibration_error": {},
    "ks_calibration_error": {},
    "smooth_calibration_error": {},
    "bounded_variation_calibration_error": {"variation": 4.0},
    "expected_calibration_error": {"n_bins": 10, "strategy": "quantile"},
    "calibration_in_the_large": {},
    "observed_expected_ratio": {},
    "intercept_at_unit_slope": {},
    "auroc": {},
    "brier_score": {},
    "scaled_brier_score": {},
    "weighted_calibration_error": {"weight": np.cos},
}


def test_every_float_measure_is_tried_as_a_score():
    annotated = {
        name
        for name in FUNCTIONS
        if name not in BY_POSITION and public(name).__annotations__["return"] in ("float", "float | Estimate")
    }
    assert annotated == set(SCORES)


@pytest.mark.parametrize("name", SCORES)
def test_measures_are_scores_for_scikit_learn(name):
    features, outcomes = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    function, options = public(name), SCORES[name]
    scorer = make_scorer(function, response_method="predict_proba", greater_is_better=False, **options)
    scores = cross_val_score(model, features, outcomes, scoring=scorer, cv=3, error_score="raise")
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()
    half = len(outcomes) // 2
    model.fit(features[:half], outcomes[:half])
    held_out = features[half:], outcomes[half:]
    forecasts = model.predict_proba(held_out[0])[:, 1]
    assert scorer(model, *held_out) == -function(held_out[1], forecasts, **options)
    weights = np.linspace(0.5, 2.0, forecasts.size)
    assert scorer(model, *held_out, sample_weight=weights) == -function(
        held_out[1], forecasts, sample_weight=weights, **options
    )


@pytest.mark.parametrize("event", ["malignant", "benign"])
def test_a_score_of_string_labels_names_the_event(event):
    data = load_breast_cancer()
    labels = data.target_names[data.target]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(data.data, labels)
    scorer = make_scorer(
        calibrant.cutoff_calibration_error, response_method="predict_proba", greater_is_better=False, pos_label=event
    )
    column = model.predict_proba(data.data)[:, list(model.classes_).index(event)]
    assert scorer(model, data.data, labels) == -calibrant.cutoff_calibration_error(labels == event, column)
