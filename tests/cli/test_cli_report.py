"""``calibrant report``: what is written where, and what the exit code says."""

import datetime
import io
import json
import re
import sys

import pytest
from cli_cases import answer, call, documented, fits, write_files
from table_cases import predictions

import calibrant
from calibrant.cli import main
from calibrant.cli.outputs import BadInput


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather", "npz", "jsonl", "-"])
def test_every_format_and_standard_input_give_the_same_report(kind, files):
    stdin = (files / "t.csv").read_bytes() if kind == "-" else None
    file = "-" if kind == "-" else files / f"t.{kind}"
    options = ("--format", "md", "--date", "2026-03-31")
    found = call("report", file, *options, stdin=stdin)
    assert found.exit_code == 0
    named = "" if kind == "-" else f"t.{kind}, "
    assert f"\n\n{named}2026-03-31\n\n" in found.stdout
    said = found.stdout.replace(f"t.{kind}", "t.csv")
    expected = call("report", files / "t.csv", *options).stdout
    if kind == "-":  # which has no name to say
        expected = expected.replace("t.csv, ", "").replace("    source='t.csv',\n", "")
    assert said == expected


def test_the_page_is_the_librarys_and_is_written_whole(files, tmp_path):
    out = tmp_path / "report.html"
    found = call("report", files / "t.csv", "--title", "<b>Sepsis</b>", "--out", out)
    assert found.exit_code == 0
    assert re.match(rf"Wrote {re.escape(str(out))}\.\n<b>Sepsis</b>\n", found.stdout)
    page = out.read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "<b>Sepsis</b>" not in page
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.usefixtures("without_plots")
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
        (("--y-prob", "good", "--max-error", "0.001"), 3),
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
    assert call(*arguments, "--by", "ward").exit_code == 3
    page = (tmp_path / "r.md").read_text()
    assert "## Undecided. Overall no range of forecasts is off by more than" in page
    assert "**Next:** Judge more rows of these groups" in page


def test_without_a_limit_there_is_no_verdict(files, tmp_path):
    for options in ((), ("--by", "ward"), ("--y-prob", "p", "--y-prob", "worse")):
        out = tmp_path / "r.md"
        found = call("report", files / "t.csv", *options, "--out", out)
        assert found.exit_code == 0
        for text in (found.stdout, out.read_text()):
            assert "Measured, no limit chosen" in text
            assert "docs/how-to/choose-max-error.md" in text
            assert not re.search("certified|refuted|undecided", text, re.IGNORECASE)


@pytest.mark.usefixtures("without_plots")
def test_a_page_is_never_printed_on_a_terminal(files, monkeypatch):
    class Terminal(io.TextIOWrapper):
        def isatty(self):
            return True

    def run(*options):
        printed = io.BytesIO()
        screen = Terminal(printed, encoding="utf-8")
        monkeypatch.setattr(sys, "stdout", screen)
        code = main(["report", str(files / "t.csv"), *options], standalone_mode=False)
        screen.flush()
        return code, printed.getvalue().decode()

    with pytest.raises(BadInput, match=r"write it to a file with --out report\.html, or read it with --format md"):
        run()
    code, printed = run("--format", "md")
    assert (code, printed[:2]) == (0, "# ")
    code, printed = run("--json")
    assert code == 0
    assert json.loads(printed)["format"] == "html"


@pytest.mark.usefixtures("without_plots")
def test_the_day_is_told_or_looked_up(files, monkeypatch):
    def day(*options):
        return answer("report", files / "t.csv", *options)["result"]["date"]

    assert day("--date", "2026-03-31") == "2026-03-31"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert day() == "1970-01-02"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    assert "SOURCE_DATE_EPOCH is 'soon'" in call("report", files / "t.csv").stderr
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert abs(datetime.date.fromisoformat(day()) - datetime.datetime.now(tz=datetime.UTC).date()).days <= 1


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
