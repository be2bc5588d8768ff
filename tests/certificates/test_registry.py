"""A method and a measure are listed once, and everything else follows: shown by adding one of each."""

import ast
import importlib
import json
import math
import re
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from click.testing import CliRunner

import calibrant
from calibrant import CalibrationReport, Cells, CertificateDisplay, Tally, certify, confidence_interval, rows_needed
from calibrant.certificates import Certificate, bracket
from calibrant.certificates.margins import hoeffding_lower_margin
from calibrant.certificates.methods.base import CertificateMethod, MarginMethod
from calibrant.certificates.methods.registry import BRACKETED_METHODS, METHODS, POPULATION_METHODS, Method
from calibrant.classifiers.base import check_judging
from calibrant.core.registry import Registry
from calibrant.measures.judged import JudgedMeasure, Savings, WeightedMeasure
from calibrant.measures.registry import BRACKETED_MEASURES, MEASURES, Measure
from calibrant.measures.witnesses import Witnessing
from calibrant.rows.tally import Totals

SOURCE = Path(calibrant.__file__).parent

RNG = np.random.default_rng(12)
PROB = RNG.random(3000)
TRUE = RNG.random(3000) < PROB
FEW = slice(300)


# --- A toy of each: all that there is to write ------------------------------------------------------------------------


def from_contributing():
    """The examples of CONTRIBUTING.md as they stand there."""
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    known = {
        "math": math,
        "np": np,
        "Tally": Tally,
        "Totals": Totals,
        "Witnessing": Witnessing,
        "WeightedMeasure": WeightedMeasure,
        "MarginMethod": MarginMethod,
        "hoeffding_lower_margin": hoeffding_lower_margin,
    }
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    for block in blocks:
        exec(block, known)
    return known["Cantelli"], known["MeanBias"]


Cantelli, MeanBias = from_contributing()
# The same, with a promise about decisions.
TellingMeanBias = type("TellingMeanBias", (MeanBias,), {"savings": Savings(nondecreasing=7.0, monotone=8.0, any=None)})
CANTELLI: Any = "cantelli"  # type checkers know the names that come with the package
MEAN_BIAS: Any = "mean_bias"
UNHEARD: Any = "unheard of"


@pytest.fixture
def toys():
    METHODS.add("cantelli", "by the largest variance alone", Cantelli())
    MEASURES.add("mean_bias", "size of the mean bias", TellingMeanBias())
    yield
    METHODS.remove("cantelli")
    MEASURES.remove("mean_bias")


@pytest.fixture
def command_line(monkeypatch):
    """The command line as it is when it is first loaded, which is when it looks at the lists."""
    import calibrant.cli

    monkeypatch.setattr(calibrant, "cli", calibrant.cli)  # to be put back
    before = _taken_out()
    main = importlib.import_module("calibrant.cli").main
    yield lambda *arguments: CliRunner().invoke(main, [*map(str, arguments)])
    _taken_out()  # those that were loaded meanwhile belong to each other, not to the ones before
    sys.modules.update(before)


def _taken_out():
    """Forget the modules of the command line, and return them."""
    names = [name for name in sys.modules if name.startswith("calibrant.cli")]
    return {name: sys.modules.pop(name) for name in names}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rows.csv"
    lines = [f"{int(y)},{p!r}" for y, p in zip(TRUE[FEW].tolist(), PROB[FEW].tolist(), strict=True)]
    path.write_text("\n".join(["y_true,y_prob", *lines]))
    return path


