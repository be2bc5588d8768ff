"""Formulas of the documentation are understood by MathJax, and by readers of the repository in a browser."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
WRITTEN = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts and "$" in path.read_text())

FENCED = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1", flags=re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`\n]+`")
DISPLAYED = re.compile(r"^( *)\$\$\n(.*?)\n\1\$\$$", flags=re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"(?<![\w$])\$(?![\s$])([^$\n]+?)(?<!\s)\$(?![\w$])")
ESCAPED = re.compile(r"\\[^A-Za-z]")
"""A backslash before punctuation: GitHub takes it for an escape and leaves it out."""


def prose(path):
    return CODE.sub("code", FENCED.sub("", path.read_text()))


def formulas(path):
    text = prose(path)
    return [found[1] for found in DISPLAYED.findall(text)] + INLINE.findall(DISPLAYED.sub("", text))


def test_pages_of_theory_have_formulas():
    assert {path.name for path in (DOCS / "theory").glob("*.md")} <= {path.name for path in WRITTEN}


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_dollar_belongs_to_a_formula(path):
    left = INLINE.sub("", DISPLAYED.sub("", prose(path)))
    assert [line for line in left.splitlines() if "$" in line] == []


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_formula_looks_like_other_markup(path):
    for formula in formulas(path):
        assert not ESCAPED.search(formula), formula
        assert not re.search(r"[<*]", formula), formula
        assert not re.search(r"^\s*[-+] ", formula, flags=re.MULTILINE), formula
    rows = (line for line in prose(path).splitlines() if line.startswith("|"))
    assert not [row for row in rows if any("|" in formula for formula in INLINE.findall(row))]


def test_mathjax_draws_every_formula(browser):
    spec = find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        pytest.skip("needs sphinx-mathjax-offline")
    script = Path(spec.origin).parent / "static" / "mathjax" / "tex-svg-full.js"
    every = sorted({formula for path in WRITTEN for formula in formulas(path)})
    assert len(every) > 1000
    page = browser.new_page()
    page.evaluate("window.MathJax = {startup: {typeset: false}}")
    page.add_script_tag(path=script)
    page.evaluate("MathJax.startup.promise")
    wrong = page.evaluate(
        "every => every.filter(one => MathJax.tex2svg(one).querySelector('[data-mml-node=merror]'))",
        [*every, r"\frac{1}{"],
    )
    assert wrong == [r"\frac{1}{"]
