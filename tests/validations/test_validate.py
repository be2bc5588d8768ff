"""Validation studies: the numbers of R, limits that are those of the single functions, and words that fit them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, t
from spark_cases import needs_java, spark_frame

import calibrant
from calibrant import InputError, Tally, validate
from calibrant.certificates import Certificate
from calibrant.core.errors import UndefinedError
from calibrant.measures import auroc, brier_score, integrated_calibration_index, observed_expected_ratio
from calibrant.rows.resamples import resampled
from calibrant.validations import Validation
from calibrant.validations.findings import findings_of
from calibrant.validations.results import MEASURED, TABLED
from calibrant.validations.statistics import STATISTICS

REFERENCE = Path(__file__).parents[1] / "reference"
FEW: Any = {"n_resamples": 40}


@pytest.fixture(scope="module")
def rows():
    found = pd.read_csv(REFERENCE / "calibration_500.csv")
    return found["y"].to_numpy(), found["p"].to_numpy()


@pytest.fixture(scope="module")
def study(rows):
    return validate(*rows, **FEW)


def simulated(n=300, seed=0):
    generator = np.random.default_rng(seed)
    y_prob = generator.random(n)
    return (generator.random(n) < y_prob**1.3).astype(int), y_prob


# --- Numbers ----------------------------------------------------------------------------------------------------------


def test_the_numbers_are_those_of_rms_calibrationcurves_and_proc(study):
    # R 4.2.2 with rms 6.5, CalibrationCurves 3.1, pmcalibration 0.2 and pROC; commands in tests/reference/r.
    expected = {
        "intercept_at_unit_slope": 0.2240468049157,
        "intercept_at_unit_slope_lower": 0.00373972,
        "intercept_at_unit_slope_upper": 0.44520259,
        "slope": 0.8227829704522,
        "slope_lower": 0.672243692,
        "slope_upper": 0.986714275,
        "auroc": 0.8142673107890499,  # pROC; rms has 0.8142834138486, of forecasts cut at multiples of 0.0002
        "auroc_lower": 0.7772551,
        "auroc_upper": 0.8512796,
        "brier": 0.1770333947256,
        "brier_scaled": 0.2873051742127,
        "ici": 0.0474744781725,
        "e50": 0.0502051670290,
        "e90": 0.0904702443122,
        "emax": 0.0965983039051,
        "eci": 0.3206405560,
    }
    for name, value in expected.items():  # R's profile limits are interpolated: tests/reference/test_slopes.py
        digits = 5e-6 if name.endswith(("_lower", "_upper")) else 1e-9
        assert getattr(study, name) == pytest.approx(value, abs=digits), name
    tests = (study.tests.weak, study.tests.in_the_large, study.tests.slope)
    assert [test.statistic for test in tests] == pytest.approx([8.431951358, 3.973137643, 4.458813715], abs=1e-8)


def test_calibration_errors_are_those_of_measure(rows, study):
    measured = calibrant.measure(*rows)
    for name in MEASURED:
        assert getattr(study, name) == getattr(measured, name), name


def test_limits_are_those_of_the_single_functions(rows, study):
    for name, function in (
        ("auroc", auroc),
        ("brier", brier_score),
        ("observed_expected_ratio", observed_expected_ratio),
    ):
        alone = function(*rows, confidence_level=0.95)
        assert (getattr(study, f"{name}_lower"), getattr(study, f"{name}_upper")) == (alone.lower, alone.upper)
    curve = integrated_calibration_index(*rows, smoother="loess", confidence_level=0.95, **FEW)
    for name in ("ici", "e50", "e90", "emax", "eci"):
        for end in ("", "_lower", "_upper"):
            assert getattr(study, f"{name}{end}") == pytest.approx(getattr(curve, f"{name}{end}"), abs=1e-12)
    drawn = calibrant.measures.calibration_curve(*rows, confidence_level=0.95, **FEW)
    assert study.curve.lower == pytest.approx(drawn.lower, abs=1e-12)
    assert study.curve.upper == pytest.approx(drawn.upper, abs=1e-12)
    benefit = calibrant.net_benefit(*rows, confidence_level=0.95, band=True, **FEW)
    assert study.net_benefit == benefit


def test_calibration_in_the_large_has_the_limits_of_a_mean(rows, study):
    residual = rows[0] - rows[1]
    reach = 1.959963984540054 * residual.std(ddof=1) / np.sqrt(residual.size)
    found = (study.calibration_in_the_large_lower, study.calibration_in_the_large_upper)
    assert found == pytest.approx((residual.mean() - reach, residual.mean() + reach), abs=1e-12)


def test_with_a_limit_there_is_the_verdict_of_certify(rows):
    found = validate(*rows, max_error=0.1, **FEW)
    alone = calibrant.certify(*rows, max_error=0.1)
    assert isinstance(alone, Certificate)
    assert found.certificate == alone
    assert str(found).startswith("Certified: the Cutoff calibration error is at most 0.1, with 95% confidence.")
    assert str(validate(*rows, max_error=0.001, **FEW)).startswith("Undecided: these rows cannot tell")


def test_both_limits_of_the_cutoff_error_hold_together_with_a_certificate_and_without(rows, study):
    alone = calibrant.confidence_interval(*rows)
    limits = (alone.estimate, alone.lower, alone.upper)
    assert (study.cutoff, study.cutoff_lower, study.cutoff_upper) == limits
    upper = calibrant.certify(*rows, max_error=0.1).upper
    between: Any = validate(*rows, max_error=(upper + alone.upper) / 2, **FEW)
    assert (between.cutoff, between.cutoff_lower, between.cutoff_upper) == limits
    assert between.certificate.verdict == "certified"
    why = "The certificate takes one limit of the Cutoff calibration error, with 95% confidence; the table has both"
    assert why in findings_of(between).rule
    assert why not in findings_of(validate(*rows, max_error=0.5, **FEW)).rule


def test_where_events_are_rare_their_shares_have_more_decimals(study):
    rare: Any = replace(study, mean_outcome=0.0012, ici=0.00071, ici_lower=0.00032, ici_upper=0.00104)
    lines = {line.name: line.written(3) for line in rare.table()}
    assert lines["ici"] == ("0.0007", "0.0003 to 0.0010")
    assert lines["slope"] == {line.name: line.written(3) for line in study.table()}["slope"]
    assert "is 0.07 points from the forecast on average (95% limits 0.03 to 0.10)" in str(rare)


def test_notes_begin_with_what_would_mislead_most():
    y_true, y_prob = simulated()
    notes = validate(y_true, y_prob, cluster=np.arange(300) % 3, max_error=0.05, **FEW).notes
    first = ("cannot certify", "hardly more than one observation", "there are 3 clusters", "events, and limits that")
    places = [next((place for place, note in enumerate(notes) if words in note), None) for words in first]
    found = [place for place in places if place is not None]
    assert found == list(range(len(found)))
    assert len(found) >= 2


# --- What must not matter ---------------------------------------------------------------------------------------------


def test_neither_order_nor_form_of_the_rows_matters(rows, study):
    y_true, y_prob = rows
    order = np.random.default_rng(3).permutation(y_true.size)
    assert validate(y_true[order], y_prob[order], **FEW) == study
    assert validate(Tally.from_arrays(y_true, y_prob), **FEW) == study
    labels = np.where(y_true == 1, "ill", "well")
    assert validate(labels, y_prob, pos_label="ill", **FEW) == study
    weighted = validate(y_true, y_prob, sample_weight=np.full(y_true.size, 3.0), **FEW)
    assert not weighted.weighted
    assert weighted.frame()["upper"].to_numpy() == pytest.approx(study.frame()["upper"].to_numpy(), rel=1e-9)


def test_the_unit_of_weights_does_not_matter():
    y_true, y_prob = simulated()
    weight = np.random.default_rng(1).random(300) + 0.5
    found, scaled = (validate(y_true, y_prob, sample_weight=times * weight, **FEW) for times in (1.0, 8.0))
    assert found.weighted
    assert found.frame()["estimate"].to_numpy() == pytest.approx(scaled.frame()["estimate"].to_numpy())
    assert found.frame()["upper"].to_numpy() == pytest.approx(scaled.frame()["upper"].to_numpy())


def test_the_seed_decides_resamples_and_nothing_else(rows, study):
    other = validate(*rows, rng=7, **FEW)
    assert other.ici_upper != study.ici_upper
    assert (other.ici, other.slope_upper, other.cutoff) == (study.ici, study.slope_upper, study.cutoff)
    assert (study.rng, other.rng) == (0, 7)


# --- Other kinds of rows ----------------------------------------------------------------------------------------------


def test_clusters_are_what_limits_count():
    y_true, y_prob = simulated()
    twice = np.tile(y_true, 2), np.tile(y_prob, 2)
    alone: Any = validate(y_true, y_prob, **FEW)
    clustered: Any = validate(*twice, cluster=np.tile(np.arange(300), 2), **FEW)
    assert clustered.clusters == 300
    assert clustered.slope == pytest.approx(alone.slope)
    wide = (alone.slope_upper - alone.slope_lower) / (clustered.slope_upper - clustered.slope_lower)
    assert wide == pytest.approx(1.0, abs=0.1)  # rows that repeat others add nothing
    assert dict(clustered.intervals)["slope"] == "sandwich"
    assert clustered.net_benefit.clusters == 300
    assert "in 300 clusters" in clustered.headline()


def test_censored_outcomes_have_the_numbers_of_riskregression_and_survival():
    held = pd.read_csv(REFERENCE / "gbsg_5_years.csv")
    values = {
        name: each["value"]
        for name, each in json.loads((REFERENCE / "gbsg_5_years.json").read_text())["values"].items()
    }
    censored = calibrant.horizon(held["time"], held["event"], held["p"], at=5)
    found: Any = validate(censored, thresholds=[0.2, 0.3, 0.4], **FEW)
    assert (found.rows, found.censored, found.horizon) == (686, 280, 5.0)
    assert found.mean_outcome == pytest.approx(values["risk"], abs=1e-12)
    assert found.mean_forecast == pytest.approx(values["expected"], abs=1e-12)
    assert found.observed_expected_ratio == pytest.approx(values["observed_over_expected"], abs=1e-12)
    limits = found.observed_expected_ratio_lower, found.observed_expected_ratio_upper
    assert limits == pytest.approx(values["observed_over_expected_log_log"], abs=1e-9)
    assert found.brier == pytest.approx(values["brier_riskregression"], abs=1e-12)
    assert (found.brier_lower, found.brier_upper) == pytest.approx(values["brier_riskregression_interval"], abs=1e-4)
    assert found.brier_scaled == pytest.approx(values["brier_scaled_riskregression"], abs=1e-12)
    assert found.auroc == pytest.approx(values["auroc_riskregression"], abs=1e-12)
    assert found.slope == pytest.approx(values["ipcw_slope"], abs=1e-8)
    assert found.net_benefit is not None
    assert found.net_benefit.net_benefit == pytest.approx(values["net_benefit_ipcw"][:3], abs=1e-12)
    assert found.calibration_in_the_large == pytest.approx(values["risk"] - values["expected"], abs=1e-12)
    samples: Any = resampled(censored, 200, np.random.default_rng(0))
    drawn = [each.incidence.risk - each.y_prob.mean() for each in samples]
    reach = (found.calibration_in_the_large_upper - found.calibration_in_the_large_lower) / 2 / 1.96
    assert reach == pytest.approx(np.std(drawn), rel=0.15)
    assert found.cutoff_upper is None
    assert any("guarantee takes fixed weights" in note for note in found.notes)
    with pytest.raises(InputError, match="no guarantee holds"):
        validate(censored, max_error=0.1, **FEW)


def test_censored_rows_in_clusters_are_counted_by_these():
    generator = np.random.default_rng(2)
    y_prob = generator.random(200)
    time, lost = generator.exponential(1 / (0.2 + y_prob)), generator.exponential(3.0, 200)
    censored = calibrant.horizon(np.minimum(time, lost), time <= lost, y_prob, at=1.0)
    found: Any = validate(censored, cluster=np.arange(200) // 2, **FEW)
    assert found.clusters == 100
    assert found.observed_expected_ratio == pytest.approx(found.mean_outcome / found.mean_forecast)
    assert found.slope_lower < found.slope < found.slope_upper


def test_fractions_have_everything_but_a_ranking():
    _, y_prob = simulated(120)
    found = validate(np.clip(y_prob + 0.1, 0, 1) * 0.9, y_prob, **FEW)
    assert found.auroc is None
    assert found.slope is not None
    assert found.brier_upper is not None
    assert any(note.startswith("no AUROC: outcomes are fractions") for note in found.notes)


@pytest.mark.parametrize("smoother", ["isotonic", "lowess", "splines"])
def test_every_smoother_has_its_curve(smoother):
    found = validate(*simulated(), smoother=smoother, **FEW)
    assert found.curve is not None
    assert found.curve.smoother == smoother
    assert (found.curve.band is None) == (smoother == "isotonic")
    assert found.ici_upper is not None


# --- Where little can be said -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(2, 9))
def test_tiny_studies_say_what_they_can(n):
    found = validate(np.arange(n) % 2, np.linspace(0.2, 0.7, n), **FEW)
    assert found.observed_expected_ratio_upper is not None
    assert any("at least 100 of each kind" in note for note in found.notes)
    assert str(found)
    assert Validation.from_json(found.to_json()) == found


def test_limits_without_a_width_are_none_and_said_once():
    found = validate([0, 1] * 30, [0.2, 0.8] * 30, n_resamples=40)
    assert (found.brier, found.brier_lower, found.brier_upper) == (pytest.approx(0.04), None, None)
    assert (found.ici, found.ici_lower, found.ici_upper) == (pytest.approx(0.2), None, None)
    said = "no limits of ICI, E50, E90, Emax, ECI: nothing in these rows shows how much they vary"
    assert [note for note in found.notes if "ICI" in note] == [said]
    assert any("how much brier varies, so that limits would have no width" in note for note in found.notes)
    assert any(note.startswith("there is 1 event, and limits") for note in validate([0, 1], [0.2, 0.8], **FEW).notes)
    perfect = validate([0, 0, 1, 1], [0, 0, 1, 1], smoother="isotonic", n_resamples=40)
    assert perfect.calibration_in_the_large_lower is None
    assert "brier" not in dict(perfect.intervals)


def test_separated_outcomes_have_no_slope():
    found = validate([0, 0, 1, 1] * 10, [0.1, 0.2, 0.8, 0.9] * 10, **FEW)
    assert (found.slope, found.slope_lower, found.tests) == (None, None, None)
    assert found.auroc == 1.0
    assert any("separate the outcomes perfectly" in note for note in found.notes)
    assert len(found.notes) == len(set(found.notes))


def test_constant_forecasts_have_no_slope():
    found = validate([0, 1] * 20, [0.5] * 40, **FEW)
    assert found.slope is None
    assert found.observed_expected_ratio == 1.0
    assert any("at least two distinct forecasts" in note for note in found.notes)


def test_sure_forecasts_are_left_out_of_the_slope_and_said_to_be():
    y_true, y_prob = simulated(100)
    y_prob[:3] = 0.0, 1.0, 1.0
    y_true[:3] = 0, 1, 0
    found = validate(y_true, y_prob, **FEW)
    assert found.left_out == 3
    assert any("3 rows with a forecast of exactly 0 or 1 were left out" in note for note in found.notes)
    assert validate(y_true, y_prob, extremes=0.01, **FEW).left_out == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y_true": [0, 0, 0]}, "every outcome is 0; a validation needs rows with the event and rows without it"),
        ({"y_true": [1, 1, 1]}, "every outcome is 1; a validation needs"),
        ({"y_prob": [0.1, np.nan, 0.3]}, r"y_prob\[1\]"),
        ({"y_prob": None}, "y_prob is missing"),
        ({"y_true": [], "y_prob": []}, "empty"),
        ({"confidence_level": 95}, "confidence_level is 95; write 0.95"),
        ({"n_resamples": 5}, "n_resamples is 5, too few for a confidence_level of 0.95"),
        ({"smoother": "spline"}, "smoother must be one of"),
        ({"thresholds": [0.2, 1.0]}, "thresholds is 1"),
        ({"extremes": 0.7}, "extremes must be a number from 0 to 0.5"),
        ({"max_error": 2}, "max_error must be"),
        ({"cluster": ["a", "a", "a"]}, "cluster holds one cluster only"),
        ({"rng": -1}, "rng must be"),
    ],
)
def test_what_cannot_be_answered_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        validate(**{"y_true": [0, 1, 0], "y_prob": [0.1, 0.2, 0.3], **FEW, **given})


# --- Tables and words -------------------------------------------------------------------------------------------------


def test_the_table_is_the_same_in_every_form(study):
    assert [line.name for line in study.table()] == [*STATISTICS, "cutoff"]
    frame: Any = study.frame()
    assert list(frame.columns) == ["statistic", "estimate", "lower", "upper", "ideal", "interval"]
    markdown = study.to_markdown().splitlines()
    assert markdown[:2] == ["| Statistic | Estimate | 95% CI | Ideal |", "|:---|---:|---:|---:|"]
    assert markdown[4] == "| Calibration slope | 0.823 | 0.672 to 0.987 | 1 |"
    assert len(markdown) == 2 + len(TABLED) + 2
    for said in (
        "500 rows, 270 events",
        "Weak-calibration test (intercept 0 and slope 1), p = 0.015",
        "Curve by loess",
    ):
        assert said in markdown[-1]
    assert "profile: Calibration slope, Calibration intercept, Intercept at slope 1" in markdown[-1]
    latex = study.to_latex(digits=2)
    assert r"Calibration slope & 0.82 & 0.67 to 0.99 & 1 \\" in latex
    assert r"95\% CI" in latex
    assert latex.splitlines()[-1].startswith(r"\par\smallskip{\footnotesize 500 rows, ")
    for line in study.table():
        assert line.title in str(study)


def test_every_statistic_has_its_three_fields():
    fields = Validation.__dataclass_fields__
    for statistic in TABLED:
        assert {statistic.name, f"{statistic.name}_lower", f"{statistic.name}_upper"} <= set(fields)


def test_limits_in_the_wrong_order_are_refused(study):
    with pytest.raises(InputError, match="slope_lower"):
        Validation.from_dict({**study.to_dict(), "slope_lower": 2.0})


@pytest.mark.parametrize(
    ("power", "said"),
    [
        (
            1.0,
            "Not shown to be miscalibrated: these rows do not show the forecasts to be off (weak-calibration test",
        ),
        (0.5, "Miscalibrated: the forecasts are too low on the whole"),
        (2.0, "Miscalibrated: the forecasts are too high on the whole"),
    ],
)
def test_the_first_sentence_says_in_which_way_forecasts_are_off(power, said):
    generator = np.random.default_rng(5)
    y_prob = generator.random(1500)
    found = validate((generator.random(1500) < y_prob**power).astype(int), y_prob, smoother="isotonic", **FEW)
    assert str(found).startswith(said)


@pytest.mark.parametrize(("spread", "word"), [(2.0, "too extreme"), (0.5, "too timid")])
def test_a_slope_off_one_is_said_to_be_too_much_or_too_little(spread, word):
    generator = np.random.default_rng(6)
    linear = generator.normal(size=1500)
    y_true = (generator.random(1500) < 1 / (1 + np.exp(-linear))).astype(int)
    found = validate(y_true, 1 / (1 + np.exp(-spread * linear)), smoother="isotonic", **FEW)
    assert findings_of(found).headline == f"the forecasts are {word} (weak-calibration test, p below 0.001)"
    assert findings_of(found).state == "cautioned"


def test_forecasts_of_the_other_class_are_said_to_be_in_reversed_order():
    y, p = simulated()
    found = validate(y, 1 - p, max_error=0.05, **FEW)
    said = findings_of(validate(y, 1 - p, **FEW))
    assert found.notes[0].startswith("events are rarer where forecasts are higher (AUC 0.1")
    assert said.headline.startswith("the forecasts are in reversed order")
    assert "too extreme" not in f"{found} {said.lines}"
    assert "forecasts are in reversed order, higher ones went with fewer events." in str(found)
    assert said.next_step.startswith("check whether these are probabilities of the other class")
    assert findings_of(found).next_step == said.next_step


def test_a_negative_slope_that_may_be_chance_is_said_to_be_one():
    y, p = np.tile([1, 0], 30), np.linspace(0.1, 0.9, 60)  # the event comes first in each pair
    found = validate(y, p, **FEW)
    assert found.slope is not None
    assert found.slope_upper is not None
    assert found.slope < 0.0 < found.slope_upper
    assert "nor to be in the right order, for here higher ones went with fewer events" in str(found)
    assert "reversed order" not in str(found)


def test_sentences_of_the_first_screen_are_short(study):
    said = findings_of(study)
    assert len(said.headline.split()) <= 30
    assert len(said.next_step.split()) <= 30
    for line in said.lines:
        assert len(line.split()) <= 45


def test_clusters_that_are_all_alike_leave_out_the_tests_alone():
    rows = np.array([0, 0, 1, 0, 1, 1, 1, 0] * 5), np.array([0.25, 0.25, 0.25, 0.75, 0.75, 0.75, 0.5, 0.5] * 5)
    found = validate(*rows, cluster=np.arange(40) // 4, **FEW)
    assert found.slope_upper is not None
    assert found.tests is None
    assert any("nothing tests both" in note for note in found.notes)


# --- The verdict ------------------------------------------------------------------------------------------------------


def test_one_test_decides_whatever_single_limits_say(study):
    held: dict[str, Any] = {
        "calibration_in_the_large_upper": -0.01,
        "calibration_in_the_large": -0.05,
        "slope_upper": 0.9,
    }
    quiet = replace(study, pvalue=0.067, calibration_in_the_large_lower=-0.1, **held)
    said = findings_of(quiet)
    assert said.label == "Not shown to be miscalibrated"
    assert said.headline.endswith("(weak-calibration test, p = 0.067)")
    assert said.rule in str(quiet)
    assert "p = 0.067, not below 0.05" in said.rule
    for line in said.lines[1:3]:
        assert line.endswith("by these limits alone, which the test does not confirm.")
    loud = findings_of(replace(quiet, pvalue=0.0496))
    assert loud.headline == (
        "the forecasts are too high on the whole and too extreme (weak-calibration test, p = 0.0496)"
    )
    assert not any("alone" in line for line in loud.lines)


def test_a_test_that_rejects_needs_no_limit_that_does(study):
    limits = {"calibration_in_the_large_lower": -0.1, "calibration_in_the_large_upper": 0.1, "slope_upper": 1.2}
    said = findings_of(replace(study, pvalue=0.04, **limits))
    assert said.label == "Miscalibrated"
    assert "off, though limits of level and of spread, each by itself, do not show how" in said.headline


def test_a_guarantee_shows_what_the_test_is_blind_to():
    generator = np.random.default_rng(8)
    y_prob = generator.random(4000)
    rate = np.clip(y_prob + 0.2 * np.sin(6 * np.pi * y_prob), 0, 1)
    found = validate((generator.random(4000) < rate).astype(int), y_prob, smoother="isotonic", **FEW)
    found = replace(found, pvalue=0.3)  # as if the waves had no line in them
    assert found.cutoff_lower is not None
    assert found.cutoff_lower > 0.0
    assert str(found).startswith("Miscalibrated: the forecasts are off somewhere, by guaranteed limits of the Cutoff")
    assert "but the guaranteed lower limit of the Cutoff calibration error is above 0" in findings_of(found).rule


def test_the_verdict_of_weak_calibration_is_the_p_value_of_its_test(study):
    assert (study.decided_by, study.pvalue) == ("weak calibration", study.tests.weak.pvalue)


def test_without_a_slope_calibration_in_the_large_decides():
    y_true = np.repeat([1, 0], [40, 160])
    found = validate(y_true, np.full(200, 0.25), **FEW)
    variance = 200 * 0.25 * 0.75
    assert found.decided_by == "calibration in the large"
    assert found.pvalue == pytest.approx(2 * norm.sf(10 / np.sqrt(variance)), rel=1e-12)
    assert str(found).startswith("Not shown to be miscalibrated: ")
    high = validate(y_true, np.full(200, 0.4), **FEW)
    assert str(high).startswith(
        "Miscalibrated: the forecasts are too high on the whole (test of calibration in the large, p below 0.001)."
    )


def test_clusters_without_a_slope_are_tested_by_student():
    y_true, cluster = np.tile([1, 0, 0, 0, 1, 0], 10), np.arange(60) // 5
    found: Any = validate(y_true, np.full(60, 0.2), cluster=cluster, **FEW)
    error = (found.calibration_in_the_large_upper - found.calibration_in_the_large) / t.ppf(0.975, 11)
    assert found.pvalue == pytest.approx(2 * t.sf(found.calibration_in_the_large / error, 11), rel=1e-9)
    assert found.notes[0].startswith("there are 12 clusters, and limits that count them are likely to be too narrow")


def test_forecasts_of_0_and_1_alone_are_refuted_by_one_that_is_wrong():
    y_true, y_prob = np.repeat([0, 1], 50), np.repeat([0.0, 1.0], 50)
    assert str(validate(y_true, y_prob, **FEW)).startswith("Not shown to be miscalibrated: ")
    y_prob[0], y_prob[-1] = 1.0, 0.0  # as many events as forecast
    for extremes in ("leave_out", 1e-6):
        found = validate(y_true, y_prob, extremes=extremes, **FEW)
        assert str(found).startswith("Miscalibrated: the forecasts are certain, and some of them wrong")
        assert "on the whole" not in findings_of(found).headline


def test_forecasts_that_were_pulled_inside_leave_the_verdict_to_calibration_in_the_large():
    generator = np.random.default_rng(1)
    y_prob = generator.beta(0.4, 0.8, 400)
    y_true = (generator.random(400) < y_prob).astype(int)
    found: Any = validate(y_true, y_prob.round(1), extremes=1e-9, **FEW)  # 0.0 stands for 0.04, and not for 1e-9
    assert found.tests.weak.pvalue < 0.001
    assert found.decided_by == "calibration in the large"
    assert str(found).startswith("Not shown to be miscalibrated: ")
    assert validate(y_true, np.clip(y_prob, 0.01, 0.99), extremes=1e-9, **FEW).decided_by == "weak calibration"


def test_refusing_sure_forecasts_is_an_error():
    y_true, y_prob = simulated(100)
    validate(y_true, y_prob, extremes="refuse", **FEW)
    y_prob[:2] = 0.0, 1.0
    with pytest.raises(UndefinedError, match=r"y_prob holds 2 forecasts of exactly 0 or 1.*extremes='leave_out'"):
        validate(y_true, y_prob, extremes="refuse", **FEW)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"by": [1, 1, 2]}, "by is not an option of validate; validate each group by itself"),
        ({"interval": "wald"}, "interval is not an option of validate; each number has its way here"),
        ({"y_prob": {"a": [0.1], "b": [0.2]}}, "y_prob is a dict of 2 models, .* compare_models and"),
    ],
)
def test_what_other_functions_do_is_named(given, message):
    rows: dict[str, Any] = {"y_true": [0, 1, 0], "y_prob": [0.1, 0.2, 0.3], **given}
    with pytest.raises(InputError, match=message):
        validate(**rows)
    with pytest.raises(InputError, match=message):
        calibrant.ValidationReport.from_predictions(**rows)


def test_an_option_that_nobody_has_is_pythons_error():
    options: Any = {"smooth": "loess"}
    with pytest.raises(TypeError, match="unexpected keyword argument 'smooth'"):
        validate([0, 1, 0], [0.1, 0.2, 0.3], **options)


def test_words_fit_what_they_count():
    one = validate([1] + [0] * 30, np.linspace(0.01, 0.3, 31), **FEW)
    assert one.notes[0].startswith("there is 1 event, and limits")
    perfect = validate([0] * 30 + [1] * 30, [0.0] * 30 + [1.0] * 30, smoother="isotonic", **FEW)
    assert "at most 0.0." in str(perfect)
    assert "have a rate" not in str(perfect)
    y_true, y_prob = simulated()
    weighted = validate(y_true, y_prob, sample_weight=1.0 + y_prob, **FEW)
    assert weighted.headline().startswith("300 weighted rows, ")
    assert "weighted event rate" in weighted.headline()


# --- Wherever the rows come from --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def short(rows):
    """Rows with forecasts of four decimals, which every format writes alike, and their study."""
    y, p = rows[0].astype(int), rows[1].round(4)
    return pd.DataFrame({"y": y, "p": p}), validate(y, p, **FEW).to_dict()


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "npz", "several files"])
def test_a_study_of_scanned_files_is_that_of_arrays(short, kind, tmp_path):
    frame, expected = short
    writers: dict[str, Any] = {
        "csv": lambda: frame.to_csv(tmp_path / "t.csv", index=False),
        "parquet": lambda: frame.to_parquet(tmp_path / "t.parquet"),
        "jsonl": lambda: frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True),
        "npz": lambda: np.savez(tmp_path / "t.npz", y=frame["y"], p=frame["p"]),
        "several files": lambda: [
            part.to_csv(tmp_path / f"{name}.csv", index=False) for name, part in frame.groupby(frame.index % 3)
        ],
    }
    writers[kind]()
    path = next(tmp_path.iterdir()) if kind != "several files" else tmp_path / "*.csv"
    with calibrant.scan(str(path), y_true="y", y_prob="p") as scanned:
        assert validate(scanned, **FEW).to_dict() == expected


def test_so_is_that_of_frames_and_tallies(short):
    import polars as pl

    frame, expected = short
    shuffled = frame.sample(frac=1.0, random_state=1)
    for rows in ((frame["y"], frame["p"]), (shuffled["y"], shuffled["p"])):
        assert validate(*rows, **FEW).to_dict() == expected
        assert validate(*map(pl.Series, map(np.asarray, rows)), **FEW).to_dict() == expected
        assert validate(Tally.from_arrays(*rows), **FEW).to_dict() == expected


@needs_java
def test_and_that_of_spark(short, spark):
    frame, expected = short
    table = spark_frame(spark, {name: frame[name].to_numpy() for name in frame})
    assert validate(calibrant.scan(table, y_true="y", y_prob="p"), **FEW).to_dict() == expected
