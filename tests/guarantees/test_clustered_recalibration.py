"""Guarantees of recalibrated forecasters hold for rows in clusters, where those for independent rows fail.

Forecasts and the laws of clusters are fixed; outcomes are drawn, and a map is fitted to them. With few clusters all
outcomes are looked at, so that the probability of a miss is exact.
"""

import itertools
from typing import Any

import numpy as np
import pytest
from simulated import allowed, runs_needed

from calibrant import GuardedRecalibrator, IsotonicRecalibrator, PlattRecalibrator, Tally, cutoff_calibration_error
from calibrant.certificates.margins import constant_margin, range_margin
from calibrant.measures.savings import largest_saving
from calibrant.repairs import ConstantRecalibrator
from calibrant.repairs.clustered import Layers
from calibrant.rows.savings import EVERY_THRESHOLD

DELTAS = (0.5, 0.2, 0.05)
SIZES = {
    "equal": [3] * 10,
    "pairs": [2] * 12,
    "single rows": [1] * 12,
    "uneven": [1, 1, 2, 2, 3, 5, 8],
    "one large": [8] + [1] * 9,
    "two": [4, 4],
}


def ranges(deviations):
    """The range of the sums of outcome minus chance, in the order of the rows."""
    sums = np.cumsum(deviations, axis=-1)
    return np.maximum(sums.max(axis=-1), 0.0) - np.minimum(sums.min(axis=-1), 0.0)


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("chance", [0.05, 0.3, 0.5])
def test_the_margin_covers_clusters_whose_rows_are_all_alike_or_opposite(name, chance):
    sizes = np.array(SIZES[name])
    codes, rows = np.repeat(np.arange(sizes.size), sizes), sizes.sum()
    coins = np.array(list(itertools.product((0.0, 1.0), repeat=sizes.size)))
    weight = np.where(coins == 1.0, chance, 1.0 - chance).prod(axis=1)
    rng = np.random.default_rng(rows)
    for trial in range(6):
        order = rng.permutation(rows) if trial else np.arange(rows)  # clusters next to each other, then mixed
        opposite = rng.random(rows) < 0.5 * (trial % 2)  # rows that have an event where the others have none
        outcome = np.where(opposite, 1.0 - coins[:, codes[order]], coins[:, codes[order]])
        deviations = outcome - np.where(opposite, 1.0 - chance, chance)
        width, shift = ranges(deviations) / rows, np.abs(deviations.sum(axis=1)) / rows
        for delta in DELTAS:
            assert weight[width > Layers(sizes).margin(delta) + 1e-12].sum() <= delta
            assert weight[shift > Layers(sizes).mean_margin(delta) + 1e-12].sum() <= delta


def test_the_sum_of_layers_that_fail_together_stays_within_the_factor_e():
    """Layers of one law that are all alike are the worst that the first steps of the proof allow for."""
    rng = np.random.default_rng(0)
    walks = ranges(rng.choice([-0.5, 0.5], (4000, 400)))
    for layers in (1, 2, 3, 50):
        margin = Layers(np.full(400, layers)).margin(0.05) * 400  # each layer adds the same range
        assert (walks > margin).mean() <= 0.05


def test_clusters_of_one_row_have_the_margins_of_independent_rows():
    for rows in (3, 40, 10_000):
        layers = Layers(np.ones(rows, dtype=np.int64))
        for delta in DELTAS:
            expected = min(range_margin(rows, delta), 1.0)
            assert min(layers.margin(delta), 1.0) == pytest.approx(expected, rel=1e-12)
            assert layers.mean_margin(delta) == pytest.approx(constant_margin(rows, delta), rel=1e-12)


def drawn(kind, codes, rng):
    """Outcomes of clusters, and the chance of each row."""
    count, rows = int(codes.max()) + 1, codes.size
    if kind == "alike":
        return rng.integers(0, 2, count)[codes], 0.5
    if kind == "rare shocks":
        return np.where(rng.random(count)[codes] < 0.05, 1, rng.random(rows) < 0.1), 0.05 + 0.95 * 0.1
    level = rng.beta(1.0, 1.0, count)[codes]  # a correlation of a third
    return (rng.random(rows) < level).astype(int), 0.5


LAYOUTS = {
    "equal": np.repeat(np.arange(60), 10),
    "heavy": np.repeat(np.arange(100), np.maximum(1, (40 / np.arange(1, 101)).astype(int))),
}
MAPS = {
    "isotonic": IsotonicRecalibrator(),
    "Platt": PlattRecalibrator(),
    "constant": ConstantRecalibrator(),
    "guarded": GuardedRecalibrator(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["alike", "rare shocks", "correlated"])
def test_recalibrated_forecasts_of_clusters_keep_what_is_guaranteed(layout, kind):
    codes = LAYOUTS[layout]
    rng = np.random.default_rng(codes.size)
    forecast = (np.arange(codes.size) + 0.5) / codes.size  # rows of a cluster have forecasts near each other
    runs, level = 60, 0.9
    missed = dict.fromkeys(MAPS, 0)
    for _ in runs_needed(missed, runs, allowed(runs, 0.1)):
        outcome, chance = drawn(kind, codes, rng)
        for name, recalibrator in MAPS.items():
            fitted = recalibrator.fit(forecast, outcome)
            truth = Tally.from_arrays(np.full(codes.size, chance), fitted.predict(forecast))
            errors: dict[Any, float] = {
                "cutoff": cutoff_calibration_error(truth),
                "risk_gap": largest_saving(truth, EVERY_THRESHOLD).saving,
            }
            asked: Any = {"target": "these forecasts", "cluster": codes}
            missed[name] += any(
                error > fitted.guarantee(level, measure=measure, **asked).upper + 1e-12
                for measure, error in errors.items()
            )
    assert max(missed.values()) <= allowed(runs, 0.1)


def test_guarantees_for_independent_rows_fail_for_clusters():
    codes = LAYOUTS["equal"]
    rng = np.random.default_rng(1)
    forecast = (np.arange(codes.size) + 0.5) / codes.size
    missed = {"these forecasts": 0, "constant": 0, "clusters": 0}
    for _ in range(200):
        outcome, _chance = drawn("alike", codes, rng)
        fitted = IsotonicRecalibrator().fit(forecast, outcome)
        error = cutoff_calibration_error(np.full(codes.size, 0.5), fitted.predict(forecast))
        missed["these forecasts"] += error > fitted.guarantee(target="these forecasts").upper
        missed["clusters"] += error > fitted.guarantee(target="these forecasts", cluster=codes).upper
        constant = ConstantRecalibrator().fit(forecast, outcome)
        missed["constant"] += abs(constant.constant_ - 0.5) > constant.guarantee(0.95).upper
    assert missed["these forecasts"] > 100  # at a nominal 5%
    assert missed["constant"] > 40
    assert missed["clusters"] <= allowed(200, 0.05)


def test_neighbours_that_depend_on_each_other_have_layers_of_their_own():
    """Four clusters of three rows share a coin: serial=3 covers them, and without it the margin is too small."""
    coins = np.random.default_rng(2).integers(0, 2, (4000, 15))
    width = ranges(np.repeat(coins, 12, axis=1) - 0.5) / 180
    sizes = np.full(60, 3)
    assert (width > Layers(sizes, serial=3).margin(0.05)).mean() <= 0.05
    assert Layers(sizes, serial=3).margin(0.05) == pytest.approx(2.0 * Layers(sizes).margin(0.05), rel=1e-12)
    assert (width > Layers(sizes).margin(0.05)).mean() > 0.1
