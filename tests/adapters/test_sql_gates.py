"""A gate in SQL says what certify says with the same method, in two databases."""

import sqlite3

import duckdb
import numpy as np
import pytest

import calibrant
from calibrant.adapters import sql_test

RNG = np.random.default_rng(3)
NAMES = ("error", "upper", "max_error", "after", "through", "finding", "bad_rows", "n_rows")


def rows_of(shift, size=20_000):
    p = RNG.random(size).round(3)
    return (RNG.random(size) < np.clip(p + shift, 0.0, 1.0)).astype(int), p


def found_in_duckdb(y, p, **options):
    with duckdb.connect() as connection:
        connection.execute('CREATE TABLE scores ("the outcome" DOUBLE, "p" DOUBLE)')
        values = {"y": np.array(y, dtype=float), "p": np.array(p, dtype=float)}
        connection.register("arrays", values)
        connection.execute("INSERT INTO scores SELECT y, p FROM arrays")
        found = connection.execute(sql_test("scores", y_true="the outcome", y_prob="p", **options))
        return [dict(zip(NAMES, row, strict=True)) for row in found.fetchall()]


@pytest.mark.parametrize("shift", [0.0, 0.02, -0.02, 0.2, -0.2])
@pytest.mark.parametrize("confidence_level", [0.9, 0.99])
def test_it_says_what_certify_says(shift, confidence_level):
    y, p = rows_of(shift)
    expected = calibrant.certify(y, p, max_error=0.035, confidence_level=confidence_level, method="hoeffding")
    found = found_in_duckdb(y, p, max_error=0.035, confidence_level=confidence_level)
    assert bool(found) is (expected.verdict != "certified")
    (row,) = found_in_duckdb(y, p, max_error=0.0, confidence_level=confidence_level)
    assert row["error"] == pytest.approx(expected.estimate, rel=1e-9)
    assert row["upper"] == pytest.approx(expected.upper, rel=1e-9)
    inside = (p > row["after"]) & (p <= row["through"])
    mass = float(np.sum((y - p)[inside])) / p.size
    sign = 1.0 if "more frequent" in row["finding"] else -1.0
    assert sign * mass == pytest.approx(expected.worst_interval.error, rel=1e-9)


def test_an_empty_table_and_bad_rows_are_no_certificate():
    (row,) = found_in_duckdb([], [], max_error=1.0)
    assert (row["n_rows"], row["finding"]) == (0, "there are no rows")
    y, p = rows_of(0.0)
    for wrong in (np.nan, 1.2, -0.1):
        p[5] = wrong
        (row,) = found_in_duckdb(y, p, max_error=1.0)
        assert (row["bad_rows"], row["finding"]) == (1, "some rows are missing, no numbers, or outside [0, 1]")


def test_a_certificate_in_sqlite():
    y, p = rows_of(0.0)
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE scores (y INTEGER, p REAL)")
    connection.executemany("INSERT INTO scores VALUES (?, ?)", zip(y.tolist(), p.tolist(), strict=True))
    connection.create_function("sqrt", 1, np.sqrt, deterministic=True)  # which some builds lack
    expected = calibrant.certify(y, p, max_error=0.05, method="hoeffding")

    def found(limit):
        rows = connection.execute(sql_test("scores", y_true="y", y_prob="p", max_error=limit)).fetchall()
        return [dict(zip(NAMES, row, strict=True)) for row in rows]

    for limit in (0.05, 0.0):
        assert [row["upper"] for row in found(limit)] == ([] if limit else [pytest.approx(expected.upper, rel=1e-9)])
    for label in ("yes", "0.5 or so", "", None):
        connection.execute("UPDATE scores SET y = ? WHERE rowid <= 7", [label])
        assert [row["bad_rows"] for row in found(1.0)] == [7], (
            "SQLite casts a text to the number it begins with, or to 0"
        )
    connection.close()


@pytest.mark.parametrize("name", ["given", "sound", "forecasts", "curve", "ends", "found", "scores", "y", "p"])
def test_a_table_of_any_name_is_read(name):
    y, p = rows_of(0.2, size=50)
    rows = list(zip(y.tolist(), p.tolist(), strict=True))
    expected = calibrant.cutoff_calibration_error(y, p)
    lite = sqlite3.connect(":memory:")
    lite.create_function("sqrt", 1, np.sqrt, deterministic=True)  # which some builds lack
    with duckdb.connect() as duck:
        for connection in (lite, duck):
            connection.execute(f"CREATE TABLE {name} (y INTEGER, p DOUBLE)")
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?)", rows)
            (found,) = connection.execute(sql_test(name, y_true="y", y_prob="p", max_error=0.05)).fetchall()
            assert found[0] == pytest.approx(expected, rel=1e-9)
            connection.close()


def test_a_text_that_is_no_number_never_passes_in_duckdb():
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE scores AS SELECT if(i = 7, 'yes', '1') AS y, 1.0 AS p FROM range(9999) AS t(i)"
        )
        with pytest.raises(duckdb.ConversionException, match="Could not convert string 'yes'"):
            connection.execute(sql_test("scores", y_true="y", y_prob="p", max_error=1.0)).fetchall()


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_limit_is_a_share_of_all_rows(size):
    y, p = np.arange(size) % 2, np.full(size, 0.5)
    expected = calibrant.certify(y, p, max_error=1.0, method="hoeffding")
    assert (expected.verdict, found_in_duckdb(y, p, max_error=1.0)) == ("certified", [])
    (row,) = found_in_duckdb(y, p, max_error=0.9)
    assert row["upper"] == expected.upper == 1.0


@pytest.mark.parametrize("kind", ["BOOLEAN", "INTEGER", "REAL", "DECIMAL(9, 3)", "VARCHAR", "FLOAT"])
def test_outcomes_of_every_type_that_holds_numbers(kind):
    with duckdb.connect() as connection:
        connection.execute(
            f"CREATE TABLE scores AS SELECT (i % 2)::{kind} AS y, 0.5::FLOAT AS p FROM range(9999) AS t(i)"
        )
        assert connection.execute(sql_test("scores", y_true="y", y_prob="p", max_error=0.05)).fetchall() == []


def test_too_few_rows_are_not_called_wrong():
    y, p = rows_of(0.0, size=200)
    (row,) = found_in_duckdb(y, p, max_error=0.1)
    assert row["error"] < 0.1 < row["upper"]
    assert row["finding"] == "not certified: within the limit on these rows, which are too few to be sure"
    (row,) = found_in_duckdb(*rows_of(0.2), max_error=0.05)
    assert row["finding"] == "above the limit on these rows: events are more frequent than forecast"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_error": 1.5}, "max_error"),
        ({"confidence_level": 1.0}, "confidence_level"),
        ({"table": ""}, "table must be a name"),
        ({"y_prob": "y"}, "^y_prob is 'y', which is y_true: a column is never off itself; "),
        ({"y_prob": "a\0b"}, "y_prob must be a name"),
    ],
)
def test_what_cannot_be_asked(options, message):
    given = {"table": "scores", "y_true": "y", "y_prob": "p", "max_error": 0.05} | options
    with pytest.raises(ValueError, match=message):
        sql_test(**given)
