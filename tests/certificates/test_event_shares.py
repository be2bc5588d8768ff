"""Limits that are shares of the events, against brute force, from every source; and cautions about limits too wide."""

import itertools
import math
from typing import Any

import brute_force
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom

import calibrant
from calibrant import Tally, certify, confidence_interval
from calibrant.certificates.betting import bet_exponent, interval_rates
from calibrant.certificates.cautions import cautions_on
from calibrant.certificates.event_shares import RATE_SHARE, event_rate_limits, of_events, upper_share
from calibrant.certificates.methods.registry import METHODS
from calibrant.cli.voices import SHELL
from calibrant.core.chernoff import mean_interval
from calibrant.core.voices import speaking
from calibrant.rows.cells import Cells
from calibrant.rows.refinement import growth_error, growth_scores

RNG = np.random.default_rng(20)


def fraud(rows=20_000, times=3.0, seed=0):
    """Events of 1.9%, and scores so many times too high."""
    rng = np.random.default_rng(seed)
    chance = rng.beta(0.5, 25.8, rows)
    return rng.random(rows) < chance, np.minimum(times * chance, 1.0)


# --- The bet ----------------------------------------------------------------------------------------------------------


def brute_limit(y, p, rate, exponent):
    """The root, by trying every interval and sign at every share."""
    values = np.unique(p)
    inside = [(p >= low) & (p <= high) for low, high in itertools.combinations_with_replacement(values, 2)]
    inside.append(np.zeros(p.size, dtype=bool))

    def gain(share):
        bets = (sign * (y - p) * chosen - share * y for chosen in inside for sign in (1.0, -1.0))
        return min(np.log1p(-rate * bet).sum() for bet in bets) - exponent

    top = 1.0
    while gain(top) < 0.0:
        top *= 2.0
    return brentq(gain, 0.0, top, xtol=1e-13, rtol=1e-14)


@pytest.mark.parametrize("seed", range(25))
def test_the_limit_is_that_of_every_interval_tried(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 40))
    p = np.round(rng.beta(0.7, 2.0, n), int(rng.integers(1, 4)))
    y = (rng.random(n) < np.minimum(rng.choice([0.5, 1.0, 2.0]) * p + 0.05, 1.0)).astype(float)
    if y.sum() == 0.0:
        y[0] = 1.0
    tally = Tally.from_arrays(y, p)
    delta = rng.choice([0.05, 0.2])
    brute = max(brute_limit(y, p, rate, bet_exponent(delta)) for rate in interval_rates(tally, delta))
    assert upper_share(tally, tally, delta) == pytest.approx(brute, rel=1e-9)


@given(brute_force.rows(most=12, weighted=False))
def test_whatever_the_rows_no_interval_gains_less_than_it_must(rows):
    y, p, _ = rows
    tally = Tally.from_arrays(y, p)
    limit = upper_share(tally, tally, 0.1)
    if not math.isfinite(limit):
        return
    for rate in interval_rates(tally, 0.1):
        for low, high in itertools.combinations_with_replacement(np.unique(p), 2):
            for sign in (1.0, -1.0):
                bet = sign * (y - p) * ((p >= low) & (p <= high)) - limit * y
                assert np.log1p(-rate * bet).sum() >= bet_exponent(0.1) - 1e-9


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.7, 0.89])
def test_fractions_are_bet_on_by_a_bound_from_below(rate):
    rng = np.random.default_rng(round(100 * rate))
    y, p, inside = rng.random(4000) ** 3, rng.random(4000), rng.random(4000) < 0.5
    psi = -math.log1p(-rate) - rate
    for share in (0.01, 0.3, 1.0, 4.0):
        for sign in (1.0, -1.0):
            r = sign * (y - p)
            exact = np.log1p(-rate * (r * inside - share * y))
            bound = y * (math.log1p(rate * share) - rate**2 * share / 2)
            bound -= inside * (rate * r + (psi + rate**2 * share / 2) * r**2)
            assert (bound <= exact + 1e-12).all()


