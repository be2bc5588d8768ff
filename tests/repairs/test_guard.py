"""The guard: what it keeps, when it steps back, and what it refuses."""

import math

import numpy as np
import pytest
from recalibration_cases import EVERYWHERE, FIGURE_4, P, Y, guarantee_of
from scipy.special import expit

from calibrant import (
    BetaRecalibrator,
    GuardedRecalibrator,
    IsotonicRecalibrator,
    PlattRecalibrator,
    Tally,
    cutoff_calibration_error,
)
from calibrant.certificates import brownian_range
from calibrant.repairs import ConstantRecalibrator


def test_the_guard_keeps_platt_where_it_fits():
    rng = np.random.default_rng(6)
    p = rng.random(2_000)
    y = rng.random(2_000) < expit(3 * p - 2)
    guarded, platt = GuardedRecalibrator().fit(p, y), PlattRecalibrator().fit(p, y)
    assert isinstance(guarded.recalibrator_, PlattRecalibrator)
    assert guarded.predict(p).tolist() == platt.predict(p).tolist()
    (rung,) = guarded.ladder_
    forecast = platt.predict(p)
    tolerance = brownian_range.ppf(0.95) * math.sqrt((forecast * (1 - forecast)).mean() / 2_000)
    assert rung.tolerance == pytest.approx(tolerance, rel=1e-12)
    assert rung.error == platt.fit_error_ == pytest.approx(cutoff_calibration_error(y, forecast), abs=1e-12)
    assert rung.kept
    assert guarantee_of(guarded).ladder == guarded.ladder_
    assert guarantee_of(guarded).upper == guarantee_of(platt).upper


def test_the_guard_falls_back_where_it_does_not():
    guarded = GuardedRecalibrator().fit(FIGURE_4)
    assert [rung.recalibrator for rung in guarded.ladder_] == ["PlattRecalibrator", "IsotonicRecalibrator"]
    assert [rung.kept for rung in guarded.ladder_] == [False, True]
    assert guarded.predict([0.0, 0.3, 1.0]).tolist() == [1 / 3, 1 / 3, 1.0]
    assert guarded.fit_error_ == 0.0
    constant = GuardedRecalibrator([PlattRecalibrator(), ConstantRecalibrator()]).fit(FIGURE_4)
    assert constant.predict([0.0, 0.3]).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("rows", [100, 250, 12_000, 16_000])
def test_modified_platt_is_the_papers_procedure(rows):
    # Appendix D.2: Platt if its error on the rows is at most (20 + sqrt(2 ln 20)) / sqrt(n), else the mean outcome.
    tally = Tally.from_counts(
        forecast=[0, 0.25, 0.5, 1], rows=[rows // 4] * 4, events=[rows // 4, rows // 40, rows // 30, rows // 4]
    )
    modified = GuardedRecalibrator([PlattRecalibrator(), ConstantRecalibrator()], tolerance="paper").fit(tally)
    platt = PlattRecalibrator().fit(tally)
    epsilon = (20 + math.sqrt(2 * math.log(20))) / math.sqrt(rows)
    if platt.fit_error_ <= epsilon:
        expected = platt.predict(EVERYWHERE)
    else:
        expected = np.full(EVERYWHERE.size, tally.outcome_total / rows)
    assert modified.predict(EVERYWHERE).tolist() == expected.tolist()
    assert (platt.fit_error_ <= epsilon) == (rows < 10_000)
    guarantee = guarantee_of(modified)
    assert guarantee.paper_in_advance == pytest.approx(
        min(1.0, (30 + 2 * math.sqrt(2 * math.log(40))) / math.sqrt(rows) + epsilon), rel=1e-12
    )
    assert guarantee.in_advance == pytest.approx(
        min(1.0, 3 * math.sqrt((1 + math.log(40)) / (2 * rows)) + epsilon), rel=1e-12
    )


def test_a_rung_that_cannot_be_fitted_is_passed_over_with_its_reason():
    guarded = GuardedRecalibrator([BetaRecalibrator(), IsotonicRecalibrator()]).fit([0.0, 0.5, 1.0], [1, 0, 1])
    first, second = guarded.ladder_
    assert (first.error, first.tolerance, first.kept) == (None, None, False)
    assert "could not be fitted: y_prob holds forecasts of exactly 0" in first.reason
    assert second.kept
    assert "Rung 1, BetaRecalibrator: not kept, it could not be fitted" in str(guarded.guarantee_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ladder": []}, r"ladder must be a list of recalibrators, got \[\]"),
        ({"ladder": ConstantRecalibrator()}, "ladder must be a list of recalibrators"),
        (
            {"ladder": [PlattRecalibrator, ConstantRecalibrator()]},
            r"ladder\[0\] is .* not a recalibrator; pass instances",
        ),
        ({"ladder": [PlattRecalibrator()]}, "ladder ends with PlattRecalibrator, which may miss the tolerance"),
        (
            {"ladder": [PlattRecalibrator(input_kind="score"), ConstantRecalibrator()]},
            r"ladder\[0\] takes input_kind='score'",
        ),
        (
            {"ladder": [BetaRecalibrator(), ConstantRecalibrator()], "input_kind": "score"},
            r"ladder\[0\] takes input_kind='prob",
        ),
        (
            {"ladder": [PlattRecalibrator(pos_label=0), ConstantRecalibrator()]},
            r"ladder\[0\] has pos_label=0; pass pos_label= to the guard instead",
        ),
        ({"tolerance": "null-99"}, "tolerance must be one of 'null-95', 'paper', got 'null-99'"),
        ({"tolerance": -0.1}, "tolerance must be a number from 0 to 1, got -0.1"),
        ({"input_kind": "logits"}, "input_kind must be one of 'probability', 'score', got 'logits'"),
    ],
)
def test_a_guard_that_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        GuardedRecalibrator(**options).fit(P, Y)


def test_the_ladder_given_is_left_as_it_was():
    rungs = [PlattRecalibrator(), ConstantRecalibrator()]
    GuardedRecalibrator(rungs, tolerance=0.0).fit(P, Y)
    assert not hasattr(rungs[0], "slope_")
    assert not hasattr(rungs[1], "constant_")


def test_a_guard_whose_steps_stay_inside_tolerates_half_a_row():
    guarded = GuardedRecalibrator(ends="inside").fit(FIGURE_4)
    inside = IsotonicRecalibrator(ends="inside").fit(FIGURE_4)
    assert guarded.predict(EVERYWHERE).tolist() == inside.predict(EVERYWHERE).tolist()
    assert guarded.predict(EVERYWHERE).max() == 1.0 - 0.5 / 1001
    assert 0.0 < guarded.fit_error_ == inside.fit_error_ < 0.5 / 4000
    assert guarantee_of(guarded).upper == guarantee_of(inside).upper
    # However strict the tolerance is, the last rung is kept, and what was promised says what it may add.
    strict = GuardedRecalibrator([IsotonicRecalibrator(ends="inside")], tolerance=0.0).fit(FIGURE_4)
    assert strict.ladder_[-1].kept
    assert strict.ladder_[-1].tolerance == 0.5 / 4000
    promise = guarantee_of(strict)
    assert promise.in_advance == pytest.approx(promise.margin + 0.5 / 4000, abs=1e-15)
    assert promise.upper < promise.margin + 0.5 / 4000


def test_a_ladder_of_ones_own_says_itself_where_its_steps_end():
    with pytest.raises(
        ValueError, match=r"ends is 'inside' beside a ladder of your own; set it on the rung, as in Iso"
    ):
        GuardedRecalibrator([IsotonicRecalibrator()], ends="inside").fit(P, Y)
