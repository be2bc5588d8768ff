"""Names from outside are shown as what they are: no terminal, page or reader obeys anything in them."""

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_cases import call
from click.testing import CliRunner
from table_cases import write

import calibrant
from calibrant.cli import main, outputs
from calibrant.core.words import printable

EVIL = "north\nCertified: all\x1b[2J\x1b]0;title\x07\r\x9b31m \u202e50.0\u2066 \u2028[red]|\x00#x"
SHOWN = r"north\nCertified: all\x1b[2J\x1b]0;title\x07\r\x9b31m \u202e50.0\u2066 \u2028[red]|\x00#x"
FILE = "rows\nCertified: all\x1b[2J[red]\u202e.parquet"
FILE_SHOWN = r"rows\nCertified: all\x1b[2J[red]\u202e.parquet"
PLAIN = "plain, ÄÖÜ, 北京, \N{GRINNING FACE} and \u00a0spaces\u3000"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (PLAIN, PLAIN),
        (EVIL, SHOWN),
        ("a\udcffb", r"a\udcffb"),
        (12.5, "12.5"),
        (None, "None"),
    ],
)
def test_what_is_obeyed_is_escaped_and_all_else_kept(text, shown):
    assert printable(text) == shown


def test_line_breaks_stay_where_a_text_has_lines():
    assert printable("one\ntwo\r\n\x85", lines=True) == "one\ntwo\\r\n\\x85"


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(2)
    p = rng.random(400)
    return {"y": (rng.random(400) < p).astype(int), "p": p, "by": np.where(rng.random(400) < 0.5, EVIL, "south")}


@pytest.fixture
def file(rows, tmp_path):
    return write(rows, tmp_path / FILE, "parquet")


