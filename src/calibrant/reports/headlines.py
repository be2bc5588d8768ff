"""The first words of a report: the verdict, how sure it is, where the error is, and what to do next.

Each is a sentence or two of at most 30 words, in units that people hold: cases in a hundred, percentage points.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from calibrant.certificates.results import Certificate, GroupCertificates
from calibrant.core.types import Label
from calibrant.core.words import (
    counted,
    hundredfold,
    level_said,
    measured,
    percent,
    printable,
    rounded_down,
    rounded_up,
)
from calibrant.measures.results import WorstInterval
from calibrant.reports.results import ModelSummary, ReportSummary

GUIDE = "docs/choose-max-error.md"
"""Where the documentation says how to choose a limit."""

ASSUMED = "It assumes independent rows, and a model fixed without looking at them."

_LABELS = {
    "certified": "Certified",
    "cautioned": "Certified, but the limit says little",
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
    cautions : tuple of str
        Why the limit says little.
    worst : str
        Where these rows are worst calibrated, and by how much.
    next_step : str
        What to do.
    """

    state: str
    label: str
    finding: str
    promise: str
    cautions: tuple[str, ...]
    worst: str
    next_step: str


def headline_of(model: ModelSummary) -> Headline:
    """Say what matters most about a model."""
    cautions = cautions_of(model)
    state = model.verdict or "neutral"
    if state == "certified" and cautions:
        state = "cautioned"
    return Headline(
        state=state,
        label=_LABELS[state],
        finding=_finding(model),
        promise=_promise(model),
        cautions=cautions,
        worst=_worst(model),
        next_step=_next_step(model, state),
    )


def lines_of(summary: ReportSummary) -> list[str]:
    """Return a report in a few lines: of each model the verdict, how sure it is, where the error is, what to do."""
    lines = [summary.title]
    for model in summary.models:
        said = headline_of(model)
        lines += [
            f"Model {model.name}:",
            f"{said.label}: {said.finding}. {said.promise}",
            *(f"Caution: {caution}" for caution in said.cautions),
            said.worst,
            f"Next: {said.next_step}",
        ]
    return lines


def cautions_of(model: ModelSummary) -> tuple[str, ...]:
    """Return why the limit asked about says little, of all rows and of the groups, each sentence once."""
    return ()


def holds_for(target: str) -> str:
    """Say whom a promise speaks of."""
    if target == "population":
        return "for cases to come, if nothing changes"
    return "for these very forecasts, as if issued once more"


def per_hundred(model: ModelSummary) -> str:
    """Say what an error is so many per hundred of."""
    return "per 100 of all cases"


def worst_said(worst: WorstInterval, group: str = "") -> str:
    """Say where the rows are worst calibrated: which forecasts, how many rows, by how many percentage points."""
    if worst.direction == "none":
        return "Worst range: none, every range of forecasts is right on these rows."
    place, of = (f"Worst range in {group}", "its") if group else ("Worst range", "")
    share = " ".join(filter(None, (percent(worst.share), "of", of, "rows" if worst.unit_weights else "weight")))
    points = measured(100.0 * abs(worst.bias), 1)
    return f"{place}: {range_said(worst)} ({share}) are {points} percentage points {worst.direction}."


def range_said(worst: WorstInterval) -> str:
    """Name the forecasts of an interval with three digits, or as many more as keep its ends apart."""
    if worst.low == worst.high:
        return f"forecasts of {worst.low:.3g}"
    low, high = worst.low, worst.high
    digits = next((each for each in range(3, 17) if f"{low:.{each}g}" != f"{high:.{each}g}"), 17)
    return f"forecasts from {low:.{digits}g} to {high:.{digits}g}"


def _worst(model: ModelSummary) -> str:
    """Say where the error is: on all rows or, where a group alone is refuted, in the worst of these."""
    if not _lies_in_groups(model):
        return worst_said(model.measures.worst_interval)
    assert model.groups is not None
    each = zip(model.groups.groups, model.groups.certificates, strict=True)
    label, certificate = max(each, key=lambda pair: pair[1].lower)
    return worst_said(certificate.worst_interval, printable(label))


def _lies_in_groups(model: ModelSummary) -> bool:
    """Return whether it is groups that are refuted, and not all rows."""
    whole, groups = model.certificate, model.groups
    return whole is not None and groups is not None and groups.verdict == "refuted" != whole.verdict


