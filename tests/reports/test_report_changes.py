"""Reports on rows with periods: whether anything has changed, in facts, words, a picture and JSON."""

import html
import re
import shlex
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import calibrant
from calibrant import Tally
from calibrant.cli import main
from calibrant.monitors import Monitor
from calibrant.reports import ReportSummary, over_time
from calibrant.reports.headlines import headline_of, lines_of

CalibrationReport: Any = calibrant.CalibrationReport
change_of: Any = over_time.change_of
pytestmark = pytest.mark.usefixtures("without_plots")  # but for that of changes

DAYS, ROWS, CHANGE = 50, 120, 30
RNG = np.random.default_rng(0)
Y_PROB = RNG.random(DAYS * ROWS).round(3)
PERIOD = np.array([f"2026-{1 + day // 25:02d}-{1 + day % 25:02d}" for day in np.arange(DAYS * ROWS) // ROWS])
LATER = np.arange(DAYS * ROWS) // ROWS >= CHANGE
Y_TRUE = (RNG.random(DAYS * ROWS) < np.where(LATER, np.sqrt(Y_PROB), Y_PROB)).astype(int)
HALF = slice(0, CHANGE * ROWS)  # all of it before the change


def reported(rows: Any = slice(None), **options: Any) -> Any:
    given = {"period": PERIOD[rows], "max_error": 0.1, **options}
    return CalibrationReport.from_predictions(Y_TRUE[rows], Y_PROB[rows], **given)


@pytest.fixture(scope="module")
def report():
    return reported(title="Loans", source="loans.npz", date="2026-03-31", name="y_prob")


@pytest.fixture(scope="module")
def quiet():
    return reported(HALF)


def words(text):
    return re.sub(r"<[^>]+>", " ", html.unescape(text)).replace("\\", "")


def test_what_is_said_is_what_a_monitor_says(report):
    change = report.summary.models[0].change
    monitor = Monitor(max_error=0.1, periods_between_false_alarms=DAYS / 0.05)
    monitor.update(Y_TRUE, Y_PROB, period=PERIOD)
    assert change.reading == monitor.read()
    assert change.reading.unit == "period"
    assert change.history.period == tuple(monitor.history["period"])
    assert change.history.upper.tolist() == monitor.history["upper"].tolist()
    alarm = change.reading.alarm
    assert alarm.direction == "too low"
    assert abs(int(np.flatnonzero(np.unique(PERIOD) == alarm.since)[0]) - CHANGE) <= 3
    assert not change.from_the_start


def test_the_rows_before_and_since_are_told_apart(report):
    change = report.summary.models[0].change
    alarm = change.reading.alarm
    inside = (alarm.low <= Y_PROB) & ((alarm.high > Y_PROB) | (alarm.high == 1.0))
    for name, chosen in (("before", inside & (alarm.since > PERIOD)), ("since", inside & (alarm.since <= PERIOD))):
        assert getattr(change, f"forecast_{name}") == pytest.approx(Y_PROB[chosen].mean())
        assert getattr(change, f"outcome_{name}") == pytest.approx(Y_TRUE[chosen].mean())


@pytest.mark.parametrize("form", ["html", "markdown"])
def test_the_page_says_what_was_found_and_what_to_do(report, form):
    said, change = words(getattr(report, form)()), report.summary.models[0].change
    alarm = change.reading.alarm
    for sentence in (
        "Has it changed?",
        f"forecasts from {alarm.low:g} to {alarm.high:g} are too low since about {alarm.since}.",
        f"The alarm went off at {alarm.period}, after",
        "If forecasts were calibrated at all times, the chance of an alarm in any of these periods would be at most",
        "Range and begin are shown" if alarm.confirmed else "the range and the begin are suspected",
        f"before {alarm.since}, and",
        f"The verdict on a limit of 0.1, read after each period: undecided at first, void from {alarm.period} on.",
        "Periods differ about as much as independent rows would make them",
        f"Find out what changed about {alarm.since}: the cases, the data or the model.",
        "RollingRecalibrator",
        "What is said of all rows may not hold for cases to come.",
        "Each period counts once, whatever its rows have to do with each other.",
    ):
        assert sentence in said, sentence


def test_the_first_screen_and_the_few_lines_say_so(report, quiet):
    headline = headline_of(report.summary.models[0])
    assert headline.changed.startswith(("Yes: forecasts from", "It seems so: most likely forecasts from"))
    assert headline.next_step.startswith("Find out what changed about")
    for sentence in re.split(r"(?<=[.?!])\s", f"{headline.changed} {headline.next_step}"):
        assert len(sentence.split()) <= 30, sentence
    (line,) = (line for line in lines_of(report.summary) if line.startswith("Has it changed?"))
    assert "since about" in line
    assert headline_of(quiet.summary.models[0]).changed == ""
    assert "Has it changed? No alarm in 30 periods, from 2026-01-01 to 2026-02-05." in "\n".join(
        lines_of(quiet.summary)
    )


def test_the_picture_is_drawn(report, quiet):
    page = report.html()
    section = page.partition('id="m1-change"')[2].partition("</section>")[0]
    assert section.count("<svg") >= 2
    for entry in ("limits of the error", "the error that verdicts are about, 0.1", "below: what an alarm takes, 1,000"):
        assert entry in section
    assert "limits that are void" in section
    assert "limits that are void" not in quiet.html()
    assert 'href="#m1-change"' in page


def test_no_alarm_is_no_proof(quiet):
    said = change_of(quiet.summary.models[0])
    assert (said.state, said.label) == ("neutral", "No alarm")
    assert "does not show that nothing changed" in said.lines[0]
    assert "Cutoff error of the average period" in " ".join(said.lines)
    assert said.next_step.startswith("Go on watching")
    few = change_of(reported(slice(0, 10 * ROWS)).summary.models[0])
    assert few.next_step.startswith("10 periods are few")


def test_an_error_that_was_there_all_along_is_no_change():
    bent = CalibrationReport.from_predictions(
        Y_TRUE[HALF], Y_PROB[HALF] ** 2.5, period=PERIOD[HALF], max_error=0.1
    ).summary.models[0]
    assert bent.change.from_the_start
    said = change_of(bent)
    assert said.finding.startswith("Forecasts are off, it seems from the first period on")
    assert "no matter of time" in said.next_step
    assert "(tolerance=)" in said.next_step
    assert headline_of(bent).changed == ""
    tolerant = CalibrationReport.from_predictions(Y_TRUE[HALF], Y_PROB[HALF] ** 2.5, period=PERIOD[HALF], tolerance=0.4)
    reading = tolerant.summary.models[0].change.reading
    assert (reading.tolerance, reading.alarm) == (0.4, None)
    assert "The verdict on a limit" not in " ".join(change_of(tolerant.summary.models[0]).lines)  # nobody asked
    assert "the error that verdicts are about" not in tolerant.html()


def test_periods_that_share_something_are_no_independent_rows():
    rng = np.random.default_rng(3)
    shock = rng.normal(0.0, 0.2, DAYS)[np.arange(DAYS * ROWS) // ROWS]
    y_true = (rng.random(Y_PROB.size) < np.clip(Y_PROB + shock, 0.0, 1.0)).astype(int)
    model = CalibrationReport.from_predictions(y_true, Y_PROB, period=PERIOD).summary.models[0]
    spread = change_of(model).lines[-1]
    assert spread.startswith("Periods differ far more than independent rows would make them")
    assert "pass the periods as clusters, too (cluster=)." in spread
    clustered = CalibrationReport.from_predictions(y_true, Y_PROB, period=PERIOD, cluster=PERIOD).summary.models[0]
    assert "as clusters, too" not in change_of(clustered).lines[-1]


def test_the_json_holds_it(report):
    again = ReportSummary.from_json(report.json())
    assert again == report.summary
    assert again.models[0].change == report.summary.models[0].change
    assert "each counting once" in str(again)


def test_the_order_of_rows_changes_no_byte():
    order = np.random.default_rng(1).permutation(DAYS * ROWS)
    weight = np.random.default_rng(2).random(DAYS * ROWS)
    straight = reported(sample_weight=weight).json()
    assert reported(order, sample_weight=weight[order]).json() == straight
    prints = {
        CalibrationReport.from_predictions(Y_TRUE[HALF], Y_PROB[HALF], period=period).summary.models[0].fingerprint
        for period in (None, PERIOD[HALF], np.roll(PERIOD[HALF], 1))
    }
    assert len(prints) == 3


def test_the_code_in_the_report_makes_it_again(report, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    python, shell = (html.unescape(code) for code in re.findall(r"<code>(.*?)</code>", report.html(), re.DOTALL)[:2])
    names: dict[str, Any] = {"y_true": Y_TRUE, "y_prob": Y_PROB, "periods": PERIOD}
    columns = dict(names)
    exec(python, names)
    assert names["report"].json() == report.json()
    np.savez("loans.npz", **columns)
    found = CliRunner().invoke(main, shlex.split(shell.replace("\\\n", ""))[1:])
    assert found.exit_code == 0, found.output
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report.html()


def test_several_models_are_each_read_over_time():
    models = {"a": Y_PROB[HALF], "b": Y_PROB[HALF] ** 1.1}
    summary = CalibrationReport.from_predictions(Y_TRUE[HALF], models, period=PERIOD[HALF]).summary
    assert [model.change.reading.confidence_level for model in summary.models] == [0.975, 0.975]
    assert [model.change.reading.threshold for model in summary.models] == [1200.0, 1200.0]


LEFT_OUT: dict[str, dict[str, Any]] = {
    "there is one period only": {"period": np.zeros(CHANGE * ROWS, dtype=int)},
    "changes are watched in shares of all rows, not of the events": {"relative_to": "events", "max_error": 0.3},
}


@pytest.mark.parametrize("reason", LEFT_OUT)
def test_what_cannot_be_said_is_left_out_with_the_reason(reason):
    report = reported(HALF, **LEFT_OUT[reason])
    (omission,) = report.summary.models[0].omissions
    assert (omission.section, omission.reason) == ("change", reason)
    assert f"Left out: {reason}." in report.html()
    assert f"Left out, whether it has changed: {reason}." in report.markdown()
    assert "period=periods" in report.markdown()


def test_without_periods_nothing_is_said_of_change():
    page = CalibrationReport.from_predictions(Y_TRUE[HALF], Y_PROB[HALF]).html()
    assert "Has it changed?" not in page
    assert "-change" not in page


BAD: dict[str, dict[str, Any]] = {
    "period has 5 values for 6,000 rows": {"period": PERIOD[:5]},
    r"period\[2\] is missing": {"period": [None if place == 2 else 1 for place in range(DAYS * ROWS)]},
    "period has 6,000 different values, more than the 5,000 periods": {"period": np.arange(DAYS * ROWS)},
    "period holds texts, of which 'day 19' comes before 'day 2'": {
        "period": np.array([f"day {day}" for day in np.arange(DAYS * ROWS) // ROWS])
    },
    "tolerance": {"tolerance": 2.0},
    "period was given together with a Tally": {"y_true": Tally.from_arrays(Y_TRUE, Y_PROB), "y_prob": None},
}


@pytest.mark.parametrize("message", BAD)
def test_bad_periods_are_refused(message):
    with pytest.raises(ValueError, match=message):
        CalibrationReport.from_predictions(**{"y_true": Y_TRUE, "y_prob": Y_PROB, "period": PERIOD, **BAD[message]})


def test_the_section_fits_a_phone_and_a_dark_room(report, browser, tmp_path):
    address = report.write_html(tmp_path / "report.html").as_uri()
    for size, scheme in (({"width": 320, "height": 640}, "light"), ({"width": 1280, "height": 800}, "dark")):
        page = browser.new_context(offline=True, viewport=size, color_scheme=scheme).new_page()
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        section = page.locator("#m1-change")
        plot = section.locator("svg.plot").bounding_box()
        assert plot["width"] > 0.5 * min(size["width"], 1200)
        assert section.locator(".state").inner_text() == "Alarm"
        assert page.locator("#m1-verdict .changed a").get_attribute("href") == "#m1-change"
