"""``calibrant reproduce``: check the paper."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from calibrant.cli.outputs import DEBUG_OPTION, DONE, NOT_SHOWN, Command

ALL = "all"


@click.command(
    "reproduce",
    short_help="Check the paper, item by item.",
    cls=Command,
    examples="""
    calibrant reproduce --list
    calibrant reproduce platt isotonic
    calibrant reproduce all --out reproduced
    """,
    exit_codes={DONE: "everything agrees", NOT_SHOWN: "something does not agree"},
)
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option("--list", "listed", is_flag=True, help="List the experiments and what they check, and stop.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder for figures (PNG, SVG), data (CSV) and summaries (JSON); without it nothing is written.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of sentences.")
@DEBUG_OPTION
@click.option("--rng", type=click.IntRange(min=0), default=1, show_default=True, help="Of the random numbers.")
@click.option("--runs", type=click.IntRange(min=2), help="Repetitions, in place of each experiment's own number.")
@click.option(
    "--stream",
    type=click.Choice(["ours", "authors"]),
    default="ours",
    show_default=True,
    help="For the simulation: draw random numbers our way, or as the authors' notebook does.",
)
def command(
    names: tuple[str, ...],
    listed: bool,
    out: Path | None,
    as_json: bool,
    rng: int,
    runs: int | None,
    stream: str,
) -> None:
    """Check the paper: its experiment, figures, examples and theorems, each by NAME, or all of them with "all".

    For each item: what is stated, what was measured, and whether they agree.
    """
    from calibrant.experiments import EXPERIMENTS, Settings, run, write, write_index
    from calibrant.experiments.runner import together

    if listed:
        click.echo(json.dumps(_contents(EXPERIMENTS)) if as_json else _contents_as_text(EXPERIMENTS))
        return
    chosen = _chosen(names, list(EXPERIMENTS), stream)
    reports = []
    for name in chosen:
        start = time.monotonic()
        report = run(
            name, Settings(rng=rng, runs=runs, stream=stream if name == "simulation" else "ours", track=_bar(name))
        )
        if out is not None:
            write(report, out)
        reports.append(report)
        click.echo(f"{name}: {time.monotonic() - start:.1f} s", err=True)
        if not as_json:
            click.echo(f"{report}\n")
    if out is not None and ALL in names:
        write_index(reports, out)
    if as_json:
        click.echo(json.dumps(reports[0].to_dict() if len(names) == 1 and ALL not in names else together(reports)))
    if not all(report.holds for report in reports):
        raise click.exceptions.Exit(NOT_SHOWN)


def _chosen(names: tuple[str, ...], known: list[str], stream: str) -> list[str]:
    """Return the experiments asked for, in the order asked, each once."""
    if not names:
        raise click.UsageError(f'say which experiment: one or more of {", ".join(known)}, or "{ALL}"')
    for name in names:
        if name != ALL and name not in known:
            raise click.BadParameter(f"{name!r} is none of {', '.join(known)}, {ALL}", param_hint="NAME")
    chosen = known if ALL in names else list(dict.fromkeys(names))
    if stream != "ours" and "simulation" not in chosen:
        raise click.BadParameter("only the simulation has a stream of the authors", param_hint="--stream")
    return chosen


def _contents(experiments: dict[str, tuple[str, str]]) -> list[dict[str, str]]:
    return [{"name": name, "item": item, "title": title} for name, (item, title) in experiments.items()]


def _contents_as_text(experiments: dict[str, tuple[str, str]]) -> str:
    width = max(len(name) for name in experiments)
    place = max(len(item) for item, _ in experiments.values())
    return "\n".join(f"{name:<{width}}  {item:<{place}}  {title}" for name, (item, title) in experiments.items())


def _bar(name: str) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return what shows on the terminal, on the standard error stream, how far an experiment has come."""

    def track(parts: Iterable[Any]) -> Iterator[Any]:
        if not sys.stderr.isatty():
            yield from parts
            return
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            yield from bar.track(list(parts), description=name)

    return track