def test_fractions_that_are_forecast_well_have_a_narrow_limit():
    rng = np.random.default_rng(8)
    p = rng.beta(0.5, 20.0, 10_000)
    y = np.clip(p * rng.uniform(0.85, 1.15, p.size), 0.0, 1.0)
    for level in (0.95, 0.999):
        assert confidence_interval(y, p, alternative="less", relative_to="events", confidence_level=level).upper < 0.1


def test_unequal_weights_divide_two_limits():
    y, p = fraud(6000, times=1.5)
    weight = np.random.default_rng(1).uniform(0.5, 1.0, p.size)
    low, _ = event_rate_limits(Tally.from_arrays(y, p, sample_weight=weight), RATE_SHARE * 0.05)
    asked = {"alternative": "less", "sample_weight": weight}
    found = confidence_interval(y, p, relative_to="events", **asked)
    rows = confidence_interval(y, p, confidence_level=1.0 - 0.8 * 0.05, **asked)
    assert found.upper == pytest.approx(rows.upper / low, rel=1e-9)
    equal = confidence_interval(y, p, alternative="less", relative_to="events", sample_weight=np.full(p.size, 3.0))
    tally = Tally.from_arrays(y, p)
    assert equal.upper == pytest.approx(upper_share(tally, tally, 0.05), rel=1e-9)


def test_the_limit_grows_with_the_level_and_shrinks_with_the_rows():
    y, p = fraud(4000, times=1.0)
    tally = Tally.from_arrays(y, p)
    limits = [upper_share(tally, tally, delta) for delta in (0.2, 0.05, 0.01, 1e-6)]
    assert limits == sorted(limits)
    twice = Tally.from_counts(tally.forecast, 4 * tally.rows, 4 * tally.events)
    assert upper_share(twice, twice, 0.05) < upper_share(tally, tally, 0.05)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("rate", "event_rate"), [(0.05, 0.04), (0.5, 0.3), (0.9, 0.2)])
def test_growth_at_two_rates_follows_from_cells_to_within_its_error(sign, rate, event_rate):
    p = RNG.beta(0.6, 3.0, 20_000)
    y = RNG.random(p.size) < p
    rows = np.where(y, -np.log1p(-event_rate * sign * (1.0 - p)), -np.log1p(rate * sign * p))
    for bits in (4, 8, 12):
        cells = Cells.from_arrays(y, p, bits=bits)
        place = np.minimum(np.floor(p * 2**bits), 2**bits - 1).astype(int)
        exact = np.bincount(place, rows, minlength=2**bits)[np.unique(place)]
        found = growth_scores(cells, rate, sign, event_rate)
        assert (np.abs(found.total - exact) <= growth_error(cells, rate, event_rate) + 1e-9).all()
        assert min(found.up.min(), found.down.min()) >= 0.0


@pytest.mark.parametrize("shape", [(0.5, 20.0), (1.0, 1.0), (0.05, 5.0)])
def test_scans_and_arrays_of_many_rows_have_the_limit_of_their_tally(shape, tmp_path):
    rng = np.random.default_rng(3)
    p = rng.beta(shape[0], shape[1], 150_000)
    y = (rng.random(p.size) < np.minimum(1.1 * p, 1.0)).astype(int)
    tally = Tally.from_arrays(y, p)
    expected = certify(tally, max_error=0.25, relative_to="events")
    file = tmp_path / "rows.parquet"
    pd.DataFrame({"y": y, "p": p}).to_parquet(file)
    with calibrant.scan(str(file), y_true="y", y_prob="p") as scanned:
        both = [certify(*rows, max_error=0.25, relative_to="events") for rows in ((y, p), (scanned,))]
    for found in both:
        for name in ("estimate", "upper", "lower", "event_rate"):
            assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9), name
        assert (found.verdict, found.cautions) == (expected.verdict, expected.cautions)


