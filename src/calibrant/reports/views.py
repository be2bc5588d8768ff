"""The words and written numbers of a report, the same for the page and for Markdown."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from calibrant.certificates.clusters import counted_size
from calibrant.certificates.independence import IndependenceCheck
from calibrant.certificates.joint_levels import level_of_both
from calibrant.certificates.methods.registry import METHODS
from calibrant.certificates.model_differences import ModelDifference
from calibrant.certificates.results import Certificate, ConfidenceInterval, GroupCertificates
from calibrant.comparisons.results import ModelComparison
from calibrant.core.words import (
    approximately,
    counted,
    hundredfold,
    level_said,
    measured,
    percent,
    rounded_down,
    rounded_up,
    shown,
    verdict_said,
)
from calibrant.decisions.guarantees import DecisionGuarantee
from calibrant.measures.registry import MEASURES as LISTED
from calibrant.measures.results import LIMITS, Measures, written
from calibrant.measures.savings import REDRAWING
from calibrant.reports.class_sections import view_classes
from calibrant.reports.for_whom import worst_group_of
from calibrant.reports.headlines import (
    at_most,
    groups_said,
    headline_of,
    holds_for,
    per_hundred,
    side_by_side,
    state_of,
)
from calibrant.reports.over_time import change_method, change_of
from calibrant.reports.redo import data_used
from calibrant.reports.results import (
    APPROXIMATE,
    DecisionTable,
    GroupLimits,
    ModelSummary,
    RepairTrial,
    ReportSummary,
    apart_said,
)

MEASURES = {
    "cutoff": (
        "Cutoff error",
        "0",
        "Choose rows by any range of forecasts: events and forecasts among them differ by at most this share of all "
        "rows.",
    ),
    "ks": ("Kolmogorov-Smirnov", "0", "The Cutoff error for ranges that start at 0."),
    "smooth": ("Smooth", "0", "Largest error under smooth weights; hardly changes when forecasts move by a hair."),
    "bounded_variation": ("Bounded variation", "0", "Largest error under weights of total variation 2."),
    "ece": (
        "ECE, plug-in",
        "0",
        "Mean distance from each distinct forecast to the event rate there; of meaning only where forecasts repeat.",
    ),
    "ece_binned": (
        "ECE, 15 bins",
        "0",
        "The same for forecasts rounded into 15 bins; blind to what happens inside.",
    ),
    "risk_gap": (
        "Risk gap",
        "0",
        "Most that re-drawing the line between acting and not acting would have saved per row, at the worst threshold.",
    ),
    "distance.low": (
        "Distance, lower end",
        "0",
        "The nearest calibrated forecasts are at least so far away on average,",
    ),
    "distance.high": ("Distance, upper end", "0", "and at most so far."),
    "calibration_in_the_large": ("Mean bias", "0", "Event rate minus mean forecast: below 0, too high on the whole."),
    "observed_expected_ratio": ("Observed / expected", "1", "Event rate divided by mean forecast."),
    "slope.slope": ("Slope", "1", "Below 1 the forecasts are too extreme, above 1 too timid."),
    "slope.intercept": ("Intercept", "0", "Fitted together with the slope."),
    "slope.intercept_at_unit_slope": ("Intercept at slope 1", "0", "Below 0 the forecasts are too high on the whole."),
    "curve.ici": ("ICI", "0", "Mean distance from the forecast to the isotonic calibration curve."),
    "curve.e50": ("E50", "0", "Median of that distance."),
    "curve.e90": ("E90", "0", "Its 90th percentile."),
    "brier": ("Brier score", "0", "Mean squared error: calibration and discrimination together; smaller is better."),
}
"""What each measure is called in a table, its ideal value, and what it means."""

SHOWN_FIRST = ("cutoff", "observed_expected_ratio", "slope.slope", "brier")
"""The measures that are open to the eye; the others are folded."""

MISSING = "\N{EN DASH}"
_BAR = 200.0

_ELSEWHERE = (
    "Where a threshold decides nothing, look at those at which people act; threshold= chooses which comes first."
)
"""What to do with a page whose first threshold acts on everybody, or on nobody."""


def view_of(model: ModelSummary, summary: ReportSummary) -> dict[str, Any]:
    """Return everything that is written about one model."""
    with approximately(model.approximate):
        return _view_of(model, summary)


def _view_of(model: ModelSummary, summary: ReportSummary) -> dict[str, Any]:
    judged = model.judged
    scale = _scale([each for other in summary.models for each in _judged_parts(other)], summary.max_error)
    measures = _measures(model.measures)
    return {
        "name": model.name,
        "about": _about(model),
        "verdict": None if model.found is None else verdict_said(model.found),
        "headline": headline_of(model),
        "limits": _limits_said(judged),
        "full": _in_full(model),
        "bar": _bar(judged, scale, summary.max_error),
        "brier": measured(model.measures.brier, 4),
        "worst": str(model.measures.worst_interval),
        "measures": [each for each in measures if each["name"] in SHOWN_FIRST],
        "more_measures": [each for each in measures if each["name"] not in SHOWN_FIRST],
        "measure_notes": [note for note in model.measures.notes if note not in judged.notes],
        "score": None if model.score is None else f"{model.score.finding()}.",
        "decisions": None if model.decisions is None else _decisions(model.decisions, summary),
        "repair": None
        if model.repair is None
        else _repair(model.repair, scale, summary, ties=model.distinct_forecasts != model.rows),
        "classes": view_classes(model, scale, _bar),
        "groups": _grouped(model, scale),
        "change": change_of(model),
        "for_whom": worst_group_of(model),
        "omissions": model.omissions,
    }


def compared(summary: ReportSummary) -> tuple[str, str]:
    """Say what is known of several models, and how sure all of it is together."""
    with approximately(any(model.approximate for model in summary.models)):
        return _compared(summary)


def _compared(summary: ReportSummary) -> tuple[str, str]:
    count, level = len(summary.models), level_said(summary.confidence_level)
    together = f"hold together with {level} confidence, so a model may be chosen after reading them."
    if summary.max_error is None:
        return f"{count} models, side by side", f"The limits {together}"
    certified = [model.name for model in summary.models if model.found == "certified"]
    word = verdict_said("certified")
    finding = f"{len(certified)} of {count} models are {word}" if certified else "No model is certified"
    if len(certified) == 1:
        finding = f"1 of {count} models is {word}"
    asked = f"{hundredfold(summary.max_error)} {per_hundred(summary.relative_to)}"
    return f"{finding} for a limit of {asked}", f"The verdicts {together}"


def differences_said(summary: ReportSummary) -> dict[str, Any] | None:
    """Return what is written of the differences of several models; None where there are none."""
    comparison = summary.comparison
    if comparison is None:
        return None
    found = comparison.differences
    scale = (
        0.5 * _BAR / (1.05 * max(abs(end) for each in found for end in (each.lower, each.upper, each.estimate)) or 1)
    )
    whom = "" if comparison.reference is None else f" Each model is compared with {comparison.reference}."
    beside = "those" if summary.max_error is None else "the verdicts"
    return {
        "finding": side_by_side(comparison),
        "reading": "The Cutoff error of the first minus that of the second on the same rows, as a share of all rows: "
        "wholly below 0, the first is better calibrated. All these limits hold together with "
        f"{level_said(comparison.confidence_level)} confidence, beside {beside} above.{whom}",
        "rows": [_difference(each, scale) for each in found],
        "where": [each.where for each in found if each.where],
    }


def _difference(each: ModelDifference, scale: float) -> dict[str, Any]:
    label, estimate, lower, upper, said = each.cells()
    start, end, middle = (0.5 * _BAR + scale * place for place in (each.lower, each.upper, each.estimate))
    return {
        "label": label,
        "said": said,
        "told": each.better is not None,
        "bar": {
            "lower": f"{start:.2f}",
            "width": f"{max(end - start, 0.5):.2f}",
            "estimate": f"{middle:.2f}",
            "limit": None,
            "zero": f"{0.5 * _BAR:g}",
            "estimate_said": estimate,
            "lower_said": lower,
            "upper_said": upper,
            "said": f"from {lower} to {upper}",
        },
    }


def method_lines(summary: ReportSummary) -> list[str]:
    """Say how the verdicts were found, and what they rest on."""
    with approximately(any(model.approximate for model in summary.models)):
        return _method_lines(summary)


def _method_lines(summary: ReportSummary) -> list[str]:
    models = summary.models
    judged = models[0].judged
    level = level_said(judged.confidence_level)
    how = APPROXIMATE if models[0].approximate else METHODS[summary.method].sentence
    lines = [
        "The error judged is the Cutoff calibration error. Choose rows by any range of forecasts: the number of events "
        f"among them differs from the number forecast by at most this share of all {summary.relative_to}.",
        _limits_lead(judged, summary.max_error) + " " + how,
    ]
    clustered, weighted, grouped, _ = data_used(summary)
    if clustered:
        lines.append(_clusters_method(summary))
    if grouped and summary.max_error is not None:
        lines.append(
            "With groups the verdict on top is one on all rows and every group at once. It is certified when all of "
            f"them are, and wrongly so with at most {level_said(1.0 - judged.confidence_level)} chance. It is refuted "
            "when all rows or some group are, each of the two with "
            f"{level} confidence and both with {level_said(level_of_both(judged.confidence_level))}."
        )
    if weighted:
        lines.append("Rows count by their weights: every mean, share and number of events is a weighted one.")
    if len(models) > 1:
        lines.append(
            f"With {len(models)} models to choose from, each is judged at {level} confidence, so that all of it is "
            f"right together with {level_said(summary.confidence_level)} confidence, whichever model is chosen."
        )
    if summary.comparison is not None:
        lines.append(_differences_method(summary.comparison))
    lines += [change_method(model.change) for model in models[:1] if model.change is not None]
    lines.append(
        "Other sections stand by themselves: what is said of groups holds together with one another, the verdicts "
        "before and after a repair each on its own. Whoever looks at many numbers and picks one has no guarantee for "
        "it."
    )
    return lines


def _differences_method(comparison: ModelComparison) -> str:
    """Say how differences of models were judged."""
    assumed = "".join(f", and that {words}" for words in comparison.assumptions)
    return (
        "Differences of models are judged row by row, by the adaptive method: rows on which two models go wrong alike "
        "say nothing for either, which limits of each model on its own cannot know. Random halves of the data name "
        "where a model is worst, and the others judge it there. It assumes what the verdicts do"
        f"{assumed}."
    )


def about(summary: ReportSummary) -> str:
    """Say what the rows of a report have in common."""
    models = summary.models
    if len(models) == 1:
        return _about(models[0])
    rows = sorted({model.rows for model in models})
    rates = sorted({percent(model.mean_outcome) for model in models})
    return (
        counted(rows[0], "row")
        + (f" to {counted(rows[-1], 'row')}" if len(rows) > 1 else " for each model")
        + (f", event rate {rates[0]}" if len(rates) == 1 else "")
    )


def _about(model: ModelSummary) -> str:
    weight = "" if math.isclose(model.weight_total, model.rows) else f", total weight {model.weight_total:g}"
    facts = model.judged.clusters
    clusters = "" if facts is None else f" in {counted(facts.count, 'cluster')}"
    if facts is not None and facts.target == "clusters":  # whose total weight is their number
        weight = ", each counting once"
    forecast, rate = ("mean confidence", "top label right in") if model.has_classes else ("mean forecast", "event rate")
    return (
        f"{counted(model.rows, 'row')}{clusters}{weight}, {forecast} {percent(model.mean_forecast)}, {rate} "
        f"{percent(model.mean_outcome)}"
    )


def _in_full(model: ModelSummary) -> list[str]:
    """Return the verdict on all rows, or their limits, as `certify` words them, without what is said elsewhere."""
    certificate, limits = model.certificate, model.limits
    if certificate is None:
        return str(replace(limits, notes=())).split("\n") if limits is not None else []
    whole = "" if model.groups is None else "All rows. "
    return [
        f"{whole}{certificate.finding()} {certificate.numbers()}",
        f"This assumes that {'; '.join(certificate.assumptions)}.",
    ]


def _limits_lead(judged: Certificate | ConfidenceInterval, max_error: float | None) -> str:
    """Say what limits are compared with, and how sure they are."""
    level = level_said(judged.confidence_level)
    if max_error is None:
        return f"Both limits hold at once with {level} confidence."
    return (
        f"The verdict compares limits for it with {shown(max_error)}: certified when the upper limit is at most that, "
        f"refuted when the lower limit is above it, else undecided. Each of the two limits holds with {level} "
        f"confidence by itself, both at once with {level_said(level_of_both(judged.confidence_level))}. The verdict "
        "needs one of them only."
    )


def _limits_said(judged: Certificate | ConfidenceInterval) -> dict[str, str]:
    """Write the limits of the error, and how sure they are."""
    level = level_said(judged.confidence_level)
    sure = (
        f"both at once with {level} confidence"
        if isinstance(judged, ConfidenceInterval)
        else f"each with {level} confidence"
    )
    unit = "" if judged.relative_to == "rows" else " of all events"
    lower, upper = rounded_down(judged.lower), at_most(judged.upper)
    whom = holds_for(judged.target, judged.clusters)
    return {
        "lower": lower,
        "upper": upper,
        "said": f"Limits {whom}: at least {lower} and at most {upper}{unit}, {sure}.",
    }


def _judged_parts(model: ModelSummary) -> list[Certificate | ConfidenceInterval]:
    found: list[Certificate | ConfidenceInterval] = [model.judged]
    if model.repair is not None:
        found += [each for each in (model.repair.before, model.repair.after) if each is not None]
    found += [] if model.groups is None else model.groups.certificates
    found += [] if model.classes is None else model.classes.certificates
    found += [] if model.class_limits is None else model.class_limits.intervals
    return found + list([] if model.group_limits is None else model.group_limits.limits)


def _scale(parts: list[Certificate | ConfidenceInterval], max_error: float | None) -> float:
    """Return what one unit of error is on a bar, the same on every bar of a report."""
    ends = [end for each in parts for end in (each.upper, each.estimate) if math.isfinite(end)]
    return _BAR / (1.05 * max(max_error or 0.0, *ends, 0.0) or 1.0)


def _bar(judged: Certificate | ConfidenceInterval, scale: float, max_error: float | None) -> dict[str, Any]:
    lower, upper = rounded_down(judged.lower), at_most(judged.upper)
    start, end, middle = (min(scale * each, _BAR) for each in (judged.lower, judged.upper, judged.estimate))
    return {
        "lower": f"{start:.2f}",
        "width": f"{max(end - start, 0.5):.2f}",
        "estimate": f"{middle:.2f}",
        "limit": None if max_error is None else f"{scale * max_error:.2f}",
        "estimate_said": measured(judged.estimate, 4) if math.isfinite(judged.estimate) else MISSING,
        "lower_said": lower,
        "upper_said": upper,
        "said": f"from {lower} to {upper}" + ("" if max_error is None else f", limit {shown(max_error)}"),
    }


def _measures(measures: Measures) -> list[dict[str, str]]:
    return [
        dict(
            zip(("label", "ideal", "meaning"), MEASURES[name] if name in MEASURES else _listed(name), strict=True),
            name=name,
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


def _decisions(table: DecisionTable, summary: ReportSummary) -> dict[str, Any]:
    level, whom = level_said(table.confidence_level), holds_for(table.promise.target, summary.clusters)
    rows = [
        {
            "threshold": f"{table.threshold[k]:g}",
            "said": f"{_trade_off(float(table.threshold[k]))}{_all_alike(float(table.acted[k]))}",
            "acted": percent(float(table.acted[k])),
            "risk": measured(float(table.risk[k])),
            "constant": measured(float(table.constant_risk[k])),
            "gap": measured(float(table.gap[k])),
            "guarantee": rounded_up(float(table.guarantee[k])),
            "net_benefit": measured(float(table.net_benefit[k])),
        }
        for k in range(table.threshold.size)
    ]
    start = int((table.threshold == summary.threshold).argmax())
    return {
        "rows": rows,
        "start": start,
        "chosen": rows[start],
        "labels": [
            ("acted", "Acted on"),
            ("risk", "Mean loss per row"),
            ("constant", "Loss of always or never acting, whichever is less"),
            ("net_benefit", "Net benefit"),
            ("gap", "Re-drawing the line could save, on these rows"),
            ("guarantee", f"It saves at most, {whom} ({level} confidence)"),
        ],
        "best": str(table.best) if 0.0 < table.acted[start] < 1.0 else f"{table.best} {_ELSEWHERE}",
        "footnote": _promise_said(table.promise, summary),
    }


def _promise_said(promise: DecisionGuarantee, summary: ReportSummary) -> str:
    """Say what the limit at every threshold means, what it rests on, and what it leaves open."""
    level, whom = level_said(promise.confidence_level), holds_for(promise.target, summary.clusters)
    means = (
        f"What it saves at most: with {level} confidence no {REDRAWING} saves more per case, at any threshold, {whom}. "
        "No recalibration that keeps the order of the forecasts does anything else. The limit is one for all "
        "thresholds together, so that any of them may be read."
    )
    assumed = f"It assumes that {'; '.join(promise.assumptions)}."
    if not promise.is_direct:
        return f"{means} It is that of the {LISTED.words(promise.measure)}. {assumed}"
    return (
        f"{means} It is a promise of its own, beside the verdict. {assumed} Rules that act on low forecasts instead of "
        "high ones save at most twice as much."
    )


def _trade_off(threshold: float) -> str:
    if math.isclose(threshold, 0.5):
        return "A missed event is as bad as a false alarm."
    if threshold < 0.5:
        return f"A missed event is {(1.0 - threshold) / threshold:.3g} times as bad as a false alarm."
    return f"A false alarm is {threshold / (1.0 - threshold):.3g} times as bad as a missed event."


def _all_alike(acted: float) -> str:
    """Say so where a threshold tells no row from another, as 0.5 does where events are rare."""
    if acted == 0.0:
        return " Nobody is acted on here: no forecast on these rows is so high."
    return " Everybody is acted on here: no forecast on these rows is lower." if acted == 1.0 else ""


def _repair(repair: RepairTrial, scale: float, summary: ReportSummary, *, ties: bool) -> dict[str, Any]:
    return {
        "story": _story(repair, summary, ties=ties),
        "rows": [
            {
                "label": label,
                "verdict": None if certificate is None else verdict_said(certificate.verdict),
                "state": None if certificate is None else state_of(certificate),
                "bar": None if certificate is None else _bar(certificate, scale, certificate.max_error),
                "error": measured(error, 4),
                "brier": measured(brier, 4),
            }
            for label, certificate, error, brier in (
                ("as they are", repair.before, repair.cutoff_before, repair.brier_before),
                ("recalibrated", repair.after, repair.cutoff_after, repair.brier_after),
            )
        ],
        "ladder": [f"{rung}." for rung in repair.ladder],
    }


def _story(repair: RepairTrial, summary: ReportSummary, *, ties: bool) -> str:
    """Say who taught the repair and who judged it."""
    learned, others = counted(repair.fitted_rows, "row"), counted(repair.judged_rows, "row")
    halved = f"Each row was sent to one of two halves by the toss of a coin (seed {repair.rng})."
    over = ""
    if repair.fitted_clusters is not None and repair.judged_clusters is not None and summary.clusters is not None:
        learned += f" of {counted(repair.fitted_clusters, 'cluster')}"
        others += f" of {counted(repair.judged_clusters, 'cluster')}"
        halved = f"Half of the clusters, with all their rows, were drawn by lot (seed {repair.rng})."
        if summary.clusters.serial:
            between = counted(summary.clusters.serial, "cluster")
            halved = (
                f"The first half of the clusters taught and the last half judged, with {between} left out in between, "
                "since neighbours may have to do with each other."
            )
    elif ties:
        over = (
            " Where forecasts repeat, what is said of the halves holds over the choice of the seed, which should be "
            "random."
        )
    return (
        f"{halved} A guarded recalibrator, which tries the simplest curve first, learned from {learned} and kept the "
        f"{repair.recalibrator}; the other {others}, which it has not seen, judge the forecasts before and after.{over}"
    )


def _clusters_method(summary: ReportSummary) -> str:
    """Say what counts where rows are in clusters."""
    clusters = summary.clusters
    assert clusters is not None
    counts = "for clusters of these sizes"
    if clusters.max_size is not None:
        counts = f"for a population of clusters of at most {counted_size(clusters.max_size)}"
    if clusters.target == "clusters":
        counts = "with each cluster counting once, however many rows it has, in every number here"
    effect = "The design effect says how many times the variance of independent rows theirs has. "
    facts = [model.judged.clusters for model in summary.models]
    effect = effect if any(each is not None and each.tell_worth for each in facts) else ""
    return (
        "Rows of one cluster may depend on each other in any way, so that clusters are what limits count: a rule for "
        "any number of rows is one for any number of clusters. Limits hold if "
        f"{apart_said(clusters.serial)}, {counts}. {effect}The bands of the plots flip the signs of whole clusters, "
        "which is right for many of them."
    )


def _groups(groups: GroupCertificates, scale: float) -> dict[str, Any]:
    # A name may hold line breaks, which must not be taken for those between sentences.
    said = replace(groups, groups=tuple(str(label).replace("\n", "\N{SYMBOL FOR NEWLINE}") for label in groups.groups))
    _, assumed, together = said.findings()
    parts = list(zip(groups.groups, groups.certificates, strict=True))
    if groups:
        # To certify all groups at once takes upper limits that hold one by one: those are shown, and so are verdicts.
        limits = zip(parts, groups.upper, strict=True)
        parts = [(label, _certified(certificate, upper)) for (label, certificate), upper in limits]
        together = (
            f"Per group, upper limits that hold with {level_said(groups.confidence_level)} confidence each, which is "
            "what it takes to certify all groups at once:"
        )
    return {
        "lines": [groups_said(said), together],
        "remarks": [assumed, *said.remarks()],
        "rows": [
            {
                "label": str(label),
                "rows": f"{certificate.rows:,}",
                "verdict": verdict_said(certificate.verdict),
                "state": state_of(certificate),
                "bar": _bar(certificate, scale, groups.max_error),
            }
            for label, certificate in parts
        ],
    }


def _certified(certificate: Certificate, upper: float) -> Certificate:
    """Return the certificate of a group among others that are all certified, with the limit that this rests on."""
    lower = min(certificate.lower, upper)
    return replace(certificate, lower=lower, upper=upper, verdict="certified", rows_needed=None)


def _group_limits(groups: GroupLimits, scale: float) -> dict[str, Any]:
    level = level_said(groups.confidence_level)
    return {
        "lines": [
            f"Per group, limits that all hold together with {level} confidence, if the groups were chosen without "
            "looking at these rows:"
        ],
        "remarks": [],
        "rows": [
            {"label": str(label), "rows": f"{each.rows:,}", "verdict": None, "bar": _bar(each, scale, None)}
            for label, each in zip(groups.groups, groups.limits, strict=True)
        ],
    }


def _grouped(model: ModelSummary, scale: float) -> dict[str, Any] | None:
    found = None
    if model.groups is not None:
        found = _groups(model.groups, scale)
    elif model.group_limits is not None:
        found = _group_limits(model.group_limits, scale)
    check = model.group_check
    return (
        None if found is None else {**found, "alike": _alike(check) if check is not None and check.rejected() else ""}
    )


def _alike(check: IndependenceCheck) -> str:
    """Say that rows of one group are more alike than independent ones, and what to ask."""
    return (
        "Rows of one group are more alike than independent rows would be "
        f"(design effect {measured(check.clusters.deff, 1)}). If groups are sites, patients or days whose rows share "
        "what decides their outcomes, all limits here are too narrow: pass them as cluster= instead, with which the "
        f"limit for all rows is {at_most(check.upper_clusters)} in place of {at_most(check.upper_rows)}."
    )
