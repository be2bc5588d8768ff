import json
import math
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import brute_force
import numpy as np
import pytest
from brute_force import rows
from cli_cases import SOURCE
from hypothesis import given
from hypothesis import strategies as st
from row_sources import array_rows, first_grid

import calibrant
from calibrant import Cells, Tally
from calibrant.certificates import bracket
from calibrant.certificates.methods.registry import Method
from calibrant.measures import expected as expected_module
from calibrant.measures import weighted
from calibrant.measures.registry import Measure
from calibrant.rows import cells, refinement
from calibrant.rows.grids import Grid
from calibrant.rows.tally import ADDITIVE


def cutoff_of(table):
    prefix = table.residual_prefix()
    return (prefix.max() - prefix.min()) / table.weight_total


@pytest.fixture(params=[1, 3, 15], ids=lambda bits: f"2^{bits} cells")
def first_bits(request, monkeypatch):
    """Coarse grids make pruning, zooming and fetching happen on a handful of rows."""
    first_grid(monkeypatch, request.param)
    monkeypatch.setattr(expected_module, "COARSE_GRID", Grid(request.param, 0.0, 1.0))


@pytest.mark.usefixtures("first_bits")
class TestExactFinish:
    @given(data=rows())
    def test_cutoff_and_worst_interval_equal_those_of_the_tally(self, data):
        y, p, w = data
        table = refinement.split_at_extremes(array_rows(y, p, w))
        assert cutoff_of(table) == pytest.approx(brute_force.cutoff(y, p, w), abs=1e-12)
        mine = weighted.find_worst_interval(table)
        other = calibrant.worst_interval(Tally.from_arrays(y, p, sample_weight=w))
        assert (mine.low, mine.high, mine.direction, mine.rows) == (other.low, other.high, other.direction, other.rows)
        assert mine.mean_forecast == pytest.approx(other.mean_forecast, abs=1e-12)

    @given(data=rows(), n_bins=st.integers(1, 7), strategy=st.sampled_from(["uniform", "quantile"]))
    def test_binned_error_equals_that_of_the_tally(self, data, n_bins, strategy):
        y, p, w = data
        table, number = expected_module._binned(array_rows(y, p, w), n_bins, strategy)
        starts = np.flatnonzero(np.diff(number, prepend=-1))
        expected = calibrant.expected_calibration_error(
            Tally.from_arrays(y, p, sample_weight=w), n_bins=n_bins, strategy=strategy
        )
        assert expected_module._expected(table, starts, "l1", False) == pytest.approx(expected, abs=1e-12)


SIZE = 200_000  # several times the rows that numpy goes through at once
DISTRIBUTIONS = {
    "uniform": lambda rng: rng.random(SIZE),
    "skewed": lambda rng: rng.beta(0.05, 5, SIZE),
    "tiny": lambda rng: 1e-4 * rng.random(SIZE),
    "minute": lambda rng: 1e-280 * rng.random(SIZE),
    "narrow": lambda rng: 0.7 + 1e-9 * rng.random(SIZE),
    "two decimals": lambda rng: np.round(rng.random(SIZE), 2),
    "six decimals": lambda rng: np.round(rng.random(SIZE), 6),
    "constant": lambda _: np.full(SIZE, 0.3),
    "zero and one": lambda rng: (rng.random(SIZE) < 0.5).astype(float),
    "two clusters": lambda rng: np.where(rng.random(SIZE) < 0.5, 1e-7, 1 - 1e-7) * (1 - 1e-8 * rng.random(SIZE)),
    "many clusters": lambda rng: np.round(rng.random(SIZE), 2) * (1 - 1e-9 * rng.random(SIZE)),
}
OUTCOMES = {
    "calibrated": lambda rng, p: rng.random(SIZE) < p,
    "too high": lambda rng, p: rng.random(SIZE) < 0.7 * p,
    "exact": lambda _, p: p,
    "fractions": lambda rng, p: np.clip(p + rng.normal(0, 0.2, SIZE), 0, 1),
}


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.mark.parametrize(
    ("forecast", "outcome", "with_weights"),
    [
        (forecast, outcome, (row + place) % 2 == 1)
        for row, forecast in enumerate(DISTRIBUTIONS)
        for place, outcome in enumerate(OUTCOMES)
    ],
)
def test_large_arrays_give_the_answer_of_the_full_sort(forecast, outcome, with_weights, rng):
    p = DISTRIBUTIONS[forecast](rng)
    y = np.asarray(OUTCOMES[outcome](rng, p), dtype=float)
    w = rng.integers(0, 4, SIZE) / 3.0 if with_weights else None
    tally = Tally.from_arrays(y, p, sample_weight=w)
    source = array_rows(y, p, w)
    table = refinement.split_at_extremes(source)
    assert cutoff_of(table) == pytest.approx(cutoff_of(tally), abs=1e-12)
    mine, other = (weighted.find_worst_interval(entries) for entries in (table, tally))
    assert (mine.low, mine.high, mine.direction, mine.rows) == (other.low, other.high, other.direction, other.rows)
    for strategy in ("uniform", "quantile"):
        table, number = expected_module._binned(source, 15, strategy)
        starts = np.flatnonzero(np.diff(number, prepend=-1))
        assert expected_module._expected(table, starts, "l1", False) == pytest.approx(
            calibrant.expected_calibration_error(tally, n_bins=15, strategy=strategy), abs=1e-12
        )


