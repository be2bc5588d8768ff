"""Guarantees about the risk gap of recalibrated forecasters: what they are, what they say, and what is refused."""

import math
from typing import Any, cast

import numpy as np
import pytest
from recalibration_cases import FIGURE_4, P, Y, every_map, guarantee_of
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from calibrant import (
    BetaRecalibrator,
    GuardedRecalibrator,
    IsotonicRecalibrator,
    PlattRecalibrator,
    Tally,
    TemperatureRecalibrator,
)
from calibrant.certificates.margins import constant_margin, paper_monotone_margin
from calibrant.certificates.saving_limits import monotone_saving_margin
from calibrant.core.results import Result
from calibrant.decisions import risk_gap_curve
from calibrant.repairs import ConstantRecalibrator, Recalibrator


def gap_by_trying_everything(outcome, forecast, weight):
    """The most that any line saves at any threshold: thresholds at and just above forecasts, lines between them."""
    levels = np.unique(forecast)
    best = 0.0
    for threshold in levels:
        for line in [*levels, 2.0]:
            fewer = (forecast >= threshold) & (forecast < line)
            more = (forecast <= threshold) & (forecast >= line)
            best = max(best, weight[fewer] @ (threshold - outcome[fewer]), weight[more] @ (outcome[more] - threshold))
    return best / weight.sum()


@every_map
@pytest.mark.parametrize("outcomes", ["events", "turned round", "fractions", "weights"])
def test_what_is_left_on_the_fitting_rows_is_the_risk_gap_there(kind, outcomes):
    rng = np.random.default_rng(3)
    y = {"turned round": 1 - Y, "fractions": rng.random(P.size)}.get(outcomes, Y)
    weight = rng.integers(1, 4, P.size).astype(float) if outcomes == "weights" else np.ones(P.size)
    if isinstance(kind, TemperatureRecalibrator) and outcomes == "turned round":
        y = Y  # no temperature turns forecasts round
    fitted = clone(kind).fit(P, y, sample_weight=weight if outcomes == "weights" else None)
    forecast = np.round(fitted.predict(P), 13)
    assert fitted.fit_risk_gap_ == pytest.approx(gap_by_trying_everything(y, forecast, weight), abs=1e-11)
    assert fitted.fit_risk_gap_ == pytest.approx(
        risk_gap_curve(y, forecast, sample_weight=weight).largest_gap, abs=1e-11
    )
    assert fitted.fit_risk_gap_ <= fitted.fit_error_ + 1e-15


@pytest.mark.parametrize("kind", ["uniform", "rounded", "fractions", "weights"])
def test_many_rows_have_the_risk_gap_of_their_tally(kind):
    rng = np.random.default_rng([6, *kind.encode()])
    rows = 120_000
    p = np.round(rng.random(rows), 2 if kind == "rounded" else 9)
    y = rng.beta(1 + p, 2 - p) if kind == "fractions" else rng.random(rows) < p**1.5
    weight = rng.integers(1, 3, rows) if kind == "weights" else None
    for recalibrator in (PlattRecalibrator(), BetaRecalibrator(clip=1e-3), IsotonicRecalibrator(ends="inside")):
        many = clone(recalibrator).fit(p, y, sample_weight=weight)
        summed = clone(recalibrator).fit(Tally.from_arrays(y, p, sample_weight=weight))
        assert many.fit_risk_gap_ == pytest.approx(summed.fit_risk_gap_, abs=1e-12)


def test_isotonic_promises_its_bound_in_advance():
    fitted = IsotonicRecalibrator().fit(P, Y)
    guarantee = fitted.guarantee(measure="risk_gap")
    assert guarantee.measure == "risk_gap"
    assert guarantee.error == fitted.fit_risk_gap_ == 0.0
    assert guarantee.upper == guarantee.in_advance == 2 * math.sqrt((1 + math.log(2 / (1 - 0.95))) / (2 * P.size))
    assert guarantee.upper <= 3.07 / math.sqrt(P.size)
    assert guarantee.upper == pytest.approx(2 / 3 * guarantee_of(fitted).upper, rel=1e-12)
    assert (guarantee_of(fitted).measure, fitted.guarantee()) == ("cutoff", guarantee_of(fitted))


def test_keeping_isotonic_off_the_ends_costs_half_a_row():
    fitted = IsotonicRecalibrator(ends="inside").fit(FIGURE_4)
    guarantee = fitted.guarantee(measure="risk_gap")
    assert 0.0 < guarantee.error == fitted.fit_error_ < 0.5 / 4_000
    assert guarantee.in_advance == pytest.approx(guarantee.margin + 0.5 / 4_000, abs=1e-15)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_other_levels(level):
    guarantee = IsotonicRecalibrator().fit(FIGURE_4).guarantee(level, measure="risk_gap")
    assert guarantee.confidence_level == level
    assert guarantee.upper == monotone_saving_margin(4_000, 1 - level)


