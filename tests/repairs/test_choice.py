import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from calibrant import Tally, cutoff_calibration_error, smooth_calibration_error
from calibrant.certificates.verdicts import confidence_interval
from calibrant.core import progress as progress_module
from calibrant.core.results import Result
from calibrant.core.words import rounded_up
from calibrant.repairs.choice import compare_recalibrators, default_candidates
from calibrant.repairs.entries import as_entries
from calibrant.repairs.guard import GuardedRecalibrator
from calibrant.repairs.maps import BetaRecalibrator, ConstantRecalibrator, IsotonicRecalibrator, PlattRecalibrator
from calibrant.repairs.results import RecalibratorComparison, RecalibratorScores

RNG = np.random.default_rng(0)
FORECAST = RNG.random(1000).round(3)
FORECAST = np.clip(FORECAST, 0.001, 0.999)
OUTCOME = (RNG.random(1000) < FORECAST**2).astype(int)
WEIGHT = RNG.gamma(4.0, size=1000)
FEW = {"platt": PlattRecalibrator(), "isotonic": IsotonicRecalibrator(), "constant": ConstantRecalibrator()}


def compare(y_prob=FORECAST, y_true=OUTCOME, **options):
    return compare_recalibrators(y_prob, y_true, **{"rng": 0, **options})


@pytest.fixture(scope="module")
def comparison():
    return compare()


