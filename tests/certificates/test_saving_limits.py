"""Limits of the risk gap: against what every line and rate gives, from every source, in words and in plans."""

import itertools
import math
import re
from typing import Any

import brute_force
import numpy as np
import pytest
from gap_laws import betting_upper, gap
from hypothesis import given, settings
from hypothesis import strategies as st
from populations import CONSTANT, OVERCONFIDENT, POPULATIONS, RARE, SHIFTED, UNIFORM, ZERO
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler

import calibrant
from calibrant import Cells, InputError, Tally, certify, confidence_interval, rows_needed
from calibrant.certificates import bracket, saving_limits
from calibrant.certificates.betting import adaptive_upper, bet_rates, interval_rates
from calibrant.core.chernoff import chernoff_interval, chernoff_intervals
from calibrant.core.laws import normal_quantile
from calibrant.rows.savings import EVERY_THRESHOLD, Stretches, Thresholds

RNG = np.random.default_rng(41)
PROB = RNG.random(400)
TRUE = RNG.random(400) < np.clip(PROB + 0.1, 0, 1)


def lines(y, p, thresholds=EVERY_THRESHOLD):
    """What each row gains by each change of a line: every g of the class, a row of numbers each."""
    low, high = thresholds
    values = np.unique(p)
    at = [(t, False) for t in (*values, low, high) if low <= t <= high]
    at += [(t, True) for t in values if low <= t < high]
    for (t, above), line in itertools.product(at, (*values, 2.0)):
        acts, moved = p > t if above else p >= t, p >= line
        yield np.where(moved & ~acts, y - t, 0.0) + np.where(acts & ~moved, t - y, 0.0)


def limit_by_trying(y, p, rates, exponent, thresholds=EVERY_THRESHOLD):
    """The largest limit of a line, at the worse of the rates."""
    most = [max(-np.log1p(-rate * g).sum() for g in lines(y, p, thresholds)) for rate in rates]
    return max(-math.expm1(-(grown + exponent) / y.size) / rate for rate, grown in zip(rates, most, strict=True))


# --- The limits are what they say -------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [None, 0.35, (0.1, 0.4)])
@pytest.mark.parametrize("rows", [30, 120])
def test_the_adaptive_limit_is_the_largest_that_bets_leave_possible(rows, asked):
    y, p = TRUE[:rows].astype(float), PROB[:rows].round(1 if rows == 120 else 3)
    thresholds = (
        EVERY_THRESHOLD if asked is None else Thresholds(*(asked if isinstance(asked, tuple) else (asked,) * 2))
    )
    tally = Tally.from_arrays(y, p)
    found = confidence_interval(y, p, measure="risk_gap", threshold=asked, alternative="less").upper
    if rows < 100:
        shares = [(bet_rates(tally, 0.05), 0.05)]
    else:  # rates that suit rows near the thresholds, and those that suit all
        near = saving_limits.saving_rates(Stretches.of(tally), thresholds, 0.96 * 0.05)
        shares = [(near, 0.96 * 0.05), (bet_rates(tally, 0.04 * 0.05), 0.04 * 0.05)]
    tried = [limit_by_trying(y, p, rates, math.log(1 / (0.98 * share)), thresholds) for rates, share in shares]
    assert found == pytest.approx(min(tried), abs=1e-12)


@given(rows=brute_force.rows(most=12))
def test_fractions_and_weights_have_limits_no_lower_than_bets_row_by_row(rows):
    y, p, w = (
        np.asarray(column, dtype=float) for column in (*rows[:2], np.ones(len(rows[0])) if rows[2] is None else rows[2])
    )
    y, p, w = y[w > 0], p[w > 0], w[w > 0]
    tally = Tally.from_arrays(y, p, sample_weight=w).with_unit_weights()
    found = betting_upper(tally, 0.1)
    unit, every, shares = (
        w / w.max(),
        list(lines(y, p)),
        [(saving_limits.betting_rates(tally, EVERY_THRESHOLD, 0.1), 0.1)],
    )
    if not tally.unit_weights:
        shares = [(shares[0][0], 0.96 * 0.1), (interval_rates(tally, 0.04 * 0.1), 0.04 * 0.1)]

    def row_by_row(rates, share):
        grown = ((rate, max(-np.log1p(-rate * unit * g).sum() for g in every)) for rate in rates)
        exponent = math.log(1 / (0.98 * share))
        return max(-math.expm1(-(most + exponent) / y.size) / (rate * unit.mean()) for rate, most in grown)

    assert found >= min(itertools.starmap(row_by_row, shares)) - 1e-12


