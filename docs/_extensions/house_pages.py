"""What pages say for readers of the repository, as the site needs it."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError
from sphinx.util.fileutil import copy_asset
from sphinx.util.typing import ExtensionMetadata

COLUMNS = re.compile(r"\S {2,}\S|^ ")
LONG = 40
PRINTED = re.compile(r'<span class="go">([^<]*)</span>')
PICTURE = re.compile(r"<picture>(.*?)</picture>", flags=re.DOTALL)


def both_pictures(found: re.Match[str]) -> str:
    """Return a picture that follows the system's light or dark as two that follow the site's own switch."""
    inside = found[1]
    values = dict(re.findall(r'(srcset|src|alt)="([^"]*)"', inside))
    shown = (("src", "only-light"), ("srcset", "only-dark"))
    return "\n".join(
        f"```{{image}} {values[name]}\n:alt: {values['alt']}\n:class: {theme}\n:width: 640px\n```\n"
        for name, theme in shown
    )


def page_read(_app: Sphinx, _name: str, source: list[str]) -> None:
    """Change the text of a page before it is parsed."""
    source[0] = PICTURE.sub(both_pictures, source[0])


def long_cells_named(_app: Sphinx, doctree: nodes.document, _here: str) -> None:
    """Name the cells of tables that hold sentences, which need more room than numbers do on a phone."""
    for cell in doctree.findall(nodes.entry):
        if len(cell.astext()) > LONG:
            cell["classes"].append("long")


def sentences_named(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: object) -> None:
    """Name the lines of what code prints that are sentences: they wrap, and lines of tables do not."""
    if "body" in context:
        context["body"] = PRINTED.sub(
            lambda line: line[0] if COLUMNS.search(line[1]) else f'<span class="go said">{line[1]}</span>',
            context["body"],
        )


def old_examples_removed(app: Sphinx, _config: Config) -> None:
    """Remove pages of examples that are there no more: the gallery writes pages and never takes one away."""
    examples = Path(app.config["sphinx_gallery_conf"]["examples_dirs"])
    gallery = Path(app.srcdir) / "gallery"
    for page in gallery.rglob("plot_*.rst"):
        if not (examples / page.relative_to(gallery)).with_suffix(".py").exists():
            page.unlink()


def formulas_copied(app: Sphinx) -> None:
    """Put the one script that draws formulas beside the pages: it is 2 MB, and all it needs."""
    spec = find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        raise ExtensionError("formulas need sphinx-mathjax-offline")
    script = Path(spec.origin).parent / "static" / "mathjax" / "tex-svg-full.js"
    copy_asset(script, app.outdir / "_static")


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect this to the build."""
    app.connect("config-inited", old_examples_removed)
    app.connect("builder-inited", formulas_copied)
    app.connect("source-read", page_read)
    app.connect("doctree-resolved", long_cells_named)
    app.connect("html-page-context", sentences_named)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
