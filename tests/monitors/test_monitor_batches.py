"""Rows come in: in any form, any order and any parts, under names of periods, once, and all of them or none."""

import datetime as dt
import time

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from monitor_cases import UNITS, rows_of, streamed

from calibrant import Cells, InputError, Tally, scan
from calibrant.monitors import Monitor
from calibrant.monitors.periods import due_after, period_label


def fresh(**options):
    return Monitor(**{"max_error": 0.2, **options})


def refused(monitor, call):
    """The words of an error that leaves a monitor as it was."""
    before = monitor.to_json()
    with pytest.raises(InputError) as said:
        call(monitor)
    assert monitor.to_json() == before
    return str(said.value)


# --- Names of periods -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (3, 3),
        (np.int32(3), 3),
        (-2, -2),
        ("2026-01-31", "2026-01-31"),
        (dt.date(2026, 1, 31), "2026-01-31"),
        (dt.datetime(2026, 1, 31), "2026-01-31"),
        (dt.datetime(2026, 1, 31, 7, 30), "2026-01-31T07:30:00"),
        (pd.Timestamp("2026-01-31"), "2026-01-31"),
        (np.datetime64("2026-01-31"), "2026-01-31"),
        (np.datetime64("2026-01-31T00:00:00.000000000"), "2026-01-31"),
        ("2026-01-31 00:00:00", "2026-01-31"),
        ("2026-01", "2026-01"),
    ],
)
def test_one_period_has_one_name_however_it_is_written(given, name):
    assert period_label(given) == name
    monitor = fresh()
    monitor.update(*rows_of(1), period=given)
    assert monitor.read().period == name


@pytest.mark.parametrize(
    "given", [1.5, True, "", None, np.datetime64("NaT"), pd.NaT, b"a", np.float64(2.0), 2**63, "x" * 201]
)
def test_what_names_no_period_is_refused(given):
    with pytest.raises(InputError, match="which names no period; pass a whole number or a date"):
        period_label(given)


def test_periods_are_closed_in_their_order_not_in_that_of_arrival():
    one, other = fresh(), fresh()
    for period in (3, 1, 2):
        one.update(*rows_of(period), period=period)
    for period in (1, 2, 3):
        other.update(*rows_of(period), period=period)
        other.read()
    assert one.read() == other.read()
    assert one.history.equals(other.history)
    assert list(one.history["period"]) == [1, 2, 3]


def test_dates_are_in_the_order_of_time():
    monitor = fresh()
    monitor.update(*rows_of(1), period=dt.date(2026, 10, 1))
    monitor.update(*rows_of(2), period=dt.date(2026, 9, 30))
    monitor.read()
    assert list(monitor.history["period"]) == ["2026-09-30", "2026-10-01"]
    assert "up to 2026-10-01" in str(monitor.read())


def test_batches_without_a_name_are_periods_of_their_own():
    one, other = fresh(), fresh()
    for number in (1, 2, 3):
        one.update(*rows_of(number))
        other.update(*rows_of(number), period=number)
    assert one.read() == other.read()
    assert one.read().period == 3
    one.update(*rows_of(4))
    assert one.read().period == 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda monitor: monitor.update(*rows_of(9), period=6),
            "period 6 was read and closed (the last one that was is 6",
        ),
        (lambda monitor: monitor.update(*rows_of(9), period=[5, 8] * 20), "period 5 was read and closed"),
        (
            lambda monitor: monitor.update(*rows_of(9), period="2026-01-31"),
            "others are like 7: what comes first is unknown",
        ),
        (lambda monitor: monitor.update(*rows_of(9), period=2.5), "period is 2.5, which names no period"),
        (lambda monitor: monitor.update(*rows_of(9)), "period is missing, although earlier rows came with it"),
        (lambda monitor: monitor.update(*rows_of(9), period=[7]), "period has 1 value"),
        (lambda monitor: monitor.expect([0.5], ids=[1], period=6), "period 6 was read and closed"),
        (lambda monitor: monitor.read(through="2026-01-31"), "through is '2026-01-31', and periods are like 7"),
        (lambda monitor: monitor.update([0, 2], [0.5, 0.5], period=8), "y_true"),
        (lambda monitor: monitor.update([0, 1], [0.5, 1.5], period=8), "y_prob[1] is 1.5, outside [0, 1]"),
        (lambda monitor: monitor.update([0, 1], [0.5, np.nan], period=8), "y_prob[1]"),
        (lambda monitor: monitor.update([], [], period=8), "y_prob is empty"),
        (lambda monitor: monitor.update([0.5, 0.25], [0, 1], period=8), "the arguments look swapped"),
        (lambda monitor: monitor.update(Cells.from_arrays([0], [0.5], bits=11), period=8), "at most 2^-12 wide"),
        (lambda monitor: monitor.update(Tally.from_arrays([0], [0.5]), [0.5], period=8), "together with a Tally"),
        (
            lambda monitor: monitor.update([0, 1], [0.5, 0.5], period=8, sample_weight=[1, 2]),
            "sample_weight was given to a monitor whose unit is the row",
        ),
        (
            lambda monitor: monitor.update([0, 1], [0.5, 0.5], period=[8, 9], sample_weight=[1, 2]),
            "sample_weight was given to a monitor whose unit is the row",
        ),
    ],
)
def test_a_batch_is_taken_whole_or_refused_whole(call, message):
    monitor = streamed("row", 6)
    monitor.update(*rows_of(7), period=7)
    assert message in refused(monitor, call)


