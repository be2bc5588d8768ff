"""MLflow: calibration among the metrics of a run, and the report among its artifacts."""

from __future__ import annotations

import importlib
import json
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.adapters.options import InTool, check_options
from calibrant.core.errors import CalibrationWarning, InputError
from calibrant.core.sql import is_name
from calibrant.core.words import approximately, level_said
from calibrant.measures.registry import MEASURES, Measure
from calibrant.rows.checks import check_choice

if TYPE_CHECKING:
    from calibrant.reports.calibration_report import CalibrationReport
    from calibrant.reports.results import ModelSummary

    _Models = Mapping[tuple[str, ...], ModelSummary]

_LOGGED = ("cutoff", "smooth", "risk_gap", "brier", "calibration_in_the_large")
_LIMITS = ("estimate", "lower", "upper")
_TAGS = ("measure", "method", "relative_to", "limits", "max_error", "verdict", "finding", "question")
_TABLE = InTool(y_prob="predictions", y_true="targets")
_TRIED = 64
_CONFIDENCE = "the confidence in the top label: is that label right as often as forecast?"


def mlflow_metric(measure: Measure = "cutoff", *, name: str | None = None, **options: Any) -> Any:
    """Return a metric for ``mlflow.models.evaluate(..., extra_metrics=[...])``: a calibration error with its limit.

    Options that no rows could be judged by are refused here, and not in the evaluation.

    It reads probabilities of the event. Evaluate a table of forecasts (``predictions="forecast"``) or a function that
    returns them, and leave ``model_type`` out: the labels that MLflow asks of a classifier have no calibration, and are
    refused.

    Parameters
    ----------
    measure : {"cutoff", "smooth", "bounded_variation", "distance", "ece", "risk_gap"}
        The error.
    name : str, optional
        What the metric is called, by default after the error, as in "cutoff_calibration_error". MLflow keeps one metric
        of a name: give two of the same error different ones.
    **options
        Those of `confidence_interval`: ``confidence_level``, ``method``, ``pos_label`` and so on, without those about
        several classes; an array such as ``cluster`` has a value for each row that is evaluated.

    Returns
    -------
    mlflow.metrics.EvaluationMetric
        Which logs ``<name>/estimate``, the error of the rows, and ``<name>/upper``, a one-sided upper confidence
        limit. A table of one row gets neither: MLflow tries metrics on the first row alone, where there is nothing to
        judge.

    Examples
    --------
    >>> metric = mlflow_metric("smooth", confidence_level=0.9)
    >>> metric.name, metric.greater_is_better
    ('smooth_calibration_error', False)
    """
    check_choice(measure, "measure", tuple(MEASURES))
    models = _mlflow("mlflow_metric").models
    from mlflow.metrics import MetricValue

    from calibrant.certificates.verdicts import confidence_interval

    taken = ["measure", "alternative", "classes", "questions", "multilabel"]  # one event has no classes to ask about
    check_options("mlflow_metric", confidence_interval, options, taken=taken)
    called = MEASURES.words(measure).lower().replace(" ", "_").replace("-", "_") if name is None else name
    if not is_name(called) or "/" in called or not _is_taken(called):
        raise InputError(
            f"is {called!r}, which MLflow does not take for a metric",
            argument="name",
            value=called,
            remedy="use letters, digits, spaces, and the signs _ - .",
        )
    _try_options(measure, options)

    def evaluate(predictions: Any, targets: Any) -> Any:
        _refuse_labels(predictions)
        if len(predictions) == 1:
            return MetricValue(aggregate_results={})
        try:
            found = confidence_interval(targets, predictions, measure=measure, alternative="less", **options)
        except InputError as error:
            raise InputError(error.said(_TABLE), position=error.position, value=error.value) from None
        return MetricValue(aggregate_results={"estimate": found.estimate, "upper": found.upper})

    return models.make_metric(eval_fn=evaluate, greater_is_better=False, name=called)


