"""Losses that are straight lines in the outcome: kappa times those of a threshold, by brute force; and no others."""

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant
from calibrant.decisions import affine_costs, sign_testing_gap, sign_testing_risk

GRID = [0.0, 0.1, 0.25, 0.5, 0.7, 0.9, 1.0]


@st.composite
def lines(draw):
    """Two lines that cross between 0 and 1, the second one below for large outcomes."""
    vain, missed = draw(st.floats(0.0, 5.0)), draw(st.floats(0.01, 5.0))
    level, slope = draw(st.floats(-3.0, 3.0)), draw(st.floats(-3.0, 3.0))
    return (level, slope), (level + vain, slope - vain - missed)


rows = st.lists(st.tuples(st.floats(0.0, 1.0), st.sampled_from(GRID)), min_size=1, max_size=7)


def brute_gap(y, p, not_acting, acting, shape):
    """What the best rule of a shape saves, with what both actions lose besides: a curve of the outcome."""
    besides = np.cos(3.0 * y) + y**3
    loss = np.array([besides + level + slope * y for level, slope in (not_acting, acting)])
    kappa = not_acting[1] - acting[1]
    today = p >= (acting[0] - not_acting[0]) / kappa
    cuts = [-0.5, *np.unique(p), 1.5]
    rules = [p >= cut for cut in cuts]
    if shape == "monotone":
        rules += [p <= cut for cut in cuts]
    if shape == "any":
        values = np.unique(p)
        rules = [
            np.isin(p, chosen) for size in range(values.size + 1) for chosen in itertools.combinations(values, size)
        ]
    now = float(np.where(today, loss[1], loss[0]).mean())
    return now - min([now, *(float(np.where(rule, loss[1], loss[0]).mean()) for rule in rules)]), kappa


@pytest.mark.parametrize("shape", ["nondecreasing", "monotone", "any"])
@settings(max_examples=40)
@given(data=rows, pair=lines())
def test_gaps_of_straight_losses_are_kappa_times_those_of_a_threshold(shape, data, pair):
    y, p = np.array(data).T
    not_acting, acting = pair
    costs = affine_costs(not_acting=not_acting, acting=acting)
    best, kappa = brute_gap(y, p, not_acting, acting, shape)
    assert costs["cost_false_positive"] + costs["cost_false_negative"] == pytest.approx(kappa)
    tally = calibrant.Tally.from_arrays(y, p)
    threshold = (acting[0] - not_acting[0]) / kappa
    if np.min(np.abs(np.array(GRID) - threshold)) < 1e-9:
        return  # a forecast at the threshold, which rounding puts on either side of it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calibrant.CalibrationWarning)
        found = calibrant.risk_gap(tally, wrapper=shape, **costs)
    assert found.cost_unit is not None
    assert found.cost_bound is not None
    assert found.gap * found.cost_unit == pytest.approx(best, abs=1e-9)
    assert best <= found.cost_bound + 1e-9
    error = {"any": sum(abs(np.sum((y - p)[p == value])) for value in set(p)) / y.size}.get(
        shape, (2.0 if shape == "monotone" else 1.0) * calibrant.cutoff_calibration_error(tally)
    )
    assert found.cost_bound == pytest.approx(kappa * error, abs=1e-12)


def test_signs_are_straight_losses_too():
    y, p = [0.1, 0.7, 0.4, 0.95], [0.2, 0.4, 0.6, 0.9]
    costs = affine_costs(not_acting=(-2, 4), acting=(2, -4))  # the distance to 1/2, eight times
    assert costs == {"cost_false_positive": 4.0, "cost_false_negative": 4.0}
    gap, plain = sign_testing_gap(y, p, **costs), sign_testing_gap(y, p, threshold=0.5)
    assert (gap.threshold, gap.gap, gap.cost_unit) == (0.5, plain.gap, 8.0)
    assert gap.cost_bound == pytest.approx(8.0 * calibrant.cutoff_calibration_error(y, p))
    assert plain.cost_bound is None
    risk = sign_testing_risk(y, p, **costs)
    assert risk.cost == pytest.approx(8.0 * sign_testing_risk(y, p, threshold=0.5).risk)


def test_certificates_speak_of_straight_losses():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = rng.beta(4.0 * p + 1e-9, 4.0 * (1.0 - p) + 1e-9)
    costs = affine_costs(not_acting=(0, 10), acting=(3, 2))
    found = calibrant.certify(y, p, measure="risk_gap", max_error=0.05, **costs)
    promised = calibrant.decision_guarantee(found)
    assert promised.cost_unit == 8.0
    assert "in cost units" in str(promised)


