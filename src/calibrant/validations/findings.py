"""What a validation study found, in words: whether forecasts are shown to be off, where, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.certificates.results import verdict_of
from calibrant.core.voices import Either, Option, Phrase
from calibrant.core.words import level_said, percent, rounded, rounded_up, shown
from calibrant.validations.verdicts import IN_THE_LARGE, SURE, WEAK

if TYPE_CHECKING:
    from calibrant.validations.results import Validation

TESTS = {
    WEAK: ("weak-calibration test", "intercept 0 and slope 1"),
    IN_THE_LARGE: ("test of calibration in the large", "as many events as forecast"),
    SURE: ("test of sure forecasts", "none that is 0 or 1 is wrong"),
}
"""What the tests that decide are called, and what they ask."""

_NO_DISTANCE = 0.0005  # which is written as 0.0 points

_STATES = {"certified": "Certified", "refuted": "Refuted", "undecided": "Undecided"}


@dataclass(frozen=True)
class Findings:
    """What a reader is told at first.

    Attributes
    ----------
    state : str
        "certified", "refuted" or "undecided" where a limit was asked about; else "cautioned" where forecasts are shown
        to be off, and "neutral".
    label : str
        The verdict in a few words.
    headline : str
        The verdict in a sentence, without its stop.
    rule : str
        By which test the verdict was reached.
    lines : tuple of str
        That, and what was found otherwise, a sentence or two each.
    next_step : str
        What to do.
    """

    state: str
    label: str
    headline: str
    rule: str
    lines: tuple[str, ...]
    next_step: str


def findings_of(study: Validation) -> Findings:
    """Word what a study found."""
    off, rule = _shown_off(study), _rule(study)
    parts = (_on_the_whole(study), _spread(study), _curve(study), _ranking(study), _decisions(study), _promise(study))
    lines = tuple(line for line in (rule, *parts) if line)
    next_step = _next_step(study, off)
    if study.certificate is not None:
        verdict = study.certificate.verdict
        limit = shown(study.certificate.max_error)
        asked = {
            "certified": f"the Cutoff calibration error is at most {limit}",
            "refuted": f"the Cutoff calibration error is above {limit}",
            "undecided": f"these rows cannot tell whether the Cutoff calibration error is at most {limit}",
        }[verdict]
        if verdict != "undecided":
            asked += f", with {level_said(study.confidence_level)} confidence"
        return Findings(verdict, _STATES[verdict], asked, rule, lines, next_step)
    headline = f"the forecasts are {_listed(off)}" if off else _nothing_shown(study)
    if study.decided_by is not None and (rejected(study) or not off):
        headline += f" ({TESTS[study.decided_by][0]}, {_pvalue(study)})"
    label = "Miscalibrated" if off else "Not shown to be miscalibrated"
    return Findings("cautioned" if off else "neutral", label, headline, rule, lines, next_step)


def rejected(study: Validation) -> bool:
    """Return whether the test that decides calls the forecasts miscalibrated."""
    return study.pvalue is not None and study.pvalue < _level_of_test(study)


def _level_of_test(study: Validation) -> float:
    return round(1.0 - study.confidence_level, 12)


def _pvalue(study: Validation) -> str:
    """Write the p-value with three decimals, or as many as it takes to see on which side of the level it is."""
    pvalue, level = study.pvalue, _level_of_test(study)
    if pvalue is None:
        return ""
    if pvalue < 0.001 <= level:
        return "p below 0.001"
    digits = next((k for k in range(3, 12) if (round(pvalue, k) < level) == (pvalue < level)), 12)
    return f"p = {rounded(pvalue, digits)}"


def test_said(study: Validation) -> str:
    """Name the test that decides, with its p-value; nothing where there is none."""
    if study.decided_by is None:
        return ""
    name, asked = TESTS[study.decided_by]
    return f"{name} ({asked}), {_pvalue(study)}"


def _rule(study: Validation) -> str:
    """Say which test decides, and what words on level and spread rest on."""
    if study.decided_by is None:
        return ""
    side = "below" if rejected(study) else "not below"
    by = "" if study.certificate is None else "that of the certificate; beside it "
    also = ""
    if not rejected(study) and _guaranteed_off(study):
        also = ", but the guaranteed lower limit of the Cutoff calibration error is above 0"
    return (
        f"Verdict: {by or 'by '}the {test_said(study)}, {side} {shown(_level_of_test(study))}{also}. "
        "Words on level rest on calibration in the large, on spread on the slope; no other limit decides."
        f"{_pair_said(study)}"
    )


def _pair_said(study: Validation) -> str:
    """Say why the pair of limits in the table does not show what the certificate says, where it does not."""
    judged = study.certificate
    if judged is None or judged.verdict == "undecided" or study.cutoff_lower is None or study.cutoff_upper is None:
        return ""
    if verdict_of(study.cutoff_lower, study.cutoff_upper, judged.max_error) == judged.verdict:
        return ""
    level = level_said(study.confidence_level)
    return (
        f" The certificate takes one limit of the Cutoff calibration error, with {level} confidence; the table has "
        f"both, wider, because they hold together with {level}."
    )


def _guaranteed_off(study: Validation) -> bool:
    return (study.cutoff_lower or 0.0) > 0.0


def _nothing_shown(study: Validation) -> str:
    if study.decided_by is None:
        return "these rows are too few to show anything"
    return "these rows do not show the forecasts to be off"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _shown_off(study: Validation) -> list[str]:
    """Return in which ways forecasts are off where the test says that they are; nothing where it does not."""
    if not rejected(study):
        return ["off somewhere, by guaranteed limits of the Cutoff calibration error"] if _guaranteed_off(study) else []
    level, spread = _level(study), _side(study, "slope")
    found = ["certain, and some of them wrong"] if study.decided_by == SURE else []
    if level:
        found.append("too low on the whole" if level > 0 else "too high on the whole")
    if _is_reversed(study):
        found.insert(0, "in reversed order")
    elif spread:
        found.append("too timid" if spread > 0 else "too extreme")
    return found or ["off, though limits of level and of spread, each by itself, do not show how"]


def _level(study: Validation) -> int:
    """Return 1 where forecasts are shown to be too low on the whole, -1 where too high."""
    mean = study.calibration_in_the_large
    if study.decided_by == IN_THE_LARGE and mean is not None and rejected(study):
        return int(mean > 0.0) - int(mean < 0.0)
    return _side(study, "calibration_in_the_large", 0.0)


def _side(study: Validation, name: str, ideal: float = 1.0) -> int:
    """Return 1 where limits lie above the ideal, -1 where below, and 0 where they hold it or there are none."""
    lower, upper = getattr(study, f"{name}_lower"), getattr(study, f"{name}_upper")
    if lower is None or upper is None:
        return 0
    return int(lower > ideal) - int(upper < ideal)


def _is_reversed(study: Validation) -> bool:
    """Return whether higher forecasts are shown to go with fewer events."""
    return study.slope_upper is not None and study.slope_upper < 0.0


def _limits(study: Validation, name: str, digits: int, times: float = 1.0) -> str:
    lower, upper = getattr(study, f"{name}_lower"), getattr(study, f"{name}_upper")
    if lower is None or upper is None:
        return ""
    said = level_said(study.confidence_level)
    return f" ({said} limits {rounded(times * lower, digits)} to {rounded(times * upper, digits)})"


def _on_the_whole(study: Validation) -> str:
    mean, ratio = study.calibration_in_the_large, study.observed_expected_ratio
    if mean is None:
        return ""
    side = _level(study)
    meant = {1: "too low on the whole", -1: "too high on the whole", 0: "not shown to be off on the whole"}[side]
    meant += _alone(study, side) if _side(study, "calibration_in_the_large", 0.0) == side else ", by the test"
    if study.calibration_in_the_large_lower is None:
        meant = "nothing more can be said"
    events = "" if ratio is None else f"{rounded(100.0 * ratio, 0)} events happened for every 100 forecast; "
    return (
        f"On the whole: {events}event rate minus mean forecast is {rounded(100.0 * mean, 1 + study.finer)} points"
        f"{_limits(study, 'calibration_in_the_large', 1 + study.finer, 100.0)}: {meant}."
    )


def _alone(study: Validation, side: int) -> str:
    """Say where limits show something that the test does not."""
    return ", by these limits alone, which the test does not confirm" if side and not rejected(study) else ""


def _spread(study: Validation) -> str:
    if study.slope is None:
        return ""
    side = _side(study, "slope")
    meant = {
        1: "forecasts are too timid, high ones too low and low ones too high",
        -1: "forecasts are too extreme, high ones too high and low ones too low",
        0: "not shown to be too extreme or too timid",
    }[side]
    if _is_reversed(study):
        meant = "forecasts are in reversed order, higher ones went with fewer events"
    elif study.slope < 0.0:
        meant += "; nor to be in the right order, for here higher ones went with fewer events"
    meant += _alone(study, side)
    return f"Spread: the calibration slope is {rounded(study.slope, 2)}{_limits(study, 'slope', 2)}: {meant}."


def _curve(study: Validation) -> str:
    if study.ici is None or study.emax is None:
        return ""
    digits = 1 + study.finer
    said = (
        f"Where: the {study.smoother} curve is {rounded(100.0 * study.ici, digits)} points from the forecast on average"
        f"{_limits(study, 'ici', digits, 100.0)}, at most {rounded(100.0 * study.emax, digits)}"
    )
    if study.curve is not None and study.emax >= _NO_DISTANCE:
        gap = study.curve.rate - study.curve.forecast
        place = int(np.argmax(np.abs(gap)))
        side = "above" if gap[place] > 0.0 else "below"
        said += f", where forecasts of about {100.0 * float(study.curve.forecast[place]):.0f}% have a rate {side} them"
    return f"{said}."


def _ranking(study: Validation) -> str:
    if study.auroc is None:
        return ""
    return (
        f"Ranking (AUROC): an event has a higher forecast than a row without in {percent(study.auroc)} of pairs"
        f"{_limits(study, 'auroc', 1, 100.0)}; that says nothing about calibration."
    )


def _decisions(study: Validation) -> str:
    found = study.net_benefit
    if found is None:
        return ""
    at, lower = np.atleast_1d(found.threshold), found.gain_band_lower
    if lower is None:
        lower = found.gain_lower
    if lower is None:
        return ""
    better = np.atleast_1d(lower) > 0.0
    together = " together" if at.size > 1 else ""
    if not better.any():
        return (
            f"Decisions: at no threshold from {at.min():g} to {at.max():g} is acting on the forecasts shown to be "
            "better than treating all or none."
        )
    return (
        f"Decisions: acting on the forecasts is shown to be better than treating all or none at thresholds "
        f"{_ranges(at, better)} (all{together}, {level_said(study.confidence_level)})."
    )


def _ranges(at: np.ndarray, chosen: np.ndarray) -> str:
    """Say in which stretches of thresholds something holds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]])))
    said = []
    for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        low, high = at[begin], at[end - 1]
        said.append(f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}")
    return _listed(said[:3] if len(said) <= 3 else [*said[:2], f"{len(said) - 2} more ranges"])


