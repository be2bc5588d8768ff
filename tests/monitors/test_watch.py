"""Batches go into a monitor once each, periods are read when they are over, and what is kept can be relied on."""

import io
import os
import re
import threading
import time
from typing import Any

import numpy as np
import pytest

from calibrant import Cells, Tally
from calibrant.monitors import Monitor, Watch, new_files
from calibrant.monitors.done import Done, Mark
from calibrant.monitors.incoming import LineStream


def rows(seed=0, size=30):
    rng = np.random.default_rng(seed)
    forecast = rng.random(size)
    return rng.random(size) < forecast, forecast


def monitor(**options):
    return Monitor(max_error=0.1, **options)


def watched_every(every: Any) -> Watch:
    return Watch(monitor(), every=every)


def taken(watch, day, *, seed=None, batch=None):
    """Take a batch of a day, and return the periods that it brings to an end."""
    found = watch.take(*rows(day if seed is None else seed), period=day, batch=batch or f"{day} {seed}")
    return [reading.period for reading in found]


# --- Periods ----------------------------------------------------------------------------------------------------------


def test_a_period_is_read_when_a_later_one_begins_and_at_the_end():
    watch = Watch(monitor())
    assert taken(watch, 1) == []
    assert taken(watch, 1, seed=7) == []
    assert taken(watch, 4) == [1]
    assert watch.reading is not None
    assert watch.reading.rows == 60
    with pytest.raises(ValueError, match="period 1 was read and closed"):
        taken(watch, 1, seed=8)
    assert taken(watch, 3) == [3]  # which had not begun when a later one did, and is over
    assert [reading.period for reading in watch.finish()] == [4]
    assert watch.finish() == ()
    assert watch.batches == 4


def test_a_batch_may_hold_several_periods_in_any_order():
    watch = Watch(monitor())
    y_true, y_prob = rows(size=90)
    found = watch.take(y_true, y_prob, period=np.tile([3, 1, 2], 30), batch="all")
    assert [reading.period for reading in found] == [1, 2]


def test_with_a_maturity_periods_stay_open_until_their_labels_are_due():
    watch = Watch(monitor(maturity=2))
    assert [taken(watch, day) for day in (1, 2, 3, 4, 5)] == [[], [], [], [1], [2]]
    assert [reading.period for reading in watch.finish()] == [3]
    weeks = Watch(monitor(maturity=1), every="week")
    said = [
        [reading.period for reading in weeks.take(*rows(day), time=[f"2026-01-{day:02d}"] * 30, batch=str(day))]
        for day in (5, 12, 18, 19)
    ]
    assert said == [[], [], [], ["2026-01-05"]]


@pytest.mark.parametrize(
    ("every", "times"),
    [
        ("hour", ["2026-01-31T23:10", "2026-02-01T00:20", "2026-02-01T01:00"]),
        ("month", ["2025-12-31", "2026-01-01", "2026-02-28"]),
    ],
)
def test_hours_and_months_follow_each_other(every, times):
    watch = Watch(monitor(maturity=1), every=every)
    counts = [len(watch.take(*rows(k), time=[each] * 30, batch=each)) for k, each in enumerate(times)]
    assert counts == [0, 0, 1]
    assert len(watch.finish()) == 1


def test_without_periods_each_batch_is_one():
    watch = Watch(monitor())
    found = [watch.take(*rows(seed), batch=str(seed))[0].period for seed in range(3)]
    assert found == [1, 2, 3]


def test_totals_are_taken_like_rows():
    watch = Watch(monitor())
    watch.take(Tally.from_arrays(*rows(1)), period=1, batch="a")
    watch.take(Cells.from_arrays(*rows(2)), period=2, batch="b")
    assert [reading.rows for reading in (watch.reading, *watch.finish()) if reading is not None] == [30, 60]


def test_times_need_a_length_of_periods_and_no_names_of_them():
    with pytest.raises(ValueError, match="time needs every="):
        Watch(monitor()).take(*rows(), time=["2026-01-01"] * 30, batch="a")
    with pytest.raises(ValueError, match="time does not go with period="):
        Watch(monitor(), every="day").take(*rows(), time=["2026-01-01"] * 30, period=1, batch="a")
    with pytest.raises(ValueError, match="every must be one of 'hour', 'day', 'week', 'month', got 'year'"):
        watched_every("year")


