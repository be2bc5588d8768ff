"""A monitor that was saved goes on like one that was not, and no damaged text becomes a monitor."""

import base64
import copy
import dataclasses
import json
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from monitor_cases import UNITS, rows_of, streamed

from calibrant import Cells, InputError, Tally
from calibrant.monitors import Monitor, Monitors, storage
from calibrant.monitors.evidence import followed, is_kept
from calibrant.rows.cells import CELL_COLUMNS
from calibrant.rows.grids import Grid

ANY_FORM = {Monitor: "calibrant/monitor/1", Monitors: "calibrant/monitors/1"}


def sealed(state: Any, kind: type[Any] = Monitor) -> str:
    """A state that was changed on purpose, with a checksum that fits."""
    return storage.sealed(ANY_FORM[kind], state)


def state_of(monitor: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(monitor.to_json())["state"]
    return found


# --- A stream goes on -------------------------------------------------------------------------------------------------


def answer(monitor, step):
    """What a monitor does with a step: a reading, nothing, or an error in words."""
    kind, number, seed = step
    y_true, y_prob = rows_of(seed, 25)
    try:
        if kind == "update":
            return monitor.update(y_true, y_prob, period=number)
        if kind == "mixed":
            return monitor.update(y_true, y_prob, period=number + np.arange(25) % 3)
        if kind == "few":
            return monitor.update(y_true[:3], y_prob[:3], period=number, batch=f"part {seed}")
        if kind == "expect":
            return monitor.expect(y_prob[:5], ids=[f"{seed}", *range(seed * 10, seed * 10 + 4)], period=number)
        if kind == "observe":
            return monitor.observe(y_true[:3], ids=[f"{seed}", seed * 10, seed * 10 + 2])
        if kind == "reset":
            return monitor.reset()
        return monitor.read(through=number) if kind == "read some" else monitor.read()
    except InputError as error:
        return str(error)


def steps():
    kinds = ["update"] * 4 + ["mixed", "few", "expect", "expect", "observe", "read", "read", "read some", "reset"]
    return st.lists(st.tuples(st.sampled_from(kinds), st.integers(1, 6), st.integers(0, 3)), min_size=1, max_size=12)


def merged(monitor, options):
    other = Monitor(**options)
    other.update(*rows_of(99, 30), period=9)
    other.expect([0.5, 0.25], ids=["x", "y"], period=10)
    return monitor + other


@settings(max_examples=30)
@given(
    story=steps(),
    saved=st.sets(st.integers(0, 12), min_size=1, max_size=3),
    join=st.integers(0, 24),
    unit=st.sampled_from(UNITS),
    assume=st.sampled_from(["one population", "anything"]),
    maturity=st.integers(0, 1),
    ever=st.booleans(),
    measure=st.sampled_from(["cutoff", "risk_gap"]),
)
def test_saved_at_any_moment_a_monitor_goes_on_as_if_it_had_not_been(
    story, saved, join, unit, assume, maturity, ever, measure
):
    options = {"max_error": 0.2, "unit": unit, "maturity": maturity}
    options |= {"assume": assume} if measure == "cutoff" else {"measure": measure, "threshold": 0.25}
    options["periods_between_false_alarms"] = None if ever else 3
    whole, kept = Monitor(**options), Monitor(**options)
    for number, step in enumerate(story):
        if number == join:
            whole, kept = merged(whole, options), merged(kept, options)
        if number in saved:
            kept = Monitor.from_json(kept.to_json())
        assert answer(kept, step) == answer(whole, step)
    assert kept.to_json() == whole.to_json()
    assert Monitor.from_json(kept.to_json()).history.equals(whole.history)


@pytest.mark.parametrize("unit", UNITS)
def test_weights_fractions_and_dates_are_kept_too(unit):
    rng = np.random.default_rng(3)
    one = Monitor(max_error=0.1, unit=unit)
    for day in ("2026-02-27", "2026-02-28", "2026-03-01"):
        weight = None if unit == "row" else rng.random(30)
        one.update(rng.random(30), rng.random(30), period=day, sample_weight=weight)
        other = Monitor.from_json(one.to_json())
        assert other.read() == one.read()
        one = other
    assert one.options() == Monitor(max_error=0.1, unit=unit).options()


def test_names_of_any_length_and_script_are_kept():
    name = "\U0001d54f" * 200
    monitor = Monitor(max_error=0.1, periods_between_false_alarms=1)
    monitor.update(*rows_of(1), period=name, batch="\ud800\n")
    monitor.expect([0.5], ids=[2**200], period=name)
    monitor.observe([1], ids=[2**200])
    monitor = Monitor.from_json(monitor.to_json())
    assert monitor.read().rows == 41
    assert Monitor.from_json(monitor.to_json()).history.equals(monitor.history)


def test_the_cells_of_a_monitor_are_those_of_parquet_files(tmp_path):
    monitor = streamed("row")
    assert monitor.cells is not None
    monitor.cells.to_parquet(tmp_path / "cells.parquet")
    read = Cells.from_parquet(tmp_path / "cells.parquet")
    again = Monitor.from_json(monitor.to_json()).cells
    assert again is not None
    for name in CELL_COLUMNS:
        assert getattr(read, name).tolist() == getattr(monitor.cells, name).tolist() == getattr(again, name).tolist()
    other = Monitor(max_error=0.2)
    other.update(read, period=7)
    assert other.read().rows == monitor.cells.row_total


@pytest.mark.parametrize("unit", UNITS)
def test_a_billion_rows_and_a_thousand_periods_take_less_than_ten_megabytes(unit, monkeypatch):
    monitor = Monitor(max_error=0.05, unit=unit)
    monitor.update(*rows_of(0), period=0)
    said = monitor.read()

    def looked(self, period):  # what is said takes longer than what is kept, and no more room
        return dataclasses.replace(
            said, period=period, periods=self._evidence.periods, rows=self.cells.row_total, evidence=np.exp(period / 7)
        )

    monkeypatch.setattr(Monitor, "_look", looked)
    rng = np.random.default_rng(0)
    for period in range(1, 999):
        p = rng.integers(0, 64, 50) / 63
        monitor.update(rng.random(50) < p, p, period=period)
        monitor.read()
    forecast = (np.arange(2**17) + rng.random(2**17)) / 2**17
    rows = rng.multinomial(10**9, np.full(forecast.size, 1 / forecast.size))
    counts = Tally.from_counts(forecast, rows, rng.binomial(rows, forecast))
    monitor.update(Cells.from_tally(counts, Grid(16, 0.0, 1.0)), period=1000)
    monitor.read()
    assert monitor.cells is not None
    assert len(monitor.cells) == 2**16
    text = monitor.to_json()
    assert len(text) < 10e6
    again = Monitor.from_json(text)
    assert again._evidence.periods == 1000
    assert again.to_json() == text


def test_the_bets_that_are_followed_are_counted_without_going_through_all_of_them():
    for now in [*range(300), 1000, 4321]:
        assert followed(now) == [start for start in range(now) if is_kept(start, now)]
    assert len(followed(2**53)) < 250


# --- A text that is not what was written ------------------------------------------------------------------------------


def small():
    monitor = streamed("period", 2, maturity=0)
    monitor.update(*rows_of(7), period=5)
    monitor.expect([0.5, 0.25], ids=np.array([1, "b"], dtype=object), period=6)
    monitor.observe([1], ids=[1])
    return monitor


def segments():
    monitors = Monitors(max_error=0.2, unit="row")
    for period in (1, 2):
        monitors.update(*rows_of(period), segment=["a", "b"] * 20, period=period)
        monitors.read()
    monitors.update(*rows_of(3), segment="a", period=3)
    return monitors


@pytest.mark.parametrize("make", [small, segments], ids=["one", "segments"])
def test_a_text_damaged_anywhere_is_refused_or_says_the_same(make):
    whole = make()
    text = whole.to_json()
    rng = np.random.default_rng(5)
    refused = 0
    for _ in range(150):
        damaged = bytearray(text.encode())
        if rng.random() < 0.3:
            damaged = damaged[: rng.integers(0, len(damaged))]
        else:
            for place in rng.integers(0, min(len(damaged), rng.choice([300, len(damaged)])), size=rng.integers(1, 4)):
                damaged[place] ^= 1 << rng.integers(0, 8)
        try:
            again = type(whole).from_json(damaged.decode("latin-1"))
        except InputError:
            refused += 1
        else:
            assert again.to_json() == text
    assert refused > 130


def places_in(value, where=()):
    """Every place of a tree of lists and fields."""
    inside: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in inside:
        yield (*where, name)
        yield from places_in(part, (*where, name))


OTHERS: list[Any] = [None, True, -1, 0, 1, 2, 10**30, 1e308, -0.5, 0.5, "", "2026-01-31", "x", [], {}, [1], {"a": 1}]


@pytest.mark.parametrize("make", [small, segments], ids=["one", "segments"])
def test_what_was_changed_on_purpose_is_refused_in_words_or_is_a_monitor(make):
    whole = make()
    state = state_of(whole)
    places = [place for place in places_in(state) if place[0] != "arrays"] + [("arrays", 0), ("arrays", 1, 1)]
    rng = np.random.default_rng(6)
    refused = accepted = 0
    for number, place in enumerate(places):
        changed = copy.deepcopy(state)
        inside: Any = changed
        for name in place[:-1]:
            inside = inside[name]
        if rng.random() < 0.2:
            del inside[place[-1]]
        else:
            inside[place[-1]] = OTHERS[(3 * number + rng.integers(0, 3)) % len(OTHERS)]
        try:
            type(whole).from_json(sealed(changed, type(whole)))
        except InputError as error:
            refused += str(error).startswith("the state of a monitor is damaged or was changed: ")
        else:
            accepted += 1
    assert refused + accepted == len(places)
    assert refused > 0.8 * len(places)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "a monitor is rebuilt from the text of its to_json(), got NoneType"),
        (b"{}", "got bytes"),
        ("", "it is no whole JSON text"),
        ("[" * 100_000, "it is no whole JSON text"),
        ("1" * 10_000, "it is no whole JSON text"),
        ('{"format": NaN}', "NaN is no number of JSON"),
        ("[1, 2]", "this text does not hold the state of a monitor (calibrant/monitor/1)"),
        ('{"a": 1}', "this text does not hold the state of a monitor (calibrant/monitor/1)"),
        ('{"format": "other/1"}', "this text does not hold the state of a monitor"),
        (
            '{"format": "calibrant/monitor/2"}',
            "this state was written by a newer version of calibrant (calibrant/monitor/2); this one reads "
            "calibrant/monitor/1; update calibrant, as in: pip install --upgrade calibrant",
        ),
        ('{"format": "calibrant/monitors/1"}', "this text holds calibrant/monitors/1, not calibrant/monitor/1"),
        ('{"format": "calibrant/monitor/0"}', "this text holds calibrant/monitor/0, not calibrant/monitor/1"),
        ('{"format": "calibrant/monitor/1", "state": {}}', "instead of checksum, format and state"),
        ('{"format": "calibrant/monitor/1", "state": {}, "checksum": "0"}', "its checksum does not fit its content"),
        (sealed({}), "the state has no arrays"),
        (sealed([]), "the state is a list, not a list of fields"),
    ],
)
def test_other_texts_are_refused_in_words(text, message):
    with pytest.raises(InputError) as said:
        Monitor.from_json(text)
    assert message in str(said.value)