def _finding(model: ModelSummary) -> str:
    unit = per_hundred(model)
    if model.certificate is None:
        lower, upper = _hundred_limits(model)
        between = f"by {lower} to {upper}" if float(lower) else f"by at most {upper}"
        return f"In the worst range of forecasts, events and forecasts differ {between} {unit}"
    asked = f"{hundredfold(model.certificate.max_error)} {unit}"
    groups = model.groups
    if model.verdict == "certified":
        where = "" if groups is None else ", overall and in every group"
        return f"In any range of forecasts{where}, events and forecasts differ by at most {asked}"
    if model.certificate.verdict == "refuted":
        return f"In some range of forecasts, events and forecasts differ by more than {asked}"
    if groups is not None and groups.verdict == "refuted":
        its = asked.replace("all", "its")
        return f"In {_how_many(groups)}, some range of forecasts is off by more than {its}"
    if groups is not None and model.certificate:
        return f"Overall no range of forecasts is off by more than {asked}, but in {_how_many(groups)} one may be"
    return f"These rows cannot tell whether some range of forecasts is off by more than {asked}"


def _promise(model: ModelSummary) -> str:
    judged = model.judged
    sure = f"{level_said(judged.confidence_level)} confidence"
    sure += "" if judged.finite_sample else ", as far as a rule for many rows applies"
    whom = holds_for(judged.target)
    certificate = model.certificate
    # A verdict names the limit asked about: numbers that are chosen after a look at the verdict are less sure than it.
    # Where nothing was decided the upper limit is as sure (docs/theory.md).
    if certificate is None:
        return f"We can say so with {sure}, {whom}."
    if model.verdict == "undecided":
        if certificate:
            return f"{_groups_named(model)}What is said holds with {sure}, {whom}."
        _, upper = _hundred_limits(model)
        return f"{_groups_named(model)}The difference is at most {upper} {per_hundred(model)}, with {sure}, {whom}."
    said = f"{_groups_named(model)}We can say so with {sure}, {whom}."
    return f"{said} {_still_possible(certificate)}".rstrip() if model.verdict == "certified" else said


def _still_possible(certificate: Certificate) -> str:
    """Say what a certificate leaves possible, because an error of so many cases is not one of so many points."""
    for share, said in ((Decimal("0.1"), "a tenth"), (Decimal("0.5"), "half")):
        points = 100 * Decimal(repr(float(certificate.max_error))) / share
        if 0 < points < 100:
            return f"A range with {said} of all cases may still be off by {points.normalize():f} percentage points."
    return ""


def _groups_named(model: ModelSummary) -> str:
    """Name the groups that keep a verdict from being better, a few of them."""
    groups = model.groups
    if groups is None or model.verdict == "certified":
        return ""
    names = [printable(label) for label in _concerned(groups)]
    if not names:
        return ""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    kind = "Refuted in" if groups.verdict == "refuted" else "Not settled in"
    return f"{kind}: {', '.join(names[:_NAMED])}{more}. "


def _concerned(groups: GroupCertificates) -> list[Label]:
    """Return the groups that are refuted or, where none is, those that are not certified."""
    each = list(zip(groups.groups, groups.upper, groups.certificates, strict=True))
    refuted = [label for label, _, certificate in each if certificate.verdict == "refuted"]
    return refuted or [label for label, upper, _ in each if upper > groups.max_error]


def _how_many(groups: GroupCertificates) -> str:
    return f"{len(_concerned(groups))} of {counted(len(groups), 'group')}"


def _hundred_limits(model: ModelSummary) -> tuple[str, str]:
    """Write the limits per hundred, rounded outwards."""
    judged = model.judged
    digits = 1 if judged.upper >= 0.01 else 2
    return rounded_down(100.0 * judged.lower, digits), rounded_up(100.0 * judged.upper, digits)


def _next_step(model: ModelSummary, state: str) -> str:
    repair, certificate = model.repair, model.certificate
    if certificate is None:
        return (
            "For a verdict, choose max_error, the largest error you can live with, by what errors cost and not by "
            f"these numbers ({GUIDE})."
        )
    if state == "cautioned":
        return f"Choose a limit that means something, and run this again ({GUIDE})."
    if state == "certified":
        return "For this limit nothing needs repair. Judge them again on new rows, or when something changes."
    if _lies_in_groups(model):
        return "Recalibrate these groups on rows of their own, and judge them again on new rows."
    if repair is not None and repair.after is not None and repair.after.verdict == "certified":
        return (
            "Recalibrate. Learned on half of these rows and judged on the rest, recalibrated forecasts are certified "
            "for this limit."
        )
    if state == "undecided":
        if certificate.rows_needed is not None:
            needed = f"about {certificate.rows_needed:,} fresh ones would decide"
            return f"Judge more rows: {needed}, if the error is as it seems."
        if certificate:
            return "Judge more rows of these groups, which may settle it."
        return "Judge more rows, which may settle it; below is where the error is on these."
    if repair is None:
        return "Find where the error is below, and recalibrate on rows of their own."
    before, after = (measured(100.0 * each, 1) for each in (repair.cutoff_before, repair.cutoff_after))
    if repair.cutoff_after < repair.cutoff_before:
        return (
            f"Recalibrate, and judge on new rows: learned on half of these, it took the error on the rest from "
            f"{before} to {after} {per_hundred(model)}."
        )
    return "Look for what is wrong with the model or the data: recalibration did not lower the error on held-out rows."
