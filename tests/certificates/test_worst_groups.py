"""The worst group is the one that looking at every cut, label and interval finds."""

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant
from calibrant import certify, cutoff_calibration_error, worst_group
from calibrant.certificates import group_evidence, group_search
from calibrant.certificates.betting import interval_rates
from calibrant.certificates.group_search import Growths, Looked, Scene
from calibrant.core import group_kernels
from calibrant.rows.checks import check_observations
from calibrant.rows.features import check_features


def groups_of(X):
    """Return every half-line and label of every column, slowly, as masks by name."""
    found = {"all rows": np.ones(len(next(iter(X.values()))), dtype=bool)}
    for name, column in X.items():
        missing = pd.isna(column)
        if missing.any():
            found[f"{name} is missing"] = missing
            found[f"{name} is known"] = ~missing
        for value in pd.unique(np.asarray(column)[~missing]):
            if isinstance(value, (str, bool, np.bool_)):
                found[f"{name} is {value}"] = column == value
            else:
                with np.errstate(invalid="ignore"):
                    found[f"{name} <= {value:.6g}"] = np.asarray(column, dtype=float) <= value
                    found[f"{name} >= {value:.6g}"] = np.asarray(column, dtype=float) >= value
    return found


def largest_over_intervals(value, p):
    """Return the largest sum of values over an interval of forecasts, by trying all."""
    curve = np.concatenate([[0.0], np.cumsum([value[p == each].sum() for each in np.unique(p)])])
    return float(np.triu(curve - curve[:, None]).max())  # the end of the interval less its beginning


def drawn(seed, rows=40, *, ties=True, weights=False, fractions=False):
    rng = np.random.default_rng(seed)
    p = rng.random(rows)
    if ties:
        p = np.round(p, 1)
    y = np.round(rng.random(rows), 1) if fractions else (rng.random(rows) < p**1.5).astype(float)
    income = rng.normal(size=rows).round(0 if ties else 9)
    income = income + 0.0  # no -0.0
    income[rng.random(rows) < 0.15] = np.nan
    X = {
        "age": rng.integers(0, 8 if ties else 10**6, size=rows).astype(float),
        "income": income,
        "ward": rng.choice(["north", "south", "west"], size=rows).astype(object),
        "smoker": rng.random(rows) < 0.4,
    }
    return y, p, X, rng.exponential(size=rows) if weights else None


CASES = [{}, {"ties": False}, {"weights": True}, {"fractions": True}, {"ties": False, "weights": True}]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("few", [1 << 11, 10], ids=["by numpy", "by loops"])
def test_brute_force(case, few, monkeypatch):
    """Every group and every interval of small data, by slow and obvious loops."""
    monkeypatch.setattr(group_search, "FEW", few)
    monkeypatch.setattr(group_evidence, "FEW", few)
    monkeypatch.setattr(group_search, "_BINS", 16)
    monkeypatch.setattr(group_search, "_FEW_STEPS", 4)
    monkeypatch.setattr(group_search, "_EVERY", 5)
    for name in ("growing_bounds", "growing_ranges", "growing_stretches", "stepped_tables"):
        kernel = getattr(group_kernels, name)
        monkeypatch.setattr(kernel, "run_compiled", kernel.plain)
    for seed in range(2):
        y, p, X, w = drawn(seed, **case)
        found = worst_group(y, p, X, sample_weight=w)
        weight = np.ones(len(y)) if w is None else w
        masks = groups_of(X)
        signed = {
            name: [largest_over_intervals(s * weight * (y - p) * mask, p) / weight.sum() for s in (1, -1)]
            for name, mask in masks.items()
        }
        errors = {name: max(pair) for name, pair in signed.items()}
        assert found.error == pytest.approx(max(errors.values()), abs=1e-12)
        assert found.error == pytest.approx(errors[found.worst.group], abs=1e-12)
        assert found.overall == pytest.approx(errors["all rows"], abs=1e-12)
        for feature, each in zip(X, found.by_feature, strict=True):
            own = [error for name, error in errors.items() if name.startswith(f"{feature} ")]
            whole = [] if pd.isna(X[feature]).any() or X[feature].dtype.kind in "Ob" else [errors["all rows"]]
            assert each.error == pytest.approx(max(own + whole), abs=1e-12)
            mask = masks[each.group]
            inside = mask & (p >= each.low) & (p <= each.high)
            assert abs((weight * (y - p))[inside].sum()) / weight.sum() == pytest.approx(each.error, abs=1e-12)
            assert (each.rows, each.group_rows) == (inside.sum(), mask.sum())
            assert each.share == pytest.approx(weight[inside].sum() / weight.sum())
        # The upper limit, from the largest growth over every group, interval and sign.
        scene = Scene.of(check_observations(y, p, sample_weight=w), check_features(X, len(y)))
        rates = interval_rates(calibrant.Tally.from_arrays(y, p, sample_weight=w), 0.05)
        growths = Growths(scene, rates)
        for place in range(len(X)):
            looked = Looked(scene, place)
            looked.look()
            growths.look(looked)
            growths.try_group(scene.features[place].missing)
        for rate, largest in zip(rates, growths.largest, strict=True):
            slow = max(
                largest_over_intervals(-np.log1p(-rate * s * weight / weight.max() * (y - p)) * mask, p)
                for mask in masks.values()
                for s in (1.0, -1.0)
            )
            assert largest == pytest.approx(slow, rel=1e-9)
        exponent = math.log(1 / (0.05 * 0.98))
        share = weight.mean() / weight.max()
        limits = [
            (1 - math.exp(-(growth + exponent) / len(y))) / (rate * share)
            for rate, growth in zip(rates, growths.largest, strict=True)
        ]
        assert found.upper == pytest.approx(min(max(limits), 1.0))


