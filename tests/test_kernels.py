"""The compiled loops give what the plain ones give."""

import numpy as np
import pytest

from calibrant import kernels

RNG = np.random.default_rng(6)
FORECAST = np.sort(RNG.random(3_000))
CURVE = np.cumsum((RNG.random(3_000) < 0.9 * FORECAST) - FORECAST)
SIGNED = CURVE if CURVE[-1] >= 0 else -CURVE
GAP = np.diff(FORECAST)
OUTCOME = (RNG.random(3_000) < FORECAST).astype(np.uint8)
LOW, HIGH = np.array([0.2, 0.5]), np.array([0.21, 0.6])
BEGIN, END = np.array([0, 0, 1, 2]), np.array([1, 1, 2, 2])

CASES = {
    "cell_totals": (FORECAST, OUTCOME, np.empty(0), 8.0, 0, 8, 0.0, 1.0, True),
    "cell_totals fractions": (FORECAST, FORECAST[::-1].copy(), np.empty(0), 64.0, 16, 32, 0.25, 0.75, False),
    "cell_totals weighted": (FORECAST, FORECAST[::-1].copy(), FORECAST.copy(), 64.0, 16, 32, 0.25, 0.75, False),
    "rows_in_stretches": (FORECAST, LOW, HIGH, BEGIN, END, 4.0, 0, 0.0, 1.0),
    "smooth_fit": (SIGNED, GAP, True),
    "smooth_fit without the fit": (SIGNED, GAP, False),
    "smooth_weights": (SIGNED, GAP, kernels.smooth_fit.plain(SIGNED, GAP, True)[1]),
    "swing_events": (np.concatenate([[0.0], CURVE]),),
}


@pytest.mark.parametrize("name", CASES)
def test_compiled_equals_plain(name, monkeypatch):
    kernel = getattr(kernels, name.split()[0])
    plain = kernel(*CASES[name])
    monkeypatch.setattr(kernels, "PLAIN_LIMIT", 0)
    compiled = kernel(*CASES[name])
    if not isinstance(plain, tuple):
        plain, compiled = (plain,), (compiled,)
    for one, other in zip(plain, compiled, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_stretches_are_found():
    inside = kernels.rows_in_stretches(*CASES["rows_in_stretches"])
    expected = ((FORECAST >= 0.2) & (FORECAST <= 0.21)) | ((FORECAST >= 0.5) & (FORECAST <= 0.6))
    assert inside.tolist() == expected.tolist()


def test_a_folder_that_cannot_be_written_does_not_stop_compiling(monkeypatch):
    import numba

    original = numba.njit

    def no_cache(*args, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return original(*args, **options)

    monkeypatch.setattr(numba, "njit", no_cache)
    kernel = kernels.Kernel(kernels.swing_events.plain)
    monkeypatch.setattr(kernels, "PLAIN_LIMIT", 0)
    assert kernel(np.array([0.0, 1.0, 0.5]))[0].tolist() == [0.5]
