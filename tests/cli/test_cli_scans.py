"""Large files, which the command line scans where they are: the same answers, bounded memory, whole outputs."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_cases import RUNS, SOURCE, answer, call, write_files
from table_cases import FORMATS, predictions, write

import calibrant
from calibrant.cli import outputs, rows
from calibrant.cli.inputs import Source
from calibrant.engines.columns import write_with_column
from calibrant.engines.files import halve_memory, open_table

MORE_RUNS = {
    "test asymptotic": ("test", "{file}", "--method", "asymptotic", "--by", "ward", "--weight", "w"),
    "certify labels": ("certify", "{labels}", "--max-error", "0.2", "--pos-label", "yes"),
    "certify exact": ("certify", "{file}", "--max-error", "0.2", "--method", "exact"),
    "certify smooth": ("certify", "{file}", "--max-error", "0.2", "--measure", "smooth", "--by", "ward"),
    "decide weights": ("decide", "{file}", "--threshold", "0.3", "--weight", "w", "--by", "ward"),
    "compare verdicts": ("compare", "{file}", "--y-prob", "p", "--y-prob", "worse", "--max-error", "0.2"),
    "report": ("report", "{file}", "--format", "md"),
    "report by": ("report", "{file}", "--format", "md", "--y-prob", "p", "--y-prob", "worse", "--by", "ward"),
    "report weights": ("report", "{file}", "--format", "json", "--weight", "w"),
}
ON_MANY_FORECASTS = ("certify", "certify by", "test asymptotic", "plan", "recalibrate apply")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = write_files(tmp_path_factory.mktemp("files"))
    rng = np.random.default_rng(2)
    columns = predictions(40_000, seed=2)
    columns["p"] = rng.random(40_000)  # nearly as many distinct forecasts as rows
    columns["y"] = (rng.random(40_000) < columns["p"]).astype(int)
    columns["worse"] = columns["p"] ** 2
    write(columns, folder / "many.parquet", "parquet")
    return folder


@pytest.fixture
def _large(monkeypatch):
    """Every file is a large one."""
    monkeypatch.setattr(rows, "LARGE_BYTES", 0)


def agree(found, expected, place="document"):
    """Compare two documents, numbers to 1e-12."""
    if isinstance(expected, dict):
        assert set(found) == set(expected), place
        for name, value in expected.items():
            agree(found[name], value, f"{place}.{name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), place
        for number, value in enumerate(expected):
            agree(found[number], value, f"{place}[{number}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12), place
    else:
        assert found == expected, place


def run_both(monkeypatch, arguments):
    """Return what a command prints of a file that it reads, and of the same file scanned."""
    found = []
    for size in (10**9, 0):
        monkeypatch.setattr(rows, "LARGE_BYTES", size)
        found.append((call(*arguments), call(*arguments, "--json")))
    return found


# --- The same answers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "name"),
    [*[("t.csv", name) for name in (*RUNS, *MORE_RUNS)], *[("many.parquet", name) for name in ON_MANY_FORECASTS]],
)
def test_a_file_that_is_scanned_has_the_answers_of_one_that_is_read(name, file, files, tmp_path, monkeypatch):
    places = {"file": files / file, "labels": files / "labels.csv", "out": tmp_path, "model": files / "m.json"}
    arguments = [part.format(**places) for part in {**RUNS, **MORE_RUNS}[name]]
    (read, read_document), (scanned, scanned_document) = run_both(monkeypatch, arguments)
    assert read.exit_code in (0, 1, 3), read.output
    assert (scanned.exit_code, scanned.stderr) == (read.exit_code, read.stderr)
    assert scanned.stdout == read.stdout
    agree(json.loads(scanned_document.stdout), json.loads(read_document.stdout))


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_and_standard_input_can_be_scanned(kind, files, monkeypatch):
    file = files / f"t.{kind}"
    monkeypatch.setattr(rows, "_read", None)  # nothing may be read whole
    expected = calibrant.certify(*(predictions()[name] for name in ("y", "p")), max_error=0.3)
    for options in ({}, {"stdin": file.read_bytes()}):
        name = "-" if options else file
        result = answer("certify", name, "--max-error", 0.3, "--memory-limit", "1GB", **options)["result"]
        assert result["upper"] == pytest.approx(expected.upper, abs=1e-12)


def test_the_size_on_disk_decides_and_so_does_a_memory_limit(files, monkeypatch):
    with open_table(files / "t.csv") as table:
        size = (files / "t.csv").stat().st_size
        assert table.size == size
        source = Source(("t.csv",))
        monkeypatch.setattr(rows, "LARGE_BYTES", size)
        assert not rows.is_large(source, table)
        monkeypatch.setattr(rows, "LARGE_BYTES", size - 1)
        assert rows.is_large(source, table)
        monkeypatch.setattr(rows, "LARGE_BYTES", 10 * size)
        assert rows.is_large(Source(("t.csv",), memory_limit="1GB"), table)


@pytest.mark.usefixtures("_large")
def test_groups_share_their_scans(files, monkeypatch):
    counted = []
    run = rows_engine().run

    def run_counted(self, statement):
        counted.append(1)
        return run(self, statement)

    monkeypatch.setattr(rows_engine(), "run", run_counted)
    assert call("certify", files / "many.parquet", "--max-error", "0.2").exit_code == 0
    alone = len(counted)
    counted.clear()
    assert call("certify", files / "many.parquet", "--max-error", "0.2", "--by", "ward").exit_code == 0
    # One more to find the groups, two more for the count of all rows.
    assert len(counted) <= 2 * alone + 1


def rows_engine():
    from calibrant.cli.scans import WatchedEngine

    return WatchedEngine


# --- More than fits ---------------------------------------------------------------------------------------------------


def test_what_does_not_fit_is_left_out_or_refused_and_never_guessed(files, tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "BYTES_PER_ROW", 1_000_000)
    monkeypatch.setattr("calibrant.rows.intake.SORT_BELOW_ROWS", 100)  # as few rows would be fetched in any case
    file, limit = files / "many.parquet", ("--memory-limit", "1GB")  # room for 500 rows
    every = "raise --memory-limit, round the forecasts or take a random sample"
    measured = answer("measure", file, *limit)["result"]
    assert "cells, each forecast moved to the mean of its cell" in measured["notes"][0]
    assert measured["cutoff"] == pytest.approx(answer("measure", file)["result"]["cutoff"], abs=1e-12)
    decided = call("decide", file, "--threshold", "0.3", *limit)
    assert re.search(rf"What could be saved is left out: this needs every distinct forecast.* {every}", decided.stdout)
    assert (
        "With 95% confidence no re-drawing of the line between acting and not acting saves more than" in decided.stdout
    )
    document = answer("decide", file, "--threshold", "0.3", *limit)["result"]
    assert (document["decisions"][0]["gap"], document["decisions"][0]["best_threshold"]) == (None, None)
    agree(
        document["decisions"][0]["risk"], answer("decide", file, "--threshold", 0.3)["result"]["decisions"][0]["risk"]
    )
    several = call("decide", file, "--threshold", "0.3", "--threshold", "0.6", "--by", "ward", *limit)
    assert several.exit_code == 0
    assert "What could be saved is left out" in several.stdout
    for refused, message in {
        ("test", file, "--method", "exact"): every,
        ("recalibrate", "fit", file, "--out", tmp_path / "m.json"): every,
        ("recalibrate", "choose", file): r"40,000 rows; recalibrate choose looks at all of them at once, and memory is "
        r"meant for .*: raise --memory-limit \(to 80GB\), or take a random sample",
        ("plan", file, "--max-error", "0.1"): r"distinct forecasts, too many to plan with; .*: --brier 0\.1\d+$",
    }.items():
        found = call(*refused, *limit)
        assert (found.exit_code, found.stdout) == (2, ""), refused
        assert re.search(message, found.stderr.strip()), found.stderr
    assert list(tmp_path.iterdir()) == []
    found = call("recalibrate", "fit", file, "--out", tmp_path / "m.json", "--memory-limit", "80GB")
    assert found.exit_code == 0
    assert call("test", file, "--method", "asymptotic", *limit).exit_code == 0


def test_a_memory_limit_is_shared_between_scans_and_rows(tmp_path):
    file = write({"y": [0, 1], "p": [0.2, 0.7]}, tmp_path / "t.csv", "csv")
    with open_table(file, memory_limit="400MB") as table:
        half = halve_memory(table)
        assert half == pytest.approx(200e6, rel=0.01)
        assert table.connection.sql("SELECT current_setting('memory_limit')").fetchall() == [("190.6 MiB",)]


def test_new_columns_are_written_some_rows_at_a_time(tmp_path):
    file = write({"y": np.zeros(50_000, dtype=int), "p": np.linspace(0, 1, 50_000)}, tmp_path / "t.parquet", "parquet")
    sizes = []

    def unchanged(p):
        sizes.append(p.size)
        return p

    with open_table(file) as table:
        write_with_column(table, "q", unchanged, "p", tmp_path / "o.parquet", "FORMAT parquet")
    assert sum(sizes) == 50_000
    assert max(sizes) <= 10_000


# --- Bad cells --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_large")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "y,p\n1,0.5\n0,1.2\n1,7\n",
            r"column 'p' is outside \[0, 1\] in 2 of 3 rows, for example in data row 2 \(counted from 1, without the "
            r"header\), where p = 1.2, y = 0; if these are percentages, divide by 100",
        ),
        ("y,p\n1,0.5\n,0.5\n", r"column 'y' is missing in 1 of 2 rows, for example in data row 2 .*; drop the row"),
        ("y,p\n1,0.5\n3,0.5\n", r"column 'y' is outside \[0, 1\] in 1 of 2 rows, .* pass --pos-label with the one"),
        ("y,p\n1,0.5\n1,high\n", r"column 'p' is 'high' in data row 2 .* text where a number is needed"),
        ("y,p\nyes,0.5\nno,0.5\n", r"column 'y' is of type text, labels and not numbers; pass --pos-label with the"),
        ("y,p\n0.5,1\n0.7,0\n", r"the columns look swapped: exchange --y-true and --y-prob$"),
        ("y,p,w\n1,0.5,1\n1,0.5,-1\n", r"column 'w' is negative in 1 of 2 rows, .*; weights must not be negative"),
        ("y,p\n", r"has no rows, only column names"),
        ("y,p\n1,0.5\n1\n", r"line 3: 1 value for 2 columns; correct the line"),
    ],
)
def test_bad_cells_are_counted_and_one_is_shown(text, message, tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(text)
    weight = ("--weight", "w") if ",w" in text else ()
    out = ("--out", tmp_path / "r.md")
    for command in (("certify", "--max-error", "0.1"), ("report", *out), ("recalibrate fit", *out)):
        found = call(*command[0].split(), file, "--y-true", "y", "--y-prob", "p", *command[1:], *weight)
        assert (found.exit_code, found.stdout) == (2, ""), command
        assert re.fullmatch(rf"Error: {re.escape(str(file))}.*\n", found.stderr)
        assert found.stderr.count(str(file)) == 1
        assert re.search(message, found.stderr.strip()), found.stderr
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "p\n0.5\n1.5\n2\n",
            r"column 'p' is 1.5 in data row 2 .* \(and out of range in 1 more\), outside \[0, 1\]; if these are ",
        ),
        ("p,q\n0.5,1\n,1\nnan,2\n", r"column 'p' has no value in data row 2 .* \(and in 1 more\)"),
        ("p\n0.5\ninf\n", r"column 'p' is inf in data row 2 .*; every value must be finite"),
        ("p\n0.5\nlow\n", r"column 'p' is 'low' in data row 2 .* text where a number is needed"),
        ("p\n", r"has no rows, only column names"),
    ],
)
def test_bad_forecasts_without_outcomes_are_counted_too(text, message, files, tmp_path):
    file, out = tmp_path / "t.csv", tmp_path / "o.csv"
    file.write_text(text)
    for command in (("recalibrate", "apply", files / "m.json", file, "--out", out), ("plan", file, "--max-error", 0.1)):
        found = call(*command, "--y-prob", "p")
        assert (found.exit_code, found.stdout) == (2, "")
        assert re.search(message, found.stderr)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.usefixtures("_large")
@pytest.mark.parametrize("name", ['a"b', "a'b", "p); DROP TABLE x; --", "GROUP BY", "[red]", "ü"])
def test_columns_may_be_named_anything(name, tmp_path):
    columns = predictions(200)
    file = write({"y": columns["y"], name: columns["p"]}, tmp_path / "it's [a] file.parquet", "parquet")
    found = answer("certify", file, "--y-prob", name, "--max-error", 0.5)
    assert found["result"]["estimate"] == pytest.approx(calibrant.cutoff_calibration_error(columns["y"], columns["p"]))
    bad = write({"y": columns["y"], name: columns["p"] + 1.0}, tmp_path / "bad.parquet", "parquet")
    refused = call("certify", bad, "--y-prob", name, "--max-error", 0.5)
    assert (refused.exit_code, refused.stderr.count("in 2")) == (2, 1)


# --- On a terminal ----------------------------------------------------------------------------------------------------


def test_a_terminal_sees_each_scan_and_a_pipe_does_not(files):
    arguments = [sys.executable, "-m", "calibrant", "certify", str(files / "many.parquet"), "--max-error", "0.2"]
    arguments += ["--y-true", "y", "--y-prob", "p", "--memory-limit", "1GB"]
    environment = {"PYTHONPATH": SOURCE, "TERM": "xterm", "COLUMNS": "200"}
    piped = subprocess.run(arguments, env=environment, capture_output=True, check=False)
    assert (piped.returncode, piped.stderr) == (0, b"")
    main_end, terminal = pty.openpty()
    seen = subprocess.run(arguments, env=environment, stdout=subprocess.PIPE, stderr=terminal, check=False)
    os.close(terminal)
    shown = b""
    while part := _read_terminal(main_end):
        shown += part
    os.close(main_end)
    assert seen.stdout == piped.stdout
    assert b"adding up" in shown
    assert b"looking closer at" in shown


def _read_terminal(end):
    try:
        return os.read(end, 65536)
    except OSError:  # nobody writes to it any more
        return b""


def test_the_bar_follows_the_query_and_work_inside_work_is_one_display(monkeypatch):
    class Connection:
        looked = 0

        def execute(self, _):
            return self

        def fetchall(self):
            return []

        def query_progress(self):
            self.looked += 1
            return -1.0 if self.looked == 1 else 40.0

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(outputs, "_LOOK_SECONDS", 0.001)
    connection: Any = Connection()
    with outputs.working("writing [the] report"), outputs.working("adding up", connection=connection):
        (display,) = outputs._showing
        deadline = time.monotonic() + 60
        while display.tasks[1].percentage != 40.0 and time.monotonic() < deadline:
            time.sleep(0.001)
        assert [task.description for task in display.tasks] == ["writing [the] report", "adding up"]
        assert (display.tasks[0].total, display.tasks[1].percentage) == (None, 40.0)
    assert outputs._showing == []


# --- Killed -----------------------------------------------------------------------------------------------------------

# Loads all that the commands need, once, and runs each command line that it is sent in a process of its own.
STOPPED = """
import json, os, signal, sys
import numpy as np
import calibrant, calibrant.cli.recalibrate, calibrant.cli.report, calibrant.engines.columns
from calibrant.cli import main
from calibrant.engines.duckdb import DuckDBEngine

