"""Frames go out in the library in which they came in, and nothing is loaded that nobody chose."""

import inspect
import subprocess
import sys
from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

import calibrant
from calibrant import certificates, decisions, displays, measures, monitors, rows
from calibrant.core.frames import as_frame

Y = np.array([0, 1, 0, 1, 1, 1] * 20)
P = np.array([0.1, 0.8, 0.6, 0.3, 0.5, 0.9] * 20)
MAKERS = {
    "pandas": (pd.Series, pd.DataFrame),
    "polars": (lambda values: pl.Series(list(values)), pl.DataFrame),
    "pyarrow": (pa.array, pa.Table),
}


@pytest.mark.parametrize("library", MAKERS)
def test_frames_out_follow_columns_in(library):
    column, frame = MAKERS[library]
    found = calibrant.measure(column(Y), column(P))
    other = calibrant.measure(Y, P)  # what comes later changes nothing
    assert isinstance(found.frame(), frame)
    assert isinstance(other.frame(), pd.DataFrame)  # loaded, and tried first
    assert found == other


# --- Every public function ------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
CLASS_PROBABILITIES = RNG.dirichlet([1, 1, 1], size=120)
KINDS = (CLASS_PROBABILITIES.cumsum(axis=1) < RNG.random((120, 1))).sum(axis=1).astype(str)
AMOUNTS = RNG.normal(size=120)
TRIP = [[0.0, 0.4, 1.0], [0.3, 0.2, 0.5], [0.6, 0.6, 0.0]]
QUARTER: dict[str, Any] = {"cost_false_positive": 1.0, "cost_false_negative": 3.0}
LEVEL: dict[str, Any] = {"confidence_level": 0.9}


class Given:
    """The same rows, as columns and frames of one library or as arrays."""

    def __init__(self, library: str | None) -> None:
        self.column: Callable[[Any], Any] = np.asarray if library is None else MAKERS[library][0]
        self.y, self.p, self.q = self.column(Y), self.column(P), self.column(P**2)
        self.pair = (self.y, self.p)
        self.kinds, self.amounts = self.column(KINDS), self.column(AMOUNTS)
        self.by, self.day = self.column(["east", "west"] * 60), self.column([1, 2, 3] * 40)
        self.time = self.column(np.abs(AMOUNTS) + 0.01)
        self.shares = self.table({str(k): column for k, column in enumerate(CLASS_PROBABILITIES.T)}, library)
        self.ensemble = self.table({str(k): AMOUNTS + k / 4 for k in (-1, 0, 1)}, library)
        self.features = self.table({"size": AMOUNTS, "age": P + AMOUNTS}, library)
        self.classes = (self.kinds, self.shares)
        self.models = {"old": self.p, "new": self.q}

    @staticmethod
    def table(columns: dict[str, Any], library: str | None) -> Any:
        return np.column_stack(list(columns.values())) if library is None else as_frame(columns, library)

    def horizon(self) -> Any:
        return rows.horizon(self.time, self.y, self.p, at=0.7)

    def monitor(self) -> calibrant.Monitor:
        made = calibrant.Monitor(max_error=0.5, maturity=0)
        made.update(*self.pair, period=1)
        return made

    def waiting(self) -> calibrant.Monitor:
        made = calibrant.Monitor(max_error=0.5)
        made.expect(self.p, ids=list(range(120)), period=1)
        made.observe(self.y, ids=list(range(120)))
        return made

    def segments(self) -> calibrant.Monitors:
        made = calibrant.Monitors(max_error=0.5)
        made.update(*self.pair, segment=self.by, period=1)
        made.read()
        return made

    def rolling(self) -> calibrant.RollingRecalibrator:
        made = calibrant.RollingRecalibrator("isotonic", window=2, max_error=0.5)
        made.update(*self.pair, period=self.day)
        return made


