"""A database is left to the next table as if it were new, or not at all."""

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import duckdb
import pyarrow as pa
import pytest
from cli_cases import SOURCE

from calibrant import cutoff_calibration_error, scan
from calibrant.engines import databases
from calibrant.engines.databases import connect
from calibrant.engines.files import halve_memory, make_scratch, open_table

ROWS = pa.table({"y": [0, 1], "p": [0.25, 0.5]})


@pytest.fixture(autouse=True)
def none_is_left():
    databases._close_left()


def setting(connection, name):
    return connection.execute(f"SELECT current_setting('{name}')").fetchall()[0][0]


def answer(**options):
    with scan(ROWS, y_true="y", y_prob="p", **options) as rows:
        return cutoff_calibration_error(rows)


def test_one_table_after_another_takes_the_same_database():
    with connect(None, None):
        pass
    (left,) = databases._left
    with connect(None, None):
        assert databases._left == []
    assert databases._left == [left]
    with connect("500MB", None):  # which DuckDB 1.5 would not quite forget
        pass
    assert databases._left == []


def test_the_next_table_finds_no_view_limit_or_folder_of_the_last(tmp_path):
    with connect(None, None) as connection:
        memory = setting(connection, "memory_limit")
    path = tmp_path / "t.csv"
    path.write_text("y,p\n1,0.5\n")
    with open_table(path, memory_limit="500MB", temp_directory=str(tmp_path)) as table:
        assert setting(table.connection, "temp_directory").startswith(str(tmp_path))
        halve_memory(table)
        assert setting(table.connection, "memory_limit").startswith("238.")
        table.connection.register("more", ROWS)
        table.connection.execute("SET enable_progress_bar = true").fetchall()
    with connect(None, None) as connection:
        assert setting(connection, "memory_limit") == memory
        assert setting(connection, "temp_directory") == ""
        assert not setting(connection, "enable_progress_bar")
        assert connection.execute("SHOW ALL TABLES").fetchall() == []
    assert os.listdir(tmp_path) == ["t.csv"]


def test_tables_that_are_open_together_have_databases_of_their_own():
    with connect(None, None) as one, connect("500MB", None) as other:
        one.register("rows", ROWS)
        assert setting(one, "memory_limit") != setting(other, "memory_limit")
        with pytest.raises(duckdb.CatalogException):
            other.table("rows")
    assert len(databases._left) == 1
    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(lambda _: answer(), range(40))) == {answer()}


def test_one_that_has_used_its_folder_is_closed_before_the_folder_goes():
    scratch = make_scratch(None)
    assert scratch is not None
    with scratch, connect("60MB", scratch) as connection:
        connection.execute("CREATE TEMP TABLE much AS SELECT random() AS r, random()::VARCHAR AS s FROM range(2000000)")
        assert os.listdir(scratch.name)
    assert databases._left == []
    assert not os.path.exists(scratch.name)
    assert answer() == 0.25


def test_a_limit_that_is_refused_and_an_error_inside_leave_it_as_it_was():
    with pytest.raises(ValueError, match="memory_limit is '3 apples'"):
        answer(memory_limit="3 apples")
    with pytest.raises(duckdb.Error), connect(None, None) as connection:
        connection.execute("SELECT error('broken')").fetchall()
    assert len(databases._left) == 1
    assert answer() == 0.25


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only Unix forks processes: elsewhere none can inherit a database")
def test_processes_that_fork_have_databases_of_their_own():
    program = """
    import multiprocessing, warnings
    import pyarrow, calibrant
    from calibrant.engines import databases
    warnings.simplefilter("ignore")  # of threads, which Arrow has, too
    rows = pyarrow.table({"y": [0, 1] * 5000, "p": [0.25, 0.5] * 5000})
    def answer(_):
        with calibrant.scan(rows, y_true="y", y_prob="p") as handle:
            return calibrant.cutoff_calibration_error(handle)
    print(answer(0), len(databases._left))
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(answer, range(4)), len(databases._left))
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
        check=False,
        timeout=120,
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == ["0.25 1", "[0.25, 0.25, 0.25, 0.25] 0"]
