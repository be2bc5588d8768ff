"""Time calibrant beside simpler code, other packages and what the machine allows; print tables and targets.

Absolute times say little about another machine, so every target is a ratio between calls that take turns: a round runs
each of them once, and the best of all rounds counts. Nothing is asserted: a busy machine is no bug.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import calibrant
from calibrant import experiments

FloatArray = npt.NDArray[np.float64]
Call = Callable[[], Any]
Value = Callable[[Any], float]

FULL_ROWS = 10_000_000
FEWEST_ROWS = 10_000
BINS = 15
LEAST_ROUNDS = 5
LEAST_SECONDS = 1.0  # short calls get more rounds
MOST_SECONDS = 20.0  # and long ones fewer
TOO_SLOW_SECONDS = 60.0
FRESH_PROCESSES = 10
SEED = 20250
AUTHORS_SECONDS = 18 * 60 + 28.0  # as the progress bar of their public notebook shows, on a machine of their own
REPRODUCE_SECONDS = 60.0  # "under a minute", as the documentation says
SHIFTS = (("calibrated", 0.0), ("miscalibrated", 0.1))


@dataclass(frozen=True)
class Contender:
    """One call that takes part in a race; ``value`` turns what it returns into a number, off the clock."""

    name: str
    call: Call
    value: Value | None = float
    once: bool = False  # so slow that one call, without a warm-up, must do


@dataclass(frozen=True)
class Entry:
    """One line of a table: best time, peak memory above that before the call, and the answer."""

    data: str
    rows: int
    name: str
    seconds: float
    extra_bytes: int
    value: float | None


@dataclass(frozen=True)
class Absent:
    """A line for a package that could not take part, and why."""

    rows: int
    name: str
    why: str


@dataclass(frozen=True)
class Target:
    """What the project set out to reach, and what this run measured."""

    aim: str
    measured: str
    met: bool


@dataclass(frozen=True)
class Peer:
    """Another package's version of a measure; ``prepare`` imports it and puts the data into the form it takes."""

    name: str
    prepare: Callable[[FloatArray, FloatArray], tuple[Call, Value]]