# --- What the toys get for free ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("toys")
class TestAMethod:
    def test_certifies(self):
        found = certify(TRUE, PROB, max_error=0.2, method=CANTELLI)
        assert found.verdict == "certified"
        assert found.upper == pytest.approx(found.estimate + math.sqrt(19.0 / 3000))
        assert (found.method, found.target, found.finite_sample) == ("cantelli", "population", True)
        assert str(found).count("cantelli method") == 1
        assert found.assumptions == certify(TRUE, PROB, max_error=0.2, method="hoeffding").assumptions

    def test_certifies_groups_weights_and_other_measures(self):
        by = np.arange(3000) % 3
        groups = certify(TRUE, PROB, max_error=0.3, method=CANTELLI, by=by, sample_weight=1.0 + by)
        assert [each.method for each in groups.certificates] == ["cantelli"] * 3
        measure: Any
        for measure in MEASURES:
            rounded = PROB.round(1)  # so that an ECE means something
            found = confidence_interval(TRUE, rounded, measure=measure, method=CANTELLI)
            assert found.lower <= found.estimate <= found.upper

    def test_plans(self):
        plan = rows_needed(0.1, brier=0.1, method=CANTELLI)
        few, many = (rows_needed(0.1, brier=0.1, method=method).rows for method in ("hoeffding", "paper"))
        assert few < plan.rows < many
        rng = np.random.default_rng(3)
        kept = 0
        for _ in range(200):
            p = np.full(plan.rows, 0.5 - math.sqrt(0.15))
            kept += bool(certify(Tally.from_arrays(rng.random(p.size) < p, p), max_error=0.1, method=CANTELLI))
        assert kept >= 170

    def test_survives_json(self):
        for found in (
            certify(TRUE, PROB, max_error=0.2, method=CANTELLI),
            rows_needed(0.1, brier=0.1, method=CANTELLI),
        ):
            again = type(found).from_json(found.to_json())
            assert type(again) is type(found)
            assert again == found
            assert str(again) == str(found)

    def test_brackets_its_limit_from_cells(self):
        found = bracket(Cells.from_arrays(TRUE, PROB, bits=12), method=CANTELLI)
        limit = certify(TRUE, PROB, max_error=0.2, method=CANTELLI).upper
        assert found.low <= limit <= found.high < found.low + 0.01

    def test_judges_classifiers(self):
        check_judging(0.5, "cantelli")

    def test_is_a_choice_of_the_command_line(self, command_line, file):
        answer = command_line("certify", file, "--max-error", 0.4, "--method", "cantelli", "--json")
        assert answer.exit_code == 0, answer.output
        expected = certify(TRUE[FEW], PROB[FEW], max_error=0.4, method=CANTELLI)
        assert Certificate.from_dict(json.loads(answer.stdout)["result"]).upper == pytest.approx(expected.upper)
        said = " ".join(command_line("certify", "--help").output.split())
        assert "paper|cantelli]" in said
        assert "paper: very wide; cantelli: by the largest variance alone." in said
        planned = command_line("plan", "--max-error", 0.1, "--brier", 0.1, "--method", "cantelli")
        assert planned.exit_code == 0
        assert "(cantelli method)" in planned.output

    def test_has_a_line_in_the_report(self, command_line, file):
        report = CalibrationReport.from_predictions(TRUE[FEW], PROB[FEW], max_error=0.2, method=CANTELLI)
        assert Cantelli.sentence in report.markdown()
        assert Cantelli.sentence in command_line("report", file, "--method", "cantelli", "--format", "md").output

    def test_is_named_where_others_are_refused(self):
        with pytest.raises(ValueError, match="use method='adaptive', 'cantelli', 'hoeffding' or 'normal', or Tally"):
            certify(TRUE, PROB, max_error=0.1, method="paper", sample_weight=PROB)
        with pytest.raises(ValueError, match=r"must be one of .*'paper', 'cantelli', got 'unheard of'"):
            certify(TRUE, PROB, max_error=0.1, method=UNHEARD)