def _promise(study: Validation) -> str:
    if study.cutoff_upper is None:
        return ""
    level, counted = level_said(study.confidence_level), "rows" if study.clusters is None else "clusters"
    return (
        f"Guarantee: with {level} confidence, at any number of {counted}, events and forecasts differ in no range of "
        f"forecasts by more than {rounded_up(100.0 * study.cutoff_upper, 1 + study.finer)} per 100 rows."
    )


def _next_step(study: Validation, off: list[str]) -> str:
    if _is_reversed(study):
        return (
            "check whether these are probabilities of the other class, or outcomes are coded the other way round; "
            "recalibrate nothing before that."
        )
    certificate = study.certificate
    if certificate is not None and certificate.verdict == "undecided":
        needed = certificate.rows_needed
        about = "" if needed is None else f": about {needed:,} would decide"
        more = "more rows" if study.clusters is None else "rows of more clusters"
        return f"collect {more}{about}, and do not change the limit after looking."
    if certificate is not None and certificate.verdict == "certified" and certificate.cautions:
        return "name the limit that the caution speaks of, before you look at fresh rows."
    if certificate is not None and certificate.verdict == "certified":
        return Phrase(
            "report the table, and watch whether it stays so ({how}).", how=Either("Monitor", "calibrant watch")
        )
    if off:
        return Phrase(
            "recalibrate on some rows ({how} finds how), then validate on rows that were not used for it.",
            how=Either("compare_recalibrators", "calibrant recalibrate choose"),
        )
    if study.censored:  # of which nothing is guaranteed, so that there is no limit to ask about
        return "report the limits, not the numbers alone; the decision curve says for which thresholds forecasts help."
    return Phrase(
        "report the limits, not the numbers alone; whether the forecasts are good enough takes a limit ({limit}).",
        limit=Either("max_error", Option("max_error")),
    )
