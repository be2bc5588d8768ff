"""The README: links that lead to files here, and to a place on the web where there are none, as on package indexes."""

import re
from pathlib import Path

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from readme_renderer import markdown

import calibrant

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")
IMAGE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("path", sorted(ROOT.glob("*.md")), ids=lambda path: path.name)
def test_links_between_files_lead_somewhere(path):
    linked = {link.partition("#")[0] for link in LINK.findall(path.read_text(encoding="utf-8")) if "://" not in link}
    assert [link for link in sorted(linked) if link and not (ROOT / link).is_file()] == []


def test_what_a_package_index_shows_has_absolute_links_only():
    core = ProjectMetadata(str(ROOT), PluginManager()).core
    assert core.readme_content_type == "text/markdown"
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    own, images = LINK.findall(text), IMAGE.findall(text)
    assert images
    home, tag = core.urls["Source"], f"v{calibrant.__version__}"
    places = {link: f"{home}/{'raw' if link in images else 'blob'}/{tag}/{link}" for link in own if "://" not in link}
    assert LINK.findall(core.readme) == [places.get(link, link) for link in own]
    shown = markdown.render(core.readme)
    assert shown is not None
    assert f'<img src="{home}/raw/{tag}/docs/' in shown
    assert all(address.startswith(("https://", "#")) for address in re.findall(r'(?:href|src)="([^"]*)"', shown))


def test_the_page_on_citing_has_the_version_and_the_year_of_the_file_for_machines():
    page = (ROOT / "docs" / "about" / "citation.md").read_text(encoding="utf-8")
    file = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    (version,) = re.findall(r"^version: (\S+)$", file, flags=re.MULTILINE)
    (year,) = re.findall(r"^date-released: (\d{4})", file, flags=re.MULTILINE)
    assert f"version = {{{version}}}" in page
    assert f"year = {{{year}}}" in page


def test_a_visitor_needs_a_minute():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 650
    assert (
        text.index("make demo")
        < text.index("make test")
        < text.index(">>> import calibrant")
        < text.index("Where next")
    )