@pytest.mark.parametrize("with_weights", [False, True], ids=["unit", "weighted"])
def test_parts_added_up_side_by_side_equal_the_whole(with_weights, rng, monkeypatch):
    size = 50_000
    p = np.round(rng.random(size), 4)
    y = rng.random(size) < p
    source = array_rows(y, p, rng.integers(0, 4, size) / 3.0 if with_weights else None)
    low, high = np.array([0.1, 0.5]), np.array([0.1001, 0.6])

    def both():
        return source.histogram(Grid(8, 0.25, 1.0)), source.fetch(low, high)

    whole, fetched = both()
    monkeypatch.setattr(cells, "_ROWS_WORTH_SPLITTING", 1_000)
    halves, fetched_in_halves = both()
    assert halves.index.tolist() == whole.index.tolist()
    for name in (*ADDITIVE, "low", "high"):
        np.testing.assert_allclose(getattr(halves, name), getattr(whole, name), rtol=1e-12, err_msg=name)
    assert fetched_in_halves.y_prob.tolist() == fetched.y_prob.tolist()
    assert fetched_in_halves.y_true.tolist() == fetched.y_true.tolist()


def test_ordinary_data_need_few_rows_one_by_one(rng, monkeypatch):
    p = rng.random(SIZE)
    source = array_rows(rng.random(SIZE) < p, p)
    fetched = []
    original = source.fetch

    def fetch(low, high):
        fetched.append(original(low, high))
        return fetched[-1]

    monkeypatch.setattr(source, "fetch", fetch)
    refinement.split_at_extremes(source)
    assert sum(part.y_prob.size for part in fetched) < 0.05 * SIZE


def test_public_functions_take_the_two_pass_way_above_the_limit(rng, monkeypatch):
    p = rng.random(SIZE)
    y = rng.random(SIZE) < 0.9 * p
    expected = cutoff_of(Tally.from_arrays(y, p))

    def refuse(_):
        raise AssertionError("sorted all rows")

    monkeypatch.setattr(Tally, "_from_binary", lambda *args: refuse(args) if args[1].size == SIZE else TALLY(*args))
    assert calibrant.cutoff_calibration_error(y, p) == pytest.approx(expected, abs=1e-12)
    assert calibrant.measures.ks_calibration_error(y, p) <= expected
    assert calibrant.worst_interval(y, p).direction == "too high"
    assert calibrant.measures.calibration_in_the_large(y, p) == pytest.approx(np.mean(y - p), abs=1e-12)


TALLY = Tally._from_binary


