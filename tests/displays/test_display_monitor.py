"""What a monitor said, period by period: numbers, marks, names of periods, and room for words."""

import dataclasses
import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from display_cases import check_words, drawn_colours
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression

import calibrant
from calibrant.displays.palette import PALETTES
from calibrant.monitors import Monitor, MonitorHistory

MonitorDisplay: Any = calibrant.MonitorDisplay

DAYS, ROWS, CHANGE = 40, 150, 25
RNG = np.random.default_rng(0)
Y_PROB = RNG.random(DAYS * ROWS)
DAY = np.arange(DAYS * ROWS) // ROWS + 1
Y_TRUE = RNG.random(DAYS * ROWS) < np.where(DAY > CHANGE, np.sqrt(Y_PROB), Y_PROB)
DATE = np.array([(dt.date(2026, 1, 20) + dt.timedelta(days=k)).isoformat() for k in range(DAYS + 1)])[DAY]


def watched(period: Any = DAY, **options: Any) -> Monitor:
    monitor = Monitor(**{"max_error": 0.1, "unit": "row", **options})
    monitor.update(Y_TRUE, Y_PROB, period=period)
    monitor.read()
    return monitor


@pytest.fixture(scope="module")
def monitor():
    return watched(DATE)


@pytest.fixture(scope="module")
def epochs():
    """A monitor that was reset after the alarm: the change is the usual state since."""
    monitor = Monitor(max_error=0.2, unit="row")
    for day in range(1, DAYS + 1):
        inside = day == DAY
        monitor.update(Y_TRUE[inside], Y_PROB[inside], period=DATE[inside][0])
        monitor.read()
        if day == CHANGE + 5:
            monitor.reset()
    return monitor


def test_what_is_drawn_is_what_the_monitor_said(monitor):
    display = MonitorDisplay.from_monitor(monitor)
    said, drawn = monitor.history, display.frame()
    assert drawn["period"].tolist() == said["period"].tolist()
    for name, column in (("estimate", "estimate"), ("lower", "lower"), ("upper", "upper"), ("evidence", "detector")):
        assert drawn[name].tolist() == said[column].tolist()
    assert drawn["verdict"].tolist() == said["verdict"].tolist()
    assert display.estimate_.get_ydata().tolist() == said["estimate"].tolist()
    assert display.limit_.get_ydata()[0] == monitor.max_error
    assert display.threshold_.get_ydata()[0] == monitor.periods_between_false_alarms
    assert display.evidence_ax_.get_yscale() == "log"
    assert display.history == MonitorHistory.from_json(display.history.to_json())


def test_predictions_give_what_the_monitor_gives(monitor):
    display = MonitorDisplay.from_predictions(Y_TRUE, Y_PROB, DATE, max_error=0.1, unit="row")
    assert display.frame().equals(MonitorDisplay.from_monitor(monitor).frame())
    model = LogisticRegression().fit(Y_PROB[:, None], Y_TRUE)
    fitted: Any = {"period": DAY, "max_error": 0.1}
    from_model = MonitorDisplay.from_estimator(model, Y_PROB[:, None], Y_TRUE, **fitted)
    forecasts = model.predict_proba(Y_PROB[:, None])[:, 1]
    assert from_model.frame().equals(MonitorDisplay.from_predictions(Y_TRUE, forecasts, **fitted).frame())


def test_the_alarm_and_the_begin_of_the_change_are_marked(monitor):
    display = MonitorDisplay.from_monitor(monitor)
    alarm = monitor.read().alarm
    assert display.history.last_alarm == (alarm.period, alarm.since)
    assert display.ax_.get_title(loc="left") == f"Alarm at {alarm.period}: off since about {alarm.since}"
    (shade,) = display.changes_
    begin = (dt.date.fromisoformat(alarm.since) - dt.date(1970, 1, 1)).days - 0.5
    assert shade.get_x() == begin
    assert shade.get_x() + shade.get_width() == (dt.date.fromisoformat(alarm.period) - dt.date(1970, 1, 1)).days + 0.5
    assert abs((dt.date.fromisoformat(alarm.since) - dt.date.fromisoformat(DATE[DAY == CHANGE + 1][0])).days) <= 2
    assert display.void_limits_ is not None
    assert MonitorDisplay.from_monitor(watched(assume="anything")).void_limits_ is None


def test_epochs_are_parted(epochs):
    display = MonitorDisplay.from_monitor(epochs)
    history = display.history
    assert history.epoch.tolist() == [1] * (CHANGE + 5) + [2] * (DAYS - CHANGE - 5)
    assert len(display.changes_) == history.alarm.size >= 1
    assert history.epoch[history.alarm[0]] == 1
    assert np.isnan(display.estimate_.get_ydata()).sum() == 1  # the gap between the two
    assert any(text.get_text() == "reset, epoch 2" for text in display.ax_.texts)
    assert display.ax_.get_title(loc="left").startswith("Epoch 2: ")
    check_words(display.figure_)


PERIODS: dict[str, Any] = {
    "numbers": DAY,
    "dates": DATE,
    "hours": np.array([f"2026-01-{1 + day // 24:02d}T{day % 24:02d}" for day in DAY]),
    "months": np.array([f"{2020 + day // 12}-{1 + day % 12:02d}" for day in DAY]),
    "words": np.array([f"the week that is number {day:03d}" for day in DAY]),
}