BAD: dict[str, Any] = {
    "the same": (((1, 2), (1, 2)), "both actions lose the same"),
    "exchanged": (((3, 2), (0, 10)), "acting has the smaller loss at outcome 0 .* exchange the two actions"),
    "acting always": (((2, 3), (0, 1)), "acting is better whatever the outcome"),
    "acting never": (((0, 1), (2, 3)), "not_acting is better whatever the outcome"),
    "three numbers": (((0, 1, 2), (1, 0)), "not_acting has 3 values"),
    "missing": (((0, 1), (np.nan, 0)), r"acting\[0\] is missing"),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_lines_that_leave_nothing_to_decide_are_refused(bad):
    (not_acting, acting), message = bad
    with pytest.raises(calibrant.InputError, match=message):
        affine_costs(not_acting=not_acting, acting=acting)


BREGMAN: dict[str, Any] = {
    "square": (np.square, lambda p: 2.0 * p, 2.0),
    "exponential": (np.exp, np.exp, float(np.e - 1.0)),
    "bend": (lambda p: np.abs(p - 0.3), lambda p: np.where(p > 0.3, 1.0, -1.0), 2.0),
}


@pytest.mark.parametrize("name", BREGMAN)
@settings(max_examples=25)
@given(data=rows, steps=st.lists(st.floats(0.0, 1.0), min_size=len(GRID), max_size=len(GRID)))
def test_losses_consistent_for_the_mean_are_mixtures(name, data, steps):
    """Whatever a non-decreasing map makes of the forecasts, it saves at most the mass times the Cutoff error."""
    convex, slope, mass = BREGMAN[name]
    y, p = np.array(data).T

    def score(forecast):
        return float((convex(y) - convex(forecast) - slope(forecast) * (y - forecast)).mean())

    mapped = np.array(sorted(steps))[np.searchsorted(GRID, p)]
    tally = calibrant.Tally.from_arrays(y, p)
    cutoff = calibrant.cutoff_calibration_error(tally)
    assert score(p) - score(mapped) <= mass * cutoff + 1e-9
    turned = np.array(sorted(steps, reverse=True))[np.searchsorted(GRID, p)]
    assert score(p) - score(turned) <= 2.0 * mass * cutoff + 1e-9


def test_a_consistent_loss_is_the_integral_of_sign_testing():
    y, p, place = 0.83, 0.21, (np.arange(4000) + 0.5) / 4000
    separated = (min(y, p) <= place) & (place < max(y, p))
    second: dict[str, Any] = {"square": lambda t: np.full(t.size, 2.0), "exponential": np.exp}
    for name, density in second.items():
        convex, slope, _ = BREGMAN[name]
        loss = convex(y) - convex(p) - slope(p) * (y - p)
        assert float((np.abs(y - place) * separated * density(place)).mean()) == pytest.approx(loss, rel=1e-2)


# --- No other losses -------------------------------------------------------------------------------------------------

PLACES = np.linspace(0.0, 1.0, 41)


def means_of_two(values, mean):
    """The mean of a function over every law on two places with a given mean."""
    low, high = np.meshgrid(PLACES, PLACES, indexing="ij")
    some = (low <= mean) & (mean < high)
    share = (mean - low[some]) / (high - low)[some]
    below, above = np.meshgrid(values, values, indexing="ij")
    return (1.0 - share) * below[some] + share * above[some]


@pytest.mark.parametrize(
    "difference",
    [
        lambda y: y**2 - 0.3,
        lambda y: np.sqrt(y) - 0.6,
        lambda y: np.where(y > 0.4, 1.0, -1.0),
        lambda y: (y - 0.5) ** 3,
    ],
    ids=["square", "root", "step", "cube"],
)
def test_other_losses_leave_no_rule_that_is_always_right(difference):
    """Some forecast is the mean of a law for which acting is better and of one for which it is worse."""
    values = difference(PLACES)
    assert any(
        means.min() < -1e-9 and means.max() > 1e-9 for means in (means_of_two(values, mean) for mean in PLACES[1:-1])
    )


def test_straight_losses_leave_one():
    values = 3.0 * (PLACES - 0.4)
    for mean in PLACES[1:-1]:
        means = means_of_two(values, mean)
        assert means == pytest.approx(np.full(means.size, 3.0 * (mean - 0.4)), abs=1e-12)


def test_the_example_of_the_theory():
    values = PLACES**2 - 0.3
    means = means_of_two(values, 0.5)
    assert (means.min(), means.max()) == (pytest.approx(-0.05), pytest.approx(0.2))


@settings(max_examples=60)
@given(rows, st.floats(0.05, 0.95), st.floats(0.1, 3.0), st.integers(0, 2**32))
def test_losses_that_are_nearly_straight_are_nearly_covered(data, threshold, kappa, seed):
    """A curve within eta of a line changes the gap by no more than eta where one action is exchanged for another."""
    y, p = np.array(data).T
    bend = np.random.default_rng(seed).uniform(-1.0, 1.0, y.size)
    eta = float(np.abs(bend).max())
    gain = kappa * (y - threshold) + bend  # of acting rather than not
    today = p >= threshold
    saved = [float((((p >= cut).astype(float) - today) * gain).mean()) for cut in [*np.unique(p), 1.5]]
    cutoff = calibrant.cutoff_calibration_error(calibrant.Tally.from_arrays(y, p))
    assert max([0.0, *saved]) <= kappa * cutoff + eta + 1e-9
