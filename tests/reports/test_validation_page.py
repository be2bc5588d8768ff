"""The validation page in a browser: what the first screen shows, light and dark, on a phone, and for everyone."""

import numpy as np
import pytest

from calibrant import ValidationReport

axe_playwright = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")


PHONE = {"width": 320, "height": 640}
SCREENS = [({"width": 1280, "height": 800}, "light"), ({"width": 1280, "height": 800}, "dark"), (PHONE, "light")]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    generator = np.random.default_rng(0)
    y_prob = generator.random(400)
    report = ValidationReport.from_predictions(
        generator.random(400) < y_prob**1.5, y_prob, n_resamples=40, title="Sepsis within 48 hours", source="ward.csv"
    )
    return report.write_html(tmp_path_factory.mktemp("pages") / "validation.html").as_uri()


@pytest.mark.parametrize(("screen", "scheme"), SCREENS, ids=["light", "dark", "phone"])
def test_the_first_screen_has_verdict_table_and_curve(browser, address, screen, scheme):
    page = browser.new_page(viewport=screen, color_scheme=scheme)
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(address)
    assert page.locator("#verdict .state").inner_text() == "Miscalibrated"
    assert page.locator("#verdict tbody tr").count() == 7
    if screen is PHONE:  # nothing is cut off: every cell stands below the others
        for part in ("#statistics", "#tripod"):
            cells = page.locator(f"{part} tbody :is(th, td)")
            ends = cells.evaluate_all("all => all.map(each => each.getBoundingClientRect().right)")
            assert 0 < max(ends) <= screen["width"], part
        assert page.locator("#statistics td .column").first.inner_text() == "Estimate"
    else:
        assert not page.locator("#statistics td .column").first.is_visible()
        for part in ("#verdict-heading", "#verdict tbody tr:last-child", "#verdict .diagram svg.plot"):
            box = page.locator(part).bounding_box()
            assert box["y"] + box["height"] <= screen["height"], part
    assert page.evaluate("document.documentElement.scrollWidth") <= screen["width"]  # nothing to be moved sideways
    assert page.locator("#tripod tbody tr").count() == 45
    assert said == []
    # The message shows the elements themselves; in the dark nothing but colours is another.
    options = {
        "resultTypes": ["violations"],
        "selectors": False,
        **({"runOnly": ["cat.color"]} if scheme == "dark" else {}),
    }
    found = axe_playwright.Axe().run(page, options=options).response["violations"]
    assert not found, [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]
    page.close()


def test_the_page_is_whole_without_scripts(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert page.locator("#decisions tbody tr").first.is_visible()
    assert page.locator("#table-2 pre").is_visible()
    context.close()
