"""The planner against simulation, and the theorem about the ECE against its formula and brute force."""

import itertools
import json
import math
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binom

import calibrant
from calibrant import Tally, confidence_interval, rows_needed
from calibrant.certificates import RowsNeeded, ece_hardness_bound, effective_variance, planning
from calibrant.certificates.methods.registry import METHODS, Method
from calibrant.certificates.samples import draw, law_of
from calibrant.core.chernoff import chernoff_interval, chernoff_intervals
from calibrant.measures.registry import MEASURES

EVERY_METHOD = pytest.mark.parametrize("method", METHODS)


def refused(message):
    return pytest.raises(ValueError, match=message)


# --- Rows needed ------------------------------------------------------------------------------------------------------


def uniform(rng, size):
    return rng.random(size)


DRAWS = np.random.default_rng(0)
SHAPES = {
    "uniform": DRAWS.random(3000),
    "rare": DRAWS.beta(0.5, 20.0, 3000),
    "one forecast": np.array([0.3]),
    "one rare forecast": np.array([0.0005]),
    "sure": DRAWS.beta(0.1, 0.1, 3000),
    "in between": DRAWS.beta(0.3, 0.3, 3000),
    "three forecasts": np.array([0.0, 0.01, 0.5]),
}


@pytest.mark.parametrize("relative_to", ["rows", "events"])
@pytest.mark.parametrize("rows", [40, 3000])
@pytest.mark.parametrize("shape", SHAPES)
@EVERY_METHOD
def test_what_is_simulated_are_the_limits_that_users_get(method, shape, rows, relative_to):
    law = law_of(SHAPES[shape], None, 64)
    draws = 25 if method == "exact" else 12  # the more where ratios are averaged
    samples = replace(draw(law, rows, draws), inside=0.0)  # the distinct forecasts are those of the law
    most = 1.0 if relative_to == "rows" else math.inf
    for delta in (0.05, 0.2):
        plan = planning._Plan(METHODS[method], MEASURES["cutoff"], relative_to, delta)
        found = np.minimum(planning._limits(plan, samples), most)
        expected = []
        for counts, events in zip(samples.rows, samples.events, strict=True):
            some = counts > 0
            tally = Tally.from_counts(law.forecast[some], counts[some], events[some])
            asked = {"confidence_level": 1 - delta, "method": method, "relative_to": relative_to}
            expected.append(confidence_interval(tally, alternative="less", **asked).upper)
        if method == "exact" and law.forecast.size > 4:  # a stand-in for binomial margins
            there = np.isfinite(found)
            assert np.array_equal(there, np.isfinite(expected))
            ratio = found[there] / np.array(expected)[there]
            assert ratio.min() > 0.97
            assert ratio.mean() < (1.15 if rows == 40 else 1.08)
        else:
            # Of the interval for next to no events a plan knows little: it is the wider for it.
            assert found == pytest.approx(np.array(expected), rel=0.01 if shape == "one rare forecast" else 1e-9)


@pytest.mark.parametrize("delta", [1e-9, 1e-4, 0.05])
def test_many_chernoff_intervals_at_once_are_those_of_each(delta):
    totals = np.array([0.0, 0.5, 1.0, 17.3, 1e3, 1e7])
    expected = np.array([chernoff_interval(total, delta) for total in totals.tolist()]).T
    found = chernoff_intervals(totals, delta)
    assert found[:, 1:] == pytest.approx(expected[:, 1:], rel=1e-9)
    assert found[0, 0] == 0.0
    assert expected[1, 0] <= found[1, 0] < 1.02 * expected[1, 0]


def test_joined_forecasts_keep_their_mean_and_are_no_less_noisy():
    rng = np.random.default_rng(4)
    for forecasts in (rng.random(5000), rng.beta(0.02, 0.02, 5000), np.round(rng.beta(0.5, 20, 5000), 3)):
        for weights in (None, rng.random(5000)):
            law = law_of(forecasts, weights, 64)
            assert law.forecast.size <= 64
            assert (np.diff(law.forecast) > 0.0).all()
            assert law.share.sum() == pytest.approx(1.0)
            assert law.share @ law.forecast == pytest.approx(np.average(forecasts, weights=weights))
            spread = np.average(forecasts * (1 - forecasts), weights=weights)
            assert spread <= law.share @ (law.forecast * (1 - law.forecast)) <= 1.02 * spread
            assert 0.0 < law.joined < spread / 20
    alone = law_of(np.array([0.2, 0.1, 0.2, 0.9]), np.array([1.0, 2.0, 1.0, 0.0]), 64)
    assert (alone.forecast.tolist(), alone.share.tolist(), alone.joined) == ([0.1, 0.2], [0.5, 0.5], 0.0)


