"""What a reading says: its first line has the verdict and, where it is void, the reason; then comes what to do."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from monitor_cases import UNITS, Rows, streamed

from calibrant import InputError, RollingRecalibrator, certify
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
    assert lines[1].startswith(
        "Caution: Without any forecast, the better of acting always and acting never loses at most "
    )
    assert lines[2].startswith("No alarm: the evidence of savings above 0 per case is ")
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


# --- What would mislead whoever reads the verdict alone ---------------------------------------------------------------


def day_of(kind: str, day: int, count: int = 400) -> Rows:
    """Return rows of a day: sound ones, those of rare events, or with a mistake in them."""
    rng = np.random.default_rng([day, count])
    y_prob = rng.integers(0, 257, count) / 256.0 * (0.02 if kind == "rare" else 1.0)
    y_true = (rng.random(count) < y_prob).astype(np.int64)
    if kind == "inverted":
        y_prob = 1.0 - y_prob
    elif kind == "hard":
        y_prob = np.round(y_prob)
    elif kind == "one class":
        y_true = np.ones(count, dtype=np.int64)
    return y_true, y_prob


def monitored(kind: str, unit: Any, days: range = range(10), **options: Any) -> Monitor:
    monitor = Monitor(**{"max_error": 0.05, "unit": unit, **options})
    for day in days:
        monitor.update(*day_of(kind, day), period=day)
    return monitor


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    ("kind", "cautions", "hints"),
    [
        ("sound", [], []),
        ("rare", ["wide_limit"], []),
        ("inverted", [], ["other_class"]),
        ("hard", [], ["hard_predictions"]),
        ("one class", ["one_class_only"], ["one_class"]),
    ],
)
def test_a_stream_is_cautioned_about_like_rows(kind, cautions, hints, unit):
    monitor = monitored(kind, unit)
    reading = monitor.read()
    rows = [np.concatenate(column) for column in zip(*(day_of(kind, day) for day in range(10)), strict=True)]
    certificate = certify(*rows, max_error=0.05)
    assert [getattr(each, "code", "") for each in reading.cautions] == cautions
    assert [getattr(each, "code", "") for each in certificate.cautions] == cautions
    assert [each for each in reading.notes if getattr(each, "code", "")] == list(certificate.notes)
    assert [getattr(each, "code", "") for each in certificate.notes] == hints
    for words in (*reading.cautions, *certificate.notes):
        assert words in str(reading)
    again = Monitor.from_json(monitor.to_json()).read()
    assert (again.cautions, again.notes) == (reading.cautions, reading.notes)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", ["rare", "inverted", "hard", "one class"])
def test_what_was_said_of_the_whole_is_said_of_parts_that_were_kept_or_joined(kind, unit):
    whole = monitored(kind, unit).read()
    first = monitored(kind, unit, range(5))
    first.read()
    resumed = Monitor.from_json(first.to_json())
    for day in range(5, 10):
        resumed.update(*day_of(kind, day), period=day)
    joined = monitored(kind, unit, range(7)) + monitored(kind, unit, range(7, 10))
    for monitor in (resumed, joined):
        assert monitor.read().cautions == whole.cautions
        assert monitor.read().notes == whole.notes
    assert whole.cautions or whole.notes


def test_the_limit_that_a_caution_names_is_one_that_a_monitor_takes():
    (caution,) = monitored("rare", "row").read().cautions
    assert "relative_to" not in caution
    limit = float(caution.split("max_error=")[1].rstrip("."))
    assert monitored("rare", "row", max_error=limit).read().cautions == ()


@pytest.mark.parametrize("unit", UNITS)
def test_a_sound_stream_is_not_cautioned_about_while_its_rows_are_few(unit):
    for seed in range(50):
        monitor = Monitor(max_error=0.05, unit=unit)
        for day in range(6):
            rng = np.random.default_rng([seed, day])
            y_prob = rng.beta(2.0, 6.0, 5)
            monitor.update(rng.random(5) < y_prob, y_prob, period=day)
            assert monitor.read().cautions == ()


def test_cautions_of_segments_name_them_and_a_rolling_repair_takes_notice_of_mistakes():
    monitors = Monitors(max_error=0.05, unit="row")
    rolling = RollingRecalibrator(window=3, max_error=0.05)
    for day in range(5):
        monitors.update(*day_of("sound", day), segment="east", period=day)
        monitors.update(*day_of("rare", day), segment="west", period=day)
        rolling.update(*day_of("inverted", day), period=day)
    said = [line for line in str(monitors.read()).splitlines() if line.startswith("Caution: ")]
    assert [line.partition(": F")[0] for line in said] == ["Caution: In segment west"]
    assert "perhaps these are probabilities of the other class" in str(rolling.read())


def test_only_a_monitor_is_drawn():
    several: Any = Monitors(max_error=0.1)
    with pytest.raises(InputError, match=r"monitor is a Monitors, not a Monitor; of Monitors pass that of one segment"):
        MonitorHistory.from_monitor(several)
