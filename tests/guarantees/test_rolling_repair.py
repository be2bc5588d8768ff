"""What a rolling repair promises, simulated: it follows a lasting change, does little harm, and knows when to stop.

None of it is a theorem: which window is right depends on how the world changes. These are the amounts that the
documentation states, held over seeded streams.
"""

import numpy as np
import pytest

from calibrant import RollingRecalibrator
from calibrant.core.logistic import expit, logit
from calibrant.monitors import rolling as rolling_module

pytestmark = pytest.mark.usefixtures("without_limits")
ROWS = 400
WINDOW = 8
KINDS = ("isotonic", "platt", "guarded")


def stream(seed, shifts, kind="isotonic", unit="row"):
    """What became of the forecasts of periods in which the logit of the chance is off by so much."""
    rng = np.random.default_rng(seed)
    rolling = RollingRecalibrator(kind, window=WINDOW, max_error=0.05, unit=unit)
    for period, shift in enumerate(shifts):
        y_prob = expit(rng.normal(-0.5, 1.2, ROWS))
        y_true = rng.random(ROWS) < expit(logit(y_prob) + shift)
        rolling.update(y_true, y_prob, period=period)
    return rolling, rolling.read()


def mean_of(found, name, begin, end):
    """A column of the history, averaged over streams and periods."""
    return float(np.mean([rolling.history[name][begin:end].mean() for rolling, _ in found]))


@pytest.mark.parametrize("kind", KINDS)
def test_calibrated_forecasts_are_made_worse_by_little(kind):
    """By the Brier score at most 0.002 with 3,200 rows in the window, and without an alarm or the brake."""
    found = [stream(seed, [0.0] * 20, kind) for seed in range(3)]
    harm = mean_of(found, "brier_after", WINDOW, 20) - mean_of(found, "brier_before", WINDOW, 20)
    assert harm <= 0.002
    assert mean_of(found, "cutoff_after", WINDOW, 20) - mean_of(found, "cutoff_before", WINDOW, 20) <= 0.006
    assert sum(reading.brakes for _, reading in found) == 0
    assert sum(len(reading.alarms) for _, reading in found) == 0


@pytest.mark.parametrize(("unit", "shift"), [("row", 0.5), ("row", 2.0), ("period", -1.0)])
def test_after_a_lasting_change_forecasts_recover_within_the_window(unit, shift):
    """Whether or not it is noticed: then they are as good as those repaired since long ago."""
    change = 12
    found = [stream(seed, [0.0] * change + [shift] * (2 * WINDOW), unit=unit) for seed in range(3)]
    steady = [stream(seed, [shift] * (change + 2 * WINDOW), unit=unit) for seed in range(3)]
    begin, end = change + WINDOW, change + 2 * WINDOW
    assert mean_of(found, "brier_after", begin, end) <= mean_of(steady, "brier_after", begin, end) + 0.001
    assert mean_of(found, "cutoff_after", begin, end) <= mean_of(steady, "cutoff_after", begin, end) + 0.004
    assert mean_of(found, "brier_after", begin, end) < mean_of(found, "brier_before", begin, end)


def test_an_alarm_makes_the_recovery_quicker_than_the_window_alone():
    change = 12
    found = {
        unit: [stream(seed, [0.0] * change + [1.5] * WINDOW, unit=unit) for seed in range(3)]
        for unit in ("row", "period")
    }
    assert all(reading.alarms for _, reading in found["row"])
    assert not any(reading.alarms for _, reading in found["period"])  # the window follows before periods tell
    assert not any(reading.brakes for _, reading in found["row"])
    error = {unit: mean_of(each, "cutoff_after", change + 3, change + WINDOW) for unit, each in found.items()}
    assert error["row"] < 0.75 * error["period"]


@pytest.mark.parametrize("every", [2, 3])
def test_the_brake_is_applied_where_the_world_turns_faster_than_the_window(every, monkeypatch):
    """Each change makes the map of the periods before it wrong: half of the harm or more is prevented."""
    shifts = [1.5 if period // every % 2 else -1.5 for period in range(40)]
    found = [stream(seed, shifts) for seed in range(2)]
    assert all(reading.brakes >= 1 for _, reading in found)
    assert np.mean([(rolling.history["status"] == "braking").mean() for rolling, _ in found]) >= 0.6
    monkeypatch.setattr(rolling_module, "ALARMS", 10**9)
    free = [stream(seed, shifts) for seed in range(2)]
    harm, unbraked = (
        mean_of(each, "brier_after", 4, 40) - mean_of(each, "brier_before", 4, 40) for each in (found, free)
    )
    assert harm <= 0.5 * unbraked