@pytest.mark.parametrize("power", [0.1, 0.5, 0.9, 0.99, 0.999])
def test_as_many_draws_must_succeed_as_show_the_power(power):
    draws = 2000 if power <= 0.99 else 8000
    wanted = planning._successes(draws, power)
    assert power * draws < wanted <= draws
    assert binom.sf(wanted - 1, draws, power) <= 0.01 < binom.sf(wanted - 2, draws, power)


@pytest.mark.parametrize(
    ("max_error", "brier", "rows"),
    [(0.05, 1 / 6, 218_306), (0.02, 0.5 / 20.5 - 0.5 * 1.5 / (20.5 * 21.5), 1_297_742)],
    ids=["uniform", "rare events"],
)
@EVERY_METHOD
def test_the_papers_margin_needs_the_rows_it_is_known_for(max_error, brier, rows, method):
    planned = rows_needed(max_error, brier=brier, method=method)
    assert planned.paper_rows == pytest.approx(rows, rel=0.012)
    assert (planned.rows == planned.paper_rows) == (method == "paper")
    assert planned.brier == pytest.approx(brier)


def test_hoeffdings_rows_are_near_those_of_the_range_of_brownian_motion():
    spread = calibrant.certificates.brownian_range.ppf(0.9) * math.sqrt(1 / 6)
    expected = ((spread + math.sqrt(2 * math.log(20))) / 0.05) ** 2
    assert 1.0 < rows_needed(0.05, brier=1 / 6, method="hoeffding").rows / expected < 1.04


@pytest.mark.usefixtures("few_draws")
def test_the_same_question_has_the_same_answer():
    y_prob = uniform(np.random.default_rng(0), 1000)
    first = rows_needed(0.05, y_prob=y_prob)
    planning._planned_rows.cache_clear()  # what is remembered is the same for sure
    np.random.default_rng().random(10)
    assert rows_needed(0.05, y_prob=y_prob) == first
    planning._planned_rows.cache_clear()
    assert rows_needed(0.05, y_prob=y_prob[::-1]).rows == first.rows


def test_an_error_of_1_is_certified_by_any_rows():
    assert rows_needed(1.0, brier=0.1).rows == 1


@pytest.mark.usefixtures("few_draws")
@EVERY_METHOD
def test_more_is_needed_for_smaller_errors_more_confidence_more_power_and_more_noise(method):
    usual: dict[str, Any] = {"max_error": 0.05, "confidence_level": 0.95, "power": 0.9, "y_prob": [0.2]}
    harder: dict[str, list[Any]] = {
        "max_error": [0.2, 0.05, 0.01, 0.001],
        "confidence_level": [0.75, 0.9, 0.95, 0.999],
        "power": [0.1, 0.5, 0.9, 0.999],
        "y_prob": [[0.01], [0.05], [0.2], [0.5]],
    }
    for name, values in harder.items():
        rows = [rows_needed(**{**usual, name: value}, method=method).rows for value in values]
        assert rows == sorted(rows), name
        assert len(set(rows)) == len(rows), name
    by_score = [rows_needed(0.05, brier=brier, method=method).rows for brier in (0.02, 0.25)]
    assert by_score[0] < by_score[1]


@pytest.mark.usefixtures("few_draws")
def test_better_methods_need_fewer_rows():
    for options in ({"brier": 1 / 6}, {"y_prob": uniform(np.random.default_rng(0), 1000)}):
        rows = {method: rows_needed(0.05, method=method, **options).rows for method in get_args(Method)}
        assert rows["normal"] < rows["exact"] < rows["adaptive"] < rows["hoeffding"] < rows["paper"]


