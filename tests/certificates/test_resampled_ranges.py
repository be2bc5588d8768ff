"""The resamples of the exact test: their law is that of drawing every row, however rows are gathered into blocks."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from scipy.stats import binom, fisher_exact

from calibrant.certificates import resampled_ranges
from calibrant.certificates.resampled_ranges import _Blocks, count_reaching

RESAMPLES = 4_000


def uneven(rng, size):
    """Rows of distinct forecasts: many of one, some of several, and one of very many."""
    counts = rng.choice([1, 1, 1, 2, 3, 7], size=size)
    counts[size // 3] = 90
    return counts


RNG = np.random.default_rng(20)
LAWS = {
    "distinct": (np.ones(700, dtype=int), np.sort(RNG.random(700))),
    "tied": (uneven(RNG, 150), np.sort(RNG.random(150))),
    "rare": (np.ones(900, dtype=int), np.sort(RNG.random(900)) ** 5),
    "nearly certain": (np.ones(900, dtype=int), 1.0 - np.sort(RNG.random(900))[::-1] ** 5),
    "with 0 and 1": (np.array([40, *[1] * 300, 40]), np.array([0.0, *np.linspace(0.2, 0.8, 300), 1.0])),
    "tiny": (np.ones(400, dtype=int), np.sort(10.0 ** RNG.uniform(-300.0, 0.0, 400))),
    "few of many rows": (np.array([500, 2, 800]), np.array([0.2, 0.5, 0.7])),
    "one": (np.array([3]), np.array([0.4])),
}


def range_of(rows, forecast, outcome):
    """The range of a residual curve that starts at 0 and is looked at where a forecast ends."""
    curve = np.append(0.0, np.cumsum(outcome - np.repeat(forecast, rows))[np.cumsum(rows) - 1])
    return curve.max() - curve.min()


def row_by_row(rows, forecast, resamples, rng):
    chance = np.repeat(forecast, rows)
    return np.array([range_of(rows, forecast, rng.random(chance.size) < chance) for _ in range(resamples)])


def counted(rows, forecast, least, seed, resamples=RESAMPLES):
    expected = np.cumsum(rows * forecast)
    return count_reaching(rows, forecast, expected, least, resamples, np.random.default_rng(seed), False)


@pytest.mark.parametrize("most", [1, 5, 32])
@pytest.mark.parametrize("name", LAWS)
def test_ranges_have_the_law_of_drawing_every_row(name, most, monkeypatch):
    monkeypatch.setattr(resampled_ranges, "_MOST_ROWS", most)
    rows, forecast = LAWS[name]
    plain = row_by_row(rows, forecast, RESAMPLES, np.random.default_rng(1))
    for seed, share in enumerate((0.02, 0.3, 0.7, 0.97)):
        least = float(np.quantile(plain, share)) - 1e-9
        expected = int(np.count_nonzero(plain >= least))
        found = counted(rows, forecast, least, seed)
        table = [[found, RESAMPLES - found], [expected, RESAMPLES - expected]]
        assert fisher_exact(table).pvalue > 1e-6


@pytest.mark.parametrize(
    ("rows", "forecast"), [([1] * 9, np.linspace(0.1, 0.95, 9)), ([2, 1, 4, 2], [0.1, 0.3, 0.6, 0.9])]
)
@pytest.mark.parametrize("most", [1, 3, 9])
def test_all_possible_outcomes_occur_as_often_as_they_should(rows, forecast, most, monkeypatch):
    monkeypatch.setattr(resampled_ranges, "_MOST_ROWS", most)
    monkeypatch.setattr(resampled_ranges, "_OF_ROOT", most)
    rows, forecast = np.array(rows), np.asarray(forecast)
    chance = np.repeat(forecast, rows)
    law: dict[float, float] = {}
    for outcome in itertools.product([0, 1], repeat=chance.size):
        reach = round(range_of(rows, forecast, np.array(outcome)), 9)
        law[reach] = law.get(reach, 0.0) + math.prod(np.where(outcome, chance, 1.0 - chance))
    for seed, least in enumerate(sorted(law)[:: max(1, len(law) // 7)]):
        truth = sum(each for reach, each in law.items() if reach >= least)
        found = counted(rows, forecast, least - 1e-8, seed, 20_000)
        assert binom.ppf(1e-6, 20_000, truth) <= found <= binom.isf(1e-6, 20_000, truth)


@pytest.mark.parametrize("name", LAWS)
def test_no_curve_leaves_the_ends_of_a_block_by_more_than_is_allowed_for(name, monkeypatch):
    monkeypatch.setattr(resampled_ranges, "_OF_ROOT", 32.0)
    rows, forecast = LAWS[name]
    expected = np.cumsum(rows * forecast)
    blocks = _Blocks(rows, forecast, expected)
    rng, within = np.random.default_rng(2), 0.0
    for first, last, above, below in zip(blocks.starts, blocks.ends, blocks.above, blocks.below, strict=True):
        size, chance = rows[first : last + 1], np.repeat(forecast[first : last + 1], rows[first : last + 1])
        for k in range(chance.size + 1):  # the first k rows are events, or the last, or any
            for outcome in (
                np.arange(chance.size) < k,
                np.arange(chance.size) >= chance.size - k,
                rng.permutation(chance.size) < k,
            ):
                curve = np.append(0.0, np.cumsum(outcome - chance)[np.cumsum(size) - 1])
                assert curve.max() - max(curve[0], curve[-1]) <= above
                assert min(curve[0], curve[-1]) - curve.min() <= below
                within = max(within, curve.max() - max(curve[0], curve[-1]))
    if name == "distinct":
        assert within > 0.95 * blocks.above.max()  # the allowance is no larger than it has to be


def test_a_number_of_events_is_drawn_to_the_last_bit(monkeypatch):
    """Numbers in a bucket that two numbers of events share are told apart: with two buckets nearly all are."""
    rows, forecast = LAWS["distinct"]
    for buckets in (2, 2**12):
        monkeypatch.setattr(resampled_ranges, "_BUCKETS", buckets)
        blocks = _Blocks(rows, forecast, np.cumsum(rows * forecast))
        drawn = blocks._draw_events(blocks.count // 2, np.random.default_rng(3), 200_000)
        law = np.diff(blocks.law[blocks.count // 2], prepend=0.0)
        found = np.bincount(drawn, minlength=law.size)
        assert found.sum() == 200_000
        for number, chance in zip(found, law, strict=True):
            assert binom.ppf(1e-7, 200_000, chance) <= number <= binom.isf(1e-7, 200_000, chance)


def test_parts_of_resamples_and_blocks_have_the_same_law(monkeypatch):
    rows, forecast = LAWS["distinct"]
    least = float(np.quantile(row_by_row(rows, forecast, 2_000, np.random.default_rng(4)), 0.6))
    whole = counted(rows, forecast, least, 5, 20_000)
    for name in ("_DRAWN_AT_ONCE", "_LEVELS_AT_ONCE", "_BLOCKS_AT_ONCE"):
        monkeypatch.setattr(resampled_ranges, name, {"_BLOCKS_AT_ONCE": 7}.get(name, 20_000))
        found = counted(rows, forecast, least, 6, 20_000)
        assert fisher_exact([[whole, 20_000 - whole], [found, 20_000 - found]]).pvalue > 1e-6


def test_memory_stays_bounded():
    forecast, rows = np.linspace(0.0, 1.0, 20_000), np.ones(20_000, dtype=int)
    tracemalloc.start()
    counted(rows, forecast, 90.0, 7, 3_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40e6  # the laws of all blocks take a third; all draws at once would be 60 MB, as numbers 480 MB