# --- Quotients --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["exact", "normal", "hoeffding", "paper"])
def test_other_methods_divide_two_limits(method):
    y, p = fraud(6000, times=1.5)
    rate_delta = RATE_SHARE * 0.05
    low, high = event_rate_limits(Tally.from_arrays(y, p), rate_delta)
    assert low < y.mean() < high
    level = 1.0 - (0.05 - rate_delta)
    found = certify(y, p, max_error=0.25, relative_to="events", method=method)
    rows = certify(y, p, max_error=0.25, confidence_level=level, method=method)
    assert found.upper == pytest.approx(rows.upper / low, rel=1e-9)
    assert found.lower == pytest.approx(rows.lower / high, rel=1e-9)
    assert found.estimate == pytest.approx(rows.estimate / y.mean(), rel=1e-12)


@pytest.mark.parametrize("measure", ["smooth", "bounded_variation", "distance"])
def test_other_measures_divide_two_limits(measure):
    y, p = fraud(3000, times=1.5)
    low, _ = event_rate_limits(Tally.from_arrays(y, p), RATE_SHARE * 0.05)
    asked = {"measure": measure, "alternative": "less"}
    found = confidence_interval(y, p, relative_to="events", **asked)
    rows = confidence_interval(y, p, confidence_level=1.0 - 0.8 * 0.05, **asked)
    assert found.upper == pytest.approx(rows.upper / low, rel=1e-9)
    assert found.lower == 0.0
    assert "times the event rate" in str(found)


@given(st.integers(1, 500), st.floats(0.0, 1.0), st.floats(1e-12, 0.5))
def test_limits_of_a_mean_are_where_the_divergence_reaches_the_exponent(count, share, delta):
    total = round(share * count)
    low, high = mean_interval(float(total), count, delta)
    z = total / count
    assert 0.0 <= low <= z <= high <= 1.0

    def divergence(m):
        first = z * math.log(z / m) if z > 0.0 else 0.0
        return first + ((1.0 - z) * math.log((1.0 - z) / (1.0 - m)) if z < 1.0 else 0.0)

    for end in (low, high):
        if 1e-5 < end < 1.0 - 1e-5:
            assert count * divergence(end) == pytest.approx(-math.log(delta), rel=1e-6)


@pytest.mark.parametrize("delta", [0.5, 0.01, 1e-300])
def test_limits_of_a_mean_of_next_to_nothing_are_no_surprise(delta):
    for count in (1, 3, 100, 10**6, 10**15):
        totals = [0.0, 5e-324, 1e-300, 1e-6, 0.0062, 0.0063, 0.0064, 0.0065, 0.5, 1.0]
        limits = [mean_interval(total, count, delta) for total in totals]
        lows, highs = np.array(limits).T
        assert (np.diff(lows) >= 0.0).all()
        assert (np.diff(highs) >= -1e-14 * highs[1:]).all()
        assert (lows[2:] < np.array(totals[2:]) / count).all()
        assert (highs > np.array(totals) / count).all() or count == 1
        assert highs[0] == pytest.approx(-math.expm1(math.log(delta) / count), rel=1e-12)
    high = mean_interval(3.0, 10**15, 0.01)[1]
    assert high * 10**15 == pytest.approx(mean_interval(3.0, 10**9, 0.01)[1] * 10**9, rel=1e-6)


@pytest.mark.parametrize(("count", "rate"), [(20, 0.3), (200, 0.02), (1000, 0.9)])
def test_limits_of_a_mean_hold(count, rate):
    totals = np.arange(count + 1)
    probability = binom.pmf(totals, count, rate)
    for delta in (0.2, 0.05, 0.001):
        limits = np.array([mean_interval(float(total), count, delta) for total in totals])
        assert probability[limits[:, 0] > rate].sum() <= delta
        assert probability[limits[:, 1] < rate].sum() <= delta