FRAMED: dict[str, Callable[[Given], Any]] = {
    "measure": lambda of: calibrant.measure(*of.pair),
    "measure by": lambda of: calibrant.measure(*of.pair, by=of.by),
    "measure classes": lambda of: calibrant.measure(*of.classes),
    "measure classwise": lambda of: calibrant.measure(*of.classes, questions="classwise"),
    "measure counts": lambda of: calibrant.measure(
        calibrant.Tally.from_counts(of.column([0.2, 0.7]), of.column([100, 50]), of.column([22, 31]))
    ),
    "measure tally": lambda of: calibrant.measure(calibrant.Tally.from_arrays(*of.pair)),
    "measure tallies": lambda of: calibrant.measure(
        calibrant.Tally.from_arrays(*of.pair) + calibrant.Tally.from_arrays(of.y, of.q)
    ),
    "measure groups": lambda of: calibrant.measure(rows.in_groups(*of.pair, by=of.by)),
    "measure horizon": lambda of: calibrant.measure(of.horizon()),
    "measure fixed": lambda of: calibrant.measure(of.horizon().fixed()),
    "certify by": lambda of: calibrant.certify(*of.pair, max_error=0.5, by=of.by),
    "certify classwise": lambda of: calibrant.certify(*of.classes, max_error=0.5, questions="classwise"),
    "confidence_interval": lambda of: calibrant.confidence_interval(*of.classes, questions="classwise"),
    "worst_interval": lambda of: calibrant.worst_interval(*of.classes, questions="classwise"),
    "risk_bands": lambda of: calibrant.risk_bands(*of.pair, cutoffs=[0.5]),
    "risk_bands classwise": lambda of: calibrant.risk_bands(*of.classes, cutoffs=[0.5], questions="classwise"),
    "calibration_test by": lambda of: calibrant.calibration_test(*of.pair, by=of.by),
    "calibration_test classwise": lambda of: calibrant.calibration_test(*of.classes, questions="classwise"),
    "spiegelhalter_test": lambda of: certificates.spiegelhalter_test(*of.pair, by=of.by),
    "worst_group": lambda of: calibrant.worst_group(*of.pair, of.features),
    "compare_models": lambda of: calibrant.compare_models(of.y, of.models),
    "validate": lambda of: calibrant.validate(*of.pair, n_resamples=20),
    "internal_validation": lambda of: calibrant.internal_validation(
        LogisticRegression(), of.features, of.y, n_resamples=3, statistics=["brier"]
    ),
    "compare_recalibrators": lambda of: calibrant.compare_recalibrators(of.p, of.y, cv=2, rng=0),
    "compare_recalibrators classes": lambda of: calibrant.compare_recalibrators(of.shares, of.kinds, cv=2, rng=0),
    "threshold_calibration_error": lambda of: calibrant.threshold_calibration_error(of.amounts, ensemble=of.ensemble),
    "certify_thresholds": lambda of: certificates.certify_thresholds(of.amounts, ensemble=of.ensemble, max_error=0.9),
    "pit_calibration": lambda of: calibrant.pit_calibration(of.amounts, ensemble=of.ensemble),
    "horizon": lambda of: of.horizon(),
    "horizon outcome": lambda of: of.horizon().outcome,
    "certify_decisions": lambda of: calibrant.certify_decisions(*of.classes, TRIP, max_regret=0.9),
    "certify_decisions several": lambda of: calibrant.certify_decisions(*of.classes, {"trip": TRIP}, max_regret=0.9),
    "net_benefit": lambda of: calibrant.net_benefit(*of.pair),
    "decision_curve": lambda of: decisions.decision_curve(of.y, of.models),
    "risk_gap": lambda of: calibrant.risk_gap(*of.pair, threshold=0.4),
    "risk_gap_curve": lambda of: decisions.risk_gap_curve(*of.pair),
    "sign_testing_gap": lambda of: decisions.sign_testing_gap(*of.pair, threshold=0.4),
    "sign_testing_risk": lambda of: decisions.sign_testing_risk(*of.pair, threshold=0.4),
    "decision_risk": lambda of: calibrant.decision_risk(*of.pair, threshold=0.4),
    "murphy_curve": lambda of: decisions.murphy_curve(*of.pair),
    "best_threshold": lambda of: calibrant.best_threshold(*of.pair, **QUARTER),
    "decision_guarantee": lambda of: calibrant.decision_guarantee(calibrant.certify(*of.pair, max_error=0.5), 0.4),
    "decide": lambda of: decisions.decide(*of.pair, threshold=0.4),
    "decide by": lambda of: decisions.decide(*of.pair, threshold=0.4, by=of.by),
    "brier_decomposition": lambda of: decisions.brier_decomposition(*of.pair),
    "score_decomposition": lambda of: decisions.score_decomposition(*of.pair),
    "brier_score": lambda of: measures.brier_score(*of.pair, **LEVEL),
    "scaled_brier_score": lambda of: measures.scaled_brier_score(*of.pair, **LEVEL),
    "auroc": lambda of: measures.auroc(*of.pair, **LEVEL),
    "observed_expected_ratio": lambda of: measures.observed_expected_ratio(*of.pair, **LEVEL),
    "cox_slope": lambda of: measures.cox_slope(of.horizon(), **LEVEL),
    "intercept_at_unit_slope": lambda of: measures.intercept_at_unit_slope(*of.pair, **LEVEL),
    "calibration_slope_intercept": lambda of: measures.calibration_slope_intercept(*of.pair),
    "likelihood_ratio_tests": lambda of: measures.likelihood_ratio_tests(*of.pair),
    "calibration_curve": lambda of: measures.calibration_curve(*of.pair),
    "integrated_calibration_index": lambda of: measures.integrated_calibration_index(*of.pair),
    "smooth_witness": lambda of: measures.smooth_witness(*of.pair),
    "bounded_variation_witness": lambda of: measures.bounded_variation_witness(*of.pair),
    "bounded_variation_spectrum": lambda of: measures.bounded_variation_spectrum(*of.pair),
    "compare_windows": lambda of: monitors.compare_windows(*of.pair, period=of.day, windows=[1]),
    "ReliabilityDisplay": lambda of: displays.ReliabilityDisplay.from_predictions(*of.pair),
    "CertificateDisplay": lambda of: displays.CertificateDisplay.from_predictions(*of.pair, max_error=0.5, by=of.by),
    "RiskGapDisplay": lambda of: displays.RiskGapDisplay.from_predictions(*of.pair),
    "MonitorDisplay": lambda of: displays.MonitorDisplay.from_predictions(*of.pair, period=of.day, max_error=0.5),
    "Monitors.read": lambda of: of.segments().read(),
}
HISTORIES: dict[str, Callable[[Given], Any]] = {
    "Monitor": lambda of: of.monitor(),
    "Monitor, labels later": lambda of: of.waiting(),
    "Monitors": lambda of: of.segments(),
    "Monitors, one of them": lambda of: of.segments()["east"],
    "RollingRecalibrator": lambda of: of.rolling(),
}
OTHER = {"pandas": "polars", "polars": "pandas", "pyarrow": "polars", None: "polars"}


