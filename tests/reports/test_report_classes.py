"""Reports on forecasts of several classes: the confidence is the page, and every class has a line."""

import re

import numpy as np
import pytest
from cli_cases import answer, call
from table_cases import write

import calibrant
from calibrant.reports import ReportSummary

RNG = np.random.default_rng(0)
Y_PROB = RNG.dirichlet(np.ones(3), 300).round(2)
Y_PROB[:, 2] = (1.0 - Y_PROB[:, 0] - Y_PROB[:, 1]).round(2).clip(0.0)
LABELS = np.array(["bream", "perch", "roach"])
Y = LABELS[(RNG.random((300, 1)) > Y_PROB.cumsum(axis=1)[:, :-1]).sum(axis=1)]


def test_the_page_is_about_the_confidence_and_lists_the_classes():
    report = calibrant.CalibrationReport.from_predictions(Y, Y_PROB, classes=LABELS, max_error=0.2)
    (model,) = report.summary.models
    right = LABELS[Y_PROB.argmax(axis=1)] == Y
    assert model.certificate == calibrant.certify(right, Y_PROB.max(axis=1), max_error=0.2)
    assert model.classes == calibrant.certify(Y, Y_PROB, classes=LABELS, max_error=0.2, questions="classwise")
    assert ReportSummary.from_json(report.json()) == report.summary
    text = report.markdown()
    section = text[text.index("### Class by class") : text.index("### How large it is")]
    for label in LABELS:
        assert f"| {label} | {np.count_nonzero(label == Y)} | {model.classes[label].verdict} |" in section
    assert "This says nothing of one label alone" in section
    assert "Pairs and sets of classes were not asked about." in section
    assert "an event, it is a right top label; the forecast is the confidence in it." in section
    confidence, share = 100 * Y_PROB.max(axis=1).mean(), 100 * right.mean()
    assert f"mean confidence {confidence:.1f}%, top label right in {share:.1f}%" in text
    page = report.html()
    assert "Confidence against share of right top labels" in page
    assert "Share of right top labels minus confidence" in page
    assert "Forecast against event rate" not in page
    drawn = re.findall(r"<text[^>]*>([^<]*)</text>", page)
    assert {"confidence", "share of right top labels"} <= set(drawn)
    assert not {"forecast", "event rate"} & set(drawn)
    assert "Class by class</h" in page
    assert 'href="#m1-classes"' in page
    assert "perch" in str(report)


def test_without_a_limit_there_are_limits_and_no_verdicts():
    report = calibrant.CalibrationReport.from_predictions(Y, Y_PROB)
    (model,) = report.summary.models
    assert (model.classes, report.verdict) == (None, None)
    assert model.class_limits is not None
    assert "### Class by class" in report.markdown()
    assert "| class | Cutoff error | at least | at most |" in report.markdown()  # rows of a class are not known here
    assert "Rows of it" not in report.html()
    both = calibrant.CalibrationReport.from_predictions(
        Y == "perch", np.stack([1 - Y_PROB[:, 1], Y_PROB[:, 1]], axis=1)
    )
    assert both.summary.models[0].class_limits is None


def test_the_command_line_names_classes_with_a_star(tmp_path):
    columns = {"fish": Y, **{f"p_{label}": Y_PROB[:, place] for place, label in enumerate(LABELS)}}
    file = write(columns, tmp_path / "t.csv", "csv")
    line = ("report", file, "--y-true", "fish", "--y-prob", "p_*", "--out", tmp_path / "r.md", "--date", "2026-01-01")
    found = answer(*line)
    (model,) = found["result"]["models"]
    assert (model["name"], model["class_limits"]["questions"]) == ("confidence in the top label", LABELS.tolist())
    scanned = answer(*line, "--memory-limit", "1GB")["result"]["models"][0]
    assert scanned["class_limits"]["upper"] == pytest.approx(model["class_limits"]["upper"], abs=1e-12)
    said = call(*line, "--time", "fish")
    assert (said.exit_code, "for one column of forecasts" in said.stderr) == (2, True)
