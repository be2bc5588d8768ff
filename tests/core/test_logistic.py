"""Logistic curves against a general minimiser, what is known in advance, and outcomes that have none."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit as scipy_expit

from calibrant.core.logistic import Points, expit, fit_logistic, logit, logit_of, pool, separation

RNG = np.random.default_rng(5)
VALUE = np.sort(RNG.normal(size=500))
WEIGHT = RNG.integers(1, 4, size=500)
OUTCOME = RNG.binomial(WEIGHT, scipy_expit(1.5 * VALUE - 0.5))
POINTS = Points(VALUE, OUTCOME, WEIGHT)


def test_a_known_part_is_added_and_only_the_level_is_fitted():
    found = fit_logistic(POINTS, lambda value: np.empty((0, value.size)), pooled=POINTS, offset=lambda value: value)
    pull = OUTCOME - WEIGHT * scipy_expit(VALUE + found.intercept)
    assert found.settled
    assert abs(pull.sum()) < 1e-9


@pytest.mark.parametrize("pooled", [POINTS, pool(POINTS, size=20)], ids=["all", "pooled"])
def test_the_curve_is_the_most_likely_one_wherever_the_search_starts(pooled):
    def loss(curve):
        linear = curve[0] * VALUE + curve[1]
        return float(WEIGHT @ np.logaddexp(0.0, linear) - OUTCOME @ linear)

    best = minimize(loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 2_000})
    found = fit_logistic(POINTS, lambda value: value[None], pooled=pooled)
    assert (found.slopes[0], found.intercept) == pytest.approx(best.x, abs=1e-5)


def test_rates_of_0_and_1_to_the_last_digit_are_no_maximum():
    points = Points(np.log([1e-300, 2e-300, 3e-300, 4e-300]), np.array([1.0, 0.0, 1.0, 0.0]))
    found = fit_logistic(points, lambda value: np.empty((0, value.size)), pooled=points, offset=lambda value: value)
    assert not found.settled


def test_pooling_keeps_totals_and_huge_values():
    pooled = pool(Points(VALUE / np.abs(VALUE).max() * 1e308, OUTCOME, WEIGHT), size=7)
    assert len(pooled.value) == 7
    assert np.isfinite(pooled.value).all()
    assert pooled.outcome.sum() == OUTCOME.sum()
    assert pooled.weights.sum() == WEIGHT.sum()


@pytest.mark.parametrize(
    ("value", "outcome", "expected"),
    [
        ([0.1, 0.2], [0.0, 0.0], "no events"),
        ([0.1, 0.2], [1.0, 1.0], "only events"),
        ([0.1, 0.2], [0.0, 1.0], "upwards"),
        ([0.1, 0.2], [1.0, 0.0], "downwards"),
        ([0.1, 0.2, 0.2], [0.0, 0.0, 1.0], "upwards"),
        ([0.2, 0.2], [0.0, 1.0], None),
        ([0.1, 0.2, 0.3], [0.0, 1.0, 0.0], None),
        ([0.1, 0.2], [0.0, 0.5], "upwards"),
        ([0.1, 0.2], [0.5, 0.5], None),
    ],
)
def test_separation(value, outcome, expected):
    assert separation(Points(np.array(value), np.array(outcome))) == expected


def test_logit_and_expit_undo_each_other():
    p = np.array([0.0, 1e-300, 0.25, 0.5, 1.0])
    np.testing.assert_allclose(expit(logit(p)), p, rtol=1e-12)
    assert logit_of(0.25) == logit(np.array([0.25]))[0]
