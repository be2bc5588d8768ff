"""Cells that are numbered through add up to what arrays have: all of them, some cut finer, those of several groups."""

import numpy as np
import pyarrow as pa
import pytest
from row_sources import array_rows

import calibrant
from calibrant import scan
from calibrant.engines import histograms
from calibrant.rows.grids import FIRST_GRID, Grid
from calibrant.rows.sources import HistogramRequest

RNG = np.random.default_rng(21)
SIZE = 6_000
FORECAST = np.concatenate([RNG.random(SIZE - 2_006), 1e-7 * RNG.random(2_000), [0.0, -0.0, 1.0, 1.0, 1.0, 0.5]])
OUTCOME = (RNG.random(SIZE) < FORECAST).astype(np.int8)
GROUP = RNG.choice(["north", 'it\'s "south"', "", "west", "east"], SIZE)


@pytest.fixture(autouse=True)
def many_rows(monkeypatch):
    """Take few rows for many, so that cells are numbered."""
    monkeypatch.setattr("calibrant.engines.duckdb._FEW_ROWS", 0)


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
        assert histograms._Numbered.of([request.grid for request in histograms.common_bits(asked)]) is not None
        numbered = groups.histograms(asked)
        monkeypatch.setattr(histograms._Numbered, "of", lambda _: None)
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
