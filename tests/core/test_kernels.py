"""The compiled loops give what the plain ones give."""

import ast
import inspect
import math
import resource
import runpy
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cli_cases import SOURCE

from calibrant.core import curve_kernels, group_kernels, kernels, row_kernels, threshold_kernels

RNG = np.random.default_rng(6)
FORECAST = np.sort(RNG.random(3_000))
CURVE = np.cumsum((RNG.random(3_000) < 0.9 * FORECAST) - FORECAST)
SIGNED = CURVE if CURVE[-1] >= 0 else -CURVE
GAP = np.diff(FORECAST)
OUTCOME = (RNG.random(3_000) < FORECAST).astype(np.uint8)
ROUNDER = kernels.rounder_of(1.0, 3_000)
LOW, HIGH = np.array([0.2, 0.5]), np.array([0.21, 0.6])
CELL = (FORECAST * 2**16).astype(np.uint16)
PART = (np.arange(2**16) // 64).astype(np.uint16)
GROUP = RNG.integers(0, 4, 3_000, dtype=np.uint8)
ROWS = OUTCOME.astype(float), FORECAST
PLACES = CELL, CELL[::-1].copy(), GROUP, 4, PART[::64] // 100, PART[::64] // 50, PART, PART, 6
STRETCHES = np.ones(3_000), OUTCOME.astype(float), FORECAST, FORECAST
KEY = RNG.integers(0, 2**64, 3_000, dtype=np.uint64)
BEGIN, END = np.array([0, 0, 1, 2]), np.array([1, 1, 2, 2])
LEVELS = np.arange(4) / 3
STEPS = (  # of 750 rows: outcomes, and three values each of which one is below the outcome
    np.tile(np.array([0, 1, 1, 2]), 750),
    np.tile(np.array([0, 2, 1, 1], dtype=np.uint8), 750),
    np.tile(np.array([True, False, True, True]), 750),
)

CASES: dict[str, Callable[[], tuple[Any, ...]]] = {
    "cell_totals": lambda: (FORECAST, OUTCOME, np.empty(0), 8.0, 0, 8, 0.0, 1.0, 0.0),
    "cell_totals fractions": lambda: (FORECAST, FORECAST[::-1].copy(), np.empty(0), 64.0, 16, 32, 0.25, 0.75, ROUNDER),
    "cell_totals weighted": lambda: (FORECAST, FORECAST[::-1].copy(), FORECAST, 64.0, 16, 32, 0.25, 0.75, ROUNDER),
    "rows_in_stretches": lambda: (FORECAST, LOW, HIGH, BEGIN, END, 4.0, 0, 0.0, 1.0),
    "lowest_tangents": lambda: (
        np.cumsum(OUTCOME, dtype=float),
        np.arange(3_000.0),
        FORECAST,
        np.arange(3_000),
    ),
    "best_stretch": lambda: (*STRETCHES, FORECAST, np.ones(3_000), 0.2, 0.7, True),
    "best_stretch downwards": lambda: (*STRETCHES, 1.0 - FORECAST, 1.0 + FORECAST, 0.2, 0.7, False),
    "stretched_cells": lambda: (FORECAST, 2**16),
    "grouped_residuals": lambda: (*ROWS, np.empty(0), CELL, GROUP, 4, PART, 6),
    "grouped_residuals weighted": lambda: (*ROWS, FORECAST[::-1].copy(), CELL, GROUP, 4, PART, 6),
    "grouped_products": lambda: (*ROWS, FORECAST**2, np.empty(0), *PLACES),
    "grouped_products weighted": lambda: (*ROWS, FORECAST**2, FORECAST[::-1].copy(), *PLACES),
    "prefix_ranges": lambda: (*STEPS, LEVELS, 750),
    "largest_runs": lambda: (*STEPS, 1.0 - LEVELS, -LEVELS, 750),
    "largest_columns": lambda: (np.round(FORECAST.reshape(-1, 5), 1), 1e-3),
    "mixed_keys": lambda: (FORECAST.view(np.uint64), KEY),
    "mixed_keys of one start": lambda: (FORECAST.view(np.uint64), KEY[:1]),
    "repeated_keys": lambda: (np.concatenate([KEY, KEY[::7], KEY[::21]]),),
    "repeated_keys of which most are the same": lambda: (np.repeat(KEY[:2], 4_500),),
    "smooth_fit": lambda: (SIGNED, GAP, True),
    "smooth_fit without the fit": lambda: (SIGNED, GAP, False),
    "smooth_weights": lambda: (SIGNED, GAP, curve_kernels.smooth_fit.plain(SIGNED, GAP, True)[1]),
    "swing_events": lambda: (np.concatenate([[0.0], CURVE]),),
}


@pytest.mark.parametrize("name", CASES)
def test_compiled_equals_plain(name, monkeypatch):
    homes = kernels, curve_kernels, row_kernels, threshold_kernels
    kernel = next(getattr(home, name.split()[0]) for home in homes if hasattr(home, name.split()[0]))
    with np.errstate(over="ignore"):  # of keys, which wrap
        plain = kernel.plain(*CASES[name]())
    monkeypatch.setattr(kernels, "PLAIN_LIMIT", 0)
    monkeypatch.setattr(kernel, "patience", 0)
    same(plain, kernel(*CASES[name]()))
    if kernel.other is not None:
        same(plain, kernel.other(*CASES[name]()))


def same(one, other):
    """To the last bit: which of them runs depends on what ran before."""
    for each, like in zip(*(found if isinstance(found, tuple) else (found,) for found in (one, other)), strict=True):
        np.testing.assert_array_equal(each, like)


def counted(how, places, tables, first_number, bits, fine, forecast=FORECAST, outcome=OUTCOME):
    totals = row_kernels.no_counts(tables << bits if first_number.size == 0 else 2**10)
    place = np.empty(0, dtype=np.uint16) if places is None else places
    assert how(forecast, outcome, place, first_number, bits, fine, totals)
    return totals


ALL_CELLS = np.empty(0, dtype=np.int32)
SOME_CELLS = np.where(np.arange(64) % 3 == 0, 16 * np.arange(64), -1).astype(np.int32)
OF_PLACES = (GROUP % 3).astype(np.uint16)


@pytest.mark.parametrize(
    "asked",
    [
        (None, 1, ALL_CELLS, 3, 3),
        (OF_PLACES, 3, ALL_CELLS, 5, 5),
        (OF_PLACES, 2, ALL_CELLS, 5, 5),
        (None, 1, SOME_CELLS, 6, 10),
        (OF_PLACES, 2, SOME_CELLS, 5, 9),
    ],
    ids=["all cells", "of groups", "of some groups", "some cells cut finer", "some of some groups"],
)
def test_rows_are_counted_exactly(asked):
    places, tables, first_number, bits, fine = asked
    kernel = row_kernels.counted_cells
    totals = counted(kernel.plain, *asked)
    same(totals, counted(kernel.run_compiled, *asked))
    finer = np.minimum((FORECAST * 2**fine).astype(np.int64), 2**fine - 1)
    number = finer >> (fine - bits)
    if places is not None:
        number = np.where(places < tables, number + (places.astype(np.int64) << bits), -1)
    if first_number.size:
        found = np.where(number >= 0, first_number[number], -1)
        number = np.where(found >= 0, found + (finer & ((1 << (fine - bits)) - 1)), -1)
    unit = 2.0 ** (row_kernels.UNIT_BITS + fine)
    for cell in range(len(totals)):
        own = number == cell
        p, y, edge = FORECAST[own], OUTCOME[own].astype(float), finer[own] / 2**fine
        rows, events, first, second, low, high, first_upper, second_upper = totals[cell].tolist()
        assert (rows, events) == (own.sum(), y.sum())
        if rows:
            assert (low, high) == (int(p.min().view(np.int64)), int(p.max().view(np.int64)))
            above = first + first_upper * 2**row_kernels.HALF_BITS
            assert above == sum(map(int, (p - edge) * unit))
            square = second + second_upper * 2**row_kernels.HALF_BITS
            assert square / unit == pytest.approx(float((np.square(y - p) - np.square(y - edge)).sum()), rel=1e-9)


def test_sums_of_one_cell_have_room_for_many_rows():
    rows = 300_000
    forecast, outcome = np.full(rows, 0.5 - 2.0**-54), np.ones(rows, dtype=np.uint8)
    totals = row_kernels.no_counts(2**16)
    for _ in range(4):
        assert row_kernels.counted_cells.run_compiled(
            forecast, outcome, np.empty(0, dtype=np.uint16), ALL_CELLS, 16, 16, totals
        )
    held = totals[2**15 - 1]
    above = 0.5 - 2.0**-54 - (0.5 - 2.0**-16)
    assert held[0] == held[1] == 4 * rows
    assert int(held[2]) + (int(held[6]) << row_kernels.HALF_BITS) == 4 * rows * int(above * 2.0**70)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, -5e-324, np.nextafter(1.0, 2.0)])
