"""How a report looks: the summary and its plots as an HTML page or as Markdown.

Every number is written here, once, by the rules of `results.base` (limits are rounded outwards); templates only place
words. Whatever a user supplied reaches them as text, which they escape.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from calibrant.core.results import Result
from calibrant.core.threads import one_thread
from calibrant.core.words import printable, shown
from calibrant.reports.figures import NEEDED, Drawing, Styles, draw_change, draw_model, palette_css, roles
from calibrant.reports.headlines import assumed
from calibrant.reports.models import ONE_MODEL
from calibrant.reports.redo import FINGERPRINT_SAID, facts, ways_to_redo
from calibrant.reports.results import ReportSummary
from calibrant.reports.views import about, compared, differences_said, method_lines, view_of
from calibrant.rows.clusters import ClusteredRows
from calibrant.rows.tally import Tally

if TYPE_CHECKING:
    from jinja2 import Environment

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~$&])")


@one_thread()
def render_html(summary: ReportSummary, rows: Iterable[Tally | ClusteredRows | None]) -> str:
    """Return the page: one file, complete, that loads nothing from elsewhere."""
    styles = Styles()
    views = []
    for number, (model, held) in enumerate(zip(summary.models, rows, strict=True), start=1):
        prefix = f"m{number}"
        drawn: list[Drawing] = []
        if held is not None:
            drawn += draw_model(model, held, styles, summary=summary, prefix=prefix)
        if model.change is not None:
            drawn.append(draw_change(model.change, styles, prefix=prefix, asked=summary.max_error is not None))
        views.append({"id": prefix, "drawings": drawings_shown(drawn), **view_of(model, summary)})
    return filled_page(
        "report.html.j2",
        styles,
        summary,
        summary=summary,
        models=views,
        limit=None if summary.max_error is None else shown(summary.max_error),
        about=about(summary),
        assumed=assumed(summary),
        whole=f"all {summary.relative_to}",
        comparison=compared(summary),
        differences=differences_said(summary),
        method=method_lines(summary),
        ways=ways_to_redo(summary),
        facts=facts(summary),
        fingerprint_said=FINGERPRINT_SAID,
        unnamed=ONE_MODEL,
    )


def filled_page(template: str, styles: Styles, embedded: Result, **words: Any) -> str:
    """Fill in the template of a page whose drawings use some styles; ``embedded`` stands in it as JSON."""
    environment = _environment()
    from markupsafe import Markup  # comes with jinja2

    css = environment.get_template("report.css.j2").render(
        plots={theme: Markup(palette_css(theme)) for theme in ("light", "dark")},
        roles=roles(),
        classes=Markup(styles.css()),
    )
    script = environment.get_template("report.js").render()
    policy = (
        f"default-src 'none'; style-src '{_digest(css)}'; script-src '{_digest(script)}'; base-uri 'none'; "
        "form-action 'none'"
    )
    page: str = environment.get_template(template).render(
        **words, css=Markup(css), script=Markup(script), policy=policy, data=Markup(embedded_json(embedded))
    )
    return _encodable(page)


def render_markdown(summary: ReportSummary) -> str:
    """Return the report without its plots as Markdown, for a pull request or a ticket."""
    return filled_markdown(
        "report.md.j2",
        summary=summary,
        models=[view_of(model, summary) for model in summary.models],
        limit=None if summary.max_error is None else shown(summary.max_error),
        comparison=compared(summary),
        differences=differences_said(summary),
        method=method_lines(summary),
        ways=ways_to_redo(summary),
        facts=facts(summary),
    )


def filled_markdown(template: str, **words: Any) -> str:
    """Fill in the template of a text in Markdown."""
    text: str = _environment(markdown=True).get_template(template).render(**words)
    return _encodable(text)


def embedded_json(summary: Result) -> str:
    """Return the JSON of a summary in a form that no script element can be ended by."""
    text = json.dumps(summary.to_dict(), allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def _environment(*, markdown: bool = False) -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise ImportError(NEEDED) from error
    environment = Environment(
        loader=PackageLoader("calibrant.reports"),
        autoescape=not markdown,
        finalize=_in_markdown if markdown else _in_page,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["verbatim"] = Verbatim
    return environment


def drawings_shown(drawings: Iterable[Drawing]) -> list[dict[str, Any]]:
    """Return drawings as templates place them: their SVG is markup."""
    _environment()
    from markupsafe import Markup

    return [{**vars(drawing), "svg": Markup(drawing.svg)} for drawing in drawings]


def _encodable(text: str) -> str:
    """Replace halves of surrogate pairs, which names from file systems and terminals can hold and no file can."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _digest(text: str) -> str:
    """Return what a content security policy calls an inline style or script by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _in_markdown(value: Any) -> Any:
    """Keep text from being read as markup: anything that a user supplied may hold anything."""
    if not isinstance(value, str) or isinstance(value, Verbatim):
        return value
    return _MARKDOWN.sub(r"\\\1", printable(" ".join(value.split())))


def _in_page(value: Any) -> Any:
    """Show what browsers hide or obey: a mark that turns text round could turn a number round."""
    return printable(value, lines=True) if type(value) is str else value  # and not markup, which is a kind of str


class Verbatim(str):
    """Text that is markup, or code between fences, and stays as it is."""

    __slots__ = ()
