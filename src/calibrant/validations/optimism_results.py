"""What an internal validation found: each statistic as it looks, and without optimism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from calibrant.core.results import PerPart, Result
from calibrant.core.words import counted, in_columns, rounded
from calibrant.validations.statistics import title_of
from calibrant.validations.tables import latex_table, markdown_table

_COLUMNS = ("apparent", "training", "test", "optimism", "corrected")
_HEADS = ("Statistic", "Apparent", "Training", "Test", "Optimism", "Corrected")


@dataclass(frozen=True)
class OptimismCorrected(Result):
    """One statistic of a model, on the rows that it was fitted to and corrected for that.

    Attributes
    ----------
    name : str
        Of the statistic.
    apparent : float or None
        Its value on the rows that the model was fitted to; None where it is undefined.
    training : float or None
        Mean over resamples of its value on the rows of the resample; for cross-validation the apparent value.
    test : float or None
        Mean of its value on all rows, by fits to resamples; for cross-validation, on rows that a fit has not seen.
    optimism : float or None
        ``training - test``: by how much the model looks better (or, for an error, smaller) than it is.
    corrected : float or None
        ``apparent - optimism``, which for cross-validation is ``test``: what to expect on new rows. None where too many
        fits leave the statistic undefined; for the bootstrap also where there is no apparent value.
    n_failed : int
        Resamples (or repeats) in which it is undefined.
    """

    name: str
    apparent: float | None = None
    training: float | None = None
    test: float | None = None
    optimism: float | None = None
    corrected: float | None = None
    n_failed: int = 0

    def __str__(self) -> str:
        return (
            f"{title_of(self.name)} {rounded(self.apparent)} on the rows it was fitted to, {rounded(self.corrected)} "
            f"corrected for optimism ({rounded(self.optimism)})"
        )


@dataclass(frozen=True)
class InternalValidation(PerPart[OptimismCorrected], Result):
    """A model's numbers corrected for optimism, one for each statistic: ``found["auroc"].corrected``.

    Attributes
    ----------
    names : tuple of str
        The statistics.
    parts : tuple of OptimismCorrected
        Each of them, in their order.
    resampling : str
        "bootstrap" or "cross_validation".
    rows, events : int
        How many rows, and how many of them are events.
    smoother : str
        The calibration curve behind ICI, E50, E90, Emax and ECI.
    estimator : str
        What was fitted, by the name of its class.
    n_resamples : int or None
        Resamples of the bootstrap; None for cross-validation.
    folds, repeats : int or None
        Of the cross-validation; None for the bootstrap.
    clusters : int or None
        How many clusters were drawn or divided as a whole; None for rows.
    notes : tuple of str
        What to keep in mind when reading the numbers.
    """

    names: tuple[str, ...]
    parts: tuple[OptimismCorrected, ...]
    resampling: str
    rows: int
    events: int
    smoother: str
    estimator: str
    n_resamples: int | None = None
    folds: int | None = None
    repeats: int | None = None
    clusters: int | None = None
    notes: tuple[str, ...] = ()

    _names: ClassVar = "names"
    _parts: ClassVar = "parts"
    _words: ClassVar = {"resampling": ("bootstrap", "cross_validation")}

    def frame(self, backend: Any = None) -> Any:
        """Return one row per statistic: apparent, training, test, optimism, corrected, n_failed."""
        columns: dict[str, Any] = {"statistic": list(self.names)}
        columns |= {name: [getattr(part, name) for part in self.parts] for name in (*_COLUMNS, "n_failed")}
        return self._framed(columns, backend)

    def _table(self) -> list[tuple[str, ...]]:
        return [(title_of(part.name), *(rounded(getattr(part, name)) for name in _COLUMNS)) for part in self.parts]

    def to_markdown(self) -> str:
        """Return the table in Markdown, which word processors take."""
        return markdown_table(_HEADS, self._table())

    def to_latex(self) -> str:
        """Return the table in LaTeX."""
        return latex_table(_HEADS, self._table())

    def _how_said(self) -> str:
        drawn = "rows" if self.clusters is None else f"whole clusters, of {self.clusters:,},"
        if self.n_resamples is not None:
            return f"{counted(self.n_resamples, 'resample')} of {drawn} drawn with replacement"
        times = "" if self.repeats == 1 else f", {self.repeats} times"
        return f"{self.folds} folds of {drawn.rstrip(',')}{times}"

    def __str__(self) -> str:
        head = (
            f"{self.estimator} on {counted(self.rows, 'row')}, {counted(self.events, 'event')}: corrected for optimism "
            f"by {self._how_said()}."
        )
        names = (*map(str.lower, _HEADS), "failed")
        rows = [(*cells, str(part.n_failed)) for cells, part in zip(self._table(), self.parts, strict=True)]
        return "\n".join([head, in_columns(names, rows), *(f"Note: {note}." for note in self.notes)])

    __repr__ = __str__
