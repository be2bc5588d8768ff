"""Rolling repairs: each period goes through a map of earlier periods only, and what fails is braked."""

import json
from typing import Any

import numpy as np
import pytest

from calibrant import (
    Cells,
    GuardedRecalibrator,
    InputError,
    IsotonicRecalibrator,
    Monitor,
    PlattRecalibrator,
    RollingRecalibrator,
    Tally,
    cutoff_calibration_error,
)
from calibrant.core.logistic import expit, logit
from calibrant.monitors import compare_windows, storage
from calibrant.monitors.refits import rows_for
from calibrant.repairs import ConstantRecalibrator

ROWS = 100


def day(seed, shift=0.0, rows=ROWS):
    """Outcomes and forecasts on a coarse grid, so that no cell of a monitor holds two different ones."""
    rng = np.random.default_rng(seed)
    y_prob = rng.integers(1, 64, rows) / 64.0
    return (rng.random(rows) < expit(logit(y_prob) + shift)).astype(float), y_prob


def rolled(days=8, *, shift=1.0, **options: Any):
    """A rolling repair after some days, its forecasts, and the rows."""
    rolling = RollingRecalibrator(**{"window": 3, "max_error": 0.1, "min_rows": 50, **options})
    rows = [day(k, shift) for k in range(days)]
    issued = [rolling.update(*each, period=k) for k, each in enumerate(rows)]
    return rolling, issued, rows


def joined(rows):
    return tuple(np.concatenate(column) for column in zip(*rows, strict=True))


# --- Maps -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("maturity", [0, 1, 3])
def test_each_period_goes_through_the_map_of_the_last_periods_whose_labels_were_due(maturity):
    _, issued, rows = rolled(10, maturity=maturity)
    for k, (_, y_prob) in enumerate(rows):
        known = rows[max(k - maturity - 3, 0) : max(k - maturity, 0)]
        if not known:
            assert np.array_equal(issued[k], y_prob)
            continue
        y_true, forecasts = joined(known)
        wanted = IsotonicRecalibrator(ends="inside").fit(forecasts, y_true).predict(y_prob)
        assert issued[k] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("isotonic", IsotonicRecalibrator(ends="inside")),
        ("platt", PlattRecalibrator(on="logit", clip=1e-6)),
        ("guarded", GuardedRecalibrator(ends="inside")),
        (ConstantRecalibrator(), ConstantRecalibrator()),
    ],
)
def test_names_stand_for_recalibrators(given, meant):
    rolling, issued, rows = rolled(4, recalibrator=given)
    wanted = meant.fit(*reversed(joined(rows[:3]))).predict(rows[3][1])
    assert issued[3] == pytest.approx(wanted, abs=1e-9)
    assert rolling.read().recalibrator == type(meant).__name__
    assert not hasattr(given, "guarantee_")  # a copy is fitted


def test_outcomes_of_a_period_and_of_later_ones_change_nothing_in_its_forecasts():
    _, issued, rows = rolled()
    other = RollingRecalibrator(window=3, max_error=0.1, min_rows=50)
    for k, (y_true, y_prob) in enumerate(rows[:6]):
        found = other.update(1.0 - y_true if k == 5 else y_true, y_prob, period=k)
        assert np.array_equal(found, issued[k])


def test_predict_gives_what_update_will_give():
    rolling, _, _ = rolled(5)
    y_true, y_prob = day(99)
    before = rolling.predict(y_prob)
    assert np.array_equal(rolling.update(y_true, y_prob, period=5), before)


def test_a_map_that_was_used_stays_with_its_period_while_labels_are_on_their_way():
    rolling, _, _ = rolled(6, maturity=2)  # labels of period 5 are in: this is day 7
    y_true, y_prob = day(50)
    issued = {k: rolling.predict(y_prob, period=k) for k in (6, 7, 8)}
    for k in (6, 7, 8):
        assert np.array_equal(rolling.update(y_true, y_prob, period=k), issued[k])
    with pytest.raises(InputError, match="read and closed"):
        rolling.predict(y_prob, period=3)


def test_a_map_for_an_earlier_period_would_know_too_much():
    rolling = RollingRecalibrator(window=3, max_error=0.1, min_rows=50, maturity=5)
    rolling.update(*day(0), period=7)
    with pytest.raises(InputError, match="is 6, and a map was made for 7 already"):
        rolling.update(*day(1), period=6)


