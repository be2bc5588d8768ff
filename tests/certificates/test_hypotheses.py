import itertools
import json
import math
import subprocess
import sys

import brute_force
import numpy as np
import pytest
from brute_force import rows
from hypothesis import given, settings
from scipy.stats import binom, norm

import calibrant
from calibrant import Tally
from calibrant.certificates import CalibrationTest, enumeration, hypotheses
from calibrant.certificates.hypotheses import calibration_test
from calibrant.certificates.resampled_ranges import count_reaching
from calibrant.certificates.spiegelhalter import spiegelhalter_test
from calibrant.core import progress as progress_module
from calibrant.core.laws import brownian_range
from calibrant.core.results import Result

RNG = np.random.default_rng(11)
FORECAST = RNG.random(300)
OUTCOME = (RNG.random(300) < FORECAST).astype(int)
TIED = np.round(FORECAST, 1)


# --- The exact test ---------------------------------------------------------------------------------------------------


@given(rows(binary=True, weighted=False))
@settings(max_examples=50)
def test_the_statistic_is_the_cutoff_error(data):
    y, p, _ = data
    for method in ("exact", "asymptotic"):
        found = calibration_test(y, p, method=method, n_resamples=5)
        assert found.statistic == pytest.approx(brute_force.cutoff(y, p), abs=1e-12)
        assert 0.0 <= found.pvalue <= 1.0


@pytest.mark.parametrize(
    "forecast",
    [[0.1, 0.25, 0.4, 0.5, 0.65, 0.7, 0.85, 0.9], [0.2, 0.2, 0.2, 0.5, 0.5, 0.5, 0.9, 0.9], [0.3] * 8],
    ids=["distinct", "tied", "constant"],
)
def test_the_p_value_is_the_one_from_all_possible_outcomes_or_near_it(forecast, monkeypatch):
    resamples = 4_000
    outcomes = list(itertools.product([0, 1], repeat=len(forecast)))
    chance = np.array([math.prod(p if y else 1 - p for y, p in zip(ys, forecast, strict=True)) for ys in outcomes])
    statistic = np.array([brute_force.cutoff(ys, forecast) for ys in outcomes])
    for k in range(0, len(outcomes), 37):
        truth = chance[statistic >= statistic[k] - 1e-9].sum()
        enumerated = calibration_test(outcomes[k], forecast)
        assert enumerated.pvalue == pytest.approx(truth, rel=1e-12)
        assert (enumerated.method, enumerated.n_resamples) == ("exact", None)
        monkeypatch.setattr(enumeration, "ENUMERABLE", 1)
        found = calibration_test(outcomes[k], forecast, method="exact", n_resamples=resamples, rng=k)
        monkeypatch.undo()
        reached = round(found.pvalue * (resamples + 1)) - 1
        assert binom.ppf(1e-6, resamples, truth) <= reached <= binom.isf(1e-6, resamples, truth)


def test_rounding_does_not_break_ties():
    found = calibration_test(np.arange(40) < 12, np.full(40, 0.3), method="exact", rng=0)
    assert found.pvalue == 1.0
    # Exactly the events forecast, and yet the curve is not exactly 0: nothing can be less off.
    p = np.repeat(np.arange(1, 10) / 10.0, 10)
    y = np.concatenate([np.arange(10) < k for k in range(1, 10)])
    assert calibration_test(y, p, method="exact", rng=0).pvalue == 1.0


def test_seeds_generators_and_no_seed():
    seeded = calibration_test(OUTCOME, FORECAST, rng=5, n_resamples=999)
    assert calibration_test(OUTCOME, FORECAST, rng=np.int64(5), n_resamples=999) == seeded
    assert 0.01 <= calibration_test(OUTCOME, FORECAST, n_resamples=99).pvalue <= 1.0
    # A generator gives a seed, and moves on.
    drawn, generator = int(np.random.default_rng(5).integers(2**63)), np.random.default_rng(5)
    from_generator = calibration_test(OUTCOME, FORECAST, rng=generator, n_resamples=999)
    assert from_generator == calibration_test(OUTCOME, FORECAST, rng=drawn, n_resamples=999)
    assert calibration_test(OUTCOME, FORECAST, rng=generator, n_resamples=9999) != calibration_test(
        OUTCOME, FORECAST, rng=generator, n_resamples=9999
    )