@EVERY_METHOD
def test_a_brier_score_alone_takes_as_many_rows_as_forecasts_of_any_shape_with_that_score(method):
    rng = np.random.default_rng(1)
    for y_prob in (rng.beta(0.3, 0.3, 500), rng.beta(0.5, 20, 500), np.array([0.2])):
        planned = rows_needed(0.05, y_prob=y_prob, method=method)
        assert planned.brier == pytest.approx((y_prob * (1 - y_prob)).mean())
        assert planned.rows <= 1.03 * rows_needed(0.05, brier=planned.brier, method=method).rows


def test_a_plan_carries_what_was_asked_and_reads_as_a_sentence():
    planned = rows_needed(0.05, confidence_level=0.99, power=0.8, brier=0.25, method="hoeffding")
    assert isinstance(planned, RowsNeeded)
    assert (planned.max_error, planned.confidence_level, planned.power) == (0.05, 0.99, 0.8)
    assert (planned.method, planned.brier) == ("hoeffding", 0.25)
    assert str(planned) == (
        f"About {planned.rows:,} rows certify a Cutoff calibration error of at most 0.05 with 99% confidence in 80% of "
        "cases, if the forecaster is calibrated with a Brier score of 0.25 (hoeffding method; the paper's margin needs "
        f"{planned.paper_rows:,})."
    )
    assert json.loads(planned.to_json())["rows"] == planned.rows


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_error": 0}, r"^max_error is 0; no number of rows certifies an error of exactly 0"),
        ({"max_error": -0.1}, r"^max_error must be a number from 0 to 1, got -0\.1"),
        ({"max_error": 5}, r"^max_error must be a number from 0 to 1, got 5"),
        ({"max_error": "0.05"}, r"^max_error must be a number, got '0\.05' of type str"),
        ({"max_error": 1e-9}, r"^max_error is so small that more than 2\^53 rows would be needed"),
        ({"max_error": 1e-9, "method": "exact"}, r"^max_error is so small that more than 2\^53 rows would be needed"),
        ({"confidence_level": 95}, r"^confidence_level is 95; write 0\.95 for 95%"),
        ({"confidence_level": 0.6, "method": "exact"}, r"^method='exact' needs a confidence_level of at least 0\.75"),
        ({"power": 0}, r"^power is 0; choose how likely success should be, between 0 and 1, as in 0\.9"),
        ({"power": 1}, r"^power is 1; choose how likely success should be"),
        ({"power": 0.9995}, r"^power is 0\.9995; plans are made for a power of up to 0\.999"),
        ({"power": 90}, r"^power must be a number from 0 to 1, got 90"),
        ({"method": "best"}, r"^method must be one of 'adaptive', 'exact', 'normal', 'hoeffding', 'paper', got 'best'"),
        ({"measure": "all"}, r"^measure must be one of 'cutoff', 'smooth', .*, got 'all'"),
        (
            {"measure": "ece"},
            r"^measure='ece' has no plan: its limits depend on how often forecasts repeat; plan for one of 'cutoff',",
        ),
        ({"measure": "distance"}, r"^measure='distance' has no plan: its upper limit also counts how forecasts spread"),
        ({"measure": "bounded_variation", "variation": math.inf}, r"^measure='bounded_variation' has no plan"),
        ({"measure": "smooth", "method": "exact"}, r"^method='exact' covers measure='cutoff' only"),
        ({"brier": None}, r"^pass either brier= \(the mean squared residual you expect\) or y_prob= \(forecasts like"),
        ({"y_prob": [0.5]}, r"^pass either brier= .* or y_prob="),
        ({"brier": 0}, r"^brier is 0: calibrated forecasts that are never wrong leave nothing to plan for"),
        ({"brier": 0.3}, r"^brier must be a number from 0 to 0\.25, got 0\.3"),
        ({"brier": [0.1]}, r"^brier must be a number, got \[0\.1\] of type list"),
        ({"brier": None, "y_prob": []}, r"^y_prob is empty"),
        ({"brier": None, "y_prob": [0.5, 20]}, r"^y_prob\[1\] is 20, outside \[0, 1\]; .*percentages"),
        ({"brier": None, "y_prob": [0.5, math.nan]}, r"^y_prob\[1\] is missing"),
        ({"brier": None, "y_prob": [0.0, 1.0]}, r"^y_prob holds only 0 and 1: calibrated"),
    ],
    ids=str,
)
def test_plans_that_cannot_be_made_are_refused(options, message):
    with refused(message):
        rows_needed(**{"max_error": 0.05, "brier": 0.1, **options})