def test_with_maturity_predict_asks_for_the_period():
    rolling, _, _ = rolled(6, maturity=2)
    with pytest.raises(InputError, match="period is missing: with maturity, which labels were due depends on it"):
        rolling.predict([0.5])
    rolling = RollingRecalibrator(window=3, max_error=0.1, min_rows=50, maturity=1)
    for k in range(5):
        rolling.update(*day(k, 1.0))
    assert np.array_equal(rolling.predict([0.25]), rolling.update([1.0], [0.25]))  # batches count up by themselves


def test_batches_of_a_period_go_through_one_map():
    whole, issued, rows = rolled()
    parts = RollingRecalibrator(window=3, max_error=0.1, min_rows=50)
    for k, (y_true, y_prob) in enumerate(rows):
        found = [parts.update(y_true[part::2], y_prob[part::2], period=k) for part in range(2)]
        assert np.array_equal(found[0], issued[k][::2])
        assert np.array_equal(found[1], issued[k][1::2])
    # Sums of parts round in another way.
    assert parts.history["cutoff_after"].tolist() == pytest.approx(whole.history["cutoff_after"].tolist())
    assert parts.read().brier_after == pytest.approx(whole.read().brier_after)


def test_many_periods_at_once_are_repaired_one_after_the_other():
    whole, issued, rows = rolled()
    at_once = RollingRecalibrator(window=3, max_error=0.1, min_rows=50)
    y_true, y_prob = joined(rows)
    order = np.random.default_rng(0).permutation(y_true.size)
    period = np.repeat(np.arange(8), ROWS)
    found = at_once.update(y_true[order], y_prob[order], period=period[order])
    assert np.array_equal(found, np.concatenate(issued)[order])
    assert at_once.read() == whole.read()


def test_a_batch_is_taken_whole_or_not_at_all():
    rolling, _, rows = rolled(4)
    before = rolling.to_json()
    y_true, y_prob = joined([day(7), rows[3], day(8)])
    with pytest.raises(InputError, match="just like these was added to period 3 before"):
        rolling.update(y_true, y_prob, period=np.repeat([5, 3, 6], ROWS))
    assert rolling.to_json() == before
    with pytest.raises(InputError, match=r"y_prob\[1\] is 1.5"):
        rolling.update([0, 1], [0.5, 1.5], period=9)
    assert rolling.to_json() == before


def test_periods_that_a_map_knows_take_no_more_rows():
    rolling, _, _ = rolled(4)
    rolling.predict([0.5])
    with pytest.raises(InputError, match="3 was read and closed"):
        rolling.update(*day(77), period=3)


def test_weights_count_as_rows():
    once, twice = (RollingRecalibrator(window=3, max_error=0.1, min_rows=50) for _ in range(2))
    for k in range(5):
        y_true, y_prob = day(k, 1.0)
        weight = 1.0 + (np.arange(ROWS) % 2)
        weighted = once.update(y_true, y_prob, period=k, sample_weight=weight)
        repeated = twice.update(np.repeat(y_true, weight.astype(int)), np.repeat(y_prob, weight.astype(int)), period=k)
        assert np.repeat(weighted, weight.astype(int)) == pytest.approx(repeated, abs=2e-3)  # ends differ by half a row
    assert once.read().brier_after == pytest.approx(twice.read().brier_after, abs=1e-3)
    with pytest.raises(InputError, match="unit is the row"):
        RollingRecalibrator(window=3, max_error=0.1, unit="row").update([0, 1], [0.5, 0.5], sample_weight=[1, 2])


# --- Too few rows -----------------------------------------------------------------------------------------------------


def test_forecasts_stay_as_they_are_until_rows_suffice():
    rolling = RollingRecalibrator(window=4, max_error=0.1)
    assert rows_for(0.1) == 156
    y_prob = day(0)[1]
    for k in range(2):
        assert np.array_equal(rolling.update(day(k, 1.0)[0], y_prob, period=k), y_prob)
    assert rolling.read().status == "repairing"
    assert rolling.read().periods == 0
    assert "No period was repaired yet, up to 1." in str(rolling.read())
    assert not np.array_equal(rolling.predict(y_prob), y_prob)


def test_a_full_window_with_too_few_rows_is_an_error_that_says_which_would_do():
    rolling = RollingRecalibrator(window=3, max_error=0.05)
    for k in range(3):
        rolling.update(*day(k), period=k)
    assert "too few for a map, which takes 624 rows" in str(rolling.read())
    with pytest.raises(InputError, match=r"window of 3 periods holds 300 rows after 2, .* use window=7 or more"):
        rolling.update(*day(3), period=3)
    with pytest.raises(InputError, match="use window=7 or more"):
        rolling.predict([0.5])