class Bench:
    """What one run collects: tables in the order of their making, and targets for the end."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.tables: dict[str, list[Entry | Absent]] = {}
        self.power: dict[str, dict[str, int]] = {}
        self.processes: dict[str, float] = {}
        self.targets: list[Target] = []

    def race(self, table: str, data: str, rows: int, contenders: Sequence[Contender]) -> list[Entry]:
        """Let contenders take turns, ours first, and add their lines to a table."""
        progress(f"{table}: {data}, {rows:,} rows")
        entries = race(data, rows, contenders)
        self.tables.setdefault(table, []).extend(entries)
        return entries

    def want_at_most(self, aim: str, ratio: float, limit: float) -> None:
        self.targets.append(Target(f"{aim}: at most {limit:g}x the time", f"{ratio:.2f}x the time", ratio <= limit))

    def want_faster(self, aim: str, ratio: float, limit: float) -> None:
        self.targets.append(Target(f"{aim}: at least {limit:,g}x faster", comparison(ratio), ratio >= limit))


def main() -> None:
    parser = argparse.ArgumentParser(description="Time calibrant beside simpler code and other packages.")
    parser.add_argument(
        "--rows",
        type=int,
        default=FULL_ROWS,
        help=f"largest number of rows, at least {FEWEST_ROWS:,}; smaller cases shrink along (default {FULL_ROWS:,})",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every number to this file")
    options = parser.parse_args()
    if options.rows < FEWEST_ROWS:
        parser.error(f"--rows must be at least {FEWEST_ROWS}")

    environment = describe_environment()
    print(", ".join(f"{name} {text}" for name, text in environment.items()))
    print(f"Extra memory is {MEMORY_METHOD}.")
    bench = Bench(options.rows)
    for section in (
        cutoff,
        cutoff_weighted,
        certificates,
        calibration_tests,
        recalibrators,
        smooth,
        overview,
        decisions,
        simulation,
        binned_peers,
        cutoff_peers,
        smooth_peers,
    ):
        shown = len(bench.tables)
        section(bench)
        for title in list(bench.tables)[shown:]:
            print_race(title, bench.tables[title])
    power(bench)
    print_table(
        "Rows that certify a calibrated forecaster with probability 0.9 (95% confidence)",
        ["what", *CERTIFIED],
        [[method, *(f"{rows[case]:,}" for case in CERTIFIED)] for method, rows in bench.power.items()],
    )
    fresh_processes(bench)
    print_table("Fresh processes", ["what", "time"], [[name, duration(t)] for name, t in bench.processes.items()])
    print_targets(bench)
    if options.json:
        report = {
            "environment": environment,
            "extra memory": MEMORY_METHOD,
            "rows": bench.rows,
            "tables": {title: [asdict(line) for line in lines] for title, lines in bench.tables.items()},
            "rows that certify": bench.power,
            "fresh processes": bench.processes,
            "targets": [asdict(target) for target in bench.targets],
        }
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


# The sections, in the order they run.


def cutoff(bench: Bench) -> None:
    """Cutoff error against sorting and against reading the data once."""
    most_extra, slowest = (0, ""), (0.0, "")
    for name, forecast, outcome in distributions(bench.rows):
        for y_true in (outcome, outcome.astype(bool)):
            label = f"{name}, y as {y_true.dtype}"
            ours, argsort, packed, copy = bench.race(
                "Cutoff error from arrays",
                label,
                bench.rows,
                [
                    Contender("calibrant", partial(calibrant.cutoff_calibration_error, y_true, forecast)),
                    Contender("argsort + cumsum", partial(argsort_cutoff, y_true, forecast)),
                    Contender("packed sort", partial(packed_cutoff, y_true, forecast)),
                    memory_copy(forecast, y_true),
                ],
            )
            if name == "uniform":
                bench.want_faster(f"Cutoff error against argsort + cumsum, {label}", argsort.seconds / ours.seconds, 10)
                bench.want_at_most(f"Cutoff error against one memory copy, {label}", ours.seconds / copy.seconds, 10)
            most_extra = max(most_extra, (ours.extra_bytes, label))
            slowest = max(slowest, (ours.seconds / packed.seconds, label))
    extra, label = most_extra
    bench.targets.append(
        Target(f"Cutoff error, most extra memory ({label}): at most 100 MB", megabytes(extra), extra <= 100e6)
    )
    ratio, label = slowest
    bench.want_at_most(f"Cutoff error against packed sort, slowest ({label})", ratio, 1.2)


def cutoff_weighted(bench: Bench) -> None:
    """Cutoff error where a row does not fit one sort key."""
    forecast, _ = uniform(bench.rows)
    random = np.random.default_rng(SEED + 1)
    outcome, weight = random.random(bench.rows), random.exponential(size=bench.rows)
    ours, argsort, _ = bench.race(
        "Cutoff error with weights and fractional outcomes",
        "uniform",
        bench.rows,
        [
            Contender(
                "calibrant", partial(calibrant.cutoff_calibration_error, outcome, forecast, sample_weight=weight)
            ),
            Contender("argsort + cumsum", partial(argsort_cutoff, outcome, forecast, weight)),
            memory_copy(forecast, outcome, weight),
        ],
    )
    bench.want_faster("Cutoff error with weights and fractions against argsort", argsort.seconds / ours.seconds, 3)


def certificates(bench: Bench) -> None:
    """Certificates against sorting the data once."""

    def upper(certificate: Any) -> float:
        return float(certificate.upper)

    slowest = (0.0, "")
    for name, forecast, outcome in distributions(bench.rows):
        ours, packed, _ = bench.race(
            "Adaptive certificate (value: upper limit)",
            name,
            bench.rows,
            [
                Contender("calibrant", partial(calibrant.certify, outcome, forecast, max_error=0.01), upper),
                Contender("packed sort", partial(packed_cutoff, outcome, forecast), value=None),
                memory_copy(forecast, outcome),
            ],
        )
        slowest = max(slowest, (ours.seconds / packed.seconds, name))
    ratio, name = slowest
    bench.want_at_most(f"adaptive certificate against packed sort, slowest ({name})", ratio, 3)
    slowest = (0.0, "")
    for name, forecast, outcome in distributions(bench.rows // 100):
        exact = partial(calibrant.certify, outcome, forecast, max_error=0.01, method="exact")
        ours, _ = bench.race(
            "Exact certificate (value: upper limit)",
            name,
            forecast.size,
            [
                Contender("calibrant", exact, upper),
                Contender("packed sort", partial(packed_cutoff, outcome, forecast), value=None),
            ],
        )
        slowest = max(slowest, (ours.seconds, name))
    seconds, name = slowest
    aim = f"exact certificate of {bench.rows // 100:,} rows, slowest ({name}): at most 5 s"
    bench.targets.append(Target(aim, duration(seconds), seconds <= 5.0))


def calibration_tests(bench: Bench) -> None:
    """The exact test of calibration against drawing outcomes with numpy."""
    forecast, outcome = uniform(bench.rows // 10)
    resamples = 1000
    test = partial(calibrant.calibration_test, method="exact", n_resamples=resamples, rng=SEED)
    ours, numpy = bench.race(
        f"Exact test of calibration, {resamples:,} resamples (value: p-value)",
        "uniform",
        forecast.size,
        [
            Contender("calibrant", partial(test, outcome, forecast), lambda found: found.pvalue),
            Contender("numpy, in batches", partial(resample_cutoff, outcome, forecast, resamples), once=True),
        ],
    )
    bench.want_faster("exact test of calibration against numpy", numpy.seconds / ours.seconds, 8)


def recalibrators(bench: Bench) -> None:
    """Isotonic and Platt fits, guarantee included, beside scikit-learn's."""
    # Private, but the public way to it, CalibratedClassifierCV, wraps a model around it.
    sigmoid = getattr(import_module("sklearn.calibration"), "_SigmoidCalibration", None)
    isotonic = import_module("sklearn.isotonic").IsotonicRegression
    middle = np.array([0.5])

    def at_half(fitted: Any) -> float:
        return float(fitted.predict(middle)[0])

    for name, forecast, outcome in distributions(bench.rows):
        if name not in ("uniform", "beta(.05, 5)", "two decimals"):
            continue
        title = "Isotonic fit (value: what 0.5 becomes)"
        ours, theirs = bench.race(
            title,
            name,
            bench.rows,
            [
                Contender("calibrant", partial(calibrant.IsotonicRecalibrator().fit, forecast, outcome), at_half),
                Contender("scikit-learn", partial(isotonic(out_of_bounds="clip").fit, forecast, outcome), at_half),
            ],
        )
        bench.want_faster(f"isotonic fit against scikit-learn, {name}", theirs.seconds / ours.seconds, 5)
        title = "Platt fit (value: what 0.5 becomes)"
        platt = Contender("calibrant", partial(calibrant.PlattRecalibrator().fit, forecast, outcome), at_half)
        if sigmoid is None:
            bench.race(title, name, bench.rows, [platt])
            bench.tables[title].append(Absent(bench.rows, "scikit-learn", "has moved its sigmoid calibration"))
            continue
        ours, theirs = bench.race(
            title,
            name,
            bench.rows,
            [platt, Contender("scikit-learn", partial(sigmoid().fit, forecast, outcome), at_half)],
        )
        bench.want_faster(f"Platt fit against scikit-learn, {name}", theirs.seconds / ours.seconds, 3)


