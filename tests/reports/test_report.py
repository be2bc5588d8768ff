import base64
import copy
import dataclasses
import hashlib
import html
import io
import itertools
import json
import pickle
import re
import shlex
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from result_cases import EDGE_CASES, content
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import calibrant
from calibrant import CalibrationReport, Tally
from calibrant.cli import main
from calibrant.core.words import rounded_down, rounded_up
from calibrant.displays.palette import PALETTES
from calibrant.reports import GroupLimits, ReportSummary, pages
from calibrant.rows.checks import check_observations
from calibrant.rows.memory import ArrayRows

HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">"\'`{{ 7*7 }}<!--$x$|*_[a](b)\n# x'


def rows(size=800, seed=0):
    rng = np.random.default_rng(seed)
    y_prob = rng.random(size)
    return (rng.random(size) < y_prob**1.5).astype(int), y_prob


def model_of(report) -> Any:
    """Return what is said of the only model, or of the first."""
    return report.summary.models[0]


Y_TRUE, Y_PROB = rows()
GROUPS = np.where(np.arange(800) % 3 == 0, "north", "south")
WEIGHTS = np.random.default_rng(1).exponential(size=800)


@pytest.fixture(scope="module")
def report():
    return CalibrationReport.from_predictions(Y_TRUE, Y_PROB, by=GROUPS, max_error=0.05, threshold=0.3, title="Rain")


@pytest.fixture(scope="module")
def page(report):
    return report.html()


@pytest.fixture(scope="module")
def model(report):
    return report.summary.models[0]


