from typing import Any

import numpy as np
import pytest
from brute_force import merged, rows
from hypothesis import given
from hypothesis import strategies as st

from calibrant import Cells, Tally
from calibrant.rows.grids import FIRST_GRID
from calibrant.rows.tally import ADDITIVE


@given(rows())
def test_columns_are_the_totals_of_each_distinct_forecast(data):
    y, p, w = data
    tally = Tally.from_arrays(y, p, sample_weight=w)
    weight = np.ones_like(p) if w is None else w
    forecast, *_ = merged(y, p, w)
    assert tally.forecast.tolist() == forecast.tolist()
    residual = y - p
    columns = {
        "rows": (weight > 0).astype(float),
        "weight": weight,
        "weight_square": weight**2,
        "residual": weight * residual,
        "residual_square": weight * residual**2,
        "weight_square_residual_square": weight**2 * residual**2,
        "outcome": weight * y,
    }
    assert set(columns) == set(ADDITIVE)
    for name, values in columns.items():
        expected = [values[p == v].sum() for v in forecast]
        np.testing.assert_allclose(getattr(tally, name), expected, rtol=0, atol=1e-12, err_msg=name)
    assert tally.weight_max == weight.max()
    assert tally.unit_weights == bool((weight[weight > 0] == 1).all())
    assert tally.binary_outcomes == bool(np.isin(y, [0, 1]).all())
    np.testing.assert_allclose(tally.residual_prefix(), np.concatenate([[0], np.cumsum(tally.residual)]), atol=1e-15)


@given(rows(), rows())
def test_merging_adds_up(one, other):
    first, second = (Tally.from_arrays(y, p, sample_weight=w) for y, p, w in (one, other))
    merged_tally = first + second
    y, p = np.concatenate([one[0], other[0]]), np.concatenate([one[1], other[1]])
    weights = [np.ones_like(part[1]) if part[2] is None else part[2] for part in (one, other)]
    whole = Tally.from_arrays(y, p, sample_weight=np.concatenate(weights))
    assert merged_tally.forecast.tolist() == whole.forecast.tolist()
    for name in ADDITIVE:
        np.testing.assert_allclose(getattr(merged_tally, name), getattr(whole, name), atol=1e-12, err_msg=name)
    for name in ("weight_max", "unit_weights", "binary_outcomes", "row_total"):
        assert getattr(merged_tally, name) == getattr(whole, name), name


@given(rows(weighted=False, binary=True), st.randoms())
def test_counts_equal_rows(data, random):
    y, p, _ = data
    listed = list(dict.fromkeys(p.tolist()))
    random.shuffle(listed)
    counts = [int((p == v).sum()) for v in listed]
    events = [int(y[p == v].sum()) for v in listed]
    counted, whole = Tally.from_counts(listed, counts, events), Tally.from_arrays(y, p)
    assert counted.forecast.tolist() == whole.forecast.tolist()
    assert counted.events.tolist() == whole.events.tolist()
    assert counted.rows.tolist() == whole.rows.tolist()
    assert counted.unit_weights
    assert counted.binary_outcomes


def test_counts_of_the_same_forecast_add_up_and_zero_counts_vanish():
    tally = Tally.from_counts([0.5, 0.2, 0.5, 0.9], [3, 4, 1, 0], [1, 2, 1, 0])
    assert tally.forecast.tolist() == [0.2, 0.5]
    assert tally.rows.tolist() == [4, 4]
    assert tally.events.tolist() == [2, 2]


def test_zero_and_minus_zero_are_one_forecast():
    for outcomes in ([0, 1], [0.25, 0.5]):  # the packed way and the general way
        assert len(Tally.from_arrays(outcomes, [0.0, -0.0])) == 1


def test_forecasts_that_differ_in_the_last_bit_stay_apart():
    assert len(Tally.from_arrays([0, 1], [0.3, 0.1 + 0.2])) == 2


def test_rows_of_weight_zero_leave_no_trace():
    tally = Tally.from_arrays([0, 1, 1], [0.1, 0.2, 0.3], sample_weight=[1, 0, 1])
    assert tally.forecast.tolist() == [0.1, 0.3]
    assert tally.row_total == 2


def test_events_are_refused_where_there_is_nothing_to_count():
    for tally in (Tally.from_arrays([0.5], [0.5]), Tally.from_arrays([1], [0.5], sample_weight=[2])):
        with pytest.raises(ValueError, match="no event counts"):
            _ = tally.events


def test_only_tallies_can_be_added():
    other: Any = 1
    with pytest.raises(TypeError):
        Tally.from_arrays([1], [0.5]) + other


@pytest.mark.parametrize(
    ("rows", "weight", "text"),
    [
        (([1], [0.5]), None, "Tally(1 row on 1 distinct forecast at 0.5, 1 events)"),
        (([0.5], [0.5]), None, "Tally(1 row on 1 distinct forecast at 0.5, mean outcome 0.5)"),
        (
            ([1, 0], [0.5, 0.25]),
            [2, 3],
            "Tally(2 rows on 2 distinct forecasts from 0.25 to 0.5, total weight 5)",
        ),
    ],
)
def test_repr_says_what_it_holds(rows, weight, text):
    assert repr(Tally.from_arrays(*rows, sample_weight=weight)) == text


# --- More rows than can be counted ------------------------------------------------------------------------------------

TOO_MANY = r"^rows\[\d\] is \d+, and together they reach 9.*e\+15; from 2\^53 on counts are not exact: judge a sample"


def test_a_tally_or_cells_doubled_too_often_are_refused():
    tally = Tally.from_counts(forecast=[0.25, 0.5], rows=[2**50, 1], events=[2**49, 1])
    four = tally + tally + tally + tally
    assert four.row_total == 2**52 + 4
    assert four.events.tolist() == [2**51, 4]
    with pytest.raises(ValueError, match=TOO_MANY):
        four + four
    cells = Cells.from_tally(four, FIRST_GRID)
    assert cells.row_total == 2**52 + 4
    with pytest.raises(ValueError, match=TOO_MANY):
        cells + cells


def test_counts_are_exact_up_to_the_last_number_that_they_may_reach():
    tally = Tally.from_counts(forecast=[0.25, 0.5], rows=[2**53 - 2, 1], events=[2**53 - 3, 1])
    assert tally.row_total == 2**53 - 1
    assert tally.events.tolist() == [2**53 - 3, 1]
    with pytest.raises(ValueError, match=TOO_MANY):
        tally + Tally.from_arrays([0], [0.125])
    with pytest.raises(ValueError, match=TOO_MANY):
        Tally.from_counts(forecast=[0.25, 0.5], rows=[2**53 - 1, 1], events=[0, 0])


def test_weights_that_add_up_to_infinity_are_refused():
    part = Tally.from_arrays([0, 1], [0.25, 0.5], sample_weight=[9e153, 9e153])
    with pytest.raises(ValueError, match=r"^weight_square adds up to inf; divide the weights by the largest of them"):
        part + part
