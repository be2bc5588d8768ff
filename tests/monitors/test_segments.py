"""Many segments: each watched as if alone, flagged together at a known rate of false discoveries."""

import dataclasses
import inspect
import itertools
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from monitor_cases import UNITS, rows_of

from calibrant import Cells, InputError, Monitor, Monitors, Tally, scan
from calibrant.monitors import SegmentReadings
from calibrant.monitors.results import flagged_among


def fresh(**options):
    return Monitors(**{"max_error": 0.2, **options})


def stream(periods=5, seed=0, count=60):
    """Rows of three segments, period by period; one of them has none in every second period."""
    for period in range(1, periods + 1):
        y_true, y_prob = rows_of(100 * seed + period, count)
        segment = np.array(["east", "north", "west"])[np.arange(count) % (3 if period % 2 else 2)]
        yield period, y_true, y_prob, segment


# --- Which segments are flagged ---------------------------------------------------------------------------------------


def by_brute_force(evidence, rate):
    """The largest set all of whose members have as much evidence as its size asks for."""
    for size in range(len(evidence), 0, -1):
        for chosen in itertools.combinations(range(len(evidence)), size):
            if all(evidence[each] >= len(evidence) / (rate * size) for each in chosen):
                return [each in chosen for each in range(len(evidence))]
    return [False] * len(evidence)


@given(
    evidence=st.lists(st.sampled_from([0.0, 1.0, 3.0, 17.0, 21.0, 40.0, 41.0, 70.0, 81.0, 200.0, 1e260]), max_size=7),
    rate=st.sampled_from([0.05, 0.1, 0.25]),
)
def test_flags_are_those_of_brute_force(evidence, rate):
    assert flagged_among(evidence, rate) == by_brute_force(evidence, rate)


def test_evidence_that_is_just_enough_counts():
    assert flagged_among([40.0, 19.0], 0.05) == [True, False]
    assert flagged_among([39.0, 19.0], 0.05) == [False, False]
    assert flagged_among([20.0, 20.0], 0.05) == [True, True]


@pytest.mark.parametrize("together", [False, True], ids=["independent", "dependent"])
@pytest.mark.parametrize("chance", [0.02, 0.005, 0.001])
def test_the_worst_evidence_there_can_be_keeps_the_rate_of_false_discoveries(together, chance):
    """Segments that are fine have evidence of mean 1, all of it on rare occasions; four others have any."""
    rng = np.random.default_rng(3)
    shares = []
    for _ in range(4000):
        luck = np.full(8, rng.random()) if together else rng.random(8)
        evidence = np.concatenate([np.where(luck < chance, 1.0 / chance, 0.0), np.exp(rng.normal(4.0, 3.0, 4))])
        flagged = np.array(flagged_among(evidence.tolist(), 0.05))
        shares.append(flagged[:8].sum() / max(flagged.sum(), 1))
    assert np.mean(shares) <= 0.05 + 3.0 * np.std(shares) / np.sqrt(4000)
    assert together or chance == 0.001 or np.mean(shares) > 0.002  # it does happen


def mistaken(flagged, fine):
    """The share of segments among those flagged that are fine: the first ones."""
    return sum(each < fine for each in flagged) / max(len(flagged), 1)


@pytest.mark.usefixtures("without_limits")
@pytest.mark.parametrize(
    ("options", "periods", "off", "dependent"),
    [
        ({"unit": "row"}, 4, np.sqrt, False),
        ({"unit": "row", "tolerance": 0.02}, 4, np.sqrt, True),
        ({}, 20, np.ones_like, True),
    ],
    ids=["rows", "tolerant", "defaults"],
)
def test_few_of_the_segments_flagged_are_flagged_by_mistake(options, periods, off, dependent):
    """Half of the segments are off. Who stops at the first flag, or never, meets few mistakes."""
    rng = np.random.default_rng(12)
    runs, half, rows = 240 // periods, 2, 60
    at_first, at_last, found = [], [], []
    for _ in range(runs):
        monitors = Monitors(max_error=0.1, **options)
        flags: list[tuple[Any, ...]] = []
        for period in range(1, periods + 1):
            p, luck = (
                np.tile(rng.random(rows), 2 * half) if dependent else rng.random(2 * half * rows) for _ in range(2)
            )
            segment = np.repeat(np.arange(2 * half), rows)
            monitors.update(luck < np.where(segment < half, p, off(p)), p, segment=segment, period=period)
            flags.append(monitors.read().flagged)
        at_first.append(mistaken(next((each for each in flags if each), ()), half))
        at_last.append(mistaken(flags[-1], half))
        found.append(sum(each >= half for each in flags[-1]))
    for shares in (at_first, at_last):
        assert np.mean(shares) <= 0.05 + 3.0 * np.std(shares) / np.sqrt(runs)
    assert np.mean(found) > 0.8 * half


