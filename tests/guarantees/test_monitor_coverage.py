"""What monitors promise holds over all looks together: limits, alarms, and what they say where it cannot hold.

Errors of the streams are known. Shares of runs are held against what is promised plus three standard errors. Where a
simpler way would break the promise it must do so on the same streams, or they would show nothing.
"""

import math
import zlib
from typing import Any

import numpy as np
import pytest
from populations import (
    CONSTANT,
    FOUR_LEVELS,
    FRACTIONS,
    NOISY_ATOM,
    RARE_HALVED,
    SHIFTED,
    SPIKE,
    ZERO,
    on_levels,
)
from simulated import replicates

from calibrant import Tally, certify
from calibrant.certificates.betting import planned_adaptive
from calibrant.certificates.samples import Samples
from calibrant.monitors import Monitor
from calibrant.monitors.evidence import Evidence, rates_of
from calibrant.monitors.families import BORDERS, between_borders, log_shares, places
from calibrant.monitors.questions import CutoffQuestion
from calibrant.monitors.uppers import _GRID, _LOG_ROW_WEIGHTS, PeriodSums, upper_of_rows
from calibrant.rows.cells import Cells
from calibrant.rows.grids import Grid

DELTA = 0.05
CELLS = Grid(16, 0.0, 1.0)


def seeded(*key):
    return np.random.default_rng([zlib.crc32(str(part).encode()) for part in key])


def allowed(share, runs):
    """Return how many of the runs may break a promise that a share of them may."""
    return runs * share + 3.0 * math.sqrt(runs * share * (1.0 - share))


def logit_moved(p, by):
    odds = p / (1.0 - p) * math.exp(by)
    return odds / (1.0 + odds)


# --- Limits, read at fifty sizes --------------------------------------------------------------------------------------

EVEN = (np.arange(32) + 0.5) / 32.0
LOW = 0.001 * 1.25 ** np.arange(20)
MASS = np.full(32, 1.0 / 32.0).tolist()
POPULATIONS = (
    on_levels("uniform", EVEN.tolist(), MASS, EVEN.tolist()),
    on_levels("rare, forecast at half their chance", LOW.tolist(), np.full(20, 0.05).tolist(), (2.0 * LOW).tolist()),
    on_levels("shifted", (0.8 * EVEN).tolist(), MASS, (0.8 * EVEN + 0.1).tolist()),
    on_levels("up and down", EVEN.tolist(), MASS, np.clip(EVEN + 0.2 * (-1.0) ** np.arange(32), 0.0, 1.0).tolist()),
    CONSTANT,
    ZERO,
    FOUR_LEVELS,
    NOISY_ATOM,
)
SIZES = np.unique(np.geomspace(10.0, 100_000.0, 50).astype(int))
MANY_SIZES = np.unique(np.geomspace(10.0, 1e6, 150).astype(int))
RUNS = replicates(300)


def streams(population, rng, sizes=SIZES):
    """Return the counts of all runs at each size: rows of the same streams, ever more of them."""
    law = population.law
    mass, chance = law.weight / law.weight.sum(), law.outcome / law.weight
    rows = np.zeros((RUNS, mass.size), dtype=np.int64)
    events = np.zeros_like(rows)
    for more in np.diff(sizes, prepend=0).tolist():
        new = rng.multinomial(more, mass, size=RUNS)
        rows, events = rows + new, events + rng.binomial(new, chance)
        yield Samples(law.forecast, int(rows[0].sum()), rows, events, 0.0)


def grown(samples, rate, sign):
    """Return the sums of ln(1 + x s r) at each forecast, for every run."""
    won, lost = np.log1p(rate * sign * (1.0 - samples.forecast)), np.log1p(-rate * sign * samples.forecast)
    return samples.events * won + (samples.rows - samples.events) * lost


def log_sums(values):
    most = values.max(axis=0)
    return most + np.log(np.exp(values - most).sum(axis=0))


def most_grown(scores):
    """Return the largest sum over neighbours, in each line; 0 for none."""
    total = np.zeros((len(scores), scores.shape[1] + 1))
    np.cumsum(scores, axis=1, out=total[:, 1:])
    return (total - np.minimum.accumulate(total, axis=1)).max(axis=1)


def excludes_from_above(samples, error):
    """Return in which runs the upper limit is below an error, at all rates and intervals."""
    stakes = []
    for rate, weight in zip(_GRID.tolist(), _LOG_ROW_WEIGHTS.tolist(), strict=True):
        growth = np.maximum(*(most_grown(-grown(samples, rate, sign)) for sign in (1.0, -1.0)))
        stakes.append(weight - growth - samples.size * math.log1p(-rate * error))
    return log_sums(np.array(stakes)) >= math.log(1.0 / DELTA)