def test_a_batch_of_several_periods_is_refused_whole():
    monitor = fresh()
    monitor.update(*rows_of(2), period=2)
    y_true, y_prob = (np.concatenate(both) for both in zip(rows_of(1), rows_of(2), strict=True))
    again = refused(monitor, lambda it: it.update(y_true, y_prob, period=np.repeat([1, 2], 40)))
    assert "a batch of 40 rows just like these was added to period 2 before" in again
    mixed = np.repeat(np.array(["day 9", "day 10"]), 20)
    assert "'day 10' comes before 'day 9'" in refused(fresh(), lambda it: it.update(*rows_of(1), period=mixed))


def test_texts_whose_order_is_not_that_of_their_numbers_are_refused_after_a_reading_too():
    monitor = fresh()
    monitor.update(*rows_of(1), period="day 9")
    monitor.read()
    words = refused(monitor, lambda it: it.update(*rows_of(1), period="day 10"))
    assert "'day 10' comes before 'day 9'; pass numbers or dates" in words


@pytest.mark.parametrize(
    ("first", "second"),
    [("January", "February"), ("Mon", "Tue"), ("12/31/2025", "01/31/2026"), ("31.12.2025", "01.01.2026 10:30")],
)
def test_texts_whose_order_nobody_knows_are_refused_as_soon_as_there_are_two(first, second):
    monitor = fresh()
    monitor.update(*rows_of(1), period=first)
    words = refused(monitor, lambda it: it.update(*rows_of(2), period=second))
    assert "is a text whose place among other periods nobody knows; pass numbers, or dates such as" in words
    monitor.read()
    refused(monitor, lambda it: it.update(*rows_of(2), period=second))


def test_many_periods_come_in_one_batch():
    days = np.repeat(pd.date_range("2020-01-01", periods=1000), 2)
    monitor = fresh()
    started = time.perf_counter()
    monitor.update(*rows_of(1, 2000), period=days)
    assert time.perf_counter() - started < 5.0
    assert monitor.read(through="2020-01-01").rows == 2


def test_periods_whose_later_ones_are_unknown_cannot_wait_for_labels():
    monitor = fresh(maturity=2)
    words = "period is 'spring', of which no later period follows"
    assert words in refused(monitor, lambda it: it.update(*rows_of(1), period="spring"))
    assert words in refused(monitor, lambda it: it.expect([0.5], ids=[1], period="spring"))
    assert due_after("2026-02-27", 2) == "2026-03-01"


# --- Once ------------------------------------------------------------------------------------------------------------


def test_the_same_rows_twice_are_noticed_whatever_their_order():
    monitor = fresh()
    y_true, y_prob = rows_of(1)
    monitor.update(y_true, y_prob, period=1)
    words = refused(monitor, lambda it: it.update(y_true[::-1], y_prob[::-1], period=1))
    assert words.startswith("a batch of 40 rows just like these was added to period 1 before; leave it out")
    monitor.update(y_true, y_prob, period=2)  # another period may look the same
    monitor.update(y_true, y_prob, period=1, batch="others that happen to be the same")
    assert monitor.read().rows == 120


def test_the_same_name_is_taken_once_for_a_period():
    monitor = fresh()
    monitor.update(*rows_of(1), period=1, batch="a.csv")
    assert "the batch 'a.csv' was added to period 1 before" in refused(
        monitor, lambda it: it.update(*rows_of(2), period=1, batch="a.csv")
    )
    monitor.update(*rows_of(2), period=2, batch="a.csv")
    monitor.update(*rows_of(2), period=1, batch="b.csv")
    assert monitor.read().rows == 120


def test_few_rows_may_come_twice():
    monitor = fresh()
    for _ in range(3):
        monitor.update([0, 1], [0.25, 0.5], period=1)
    assert monitor.read().rows == 6