CERTIFIED: dict[str, tuple[float, Callable[[np.random.Generator, int], FloatArray]]] = {
    "<= 0.05, uniform": (0.05, lambda random, rows: random.random(rows)),
    "<= 0.02, rare": (0.02, lambda random, rows: random.beta(0.5, 20.0, rows)),
}


def power(bench: Bench) -> None:
    """How many rows each method needs to certify a calibrated forecaster in nine cases of ten."""
    for method in ("exact", "normal", "adaptive", "hoeffding", "paper"):
        progress(f"rows that certify: {method}")
        bench.power[method] = {case: rows_that_certify(method, *CERTIFIED[case]) for case in CERTIFIED}
    for method, case, limit in (
        ("adaptive", "<= 0.05, uniform", 1500),
        ("adaptive", "<= 0.02, rare", 1800),
        ("exact", "<= 0.05, uniform", 1200),
    ):
        rows = bench.power[method][case]
        aim = f"rows to certify {case} with the {method} method: at most {limit:,}"
        bench.targets.append(Target(aim, f"{rows:,}", rows <= limit))


def rows_that_certify(
    method: str, limit: float, draw: Callable[[np.random.Generator, int], FloatArray], chance: float = 0.9
) -> int:
    """Search for the number of rows at which the upper limit stays below ``limit`` with the given chance."""
    random = np.random.default_rng(SEED)
    rows = calibrant.rows_needed(limit, y_prob=draw(random, 10_000), method=method, power=chance).rows
    for runs in (100, 400, 2000):
        runs = runs if rows < 50_000 else 20  # the paper's margin is nearly all of its limit
        uppers = []
        for _ in range(runs):
            forecast = draw(random, rows)
            tally = calibrant.Tally.from_arrays(draw_events(random, forecast), forecast)
            uppers.append(calibrant.confidence_interval(tally, alternative="less", method=method).upper)
        rows = round(rows * (float(np.quantile(uppers, chance)) / limit) ** 2)  # limits shrink as 1 / sqrt(rows)
    return rows


