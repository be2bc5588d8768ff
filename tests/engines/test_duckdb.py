"""DuckDB gives what memory gives: files, tables, relations and frames, whatever their types and names."""

import datetime
import decimal
import math
import re

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from row_sources import array_rows
from scan_cases import FORECASTS, HALF_OF_ALL, KINDS, QUESTIONS, SIZE, answer, outcomes, same

import calibrant
from calibrant import Cells, scan
from calibrant.rows.grids import FIRST_GRID, Grid
from calibrant.rows.sources import FetchRequest, HistogramRequest

COLUMNS = ("low", "high", "rows", "weight", "weight_square", "residual", "residual_square", "outcome")


def table_of(forecast, kind="plain"):
    y, w = outcomes(forecast, kind)
    return pa.table({"y": y, "p": forecast, "w": np.ones(forecast.size) if w is None else w})


def write_parts(folder, table, parts=3):
    """Write a table as many files, one of them without rows."""
    borders = np.linspace(0, table.num_rows, parts + 1).astype(int)
    for part in range(parts):
        pq.write_table(table.slice(borders[part], borders[part + 1] - borders[part]), folder / f"part-{part}.parquet")
    pq.write_table(table.slice(0, 0), folder / "part-empty.parquet")


def assert_same_cells(mine, other):
    assert mine.bits == other.bits
    np.testing.assert_array_equal(mine.index, other.index)
    for name in (*COLUMNS, "weight_square_residual_square"):
        tolerance = 1e-14 * float(other.weight_total)
        np.testing.assert_allclose(getattr(mine, name), getattr(other, name), rtol=1e-12, atol=tolerance)
    for name in ("weight_max", "unit_weights", "binary_outcomes"):
        assert getattr(mine, name) == getattr(other, name)


@pytest.mark.parametrize("kind", KINDS)
def test_many_rows_in_one_cell_add_up_without_rounding_errors(kind):
    forecast = np.where(np.arange(1_000_000) % 2, 0.3, 0.3 + 1e-9)
    y, w = outcomes(forecast, kind)
    weight = np.ones(forecast.size) if w is None else w
    exact = math.fsum(weight * (y - forecast)) / math.fsum(weight)
    with scan(table_of(forecast, kind), y_true="y", y_prob="p", sample_weight=None if w is None else "w") as rows:
        assert calibrant.measures.calibration_in_the_large(rows) == pytest.approx(exact, abs=1e-14)


@pytest.mark.usefixtures("as_if_large")
@pytest.mark.parametrize(("name", "kind"), HALF_OF_ALL)
def test_files_in_parts_give_what_memory_gives(name, kind, tmp_path):
    _, w = outcomes(FORECASTS[name], kind)
    write_parts(tmp_path, table_of(FORECASTS[name], kind))
    pattern = tmp_path / "part-*.parquet"
    with scan(pattern, y_true="y", y_prob="p", sample_weight=None if w is None else "w") as rows:
        if name == "zero and one" and kind == "fractions":
            with pytest.raises(ValueError, match="the columns look swapped; if it is meant"):
                rows.cells()
            return
        for question, ask in QUESTIONS.items():
            same(ask(rows), answer(name, kind, question))


@pytest.mark.usefixtures("as_if_large")
@pytest.mark.parametrize("name", FORECASTS)
def test_few_rows_at_a_time_give_the_same(name):
    with scan(table_of(FORECASTS[name]), y_true="y", y_prob="p", fetch_limit=300) as rows:
        for question in ("cutoff", "worst interval", "quantile bins", "adaptive", "normal", "decision", "saving"):
            before = rows.rows_fetched
            same(QUESTIONS[question](rows), answer(name, "plain", question))
            assert rows.rows_fetched - before <= 300


