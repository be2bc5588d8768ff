"""Batches that keep coming: files, folders that grow, standard input; killed, refused, resumed."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from cli_cases import ROOT, SOURCE, call
from table_cases import write
from watch_cases import DAYS, kept, write_day

from calibrant.cli.rows import open_batch
from calibrant.cli.watching import reading_said
from calibrant.monitors import Monitor, Reading, Watch, openmetrics

GUESSES = re.compile(r"(outcomes|forecasts): column .*\n")


@pytest.fixture
def days(tmp_path):
    folder = tmp_path / "days"
    folder.mkdir()
    for day in range(1, 6):
        write_day(folder, day)
    return folder


def documents(found):
    return [json.loads(line) for line in found.stdout.splitlines()]


def watched(*arguments, stdin=None):
    """Return the periods and rows that were read, the exit code, and what was said beside."""
    found = call("watch", *arguments, "--json", stdin=stdin)
    results = [each["result"] for each in documents(found)]
    said = GUESSES.sub("", found.stderr)
    return [(each["period"][-2:], each["rows"]) for each in results], found.exit_code, said


ALL = [(f"{day:02d}", 60 * day) for day in range(1, 6)]


# --- Files ------------------------------------------------------------------------------------------------------------


def test_a_folder_is_read_file_by_file_and_gives_what_python_gives(days):
    found = call("watch", days, *DAYS, "--unit", "row", "--json")
    monitor = Monitor(max_error=0.05, unit="row")
    told: list[Reading] = []
    watch = Watch(monitor, every="day", tell=told.append)
    for file in sorted(days.iterdir()):
        rows = np.genfromtxt(file, delimiter=",", names=True, dtype=None, encoding="utf-8")
        watch.take(rows["y"], rows["p"], time=rows["issued"], batch=file.name)
    watch.finish()
    assert [each.period for each in told] == [f"2026-01-0{day}" for day in range(1, 6)]
    for document, reading in zip(documents(found), told, strict=True):
        assert {"schema": "calibrant/1", **document["result"]} == json.loads(reading.to_json())
    assert found.exit_code == documents(found)[-1]["exit_code"] == 3


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "feather", "csv.gz"])
def test_every_format_gives_the_same(days, tmp_path, kind):
    other = tmp_path / "other"
    other.mkdir()
    for day in range(1, 6):
        write_day(other, day, kind=kind)
    assert call("watch", other, *DAYS, "--json").stdout == call("watch", days, *DAYS, "--json").stdout


def test_one_line_says_what_is_known_and_verbose_says_all(days):
    found = call("watch", days, *DAYS)
    lines = found.stdout.splitlines()
    assert len(lines) == 5
    assert found.stdout == call("watch", days, "--time", "issued", "--max-error", 0.05).stdout  # days by default
    assert re.fullmatch(
        r"2026-01-05: undecided, error 0\.\d{4}, from 0\.0000 to 0\.\d{4} \(5 periods, 300 rows\); "
        r"evidence [\d.]+, alarm at 1,000",
        lines[-1],
    )
    full = call("watch", days, *DAYS, "--verbose").stdout
    assert "This assumes that what is to be expected of periods" in full
    assert call("watch", days, *DAYS, "--quiet").output == ""


def test_an_alarm_is_said_and_is_an_exit_code_until_the_reset(tmp_path):
    folder = tmp_path / "days"
    folder.mkdir()
    for day in range(1, 15):
        write_day(folder, day, shift=0.0 if day < 5 else 0.4)
    options = [*DAYS, "--unit", "row", "--state", tmp_path / "state.json", "--name", "churn"]
    found = call("watch", folder, *options, "--openmetrics", tmp_path / "churn.prom")
    assert found.exit_code == 4
    alarm = next(line for line in found.stdout.splitlines() if "ALARM" in line)
    assert re.search(r"^2026-01-\d\d: void, .*; ALARM at 2026-01-\d\d: forecasts from \S+ to \S+ too low since", alarm)
    assert 'calibrant_alarm{model="churn"} 1.0\n' in (tmp_path / "churn.prom").read_text()
    again = call("watch", folder, *options)
    assert (again.exit_code, again.stdout) == (4, "")
    assert again.stderr == f"No new batch.\nAs before: {found.stdout.splitlines()[-1]}\n"
    reset = call("watch", *options, "--reset", "--openmetrics", tmp_path / "churn.prom")
    assert (reset.exit_code, reset.stdout, reset.stderr) == (0, "", "Begins anew: epoch 2.\n")
    assert "calibrant_alarm" not in (tmp_path / "churn.prom").read_text()
    write_day(folder, 20)
    after = call("watch", folder, *options, "--json")
    assert after.exit_code == 3
    (document,) = documents(after)
    assert (document["result"]["epoch"], document["result"]["rows"], document["name"]) == (2, 60, "churn")


def test_an_alarm_may_be_the_end(tmp_path):
    for day in range(1, 15):
        write_day(tmp_path, day, shift=0.4)
    found = call("watch", tmp_path, *DAYS, "--unit", "row", "--stop-at-alarm")
    assert found.exit_code == 4
    assert found.stdout.count("ALARM") == 1
    assert len(found.stdout.splitlines()) < 14


def test_files_come_in_the_order_of_the_numbers_in_their_names(tmp_path):
    for day in range(1, 12):
        write_day(tmp_path, day).rename(tmp_path / f"day{day}.csv")
    files = sorted(tmp_path.iterdir())
    assert files[1].name == "day10.csv"
    wanted = ([(f"{day:02d}", 60 * day) for day in range(1, 12)], 3, "")
    assert watched(tmp_path, *DAYS) == watched(*files, *DAYS) == watched(f"{tmp_path}/*.csv", *DAYS) == wanted
    assert watched(tmp_path, *DAYS, "--follow", "--poll", 0.01, "--stop-after", 0.01)[0] == wanted[0][:10]
    assert watched(*files[::-1], *DAYS)[0][0] == ("08", 60)  # as they were named, from day9 on


def test_without_periods_every_file_is_one(days):
    found = call("watch", days, "--max-error", 0.05, "--json")
    assert [(each["result"]["period"], each["result"]["rows"]) for each in documents(found)] == [
        (day, 60 * day) for day in range(1, 6)
    ]


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_periods_are_numbers_or_dates_of_a_column(tmp_path, kind):
    numbers = {"y": [0, 1] * 6, "p": [0.25, 0.75] * 6, "week": [9] * 4 + [10] * 4 + [11] * 4}
    options = ["--period", "week", "--max-error", 0.1, "--json"]
    found = call("watch", write(numbers, tmp_path / f"n.{kind}", kind), *options)
    assert [each["result"]["period"] for each in documents(found)] == [9, 10, 11]
    dates = {**numbers, "week": ["2026-01-05"] * 4 + ["2026-01-12"] * 8}
    found = call("watch", write(dates, tmp_path / f"d.{kind}", kind), *options)
    assert [each["result"]["period"] for each in documents(found)] == ["2026-01-05", "2026-01-12"]


def test_weights_labels_and_every_option_reach_the_monitor(tmp_path):
    columns: dict[str, Any] = {
        "y": ["yes", "no"] * 20,
        "p": [0.75, 0.25] * 20,
        "w": [1.0, 3.0] * 20,
        "day": [1] * 20 + [2] * 20,
    }
    file = write(columns, tmp_path / "t.csv", "csv")
    given = {
        "--max-error": 0.2,
        "--tolerance": 0.01,
        "--periods-between-false-alarms": "never",
        "--confidence-level": 0.9,
        "--assume": "anything",
    }
    options = [word for pair in given.items() for word in pair]
    found = call("watch", file, "--period", "day", "--weight", "w", "--pos-label", "yes", *options, "--json")
    monitor = Monitor(
        max_error=0.2, tolerance=0.01, periods_between_false_alarms=None, confidence_level=0.9, assume="anything"
    )
    events = np.array(columns["y"]) == "yes"
    monitor.update(events, columns["p"], sample_weight=columns["w"], period=columns["day"])
    assert {"schema": "calibrant/1", **documents(found)[-1]["result"]} == json.loads(monitor.read().to_json())


@pytest.mark.parametrize("threshold", [None, "0.25", "0.2:0.4"])
def test_what_could_be_saved_is_watched_like_the_error(threshold, days, tmp_path):
    options = [*DAYS, "--measure", "risk_gap", *([] if threshold is None else ["--threshold", threshold])]
    metrics = tmp_path / "m.prom"
    found = call("watch", days, *options, "--json", "--openmetrics", metrics, "--state", tmp_path / "state.json")
    ends = None if threshold is None else [float(end) for end in threshold.split(":")]
    monitor = Monitor(max_error=0.05, measure="risk_gap", threshold=ends[0] if ends and len(ends) == 1 else ends)
    for file in sorted(days.iterdir()):
        rows = np.genfromtxt(file, delimiter=",", names=True, dtype=None, encoding="utf-8")
        monitor.update(rows["y"], rows["p"], period=file.stem)
    assert {"schema": "calibrant/1", **documents(found)[-1]["result"]} == json.loads(monitor.read().to_json())
    assert "calibrant_risk_gap_upper" in metrics.read_text()
    again = call("watch", days, *options, "--state", tmp_path / "state.json")
    assert (again.exit_code, again.stdout, again.stderr) == (3, "", "No new batch.\n")
    assert call("watch", days, *options).stdout.startswith("2026-01-01: undecided, saving 0.")
    assert call("watch", days, *DAYS, "--threshold", "0.3").exit_code == 2


def test_a_period_stays_open_for_its_maturity(days):
    assert watched(days, *DAYS, "--maturity", 2)[0] == ALL[:3]
    assert watched(days, *DAYS, "--maturity", 2, "--keep-open")[0] == ALL[:2]
    said = "No period is complete yet: nothing can be said. With --maturity 5 that takes rows of 5 periods later.\n"
    assert watched(days, *DAYS, "--maturity", 5) == ([], 3, said)


@pytest.mark.parametrize(("every", "periods"), [("hour", 13), ("week", 2), ("month", 1)])
def test_periods_of_any_length_come_in_their_order_with_and_without_maturity(every, periods, tmp_path):
    times = [f"2026-01-0{day}T{hour:02d}:00" for day in (3, 4, 5) for hour in (0, 3, 9, 10)] + ["2026-01-12T00:00:01"]
    columns = {"y": [0, 1] * 26, "p": [0.25, 0.75] * 26, "at": [each for each in times for _ in range(4)]}
    options = ["--time", "at", "--every", every, "--max-error", 0.1, "--json"]
    file = write(columns, tmp_path / "t.csv", "csv")
    found = [each["result"]["period"] for each in documents(call("watch", file, *options))]
    assert found == sorted(found)
    assert len(found) == periods + (every == "week")
    later = [each["result"]["period"] for each in documents(call("watch", file, *options, "--maturity", 1))]
    assert later == found[:-1]


# --- What is kept -----------------------------------------------------------------------------------------------------


def test_a_start_goes_on_where_the_last_one_ended(days, tmp_path):
    state = tmp_path / "state.json"
    whole = watched(days, *DAYS, "--state", tmp_path / "whole.json")
    assert whole[0] == ALL
    late = tmp_path / "late"
    late.mkdir()
    for day in (3, 4, 5):
        (days / f"2026-01-0{day}.csv").rename(late / f"2026-01-0{day}.csv")
    assert watched(days, *DAYS, "--state", state)[0] == ALL[:2]
    assert watched(days, *DAYS, "--state", state) == ([], 3, "No new batch.\n")
    for file in late.iterdir():
        file.rename(days / file.name)
    assert watched(days, *DAYS, "--state", state)[0] == ALL[2:]
    assert kept(state)["monitor"] == kept(tmp_path / "whole.json")["monitor"]


def test_more_of_the_newest_period_may_come_with_the_next_start(tmp_path):
    write_day(tmp_path, 1)
    options = [tmp_path / "2026-01-01.csv", *DAYS, "--state", tmp_path / "state.json"]
    assert watched(*options, "--keep-open") == ([], 3, "No period is complete yet: nothing can be said.\n")
    write_day(tmp_path, 1, kind="parquet")  # the same rows as other bytes are another batch
    more = tmp_path / "2026-01-01.parquet"
    assert watched(more, *DAYS, "--state", tmp_path / "state.json")[0] == [("01", 120)]


def test_the_same_bytes_under_another_name_and_a_file_that_changed_are_refused(tmp_path):
    first = write_day(tmp_path, 1)
    options = [*DAYS, "--keep-open", "--state", tmp_path / "state.json"]
    watched(first, *options)
    copy = shutil.copy(first, tmp_path / "copy.csv")
    found = watched(copy, *options)
    assert found[1] == 2
    assert "Refused: " in found[2]
    assert "was added to period 2026-01-01 before" in found[2]
    os.utime(first, (1, 1))  # as after a checkout: the same content
    assert watched(first, *options)[2].startswith("No new batch.")
    with first.open("a") as file:
        file.write("1,0.5,2026-01-01T23:00\n")
    changed = watched(first, *options)
    assert (changed[1], "was read before and has changed since" in changed[2]) == (2, True)


def test_other_rows_with_the_same_totals_are_another_batch(tmp_path):
    for name in ("a.csv", "b.csv", "c.csv"):
        outcomes = [1] * 10 + [0] * 20 if name == "a.csv" else [0] * 20 + [1] * 10
        write({"y": outcomes, "p": [0.5] * 30}, tmp_path / name, "csv")
    found = call("watch", tmp_path, "--max-error", 0.05)
    assert "(2 periods, 60 rows)" in found.stdout
    said = re.findall(
        "Refused: .*/(.).csv: a batch of 30 rows just like these.* before; leave it out$", found.stderr, re.M
    )
    assert said == ["c"]


def test_state_and_files_may_move_together(days, tmp_path):
    watched(days, *DAYS, "--state", tmp_path / "state.json")
    moved = tmp_path / "moved"
    moved.mkdir()
    shutil.move(days, moved / "days")
    shutil.move(tmp_path / "state.json", moved / "state.json")
    assert watched(moved / "days", *DAYS, "--state", moved / "state.json") == ([], 3, "No new batch.\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((*DAYS[:-1], "0.1"), "--max-error is 0.1, and 0.05 in the state"),
        ((*DAYS, "--unit", "row"), "--unit is 'row', and 'period' in the state"),
        (("--time", "issued", "--every", "week", "--max-error", "0.05"), "--every is 'week', and 'day' in the state"),
        ((*DAYS, "--y-prob", "q"), "--y-prob is 'q', and 'p' in the state"),
        (("--period", "issued", "--max-error", "0.05"), "--every is None, and 'day' in the state"),
    ],
)
def test_a_state_is_asked_the_same_question_again(options, said, days, tmp_path):
    state = tmp_path / "state.json"
    watched(days, *DAYS, "--state", state)
    before = state.read_bytes()
    found = call("watch", days, *options, "--state", state)
    assert found.exit_code == 2
    assert said in found.stderr
    assert state.read_bytes() == before


@pytest.mark.parametrize("harm", ["cut", "digit", "list", "other", "empty", "bytes"])
def test_a_damaged_state_is_no_state(harm, days, tmp_path):
    state = tmp_path / "state.json"
    watched(days, *DAYS, "--state", state)
    text = state.read_text()
    count = '"count": 5'
    assert count in text
    harmed = {
        "cut": text[:-100],
        "digit": text.replace(count, '"count": 6'),
        "list": "[]",
        "other": '{"y": 1, "p": 0.5}',
        "empty": "",
        "bytes": "\x00\x01",
    }[harm]
    state.write_text(harmed)
    found = call("watch", days, *DAYS, "--state", state)
    assert (found.exit_code, found.stdout) == (2, "")
    assert "state.json is no state of a watch, or a damaged one" in found.stderr
    assert state.read_text() == harmed


@pytest.mark.parametrize("form", ["calibrant/watch/1", "calibrant/monitor/1"])
def test_a_state_of_a_newer_version_asks_for_an_update(form, days, tmp_path):
    state = tmp_path / "state.json"
    watched(days, *DAYS, "--state", state)
    newer = state.read_text().replace(form, f"{form[:-1]}2")
    state.write_text(newer)
    found = call("watch", days, *DAYS, "--state", state)
    assert (found.exit_code, found.stdout) == (2, "")
    said = " ".join(found.stderr.split())
    assert (
        f"was written by a newer version of calibrant ({form[:-1]}2); this one reads {form}; update calibrant" in said
    )
    assert "another file" not in said
    assert state.read_text() == newer


def test_two_programs_cannot_use_one_state(days, tmp_path):
    state = tmp_path / "state.json"
    with Watch(Monitor(max_error=0.05), every="day", state=state):
        found = call("watch", days, *DAYS, "--state", state)
    assert (found.exit_code, found.stdout) == (2, "")
    assert "another program uses the state" in found.stderr
    assert watched(days, *DAYS, "--state", state)[0] == ALL


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, which only Unix has")
def test_a_watch_that_is_killed_at_any_moment_neither_loses_nor_doubles_a_batch(tmp_path, tmp_path_factory):
    days = tmp_path / "days"
    days.mkdir()
    for day in range(1, 7):
        write_day(days, day, rows=30, kind="csv" if day % 2 else "parquet")
    found = subprocess.run(
        [sys.executable, ROOT / "tests" / "watch_cases.py", tmp_path, "50"],
        env={
            "PYTHONPATH": f"{SOURCE}{os.pathsep}{ROOT / 'tests'}",
            "OMP_NUM_THREADS": "1",
            "TMPDIR": str(tmp_path_factory.mktemp("scratch")),  # which nothing clears after a kill
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert found.returncode == 0, found.stderr
    told = json.loads(found.stdout)
    assert told["kills"] >= 50
    assert told["wrong"] == 0
    states = {f"killed-{number}.json" for number in range(told["rounds"])} | {"whole.json"}
    assert {path.name for path in tmp_path.iterdir()} == {*states, *(f".{name}.lock" for name in states), "days"}


def test_what_was_said_before_a_kill_may_be_said_again_and_is_never_left_out(days, tmp_path, monkeypatch):
    state = tmp_path / "state.json"
    with monkeypatch.context() as patch:
        patch.setattr(Watch, "flush", lambda _: signal.raise_signal(signal.SIGTERM))
        first = call("watch", days, *DAYS, "--state", state, "--json")
    assert first.exit_code == 143
    assert not state.exists()
    assert watched(days, *DAYS, "--state", state)[0] == ALL


# --- What is bad ------------------------------------------------------------------------------------------------------

BAD = {
    "null.csv": ("y,p,issued\n1,,2026-01-06\n", "null.csv: column 'p' has no value in data row 1"),
    "range.csv": ("y,p,issued\n1,1.5,2026-01-06\n", "range.csv: column 'p', data row 1 "),
    "columns.csv": ("a,b\n1,0.5\n", "columns.csv has no columns 'y', 'p', 'issued'"),
    "empty.csv": ("", "empty.csv is empty"),
    "header.csv": ("y,p,issued\n", "header.csv has no rows, only column names"),
    "time.csv": ("y,p,issued\n1,0.5,soon\n", "time.csv: column 'issued', data row 1 "),
    "number.csv": ("y,p,issued\n1,0.5,1767225600\n", "number.csv: column 'issued', data row 1 "),
    "closed.csv": ("y,p,issued\n1,0.5,2026-01-02\n", "period 2026-01-02 was read and closed"),
    "half.csv": ("y,p,issued\n1,0.5,2026-01-06\n1,0.5,2026-01-02\n", "period 2026-01-02 was read and closed"),
    "broken.parquet": ("PAR1", "broken.parquet"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_batch_is_refused_whole_and_named_and_the_others_count(name, days, tmp_path):
    text, said = BAD[name]
    bad = tmp_path / name
    bad.write_text(text)
    good = write_day(tmp_path, 7)
    state = tmp_path / "state.json"
    assert watched(days, *DAYS, "--state", state)[0] == ALL
    found = watched(bad, good, *DAYS, "--state", state)
    assert found[0] == [("07", 360)]
    assert found[1] == 3
    assert found[2].startswith("Refused: ")
    assert said in found[2]
    assert len(found[2].splitlines()) == 1
    before = state.read_bytes()
    later = write_day(tmp_path, 8)
    strict = call("watch", bad, later, *DAYS, "--state", state, "--strict")
    assert (strict.exit_code, strict.stdout) == (2, "")
    assert said in strict.stderr
    assert state.read_bytes() == before
    assert watched(bad, *DAYS, "--state", state)[1] == 2


def test_a_bad_batch_is_no_reason_to_guess_other_columns(tmp_path):
    (tmp_path / "1.csv").write_text("y,p,score,issued\n1,0.5,0.5,2026-01-01\n")
    write_day(tmp_path, 2)
    found = call("watch", tmp_path, *DAYS, "--json")
    assert "which column holds the forecasts?" in found.stderr
    assert [each["result"]["rows"] for each in documents(found)] == [60]
    assert documents(found)[0]["refused"] == 1


@pytest.mark.parametrize("label", ["yes", "Yes"])
def test_batches_without_events_count_as_such_unless_the_label_may_be_mistyped(label, days, tmp_path, monkeypatch):
    numbers = lines_of(days)[1:61]
    lines = [f"{'yes' if line[0] == '1' else 'no'}{line[1:]}" for line in numbers]
    monkeypatch.setattr("calibrant.monitors.incoming._MOST_LINES", 1)  # as they come where rows are few
    options = ["--pos-label", label, *DAYS, "--json"]
    found = call("watch", "-", *options, stdin="\n".join(["y,p,issued", *lines]))
    if label == "yes":
        assert found.stdout == call("watch", "-", *DAYS, "--json", stdin="\n".join(["y,p,issued", *numbers])).stdout
    else:
        assert "--pos-label is 'Yes', which column 'y' does not hold: its only label is 'no'" in found.stderr
    for day, words in enumerate((["no"], ["no", "yes"], ["no"], ["no", "maybe"]), start=1):
        write({"y": words * (8 // len(words)), "p": [0.25, 0.75] * 4, "d": [day] * 8}, tmp_path / f"{day}.csv", "csv")
    files = [tmp_path / f"{day}.csv" for day in (1, 2, 3, 4)]
    found = call("watch", *files, "--pos-label", label, "--period", "d", "--max-error", 0.1)
    said = "(4 periods, 32 rows)" if label == "yes" else "(2 periods, 16 rows)"
    assert said in found.stdout
    assert ("its labels are 'no', 'yes'" in found.stderr) is (label == "Yes")


def test_rows_that_lack_a_value_may_be_left_out(tmp_path):
    (tmp_path / "1.csv").write_text("y,p,issued\n1,0.5,2026-01-01\n,0.5,2026-01-01\n1,0.5,\n")
    found = call("watch", tmp_path, *DAYS, "--drop-missing", "--json")
    (document,) = documents(found)
    assert (document["result"]["rows"], document["left_out"]) == (1, 2)
    assert "2 rows left out" in found.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("{days}", "--every", "day", "--max-error", "0.1"), "name the column of times, too"),
        (("{days}", *DAYS, "--period", "p"), "name one of them"),
        (("{days}", *DAYS, "--reset"), "--reset needs --state"),
        (("-", *DAYS, "--replayed"), "--replayed needs --state"),
        (("{days}", *DAYS, "--replayed", "--state", "{out}"), "--replayed is for standard input"),
        (("-", "{days}", *DAYS), "name it alone"),
        (("-", *DAYS, "--follow"), "leave out --follow"),
        (DAYS, "nothing to read: name files, a folder"),
        (("{days}", *DAYS, "--reset", "--state", "{out}"), "out.json, and so nothing to begin anew"),
        ((*DAYS, "--follow", "--reset", "--state", "{out}"), "--follow needs a folder"),
        (("{days}", *DAYS, "--stop-after", "5"), "--stop-after goes with --follow"),
        (("{days}/2026-01-01.csv", *DAYS, "--follow"), "is no folder; --follow reads folders"),
        (("{days}", "{days}/2026-01-01.csv", *DAYS), "was named twice"),
        (("{days}/no.csv", *DAYS), "no.csv does not exist"),
        (("{days}", *DAYS, "--state", "{days}/s.json"), "where it would be read as a batch"),
        (("{days}", *DAYS, "--openmetrics", "{days}/m.prom"), "where it would be read as a batch"),
        (("{days}", *DAYS, "--state", "{days}/no/s.json"), "there is no folder"),
        (("{days}", *DAYS, "--periods-between-false-alarms", "often"), "'often' is neither a number of periods"),
        (("{pipe}", *DAYS), "is a pipe, of which nobody knows what was read"),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_anything_is_read(arguments, said, days, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    places = {"days": days, "out": tmp_path / "out.json", "pipe": tmp_path / "pipe"}
    found = call("watch", *(word.format(**places) for word in arguments), stdin="")
    assert (found.exit_code, found.stdout) == (2, "")
    assert said in found.stderr


# --- A folder that grows ----------------------------------------------------------------------------------------------


def test_files_are_read_as_they_appear_when_they_are_complete(tmp_path):
    days, aside = tmp_path / "days", tmp_path / "aside"
    days.mkdir()
    aside.mkdir()
    for day in range(1, 6):
        write_day(aside, day)
    (days / "notes.txt").write_text("no table")
    shutil.copy(aside / "2026-01-01.csv", days)

    def arrive():
        time.sleep(0.3)
        text = (aside / "2026-01-02.csv").read_bytes()
        with (days / "2026-01-02.csv").open("wb", buffering=0) as file:
            shutil.copy(aside / "2026-01-03.csv", days)  # complete, and held back by the one before it
            for start in range(0, len(text), 300):
                file.write(text[start : start + 300])
                time.sleep(0.03)
        for day in (4, 5):
            shutil.copy(aside / f"2026-01-0{day}.csv", days / f".2026-01-0{day}.csv.part")
            (days / f".2026-01-0{day}.csv.part").rename(days / f"2026-01-0{day}.csv")

    state, metrics = tmp_path / "state.json", tmp_path / "m.prom"
    writer = threading.Thread(target=arrive)
    writer.start()
    options = ["--follow", "--poll", 0.1, "--stop-after", 1.0, "--state", state, "--openmetrics", metrics]
    found = watched(days, *DAYS, *options)
    writer.join()
    assert found[0] == ALL[:4]  # the newest period stays open
    assert found[2].count("Refused: ") == found[2].count("'notes.txt', whose name ends in none of") == 1
    assert "calibrant_batches_read 5.0\ncalibrant_batches_refused 1.0" in re.sub("# .*\n", "", metrics.read_text())
    (days / "notes.txt").unlink()
    assert watched(days, *DAYS, "--state", state) == (ALL[4:], 3, "No new batch.\n")


def test_following_ends_by_a_signal_with_all_it_read_kept(days, tmp_path):
    state = tmp_path / "state.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "calibrant", "watch", days, *DAYS, "--follow", "--poll", "0.05", "--state", state],
        env={"PYTHONPATH": SOURCE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(4)]
    deadline = time.monotonic() + 60
    while not state.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 143
    assert b"Traceback" not in stderr
    assert lines[-1].startswith(b"2026-01-04: undecided")
    assert watched(days, *DAYS, "--state", state)[0][-1] == ALL[-1]


def test_a_file_that_changes_while_it_is_read_is_read_again_when_it_is_complete(tmp_path, monkeypatch):
    days = tmp_path / "days"
    days.mkdir()
    file = write_day(days, 1)
    whole = file.read_text()
    file.write_text(whole[: len(whole) // 2].rpartition("\n")[0] + "\n")
    opened = []

    def changing(source, *given, **options):
        opened.append(source)
        if len(opened) == 1:
            file.write_text(whole)
        return open_batch(source, *given, **options)

    monkeypatch.setattr("calibrant.cli.watching.open_batch", changing)
    found = call("watch", days, *DAYS, "--follow", "--poll", 0.05, "--stop-after", 0.1, "--state", tmp_path / "s.json")
    assert len(opened) == 2
    assert "Refused" not in found.stderr
    assert watched(days, *DAYS, "--state", tmp_path / "s.json")[0] == [("01", 60)]
    opened.clear()
    refused = call("watch", days, *DAYS, stdin="")
    assert refused.exit_code == 2
    assert "changed while it was read" in refused.stderr


# --- Standard input ---------------------------------------------------------------------------------------------------


def lines_of(days, kind="csv"):
    rows = [line for file in sorted(days.iterdir()) for line in file.read_text().splitlines()[1:]]
    if kind == "csv":
        return ["y,p,issued", *rows]
    return [json.dumps(dict(zip(("y", "p", "issued"), row.split(","), strict=True))) for row in rows]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_standard_input_gives_what_files_give(days, kind):
    assert watched("-", *DAYS, stdin="\n".join(lines_of(days, kind)))[:2] == (ALL, 3)
    crlf = "\r\n".join(lines_of(days, kind)) + "\r\n\r\n"
    assert watched("-", *DAYS, stdin=crlf)[:2] == (ALL, 3)


def test_standard_input_without_lines_or_periods_is_one_batch(days, tmp_path):
    file = write_day(tmp_path, 1, kind="parquet")
    assert watched("-", *DAYS, stdin=file.read_bytes())[0] == ALL[:1]
    found = call("watch", "-", "--max-error", 0.1, "--json", stdin="\n".join(lines_of(days)))
    assert [(each["result"]["period"], each["result"]["rows"]) for each in documents(found)] == [(1, 300)]
    assert watched("-", *DAYS, stdin="")[1:] == (3, "No new batch.\nNo period is complete yet: nothing can be said.\n")
    assert "nothing is piped" not in call("watch", "-", "--max-error", 0.1, stdin="").stdout


def test_rows_that_keep_coming_are_read_as_they_come(days):
    process = subprocess.Popen(
        [sys.executable, "-m", "calibrant", "watch", "-", *DAYS],
        env={"PYTHONPATH": SOURCE, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    lines = lines_of(days)
    process.stdin.write("\n".join(lines[:70]).encode())  # in the middle of the second day, and of a line
    process.stdin.flush()
    assert process.stdout.readline().startswith(b"2026-01-01: ")
    process.stdin.write(("\n" + "\n".join(lines[70:])).encode())
    process.stdin.close()
    rest = process.stdout.read().splitlines()
    assert [line[8:10] for line in rest] == [b"02", b"03", b"04", b"05"]
    assert process.wait(60) == 3
    process.stdout.close()
    assert process.stderr is not None
    process.stderr.close()


def test_a_bad_line_is_refused_alone_wherever_it_stands(days):
    lines = lines_of(days, "jsonl")
    for place in (0, 59, 150, 299):
        bad = list(lines)
        bad[place] = '{"y": 1, "p": 7, "issued": "2026-01-02"}'
        periods, code, said = watched("-", *DAYS, stdin="\n".join(bad))
        assert periods[-1][1] == 299
        assert code == 3
        assert re.fullmatch(rf"Refused: standard input, line {place + 1}: column 'p', data row 1 .* is 7, .*\n", said)
    found = watched("-", *DAYS, "--strict", stdin="\n".join([*lines[:70], "oops", *lines[70:]]))
    assert found[1] == 2
    assert "standard input, line 71" in found[2]


def test_files_that_were_joined_with_their_headers_are_one_stream(days):
    tables = [file.read_text() for file in sorted(days.iterdir())]
    periods, code, said = watched("-", *DAYS, stdin="".join(tables))
    assert (periods, code, said) == (ALL, 3, "")


def test_many_bad_lines_are_refused_alone_as_long_as_others_between_them_are_good(days):
    lines = lines_of(days)
    lines[4::4] = ["oops"] * len(lines[4::4])
    found = call("watch", "-", *DAYS, stdin="\n".join(lines))
    assert f"(5 periods, {sum(line != 'oops' for line in lines) - 1} rows)" in found.stdout
    assert found.stderr.count("Refused: ") == lines.count("oops")


def test_an_alarm_may_be_the_end_of_standard_input(tmp_path):
    for day in range(1, 15):
        write_day(tmp_path, day, shift=0.4)
    lines = "\n".join(lines_of(tmp_path))
    found = call("watch", "-", *DAYS, "--unit", "row", "--stop-at-alarm", stdin=lines)
    assert found.exit_code == 4


def test_hopeless_lines_are_refused_together_after_many_tries(days):
    lines = [line.replace('"p"', '"q"') for line in lines_of(days, "jsonl")]
    found = call("watch", "-", *DAYS, "--y-prob", "p", stdin="\n".join(lines))
    assert found.exit_code == 2
    assert 1 < found.stderr.count("Refused: ") < 110


def test_what_is_piped_in_again_is_passed_over(days, tmp_path):
    lines = lines_of(days)
    state = tmp_path / "state.json"
    options = [*DAYS, "--state", state, "--keep-open"]
    first = watched("-", *options, stdin="\n".join(lines[:150]))
    rest = watched("-", *options, "--replayed", stdin="\n".join(lines))
    assert first[0] + rest[0] == ALL[:4]
    found = call("watch", "-", *options, "--replayed", stdin="\n".join([lines[0], "1,0.5,2026-01-09", *lines[2:]]))
    assert found.exit_code == 2
    assert "does not begin with the 300 lines that were read before" in found.stderr
    short = call("watch", "-", *options, "--replayed", stdin="\n".join(lines[:100]))
    assert short.exit_code == 2
    new = watched("-", *DAYS, "--state", state, stdin="y,p,issued\n1,0.5,2026-01-06\n")
    assert new[0] == [("05", 300), ("06", 301)]


# --- Numbers for Prometheus -------------------------------------------------------------------------------------------

LABEL = r'[a-z_]+="(?:[^"\\]|\\.)*"'
SAMPLE = re.compile(rf"(?P<name>[a-z_]+)(\{{(?P<labels>{LABEL}(?:,{LABEL})*)\}})? (?P<value>\S+)")


def parsed(text):
    """Read the text format: HELP and TYPE before the samples of each family, and EOF at the end."""
    *lines, end, nothing = text.split("\n")
    assert (end, nothing) == ("# EOF", "")
    samples, family = {}, None
    for line in lines:
        if line.startswith("# HELP "):
            family = line.split(" ", 3)[2]
            assert (family, "") not in samples
        elif line.startswith("# TYPE "):
            assert line == f"# TYPE {family} gauge"
        else:
            found = SAMPLE.fullmatch(line)
            assert found is not None
            assert found["name"] == family
            samples[family, found["labels"] or ""] = float(found["value"])
    return samples


def test_prometheus_gets_every_number_of_the_reading(days, tmp_path):
    file = tmp_path / "m.prom"
    found = call("watch", days, *DAYS, "--openmetrics", file, "--json")
    reading = documents(found)[-1]["result"]
    samples = parsed(file.read_text())
    assert samples["calibrant_cutoff_upper", ""] == reading["upper"]
    assert samples["calibrant_detector_threshold", ""] == 1000.0
    assert samples["calibrant_batches_read", ""] == 5.0
    assert [name for name in samples if name[0] == "calibrant_verdict" and samples[name]] == [
        ("calibrant_verdict", 'verdict="undecided"')
    ]


def test_labels_are_escaped_and_checked():
    monitor = Monitor(max_error=0.1)
    monitor.update([0, 1], [0.2, 0.7])
    text = openmetrics(monitor.read(), labels={"model": 'a "b"\n\\c'})
    assert parsed(text)["calibrant_alarm", 'model="a \\"b\\"\\n\\\\c"'] == 0.0
    for name in ("verdict", "a-b", "__name", ""):
        with pytest.raises(ValueError, match="is no name of a label"):
            openmetrics(monitor.read(), labels={name: "x"})
    assert openmetrics(None) == "# EOF\n"


# --- Words ------------------------------------------------------------------------------------------------------------


def test_a_unit_that_cannot_be_right_is_said_in_the_words_of_options(tmp_path):
    rng = np.random.default_rng(0)
    for day in range(1, 21):
        shock = rng.choice([-0.25, 0.25])
        forecast = rng.uniform(0.3, 0.7, 200).round(3)
        happened = (rng.random(200) < forecast + shock).astype(int)
        write({"y": happened, "p": forecast, "day": [day] * 200}, tmp_path / f"{day:02d}.csv", "csv")
    found = call("watch", tmp_path, "--period", "day", "--max-error", 0.05, "--unit", "row")
    assert "limits and alarm mean nothing; use --unit period\n" in found.stderr


def test_names_of_periods_cannot_steer_the_terminal(tmp_path):
    columns = {"y": [0, 1] * 10, "p": [0.25, 0.75] * 10, "at": ["\x1b[2J"] * 20}
    found = call("watch", write(columns, tmp_path / "t.parquet", "parquet"), "--period", "at", "--max-error", 0.1)
    assert "\x1b" not in found.output
    assert r"column 'at' holds '\x1b[2J', neither a whole number nor a date" in found.stderr


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_periods_whose_order_nobody_knows_are_refused(tmp_path, kind):
    columns = {"y": [0, 1] * 6, "p": [0.25, 0.75] * 6, "month": ["January"] * 6 + ["February"] * 6}
    file = write(columns, tmp_path / f"t.{kind}", kind)
    found = call("watch", file, "--period", "month", "--max-error", 0.1)
    assert (found.exit_code, found.stdout) == (2, "")
    assert "column 'month' holds 'February', neither a whole number nor a date as in 2026-01-31" in found.stderr
    report = call("report", file, "--period", "month", "--max-error", 0.1, "--out", tmp_path / "r.json")
    assert report.exit_code == 2
    assert "use --time with a column of times" in report.stderr
    quarters = {**columns, "month": ["2025-Q4"] * 6 + ["2026-Q1"] * 6}
    found = call("watch", write(quarters, tmp_path / f"q.{kind}", kind), "--period", "month", "--max-error", 0.1)
    assert found.stdout.startswith("2025-Q4: ")
    assert "one period" not in found.stderr


def test_cautions_and_notes_are_said_once_and_the_verdict_says_that_there_are_some(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "inverted").mkdir()
    for day in range(1, 6):
        forecast, chance = rng.random(400).round(3), rng.random(400)
        rare = {"y": (chance < 0.02 * forecast).astype(int), "p": 0.02 * forecast, "day": [day] * 400}
        write(rare, tmp_path / f"{day}.csv", "csv")
        inverted = {**rare, "y": (chance < forecast).astype(int), "p": 1.0 - forecast}
        write(inverted, tmp_path / "inverted" / f"{day}.csv", "csv")
    files = [tmp_path / f"{day}.csv" for day in range(1, 6)]
    options = ["--period", "day", "--max-error", 0.05, "--unit", "row"]
    metrics = tmp_path / "rare.prom"
    found = call("watch", *files, *options, "--state", tmp_path / "state", "--openmetrics", metrics)
    assert found.exit_code == 0
    assert found.stdout.splitlines()[-1].startswith("5: certified with a caution, error 0.00")
    said = [line for line in found.stderr.splitlines() if line.startswith("Caution: ")]
    assert len(said) == 1
    assert re.search(r"^Caution: Forecasting 0 for everybody would pass this limit of 5\.0%, since events are", said[0])
    assert re.search(r"use --max-error 0\.00\d+\.$", said[0])
    assert "calibrant_cautions 1.0\n" in metrics.read_text()
    assert [len(each["result"]["cautions"]) for each in documents(call("watch", *files, *options, "--json"))] == [1] * 5
    assert call("watch", *files, *options, "--verbose").stdout.count("\nCaution: Forecasting 0") == 5
    found = call("watch", tmp_path / "inverted", *options)
    assert found.stderr.count("perhaps these are probabilities of the other class. Pass those of the event.") == 1


def test_a_single_period_comes_with_a_hint(tmp_path):
    columns = {"y": [0, 1] * 10, "p": [0.25, 0.75] * 10, "day": [3] * 20}
    file = write(columns, tmp_path / "t.csv", "csv")
    found = call("watch", file, "--period", "day", "--max-error", 0.1)
    assert "All rows are of one period, and a change shows from the second one on" in found.stderr
    assert "All rows" not in call("watch", file, "--period", "day", "--max-error", 0.1, "--quiet").stderr


@pytest.mark.parametrize(
    ("moments", "is_noticed"),
    [
        ([f"2026-01-01T00:{minute:02d}" for minute in range(20)], True),
        ([1767225600 + 60 * minute for minute in range(20)], True),
        ([f"2026-01-{day:02d}" for day in range(1, 21)], False),
        ([20260101 + day for day in range(20)], False),
    ],
)
def test_moments_that_were_taken_for_periods_are_noticed(moments, is_noticed, tmp_path):
    columns = {"y": [0, 1] * 10, "p": [0.25, 0.75] * 10, "when": moments}
    found = call("watch", write(columns, tmp_path / "rows.csv", "csv"), "--period", "when", "--max-error", 0.1)
    said = "nearly every row is a period of its own, and false alarms are promised to be rare in periods"
    assert (said in found.stderr) is is_noticed
    monitor = Monitor(max_error=0.1)
    monitor.update(columns["y"], columns["p"], period=moments)
    assert any(said in note for note in monitor.read().notes) is is_noticed


def test_large_evidence_is_no_row_of_digits():
    monitor = Monitor(max_error=0.05, unit="row")
    for day in range(40):
        monitor.update(np.ones(200), np.full(200, 0.5), period=day)
    said = reading_said(monitor.read())
    assert "evidence above 1,000,000, alarm at 1,000; ALARM at" in said
    assert "suspected" not in said


def test_a_terminal_is_told_so_where_nothing_is_piped_in(monkeypatch):
    class Terminal(io.TextIOWrapper):
        def isatty(self):
            return True

    from calibrant.cli import main

    monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO()))
    with pytest.raises(SystemExit) as ended:
        main(["watch", "-", *DAYS])
    assert ended.value.code == 2