@pytest.mark.parametrize("compiled", [False, True])
def test_rows_that_cannot_be_counted_are_said_to_be(wrong, compiled):
    kernel = row_kernels.counted_cells
    how = kernel.run_compiled if compiled else kernel.plain
    place = np.empty(0, dtype=np.uint16)
    forecast, outcome = FORECAST.copy(), OUTCOME.copy()
    outcome[-1] = 2
    assert not how(forecast, outcome, place, ALL_CELLS, 4, 4, row_kernels.no_counts(16))
    outcome[-1], forecast[700] = 1, wrong
    assert not how(forecast, outcome, place, ALL_CELLS, 4, 4, row_kernels.no_counts(16))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["events", "bytes", "fractions"])
@pytest.mark.parametrize("places", [(1.0, 0, 1, 0.0, 1.0), (256.0, 64, 64, 0.25, 0.5), (2.0**30, 0, 40, 0.0, 2.0**-25)])
def test_numpy_adds_up_cells_as_the_loop_does(weighted, kind, places):
    rng = np.random.default_rng([weighted, len(kind), places[2]])
    rows = 2**16 + 3_000  # more than go through at once
    forecast = rng.choice([rng.random(rows), np.round(rng.random(rows), 2), 2.0**-26 * rng.random(rows)])
    outcome = rng.random(rows) if kind == "fractions" else rng.random(rows) < forecast
    outcome = outcome.astype(np.uint8 if kind == "bytes" else np.float64)
    weight = rng.lognormal(sigma=9.0, size=rows) * (rng.random(rows) < 0.9) if weighted else np.empty(0)
    rounder = kernels.rounder_of(weight.max(initial=1.0), rows) if weighted or kind == "fractions" else 0.0
    given = forecast, outcome, weight, *places, rounder
    found = kernels.cell_totals_in_numpy(*given)
    same(kernels.cell_totals.run_compiled(*given), found)
    inside = (forecast >= places[3]) & (forecast <= places[4]) & ((weight > 0.0) if weighted else True)
    residual = (outcome - forecast) * (weight if weighted else 1.0)
    assert found[:, 0].sum() == inside.sum()
    assert math.fsum(found[:, 1]) == pytest.approx(math.fsum(residual[inside]), rel=1e-15, abs=1e-9)


