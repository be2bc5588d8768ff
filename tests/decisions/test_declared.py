"""Declared decisions: brute force over all relabellings, invariances, the binary case, words, bad input."""

import itertools
import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant
from calibrant.certificates.methods.registry import METHODS
from calibrant.certificates.regrets import (
    _WEIGHTS,
    _averages,
    betting_lower_regret,
    betting_upper_regret,
    hoeffding_upper_regret,
    regret_estimate,
    regret_rates,
)
from calibrant.decisions import LossTable, reject_option, two_action_question
from calibrant.rows.actions import ActionTable

TRIP = pd.DataFrame(
    [[0.0, 0.4, 1.0], [0.3, 0.2, 0.5], [0.6, 0.6, 0.0]],
    index=["walk", "bus", "stay"],
    columns=["sun", "cloud", "rain"],
)
NAMES = np.array(["sun", "cloud", "rain"])


def simulated(rows, classes, seed=0, power=1.0):
    """Calibrated forecasts, or too sure of themselves for a power above 1, and the class of each row."""
    rng = np.random.default_rng(seed)
    chance = rng.dirichlet(np.ones(classes), size=rows)
    place = np.minimum((chance.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1), classes - 1)
    forecast = chance**power
    return place, forecast / forecast.sum(axis=1, keepdims=True)


def table_of(losses, place, forecast):
    return ActionTable.of(losses, place, forecast, None)


def brute_regret(losses, place, forecast, weight=None):
    """Try every relabelling of the actions on the rows themselves."""
    losses = np.asarray(losses, dtype=float)
    action = np.array([min(range(len(losses)), key=lambda a: (round(float(p @ losses[a]), 9), a)) for p in forecast])
    relabellings = itertools.product(range(len(losses)), repeat=len(losses))
    saved = [losses[action, place] - losses[np.array(to)[action], place] for to in relabellings]
    return max(float(np.average(each, weights=weight)) for each in saved)