# --- The numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "thresholds", "over"),
    [
        ({}, (0.0, 1.0), "any threshold"),
        ({"threshold": 0.3}, (0.3, 0.3), "threshold 0.3"),
        ({"threshold": (0.1, 0.3)}, (0.1, 0.3), "any threshold from 0.1 to 0.3"),
        (
            {"cost_false_positive": 1, "cost_false_negative": 4},
            (0.2, 0.2),
            "threshold 0.2 (a false positive costs 1, a false negative 4)",
        ),
    ],
)
def test_what_acting_leaves_to_save_stands_beside_the_errors(asked, thresholds, over):
    found = compare(candidates=FEW, **asked)
    limits = confidence_interval(OUTCOME, FORECAST, measure="risk_gap", **asked)
    as_is = found["as is"]
    held_out = (as_is.risk_gap, as_is.risk_gap_lower, as_is.risk_gap_upper)
    assert held_out == pytest.approx((limits.estimate, limits.lower, limits.upper), abs=1e-12)
    assert (found.thresholds, found.cost_unit) == (thresholds, 5 if "cost_false_positive" in asked else None)
    assert f"still saves per case, at {over}.\n" in str(found)
    assert found["isotonic"].risk_gap < as_is.risk_gap  # which is the square of what it should be
    for each in found.candidates:
        assert each.risk_gap <= each.cutoff + 1e-12
        assert each.risk_gap_lower <= each.risk_gap <= each.risk_gap_upper
    assert Result.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"threshold": 1.5}, "threshold must be a number from 0 to 1"),
        ({"threshold": (0.3, 0.1)}, "goes from 0.3 down to 0.1"),
        ({"cost_false_negative": 4}, "cost_false_positive is missing"),
        ({"threshold": 0.2, "cost_false_positive": 1, "cost_false_negative": 4}, "was given together with costs"),
    ],
)
def test_thresholds_are_checked_before_anything_is_fitted(asked, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        compare([0.5], [1], **asked)


def test_the_usual_candidates_with_the_forecasts_as_they_are_first(comparison):
    curves, steps = ["platt", "platt on logit", "beta", "temperature"], ["isotonic", "isotonic inside", "guarded"]
    names = ["as is", *curves, *steps, "constant"]
    assert list(comparison) == names
    assert len(comparison) == 9
    assert (comparison.rows, comparison.cv, comparison.confidence_level) == (1000, 5, 0.95)
    assert [*default_candidates()] == names[1:]


def test_forecasts_as_they_are_are_measured_as_they_are(comparison):
    scores = comparison["as is"]
    assert scores.cutoff == pytest.approx(cutoff_calibration_error(OUTCOME, FORECAST), abs=1e-12)
    assert scores.smooth == pytest.approx(smooth_calibration_error(OUTCOME, FORECAST), abs=1e-12)
    assert scores.brier == pytest.approx(np.mean((OUTCOME - FORECAST) ** 2), abs=1e-12)
    assert scores.log_loss == pytest.approx(log_loss(OUTCOME, FORECAST), abs=1e-12)
    assert scores.auc == pytest.approx(roc_auc_score(OUTCOME, FORECAST), abs=0.01)
    assert scores.distinct_forecasts == np.unique(FORECAST).size
    assert scores.auc_lost == 0.0
    assert scores.guarantee is None
    assert scores.guarantee_in_advance is None
    limits = confidence_interval(OUTCOME, FORECAST)
    assert (scores.cutoff_lower, scores.cutoff_upper) == pytest.approx((limits.lower, limits.upper), abs=1e-12)


def test_held_out_numbers_against_leaving_out_one_row_at_a_time():
    forecast, outcome = FORECAST[:60], OUTCOME[:60]
    comparison = compare(forecast, outcome, candidates=FEW, cv=60)
    for name, recalibrator in FEW.items():
        left_out = np.empty(60)
        for row in range(60):
            others = np.arange(60) != row
            left_out[row] = recalibrator.fit(forecast[others], outcome[others]).predict(forecast[[row]])[0]
        scores = comparison[name]
        assert scores.brier == pytest.approx(np.mean((outcome - left_out) ** 2), abs=1e-12)
        assert scores.cutoff == pytest.approx(cutoff_calibration_error(outcome, left_out), abs=1e-12)
        assert scores.smooth == pytest.approx(smooth_calibration_error(outcome, left_out), abs=1e-12)
        chance = np.where(outcome == 1, left_out, 1.0 - left_out)
        with np.errstate(divide="ignore"):
            assert scores.log_loss == pytest.approx(-np.log(chance).mean(), abs=1e-12)
        assert scores.auc is None  # no two rows are held out together
        assert scores.auc_lost is None


def test_discrimination_is_lost_by_ties_alone_unless_the_order_is_reversed(comparison):
    as_is = comparison["as is"].auc
    for name in ("platt", "platt on logit", "beta", "temperature"):
        assert comparison[name].auc_lost == 0.0
    assert comparison["constant"].auc == 0.5
    assert comparison["constant"].auc_lost == as_is - 0.5
    assert comparison["constant"].distinct_forecasts == 1
    assert 0.0 < abs(comparison["isotonic"].auc_lost) < 0.02
    assert comparison["isotonic"].distinct_forecasts < 50
    reversed_order = compare(1.0 - FORECAST, OUTCOME, candidates={"platt": PlattRecalibrator()})
    assert reversed_order["platt"].auc == pytest.approx(1.0 - reversed_order["as is"].auc, abs=1e-12)


def test_the_auc_is_that_of_pairs_in_the_same_part_ties_counting_half():
    forecast = FORECAST.round(1).clip(0.1, 0.9)
    entries = as_entries(forecast, OUTCOME, None, None)
    right = pairs = 0.0
    for part in entries.deal(5, np.random.default_rng(0)):
        outcome, known = np.repeat(entries.outcome, part), np.repeat(entries.forecast, part)
        each = outcome.sum() * (outcome.size - outcome.sum())
        right, pairs = right + each * roc_auc_score(outcome, known), pairs + each
    assert compare(forecast)["as is"].auc == pytest.approx(right / pairs, abs=1e-12)


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_guarantees_are_those_of_the_recalibrator_fitted_to_all_rows(level):
    comparison = compare(confidence_level=level)
    for name, recalibrator in default_candidates().items():
        expected = recalibrator.fit(FORECAST, OUTCOME).guarantee(level)
        assert comparison[name].guarantee == pytest.approx(expected.upper, abs=1e-9)
        assert comparison[name].guarantee_in_advance == expected.in_advance
    assert {name for name in comparison if comparison[name].guarantee_in_advance is not None} == {
        "isotonic",
        "isotonic inside",
        "guarded",
        "constant",
    }


def test_isotonic_regression_pays_for_every_row_it_has_seen():
    few = compare(FORECAST[:80], OUTCOME[:80], candidates=FEW)
    fitted = IsotonicRecalibrator().fit(FORECAST[:80], OUTCOME[:80]).predict(FORECAST[:80])
    assert few["isotonic"].brier > np.mean((OUTCOME[:80] - fitted) ** 2) + 0.01


# --- Parts ------------------------------------------------------------------------------------------------------------


def test_neither_row_order_nor_counting_changes_anything(comparison):
    order = np.random.default_rng(1).permutation(1000)
    assert compare(FORECAST[order], OUTCOME[order]) == comparison
    tally = Tally.from_arrays(OUTCOME, FORECAST)
    assert compare_recalibrators(tally, rng=0) == comparison
    assert compare(y_true=np.array(["no", "yes"])[OUTCOME], pos_label="yes") == comparison
    assert compare(rng=np.random.default_rng(0)) == comparison
    assert compare(rng=1) != comparison


def test_row_order_makes_no_difference_with_weights_and_fractions_either():
    order = np.random.default_rng(1).permutation(1000)
    fraction = FORECAST**2
    plain = compare(FORECAST, fraction, sample_weight=WEIGHT, candidates=FEW)
    assert compare(FORECAST[order], fraction[order], sample_weight=WEIGHT[order], candidates=FEW) == plain


def test_the_parts_are_a_random_deal_of_nearly_equal_size():
    entries = as_entries(FORECAST, OUTCOME, None, None)
    parts = entries.deal(7, np.random.default_rng(0))
    assert sorted(int(part.sum()) for part in parts) == [142] + [143] * 6
    np.testing.assert_array_equal(np.sum(parts, axis=0), entries.count)
    pairs = Tally.from_counts(forecast=[0.3], rows=[100], events=[40])
    entries = as_entries(pairs, None, None, None)
    generator = np.random.default_rng(0)
    events = np.array([[part[1] for part in entries.deal(2, generator)] for _ in range(500)])
    assert (events.sum(axis=1) == 40).all()
    assert events[:, 0].mean() == pytest.approx(20.0, abs=0.5)
    assert events[:, 0].std() == pytest.approx(math.sqrt(50 * 0.4 * 0.6 * 50 / 99), rel=0.1)


def test_counts_of_many_rows_are_quick():
    forecast = np.linspace(0.01, 0.99, 99)
    rows = np.full(99, 1_000_000)
    comparison = compare_recalibrators(Tally.from_counts(forecast, rows, np.rint(rows * forecast**2)), rng=0)
    assert comparison.rows == 99_000_000
    assert comparison.recommended in ("isotonic", "isotonic inside", "guarded")


# --- Weights and fractions --------------------------------------------------------------------------------------------


def test_weights_count_and_no_guarantee_covers_them():
    comparison = compare(sample_weight=WEIGHT, candidates=FEW)
    scores = comparison["as is"]
    assert scores.cutoff == pytest.approx(cutoff_calibration_error(OUTCOME, FORECAST, sample_weight=WEIGHT), abs=1e-12)
    assert scores.brier == pytest.approx(np.average((OUTCOME - FORECAST) ** 2, weights=WEIGHT), abs=1e-12)
    assert scores.log_loss == pytest.approx(log_loss(OUTCOME, FORECAST, sample_weight=WEIGHT), abs=1e-12)
    assert [comparison[name].guarantee for name in comparison] == [None] * 4
    assert "no guarantee covers weighted rows" in str(comparison)
    assert "promised" not in comparison.recommendation


def test_rows_of_no_weight_have_no_say():
    weight = np.where(np.arange(1000) < 700, WEIGHT, 0.0)
    without = compare(FORECAST[:700], OUTCOME[:700], sample_weight=WEIGHT[:700], candidates=FEW)
    assert compare(sample_weight=weight, candidates=FEW) == without


def test_fractions():
    chance = FORECAST**2
    comparison = compare(FORECAST, chance, candidates=FEW)
    assert comparison["as is"].cutoff == pytest.approx(cutoff_calibration_error(chance, FORECAST), abs=1e-12)
    assert comparison.recommended == "isotonic"
    assert comparison["isotonic"].brier < 1e-4
    expected = IsotonicRecalibrator().fit(FORECAST, chance).guarantee()
    assert comparison["isotonic"].guarantee == pytest.approx(expected.upper, abs=1e-9)


# --- The recommendation -----------------------------------------------------------------------------------------------


def test_calibrated_forecasts_are_left_alone():
    rng = np.random.default_rng(3)
    forecast = rng.random(2000)
    comparison = compare(forecast, rng.random(2000) < forecast)
    assert comparison.recommended == "as is"
    assert comparison.recommendation.startswith("Leave the forecasts as they are: no recalibrator lowers their Brier")
    assert f"Their Cutoff error is {comparison['as is'].cutoff:.4f}, at most" in comparison.recommendation


def test_a_step_is_left_to_isotonic_regression_and_its_promise_is_named():
    rng = np.random.default_rng(4)
    forecast = rng.random(3000)
    comparison = compare(forecast, rng.random(3000) < np.where(forecast > 0.5, 0.8, 0.2))
    assert comparison["isotonic"].log_loss == math.inf  # an event where it forecasts 0, or the other way round
    assert comparison.recommended == "isotonic inside"
    scores, as_is = comparison["isotonic inside"], comparison["as is"]
    assert scores.log_loss < as_is.log_loss
    assert comparison.recommendation.startswith(
        f"Use isotonic inside: its held-out Brier score, {scores.brier:.4f} against {as_is.brier:.4f} as is, is the "
        f"lowest; its held-out Cutoff error is {scores.cutoff:.4f} against {as_is.cutoff:.4f}. Fitted to all rows its "
        f"Cutoff error is at most {rounded_up(scores.guarantee)} with 95% confidence; before the data "
        f"{rounded_up(scores.guarantee_in_advance)} was promised. This is "
        "IsotonicRecalibrator(ends='inside'), which forecasts neither 0 nor 1. By the Brier score, with 95% "
        "confidence, this choice is better than the forecasts as they are ("
    )


def test_the_choice_says_whether_it_is_really_better():
    forecast, outcome = jump(3)
    comparison = compare(forecast, outcome)
    as_is, next_best = comparison.differences
    assert (as_is.first, as_is.second, as_is.verdict) == (comparison.recommended, "as is", "better")
    assert next_best.verdict == "not told apart"
    others = [each for each in comparison.candidates if each.name != comparison.recommended]
    assert next_best.second == min(others, key=lambda each: each.brier).name
    for each in comparison.differences:
        assert each.estimate == pytest.approx(comparison[each.first].brier - comparison[each.second].brier)
        assert each.lower <= each.estimate <= each.upper
    weighted = compare(forecast, outcome, sample_weight=np.linspace(1, 2, forecast.size))
    assert weighted.differences[0].verdict == "better"
    rng = np.random.default_rng(0)
    calibrated = rng.random(2000)
    kept = compare(calibrated, rng.random(2000) < calibrated)
    assert kept.recommended == "as is"
    assert [each.verdict for each in kept.differences] == ["not told apart"]
    assert "this choice is not told apart from the next best" in kept.recommendation


def jump(seed, rows=3000):
    """Events that jump from rare to common, so that isotonic regression has the lowest Brier score by far."""
    rng = np.random.default_rng(seed)
    forecast = 0.01 + 0.98 * rng.random(rows)
    return forecast, rng.random(rows) < np.where(forecast > 0.5, 0.97, 0.03)


@pytest.mark.parametrize("seed", range(3))
def test_the_recommended_has_a_finite_log_loss_whenever_some_candidate_has(seed):
    forecast, outcome = jump(seed)
    steps = {"isotonic": IsotonicRecalibrator(), "guarded": GuardedRecalibrator()}
    for finite in ({"platt": PlattRecalibrator()}, {"constant": ConstantRecalibrator()}):
        comparison = compare(forecast, outcome, candidates={**steps, **finite})
        assert comparison["isotonic"].log_loss == comparison["guarded"].log_loss == math.inf
        assert comparison["isotonic"].brier < comparison["as is"].brier - 0.01
        assert comparison.recommended is not None
        assert comparison[comparison.recommended].log_loss < math.inf
        said = "no recalibrator with a" if comparison.recommended == "as is" else "of those with a"
        assert f"{said} finite log loss" in comparison.recommendation
    # Where nothing but the forecasts as they are has one, they stay, and it is said why.
    comparison = compare(forecast, outcome, candidates=steps)
    assert comparison.recommended == "as is"
    assert "no recalibrator with a finite log loss lowers their Brier score" in comparison.recommendation


def test_forecasts_of_0_for_what_happens_are_not_left_as_they_are():
    rng = np.random.default_rng(8)
    forecast = rng.random(2000)
    outcome = rng.random(2000) < forecast
    forecast[:2], outcome[:2] = 0.0, True
    comparison = compare(forecast, outcome)
    assert comparison["as is"].log_loss == math.inf
    assert comparison.recommended is not None
    assert comparison[comparison.recommended].log_loss < math.inf
    assert "of those with a finite log loss" in comparison.recommendation


def test_where_every_log_loss_is_infinite_the_words_say_so():
    forecast, outcome = jump(4)
    forecast[:2], outcome[:2] = 0.0, True
    comparison = compare(forecast, outcome, candidates={"isotonic": IsotonicRecalibrator()})
    assert comparison.recommended == "isotonic"
    assert "Its log loss is infinite, since it gives a probability of 0 to something that happened." in str(
        comparison.recommendation
    )


def test_among_equals_a_promise_made_in_advance_decides():
    rng = np.random.default_rng(5)
    forecast = rng.random(3000)
    outcome = rng.random(3000) < 1.0 / (1.0 + np.exp(3.0 - 3.0 * forecast))  # Platt's own curve
    candidates = {"platt": PlattRecalibrator(), "beta": BetaRecalibrator(), "guarded": GuardedRecalibrator()}
    comparison = compare(forecast, outcome, candidates=candidates)
    assert comparison["platt"].brier == comparison["guarded"].brier
    assert comparison.recommended == "guarded"
    del candidates["guarded"]
    unpromised = compare(forecast, outcome, candidates=candidates)
    assert unpromised.recommended in ("platt", "beta")
    assert "nothing was promised before the data: for that, put it on the ladder of a" in unpromised.recommendation
    assert "up to noise" in compare(forecast, outcome, rng=1).recommendation


def test_forecasts_that_tell_nothing_apart_become_a_constant():
    outcome = np.random.default_rng(6).random(1000) < 0.3
    comparison = compare(FORECAST, outcome, candidates={"constant": ConstantRecalibrator()})
    assert comparison.recommended == "constant"
    assert "these forecasts tell rows apart no better than one number does." in comparison.recommendation


def test_a_candidate_that_cannot_be_fitted_is_listed_with_the_reason():
    forecast = np.where(np.arange(1000) % 50 == 0, 0.0, FORECAST)
    comparison = compare(forecast, OUTCOME)
    failed = [name for name in comparison if comparison[name].problem is not None]
    assert failed == ["platt on logit", "beta", "temperature"]
    assert comparison["beta"].brier is None
    assert str(comparison["beta"]).startswith("beta: could not be fitted, y_prob holds forecasts of exactly 0")
    assert "beta             could not be fitted\n" in str(comparison)
    assert any(note.startswith("beta could not be fitted: y_prob holds forecasts") for note in comparison.notes)
    assert comparison.recommended not in failed
    # Where the only 0 is in one part, the candidate fails on the way.
    rare = np.where(np.arange(1000) == 0, 0.0, FORECAST)
    assert compare(rare, OUTCOME)["beta"].problem is not None


def test_outcomes_of_one_class():
    comparison = compare(FORECAST, np.zeros(1000))
    assert comparison["constant"].brier == 0.0
    assert comparison["constant"].auc is None
    assert comparison["beta"].problem is not None
    assert comparison.recommended is None
    assert comparison.differences == ()
    assert comparison.recommendation == (
        "Nothing is recommended. None of these rows is an event: on them forecasting 0 for everybody has no error. "
        "Collect rows with events."
    )
    assert "Use " not in str(comparison)
    weights = np.random.default_rng(0).random(1000)
    for given in ({}, {"sample_weight": weights}, {"cluster": np.arange(1000) // 5}):
        assert compare(FORECAST, np.ones(1000), **given).recommended is None


def test_the_notes_say_what_the_limits_are_worth(comparison):
    first, second = comparison.notes
    assert first.startswith("the held-out forecasts of a recalibrator come from 5 maps, one per part")
    assert "approximate for the others" in first
    assert "certify the choice on fresh ones" in second
    assert "every monotone map at once" in second


# --- The result -------------------------------------------------------------------------------------------------------


def test_as_a_table(comparison):
    frame = comparison.frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame["name"].tolist() == list(comparison)
    assert frame["brier"].tolist() == [comparison[name].brier for name in comparison]
    text = str(comparison)
    assert text.startswith("9 ways to treat the forecasts of 1,000 rows, judged on held-out rows (5 parts;")
    lines = text.splitlines()
    assert lines[1] == (
        "The gap is what re-drawing the line between acting and not acting still saves per case, at any threshold."
    )
    assert len({len(line) for line in lines[2:12]}) == 1
    as_is = comparison["as is"]
    assert lines[3].split()[:3] == ["as", "is", f"{as_is.cutoff:.4f}"]
    assert lines[3].split()[5:7] == [f"{as_is.risk_gap:.4f}", rounded_up(as_is.risk_gap_upper)]
    assert comparison.recommendation in text
    assert repr(comparison) == text
    assert ">9 ways" in comparison._repr_html_()
    assert str(comparison["platt"]).endswith(f"guarantee {rounded_up(comparison['platt'].guarantee)}, in advance none")
    with pytest.raises(KeyError, match="oracle"):
        comparison["oracle"]


def test_as_json_and_back(comparison):
    comparison = compare(candidates={"platt": PlattRecalibrator()})
    twin = Result.from_json(comparison.to_json())
    assert isinstance(twin, RecalibratorComparison)
    assert isinstance(twin["platt"], RecalibratorScores)
    assert twin == comparison
    assert json.loads(comparison.to_json())["recommended"] == comparison.recommended


def test_it_cannot_be_changed(comparison):
    with pytest.raises(AttributeError):
        comparison.recommended = "platt"


def test_progress_is_shown_on_request(monkeypatch, capsys):
    monkeypatch.setattr(progress_module, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(progress_module, "_REDRAW_SECONDS", 0.0)
    assert compare(candidates=FEW, progress=False) == compare(candidates=FEW)
    assert capsys.readouterr().err == ""
    compare(candidates=FEW, progress=True)
    assert "comparing recalibrators: 50%" in capsys.readouterr().err


# --- Bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": 1}, "cv must be a whole number from 2 to inf, got 1"),
        ({"cv": "prefit"}, "cv must be a whole number, got 'prefit' of type str"),
        (
            {"y_prob": FORECAST[:1], "y_true": OUTCOME[:1]},
            "cv is 5, and there is only 1 row to cut into parts; collect more rows: no number of parts will do",
        ),
        ({"cv": 1001}, "cv is 1001, and there are only 1,000 rows to cut into parts; choose fewer parts"),
        ({"candidates": [PlattRecalibrator()]}, "candidates must be a dict of names to recalibrators, as in {'platt'"),
        ({"candidates": {}}, "candidates must be a dict of names to recalibrators"),
        ({"candidates": {"as is": PlattRecalibrator()}}, "candidates has the name 'as is'; names are words, and"),
        ({"candidates": {3: PlattRecalibrator()}}, "candidates has the name 3; names are words"),
        ({"candidates": {"platt": PlattRecalibrator}}, "candidates['platt'] is <class"),
        (
            {"candidates": {"platt": PlattRecalibrator(pos_label="yes")}},
            "candidates['platt'] has pos_label='yes'; pass pos_label= to compare_recalibrators instead",
        ),
        ({"confidence_level": 95}, "confidence_level is 95; write 0.95 for 95%"),
        ({"rng": "x"}, "rng must be None, a whole number from 0 on as seed"),
        ({"progress": "yes"}, "progress must be True or False, got 'yes'"),
        ({"y_true": None}, "y_true is missing: pass forecasts and outcomes, as in compare_recalibrators(y_prob, y_tr"),
        ({"y_true": OUTCOME[:-1]}, "y_true has 999 values and y_prob has 1,000; pass one outcome per forecast"),
        ({"y_prob": FORECAST * 100}, "outside [0, 1]; if these are percentages, divide by 100"),
        ({"sample_weight": -WEIGHT}, "weights must not be negative"),
        ({"y_prob": Tally.from_arrays(OUTCOME, FORECAST)}, "y_true was given together with a Tally, which already"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        compare(**options)


def test_tallies_whose_rows_cannot_be_dealt():
    for tally in (Tally.from_arrays(OUTCOME / 2, FORECAST), Tally.from_arrays(OUTCOME, FORECAST, sample_weight=WEIGHT)):
        with pytest.raises(ValueError, match="y_prob is a Tally of fractions or weighted rows, which cannot be told"):
            compare_recalibrators(tally)
    with pytest.raises(ValueError, match="sample_weight was given together with a Tally"):
        compare_recalibrators(Tally.from_arrays(OUTCOME, FORECAST), sample_weight=WEIGHT)
    with pytest.raises(ValueError, match="1,500,000,000 rows, and fewer than 1,000,000,000 can be dealt"):
        compare_recalibrators(Tally.from_counts([0.5], [1_500_000_000], [700_000_000]))


def test_the_recalibrators_passed_in_stay_unfitted():
    candidate = PlattRecalibrator()
    compare(candidates={"platt": candidate})
    assert not hasattr(candidate, "guarantee_")