# --- The theorem about the ECE ----------------------------------------------------------------------------------------


@given(
    rows=st.integers(1, 10**9),
    error=st.floats(0.0, 0.02),
    delta=st.floats(1e-6, 0.02),
    variance=st.floats(1e-3, 0.25),
)
def test_the_hardness_bound_is_the_theorems_formula(rows, error, delta, variance):
    expected = 1 - 2 * math.e * (error + delta + 1 / rows) / variance
    found = ece_hardness_bound(rows, max_error=error, confidence_level=1 - delta, effective_variance=variance)
    assert found == pytest.approx(max(expected, 0.0), abs=1e-9)
    assert 0.0 <= found < 1.0


def test_the_hardness_bound_is_cut_at_0_where_the_theorem_says_nothing():
    assert ece_hardness_bound(10, max_error=0.5, confidence_level=0.5, effective_variance=0.25) == 0.0
    assert ece_hardness_bound(10**9, max_error=0.0, confidence_level=1 - 1e-9, effective_variance=0.0) == 0.0


def test_the_hardness_bound_grows_with_rows_confidence_and_noise_and_falls_with_the_error():
    usual: dict[str, Any] = {"rows": 10_000, "max_error": 0.002, "confidence_level": 0.998, "effective_variance": 0.1}
    harder: dict[str, list[Any]] = {
        "rows": [1000, 10_000, 10**400],
        "max_error": [0.005, 0.002, 0.0],
        "confidence_level": [0.995, 0.998, 0.9999],
        "effective_variance": [0.05, 0.1, 0.25],
    }
    for name, values in harder.items():
        bounds = [ece_hardness_bound(**{**usual, name: value}) for value in values]
        assert bounds == sorted(bounds)
        assert len(set(bounds)) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": 0}, r"^rows must be a whole number from 1 to inf, got 0"),
        ({"rows": 1.5}, r"^rows must be a whole number from 1 to inf, got 1\.5"),
        ({"rows": "many"}, r"^rows must be a whole number, got 'many' of type str"),
        ({"max_error": 2}, r"^max_error must be a number from 0 to 1, got 2"),
        ({"confidence_level": 99}, r"^confidence_level is 99; write 0\.99"),
        ({"confidence_level": 1}, r"^confidence_level must be from 0\.5 to below 1, got 1"),
        ({"effective_variance": 0.5}, r"^effective_variance must be a number from 0 to 0\.25, got 0\.5"),
        ({"effective_variance": [0.1]}, r"^effective_variance must be a number, got \[0\.1\]"),
    ],
    ids=str,
)
def test_the_hardness_bound_refuses_what_no_theorem_is_about(options, message):
    with refused(message):
        ece_hardness_bound(
            **{"rows": 100, "max_error": 0.01, "confidence_level": 0.99, "effective_variance": 0.1, **options}
        )


def least_variance(means, gamma, weights):
    """Choose how much of each row belongs to the set, by linear programming."""
    share = np.asarray(weights) / np.sum(weights)
    variance = np.asarray(means) * (1 - np.asarray(means))
    return linprog(share * variance, A_ub=[-share], b_ub=[-gamma], bounds=(0, 1)).fun


@given(
    rows=st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.1, 5.0)), min_size=1, max_size=12),
    gamma=st.floats(0.0, 0.999),
    weighted=st.booleans(),
)
def test_the_effective_variance_is_the_least_of_all_parts_of_the_population(rows, gamma, weighted):
    means, drawn = zip(*rows, strict=True)
    weights = list(drawn) if weighted else [1.0] * len(means)
    found = effective_variance(means, gamma, sample_weight=weights if weighted else None)
    assert found == pytest.approx(least_variance(means, gamma, weights), abs=1e-6)


