"""Cells that are numbered through add up to what arrays have: all of them, some cut finer, those of several groups.

DuckDB adds up by itself in SQL; where rows are very many, it hands them over and a loop adds up.
"""

import functools
import math
import threading
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from row_sources import array_rows

import calibrant
from calibrant import scan
from calibrant.core import row_kernels
from calibrant.engines import histograms, streams
from calibrant.rows.grids import FIRST_GRID, Grid
from calibrant.rows.sources import HistogramRequest

RNG = np.random.default_rng(21)
SIZE = 6_000
FORECAST = np.concatenate([RNG.random(SIZE - 2_006), 1e-7 * RNG.random(2_000), [0.0, -0.0, 1.0, 1.0, 1.0, 0.5]])
OUTCOME = (RNG.random(SIZE) < FORECAST).astype(np.int8)
GROUP = RNG.choice(["north", 'it\'s "south"', "", "west", "east"], SIZE)


@pytest.fixture(autouse=True, params=["in SQL", "streamed"])
def way(request, monkeypatch):
    """Take few rows for many, so that cells are numbered, and then for very many."""
    monkeypatch.setattr("calibrant.engines.duckdb._FEW_ROWS", 0)
    if request.param == "streamed":
        monkeypatch.setattr("calibrant.engines.duckdb.STREAM_ROWS", 0)
        monkeypatch.setattr("calibrant.engines.duckdb.BATCH_ROWS", 1_000)
    return request.param