def test_other_outcomes_draw_other_resamples_by_the_same_seed(monkeypatch):
    taken = []

    def watched(*given):
        taken.append(given[5].bit_generator.state)
        return count_reaching(*given)

    monkeypatch.setattr(hypotheses, "count_reaching", watched)
    for outcome in (OUTCOME, OUTCOME, 1 - OUTCOME):
        calibration_test(outcome, FORECAST, rng=0, n_resamples=999)
    assert taken[0] == taken[1] != taken[2]


def test_few_resamples_need_fresh_random_numbers():
    message = r"n_resamples is 998, too few for a fixed seed, rng=7: .*; use n_resamples=999 or more, or rng=None"
    for seed in (7, np.int64(7)):
        with pytest.raises(ValueError, match=message):
            calibration_test(OUTCOME, FORECAST, rng=seed, n_resamples=998)
    assert calibration_test(OUTCOME, FORECAST, rng=np.random.default_rng(7), n_resamples=99).n_resamples == 99
    assert calibration_test(OUTCOME, FORECAST, rng=7, n_resamples=99, method="asymptotic").n_resamples is None


def test_a_single_forecast_has_the_binomial_p_value():
    for events in (0, 3, 6, 14, 60):
        found = calibration_test(Tally.from_counts([0.1], [60], [events]), rng=0)
        distance = np.abs(np.arange(61) - 6.0)
        expected = binom.pmf(np.arange(61), 60, 0.1)[distance >= abs(events - 6.0) - 1e-9].sum()
        assert found.pvalue == pytest.approx(expected, rel=1e-10)
        assert "all possible outcomes" in str(found)
        assert found.assumptions == hypotheses.GIVEN_FORECASTS


def test_rows_in_any_order_labels_and_tallies_give_the_same():
    expected = calibration_test(OUTCOME, TIED, rng=1, n_resamples=999)
    order = np.random.default_rng(0).permutation(300)
    assert calibration_test(OUTCOME[order], TIED[order], rng=1, n_resamples=999) == expected
    tally = Tally.from_arrays(OUTCOME, TIED)
    assert calibration_test(tally, rng=1, n_resamples=999) == expected
    counts = Tally.from_counts(tally.forecast, tally.rows, tally.events)
    assert calibration_test(counts, rng=1, n_resamples=999) == expected
    assert calibration_test(np.where(OUTCOME, "a", "b"), TIED, pos_label="a", rng=1, n_resamples=999) == expected
    unit = np.ones(300)  # weights that are all 1 are no weights
    assert calibration_test(OUTCOME, TIED, sample_weight=unit, rng=1, n_resamples=999) == expected


def test_certain_forecasts_happen_and_impossible_ones_do_not(monkeypatch):
    p = np.array([0.0, 0.0, 1.0, 1.0, 0.5])
    for limit, least in ((enumeration.ENUMERABLE, 0.0), (1, 0.001)):
        monkeypatch.setattr(enumeration, "ENUMERABLE", limit)
        for outcome, expected in (([0, 0, 1, 1, 1], 1.0), ([0, 1, 1, 1, 1], least), ([0, 0, 0, 1, 1], least)):
            assert calibration_test(outcome, p, method="exact", n_resamples=999, rng=0).pvalue == expected


def test_wrong_forecasts_are_rejected():
    p = np.linspace(0.05, 0.95, 1_000)
    y = np.random.default_rng(4).random(1_000) < p**1.5
    assert calibration_test(y, p, rng=0).pvalue == 1e-4
    assert calibration_test(y, p, method="asymptotic").pvalue < 1e-4