def log_evidence_against(samples, error):
    """Return the logarithm of the average of all bets of the family, for every run; at most 0 where it cannot matter.

    An average is at most the largest bet, on whatever interval.
    """
    place = places(CELLS.index(samples.forecast), CELLS.bits)[:, None] == np.arange(BORDERS.size - 1)
    gains, allowed_for = [], []
    for rate in rates_of("row").tolist():
        for sign in (1.0, -1.0):
            gains.append(grown(samples, rate, sign) @ place)
            allowed_for.append(samples.size * math.log1p(rate * error))
    most = np.max([most_grown(each) - less for each, less in zip(gains, allowed_for, strict=True)], axis=0)
    found, asked = np.zeros(len(most)), most >= math.log(1.0 / DELTA) - 0.2
    if asked.any():
        logs = np.array([between_borders(each[asked]) for each in gains]) + log_shares()
        logs -= np.array(allowed_for)[:, None, None]
        found[asked] = log_sums(logs.transpose(0, 2, 1).reshape(-1, int(asked.sum())))
    return found


@pytest.mark.parametrize("population", POPULATIONS, ids=str)
def test_limits_of_rows_are_seldom_ever_wrong(population):
    """No upper limit is below an error of 0."""
    upper, lower = np.zeros(RUNS, dtype=bool), np.zeros(RUNS, dtype=bool)
    for samples in streams(population, seeded(population.name)):
        if population.cutoff > 0.0:
            upper |= excludes_from_above(samples, population.cutoff)
        lower |= log_evidence_against(samples, population.cutoff) >= math.log(1.0 / DELTA)
    assert upper.sum() <= allowed(DELTA, RUNS)
    assert lower.sum() <= allowed(DELTA, RUNS)


def test_limits_for_one_look_are_wrong_too_often_where_those_for_all_are_not():
    upper, one_look = np.zeros(RUNS, dtype=bool), np.zeros(RUNS, dtype=bool)
    for samples in streams(CONSTANT, seeded("many looks"), MANY_SIZES):
        upper |= excludes_from_above(samples, CONSTANT.cutoff)
        one_look |= planned_adaptive(samples, DELTA) < CONSTANT.cutoff
    assert upper.sum() <= allowed(DELTA, RUNS)
    assert one_look.sum() > allowed(DELTA, RUNS)


@pytest.mark.parametrize("population", POPULATIONS, ids=str)
def test_what_is_simulated_is_what_monitors_compute(population):
    samples = list(streams(population, seeded("same", population.name)))[30]
    tally = next(samples.tallies())
    cells = Cells.from_tally(tally, CELLS)
    upper = upper_of_rows(cells, DELTA)
    assert excludes_from_above(samples, upper)[0]
    assert not excludes_from_above(samples, 0.97 * upper)[0]
    evidence = Evidence(CutoffQuestion(), "row", 0.0)
    evidence.add(cells)
    lower = evidence.lower(DELTA, one_population=True)
    if lower > 0.0:
        assert log_evidence_against(samples, lower)[0] == pytest.approx(math.log(1.0 / DELTA), abs=0.1)
    else:
        assert log_evidence_against(samples, 0.0)[0] <= math.log(1.0 / DELTA) + 0.1


@pytest.mark.parametrize("population", [SPIKE, FRACTIONS, RARE_HALVED, SHIFTED], ids=str)
def test_monitors_of_rows_are_seldom_ever_wrong(population):
    runs, wrong = 25, np.zeros(2)
    rng = seeded("monitor", population.name)
    for _ in range(runs):
        monitor = Monitor(max_error=0.05, unit="row")
        for more in (20, 30, 50, 100, 200, 400, 700):
            monitor.update(*population.draw(rng, more)[:2])
            monitor.read()
        history = monitor.history
        wrong += [(history["upper"] < population.cutoff).any(), (history["lower"] > population.cutoff).any()]
    assert wrong.max() <= allowed(DELTA, runs)


@pytest.mark.parametrize("rows", [10**2, 10**3, 10**4, 10**5, 10**6, 10**7])
def test_limits_for_all_looks_are_at_most_a_quarter_wider_than_for_one(rows):
    """Calibrated, 1,000 forecasts; more rows than fit into memory come as counts."""
    rng = np.random.default_rng(rows)
    forecast = (np.arange(1000) + 0.5) / 1000
    ratios = []
    for _ in range(4):
        count = rng.multinomial(rows, np.full(1000, 0.001))
        tally = Tally.from_counts(forecast[count > 0], count[count > 0], rng.binomial(count, forecast)[count > 0])
        monitor = Monitor(max_error=0.05, unit="row")
        monitor.update(tally)
        ratios.append(monitor.read().upper / certify(tally, max_error=0.05).upper)
    assert np.mean(ratios) <= 1.25


