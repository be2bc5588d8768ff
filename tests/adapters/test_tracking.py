"""MLflow, with a folder as its store: metrics, verdicts and reports of runs."""

import json
import sys
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

import calibrant
from calibrant.adapters import log_calibration, mlflow_metric


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    """MLflow that writes to a folder, tells nobody, and forgets it afterwards."""
    for name in ("MLFLOW_ALLOW_FILE_STORE", "MLFLOW_DISABLE_TELEMETRY"):
        monkeypatch.setenv(name, "true")
    monkeypatch.chdir(tmp_path)
    mlflow = pytest.importorskip("mlflow")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield mlflow
    while mlflow.active_run() is not None:
        mlflow.end_run()
    mlflow.set_tracking_uri(before)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    forecast = rng.random(2000)
    return pd.DataFrame({"forecast": forecast, "outcome": (rng.random(2000) < forecast).astype(float)})


@pytest.mark.parametrize("measure", ["cutoff", "smooth", "bounded_variation", "distance", "risk_gap"])
def test_evaluate_logs_the_error_and_its_limit(mlflow, rows, measure):
    metric = mlflow_metric(measure, confidence_level=0.9)
    with mlflow.start_run() as run:
        mlflow.models.evaluate(data=rows, targets="outcome", predictions="forecast", extra_metrics=[metric])
    expected = calibrant.confidence_interval(
        rows.outcome, rows.forecast, measure=measure, confidence_level=0.9, alternative="less"
    )
    logged = mlflow.get_run(run.info.run_id).data.metrics
    assert logged == {f"{metric.name}/estimate": expected.estimate, f"{metric.name}/upper": expected.upper}


def test_a_function_that_forecasts_is_evaluated(mlflow, rows):
    given = {"targets": "outcome", "extra_metrics": [mlflow_metric()]}
    found = mlflow.models.evaluate(lambda table: np.sqrt(table.forecast.to_numpy()), data=rows, **given)
    error = calibrant.cutoff_calibration_error(rows.outcome, np.sqrt(rows.forecast))
    assert found.metrics["cutoff_calibration_error/estimate"] == error


@pytest.mark.parametrize(
    "labels", [lambda p: (p > 0.5).astype(int), lambda p: (p > 0.5).astype(float), lambda p: p > 0.5]
)
def test_labels_are_not_taken_for_forecasts(mlflow, rows, labels):
    table = rows.assign(forecast=labels(rows.forecast))
    wrapped = mlflow.exceptions.MlflowException  # what the trial on one row makes of errors
    with pytest.raises((calibrant.InputError, wrapped), match=r"predictions are labels .*predict_proba"):
        mlflow.models.evaluate(data=table, targets="outcome", predictions="forecast", extra_metrics=[mlflow_metric()])


def test_bad_rows_have_the_names_that_mlflow_gives_them(mlflow, rows):
    for table, message in (
        (rows.assign(forecast=100 * rows.forecast), r"^predictions\[0\] is 63\..*, outside \[0, 1\]; if these"),
        (rows.assign(outcome=np.where(rows.outcome == 1, "late", "ok")), r"^targets\[0\] is '.*pass pos_label="),
    ):
        given = {"data": table, "targets": "outcome", "predictions": "forecast", "extra_metrics": [mlflow_metric()]}
        with pytest.raises(calibrant.InputError, match=message):
            mlflow.models.evaluate(**given)