# --- Each as if alone -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", UNITS)
def test_each_segment_is_watched_as_if_it_were_alone(unit):
    monitors = fresh(unit=unit)
    alone: dict[Any, Monitor] = {}
    for period, y_true, y_prob, segment in stream():
        monitors.update(y_true, y_prob, segment=segment, period=period)
        readings = monitors.read()
        for label in np.unique(segment).tolist():
            mine = segment == label
            alone.setdefault(label, Monitor(max_error=0.2, unit=unit)).update(y_true[mine], y_prob[mine], period=period)
        assert readings.groups == tuple(sorted(alone))
        assert readings.period == period
        for label, monitor in alone.items():
            assert readings[label] == monitor.read()
    readings = monitors.read()
    assert readings["west"].periods == 3
    assert monitors.segments == ("east", "north", "west")
    assert list(monitors) == ["east", "north", "west"]
    assert len(monitors) == 3
    assert monitors["west"].read() == readings["west"]
    history = monitors.history
    assert (
        history[history["segment"] == "west"]
        .drop(columns="segment")
        .reset_index(drop=True)
        .equals(alone["west"].history)
    )


def test_every_form_of_the_same_rows_says_the_same():
    rows = pd.DataFrame(
        [(y, p, each, period) for period, *columns in stream(3) for y, p, each in zip(*columns, strict=True)],
        columns=["y", "p", "ward", "day"],
    )
    whole, by_day, by_ward, scanned, counted = (fresh() for _ in range(5))
    whole.update(rows["y"], rows["p"], segment=rows["ward"], period=rows["day"])
    for day, some in rows.groupby("day"):
        by_day.update(some["y"], some["p"], segment=some["ward"], period=day)
        with duckdb.connect() as connection:
            connection.register("today", some)
            with scan(connection.sql("select * from today"), y_true="y", y_prob="p", by="ward") as source:
                scanned.update(source, period=day)
    for (ward, day), some in rows.groupby(["ward", "day"]):
        by_ward.update(Tally.from_arrays(some["y"], some["p"]), segment=ward, period=day)
        counted.update(Cells.from_arrays(some["y"], some["p"]), segment=ward, period=day)
    expected = whole.read()
    for monitors in (by_day, by_ward, scanned, counted):
        assert monitors.read() == expected


def test_segments_are_named_by_texts_or_numbers():
    monitors = fresh()
    monitors.update(*rows_of(1), segment=np.arange(40) % 2, period=1)
    assert monitors.read().groups == (0, 1)
    flags = fresh()
    flags.update(*rows_of(1), segment=np.arange(40) % 2 == 0)
    flags.update(*rows_of(2), segment=True)
    assert flags.read().groups == (False, True)
    assert flags.read().period == 2


def refused(monitors, call):
    """The words of an error that leaves monitors as they were."""
    before = monitors.to_json()
    with pytest.raises(InputError) as said:
        call(monitors)
    assert monitors.to_json() == before
    return str(said.value)


