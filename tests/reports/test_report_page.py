"""The report page in a browser: Debian's Chromium, without a network."""

import contextlib
import re
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import calibrant
from calibrant.core.words import measured, percent, rounded_up

axe_playwright = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")


RNG = np.random.default_rng(0)
Y_PROB = RNG.random(1500).round(3)
Y_TRUE = (RNG.random(1500) < Y_PROB**1.5).astype(int)
GROUPS = np.where(np.arange(1500) % 3 == 0, "north", "a rather long name of a group, such as south and south-east")
HOSTILE = '</script><script>document.title="broken"</script><img src=x onerror="document.title=\'broken\'">'
LIMIT = 0.05
PHONE = {"width": 320, "height": 640}
DESKTOP = {"width": 1200, "height": 900}
FIRST_SCREENS = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}


PAGES: dict[str, dict[str, Any]] = {
    "one": {"y_prob": Y_PROB, "by": GROUPS, "threshold": 0.3, "title": "Late flights"},
    "two": {"y_prob": {"first": Y_PROB, "second": Y_PROB**1.5}},
    "hostile": {
        "y_prob": {HOSTILE + "x" * 300: Y_PROB, "y" * 300: Y_PROB**2},
        "by": np.where(GROUPS == "north", HOSTILE, "g" * 99),
        "title": HOSTILE + "T" * 500,
    },
    "certified": {"y_prob": Y_PROB**1.5, "max_error": 0.1, "source": "flights.parquet", "date": "2026-03-31"},
    "refuted": {"y_prob": Y_PROB**0.5},
    "undecided": {"y_prob": Y_PROB**1.4, "max_error": 0.02},
    "no limit": {"y_prob": Y_PROB, "max_error": None, "source": "flights.parquet", "date": "2026-03-31"},
    "cautioned": {"y_prob": Y_PROB**1.5, "max_error": 0.5},
}
"""Of one model with groups, of two models, of two models with hostile and long names, and one per headline."""


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """Where a page is, which is written when it is first asked for: each takes a while."""
    folder = tmp_path_factory.mktemp("pages")

    @cache
    def report_of(name):
        return calibrant.CalibrationReport.from_predictions(Y_TRUE, **{"max_error": LIMIT, **PAGES[name]})

    @cache
    def written(name):
        path = folder / f"{name}.html"
        if name == "notebook":
            frame = report_of("hostile")._repr_html_()
            path.write_text(f"<!DOCTYPE html><title>A notebook</title>{frame}", encoding="utf-8")
        else:
            report_of(name).write_html(path)
        return path.as_uri()

    return written


@contextlib.contextmanager
def opened(browser, address, **options):
    """Open a page with every request but the one for itself refused, and complain of whatever goes wrong in it."""
    problems, requests = [], []
    context = browser.new_context(offline=True, **{"viewport": DESKTOP, **options})
    page = context.new_page()
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(address)
    yield page
    context.close()
    assert not problems
    assert set(requests) <= {address, "about:srcdoc"}


@pytest.fixture
def visit(browser, page_file):
    """Open pages until the test ends."""
    with contextlib.ExitStack() as pages:
        yield lambda name, **options: pages.enter_context(opened(browser, page_file(name), **options))


def test_the_page_loads_without_a_network_and_shows_the_verdict_first(visit):
    page = visit("one")
    assert page.title() == "Late flights"
    certificate = calibrant.certify(Y_TRUE, Y_PROB, max_error=LIMIT)
    first = page.locator("main section").first
    assert certificate.verdict.capitalize() in first.inner_text()
    assert certificate.worst_interval.where() in first.inner_text()
    method = page.locator("#method").inner_text()
    assert f"{certificate.finding()} {certificate.numbers()}" in method
    assert "; ".join(certificate.assumptions) in method
    assert page.locator("main section").nth(1).get_by_role("img", name="Where the error collects").is_visible()


FIRST = [name for name in PAGES if name not in ("two", "hostile")]
HEADLINES = {
    "certified": "certified",
    "refuted": "refuted",
    "undecided": "undecided",
    "no limit": "neutral",
    "cautioned": "cautioned",
}


