"""The program ends when it is told to: tidied up, quietly, with the exit code that shells expect."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from cli_cases import SOURCE

from calibrant.cli.signals import ended_by_signals

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="signals as Unix has them"),
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


@pytest.mark.parametrize("name", NAMES)
def test_a_program_that_is_told_to_stop_while_it_writes_leaves_nothing(tmp_path, name):
    number = signal.Signals[name]
    rows = "y,p\n" + "0,0.25\n1,0.75\n" * 50
    (tmp_path / "t.csv").write_text(rows)
    (tmp_path / "page.md").write_text("the previous one")
    program = """
    import pathlib, sys, time
    from calibrant.cli import main
    write = pathlib.Path.write_text
    def slowly(path, text, **options):
        write(path, text[:100], **options)
        print("writing", flush=True)
        time.sleep(60)
    pathlib.Path.write_text = slowly
    main(["report", "t.csv", "--out", "page.md"])
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    with subprocess.Popen(
        command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        process.send_signal(number)
        process.send_signal(number)
        said, remarks = process.communicate(timeout=60)
    assert (process.returncode, said) == (128 + number, b"")
    assert b"Traceback" not in remarks
    assert (tmp_path / "page.md").read_text() == "the previous one"
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", "page.md"}
