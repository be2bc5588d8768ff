"""Days of forecasts with their outcomes, as files to watch, and a program that is killed while it watches them."""

import json
import os
import random
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

DAYS = ("--time", "issued", "--every", "day", "--max-error", "0.05")


def write_day(folder: Path, day: int, *, rows: int = 60, shift: float = 0.0, kind: str = "csv") -> Path:
    """Write a day of January 2026; with a shift, events are more frequent than forecast."""
    from table_cases import write

    rng = np.random.default_rng(day)
    forecast = rng.random(rows).round(3)
    columns = {
        "y": (rng.random(rows) < np.minimum(forecast + shift, 1.0)).astype(np.int64),
        "p": forecast,
        "issued": [f"2026-01-{day:02d}T{hour:02d}:15" for hour in rng.integers(0, 24, rows)],
    }
    return write(columns, folder / f"2026-01-{day:02d}.{kind}", kind)


def kept(state: Path) -> Any:
    """Return all that a state holds."""
    return json.loads(state.read_text())


def main_of(folder: str, kills: str) -> None:
    """Watch a folder again and again, each time from nothing, killed at random moments until it comes to its end.

    Each child is killed just before one of its calls, whichever has the number that was drawn; every fourth one from
    outside, after some milliseconds. Prints how often the state of the end was another one than without kills.
    """
    from calibrant.cli import main
    from calibrant.monitors import Monitor, watch

    for module in ("duckdb", "pyarrow.dataset", "calibrant.cli.watching", "calibrant.engines.columns"):
        import_module(module)  # once, so that children start at once
    monitor = Monitor(max_error=0.1)
    monitor.update([0, 1], [0.2, 0.7], period=1)
    Monitor.from_json(monitor.to_json()).read()
    place, coins = Path(folder), random.Random(0)
    line = ["watch", str(place / "days"), *DAYS, "--quiet", "--state"]

    def start(state: Path, calls: int | None) -> int:
        child = os.fork()
        if child:
            return child
        left = calls

        def count(*_: object) -> None:
            nonlocal left
            assert left is not None
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

        if calls is not None:
            sys.setprofile(count)
        try:
            main([*line, str(state)], standalone_mode=False)
        finally:
            os._exit(0)

    os.waitpid(start(place / "whole.json", None), 0)
    whole, done, rounds, wrong = kept(place / "whole.json"), 0, 0, 0
    while done < int(kills):
        state = place / f"killed-{rounds}.json"
        watch._PATIENCE = 10.0 * (rounds % 2)  # so that every other time the state is written after each batch
        rounds += 1
        status = -1
        while status != 0:
            child = start(state, None if done % 4 == 3 else coins.randint(1, 60_000))
            if done % 4 == 3:
                signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
                signal.sigtimedwait([signal.SIGCHLD], coins.uniform(0.0, 0.3))
                os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
            done += status != 0
        wrong += kept(state) != whole
    print(json.dumps({"kills": done, "rounds": rounds, "wrong": wrong}))


if __name__ == "__main__":
    main_of(*sys.argv[1:])