@given(rows=brute_force.rows(most=25, weighted=False, binary=True))
def test_no_limit_is_above_that_of_the_cutoff_error_at_its_rates(rows):
    tally = Tally.from_arrays(rows[0], rows[1])  # fewer than a hundred rows have those rates
    direct = betting_upper(tally, 0.05)
    assert direct <= adaptive_upper(tally, tally, 0.05) + 1e-12


@pytest.mark.parametrize("population", [each for each in POPULATIONS if each.binary and each.unit_weights], ids=str)
def test_many_rows_have_limits_no_wider_than_through_the_cutoff_error(population):
    rng = np.random.default_rng(2)
    found = []
    for _ in range(12):
        tally = population.tally(rng, 2000)
        found.append((betting_upper(tally, 0.05), adaptive_upper(tally, tally, 0.05)))
    direct, through = np.mean(found, axis=0)
    assert direct <= (1.1 if population is ZERO else 1.01) * through


def test_events_forecast_as_impossible_have_wider_limits_than_through_the_cutoff_error():
    rng = np.random.default_rng(2)
    ratios = []
    for _ in range(30):
        tally = ZERO.tally(rng, 200)
        ratios.append(betting_upper(tally, 0.05) / adaptive_upper(tally, tally, 0.05))
    assert 1.0 < np.mean(ratios) <= max(ratios) < 1.25  # as docs/theory/savings.md says


def test_the_other_limits_are_the_published_ones():
    estimate = calibrant.decisions.risk_gap_curve(TRUE, PROB).largest_gap
    n, delta = TRUE.size, 0.05
    hoeffding = certify(TRUE, PROB, max_error=0.1, measure="risk_gap", method="hoeffding")
    assert hoeffding.upper == pytest.approx(estimate + math.sqrt(math.log(1 / delta) / (2 * n)), abs=1e-12)
    margin = 2 * math.sqrt(math.log(2 * math.e / delta) / (2 * n))
    assert hoeffding.lower == pytest.approx(max(estimate - margin, 0.0), abs=1e-12)
    w = 1.0 + np.arange(n) % 3
    weighted = certify(TRUE, PROB, sample_weight=w, max_error=0.1, measure="risk_gap", method="hoeffding")
    n_eff = w.sum() ** 2 / (w**2).sum()
    gap_w = calibrant.decisions.risk_gap_curve(TRUE, PROB, sample_weight=w).largest_gap
    assert weighted.upper == pytest.approx(gap_w + math.sqrt(math.log(1 / delta) / (2 * n_eff)), abs=1e-12)


def test_the_large_sample_limit_is_close_to_the_largest_of_a_line():
    y, p, quantile = TRUE.astype(float), PROB, normal_quantile(0.05)
    largest = max(g.sum() + quantile * math.sqrt((g**2).sum()) for g in lines(y[:200], p[:200])) / 200
    found = confidence_interval(y[:200], p[:200], measure="risk_gap", method="normal", alternative="less").upper
    assert largest - 1e-12 <= found <= 1.05 * largest


def test_a_threshold_that_is_known_needs_no_more_than_all_of_them():
    kinds: list[Any] = [None, (0.2, 0.6), (0.3, 0.5), 0.4]
    estimates = [confidence_interval(TRUE, PROB, measure="risk_gap", threshold=each).estimate for each in kinds]
    assert estimates == sorted(estimates, reverse=True)
    assert estimates[-1] == pytest.approx(calibrant.risk_gap(TRUE, PROB, threshold=0.4).gap, abs=1e-15)


@pytest.mark.parametrize(("forecast", "chance", "threshold"), [(0.55, 0.8, 0.75), (0.5, 0.7, 0.65), (0.3, 0.5, 0.45)])
@pytest.mark.parametrize("method", ["adaptive", "normal"])
def test_limits_at_a_threshold_that_no_forecast_is_near_tend_to_the_gap(method, forecast, chance, threshold):
    rows = 10**7
    tally = Tally.from_counts([forecast], [rows], [round(chance * rows)])
    found = confidence_interval(tally, measure="risk_gap", threshold=threshold, method=method, alternative="less")
    assert 0.05 <= found.upper <= 0.051


@pytest.mark.parametrize("rows", [100, 1000, 30_000])
@pytest.mark.parametrize(("forecast", "chance"), [(0.0, 0.3), (0.001, 0.3), (0.1, 0.6), (0.5, 0.6), (0.9, 0.2)])
def test_no_limit_is_above_that_through_cutoff_with_the_share_it_has(rows, forecast, chance):
    tally = Tally.from_counts([forecast], [rows], [round(chance * rows)])
    assert betting_upper(tally, 0.05) <= adaptive_upper(tally, tally, 0.04 * 0.05) + 1e-12
    assert betting_upper(tally, 0.05) <= 1.06 * adaptive_upper(tally, tally, 0.05)


