"""Forty results as they were before the package was divided into rooms: moving code must not move a number."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrant
from calibrant import Tally

STORED = json.loads((Path(__file__).parent / "stored_results.json").read_text())

# Rows by arithmetic alone, so that no version of a random number generator has a say in them.
STEPS = np.arange(1, 2001)
P = STEPS * 0.6180339887498949 % 1.0
Y = (STEPS * 0.4142135623730951 % 1.0 < 0.1 + 0.85 * P**1.3).astype(int)
ROUNDED = np.round(P, 1)
FRACTION = np.clip(0.8 * P + 0.3 * (STEPS * 0.7320508075688772 % 1.0) - 0.1, 0.0, 1.0)
WEIGHT = 1.0 + (STEPS % 7) / 3.0
GROUP = np.array(["north", "south", "west"])[STEPS % 3]
COUNTS = Tally.from_counts(forecast=[0.05, 0.2, 0.5, 0.8], rows=[600, 400, 300, 300], events=[21, 85, 141, 236])

RESULTS: dict[str, Callable[[], Any]] = {
    "cutoff": lambda: calibrant.cutoff_calibration_error(Y, P),
    "ks": lambda: calibrant.measures.ks_calibration_error(Y, P),
    "smooth": lambda: calibrant.smooth_calibration_error(Y, P, sample_weight=WEIGHT),
    "bounded variation": lambda: calibrant.measures.bounded_variation_calibration_error(Y, P, variation=3.0),
    "ece": lambda: calibrant.expected_calibration_error(Y, P, n_bins=10),
    "in the large": lambda: calibrant.measures.calibration_in_the_large(FRACTION, P),
    "worst interval": lambda: calibrant.worst_interval(Y, P),
    "smooth witness": lambda: calibrant.measures.smooth_witness(Y[:200], P[:200]),
    "variation witness": lambda: calibrant.measures.bounded_variation_witness(Y[:200], P[:200], variation=4.0),
    "spectrum": lambda: calibrant.measures.bounded_variation_spectrum(COUNTS),
    "slope": lambda: calibrant.measures.calibration_slope_intercept(Y, P),
    "curve errors": lambda: calibrant.measures.integrated_calibration_index(Y, P),
    "distance": lambda: calibrant.distance_from_calibration(Y, P),
    "measure": lambda: calibrant.measure(Y, P),
    "measure of counts": lambda: calibrant.measure(COUNTS),
    "certify adaptive": lambda: calibrant.certify(Y, P, max_error=0.05),
    "certify exact": lambda: calibrant.certify(COUNTS, max_error=0.05, method="exact"),
    "certify normal": lambda: calibrant.certify(Y, P, max_error=0.05, method="normal"),
    "certify hoeffding": lambda: calibrant.certify(FRACTION, P, max_error=0.01, method="hoeffding"),
    "certify paper": lambda: calibrant.certify(Y, P, max_error=0.6, method="paper", confidence_level=0.9),
    "certify smooth": lambda: calibrant.certify(Y, P, max_error=0.05, measure="smooth", rng=7),
    "certify weights": lambda: calibrant.certify(FRACTION, P, max_error=0.05, sample_weight=WEIGHT),
    "certify variation": lambda: calibrant.certify(Y, P, max_error=0.1, measure="bounded_variation", variation=4.0),
    "certify distance": lambda: calibrant.certify(Y, P, max_error=0.1, measure="distance"),
    "certify ece": lambda: calibrant.certify(Y, ROUNDED, max_error=0.1, measure="ece"),
    "certify groups": lambda: calibrant.certify(Y, P, max_error=0.1, by=GROUP),
    "interval": lambda: calibrant.confidence_interval(Y, P),
    "interval below": lambda: calibrant.confidence_interval(Y, P, alternative="greater", measure="smooth"),
    "interval exact": lambda: calibrant.confidence_interval(Y, P, method="exact", alternative="less"),
    "risk bands": lambda: calibrant.risk_bands(Y, P, cutoffs=[0.1, 0.5]),
    "test": lambda: calibrant.calibration_test(Y, P, n_resamples=999, rng=0),
    "spiegelhalter": lambda: calibrant.certificates.spiegelhalter_test(Y, P),
    "rows needed": lambda: calibrant.rows_needed(0.02, y_prob=P),
    "rows needed hoeffding": lambda: calibrant.rows_needed(0.02, brier=0.1, method="hoeffding"),
    "decision risk": lambda: calibrant.decision_risk(Y, P, threshold=0.3),
    "risk gap": lambda: calibrant.risk_gap(Y, P, threshold=0.3),
    "decision guarantee": lambda: calibrant.decision_guarantee(calibrant.certify(Y, P, max_error=0.1), threshold=0.2),
    "score decomposition": lambda: calibrant.decisions.score_decomposition(COUNTS),
    "recalibration": lambda: calibrant.PlattRecalibrator().fit(P, Y).guarantee_,
    "bracket": lambda: calibrant.certificates.bracket(calibrant.Cells.from_arrays(Y, P, bits=12), method="adaptive"),
}


def plain(value: Any) -> Any:
    """Write a result, an array or a number as what JSON holds."""
    return value.to_dict() if hasattr(value, "to_dict") else value


# What has another name since; the rows of all bands are the sum of those of each.
RENAMED = {
    "expected": "ece",
    "expected_binned": "ece_binned",
    "n": "rows",
    "bound": "upper",
    "paper_bound": "paper_upper",
}
# What was added, as it is on these rows.
NO_THRESHOLD = {"thresholds": None, "cost_false_positive": None, "cost_false_negative": None}
NO_LIMITS = {f"{name}_{end}": None for name in ("ici", "e50", "e90", "emax", "eci") for end in ("lower", "upper")}
PARTS = ("score", "miscalibration", "discrimination", "uncertainty", "skill")
NO_PLANNED_CLUSTERS = {
    "clusters": None,
    "cluster_size": None,
    "intra_cluster_correlation": None,
    "cluster_target": "rows",
}
ADDED: dict[str | None, dict[str, Any]] = {
    "Measures": {"others": []},
    "WorstInterval": {"weights_estimated": False},
    "CurveErrors": {  # whose quantiles are R's type 7 since: e50 and e90 are stored as numpy has them
        **dict.fromkeys(("span", "knots", "confidence_level", "interval", "n_resamples", "clusters")),
        "scale": "probability",
        **NO_LIMITS,
    },
    "ScoreDecomposition": {
        **{f"{part}_{end}": None for part in PARTS for end in ("lower", "upper")},
        **dict.fromkeys(("confidence_level", "clusters", "n_resamples")),
    },
    "RowsNeeded": {"measure": "cutoff", "relative_to": "rows", "cautions": [], **NO_THRESHOLD, **NO_PLANNED_CLUSTERS},
    "CalibrationTest": {"clusters": None},
    "RiskBands": {"notes": [], "clusters": None, "band_clusters": None},
    "ConfidenceInterval": {"relative_to": "rows", "clusters": None, **NO_THRESHOLD},
    "Certificate": {"relative_to": "rows", "saving": None, "clusters": None, **NO_THRESHOLD},
    "GroupCertificates": {"relative_to": "rows"},
    "DecisionGuarantee": {"thresholds": None, "clusters": None},
    "RecalibrationGuarantee": {
        "measure": "cutoff",
        "target": "population",
        "clusters": None,
        "assumptions": [  # what independent rows are not is said since
            "the rows are independent draws from the population, which several of one patient, day or site are not",
            "the forecaster was fixed without looking at them",
        ],
    },
    "ReportSummary": {"clusters": None},
    "ModelSummary": {"row_wise": None, "group_check": None, "change": None},
    "RepairTrial": {"fitted_clusters": None, "judged_clusters": None},
}
# Tested where they belong: how frequent events are, what chance shows, and limits that are too wide.
NEW = {
    "CalibrationSlope": {
        *("slope_lower", "slope_upper", "intercept_lower", "intercept_upper"),
        *("intercept_at_unit_slope_lower", "intercept_at_unit_slope_upper", "confidence_level", "interval"),
        *("left_out", "contradicted", "rows", "clusters", "n_resamples", "notes"),
    },
    "Certificate": {"event_rate", "cautions"},
    "WorstInterval": {"chance"},
    "Measures": {"risk_gap"},
    "CurveErrors": {"eci"},
}
KEPT = {"RiskGap", "RiskGapCurve"}  # whose bound is an inequality, not a limit


def renamed(stored: dict[str, Any]) -> dict[str, Any]:
    """Give fields the names they have now."""
    if stored.get("type") in KEPT:
        return stored
    if stored.get("type") == "RiskBands":
        assert stored["n"] == sum(stored["rows"])
        return {key: value for key, value in stored.items() if key != "n"} | ADDED["RiskBands"]
    if stored.get("type") == "Certificate" and stored["rows_needed"]:  # said in two digits since, rounded up
        unit = 10 ** (len(str(stored["rows_needed"])) - 2)
        stored = {**stored, "rows_needed": math.ceil(stored["rows_needed"] / unit) * unit}
    return {RENAMED.get(key, key): value for key, value in stored.items()} | ADDED.get(stored.get("type"), {})


def assert_alike(found: Any, stored: Any, where: str) -> None:
    """Hold every number to 10 digits, and everything else to what it was."""
    if isinstance(stored, dict):
        stored, new = renamed(stored), NEW.get(str(stored.get("type")), set())
        found = {key: value for key, value in found.items() if key not in new}
        if "relations" in found:  # those of the risk gap are tested with it
            found["relations"] = [each for each in found["relations"] if "risk gap" not in each["statement"]]
        assert sorted(found) == sorted(stored), where
        for key in stored:
            assert_alike(found[key], stored[key], f"{where}.{key}")
    elif isinstance(stored, list):
        assert len(found) == len(stored), where
        for position, (one, other) in enumerate(zip(found, stored, strict=True)):
            assert_alike(one, other, f"{where}[{position}]")
    elif isinstance(stored, float):
        assert math.isclose(found, stored, rel_tol=1e-10, abs_tol=1e-13), where
    else:
        assert found == stored, where


def test_forty_are_stored() -> None:
    assert len(RESULTS) == 40
    assert list(STORED) == list(RESULTS)


@pytest.mark.parametrize("name", RESULTS)
def test_is_what_it_was(name: str) -> None:
    assert_alike(plain(RESULTS[name]()), STORED[name], name)
