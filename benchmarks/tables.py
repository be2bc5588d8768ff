"""The lines of the tables, how numbers read in them, and how they are printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


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


def print_targets(targets: Sequence[Target]) -> None:
    lines = [[target.aim, target.measured, "met" if target.met else "MISSED"] for target in targets]
    print_table("Targets", ["target", "measured", "verdict"], lines)