@pytest.mark.filterwarnings("ignore::calibrant.CalibrationWarning")
@pytest.mark.parametrize("library", [*MAKERS, None])
@pytest.mark.parametrize("case", FRAMED)
def test_frames_follow_the_rows_of_their_own_call(case, library):
    other = Given(OTHER[library])
    calibrant.measure(*other.pair)  # and not those of another one, before
    found = FRAMED[case](Given(library))
    calibrant.measure(*other.pair)  # or after
    assert isinstance(found.frame(), MAKERS[library or "pandas"][1])


@pytest.mark.parametrize("library", [*MAKERS, None])
@pytest.mark.parametrize("case", HISTORIES)
def test_histories_follow_the_rows_that_came_in(case, library):
    other = Given(OTHER[library])
    calibrant.measure(*other.pair)
    watching = HISTORIES[case](Given(library))
    calibrant.measure(*other.pair)
    if case != "Monitors":
        watching.read()
    frame = MAKERS[library or "pandas"][1]
    assert isinstance(watching.history, frame)
    watching.update(*other.pair, **({"segment": "east"} if case == "Monitors" else {}), period=9)
    assert isinstance(watching.history, MAKERS[OTHER[library]][1])  # those that came in last


def test_every_public_function_whose_result_has_a_frame_is_tried():
    tried = {case.partition(" ")[0] for case in FRAMED}
    for room in (calibrant, certificates, decisions, measures, monitors, rows, calibrant.validations):
        for name in dir(room):
            function = getattr(room, name)
            if inspect.isfunction(function):
                returned = get_type_hints(function)["return"]
                if any(hasattr(each, "frame") for each in (returned, *get_args(returned))):
                    assert name in tried


