"""Bad data and bad questions: one clear error each, with counts and an example row, and nothing left behind."""

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant
from calibrant import scan
from calibrant.engines.statements import Engine

SIZE = 1_000
FORECAST = np.random.default_rng(0).random(SIZE)
OUTCOME = (np.random.default_rng(1).random(SIZE) < FORECAST).astype(float)


def table(**changes):
    """Return good rows with some values changed: position and value by column."""
    columns = {"y": OUTCOME.copy(), "p": FORECAST.copy(), "w": np.ones(SIZE)}
    masks = {name: np.zeros(SIZE, dtype=bool) for name in columns}
    for name, values in changes.items():
        for position, value in values.items():
            if value is None:
                masks[name][position] = True
            else:
                columns[name][position] = value
    return pa.table({name: pa.array(values, mask=masks[name]) for name, values in columns.items()})


def failure(source, **options):
    """Return the message with which a source is refused."""
    columns = {"y_true": "y", "y_prob": "p"} | options
    try:
        with scan(source, **columns) as rows:
            calibrant.certify(rows, max_error=0.1)
    except ValueError as error:
        return str(error)
    pytest.fail("nothing was refused")


class TestRows:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            (
                {"p": {17: None, 30: None}},
                "the Table: y_prob (column 'p') is missing in 2 of 1,000 rows, for example in row 18 (counted from 1), "
                "where p = missing, y = {y}; drop the row or fill in its value before measuring",
            ),
            ({"p": {17: np.nan}}, "y_prob (column 'p') is missing in 1 of 1,000 rows, for example in row 18"),
            (
                {"p": {17: 1.2, 20: 55.0}},
                "y_prob (column 'p') is outside [0, 1] in 2 of 1,000 rows, for example in row 18 (counted from 1), "
                "where p = 1.2, y = {y}; if these are percentages, divide by 100",
            ),
            ({"p": {17: -3.0}}, "where p = -3, y = {y}; these look like logits or other scores"),
            ({"p": {17: 1.0 + 1e-9}}, "where p = 1.000000001, y = {y}; if rounding pushed it out, bring it back"),
            ({"p": {17: np.inf}}, "y_prob (column 'p') is infinite in 1 of 1,000 rows"),
            ({"y": {17: None}}, "y_true (column 'y') is missing in 1 of 1,000 rows"),
            ({"y": {17: 2.0}}, "y_true (column 'y') is outside [0, 1] in 1 of 1,000 rows"),
            (
                {"y": {17: 2.0}, "p": {3: None}},
                "is missing in 1 of 1,000 rows, for example in row 4 (counted from 1), where p = missing, "
                "y = {first}; y_true (column 'y') is out of range in 1 row",
            ),
        ],
    )
    def test_that_break_a_rule(self, changes, message):
        expected = message.format(y=int(OUTCOME[17]), first=int(OUTCOME[3]))
        assert expected in failure(table(**changes))

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({17: -1.0}, "sample_weight (column 'w') is negative in 1 of 1,000 rows, for example in row 18"),
            ({17: None}, "sample_weight (column 'w') is missing in 1 of 1,000 rows"),
            ({17: np.inf}, "sample_weight (column 'w') is infinite in 1 of 1,000 rows"),
            (dict.fromkeys(range(SIZE), 0.0), "sample_weight is zero everywhere; at least one row must count"),
            ({17: 1e200}, "sample_weight has squares that float64 cannot hold (largest weight 1e+200)"),
        ],
    )
    def test_weights_that_break_a_rule(self, changes, message):
        assert message in failure(table(w=changes), sample_weight="w")

    def test_of_weight_zero_are_checked_and_then_left_out(self):
        weights = table(p={17: 1.2}, w={17: 0.0})
        assert "outside [0, 1]" in failure(weights, sample_weight="w")
        with scan(table(w={17: 0.0}), y_true="y", y_prob="p", sample_weight="w") as rows:
            assert rows.cells().row_total == SIZE - 1

    def test_in_a_group(self):
        source = table(p={17: 1.2}).append_column("g", pa.array(np.arange(SIZE) % 3))
        assert "y_prob (column 'p') is outside [0, 1] in 1 of 1,000 rows" in failure(source, by="g")
        source = table(w=dict.fromkeys(range(0, SIZE, 2), 0.0)).append_column("g", pa.array(np.arange(SIZE) % 2))
        assert "sample_weight is zero everywhere in group '0'" in failure(source, by="g", sample_weight="w")

    def test_without_a_group(self):
        source = table().append_column("g", pa.array(["a", None] * (SIZE // 2)))
        assert "by (column 'g') is missing in 500 rows; drop the row or fill in its value" in failure(source, by="g")

    def test_with_bad_labels(self):
        labels = pa.array(["a", "b", "c", "a"] * (SIZE // 4))
        three = table().drop_columns("y").append_column("y", labels)
        assert "pos_label is 'z', which y_true does not hold; its labels are 'a', 'b', 'c'" in failure(
            three, pos_label="z"
        )
        assert "of type text, labels and not numbers; pass pos_label=" in failure(three)
        two = three.slice(0, 2)
        assert "pos_label is 'z', which y_true does not hold; its labels are 'a', 'b'" in failure(two, pos_label="z")
        one = three.slice(0, 1)
        only = "pos_label is 'z', which y_true does not hold: its only label is 'a'; if no row is an event, say so by"
        assert only in failure(one, pos_label="z")
        gone = two.drop_columns("y").append_column("y", pa.array(["a", None]))
        assert "y_true (column 'y') is missing in 1 row;" in failure(gone, pos_label="a")


class TestColumns:
    def test_that_are_not_there(self):
        message = failure(table(), y_prob="P ")
        assert message == "the Table has no column 'P '; did you mean 'p'? Its columns are 'y', 'p', 'w'"
        assert "pass the name of a column" in failure(table(), sample_weight=3)

    def test_of_a_wrong_type(self):
        text = pa.table({"y": OUTCOME, "p": [f"{value}" for value in FORECAST]})
        assert "y_prob (column 'p') is of type text, not numbers; convert it to numbers first" in failure(text)
        dates = pa.table({"y": OUTCOME, "p": pa.array(np.zeros(SIZE, dtype="datetime64[D]"))})
        assert "y_prob (column 'p') is of type DATE, not numbers" in failure(dates)

    def test_that_look_swapped(self):
        assert "the columns look swapped" in failure(table(), y_true="p", y_prob="y")


class TestFiles:
    def test_without_rows(self, tmp_path):
        pq.write_table(table().slice(0, 0), tmp_path / "none.parquet")
        assert failure(tmp_path / "none.parquet").endswith("none.parquet has no rows; at least one row is needed")

    def test_that_are_empty_or_missing(self, tmp_path):
        (tmp_path / "empty.parquet").touch()
        assert "empty.parquet is empty" in failure(tmp_path / "empty.parquet")
        assert "does not exist" in failure(tmp_path / "nowhere-*.parquet")

    def test_that_are_cut_short(self, tmp_path):
        pq.write_table(table(), tmp_path / "rows.parquet")
        whole = (tmp_path / "rows.parquet").read_bytes()
        (tmp_path / "rows.parquet").write_bytes(whole[: len(whole) // 2])
        assert "rows.parquet cannot be read as Parquet" in failure(tmp_path / "rows.parquet")

    def test_whose_pages_are_damaged(self, tmp_path):
        pq.write_table(table(), tmp_path / "rows.parquet", compression="zstd")
        content = bytearray((tmp_path / "rows.parquet").read_bytes())
        content[200:9000] = b"\xff" * 8800
        (tmp_path / "rows.parquet").write_bytes(content)
        assert "rows.parquet cannot be read as Parquet" in failure(tmp_path / "rows.parquet")

    def test_that_turn_bad_far_from_their_beginning(self, tmp_path):
        lines = ["y,p"] + [f"{y:.0f},{p!r}" for y, p in zip(OUTCOME.tolist(), FORECAST.tolist(), strict=True)] * 60
        (tmp_path / "rows.csv").write_text("\n".join([*lines, "1,oops"]))
        message = failure(tmp_path / "rows.csv")
        assert (
            "rows.csv: y_prob (column 'p') is 'oops' in data row 60,001 (counted from 1, without the header), text"
            in message
        )

    def test_with_a_bad_row_say_which(self, tmp_path):
        (tmp_path / "rows.csv").write_text("y,p\n1,0.5\n0,1.5\n")
        place = "in data row 2 (counted from 1, without the header), where p = 1.5, y = 0"
        assert place in failure(tmp_path / "rows.csv")

    def test_addresses_are_refused(self):
        assert "calibrant reads local files only" in failure("https://example.org/rows.parquet")


class TestOptions:
    @pytest.mark.parametrize(
        ("source", "options", "message"),
        [
            (3, {}, "source is of type int; pass a path, a DuckDB relation"),
            ("x.parquet", {"engine": "sqlite"}, "engine must be one of 'duckdb', 'spark'"),
            ("x.parquet", {"engine": "spark"}, "engine is 'spark', but a source of type str needs 'duckdb'"),
            ("x.parquet", {"memory_limit": "lots"}, "memory_limit is 'lots'"),
        ],
    )
    def test_are_checked(self, source, options, message):
        assert message in failure(source, **options)

    def test_a_connection_is_no_table(self):
        said = failure(duckdb.connect())
        assert "source is a DuckDBPyConnection, not a table of it; pass (connection, 'table'), or a relation" in said

    def test_limits_are_counts(self):
        assert "fetch_limit must be a whole number" in failure(table(), fetch_limit=0.5)

    def test_a_connection_keeps_its_own_settings(self):
        relation = duckdb.sql("SELECT 0.5 AS p, 1 AS y")
        assert "set them on the session itself" in failure(relation, memory_limit="1GB")

    def test_a_table_that_is_not_there(self):
        with pytest.raises(duckdb.CatalogException, match="nowhere"):
            scan((duckdb.connect(), "nowhere"), y_true="y", y_prob="p")


def test_rows_that_change_between_two_scans_are_noticed():
    class Changing(Engine):
        """Claims at first that a row breaks a rule, and then that none does."""

        name, table, columns = "the table", "rows", {"y": "whole", "p": "fraction"}

        def run(self, statement):
            if "GROUP BY" in statement:
                return {"cell_key": np.array([None]), "n": np.array([1])}
            return {f"{name}_{what}": np.array([0]) for name in "py" for what in ("missing", "broken")} | {"n": [1]}

    with scan(Changing(), y_true="y", y_prob="p") as rows, pytest.raises(ValueError, match="changed while it was read"):
        rows.cells()
