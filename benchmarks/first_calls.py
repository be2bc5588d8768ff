"""First answers: one call in a fresh process that has nothing compiled in any cache, in processor seconds.

Numpy is imported before, since it makes the rows; importing calibrant and all it needs counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

from racing import Bench, progress

REFERENCE_SECONDS = 1.5
"""What importing scipy and scikit-learn after numpy takes on the machine that the limits below are meant for."""

ROUNDS = 3

CALLS = {
    "certify": "calibrant.certify(y, p, max_error=0.05)",
    "measure": "calibrant.measure(y, p)",
    "calibration_test": "calibrant.calibration_test(y, p)",
    "report": (
        "calibrant.CalibrationReport.from_predictions(y, p, max_error=0.05).write_html(os.path.join(folder, 'r.html'))"
    ),
    "compare_recalibrators": "calibrant.compare_recalibrators(p, y)",
}

LIMITS = (
    ("certify", 10**4, 1.0),
    ("certify", 10**5, 1.2),
    ("certify", 10**6, 2.0),
    ("measure", 10**4, 1.0),
    ("measure", 10**5, 1.2),
    ("measure", 10**6, 2.0),
    ("calibration_test", 10**4, 2.0),
    ("calibration_test", 10**5 - 1, 2.0),
    ("report", 10**4, 2.5),
    ("report", 10**6, 4.0),
    ("compare_recalibrators", 10**6, 15.0),
)
"""What is called with how many rows, and the processor seconds that it may take on the reference machine."""

PROGRAM = """
import json, os, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
folder = sys.argv[1]
rng = np.random.default_rng(0)
p = rng.random({rows})
y = (rng.random({rows}) < p).astype(float)
start = time.process_time()
order = np.argsort(p)
sorted_in, start = time.process_time() - start, time.process_time()
{call}
print(json.dumps([time.process_time() - start, sorted_in]))
"""

IMPORTS = "import scipy, sklearn.isotonic"


def first_calls(bench: Bench) -> list[list[str]]:
    """Time first calls beside the imports that any of them could need, and beside one sort of as many rows."""
    progress("first calls: imports")
    imports = min(_run(IMPORTS, 1)[0] for _ in range(ROUNDS))
    lines = []
    for name, rows, limit in LIMITS:
        progress(f"first calls: {name}, {rows:,} rows")
        found = [_run(f"import calibrant\n{CALLS[name]}", rows) for _ in range(1 if limit > 2.5 else ROUNDS)]
        seconds, sort = (min(column) for column in zip(*found, strict=True))
        bench.processes[f"first {name} of {rows:,} rows, processor time"] = seconds
        bench.want_at_most(
            f"first {name} of {rows:,} rows against importing scipy and scikit-learn",
            seconds / imports,
            round(limit / REFERENCE_SECONDS, 2),
        )
        lines.append([name, f"{rows:,}", f"{seconds:.2f} s", f"{seconds / imports:.2f}", f"{seconds / sort:,.0f}"])
    return lines


def _run(call: str, rows: int) -> tuple[float, float]:
    """Run a call in a fresh process with an empty cache: its processor seconds, and those of one sort."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        finished = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(call=call, rows=rows), folder],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
    seconds, sort = json.loads(finished.stdout.splitlines()[-1])
    return seconds, sort