def test_few_rows_between_lines_are_too_few_for_a_large_sample():
    rng = np.random.default_rng(41)
    few = certify(TRUE, PROB, max_error=0.1, measure="risk_gap", method="normal")
    assert "between the lines that matter add up to" in few.notes[0]
    assert "method='adaptive'" in few.notes[0]
    p = rng.random(200_000)
    assert certify(rng.random(p.size) < p, p, max_error=0.1, measure="risk_gap", method="normal").notes == ()


def test_half_a_confidence_is_one():
    found = certify(TRUE, PROB, max_error=0.1, measure="risk_gap", method="normal", confidence_level=0.5)
    assert found.upper == pytest.approx(found.estimate, rel=1e-4)


@pytest.mark.parametrize("rows", [9_000, 11_000])
def test_a_threshold_of_1_has_a_lower_limit(rows):
    tally = Tally.from_counts([1.0], [rows], [rows // 2])
    assert confidence_interval(tally, measure="risk_gap", threshold=1.0, alternative="greater").lower > 0.47


def test_limits_of_sums_may_stop_early():
    total = np.array([0.0, 1e-9, 0.3, 1.0, 10.0, 1000.0])
    exact = np.array([chernoff_interval(each, 1e-4) for each in total.tolist()]).T
    for steps in (0, 2, 6):
        low, high = chernoff_intervals(total, 1e-4, steps=steps)
        assert (high >= exact[1] * (1 - 1e-12)).all()
        assert (low[2:] <= exact[0, 2:] * (1 + 1e-12)).all()
        assert (low[:2] <= 1e-3).all()


# --- They are sharp ---------------------------------------------------------------------------------------------------


def reached(population, rows, runs=20):
    """The limit that is not exceeded in nine of ten runs."""
    rng = np.random.default_rng(6)
    tallies = [population.tally(rng, rows) for _ in range(runs)]
    return np.quantile([betting_upper(each, 0.05) for each in tallies], 0.9)


def test_good_forecasts_are_certified_with_few_rows():
    assert reached(UNIFORM, 450) <= 0.05
    assert reached(UNIFORM, 4500) <= 0.01
    assert reached(RARE, 6000) <= 0.005


def test_the_limit_of_good_forecasts_falls_faster_than_one_over_the_root():
    few, many = reached(UNIFORM, 1000, 12), reached(UNIFORM, 64_000, 6)
    slope = math.log(few / many) / math.log(64)
    assert 0.6 < slope < 0.75  # 2/3, but for logarithms
    few, many = reached(CONSTANT, 1000, 12) - 0.1, reached(CONSTANT, 64_000, 6) - 0.1
    assert 0.4 < math.log(few / many) / math.log(64) < 0.6


@pytest.mark.parametrize(("population", "rows"), [(SHIFTED, 12_000), (OVERCONFIDENT, 3000), (CONSTANT, 1000)], ids=str)
def test_lower_limits_refute_what_is_clearly_wrong(population, rows):
    truth = gap(population, EVERY_THRESHOLD)
    rng = np.random.default_rng(1)
    found = [certify(population.tally(rng, rows), max_error=truth / 5, measure="risk_gap").verdict for _ in range(10)]
    assert found.count("refuted") >= 8


def test_halves_of_cells_refute_nearly_as_well_as_halves_of_rows(monkeypatch):
    rng = np.random.default_rng(9)
    tallies = [OVERCONFIDENT.tally(rng, 12_000) for _ in range(4)]
    found = []
    for from_rows in (10_000, 10**9):
        monkeypatch.setattr(saving_limits, "CELLS_FROM_ROWS", from_rows)
        found.append(np.mean([certify(each, max_error=0.001, measure="risk_gap").lower for each in tallies]))
    assert found[0] == pytest.approx(found[1], rel=0.1)
    assert found[0] > 0.01


# --- Every source says the same ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["adaptive", "normal", "hoeffding"])
@pytest.mark.parametrize("weighted", [False, True])
def test_cells_contain_the_limit(method, weighted):
    rng = np.random.default_rng(41)
    p = rng.beta(1, 3, 20_000)
    y, w = rng.random(p.size) < p, 1.0 + np.arange(p.size) % 2 if weighted else None
    exact = confidence_interval(y, p, sample_weight=w, measure="risk_gap", method=method, alternative="less").upper
    widths = []
    for bits in (12, 16):
        found = bracket(Cells.from_arrays(y, p, sample_weight=w, bits=bits), measure="risk_gap", method=method)
        assert found.low <= exact <= found.high
        widths.append(found.high - found.low)
        assert str(found).startswith(f"The upper limit of the risk gap by the {method} method lies between 0.0")
    assert widths[1] < widths[0] < 0.1 * exact


def test_cells_contain_the_limit_at_a_threshold():
    rng = np.random.default_rng(41)
    p = rng.random(20_000)
    y = rng.random(p.size) < p
    asked: dict[str, Any] = {"measure": "risk_gap", "threshold": (0.2, 0.3)}
    exact = confidence_interval(y, p, alternative="less", **asked)
    found, limit = (bracket(Cells.from_arrays(y, p), method=method, **asked) for method in (None, "adaptive"))
    assert found.low <= exact.estimate <= found.high
    assert limit.low <= exact.upper <= limit.high


def test_coarse_cells_have_no_rates():
    cells = Cells.from_arrays(TRUE, PROB, bits=5)
    for method in ("adaptive", "normal"):
        with pytest.raises(InputError, match=r"4,096 cells or more, got 2\^5"):
            bracket(cells, measure="risk_gap", method=method)
    assert bracket(cells, measure="risk_gap", method="hoeffding").high < 0.2


@settings(max_examples=15)
@given(order=st.permutations(range(40)))
def test_the_order_of_rows_plays_no_part(order):
    chosen = list(order)
    one, other = (
        certify(TRUE[rows], PROB[rows].round(1), max_error=0.1, measure="risk_gap") for rows in (slice(40), chosen)
    )
    assert one.to_dict() == other.to_dict()


def test_parts_add_up_to_the_whole():
    parts = Tally.from_arrays(TRUE[:150], PROB[:150]) + Tally.from_arrays(TRUE[150:], PROB[150:])
    assert certify(parts, max_error=0.1, measure="risk_gap") == certify(TRUE, PROB, max_error=0.1, measure="risk_gap")


def test_equal_weights_change_nothing():
    plain, weighted = (
        certify(TRUE, PROB, sample_weight=w, max_error=0.1, measure="risk_gap") for w in (None, np.full(400, 2.5))
    )
    assert weighted.upper == pytest.approx(plain.upper, rel=1e-12)
    assert weighted.lower == pytest.approx(plain.lower, rel=1e-12)


# --- Words and refusals -----------------------------------------------------------------------------------------------


def test_a_certificate_says_what_can_be_saved():
    data = load_breast_cancer()
    measured = StandardScaler().fit_transform(data.data[:, :5])
    p = cross_val_predict(LogisticRegression(), measured, data.target, method="predict_proba", cv=5)[:, 1]
    found = certify(data.target, p, max_error=0.05, measure="risk_gap")
    assert str(found).startswith(
        "Certified: with 95% confidence no re-drawing of the line between acting and not acting saves more than 0.05 "
        "per case, at any threshold.\nEstimate 0.0"
    )
    assert "On these rows most is saved " in str(found)
    assert found.upper < certify(data.target, p, max_error=0.05).upper
    assert found.thresholds == (0.0, 1.0)
    assert type(found).from_dict(found.to_dict()) == found


def test_limits_speak_in_cost_units_too():
    found = certify(TRUE, PROB, max_error=0.1, measure="risk_gap", cost_false_positive=10, cost_false_negative=30)
    assert (found.thresholds, found.cost_unit) == ((0.25, 0.25), 40.0)
    assert (
        "no re-drawing of the line between acting and not acting saves more than 0.1 per case (4 in cost units), at "
        in str(found)
    )
    assert "threshold 0.25 (a false positive costs 10, a false negative 30)" in str(found)
    assert f"({40 * found.upper:.3f}"[:5] in str(found)


@pytest.mark.parametrize(
    ("alternative", "words"),
    [
        ("less", "With 95% confidence no re-drawing of the line between acting and not acting saves more than"),
        ("greater", "With 95% confidence some re-drawing of the line between acting and not acting saves at least"),
        ("two-sided", "With 95% confidence the best re-drawing of the line between acting and not acting saves from"),
    ],
)
def test_intervals_say_what_can_be_saved(alternative, words):
    found = confidence_interval(TRUE, PROB, measure="risk_gap", threshold=(0.1, 0.3), alternative=alternative)
    assert str(found).startswith(words)
    assert re.search(r"thresholds? from 0\.1 to 0\.3", str(found))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "cutoff", "threshold": 0.2}, "threshold is for measure='risk_gap' only"),
        (
            {"measure": "smooth", "cost_false_positive": 1, "cost_false_negative": 1},
            "costs are for measure='risk_gap' only",
        ),
        ({"threshold": (0.3, 0.2)}, "threshold goes from 0.3 down to 0.2"),
        ({"threshold": (0.1, 0.2, 0.3)}, "threshold has 3 values"),
        ({"threshold": 1.2}, "threshold"),
        ({"threshold": float("nan")}, "threshold"),
        ({"threshold": 0.2, "cost_false_positive": 1}, "threshold was given together with costs"),
        ({"cost_false_positive": 1}, "cost_false_negative is missing"),
        ({"relative_to": "events"}, "relative_to='events' is not for measure='risk_gap'"),
        ({"method": "exact"}, "method='exact' covers measure='cutoff' only"),
        ({"method": "paper"}, "method='paper' covers measure='cutoff' only"),
    ],
)
def test_what_does_not_fit_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        certify(TRUE, PROB, max_error=0.1, **{"measure": "risk_gap", **options})