@st.composite
def problems(draw):
    actions, classes, rows = draw(st.integers(2, 4)), draw(st.integers(2, 4)), draw(st.integers(1, 12))
    losses = draw(
        st.lists(
            st.lists(st.integers(-4, 4), min_size=classes, max_size=classes), min_size=actions, max_size=actions
        ).filter(lambda table: any(line != table[0] for line in table))
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    forecast = rng.integers(0, 5, size=(rows, classes)) + 1e-3
    weight = rng.integers(1, 5, size=rows) if draw(st.booleans()) else None
    return losses, rng.integers(0, classes, size=rows), forecast / forecast.sum(axis=1, keepdims=True), weight


@settings(max_examples=60)
@given(problems())
def test_the_regret_is_that_of_the_best_of_all_relabellings(problem):
    losses, place, forecast, weight = problem
    asked: dict[str, Any] = {"classes": range(len(losses[0])), "sample_weight": weight}
    found = calibrant.certify_decisions(place, forecast, losses, max_regret=1.0, **asked)
    assert found.regret == pytest.approx(brute_regret(losses, place, forecast, weight), abs=1e-12)
    assert found.regret == pytest.approx(sum(each.saved for each in found.changes), abs=1e-11)
    assert found.lower <= found.regret + 1e-12
    assert found.regret <= found.upper + 1e-12
    assert found.risk - found.constant_risk <= found.regret + 1e-12
    assert found.upper <= np.ptp(losses, axis=0).max() + 1e-12


@settings(max_examples=25)
@given(problems(), st.sampled_from([0.05, 0.3]))
def test_limits_are_those_of_bets_on_every_relabelling(problem, delta):
    """Row by row, relabelling by relabelling: what separates in the table must be what was said."""
    losses, place, forecast, weight = problem
    table = ActionTable.of(np.asarray(losses, dtype=float), place, forecast, weight)
    actions = table.taken.size
    rates, share = regret_rates(table, delta), table.total / table.rows
    exponent = np.log(1.0 / (0.98 * delta))
    relabellings = list(itertools.product(range(actions), repeat=actions))
    saved = [table.loss - table.loss[list(to)] for to in relabellings]  # by action taken and class

    def growth(rate, of, sign):
        return float((table.outcome * np.log1p(sign * rate * of)).sum())

    upper = betting_upper_regret(table, delta)
    if upper < 1.0:
        stakes = [
            min(min(growth(x, of, -1.0) for of in saved) - table.rows * np.log1p(-x * share * upper) for x in pair)
            for pair in rates.tolist()
        ]
        assert np.log(np.exp(stakes) @ _WEIGHTS) == pytest.approx(exponent, abs=1e-6)
    lower = betting_lower_regret(table, delta)
    pair = rates[-1].tolist()

    def stake(of):
        paid = [table.taken * np.log1p(x * share * lower) for x in pair]
        each = [(table.outcome * np.log1p(x * of)).sum(axis=1) - cost for x, cost in zip(pair, paid, strict=True)]
        return float(np.exp(np.min(each, axis=0).sum()))

    if lower > 0.0:  # the slowest stake alone, averaged with the probabilities of the four families
        average = sum(_probability(to) * stake(of) for to, of in zip(relabellings, saved, strict=True))
        assert average * _WEIGHTS[-1] <= np.exp(exponent) * (1.0 + 1e-6)


def _probability(to):
    """How likely a relabelling is in the average: four families, a quarter each."""
    actions = len(to)
    changed = [a for a, b in enumerate(to) if a != b]
    one = (len(changed) == 1) / (actions * (actions - 1))
    all_to_one = (len(set(to)) == 1) / actions
    some_to_one = sum(0.5 ** (actions - 1) for b in range(actions) if all(to[a] in (a, b) for a in range(actions)))
    coins = 0.5**actions * (actions - 1.0) ** -len(changed)
    # Where the one action is b itself, staying and changing are the same: both sides of the coin.
    return (one + all_to_one + some_to_one / actions + coins) / 4.0


@pytest.mark.parametrize("actions", [2, 3, 4])
def test_the_probabilities_of_relabellings_add_up(actions):
    total = sum(_probability(to) for to in itertools.product(range(actions), repeat=actions))
    assert total == pytest.approx(1.0)


def test_the_average_over_relabellings_is_the_closed_form():
    gained = np.random.default_rng(3).normal(size=(1, 3, 3))
    brute = sum(
        _probability(to) * np.exp(sum(gained[0, a, b] for a, b in enumerate(to)))
        for to in itertools.product(range(3), repeat=3)
    )
    assert np.mean([np.exp(each[0]) for each in _averages(gained)]) == pytest.approx(brute)


# --- Invariances -----------------------------------------------------------------------------------------------------


def numbers(found):
    return [found.regret, found.lower, found.upper, found.risk, found.constant_risk]


@pytest.fixture(scope="module")
def rows():
    place, forecast = simulated(400, 3, seed=4, power=3.0)
    return place, forecast[:, [1, 2, 0]]  # wrong, so that both limits say something


@pytest.mark.parametrize("method", ["adaptive", "hoeffding"])
def test_neither_names_nor_order_matter(rows, method):
    place, forecast = rows
    plain = calibrant.certify_decisions(NAMES[place], forecast, TRIP, max_regret=0.05, classes=NAMES, method=method)
    order = np.random.default_rng(0).permutation(place.size)
    other = calibrant.certify_decisions(
        NAMES[place[order]],
        forecast[order][:, [2, 0, 1]],
        TRIP.iloc[[2, 0, 1], [1, 2, 0]],
        max_regret=0.05,
        classes=NAMES[[2, 0, 1]],
        method=method,
    )
    assert numbers(other) == pytest.approx(numbers(plain), abs=1e-12)
    assert [(each.action, each.instead) for each in other.changes] == [
        (each.action, each.instead) for each in plain.changes
    ]
    assert plain.regret > 0.1


@pytest.mark.parametrize("method", ["adaptive", "hoeffding"])
def test_what_every_action_loses_in_a_class_does_not_matter_and_units_scale(rows, method):
    place, forecast = rows
    losses = TRIP.to_numpy()
    asked: dict[str, Any] = {"max_regret": 0.05, "method": method}
    plain = calibrant.certify_decisions(place, forecast, losses, **asked)
    shifted = calibrant.certify_decisions(place, forecast, losses + np.array([5.0, -3.0, 100.0]), **asked)
    assert numbers(shifted)[:3] == pytest.approx(numbers(plain)[:3], abs=1e-12)
    assert shifted.risk - shifted.constant_risk == pytest.approx(plain.risk - plain.constant_risk)
    scaled = calibrant.certify_decisions(place, forecast, 40.0 * losses, max_regret=2.0, method=method)
    assert numbers(scaled) == pytest.approx([40.0 * each for each in numbers(plain)], rel=1e-12)
    assert scaled.verdict == plain.verdict


def test_equal_weights_are_none_and_rows_of_weight_zero_are_not_there(rows):
    place, forecast = rows
    asked: dict[str, Any] = {"losses": TRIP.to_numpy(), "max_regret": 0.05}
    plain = calibrant.certify_decisions(place, forecast, **asked)
    assert numbers(calibrant.certify_decisions(place, forecast, **asked, sample_weight=np.full(400, 2.5))) == (
        pytest.approx(numbers(plain), abs=1e-12)
    )
    weight = np.append(np.ones(400), 0.0)
    more = calibrant.certify_decisions(
        np.append(place, 0), np.vstack([forecast, [1.0, 0.0, 0.0]]), **asked, sample_weight=weight
    )
    assert numbers(more) == numbers(plain)
    unequal = calibrant.certify_decisions(
        place, forecast, **asked, sample_weight=np.random.default_rng(1).integers(1, 4, 400)
    )
    assert unequal.n_eff < unequal.rows == 400
    assert "weights were fixed beforehand" in str(unequal)


# --- Two classes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5, 0.75])
@pytest.mark.parametrize("shape", ["one column", "two columns"])
def test_two_classes_and_a_threshold_are_the_decision_functions(threshold, shape):
    """Acting is named first: ties are then acted on, as everywhere."""
    rng = np.random.default_rng(7)
    p = rng.integers(0, 21, size=500) / 20.0
    y = (rng.random(500) < p**2).astype(int)
    losses = [[threshold, 0.0], [0.0, 1.0 - threshold]]
    forecast = p if shape == "one column" else np.column_stack([1.0 - p, p])
    found = calibrant.certify_decisions(y, forecast, losses, max_regret=0.1, classes=[0, 1])
    risk = calibrant.decision_risk(y, p, threshold=threshold)
    assert found.risk == pytest.approx(risk.risk, abs=1e-12)
    assert found.taken[0] == pytest.approx(risk.acted)
    always, never = threshold * np.mean(1 - y), (1.0 - threshold) * np.mean(y)
    assert found.constant_risk == pytest.approx(min(always, never))
    # Exchanging the actions is one way to use the forecasts again: monotone ones save no less.
    gap = calibrant.risk_gap(y, p, threshold=threshold, wrapper="monotone")
    assert found.regret <= gap.gap + 1e-12
    acts = p >= threshold
    of_acting, of_waiting = threshold - y[acts].mean(), y[~acts].mean() - threshold
    assert found.regret == pytest.approx(max(of_acting, 0) * acts.mean() + max(of_waiting, 0) * (~acts).mean())


TWO = [[1.0, 2.0, 0.5], [2.5, 0.5, 1.5]]


def test_two_actions_of_several_classes_are_one_question():
    place, forecast = simulated(600, 3, seed=2, power=2.5)
    forecast[:5] = [0.5, 0.5, 0.0]  # both actions lose the same: the first is taken, and it is the one that acts
    asked = two_action_question(place, forecast, TWO)
    assert (asked.threshold, asked.unit) == (0.5, 3.0)
    found = calibrant.certify_decisions(place, forecast, TWO, max_regret=0.1)
    acts = asked.y_prob >= asked.threshold
    assert found.taken[0] == pytest.approx(acts.mean())
    assert acts[:5].all()
    loss = np.array(TWO)
    gain = loss[1, place] - loss[0, place]
    assert asked.unit * (asked.y_true - asked.threshold) == pytest.approx(gain)
    cuts = [*np.unique(asked.y_prob), 2.0]
    best = max(float((((asked.y_prob >= cut).astype(float) - acts) * gain).mean()) for cut in cuts)
    gap = calibrant.risk_gap(asked.y_true, asked.y_prob, threshold=asked.threshold)
    assert asked.unit * gap.gap == pytest.approx(best)
    turned = calibrant.risk_gap(asked.y_true, asked.y_prob, threshold=asked.threshold, wrapper="monotone")
    assert found.regret <= asked.unit * turned.gap + 1e-12
    for losses, message in (
        (np.eye(3), "losses has 3 actions where two are needed"),
        ([[0, 0, 0], [1, 1, 1]], "at least as good in every class"),
    ):
        with pytest.raises(calibrant.InputError, match=message):
            two_action_question(place, forecast, losses)


def test_declining_is_one_threshold_of_the_confidence():
    """Rules that name the likeliest class from some confidence up save at most the error of the confidence."""
    place, forecast = simulated(500, 4, seed=5, power=2.0)
    cost = 0.4
    top, confidence = forecast.argmax(axis=1), forecast.max(axis=1)
    right = (top == place).astype(int)
    loss = np.where(confidence >= 1.0 - cost, 1.0 - right, cost)
    others = [np.where(confidence >= cut, 1.0 - right, cost).mean() for cut in [0.0, *confidence, 2.0]]
    gap = calibrant.risk_gap(right, confidence, threshold=1.0 - cost)
    assert loss.mean() - min(others) == pytest.approx(gap.gap, abs=1e-12)
    assert gap.gap <= calibrant.cutoff_calibration_error(right, confidence)
    found = calibrant.certify_decisions(place, forecast, reject_option(cost=cost), max_regret=0.1)
    assert found.risk == pytest.approx(loss.mean())
    by_label = 0.0  # a line of its own for each label
    for label in range(4):
        of = top == label
        lines = [np.where(confidence[of] >= cut, 1.0 - right[of], cost).sum() for cut in [0.0, *confidence[of], 2.0]]
        by_label += (loss[of].sum() - min(lines)) / 500
    masked = [
        calibrant.cutoff_calibration_error(right * (top == label), confidence * (top == label)) for label in range(4)
    ]
    assert gap.gap <= by_label + 1e-12 <= sum(masked) + 1e-9


# --- Limits ----------------------------------------------------------------------------------------------------------


def test_good_forecasts_have_narrow_limits():
    uppers, wide = [], []
    losses = np.random.default_rng(1).random((4, 3))
    for seed in range(8):
        table = table_of(losses, *simulated(500, 3, seed))
        uppers.append(table.unit * betting_upper_regret(table, 0.05))
        wide.append(table.unit * hoeffding_upper_regret(table, 0.05))
    assert np.mean(uppers) < 0.014
    assert np.mean(wide) > 0.1


def test_a_limit_falls_as_one_over_the_number_of_rows():
    few, many = (betting_upper_regret(table_of(TRIP.to_numpy(), *simulated(rows, 3)), 0.05) for rows in (1000, 16000))
    assert many < few / 10.0


def test_overconfident_forecasts_may_have_no_regret():
    """Squared and normalised again, the likeliest class stays the likeliest: whoever names it loses nothing by that."""
    place, forecast = simulated(4000, 3, power=3.0)
    name = 1.0 - np.eye(3)
    assert calibrant.certify_decisions(place, forecast, name, max_regret=0.01).verdict == "certified"
    assert calibrant.certify(place == 0, forecast[:, 0], max_error=0.05).verdict == "refuted"
    declining = calibrant.certify_decisions(place, forecast, reject_option(cost=0.2), max_regret=0.02)
    assert declining.verdict == "refuted"
    assert {each.instead for each in declining.changes} == {"reject"}


def test_ties_go_to_the_first_action():
    forecast = np.full((30, 3), 1.0 / 3.0)
    found = calibrant.certify_decisions([0, 1, 2] * 10, forecast, 1.0 - np.eye(3), max_regret=0.5)
    assert found.taken == (1.0, 0.0, 0.0)
    assert found.notes[-1] == "the rule says 1 and 2 on none of these rows"
    table = LossTable((0, 1, 2), (0, 1, 2), ((0.0, 1.0, 1.0), (1.0, 0.0, 1.0), (1.0, 1.0, 0.0)))
    assert table.best_action(forecast[:2]) == (0, 0)


def test_every_method_that_has_limits_says_so():
    assert [name for name, method in METHODS.items() if method.covers_regret] == ["adaptive", "hoeffding"]
    place, forecast = simulated(50, 3)
    with pytest.raises(calibrant.InputError, match="method='exact' has no limits of regret; use 'adaptive' or 'hoeff"):
        calibrant.certify_decisions(place, forecast, TRIP.to_numpy(), max_regret=0.1, method="exact")


# --- Several problems ------------------------------------------------------------------------------------------------


def test_several_problems_share_one_verdict():
    place, forecast = simulated(3000, 3, power=3.0)
    asked: dict[str, Any] = {"trip": TRIP, "name": reject_option(cost=0.2)}
    limits = {"trip": 0.05, "name": 0.15}
    labels = NAMES[place]
    options: dict[str, Any] = {"classes": NAMES}
    joint = calibrant.certify_decisions(labels, forecast, asked, max_regret=limits, **options)
    assert joint
    assert list(joint) == ["trip", "name"]
    for place_of, name in enumerate(joint):
        alone = calibrant.certify_decisions(labels, forecast, asked[name], max_regret=limits[name], **options)
        assert joint.upper[place_of] == alone.upper  # no correction
        assert joint[name].upper > alone.upper  # those that hold together
        assert joint[name].lower <= alone.lower
        assert joint[name].confidence_level == pytest.approx(0.975)
        assert joint[name].changes == alone.changes
    frame = joint.frame()
    assert frame["problem"].tolist() == ["trip", "name"]
    assert frame["upper"].tolist() == [each.upper for each in joint.certificates]  # of the level of verdict and lower
    assert frame["upper_for_joint_verdict"].tolist() == list(joint.upper)
    header, *lines = joint.table().splitlines()
    assert header.split("  ")[-1] == "all together"
    for line, each in zip(lines, joint.certificates, strict=True):
        assert line.split()[3] == f"{math.ceil(each.upper * 1e4) / 1e4:.4f}"
    assert str(joint).startswith("Certified: with 95% confidence exchanging actions saves too much in none of 2 ")
    assert "one by one" not in str(joint)
    close = {"trip": (joint.upper[0] + joint["trip"].upper) / 2.0, "name": 0.15}
    barely = calibrant.certify_decisions(labels, forecast, asked, max_regret=close, **options)
    assert barely
    assert barely["trip"].verdict == "undecided"
    assert "one by one, with limits that must hold together, trip is undecided. Both hold." in str(barely)
    strict = calibrant.certify_decisions(labels, forecast, asked, max_regret=1e-4, **options)
    assert strict.verdict == "refuted"
    assert "saves too much in name." in str(strict)


def test_json_brings_everything_back(rows):
    place, forecast = rows
    found = calibrant.certify_decisions(place, forecast, {"a": TRIP.to_numpy(), "b": 1 - np.eye(3)}, max_regret=0.05)
    assert type(found).from_json(found.to_json()) == found
    assert json.loads(found.to_json())["problems"] == ["a", "b"]


# --- Words -----------------------------------------------------------------------------------------------------------


def test_the_better_action_is_named(rows):
    place, forecast = rows
    found = calibrant.certify_decisions(NAMES[place], forecast, TRIP, max_regret=0.02, classes=NAMES)
    assert found.verdict == "refuted"
    said = found.sentences()
    assert said[0] == "Refuted: with 95% confidence some exchange of actions saves more than 0.02 per case."
    first = found.changes[0]
    assert f"where the rule says {first.action} (" in said[2]
    assert f", {first.instead} would have lost {first.saved_there:.4f} less per such case" in said[2]
    assert all(len(sentence.split(". ")[0].split()) <= 30 for sentence in said[:1])
    frame = found.frame().set_index("action")
    assert frame.loc[first.action, "better"] == first.instead


def test_a_limit_that_says_nothing_has_a_caution():
    place, forecast = simulated(300, 3)
    wide = calibrant.certify_decisions(place, forecast, 1 - np.eye(3), max_regret=0.5)
    assert wide.verdict == "certified"
    assert wide.cautions[0].startswith("Whoever knew each class beforehand would save 0.6")
    assert not calibrant.certify_decisions(place, forecast, 1 - np.eye(3), max_regret=0.1).cautions
    one = calibrant.certify_decisions([0] * 20, forecast[:20], 1 - np.eye(3), max_regret=0.1, classes=range(3))
    assert one.cautions[0].startswith("One and the same action loses least")


def test_the_reject_option_is_a_table():
    table = reject_option(cost=0.25, error_cost=2.0).for_classes(("a", "reject"))
    assert table.actions == ("a", "reject", "reject!")
    assert table.losses == ((0.0, 2.0), (2.0, 0.0), (0.25, 0.25))
    assert table.best_action([[0.9, 0.1], [0.6, 0.4], [0.1, 0.9]]) == ("a", "reject!", "reject")


def test_many_actions_on_few_rows_have_a_note():
    place, forecast = simulated(60, 30)
    found = calibrant.certify_decisions(place, forecast, 1 - np.eye(30), max_regret=0.1, classes=range(30))
    assert found.upper > found.regret > 0.1
    assert found.notes[-1].startswith("the rule takes an action on ")
    assert found.lower == 0.0


# --- Bad input -------------------------------------------------------------------------------------------------------

BAD: dict[str, Any] = {
    "missing loss": (
        [[0, np.nan, 1], [1, 0, 0]],
        {},
        r"losses\[0\] is missing in column 1; every loss must be a finite",
    ),
    "infinite loss": ([[0, 1, 1], [1, np.inf, 0]], {}, r"losses\[1\] is inf in column 1"),
    "one action": ([[0, 1, 1]], {}, r"losses has 1 action and 3 classes; a decision needs two actions"),
    "one column": ([[0], [1]], {}, r"losses has 2 actions and 1 class;"),
    "flat": ([0, 1, 2], {}, r"losses has shape \(3,\), not two dimensions"),
    "ragged": ([[0, 1, 2], [1, 0]], {}, r"losses of type list cannot be read as a table"),
    "too few classes": ([[0, 1], [1, 0]], {}, r"losses has 2 columns, and there are 3 classes; .* order: 0, 1, 2"),
    "equal": ([[1, 2, 3], [1, 2, 3]], {}, r"losses has the same losses for every action"),
    "no problem": ({}, {}, r"losses is empty"),
    "bad problem": ({"a": [[1, 2, 3]]}, {}, r"losses\['a'\] has 1 action"),
    "other classes": (TRIP, {}, r"losses has no column for class 0; its columns must be"),
    "negative limit": ([[0, 1, 1], [1, 0, 0]], {"max_regret": -0.1}, r"max_regret"),
    "infinite limit": ([[0, 1, 1], [1, 0, 0]], {"max_regret": np.inf}, r"max_regret is infinite"),
    "limits of one": ([[0, 1, 1], [1, 0, 0]], {"max_regret": {"a": 1}}, r"max_regret has a limit per problem"),
    "no limit": ({"a": 1 - np.eye(3)}, {"max_regret": {}}, r"max_regret has no limit for 'a'"),
    "other limit": ({"a": 1 - np.eye(3)}, {"max_regret": {"a": 1, "b": 1}}, r"max_regret has a limit for 'b'"),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_bad_losses_and_limits_are_refused(bad):
    losses, options, message = bad
    place, forecast = simulated(20, 3)
    with pytest.raises(calibrant.InputError, match=message):
        calibrant.certify_decisions(place, forecast, losses, **{"max_regret": 0.1, **options})


def test_bad_frames_and_costs_are_refused():
    place, forecast = simulated(20, 3)
    twice = TRIP.set_axis(["walk", "walk", "stay"])
    with pytest.raises(calibrant.InputError, match="names an action twice"):
        calibrant.certify_decisions(NAMES[place], forecast, twice, max_regret=0.1, classes=NAMES)
    with pytest.raises(calibrant.InputError, match=r"cost is 1, not between 0 and the cost of an error, 1"):
        reject_option(cost=1.0)
    with pytest.raises(calibrant.InputError, match="actions of this LossTable"):
        LossTable(("a",), ("x", "y"), ((0.0, 1.0), (1.0, 0.0)))


def test_the_estimate_is_that_of_the_table():
    place, forecast = simulated(200, 3, power=4.0)
    table = ActionTable.of(TRIP.to_numpy(), place, forecast, None)
    assert table.unit * regret_estimate(table) == pytest.approx(brute_regret(TRIP.to_numpy(), place, forecast))
    assert table.taken.sum() == table.outcome.sum() == 200
