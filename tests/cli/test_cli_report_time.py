"""``calibrant report --time``: times of a file become periods, and the report says whether anything has changed."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_cases import answer, call
from table_cases import write

import calibrant
from calibrant.cli.inputs import LENGTHS
from calibrant.monitors import period_of
from calibrant.rows.times import EVERY

DAYS, ROWS = 35, 40
RNG = np.random.default_rng(0)
Y_PROB = RNG.random(DAYS * ROWS).round(3)
Y_TRUE = (RNG.random(DAYS * ROWS) < Y_PROB).astype(int)
DAY = np.arange(DAYS * ROWS) // ROWS + 1
TIME = pd.Timestamp("2026-01-20") + pd.to_timedelta(24 * 60 * DAY + RNG.integers(0, 1400, DAY.size), unit="m")
COLUMNS = {"y": Y_TRUE, "p": Y_PROB, "day": DAY, "time": TIME.strftime("%Y-%m-%d %H:%M").to_numpy()}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    pd.DataFrame({**COLUMNS, "time": TIME}).to_parquet(folder / "t.parquet")
    return {"csv": write(COLUMNS, folder / "t.csv", "csv"), "parquet": folder / "t.parquet", "folder": folder}


def test_lengths_of_periods_are_those_of_python():
    assert LENGTHS == EVERY


ASKED = {
    "days": ((), period_of(TIME, "day")),
    "weeks": (("--every", "week"), period_of(TIME, "week")),
    "months": (("--every", "month"), period_of(TIME, "month")),
}


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("case", ASKED)
def test_times_become_periods(files, form, case):
    options, period = ASKED[case]
    document = answer("report", files[form], "--time", "time", *options, "--out", files["folder"] / "r.json")
    change = document["result"]["models"][0]["change"]
    assert change["history"]["period"] == np.unique(period).tolist()
    expected: Any = calibrant.CalibrationReport.from_predictions(Y_TRUE, Y_PROB, period=period).summary.models[0].change
    assert change["reading"]["upper"] == expected.reading.upper
    assert document["input"][0]["time"] == "time"
    assert document["input"][0].get("every") == (options or (None, None))[1]


def test_periods_may_be_named_themselves(files):
    for form in ("csv", "parquet"):
        asked = ("report", files[form], "--period", "day", "--tolerance", "0.05", "--memory-limit", "1GB")
        found = answer(*asked, "--out", files["folder"] / "r.json")["result"]["models"][0]["change"]
        assert found["history"]["period"] == list(range(1, DAYS + 1))
        assert found["reading"]["tolerance"] == 0.05
        assert found["reading"]["unit"] == "period"


def test_the_few_lines_and_the_page_say_it(files):
    out = files["folder"] / "r.html"
    lines = call("report", files["csv"], "--time", "time", "--max-error", "0.1", "--out", out).stdout
    assert "Has it changed? No alarm in 35 periods, from 2026-01-21 to 2026-02-24." in lines
    page = out.read_text(encoding="utf-8")
    assert "Has it changed?" in page
    assert "--period periods" in page


BAD = {
    "no times": (("--time", "day"), "column 'day'", "no date"),
    "two ways": (("--time", "time", "--period", "day"), "--time and --period both say", ""),
    "nothing to cut": (("--every", "day"), "--every says how long the periods of --time are", ""),
    "no such column": (("--time", "when"), "when", ""),
    "numbers": (("--time", "p", "--y-prob", "p"), "column 'p'", "no dates or times"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_times_are_refused(files, case):
    options, *said = BAD[case]
    found = call("report", files["csv"], *options, "--out", files["folder"] / "bad.md")
    assert found.exit_code == 2, found.output
    assert all(words in found.stderr for words in said), found.stderr


def test_more_rows_than_memory_is_meant_for_are_refused(files, monkeypatch):
    monkeypatch.setattr("calibrant.cli.rows.BYTES_PER_ROW", 10**6)
    found = call("report", files["csv"], "--time", "time", "--memory-limit", "1GB", "--out", files["folder"] / "r.md")
    assert found.exit_code == 2
    assert "reading periods one by one looks at all of them at once" in found.stderr


def test_rows_without_a_time_can_be_left_out(files):
    times = list(COLUMNS["time"])
    times[3] = ""
    path = write({**COLUMNS, "time": times}, files["folder"] / "gaps.csv", "csv")
    asked = ("report", path, "--time", "time", "--out", files["folder"] / "r.md")
    assert "missing" in call(*asked).stderr
    kept = json.loads(call(*asked, "--drop-missing", "--json").stdout)
    assert kept["input"][0]["left_out"] == 1
    assert kept["result"]["models"][0]["change"]["reading"]["rows"] == DAYS * ROWS - 1
