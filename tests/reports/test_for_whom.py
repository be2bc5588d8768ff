"""The section of the report that says for whom forecasts are wrong."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_cases import answer, call
from table_cases import write

import calibrant
from calibrant import CalibrationReport, worst_group
from calibrant.certificates import WorstGroup
from calibrant.reports.headlines import headline_of, lines_of

pytestmark = pytest.mark.usefixtures("without_plots")
ROWS = 600


def drawn(shift):
    rng = np.random.default_rng(4)
    p, age = rng.random(ROWS).round(3), rng.integers(20, 90, ROWS)
    ward = rng.choice(["<b>north</b>", "south"], ROWS)
    y = rng.random(ROWS) < np.clip(p + shift * np.where(age >= 60, 1, -0.3), 0, 1)
    return y, p, {"age": age, "ward": ward}


def test_a_group_that_is_off_is_named_on_the_page_and_in_markdown():
    y, p, X = drawn(0.35)
    report = CalibrationReport.from_predictions(y, p, features=X, max_error=0.2)
    found = report.summary.models[0].worst_group
    assert found == worst_group(y, p, X)
    for text in (report.html(), report.markdown()):
        assert "For whom is it wrong?" in text
        assert "Some group is off" in text
        assert "some group by at" in text
        assert "<b>north</b>" not in text
    assert found is not None
    assert found.worst.feature == "age"
    assert found.worst.group.replace(">", "&gt;") in report.html()
    assert "features=features" in report.html()
    assert "--features age,ward" in report.html()
    rebuilt = type(report.summary).from_json(report.json())
    assert rebuilt == report.summary
    assert "Worst on age >= " in str(report)


def test_a_certificate_of_all_rows_names_the_group_that_is_off():
    y, p, X = drawn(0.35)
    report = CalibrationReport.from_predictions(y, p, features=X, max_error=0.16)
    found = report.summary.models[0].worst_group
    assert report.verdict == "certified"
    assert found is not None
    assert not found.of_all_rows
    said = headline_of(report.summary.models[0])
    assert f"some group is off; on these rows most of all {found.worst.group}" in said.whom
    for upper, advice in (
        (0.15, f"If {found.worst.group} matters to you"),
        (0.17, f"need no repair for this limit, but {found.worst.group} may"),
    ):
        model = replace(report.summary.models[0], worst_group=replace(found, upper=upper))
        assert advice in headline_of(model).next_step
    assert "**For whom:** With 95% confidence some group is off" in report.markdown()
    assert 'id="m1-off"' in report.html()
    assert "For whom: With 95% confidence" in "\n".join(lines_of(report.summary))


def test_where_all_forecasts_are_off_no_group_is_blamed(tmp_path):
    rng = np.random.default_rng(8)
    p, age = rng.random(ROWS).round(3), rng.integers(20, 90, ROWS)
    y = rng.random(ROWS) < p**3
    report = CalibrationReport.from_predictions(y, p, features={"age": age}, max_error=0.4)
    found = report.summary.models[0].worst_group
    assert found is not None
    assert found.of_all_rows
    assert found.lower > 0.0
    for text in (report.markdown(), report.html()):
        assert "No group stands out" in text
        assert "recalibrate them, then look again" in text
        assert "the feature, or recalibrate the group apart" not in text
        assert "Some group is off" not in text
    file = write({"y": y.astype(int), "p": p, "age": age}, tmp_path / "t.csv", "csv")
    said = call("groups", file).stdout
    assert "Next: all forecasts are off, and no group much further: recalibrate them" in said
    assert "give the model the feature" not in said


def test_what_is_wrong_with_features_is_said_of_features():
    y, p, X = [0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8], {"age": [1, 2, 3]}
    with pytest.raises(calibrant.InputError, match=r"^features\['age'\] has 3 values for 4 rows"):
        CalibrationReport.from_predictions(y, p, features=X, max_error=0.4)


def test_calibrated_forecasts_are_wrong_for_nobody_for_sure():
    y, p, X = drawn(0.0)
    report = CalibrationReport.from_predictions(y, p, features=X)
    assert "No group is off for sure" in report.markdown()
    assert "That any group is off is not shown" in report.markdown()
    assert "For whom is it wrong?" not in CalibrationReport.from_predictions(y, p).markdown()


def test_many_features_are_cut_short_and_several_models_have_a_section_each():
    y, p, X = drawn(0.35)
    rng = np.random.default_rng(0)
    many = {f"x{k}": rng.integers(0, 3, ROWS) for k in range(24)}
    report = CalibrationReport.from_predictions(y, {"old": p, "new": p**1.1}, features=many)
    assert report.markdown().count("4 features with smaller errors are not in the table") == 2
    assert X


def test_rows_in_clusters_and_summaries():
    y, p, X = drawn(0.35)
    report = CalibrationReport.from_predictions(y, p, features=X, cluster=np.arange(ROWS) // 2)
    assert report.summary.models[0].worst_group is None
    assert "independent of each other" in report.html()
    given: Any = calibrant.Tally.from_arrays(y, p)
    with pytest.raises(calibrant.InputError, match="features was given together with a Tally"):
        CalibrationReport.from_predictions(given, features=X)


def test_the_command_line(tmp_path):
    y, p, X = drawn(0.35)
    age = X["age"].astype(float)
    file = write({"y": y.astype(int), "p": p, "age": age, "ward": X["ward"]}, tmp_path / "t.parquet", "parquet")
    text = call("report", file, "--features", "age,ward", "--format", "md").stdout
    assert "For whom is it wrong?" in text
    page = tmp_path / "page.html"
    assert "For whom: With 95% confidence some group" in call("report", file, "--features", "age", "--out", page).stdout
    found = answer("groups", file, "--max-error", 0.02, exit_code=1)["result"]
    expected = worst_group(y.astype(int), p, {"age": age, "ward": X["ward"]}, max_error=0.02)
    assert {"schema": "calibrant/1", **found} == json.loads(expected.to_json())
    assert WorstGroup.from_dict(found) == expected
    said = call("groups", file, "--features", "age")
    assert said.exit_code == 0
    assert "Worst on age >= " in said.stdout
    assert "give the model the feature" in said.stdout


def test_texts_become_numbers_truth_values_or_labels_and_may_be_missing(tmp_path):
    file = tmp_path / "t.csv"
    lines = ["y,p,age,old,ward"]
    for k in range(60):
        age = "" if k % 10 == 0 else str(20 + k)
        lines.append(
            f"{int(k % 3 == 0)},{(k % 7) / 10 + 0.1:.1f},{age},{k > 30},{'NA' if k % 15 == 1 else 'ab'[k % 2]}"
        )
    file.write_text("\n".join(lines) + "\n")
    found = answer("groups", file)["result"]
    assert found["features"] == ["age", "old", "ward"]
    kinds = {each["feature"]: each["kind"] for each in found["by_feature"]}
    assert set(kinds.values()) <= {"at most", "at least", "is", "missing", "known", "all"}
    document = answer("certify", file, "--max-error", 1, "--groups", "old", "--groups", "ward")
    assert document["result"]["questions"] == ["old", "ward: a", "ward: b", "ward: missing"]
    within = answer("certify", file, "--max-error", 1, "--groups", "ward", "--scale", "group")["result"]
    assert (within["kind"], within["disjoint"]) == ("within_groups", True)


def test_dates_in_a_csv_file_have_the_order_that_they_have_in_parquet(tmp_path):
    y, p, _ = drawn(0.35)
    day = np.datetime64("2026-01-01") + np.arange(y.size) % 100
    columns = {"y": y.astype(int), "p": p, "day": day, "__index_level_0__": np.arange(y.size)}
    found = answer("groups", write(columns, tmp_path / "t.parquet", "parquet"))["result"]
    assert found["features"] == ["day"]  # and not the labels of rows that pandas writes
    text = "\n".join(["y,p,day", *(f"{int(a)},{float(b)!r},{c}" for a, b, c in zip(y, p, day, strict=True))])
    (tmp_path / "t.csv").write_text(text + "\n")
    assert answer("groups", tmp_path / "t.csv")["result"] == found
    assert found["by_feature"][0]["kind"] in ("at most", "at least", "all")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_without_a_group_are_left_out_where_that_is_asked(tmp_path, kind):
    y, p, X = drawn(0.0)
    old, ward = (X["age"] >= 60).astype(object), X["ward"].astype(object)
    old[:7], ward[5:9] = None, None
    rows = list(zip(y.astype(int), p, old, ward, strict=True))
    file = tmp_path / f"t.{kind}"
    if kind == "csv":
        text = ["y,p,old,ward", *(",".join("" if each is None else str(each) for each in row) for row in rows)]
        file.write_text("\n".join(text) + "\n")
    else:
        pd.DataFrame(rows, columns=["y", "p", "old", "ward"]).to_parquet(file)
    asked = ("certify", file, "--max-error", 0.3, "--groups", "old,ward")
    said = call(*asked)
    assert said.exit_code == 2
    assert "fill in false, or leave such rows out with --drop-missing" in said.stderr
    document = answer(*asked, "--drop-missing")
    assert document["input"]["left_out"] == 9
    assert document["result"]["questions"] == ["old", "ward: <b>north</b>", "ward: south"]
    searched = answer("groups", file, "--features", "old,ward", "--drop-missing")
    assert searched["input"]["left_out"] == 0  # there missing values are a group of their own


def test_bad_usage(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("y,p\n0,0.1\n1,0.8\n")
    assert "no column is left" in call("groups", file).stderr
    assert "--groups" in call("certify", file, "--max-error", 0.1, "--scale", "mass").stderr
    assert call("groups", file, "--features", "age").exit_code == 2