@pytest.mark.usefixtures("toys")
class TestAMeasure:
    @pytest.mark.parametrize("method", ["adaptive", "normal", "hoeffding", "cantelli"])
    def test_is_certified(self, method):
        shifted = 0.9 * PROB
        found = certify(TRUE, shifted, max_error=0.2, measure=MEAN_BIAS, method=method)
        assert found.estimate == pytest.approx(abs((TRUE - shifted).mean()))
        assert found.verdict == "certified"
        assert found.lower < found.estimate < found.upper
        assert f"the size of the mean bias of the population is at most {found.max_error}" in str(found)

    def test_has_a_lower_limit_by_its_weights(self):
        found = confidence_interval(TRUE, PROB**2, measure=MEAN_BIAS, alternative="greater")
        assert 0.1 < found.lower < (TRUE - PROB**2).mean()

    def test_is_refused_by_methods_that_do_not_cover_it(self):
        with pytest.raises(ValueError, match="method='exact' covers measure='cutoff' only, got measure='mean_bias'"):
            certify(TRUE, PROB, max_error=0.2, measure=MEAN_BIAS, method="exact")

    def test_survives_json(self):
        found = certify(TRUE, PROB, max_error=0.2, measure=MEAN_BIAS)
        assert Certificate.from_json(found.to_json()) == found

    def test_is_a_choice_of_the_command_line(self, command_line, file):
        answer = command_line("certify", file, "--max-error", 0.2, "--measure", "mean_bias", "--json")
        assert answer.exit_code == 0, answer.output
        assert json.loads(answer.stdout)["result"]["measure"] == "mean_bias"
        assert "risk_gap, mean_bias)" in " ".join(command_line("compare", "--help").output.split())
        planned = command_line("plan", "--max-error", 0.1, "--brier", 0.1, "--measure", "mean_bias")
        assert planned.exit_code == 0
        assert "rows certify a size of the mean bias of at most 0.1" in planned.output

    def test_is_planned(self):
        plan = rows_needed(0.1, brier=0.1, measure=MEAN_BIAS)
        assert type(plan).from_json(plan.to_json()) == plan
        assert (plan.measure, plan.paper_rows) == ("mean_bias", None)
        rng = np.random.default_rng(3)
        kept = 0
        for _ in range(200):
            p = np.full(plan.rows, 0.5 - math.sqrt(0.15))
            kept += bool(certify(Tally.from_arrays(rng.random(p.size) < p, p), max_error=0.1, measure=MEAN_BIAS))
        assert kept >= 170

    def test_is_measured_and_has_a_line_in_the_report(self, command_line, file):
        size = abs((TRUE[FEW] - PROB[FEW]).mean())
        found = calibrant.measure(TRUE[FEW], PROB[FEW])
        ((name, value),) = found.others
        assert (name, value) == ("mean_bias", pytest.approx(size))
        assert type(found).from_json(found.to_json()) == found
        assert re.search(rf"mean_bias +{size:.5f} +{MeanBias.meaning}", str(found))
        line = f"| Size of the mean bias | {size:.4g} | 0 | {MeanBias.meaning} |"
        assert line in CalibrationReport.from_predictions(TRUE[FEW], PROB[FEW]).markdown()
        assert line in command_line("report", file, "--format", "md").output

    def test_says_what_it_promises_about_decisions(self):
        found = certify(TRUE, PROB, max_error=0.2, measure=MEAN_BIAS)
        promise = calibrant.decision_guarantee(found)
        assert promise.nondecreasing == pytest.approx(7.0 * found.upper)
        assert "It follows from size of the mean bias <=" in str(promise)

    def test_labels_a_display(self):
        display = CertificateDisplay.from_certificates(confidence_interval(TRUE, PROB, measure=MEAN_BIAS))
        assert display.ax_.get_xlabel() == "size of the mean bias of the population"


def test_what_is_not_on_the_list_is_refused():
    measured = calibrant.measure(TRUE, PROB)
    with pytest.raises(ValueError, match="others of this Measures is 'mean_bias', not one of cutoff, smooth"):
        type(measured).from_dict({**measured.to_dict(), "others": [["mean_bias", 0.1]]})
    found = certify(TRUE, PROB, max_error=0.2).to_dict()
    with pytest.raises(ValueError, match="measure of this Certificate is 'mean_bias', not one of cutoff, smooth"):
        Certificate.from_dict({**found, "measure": "mean_bias"})


# --- The lists --------------------------------------------------------------------------------------------------------


def test_names_that_type_checkers_know_are_those_on_the_lists():
    assert get_args(Method) == tuple(METHODS)
    assert get_args(Measure) == tuple(MEASURES)