def log_calibration(
    y_true: Any,
    y_prob: Any = None,
    *,
    max_error: float | None = None,
    run_id: str | None = None,
    folder: str = "calibration",
    **options: Any,
) -> CalibrationReport:
    """Judge forecasts, and log what is found to a run of MLflow: metrics, the verdict as tags, the report as artifact.

    Nothing is logged if the rows are refused, or if MLflow would refuse the names.

    Parameters
    ----------
    y_true : array-like of shape (n,), Tally, or dict of name to Tally
        Outcomes, as in `CalibrationReport.from_predictions`.
    y_prob : array-like of shape (n,), or (n, K) for several classes, or dict of name to array-like
        Forecast probabilities; a dict for several models judged on the same outcomes. Of more than two classes what is
        logged is about the confidence in the top label, and the report has a table of every class besides.
    max_error : float in [0, 1], optional
        The largest Cutoff calibration error you can live with; without it there are limits and no verdict.
    run_id : str, optional
        The run; by default the one that is active, or a new one, as for other functions of MLflow that log. A new run
        stays active as theirs do, until ``mlflow.end_run()``; if MLflow refuses something it is ended as failed.
    folder : str
        Where artifacts go, and what names of metrics and tags begin with. It has to be a name that MLflow takes, and so
        have the names of several models.
    **options
        Those of `CalibrationReport.from_predictions`.

    Returns
    -------
    CalibrationReport
        The report. The run has it as ``calibration/report.html`` and ``calibration/report.json``; the metrics
        ``calibration/cutoff``, ``smooth``, ``risk_gap``, ``brier`` and ``calibration_in_the_large``; the Cutoff error
        again with its limits, as ``calibration/estimate``, ``lower`` and ``upper``, without those that are infinite.
        Tags say what these are: ``calibration.measure``, ``method``, ``relative_to``, of which they are shares, and
        ``limits``, their confidence, which each limit has where there is ``max_error``, and else both together. With
        ``max_error`` there are ``calibration.max_error`` and, unless the weights of rows are estimates,
        ``calibration.verdict`` and ``calibration.finding``, the verdict in a word and in words, on all rows and every
        group. For more than two classes ``calibration.question`` says what all of this is about. Where there are
        several models their names come in between, as in ``calibration/first/cutoff``, and ``calibration.models`` lists
        them. What an earlier call logged to the folder and this one does not is taken away: tags are deleted, and
        metrics, which MLflow cannot delete, become NaN.

    Examples
    --------
    >>> import os, pathlib, tempfile
    >>> import mlflow
    >>> import numpy as np
    >>> os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # a folder, in place of a server or a database
    >>> mlflow.set_tracking_uri((pathlib.Path(tempfile.mkdtemp()) / "runs").as_uri())
    >>> y_prob = np.random.default_rng(0).random(2000)
    >>> y_true = np.random.default_rng(1).random(2000) < y_prob
    >>> with mlflow.start_run() as run:
    ...     report = log_calibration(y_true, y_prob, max_error=0.05)
    >>> mlflow.get_run(run.info.run_id).data.tags["calibration.verdict"]
    'certified'
    """
    mlflow = _mlflow("log_calibration")
    from calibrant.reports.calibration_report import CalibrationReport

    check_options("log_calibration", CalibrationReport.from_predictions, options, taken=["max_error"])
    if not isinstance(folder, str):
        raise InputError(f"is {folder!r}, not a text", argument="folder", value=folder, remedy="name a folder")
    report = CalibrationReport.from_predictions(y_true, y_prob, max_error=max_error, **options)
    pages = {"report.html": report.html(), "report.json": report.json()}
    found = report.summary.models
    models: _Models = {(folder,) if len(found) == 1 else (folder, model.name): model for model in found}
    _check_names(models, "y_prob" if isinstance(y_prob, Mapping) else "y_true")
    is_ours = not run_id and mlflow.active_run() is None
    run = run_id or (mlflow.active_run() or mlflow.start_run()).info.run_id
    try:
        _log(mlflow.MlflowClient(), run, folder, models, pages)
    except BaseException:
        if is_ours:
            mlflow.end_run("FAILED")  # or what is logged next would go to half a run
        raise
    return report


def _log(client: Any, run: str, folder: str, models: _Models, pages: Mapping[str, str]) -> None:
    """Log numbers and verdicts of models, and pages."""
    old, listing = client.get_run(run).data, f"{folder}.models"
    places = dict.fromkeys([(folder,), *((folder, name) for name in _listed(old.tags.get(listing))), *models])
    # First, so that no verdict on other forecasts stands beside these numbers.
    for tag in (*(".".join((*named, name)) for named in places for name in _TAGS), listing):
        if tag in old.tags:
            client.delete_tag(run, tag)
    for named in places:
        found = dict(_metrics(models[named])) if named in models else {}
        for name in (*_LOGGED, *_LIMITS):
            metric = "/".join((*named, name))
            if name in found or metric in old.metrics:
                client.log_metric(run, metric, found.get(name, math.nan))
    for named, model in models.items():
        for name, said in _tags(model).items():
            client.set_tag(run, ".".join((*named, name)), said)
    if len(models) > 1:
        client.set_tag(run, listing, json.dumps([name for _, name in models]))
    for name, page in pages.items():
        client.log_text(run, page, f"{folder}/{name}")


