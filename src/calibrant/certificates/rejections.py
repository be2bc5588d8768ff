"""Results of testing: p-values, of all rows and of several groups at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant.certificates.clusters import Clusters
from calibrant.core.results import UNIT, PerGroup, Result
from calibrant.core.types import Label
from calibrant.core.voices import Either
from calibrant.core.words import counted, in_columns, printable

USUAL_LEVEL = 0.05

_HOW = {"asymptotic": "large-sample law", "evidence": "bets on whole clusters"}


@dataclass(frozen=True)
class CalibrationTest(Result):
    """What a test of perfect calibration found.

    Attributes
    ----------
    test : str
        "cutoff" (looks at every interval of forecasts) or "spiegelhalter" (looks in one direction).
    statistic : float
        The Cutoff calibration error of these rows, or Spiegelhalter's z.
    pvalue : float
        How probable a statistic at least as extreme is when the forecasts are perfectly calibrated.
    method : str
        "exact" (the law of the statistic given these forecasts, enumerated or simulated) or "asymptotic" (its limit for
        many rows, or many clusters); "evidence" for rows in clusters (what bets on whole clusters gained, the p-value
        being one over it).
    rows : int
        Rows.
    n_resamples : int or None
        Simulated data sets; None when nothing was simulated.
    assumptions : tuple of str
        What the p-value rests on.
    notes : tuple of str
        What to keep in mind for these data.
    clusters : Clusters or None
        What the clusters of the rows are, where they were named; None for independent rows.
    """

    test: str
    statistic: float
    pvalue: float
    method: str
    rows: int
    n_resamples: int | None
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()
    clusters: Clusters | None = None

    _ranges: ClassVar = {"pvalue": UNIT}
    _words: ClassVar = {"test": ("cutoff", "spiegelhalter")}

    def __str__(self) -> str:
        return self.said(USUAL_LEVEL)

    def rejected(self, level: float = USUAL_LEVEL) -> bool:
        """Return whether perfect calibration is rejected at a level: when the p-value is at most that.

        Parameters
        ----------
        level : float
            How often calibrated forecasts may be rejected.
        """
        return self.pvalue <= level

    def said(self, level: float) -> str:
        """Say what was found at a level: perfect calibration is rejected when the p-value is at most that.

        Parameters
        ----------
        level : float
            How often calibrated forecasts may be rejected.
        """
        if self.rejected(level):
            meaning = (
                "This says that the forecasts are off, not by how much: with many rows a harmless error is rejected "
                "too, and a large p-value would not have been a certificate of calibration."
            )
        else:
            meaning = (
                "A large p-value is no certificate of calibration: too few rows hide any error, and only an upper "
                f"limit for the error, as {Either('certify()', 'calibrant certify')} gives, says how large it may be."
            )
        basis = f"This assumes that {'; '.join(self.assumptions)}."
        return "\n".join([f"{self.finding(level)} {meaning}", basis, *(f"Note: {note}" for note in self.notes)])

    def finding(self, level: float) -> str:
        """Say in one sentence whether perfect calibration is rejected at a level."""
        name = "Spiegelhalter's z" if self.test == "spiegelhalter" else "Cutoff calibration error"
        rows = counted(self.rows, "row")
        if self.clusters is not None:
            rows = f"{rows} in {counted(self.clusters.count, 'cluster')}"
        how = _HOW.get(self.method, "all possible outcomes")
        if self.n_resamples is not None:
            how = f"{self.n_resamples:,} resamples"
        return (
            f"Perfect calibration of these forecasts is {'' if self.rejected(level) else 'not '}rejected at the "
            f"{100.0 * level:g}% level (p-value {self.pvalue:.4g}, {name} {self.statistic:.4g}, {rows}, {how})."
        )


@dataclass(frozen=True)
class GroupCalibrationTests(PerGroup[CalibrationTest], Result):
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

    _parts: ClassVar = "tests"

    @property
    def pvalue(self) -> float:
        """The joint p-value: the smallest one times the number of groups, and 1 at most."""
        return min(len(self.tests) * min(each.pvalue for each in self.tests), 1.0)

    def each_level(self, level: float = USUAL_LEVEL) -> float:
        """Return the level at which each group is tested, for all of them to be tested together at the one given."""
        return level / len(self.tests)

    def rejected(self, level: float = USUAL_LEVEL) -> tuple[Any, ...]:
        """Return the groups in which perfect calibration is rejected, all groups together at a level.

        Parameters
        ----------
        level : float
            How often any group at all may be rejected, where forecasts are calibrated in every one.
        """
        each = self.each_level(level)
        return tuple(label for label, test in self.pairs() if test.rejected(each))

    def frame(self, backend: Any = None) -> Any:
        """Return one row per group."""
        columns = {name: [getattr(each, name) for each in self.tests] for name in ("rows", "statistic", "pvalue")}
        return self._framed({"group": list(self.groups), **columns}, backend)

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
        assumed = dict.fromkeys(words for each in self.tests for words in each.assumptions)
        basis = f"This assumes that {'; '.join(assumed)}."
        return "\n".join([self.finding(level, by=by), self.table(level), basis, *self.remarks()])

    def remarks(self) -> list[str]:
        """Return the notes of all groups in words."""
        return [f"Note on {printable(label)}: {note}" for label, each in self.pairs() for note in each.notes]

    def finding(self, level: float, *, by: str | None = None) -> str:
        """Say in which groups perfect calibration is rejected."""
        rejected = self.rejected(level)
        which = f"in {', '.join(printable(label) for label in rejected)}" if rejected else "in any of them"
        of = "" if by is None else f" of {by!r}"
        return (
            f"{'Rejected' if rejected else 'Not rejected'}: perfect calibration is {'' if rejected else 'not '}"
            f"rejected {which}, at the {100.0 * level:g}% level for all {len(self.groups)} groups{of} together "
            f"(each at {100.0 * self.each_level(level):.3g}%)."
        )

    def table(self, level: float) -> str:
        """Write a line for each group."""
        rejected = self.rejected(level)
        rows = [
            (
                str(label),
                f"{each.rows:,}",
                f"{each.statistic:.4g}",
                f"{each.pvalue:.4g}",
                "rejected" if label in rejected else "not rejected",
            )
            for label, each in self.pairs()
        ]
        return in_columns(("group", "rows", "statistic", "p-value", "verdict"), rows)
