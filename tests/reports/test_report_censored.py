"""Reports on censored rows: they say what is approximate, and the code that they print makes them again."""

import re
from typing import Any

import numpy as np
import pytest

import calibrant

RNG = np.random.default_rng(0)
TIME, LOST, Y_PROB = RNG.exponential(5.0, 200), RNG.exponential(8.0, 200), RNG.beta(2.0, 2.0, 200)
CODE = np.where(TIME > LOST, 0, 1 + (RNG.random(200) < 0.2))
horizon: Any = calibrant.horizon
ROWS = horizon(np.minimum(TIME, LOST), CODE, Y_PROB, at=3.0, competing=2)


def test_what_is_said():
    time, code = np.tile(ROWS.time, 4), np.tile(CODE, 4)  # enough rows for a verdict
    rows = horizon(time, code, np.full(800, 0.3), at=3.0, competing=2)
    report = calibrant.CalibrationReport.from_predictions(rows, max_error=0.12)
    (model,) = report.summary.models
    assert model.horizon == rows.outcome
    assert model.measures.observed_expected_ratio == pytest.approx(rows.risk / 0.3)
    text = report.markdown()
    assert text.split("\n")[2].startswith("## Certified, approximately. ")
    assert "weights that stand for them are estimates" in text
    assert str(rows.outcome).split("\n")[0] in text
    assert type(report.summary).from_json(report.json()) == report.summary
    assert (report.verdict, model.verdict, report.certified) == (None, None, False)
    assert model.found == "certified"
    assert (model.rows, model.mean_forecast) == (model.measures.rows, model.measures.mean_forecast)
    assert (model.rows, model.mean_forecast) == (800, pytest.approx(0.3))
    says_approximately(report)


def says_approximately(report):
    """Check that no level and no verdict is without its qualification, and that nothing is said of every number."""
    for text in (str(report), report.markdown()):
        assert "limits and verdicts hold approximately" in text
        assert "every number of rows" not in text
        assert "fixed beforehand" not in text
        assert re.findall(r"\d% confidence", text)
        assert not re.findall(r"(?<!about )(?<![\d.])[\d.]+% confidence", text)
        assert not re.findall(r"\b(?:Certified|Refuted)\b(?!, approximately)(?! in: )", text)
        assert not re.findall(r"(?:\| |\(|  )(?:certified|refuted)(?!, approximately)", text)


def test_refuted_groups_and_repairs_are_so_approximately():
    time, code = np.tile(ROWS.time, 2), np.tile(CODE, 2)
    rows = horizon(time, code, np.tile(Y_PROB, 2) ** 0.2, at=3.0, competing=2)
    report = calibrant.CalibrationReport.from_predictions(rows, max_error=0.01, by=np.arange(400) // 200)
    (model,) = report.summary.models
    assert (report.verdict, model.found, report.certified) == (None, "refuted", False)
    assert report.markdown().split("\n")[2].startswith("## Refuted, approximately. ")
    assert "refuted, approximately |" in report.markdown()
    assert model.groups is not None
    assert model.repair is not None
    assert model.decisions is not None
    for promise in (model.certificate, *model.groups.certificates, model.repair.before, model.decisions.promise):
        assert promise is not None
        assert not promise.finite_sample
        assert "weights of censored rows, which are estimates" in promise.assumptions[-1]
    says_approximately(report)


def test_what_promises_more_than_it_can_hold_is_left_out():
    given = {"old": ROWS, "new": ROWS.with_forecasts(Y_PROB**2)}
    report = calibrant.CalibrationReport.from_predictions(given, max_error=0.3)
    assert report.summary.comparison is None
    assert report.verdict is None
    (left,) = report.summary.omissions
    assert (left.section, "take weights as fixed" in left.reason) == ("differences", True)
    says_approximately(report)
    with_features = calibrant.CalibrationReport.from_predictions(ROWS, features={"age": np.arange(200)})
    (model,) = with_features.summary.models
    assert model.worst_group is None
    assert [each.section for each in model.omissions] == ["worst_group"]


def test_known_outcomes_need_no_caution():
    rows = horizon(TIME, np.ones(200), Y_PROB, at=3.0)
    report = calibrant.CalibrationReport.from_predictions(rows, max_error=0.5)
    plain = calibrant.CalibrationReport.from_predictions(TIME <= 3.0, Y_PROB, max_error=0.5)
    assert "approximately" not in report.markdown()
    assert report.verdict == plain.verdict
    assert report.summary.models[0].certificate == plain.summary.models[0].certificate


@pytest.mark.parametrize("several", [False, True])
def test_the_code_makes_it_again(several):
    rows = {"old": ROWS, "new": ROWS.with_forecasts(Y_PROB**2)} if several else ROWS
    report = calibrant.CalibrationReport.from_predictions(rows, title="T")
    ways = __import__("calibrant.reports.redo", fromlist=["redo"]).ways_to_redo(report.summary)
    code = ways[0]["code"].replace('report.write_html("report.html")', "")
    given = {"time": ROWS.time, "event": CODE, "competing": 2, "y_prob": Y_PROB, "y_prob_1": Y_PROB}
    scope: dict[str, Any] = {**given, "y_prob_2": Y_PROB**2}
    exec(code, scope)
    assert scope["report"].summary == report.summary
    assert "--time time --event event --at 3.0 --competing 2 --y-prob" in ways[1]["code"]


def test_models_are_judged_on_the_same_rows():
    other = horizon(TIME, np.ones(200), Y_PROB, at=3.0)
    with pytest.raises(
        calibrant.InputError, match=r"^y_true holds other rows for 'new' than for the first model; .*with_forecasts"
    ):
        calibrant.CalibrationReport.from_predictions({"old": ROWS, "new": other})
