"""The words and written numbers of a report, the same for the page and for Markdown."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace
from typing import Any

from calibrant.certificates.joint_levels import level_of_both
from calibrant.certificates.methods.registry import METHODS
from calibrant.certificates.results import Certificate, GroupCertificates
from calibrant.core.words import counted, hundredfold, level_said, measured, percent, rounded_down, rounded_up, shown
from calibrant.measures.registry import MEASURES as LISTED
from calibrant.measures.results import LIMITS, Measures, WorstInterval, written
from calibrant.reports.results import DecisionTable, ModelSummary, RepairTrial, ReportSummary

FINGERPRINT_SAID = (
    "The fingerprint is the SHA-256 of the distinct forecasts, in order, with their rows and outcomes added up; where "
    "there are groups, of their names and those of their rows too. It does not depend on the order of the rows."
)

MEASURES = {
    "cutoff": (
        "Cutoff",
        "0",
        "Choose rows by any interval of forecasts: events and forecasts among them differ by at most this share of all "
        "rows.",
    ),
    "ks": ("Kolmogorov-Smirnov", "0", "The same for intervals that start at 0."),
    "smooth": ("Smooth", "0", "Largest error under smooth weights; hardly changes when forecasts move by a hair."),
    "bounded_variation": ("Bounded variation", "0", "Largest error under weights of total variation 2."),
    "expected": (
        "ECE, plug-in",
        "0",
        "Mean distance from each distinct forecast to the event rate there; of meaning only where forecasts repeat.",
    ),
    "expected_binned": (
        "ECE, 15 bins",
        "0",
        "The same for forecasts rounded into 15 bins; blind to what happens inside.",
    ),
    "distance_low": (
        "Distance, lower end",
        "0",
        "The nearest calibrated forecasts are at least so far away on average,",
    ),
    "distance_high": ("Distance, upper end", "0", "and at most so far."),
    "calibration_in_the_large": ("Mean bias", "0", "Event rate minus mean forecast: below 0, too high on the whole."),
    "observed_expected_ratio": ("Observed / expected", "1", "Event rate divided by mean forecast."),
    "slope": ("Slope", "1", "Below 1 the forecasts are too extreme, above 1 too timid."),
    "intercept": ("Intercept", "0", "Fitted together with the slope."),
    "intercept_at_unit_slope": ("Intercept at slope 1", "0", "Below 0 the forecasts are too high on the whole."),
    "ici": ("ICI", "0", "Mean distance from the forecast to the isotonic calibration curve."),
    "e50": ("E50", "0", "Median of that distance."),
    "e90": ("E90", "0", "Its 90th percentile."),
    "brier": ("Brier score", "0", "Mean squared error: calibration and discrimination together; smaller is better."),
}
"""What each measure is called in a table, its ideal value, and what it means."""

MISSING = "\N{EN DASH}"
_OPTIONS = ("max_error", "confidence_level", "method", "threshold", "rng", "title")
_BAR = 200.0


def view_of(model: ModelSummary, summary: ReportSummary) -> dict[str, Any]:
    """Return everything that is written about one model."""
    certificate = model.certificate
    scale = _scale([certificate for other in summary.models for certificate in _certificates(other)])
    return {
        "name": model.name,
        "headline": _headline(model),
        "verdict": certificate.verdict,
        "finding": _finding(certificate),
        "plain": _in_plain_words(certificate),
        "tiles": _tiles(model),
        "each_limit": _each_limit(certificate),
        "next_step": _next_step(model),
        "certificate_lines": certificate.sentences(),
        "bar": _bar(certificate, scale),
        "brier": measured(model.measures.brier, 4),
        "worst": _worst(certificate.worst_interval),
        "measures": _measures(model.measures),
        "measure_notes": [note for note in model.measures.notes if note not in certificate.notes],
        "score": None if model.score is None else f"{model.score.finding()}.",
        "decisions": None
        if model.decisions is None
        else _decisions(model.decisions, summary.threshold, certificate.target),
        "repair": None
        if model.repair is None
        else _repair(model.repair, scale, ties=model.distinct_forecasts != model.rows),
        "groups": None if model.groups is None else _groups(model.groups, scale),
        "omissions": model.omissions,
    }


def compared(summary: ReportSummary) -> str:
    """Say what the verdicts on several models are, together."""
    count = len(summary.models)
    certified = [model.name for model in summary.models if model.certificate]
    level = level_said(summary.confidence_level)
    finding = f"{len(certified)} of {count} models are certified" if certified else "No model is certified"
    if len(certified) == 1:
        finding = f"1 of {count} models is certified"
    return (
        f"{finding} to be within {shown(summary.max_error)}. The verdicts hold together with {level} confidence, so a "
        "model may be chosen after reading them."
    )


def method_lines(summary: ReportSummary) -> list[str]:
    """Say how the verdicts were found, and what they rest on."""
    models = summary.models
    level = level_said(models[0].certificate.confidence_level)
    lines = [
        "The Cutoff calibration error is the largest mean of outcome minus forecast, in size, that collects on an "
        "interval of forecasts: choose rows by any interval, and the number of events among them differs from the "
        "number forecast by at most this share of all rows.",
        f"The verdict compares confidence limits for it with {shown(summary.max_error)}: certified when the upper "
        "limit is at most that, refuted when the lower limit is above it, else undecided. "
        f"{_each_limit(models[0].certificate)} The verdict needs one of them only. " + METHODS[summary.method].sentence,
    ]
    if _data_used(summary)[0]:
        lines.append("Rows count by their weights: every mean, share and number of events is a weighted one.")
    assumed = dict.fromkeys(words for model in models for words in model.certificate.assumptions)
    lines.append(f"This assumes that {'; '.join(assumed)}.")
    if len(models) > 1:
        lines.append(
            f"With {len(models)} models to choose from, each is judged at {level} confidence, so that all verdicts are "
            f"right together with {level_said(summary.confidence_level)} confidence, whichever model is chosen."
        )
    lines.append(
        "Other sections stand by themselves: the verdicts on groups hold together with one another, those before and "
        "after a repair each on its own, and neither together with the verdict on top. Whoever looks at many numbers "
        "and picks one has no guarantee for it."
    )
    return lines


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


def _in_python(summary: ReportSummary) -> str:
    weighted, grouped, names = _data_used(summary)
    forecasts, name = "y_prob", repr(names[0])
    if len(names) > 1:
        forecasts = "{" + ", ".join(f"{name!r}: y_prob_{k}" for k, name in enumerate(names, start=1)) + "}"
        name = ""
    options = {
        "sample_weight": "sample_weight" if weighted else "",
        "by": "groups" if grouped else "",
        **{option: repr(getattr(summary, option)) for option in _OPTIONS},
        "name": name,
    }
    listed = "".join(f"    {option}={value},\n" for option, value in options.items() if value)
    return (
        "import calibrant\n\n"
        f"report = calibrant.CalibrationReport.from_predictions(\n    y_true,\n    {forecasts},\n{listed})\n"
        'report.write_html("report.html")\n'
        "[model.fingerprint for model in report.summary.models]  # as below, if the data are the same\n"
    )


def _on_the_command_line(summary: ReportSummary) -> str:
    weighted, grouped, names = _data_used(summary)
    forecasts = [shlex.quote(name) for name in names] if len(names) > 1 else ["y_prob"]
    lines = [
        "calibrant report predictions.parquet --y-true y_true " + " ".join(f"--y-prob {each}" for each in forecasts),
        *(["--weight sample_weight"] if weighted else []),
        *(["--by groups"] if grouped else []),
        " ".join(
            f"--{option.replace('_', '-')} {shlex.quote(str(getattr(summary, option)))}"
            for option in _OPTIONS
            if option != "title"
        ),
        f"--title {shlex.quote(summary.title)} --out report.html",
    ]
    return " \\\n    ".join(lines) + "\n"


def _data_used(summary: ReportSummary) -> tuple[bool, bool, list[str]]:
    """Return whether there are weights, whether there are groups, and the names of the models."""
    models = summary.models
    weighted = not all(model.certificate.worst_interval.unit_weights for model in models)
    return weighted, any(model.groups is not None for model in models), [model.name for model in models]


def facts(summary: ReportSummary) -> list[tuple[str, str, bool]]:
    """Return what the report was made from: label, value, and whether it is code."""
    several = len(summary.models) > 1
    found: list[tuple[str, str, bool]] = []
    for model in summary.models:
        if model.fingerprint is not None:
            found.append((f"Fingerprint of {model.name}" if several else "Data fingerprint", model.fingerprint, True))
        found.append((f"Rows of {model.name}" if several else "Rows", f"{model.rows:,}", False))
    return [*found, ("Seed", str(summary.rng), False), ("Versions", ", ".join(summary.versions), False)]


def headline(summary: ReportSummary) -> str:
    """Say what the forecasts of a report have in common."""
    models = summary.models
    if len(models) == 1:
        return _headline(models[0])
    rows = sorted({model.rows for model in models})
    rates = sorted({percent(model.mean_outcome) for model in models})
    return (
        counted(rows[0], "row")
        + (f" to {counted(rows[-1], 'row')}" if len(rows) > 1 else " for each model")
        + (f", event rate {rates[0]}" if len(rates) == 1 else "")
    )


def holds_for(target: str) -> str:
    """Say whom a promise about decisions speaks of."""
    if target == "population":
        return "for cases to come, if nothing changes"
    return "for these very forecasts, as if issued once more"


def _headline(model: ModelSummary) -> str:
    weight = "" if math.isclose(model.weight_total, model.rows) else f", total weight {model.weight_total:g}"
    distinct = ""
    if model.distinct_forecasts is not None:
        distinct = f", {counted(model.distinct_forecasts, 'distinct forecast')}"
    return (
        f"{counted(model.rows, 'row')}{weight}{distinct}, mean forecast {percent(model.mean_forecast)}, event rate "
        f"{percent(model.mean_outcome)}"
    )


def _finding(certificate: Certificate) -> str:
    limit = f"{shown(certificate.max_error)}"
    return {
        "certified": f"The forecasts match what happens, to within {limit}",
        "refuted": f"The forecasts do not match what happens: the error is above {limit}",
        "undecided": f"These rows do not settle whether the error is within {limit}",
    }[certificate.verdict]


def _in_plain_words(certificate: Certificate) -> str:
    sure = f"We can say so with {level_said(certificate.confidence_level)} confidence"
    sure += "" if certificate.finite_sample else ", as far as a rule for many rows applies"
    future = (
        "among cases to come, if nothing changes and in the long run"
        if certificate.target == "population"
        else holds_for(certificate.target)
    )
    # A verdict names the limit asked about: numbers that are chosen after a look at the verdict are less sure than it.
    # Where nothing was decided the upper limit is as sure (docs/theory.md).
    asked = hundredfold(certificate.max_error)
    if certificate.verdict == "refuted":
        return (
            f"There is a range of forecasts on which, {future}, the number of events differs from the number forecast "
            f"by more than {asked} per 100 cases of the whole. {sure}."
        )
    most = rounded_up(100.0 * certificate.upper, _digits(certificate.upper))
    lead = "Choose cases by any range of forecasts, such as \N{LEFT SINGLE QUOTATION MARK}30% and more"
    promise = (
        f"{lead}\N{RIGHT SINGLE QUOTATION MARK}: {future}, the number of events differs from the number forecast by at "
        f"most {asked if certificate.verdict == 'certified' else most} per 100 cases of the whole. {sure}"
    )
    if certificate.verdict == "certified":
        return f"{promise}."
    return f"{promise}, but neither that the error is within {shown(certificate.max_error)} nor that it is above."


def _each_limit(certificate: Certificate) -> str:
    """Say how sure the two limits are, one by one and both at once."""
    level = certificate.confidence_level
    return (
        f"Each of the two limits holds with {level_said(level)} confidence by itself, both at once with "
        f"{level_said(level_of_both(level))}."
    )


def _digits(limit: float) -> int:
    """Return how many decimals a limit per hundred needs; more than four as a share are never shown."""
    return 1 if limit >= 0.01 else 2


def _tiles(model: ModelSummary) -> list[tuple[str, str]]:
    certificate = model.certificate
    level = level_said(certificate.confidence_level)
    return [
        ("Rows", f"{model.rows:,}"),
        ("Event rate", percent(model.mean_outcome)),
        ("Mean forecast", percent(model.mean_forecast)),
        ("Cutoff error on these rows", measured(certificate.estimate, 4)),
        (f"At least, with {level} confidence", rounded_down(certificate.lower)),
        (f"At most, with {level} confidence", rounded_up(certificate.upper)),
    ]


def _next_step(model: ModelSummary) -> str:
    certificate, repair = model.certificate, model.repair
    if certificate.verdict == "certified":
        return "For this limit nothing needs repair; the sections below say where the remaining error is."
    if repair is None and certificate.verdict == "undecided":
        return "More rows may settle it; the sections below say where the error is on these."
    if repair is None:
        return "Find where the error is below, and recalibrate on rows of their own."
    if repair.after.verdict == "certified":
        return (
            "Recalibrated forecasts are certified: learned on half of the rows and judged on the rest, their error is "
            f"at most {shown(repair.after.max_error)} (with {level_said(repair.after.confidence_level)} confidence)."
        )
    return (
        f"Learned on half of the rows and judged on the rest, recalibration moves the error from "
        f"{measured(repair.before.estimate, 4)} to {measured(repair.after.estimate, 4)}; the verdict on that is: "
        f"{repair.after.verdict}."
    )


def _certificates(model: ModelSummary) -> list[Certificate]:
    found = [model.certificate]
    if model.repair is not None:
        found += [model.repair.before, model.repair.after]
    return found + list(() if model.groups is None else model.groups.certificates)


def _scale(certificates: list[Certificate]) -> float:
    """Return what one unit of error is on a bar, the same on every bar of a report."""
    return _BAR / (1.05 * max(max(each.upper, each.estimate, each.max_error) for each in certificates) or 1.0)


def _bar(certificate: Certificate, scale: float) -> dict[str, Any]:
    lower, upper = rounded_down(certificate.lower), rounded_up(certificate.upper)
    return {
        "lower": f"{scale * certificate.lower:.2f}",
        "width": f"{max(scale * (certificate.upper - certificate.lower), 0.5):.2f}",
        "estimate": f"{scale * certificate.estimate:.2f}",
        "limit": f"{scale * certificate.max_error:.2f}",
        "estimate_said": measured(certificate.estimate, 4),
        "lower_said": lower,
        "upper_said": upper,
        "said": f"from {lower} to {upper}, limit {shown(certificate.max_error)}",
    }


def _worst(worst: WorstInterval) -> dict[str, Any]:
    if worst.direction == "none":
        return {"sentence": str(worst), "strip": None}

    def place(forecast: float) -> float:
        return round(10.0 + 380.0 * forecast, 2)

    low, high = place(worst.low), place(worst.high)
    strip = {
        "low": low,
        "width": round(max(high - low, 1.0), 2),
        "forecast": place(worst.mean_forecast),
        "event": place(worst.mean_outcome),
        "ticks": [(place(k / 4), f"{k / 4:g}") for k in range(5)],
        "said": f"Forecasts from {worst.low:.4g} to {worst.high:.4g}, on a scale from 0 to 1: mean forecast "
        f"{percent(worst.mean_forecast)}, event rate {percent(worst.mean_outcome)}",
    }
    return {"sentence": str(worst), "strip": strip}


def _measures(measures: Measures) -> list[dict[str, str]]:
    return [
        dict(
            zip(("label", "ideal", "meaning"), MEASURES[name] if name in MEASURES else _listed(name), strict=True),
            value=MISSING if value is None else _measured(name, value),
        )
        for name, value, _ in measures.table()
    ]


def _listed(name: str) -> tuple[str, str, str]:
    """Return the same of a measure that is listed, as every error, with 0 for its ideal."""
    said = LISTED.words(name)
    return said[0].upper() + said[1:], "0", LISTED[name].meaning


def _measured(name: str, value: float) -> str:
    return written(name, value) if name in LIMITS else measured(value)


def _decisions(table: DecisionTable, threshold: float, target: str) -> dict[str, Any]:
    level = level_said(table.confidence_level)
    rows = [
        {
            "threshold": f"{table.threshold[k]:g}",
            "said": _trade_off(float(table.threshold[k])),
            "acted": percent(float(table.acted[k])),
            "risk": measured(float(table.risk[k])),
            "constant": measured(float(table.constant_risk[k])),
            "gap": measured(float(table.gap[k])),
            "guarantee": rounded_up(float(table.guarantee[k])),
            "net_benefit": measured(float(table.net_benefit[k])),
        }
        for k in range(table.threshold.size)
    ]
    start = int((table.threshold == threshold).argmax())
    return {
        "rows": rows,
        "start": start,
        "chosen": rows[start],
        "labels": [
            ("acted", "Acted on"),
            ("risk", "Mean loss per row"),
            ("gap", "Recalibration could save, on these rows"),
            ("guarantee", f"It saves at most, {holds_for(target)} ({level} confidence)"),
            ("constant", "Loss of always or never acting, whichever is less"),
            ("net_benefit", "Net benefit"),
        ],
        "best": str(table.best),
        "footnote": (
            f"The guarantee: with {level} confidence no non-decreasing recalibration lowers the expected loss by more, "
            f"at any threshold, {holds_for(target)}. It assumes that {'; '.join(table.assumptions)}."
        ),
    }


def _trade_off(threshold: float) -> str:
    if math.isclose(threshold, 0.5):
        return "Missing an event is as bad as acting in vain."
    if threshold < 0.5:
        return f"Missing an event is {(1.0 - threshold) / threshold:.3g} times as bad as acting in vain."
    return f"Acting in vain is {threshold / (1.0 - threshold):.3g} times as bad as missing an event."


def _repair(repair: RepairTrial, scale: float, *, ties: bool) -> dict[str, Any]:
    over = (
        " Where forecasts repeat, what is said of the halves holds over the choice of the seed, which should be random."
        if ties
        else ""
    )
    return {
        "story": (
            f"Each row was sent to one of two halves by the toss of a coin (seed {repair.rng}). A guarded "
            f"recalibrator learned from {counted(repair.fitted_rows, 'row')} and kept the {repair.recalibrator}; the "
            f"other {counted(repair.judged_rows, 'row')}, which it has not seen, judge them before and "
            f"after.{over}"
        ),
        "rows": [
            {
                "label": label,
                "verdict": certificate.verdict,
                "bar": _bar(certificate, scale),
                "brier": measured(brier, 4),
            }
            for label, certificate, brier in (
                ("as they are", repair.before, repair.brier_before),
                ("recalibrated", repair.after, repair.brier_after),
            )
        ],
        "ladder": [f"{rung}." for rung in repair.ladder],
    }


def _groups(groups: GroupCertificates, scale: float) -> dict[str, Any]:
    # A name may hold line breaks, which must not be taken for those between sentences.
    said = replace(groups, groups=tuple(str(label).replace("\n", "\N{SYMBOL FOR NEWLINE}") for label in groups.groups))
    return {
        "lines": [*said.findings(), *said.remarks()],
        "rows": [
            {
                "label": str(label),
                "rows": f"{certificate.rows:,}",
                "verdict": certificate.verdict,
                "bar": _bar(certificate, scale),
            }
            for label, certificate in zip(groups.groups, groups.certificates, strict=True)
        ],
    }
