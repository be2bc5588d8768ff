"""The page on what nobody has checked names every page of theory with results of our own, and tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "unchecked.md").read_text()


def test_every_page_with_results_of_our_own_is_named():
    theory = (ROOT / "docs" / "theory").glob("*.md")
    ours = {page.name for page in theory if page.name != "index.md" and "[project]" in page.read_text()}
    assert ours == set(re.findall(r"\(theory/([a-z-]+\.md)\)", PAGE)) - {"index.md"}


def test_the_tests_that_are_named_exist():
    named = set(re.findall(r"`([a-z_]+/test_[a-z_]+\.py)`", PAGE))
    assert len(named) > 40
    assert all((ROOT / "tests" / name).is_file() for name in named)
    coverage = (ROOT / "tests" / "guarantees" / "test_certificate_coverage.py").read_text()
    limits = (ROOT / "tests" / "certificates" / "test_limits.py").read_text()
    classes = set(re.findall(r"`(Test[A-Za-z]+)`", PAGE))
    assert classes <= set(re.findall(r"^class (Test\w+)", coverage + limits, flags=re.MULTILINE))
