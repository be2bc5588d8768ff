"""Reports on censored rows: they say what is approximate, and the code that they print makes them again."""

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


def test_known_outcomes_need_no_caution():
    rows = horizon(TIME, np.ones(200), Y_PROB, at=3.0)
    report = calibrant.CalibrationReport.from_predictions(rows, max_error=0.5)
    plain = calibrant.CalibrationReport.from_predictions(TIME <= 3.0, Y_PROB, max_error=0.5)
    assert "approximately" not in report.markdown()
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
