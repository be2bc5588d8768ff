"""Reports on several models: the differences of their errors on the same rows, in words, tables and JSON."""

import re
from typing import Any

import numpy as np
import pytest
from cli_cases import answer, call
from table_cases import write

import calibrant
from calibrant import Tally
from calibrant.core.errors import CalibrantError
from calibrant.core.words import rounded_down, rounded_up
from calibrant.reports import ReportSummary
from calibrant.reports.headlines import lines_of, side_by_side
from calibrant.rows.intake import as_clustered

CalibrationReport: Any = calibrant.CalibrationReport
pytestmark = pytest.mark.usefixtures("without_plots")

RNG = np.random.default_rng(5)
ROWS = 1200
Y_PROB = RNG.uniform(0.05, 0.95, ROWS).round(4)
Y_TRUE = (RNG.random(ROWS) < Y_PROB).astype(int)
SITE = np.arange(ROWS) // 48
WEIGHT = RNG.integers(1, 4, ROWS).astype(float)
TWO = {"old": np.sqrt(Y_PROB), "new": Y_PROB}
FIVE = {f"model {power}": Y_PROB**power for power in (1.0, 1.05, 1.1, 1.15, 2.5)}


@pytest.fixture(scope="module")
def report():
    return CalibrationReport.from_predictions(Y_TRUE, TWO, max_error=0.08)


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "rows": ({}, {}),
    "no limit": ({"max_error": None}, {}),
    "weights": ({"sample_weight": WEIGHT}, {"sample_weight": WEIGHT}),
    "clusters": ({"cluster": SITE}, {"cluster": SITE}),
    "largest": ({"cluster": SITE, "max_cluster_size": 60}, {"cluster": SITE, "max_cluster_size": 60}),
    "seed": ({"rng": 7, "confidence_level": 0.9}, {"rng": 7, "confidence_level": 0.9}),
    "another method": ({"method": "hoeffding"}, {}),
    "shares of events": ({"relative_to": "events", "max_error": 0.2}, {}),
}


@pytest.mark.parametrize(("given", "asked"), CASES.values(), ids=CASES.keys())
def test_differences_are_those_of_compare_models(given, asked):
    summary = CalibrationReport.from_predictions(Y_TRUE, TWO, **{"max_error": 0.08, **given}).summary
    (found,) = summary.comparison.differences
    (expected,) = calibrant.compare_models(Y_TRUE, TWO, **asked).differences
    assert (found.estimate, found.lower, found.upper) == pytest.approx(
        (expected.estimate, expected.lower, expected.upper), rel=1e-9
    )
    assert (found.verdict, found.where, found.paired) == (expected.verdict, expected.where, True)
    assert summary.omissions == ()


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_the_page_says_which_model_is_better_and_where(form, report):
    said = re.sub(r"<[^>]+>", " ", getattr(report, form)()).replace("\\", "")
    (found,) = report.summary.comparison.differences
    assert found.better == "new"
    for words in (
        "new is better calibrated than old",
        "old - new",
        f"{found.estimate:+.4f}",
        rounded_down(found.lower),
        rounded_up(found.upper),
        "All these limits hold together with 95% confidence, beside the verdicts above.",
        "old and new differ most on forecasts from",
        "Differences of models are judged row by row",
    ):
        assert words in said, words


def test_bars_of_differences_have_0_in_the_middle(report):
    (found,) = report.summary.comparison.differences
    table = report.html().partition('<div id="differences">')[2].partition("</table>")[0]
    (start, width), (middle,), (zero,) = (
        [float(number) for number in numbers]
        for numbers in (
            re.findall(r'class="range" x="([\d.]+)" y="6" width="([\d.]+)"', table)[0],
            re.findall(r'class="estimate" d="M([\d.]+) ', table),
            re.findall(r'class="axis" d="M([\d.]+) 0V24"', table),
        )
    )
    assert zero == 100.0
    assert (start - zero) / (start + width - zero) == pytest.approx(found.lower / found.upper, abs=1e-3)
    assert (middle - zero) / (start + width - zero) == pytest.approx(found.estimate / found.upper, abs=1e-3)
    assert start + width < 200.0


def test_the_json_holds_the_comparison(report):
    again = ReportSummary.from_json(report.json())
    assert again == report.summary
    assert again.comparison == report.summary.comparison
    assert "new is better calibrated" in str(again)
    with pytest.raises(CalibrantError, match="which are not its models"):
        ReportSummary.from_json(report.json().replace('"name": "new"', '"name": "fresh"', 1))