@pytest.fixture(scope="module")
def first_look(browser, page_file):
    """What a page shows first, on screens and in colours in turn: it takes longer to open than to be looked at."""
    parts = {
        "verdict": "#m1-verdict .state",
        "finding": "#m1-verdict-heading",
        "worst interval": "#m1-worst",
        "next step": "#m1-next",
        "diagram": "#m1-reliability svg.plot",
    }

    @cache
    def looked(name):
        found = SimpleNamespace(places={}, colours={})
        with opened(browser, page_file(name)) as page:
            for screen, size in FIRST_SCREENS.items():
                page.set_viewport_size(size)
                found.places[screen] = {part: page.locator(parts[part]).bounding_box() for part in parts}
            words = page.locator("header, #m1-verdict p, #m1-verdict h2, #m1-verdict .legend li")
            found.sentences = [part for text in words.all_inner_texts() for part in re.split(r"(?<=[.?!])\s|\n", text)]
            card = page.locator("#m1-verdict")
            found.kinds, found.cautions = card.get_attribute("class").split(), card.locator(".caution").count()
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                found.colours[scheme] = [
                    card.evaluate("card => getComputedStyle(card).borderInlineStartColor"),
                    card.locator(".state").evaluate("pill => getComputedStyle(pill).color"),
                ]
        return found

    return looked


@pytest.mark.parametrize("name", FIRST)
def test_the_first_screen_answers(first_look, name):
    found = first_look(name)
    for screen, size in FIRST_SCREENS.items():
        places = found.places[screen]
        for part, box in places.items():
            assert box["y"] >= 0.0, (screen, part)
            assert box["x"] + box["width"] <= size["width"], (screen, part)
            # A caution takes room on a phone, where the foot of the diagram may make way for it.
            slack = 100 if (name, screen, part) == ("cautioned", "phone", "diagram") else 0
            assert box["y"] + box["height"] <= size["height"] + slack, (screen, part)
        if screen == "desktop":
            assert places["diagram"]["x"] > places["next step"]["x"] + places["next step"]["width"]  # side by side
        assert places["diagram"]["width"] > 0.6 * min(size["width"], 800), screen
    for sentence in found.sentences:
        assert len(sentence.split()) <= 30, sentence


def test_the_colour_of_the_headline_follows_verdict_and_caution(first_look):
    colours: dict[str, dict[str, str]] = {"light": {}, "dark": {}}
    for name, state in HEADLINES.items():
        look = first_look(name)
        assert state in look.kinds
        assert (look.cautions > 0) == (state == "cautioned")
        for scheme, found in colours.items():
            found[name], pill = look.colours[scheme]
            assert pill == found[name]

    def green(colour):
        red, most, blue = map(int, re.findall(r"\d+", colour))
        return most > 1.2 * max(red, blue)

    assert colours["light"] != colours["dark"]
    for found in colours.values():
        assert [name for name in found if green(found[name])] == ["certified"]
        assert found["cautioned"] == found["undecided"]
        assert len(set(found.values())) == 4
        red, green_part, blue = map(int, re.findall(r"\d+", found["no limit"]))
        assert max(red, green_part, blue) - min(red, green_part, blue) < 40  # a grey


def test_four_measures_are_open_and_the_rest_is_folded(visit):
    page = visit("certified")
    measures = page.locator("#m1-measures")
    visible = [row for row in measures.locator("tbody tr").all() if row.is_visible()]
    assert len(visible) == 4
    measures.locator("summary").click()
    assert len([row for row in measures.locator("tbody tr").all() if row.is_visible()]) == 18


def test_input_and_day_are_named(visit):
    assert visit("certified").locator("header").inner_text().split("\n")[-3:][1:] == ["flights.parquet", "2026-03-31"]


def test_a_decision_curve_is_drawn_around_the_threshold(visit):
    page = visit("one")
    marker = page.locator("#m1-benefit .marker")
    assert page.get_by_role("img", name="Is acting on the forecasts worth it?").is_visible()
    low, high = (float(marker.get_attribute(f"data-{end}")) for end in ("low", "high"))
    assert 0.05 < low < 0.3 < high < 0.7
    assert marker.evaluate("line => getComputedStyle(line).display") == "inline"
    page.get_by_role("slider", name="Threshold").press("End")
    assert marker.evaluate("line => getComputedStyle(line).display") == "none"  # 0.99 is not on this plot


def test_text_leaves_no_empty_strip_beside_it(visit):
    page = visit("one", viewport=FIRST_SCREENS["desktop"])
    for section in page.locator("main section").all():
        card = section.bounding_box()
        ends = section.locator("p, table, figure, dl, pre").evaluate_all(
            "all => all.map(each => each.getBoundingClientRect().right)"
        )
        assert max(ends) > card["x"] + 0.93 * card["width"]


