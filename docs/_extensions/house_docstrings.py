"""Docstrings are written for a terminal; here they become text with links."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import re
from collections.abc import Collection
from functools import cache
from types import UnionType
from typing import Any

from docutils import nodes
from house_reference import is_result, pages_by_name, terms_by_field, things_by_page
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode
from sphinx.util.typing import ExtensionMetadata

REFERENCE = re.compile(r"^\.\. \[(\d+)\] .*(?:\n {3,}.*)*", flags=re.MULTILINE)
BACKEND = """backend : str or module, optional
    The library of the frame: "pandas", "polars", "pyarrow", or another that narwhals knows. Unless given, that of the
    frames in which the rows came, or else the first of these three that is loaded, or else that is installed."""
LITERAL = re.compile(r"(``.*?``)")


def references_named(_app: Sphinx, _what: str, _name: str, thing: Any, _options: object, lines: list[str]) -> None:
    """Add the references that a docstring cites: the docstring of its module has them."""
    text = "\n".join(lines)
    module = inspect.getmodule(getattr(thing, "fget", None) or getattr(thing, "func", None) or thing)
    known = {found[1]: found[0] for found in REFERENCE.finditer(inspect.getdoc(module) or "")}
    cited = sorted({number for number in re.findall(r"\[(\d+)\]_", text) if f".. [{number}]" not in text} & set(known))
    footnotes = [line for each in cited for line in known[each].splitlines()]
    if footnotes and "References" in lines:
        after = lines.index("References") + 2
        lines[after:after] = [*footnotes, ""]
    elif footnotes:
        lines += ["", "References", "----------", *footnotes, ""]


def backend_said(_app: Sphinx, _what: str, name: str, _thing: Any, _options: object, lines: list[str]) -> None:
    """Say what methods take that return a data frame: it is the same everywhere."""
    if name.endswith("frame") and "Parameters" not in lines:
        lines += ["", "Parameters", "----------", *BACKEND.splitlines(), ""]


def written_for_the_page(_app: Sphinx, _what: str, _name: str, _thing: Any, _options: object, lines: list[str]) -> None:
    """Link pages that are named by their file, and keep bars, which here stand for absolute values."""
    example = False
    for position, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and line.strip() != "")
        if not example:
            linked = re.sub(r"(`{0,2})docs/([\w/-]+)\.md\1", r":doc:`/\2`", line)
            parts = LITERAL.split(linked)
            lines[position] = "".join(part if part.startswith("``") else part.replace("|", "\\|") for part in parts)


def member_skipped(_app: Sphinx, _what: str, name: str, _thing: Any, _skip: bool, _options: object) -> bool | None:
    """Leave out what scikit-learn adds to every estimator; None leaves the choice to others."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