# --- Periods as units -------------------------------------------------------------------------------------------------


def shared_luck(rng, chance, share):
    """Draw events of which some follow the luck of the day, with the same chances as if they did not."""
    luck = np.where(rng.random(chance.size) < share, rng.random(), rng.random(chance.size))
    return luck < chance


@pytest.mark.parametrize("off", [0.0, 0.15])
def test_limits_of_the_average_period_are_seldom_ever_wrong(off):
    """With every default: periods of few and of many rows, which share their luck; the error is that of each row."""
    runs, wrong = 15, np.zeros(2)
    rng = seeded("periods", off)
    for _ in range(runs):
        monitor = Monitor(max_error=0.05)
        for day in range(25):
            p = rng.choice([0.1, 0.3, 0.5, 0.8], int(rng.choice([5, 40])))
            monitor.update(shared_luck(rng, p + off, 0.5), p, period=day, pos_label=1)
        monitor.read()
        history = monitor.history
        wrong += [(history["upper"] < off).any(), (history["lower"] > off).any()]
    assert wrong.max() <= allowed(DELTA, runs)


def test_limits_hold_where_the_error_of_a_period_goes_with_its_mix_of_forecasts():
    """Most periods have a tenth of their rows at .6, all events; a few have all rows there, none an event.

    Right on average, and wrong in every period: limits of the average period must not take the first kind for all.
    """
    often = Cells.from_arrays([0.0] * 9 + [1.0], [0.0] * 9 + [0.6])
    seldom = Cells.from_arrays([0.0] * 10, [0.6] * 10, pos_label=1.0)
    rng, runs = seeded("mix"), 40
    wrong, wrong_given_forecasts = 0, 0
    for _ in range(runs):
        evidence = Evidence(CutoffQuestion(), "period", 0.0)
        is_wrong, is_wrong_given = False, False
        for _ in range(25):
            evidence.add(seldom if rng.random() < 0.0625 else often)
            is_wrong |= evidence.lower(DELTA, one_population=True) > 0.0
            is_wrong_given |= evidence.lower(DELTA, one_population=False) > 0.0
        wrong, wrong_given_forecasts = wrong + is_wrong, wrong_given_forecasts + is_wrong_given
    assert wrong <= allowed(DELTA, runs)
    assert wrong_given_forecasts > allowed(DELTA, runs)


def test_upper_limits_allow_for_periods_that_were_not_seen_yet():
    """A rare kind of period is all off; while none came, limits are no lower than what stays hidden 5% of the time."""
    sums = PeriodSums()
    usual = Cells.from_arrays([0.0] * 5 + [1.0] * 5, [0.0] * 5 + [1.0] * 5)
    for count in range(1, 121):
        sums.add(usual)
        if count % 20 == 0:
            upper = sums.upper(count, DELTA)
            assert (1.0 - upper) ** count <= DELTA
            assert upper <= 4.5 / count  # the rule of three, 3 for one look


# --- Alarms -----------------------------------------------------------------------------------------------------------

FALSE_ALARMS: dict[str, dict[str, Any]] = {
    "default": {},
    "tolerance": {"tolerance": 0.1},
    "rows": {"unit": "row"},
    "rows, tolerance": {"unit": "row", "tolerance": 0.1},
}


@pytest.mark.usefixtures("without_limits")
@pytest.mark.parametrize("kind", FALSE_ALARMS)
def test_false_alarms_are_as_rare_as_promised(kind):
    """The detector is held against several thresholds at once: it reaches A within N periods with probability N/A."""
    options = FALSE_ALARMS[kind]
    rng, runs, periods = seeded("alarms", kind), 40, 15
    off = options.get("tolerance", 0.0)
    detectors, evidence = [], []
    for _ in range(runs):
        monitor = Monitor(max_error=0.5, **options)
        for day in range(periods):
            p = rng.choice([0.02, 0.1, 0.5, 0.85], 30)
            chance = p + off
            y = rng.random(30) < chance if "unit" in options else shared_luck(rng, chance, 0.4)
            monitor.update(y, p, period=day, pos_label=1)
        reading = monitor.read()
        detectors.append(np.maximum.accumulate(np.array(monitor.history["detector"])))
        evidence.append(max(monitor.history["evidence"]))
        assert (reading.alarm is not None) == (detectors[-1][-1] >= 1000.0)
    reached = np.array(detectors)
    for threshold in (10.0, 20.0, 50.0, 200.0, 1000.0):
        for within in (5, periods):
            share = min(within / threshold, 1.0)
            assert (reached[:, within - 1] >= threshold).sum() <= allowed(share, runs)
    for threshold in (2.0, 5.0, 20.0):
        assert (np.array(evidence) >= threshold).sum() <= allowed(1.0 / threshold, runs)