# --- Batches ----------------------------------------------------------------------------------------------------------


def test_a_batch_that_was_read_is_passed_over_and_one_that_was_refused_is_not():
    watch = Watch(monitor())
    with pytest.raises(ValueError, match="outside"):
        watch.take([1, 0], [0.5, 1.5], period=1, batch="a")
    assert watch.batches == 0
    assert taken(watch, 1, batch="a") == []
    assert taken(watch, 9, batch="a") == []
    assert (watch.batches, watch.monitor.unread) == (1, (1,))


def test_what_cannot_come_twice_needs_no_name():
    watch = Watch(monitor())
    for _ in range(2):
        watch.take(*rows(), period=1, batch="")
    assert (watch.batches, len(watch.done)) == (2, 0)
    assert watch.finish()[0].rows == 60


def test_readings_are_told_before_they_are_kept(tmp_path):
    state = tmp_path / "state"
    seen = []
    watch = Watch(monitor(), state=state, tell=lambda reading: seen.append((reading.period, state.read_bytes())))
    taken(watch, 1)
    before = state.read_bytes()
    taken(watch, 2)
    assert seen == [(1, before)]
    assert state.read_bytes() != before
    watch.close()


def test_the_state_goes_on_exactly(tmp_path):
    whole = Watch(monitor())
    for day in range(1, 7):
        taken(whole, day)
        with Watch(monitor(), state=tmp_path / "state") as watch:
            taken(watch, day)
        with Watch(monitor(), state=tmp_path / "state") as watch:
            assert taken(watch, day) == []
    with Watch(monitor(), state=tmp_path / "state") as watch:
        assert watch.monitor.to_json() == whole.monitor.to_json()
        assert watch.reading == whole.reading
        watch.reset()
    with Watch(monitor(), state=tmp_path / "state") as watch:
        assert (watch.monitor.epoch, watch.reading) == (2, None)


def test_many_batches_that_can_be_read_again_are_not_all_written(tmp_path, monkeypatch):
    written = []
    save = Watch.save

    def noted(watch):
        written.append(watch.batches)
        save(watch)

    monkeypatch.setattr(Watch, "save", noted)
    with Watch(monitor(), state=tmp_path / "each") as watch:
        for day in range(1, 6):
            taken(watch, day)
    assert written == [1, 2, 3, 4, 5]
    written.clear()
    monkeypatch.setattr("calibrant.monitors.watch._PATIENCE", 1e9)
    with Watch(monitor(), state=tmp_path / "some", again=True) as watch:
        for day in range(1, 6):
            taken(watch, day)
        watch.finish()
    assert written == [1, 5]


def test_a_state_is_let_go_when_nobody_uses_it_any_more(tmp_path):
    Watch(monitor(), state=tmp_path / "state")
    with Watch(monitor(), state=tmp_path / "state") as watch:
        with pytest.raises(ValueError, match="another program uses the state"):
            Watch(monitor(), state=tmp_path / "state")
        taken(watch, 1)
    with pytest.raises(ValueError, match=re.escape("max_error is 0.2, and 0.1 in the state")):
        Watch(Monitor(max_error=0.2), state=tmp_path / "state")
    Watch(monitor(), state=tmp_path / "state").close()


def test_a_list_of_batches_is_small_and_damage_is_noticed():
    done = Done()
    for number in range(1000):
        done.add(Mark(f"days/{number}.parquet", (number, 1, 2), "content"))
    text = done.to_text()
    assert len(text) == 24_000
    again = Done.from_text(text)
    assert again == done
    assert "days/999.parquet" in again
    assert "days/1000.parquet" not in again
    for harmed in (text[:-4], "?" + text[1:], text[:-1]):
        with pytest.raises(ValueError, match="the list of batches is"):
            Done.from_text(harmed)


# --- What keeps coming ------------------------------------------------------------------------------------------------


