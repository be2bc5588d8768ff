"""The items of TRIPOD+AI that a study of an existing model reports, with the answers that the software knows.

Collins et al. (2024), TRIPOD+AI statement: updated guidance for reporting clinical prediction models that use
regression or machine learning methods, BMJ 385:e078378. The items are paraphrased; the statement has them in full.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from calibrant.core.words import counted, level_said, percent, rounded
from calibrant.reports.validation_results import StudyFile, TripodItem
from calibrant.rows.incidence import KAPLAN_MEIER, HorizonRisk
from calibrant.validations.results import Validation


class _Made(NamedTuple):
    """What is known of a study: the numbers, where they came from, and what made them."""

    found: Validation
    source: str | None
    left_out: str | None
    versions: tuple[str, ...]
    risk: HorizonRisk | None
    file: StudyFile | None


_Answer = Callable[[_Made], str | None]


def _data(made: _Made) -> str | None:
    return (
        None if made.source is None else f"Evaluated on {made.source}. Add where it comes from and whom it stands for."
    )


def _outcome(made: _Made) -> str | None:
    risk = made.risk
    if risk is None:
        return None
    said = f"The event by time {risk.at:g}."
    if risk.estimator != KAPLAN_MEIER:
        codes = "" if made.file is None else ", ".join(f"{code:g}" for code in made.file.competing)
        coded = (
            f" (code{'s' * (',' in codes)} {codes} of {made.file.y_true!r})" if made.file is not None and codes else ""
        )
        said += (
            f" Competing events{coded}, after which it can no longer happen, ended {counted(risk.competing, 'row')}."
        )
        return f"{said} Add which events compete, and how and when each was assessed."
    return f"{said} Add how and when it was assessed, and whether other events, such as death, may preclude it."


def _size(made: _Made) -> str:
    found = made.found
    said = f"{counted(found.rows, 'row')} with {_events(found)} events, {_others(found)} without."
    if found.slope_lower is not None and found.slope_upper is not None:
        half = (found.slope_upper - found.slope_lower) / 2
        said += f" Reached: a calibration slope known to {rounded(half, 2)} either way"
        if found.observed_expected_ratio_lower is not None and found.observed_expected_ratio_upper is not None:
            half = (found.observed_expected_ratio_upper - found.observed_expected_ratio_lower) / 2
            said += f", O/E to {rounded(half, 2)}"
        said += "."
    return f"{said} Add how the size was planned."


def _missing(made: _Made) -> str:
    told = "No row that was evaluated lacked a forecast or an outcome" if made.left_out is None else made.left_out
    return f"{told}. Add how missing predictors were handled before the forecasts were made."


def _clusters(made: _Made) -> str | None:
    if made.found.clusters is None:
        return None
    return f"Limits count {counted(made.found.clusters, 'cluster')}, whose rows may depend on each other in any way."


def _measures(made: _Made) -> str:
    found = made.found
    level = level_said(found.confidence_level)
    ways = sorted({way for _, way in found.intervals})
    return (
        f"Calibration: O/E, intercept and slope, a {found.smoother} curve with its band, ICI, E50, E90, Emax, ECI and "
        "the Cutoff calibration error; discrimination: AUROC (c statistic); overall: Brier and scaled Brier score; "
        f"utility: net benefit with a band. {level} limits ({', '.join(ways)}; {found.n_resamples:,} resamples where "
        "drawn)."
        f"{_weights(made.risk)}"
    )


def _weights(risk: HorizonRisk | None) -> str:
    """Say how outcomes that may be censored were counted."""
    if risk is None:
        return ""
    said = f" Observed risk: {risk.estimator}{'' if risk.estimator == KAPLAN_MEIER else ', with competing events'}."
    if not risk.censored:
        return f"{said} No row was censored before the horizon."
    return (
        f"{said} Rows of known outcome are weighted by one over the probability of not being censored (Kaplan-Meier; "
        f"largest weight {rounded(risk.largest_weight, 2)}), and limits count that weights are estimates; this takes "
        "censoring that depends neither on the event nor on the forecasts."
    )


def _output(made: _Made) -> str:
    found = made.found.net_benefit
    said = "Probabilities, as they are: nothing was classified."
    if found is None:
        return said
    return f"{said} Net benefit shows what acting from a threshold on would bring."


def _code(made: _Made) -> str:
    return f"Made with {', '.join(made.versions[:2])}; see Do it again for the call. Add where the model's code is."


def _flow(made: _Made) -> str:
    found = made.found
    share = "" if found.censored else f" ({percent(found.mean_outcome)})"
    by = "" if found.horizon is None else f" by time {found.horizon:g}"
    lost = f", {found.censored:,} lost from sight before" if found.censored else ""
    said = (
        f"{counted(found.rows, 'row')} analysed: {_events(found)} with the event{by}{share}, {_others(found)} without"
    )
    return f"{said}{lost}. Add how they were selected."


def _analysed(made: _Made) -> str:
    return f"{counted(made.found.rows, 'row')} and {_events(made.found)} events, in every analysis."


def _performance(made: _Made) -> str:
    found = made.found
    named = (("O/E", "observed_expected_ratio"), ("slope", "slope"), ("ICI", "ici"), ("AUROC", "auroc"))
    said = []
    for title, name in (*named, ("scaled Brier score", "brier_scaled")):
        number, lower, upper = (getattr(found, f"{name}{end}") for end in ("", "_lower", "_upper"))
        if number is not None:
            limits = "" if lower is None else f" ({rounded(lower, 2)} to {rounded(upper, 2)})"
            said.append(f"{title} {rounded(number, 2)}{limits}")
    level = level_said(found.confidence_level)
    return f"{'; '.join(said)}. The table has all of them with {level} limits. Add key subgroups."


def _updating(made: _Made) -> str:
    del made
    return "Not updated here: the forecasts were evaluated as they are. Add any recalibration that you make of this."


def _events(found: Validation) -> str:
    return f"{found.events:,.0f}"


def _others(found: Validation) -> str:
    return f"{found.rows - found.censored - found.events:,.0f}"


def _nothing(made: _Made) -> None:
    del made


_ITEMS: tuple[tuple[str, str, str, _Answer], ...] = (
    ("1", "Title", "Say that a model is evaluated, for whom, and for which outcome", _nothing),
    ("2", "Abstract", "Follow TRIPOD+AI for abstracts", _nothing),
    ("3a", "Background", "Context of care, rationale, existing models", _nothing),
    ("3b", "Background", "Target population, purpose and users of the model", _nothing),
    ("3c", "Background", "Known health inequalities between groups", _nothing),
    ("4", "Objectives", "Development, evaluation or both", lambda _: "Evaluation of forecasts of an existing model."),
    ("5a", "Data", "Sources of data, and whom they represent", _data),
    ("5b", "Data", "Dates of accrual and follow-up", _nothing),
    ("6a", "Participants", "Setting: number and location of centres", _nothing),
    ("6b", "Participants", "Eligibility criteria", _nothing),
    ("6c", "Participants", "Treatments received, and how they were handled", _nothing),
    ("7", "Data preparation", "Pre-processing and quality checks, in all groups alike", _nothing),
    ("8a", "Outcome", "Definition, time horizon, how and when assessed", _outcome),
    ("8b", "Outcome", "Who assessed it, where that takes judgement", _nothing),
    ("8c", "Outcome", "Blinding of its assessment", _nothing),
    ("9b", "Predictors", "Definition of each, how and when measured", _nothing),
    ("9c", "Predictors", "Who assessed them, where that takes judgement", _nothing),
    ("10", "Sample size", "How the size was arrived at, and whether it was enough", _size),
    ("11", "Missing data", "How missing data were handled", _missing),
    ("12d", "Analysis", "Heterogeneity between clusters, and how it was handled", _clusters),
    ("12e", "Analysis", "All measures and plots of performance", _measures),
    ("12f", "Analysis", "Updating of the model that came of the evaluation", _updating),
    ("12g", "Analysis", "How forecasts were calculated: formula, code, object", _nothing),
    ("13", "Class imbalance", "Methods used, and recalibration after them", _nothing),
    ("14", "Fairness", "Approaches to fairness, and why", _nothing),
    ("15", "Model output", "Probabilities or classes, and how thresholds were found", _output),
    ("16", "Training versus evaluation", "Differences between development and evaluation data", _nothing),
    ("17", "Ethics", "Approval and consent", _nothing),
    ("18a", "Open science", "Funding", _nothing),
    ("18b", "Open science", "Conflicts of interest", _nothing),
    ("18c", "Open science", "Protocol", _nothing),
    ("18d", "Open science", "Registration", _nothing),
    ("18e", "Open science", "Availability of data", _nothing),
    ("18f", "Open science", "Availability of code", _code),
    ("19", "Patients and public", "Their involvement", _nothing),
    ("20a", "Participants", "Flow, with and without the outcome", _flow),
    ("20b", "Participants", "Characteristics, overall and by setting", _nothing),
    ("20c", "Participants", "Comparison with the development data", _nothing),
    ("21", "Model development", "Participants and events in each analysis", _analysed),
    ("23a", "Performance", "Estimates with confidence intervals, also of key subgroups", _performance),
    ("23b", "Performance", "Heterogeneity of performance between clusters", _nothing),
    ("24", "Model updating", "Results of updating", _updating),
    ("25", "Interpretation", "Main results, also on fairness, beside earlier studies", _nothing),
    ("26", "Limitations", "Of the study, and what they do to the results", _nothing),
    ("27c", "Usability", "Next steps for research, and where the model applies", _nothing),
)
"""Those that concern the evaluation of a model: number, topic, what to report, and what is known of it."""


def tripod_items(
    found: Validation,
    *,
    source: str | None,
    left_out: str | None,
    versions: tuple[str, ...],
    risk: HorizonRisk | None = None,
    file: StudyFile | None = None,
) -> tuple[TripodItem, ...]:
    """Fill in what the software knows."""
    made = _Made(found, source, left_out, versions, risk, file)
    return tuple(TripodItem(number, topic, asks, answer(made)) for number, topic, asks, answer in _ITEMS)
