"""A program that is told to stop at any time leaves the previous output or the new one, whole, and nothing else."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest
from cli_cases import SOURCE, call
from table_cases import predictions, write

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="Windows sends programs no signals"),
    pytest.mark.usefixtures("usual_signals"),
]
SEED = 7
RUNS_PER_COMMAND = round(2 * float(os.environ.get("CALIBRANT_REPLICATES", "1")))
PREVIOUS = b"the previous one\n"
COMMANDS = {
    "fit": ("recalibrate", "fit", "t.csv", "--method", "platt", "--out", "out.json"),
    "apply": ("recalibrate", "apply", "m.json", "t.csv", "--out", "out.csv"),
    "report": ("report", "t.csv", "--out", "out.md"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signals")
    write(predictions(3000), folder / "t.csv", "csv")
    assert call("recalibrate", "fit", folder / "t.csv", "--out", folder / "m.json").exit_code == 0
    return folder


def start(folder, command, environment):
    return subprocess.Popen(
        [sys.executable, "-m", "calibrant", *COMMANDS[command]],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_signal_at_any_time(folder, tmp_path, command):
    rng = random.Random(f"{SEED} {command}")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "PYTHONPATH": SOURCE, "TMPDIR": str(scratch), "PYTHONDONTWRITEBYTECODE": "1"}
    out = folder / COMMANDS[command][-1]
    started = time.monotonic()
    whole = start(folder, command, environment)
    answer, _ = whole.communicate(timeout=120)
    assert whole.returncode == 0
    usual = time.monotonic() - started
    expected, others = out.read_bytes(), set(os.listdir(folder)) - {out.name}
    for _ in range(RUNS_PER_COMMAND):
        out.unlink(missing_ok=True)
        before = rng.choice([None, PREVIOUS])
        if before is not None:
            out.write_bytes(before)
        number = rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
        process = start(folder, command, environment)
        time.sleep(rng.uniform(0.0, 1.1) * usual)
        process.send_signal(number)
        if rng.random() < 0.3:
            process.send_signal(number)
        said, _ = process.communicate(timeout=120)
        # Before the program has begun and after it is done, Python lets the signal itself end the process: the same
        # number for a shell.
        told = process.returncode in (128 + number, -number)
        assert told or process.returncode == 0, (number, process.returncode)
        found = out.read_bytes() if out.exists() else None
        assert found in (before, expected), number
        if not told:
            assert (found, said) == (expected, answer)
        assert set(os.listdir(folder)) - {out.name} == others, number
        assert os.listdir(scratch) == [], number
