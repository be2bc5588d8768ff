"""Scans know the clusters of their rows as arrays do: totals by cluster and block, rows, and each cluster once."""

import decimal
import math
import sqlite3
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from row_sources import distributions
from scan_cases import HALF_OF_ALL, outcomes
from spark_cases import needs_java, spark_frame
from table_cases import FORMATS, write

import calibrant
from calibrant import scan
from calibrant.engines.statements import Engine
from calibrant.rows.checks import check_observations
from calibrant.rows.clusters import ClusteredRows, ClusteredSource
from calibrant.rows.grids import FIRST_GRID

SIZE = 2_000
FORECASTS = distributions(SIZE)
ROLES: dict[str, Any] = {"y_true": "y", "y_prob": "p", "cluster": "c"}


def clustered(y, p, labels, w=None):
    """Return rows in memory with their clusters."""
    return ClusteredRows.of(check_observations(y, p, sample_weight=w, order=None), labels)


def borders_of(p):
    """Return sets of borders: none, a few at forecasts, many at forecasts, and many very close together."""
    distinct = np.unique(p)
    inner = distinct[distinct > 0.0]
    few, many = (np.unique(inner[:: max(1, inner.size // count)]) for count in (5, 300))
    close = np.unique(np.append(np.linspace(0.1, 1.0, 40), 0.3 + np.arange(50) * 2.0**-50))
    tiny = np.append(2.0 ** np.arange(-1074.0, 0.0, 15.0), 1.0)
    return [np.zeros(1), *(np.append(0.0, inside) for inside in (few, many, close, tiny))]


FEW_AND_MANY = slice(1, 3)
"""The sets of borders at forecasts, where labels or files are in question and not borders."""


def assert_same_sums(mine, other):
    assert mine.clusters == other.clusters
    for name in ("cluster", "block", "rows"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(other, name))
        assert getattr(mine, name).dtype == np.int64
    for name in ("weight", "outcome", "above", "below"):
        np.testing.assert_allclose(getattr(mine, name), getattr(other, name), rtol=1e-12, atol=1e-14)


def in_order(rows, codes):
    weight = np.ones(codes.size) if rows.sample_weight is None else rows.sample_weight
    return np.array(sorted(zip(rows.y_prob, rows.y_true, codes, weight, strict=True))).reshape(-1, 4)


def assert_same_rows(mine, other, low, high):
    np.testing.assert_allclose(
        in_order(*mine.fetch_clusters(low, high)), in_order(*other.fetch_clusters(low, high)), rtol=1e-12
    )


def stretches_of(p):
    distinct = np.unique(p) + 0.0  # -0.0 is the forecast 0.0
    low = distinct[:: max(1, distinct.size // 3)][:3]
    high = np.append(np.nextafter(low[1:], 0.0), low[-1])
    return low, np.maximum(low, high)


def check_once(handle, expected, sets):
    p = expected.observations.y_prob
    assert handle.cluster_count == expected.cluster_count
    for borders in borders_of(p)[sets]:
        assert_same_sums(handle.cluster_sums(borders), expected.cluster_sums(borders))
    low, high = stretches_of(p)
    assert_same_rows(handle, expected, low, high)
    assert_same_rows(handle, expected, np.zeros(1), np.ones(1))
    mine, other = handle.histogram(FIRST_GRID), expected.histogram(FIRST_GRID)
    np.testing.assert_array_equal(mine.index, other.index)
    for name in ("weight", "weight_square", "residual"):
        np.testing.assert_allclose(getattr(mine, name), getattr(other, name), rtol=1e-12, atol=1e-13)


def check(handle, expected, sets=slice(None)):
    """Compare everything that a source with clusters can be asked, for some sets of borders."""
    with handle:
        source: Any = handle
        assert isinstance(source, ClusteredSource)
        check_once(handle, expected, sets)
        each = handle.once_each()
        check_once(each, expected.once_each(), sets)
        assert each.once_each() is each
        assert each.scans == handle.scans
        assert math.isclose(each.cells(3).weight_total, expected.cluster_count, rel_tol=1e-12)


def labels_of(size, clusters=70, seed=5):
    return np.random.default_rng(seed).integers(0, clusters, size) - 3


@pytest.mark.parametrize(("name", "kind"), HALF_OF_ALL)
def test_any_forecasts_and_weights(name, kind):
    p = FORECASTS[name]
    y, w = outcomes(p, kind)
    labels = labels_of(SIZE)
    if w is not None:
        w = np.where(labels == 7, 0.0, w)  # a cluster that does not count
    if name == "zero and one" and kind == "fractions":
        y = np.round(y)
    table = pa.table({"y": y, "p": p, "w": np.ones(SIZE) if w is None else w, "c": labels})
    expected = clustered(y, p, labels, w)
    assert expected.cluster_count == (70 if w is None else 69)
    check(scan(table, sample_weight=None if w is None else "w", **ROLES), expected)


DAYS = np.datetime64("2023-12-30") + labels_of(SIZE)
LABELS: dict[str, Any] = {
    "whole numbers": labels_of(SIZE),
    "long whole numbers": labels_of(SIZE) + 2**60,
    "unsigned": labels_of(SIZE).astype(np.uint64) + np.uint64(2**63),
    "fractions": labels_of(SIZE) / 3.0,
    "zeros of both signs": np.array([0.0, -0.0, 1.5, -2.0])[np.arange(SIZE) % 4],
    "short fractions": (labels_of(SIZE) / 3.0).astype(np.float32),
    "truths": labels_of(SIZE) > 9,
    "texts": np.array([f"{'éa B'[k % 4]}'\\{k}" for k in labels_of(SIZE)]),
    "days": DAYS,
    "times": DAYS.astype("datetime64[us]") + np.timedelta64(1_250_000, "us") * (np.arange(SIZE) % 3),
    "decimals": np.array([decimal.Decimal(f"1234567890123456789.{k + 3:02d}") for k in labels_of(SIZE)], dtype=object),
}


@pytest.mark.parametrize("name", LABELS)
class TestLabels:
    p = FORECASTS["rounded"]
    y, _ = outcomes(p, "plain")

    def test_of_arrow(self, name):
        table = pa.table({"y": self.y, "p": self.p, "c": LABELS[name]})
        check(scan(table, **ROLES), clustered(self.y, self.p, LABELS[name]), FEW_AND_MANY)

    def test_on_a_connection_of_somebody_else(self, name):
        connection = duckdb.connect()
        connection.register("arrow", pa.table({"y": self.y, "p": self.p, "c": LABELS[name]}))
        connection.execute("CREATE TABLE scores AS SELECT * FROM arrow")
        # A relation and a table by turns: they are the same from their view on.
        relation = list(LABELS).index(name) % 2 == 0
        source = connection.sql("SELECT * FROM scores ORDER BY p") if relation else (connection, "scores")
        check(scan(source, **ROLES), clustered(self.y, self.p, LABELS[name]), FEW_AND_MANY)


def test_whole_numbers_of_more_than_64_bits():
    labels = [2**100, -(2**99), 2**100, 5, 2**100 + 1]
    y, p = [0.0, 1.0, 1.0, 0.0, 1.0], [0.1, 0.2, 0.3, 0.4, 0.5]
    connection = duckdb.connect()
    connection.execute("CREATE TABLE scores (y DOUBLE, p DOUBLE, c HUGEINT)")
    connection.executemany("INSERT INTO scores VALUES (?, ?, ?)", list(zip(y, p, labels, strict=True)))
    check(scan((connection, "scores"), **ROLES), clustered(y, p, np.array([2, 0, 2, 1, 3])))


def test_categories_are_texts():
    words = np.array(["low", "high", "middle"])[np.arange(SIZE) % 3]
    p = FORECASTS["uniform"]
    y, _ = outcomes(p, "plain")
    column = pd.Categorical(words, categories=["low", "middle", "high"], ordered=True)
    check(scan(pd.DataFrame({"y": y, "p": p, "c": column}), **ROLES), clustered(y, p, words))


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "arrow", "dataset"])
def test_frames(kind):
    p = FORECASTS["skewed"]
    y, w = outcomes(p, "weights")
    labels = np.array([f"patient {k}" for k in labels_of(SIZE)])
    table = pa.table({"y": y, "p": p, "w": w, "c": labels})
    frames = {
        "pandas": table.to_pandas,
        "polars": lambda: pl.from_arrow(table),
        "lazy": lambda: pl.DataFrame(table).lazy(),
        "arrow": lambda: table,
        "dataset": lambda: pyarrow.dataset.dataset(table),
    }
    check(scan(frames[kind](), sample_weight="w", **ROLES), clustered(y, p, labels, w))


@given(
    st.lists(
        st.tuples(
            st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, -0.0, 1.0, 5e-324, 0.5, 0.25, 1.0 - 2.0**-53])),
            st.sampled_from([0.0, 1.0]),
            st.sampled_from([0.0, 1.0, 3.0, 0.1]),
            st.sampled_from(["a", "b", "A", "it's", "", "é", "10", "9"]),
        ),
        min_size=1,
        max_size=30,
    ).filter(lambda rows: any(weight > 0 for _, _, weight, _ in rows)),
    st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_any_rows(rows, weighted):
    p, y, w, labels = (np.array(column) for column in zip(*rows, strict=True))
    table = pa.table({"y": y, "p": p, "w": w, "c": labels})
    expected = clustered(y, p, labels, w if weighted else None)
    check(scan(table, sample_weight="w" if weighted else None, **ROLES), expected)


FILE_LABELS: dict[str, Any] = {
    "numbers": labels_of(300, 40),
    "texts": np.array([f"patient {k}" for k in labels_of(300, 40)]),
    "days": (np.datetime64("2023-12-30") + labels_of(300, 40)).astype(str),
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for each, kind in enumerate(FORMATS)
        for place, name in enumerate(FILE_LABELS)
        if name == "texts" or place == each % len(FILE_LABELS)
    ],
)
def test_files(kind, name, tmp_path):
    p = FORECASTS["rounded"][:300]
    y, w = outcomes(p, "weights")
    labels = FILE_LABELS[name]
    path = write({"y": y, "p": p, "w": w, "c": labels}, tmp_path / f"rows.{kind}", kind)
    check(scan(path, sample_weight="w", **ROLES), clustered(y, p, labels, w), FEW_AND_MANY)


def test_several_files_with_little_memory(tmp_path):
    rng = np.random.default_rng(2)
    p = rng.random(200_000)
    y, _ = outcomes(p, "plain")
    labels = rng.integers(0, 30_000, p.size)
    table = pa.table({"y": y, "p": p, "c": labels})
    for part in range(2):
        pq.write_table(table.slice(part * 100_000, 100_000), tmp_path / f"{part}.parquet")
    expected, borders = clustered(y, p, labels), np.append(0.0, np.sort(rng.random(200)))
    with scan(tmp_path, memory_limit="200MB", **ROLES) as rows:
        assert_same_sums(rows.cluster_sums(borders), expected.cluster_sums(borders))
        assert_same_sums(rows.once_each().cluster_sums(borders), expected.once_each().cluster_sums(borders))


@needs_java
class TestSpark:
    @pytest.mark.parametrize("name", ["zeros of both signs", "texts", "days"])
    def test_labels(self, spark, name):
        p = FORECASTS["rounded"]
        y, _ = outcomes(p, "plain")
        columns = {"y": y, "p": p, "c": LABELS[name]}
        # All that there is to ask is asked below: this is about the names of clusters.
        expected, borders = clustered(y, p, LABELS[name]), borders_of(p)[1]
        with scan(spark_frame(spark, columns).repartition(3), **ROLES) as handle:
            assert handle.cluster_count == expected.cluster_count
            assert_same_sums(handle.cluster_sums(borders), expected.cluster_sums(borders))
            assert_same_rows(handle.once_each(), expected.once_each(), np.zeros(1), np.ones(1))

    def test_weights_and_many_blocks(self, spark):
        p = FORECASTS["skewed"]
        y, w = outcomes(p, "weights")
        labels = labels_of(SIZE)
        source = spark_frame(spark, {"y": y, "p": p, "c": labels, "w": w}).repartition(3)
        check(scan(source, sample_weight="w", **ROLES), clustered(y, p, labels, w), slice(2, 4))


class SQLiteEngine(Engine):
    """An engine that offers no more than SQL, as docs/how-to/scale.md shows it."""

    text_type = "TEXT"

    def __init__(self, columns):
        self.name = self.table = "scores"
        self.columns = {name: "text" if name == "c" else "fraction" for name in columns}
        self.connection = sqlite3.connect(":memory:")
        self.connection.create_function("floor", 1, lambda x: None if x is None else math.floor(x), deterministic=True)
        self.connection.execute("CREATE TABLE scores (y REAL, p REAL, w REAL, c TEXT)")
        self.connection.executemany("INSERT INTO scores VALUES (?, ?, ?, ?)", zip(*columns.values(), strict=True))

    def run(self, statement):
        found = self.connection.execute(statement)
        names = [column[0] for column in found.description]
        values = list(zip(*found.fetchall(), strict=True)) or [()] * len(names)
        return {name: np.array(column) for name, column in zip(names, values, strict=True)}

    def missing(self, number):
        return f"({number} IS NULL)"

    def close(self):
        self.connection.close()


@pytest.mark.parametrize("weight", ["w", None])
def test_an_engine_of_ones_own_needs_no_more_than_sql(weight):
    p = FORECASTS["rounded"][:500]
    y, w = outcomes(p, "weights")
    labels = np.array([f"it's {k}" for k in labels_of(500)])
    engine = SQLiteEngine({"y": y.tolist(), "p": p.tolist(), "w": np.asarray(w).tolist(), "c": labels.tolist()})
    check(scan(engine, sample_weight=weight, **ROLES), clustered(y, p, labels, w if weight else None))


class TestOrder:
    def order(self, path):
        with scan(path, **ROLES) as rows:
            found, codes = rows.fetch_clusters(np.zeros(1), np.ones(1))
        return codes[np.argsort(found.y_prob)].tolist()

    def test_numbers_in_texts_are_in_the_order_of_numbers(self, tmp_path):
        (tmp_path / "a.csv").write_text("y,p,c\n0,.1,10\n1,.2,9\n0,.3,1e3\n0,.4,-2\n0,.5,9.0\n")
        assert self.order(tmp_path / "a.csv") == [3, 1, 4, 0, 2]

    def test_texts_among_them_make_all_of_them_texts(self, tmp_path):
        (tmp_path / "a.csv").write_text("y,p,c\n0,.1,10\n1,.2,9\n0,.3,b\n0,.4,B\n")
        assert self.order(tmp_path / "a.csv") == [0, 1, 3, 2]

    def test_texts_of_typed_columns_are_texts(self):
        assert self.order(pa.table({"y": [0, 1, 0], "p": [0.1, 0.2, 0.3], "c": ["10", "9", "1"]})) == [1, 2, 0]


def test_events_named_by_a_label():
    p = FORECASTS["uniform"]
    y, _ = outcomes(p, "plain")
    labels = labels_of(SIZE)
    table = pa.table({"y": np.where(y == 1.0, "late", "on time"), "p": p, "c": labels})
    check(scan(table, pos_label="late", **ROLES), clustered(y, p, labels))


def test_answers_without_clusters_are_those_of_any_scan():
    p = FORECASTS["uniform"]
    y, _ = outcomes(p, "plain")
    table = pa.table({"y": y, "p": p, "c": labels_of(SIZE)})
    with scan(table, **ROLES) as rows:
        assert repr(rows) == "ClusteredScan(the Table: cluster='c', y_prob='p', y_true='y'; not read yet)"
        found = calibrant.cutoff_calibration_error(rows)
        assert found == pytest.approx(calibrant.cutoff_calibration_error(y, p), rel=1e-12)
        assert rows.scans == 2
        assert rows.cluster_count == 70
        assert rows.scans == 3
        before = rows.rows_fetched
        rows.once_each().fetch_clusters(np.zeros(1), np.ones(1))
        assert (rows.scans, rows.rows_fetched) == (5, before + SIZE)


class TestRefusals:
    def table(self, **columns):
        return pa.table({"y": [0, 1, 1, 0], "p": [0.1, 0.2, 0.3, 0.4], "c": ["a", "b", "a", "c"], **columns})

    @pytest.mark.parametrize(
        "labels",
        [["a", None, "b", None], [1, None, 2, None], [0.5, math.nan, 1.0, None], [True, None, False, None]],
    )
    def test_missing_labels_as_in_arrays(self, labels):
        message = (
            r"^the Table: cluster \(column 'c'\) is missing in 2 rows; drop the row or fill in its value before "
            r"measuring$"
        )
        with scan(self.table(c=labels), **ROLES) as rows, pytest.raises(ValueError, match=message):
            assert rows.cluster_count
        with scan(self.table(c=labels, w=[1, 0, 1, 0]), sample_weight="w", **ROLES) as rows:
            for ask in (rows.once_each, lambda: rows.cluster_sums(np.zeros(1))):
                with pytest.raises(ValueError, match=message):
                    ask()

    @pytest.mark.parametrize("gone", ["", "NA", "nan", " null "])
    def test_missing_labels_in_text_files(self, gone, tmp_path):
        (tmp_path / "a.csv").write_text(f"y,p,c\n0,.1,x\n1,.2,{gone}\n")
        with scan(tmp_path / "a.csv", **ROLES) as rows, pytest.raises(ValueError, match=r"is missing in 1 row; drop"):
            assert rows.cluster_count

    def test_infinite_labels(self):
        with (
            scan(self.table(c=[1.0, math.inf, 2.0, -math.inf]), **ROLES) as rows,
            pytest.raises(ValueError, match=r"is infinite in 2 rows; every value must be finite"),
        ):
            assert rows.cluster_count

    def test_columns_that_cannot_be_clusters(self):
        with pytest.raises(ValueError, match="has no column 'd'; its columns are 'y', 'p', 'c'"):
            scan(self.table(), y_true="y", y_prob="p", cluster="d")
        number: Any = 3
        with pytest.raises(ValueError, match="cluster is 3; pass the name of a column"):
            scan(self.table(), y_true="y", y_prob="p", cluster=number)
        message = r"^the Table: cluster \(column 'p'\) is also y_prob; choose a column that says which rows belong"
        with pytest.raises(ValueError, match=message):
            scan(self.table(), y_true="y", y_prob="p", cluster="p")
        message = r"^cluster was given together with by, .*; scan the rows of one group at a time, or read"
        with pytest.raises(ValueError, match=message):
            scan(self.table(g=[1, 1, 2, 2]), by="g", **ROLES)

    def test_too_many_clusters(self, monkeypatch):
        monkeypatch.setattr("calibrant.engines.clustered.MOST_CLUSTERS", 2)
        message = (
            r"^the Table: cluster \(column 'c'\) has more than 2 different values; merge clusters into larger ones"
        )
        with scan(self.table(), **ROLES) as rows, pytest.raises(ValueError, match=message):
            assert rows.cluster_count

    def test_bad_rows_before_all_else(self):
        with (
            scan(self.table(p=[0.1, 0.2, 1.5, 0.3]), **ROLES) as rows,
            pytest.raises(ValueError, match=r"y_prob \(column 'p'\) is outside \[0, 1\] in 1 of 4 rows"),
        ):
            assert rows.cluster_count

    def test_weights_that_cannot_be_used(self):
        with (
            scan(self.table(w=[1, -1, 1, 1]), sample_weight="w", **ROLES) as rows,
            pytest.raises(ValueError, match=r"sample_weight \(column 'w'\) is negative in 1 of 4 rows"),
        ):
            rows.once_each()
        with (
            scan(self.table(w=[0, 0, 0, 0]), sample_weight="w", **ROLES) as rows,
            pytest.raises(ValueError, match=r"sample_weight is zero everywhere"),
        ):
            rows.once_each()


class TestChanges:
    """Rows that change between two scans are refused, whatever is asked."""

    ASKED: tuple[Any, ...] = (
        lambda rows: rows.cluster_sums(np.array([0.0, 0.5])),
        lambda rows: rows.fetch_clusters(np.zeros(1), np.ones(1)),
    )

    def handle(self, changes):
        connection = duckdb.connect()
        connection.execute("CREATE TABLE scores (y DOUBLE, p DOUBLE, c VARCHAR)")
        connection.execute("INSERT INTO scores VALUES (0, 0.1, 'a'), (1, 0.7, 'b'), (1, 0.9, 'b')")
        rows = scan((connection, "scores"), **ROLES)
        assert rows.cluster_count == 2
        connection.execute(changes)
        return rows

    @pytest.mark.parametrize("ask", ASKED)
    @pytest.mark.parametrize(
        "changes",
        [
            "UPDATE scores SET c = 'other' WHERE p = 0.1",
            "INSERT INTO scores VALUES (1, 0.2, 'c')",
            "UPDATE scores SET c = NULL WHERE p = 0.7",
        ],
    )
    def test_of_labels(self, changes, ask):
        message = r"the clusters are not those .*: the rows changed in between$"
        with self.handle(changes) as rows, pytest.raises(ValueError, match=message):
            ask(rows)

    def test_of_numbers_of_rows(self):
        with (
            self.handle("INSERT INTO scores VALUES (1, 0.2, 'b')") as rows,
            pytest.raises(ValueError, match=r"the rows changed in between$"),
        ):
            rows.cluster_sums(np.array([0.0, 0.5]))

    def test_of_forecasts(self):
        with (
            self.handle("UPDATE scores SET y = 0.5") as rows,
            pytest.raises(ValueError, match=r"a row was fetched that the first scan did not count"),
        ):
            rows.fetch_clusters(np.zeros(1), np.ones(1))
        with (
            self.handle("UPDATE scores SET p = 7 WHERE p = 0.7") as rows,
            pytest.raises(ValueError, match=r"totals of a cluster such as no rows have"),
        ):
            rows.cluster_sums(np.array([0.0, 0.5]))

    def test_before_the_labels_were_read(self):
        connection = duckdb.connect()
        connection.execute("CREATE TABLE scores (y DOUBLE, p DOUBLE, c VARCHAR)")
        connection.execute("INSERT INTO scores VALUES (0, 0.1, 'a'), (1, 0.7, 'b')")
        with scan((connection, "scores"), **ROLES) as rows:
            rows.cells()
            connection.execute("INSERT INTO scores VALUES (0, 0.1, 'a')")
            with pytest.raises(ValueError, match=r"the rows changed in between$"):
                assert rows.cluster_count
