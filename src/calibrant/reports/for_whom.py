"""What a report says of the worst group: for whom forecasts are wrong, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.certificates.group_results import LOOKED_AT, WorstGroup
from calibrant.core.words import level_said, measured, percent, printable, rounded_down, rounded_up
from calibrant.reports.results import ModelSummary

HEADING = "For whom is it wrong?"
MOST_FEATURES = 20
"""Features of more than this are left out of the table, those with the smallest errors."""


@dataclass(frozen=True)
class GroupsSaid:
    """The section on the worst group, in words.

    Attributes
    ----------
    state, label : str
        What its colour says, and the same in a word or two.
    finding : str
        The answer, in one sentence without a full stop.
    lines : tuple of str
        What it rests on, with numbers.
    rows : tuple of dict
        The worst group of each feature, the largest errors first.
    next_step : str
        What to do.
    assumed : str
        What the limits rest on.
    """

    state: str
    label: str
    finding: str
    lines: tuple[str, ...]
    rows: tuple[dict[str, str], ...]
    next_step: str
    assumed: str


def worst_group_of(model: ModelSummary) -> GroupsSaid | None:
    """Say for whom forecasts are wrong; nothing where no features were given."""
    found = model.worst_group
    if found is None:
        return None
    order = sorted(range(len(found.features)), key=lambda place: -found.by_feature[place].error)[:MOST_FEATURES]
    return GroupsSaid(
        state="refuted" if is_off(model) else "neutral",
        label=_label(found),
        finding=_finding(found),
        lines=_lines(found, len(order)),
        rows=tuple(_row(found, place) for place in order),
        next_step=_next_step(found),
        assumed=f"This assumes that {'; '.join(found.assumptions)}.",
    )


def briefly(model: ModelSummary) -> str:
    """Say in a sentence for whom forecasts are wrong, which is not the whole of what all rows say; or nothing."""
    found = model.worst_group
    if found is None:
        return ""
    worst = found.worst
    if found.lower <= 0.0:
        return "No group is off for sure."
    if found.of_all_rows:
        return "No group stands out: the worst one is nearly all rows, and these are about as far off."
    return (
        f"With {level_said(found.confidence_level)} confidence some group is off; on these rows most of all "
        f"{worst.group}, where {worst.rows:,} forecasts are {measured(100.0 * abs(worst.bias), 1)} points "
        f"{worst.direction}."
    )


def is_off(model: ModelSummary) -> bool:
    """Return whether it is shown that some group is off, and further than all rows."""
    found = model.worst_group
    return found is not None and found.lower > 0.0 and not found.of_all_rows


def after_certificate(model: ModelSummary, limit: float, relative_to: str) -> str:
    """Say what to do for groups where all rows together are certified; nothing where no group stands out."""
    found = model.worst_group
    if found is None or not is_off(model):
        return ""
    if relative_to == "rows" and found.upper <= limit:
        return (
            f"For this limit nothing needs repair, whatever the group. If {found.worst.group} matters to you, give the "
            "model the feature, or recalibrate the group apart."
        )
    return (
        f"All rows together need no repair for this limit, but {found.worst.group} may: give the model the feature, or "
        "recalibrate the group apart, and judge that on new rows."
    )


def _finding(found: WorstGroup) -> str:
    worst = found.worst
    if worst.direction == "none":
        return f"On these rows no {LOOKED_AT} is off on any interval of forecasts"
    points = measured(100.0 * abs(worst.bias), 1)
    off = f"{points} points {worst.direction}"
    return f"On these rows forecasts are furthest off for {worst.group}, {worst.interval}: {off}"


def _lines(found: WorstGroup, shown: int) -> tuple[str, ...]:
    worst, level = found.worst, level_said(found.confidence_level)
    left_out = len(found.features) - shown
    found_said, overall = measured(100.0 * found.error, 2), measured(100.0 * found.overall, 2)
    upper = rounded_up(100.0 * found.upper, 2)
    if found.lower > 0.0:
        limits = (
            f"Among rows like these, no {LOOKED_AT} is off by more than {upper} per 100 rows of all, and some group by "
            f"at least {rounded_down(100.0 * found.lower, 2)}, each with {level} confidence. Both hold for every cut "
            "of every feature at once, also for the group named here; what was found by looking is too large on "
            "average."
        )
    else:
        limits = (
            f"Among rows like these, no {LOOKED_AT} is off by more than {upper} per 100 rows of all, with {level} "
            "confidence and for every cut of every feature at once. That any group is off is not shown: what was found "
            "by looking is too large on average."
        )
    lines = [
        f"These are {worst.rows:,} of {found.rows:,} rows, with a mean forecast of {percent(worst.mean_forecast)} and "
        f"an event rate of {percent(worst.mean_outcome)}: {found_said} per 100 rows of all. Without groups it is "
        f"{overall}.",
        limits,
    ]
    if left_out > 0:
        lines.append(f"{left_out:,} features with smaller errors are not in the table.")
    return tuple(lines)


def _row(found: WorstGroup, place: int) -> dict[str, str]:
    each = found.by_feature[place]
    return {
        "feature": printable(found.features[place]),
        "group": each.group,
        "forecasts": each.interval.removeprefix("forecast ").removeprefix("of "),
        "rows": f"{each.rows:,}",
        "error": measured(100.0 * each.error, 2),
        "off": "-" if each.direction == "none" else f"{measured(100.0 * abs(each.bias), 1)} points {each.direction}",
    }


def _label(found: WorstGroup) -> str:
    if found.lower <= 0.0:
        return "No group is off for sure"
    return "No group stands out" if found.of_all_rows else "Some group is off"


def _next_step(found: WorstGroup) -> str:
    if found.lower <= 0.0:
        return "Nothing needs to be done for a single group; more rows narrow the limit."
    if found.of_all_rows:
        return (
            "All forecasts are off, and no group much further: recalibrate them, then look again, at rows that the "
            "repair has not seen."
        )
    return (
        "Give the model the feature, or recalibrate the group apart, and judge that on rows that it has not seen. A "
        f"non-decreasing recalibration of one group saves at most {rounded_up(found.upper)} per case, over all cases."
    )