def test_wide_tables_say_that_they_scroll_on_a_phone(visit):
    page = visit("one", viewport=FIRST_SCREENS["phone"])
    table = page.get_by_role("region", name="Table of groups")
    assert table.evaluate("each => each.scrollWidth > each.clientWidth")
    assert page.locator("#m1-groups .cue").is_visible()
    assert "gradient" in table.evaluate("each => getComputedStyle(each).backgroundImage")
    assert not visit("one").locator("#m1-groups .cue").is_visible()


def test_results_wrap_in_a_notebook(browser):
    context = browser.new_context(viewport={"width": 400, "height": 600})
    page = context.new_page()
    page.set_content(calibrant.certify(Y_TRUE, Y_PROB, max_error=LIMIT)._repr_html_())
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    context.close()


def test_the_slider_shows_the_librarys_own_values(visit):
    page = visit("one")
    slider = page.get_by_role("slider", name="Threshold")
    limit = calibrant.confidence_interval(Y_TRUE, Y_PROB, measure="risk_gap", alternative="less")

    def shown(name):
        return page.locator(f"dd[data-show={name}]").inner_text()

    def expected(threshold):
        risk = calibrant.decision_risk(Y_TRUE, Y_PROB, threshold=threshold)
        gap = calibrant.risk_gap(Y_TRUE, Y_PROB, threshold=threshold)
        promise = calibrant.decision_guarantee(limit, threshold)
        benefit = calibrant.net_benefit(Y_TRUE, Y_PROB, threshold=threshold)
        return {
            "acted": percent(float(risk.acted)),
            "risk": measured(float(risk.risk)),
            "gap": measured(gap.gap),
            "guarantee": rounded_up(promise.nondecreasing),
            "net_benefit": measured(float(benefit.net_benefit)),
        }

    seen = []
    for keys, threshold in (([], 0.3), (["ArrowRight"], 0.31), (["Home"], 0.01), (["End", "ArrowLeft"], 0.98)):
        for key in keys:
            slider.press(key)
        assert page.locator("output").inner_text() == f"{threshold:g}"
        assert page.locator(".at").text_content() == f"At threshold {threshold:g}:"  # for print
        assert slider.get_attribute("aria-valuetext") == f"threshold {threshold:g}"
        values = expected(threshold)
        assert {name: shown(name) for name in values} == values
        seen.append((values["risk"], page.locator("#m1-gap .marker").get_attribute("x1"), shown("constant")))
    assert len(set(seen)) == 4
    assert "A false alarm is 49 times as bad as a missed event." in page.locator("[data-said]").first.inner_text()


def test_tabs_work_by_keyboard(visit):
    page = visit("one")
    tabs = page.get_by_role("tablist", name="Plots").get_by_role("tab")
    assert tabs.all_inner_texts() == ["Cumulative", "Difference"]

    def attributes(name):
        return tabs.evaluate_all("(tabs, name) => tabs.map(tab => tab.getAttribute(name))", name)

    panels = [page.locator(f"#{panel}") for panel in attributes("aria-controls")]

    def state():
        chosen = [value == "true" for value in attributes("aria-selected")]
        visible = [panel.is_visible() for panel in panels]
        stops = [value == "0" for value in attributes("tabindex")]
        assert chosen == visible == stops
        return chosen.index(True)

    assert state() == 0
    tabs.first.focus()
    for key, place in (
        ("ArrowRight", 1),
        ("ArrowRight", 0),
        ("ArrowLeft", 1),
        ("Home", 0),
        ("End", 1),
    ):
        page.keyboard.press(key)
        assert state() == place
        assert tabs.nth(place).evaluate("tab => tab === document.activeElement")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "m1-difference"


def test_a_link_into_a_hidden_tab_opens_it(visit):
    page = visit("two")
    assert not page.locator("#m2-repair").is_visible()
    page.locator("#compared").get_by_role("link", name="second").click()
    page.locator("#m2-repair").wait_for(state="visible")
    assert not page.locator("#m1-repair").is_visible()


def test_without_scripts_everything_is_shown(visit):
    page = visit("two", java_script_enabled=False)
    for name in ("m1", "m2"):
        for part in (
            "verdict",
            "reliability",
            "worst",
            "next",
            "cumulative",
            "difference",
            "measures",
            "decisions",
            "benefit",
            "gap",
            "repair",
        ):
            assert page.locator(f"#{name}-{part}").is_visible(), (name, part)
        assert page.locator(f"#{name}-decisions tbody tr").count() == 99
        assert page.locator(f"#{name}-decisions tbody tr").last.is_visible()
    assert not page.get_by_role("slider").count()
    assert not page.locator("#theme").is_visible()
    assert page.locator("#m1-decisions .at").inner_text() == "At threshold 0.5:"
    for number in (1, 2, 3):
        assert page.locator(f"#again-{number}").is_visible()