@pytest.mark.parametrize(
    "options",
    [
        {"cluster": np.arange(2000) // 4},
        {"sample_weight": np.linspace(0.5, 1.5, 2000)},
        {"pos_label": "late"},
        {"cluster": np.arange(2000) // 4, "method": "hoeffding", "pos_label": "on time"},
    ],
    ids=lambda options: " ".join(options),
)
def test_options_of_rows_and_labels(mlflow, rows, options):
    labels = np.where(rows.outcome == 1, "late", "on time") if "pos_label" in options else rows.outcome
    metric = mlflow_metric("cutoff", name="cutoff of flights", **options)
    plain = mlflow_metric("cutoff", pos_label=options.get("pos_label"))
    given = {"data": rows.assign(outcome=labels), "targets": "outcome", "predictions": "forecast"}
    with mlflow.start_run():
        found = mlflow.models.evaluate(**given, extra_metrics=[metric, plain])
    expected = calibrant.confidence_interval(labels, rows.forecast, alternative="less", **options)
    assert found.metrics["cutoff of flights/upper"] == expected.upper
    assert len(found.metrics) == 4
    one = mlflow.models.evaluate(**{**given, "data": given["data"][:1]}, extra_metrics=[metric])
    assert one.metrics == {}, "MLflow tries a metric on the first row, and nothing tells that from a table of one"


def test_a_metric_of_nothing_known_is_refused():
    with pytest.raises(calibrant.InputError, match=r"^measure must be one of .*, got 'brier'$"):
        mlflow_metric(cast(Any, "brier"))  # no such error has limits
    with pytest.raises(TypeError, match=r"^mlflow_metric has no option 'alternative'; it has confidence_level, "):
        mlflow_metric("cutoff", alternative="greater")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence_level": 95}, r"^confidence_level is 95; write 0.95"),
        ({"method": "none"}, r"^method must be one of .*, got 'none'"),
        ({"measure": "smooth", "method": "exact"}, r"^method='exact' covers measure='cutoff' only"),
        ({"measure": "smooth", "cluster": np.arange(2000)}, r"^clusters are covered for measure='cutoff'"),
        ({"threshold": 0.5}, r"^threshold is for measure='risk_gap' only"),
        ({"measure": "risk_gap", "threshold": 3.0}, r"^threshold "),
        ({"relative_to": "cases"}, r"^relative_to must be one of "),
        ({"cluster": np.arange(2000), "serial": 70}, r"^serial must be a whole number from 0 to 50"),
        ({"max_cluster_size": 5}, r"^max_cluster_size says something of clusters, and none were named"),
        ({"cluster": "patient"}, r"^cluster is 'patient', not an array; pass a value for each row that is evaluated"),
        ({"sample_weight": 2.0}, r"^sample_weight is 2.0, not an array; "),
        ({"name": 5}, r"^name is 5, which MLflow does not take"),
        ({"name": ""}, r"^name is '', which MLflow does not take"),
        ({"name": "a?b"}, r"^name is 'a\?b', which MLflow does not take"),
        ({"name": "a/b"}, r"^name is 'a/b', which MLflow does not take"),
    ],
)
def test_options_that_no_rows_could_be_judged_by_are_refused_at_once(options: Any, message):
    with pytest.raises(calibrant.InputError, match=message):
        mlflow_metric(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"measure": "ece"},
        {"measure": "risk_gap", "threshold": (0.001, 0.002)},
        {"relative_to": "events"},
        {"cluster": ["a", "b"] * 1000, "serial": 50, "max_cluster_size": 1000},
        {"sample_weight": pd.Series(np.linspace(0.0, 1.0, 2000)), "pos_label": "late"},
    ],
    ids=str,
)
def test_a_metric_takes_what_some_rows_could_be_judged_by(options: Any):
    mlflow_metric(**options)


def test_the_numbers_of_a_generator_are_left_for_the_evaluation():
    generator = np.random.default_rng(5)
    mlflow_metric("smooth", rng=generator)
    assert generator.random() == np.random.default_rng(5).random()


@pytest.mark.parametrize("option", ["questions", "classes", "multilabel"])
def test_a_metric_is_about_one_event(option):
    with pytest.raises(TypeError, match=rf"^mlflow_metric has no option '{option}'; it has confidence_level, "):
        mlflow_metric("cutoff", **{option: None})


