"""The documentation site, built once without running the gallery, and opened in Chromium without a network."""

import inspect
import os
import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import click
import pytest
from public_names import EVERYWHERE, HOME, TOP, public

from calibrant.cli import main

ROOT = Path(__file__).parents[2]
PAGES = (
    *("index", "tour", "how-to/certify", "theory/certificates", "displays/reliability", "gallery/measure/index"),
    "reference/commands/certify",
)
SHORT = ("index", "displays/reliability", "gallery/measure/index")
"""Pages that are also looked through for barriers, which takes long on long ones."""
SCROLLS_BY_KEYBOARD = """[...document.querySelectorAll(".bd-article :is(pre, table, mjx-container)")]
    .filter(each => each.scrollWidth > each.clientWidth && getComputedStyle(each).overflowX !== "visible")
    .every(each => each.tabIndex === 0)"""
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 900}
GENERATED = ("_build", "gallery", "api", "commands", "__pycache__")


def build(folder):
    """Build the site from a copy of its pages, so that nothing is written where they are."""
    for path in ROOT.iterdir():
        if path.name != "docs" and not path.name.startswith(".venv"):
            (folder / path.name).symlink_to(path)
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns(*GENERATED))
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going", "-D", "plot_gallery=0"]
    ran = subprocess.run(
        [*command, folder / "docs", folder / "site"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    (folder / "said").write_text(f"{ran.returncode}\n{ran.stdout}{ran.stderr}", encoding="utf-8")


@pytest.fixture(scope="session")
def site(tmp_path_factory, worker_id):
    """Return the folder of the site; of several test processes the first one builds it, and the others wait."""
    shared = tmp_path_factory.getbasetemp()
    folder = (shared if worker_id == "master" else shared.parent) / "documentation"
    said = folder / "said"
    try:
        folder.mkdir()
    except FileExistsError:
        while not said.exists():
            time.sleep(0.2)
    else:
        try:
            build(folder)
        finally:
            said.touch()
    return folder / "site"


class Links(HTMLParser):
    """The places of a page that can be linked to, and what it links to and loads."""

    def __init__(self, path):
        super().__init__()
        self.places, self.links, self.loads = set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.places |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        elif tag != "a":
            self.loads += [values[name] for name in ("src", "href", "data", "poster") if values.get(name)]
            self.loads += [part.split()[0] for part in (values.get("srcset") or "").split(",") if part.strip()]


read = cache(Links)


def pages_of(site):
    """Return the files of all pages: the theme leaves a template among what it loads."""
    return [path for path in site.rglob("*.html") if path.relative_to(site).parts[0] != "_static"]


def test_the_site_is_built_without_a_warning(site):
    assert (site.parent / "said").read_text().split("\n", 1) == ["0", ""]


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site):
    wrong = defaultdict(list)
    for path in pages_of(site):
        page = read(path)
        for kind, addresses in (("link", page.links), ("load", page.loads)):
            for address in addresses:
                if urlsplit(address).scheme in ("http", "https", "mailto") and kind == "link":
                    continue
                place, anchor = urldefrag(address)
                target = (path.parent / unquote(urlsplit(place).path)).resolve() if place else path
                local = not urlsplit(address).scheme and not urlsplit(address).netloc
                if address.startswith("data:") or (local and target.is_file() and target.suffix != ".html"):
                    continue
                if not local or not target.is_file() or (anchor and unquote(anchor) not in read(target).places):
                    wrong[str(path.relative_to(site))].append(address)
    assert not wrong


def test_every_public_name_has_a_page_and_its_room_lists_it(site):
    reference = site / "reference" / "api"
    for name in EVERYWHERE:
        room = HOME.get(name, "calibrant.errors").removeprefix("calibrant.")
        full = f"calibrant.{name}" if name in TOP else f"{HOME[name]}.{name}"
        assert full in read(reference / room / f"{name}.html").places
        assert f"{room}/{name}.html" in read(reference / f"{room}.html").links


@pytest.mark.parametrize("name", [name for name in EVERYWHERE if inspect.isclass(public(name))])
def test_the_page_of_a_class_has_its_methods_and_those_that_it_inherits(site, name):
    ours = [base for base in public(name).__mro__ if base.__module__.startswith("calibrant")]
    methods = {each for base in ours for each, value in vars(base).items() if inspect.isroutine(value)}
    called = {each for each in methods if re.match(r"(?!set_\w+_request|get_metadata_routing)[a-z]", each)}
    room = HOME.get(name, "calibrant.errors").removeprefix("calibrant.")
    full = f"calibrant.{name}" if name in TOP else f"{HOME[name]}.{name}"
    assert {f"{full}.{each}" for each in called} <= read(site / "reference" / "api" / room / f"{name}.html").places


def test_a_result_says_where_it_comes_from_and_not_how_it_is_made(site):
    text = (site / "reference" / "api" / "decisions" / "RiskGap.html").read_text()
    shown = re.sub(r"<[^>]+>", "", text)
    assert "It comes from risk_gap, sign_testing_gap." in shown
    assert "class calibrant.decisions.RiskGap#" in shown


def test_what_one_calls_is_listed_before_what_comes_back(site):
    listed = [link for link in read(site / "reference" / "api" / "monitors.html").links if link.startswith("monitors/")]
    assert listed.index("monitors/period_of.html") < listed.index("monitors/Alarm.html")


def test_every_command_and_option_has_its_place(site):
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        below = command.commands if isinstance(command, click.Group) else {"": command}
        places = read(site / "reference" / "commands" / f"{name}.html").places
        for sub, each in below.items():
            start = f"cmdoption-calibrant-{name}-{sub}".rstrip("-")
            options = [option for option in each.params if isinstance(option, click.Option) and not option.hidden]
            assert {f"{start}-{max(option.opts, key=len).lstrip('-')}" for option in options} <= places


def test_fields_of_a_result_link_to_their_meaning(site):
    text = (site / "reference" / "api" / "certificates" / "Certificate.html").read_text()
    assert re.search(r'href="[./]*glossary\.html#term-verdict">verdict</a>', text)
    assert "#term-lower-limit" in text


@pytest.fixture
def page(browser):
    """A page that may load files only, and complains of whatever goes wrong in it."""
    problems = []
    context = browser.new_context(offline=True, viewport=DESKTOP)
    opened = context.new_page()

    def said(message):
        if message.type in ("error", "warning"):
            problems.append(message.text)

    def asked(request):
        if not request.url.startswith(("file:", "data:")):
            problems.append(request.url)

    opened.on("console", said)
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("requestfailed", lambda request: problems.append(request.url))
    opened.on("request", asked)
    yield opened
    context.close()
    assert not problems


def address(site, name):
    return (site / f"{name}.html").as_uri()


def barriers(page):
    """Return what keeps people from using a page: the arrows of the theme's menus, which stand beside links, apart."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    settings = {"preload": False, "rules": {"summary-name": {"enabled": False}}}
    found = axe.Axe().run(page, options=settings).response["violations"]
    return [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_in_light_and_dark_on_a_desk_and_a_phone(site, page, name):
    page.goto(address(site, name))
    assert page.locator("h1").first.is_visible()
    seen = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size(DESKTOP)
        assert page.get_by_role("link", name="Theory").first.is_visible()
        seen.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.set_viewport_size(PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        page.wait_for_function(SCROLLS_BY_KEYBOARD)
        assert name not in SHORT or not barriers(page)
    assert len(seen) == 2
    page.locator("button.primary-toggle").click()
    menu = page.locator("dialog[open]")
    assert menu.get_by_role("link", name="Theory").first.is_visible()


def test_on_a_phone_sentences_wrap_and_lines_of_tables_do_not(site, page):
    page.set_viewport_size(PHONE)
    page.goto(address(site, "how-to/tutorial"))
    sentences, lines = page.locator("pre .said"), page.locator("pre .go:not(.said)")
    boxes = [box_of(sentence) for sentence in sentences.all()]
    assert all(box["x"] + box["width"] <= PHONE["width"] for box in boxes)
    assert box_of(lines.filter(has_text="risk_gap").first)["height"] < max(box["height"] for box in boxes)
    page.goto(address(site, "overview"))
    assert all(box_of(cell)["width"] > PHONE["width"] / 2 for cell in page.locator("td.long").all())


def box_of(place):
    box = place.bounding_box()
    assert box is not None
    return box


def test_search_finds_pages_without_a_network(site, page):
    page.goto(address(site, "index"))
    page.keyboard.press("Control+k")
    page.keyboard.type("isotonic")
    page.keyboard.press("Enter")
    results = page.locator("#search-results li a")
    results.nth(5).wait_for()
    found = {urlsplit(link.get_attribute("href")).path for link in results.all()}
    assert any("IsotonicRecalibrator" in path for path in found)


def test_formulas_are_drawn_by_what_the_site_brings_along(site, page):
    page.goto(address(site, "theory/measures"))
    page.locator("mjx-container svg").first.wait_for()
    page.evaluate("() => MathJax.startup.promise")
    written = page.locator(".math").count()
    assert written > 50
    assert page.locator(".math:has(mjx-container svg)").count() == written
    assert page.locator("[data-mml-node=merror]").count() == 0