def assert_same(found, expected, rel=1e-12):
    assert found.index.tolist() == expected.index.tolist()
    for name in ("low", "high", "rows", "outcome"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist()
    for name in ("residual", "residual_square"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=rel, abs=1e-18)


@pytest.mark.parametrize("fetch_limit", [40, 500_000])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_groups_have_the_certificates_of_arrays(count, fetch_limit):
    chosen = np.isin(GROUP, np.unique(GROUP)[:count])
    y, p, g = OUTCOME[chosen], FORECAST[chosen], GROUP[chosen]
    table = pa.table({"y": y, "p": p, "g": g})
    with scan(table, y_true="y", y_prob="p", by="g", fetch_limit=fetch_limit) as groups:
        assert groups._engine.numbers_cells
        found = calibrant.certify(groups, max_error=0.05)
    for label, certificate in zip(found.groups, found.certificates, strict=True):
        expected = calibrant.certify(
            y[g == label], p[g == label], max_error=0.05, confidence_level=found.certificates[0].confidence_level
        )
        assert certificate.estimate == pytest.approx(expected.estimate, rel=1e-12)
        assert certificate.rows == expected.rows


def test_the_rows_of_one_group_are_not_counted_in_another():
    table = pa.table({"y": OUTCOME, "p": FORECAST, "g": GROUP})
    with scan(table, y_true="y", y_prob="p", by="g") as groups:
        cells = groups.histograms([HistogramRequest(place, FIRST_GRID) for place in range(5)])
        for label, found in zip(groups.groups, cells, strict=True):
            own = label == GROUP
            assert_same(found, array_rows(OUTCOME[own], FORECAST[own]).histogram(FIRST_GRID))


def test_cells_that_are_cut_finer_have_the_rows_of_arrays(monkeypatch):
    low, high = np.array([0.0, 0.25, 0.75]), np.array([0.125, 0.375, 1.0])
    table = pa.table({"y": OUTCOME, "p": FORECAST, "g": GROUP})
    grids = [Grid.inside(low, high, 2_000 * (1 + place)) for place in range(5)]  # not all equally fine
    assert len({grid.bits for grid in grids}) > 1
    with scan(table, y_true="y", y_prob="p", by="g") as groups:
        asked = [HistogramRequest(place, grid) for place, grid in enumerate(grids)]
        assert histograms.Numbered.of([request.grid for request in histograms.common_bits(asked)]) is not None
        numbered = groups.histograms(asked)
        monkeypatch.setattr(histograms.Numbered, "of", lambda *_: None)
        for mine, other in zip(numbered, groups.histograms(asked), strict=True):
            assert_same(mine, other)
    with scan(table, y_true="y", y_prob="p") as rows:
        expected = rows.histogram(grids[0])
        monkeypatch.undo()
        assert_same(rows.histogram(grids[0]), expected)


@pytest.mark.parametrize("fetch_limit", [40, 500_000])
def test_answers_do_not_depend_on_where_cells_are_cut(fetch_limit):
    table = pa.table({"y": OUTCOME, "p": FORECAST})
    expected = calibrant.certify(OUTCOME, FORECAST, max_error=0.05)
    with scan(table, y_true="y", y_prob="p", fetch_limit=fetch_limit) as rows:
        found = calibrant.certify(rows, max_error=0.05)
    assert found.verdict == expected.verdict
    assert (found.estimate, found.upper) == pytest.approx((expected.estimate, expected.upper), rel=1e-12)


@pytest.mark.parametrize("by", [None, "g"])
@pytest.mark.parametrize("wrong", [1.0 + 2.0**-30, 1.3, 1.9, 2.0, -(2.0**-30), -0.2, np.inf, np.nan])
def test_forecasts_outside_are_refused_whatever_number_their_cell_would_have(wrong, by):
    p = FORECAST.copy()
    p[7] = wrong
    table = pa.table({"y": OUTCOME, "p": p, "g": GROUP})
    with (
        scan(table, y_true="y", y_prob="p", by=by) as rows,
        pytest.raises(ValueError, match=r"y_prob \(column 'p'\)"),
    ):
        calibrant.certify(rows, max_error=0.05)


def test_an_outcome_outside_is_refused():
    y = OUTCOME.copy()
    y[7] = 2
    table = pa.table({"y": y, "p": FORECAST})
    with scan(table, y_true="y", y_prob="p") as rows, pytest.raises(ValueError, match="y_true"):
        calibrant.certify(rows, max_error=0.05)


OUTCOMES = {
    "bytes": (OUTCOME, None),
    "whole": (OUTCOME.astype(np.int64), None),
    "flags": (OUTCOME.astype(bool), None),
    "floats": (OUTCOME.astype(np.float32), None),
    "labels": (np.where(OUTCOME == 1, "late", "on time"), "late"),
}


@pytest.mark.parametrize("by", [None, "g"])
@pytest.mark.parametrize("kind", OUTCOMES)
def test_outcomes_of_every_type_are_counted(kind, by, way, spied):
    outcome, event = OUTCOMES[kind]
    table = pa.table({"y": outcome, "p": FORECAST, "g": GROUP})
    with scan(table, y_true="y", y_prob="p", by=by, pos_label=event) as rows:
        asked = [HistogramRequest(place, FIRST_GRID) for place in range(5)]
        found = rows.histogram(FIRST_GRID) if by is None else rows.histograms(asked)[2]
        own = np.unique(GROUP)[2] == GROUP if by else np.full(SIZE, fill_value=True)
        assert_same(found, array_rows(OUTCOME[own], FORECAST[own]).histogram(FIRST_GRID))
    assert [found is not None for found in spied] == [True] * (way == "streamed")


@pytest.fixture
def spied(monkeypatch):
    """What was added up here, None where it was not possible."""
    found: list[Any] = []

    def spy(*given):
        found.append(None)
        found[-1] = streams.streamed_answer(*given)
        return found[-1]

    monkeypatch.setattr("calibrant.engines.handles.streamed_answer", spy)
    return found


@pytest.mark.parametrize("late", [False, True])
def test_groups_are_found_whether_the_first_rows_have_them_all_or_not(late, way, spied):
    order = np.argsort(GROUP, kind="stable") if late else np.arange(SIZE)
    y, p, g = OUTCOME[order], FORECAST[order], GROUP[order]
    with scan(pa.table({"y": y, "p": p, "g": g}), y_true="y", y_prob="p", by="g") as groups:
        assert groups.groups == tuple(np.unique(GROUP))
        found = groups.histograms([HistogramRequest(place, FIRST_GRID) for place in range(5)])
        scans = groups.scans
    for label, cells in zip(np.unique(GROUP), found, strict=True):
        assert_same(cells, array_rows(OUTCOME[label == GROUP], FORECAST[label == GROUP]).histogram(FIRST_GRID))
    if way == "streamed":
        assert [each is not None for each in spied] == ([False, True] if late else [True])
        assert scans == (3 if late else 1)  # what met another group was read, too


@pytest.mark.parametrize("where", [0, SIZE - 1])
@pytest.mark.parametrize("kind", ["text", "fraction"])
def test_a_row_without_a_group_is_refused_wherever_it_is(where, kind):
    label = GROUP.tolist() if kind == "text" else GROUP.argsort().astype(float).tolist()
    label = [each if kind == "text" else each % 5 for each in label]
    label[where] = None if kind == "text" else np.nan
    with (
        scan(pa.table({"y": OUTCOME, "p": FORECAST, "g": label}), y_true="y", y_prob="p", by="g") as groups,
        pytest.raises(ValueError, match=r"by \(column 'g'\).* is missing in 1 row"),
    ):
        calibrant.certify(groups, max_error=0.05)


def test_neither_order_nor_processors_change_a_digit(monkeypatch):
    found = []
    for processors in (1, 2, 4, 16):
        order = np.random.default_rng(processors).permutation(SIZE)
        monkeypatch.setattr("calibrant.engines.streams.os.cpu_count", lambda number=processors: number)
        table = pa.table({"y": OUTCOME[order], "p": FORECAST[order]})
        with scan(table, y_true="y", y_prob="p") as rows:
            found.append(rows.histogram(Grid(16, 0.0, 1.0)))
    for other in found[1:]:
        for name in ("index", "low", "high", "rows", "outcome", "residual", "residual_square"):
            assert getattr(other, name).tolist() == getattr(found[0], name).tolist()


@pytest.mark.parametrize("processors", [2, 8])
def test_fractions_and_weights_are_left_to_sql(processors, way, spied, monkeypatch):
    monkeypatch.setattr("calibrant.engines.streams.os.cpu_count", lambda: processors)
    y, w = np.where(OUTCOME == 1, 0.75, 0.0), 1.0 + GROUP.argsort() % 3
    table = pa.table({"y": y, "p": FORECAST, "w": w, "e": OUTCOME})
    with scan(table, y_true="y", y_prob="p") as rows:
        fractions = rows.histogram(FIRST_GRID)
        rows.histogram(Grid.inside(np.array([0.25]), np.array([0.5]), 64))  # known not to be counts by now
    assert spied == [None] * (way == "streamed")
    assert fractions.residual_total == pytest.approx(float((y - FORECAST).sum()), rel=1e-12)
    with scan(table, y_true="e", y_prob="p", sample_weight="w") as rows:
        assert rows.histogram(FIRST_GRID).weight.sum() == pytest.approx(w.sum())
    assert spied == [None] * (way == "streamed")
    assert threading.active_count() < 20


@pytest.mark.parametrize("column", ["y", "p"])
def test_a_missing_number_is_refused(column):
    table = pa.table({"y": OUTCOME, "p": FORECAST})
    values = table[column].to_pylist()
    values[11] = None
    table = table.set_column(table.column_names.index(column), column, pa.array(values))
    with (
        scan(table, y_true="y", y_prob="p") as rows,
        pytest.raises(ValueError, match=rf"\(column '{column}'\).* is missing in 1 of 6,000 rows"),
    ):
        calibrant.certify(rows, max_error=0.05)


@pytest.mark.parametrize("label_first", [False, True])
@pytest.mark.parametrize("error", [pa.ArrowInvalid, OSError])
def test_an_engine_that_fails_is_asked_in_sql(error, label_first, way, spied, monkeypatch):
    real = calibrant.engines.duckdb.DuckDBEngine.batches

    def break_off(engine, statement):
        if label_first and "label" in statement:
            raise error("it broke")
        yield next(real(engine, statement))
        raise error("it broke")

    monkeypatch.setattr("calibrant.engines.duckdb.DuckDBEngine.batches", break_off)
    table = pa.table({"y": OUTCOME, "p": FORECAST, "g": GROUP})
    with scan(table, y_true="y", y_prob="p") as rows:
        assert_same(rows.histogram(FIRST_GRID), array_rows(OUTCOME, FORECAST).histogram(FIRST_GRID))
        assert rows.scans == (2 if way == "streamed" else 1)  # what was broken off was read, too
    assert spied == [None] * (way == "streamed")
    with scan(table, y_true="y", y_prob="p", by="g") as groups:
        assert groups.groups == tuple(np.unique(GROUP))


class Breaking:
    """A connection to DuckDB, and a relation, of which each step may raise an error instead of handing over rows."""

    def __init__(self, step, error):
        self.step, self.error = step, error

    def _reach(self, step):
        if step == self.step:
            raise self.error
        return self

    def sql(self, _):
        return self._reach("asked")

    execute = sql

    def to_arrow_reader(self, _):
        return self._reach("handed over")

    def fetchnumpy(self):
        return self._reach("handed over")._reach("read")

    def __iter__(self):
        self._reach("read")
        return iter([])

    def close(self):
        pass


@pytest.mark.parametrize("step", ["asked", "handed over", "read"])
def test_a_frame_that_the_engine_cannot_read_is_refused_by_its_name(step, monkeypatch):
    with scan(pa.table({"y": OUTCOME, "p": FORECAST}), y_true="y", y_prob="p") as rows:
        breaking = Breaking(step, duckdb.OutOfMemoryException("Out of Memory Error: no room"))
        monkeypatch.setattr(rows._engine, "_connection", breaking)
        with pytest.raises(ValueError, match=r"the Table cannot be read: .*no room"):
            calibrant.certify(rows, max_error=0.05)


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("asked", duckdb.InterruptException("Query interrupted")),
        ("handed over", duckdb.InterruptException("Query interrupted")),
        ("read", pa.ArrowInvalid("INTERRUPT Error: Query interrupted")),
    ],
)
def test_an_interruption_of_the_engine_is_one_of_the_program(step, error, monkeypatch):
    with scan(pa.table({"y": OUTCOME, "p": FORECAST}), y_true="y", y_prob="p") as rows:
        monkeypatch.setattr(rows._engine, "_connection", Breaking(step, error))
        with pytest.raises(KeyboardInterrupt):
            rows.histogram(FIRST_GRID)


