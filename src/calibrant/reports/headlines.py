"""The first words of a report: the verdict, how sure it is, where the error is, and what to do next.

Each is a sentence or two of at most 30 words, in units that people hold: cases in a hundred, percentage points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from calibrant.certificates.clusters import LARGE_CLUSTER, Clusters, counted_size
from calibrant.certificates.results import Certificate, GroupCertificates, verdict_of
from calibrant.comparisons.results import ModelComparison
from calibrant.core.types import Label
from calibrant.core.voices import Either, Option, Phrase
from calibrant.core.words import (
    approximately,
    counted,
    hundredfold,
    level_said,
    measured,
    percent,
    printable,
    rounded_down,
    rounded_up,
    verdict_said,
)
from calibrant.reports.censoring import notes_of
from calibrant.reports.for_whom import after_certificate, briefly, is_off
from calibrant.reports.over_time import HEADING, caution_of, change_of
from calibrant.reports.over_time import next_step as after_change
from calibrant.reports.results import ClusterOptions, ModelSummary, RepairTrial, ReportSummary, apart_said

GUIDE = "docs/how-to/choose-max-error.md"
"""Where the documentation says how to choose a limit."""

_LABELS = {
    "certified": "Certified",
    "cautioned": "Certified, but the limit says little",
    "one cluster": "Certified, but one cluster holds most rows",
    "refuted": "Refuted",
    "undecided": "Undecided",
    "neutral": "Measured, no limit chosen",
}
_NAMED = 3  # groups that a sentence names


@dataclass(frozen=True)
class Headline:
    """What is said of a model before anything else.

    Attributes
    ----------
    state : str
        What its colour says: a verdict, "cautioned" where a certificate for so wide a limit says little, or "neutral"
        without a limit.
    label : str
        The same in a word or two.
    finding : str
        The answer, in one sentence without a full stop.
    promise : str
        How sure it is, of whom it speaks, and what it does not say.
    clusters : tuple of str
        What rows in clusters are worth, and what they would have claimed as independent ones.
    cautions : tuple of str
        Why the limit says little.
    notes : tuple of str
        What may be wrong with the rows or the method: to be looked at before anything is done.
    worst : str
        Where these rows are worst calibrated, and by how much.
    next_step : str
        What to do.
    changed : str
        That an alarm went off over time, which makes the past a poor witness; empty where none did.
    whom : str
        For whom forecasts are wrong, where that was asked.
    is_off : bool
        Whether some group is off, and further than all rows: what is said of these then is not the whole.
    """

    state: str
    label: str
    finding: str
    promise: str
    clusters: tuple[str, ...]
    cautions: tuple[str, ...]
    notes: tuple[str, ...]
    worst: str
    next_step: str
    changed: str = ""
    whom: str = ""
    is_off: bool = False


def headline_of(model: ModelSummary) -> Headline:
    """Say what matters most about a model."""
    with approximately(model.approximate):
        return _headline(model)


def _headline(model: ModelSummary) -> Headline:
    cautions, changed = cautions_of(model), caution_of(model)
    state = model.found or "neutral"
    if state == "certified" and cautions:
        state = "cautioned"
    return Headline(
        state=state,
        label=_label(model, state),
        finding=_finding(model),
        promise=_promise(model),
        clusters=clusters_said(model),
        cautions=cautions,
        notes=(*map(str, model.judged.notes), *notes_of(model)),
        worst=_worst(model),
        next_step=_next_step(model, state) if not changed or model.change is None else after_change(model.change),
        changed=changed,
        whom=briefly(model),
        is_off=is_off(model),
    )


def _label(model: ModelSummary, state: str) -> str:
    label = _LABELS["one cluster" if state == "cautioned" and _has_large_cluster(model) else state]
    verdict, *rest = label.split(",", 1)
    return label if state == "neutral" else ",".join([verdict_said(verdict), *rest])


def _has_large_cluster(model: ModelSummary) -> bool:
    cautions = () if model.certificate is None else model.certificate.cautions
    return any(getattr(each, "code", "") == LARGE_CLUSTER for each in cautions)


def clusters_said(model: ModelSummary) -> tuple[str, ...]:
    """Say what rows in clusters are worth, and what they would have claimed as independent ones; or nothing."""
    clusters = model.judged.clusters
    if clusters is None:
        return ()
    largest = f"the largest with {percent(clusters.largest_share)} of them"
    if clusters.target == "clusters":
        largest = "each counting once"
    worth = f"and are worth about {clusters.n_eff:,.0f} independent rows (design effect {measured(clusters.deff, 1)})"
    if not clusters.tell_worth:
        worth = "too few to tell how many independent rows they are worth"
    worth = f"The {counted(model.rows, 'row')} are in {counted(clusters.count, 'cluster')}, {largest}, {worth}."
    if model.row_wise is None:
        return (worth,)
    lower, upper = model.row_wise
    digits = 1 if upper >= 0.01 else 2
    most = f"at most {at_most(100.0 * upper, digits)} {per_hundred(model.judged.relative_to)}"
    if model.certificate is not None:
        most = f"{verdict_said(verdict_of(lower, upper, model.certificate.max_error))}, {most}"
    return worth, f"Had they been taken as independent, they would have said: {most}."


def assumed(summary: ReportSummary) -> str:
    """Say what a verdict rests on, in a sentence."""
    if summary.clusters is None:
        return "It assumes independent rows, and a model fixed without looking at them."
    return (
        f"It assumes that {apart_said(summary.clusters.serial)}, whatever rows of one cluster have to do with each "
        "other, and a model fixed without looking at them."
    )


def lines_of(summary: ReportSummary) -> list[str]:
    """Return a report in a few lines: of each model the verdict, how sure it is, where the error is, what to do."""
    lines = [summary.title]
    for model in summary.models:
        said = headline_of(model)
        lines += [
            f"Model {model.name}:",
            f"{said.label}: {said.finding}. {said.promise}",
            *said.clusters,
            *(f"Caution: {caution}" for caution in said.cautions),
            f"Where: {said.worst}",
            *([f"For whom: {said.whom}"] if said.whom else []),
            *(f"Note: {note}" for note in said.notes),
            f"Next: {said.next_step}",
        ]
        if (changed := change_of(model)) is not None:
            lines.append(f"{HEADING} {changed.finding}. {changed.next_step}")
    if summary.comparison is not None:
        lines.append(f"Side by side: {side_by_side(summary.comparison)}.")
        cells = [each.cells() for each in summary.comparison.differences]
        lines += [f"{name}: {said}, {estimate} ({lower} to {upper})." for name, estimate, lower, upper, said in cells]
    return lines


def side_by_side(comparison: ModelComparison) -> str:
    """Say which of several models is better calibrated, in one sentence without a full stop."""
    found = comparison.differences
    told = [each for each in found if each.better is not None]
    if not told:
        return (
            f"These rows do not show which of {' and '.join(comparison)} has the smaller Cutoff error"
            if len(found) == 1
            else "These rows show of no two models compared which has the smaller Cutoff error"
        )
    for name in comparison:
        own = [each for each in found if name in (each.first, each.second)]
        if len(own) == len(comparison) - 1 and all(each.better == name for each in own):
            others = "all others" if len(own) > 1 else next(each for each in comparison if each != name)
            return f"{name} is better calibrated than {others}"
    return f"In {len(told)} of {len(found)} comparisons one model is surely better calibrated"


def cautions_of(model: ModelSummary) -> tuple[str, ...]:
    """Return why the limit asked about says little: of all rows or, where it is groups, of the first of these."""
    whole = () if model.certificate is None else model.certificate.cautions
    groups = () if model.groups is None else model.groups.cautions
    if whole or not groups:
        return tuple(map(str, whole))
    more = len(groups) - 1
    return (str(groups[0]), *([f"So it is in {counted(more, 'more group')}."] if more else []))


def state_of(certificate: Certificate) -> str:
    """Return what the colour of a certificate says: its verdict, unless the limit says little."""
    return "cautioned" if certificate and certificate.cautions else certificate.verdict


def holds_for(target: str, clusters: Clusters | ClusterOptions | None = None) -> str:
    """Say whom a promise speaks of, and how clusters count where there are any."""
    whom, size = "cases to come", ""
    if clusters is not None:
        size = " in clusters of these sizes"
        if clusters.max_size is not None:
            size = f" in clusters of at most {counted_size(clusters.max_size)}"
        if clusters.target == "clusters":
            whom, size = "clusters to come", ", each counting once"
    if target == "population":
        return f"for {whom}{size}, if nothing changes"
    return f"for these very forecasts{size}, as if issued once more"


def per_hundred(relative_to: str, whose: str = "") -> str:
    """Say what an error is so many per hundred of.

    Examples
    --------
    >>> per_hundred("rows"), per_hundred("events", "its")
    ('per 100 of all cases', 'per 100 of its events')
    """
    return f"per 100 of {whose or 'all'} {'cases' if relative_to == 'rows' else 'events'}"


def at_most(limit: float, digits: int = 4) -> str:
    """Write an upper limit rounded up; one that is infinite excludes nothing."""
    return "any number" if math.isinf(limit) else rounded_up(limit, digits)


def _worst(model: ModelSummary) -> str:
    """Say where the error is: on all rows or, where a group alone is refuted, in the worst of these."""
    if not _lies_in_groups(model):
        return model.measures.worst_interval.where() if model.certificate is None else model.certificate.where()
    assert model.groups is not None
    each = zip(model.groups.groups, model.groups.certificates, strict=True)
    label, certificate = max(each, key=lambda pair: pair[1].lower)
    said = certificate.where(whole="of its rows")
    return f"In group {printable(label)}, {said[0].lower()}{said[1:]}"


def _lies_in_groups(model: ModelSummary) -> bool:
    """Return whether it is groups that are refuted, and not all rows."""
    whole, groups = model.certificate, model.groups
    return whole is not None and groups is not None and groups.verdict == "refuted" != whole.verdict


def _finding(model: ModelSummary) -> str:
    unit = per_hundred(model.judged.relative_to)
    if model.certificate is None:
        lower, upper = _hundred_limits(model)
        between = f"by {lower} to {upper}" if float(lower) else f"by at most {upper}"
        if math.isinf(model.judged.upper):
            between = f"by at least {lower}"
        return f"In the worst range of forecasts, events and forecasts differ {between} {unit}"
    asked = f"{hundredfold(model.certificate.max_error)} {unit}"
    groups = model.groups
    if model.found == "certified":
        where, theirs = ("", "") if groups is None else (", overall and in every group", ", or of the group's")
        return f"In any range of forecasts{where}, events and forecasts differ by at most {asked}{theirs}"
    if model.certificate.verdict == "refuted":
        return f"In some range of forecasts, events and forecasts differ by more than {asked}"
    if groups is not None and groups.verdict == "refuted":
        its = per_hundred(groups.relative_to, "its")
        return (
            f"In {_how_many(groups)}, some range of forecasts is off by more than {hundredfold(groups.max_error)} {its}"
        )
    if groups is not None and model.certificate:
        one = f"but in {_how_many(groups)} one may be off by more {per_hundred(groups.relative_to, 'its')}"
        return f"Overall no range of forecasts is off by more than {asked}, {one}"
    return f"These rows cannot tell whether some range of forecasts is off by more than {asked}"


def _promise(model: ModelSummary) -> str:
    judged = model.judged
    sure = f"{level_said(judged.confidence_level)} confidence"
    many = "rows" if judged.clusters is None else "clusters"
    sure += "" if judged.finite_sample else f", as far as a rule for many {many} applies"
    whom = holds_for(judged.target, judged.clusters)
    certificate = model.certificate
    # A verdict names the limit asked about: numbers that are chosen after a look at the verdict are less sure than it.
    # Where nothing was decided the upper limit is as sure (docs/theory/verdicts.md).
    if certificate is None:
        said = f"We can say so with {sure}, {whom}. {_still_possible(judged.upper, judged.relative_to)}"
        return said.rstrip()
    if model.found == "undecided":
        if certificate:
            return f"{_groups_named(model)}What is said holds with {sure}, {whom}."
        _, upper = _hundred_limits(model)
        if math.isinf(certificate.upper):
            return f"{_groups_named(model)}With {sure} they set no upper limit to the difference."
        most = f"at most {upper} {per_hundred(certificate.relative_to)}"
        return f"{_groups_named(model)}The difference is {most}, with {sure}, {whom}."
    said = f"{_groups_named(model)}We can say so with {sure}, {whom}."
    if model.found != "certified" or cautions_of(model):
        return said
    return f"{said} {_still_possible(certificate.max_error, certificate.relative_to)}".rstrip()


def _still_possible(limit: float, relative_to: str) -> str:
    """Say what a limit leaves possible, because an error of so many cases is not one of so many points."""
    for share, said in ((0.1, "a tenth"), (0.5, "half")) if relative_to == "rows" else ():
        points = rounded_up(round(100.0 * limit / share, 9), 1).removesuffix(".0")
        if 0.0 < float(points) < 100.0:
            return f"A range with {said} of all cases may still be off by {points} percentage points."
    return ""


def _groups_named(model: ModelSummary) -> str:
    """Name the groups that keep a verdict from being better, a few of them."""
    groups = model.groups
    if groups is None or model.found == "certified":
        return ""
    names = [printable(label) for label in _concerned(groups)]
    if not names or (len(names) == 1 and _lies_in_groups(model)):  # which is named where the error is
        return ""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    kind = "Refuted in" if groups.verdict == "refuted" else "Not settled in"
    return f"{kind}: {', '.join(names[:_NAMED])}{more}. "


def _concerned(groups: GroupCertificates) -> list[Label]:
    """Return the groups that are refuted or, where none is, those that are not certified."""
    each = list(zip(groups.groups, groups.upper, groups.certificates, strict=True))
    refuted = [label for label, _, certificate in each if certificate.verdict == "refuted"]
    return refuted or [label for label, upper, _ in each if upper > groups.max_error]


def groups_said(groups: GroupCertificates) -> str:
    """Say the verdict on all groups at once, and which ones keep it from being better."""
    level = level_said(groups.confidence_level)
    limit = f"{hundredfold(groups.max_error)} {per_hundred(groups.relative_to, 'its')}"
    names = ", ".join(printable(label) for label in _concerned(groups))
    claims = {
        "certified": f"with {level} confidence no range of any group is off by more than {limit}.",
        "refuted": f"with {level} confidence some range of forecasts is off by more than {limit} in {names}.",
        "undecided": f"some range of forecasts may be off by more than {limit} in {names}.",
    }
    return f"{verdict_said(groups.verdict.capitalize())}: {claims[groups.verdict]}"


def _how_many(groups: GroupCertificates) -> str:
    return f"{len(_concerned(groups))} of {counted(len(groups), 'group')}"


def _hundred_limits(model: ModelSummary) -> tuple[str, str]:
    """Write the limits per hundred, rounded outwards."""
    judged = model.judged
    digits = 1 if judged.upper >= 0.01 else 2
    return rounded_down(100.0 * judged.lower, digits), at_most(100.0 * judged.upper, digits)


def _next_step(model: ModelSummary, state: str) -> str:
    repair, certificate = model.repair, model.certificate
    if model.judged.notes and state not in ("certified", "cautioned"):
        return "See to the note first: what it says may be all that is wrong."
    if certificate is None:
        return Phrase(
            "For a verdict, choose {limit}, the largest error you can live with, by what errors cost and not by these "
            "numbers ({guide}).",
            limit=Either("max_error", Option("max_error")),
            guide=GUIDE,
        )
    if state == "cautioned" and _has_large_cluster(model):
        return "Judge rows of other clusters, so that no verdict rests on one of them."
    if state == "cautioned":
        return f"Ask again, for the limit that the caution names ({GUIDE})."
    took = _repair_said(repair, certificate.relative_to)
    if state == "certified":
        if whom := after_certificate(model, certificate.max_error, certificate.relative_to):
            return whom
        if took and not certificate.worst_interval.within_chance:
            return f"For this limit nothing needs repair. If the points above matter to you, recalibrate: {took}."
        return "For this limit nothing needs repair. Judge them again on new rows, or when something changes."
    if _lies_in_groups(model):
        return "Recalibrate these groups on rows of their own, and judge them again on new rows."
    is_off = state == "refuted" or certificate.lower > 0.0  # else nothing says that a repair is needed
    if is_off and repair is not None and repair.after is not None and repair.after.verdict == "certified":
        return (
            f"Recalibrate. Learned on half of these {_halved(repair)} and judged on the rest, recalibrated forecasts "
            f"are {verdict_said('certified')} for this limit."
        )
    if state == "undecided":
        if certificate.rows_needed is not None:
            needed = f"about {certificate.rows_needed:,} fresh ones would decide"
            return f"Judge more rows: {needed}, if the error is as it seems."
        if certificate.clusters is not None:
            if certificate.clusters.needed is None:
                return "Judge rows of more clusters: many more rows of the same ones help little."
            needed = f"about {certificate.clusters.needed:,} like these would decide"
            return f"Judge rows of more clusters: {needed}, if the error is as it seems."
        if certificate:
            return "Judge more rows of these groups, which may settle it."
        return "Judge more rows, which may settle it; below is where the error is on these."
    if repair is None or repair.before is None or repair.after is None:
        return "Find where the error is below, and recalibrate on rows of their own."
    if took:
        return f"Recalibrate, and judge on new rows: {took}."
    return "Look for what is wrong with the model or the data: recalibration did not lower the error on held-out rows."


def _halved(repair: RepairTrial) -> str:
    return "rows" if repair.fitted_clusters is None else "clusters"


def _repair_said(repair: RepairTrial | None, relative_to: str) -> str:
    """Say what a repair did to the error on rows that it was not learned on, if it lowered it."""
    if repair is None or repair.before is None or repair.after is None:
        return ""
    before, after = repair.before.estimate, repair.after.estimate
    if not after < before < math.inf:
        return ""
    took = f"{measured(100.0 * before, 1)} to {measured(100.0 * after, 1)} {per_hundred(relative_to)}"
    return f"learned on half of these {_halved(repair)}, it took the error on the rest from {took}"
