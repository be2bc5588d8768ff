"""Time calibrant beside simpler code, other packages and what the machine allows; print tables and targets.

Absolute times say little about another machine, so every target is a ratio between calls that take turns: a round runs
each of them once, and the best of all rounds counts. Nothing is asserted: a busy machine is no bug.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import sections
from first_calls import first_calls
from memory import MEMORY_METHOD
from racing import Bench
from tables import duration, print_race, print_table, print_targets

import calibrant

FULL_ROWS = 10_000_000
FEWEST_ROWS = 10_000

RACES = (
    sections.cutoff,
    sections.cutoff_weighted,
    sections.certificates,
    sections.classes,
    sections.savings,
    sections.clusters,
    sections.worst_groups,
    sections.comparisons,
    sections.thresholds,
    sections.monitors,
    sections.calibration_tests,
    sections.recalibrators,
    sections.smooth,
    sections.overview,
    sections.decisions,
    sections.simulation,
    sections.binned_peers,
    sections.class_peers,
    sections.validation_peers,
    sections.cutoff_peers,
    sections.smooth_peers,
)


def main() -> None:
    options = read_options()
    environment = describe_environment()
    print(", ".join(f"{name} {text}" for name, text in environment.items()))
    print(f"Extra memory is {MEMORY_METHOD}.")
    bench = Bench(options.rows)
    for race in RACES:
        shown = len(bench.tables)
        race(bench)
        for title in list(bench.tables)[shown:]:
            print_race(title, bench.tables[title])
    sections.power(bench)
    cases = list(sections.CERTIFIED)
    print_table(
        "Rows that certify a calibrated forecaster with probability 0.9 (95% confidence)",
        ["what", *cases],
        [[method, *(f"{rows[case]:,}" for case in cases)] for method, rows in bench.power.items()],
    )
    sections.saving_power(bench)
    cases = list(sections.SAVED)
    print_table(
        "Rows that certify, with probability 0.9, how little a calibrated forecaster's users can save (95% confidence)",
        ["what", *cases],
        [[route, *(f"{rows[case]:,}" for case in cases)] for route, rows in bench.saving_power.items()],
    )
    sections.fresh_processes(bench)
    print_table("Fresh processes", ["what", "time"], [[name, duration(t)] for name, t in bench.processes.items()])
    print_table(
        "First calls in fresh processes with empty caches, processor time",
        ["what", "rows", "time", "in imports of scipy and scikit-learn", "in argsorts of as many rows"],
        first_calls(bench),
    )
    print_targets(bench.targets)
    if bench.rows < FULL_ROWS:
        print(f"\nThe targets are meant for {FULL_ROWS:,} rows; this run had {bench.rows:,}.")
    if options.json:
        write_json(options.json, environment, bench)


def read_options() -> argparse.Namespace:
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
    return options


def describe_environment() -> dict[str, str]:
    found = {"Python": platform.python_version(), platform.system(): platform.machine(), "cores": str(os.cpu_count())}
    for package in ("calibrant", "numpy", "scipy", "scikit-learn", "numba"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # run from a source tree that is not installed
            found[package] = calibrant.__version__ if package == "calibrant" else "missing"
    return found


def write_json(path: Path, environment: dict[str, str], bench: Bench) -> None:
    report = {
        "environment": environment,
        "extra memory": MEMORY_METHOD,
        "rows": bench.rows,
        "tables": {title: [asdict(line) for line in lines] for title, lines in bench.tables.items()},
        "rows that certify": bench.power,
        "fresh processes": bench.processes,
        "targets": [asdict(target) for target in bench.targets],
    }
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