def test_rounded_numbers_add_up_exactly():
    rng = np.random.default_rng(5)
    for largest in (1.0, 1.5, 3e-300, 7e200):
        values = largest * (2.0 * rng.random(1_000) - 1.0)
        values[:500] = largest
        rounder = kernels.rounder_of(largest, values.size)
        rounded = (values + rounder) - rounder
        assert np.cumsum(rounded)[-1] == math.fsum(rounded)
        assert np.abs(values - rounded).max() <= 1e-12 * largest


@pytest.mark.parametrize("seed", range(30))
def test_lists_fit_as_the_loop_does(seed):
    rng = np.random.default_rng(seed)
    forecast = np.unique(np.round(rng.random(1 + 20 * seed), 2 + seed % 7))
    curve = np.cumsum((rng.random(forecast.size) < forecast ** (1 + seed % 2)) - forecast)
    curve = np.round(curve, 1 + seed % 9)  # with many that are equal
    curve = curve if curve[-1] >= 0.0 else -curve
    for keep_fit in (False, True):
        given = curve, np.diff(forecast), keep_fit
        same(curve_kernels.smooth_fit.plain(*given), curve_kernels.smooth_fit_by_lists(*given))


@pytest.mark.parametrize("law", ["calibrated", "steadily off", "with ties", "turning", "rare events", "weighted"])
@pytest.mark.parametrize("wide", [False, True])
def test_joining_points_of_a_curve_keeps_the_cost_of_its_fit(law, wide, monkeypatch):
    monkeypatch.setattr(curve_kernels, "_FEW", 40)
    monkeypatch.setattr(curve_kernels, "_WIDE_FROM", 2_000 if wide else 2**18)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        forecast = np.unique(rng.random(3_000) ** (6.0 if law == "rare events" else 1.0))
        if law == "with ties":
            forecast = np.unique(np.round(forecast, 3))
        chance = {"steadily off": forecast**1.5, "turning": 0.5 + 0.4 * np.sin(40.0 * forecast)}.get(law, forecast)
        residual = (rng.random(forecast.size) < chance) - forecast
        curve = np.cumsum(residual * (rng.lognormal(sigma=2.0, size=residual.size) if law == "weighted" else 1.0))
        for each in (curve, curve - curve[-1]):  # the second ends at 0, between which and 0 nothing is left
            rising = each if each[-1] >= 0.0 else -each
            exact, _ = curve_kernels.smooth_fit.run_compiled(rising, np.diff(forecast), False)
            assert curve_kernels.smooth_cost(rising, np.diff(forecast)) == pytest.approx(exact, rel=1e-12, abs=1e-12)


