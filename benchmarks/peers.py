"""Other packages. Each gets its data in the form it works on, converted off the clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module

import numpy as np
from forecasts import FloatArray
from racing import Call, Value

BINS = 15


@dataclass(frozen=True)
class Peer:
    """Another package's version of a measure; ``prepare`` imports it and puts the data into the form it takes."""

    name: str
    prepare: Callable[[FloatArray, FloatArray], tuple[Call, Value]]


def sklearn_curve(strategy: str) -> Peer:
    def prepare(forecast: FloatArray, outcome: FloatArray) -> tuple[Call, Value]:
        calibration_curve = import_module("sklearn.calibration").calibration_curve

        def value(curve: tuple[FloatArray, FloatArray]) -> float:
            """Average the distances of the curve over the rows, which scikit-learn leaves to its users."""
            inner = np.linspace(0.0, 1.0, BINS + 1)[1:-1]
            border = inner if strategy == "uniform" else np.quantile(forecast, inner)
            rows = np.bincount(np.searchsorted(border, forecast), minlength=BINS)
            return float(np.average(np.abs(curve[0] - curve[1]), weights=rows[rows > 0]))

        return partial(calibration_curve, outcome, forecast, n_bins=BINS, strategy=strategy), value

    return Peer("scikit-learn calibration_curve", prepare)


def netcal_ece(forecast: FloatArray, outcome: FloatArray) -> tuple[Call, Value]:
    return partial(import_module("netcal.metrics").ECE(bins=BINS).measure, forecast, outcome.astype(int)), float


def torchmetrics_ece(forecast: FloatArray, outcome: FloatArray) -> tuple[Call, Value]:
    error = import_module("torchmetrics.functional.classification").binary_calibration_error
    torch = import_module("torch")
    labels = torch.from_numpy(outcome.astype(np.int64))
    return partial(error, torch.from_numpy(forecast), labels, n_bins=BINS, norm="l1"), float


def torchmetrics_confidence(forecast: FloatArray, outcome: FloatArray) -> tuple[Call, Value]:
    """ECE of the confidence in the top label; ``forecast`` has a column for each class, ``outcome`` its number."""
    error = import_module("torchmetrics.functional.classification").multiclass_calibration_error
    torch = import_module("torch")
    labels = torch.from_numpy(outcome.astype(np.int64))
    return partial(error, torch.from_numpy(forecast), labels, num_classes=forecast.shape[1], n_bins=BINS), float


def mapie_top_label(forecast: FloatArray, outcome: FloatArray) -> tuple[Call, Value]:
    """ECE of the confidence among the rows of each top label, plain mean over labels; ``num_bins`` counts borders."""
    error = import_module("mapie.metrics.calibration").top_label_ece
    return partial(error, outcome.astype(int), forecast, num_bins=BINS + 1), float


def sklearn_auroc(forecast: FloatArray, outcome: FloatArray) -> tuple[Call, Value]:
    """The area alone, without limits."""
    return partial(import_module("sklearn.metrics").roc_auc_score, outcome, forecast), float


def skmisc_loess_ici(forecast: FloatArray, outcome: FloatArray) -> tuple[Call, Value]:
    """ICI of the Fortran code behind R's loess, with R's defaults."""
    loess = import_module("skmisc.loess").loess

    def index() -> float:
        curve = loess(forecast, outcome, statistics="approximate", trace_hat="approximate")
        curve.fit()
        return float(np.abs(curve.outputs.fitted_values - forecast).mean())

    return index, float


def mapie_ece(strategy: str) -> Peer:
    def prepare(forecast: FloatArray, outcome: FloatArray) -> tuple[Call, Value]:
        error = import_module("mapie.metrics.calibration").expected_calibration_error
        return partial(error, outcome.astype(int), forecast, num_bins=BINS, split_strategy=strategy), float

    return Peer("MAPIE ECE", prepare)


def mapie_range(forecast: FloatArray, outcome: FloatArray) -> tuple[Call, Value]:
    differences = import_module("mapie.metrics.calibration").cumulative_differences
    return lambda: np.ptp(np.append(differences(outcome, forecast), 0.0)), float


def probmetrics_kuiper(forecast: FloatArray, outcome: FloatArray) -> tuple[Call, Value]:
    metric = import_module("probmetrics.metrics").KuiperCalibrationMetric()
    torch = import_module("torch")
    labels = torch.from_numpy(outcome.astype(np.int64))
    return partial(
        metric.compute_from_labels_probs, labels, torch.from_numpy(np.column_stack([1.0 - forecast, forecast]))
    ), float


def mcgrad_ecce(forecast: FloatArray, outcome: FloatArray) -> tuple[Call, Value]:
    return partial(import_module("mcgrad.metrics").ecce, outcome, forecast), float


def relplot_smece(forecast: FloatArray, outcome: FloatArray) -> tuple[Call, Value]:
    return partial(import_module("relplot").smECE, forecast, outcome), float


ECE_PEERS = {
    "uniform": [
        sklearn_curve("uniform"),
        mapie_ece("uniform"),
        Peer("netcal ECE", netcal_ece),
        Peer("torchmetrics binary ECE", torchmetrics_ece),
    ],
    "quantile": [sklearn_curve("quantile"), mapie_ece("quantile")],
}
CLASS_PEERS = [
    Peer("torchmetrics multiclass ECE", torchmetrics_confidence),
    Peer("MAPIE top_label_ece", mapie_top_label),
]
CUTOFF_PEERS = [
    Peer("MAPIE cumulative_differences", mapie_range),
    Peer("probmetrics Kuiper", probmetrics_kuiper),
    Peer("mcgrad ecce", mcgrad_ecce),
]
AUROC_PEERS = [Peer("scikit-learn roc_auc_score, no limits", sklearn_auroc)]
LOESS_PEERS = [Peer("scikit-misc loess", skmisc_loess_ici)]
SMOOTH_PEERS = [Peer("relplot smECE", relplot_smece)]
