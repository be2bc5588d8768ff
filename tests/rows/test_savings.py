"""What re-drawing a line adds up to: every threshold and line tried, row by row; from rows, cells and sources alike."""

import math

import brute_force
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from calibrant import Cells, Tally
from calibrant.decisions import risk_gap_curve
from calibrant.measures.savings import largest_saving, saving_of
from calibrant.rows import refinement, savings
from calibrant.rows.checks import check_observations
from calibrant.rows.grids import Grid
from calibrant.rows.memory import ArrayRows
from calibrant.rows.savings import (
    EVERY_THRESHOLD,
    SAVING,
    Stretches,
    Thresholds,
    bet_score,
    bracket_redrawing,
    largest_redrawing,
    prefix_minima,
    split_at_savings,
    split_at_thresholds,
    square_score,
)

BETS = {"saving": None, "0.9": 0.9, "0.3": 0.3, "0.02": 0.02}
SCORES = {name: SAVING if rate is None else bet_score(rate) for name, rate in BETS.items()}


def row_scores(outcome, threshold, more, rate):
    """What a row of weight 1 scores: the saving, or how a bet on it grows (along the chord for fractions)."""

    def score(y):
        gain = (y - threshold) if more else (threshold - y)
        return gain if rate is None else -math.log1p(-rate * gain)

    return outcome * score(1.0) + (1.0 - outcome) * score(0.0)


def tried(y, p, w, thresholds, rate):
    """The largest score of all thresholds and lines, each tried."""
    low, high = thresholds
    unit, forecasts = w / w.max(), np.unique(p)
    best = 0.0
    at = [(t, False) for t in (*forecasts, low, high) if low <= t <= high]
    for t, just_above in [*at, *((t, True) for t in forecasts if low <= t < high)]:
        acts = p > t if just_above else p >= t
        for line in (*forecasts, 2.0):
            more, fewer = (p >= line) & ~acts, acts & (p < line)
            changed = more if more.any() else fewer
            best = max(best, math.fsum(unit[changed] * row_scores(y[changed], t, more.any(), rate)))
    return best


@st.composite
def questions(draw):
    y, p, w = draw(brute_force.rows(most=14))
    ends = sorted(draw(st.lists(st.one_of(st.floats(0, 1), st.sampled_from(list(p))), min_size=2, max_size=2)))
    thresholds = draw(st.sampled_from([EVERY_THRESHOLD, Thresholds(*ends), Thresholds(ends[0], ends[0])]))
    columns = [np.asarray(column, dtype=float) for column in (y, p, np.ones(len(y)) if w is None else w)]
    return tuple(column[columns[2] > 0.0] for column in columns), thresholds


@pytest.mark.parametrize("name", BETS)
@given(question=questions())
@example(question=((np.array([1.0]), np.array([0.0]), np.array([1.0])), EVERY_THRESHOLD))
@example(question=((np.array([0.0]), np.array([1.0]), np.array([1.0])), EVERY_THRESHOLD))
@example(question=((np.array([0.0, 1.0]), np.array([0.5, 0.5]), np.ones(2)), Thresholds(0.5, 0.5)))
def test_the_search_finds_what_trying_every_threshold_and_line_finds(name, question):
    (y, p, w), thresholds = question
    tally = Tally.from_arrays(y, p, sample_weight=w)
    expected = tried(y, p, w, thresholds, BETS[name])
    for compiled in (10**9, 0):  # by arrays, and by the loop that many entries are given to
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(savings, "_COMPILED", compiled)
            best = largest_redrawing(Stretches.of(tally), thresholds, SCORES[name])
        assert best.score == pytest.approx(expected, abs=1e-12)
        # The witness is one of those tried.
        changed = np.isin(p, tally.forecast[best.first : best.last])
        score = math.fsum((w / w.max())[changed] * row_scores(y[changed], best.threshold, best.more, BETS[name]))
        assert score == pytest.approx(expected, abs=1e-12)
        assert thresholds.low <= best.threshold <= thresholds.high or best.score == 0.0


