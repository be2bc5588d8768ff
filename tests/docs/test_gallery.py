"""Every example of the gallery runs without a warning, says something, draws, and links to a page that exists."""

import re
import runpy
from pathlib import Path

import matplotlib
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples" / "gallery").glob("*/plot_*.py"))


@pytest.fixture
def pyplot(monkeypatch):
    """Return pyplot without windows, and close what was drawn."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    monkeypatch.setattr(pyplot, "show", lambda: None)
    yield pyplot
    pyplot.close("all")


def test_there_are_examples_in_every_section():
    sections = {example.parent for example in EXAMPLES}
    assert {section.name for section in sections} == {"measure", "certify", "decide", "repair", "watch"}
    assert len(EXAMPLES) >= 15
    assert all((folder / "GALLERY_HEADER.rst").is_file() for folder in {*sections, ROOT / "examples" / "gallery"})


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_draws_and_says_something(example, pyplot, capsys):
    runpy.run_path(str(example), run_name="__main__")
    assert len(capsys.readouterr().out) > 80
    assert pyplot.get_fignums()
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        figure.draw_without_rendering()
        assert any(axes.has_data() for axes in figure.axes)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_links_to_a_page_that_exists(example):
    linked = re.findall(r":doc:`[^<`]*<(/[^>]+)>`", " ".join(example.read_text().replace("\n# ", " ").split()))
    assert linked
    assert all((ROOT / "docs" / f"{page.strip('/')}.md").is_file() for page in linked)
