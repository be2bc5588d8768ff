"""The tour in a browser: its numbers are the library's, a keyboard moves it, and nothing but its own files is read."""

import importlib.util
import re
import warnings
from dataclasses import asdict
from itertools import product
from pathlib import Path

import markdown_it
import numpy as np
import pytest

import calibrant
from calibrant.displays.palette import PALETTES

axe_playwright = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")


DOCS = Path(__file__).parents[2] / "docs"
TOUR = (DOCS / "tour.md").read_text(encoding="utf-8")
FIGURES = ("bend", "weights", "sample", "decision", "jitter", "wedge")
BENT = [
    {},
    {"shift": 0.1},
    {"shift": -0.2, "slope": 0.5},
    {"slope": 1.6},
    {"slope": 0.4, "height": 0.1, "waves": 3},
    {"height": 0.2, "waves": 20},
    {"shift": 0.07, "slope": 1.3, "height": 0.2, "waves": 7},
    {"levels": 1, "shift": 0.1},
    {"levels": 2, "slope": 0},
    {"levels": 7, "shift": 0.2, "height": 0.1},
]
THRESHOLDS = [0.05, 0.2, 0.35, 0.5, 0.77]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Where the page of the tour is, without the frame that the site puts around it."""
    body = markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table").render(TOUR)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><base href="{DOCS.as_uri()}/">'
    path = tmp_path_factory.mktemp("tour") / "tour.html"
    html = (
        f'<!DOCTYPE html><html lang="en" data-theme="light"><head>{head}<title>Tour</title></head><main>{body}</main>'
    )
    path.write_text(html, encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def page(browser, address):
    """The page, with a complaint in the end about whatever went wrong in it or was asked of others."""
    problems: list[str] = []
    requests: list[str] = []
    opened = browser.new_context(offline=True, viewport={"width": 1200, "height": 900}).new_page()
    opened.on("console", lambda message: problems.append(message.text))
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("request", lambda request: requests.append(request.url))
    opened.goto(address)
    yield opened
    opened.context.close()
    assert not problems
    assert {url for url in requests if url != address and not url.startswith(DOCS.as_uri())} == set()


def computed(page, expression, argument):
    return page.evaluate(f"(argument) => {{ const tour = window.calibrantTour; return {expression}; }}", argument)


def tally_of(law):
    return calibrant.Tally.from_arrays(law["rate"], law["forecast"], sample_weight=law["weight"])


def measured(law):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calibrant.CalibrationWarning)
        return calibrant.measure(tally_of(law), spectrum=True)


def agrees(found, law):
    """Hold every number of a law of forecasts and rates to the library's."""
    expected = measured(law)
    pairs = {
        "ece": expected.ece,
        "cutoff": expected.cutoff,
        "smooth": expected.smooth,
        "variation": expected.bounded_variation,
        "bias": expected.calibration_in_the_large,
        "gap": expected.risk_gap,
    }
    assert {name: found[name] for name in pairs} == pytest.approx(pairs, abs=1e-12)
    ends = {"low": expected.distance.low, "high": expected.distance.high}
    assert found["distance"] == pytest.approx(ends, abs=1e-12)
    attained = np.array(found["smoothWeight"]) * found["weight"] @ (np.array(found["rate"]) - found["forecast"])
    assert attained == pytest.approx(expected.smooth, abs=1e-12)
    assert np.abs(found["smoothWeight"]).max() <= 1.0
    assert (np.abs(np.diff(found["smoothWeight"])) <= np.diff(found["forecast"]) + 1e-12).all()
    if expected.cutoff > 1e-9:
        inside = found["forecast"][found["worst"]["first"] : found["worst"]["last"]]
        assert (inside[0], inside[-1]) == (expected.worst_interval.low, expected.worst_interval.high)


@pytest.mark.parametrize("settings", BENT, ids=str)
def test_numbers_of_a_bent_forecaster_are_those_of_the_library(page, settings):
    found = computed(page, "tour.compute(argument)", settings)
    assert len(found["forecast"]) == settings.get("levels", 200)
    agrees(found, found)
    for statement, left, right, whose in computed(page, "tour.relations(argument)", settings):
        assert left <= right + 1e-12, statement
        assert f"| {statement} | {whose} |" in TOUR