def test_on_paper_everything_is_shown_and_controls_are_not(visit):
    page = visit("two", color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator("#m1-decisions .at").is_visible()  # the slider that shows the threshold is not
    for part in ("m1-cumulative", "m1-difference", "m2-verdict", "m2-reliability", "again-2"):
        assert page.locator(f"#{part}").is_visible(), part
    assert not page.get_by_role("slider").count()
    assert not page.locator(".tablist").first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_hostile_words_stay_words(visit):
    page = visit("hostile")
    assert page.title() == HOSTILE + "T" * 500
    assert page.locator("h1").inner_text() == HOSTILE + "T" * 500
    assert page.get_by_role("tab", name=HOSTILE + "x" * 300).count() == 1
    assert page.locator("#m1-groups th[scope=row]").first.inner_text() == HOSTILE
    assert page.locator("script").count() == 2
    assert page.locator("img").count() == 0


@pytest.mark.parametrize(("name", "width"), [("one", 320), ("hostile", 320)])
def test_a_narrow_screen_never_scrolls_sideways(visit, name, width):
    page = visit(name, viewport={"width": width, "height": 640})
    page.locator("#m1-decisions summary").click()  # the widest table
    for tab in [None, *page.get_by_role("tab").all()]:
        if tab is not None and tab.is_visible():
            tab.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, tab
        assert page.evaluate("document.body.scrollWidth") <= width


def test_tables_that_scroll_on_a_phone_say_so_there_and_only_there(visit):
    page = visit("hostile", viewport=PHONE)
    for viewport, cued in ((PHONE, True), (DESKTOP, False)):
        page.set_viewport_size(viewport)
        cues = [cue for cue in page.locator("#m1-groups .cue").all() if cue.is_visible()]
        assert bool(cues) == cued
        table = page.locator("#m1-groups .scroll").first
        assert table.evaluate("one => one.scrollWidth > one.clientWidth") == cued


def test_sentences_wrap_in_a_narrow_notebook(visit):
    page = visit("one", viewport=PHONE).context.new_page()  # of its own, where no policy forbids styles
    shown = calibrant.certify([0, 1] * 50, [0.4, 0.6] * 50, max_error=0.1)._repr_html_()
    page.set_content(f"<body>{shown}</body>")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize(("name", "viewport"), [("one", DESKTOP), ("two", PHONE)])
def test_no_serious_barrier_is_found(visit, name, viewport):
    page = visit(name, viewport=viewport, color_scheme="light")
    for fold in page.locator("#m1 summary").all():
        fold.click()
    # The message below shows the elements themselves, so that no way to find them has to be worked out.
    options: dict[str, Any] = {"resultTypes": ["violations"], "selectors": False}
    in_the_dark = {"runOnly": ["cat.color"]}  # where nothing but colours is another
    for scheme, only in (("light", {}), ("dark", in_the_dark)):
        page.emulate_media(color_scheme=scheme)
        found = axe_playwright.Axe().run(page, options={**options, **only}).response["violations"]
        serious = [each for each in found if each["impact"] in ("serious", "critical")]
        assert not serious, [(scheme, each["id"], [node["html"] for node in each["nodes"]]) for each in serious]


def test_colours_follow_the_reader_and_can_be_turned(visit):
    page = visit("one", color_scheme="dark")

    def ground():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    dark = ground()
    page.get_by_role("button", name="Light colours").click()
    light = ground()
    assert light != dark
    page.get_by_role("button", name="Dark colours").click()
    assert ground() == dark
    assert visit("one", color_scheme="light").evaluate("getComputedStyle(document.body).backgroundColor") == light


def test_a_notebook_shows_the_page_and_is_not_changed_by_it(visit):
    page = visit("notebook")
    inside = page.frame_locator("iframe")
    slider = inside.get_by_role("slider", name="Threshold").first
    slider.press("End")
    assert inside.locator("output").first.inner_text() == "0.99"
    assert inside.locator("h1").inner_text().startswith(HOSTILE)
    assert page.title() == "A notebook"


def test_the_code_can_be_copied(visit):
    page = visit("one", permissions=["clipboard-read", "clipboard-write"])
    code = page.locator("#again-1 pre").inner_text()
    page.locator("#again-1").get_by_role("button", name="Copy the code").click()
    page.locator("#again-1").get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == code
    assert code.startswith("import calibrant")