def test_no_events_leave_no_upper_limit_and_may_refute():
    p = np.full(3000, 0.05)
    found = certify(np.zeros(3000), p, max_error=0.25, relative_to="events")
    assert (found.estimate, found.upper, found.verdict) == (math.inf, math.inf, "refuted")
    assert found.lower > 10.0
    assert "infinite, since the rows have no events" in str(found)
    assert calibrant.certificates.Certificate.from_json(found.to_json()) == found
    few = certify(np.zeros(5), p[:5], max_error=0.25, relative_to="events")
    assert (few.verdict, few.upper, few.rows_needed) == ("undecided", math.inf, None)
    assert "any number" in str(few)
    interval = confidence_interval(np.zeros(3000), p, relative_to="events")
    assert "is at least " in str(interval)
    assert "times the event rate, with no upper limit" in str(interval)
    assert "has no upper limit" in str(
        confidence_interval(np.zeros(9), p[:9], relative_to="events", alternative="less")
    )
    nothing = certify(np.zeros(50), np.zeros(50), max_error=0.25, relative_to="events")
    assert (nothing.estimate, nothing.lower, nothing.verdict) == (0.0, 0.0, "undecided")
    assert (of_events(0.0, 0.0), of_events(0.1, 0.0), of_events(0.1, 0.5)) == (0.0, math.inf, 0.2)


def test_large_shares_are_written_without_digits_that_say_nothing():
    rng = np.random.default_rng(0)
    p = np.clip(0.5 + 0.3 * rng.normal(size=3000), 0.01, 0.99)
    y = np.arange(3000) < 2
    found = certify(y, p, max_error=0.25, relative_to="events")
    assert found.upper == math.inf  # above a million
    assert found.lower > 100.0
    assert f"at least {math.floor(found.lower):,}, times" in str(found)
    assert f"Estimate {found.estimate:,.0f}, and" in str(found)
    groups = certify(y, p, max_error=0.25, relative_to="events", by=np.arange(3000) % 2 < 1)
    assert "to any number" in str(groups)
    assert "e+" not in str(groups)


# --- Verdicts ---------------------------------------------------------------------------------------------------------


def test_a_model_of_fraud_with_scores_three_times_too_high():
    y, p = fraud()
    assert y.mean() == pytest.approx(0.019, abs=0.003)
    relative = certify(y, p, max_error=0.25, relative_to="events")
    assert (relative.verdict, relative.cautions) == ("refuted", ())
    rows = certify(y, p, max_error=0.05)
    assert rows.verdict == "certified"
    (caution,) = rows.cautions
    assert caution.startswith("Forecasting 0 for everybody would pass this limit of 5.0%, since events are ")
    assert "use relative_to='events', max_error=0.25, here 0.00" in caution
    assert f"Caution: {caution}" in str(rows)
    assert rows.to_dict()["cautions"] == [caution]
    with speaking(SHELL):
        assert "use --relative-to events --max-error 0.25, here" in str(rows)


def test_forecasting_0_for_everybody_carries_the_caution():
    y, _ = fraud()
    found = certify(y, np.zeros(y.size), max_error=0.05)
    assert found.verdict == "certified"
    assert "Forecasting 0 for everybody would pass" in found.cautions[0]
    assert certify(y, np.zeros(y.size), max_error=0.25, relative_to="events").verdict == "refuted"


def test_groups_are_judged_by_their_own_events():
    y, p = fraud(12_000, times=1.0)
    group = np.where(np.arange(p.size) % 2, "a", "b")
    found = certify(y, p, by=group, max_error=0.9, relative_to="events")
    alone = certify(y[group == "a"], p[group == "a"], max_error=0.9, relative_to="events", confidence_level=0.975)
    assert found["a"].upper == pytest.approx(alone.upper, rel=1e-12)
    assert found.relative_to == found["a"].relative_to == "events"
    assert len(found.cautions) == 2
    assert str(found.cautions[0]).startswith("In group a: This limit of ")
    assert "is at most 0.9 times the event rate" in str(found)
    assert f"Caution: {found.cautions[1]}" in str(found)