@given(rows(), rows(), st.integers(0, 6), st.integers(0, 6))
def test_merging_adds_up_and_coarsens_the_finer_grid(one, other, bits, other_bits):
    first, second = (
        Cells.from_arrays(y, p, sample_weight=w, bits=depth) for (y, p, w), depth in ((one, bits), (other, other_bits))
    )
    weights = [np.ones_like(part[1]) if part[2] is None else part[2] for part in (one, other)]
    whole = Cells.from_arrays(
        np.concatenate([one[0], other[0]]),
        np.concatenate([one[1], other[1]]),
        sample_weight=np.concatenate(weights),
        bits=min(bits, other_bits),
    )
    merged = first + second
    assert merged.bits == whole.bits
    assert merged.index.tolist() == whole.index.tolist()
    for name in (*ADDITIVE, "low", "high"):
        np.testing.assert_allclose(getattr(merged, name), getattr(whole, name), atol=1e-12, err_msg=name)
    assert (merged.weight_max, merged.unit_weights) == (whole.weight_max, whole.unit_weights)
    assert merged.binary_outcomes == whole.binary_outcomes


@given(rows(), st.integers(0, 20))
def test_cells_hold_the_totals_of_their_rows(data, bits):
    y, p, w = data
    table = Cells.from_arrays(y, p, sample_weight=w, bits=bits)
    weight = np.ones_like(p) if w is None else w
    kept = weight > 0
    index = np.minimum(np.floor(p * 2**bits), 2**bits - 1)[kept]
    assert table.index.tolist() == np.unique(index).tolist()
    for k, cell in enumerate(table.index):
        inside = index == cell
        assert table.rows[k] == inside.sum()
        assert table.low[k] == p[kept][inside].min()
        assert table.high[k] == p[kept][inside].max()
        assert table.residual[k] == pytest.approx((weight * (y - p))[kept][inside].sum(), abs=1e-12)
        assert table.outcome[k] == pytest.approx((weight * y)[kept][inside].sum(), abs=1e-12)


def test_only_cells_can_be_added_and_repr_says_what_they_hold():
    table = Cells.from_arrays([1, 0, 1], [0.1, 0.1, 0.9], bits=3)
    other: Any = 1
    with pytest.raises(TypeError):
        table + other
    assert repr(table) == "Cells(3 rows in 2 of 8 cells)"


LIMITS: tuple[Method, ...] = ("hoeffding", "paper", "normal", "adaptive")


class TestBracket:
    @given(rows(), st.integers(0, 14))
    def test_contains_the_exact_errors(self, data, bits):
        y, p, w = data
        table = Cells.from_arrays(y, p, sample_weight=w, bits=bits)
        slow: dict[Measure, Callable[..., float]] = {"cutoff": brute_force.cutoff, "smooth": brute_force.smooth}
        for measure, exact in slow.items():
            found, error = bracket(table, measure=measure), exact(y, p, w)
            assert found.low <= error + 1e-9  # the linear program's own error
            assert found.high >= error - 1e-9
            assert 0.0 <= found.low <= found.high <= 1.0

    @given(rows(), st.integers(0, 14), st.sampled_from([0.5, 0.9, 0.95]))
    def test_contains_the_exact_limits(self, data, bits, level):
        y, p, w = data
        table = Cells.from_arrays(y, p, sample_weight=w, bits=bits)
        for method in LIMITS[: 4 if bits >= 12 or not table.with_unit_weights().unit_weights else 3]:
            if method == "paper" and w is not None:
                continue
            found = bracket(table, method=method, confidence_level=level)
            tally = Tally.from_arrays(y, p, sample_weight=w)
            exact = calibrant.confidence_interval(tally, method=method, confidence_level=level, alternative="less")
            assert found.low - 1e-12 <= exact.upper <= found.high + 1e-12

    @pytest.mark.parametrize("forecast", ["uniform", "skewed"])
    def test_shrinks_with_more_bits(self, forecast, rng):
        p = DISTRIBUTIONS[forecast](rng)
        y = rng.random(SIZE) < p
        tables = [Cells.from_arrays(y, p, bits=bits) for bits in (12, 14, 16, 18, 20)]
        asked: list[dict[str, Any]] = [{}, {"measure": "smooth"}, {"method": "adaptive"}, {"method": "normal"}]
        for options in asked:
            found = [bracket(table, **options) for table in tables]
            widths = [each.high - each.low for each in found]
            assert (np.diff(widths) <= 0.0).all()
            assert widths[-1] < widths[0] / 20.0

    def test_reads_as_a_sentence_that_states_its_assumptions(self):
        y, p = [0, 1, 1, 0] * 250, np.linspace(0.0, 1.0, 1000)
        found = bracket(Cells.from_arrays(y, p), method="hoeffding", confidence_level=0.9)
        assert str(found).startswith(
            "The upper limit of the Cutoff calibration error by the hoeffding method lies between"
        )
        assert f"with 90% confidence the error of the population is at most {found.high:.4f}"[:-1] in str(found)
        assert "This assumes that the rows are independent draws from the population; forecaster" in str(found)
        assert calibrant.measures.Bracket.from_dict(found.to_dict()) == found
        assert "(from cells of width 2^-16, no row looked at one by one)." in str(bracket(Cells.from_arrays(y, p)))

    def test_refuses_what_it_cannot_tell(self):
        table = Cells.from_arrays([0, 1], [0.2, 0.4], bits=3)
        with pytest.raises(
            ValueError, match=r"^the rates of method='adaptive' follow from 4,096 cells or more, got 2\^3"
        ):
            bracket(table, method="adaptive")
        with pytest.raises(
            ValueError, match=r"^method is for measure='cutoff' or 'risk_gap' only, got measure='smooth'"
        ):
            bracket(table, measure="smooth", method="normal")
        with pytest.raises(ValueError, match=r"^method='paper' does not cover sample_weight"):
            bracket(Cells.from_arrays([0, 1], [0.2, 0.4], sample_weight=[1, 2]), method="paper")
        with pytest.raises(ValueError, match=r"^method must be"):
            bracket(table, method="exact")
        with pytest.raises(ValueError, match=r"^measure must be"):
            bracket(table, measure="ece")


