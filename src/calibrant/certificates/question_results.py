"""Results of certifying a family of questions: the worst of them, limits for all together, and single verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant.certificates.cautions import SENSIBLE, WIDE_LIMIT, cautions_on
from calibrant.certificates.joint_verdicts import JointVerdict, OfShares
from calibrant.certificates.limit_words import limit_said, lower_said, short_estimate, upper_said
from calibrant.certificates.results import VERDICTS, YARDSTICKS, Certificate, ConfidenceInterval, error_said
from calibrant.core.results import UNIT, Result
from calibrant.core.types import Label
from calibrant.core.voices import Either, Option, Phrase
from calibrant.core.words import counted, level_said, printable
from calibrant.measures.questions import MOST_LINES, OfQuestions
from calibrant.measures.registry import MEASURES
from calibrant.rows.questions import KINDS, Promising

_SEVERAL = 3  # questions of which the same is said once for all


def _wide(each: Certificate) -> tuple[str, ...]:
    """Return the caution that a limit is wide for one question, if it is."""
    if each.thresholds is not None or each.event_rate in (0.0, 1.0):
        return ()
    return cautions_on(each.max_error, each.event_rate, each.relative_to, rows_only=each.clusters is not None)


def _unit_said(relative_to: str) -> str:
    """Return what stands after a number that is a share of the events of its question."""
    return "" if relative_to == "rows" else " times its event rate"


def _promising(judged: Certificate | ConfidenceInterval) -> Promising:
    """Return what the error that was judged may promise."""
    return MEASURES[judged.measure].promising(judged.thresholds)


@dataclass(frozen=True)
class QuestionCertificates(OfQuestions, JointVerdict, Result):
    """A certificate per question, and one verdict for "the error of every question is at most ``max_error``".

    To certify, the joint verdict needs no correction for the number of questions: only the worst one, whichever it is,
    can make it wrong. To refute it does. Verdicts on single questions hold together: all that are "certified" with
    ``confidence_level``, and all that are "refuted" with ``confidence_level``.

    Attributes
    ----------
    verdict : str
        "certified" (every ``upper <= max_error``), "refuted" (the certificate of some question is) or "undecided".
    kind : str
        What the questions are: "classwise", "top_label", "pairs", "subsets", or another family of columns.
    max_error, confidence_level : float
        The limit asked about, and the confidence of the joint verdict.
    questions : tuple
        What tells the questions apart: the labels of classes, pairs or subsets of them.
    upper : tuple of float
        Per question, the upper limit at ``confidence_level`` on its own, which the joint verdict compares.
    verdicts : tuple of str
        Per question, by Holm's rule, or Hochberg's where each question has rows of its own.
    certificates : tuple of Certificate
        Per question, at level 1 - (1 - confidence_level) / (number of questions): all upper limits hold together with
        ``confidence_level``, and so do all lower ones. Where ``verdicts`` decide and these do not, the rule knows more.
        Upper limits of the adaptive method are up to a fifth wider than those of the column certified alone at that
        level: one bet serves all levels that the rule asks about, so that their limits never cross
        (docs/theory/questions.md).
    rows : int
        Rows that the questions are about; errors are shares of all of them.
    relative_to : str
        What errors and limits are shares of: all "rows", or the "events" of the question.
    disjoint : bool
        Whether each question has rows of its own.
    notes : tuple of str
        What to keep in mind about all questions.
    members : tuple of int or None
        Rows of each group, where errors of groups are shares of all rows; None where a question has all rows or only
        its own. The certificates are about all rows.
    """

    verdict: str
    kind: str
    max_error: float
    confidence_level: float
    questions: tuple[Label, ...]
    upper: tuple[float, ...]
    verdicts: tuple[str, ...]
    certificates: tuple[Certificate, ...]
    rows: int
    relative_to: str = "rows"
    disjoint: bool = False
    notes: tuple[str, ...] = ()
    members: tuple[int, ...] | None = None

    _may_be_infinite: ClassVar = ("upper",)  # as shares of events, where there may be none
    _ranges: ClassVar = {**dict.fromkeys(("max_error", "confidence_level"), UNIT), "upper": (0.0, math.inf)}
    _words: ClassVar = {"verdict": VERDICTS, "relative_to": YARDSTICKS, "kind": KINDS}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.members is not None and len(self.members) != len(self.questions):
            self._refuse("members", self.members, "not one number of rows per question")
        if len(self.verdicts) != len(self.certificates) or not set(self.verdicts) <= set(VERDICTS):
            self._refuse("verdicts", self.verdicts, "not one verdict per question")
        for verdict, each in zip(self.verdicts, self.certificates, strict=True):
            if each.verdict not in ("undecided", verdict):
                self._refuse("verdicts", self.verdicts, "while the limits of the questions say otherwise")

    @property
    def single_verdicts(self) -> tuple[str, ...]:
        """What is said of each question, so that all of it holds together."""
        return self.verdicts

    @property
    def joint_upper(self) -> float:
        """The upper limit of the largest error, at ``confidence_level``."""
        return max(self.upper)

    @property
    def joint_lower(self) -> float:
        """The lower limit of the largest error, at ``confidence_level``."""
        return min(max(each.lower for each in self.certificates), self.joint_upper)

    @property
    def cautions(self) -> tuple[str, ...]:
        """Why verdicts would mislead whoever reads nothing else; what concerns several questions is said once."""
        wide = [each for each in self.certificates if _wide(each)]
        if len(wide) < _SEVERAL:
            return super().cautions
        rest = [
            Phrase("In {question}: {caution}", question=self._named_part(question), caution=caution)
            for question, each in self.pairs()
            for caution in each.cautions
            if caution not in _wide(each)
        ]
        # In units of the limit: of rows, or of the events of each question, of which non-events may be rarer.
        units = [1.0 if self.relative_to == "rows" else each.event_rate for each in wide]
        rarest = min(min(each.event_rate, 1.0 - each.event_rate) / unit for each, unit in zip(wide, units, strict=True))
        limit = Option("max_error", float(f"{SENSIBLE * rarest:.2g}"))
        relative = Option("relative_to", self.relative_to)
        return (
            Phrase(
                "For {count:,} of {questions} this limit leaves room for more than half of the events, or all of them, "
                "to be missed. For one that means something for each of them use {limit}.",
                code=WIDE_LIMIT,
                count=len(wide),
                questions=self._count_said(),
                limit=limit
                if self.relative_to == "rows"
                else Phrase("{relative}{comma} {limit}", relative=relative, comma=Either(","), limit=limit),
            ),
            *rest,
        )

    def _promising(self) -> Promising:
        return _promising(self.certificates[0])

    def _own_rows(self) -> Sequence[int]:
        return super()._own_rows() if self.members is None else self.members

    def _named_part(self, part: Any) -> str:
        # Where shares are of all rows, 3% of events means that 3% of all rows are events of the group.
        return f"{self.named_question(part)}{'' if self.members is None else ', in shares of all rows'}"

    def frame(self, backend: Any = None) -> Any:
        """Return one row per question, with the number of rows that it is about."""
        return self._framed({"question": list(self.questions), **self._columns()}, backend)

    def __str__(self) -> str:
        lines = self.lines()
        shown = [lines[place] for place in self.shown_places()]
        return "\n".join([*self.findings(), *shown, *self._left_out(), *self.one_by_one(), *self.remarks()])

    def one_by_one(self) -> list[str]:
        """Say also why verdicts may be surer than the limits that stand beside them, where some are."""
        surer = any(said != each.verdict for said, each in zip(self.verdicts, self.certificates, strict=True))
        why = (
            f"Some verdicts say more than the limits beside them: limits hold for all {self.described.plural} at once, "
            "and verdicts were reached one after the other, which takes less (Holm's rule)."
        )
        return [*super().one_by_one(), *([why] if surer else [])]

    def findings(self) -> list[str]:
        """Return the joint verdict in words, its numbers, what it promises and assumes, and what single ones are."""
        level, kind = level_said(self.confidence_level), self.described
        measure = error_said(self.certificates[0])
        unit, every = _unit_said(self.relative_to), kind.of_every(self.relative_to)
        limit = f"{limit_said(self.max_error, 'rows')}{unit}"
        if self.verdict == "certified":
            finding = f"with {level} confidence the {measure} {every} is at most {limit}"
        elif self.verdict == "refuted":
            refuted = [each for each, said in zip(self.questions, self.verdicts, strict=True) if said == "refuted"]
            named = ", ".join(printable(each) for each in refuted[:3]) + (", ..." if len(refuted) > 3 else "")
            what = kind.noun if len(refuted) == 1 else kind.plural
            finding = f"with {level} confidence the {measure} is above {limit} for {what} {named}"
        else:
            finding = f"these rows do not show whether the {measure} {every} is at most {limit}"
        method = f"{self.certificates[0].method} method"
        worst = self.named_question(self.worst)
        largest = f"The largest error on these rows is {short_estimate(self.estimate)}{unit}, for {worst}"
        if math.isinf(self.estimate):
            largest = f"These rows have no events of {worst}, of which its error could be a share"
        between = f"lies between {lower_said(self.joint_lower)} and {upper_said(self.joint_upper)}{unit}"
        if math.isinf(self.joint_upper):
            between = f"is at least {lower_said(self.joint_lower)}{unit}, with no upper limit"
        settled = f" Least settled: {self.named_question(self.least_settled)}." if self.verdict == "undecided" else ""
        return [
            f"{self.verdict.capitalize()}: {finding} ({self._count_said()}, {counted(self.rows, 'row')}, {method}).",
            f"{largest}; the population's {between}, each limit with {level} confidence and for all {kind.plural} "
            f"together.{settled}",
            *self.promises(),
            self.assumed(),
            f"One by one, all verdicts of certified hold together with {level} confidence, and all of refuted; so do "
            "all upper limits, and all lower ones:",
        ]

    def remarks(self) -> list[str]:
        """Return the cautions and notes of single questions in words, and how many more there are."""
        found = super().remarks()
        more = len(found) - MOST_LINES
        return (
            found if more <= 0 else [*found[:MOST_LINES], f"{more:,} more remarks on single {self.described.plural}."]
        )


@dataclass(frozen=True)
class QuestionIntervals(OfQuestions, OfShares, Result):
    """Limits of the largest error of several questions, and of each of them.

    Attributes
    ----------
    kind : str
        What the questions are.
    estimate : float
        The largest error of a question on these rows.
    lower, upper : float
        Limits of the largest error in the population. The upper one needs no correction for the number of questions.
    confidence_level : float
        How often limits computed this way contain the truth.
    alternative : str
        "two-sided" (both limits hold together), "less" (an upper limit only) or "greater" (a lower limit only).
    questions : tuple
        What tells the questions apart.
    intervals : tuple of ConfidenceInterval
        Per question, at levels at which all of them hold together with ``confidence_level``.
    rows : int
        Rows that the questions are about; errors are shares of all of them.
    relative_to : str
        What errors and limits are shares of: all "rows", or the "events" of the question.
    notes : tuple of str
        What to keep in mind about all questions.
    """

    kind: str
    lower: float
    upper: float
    confidence_level: float
    alternative: str
    questions: tuple[Label, ...]
    intervals: tuple[ConfidenceInterval, ...]
    rows: int
    relative_to: str = "rows"
    notes: tuple[str, ...] = ()

    _parts: ClassVar = "intervals"
    _may_be_infinite: ClassVar = ("upper",)  # as a share of events, where there may be none
    _ranges: ClassVar = {"confidence_level": UNIT, **dict.fromkeys(("lower", "upper"), (0.0, math.inf))}
    _words: ClassVar = {
        "kind": KINDS,
        "alternative": ("two-sided", "less", "greater"),
        "relative_to": YARDSTICKS,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_shares("lower", "upper")
        self._check_order("lower", "upper")

    def _promising(self) -> Promising:
        return _promising(self.intervals[0])

    def frame(self, backend: Any = None) -> Any:
        """Return one row per question."""
        columns = {
            name: [getattr(each, name) for each in self.intervals] for name in ("rows", "estimate", "lower", "upper")
        }
        return self._framed({"question": list(self.questions), **columns}, backend)

    def __str__(self) -> str:
        kind, level = self.described, level_said(self.confidence_level)
        unit = _unit_said(self.relative_to)
        limits = {
            "two-sided": f"lies between {lower_said(self.lower, 5)} and {upper_said(self.upper, 5)}{unit}",
            "less": f"is at most {upper_said(self.upper, 5)}{unit}",
            "greater": f"is at least {lower_said(self.lower, 5)}{unit}",
        }[self.alternative]
        names = [printable(each) for each in self.questions]
        width = max(map(len, names))
        shown = [
            f"  {names[place]:<{width}}  estimate {short_estimate(self.intervals[place].estimate)}  "
            f"from {lower_said(self.intervals[place].lower)} to {upper_said(self.intervals[place].upper)}"
            for place in self.shown_places()
        ]
        first = self.intervals[0]
        assumed = dict.fromkeys(words for each in self.intervals for words in each.assumptions)
        each_level = level_said(first.confidence_level)
        return "\n".join(
            [
                f"With {level} confidence the largest {error_said(first)} {kind.of_every(self.relative_to)} {limits} "
                f"({self._count_said()}, {counted(self.rows, 'row')}, {first.method} method).",
                f"On these rows it is {short_estimate(self.estimate)}, for {self.named_question(self.worst)}.",
                *self.promises(),
                f"This assumes that {'; '.join(assumed)}.",
                f"Limits of each of the {kind.plural}, with {each_level} confidence each, which hold together:",
                *shown,
                *self._left_out(),
            ]
        )

    __repr__ = __str__