def test_a_test_loads_no_compiler():
    code = """
import json, sys
from calibrant.certificates.hypotheses import calibration_test
from calibrant.certificates.resampled_ranges import count_reaching
calibration_test([k % 2 for k in range(99_999)], [k / 99_999 for k in range(99_999)], rng=0)
print(json.dumps("numba" in sys.modules))
"""
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(finished.stdout) is False


def test_progress_is_shown_on_request(monkeypatch, capsys):
    monkeypatch.setattr(progress_module, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(progress_module, "_REDRAW_SECONDS", 0.0)
    calibration_test(OUTCOME, FORECAST, rng=0, n_resamples=999)
    calibration_test(OUTCOME, FORECAST, rng=0, n_resamples=999, progress=False)
    assert capsys.readouterr().err == ""
    calibration_test(OUTCOME, FORECAST, rng=0, n_resamples=999, progress=True)
    assert "resampling: " in capsys.readouterr().err


# --- The large-sample test --------------------------------------------------------------------------------------------


def test_the_large_sample_p_value_is_the_tail_of_the_brownian_range():
    found = calibration_test(OUTCOME, FORECAST, method="asymptotic")
    spread = math.sqrt(np.mean(FORECAST * (1 - FORECAST)))
    cutoff = calibrant.cutoff_calibration_error(OUTCOME, FORECAST)
    assert found.pvalue == pytest.approx(brownian_range.sf(math.sqrt(300) * cutoff / spread), rel=1e-9)
    assert (found.method, found.rows, found.n_resamples, found.notes) == ("asymptotic", 300, None, ())


def test_weights_enter_the_variance_squared_and_their_scale_does_not_matter():
    weight = np.random.default_rng(9).gamma(2.0, size=300)
    found = calibration_test(OUTCOME, FORECAST, sample_weight=weight, method="asymptotic")
    cutoff = brute_force.cutoff(OUTCOME, FORECAST, weight)
    spread = math.sqrt(np.sum(weight**2 * FORECAST * (1 - FORECAST))) / weight.sum()
    assert found.statistic == pytest.approx(cutoff, rel=1e-9)
    assert found.pvalue == pytest.approx(brownian_range.sf(cutoff / spread), rel=1e-9)
    scaled = calibration_test(OUTCOME, FORECAST, sample_weight=1e3 * weight, method="asymptotic")
    assert scaled.pvalue == pytest.approx(found.pvalue, rel=1e-9)
    assert scaled.notes == found.notes
    assert "the weights were fixed without looking at the outcomes" in found.assumptions
    from_tally = calibration_test(Tally.from_arrays(OUTCOME, FORECAST, sample_weight=weight), method="asymptotic")
    assert from_tally == found


def test_fractions_use_their_squared_residuals_and_say_so():
    y = np.clip(FORECAST + 0.1 * np.sin(np.arange(300)), 0, 1)
    found = calibration_test(y, FORECAST)
    spread = math.sqrt(np.mean((y - FORECAST) ** 2))
    cutoff = calibrant.cutoff_calibration_error(y, FORECAST)
    assert found.pvalue == pytest.approx(brownian_range.sf(math.sqrt(300) * cutoff / spread), rel=1e-9)
    assert "outcomes are fractions" in found.notes[0]
    assert "squared residuals" in found.notes[1]


def test_without_room_for_chance_the_p_value_is_0_or_1():
    right = calibration_test([0, 1, 1], [0.0, 1.0, 1.0], method="asymptotic")
    wrong = calibration_test([0, 1, 0], [0.0, 1.0, 1.0], method="asymptotic")
    perfect = calibration_test([0.2, 0.7], [0.2, 0.7], method="asymptotic")
    assert (right.pvalue, wrong.pvalue, perfect.pvalue) == (1.0, 0.0, 1.0)
    assert all("no room for chance" in found.notes[-1] for found in (right, wrong, perfect))


def test_few_rows_and_heavy_ties_are_flagged():
    few = calibration_test(OUTCOME[:50], FORECAST[:50], method="asymptotic")
    assert len(few.notes) == 1
    assert "less than 30" in few.notes[0]
    tied = calibration_test(OUTCOME, TIED, method="asymptotic")
    assert len(tied.notes) == 1
    assert "9 forecasts carry more than 1% of the variance each" in tied.notes[0]
    one_heavy = calibration_test(
        np.concatenate([OUTCOME, [0, 1] * 20]), np.concatenate([FORECAST, [0.5] * 40]), method="asymptotic"
    )
    assert "one forecast carries" in one_heavy.notes[0]


# --- Choosing ---------------------------------------------------------------------------------------------------------


def test_auto_chooses_and_says_why(monkeypatch):
    exact = calibration_test(OUTCOME, FORECAST, rng=0)
    assert (exact.method, exact.n_resamples) == ("exact", 9999)
    assert exact.notes[0].startswith("the exact test was chosen: outcomes are 0/1")
    few = calibration_test(OUTCOME[:15], FORECAST[:15])
    assert (few.method, few.n_resamples) == ("exact", None)
    assert few.notes[0].endswith("few enough counts of events are possible to go through all of them")
    weighted = calibration_test(OUTCOME, FORECAST, sample_weight=FORECAST)
    assert weighted.method == "asymptotic"
    assert weighted.notes[0] == "the large-sample test was chosen: the rows are weighted"
    fractional = calibration_test(FORECAST**2, FORECAST)
    assert fractional.method == "asymptotic"
    monkeypatch.setattr(hypotheses, "AFFORDABLE_DRAWS", 1e6)
    long = calibration_test(OUTCOME, FORECAST, rng=0)
    assert long.method == "asymptotic"
    assert "300 rows x 9,999 resamples would take long" in long.notes[0]
    assert calibration_test(OUTCOME, FORECAST, n_resamples=99).method == "exact"
    assert calibration_test(OUTCOME, FORECAST, method="exact", rng=0).method == "exact"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "bootstrap"}, "method must be one of 'auto', 'exact', 'asymptotic', 'evidence', got 'bootstrap'"),
        ({"n_resamples": 0}, "n_resamples must be a whole number from 1 to 1e[+]08, got 0"),
        ({"n_resamples": 99.5}, "n_resamples must be a whole number"),
        ({"rng": "today"}, "rng must be None, a whole number from 0 on as seed, or a numpy.random.Generator, got 'to"),
        ({"rng": -1}, "rng must be None, .*, got -1"),
        ({"progress": "yes"}, "progress must be True or False, got 'yes'"),
        (
            {"method": "exact", "sample_weight": FORECAST},
            "method='exact' needs rows without weights, and sample_weight was given; use method='asymptotic', or Tally",
        ),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        calibration_test(OUTCOME, FORECAST, **options)


