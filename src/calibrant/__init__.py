"""calibrant: decide whether probability forecasts can be trusted and acted on.

Public names load on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from calibrant.bands import risk_bands
    from calibrant.cells import Cells
    from calibrant.certificates import certify, confidence_interval
    from calibrant.certified_classifiers import CertifiedClassifier
    from calibrant.comparisons import compare_recalibrators
    from calibrant.curves import calibration_slope_intercept, integrated_calibration_index, observed_expected_ratio
    from calibrant.decompositions import score_decomposition
    from calibrant.displays.certificate import CertificateDisplay
    from calibrant.displays.cumulative import CumulativeDisplay
    from calibrant.displays.decision_curve import DecisionCurveDisplay
    from calibrant.displays.reliability import ReliabilityDisplay
    from calibrant.displays.risk_gap import RiskGapDisplay
    from calibrant.displays.spectrum import SpectrumDisplay
    from calibrant.engines.handles import GroupedScan, Scan, scan
    from calibrant.guards import GuardedRecalibrator
    from calibrant.hypotheses import calibration_test, spiegelhalter_test
    from calibrant.laws import brownian_range
    from calibrant.measures import (
        bounded_variation_calibration_error,
        bounded_variation_spectrum,
        bounded_variation_witness,
        calibration_in_the_large,
        cutoff_calibration_error,
        effective_support_size,
        expected_calibration_error,
        ks_calibration_error,
        smooth_calibration_error,
        smooth_witness,
        weighted_calibration_error,
        worst_interval,
    )
    from calibrant.monotone_maps import (
        BetaRecalibrator,
        ConstantRecalibrator,
        IsotonicRecalibrator,
        PlattRecalibrator,
        TemperatureRecalibrator,
    )
    from calibrant.overview import distance_from_calibration, measure
    from calibrant.planning import ece_hardness_bound, effective_variance, rows_needed
    from calibrant.recalibrated_classifiers import RecalibratedClassifier
    from calibrant.recalibration import Recalibrator
    from calibrant.report.calibration_report import CalibrationReport
    from calibrant.results.certificates import (
        CalibrationTest,
        Certificate,
        ConfidenceInterval,
        GroupCertificates,
        RiskBands,
        RowsNeeded,
    )
    from calibrant.results.decompositions import ScoreDecomposition
    from calibrant.results.measures import (
        Bracket,
        CalibrationDistance,
        CalibrationSlope,
        CurveErrors,
        Measures,
        Relation,
        Spectrum,
        Witness,
        WorstInterval,
    )
    from calibrant.results.recalibration import (
        LadderRung,
        RecalibrationGuarantee,
        RecalibratorComparison,
        RecalibratorScores,
    )
    from calibrant.results.reports import DecisionTable, ModelSummary, Omission, RepairTrial, ReportSummary
    from calibrant.results.risk_gaps import BestThreshold, DecisionGuarantee, DecisionRule, RiskGap, RiskGapCurve
    from calibrant.results.risks import DecisionRisk, MurphyCurve, NetBenefit
    from calibrant.risk_gaps import best_threshold, decision_guarantee, risk_gap, risk_gap_curve, sign_testing_gap
    from calibrant.risks import decision_risk, murphy_curve, net_benefit, sign_testing_risk
    from calibrant.scores import SchervishMeasure
    from calibrant.sources import by_group
    from calibrant.tally import Tally
    from calibrant.validation import CalibrationWarning

_HOME = {
    "BestThreshold": "results.risk_gaps",
    "BetaRecalibrator": "monotone_maps",
    "Bracket": "results.measures",
    "CalibrationDistance": "results.measures",
    "CalibrationReport": "report.calibration_report",
    "CalibrationSlope": "results.measures",
    "CalibrationTest": "results.certificates",
    "CalibrationWarning": "validation",
    "Cells": "cells",
    "Certificate": "results.certificates",
    "CertificateDisplay": "displays.certificate",
    "CertifiedClassifier": "certified_classifiers",
    "ConfidenceInterval": "results.certificates",
    "ConstantRecalibrator": "monotone_maps",
    "CumulativeDisplay": "displays.cumulative",
    "CurveErrors": "results.measures",
    "DecisionCurveDisplay": "displays.decision_curve",
    "DecisionGuarantee": "results.risk_gaps",
    "DecisionRisk": "results.risks",
    "DecisionRule": "results.risk_gaps",
    "DecisionTable": "results.reports",
    "GroupCertificates": "results.certificates",
    "GroupedScan": "engines.handles",
    "GuardedRecalibrator": "guards",
    "IsotonicRecalibrator": "monotone_maps",
    "LadderRung": "results.recalibration",
    "Measures": "results.measures",
    "ModelSummary": "results.reports",
    "MurphyCurve": "results.risks",
    "NetBenefit": "results.risks",
    "Omission": "results.reports",
    "PlattRecalibrator": "monotone_maps",
    "RecalibratedClassifier": "recalibrated_classifiers",
    "RecalibrationGuarantee": "results.recalibration",
    "Recalibrator": "recalibration",
    "RecalibratorComparison": "results.recalibration",
    "RecalibratorScores": "results.recalibration",
    "Relation": "results.measures",
    "ReliabilityDisplay": "displays.reliability",
    "RepairTrial": "results.reports",
    "ReportSummary": "results.reports",
    "RiskBands": "results.certificates",
    "RiskGap": "results.risk_gaps",
    "RiskGapCurve": "results.risk_gaps",
    "RiskGapDisplay": "displays.risk_gap",
    "RowsNeeded": "results.certificates",
    "Scan": "engines.handles",
    "SchervishMeasure": "scores",
    "ScoreDecomposition": "results.decompositions",
    "Spectrum": "results.measures",
    "SpectrumDisplay": "displays.spectrum",
    "Tally": "tally",
    "TemperatureRecalibrator": "monotone_maps",
    "Witness": "results.measures",
    "WorstInterval": "results.measures",
    "best_threshold": "risk_gaps",
    "bounded_variation_calibration_error": "measures",
    "bounded_variation_spectrum": "measures",
    "bounded_variation_witness": "measures",
    "brownian_range": "laws",
    "by_group": "sources",
    "calibration_in_the_large": "measures",
    "calibration_slope_intercept": "curves",
    "calibration_test": "hypotheses",
    "certify": "certificates",
    "compare_recalibrators": "comparisons",
    "confidence_interval": "certificates",
    "cutoff_calibration_error": "measures",
    "decision_guarantee": "risk_gaps",
    "decision_risk": "risks",
    "distance_from_calibration": "overview",
    "ece_hardness_bound": "planning",
    "effective_support_size": "measures",
    "effective_variance": "planning",
    "expected_calibration_error": "measures",
    "integrated_calibration_index": "curves",
    "ks_calibration_error": "measures",
    "measure": "overview",
    "murphy_curve": "risks",
    "net_benefit": "risks",
    "observed_expected_ratio": "curves",
    "risk_bands": "bands",
    "risk_gap": "risk_gaps",
    "risk_gap_curve": "risk_gaps",
    "rows_needed": "planning",
    "scan": "engines.handles",
    "score_decomposition": "decompositions",
    "sign_testing_gap": "risk_gaps",
    "sign_testing_risk": "risks",
    "smooth_calibration_error": "measures",
    "smooth_witness": "measures",
    "spiegelhalter_test": "hypotheses",
    "weighted_calibration_error": "measures",
    "worst_interval": "measures",
}

__all__ = [
    "BestThreshold",
    "BetaRecalibrator",
    "Bracket",
    "CalibrationDistance",
    "CalibrationReport",
    "CalibrationSlope",
    "CalibrationTest",
    "CalibrationWarning",
    "Cells",
    "Certificate",
    "CertificateDisplay",
    "CertifiedClassifier",
    "ConfidenceInterval",
    "ConstantRecalibrator",
    "CumulativeDisplay",
    "CurveErrors",
    "DecisionCurveDisplay",
    "DecisionGuarantee",
    "DecisionRisk",
    "DecisionRule",
    "DecisionTable",
    "GroupCertificates",
    "GroupedScan",
    "GuardedRecalibrator",
    "IsotonicRecalibrator",
    "LadderRung",
    "Measures",
    "ModelSummary",
    "MurphyCurve",
    "NetBenefit",
    "Omission",
    "PlattRecalibrator",
    "RecalibratedClassifier",
    "RecalibrationGuarantee",
    "Recalibrator",
    "RecalibratorComparison",
    "RecalibratorScores",
    "Relation",
    "ReliabilityDisplay",
    "RepairTrial",
    "ReportSummary",
    "RiskBands",
    "RiskGap",
    "RiskGapCurve",
    "RiskGapDisplay",
    "RowsNeeded",
    "Scan",
    "SchervishMeasure",
    "ScoreDecomposition",
    "Spectrum",
    "SpectrumDisplay",
    "Tally",
    "TemperatureRecalibrator",
    "Witness",
    "WorstInterval",
    "best_threshold",
    "bounded_variation_calibration_error",
    "bounded_variation_spectrum",
    "bounded_variation_witness",
    "brownian_range",
    "by_group",
    "calibration_in_the_large",
    "calibration_slope_intercept",
    "calibration_test",
    "certify",
    "compare_recalibrators",
    "confidence_interval",
    "cutoff_calibration_error",
    "decision_guarantee",
    "decision_risk",
    "distance_from_calibration",
    "ece_hardness_bound",
    "effective_support_size",
    "effective_variance",
    "expected_calibration_error",
    "integrated_calibration_index",
    "ks_calibration_error",
    "measure",
    "murphy_curve",
    "net_benefit",
    "observed_expected_ratio",
    "risk_bands",
    "risk_gap",
    "risk_gap_curve",
    "rows_needed",
    "scan",
    "score_decomposition",
    "sign_testing_gap",
    "sign_testing_risk",
    "smooth_calibration_error",
    "smooth_witness",
    "spiegelhalter_test",
    "weighted_calibration_error",
    "worst_interval",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    value = getattr(import_module(f"calibrant.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
