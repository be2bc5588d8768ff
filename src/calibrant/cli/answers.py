"""What commands say at first: the verdict, where, what next, and what it assumes, in a few short lines.

``--verbose`` prints what the results say of themselves instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from calibrant.core.words import counted, in_columns, level_said, measured, printable, rounded, rounded_down, rounded_up

if TYPE_CHECKING:
    from calibrant.certificates.group_results import WorstGroup
    from calibrant.certificates.independence import IndependenceCheck
    from calibrant.certificates.planning import RowsNeeded
    from calibrant.certificates.question_results import QuestionCertificates
    from calibrant.certificates.rejections import CalibrationTest, GroupCalibrationTests
    from calibrant.certificates.results import Certificate, GroupCertificates
    from calibrant.cli.inputs import Source
    from calibrant.comparisons.results import ModelComparison
    from calibrant.decisions.benefit_results import NetBenefit
    from calibrant.decisions.everything import Decisions, GroupDecisions
    from calibrant.measures.groups import GroupMeasures
    from calibrant.measures.results import Measures
    from calibrant.repairs.results import RecalibrationGuarantee, RecalibratorComparison

_JUDGED = ("brier", "cutoff")
_METHODS = {"platt on logit": "platt-logit", "isotonic inside": "isotonic --ends inside"}
_WRAPPERS = {
    "nondecreasing": "non-decreasing recalibration",
    "monotone": "monotone recalibration",
    "any": "use of them",
}

_NO_SAVING = 5e-6
"""A saving per row that is written as 0."""

USUAL_LEVEL = 0.05
"""At which rows are said to be alike."""

LONGEST_NOTE = 40
"""Words of a note that is shown at first; longer ones are counted."""

MOST_CAUTIONS = 2
"""Cautions on groups, and notes, that are shown at first."""

_NEXT = {
    "certified": "calibrant decide says what acting on the forecasts loses, calibrant report writes a page to forward",
    "refuted": "calibrant recalibrate choose finds a repair; judge it on rows that it has not seen",
    "undecided": "judge more fresh rows; calibrant plan says how many a limit takes",
    "note": "see to the note first; what it says may be all that is wrong",
    "caution": "name the limit that the caution speaks of, before you look at fresh rows",
}

_OFF_ANYWAY = "A lower limit is above 0, so that something is off"
"""What comes between the advice on a verdict that is undecided and that on a repair, which nothing else justifies."""

_NEXT_OF_SAVINGS = {
    "certified": "act on the forecasts as they are; calibrant decide --threshold says what that loses, calibrant "
    "report writes a page to forward",
    "refuted": "calibrant recalibrate choose finds a repair that re-draws the line; judge it on rows that it has not "
    "seen",
    "undecided": "judge more fresh rows; calibrant plan --measure risk_gap says how many a limit takes",
}
"""Advice where it is a saving that was judged."""

_NEXT_WITHOUT_PLAN = "judge more fresh rows; how many it takes for the {error}, calibrant plan cannot say"
"""Advice where nothing was decided, and `calibrant plan` knows nothing."""

_NEXT_OF_USELESS = (
    "name --measure cutoff before you look at fresh rows: limits of the Cutoff error narrow as rows get more, and no "
    "number of rows shows the ECE of forecasts that hardly repeat"
)
"""Advice where nothing was decided, and no number of rows would."""

_NEXT_OF_CLUSTERS = {
    "undecided": "judge rows of more clusters: many more rows of the same ones help little",
}
"""Advice where rows are in clusters."""

_NEXT_OF_GROUPS = {
    "group": "give the model the feature, or recalibrate the group apart, and judge that on rows that it has not seen",
    "all": "all forecasts are off, and no group much further: recalibrate them (calibrant recalibrate choose), then "
    "look again, at rows that the repair has not seen",
    "none": "nothing shows that any group is off; more fresh rows narrow the limit",
}
"""Advice where groups were looked for, by what is off for sure: some group, all rows about as much, or none."""

_NEXT_OF_CLASSES = {
    "certified": "calibrant certify --questions asks something else of the same classes; say beforehand what",
    "refuted": "repair the forecasts of all classes together (in Python, calibrant.compare_recalibrators finds how), "
    "and judge the repair on rows that it has not seen",
    "undecided": "judge more fresh rows; twice as many narrow limits by about a third",
}
"""Advice where forecasts are of several classes."""


def verdict_said(
    found: Certificate | GroupCertificates | QuestionCertificates,
    besides: Sequence[str] = (),
    *,
    of_classes: bool = False,
) -> list[str]:
    """Say what a certificate says, or those of groups or questions together, and what is to be said besides."""
    from calibrant.certificates.question_results import QuestionCertificates
    from calibrant.certificates.results import Certificate
    from calibrant.cli.class_answers import question_verdicts_said

    if isinstance(found, QuestionCertificates):
        return question_verdicts_said(found, besides) if of_classes else _questions_said(found, besides)
    if isinstance(found, Certificate):
        return _certificate_said(found, besides, of_classes=of_classes)
    return _group_certificates_said(found, besides, of_classes=of_classes)


def _certificate_said(certificate: Certificate, besides: Sequence[str], *, of_classes: bool) -> list[str]:
    return [
        certificate.finding(),
        certificate.numbers(),
        certificate.where(),
        *cautioned(certificate.cautions),
        *useless_said([certificate]),
        *_noted(certificate.notes),
        *besides,
        after_verdict(certificate.verdict, [certificate], of_classes=of_classes),
        *assumed(certificate.assumptions),
        *_more_notes([note for note in certificate.notes if not _is_useless(note)]),
    ]


def _group_certificates_said(found: GroupCertificates, besides: Sequence[str], *, of_classes: bool) -> list[str]:
    rows = [
        (
            str(group),
            f"{each.rows:,}",
            "-" if math.isinf(each.estimate) else measured(each.estimate, 4),
            rounded_down(each.lower),
            "-" if math.isinf(each.upper) else rounded_up(each.upper),
            each.verdict,
        )
        for group, each in found.pairs()
    ]
    worst = found.groups[max(range(len(found)), key=lambda place: found.upper[place])]
    where = found[worst].where(whole="of its rows")
    notes = found.remarks()[len(found.cautions) :]
    return [
        found.findings()[0],
        in_columns(("group", "rows", "estimate", "lower", "upper", "verdict"), rows),
        *found.one_by_one(),
        f"In group {printable(worst)}: {where[0].lower()}{where[1:]}",
        *_group_cautions(found),
        *useless_said(found.certificates),
        *_noted(notes, prefix="")[:MOST_CAUTIONS],
        *besides,
        after_verdict(found.verdict, found.certificates, of_classes=of_classes),
        *assumed(dict.fromkeys(words for each in found.certificates for words in each.assumptions)),
        *_more_notes(notes, shown=MOST_CAUTIONS),
    ]


def _questions_said(found: QuestionCertificates, besides: Sequence[str]) -> list[str]:
    """Say what the certificates of several questions say, all together and one by one."""
    notes = found.remarks()[len(found.cautions) :]
    finding, numbers, promise, *_ = found.findings()
    lines, places = found.lines(), found.shown_places()
    left = len(lines) - len(places)
    return [
        finding,
        numbers,
        *(lines[place] for place in places),
        *([f"  and {left:,} more with smaller errors: --json lists all"] if left else []),
        *found.one_by_one(),
        promise,
        *cautioned(found.cautions)[:MOST_CAUTIONS],
        *useless_said(found.certificates),
        *_noted(notes, prefix="")[:MOST_CAUTIONS],
        *besides,
        after_verdict(found.verdict, found.certificates),
        *assumed(dict.fromkeys(words for each in found.certificates for words in each.assumptions)),
        *_more_notes(notes, shown=MOST_CAUTIONS),
    ]


def worst_group_said(found: WorstGroup) -> list[str]:
    """Say for whom forecasts are wrong, what can be said of every group, and what to do about it."""
    return [
        *([] if found.verdict is None else [found.finding()]),
        found.where(),
        found.numbers(),
        *found.table(),
        *_noted(found.notes),
        next_step(_after_groups(found)),
        *assumed(found.assumptions),
        *_more_notes(found.notes),
    ]


def _after_groups(found: WorstGroup) -> str:
    if found.lower <= 0.0:
        return _NEXT_OF_GROUPS["none"]
    return _NEXT_OF_GROUPS["all" if found.of_all_rows else "group"]


IF_INDEPENDENT = "If rows were independent:"
"""What comes before a verdict on rows that the check found to depend on each other."""

DISTRUSTED = "The first is not to be trusted."
COUNTED = "The first is not to be trusted: the verdict counts clusters."
"""What follows limits of rows and of clusters, where the verdict is the one with clusters."""


def doubts_of(checks: Iterable[IndependenceCheck | None], source: Source) -> list[IndependenceCheck]:
    """Return the checks that found rows to depend on each other which a verdict takes as independent."""
    if source.cluster is not None:
        return []
    return [each for each in checks if each is not None and each.rejected(USUAL_LEVEL)]


def are_answered(doubts: Iterable[IndependenceCheck], max_error: float, source: Source, relative_to: str) -> bool:
    """Whether limits with clusters in place of rows certify all the same.

    They are limits of the Cutoff error of all rows, and say nothing of groups or of shares of events.
    """
    whole = source.by is None and relative_to == "rows"
    return all(whole and each.upper_clusters <= max_error for each in doubts)


def suspects_said(check: IndependenceCheck | None, column: str | None, remedy: str | None = None) -> list[str]:
    """Say whether rows of one label of a column are alike, and what hangs on it; nothing where nobody asked."""
    if check is None:
        return []
    caution = "Caution: " if check.rejected(USUAL_LEVEL) else ""
    remedy = remedy or check.remedy(USUAL_LEVEL, column=printable(column))
    return [f"{caution}{check.finding(USUAL_LEVEL)}", f"{check.limits()} {remedy}"]


def suspects_in_full(check: IndependenceCheck | None, column: str | None, remedy: str | None = None) -> list[str]:
    """Say the same with all that it rests on."""
    return [] if check is None else [check.said(USUAL_LEVEL, column=printable(column), remedy=remedy)]


def measures_said(whole: Measures, groups: GroupMeasures | None, by: str | None) -> list[str]:
    """Say what was measured on these rows."""
    return [
        whole.headline(),
        *whole.table_lines(),
        *([] if groups is None else [f"Per group of {by!r}:", str(groups)]),
        whole.worst_interval.where(),
        *([f"Caution: {relation}" for relation in whole.relations if not relation.holds]),
        *_noted(whole.notes),
        next_step(f"these numbers are about these rows; {_to_come(whole.notes)}"),
        *_more_notes(whole.notes),
    ]


def _to_come(notes: Sequence[str]) -> str:
    """Say what speaks of cases to come: certificates, which refuse weights that were estimated."""
    if any(getattr(note, "code", "") == "censored_rows" for note in notes):
        return "calibrant report adds limits, which are approximate where outcomes are censored"
    return "calibrant certify --max-error judges cases to come"


def test_said(found: CalibrationTest, level: float) -> list[str]:
    """Say whether perfect calibration is rejected."""
    rejected = found.rejected(level)
    finding = found.finding(level)
    return [
        f"{'Rejected' if rejected else 'Not rejected'}: {finding[0].lower()}{finding[1:]}",
        test_means(rejected),
        next_step("calibrant certify --max-error says whether the error is small, whatever the p-value"),
        *assumed(found.assumptions),
        *_noted(found.notes),
        *_more_notes(found.notes),
    ]


def group_tests_said(found: GroupCalibrationTests, level: float, by: str | None) -> list[str]:
    """Say in which groups perfect calibration is rejected."""
    return [
        found.finding(level, by=by),
        found.table(level),
        test_means(bool(found.rejected(level))),
        next_step("calibrant certify --max-error says whether the errors are small, whatever the p-values"),
        *assumed(dict.fromkeys(words for each in found.tests for words in each.assumptions)),
        *_more_notes(found.remarks(), shown=0),
    ]


def test_means(rejected: bool) -> str:
    """Say what a rejection means, and what none means."""
    if rejected:
        return (
            "The forecasts are off; by how much it does not say, and with many rows harmless errors are rejected too."
        )
    return "That is no certificate of calibration: too few rows hide any error."


def decisions_said(found: Decisions, groups: GroupDecisions | None, by: str | None) -> list[str]:
    """Say what acting on forecasts loses and gains, what could be saved, and what is guaranteed."""
    guarantee = found.guarantee
    if len(found.decisions) == 1:
        (only,) = found.decisions
        guarantee = only.guarantee
        lines = [str(only.risk), *_gained(only.net_benefit)]
        if only.gap is not None and groups is None:
            best = _WRAPPERS[only.gap.wrapper]
            lines.append(f"On these rows the best {best} would have saved {only.gap.gap:.5f} per row.")
    else:
        lines = ["Acting on forecasts of at least the threshold, on these rows, per row:", found.table()]
    if found.refusal is not None:
        lines.append(f"What could be saved is left out: {found.refusal}.")
    without_costs = replace(guarantee, cost_false_positive=None, cost_false_negative=None)  # said above
    lines.append(without_costs.finding())
    if groups is not None:
        lines += [groups.headline(by=by), groups.table()]
    lines += [*_noted(guarantee.notes), next_step(_after_decisions(found, groups))]
    return [*lines, *assumed(guarantee.assumptions), *_more_notes(guarantee.notes)]


def _after_decisions(found: Decisions, groups: GroupDecisions | None) -> str:
    """Return what to do next: a repair only where it would have saved something, as far as that is known."""
    if any(_is_hint(note) for note in found.guarantee.notes):
        return _NEXT["note"]
    everyone = [found, *(() if groups is None else groups.decisions)]
    gaps = [each.gap for one in everyone for each in one.decisions]
    if all(gap is not None and gap.gap < _NO_SAVING for gap in gaps):
        return "no repair would have saved anything on these rows; calibrant report shows all thresholds"
    return "calibrant recalibrate choose finds a repair, calibrant report shows all thresholds"


def _gained(found: NetBenefit | None) -> list[str]:
    """Say what acting gains; why its limits are approximate takes more room than a brief answer has."""
    if found is None:
        return []
    return [f"{found.finding()}{' They are approximate; --verbose says why.' if found.notes else ''}"]


def comparison_said(found: ModelComparison) -> list[str]:
    """Say what tells models apart, and which of them is certified."""
    lines = [
        found.headline(),
        found.table(),
        *found.clusters_said(),
        found.difference_headline(),
        found.difference_table(),
        *found.places()[:1],
    ]
    if found.max_error is not None:
        bounded, count = found.error_bounded(found.max_error), len(found.models)
        if found.chosen is None:
            lines.append(f"None of the {count} models is certified to have {bounded}.")
        else:
            others = [printable(name) for name in found.certified if name != found.chosen]
            too = f" ({', '.join(others)} too)" if others else ""
            lines.append(
                f"Certified: {printable(found.chosen)}{too}, {bounded} with "
                f"{level_said(found.confidence_level)} confidence, having chosen among {count} by the Brier score."
            )
    lines += found.ahead_said()
    rests_on = found.assumed()
    advice = next_step(_after_comparison(found))
    certificates = [each.certificate for each in found.models if each.certificate is not None]
    if certificates:
        verdicts = [each.verdict for each in certificates]
        verdict = next(each for each in ("certified", "undecided", "refuted") if each in verdicts)
        advice = after_verdict(verdict, certificates)
    notes = found.remarks()
    return [
        *lines,
        *cautioned(found.cautions),
        *_noted(notes, prefix=""),
        advice,
        *assumed(rests_on),
        *_more_notes(notes),
    ]


def _after_comparison(found: ModelComparison) -> str:
    """Return what to do next where no model was judged by itself; scores are compared, and never certified."""
    if found.models[0].interval is not None:
        return "calibrant compare --max-error says which of them may be used"
    if found.reference is None or found.margin is None:
        return "calibrant compare --reference --margin says which of them do as well as the one in use"
    return "a model with good scores may still be off; calibrant certify says whether its forecasts can be trusted"


def plan_said(found: RowsNeeded) -> list[str]:
    """Say how many rows a certificate takes."""
    rows = f"{found.rows:,} rows"
    if found.clusters is not None:
        counting = ", each counting once," if found.cluster_target == "clusters" else ""
        rows = f"{found.clusters:,} clusters of {found.cluster_size:.4g} rows ({rows}){counting}"
    alike = ""
    if found.intra_cluster_correlation is not None:
        alike = f" and outcomes of one cluster with a correlation of {found.intra_cluster_correlation:.2g}"
    return [
        f"About {rows} certify {found.claim()} with "
        f"{level_said(found.confidence_level)} confidence in {level_said(found.power)} of cases.",
        f"That is if the forecaster is calibrated with a Brier score of {found.brier:.4g}{alike} "
        f"({found.method} method).",
        *cautioned(found.cautions),
        next_step(
            "plan for the limit that the caution speaks of"
            if any(getattr(caution, "code", "") for caution in found.cautions)  # which is sure, and no matter of if
            else "collect rows that the model has not seen, then calibrant certify with the same options"
        ),
    ]


def fitted_said(
    said: str,
    guarantee: RecalibrationGuarantee | None,
    given: RecalibrationGuarantee | None,
    out: object,
    hints: Sequence[str],
) -> list[str]:
    """Say what was fitted, what is known of it, and what the rows make one suspect."""
    after = next_step(
        _NEXT["note"]
        if hints
        else f"calibrant recalibrate apply {printable(out)} to new rows; certify them once their outcomes are known"
    )
    if given is None:
        missing = "No guarantee covers weighted rows; certify the repaired forecasts on fresh ones."
        return [said, missing, *_noted(hints), after, *_more_notes(hints)]
    found = given if guarantee is None else guarantee
    if guarantee is None:
        promises = [
            f"With {level_said(given.confidence_level)} confidence the Cutoff calibration error of the repaired "
            f"forecasts is at most {rounded_up(given.upper)}, for these very ones issued again with new outcomes.",
            "Of other clusters it says nothing: fit on half of them and certify the repaired forecasts on the others.",
        ]
    else:
        promises = [
            f"With {level_said(guarantee.confidence_level)} confidence the Cutoff calibration error of the repaired "
            f"forecasts is at most {rounded_up(guarantee.upper)} in the population.",
            "Likewise, for these very forecasts issued again with new outcomes, it is at most "
            f"{rounded_up(given.upper)}.",
        ]
    return [said, *promises, *_noted(found.notes), after, *assumed(found.assumptions), *_more_notes(found.notes)]


def choice_said(found: RecalibratorComparison) -> list[str]:
    """Say which repair to use, and whether it is shown to be better."""
    from calibrant.repairs.apart import told_apart

    names = ("cutoff", "risk_gap", "smooth", "brier", "log_loss", "auc_lost")
    rows = [
        (each.name, *(rounded(getattr(each, name)) for name in names), "could not be fitted" if each.problem else "")
        for each in found.candidates
    ]
    now, chosen = found.candidates[0], found.recommended
    lines = [
        f"{len(found)} ways to treat the forecasts of {found.rows:,} rows, judged on held-out rows ({found.cv} parts):",
        in_columns(("", *names, ""), rows),
    ]
    if chosen is None:
        lines.append(found.recommendation)
        after = "collect rows of both kinds, then calibrant recalibrate choose"
    elif chosen == now.name:
        lines.append(found.recommendation)
        after = "certify the forecasts as they are on fresh rows: calibrant certify --max-error"
    else:
        best = found[chosen]
        brier, cutoff = (f"{rounded(getattr(best, name))} against {rounded(getattr(now, name))}" for name in _JUDGED)
        said = f"Use {printable(best.name)}: held-out Brier score {brier} as is, Cutoff error {cutoff}."
        lines.append(" ".join([said, *(told_apart((each,), found.confidence_level) for each in found.differences[:1])]))
        method = _METHODS.get(best.name, best.name)
        after = f"calibrant recalibrate fit --method {method}; certify what it repairs on fresh rows"
    hints = [note for note in found.notes if _is_hint(note)]
    rest = [note for note in found.notes if not _is_hint(note)]
    after = next_step(_NEXT["note"] if hints else after)
    return [*lines, *_noted(hints), after, *_noted(rest), *_more_notes(found.notes)]


def cautioned(cautions: Sequence[str]) -> list[str]:
    """Write cautions."""
    return [f"Caution: {caution}" for caution in cautions]


def _group_cautions(found: GroupCertificates) -> list[str]:
    """Return the first cautions of groups, and say in how many groups there are more."""
    more = len(found.cautions) - MOST_CAUTIONS
    rest = [f"There are cautions on {counted(more, 'more group')}: --verbose."] if more > 0 else []
    return cautioned(found.cautions[:MOST_CAUTIONS]) + rest


def after_verdict(verdict: str, certificates: Sequence[Certificate], *, of_classes: bool = False) -> str:
    """Say what to do after the verdict on some certificates; a limit that says nothing still refutes forecasts."""
    from calibrant.certificates.cautions import ONE_CLASS, WIDE_LIMIT
    from calibrant.measures.expected import USELESS_LIMIT
    from calibrant.measures.registry import MEASURES

    if any(_is_hint(note) for each in certificates for note in each.notes):
        return next_step(_NEXT["note"])
    notes = {getattr(note, "code", "") for each in certificates for note in each.notes}
    if USELESS_LIMIT in notes and verdict == "undecided":
        return next_step(_NEXT_OF_USELESS)
    cautions = {getattr(caution, "code", "") for each in certificates for caution in each.cautions}
    if WIDE_LIMIT in cautions and verdict != "refuted":
        return next_step(_NEXT["caution"])
    if ONE_CLASS in cautions:
        return next_step("collect rows of both kinds, then calibrant certify with the same options")
    saving, clustered = certificates[0].thresholds is not None, certificates[0].clusters is not None
    usual = _NEXT_OF_CLASSES if of_classes else _NEXT_OF_SAVINGS if saving else _NEXT
    measure = certificates[0].measure
    if usual is _NEXT and not MEASURES[measure].plannable:
        usual = _NEXT | {"undecided": _NEXT_WITHOUT_PLAN.format(error=MEASURES.words(measure))}
    advice = usual | (_NEXT_OF_CLUSTERS if clustered else {})
    if verdict == "undecided" and any(each.lower > 0.0 for each in certificates):
        return next_step(f"{advice[verdict]}. {_OFF_ANYWAY}: {advice['refuted']}")
    return next_step(advice[verdict])


def _is_hint(note: str) -> bool:
    """Return whether a note speaks of a likely mistake."""
    from calibrant.rows.hints import MISTAKES

    return getattr(note, "code", "") in MISTAKES


def next_step(said: str) -> str:
    """Say what to do next."""
    return f"Next: {said}."


def assumed(assumptions: Iterable[str]) -> list[str]:
    """Say the first assumption, and where the others stand."""
    first, *others = assumptions
    return [f"This assumes that {first}{'; --verbose says what else' if others else ''}."]


def _noted(notes: Sequence[str], *, prefix: str = "Note: ") -> list[str]:
    """Return the short notes: what they say may be all that is wrong, so that they come before advice."""
    return [f"{prefix}{note}" for note in notes if _is_short(note)]


def useless_said(certificates: Sequence[Certificate]) -> list[str]:
    """Return the note that a limit says nothing, however long it is, for the first of some parts."""
    return [f"Note: {note}" for each in certificates for note in each.notes if _is_useless(note)][:1]


def _is_useless(note: str) -> bool:
    from calibrant.measures.expected import USELESS_LIMIT

    return getattr(note, "code", "") == USELESS_LIMIT


def _more_notes(notes: Sequence[str], *, shown: int | None = None) -> list[str]:
    """Say how many notes there are to read beside the short ones, of which so many are shown."""
    short = sum(map(_is_short, notes))
    more = len(notes) - (short if shown is None else min(short, shown))
    return [f"{counted(more, 'note')} on these numbers: --verbose."] if more else []


def _is_short(note: str) -> bool:
    return len(str(note).split()) <= LONGEST_NOTE