def test_every_object_has_the_name_under_which_it_is_listed():
    for registry in (METHODS, MEASURES):
        assert [item.name for item in registry.values()] == list(registry)
    assert all(isinstance(method, CertificateMethod) for method in METHODS.values())
    assert all(isinstance(measure, JudgedMeasure) for measure in MEASURES.values())


def test_some_are_chosen_by_what_they_can_do():
    assert list(POPULATION_METHODS) == ["adaptive", "normal", "hoeffding", "paper"]
    assert list(BRACKETED_METHODS) == ["adaptive", "normal", "hoeffding", "paper"]
    assert list(BRACKETED_MEASURES) == ["cutoff", "smooth", "risk_gap"]
    assert len(BRACKETED_MEASURES) == 3
    assert "exact" not in POPULATION_METHODS
    assert ["exact"] not in POPULATION_METHODS


def test_every_method_is_proved_for_measures_that_exist():
    assert {measure for method in METHODS.values() for measure in method.measures} <= set(MEASURES)


def test_a_name_is_listed_once():
    with pytest.raises(ValueError, match="'adaptive' is listed already; choose another name"):
        METHODS.add("adaptive", "once more", Cantelli())
    with pytest.raises(KeyError, match="unheard"):
        METHODS["unheard"]


def test_objects_are_loaded_when_they_are_first_used():
    asked = []

    def load(name):
        asked.append(name)
        return name.upper()

    registry = Registry({"one": "the first", "two": "the second"}, load)
    assert (list(registry), registry.words("two"), "one" in registry, asked) == (["one", "two"], "the second", True, [])
    assert [registry["two"], registry["two"]] == ["TWO", "TWO"]
    assert asked == ["two"]


CHOICES: dict[str, list[tuple[str, Collection[str]]]] = {
    "certificates/verdicts.py": [("method", METHODS), ("measure", MEASURES)],
    "certificates/brackets.py": [("method", BRACKETED_METHODS), ("measure", BRACKETED_MEASURES)],
    "classifiers/certified.py": [("method", POPULATION_METHODS)],
    "classifiers/recalibrated.py": [("method", POPULATION_METHODS)],
    "reports/calibration_report.py": [("method", METHODS)],
}


@pytest.mark.parametrize("module", CHOICES)
def test_docstrings_name_the_choices_there_are(module):
    text = (SOURCE / module).read_text()
    for argument, names in CHOICES[module]:
        (said,) = re.findall(rf"^ +{argument} : {{(.*)}}", text, flags=re.MULTILINE)
        assert sorted(re.findall(r"\w+", said)) == sorted(names)


def test_the_table_of_methods_in_the_docs_says_what_they_are():
    text = (Path(__file__).parents[2] / "docs" / "how-to" / "certify.md").read_text(encoding="utf-8")
    table = re.findall(r'^\| `"(\w+)"`[^|]* \| (.*?) \| (.*?) \| (.*?) \|', text, flags=re.MULTILINE)
    assert {name: told for name, *told in table} == {
        name: [
            "at every n" if method.finite_sample else "for many rows",
            method.target.replace("population", "the population"),
            f"{'fractions' if method.covers_fractions else '0/1'}, {'' if method.covers_weights else 'unit '}weights",
        ]
        for name, method in METHODS.items()
    }


# --- Nobody else compares names ---------------------------------------------------------------------------------------


def words_in(node):
    """Whether an expression is a word, or several."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    return isinstance(node, (ast.Tuple, ast.List, ast.Set)) and any(map(words_in, node.elts))


def is_choice(node):
    """Whether an expression is called method or measure."""
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name in ("method", "measure")


def comparisons(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
            if any(map(is_choice, parts)) and any(map(words_in, parts)):
                yield node.lineno


def test_the_search_finds_what_it_looks_for():
    code = (
        "method == 'exact'\nplan.measure != 'ece'\nmethod in ('paper', 'exact')\n'ece' == x.y.measure\nmethod == other"
    )
    assert list(comparisons(ast.parse(code))) == [1, 2, 3, 4]


def test_no_method_or_measure_is_told_apart_by_its_name():
    found = [
        f"{path.relative_to(SOURCE)}:{line}"
        for path in SOURCE.rglob("*.py")
        for line in comparisons(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []
