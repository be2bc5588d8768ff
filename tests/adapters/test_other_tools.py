"""Tools that are too large, or bring too much along, to be installed for every run.

They are the group "tools" of pyproject.toml; the job of that name in continuous integration installs them once a week.
"""

import pytest

from calibrant.adapters import get_scorer, sql_test


def test_dbt_runs_the_statement_as_a_singular_test(tmp_path):
    dbt = pytest.importorskip("dbt.cli.main", reason="needs dbt: pip install --group tools")
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "scores.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE scores AS SELECT i % 2 AS late, 0.25 + 0.5 * (i % 2) AS p FROM range(4000) t(i)"
        )
    (tmp_path / "dbt_project.yml").write_text("name: forecasts\nversion: '1.0.0'\nprofile: forecasts\n")
    (tmp_path / "profiles.yml").write_text(
        f"forecasts:\n  target: here\n  outputs:\n    here: {{type: duckdb, path: '{tmp_path / 'scores.duckdb'}'}}\n"
    )
    (tmp_path / "tests").mkdir()
    for name, limit in (("lenient", 0.3), ("strict", 0.05)):
        statement = sql_test("{{ source('given', 'scores') }}", y_true="late", y_prob="p", max_error=limit)
        (tmp_path / "tests" / f"{name}.sql").write_text(statement)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "sources.yml").write_text(
        "version: 2\nsources:\n  - {name: given, schema: main, tables: [{name: scores}]}\n"
    )
    folders = ["--project-dir", str(tmp_path), "--profiles-dir", str(tmp_path)]
    outcome = dbt.dbtRunner().invoke(["test", *folders])
    assert outcome.exception is None
    assert {each.node.name: str(each.status) for each in outcome.result} == {"lenient": "pass", "strict": "fail"}


def test_skore_shows_the_scorer_beside_its_own():
    skore = pytest.importorskip("skore", reason="needs skore: pip install --group tools")
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.datasets import load_breast_cancer
    from sklearn.naive_bayes import GaussianNB

    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = X[::2], X[1::2], y[::2], y[1::2]
    plain, calibrated = GaussianNB().fit(X, y), CalibratedClassifierCV(GaussianNB()).fit(X, y)
    report = skore.ComparisonReport(
        {
            name: skore.EstimatorReport(each, X_test=X_test, y_test=y_test)
            for name, each in (("plain", plain), ("calibrated", calibrated))
        }
    )
    scorer = get_scorer("neg_cutoff_calibration_error")
    report.metrics.add(scorer, name="cutoff_calibration_error")
    frame = report.metrics.summarize(metric=["cutoff_calibration_error", "brier_score"]).frame()
    for name, each in (("plain", plain), ("calibrated", calibrated)):
        assert frame.loc["cutoff_calibration_error", name] == pytest.approx(-scorer(each, X_test, y_test), rel=1e-9)