@pytest.mark.usefixtures("without_limits")
def test_a_shift_of_the_logit_is_found_within_days_and_its_day_is_named():
    rng = seeded("shift")
    delays, named = [], []
    for run in range(10):
        change = 8 + run % 5
        monitor = Monitor(max_error=0.05, unit="row")
        alarm = None
        for day in range(change + 15):
            p = rng.random(1000)
            monitor.update(rng.random(1000) < (p if day < change else logit_moved(p, 0.2)), p, period=day)
            reading = monitor.read()
            alarm = reading.alarm
            assert alarm is None or reading.verdict == "void"
            if alarm is not None:
                break
        assert alarm is not None
        assert alarm.direction == "too low"
        delays.append(int(alarm.period) - change + 1)
        named.append(abs(int(alarm.since) - change))
    assert min(delays) >= 1
    assert np.mean(delays) <= 5.0
    assert np.mean(named) <= 3.0


@pytest.mark.usefixtures("without_limits")
def test_shocks_that_days_share_are_no_alarm_for_periods_and_a_warning_for_rows():
    rng, runs = seeded("shocks"), 8
    for _ in range(runs):
        periods, rows = Monitor(max_error=0.05), Monitor(max_error=0.05, unit="row")
        for day in range(25):
            p = rng.random(200)
            y = shared_luck(rng, p, 0.6)
            periods.update(y, p, period=day)
            rows.update(y, p, period=day)
        calm, warned = periods.read(), rows.read()
        assert calm.alarm is None
        assert calm.verdict != "void"
        assert warned.alarm is not None
        assert any("mean nothing" in note for note in warned.notes)
        assert warned.verdict == "void"


@pytest.mark.usefixtures("without_limits")
@pytest.mark.parametrize("unit", ["period", "row"])
def test_events_that_are_reported_first_are_no_alarm_when_rows_count_by_due_date(unit):
    """Events are reported after a day, all else after five."""
    rng = seeded("arrival", unit)
    for _ in range(4):
        due = Monitor(max_error=0.05, unit=unit, maturity=5)
        arrived = Monitor(max_error=0.05, unit=unit)
        data = {day: rng.uniform(0.2, 0.8, 100) for day in range(18)}
        outcomes = {day: (rng.random(100) < p) * 1 for day, p in data.items()}
        for day, p in data.items():
            due.expect(p, ids=np.arange(100) + 100 * day, period=day)
            reported = []
            for back, event in ((1, 1), (5, 0)):
                if day - back in outcomes:
                    rows = np.flatnonzero(outcomes[day - back] == event)
                    reported.append((np.full(rows.size, event), data[day - back][rows], rows + 100 * (day - back)))
            if not reported:
                continue
            y, forecast, ids = (np.concatenate(column) for column in zip(*reported, strict=True))
            due.observe(y, ids=ids)
            arrived.update(y, forecast, period=day, pos_label=1)
            arrived.read()
            if day >= 5:
                reading = due.read()
                assert reading.missing == 0
                assert reading.alarm is None
        assert due.read().periods == 13
        if unit == "row":  # periods are too few for so little
            assert arrived.read().alarm is not None


# --- Anything ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["row", "period"])
def test_no_drift_makes_limits_of_anything_wrong(unit):
    """The error of the stream comes and goes; limits are of what was to be expected on average up to each look."""
    rng, runs = seeded("drift", unit), 8
    wrong, one_population = np.zeros(2), 0
    rows = 60 if unit == "row" else 20
    for _ in range(runs):
        anything = Monitor(max_error=0.05, unit=unit, assume="anything")
        once = Monitor(max_error=0.05, unit=unit)
        off, forecasts, is_wrong, is_ever = [], [], np.zeros(2, dtype=bool), False
        for day in range(20):
            p = rng.choice([0.25, 0.5, 0.75], rows)
            bias = np.full(rows, 0.25 if day < 10 else -0.2)
            y = rng.random(rows) < p + bias
            off.append(bias)
            forecasts.append(p)
            for monitor in (anything, once):
                monitor.update(y, p, period=day, pos_label=1)
            reading = anything.read()
            expected = [
                np.concatenate(off)[np.isin(np.concatenate(forecasts), inside)].sum() / (rows * (day + 1))
                for inside in ([0.25], [0.5], [0.75], [0.25, 0.5], [0.5, 0.75], [0.25, 0.5, 0.75])
            ]
            largest = np.abs(expected).max()
            is_wrong |= [reading.upper < largest, reading.lower > largest]
            is_ever |= once.read().lower > largest + 1e-12
        wrong += is_wrong
        one_population += is_ever
    assert wrong.max() <= allowed(DELTA, runs)
    if unit == "row":
        assert one_population > allowed(DELTA, runs)
