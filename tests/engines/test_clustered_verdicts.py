"""Verdicts on rows in clusters that stay where they are: the same as those on arrays, however many rows there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from calibrant import calibration_test, certify, check_independence, confidence_interval, risk_bands, scan

QUESTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"method": "exact"},
    {"method": "normal"},
    {"method": "hoeffding"},
    {"cluster_target": "clusters"},
    {"max_cluster_size": 90},
    {"serial": 1},
)


def rows(weighted: bool) -> dict[str, Any]:
    rng = np.random.default_rng(11)
    label = np.repeat(np.arange(120), rng.integers(20, 80, 120))
    p = rng.beta(0.5, 3.0, label.size)
    p[: label.size // 10] = 0.25  # a forecast that many rows have
    y = (rng.random(label.size) < np.clip(p + rng.normal(0.0, 0.1, 120)[label], 0.0, 1.0)).astype(int)
    order = rng.permutation(label.size)
    columns: dict[str, Any] = {"y": y[order], "p": p[order], "site": np.array([f"s{k:03d}" for k in label[order]])}
    if weighted:
        columns["w"] = rng.uniform(0.5, 1.0, label.size)
    return columns


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", QUESTIONS, ids=str)
@pytest.mark.parametrize("few_below", [100_000, 1000])
def test_arrays_and_scans_say_the_same(options, weighted, few_below, monkeypatch):
    monkeypatch.setattr("calibrant.rows.intake.SORT_BELOW_ROWS", few_below)
    columns = rows(weighted)
    weight = "w" if weighted else None
    arrays = {"cluster": columns["site"], "sample_weight": columns.get("w")}
    expected = certify(columns["y"], columns["p"], max_error=0.1, **arrays, **options)
    with scan(pa.table(columns), y_true="y", y_prob="p", sample_weight=weight, cluster="site") as source:
        found = certify(source, max_error=0.1, **options)
    for name in ("estimate", "lower", "upper", "n_eff"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-10, abs=1e-13)
    assert found.verdict == expected.verdict
    assert found.clusters is not None
    assert expected.clusters is not None
    assert found.clusters.count == expected.clusters.count == 120


def test_few_rows_are_opened(monkeypatch):
    monkeypatch.setattr("calibrant.rows.intake.SORT_BELOW_ROWS", 1000)
    columns = rows(weighted=False)
    with scan(pa.table(columns), y_true="y", y_prob="p", cluster="site") as source:
        confidence_interval(source, alternative="less")
        assert 0 < source.rows_fetched < columns["y"].size


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (None, "cluster was given together with a source of rows; name the clusters' column"),
        ("site", "cluster was given together with rows that are in clusters already; leave it out"),
    ],
)
def test_labels_beside_a_scan_are_refused(column, message):
    columns = rows(weighted=False)
    with (
        scan(pa.table(columns), y_true="y", y_prob="p", cluster=column) as source,
        pytest.raises(ValueError, match=message),
    ):
        certify(source, max_error=0.1, cluster=columns["site"])


def test_texts_that_count_in_another_order_have_no_neighbours():
    columns = rows(weighted=False)
    columns["site"] = np.array([f"s{int(each[1:])}" for each in columns["site"]])
    with (
        scan(pa.table(columns), y_true="y", y_prob="p", cluster="site") as source,
        pytest.raises(ValueError, match="cluster holds texts, of which 's109' comes before 's11'"),
    ):
        certify(source, max_error=0.1, serial=1)


@pytest.mark.parametrize("few_below", [100_000, 1000])
def test_bands_tests_and_the_check_of_independence_say_the_same(few_below, monkeypatch):
    monkeypatch.setattr("calibrant.rows.intake.SORT_BELOW_ROWS", few_below)
    columns = rows(weighted=False)
    y, p, site = columns["y"], columns["p"], columns["site"]
    with scan(pa.table(columns), y_true="y", y_prob="p", cluster="site") as source:
        bands, expected = risk_bands(source, cutoffs=[0.1, 0.3]), risk_bands(y, p, cutoffs=[0.1, 0.3], cluster=site)
        assert bands.rows.tolist() == expected.rows.tolist()
        for name in ("lower", "upper", "inherited"):
            assert getattr(bands, name) == pytest.approx(getattr(expected, name), rel=1e-10)
        method: Any
        for method in ("evidence", "asymptotic"):
            tested = calibration_test(source, method=method, n_resamples=199, rng=0)
            same = calibration_test(y, p, cluster=site, method=method, n_resamples=199, rng=0)
            assert tested.pvalue == pytest.approx(same.pvalue, rel=1e-9)
            assert tested.statistic == pytest.approx(same.statistic, rel=1e-9)
        checked, of_arrays = check_independence(source), check_independence(y, p, site)
        for name in ("upper_rows", "upper_clusters"):
            assert getattr(checked, name) == pytest.approx(getattr(of_arrays, name), rel=1e-9)
        assert checked.correlation == pytest.approx(of_arrays.correlation, rel=0.1)  # strata of cells, not of forecasts


def test_weights_of_many_rows_that_stay_where_they_are_cannot_be_left_out(monkeypatch):
    monkeypatch.setattr("calibrant.rows.intake.SORT_BELOW_ROWS", 1000)
    with (
        scan(pa.table(rows(weighted=True)), y_true="y", y_prob="p", sample_weight="w", cluster="site") as source,
        pytest.raises(ValueError, match="sample_weight was given for many rows of a scan"),
    ):
        check_independence(source)
