"""Calls that take turns, and the ratios of their times: what another machine can be compared by."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from memory import with_peak_memory
from tables import Absent, Entry, Target, comparison

Call = Callable[[], Any]
Value = Callable[[Any], float]
LEAST_ROUNDS = 5
LEAST_SECONDS = 1.0  # short calls get more rounds
MOST_SECONDS = 20.0  # and long ones fewer


@dataclass(frozen=True)
class Contender:
    """One call that takes part in a race; ``value`` turns what it returns into a number, off the clock."""

    name: str
    call: Call
    value: Value | None = float
    once: bool = False  # so slow that one call, without a warm-up, must do


class Bench:
    """What one run collects: tables in the order of their making, and targets for the end."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.tables: dict[str, list[Entry | Absent]] = {}
        self.power: dict[str, dict[str, int]] = {}
        self.saving_power: dict[str, dict[str, int]] = {}
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


def progress(text: str) -> None:
    print(f"... {text}", file=sys.stderr, flush=True)
