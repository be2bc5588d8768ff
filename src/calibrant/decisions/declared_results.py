"""Results on declared decisions: tables of losses, and verdicts on what a relabelling of the actions could save."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant.certificates.joint_levels import level_of_both
from calibrant.certificates.joint_verdicts import one_by_one
from calibrant.certificates.results import VERDICTS, verdict_of
from calibrant.core.results import UNIT, PerPart, Result
from calibrant.core.types import FloatArray, Label
from calibrant.core.voices import Phrase
from calibrant.core.words import (
    counted,
    in_columns,
    level_said,
    measured,
    percent,
    printable,
    rounded_down,
    rounded_up,
    shown,
)
from calibrant.rows.actions import best_action, check_losses, in_order_of, in_units

_NOT_NEGATIVE = (0.0, math.inf)


@dataclass(frozen=True)
class LossTable(Result):
    """What each action loses in each class: a declared decision problem.

    Attributes
    ----------
    actions : tuple
        Names of the actions, the lines of the table. Where several lose the same in expectation, the first is taken.
    classes : tuple
        Names of the classes, its columns.
    losses : tuple of tuple of float
        A line per action.

    Examples
    --------
    >>> walk = LossTable(("umbrella", "none"), ("dry", "rain"), ((1.0, 1.0), (0.0, 5.0)))
    >>> print(walk)
      loss      dry  rain
      umbrella    1  1
      none        0  5
    >>> walk.best_action([[0.9, 0.1], [0.5, 0.5]])
    ('none', 'umbrella')
    """

    actions: tuple[Label, ...]
    classes: tuple[Label, ...]
    losses: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        for line in self.losses:
            self._check_numbers("losses", line)
        shape = check_losses(self.losses).shape
        for name, labels, size in (("actions", self.actions, shape[0]), ("classes", self.classes, shape[1])):
            if len(labels) != size or len(set(labels)) != size:
                self._refuse(name, labels, f"while the table has {size}, each with a name of its own")

    def array(self, classes: tuple[Label, ...] | None = None) -> FloatArray:
        """Return the losses as an array, with its columns in the order of these classes."""
        losses = check_losses(self.losses)
        return losses if classes is None else losses[:, in_order_of(classes, self.classes)]

    def best_action(self, y_prob: Any) -> tuple[Label, ...]:
        """Return the action of least expected loss for each line of probabilities, in the order of the classes.

        Parameters
        ----------
        y_prob : array-like of shape (n, K)
            Probabilities of the classes.

        Returns
        -------
        tuple
            An action for each line.
        """
        loss, _, _ = in_units(self.array())
        places = best_action(loss, np.atleast_2d(np.asarray(y_prob, dtype=np.float64)))
        return tuple(self.actions[place] for place in places)

    def for_classes(self, classes: tuple[Label, ...]) -> LossTable:
        """Return the table with its columns in the order of these classes."""
        return LossTable(self.actions, classes, tuple(map(tuple, self.array(classes).tolist())))

    def frame(self, backend: Any = None) -> Any:
        """Return one row per action and one column per class."""
        columns = np.transpose(self.losses).tolist()
        return self._framed(
            {"action": list(self.actions), **dict(zip(map(str, self.classes), columns, strict=True))}, backend
        )

    def __str__(self) -> str:
        lines = [
            (str(action), *(f"{loss:.5g}" for loss in line))
            for action, line in zip(self.actions, self.losses, strict=True)
        ]
        return in_columns(("loss", *map(str, self.classes)), lines)

    __repr__ = __str__


@dataclass(frozen=True)
class RejectOption(Result):
    """A problem that is the same for every set of classes: name one of them, or decline at a fixed cost.

    Attributes
    ----------
    cost : float
        What declining costs.
    error_cost : float
        What naming a wrong class costs; the right one costs nothing.
    reject : str
        The name of declining.
    """

    cost: float
    error_cost: float = 1.0
    reject: str = "reject"

    _ranges: ClassVar = dict.fromkeys(("cost", "error_cost"), _NOT_NEGATIVE)

    def for_classes(self, classes: tuple[Label, ...]) -> LossTable:
        """Return the table of losses for these classes: an action for each of them, and one more for declining."""
        name = self.reject
        while name in classes:
            name += "!"
        wrong = self.error_cost * (1.0 - np.eye(len(classes)))
        lines = [*wrong.tolist(), [self.cost] * len(classes)]
        return LossTable((*classes, name), classes, tuple(map(tuple, lines)))

    def __str__(self) -> str:
        return (
            f"Name a class (a wrong one costs {self.error_cost:g}) or decline at {self.cost:g}: the likeliest class is "
            f"named where its probability is at least {1.0 - self.cost / self.error_cost:.4g}."
        )

    __repr__ = __str__


@dataclass(frozen=True)
class Relabelling(Result):
    """One action in place of another, and what that would have saved on these rows.

    Attributes
    ----------
    action, instead : label
        The action that the rule takes, and the one that would have lost least in its place.
    share : float
        Share of the rows, by weight, where the rule takes it.
    saved : float
        How much less would have been lost per case, counted over all cases.
    """

    action: Label
    instead: Label
    share: float
    saved: float

    _ranges: ClassVar = {"share": UNIT, "saved": _NOT_NEGATIVE}

    @property
    def saved_there(self) -> float:
        """The same per case where the rule takes this action."""
        return self.saved / self.share

    def __str__(self) -> str:
        return (
            f"where the rule says {printable(self.action)} ({percent(self.share)} of cases), "
            f"{printable(self.instead)} would have lost {measured(self.saved_there, 4)} less per such case, "
            f"{measured(self.saved, 4)} less per case overall"
        )


@dataclass(frozen=True)
class DecisionCertificate(Result):
    """A verdict on "no relabelling of the actions saves more than ``max_regret`` per case", with its guarantee.

    Attributes
    ----------
    verdict : str
        "certified" (``upper <= max_regret``), "refuted" (``lower > max_regret``) or "undecided".
    regret : float
        Swap regret on these rows: what doing b wherever the rule says a would have saved, with the best b for every a.
    lower, upper : float
        Its limits, each one-sided at ``confidence_level``; both at once hold with 1 - 2 (1 - confidence_level).
    max_regret : float
        The limit asked about, in units of the losses.
    confidence_level : float
        Of the verdict.
    method : str
        "adaptive" or "hoeffding".
    rows : int
        Rows.
    n_eff : float
        Rows of equal weight that would say as much; n for unit weights.
    problem : LossTable
        The losses, columns in the order of the forecasts'.
    taken : tuple of float
        Share of the rows, by weight, where the rule takes each action.
    risk : float
        Mean loss of the rule on these rows.
    constant_risk : float
        That of the best single action, for which no forecast is needed.
    changes : tuple of Relabelling
        The better actions, those first that would have saved most on these rows; empty when the rule was best.
    assumptions : tuple of str
        What the guarantee rests on.
    cautions : tuple of str
        Why the verdict would mislead whoever reads nothing else; empty when it would not.
    notes : tuple of str
        What to keep in mind for these data.
    """

    verdict: str
    regret: float
    lower: float
    upper: float
    max_regret: float
    confidence_level: float
    method: str
    rows: int
    n_eff: float
    problem: LossTable
    taken: tuple[float, ...]
    risk: float
    constant_risk: float
    changes: tuple[Relabelling, ...]
    assumptions: tuple[str, ...]
    cautions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    _ranges: ClassVar = {
        **dict.fromkeys(("confidence_level", "taken"), UNIT),
        **dict.fromkeys(("regret", "lower", "upper", "max_regret"), _NOT_NEGATIVE),
    }
    _words: ClassVar = {"verdict": VERDICTS}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_order("lower", "upper")
        said = verdict_of(self.lower, self.upper, self.max_regret)
        if self.verdict != said:
            self._refuse("verdict", self.verdict, f"while its limits say {said!r}")
        if len(self.taken) != len(self.problem.actions):
            self._refuse("taken", self.taken, "not as many as actions")

    def __bool__(self) -> bool:
        """Return whether the regret is certified to be at most ``max_regret``."""
        return self.verdict == "certified"

    def frame(self, backend: Any = None) -> Any:
        """Return one row per action: how often it is taken, what would have been better, and what that saves."""
        better = {each.action: each for each in self.changes}
        found = [better.get(action) for action in self.problem.actions]
        return self._framed(
            {
                "action": list(self.problem.actions),
                "taken": list(self.taken),
                "better": [None if each is None else each.instead for each in found],
                "saved": [0.0 if each is None else each.saved for each in found],
            },
            backend,
        )

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def sentences(self) -> list[str]:
        """Return the verdict in words: what was found, the numbers, what would be better, and what it assumes."""
        return [
            self.finding(),
            self.numbers(),
            self.better(),
            *(f"Caution: {caution}" for caution in self.cautions),
            f"This assumes that {'; '.join(self.assumptions)}.",
            *(f"Note: {note}" for note in self.notes),
        ]

    def finding(self) -> str:
        """Say the verdict in one sentence."""
        level, limit = level_said(self.confidence_level), f"{shown(self.max_regret)} per case"
        if self.verdict == "undecided":
            return f"Undecided: these rows do not show whether exchanging actions saves more than {limit}."
        if self:
            return f"Certified: with {level} confidence no exchange of actions saves more than {limit}."
        return f"Refuted: with {level} confidence some exchange of actions saves more than {limit}."

    def numbers(self) -> str:
        """Say estimate and limits, as surely as a number holds that is shown after a look at the verdict."""
        both, limits = level_of_both(self.confidence_level), ""
        if self.verdict == "undecided":
            limits = (
                f", from {rounded_down(self.lower)} to {rounded_up(self.upper)}, each limit with "
                f"{level_said(self.confidence_level)} confidence"
            )
        elif both:
            number = f"at most {rounded_up(self.upper)}" if self else f"at least {rounded_down(self.lower)}"
            limits = f", and with {level_said(both)} confidence {number}"
        rows = counted(self.rows, "row")
        if not math.isclose(self.rows, self.n_eff):
            rows += f" worth {self.n_eff:,.0f} of equal weight"
        return (
            f"Estimate {measured(self.regret, 4)}{limits} ({rows}, {self.method} method). On these rows the rule loses "
            f"{measured(self.risk, 4)} per case, and the best single action {measured(self.constant_risk, 4)}."
        )

    def better(self) -> str:
        """Say which action would have been better than which on these rows, and by how much."""
        if not self.changes:
            return "On these rows no other action would have lost less in place of any."
        first, more = self.changes[0], len(self.changes) - 1
        rest = "" if more == 0 else f" (and {counted(more, 'other exchange')} would have saved something)"
        return f"On these rows, {first}{rest}. Found by looking at them, it saves less on others."


@dataclass(frozen=True)
class DecisionCertificates(PerPart[DecisionCertificate], Result):
    """A certificate per declared problem, and one verdict for "no exchange of actions saves too much in any".

    To certify, the joint verdict needs no correction for the number of problems: only one in which too much is saved,
    whichever it is, can make it wrong. To refute it does. The certificates of single problems hold all together.

    Attributes
    ----------
    verdict : str
        "certified" (every ``upper`` is within its limit), "refuted" (the certificate of some problem is) or
        "undecided".
    confidence_level : float
        Of the joint verdict.
    problems : tuple
        The problems' names.
    upper : tuple of float
        Per problem, the upper limit at ``confidence_level`` on its own, which the joint verdict compares.
    certificates : tuple of DecisionCertificate
        Per problem, at level 1 - (1 - confidence_level) / (number of problems): true together.
    """

    verdict: str
    confidence_level: float
    problems: tuple[Label, ...]
    upper: tuple[float, ...]
    certificates: tuple[DecisionCertificate, ...]

    _names: ClassVar = "problems"
    _parts: ClassVar = "certificates"
    _ranges: ClassVar = {"confidence_level": UNIT, "upper": _NOT_NEGATIVE}
    _words: ClassVar = {"verdict": VERDICTS}

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.problems) != len(self.upper):
            self._refuse("problems", self.problems, "not as many as upper limits")
        said = self.verdict_of(self.upper, self.certificates)
        if self.verdict != said:
            self._refuse("verdict", self.verdict, f"while the problems' limits say {said!r}")

    @staticmethod
    def verdict_of(upper: tuple[float, ...], certificates: tuple[DecisionCertificate, ...]) -> str:
        """Return the joint verdict: from the upper limits alone, or from the problem that is refuted."""
        if all(limit <= each.max_regret for limit, each in zip(upper, certificates, strict=True)):
            return "certified"
        return "refuted" if any(each.verdict == "refuted" for each in certificates) else "undecided"

    def __bool__(self) -> bool:
        """Return whether all problems are certified together."""
        return self.verdict == "certified"

    @property
    def cautions(self) -> tuple[str, ...]:
        """Why verdicts would mislead whoever reads nothing else, problem by problem; empty when they would not."""
        return tuple(
            Phrase("In problem {problem}: {caution}", problem=printable(name), caution=caution)
            for name, each in self.pairs()
            for caution in each.cautions
        )

    def frame(self, backend: Any = None) -> Any:
        """Return one row per problem: limits and verdicts that hold together, and the limit of the joint verdict."""
        names = ("risk", "regret", "lower", "upper", "max_regret", "verdict")
        columns = {name: [getattr(each, name) for each in self.certificates] for name in names}
        return self._framed(
            {"problem": list(self.problems), **columns, "upper_for_joint_verdict": list(self.upper)}, backend
        )

    def __str__(self) -> str:
        assumed = dict.fromkeys(words for each in self.certificates for words in each.assumptions)
        return "\n".join(
            [
                self.finding(),
                self.table(),
                *self.one_by_one(),
                *(f"{printable(name)}: {each.better()}" for name, each in self.pairs() if each.changes),
                *(f"Caution: {caution}" for caution in self.cautions),
                f"This assumes that {'; '.join(assumed)}.",
                *self.remarks(),
            ]
        )

    def remarks(self) -> list[str]:
        """Return the notes of all problems in words, those that several share once."""
        found: dict[str, list[str]] = {}
        for name, each in self.pairs():
            for note in each.notes:
                found.setdefault(note, []).append(printable(name))
        return [
            f"Note: {note}" if len(names) == len(self) else f"Note on {', '.join(names)}: {note}"
            for note, names in found.items()
        ]

    def finding(self) -> str:
        """Say the joint verdict in one sentence."""
        level, count = level_said(self.confidence_level), len(self.problems)
        if self.verdict == "undecided":
            said = f"exchanging actions saves too much in one of {count} problems"
            return f"Undecided: these rows do not show whether {said}."
        if self:
            return f"Certified: with {level} confidence exchanging actions saves too much in none of {count} problems."
        names = [printable(name) for name, each in self.pairs() if each.verdict == "refuted"]
        return f"Refuted: with {level} confidence exchanging actions saves too much in {', '.join(names)}."

    def one_by_one(self) -> list[str]:
        """Say which problems are undecided by themselves where all of them together are certified, if there are any."""
        undecided = [name for name, each in self.pairs() if each.verdict == "undecided"]
        return one_by_one("problems", undecided) if self else []

    def table(self) -> str:
        """Write a line for each problem, with limits and verdicts that hold for all together."""
        rows = [
            (
                str(name),
                measured(each.risk, 4),
                measured(each.regret, 4),
                rounded_up(each.upper),
                shown(each.max_regret),
                each.verdict,
            )
            for name, each in self.pairs()
        ]
        return in_columns(("problem", "loss", "regret", "at most", "limit", "all together"), rows)
