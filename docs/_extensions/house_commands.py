"""The reference of the command line, written from the commands themselves, and of the JSON that they print."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from house_reference import DOCUMENTS, pages_by_name, terms_by_field, underlined, written
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from calibrant.cli import main
from calibrant.cli.outputs import WithExamples


def plain(text: str) -> str:
    """Return text in which no character means anything but itself; the name of a page is a link to it."""
    escaped = re.sub(r"([\\*`|_])", r"\\\1", text)
    return re.sub(r"\bdocs/([\w/-]+)\.md", r":doc:`/\1`", escaped)


def commands(command: click.Command, name: str, above: click.Context | None = None) -> Iterator[click.Context]:
    """Yield a command and those below it."""
    context = click.Context(command, info_name=name, parent=above)
    yield context
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            if found is not None:
                yield from commands(found, each, context)


def paragraphs(command: click.Command) -> list[str]:
    """Return the paragraphs of a help text."""
    return [plain(" ".join(each.split())) + "\n" for each in re.split(r"\n\s*\n", inspect.cleandoc(command.help or ""))]


def option(context: click.Context, parameter: click.Option) -> str:
    """Return one option: how it is written, what it says and what it takes."""
    record: Any = parameter.get_help_record(context)
    if record is None:
        return ""
    names, said = record
    words = plain(" ".join(said.split()))
    return f".. option:: {names}\n\n   {words}\n"


def command_section(context: click.Context, line: str) -> str:
    """Return what there is to say of one command."""
    command = context.command
    first, *others = paragraphs(command)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parts = [
        underlined(context.command_path, line),
        f".. program:: {context.command_path}\n",
        first,
        f".. code-block:: text\n\n   {usage}\n",
        *others,
        *(option(context, each) for each in command.get_params(context) if isinstance(each, click.Option)),
    ]
    if isinstance(command, WithExamples):
        codes = "".join(f"* ``{code}``: {plain(command.exit_codes[code])}\n" for code in sorted(command.exit_codes))
        parts.append(f"Exit codes:\n\n{codes}")
        if command.examples:
            parts.append(f"Examples:\n\n.. code-block:: text\n\n{textwrap.indent(command.examples, '   ')}\n")
    return "\n".join(part for part in parts if part.strip())


def command_pages() -> dict[str, str]:
    """Return a page for each command, with those below it, and one that lists them."""
    top, *found = commands(main, "calibrant")
    pages: dict[str, str] = {}
    lines = []
    for context in found:
        first = context.command_path.split()[1]
        below = first in pages
        pages[first] = pages.get(first, "") + command_section(context, "-" if below else "=") + "\n"
        if not below:
            lines.append(
                f":doc:`calibrant {first} <{first}>`\n   {plain(context.command.get_short_help_str(limit=99))}\n"
            )
    pages["index"] = (
        f"{command_section(top, '=')}\nThe commands\n------------\n\n{''.join(lines)}\n"
        "How they work together, what they read and what they print is in :doc:`the guide <../cli>`.\n\n"
        f".. toctree::\n   :hidden:\n\n{''.join(f'   calibrant {name} <{name}>{chr(10)}' for name in pages)}"
    )
    return pages


def field(name: str) -> str:
    """Return a field of a result, with a link to what it means."""
    term = terms_by_field().get(name)
    return f":term:`{name} <{term}>`" if term else f"``{name}``"


def schema_page() -> str:
    """Return a page with the types of result, each with its first sentence."""
    schema = json.loads((DOCUMENTS / "schemas" / "results.json").read_text(encoding="utf-8"))
    lines = []
    for name, kind in sorted(schema["$defs"].items()):
        page = pages_by_name().get(name)
        fields = ", ".join(map(field, (each for each in kind.get("properties", {}) if each != "type")))
        shown = f":doc:`{name} </{page}>`" if page else f"``{name}``"
        words = plain(" ".join(kind.get("description", "").split()))
        lines.append(f"{shown}\n   {words}\n\n   {fields}\n")
    return (
        f"{underlined('JSON Schemas')}\n"
        "Every result has ``to_json()``, and every command ``--json``. One schema (JSON Schema 2020-12) describes all "
        "of them, with what each field means and which numbers it may hold: "
        f":download:`results.json </schemas/results.json>`. {plain(schema['description'])} What a version of the "
        "schema promises is on :doc:`its own page </policies>`; the documents of the commands, in which results stand, "
        "are in :doc:`the guide <../cli>`.\n\n"
        f"{underlined('The types', '-')}\n{chr(10).join(lines)}"
    )


def write_pages(app: Sphinx) -> None:
    """Write the pages beside the guide."""
    reference = Path(app.srcdir) / "reference"
    written(reference / "commands", command_pages())
    written(reference / "schemas", {"index": schema_page()})


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect this to the build."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