# --- In any form ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", UNITS)
def test_every_form_of_the_same_rows_says_the_same(unit, tmp_path):
    rng = np.random.default_rng(4)
    frames = []
    for day in range(1, 4):
        p = rng.random(200)
        frames.append(pd.DataFrame({"y": (rng.random(200) < p).astype(int), "p": p, "day": day}))
    whole = pd.concat(frames, ignore_index=True)
    whole.to_parquet(tmp_path / "rows.parquet")
    found = {}

    def read(name, update):
        monitor = fresh(unit=unit)
        update(monitor)
        found[name] = monitor.read()
        assert len(monitor.history) == 3

    def each(pass_on):
        def update(monitor):
            for day, frame in enumerate(frames, start=1):
                monitor.update(*pass_on(frame), period=day)

        return update

    def scanned(monitor):
        with duckdb.connect() as connection:
            for day in (1, 2, 3):
                table = connection.sql(f"select * from '{tmp_path / 'rows.parquet'}' where day = {day}")
                with scan(table, y_true="y", y_prob="p") as rows:
                    monitor.update(rows, period=day)

    read("arrays", each(lambda frame: (frame["y"].to_numpy(), frame["p"].to_numpy())))
    read("lists", each(lambda frame: (frame["y"].tolist(), frame["p"].tolist())))
    read("pandas", each(lambda frame: (frame["y"], frame["p"])))
    read("polars", each(lambda frame: (pl.from_pandas(frame)["y"], pl.from_pandas(frame)["p"])))
    read("tally", each(lambda frame: (Tally.from_arrays(frame["y"], frame["p"]),)))
    read("cells", each(lambda frame: (Cells.from_arrays(frame["y"], frame["p"]),)))
    read("finer cells", each(lambda frame: (Cells.from_arrays(frame["y"], frame["p"], bits=20),)))
    read("all at once", lambda monitor: monitor.update(whole["y"], whole["p"], period=whole["day"]))
    read("scan", scanned)
    expected = found["arrays"].to_dict()
    for name, reading in found.items():
        same_up_to_rounding(reading.to_dict(), expected, name)
    for name in ("lists", "pandas", "polars", "tally", "cells", "all at once"):
        assert found[name] == found["arrays"]


def same_up_to_rounding(mine, other, name):
    for key, value in other.items():
        if isinstance(value, float):
            assert mine[key] == pytest.approx(value, rel=1e-9, abs=1e-9), (name, key)
        else:
            assert mine[key] == value, (name, key)


@pytest.mark.parametrize("unit", UNITS)
def test_cells_of_any_width_may_follow_each_other(unit):
    one, other = fresh(unit=unit), fresh(unit=unit)
    for day, bits in enumerate((16, 12, 20, 14), start=1):
        y_true, y_prob = rows_of(day, 200, 2**12)  # which no cell of any width holds together
        one.update(Cells.from_arrays(y_true, y_prob, bits=bits), period=day)
        other.update(y_true, y_prob, period=day)
    same_up_to_rounding(one.read().to_dict(), other.read().to_dict(), "widths")
    assert Monitor.from_json(one.to_json()).read() == one.read()


@settings(max_examples=40)
@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    seed=st.integers(0, 100),
    unit=st.sampled_from(UNITS),
    shuffled=st.randoms(use_true_random=False),
)
def test_order_and_parts_of_a_period_do_not_matter(sizes, seed, unit, shuffled):
    y_true, y_prob = rows_of(seed, sum(sizes))
    whole = fresh(unit=unit)
    whole.update(y_true, y_prob, period=1)
    order = list(range(sum(sizes)))
    shuffled.shuffle(order)
    parts, shards = fresh(unit=unit), [fresh(unit=unit) for _ in sizes]
    for number, rows in enumerate(np.split(np.array(order), np.cumsum(sizes)[:-1])):
        parts.update(y_true[rows], y_prob[rows], period=1, batch=f"part {number}")
        shards[number].update(y_true[rows], y_prob[rows], period=1, batch=f"part {number}")
    expected = whole.read()
    assert parts.read() == expected
    merged = shards[0]
    for shard in shards[1:]:
        merged = merged + shard
    assert merged.read() == expected


