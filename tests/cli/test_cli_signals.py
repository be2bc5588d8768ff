"""The program ends when it is told to: tidied up, quietly, with the exit code that shells expect."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from cli_cases import SOURCE

from calibrant.cli.signals import ended_by_signals

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="Windows sends programs no signals"),
    pytest.mark.usefixtures("usual_signals"),
]
NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


@pytest.mark.parametrize("name", NAMES)
def test_a_signal_unwinds_and_decides_the_exit_code(name):
    number = signal.Signals[name]
    before = signal.getsignal(number), sys.unraisablehook
    tidied = []

    def work():
        with ended_by_signals():
            try:
                signal.raise_signal(number)
            finally:
                signal.raise_signal(number)  # said twice: what is being tidied up goes on
                tidied.append(True)

    with pytest.raises(SystemExit) as ended:
        work()
    assert ended.value.code == 128 + number
    assert tidied == [True]
    assert (signal.getsignal(number), sys.unraisablehook) == before


@pytest.mark.parametrize("made_of_it", [ValueError("a bad CSV"), SystemExit(2), None])
def test_it_does_not_matter_what_a_library_makes_of_it(made_of_it):
    def work():
        with ended_by_signals():
            try:
                signal.raise_signal(signal.SIGTERM)
            except SystemExit:
                if made_of_it is not None:
                    raise made_of_it from None

    with pytest.raises(SystemExit) as ended:
        work()
    assert ended.value.code == 143


def test_what_python_has_to_ignore_is_said_again():
    class Torn:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)

    def work():
        with ended_by_signals():
            Torn()
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                time.sleep(0.01)
            waited_to_the_end.append(True)

    waited_to_the_end: list[bool] = []
    with pytest.raises(SystemExit) as ended:
        work()
    assert ended.value.code == 143
    assert waited_to_the_end == []


def test_a_signal_that_was_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_by_signals():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_process_that_ends_with_it_does_not_hear_it_again():
    def work():
        with ended_by_signals(for_good=True):
            signal.raise_signal(signal.SIGTERM)

    usual = signal.getsignal(signal.SIGALRM)
    try:
        with ended_by_signals(for_good=True):
            pass
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL  # nobody told it to stop
        with pytest.raises(SystemExit) as ended:
            work()
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGALRM, usual)
    assert ended.value.code == 143


def test_other_threads_are_left_alone():
    seen = []

    def work():
        with ended_by_signals():
            seen.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


# A process of its own for each signal, all from one that has loaded what they need.
PROGRAM = """
import json, os, pathlib, signal, sys, time
import calibrant
from calibrant.cli import main

calibrant.CalibrationReport.from_predictions([0, 1] * 50, [0.25, 0.75] * 50).markdown()
write = pathlib.Path.write_text

def slowly(path, text, **options):
    write(path, text[:100], **options)
    print("writing", flush=True)
    for _ in range(600):  # in short naps: a signal that comes just before one is heard after it
        time.sleep(0.1)

ends = {}
for name in sys.argv[1:]:
    os.chdir(name)
    said, saying = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(saying, 1)
        os.dup2(os.open("../remarks", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.close(said)
        os.close(saying)
        pathlib.Path.write_text = slowly
        main(["report", "t.csv", "--out", "page.md"], ends_process=True)
    os.close(saying)
    with os.fdopen(said) as output:
        begun = output.readline()
        for _ in range(2):
            os.kill(child, signal.Signals[name])
        rest = output.read()
    exit_code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    ends[name] = begun, exit_code, rest, pathlib.Path("../remarks").read_text()
    os.chdir("..")
print(json.dumps(ends))
"""


def test_a_program_that_is_told_to_stop_while_it_writes_leaves_nothing(tmp_path):
    for name in NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "t.csv").write_text("y,p\n" + "0,0.25\n1,0.75\n" * 50)
        (tmp_path / name / "page.md").write_text("the previous one")
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM, *NAMES],
        env={**os.environ, "PYTHONPATH": SOURCE},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        timeout=120,
        check=True,
    )
    ends = json.loads(finished.stdout)
    for name in NAMES:
        begun, exit_code, rest, remarks = ends[name]
        assert (begun, exit_code, rest) == ("writing\n", 128 + signal.Signals[name], ""), name
        assert "Traceback" not in remarks
        assert (tmp_path / name / "page.md").read_text() == "the previous one"
        assert {path.name for path in (tmp_path / name).iterdir()} == {"t.csv", "page.md"}