def test_the_order_of_rows_changes_no_byte():
    count = 24_000
    rng = np.random.default_rng(0)
    y_prob, weight = rng.random(count), rng.random(count)
    y_true, cluster, order = rng.random(count) < y_prob, np.arange(count) // 800, rng.permutation(count)
    for given in ({"sample_weight": weight}, {"sample_weight": weight, "cluster": cluster}):
        straight, turned = (
            CalibrationReport.from_predictions(
                y_true[rows], {"a": y_prob[rows], "b": y_prob[rows] ** 1.2}, **{k: v[rows] for k, v in given.items()}
            ).json()
            for rows in (np.arange(count), order)
        )
        assert straight == turned


def test_more_than_four_models_are_compared_with_the_first():
    found = CalibrationReport.from_predictions(Y_TRUE, FIVE)
    comparison = found.summary.comparison
    assert comparison.reference == "model 1.0"
    assert len(comparison.differences) == 4
    assert "Each model is compared with model 1.0." in found.html()
    four = CalibrationReport.from_predictions(Y_TRUE, dict(list(FIVE.items())[1:])).summary.comparison
    assert (four.reference, len(four.differences)) == (None, 6)


def test_one_sentence_says_what_was_told_apart():
    names = ["model 1.0", "model 1.05", "model 2.5"]
    models = {name: FIVE[name] for name in names}
    compared = calibrant.compare_models
    said = side_by_side(compared(Y_TRUE, {"a": Y_PROB, "b": Y_PROB}))
    assert said == "These rows do not show which of a and b has the smaller Cutoff error"
    same = dict.fromkeys("abc", Y_PROB)
    said = side_by_side(compared(Y_TRUE, same))
    assert said == "These rows show of no two models compared which has the smaller Cutoff error"
    said = side_by_side(compared(Y_TRUE, models))
    assert said == "In 2 of 3 comparisons one model is surely better calibrated"
    worse = {"a": Y_PROB**2.5, "b": Y_PROB**0.4, "c": Y_PROB}
    assert side_by_side(compared(Y_TRUE, worse)) == "c is better calibrated than all others"


def test_the_few_lines_of_the_command_line_hold_the_differences(report):
    lines = lines_of(report.summary)
    assert "Side by side: new is better calibrated than old." in lines
    assert lines[-1].startswith("old - new: new is better calibrated, +0.")


TALLIES = {name: Tally.from_arrays(Y_TRUE, y_prob) for name, y_prob in TWO.items()}
CLUSTERED = {name: as_clustered(Y_TRUE, y_prob, cluster=SITE) for name, y_prob in TWO.items()}
LEFT_OUT: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "tallies": ((TALLIES,), {}, "models are compared row by row"),
    "sources": ((CLUSTERED,), {}, "models are compared row by row"),
    "clusters once": (
        (Y_TRUE, TWO),
        {"cluster": SITE, "cluster_target": "clusters"},
        "and not where each cluster does",
    ),
    "neighbours": ((Y_TRUE, TWO), {"cluster": SITE, "serial": 1}, "where neighbouring clusters may depend"),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_what_cannot_be_compared_is_left_out_with_the_reason(case):
    given, options, reason = LEFT_OUT[case]
    report = CalibrationReport.from_predictions(*given, **options)
    assert report.summary.comparison is None
    (omission,) = report.summary.omissions
    assert omission.section == "differences"
    assert reason in omission.reason
    assert f"Differences of the models are left out: {omission.reason}." in report.html()
    assert f"Left out, differences of the models: {omission.reason}." in report.markdown()
    assert ReportSummary.from_json(report.json()) == report.summary
    assert str(omission) in str(report)


def test_one_model_has_no_differences():
    report = CalibrationReport.from_predictions(Y_TRUE, Y_PROB)
    assert (report.summary.comparison, report.summary.omissions) == (None, ())
    assert "differences" not in report.markdown()
    assert 'id="differences"' not in report.html()


def test_rows_of_a_file_are_compared_unless_they_are_more_than_memory_is_meant_for(tmp_path, monkeypatch):
    path = write({"y": Y_TRUE, **TWO, "site": SITE}, tmp_path / "t.csv", "csv")
    asked = ("report", path, "--y-prob", "old", "--y-prob", "new", "--out", tmp_path / "r.md")
    for options, cluster in (((), None), (("--cluster", "site"), SITE), (("--memory-limit", "1GB"), None)):
        found = answer(*asked, *options)["result"]["comparison"]["differences"][0]
        expected = calibrant.compare_models(Y_TRUE, TWO, cluster=cluster).differences[0]
        assert found["upper"] == pytest.approx(expected.upper, rel=1e-9)
    assert "Side by side: new is better calibrated than old." in call(*asked).stdout
    monkeypatch.setattr("calibrant.cli.rows.BYTES_PER_ROW", 10**6)
    scanned = answer(*asked, "--memory-limit", "1GB")["result"]
    assert scanned["comparison"] is None
    assert scanned["omissions"][0]["section"] == "differences"
