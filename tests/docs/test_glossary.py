"""The glossary has a term for the fields of results, short definitions, and links to pages that exist."""

import dataclasses
import json
import re
from pathlib import Path

import pytest
from public_names import EVERYWHERE, public

from calibrant.core.results import Result

DOCS = Path(__file__).parents[2] / "docs"
ENTRIES = dict(re.findall(r"^(\S.*)\n((?:  .*\n)+)", (DOCS / "glossary.md").read_text(), flags=re.MULTILINE))
FIELDS: dict[str, str] = json.loads((DOCS / "glossary_fields.json").read_text())

SELF_EXPLANATORY = set(
    re.findall(
        r"\w+",
        """
    title name names source date rng versions file files format number topic asks answer items time cluster pos_label
    drop_missing models parts measures decisions history reading readings validation change others score scores value
    actions action instead reject problem problems chosen choices n_bins cv
    """,
    )
)
"""Parts of a result that hold other results, and words that mean here what they mean anywhere."""

SEVERAL_MEANINGS = {"low", "high", "members", "test", "best", "estimator"}
"""What these are depends on the result: a glossary cannot say it, and the docstrings do."""


def fields_of_results():
    kinds = [public(name) for name in EVERYWHERE]
    results = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Result)]
    return {field.name for kind in results for field in dataclasses.fields(kind) if not field.name.startswith("_")}


def test_every_field_of_a_result_has_a_term_or_needs_none():
    found = fields_of_results()
    assert found == {*FIELDS, *SELF_EXPLANATORY, *SEVERAL_MEANINGS}
    assert not {*FIELDS} & {*SELF_EXPLANATORY, *SEVERAL_MEANINGS}


def test_every_term_that_a_field_has_is_in_the_glossary():
    assert set(FIELDS.values()) <= set(ENTRIES)
    assert list(FIELDS) == sorted(FIELDS)


@pytest.mark.parametrize("term", ENTRIES)
def test_definition_is_short_and_links_to_a_page_that_exists(term):
    said = " ".join(ENTRIES[term].split())
    linked = re.findall(r"\]\(([^)#]+)", said)
    assert linked
    assert all((DOCS / page).is_file() for page in linked)
    words = re.sub(r"\s*\(?\[[^]]*\]\([^)]*\)[^.]*", "", said)
    assert len(re.findall(r"[.?!](?=\s|$)", words)) <= 3