def test_a_loop_is_compiled_when_so_many_rows_went_through_another_that_it_pays():
    kernel = kernels.Kernel(lambda _: "plain")
    kernel.otherwise(10)(lambda _: "numpy")
    kernel._compiled = lambda _: "compiled"
    assert [kernel(np.ones(4)) for _ in range(4)] == ["numpy", "numpy", "compiled", "compiled"]


def test_no_loop_assigns_to_a_slice():
    """Numba takes seconds to compile the first assignment to a slice, and a tenth of one for a loop over it."""
    homes = curve_kernels, group_kernels, kernels, row_kernels, threshold_kernels
    for home in homes:
        for node in ast.walk(ast.parse(inspect.getsource(home))):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                sliced = any(isinstance(part, ast.Slice) for part in ast.walk(node.slice))
                assert not sliced, f"{home.__name__}, line {node.lineno}"


def test_short_inputs_run_compiled_once_long_ones_did():
    runs = []

    def first(values, factor):
        runs.append(factor)
        return values[0] * factor

    kernel, long = kernels.Kernel(first), np.ones(kernels.PLAIN_LIMIT + 1)
    kernel._compiled = lambda values, factor: values[0] * factor
    assert kernel(long[:3], 2.0) == 2.0
    assert kernel(long, 3.0) == 3.0
    assert kernel(long[:3], 4.0) == 4.0
    assert kernel(long[:3].astype(np.int64), 5.0) == 5.0  # there is no version for those yet
    assert runs == [2.0, 5.0]


def test_repeated_keys_are_found_once_each():
    found = row_kernels.repeated_keys(*CASES["repeated_keys"]())
    assert np.sort(found).tolist() == np.sort(KEY[::7]).tolist()
    assert row_kernels.repeated_keys(KEY).size == 0