def test_later_a_window_with_few_rows_leaves_forecasts_as_they_are():
    rolling, _, _ = rolled(5)
    for k in range(5, 9):
        rolling.update(*day(k, rows=5), period=k)
    y_prob = np.array([0.2, 0.9])
    assert np.array_equal(rolling.predict(y_prob), y_prob)
    assert rolling.read().status == "collecting"


def test_outcomes_that_no_curve_fits_leave_forecasts_as_they_are():
    rolling = RollingRecalibrator(PlattRecalibrator(smoothing=False), window=3, max_error=0.1, min_rows=50)
    y_prob = day(0)[1]
    for k in range(3):
        assert np.array_equal(rolling.update(np.zeros(ROWS), y_prob, period=k, batch=f"{k}"), y_prob)
    assert rolling.read().status == "collecting"


# --- Judged before and after ------------------------------------------------------------------------------------------


def test_scores_are_those_of_the_forecasts_as_they_were_issued():
    rolling, issued, rows = rolled(8)
    reading = rolling.read()
    y_true, y_prob = joined(rows[1:])  # the first period had no map
    after = np.concatenate(issued[1:])
    assert (reading.periods, reading.rows) == (7, 7 * ROWS)
    assert reading.cutoff_before == pytest.approx(cutoff_calibration_error(y_true, y_prob))
    assert reading.cutoff_after == pytest.approx(cutoff_calibration_error(y_true, after), abs=1e-4)
    assert reading.brier_before == pytest.approx(np.mean((y_true - y_prob) ** 2))
    assert reading.brier_after == pytest.approx(np.mean((y_true - after) ** 2))
    parts = [slice(0, 3), slice(3, 6), slice(6, 7)]
    errors = [cutoff_calibration_error(*joined(rows[1:][part])) for part in parts]
    assert reading.cutoff_by_stretch_before == pytest.approx((3 * errors[0] + 3 * errors[1] + errors[2]) / 7)
    assert reading.brier_after < reading.brier_before
    assert reading.cutoff_after < reading.cutoff_before / 2


def test_two_monitors_watch():
    rolling, issued, rows = rolled(8, unit="row")
    before, after = (Monitor(max_error=0.1, unit="row", assume="anything") for _ in range(2))
    for k, (y_true, y_prob) in enumerate(rows):
        before.update(y_true, y_prob, period=k)
        if k:
            after.update(y_true, issued[k], period=k)
    reading = rolling.read()
    assert reading.before == before.read()
    assert reading.after == after.read()
    assert reading.before.alarm is not None
    assert reading.alarms == ()


def test_history_says_what_became_of_each_period():
    rolling, issued, rows = rolled(5)
    rolling.read()
    found = rolling.history
    assert found["period"].tolist() == [0, 1, 2, 3, 4]
    assert found["status"].tolist() == ["collecting"] + ["repairing"] * 4
    assert found["map_rows"].tolist() == [0, 100, 200, 300, 300]
    assert found["brier_after"][3] == pytest.approx(np.mean((rows[3][0] - issued[3]) ** 2))
    assert found["cutoff_before"][3] == pytest.approx(cutoff_calibration_error(*rows[3]))
    assert not found["alarm_after"].any()


def test_nothing_can_be_read_before_a_period_is_complete():
    rolling = RollingRecalibrator(window=3, max_error=0.1, maturity=2)
    with pytest.raises(InputError, match="no rows have come in"):
        rolling.read()
    rolling.update(*day(0), period=0)
    with pytest.raises(InputError, match="no period is complete"):
        rolling.read()


def test_periods_that_differ_more_than_rows_would_are_noted():
    rolling = RollingRecalibrator(window=5, max_error=0.1, min_rows=50)
    rng = np.random.default_rng(3)
    for k in range(12):
        rolling.update(*day(k, rng.choice([-2.0, 2.0])), period=k)
    assert "times as much as independent rows would make them" in rolling.read().notes[0]


# --- Alarms and the brake ---------------------------------------------------------------------------------------------


def stream(shifts, **options: Any):
    rolling = RollingRecalibrator(**{"window": 6, "max_error": 0.1, "min_rows": 150, "unit": "row", **options})
    for k, shift in enumerate(shifts):
        rolling.update(*day(k, shift, 300), period=k)
    return rolling


def test_after_an_alarm_the_window_forgets_what_was_before_the_change():
    rolling = stream([0.0] * 8 + [2.5] * 6)
    reading = rolling.read()
    assert [alarm.period for alarm in reading.alarms] == [8]
    assert reading.brakes == 0
    rows = rolling.history["map_rows"].tolist()
    assert rows[8:] == [1800, 300, 600, 900, 1200, 1500]


