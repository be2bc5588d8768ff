"""Guarantees for the forecasts that a map was fitted to: what they are, what they say, and what is refused."""

import math
from typing import Any, cast

import numpy as np
import pytest
from recalibration_cases import FIGURE_4, P, Y, every_map, guarantee_of
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from calibrant import (
    IsotonicRecalibrator,
    PlattRecalibrator,
    Tally,
)
from calibrant.certificates.margins import (
    constant_margin,
    fitted_constant_margin,
    fitted_range_margin,
    monotone_margin,
    range_margin,
)
from calibrant.core.results import Result
from calibrant.repairs import ConstantRecalibrator, Recalibrator

RARE = Tally.from_counts([0.01, 0.02, 0.04], [2_000, 2_000, 1_000], [15, 50, 45])


@every_map
@pytest.mark.parametrize("outcome", ["events", "fractions"])
def test_the_brier_score_on_the_fitting_rows(kind, outcome):
    y = Y if outcome == "events" else np.random.default_rng(5).beta(1 + P, 2 - P)
    fitted = clone(kind).fit(P, y)
    forecast = fitted.predict(P)
    assert fitted.fit_brier_ == pytest.approx(np.mean(y * (1 - forecast) ** 2 + (1 - y) * forecast**2), rel=1e-12)
    if outcome == "events":
        assert fitted.fit_brier_ == pytest.approx(np.mean((y - forecast) ** 2), rel=1e-12)


def test_the_brier_score_of_many_rows_and_of_weights():
    rng = np.random.default_rng(3)
    p = np.clip(rng.random(150_000), 0.01, 0.99)
    y = rng.random(p.size) < p**2
    weight = rng.integers(1, 4, p.size)
    for kind in (PlattRecalibrator(), IsotonicRecalibrator(), ConstantRecalibrator()):
        assert kind.fit(p, y).fit_brier_ == pytest.approx(np.mean((y - kind.predict(p)) ** 2), rel=1e-10)
        squares = np.average((y - kind.fit(p, y, sample_weight=weight).predict(p)) ** 2, weights=weight)
        assert kind.fit_brier_ == pytest.approx(squares, rel=1e-10)


def test_isotonic_promises_a_third_of_what_the_population_takes():
    fitted = IsotonicRecalibrator().fit(P, Y)
    guarantee = fitted.guarantee(target="these forecasts")
    assert guarantee.target == "these forecasts"
    assert guarantee.upper == guarantee.in_advance == math.sqrt(math.log(4 / (1 - 0.95)) / (2 * P.size))
    assert guarantee.upper * math.sqrt(P.size) == pytest.approx(1.4802, abs=1e-4)
    assert guarantee.upper < guarantee_of(fitted).upper / 3
    assert guarantee_of(fitted).target == "population"
    assert guarantee_of(fitted).upper == monotone_margin(P.size, 1 - 0.95)


def test_rare_events_have_less_room_to_stray():
    fitted = IsotonicRecalibrator().fit(RARE)
    guarantee = fitted.guarantee(target="these forecasts")
    exponent = math.log(4 / (1 - 0.95))
    linear, squares = 7 * exponent / 3, 5_000 * fitted.fit_brier_
    assert squares == pytest.approx(sum(n * e / n * (1 - e / n) for n, e in ((2_000, 15), (2_000, 50), (1_000, 45))))
    assert guarantee.margin == pytest.approx((linear + math.sqrt(linear**2 + 2 * exponent * squares)) / 5_000)
    assert guarantee.upper * math.sqrt(5_000) < 0.61
    assert guarantee.in_advance == range_margin(5_000, 1 - 0.95)