def test_the_effective_variance_of_whole_rows_is_the_least_over_all_subsets():
    means = np.array([0.5, 0.1, 0.9, 0.3, 0.02])
    variance = means * (1 - means)
    for size in range(6):
        least = min(sum(variance[list(chosen)]) for chosen in itertools.combinations(range(5), size)) / 5
        assert effective_variance(means, size / 5) == pytest.approx(least, abs=1e-15)


def test_noise_everywhere_makes_the_effective_variance_at_least_gamma_times_it():
    means = np.random.default_rng(0).uniform(0.2, 0.8, 1000)
    for gamma in (0.05, 0.5, 1.0):
        assert gamma * 0.16 <= effective_variance(means, gamma) <= gamma * 0.25
    assert effective_variance(means) == effective_variance(means, 0.05)


def test_rows_of_weight_0_have_no_variance_to_offer():
    assert effective_variance([0.2, 0.5], 1.0, sample_weight=[1, 0]) == pytest.approx(0.16)
    assert effective_variance([0.0, 0.5], 0.5, sample_weight=[0, 1]) == pytest.approx(0.125)


@pytest.mark.parametrize(
    ("means", "options", "message"),
    [
        ([0.5, 1.5], {}, r"^mean_outcome\[1\] is 1\.5, outside \[0, 1\]"),
        ([0.5, None], {}, r"^mean_outcome\[1\] is missing"),
        ([], {}, r"^mean_outcome is empty"),
        (0.5, {}, r"^mean_outcome is one float, not an array"),
        (None, {}, r"^mean_outcome is None"),
        ([0.5], {"gamma": 1.5}, r"^gamma must be a number from 0 to 1, got 1\.5"),
        ([0.5], {"gamma": "half"}, r"^gamma must be a number, got 'half'"),
        ([0.5, 0.5], {"sample_weight": [1, -1]}, r"^sample_weight\[1\] is -1"),
        ([0.5, 0.5], {"sample_weight": [1]}, r"^sample_weight has 1 values? for 2 rows"),
        ([0.5, 0.5], {"sample_weight": [0, 0]}, r"^sample_weight is zero everywhere"),
    ],
    ids=str,
)
def test_the_effective_variance_refuses_bad_input(means, options, message):
    with refused(message):
        effective_variance(means, **options)


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize("method", ["adaptive", "exact", "normal", "hoeffding", "paper"])
def test_a_forecast_may_be_counted_instead_of_repeated(method):
    counted = rows_needed(0.05, y_prob=[0.1, 0.4, 0.8], sample_weight=[3, 1, 2], method=method)
    repeated = rows_needed(0.05, y_prob=np.repeat([0.1, 0.4, 0.8], [3, 1, 2]), method=method)
    assert counted.rows == repeated.rows
    assert counted.brier == pytest.approx(repeated.brier, abs=1e-15)
    with pytest.raises(ValueError, match="sample_weight was given without y_prob"):
        rows_needed(0.05, brier=0.1, sample_weight=[1.0], method=method)


def test_a_plan_for_rare_events_is_cautioned_as_its_certificate_would_be():
    rng = np.random.default_rng(3)
    rare = rng.beta(0.2, 40.0, 4000)
    plan = rows_needed(0.05, y_prob=rare)
    (caution,) = plan.cautions
    assert caution.startswith("Forecasting 0 for everybody would pass this limit of 5.0%, since events are 0.")
    assert "relative_to='events'" in caution
    assert str(plan).endswith(f"\nCaution: {caution}")
    assert rows_needed(0.25, y_prob=rare, relative_to="events").cautions == ()
    assert rows_needed(0.05, y_prob=rng.random(4000)).cautions == ()
    (by_score,) = rows_needed(0.05, brier=0.005).cautions
    assert by_score.startswith("Events may be as rare as 0.50%, by this Brier score. If so: Forecasting 0 for")
    assert rows_needed(0.05, brier=0.15).cautions == ()
    (in_clusters,) = rows_needed(0.05, y_prob=rare, cluster_size=10, intra_cluster_correlation=0.05).cautions
    assert "relative_to" not in in_clusters
    (saving,) = rows_needed(0.01, y_prob=rare, measure="risk_gap").cautions
    assert saving.startswith("Without any forecast, the better of acting always and acting never loses at most 0.00")
