"""Spark gives what memory gives, through aggregates that stay in the cluster."""

import re
from pathlib import Path

import numpy as np
import pytest
from scan_cases import FORECASTS, KINDS, QUESTIONS, SIZE, answer, outcomes, same
from spark_cases import needs_java, spark_frame

import calibrant
from calibrant import scan
from calibrant.rows.grids import FIRST_GRID
from calibrant.rows.sources import HistogramRequest

pytestmark = needs_java


def frame(spark, columns, partitions=3):
    return spark_frame(spark, columns).repartition(partitions)


@pytest.mark.usefixtures("as_if_large")
class TestSameAnswers:
    @pytest.mark.parametrize("name", FORECASTS)
    def test_as_memory_gives(self, spark, name):
        y, _ = outcomes(FORECASTS[name], "plain")
        with scan(frame(spark, {"y": y, "p": FORECASTS[name]}), y_true="y", y_prob="p") as rows:
            for question in ("worst interval", "adaptive", "events", "saving"):
                same(QUESTIONS[question](rows), answer(name, "plain", question))

    @pytest.mark.parametrize("kind", KINDS[1:])
    def test_all_distributions_as_groups(self, spark, kind):
        names = [name for name in FORECASTS if name != "zero and one"]  # fractions would look like the forecasts
        forecast = np.concatenate([FORECASTS[name] for name in names])
        y, w = outcomes(forecast, kind)
        by = np.repeat(names, SIZE)
        columns = {"y": y, "p": forecast, "g": by, "w": np.ones(y.size) if w is None else w}
        weight = None if w is None else "w"
        with scan(frame(spark, columns), y_true="y", y_prob="p", sample_weight=weight, by="g") as rows:
            found = calibrant.certify(rows, max_error=0.01).to_dict()
        expected = calibrant.certify(y, forecast, sample_weight=w, by=by, max_error=0.01).to_dict()
        same(found, expected)

    def test_hints_at_mistakes_are_the_same(self, spark):
        p = FORECASTS["uniform"]
        y, _ = outcomes(p, "plain")
        mistakes = {"other_class": (y, 1.0 - p), "hard_predictions": (y, np.round(p)), "one_class": (0.0 * y, p)}
        for code, (outcome, forecast) in mistakes.items():
            with scan(frame(spark, {"y": outcome, "p": forecast}), y_true="y", y_prob="p") as rows:
                found = calibrant.certify(rows, max_error=0.1).notes
            assert found == calibrant.certify(outcome, forecast, max_error=0.1).notes
            assert code in [getattr(note, "code", "") for note in found]

    def test_with_few_rows_at_a_time(self, spark):
        y, _ = outcomes(FORECASTS["uniform"], "plain")
        source = frame(spark, {"y": y, "p": FORECASTS["uniform"]})
        with scan(source, y_true="y", y_prob="p", fetch_limit=100) as rows:
            same(QUESTIONS["adaptive"](rows), answer("uniform", "plain", "adaptive"))
            assert rows.rows_fetched <= 200


def test_any_partitioning_and_empty_partitions(spark):
    y, _ = outcomes(FORECASTS["uniform"], "plain")
    source = frame(spark, {"y": y, "p": FORECASTS["uniform"]}, 1)
    expected = calibrant.cutoff_calibration_error(y, FORECASTS["uniform"])
    for partitions in (source, source.repartition(9), source.filter("p > 0.5").union(source.filter("p <= 0.5"))):
        with scan(partitions, y_true="y", y_prob="p", engine="spark") as rows:
            same(calibrant.cutoff_calibration_error(rows), expected)
    empty = source.filter("p > 2")
    with scan(source.union(empty), y_true="y", y_prob="p") as rows:
        assert rows.cells().row_total == SIZE
    with scan(empty, y_true="y", y_prob="p") as rows, pytest.raises(ValueError, match="the DataFrame has no rows"):
        rows.cells()


def test_hostile_names_and_types(spark):
    name = "a.b`\"; DROP TABLE x; -- it's \\ 概率"
    forecast = FORECASTS["rounded"].astype(np.float32)
    event = np.random.default_rng(3).random(SIZE) < forecast
    labels = np.where(event, "it's \\n `%", "no")
    columns = {name: forecast, "y" + name: labels, "g" + name: np.where(forecast > 0.5, "\\'", "'")}
    with scan(frame(spark, columns), y_true="y" + name, y_prob=name, pos_label="it's \\n `%") as rows:
        same(calibrant.cutoff_calibration_error(rows), calibrant.cutoff_calibration_error(event, forecast))
    three = {**columns, "y" + name: np.where(forecast > 0.9, np.where(event, labels, "never"), labels)}
    with scan(frame(spark, three), y_true="y" + name, y_prob=name, pos_label="it's \\n `%") as rows:
        with pytest.warns(calibrant.CalibrationWarning, match="y_true holds 3 labels"):
            found = calibrant.cutoff_calibration_error(rows)
        same(found, calibrant.cutoff_calibration_error(event, forecast))
    with scan(frame(spark, columns), y_true="y" + name, y_prob=name, pos_label="it's \\n `%", by="g" + name) as rows:
        assert rows.groups == ("'", "\\'")
        cells = rows.histograms([HistogramRequest(group, FIRST_GRID) for group in (0, 1)])
        assert [part.row_total for part in cells] == [int((forecast <= 0.5).sum()), int((forecast > 0.5).sum())]


