"""Running experiments by name, and writing down what came out."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from calibrant.core.files import replacing
from calibrant.experiments.reports import SCHEMA, Report, Settings

EXPERIMENTS = {
    "bands": ("Section 2", "Cutoff bounds the bias inside every risk band"),
    "relations": ("Propositions 2.1 and A.1", "How dCE, Cutoff and ECE bound each other"),
    "bounded-variation": ("Proposition 2.2", "Weights of bounded variation lie between Cutoff and a multiple of it"),
    "noise": ("Section 3.2, footnote", "Noise makes forecasts of small dCE actionable, at a price"),
    "simulation": ("Section 3.3, Figure 3", "Which calibration measure goes with better decisions?"),
    "risk-gap": ("Section 3, the risk gap", "What re-drawing the line could save, certified directly"),
    "examples": ("Example 3.1, appendix A.4", "Forecasters whose errors are known exactly"),
    "platt": ("Figure 4", "Platt scaling stays wrong however many rows there are"),
    "estimation": ("Proposition 4.1", "How well rows tell the Cutoff error of a forecaster"),
    "two-stage": ("Corollary 4.1", "Keep a model only if it is certified"),
    "ece-hardness": ("Theorem 4.1", "No estimator sees the ECE of continuous forecasts"),
    "isotonic": ("Proposition 5.1", "Isotonic regression calibrates, whatever the population"),
    "modified-platt": ("Proposition D.1", "A guard makes Platt scaling safe"),
    "scoring-rules": ("Proposition B.1", "What recalibration saves in a proper score"),
    "sign-testing": ("Proposition B.2", "The same bounds for guessing on which side of a value outcomes fall"),
}
"""What each experiment checks, roughly in the order of the paper."""

PIXELS_PER_INCH = 200


def run(name: str, settings: Settings | None = None) -> Report:
    """Run one experiment.

    Parameters
    ----------
    name : str
        One of `EXPERIMENTS`.
    settings : Settings, optional
        Seed, repetitions, stream and progress.

    Examples
    --------
    >>> report = run("platt", Settings(runs=5))
    >>> [statement.holds for statement in report.statements]
    [True, True, True, True]
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"there is no experiment {name!r}; choose one of {', '.join(EXPERIMENTS)}")
    settings = settings or Settings()
    if settings.stream != "ours" and name != "simulation":
        raise ValueError(
            f"stream='authors' is known for 'simulation' only: the authors published no stream for {name!r}"
        )
    module = import_module(f"calibrant.experiments.{name.replace('-', '_')}")
    report: Report = module.run(settings)
    return report


def write(report: Report, folder: Path) -> list[Path]:
    """Write the figure (PNG, SVG), the data behind it (CSV) and the summary (JSON) of a report, each whole."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {suffix: folder / f"{report.name}.{suffix}" for suffix in ("png", "svg", "csv", "json")}
    figure = report.figure()
    with replacing(written["png"]) as unfinished:
        figure.savefig(unfinished, format="png", dpi=PIXELS_PER_INCH)
    with replacing(written["svg"]) as unfinished:
        figure.savefig(unfinished, format="svg", metadata={"Date": None})
    _write_text(written["csv"], report.to_csv())
    _write_text(written["json"], json.dumps(report.to_dict(), indent=2, allow_nan=False) + "\n")
    return list(written.values())


def together(reports: Sequence[Report]) -> dict[str, Any]:
    """Return several reports as one summary."""
    return {
        "schema": SCHEMA,
        "type": "Reports",
        "holds": all(report.holds for report in reports),
        "reports": {report.name: report.to_dict() for report in reports},
    }


def write_index(reports: Sequence[Report], folder: Path) -> list[Path]:
    """Write one page, as HTML and as Markdown, with every figure, statement and verdict."""
    folder.mkdir(parents=True, exist_ok=True)
    page, text = folder / "index.html", folder / "index.md"
    _write_text(page, _html_page(reports))
    _write_text(text, _markdown_page(reports))
    return [page, text]


def _write_text(path: Path, text: str) -> None:
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def verdict(holds: bool) -> str:
    """Say in a word or two whether a statement and a measurement agree."""
    return "agrees" if holds else "DOES NOT AGREE"


def _summary_line(reports: Sequence[Report]) -> str:
    statements = [statement for report in reports for statement in report.statements]
    agreeing = sum(statement.holds for statement in statements)
    return f"{agreeing} of {len(statements)} statements agree with what was measured."


def _command(report: Report) -> str:
    settings = report.settings
    stream = " --stream authors" if settings.get("stream") == "authors" else ""
    runs = "" if settings["runs"] is None else f" --runs {settings['runs']}"  # nothing to repeat where nothing is drawn
    return f"calibrant reproduce {report.name} --rng {settings['rng']}{runs}{stream} --out ."


def _markdown_page(reports: Sequence[Report]) -> str:
    lines = ["# The paper, reproduced", "", _summary_line(reports), ""]
    for report in reports:
        lines += [f"## {report.name}: {report.title}", "", f"{report.item}. `{_command(report)}`", ""]
        lines += ["| where | who states it | stated | measured | verdict |", "|---|---|---|---|---|"]
        for statement in report.statements:
            cells = [statement.item, statement.source, statement.claim, statement.measured, verdict(statement.holds)]
            lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
        lines += ["", f"![{report.title}]({report.name}.png)", ""]
        lines += [f"Data: [{report.name}.csv]({report.name}.csv), [{report.name}.json]({report.name}.json)", ""]
    return "\n".join(lines)


STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.6rem; border-bottom: 1px solid #8888; }
img { max-width: 100%; background: white; }
.no { font-weight: bold; text-decoration: underline; }
"""


def _html_page(reports: Sequence[Report]) -> str:
    body = ["<h1>The paper, reproduced</h1>", f"<p>{html.escape(_summary_line(reports))}</p>"]
    for report in reports:
        body += [
            f'<h2 id="{report.name}">{html.escape(f"{report.name}: {report.title}")}</h2>',
            f"<p>{html.escape(report.item)}. <code>{html.escape(_command(report))}</code></p>",
            "<table><tr><th>where</th><th>who states it</th><th>stated</th><th>measured</th><th>verdict</th></tr>",
        ]
        for statement in report.statements:
            cells = (statement.item, statement.source, statement.claim, statement.measured)
            row = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
            mark = "yes" if statement.holds else "no"
            body.append(f'<tr>{row}<td class="{mark}">{verdict(statement.holds)}</td></tr>')
        body += [
            "</table>",
            f'<p><img src="{report.name}.svg" alt="{html.escape(report.title)}"></p>',
            f'<p>Data: <a href="{report.name}.csv">{report.name}.csv</a>, '
            f'<a href="{report.name}.json">{report.name}.json</a></p>',
        ]
    head = f'<meta charset="utf-8"><title>The paper, reproduced</title><style>{STYLE}</style>'
    return "\n".join([f'<!doctype html><html lang="en"><head>{head}</head><body>', *body, "</body></html>", ""])
