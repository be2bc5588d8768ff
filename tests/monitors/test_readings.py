"""What a reading says: its first line has the verdict and, where it is void, the reason; then comes what to do."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from monitor_cases import streamed

from calibrant import InputError
from calibrant.cli.voices import SHELL
from calibrant.cli.watching import reading_said
from calibrant.core.voices import speaking
from calibrant.monitors import Alarm, Monitor, MonitorHistory, Monitors, Reading

READING = streamed("row").read()
ALARM = Alarm(period=5, since=3, low=0.25, high=0.5, direction="too low", confirmed=True)


def first_line(reading: Reading) -> str:
    return str(reading).splitlines()[0]


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ("certified", "Certified after 6 periods (240 rows), up to 6: the error is at most 0.2."),
        ("refuted", "Refuted after 6 periods (240 rows), up to 6: the error is larger than 0.2."),
        ("undecided", "Undecided after 6 periods (240 rows), up to 6 whether the error is at most 0.2."),
    ],
)
def test_a_verdict_comes_first_and_its_limits_with_their_confidence(verdict, said):
    line = first_line(replace(READING, verdict=verdict))
    assert line.startswith(f"{said} The Cutoff calibration error of all rows is ")
    assert "with 95% confidence, however often one looks, it is at least " in line
    assert "Next:" not in str(replace(READING, verdict=verdict))


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"alarm": ALARM}, "the alarm at 5 says that forecasts are not calibrated, and what these rows show may not"),
        ({"alarm": ALARM, "tolerance": 0.02}, "the alarm at 5 says that forecasts are off by more than 0.02, and"),
        ({"alarm": ALARM, "measure": "risk_gap"}, "the alarm at 5 says that more than 0 per case can be saved, and"),
        ({"overdispersion": 9.0}, "periods differ 9.00 times as much as independent rows would make them, so that"),
        ({"overdispersion": 9.0, "alarm": ALARM}, "periods differ 9.00 times as much as independent rows would make"),
        ({}, "the lower limit is above an earlier upper one, so that what is to be expected has changed."),
    ],
)
def test_the_reason_of_a_void_verdict_comes_first_and_its_limits_claim_nothing(facts, said):
    reading = replace(READING, verdict="void", **facts)
    line = first_line(reading)
    assert line.startswith(f"Void after 6 periods (240 rows), up to 6: {said}")
    assert "confidence" not in line
    assert line.endswith("are void, too.")
    why = reading.why_void() if "alarm" not in facts or "overdispersion" in facts else "ALARM at 5"
    assert why in reading_said(reading)


def test_limits_that_rest_on_nothing_outlive_an_alarm():
    line = first_line(replace(READING, verdict="void", alarm=ALARM, assume="anything"))
    assert line.startswith("Void")
    assert "with 95% confidence" in line


def test_an_alarm_says_what_to_do_in_the_words_of_who_reads_it():
    reading = replace(READING, verdict="void", alarm=ALARM)
    assert (
        "\nNext: find out what happened about 3, repair the forecasts, and begin anew with reset(). If less than 0.2 "
        "is no reason for an alarm, watch with tolerance=0.2: this alarm is about more than 0.\n"
    ) in str(reading)
    with speaking(SHELL):
        assert "begin anew with --reset. If less than 0.2 is no reason for an alarm, watch with --tolerance 0.2" in str(
            reading
        )
    assert "tolerance=" not in str(replace(reading, tolerance=0.2))


def test_an_alarm_that_means_nothing_says_so_and_gives_no_advice():
    said = str(replace(READING, verdict="void", alarm=ALARM, overdispersion=9.0)).splitlines()
    assert said[1].endswith("That means nothing, for rows of a period share something.")
    assert not any(line.startswith("Next:") for line in said)


def test_savings_are_not_called_errors():
    rng = np.random.default_rng(0)
    y_prob = rng.random(400)
    y_true = rng.random(400) < y_prob
    monitor = Monitor(max_error=0.2, unit="row", measure="risk_gap")
    monitors = Monitors(max_error=0.2, unit="row", measure="risk_gap", tolerance=0.01)
    monitor.update(y_true, y_prob, period=1)
    monitors.update(y_true, y_prob, segment="all", period=1)
    lines = str(monitor.read()).splitlines()
    assert lines[0].startswith(
        "Certified after 1 period (400 rows), up to 1: what re-drawing the line between acting and not saves per case "
        "is at most 0.2. The risk gap of all rows is "
    )
    assert lines[1].startswith("No alarm: the evidence of savings above 0 per case is ")
    assert "A segment is flagged when its evidence of savings above 0.01 per case is enough" in str(monitors.read())


def test_an_error_outside_its_limits_is_explained():
    rng = np.random.default_rng(1)
    monitor = Monitor(max_error=0.05, tolerance=0.05, unit="row")
    for period in range(1, 31):
        y_prob = rng.random(400)
        monitor.update(rng.random(400) < (y_prob if period <= 20 else y_prob**0.75), y_prob, period=period)
    reading = monitor.read()
    assert reading.alarm is None
    assert reading.estimate > reading.upper
    assert any(note.startswith("what was measured so far lies outside the limits") for note in reading.notes)
    assert any(note.endswith("use assume='anything' where that is no reason for one") for note in reading.notes)


def test_only_a_monitor_is_drawn():
    several: Any = Monitors(max_error=0.1)
    with pytest.raises(InputError, match=r"monitor is a Monitors, not a Monitor; of Monitors pass that of one segment"):
        MonitorHistory.from_monitor(several)