class Parsed(HTMLParser):
    """Elements with their attributes, and the text of scripts and styles."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, Any]]] = []
        self.inside: dict[str, list[str]] = {"script": [], "style": []}
        self._open: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag in self.inside:
            self.inside[tag].append("")
            self._open = tag

    def handle_endtag(self, tag):
        if tag == self._open:
            self._open = None

    def handle_data(self, data):
        if self._open:
            self.inside[self._open][-1] += data

    def all(self, attribute):
        return [attributes[attribute] for _, attributes in self.elements if attribute in attributes]


# --- The numbers are the library's own --------------------------------------------------------------------------------


def test_the_verdict_is_that_of_certify(model):
    assert model.certificate == calibrant.certify(Y_TRUE, Y_PROB, max_error=0.05)
    assert model.measures == calibrant.measure(Y_TRUE, Y_PROB)
    assert model.score == calibrant.decisions.score_decomposition(Y_TRUE, Y_PROB)
    assert model.groups == calibrant.certify(Y_TRUE, Y_PROB, max_error=0.05, by=GROUPS)


def test_the_table_of_decisions_holds_what_the_functions_give(model):
    table, at = model.decisions, model.decisions.threshold
    assert at.tolist() == [k / 100 for k in range(1, 100)]
    risk = calibrant.decision_risk(Y_TRUE, Y_PROB, threshold=at)
    for name in ("risk", "acted", "false_positive", "false_negative"):
        assert getattr(table, name) == pytest.approx(getattr(risk, name), abs=1e-15)
    assert table.net_benefit == pytest.approx(
        calibrant.net_benefit(Y_TRUE, Y_PROB, threshold=at).net_benefit, abs=1e-15
    )
    assert table.best == calibrant.best_threshold(Y_TRUE, Y_PROB, threshold=0.3)
    limit = calibrant.confidence_interval(Y_TRUE, Y_PROB, measure="risk_gap", alternative="less")
    assert table.promise == calibrant.decision_guarantee(limit)
    assert table.confidence_level == 0.95
    assert (table.guarantee >= table.gap).all()
    for k in (0, 6, 29, 30, 57, 98):
        assert table.gap[k] == pytest.approx(calibrant.risk_gap(Y_TRUE, Y_PROB, threshold=at[k]).gap, abs=1e-12)
        assert table.guarantee[k] == calibrant.decision_guarantee(limit, at[k]).nondecreasing
        all_or_none = min(calibrant.decision_risk(Y_TRUE, [value] * 800, threshold=at[k]).risk for value in (0.0, 1.0))
        assert table.constant_risk[k] == pytest.approx(all_or_none, abs=1e-12)
    assert table.frame().shape == (99, 9)


def test_what_is_promised_about_decisions_is_told_with_what_it_leaves_open(model, page):
    most = rounded_up(model.decisions.promise.upper)
    told = CalibrationReport.from_predictions(Y_TRUE, Y_PROB, max_error=0.05, threshold=0.3).markdown()
    assert f"- It saves at most, for cases to come, if nothing changes (95% confidence): {most}\n" in told
    for text in (told, page):
        assert "with 95% confidence no re-drawing of the line between acting and not acting saves more per case" in text
        assert "The limit is one for all thresholds together" in text
        assert text.count("Rules that act on low forecasts instead of high ones save at most twice as much.") == 1
    assert f"limit: at most {most}, at any threshold" in page
    exact = CalibrationReport.from_predictions(Y_TRUE, Y_PROB, method="exact")
    (by_cutoff,) = exact.summary.models
    assert by_cutoff.decisions is not None
    assert by_cutoff.decisions.promise.measure == "cutoff"
    assert "for these very forecasts, as if issued once more. No recalibration" in exact.markdown()
    assert "It is that of the Cutoff calibration error." in exact.markdown()
    assert "save at most twice" not in exact.markdown()


def test_promises_about_several_models_hold_together():
    models = CalibrationReport.from_predictions(Y_TRUE, {"a": Y_PROB, "b": Y_PROB**2}).summary.models
    for model, forecasts in zip(models, (Y_PROB, Y_PROB**2), strict=True):
        limit = calibrant.confidence_interval(
            Y_TRUE, forecasts, measure="risk_gap", alternative="less", confidence_level=0.975
        )
        assert model.decisions is not None
        assert model.decisions.promise == calibrant.decision_guarantee(limit)


def test_a_threshold_off_the_grid_joins_it():
    report = CalibrationReport.from_predictions(Y_TRUE, Y_PROB, threshold=0.1234)
    table = report.summary.models[0].decisions
    assert table is not None
    at = table.threshold
    assert at.size == 100
    assert at[12] == 0.1234
    assert 'data-threshold="0.1234"' in report.html()


def test_the_repair_is_judged_on_rows_that_it_has_not_seen(model):
    learned, held_out = Tally.from_arrays(Y_TRUE, Y_PROB).halves(0)
    recalibrator = calibrant.GuardedRecalibrator(ends="inside").fit(learned)
    moved = Tally.from_counts(recalibrator.predict(held_out.forecast), held_out.rows, held_out.events)
    repair = model.repair
    assert (repair.fitted_rows, repair.judged_rows) == (learned.row_total, held_out.row_total)
    assert repair.before == calibrant.certify(held_out, max_error=0.05)
    assert repair.after == calibrant.certify(moved, max_error=0.05)
    assert repair.brier_after == pytest.approx(calibrant.measure(moved).brier, abs=1e-15)
    assert repair.ladder == recalibrator.ladder_


def test_several_models_are_judged_at_levels_that_hold_together():
    report = CalibrationReport.from_predictions(Y_TRUE, {"a": Y_PROB, "b": Y_PROB**1.5, "c": Y_PROB**3}, max_error=0.08)
    models: tuple[Any, ...] = report.summary.models
    assert [each.name for each in models] == ["a", "b", "c"]
    for each, forecast in zip(models, (Y_PROB, Y_PROB**1.5, Y_PROB**3), strict=True):
        level = 1.0 - (1.0 - 0.95) / 3
        assert each.certificate == calibrant.certify(Y_TRUE, forecast, max_error=0.08, confidence_level=level)
    verdicts = {each.certificate.verdict for each in models}
    assert "certified" in verdicts
    assert len(verdicts) > 1
    assert not report.certified
    text = report.markdown()
    assert "1 of 3 models is certified for a limit of 8 per 100 of all cases" in text
    assert "hold together with 95% confidence" in text


def test_a_tally_says_as_much_as_its_rows():
    tally = Tally.from_arrays(Y_TRUE, Y_PROB)
    from_rows, from_tally = (CalibrationReport.from_predictions(*data) for data in ((Y_TRUE, Y_PROB), (tally,)))
    assert from_rows.json() == from_tally.json()
    assert content(from_rows._rows) == content(from_tally._rows)
    several = CalibrationReport.from_predictions({"one": tally, "other": tally})
    assert [each.fingerprint for each in several.summary.models] == [from_rows.summary.models[0].fingerprint] * 2


def test_counts_are_never_listed_row_by_row():
    tally = Tally.from_counts([0.2, 0.7], [10**12, 10**11], [10**11, 3 * 10**10])
    model = CalibrationReport.from_predictions(tally).summary.models[0]
    assert model.rows == 1_100_000_000_000
    assert model.repair is not None
    assert model.repair.cutoff_after < 1e-3 < model.repair.cutoff_before


# --- Limits, groups and cautions --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("without_plots")
def test_without_a_limit_there_are_limits_and_no_verdict():
    report = CalibrationReport.from_predictions(Y_TRUE, Y_PROB, by=GROUPS)
    model = model_of(report)
    assert (report.verdict, report.certified, model.verdict) == (None, False, None)
    assert (model.certificate, model.groups) == (None, None)
    assert model.judged == model.limits == calibrant.confidence_interval(Y_TRUE, Y_PROB)
    assert model.group_limits is not None
    for label, limits in zip(model.group_limits.groups, model.group_limits.limits, strict=True):
        inside = label == GROUPS
        assert limits == calibrant.confidence_interval(Y_TRUE[inside], Y_PROB[inside], confidence_level=0.975)
    assert model.group_limits.frame().shape == (2, 5)
    assert model.repair is not None
    assert (model.repair.before, model.repair.after) == (None, None)
    for text in (
        report.markdown(),
        re.sub(r"<(script|style).*?</\1>", "", report.html(), flags=re.DOTALL),
        str(report),
    ):
        assert not re.search("certified:|refuted|undecided", text, re.IGNORECASE)
    assert "docs/how-to/choose-max-error.md" in report.markdown()
    assert ReportSummary.from_json(report.json()) == report.summary


def test_the_verdict_is_one_on_all_rows_and_every_group():
    together = calibrant.certify(Y_TRUE, Y_PROB**1.5, max_error=1.0, by=GROUPS)
    alone = max(together.upper)
    each = [certificate.upper for certificate in together.certificates]
    limit = (alone + max(each)) / 2.0
    report = CalibrationReport.from_predictions(Y_TRUE, Y_PROB**1.5, by=GROUPS, max_error=limit)
    model = model_of(report)
    assert alone < limit < max(each)
    assert "undecided" in {certificate.verdict for certificate in model.groups.certificates}
    assert report.verdict == model.verdict == model.groups.verdict == "certified"
    text = report.markdown()
    assert "## Certified. In any range of forecasts, overall and in every group" in text
    assert re.search(r"differ by at most [0-9.]+ per 100 of all cases, or of the group's", text)
    rows = re.findall(r"(?m)^\| (?:north|south) \| .*$", text)
    assert len(rows) == 2
    for row in rows:  # what the table says is what the headline says
        assert "| certified |" in row
        assert float(row.split("|")[-2]) <= float(rounded_up(limit))
    assert "undecided" not in text.partition("### Before and after")[0].lower()


@pytest.mark.usefixtures("without_plots")
@pytest.mark.parametrize(("bad", "verdict"), [("north", "refuted"), (None, "undecided")])
def test_a_group_can_spoil_the_verdict(bad, verdict):
    y_true, y_prob = rows(4000, seed=7)
    groups = np.where(np.arange(4000) % 20 == 0, "north", "south")
    forecasts = np.where(groups == bad, 1.0 - y_prob, y_prob**1.5)
    report = CalibrationReport.from_predictions(y_true, forecasts, by=groups, max_error=0.06)
    model = model_of(report)
    assert model.certificate.verdict != "refuted"
    assert model.groups.verdict == report.verdict == verdict
    first = report.markdown().partition("### Where")[0]
    assert f"## {verdict.capitalize()}. " in first
    assert "1 of 2 groups" in first
    assert "north" in first
    assert "south" not in first
    assert f'class="card verdict {verdict}"' in report.html()
    assert f"\nAll rows and every group together: {verdict}.\n" in str(report)


@pytest.mark.usefixtures("without_plots")
def test_shares_of_events_are_passed_on():
    asked: dict[str, Any] = {"max_error": 0.25, "relative_to": "events"}
    report = CalibrationReport.from_predictions(Y_TRUE, Y_PROB, by=GROUPS, **asked)
    model = model_of(report)
    assert model.certificate == calibrant.certify(Y_TRUE, Y_PROB, **asked)
    assert model.groups == calibrant.certify(Y_TRUE, Y_PROB, by=GROUPS, **asked)
    limit = calibrant.confidence_interval(Y_TRUE, Y_PROB, measure="risk_gap", alternative="less")  # per row
    assert model.decisions.promise == calibrant.decision_guarantee(limit)
    assert "25 per 100 of all events" in report.markdown()
    assert "as a share of all events" in report.html()
    free = CalibrationReport.from_predictions(Y_TRUE, Y_PROB, relative_to="events").summary.models[0]
    assert free.limits == calibrant.confidence_interval(Y_TRUE, Y_PROB, relative_to="events")


@pytest.mark.usefixtures("without_plots")
def test_rows_without_an_event_set_no_limit_to_shares_of_events():
    report = CalibrationReport.from_predictions(
        np.zeros(200), Y_PROB[:200] / 50.0, max_error=0.25, relative_to="events"
    )
    shown = re.sub(r"<(script|style).*?</\1>", "", report.html(), flags=re.DOTALL)
    assert "they set no upper limit to the difference" in shown
    assert not re.search(r"\b(nan|inf)\b", shown)
    assert ReportSummary.from_json(report.json()) == report.summary


@pytest.mark.usefixtures("without_plots")
def test_a_limit_that_says_little_is_never_green():
    y_prob = np.random.default_rng(8).beta(0.5, 20.0, 4000)
    y_true = np.random.default_rng(9).random(4000) < y_prob
    groups = np.arange(4000) % 3
    for by in (None, groups):
        report = CalibrationReport.from_predictions(y_true, 3.0 * y_prob.clip(0.0, 0.3), by=by, max_error=0.1)
        model = model_of(report)
        (caution,) = model.certificate.cautions
        assert report.certified
        assert 'class="card verdict cautioned"' in report.html()
        assert 'class="state certified"' not in report.html()
        assert str(caution) in html.unescape(report.html())
        assert f"**Caution:** {str(caution).replace('_', chr(92) + '_')}" in report.markdown()
        assert str(caution) in json.loads(report.json())["models"][0]["certificate"]["cautions"]
        assert "## Certified, but the limit says little. " in report.markdown()


@pytest.mark.usefixtures("without_plots")
def test_a_caution_on_a_group_is_a_caution():
    y_true, y_prob = rows(6000, seed=3)
    groups = np.where(np.arange(6000) % 2 == 0, "common", "rare")
    y_prob = np.where(groups == "rare", 0.02 * y_prob, y_prob)
    y_true = np.random.default_rng(4).random(6000) < y_prob
    report = CalibrationReport.from_predictions(y_true, y_prob, by=groups, max_error=0.1)
    assert report.certified
    assert not model_of(report).certificate.cautions
    assert "**Caution:** In group rare: Forecasting 0 for everybody" in report.markdown()
    page = report.html()
    assert 'class="card verdict cautioned"' in page
    assert page.count('class="state certified"') < page.count('class="state cautioned"') + 3


@pytest.mark.usefixtures("without_plots")
def test_a_note_comes_before_advice():
    report = CalibrationReport.from_predictions(Y_TRUE, 1.0 - Y_PROB, max_error=0.05)
    first = report.markdown().partition("### Where")[0]
    (note,) = model_of(report).certificate.notes
    assert "perhaps these are probabilities of the other class" in note
    assert first.index("**Note:** events are rarer where forecasts are higher") < first.index(
        "**Next:** See to the note"
    )
    page = html.unescape(report.html())
    assert page.count(f">Note: {note}<") == 1


def test_a_summary_whose_parts_disagree_is_refused(report, model):
    for changed in ({"verdict": "certified"}, {"verdict": None}):
        with pytest.raises(ValueError, match=r"verdict of this ModelSummary is .*, while its parts say 'undecided'"):
            dataclasses.replace(model, **changed)
    with pytest.raises(ValueError, match="there is one of certificate and limits, never both"):
        dataclasses.replace(model, certificate=None)
    with pytest.raises(ValueError, match="while its models say 'undecided'"):
        dataclasses.replace(report.summary, verdict="refuted")
    with pytest.raises(ValueError, match="not as many as limits, or none"):
        GroupLimits(confidence_level=0.95, groups=("a",), limits=())


# --- Order, bytes and fingerprints ------------------------------------------------------------------------------------

KINDS = {
    "0/1": {},
    "groups": {"by": GROUPS},
    "weights": {"sample_weight": WEIGHTS},
    "weights and groups": {"sample_weight": WEIGHTS, "by": GROUPS},
    "fractions": {"fraction": True},
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_the_order_of_the_rows_changes_no_byte(kind):
    order = np.random.default_rng(5).permutation(800)
    y_true = 0.5 * Y_TRUE + 0.3 * Y_PROB if "fraction" in kind else Y_TRUE
    options = {name: value for name, value in kind.items() if name != "fraction"}
    straight = CalibrationReport.from_predictions(y_true, Y_PROB, **options)
    shuffled = CalibrationReport.from_predictions(
        y_true[order], Y_PROB[order], **{name: value[order] for name, value in options.items()}
    )
    assert straight.json() == shuffled.json()
    for one, other in zip(straight._rows, shuffled._rows, strict=True):  # all else that a page is made from
        assert content(one) == content(other)
    assert straight.summary.models[0].repair is not None


def test_the_same_rows_in_any_order_give_the_same_bytes(page):
    turned = CalibrationReport.from_predictions(
        Y_TRUE[::-1], Y_PROB[::-1], by=GROUPS[::-1], max_error=0.05, threshold=0.3, title="Rain"
    )
    assert turned.html() == page


def digest_of(y_true, y_prob):
    order = np.argsort(y_prob)
    columns = (y_prob[order], np.ones(y_prob.size), y_true[order])
    return hashlib.sha256(
        b"calibrant tally 1" + b"".join(np.asarray(column, dtype="<f8").tobytes() for column in columns)
    )


def test_the_fingerprint_is_a_digest_of_forecasts_rows_and_events():
    report = CalibrationReport.from_predictions(Y_TRUE, Y_PROB)
    assert report.summary.models[0].fingerprint == digest_of(Y_TRUE, Y_PROB).hexdigest()


def test_with_groups_it_is_one_of_their_names_and_rows_too(model):
    digest = hashlib.sha256(b"calibrant groups 1" + digest_of(Y_TRUE, Y_PROB).digest())
    for name in ("north", "south"):
        inside = name == GROUPS
        digest.update((5).to_bytes(8, "little") + name.encode() + digest_of(Y_TRUE[inside], Y_PROB[inside]).digest())
    assert model.fingerprint == digest.hexdigest()


def test_any_change_of_the_data_changes_the_fingerprint():
    def print_of(y_true, y_prob, **options):
        return CalibrationReport.from_predictions(y_true, y_prob, **options).summary.models[0].fingerprint

    other_outcome = np.where(np.arange(800) == 17, 1 - Y_TRUE, Y_TRUE)
    other_forecast = np.where(np.arange(800) == 17, np.nextafter(Y_PROB, 1.0), Y_PROB)
    prints = [
        print_of(Y_TRUE, Y_PROB),
        print_of(other_outcome, Y_PROB),
        print_of(Y_TRUE, other_forecast),
        print_of(Y_TRUE, Y_PROB, sample_weight=WEIGHTS),
        print_of(Y_TRUE, Y_PROB, sample_weight=2 * WEIGHTS),
        print_of(Y_TRUE, Y_PROB, by=GROUPS),
        print_of(Y_TRUE, Y_PROB, by=np.roll(GROUPS, 1)),
        print_of(Y_TRUE, Y_PROB, by=np.where(GROUPS == "north", "south", "north")),
        print_of(Y_TRUE, Y_PROB, by=np.full(800, "north")),
    ]
    assert len(set(prints)) == len(prints)


def test_nothing_of_matplotlib_is_touched_or_obeyed(report, page):
    before = dict(matplotlib.rcParams)
    again = copy.copy(report)
    del again.__dict__["_page"]
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "black", "lines.linewidth": 9, "svg.hashsalt": "x"}):
        assert again.html() == page
    assert dict(matplotlib.rcParams) == before
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


# --- The page ---------------------------------------------------------------------------------------------------------


def test_the_page_asks_nothing_of_anybody(page):
    parsed = Parsed(page)
    assert not parsed.all("src")
    assert not parsed.all("srcset")
    assert not [tag for tag, _ in parsed.elements if tag in ("link", "img", "iframe", "object", "base", "form")]
    assert [link for link in parsed.all("href") if not link.startswith("#")] == ["https://arxiv.org/abs/2502.19851"]
    (css,) = parsed.inside["style"]
    assert "@import" not in css
    assert "url(" not in css
    data, script = parsed.inside["script"]
    assert json.loads(data)
    assert not re.search(r"fetch|XMLHttpRequest|WebSocket|import\(|eval|innerHTML|document\.write|localStorage", script)
    assert len(re.findall(r"https?:", page)) == 1


def test_only_the_style_and_script_of_the_page_may_act(page):
    parsed = Parsed(page)
    (policy,) = [a["content"] for _, a in parsed.elements if a.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    for rule, text in (("style-src", parsed.inside["style"][0]), ("script-src", parsed.inside["script"][1])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert not [name for _, attributes in parsed.elements for name in attributes if name == "style" or name[:2] == "on"]


def test_names_inside_the_page_are_unique_and_lead_somewhere(page):
    parsed = Parsed(page)
    ids = parsed.all("id")
    assert len(ids) == len(set(ids))
    clips = [value[5:-1] for value in parsed.all("clip-path")]
    assert clips
    links = [link[1:] for link in parsed.all("href") if link.startswith("#")]
    labels = [name for value in parsed.all("aria-labelledby") for name in value.split()]
    assert set(clips) | set(links) | set(labels) | set(parsed.all("for")) <= set(ids)


def test_headings_come_in_order(page):
    levels = [int(tag[1]) for tag, _ in Parsed(page).elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later <= earlier + 1 for earlier, later in itertools.pairwise(levels))


def test_every_colour_of_a_plot_is_a_variable(page):
    css = Parsed(page).inside["style"][0]
    classes = re.findall(r"^\.plot \.p\d+ \{.*\}$", css, flags=re.MULTILINE)
    assert len(classes) > 10
    assert not [rule for rule in classes if re.search(r"#[0-9a-fA-F]{3}|rgb|DejaVu", rule)]
    drawn = re.findall(r'<svg viewBox="[^"]*" class="plot".*?</svg>', page, flags=re.DOTALL)
    assert len(drawn) == 5
    assert not [svg for svg in drawn if re.search(r'(fill|stroke|style|font)="', svg)]
    for theme in ("light", "dark"):
        for role, colour in dataclasses.asdict(PALETTES[theme]).items():
            assert role == "paper" or f"--plot-{role}: {colour};" in css


def test_one_model_takes_less_than_a_megabyte_and_shows_no_row():
    y_true, y_prob = rows(20_000, seed=3)
    report = CalibrationReport.from_predictions(y_true, y_prob, max_error=0.05)
    text = report.html()
    assert len(text.encode()) < 1_000_000
    model = report.summary.models[0]
    assert model.decisions is not None
    assert model.repair is not None
    worst, best = model.measures.worst_interval, model.decisions.best
    judged = [each for each in (model.repair.before, model.repair.after) if each is not None]
    assert len(judged) == 2
    written = set(re.findall(r"\d\.\d{6,}(?:e-\d+)?", text))
    found = {value for value in y_prob.tolist() if repr(value) in written}
    ends = [end for each in (worst, *(c.worst_interval for c in judged)) for end in (each.low, each.high)]
    assert found <= {*ends, best.cutoff, best.cutoff_above}
    lists: list[list[Any]] = []
    json.loads(report.json(), object_hook=lambda each: lists.extend(v for v in each.values() if isinstance(v, list)))
    assert max(map(len, lists)) == 99  # one number per threshold, never one per row


def test_printed_limits_are_limits(page, model):
    table = model.decisions
    printed = re.findall(r'data-value="guarantee">([\d.]+)<', page)
    assert printed == [rounded_up(value) for value in table.guarantee]
    assert all(float(said) >= value for said, value in zip(printed, table.guarantee, strict=True))
    lower, upper = rounded_down(model.certificate.lower), rounded_up(model.certificate.upper)
    assert f"at least {lower} and at most {upper}, each with 95% confidence" in page


@pytest.mark.parametrize("name", EDGE_CASES)
def test_odd_data_still_make_a_report(name):
    report = CalibrationReport.from_predictions(EDGE_CASES[name](), max_error=0.1)
    text = report.html()
    shown = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)
    assert not re.search(r"\b(nan|inf|None(?! of these rows)|True|False)\b", shown)
    assert model_of(report).certificate.verdict in text
    assert ReportSummary.from_json(report.json()) == report.summary
    assert report.markdown().startswith("# Can these forecasts be trusted?\n")


# --- Hostile words ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile():
    groups = np.where(GROUPS == "north", HOSTILE, "<b>south</b>")
    return CalibrationReport.from_predictions(
        Y_TRUE, {HOSTILE: Y_PROB, "<i>x</i>": Y_PROB**2}, by=groups, title=HOSTILE, max_error=0.05
    )


def test_words_of_the_user_are_never_markup(hostile):
    harmless = CalibrationReport.from_predictions(
        Y_TRUE, {"a": Y_PROB, "b": Y_PROB**2}, by=GROUPS, title="t", max_error=0.05
    )
    parsed, expected = Parsed(hostile.html()), Parsed(harmless.html())
    assert [tag for tag, _ in parsed.elements] == [tag for tag, _ in expected.elements]
    assert [sorted(a) for _, a in parsed.elements] == [sorted(a) for _, a in expected.elements]
    assert ReportSummary.from_json(parsed.inside["script"][0]) == hostile.summary
    assert "49" not in re.findall(r"\{\{.*?\}\}", hostile.html())


def test_no_script_element_can_be_ended_from_inside(hostile):
    text = pages.embedded_json(hostile.summary)
    assert not re.search(r"[<>&]", text)
    assert json.loads(text) == json.loads(hostile.json())


def test_words_of_the_user_are_not_markdown_either(hostile):
    text = hostile.markdown()
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert not re.search(r"(?<!\\)[<>]", prose)
    assert not re.search(r"(?<!\\)\[a", prose)
    assert [line for line in text.splitlines() if line.startswith("# ")] == [text.splitlines()[0]]
    for table in re.findall(r"(?:^\|.*\n)+", prose, flags=re.MULTILINE):
        widths = [len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()]
        assert widths == [widths[0]] * len(widths), table
        assert widths[0] in (5, 6, 7), table


def test_names_no_file_can_hold_are_written_all_the_same(tmp_path):
    report = CalibrationReport.from_predictions(Y_TRUE, Y_PROB, name="a\ud800b", title="t\udcff")
    assert r"<title>t\udcff</title>" in report.write_html(tmp_path / "page.html").read_text(encoding="utf-8")
    assert report.markdown().startswith("# t\\\\udcff\n")  # whose backslash Markdown wants escaped
    assert ReportSummary.from_json(report.json()) == report.summary


def test_a_line_break_in_a_group_ends_no_sentence():
    groups = np.where(GROUPS == "north", "up\nNote on all: fake", "down")
    text = CalibrationReport.from_predictions(Y_TRUE, Y_PROB**4, by=groups, max_error=0.01).markdown()
    assert "more than 1 per 100 of its cases in down, up\N{SYMBOL FOR NEWLINE}Note on all: fake." in text
    assert "\nNote on all" not in text


# --- What is said is what is meant ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("without_plots")
def test_a_hint_stands_in_the_words_of_the_report_once():
    report = CalibrationReport.from_predictions(Y_TRUE, 1 - Y_PROB, max_error=0.05)
    for text in (report.html().partition("<script")[0], report.markdown()):
        assert text.count("events are rarer where forecasts are higher") == 1


def test_each_limit_is_said_to_hold_by_itself(page, report):
    said = "Each of the two limits holds with 95% confidence by itself, both at once with 90%."
    assert page.count(said) == 1  # in the method
    assert said in report.markdown()


def test_a_verdict_in_plain_words_names_only_numbers_as_sure_as_itself():
    # A limit that is shown or not depending on the verdict is less sure than the verdict, unless nothing was decided.
    certified, undecided, refuted = (
        CalibrationReport.from_predictions(Y_TRUE, Y_PROB**power, max_error=limit)
        for power, limit in ((1, 0.25), (1.5, 0.02), (4, 0.07))
    )
    names = ["certified", "undecided", "refuted"]
    reports = dict(zip(names, (certified, undecided, refuted), strict=True))
    assert [model_of(each).certificate.verdict for each in reports.values()] == names
    most = rounded_up(100 * model_of(undecided).certificate.upper, 1)
    for name, said in (
        ("certified", "differ by at most 25 per 100 of all cases"),
        ("refuted", "differ by more than 7 per 100 of all cases"),
        ("undecided", f"is at most {most} per 100 of all cases, with 95% confidence"),
    ):
        first = reports[name].markdown().partition("### Where the error is")[0]
        assert said in first
        assert ("We can say so with 95% confidence" in first) == (name != "undecided")
        certificate = model_of(reports[name]).certificate
        unsure = {rounded_up(100 * certificate.upper, digits) for digits in (1, 2)} if name != "undecided" else set()
        assert not [number for number in unsure if f" {number} per 100" in first]


@pytest.mark.usefixtures("without_plots")
def test_what_differs_between_models_is_not_said_of_all():
    several = CalibrationReport.from_predictions(Y_TRUE, {"a": Y_PROB, "b": Y_PROB**2})
    head = several.html().partition("<main")[0].rpartition("<h1>")[2]
    assert f"800 rows for each model, event rate {100 * Y_TRUE.mean():.1f}%" in head
    assert "mean forecast" not in head
    parts = {"a": Tally.from_arrays(Y_TRUE[:99], Y_PROB[:99]), "b": Tally.from_arrays(Y_TRUE, Y_PROB)}
    assert "<span>99 rows to 800 rows</span>" in CalibrationReport.from_predictions(parts).html()


@pytest.mark.usefixtures("without_plots")
def test_the_exact_method_speaks_of_these_forecasts_only():
    text = CalibrationReport.from_predictions(Y_TRUE, Y_PROB, method="exact").html()
    shown = re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)
    assert shown.count("for these very forecasts, as if issued once more") >= 4
    assert "for cases to come" not in shown
    assert "among cases to come" not in shown


def test_the_normal_method_is_said_to_be_for_many_rows():
    said = "We can say so with 95% confidence, as far as a rule for many rows applies"
    for limit in (0.01, 0.05, 0.5):
        assert said in CalibrationReport.from_predictions(Y_TRUE, Y_PROB, method="normal", max_error=limit).markdown()
        assert said not in CalibrationReport.from_predictions(Y_TRUE, Y_PROB, max_error=limit).markdown()


def test_rare_events_leave_digits():
    rng = np.random.default_rng(0)
    y_prob = rng.random(50_000) * 1e-4
    text = CalibrationReport.from_predictions((np.arange(50_000) < 2).astype(int), y_prob).markdown()
    assert "mean forecast 0.005%, event rate 0.004%" in text
    assert not re.search(r"by 0\.00 percentage points|Cutoff \| 0\.00000|Mean loss per row: 0\.00000", text)


def test_weights_are_said_to_count():
    said = "Rows count by their weights"
    assert said in CalibrationReport.from_predictions(Y_TRUE, Y_PROB, sample_weight=WEIGHTS).markdown()
    assert said not in CalibrationReport.from_predictions(Y_TRUE, Y_PROB).markdown()


def test_too_few_rows_call_for_more_and_not_for_a_repair():
    few = CalibrationReport.from_predictions(Y_TRUE[:30], Y_PROB[:30], max_error=0.05).markdown()
    assert "**Next:** Judge more rows" in few
    assert "These rows cannot tell whether some range of forecasts is off by more than 5 per 100 of all cases" in few


# --- Other forms ------------------------------------------------------------------------------------------------------


def test_the_json_is_the_summary_and_stands_in_the_page(report, page):
    assert ReportSummary.from_json(report.json()) == report.summary
    assert json.loads(Parsed(page).inside["script"][0]) == json.loads(report.json())


def test_markdown_holds_the_words_and_the_tables(report, model):
    text = report.markdown()
    assert text.startswith("# Rain\n")
    assert f"{model.certificate.finding()} {model.certificate.numbers()}" in text
    assert model.certificate.worst_interval.where() in text
    assert str(model.certificate.worst_interval) in text
    assert f"| Cutoff error | {model.measures.cutoff:.5f} | 0 |" in text
    for label, certificate in zip(model.groups.groups, model.groups.certificates, strict=True):
        assert f"| {label} | {certificate.rows} | {certificate.verdict} | {certificate.estimate:.4f} |" in text
    assert model.fingerprint in text
    assert not re.search(r"\n{3,}", text)


def code_in(page, start):
    found = re.search(rf"<pre[^>]*><code>({start}.*?)</code>", page, re.DOTALL)
    assert found is not None
    return html.unescape(found[1])


REDONE: dict[str, tuple[Any, dict[str, Any]]] = {
    "one": (Y_PROB, {"name": "y_prob", "sample_weight": WEIGHTS}),
    "two": ({"first one": Y_PROB, "it's": Y_PROB**2}, {"by": GROUPS}),
}


@pytest.mark.parametrize("case", REDONE)
def test_the_code_in_the_report_makes_it_again(case, tmp_path, monkeypatch, request):
    if case == "two":  # plots are of the same rows, which are those of the fingerprint
        request.getfixturevalue("without_plots")
    forecasts, data = REDONE[case]
    options: dict[str, Any] = {
        "max_error": 0.07,
        "confidence_level": 0.9,
        "threshold": 0.25,
        "rng": 3,
        "title": "A 'title' <b>",
        "source": "predictions.parquet",
        "date": "2026-03-31",
    }
    report = CalibrationReport.from_predictions(Y_TRUE, forecasts, **data, **options)
    code = code_in(report.html(), "import calibrant")
    assert code in report.markdown()
    monkeypatch.chdir(tmp_path)
    given = {"y_true": Y_TRUE, "groups": GROUPS, "y_prob": Y_PROB, "y_prob_1": Y_PROB, "y_prob_2": Y_PROB**2}
    exec(code, {**given, "sample_weight": WEIGHTS})
    written = tmp_path / "report.html"
    assert written.read_text(encoding="utf-8") == report.html()

    written.unlink()
    columns = forecasts if case == "two" else {"y_prob": Y_PROB}
    table = pd.DataFrame({"y_true": Y_TRUE, **columns, "groups": GROUPS, "sample_weight": WEIGHTS})
    table.to_parquet("predictions.parquet")
    program, *arguments = shlex.split(code_in(report.html(), "calibrant report").replace("\\\n", " "))
    assert program == "calibrant"
    finished = CliRunner().invoke(main, arguments)
    assert finished.exit_code == 3, finished.output  # undecided
    assert written.read_text(encoding="utf-8") == report.html()


def test_the_repair_in_the_report_runs(page):
    code = code_in(page, "recalibrator =")
    given = {"calibrant": calibrant, "y_true": Y_TRUE, "y_prob": Y_PROB, "new_forecasts": [0.1, 0.9], "print": str}
    exec(code, given)
    assert given["better"].shape == (2,)


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(hostile):
    text = hostile._repr_html_()
    ((tag, attributes),) = Parsed(text).elements
    assert tag == "iframe"
    assert attributes["srcdoc"] == hostile.html()
    assert attributes["sandbox"] == "allow-scripts"
    assert str(hostile).startswith(HOSTILE.replace("\n", r"\n"))
    assert repr(hostile) == str(hostile.summary)


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib.figure"])
def test_what_is_missing_is_named_and_the_words_stay(missing, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    pages._environment.cache_clear()
    again = CalibrationReport.from_predictions(Y_TRUE, Y_PROB)
    with pytest.raises(ImportError, match=r"pip install 'calibrant\[cli\]'"):
        again.html()
    assert again._repr_html_() == again.summary._repr_html_()
    assert json.loads(again.json())


def test_a_report_can_be_pickled(report, page):
    assert pickle.loads(pickle.dumps(report)).html() == page


def test_the_page_is_written_in_full_or_not_at_all(report, page, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    assert report.write_html(str(path)) == path
    assert path.read_bytes() == page.encode()
    path.write_text("earlier")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk is full")))
    with pytest.raises(OSError, match="disk is full"):
        report.write_html(path)
    assert path.read_text() == "earlier"
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(FileNotFoundError):
        report.write_html(tmp_path / "nowhere" / "report.html")


# --- Estimators -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(2)
    features = rng.normal(size=(600, 3))
    labels = np.where(rng.random(600) < 1.0 / (1.0 + np.exp(-features[:, 0])), "rain", "dry")
    models = {"bayes": GaussianNB(), "logistic": LogisticRegression()}
    for each in models.values():
        each.fit(features[:300], labels[:300])
    return models, features[300:], labels[300:]


def test_a_classifier_is_judged_by_its_forecasts(fitted):
    models, features, labels = fitted
    report = CalibrationReport.from_estimator(models["bayes"], features, labels, max_error=0.2)
    forecasts = models["bayes"].predict_proba(features)[:, 1]  # of "rain", the second class
    assert report.summary.models[0].name == "GaussianNB"
    assert report.summary.models[0].certificate == calibrant.certify(labels == "rain", forecasts, max_error=0.2)
    several = CalibrationReport.from_estimator(models, features, labels, pos_label="dry")
    dry = Tally.from_arrays(labels == "dry", models["logistic"].predict_proba(features)[:, 0])
    assert [each.name for each in several.summary.models] == ["bayes", "logistic"]
    assert several.summary.models[1].measures == calibrant.measure(dry)


def test_classifiers_that_disagree_about_the_event_need_to_be_told(fitted):
    models, features, labels = fitted
    turned = LogisticRegression().fit(features, labels)
    turned.classes_ = turned.classes_[::-1]
    with pytest.raises(ValueError, match="forecast different events, 'rain' and 'dry'; say which"):
        CalibrationReport.from_estimator({"a": models["bayes"], "b": turned}, features, labels)
    with pytest.raises(ValueError, match="pos_label is 'snow', which is not a class"):
        CalibrationReport.from_estimator(models["bayes"], features, labels, pos_label="snow")


# --- What is left out, and what is refused ----------------------------------------------------------------------------


def test_a_section_that_the_data_cannot_support_is_left_out_with_the_reason():
    few = CalibrationReport.from_predictions(Y_TRUE[:30], Y_PROB[:30], max_error=0.05)
    (omission,) = few.summary.models[0].omissions
    assert omission.section == "repair"
    assert "Left out: it takes at least 40 rows to learn from half of them, and there are 30." in few.html()
    weighted = Tally.from_arrays(Y_TRUE, Y_PROB, sample_weight=WEIGHTS)
    totals = weighted.stretch(0, len(weighted))
    text = CalibrationReport.from_predictions(totals).markdown()
    assert "Left out, whether recalibrating helps: this tally knows totals of fractions or weighted rows only" in text


def test_a_tally_of_weighted_rows_says_as_much_as_the_rows():
    weighted = Tally.from_arrays(Y_TRUE, Y_PROB, sample_weight=WEIGHTS)
    from_tally = CalibrationReport.from_predictions(weighted)
    assert from_tally.json() == CalibrationReport.from_predictions(Y_TRUE, Y_PROB, sample_weight=WEIGHTS).json()
    assert from_tally.summary.models[0].repair is not None


def test_where_forecasts_repeat_the_repair_says_what_its_halves_hold_over():
    said = (
        "Where forecasts repeat, what is said of the halves holds over the choice of the seed, which should be random."
    )
    assert said not in CalibrationReport.from_predictions(Y_TRUE, Y_PROB).markdown()
    assert said in CalibrationReport.from_predictions(Y_TRUE, np.round(Y_PROB, 1)).markdown()


REFUSED: dict[str, dict[str, Any]] = {
    "threshold is 0, where everybody or nobody": {"threshold": 0},
    "threshold must be a number": {"threshold": "half"},
    "rng must be a whole number, got None": {"rng": None},
    "rng must be a whole number from 0 to inf, got -1": {"rng": -1},
    "max_error must be": {"max_error": 2},
    "confidence_level": {"confidence_level": 1.0},
    "method must be|method is": {"method": "magic"},
    "by has 2 values for 800 rows": {"by": ["a", "b"]},
}


@pytest.mark.parametrize("message", REFUSED)
def test_bad_options_are_refused(message):
    with pytest.raises(ValueError, match=message):
        CalibrationReport.from_predictions(Y_TRUE, Y_PROB, **REFUSED[message])


REFUSED_DATA: dict[str, Callable[[Tally], Any]] = {
    "y_prob is an empty dict": lambda _: ((Y_TRUE, {}), {}),
    "y_prob has the name 3; name each model": lambda _: ((Y_TRUE, {3: Y_PROB}), {}),
    "y_true has the name ' '": lambda tally: (({" ": tally},), {}),
    r"y_true\['a'\] is a ndarray; a dict in place of the outcomes holds a Tally": lambda _: (({"a": Y_TRUE},), {}),
    "by was given together with a Tally": lambda tally: ((tally,), {"by": GROUPS}),
    "y_prob was given together with a Tally": lambda tally: ((tally, Y_PROB), {}),
    "does not cover sample_weight": lambda _: ((Y_TRUE, Y_PROB), {"method": "exact", "sample_weight": WEIGHTS}),
}


@pytest.mark.parametrize("message", REFUSED_DATA)
def test_bad_data_are_refused(message):
    data, options = REFUSED_DATA[message](Tally.from_arrays(Y_TRUE, Y_PROB))
    with pytest.raises(ValueError, match=message):
        CalibrationReport.from_predictions(*data, **options)


def test_results_of_a_report_read_as_sentences(report, model):
    assert str(model.repair).endswith(
        f"and the Brier score from {model.repair.brier_before:.4f} to {model.repair.brier_after:.4f}."
    )
    most = rounded_up(model.decisions.promise.upper)
    assert (
        "\nWith 95% confidence no re-drawing of the line between acting and not acting saves more than "
        f"{most} per case, at any threshold. This assumes that the rows are independent"
    ) in str(model.decisions)
    buffer = io.StringIO()
    print(report, file=buffer)
    assert str(model.certificate) in buffer.getvalue()


# --- Rows that are scanned, not held ----------------------------------------------------------------------------------


class Scanned:
    """Rows that hand over so many at most."""

    def __init__(self, y_true, y_prob, *, tally_limit):
        self._rows = ArrayRows(check_observations(y_true, y_prob))
        self.fetch_limit, self.tally_limit = 20_000, tally_limit

    def histogram(self, grid):
        return self._rows.histogram(grid)

    def fetch(self, low, high):
        return self._rows.fetch(low, high)


@pytest.fixture(scope="module")
def many():
    return rows(120_000, seed=4)


def test_a_source_of_rows_is_reported_like_its_rows(many):
    scanned = CalibrationReport.from_predictions(Scanned(*many, tally_limit=1_000_000))
    listed = CalibrationReport.from_predictions(*many)
    assert scanned.json() == listed.json()
    assert content(scanned._rows) == content(listed._rows)


def test_parts_added_up_are_reported_like_the_whole():
    whole = CalibrationReport.from_predictions(Y_TRUE, Y_PROB.round(1))
    parts = [Tally.from_arrays(Y_TRUE[part::3], Y_PROB[part::3].round(1)) for part in range(3)]
    assert CalibrationReport.from_predictions(parts[0] + parts[1] + parts[2]).json() == whole.json()


def test_more_rows_than_can_be_held_still_get_a_verdict(many):
    source = Scanned(*many, tally_limit=1000)
    report = CalibrationReport.from_predictions(source, max_error=0.05)
    model = model_of(report)
    expected = calibrant.certify(source, max_error=0.05)
    assert model.certificate.verdict == expected.verdict
    assert model.certificate.upper == pytest.approx(expected.upper, abs=1e-12)
    assert model.rows == 120_000
    assert model.mean_outcome == pytest.approx(many[0].mean())
    assert model.measures.cutoff == pytest.approx(calibrant.cutoff_calibration_error(*many), abs=1e-12)
    assert any("cell" in note for note in model.measures.notes)
    assert (model.decisions, model.repair, model.fingerprint) == (None, None, None)
    assert [each.section for each in model.omissions] == ["plots", "decisions", "repair"]
    text = report.html()
    assert text.count("Left out: this needs every distinct forecast, and ") == 3
    assert 'class="plot"' not in text
    assert "Left out, the pictures: this needs every distinct forecast" in report.markdown()
    assert ReportSummary.from_json(report.json()) == report.summary


def test_a_source_in_groups_is_sent_elsewhere():
    grouped = SimpleNamespace(groups=("a", "b"), histograms=list, fetches=list)
    with pytest.raises(ValueError, match="this source holds rows in groups"):
        CalibrationReport.from_predictions(grouped)


def test_a_threshold_on_which_nobody_is_acted_on_says_so():
    rare = np.linspace(0.0, 0.03, 800)
    y_true = np.random.default_rng(3).random(800) < rare
    nobody = "Nobody is acted on here: no forecast on these rows is so high."
    elsewhere = "threshold= chooses which comes first"
    for text in (
        each(CalibrationReport.from_predictions(y_true, rare))
        for each in (CalibrationReport.html, CalibrationReport.markdown)
    ):
        assert nobody in text
        assert elsewhere in text
    chosen = CalibrationReport.from_predictions(y_true, rare, threshold=0.02).markdown()
    assert nobody not in chosen
    assert elsewhere not in chosen
