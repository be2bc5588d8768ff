"""What pages say for readers of the repository, as the site needs it."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError
from sphinx.util.fileutil import copy_asset
from sphinx.util.typing import ExtensionMetadata

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
    return {"parallel_read_safe": True, "parallel_write_safe": True}