@settings(max_examples=20)
@given(owner=st.lists(st.integers(0, 2), min_size=120, max_size=120), unit=st.sampled_from(UNITS), read=st.booleans())
def test_shards_of_several_periods_merge_into_the_whole(owner, unit, read):
    y_true, y_prob = rows_of(11, 120)
    period, of_shard = np.repeat([1, 2, 3], 40), np.array(owner)
    whole, first = fresh(unit=unit), fresh(unit=unit)
    if read:  # one of them may have been read already
        for monitor in (whole, first):
            monitor.update(*rows_of(5), period=0)
            monitor.read()
    whole.update(y_true, y_prob, period=period)
    merged = first
    for shard in range(3):
        part = fresh(unit=unit)
        mine = of_shard == shard
        if mine.any():
            part.update(y_true[mine], y_prob[mine], period=period[mine], batch=f"shard {shard}")
        merged = part + merged if shard % 2 else merged + part
    assert merged.read() == whole.read()
    assert merged.history.equals(whole.history)


# --- What must not be merged ------------------------------------------------------------------------------------------


def shard(period=1, seed=1, **options):
    monitor = fresh(**options)
    monitor.update(*rows_of(seed), period=period)
    return monitor


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: shard(unit="row"), "these monitors ask different questions"),
        (lambda: shard(max_error=0.3), "these monitors ask different questions"),
        (lambda: shard(), "both monitors hold the same batch of rows in period 1"),
        (lambda: shard("2026-01-31"), "what comes first is unknown"),
        (lambda: shard(None, 2), "earlier rows came"),
    ],
)
def test_what_cannot_be_merged_is_refused_with_the_reason(other, message):
    mine, theirs = shard(), other()
    before = mine.to_json(), theirs.to_json()
    for one, two in ((mine, theirs), (theirs, mine)):
        with pytest.raises(InputError) as said:
            one + two
        assert message in str(said.value)
    assert (mine.to_json(), theirs.to_json()) == before


def test_monitors_that_were_both_read_are_not_merged():
    one, other = streamed("period", 2), streamed("period", 3)
    with pytest.raises(InputError, match="both monitors were read, up to 2 and 3: limits and evidence of parts do not"):
        one + other
    with pytest.raises(InputError, match="1 was read and closed"):
        one + shard(1, 8)
    with pytest.raises(TypeError):
        fresh() + 1


def test_ids_that_wait_in_both_shards_are_refused():
    one, other = fresh(), fresh()
    for monitor in (one, other):
        monitor.expect([0.5], ids=["a"], period=1)
    with pytest.raises(InputError, match="'a' has a forecast already"):
        one + other


# --- Beginning anew ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", UNITS)
def test_reset_forgets_what_was_counted_and_keeps_what_was_said(unit):
    monitor = streamed(unit, 4, periods_between_false_alarms=1.0)
    assert monitor.read().alarm is not None
    monitor.update(*rows_of(9), period=7)
    monitor.reset()
    assert monitor.cells is None
    reading = monitor.read()
    new = fresh(unit=unit, periods_between_false_alarms=1.0)
    new.update(*rows_of(9), period=7)
    expected = new.read()
    assert (reading.lower, reading.upper, reading.evidence, reading.rows) == (
        expected.lower,
        expected.upper,
        expected.evidence,
        expected.rows,
    )
    assert reading.epoch == 2
    assert any("probability at least 0.9, and so are the lower ones" in note for note in reading.notes)
    assert list(monitor.history["epoch"]) == [1, 1, 1, 1, 2]
    assert "3 was read and closed" in refused(monitor, lambda it: it.update(*rows_of(8), period=3))


def test_nothing_can_be_read_before_rows_come_in():
    monitor = fresh(maturity=1)
    assert "nothing can be read: no rows have come in" in refused(monitor, lambda it: it.read())
    monitor.update(*rows_of(1), period=1)
    assert "nothing can be read: no period is complete" in refused(monitor, lambda it: it.read())


# --- Labels that come later -------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(late=st.permutations(range(60)), parts=st.integers(1, 5), unit=st.sampled_from(UNITS))
def test_labels_joined_by_id_say_what_rows_together_say(late, parts, unit):
    y_true, y_prob = rows_of(21, 60)
    together, apart = fresh(unit=unit, maturity=1), fresh(unit=unit, maturity=1)
    for period in (1, 2, 3):
        rows = slice(20 * (period - 1), 20 * period)
        together.update(y_true[rows], y_prob[rows], period=period)
        apart.expect(y_prob[rows], ids=np.arange(60)[rows], period=period)
    for some in np.array_split(np.array(late), parts):
        apart.observe(y_true[some], ids=some)
    mine, expected = apart.read(), together.read()
    assert mine.period == expected.period == 2
    assert mine.waiting == 20
    assert (mine.lower, mine.upper, mine.evidence, mine.missing, mine.late) == (
        expected.lower,
        expected.upper,
        expected.evidence,
        0,
        0,
    )


