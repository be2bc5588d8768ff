"""Results of testing several groups at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from calibrant.certificates.results import USUAL_LEVEL, CalibrationTest
from calibrant.core.results import Result, as_frame
from calibrant.core.types import Label
from calibrant.core.words import in_columns, printable


@dataclass(frozen=True)
class GroupCalibrationTests(Result):
    """A test of perfect calibration per group, and what they say together.

    Each group is tested at the level divided by the number of groups, so that calibrated forecasts are rejected in
    some group no more often than the level says.

    Attributes
    ----------
    groups : tuple
        The groups' labels, sorted.
    tests : tuple of CalibrationTest
        Per group; each p-value is that of the group on its own.
    """

    groups: tuple[Label, ...]
    tests: tuple[CalibrationTest, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not len(self.groups) == len(self.tests) > 0:
            self._refuse("groups", self.groups, "not as many as tests, or none")

    @property
    def pvalue(self) -> float:
        """The joint p-value: the smallest one times the number of groups, and 1 at most."""
        return min(len(self.tests) * min(each.pvalue for each in self.tests), 1.0)

    def each_level(self, level: float = USUAL_LEVEL) -> float:
        """Return the level at which each group is tested, for all of them to be tested together at the one given."""
        return level / len(self.tests)

    def rejected(self, level: float = USUAL_LEVEL) -> tuple[Any, ...]:
        """Return the groups in which perfect calibration is rejected, all groups together at a level."""
        each = self.each_level(level)
        return tuple(label for label, test in zip(self.groups, self.tests, strict=True) if test.rejected(each))

    def __getitem__(self, group: Any) -> CalibrationTest:
        """Return the test of a group."""
        if group not in self.groups:
            raise KeyError(group)
        return self.tests[self.groups.index(group)]

    def __iter__(self) -> Iterator[Any]:
        """Go through the groups' labels, as through the keys of a dict."""
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def frame(self) -> Any:
        """Return one row per group."""
        columns = {name: [getattr(each, name) for each in self.tests] for name in ("rows", "statistic", "pvalue")}
        return as_frame({"group": list(self.groups), **columns})

    def __str__(self) -> str:
        return self.said(USUAL_LEVEL)

    def said(self, level: float, *, by: str | None = None) -> str:
        """Say what was found at a level for all groups together.

        Parameters
        ----------
        level : float
            How often calibrated forecasts may be rejected in some group.
        by : str, optional
            What the groups are groups of.
        """
        rejected = self.rejected(level)
        which = f"in {', '.join(printable(label) for label in rejected)}" if rejected else "in any of them"
        of = "" if by is None else f" of {by!r}"
        rows = [
            (
                str(label),
                f"{each.rows:,}",
                f"{each.statistic:.4g}",
                f"{each.pvalue:.4g}",
                "rejected" if label in rejected else "not rejected",
            )
            for label, each in zip(self.groups, self.tests, strict=True)
        ]
        assumed = dict.fromkeys(words for each in self.tests for words in each.assumptions)
        return "\n".join(
            [
                f"{'Rejected' if rejected else 'Not rejected'}: perfect calibration is {'' if rejected else 'not '}"
                f"rejected {which}, at the {100.0 * level:g}% level for all {len(self.groups)} groups{of} together "
                f"(each at {100.0 * self.each_level(level):.3g}%).",
                in_columns(("group", "rows", "statistic", "p-value", "verdict"), rows),
                f"This assumes that {'; '.join(assumed)}.",
            ]
        )
