"""What it takes to make a validation study again: in Python and on the command line, from the same file."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.core.words import printable
from calibrant.decisions.benefits import usual_thresholds
from calibrant.reports.validation_results import StudyFile, ValidationSummary
from calibrant.rows.incidence import KAPLAN_MEIER
from calibrant.validations.results import Validation

READERS: Mapping[str, tuple[str, str]] = {
    # The usual engine of pandas before 3 is off by a last digit now and then, which the fingerprint would tell.
    "csv": ("pd.read_csv", ', engine="pyarrow"'),
    "tsv": ("pd.read_csv", ', sep="\\t", engine="pyarrow"'),
    "parquet": ("pd.read_parquet", ""),
    "arrow": ("pd.read_feather", ""),
    "jsonl": ("pd.read_json", ", lines=True, precise_float=True"),
    "npz": ("pd.DataFrame(dict(np.load", "))"),
}
"""What reads files of each format in Python: what comes before the name, and after."""

_UNNAMED = "predictions.csv"
_PATTERN = set("*?[")


def ways_to_validate_again(summary: ValidationSummary) -> list[dict[str, str]]:
    """Return code that makes the page again: from the file, where one is known, or from data that the reader has."""
    return [
        {"tab": "Python", "heading": "In Python", "code": _in_python(summary)},
        {"tab": "Command line", "heading": "On the command line", "code": _on_the_command_line(summary)},
    ]


def _options(summary: ValidationSummary) -> dict[str, Any]:
    """Return the options of the study that were given, or that the seed and defaults stand for."""
    found = summary.validation
    options: dict[str, Any] = {
        "smoother": found.smoother,
        "confidence_level": found.confidence_level,
        "n_resamples": found.n_resamples,
        "extremes": found.extremes,
        "max_error": None if found.certificate is None else found.certificate.max_error,
        "rng": found.rng,
        "thresholds": _thresholds(found),
        "title": summary.title,
        "date": summary.date,
    }
    return {option: value for option, value in options.items() if value is not None}


def _thresholds(found: Validation) -> list[float] | None:
    """Return the thresholds of net benefit, where they are not the usual ones."""
    if found.net_benefit is None or np.array_equal(found.net_benefit.threshold, usual_thresholds()):
        return None
    at: list[float] = np.atleast_1d(found.net_benefit.threshold).tolist()
    return at


def _in_python(summary: ValidationSummary) -> str:
    file = summary.file
    columns = _unnamed(summary) if file is None else _named(file)
    competing = columns.pop("competing", "")
    rows = f"    {columns.pop('y_true')},\n    {columns['y_prob']},\n"
    if summary.risk is not None:
        followed = ", ".join(columns[name] for name in ("time", "event", "y_prob"))
        rows = f"    calibrant.horizon({followed}, at={summary.risk.at!r}{competing}),\n"
    named = {name: getattr(summary, name) for name in ("name", "source", "left_out")}
    given: dict[str, str] = {
        name: columns[name] for name in ("cluster", "sample_weight", "pos_label") if name in columns
    }
    given |= {name: repr(value) for name, value in {**_options(summary), **named}.items() if value is not None}
    listed = "".join(f"    {option}={value},\n" for option, value in given.items())
    return (
        f"{'import calibrant' if file is None else _reading(file)}\n\n"
        f"report = calibrant.ValidationReport.from_predictions(\n{rows}{listed})\n"
        'report.write_html("validation.html")\n'
        "print(report.summary.fingerprint)  # as below, if the data are the same\n"
    )


def _unnamed(summary: ValidationSummary) -> dict[str, str]:
    """Return names for arrays that the reader has."""
    found, risk = summary.validation, summary.risk
    names = ["y_true", "y_prob"] if risk is None else ["y_true", "time", "event", "y_prob"]
    names += ["cluster"] if found.clusters is not None else []
    names += ["sample_weight"] if found.weighted and risk is None else []
    competing = {"competing": ", competing=competing"} if risk is not None and risk.estimator != KAPLAN_MEIER else {}
    return {name: name for name in names} | competing


def _named(file: StudyFile) -> dict[str, str]:
    """Return the columns of the file, as Python names them."""
    named = {"y_true": file.y_true, "event": file.y_true, "time": file.time, "y_prob": file.y_prob}
    named |= {"sample_weight": file.weight, "cluster": file.cluster}
    columns = {name: f"rows[{column!r}]" for name, column in named.items() if column is not None}
    columns |= {} if file.pos_label is None else {"pos_label": repr(file.pos_label)}
    return columns | ({"competing": f", competing={list(file.competing)!r}"} if file.competing else {})


def _reading(file: StudyFile) -> str:
    """Return code that reads a file."""
    before, after = READERS[file.format]
    brought = ["import calibrant", *(["import numpy as np"] if "np." in before else []), "import pandas as pd"]
    name = _UNNAMED if file.files == ("-",) else file.files[0]
    read = f"rows = {before}({name!r}{after})"
    if len(file.files) > 1 or _PATTERN & set(name):
        brought = ["import glob", "", *brought]
        read = (
            f"files = [name for pattern in {list(file.files)!r} for name in sorted(glob.glob(pattern))]\n"
            f"rows = pd.concat([{before}(name{after}) for name in files], ignore_index=True)"
        )
    dropped = [f"rows = rows.dropna(subset={file.columns!r})"] if file.drop_missing else []
    return "\n".join([*brought, "", read, *dropped])


def _on_the_command_line(summary: ValidationSummary) -> str:
    found, risk = summary.validation, summary.risk
    file = summary.file
    if file is None:  # columns that the reader names
        followed: dict[str, Any] = {}
        if risk is not None:
            rivals = (2.0,) if risk.estimator != KAPLAN_MEIER else ()
            followed = {"time": "time", "competing": rivals}
        file = StudyFile(
            files=(summary.source or _UNNAMED,),
            format="csv",
            y_true="y_true" if risk is None else "event",
            y_prob="y_prob",
            weight="sample_weight" if found.weighted and risk is None else None,
            cluster="cluster" if found.clusters is not None else None,
            **followed,
        )
    typed = {option.replace("_", "-"): value for option, value in _options(summary).items()}
    typed["resamples"] = typed.pop("n-resamples")
    typed["extremes"] = str(typed["extremes"]).replace("_", "-")
    if "thresholds" in typed:
        typed["thresholds"] = ",".join(map(repr, typed["thresholds"]))
    lines = [
        f"calibrant validate {' '.join(map(_quoted, file.files))}",
        " ".join([*_outcomes(file, None if risk is None else risk.at), _option("y-prob", file.y_prob)]),
        *([_option("pos-label", _number(file.pos_label))] if file.pos_label is not None else []),
        *([_option("weight", file.weight)] if file.weight is not None else []),
        *([_option("cluster", file.cluster)] if file.cluster is not None else []),
        *(["--drop-missing"] if file.drop_missing else []),
        *(_option(option, value) for option, value in typed.items()),
        "--out validation.html",
    ]
    return " \\\n    ".join(lines) + "\n"


def _outcomes(file: StudyFile, at: float | None) -> list[str]:
    """Return the options that name the column of outcomes, or those of outcomes that may be censored."""
    if at is None or file.time is None:
        return [_option("y-true", file.y_true)]
    followed = [_option("time", file.time), _option("event", file.y_true), _option("at", _number(at))]
    return [*followed, *(_option("competing", _number(code)) for code in file.competing)]


def _option(name: str, value: Any) -> str:
    return f"--{name} {_quoted(value)}"


def _quoted(value: Any) -> str:
    return shlex.quote(printable(value))


def _number(value: Any) -> Any:
    """Return a whole number without its point."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