def test_platt_promises_nothing_in_advance_and_bounds_its_risk_gap_afterwards():
    fitted = PlattRecalibrator().fit(FIGURE_4)
    guarantee = fitted.guarantee(measure="risk_gap")
    forecast = fitted.predict(FIGURE_4.forecast)
    weight, outcome = FIGURE_4.rows.astype(float), FIGURE_4.mean_outcome
    assert guarantee.error == pytest.approx(gap_by_trying_everything(outcome, forecast, weight), abs=1e-12)
    assert 0.1 < guarantee.error < fitted.fit_error_
    assert (guarantee.in_advance, guarantee.paper_in_advance) == (None, None)
    assert guarantee.upper == guarantee.error + monotone_saving_margin(4_000, 1 - 0.95)
    # What the paper says goes through the Cutoff error.
    assert guarantee.paper_upper == fitted.fit_error_ + paper_monotone_margin(4_000, 1 - 0.95)


def test_a_constant_is_off_by_no_more_than_a_mean():
    guarantee = ConstantRecalibrator().fit(P, Y).guarantee(measure="risk_gap")
    assert guarantee.upper == guarantee.in_advance == constant_margin(P.size, 1 - 0.95)
    guarded = GuardedRecalibrator([ConstantRecalibrator()]).fit(P, Y).guarantee(measure="risk_gap")
    assert guarded.margin == monotone_saving_margin(P.size, 1 - 0.95)


@pytest.mark.parametrize("tolerance", ["null-95", "paper", 0.03])
def test_the_guard_promises_isotonics_bound_plus_the_tolerance(tolerance):
    fitted = GuardedRecalibrator(tolerance=tolerance).fit(P, Y)
    cutoff, gap = (fitted.guarantee(measure=measure) for measure in ("cutoff", "risk_gap"))
    assert gap.error == fitted.recalibrator_.fit_risk_gap_ <= cutoff.error
    assert gap.ladder == cutoff.ladder == fitted.ladder_
    assert cutoff.in_advance is not None
    assert gap.in_advance is not None
    assert gap.upper <= gap.in_advance <= cutoff.in_advance
    if tolerance == 0.03:
        assert gap.in_advance == pytest.approx(gap.margin + 0.03, rel=1e-12)


@every_map
def test_guarantees_are_results_that_say_what_they_are_about(kind):
    fitted = clone(kind).fit(P, Y)
    guarantee = fitted.guarantee(measure="risk_gap")
    assert Result.from_json(guarantee.to_json()) == guarantee
    assert guarantee.upper == min(1.0, guarantee.error + guarantee.margin) <= guarantee_of(fitted).upper
    assert str(guarantee).startswith(
        "With 95% confidence no re-drawing of the line between acting and not acting saves more than 0."
    )
    assert "per case with the recalibrated forecaster in the population, at any threshold: 0." in str(guarantee)
    assert "(through the Cutoff error, with the paper's constants" in str(guarantee)
    assert Recalibrator.from_json(fitted.to_json()).guarantee(measure="risk_gap") == guarantee


def test_the_words_of_isotonic_regression():
    guarantee = IsotonicRecalibrator().fit(FIGURE_4).guarantee(measure="risk_gap")
    assert str(guarantee).splitlines()[:2] == [
        "With 95% confidence no re-drawing of the line between acting and not acting saves more than 0.0485 per case "
        "with the recalibrated forecaster in the population, at any threshold: 0.0000 on the 4,000 rows it was fitted "
        "to, and at most 0.0485 more elsewhere (through the Cutoff error, with the paper's constants 0.5603).",
        "Before the data: this bound was promised, from the number of rows alone, because isotonic regression has no "
        "risk gap on the rows it is fitted to.",
    ]


def test_few_rows_are_told_that_the_bound_says_nothing():
    guarantee = IsotonicRecalibrator().fit([0.5], [1]).guarantee(measure="risk_gap")
    assert guarantee.upper == 1.0
    assert "Note: no risk gap is above 1, so that this bound says nothing: there are too few rows" in str(guarantee)


def test_what_cannot_be_guaranteed_is_refused():
    fitted, unknown = PlattRecalibrator().fit(P, Y), cast("Any", "ece")
    with pytest.raises(ValueError, match=r"measure must be one of 'cutoff', 'risk_gap', got 'ece'"):
        fitted.guarantee(measure=unknown)
    with pytest.raises(ValueError, match=r"sample_weight was given to fit, and no guarantee covers weighted rows"):
        PlattRecalibrator().fit(P, Y, sample_weight=P).guarantee(measure="risk_gap")
    with pytest.raises(NotFittedError, match="not fitted yet"):
        PlattRecalibrator().guarantee(measure="risk_gap")
    text = fitted.to_json()
    with pytest.raises(ValueError, match="fit_risk_gap_ must be a number from 0 to 1"):
        Recalibrator.from_json(text.replace('"fit_risk_gap_": ', '"fit_risk_gap_": 7'))
    with pytest.raises(ValueError, match="fit_risk_gap_ is missing from rows of PlattRecalibrator"):
        Recalibrator.from_json(text.replace(f', "fit_risk_gap_": {fitted.fit_risk_gap_!r}', ""))