def test_files_come_once_in_order_and_again_when_they_change(tmp_path):
    for name in ("b.csv", "a.csv", ".hidden.csv", "c.csv.part"):
        (tmp_path / name).write_text("1")
    given = []
    for path, folder in new_files([tmp_path], poll=0.01, idle=0.05):
        assert folder == tmp_path
        given.append(path.name)
        if len(given) == 2:
            (tmp_path / "a.csv").write_text("22")
            (tmp_path / "c.csv.part").rename(tmp_path / "c.csv")
    assert given == ["a.csv", "b.csv", "a.csv", "c.csv"]


def test_a_file_that_is_being_written_holds_back_those_after_it(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).touch()
    looks = iter(range(100))

    def wait(_: float) -> None:
        if next(looks) < 5:
            with (tmp_path / "a.csv").open("a") as file:
                file.write("1")

    given = [(path.name, path.stat().st_size) for path, _ in new_files([tmp_path], poll=0.0, idle=0.0, wait=wait)]
    assert given == [("a.csv", 5), ("b.csv", 0)]


def parts(stream, **options):
    return [(part.first, part.last, part.content) for part in LineStream(stream, **options).parts()]


def test_lines_are_given_whole_without_blank_ones_and_with_their_header():
    assert parts(io.BytesIO(b"y,p\n1,2\n\r\n3,4"), header=True) == [(1, 2, b"y,p\n1,2\n3,4\n")]
    assert parts(io.BytesIO(b"rest\n"), begin=b"the ", header=False) == [(1, 1, b"the rest\n")]
    assert parts(io.BytesIO(b""), header=True) == parts(io.BytesIO(b"y,p\n"), header=True) == []


def test_lines_come_when_they_do(monkeypatch):
    monkeypatch.setattr("calibrant.monitors.incoming._PATIENCE_SECONDS", 0.05)
    reading, writing = os.pipe()
    first = threading.Event()

    def send():
        os.write(writing, b"a\nb\nc")
        first.wait(30)
        os.write(writing, b"c\nd\n")
        time.sleep(0.01)
        os.close(writing)

    sender = threading.Thread(target=send)
    sender.start()
    found = []
    with open(reading, "rb") as stream:
        for part in LineStream(stream, header=False).parts():
            found += part.lines
            first.set()
    sender.join()
    assert found == [b"a\n", b"b\n", b"cc\n", b"d\n"]


def test_many_lines_come_in_parts_of_bounded_size(monkeypatch):
    monkeypatch.setattr("calibrant.monitors.incoming._MOST_LINES", 10)
    text = b"".join(b"%d\n" % number for number in range(35))
    found = parts(io.BytesIO(text), header=False)
    assert [(first, last) for first, last, _ in found] == [(1, 10), (11, 20), (21, 30), (31, 35)]
    assert b"".join(content for _, _, content in found) == text


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 35])
def test_lines_that_were_read_are_known_again_however_they_come(count, monkeypatch):
    lines = [b"%d\n" % number for number in range(35)]
    before = LineStream(io.BytesIO(b"".join(lines[:count])), header=False)
    list(before.parts())
    monkeypatch.setattr("calibrant.monitors.incoming._MOST_LINES", 10)
    again = LineStream(io.BytesIO(b"".join(lines)), header=False)
    again.skip(before.count, before.digest)
    rest = [line for part in again.parts() for line in part.lines]
    assert rest == lines[count:]
    assert again.count == 35
    if count:
        other = LineStream(io.BytesIO(b"x\n" + b"".join(lines[1:])), header=False)
        with pytest.raises(ValueError, match="does not begin with the"):
            other.skip(before.count, before.digest)
        short = LineStream(io.BytesIO(b"".join(lines[: count - 1])), header=False)
        with pytest.raises(ValueError, match="does not begin with the"):
            short.skip(before.count, before.digest)


def test_halves_of_lines_know_where_they_stand():
    stream = LineStream(io.BytesIO(b"a\nb\nc\nd\ne\n"), header=False)
    (whole,) = stream.parts()
    first, second = whole.halves()
    assert [(part.first, part.last, part.said()) for part in (first, second)] == [
        (1, 2, "lines 1 to 2"),
        (3, 5, "lines 3 to 5"),
    ]
    assert second.before == first.digest
    assert second.digest == whole.digest == stream.digest