def packed(numbers, dtype="<f8"):
    content = np.array(numbers, dtype=dtype)
    mixed = content.view(np.uint8).reshape(content.size, -1).T.tobytes()
    return base64.b64encode(zlib.compress(mixed)).decode()


def change(name, value):
    def changed(state):
        *inside, last = name.split(".")
        for each in inside:
            state = state[int(each)] if isinstance(state, list) else state[each]
        state[last] = value(state[last]) if callable(value) else value

    return changed


def change_array(name, numbers, dtype="<f8"):
    def changed(state):
        part = state["parts"]
        for each in name.split("."):
            part = part[int(each)] if isinstance(part, list) else part[each]
        state["arrays"][part] = [dtype[1:], packed(numbers, dtype)]

    return changed


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (change("options.unit", "day"), "its options cannot be: unit "),
        (change("options.max_error", 2.0), "its options cannot be: max_error "),
        (change("options", {"max_error": 0.1}), "its options are not complete"),
        (change("options", {"max_error": 0.1, "bits": 3}), "its options cannot be: "),
        (change("options.unit", "row"), "units and rows do not go together"),
        (change("parts.epoch", 0), "epoch of parts is 0, not a whole number from 1 to "),
        (change("parts.epoch", 2), "last reading and rows do not go together"),
        (change("parts.missing", -1), "missing of parts is -1, not a whole number from 0 to "),
        (change("parts.ledger.closed", None), "names of periods do not go together"),
        (change("parts.ledger.closed", 5), "which cannot be: period 5 was read and closed"),
        (change("parts.ledger.closed", "2026-01-01"), "periods of ledger is a list, which cannot be: period is 5"),
        (change("parts.ledger.named", 1), "named of ledger is 1, neither true nor false"),
        (change("parts.ledger.named", None), "named of ledger is None, which does not go with its periods"),
        (change("parts.ledger.periods", lambda each: each * 2), "with one of them twice"),
        (change("parts.ledger.periods", []), "forecasts and open periods do not go together"),
        (change("parts.evidence.periods", 3), "not those that are followed after 3 periods"),
        (change("parts.evidence.periods", 10**40), "periods of evidence is a huge number, not a whole number"),
        (change("parts.spread.periods", 3), "periods and means do not go together"),
        (change("parts.spread.differences", -1.0), "differences of spread is -1.0, not a number that can stand there"),
        (change("parts.limits", [0.1, 2.0]), "limits of parts is a list, not two numbers from 0 to 1"),
        (change("parts.last.lower", 3.0), "its last reading cannot be: lower of this Reading is 3.0"),
        (change("parts.last.rows", 1), "last reading and rows do not go together"),
        (change("parts.last.period", 9), "names of periods do not go together"),
        (change("parts.cells", None), "periods and cells do not go together"),
        (change("parts.sums", None), "means of periods do not go together"),
        (change("parts.cells.bits", 60), "bits of cells is 60, not a whole number from 12 to 16"),
        (
            change("parts.cells", lambda cells: {**cells, "high": cells["residual"]}),
            "cells of parts cannot come from any",
        ),
        (change("parts.cells.index", 10**6), "index of cells is 1000000, not the place of an array"),
        (change("parts.history.periods", 3), "not of 3 periods"),
        (change("parts.history.columns", packed([0.0])), "the history is no JSON text"),
        (change("parts.history.columns", "%"), "the history cannot be unpacked"),
        (change("parts.waiting.periods.0.ids", [1, 1]), "holds 1 twice"),
        (change("parts.waiting.periods.0.ids", [1.5, 2]), "not of whole numbers and texts"),
        (change_array("evidence.log", [0.0, 1.0]), "log of evidence does not hold 9,828 numbers"),
        (change_array("evidence.log", [np.nan] * 9828), "log of evidence holds what is not a finite number"),
        (change_array("evidence.log", [0.0] * 20_000), "log of evidence cannot be unpacked"),
        (change_array("evidence.log", [0] * 9828, "<i8"), "log of evidence is no array of type f8"),
        (change_array("waiting.periods.0.forecasts", [0.5, 1.5]), "not all from 0 to 1"),
        (change_array("sums.borders", [1, 2], "<i8"), "borders of sums does not hold "),
    ],
)
def test_states_that_no_monitor_has_are_refused_in_words(changed, message):
    state = state_of(small())
    changed(state)
    with pytest.raises(InputError) as said:
        Monitor.from_json(sealed(state))
    assert message in str(said.value)
    assert str(said.value).endswith("; use the text just as to_json() returned it, or an earlier copy of it")