def three():
    monitors = fresh(unit="row")
    for period, y_true, y_prob, segment in stream(3):
        monitors.update(y_true, y_prob, segment=segment, period=period)
    monitors.read(through=2)
    return monitors


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda it: it.update(*rows_of(1), period=4), "segment is missing"),
        (lambda it: it.update(*rows_of(1), segment=["a"] * 39, period=4), "segment has 39 values"),
        (lambda it: it.update(*rows_of(1), segment=3, period=4), "segment is 3, and others are like 'east'"),
        (lambda it: it.update(*rows_of(1), segment="south", period=2), "period 2 was read and closed"),
        (lambda it: it.update(*rows_of(1), segment="west", period=2), "period 2 was read and closed"),
        (lambda it: it.update(*rows_of(1), segment="south"), "period is missing, although earlier rows came with it"),
        (
            lambda it: it.update(*list(stream(3))[2][1:3], segment=list(stream(3))[2][3], period=3),
            "a batch of 60 rows just",
        ),
        (lambda it: it.update([0], [1.5], segment="south", period=4), "y_prob[0] is 1.5"),
        (
            lambda it: it.update([0, 1], [0.5, 0.5], segment=["east", "south"], period=4, sample_weight=[1, 2]),
            "sample_weight was given to a monitor whose unit is the row",
        ),
        (
            lambda it: it.update(*rows_of(1, 600), segment=[f"s{each}" for each in range(600)], period=4),
            "segment has 603 different labels so far, and at most 500 segments are watched",
        ),
        (lambda it: it.reset("south"), "segment is 'south', of which no rows have come in"),
        (lambda it: it.read(through="2026-01-31"), "through is '2026-01-31', and periods are like 3"),
        (lambda it: it.observe([2], ids=[1]), "y_true"),
        (lambda it: it.expect([0.5], ids=[1], segment="west", period=2), "period 2 was read and closed"),
        (lambda it: it.expect([0.5, 0.5], ids=[1, 1], segment=["west", "east"], period=4), "ids holds 1 twice"),
    ],
)
def test_a_batch_is_taken_whole_or_refused_whole(call, message):
    assert message in refused(three(), call)


def test_a_batch_of_many_small_segments_is_noticed_when_it_comes_twice():
    monitors = fresh()
    segment = np.repeat(np.arange(10), 4)
    monitors.update(*rows_of(1), segment=segment, period=1)
    again = refused(monitors, lambda it: it.update(*rows_of(1), segment=segment, period=1))
    assert "a batch of 40 rows just like these was added to period 1 before" in again
    monitors.update(*rows_of(2), segment=segment, period=1, batch="b")
    assert "the batch 'b' was added" in refused(
        monitors, lambda it: it.update([1], [0.5], segment=3, period=1, batch="b")
    )


# --- Kept, merged, begun anew -----------------------------------------------------------------------------------------


def test_saved_monitors_go_on_as_if_they_had_not_been():
    whole, kept = fresh(), fresh()
    for period, y_true, y_prob, segment in stream():
        for monitors in (whole, kept):
            monitors.update(y_true, y_prob, segment=segment, period=period)
        if period == 3:
            for monitors in (whole, kept):
                monitors.expect([0.5, 0.25], ids=["a", "b"], segment=["west", "south"], period=6)
                monitors.observe([1, 0], ids=["a", "c"])
        kept = Monitors.from_json(kept.to_json())
        assert kept.read(through=period) == whole.read(through=period)
    assert kept.to_json() == whole.to_json()
    assert kept.history.equals(whole.history)
    with pytest.raises(InputError, match="this text holds calibrant/monitors/1, not calibrant/monitor/1"):
        Monitor.from_json(kept.to_json())


@settings(max_examples=15)
@given(owner=st.lists(st.integers(0, 1), min_size=180, max_size=180), read=st.booleans())
def test_shards_merge_into_the_whole(owner, read):
    whole, one, other = fresh(unit="row"), fresh(unit="row"), fresh(unit="row")
    of_shard = np.array(owner).reshape(3, 60)
    for period, y_true, y_prob, segment in stream(3):
        whole.update(y_true, y_prob, segment=segment, period=period)
        for number, shard in enumerate((one, other)):
            mine = of_shard[period - 1] == number
            if period == 1 and read:
                mine[:] = number == 0
            if mine.any():
                shard.update(y_true[mine], y_prob[mine], segment=segment[mine], period=period, batch=f"{number}")
        if period == 1 and read:
            assert one.read() == whole.read()
    assert (one + other).read() == (other + one).read() == whole.read()


