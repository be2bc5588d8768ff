"""Results of every kind, and data on which some number is undefined: computed when asked for, and once."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import calibrant
from calibrant import Cells, Tally

Y_TRUE = [0, 0, 1, 0, 1, 1, 1, 0] * 5
Y_PROB = [0.25, 0.25, 0.25, 0.75, 0.75, 0.75, 0.5, 0.5] * 5
CLUSTERS = [place // 4 for place in range(40)]
AMOUNTS = np.arange(40) % 7 / 2.0
MEMBERS = np.arange(120).reshape(40, 3) % 8 / 2.0
CLASSES = ["oak", "elm", "ash", "elm"] * 10
VECTORS = [[0.25, 0.25, 0.5], [0.125, 0.75, 0.125], [0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]] * 8


@functools.cache
def tally() -> Tally:
    """Return the rows that most of the results speak of."""
    return Tally.from_arrays(Y_TRUE, Y_PROB)


@functools.cache
def censored() -> Any:
    """Return rows of which some were censored, and some had a competing event."""
    return calibrant.horizon([1, 2, 3, 4, 5] * 8, [0, 1, 0, 1, 2, 0, 1, 1] * 5, Y_PROB, at=4.5, competing=2)


@functools.cache
def _comparison() -> Any:
    return calibrant.compare_recalibrators(tally(), candidates={"platt": calibrant.PlattRecalibrator()}, cv=2, rng=0)


@functools.cache
def _class_map() -> Any:
    return calibrant.repairs.OneVsRestRecalibrator(renormalize=False).fit(VECTORS, CLASSES)


@functools.cache
def _class_comparison() -> Any:
    return calibrant.compare_recalibrators(VECTORS, CLASSES, cv=2, rng=0)


@functools.cache
def _model_comparison() -> Any:
    return calibrant.compare_models(Y_TRUE, {"old": Y_PROB, "new": Y_PROB[::-1]}, max_error=0.9)


@functools.cache
def _score_comparison() -> Any:
    models = {"old": Y_PROB, "new": Y_PROB[::-1]}
    asked: dict[str, Any] = {"measure": "net_benefit", "threshold": [0.25, 0.5], "margin": 0.05, "reference": "old"}
    return calibrant.compare_models(Y_TRUE, models, **asked)


@functools.cache
def _group_decisions() -> Any:
    return calibrant.decisions.decide(Y_TRUE, Y_PROB, threshold=[0.25, 0.5], by=["b", "a"] * 20)


@functools.cache
def _declared() -> Any:
    problems: dict[str, Any] = {"act": [[0.5, 0.0], [0.0, 1.0]], "name": calibrant.decisions.reject_option(cost=0.3)}
    return calibrant.certify_decisions(Y_TRUE, Y_PROB, problems, max_regret={"act": 0.3, "name": 0.1})


@functools.cache
def _report() -> Any:
    return calibrant.CalibrationReport.from_predictions(Y_TRUE, Y_PROB, by=["b", "a"] * 20, max_error=0.3).summary


@functools.cache
def _free() -> Any:
    return calibrant.CalibrationReport.from_predictions(Y_TRUE, Y_PROB, by=["b", "a"] * 20, date="2026-03-31").summary


@functools.cache
def _few() -> Any:
    return calibrant.CalibrationReport.from_predictions(Y_TRUE[:8], Y_PROB[:8], max_error=0.3).summary


def _clustered() -> Any:
    asked: dict[str, Any] = {"cluster": CLUSTERS, "serial": 1, "max_error": 0.3}
    return calibrant.CalibrationReport.from_predictions(Y_TRUE, Y_PROB, **asked).summary


@functools.cache
def _segment_readings() -> Any:
    monitors = calibrant.Monitors(max_error=0.3, unit="row", periods_between_false_alarms=5)
    for period in range(1, 9):
        worse = np.array(Y_PROB) / 4.0
        segment = ["b", "a"] * 20
        monitors.update(Y_TRUE, np.where(np.arange(40) % 2 == 0, Y_PROB, worse), segment=segment, period=period)
    return monitors.read()


def _reading() -> Any:
    monitor = calibrant.Monitor(max_error=0.3, periods_between_false_alarms=None)
    monitor.update(Y_TRUE, Y_PROB, period="2026-01-31")
    return monitor.read()


@functools.cache
def _over_time() -> Any:
    place = np.arange(600)
    y_prob = 0.1 + 0.8 * (place % 12) / 12
    y_true = (place % 10 < 10 * np.where(place < 180, y_prob, 1.0)).astype(int)
    period = [f"2026-{1 + each // 240:02d}-{1 + each % 240 // 12:02d}" for each in place]
    return calibrant.CalibrationReport.from_predictions(y_true, y_prob, period=period, max_error=0.3).summary


@functools.cache
def _rolling() -> Any:
    rolling = calibrant.RollingRecalibrator(
        window=2, max_error=0.3, min_rows=40, unit="row", periods_between_false_alarms=5
    )
    for period in range(1, 9):
        y_prob = np.array(Y_PROB) / (4.0 if period > 4 else 1.0)
        rolling.update(Y_TRUE, y_prob, period=period)
    return rolling.read()


@functools.cache
def _windows() -> Any:
    period = np.repeat(np.arange(10), 40)
    return calibrant.monitors.compare_windows(Y_TRUE * 10, Y_PROB * 10, period=period, windows=[2, 4])


@functools.cache
def _validation() -> Any:
    return calibrant.validate(tally(), thresholds=[0.2, 0.4], n_resamples=40)


@functools.cache
def _validation_report() -> Any:
    asked: dict[str, Any] = {"n_resamples": 40, "thresholds": [0.2, 0.4], "max_error": 0.9, "source": "rows.csv"}
    asked["file"] = calibrant.reports.StudyFile(("rows.csv",), "csv", "died", "risk", cluster="ward", pos_label=1.0)
    return calibrant.ValidationReport.from_predictions(Y_TRUE, Y_PROB, cluster=CLUSTERS, **asked).summary


@functools.cache
def _internal_validation() -> Any:
    from sklearn.naive_bayes import GaussianNB

    return calibrant.internal_validation(
        GaussianNB(), np.array(Y_PROB)[:, None], Y_TRUE, n_resamples=5, statistics=["auroc", "slope"], thresholds=[0.4]
    )


RESULTS: dict[str, Callable[[], Any]] = {
    "Measures": lambda: calibrant.measure(tally()),
    "Measures with spectrum": lambda: calibrant.measure(tally(), spectrum=True),
    "WorstInterval": lambda: calibrant.worst_interval(tally()),
    "LargestSaving": lambda: calibrant.certify(tally(), max_error=0.1, measure="risk_gap").saving,
    "LargestSaving at costs": lambda: (
        calibrant.certify(
            tally(), max_error=0.1, measure="risk_gap", cost_false_positive=2, cost_false_negative=5
        ).saving
    ),
    "Bracket": lambda: calibrant.certificates.bracket(Cells.from_arrays(Y_TRUE, Y_PROB)),
    "Bracket of a limit": lambda: calibrant.certificates.bracket(Cells.from_arrays(Y_TRUE, Y_PROB), method="adaptive"),
    "smooth Witness": lambda: calibrant.measures.smooth_witness(tally()),
    "bounded Witness": lambda: calibrant.measures.bounded_variation_witness(tally(), variation=3),
    "GroupMeasures": lambda: calibrant.measure(Y_TRUE, Y_PROB, by=["b", "a"] * 20),
    "Spectrum": lambda: calibrant.measures.bounded_variation_spectrum(tally()),
    "CalibrationDistance": lambda: calibrant.distance_from_calibration(tally()),
    "CalibrationSlope": lambda: calibrant.measures.calibration_slope_intercept(tally()),
    "CalibrationSlope with limits": lambda: calibrant.measures.calibration_slope_intercept(
        [*Y_TRUE, 1], [*Y_PROB, 0.0], confidence_level=0.9
    ),
    "CalibrationTests": lambda: calibrant.measures.likelihood_ratio_tests(tally()),
    "CalibrationTests of clusters": lambda: calibrant.measures.likelihood_ratio_tests(
        Y_TRUE, Y_PROB, cluster=[1, 2, 3, 4, 5] * 8
    ),
    "ChiSquareTest": lambda: calibrant.measures.likelihood_ratio_tests(tally()).weak,
    "Estimate": lambda: calibrant.measures.auroc(tally(), confidence_level=0.95),
    "Estimate with a note": lambda: calibrant.measures.observed_expected_ratio(
        Y_TRUE, Y_PROB, confidence_level=0.95, cluster=CLUSTERS
    ),
    "Estimate from resamples": lambda: calibrant.measures.brier_score(
        tally(), confidence_level=0.5, interval="bootstrap", n_resamples=20
    ),
    "CurveErrors": lambda: calibrant.measures.integrated_calibration_index(tally()),
    "HorizonRisk": lambda: censored().outcome,
    "ReportSummary of censored rows": lambda: calibrant.CalibrationReport.from_predictions(censored()).summary,
    "loess CurveErrors": lambda: calibrant.measures.integrated_calibration_index(
        tally() + tally(), smoother="loess", confidence_level=0.9, n_resamples=20
    ),
    "CalibrationCurve": lambda: calibrant.measures.calibration_curve(tally()),
    "CalibrationCurve with a band": lambda: calibrant.measures.calibration_curve(
        tally(), band="simultaneous", confidence_level=0.9, n_resamples=20
    ),
    "Relation": lambda: calibrant.measure(tally()).relations[0],
    "certified Certificate": lambda: calibrant.certify(tally(), max_error=0.9),
    "undecided Certificate": lambda: calibrant.certify(tally(), max_error=0.1, method="hoeffding"),
    "Certificate with a note": lambda: calibrant.certify(tally(), max_error=0.1, method="normal"),
    "Certificate of fractions": lambda: calibrant.certify([0.5, 0.25, 1], [0.25, 0.25, 0.75], max_error=0.1),
    "Certificate of clusters": lambda: calibrant.certify(Y_TRUE, Y_PROB, max_error=0.3, cluster=CLUSTERS),
    "Clusters": lambda: calibrant.certify(Y_TRUE, Y_PROB, max_error=0.3, cluster=CLUSTERS).clusters,
    "GroupCertificates": lambda: calibrant.certify(Y_TRUE, Y_PROB, max_error=0.3, by=["b", "a"] * 20),
    "weighted GroupCertificates": lambda: calibrant.certify(
        Y_TRUE, Y_PROB, max_error=0.3, by=[2, 1, 3, 1] * 10, sample_weight=[1.0, 2.5] * 20, measure="smooth"
    ),
    "QuestionCertificates of groups": lambda: calibrant.certify(
        Y_TRUE, Y_PROB, max_error=0.3, groups={"old": [True, True, False, True] * 10, "ward": ["b", "a"] * 20}
    ),
    "QuestionCertificates within groups": lambda: calibrant.certify(
        Y_TRUE, Y_PROB, max_error=0.3, groups=["b", "a"] * 20, scale="group"
    ),
    "WorstGroup": lambda: calibrant.worst_group(
        Y_TRUE, Y_PROB, {"age": [*range(39), math.inf], "ward": ["b", None] * 20}, max_error=0.3
    ),
    "WorstGroup without a limit": lambda: calibrant.worst_group(Y_TRUE, Y_PROB, [1] * 40),
    "FoundGroup": lambda: calibrant.worst_group(Y_TRUE, Y_PROB, {"ward": ["b", None] * 20}).by_feature[0],
    "QuestionMeasures": lambda: calibrant.measure(CLASSES, VECTORS, questions="classwise"),
    "QuestionWorstIntervals": lambda: calibrant.worst_interval(CLASSES, VECTORS, questions="pairs"),
    "QuestionCertificates": lambda: calibrant.certify(CLASSES, VECTORS, max_error=0.3, questions="classwise"),
    "refuted QuestionCertificates": lambda: calibrant.certify(
        CLASSES[::-1], VECTORS, max_error=0.01, questions="top_label", relative_to="events"
    ),
    "QuestionIntervals": lambda: calibrant.confidence_interval(CLASSES, VECTORS, questions="subsets"),
    "QuestionTests": lambda: calibrant.calibration_test(
        CLASSES, VECTORS, questions="top_label", n_resamples=999, rng=0
    ),
    "QuestionTests of labels": lambda: calibrant.calibration_test(
        np.array(VECTORS) > 0.5, VECTORS, multilabel=True, n_resamples=999, rng=0
    ),
    "QuestionRiskBands": lambda: calibrant.risk_bands(CLASSES, VECTORS, cutoffs=[0.4], questions="top_label"),
    "ConfidenceInterval": lambda: calibrant.confidence_interval(tally()),
    "one-sided ConfidenceInterval": lambda: calibrant.confidence_interval(
        tally(), alternative="greater", measure="distance"
    ),
    "RiskBands": lambda: calibrant.risk_bands(tally(), cutoffs=[0.1, 0.6]),  # the first is empty
    "RiskBands without empty ones": lambda: calibrant.risk_bands(tally(), cutoffs=[0.4, 0.6]),
    "RiskBands of clusters": lambda: calibrant.risk_bands(
        Y_TRUE, Y_PROB, cutoffs=[0.1, 0.6], cluster=[1, 2, 3, 4, 5] * 8
    ),
    "ThresholdCalibration": lambda: calibrant.threshold_calibration_error(AMOUNTS, ensemble=MEMBERS),
    "ThresholdCalibration of quantiles": lambda: calibrant.threshold_calibration_error(
        AMOUNTS, quantiles=([0.25, 0.5, 0.75], np.sort(MEMBERS, axis=1)), thresholds=[1.0, 2.5]
    ),
    "ThresholdCalibration of functions": lambda: calibrant.threshold_calibration_error(
        AMOUNTS, cdf=lambda t: np.clip(t / (2.0 + AMOUNTS), 0.0, 1.0), thresholds=[1.0, 2.5]
    ),
    "ThresholdCertificate": lambda: calibrant.certificates.certify_thresholds(AMOUNTS, ensemble=MEMBERS, max_error=0.3),
    "PitCalibration": lambda: calibrant.pit_calibration(AMOUNTS, ensemble=MEMBERS),
    "PitCalibration with a verdict": lambda: calibrant.pit_calibration(AMOUNTS, ensemble=MEMBERS, max_error=0.9),
    "RowsNeeded": lambda: calibrant.rows_needed(0.05, y_prob=Y_PROB),
    "RowsNeeded in clusters": lambda: calibrant.rows_needed(
        0.2, y_prob=Y_PROB, cluster_size=3, intra_cluster_correlation=0.1, method="hoeffding"
    ),
    "IndependenceCheck": lambda: calibrant.check_independence(Y_TRUE, Y_PROB, [1, 2, 3, 4, 5] * 8),
    "CalibrationTest of clusters": lambda: calibrant.calibration_test(Y_TRUE, Y_PROB, cluster=[1, 2, 3, 4, 5] * 8),
    "exact CalibrationTest": lambda: calibrant.calibration_test(tally(), method="exact", n_resamples=999, rng=0),
    "asymptotic CalibrationTest": lambda: calibrant.calibration_test(tally(), method="asymptotic"),
    "Spiegelhalter's CalibrationTest": lambda: calibrant.certificates.spiegelhalter_test(tally()),
    "GroupCalibrationTests": lambda: calibrant.calibration_test(
        Y_TRUE, Y_PROB, by=["b", "a"] * 20, n_resamples=999, rng=0
    ),
    "DecisionCertificates": _declared,
    "DecisionCertificate": lambda: _declared()["act"],
    "weighted DecisionCertificate": lambda: calibrant.certify_decisions(
        Y_TRUE, Y_PROB, [[0.5, 0.0], [0.0, 1.0]], max_regret=0.3, sample_weight=[1.0, 2.5] * 20, method="hoeffding"
    ),
    "LossTable": lambda: _declared()["name"].problem,
    "Relabelling": lambda: _declared()["name"].changes[0],
    "RejectOption": lambda: calibrant.decisions.reject_option(cost=0.3),
    "GroupDecisions": _group_decisions,
    "Decisions": lambda: _group_decisions()["a"],
    "Decision": lambda: _group_decisions()["a"].decisions[0],
    "DecisionRisk": lambda: calibrant.decision_risk(tally(), threshold=[0.25, 0.5]),
    "DecisionRisk with costs": lambda: calibrant.decision_risk(tally(), cost_false_positive=1, cost_false_negative=3),
    "RiskGap": lambda: calibrant.risk_gap(tally(), threshold=0.3),
    "RiskGapCurve": lambda: calibrant.decisions.risk_gap_curve(tally(), wrapper="monotone"),
    "MurphyCurve": lambda: calibrant.decisions.murphy_curve(tally()),
    "DecisionRule": lambda: calibrant.risk_gap(tally(), threshold=0.3).rule,
    "BestThreshold": lambda: calibrant.best_threshold(tally(), threshold=0.3),
    "DecisionGuarantee": lambda: calibrant.decision_guarantee(calibrant.certify(tally(), max_error=0.9)),
    "ScoreDecomposition": lambda: calibrant.decisions.score_decomposition(tally(), score="log"),
    "ScoreDecomposition with limits": lambda: calibrant.decisions.score_decomposition(
        tally(), confidence_level=0.9, n_resamples=20
    ),
    "BrierDecomposition": lambda: calibrant.decisions.brier_decomposition(
        tally(), confidence_level=0.9, n_resamples=20
    ),
    "NetBenefit": lambda: calibrant.net_benefit(tally(), confidence_level=0.9, band=True),
    "NetBenefit alone": lambda: calibrant.net_benefit(tally(), threshold=0.2),
    "DecisionCurve": lambda: calibrant.decisions.decision_curve({"old": tally(), "new": tally()}, threshold=0.2),
    "RollingReading": _rolling,
    "WindowComparison": _windows,
    "WindowScores": lambda: _windows().scores[0],
    "ClassGuarantee": lambda: _class_map().guarantee(),
    "ClassGuarantee of these forecasts": lambda: _class_map().guarantee(target="these forecasts", measure="risk_gap"),
    "ClassGuarantee of a menu": lambda: calibrant.repairs.MenuRecalibrator().fit(VECTORS, CLASSES).guarantee(),
    "ClassRecalibratorComparison": _class_comparison,
    "ClassRecalibratorScores": lambda: _class_comparison()["top label"],
    "RecalibrationGuarantee": lambda: calibrant.PlattRecalibrator().fit(tally()).guarantee_,
    "RecalibrationGuarantee of these forecasts": lambda: (
        calibrant.IsotonicRecalibrator().fit(tally()).guarantee(target="these forecasts")
    ),
    "RecalibrationGuarantee for clusters": lambda: (
        calibrant.IsotonicRecalibrator()
        .fit(tally())
        .guarantee(target="these forecasts", cluster=np.arange(40) // 2, serial=1)
    ),
    "guarded RecalibrationGuarantee": lambda: calibrant.GuardedRecalibrator().fit(tally()).guarantee_,
    "LadderRung": lambda: calibrant.GuardedRecalibrator().fit(tally()).ladder_[0],
    "RecalibratorComparison": _comparison,
    "RecalibratorComparison by clusters": lambda: calibrant.compare_recalibrators(
        Y_PROB, Y_TRUE, candidates={"platt": calibrant.PlattRecalibrator()}, cv=2, rng=0, cluster=np.arange(40) // 2
    ),
    "RecalibratorScores": lambda: _comparison()["as is"],
    "ModelComparison": _model_comparison,
    "ComparedModel": lambda: _model_comparison()["old"],
    "ModelDifference": lambda: _model_comparison().differences[0],
    "ModelComparison by scores": _score_comparison,
    "ModelComparison of clusters": lambda: calibrant.compare_models(
        Y_TRUE, {"old": Y_PROB, "new": Y_PROB[::-1]}, measure="brier", cluster=CLUSTERS
    ),
    "ScoreLimits": lambda: _score_comparison()["old"].scores[1],
    "Reading": _reading,
    "Reading with an alarm": lambda: _segment_readings()["a"],
    "Alarm": lambda: _segment_readings()["a"].alarm,
    "SegmentReadings": _segment_readings,
    "ReportSummary": _report,
    "ReportSummary with an omission": _few,
    "ReportSummary of clusters": _clustered,
    "ClusterOptions": lambda: _clustered().clusters,
    "ReportSummary without a limit": _free,
    "ReportSummary of two models": lambda: (
        calibrant.CalibrationReport.from_predictions(Y_TRUE, {"old": Y_PROB, "new": Y_PROB[::-1]}).summary
    ),
    "ReportSummary over time": _over_time,
    "ChangeOverTime": lambda: _over_time().models[0].change,
    "MonitorHistory": lambda: _over_time().models[0].change.history,
    "GroupLimits": lambda: _free().models[0].group_limits,
    "ModelSummary": lambda: _report().models[0],
    "DecisionTable": lambda: _report().models[0].decisions,
    "RepairTrial": lambda: _report().models[0].repair,
    "Omission": lambda: _few().models[0].omissions[0],
    "Validation": _validation,
    "Validation of few rows": lambda: calibrant.validate([0, 1, 0], [0.0, 0.5, 1.0], n_resamples=40),
    "ValidationSummary": _validation_report,
    "StudyFile": lambda: _validation_report().file,
    "TripodItem": lambda: _validation_report().items[0],
    "TripodItem with an answer": lambda: _validation_report().items[-5],
    "InternalValidation": _internal_validation,
    "OptimismCorrected": lambda: _internal_validation()["auroc"],
    "RecalibratorComparison with an infinite loss": lambda: calibrant.compare_recalibrators(
        Tally.from_arrays([*Y_TRUE, 1, 0], [*Y_PROB, 0.0, 1.0]),
        candidates={"isotonic": calibrant.IsotonicRecalibrator()},
        cv=2,
        rng=0,
    ),
    "ScoreDecomposition with infinities": lambda: calibrant.decisions.score_decomposition(
        [1, 0], [0.0, 0.5], score="log"
    ),
}


@functools.cache
def result_of(name: str) -> Any:
    """Return one of the `RESULTS`."""
    return RESULTS[name]()


EDGE_CASES: dict[str, Callable[[], Tally]] = {
    "one row": lambda: Tally.from_arrays([1], [0.5]),
    "one forecast": lambda: Tally.from_arrays([0, 1, 1], [0.5, 0.5, 0.5]),
    "all forecasts 0": lambda: Tally.from_arrays([0, 1], [0.0, 0.0]),
    "all forecasts 0 and right": lambda: Tally.from_arrays([0, 0], [0.0, 0.0]),
    "certain and right": lambda: Tally.from_arrays([0, 1], [0.0, 1.0]),
    "certain and wrong": lambda: Tally.from_arrays([1, 0], [0.0, 1.0]),
    "no event": lambda: Tally.from_arrays([0, 0, 0], [0.2, 0.4, 0.6]),
    "separated": lambda: Tally.from_arrays([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.8]),
    "fractions": lambda: Tally.from_arrays([0.5, 0.25, 1], [0.25, 0.25, 0.75]),
    "weights": lambda: Tally.from_arrays([0, 1, 1], [0.25, 0.25, 0.75], sample_weight=[0.5, 2.5, 1e-3]),
    "counts": lambda: Tally.from_counts([0.2, 0.7], [10**12, 5], [10**11, 3]),
    "smallest forecasts": lambda: Tally.from_arrays([0, 1, 0], [5e-324, 1e-300, 2**-1074]),
}


def content(value: Any) -> Any:
    """Everything an object holds, as plain values: some of them have arrays, which cannot be compared as they are."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if dataclasses.is_dataclass(value):
        return {name: content(item) for name, item in vars(value).items()}
    if isinstance(value, tuple):
        return [content(item) for item in value]
    return value
