"""The page about a validation study: the same bytes every time, nothing obeyed, TRIPOD+AI filled where it is known."""

import json
import re
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import calibrant
from calibrant import ValidationReport
from calibrant.core.words import rounded
from calibrant.reports import StudyFile, ValidationSummary
from calibrant.reports.validation_pages import WAYS
from calibrant.validations.findings import findings_of

RNG = np.random.default_rng(0)
Y_PROB = RNG.random(400).round(3)
Y_TRUE = (RNG.random(400) < Y_PROB**1.5).astype(int)
HOSTILE = '</script><script>document.title="broken"</script>|`x`'
FEW: Any = {"n_resamples": 40}


@pytest.fixture(scope="module")
def report():
    return ValidationReport.from_predictions(
        Y_TRUE, Y_PROB, title="Sepsis", source="ward.csv", date="2026-03-31", thresholds=[0.1, 0.2, 0.3], **FEW
    )


def test_the_page_is_the_same_every_time_and_holds_its_numbers(report):
    again = ValidationReport.from_predictions(
        Y_TRUE[::-1],
        Y_PROB[::-1],
        title="Sepsis",
        source="ward.csv",
        date="2026-03-31",
        thresholds=[0.1, 0.2, 0.3],
        **FEW,
    )
    assert again.html() == report.html()
    held = re.search(r'<script type="application/json" id="calibrant-report">(.*?)</script>', report.html(), re.S)
    assert held is not None
    assert ValidationSummary.from_dict(json.loads(held[1])) == report.summary
    assert ValidationSummary.from_json(report.json()) == report.summary
    assert report.validation == calibrant.validate(Y_TRUE, Y_PROB, thresholds=[0.1, 0.2, 0.3], **FEW)


def test_the_page_has_verdict_table_curves_items_and_code(report):
    page, text = report.html(), report.markdown()
    said = findings_of(report.validation)
    for where in (page, text):
        assert said.label in where
        assert "TRIPOD+AI" in where
        assert "ValidationReport.from_predictions" in where
        assert "thresholds=[0.1, 0.2, 0.3]" in where
    assert page.count("<svg") >= 3
    assert 'id="study-curve-title"' in page
    assert 'id="study-benefit-title"' in page
    assert report.validation.to_markdown() in text
    assert not re.search(r"(?:src|href)=.?http|url\(http|@import", page)


def test_whatever_a_user_supplies_is_text():
    hostile = ValidationReport.from_predictions(Y_TRUE, Y_PROB, title=HOSTILE, name=HOSTILE, source=HOSTILE, **FEW)
    assert '<script>document.title="broken"' not in hostile.html()
    assert "`x`" not in hostile.markdown().split("## Do it again")[0]
    assert "sandbox" in hostile._repr_html_()


def test_items_are_filled_where_the_software_knows_the_answer(report):
    items = {item.number: item for item in report.summary.items}
    assert len(items) == len(report.summary.items) == 45
    assert items["6b"].answer is None
    assert "400 rows" in str(items["20a"].answer)
    assert "calibrant" in str(items["18f"].answer)
    assert items["12d"].answer is None
    assert "slope" in str(items["23a"].answer)
    assert str(items["6b"]) == "6b Participants: Eligibility criteria. You fill in."
    clustered = ValidationReport.from_predictions(
        Y_TRUE, Y_PROB, cluster=np.arange(400) // 4, left_out="3 rows lacked a forecast", **FEW
    ).summary
    found = {item.number: item.answer for item in clustered.items}
    assert found["12d"] == "Limits count 100 clusters, whose rows may depend on each other in any way."
    assert str(found["11"]).startswith("3 rows lacked a forecast.")
    assert found["5a"] is None