def test_loops_and_numpy_agree(monkeypatch):
    rng = np.random.default_rng(3)
    p, X = rng.random(1500).round(3), {"a": rng.random(1500), "b": rng.integers(0, 40, 1500)}
    y = rng.random(1500) < p
    found = worst_group(y, p, X)
    monkeypatch.setattr(group_search, "FEW", 10)
    monkeypatch.setattr(group_evidence, "FEW", 10)
    other = worst_group(y, p, X)
    assert other.worst == found.worst
    assert other.by_feature == found.by_feature
    assert other.upper == pytest.approx(found.upper, rel=1e-12)
    assert other.lower == pytest.approx(found.lower, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("kernel", ["growing_bounds", "growing_ranges", "growing_stretches", "stepped_tables"])
def test_compiled_equals_plain(kernel):
    rng = np.random.default_rng(1)
    rows = 600
    leaf, value = rng.integers(0, 200, rows), rng.normal(size=rows)
    end = np.append(np.unique(rng.integers(1, rows, 400)), rows)
    given: tuple[Any, ...] = (leaf, value, end, rng.random(end.size) < 0.5, 200)
    if kernel == "growing_bounds":
        given = (leaf.astype(np.uint16), *given[1:], 20, True)
    if kernel == "stepped_tables":
        stretch = rng.integers(0, 9, (3, rows)).astype(np.uint16)
        given = (rng.permutation(rows), np.sort(leaf), value, stretch, (stretch < 8).sum(axis=1), 6, 8)
    loop = getattr(group_kernels, kernel)
    plain, compiled = loop.plain(*given), loop.run_compiled(*given)
    several = isinstance(plain, tuple)
    for one, other in zip(*(each if several else [each] for each in (plain, compiled)), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("either_sign", [True, False])
@pytest.mark.parametrize("share", [0.05, 1.0])
def test_bounds_hold_and_are_reached_at_every_look(either_sign, share):
    rng = np.random.default_rng(4)
    rows, stretches = 500, 70
    stretch, value = rng.integers(0, stretches, rows), rng.normal(size=rows)
    end = np.append(np.unique(rng.integers(1, rows, 300)), rows)
    wanted = rng.random(end.size) < share
    exact = group_kernels.growing_ranges if either_sign else group_kernels.growing_stretches
    largest = exact.plain(stretch, value, end, np.ones(end.size, dtype=bool), stretches)
    given = (stretch.astype(np.uint16), value, end, wanted, stretches)
    bound, seen = group_kernels.growing_bounds.plain(*given, 30, either_sign)
    assert (bound >= largest - 1e-9).all()
    assert np.isfinite(bound[wanted]).all()
    assert seen <= largest.max() + 1e-9
    at_once, seen = group_kernels.growing_bounds.plain(*given, 1, either_sign)
    assert at_once[wanted] == pytest.approx(largest[wanted], abs=1e-9)
    assert seen >= largest[wanted].max() - 1e-9


def test_tables_by_loop_and_by_numpy_agree():
    rng = np.random.default_rng(5)
    rows, parts = 300, 4
    order, codes, value = rng.permutation(rows), np.sort(rng.integers(0, 90, rows)), rng.normal(size=rows)
    stretch = rng.integers(0, 9, (parts, rows)).astype(np.uint16)
    stretch[2] = 8  # a part without rows
    given = (order, codes, value, stretch, (stretch < 8).sum(axis=1), 7, 8)
    loop, by_numpy = group_kernels.stepped_tables.plain(*given), group_evidence._tables_of(*given)
    for one, other in zip(loop, by_numpy, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("case", CASES[:3], ids=str)
def test_row_order_is_nothing(case):
    y, p, X, w = drawn(7, 300, **case)
    found = worst_group(y, p, X, sample_weight=w)
    order = np.random.default_rng(0).permutation(len(y))
    moved = {name: column[order] for name, column in X.items()}
    assert worst_group(y[order], p[order], moved, sample_weight=None if w is None else w[order]) == found


def test_monotone_maps_and_names_of_features_change_words_only():
    y, p, X, _ = drawn(2, 400)
    found = worst_group(y, p, X)
    mapped = {"years": np.exp(X["age"]), "money": X["income"] ** 3, "ward": X["ward"], "smoker": X["smoker"]}
    other = worst_group(y, p, mapped)
    assert (other.error, other.lower, other.upper) == (found.error, found.lower, found.upper)
    for one, two in zip(found.by_feature, other.by_feature, strict=True):
        same = ("kind", "error", "low", "high", "direction", "rows", "group_rows")
        assert [getattr(one, name) for name in same] == [getattr(two, name) for name in same]
    renamed = np.array([{"north": "z", "south": "a", "west": "m"}[each] for each in X["ward"]], dtype=object)
    other = worst_group(y, p, X | {"ward": renamed})
    assert (other.error, other.upper) == (found.error, found.upper)
    falling = worst_group(y, p, X | {"age": -X["age"]})
    assert falling.error == pytest.approx(found.error)
    assert falling.upper == pytest.approx(found.upper)


@pytest.mark.parametrize("rows", [300, 3000])
def test_one_group_is_the_certificate_of_all_rows(rows):
    rng = np.random.default_rng(rows)
    p = rng.random(rows)
    y = rng.random(rows) < p**1.2
    found = worst_group(y, p, np.ones(rows))
    alone = certify(y, p, max_error=0.05)
    assert found.worst.kind == "all"
    assert found.error == found.overall == cutoff_calibration_error(y, p) == alone.estimate
    assert found.upper == pytest.approx(alone.upper, rel=1e-12)
    assert worst_group(y, p, np.ones(rows), sample_weight=np.full(rows, 3.0)) == found


def test_a_hidden_group_is_found_at_its_border():
    rng = np.random.default_rng(1)
    rows = 3000
    p, X = rng.random(rows), rng.random((rows, 10))
    inside = X[:, 3] >= 0.8
    # Off to one side for a fifth, and to the other for the rest: the errors cancel where nobody looks at groups.
    y = rng.random(rows) < np.clip(p + np.where(inside, 0.25, -0.05) * (np.abs(p - 0.5) < 0.4), 0, 1)
    found = worst_group(y, p, X, max_error=0.015)
    assert (found.worst.feature, found.worst.kind, found.worst.direction) == ("x3", "at least", "too low")
    assert found.worst.value == pytest.approx(0.8, abs=0.02)
    assert found.overall < 0.025 < 0.04 < found.error
    assert found.verdict == "refuted"
    assert not found


def test_calibrated_forecasts_and_ten_features():
    rng = np.random.default_rng(0)
    p, X = rng.random(3000), rng.random((3000, 10))
    found = worst_group(rng.random(3000) < p, p, X, max_error=0.05)
    assert found.verdict == "certified"
    assert found.upper < 0.036
    assert found.lower == 0.0


def test_frames_arrays_and_dicts():
    y, p, X, _ = drawn(5, 200)
    found = worst_group(y, p, X)
    assert worst_group(y, p, pd.DataFrame(X)) == found
    texts = X | {"income": [None if np.isnan(each) else float(each) for each in X["income"]]}
    assert worst_group(y, p, pl.DataFrame(texts)) == found
    assert worst_group(y, p, pa.table(texts)) == found
    categories = pd.DataFrame(X).astype({"ward": "category", "income": "Float64"})
    assert worst_group(y, p, categories) == found
    numbers = np.column_stack([X["age"], X["income"]])
    assert worst_group(y, p, numbers).features == ("x0", "x1")
    assert worst_group(y, p, X["age"]).features == ("x0",)
    age = pd.Series(X["age"], name="age")
    assert worst_group(y, p, age) == worst_group(y, p, pl.Series(age)) == worst_group(y, p, {"age": X["age"]})
    wards = pd.Series(X["ward"], name="ward").astype("category")
    assert worst_group(y, p, wards) == worst_group(y, p, wards.to_frame())
    masked = np.ma.masked_invalid(X["income"])
    assert worst_group(y, p, {"income": masked}).error == worst_group(y, p, {"income": X["income"]}).error


def test_dates_are_in_order_and_codes_of_categories_are_not():
    day = np.arange(500) // 50
    row = np.arange(500)
    p, y = np.full(500, 0.5), np.where(day >= 7, 1, (row % 2) * (row % 50 != 1))
    dates = np.datetime64("2026-01-01") + day
    found = worst_group(y, p, {"day": dates})
    assert found.worst.group == "day >= 2026-01-08"
    assert found.worst.value == "2026-01-08"
    found = worst_group(y, p, pd.DataFrame({"code": pd.Categorical(day)}))
    assert found.by_feature[0].kind == "is"


def test_rows_of_weight_zero_are_left_out():
    y, p, X, w = drawn(3, 120, weights=True)
    w[::5] = 0.0
    kept = w > 0
    found = worst_group(y, p, X, sample_weight=w)
    assert found == worst_group(y[kept], p[kept], {k: v[kept] for k, v in X.items()}, sample_weight=w[kept])


def test_words():
    rng = np.random.default_rng(0)
    p, age = rng.random(2000), rng.integers(20, 90, size=2000)
    y = rng.random(2000) < np.clip(p + 0.25 * (age >= 70), 0, 1)
    found = worst_group(y, p, {"age": age, "x": rng.random(2000)}, max_error=0.02)
    text = str(found)
    assert text.startswith("Refuted: with 95% confidence some half-line or label of these features is off by more")
    for said in ("Worst on age >= ", "of 2,000 rows", "By feature:"):
        assert said in text
    assert "Action: on these rows no non-decreasing recalibration" in text
    assert str(worst_group(y, p, {"age": age})).startswith("Worst on age >= ")
    assert worst_group(y, p, {"age": age}, max_error=found.error).verdict == "undecided"
    assert list(found.frame()["feature"]) == ["age", "x"]
    assert type(found).from_json(found.to_json()) == found
    exact = worst_group([0, 1], [0.0, 1.0], {"a": [1, 2]})
    assert "No half-line or label of these features is off" in str(exact)
    assert "on no interval" in str(exact.worst)


def test_a_range_can_be_off_by_twice_the_limit_and_no_verdict_says_otherwise():
    # Too low in the middle third, too high on both sides: cut anywhere, half of the error cancels.
    x = np.arange(30_000) % 300
    rate = np.where((x >= 100) & (x < 200), 0.8, 0.35)
    y = np.random.default_rng(0).random(x.size) < rate
    p = np.full(x.size, 0.5)
    middle = (x >= 100) & (x < 200)
    found = worst_group(y, p, {"x": x}, max_error=0.06)
    assert found.verdict == "certified"
    inside = abs(np.mean((y - p) * middle))
    assert found.max_error is not None
    assert found.max_error < inside <= 2.0 * found.upper
    assert found.finding().startswith(
        "Certified: with 95% confidence no half-line or label of these features is off by"
    )
    assert "for every half-line or label of these features at once" in found.numbers()
    assert "none of any half-line or label saves more than" in found.action()
    assert "no group" not in str(found)
    undecided = worst_group(y, p, {"x": x}, max_error=found.error)
    assert "whether some half-line or label of these features has" in undecided.finding()


Y, P = [0, 1, 1, 0], [0.1, 0.5, 0.5, 0.7]
BAD = {
    "nothing": (None, "X is missing: pass the features"),
    "no columns": ({}, "X has no columns"),
    "length": ({"a": [1, 2, 3]}, r"X\['a'\] has 3 values for 4 rows"),
    "empty": ({"a": [None] * 4}, r"X\['a'\] holds no value: every one is missing; leave the column out"),
    "nan": ({"a": [math.nan] * 4}, "holds no value"),
    "mixed": ({"a": np.array([1, "x", 2, 3], dtype=object)}, "mixes labels that cannot be compared"),
    "objects": ({"a": np.array([[1], [2], [3], [4, 5]], dtype=object)}, "holds .* of type list"),
    "cube": (np.zeros((4, 2, 2)), r"X has shape \(4, 2, 2\)"),
    "twice": (pd.DataFrame(np.zeros((4, 2)), columns=["a", "a"]), "two columns named 'a'"),
    "complex": ({"a": np.array([1j, 2, 3, 4])}, "complex"),
    "records": ({"a": np.zeros(4, dtype=[("u", float)])}, "records"),
    "index": (pd.DataFrame({"a": [1, 2, 3, 4]}, index=[3, 2, 1, 0]), "paired by position"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_features(name):
    X, message = BAD[name]
    with pytest.raises(calibrant.InputError, match=message):
        worst_group(pd.Series(Y), P, X)


def test_bad_rows_and_options():
    given: Any = calibrant.Tally.from_arrays(Y, P)
    with pytest.raises(calibrant.InputError, match="whose features are not known"):
        worst_group(given, X=[[1]] * 4)
    with pytest.raises(calibrant.InputError, match="max_error"):
        worst_group(Y, P, [1, 2, 3, 4], max_error=2)
    with pytest.raises(calibrant.InputError, match="confidence_level"):
        worst_group(Y, P, [1, 2, 3, 4], confidence_level=95)
    with pytest.raises(calibrant.InputError, match=r"y_prob\[1\] is 5"):
        worst_group(Y, [0.1, 5.0, 0.5, 0.7], [1, 2, 3, 4])


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_very_few_rows(rows):
    found = worst_group([1, 0, 1][:rows], [0.5, 0.5, 0.25][:rows], {"a": [1.0, np.nan, np.inf][:rows]})
    assert found.error <= found.upper <= 1.0
    assert found.lower == 0.0


DAYS = np.datetime64("2026-01-01") + np.arange(300) % 30
ORDERED = {
    "time zone": pd.Series(pd.DatetimeIndex(DAYS).tz_localize("Europe/Berlin")),
    "index with time zone": pd.DatetimeIndex(DAYS).tz_localize("UTC"),
    "dates of Python": np.array(DAYS.astype(object)),
    "times of Python": np.array([dt.datetime.combine(day, dt.time(0)) for day in DAYS.astype(object)], dtype=object),
    "texts": DAYS.astype(str),
    "texts as objects": DAYS.astype(str).astype(object),
    "numpy": DAYS.astype("M8[ns]"),
    "polars": pl.Series(DAYS.astype("M8[us]")),
}


@pytest.mark.parametrize("name", ORDERED)
def test_dates_have_an_order_however_they_are_held(name):
    (found,) = check_features({"day": ORDERED[name]}, 300)
    assert found.ordered
    assert [found.label(place) for place in (0, 29)] == ["2026-01-01", "2026-01-30"]
    y = (np.arange(300) % 30 >= 15).astype(int)
    assert worst_group(y, np.full(300, 0.5), {"day": ORDERED[name]}).worst.group == "day <= 2026-01-15"


def test_times_of_day_stay_in_the_label():
    (found,) = check_features({"at": ["2026-01-31 13:05", "2026-02-01", None]}, 3)
    assert [found.label(place) for place in (0, 1)] == ["2026-01-31T13:05:00", "2026-02-01T00:00:00"]
    assert found.codes.tolist() == [0, 1, -1]


def test_texts_that_are_not_all_dates_are_labels():
    for texts in (["2026-01-31", "2026-02-30"], ["20260131", "20260201"], ["2026-01-31", "north"]):
        assert not check_features({"d": texts}, 2)[0].ordered
    assert not check_features({"d": pd.Categorical(["2026-01-31", "2026-02-01"])}, 2)[0].ordered


def test_ordered_categories_and_decimals_have_their_order():
    sizes = pd.Categorical(["S", "L", None, "M"], categories=["S", "M", "L", "XL"], ordered=True)
    for held in (sizes, pd.Series(sizes)):
        (found,) = check_features({"size": held}, 4)
        assert found.ordered
        assert found.codes.tolist() == [0, 2, -1, 1]
        assert found.values.tolist() == ["S", "M", "L"]
    with pytest.raises(calibrant.InputError, match="every one is missing"):
        check_features({"size": sizes[[2]]}, 1)
    (found,) = check_features({"cost": [Decimal("10.5"), Decimal("9"), 9]}, 3)
    assert found.ordered
    assert found.values.tolist() == [9.0, 10.5]


def test_a_column_of_many_labels_is_said_to_be_one():
    day = [f"{1 + k % 28:02}/{1 + k // 28 % 12:02}/2026" for k in range(300)]
    found = worst_group([0, 1] * 150, [0.5] * 300, {"day": day, "ward": ["a", "b"] * 150})
    (note,) = found.notes
    assert note.startswith("day was read as 300 labels, without an order")