def test_a_window_does_not_forget_below_the_fewest_rows():
    rolling = stream([0.0] * 8 + [2.5] * 6, min_rows=550)
    assert rolling.history["map_rows"].tolist()[9] == 600


def test_three_alarms_within_a_window_apply_the_brake_and_a_window_later_it_is_released():
    shifts = [3.0 if k // 2 % 2 else -3.0 for k in range(8)] + [2.0] * 12
    rolling = stream(shifts)
    statuses = rolling.history["status"].tolist()
    first = statuses.index("braking")
    assert statuses[first : first + 6] == ["braking"] * 6
    assert statuses[first + 6] == "repairing"
    for k in range(first, first + 6):
        assert rolling.history["brier_after"][k] == rolling.history["brier_before"][k]
    assert rolling.read().brakes == 1
    assert "the brake was applied 1 time" in str(rolling.read())


def test_a_reading_while_braking_says_for_how_long():
    rolling = stream([3.0 if k // 2 % 2 else -3.0 for k in range(8)])
    reading = rolling.read()
    assert reading.status == "braking"
    assert 0 < reading.brake_left <= 6
    assert "they are tried again after" in str(reading)
    y_prob = np.array([0.1, 0.7])
    assert np.array_equal(rolling.predict(y_prob), y_prob)


def test_a_brake_that_is_applied_again_soon_stays_on_twice_as_long():
    rolling = stream([3.0 if k // 2 % 2 else -3.0 for k in range(34)])
    reading = rolling.read()
    statuses = "".join(status[0] for status in rolling.history["status"])
    lengths = [len(part) for part in statuses.strip("cr").replace("c", "r").split("r") if part]
    assert lengths[:2] == [6, 12]
    assert reading.brakes > 1
    assert "a shorter window, or a new model" in str(reading)


def test_a_brake_that_was_released_long_ago_starts_anew():
    turns = [3.0 if k // 2 % 2 else -3.0 for k in range(6)]
    rolling = stream([*turns, *[3.0] * 24, *turns, *[3.0] * 8])
    assert rolling.read().brakes == 2
    assert (rolling.history["status"] == "braking").sum() == 12


# --- Saved and read back ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "maturity"),
    [("isotonic", 0), ("platt", 2), ("guarded", 1), (GuardedRecalibrator([ConstantRecalibrator()]), 0)],
)
def test_what_was_saved_goes_on_as_if_it_had_not_been(kind, maturity):
    shifts = [0.0] * 3 + [2.5, 2.5, -2.5, -2.5] * 2
    options: dict[str, Any] = {"window": 4, "max_error": 0.1, "min_rows": 150, "unit": "row", "maturity": maturity}
    whole = RollingRecalibrator(kind, **options)
    saved = RollingRecalibrator(kind, **options)
    for k, shift in enumerate(shifts):
        rows = day(k, shift, 200)
        saved = RollingRecalibrator.from_json(saved.to_json())
        assert np.array_equal(whole.update(*rows, period=k), saved.update(*rows, period=k))
        if k > maturity + 1:
            assert whole.read() == saved.read()
    assert whole.to_json() == saved.to_json()
    assert repr(whole) == repr(saved)


def test_a_damaged_text_is_refused():
    rolling, _, _ = rolled(6, maturity=1)
    text = rolling.to_json()
    for damaged in (text[:-40], text.replace('"brakes": 0', '"brakes": 1')):
        with pytest.raises(InputError, match="damaged or was changed"):
            RollingRecalibrator.from_json(damaged)
    with pytest.raises(InputError, match="this text holds calibrant/rolling/1, not calibrant/monitor/1"):
        Monitor.from_json(text)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("options", "window"), 0),
        (("options", "recalibrator"), {"type": "Monitor", "params": {}}),
        (("parts", "brake_left"), 1),
        (("parts", "braked"), {"length": 3}),
        (("parts", "counted"), [99]),
        (("parts", "counted"), "none"),
        (("parts", "scores"), []),
        (("parts", "open"), []),
        (("parts", "maps"), []),
        (("parts", "maps", 0, "status"), "braking"),
        (("parts", "maps", 0, "map", "type"), "PlattRecalibrator"),
        (("parts", "window", 0, "cells"), None),
        (("parts", "window", 0, "period"), 90),
        (("parts", "alarms"), [{"type": "Alarm"}]),
        (("parts", "said"), {"type": "Reading"}),
        (("parts", "history", "periods"), 2),
        (("parts", "scores", 0, "periods"), 0),
        (("before", "epoch"), 0),
    ],
)
def test_values_that_cannot_be_are_refused(where, value):
    rolling, _, _ = rolled(6, maturity=1)
    state = json.loads(rolling.to_json())["state"]
    part = state
    for name in where[:-1]:
        part = part[name]
    part[where[-1]] = value
    with pytest.raises(InputError, match="damaged or was changed"):
        RollingRecalibrator.from_json(storage.sealed("calibrant/rolling/1", state))


def test_the_state_does_not_grow_with_rows():
    sizes = []
    for rows in (2_000, 20_000):
        rolling = RollingRecalibrator(window=3, max_error=0.1)
        for k in range(6):
            rolling.update(*day(k, rows=rows), period=k)
        rolling.read()
        sizes.append(len(rolling.to_json()))
    assert sizes[1] < 1.2 * sizes[0]


# --- What is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recalibrator": "temperature"}, "must be 'isotonic', 'platt', 'guarded' or a recalibrator"),
        ({"recalibrator": IsotonicRecalibrator}, "must be 'isotonic', 'platt', 'guarded' or a recalibrator"),
        ({"recalibrator": IsotonicRecalibrator(input_kind="score")}, "has input_kind='score'"),
        ({"recalibrator": PlattRecalibrator(pos_label="yes")}, "has pos_label='yes'"),
        ({"window": 0}, "window"),
        ({"window": 2.5}, "window"),
        ({"min_rows": 1}, "min_rows"),
        ({"max_error": 2.0}, "max_error"),
        ({"maturity": -1}, "maturity"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(InputError, match=message):
        RollingRecalibrator(**{"window": 3, "max_error": 0.1, **options})


def test_totals_have_no_rows_to_repair():
    rolling = RollingRecalibrator(window=3, max_error=0.1)
    given: tuple[Any, ...] = (Tally.from_arrays([0, 1], [0.2, 0.7]), Cells.from_arrays([0, 1], [0.2, 0.7]))
    for totals in given:
        with pytest.raises(InputError, match="no rows whose forecasts could be repaired"):
            rolling.update(totals)


# --- Which window? ----------------------------------------------------------------------------------------------------


def test_windows_are_compared_on_the_same_periods_as_they_would_have_been_in_use():
    rows = [day(k, 1.0) for k in range(10)]
    y_true, y_prob = joined(rows)
    period = np.repeat(np.arange(10), ROWS)
    found = compare_windows(y_true, y_prob, period=period, windows=[4, 2, 4])
    assert [each.window for each in found.scores] == [0, 2, 4]
    assert (found.periods, found.rows, found.stretch) == (6, 6 * ROWS, 2)
    assert found.scores[0].brier == pytest.approx(np.mean((y_true - y_prob)[4 * ROWS :] ** 2))
    for each in found.scores[1:]:
        rolling = RollingRecalibrator(window=each.window, max_error=0.1, min_rows=2)
        issued = rolling.update(y_true, y_prob, period=period)
        assert each.brier == pytest.approx(np.mean((y_true - issued)[4 * ROWS :] ** 2))
    assert found.best == min(found.scores, key=lambda each: each.brier).window
    assert found.frame()["window"].tolist() == [0, 2, 4]


def test_windows_respect_maturity():
    rows = [day(k, 1.0) for k in range(10)]
    y_true, y_prob = joined(rows)
    period = np.repeat([f"2026-01-{k:02}" for k in range(1, 11)], ROWS)
    found = compare_windows(y_true, y_prob, period=period, windows=[3], maturity=2, recalibrator="platt")
    rolling = RollingRecalibrator("platt", window=3, max_error=0.1, min_rows=2, maturity=2)
    issued = rolling.update(y_true, y_prob, period=period)
    assert found.periods == 5
    assert found.scores[1].brier == pytest.approx(np.mean((y_true - issued)[5 * ROWS :] ** 2))


def test_windows_need_periods():
    with pytest.raises(InputError, match="has 2 periods, and none is after 3 periods whose labels are in"):
        compare_windows([0, 1], [0.2, 0.4], period=[1, 2], windows=[3])
    with pytest.raises(InputError, match="windows is empty"):
        compare_windows([0, 1], [0.2, 0.4], period=[1, 2], windows=[])


def test_a_comparison_of_windows_names_no_repair_when_none_is_better():
    rng = np.random.default_rng(1)
    y_prob = rng.random(600)
    found = compare_windows(rng.random(600) < y_prob, y_prob, period=np.arange(600) // 20, windows=[1, 2])
    assert found.best == 0
    assert "No repair did best" in str(found)