def test_censored_outcomes_are_told_of_on_the_page():
    time, lost = RNG.exponential(1 / (0.1 + Y_PROB)), RNG.exponential(3.0, 400)
    rows = calibrant.horizon(np.minimum(time, lost), time <= lost, Y_PROB, at=1.0)
    found = ValidationReport.from_predictions(rows, **FEW)
    items = {item.number: str(item.answer) for item in found.summary.items}
    assert f"{found.validation.censored:,} lost from sight before" in items["20a"]
    assert items["8a"].startswith("The event by time 1.")
    assert "calibrant.horizon(time, event, y_prob, at=1.0)" in found.markdown()
    assert "no calibration curve" not in found.html()
    assert "Observed risk: Kaplan-Meier." in items["12e"]
    assert "one over the probability of not being censored" in items["12e"]


def test_competing_events_are_told_of_in_the_items():
    time, code = RNG.exponential(1 / (0.1 + Y_PROB)), RNG.choice(4, 400)
    rows = calibrant.horizon(time, code, Y_PROB, at=1.0, competing=[2, 3])
    file = StudyFile(("a.csv",), "csv", "ended", "risk", time="years", competing=(2.0, 3.0))
    for told, said in ((None, "Competing events, after"), (file, "Competing events (codes 2, 3 of 'ended'), after")):
        found = ValidationReport.from_predictions(rows, file=told, **FEW)
        items = {item.number: str(item.answer) for item in found.summary.items}
        assert said in items["8a"]
        assert f"ended {rows.outcome.competing} rows" in items["8a"]
        assert "Observed risk: Aalen-Johansen, with competing events." in items["12e"]
    text = ValidationReport.from_predictions(rows, **FEW).markdown()
    assert "at=1.0, competing=competing)" in text
    assert "--at 1 --competing 2 " in text


@pytest.mark.parametrize(
    ("thresholds", "expected"),
    [
        (None, ["0", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3", "0.35"]),
        ([0.12, 0.34], ["0.12", "0.34"]),
        (np.linspace(0.011, 0.033, 23), [f"{0.011 + 0.002 * k:.3g}" for k in range(12)]),
    ],
    ids=["usual", "few", "narrow"],
)
def test_net_benefit_is_tabled_at_round_thresholds_with_limits_of_the_gain(thresholds, expected):
    text = ValidationReport.from_predictions(Y_TRUE, Y_PROB, thresholds=thresholds, **FEW).markdown()
    part = text.split("## Net benefit")[1].split("## TRIPOD")[0]
    rows = [line.strip("|").split(" | ") for line in part.splitlines() if line.startswith("| 0")]
    assert [row[0].strip() for row in rows] == expected
    found = calibrant.net_benefit(Y_TRUE, Y_PROB, thresholds=[float(expected[-1])], confidence_level=0.95)
    limits = [rounded(float(np.atleast_1d(np.asarray(end))[0]), 3) for end in (found.gain_lower, found.gain_upper)]
    assert rows[-1][5] == " to ".join(limits)
    assert "at its threshold by itself" in part


def test_an_estimator_is_validated_on_rows_it_has_not_seen():
    X = RNG.normal(size=(600, 3))
    y = np.where(RNG.random(600) < 1 / (1 + np.exp(-X[:, 0])), "ill", "well")
    model = LogisticRegression().fit(X[:300], y[:300])
    report = ValidationReport.from_estimator(model, X[300:], y[300:], pos_label="ill", **FEW)
    forecasts = model.predict_proba(X[300:])[:, 0]
    assert report.summary.name == "LogisticRegression"
    assert report.validation == calibrant.validate(y[300:] == "ill", forecasts, **FEW)


def test_few_rows_have_a_page_too(tmp_path):
    report = ValidationReport.from_predictions([0, 1, 0], [0.5, 0.5, 0.5], **FEW)
    path = report.write_html(tmp_path / "page.html")
    assert path.read_text(encoding="utf-8") == report.html()
    assert "at least 100 of each kind" in report.html()
    assert str(report).startswith("Validation of a prediction model\n")


def test_every_way_to_limits_is_explained(report):
    studies = [
        report.validation,
        calibrant.validate(Y_TRUE, Y_PROB, sample_weight=1 + Y_PROB, **FEW),
        calibrant.validate([0, 0, 1, 1] * 5, [0.1, 0.2, 0.8, 0.9] * 5, **FEW),
    ]
    assert {way for study in studies for _, way in study.intervals} <= set(WAYS)