def stop_at(stage, number):
    def stop():
        os.kill(os.getpid(), number)

    if stage == "scan":
        run = DuckDBEngine.run
        def interrupted(self, statement):
            stop()
            return run(self, statement)
        DuckDBEngine.run = interrupted
    elif stage == "rows":
        predict = calibrant.repairs.Recalibrator.predict
        seen = []
        def some(self, values):
            seen.append(1)
            if len(seen) == 5:
                stop()
            return predict(self, values)
        calibrant.repairs.Recalibrator.predict = some
    else:
        replace = os.replace
        def unplaced(source, target):
            assert os.stat(source).st_size > 0
            stop()
            return replace(source, target)
        os.replace = unplaced

signal.signal(signal.SIGINT, signal.default_int_handler)
forecasts = np.linspace(0.0, 1.0, 40_000)
calibrant.CalibrationReport.from_predictions(forecasts > 0.5, forecasts).markdown()  # loads what all of them use
while line := sys.stdin.readline():
    stage, number, words, said, remarks = json.loads(line)
    child = os.fork()
    if child == 0:
        for file, place in ((said, 1), (remarks, 2)):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), place)
        stop_at(stage, number)
        main(words, ends_process=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def end_in_the_middle(tmp_path_factory):
    """Run a command line that gets a signal at some stage, and return its exit code, output and remarks."""
    scratch = tmp_path_factory.mktemp("scratch")  # which nothing clears after a kill
    environment = {"PYTHONPATH": SOURCE, "OPENBLAS_NUM_THREADS": "1", "TMPDIR": str(scratch)}
    said, remarks = (tmp_path_factory.mktemp("said") / name for name in ("output", "remarks"))
    with subprocess.Popen(
        [sys.executable, "-c", STOPPED], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdin is not None
        assert started.stdout is not None
        asked, answers = started.stdin, started.stdout

        def run(stage, number, words):
            for file in (said, remarks):
                file.write_bytes(b"")
            print(json.dumps([stage, number, words, str(said), str(remarks)]), file=asked, flush=True)
            return int(answers.readline()), said.read_bytes(), remarks.read_bytes()

        yield run


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize(
    ("stage", "arguments"),
    [
        ("scan", ("report", "{file}", "--out", "{out}/r.md")),
        ("scan", ("recalibrate", "fit", "{file}", "--out", "{out}/r.md")),
        ("rows", ("recalibrate", "apply", "{model}", "{file}", "--out", "{out}/r.csv")),
        ("write", ("report", "{file}", "--out", "{out}/r.md")),
        ("write", ("recalibrate", "fit", "{file}", "--out", "{out}/r.md")),
        ("write", ("recalibrate", "apply", "{model}", "{file}", "--out", "{out}/r.parquet")),
    ],
)
def test_an_end_in_the_middle_leaves_what_was_there(stage, arguments, number, files, tmp_path, end_in_the_middle):
    places = {"file": files / "many.parquet", "out": tmp_path, "model": files / "m.json"}
    words = [part.format(**places) for part in arguments]
    before = Path(words[-1])
    before.write_text("what was there before")
    exit_code, said, remarks = end_in_the_middle(stage, number, [*words, "--memory-limit", "1GB"])
    assert before.read_text() == "what was there before"
    visible = [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")]
    assert visible == [before.name]
    if number == signal.SIGINT:
        assert (exit_code, said, b"Traceback" in remarks) == (130, b"", False), remarks
        assert list(tmp_path.iterdir()) == [before]
    else:
        assert exit_code == -signal.SIGKILL


@pytest.mark.usefixtures("usual_signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_before_a_command_is_loaded_is_no_verdict(monkeypatch, name):
    number = signal.Signals[name]
    monkeypatch.setattr("calibrant.cli.import_module", lambda _: signal.raise_signal(number))
    before = signal.getsignal(number)
    assert call("certify", "t.csv").exit_code == 128 + number
    assert signal.getsignal(number) == before


@pytest.mark.parametrize("error", [EOFError("marshal data too short"), ImportError("no such library"), MemoryError()])
def test_a_command_that_cannot_be_loaded_is_no_verdict(monkeypatch, error):
    def fail(_):
        raise error

    monkeypatch.setattr("calibrant.cli.import_module", fail)
    found = call("certify", "t.csv")
    assert found.exit_code == 2
    assert str(error) in found.stderr
