"""Nothing that is not a finite number becomes a verdict, a limit or any other result, built by hand or read back."""

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from public_names import EVERYWHERE, public
from result_cases import result_of

import calibrant
from calibrant import CertificateDisplay, MonitorDisplay, Tally
from calibrant.certificates import Certificate, ConfidenceInterval, GroupCertificates, RiskBands
from calibrant.certificates.results import in_order, verdict_of
from calibrant.core.codec import derived
from calibrant.core.results import Checked, Result
from calibrant.displays import DifferencesDisplay

NOT_FINITE = (math.nan, math.inf, -math.inf)


def every_result():
    """One result of every type, by its type."""
    y_true = [0, 0, 1, 0, 1, 1, 1, 0] * 5
    y_prob = [0.25, 0.25, 0.25, 0.75, 0.75, 0.75, 0.5, 0.5] * 5
    tally = Tally.from_arrays(y_true, y_prob)
    comparison = calibrant.compare_recalibrators(
        tally, candidates={"platt": calibrant.PlattRecalibrator()}, cv=2, rng=0
    )
    report = calibrant.CalibrationReport.from_predictions(y_true, y_prob, by=["b", "a"] * 20, max_error=0.3).summary
    free = calibrant.CalibrationReport.from_predictions(y_true, y_prob, by=["b", "a"] * 20).summary
    few = calibrant.CalibrationReport.from_predictions(y_true[:8], y_prob[:8], max_error=0.3).summary
    clustered = calibrant.CalibrationReport.from_predictions(
        y_true, y_prob, cluster=np.arange(40) // 4, max_cluster_size=5, max_error=0.3
    ).summary
    guard = calibrant.GuardedRecalibrator().fit(tally)
    measures = calibrant.measure(tally, spectrum=True)
    gap = calibrant.risk_gap(tally, cost_false_positive=1, cost_false_negative=2)
    certificate = calibrant.certify(tally, max_error=0.9)
    decisions = calibrant.decisions.decide(y_true, y_prob, threshold=[0.25, 0.5], by=["b", "a"] * 20)
    models = calibrant.compare_models(y_true, {"old": y_prob, "new": y_prob[::-1]}, max_error=0.9)
    scored = calibrant.compare_models(y_true, {"old": y_prob, "new": y_prob[::-1]}, measure="brier", margin=0.1)
    monitors = calibrant.Monitors(max_error=0.3, unit="row", periods_between_false_alarms=5)
    for period in range(1, 9):
        monitors.update(y_true, np.array(y_prob) / 4.0, segment=["b", "a"] * 20, period=period)
    watched = monitors.read()
    rolling = calibrant.RollingRecalibrator(window=2, max_error=0.3, min_rows=40, periods_between_false_alarms=5)
    for period in range(4):
        rolling.update(y_true, y_prob, period=period)
    windows = calibrant.monitors.compare_windows(y_true, y_prob, period=np.arange(40) // 4, windows=[2, 4])
    over_time: Any = result_of("ChangeOverTime")
    declared: Any = result_of("DecisionCertificates")
    found = [
        measures,
        measures.spectrum,
        calibrant.measures.calibration_slope_intercept(tally, confidence_level=0.95),
        *map(result_of, ("CalibrationTests", "ChiSquareTest", "Estimate")),
        calibrant.measures.integrated_calibration_index(
            tally + tally, smoother="loess", span=0.9, knots=None, confidence_level=0.9, n_resamples=20
        ),
        calibrant.measures.calibration_curve(tally, confidence_level=0.9, n_resamples=20),
        measures.distance,
        measures.worst_interval,
        measures.relations[0],
        calibrant.measure(y_true, y_prob, by=["b", "a"] * 20),
        calibrant.certificates.bracket(calibrant.Cells.from_arrays(y_true, y_prob), method="adaptive"),
        calibrant.measures.smooth_witness(tally),
        certificate,
        calibrant.certify(y_true, y_prob, max_error=0.3, by=["b", "a"] * 20),
        calibrant.worst_group(y_true, y_prob, {"age": list(range(40))}, max_error=0.3),
        calibrant.worst_group(y_true, y_prob, {"age": list(range(40))}).by_feature[0],
        calibrant.confidence_interval(tally),
        calibrant.risk_bands(tally, cutoffs=[0.1, 0.6]),
        calibrant.rows_needed(0.05, y_prob=y_prob),
        calibrant.check_independence(y_true, y_prob, [1, 2, 3, 4, 5] * 8),
        calibrant.calibration_test(tally, method="exact", n_resamples=999, rng=0),
        calibrant.calibration_test(y_true, y_prob, by=["b", "a"] * 20, n_resamples=999, rng=0),
        decisions,
        decisions["a"],
        decisions["a"].decisions[0],
        models,
        models["old"],
        scored.differences[0],
        dataclasses.replace(scored["old"].scores[0], threshold=0.5),
        calibrant.decision_risk(tally, threshold=[0.25, 0.5]),
        gap,
        dataclasses.replace(gap.rule, kind="at least", cutoff=0.5, forecasts=np.array([0.25])),
        calibrant.decisions.risk_gap_curve(tally),
        calibrant.decisions.murphy_curve(tally),
        calibrant.best_threshold(tally, threshold=0.3),
        calibrant.decision_guarantee(certificate, 0.25),
        calibrant.decisions.score_decomposition(tally, confidence_level=0.9, n_resamples=20),
        calibrant.decisions.brier_decomposition(tally, confidence_level=0.9, n_resamples=20),
        calibrant.net_benefit(tally, confidence_level=0.9, band=True, prevalence=0.4),
        calibrant.decisions.decision_curve(tally, threshold=0.2),
        guard.guarantee_,
        guard.ladder_[0],
        comparison,
        comparison["platt"],
        *map(result_of, ("ClassGuarantee", "ClassRecalibratorComparison", "ClassRecalibratorScores")),
        report,
        report.models[0],
        report.models[0].decisions,
        report.models[0].repair,
        free.models[0].group_limits,
        few.models[0].omissions[0],
        calibrant.certify(
            tally, max_error=0.1, measure="risk_gap", cost_false_positive=1, cost_false_negative=2
        ).saving,
        calibrant.certify(y_true, y_prob, max_error=0.3, cluster=np.arange(40) // 4, max_cluster_size=5).clusters,
        clustered.models[0],
        clustered.clusters,
        watched,
        watched["a"],
        watched["a"].alarm,
        rolling.read(),
        windows,
        windows.scores[0],
        over_time,
        over_time.history,
        result_of("WorstGroup"),
        *map(
            result_of,
            ("Validation", "ValidationSummary", "StudyFile", "TripodItem", "InternalValidation", "OptimismCorrected"),
        ),
        result_of("FoundGroup"),
        result_of("HorizonRisk"),
        result_of("QuestionMeasures"),
        result_of("QuestionWorstIntervals"),
        result_of("QuestionCertificates"),
        result_of("QuestionIntervals"),
        result_of("QuestionTests"),
        result_of("QuestionRiskBands"),
        result_of("ThresholdCalibration"),
        result_of("ThresholdCertificate"),
        result_of("PitCalibration with a verdict"),
        declared,
        declared["name"],
        declared["name"].problem,
        declared["name"].changes[0],
        calibrant.decisions.reject_option(cost=0.3),
    ]
    return {type(result): result for result in found}


@pytest.fixture(scope="module")
def results():
    return every_result()


def number_fields(kind):
    """Names of the fields of a type that hold numbers, alone or in arrays and tuples."""
    return [field.name for field in dataclasses.fields(kind) if "float" in field.type or "FloatArray" in field.type]


def with_number(result, name, number):
    """The same field with one number replaced: the only one, or the last of several."""
    value = getattr(result, name)
    if name == "losses":  # lines of a table
        return (*value[:-1], (*value[-1][:-1], number))
    if name == "others":  # numbers with their names
        return (("cutoff", number),)
    if isinstance(value, np.ndarray):
        return np.append(value[:-1].astype(float), number)
    return (*value[:-1], number) if isinstance(value, tuple) else number


def test_every_type_is_looked_at(results):
    assert set(results) == set(derived(Result))


@pytest.mark.parametrize("number", NOT_FINITE)
def test_no_number_of_any_result_may_be_other_than_finite(results, number):
    looked_at = 0
    for kind, result in results.items():
        for name in number_fields(kind):
            declared = kind._may_be_undefined if math.isnan(number) else kind._may_be_infinite
            if name in declared:
                continue
            with pytest.raises(ValueError, match=rf"^{name}(\[\d+\])? of this {kind.__name__} is (nan|-?inf), "):
                dataclasses.replace(result, **{name: with_number(result, name, number)})
            looked_at += 1
    assert looked_at > 100


def test_what_may_be_infinite_or_undefined_is_declared_field_by_field(results):
    infinite = {kind.__name__: kind._may_be_infinite for kind in results if kind._may_be_infinite}
    assert infinite == {
        # as shares of the events, where there may be none
        "Certificate": ("estimate", "upper"),
        "ConfidenceInterval": ("estimate", "upper"),
        "Estimate": ("lower", "upper"),  # no limit on that side
        "GroupCertificates": ("upper",),
        "QuestionCertificates": ("upper",),
        "QuestionIntervals": ("upper",),
        "ScoreDecomposition": ("score", "miscalibration", "skill", "mass"),
        "RecalibratorScores": ("log_loss",),
        "ClassRecalibratorScores": ("log_loss",),
    }
    undefined = {kind.__name__: kind._may_be_undefined for kind in results if kind._may_be_undefined}
    assert undefined == {
        "RiskBands": ("mean_forecast", "observed_rate", "bias"),
        "MonitorHistory": ("overdispersion",),  # of the first period
    }


@pytest.mark.parametrize("value", [None, "0.1", True, [0.1], 10**400], ids=repr)
def test_what_is_no_number_is_refused_where_one_is_due(results, value):
    for kind, result in results.items():
        for field in dataclasses.fields(kind):
            if field.type == "float":
                with pytest.raises(ValueError, match=rf"^{field.name} of this {kind.__name__} is .*, not float; pass"):
                    dataclasses.replace(result, **{field.name: value})


def test_every_field_refuses_another_type(results):
    for kind, result in results.items():
        for field in dataclasses.fields(kind):
            with pytest.raises(ValueError, match=rf"^{field.name} of this {kind.__name__} is .*, not "):
                dataclasses.replace(result, **{field.name: object()})


def test_numbers_outside_their_range_are_refused(results):
    looked_at = 0
    for kind, result in results.items():
        for name, (low, high) in kind._ranges.items():
            for beyond in (low - 1e-6, high + 1e-6):
                if math.isfinite(beyond) and getattr(result, name) is not None:
                    with pytest.raises(ValueError, match=rf"^{name}(\[\d+\])? of this {kind.__name__} is "):
                        dataclasses.replace(result, **{name: with_number(result, name, beyond)})
                    looked_at += 1
    assert looked_at > 100


@pytest.mark.parametrize(
    "text",
    [*("NaN", "Infinity", "-Infinity", "null", "1e999", "1.5", "true", "[0.05]"), '"0.05"', '"NaN"', '"-Infinity"'],
)
@pytest.mark.parametrize("kind", [Certificate, ConfidenceInterval])
@pytest.mark.parametrize("name", ["estimate", "lower", "upper", "confidence_level"])
def test_damaged_json_is_refused(results, kind, name, text):
    content = results[kind].to_dict()
    content[name] = "here"
    damaged = json.dumps(content).replace('"here"', text)
    for source in (kind, Result):
        with pytest.raises(ValueError, match=rf"^{name} of this {kind.__name__} is "):
            source.from_json(damaged)


def test_damage_inside_a_nested_result_is_refused(results):
    content = results[GroupCertificates].to_dict()
    content["certificates"][1]["upper"] = None
    with pytest.raises(ValueError, match=r"^upper of this Certificate is None, not float; pass"):
        GroupCertificates.from_dict(content)
    content = results[GroupCertificates].to_dict()
    content["upper"][1] = None
    with pytest.raises(ValueError, match=r"^upper of this GroupCertificates is .*, not tuple"):
        GroupCertificates.from_dict(content)


def test_shares_of_rows_are_at_most_1_and_those_of_events_may_be_more(results):
    for kind in (Certificate, ConfidenceInterval, GroupCertificates):
        for number in (1.5, math.inf):
            more = with_number(results[kind], "upper", number)
            with pytest.raises(ValueError, match=rf"^upper of this {kind.__name__} is (1.5|inf), not a finite number"):
                dataclasses.replace(results[kind], upper=more)
            change = {"upper": more, "relative_to": "events"}
            if kind is not ConfidenceInterval:
                change["verdict"] = "undecided"
            assert dataclasses.replace(results[kind], **change).upper == more


# --- Verdicts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [(math.nan, math.nan), (0.0, math.nan), (math.nan, 0.2), (-math.inf, math.inf)])
def test_limits_that_are_not_finite_say_nothing(limits):
    lower, upper = limits
    assert verdict_of(lower, upper, 0.1) == "undecided"
    with pytest.raises(ValueError, match=r"^the limits of the error came out as .* totals of the rows$"):
        in_order(*limits)


def test_limits_are_cut_to_what_an_error_can_be():
    assert in_order(-0.5, 1.0) == (0.0, 1.0)
    assert in_order(0.25, 0.5) == (0.25, 0.5)
    assert in_order(0.25, math.inf) == (0.25, math.inf)  # as a share of events there may not have been any
    assert in_order(0.5, 0.25) == (0.25, 0.25)  # each holds by itself: the weaker lower limit holds too


@given(
    st.sampled_from(["certified", "refuted", "undecided"]),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1.0),
)
def test_a_certificate_says_what_its_limits_say(verdict, one, other, max_error):
    lower, upper = sorted((one, other))
    example = calibrant.certify([0, 1], [0.5, 0.5], max_error=0.5)
    change = {"verdict": verdict, "lower": lower, "upper": upper, "max_error": max_error}
    if verdict == verdict_of(lower, upper, max_error):
        changed = dataclasses.replace(example, **change)
        assert bool(changed) == (upper <= max_error)
    else:
        with pytest.raises(ValueError, match=rf"^verdict of this Certificate is {verdict!r}, while its limits say "):
            dataclasses.replace(example, **change)


def test_the_groups_say_what_their_limits_say(results):
    groups = results[GroupCertificates]
    for verdict in {"certified", "refuted", "undecided"} - {groups.verdict}:
        with pytest.raises(ValueError, match=r"^verdict of this GroupCertificates is '.*', while the groups' limits"):
            dataclasses.replace(groups, verdict=verdict)
    with pytest.raises(ValueError, match=r"^groups of this GroupCertificates is \('a',\), not as many as cert"):
        dataclasses.replace(groups, groups=("a",))


@pytest.mark.parametrize("kind", [Certificate, ConfidenceInterval])
def test_ends_in_the_wrong_order_are_refused(results, kind):
    change = {"lower": 0.5, "upper": 0.25} | ({"verdict": "certified"} if kind is Certificate else {})
    with pytest.raises(ValueError, match=r"^lower of this \w+ is 0.5, above upper, which is 0.25"):
        dataclasses.replace(results[kind], **change)


def test_the_paper_speaks_of_the_population_alone(results):
    guarantee = results[calibrant.repairs.RecalibrationGuarantee]
    for name in ("paper_upper", "paper_margin"):
        with pytest.raises(ValueError, match=rf"^{name} of this RecalibrationGuarantee is None, while the target is"):
            dataclasses.replace(guarantee, **{name: None})
    with pytest.raises(ValueError, match=r"^paper_upper of this .* is 1\.0, while the target is 'these forecasts'"):
        dataclasses.replace(guarantee, target="these forecasts")
    with pytest.raises(ValueError, match=r"^target of this .* is 'everyone', not one of population, these forecasts"):
        dataclasses.replace(guarantee, target="everyone")


def test_a_band_with_rows_has_a_bias(results):
    bands = results[RiskBands]
    assert bands.rows.tolist() == [0, 25, 15]
    with pytest.raises(ValueError, match=r"^bias\[2\] of this RiskBands is nan, though the band has rows"):
        dataclasses.replace(bands, bias=np.append(bands.bias[:-1], math.nan))
    with pytest.raises(ValueError, match=r"^rows of this RiskBands is .* of another length"):
        dataclasses.replace(bands, rows=bands.rows[:-1])


# --- Sources that would break the promise -----------------------------------------------------------------------------


@pytest.mark.parametrize("number", NOT_FINITE)
@pytest.mark.parametrize("column", ["residual", "residual_square", "weight_square_residual_square", "outcome", "low"])
def test_totals_that_are_not_finite_are_refused_where_they_enter(column, number):
    tally = Tally.from_arrays([0, 1, 1], [0.25, 0.5, 0.75])
    broken: Any = np.array(getattr(tally, column))
    broken[1] = number
    with pytest.raises(ValueError, match=rf"^{column}\[1\] of these totals is (nan|-?inf)"):
        dataclasses.replace(tally, **{column: broken})


def test_a_group_whose_limit_is_not_a_number_stops_the_joint_verdict():
    """`max` of (0.01, nan) is 0.01: the verdict must not be taken from that."""
    groups = calibrant.certify([0, 1] * 400, [0.5] * 800, by=["a", "b"] * 400, max_error=1.0)
    assert GroupCertificates.verdict_of((0.01, math.nan), groups.certificates, 0.1) == "undecided"
    with pytest.raises(ValueError, match=r"^upper\[1\] of this GroupCertificates is nan"):
        dataclasses.replace(groups, upper=(0.01, math.nan))


def test_displays_refuse_what_results_refuse():
    rng = np.random.default_rng(0)
    y_prob = rng.random(200)
    y_true = rng.random(200) < y_prob
    looked_at = 0
    for name in EVERYWHERE:
        kind: Any = public(name)
        if not name.endswith("Display") or kind is CertificateDisplay:
            continue
        models: Any = {"one": y_prob, "other": y_prob**2} if kind is DifferencesDisplay else y_prob
        over_time = {"period": np.arange(200) // 50, "max_error": 0.1} if kind is MonitorDisplay else {}
        display = kind.from_predictions(y_true, models, **over_time)
        assert issubclass(kind, Checked)
        for field in dataclasses.fields(display):
            value = getattr(display, field.name)
            if field.name in kind._may_be_undefined or not ("float" in field.type or "FloatArray" in field.type):
                continue
            if value is not None and np.size(value):
                with pytest.raises(ValueError, match=rf"^{field.name}(\[\d+\])? of this {name} is nan"):
                    dataclasses.replace(display, **{field.name: with_number(display, field.name, math.nan)})
                looked_at += 1
    assert looked_at > 15