@pytest.mark.parametrize("name", BETS)
@given(question=questions(), bits=st.integers(0, 6))
def test_cells_contain_the_largest_score(name, question, bits):
    (y, p, w), thresholds = question
    exact = largest_redrawing(Stretches.of(Tally.from_arrays(y, p, sample_weight=w)), thresholds, SCORES[name]).score
    cells = Cells.from_arrays(y, p, sample_weight=w, bits=bits)
    low, high = bracket_redrawing(Stretches.of(cells), thresholds, SCORES[name])
    assert low - 1e-12 <= exact <= high + 1e-12


class Bounded(ArrayRows):
    """Rows of which few may be fetched at a time, as from a database."""

    fetch_limit = 40
    tally_limit = math.inf
    first_grid = Grid(4, 0.0, 1.0)


@pytest.mark.parametrize("bounded", [False, True])
@given(seed=st.integers(0, 2**32), size=st.integers(1, 400))
def test_sources_are_split_until_the_answer_is_exact(bounded, seed, size):
    rng = np.random.default_rng(seed)
    p = rng.choice([rng.random(size), rng.beta(0.5, 20, size), rng.random(size).round(1)])
    y = rng.choice([rng.random(size) < p, rng.random(size) < 0.3 + 0.3 * p, rng.random(size)])
    w = rng.choice([np.ones(size), rng.exponential(size=size) + 0.01])
    thresholds = [EVERY_THRESHOLD, Thresholds(0.2, 0.4), Thresholds(0.1, 0.1)][rng.integers(3)]
    rows = check_observations(y, p, sample_weight=w, order=None)
    scores = [SAVING, bet_score(0.5), square_score(0.4)]
    fine = split_at_savings((Bounded if bounded else ArrayRows)(rows), thresholds, lambda _: scores)
    tally = Tally.from_arrays(y, p, sample_weight=w)
    for score in scores:
        found, exact = (largest_redrawing(Stretches.of(table), thresholds, score).score for table in (fine, tally))
        assert found == pytest.approx(exact, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("thresholds", [EVERY_THRESHOLD, Thresholds(0.2, 0.2), Thresholds(0.3, 0.6)], ids=str)
@pytest.mark.parametrize("shift", [0.0, 0.05])
def test_many_entries_are_joined_without_a_loss(monkeypatch, thresholds, shift):
    rng = np.random.default_rng(3)
    p = rng.beta(1, 2, 6000)
    stretches = Stretches.of(Tally.from_arrays(rng.random(6000) < np.minimum(p + shift, 1), p))
    joined = [largest_redrawing(stretches, thresholds, score) for score in SCORES.values()]
    monkeypatch.setattr(savings, "_COMPILED", 0)
    joined += [largest_redrawing(stretches, thresholds, score) for score in SCORES.values()]
    joined += [largest_redrawing(stretches, thresholds, score, times=2) for score in SCORES.values()]
    monkeypatch.setattr(savings, "_COMPILED", 10**9)
    monkeypatch.setattr(savings, "_MANY", 10**9)
    one_by_one = [largest_redrawing(stretches, thresholds, score) for score in SCORES.values()]
    for found, expected in zip(joined, one_by_one * 3, strict=True):
        assert found.score == pytest.approx(expected.score, rel=1e-12)
        assert (found.first, found.last, found.more) == (expected.first, expected.last, expected.more)


def test_rows_in_memory_are_cut_finely_where_they_are_many(monkeypatch):
    rng = np.random.default_rng(8)
    p = rng.random(200_000)
    rows = check_observations(rng.random(p.size) < p, p, order=None)
    monkeypatch.setattr(savings, "FIRST_BITS", 4)
    monkeypatch.setattr(refinement, "FIRST_BITS", 4)
    monkeypatch.setattr(savings, "FIRST_GRID", Grid(4, 0.0, 1.0))
    monkeypatch.setattr(savings, "_CELLS_AT_ONCE", 2**9)
    cut = []
    plain = refinement.Opened.cut

    def noted(self, table, entries, bits):
        cut.append(bits)
        return plain(self, table, entries, bits)

    monkeypatch.setattr(refinement.Opened, "cut", noted)
    source = refinement.Opened(ArrayRows(rows))
    source.start(Grid(4, 0.0, 1.0))
    fine = split_at_savings(source, EVERY_THRESHOLD, lambda _: [SAVING])
    assert len(cut) > 4
    assert len(fine) < 150_000
    exact = largest_redrawing(Stretches.of(Tally.from_observations(rows)), EVERY_THRESHOLD, SAVING).score
    assert largest_redrawing(Stretches.of(fine), EVERY_THRESHOLD, SAVING).score == pytest.approx(exact, rel=1e-12)


def test_no_entry_reaches_across_a_threshold():
    p = np.arange(1000) / 1000
    rows = check_observations(np.zeros(1000), p, order=None)
    source = refinement.Opened(ArrayRows(rows))
    source.start(Grid(3, 0.0, 1.0))
    table = split_at_thresholds(source, Thresholds(0.3, 0.5))
    assert len(table) > 8
    for threshold in (0.3, 0.5):
        assert not ((table.low < threshold) & (table.high >= threshold)).any()


@given(question=questions())
def test_the_saving_is_the_gap_of_isotonic_recalibration(question):
    (y, p, w), _ = question
    tally = Tally.from_arrays(y, p, sample_weight=w)
    assert largest_saving(tally, EVERY_THRESHOLD).saving == pytest.approx(risk_gap_curve(tally).largest_gap, abs=1e-12)


@given(question=questions())
def test_mirrored_rows_have_the_same_saving(question):
    (y, p, w), _ = question
    halves = np.round(p * 64) / 64  # whose distance from 1 is exact
    saving, mirrored = (
        largest_saving(Tally.from_arrays(*columns, sample_weight=w), EVERY_THRESHOLD).saving
        for columns in ((y, halves), (1.0 - y, 1.0 - halves))
    )
    assert saving == pytest.approx(mirrored, abs=1e-12)


# --- Minima over prefixes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("few", "compiled"), [(0, 10**9), (10**9, 0), (0, 0)], ids=["halving", "all", "tangents"])
@given(seed=st.integers(0, 2**32), points=st.integers(1, 40), asked=st.integers(0, 40))
def test_minima_over_prefixes_are_the_first_of_all(few, compiled, seed, points, asked):
    rng = np.random.default_rng(seed)
    height = rng.integers(-5, 20, points).cumsum().astype(float)
    width = rng.integers(0, 4, points).cumsum().astype(float)
    slope, last = np.sort(rng.integers(0, 9, asked) / 4.0), np.sort(rng.integers(0, points, asked))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(savings, "_FEW", few)
        patch.setattr(savings, "_COMPILED", compiled)
        least, place = prefix_minima(height, width, slope, last)
    values = [height[: end + 1] - at * width[: end + 1] for at, end in zip(slope, last, strict=True)]
    assert_array_equal(least, [each.min() for each in values])
    assert_array_equal(place, [each.argmin() for each in values])


# --- Words ------------------------------------------------------------------------------------------------------------


def test_a_saving_says_where_and_how():
    tally = Tally.from_counts([0.2, 0.4, 0.6], [100, 100, 100], [50, 40, 60])
    assert str(largest_saving(tally, EVERY_THRESHOLD)) == (
        "On these rows most is saved just above threshold 0.2 (a false alarm costs 0.2, a missed event 0.8): acting on "
        "forecasts from 0.2 up instead saves 0.10000 per case."
    )
    costly = saving_of(tally, Thresholds(0.25, 0.25), (1.0, 3.0))
    assert (costly.threshold, costly.attained, costly.moves, costly.cutoff) == (0.25, True, "more", 0.2)
    assert str(costly) == (
        "On these rows most is saved at threshold 0.25 (a false positive costs 1, a false negative 3): acting on "
        "forecasts from 0.2 up instead saves 0.08333 per case (0.33333 in cost units)."
    )
    never = largest_saving(Tally.from_counts([0.7], [10], [0]), EVERY_THRESHOLD)
    assert str(never) == (
        "On these rows most is saved at threshold 0.7 (a false alarm costs 0.7, a missed event 0.3): never acting "
        "instead saves 0.70000 per case."
    )
    assert str(largest_saving(Tally.from_counts([0.5], [10], [5]), EVERY_THRESHOLD)) == (
        "On these rows no other line would have saved anything."
    )
