"""The difference of two models, with limits and what they say: better, worse, not worse by more than a margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant.core.results import UNIT, Result
from calibrant.core.words import printable, rounded_down, rounded_up, shown

VERDICTS = ("better", "worse", "non-inferior", "not told apart")
"""What limits of a difference may say of the first of two models."""


def verdict_of_limits(lower: float, upper: float, margin: float | None, *, larger_is_better: bool) -> str:
    """Return what limits of a difference say of the first of two models."""
    least, most = (-upper, -lower) if larger_is_better else (lower, upper)  # of how much worse the first is
    if most < 0.0:
        return "better"
    if least > 0.0:
        return "worse"
    return "non-inferior" if margin is not None and most <= margin else "not told apart"


@dataclass(frozen=True)
class ModelDifference(Result):
    """The difference of the errors, or scores, of two models, with limits.

    Attributes
    ----------
    first, second : str
        The two models.
    estimate : float
        The error, or score, of the first on its rows minus that of the second.
    lower, upper : float
        Limits for the difference, true together with those of all other differences.
    verdict : str
        What they say of the first: "better", "worse", "non-inferior" (not worse by more than the margin), or "not told
        apart".
    paired : bool
        Whether the limits are those of the difference row by row; otherwise they follow from those of the two errors.
    margin : float or None
        By how much the first may be worse, where that was named.
    threshold : float or None
        The threshold from which people act, for scores of decisions.
    larger_is_better : bool
        Whether a larger score is the better one.
    where : str or None
        Where the two differ most on these rows, in words; None where that was not looked at.
    """

    first: str
    second: str
    estimate: float
    lower: float
    upper: float
    verdict: str
    paired: bool = False
    margin: float | None = None
    threshold: float | None = None
    larger_is_better: bool = False
    where: str | None = None

    _ranges: ClassVar = {"threshold": UNIT}
    _words: ClassVar = {"verdict": VERDICTS}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_order("lower", "upper")
        said = verdict_of_limits(self.lower, self.upper, self.margin, larger_is_better=self.larger_is_better)
        if self.verdict != said:
            self._refuse("verdict", self.verdict, f"while the limits say {said!r}")

    @classmethod
    def between(
        cls,
        first: str,
        second: str,
        estimate: float,
        limits: tuple[float, float],
        *,
        margin: float | None = None,
        larger_is_better: bool = False,
        **rest: Any,
    ) -> ModelDifference:
        """Return a difference with its verdict; where limits that were found apart cross, both are the upper."""
        upper = limits[1]
        lower = min(limits[0], upper)
        verdict = verdict_of_limits(lower, upper, margin, larger_is_better=larger_is_better)
        both = {"margin": margin, "larger_is_better": larger_is_better, **rest}
        return cls(first, second, estimate, lower, upper, verdict, **both)

    @property
    def better(self) -> str | None:
        """The model that is surely better; None when the two are not told apart."""
        return {"better": self.first, "worse": self.second}.get(self.verdict)

    @property
    def non_inferior(self) -> tuple[str, ...]:
        """The models that are not worse than the other by more than the margin; empty where none was named."""
        if self.margin is None:
            return ()
        least, most = (-self.upper, -self.lower) if self.larger_is_better else (self.lower, self.upper)
        held = ((self.first, most), (self.second, -least))
        return tuple(name for name, worse in held if worse <= self.margin)

    def __str__(self) -> str:
        cells = self.cells()
        return f"{printable(cells[0])}: {printable(cells[4])} ({cells[2]} to {cells[3]})"

    def cells(self, *, better: str = "is better calibrated") -> tuple[str, ...]:
        """Return the line of this difference in a table; ``better`` says what the model with the smaller error is."""
        said = "not told apart" if self.better is None else f"{self.better} {better}"
        if self.margin is not None and self.non_inferior:
            within = f"by more than {shown(self.margin)}"
            both = len(self.non_inferior) == 2
            so = f"neither is worse {within}" if both else f"{self.non_inferior[0]} is not worse {within}"
            if self.better is None:
                said = so
            elif both:
                said += f", not {within}"
        place = "" if self.threshold is None else f" at {self.threshold:g}"
        return (
            f"{self.first} - {self.second}{place}",
            f"{self.estimate:+.4f}",
            rounded_down(self.lower),
            rounded_up(self.upper),
            said,
        )