def test_frames_follow_what_narwhals_wraps():
    y, p = (narwhals.from_native(pl.Series(list(each)), series_only=True) for each in (Y, P))
    assert isinstance(calibrant.measure(y, p).frame(), pl.DataFrame)
    shares = narwhals.from_native(Given("polars").shares)
    assert isinstance(calibrant.measure(KINDS, shares, questions="classwise").frame(), pl.DataFrame)


def test_frames_follow_where_many_rows_are_judged_side_by_side():
    y, p = np.tile(Y, 1000), np.tile(P, 1000)
    found = calibrant.compare_models(pl.Series(y), {"old": p, "new": p**2})
    assert isinstance(found.frame(), pl.DataFrame)


# --- Choices and what is there --------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", MAKERS)
def test_a_result_that_is_made_of_another_takes_its_fields_alone(library):
    column, _ = MAKERS[library]
    found = calibrant.decisions.risk_gap_curve(column(Y), column(P))
    assert found == calibrant.decisions.risk_gap_curve(Y, P)


@pytest.mark.parametrize("library", MAKERS)
def test_frames_out_follow_a_scanned_frame(library):
    frame = MAKERS[library][1]
    table = as_frame({"y": Y, "p": P, "g": Y}, library)
    with calibrant.scan(table, y_true="y", y_prob="p", by="g") as groups:
        assert isinstance(calibrant.measure(groups).frame(), frame)


@pytest.mark.parametrize("library", MAKERS)
@pytest.mark.parametrize("by_name", [True, False])
def test_a_library_can_be_chosen(library, by_name):
    found = calibrant.measure(Y, P)
    backend = library if by_name else sys.modules[library]
    assert isinstance(found.frame(backend), MAKERS[library][1])
    assert isinstance(found.frame(backend=backend), MAKERS[library][1])


def test_other_libraries_go_through_narwhals():
    with pytest.raises(calibrant.InputError, match=r"^backend is 'nothing_of_the_kind', .*; choose one of pandas, "):
        calibrant.measure(Y, P).frame("nothing_of_the_kind")
    with pytest.raises(calibrant.InputError, match=r"^backend is 7, "):
        calibrant.measure(Y, P).frame(7)


def test_a_library_that_narwhals_would_be_needed_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(ImportError, match="frames of modin need narwhals"):
        calibrant.measure(Y, P).frame("modin")


@pytest.mark.parametrize("library", ["modin", "cudf"])
def test_a_library_that_is_not_installed(library):
    with pytest.raises(ImportError, match=f"^frames of {library} need {library}; install it with: pip install "):
        calibrant.measure(Y, P).frame(library)


def test_a_library_of_ours_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"^frames of polars need polars; install it with: pip install polars"):
        calibrant.measure(Y, P).frame("polars")


def test_where_pandas_is_not_loaded_it_is_not_loaded_for_a_frame():
    script = (
        "import sys, polars, calibrant; found = calibrant.measure([0, 1] * 50, [0.2, 0.8] * 50).frame(); "
        "assert isinstance(found, polars.DataFrame); assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