def test_bad_rows_are_counted_and_shown(spark):
    forecast = FORECASTS["uniform"].copy()
    forecast[[5, 9]] = 1.25, np.nan
    y, _ = outcomes(FORECASTS["uniform"], "plain")
    with scan(frame(spark, {"y": y, "p": forecast}), y_true="y", y_prob="p") as rows:
        message = (
            r"y_prob \(column 'p'\) is missing in 1 of 3,000 rows, .* where p = missing, y = [01]; .* is out of range"
        )
        with pytest.raises(ValueError, match=message):
            rows.cells()
    with pytest.raises(ValueError, match="has no column 'q'; its columns are 'y', 'p'"):
        scan(frame(spark, {"y": y, "p": forecast}), y_true="y", y_prob="q")
    broken = spark.sql("SELECT 1 AS y, CAST(raise_error(concat('x', id)) AS DOUBLE) AS p FROM range(3)")
    with scan(broken, y_true="y", y_prob="p") as rows, pytest.raises(ValueError, match="the DataFrame cannot be read"):
        rows.cells()


@pytest.mark.usefixtures("as_if_large")
def test_the_plan_has_no_window_and_collects_no_more_than_candidates(spark, monkeypatch):
    from calibrant.engines.spark import SparkEngine

    asked = []
    run = SparkEngine.run

    def watched(self, statement):
        result = run(self, statement)
        asked.append((statement, len(next(iter(result.values())))))
        return result

    monkeypatch.setattr(SparkEngine, "run", watched)
    forecast = np.random.default_rng(8).random(20_000)
    y, _ = outcomes(forecast, "plain")
    with scan(frame(spark, {"y": y, "p": forecast}), y_true="y", y_prob="p") as rows:
        calibrant.certify(rows, max_error=0.05)
        assert len(asked) == rows.scans >= 2
        fetched = 0
        for statement, count in asked:
            plan = spark.sql(statement)._jdf.queryExecution().executedPlan().toString()
            for refused in ("Window", "Python", "CartesianProduct", "NestedLoop"):
                assert refused not in plan
            if "HashAggregate" not in plan:
                assert "BroadcastHashJoin" in plan
                fetched += count
        assert fetched == rows.rows_fetched < forecast.size // 4


@pytest.mark.parametrize("questions", ["confidence", "top_label"])
def test_several_classes_as_memory_gives(spark, questions):
    rng = np.random.default_rng(5)
    y_prob = rng.dirichlet(np.ones(3), 500).round(1)
    y_prob[:, 2] = 1.0 - y_prob[:, 0] - y_prob[:, 1]
    y_prob = np.abs(y_prob.round(1))
    label = np.array(["a", "b", "c"])[rng.integers(0, 3, 500)]
    source = frame(spark, {"y": label, "p_c": y_prob[:, 2], "p_a": y_prob[:, 0], "p_b": y_prob[:, 1]})
    asked = {"max_error": 0.2, "questions": questions}
    with scan(source, y_true="y", y_prob=["p_c", "p_a", "p_b"]) as rows:
        found = calibrant.certify(rows, **asked).to_dict()
    same(found, calibrant.certify(label, y_prob[:, [2, 0, 1]], classes=["c", "a", "b"], **asked).to_dict())


@pytest.mark.filterwarnings("ignore")  # by which Spark and pandas 3 speak of each other in toPandas
def test_the_documented_counts_of_a_group_by_are_those_of_the_rows(spark):
    from pyspark.sql import functions

    guide = Path(__file__).parents[2] / "docs" / "how-to" / "integrations.md"
    (statement,) = re.findall(r"^scores\.groupBy\(.*$", guide.read_text(encoding="utf-8"), flags=re.M)
    y, p = outcomes(FORECASTS["uniform"], "plain")[0], FORECASTS["uniform"].round(2)
    names = {name: getattr(functions, name) for name in ("count", "sum", "col")}
    counts = eval(statement, {**names, "scores": frame(spark, {"late": y, "forecast": p})})
    tally = calibrant.Tally.from_counts(counts["forecast"], counts["rows"], counts["events"])
    expected = calibrant.Tally.from_arrays(y, p)
    assert tally.forecast.tolist() == expected.forecast.tolist()
    assert (tally.rows.tolist(), tally.events.tolist()) == (expected.rows.tolist(), expected.events.tolist())