def test_fractions_are_refused_where_the_forecasts_do_not_determine_their_law():
    with pytest.raises(ValueError, match=r"method='exact' needs outcomes that are 0 or 1.*use method='asymptotic'"):
        calibration_test(FORECAST**2, FORECAST, method="exact")
    with pytest.raises(ValueError, match=r"Spiegelhalter's z needs outcomes that are 0 or 1.*use calibration_test"):
        spiegelhalter_test(FORECAST**2, FORECAST)


def test_a_tally_comes_alone():
    tally = Tally.from_arrays(OUTCOME, FORECAST)
    with pytest.raises(ValueError, match="sample_weight was given together with a Tally"):
        calibration_test(tally, sample_weight=FORECAST)
    with pytest.raises(ValueError, match="y_prob was given together with a Tally"):
        spiegelhalter_test(tally, FORECAST)
    with pytest.raises(ValueError, match="y_prob is missing"):
        calibration_test(OUTCOME)


# --- Spiegelhalter's z ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("forecast", [FORECAST, TIED], ids=["distinct", "tied"])
def test_spiegelhalters_z_is_its_formula(forecast):
    found = spiegelhalter_test(OUTCOME, forecast)
    brier = np.mean((OUTCOME - forecast) ** 2)
    expected = np.mean(forecast * (1 - forecast))
    spread = math.sqrt(np.sum((1 - 2 * forecast) ** 2 * forecast * (1 - forecast))) / 300
    assert found.statistic == pytest.approx((brier - expected) / spread, rel=1e-9)
    assert found.pvalue == pytest.approx(2 * norm.sf(abs(found.statistic)), rel=1e-12)
    assert spiegelhalter_test(Tally.from_arrays(OUTCOME, forecast)) == found
    assert (found.method, found.rows, found.n_resamples) == ("asymptotic", 300, None)
    assert spiegelhalter_test(np.where(OUTCOME, "a", "b"), forecast, pos_label="a") == found