def test_groups_that_are_many_have_the_totals_of_arrays():
    group = RNG.integers(0, 70, SIZE)
    with scan(pa.table({"y": OUTCOME, "p": FORECAST, "g": group}), y_true="y", y_prob="p", by="g") as groups:
        cells = groups.histograms([HistogramRequest(place, FIRST_GRID) for place in range(70)])
        for label, found in zip(groups.groups, cells, strict=True):
            own = label == group
            assert_same(found, array_rows(OUTCOME[own], FORECAST[own]).histogram(FIRST_GRID))


def test_a_file_streams_from_a_size_on(tmp_path, way, monkeypatch):
    path = tmp_path / "rows.parquet"
    rows_written = "SELECT range % 2 AS y, (range % 1000) / 1000 AS p FROM range(100_000)"
    duckdb.execute(f"COPY ({rows_written}) TO '{path}' (FORMAT parquet)")
    with scan(path, y_true="y", y_prob="p") as rows:
        assert rows._engine.streams == (way == "streamed")
    monkeypatch.setattr("calibrant.engines.duckdb.STREAM_ROWS", path.stat().st_size // 8 + 1)
    with scan(path, y_true="y", y_prob="p") as rows:
        assert not rows._engine.streams
    monkeypatch.setattr("calibrant.engines.duckdb.STREAM_ROWS", path.stat().st_size // 8)
    with scan(path, y_true="y", y_prob="p") as rows:
        assert rows._engine.streams
        found = calibrant.certify(rows, max_error=0.6)
    y, p = np.arange(100_000) % 2, np.arange(100_000) % 1000 / 1000
    assert found.estimate == pytest.approx(calibrant.certify(y, p, max_error=0.6).estimate, rel=1e-12)
    monkeypatch.setattr("calibrant.engines.duckdb.importlib.util.find_spec", lambda _: None)
    with scan(path, y_true="y", y_prob="p") as rows:
        assert not rows._engine.streams


@pytest.fixture
def compiled_only(monkeypatch):
    """Refuse to go through rows in plain Python, which takes a hundred times as long."""

    def plain(*_):
        raise AssertionError("rows went through plain Python")

    row_kernels.counted_cells.compiled()  # of the true loop
    monkeypatch.setattr(row_kernels.counted_cells, "plain", plain)
    monkeypatch.setattr(row_kernels.counted_cells, "_seen", set())


@pytest.mark.usefixtures("compiled_only")
def test_small_batches_are_added_up_compiled(way, spied):
    chunks = pa.table({"y": OUTCOME[:500], "p": FORECAST[:500]}).to_batches(max_chunksize=7)
    with scan(pa.Table.from_batches(chunks), y_true="y", y_prob="p") as rows:
        assert_same(rows.histogram(FIRST_GRID), array_rows(OUTCOME[:500], FORECAST[:500]).histogram(FIRST_GRID))
    assert [found is not None for found in spied] == [True] * (way == "streamed")


@pytest.mark.parametrize("adders", [2, 8, 64])
def test_sums_of_many_threads_have_room_for_each_other(adders):
    # 63 rows a thread, so that none has passed on anything yet, each as far above its cell's edge as can be.
    forecast, outcome = np.full(63, 2.0**-16 * (1.0 - 2.0**-31)), np.ones(63, dtype=np.uint8)
    everything, nothing = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.uint16)
    parts = [row_kernels.no_counts(2**16) for _ in range(adders)]
    for part in parts:
        assert row_kernels.counted_cells.run_compiled(forecast, outcome, nothing, everything, 16, 16, part)
    one = row_kernels.no_counts(2**16)
    assert row_kernels.counted_cells.run_compiled(
        np.tile(forecast, adders), np.tile(outcome, adders), nothing, everything, 16, 16, one
    )
    added = functools.reduce(streams._merged, map(streams._carried, parts))
    for lower, upper in ((2, 6), (3, 7)):
        exact = [int(total[0, lower]) + (int(total[0, upper]) << row_kernels.HALF_BITS) for total in (added, one)]
        assert exact[0] == exact[1]


@pytest.mark.parametrize("processors", [2, 16])
def test_one_bad_row_ends_the_reading(processors, way, monkeypatch):
    monkeypatch.setattr("calibrant.engines.streams.os.cpu_count", lambda: processors)
    read = []
    real = calibrant.engines.duckdb.DuckDBEngine.batches

    def spy(engine, statement):
        for batch in real(engine, statement):
            read.append(batch.num_rows)
            yield batch

    monkeypatch.setattr("calibrant.engines.duckdb.DuckDBEngine.batches", spy)
    p = np.tile(FORECAST, 50)
    p[0] = 1.5
    chunks = pa.table({"y": np.tile(OUTCOME, 50), "p": p}).to_batches(max_chunksize=1_000)
    with (
        scan(pa.Table.from_batches(chunks), y_true="y", y_prob="p") as rows,
        pytest.raises(ValueError, match="outside"),
    ):
        calibrant.certify(rows, max_error=0.05)
    if way == "streamed":
        assert 1 <= len(read) < 200


def test_a_table_without_rows_is_refused_in_words():
    nothing = pa.array([], pa.float64())
    table = pa.table({"y": nothing, "label": pa.array([], pa.string()), "p": nothing, "g": nothing})

    def refused(rows):
        with rows, pytest.raises(ValueError, match="has no rows"):
            calibrant.certify(rows, max_error=0.05)

    refused(scan(table, y_true="y", y_prob="p", by="g"))
    refused(scan(table, y_true="label", y_prob="p", pos_label="late"))
    refused(scan(table, y_true="label", y_prob="p", pos_label="late", by="g"))
    refused(scan(table, y_true="y", y_prob="p", pos_label=1, cluster="g"))


def test_zero_has_no_sign_among_groups():
    g = np.where(np.arange(SIZE) % 3 == 0, -0.0, np.where(np.arange(SIZE) % 3 == 1, 0.0, 2.5))
    arrays = calibrant.certify(OUTCOME, FORECAST, by=g, max_error=0.05)
    with scan(pa.table({"y": OUTCOME, "p": FORECAST, "g": g}), y_true="y", y_prob="p", by="g") as groups:
        scanned = calibrant.certify(groups, max_error=0.05)
    assert scanned.groups == arrays.groups == (0.0, 2.5)
    assert [math.copysign(1.0, group) for group in (*scanned.groups, *arrays.groups)] == [1.0] * 4
    for mine, other in zip(scanned.certificates, arrays.certificates, strict=True):
        assert mine.upper == pytest.approx(other.upper, rel=1e-12)


def test_an_infinite_group_is_refused_by_its_column():
    g = np.where(np.arange(SIZE) % 2 == 0, np.inf, 1.0)
    with (
        scan(pa.table({"y": OUTCOME, "p": FORECAST, "g": g}), y_true="y", y_prob="p", by="g") as groups,
        pytest.raises(ValueError, match=r"by \(column 'g'\).* is infinite in 3,000 rows"),
    ):
        calibrant.certify(groups, max_error=0.05)


def test_of_two_faults_both_ways_name_the_same():
    labels = np.where(OUTCOME == 1, "late", "on time").tolist()
    group = GROUP.tolist()
    labels[5], group[7] = None, None
    table = pa.table({"y": labels, "p": FORECAST, "g": group})
    with (
        scan(table, y_true="y", y_prob="p", by="g", pos_label="late") as groups,
        pytest.raises(ValueError, match=r"y_true \(column 'y'\).* is missing in 1 row"),
    ):
        calibrant.certify(groups, max_error=0.05)