@pytest.mark.parametrize(
    ("max_error", "rate", "relative_to", "words"),
    [
        (0.05, 0.3, "rows", None),
        (0.15, 0.3, "rows", None),  # half of the events, and no more
        (0.16, 0.3, "rows", "leaves room for more than half of the events to be missed"),
        (0.3, 0.3, "rows", "Forecasting 0 for everybody would pass this limit of 30.0%, since events are 30.0%"),
        (
            0.05,
            0.96,
            "rows",
            "Forecasting 1 for everybody would pass this limit of 5.0%, since non-events are 4.0%",
        ),
        (0.03, 0.96, "rows", "more than half of the non-events to be missed"),
        (0.25, 0.001, "events", None),
        (0.5, 0.3, "events", None),
        (0.6, 0.001, "events", "more than half of the events"),
        (1.0, 0.001, "events", "Forecasting 0 for everybody"),
        (0.25, 0.95, "events", "use relative_to='rows', max_error=0.013"),
        (0.001, 0.0, "rows", "None of these rows is an event"),
        (0.001, 1.0, "events", "None of these rows is a non-event"),
    ],
)
def test_cautions_name_limits_that_say_nothing(max_error, rate, relative_to, words):
    found = cautions_on(max_error, rate, relative_to)
    if words is None:
        assert found == ()
        return
    (caution,) = found
    assert words in caution
    assert all(len(sentence.split()) <= 30 for sentence in caution.split(". "))


@given(st.floats(0.001, 0.999), st.floats(0.0, 1.0), st.sampled_from(["rows", "events"]))
def test_what_a_caution_proposes_carries_none(rate, max_error, relative_to):
    if cautions_on(max_error, rate, relative_to):
        assert cautions_on(0.25, rate, "events") == () if rate <= 0.5 else True
        rarer = min(rate, 1.0 - rate)
        assert cautions_on(float(f"{0.25 * rarer:.2g}"), rate, "rows") == ()
    if (max_error if relative_to == "rows" else max_error * rate) >= min(rate, 1.0 - rate):
        assert cautions_on(max_error, rate, relative_to)


def test_what_is_not_a_yardstick_is_refused():
    y, p = fraud(100)
    unknown: Any = "rate"
    with pytest.raises(ValueError, match=r"^relative_to must be one of 'rows', 'events', got 'rate'"):
        certify(y, p, max_error=0.1, relative_to=unknown)
    with pytest.raises(ValueError, match=r"^relative_to='events' needs to know how many events .* pass y_prob="):
        calibrant.rows_needed(0.25, brier=0.1, relative_to="events")
    certificate = certify(y, p, max_error=0.25, relative_to="events")
    with pytest.raises(ValueError, match=r"shares of the events, and losses are counted per row; certify with"):
        calibrant.decision_guarantee(certificate)


@pytest.mark.parametrize("method", METHODS)
def test_plans_say_what_they_are_shares_of(method):
    plan = calibrant.rows_needed(0.5, y_prob=np.full(10, 0.02), relative_to="events", method=method)
    assert plan.relative_to == "events"
    assert "of at most 0.5 times the event rate" in str(plan)


def test_of_a_group_shares_and_numbers_of_rows_are_those_of_its_rows():
    y, p = fraud()
    found = certify(y, p, by=np.arange(y.size) % 2, max_error=0.015)
    worst = found[found.least_settled]
    said = worst.where(whole="of its rows")
    assert "% of its rows)" in said
    assert said.endswith(" per 100 of its rows.")
    assert worst.where().endswith(" per 100 rows.")
    assert all("of all rows" not in caution for caution in found.cautions)
    assert any(caution.endswith(" as a share of rows.") for caution in found.cautions)
    alone = certify(y, p, groups={"first": np.arange(y.size) == 0, "rest": np.arange(y.size) > 0}, max_error=0.05)
    assert all(
        each.startswith(("In group first, in shares of all rows: ", "In group rest, in")) for each in alone.cautions
    )
    assert alone.cautions
    assert "  first          1 row   estimate" in str(alone)
