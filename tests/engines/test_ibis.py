"""Tables of Ibis on DuckDB are read by their own connection; others are refused with advice that works."""

import sqlite3
import subprocess
import sys
from typing import Any

import narwhals
import numpy as np
import pandas as pd
import pytest

import calibrant

ibis = pytest.importorskip("ibis", reason="ibis-framework[duckdb] is not installed")

# Ibis asks DuckDB for tables of Arrow by a name that is on its way out.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow:DeprecationWarning", "ignore:::ibis\\.")

RNG = np.random.default_rng(4)
ROWS = pd.DataFrame({"score": RNG.random(3000).round(3), "site": RNG.integers(0, 3, 3000)})
ROWS["label"] = (RNG.random(3000) < ROWS.score**1.2).astype(int)
NAMED: Any = {"y_true": "label", "y_prob": "score"}


@pytest.fixture
def backend(tmp_path):
    ROWS.to_parquet(tmp_path / "rows.parquet")
    backend = ibis.duckdb.connect()
    backend.con.execute(f"CREATE TABLE scores AS FROM '{tmp_path}/rows.parquet'")
    backend.con.execute("CREATE TABLE sites AS SELECT range AS site, range > 0 AS kept FROM range(3)")
    yield backend
    backend.disconnect()


def error_of(source, **options):
    with calibrant.scan(source, **NAMED, **options) as rows:
        return calibrant.cutoff_calibration_error(rows)


def expressions(backend):
    """Expressions, and the rows that they stand for."""
    table, sites = backend.table("scores"), backend.table("sites")
    return {
        "table": (table, ROWS),
        "filter": (table.filter(table.score > 0.4), ROWS[ROWS.score > 0.4]),
        "mutate": (table.mutate(score=table.score / 2), ROWS.assign(score=ROWS.score / 2)),
        "join": (table.join(sites, "site").filter(sites.kept), ROWS[ROWS.site > 0]),
        "narwhals": (narwhals.from_native(table), ROWS),
    }


@pytest.mark.parametrize("kind", ["table", "filter", "mutate", "join", "narwhals"])
def test_an_expression_is_read_where_it_is(backend, kind):
    table, rows = expressions(backend)[kind]
    before = backend.con.execute("FROM duckdb_tables()").fetchall()
    assert error_of(table) == pytest.approx(calibrant.cutoff_calibration_error(rows.label, rows.score), abs=1e-12)
    assert backend.con.execute("FROM duckdb_tables()").fetchall() == before


def test_groups_and_verdicts(backend):
    table = backend.table("scores")
    with calibrant.scan(table, **NAMED, by="site") as rows:
        found = calibrant.certify(rows, max_error=0.2)
    expected = calibrant.certify(ROWS.label, ROWS.score, by=ROWS.site, max_error=0.2)
    assert found.verdict == expected.verdict
    with calibrant.scan(table, **NAMED) as rows:
        assert calibrant.certify(rows, max_error=0.2).upper == pytest.approx(
            calibrant.certify(ROWS.label, ROWS.score, max_error=0.2).upper, abs=1e-12
        )
    assert backend.con.execute("SELECT 1").fetchall() == [(1,)]  # whose connection stays open


def test_nothing_is_copied(backend):
    with calibrant.scan(backend.table("scores"), **NAMED) as rows:
        backend.con.execute("DELETE FROM scores WHERE score <= 0.4")
        few = ROWS[ROWS.score > 0.4]
        expected = calibrant.cutoff_calibration_error(few.label, few.score)
        assert calibrant.cutoff_calibration_error(rows) == pytest.approx(expected, abs=1e-12)


def test_limits_of_memory_are_those_of_the_session(backend, tmp_path):
    for options in ({"memory_limit": "1GB"}, {"temp_directory": tmp_path}):
        with pytest.raises(calibrant.InputError, match=r"^memory_limit and temp_directory are for files and frames; "):
            error_of(backend.table("scores"), **options)
    with pytest.raises(calibrant.InputError, match=r"^engine is 'spark', but .* needs 'duckdb'"):
        error_of(backend.table("scores"), engine="spark")


def test_what_the_connection_does_not_hold_goes_through_arrow(backend):
    expected = calibrant.cutoff_calibration_error(ROWS.label, ROWS.score)
    message = r"^source is an Ibis table that its connection to DuckDB cannot read: .*; pass table.to_pyarrow\(\)$"
    kept = ibis.memtable(pd.DataFrame({"site": [0, 1, 2]}))
    for table in (ibis.memtable(ROWS), backend.table("scores").join(kept, "site")):
        with pytest.raises(calibrant.InputError, match=message):
            error_of(table)
        assert error_of(table.to_pyarrow()) == pytest.approx(expected, abs=1e-12)


def test_other_backends_go_through_arrow_or_parquet(tmp_path):
    with sqlite3.connect(tmp_path / "rows.sqlite") as connection:
        ROWS.to_sql("scores", connection, index=False)
    connection.close()
    backend = ibis.sqlite.connect(tmp_path / "rows.sqlite")
    table = backend.table("scores")
    with pytest.raises(
        calibrant.InputError,
        match=r"^source is an Ibis table of the backend 'sqlite', .*; pass table.to_pyarrow\(\), or the path after "
        r"table.to_parquet\(path\)$",
    ):
        error_of(table)
    expected = calibrant.cutoff_calibration_error(ROWS.label, ROWS.score)
    assert error_of(table.to_pyarrow()) == pytest.approx(expected, abs=1e-12)
    table.to_parquet(tmp_path / "scores.parquet")
    assert error_of(tmp_path / "scores.parquet") == pytest.approx(expected, abs=1e-12)
    backend.disconnect()


def test_columns_of_two_queries_are_not_taken_for_one_table(backend):
    scores = backend.table("scores")
    counts = scores.group_by("score").agg(rows=scores.count(), events=scores.label.sum())
    message = r"is an expression of Ibis, and two of them are two queries, .*; pass columns of one table"
    with pytest.raises(calibrant.InputError, match=f"^y_prob {message}"):
        calibrant.cutoff_calibration_error(scores.label, scores.score)
    with pytest.raises(calibrant.InputError, match=f"^forecast {message}"):
        calibrant.Tally.from_counts(counts.score, counts.rows, counts.events)
    table = counts.to_pyarrow()
    tally = calibrant.Tally.from_counts(table["score"], table["rows"], table["events"])
    assert tally.row_total == 3000


def test_ibis_is_not_imported():
    code = """
import sys
from typing import Any
import calibrant, pyarrow
table = pyarrow.table({"label": [0, 1], "score": [0.25, 0.5]})
with calibrant.scan(table, y_true="label", y_prob="score") as rows:
    calibrant.cutoff_calibration_error(rows)
assert "ibis" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