def test_what_cannot_be_merged_is_refused_with_the_reason():
    one, other = three(), three()
    with pytest.raises(InputError, match="both were read, up to 2 and 2"):
        one + other
    with pytest.raises(InputError, match="these monitors ask different questions"):
        one + fresh(unit="row", false_discovery_rate=0.1)
    closed = fresh(unit="row")
    closed.update(*rows_of(8), segment="south", period=1)
    with pytest.raises(InputError, match="1 was read and closed"):
        one + closed
    numbers = fresh(unit="row")
    numbers.update(*rows_of(8), segment=1, period=4)
    with pytest.raises(InputError, match="segment is 1, and others are like 'east'"):
        one + numbers
    with pytest.raises(TypeError):
        one + 1


def test_ids_find_their_segments():
    apart, together = fresh(), fresh()
    y_true, y_prob = rows_of(4)
    segment = np.array(["a", "b"] * 20)
    apart.expect(y_prob, ids=np.arange(40), segment=segment, period=1)
    apart.observe(y_true[::-1], ids=np.arange(40)[::-1])
    apart.observe([1], ids=["unknown"])
    together.update(y_true, y_prob, segment=segment, period=1)
    expected = together.read()
    assert apart.read() == dataclasses.replace(expected, late=1)
    assert "Note: 1 label came that no forecast waited for" in str(apart.read())
    with pytest.raises(InputError, match="1 was read and closed"):
        apart.expect([0.5], ids=[1], segment="a", period=1)
    apart.expect([0.5], ids=[1], segment="a", period=2)
    with pytest.raises(InputError, match="1 has a forecast already"):
        apart.expect([0.5], ids=[1], segment="b", period=2)
    apart.observe([1], ids=[1])
    with pytest.raises(InputError, match="1 was labelled 1 before, and is 0 now"):
        apart.observe([0], ids=[1])


def test_one_segment_or_all_begin_anew():
    monitors = three()
    monitors.reset("west")
    readings = monitors.read()
    assert [readings[label].epoch for label in readings] == [1, 1, 2]
    monitors.reset()
    with pytest.raises(InputError, match="nothing can be read: no rows have come in"):
        monitors.read()
    monitors.update(*rows_of(9), segment="west", period=4)
    assert monitors.read().groups == ("west",)
    assert monitors.read()["west"].epoch == 3


# --- What is said -----------------------------------------------------------------------------------------------------


def test_readings_of_segments_are_said_in_words_and_as_a_frame():
    rng = np.random.default_rng(1)
    monitors = fresh(unit="row")
    for period in range(1, 4):
        y_prob, segment = rng.random(600), np.array(["fine", "off\n"] * 300)
        luck = rng.random(600)
        monitors.update(
            luck < np.where(segment == "fine", y_prob, np.sqrt(y_prob)), y_prob, segment=segment, period=period
        )
    readings = monitors.read()
    assert readings.flagged == ("off\n",)
    said = str(readings)
    assert "Flagged up to 3: off\\n (1 of 2 segments)." in said
    assert "at most 5% are flagged by mistake on average, however often one looks" in said
    assert "which segments there are has nothing to do with outcomes" in said
    frame = readings.frame()
    assert list(frame["flagged"]) == [False, True]
    assert list(frame["segment"]) == ["fine", "off\n"]
    assert SegmentReadings.from_json(readings.to_json()) == readings
    with pytest.raises(ValueError, match=r"flagged of this SegmentReadings is \(\), while the evidence says"):
        dataclasses.replace(readings, flagged=())
    with pytest.raises(KeyError):
        readings["east"]


def test_options_are_checked_like_those_of_one_monitor():
    with pytest.raises(InputError, match="false_discovery_rate"):
        fresh(false_discovery_rate=0.0)
    with pytest.raises(InputError, match="unit"):
        fresh(unit="day")
    assert repr(fresh()) == repr(Monitors(max_error=0.2))
    gap = {"measure": "risk_gap", "threshold": [0.2, 0.4]}
    assert Monitors.from_json(fresh(**gap).to_json()).options() == fresh(**gap).options()
    assert inspect.signature(Monitors).parameters.keys() == {
        *inspect.signature(Monitor).parameters,
        "false_discovery_rate",
    }
    assert fresh().options() == {**Monitor(max_error=0.2).options(), "false_discovery_rate": 0.05}
