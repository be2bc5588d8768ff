"""How much memory a call needs.

The kernel's own peak counter sees numpy, numba and torch alike, but only Linux lets a process reset it.
"""

from __future__ import annotations

import ctypes
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def with_peak_memory(call: Callable[[], Any]) -> tuple[Any, int]:
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