@pytest.mark.usefixtures("without_plots")
@pytest.mark.parametrize(("power", "verdict"), [(1.0, "certified"), (0.5, "refuted")])
def test_a_run_has_metrics_verdict_and_report(mlflow, rows, power, verdict):
    with mlflow.start_run() as run:
        report = log_calibration(rows.outcome, rows.forecast**power, max_error=0.05, relative_to="rows")
    data = mlflow.get_run(run.info.run_id).data
    certificate = calibrant.certify(rows.outcome, rows.forecast**power, max_error=0.05)
    found = calibrant.measure(rows.outcome, rows.forecast**power)
    assert data.tags["calibration.verdict"] == certificate.verdict == verdict == report.verdict
    assert data.tags["calibration.finding"] == certificate.finding()
    assert data.tags["calibration.limits"] == "each with 95% confidence"
    assert data.metrics == {
        **{f"calibration/{name}": getattr(certificate, name) for name in ("estimate", "lower", "upper")},
        **{
            f"calibration/{name}": pytest.approx(getattr(found, name), abs=1e-12)
            for name in ("cutoff", "smooth", "risk_gap", "brier", "calibration_in_the_large")
        },
    }
    page = mlflow.artifacts.load_text(f"{run.info.artifact_uri}/calibration/report.html")
    assert page == report.html()
    stored = json.loads(mlflow.artifacts.load_text(f"{run.info.artifact_uri}/calibration/report.json"))
    assert stored["verdict"] == verdict


@pytest.mark.usefixtures("without_plots")
def test_a_run_is_named_active_or_new(mlflow, rows):
    with mlflow.start_run() as earlier:
        pass
    log_calibration(rows.outcome, rows.forecast, run_id=earlier.info.run_id, folder="held out")
    assert mlflow.active_run() is None
    data = mlflow.get_run(earlier.info.run_id).data
    assert data.metrics["held out/upper"] > data.metrics["held out/estimate"]
    assert not any(name.endswith("verdict") for name in data.tags)  # nobody said what is good enough
    assert data.tags["held out.limits"] == "both with 95% confidence"
    log_calibration(rows.outcome, rows.forecast)
    assert "calibration/upper" in mlflow.get_run(mlflow.active_run().info.run_id).data.metrics


@pytest.mark.usefixtures("without_plots")
def test_models_are_told_apart(mlflow, rows):
    forecasts = {"first": rows.forecast, "second": rows.forecast**2}
    with mlflow.start_run() as run:
        log_calibration(rows.outcome, forecasts, max_error=0.05)
    data = mlflow.get_run(run.info.run_id).data
    assert data.tags["calibration.second.verdict"] == "refuted"
    assert data.metrics["calibration/first/upper"] < data.metrics["calibration/second/upper"]


@pytest.mark.usefixtures("without_plots")
def test_no_verdict_stands_beside_the_metrics_of_another_model(mlflow, rows):
    with mlflow.start_run() as run:
        mlflow.set_tag("other.verdict", "kept")
        log_calibration(rows.outcome, {"a": rows.forecast, "b": rows.forecast}, max_error=0.1, folder="both")
        log_calibration(rows.outcome, rows.forecast, max_error=0.1)
        log_calibration(rows.outcome, rows.forecast**3)
    tags = mlflow.get_run(run.info.run_id).data.tags
    verdicts = {name: said for name, said in tags.items() if name.endswith(("verdict", "finding"))}
    assert verdicts.keys() == {
        "other.verdict",
        *(f"both.{model}.{what}" for model in "ab" for what in ("verdict", "finding")),
    }
    assert tags["calibration.limits"] == "both with 95% confidence"


def said_in(mlflow, run, folder="calibration"):
    """Return what the tags and metrics of a folder say, without their path, and the tags under names of models."""
    data = mlflow.get_run(run.info.run_id).data
    tags = {name.removeprefix(f"{folder}."): said for name, said in data.tags.items() if name.startswith(f"{folder}.")}
    return tags, {name.removeprefix(f"{folder}/"): value for name, value in data.metrics.items()}


@pytest.mark.usefixtures("without_plots")
def test_tags_say_what_was_judged(mlflow, rows):
    with mlflow.start_run() as run:
        log_calibration(
            rows.outcome,
            rows.forecast,
            max_error=0.1,
            relative_to="events",
            method="hoeffding",
            confidence_level=0.9,
        )
        tags, _ = said_in(mlflow, run)
        assert tags.pop("finding").startswith("Undecided: ")
        assert tags == {
            "measure": "cutoff",
            "method": "hoeffding",
            "relative_to": "events",
            "limits": "each with 90% confidence",
            "max_error": "0.1",
            "verdict": "undecided",
        }
        log_calibration(rows.outcome, rows.forecast)
        tags, _ = said_in(mlflow, run)
    assert tags == {
        "measure": "cutoff",
        "method": "adaptive",
        "relative_to": "rows",
        "limits": "both with 95% confidence",
    }