@pytest.mark.parametrize("name", FORECASTS)
def test_cells_of_any_grid_are_those_of_memory(name):
    forecast = FORECASTS[name]
    y, _ = outcomes(forecast, "plain")
    middle = float(np.median(forecast))
    stretches = np.quantile(forecast, [0.1, 0.2, 0.4, 0.41, 0.9, 0.95]).reshape(-1, 2)
    low, high = stretches[np.append(True, np.diff(stretches[:, 0]) > 0)].T
    high = np.maximum(np.minimum(high, np.append(np.nextafter(low[1:], 0.0), 1.0)), low)
    grids = [FIRST_GRID, Grid(12, 0.0, 1.0), Grid.covering(middle, middle), Grid.covering(middle / 2, middle)]
    with scan(table_of(forecast), y_true="y", y_prob="p") as rows:
        for grid in grids:
            assert_same_cells(rows.histogram(grid), array_rows(y, forecast).histogram(grid))
        inside = rows.fetch(low, high)
        expected = array_rows(y, forecast).fetch(low, high)
        assert sorted(zip(inside.y_prob, inside.y_true, strict=True)) == sorted(
            zip(expected.y_prob, expected.y_true, strict=True)
        )
        if (high > low).any():
            part = rows.histogram(Grid.inside(low, high, 1000))
            assert part.row_total == expected.y_prob.size
            assert part.residual_total == pytest.approx(float((expected.y_true - expected.y_prob).sum()), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_of_all_cells_adds_up_what_a_hash_table_does(kind, tmp_path, monkeypatch):
    forecast = np.concatenate(list(FORECASTS.values()))
    y, w = outcomes(forecast, kind)
    weight = None if w is None else "w"
    pq.write_table(table_of(forecast, kind), tmp_path / "rows.parquet")
    for few, short_type in ((2**30, "BIGINT"), (0, "USMALLINT")):
        monkeypatch.setattr("calibrant.engines.duckdb._FEW_ROWS", few)
        monkeypatch.setattr("calibrant.engines.duckdb._FEW_BYTES", few)
        for source in (table_of(forecast, kind), tmp_path / "rows.parquet"):
            with scan(source, y_true="y", y_prob="p", sample_weight=weight) as rows:
                assert rows._engine.short_type == short_type
                for grid in (FIRST_GRID, Grid(16, 0.0, 1.0)):
                    assert_same_cells(rows.histogram(grid), array_rows(y, forecast, w).histogram(grid))


@given(
    st.lists(
        st.tuples(
            st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, -0.0, 1.0, 5e-324, 0.5, 2.0**-15, 1.0 - 2.0**-53])),
            st.sampled_from([0.0, 1.0, 0.25]),
            st.sampled_from([0.0, 1.0, 3.0]),
        ),
        min_size=1,
        max_size=30,
    ).filter(lambda rows: any(weight > 0 for _, _, weight in rows)),
    st.sampled_from([0, 3, 15, 20]),
)
@settings(max_examples=60)
def test_cells_of_any_rows(rows, bits):
    forecast, y, w = (np.array(column) for column in zip(*rows, strict=True))
    expected = Cells.from_arrays(y, forecast, sample_weight=w, bits=bits)
    table = pa.table({"y": y, "p": forecast, "w": w})
    with scan(table, y_true="y", y_prob="p", sample_weight="w") as handle:
        if set(forecast[w > 0]) <= {0.0, 1.0} and 0.25 in y[w > 0]:
            with pytest.raises(ValueError, match="look swapped"):
                handle.cells(bits)
            return
        found = handle.cells(bits)
        index = np.flatnonzero(expected.rows)
        assert found.index.tolist() == expected.index[index].tolist()
        assert found.rows.tolist() == expected.rows[index].tolist()
        np.testing.assert_allclose(found.residual, expected.residual[index], rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(found.weight, expected.weight[index], rtol=1e-12)
        assert found.low.tolist() == expected.low[index].tolist()
        assert found.high.tolist() == expected.high[index].tolist()


class TestSources:
    forecast = FORECASTS["uniform"]
    y, _ = outcomes(forecast, "plain")
    expected = calibrant.certify(y, forecast, max_error=0.1).to_dict()

    def check(self, source, **options):
        with scan(source, y_true="y", y_prob="p", **options) as rows:
            same(calibrant.certify(rows, max_error=0.1).to_dict(), self.expected)
            return rows

    def test_frames(self):
        table = table_of(self.forecast)
        self.check(table)
        self.check(pyarrow.dataset.dataset(table))
        self.check(table.to_pandas())
        polars = pytest.importorskip("polars")
        self.check(polars.from_arrow(table))
        self.check(polars.from_arrow(table).lazy())
        narwhals = pytest.importorskip("narwhals")
        self.check(narwhals.from_native(polars.from_arrow(table).lazy()))

    def test_tables_and_relations_of_a_connection_that_stays_open(self):
        connection = duckdb.connect()
        arrow = table_of(self.forecast)
        connection.register("arrow", arrow)
        connection.execute("CREATE TABLE scores AS SELECT * FROM arrow")
        self.check((connection, "scores"))
        self.check(connection.table("scores"), engine="duckdb")
        self.check(connection.sql("SELECT p, y FROM scores ORDER BY p DESC"))
        assert connection.execute("SELECT count(*) FROM scores").fetchone() == (SIZE,)
        left = {name for (name,) in connection.execute("SHOW TABLES").fetchall()} - {"arrow", "scores"}
        assert left <= ({"calibrant_rows"} if duckdb.__version__ < "2" else set())  # a view, before DuckDB 2

    def test_files_of_every_kind_and_lists_of_them(self, tmp_path):
        table = table_of(self.forecast)
        connection = duckdb.connect()
        connection.register("arrow", table)
        connection.execute(f"COPY (SELECT * FROM arrow) TO '{tmp_path / 'rows.csv'}'")
        pq.write_table(table.slice(0, 1000), tmp_path / "one.parquet")
        pq.write_table(table.slice(1000), tmp_path / "two.parquet")
        self.check(str(tmp_path / "rows.csv"))
        self.check([tmp_path / "one.parquet", tmp_path / "two.parquet"], memory_limit="500MB")
        with (tmp_path / "rows.csv").open("rb") as stream:
            self.check(stream, temp_directory=tmp_path)

    def test_any_order_and_partitioning(self, tmp_path):
        order = np.random.default_rng(0).permutation(SIZE)
        write_parts(tmp_path, table_of(self.forecast).take(order), parts=40)
        self.check(tmp_path)

    def test_nothing_is_left_behind(self, tmp_path):
        pq.write_table(table_of(self.forecast), tmp_path / "rows.parquet")
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        self.check(tmp_path / "rows.parquet", temp_directory=scratch)
        assert list(scratch.iterdir()) == []

    def test_nothing_is_downloaded(self):
        with scan(table_of(self.forecast), y_true="y", y_prob="p") as rows:
            for setting in ("autoinstall_known_extensions", "autoload_known_extensions"):
                assert not rows._engine.run(f"SELECT current_setting('{setting}') AS value")["value"][0]


class TestTypes:
    forecast = np.round(FORECASTS["uniform"][:500], 3)
    event = np.random.default_rng(5).random(500) < forecast

    def check(self, outcome, forecast=None, *, expected=None, **options):
        forecast = pa.array(self.forecast) if forecast is None else forecast
        table = pa.table({"y": outcome, "p": forecast})
        y, p = (self.event, self.forecast) if expected is None else expected
        with scan(table, y_true="y", y_prob="p", **options) as rows:
            same(calibrant.worst_interval(rows).to_dict(), calibrant.worst_interval(y, p).to_dict())

    def test_of_outcomes(self):
        for kind in (pa.bool_(), pa.int8(), pa.uint64(), pa.float32(), pa.decimal128(25, 2)):
            self.check(pa.array(self.event.astype(int)).cast(kind))

    def test_of_forecasts(self):
        self.check(
            pa.array(self.event),
            pa.array(self.forecast.astype(np.float32)),
            expected=(self.event, self.forecast.astype(np.float32)),
        )
        digits = [decimal.Decimal(f"{value:.3f}") for value in self.forecast]
        self.check(pa.array(self.event), pa.array(digits, pa.decimal128(9, 3)))
        whole = (self.forecast > 0.5).astype(int)
        self.check(pa.array(self.event), pa.array(whole), expected=(self.event, whole))

    def test_of_labels(self):
        words = np.where(self.event, "it's", 'no"\n;--')
        self.check(pa.array(words), pos_label="it's")
        self.check(pa.array(words).dictionary_encode(), pos_label="it's")
        self.check(pa.array(np.where(self.event, 7, -2)), pos_label=7)
        self.check(pa.array(self.event), pos_label=True)
        self.check(pa.array(~self.event), pos_label=False)
        self.check(pa.array(np.where(self.event, 0.5, 2.0)), pos_label=0.5)
        self.check(pa.array(["yes"] * 500), expected=(np.ones(500), self.forecast), pos_label="yes")
        self.check(pa.array([0] * 500), expected=(np.zeros(500), self.forecast), pos_label=1)
        three = np.where(self.event, "late", np.where(self.forecast > 0.5, "cancelled", "fine"))
        for labels in (pa.array(three), pa.array(three).dictionary_encode()):
            with pytest.warns(
                calibrant.CalibrationWarning, match=r"y_true holds 3 labels .* 'late' counts as the event"
            ):
                self.check(labels, pos_label="late")

    def test_minus_zero_and_the_smallest_number(self):
        forecast = np.array([-0.0, 0.0, 5e-324, 1e-310, 1.0, 1.0])
        y = np.array([0, 1, 0, 1, 1, 0])
        self.check(pa.array(y), pa.array(forecast), expected=(y, forecast))


HOSTILE = ['"; DROP TABLE x; --', "it's", "`back`", "new\nline", "größe 概率", " space ", "a.b", "p", "y", "%{}$1?"]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_columns_and_files_are_only_names(name, tmp_path):
    table = table_of(FORECASTS["uniform"]).rename_columns(["outcome " + name, name, "weight" + name])
    table = table.append_column("group" + name, pa.array(["x" + name, name] * (SIZE // 2)))
    path = tmp_path / (name.replace("/", " ") + ".parquet")
    pq.write_table(table, path)
    columns = {"y_true": "outcome " + name, "y_prob": name, "sample_weight": "weight" + name}
    y, _ = outcomes(FORECASTS["uniform"], "plain")
    with scan(path, **columns) as rows:
        same(calibrant.cutoff_calibration_error(rows), calibrant.cutoff_calibration_error(y, FORECASTS["uniform"]))
        assert name in repr(rows) or repr(name)[1:-1] in repr(rows)
    with scan(path, **columns, by="group" + name) as rows:
        assert rows.groups == tuple(sorted(["x" + name, name]))
        assert sum(cells.row_total for cells in rows.histograms([HistogramRequest(0, FIRST_GRID)])) == SIZE // 2


class TestGroups:
    forecast = FORECASTS["uniform"]
    y, w = outcomes(forecast, "weights")

    @pytest.mark.parametrize(
        "labels",
        [
            np.array(["north", "south", "", "it's"]),
            np.array([10, 9, -3, 2]),
            np.array([0.1, 1e-7, 3.0, -2.5]),
            np.array([True, False, True, True]),
            np.array([datetime.date(2024, 1, day) for day in (1, 2, 3, 4)]),
        ],
        ids=["text", "whole", "fraction", "boolean", "date"],
    )
    def test_are_those_of_memory(self, labels):
        by = labels[np.random.default_rng(2).integers(0, 4, SIZE)]
        table = pa.table({"y": self.y, "p": self.forecast, "w": self.w, "g": by})
        with scan(table, y_true="y", y_prob="p", sample_weight="w", by="g") as rows:
            found = calibrant.certify(rows, max_error=0.1)
        expected = calibrant.certify(self.y, self.forecast, sample_weight=self.w, by=by, max_error=0.1)
        same(found.to_dict(), expected.to_dict())

    def test_share_their_scans(self):
        by = np.random.default_rng(2).integers(0, 5, SIZE)
        table = pa.table({"y": self.y, "p": self.forecast, "g": by})
        with scan(table, y_true="y", y_prob="p", by="g") as rows:
            calibrant.certify(rows, max_error=0.1)
            assert rows.scans <= 3  # the groups, their cells, and a fetch for all of them

    def test_each_request_has_a_grid_of_its_own(self):
        by = np.random.default_rng(2).integers(0, 3, SIZE)
        table = pa.table({"y": self.y, "p": self.forecast, "g": by})
        two = np.array([0.3, 0.5]), np.array([0.4, 0.6])
        grids = [Grid.covering(0.1, 0.2), Grid.inside(*two, 100), Grid(20, 0.0, 1.0)]
        low, high = np.array([0.0, 0.5]), np.array([0.1, 0.7])
        with scan(table, y_true="y", y_prob="p", by="g") as rows:
            assert rows.groups == (0, 1, 2)
            before = rows.scans
            found = rows.histograms([HistogramRequest(*asked) for asked in enumerate(grids)])
            fetched = rows.fetches([FetchRequest(2, low, high), FetchRequest(0, low[:1], high[:1])])
            assert rows.scans == before + 3
        own = [array_rows(self.y[by == group], self.forecast[by == group]) for group in range(3)]
        assert_same_cells(found[0], own[0].histogram(grids[0]))
        assert_same_cells(found[2], own[2].histogram(grids[2]))
        inside = own[1].fetch(*two)
        assert found[1].row_total == inside.y_prob.size
        assert sorted(fetched[0].y_prob) == sorted(own[2].fetch(low, high).y_prob)
        assert sorted(fetched[1].y_prob) == sorted(own[0].fetch(low[:1], high[:1]).y_prob)

    def test_too_many(self, monkeypatch):
        monkeypatch.setattr("calibrant.engines.handles.MOST_GROUPS", 10)
        table = pa.table({"y": self.y, "p": self.forecast, "g": np.arange(SIZE)})
        with (
            scan(table, y_true="y", y_prob="p", by="g") as rows,
            pytest.raises(ValueError, match=r"by \(column 'g'\) has more than 10 different values"),
        ):
            list(rows.groups)


class TestHandle:
    def test_counts_scans_and_candidates(self):
        forecast = np.random.default_rng(1).random(200_000)
        table = table_of(forecast)
        rows = scan(table, y_true="y", y_prob="p")
        assert repr(rows) == "Scan(the Table: y_prob='p', y_true='y'; not read yet)"
        calibrant.certify(rows, max_error=0.05)
        assert rows.scans == 2
        assert 0 < rows.rows_fetched < 5_000
        assert repr(rows).endswith(f"read 2 times, {rows.rows_fetched:,} rows fetched)")
        calibrant.expected_calibration_error(rows, n_bins=8)
        calibrant.measures.calibration_in_the_large(rows)
        assert rows.scans == 2  # what the first totals know is not asked again
        rows.close()

    def test_gives_shards_that_add_up(self):
        table = table_of(FORECASTS["uniform"], "weights")
        shards = []
        for part in (table.slice(0, 1000), table.slice(1000)):
            with scan(part, y_true="y", y_prob="p", sample_weight="w") as rows:
                shards.append(rows.cells(bits=18))
                assert rows.cells(bits=10).row_total == shards[-1].row_total
                assert rows.scans == 1
        with scan(table, y_true="y", y_prob="p", sample_weight="w") as rows:
            assert_same_cells(shards[0] + shards[1], rows.cells(bits=18))

    def test_closes_its_file(self, tmp_path):
        pq.write_table(table_of(FORECASTS["uniform"]), tmp_path / "rows.parquet")
        with scan(tmp_path / "rows.parquet", y_true="y", y_prob="p") as rows:
            pass
        with pytest.raises(ValueError, match=r"rows\.parquet"):
            rows.cells()


def test_no_more_cells_are_brought_here_than_the_limit_says():
    rng = np.random.default_rng(0)
    frame = pa.table({"y": rng.integers(0, 2, 3000), "p": rng.random(3000)})
    with calibrant.scan(frame, y_true="y", y_prob="p", tally_limit=2000) as rows:
        assert rows.cells(10).row_total == 3000
        message = (
            "bits is 20: up to 3,000 cells would be brought here, above the limit of 2,000; take bits=10 or fewer, or "
            "raise the limit (tally_limit)"
        )
        with pytest.raises(ValueError, match=re.escape(message)):
            rows.cells(20)
    with calibrant.scan(frame, y_true="y", y_prob="p", tally_limit=3000) as rows:
        assert rows.cells(20).row_total == 3000  # no more cells than rows