@pytest.mark.parametrize("kind", PERIODS)
def test_names_of_periods_can_be_read(kind):
    display = MonitorDisplay.from_monitor(watched(PERIODS[kind], unit="period"))
    assert display.dated == (kind in ("dates", "hours", "months"))
    check_words(display.figure_)
    labels = [label.get_text() for label in display.evidence_ax_.get_xticklabels() if label.get_text()]
    assert 2 <= len(labels) <= 9
    first, last = str(PERIODS[kind][0]), str(PERIODS[kind][-1])
    if kind == "words":
        first, last = f"{first[:15]}…", f"{last[:15]}…"
    assert display.evidence_ax_.get_xlabel() == f"period, from {first} to {last}"


@pytest.mark.parametrize("theme", PALETTES)
def test_every_colour_comes_from_the_palette(monitor, theme):
    display = MonitorDisplay.from_monitor(monitor, theme=theme)
    assert drawn_colours(display.figure_) <= set(dataclasses.asdict(PALETTES[theme]).values())


def test_axes_and_legend_are_as_asked(monitor):
    left, right = Figure(layout="constrained").subplots(1, 2)
    display = MonitorDisplay.from_monitor(monitor, ax=right, legend=False)
    assert display.ax_ is right
    assert not left.lines
    assert display.legend_ is None
    assert len(display.plot().legend_.get_texts()) == 7
    assert MonitorDisplay.from_history(display.history, show_limit=False).plot().limit_ is None


def test_one_period_and_many_are_drawn():
    one = MonitorDisplay.from_predictions(Y_TRUE[:50], Y_PROB[:50], DAY[:50], max_error=0.1)
    one.figure_.draw_without_rendering()
    assert one.ax_.get_title(loc="left") == "No alarm in 1 period, undecided"
    many = 9000
    place = np.arange(many)
    history = dataclasses.replace(
        one.history,
        period=tuple(place.tolist()),
        verdict=("undecided",) * many,
        detector=np.where(place == 4321, 900.0, 1.0),
        overdispersion=np.ones(many),
        **dict.fromkeys(("epoch", "rows"), np.ones(many, dtype=np.int64)),
        **{name: np.full(many, value) for name, value in (("lower", 0.0), ("estimate", 0.1), ("upper", 0.2))},
    )
    drawn = MonitorDisplay.from_history(history).plot()
    assert drawn.evidence_.get_ydata().size < 3000
    assert drawn.evidence_.get_ydata().max() == 900.0  # no extreme moves


def test_rows_that_share_something_are_no_evidence():
    shock = np.random.default_rng(1).normal(0.0, 0.2, DAYS + 1)[DAY]
    y_true = np.random.default_rng(2).random(DAY.size) < np.clip(Y_PROB + shock, 0.0, 1.0)
    display = MonitorDisplay.from_predictions(y_true, Y_PROB, DAY, max_error=0.1, unit="row")
    assert display.history.is_doubted
    assert display.ax_.get_title(loc="left") == "No verdict, rows of a period share something"


def test_the_title_says_that_the_curve_leaves_its_limits():
    rng = np.random.default_rng(1)
    y_prob, day = rng.random(12_000), np.arange(12_000) // 400
    y_true = rng.random(12_000) < np.where(day >= 20, y_prob**0.75, y_prob)
    tolerant = MonitorDisplay.from_predictions(y_true, y_prob, day, max_error=0.1, tolerance=0.1, unit="row")
    history = tolerant.history
    assert history.alarm.size == 0
    assert history.estimate[-1] > history.upper[-1]
    assert tolerant.ax_.get_title(loc="left").endswith("certified, but the error is outside its limits")


def test_savings_are_not_called_errors_in_the_legend():
    display = MonitorDisplay.from_predictions(Y_TRUE, Y_PROB, DAY, max_error=0.5, unit="row", measure="risk_gap")
    said = [text.get_text() for text in display.legend_.get_texts()]
    assert any("limits of the risk gap" in each for each in said)
    assert not any("error" in each for each in said)


def test_what_cannot_be_drawn_is_refused():
    fresh = Monitor(max_error=0.1)
    with pytest.raises(ValueError, match=r"nothing was read yet; read\(\) the monitor first"):
        MonitorDisplay.from_monitor(fresh)
    fresh.update(Y_TRUE[:50], Y_PROB[:50], period=1)
    with pytest.raises(ValueError, match="nothing was read yet"):
        MonitorDisplay.from_monitor(fresh)
    with pytest.raises(ValueError, match="max_error"):
        MonitorDisplay.from_predictions(Y_TRUE, Y_PROB, DAY, max_error=2.0)
    history = MonitorHistory.from_monitor(watched())
    for changes in ({"verdict": ("certified",)}, {"alarm": np.array([99])}, {"lower": history.lower[:3]}):
        with pytest.raises(ValueError, match="of this MonitorHistory is"):
            dataclasses.replace(history, **changes)


def test_other_measures_are_named():
    display = MonitorDisplay.from_predictions(Y_TRUE[:600], Y_PROB[:600], DAY[:600], max_error=0.1, measure="risk_gap")
    assert "risk gap" in display.ax_.get_ylabel()
    assert calibrant.displays.MonitorDisplay is MonitorDisplay


def test_the_page_on_it_has_its_pictures():
    folder = Path(__file__).parents[2] / "docs" / "displays"
    page = (folder / "monitor.md").read_text()
    assert "MonitorDisplay.from_predictions" in page
    assert "[`MonitorDisplay`](monitor.md)" in (folder / "index.md").read_text()
    for theme in PALETTES:
        assert f"monitor_{theme}.png" in page
        assert len((folder / f"monitor_{theme}.png").read_bytes()) < 60_000
