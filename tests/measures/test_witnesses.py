"""Weight functions found on some rows: they attain what they should, and bound the distance from calibration."""

import itertools
import math

import brute_force
import numpy as np
import pytest
from brute_force import rows
from hypothesis import given

from calibrant import Tally, smooth_calibration_error
from calibrant.measures.judged import WeightedMeasure
from calibrant.measures.registry import MEASURES
from calibrant.measures.witnesses import distance_weight, steep_weights


def errors(tally):
    """What weights of Lipschitz constant 0 and 2 collect."""
    bias = abs(tally.residual_total) / tally.weight_total
    return bias, 2.0 * smooth_calibration_error(tally) - bias


@given(rows(most=12))
def test_the_error_of_lipschitz_weights_is_a_linear_function_of_the_constant(drawn):
    y, p, w = drawn
    flat, steep = errors(Tally.from_arrays(y, p, sample_weight=w))
    for constant in (0.0, 0.3, 1.0, 1.7, 2.0):
        expected = brute_force.smooth(y, p, w, lipschitz=constant)
        assert flat + constant / 2.0 * (steep - flat) == pytest.approx(expected, abs=1e-8)


@given(rows())
def test_steep_weights_have_lipschitz_constant_2_and_attain_their_error(drawn):
    y, p, w = drawn
    tally = Tally.from_arrays(y, p, sample_weight=w)
    weights = steep_weights(tally)
    assert (np.abs(weights) <= 1.0 + 1e-12).all()
    assert (np.abs(np.diff(weights)) <= 2.0 * np.diff(tally.forecast) + 1e-12).all()
    assert weights @ tally.residual / tally.weight_total == pytest.approx(errors(tally)[1], abs=1e-12)


def partitions(items):
    """Yield every way to put items into groups."""
    if not items:
        yield []
        return
    first, *rest = items
    for groups in partitions(rest):
        yield [[first], *groups]
        for k in range(len(groups)):
            yield [*groups[:k], [first, *groups[k]], *groups[k + 1 :]]


def distance_over_groups(forecast, chance, mass):
    """The smallest mean way to calibrated forecasts, over all that are the event rate of groups of cases."""
    best = math.inf
    for groups in partitions(list(range(forecast.size))):
        way = 0.0
        for group in groups:
            rate = mass[group] @ chance[group] / mass[group].sum()
            way += mass[group] @ np.abs(forecast[group] - rate)
        best = min(best, way)
    return best


@pytest.mark.parametrize("seed", range(40))
def test_no_class_promises_more_than_the_distance(seed):
    # A population of six cases: calibrated forecasts that are functions of the case are rates of groups of cases.
    # Cases share forecasts and differ in chance, so that the nearest ones are no function of the forecast.
    rng = np.random.default_rng(seed)
    forecast = rng.choice([0.1, 0.4, 0.45, 0.9], size=6)
    chance, mass = rng.choice([0.0, 0.3, 1.0, rng.random()], size=6), rng.dirichlet(np.ones(6))
    distance = distance_over_groups(forecast, chance, mass)
    law = Tally.from_arrays(chance, forecast, sample_weight=1000.0 * mass)
    flat, steep = errors(law)
    assert flat <= distance + 1e-12
    assert steep / 3.0 <= distance + 1e-12
    assert max(flat, steep / 3.0) >= smooth_calibration_error(law) / 2.0 - 1e-12
    for delta in (0.05, 0.999999):
        weight = distance_weight(delta, law)
        assert (weight(law.forecast) @ law.residual) / law.weight_total <= distance + 1e-12


def test_the_bias_is_the_whole_distance_where_all_forecasts_err_to_one_side():
    forecast, chance, mass = np.array([0.1, 0.4, 0.7]), np.array([0.2, 0.6, 0.7]), np.array([0.5, 0.3, 0.2])
    law = Tally.from_arrays(chance, forecast, sample_weight=1000.0 * mass)
    assert errors(law)[0] == pytest.approx(distance_over_groups(forecast, chance, mass), abs=1e-12)


@pytest.mark.parametrize(
    ("forecast", "chance", "expected"),
    [
        ([0.2, 0.5, 0.8], [0.3, 0.6, 0.9], 0.1),  # too low everywhere: all of the bias
        ([0.2, 0.5, 0.8], [0.1, 0.4, 0.7], 0.1),  # too high everywhere
        ([0.05, 0.95], [0.15, 0.85], 0.1 * 0.9 / 3),  # overconfident: weights 0.9 and -0.9
    ],
)
def test_the_class_that_promises_most_is_taken(forecast, chance, expected):
    law = Tally.from_arrays(np.repeat(chance, 4000), np.repeat(forecast, 4000))
    taken = distance_weight(0.05, law)(law.forecast) @ law.residual / law.weight_total
    assert taken == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("measure", MEASURES.where(lambda each: isinstance(each, WeightedMeasure)))
def test_weights_are_functions_of_any_forecast_with_values_from_minus_1_to_1(measure):
    rng = np.random.default_rng(2)
    p = 0.2 + 0.5 * rng.random(50)
    judged = MEASURES[measure].with_variation(3.0)
    assert isinstance(judged, WeightedMeasure)
    weigh = judged.witness(0.05)(Tally.from_arrays(rng.random(50) < p**2, p))
    values = weigh(np.linspace(0.0, 1.0, 1001))
    assert values.shape == (1001,)
    assert (np.abs(values) <= 1.0).all()
    assert np.abs(values).max() > 0.0


def test_partitions_are_all_there():
    assert [sum(1 for _ in partitions(list(range(size)))) for size in range(6)] == [1, 1, 2, 5, 15, 52]
    assert all(sorted(itertools.chain(*groups)) == [0, 1, 2, 3] for groups in partitions([0, 1, 2, 3]))