def same_cells(one, other):
    for name in ("index", "low", "high", *ADDITIVE):
        assert getattr(one, name).dtype == getattr(other, name).dtype
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    for name in ("bits", "weight_max", "unit_weights", "binary_outcomes"):
        assert getattr(one, name) == getattr(other, name)


SOME: dict[str, Any] = {
    "y_true": [0, 1, 1, 0, 1],
    "y_prob": [0.1, 0.3, 0.4, 0.8, 0.9],
}  # on 2^2 cells: those of number 0, 1 and 3
FACTS = '{"format": "calibrant/cells/1", "bits": 2, "weight_max": 1.0, "unit_weights": true, "binary_outcomes": true}'
IMPOSSIBLE = [
    ({"bits": 1}, "index[2] is 3, not the number of one of 2^1 cells"),
    ({"bits": 3}, "low[1] is 0.3, not in its cell of width 2^-3"),
    ({"index": {0: -1}}, "index[0] is -1, not the number of one of 2^2 cells"),
    ({"index": {0: 1}}, "index[1] is 1, not above the one before it"),
    ({"index": {1: 2}}, "low[1] is 0.3, not in its cell of width 2^-2"),
    ({"low": {1: math.nan}}, "low[1] is nan, not a finite number"),
    ({"residual": {2: math.inf}}, "residual[2] is inf, not a finite number"),
    ({"low": {0: -0.1}}, "low[0] is -0.1, outside [0, 1]"),
    ({"high": {2: 1.5}}, "high[2] is 1.5, outside [0, 1]"),
    ({"high": {1: 0.6}}, "high[1] is 0.6, not in its cell of width 2^-2"),
    ({"low": {1: 0.4}, "high": {1: 0.3}}, "low[1] is 0.4, above the largest forecast of its cell"),
    ({"rows": {1: -2}}, "rows[1] is -2, not a number of rows"),
    ({"rows": {1: 0}}, "rows[1] is 0, not a number of rows"),
    ({"rows": {1: 2**60}}, "rows[1] is 1.152921504606847e+18, and together they reach 1.15292e+18"),
    ({"high": {0: 0.2}}, "high[0] is 0.2, not the smallest forecast, although its cell has one row only"),
    ({"rows": {1: 3}}, "weight[1] is 2, not the number of rows, although every weight is 1"),
    ({"weight_square": {1: 3}}, "weight_square[1] is 3, not the number of rows, although every weight is 1"),
    ({"weight_max": 2.0}, "weight_max is 2.0, although every weight is 1"),
    ({"outcome": {0: -1.0}}, "outcome[0] is -1.0, not from 0 to the weight of its cell"),
    ({"outcome": {1: 3.0}}, "outcome[1] is 3.0, not from 0 to the weight of its cell"),
    ({"outcome": {2: 0.5}}, "outcome[2] is 0.5, not a number of events, although outcomes are 0 or 1"),
    (
        {"outcome": {2: 0.0}},
        "residual[2] is -0.7000000000000001, not what the outcomes and forecasts of its cell leave",
    ),
    ({"residual": {1: 0.1}}, "residual[1] is 0.1, not what the outcomes and forecasts of its cell leave"),
    ({"residual_square": {1: 2.0}}, "residual_square[1] is 2.0, not what the outcomes and forecasts of its cell leave"),
    ({"residual_square": {1: 0.1}}, "residual_square[1] is 0.1, not what the outcomes and forecasts of its cell leave"),
    (
        {"weight_square_residual_square": {0: 0.5}},
        "weight_square_residual_square[0] is 0.5, not residual_square, although every weight is 1",
    ),
    ({"weighted": True, "weight": {1: -2.5}}, "weight[1] is -2.5, not above 0"),
    ({"weighted": True, "weight": {1: 9.0}}, "weight[1] is 9.0, too much for its rows and weights up to 4.0"),
    ({"weighted": True, "weight_square": {1: 20.0}}, "weight_square[1] is 20.0, too much for weights up to 4.0"),
    ({"weighted": True, "weight_square": {1: 1.0}}, "weight_square[1] is 1.0, too little for its weight"),
    ({"weighted": True, "weight_max": 3.0}, "weight_square[2] is 17.0, too much for weights up to 3.0"),
    ({"weighted": True, "weight_max": 50.0}, "weight_max is 50.0, more than the rows of any cell weigh together"),
    ({"weighted": True, "unit_weights": True}, "weight_max is 4.0, although every weight is 1"),
    (
        {"weighted": True, "weight_square_residual_square": {2: 90.0}},
        "weight_square_residual_square[2] is 90.0, not what the weights and residuals of its cell leave",
    ),
]