def smooth(bench: Bench) -> None:
    """Smooth error against sorting the forecasts, and on fewer rows against a solver."""
    title = "Smooth error"
    for name, shift in SHIFTS:
        forecast, outcome = uniform(bench.rows, shift)
        ours, sort = bench.race(
            title,
            name,
            bench.rows,
            [
                Contender("calibrant", partial(calibrant.smooth_calibration_error, outcome, forecast)),
                Contender("np.sort of forecasts", partial(np.sort, forecast), value=None),
            ],
        )
        bench.want_at_most(f"smooth error against np.sort, {name}", ours.seconds / sort.seconds, 12)
    for name, shift in SHIFTS:
        forecast, outcome = uniform(bench.rows // 100, shift)
        ours, defined, tuned = bench.race(
            title,
            name,
            forecast.size,
            [
                Contender("calibrant", partial(calibrant.smooth_calibration_error, outcome, forecast)),
                Contender("HiGHS, as defined", partial(linear_program, outcome, forecast, outcome.size), once=True),
                Contender("HiGHS, tuned form", partial(linear_program, outcome, forecast, 1), once=True),
            ],
        )
        aim = "smooth error against a linear program"
        bench.want_faster(f"{aim} as defined, {name}", defined.seconds / ours.seconds, 1000)
        bench.want_faster(f"{aim} in the solver's quickest form, {name}", tuned.seconds / ours.seconds, 1000)


def overview(bench: Bench) -> None:
    """Everything at once against sorting positions."""
    for name, shift in SHIFTS:
        forecast, outcome = uniform(bench.rows // 10, shift)
        ours, argsort = bench.race(
            "measure(), every measure at once (value: Cutoff error)",
            name,
            forecast.size,
            [
                Contender("calibrant", partial(calibrant.measure, outcome, forecast), lambda result: result.cutoff),
                Contender("np.argsort of forecasts", partial(np.argsort, forecast), value=None),
            ],
        )
        bench.want_at_most(f"measure() against np.argsort, {name}", ours.seconds / argsort.seconds, 5)


def simulation(bench: Bench) -> None:
    """The paper's simulation, 100 runs, against the time that the authors' notebook shows for it."""
    (ours,) = bench.race(
        "The paper's simulation (value: Spearman correlation of risk gap and Cutoff error)",
        "100 runs",
        100 * (500 + 1000),
        [
            Contender(
                "calibrant reproduce simulation",
                partial(experiments.run, "simulation", experiments.Settings(stream="authors")),
                lambda report: report.findings["correlations"]["risk_gap"]["cutoff"],
            )
        ],
    )
    bench.want_faster(
        "The simulation on one core against the authors' 18 min 28 s", AUTHORS_SECONDS / ours.seconds, 300
    )


def decisions(bench: Bench) -> None:
    """What recalibration could save at every threshold, against a sort and the isotonic regression it rests on."""
    for name, shift in SHIFTS:
        forecast, events = uniform(bench.rows // 10, shift)
        oracle = np.minimum(forecast + shift, 1.0)  # the chances themselves: every forecast becomes a step of its own
        for kind, outcome in ((name, events), (f"{name}, oracle outcomes", oracle)):
            for wrapper in ("nondecreasing", "monotone"):
                data = f"{kind}, {wrapper}"
                ours, fit, sort = bench.race(
                    "risk_gap_curve(), every threshold at once (value: largest gap)",
                    data,
                    forecast.size,
                    [
                        Contender(
                            "calibrant",
                            partial(calibrant.decisions.risk_gap_curve, outcome, forecast, wrapper=wrapper),
                            lambda curve: curve.largest_gap,
                        ),
                        isotonic_fit(forecast, outcome),
                        Contender("np.sort of forecasts", partial(np.sort, forecast), value=None),
                    ],
                )
                ratio = ours.seconds / (fit.seconds + sort.seconds)
                bench.want_at_most(f"risk_gap_curve() against isotonic fit + sort, {data}", ratio, 5)


def binned_peers(bench: Bench) -> None:
    """Binned ECE beside the packages that offer it, or the curve behind it."""
    for strategy, words in (("uniform", "equal width"), ("quantile", "equal weight")):
        ece = partial(calibrant.expected_calibration_error, n_bins=BINS, strategy=strategy)
        beside_peers(bench, f"ECE of {BINS} bins of {words}", ece, ECE_PEERS[strategy])


def cutoff_peers(bench: Bench) -> None:
    """Cutoff error beside the packages that offer the same statistic."""
    beside_peers(bench, "Cutoff error beside peers", calibrant.cutoff_calibration_error, CUTOFF_PEERS)


def smooth_peers(bench: Bench) -> None:
    """Smooth error beside a kernel-smoothed ECE: another number for the same purpose."""
    title = "Smooth error beside a related number"
    beside_peers(bench, title, calibrant.smooth_calibration_error, SMOOTH_PEERS)


def beside_peers(bench: Bench, title: str, ours: Callable[..., float], peers: Sequence[Peer]) -> None:
    """Race one of our measures with its peers on growing data, leaving out those that have become too slow."""
    expected_seconds: dict[str, float] = {}
    least_lead: dict[str, float] = {}
    for rows in (bench.rows // 100, bench.rows // 10, bench.rows):
        forecast, outcome = uniform(rows, shift=0.02)
        contenders = [Contender("calibrant", partial(ours, outcome, forecast))]
        absent = []
        for peer in peers:
            seconds = expected_seconds.get(peer.name, 0.0)
            if seconds > TOO_SLOW_SECONDS:
                absent.append(Absent(rows, peer.name, f"left out: would take about {duration(seconds)}"))
                continue
            try:
                call, value = quietly(partial(peer.prepare, forecast, outcome))()
            except ImportError:
                absent.append(Absent(rows, peer.name, "not installed"))
                continue
            contenders.append(Contender(peer.name, quietly(call), value))
        first, *others = bench.race(title, "nearly calibrated", rows, contenders)
        bench.tables[title].extend(absent)
        for entry in others:
            expected_seconds[entry.name] = 10.0 * entry.seconds
            lead = entry.seconds / first.seconds
            least_lead[entry.name] = min(lead, least_lead.get(entry.name, lead))
    for name, lead in least_lead.items():
        bench.targets.append(Target(f"{title}: ahead of {name} at every size", comparison(lead), lead > 1.0))


def fresh_processes(bench: Bench) -> None:
    """Time importing, a whole process that measures a little data, and one that checks the whole paper."""
    progress("fresh processes")
    rows = 1000
    data = f"[i * 7919 % {rows} < i for i in range({rows})], [(i + 0.5) / {rows} for i in range({rows})]"
    import_clock = "from time import perf_counter as now; start = now(); import {}; print(now() - start)"
    calls: dict[str, Callable[[], float]] = {
        "import calibrant": lambda: float(run_python(import_clock.format("calibrant"))),
        "import numpy": lambda: float(run_python(import_clock.format("numpy"))),
        "Python alone, start to exit": lambda: clock(partial(run_python, "pass")),
        f"measure() of {rows:,} rows, start to exit": lambda: clock(
            partial(run_python, f"import calibrant; calibrant.measure({data})")
        ),
        f"certify() of {rows:,} rows, start to exit": lambda: clock(
            partial(run_python, f"import calibrant; calibrant.certify({data}, max_error=0.1)")
        ),
    }
    rounds = [{name: call() for name, call in calls.items()} for _ in range(FRESH_PROCESSES)]
    bench.processes = {name: min(times[name] for times in rounds) for name in calls}
    ours, numpy, _, *whole = bench.processes.values()
    bench.want_at_most("import calibrant against import numpy", ours / numpy, 2)
    for what, seconds in zip(("measures", "certifies"), whole, strict=True):
        aim = f"a fresh process {what} {rows:,} rows: at most 1.5 s"
        bench.targets.append(Target(aim, duration(seconds), seconds <= 1.5))
    progress("calibrant reproduce all")
    every = "from calibrant import experiments as e; print(all([e.run(name).holds for name in e.EXPERIMENTS]))"
    seconds = clock(partial(run_python, every))
    bench.processes["calibrant reproduce all, start to exit"] = seconds
    bench.want_at_most("calibrant reproduce all against the minute it may take", seconds / REPRODUCE_SECONDS, 1)


# The data.


def uniform(rows: int, shift: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Return uniform forecasts, and outcomes with events more frequent than forecast by a shift."""
    random = np.random.default_rng(SEED)
    forecast = random.random(rows)
    return forecast, draw_events(random, forecast + shift)


def draw_events(random: np.random.Generator, rate: FloatArray) -> FloatArray:
    return (random.random(rate.size) < rate).astype(np.float64)


def distributions(rows: int) -> Iterator[tuple[str, FloatArray, FloatArray]]:
    """Yield forecasts of shapes that could hurt an algorithm that looks at their values, with outcomes."""
    yield "uniform", *uniform(rows)
    random = np.random.default_rng(SEED)
    shapes: dict[str, Callable[[], FloatArray]] = {
        "beta(.05, 5)": lambda: random.beta(0.05, 5.0, rows),
        "p below 1e-4": lambda: random.random(rows) * 1e-4,
        "two decimals": lambda: random.random(rows).round(2),
        "constant": lambda: np.full(rows, 0.3),
    }
    for name, draw in shapes.items():
        forecast = draw()
        yield name, forecast, draw_events(random, forecast)
    yield "miscalibrated", *uniform(rows, shift=0.1)


# What ours is compared with.


def argsort_cutoff(y_true: npt.NDArray[Any], y_prob: FloatArray, weight: FloatArray | None = None) -> float:
    """Sort positions and add up residuals, as people do; with ties the answer depends on the order of the rows."""
    residual = y_true - y_prob
    total = float(y_prob.size)
    if weight is not None:
        residual *= weight
        total = float(weight.sum())
    return range_with_zero(np.cumsum(residual[np.argsort(y_prob)])) / total


def packed_cutoff(y_true: npt.NDArray[Any], y_prob: FloatArray) -> float:
    """Sort forecast and 0/1 outcome as one 64-bit key: the quickest exact answer that sorts. It checks no input."""
    keys = y_prob.view(np.uint64) << np.uint64(1)
    keys |= y_true.astype(np.uint64)
    keys.sort()
    residual = (keys & np.uint64(1)).astype(np.float64)
    keys >>= np.uint64(1)
    residual -= keys.view(np.float64)
    curve = np.cumsum(residual, out=residual)
    complete = np.append(keys[1:] != keys[:-1], True)  # the curve counts only where a forecast's rows are all in
    return range_with_zero(curve[complete]) / y_prob.size


def resample_cutoff(y_true: FloatArray, y_prob: FloatArray, resamples: int) -> float:
    """Monte Carlo p-value of the Cutoff error: outcomes drawn and added up by numpy, a few resamples at a time."""
    random = np.random.default_rng(SEED)
    order = np.argsort(y_prob)
    forecast = y_prob[order]
    observed = range_with_zero(np.cumsum((y_true - y_prob)[order]))
    larger = 0
    for _ in range(0, resamples, 10):
        drawn = random.random((10, forecast.size)) < forecast
        curve = np.cumsum(drawn - forecast, axis=1)
        larger += int((np.maximum(curve.max(axis=1), 0.0) - np.minimum(curve.min(axis=1), 0.0) >= observed).sum())
    return (1 + larger) / (1 + resamples)


def range_with_zero(curve: FloatArray) -> float:
    return max(float(curve.max()), 0.0) - min(float(curve.min()), 0.0)


def memory_copy(*arrays: npt.NDArray[Any]) -> Contender:
    """Copy the data once into memory that is already there: what the machine allows."""
    copies = [array.copy() for array in arrays]

    def call() -> None:
        for copy, array in zip(copies, arrays, strict=True):
            np.copyto(copy, array)

    return Contender("one memory copy", call, value=None)


def isotonic_fit(forecast: FloatArray, outcome: FloatArray) -> Contender:
    """Fit outcomes that are already in the order of their forecasts: the core of recalibration, without the sort."""
    from scipy.optimize import isotonic_regression

    return Contender(
        "scipy isotonic_regression, sorted", partial(isotonic_regression, outcome[np.argsort(forecast)]), value=None
    )


def linear_program(y_true: FloatArray, y_prob: FloatArray, divisor: int) -> float:
    """Smooth error by a general solver that finds the best 1-Lipschitz weights in [-1, 1].

    The definition asks for the largest mean: divide by the number of rows. HiGHS is more than ten times quicker, and
    keeps more digits, when asked for the largest sum: divide by 1. Of the forms tried that was the quickest; interior
    points took 4 to 16 times as long as it.
    """
    from scipy.optimize import linprog
    from scipy.sparse import diags_array, vstack

    order = np.argsort(y_prob)
    gap = np.diff(y_prob[order])
    step = diags_array([-1.0, 1.0], offsets=[0, 1], shape=(gap.size, order.size))
    solved = linprog(
        -(y_true - y_prob)[order] / divisor,
        A_ub=vstack([step, -step], format="csr"),
        b_ub=np.concatenate([gap, gap]),
        bounds=(-1.0, 1.0),
        method="highs",
    )
    return -float(solved.fun) * divisor / y_prob.size


# Other packages. Each gets its data in the form it works on, converted off the clock.


def sklearn_curve(strategy: str) -> Peer:
    def prepare(forecast: FloatArray, outcome: FloatArray) -> tuple[Call, Value]:
        calibration_curve = import_module("sklearn.calibration").calibration_curve

        def value(curve: tuple[FloatArray, FloatArray]) -> float:
            """Average the distances of the curve over the rows, which scikit-learn leaves to its users."""
            inner = np.linspace(0.0, 1.0, BINS + 1)[1:-1]
            border = inner if strategy == "uniform" else np.quantile(forecast, inner)
            rows = np.bincount(np.searchsorted(border, forecast), minlength=BINS)
            return float(np.average(np.abs(curve[0] - curve[1]), weights=rows[rows > 0]))

        return partial(calibration_curve, outcome, forecast, n_bins=BINS, strategy=strategy), value

    return Peer("scikit-learn calibration_curve", prepare)


def netcal_ece(forecast: FloatArray, outcome: FloatArray) -> tuple[Call, Value]:
    return partial(import_module("netcal.metrics").ECE(bins=BINS).measure, forecast, outcome.astype(int)), float


def torchmetrics_ece(forecast: FloatArray, outcome: FloatArray) -> tuple[Call, Value]:
    error = import_module("torchmetrics.functional.classification").binary_calibration_error
    torch = import_module("torch")
    labels = torch.from_numpy(outcome.astype(np.int64))
    return partial(error, torch.from_numpy(forecast), labels, n_bins=BINS, norm="l1"), float


def mapie_ece(strategy: str) -> Peer:
    def prepare(forecast: FloatArray, outcome: FloatArray) -> tuple[Call, Value]:
        error = import_module("mapie.metrics.calibration").expected_calibration_error
        return partial(error, outcome.astype(int), forecast, num_bins=BINS, split_strategy=strategy), float

    return Peer("MAPIE ECE", prepare)


def mapie_range(forecast: FloatArray, outcome: FloatArray) -> tuple[Call, Value]:
    differences = import_module("mapie.metrics.calibration").cumulative_differences
    return lambda: np.ptp(np.append(differences(outcome, forecast), 0.0)), float


def probmetrics_kuiper(forecast: FloatArray, outcome: FloatArray) -> tuple[Call, Value]:
    metric = import_module("probmetrics.metrics").KuiperCalibrationMetric()
    torch = import_module("torch")
    labels = torch.from_numpy(outcome.astype(np.int64))
    return partial(
        metric.compute_from_labels_probs, labels, torch.from_numpy(np.column_stack([1.0 - forecast, forecast]))
    ), float


def mcgrad_ecce(forecast: FloatArray, outcome: FloatArray) -> tuple[Call, Value]:
    return partial(import_module("mcgrad.metrics").ecce, outcome, forecast), float


def relplot_smece(forecast: FloatArray, outcome: FloatArray) -> tuple[Call, Value]:
    return partial(import_module("relplot").smECE, forecast, outcome), float


ECE_PEERS = {
    "uniform": [
        sklearn_curve("uniform"),
        mapie_ece("uniform"),
        Peer("netcal ECE", netcal_ece),
        Peer("torchmetrics binary ECE", torchmetrics_ece),
    ],
    "quantile": [sklearn_curve("quantile"), mapie_ece("quantile")],
}
CUTOFF_PEERS = [
    Peer("MAPIE cumulative_differences", mapie_range),
    Peer("probmetrics Kuiper", probmetrics_kuiper),
    Peer("mcgrad ecce", mcgrad_ecce),
]
SMOOTH_PEERS = [Peer("relplot smECE", relplot_smece)]


# Clocks.


def race(data: str, rows: int, contenders: Sequence[Contender]) -> list[Entry]:
    """Warm up, measure memory, then time the contenders in turns; the best round counts."""
    seconds: list[float] = []
    extra: list[int] = []
    values: list[float | None] = []
    for contender in contenders:
        if not contender.once:
            contender.call()  # compiles, imports and loads what a first call needs
        start = time.perf_counter()
        result, peak = with_peak_memory(contender.call)
        seconds.append(time.perf_counter() - start if contender.once else np.inf)
        extra.append(peak)
        values.append(None if contender.value is None else float(contender.value(result)))
        del result
    rounds, spent = 0, 0.0
    while spent < MOST_SECONDS and (rounds < LEAST_ROUNDS or spent < LEAST_SECONDS):
        times = [seconds[k] if contender.once else clock(contender.call) for k, contender in enumerate(contenders)]
        spent += sum(time for time, contender in zip(times, contenders, strict=True) if not contender.once)
        seconds = [min(pair) for pair in zip(seconds, times, strict=True)]
        rounds += 1
    return [
        Entry(data, rows, contender.name, seconds[k], extra[k], values[k]) for k, contender in enumerate(contenders)
    ]


def clock(call: Call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def run_python(code: str) -> str:
    """Run code in a fresh interpreter and return what it prints."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def quietly(call: Call) -> Call:
    """Keep other packages' warnings out of the tables."""

    def silent() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call()

    return silent


# Memory. The kernel's own peak counter sees numpy, numba and torch alike, but only Linux lets a process reset it.

RESET_PEAK = Path("/proc/self/clear_refs")


def kernel_counts_peaks() -> bool:
    try:
        RESET_PEAK.write_text("5")
        return status_bytes("VmHWM") > 0
    except (OSError, LookupError):
        return False


def status_bytes(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return 1024 * int(line.split()[1])
    raise LookupError(field)


def with_peak_memory(call: Call) -> tuple[Any, int]:
    """Return a call's result and how far memory rose above its level before the call."""
    if not KERNEL_COUNTS_PEAKS:
        tracemalloc.start()
        result = call()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return result, peak
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if give_back is not None:  # memory kept from earlier calls would hide what this one needs
        give_back(0)
    before = status_bytes("VmRSS")
    RESET_PEAK.write_text("5")
    result = call()
    return result, max(status_bytes("VmHWM") - before, 0)


KERNEL_COUNTS_PEAKS = kernel_counts_peaks()
MEMORY_METHOD = (
    "the peak of resident memory during a call above its level before"
    if KERNEL_COUNTS_PEAKS
    else "what tracemalloc saw: numpy's arrays, but not what compiled code (numba, torch) allocates itself"
)


# Words.


def progress(text: str) -> None:
    print(f"... {text}", file=sys.stderr, flush=True)


def describe_environment() -> dict[str, str]:
    found = {"Python": platform.python_version(), platform.system(): platform.machine(), "cores": str(os.cpu_count())}
    for package in ("calibrant", "numpy", "scipy", "scikit-learn", "numba"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # run from a source tree that is not installed
            found[package] = calibrant.__version__ if package == "calibrant" else "missing"
    return found


def duration(seconds: float) -> str:
    if seconds < 0.1:
        return f"{1000 * seconds:.2f} ms"
    return f"{1000 * seconds:,.0f} ms" if seconds < 10.0 else f"{seconds:,.1f} s"


def comparison(ratio: float) -> str:
    """Say how our time compares with another that is ``ratio`` times as long."""
    return f"{ratio:,.1f}x faster" if ratio >= 1.0 else f"{1.0 / ratio:,.1f}x slower"


def megabytes(count: int) -> str:
    return f"{count / 1e6:,.0f} MB"


def print_race(title: str, lines: Sequence[Entry | Absent]) -> None:
    """Print a table in which each of our lines is followed by those it is compared with."""
    table = []
    ours = 0.0
    for line in lines:
        if isinstance(line, Absent):
            table.append(["", "", line.name, line.why, "", "", ""])
            continue
        first = line.name == "calibrant"
        if first:
            ours = line.seconds
        lead = "" if first else comparison(line.seconds / ours)
        value = "" if line.value is None else f"{line.value:.9f}"
        start = [line.data, f"{line.rows:,}"] if first else ["", ""]
        table.append([*start, line.name, duration(line.seconds), lead, megabytes(line.extra_bytes), value])
    print_table(title, ["data", "rows", "what", "time", "calibrant is", "extra memory", "value"], table)


def print_table(title: str, header: list[str], lines: list[list[str]]) -> None:
    widths = [max(len(cell) for cell in column) for column in zip(header, *lines, strict=True)]
    print(f"\n{title}\n{'-' * len(title)}")
    for cells in (header, *lines):
        padded = [
            cell.ljust(width) if name in ("data", "what", "target") else cell.rjust(width)
            for name, cell, width in zip(header, cells, widths, strict=True)
        ]
        print("  ".join(padded).rstrip(), flush=True)


def print_targets(bench: Bench) -> None:
    lines = [[target.aim, target.measured, "met" if target.met else "MISSED"] for target in bench.targets]
    print_table("Targets", ["target", "measured", "verdict"], lines)
    if bench.rows < FULL_ROWS:
        print(f"\nThe targets are meant for {FULL_ROWS:,} rows; this run had {bench.rows:,}.")


if __name__ == "__main__":
    main()
