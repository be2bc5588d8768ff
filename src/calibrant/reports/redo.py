"""What it takes to make a report again: code, options, and what it was made from."""

from __future__ import annotations

import shlex
from typing import Any

from calibrant.reports.results import ReportSummary
from calibrant.rows.incidence import KAPLAN_MEIER

FINGERPRINT_SAID = (
    "The fingerprint is the SHA-256 of the distinct forecasts, in order, with their rows and outcomes added up; where "
    "there are groups or periods, of their names and those of their rows too; where there are clusters, of who is in "
    "which. It does not depend on the order of the rows."
)

_OPTIONS = ("max_error", "relative_to", "confidence_level", "method", "threshold", "rng", "title", "source", "date")
_FILE = "predictions.parquet"
_ON_THEIR_OWN = ("title", "source", "date")


def ways_to_redo(summary: ReportSummary) -> list[dict[str, str]]:
    """Return code that makes the report again, from data that the reader has."""
    repair = (
        'recalibrator = calibrant.GuardedRecalibrator(ends="inside")\n'
        "recalibrator.fit(y_prob, y_true)  # on rows the model was not fitted to\n"
        "print(recalibrator.guarantee_)\n"
        "better = recalibrator.predict(new_forecasts)\n"
        'recalibrator.to_json(), recalibrator.to_sql("y_prob")  # to carry it elsewhere\n'
    )
    return [
        {"tab": "Python", "heading": "In Python", "code": _in_python(summary)},
        {"tab": "Command line", "heading": "On the command line", "code": _on_the_command_line(summary)},
        {"tab": "Repair", "heading": "Repair the forecasts", "code": repair},
    ]


def _given(summary: ReportSummary) -> dict[str, Any]:
    """Return the options that were given."""
    options = {option: getattr(summary, option) for option in _OPTIONS}
    return {option: value for option, value in options.items() if value is not None}


def _in_python(summary: ReportSummary) -> str:
    clustered, weighted, grouped, names = data_used(summary)
    forecasts, name = "y_prob", repr(names[0])
    first = "y_prob" if len(names) == 1 else "y_prob_1"
    if len(names) > 1:
        forecasts = "{" + ", ".join(f"{name!r}: y_prob_{k}" for k, name in enumerate(names, start=1)) + "}"
        name = ""
    options = {
        "sample_weight": "sample_weight" if weighted else "",
        "by": "groups" if grouped else "",
        "cluster": "clusters" if clustered else "",
        "features": "features" if _features(summary) else "",
        **{option: repr(value) for option, value in _clustering(summary).items()},
        **{option: value if option == "period" else repr(value) for option, value in _watching(summary).items()},
        **{option: repr(value) for option, value in _given(summary).items()},
        "name": name,
    }
    listed = "".join(f"    {option}={value},\n" for option, value in options.items() if value)
    rows, made = f"    y_true,\n    {forecasts},\n", ""
    risk = summary.models[0].horizon
    if risk is not None:
        rivals = ", competing=competing" if risk.estimator != KAPLAN_MEIER else ""
        made = f"rows = calibrant.horizon(time, event, {first}, at={risk.at!r}{rivals})\n"
        rows = "    rows,\n"
        if len(names) > 1:
            each = (f"{name!r}: rows.with_forecasts(y_prob_{k})" for k, name in enumerate(names, start=1))
            rows = "    {" + ", ".join(each) + "},\n"
    return (
        "import calibrant\n\n"
        f"{made}report = calibrant.CalibrationReport.from_predictions(\n{rows}{listed})\n"
        'report.write_html("report.html")\n'
        "[model.fingerprint for model in report.summary.models]  # as below, if the data are the same\n"
    )


def _outcomes(summary: ReportSummary) -> str:
    """Return the options that name the column of outcomes, or those of outcomes that may be censored."""
    risk = summary.models[0].horizon
    if risk is None:
        return "--y-true y_true"
    rivals = " --competing 2" if risk.estimator != KAPLAN_MEIER else ""
    return f"--time time --event event --at {risk.at!r}{rivals}"


def _on_the_command_line(summary: ReportSummary) -> str:
    clustered, weighted, grouped, names = data_used(summary)
    forecasts = [shlex.quote(name) for name in names] if len(names) > 1 else ["y_prob"]
    given = {option: shlex.quote(str(value)) for option, value in _given(summary).items()}
    lines = [
        f"calibrant report {given.get('source', _FILE)} {_outcomes(summary)} "
        + " ".join(f"--y-prob {each}" for each in forecasts),
        *(["--weight sample_weight"] if weighted else []),
        *(["--by groups"] if grouped else []),
        *([" ".join(["--cluster clusters", *_typed(_clustering(summary))])] if clustered else []),
        *([f"--features {shlex.quote(','.join(_features(summary)))}"] if _features(summary) else []),
        *([" ".join(_typed(_watching(summary)))] if _watching(summary) else []),
        " ".join(_typed({option: value for option, value in given.items() if option not in _ON_THEIR_OWN})),
        " ".join(f"--{option} {given[option]}" for option in ("title", "date") if option in given)
        + " --out report.html",
    ]
    return " \\\n    ".join(lines) + "\n"


def _clustering(summary: ReportSummary) -> dict[str, Any]:
    """Return the options about clusters that are not what they are by default."""
    given = {} if summary.clusters is None else summary.clusters.passed_on()
    return {option: value for option, value in given.items() if value not in (None, 0, "rows")}


def _watching(summary: ReportSummary) -> dict[str, Any]:
    """Return the options about periods, where there are any."""
    first = summary.models[0]
    if first.change is None:
        left_out = any(omission.section == "change" for omission in first.omissions)
        return {"period": "periods"} if left_out else {}
    tolerance = first.change.reading.tolerance
    return {"period": "periods", **({"tolerance": tolerance} if tolerance else {})}


def _features(summary: ReportSummary) -> tuple[str, ...]:
    """Return the names of the features, where there are any."""
    found = summary.models[0].worst_group
    return () if found is None else found.features


def _typed(options: dict[str, Any]) -> list[str]:
    return [f"--{option.replace('_', '-')} {value}" for option, value in options.items()]


def data_used(summary: ReportSummary) -> tuple[bool, bool, bool, list[str]]:
    """Return whether there are clusters, weights of rows and groups, and the names of the models."""
    models, clusters = summary.models, summary.clusters
    weighted = not all(model.measures.worst_interval.unit_weights for model in models)
    if clusters is not None:  # each of which may count once, by weights that nobody passed
        weighted = clusters.weighted
    if any(model.horizon is not None for model in models):  # whose weights follow from the times
        weighted = False
    grouped = any(model.groups is not None or model.group_limits is not None for model in models)
    return clusters is not None, weighted, grouped, [model.name for model in models]


def facts(summary: ReportSummary) -> list[tuple[str, str, bool]]:
    """Return what the report was made from: label, value, and whether it is code."""
    several = len(summary.models) > 1
    found: list[tuple[str, str, bool]] = []
    for model in summary.models:
        if model.fingerprint is not None:
            found.append((f"Fingerprint of {model.name}" if several else "Data fingerprint", model.fingerprint, True))
        found.append((f"Rows of {model.name}" if several else "Rows", f"{model.rows:,}", False))
    return [*found, ("Seed", str(summary.rng), False), ("Versions", ", ".join(summary.versions), False)]
