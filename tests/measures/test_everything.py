import dataclasses
import itertools
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from brute_force import merged, rows
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant
from calibrant import Tally
from calibrant.measures import distance as distances
from calibrant.measures.smoothers import isotonic_curve

RNG = np.random.default_rng(8)


@given(rows(most=9))
@settings(max_examples=60)
def test_upper_end_of_the_distance_is_the_best_of_all_interval_partitions_or_better(data):
    y, p, w = data
    forecast, weight, _, outcome = merged(y, p, w)
    size = len(forecast)
    best = np.inf
    for count in range(size):
        for cuts in itertools.combinations(range(1, size), count):
            cells = np.split(np.arange(size), cuts)
            moved = sum(
                (weight[cell] * np.abs(forecast[cell] - outcome[cell].sum() / weight[cell].sum())).sum()
                for cell in cells
            )
            best = min(best, moved / weight.sum())
    tally = Tally.from_arrays(y, p, sample_weight=w)
    distance = calibrant.distance_from_calibration(tally)
    partition = distances._best_partition(tally, isotonic_curve(tally))
    assert partition == pytest.approx(best, abs=1e-12)
    assert distance.high <= best + 1e-12


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_the_distance_of_a_perturbed_calibrated_forecast_is_inside(seed):
    # Start from calibrated forecasts g, move each row by a known amount: the distance is at most what was moved.
    rng = np.random.default_rng(seed)
    groups = rng.integers(1, 5)
    rates = rng.integers(0, 11, groups) / 10
    g = np.repeat(rates, 10)
    y = np.concatenate([np.arange(10) < round(10 * rate) for rate in rates]).astype(float)
    f = np.clip(g + rng.choice([-0.1, 0.0, 0.05], g.size), 0, 1)
    distance = calibrant.distance_from_calibration(Tally.from_arrays(y, f))
    assert distance.low <= np.abs(f - g).mean() + 1e-12


def test_candidate_borders_come_close_to_the_best_partition_on_many_forecasts():
    p = RNG.random(20_000)
    y = RNG.random(20_000) < np.clip(p + 0.1, 0, 1)
    distance = calibrant.distance_from_calibration(y, p)
    assert distance.low <= distance.high < 1.1 * distance.low


def test_measure_equals_the_single_functions():
    p = np.round(RNG.random(4_000), 2)
    y = RNG.random(4_000) < p**1.3
    w = RNG.random(4_000)
    for weight in (None, w):
        result = calibrant.measure(y, p, sample_weight=weight, spectrum=True)
        same: dict[str, Any] = {"sample_weight": weight}
        assert result.cutoff == calibrant.cutoff_calibration_error(y, p, **same)
        assert result.ks == calibrant.measures.ks_calibration_error(y, p, **same)
        assert result.smooth == calibrant.smooth_calibration_error(y, p, **same)
        assert result.bounded_variation == calibrant.measures.bounded_variation_calibration_error(y, p, **same)
        assert result.ece == pytest.approx(calibrant.expected_calibration_error(y, p, **same), abs=1e-15)
        assert result.ece_binned == calibrant.expected_calibration_error(y, p, n_bins=15, **same)
        assert result.calibration_in_the_large == calibrant.measures.calibration_in_the_large(y, p, **same)
        assert result.observed_expected_ratio == calibrant.measures.observed_expected_ratio(y, p, **same)
        assert result.slope == calibrant.measures.calibration_slope_intercept(y, p, **same)
        assert result.curve == calibrant.measures.integrated_calibration_index(y, p, **same)
        assert result.distance == calibrant.distance_from_calibration(y, p, **same)
        assert result.effective_support == calibrant.measures.effective_support_size(p, **same)
        assert result.worst_interval == calibrant.worst_interval(y, p, **same)
        assert result.brier == pytest.approx(np.average((y - p) ** 2, weights=weight), abs=1e-12)
        assert result.mean_forecast == pytest.approx(np.average(p, weights=weight), abs=1e-12)
        assert result.spectrum is not None
        assert result.spectrum.at(2.0) == pytest.approx(result.bounded_variation, abs=1e-15)


def test_measure_raises_no_warning_and_notes_it_instead():
    p = RNG.random(500)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = calibrant.measure(RNG.random(500) < p, p)
    assert any("Theorem 4.1" in note for note in result.notes)
    assert result.spectrum is None


@pytest.mark.parametrize("scanned", [False, True])
def test_groups_are_measured_one_by_one(scanned):
    rng = np.random.default_rng(5)
    p = rng.random(300).round(2).clip(0.01, 0.99)
    y = (rng.random(300) < p).astype(int)
    ward = np.array(["west", "east", "north"])[rng.integers(0, 3, 300)]
    if scanned:
        table = pa.table({"y": y, "p": p, "ward": ward})
        with calibrant.scan(table, y_true="y", y_prob="p", by="ward") as rows:
            found = calibrant.measure(rows)
    else:
        found = calibrant.measure(y, p, by=ward, spectrum=True)
    assert list(found) == list(found.groups) == ["east", "north", "west"]
    for name in found:
        alone = calibrant.measure(y[ward == name], p[ward == name], spectrum=not scanned)
        assert found[name].to_dict() == alone.to_dict()
    assert len(found) == 3
    with pytest.raises(KeyError):
        found["south"]
    frame = found.frame("pandas")
    assert frame["group"].tolist() == ["east", "north", "west"]
    assert frame["curve.ici"].tolist() == [each.curve.ici for each in found.measures]
    assert str(found).splitlines()[0].split() == [
        *("group", "rows", "mean_forecast", "mean_outcome", "cutoff", "smooth", "calibration_in_the_large"),
    ]
    assert calibrant.measures.GroupMeasures.from_json(found.to_json()) == found
    with pytest.raises(ValueError, match="not as many as measures, or none"):
        dataclasses.replace(found, groups=("east",))
