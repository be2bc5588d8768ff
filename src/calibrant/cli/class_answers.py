"""What commands say at first about several questions of one set of rows: classes, top labels, pairs, subsets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from calibrant.cli.answers import (
    MOST_CAUTIONS,
    after_verdict,
    assumed,
    cautioned,
    next_step,
    test_means,
    useless_said,
)
from calibrant.core.words import counted, in_columns, measured, printable, rounded_down, rounded_up

if TYPE_CHECKING:
    from calibrant.certificates.question_results import QuestionCertificates
    from calibrant.certificates.question_tests import QuestionTests
    from calibrant.measures.questions import OfQuestions, QuestionMeasures

MOST_LINES = 12
"""Questions that are shown at first; of more, the worst ones."""


def question_verdicts_said(found: QuestionCertificates, besides: Sequence[str] = ()) -> list[str]:
    """Say what certificates of several questions say together, and one by one."""
    places = found.shown_places(MOST_LINES)
    certificates, noun = found.certificates, found.described.noun
    rows = [
        (
            printable(found.questions[place]),
            _finite(certificates[place].estimate),
            rounded_down(certificates[place].lower),
            "-" if math.isinf(certificates[place].upper) else rounded_up(certificates[place].upper),
            found.verdicts[place],
        )
        for place in places
    ]
    where = found[found.worst].where()
    return [
        *found.findings()[:2],
        in_columns((noun, "estimate", "lower", "upper", "verdict"), rows),
        *_left_out(found),
        *found.one_by_one(),
        f"For {found.named_question(found.worst)}: {where[0].lower()}{where[1:]}",
        *found.promises(),
        *cautioned(found.cautions[:MOST_CAUTIONS]),
        *_more(len(found.cautions) - MOST_CAUTIONS, "caution"),
        *useless_said(certificates),
        *besides,
        after_verdict(found.verdict, certificates, of_classes=True),
        *assumed(dict.fromkeys(words for each in certificates for words in each.assumptions)),
    ]


def question_measures_said(found: QuestionMeasures) -> list[str]:
    """Say what was measured of each question on these rows."""
    worst = found[found.worst]
    where = worst.worst_interval.where()
    return [
        *str(found).splitlines(),
        f"For {found.named_question(found.worst)}: {where[0].lower()}{where[1:]}",
        next_step("these numbers are about these rows; calibrant certify --max-error judges cases to come"),
    ]


def question_tests_said(found: QuestionTests, level: float) -> list[str]:
    """Say whether perfect calibration of all classes is rejected."""
    rejected = found.rejected(level)
    finding = found.finding(level)
    rows = [
        (printable(found.questions[place]), measured(found.statistics[place], 4), f"{found.pvalues[place]:.4g}")
        for place in found.shown_places(MOST_LINES)
    ]
    return [
        f"{'Rejected' if rejected else 'Not rejected'}: {finding[0].lower()}{finding[1:]}",
        in_columns((found.described.noun, "error", "p-value by itself"), rows),
        *_left_out(found),
        test_means(rejected),
        *(f"Note: {note}" for note in found.notes),
        next_step("calibrant certify --max-error says whether the errors are small, whatever the p-value"),
        *assumed(found.assumptions),
    ]


def _left_out(found: OfQuestions) -> list[str]:
    left = len(found.questions) - MOST_LINES
    return [f"  and {left:,} more with smaller errors: --json lists all"] if left > 0 else []


def _more(count: int, noun: str) -> list[str]:
    return [f"There {'is' if count == 1 else 'are'} {counted(count, f'more {noun}')}: --verbose."] if count > 0 else []


def _finite(value: float) -> str:
    return "-" if math.isinf(value) else measured(value, 4)
