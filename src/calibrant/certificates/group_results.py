"""Results of looking for the worst group: for whom forecasts are wrong, and what can be said of every group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant.certificates.limit_words import lower_said, upper_said
from calibrant.certificates.results import verdict_of
from calibrant.core.results import UNIT, Result
from calibrant.core.types import Label
from calibrant.core.words import (
    counted,
    hundredfold,
    in_columns,
    level_said,
    measured,
    percent,
    printable,
    shown,
    significant,
)
from calibrant.measures.results import ends_said

GROUP_KINDS = ("all", "known", "missing", "at most", "at least", "is")
"""All rows; those of which a feature is known, or missing; those up to, or from, a value; those of a label."""

LOOKED_AT = "half-line or label of these features"
"""Which groups the limits are about, in few words: ranges and combinations of features are not among them."""

_NEARLY_ALL = 0.8  # of the rows, and of a group's error: from there on it is not the group that is wrong

_SYMBOLS = {"at most": "<=", "at least": ">=", "is": "is"}


@dataclass(frozen=True)
class FoundGroup(Result):
    """A group of rows, and the interval of forecasts on which it is worst calibrated.

    Attributes
    ----------
    feature : str or None
        The feature that tells the group from other rows; None for all rows.
    kind : str
        "at most" or "at least" a value, "is" a label, "missing" or "known" (whether the feature has a value), "all".
    value : str, number, or None
        The value or label; it belongs to the group.
    low, high : float
        Smallest and largest forecast inside; the interval includes both.
    direction : str
        "too high" (fewer events than forecast), "too low", or "none" when no interval is off.
    error : float
        |mean of (y - p) over all rows, counting only rows of the group with forecasts in the interval|: a share of all
        rows, not of the group's.
    rows : int
        Rows of the group with forecasts in the interval.
    group_rows : int
        Rows of the group.
    share : float
        The share of the total weight that the former have.
    mean_forecast, mean_outcome : float
        Weighted means on them.
    """

    feature: str | None
    kind: str
    value: Label | None
    low: float
    high: float
    direction: str
    error: float
    rows: int
    group_rows: int
    share: float
    mean_forecast: float
    mean_outcome: float

    _ranges: ClassVar = dict.fromkeys(("low", "high", "error", "share", "mean_forecast", "mean_outcome"), UNIT)
    _words: ClassVar = {"direction": ("too high", "too low", "none"), "kind": GROUP_KINDS}

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.feature is None) != (self.kind == "all"):
            self._refuse("feature", self.feature, f"while the group is of kind {self.kind!r}")
        if (self.value is None) != (self.kind in ("all", "known", "missing")):
            self._refuse("value", self.value, f"while the group is of kind {self.kind!r}")

    @property
    def bias(self) -> float:
        """Mean outcome minus mean forecast of the group's rows in the interval."""
        return self.mean_outcome - self.mean_forecast

    @property
    def group(self) -> str:
        """The group in words, as in "age >= 62"."""
        if self.feature is None:
            return "all rows"
        name = printable(self.feature)
        if self.kind in ("known", "missing"):
            return f"{name} is {self.kind}"
        value = f"{self.value:.6g}" if isinstance(self.value, float) else printable(self.value)
        return f"{name} {_SYMBOLS[self.kind]} {value}"

    @property
    def interval(self) -> str:
        """The interval of forecasts in words, as in "forecast from 0.31 to 0.58"."""
        if self.low == self.high:
            return f"forecast of exactly {significant(self.low)}"
        low, high = ends_said(self.low, self.high)
        return f"forecast from {low} to {high}"

    def __str__(self) -> str:
        if self.direction == "none":
            return f"{self.group}: on no interval of forecasts are these {counted(self.group_rows, 'row')} off."
        points = measured(100.0 * abs(self.bias), 1)
        return (
            f"{self.group} and {self.interval}: on {counted(self.rows, 'row')} forecasts are {points} points "
            f"{self.direction} (mean forecast {percent(self.mean_forecast)}, event rate {percent(self.mean_outcome)})."
        )