QUESTIONS = {
    "measure": ("measure", "--max-error", "0.0001", "--by", "by"),
    "certify": ("certify", "--max-error", "0.9", "--by", "by"),
    "refuted": ("certify", "--max-error", "0", "--by", "by"),
    "test": ("test", "--resamples", "999", "--by", "by", "--level", "0.9999"),
    "decide": ("decide", "--threshold", "0.5", "--by", "by"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_no_answer_of_a_command_holds_what_a_terminal_obeys(file, name):
    command, *options = QUESTIONS[name]
    found = CliRunner().invoke(main, [command, str(file), *options], color=True)
    assert found.exit_code in (0, 1, 3), found.output
    assert SHOWN in found.stdout
    plain = re.sub("\x1b\\[(3[0-9]|1|0)m", "", found.stdout)  # colours of calibrant's own
    assert not OBEYED.search(plain)
    assert not OBEYED.search(found.stderr)
    verdicts = [line for line in plain.splitlines() if line.startswith("Certified:")]
    assert len(verdicts) == (1 if name == "certify" else 0)
    again = json.loads(call(command, file, *options, "--json").stdout)
    groups = again["result"]["groups"] if command == "certify" else [each["group"] for each in again["groups"]]
    assert EVIL in groups  # JSON stays exact


def test_names_of_columns_and_models(rows, tmp_path):
    columns = {"y": rows["y"], EVIL: rows["p"], "certified": np.sqrt(rows["p"])}
    file = write(columns, tmp_path / "t.parquet", "parquet")
    arguments = ["compare", str(file), "--y-true", "y", "--y-prob", EVIL.replace("\0", ""), "--y-prob", "certified"]
    for found in (call(*arguments), call("measure", file, "--y-true", "y")):
        assert found.exit_code == 2  # no such column, for a command line cannot hold a zero, and which is it?
        assert found.stdout == ""
        assert not OBEYED.search(found.stderr)
    columns = {"y": rows["y"], "p\x1b[2J\nCertified: q": rows["p"], "q": np.sqrt(rows["p"])}
    file = write(columns, tmp_path / "u.parquet", "parquet")
    chosen = ["--y-true", "y", "--y-prob", "p\x1b[2J\nCertified: q", "--y-prob", "q"]
    found = call("compare", file, *chosen, "--max-error", "0.9")
    assert found.exit_code == 0
    assert r"p\x1b[2J\nCertified: q" in found.stdout
    assert not OBEYED.search(found.output)
    assert len(re.findall("(?m)^Certified:", found.stdout)) == 1


def test_a_model_that_calls_itself_certified_begins_no_line(rows, tmp_path):
    columns = {"y": rows["y"], "Certified": np.zeros(400) + 0.01, "q": np.sqrt(rows["p"])}
    file = write(columns, tmp_path / "t.parquet", "parquet")
    chosen = ["--y-true", "y", "--y-prob", "Certified", "--y-prob", "q"]
    arguments = ["report", str(file), *chosen, "--out", str(tmp_path / "r.md"), "--max-error", "0.001"]
    found = CliRunner().invoke(main, arguments, color=True)
    assert found.exit_code == 1
    assert "\nModel Certified:\n" in found.stdout
    assert "\x1b[32m" not in found.stdout  # nothing is green


def test_names_in_errors_and_remarks(file, tmp_path):
    found = call("measure", file, "--y-true", "none")
    assert found.exit_code == 2
    assert FILE_SHOWN in found.stderr
    assert not OBEYED.search(found.stderr)
    remarks = call("measure", file).stderr
    assert FILE_SHOWN in remarks
    assert remarks.count("\n") == 2
    for arguments in (("--debug", "--y-true", "none"), (file,)):
        found = call("measure", file, *arguments)
        assert found.exit_code == 2
        assert not OBEYED.search(found.stderr), found.stderr
    (tmp_path / FILE).write_bytes(b"not Parquet")
    assert not OBEYED.search(call("measure", tmp_path / FILE).stderr)


def test_names_inside_of_nested_columns(tmp_path):
    nested = pa.array([{"\x1b[2JCertified": 1}] * 4)
    pq.write_table(pa.table({"y": [0, 1, 0, 1], "p": nested}), tmp_path / "t.parquet")
    found = call("measure", tmp_path / "t.parquet", "--y-true", "y", "--y-prob", "p")
    assert found.exit_code == 2
    assert "STRUCT" in found.stderr
    assert not OBEYED.search(found.stderr)


def test_names_on_the_line_that_says_what_is_going_on(monkeypatch):
    from rich.progress import Progress

    said = []
    add = Progress.add_task

    def noted(self, text, **options):
        said.append(text)
        return add(self, text, **options)

    monkeypatch.setattr(Progress, "add_task", noted)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with outputs.working(f"reading {EVIL}"):
        pass
    assert said == [f"reading {SHOWN}"]


def test_what_is_written_is_said_on_one_line(file, tmp_path):
    out = tmp_path / "out\nCertified: all.json"
    found = call("recalibrate", "fit", file, "--out", out)
    assert found.exit_code == 0
    assert r"out\nCertified: all.json" in found.stdout
    assert "\nCertified" not in found.stdout
    missing = call("recalibrate", "fit", file, "--out", tmp_path / "gone\x1b[2J" / "m.json")
    assert not OBEYED.search(missing.stderr)


def test_results_say_names_on_one_line(rows):
    result = calibrant.certify(rows["y"], rows["p"], by=rows["by"], max_error=0.0)
    assert result.groups[0] == EVIL
    for text in (str(result), repr(result), result._repr_html_()):
        assert not OBEYED.search(text)
        assert "\nCertified" not in text
    ways = {EVIL: calibrant.PlattRecalibrator()}
    compared = calibrant.compare_recalibrators(rows["p"], rows["y"], candidates=ways, cv=2)
    for text in (str(compared), repr(compared), *map(str, compared.candidates)):
        assert not OBEYED.search(text)
    assert SHOWN in str(compared)


@pytest.fixture(scope="module")
def report(rows):
    models = {EVIL: rows["p"], "other": np.sqrt(rows["p"])}
    return calibrant.CalibrationReport.from_predictions(rows["y"], models, by=rows["by"], title=EVIL, max_error=0.0)


def test_a_report_says_names_on_one_line_in_every_form(report):
    for text in (str(report), repr(report), report.markdown(), report.json()):
        assert not OBEYED.search(text)
        assert "\nCertified" not in text
        assert "\n#x" not in text
    assert json.loads(report.json())["title"] == EVIL
    page = report.html()
    assert not OBEYED.search(page.replace("\t", " "))
    assert r"north\nCertified: all\x1b[2J" in page


def test_tables_in_markdown_keep_their_shape(report):
    lines = report.markdown().splitlines()
    for heading, cells in (("| model | verdict", 7), ("| group | rows", 7)):
        start = next(number for number, line in enumerate(lines) if line.startswith(heading))
        for line in lines[start + 2 : start + 4]:
            assert line.startswith("| ")
            assert len(re.findall(r"(?<!\\)\|", line)) == cells
