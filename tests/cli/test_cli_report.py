"""``calibrant report``: what is written where, and what the exit code says."""

import json
import re

import pytest
from cli_cases import answer, call, documented, fits, write_files
from table_cases import predictions

import calibrant


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather", "npz", "jsonl", "-"])
def test_every_format_and_standard_input_give_the_same_report(kind, files):
    stdin = (files / "t.csv").read_bytes() if kind == "-" else None
    file = "-" if kind == "-" else files / f"t.{kind}"
    found = call("report", file, "--format", "md", stdin=stdin)
    assert found.exit_code == 0
    assert found.stdout == call("report", files / "t.csv", "--format", "md").stdout


def test_the_page_is_the_librarys_and_is_written_whole(files, tmp_path):
    out = tmp_path / "report.html"
    found = call("report", files / "t.csv", "--title", "<b>Sepsis</b>", "--out", out)
    assert found.exit_code == 0
    assert re.match(rf"Wrote {re.escape(str(out))}\.\n<b>Sepsis</b>\n", found.stdout)
    page = out.read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "<b>Sepsis</b>" not in page
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(("name", "start"), [("r.md", "# "), ("r.json", '{"schema"'), ("r.htm", "<!DOCTYPE html>")])
def test_the_name_says_what_to_write(name, start, files, tmp_path):
    assert call("report", files / "t.csv", "--out", tmp_path / name).exit_code == 0
    assert (tmp_path / name).read_text().startswith(start)


def test_the_document_is_as_documented(files, tmp_path):
    tables = documented()
    columns = ("--y-prob", "p", "--y-prob", "worse", "--by", "ward")
    document = answer("report", files / "t.csv", *columns, "--out", tmp_path / "r.json")
    expected = {**tables["all"], **tables["report"]}
    assert set(document) == set(expected)
    for key, words in expected.items():
        assert fits(document[key], words), (key, words)
    assert [model["name"] for model in document["result"]["models"]] == ["p", "worse"]
    summary = json.loads((tmp_path / "r.json").read_text())
    assert {name: value for name, value in summary.items() if name != "schema"} == document["result"]


@pytest.mark.parametrize(
    ("options", "exit_code"),
    [
        (("--y-prob", "bad"), 0),
        (("--y-prob", "bad", "--max-error", "0.05"), 1),
        (("--y-prob", "good", "--max-error", "0.05"), 0),
        (("--y-prob", "good", "--y-prob", "bad", "--max-error", "0.05"), 1),
    ],
)
def test_the_exit_code_is_a_verdict_only_when_a_limit_is_given(options, exit_code, files, tmp_path):
    out = tmp_path / "r.md"
    found = call("report", files / "large.csv", "--y-true", "y", *options, "--out", out, "--quiet")
    assert (found.exit_code, found.output) == (exit_code, "")
    assert out.exists()


def test_a_group_that_is_not_certified_counts(files, tmp_path):
    columns = predictions()
    limit = calibrant.certify(columns["y"], columns["p"], max_error=1.0).upper + 0.001
    arguments = ("report", files / "t.csv", "--max-error", limit, "--out", tmp_path / "r.md", "-q")
    assert call(*arguments).exit_code == 0
    assert call(*arguments, "--by", "ward").exit_code == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--out", "r.pdf"), "--out r.pdf does not end in .html, .md or .json; say what to write with --format"),
        (("--format", "pdf"), "'pdf' is not one of 'html', 'md', 'json'"),
        (("--out", "no/such/folder/r.html"), "cannot be written: there is no folder no/such/folder"),
        (("--threshold", "1"), "1.0 is not in the range"),
    ],
)
def test_bad_options_are_exit_code_2(options, message, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = call("report", files / "t.csv", *options)
    assert found.exit_code == 2
    assert message in found.stderr
    assert list(tmp_path.iterdir()) == []