def _listed(tag: str | None) -> list[str]:
    """Return the models that an earlier call logged under their names."""
    try:
        found = json.loads(tag or "[]")
    except ValueError:  # somebody else's tag
        return []
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def _check_names(models: Iterable[tuple[str, ...]], argument: str) -> None:
    """Ask MLflow whether it takes the names to log under, before there is a run."""
    for folder, *names in models:
        if _is_taken(folder, *names):
            continue
        found, name, argument = ("names a model", names[0], argument) if _is_taken(folder) else ("is", folder, "folder")
        raise InputError(
            f"{found} {name!r}, which MLflow does not take in the names of metrics",
            argument=argument,
            value=name,
            remedy="use letters, digits, spaces, and the signs _ - . with / between them",
        )


def _is_taken(*named: str) -> bool:
    """Ask MLflow whether it takes such a name of a metric."""
    rules: Any = importlib.import_module("mlflow.utils.validation")
    name = "/".join((*named, _LOGGED[-1]))
    return bool(rules.validate_param_and_metric_name(name)) and not rules.path_not_unique(name)


def _try_options(measure: Measure, options: Mapping[str, Any]) -> None:
    """Judge a few rows of no interest, which refuses options that no rows could be judged by."""
    from calibrant.certificates.verdicts import confidence_interval

    tried = {name: value for name, value in options.items() if name != "pos_label"}
    for name, each in (("cluster", np.arange(_TRIED)), ("sample_weight", np.ones(_TRIED))):
        given = tried.get(name)
        if given is None:
            continue
        if isinstance(given, str) or not hasattr(given, "__len__"):
            raise InputError(
                f"is {given!r}, not an array",
                argument=name,
                value=given,
                remedy="pass a value for each row that is evaluated, such as a column of the table",
            )
        tried[name] = each
    if isinstance(tried.get("rng"), np.random.Generator):
        tried["rng"] = 0  # its numbers belong to the evaluation
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # it would be about these rows
        forecast = np.linspace(0.1, 0.9, _TRIED)
        confidence_interval(np.arange(_TRIED) % 2, forecast, measure=measure, alternative="less", **tried)


def _metrics(model: ModelSummary) -> Iterator[tuple[str, float]]:
    """Return the numbers of a model that are numbers: of shares of events an upper limit may be infinite."""
    found = {name: getattr(model.measures, name) for name in _LOGGED}
    found |= {name: getattr(model.judged, name) for name in _LIMITS}
    return ((name, float(value)) for name, value in found.items() if math.isfinite(value))


def _tags(model: ModelSummary) -> dict[str, str]:
    """Return what is said of a model in words: what its limits are always, the others of `_TAGS` where they apply."""
    which = "both" if model.certificate is None else "each"
    tags = {name: str(getattr(model.judged, name)) for name in ("measure", "method", "relative_to")}
    with approximately(model.approximate):
        tags["limits"] = f"{which} with {level_said(model.judged.confidence_level)} confidence"
    if model.certificate is not None:
        tags["max_error"] = str(model.certificate.max_error)
    if model.verdict is not None and model.certificate is not None:
        finding = model.certificate.finding()
        if model.groups is not None:
            finding = f"All rows: {finding} Every group: {model.groups.findings()[0]}"
        tags |= {"verdict": model.verdict, "finding": finding}
    if model.classes is not None or model.class_limits is not None:
        tags["question"] = _CONFIDENCE
    return tags


def _refuse_labels(predictions: Any) -> None:
    """Refuse what a classifier says where what it forecasts is asked for."""
    values = np.asarray(predictions)
    if values.dtype.kind != "f" or (values.size > 1 and bool(((values == 0.0) | (values == 1.0)).all())):
        raise InputError(
            f"are labels (the first is {values[:1].tolist()[0]!r}), and only probabilities have a calibration",
            argument="predictions",
            remedy="evaluate a column of probabilities, or a function that returns predict_proba(X)[:, 1], without "
            "model_type",
        )


def _mlflow(function: str) -> Any:
    try:
        import mlflow
        import mlflow.models
    except ImportError as error:
        raise ImportError(f"{function} needs mlflow; install it, as in: pip install mlflow") from error
    return mlflow