def change(file, changes):
    """Change facts, and entries of columns, in a file of cells."""
    import pyarrow
    from pyarrow import parquet

    table = parquet.read_table(file)
    facts = json.loads(table.schema.metadata[b"calibrant"])
    columns = {name: table[name].to_numpy().copy() for name in table.column_names}
    for name, value in changes.items():
        if isinstance(value, dict):
            for place, number in value.items():
                columns[name][place] = number
        else:
            facts[name] = value
    parquet.write_table(pyarrow.table(columns).replace_schema_metadata({b"calibrant": json.dumps(facts)}), file)


class TestParquet:
    @given(rows(), rows(), st.integers(0, 16))
    def test_a_file_gives_back_the_cells_and_shards_add_up(self, tmp_path_factory, one, other, bits):
        folder = tmp_path_factory.mktemp("shards")
        shards = [Cells.from_arrays(y, p, sample_weight=w, bits=bits) for y, p, w in (one, other)]
        for number, shard in enumerate(shards):
            shard.to_parquet(folder / f"{number}.parquet")
        read = [Cells.from_parquet(str(folder / f"{number}.parquet")) for number in (0, 1)]
        for mine, shard in zip(read, shards, strict=True):
            same_cells(mine, shard)
        same_cells(read[0] + read[1], shards[0] + shards[1])

    def test_other_files_are_refused(self, tmp_path):
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.table({"y": [1]}), tmp_path / "rows.parquet")
        with pytest.raises(
            ValueError, match=r"rows.parquet does not hold cells as this version of calibrant writes them"
        ):
            Cells.from_parquet(tmp_path / "rows.parquet")
        file = tmp_path / "cells.parquet"
        Cells.from_arrays([0, 1], [0.2, 0.4]).to_parquet(file)
        file.write_bytes(file.read_bytes()[:-40])
        with pytest.raises(ValueError, match=r"cells.parquet is not a Parquet file, or a damaged one: "):
            Cells.from_parquet(file)
        with pytest.raises(FileNotFoundError):
            Cells.from_parquet(tmp_path / "none.parquet")

    @pytest.mark.parametrize(("changes", "message"), list(IMPOSSIBLE), ids=[message for _, message in IMPOSSIBLE])
    def test_totals_that_no_rows_can_have_are_refused(self, tmp_path, changes, message):
        weighted = "weighted" in changes
        rows = SOME if not weighted else {**SOME, "sample_weight": [1.0, 2.0, 0.5, 4.0, 1.0]}
        cells = Cells.from_arrays(**rows, bits=2)
        file = tmp_path / "cells.parquet"
        cells.to_parquet(file)
        same_cells(Cells.from_parquet(file), cells)
        change(file, {name: value for name, value in changes.items() if name != "weighted"})
        with pytest.raises(ValueError, match=rf"cells.parquet is damaged or was changed: {re.escape(message)}") as said:
            Cells.from_parquet(file)
        assert str(said.value).endswith("; write it anew with to_parquet")

    @pytest.mark.parametrize(
        ("column", "values", "message"),
        [
            ("rows", [1.0, 2.0, 2.0], "column rows has the type double, not numbers of type int64"),
            ("low", ["a", "b", "c"], "column low has the type "),
            ("outcome", [0.0, None, 1.0], "column outcome has values that are missing, not numbers of type double"),
            ("weight", [True, True, True], "column weight has the type bool, not numbers of type int64 or double"),
        ],
    )
    def test_columns_of_another_type_are_refused(self, tmp_path, column, values, message):
        import pyarrow
        from pyarrow import parquet

        file = tmp_path / "cells.parquet"
        Cells.from_arrays(**SOME, bits=2).to_parquet(file)
        table = parquet.read_table(file)
        position = table.column_names.index(column)
        parquet.write_table(table.set_column(position, column, pyarrow.array(values)), file)
        with pytest.raises(ValueError, match=re.escape(f"cells.parquet is damaged or was changed: {message}")):
            Cells.from_parquet(file)

    @pytest.mark.parametrize(
        ("facts", "message"),
        [
            ("{", "does not hold cells as this version"),
            ("[" * 100_000, "does not hold cells as this version"),
            ('["calibrant/cells/1"]', "does not hold cells as this version"),
            ('{"format": "calibrant/cells/0"}', "does not hold cells as this version"),
            (
                '{"format": "calibrant/cells/2", "more": 1}',
                "cells.parquet was written by a newer version of calibrant (calibrant/cells/2); this one reads "
                "calibrant/cells/1; update calibrant, as in: pip install --upgrade calibrant",
            ),
            ('{"format": "calibrant/cells/1"}', "it has the facts  instead of binary_outcomes, bits, unit_weights"),
            (FACTS.replace("true", '"yes"', 1), "unit_weights is 'yes', not true or false"),
            (FACTS.replace('"bits": 2', '"bits": 2.5'), "bits must be a whole number from 0 to 61, got 2.5"),
            (FACTS.replace('"bits": 2', '"bits": true'), "bits must be a whole number, got True of type bool"),
            (FACTS.replace("1.0", "NaN"), "weight_max must be a number from 0 to "),
            (FACTS.replace("1.0", "1e999"), "weight_max must be a number from 0 to "),
        ],
    )
    def test_what_stands_beside_the_columns_is_checked(self, tmp_path, facts, message):
        from pyarrow import parquet

        file = tmp_path / "cells.parquet"
        Cells.from_arrays(**SOME, bits=2).to_parquet(file)
        table = parquet.read_table(file)
        parquet.write_table(table.replace_schema_metadata({b"calibrant": FACTS}), file)
        assert Cells.from_parquet(file).row_total == 5
        parquet.write_table(table.replace_schema_metadata({b"calibrant": facts}), file)
        with pytest.raises(ValueError, match=re.escape(message)):
            Cells.from_parquet(file)

    def test_a_damaged_file_is_refused_or_gives_what_was_written(self, tmp_path):
        file = tmp_path / "cells.parquet"
        rng = np.random.default_rng(5)
        cells = Cells.from_arrays(rng.random(300) < 0.5, rng.random(300), bits=6)
        cells.to_parquet(file)
        whole = file.read_bytes()
        refused = []
        for _ in range(300):
            damaged = bytearray(whole)
            for place in rng.integers(0, len(whole), size=rng.integers(1, 4)):
                damaged[place] ^= 1 << rng.integers(0, 8)
            file.write_bytes(damaged)
            try:
                found = Cells.from_parquet(file)
            except ValueError as error:
                refused.append(str(error))
            else:
                same_cells(found, cells)
        assert len(refused) > 200
        assert all("cells.parquet" in said for said in refused)

    def test_a_folder_is_no_file(self, tmp_path):
        Cells.from_arrays([0, 1], [0.2, 0.4]).to_parquet(tmp_path / "cells.parquet")
        with pytest.raises(IsADirectoryError):
            Cells.from_parquet(tmp_path)

    def test_an_interrupted_write_leaves_the_previous_file_alone(self, tmp_path, monkeypatch):
        from pyarrow import parquet

        file = tmp_path / "cells.parquet"
        table = Cells.from_arrays([0, 1], [0.2, 0.4])
        table.to_parquet(file)

        def interrupted(_, stream, **__):
            stream.write(b"half")
            raise KeyboardInterrupt

        monkeypatch.setattr(parquet, "write_table", interrupted)
        with pytest.raises(KeyboardInterrupt):
            (table + table).to_parquet(file)
        same_cells(Cells.from_parquet(file), table)
        assert [found.name for found in tmp_path.iterdir()] == ["cells.parquet"]

    def test_a_missing_library_is_named(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(ImportError, match=r"^Parquet files need pyarrow; install it, as in: pip install pyarrow"):
            Cells.from_arrays([0, 1], [0.2, 0.4]).to_parquet(tmp_path / "cells.parquet")


def test_rows_of_weight_zero_do_not_count_however_many_there_are():
    y, p = np.tile([0, 1], 40), np.tile([0.25, 0.75], 40)
    for bits in (2, 12):  # which are added up in different ways
        cells = Cells.from_arrays(y, p, sample_weight=np.tile([1.0, 1.0, 0.0, 0.0], 20), bits=bits)
        assert (cells.row_total, cells.unit_weights) == (40, True)


def test_few_rows_on_a_fine_grid_take_little_memory():
    program = """
    import resource, numpy as np
    from calibrant import Cells
    rng = np.random.default_rng(0)
    y, p = rng.random(20_000) < 0.5, rng.random(20_000)
    Cells.from_arrays(y[:100], p[:100], bits=4)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cells = Cells.from_arrays(y, p, bits=24)
    print(cells.row_total, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={"PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=True,
    )
    rows, kilobytes = map(int, found.stdout.split())
    assert rows == 20_000
    assert kilobytes < 50_000  # a table of all 2^24 cells takes 800,000


@given(rows(), st.integers(0, 20))
def test_cells_of_a_tally_are_those_of_its_rows(data, bits):
    y, p, w = data
    mine = Cells.from_tally(Tally.from_arrays(y, p, sample_weight=w), Grid(bits, 0.0, 1.0))
    other = array_rows(y, p, w).histogram(Grid(bits, 0.0, 1.0))
    assert mine.index.tolist() == other.index.tolist()
    for name in (*ADDITIVE, "low", "high"):
        np.testing.assert_allclose(getattr(mine, name), getattr(other, name), atol=1e-12, err_msg=name)


@given(rows())
def test_forecasts_moved_to_their_cells_mean_keep_every_sum(data):
    y, p, w = data
    table = Cells.from_arrays(y, p, sample_weight=w, bits=2)
    moved = table.at_means()
    assert (np.diff(moved.forecast) > 0.0).all()
    np.testing.assert_allclose(moved.outcome - moved.weight * moved.forecast, table.residual, atol=1e-12)
    assert calibrant.cutoff_calibration_error(moved) == pytest.approx(cutoff_of(table), abs=1e-12)