def test_missing_and_late_labels_are_counted_and_said():
    monitor = fresh()
    monitor.expect([0.2, 0.4, 0.6], ids=["a", "b", "c"], period=1)
    monitor.expect([0.3], ids=["d"], period=2)
    monitor.observe([1, 0], ids=["b", "a"])
    monitor.observe([1], ids=["b"])  # the same once more
    reading = monitor.read(through=1)
    assert (reading.rows, reading.missing, reading.late, reading.waiting) == (2, 1, 0, 1)
    assert "1 label missing when due" in reading.notes
    assert any("whether a label is missing has to do with the forecast" in each for each in reading.assumptions)
    monitor.observe([1, 1, 0], ids=["c", "d", "never seen"])
    reading = monitor.read()
    assert (reading.rows, reading.missing, reading.late, reading.waiting) == (3, 1, 2, 0)
    assert any(note.startswith("2 labels came that no forecast waited for") for note in reading.notes)


def test_forecasts_whose_labels_have_other_ids_are_no_lack_of_rows():
    monitor = fresh()
    monitor.expect([0.2, 0.4], ids=[1, 2], period=1)
    monitor.observe([1, 0], ids=["1", "2"])
    with pytest.raises(InputError, match="nothing can be read: 2 forecasts came due without any label"):
        monitor.read()


def test_a_period_without_any_label_is_closed_and_counts_for_nothing():
    monitor = fresh()
    monitor.expect([0.2], ids=[1], period=1)
    monitor.update(*rows_of(1), period=2)
    reading = monitor.read()
    assert (reading.period, reading.periods, reading.missing) == (2, 1, 1)
    assert "1 was read and closed" in refused(monitor, lambda it: it.expect([0.2], ids=[2], period=1))


def test_rows_enter_in_the_order_of_due_dates_not_of_arrival():
    y_true, y_prob = rows_of(5, 80)
    by_due, by_arrival = fresh(maturity=1), fresh()
    for monitor in (by_due, by_arrival):
        for day in (1, 2):
            those = slice(40 * (day - 1), 40 * day)
            monitor.expect(y_prob[those], ids=np.arange(80)[those], period=f"2026-03-0{day}")
    events = np.flatnonzero(y_true)
    by_due.observe(y_true[events], ids=events)  # events are known sooner than what did not happen
    by_arrival.observe(y_true[events], ids=events)
    assert by_arrival.read().estimate > 0.3
    others = np.flatnonzero(y_true == 0)
    by_due.observe(y_true[others], ids=others)
    assert by_due.read().estimate < 0.15
    assert by_due.read().period == "2026-03-01"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda it: it.expect([0.5, 0.5], ids=[1, 1], period=2), "ids holds 1 twice"),
        (lambda it: it.expect([0.5, 0.5], ids=[1], period=2), "ids has 1 values for 2 rows"),
        (lambda it: it.expect([0.5], ids=[1.5], period=2), "ids[0] is 1.5, not a whole number or a text"),
        (lambda it: it.expect([0.5, 0.5], ids=[2, 7], period=2), "7 has a forecast already"),
        (lambda it: it.expect([1.5], ids=[2], period=2), "y_prob[0] is 1.5"),
        (lambda it: it.expect([0.5], ids=[2], period="2026-01-31"), "what comes first is unknown"),
        (lambda it: it.observe([1, 0], ids=[9, 7]), "7 was labelled 1 before, and is 0 now"),
        (lambda it: it.observe([2], ids=[7]), "y_true"),
        (lambda it: it.observe([1], ids=[7, 8]), "ids has 2 values for 1 rows"),
    ],
)
def test_forecasts_and_labels_that_do_not_fit_are_refused_whole(call, message):
    monitor = fresh()
    monitor.expect([0.5, 0.25], ids=[7, 8], period=1)
    monitor.observe([1], ids=[7])
    assert message in refused(monitor, call)


def test_a_batch_that_is_a_period_of_its_own_is_taken_once_also_after_it_was_read():
    monitor = Monitor(max_error=0.1)
    y_prob = np.linspace(0.1, 0.9, 30)
    y_true = np.arange(30) % 2
    monitor.update(y_true, y_prob)
    with pytest.raises(
        InputError, match="30 rows just like these, or of the same name, was added before; leave it out"
    ):
        monitor.update(y_true, y_prob)
    monitor.read()
    again = Monitor.from_json(monitor.to_json())
    for each in (monitor, again):
        with pytest.raises(InputError, match="just like these"):
            each.update(y_true[::-1], y_prob[::-1])
        each.update(y_true, y_prob, batch="others that happen to be alike")
        assert each.read().periods == 2
