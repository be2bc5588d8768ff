"""Results of certifying forecasts of a real outcome: at every threshold, and by PIT values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant.certificates.joint_levels import level_of_both
from calibrant.certificates.results import VERDICTS, verdict_of
from calibrant.core.results import UNIT, Result
from calibrant.core.words import (
    counted,
    hundredfold,
    level_said,
    measured,
    percent,
    rounded_down,
    rounded_up,
    shown,
)
from calibrant.measures.results import WorstInterval
from calibrant.measures.threshold_results import at_threshold
from calibrant.rows.distributions import FORECAST_KINDS


def _limits_said(lower: float, upper: float, confidence_level: float) -> str:
    each, both = level_said(confidence_level), level_said(level_of_both(confidence_level))
    return (
        f"at least {rounded_down(lower)} and at most {rounded_up(upper)}, with {each} confidence each, {both} for both"
    )


@dataclass(frozen=True)
class ThresholdCertificate(Result):
    """A verdict on "the threshold calibration error is at most ``max_error``", with its guarantee.

    Attributes
    ----------
    verdict : str
        "certified" (``upper <= max_error``), "refuted" (``lower > max_error``) or "undecided".
    estimate : float
        The threshold calibration error of these rows.
    lower, upper : float
        Limits for that of the population, each one-sided at ``confidence_level``.
    max_error, confidence_level : float
        The limit asked about, and the confidence of the verdict.
    rows : int
        Rows.
    forecast : str
        "ensemble", "quantiles" or "cdf".
    members : int or None
        Members, or quantiles, of each row; None for distribution functions.
    all_thresholds : bool
        Whether the verdict is about all real thresholds, or about those of a list.
    threshold_count : int
        Thresholds of the list, or all at which any forecast or outcome changes.
    threshold : float
        Where these rows are worst calibrated.
    worst_interval : WorstInterval
        The interval of forecasts at that threshold, and the direction.
    assumptions : tuple of str
        What the guarantee rests on.
    cautions : tuple of str
        Why the verdict would mislead whoever reads nothing else; empty when it would not.
    notes : tuple of str
        What to keep in mind for these forecasts.
    """

    verdict: str
    estimate: float
    lower: float
    upper: float
    max_error: float
    confidence_level: float
    rows: int
    forecast: str
    members: int | None
    all_thresholds: bool
    threshold_count: int
    threshold: float
    worst_interval: WorstInterval
    assumptions: tuple[str, ...]
    cautions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    _ranges: ClassVar = dict.fromkeys(("estimate", "lower", "upper", "max_error", "confidence_level"), UNIT)
    _words: ClassVar = {"verdict": VERDICTS, "forecast": FORECAST_KINDS}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_order("lower", "upper")
        said = verdict_of(self.lower, self.upper, self.max_error)
        if self.verdict != said:
            self._refuse("verdict", self.verdict, f"while its limits say {said!r}")

    def __bool__(self) -> bool:
        """Return whether the error is certified to be at most ``max_error``."""
        return self.verdict == "certified"

    def frame(self, backend: Any = None) -> Any:
        """Return one row with the verdict and its numbers."""
        names = ("verdict", "estimate", "lower", "upper", "max_error", "confidence_level", "rows", "threshold")
        return self._framed({name: [getattr(self, name)] for name in names}, backend)

    def __str__(self) -> str:
        return "\n".join(
            [
                self.finding(),
                f"Estimate {measured(self.estimate, 4)}; {self._limits()} ({counted(self.rows, 'row')}).",
                at_threshold(self.threshold, self.worst_interval),
                *(f"Caution: {caution}" for caution in self.cautions),
                f"This assumes that {'; '.join(self.assumptions)}.",
                *(f"Note: {note}" for note in self.notes),
            ]
        )

    def _limits(self) -> str:
        return _limits_said(self.lower, self.upper, self.confidence_level)

    def finding(self) -> str:
        """Say the verdict, and what it means in cases."""
        any_, some = ("any threshold", "some threshold")
        if not self.all_thresholds:
            any_, some = ("any listed threshold", "some listed threshold")
        limit, level = shown(self.max_error), level_said(self.confidence_level)
        if self.verdict == "undecided":
            return f"Undecided: these rows do not show whether the threshold calibration error is at most {limit}."
        side = "at most" if self else "above"
        cases = f"{hundredfold(self.max_error)} per 100 rows"
        meaning = f"At {any_} no interval of forecasts is off by more than {cases}."
        if not self:
            meaning = f"At {some} an interval of forecasts is off by more than {cases}."
        return (
            f"{self.verdict.capitalize()}: with {level} confidence the threshold calibration error of the population "
            f"is {side} {limit}. {meaning}"
        )


@dataclass(frozen=True)
class PitCalibration(Result):
    """How far PIT values are from uniform: do outcomes fall between forecast quantiles as often as they should?

    Attributes
    ----------
    estimate : float
        Kuiper's statistic: the largest |share of PIT values in J - length of J| over intervals J in [0, 1].
    lower, upper : float
        Limits for the population's, each one-sided at ``confidence_level``.
    confidence_level : float
        Of each limit, and of the verdict.
    rows : int
        Rows.
    low, high : float
        The interval of PIT values that attains the estimate.
    direction : str
        "too many" outcomes in it, "too few", or "none" when no interval is off.
    share : float
        Share of PIT values in it.
    shares : tuple of float
        Share of PIT values in each tenth of [0, 1]: the histogram that people look at.
    forecast : str
        "ensemble", "quantiles" or "cdf".
    randomised : bool
        Whether PIT values were drawn inside steps.
    max_error : float or None
        The limit asked about, if any.
    verdict : str or None
        "certified", "refuted" or "undecided"; None where no limit was asked about.
    assumptions : tuple of str
        What the limits rest on.
    notes : tuple of str
        What to keep in mind.
    """

    estimate: float
    lower: float
    upper: float
    confidence_level: float
    rows: int
    low: float
    high: float
    direction: str
    share: float
    shares: tuple[float, ...]
    forecast: str
    randomised: bool
    max_error: float | None
    verdict: str | None
    assumptions: tuple[str, ...]
    notes: tuple[str, ...] = ()

    _ranges: ClassVar = dict.fromkeys(
        ("estimate", "lower", "upper", "confidence_level", "low", "high", "share", "shares", "max_error"), UNIT
    )
    _words: ClassVar = {
        "forecast": FORECAST_KINDS,
        "direction": ("too many", "too few", "none"),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_order("lower", "upper")
        self._check_order("low", "high")
        said = None if self.max_error is None else verdict_of(self.lower, self.upper, self.max_error)
        if self.verdict != said:
            self._refuse("verdict", self.verdict, f"while its limits say {said!r}")

    def __bool__(self) -> bool:
        """Return whether the deviation is certified to be at most ``max_error``."""
        return self.verdict == "certified"

    def frame(self, backend: Any = None) -> Any:
        """Return one row per tenth of [0, 1]: its ends, and the share of PIT values in it."""
        count = len(self.shares)
        low = [number / count for number in range(count)]
        return self._framed({"low": low, "high": [*low[1:], 1.0], "share": list(self.shares)}, backend)

    def __str__(self) -> str:
        return "\n".join(
            [
                self.finding(),
                self.where(),
                f"This assumes that {'; '.join(self.assumptions)}.",
                *(f"Note: {note}" for note in self.notes),
            ]
        )

    def finding(self) -> str:
        """Say the verdict, or what was found without one."""
        numbers = (
            f"Estimate {measured(self.estimate, 4)}; {_limits_said(self.lower, self.upper, self.confidence_level)} "
            f"({counted(self.rows, 'row')})."
        )
        if self.max_error is None or self.verdict is None:
            return f"How far PIT values are from uniform. {numbers}"
        points = f"{hundredfold(self.max_error)} points"
        claims = {
            "certified": "no interval of PIT values holds a share that is off by more than",
            "refuted": "some interval of PIT values holds a share that is off by more than",
        }
        if self.verdict not in claims:
            return f"Undecided: these rows do not show whether shares of PIT values are off by {points}. {numbers}"
        level = level_said(self.confidence_level)
        return f"{self.verdict.capitalize()}: with {level} confidence {claims[self.verdict]} {points}. {numbers}"

    def where(self) -> str:
        """Say which interval of PIT values is off most."""
        if self.direction == "none":
            return "No interval of PIT values is off."
        return (
            f"PIT values between {self.low:.4g} and {self.high:.4g} are {self.direction}: {percent(self.share)} of the "
            f"rows, where {percent(self.high - self.low)} were forecast."
        )