def signature_shown(
    _app: Sphinx, what: str, _name: str, thing: Any, _options: object, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Leave out the arguments of a class whose docstring names none: it is made by functions, or by its own methods."""
    made_by_others = what == "class" and "\nParameters\n" not in (inspect.getdoc(thing) or "")
    return ("" if signature and made_by_others else signature), returned


def kinds_returned(call: Any) -> set[str]:
    """Return the words in which a function or method says what it returns, in its docstring or its signature."""
    inside = getattr(call, "fget", None) or getattr(call, "func", call)
    said = re.search(r"\nReturns\n-+\n(.*)", inspect.getdoc(inside) or "")
    annotation = inspect.signature(inside).return_annotation if callable(inside) else ""
    return set(re.findall(r"\w+", f"{said[1] if said else ''} {annotation}"))


@cache
def sources_of_results() -> dict[str, list[str]]:
    """Return where one gets each kind of result: from functions, or else from methods, or else in other results."""
    pages = {thing.__name__: page for page, thing in things_by_page().items() if hasattr(thing, "__name__")}
    results = {name for name, page in pages.items() if isinstance(things_by_page()[page], type)}
    found: dict[str, tuple[list[str], list[str], list[str]]] = {name: ([], [], []) for name in results}
    for page, thing in sorted(things_by_page().items(), key=lambda each: each[0].rpartition("/")[2].lower()):
        name = page.rpartition("/")[2]
        if not isinstance(thing, type):
            for kind in kinds_returned(thing) & results if callable(thing) else ():
                found[kind][0].append(f":doc:`{name} </{page}>`")
            continue
        for member in sorted(each for each in vars(thing) if not each.startswith("_")):
            for kind in kinds_returned(getattr(thing, member)) & results - {name}:
                found[kind][1].append(f":doc:`{name}.{member} </{page}>`")
        for member, annotation in getattr(thing, "__annotations__", {}).items():
            for kind in set(re.findall(r"\w+", str(annotation))) & results - {name}:
                found[kind][2].append(f":doc:`{name}.{member} </{page}>`")
    return {name: next((each for each in sources if each), []) for name, sources in found.items()}


def source_said(_app: Sphinx, what: str, _name: str, thing: Any, _options: object, lines: list[str]) -> None:
    """Say of a result where one gets it, below its first sentence."""
    if what == "class" and is_result(thing) and sources_of_results().get(thing.__name__):
        after = lines.index("") if "" in lines else len(lines)
        lines[after:after] = ["", f"It comes from {', '.join(sources_of_results()[thing.__name__])}."]


def name_linked(app: Sphinx, _env: BuildEnvironment, node: pending_xref, shown: nodes.Element) -> nodes.Element | None:
    """Link a public name by itself, wherever its room is; what is no public name is shown as code."""
    if node["reftype"] != "obj" or node.get("refdomain") != "py":
        return None
    page = pages_by_name().get(node["reftarget"].removeprefix("calibrant."))
    if page is None:
        return shown
    return make_refnode(app.builder, node["refdoc"], page, "", shown)


@cache
def names_of_other_things() -> frozenset[str]:
    """Return words that are also arguments or fields, as ``measure`` is: they are not linked where they stand alone."""
    found: set[str] = set()
    for thing in things_by_page().values():
        found |= {field.name for field in dataclasses.fields(thing)} if dataclasses.is_dataclass(thing) else set()
        if callable(thing):
            with contextlib.suppress(TypeError, ValueError):
                found |= set(inspect.signature(thing).parameters)
    return frozenset(found)


def page_of(code: str, known: Collection[str]) -> str | None:
    """Return the page that is about what stands in a text as code, if there is one."""
    document = re.fullmatch(r"docs/([\w/-]+)\.md", code)
    if document:
        return document[1] if document[1] in known else None
    name = re.fullmatch(r"(?:calibrant\.)?((?:\w+\.)?\w+)(?:\(.*\))?", code)
    return pages_by_name().get(name[1]) if name and code not in names_of_other_things() else None


def inside(node: nodes.Node, kind: UnionType) -> bool:
    """Return whether a node is in one of a kind, however deep."""
    above = node.parent
    while above is not None and not isinstance(above, kind):
        above = above.parent
    return above is not None


def code_linked(app: Sphinx, doctree: nodes.document, here: str) -> None:
    """Link public names and pages that stand in a text as code."""
    for literal in list(doctree.findall(nodes.literal)):
        page = page_of(literal.astext(), app.env.found_docs)
        if page not in (None, here) and not inside(literal, nodes.reference | nodes.title):
            literal.replace_self(make_refnode(app.builder, here, page, "", literal.deepcopy()))


def fields_linked(app: Sphinx, doctree: nodes.document, here: str) -> None:
    """Link the fields of a result to the glossary: ``glossary_fields.json`` has the term of each."""
    thing = things_by_page().get(here)
    if not is_result(thing):
        return
    terms = app.env.domains.standard_domain.objects
    for field in doctree.findall(nodes.field):
        if field[0].astext() != "Attributes":
            continue
        for item in field.findall(nodes.definition_list_item):
            for strong in item[0].findall(nodes.strong):
                names = strong.astext().split(", ")
                strong.clear()
                for name in names:
                    page, anchor = terms.get(("term", terms_by_field().get(name, "")), (None, ""))
                    shown = nodes.Text(name)
                    linked = make_refnode(app.builder, here, page, anchor, shown) if page else shown
                    strong += [linked, nodes.Text(", ")] if name != names[-1] else [linked]


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect this to the build."""
    app.connect("autodoc-process-docstring", references_named, priority=100)  # before numpydoc
    app.connect("autodoc-process-docstring", source_said, priority=200)
    app.connect("autodoc-process-docstring", backend_said, priority=200)
    app.connect("autodoc-process-docstring", written_for_the_page, priority=900)  # after it
    app.connect("autodoc-process-signature", signature_shown)
    app.connect("autodoc-skip-member", member_skipped)
    app.connect("missing-reference", name_linked)
    app.connect("doctree-resolved", code_linked)
    app.connect("doctree-resolved", fields_linked)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
