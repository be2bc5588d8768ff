"""The rows that `rows_needed` plans certify a calibrated forecaster as often as it promises, whatever the forecasts.

Fresh rows are drawn, at the number planned, and judged by the limit that users get. The number of successes is compared
with the one that a plan which just keeps its promise stays below in one of 10,000 runs.
"""

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
from scipy.stats import binom
from simulated import FALSE_ALARM, runs_needed

from calibrant import confidence_interval, rows_needed

COUNT = 150

LAWS = {  # how forecasts are drawn, and the error to certify
    "uniform": (lambda rng, rows: rng.random(rows), 0.05),
    "rare events": (lambda rng, rows: rng.beta(0.5, 20.0, rows), 0.02),
    "one forecast": (lambda _, rows: np.full(rows, 0.3), 0.05),
    "one rare forecast": (lambda _, rows: np.full(rows, 0.0005), 0.003),
    "very rare, all distinct": (lambda rng, rows: 0.002 * rng.random(rows), 0.004),
    "sure of themselves": (lambda rng, rows: rng.beta(0.1, 0.1, rows), 0.03),
    "rare on both sides": (lambda rng, rows: np.where(rng.random(rows) < 0.5, 0.002, 0.998), 0.01),
    "a few noisy rows": (lambda rng, rows: np.where(rng.random(rows) < 0.05, 0.4, 1e-4), 0.02),
}


def certified(draw, limit, rows, count, **options) -> Iterator[bool]:
    """Tell of one data set of a calibrated forecaster after the other whether it is certified."""
    rng = np.random.default_rng([rows, count])
    while True:
        y_prob = draw(rng, rows)
        found = confidence_interval(rng.random(rows) < y_prob, y_prob, alternative="less", **options)
        yield found.upper <= limit


def is_reached(power, draw, limit, rows, count, **options):
    """Return whether no more of so many data sets fail to be certified than a plan that keeps its promise allows."""
    found, failed = certified(draw, limit, rows, count, **options), {"plan": 0}
    most = count - int(binom.ppf(FALSE_ALARM, count, power))
    for _ in runs_needed(failed, count, most):
        failed["plan"] += not next(found)
    return failed["plan"] <= most


@pytest.mark.parametrize("method", ["adaptive", "exact", "normal"])
@pytest.mark.parametrize("law", LAWS)
def test_the_rows_planned_reach_the_power_promised(law, method):
    draw, limit = LAWS[law]
    planned = rows_needed(limit, y_prob=draw(np.random.default_rng(3), 20_000), method=method).rows
    assert is_reached(0.9, draw, limit, planned, COUNT, method=method)


@pytest.mark.parametrize("method", ["hoeffding", "paper"])
@pytest.mark.parametrize("law", ["uniform", "one rare forecast", "sure of themselves"])
def test_so_do_those_of_wide_margins(law, method):
    draw, _ = LAWS[law]
    limit = {"hoeffding": 0.1, "paper": 0.9}[method]  # so wide that the error of rare events hardly shows
    planned = rows_needed(limit, y_prob=draw(np.random.default_rng(3), 20_000), method=method).rows
    assert is_reached(0.9, draw, limit, planned, COUNT, method=method)


@pytest.mark.parametrize("measure", ["smooth", "bounded_variation"])
@pytest.mark.parametrize("law", ["uniform", "one rare forecast", "sure of themselves"])
def test_so_do_those_of_other_errors(law, measure):
    draw, limit = LAWS[law]
    planned = rows_needed(limit, y_prob=draw(np.random.default_rng(3), 20_000), measure=measure).rows
    assert is_reached(0.9, draw, limit, planned, COUNT, measure=measure)


@pytest.mark.parametrize(("power", "level"), [(0.5, 0.95), (0.95, 0.95), (0.99, 0.95), (0.95, 0.8)])
@pytest.mark.parametrize(("forecast", "limit"), [(0.001, 0.005), (0.4, 0.08)])
def test_at_other_powers_and_levels(forecast, limit, power, level):
    planned = rows_needed(limit, y_prob=[forecast], power=power, confidence_level=level).rows
    options = {"method": "adaptive", "confidence_level": level}
    assert is_reached(power, lambda _, rows: np.full(rows, forecast), limit, planned, 2 * COUNT, **options)


@pytest.mark.parametrize("method", ["adaptive", "exact"])
@pytest.mark.parametrize("law", ["uniform", "sure of themselves"])
def test_fewer_rows_would_not_do(law, method):
    draw, limit = LAWS[law]
    planned = rows_needed(limit, y_prob=draw(np.random.default_rng(3), 20_000), method=method).rows
    found = certified(draw, limit, int(planned / 1.3), COUNT, method=method)
    assert sum(islice(found, COUNT)) < 0.9 * COUNT


@pytest.mark.parametrize("method", ["adaptive", "exact"])
@pytest.mark.parametrize("law", ["uniform", "sure of themselves"])
def test_a_brier_score_alone_is_enough_to_plan_by(law, method):
    draw, limit = LAWS[law]
    y_prob = draw(np.random.default_rng(3), 20_000)
    planned = rows_needed(limit, brier=float((y_prob * (1 - y_prob)).mean()), method=method).rows
    assert is_reached(0.9, draw, limit, planned, COUNT, method=method)
