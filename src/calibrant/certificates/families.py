"""Certify every column of a family of questions: all together, and one by one.

All together: let every question j have an upper limit U_j that is wrong with probability at most delta. Then the
largest error of the family is at most the largest U_j, except with probability delta, however many questions there are:
only the question with the largest error has to behave. Lower limits are another matter, since every question could be
the one whose limit is too high: each gets delta / J.

One by one: "question j is within the limit" is said of several questions so that all of it is true except with
probability delta, and "question j is beyond it" likewise. Of each kind of claim, Holm's rule takes those that hold at
delta / J, then those that hold at delta over the number of questions left, and so on. Where each question has rows of
its own the claims are independent and Hochberg's rule starts from the other end: if all claims hold at delta all are
made (docs/theory/questions.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from calibrant.certificates.joint_levels import delta_of_each
from calibrant.certificates.judging import (
    Judged,
    Plan,
    evaluate,
    evaluate_question,
    interval_of,
    judge_question,
    judges_at_once,
)
from calibrant.certificates.question_results import QuestionCertificates, QuestionIntervals
from calibrant.rows.checks import Observations
from calibrant.rows.intake import source_of
from calibrant.rows.questions import Questions

Opening = Callable[[Observations], Any]
"""What makes a source of the rows of a column."""


def certify_family(
    plan: Plan, questions: Questions, limit: float, seed: int, *, opened: Opening = source_of
) -> QuestionCertificates:
    """Return verdicts on "the error of every question is at most ``limit``", and on each of them.

    Parameters
    ----------
    plan : Plan
        What is judged and how.
    questions : Questions
        The family; its columns are made one at a time.
    limit : float
        The largest error one can live with.
    seed : int
        For limits that leave something to chance.
    opened : callable
        Makes a source of the rows of a column, with the clusters of the rows where these count.
    """
    judged = [
        judge_question(plan, opened(questions.column(place)), limit, len(questions), seed)
        for place in range(len(questions))
    ]
    certificates, uppers = tuple(each.certificate for each in judged), tuple(each.upper_alone for each in judged)
    return QuestionCertificates(
        verdict=QuestionCertificates.verdict_of(uppers, certificates, limit),
        kind=questions.kind,
        max_error=limit,
        confidence_level=plan.confidence_level,
        questions=questions.labels,
        upper=uppers,
        verdicts=_single_verdicts(plan, questions, judged, limit, seed, opened),
        certificates=certificates,
        rows=questions.row_count,
        relative_to=plan.relative_to,
        disjoint=questions.disjoint,
        notes=questions.notes,
        members=questions.members,
    )


def interval_family(
    plan: Plan, questions: Questions, alternative: str, seed: int, *, opened: Opening = source_of
) -> QuestionIntervals:
    """Return limits of the largest error of a family, and of each of its questions."""
    count = len(questions)
    alone = delta_of_each(plan.delta, 2 if alternative == "two-sided" else 1)
    each = delta_of_each(alone, count)
    lower_delta, has_upper = None if alternative == "less" else each, alternative != "greater"
    part = replace(plan, confidence_level=1.0 - delta_of_each(plan.delta, count))
    upper, intervals = 0.0, []
    for place in range(count):
        source = opened(questions.column(place))
        if has_upper and judges_at_once(plan):
            found, uppers = evaluate_question(plan, source, seed, alone, count, (1, count), lower_delta=lower_delta)
            found = replace(found, upper=uppers[count])
            upper = max(upper, uppers[1])
        else:
            found = evaluate(plan, source, seed, lower_delta=lower_delta, upper_delta=each if has_upper else None)
            above = evaluate(plan, source, seed, upper_delta=alone) if has_upper else found
            upper = max(upper, above.limits[1])
        intervals.append(interval_of(part, found, alternative))
    return QuestionIntervals(
        kind=questions.kind,
        lower=min(max(interval.lower for interval in intervals), upper),
        upper=upper,
        confidence_level=plan.confidence_level,
        alternative=alternative,
        questions=questions.labels,
        intervals=tuple(intervals),
        rows=questions.row_count,
        relative_to=plan.relative_to,
        notes=questions.notes,
    )


@dataclass(frozen=True)
class Claims:
    """Which of several claims hold at delta over a number: asked for when it matters, since each may take a while.

    A claim that fails at delta is never made, and one that holds at delta / J holds at every larger share.
    """

    count: int
    may: frozenset[int]
    sure: frozenset[int]
    holds: Callable[[int, int], bool]

    def at(self, parts: int) -> frozenset[int]:
        """Return the claims that hold at delta over so many parts, or over the next power of two, to ask less often."""
        if parts <= 1:
            return self.may
        size = 1 << (parts - 1).bit_length()
        if size >= self.count:
            return self.sure
        return self.sure | {place for place in self.may - self.sure if self.holds(place, size)}


def step_down(claims: Claims) -> frozenset[int]:
    """Return the claims that Holm's rule makes: whatever depends on whatever, all are right except with delta."""
    made = claims.sure
    while len(made) < len(claims.may):
        more = claims.at(claims.count - len(made))
        if more <= made:
            break
        made |= more
    return made


def step_up(claims: Claims) -> frozenset[int]:
    """Return the claims that Hochberg's rule makes, for claims that are independent."""
    for parts in range(claims.count - len(claims.may) + 1, claims.count + 1):
        made = claims.at(parts)
        if len(made) > claims.count - parts:
            return made
    return frozenset()


def _single_verdicts(
    plan: Plan, questions: Questions, judged: list[Judged], limit: float, seed: int, opened: Opening
) -> tuple[str, ...]:
    """Return what can be said of each question, so that all "certified" hold together, and all "refuted"."""
    count, made = len(questions), step_up if questions.disjoint else step_down

    @cache
    def within(place: int, parts: int) -> bool:
        if judged[place].uppers:
            return judged[place].uppers[parts] <= limit
        delta = delta_of_each(plan.delta, parts)
        found = evaluate(plan, opened(questions.column(place)), seed, upper_delta=delta)
        return found.limits[1] <= limit

    @cache
    def beyond(place: int, parts: int) -> bool:
        delta = delta_of_each(plan.delta, parts)
        found = evaluate(plan, opened(questions.column(place)), seed, lower_delta=delta)
        return found.limits[0] > limit

    certificates = [each.certificate for each in judged]
    refuted = frozenset(place for place in range(count) if certificates[place].verdict == "refuted")
    may = frozenset(place for place, each in enumerate(judged) if each.upper_alone <= limit) - refuted
    sure = frozenset(place for place in may if certificates[place].upper <= limit)
    certified = made(Claims(count, may, sure, within))
    sure = refuted
    above = frozenset(place for place in range(count) if certificates[place].estimate > limit) - certified
    # What one question alone would say is looked at only where it can matter.
    hopeful = above - sure if sure or questions.disjoint else frozenset()
    may = sure | {place for place in hopeful if beyond(place, 1)}
    refuted |= made(Claims(count, may, sure, beyond))
    return tuple(
        "certified" if place in certified else "refuted" if place in refuted else "undecided" for place in range(count)
    )