@pytest.mark.usefixtures("without_plots")
def test_the_finding_names_the_group_that_the_verdict_rests_on(mlflow, rows):
    group = np.arange(2000) % 2
    with mlflow.start_run() as run:
        log_calibration(rows.outcome, np.where(group == 0, rows.forecast, rows.forecast**3), by=group, max_error=0.15)
    tags, _ = said_in(mlflow, run)
    assert tags["verdict"] == "refuted"
    assert tags["finding"].startswith("All rows: Undecided: ")
    assert (
        "Every group: Refuted: with 95% confidence the Cutoff calibration error is above 0.15 in 1 " in tags["finding"]
    )


@pytest.mark.usefixtures("without_plots")
def test_limits_of_censored_rows_are_approximate(mlflow, rows):
    seen = np.arange(2000) % 4 > 0
    time = np.where(rows.outcome == 1, 1.0, 3.0)
    with mlflow.start_run() as run:
        log_calibration(calibrant.horizon(np.where(seen, time, 0.5), seen, rows.forecast, at=2.0), max_error=0.2)
    tags, _ = said_in(mlflow, run)
    assert tags["limits"] == "each with about 95% confidence"
    assert tags["max_error"] == "0.2"
    assert "verdict" not in tags


@pytest.mark.usefixtures("without_plots")
def test_numbers_of_an_earlier_call_do_not_stand_beside_those_of_the_last(mlflow, rows):
    with mlflow.start_run() as run:
        mlflow.log_metric("other/upper", 1.0)
        log_calibration(rows.outcome, rows.forecast, max_error=0.1)
        log_calibration(rows.outcome, {"a": rows.forecast, "b": rows.forecast**3}, max_error=0.1)
        tags, metrics = said_in(mlflow, run)
        assert json.loads(tags["models"]) == ["a", "b"]
        assert np.isnan(metrics["upper"])
        assert "limits" not in tags
        log_calibration(rows.outcome, {"b": rows.forecast, "c": rows.forecast}, max_error=0.1)
        tags, metrics = said_in(mlflow, run)
        assert json.loads(tags["models"]) == ["b", "c"]
        assert {name.partition(".")[0] for name in tags} == {"models", "b", "c"}
        assert np.isnan(metrics["a/upper"])
        assert metrics["b/upper"] == metrics["c/upper"] < 0.1
        log_calibration(rows.outcome * 0.0, rows.forecast * 0.01, max_error=0.1, relative_to="events")
        tags, metrics = said_in(mlflow, run)
    assert tags["verdict"] == "refuted"
    assert not any("." in name for name in tags), "no model has a name"
    assert all(np.isnan(metrics[name]) for name in ("a/upper", "b/upper", "estimate", "upper"))
    assert metrics["cutoff"] == pytest.approx(0.005, abs=0.001)
    assert metrics["other/upper"] == 1.0