def test_stretches_are_found():
    inside = kernels.rows_in_stretches(*CASES["rows_in_stretches"]())
    expected = ((FORECAST >= 0.2) & (FORECAST <= 0.21)) | ((FORECAST >= 0.5) & (FORECAST <= 0.6))
    assert inside.tolist() == expected.tolist()


# --- The cache on disk ------------------------------------------------------------------------------------------------

LOOP = """
from calibrant.core.kernels import Kernel

@Kernel
def total(values):
    found = 0.0
    for value in values:
        found += {factor} * value
    return found
"""


@pytest.fixture
def loop(tmp_path, monkeypatch):
    """Run a small compiled loop as a new process would: its sum, and how often it came out of the cache."""
    import numba

    monkeypatch.setattr(kernels, "PLAIN_LIMIT", 0)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))

    def run(*, factor=1, most_bytes=resource.RLIM_INFINITY):
        source = tmp_path / "loop.py"
        text = LOOP.format(factor=factor)
        if not source.exists() or source.read_text() != text:  # some versions of numba go by the time of the file
            source.write_text(text)
        kernel = runpy.run_path(str(source))["total"]
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, before[1]))
        try:
            found = kernel(np.array([1.0, 2.0, 4.0]))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        return found, len(kernel.compiled().stats.cache_hits)

    return run


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", ["empty", "rubbish", "halved"])
def test_a_damaged_cache_is_mended_on_the_way(loop, tmp_path, suffix, damage):
    assert loop() == (7.0, 0)
    assert loop() == (7.0, 1)
    (file,) = tmp_path.rglob(f"*.{suffix}")
    whole = file.read_bytes()
    file.write_bytes({"empty": b"", "rubbish": b"rubbish", "halved": whole[: len(whole) // 2]}[damage])
    assert loop() == (7.0, 0)
    assert loop() == (7.0, 0)  # written anew, which the next one finds
    assert loop() == (7.0, 1)


def test_a_full_disk_stops_nothing_and_leaves_no_list_of_what_was_not_written(loop, tmp_path):
    assert loop(most_bytes=0) == (7.0, 0)
    assert list(tmp_path.rglob("*.nbi")) == []
    assert loop() == (7.0, 0)
    assert loop(factor=10, most_bytes=2000) == (70.0, 0)  # room for the list, which names the file of the loop before
    assert loop(factor=10) == (70.0, 0)
    assert loop(factor=10) == (70.0, 1)


@pytest.mark.parametrize("place", ["a file", "/dev/null/cache", "/proc/cache"])
def test_a_cache_that_cannot_be_made_stops_nothing(loop, tmp_path, monkeypatch, place):
    import numba

    (tmp_path / "a file").write_text("")
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / place))
    assert loop() == (7.0, 0)


def test_without_a_home_and_beside_code_that_cannot_be_written_it_compiles_in_memory():
    """As from an archive: nothing can be written beside the code, and the user has no folder."""
    program = """
    import numba.core.caching as caching
    import numpy as np
    from calibrant.core import curve_kernels, group_kernels, kernels, row_kernels
    def refuse(self):
        raise PermissionError(13, "Permission denied")
    caching._CacheLocator.ensure_cache_path = refuse
    kernels.PLAIN_LIMIT = 0
    loop = curve_kernels.swing_events
    print(loop(np.array([0.0, 1.0, 0.5]))[0].tolist(), loop.compiled().stats.cache_path)
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={"PYTHONPATH": SOURCE, "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.stdout, found.stderr) == ("[0.5] None\n", "")


def test_an_error_of_a_loop_is_raised_and_not_taken_for_one_of_the_cache(monkeypatch):
    def first(values):
        if values[0] < 0.0:
            raise ValueError("below zero")
        return values[0]

    monkeypatch.setattr(kernels, "PLAIN_LIMIT", 0)
    kernel = kernels.Kernel(first)
    with pytest.raises(ValueError, match="below zero"):
        kernel(np.array([-1.0]))
    assert kernel(np.array([1.0])) == 1.0