@dataclass(frozen=True)
class WorstGroup(Result):
    """The group and the interval of forecasts that are worst calibrated among all of them, with limits for every one.

    The groups are the half-lines {feature <= a} and {feature >= a} of every ordered feature, the labels of the others,
    the rows without a value, and all rows. Errors are shares of all rows. Of other groups less is known: a range of an
    ordered feature is the difference of two half-lines, so that it can be off by twice ``upper``; of combinations of
    features nothing is said.

    Attributes
    ----------
    verdict : str or None
        On "no such group has an error above ``max_error``": "certified" (``upper <= max_error``), "refuted" (``lower >
        max_error``) or "undecided"; None where no limit was asked about.
    worst : FoundGroup
        The worst group of these rows. It was found by looking, so that its error is too large on average.
    lower, upper : float
        Limits of the largest error of any such group in the population, each one-sided at ``confidence_level``.
    max_error : float or None
        The limit asked about.
    confidence_level : float
        Of each limit, and of the verdict.
    overall : float
        The Cutoff calibration error of all rows together, without groups.
    features : tuple of str
        The features, in the order in which they were given.
    by_feature : tuple of FoundGroup
        The worst group of each.
    rows : int
        Rows.
    n_eff : float
        Rows of equal weight that would say as much; n for unit weights.
    assumptions : tuple of str
        What the limits rest on.
    notes : tuple of str
        What to keep in mind for these data.
    """

    verdict: str | None
    worst: FoundGroup
    lower: float
    upper: float
    max_error: float | None
    confidence_level: float
    overall: float
    features: tuple[str, ...]
    by_feature: tuple[FoundGroup, ...]
    rows: int
    n_eff: float
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()

    _ranges: ClassVar = dict.fromkeys(("lower", "upper", "max_error", "confidence_level", "overall"), UNIT)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_order("lower", "upper")
        if not len(self.features) == len(self.by_feature) > 0:
            self._refuse("features", self.features, "not as many as groups, or none")
        said = None if self.max_error is None else verdict_of(self.lower, self.upper, self.max_error)
        if self.verdict != said:
            self._refuse("verdict", self.verdict, f"while its limits say {said!r}")

    @property
    def error(self) -> float:
        """The error of the worst group of these rows."""
        return self.worst.error

    @property
    def of_all_rows(self) -> bool:
        """Whether the worst group is nearly all rows, and these are about as far off: no group stands out then."""
        of_rows = self.worst.kind == "all" or self.worst.group_rows >= _NEARLY_ALL * self.rows
        return of_rows and self.overall >= _NEARLY_ALL * self.error

    def __bool__(self) -> bool:
        """Return whether every group is certified to have an error of at most ``max_error``."""
        return self.verdict == "certified"

    def frame(self, backend: Any = None) -> Any:
        """Return the worst group of each feature, a row for each."""
        names = ("group", "low", "high", "direction", "error", "rows", "group_rows", "bias")
        columns = {name: [getattr(each, name) for each in self.by_feature] for name in names}
        return self._framed({"feature": list(self.features), **columns}, backend)

    def __str__(self) -> str:
        return "\n".join(
            [
                *([] if self.verdict is None else [self.finding()]),
                self.where(),
                self.numbers(),
                self.action(),
                *self.table(),
                f"This assumes that {'; '.join(self.assumptions)}.",
                *(f"Note: {note}" for note in self.notes),
            ]
        )

    def finding(self) -> str:
        """Say the verdict on the limit asked about."""
        if self.max_error is None:
            return ""
        level, limit = level_said(self.confidence_level), shown(self.max_error)
        if self.verdict == "undecided":
            return f"Undecided: these rows do not show whether some {LOOKED_AT} has an error above {limit}."
        if self:
            return (
                f"Certified: with {level} confidence no {LOOKED_AT} is off by more than "
                f"{hundredfold(self.max_error)} per 100 rows of all, on any interval of forecasts."
            )
        return (
            f"Refuted: with {level} confidence some {LOOKED_AT} is off by more than "
            f"{hundredfold(self.max_error)} per 100 rows of all, on some interval of forecasts."
        )

    def where(self) -> str:
        """Say for whom these rows are worst calibrated."""
        if self.worst.direction == "none":
            return f"No {LOOKED_AT} is off on any interval of forecasts."
        points, worst = measured(100.0 * abs(self.worst.bias), 1), self.worst
        return (
            f"Worst on {worst.group} and {worst.interval}: {worst.rows:,} of {counted(self.rows, 'row')}, {points} "
            f"points {worst.direction} on average (mean forecast {percent(worst.mean_forecast)}, event rate "
            f"{percent(worst.mean_outcome)})."
        )

    def numbers(self) -> str:
        """Say the error of the worst group beside that of all rows, and the limits."""
        level = level_said(self.confidence_level)
        return (
            f"Spread over all rows that is {measured(100.0 * self.error, 2)} per 100 rows (error "
            f"{measured(self.error)}); without groups the Cutoff error is {measured(self.overall)}. In the population "
            f"the worst group's error is from {lower_said(self.lower)} to {upper_said(self.upper)}, each limit with "
            f"{level} confidence and for every {LOOKED_AT} at once."
        )

    def action(self) -> str:
        """Say what a repair of the group's forecasts could save."""
        alone = "" if self.worst.kind == "all" else " of this group alone"
        return (
            f"Action: on these rows no non-decreasing recalibration{alone} saves more than {measured(self.error)} per "
            "case, counted over all cases, at any threshold; in the population none of any half-line or label saves "
            f"more than {upper_said(self.upper)}."
        )

    def table(self) -> list[str]:
        """Write the worst group of each feature, if there are several."""
        if len(self.by_feature) < 2:
            return []
        order = sorted(range(len(self.features)), key=lambda place: -self.by_feature[place].error)
        lines = []
        for place in order:
            each = self.by_feature[place]
            forecasts = each.interval.removeprefix("forecast ")
            lines.append(
                (self.features[place], each.group, forecasts, f"{each.rows:,}", measured(each.error), each.direction)
            )
        return ["By feature:", in_columns(("feature", "worst group", "forecasts", "rows", "error", "direction"), lines)]
