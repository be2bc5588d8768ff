"""Censored outcomes on the command line: every format, the library's numbers, and what is refused."""

import json

import numpy as np
import pytest
from cli_cases import answer, call
from table_cases import FORMATS, write

import calibrant

RNG = np.random.default_rng(0)
SCORE = RNG.normal(size=300)
TIME, LOST = RNG.exponential(5.0 * np.exp(-SCORE)), RNG.exponential(8.0, 300)
CODE = np.where(TIME > LOST, 0, 1 + (RNG.random(300) < 0.2))
DATA = {
    "years": np.minimum(TIME, LOST),
    "status": CODE,
    "p": 1.0 / (1.0 + np.exp(-SCORE)),
    "worse": 1.0 / (1.0 + np.exp(-2.0 * SCORE)),
    "ward": np.where(np.arange(300) % 2 == 0, "east", "west"),
}
ASKED = ("--time", "years", "--event", "status", "--at", "3", "--competing", "2", "--y-prob", "p")


def rows(**options):
    return calibrant.horizon(DATA["years"], CODE, DATA["p"], at=3.0, competing=2, **options)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write(DATA, tmp_path_factory.mktemp("censored") / "t.csv", "csv")


@pytest.mark.parametrize("kind", FORMATS)
def test_numbers_are_the_librarys_from_every_format(kind, tmp_path):
    path = write(DATA, tmp_path / f"t.{kind}", kind)
    found = answer("measure", path, *ASKED)
    expected = calibrant.measure(rows())
    for name in ("cutoff", "brier", "observed_expected_ratio", "rows"):
        assert found["result"][name] == pytest.approx(getattr(expected, name), rel=1e-9)
    assert found["horizon"]["risk"] == pytest.approx(rows().risk, rel=1e-9)
    assert found["horizon"]["censored"] == rows().outcome.censored
    asked = {name: found["input"][name] for name in ("time", "event", "at", "competing", "rows")}
    assert asked == {"time": "years", "event": "status", "at": 3.0, "competing": [2.0], "rows": 300}


def test_a_file_that_would_be_scanned_is_read(file):
    found = answer("measure", file, *ASKED, "--memory-limit", "1GB")
    assert found["result"]["cutoff"] == pytest.approx(calibrant.measure(rows()).cutoff, rel=1e-9)


def test_the_answer_begins_with_the_risk_and_has_few_lines(file):
    called = call("measure", file, *ASKED)
    assert called.exit_code == 0
    lines = called.stdout.splitlines()
    assert lines[0] == str(rows()).split("\n")[0]
    assert sum(not line.startswith("  ") for line in lines) <= 6
    assert "calibrant certify" not in called.stdout  # which refuses such rows
    grouped = call("measure", file, *ASKED, "--by", "ward", "--verbose")
    assert grouped.exit_code == 0
    assert "Per group of 'ward'" in grouped.stdout


@pytest.mark.parametrize("forecasts", [("p",), ("p", "worse")])
def test_a_report_takes_them_and_says_what_is_approximate(forecasts, file, tmp_path):
    named = [word for name in forecasts for word in ("--y-prob", name)]
    out = tmp_path / "r.md"
    called = call("report", file, *ASKED[:8], *named, "--max-error", "0.3", "--out", out)
    assert called.exit_code == 3, called.output  # no guarantee holds, so nothing is decided
    assert "without a guarantee" in out.read_text()
    stored = json.loads(call("report", file, *ASKED[:8], *named, "--format", "json").stdout)
    assert [each["horizon"]["risk"] for each in stored["models"]] == [pytest.approx(rows().risk)] * len(forecasts)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--event", "status", "--at", "3"), "--event needs --time, the column of how long"),
        (("--event", "status", "--time", "years"), "--event needs --at, the horizon"),
        (("--at", "3"), "--at is about censored outcomes; name their column with --event"),
        (("--competing", "2"), "--competing is about censored outcomes"),
        (("--time", "years"), "--time is how long rows were followed; name what ended that with --event"),
        ((*ASKED, "--y-true", "status"), "--y-true does not go with --event"),
        ((*ASKED, "--weight", "years"), "--weight does not go with --event"),
        ((*ASKED, "--pos-label", "1"), "--pos-label does not go with --event"),
        ((*ASKED, "--y-prob", "worse"), "--event is about one event; name one column of forecasts"),
        ((*ASKED, "--competing", "other"), "--competing names codes of --event, which are numbers, got 2, other"),
        ((*ASKED[:6], "--y-prob", "p"), "column 'status', data row"),
        (("--time", "years", "--event", "status", "--at", "900", "--competing", "2"), "--at is 900, and nobody was"),
        (("--time", "ward", "--event", "status", "--at", "3", "--competing", "2"), "column 'ward'"),
        (("--time", "years", "--event", "ward", "--at", "3"), "column 'ward' holds texts such as 'east'"),
        (("--time", "nosuch", "--event", "status", "--at", "3"), "'nosuch'"),
    ],
)
def test_what_is_refused(arguments, message, file):
    called = call("measure", file, *arguments, *(() if "p" in arguments else ("--y-prob", "p")))
    assert called.exit_code == 2, called.output
    assert message in called.stderr


def test_a_report_over_time_has_no_times_of_follow_up(file):
    called = call("report", file, *ASKED, "--every", "week", "--format", "md")
    assert called.exit_code == 2
    assert "--every does not go with --event" in called.stderr
    called = call("report", file, *ASKED, "--check-clusters", "ward", "--format", "md")
    assert called.exit_code == 2
    assert "no guarantee holds; measure them with limits" in called.stderr