@every_map
@pytest.mark.parametrize("measure", ["cutoff", "risk_gap"])
def test_what_is_guaranteed_of_every_kind(kind, measure):
    for rows in ((P, Y), (RARE, None)):
        try:
            fitted = clone(kind).fit(*rows)
        except ValueError:  # no temperature helps rare events that are forecast too low
            continue
        population = fitted.guarantee(0.9, measure=measure)
        guarantee = fitted.guarantee(0.9, measure=measure, target="these forecasts")
        count, is_constant = fitted.n_rows_, isinstance(fitted, ConstantRecalibrator)
        margin = fitted_constant_margin if is_constant else fitted_range_margin
        assert guarantee.margin == margin(count, fitted.fit_brier_, 1 - 0.9)
        assert guarantee.error == population.error
        assert guarantee.upper == min(1.0, guarantee.error + guarantee.margin) <= population.upper
        assert (guarantee.measure, guarantee.ladder) == (measure, population.ladder)
        assert guarantee.paper_upper is guarantee.paper_margin is guarantee.paper_in_advance is None
        assert (guarantee.in_advance is None) == (population.in_advance is None)
        if guarantee.in_advance is not None and population.in_advance is not None and population.in_advance < 1.0:
            plain = (constant_margin if is_constant else range_margin)(count, 1 - 0.9)
            assert guarantee.in_advance == pytest.approx(population.in_advance - population.margin + plain, rel=1e-12)
        assert Result.from_json(guarantee.to_json()) == guarantee
        rebuilt = Recalibrator.from_json(fitted.to_json())
        assert rebuilt.guarantee(0.9, measure=measure, target="these forecasts") == guarantee


def test_the_words():
    fitted = IsotonicRecalibrator().fit(FIGURE_4)
    assert str(fitted.guarantee(target="these forecasts")).splitlines() == [
        "With 95% confidence the Cutoff calibration error of the recalibrated forecaster is at most 0.0219 for these "
        "forecasts: 0.0000 on the 4,000 rows it was fitted to, and at most 0.0219 more if they were issued again and "
        "only the outcomes drawn anew.",
        "Before the data: a bound of 0.0235 was promised, from the number of rows alone, because isotonic regression "
        "has no Cutoff error on the rows it is fitted to.",
        "This assumes that given their forecasts the outcomes are independent, which several of one patient, day or "
        "site seldom are; the forecaster was fixed without looking at these outcomes, to which the map may be fitted.",
    ]
    gap = fitted.guarantee(target="these forecasts", measure="risk_gap")
    assert gap.finding() == (
        "With 95% confidence no re-drawing of the line between acting and not acting saves more than 0.0219 per case "
        "with the recalibrated forecaster for these forecasts, at any threshold: 0.0000 on the 4,000 rows it was "
        "fitted to, and at most 0.0219 more if they were issued again and only the outcomes drawn anew."
    )
    assert "Before the data: this bound was promised, from the number of rows alone: it is how far" in str(
        ConstantRecalibrator().fit(P, Y).guarantee(target="these forecasts")
    )
    assert "Note: no Cutoff error is above 1" in str(PlattRecalibrator().fit([0.5], [1]).guarantee(target="population"))


@pytest.mark.parametrize("unknown", ["everyone", None, ["population"]])
def test_bad_requests_are_refused(unknown):
    fitted = PlattRecalibrator().fit(P, Y)
    with pytest.raises(ValueError, match="target must be one of"):
        fitted.guarantee(target=cast(Any, unknown))
    with pytest.raises(ValueError, match="no guarantee covers weighted rows"):
        PlattRecalibrator().fit(P, Y, sample_weight=P).guarantee(target="these forecasts")
    with pytest.raises(NotFittedError, match="not fitted yet"):
        PlattRecalibrator().guarantee(target="these forecasts")
    text = fitted.to_json()
    with pytest.raises(ValueError, match="fit_brier_ must be a number from 0 to 1"):
        Recalibrator.from_json(text.replace('"fit_brier_": ', '"fit_brier_": 7'))
    with pytest.raises(ValueError, match="fit_brier_ is missing from rows of PlattRecalibrator"):
        Recalibrator.from_json(text.replace(f', "fit_brier_": {fitted.fit_brier_!r}', ""))