def test_one_group_and_a_single_row_have_limits():
    found = certify(TRUE, PROB, max_error=0.2, measure="risk_gap", threshold=0.3, by=np.arange(400) % 2)
    assert [each.thresholds for each in found.certificates] == [(0.3, 0.3)] * 2
    assert "risk gap at threshold 0.3 of every group is at most 0.2" in str(found)
    alone = certify([1], [0.5], max_error=0.2, measure="risk_gap")
    assert (alone.verdict, alone.lower, alone.upper) == ("undecided", 0.0, 1.0)


def test_a_wide_limit_has_a_caution_that_names_one_in_rows():
    rng = np.random.default_rng(41)
    p = rng.beta(1, 99, 3000)
    found = certify(rng.random(3000) < p, p, max_error=0.05, measure="risk_gap")
    (caution,) = found.cautions
    loses = found.event_rate * (1.0 - found.event_rate)  # at a threshold of the event rate
    assert caution == (
        f"Without any forecast, the better of acting always and acting never loses at most {loses:.4f} per case, "
        "whatever the threshold: a saving of 0.05 is a large one. For a limit that means something use "
        f"max_error={loses / 4:.2g}."
    )
    assert certify(rng.random(3000) < p, p, max_error=0.001, measure="risk_gap", threshold=0.01).cautions == ()
    (caution,) = certify(rng.random(3000) < 0.3, p, max_error=0.3, measure="risk_gap", threshold=0.3).cautions
    assert re.search(r"acting never loses 0\.2\d+ per case at threshold 0\.3: ", caution)
    (caution,) = certify(np.ones(30), p[:30], max_error=0.3, measure="risk_gap").cautions
    assert caution.startswith("None of these rows is a non-event")


