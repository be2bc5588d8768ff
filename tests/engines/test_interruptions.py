"""A run that is killed or interrupted leaves the previous output as it was."""

import os
import signal
import subprocess
import sys
import textwrap

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant import Cells

ENDLESS = """
    import duckdb, calibrant
    rows = duckdb.sql("SELECT random() AS p, 1 AS y FROM range(1000000000000)")
    handle = calibrant.scan(rows, y_true="y", y_prob="p")
"""
HALF_WRITTEN = """
    import time, pyarrow.parquet
    def write_half(table, file, **options):
        file.write(b"PAR1 and then nothing more")
        file.flush()
        print("writing", flush=True)
        for _ in range(600):  # in short naps: a signal that comes just before one is heard after it
            time.sleep(0.1)
    pyarrow.parquet.write_table = write_half
"""


def run_until(program, word, arguments, number):
    """Run a program, end it by a signal once it prints a word, and return what it said and how it ended."""
    command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == word
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        return process.returncode, said


@pytest.fixture
def shard(tmp_path):
    """Write a shard that the interrupted run would replace."""
    path = tmp_path / "out" / "shard.parquet"
    path.parent.mkdir()
    Cells.from_arrays([0, 1, 1], [0.2, 0.5, 0.9]).to_parquet(path)
    return path


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_in_the_middle_of_a_scan(shard, number):
    before = shard.read_bytes()
    program = (
        ENDLESS
        + """
    import sys
    print("scanning", flush=True)
    handle.cells().to_parquet(sys.argv[1])
    """
    )
    code, _ = run_until(program, "scanning", [shard], number)
    assert code != 0
    assert shard.read_bytes() == before
    assert list(shard.parent.iterdir()) == [shard]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_in_the_middle_of_writing(shard, number):
    before = shard.read_bytes()
    program = (
        HALF_WRITTEN
        + """
    import sys
    from calibrant import Cells
    Cells.from_arrays([0, 1], [0.3, 0.6]).to_parquet(sys.argv[1])
    """
    )
    code, _ = run_until(program, "writing", [shard], number)
    assert code != 0
    assert shard.read_bytes() == before
    assert Cells.from_parquet(shard).row_total == 3
    left = {path for path in shard.parent.iterdir() if path != shard}
    assert not left if number == signal.SIGINT else all(path.suffix == ".part" for path in left)


def test_an_interrupted_scan_of_a_file_removes_its_scratch_folder(tmp_path):
    pq.write_table(pa.table({"y": [0, 1], "p": [0.2, 0.7]}), tmp_path / "rows.parquet")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    program = """
    import sys, time, calibrant
    with calibrant.scan(sys.argv[1], y_true="y", y_prob="p", temp_directory=sys.argv[2]) as rows:
        rows.cells()
        print("scanned", flush=True)
        for _ in range(600):
            time.sleep(0.1)
    """
    code, said = run_until(program, "scanned", [tmp_path / "rows.parquet", scratch], signal.SIGINT)
    assert code != 0
    assert "KeyboardInterrupt" in said
    assert os.listdir(scratch) == []


def test_files_are_written_and_then_renamed(tmp_path):
    target = tmp_path / "model.json"
    target.write_text("the previous one")
    program = """
    import sys, time
    from calibrant.core.files import replacing
    with replacing(sys.argv[1]) as path:
        path.write_text("half of the ne")
        print("writing", flush=True)
        time.sleep(60)
    """
    code, _ = run_until(program, "writing", [target], signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert target.read_text() == "the previous one"