@pytest.mark.parametrize("settings", [{"slope": 0.5}, *BENT[1:]], ids=str)
def test_losses_and_savings_are_those_of_the_library(page, settings):
    law = computed(page, "tour.population(argument)", settings)
    tally = tally_of(law)
    for threshold in THRESHOLDS:
        made = computed(page, "tour.decide(argument[0], argument[1])", [law, threshold])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", calibrant.CalibrationWarning)
            of_any_shape = calibrant.risk_gap(tally, threshold=threshold, wrapper="any")
        gap = calibrant.risk_gap(tally, threshold=threshold)
        assert made["loss"] == pytest.approx(gap.risk, abs=1e-12)
        assert made["saving"] == pytest.approx(gap.gap, abs=1e-12)
        assert made["anySaving"] == pytest.approx(of_any_shape.gap, abs=1e-12)


@pytest.mark.parametrize("step", [0.0, 0.001, 0.1])
def test_the_papers_example_has_the_papers_numbers(page, step):
    law = computed(page, "tour.jittered(argument)", step)
    found = computed(page, "tour.measure(tour.jittered(argument))", step)
    agrees(found, law)
    made = computed(page, "tour.decide(tour.jittered(argument), 0.75)", step)
    if step > 0.0:
        assert found["ece"] == pytest.approx(3 / 8 + step)
        assert found["distance"]["high"] == pytest.approx(step)
        assert made["loss"] == pytest.approx(3 / 8) == made["anySaving"]


