"""What verdicts on several parts have in common, whether the parts are groups of rows or questions about all of them.

To say that every part is within the limit needs no correction for their number: only the worst part, whichever it is,
can make that wrong. To say that some part is beyond it, or to say it of single parts, does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from calibrant.certificates.limit_words import lower_said, short_estimate, upper_said
from calibrant.core.results import SLACK, Checked, PerPart
from calibrant.core.voices import Phrase
from calibrant.core.words import printable, some_names, verdict_said

if TYPE_CHECKING:
    from calibrant.certificates.results import Certificate


def one_by_one(plural: str, undecided: Sequence[Any]) -> list[str]:
    """Say how a certified family goes with parts that are undecided by themselves, if there are any."""
    if not undecided:
        return []
    return [
        f"Certified is about all {plural} at once, which needs no correction for their number; one by one, with limits "
        f"that must hold together, {some_names(undecided)} {'is' if len(undecided) == 1 else 'are'} undecided. Both "
        "hold."
    ]


class OfShares(Checked):
    """What holds shares: of all rows, none of them above 1, or of events, which may be any number.

    Attributes
    ----------
    relative_to : str
        "rows" or "events".
    """

    relative_to: str

    def _check_shares(self, *names: str) -> None:
        """Refuse shares of all rows above 1."""
        for name in names if self.relative_to == "rows" else ():
            values = getattr(self, name)
            for value in values if isinstance(values, tuple) else (values,):
                if value > 1.0 + SLACK:
                    self._refuse(name, value, "not a finite number from 0 to 1")


class JointVerdict(OfShares, PerPart[Any]):
    """A certificate per part, and one verdict for "the error of every part is at most ``max_error``".

    Attributes
    ----------
    verdict : str
        The joint one.
    upper : tuple of float
        Per part, the upper limit at ``confidence_level`` on its own, which the joint verdict compares.
    certificates : tuple of Certificate
        Per part, at levels at which their limits hold together.
    """

    verdict: str
    max_error: float
    confidence_level: float
    upper: tuple[float, ...]

    _parts: ClassVar = "certificates"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_shares("upper")
        if len(self) != len(self.upper):
            self._refuse(self._names, self.labels, "not as many as upper limits")
        said = self.verdict_of(self.upper, self._all(), self.max_error)
        if self.verdict != said:
            self._refuse("verdict", self.verdict, f"while the {self._names}' limits say {said!r}")

    @staticmethod
    def verdict_of(upper: tuple[float, ...], certificates: tuple[Certificate, ...], max_error: float) -> str:
        """Return the joint verdict: from the upper limits alone, or from the part that is refuted."""
        if all(limit <= max_error for limit in upper):
            return "certified"
        return "refuted" if any(each.verdict == "refuted" for each in certificates) else "undecided"

    @property
    def single_verdicts(self) -> tuple[str, ...]:
        """What is said of each part, so that all of it holds together."""
        return tuple(each.verdict for each in self._all())

    @property
    def least_settled(self) -> Any:
        """The part with the largest upper limit."""
        return self.labels[int(np.argmax(self.upper))]

    @property
    def cautions(self) -> tuple[str, ...]:
        """Why verdicts would mislead whoever reads nothing else, part by part; empty when they would not."""
        return tuple(
            Phrase("In {part}: {caution}", part=self._named_part(part), caution=caution)
            for part, each in self.pairs()
            for caution in each.cautions
        )

    def __bool__(self) -> bool:
        """Return whether every part is certified to be at most ``max_error``."""
        return self.verdict == "certified"

    def _named_part(self, part: Any) -> str:
        """Name a part in a caution on it."""
        return f"group {printable(part)}"

    def _own_rows(self) -> Sequence[int]:
        """Return how many rows each part is about."""
        return [each.rows for each in self._all()]

    def _columns(self) -> dict[str, list[Any]]:
        """Return what a table of the parts holds, without their names."""
        names = ("estimate", "lower", "upper")
        columns: dict[str, list[Any]] = {name: [getattr(each, name) for each in self._all()] for name in names}
        return {
            "rows": list(self._own_rows()),
            **columns,
            "verdict": list(self.single_verdicts),
            "upper_for_joint_verdict": list(self.upper),
        }

    def lines(self) -> list[str]:
        """Write a line for each part."""
        names = [printable(part) for part in self.labels]
        width = max(map(len, names))
        return [
            f"  {name:<{width}}  {rows:>9,} {'row ' if rows == 1 else 'rows'}  estimate "
            f"{short_estimate(each.estimate)}  from {lower_said(each.lower)} to {upper_said(each.upper)}  "
            f"{verdict_said(verdict)}"
            for name, rows, each, verdict in zip(
                names, self._own_rows(), self._all(), self.single_verdicts, strict=True
            )
        ]

    def assumed(self) -> str:
        """Say what the verdicts rest on."""
        listed = dict.fromkeys(words for each in self._all() for words in each.assumptions)
        return f"This assumes that {'; '.join(listed)}."

    def named(self, verdict: str) -> str:
        """List the parts with a verdict, of many the first ones."""
        return some_names(self._with(verdict))

    def _with(self, verdict: str) -> list[Any]:
        return [part for part, said in zip(self.labels, self.single_verdicts, strict=True) if said == verdict]

    def one_by_one(self) -> list[str]:
        """Say which parts are undecided by themselves where all of them together are certified, if there are any."""
        return one_by_one(self._names, self._with("undecided")) if self else []

    def remarks(self) -> list[str]:
        """Return the cautions and notes of all parts in words."""
        return [f"Caution: {caution}" for caution in self.cautions] + [
            f"Note on {printable(part)}: {note}" for part, each in self.pairs() for note in each.notes
        ]
