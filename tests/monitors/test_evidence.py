"""Evidence, detector and upper limits of monitors: against rows, starts and intervals one by one, and enumerated.

What is enumerated is every outcome of a period given forecasts and past: no bet may grow on average while forecasts
are right, or off by no more than tolerated, and no rounding or stand-in for a logarithm may change that.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import Tally
from calibrant.monitors import Monitor
from calibrant.monitors.evidence import (
    Evidence,
    is_kept,
    log_sum,
    mixed_lower,
    period_gains,
    rates_of,
    row_gains,
)
from calibrant.monitors.families import BEGIN, BORDERS, END, RATES, log_shares, most_lost
from calibrant.monitors.questions import CutoffQuestion
from calibrant.monitors.spread import Spread
from calibrant.monitors.uppers import PeriodSums, _Growth, _most_grown, mixed_upper, upper_in_family, upper_of_rows
from calibrant.rows.cells import Cells
from calibrant.rows.grids import Grid

SIGNS = np.array([1.0, -1.0])
GAINS = {"row": row_gains, "period": period_gains}
DELTA = 0.05
SEEDS = st.integers(0, 2**32 - 1)
UNITS = ("row", "period")


def drawn(rng, rows, kind="any"):
    """Outcomes and forecasts: spread, on few levels (borders among them), near the ends, or fractions."""
    if kind == "levels":
        p = rng.choice([0.0, 0.03, 0.25, 0.5, 0.7, 1.0 - 2.0**-12, 1.0], rows)
    elif kind == "ends":
        p = np.where(rng.random(rows) < 0.5, 0.0, 1.0) + rng.choice([1.0, -1.0], rows) * rng.random(rows) ** 8
        p = np.abs(p) % 1.0
    else:
        p = rng.random(rows)
    y = rng.random(rows) if kind == "fractions" else (rng.random(rows) < 0.5).astype(float)
    return y, p


KINDS = st.sampled_from(("any", "levels", "ends", "fractions"))


def inside(p):
    """Return which rows are in which interval of the family."""
    low, high = BORDERS[BEGIN][:, None], BORDERS[END][:, None]
    return (low <= p) & ((p < high) | (high == 1.0))


def gains_by_rows(y, p, tolerance):
    """Return sums of ln(1 + x s r) over rows, one by one."""
    rates = rates_of("row")[:, None, None]
    gains = np.zeros((RATES, 2, BEGIN.size))
    for outcome, forecast in zip(y, p, strict=True):
        won = rates * SIGNS[:, None] * ((outcome - forecast) * inside(np.array([forecast]))[:, 0])
        gains += np.log1p(won) - np.log1p(rates * tolerance)
    return gains


def gains_by_periods(y, p, w, tolerance):
    """Return ln(1 + x_b X_b), and which bets are smaller than their rate."""
    share = w / w.sum() * inside(p)
    mean = share @ (y - p)
    lost = np.stack([share @ p, share @ (1.0 - p)])
    with np.errstate(divide="ignore"):
        bet = np.minimum(rates_of("period")[:, None, None], 0.9 / lost)
    gains = np.log1p(bet * np.stack([mean, -mean])) - np.log1p(bet * tolerance)
    return gains, bet < (1.0 - 1e-12) * rates_of("period")[:, None, None]


# --- Gains ------------------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(SEEDS, KINDS, st.sampled_from((0.0, 0.03)), st.sampled_from((12, 16)))
def test_gains_of_rows_are_at_most_those_of_the_rows_one_by_one_and_hardly_less(seed, kind, tolerance, bits):
    y, p = drawn(np.random.default_rng(seed), 25, kind)
    found = row_gains(Cells.from_arrays(y, p, bits=bits), tolerance).log
    exact = gains_by_rows(y, p, tolerance)
    assert (found <= exact + 1e-12).all()
    rate = rates_of("row")[:, None, None]

    def rest(value):
        return (-np.log1p(-value) - value) / value**2

    # Fractions: psi(x)/x^2 in place of psi(v)/v^2. Cells: the rest of ln(1 + v) has a slope of at most v^2/(1 + v).
    # Slow rates: the fifth power, as docs/theory/streams.md says.
    fractions = rate**2 * (rest(rate) - rest(-rate))
    others = rate**3 / (1.0 - rate) * 2.0**-bits + np.where(rate <= 0.12, 0.4 * rate**5 / (1.0 - rate**2), 0.0)
    slack = fractions if kind == "fractions" else others + 2.0 ** (1 - bits) * rate**4
    assert (exact - found <= y.size * slack + 1e-12).all()


@settings(max_examples=50)
@given(SEEDS, KINDS, st.booleans(), st.sampled_from((0.0, 0.03)))
def test_gains_of_periods_are_those_of_their_means(seed, kind, weighted, tolerance):
    rng = np.random.default_rng(seed)
    y, p = drawn(rng, 12, kind)
    w = rng.choice([1.0, 2.0, 5.0], 12) if weighted else np.ones(12)
    found = period_gains(Cells.from_arrays(y, p, sample_weight=w), tolerance)
    exact, lowered = gains_by_periods(y, p, w, tolerance)
    np.testing.assert_allclose(found.log, exact, atol=1e-12)
    assert (found.lowered >= lowered).all()
    assert (found.lowered & ~lowered).mean() < 0.05  # by no more than rounding


@settings(max_examples=50)
@given(SEEDS, KINDS, st.sampled_from(UNITS))
def test_neither_the_order_of_rows_nor_how_they_came_matters(seed, kind, unit):
    rng = np.random.default_rng(seed)
    y, p = drawn(rng, 40, kind)
    order = rng.permutation(40)
    whole = GAINS[unit](Cells.from_arrays(y, p), 0.01).log
    shuffled = GAINS[unit](Cells.from_arrays(y[order], p[order]), 0.01).log
    parts = GAINS[unit](Cells.from_arrays(y[:13], p[:13]) + Cells.from_arrays(y[13:], p[13:]), 0.01).log
    tally = GAINS[unit](Cells.from_tally(Tally.from_arrays(y, p), Grid(16, 0.0, 1.0)), 0.01).log
    for other in (shuffled, parts, tally):
        np.testing.assert_allclose(other, whole, atol=1e-12)


def test_shares_of_all_bets_add_up_to_one_and_bounds_of_losses_are_right():
    assert RATES * 2 * np.exp(log_shares()).sum() == pytest.approx(1.0, rel=1e-12)
    p = np.random.default_rng(0).random(500)
    assert (np.where(inside(p), p, 0.0).max(axis=1) <= most_lost()[0]).all()
    assert (np.where(inside(p), 1.0 - p, 0.0).max(axis=1) <= most_lost()[1]).all()


# --- Evidence and detector --------------------------------------------------------------------------------------------


def followed(periods, rng, unit, tolerance=0.0, rows=8):
    """Return evidence after some periods, and the gains of each."""
    evidence = Evidence(CutoffQuestion(), unit, tolerance)
    gains = []
    for _ in range(periods):
        y, p = drawn(rng, rows, "levels")
        cells = Cells.from_arrays(y, p)
        gains.append(GAINS[unit](cells, tolerance).log)
        evidence.add(cells)
    return evidence, np.array(gains)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("tolerance", [0.0, 0.05])
def test_evidence_and_detector_are_the_sums_over_starts_intervals_signs_and_rates(unit, tolerance):
    evidence, gains = followed(45, np.random.default_rng(3), unit, tolerance)
    shares = np.exp(log_shares())
    kept = [start for start in range(45) if all(is_kept(start, now) for now in range(start + 1, 46))]
    assert kept == sorted(evidence.starts)
    assert len(kept) < 45
    grown = {start: np.exp(gains[start:].sum(axis=0)) * shares for start in kept}
    total = sum(grown[start].sum() for start in kept)
    weighted = sum(grown[start].sum() / ((start + 1) * (start + 2)) for start in kept)
    for ever in (False, True):
        log_evidence, log_detector, largest = evidence.summary(ever=ever)
        assert math.exp(log_detector) == pytest.approx(total, rel=1e-9)
        assert math.exp(log_evidence) == pytest.approx(weighted, rel=1e-9)
        by_place = {
            (start, sign, interval): value / ((start + 1) * (start + 2) if ever else 1)
            for start in kept
            for (sign, interval), value in np.ndenumerate(grown[start].sum(axis=0))
        }
        most = max(by_place.values())
        assert math.exp(largest.log_evidence) == pytest.approx(most, rel=1e-9)
        place = (largest.start, int(largest.sign < 0.0), largest.interval)
        assert by_place[place] == pytest.approx(most, rel=1e-9)


def test_starts_are_given_up_for_good_and_few_are_followed():
    for start in range(300):
        kept = [is_kept(start, now) for now in range(start + 1, 1200)]
        assert kept == sorted(kept, reverse=True)
        assert all(kept[:7])
    assert all(is_kept(0, now) for now in (1, 100, 10**9))
    for now in (100, 1000, 10_000):
        starts = [start for start in range(now) if is_kept(start, now)]
        assert len(starts) <= 4 * math.log2(now) + 4
        # Whenever a change was, some start that is followed is not much further back than it was.
        for change in range(0, now, 7):
            nearest = max(start for start in starts if start <= change)
            assert change - nearest <= max((now - change) / 3, 0)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_the_lower_limit_is_where_the_average_of_all_stakes_reaches_one_over_delta(unit, tolerance):
    rng = np.random.default_rng(0)
    evidence = Evidence(CutoffQuestion(), unit, tolerance)
    gains = np.zeros((RATES, 2, BEGIN.size))
    units, lowered = 0, np.zeros(gains.shape, dtype=bool)
    for _ in range(150 if unit == "period" else 8):
        p = rng.choice([0.02, 0.3, 0.5], 30)
        y = rng.random(30) < p + 0.25
        evidence.add(Cells.from_arrays(y, p))
        if unit == "row":
            gains += gains_by_rows(y, p, 0.0)
            units += 30
        else:
            more, less = gains_by_periods(y, p, np.ones(30), 0.0)
            gains, lowered, units = gains + more, lowered | less, units + 1
    rates = rates_of(unit)[:, None, None]
    for one_population, left_out in ((True, rates * most_lost() > 0.9), (False, lowered)):
        found = evidence.lower(DELTA, one_population=one_population)
        assert 0.05 < found < 0.5
        logs = np.where(left_out, -np.inf, gains + log_shares() - units * np.log1p(rates * found))
        assert log_sum(logs.ravel()) == pytest.approx(math.log(1.0 / DELTA), abs=0.01 if unit == "row" else 1e-6)
        assert log_sum(logs.ravel()) >= math.log(1.0 / DELTA) - 1e-9
    assert evidence.lower(1e-300, one_population=True) == 0.0
    assert Evidence(CutoffQuestion(), unit, tolerance).lower(DELTA, one_population=True) == 0.0


@given(SEEDS, st.integers(1, 10**7))
def test_mixed_limits_solve_their_equation_and_stay_on_the_safe_side(seed, units):
    rng = np.random.default_rng(seed)
    rates = 0.9 * 2.0 ** -np.arange(9.0)
    weights = np.log(rng.dirichlet(np.ones(9)))
    growth = units * rates * rng.random() * 0.3 + rng.random(9)
    upper = mixed_upper(growth, rates, weights, units, DELTA)
    at_upper = log_sum(weights - growth - units * np.log1p(-rates * upper))
    assert upper == 1.0 or at_upper == pytest.approx(-math.log(DELTA), abs=1e-6 + 1e-9 * units)
    assert upper == 1.0 or at_upper >= -math.log(DELTA) - 1e-9 * units
    lower = mixed_lower(weights + growth, rates, units, DELTA, 0.0)
    at_lower = log_sum(weights + growth - units * np.log1p(rates * lower))
    assert (lower == 0.0 and at_lower < -math.log(DELTA)) or at_lower == pytest.approx(
        -math.log(DELTA), abs=1e-6 + 1e-9 * units
    )


# --- Enumeration ------------------------------------------------------------------------------------------------------


def laws_of_a_period(p, chance, unit):
    """Return all outcomes of a period with their probabilities: independent rows, or rows that share all their luck.

    Each row has the chance given, whatever rows have to do with each other; for rows as units they are independent.
    """
    outcomes = np.array(list(itertools.product([0.0, 1.0], repeat=p.size)))
    independent = np.where(outcomes == 1.0, chance, 1.0 - chance).prod(axis=1)
    if unit == "row":
        return outcomes, [independent]
    cuts = np.unique(np.concatenate([[0.0, 1.0], chance]))
    shared = np.zeros(len(outcomes))
    opposite = np.zeros(len(outcomes))
    for low, high in itertools.pairwise(cuts):
        luck = (low + high) / 2.0
        shared[(outcomes == (luck < chance)).all(axis=1)] += high - low
    turned = np.arange(p.size) % 2 == 1  # every other row has the opposite luck
    cuts = np.unique(np.concatenate([[0.0, 1.0], np.where(turned, 1.0 - chance, chance)]))
    for low, high in itertools.pairwise(cuts):
        luck = np.where(turned, 1.0 - (low + high) / 2.0, (low + high) / 2.0)
        opposite[(outcomes == (luck < chance)).all(axis=1)] += high - low
    return outcomes, [independent, shared, opposite]


FORECASTS = (
    np.array([0.0, 0.03, 1.0]),
    np.array([0.5, 0.5, 0.5]),
    np.array([0.01, 0.02, 0.97, 0.3]),
    np.array([2.0**-12, 0.9999]),
    np.array([0.3, 0.30001, 0.30002]),
)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_no_bet_grows_on_average_while_forecasts_are_off_by_no_more_than_tolerated(unit, tolerance):
    for p in FORECASTS:
        for off in (tolerance, 0.0, -tolerance):
            chance = np.clip(p + off, 0.0, 1.0)
            outcomes, laws = laws_of_a_period(p, chance, unit)
            grown = np.exp([GAINS[unit](Cells.from_arrays(y, p, pos_label=1.0), tolerance).log for y in outcomes])
            for law in laws:
                assert law.sum() == pytest.approx(1.0)
                np.testing.assert_allclose(law @ outcomes, chance, atol=1e-12)
                assert np.tensordot(law, grown, axes=1).max() <= 1.0 + 1e-12


def test_bets_on_rows_do_grow_while_calibrated_rows_share_their_luck():
    p = np.array([0.5, 0.5, 0.5])
    outcomes, (_, shared, _) = laws_of_a_period(p, p, "period")
    grown = np.exp([row_gains(Cells.from_arrays(y, p, pos_label=1.0), 0.0).log for y in outcomes])
    assert np.tensordot(shared, grown, axes=1).max() > 1.5


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("periods", [0, 1, 9, 23])
def test_evidence_is_a_supermartingale_and_the_detector_rises_by_at_most_one_a_period(unit, periods):
    evidence, _ = followed(periods, np.random.default_rng(periods), unit)
    before = (0.0, 0.0)
    if periods:
        log_evidence, log_detector, _ = evidence.summary(ever=True)
        before = math.exp(log_evidence), math.exp(log_detector)
    for p in FORECASTS[:3]:
        outcomes, laws = laws_of_a_period(p, p, unit)
        after = []
        for y in outcomes:
            follow = replace(evidence, starts=dict(evidence.starts))
            follow.add(Cells.from_arrays(y, p, pos_label=1.0))
            log_evidence, log_detector, _ = follow.summary(ever=True)
            after.append((math.exp(log_evidence), math.exp(log_detector)))
        for law in laws:
            mean_evidence, mean_detector = law @ np.array(after)
            # Starts to come have the rest of the weights, 1/(n + 1) in all.
            rest, rest_after = 1.0 / (periods + 1.0), 1.0 / (periods + 2.0)
            assert mean_evidence + rest_after <= before[0] + rest + 1e-12
            assert mean_detector <= before[1] + 1.0 + 1e-12


# Two kinds of periods, drawn at random: in most of them a tenth of the rows has the forecast .6 and they all are
# events; in a few all rows have it and none is. On average the forecast .6 is right, and so is 0, of no event.
RARELY = 0.0625
OFTEN = Cells.from_arrays([0.0] * 9 + [1.0], [0.0] * 9 + [0.6])
SELDOM = Cells.from_arrays([0.0] * 10, [0.6] * 10, pos_label=1.0)


def test_bets_that_count_for_one_population_do_not_grow_where_periods_differ_in_their_forecasts():
    grown = (1.0 - RARELY) * np.exp(period_gains(OFTEN, 0.0).log) + RARELY * np.exp(period_gains(SELDOM, 0.0).log)
    counted = rates_of("period")[:, None, None] * most_lost() <= 0.9
    assert grown[counted].max() <= 1.0 + 1e-12
    # The others are bets given the forecasts of each period, to which no period here is right.
    assert grown[~counted].max() > 1.2
    assert (counted | (rates_of("period")[:, None, None] > 0.9)).all()


def test_the_lower_limit_of_one_population_holds_where_bets_given_forecasts_would_exclude_the_truth():
    evidence = Evidence(CutoffQuestion(), "period", 0.0)
    for _ in range(20):
        evidence.add(OFTEN)
    assert (1.0 - RARELY) ** 20 > 0.25  # so often only periods of the first kind come, and the error is 0
    assert evidence.lower(DELTA, one_population=True) == 0.0
    assert evidence.lower(DELTA, one_population=False) > 0.0


# --- Upper limits -----------------------------------------------------------------------------------------------------


def runs_of(p):
    """Return every interval of distinct forecasts, as rows inside."""
    levels = np.unique(p)
    for low, high in itertools.combinations_with_replacement(range(levels.size), 2):
        yield (levels[low] <= p) & (p <= levels[high])


@settings(max_examples=50)
@given(SEEDS, KINDS, st.sampled_from((3, 12, 16)))
def test_the_most_that_bets_on_rows_grew_is_never_below_that_of_any_interval(seed, kind, bits):
    y, p = drawn(np.random.default_rng(seed), 12, kind)
    cells = Cells.from_arrays(y, p, bits=bits)
    rates = np.array([0.9, 0.3, 0.1, 0.02])
    alone = len(cells) == np.unique(p).size
    for sign in SIGNS:
        found = _most_grown(cells, rates, sign)
        for rate, bound in zip(rates, found, strict=True):
            growth = -np.log1p(-rate * sign * (y - p))
            most = max(0.0, *(growth[rows].sum() for rows in runs_of(p)))
            assert bound >= most - 1e-12
            if alone and kind != "fractions":
                assert bound <= most + 12 * 0.8 * rate**5 + 1e-12 or rate > 0.12
                assert bound <= most + 1e-12 or rate <= 0.12


@settings(max_examples=50)
@given(SEEDS, st.integers(1, 400))
def test_the_upper_limit_of_rows_is_at_least_that_of_all_rates_and_of_one_look_at_the_same_weight(seed, rows):
    rng = np.random.default_rng(seed)
    p = rng.choice([0.1, 0.3, 0.8], rows)
    tally = Tally.from_arrays(rng.random(rows) < p, p, pos_label=1)
    cells = Cells.from_tally(tally, Grid(16, 0.0, 1.0))
    found = upper_of_rows(cells, DELTA)
    estimate = np.ptp(np.append(0.0, np.cumsum(tally.residual))) / rows
    assert found >= estimate
    assert found == 1.0 or found >= -math.expm1(math.log(DELTA) / rows)


def period_data(seed, kind, periods, rows, weighted=False):
    rng = np.random.default_rng(seed)
    for _ in range(periods):
        count = int(rng.integers(1, rows + 1))
        y, p = drawn(rng, count, kind)
        if kind == "any":
            y = (np.where(rng.random(count) < 0.5, rng.random(), rng.random(count)) < p).astype(float)
        yield y, p, (rng.choice([1.0, 4.0], count) if weighted else np.ones(count))


@settings(max_examples=50)
@given(SEEDS, KINDS, st.booleans(), st.sampled_from([(16,), (12,), (16, 12), (12, 14, 16)]))
def test_the_most_that_bets_on_periods_grew_is_never_below_that_of_any_interval(seed, kind, weighted, bits):
    sums, data = PeriodSums(), list(period_data(seed, kind, 7, 6, weighted))
    for number, (y, p, w) in enumerate(data):
        sums.add(Cells.from_arrays(y, p, sample_weight=w, bits=bits[number % len(bits)]))
    grown = _Growth(sums)
    place = np.concatenate([np.full(y.size, number) for number, (y, _, _) in enumerate(data)])
    forecast = np.concatenate([p for _, p, _ in data])
    share = np.concatenate([w * (y - p) / w.sum() for y, p, w in data])
    means = np.array([np.bincount(place[rows], weights=share[rows], minlength=7) for rows in runs_of(forecast)])
    for side, sign in enumerate(SIGNS):
        assert (sign * means <= sums.reach[side] + 1e-12).all()
        for rate in (0.9, 0.2, 0.01):
            rest = (-math.log1p(-rate) - rate) / rate**2
            bound = grown.most(sign * rate, rate**2 * rest)
            assert bound >= (rate * sign * means + rate**2 * rest * means**2).sum(axis=1).max() - 1e-12
            assert bound >= -np.log1p(-rate * sign * means).sum(axis=1).min() - 1e-12


def test_the_bound_of_periods_is_exact_where_few_forecasts_have_many_rows():
    rng = np.random.default_rng(5)
    levels = np.array([0.0, 0.03, 0.25, 0.5, 0.7, 1.0])
    sums, means = PeriodSums(), []
    for _ in range(30):
        p = rng.choice(levels, 100)
        y = rng.random(100) < 0.2 + 0.6 * rng.random()
        sums.add(Cells.from_arrays(y, p))
        at = np.array([(y - p)[p == level].sum() / 100 for level in levels])
        means.append([at[low : high + 1].sum() for low, high in itertools.combinations_with_replacement(range(6), 2)])
    by_interval = np.array(means).T
    for rate in (0.9, 0.1):
        exact = (rate * by_interval + 0.7 * by_interval**2).sum(axis=1).max()
        assert _Growth(sums).most(rate, 0.7) == pytest.approx(exact, rel=1e-9)


@settings(max_examples=30)
@given(SEEDS, KINDS)
def test_upper_limits_of_periods_are_never_below_those_of_every_interval_at_the_best_single_rate(seed, kind):
    """The bound is held against its definition: all intervals, logarithms as they are, all rates and weights."""
    sums, data = PeriodSums(), list(period_data(seed, kind, 12, 5))
    for y, p, _ in data:
        sums.add(Cells.from_arrays(y, p))
    found = sums.upper(12, DELTA)
    forecast = np.concatenate([p for _, p, _ in data])
    place = np.concatenate([np.full(y.size, number) for number, (y, _, _) in enumerate(data)])
    share = np.concatenate([(y - p) / y.size for y, p, _ in data])
    means = np.array([np.bincount(place[rows], weights=share[rows], minlength=12) for rows in runs_of(forecast)])
    rates = 0.9 * 2.0 ** (-np.arange(41.0) / 2.0)
    growth = [
        max(0.0, *(-np.log1p(-rate * sign * means).sum(axis=1).max() for sign in SIGNS)) for rate in rates.tolist()
    ]
    weights = -np.log(np.arange(1.0, 42.0) * np.arange(2.0, 43.0))
    assert np.exp(weights).sum() < 1.0
    assert found >= mixed_upper(np.array(growth), rates, weights, 12, DELTA) - 1e-9


@pytest.mark.parametrize("unit", UNITS)
def test_the_upper_limit_under_any_dependence_is_that_of_every_interval_at_its_own_share(unit):
    evidence, gains = followed(40, np.random.default_rng(8), unit, 0.02, rows=20)
    rates = rates_of(unit)
    units = 40 * 20 if unit == "row" else 40
    lost = -(gains.sum(axis=0) + units * np.log1p(rates * 0.02)[:, None, None])
    usable = rates <= 0.9
    limits = []
    for sign, interval in itertools.product((0, 1), range(BEGIN.size)):
        share = math.exp(log_shares()[interval]) * RATES
        growth = lost[usable, sign, interval]
        weights = np.full(usable.sum(), -math.log(RATES))
        limits.append(mixed_upper(growth, rates[usable], weights, units, DELTA * share))
    found = upper_in_family(evidence, DELTA)
    assert found >= max(limits) - 1e-9
    assert found <= 1.3 * max(limits)


# --- Monitors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"unit": "row"}, {"assume": "anything"}, {"unit": "row", "assume": "anything"}]
)
def test_how_rows_of_a_period_are_split_and_ordered_changes_nothing(options):
    rng = np.random.default_rng(0)
    whole, parts = Monitor(max_error=0.1, **options), Monitor(max_error=0.1, **options)
    for day in range(12):
        p = rng.random(60)
        y = rng.random(60) < p
        whole.update(y, p, period=day)
        order = rng.permutation(60)
        for part in np.array_split(order, 3):
            parts.update(y[part], p[part], period=day)
        if day % 4 == 3:
            assert parts.read() == whole.read()


def test_one_change_of_the_forecaster_is_no_sign_that_rows_of_a_period_belong_together():
    rng = np.random.default_rng(0)
    far = 0
    for _ in range(40):
        spread = Spread()
        for day in range(25):
            p = rng.random(200)
            spread.add(Cells.from_arrays(rng.random(200) < np.clip(p + (day >= 12) / 4.0, 0.0, 1.0), p))
        far += spread.is_far
    assert far <= 2
    shared = Spread()
    for shock in rng.normal(0.0, 0.1, 25).tolist():
        p = rng.uniform(0.3, 0.7, 200)
        shared.add(Cells.from_arrays(rng.random(200) < np.clip(p + shock, 0.0, 1.0), p))
    assert shared.is_far