def test_the_sign_of_z_tells_too_extreme_from_too_timid():
    extreme = Tally.from_counts([0.1, 0.9], [100, 100], [25, 75])
    timid = Tally.from_counts([0.3, 0.7], [100, 100], [15, 85])
    assert spiegelhalter_test(extreme).statistic > 3
    assert spiegelhalter_test(timid).statistic < -3


def test_spiegelhalters_blind_spot_is_named():
    too_low = Tally.from_counts([0.2, 0.8], [900, 900], [270, 810])
    found = spiegelhalter_test(too_low)
    assert found.pvalue == pytest.approx(1.0)
    assert "one direction only" in found.notes[0]
    assert calibration_test(too_low, rng=0).pvalue < 1e-12


def test_spiegelhalters_z_is_refused_where_it_is_not_defined():
    with pytest.raises(ValueError, match=r"not defined when every y_prob is 0, 0.5 or 1.*use calibration_test"):
        spiegelhalter_test([0, 1, 1, 0], [0.0, 0.5, 1.0, 0.5])
    with pytest.raises(ValueError, match="needs rows without weights"):
        spiegelhalter_test(Tally.from_arrays(OUTCOME, FORECAST, sample_weight=FORECAST))


# --- The result -------------------------------------------------------------------------------------------------------


def test_the_text_says_what_is_rejected_and_what_is_not_said():
    accepted = CalibrationTest("cutoff", 0.0312, 0.31, "exact", 1_200, 9_999, ("one", "two"))
    assert str(accepted) == (
        "Perfect calibration of these forecasts is not rejected at the 5% level (p-value 0.31, Cutoff calibration "
        "error 0.0312, 1,200 rows, 9,999 resamples). A large p-value is no certificate of calibration: too few rows "
        "hide any error, and only an upper limit for the error, as certify() gives, says how large it may be.\n"
        "This assumes that one; two."
    )
    refused = CalibrationTest("spiegelhalter", -4.2, 2.67e-5, "asymptotic", 1, None, ("one",), ("look twice",))
    assert str(refused) == (
        "Perfect calibration of these forecasts is rejected at the 5% level (p-value 2.67e-05, Spiegelhalter's z -4.2, "
        "1 row, large-sample law). This says that the forecasts are off, not by how much: with many rows a harmless "
        "error is rejected too, and a large p-value would not have been a certificate of calibration.\n"
        "This assumes that one.\n"
        "Note: look twice"
    )


def test_a_result_survives_json_and_is_shown_in_notebooks():
    for found in (calibration_test(OUTCOME, FORECAST, rng=0, n_resamples=999), spiegelhalter_test(OUTCOME, FORECAST)):
        assert Result.from_json(found.to_json()) == found
        assert "Perfect calibration of these forecasts is" in found._repr_html_()
        assert {"statistic", "pvalue", "assumptions"} <= set(found.to_dict())