def test_a_brier_score_does_not_say_how_forecasts_are_spread():
    with pytest.raises(InputError, match="needs to know how forecasts are spread"):
        rows_needed(0.05, measure="risk_gap", brier=0.1)


# --- Plans ------------------------------------------------------------------------------------------------------------


def test_plans_keep_their_promise():
    drawn_from = np.random.default_rng(41)
    p = drawn_from.beta(2, 3, 1000)
    plan = rows_needed(0.06, measure="risk_gap", y_prob=p, power=0.8)
    assert str(plan).startswith(
        f"About {plan.rows:,} rows certify a risk gap of at most 0.06 per case, at any threshold, with 95% confidence "
        "in 80% of cases"
    )
    rng, certified = np.random.default_rng(3), 0
    for _ in range(60):
        drawn = rng.beta(2, 3, plan.rows)
        tally = Tally.from_arrays(rng.random(plan.rows) < drawn, drawn)
        certified += betting_upper(tally, 0.05) <= 0.06
    assert certified >= 42  # of 60, of which 48 are expected at least
    assert plan.rows < 0.5 * rows_needed(0.06, y_prob=p, power=0.8).rows


@pytest.mark.usefixtures("few_draws")
def test_plans_for_other_methods_and_thresholds():
    rng = np.random.default_rng(41)
    p = rng.random(500)
    adaptive, hoeffding, at_one = (
        rows_needed(0.2, measure="risk_gap", y_prob=p, power=0.5, **how).rows
        for how in ({}, {"method": "hoeffding"}, {"threshold": 0.3})
    )
    assert at_one < adaptive < hoeffding
    assert rows_needed(0.2, measure="risk_gap", y_prob=p, power=0.5, method="normal").paper_rows is None
