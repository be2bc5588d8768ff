"""Results of comparing models: the limits of each, their differences, and the choice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant.certificates.results import Certificate, ConfidenceInterval, error_said
from calibrant.core.results import UNIT, Result, as_frame
from calibrant.core.words import in_columns, level_said, measured, printable, rounded_down, rounded_up, shown


@dataclass(frozen=True)
class ComparedModel(Result):
    """One of several models: limits for its error, its verdict, and how good its forecasts are.

    Attributes
    ----------
    name : str
        Of the model.
    interval : ConfidenceInterval
        Limits for its calibration error, true together with those of all other models.
    certificate : Certificate or None
        The verdict on it, true together with all others; None where no largest error was named.
    brier : float
        Mean of (y - p)^2, which counts calibration and sharpness both.
    """

    name: str
    interval: ConfidenceInterval
    certificate: Certificate | None
    brier: float

    _ranges: ClassVar = {"brier": UNIT}

    def __str__(self) -> str:
        judged = self.interval if self.certificate is None else self.certificate
        return f"{printable(self.name)} (Brier score {self.brier:.4f}): {judged}"


@dataclass(frozen=True)
class ModelDifference(Result):
    """What the limits of two errors say about their difference.

    Attributes
    ----------
    first, second : str
        The two models.
    estimate : float
        The error of the first on its rows minus that of the second.
    lower, upper : float
        Limits for the difference of the errors, true whenever those of the two errors are.
    """

    first: str
    second: str
    estimate: float
    lower: float
    upper: float

    _ranges: ClassVar = dict.fromkeys(("estimate", "lower", "upper"), (-1.0, 1.0))

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_order("lower", "upper")

    @classmethod
    def of(cls, first: ComparedModel, second: ComparedModel) -> ModelDifference:
        """Subtract what is known of two errors."""
        one, other = first.interval, second.interval
        return cls(
            first=first.name,
            second=second.name,
            estimate=one.estimate - other.estimate,
            lower=one.lower - other.upper,
            upper=one.upper - other.lower,
        )

    @property
    def better(self) -> str | None:
        """The model that is surely better calibrated; None when the two are not told apart."""
        return self.second if self.lower > 0.0 else self.first if self.upper < 0.0 else None

    def __str__(self) -> str:
        return ": ".join(self.cells()[k] for k in (0, 4)) + f" ({self.cells()[2]} to {self.cells()[3]})"

    def cells(self, *, better: str = "is better calibrated") -> tuple[str, ...]:
        """Return the line of this difference in a table; ``better`` says what the model with the smaller error is."""
        return (
            f"{self.first} - {self.second}",
            f"{self.estimate:+.4f}",
            rounded_down(self.lower),
            rounded_up(self.upper),
            "not told apart" if self.better is None else f"{self.better} {better}",
        )


@dataclass(frozen=True)
class ModelComparison(Result):
    """Several models side by side, with limits that hold for all of them together.

    Attributes
    ----------
    confidence_level : float
        With which all limits hold together, and so does the certificate of whichever model is chosen.
    max_error : float or None
        The largest error you can live with, where one was named.
    chosen : str or None
        Of the certified models the one with the lowest Brier score; None when none is certified, or was asked for.
    models : tuple of ComparedModel
        In the order given.
    differences : tuple of ModelDifference
        Of every two of them.
    """

    confidence_level: float
    max_error: float | None
    chosen: str | None
    models: tuple[ComparedModel, ...]
    differences: tuple[ModelDifference, ...]

    _ranges: ClassVar = dict.fromkeys(("confidence_level", "max_error"), UNIT)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.models) < 2:
            self._refuse("models", self.models, "fewer than two")
        if self.chosen != self.choice(self.models):
            self._refuse("chosen", self.chosen, f"while the certificates say {self.choice(self.models)!r}")

    @staticmethod
    def choice(models: tuple[ComparedModel, ...]) -> str | None:
        """Return, of the certified models, the one with the lowest Brier score: one may choose any of them."""
        passed = [each for each in models if each.certificate]
        return min(passed, key=lambda each: each.brier).name if passed else None

    @property
    def certified(self) -> tuple[str, ...]:
        """The models that are certified."""
        return tuple(each.name for each in self.models if each.certificate)

    @property
    def cautions(self) -> tuple[str, ...]:
        """Why the verdicts would mislead whoever reads nothing else; empty when they would not."""
        found = [each.certificate.cautions for each in self.models if each.certificate is not None]
        return tuple(dict.fromkeys(caution for cautions in found for caution in cautions))

    def __getitem__(self, name: str) -> ComparedModel:
        """Return one of the models."""
        for each in self.models:
            if each.name == name:
                return each
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        """Go through the models' names, as through the keys of a dict."""
        return (each.name for each in self.models)

    def __len__(self) -> int:
        return len(self.models)

    def frame(self) -> Any:
        """Return one row per model."""
        names = ("rows", "estimate", "lower", "upper")
        columns: dict[str, list[Any]] = {"model": list(self)}
        columns |= {name: [getattr(each.interval, name) for each in self.models] for name in names}
        columns["brier"] = [each.brier for each in self.models]
        if self.max_error is not None:
            columns["verdict"] = [_verdict(each) for each in self.models]
        return as_frame(columns)

    def __str__(self) -> str:
        level = level_said(self.confidence_level)
        assumed = dict.fromkeys(words for each in self.models for words in each.interval.assumptions)
        return "\n".join(
            [
                self.headline(),
                self.table(),
                "",
                "Differences of the errors, with limits that follow from those above:",
                self.difference_table(),
                *([] if self.max_error is None else ["", self._choice_said(self.max_error, level)]),
                *(f"Caution: {caution}" for caution in self.cautions),
                f"This assumes that {'; '.join(assumed)}.",
                *self.remarks(),
            ]
        )

    def remarks(self) -> list[str]:
        """Return the notes on all models in words."""
        return [f"Note on {printable(each.name)}: {note}" for each in self.models for note in each.interval.notes]

    def headline(self) -> str:
        """Say what the table shows."""
        return (
            f"The {error_said(self.models[0].interval)} of {len(self.models)} models, with limits that hold "
            f"for all of them together with {level_said(self.confidence_level)} confidence:"
        )

    def table(self) -> str:
        """Write a line for each model."""
        rows = [
            (
                each.name,
                f"{each.interval.rows:,}",
                measured(each.interval.estimate, 4),
                rounded_down(each.interval.lower),
                rounded_up(each.interval.upper),
                f"{each.brier:.4f}",
                _verdict(each),
            )
            for each in self.models
        ]
        last = "" if self.max_error is None else "verdict"
        return in_columns(("model", "rows", "estimate", "from", "to", "Brier", last), rows)

    def difference_table(self) -> str:
        """Write a line for every two models."""
        better = "leaves less to save" if self._is_of_savings else "is better calibrated"
        rows = [each.cells(better=better) for each in self.differences]
        return in_columns(("difference", "estimate", "from", "to", ""), rows)

    @property
    def _is_of_savings(self) -> bool:
        return self.models[0].interval.thresholds is not None

    def error_bounded(self, limit: float) -> str:
        """Say what a certified model is certified to have."""
        if self._is_of_savings:
            return f"a {error_said(self.models[0].interval)} of at most {shown(limit)} per case"
        return f"an error of at most {shown(limit)}"

    def _choice_said(self, max_error: float, level: str) -> str:
        count = len(self.models)
        if self.chosen is None:
            return f"None of the {count} models is certified to have {self.error_bounded(max_error)}."
        others = [printable(name) for name in self.certified if name != self.chosen]
        too = f" ({', '.join(others)} too)" if others else ""
        return (
            f"Certified: {printable(self.chosen)}{too}, {self.error_bounded(max_error)} with {level} "
            f"confidence, having chosen among {count}. Of the certified models it has the lowest Brier score. "
            "(Verdicts are one-sided, so that they may come a little before the limits shown do.)"
        )


def _verdict(model: ComparedModel) -> str:
    return "" if model.certificate is None else model.certificate.verdict