@pytest.mark.parametrize(("shift", "rows"), [(0.0, 1000), (0.1, 300)])
def test_estimates_from_drawn_rows_are_those_of_the_library(page, shift, rows):
    draw = "tour.draw({ seed: 7, rows: 3000, shift: argument[0] })"
    forecast, outcome = computed(page, f"((drawn) => [[...drawn.forecast], [...drawn.outcome]])({draw})", [shift])
    found = computed(page, f"tour.estimate({draw}, argument[1])", [shift, rows])
    truth = computed(page, "tour.drawnTruth(argument)", shift)
    tally = calibrant.Tally.from_arrays(outcome[:rows], forecast[:rows])
    assert found["cutoff"] == pytest.approx(calibrant.cutoff_calibration_error(tally), abs=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", calibrant.CalibrationWarning)
        assert found["ece"] == pytest.approx(calibrant.expected_calibration_error(tally), abs=1e-12)
    limits = [
        min(1.0, calibrant.confidence_interval(tally, alternative="less", method=method).upper)
        for method in ("hoeffding", "paper")
    ]
    assert [found["limit"], found["paperLimit"]] == pytest.approx(limits, abs=1e-12)
    assert np.mean(forecast) == pytest.approx(0.5, abs=5 * np.sqrt(1 / 12 / 3000))
    assert np.mean(outcome) == pytest.approx(0.5 + truth, abs=5 * 0.5 / np.sqrt(3000))
    fine = computed(page, "tour.compute({ shift: argument })", shift)
    assert truth == pytest.approx(fine["cutoff"], abs=1e-4)


def words_of(sentence):
    return re.findall(r"[\w.,%-]*\w[\w.,%-]*", sentence)


def test_the_page_without_javascript_says_what_the_pictures_say_first(browser, page, address):
    still = browser.new_context(offline=True, java_script_enabled=False).new_page()
    still.goto(address)
    for name in FIGURES:
        place = still.locator(f'[data-tour="{name}"]')
        assert place.locator("img").is_visible()
        assert place.locator("img").evaluate("image => image.naturalWidth") > 300
        said = page.locator(f'[data-tour="{name}"] .tour-says').inner_text()
        assert place.locator("p").inner_text().replace("\n", " ") == said
        assert page.locator(f'[data-tour="{name}"] img').is_hidden()
    still.context.close()


@pytest.mark.parametrize("theme", PALETTES)
def test_without_javascript_the_site_shows_one_picture_of_a_pair(browser, theme, tmp_path):
    pair = "".join(f'<p class="only-{one}">{one}</p>' for one in PALETTES)
    style = f'<link rel="stylesheet" href="{(DOCS / "_static" / "house.css").as_uri()}">'
    path = tmp_path / "pair.html"
    path.write_text(f'<!DOCTYPE html><html data-theme="auto">{style}{pair}', encoding="utf-8")
    still = browser.new_context(offline=True, java_script_enabled=False, color_scheme=theme).new_page()
    still.goto(path.as_uri())
    assert still.locator("body").inner_text() == theme
    still.context.close()


@pytest.mark.parametrize("name", FIGURES)
def test_a_keyboard_moves_every_slider(page, name):
    figure = page.locator(f'[data-tour="{name}"]')
    said = figure.locator(".tour-says")
    assert said.get_attribute("aria-live") == "polite"
    first = said.inner_text()
    for slider in figure.get_by_role("slider").all():
        label = page.locator(f'label[for="{slider.get_attribute("id")}"]')
        before = slider.get_attribute("aria-valuetext")
        slider.focus()
        slider.press("ArrowLeft")
        if slider.get_attribute("aria-valuetext") == before:
            slider.press("ArrowRight")
        assert label.inner_text()
        assert slider.get_attribute("aria-valuetext") != before
        assert slider.evaluate("input => input.nextElementSibling.value") == slider.get_attribute("aria-valuetext")
        assert slider.evaluate("input => getComputedStyle(input).outlineStyle") == "solid"
    assert said.inner_text() != first
    again = figure.get_by_role("button", name="start again")
    again.focus()
    again.press("Enter")
    assert said.inner_text() == first


def test_other_rows_are_drawn_and_buttons_bend_the_forecaster(page):
    sample, bend = (page.locator(f'[data-tour="{name}"]') for name in ("sample", "bend"))
    for figure, button in ((sample, "Draw other rows"), (bend, "wavy"), (bend, "calibrated")):
        before = figure.locator(".tour-says").inner_text()
        figure.get_by_role("button", name=button).click()
        assert figure.locator(".tour-says").inner_text() != before
        figure.get_by_role("button", name="start again").click()


@pytest.mark.parametrize("theme", PALETTES)
def test_it_is_accessible_in_the_librarys_own_colours(page, theme):
    page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
    colours = {key.replace("_", "-"): value for key, value in asdict(PALETTES[theme]).items()}
    names = ["paper", "ink", "muted", "grid", "curve", "band", "highlight", "highlight-fill", "bound", "other", "bars"]
    used = "name => getComputedStyle(document.querySelector('.tour-figure')).getPropertyValue('--tour-' + name)"
    assert {name: page.evaluate(used, name) for name in names} == {name: colours[name] for name in names}
    found = axe_playwright.Axe().run(page, context={"include": [[".tour-live"]]}, options={"preload": False})
    assert found.violations_count == 0, found.generate_report()
    page.evaluate("() => { document.documentElement.dataset.theme = 'light'; }")


def test_it_fits_a_phone(page):
    page.set_viewport_size({"width": 390, "height": 844})
    for name, part in product(FIGURES, ("svg", ".tour-controls", ".tour-bars")):
        for one in page.locator(f'[data-tour="{name}"] {part}').all():
            box = one.bounding_box()
            assert box is None or (box["x"] >= 0.0 and box["x"] + box["width"] <= 390.0), (name, part)
    page.set_viewport_size({"width": 1200, "height": 900})


def test_sentences_are_short(page):
    bent = [{"shift": shift, "slope": slope} for shift in (-0.2, 0, 0.2) for slope in (0, 1, 2)]
    others = [*({"threshold": threshold, "slope": slope} for threshold in (0.05, 0.7, 0.95) for slope in (0, 1, 2))]
    asked = [*product(("bend", "weights"), bent), *product(("decision",), others), *((name, {}) for name in FIGURES)]
    for name, settings in asked:
        said = computed(page, "tour.say(argument[0], argument[1])", [name, settings])
        for sentence in re.split(r"[.:] ", said):
            assert len(words_of(sentence)) <= 30, sentence


@pytest.mark.parametrize("name", ["tour.md", "index.md"])
def test_sentences_of_the_page_are_short(name):
    text = (DOCS / name).read_text(encoding="utf-8")
    for hidden in (r"```.*?```", r"<picture>.*?</picture>", r"^\|.*?$", r"<[^>]*>", r"\]\([^)]*\)"):
        text = re.sub(hidden, " ", text, flags=re.DOTALL | re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n|\n- |\n#", text):
        for sentence in re.split(r"(?<=[.:?!;])\**\s", paragraph):
            assert len(words_of(sentence)) <= 30, sentence


@pytest.fixture(scope="module")
def stills():
    """The script that draws the still pictures, as a module."""
    found = importlib.util.spec_from_file_location("stills", DOCS / "tour" / "stills.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_every_still_picture_is_there_and_shown(stills):
    pages = TOUR + (DOCS / "index.md").read_text(encoding="utf-8")
    kept = {path.name for path in (DOCS / "tour").glob("*.png")}
    assert kept == {f"{name}_{theme}.png" for name in stills.PICTURES for theme in PALETTES}
    assert all(f"tour/{name}" in pages for name in kept)


def test_a_still_picture_is_drawn_again_to_the_last_byte(stills):
    assert stills.draw("weights", "dark") == stills.draw("weights", "dark")