@pytest.mark.usefixtures("without_plots")
def test_an_old_verdict_is_gone_when_logging_fails_half_way(mlflow, rows, monkeypatch):
    with mlflow.start_run() as run:
        log_calibration(rows.outcome, rows.forecast, max_error=0.1)
        monkeypatch.setattr(mlflow.MlflowClient, "set_tag", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            log_calibration(rows.outcome, rows.forecast**3, max_error=0.1)
    data = mlflow.get_run(run.info.run_id).data
    assert data.metrics["calibration/estimate"] > 0.1
    assert "calibration.verdict" not in data.tags


@pytest.mark.usefixtures("without_plots")
@pytest.mark.parametrize("max_error", [None, 0.1])
def test_several_classes_are_judged_by_the_confidence_in_the_top_label(mlflow, rows, max_error):
    forecast = rows.forecast.to_numpy()
    several = np.stack([forecast / 2, forecast / 2, 1 - forecast], axis=1)
    label = np.where(rows.outcome == 1, np.arange(2000) % 2, 2)
    with mlflow.start_run() as run:
        log_calibration(label, several, max_error=max_error)
    data = mlflow.get_run(run.info.run_id).data
    assert data.tags["calibration.question"].startswith("the confidence in the top label")
    right = label == several.argmax(axis=1)
    expected = calibrant.cutoff_calibration_error(right, several.max(axis=1))
    assert data.metrics["calibration/estimate"] == data.metrics["calibration/cutoff"] == pytest.approx(expected)
    log_calibration(rows.outcome, np.stack([1 - forecast, forecast], axis=1), run_id=run.info.run_id)
    assert "calibration.question" not in mlflow.get_run(run.info.run_id).data.tags, "of two classes it is the event"


@pytest.mark.usefixtures("mlflow")
def test_options_of_no_report_are_refused(rows):
    with pytest.raises(TypeError, match=r"^log_calibration has no option 'max_err'; it has classes, "):
        log_calibration(rows.outcome, rows.forecast, max_err=0.1)
    with pytest.raises(calibrant.InputError, match=r"^folder is None, not a text; name a folder$"):
        log_calibration(rows.outcome, rows.forecast, folder=cast(Any, None))


def test_bad_rows_leave_no_trace(mlflow, rows):
    with mlflow.start_run() as run, pytest.raises(calibrant.InputError, match=r"^y_prob\[0\]"):
        log_calibration(rows.outcome, rows.forecast + 1.0)
    assert mlflow.get_run(run.info.run_id).data.metrics == {}


@pytest.mark.usefixtures("without_plots")
@pytest.mark.parametrize(
    ("folder", "second", "message"),
    [
        ("held%out", "second", r"^folder is 'held%out', which MLflow does not take .*; use letters, "),
        ("../other", "second", r"^folder is '../other', which MLflow does not take "),
        ("", "second", r"^folder is '', which MLflow does not take "),
        ("calibration", "gain > 0", r"^y_prob names a model 'gain > 0', which MLflow does not take "),
        ("calibration", "a//b", r"^y_prob names a model 'a//b', which MLflow does not take "),
    ],
)
def test_names_that_mlflow_refuses_start_no_run(mlflow, rows, folder, second, message):
    forecasts = {"first": rows.forecast, second: rows.forecast**2}
    with pytest.raises(calibrant.InputError, match=message):
        log_calibration(rows.outcome, forecasts, max_error=0.05, folder=folder)
    assert mlflow.active_run() is None
    assert mlflow.search_runs(output_format="list") == []


@pytest.mark.usefixtures("without_plots")
def test_tallies_are_named_too(mlflow, rows):
    tally = calibrant.Tally.from_arrays(rows.outcome, rows.forecast)
    with pytest.raises(calibrant.InputError, match=r"^y_true names a model 'a\?', which MLflow does not take "):
        log_calibration({"first": tally, "a?": tally})
    assert mlflow.active_run() is None


@pytest.mark.usefixtures("without_plots")
def test_a_run_that_it_started_and_mlflow_refused_is_failed(mlflow, rows):
    # A length that no rule of names speaks of.
    with pytest.raises(mlflow.exceptions.MlflowException, match="exceeds the maximum length"):
        log_calibration(rows.outcome, rows.forecast, folder="a" * 300)
    assert mlflow.active_run() is None
    (run,) = mlflow.search_runs(output_format="list")
    assert run.info.status == "FAILED"


@pytest.mark.usefixtures("without_plots")
@pytest.mark.parametrize("how", ["active", "named"])
def test_a_run_of_somebody_else_stays_as_it_was(mlflow, rows, how):
    given = mlflow.start_run() if how == "active" else mlflow.MlflowClient().create_run("0")
    run_id = None if how == "active" else given.info.run_id
    with pytest.raises(mlflow.exceptions.MlflowException, match="exceeds the maximum length"):
        log_calibration(rows.outcome, rows.forecast, run_id=run_id, folder="a" * 300)
    assert mlflow.get_run(given.info.run_id).info.status == "RUNNING"
    assert (mlflow.active_run() is None) == (how == "named")


@pytest.mark.parametrize("function", [mlflow_metric, lambda: log_calibration([0, 1], [0.2, 0.7])])
def test_without_mlflow_it_says_what_to_install(function: Any, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ImportError, match=r"needs mlflow; install it, as in: pip install mlflow$"):
        function()
