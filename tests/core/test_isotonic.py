"""Isotonic curves are those of scipy, whatever the values, and however many passes they take."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import isotonic_regression

from calibrant.core.isotonic import isotonic_curves, isotonic_fit

# Sixteenths add up without rounding: equal levels are equal.
VALUES = st.integers(1, 40).flatmap(
    lambda size: st.tuples(
        arrays(np.float64, size, elements=st.integers(-40, 40).map(lambda k: k / 16.0)),
        arrays(np.int64, size, elements=st.integers(1, 5)),
    )
)


@given(VALUES, st.booleans())
def test_curves_and_steps_are_those_of_scipy(drawn, increasing):
    values, weight = drawn
    found = isotonic_fit(values, weight, increasing=increasing)
    expected = isotonic_regression(values, weights=weight.astype(float), increasing=increasing)
    np.testing.assert_allclose(found.curve, expected.x, rtol=0, atol=1e-14)
    # Steps may be divided where rounding parts levels that are equal: the curve is the same.
    steps = np.repeat(found.curve[found.borders[:-1]], np.diff(found.borders))
    np.testing.assert_array_equal(steps, found.curve)
    assert (np.diff(found.curve) * (1 if increasing else -1) >= 0).all()
    assert found.borders[0] == 0
    assert found.borders[-1] == values.size


FALLING = np.linspace(1.0, 0.0, 3_000)
RISING = FALLING[::-1].copy()


@pytest.mark.parametrize(
    "values",
    [
        FALLING,
        RISING,
        np.append(RISING, -1e4),  # each pass joins one more
        np.concatenate([[1e4], RISING]),
        np.append(np.cumsum(np.arange(2_000.0)), -1e5),
        np.tile(np.append(RISING[:300], -1e2), 10),
        np.zeros(1_000),
        np.array([0.3]),
    ],
    ids=["falling", "rising", "low end", "high start", "bent", "teeth", "flat", "one"],
)
@pytest.mark.parametrize("increasing", [True, False])
def test_values_made_to_take_many_passes_have_their_curve(values, increasing):
    weight = np.arange(1.0, values.size + 1.0)
    found = isotonic_fit(values, weight, increasing=increasing)
    expected = isotonic_regression(values, weights=weight, increasing=increasing)
    np.testing.assert_allclose(found.curve, expected.x, rtol=1e-12, atol=1e-12)
    assert found.curve.size == values.size


def test_many_outcomes_have_the_curve_of_scipy():
    rng = np.random.default_rng(3)
    forecast = np.sort(rng.random(100_000))
    outcome = (rng.random(forecast.size) < forecast**1.2).astype(float)
    found = isotonic_fit(outcome, np.ones(forecast.size, dtype=np.int64))
    expected = isotonic_regression(outcome)
    np.testing.assert_allclose(found.curve, expected.x, rtol=1e-13)
    np.testing.assert_array_equal(found.borders, expected.blocks)


def test_curves_side_by_side_are_those_one_by_one():
    rng = np.random.default_rng(4)
    values, weight = rng.standard_normal((50, 30)), rng.integers(1, 9, 30)
    values[7], values[8] = np.arange(30.0), -np.arange(30.0)
    values[9] = np.append(np.arange(29.0), -1e4)
    found = isotonic_curves(values, weight)
    for line, curve in zip(values, found, strict=True):
        np.testing.assert_allclose(curve, isotonic_regression(line, weights=weight.astype(float)).x, atol=1e-12)


@pytest.mark.parametrize("increasing", [True, False])
@pytest.mark.parametrize("smallest", [1e-320, 5e-324, 1.0])
def test_steps_stay_between_the_values_that_they_join(smallest, increasing):
    rng = np.random.default_rng(5)
    for size in (2, 3, 8, 40):
        for values in (rng.random((50, size)), np.full((1, size), 0.1)):
            for line, curve in zip(values, isotonic_curves(values, np.full(size, smallest)), strict=True):
                found = isotonic_fit(line, rng.integers(1, 4, size) * smallest, increasing=increasing)
                for begin, end, level in zip(found.borders, found.borders[1:], found.level, strict=False):
                    assert line[begin:end].min() <= level <= line[begin:end].max()
                assert (np.diff(found.curve) * (1 if increasing else -1) >= 0.0).all()
                assert line.min() <= curve.min() <= curve.max() <= line.max()
