"""The risk gap as what a monitor watches: bets on lines, against rows one by one, and how often limits are wrong."""

import itertools

import numpy as np
import pytest

import calibrant
from calibrant import InputError, Monitor, Tally
from calibrant.monitors.evidence import rates_of
from calibrant.monitors.families import BEGIN, BORDERS, END
from calibrant.monitors.questions import SavingQuestion, question_of
from calibrant.rows.cells import Cells
from calibrant.rows.savings import EVERY_THRESHOLD, Thresholds

EVERY = SavingQuestion(EVERY_THRESHOLD)


def drawn(seed, rows, bend=0.0):
    rng = np.random.default_rng(seed)
    p = rng.random(rows)
    return (rng.random(rows) < np.clip(p + bend * np.sin(2.0 * np.pi * p), 0.0, 1.0)).astype(float), p


def won_by_hand(y, p, interval):
    """What a row gains if the line moves from the upper end of an interval to the lower one, and the other way."""
    low, high = BORDERS[BEGIN[interval]], BORDERS[END[interval]]
    inside = (p >= low) & ((p < high) | (high == 1.0))
    return np.where(inside, y - high, 0.0), np.where(inside, low - y, 0.0)


@pytest.mark.parametrize("outcomes", ["events", "fractions"])
def test_bets_on_lines_gain_what_they_gain_row_by_row(outcomes):
    y, p = drawn(0, 60)
    y = y if outcomes == "events" else np.clip(y + np.random.default_rng(1).normal(0.0, 0.2, 60), 0.0, 1.0)
    cells = Cells.from_arrays(y, p)
    rows, periods = EVERY.row_gains(cells, 0.01).log, EVERY.period_gains(cells, 0.01)
    for interval in range(0, END.size, 7):
        for side, won in enumerate(won_by_hand(y, p, interval)):
            by_hand = np.log1p(np.outer(rates_of("row"), won)).sum(axis=1) - 60 * np.log1p(0.01 * rates_of("row"))
            assert (rows[:, side, interval] <= by_hand + 1e-9).all()
            if outcomes == "events":
                assert rows[:, side, interval] == pytest.approx(by_hand, abs=1e-9)
            bet = ~periods.lowered[:, side, interval]
            rate = rates_of("period")[bet]
            once = np.log1p(rate * won.mean()) - np.log1p(0.01 * rate)
            assert periods.log[bet, side, interval] == pytest.approx(once, abs=1e-9)


@pytest.mark.parametrize("unit", ["row", "period"])
def test_no_bet_on_a_line_grows_on_average_while_forecasts_are_right(unit):
    p = np.array([0.1, 0.25, 0.3, 0.8])
    grown, law = [], []
    for y in itertools.product([0.0, 1.0], repeat=4):
        cells = Cells.from_arrays(np.array(y), p, pos_label=1.0)
        gains = EVERY.row_gains(cells, 0.0) if unit == "row" else EVERY.period_gains(cells, 0.0)
        grown.append(np.exp(gains.log))
        law.append(np.where(np.array(y) == 1.0, p, 1.0 - p).prod())
    assert np.tensordot(np.array(law), np.array(grown), axes=1).max() <= 1.0 + 1e-12


@pytest.mark.parametrize("threshold", [None, 0.25, (0.1, 0.3)])
def test_limits_contain_the_saving_and_one_look_is_narrower_by_little(threshold):
    y, p = drawn(2, 4000, bend=0.05)
    monitor = Monitor(max_error=0.05, unit="row", measure="risk_gap", threshold=threshold)
    monitor.update(y, p)
    reading = monitor.read()
    measured = calibrant.confidence_interval(y, p, measure="risk_gap", threshold=threshold, alternative="less")
    assert reading.estimate == pytest.approx(measured.estimate, abs=2.0**-14)
    assert reading.lower <= reading.estimate <= reading.upper
    assert measured.upper <= reading.upper * 1.001 <= 1.35 * measured.upper
    assert "risk gap" in str(reading)


def test_thresholds_without_a_border_and_other_measures_are_refused_in_words():
    with pytest.raises(InputError, match=r"covers no sixteenth .*it is 0\.3; .*such as \(0\.25, 0\.3125\)"):
        Monitor(max_error=0.1, measure="risk_gap", threshold=0.3)
    with pytest.raises(InputError, match="totals of a stream do not tell enough"):
        question_of("ece", None)
    with pytest.raises(InputError, match="belongs to measure='risk_gap'"):
        Monitor(max_error=0.1, threshold=0.25)
    with pytest.raises(InputError, match="no upper limit of this measure"):
        Monitor(max_error=0.1, measure="risk_gap", assume="anything")


def test_only_thresholds_that_somebody_has_are_bet_on():
    shares = np.exp(SavingQuestion(Thresholds(0.2, 0.3)).log_shares)
    assert shares.sum() * rates_of("row").size == pytest.approx(1.0)
    at = np.stack([BORDERS[END], BORDERS[BEGIN]])
    assert ((shares > 0.0) == (at == 0.25)).all()


def test_limits_of_savings_are_seldom_ever_wrong_over_all_looks():
    """A forecaster that is too sure of itself, at a dozen looks: one of them wrong in 5% of runs and 3 errors more."""
    rows, runs, looks = 600, 80, 12
    forecasts, chances = np.array([0.1, 0.35, 0.65, 0.9]), np.array([0.25, 0.4, 0.6, 0.75])
    many = np.full(4, 10**6)
    truth = calibrant.measure(Tally.from_counts(forecast=forecasts, rows=many, events=many * chances)).risk_gap
    assert truth == pytest.approx(0.15 / 4.0)
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(runs):
        kind = rng.integers(0, 4, rows)
        y, p = (rng.random(rows) < chances[kind]).astype(float), forecasts[kind]
        monitor = Monitor(max_error=0.05, unit="row", measure="risk_gap")
        for part in np.array_split(np.arange(rows), looks):
            monitor.update(y[part], p[part])
        reading = monitor.read()  # of which the limits are the best of all looks
        wrong += not reading.lower <= truth <= reading.upper
    assert wrong <= runs * 0.05 + 3.0 * np.sqrt(runs * 0.05 * 0.95)
