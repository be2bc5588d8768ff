"""The command line called from a test, predictions to call it with, and what the documentation says it prints."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner, Result
from public_names import public
from schema_cases import published
from table_cases import FORMATS, predictions, write

import calibrant
from calibrant.cli import main
from calibrant.core.results import SCHEMA

ROOT = Path(__file__).parents[1]
SOURCE = str(Path(calibrant.__file__).parents[1])
PLAIN: dict[str, type | tuple[type, ...]] = {
    "text": str,
    "number": (int, float),
    "whole number": int,
    "true/false": bool,
    "list": list,
    "object": dict,
    "null": type(None),
}


def documented() -> dict[str, dict[str, str]]:
    """Return what docs/reference/cli.md says of every command: its keys, and what they hold."""
    found: dict[str, dict[str, str]] = {}
    for line in (ROOT / "docs" / "reference" / "cli.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and re.fullmatch(r"`\w+`", cells[1]):
            found.setdefault(cells[0], {})[cells[1].strip("`")] = cells[2]
    return found


def fits(value: Any, words: str) -> bool:
    """Whether a value is one of the things that the words name."""
    for word in re.split(r" or |, or ", words):
        kind, _, names = word.partition(" of ")
        kind = re.sub(r" with `--\w+`$", "", kind)
        if kind in PLAIN:
            parts = value if isinstance(value, list) else [value]
            listed = re.findall(r"`(\w+)`", names)
            if isinstance(value, PLAIN[kind]) and all(sorted(part) == sorted(listed) for part in parts if listed):
                return True
        elif isinstance(value, dict) and value.get("type") == kind:
            fields = {field.name for field in dataclasses.fields(public(kind))}
            return set(value) == {"type", *fields} and published().is_valid({"schema": SCHEMA, **value})
    return False


def call(*arguments: object, stdin: str | bytes | None = None, **options: Any) -> Result:
    return CliRunner(**options).invoke(main, [str(argument) for argument in arguments], input=stdin)


def answer(*arguments: object, stdin: str | bytes | None = None, exit_code: int = 0) -> Any:
    """Run a command with --json and return the document, after checking its envelope."""
    found = call(*arguments, "--json", stdin=stdin)
    assert found.exit_code == exit_code, found.output
    document = json.loads(found.stdout)
    assert document["schema"] == "calibrant/1"
    assert document["version"] == calibrant.__version__
    assert document["exit_code"] == exit_code
    return document


def write_files(folder: Path) -> Path:
    """Predictions in every format, a model fitted to them, and two clearly different forecasters of many rows."""
    for kind in FORMATS:
        write(predictions(), folder / f"t.{kind}", kind)
    large = predictions(4000, seed=1)
    write(
        {"y": large["y"], "good": large["p"], "bad": np.sqrt(large["p"]), "bad2": large["p"] ** 2},
        folder / "large.csv",
        "csv",
    )
    labels = {"label": np.where(large["y"] == 1, "yes", "no"), "p": large["p"]}
    write({name: values[:200] for name, values in labels.items()}, folder / "labels.csv", "csv")
    assert call("recalibrate", "fit", folder / "t.csv", "--y-prob", "worse", "--out", folder / "m.json").exit_code == 0
    return folder


RUNS = {
    "measure": ("measure", "{file}"),
    "measure by": ("measure", "{file}", "--by", "ward", "--weight", "w"),
    "certify": ("certify", "{file}", "--max-error", "0.2"),
    "certify gap": ("certify", "{file}", "--max-error", "0.2", "--measure", "risk_gap", "--threshold", "0.1:0.3"),
    "certify by": ("certify", "{file}", "--max-error", "0.4", "--by", "ward"),
    "certify groups": ("certify", "{file}", "--max-error", "0.4", "--groups", "ward,w", "--scale", "mass"),
    "certify cluster": ("certify", "{file}", "--max-error", "1", "--cluster", "ward", "--serial", "1"),
    "groups": ("groups", "{file}", "--features", "w,ward", "--max-error", "0.5"),
    "test": ("test", "{file}", "--resamples", "999"),
    "test by": ("test", "{file}", "--test", "spiegelhalter", "--by", "ward"),
    "decide": ("decide", "{file}", "--threshold", "0.3", "--threshold", "0.5"),
    "decide by": ("decide", "{file}", "--cost-false-positive", "1", "--cost-false-negative", "4", "--by", "ward"),
    "compare": ("compare", "{file}", "--y-prob", "p", "--y-prob", "worse"),
    "watch": ("watch", "{file}", "--max-error", "0.4", "--unit", "row"),
    "plan": ("plan", "{file}", "--max-error", "0.05"),
    "recalibrate fit": ("recalibrate", "fit", "{file}", "--method", "guarded", "--out", "{out}/model.json"),
    "recalibrate apply": ("recalibrate", "apply", "{model}", "{file}", "--out", "{out}/repaired.csv"),
    "recalibrate choose": ("recalibrate", "choose", "{file}", "--parts", "2"),
}


def filled(run: str, **places: object) -> list[str]:
    return [part.format(**places) for part in RUNS[run]]
